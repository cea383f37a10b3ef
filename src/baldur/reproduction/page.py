"""The page of a reproduction: its facts, tables and figures; its texts are in a template.

``report/templates/reproduction.j2`` has the texts, for both forms of the page.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

from baldur import plots
from baldur.core.optional import import_extra
from baldur.report.formatting import Cell, Column, Table, listed, number, p_value
from baldur.report.pictures import Picture, Plan, draw
from baldur.report.render import asset, generator, template
from baldur.reproduction.claims import CHANCE, FIRST_IN, claims_of
from baldur.reproduction.evidence import (
    FAILS,
    HOLDS,
    IN_PART,
    OPEN,
    UNTESTED,
    Evidence,
    Verdict,
    gap_texts,
)
from baldur.reproduction.printed import (
    CHECKS,
    POSITIVE_SHARE,
    PRINTED,
    PrintedRow,
    percent_texts,
)
from baldur.reproduction.protocol import DEFAULT, FIXED, GRIDS, PAPER
from baldur.views.validate import counted

NAMES = {PAPER: "BALDUR, the paper's posterior", DEFAULT: "BALDUR, our default"}
"""What our two rows are called on the page."""
FIGURES = "figures"
"""Folder of the figures of the Markdown page."""
_DPI = 110  # about 570 pixels wide, and some tens of kilobytes

_KINDS: Mapping[str, tuple[Any, str]] = {
    "features": (
        plots.FoldWeightsDisplay,
        "features selected in each fold and their absolute weights, as in the paper's figure of "
        "features per fold",
    ),
    "brain": (
        plots.BrainDisplay,
        "voxels that at least one fold selects, with mean weights, and their overlap, as in the "
        "paper's figure of brain regions",
    ),
}
"""Kind of a figure to the class that draws it, and its caption."""


def html_of(page: Mapping[str, Any]) -> str:
    """Return a page (`page_of`) as one HTML file, in the style of the report."""
    markup = import_extra("markupsafe", "report", "A report")

    def prose(text: Any) -> Any:
        """Return escaped text with code; no line breaks before a sign of per cent."""
        line = _one_line(markup.escape(text)).replace(" %", "&nbsp;%")
        return markup.Markup(re.sub("`([^`]+)`", r"<code>\1</code>", line))

    return _render(page, "reproduction.html.j2", prose).strip() + "\n"


def markdown_of(page: Mapping[str, Any]) -> str:
    """Return a page (`page_of`) as Markdown; figures are links to their files."""
    text = _render(page, "reproduction.md.j2", _one_line)
    # The template puts a form feed before every block.
    return "\n\n".join(block.strip() for block in text.split("\f") if block.strip()) + "\n"


def _render(page: Mapping[str, Any], form: str, prose: Callable[[Any], Any]) -> str:
    """Return the page in a form, the name of a template; `prose` prepares its texts."""
    text: str = template("reproduction.j2", html="html" in form).render(
        page,
        form=form,
        prose=prose,
        generator=generator(),
        anchor=_anchor,
        style=asset("style.css"),
    )
    return text


def _one_line(text: Any) -> str:
    return re.sub("[ \n]+", " ", str(text)).strip()


def _anchor(heading: str) -> str:
    return re.sub("[',]", "", heading.lower().replace(" ", "-"))


def page_of(evidence: Evidence, request: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the variables of the templates for the page of a finished run.

    Its figures are written into the folder as PNG files, for the Markdown page.
    """
    protocol, data = evidence.protocol, evidence.result.data
    claims, adni = claims_of(evidence), protocol.name == "adni"
    verdicts = Counter(claim.outcome for claim in claims)
    outcomes = [
        f"{verdicts[name]} {'is' if verdicts[name] == 1 else 'are'} {name}"
        for name in (HOLDS, IN_PART, OPEN, FAILS, UNTESTED)
        if verdicts[name]
    ]
    return {
        "adni": adni,
        "request": request,
        "protocol": protocol,
        "simulated": evidence.simulated,
        "data_name": Path(str(request.get("data"))).name,
        "people": f"{len(data):,}",
        "n_views": len(data.n_features),
        "n_features": f"{sum(data.n_features.values()):,}",
        "missing": [NAMES.get(m, m) for m in protocol.rows if m not in evidence.table.index],
        "claims": claims,
        "outcomes": listed(outcomes),
        "default_claims": _in_our_words(claims_of(evidence, DEFAULT)),
        "default_ran": DEFAULT in evidence.table.index,
        "differences": difference_table(evidence),
        "n_folds": evidence.n_folds,
        "both": _both_tables(evidence),
        "not_run": [f"{NAMES.get(m, m)}: {why}." for m, why in (evidence.not_run or {}).items()],
        "orders": _orders(evidence),
        "sizes": _sizes(evidence),
        "share": POSITIVE_SHARE[protocol.name],
        "implied": _printed_check(evidence),
        "selected": _selected_features(evidence),
        "features": _figures(evidence, "features", folder),
        "brain": _figures(evidence, "brain", folder) if adni else ([], []),
        "plan": evidence.result.comparison.plan,
        "settings": _settings(),
    }


