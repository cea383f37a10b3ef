"""Example studies: the file that ``baldur init`` writes, simulated studies, and the demonstration.

What comes in: a kind of simulation, its scale and a seed. What goes out: a folder with data files
and a study file that `baldur.study.load_study` reads. Imports `baldur.datasets` and the writer of
study files, and nothing of a study that reads or runs.
"""
