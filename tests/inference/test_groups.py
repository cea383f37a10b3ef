"""Columns of one category are selected together; see also the tests of the submodel path."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from baldur import BaldurClassifier, MultiView
from baldur.inference.fit import fit_default
from baldur.preparation import CategoryEncoder
from inference.problems import few_repeats, make_problem  # noqa: F401


def test_a_fit_selects_whole_groups():
    problem, folds = make_problem("binary")
    groups = [np.arange(view.shape[1]) // 2 for view in problem.views]
    plain = fit_default(replace(problem, groups=None), folds)
    result = fit_default(replace(problem, groups=groups), folds)
    assert 0 < sum(mask.sum() for mask in plain.selected) < sum(problem.widths)
    for mask, group in zip(result.selected, groups, strict=True):
        assert (np.bincount(group, mask) % 2 == 0).all()
    kept = [step for step in result.path if step["selected"]]
    assert kept[0]["n_features"] == sum(mask.sum() for mask in result.selected)


@pytest.fixture(scope="module")
def with_category():
    rng = np.random.default_rng(4)
    n = 160
    site = rng.integers(4, size=n)
    numbers = rng.standard_normal((n, 6))
    logit = 4.0 * (site == 2) - 1.0 + numbers[:, 0]
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(-logit))).astype(int)
    levels = ["Bonn", "Lima", "Oslo", "Rome"]
    info = pd.DataFrame(
        {
            "column": ["site"] * 4 + [f"x{j}" for j in range(6)],
            "level": [*levels, *[None] * 6],
        }
    )
    names = [*(f"site={level}" for level in levels), *(f"x{j}" for j in range(6))]
    X = MultiView(
        {"clinic": np.hstack([np.eye(4)[site], numbers])},
        feature_names={"clinic": names},
        feature_info={"clinic": info},
    )
    return X, y


@pytest.mark.usefixtures("few_repeats")
@pytest.mark.parametrize("coded", [True, False], ids=["without reference", "all levels"])
def test_a_category_is_selected_as_a_whole(with_category, coded):
    X, y = with_category
    X = CategoryEncoder(drop="first" if coded else None).fit_transform(X)
    model = BaldurClassifier().fit(X, y)
    of_site = np.char.startswith(X.feature_names["clinic"].astype(str), "site=")
    kept = model.selected_features_["clinic"]
    assert kept[of_site].all()
    assert not kept.all()
