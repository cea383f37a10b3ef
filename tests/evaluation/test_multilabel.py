"""Label matrices: every outcome has an ordinary result, and the mean is that of the outcomes."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import t
from sklearn.base import clone
from sklearn.dummy import DummyClassifier

from baldur import BaldurClassifier, MultiView
from baldur.baselines import BASELINES
from baldur.datasets import make_multiview
from baldur.evaluation import NestedResult, learning_curve, nested_cv
from baldur.evaluation.results import outcome_folders
from baldur.exceptions import InputError, UnfinishedError
from evaluation import spies

NAMES = ["stroke", "fall", "pain"]
pytestmark = pytest.mark.usefixtures("one_repeat", "few_resamples")


class OnlyBalanced(DummyClassifier):
    """A model that cannot be fitted where more than half of the rows are cases."""

    def fit(self, X, y):
        if np.mean(y) > 0.5:
            raise RuntimeError("too many cases")
        return super().fit(X, y)


def make_cohort(n=90):
    sim = make_multiview(
        n, {"clinic": 4, "genes": 8}, informative={"clinic": 2, "genes": 2}, random_state=1
    )
    rng = np.random.default_rng(0)
    score = sim.data.view("clinic").read()[:, :2] @ rng.normal(size=(2, 3))
    Y = (score + rng.normal(size=(n, 3)) > [0.0, 0.6, -0.6]).astype(int)
    return sim.data, pd.DataFrame(Y, columns=NAMES, index=sim.data.sample_ids)


def average(result):
    """The rows of the mean over outcomes."""
    table = result.table()
    return table[table["outcome"] == "*"].drop(columns="outcome").reset_index(drop=True)


def models():
    return {
        "BALDUR": BaldurClassifier(members=("pooled",)),
        "ridge": (BASELINES["Ridge logistic"].make(), {"C": [0.1, 1.0]}),
        "prior": BASELINES["Dummy"].make(),
        "fails": OnlyBalanced(),
    }


@pytest.fixture(scope="module")
def cohort():
    return make_cohort()


@pytest.fixture(scope="module")
def result(cohort, one_repeat, few_resamples):
    return nested_cv(models(), *cohort, outer=3, inner=2)


@pytest.fixture(scope="module")
def split(cohort):
    return np.where(np.arange(len(cohort[0])) % 3 == 0, "test", "train")


# -- the results of single outcomes ----------------------------------------------------------


def test_long_tables_have_the_rows_of_every_outcome(result):
    for name in ("predictions", "selection", "settings"):
        table = getattr(result, name)
        assert table.columns[0] == "outcome"
        for outcome in NAMES:
            part = table[table["outcome"] == outcome].drop(columns="outcome")
            pd.testing.assert_frame_equal(
                part.reset_index(drop=True), getattr(result[outcome], name), check_dtype=False
            )
    assert set(result.weights()["outcome"]) == set(NAMES)
    assert list(result.stability()) == NAMES


def test_every_outcome_has_an_ordinary_result(result):
    assert isinstance(result, NestedResult)
    assert list(result.results) == NAMES
    for name in NAMES:
        one = result[name]
        assert one.classes == ["no", "yes"]
        assert set(one.predictions["label"]) == {"no", "yes"}
        assert len(one.evaluation().calibration)
        assert len(one.stability().index)
        for a, b in zip(one.folds, result.folds, strict=True):
            assert_array_equal(a.test, b.test)
    with pytest.raises(InputError, match="no outcome 'death'"):
        result["death"]


def test_a_model_of_one_outcome_is_fitted_as_if_it_were_alone(cohort, split):
    """Predictions, weights and intervals are those of a comparison with this outcome only."""
    X, Y = cohort
    given = {"ridge": BASELINES["Ridge logistic"].make(), "prior": BASELINES["Dummy"].make()}
    several = nested_cv(given, X, Y, split=split)
    for name in NAMES:
        alone = nested_cv(given, X, Y[name], split=split)
        renamed = alone.predictions.rename(columns={"p_0": "p_no", "p_1": "p_yes"})
        words = {"label": {"0": "no", "1": "yes"}, "predicted": {"0": "no", "1": "yes"}}
        pd.testing.assert_frame_equal(several[name].predictions, renamed.replace(words))
        pd.testing.assert_frame_equal(several[name].table(), alone.table())
        weights = several[name].selection["mean_weight"]
        assert_allclose(weights, alone.selection["mean_weight"])


def test_a_joint_model_is_fitted_once_to_all_outcomes(cohort, split):
    X, Y = cohort
    model = BaldurClassifier(members=("pooled",), random_state=0)
    several = nested_cv({"BALDUR": model}, X, Y, split=split, inner=2)
    train, test = np.flatnonzero(split == "train"), np.flatnonzero(split == "test")
    fit = several[NAMES[0]].fits["BALDUR"][0]
    proba = np.column_stack([several[n].predictions["p_yes"] for n in NAMES])
    (seed,) = spies.seeds_seen("BALDUR", X, split=split, inner=2)
    again = clone(model).set_params(random_state=seed).fit(X[train], Y.to_numpy()[train])
    assert_allclose(proba, again.predict_proba(X[test]))
    for j, name in enumerate(NAMES):
        chosen = several[name].fits["BALDUR"][0].selected
        for view, mask in again.selected_features_.items():
            assert_array_equal(chosen[view].index, np.flatnonzero(mask))
            assert_allclose(chosen[view].raw[:, 0], again.coef_[view][j, mask])
        shares = several[name].view_shares()["variance_share"]
        assert shares.sum() == pytest.approx(1.0)
    assert len(several.fits["BALDUR"]) == 1
    assert fit.setting == {}


def test_the_order_of_outcomes_changes_nothing(cohort, split):
    X, Y = cohort
    given = {"ridge": BASELINES["Ridge logistic"].make()}
    one = nested_cv(given, X, Y, split=split)
    other = nested_cv(given, X, Y[NAMES[::-1]], split=split)
    assert other.outcomes == NAMES[::-1]
    for name in NAMES:
        pd.testing.assert_frame_equal(one[name].predictions, other[name].predictions)
    pd.testing.assert_frame_equal(average(one), average(other))


# -- the mean over outcomes -------------------------------------------------------------------


def test_the_table_has_the_mean_first(result):
    table = result.table()
    assert list(dict.fromkeys(table["outcome"])) == ["*", *NAMES]
    for metric in ("auc", "brier", "log_loss"):
        wide = table.pivot(index="model", columns="outcome", values=f"{metric}_pooled")
        known = wide.loc[["BALDUR", "ridge", "prior"]]
        assert_allclose(known["*"], known[NAMES].mean(axis=1))
    mean = table[table["outcome"] == "*"].set_index("model")
    assert mean.loc["ridge", "note"].startswith("fitted to one outcome at a time")
    assert mean.loc["BALDUR", "note"] == ""
    assert (mean["auc_low"].dropna() < mean["auc_pooled"].dropna()).all()


def test_the_interval_of_the_mean_is_that_of_people_with_all_their_outcomes(result):
    """Of every resample, the mean over outcomes of the metric on the people drawn."""
    each = [result[n].resampled for n in NAMES]
    for other in each[1:]:
        assert_array_equal(other.models["ridge"].people, each[0].models["ridge"].people)
    draws = [r.metric("ridge", "brier") for r in each]
    mean = replace(
        draws[0],
        estimate=np.mean([d.estimate for d in draws]),
        resampled=np.mean([d.resampled for d in draws], axis=0),
        scale="logit",
        count=None,
    )
    row = average(result).set_index("model").loc["ridge"]
    low, high = mean.interval()
    assert_allclose([row["brier_low"], row["brier_high"]], [low, high])
    assert mean.error() < np.mean([d.error() for d in draws])
    # People with all their outcomes: errors of one person in two outcomes do not average out.
    assert mean.error() > 0.5 * np.mean([d.error() for d in draws]) / np.sqrt(3)


def test_a_perfect_outcome_widens_the_interval_of_the_mean(result):
    """Recall of exactly 0 or 1 has no spread over resamples; it is not taken as certain."""
    row = average(result).set_index("model").loc["prior"]
    assert row["recall_low"] < row["recall_pooled"] < row["recall_high"]


def test_the_mean_of_perfect_outcomes_has_the_mean_of_their_intervals():
    rng = np.random.default_rng(0)
    Y = pd.DataFrame(rng.integers(0, 2, (45, 2)), columns=NAMES[:2])
    X = MultiView({"a": 3 * Y.to_numpy() + 0.05 * rng.normal(size=Y.shape)})
    table = nested_cv({"ridge": BASELINES["Ridge logistic"].make()}, X, Y, outer=3, inner=2).table()
    assert table["auc_pooled"].tolist() == [1.0, 1.0, 1.0]
    assert_allclose(table["auc_low"][0], table["auc_low"][1:].mean())
    assert table["auc_high"][0] == 1.0


def test_differences_and_tests_are_those_of_the_mean(result):
    differences = result.evaluation(metrics=["auc"]).differences.set_index(["model_a", "model_b"])
    mean = average(result).set_index("model")["auc_pooled"]
    assert differences.loc[("BALDUR", "ridge"), "difference"] == pytest.approx(
        mean["BALDUR"] - mean["ridge"]
    )
    tests = result.compare().set_index(["model_a", "model_b"])
    folds = average(result).set_index("model")["auc"]
    assert tests.loc[("BALDUR", "ridge"), "difference"] == pytest.approx(
        folds["BALDUR"] - folds["ridge"]
    )


def test_pairs_are_tested_by_the_mean_over_outcomes_on_every_fold(result):
    """The test of the mean equals that of fold values which are averaged by hand."""
    each = {name: one.scores().set_index("model") for name, one in result.results.items()}
    models = result.finished()
    means = {
        model: np.mean([scores.loc[model, "auc"] for scores in each.values()], axis=0)
        for model in models
    }
    ratio = np.mean([len(fold.test) / len(fold.train) for fold in result.folds])
    for _, row in result.compare(["auc"]).iterrows():
        gap = means[row["model_a"]] - means[row["model_b"]]
        assert row["difference"] == pytest.approx(gap.mean())
        t_value = gap.mean() / np.sqrt((1 / len(gap) + ratio) * gap.var(ddof=1))
        assert row["p"] == pytest.approx(2 * t.sf(abs(t_value), len(gap) - 1))


def test_added_value_is_that_of_every_outcome(cohort, split):
    X, Y = cohort
    given = {"ridge": BASELINES["Ridge logistic"].make()}
    several = nested_cv(given, X, Y, split=split, inner=2, baseline_views=["clinic"])
    found = several.added_value(thresholds=[0.3])
    assert list(found) == NAMES
    for name, added in found.items():
        alone = nested_cv(given, X, Y[name], split=split, inner=2, baseline_views=["clinic"])
        pd.testing.assert_frame_equal(added.table, alone.added_value(thresholds=[0.3]).table)
        assert added.result is several[name]
    with pytest.raises(InputError, match="baseline"):
        several.added_value(["nothing"])


def test_a_model_that_fails_for_one_outcome_has_no_mean(result):
    assert "pain" in result.failures["fails"]
    assert "too many cases" in result.failures["fails"]
    assert "fails" not in result["fall"].failures
    assert "fails" in result.format()
    mean = average(result).set_index("model").loc["fails"]
    assert np.isnan(mean["auc_pooled"])


def test_an_outcome_that_no_model_predicts_leaves_the_others(cohort):
    X, Y = cohort
    commonest_first = Y[sorted(Y, key=lambda name: -Y[name].mean())]
    result = nested_cv({"fails": OnlyBalanced()}, X, commonest_first, outer=2, inner=2)
    predicted = [name for name, one in result.results.items() if one.finished()]
    assert len(predicted) in (1, 2)
    assert result.outcomes[0] not in predicted
    assert result.evaluation().intervals["outcome"].unique().tolist() == predicted


@pytest.mark.parametrize("form", ["text", "markdown", "latex"])
def test_the_tables_are_printed_one_below_the_other(result, form):
    text = result.format(form)
    heads = {"text": "{}", "markdown": "### {}", "latex": r"\paragraph{{{}}}"}
    names = [heads[form].format(name) for name in ("Mean over 3 outcomes", *NAMES)]
    assert [line for line in text.splitlines() if line in names] == names
    assert result.format(form, "folds") != text


def test_permuted_labels_of_a_sample_stay_together(cohort):
    X, Y = cohort
    several = nested_cv(
        {"ridge": BASELINES["Ridge logistic"].make()}, X, Y, outer=3, permutations=2
    )
    found = several.permutation_test()
    assert found["permutations"].tolist() == [2]
    each = [several[name].permutation_test() for name in NAMES]
    for column in ("score", "permuted_mean"):
        assert_allclose(found[column], np.mean([one[column] for one in each], axis=0))


# -- jobs -------------------------------------------------------------------------------------


def test_finished_jobs_are_found_again_and_shards_make_the_whole(result, cohort, tmp_path):
    given = {name: made for name, made in models().items() if name != "fails"}
    how = {"outer": 3, "inner": 2, "store": tmp_path}
    with pytest.raises(UnfinishedError):
        nested_cv(given, *cohort, shard="1/2", **how)
    seen = []
    found = nested_cv(
        given, *cohort, shard="2/2", progress=lambda p: seen.append((p.done, p.total)), **how
    )
    for name in NAMES:
        want = result[name].predictions
        want = want[want["model"] != "fails"].reset_index(drop=True)
        pd.testing.assert_frame_equal(found[name].predictions, want)
    again = nested_cv(given, *cohort, progress=lambda p: seen.append((p.reused, p.total)), **how)
    assert seen[-1][0] == seen[-1][1]
    pd.testing.assert_frame_equal(again.table(), found.table())


# -- what is refused --------------------------------------------------------------------------


def read(labels, names, **how):
    """Return the outcomes of two kinds of people, who are repeated, as a comparison has them."""
    rows = np.arange(12) % 2
    Y = labels.iloc[rows] if hasattr(labels, "iloc") else labels[rows]
    result = nested_cv(["Dummy"], np.zeros((12, 1)), Y, outer=2, inner=2, **how)
    assert result.outcomes == names
    return [[int(result[name].truth[row]) for name in names] for row in (0, 1)]


def test_yes_and_no_are_read_as_they_are_written():
    frame = pd.DataFrame({"a": ["Yes", "no"], "b": [True, False], "c": [0.0, 1.0], "d": ["N", "Y"]})
    assert read(frame, list("abcd")) == [[1, 1, 0, 0], [0, 0, 1, 1]]
    words = pd.DataFrame({"a": ["case", "control"], "b": ["control", "case"]})
    assert read(words, list("ab"), positive="case") == [[1, 0], [0, 1]]
    read(np.eye(2), ["label 1", "label 2"])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda Y: Y.assign(fall=[np.nan, *Y["fall"][1:]]), "1 of 'fall'"),
        (lambda Y: Y.assign(fall=1), "must have two values"),
        (lambda Y: Y.assign(fall=np.arange(len(Y)) % 3), "has 3"),
        (lambda Y: Y.assign(fall=np.where(Y["fall"], "case", "control")), "means yes"),
        (lambda Y: Y.set_axis(["a", "a", "b"], axis=1), "different names"),
        (lambda Y: Y.set_axis(["a", "*", "b"], axis=1), "different names"),
    ],
)
def test_labels_that_are_not_yes_and_no_are_refused(cohort, change, says):
    X, Y = cohort
    with pytest.raises(InputError, match=says):
        nested_cv(["Dummy"], X, change(Y))


def test_several_numbers_and_learning_curves_are_refused(cohort):
    X, Y = cohort
    with pytest.raises(InputError, match="one at a time"):
        nested_cv(["Dummy"], X, Y, task="regression")
    with pytest.raises(InputError, match="one outcome"):
        learning_curve(["Dummy"], X, Y)
    with pytest.raises(InputError, match="positive is 'x'"):
        nested_cv(["Dummy"], X, Y, positive="x")


def test_outcomes_have_folders_of_their_own():
    folders = outcome_folders(["a_3", "a", "a!", "A"])
    assert len({folder.casefold() for folder in folders.values()}) == 4
