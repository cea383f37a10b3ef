"""The claims of the paper about its two studies, each decided by the figures of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from baldur.datasets.biofind import SIGNAL_ITEMS
from baldur.report.formatting import count, in_words, listed, number
from baldur.reproduction.evidence import Difference, Evidence
from baldur.reproduction.printed import PRINTED
from baldur.reproduction.protocol import DEFAULT, PAPER

__all__ = ["Claim", "Verdict", "claims_of", "default_claims"]

HOLDS, IN_PART, OPEN, FAILS, UNTESTED = (
    "reproduced", "reproduced in part", "not decided", "not reproduced", "not tested",
)  # fmt: skip
"""Verdicts. "Not decided": the 95 % interval of the difference includes 0."""

CHANCE = "chance level"
"""How the note of a row begins that assigns nearly everybody to one class."""
_WORDS = {
    "accuracy": "accuracy", "balanced_accuracy": "balanced accuracy", "recall": "recall",
    "f1": "F1 score", "auc": "AUC",
}  # fmt: skip
FEW_GENOTYPES = 2
"""Genotypes that a sparse answer may have in a fold by chance."""
MOST_SLEEP_ITEMS = 6
"""Of the seven sleep items, those that a fold has to find on average."""


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds in a run, and the figures that decide it."""

    outcome: str
    figures: str
    why: str = ""


@dataclass(frozen=True)
class Claim:
    """A claim of the paper in our words, with the verdict of the run."""

    text: str
    verdict: Verdict


def claims_of(evidence: Evidence) -> list[Claim]:
    """Return the claims of the paper about a study, in the order of the paper.

    Parameters
    ----------
    evidence : Evidence

    Returns
    -------
    list of Claim
    """
    made: list[tuple[str, Callable[[Evidence], Verdict]]] = []
    if evidence.protocol.name == "biofind":
        made += [_first(metric) for metric in ("accuracy", "balanced_accuracy", "auc")]
        made += [
            ("BALDUR has the highest recall among the models that do not assign everybody to one "
             "class.", lambda e: _is_first(e, "recall", without_chance=True)),
            ("Many baselines classify at chance level.", _at_chance),
            ("Lasso-MkSVM is the closest competitor.", _closest),
            ("BALDUR selects the fewest features of all models.", _fewest),
            ("BALDUR uses a single latent vector.", _one_factor),
            ("That vector uses the sleep view alone; all other views are removed.", _sleep_alone),
            ("Seven sleep items are selected in every fold.", _seven_items),
        ]  # fmt: skip
    else:
        metrics = ("accuracy", "balanced_accuracy", "recall", "f1", "auc")
        made += [_first(metric) for metric in metrics]
        made += [
            ("LSVM-l1 and Lasso-MkSVM, which select features from all views, generalise worse.",
             _sparse_rivals),
            ("BALDUR selects few features (2.36 %).", _few),
            ("In each fold BALDUR uses one of the two images and not both.", _one_image),
            ("The tables of regions are always removed, because they repeat the images.",
             _no_tables),
            ("The selected voxels lie in regions that the disease changes.", _true_voxels),
        ]  # fmt: skip
    return [Claim(text, decide(evidence)) for text, decide in made]


def default_claims(evidence: Evidence) -> list[Claim]:
    """Return what this package claims of its default on the same folds.

    Parameters
    ----------
    evidence : Evidence

    Returns
    -------
    list of Claim
    """
    made = [Claim("The default has at least the AUC of every baseline.", _default_first(evidence))]
    if evidence.protocol.name == "biofind":
        made.append(
            Claim(
                f"The default finds at least {MOST_SLEEP_ITEMS} of the seven sleep items in a fold "
                "on average.",
                _default_items(evidence),
            )
        )
        made.append(
            Claim(
                f"The default selects at most {FEW_GENOTYPES} genotypes in every fold.",
                _default_genotypes(evidence),
            )
        )
    else:
        made.append(Claim("The default uses no table of regions.", _no_tables(evidence, DEFAULT)))
    return made


# -- who is first ----------------------------------------------------------------------------------


def _first(metric: str) -> tuple[str, Callable[[Evidence], Verdict]]:
    return f"BALDUR has the highest {_WORDS[metric]}.", lambda evidence: _is_first(evidence, metric)