def _in_our_words(claims: list[Verdict]) -> list[Verdict]:
    """Return claims of this package, which hold or not; those of the paper are reproduced."""
    words = {HOLDS: "holds", IN_PART: "holds in part", FAILS: "does not hold"}
    words |= {OPEN: OPEN, UNTESTED: UNTESTED}
    return [replace(c, outcome=words[c.outcome]) for c in claims]


def _table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[Cell | str]]) -> Table:
    cells = [[c if isinstance(c, Cell) else Cell(c) for c in row] for row in rows]
    return Table("", caption, [Column(name) for name in columns], cells)


def _selected_features(evidence: Evidence) -> Table:
    """Return the mean number of selected features of each view."""
    views = list(evidence.result.data.n_features)
    rows: list[list[Cell | str]] = []
    for model in _drawn(evidence):
        counts = evidence.selected(model)
        used = [f"{int((counts[v] > 0).sum())} of {counted(len(counts), 'fold')}" for v in views]
        means = [number(counts[v].mean(), 1) for v in views]
        cells = [Cell(mean, small=text) for mean, text in zip(means, used, strict=True)]
        rows.append([NAMES[model], *cells])
    caption = "Selected features: mean over folds (folds that use the view)"
    return _table(caption, ["Model", *views], rows)


def _drawn(evidence: Evidence) -> list[str]:
    return [model for model in NAMES if model in evidence.table.index]


def _figures(evidence: Evidence, kind: str, folder: Path) -> tuple[list[Picture], list[str]]:
    """Return a kind of figure of both models, and which cannot be drawn, in words.

    They are for the HTML page; for the Markdown page they are written as PNG files.
    """
    display, caption = _KINDS[kind]
    plans = {}
    for model in _drawn(evidence):
        name = f"{evidence.protocol.name}-{kind}-{'paper' if model == PAPER else 'default'}"
        make = partial(display.from_result, evidence.result, model)
        plans[name] = Plan(name, "", f"{NAMES[model]}: {caption}", make, wide=True)
    pictures, not_drawn = draw(list(plans.values()))
    for picture in pictures:
        plot = plans[picture.id].make().plot(theme="light")
        plot.save(folder / FIGURES / f"{picture.id}.png", dpi=_DPI)
    return pictures, [f"Not drawn: {text}" for text in not_drawn]


HEADINGS = {
    "accuracy": "Accuracy", "balanced_accuracy": "Balanced accuracy", "precision": "Precision",
    "recall": "Recall", "f1": "F1", "auc": "AUC",
}  # fmt: skip
"""Names of the metrics as the paper spells them out."""

_SPACE = "\u00a0"  # at which no line breaks
_FEWEST_ROWS = 4  # below which a correlation of ranks says nothing
_ORDERS = 9999  # orders drawn for the p-value of a correlation, whose s.d. is then at most .005


def difference_table(evidence: Evidence) -> Table | None:
    """Return the differences of our two rows from every baseline, with simultaneous intervals."""
    wanted = [(PAPER, metric) for metric in FIRST_IN[evidence.protocol.name]] + [(DEFAULT, "auc")]
    wanted = [pair for pair in wanted if pair[0] in evidence.table.index]
    if not wanted or not evidence.baselines:
        return None
    columns = []
    for model, metric in wanted:
        differences = evidence.differences(model, evidence.baselines, metric)
        texts = (gap_texts(*interval) for interval in differences.itertuples(index=False))
        columns.append([Cell(value, small=ends) for value, ends in texts])
    heads = [HEADINGS[metric] + ", our default" * (model == DEFAULT) for model, metric in wanted]
    rows = list(zip(evidence.baselines, *columns, strict=True))
    return _table("Difference, with its interval", ["Baseline", *heads], rows)


def _both_tables(evidence: Evidence) -> Table:
    """Return our table beside the printed one."""
    printed = PRINTED[evidence.protocol.name]
    rows: list[list[Cell | str]] = []
    for name in evidence.protocol.rows:
        row = printed.get("BALDUR" if name == PAPER else name) if name != DEFAULT else None
        rows.append([NAMES.get(name, name), *_cells(evidence, name, row)])
    columns = ["Model", *HEADINGS.values(), "% features"]
    return _table("Results, here and in the paper", columns, rows)


def _cells(evidence: Evidence, model: str, printed: PrintedRow | None) -> list[Cell]:
    """Return a row of our table: metrics and share of features, in small type as in the paper."""
    columns = [*HEADINGS, "percent"]
    ours, theirs = dict.fromkeys(columns, "not run"), dict.fromkeys(columns, "")
    if model in evidence.table.index:
        row, percent = evidence.table.loc[model], evidence.percent(model)
        ours = {metric: _mean_sd(row[metric], row[f"{metric}_sd"]) for metric in HEADINGS}
        ours["recall"] += " *" if str(row["note"]).startswith(CHANCE) else ""
        ours["percent"] = _percent(float(percent.mean()), float(percent.std(ddof=1)))
    if printed is not None:
        for metric, cell in printed.cells.items():
            theirs[metric] = "paper –" if cell is None else f"paper{_SPACE}{_mean_sd(*cell)}"
        theirs["recall"] += f"{_SPACE}*" if printed.chance else ""
        theirs["percent"] = f"paper {_percent(*printed.percent)}"
    return [Cell(ours[column], small=theirs[column]) for column in columns]


