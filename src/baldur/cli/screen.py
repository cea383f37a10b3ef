"""What the command shows: progress with the time left, notes, and the table."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from baldur.core.escape import one_line, printable
from baldur.exceptions import MissingExtraError

if TYPE_CHECKING:
    # The numerics take a second to import, which commands that need none should not pay.

    from baldur.evaluation.progress import Progress as State
    from baldur.evaluation.results import Results
    from baldur.study.check import StudyCheck

_SECONDS_BETWEEN_LINES = 30.0


class Screen:
    """Progress and notes go to the error stream, results to the output stream.

    Nothing that came from a file reaches the terminal as a control sequence.
    """

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self.notice = Console(stderr=True, highlight=False)
        self.out = Console(highlight=False)

    def say(self, text: str) -> None:
        """Show a line unless quiet."""
        if not self.quiet:
            # Whole lines, so that they can be searched and copied.
            self.notice.print(printable(text), markup=False, soft_wrap=True)

    def result(self, what: Any) -> None:
        """Print a result to the output stream."""
        # Paths and rows of the table must stay whole, so that they can be copied.
        shown = printable(what) if isinstance(what, str) else what
        self.out.print(shown, markup=False, soft_wrap=True)

    def notes(self, notes: list[str]) -> None:
        """Print notes to the error stream."""
        for note in notes:
            self.say(f"Note: {note}.")

    def report(self, write: Callable[[], Path]) -> None:
        """Write a report page; where its libraries are missing, say what to install."""
        try:
            with self.busy("Writing the report"):
                page = write()
        except MissingExtraError as error:
            self.result(f"Report: not written. {error}")
            return
        self.result(f"Report: {page}")

    def check(self, check: StudyCheck) -> None:
        """Show what a study is going to do, and what looks wrong."""
        for line in check.lines():
            self.say(line)
        self.notes(check.data.notes)
        for finding in check.findings:
            self.say(f"Warning: {finding}")

    @contextmanager
    def busy(self, what: str) -> Iterator[None]:
        """Show a message on a terminal while long work is in progress."""
        if self.quiet or not self.notice.is_terminal:
            yield
            return
        with self.notice.status(what):
            yield

    @contextmanager
    def progress(self) -> Iterator[Callable[[State], None] | None]:
        """Yield a function that shows the progress of the jobs."""
        if self.quiet:
            yield None
        elif self.notice.is_terminal:
            yield from self._bar()
        else:
            yield self._lines()

    def _bar(self) -> Iterator[Callable[[State], None]]:
        """Yield a function that updates a bar on a terminal; the bar goes with the generator."""
        from rich import progress

        columns = (
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TimeElapsedColumn(),
            progress.TextColumn("{task.fields[left]}"),
        )
        with progress.Progress(*columns, console=self.notice, transient=True) as bar:
            task = bar.add_task("starting", total=None, left="")

            def show(state: State) -> None:
                bar.update(
                    task,
                    completed=state.done,
                    total=state.total,
                    description=escape(one_line(state.current)),
                    left=_left(state),
                )

            yield show

    def _lines(self) -> Callable[[State], None]:
        """Return a function that prints a line now and then, for a log file."""
        last_time = time.monotonic()
        last_line = ""

        def show(state: State) -> None:
            nonlocal last_time, last_line
            now = time.monotonic()
            parts = (f"{state.done} of {state.total} jobs", _left(state))
            line = ", ".join(part for part in parts if part)
            due = now - last_time >= _SECONDS_BETWEEN_LINES or state.done == state.total
            if due and line != last_line:
                last_time, last_line = now, line
                self.say(line)

        return show

    def study(self, results: Results) -> None:
        """Print the table of a study, and how its models compare."""
        if results.outcomes:
            self.result(f"Mean over {len(results.outcomes)} outcomes:")
        for part in screen_table(results, self.out.width if self.out.is_terminal else None):
            self.result(part)
        self._paired(results)
        if results.outcomes:
            self._outcomes(results)
        if results.added is not None:  # each of several outcomes has its own
            self.say(results.added.summary())

    def _outcomes(self, results: Results) -> None:
        """Print the metric that settings were selected by, for every outcome and model."""
        from baldur.evaluation import METRICS

        metric = results.record["select_by"]
        intervals = results.table("intervals", every_outcome=True)
        self.result(f"{METRICS[metric].heading} of every outcome, with 95 % intervals:")
        for outcome in results.outcomes:
            rows = intervals[(intervals["outcome"] == outcome) & (intervals["metric"] == metric)]
            cells = [
                f"{row['model']} {_interval(row['estimate'], row['low'], row['high'])}"
                for row in rows.to_dict("records")
            ]
            self.result(f"  {outcome}: {'; '.join(cells)}")

    def _paired(self, results: Results) -> None:
        """Print how the best model compares with the others."""
        from baldur.evaluation import METRICS
        from baldur.report.sentences import pairs_with

        metric, ranked = results.record["select_by"], results.ranked.dropna()
        if self.quiet or not len(ranked):
            return
        best = str(ranked.index[0])
        pairs = pairs_with(results.table("differences"), metric, best)
        pairs = pairs[pairs["model"].isin(results.ranked.index)]
        if not len(pairs):
            return
        tests = pairs_with(results.table("comparisons"), metric, best).set_index("model")
        what = ("Mean " if results.outcomes else "") + METRICS[metric].heading
        self.say(
            f"{what} of {best} minus that of the others, on the same people, with "
            "95 % intervals (p of the corrected t-test over folds, Holm):"
        )
        for row in pairs.to_dict("records"):
            interval = row["difference"], row["low"], row["high"]
            if row["sign"] < 0:  # the table has the other model minus the best one
                interval = -row["difference"], -row["high"], -row["low"]
            p = tests["p_holm"].get(row["model"], float("nan"))
            self.say(f"  {row['model']}: {_interval(*interval, digits=3, sign=True)}{_p(p)}")
        for row in results.table("permutation").to_dict("records"):
            self.say(f"  {row['model']}: permutation{_p(row['p']).removeprefix(',')}")


def _interval(value: float, low: float, high: float, *, digits: int = 2, sign: bool = False) -> str:
    """Return an estimate with its interval as the page has it, with an ASCII minus."""
    from baldur.report.formatting import estimate

    return estimate(value, low, high, digits, sign=sign).replace("−", "-").replace("–", "-")


def _p(p: float) -> str:
    """Return a p-value as text, never as 0; nothing where there is none."""
    if p != p:
        return ""
    return ", p < 0.001" if p < 0.0005 else f", p = {p:.3f}"


def _left(state: State) -> str:
    """Return the estimated time that is left, in words; nothing while it is not known."""
    seconds = state.seconds_left()
    if state.done >= state.total:
        return "done"
    if seconds is None:
        return ""
    # Imported with the run that has been started anyway.
    from baldur.estimators.default_fit import duration

    return f"about {duration(seconds)} left"


def screen_table(results: Results, width: int | None = None) -> list[Any]:
    """Return the lines of the table of models, then its notes.

    Columns that do not fit into `width` follow below, in further pieces. Of several outcomes it is
    the table of the mean over them.
    """
    from baldur.evaluation.metric_table import format_table, table_cells

    table, metrics = results.table("table"), results.record["metrics"]
    heads, cells = table_cells(table, metrics, "screen")
    # Stars, which mark the best of a column, are not shown.
    widths = [max(len(row[j].strip("*")) for row in [heads, *cells]) for j in range(len(heads))]
    pieces: list[list[int]] = [[0]]  # columns of each; every piece begins with the model
    for j in range(1, len(heads)):
        used = sum(2 + widths[k] for k in pieces[-1]) + widths[j]
        if width is not None and used > width and len(pieces[-1]) > 1:
            pieces.append([0])
        pieces[-1].append(j)
    lines: list[Any] = []
    for piece in pieces:
        lines += [Text("")] if lines else []
        lines += [
            _line([row[j] for j in piece], [widths[j] for j in piece]) for row in [heads, *cells]
        ]
    # Below the table as text: its head, a rule and a line for each model come before them.
    notes = [line for line in format_table(table, metrics).splitlines()[2 + len(cells) :] if line]
    return lines + notes


def _line(row: list[str], widths: list[int]) -> Text:
    """Return one row, padded; a figure between pairs of stars, the best of its column, is bold."""
    line = Text(no_wrap=True)
    for j, (cell, width) in enumerate(zip(row, widths, strict=True)):
        is_best = j > 0 and cell.startswith("**")
        plain = cell[2:-2] if is_best else cell
        padded = plain.ljust(width) if j == 0 else "  " + plain.rjust(width)
        line.append(padded, style="bold" if is_best else "")
    return line
