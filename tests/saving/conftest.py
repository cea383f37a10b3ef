"""Until Preparation has a state of its own on this branch: the attributes of today's, for tests."""

import numpy as np
import pytest

from baldur.prepare import Preparation
from baldur.prepare.confounds import ConfoundDesign
from baldur.state import Fields
from baldur.views.scores import NormalScores

SETTINGS = ("scale", "impute", "all_missing", "dtype", "max_bytes")


def to_state(self):
    return {
        "kind": "preparation",
        **{name: getattr(self, name) for name in SETTINGS},
        "views": list(self.n_features_),
        "n_features": dict(self.n_features_),
        "names": dict(self._names),
        "n_samples": self.n_samples_,
        **{
            name: dict(getattr(self, f"{name}_"))
            for name in ("mean", "scale", "lower", "upper", "minimum", "maximum", "constant")
        } | {"scale_of": dict(self.scale_)},
        "scaling": self.scale,
        "constant_features": dict(self.constant_features_),
        "needed": self.needed_,
        "ranks": [None if s is None else s.to_state() for s in self._scores.values()],
    }  # fmt: skip


def from_state(state):
    with Fields(state, "preparation") as read:
        read.plain("scale")
        made = Preparation(
            read.choice("scaling", ("clipped", "standard", "rank")),
            read.choice("impute", ("mean", "error")),
            all_missing=read.choice("all_missing", ("error", "zero")),
            dtype=read.choice("dtype", ("auto", "float32", "float64")),
            max_bytes=read.integer("max_bytes", 1),
        )
        views = read.names("views")
        made.n_features_ = widths = read.by_name("n_features", views, lambda f, v: f.integer(v, 1))
        made._names = read.by_name(
            "names", views, lambda f, v: f.texts(v, (widths[v],)) if f.has(v) else None
        )
        made.n_samples_ = read.integer("n_samples", 1)
        for name, options in {
            "mean": {}, "scale_of": {"above": 0.0}, "lower": {"finite": False},
            "upper": {"finite": False}, "minimum": {"finite": False}, "maximum": {"finite": False},
        }.items():  # fmt: skip
            setattr(
                made,
                "scale_" if name == "scale_of" else f"{name}_",
                read.by_name(
                    name,
                    views,
                    lambda f, v, o=options: f.array(v, (widths[v],), "number", largest=np.inf, **o),
                ),
            )
        made.constant_ = read.by_name("constant", views, lambda f, v: f.flags(v, (widths[v],)))
        made.constant_features_ = read.by_name(
            "constant_features", views, lambda f, v: f.texts(v, (None,))
        )
        made.needed_ = (
            read.by_name("needed", views, lambda f, v: f.flags(v, (widths[v],)))
            if read.has("needed")
            else None
        )
        ranks = read.each(
            "ranks",
            lambda f, key, m: (
                f.part(key, NormalScores.from_state, width=widths[views[m]]) if f.has(key) else None
            ),
            len(views),
        )
    made.confound_coef_, made._spread, made.alleles_ = {}, {}, {}
    made._scores = dict(zip(views, ranks, strict=True))
    made.confound_design_ = None
    assert ConfoundDesign
    return made


@pytest.fixture(autouse=True)
def preparation_state(monkeypatch):
    if not hasattr(Preparation, "to_state"):
        monkeypatch.setattr(Preparation, "to_state", to_state, raising=False)
        monkeypatch.setattr(Preparation, "from_state", staticmethod(from_state), raising=False)
