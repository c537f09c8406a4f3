"""`Config`: one `compile(...)`: its options, what was compiled under it, its back end. The hook
asks it on every miss (`capture`)."""

from __future__ import annotations

import types
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import flambeau
from flambeau import _C
from flambeau._dynamo import config as dynamo
from flambeau._dynamo.utils import counters
from flambeau._ir.logs import enabled, log
from flambeau.compiler._stance import may_compile

from . import capture as _capture
from .back_ends import unboxed
from .capture import Captured
from .dynamic_shapes import DynamicShapes
from .errors import (
    BackendCompilerFailed,
    Break,
    FailOnRecompileLimitHit,
    RecompileError,
    Unsupported,
)
from .kinds import trusted

_C._set_capture_callbacks(Break, trusted)

_all: weakref.WeakSet[Config] = weakref.WeakSet()


def forget_all() -> None:
    """What `reset` does to compilations: they start anew."""
    for config in list(_all):
        config.forget()


def _face(backend: Any, graph: Any, names: Sequence[str]) -> Any:
    """The graph as the back end takes it: ours know the compiler's, others a `GraphModule`."""
    if getattr(getattr(backend, "func", backend), "takes_graph", False):
        return graph
    from flambeau.fx._captured import as_module

    return as_module(graph, names)


class Trust:
    """How often checks of a code object failed, see Note [Checks]: where they do so as a rule, a
    graph that runs in vain costs more than one that ends before the branch."""

    _most = 16

    def __init__(self) -> None:
        self.failures = 0

    def note(self, drawn_from: Any = None) -> object:
        """What an entry returns where a check fails.

        Args:
            drawn_from: the state of the generator before the graph, which drew from it.
        """
        self.failures += 1
        if drawn_from is not None:
            flambeau.set_rng_state(drawn_from)
        return _C._run_plainly

    def __call__(self, _: Any) -> bool:
        return self.failures < self._most


class Config:
    """One compilation and all it led to."""

    def __init__(
        self,
        backend: Callable[..., Any],
        fullgraph: bool = False,
        dynamic: bool | None = None,
        limit: int | None = None,
        strict: bool = False,
        name: str | None = None,
    ) -> None:
        self.backend, self.fullgraph, self.dynamic, self.limit = backend, fullgraph, dynamic, limit
        function = getattr(backend, "func", backend)  # of a partial, which holds options
        own: str = getattr(function, "__name__", type(function).__name__)
        self.name = name or own  # for messages
        self.strict = strict  # errors of capture itself are raised, not reported
        self.parts: list[Captured] = []
        self.was_observed = False  # by the stance "eager_then_compile"
        self.roots: list[types.CodeType] = []
        self._dynamic_shapes: dict[int, tuple[types.CodeType, DynamicShapes]] = {}
        self._left: dict[int, types.CodeType] = {}
        self._trust: dict[int, tuple[types.CodeType, Trust]] = {}
        _all.add(self)

    def with_backend(self, backend: Callable[..., Any], name: str | None) -> Config:
        """The same with another back end."""
        made = Config(backend, self.fullgraph, self.dynamic, self.limit, self.strict, name)
        made.roots = self.roots
        return made

    def capture(
        self, code: types.CodeType, function: Any, namespace: dict[str, Any], values: Any
    ) -> tuple[Any, Any] | None:
        """Called by the hook: (guards, callable), or None to run the frame as it is."""
        if id(code) in self._left or dynamo.disable or not may_compile(code.co_qualname):
            return None
        return _capture.capture(self, code, function, namespace, values)

    def leave(self, code: types.CodeType) -> None:
        """Frames of this code run plainly from now on."""
        self._left[id(code)] = code

    def takes_on_trust(self, code: types.CodeType) -> bool:
        """Whether branches of a code object that would raise are left out of its graphs."""
        return id(code) not in self._trust or self._trust[id(code)][1](None)

    def trust(self, code: types.CodeType) -> Trust:
        """What is known of the checks in the graphs of a code object."""
        return self._trust.setdefault(id(code), (code, Trust()))[1]

    def is_root(self, code: types.CodeType) -> bool:
        return any(code is r for r in self.roots)

    def dynamic_shapes(self, code: types.CodeType) -> DynamicShapes:
        return self._dynamic_shapes.setdefault(id(code), (code, DynamicShapes(self.dynamic)))[1]

    def may_recompile(self, code: types.CodeType, because: str) -> bool:
        """Whether one more form of a code object may be compiled."""
        owners = [owner for owner, _, _ in _C._code_entries(code)]
        count = sum(owner is self for owner in owners)
        limit = dynamo.recompile_limit if self.limit is None else self.limit
        limit = min(limit, count + dynamo.accumulated_recompile_limit - len(owners))
        if count < limit and dynamo.error_on_recompile:
            raise RecompileError(
                f"compile: {code.co_qualname} ({code.co_filename}:{code.co_firstlineno}) would be "
                f"compiled again: not so any more: {because}"
            )
        if count < limit:
            counters["recompiles"][code.co_qualname] += 1
            log("recompiles", f"{code.co_qualname} is compiled again: not so any more: {because}")
            return True
        message = (
            f"compile: {code.co_qualname} ({code.co_filename}:{code.co_firstlineno}) was compiled "
            f"{count} times, which is the limit (flambeau._dynamo.config.recompile_limit); other "
            f"calls of it run in plain Python. The last reason: not so any more: "
            f"{because.partition('; ')[0]}. FLAMBEAU_LOGS=recompiles shows all; sizes that vary "
            "are marked by mark_dynamic, and other values are better tensors than numbers"
        )
        if dynamo.fail_on_recompile_limit_hit:
            raise FailOnRecompileLimitHit(message)
        if self.fullgraph:
            raise Unsupported(message)
        self.leave(code)
        warnings.warn_explicit(message, UserWarning, code.co_filename, code.co_firstlineno)
        return False

    def compile(
        self, graph: Any, examples: list[Any], where: Any, names: Sequence[str] = ()
    ) -> Callable[..., Any]:
        """What the back end makes of a graph that was captured from the function at `where`.

        Args:
            names: where the graph's inputs were found.

        Raises:
            BackendCompilerFailed: it raised.
        """
        if enabled("graph_code"):
            log("graph_code", f"captured graph\n{graph}")
        source = f"the graph of {len(graph.nodes)} operations captured from {where}"
        try:
            made = self.backend(_face(self.backend, graph, names), examples)
            if not callable(made):
                raise TypeError(f"a back end returns a callable, got {type(made).__name__}")
            if getattr(made, "_boxed_call", False):
                made = unboxed(made)
        except Exception as error:
            raise BackendCompilerFailed(self.name, error, source) from error
        return made

    def report(self, part: Captured) -> None:
        self.parts.append(part)
        counters["frames"]["total"] += 1
        if part.graph is not None:
            counters["frames"]["ok"] += 1
        if part.nodes:
            counters["stats"]["unique_graphs"] += 1
            counters["stats"]["calls_captured"] += part.nodes
        if part.reason is not None:
            counters["graph_break"][part.reason] += 1
        if part.reason is not None and part.graph is not None:
            log("graph_breaks", f"{part.name}: {part.reason} ({part.where})")
        if part.text:
            log("bytecode", f"{part.name}\n{part.text}")
            log("guards", f"{part.name}\n  " + "\n  ".join(part.guards))

    def forget(self) -> None:
        """Drops all that was compiled."""
        _C._drop_captures(self)
        self.parts.clear()
        self.was_observed = False
        self._dynamic_shapes.clear()
        self._left.clear()
        self._trust.clear()
