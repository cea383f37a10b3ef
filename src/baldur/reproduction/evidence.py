"""Evidence: the figures of a finished run that the claims are decided by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from scipy.stats import t as student

from baldur.evaluation import NestedResult
from baldur.evaluation.clinical.bootstrap_intervals import Draws
from baldur.report.formatting import ENDS, decimals, in_words, listed, number
from baldur.report.sentences import side_of_zero
from baldur.reproduction.protocol import DEFAULT, PAPER, Protocol
from baldur.views.validate import counted

_ROUNDING = 1e-12
"""Differences and spreads of metrics below this size are rounding errors."""


def simultaneous_differences(model: Draws, others: Mapping[str, Draws]) -> pd.DataFrame:
    """Return a metric of a model minus that of each of some others, with simultaneous intervals.

    Their level is that of all intervals together. Columns: estimate, low and high; a row for each
    of the others.

    Examples
    --------
    >>> import numpy as np
    >>> from baldur.evaluation.clinical.bootstrap_intervals import Bootstrap
    >>> from baldur.reproduction.evidence import simultaneous_differences
    >>> rng = np.random.default_rng(0)
    >>> boot, scores = Bootstrap(np.arange(50)), rng.normal(size=(3, 50))
    >>> a, b, c = (boot.run(lambda w, x=x: w @ x / w.sum(axis=1)) for x in scores)
    >>> alone = simultaneous_differences(a, {"b": b}).loc["b"]
    >>> both = simultaneous_differences(a, {"b": b, "c": c}).loc["b"]
    >>> bool(both.low < alone.low < alone.estimate < alone.high < both.high)
    True
    """
    gaps = [model.minus(draws) for draws in others.values()]
    errors = np.array([float(gap.error()) for gap in gaps])
    constant = errors <= _ROUNDING
    standardised = [
        np.abs(gap.resampled - gap.estimate) / error
        for gap, error in zip(gaps, errors, strict=True)
        if np.isfinite(error) and error > _ROUNDING
    ]
    # Half an interval, in standard errors: that of one comparison alone, or the quantile of the
    # largest of all standardised differences, if that is more.
    n_errors = float(student.ppf(0.5 + model.level / 2, max(model.units - 1, 1)))
    if standardised:
        largest = np.fmax.reduce(standardised)  # in each resample
        n_errors = max(n_errors, float(np.nanquantile(largest, model.level, method="higher")))
    values = np.array([float(gap.estimate) for gap in gaps])
    # The same difference in every resample: 0 for two models that agree (the same predictions, for
    # example), and otherwise two metrics at their borders, such as a recall of 1 and one of 0.
    half = np.where(constant & (np.abs(values) > _ROUNDING), np.nan, n_errors * errors)
    ends = {"estimate": values, "low": values - half, "high": values + half}
    return pd.DataFrame(ends, index=list(others))


@dataclass(frozen=True)
class Evidence:
    """The figures of a run."""

    protocol: Protocol  # The study
    result: NestedResult  # Of all models
    truth: pd.DataFrame | None = None
    factors: int | None = None
    not_run: dict[str, str] | None = None  # Models that failed, and why

    @property
    def simulated(self) -> bool:
        """Whether the truth behind the data is known."""
        return self.truth is not None

    @cached_property
    def table(self) -> pd.DataFrame:
        """The table of the comparison, models as index; only those with figures."""
        table = self.result.table().set_index("model")
        return table[table["folds"] > 0]

    @property
    def baselines(self) -> list[str]:
        """Baselines that have figures."""
        return [name for name in self.table.index if name not in (PAPER, DEFAULT)]

    @property
    def missing(self) -> list[str]:
        """Baselines of the protocol without figures: they failed or were not run."""
        names = [name for name in self.protocol.rows if name not in (PAPER, DEFAULT)]
        return [name for name in names if name not in self.table.index]

    def pooled(self, model: str, metric: str) -> tuple[float, float, float]:
        """Return estimate, low and high (95 %) of a metric on pooled held-out predictions."""
        columns = [f"{metric}_{end}" for end in ("pooled", "low", "high")]
        estimate, low, high = map(float, self.table.loc[model, columns].to_numpy(dtype=float))
        return estimate, low, high

    def differences(self, model: str, others: list[str], metric: str) -> pd.DataFrame:
        """Return `simultaneous_differences` from other models; NaN for one on other people."""
        resampled = self.result.resampled
        people = resampled.models[model].members
        on_same_people = {
            name: resampled.metric(name, metric)
            for name in others
            if name in self.table.index and np.array_equal(resampled.models[name].members, people)
        }
        differences = simultaneous_differences(resampled.metric(model, metric), on_same_people)
        return differences.reindex(others)

    # -- selected features -------------------------------------------------------------------------

    @cached_property
    def _views(self) -> pd.DataFrame:
        selection = self.result.selection
        return selection[selection["feature"] == "*"]

    def selected(self, model: str) -> pd.DataFrame:
        """Return the number of selected features: one row per fold, one column per view."""
        rows = self._views[self._views["model"] == model]
        # The column folds is such as "3;0;2", the number in each fold.
        counts = {
            row.view: [int(k) for k in str(row.folds).split(";")] for row in rows.itertuples()
        }
        return pd.DataFrame(counts)

    def percent(self, model: str) -> np.ndarray:
        """Return the share of all features that a model selects in each fold, in per cent."""
        width = sum(self.result.data.n_features.values())
        percent: np.ndarray = 100.0 * self.selected(model).sum(axis=1).to_numpy(dtype=float) / width
        return percent

    def features(self, model: str) -> pd.DataFrame:
        """Return the features that some fold selects: view, feature, frequency, folds."""
        selection = self.result.selection
        rows = selection[(selection["model"] == model) & (selection["feature"] != "*")]
        return rows[["view", "feature", "frequency", "folds"]].reset_index(drop=True)

    def hits(self, model: str, wanted: set[tuple[str, str]]) -> np.ndarray:
        """Return how many of some features, pairs of view and name, each fold selects.

        Shapes: returns (n_folds,).
        """
        features = self.features(model)
        chosen = [
            pair in wanted for pair in zip(features["view"], features["feature"], strict=True)
        ]
        # The column folds is such as "1;0;1", with 1 for a fold that selects the feature.
        rows = [[int(k) for k in str(folds).split(";")] for folds in features.loc[chosen, "folds"]]
        counts: np.ndarray = np.sum(rows, axis=0) if rows else np.zeros(self.n_folds, dtype=int)
        return counts

    @property
    def n_folds(self) -> int:
        """Number of outer folds."""
        return len(self.result.folds)

    def effects(self) -> set[tuple[str, str]]:
        """Return view and feature of what carries signal in the simulation."""
        if self.truth is None:
            return set()
        return set(zip(self.truth["view"], self.truth["feature"].astype(str), strict=True))


HOLDS, IN_PART, OPEN, FAILS, UNTESTED = (
    "reproduced", "reproduced in part", "not decided", "not reproduced", "not tested",
)  # fmt: skip
"""Verdicts; "not decided" where intervals leave both open, and "not tested" where a row is missing
that could decide."""


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds in a run, and the figures that decide it."""

    outcome: str
    figures: str
    why: str = ""
    claim: str = ""  # In our words; filled in by `claims_of`

    @property
    def level(self) -> str:
        """How the page marks it: "note", "care" or "serious"."""
        levels = {HOLDS: "note", FAILS: "serious", "holds": "note", "does not hold": "serious"}
        return levels.get(self.outcome, "care")


