"""Claims are decided by intervals and by counts of folds, not by point estimates."""

from copy import copy
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest

from baldur.reproduction.claims import _true_voxels, claims_of
from baldur.reproduction.evidence import FAILS, HOLDS, IN_PART, OPEN, UNTESTED, Evidence
from baldur.reproduction.printed import PRINTED
from baldur.reproduction.protocol import DEFAULT, PAPER
from reproduction.changed import changed_result
from reproduction.conftest import only_rows


@pytest.fixture(autouse=True)
def rows(monkeypatch, evidence):
    """The protocol has the rows of the small comparison."""
    rows = list(evidence.result.models)
    only_rows(monkeypatch, rows)
    return rows


class Gaps(Evidence):
    """Evidence in which all differences have the same intervals, or some have others."""

    intervals = MappingProxyType({})

    def differences(self, model, others, metric):
        named = {**dict.fromkeys(self.missing, UNKNOWN), **self.intervals}
        ends = [named.get(name, named["*"]) for name in others]
        gaps = [(sum(e) / 2, *e) for e in ends]
        return pd.DataFrame(gaps, columns=["estimate", "low", "high"], index=others)


def with_gaps(evidence, everywhere, **some):
    fields = {field: getattr(evidence, field) for field in evidence.__dataclass_fields__}
    made = Gaps(**fields)
    object.__setattr__(made, "intervals", {"*": everywhere, **some})
    return made


def firsts(evidence):
    """Return the verdicts on the claims that BALDUR is first."""
    claims = claims_of(evidence)
    found = [c for c in claims if c.claim.startswith("BALDUR has the highest")]
    assert len(found) == (4 if evidence.protocol.name == "biofind" else 5)
    return found


ABOVE, BELOW, AROUND, UNKNOWN = (0.01, 0.2), (-0.2, -0.01), (-0.01, 0.2), (np.nan, np.nan)


@pytest.mark.parametrize(
    ("everywhere", "forest", "outcome"),
    [
        (ABOVE, ABOVE, HOLDS), (ABOVE, AROUND, OPEN), (ABOVE, BELOW, FAILS), (BELOW, BELOW, FAILS),
        (AROUND, BELOW, FAILS), (ABOVE, (0.0, 0.1), OPEN), (AROUND, (-0.1, 0.0), OPEN),
        (ABOVE, UNKNOWN, UNTESTED), (UNKNOWN, BELOW, FAILS), (UNKNOWN, UNKNOWN, UNTESTED),
    ],
)  # fmt: skip
def test_every_baseline_has_to_be_beaten(evidence, everywhere, forest, outcome):
    # The forest of the fixture assigns everybody to one class and is left out of one claim.
    changed = with_gaps(evidence, everywhere, RF=forest)
    said = [v.outcome for v in firsts(changed)]
    alone = [v.outcome for v in firsts(with_gaps(evidence, everywhere))]
    recall = 3 if evidence.protocol.name == "biofind" else 2
    assert said == [alone[i] if i == recall else outcome for i in range(len(said))]
    assert claims_of(changed, DEFAULT)[0].outcome == outcome


def test_baselines_are_named_with_their_intervals(evidence):
    def said(forest):
        return claims_of(with_gaps(evidence, (0.02, 0.1), RF=forest), DEFAULT)[0]

    smallest = "Smallest difference (simultaneous interval): RF"
    assert said((-0.15, -0.05)).why == "Better here: RF."
    assert "better than 2 of 3 baselines, worse than 1." in said((-0.15, -0.05)).figures
    assert f"{smallest} −0.10 (−0.15 to −0.05)" in said((-0.15, -0.05)).figures
    between = said((-0.0012, 0.05))
    assert "better than 2 of 3 baselines, not decided for 1." in between.figures
    assert f"{smallest} +0.024 (−0.001 to +0.050)" in between.figures
    assert between.why == (
        "Its estimate is the highest, and no baseline is shown to be better. By the simultaneous "
        "intervals a baseline can be better by at most 0.001 (RF)."
    )
    assert "better than 3 of 3 baselines." in said((0.01, 0.02)).figures
    assert said(UNKNOWN).why == "No figures or no interval: RF."
    assert "better than 2 of 3 baselines, not tested for 1." in said(UNKNOWN).figures