def _mean_sd(mean: Any, sd: Any) -> str:
    return f"{number(mean)}{_SPACE}±{_SPACE}{number(sd, small=True)}"


def _percent(mean: float, sd: float) -> str:
    return f"{_SPACE}±{_SPACE}".join(percent_texts(mean, sd)) if sd > 0 else number(mean)


def _orders(evidence: Evidence) -> Table:
    """Return how far the order of the rows is that of the paper, metric by metric."""
    # The printed rows by our names of the models.
    printed = {
        PAPER if name == "BALDUR" else name: row
        for name, row in PRINTED[evidence.protocol.name].items()
    }
    rows = []
    for metric in HEADINGS:
        values = evidence.table[metric].astype(float).to_dict()
        pairs = [
            (row.mean(metric), values[name])
            for name, row in printed.items()
            if row.cells[metric] is not None and name in values
        ]
        correlation = (float("nan"), float("nan"))
        if len(pairs) >= _FEWEST_ROWS:
            correlation = _rank_correlation(*zip(*pairs, strict=True))
        cells = number(correlation[0], sign=True), p_value(correlation[1])
        rows.append([HEADINGS[metric], str(len(pairs)), *cells])
    return _table("Agreement of orders", ["Metric", "Rows", "Rank correlation", "P"], rows)


def _rank_correlation(printed: Sequence[float], ours: Sequence[float]) -> tuple[float, float]:
    """Return Spearman's correlation, and its two-sided p-value by random orders of our rows."""
    ranks = [rankdata(values) for values in (printed, ours)]
    # Of mean 0 and length 1, so that their product is the correlation; NaN where all are tied.
    x, y = ((r - r.mean()) / (np.linalg.norm(r - r.mean()) or np.nan) for r in ranks)
    rho = float(y @ x)
    if np.isnan(rho):
        return rho, rho
    orders = np.random.default_rng(0).permuted(np.tile(y, (_ORDERS, 1)), axis=1)
    as_far = np.abs(orders @ x) >= abs(rho) - 1e-12  # ties differ by rounding
    return rho, float((1 + as_far.sum()) / (1 + _ORDERS))


def _sizes(evidence: Evidence) -> Table:
    """Return the numbers of people and features, in the paper and here."""
    protocol, widths = evidence.protocol, evidence.result.data.n_features
    # The positive class comes first, as in the protocol.
    people = np.bincount(evidence.result.truth.astype(int))[::-1].tolist()
    classes = [str(c) for c in evidence.result.classes][::-1]
    of_classes = zip(classes, protocol.counts, people, strict=False)
    sizes = [
        *((f"People, {name}", paper, here) for name, paper, here in of_classes),
        *((f"Features, {v}", width, widths.get(v, 0)) for v, width in protocol.views.items()),
    ]
    rows = [[name, f"{paper:,}", f"{here:,}"] for name, paper, here in sizes]
    return _table("Size of the cohort", ["", "Paper", "Here"], rows)


def _printed_check(evidence: Evidence) -> Table:
    """Return whether precision and recall of each printed row fit its accuracies (see `CHECKS`)."""
    checked = ("precision", "recall", "accuracy", "balanced_accuracy")
    rows: list[list[Cell | str]] = []
    for name, row in PRINTED[evidence.protocol.name].items():
        fit = CHECKS[evidence.protocol.name][name]
        far = f"off by {number(fit.off_by, 3)}" if fit.off_by > 0.0 else ""
        values = [number(row.mean(m)) for m in checked]
        rows.append([name, *values, fit.as_printed, fit.exchanged, Cell(fit.reading, small=far)])
    columns = (
        "Model", "Precision", "Recall", "Accuracy", "Balanced accuracy", "Implied as printed",
        "Implied if exchanged", "Precision and recall fit",
    )  # fmt: skip
    return _table("Implied: accuracy, balanced accuracy", columns, rows)


def _settings() -> Table:
    """Return the settings of the baselines that are searched, and those that are not."""
    rows = []
    for name in dict.fromkeys([*GRIDS, *FIXED]):
        grid = [
            f"{key} = {', '.join(map(str, values))}" for key, values in GRIDS.get(name, {}).items()
        ]
        fixed = [f"{key} = {value}" for key, value in FIXED.get(name, {}).items()]
        rows.append([name, "; ".join(grid) or "nothing", "; ".join(fixed)])
    return _table("Settings of the baselines", ["Model", "Searched", "Fixed"], rows)
