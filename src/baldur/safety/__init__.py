"""Limits on reading, safe places to write, and escaped output, for files from strangers.

=================  ================================================================================
`budget`           how much memory and time the reading of one file may take
`limited_process`  a first look at a file in a process of its own, with that budget as its limit
`confine`          paths below a folder, and files opened without following links
`escape`           text for CSV, LaTeX, Markdown and the terminal; names without control characters
`spreadsheet`      whole tables as CSV, escaped, and back
=================  ================================================================================

In: paths, names, cells and messages. Out: the same, checked or escaped, or an `InputError`.
May import `baldur.exceptions` only; every other part may import it. ``SECURITY.md`` lists what is
promised, and the tests.
"""
