"""The samples table of a study, and what its columns and ids have to be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from baldur.core.escape import check_names
from baldur.core.paths import is_below
from baldur.core.schema import nearest
from baldur.evaluation.design import read_label_matrix, yes_or_no
from baldur.exceptions import BaldurError, InputError
from baldur.io.align import simplify_id
from baldur.io.tables import read_text_table
from baldur.io.view_sections import TableView
from baldur.study.config import StudyConfig
from baldur.study.suspicious_data import variants
from baldur.views import MultiView

# Share of the columns of a table that have to be named as samples to call it transposed.
# Descriptions of features may stand beside them.
_TRANSPOSED = 0.5


def read_samples(config: StudyConfig) -> pd.DataFrame:
    """Return the samples table as text, indexed by id, missing cells empty."""
    path = config.folder / config.samples.file
    if not is_below(path, [config.folder, *config.roots], strictly=True):
        raise config.problem(
            "samples.file", f"{path} lies outside the folder of the study",
            "move it there, or name its folder with --data",
        )  # fmt: skip
    with config.errors_at(
        "samples.file", "correct or replace the file", without_extra="or save the table as CSV"
    ):
        table = read_text_table(path, **config.samples.reader_options())
        check_names(table.columns, "column name", path.name)
    check_column(config, "samples.id", config.samples.id, table)
    ids = table[config.samples.id]
    # Ids, classes and levels become names in results.
    become_names = [("samples.id", config.samples.id)]
    become_names += [("outcome.column", column) for column in config.outcome.names]
    for key, columns in config.covariates:
        become_names += [(f"covariates.{key}", column) for column in columns]
    for key, column in become_names:
        if column in table.columns:
            with config.errors_at(key, "correct the table"):
                check_names(table[column].unique().tolist(), "name", f"column {column!r}")
    if (ids == "").any():
        row = int(np.flatnonzero((ids == "").to_numpy())[0])
        raise config.problem(
            "samples.id", f"row {row + 1} of {path.name} has no id", "fill it in or drop the row"
        )
    if ids.duplicated().any():
        twice = ids[ids.duplicated()].iloc[0]
        raise config.problem(
            "samples.id", f"{twice!r} occurs more than once in column {ids.name!r} of {path.name}",
            "make ids unique; repeated visits need an id each and samples.group",
        )  # fmt: skip
    return table.set_index(pd.Index(ids, name=None))


def check_column(config: StudyConfig, key: str, column: str, table: pd.DataFrame) -> None:
    """Refuse the name of a column that the table does not have, or has twice."""
    if column not in table.columns:
        raise config.problem(
            key, f"{config.samples.file} has no column {column!r}", nearest(column, table.columns)
        )
    if list(table.columns).count(column) > 1:
        raise config.problem(
            key, f"{config.samples.file} has two columns {column!r}", "rename one of them"
        )


def read_outcome(
    config: StudyConfig, table: pd.DataFrame
) -> tuple[np.ndarray | pd.DataFrame, str | None]:
    """Return the outcome of a study, and its positive class where one is named.

    Labels are text; several outcomes are 0 and 1, a column for each. Refused are outcomes that are
    not numbers, or whose classes cannot be distinguished.
    """
    if config.outcome.columns:
        return _read_several(config, table), None
    cells = table[config.outcome.column]
    if not config.classification:
        numbers = pd.to_numeric(cells, errors="coerce")
        if numbers.isna().any():
            raise config.problem(
                "outcome.column",
                f"{cells.name!r} has {cells[numbers.isna()].iloc[0]!r} for a number",
                'correct it, or use task = "classification"',
            )
        return pd.to_numeric(cells).to_numpy(), None
    classes = sorted(cells.unique())
    if len(classes) < 2:
        raise config.problem(
            "outcome.column", f"{cells.name!r} has one class only, {classes[0]!r}",
            "two or more are needed; name another column or check the samples",
        )  # fmt: skip
    single = [c for c in classes if (cells == c).sum() == 1]
    # A class of one sample is often another way of writing a class.
    twins = variants("outcome.column", str(cells.name), classes) if single else []
    if twins:
        raise config.problem(*twins[0])
    # With more classes than that, the column is no outcome of classes at all (below).
    if single and len(classes) <= len(cells) / 4:
        raise config.problem(
            "outcome.column", f"class {single[0]!r} of {cells.name!r} has one sample only",
            "leave it out (an empty cell does), correct it, or merge classes",
        )  # fmt: skip
    if len(classes) > 20 and len(classes) > len(cells) / 4:
        raise config.problem(
            "outcome.task", f"{cells.name!r} has {len(classes)} different values, not classes",
            'use task = "regression" or name another column',
        )  # fmt: skip
    labels, positive = cells.to_numpy(dtype=str), config.outcome.positive
    if positive is None:
        return labels, None
    label = find_label(positive, classes)
    if label is None:
        raise config.problem(
            "outcome.positive", f"{cells.name!r} has no class {positive!r}",
            f"it has {', '.join(classes[:10])}",
        )  # fmt: skip
    if len(classes) > 2:
        raise config.problem(
            "outcome.positive", f"{cells.name!r} has {len(classes)} classes, not two",
            "leave positive out",
        )  # fmt: skip
    return labels, label


def find_label(given: Any, classes: list[str]) -> str | None:
    """Return the class that text, a number or a truth value stands for, or None."""
    if isinstance(given, str):
        return given if given in classes else None
    if isinstance(given, bool):
        matching = [c for c in classes if c.casefold() == str(given).casefold()]
        # Truth values are often written as 1 and 0.
        return matching[0] if matching else find_label(int(given), classes)
    numbers = pd.to_numeric(pd.Series(classes, dtype=object), errors="coerce").to_numpy()
    matching = [c for c, number in zip(classes, numbers, strict=True) if number == given]
    return matching[0] if matching else None


def check_overlap(config: StudyConfig, name: str, part: MultiView, ids: pd.Index) -> None:
    """Refuse a view that has none of the samples, and say which ids look alike, if any do."""
    have = part.sample_ids.astype(str)
    if np.isin(have, ids.to_numpy(dtype=str)).any():
        return
    by_simple = {simplify_id(i): i for i in ids}
    pairs = ((i, by_simple.get(simplify_id(i))) for i in have)
    alike = next((pair for pair in pairs if pair[1] is not None), None)
    fix = "check the id column of both files (option id_column of the view)"
    if alike is not None:
        fix = f"{str(alike[0])!r} and {alike[1]!r} look alike: write ids the same way in both"
    raise config.problem(
        f"views.{name}",
        f"none of its ids ({str(have[0])!r}, ...) is in {config.samples.file} ({ids[0]!r}, ...)",
        fix,
    )


def check_orientation(config: StudyConfig, name: str, section: Any, ids: pd.Index) -> None:
    """Refuse a table whose columns, and not its rows, are named as the samples.

    Called when the file of a view could not be read or has none of the samples.
    """
    if not isinstance(section, TableView) or section.transpose:
        return
    path = config.folder / section.file
    if not is_below(path, [config.folder, *config.roots], strictly=True):
        return
    keys = {"separator", "decimal", "encoding", "sheet"}
    try:
        table = read_text_table(path, **section.model_dump(include=keys, exclude_none=True))
    except BaldurError:
        return
    columns = table.columns.to_numpy(dtype=str)[1:]
    are_samples = np.isin(columns, ids.to_numpy(dtype=str))
    if len(columns) and are_samples.mean() >= _TRANSPOSED:
        raise config.problem(
            f"views.{name}",
            f"{are_samples.sum()} of {len(columns)} columns of {path.name} are named as samples "
            f"({str(columns[are_samples][0])!r}, ...), so that its rows are the features",
            f"write transpose = true in [views.{name}]",
        )


def _read_several(config: StudyConfig, table: pd.DataFrame) -> pd.DataFrame:
    """Return several outcomes of a study as 0 and 1, a column for each."""
    cells = table[config.outcome.columns]
    positive = config.outcome.positive
    with config.errors_at("outcome.columns"):  # the message says what to do
        if positive is None:
            values, names = read_label_matrix(cells, len(cells))
        else:
            # What means yes may be written differently in every column, such as 1 and 1.0.
            parts = []
            for name in config.outcome.columns:
                label = find_label(positive, sorted(cells[name].unique()))
                if label is None:
                    raise InputError(
                        f"outcome {name!r} has no value {positive!r}, which is what means yes in "
                        "this study; correct the column, or leave it out."
                    )
                parts.append(pd.Series(yes_or_no(cells[name], name, label), name=name))
            values, names = read_label_matrix(pd.concat(parts, axis=1), len(cells))
    return pd.DataFrame(values, columns=names, index=table.index)
