"""The slow, literal twin of Preparation: one column after the other; and weights in its units."""

import numpy as np
from scipy.stats import norm, rankdata


def literal(cells, train, present=None, scale="standard"):
    """Prepare every column with the statistics of its training rows; 0 where missing."""
    cells = cells.copy()
    if present is not None:
        cells[~present] = np.nan
    with np.errstate(invalid="ignore"):
        out = np.column_stack([_column(x, x[train], scale) for x in cells.T])
    return np.where(np.isnan(out), 0, out)


def _column(x, train, scale):
    known = train[~np.isnan(train)]
    values = set(known.tolist())
    if len(values) <= 1:
        return np.zeros(len(x))
    if values <= {0.0, 1.0, 2.0} or len(values) == 2:
        if scale != "standard":
            x = np.clip(x, *((0, 2) if values <= {0.0, 1.0, 2.0} else (min(values), max(values))))
    else:
        if scale == "clipped":
            limits = known.mean() - 3 * known.std(), known.mean() + 3 * known.std()
            x, known = np.clip(x, *limits), np.clip(known, *limits)
        elif scale == "rank":
            scores = norm.ppf((rankdata(known) - 0.5) / len(known))
            order = np.argsort(known)
            x = np.where(np.isnan(x), np.nan, np.interp(x, known[order], scores[order]))
            known = scores
    return (x - known.mean()) / known.std()


def linear(model, data):
    """X @ coef_ + intercept_ from the raw matrices, with cells held within the clip."""
    total = model.intercept_
    for v, coef in model.coef_.items():
        learned = model.preparation_
        cells = np.nan_to_num(data.view(v).read())
        total = total + np.clip(cells, learned.lower_[v], learned.upper_[v]) @ coef.T
    return total