def _is_first(evidence: Evidence, metric: str, *, without_chance: bool = False) -> Verdict:
    """Compare the paper's BALDUR with the best baseline, by the paired bootstrap."""
    among = evidence.baselines
    if without_chance:
        among = [m for m in among if not str(evidence.table.loc[m, "note"]).startswith(CHANCE)]
    if PAPER not in evidence.table.index or not among:
        return Verdict(UNTESTED, "The rows to be compared were not run.")
    return _decided(evidence, PAPER, among, metric, "the paper's BALDUR")


def _decided(evidence: Evidence, model: str, among: list[str], metric: str, name: str) -> Verdict:
    best = evidence.best(metric, among)
    gap = evidence.difference(model, best, metric)
    ours, theirs = (in_words(*evidence.pooled(m, metric)) for m in (model, best))
    figures = f"{name[0].upper()}{name[1:]} {ours}; best baseline, {best}, {theirs}; {_gap(gap)}."
    if gap.low > 0:
        return Verdict(HOLDS, figures)
    if gap.high < 0:
        return Verdict(FAILS, figures, f"{best} is better here.")
    ahead = name if gap.value > 0 else best
    return Verdict(
        OPEN, figures, f"The point estimate of {ahead} is higher, but both may be equal."
    )


def _gap(gap: Difference) -> str:
    return f"difference {number(gap.value, sign=True)} " + (
        f"(95 % interval {number(gap.low, sign=True)} to {number(gap.high, sign=True)})"
    )


def _closest(evidence: Evidence) -> Verdict:
    name = "Lasso-MkSVM"
    others = [m for m in evidence.baselines if m != name]
    if name not in evidence.table.index or not others:
        return Verdict(UNTESTED, "The rows to be compared were not run.")
    return _decided(evidence, name, others, "auc", name)


def _at_chance(evidence: Evidence) -> Verdict:
    printed = [m for m, row in PRINTED["biofind"].items() if row.chance]
    marked = [m for m in printed if m in evidence.table.index]
    here = [m for m in marked if _includes_chance(evidence, m)]
    all_here = [m for m in evidence.baselines if _includes_chance(evidence, m)]
    figures = (
        f"Of the {len(marked)} baselines that the paper marks and that were run, {len(here)} have "
        f"a balanced accuracy whose 95 % interval includes 0.5"
        f"{': ' + listed(here) if here else ''}; of all {len(evidence.baselines)} baselines, "
        f"{len(all_here)}."
    )
    why = _easier(evidence) if len(here) < len(marked) else ""
    if not marked:
        return Verdict(UNTESTED, "None of the rows that the paper marks was run.")
    return Verdict(HOLDS if len(here) == len(marked) else IN_PART if here else FAILS, figures, why)


def _includes_chance(evidence: Evidence, model: str) -> bool:
    _, low, high = evidence.pooled(model, "balanced_accuracy")
    return low <= 0.5 <= high


def _easier(evidence: Evidence) -> str:
    if not evidence.simulated:
        return ""
    return (
        "Likely reasons: the simulated disease is easier to recognise than the real one, and our "
        "versions of these methods give every view the same total variance before they combine "
        "views."
    )


def _sparse_rivals(evidence: Evidence) -> Verdict:
    names = [m for m in ("LSVM-l1", "Lasso-MkSVM") if m in evidence.table.index]
    if PAPER not in evidence.table.index or not names:
        return Verdict(UNTESTED, "The rows to be compared were not run.")
    gaps = [evidence.difference(PAPER, m, "auc") for m in names]
    figures = "AUC of the paper's BALDUR minus that of " + "; ".join(
        f"{gap.b}: {_gap(gap)}" for gap in gaps
    )
    worse = sum(gap.low > 0 for gap in gaps)
    better = sum(gap.high < 0 for gap in gaps)
    why = "" if worse == len(gaps) else "The simulated signal is sparse, which suits both methods."
    why = why if evidence.simulated else ""
    if worse == len(gaps):
        return Verdict(HOLDS, f"{figures}.")
    if worse:
        return Verdict(IN_PART, f"{figures}.", why)
    return Verdict(FAILS if better else OPEN, f"{figures}.", why)


# -- what is selected ------------------------------------------------------------------------------