def test_a_baseline_without_figures_leaves_claims_untested(evidence, rows):
    above = with_gaps(evidence, ABOVE)
    assert {v.outcome for v in firsts(above)} == {HOLDS}
    rows.insert(0, "K-MCCD")
    assert above.missing == ["K-MCCD"]
    said = [*firsts(above), claims_of(above, DEFAULT)[0]]
    assert {v.outcome for v in said} == {UNTESTED}
    assert all("K-MCCD" in v.why for v in said)
    # One baseline that is better decides, whatever the missing one would have been.
    below = with_gaps(evidence, BELOW)
    assert {v.outcome for v in firsts(below)} == {FAILS}
    known = evidence.differences(PAPER, ["K-MCCD", "RF"], "auc").notna().all(axis=1)
    assert known.to_dict() == {"K-MCCD": False, "RF": True}
    if evidence.protocol.name == "biofind":
        assert verdict_of(above, "Lasso-MkSVM is a close").outcome == UNTESTED
        fewer = fewer_features(evidence)
        assert verdict_of(fewer, "BALDUR selects the fewest").outcome == UNTESTED
        rows.remove("K-MCCD")
        assert verdict_of(fewer, "BALDUR selects the fewest").outcome == HOLDS


def fewer_features(evidence):
    """Return the evidence with one selected feature per fold in the paper's row.

    The forest of the fixture, which uses no feature, has two.
    """
    evidence = changed_folds(evidence, "sleep", "2;2;2", "RF")
    for view in evidence.protocol.views:
        evidence = changed_folds(evidence, view, "1;1;1" if view == "sleep" else "0;0;0")
    return evidence


@pytest.mark.parametrize("evidence", ["biofind"], indirect=True)
def test_a_higher_recall_of_a_model_near_chance_is_said_to_be_one(evidence):
    table = evidence.result.table()
    table.loc[table["model"] == "LSVM-l1", ["balanced_accuracy_low", "balanced_accuracy_high"]] = (
        0.49, 0.58,
    )  # fmt: skip
    changed = changed_result(evidence, table=lambda: table)
    near = "The 95 % interval of the balanced accuracy of LSVM-l1 includes 0.5."
    beginning = "BALDUR has the highest recall"
    below = with_gaps(changed, ABOVE, **{"LSVM-l1": BELOW})
    assert verdict_of(below, beginning).why.startswith(f"Better here: LSVM-l1. {near}")
    above = verdict_of(with_gaps(changed, ABOVE), beginning)
    assert near not in above.why
    assert "only as a precision; its recall is then 0.55" in above.why


@pytest.mark.parametrize("evidence", ["adni"], indirect=True)
@pytest.mark.parametrize(
    ("folds", "outcome"),
    [("10;20;5", HOLDS), ("40;10;10", OPEN), ("3000;10;10", FAILS)],
)
def test_few_features_are_few_by_share_and_by_number(evidence, folds, outcome):
    """At a small scale a share is not that of the paper; a number can be."""
    found = evidence
    for view in evidence.protocol.views:
        found = changed_folds(found, view, folds if view == "grey_matter" else "0;0;0")
    width = sum(evidence.result.data.n_features.values())
    assert 100 * 20 / width < 3.34 < 100 * 40 / width
    said = verdict_of(found, "BALDUR selects few features")
    assert said.outcome == outcome
    assert "2.36 % of the paper's 75,694 are 1,786." in said.figures


@pytest.mark.parametrize("evidence", ["adni"], indirect=True)
def test_both_sparse_rivals_have_to_be_there(evidence, rows):
    beginning = "LSVM-l1 and Lasso-MkSVM"
    assert verdict_of(with_gaps(evidence, ABOVE), beginning).outcome == HOLDS
    table = evidence.result.table()
    without = changed_result(evidence, table=lambda: table[table["model"] != "LSVM-l1"])
    said = verdict_of(with_gaps(without, ABOVE), beginning)
    assert said.outcome == UNTESTED
    assert said.why == "No figures or no interval: LSVM-l1."


MARKED = [name for name, row in PRINTED["biofind"].items() if row.chance]


