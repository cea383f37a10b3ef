"""Columns of one category: kept or dropped together, from the candidates to the posterior."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from baldur.inference.auto import fit_auto
from baldur.inference.projection import search

from baldur import BaldurClassifier, MultiView
from baldur.inference.screening import with_their_groups
from baldur.preparation import CategoryEncoder
from inference.problems import few_repeats, make_problem  # noqa: F401


@pytest.fixture
def setting():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 12))
    eta = X[:, [0]] - 0.8 * X[:, [5]] + 0.1 * X[:, [9]]
    return X, np.full((60, 1), 0.2), eta, np.eye(12)[[0]] - 0.8 * np.eye(12)[[5]]


def test_columns_of_a_group_enter_one_after_the_other(setting):
    groups = np.array([0, 1, 0, 2, 0, 3, 3, 4, 5, 6, 7, 8])
    basis = search(*setting, 7, groups)
    assert set(basis.order[:3]) == {0, 2, 4}
    assert set(basis.order[3:5]) == {5, 6}
    assert basis.ends.tolist() == [3, 5, 6, 7]
    assert [basis.whole_groups(size) for size in (1, 3, 4, 6, 9)] == [3, 3, 5, 6, 7]


def test_a_group_that_is_begun_is_completed(setting):
    groups = np.array([0, 1, 0, 2, 0, 3, 3, 4, 5, 6, 7, 8])
    basis = search(*setting, 1, groups)
    assert set(basis.order) == {0, 2, 4}
    assert len(basis.R_inverse[0]) == 4


def test_numbers_of_their_own_change_nothing(setting):
    plain, numbered = search(*setting, 8), search(*setting, 8, np.arange(12)[::-1])
    assert plain.order.tolist() == numbered.order.tolist()
    assert plain.ends.tolist() == list(range(1, 9))
    np.testing.assert_array_equal(plain.R_inverse[0], numbered.R_inverse[0])


def test_a_column_that_says_what_its_group_says_is_left_out(setting, monkeypatch):
    monkeypatch.setattr("baldur.inference.projection.correlation_noise", lambda X, H: 0.0)
    X, H, eta, w = setting
    X[:, 2] = 2.0 * X[:, 0]
    basis = search(X, H, eta, w, 4, np.array([0, 1, 0, *range(2, 11)]))
    assert sum(np.isin(basis.order, [0, 2])) == 1


def test_candidates_come_with_their_groups():
    groups = [np.array([0, 1, 1, 2]), np.array([0, 1, 2])]
    found = with_their_groups([np.array([2]), np.array([0, 2])], groups)
    assert [columns.tolist() for columns in found] == [[1, 2], [0, 2]]


def test_the_answer_keeps_groups_whole():
    problem, T, folds = make_problem("binary")
    groups = [np.arange(view.shape[1]) // 2 for view in problem.views]
    plain = fit_auto(replace(problem, groups=None), T, folds)
    answer = fit_auto(replace(problem, groups=groups), T, folds)
    assert 0 < sum(mask.sum() for mask in plain.selected) < problem.widths.sum()
    for mask, group in zip(answer.selected, groups, strict=True):
        assert (np.bincount(group, mask) % 2 == 0).all()
    kept = [step for step in answer.path if step["kept"]]
    assert kept[0]["n_features"] == sum(mask.sum() for mask in answer.selected)


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
def test_a_category_is_kept_or_dropped_as_a_whole(with_category, coded):
    X, y = with_category
    X = CategoryEncoder(drop="first" if coded else None).fit_transform(X)
    model = BaldurClassifier().fit(X, y)
    of_site = np.char.startswith(X.feature_names["clinic"].astype(str), "site=")
    kept = model.selected_features_["clinic"]
    assert kept[of_site].all()
    assert not kept.all()
