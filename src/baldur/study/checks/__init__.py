"""Checks for suspicious data in a study; each finding says what to do.

=============  ================================================================================
`cells`        sentinel values and dates among the numbers, comma decimals among the categories
`labels`       labels written in two ways, ids that lost digits
`copies`       columns that repeat the outcome
`repeats`      samples with the same values on both sides of a split
`sites`        columns that give the site away, and a site that gives the outcome away
=============  ================================================================================
"""
