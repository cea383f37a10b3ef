"""What is on the page of a reproduction: the claims, both tables, the figures, and how it ran."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from baldur.report.formatting import listed
from baldur.reproduction.claims import claims_of, default_claims
from baldur.reproduction.document import Document, Section, Table
from baldur.reproduction.evidence import FAILS, HOLDS, IN_PART, OPEN, UNTESTED, Claim, Evidence
from baldur.reproduction.protocol import DEFAULT, FIXED, GRIDS
from baldur.reproduction.tables import (
    NAMES,
    both_tables,
    brain_maps,
    difference_table,
    printed_check,
    selected_features,
)

CITATION = (
    'A. Belenguer-Llorens, C. Sevilla-Salcedo, J. Tohka and V. Gómez-Verdejo in "Unified Bayesian '
    "representation for high-dimensional multi-modal biomedical data for small-sample "
    'classification" (arXiv)'
)
PRINTED_HEADING = "Precision and recall in the printed table"
_SIZE_NOTES = {
    "adni": "The paper gives the number of voxels of the T1 intensities alone; grey matter is "
    "taken to have as many."
}
"""What has to be known about the sizes that are given as the paper's."""
_WIDE = {"biofind": "genotypes", "adni": "voxels"}  # what the scale is about


def page_of(evidence: Evidence, request: dict[str, Any], folder: Path) -> Document:
    """Return the page of a finished run; its figures are written as PNG files as well."""
    protocol = evidence.protocol
    claims, ours = claims_of(evidence), default_claims(evidence)
    sections = [
        Section("Summary", _summary(claims)),
        Section("Our default", _default(ours, DEFAULT in evidence.table.index)),
        Section("Differences from every baseline", difference_table(evidence)),
        Section("Both tables, side by side", both_tables(evidence)),
        Section("What can be compared", _comparable(evidence)),
        Section(PRINTED_HEADING, printed_check(evidence)),
        Section("Selected features", selected_features(evidence, folder)),
    ]
    if protocol.name == "adni":
        sections.append(Section("Brain maps", brain_maps(evidence, folder)))
    sections.append(Section("How it was run", _how(evidence, request)))
    data = "simulated data" if evidence.simulated else "the data that were given"
    title = f"The paper's study of {protocol.cohort}, run again on {data}"
    return Document(title, _lead(evidence, request), sections)


def _lead(evidence: Evidence, request: dict[str, Any]) -> list[str]:
    """Return which paper, what was run and how, on whose data, and what is missing."""
    protocol, data = evidence.protocol, evidence.result.data
    width = sum(data.n_features.values())
    size = f"{len(data):,} people, {len(data.n_features)} views and {width:,} features"
    printed = f'the values that are given as the paper\'s and the section "{PRINTED_HEADING}"'
    lead = [
        f"For readers of the paper: the study of {protocol.cohort} ({protocol.disease}) by "
        f"{CITATION}, run again with its eleven baselines, its model BALDUR and the default "
        f"estimator of this package. Command: `{request['command']}`, started on "
        f"{request['date']}."
    ]
    if evidence.simulated:
        scale = float(request["scale"])
        part = (
            f", with {100 * scale:g} % of the paper's {_WIDE[protocol.name]}" if scale < 1 else ""
        )
        lead.append(
            "The people are simulated, because the real data may not be passed on "
            f"({size}{part}). All results and verdicts on this page are about simulated people, "
            f"except for {printed}, which are about the real ones."
        )
    else:
        lead.append(
            f"The data are the files in the folder `{Path(request['data']).name}` ({size}). All "
            f"results and verdicts on this page are about these people, except for {printed}."
        )
    if request["quick"]:
        lead.append(
            "This is a quick run: five folds, and no search of settings. It serves to try the "
            "command; its verdicts do not replace those of the whole protocol."
        )
    missing = [NAMES.get(m, m) for m in protocol.rows if m not in evidence.table.index]
    if missing:
        lead.append(
            f"This run is not complete: {len(missing)} of {len(protocol.rows)} models have no "
            f"figures ({listed(missing, most=len(missing))})."
        )
    return lead


# -- claims ----------------------------------------------------------------------------------------


def _summary(claims: list[Claim]) -> list[Any]:
    counts = Counter(claim.verdict.outcome for claim in claims)
    said = [
        f"{counts[name]} {'is' if counts[name] == 1 else 'are'} {name}"
        for name in (HOLDS, IN_PART, OPEN, FAILS, UNTESTED)
        if counts[name]
    ]
    first = f"Of the {len(claims)} claims of the paper that this page examines, {listed(said)}."
    how = (
        "A claim that a model is the best is decided by its differences from every baseline, with "
        "95 % intervals that hold for all of them at once (from the largest standardised deviation "
        "in paired bootstrap resamples of the held-out predictions): it is reproduced if all "
        "intervals lie above 0, not reproduced if one lies below 0, not tested if a baseline that "
        "could decide has no figures, and otherwise not decided. "
        "Resamples are of people; models are not fitted again. Claims about selected features are "
        "decided fold by fold."
    )
    return [first, how, claims]


