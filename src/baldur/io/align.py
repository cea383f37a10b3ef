"""align: match samples of several views by id, and report which samples each view has."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from baldur.exceptions import InputError
from baldur.views.container import MultiView
from baldur.views.validate import repeated, some


@dataclass(frozen=True, eq=False)
class AlignReport:
    """Which samples each view has, and which were matched.

    Attributes
    ----------
    where : DataFrame of bool
        One row per person found anywhere, one column per view (and ``labels``).
    combinations : DataFrame
        One row per combination of views that occurs: booleans per view and ``people``, the most
        frequent first.
    near_misses : DataFrame
        Ids that differ in writing only ("sub-01" and "01"): ``view``, ``id``, ``other_view``,
        ``other_id``.
    how : str
        "intersection" or "union".
    n_kept : int
        People in the result.

    Examples
    --------
    >>> import numpy as np
    >>> from baldur.io import align
    >>> from baldur.views import MultiView
    >>> clinic = MultiView({"clinic": np.zeros((3, 2))}, sample_ids=["01", "02", "03"])
    >>> scan = MultiView({"scan": np.zeros((2, 4))}, sample_ids=["02", "03"])
    >>> report = align([clinic, scan]).report
    >>> print(report)
    2 of 3 people kept (intersection of 2 views)
    people  clinic  scan
         2    ●      ●
         1    ●      ·
     total    3      2
    >>> report.combinations["people"].tolist()
    [2, 1]
    """

    where: pd.DataFrame
    combinations: pd.DataFrame
    near_misses: pd.DataFrame
    how: str
    n_kept: int

    def __str__(self) -> str:
        names = list(self.where.columns)
        lines = [
            f"{self.n_kept} of {len(self.where)} people kept ({self.how} of {len(names)} views)",
            "people  " + "  ".join(names),
        ]
        for _, row in self.combinations.iterrows():
            dots = "  ".join(("●" if row[name] else "·").center(len(name)) for name in names)
            lines.append(f"{int(row['people']):>6}  {dots}".rstrip())
        totals = "  ".join(str(int(self.where[name].sum())).center(len(name)) for name in names)
        lines.append(f" total  {totals}".rstrip())
        if len(self.near_misses):
            lines.append(
                f"{len(self.near_misses)} pairs of ids differ in writing only; if they are the "
                "same people, use match='simplified':"
            )
            lines += [
                f"  {row.id!r} in {row.view} and {row.other_id!r} in {row.other_view}"
                for row in self.near_misses.head(10).itertuples()
            ]
        return "\n".join(lines)


class Aligned(NamedTuple):
    """Result of `align`: the matched views, the labels and a report.

    Attributes
    ----------
    data : MultiView
        All views over the same people.
    labels : Series or None
        Labels of these people, if some were given.
    report : AlignReport
        Who is where.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from baldur.io import align
    >>> from baldur.views import MultiView
    >>> clinic = MultiView({"clinic": np.zeros((2, 1))}, sample_ids=["a", "b"])
    >>> scan = MultiView({"scan": np.ones((2, 4))}, sample_ids=["b", "c"])
    >>> data, labels, report = align([clinic, scan], labels=pd.Series({"b": 1, "c": 0}))
    >>> data.sample_ids, labels.to_dict(), report.n_kept
    (array(['b'], dtype='<U1'), {'b': 1}, 1)
    """

    data: MultiView
    labels: pd.Series | None
    report: AlignReport


def align(
    parts: Iterable[MultiView] | MultiView,
    *,
    how: str = "intersection",
    labels: pd.Series | None = None,
    match: str | Callable[[Any], str] = "exact",
) -> Aligned:
    """Match the samples of several views by id.

    Parameters
    ----------
    parts : sequence of MultiView
        What the readers returned; view names must differ. Nothing is copied.
    how : {"intersection", "union"}, default="intersection"
        Keep the people who have every view, or all people; missing views are then marked in
        `present`.
    labels : Series, optional
        Labels indexed by sample id. People without a label are left out.
    match : {"exact", "simplified"} or callable, default="exact"
        How ids are compared: as written; without case, punctuation, prefixes such as "sub-" and
        leading zeros (`simplify_id`); or by what a function returns for them. The result keeps
        the ids as the first part writes them.

    Returns
    -------
    Aligned
        A named tuple ``(data, labels, report)``. People are in the order in which they first
        occur.

    Examples
    --------
    >>> import numpy as np
    >>> from baldur import MultiView
    >>> from baldur.io import align
    >>> blood = MultiView({"blood": np.eye(3)}, sample_ids=["a", "b", "sub-3"])
    >>> brain = MultiView({"brain": np.eye(3)}, sample_ids=["b", "a", "03"])
    >>> data, _, report = align([blood, brain])
    >>> data.sample_ids
    array(['a', 'b'], dtype='<U1')
    >>> print(report)
    2 of 4 people kept (intersection of 2 views)
    people  blood  brain
         2    ●      ●
         1    ●      ·
         1    ·      ●
     total    3      3
    1 pairs of ids differ in writing only; if they are the same people, use match='simplified':
      'sub-3' in blood and '03' in brain
    >>> len(align([blood, brain], how="union", match="simplified").data)
    3
    """
    listed = [parts] if isinstance(parts, MultiView) else list(parts)
    _check_parts(listed)
    if how not in ("intersection", "union"):
        raise InputError(f"how must be 'intersection' or 'union', but got {how!r}.")
    key = _key_function(match)
    # Ids are compared by their keys.
    keyed = [(part, _keys(part.sample_ids, key, part.view_names)) for part in listed]
    written = pd.concat([pd.Series(part.sample_ids, keys, dtype=object) for part, keys in keyed])
    # One entry per person: the id as first written, indexed by its key.
    people = written[~written.index.duplicated()]
    has_view: dict[str, Any] = {}
    for part, keys in keyed:
        for name in part.view_names:
            declared = part.view(name).take_rows(keys.get_indexer(people.index)).declared_present
            has_view[name] = True if declared is None else declared
    where = pd.DataFrame(has_view, index=pd.Index(people.map(str)))
    kept = (where.any(axis=1) if how == "union" else where.all(axis=1)).to_numpy()
    values: np.ndarray | None = None
    if labels is not None:
        values, where["labels"] = _labels(labels, key, people.index)
        kept = kept & where["labels"].to_numpy()
    names = list(where.columns)
    combinations = where.value_counts(subset=names).rename("people").reset_index()
    combinations = combinations.sort_values(
        ["people", *names], ascending=False, kind="stable", ignore_index=True
    )
    written_ids = {"/".join(part.view_names): part.sample_ids.astype(str) for part in listed}
    alike = near_misses(written_ids if match == "exact" else {})
    report = AlignReport(where, combinations, alike, how, int(kept.sum()))
    if not kept.any():
        raise InputError(
            "No person is left: "
            + ("no person has every view" if how == "intersection" else "no person has a label")
            + f".\n{report}"
        )
    kept_keys = people.index[kept]
    ids = people[kept].tolist()
    if not all(isinstance(sample, (int, np.integer)) for sample in ids):
        ids = [str(sample) for sample in ids]
    views = [
        part.view(name).take_rows(keys.get_indexer(kept_keys))
        for part, keys in keyed
        for name in part.view_names
    ]
    data = MultiView.from_views(views, np.asarray(ids), _join_samples(keyed, kept_keys))
    if values is None or labels is None:
        return Aligned(data, None, report)
    return Aligned(data, pd.Series(values[kept], index=data.sample_ids, name=labels.name), report)


def _check_parts(parts: list[Any]) -> None:
    wrong = [type(part).__name__ for part in parts if not isinstance(part, MultiView)]
    if wrong or not parts:
        raise InputError(
            "align expects one or more MultiViews, as the readers of baldur.io return, but got "
            f"{wrong[0] if wrong else 'none'}."
        )
    twice = sorted(repeated(name for part in parts for name in part.view_names))
    if twice:
        raise InputError(
            f"View names must differ between the parts, but {some(twice)} occur more than once. "
            "Give name= when reading."
        )


def _key_function(match: Any) -> Callable[[Any], str]:
    """Return the function that gives the key by which an id is compared."""
    if match == "exact":
        return str
    if match == "simplified":
        return simplify_id
    if callable(match):
        return lambda sample_id: str(match(sample_id))
    raise InputError(f"match must be 'exact', 'simplified' or a function, but got {match!r}.")


def _keys(ids: Any, key: Callable[[Any], str], origin: Any) -> pd.Index:
    """Return the keys by which ids are compared; refuse two ids with one key."""
    keys = pd.Index([key(sample_id) for sample_id in np.asarray(ids).tolist()], dtype=object)
    if keys.has_duplicates:
        at = np.flatnonzero(keys == keys[keys.duplicated()][0])[:2]
        pair = [str(np.asarray(ids)[i]) for i in at]
        raise InputError(
            f"{origin}: {some(pair)} are the same person by the rule of match=. Rename one of "
            "them, or use match='exact'."
        )
    return keys


def _labels(
    labels: Any, key: Callable[[Any], str], people_keys: pd.Index
) -> tuple[np.ndarray, np.ndarray]:
    """Return the label of each person, and whether there is one (without, it has no meaning)."""
    if not isinstance(labels, pd.Series):
        raise InputError(
            f"labels must be a pandas Series indexed by sample id, but got {type(labels).__name__}."
        )
    keys = _keys(labels.index, key, "labels")
    at = keys.get_indexer(people_keys)  # -1: no label
    values = labels.to_numpy()
    values = values[np.maximum(at, 0)] if len(values) else np.zeros(len(people_keys))
    return values, (at >= 0) & ~pd.isna(pd.Series(values)).to_numpy()


def _join_samples(keyed: list[tuple[MultiView, pd.Index]], people: pd.Index) -> pd.DataFrame | None:
    """Return the tables about samples side by side, a row for each of `people` (keys of ids)."""
    tables = [
        part.samples.set_axis(keys, axis=0).reindex(people).reset_index(drop=True)
        for part, keys in keyed
        if part.samples is not None
    ]
    if not tables:
        return None
    joined = pd.concat(tables, axis=1)
    if twice := repeated(joined.columns):
        raise InputError(
            f"align: the tables about the samples of several parts have a column {some(twice)}. "
            "Leave it out of all but one of them."
        )
    return joined


_PREFIX = re.compile(r"^(?:participant|subject|patient|sample|subj|sub|ppt|pat|pid|iid|id)(?=\d|$)")
_ZEROS = re.compile(r"(?<!\d)0+(?=\d)")
_MARKS = re.compile(r"[\W_]+")


def simplify_id(sample_id: object) -> str:
    """Return an id in lower case, without punctuation, common prefixes and leading zeros.

    Examples
    --------
    >>> from baldur.io.align import simplify_id
    >>> [simplify_id(text) for text in ("sub-01", "SUB_001", "01", 1, "NA19916")]
    ['1', '1', '1', '1', 'na19916']
    """
    text = str(sample_id).strip().casefold()
    # Zeros first, while punctuation still separates one number from the next.
    plain = _MARKS.sub("", _ZEROS.sub("", text))
    return _PREFIX.sub("", plain) or plain or text


def near_misses(ids: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """Return pairs of different ids that look alike, across and within views.

    Pairs of ids that both occur in every view they could be matched in are left out: they are
    different people.
    """
    # Simplified id to id as written to the views that have it.
    groups: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for view, listed in ids.items():
        for sample_id in listed:
            groups[simplify_id(sample_id)][str(sample_id)].append(view)
    rows = []
    for written in groups.values():
        for (first, views), (second, other_views) in itertools.combinations(written.items(), 2):
            if len(ids) == 1 or not set(views) == set(other_views) == set(ids):
                rows.append((views[0], first, other_views[0], second))
    return pd.DataFrame(rows, columns=["view", "id", "other_view", "other_id"])
