"""Texts of the page that are written once: explanations of checks, methods, TRIPOD+AI items.

========================  =====================================================================
`explanations`            what each check looks at, and what to do
`factors`                 what the latent factors of a model are
`methods`                 a methods paragraph, and the commands that repeat the study
`selection`               which features a model uses, with how sure they are
`tripod`                  TRIPOD+AI items, answered where the study knows the answer
========================  =====================================================================

Results and fitted models come in, texts go out. May import `fitted`, `formatting` and `results` of
the report, and evaluation with what is below.
"""
