"""The claims of the paper about its two studies, each decided by the figures of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.stats import binomtest

from baldur.datasets.biofind import SIGNAL_ITEMS
from baldur.report.formatting import listed, number
from baldur.report.sentences import side_of_zero
from baldur.reproduction.evidence import (
    FAILS,
    HOLDS,
    IN_PART,
    NO_ROW,
    OPEN,
    UNTESTED,
    Evidence,
    Verdict,
    by_folds,
    decided,
)
from baldur.reproduction.printed import PRINTED, REMARKS, percent_texts
from baldur.reproduction.protocol import DEFAULT, PAPER, START_FACTORS
from baldur.views.validate import counted

CHANCE = "chance level"
"""How the note of a row begins that assigns nearly everybody to one class."""
FIRST_IN: Mapping[str, tuple[str, ...]] = {
    "biofind": ("accuracy", "balanced_accuracy", "auc"),
    "adni": ("accuracy", "balanced_accuracy", "recall", "f1", "auc"),
}
"""Study to the metrics in which the paper says that BALDUR is the best of all."""
SLEEP_ITEMS = {("sleep", item) for item in SIGNAL_ITEMS}
"""View and name of the seven items that the paper reports."""


# -- who is first ----------------------------------------------------------------------------------


def _first(metric: str) -> tuple[str, Callable[[Evidence], Verdict]]:
    """Return the claim that BALDUR is the best in a metric, and the function that decides it."""
    word = {"f1": "F1 score", "auc": "AUC"}.get(metric, metric.replace("_", " "))
    among = ""
    if metric == "recall":
        among = " among the models that do not assign nearly everybody to one class"
    text = f"BALDUR has the highest {word}{among}."
    return text, lambda evidence: _is_first(evidence, metric)


def _is_first(evidence: Evidence, metric: str) -> Verdict:
    """Compare the paper's BALDUR with every baseline; in recall without those at chance level."""
    others = evidence.baselines
    if metric == "recall":
        others = [m for m in others if not _marked(evidence, m)]
    verdict = decided(evidence, PAPER, others + evidence.missing, metric, "the paper's BALDUR")
    remarks = [verdict.why, REMARKS[evidence.protocol.name].get(metric, "")]
    if metric == "recall" and verdict.outcome == FAILS:
        remarks.insert(1, _no_better_than_chance(evidence, others))
    return replace(verdict, why=" ".join(filter(None, remarks)))


def _no_better_than_chance(evidence: Evidence, others: list[str]) -> str:
    """Return which of the baselines with a higher recall may be at chance level; or nothing."""
    differences = evidence.differences(PAPER, others, "recall")  # below 0: the other has more
    better = differences.index[side_of_zero(differences) < 0].tolist()
    at_chance = [name for name in better if _includes_chance(evidence, name)]
    if not at_chance:
        return ""
    return f"The 95 % interval of the balanced accuracy of {listed(at_chance)} includes 0.5."


def _second(evidence: Evidence) -> Verdict:
    """Decide whether Lasso-MkSVM has the highest balanced accuracy of the baselines."""
    name = "Lasso-MkSVM"
    others = [m for m in evidence.baselines + evidence.missing if m != name]
    return decided(evidence, name, others, "balanced_accuracy", name)