def _fewest(evidence: Evidence) -> Verdict:
    if PAPER not in evidence.table.index:
        return _no_row()
    mine = evidence.percent(PAPER)
    others = {m: evidence.percent(m) for m in evidence.baselines}
    fewer = np.all([mine < other for other in others.values()], axis=0)
    least = min(others, key=lambda m: float(others[m].mean()))
    figures = (
        f"{_share(mine)} of all features, the paper {_printed_percent(evidence)}; the baseline "
        f"with the fewest, {least}, {_share(others[least])}; fewer than every baseline in "
        f"{int(fewer.sum())} of {count(evidence.n_folds, 'fold')}."
    )
    outcome = HOLDS if fewer.all() else IN_PART if fewer.any() else FAILS
    return Verdict(outcome, figures)


def _few(evidence: Evidence) -> Verdict:
    if PAPER not in evidence.table.index:
        return _no_row()
    mine = evidence.percent(PAPER)
    most = PRINTED["adni"]["BALDUR"].percent
    figures = (
        f"{_share(mine)} of all features, at most {number(mine.max(), 2, small=True)} % in a fold; "
        f"the paper {_printed_percent(evidence)}."
    )
    # As sparse as printed: no fold above the printed mean and its standard deviation.
    return Verdict(HOLDS if mine.max() <= sum(most) else FAILS, figures)


def _share(percent: np.ndarray) -> str:
    spread = float(percent.std(ddof=1)) if len(percent) > 1 else 0.0
    return f"{number(percent.mean(), 2, small=True)} % (s.d. {number(spread, 2, small=True)})"


def _printed_percent(evidence: Evidence) -> str:
    mean, sd = PRINTED[evidence.protocol.name]["BALDUR"].percent
    return f"{number(mean, 2, small=True)} % (s.d. {number(sd, 2, small=True)})"


def _one_factor(evidence: Evidence) -> Verdict:
    if evidence.factors is None:
        return Verdict(UNTESTED, "The number of factors is not known.")
    figures = f"Fitted on all people, it has {count(evidence.factors, 'live factor')}."
    return Verdict(HOLDS if evidence.factors == 1 else FAILS, figures)


def _sleep_alone(evidence: Evidence) -> Verdict:
    if PAPER not in evidence.table.index:
        return _no_row()
    counts = evidence.selected(PAPER)
    used = counts > 0
    alone = (used["sleep"] & (used.sum(axis=1) == 1)).to_numpy()
    return _by_folds(alone, "The sleep view alone is used", _other_views(counts, "sleep"))


def _other_views(counts: pd.DataFrame, but: str) -> str:
    others = [str(v) for v in counts if v != but and (counts[v] > 0).any()]
    return f"Other folds also use {listed(others)}." if others else ""


def _seven_items(evidence: Evidence) -> Verdict:
    if PAPER not in evidence.table.index:
        return _no_row()
    found = evidence.hits(PAPER, _items())
    every = evidence.features(PAPER)
    always = every[every["frequency"] >= 1.0 - 1e-9]
    ours = [f for v, f in zip(always["view"], always["feature"], strict=True) if (v, f) in _items()]
    others = len(always) - len(ours)
    figures = (
        f"{len(ours)} of the seven items are selected in every fold"
        f"{': ' + listed(ours) if ours else ''}; {count(others, 'other feature')} in every fold. A "
        f"fold finds {number(found.mean(), 1)} of the seven on average."
    )
    return Verdict(HOLDS if len(ours) == 7 else IN_PART if ours else FAILS, figures)


def _items() -> set[tuple[str, str]]:
    return {("sleep", item) for item in SIGNAL_ITEMS}


def _one_image(evidence: Evidence) -> Verdict:
    if PAPER not in evidence.table.index:
        return _no_row()
    counts = evidence.selected(PAPER)
    used = counts[["t1_intensity", "grey_matter"]] > 0
    one = (used.sum(axis=1) == 1).to_numpy()
    both = int(used.all(axis=1).sum())
    ours = evidence.selected(DEFAULT) if DEFAULT in evidence.table.index else None
    more = f"Both are used in {both} of {count(len(one), 'fold')}"
    if ours is not None:
        default = int((ours[["t1_intensity", "grey_matter"]] > 0).all(axis=1).sum())
        more += f", and by our default in {default}"
    made = _by_folds(one, "One image alone is used", f"{more}.")
    if made.outcome == HOLDS or not evidence.simulated:
        return made
    why = (
        "In the simulation each image also has a patch of its own and half of its noise to itself, "
        "so that the second image adds information."
    )
    return Verdict(made.outcome, made.figures, why)


