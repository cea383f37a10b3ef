"""Is a linear model enough? Forests and boosted trees against the linear models of a study."""

from __future__ import annotations

from dataclasses import dataclass

from baldur.model_catalog import LINEAR_MODELS, TREE_MODELS
from baldur.report.evidence import differences_between
from baldur.report.formatting import estimate, listed, short
from baldur.report.results import StudyResults
from baldur.report.sentences import NOT_SHOWN, SHOWN, UNKNOWN, Case, Interval, Sentence, case_of

QUESTION = "Is a linear model enough?"


@dataclass(frozen=True)
class LinearEvidence:
    """Evidence on models of trees against linear models."""

    gains: dict[str, dict[str, Interval]]
    metric: str  # Its name

    @property
    def known(self) -> bool:
        """Whether at least one difference has an interval."""
        return any(d.known for own in self.gains.values() for d in own.values())

    @property
    def better(self) -> list[str]:
        """Models of trees that are shown to be better than every linear model."""
        return [
            tree
            for tree, own in self.gains.items()
            if all(d.known and d.low > 0 for d in own.values())
        ]

    @property
    def worse(self) -> list[str]:
        """Models of trees than which at least one linear model is shown to be better."""
        return [
            tree
            for tree, own in self.gains.items()
            if any(d.known and d.high < 0 for d in own.values())
        ]

    def named(self, trees: list[str]) -> str:
        """Return models of trees, each with the difference that is least in its favour."""
        return listed([f"{short(tree)} ({self.figure(tree)})" for tree in trees], 4)

    def figure(self, tree: str) -> str:
        """Return the difference to a linear model that is least in favour of the trees.

        Where trees are worse it is one that shows so, and otherwise that of the smallest estimate.
        """
        own = {name: d for name, d in self.gains[tree].items() if d.known}
        if not own:
            return "no interval"
        by = "high" if tree in self.worse else "estimate"
        name = min(own, key=lambda one: getattr(own[one], by))
        d = own[name]
        return f"{estimate(d.estimate, d.low, d.high, 3, sign=True)} against {short(name)}"

    @property
    def legend(self) -> str:
        """Explanation of the differences."""
        many = sum(len(own) for own in self.gains.values())
        text = (
            f"Numbers are differences in {self.metric} on the same held-out people, with 95 % "
            "intervals from the paired bootstrap."
        )
        if many > 1:
            text += (
                f" There are {many} comparisons of trees with a linear model, each taken alone; of "
                "each model of trees the one that is least in its favour is shown."
            )
        return text


LINEAR = (
    Case(
        "no interval", UNKNOWN, lambda e: not e.known,
        lambda e: "This cannot be determined: no difference between models of trees and linear "
        "models could be estimated with an interval.",
    ),
    Case(
        "trees are better", NOT_SHOWN, lambda e: bool(e.better),
        lambda e: f"No: {e.named(e.better)} "
        f"{'predicts' if len(e.better) == 1 else 'predict'} better than every linear model of the "
        f"study. {e.legend}",
    ),
    Case(
        "trees are worse", SHOWN, lambda e: len(e.worse) == len(e.gains),
        lambda e: f"Yes, nothing was gained by trees: {e.named(e.worse)} "
        f"{'predicts' if len(e.worse) == 1 else 'predict'} worse than a linear model. {e.legend}",
    ),
    Case(
        "not distinguished", UNKNOWN, lambda e: True,
        lambda e: "This cannot be determined: no gain by trees was shown, but none is excluded: "
        f"{e.named(list(e.gains))}. {e.legend}",
    ),
)  # fmt: skip


def linear_evidence(run: StudyResults) -> LinearEvidence | None:
    """Return the evidence on models of trees; None where the study has none, or no linear model."""
    there = run.with_all_views
    trees = [name for name in there if name in TREE_MODELS]
    linear = [name for name in there if name in LINEAR_MODELS]
    gains: dict[str, dict[str, Interval]] = {}
    heading = ""
    for tree in trees:
        found = differences_between(run, tree)
        if found is None:
            continue
        own = {name: d for name, d in found.differences.items() if name in linear}
        if own:
            gains[tree], heading = own, found.metric
    return LinearEvidence(gains, heading) if gains else None


def linear_answer(run: StudyResults) -> Sentence | None:
    """Return whether a linear model is enough; None where there is nothing to compare."""
    evidence = linear_evidence(run)
    if evidence is None:
        return None
    case = case_of(LINEAR, evidence)
    return Sentence(QUESTION, case.text(evidence), case.outcome)
