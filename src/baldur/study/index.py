"""README.txt of an output folder: what is in it, and what to open first."""

from __future__ import annotations

from collections.abc import Collection

from baldur.safety.escape import one_line

__all__ = ["ABOUT", "INDEX", "REPORT", "index_text"]

INDEX = "README.txt"
REPORT = "report.html"

ABOUT = {
    REPORT: "the answer on one page, with figures; opens in any browser, without a network",
    "table.txt": "the comparison, one line per model; table.csv, .md and .tex hold the same",
    "intervals.csv": "every figure with its interval",
    "differences.csv": "differences between models with their intervals",
    "comparisons.csv": "tests of every pair of models, adjusted for their number",
    "permutation.csv": "tests against permuted labels",
    "selection.csv": "features: how often kept, and their weights, one row per class",
    "views.csv": "how often each view is used, and its share of the variance explained",
    "view_shares.csv": "the same in every fold",
    "stability.csv": "how far the folds agree on the features",
    "weights.csv": "the weight of every kept feature in every fold",
    "correlations.csv": "correlations between the features that half of the folds keep",
    "places.csv": "where selected variants, voxels or regions lie",
    "grids.json": "the grids of views made of images",
    "predictions.csv": "every held-out prediction; all figures follow from it and selection.csv",
    "presence.csv": "who has which view",
    "participants.csv": "characteristics of the participants, by outcome",
    "calibration.csv": "whether probabilities mean what they say",
    "calibration_curve.csv": "the same, drawn out as a curve",
    "decision.csv": "net benefit of acting on the predictions",
    "thresholds.csv": "sensitivity, specificity and predictive values at thresholds",
    "subgroups.csv": "figures in parts of the people",
    "learning_curve.csv": "scores against the number of training rows",
    "sample_size.csv": "how many samples a study of this kind needs",
    "harmonisation.csv": "what was taken out of each site's measurements",
    "left_out.csv": "figures that are not given, and why",
    "folds.csv": "scores of every fold",
    "settings.csv": "the settings that were chosen in every fold",
    "table_folds.md": "the comparison as mean and s.d. over folds; table_folds.tex is the same",
    "study.toml": "the study as it was run",
    "run.json": "counts, versions, notes and findings, for programs that read this folder",
    "log.txt": "what happened, with warnings and times",
    "jobs": "finished jobs, so that the same command continues; may be deleted at the end",
}
"""File to what it holds, in the order of reading."""

_FIRST = (REPORT, "table.txt", "selection.csv", "views.csv", "predictions.csv")


def index_text(title: str, names: Collection[str]) -> str:
    """Return the text of the index.

    Parameters
    ----------
    title : str
        Of the study.
    names : collection of str
        Files and folders that are there.

    Returns
    -------
    str
    """
    width = max(len(name) for name in ABOUT)
    there = {name: about for name, about in ABOUT.items() if name in names}
    first = [name for name in _FIRST if name in there]
    rest = [name for name in there if name not in first]

    def listed(which: list[str]) -> list[str]:
        return [f"  {name:<{width}}  {there[name]}" for name in which]

    lines = [
        one_line(title) or "Results of a study",
        "",
        "Open first:",
        *listed(first),
        "",
        "Then:",
    ]
    return "\n".join([*lines, *listed(rest)]) + "\n"
