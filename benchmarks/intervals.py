"""Credible sets: how often the stand-ins of a kept feature hold the one that has the effect.

Usage::

    python benchmarks/intervals.py [--part blocks tight duplicates] [--seeds 10] [--jobs 2]

300 training rows, views of 40 and 400 Gaussian features, six effects, logit s.d. 3:

- blocks, tight: neighbours of ten correlate at .8 and at .95, and six of these blocks have one
  feature with an effect;
- duplicates: every feature with an effect has a twin in the other view that correlates with it
  at .98 and has no effect of its own.

A set is judged where its kept feature belongs to a group (a block, or a pair of twins) that has an
effect: it covers if it holds the feature with the effect. Sets of other kept features are counted
as false. A set names its members with a probability of 95 %, so coverage should be about that; the
bar is .9. ``credible_sets_`` of the fitted classifier is what is measured.

Of a group of which several features are kept, at most one set can hold the feature with the effect:
the set of a feature leaves out the other kept ones. Such sets are mostly not listed by the summary
and the report, because their members are hardly correlated; sets that are listed are therefore
judged on their own too.
"""

import numpy as np
from common import Bars, fit_default, header, kept_features, parse, row, run, store
from scipy.special import expit

from baldur import BaldurClassifier, MultiView
from baldur.estimators.summary import PURE

WIDTHS = {"narrow": 40, "wide": 400}
N, N_EFFECTS, LOGIT_SD = 300, 6, 3.0
BLOCK = 10
CORRELATION = {"blocks": 0.8, "tight": 0.95, "duplicates": 0.98}
BAR = 0.9
COLUMNS = {
    "view", "feature", "member_view", "member_feature", "probability", "min_abs_correlation",
}  # fmt: skip


def simulate(part, seed):
    """Return views, labels, the group of every feature, and which features have an effect."""
    rng = np.random.default_rng([seed, list(CORRELATION).index(part)])
    D, r = sum(WIDTHS.values()), CORRELATION[part]
    X = rng.standard_normal((N, D))
    if part == "duplicates":
        group = np.arange(D)
        true = rng.choice(WIDTHS["narrow"], N_EFFECTS // 2, replace=False)
        wide = np.arange(WIDTHS["narrow"], D)
        true = np.append(true, rng.choice(wide, N_EFFECTS - len(true), replace=False))
        free = {"narrow": np.setdiff1d(np.arange(WIDTHS["narrow"]), true),
                "wide": np.setdiff1d(wide, true)}  # fmt: skip
        for d in true:
            other = "wide" if d < WIDTHS["narrow"] else "narrow"
            twin = rng.choice(free[other])
            free[other] = np.setdiff1d(free[other], [twin])
            X[:, twin] = r * X[:, d] + np.sqrt(1 - r**2) * X[:, twin]
            group[twin] = group[d]
    else:
        group = np.arange(D) // BLOCK
        shared = rng.standard_normal((N, group[-1] + 1))[:, group]
        X = np.sqrt(r) * shared + np.sqrt(1 - r) * X
        blocks = rng.choice(group[-1] + 1, N_EFFECTS, replace=False)
        true = blocks * BLOCK + rng.integers(BLOCK, size=N_EFFECTS)
    eta = X[:, true] @ (rng.choice([-1.0, 1.0], N_EFFECTS) * rng.uniform(0.7, 1.3, N_EFFECTS))
    y = (rng.random(N) < expit(LOGIT_SD * eta / eta.std())).astype(int)
    parts = np.split(X, np.cumsum(list(WIDTHS.values()))[:-1], axis=1)
    return MultiView(dict(zip(WIDTHS, parts, strict=True))), y, group, np.isin(np.arange(D), true)


def places(data, views, features):
    """Return the columns of features over all views, given by number or by name."""
    start = dict(zip(WIDTHS, np.cumsum([0, *WIDTHS.values()]), strict=False))
    names = {v: {str(f): i for i, f in enumerate(data.feature_names[v])} for v in WIDTHS}
    return np.array(
        [
            start[v] + (int(f) if isinstance(f, (int, np.integer)) else names[v][str(f)])
            for v, f in zip(views, features, strict=True)
        ],
        dtype=int,
    )


def one_run(part, seed):
    """Return sets judged, of these covered, false sets, sum of sizes, of |r|, features kept."""
    data, y, group, true = simulate(part, seed)
    model, _ = fit_default(BaldurClassifier, data, y)
    sets = getattr(model, "credible_sets_", None)
    if sets is None:
        return None
    absent = COLUMNS - set(sets.columns)
    if absent:
        raise SystemExit(f"credible_sets_ lacks the columns {sorted(absent)}")
    judged = covered = false = size = least = listed = listed_covered = 0.0
    for (view, feature), members in sets.groupby(["view", "feature"], sort=False):
        owner = places(data, [view], [feature])[0]
        inside = places(data, members["member_view"], members["member_feature"])
        if not true[group == group[owner]].any():
            false += 1
            continue
        judged += 1
        holds = bool(true[inside][group[inside] == group[owner]].any())
        covered += holds
        size += len(inside)
        correlation = float(members["min_abs_correlation"].iloc[0])
        least += correlation
        if len(inside) == 1 or correlation >= PURE:
            listed += 1
            listed_covered += holds
    return judged, covered, false, size, least, kept_features(model), listed, listed_covered


def main():
    """Read the arguments; print the table and the bars."""
    given = parse(__doc__, CORRELATION, 10)
    tasks = [(part, seed) for part in given.part for seed in range(given.seeds)]
    found = run(one_run, tasks, given.jobs)
    bars = Bars()
    if any(f is None for f in found):
        bars.missing("coverage of credible sets", "BaldurClassifier has no credible_sets_ here")
        bars.show()
        return
    sums = np.reshape(found, (len(given.part), given.seeds, -1)).sum(axis=1)
    store(given, {part: sums[i].tolist() for i, part in enumerate(given.part)})
    header(
        "case", "sets", "covered", "false sets", "mean size", "mean least |r|", "kept per fit",
        "listed", "of these covered",
    )  # fmt: skip
    for part, values in zip(given.part, sums, strict=True):
        judged, covered, false, size, least, kept, listed, listed_covered = values
        share, of_listed = covered / max(judged, 1), listed_covered / max(listed, 1)
        each = (f"{size / max(judged, 1):.1f}", least / max(judged, 1), f"{kept / given.seeds:.1f}")
        row(part, int(judged), share, int(false), *each, int(listed), of_listed)
        bars.least(f"{part}: coverage of sets", share, BAR)
        bars.least(f"{part}: coverage of listed sets", of_listed, BAR)
    bars.show()


if __name__ == "__main__":
    main()