def _no_tables(evidence: Evidence, model: str = PAPER) -> Verdict:
    if model not in evidence.table.index:
        return _no_row()
    counts = evidence.selected(model)
    tables = [v for v in counts if str(v).endswith("_volume")]
    without = (counts[tables].sum(axis=1) == 0).to_numpy()
    mean = counts[tables].sum(axis=1).mean()
    more = f"A fold selects {number(mean, 1)} features of the three tables on average."
    return _by_folds(without, "No table is used", more)


def _true_voxels(evidence: Evidence) -> Verdict:
    if PAPER not in evidence.table.index:
        return _no_row()
    if not evidence.simulated:
        return Verdict(UNTESTED, "The truth is not known; see the figure of the brain.")
    images = ("t1_intensity", "grey_matter")
    truth = {pair for pair in evidence.effects() if pair[0] in images}
    selected = evidence.selected(PAPER)[list(images)].to_numpy().sum()
    hits = int(evidence.hits(PAPER, truth).sum())
    share = hits / selected if selected else float("nan")
    # A voxel taken at random lies in a patch with this probability.
    width = sum(evidence.result.data.n_features[v] for v in images)
    random = len(truth) / width
    figures = (
        f"Over all folds {hits:,} of {count(selected, 'selected voxel')} "
        f"({number(100 * share, 0)} %) lie in the patches with signal, which are "
        f"{number(100 * random, 1)} % of the voxels."
    )
    if not selected:
        return Verdict(FAILS, "No voxel was selected.")
    outcome = HOLDS if share > 0.9 else IN_PART if share > 2 * random else FAILS
    return Verdict(
        outcome, figures, "" if outcome == HOLDS else "Voxels next to a patch count as wrong."
    )


# -- the default -----------------------------------------------------------------------------------


def _default_first(evidence: Evidence) -> Verdict:
    if DEFAULT not in evidence.table.index or not evidence.baselines:
        return _no_row()
    best = evidence.best("auc", evidence.baselines)
    gap = evidence.difference(DEFAULT, best, "auc")
    means = evidence.table["auc"].astype(float)
    top = str(means[evidence.baselines].idxmax())
    figures = (
        f"The default {in_words(*evidence.pooled(DEFAULT, 'auc'))}; best baseline, {best}, "
        f"{in_words(*evidence.pooled(best, 'auc'))}; {_gap(gap)}. As means over folds: the default "
        f"{number(means[DEFAULT], 3)}, best baseline, {top}, {number(means[top], 3)}."
    )
    if gap.high < 0:
        return Verdict(FAILS, figures, f"{best} is better here.")
    if gap.low > 0 or (gap.value >= 0 and means[DEFAULT] >= means[top]):
        return Verdict(HOLDS, figures)
    return Verdict(
        OPEN, figures, f"{best if gap.value < 0 else top} has the higher point estimate."
    )


def _default_items(evidence: Evidence) -> Verdict:
    if DEFAULT not in evidence.table.index:
        return _no_row()
    found = evidence.hits(DEFAULT, _items())
    figures = (
        f"{number(found.mean(), 1)} on average; by fold {', '.join(map(str, found.tolist()))}."
    )
    return Verdict(HOLDS if found.mean() >= MOST_SLEEP_ITEMS else FAILS, figures)


def _default_genotypes(evidence: Evidence) -> Verdict:
    if DEFAULT not in evidence.table.index:
        return _no_row()
    found = evidence.selected(DEFAULT)["genetic"].to_numpy()
    figures = f"By fold {', '.join(map(str, found.tolist()))}."
    return Verdict(HOLDS if found.max() <= FEW_GENOTYPES else FAILS, figures)


# -- forms of verdicts -----------------------------------------------------------------------------


def _by_folds(holds: np.ndarray, what: str, more: str) -> Verdict:
    figures = f"{what} in {int(holds.sum())} of {count(len(holds), 'fold')}. {more}".strip()
    return Verdict(HOLDS if holds.all() else IN_PART if holds.any() else FAILS, figures)


def _no_row() -> Verdict:
    return Verdict(UNTESTED, "The row was not run.")
