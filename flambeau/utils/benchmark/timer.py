"""Running a statement often enough to know its time.

Owns `Timer`, over the standard library's `timeit`: a statement is text that is run with names of
the program's, on a number of threads, without the collector of cycles.
"""

from __future__ import annotations

import enum
import textwrap
import time
import timeit
from collections.abc import Callable
from statistics import median
from typing import Any, NoReturn

from .measurement import Measurement, TaskSpec, set_torch_threads

__all__ = ["Language", "Timer", "timer"]

timer = time.perf_counter
#: share of a run's time that reading the clock may take
_OVERHEAD = 1e-4


class Language(enum.Enum):
    """What a statement is written in."""

    PYTHON = 0
    CPP = 1


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"Timer: {name}: expected str, got {type(value).__name__}")
    return textwrap.dedent(value.strip("\n")).rstrip() or "pass"


class Timer:
    """Measures a statement.

    Args:
        stmt: text that is timed.
        setup: text that runs before, once; names that it sets are the statement's.
        global_setup: for programs in C++; must be empty.
        timer: the clock: seconds as a float.
        globals: names for both texts.
        label, sub_label, description, env: names for tables, see `Compare`.
        num_threads: of the operations.
        language: Python; C++ is refused.

    Raises:
        NotImplementedError: the language is C++ (`utils.cpp_extension.load_inline` makes a function
            of C++ that can be measured from Python).
    """

    def __init__(
        self, stmt: str = "pass", setup: str = "pass", global_setup: str = "",
        timer: Callable[[], float] = timer, globals: dict[str, Any] | None = None,
        label: str | None = None, sub_label: str | None = None, description: str | None = None,
        env: str | None = None, num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ) -> None:  # fmt: skip
        known = {"py": Language.PYTHON, "python": Language.PYTHON}
        known |= {"c++": Language.CPP, "cpp": Language.CPP}
        if isinstance(language, str):
            if language not in known:
                raise ValueError(
                    f"Timer: language: expected one of {sorted(known)}, got {language!r}"
                )
            language = known[language]
        if language is not Language.PYTHON:
            raise NotImplementedError(
                "Timer: statements in C++ are not measured; make a function of them with "
                "utils.cpp_extension.load_inline and measure its call"
            )
        if global_setup:
            raise ValueError("Timer: global_setup is for statements in C++; use setup")
        if type(num_threads) is not int or num_threads < 1:
            raise ValueError(
                f"Timer: num_threads: expected an int of 1 or more, got {num_threads!r}"
            )
        stmt, setup = _text("stmt", stmt), _text("setup", setup)
        names = dict(globals or {})
        self._globals = names
        self._timer = timeit.Timer(stmt, setup, timer, names)
        self._task_spec = TaskSpec(
            stmt=stmt, setup=setup, label=label, sub_label=sub_label, description=description,
            env=env, num_threads=num_threads,
        )  # fmt: skip

    def timeit(self, number: int = 1000000) -> Measurement:
        """One measurement of `number` runs, after a hundredth of them that are not counted."""
        with set_torch_threads(self._task_spec.num_threads):
            self._timer.timeit(max(number // 100, 2))
            return self._measurement(number, [self._timer.timeit(number)])

    def repeat(self, repeat: int = -1, number: int = -1) -> NoReturn:
        """Refused: `blocked_autorange` gives several measurements."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Callable[[int, float], NoReturn] | None = None) -> NoReturn:
        """Refused: `blocked_autorange` finds the number of runs."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Measurements of so many runs that the clock does not matter, for a time.

        Args:
            callback: told the number of runs and the seconds of each measurement.
            min_run_time: seconds of all measurements together.

        >>> timer = Timer("x.sum()", globals={"x": fb.ones(10)})
        >>> m = timer.blocked_autorange(min_run_time=0.01)
        >>> len(m.times) > 1 and sum(m.raw_times) >= 0.01
        True
        """
        return self._measured(lambda times: sum(times) >= min_run_time, callback, min_run_time)

    def adaptive_autorange(
        self, threshold: float = 0.1, *, min_run_time: float = 0.01, max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:  # fmt: skip
        """Measurements until their middle half spreads over less than a share of the median.

        Args:
            threshold: the share.
            min_run_time: seconds of all measurements together, at least.
            max_run_time: at most.
            callback: as of `blocked_autorange`.
        """

        def enough(times: list[float]) -> bool:
            total = sum(times)
            if total >= max_run_time:
                return True
            steady = len(times) >= 4 and self._measurement(1, times).meets_confidence(threshold)
            return total >= min_run_time and steady

        return self._measured(enough, callback, 0.05)

    def collect_callgrind(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused: instructions are not counted here."""
        raise NotImplementedError(
            "Timer.collect_callgrind: run the program under `valgrind --tool=callgrind`"
        )

    def _measured(
        self, enough: Callable[[list[float]], bool], callback: Any, min_run_time: float
    ) -> Measurement:
        times: list[float] = []
        with set_torch_threads(self._task_spec.num_threads):
            number = self._number(min_run_time)
            while not times or not enough(times):
                took = self._timer.timeit(number)
                if callback is not None:
                    callback(number, took)
                times.append(took)
        return self._measurement(number, times)

    def _number(self, min_run_time: float) -> int:
        """Runs after which reading the clock does not matter; warms up on the way."""
        clock = median(self._timer.timeit(0) for _ in range(5))
        number = 1
        while True:
            took = self._timer.timeit(number)
            if took > min_run_time or (clock <= _OVERHEAD * took and took >= min_run_time / 1000):
                return number
            number *= 10

    def _measurement(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number, times, self._task_spec)
