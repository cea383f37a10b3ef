"""What this package claims of its default estimator on the folds of the paper's studies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from baldur.report.formatting import number
from baldur.reproduction.claims import SLEEP_ITEMS, no_tables
from baldur.reproduction.evidence import Evidence
from baldur.reproduction.protocol import DEFAULT
from baldur.reproduction.verdicts import (
    FAILS,
    HOLDS,
    NO_ROW,
    Claim,
    Verdict,
    decided,
)

OUR_NUMBER = "The number was chosen by us; this is a count in one run and not a test."
FEW_GENOTYPES = 2
"""Chosen by us for the default, not a statistic. No simulated genotype has an effect, but some
of the 841,685 are associated with the diagnosis by chance about as strongly as a sleep item is, and
one or two of them may enter a fold."""
LEAST_SLEEP_ITEMS = 6
"""Chosen by us for the default, not a statistic: all seven have an effect, and the weakest may
be missed among some 170 training samples."""


def default_claims(evidence: Evidence) -> list[Claim]:
    """Return what this package claims of its default on the same folds."""
    made: list[tuple[str, Callable[[Evidence], Verdict]]] = [
        ("The default has a higher AUC than every baseline.", _default_first)
    ]
    if evidence.protocol.name == "biofind":
        made += [
            (f"On average over the folds of this run the default selects at least "
             f"{LEAST_SLEEP_ITEMS} of the seven sleep items.", _default_items),
            (f"In each fold of this run the default selects at most {FEW_GENOTYPES} genotypes.",
             _default_genotypes),
        ]  # fmt: skip
    else:
        made.append(("The default uses no table of regions.", _default_tables))
    ran = DEFAULT in evidence.table.index
    return [Claim(text, decide(evidence) if ran else NO_ROW) for text, decide in made]


def _default_first(evidence: Evidence) -> Verdict:
    others = [*evidence.baselines, *evidence.missing]
    made = decided(evidence, DEFAULT, others, "auc", "the default")
    if not evidence.baselines:
        return made
    means = evidence.table["auc"].astype(float)
    top = str(means[evidence.baselines].idxmax())
    folds = (
        f"Means over folds: the default {number(means[DEFAULT], 3)}, the highest of a baseline "
        f"{number(means[top], 3)} ({top})."
    )
    return replace(made, figures=f"{made.figures} {folds}")


def _default_items(evidence: Evidence) -> Verdict:
    found = evidence.hits(DEFAULT, SLEEP_ITEMS)
    figures = (
        f"{number(found.mean(), 1)} on average; by fold {', '.join(map(str, found.tolist()))}."
    )
    return Verdict(HOLDS if found.mean() >= LEAST_SLEEP_ITEMS else FAILS, figures, OUR_NUMBER)


def _default_genotypes(evidence: Evidence) -> Verdict:
    found = evidence.selected(DEFAULT)["genetic"].to_numpy()
    figures = f"By fold {', '.join(map(str, found.tolist()))}."
    return Verdict(HOLDS if found.max() <= FEW_GENOTYPES else FAILS, figures, OUR_NUMBER)


def _default_tables(evidence: Evidence) -> Verdict:
    return no_tables(evidence, DEFAULT)
