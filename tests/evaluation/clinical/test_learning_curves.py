"""Learning curves: parts within parts, laws recovered, and published sample sizes."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression, Ridge

from baldur.datasets import make_multiview
from baldur.evaluation import learning_curve, metric_intervals, nested_cv
from baldur.evaluation.clinical import learning_curves
from baldur.evaluation.clinical.sample_size import (
    minimum_people,
    minimum_people_regression,
    r2_of_auc,
)
from baldur.evaluation.results import Results
from baldur.evaluation.splits import FoldPlan
from baldur.exceptions import InputError
from evaluation.clinical.cohorts import cohort, table


def test_scores_rise_and_losses_fall_where_more_people_help():
    """Simulated predictions that sharpen with training people, and others that do not."""
    rng = np.random.default_rng(0)
    odds = rng.normal(size=400) * 1.5
    events = rng.uniform(size=400) < expit(odds)
    noise = rng.normal(size=400)
    by_people = {
        n: table(events, expit(odds + 25 / np.sqrt(n) * noise), expit(odds + noise))
        for n in (50, 100, 200, 400)
    }
    found = learning_curves(by_people, "auc")
    assert set(found["kind"]) == {"measured"}
    rising, level = (found.loc[found["model"] == m, "estimate"] for m in ("m0", "m1"))
    assert (np.diff(rising) > 0).all()
    assert level.nunique() == 1
    losses = learning_curves(by_people, "brier")
    assert (np.diff(losses.loc[losses["model"] == "m0", "estimate"]) < 0).all()


def test_measured_scores_are_those_of_the_predictions():
    """A point of the curve has the estimate and the interval of the same predictions alone."""
    events, p = cohort(120)
    by_people = {n: table(events, p ** (30 / n)) for n in (30, 60, 90)}
    found = learning_curves(by_people, "brier").set_index("people")
    for n, predictions in by_people.items():
        alone = metric_intervals(predictions, metrics=["brier"]).iloc[0]
        for column in ("estimate", "low", "high"):
            assert found.loc[n, column] == alone[column]


def test_parts_lie_within_parts_and_keep_classes_and_groups():
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 30, 120).astype(str)
    y = rng.integers(0, 2, 120)
    for keep in ({}, {"groups": groups, "scheme": "grouped"}):
        whole = FoldPlan(outer=3, **keep).outer_folds(y)
        half = FoldPlan(outer=3, train_share=0.5, **keep).outer_folds(y)
        more = FoldPlan(outer=3, train_share=0.8, **keep).outer_folds(y)
        for a, b, c in zip(half, more, whole, strict=True):
            assert set(a.train) < set(b.train) < set(c.train)
            np.testing.assert_array_equal(a.test, c.test)
            assert len(a.train) == pytest.approx(len(c.train) / 2, abs=8)
            if keep:
                left_out = set(groups[np.setdiff1d(c.train, a.train)])
                assert not left_out & set(groups[a.train])
            else:
                assert y[a.train].mean() == pytest.approx(y[c.train].mean(), abs=0.02)
    with pytest.raises(InputError, match="train_share"):
        FoldPlan(train_share=1.5)


def test_the_full_size_is_the_comparison_itself(tmp_path):
    sim = make_multiview(120, {"a": 6}, random_state=0)
    models = {"lr": (LogisticRegression(), {"C": [0.1, 1.0]})}
    how = {"outer": 3, "inner": 3, "store": tmp_path}
    full = nested_cv(models, sim.data, sim.target, **how)
    jobs = len(list(tmp_path.iterdir()))
    found = learning_curve(models, sim.data, sim.target, shares=[0.4, 0.7], full=full, **how)
    measured = found[found["kind"] == "measured"]
    assert measured["estimate"].iloc[-1] == full.table()["auc_pooled"].item()
    assert measured["people"].iloc[-1] == 80
    states = []
    again = learning_curve(
        models, sim.data, sim.target, shares=[0.4, 0.7], progress=states.append, **how
    )
    pd.testing.assert_frame_equal(found, again)
    assert all(state.reused == state.done for state in states)
    assert len(list(tmp_path.iterdir())) > jobs
    with pytest.raises(InputError, match="shares"):
        learning_curve(models, sim.data, sim.target, shares=[1.2])
    with pytest.raises(InputError, match="at least 3"):
        learning_curve(models, sim.data, sim.target, shares=[0.5], full=full, **how)


def test_published_sample_sizes():
    """The examples of the authors' own programme."""
    assert minimum_people(24, 0.174, 0.288)["people"].tolist() == [623, 662, 221, 662]
    r2 = r2_of_auc(0.89, 0.174)
    assert minimum_people(24, 0.174, r2)["people"].tolist() == [615, 660, 221, 660]
    assert minimum_people_regression(25, 0.2)["people"].tolist() == [918, 401, 259, 918]
    assert r2_of_auc(0.81, 0.18) == pytest.approx(0.1818, abs=0.002)


def test_wrong_questions_about_sample_size_are_named():
    for call, said in (
        (lambda: minimum_people(10, 0.2, 0.9), "R2"),
        (lambda: r2_of_auc(0.4, 0.2), "auc"),
        (lambda: minimum_people(0, 0.2, 0.3), "parameters"),
        (lambda: minimum_people_regression(5, 1.2), "R2"),
    ):
        with pytest.raises(InputError, match=said):
            call()


def test_a_comparison_says_how_many_people_it_would_need():
    sim = make_multiview(90, {"a": 6}, random_state=0)
    models = {"Dummy": None, "lr": LogisticRegression()}
    found = Results(nested_cv(models, sim.data, sim.target, outer=3)).table("sample_size")
    lr = found[found["model"] == "lr"]
    assert lr["parameters"].unique().tolist() == [6]
    assert set(lr["criterion"]) == {"shrinkage", "optimism", "risk", "all"}
    assert found[found["model"] == "Dummy"]["note"].str.contains("0.5|no features").all()
    wide = make_multiview(40, {"a": 45}, random_state=0)
    result = nested_cv({"lr": LogisticRegression()}, wide.data, wide.target, outer=3)
    found = Results(result).table("sample_size")
    assert found["people"].isna().all()
    assert found["note"].str.contains("cannot be fitted to 45 features of 40 people").all()
    numbers = make_multiview(90, {"a": 6}, n_classes=None, noise=0.5, random_state=0)
    result = nested_cv({"ridge": Ridge()}, numbers.data, numbers.target, task="regression", outer=3)
    found = Results(result).table("sample_size")
    assert set(found["criterion"]) == {"shrinkage", "optimism", "residual", "all"}
