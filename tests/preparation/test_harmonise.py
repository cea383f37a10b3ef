"""Sites: equal to a literal twin, nothing learned from test rows, no longer to be seen."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from baldur import MultiView
from baldur.exceptions import InputError
from baldur.preparation import SiteHarmoniser
from shared_cohorts import load_shared


def told(X, sites, keep=None):
    """Rows with their sites and a covariate in the table about the samples."""
    table = {"site": sites, "age": keep}
    return X.with_samples(
        pd.DataFrame({k: v for k, v in table.items() if v is not None}, index=range(len(X)))
    )


class Harmoniser(SiteHarmoniser):
    """Return the step, with sites and a covariate to preserve given as arrays."""

    def fit(self, X, y=None, *, sites=None, keep=None):
        self.set_params(keep=[] if keep is None else ["age"])
        return super().fit(told(X, sites, keep) if isinstance(X, MultiView) else X)

    def transform(self, X, *, sites, keep=None):
        return super().transform(told(X, sites, keep))

    def fit_transform(self, X, y=None, *, sites, keep=None):
        return self.fit(X, sites=sites, keep=keep).transform(X, sites=sites, keep=keep)


def cohort(seed=0, n=90, d=14, holes=0.0):
    """Cells with site effects, their sites, and a covariate that differs between sites."""
    rng = np.random.default_rng(seed)
    site = rng.permutation(np.arange(n) % 3)
    age = rng.normal(60, 8, n) + 4 * site
    x = rng.normal(size=(n, d)) * rng.uniform(0.5, 3, d) + rng.normal(size=d) * 20
    x += np.outer(age - 60, rng.normal(size=d)) * 0.1
    x = x * np.exp(rng.normal(0, 0.3, (3, d)))[site] + rng.normal(1, 1, (3, d))[site]
    x[rng.random(x.shape) < holes] = np.nan
    return x, np.array(["lima", "oslo", "rome"])[site], age


def literal(x, site, age, train):
    """ComBat one feature and one site at a time, over the cells that are known."""
    sites = sorted(set(site[train]))
    n, d = x.shape
    c = (age - age[train].mean()) / age[train].std()
    z, m, s = np.full((n, d), np.nan), np.zeros((n, d)), np.zeros(d)
    for j in range(d):
        rows = [i for i in range(n) if train[i] and not np.isnan(x[i, j])]
        A = np.array([[float(site[i] == k) for k in sites] + [c[i]] for i in rows])
        b = np.linalg.lstsq(A, x[rows, j], rcond=None)[0]
        share = np.array([np.mean(site[rows] == k) for k in sites])
        m[:, j] = share @ b[:-1] + c * b[-1]
        s[j] = np.sqrt(np.mean((x[rows, j] - A @ b) ** 2))
        z[:, j] = (x[:, j] - m[:, j]) / s[j]
    out = x.copy()
    for k in sites:
        here = train & (site == k)
        g = np.array([np.nanmean(z[here, j]) for j in range(d)])
        v = np.array([np.nanvar(z[here, j], ddof=1) for j in range(d)])
        count = np.array([np.sum(~np.isnan(z[here, j])) for j in range(d)])
        a = (2 * v.var(ddof=1) + v.mean() ** 2) / v.var(ddof=1)
        b = (v.mean() * v.var(ddof=1) + v.mean() ** 3) / v.var(ddof=1)
        for j in range(d):
            cells = z[here, j][~np.isnan(z[here, j])]
            gg, vv = g[j], v[j]
            for _ in range(60):
                t = count[j] * g.var(ddof=1)
                gg = (t * g[j] + vv * g.mean()) / (t + vv)
                vv = (b + 0.5 * np.sum((cells - gg) ** 2)) / (count[j] / 2 + a - 1)
            mine = site == k
            out[mine, j] = s[j] / np.sqrt(vv) * (z[mine, j] - gg) + m[mine, j]
    return out


@pytest.mark.parametrize("holes", [0.0, 0.15])
def test_equals_its_literal_twin(holes):
    x, site, age = cohort(holes=holes)
    train = np.arange(len(x)) % 4 > 0
    mv = MultiView({"x": x})
    step = Harmoniser(clip=None).fit(mv[train], sites=site[train], keep=age[train])
    found = step.transform(mv, sites=site, keep=age).view("x").read()
    np.testing.assert_allclose(found, literal(x, site, age, train), atol=1e-8)


def test_agrees_with_another_package():
    neuro = pytest.importorskip("neuroCombat")
    x, site, age = cohort(seed=3, d=40)
    table = pd.DataFrame({"site": site, "age": age})
    theirs = neuro.neuroCombat(x.T, table, "site", continuous_cols=["age"])["data"].T
    ours = Harmoniser(clip=None).fit_transform(MultiView({"x": x}), sites=site, keep=age)
    # They stop at a change of 1e-4.
    np.testing.assert_allclose(ours.view("x").read(), theirs, atol=1e-4)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.01, 100), st.floats(-1e3, 1e3), st.booleans())
def test_laws(seed, factor, shift, plain):
    """Units do not matter, nor the order of rows, the names of sites or the width of blocks."""
    x, site, age = cohort(seed, holes=0.05)
    step = Harmoniser(estimates="plain" if plain else "shrunk")
    one = step.fit_transform(MultiView({"x": x}), sites=site, keep=age).view("x").read()
    other = step.fit_transform(MultiView({"x": x * factor + shift}), sites=site, keep=age * 3 - 1)
    np.testing.assert_allclose(
        other.view("x").read(), one * factor + shift, atol=1e-6 * (factor + abs(shift))
    )
    order = np.random.default_rng(seed).permutation(len(x))
    renamed = np.char.add("z", site)[::-1][order]
    step.set_params(max_bytes=1)
    back = MultiView({"x": x[::-1]})[order]
    other = step.fit_transform(back, sites=renamed, keep=age[::-1][order])
    np.testing.assert_allclose(other.view("x").read(), one[::-1][order], atol=1e-8)


def test_test_rows_teach_nothing():
    x, site, age = cohort()
    spoiled = x.copy()
    spoiled[60:] = spoiled[60:] * -40 + 7
    kept = [
        Harmoniser().fit(MultiView({"x": cells})[:60], sites=site[:60], keep=age[:60])
        for cells in (x, spoiled)
    ]
    for part in ("shift_", "factor_"):
        np.testing.assert_array_equal(getattr(kept[0], part)["x"], getattr(kept[1], part)["x"])
    # Nor do the other test rows change what becomes of one.
    mv = MultiView({"x": x})
    alone = kept[0].transform(mv[70:71], sites=site[70:71], keep=age[70:71]).view("x").read()
    whole = kept[0].transform(mv, sites=site, keep=age).view("x").read()
    np.testing.assert_array_equal(alone[0], whole[70])


def test_an_unseen_site_stays_as_it_is_or_is_aligned_by_its_own_predictors():
    x, site, age = cohort(n=120, d=30)
    mv, train = MultiView({"x": x}), site != "rome"
    given = {"sites": site[train], "keep": age[train]}
    pooled = Harmoniser().fit(mv[train], **given)
    found = pooled.transform(mv[~train], sites=site[~train], keep=age[~train]).view("x").read()
    np.testing.assert_array_equal(found, x[~train])
    own = Harmoniser(new_sites="own").fit(mv[train], **given)
    both = own.transform(mv, sites=site, keep=age).view("x").read()
    np.testing.assert_array_equal(
        both[train], pooled.transform(mv, sites=site, keep=age).view("x").read()[train]
    )
    gaps = [
        np.abs(cells[~train].mean(axis=0) - cells[train].mean(axis=0)).mean() for cells in (x, both)
    ]
    assert gaps[1] < gaps[0] / 2
    # Too few rows, or no site at all: as they are.
    few = np.flatnonzero(~train)[:4]
    np.testing.assert_array_equal(
        own.transform(mv[few], sites=site[few], keep=age[few]).view("x").read(), x[few]
    )
    np.testing.assert_array_equal(
        own.transform(mv, sites=[None] * len(x), keep=age).view("x").read(), x
    )


def test_what_has_no_location_and_scale_is_left_alone():
    x, site, _ = cohort(n=60)
    rng = np.random.default_rng(1)
    x[:, 3] = rng.integers(0, 2, 60)
    x[:, 4] = np.where(rng.random(60) < 0.4, -99.0, x[:, 4])
    genotypes = rng.integers(0, 3, (60, 5)).astype(np.int8)
    x[7] = np.nan
    mv = MultiView({"x": x, "g": genotypes}, feature_info={"g": pd.DataFrame({"chrom": range(5)})})
    step = Harmoniser().fit(mv[::-1], sites=site[::-1])
    found = step.transform(mv, sites=site)
    assert found.view("g").source is mv.view("g").source
    assert "g" in found.feature_info
    cells = found.view("x").read()
    np.testing.assert_array_equal(cells[:, 3], x[:, 3])
    np.testing.assert_array_equal(cells[:, 4] == -99, x[:, 4] == -99)
    assert not found.view("x").present[7]
    assert step.report_.loc[0, ["features", "harmonised"]].tolist() == [14, 13]
    with pytest.raises(InputError, match="'g': holds genotypes"):
        Harmoniser(views=["x", "g"]).fit(mv, sites=site)
    # One site, as when the other of two is left out: nothing to align.
    same = Harmoniser().fit_transform(mv, sites=["oslo"] * 60)
    np.testing.assert_array_equal(same.view("x").read(), x)


def test_a_wide_view_is_read_through_and_not_copied(constants):
    x, site, _ = cohort()
    step = Harmoniser().fit(MultiView({"x": x}), sites=site)
    kept = step.transform(MultiView({"x": x})[5:50], sites=site[5:50])
    constants(_KEEP_BYTES=0)
    lazy = step.transform(MultiView({"x": x})[5:50], sites=site[5:50])
    assert not lazy.view("x").source.in_memory
    for rows in (slice(None), [7, 3, 3]):
        np.testing.assert_array_equal(lazy[rows].view("x").read(), kept[rows].view("x").read())
        np.testing.assert_array_equal(
            lazy[rows].view("x").read([4, 1]), kept[rows].view("x").read([4, 1])
        )


def test_extreme_people_do_not_move_their_site():
    x, site, _ = cohort(n=120, d=30)
    spoiled = x.copy()
    spoiled[np.flatnonzero(site == "oslo")[:2]] += 1e4
    rest = np.setdiff1d(np.arange(120), np.flatnonzero(site == "oslo")[:2])
    moved = []
    for clip in (3.0, None):
        step = Harmoniser(clip=clip)
        a, b = (
            step.fit_transform(MultiView({"x": cells}), sites=site).view("x").read()
            for cells in (x, spoiled)
        )
        moved.append(np.abs((a - b)[rest]).mean() / x.std())
    assert moved[0] < 0.1 < 1 < moved[1]


def test_clear_errors():
    x, site, age = cohort(n=30)
    mv = MultiView({"x": x})
    fitted = Harmoniser().fit(mv, sites=site, keep=age)
    for call, words in (
        (lambda: Harmoniser().fit(mv), "SiteHarmoniser needs the column 'site'"),
        (lambda: Harmoniser().fit(x, sites=site), "expects a MultiView"),
        (lambda: Harmoniser().fit(mv, sites=np.arange(30)), "at least 5 training rows"),
        (lambda: Harmoniser(views=["y"]).fit(mv, sites=site), "no view 'y'"),
        (lambda: Harmoniser(new_sites="drop").fit(mv, sites=site), "new_sites must be"),
        (lambda: Harmoniser(estimates="raw").fit(mv, sites=site), "estimates must be"),
        (lambda: Harmoniser(clip=0).fit(mv, sites=site), "clip must be"),
        (lambda: Harmoniser(min_rows=1).fit(mv, sites=site), "min_rows must be"),
        (lambda: fitted.transform(mv, sites=site), "needs the column 'age'"),
        (lambda: fitted.transform(MultiView({"x": x[:, 1:]}), sites=site, keep=age), "14 features"),
        (lambda: Harmoniser().fit(MultiView({"x": x / 0}), sites=site), "infinities"),
    ):
        with np.errstate(divide="ignore"), pytest.raises(InputError, match=words):
            call()
    with pytest.warns(UserWarning, match="cannot be separated"):
        Harmoniser().fit(mv, sites=site, keep=(site == "oslo").astype(float))


# -- real data --------------------------------------------------------------------------------


def with_site_effects(x, site, seed):
    """Location and scale of every column but those with two values, different in every site."""
    rng = np.random.default_rng(seed)
    mean, sd = np.nanmean(x, axis=0), np.nanstd(x, axis=0)
    shift = rng.normal(rng.normal(0, 0.7, (3, 1)), 0.7, (3, x.shape[1])) * sd
    made = mean + shift[site] + (x - mean) * np.exp(rng.normal(0, 0.3, shift.shape))[site]
    two = np.array([len(np.unique(c[~np.isnan(c)])) <= 2 for c in x.T])
    return np.where(two, x, made)


def held_out_auc(x, y, site, step=None):
    """AUC of ridge logistic regression over ten splits, sites aligned inside the training rows."""
    found = []
    ridge = make_pipeline(StandardScaler(), LogisticRegression(C=0.01))
    for seed in range(2):
        for train, test in StratifiedKFold(5, shuffle=True, random_state=seed).split(x, y):
            parts = [x[train], x[test]]
            if step is not None:
                step.fit(MultiView({"x": x})[train], sites=site[train])
                parts = [
                    step.transform(MultiView({"x": x})[rows], sites=site[rows]).view("x").read()
                    for rows in (train, test)
                ]
            fill = np.nanmean(parts[0], axis=0)
            parts = [np.where(np.isnan(p), fill, p) for p in parts]
            p = ridge.fit(parts[0], y[train]).predict_proba(parts[1])
            scores = p[:, 1] if p.shape[1] == 2 else p
            found.append(roc_auc_score(y[test], scores, multi_class="ovr"))
    return float(np.mean(found))


@pytest.mark.parametrize(
    ("name", "estimates"), [("ad_csf", "shrunk"), ("ibd_families_jacobs", "plain")]
)
def test_site_effects_on_real_data_are_gone_and_the_signal_is_not(shared_data, name, estimates):
    data = load_shared(shared_data / name)
    x = np.hstack([data.data.view(v).read().astype(float) for v in data.data.view_names])
    if name.startswith("ibd"):
        # Intensities: logarithms of what was measured, in features measured in most people.
        with np.errstate(divide="ignore"):
            x = np.where(x > 0, np.log(x), np.nan)
        x = x[:, (~np.isnan(x)).mean(axis=0) >= 0.8]
    site = np.random.default_rng(1).permutation(np.arange(len(x)) % 3)
    spoiled = with_site_effects(x, site, 2)
    step = Harmoniser(estimates=estimates)
    assert held_out_auc(spoiled, site, site) > 0.95
    assert abs(held_out_auc(spoiled, site, site, step) - 0.5) < 0.1
    clean = held_out_auc(x, data.target, site)
    assert abs(held_out_auc(spoiled, data.target, site, step) - clean) < 0.02
