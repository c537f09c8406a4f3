"""Sizes of results that only the run tells, as `nonzero` and masks as indices have them.

Note [Sizes of a run]
Each is a symbol without a hint (`ShapeEnv.unbacked`). The results of an entry whose option
`dynamic` states them have one, which the run finds in the first result that shows it. A shape rule
that asks about such a size is told what holds of sizes other than 0 and 1 (`ShapeEnv.assuming`),
and equal sizes are taken for granted where nothing says otherwise; the run holds every result to
its type (`_ir/graph_run.py`). The program itself is told nothing: its question ends the graph.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import flambeau

from .._ir.symbols import ShapeEnv
from .._ir.symscalar import SymInt
from .._table.model import Op
from . import geometry
from .fake import Fake, new
from .meanings import DataDependent

_LOCAL = threading.local()


@contextmanager
def taking(env: ShapeEnv | None) -> Iterator[None]:
    """Within, results may have sizes that only the run tells, as symbols of an environment."""
    before = getattr(_LOCAL, "env", None)
    _LOCAL.env = env
    try:
        yield
    finally:
        _LOCAL.env = before


def results(op: Op, args: list[Any]) -> Any:
    """The results of an entry whose sizes depend on the data.

    Raises:
        DataDependent: the graph takes no such sizes, or the entry does not state its results.
    """
    env, stated = getattr(_LOCAL, "env", None), op.option("dynamic")
    if env is None or not isinstance(stated, str):
        raise DataDependent(f"{op.name}: the size of the result depends on the data")
    names = {p.name: a for p, a in zip(op.params, args, strict=True)}
    names |= {"n": env.unbacked(0), "int64": flambeau.int64, "float64": flambeau.float64}
    names |= {"float32": flambeau.float32}
    device = next(a.device for a in args if isinstance(a, Fake))
    made = [new(s, d, device) for s, d in eval(stated, {"__builtins__": {"list": list}}, names)]
    return made[0] if len(made) == 1 else tuple(made)


def settle(env: ShapeEnv, bound: dict[str, tuple[Fake, int]], made: list[Fake]) -> None:
    """Notes where the run finds symbols that results bring; one size, one symbol."""
    for x in made:
        shape = list(x.shape)
        for d, n in enumerate(shape):
            if _unknown(n, bound):
                if n.expr.text not in env.symbols:
                    n = shape[d] = env.unbacked(0)
                bound[n.expr.text] = (x, d)
        if any(a is not b for a, b in zip(shape, x.shape, strict=True)) or any(
            _unknown(n, bound) for n in x.strides
        ):
            x.shape, x.strides = tuple(shape), geometry.contiguous_strides(shape)


def _unknown(n: Any, bound: dict[str, Any]) -> bool:
    """Whether a size depends on a symbol that no result has shown yet."""
    if not isinstance(n, SymInt):
        return False
    return any(n.env.symbols[s].hint is None and s not in bound for s in n.expr.symbols)
