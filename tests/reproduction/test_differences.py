"""Simultaneous intervals of the differences between one model and several others."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from baldur.evaluation.clinical.bootstrap_intervals import Bootstrap
from baldur.evaluation.clinical.held_out import Resampled
from baldur.reproduction.evidence import simultaneous_differences

NAMES = list("bcdefgh")


def means(values, resamples=400):
    """Return the mean of each row, with resamples of its columns."""
    boot = Bootstrap(np.arange(values.shape[1]), resamples)
    return [boot.run(lambda w, x=x: w @ x / w.sum(axis=1)) for x in values]


def widths(model, others):
    gaps = simultaneous_differences(model, others)
    return (gaps["high"] - gaps["low"]).to_dict()


def test_more_comparisons_are_never_narrower_and_one_alone_is_the_ordinary_one():
    rng = np.random.default_rng(0)
    model, *draws = means(rng.normal(size=(8, 60)))
    others = dict(zip(NAMES, draws, strict=True))
    for name, other in others.items():
        (alone,) = simultaneous_differences(model, {name: other}).itertuples()
        low, high = model.minus(other).interval()
        assert alone.low <= low < high <= alone.high
        assert alone.high - alone.low == pytest.approx(float(high - low), rel=0.15)
    before = dict.fromkeys(NAMES, 0.0)
    for count in range(1, 8):
        now = widths(model, {name: others[name] for name in NAMES[:count]})
        assert all(now[name] >= before[name] for name in now)
        before.update(now)


def test_the_order_of_models_and_their_sign_do_not_matter():
    rng = np.random.default_rng(1)
    model, *draws = means(rng.normal(size=(8, 60)))
    others = dict(zip(NAMES, draws, strict=True))
    found = simultaneous_differences(model, others)
    backwards = simultaneous_differences(model, dict(reversed(others.items())))
    pd.testing.assert_frame_equal(found, backwards[::-1], check_exact=True)
    minus = simultaneous_differences(
        model.map(np.negative), {k: d.map(np.negative) for k, d in others.items()}
    )
    np.testing.assert_allclose(minus["low"], -found["high"])


def test_models_that_agree_and_those_without_a_figure():
    rng = np.random.default_rng(2)
    model, other = means(rng.normal(size=(2, 60)))
    unknown = other.map(lambda x: x * np.nan)
    same, known, nothing = simultaneous_differences(
        model, {"same": model, "other": other, "unknown": unknown}
    ).itertuples()
    assert (same.estimate, same.low, same.high) == (0.0, 0.0, 0.0)
    assert known == next(simultaneous_differences(model, {"other": other}).itertuples())
    assert not np.isfinite(nothing[1:]).any()
    assert not len(simultaneous_differences(model, {}))


def test_a_difference_that_no_resample_changes_has_no_interval():
    """A recall of 1 and one of 0 differ by 1 in every resample, which says nothing of its error."""
    rng = np.random.default_rng(3)
    ones, zeros, other = means(np.array([np.ones(60), np.zeros(60), rng.normal(size=60)]))
    apart, same, known = simultaneous_differences(
        ones, {"apart": zeros, "same": ones, "other": other}
    ).itertuples()
    assert apart.estimate == 1.0
    assert np.isnan([apart.low, apart.high]).all()
    assert (same.estimate, same.low, same.high) == (0.0, 0.0, 0.0)
    assert known == next(simultaneous_differences(ones, {"other": other}).itertuples())


def test_all_intervals_hold_at_once_in_about_95_of_100_samples():
    """Eight equal models; ordinary intervals miss in about a quarter of the samples."""
    rng = np.random.default_rng(3)
    missed = ordinary = 0
    samples = 300
    for _ in range(samples):
        model, *draws = means(rng.normal(size=(8, 80)), resamples=300)
        others = dict(zip(NAMES, draws, strict=True))
        found = simultaneous_differences(model, others)
        missed += bool(((found["low"] > 0) | (found["high"] < 0)).any())
        ends = [model.minus(other).interval() for other in draws]
        ordinary += any(low > 0 or high < 0 for low, high in ends)
    assert missed / samples <= 0.08
    assert ordinary / samples >= 0.15


@pytest.mark.slow
def test_equal_models_are_rarely_said_to_differ():
    """Studies of the size of BioFIND with twelve models of the same AUC."""
    rng = np.random.default_rng(7)
    truth = np.repeat([1, 0], [119, 96])
    missed = ordinary = 0
    studies = 400
    for _ in range(studies):
        shared = rng.normal(size=len(truth))
        tables = []
        for name in range(12):
            score = truth + 0.8 * shared + 0.3 * rng.normal(size=len(truth))
            p = expit(score - score.mean())
            labels = {"label": np.where(truth, "yes", "no"), "p_no": 1 - p, "p_yes": p}
            tables.append(pd.DataFrame({"model": str(name), "sample": range(len(p)), **labels}))
        sample = Resampled(pd.concat(tables), ["no", "yes"], resamples=400)
        model, *draws = (sample.metric(str(name), "auc") for name in range(12))
        found = simultaneous_differences(model, dict(enumerate(draws)))
        missed += bool(((found["low"] > 0) | (found["high"] < 0)).any())
        ends = [model.minus(other).interval() for other in draws]
        ordinary += any(low > 0 or high < 0 for low, high in ends)
    print(f"simultaneous {missed / studies:.4f}, ordinary {ordinary / studies:.4f}")
    assert missed / studies <= 0.08
    assert ordinary / studies >= 0.2
