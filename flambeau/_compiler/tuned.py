"""`max_autotune` and `shape_padding`: ways to compile a graph are timed on its example inputs, and
the fastest is taken.

Owns the choice, which is kept on disk under the graph's name. The examples are copied, and random
generators are put back, so that nothing is seen of the trials.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import flambeau

from .._ir.logs import log
from .._ir.settings import Settings, using

#: what `max_autotune` tries
CANDIDATES = (
    Settings(),
    Settings(layouts=False),
    Settings(fusion=False),
    Settings(fusion=False, layouts=False),
)
_ROUNDS, _LONGEST = 20, 0.2  # calls of each, seconds for each


def fastest(
    compile: Callable[[Settings], Any],
    examples: Sequence[Any],
    candidates: Sequence[Settings] = CANDIDATES,
) -> int:
    """The number of the settings under which the compiled function takes the least time; 0 where
    none is better than the first by more than a hundredth.

    Args:
        compile: makes the function of the graph.
        examples: its inputs, which stay as they are.
        candidates: what is tried.
    """
    times = []
    for settings in candidates:
        with using(settings):
            function = compile(settings)
        times.append(_time(function, examples))
        log("graph_breaks", f"trial: {settings}: {times[-1] * 1e6:.1f} us")
    best = min(range(len(times)), key=times.__getitem__)
    return best if times[best] < 0.99 * times[0] else 0


def _time(function: Callable[..., Any], examples: Sequence[Any]) -> float:
    state = flambeau.get_rng_state()
    inputs = [_copy(x) for x in examples]
    best, start = float("inf"), time.perf_counter()
    for _ in range(_ROUNDS):
        begun = time.perf_counter()
        function(*inputs)
        best = min(best, time.perf_counter() - begun)
        if time.perf_counter() - start > _LONGEST:
            break
    flambeau.set_rng_state(state)
    return best


def _copy(x: Any) -> Any:
    if not isinstance(x, flambeau.Tensor):
        return x
    return flambeau.empty_strided(x.shape, x.stride(), dtype=x.dtype).copy_(x.detach())
