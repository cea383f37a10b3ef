"""What a study says to the comparison, and what the comparison says back."""

from __future__ import annotations

from typing import Any

from baldur.study.data import StudyData
from baldur.study.load import Study

__all__ = ["settings_of", "split_advice"]


def split_advice(text: str) -> tuple[str, str]:
    """Part a message into what is wrong and what to do."""
    what, _, fix = text.rstrip(".").rpartition("; ")
    return (what, fix) if what else (fix, "change the folds or the samples")


def settings_of(study: Study, found: StudyData) -> dict[str, Any]:
    """Return what the study and its data say to `nested_cv`."""
    return {
        "task": study.outcome["task"],
        "positive": found.positive,
        "scheme": study.folds["scheme"],
        "outer": study.folds["outer"],
        "inner": study.folds["inner"],
        "repeats": study.folds["repeats"],
        "groups": found.groups,
        "sites": found.sites,
        "split": found.split,
        "preparation": found.preparation,
        "metrics": study.report["metrics"],
        "select_by": study.folds["select_by"],
        "permutations": study.report["permutations"],
        "random_state": study.top["seed"],
    }