@pytest.mark.parametrize("evidence", ["biofind"], indirect=True)
@pytest.mark.parametrize(
    ("marked", "open_", "not_run", "outcome"),
    [
        (8, 0, 0, HOLDS), (7, 0, 0, IN_PART), (7, 1, 0, IN_PART), (7, 0, 1, IN_PART),
        (0, 8, 0, OPEN), (0, 1, 0, OPEN), (0, 0, 0, FAILS), (0, 1, 1, UNTESTED),
        (0, 0, 8, UNTESTED),
    ],
)  # fmt: skip
def test_chance_level_is_a_mark_and_not_an_interval(evidence, marked, open_, not_run, outcome):
    """An interval that includes 0.5 does not show that a model is at chance level."""
    forest = evidence.result.table().set_index("model").loc["RF"]
    made = []
    for i, name in enumerate(MARKED[: len(MARKED) - not_run]):
        low = 0.45 if marked <= i < marked + open_ else 0.55
        note = "chance level; scaled" if i < marked else ""
        ends = {"balanced_accuracy_low": low, "balanced_accuracy_high": 0.65}
        made.append({**forest, "model": name, "note": note, **ends})
    found = changed_result(evidence, table=lambda: pd.DataFrame([{**forest, "model": "x"}, *made]))
    said = verdict_of(found, "Many baselines classify at chance level")
    assert said.outcome == outcome
    assert bool(said.why) == (marked + open_ + not_run < 8)
    if not_run < 8:
        assert f"8 baselines that the paper marks, {marked} assign" in said.figures
        assert f"includes 0.5 for {open_} of" in said.figures
        assert ("Not run: PB-MVBoost." in said.figures) == (not_run == 1)


def test_models_that_predicted_other_people_are_not_compared(evidence):
    sample = evidence.result.resampled
    others = evidence.baselines
    found = evidence.differences(PAPER, others, "auc")
    assert found.index.tolist() == others
    for gap in found.itertuples():
        estimates = [float(sample.metric(m, "auc").estimate) for m in (PAPER, gap.Index)]
        assert gap.estimate == pytest.approx(estimates[0] - estimates[1])
        assert gap.low < gap.estimate < gap.high

    fewer = copy(sample)
    fewer.models = dict(sample.models)
    mask = np.arange(len(sample.models["RF"].members)) > 0
    fewer.models["RF"] = sample.models["RF"].where(mask)
    changed = changed_result(evidence, resampled=fewer)
    known = changed.differences(PAPER, others, "auc").notna().all(axis=1)
    assert known.to_dict() == {name: name != "RF" for name in others}


def test_counts_of_a_fold_are_those_of_the_masks(evidence):
    result = evidence.result
    for model in (PAPER, DEFAULT):
        counts = evidence.selected(model)
        assert counts.shape == (3, 5)
        fits = sorted(result.fits[model], key=lambda f: f.fold)
        for fold, fit in enumerate(fits):
            sizes = {view: len(chosen.index) for view, chosen in fit.selected.items()}
            assert counts.iloc[fold].to_dict() == sizes
        width = sum(result.data.n_features.values())
        np.testing.assert_allclose(evidence.percent(model), 100 * counts.sum(axis=1) / width)
        everything = set(zip(*[evidence.features(model)[c] for c in ("view", "feature")]))  # noqa: B905
        np.testing.assert_array_equal(evidence.hits(model, everything), counts.sum(axis=1))
        assert evidence.hits(model, set()).tolist() == [0, 0, 0]


def verdict_of(evidence, beginning):
    found = [c for c in claims_of(evidence) if c.claim.startswith(beginning)]
    assert len(found) == 1
    return found[0]


def changed_folds(evidence, view, folds, model=PAPER):
    """Return the evidence with other numbers of selected features in a view of a row."""
    selection = evidence.result.selection.copy()
    row = (
        (selection["model"] == model) & (selection["view"] == view) & (selection["feature"] == "*")
    )
    selection.loc[row, "folds"] = folds
    return changed_result(evidence, selection=selection)


def test_folds_decide_which_views_are_used(evidence):
    if evidence.protocol.name == "biofind":
        found = evidence
        for view in evidence.protocol.views:
            found = changed_folds(found, view, "7;7;6" if view == "sleep" else "0;0;0")
        assert verdict_of(found, "That vector uses").outcome == HOLDS
        assert verdict_of(changed_folds(found, "genetic", "0;1;0"), "That").outcome == IN_PART
        assert verdict_of(changed_folds(found, "sleep", "0;0;0"), "That").outcome == FAILS
        return
    both = changed_folds(changed_folds(evidence, "t1_intensity", "3;3;3"), "grey_matter", "2;2;2")
    said = verdict_of(both, "In each fold")
    assert said.outcome == FAILS
    assert "Both are used in 3 of 3 folds" in said.figures
    assert said.why
    one = changed_folds(both, "grey_matter", "0;0;0")
    assert verdict_of(one, "In each fold").outcome == HOLDS


