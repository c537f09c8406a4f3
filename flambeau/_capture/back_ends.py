"""The back ends that come with the library: functions of a captured graph and example inputs.

They are put together from `_ir.graph_run` (calls of the table), `_aot` (forward and backward graphs
of primitives) and `_compiler` (native code).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from typing import Any

import flambeau
from flambeau._ir.graph import REGION, Graph, TensorType
from flambeau._ir.graph_run import prepare
from flambeau._ir.logs import log, printing
from flambeau._ir.native import Makers, Recorded
from flambeau._ir.settings import Settings, current, using


def run_eagerly(graph: Graph, example_inputs: Any = ()) -> Callable[..., tuple[Any, ...]]:
    """'eager': the captured graph, node by node."""
    return prepare(graph)


def run_ahead_of_time(graph: Graph, example_inputs: Any) -> Callable[..., tuple[Any, ...]]:
    """'aot_eager': functional forward and backward graphs of primitives, node by node."""
    from flambeau._aot import NotFunctional, aot, callable_of

    if _has_regions(graph):
        return run_eagerly(graph)
    try:
        wanted = _wanted([*example_inputs, *graph.attached])
        later = _recorded(graph, wanted, run_ahead_of_time)
        return callable_of(aot(graph, wanted), recorded=later)
    except NotFunctional as e:
        _note_as_captured(e)
        return run_eagerly(graph)


def run_compiled(
    graph: Graph, example_inputs: Any, options: Mapping[str, bool] | None = None
) -> Callable[..., tuple[Any, ...]]:
    """'inductor': the same graphs in native code; `options` as `_inductor.config` has them."""
    from flambeau._inductor import config

    chosen = {name: config.value(name) for name in config.DEFAULTS} | dict(options or {})
    settings = Settings(chosen["epilogue_fusion"], chosen["layout_optimization"])
    traced = ("graph_code", "output_code") if chosen["trace.enabled"] else ()
    with printing(*traced):
        log("graph_code", f"graph for the native back end\n{graph}") if traced else None
        candidates: tuple[Settings, ...] = (settings,)
        if chosen["max_autotune"]:
            from flambeau._compiler import tuned

            candidates = tuned.CANDIDATES
        if chosen["shape_padding"]:
            candidates += tuple(replace(c, padding=True) for c in candidates)
        if len(candidates) > 1:
            settings = _tuned(graph, example_inputs, candidates)
        with using(settings):
            return _compiled(graph, example_inputs)


def _tuned(graph: Graph, example_inputs: Any, candidates: Sequence[Settings]) -> Settings:
    """The settings that trials have found best for a graph."""
    from flambeau._compiler import kept, tuned

    def choose() -> int:
        return tuned.fastest(lambda _: _compiled(graph, example_inputs), example_inputs, candidates)

    with using(candidates[-1]):  # part of the name under which the choice is kept
        return candidates[kept.choice(graph, _wanted(example_inputs), choose)]


def _compiled(graph: Graph, example_inputs: Any) -> Callable[..., tuple[Any, ...]]:
    """The native function of a graph, by the settings in force."""
    from flambeau._compiler import kept

    types = [v.type for node in graph.nodes for v in node.outs]
    if any(isinstance(t, TensorType) and t.device.type != "cpu" for t in types):
        log("graph_breaks", "a graph runs uncompiled: it makes tensors that are not on the CPU")
        return run_eagerly(graph)
    if _has_regions(graph):
        return run_eagerly(graph)
    wanted = _wanted([*example_inputs, *graph.attached])
    made: Callable[..., tuple[Any, ...]] | None
    makers = Makers(partial(_part, current()), _recorded(graph, wanted, _compiled))
    made = kept.fetch(graph, wanted, lambda: _lower(graph, wanted), makers)
    return made or run_eagerly(graph)


def _part(settings: Settings, function: Any, there: str, compile: bool) -> tuple[Any, ...]:
    """See `native.Part`; by the settings of the whole."""
    with using(settings):
        return _part_of(function, there, compile)


def _recorded(graph: Graph, wanted: list[bool], back_end: Any) -> Callable[[str], Recorded | str]:
    """See `native.Makers`; by what is known and in force now, before the passes run."""
    graph = replace(graph, env=graph.env.copied())
    settings, dtype = current(), flambeau.get_default_dtype()

    @contextmanager
    def as_compiled() -> Iterator[None]:
        now = flambeau.get_default_dtype()
        flambeau.set_default_dtype(dtype)
        try:
            with using(settings):
                yield
        finally:
            flambeau.set_default_dtype(now)

    def compiled(part: Graph, given: Sequence[Any]) -> Callable[..., Any]:
        with as_compiled():
            return back_end(part, given)

    @cache
    def makers() -> Callable[[str], Recorded] | str:
        from flambeau._aot import NotAgain, recorded

        try:
            with as_compiled():
                return recorded(graph, wanted, compiled)
        except NotAgain as e:
            return str(e)

    def made(there: str) -> Recorded | str:
        maker = makers()
        return maker if isinstance(maker, str) else maker(there)

    return made


def _part_of(function: Any, there: str, compile: bool) -> tuple[Any, ...]:
    """The same. What the passes need is imported where the cache does not have it."""
    from flambeau._compiler import kept

    def made(back_end: Callable[[Graph], Any]) -> tuple[Any, ...]:
        from flambeau._aot import part_of

        return part_of(function, there, back_end)

    def native(graph: Graph) -> Any:
        from flambeau._compiler.execute import programs

        return programs([graph])[0]

    return kept.part(function.whole, there, lambda: made(native)) if compile else made(prepare)


def _lower(graph: Graph, wanted: list[bool]) -> tuple[Any, list[Any]] | None:
    """The function of a captured graph, and its programs; None where it runs as captured.

    Where backward depends on which of several results are used, it is compiled when that is known.
    """
    from flambeau._aot import NotFunctional, aot, described
    from flambeau._compiler.execute import programs

    try:
        compiled = aot(graph, wanted)
    except NotFunctional as e:
        _note_as_captured(e)
        return None
    function = described(compiled)
    graphs = [compiled.forward]
    one = len(compiled.metadata.differentiable) == 1
    if compiled.backward is not None and (one or function.whole is None):
        graphs.append(compiled.backward)
    return function, programs(graphs)


def _has_regions(graph: Graph) -> bool:
    """Whether a graph runs as it was captured: with transforms, conditions, sizes of a run."""
    kinds = dict.fromkeys(n.target.removeprefix(REGION) for n in graph.nodes if n.is_region)
    if any(s.hint is None for s in graph.env.symbols.values()):
        kinds["sizes that depend on data"] = None
    if kinds:
        log("graph_breaks", f"a graph runs uncompiled: it holds {', '.join(kinds)}")
    return bool(kinds)


def _note_as_captured(why: Exception) -> None:
    """A graph runs node by node, as it was captured: right, and no faster than eager."""
    log("graph_breaks", f"a graph runs uncompiled: {why}")


def aot_autograd(
    *,
    fw_compiler: Callable[..., Callable[..., Any]],
    bw_compiler: Callable[..., Callable[..., Any]] | None = None,
    decompositions: bool = False,
) -> Callable[..., Any]:
    """A back end made of functions that compile graphs of primitives.

    Such a graph changes nothing in place, and its derivative is a graph of the same kind: what is
    saved for it are further outputs of the first and inputs of the second.

    Args:
        fw_compiler: `f(gm, example_inputs)` for what runs forward: a `fx.GraphModule` and tensors
            without data; gives a function of the graph's inputs that returns its outputs, or
            one of a list of them (`make_boxed_func`).
        bw_compiler: the same for backward; None: the same function.
        decompositions: write out the primitives that are fused from others (layer_norm and the
            like), so that there is less to implement.
    """
    from flambeau._aot import aot, callable_of
    from flambeau._compiler.decompose import decompose
    from flambeau.fx._captured import as_module, graph_of

    def back_end(given: Any, example_inputs: Any) -> Callable[..., tuple[Any, ...]]:
        graph = graph_of(given, example_inputs)
        wanted = _wanted([*example_inputs, *graph.attached])
        later = _recorded(graph, wanted, back_end)
        compiled = aot(graph, wanted)

        def runs(compiler: Callable[..., Callable[..., Any]]) -> Callable[[Graph], Any]:
            def run(part: Graph) -> Callable[..., Any]:
                module = as_module(decompose(part) if decompositions else part)
                inputs = [n.meta.get("val") for n in module.graph.nodes if n.op == "placeholder"]
                made = compiler(module, inputs)
                return unboxed(made) if getattr(made, "_boxed_call", False) else made

            return run

        return callable_of(compiled, runs(fw_compiler), runs(bw_compiler or fw_compiler), later)

    back_end.takes_graph = True  # type: ignore[attr-defined]
    return back_end


for _own in (run_eagerly, run_ahead_of_time, run_compiled):
    _own.takes_graph = True  # type: ignore[attr-defined]


def _wanted(example_inputs: Any) -> list[bool]:
    return [getattr(x, "requires_grad", False) for x in example_inputs]


def unboxed(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a list of arguments as one of arguments."""
    return lambda *args: function(list(args))
