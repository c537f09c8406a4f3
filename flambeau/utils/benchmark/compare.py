"""Measurements as a table: a column for each description, a row for each sub-label and environment,
a block for each number of threads, a table for each label."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence

from .measurement import (
    Measurement,
    common,
    ordered_unique,
    select_unit,
    trim_sigfig,
    unit_to_english,
)

__all__ = ["Colorize", "Compare", "optional_min"]

_BEST, _GOOD, _END = "\033[92m\033[1m", "\033[34m", "\033[0m\033[0m"
_BAD, _WORST = "\033[2m\033[91m", "\033[31m\033[1m"


class Colorize(enum.Enum):
    """Against what a figure is coloured."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


def optional_min(seq: Iterable[float | None]) -> float | None:
    """The least of what is there; None where nothing is.

    >>> optional_min([None, 2.0, 1.0])
    1.0
    """
    return min((x for x in seq if x is not None), default=None)


class Compare:
    """A table of measurements; `str` is its text.

    Args:
        results: measurements, told apart by label, sub-label, description, environment and number
            of threads. Those of one program are put together.

    >>> from flambeau.utils.benchmark import Timer
    >>> results = [
    ...     Timer("x * 2", globals={"x": fb.ones(n)}, label="double", sub_label=f"[{n}]",
    ...           description=name).timeit(10)
    ...     for n in (1, 8) for name in ("first", "second")
    ... ]
    >>> print(str(Compare(results)).splitlines()[1].split())
    ['|', 'first', '|', 'second']
    """

    def __init__(self, results: list[Measurement]) -> None:
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trim, self._colorize, self._warn = False, Colorize.NONE, False

    def __str__(self) -> str:
        if not self._results:
            return ""
        labels = ordered_unique(self._label(m) for m in self._results)
        return "\n".join(
            self._table([m for m in self._results if self._label(m) == label], label)
            for label in labels
        )

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Add measurements."""
        given = list(results)
        for r in given:
            if not isinstance(r, Measurement):
                raise ValueError(
                    f"Expected an instance of `Measurement`, got {type(r).__name__} instead."
                )
        self._results.extend(given)

    def trim_significant_figures(self) -> None:
        """Show the figures that another measurement would find again."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colour figures against the best of their column, or of their row."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Mark figures whose times spread far."""
        self._warn = True

    def print(self) -> None:
        """Print the table."""
        print(str(self))

    @staticmethod
    def _label(m: Measurement) -> str:
        return m.label or (m.stmt if m.sub_label else "")

    def _table(self, results: Sequence[Measurement], label: str) -> str:
        merged = Measurement.merge(results)
        unit, scale = select_unit(min(m.median for m in merged))
        threads = sorted(common(merged, "num_threads"))
        columns = common(merged, "description")
        rows = ordered_unique((n, m.as_row_name) for n in threads for m in merged
                              if m.num_threads == n)  # fmt: skip
        at = {(m.num_threads, m.as_row_name, m.description): m for m in merged}
        shown: list[list[str]] = []  # of each column, the cells
        for c in columns:
            cells = [at.get((*place, c)) for place in rows]
            texts = self._figures(cells, scale)
            width = max(len(t) for t in texts)
            shown.append([t.rjust(width) for t in texts])
        heads = [c or "" for c in columns]
        widths = [max(len(h), *(len(t) for t in ts)) for h, ts in zip(heads, shown, strict=True)]
        first = max(len(f"{n} threads: ") for n in threads)
        first = max(first, *(6 + len(name) for _, name in rows))

        def line(name: str, cells: Sequence[str]) -> str:
            return "  |  ".join([name.ljust(first), *cells])

        head = line("", [h.center(w) for h, w in zip(heads, widths, strict=True)])
        out = ["[" + f" {label} ".center(len(head) - 2, "-") + "]", head]
        before = None
        for k, (n, name) in enumerate(rows):
            if n != before:
                out.append(f"{n} threads: ".ljust(len(head), "-"))
                before = n
            row = [ts[k].center(w) for ts, w in zip(shown, widths, strict=True)]
            measured = [at.get((n, name, c)) for c in columns]
            for j, m in enumerate(measured):
                if m is not None and self._colorize is not Colorize.NONE:
                    beside = measured if self._colorize is Colorize.ROWWISE else [
                        at.get((*place, columns[j])) for place in rows
                    ]  # fmt: skip
                    best = min(x.median for x in beside if x is not None)
                    row[j] = _coloured(row[j], m.median / best)
            out.append(line(f"      {name}", row))
        out += ["", f"Times are in {unit_to_english(unit)}s ({unit})."]
        if self._warn and any(m.has_warnings for m in merged):
            out.append("(! XX%) The middle half of the times spreads over XX % of the median.")
        return "\n".join([*out, ""])

    def _figures(self, cells: Sequence[Measurement | None], scale: float) -> list[str]:
        decimals = 1
        if self._trim:
            places = []
            for m in cells:
                if m is not None:
                    value, figures = m.median / scale, m.significant_figures
                    whole = len(str(int(value))) if value >= 1 else 0
                    places.append(min(1, max(0, figures - whole)))
            decimals = min(places, default=1)
        out = []
        for m in cells:
            if m is None:
                out.append("")
                continue
            value = m.median / scale
            if self._trim:
                value = trim_sigfig(value, max(m.significant_figures, 1))
            text = f"{value:.{decimals}f}"
            if self._warn and m.has_warnings:
                text += f" (! {100 * m.iqr / m.median:.0f}%)"
            out.append(text)
        return out


def _coloured(text: str, ratio: float) -> str:
    """Green for the best, and on to red."""
    colour = _BEST if ratio <= 1.0001 else _GOOD if ratio <= 1.1 else (
        "" if ratio < 1.5 else _BAD if ratio < 2.5 else _WORST
    )  # fmt: skip
    return f"{colour}{text}{_END}" if colour else text
