"""Texts of the page that are written once: explanations of checks, methods, TRIPOD+AI items.

========================  =====================================================================
`explanations`            what each check looks at, and what to do
`methods`                 a methods paragraph, and the commands that repeat the study
`tripod`                  TRIPOD+AI items, answered where the study knows the answer
========================  =====================================================================

Results and fitted models come in, texts go out. May import evaluation and what is below.
"""
