"""The argument `cost`: cheap measurements first, paid once, and what a budget buys."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import baldur
from baldur import BaldurClassifier, BaldurRegressor, MultiView, plots
from baldur.exceptions import InputError

N = 120
pytestmark = [
    pytest.mark.usefixtures("one_repeat"),
    pytest.mark.filterwarnings("ignore::baldur.exceptions.NoSignalWarning"),
]


def cohort(seed, regression=False):
    """Two views that measure nearly the same, and one with something of its own."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((N, 2))
    first, second = (z[:, 0] + 0.1 * rng.standard_normal(N) for _ in range(2))
    data = MultiView(
        {
            "mri": np.column_stack([first, rng.standard_normal((N, 8))]),
            "blood": np.column_stack([second, rng.standard_normal((N, 3))]),
            "clinic": np.column_stack([z[:, 1], rng.standard_normal((N, 2))]),
        }
    )
    y = z @ [2.0, 1.0] + (rng.standard_normal(N) if regression else rng.logistic(size=N))
    return data, y if regression else (y > 0).astype(int)


def orders(model):
    """What is paid for, in the order of the path."""
    return ", ".join(text for text in model.cost_path_["orders"] if text).split(", ")


def n_of(model):
    return {view: int(mask.sum()) for view, mask in model.selected_features_.items()}


@pytest.mark.parametrize("kind", [BaldurClassifier, BaldurRegressor])
@pytest.mark.parametrize("seed", range(3))
def test_the_cheap_stand_in_is_ordered_first(kind, seed):
    data, y = cohort(seed, kind is BaldurRegressor)
    for cheap, dear in (("blood", "mri"), ("mri", "blood")):
        model = kind(cost={dear: 800, cheap: 20}, members=("spike_slab", "pooled")).fit(data, y)
        assert orders(model) == [cheap, dear]
        table = model.cost_path_
        assert table["cost"].iloc[0] == 0
        assert table["n_features"].iloc[0] == 0
        assert table["cost"].tolist()[-2:] == [20, 820]
        losses = table.groupby("cost")["loss"].last()
        assert losses[0] - losses[20] > losses[20] - losses[820]


@pytest.fixture(scope="module")
def priced():
    data, y = cohort(0)
    cost = {"mri": 800, "blood_0": 20, "clinic:clinic_1": 5}
    options = {"members": ("spike_slab", "pooled")}
    return BaldurClassifier(cost=cost, **options).fit(data, y), data, y


def test_the_table_adds_up(priced):
    model, _, _ = priced
    table = model.cost_path_
    price = {"mri": 800.0, "blood:blood_0": 20.0, "clinic:clinic_1": 5.0}
    total, count = 0.0, 0
    for row in table.to_dict("records"):
        total += sum(price[name] for name in row["orders"].split(", ") if name)
        count += len([name for name in row["enters"].split(", ") if name])
        assert row["cost"] == total
        assert row["n_features"] == count
        assert row["loss_lower"] <= row["loss"] <= row["loss_upper"]
        assert row["auc_lower"] <= row["auc"] <= row["auc_upper"]
    assert total == 825
    assert sorted(orders(model)) == sorted(price)


def test_a_budget_buys_the_row_of_the_table(priced):
    model, data, _ = priced
    for row in model.cost_path_.to_dict("records")[1:]:
        small = model.submodel(budget=row["cost"])
        assert sum(n_of(small).values()) == row["n_features"]
        same = model.submodel(budget=row["cost"] + 1e-3)
        assert_allclose(small.predict_proba(data), same.predict_proba(data))
    assert sum(n_of(model.submodel(budget=1e9)).values()) == 16


def test_submodels_of_a_path_by_cost_are_what_n_features_fits(priced):
    model, data, y = priced
    for asked in (0, 3, {"blood": 2, "clinic": 1}):
        direct = BaldurClassifier(**{**model.get_params(), "n_features": asked}).fit(data, y)
        small = model.submodel(asked)
        assert_allclose(small.predict_proba(data), direct.predict_proba(data), atol=1e-10)
        pd.testing.assert_frame_equal(small.cost_path_, direct.cost_path_)


def test_it_is_saved_and_shown(priced, tmp_path):
    model, _, _ = priced
    loaded = baldur.load(model.save(tmp_path / "model"))
    pd.testing.assert_frame_equal(loaded.cost_path_, model.cost_path_)
    assert loaded.cost == model.cost
    lines = str(model.summary()).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("Which tests give"))
    rows = lines[start + 2 : start + 2 + len(model.cost_path_)]
    assert [float(row.split()[0]) for row in rows] == model.cost_path_["cost"].tolist()
    assert rows[0].endswith("nothing")
    assert any(row.endswith("mri") for row in rows)
    figure = plots.CostDisplay.from_estimator(loaded)
    assert figure.table["limit"].tolist()[: len(rows)] == [row.split()[0] for row in rows]
    assert "AUC by cost so far" in figure.plot().alt_text
    assert not len(model.submodel(2).cost_path_.compare(model.cost_path_))


def test_a_price_of_nothing_changes_nothing(priced):
    _, data, y = priced
    options = {"members": ("spike_slab", "pooled")}
    free, none = (
        BaldurClassifier(cost=cost, **options).fit(data, y) for cost in ({"mri": 0.0}, None)
    )
    assert_allclose(free.predict_proba(data), none.predict_proba(data))
    assert not len(free.cost_path_)
    with pytest.raises(InputError, match="fitted without costs"):
        free.submodel(budget=5)


def test_a_category_is_paid_once():
    rng = np.random.default_rng(0)
    n = 120
    X = pd.DataFrame(rng.standard_normal((n, 4)), columns=list("abcd"))
    X.insert(0, "kind", rng.choice(["u", "v", "w", "x"], n))
    y = (2.0 * X["kind"].isin(["u", "v"]) + X["a"] + rng.logistic(size=n) > 1).astype(int)
    model = BaldurClassifier(cost={"kind": 10, "a": 3}).fit(X, y)
    assert model.cost_path_["cost"].iloc[-1] == 13
    assert model.submodel(budget=12).selected_features_["X"].sum() < 7


@pytest.mark.parametrize(
    "wrong", [{"mir": 1}, {"mri": -1}, {"mri": "dear"}, {"mri": np.inf}, [800], {1: 2}]
)
def test_costs_are_checked(wrong, priced):
    _, data, y = priced
    with pytest.raises(InputError, match="cost"):
        BaldurClassifier(cost=wrong, members=("pooled",)).fit(data, y)


@pytest.mark.parametrize("wrong", [-1, "all", None])
def test_budgets_are_checked(wrong, priced):
    with pytest.raises(InputError, match="budget"):
        priced[0].submodel(budget=wrong)