def _default(claims: list[Claim], ran: bool) -> list[Any]:
    lead = (
        "The default estimator of this package, `BaldurClassifier`, "
        f"{'was run on the same folds' if ran else 'has no results in this run'}. It is linear in "
        "all views, as the paper's model is; its priors, its posterior and its rule of selection "
        "are others."
    )
    words = {HOLDS: "holds", IN_PART: "holds in part", FAILS: "does not hold"}
    verdicts = [
        replace(c.verdict, outcome=words.get(c.verdict.outcome, c.verdict.outcome)) for c in claims
    ]
    return [lead, [Claim(c.text, verdict) for c, verdict in zip(claims, verdicts, strict=True)]]


# -- what can be compared --------------------------------------------------------------------------


def _comparable(evidence: Evidence) -> list[Any]:
    if not evidence.simulated:
        return [
            "The data are a user's own. Values can be compared with those of the paper if people, "
            "features and preparation are the same; folds differ, because the paper does not list "
            "them.",
            *_sizes(evidence),
        ]
    return [
        "Which model is better than which, how many features are selected, and whether they are "
        "the right ones can be compared with the paper. Values cannot: how strong the simulated "
        "signal is was our choice (see the documentation of the simulators in "
        "`baldur.datasets`). The views that have signal were chosen after the paper's results: "
        "that a model selects them shows that it finds the simulated signal, and says nothing "
        "about the disease.",
        [
            "Comparable: the order of the rows, views and features that are selected, their "
            "number, agreement between folds.",
            "Not comparable: the values of accuracy, AUC and the like; the share of features where "
            "the scale is below 1, because fewer features are there.",
            "The paper lists neither its folds nor the settings that it searched; ours are below.",
        ],
        *_sizes(evidence),
    ]


def _sizes(evidence: Evidence) -> list[Any]:
    protocol, data = evidence.protocol, evidence.result.data
    people = np.bincount(evidence.result.truth.astype(int))[::-1]
    classes = [str(c) for c in evidence.result.classes][::-1]
    rows = [
        [f"People, {name}", f"{paper:,}", f"{int(here):,}"]
        for name, paper, here in zip(classes, protocol.counts, people, strict=False)
    ]
    rows += [
        [f"Features, {view}", f"{width:,}", f"{data.n_features.get(view, 0):,}"]
        for view, width in protocol.views.items()
    ]
    table = Table("Size of the cohort", ["", "Paper", "Here"], rows)
    note = _SIZE_NOTES.get(protocol.name)
    return [table, note] if note else [table]


# -- how -------------------------------------------------------------------------------------------


def _how(evidence: Evidence, request: dict[str, Any]) -> list[Any]:
    plan = evidence.result.comparison.plan
    folds, quick = evidence.protocol.folds, request["quick"]
    items = [
        f"Command: `{request['command']}`, started on {request['date']}.",
        f"Nested cross-validation with {plan.outer} outer folds, stratified by class, and "
        f"{plan.inner} inner folds{'' if quick else '; settings are selected by AUC'}. The paper "
        f"has a {folds}-fold nested cross-validation, which we take as {folds} outer and {folds} "
        "inner folds, and does not say by which metric settings were selected.",
        "BALDUR with the paper's posterior has the primal form in all views, which is the "
        "posterior of the dual form with all training samples as relevance vectors, and starts "
        "with one latent factor.",
        "The command also writes all tables, predictions and the ordinary report, to the folder "
        "`results`.",
    ]
    if quick:
        return [
            items,
            "No settings were searched: models have the defaults of their class, or the settings "
            "that `study.toml` lists. Inner folds only calibrate the scores of some models.",
        ]
    rows = [[name, _grid(grid), _fixed(name)] for name, grid in GRIDS.items()]
    rows += [[name, "nothing", _fixed(name)] for name in FIXED if name not in GRIDS]
    return [items, Table("Settings of the baselines", ["Model", "Searched", "Fixed"], rows)]


def _grid(grid: Any) -> str:
    return "; ".join(f"{key} = {', '.join(map(str, values))}" for key, values in grid.items())


def _fixed(name: str) -> str:
    return "; ".join(f"{key} = {value}" for key, value in FIXED.get(name, {}).items())
