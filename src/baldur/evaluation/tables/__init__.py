"""Tables of a comparison: the table of metrics, its printed forms, and tests between models.

In: predictions and selected features of all folds, as data frames.
Out: one row per model with every metric and its interval (`table`), the same as text, Markdown or
LaTeX (`formatting`), corrected paired tests and permutation tests (`model_tests`), and the
characteristics of the participants (`participants`). `results_reader` and `record_reader` read the
files of a results folder back and check them.

It may import metrics, `clinical` (for intervals) and `selection`; never the engine.
"""
