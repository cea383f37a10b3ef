"""Nested cross-validation: the right rows at the right time, one result however it is run."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV

from baldur import BaldurClassifier, MultiView, Preparation
from baldur.baselines import BASELINES
from baldur.datasets import make_biofind_like, make_multiview
from baldur.evaluation import nested_cv
from baldur.exceptions import InputError, NoSignalWarning, StudyError
from evaluation import spies

MODELS = {
    "Dummy": None,
    "Ridge logistic": {"C": [0.01, 1.0]},
    "LSVM-l1": {"c_ratio": [3.0, 10.0]},
    "RF": {"n_estimators": [10], "max_depth": [2, 3]},
}

pytestmark = pytest.mark.usefixtures("few_resamples")


@pytest.fixture(scope="module")
def sim():
    return make_multiview(90, {"a": 8, "b": 60}, random_state=0)


@pytest.fixture(scope="module")
def result(sim):
    return nested_cv(MODELS, sim.data, sim.target, outer=3, inner=3)


def frames(result):
    """Everything that is written, as bytes."""
    parts = [
        result.table(), result.predictions, result.selection, result.settings, result.compare(),
        result.stability().index, result.weights(), *result.evaluation().frames().values(),
    ]  # fmt: skip
    return [p.to_csv(index=False) for p in parts] + [result.format("latex")]


@pytest.fixture(scope="module")
def written(result):
    return frames(result)


def test_predictions_hold_every_sample_once_per_model(sim, result):
    for _, part in result.predictions.groupby("model"):
        assert sorted(part["sample"].astype(int)) == list(range(90))
    truth = result.predictions["label"].astype(int).to_numpy()
    np.testing.assert_array_equal(truth, sim.target[result.predictions["sample"].astype(int)])


def test_equals_a_hand_written_nested_search(sim):
    """scikit-learn's own search over the same folds chooses and predicts the same."""
    found = nested_cv(
        {"Ridge logistic": {"C": [0.01, 1.0]}}, sim.data, sim.target, outer=3, inner=3
    )
    folds = spies.folds_seen(sim.data, sim.target, 3, 3)
    for number, (train, test, inside) in enumerate(folds, 1):
        where = {row: i for i, row in enumerate(train)}
        inner = [([where[r] for r in a], [where[r] for r in b]) for a, b in inside]
        search = GridSearchCV(
            BASELINES["Ridge logistic"].make(), {"C": [0.01, 1.0]}, scoring="roc_auc", cv=inner
        ).fit(sim.data[train], sim.target[train])
        mine = found.predictions[found.predictions["fold"] == number]
        chosen = found.settings.query(f"fold == {number}")["value"].item()
        assert chosen == search.best_params_["C"]
        expected = search.predict_proba(sim.data[test])[:, 1]
        np.testing.assert_allclose(mine["p_1"].to_numpy(), expected, atol=1e-7)


