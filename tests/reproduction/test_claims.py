"""Claims are decided by intervals and by counts of folds, not by point estimates."""

from dataclasses import replace

import numpy as np
import pytest

from baldur.reproduction.claims import claims_of
from baldur.reproduction.default_claims import default_claims
from baldur.reproduction.protocol import DEFAULT, PAPER
from baldur.reproduction.verdicts import FAILS, HOLDS, IN_PART, OPEN, UNTESTED


def with_gap(evidence, low, high):
    """Return the evidence with one interval for all differences of the paper's row."""
    table = evidence.differences.copy()
    ours, theirs = table["model_a"] == PAPER, table["model_b"] == PAPER
    table.loc[ours, ["difference", "low", "high"]] = (low + high) / 2, low, high
    table.loc[theirs, ["difference", "low", "high"]] = -(low + high) / 2, -high, -low
    return replace(evidence, differences=table)


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [(0.01, 0.2, HOLDS), (-0.2, -0.01, FAILS), (-0.01, 0.2, OPEN), (-0.2, 0.0, OPEN)],
)
def test_the_interval_decides_who_is_first(evidence, low, high, outcome):
    claims = claims_of(with_gap(evidence, low, high))
    first = [c for c in claims if c.text.startswith("BALDUR has the highest")]
    assert len(first) == (4 if evidence.protocol.name == "biofind" else 5)
    assert {c.verdict.outcome for c in first} == {outcome}


def test_a_difference_without_an_interval_decides_nothing(evidence):
    nobody = replace(evidence, differences=evidence.differences.iloc[:0])
    first = [c for c in claims_of(nobody) if c.text.startswith("BALDUR has the highest")]
    assert {c.verdict.outcome for c in first} == {UNTESTED}
    assert default_claims(nobody)[0].verdict.outcome == UNTESTED


def test_a_baseline_that_wins_is_named(evidence):
    table = evidence.differences.copy()
    mine = table["model_b"] == DEFAULT
    table.loc[mine, ["difference", "low", "high"]] = 0.1, 0.05, 0.15  # baseline minus default
    verdict = default_claims(replace(evidence, differences=table))[0].verdict
    assert verdict.outcome == FAILS
    assert verdict.why.endswith("is better here.")
    assert verdict.why.split(" is ")[0] in evidence.baselines


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
    found = [c.verdict for c in claims_of(evidence) if c.text.startswith(beginning)]
    assert len(found) == 1
    return found[0]


def changed_folds(evidence, view, folds):
    """Return the evidence with other numbers of selected features in a view of the paper's row."""
    selection = evidence.result.selection.copy()
    row = (
        (selection["model"] == PAPER) & (selection["view"] == view) & (selection["feature"] == "*")
    )
    selection.loc[row, "folds"] = folds

    class Changed:
        def __getattr__(self, name):
            return getattr(evidence.result, name)

    result = Changed()
    result.selection = selection
    return replace(evidence, result=result)


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


def test_rows_that_were_not_run_are_not_judged(evidence):
    class Without:
        selection = evidence.result.selection
        data, folds = evidence.result.data, evidence.result.folds

        def table(self):
            table = evidence.result.table()
            return table[table["model"] != PAPER]

    class WithoutBaselines(Without):
        def table(self):
            table = evidence.result.table()
            return table[table["model"] == PAPER]

    alone = claims_of(replace(evidence, result=WithoutBaselines()))
    first = [c for c in alone if "highest" in c.text or "fewest" in c.text]
    assert {c.verdict.outcome for c in first} == {UNTESTED}
    claims = claims_of(replace(evidence, result=Without()))
    about = [c for c in claims if "BALDUR" in c.text and "latent" not in c.text]
    assert {c.verdict.outcome for c in about} == {UNTESTED}