def _at_chance(evidence: Evidence) -> Verdict:
    """Decide the claim that the baselines which the paper marks by an asterisk are at chance level.

    A row is at chance level, as in the paper, where nearly everybody is assigned to one class.
    A balanced accuracy whose interval includes 0.5 does not show that a row is at chance level; one
    whose interval leaves it out shows that it is not.
    """
    in_paper = [m for m, row in PRINTED["biofind"].items() if row.chance]
    ran = [m for m in in_paper if m in evidence.table.index]
    if not ran:
        return Verdict(UNTESTED, "None of the rows that the paper marks was run.")
    here = [m for m in ran if _marked(evidence, m)]
    undecided = [m for m in ran if m not in here and _includes_chance(evidence, m)]
    of_all = [m for m in evidence.baselines if _marked(evidence, m)]
    figures = (
        f"Of the {len(in_paper)} baselines that the paper marks, {len(here)} "
        f"{'assigns' if len(here) == 1 else 'assign'} nearly everybody to one class here"
        f"{': ' + listed(here) if here else ''}; of all {len(evidence.baselines)} baselines that "
        f"were run, {len(of_all)}. The 95 % interval of the balanced accuracy includes 0.5 for "
        f"{len(undecided)} of the other marked ones{': ' + listed(undecided) if undecided else ''}."
    )
    missing = [m for m in in_paper if m not in ran]
    figures += f" Not run: {listed(missing)}." if missing else ""
    if len(here) == len(in_paper):
        return Verdict(HOLDS, figures)
    outcome = IN_PART if here else UNTESTED if missing else OPEN if undecided else FAILS
    some_above_chance = len(here) + len(undecided) < len(ran)
    return Verdict(outcome, figures, _EASIER if some_above_chance and evidence.simulated else "")


def _marked(evidence: Evidence, model: str) -> bool:
    """Return whether a row is at chance level: nearly everybody is assigned to one class."""
    return str(evidence.table.loc[model, "note"]).startswith(CHANCE)


def _includes_chance(evidence: Evidence, model: str) -> bool:
    _, low, high = evidence.pooled(model, "balanced_accuracy")
    return not (low > 0.5 or high < 0.5)


_EASIER = (
    "Possible reasons: the simulated disease is easier to recognise than the real one, and our "
    "versions of these methods give every view the same total variance before they combine views."
)


def _sparse_rivals(evidence: Evidence) -> Verdict:
    """Decide whether the paper's BALDUR has a higher AUC than two sparse baselines."""
    verdict = decided(evidence, PAPER, ["LSVM-l1", "Lasso-MkSVM"], "auc", "the paper's BALDUR")
    if verdict.outcome not in (FAILS, OPEN) or not evidence.simulated:
        return verdict
    return replace(
        verdict, why=f"{verdict.why} The simulated signal is sparse, which suits both methods."
    )


# -- what is selected ------------------------------------------------------------------------------


def _fewest(evidence: Evidence) -> Verdict:
    """Decide by the folds in which BALDUR selects fewer features than every baseline."""
    if not evidence.baselines:
        return NO_ROW
    percent = evidence.percent(PAPER)
    others = {m: evidence.percent(m) for m in evidence.baselines}
    fewer = np.all([percent < other for other in others.values()], axis=0)  # (folds,)
    least = min(others, key=lambda m: float(others[m].mean()))
    figures = (
        f"{_share(percent)} of all features, the paper {_printed_percent(evidence)}; the baseline "
        f"with the fewest, {least}, {_share(others[least])}; fewer than every baseline in "
        f"{int(fewer.sum())} of {counted(evidence.n_folds, 'fold')}."
    )
    if evidence.missing and fewer.any():
        return Verdict(UNTESTED, figures, f"No figures: {listed(evidence.missing)}.")
    outcome = HOLDS if fewer.all() else IN_PART if fewer.any() else FAILS
    return Verdict(outcome, figures)


