"""make_biofind_like: shape, genotypes, truth, and its cost at full size."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

from baldur.datasets import make_biofind_like
from baldur.datasets.biofind import MISSING, draw_genotypes
from baldur.exceptions import InputError


@pytest.fixture(scope="module")
def cohort():
    return make_biofind_like(scale=0.02, random_state=0)


def test_shape_is_that_of_the_cohort(cohort):
    assert len(cohort.data) == 215
    assert np.bincount(cohort.target).tolist() == [96, 119]
    assert cohort.data.n_features == {
        "neuropsychological": 18,
        "sleep": 19,
        "socio-economic": 2,
        "demographical": 8,
        "genetic": 16_834,
    }
    assert cohort.target_names.tolist() == ["control", "PD"]


def test_only_seven_sleep_items_carry_signal(cohort):
    assert cohort.truth.views == ["sleep"]
    names = np.asarray(cohort.data.feature_names["sleep"])[cohort.truth.features["sleep"]]
    assert names.tolist() == [
        "DRMAGRAC", "DRMNOCTB", "DRMVERBL", "DRMFIGH", "RLS", "SLPINJUR", "DEPRS",
    ]  # fmt: skip
    items = cohort.data.view("sleep").read(slice(None))
    literal = cohort.truth.intercept + items @ cohort.truth.weights("sleep")
    np.testing.assert_allclose(cohort.truth.score, literal)


def test_effects_are_log_odds_ratios():
    counts = np.zeros((2, 7))
    totals = np.zeros(2)
    effects = []
    for seed in range(40):
        draw = make_biofind_like(scale=2e-6, random_state=seed)
        items = draw.data.view("sleep").read(slice(0, 7))
        for c in (0, 1):
            counts[c] += items[draw.target == c].sum(axis=0)
            totals[c] += np.sum(draw.target == c)
        effects.append(draw.truth.effects["sleep"])
    odds = counts / (totals[:, None] - counts)
    # Effects differ between seeds; the pooled log odds ratio is close to their mean.
    np.testing.assert_allclose(np.log(odds[1] / odds[0]), np.mean(effects, axis=0), atol=0.25)


def test_same_seed_same_bytes(cohort):
    again = make_biofind_like(scale=0.02, random_state=0)
    other = make_biofind_like(scale=0.02, random_state=1)
    for view in cohort.data.view_names:
        first = cohort.data.view(view).raw(slice(None))
        assert first.tobytes() == again.data.view(view).raw(slice(None)).tobytes()
        assert first.tobytes() != other.data.view(view).raw(slice(None)).tobytes()
    np.testing.assert_array_equal(cohort.target, again.target)


def test_genotypes_are_int8_allele_counts(cohort):
    G = cohort.data.view("genetic").raw(slice(None))
    assert G.dtype == np.int8
    assert set(np.unique(G)) == {MISSING, 0, 1, 2}
    assert np.mean(G == MISSING) == pytest.approx(0.002, rel=0.1)


def test_frequencies_hardy_weinberg_and_linkage():
    G, markers = draw_genotypes(1500, 4000, 0.0, np.random.default_rng(0))
    p = markers["maf"].to_numpy()
    assert p.min() >= 0.02
    assert p.max() <= 0.5
    np.testing.assert_allclose(G.mean(axis=0) / 2, p, atol=0.06)
    # Genotypes of one marker are two independent draws: variance 2 p (1 - p).
    ratio = G.var(axis=0) / (2 * p * (1 - p))
    assert ratio.mean() == pytest.approx(1.0, abs=0.02)
    Z = (G - G.mean(axis=0)) / G.std(axis=0)
    r = np.mean(Z[:, 1:] * Z[:, :-1], axis=0)
    same = np.diff(markers["block"]) == 0
    assert r[same].mean() > 0.35
    assert abs(r[~same].mean()) < 0.006
    assert np.diff(markers["block"]).max() == 1


def test_without_linkage_markers_are_independent(cohort):
    G, markers = draw_genotypes(1500, 4000, 0.0, np.random.default_rng(0), linkage=False)
    assert (markers["block"] == np.arange(4000)).all()
    Z = (G - G.mean(axis=0)) / G.std(axis=0)
    r = np.mean(Z[:, 1:] * Z[:, :-1], axis=0)
    assert abs(r.mean()) < 0.002
    assert r.std() == pytest.approx(1 / np.sqrt(1500), rel=0.1)
    other = make_biofind_like(scale=0.02, linkage=False, random_state=0)
    assert (other.target == cohort.target).all()
    for view in ("sleep", "demographical"):
        assert (other.data.view(view).read() == cohort.data.view(view).read()).all()
    assert (other.data.view("genetic").raw() != cohort.data.view("genetic").raw()).any()


def test_markers_are_ordered_along_the_genome(cohort):
    markers = cohort.data.feature_info["genetic"]
    assert len(markers) == cohort.data.n_features["genetic"]
    assert markers["chromosome"].is_monotonic_increasing
    assert set(markers["chromosome"]) == set(range(1, 23))
    assert all(group.is_monotonic_increasing for _, group in markers.groupby("chromosome").position)


@pytest.mark.parametrize("scale", [0, -1, 1.5, "all", True, 1e-9])
def test_bad_scale(scale):
    with pytest.raises(InputError, match="scale"):
        make_biofind_like(scale=scale)


@pytest.mark.slow
def test_full_size_is_quick_and_small():
    """Under 60 s and 1.5 GB; 172 rows of it add at most the rows' own bytes."""
    script = """
        import resource, time
        import numpy as np

        def peak():
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

        from baldur.datasets import make_biofind_like
        start = time.perf_counter()
        cohort = make_biofind_like(scale=1.0, random_state=0)
        seconds, before = time.perf_counter() - start, peak()
        assert cohort.data.shape == (215, 18 + 19 + 2 + 8 + 841_685)
        rows = np.random.default_rng(0).permutation(215)[:172]
        part = cohort.data[rows]
        assert part.shape[0] == 172
        print(seconds, before, peak() - before)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True
    )
    seconds, memory, added = map(float, done.stdout.split())
    assert seconds < 60
    assert memory < 1.5e9
    assert added <= 172 * 841_685
