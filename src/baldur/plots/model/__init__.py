"""Figures of one model: its features, views, samples and fit.

What comes in: a fitted estimator with ``from_estimator`` or, for most figures, one model of a
comparison with ``from_result``. What goes out: a Display object.

``forest.py``, ``manhattan.py``, ``brain.py``  weights of features: rows, chromosomes, brain slices
``submodel_path.py``                           held-out loss of submodels with fewer features
``view_share.py``, ``correlation.py``          views and selected features
``contributions.py``, ``latent.py``            samples
``history.py``                                 convergence

May import ``baldur.plots.drawing`` and the tables of ``baldur.plots.results``.
"""
