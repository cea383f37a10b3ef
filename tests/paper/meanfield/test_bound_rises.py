"""The bound rises after every single update, from random states, in every setting."""

import numpy as np
import pytest

from baldur.paper.bound import bound, without_features
from baldur.paper.updates import MODEL_UPDATES
from paper.literal_dual import use_literal_dual
from paper.meanfield.problems import VIEW_UPDATES, make_problem, random_state

FEW = np.array([0, 2, 3, 7, 8, 11])
SETTINGS = {
    "binary": ({}, 1),
    "binary, dual wide view": ({"spaces": ["primal", "dual"]}, 1),
    "binary, both dual, few relevance vectors": ({"spaces": "dual", "relevance": FEW}, 2),
    "binary, literal dual wide view": ({"spaces": ["primal", "dual"]}, 1),
    "binary, literal dual, few relevance vectors": ({"spaces": "dual", "relevance": FEW}, 2),
    "binary, quadrature": ({"bound_kind": "quadrature"}, 1),
    "binary, weights": ({"sample_weight": np.linspace(0, 2, 14)}, 2),
    "binary, a = 0.5": ({"a_gamma": 0.5}, 2),
    "binary, a = inf": ({"a_gamma": np.inf}, 2),
    "multi-label": ({"C": 3}, 2),
    "multi-label, dual": ({"C": 3, "spaces": ["primal", "dual"], "relevance": FEW}, 3),
    "regression": ({"task": "regression"}, 1),
    "regression, several outputs, dual": (
        {"task": "regression", "C": 2, "spaces": "dual", "relevance": FEW},
        2,
    ),
}


def all_updates(n_views):
    names = [(name, m) for name in VIEW_UPDATES for m in range(n_views)]
    return names + [(name, None) for name in MODEL_UPDATES]


def apply_update(state, data, name, m):
    if m is None:
        return MODEL_UPDATES[name](state, data)
    return VIEW_UPDATES[name](state, data, m)


@pytest.mark.parametrize("drop", [False, True], ids=["all kept", "some dropped"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_every_update_raises_the_bound(setting, drop, monkeypatch):
    if "literal" in setting:
        use_literal_dual(monkeypatch)
    options, K = SETTINGS[setting]
    data = make_problem(**options)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        state = random_state(data, K, seed)
        if drop:
            state = without_features(state, data, 1, np.array([3, 5, 7]))
        updates = all_updates(len(data.views))
        value = bound(state, data)
        for _ in range(6):
            for i in rng.permutation(len(updates)):
                new = apply_update(state, data, *updates[i])
                new_value = bound(new, data)
                assert new_value >= value - 1e-8 * abs(value), (setting, updates[i])
                state, value = new, new_value


@pytest.mark.parametrize("setting", SETTINGS)
def test_an_update_repeated_changes_nothing(setting, monkeypatch):
    if "literal" in setting:
        use_literal_dual(monkeypatch)
    options, K = SETTINGS[setting]
    data = make_problem(**options)
    state = random_state(data, K, 1)
    for name, m in all_updates(len(data.views)):
        if options.get("bound_kind") == "quadrature" and name == "Y":
            continue  # a few Newton steps, not the optimum in one go
        once = apply_update(state, data, name, m)
        twice = apply_update(once, data, name, m)
        assert bound(twice, data) == pytest.approx(bound(once, data), rel=1e-12), name
