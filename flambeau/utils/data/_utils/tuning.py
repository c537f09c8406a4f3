"""How large a buffer has to be, and how many workers a loader, as a pass shows.

Owns the two rules and what is said of them. They are told times and lengths and know neither
loaders nor pipes.
"""

from __future__ import annotations

import os
import statistics


class Tuned:
    """The size of a buffer that is read ahead into.

    A buffer helps where the source is quick enough as a whole but not evenly: it is full at times
    and empty at others. Then it is doubled. One that is never full waits for its source, however
    large it is, and one that is never empty is large enough.

    Args:
        name: what the size is called.
        most: the largest size.

    Attributes:
        size: what was chosen so far.
    """

    first = 2

    def __init__(self, name: str, most: int = 1024) -> None:
        self._name, self._most = name, most
        self.size = self.first
        self.taken = self.empty = self.doubled = 0
        self._was_full = False

    def took(self, waiting: int, full: int | None = None) -> bool:
        """Note how many elements waited when one was asked for; the first has nobody to wait.

        Args:
            waiting: how many.
            full: how many there are at most; by default the size.

        Returns:
            whether the size has grown.
        """
        self.taken += 1
        if waiting >= (self.size if full is None else full):
            self._was_full = True
        elif waiting == 0 and self.taken > 1:
            self.empty += 1
            if self._was_full and self.size < self._most:
                self.size, self._was_full = min(2 * self.size, self._most), False
                self.doubled += 1
                return True
        return False

    def __str__(self) -> str:
        head = f"chose {self._name}={self.size}"
        if not self.taken:
            return f"{head} to begin with"
        waits = f"{self.empty} of {self.taken} elements were waited for"
        if self.doubled:
            return f"{head}: {waits}, and it was full at other times"
        if 2 * self.empty > self.taken:
            return f"{head}: {waits}; the source is slower than what reads it, whatever the buffer"
        return f"{head}: {waits}"


def processors() -> int:
    """How many processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


class WorkerChoice:
    """How many workers a loader has, from the first batches, which are made in the calling thread.

    With n workers a batch takes the longer of its use and an n-th of its making, and the time that
    it takes to arrive. There are enough when making is not the longer; none where they would save
    less than a twentieth, or less in a pass than it takes to start them.

    Args:
        most: the largest number.

    Attributes:
        workers: what was chosen, or None.
    """

    needed = 8  # batches
    arrival, start = 0.0003, 0.05  # seconds: a batch from a worker; a worker's start

    def __init__(self, most: int) -> None:
        self._most = most
        self._making: list[float] = []
        self._use: list[float] = []
        self.workers: int | None = None
        self._why = ""

    def note(self, making: float, use: float) -> None:
        """Note the seconds that a batch took to be made, and those until the next was wanted."""
        self._making.append(making)
        self._use.append(use)

    @property
    def ready(self) -> bool:
        """Whether enough was noted to choose."""
        return self.workers is None and len(self._making) >= self.needed

    def choose(self, batches: int | None) -> int:
        """The number of workers for passes of so many batches (None: unknown)."""
        making, use = statistics.median(self._making), statistics.median(self._use)
        wanted = self._most if use * self._most < making else max(1, -(-making // use))
        count = int(min(wanted, self._most))
        saved = making + use - max(use, making / count) - self.arrival
        took = f"a batch takes {_shown(making)} to make and {_shown(use)} to use"
        self._why = f"{took}; {self._most} processors"
        if saved < 0.05 * (making + use):
            count, self._why = 0, f"{took}; workers would save nothing"
        elif batches is not None and batches * saved < self.start * count:
            count, self._why = 0, f"{took}; a pass of {batches} batches is too short for workers"
        self.workers = count
        return count

    def take(self, workers: int) -> None:
        """Take the number of workers of a state that is put back."""
        self.workers, self._why = workers, "so many had the loader whose state was put back"

    def __str__(self) -> str:
        if self.workers is None:
            return f"num_workers=0 until {self.needed} batches have been measured"
        return f"chose num_workers={self.workers}: {self._why}"


def _shown(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms"
