"""What all figures share: the Display base class, the style, and parts that are drawn often.

What comes in: numbers and names. What goes out: artists on matplotlib axes.

``display.py``    the base class: figure, axes, saving, notebooks
``style.py``      colours, line styles, sizes, themes
``names.py``      names and numbers as short, safe text
``parts.py``      rows with names, legends, intervals, empty figures
``curves.py``     one curve per model or class, with at most one band
``cells.py``      matrices of signed numbers as coloured cells
``libraries.py``  matplotlib and nilearn, imported when something is drawn

The other folders of `baldur.plots` import this one; it imports none of them.
"""
