"""ViewComparison: two view sets of one model and the people on whom they are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

BASELINE, WITH, ALL, ALONE, WITHOUT = "baseline", "with", "all", "alone", "without"
"""Questions about one view set: how well do these views predict? The baseline, the baseline with a
view, all views, a view alone, and all without a view. A set has one row, of the first question."""
ADDED, ALL_ADDED, BEYOND = "added", "all added", "beyond the others"
"""Questions about two view sets: what does a view add to the baseline, what do all others add to
it together, and what does a view add to all others?"""


@dataclass(frozen=True)
class ViewComparison:
    """A model with some views, and the same model without some of them."""

    question: str  # One of the questions above
    view: str
    model: str  # The row with it
    reference: str  # The row without it; empty where there is nothing to compare with
    people: np.ndarray  # (n_people,)


def view_comparisons(
    rows: Mapping[tuple[str, ...], str],
    baseline: Sequence[str],
    present: Mapping[str, np.ndarray],
) -> list[ViewComparison]:
    """Return the comparisons that the view sets of a model allow, each pair once."""
    known = tuple(present)
    base = tuple(v for v in known if v in baseline)
    others = [v for v in known if v not in baseline]

    def has(views: Sequence[str]) -> np.ndarray:
        return np.any([present[v] for v in views], axis=0)

    asked: list[tuple[str, str, tuple[str, ...], tuple[str, ...]]] = [
        (BASELINE, _joined(base), base, ())
    ]
    wider = {v: tuple(w for w in known if w in base or w == v) for v in others}
    asked += [(WITH, v, wider[v], ()) for v in others if len(others) > 1]
    asked.append((ALL, "", known, ()))
    asked += [(ALONE, v, (v,), ()) for v in known]
    asked += [(WITHOUT, v, tuple(w for w in known if w != v), ()) for v in known]
    asked += [(ADDED, v, wider[v], base) for v in others]
    asked.append((ALL_ADDED, _joined(others), known, base))
    asked += [(BEYOND, v, known, tuple(w for w in known if w != v)) for v in known]
    made: list[ViewComparison] = []
    pairs: set[tuple[str, str]] = set()
    for question, view, views, without in asked:
        if views not in rows or (without and without not in rows):
            continue  # its model failed
        pair = (rows[views], rows[without] if without else "")
        # A set may answer several questions; with two views comparisons are the same, too.
        if pair in pairs:
            continue
        pairs.add(pair)
        people = has(views)
        if without:
            people = has([v for v in views if v not in without]) & has(without)
        made.append(ViewComparison(question, view, *pair, people))
    return made


def _joined(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
