"""Example studies: the file that ``baldur init`` writes, simulated studies, and the demonstration.

What comes in: a kind of simulation, its scale and a seed. What goes out: a folder with data files
and a study file that `baldur.study.load_study` reads.

- `template`: the commented study file of ``baldur init``.
- `simulate`: simulated views, the truth behind them, and a study file (``baldur simulate``).
- `plink_writer`: genotypes as PLINK 1 files, written block by block.
- `demo`: the small study of ``baldur demo``.

May import: `baldur.datasets`, `baldur.views`, what these import, and the writer of study files
(`toml_file`); nothing of a study that reads or runs.
"""
