"""Switches of the compiler, one per process; a program sets them as attributes of this module.

Owns their names, types and defaults: an attribute that is none of them is refused, and so is a
value that nothing implements. `patch` sets some for a while. Who obeys a switch reads it here.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flambeau._ir import logs

#: True: a frame whose graph a back end cannot compile runs in plain Python, which is logged
#: (FLAMBEAU_LOGS=graph_breaks) and nothing else. False: `exc.BackendCompilerFailed` is raised.
suppress_errors: bool = False

#: How often one function may be compiled under one `compile`, for inputs of another kind; calls
#: beyond it run in plain Python, with a warning (an error where `fullgraph=True`).
#: `cache_size_limit` is its older name.
recompile_limit: int = 8

#: How often one function may be compiled under all of them together.
accumulated_recompile_limit: int = 256

#: True: `exc.FailOnRecompileLimitHit` is raised where that limit is reached.
fail_on_recompile_limit_hit: bool = False

#: True: `exc.RecompileError` is raised where a function would be compiled again.
error_on_recompile: bool = False

#: True: nothing more is compiled; functions run in plain Python.
disable: bool = False

#: True: what ends graphs, why functions are compiled again, and the user's line, are printed as
#: with FLAMBEAU_LOGS=graph_breaks,recompiles.
verbose: bool = False

#: Functions and methods of loggers whose calls are left out of what is compiled.
ignore_logger_methods: set[Any] = set()

#: False: with `dynamic=None`, sizes and integers that vary are compiled anew, never made symbols.
automatic_dynamic_shapes: bool = True

#: False: `dynamic=None` means `dynamic=True`.
assume_static_by_default: bool = True

#: True: integers from outside are constants, never symbols.
specialize_int: bool = False

#: True: floats from outside are constants; otherwise one that is seen to vary is an input.
specialize_float: bool = False

#: True: `Tensor.item()`, `tolist()`, `int(tensor)` and their like are in the graph, and what is
#: computed from such numbers too. The graph ends where a number decides what runs, or is a size.
#: `fullgraph=True` does it anyway; a size begins a second graph then, a decision is an error.
capture_scalar_outputs: bool = False

#: Operations whose result's shape depends on data, in a graph. True is refused: they end a graph.
capture_dynamic_output_shape_ops: bool = False

#: Layers of `nn` that go over time are followed like others; there is nothing to turn off.
allow_rnn: bool = True

#: Modules are followed like other objects, their parameters' sizes are constants, and so on: what
#: PyTorch lets a program choose, and here has one way.
inline_inbuilt_nn_modules: bool = True
guard_nn_modules: bool = True
force_parameter_static_shapes: bool = True
dynamic_shapes: bool = True
capture_func_transforms: bool = False
trace_numpy: bool = False
optimize_ddp: bool = False
compiled_autograd: bool = False
skip_fwd_side_effects_in_bwd_under_checkpoint: bool = False

_OLDER_NAMES = {
    "cache_size_limit": "recompile_limit",
    "accumulated_cache_size_limit": "accumulated_recompile_limit",
    "fail_on_cache_limit_hit": "fail_on_recompile_limit_hit",
}
#: switches of one value, and why there is no other
_ONE_VALUE = {
    "capture_dynamic_output_shape_ops": "operations whose result's shape depends on data end a "
    "graph, and what follows is captured as a graph of its own",
    "allow_rnn": "RNNs are followed like other modules",
    "inline_inbuilt_nn_modules": "modules are followed like other objects",
    "guard_nn_modules": "what is read of a module is guarded",
    "force_parameter_static_shapes": "sizes of parameters are constants",
    "dynamic_shapes": "automatic_dynamic_shapes=False keeps sizes constant",
    "capture_func_transforms": "a transform ends the graph, and runs in plain Python",
    "trace_numpy": "NumPy's arrays end a graph",
    "optimize_ddp": "a graph is not cut into the buckets of DistributedDataParallel",
    "compiled_autograd": "backward of a graph is compiled with it, the rest of backward is not",
    "skip_fwd_side_effects_in_bwd_under_checkpoint": "what is computed again runs as a whole",
}
_TYPES: dict[str, type] = {
    name: type(value)
    for name, value in list(globals().items())
    if type(value) in (bool, int, set) and not name.startswith("_")
}
_VALUES = {name: globals()[name] for name in _ONE_VALUE}


@contextmanager
def patch(
    name: str | dict[str, Any] | None = None, value: Any = None, **more: Any
) -> Iterator[None]:
    """Sets switches, and sets them back at the end; a context manager and a decorator.

    Args:
        name: a switch, whose `value` is the next argument; or a dict of several.
        more: switches by name.

    >>> with torch._dynamo.config.patch(recompile_limit=2):
    ...     torch._dynamo.config.cache_size_limit
    2
    >>> torch._dynamo.config.recompile_limit
    8
    """
    given = {name: value} if isinstance(name, str) else dict(name or {})
    module = sys.modules[__name__]
    wanted = {**given, **more}
    before = {n: getattr(module, n) for n in wanted}
    try:
        for n, v in wanted.items():
            setattr(module, n, v)
        yield
    finally:
        for n, v in before.items():
            setattr(module, n, v)


class _Switches(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name in _OLDER_NAMES:
            return getattr(self, _OLDER_NAMES[name])
        raise AttributeError(f"_dynamo.config: there is no switch {name!r}; known: {_known()}")

    def __setattr__(self, name: str, value: Any) -> None:
        name = _OLDER_NAMES.get(name, name)
        kind = _TYPES.get(name)
        if kind is None:
            if not name.startswith("__"):
                raise AttributeError(
                    f"_dynamo.config: there is no switch {name!r}; known: {_known()}"
                )
        elif type(value) is not kind:
            raise TypeError(
                f"_dynamo.config.{name}: expected {kind.__name__}, got {type(value).__name__}"
            )
        elif name in _ONE_VALUE and value is not _VALUES[name]:
            raise NotImplementedError(
                f"_dynamo.config.{name}: expected {_VALUES[name]}, got {value}; {_ONE_VALUE[name]}"
            )
        elif name == "verbose":
            logs.add("verbose", ("graph_breaks", "recompiles") if value else ())
        super().__setattr__(name, value)


def _known() -> str:
    return ", ".join(sorted({*_TYPES, *_OLDER_NAMES}))


sys.modules[__name__].__class__ = _Switches
