"""The tables of the page, one file per subject.

========================  =====================================================================
`base`                    Cell, Column and Table, which the template draws
`models`                  every model with its metrics and intervals
`features`                selected features with weights, intervals and agreement of the folds
`participants`            who was studied, by outcome, and who has which view
`clinical`                thresholds and subgroups
`views`                   one card per view
========================  =====================================================================

Results and fitted models come in, `Table` objects go out. May import evaluation and what is below.
"""