NO_ROW = Verdict(UNTESTED, "The rows that the claim is about were not run.")


def decided(evidence: Evidence, model: str, others: list[str], metric: str, name: str) -> Verdict:
    """Decide whether a model (`name` in the text) is better than each of some others, in a metric.

    It is if the simultaneous interval of every difference, model minus other, lies above 0.
    """
    if model not in evidence.table.index or not others:
        return NO_ROW
    gaps = evidence.differences(model, others, metric)
    gaps = gaps.assign(unknown=side_of_zero(gaps).isna()).sort_values(["unknown", "estimate"])
    side, unknown = side_of_zero(gaps), gaps.index[gaps["unknown"]].tolist()
    worse_than = gaps.index[side < 0].tolist()
    n_better, n_undecided = int((side > 0).sum()), int((side == 0).sum())
    parts = [f"better than {n_better} of {counted(len(gaps), 'baseline')}"]
    parts += [f"worse than {len(worse_than)}"] if worse_than else []
    parts += [f"not decided for {n_undecided}"] if n_undecided else []
    parts += [f"not tested for {len(unknown)}"] if unknown else []
    figures = (
        f"{name[0].upper()}{name[1:]} {in_words(*evidence.pooled(model, metric))}; "
        f"{', '.join(parts)}."
    )
    least = gaps.iloc[0]
    if not least["unknown"]:
        value, ends = gap_texts(*least[[*ENDS]])
        figures += f" Smallest difference (simultaneous interval): {least.name} {value} ({ends})."
    outcome = FAILS if worse_than else UNTESTED if unknown else OPEN if n_undecided else HOLDS
    why = ""
    if outcome == UNTESTED:
        why = f"No figures or no interval: {listed(unknown, most=len(unknown))}."
    if outcome == FAILS:
        why = f"Better here: {listed(worse_than)}."
    if outcome == OPEN:
        rank = "the highest" if least["estimate"] > 0 else "not the highest"
        low, other = min(zip(gaps["low"], gaps.index, strict=True))
        most = number(-low, decimals([low]))
        why = (
            f"Its estimate is {rank}, and no baseline is shown to be better. By the simultaneous "
            f"intervals a baseline can be better by at most {most} ({other})."
        )
    return Verdict(outcome, figures, why)


def gap_texts(estimate: float, low: float, high: float) -> tuple[str, str]:
    """Return a difference, and the ends of its interval, as two texts."""
    digits = decimals((low, high))
    value, *ends = (number(x, digits, sign=True) for x in (estimate, low, high))
    return value, " to ".join(ends)


def by_folds(holds: np.ndarray, what: str, remark: str) -> Verdict:
    """Decide a claim by the folds in which it holds: in all of them, in some, or in none.

    Shapes: holds (n_folds,).
    """
    figures = f"{what} in {int(holds.sum())} of {counted(len(holds), 'fold')}. {remark}".strip()
    return Verdict(HOLDS if holds.all() else IN_PART if holds.any() else FAILS, figures)