def with_voxels(evidence, inside, outside, folds="1;1;1"):
    """Return the evidence with so many selected voxels in and out of patches in some folds."""
    view = "grey_matter"
    true = [name for v, name in sorted(evidence.effects()) if v == view]
    false = [f for f in map(str, evidence.result.data.view(view).feature_names) if f not in true]
    rows = [(PAPER, v, "*", "0;0;0") for v in evidence.protocol.views if v != view]
    counts = [str((inside + outside) * int(k)) for k in folds.split(";")]
    rows.append((PAPER, view, "*", ";".join(counts)))
    rows += [(PAPER, view, f, folds) for f in [*true[:inside], *false[:outside]]]
    mine = pd.DataFrame(rows, columns=["model", "view", "feature", "folds"]).assign(frequency=1.0)
    others = evidence.result.selection[evidence.result.selection["model"] != PAPER]
    return changed_result(evidence, selection=pd.concat([mine, others], ignore_index=True))


@pytest.mark.parametrize("evidence", ["adni"], indirect=True)
@pytest.mark.parametrize(
    ("inside", "outside", "folds", "outcome"),
    [
        (9, 0, "1;1;1", HOLDS), (9, 1, "1;1;1", HOLDS), (5, 5, "1;1;1", IN_PART),
        (0, 9, "1;1;1", FAILS), (0, 0, "1;1;1", FAILS),
        # One fold or two do not decide, whatever the voxels in them.
        (9, 0, "1;1;0", OPEN), (5, 5, "1;0;0", OPEN), (0, 2, "1;1;1", OPEN), (0, 9, "1;0;0", FAILS),
    ],
)  # fmt: skip
def test_selected_voxels_are_true_by_their_interval(evidence, inside, outside, folds, outcome):
    found = verdict_of(with_voxels(evidence, inside, outside, folds), "The selected voxels")
    assert found.outcome == outcome
    if outcome == HOLDS:
        total = 3 * (inside + outside)
        assert found.figures.startswith(f"Over all folds {3 * inside} of {total} selected voxels")
        assert "lies above 50 % in 3 and above" in found.figures


@pytest.mark.parametrize("evidence", ["adni"], indirect=True)
def test_voxels_at_random_are_rarely_said_to_be_true(evidence):
    """With ten voxels drawn at random in every fold, one of ten folds may pass by chance."""
    rng = np.random.default_rng(0)
    view, runs = "grey_matter", 60
    names = np.array([str(f) for f in evidence.result.data.view(view).feature_names])
    passed = 0
    for _ in range(runs):
        drawn = [set(rng.choice(len(names), 10, replace=False)) for _ in range(10)]
        rows = [(PAPER, v, "*", ";".join("0" * 10)) for v in evidence.protocol.views if v != view]
        rows.append((PAPER, view, "*", ";".join(["10"] * 10)))
        rows += [
            (PAPER, view, names[j], ";".join(str(int(j in fold)) for fold in drawn))
            for j in sorted(set.union(*drawn))
        ]
        mine = pd.DataFrame(rows, columns=["model", "view", "feature", "folds"])
        changed = changed_result(evidence, selection=mine.assign(frequency=0.1))
        passed += _true_voxels(changed).outcome in (HOLDS, IN_PART)
    assert passed == 0


def test_rows_that_were_not_run_are_not_judged(evidence):
    class Without:
        selection = evidence.result.selection
        data, folds = evidence.result.data, evidence.result.folds
        resampled = evidence.result.resampled

        def table(self):
            table = evidence.result.table()
            return table[table["model"] != PAPER]

    class WithoutBaselines(Without):
        def table(self):
            table = evidence.result.table()
            return table[table["model"] == PAPER]

    alone = claims_of(replace(evidence, result=WithoutBaselines()))
    first = [c for c in alone if "highest" in c.claim or "fewest" in c.claim]
    assert {c.outcome for c in first} == {UNTESTED}
    claims = claims_of(replace(evidence, result=Without()))
    about = [c for c in claims if "BALDUR" in c.claim and "latent" not in c.claim]
    assert {c.outcome for c in about} == {UNTESTED}


@pytest.mark.parametrize("evidence", ["biofind"], indirect=True)
@pytest.mark.parametrize(
    ("factors", "outcome", "said"),
    [(1, HOLDS, "4 factors at the start, 1 is live"), (3, FAILS, "3 are live"),
     (0, FAILS, "0 are live"), (None, UNTESTED, "not known")],
)  # fmt: skip
def test_one_factor_is_counted_from_several(evidence, factors, outcome, said):
    found = verdict_of(replace(evidence, factors=factors), "BALDUR uses a single latent vector")
    assert found.outcome == outcome
    assert said in found.figures
