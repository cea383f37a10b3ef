"""Checks for suspicious data in a study; each finding says what to do.

=============  ================================================================================
`run`          `find_problems`: every check, in one pass over the cells of each view
`finding`      `Finding`, one thing that looks wrong
`cells`        sentinel values and dates among the numbers, comma decimals among the categories
`labels`       labels written in two ways, ids that lost digits
`copies`       columns that repeat the outcome
`repeats`      samples with the same values on both sides of a split
`sites`        columns that give the site away, and a site that gives the outcome away
=============  ================================================================================

In: a `StudyConfig`, its `StudyData` and the outer folds. Out: a list of `Finding`. Nothing is
changed or left out. May import `config` and `data` of the study, and the views.
"""
