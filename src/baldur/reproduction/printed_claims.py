"""What the printed table itself says about a claim that BALDUR is the best of all."""

from __future__ import annotations

from baldur.report.formatting import listed, number
from baldur.reproduction.arithmetic import fits_of
from baldur.reproduction.printed import PRINTED
from baldur.reproduction.protocol import Protocol

METRIC_WORDS = {
    "accuracy": "accuracy", "balanced_accuracy": "balanced accuracy", "recall": "recall",
    "f1": "F1 score", "auc": "AUC",
}  # fmt: skip
"""Names of the metrics inside a sentence."""


def printed_remark(protocol: Protocol, metric: str) -> str:
    """Return what a reader of the claim has to know about the printed values; empty if nothing.

    Examples
    --------
    >>> from baldur.reproduction.printed_claims import printed_remark
    >>> from baldur.reproduction.protocol import protocol_of
    >>> printed_remark(protocol_of("adni"), "accuracy")
    "In the paper's table the accuracy of PCA-AWDR is as high (0.78)."
    """
    rows = dict(PRINTED[protocol.name])
    mine = rows.pop("BALDUR")
    word, best = METRIC_WORDS[metric], mine.mean(metric)
    said = []
    equal = [name for name, row in rows.items() if row.mean(metric) >= best and not row.chance]
    if equal:
        said.append(
            f"In the paper's table the {word} of {listed(equal)} is as high ({number(best)})."
        )
    unknown = sum(row.cells[metric] is None for row in rows.values())
    if unknown:
        said.append(f"The paper prints no {word} for {unknown} of its {len(rows)} baselines.")
    if metric == "recall":
        fit = fits_of(PRINTED[protocol.name], *protocol.counts, protocol.folds)["BALDUR"]
        if fit.reading == "exchanged":
            said.append(
                f"The recall that the paper prints for BALDUR, {number(best)}, fits its accuracies "
                f"only as a precision; its recall is then {number(mine.mean('precision'))}."
            )
    return " ".join(said)