def _few(evidence: Evidence) -> Verdict:
    """Decide by the share of features in every fold; of a smaller cohort, also by their number.

    As few as in the paper: not above the sum of the printed mean and standard deviation.
    """
    percent = evidence.percent(PAPER)
    mean, sd = PRINTED["adni"]["BALDUR"].percent
    figures = (
        f"{_share(percent)} of all features, at most {number(percent.max(), 2, small=True)} % in a "
        f"fold; the paper {_printed_percent(evidence)}."
    )
    is_few = percent.max() <= mean + sd
    width_of_paper = sum(evidence.protocol.views.values())
    width = sum(evidence.result.data.n_features.values())
    if width >= width_of_paper:
        return Verdict(HOLDS if is_few else FAILS, figures)
    counts = evidence.selected(PAPER).sum(axis=1)
    figures += (
        f" In numbers: {number(counts.mean(), 1)} of {width:,} features on average, at most "
        f"{counts.max():,} in a fold; {number(mean)} % of the paper's {width_of_paper:,} are "
        f"{mean * width_of_paper / 100:,.0f}."
    )
    if is_few:
        # A share of fewer features that is no larger is also a smaller number.
        return Verdict(HOLDS, figures)
    if counts.max() > (mean + sd) * width_of_paper / 100:
        return Verdict(FAILS, figures)
    return Verdict(OPEN, figures, "The number is as small as in the paper, and the share is not.")


def _share(percent: np.ndarray) -> str:
    """Return mean and standard deviation of a share over folds, as text.

    Shapes: percent (n_folds,).
    """
    sd = float(percent.std(ddof=1)) if len(percent) > 1 else 0.0
    return "{} % (s.d. {})".format(*percent_texts(percent.mean(), sd))


def _printed_percent(evidence: Evidence) -> str:
    return "{} % (s.d. {})".format(
        *percent_texts(*PRINTED[evidence.protocol.name]["BALDUR"].percent)
    )


def _one_factor(evidence: Evidence) -> Verdict:
    """Decide by the factors that are live at the end of a fit that starts with several."""
    if evidence.factors is None:
        return Verdict(UNTESTED, "The number of factors is not known.")
    live = f"{evidence.factors} {'is' if evidence.factors == 1 else 'are'} live"
    figures = f"Fitted on all people with {START_FACTORS} factors at the start, {live} at the end."
    return Verdict(HOLDS if evidence.factors == 1 else FAILS, figures)


def _sleep_alone(evidence: Evidence) -> Verdict:
    """Decide by the folds in which BALDUR selects features of the sleep view and of no other."""
    used = evidence.selected(PAPER) > 0
    alone = (used["sleep"] & (used.sum(axis=1) == 1)).to_numpy()
    others = [str(view) for view in used if view != "sleep" and used[view].any()]
    remark = f"Other folds also use {listed(others)}." if others else ""
    return by_folds(alone, "The sleep view alone is used", remark)


def _seven_items(evidence: Evidence) -> Verdict:
    """Decide by the sleep items that BALDUR selects in every fold."""
    hits = evidence.hits(PAPER, SLEEP_ITEMS)
    features = evidence.features(PAPER)
    in_every_fold = features[features["frequency"] >= 1.0 - 1e-9]
    pairs = zip(in_every_fold["view"], in_every_fold["feature"], strict=True)
    items = [feature for view, feature in pairs if (view, feature) in SLEEP_ITEMS]
    n_others = len(in_every_fold) - len(items)
    others = counted(n_others, "other feature") if n_others else "no other feature"
    figures = (
        f"{len(items)} of the seven items are selected in every fold"
        f"{': ' + listed(items) if items else ''}; {others} in every fold. A fold "
        f"finds {number(hits.mean(), 1)} of the seven on average."
    )
    return Verdict(HOLDS if len(items) == 7 else IN_PART if items else FAILS, figures)


def _one_image(evidence: Evidence) -> Verdict:
    """Decide by the folds in which BALDUR uses one of the two images and not both."""
    images = ["t1_intensity", "grey_matter"]
    used = evidence.selected(PAPER)[images] > 0
    single = (used.sum(axis=1) == 1).to_numpy()
    n_both = int(used.all(axis=1).sum())
    of_both = f"Both are used in {n_both} of {counted(len(single), 'fold')}"
    if DEFAULT in evidence.table.index:
        used_by_default = evidence.selected(DEFAULT)[images] > 0
        of_both += f", and by our default in {int(used_by_default.all(axis=1).sum())}"
    verdict = by_folds(single, "One image alone is used", f"{of_both}.")
    if verdict.outcome == HOLDS or not evidence.simulated:
        return verdict
    why = (
        "In the simulation each image also has a patch of its own and half of its noise to itself, "
        "so that the second image adds information."
    )
    return Verdict(verdict.outcome, verdict.figures, why)


