"""Tables of a comparison: the table of metrics, its printed forms, and tests between models.

In: predictions and selected features of all folds, as data frames; or a results folder.
Out: data frames and text.

- `table`: one row per model, with every metric and its interval.
- `formatting`: the same as text, Markdown or LaTeX.
- `model_tests`: corrected paired tests, and permutation tests.
- `participants`: the characteristics of the participants by outcome.
- `results_reader` and `record_reader`: the files of a results folder, read back and checked.

It may import metrics, `clinical` (for intervals), `selection` and `record`; never the engine.
"""
