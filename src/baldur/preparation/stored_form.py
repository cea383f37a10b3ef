"""The stored form of a fitted preparation: plain values, text and arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from baldur.preparation.scaling import Scaling
from baldur.preparation.steps.categories import CategoryEncoder
from baldur.preparation.steps.sites import SiteHarmoniser
from baldur.preparation.steps.step import Step
from baldur.preparation.steps.variants import VariantFilter
from baldur.preparation.steps.voxels import VoxelMask
from baldur.state import Fields, State, by_kind

STEPS: dict[str, type[Step]] = {
    step.__name__: step for step in (CategoryEncoder, VariantFilter, VoxelMask, SiteHarmoniser)
}
"""Steps whose state can be stored, by name."""

_READERS: dict[str, Callable[..., Step]] = {
    "category encoder": CategoryEncoder.from_state,
    "variant filter": VariantFilter.from_state,
    "voxel mask": VoxelMask.from_state,
    "site harmoniser": SiteHarmoniser.from_state,
}


class Stored(NamedTuple):
    """What a fitted preparation consists of."""

    n_features: dict[str, int]  # Columns of each view of the input
    names: dict[str, np.ndarray | None]  # Their names, None where none were given
    steps: list[Step]
    scaling: Scaling


def preparation_state(fitted: Stored) -> State:
    """Return the parts of a fitted preparation as plain values."""
    return {
        "kind": "preparation",
        "views": list(fitted.n_features),
        "n_features": {name: int(width) for name, width in fitted.n_features.items()},
        # Where the steps changed nothing, the scaling has the same names, and stores them.
        "names": {
            name: one
            for name, one in fitted.names.items()
            if not _same_names(one, fitted.scaling.feature_names[name])
        },
        "steps": [step.to_state() for step in fitted.steps],
        "scaling": fitted.scaling.to_state(),
    }


def _same_names(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)


def read_preparation(state: Any) -> Stored:
    """Build the parts again from what `preparation_state` returned; everything is validated."""
    with Fields(state, "preparation") as read:
        views = read.names("views")
        read.need(views, "expected at least one view", "views")
        scaling = read.part("scaling", Scaling.from_state, views=views)
        steps = read.parts("steps", by_kind(_READERS))
        n_features = read.by_name("n_features", views, lambda f, v: f.integer(v, 1))
        names = dict(scaling.feature_names)
        names |= read.by_name(
            "names",
            views,
            lambda f, v: f.texts(v, (n_features[v],)) if f.has(v) else None,
            some=True,
        )
        left = _widths_after(read, steps, n_features)
        fits = left == scaling.n_features_
        read.need(fits, "expected the columns that the steps leave", "scaling")
    return Stored(n_features, names, steps, scaling)


def _widths_after(
    read: Fields, steps: Sequence[Step], n_features: dict[str, int]
) -> dict[str, int]:
    """Return how many columns of each view the steps leave; refuse steps of other columns."""
    widths = dict(n_features)
    for i, step in enumerate(steps):
        at = f"steps[{i}]"
        asked = {name: widths.get(name) for name in step.input_widths}
        read.need(step.input_widths == asked, "expected the columns of the views", at)
        read.need(set(step.columns_) <= set(widths), "expected views of the input", at)
        for name, index in step.columns_.items():
            inside = len(index) and index.min() >= 0 and index.max() < widths[name]
            read.need(inside, f"expected columns of the view {name!r}", at)
            once = len(np.unique(index)) == len(index)
            read.need(once, f"expected no column of the view {name!r} twice", at)
            widths[name] = len(index)
    return widths
