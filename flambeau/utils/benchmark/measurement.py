"""What was measured, of which program, and how figures are shown.

Owns `TaskSpec` (which program, how it is named, on how many threads) and `Measurement` (its times).
Times are in seconds; robust statistics (median and quartiles) are what is shown, for noise only
adds.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import statistics
import textwrap
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import flambeau as fb

_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_ENGLISH = {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}
#: share of the median that the middle half may spread over without a warning, and with one
_SPREAD, _WIDE_SPREAD = 0.1, 0.25
_T = TypeVar("_T", bound=Hashable)


@dataclasses.dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """A program that is measured.

    Args:
        stmt: what is timed.
        setup: what runs before, once.
        global_setup: for programs in C++, which are not measured here.
        label: what measurements have in common; the title of a table.
        sub_label: what tells them apart; a row.
        description: what is compared; a column.
        env: where they ran; stands before the row's name.
        num_threads: of the statement.
    """

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or the statement, with the sub-label."""
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        return self.stmt if "\n" not in self.stmt else "stmt:\n" + textwrap.indent(self.stmt, "  ")

    def setup_str(self) -> str:
        """The setup as it is shown; empty where there is none."""
        if self.setup == "pass" or not self.setup:
            return ""
        if "\n" in self.setup:
            return "setup:\n" + textwrap.indent(self.setup, "  ")
        return f"setup: {self.setup}"

    def summarize(self) -> str:
        """Title, description and setup."""
        parts = [self.title, self.description or "", self.setup_str()]
        text = "\n".join(p for p in parts if p)
        return text + ("\n" if self.setup_str() or "\n" in self.title else "")


@dataclasses.dataclass(init=True, repr=False)
class Measurement:
    """Times of a program.

    Args:
        number_per_run: how often the statement ran for each of the times.
        raw_times: seconds, each of that many runs.
        task_spec: the program.
        metadata: whatever belongs to it.

    >>> spec = TaskSpec("x + 1", "pass", label="add")
    >>> m = Measurement(10, [1e-5, 2e-5, 3e-5], spec)
    >>> m.median, m.times
    (2e-06, [1e-06, 2e-06, 3e-06])
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "task_spec":
            raise AttributeError(name)
        if name in ("stmt", "setup", "label", "sub_label", "description", "env", "num_threads",
                    "title", "global_setup"):  # fmt: skip
            return getattr(self.task_spec, name)
        raise AttributeError(f"'Measurement' object has no attribute '{name}'")

    @property
    def times(self) -> list[float]:
        """Seconds of one run, each the mean of `number_per_run`."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def median(self) -> float:
        """The median of the times."""
        self._need_times()
        return statistics.median(self.times)

    @property
    def mean(self) -> float:
        """The mean of the times."""
        self._need_times()
        return statistics.fmean(self.times)

    @property
    def iqr(self) -> float:
        """How far apart the quartiles are; 0 for fewer than two times."""
        low, high = self._quartiles()
        return high - low

    @property
    def significant_figures(self) -> int:
        """Leading figures of the median that a second measurement would find again.

        The median of n times is known to about 1.57 times their interquartile range over the root
        of n (McGill, Tukey and Larsen, The American Statistician 32, 1978).
        """
        error = 1.57 * self.iqr / math.sqrt(len(self.raw_times) or 1) / self.median
        return max(1, min(5, round(-math.log10(max(error, 1e-9)))))

    @property
    def has_warnings(self) -> bool:
        """Whether the times spread so far that something else ran on the machine."""
        return self.iqr / self.median > _SPREAD

    @property
    def as_row_name(self) -> str:
        """The name of its row in a table."""
        name = self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"
        return name if self.task_spec.env is None else f"({self.task_spec.env}) {name}"

    def meets_confidence(self, threshold: float = _SPREAD) -> bool:
        """Whether the middle half of the times spreads over less than a share of the median."""
        return self.iqr / self.median < threshold

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Measurements of equal programs put together."""
        by_program: dict[TaskSpec, list[Measurement]] = {}
        for m in measurements:
            by_program.setdefault(m.task_spec, []).append(m)
        out = []
        for spec, group in by_program.items():
            n = group[0].number_per_run
            times = [t * n for m in group for t in m.times]
            out.append(Measurement(n, times, spec))
        return out

    def __repr__(self) -> str:
        out = [object.__repr__(self)]
        out.append(self.task_spec.summarize())
        unit, scale = select_unit(self.median)
        n = len(self.raw_times)
        if n == 1:
            out.append(f"  {self.median / scale:.2f} {unit}")
        else:
            low, high = (q / scale for q in self._quartiles())
            out.append(f"  Median: {self.median / scale:.2f} {unit}")
            out.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})")
        threads = f"{self.num_threads} thread{'s' if self.num_threads > 1 else ''}"
        runs = "runs " if n == 1 else "runs per measurement"
        runs = f"{self.number_per_run} {runs}" if self.number_per_run > 1 else "run"
        out.append(f"  {n} measurement{'s' if n > 1 else ''}, {runs}, {threads}")
        spread = self.iqr / self.median
        if n > 1 and spread > _SPREAD:
            out.append(
                f"  WARNING: the middle half of the times spreads over {100 * spread:.1f}% of the "
                "median;"
            )
            strong = "much" if spread > _WIDE_SPREAD else "something"
            out.append(f"           {strong} else seems to have run on the machine.")
        return "\n".join(out)

    def _quartiles(self) -> tuple[float, float]:
        self._need_times()
        times = sorted(self.times)
        if len(times) < 2:
            return times[0], times[0]
        low, _, high = statistics.quantiles(times, n=4, method="inclusive")
        return low, high

    def _need_times(self) -> None:
        if not self.raw_times:
            raise ValueError("Measurement: there are no times")


def select_unit(t: float) -> tuple[str, float]:
    """The unit in which a time is shown, and its seconds.

    >>> select_unit(0.02)
    ('ms', 0.001)
    """
    place = -3 if t <= 0 else math.floor(math.log10(t) / 3 + 1e-9)
    unit = {-1: "ms", -2: "us"}.get(place, "ns" if place < -2 else "s")
    return unit, _UNITS[unit]


def unit_to_english(u: str) -> str:
    """The name of a unit.

    >>> unit_to_english("us")
    'microsecond'
    """
    return _ENGLISH[u]


def trim_sigfig(x: float, n: int) -> float:
    """A number with its n leading figures.

    >>> trim_sigfig(1234.5, 2)
    1200.0
    """
    if not n > 0:
        raise ValueError(f"trim_sigfig: expected a positive number of figures, got {n}")
    if x == 0 or not math.isfinite(x):
        return float(x)
    place = 10.0 ** (math.floor(math.log10(abs(x))) + 1 - n)
    return float(f"{round(x / place) * place:.15g}")


def ordered_unique(elements: Iterable[_T]) -> list[_T]:
    """What is met, once each, in the order in which it is met first.

    >>> ordered_unique([2, 1, 2])
    [2, 1]
    """
    return list(dict.fromkeys(elements))


@contextlib.contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """A block in which operations run on n threads.

    >>> with set_torch_threads(1):
    ...     fb.get_num_threads()
    1
    """
    before = fb.get_num_threads()
    try:
        fb.set_num_threads(n)
        yield
    finally:
        fb.set_num_threads(before)


def common(items: Sequence[Measurement], what: str) -> list[Any]:
    """The different values of something, as they are met."""
    return ordered_unique(getattr(m, what) for m in items)
