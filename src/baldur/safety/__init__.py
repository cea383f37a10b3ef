"""Nothing a stranger sends can hurt: limits on reading, safe places to write, escaped output.

=============  ====================================================================================
`budget`       how much memory and time the reading of one file may take
`limited`      a first look at a file in a process of its own, with that budget as its limit
`confine`      paths below a folder, and files opened without following links
`escape`       text for CSV, LaTeX, Markdown and the terminal, and names without control characters
`spreadsheet`  whole tables as CSV, escaped, and back
=============  ====================================================================================

This package is at the bottom: every other part of baldur may use it, and it uses none of them.
`SECURITY.md` says what is promised.
"""