def test_models_never_see_the_rows_they_are_scored_on(sim):
    spies.SEEN.clear()
    grid = {"c": [1.0, 2.0]}
    nested_cv({"spy": (spies.Spy(), grid)}, sim.data, sim.target, outer=3, inner=3)
    pairs = list(zip(spies.SEEN[::2], spies.SEEN[1::2], strict=True))
    assert len(pairs) == 3 * 2 * 3 + 3
    outer = [set(test[1]) for _, test in pairs[-3:]]
    for (kind, train, c), (_, test, c2) in pairs:
        assert kind == "fit"
        assert c == c2
        assert not set(train) & set(test)
    # Inner fits of an outer fold see nothing of its test rows.
    for i, (fit, test) in enumerate(pairs[:-3]):
        held_out = outer[i // 6]
        assert not held_out & set(fit[1])
        assert not held_out & set(test[1])


def test_groups_reach_the_inner_folds(sim):
    groups = np.repeat(np.arange(30), 3)
    spies.SEEN.clear()
    nested_cv(
        {"spy": (spies.Spy(), {"c": [1.0, 2.0]})}, sim.data, sim.target, groups=groups, outer=3,
        inner=3,
    )  # fmt: skip
    for (_, train, _), (_, test, _) in zip(spies.SEEN[::2], spies.SEEN[1::2], strict=True):
        assert not set(groups[list(train)]) & set(groups[list(test)])


def test_one_and_two_processes_give_the_same_bytes(sim, written):
    two = nested_cv(MODELS, sim.data, sim.target, outer=3, inner=3, n_jobs=2)
    assert frames(two) == written


def test_large_views_give_the_same_bytes_with_two_processes(constants):
    """Arrays above the limit are mapped from a file, in this process as in the others."""
    cohort = make_biofind_like(scale=0.002, random_state=0)
    constants(MAP_BYTES=10_000)
    keywords = {"outer": 2, "inner": 2}
    models = {"LSVM-l1": {"c_ratio": [3.0, 10.0]}, "PCA-AWDR": {"g": [0.1, 1.0]}}
    one, two = (nested_cv(models, cohort.data, cohort.target, n_jobs=n, **keywords) for n in (1, 2))
    assert frames(one) == frames(two)


def test_finished_jobs_are_not_done_again(sim, written, tmp_path):
    states = []

    def watch(state):
        states.append((state.done, state.reused, state.total))

    first = nested_cv(
        MODELS, sim.data, sim.target, outer=3, inner=3, store=tmp_path, progress=watch
    )
    total = states[-1][2]
    assert states[-1] == (total, 0, total)
    files = sorted(tmp_path.glob("*/*.job"))
    assert len(files) == total
    for file in files[::3]:
        file.unlink()
    again = nested_cv(
        MODELS, sim.data, sim.target, outer=3, inner=3, store=tmp_path, progress=watch
    )
    assert states[-1] == (total, total - len(files[::3]), total)
    assert frames(first) == frames(again) == written
    # Another model leaves the finished jobs of the others alone.
    more = {**MODELS, "MV-PLS": {"n_components": [1]}}
    nested_cv(more, sim.data, sim.target, outer=3, inner=3, store=tmp_path, progress=watch)
    assert states[-1] == (total + 3, total, total + 3)


def test_changed_data_or_seed_are_done_again(sim, tmp_path):
    reused = []
    models = {"Ridge logistic": {"C": [1.0]}}
    for mv, seed in ((sim.data, 0), (sim.data, 1), (sim.data.select("a"), 0), (sim.data, 0)):
        nested_cv(
            models, mv, sim.target, outer=3, random_state=seed, store=tmp_path,
            progress=lambda s: reused.append(s.reused),
        )  # fmt: skip
    assert reused[-1] == 3
    assert set(reused[:-4]) == {0}


def test_a_failing_model_has_its_reason_in_its_row(sim):
    models = {
        "broken": (spies.Fails(), {"c": [1.0, 2.0]}),
        "broken at once": spies.Fails(),
        "nan": spies.PredictsNaN(),
        "partly": (spies.Fails(when="sometimes"), {"c": [1.0, 2.0]}),
        "Dummy": None,
    }
    found = nested_cv(models, sim.data, sim.target, outer=3, inner=3)
    table = found.table().set_index("model")
    assert "the matrix is singular" in table.loc["broken", "failure"]
    assert table.loc["broken at once", "failure"] == "RuntimeError: the matrix is singular"
    assert "NaN" in table.loc["nan", "failure"]
    assert table.loc[["partly", "Dummy"], "failure"].tolist() == ["", ""]
    assert any("passed over" in n for n in found.notes["partly"])
    assert table.loc["Dummy", "auc"] == 0.5
    assert np.isnan(table.loc["broken", "auc"])
    assert "broken failed: every setting failed" in found.format()
    assert "failed" in found.format("latex")


def test_a_worker_that_dies_is_explained(sim):
    with pytest.raises(StudyError, match="--jobs 1"):
        nested_cv({"dies": spies.Dies()}, sim.data, sim.target, outer=3, n_jobs=2)
    # The next call has workers again.
    assert nested_cv({"Dummy": None}, sim.data, sim.target, outer=3, n_jobs=2).failures == {}


@pytest.mark.usefixtures("one_repeat")
def test_baldur_classifies_and_regresses_by_name():
    numbers = make_multiview(60, {"a": 6, "b": 10}, n_classes=None, noise=0.5, random_state=0)
    found = nested_cv(["BALDUR"], numbers.data, numbers.target, task="regression", outer=3)
    assert found.table()["r2"].item() > 0.8
    assert 0 < found.table()["features_percent"].item() <= 100
    classes = make_multiview(90, {"a": 6, "b": 10}, random_state=0)
    found = nested_cv(["BALDUR"], classes.data, classes.target, outer=3)
    assert found.table()["auc"].item() > 0.8
    assert found.weights()["weight"].notna().all()


def test_figures_are_means_over_folds(sim, result):
    part = result.predictions[result.predictions["model"] == "Ridge logistic"]
    aucs = [roc_auc_score(f["label"] == "1", f["p_1"]) for _, f in part.groupby("fold")]
    row = result.table().set_index("model").loc["Ridge logistic"]
    assert row["auc"] == pytest.approx(np.mean(aucs))
    assert row["auc_sd"] == pytest.approx(np.std(aucs, ddof=1))
    assert row["features_percent"] == 100
    svm = result.scores().query("model == 'LSVM-l1'")
    counts = result.weights().query("model == 'LSVM-l1'").groupby("fold").size()
    np.testing.assert_allclose(svm["features_percent"], 100 * counts / 68)


def test_stability_agrees_with_the_weights(result):
    stability = result.stability()
    weights = result.weights().query("model == 'LSVM-l1'")
    by_feature = weights.groupby(["view", "feature"])["weight"]
    listed = stability.features.query("model == 'LSVM-l1'").set_index(["view", "feature"])
    for key, part in by_feature:
        row = listed.loc[key]
        assert row["frequency"] == pytest.approx(len(part) / 3)
        assert row["mean_weight"] == pytest.approx(part.mean())
        signs = max((part > 0).sum(), (part < 0).sum()) / len(part)
        assert row["sign_agreement"] == pytest.approx(signs)
    shares = stability.views.query("model == 'LSVM-l1'")
    assert shares["share"].sum() == pytest.approx(1)
    assert shares["variance_share"].sum() == pytest.approx(1)
    index = stability.index.set_index(["model", "view"])["stability"]
    assert 0 < index["LSVM-l1", "*"] < 1
    assert np.isnan(index["Ridge logistic", "*"])


def test_the_positive_class_is_last_and_weights_point_to_it(sim):
    names = np.array(["sick", "well"])[sim.target]
    one, other = (
        nested_cv({"LSVM-l1": {}}, sim.data, names, positive=p, outer=3) for p in ("sick", "well")
    )
    assert list(one.predictions.columns[-4:]) == ["p_well", "p_sick", "probability", "score"]
    w1, w2 = one.weights(), other.weights()
    merged = w1.merge(w2, on=["fold", "view", "feature"])
    assert len(merged) > 3
    assert (np.sign(merged["weight_x"]) == -np.sign(merged["weight_y"])).all()


def test_three_classes_regression_repeats_sites_and_plain_matrices():
    three = make_multiview(90, {"a": 8}, n_classes=3, random_state=0)
    found = nested_cv({"Ridge logistic": {"C": [1.0]}, "LSVM-l1": {}}, three.data, three.target,
                      outer=3, repeats=2)  # fmt: skip
    assert found.table()["folds"].tolist() == [6, 6]
    assert found.table()["auc"].min() > 0.7
    numbers = make_multiview(90, {"a": 8}, n_classes=None, noise=0.5, random_state=0)
    X = numbers.data.view("a").read()
    found = nested_cv({"ridge": (Ridge(), {"alpha": [1.0, 10.0]})}, X, numbers.target,
                      views={"left": slice(0, 4), "right": slice(4, 8)}, task="regression",
                      outer=3, inner=3)  # fmt: skip
    assert found.table()["r2"].item() > 0.9
    sites = np.repeat(["x", "y", "z"], 30)
    found = nested_cv({"Dummy": None}, three.data, three.target, sites=sites)
    assert found.table()["folds"].item() == 3


def test_confounded_signal_disappears_when_regressed_out():
    rng = np.random.default_rng(0)
    age = rng.normal(size=150)
    y = (age + 0.3 * rng.normal(size=150) > 0).astype(int)
    X = age[:, None] + rng.normal(size=(150, 20))
    models = {"Ridge logistic": {"C": [0.1, 1.0]}, "lr": LogisticRegression()}
    raw = nested_cv(models, X, y, outer=5, inner=3).table()
    mv = MultiView({"X": X}, samples=pd.DataFrame({"age": age}))
    regress = Preparation(regress_out=["age"])
    clean = nested_cv(models, mv, y, outer=5, inner=3, preparation=regress).table()
    print(f"AUC raw {raw['auc'].tolist()}, age regressed out {clean['auc'].tolist()}")
    assert raw["auc"].min() > 0.9
    assert clean["auc"].max() < 0.62
    assert clean["features_percent"].tolist() == [100, 100]


def test_permutation_test_tells_signal_from_none():
    strong = make_multiview(90, {"a": 5}, random_state=0)
    models = {"Ridge logistic": {"C": [1.0]}, "Dummy": None}
    found = nested_cv(models, strong.data, strong.target, outer=3, permutations=19)
    found = found.permutation_test().set_index("model")
    assert found.loc["Ridge logistic", "p"] == pytest.approx(0.05)
    assert found.loc["Dummy", "p"] == 1.0
    assert abs(found.loc["Ridge logistic", "permuted_mean"] - 0.5) < 0.1


def test_rows_at_chance_are_marked_and_the_best_is_bold(result):
    text = result.format("latex", "folds")
    assert "1.00 $\\pm$ 0.00$^{*}$" in text or "0.00 $\\pm$ 0.00$^{*}$" in text
    assert "\\textbf{" in text
    assert "chance level" in result.format("markdown")
    with pytest.raises(InputError, match="form must be"):
        result.format("html")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"y": np.zeros(90)}, "at least two classes"),
        ({"y": np.zeros(9)}, "one value per sample"),
        ({"y": np.r_[np.nan, np.ones(89)]}, "missing values"),
        ({"positive": "x"}, "positive must be one of two"),
        ({"groups": np.arange(9)}, "groups must have one value"),
        ({"metrics": ["auk"]}, "auk"),
        ({"task": "clustering"}, "task must be"),
        ({"outer": 60}, "ask for fewer outer folds"),
        ({"preparation": Preparation(regress_out=["age"])}, "preparation needs the column 'age'"),
        ({"random_state": "x"}, "random_state"),
    ],
)
def test_wrong_arguments_are_explained(sim, change, said):
    arguments = {"y": sim.target, **change}
    with pytest.raises(InputError, match=said):
        nested_cv({"Dummy": None}, sim.data, **arguments)


def test_the_time_left_is_estimated(sim):
    left = []
    nested_cv(
        {"Dummy": None, "Ridge logistic": {"C": [0.01, 1.0]}},
        sim.data,
        sim.target,
        outer=3,
        inner=3,
        progress=lambda s: left.append(s.seconds_left()),
    )
    # One job of each model is run first; from then on there is an estimate.
    assert left[0] is None
    assert all(s >= 0 for s in left[3:])
    assert left[-1] == 0


@pytest.mark.usefixtures("one_repeat")
def test_a_model_without_signal_is_warned_of_once():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(45, 4)), np.arange(45) % 2
    models = {"quick": BaldurClassifier(members=("pooled",)), "Dummy": None}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = nested_cv(models, X, y, outer=3, inner=2)
    (ours,) = [w for w in caught if issubclass(w.category, NoSignalWarning)]
    count = found.no_signal["quick"]
    assert f"quick in {count} of 3 folds" in str(ours.message)
    assert set(found.no_signal) == {"quick"}
    assert [n for n in found.notes["quick"] if "signal" in n] == [
        f"no evidence of signal on held-out data in {count} of 3 folds; do not interpret the "
        "features selected in these folds"
    ]