def no_tables(evidence: Evidence, model: str = PAPER) -> Verdict:
    """Decide whether a model uses none of the three tables of regions."""
    counts = evidence.selected(model)
    tables = [v for v in counts if str(v).endswith("_volume")]
    without = (counts[tables].sum(axis=1) == 0).to_numpy()
    mean = counts[tables].sum(axis=1).mean()
    remark = f"A fold selects {number(mean, 1)} features of the three tables on average."
    return by_folds(without, "All three tables are removed", remark)


def _true_voxels(evidence: Evidence) -> Verdict:
    """Reproduced where most voxels of every fold are true; in part where more than by chance.

    A share is above a value if the binomial 95 % interval of every fold lies above it. Intervals
    take voxels as independent, which neighbours are not, so that one fold alone says little. Where
    neither holds, the claim is not reproduced if the interval of some fold, at a level that is
    adjusted for the number of folds, lies below one half, and otherwise not decided.
    """
    if not evidence.simulated:
        return Verdict(UNTESTED, "The truth is not known; see the figure of the brain.")
    images = ["t1_intensity", "grey_matter"]
    truth = {pair for pair in evidence.effects() if pair[0] in images}
    hits = evidence.hits(PAPER, truth)  # true voxels that each fold selects
    features = evidence.features(PAPER)
    pairs = zip(features["view"], features["feature"], strict=True)
    selected = evidence.hits(PAPER, {pair for pair in pairs if pair[0] in images})
    if not selected.any():
        return Verdict(FAILS, "No voxel was selected.")
    # A voxel taken at random lies in a patch with this probability.
    chance = len(truth) / sum(evidence.result.data.n_features[v] for v in images)
    share = 100 * hits.sum() / selected.sum()
    counts = list(zip(hits, selected, strict=True))  # of each fold
    low = np.array([_ends(*count, 0.05)[0] for count in counts])
    high = np.array([_ends(*count, 0.05 / len(counts))[1] for count in counts])
    figures = (
        f"Over all folds {hits.sum():,} of {counted(selected.sum(), 'selected voxel')} "
        f"({number(share, 0)} %) lie in the patches with signal, which are "
        f"{number(100 * chance, 1)} % of the voxels. The binomial 95 % interval of this share lies "
        f"above 50 % in {int((low > 0.5).sum())} and above {number(100 * chance, 1)} % in "
        f"{int((low > chance).sum())} of {counted(len(low), 'fold')}."
    )
    if (low > 0.5).all():
        return Verdict(HOLDS, figures)
    outcome = IN_PART if (low > chance).all() else FAILS if (high < 0.5).any() else OPEN
    return Verdict(outcome, figures, "Voxels next to a patch count as wrong.")


def _ends(hits: int, selected: int, error: float) -> tuple[float, float]:
    """Return the ends of the exact interval of a share that misses it with probability `error`."""
    if not selected:
        return 0.0, 1.0
    interval = binomtest(int(hits), int(selected)).proportion_ci(1.0 - error)
    return float(interval.low), float(interval.high)


OUR_NUMBER = "The number was chosen by us; this is a count in one run and not a test."
FEW_GENOTYPES = 2
"""Chosen by us for the default, not a statistic. No simulated genotype has an effect, but some
of the 841,685 are associated with the diagnosis by chance about as strongly as a sleep item is, and
one or two of them may enter a fold."""
LEAST_SLEEP_ITEMS = 6
"""Chosen by us for the default, not a statistic: all seven have an effect, and the weakest may
be missed among some 170 training samples."""


def _default_first(evidence: Evidence) -> Verdict:
    """Decide whether our default has a higher AUC than every baseline."""
    others = [*evidence.baselines, *evidence.missing]
    verdict = decided(evidence, DEFAULT, others, "auc", "the default")
    if not evidence.baselines:
        return verdict
    means = evidence.table["auc"].astype(float)
    best = str(means[evidence.baselines].idxmax())
    over_folds = (
        f"Means over folds: the default {number(means[DEFAULT], 3)}, the highest of a baseline "
        f"{number(means[best], 3)} ({best})."
    )
    return replace(verdict, figures=f"{verdict.figures} {over_folds}")


def _default_items(evidence: Evidence) -> Verdict:
    hits = evidence.hits(DEFAULT, SLEEP_ITEMS)
    figures = f"{number(hits.mean(), 1)} on average; by fold {', '.join(map(str, hits.tolist()))}."
    return Verdict(HOLDS if hits.mean() >= LEAST_SLEEP_ITEMS else FAILS, figures, OUR_NUMBER)


def _default_genotypes(evidence: Evidence) -> Verdict:
    counts = evidence.selected(DEFAULT)["genetic"].to_numpy()
    figures = f"By fold {', '.join(map(str, counts.tolist()))}."
    return Verdict(HOLDS if counts.max() <= FEW_GENOTYPES else FAILS, figures, OUR_NUMBER)


CLAIMS: Mapping[str, Sequence[tuple[str, Callable[[Evidence], Verdict]]]] = {
    "biofind": (
        *map(_first, FIRST_IN["biofind"]),
        _first("recall"),
        ("Many baselines classify at chance level.", _at_chance),
        ("Lasso-MkSVM is a close competitor: it has the highest balanced accuracy of the "
         "baselines.", _second),
        ("BALDUR selects the fewest features of all models.", _fewest),
        ("BALDUR uses a single latent vector.", _one_factor),
        ("That vector uses the sleep view alone; all other views are removed.", _sleep_alone),
        ("Seven sleep items are selected in every fold.", _seven_items),
    ),
    "adni": (
        *map(_first, FIRST_IN["adni"]),
        ("LSVM-l1 and Lasso-MkSVM, which use information from all views, generalise worse "
         "(here: have a lower AUC).", _sparse_rivals),
        ("BALDUR selects few features (2.36 %).", _few),
        ("In each fold BALDUR uses one of the two images and not both.", _one_image),
        ("The tables of regions, which summarise the images, are removed in every fold.",
         no_tables),
        ("The selected voxels lie in regions that are linked with memory or dementia.",
         _true_voxels),
    ),
}  # fmt: skip
"""Study to the claims of the paper in its order, each with the function that decides it."""

DEFAULT_CLAIMS: Mapping[str, Sequence[tuple[str, Callable[[Evidence], Verdict]]]] = {
    "biofind": (
        ("The default has a higher AUC than every baseline.", _default_first),
        (f"On average over the folds of this run the default selects at least "
         f"{LEAST_SLEEP_ITEMS} of the seven sleep items.", _default_items),
        (f"In each fold of this run the default selects at most {FEW_GENOTYPES} genotypes.",
         _default_genotypes),
    ),
    "adni": (
        ("The default has a higher AUC than every baseline.", _default_first),
        ("The default uses no table of regions.", partial(no_tables, model=DEFAULT)),
    ),
}  # fmt: skip
"""Study to what this package claims of its default on the same folds."""

_OF_BASELINES = (_at_chance, _second)
"""Claims that need no row of BALDUR."""


def claims_of(evidence: Evidence, model: str = PAPER) -> list[Verdict]:
    """Return the verdicts on the claims of the paper, or on those about our default."""
    claims = (CLAIMS if model == PAPER else DEFAULT_CLAIMS)[evidence.protocol.name]
    ran = model in evidence.table.index
    return [
        replace(decide(evidence) if ran or decide in _OF_BASELINES else NO_ROW, claim=text)
        for text, decide in claims
    ]
