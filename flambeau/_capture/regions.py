"""What the program hands to a transform of `torch.func`, to `cond` and to `while_loop`: blocks of
the graph, see Note [Regions]. With `fullgraph=True` alone: else the graph ends before the call.

A function is followed once over tensors of its own, and the nodes it records are taken out of the
graph again. What it takes from the program around it are further inputs of its block.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any

import flambeau
from flambeau import _C, func
from flambeau._higher_order_ops.cond import cond
from flambeau._higher_order_ops.while_loop import while_loop
from flambeau._ir.graph import REGION, Block, Value, copied, values_of
from flambeau._ir.targets import resolve
from flambeau._trace import geometry
from flambeau._trace.fake import Fake
from flambeau._trace.record import is_inexact
from flambeau._trace.run_numbers import RunNumber
from flambeau._trace.table import draws
from flambeau.func import _trees as trees
from flambeau.func.vmap import flat_in_dims
from flambeau.utils import _pytree as pytree

from . import calls, kinds
from .builtin_calls import means
from .errors import Break, Raised
from .interpreter import Frame

Meaning = Callable[[Frame, Any, list[Any], dict[str, Any]], Any]

#: what runs blocks as they are
_CONTROL = ("cond", "while_loop", "scan")

# Bodies -------------------------------------------------------------------------------------------


class Body:
    """A function of the program as nodes: its own inputs, what it takes from around it, results."""

    def __init__(self, f: Frame, name: str, own: list[Any], run: Callable[[], Any]) -> None:
        tensors = f.interpreter.tensors
        self.session, self.recorder = tensors.session, tensors.recorder
        self.name, nodes = name, tensors.graph.nodes
        start, before = len(nodes), f.shadow_state.changes()
        transforms = name not in _CONTROL
        tensors.transforms += transforms
        tensors.blocks += 1
        try:
            result = run()
        except Raised:
            del nodes[start:]
            raise
        finally:
            tensors.transforms -= transforms
            tensors.blocks -= 1
        if f.shadow_state.changes() != before:
            raise Break(f"the function given to {name} changes more than what it returns")
        self.leaves, self.spec = pytree.tree_flatten(result)
        self.places = [k for k, x in enumerate(self.leaves) if kinds.is_tensor(x)]
        self.outputs = [self.session.fake(self.leaves[k]) for k in self.places]
        self.own = tuple(self.session.fake(x).value for x in own)
        self.results = tuple(map(self.recorder.read, self.outputs))
        self.nodes = nodes[start:]
        del nodes[start:]
        inside = {*self.own, *(v for n in self.nodes for v in n.outs)}
        self._refuse_changes()
        taken = [v for n in self.nodes for v in n.inputs] + list(values_of(self.results))
        self.free = dict.fromkeys(v for v in taken if v not in inside)
        self.recorder.closed.update(inside)

    def _refuse_changes(self) -> None:
        """What is changed in place must have been made inside."""
        base: dict[Value, Value] = {}
        for n in self.nodes:
            if n.blocks:
                base.update((v, v) for v in n.outs)
                continue
            target = resolve(n.target)
            first = next(iter(values_of(n.args)), None)
            if target.mutates and first not in base:
                raise Break(f"the function given to {self.name} changes a tensor from outside")
            fresh = target.op.kind in ("pointwise", "structured") and not target.mutates
            if fresh or first is None:
                base.update((v, v) for v in n.outs)
            elif first in base:
                base.update((v, base[first]) for v in n.outs)

    @property
    def draws(self) -> bool:
        """Whether it takes random numbers."""
        walk = Block(nodes=self.nodes).walk()
        return any(not n.blocks and draws(n.target) for n in walk)

    def block(self, free: Any) -> Block:
        """The block, whose inputs are its own and these."""
        made = Block((*self.own, *free), self.nodes, self.results)
        return copied(made, self.recorder.builder.value)

    def rebuilt(self, shown: list[Any]) -> Any:
        """The result with other tensors in the place of its own."""
        leaves = list(self.leaves)
        for k, x in zip(self.places, shown, strict=True):
            leaves[k] = x
        return pytree.tree_unflatten(leaves, self.spec)


def add(
    f: Frame, kind: str, options: tuple[Any, ...], own: list[Any], bodies: list[Body], types_: Any,
    follows: bool = True,
) -> list[Any]:  # fmt: skip
    """A node of a region: its results, of these dtypes and shapes, and orders of dims in memory;
    `follows`: gradients flow through it."""
    session, recorder = f.interpreter.tensors.session, f.interpreter.tensors.recorder
    free = tuple(dict.fromkeys(v for b in bodies for v in b.free))
    given = tuple(recorder.read(session.fake(x)) for x in own)
    results = [(d, tuple(s), tuple(*rest)) for d, s, *rest in types_]
    made = [
        Fake(d, s, geometry.placed(s, o[::-1] or range(len(s))[::-1]), _CPU) for d, s, o in results
    ]
    grad = flambeau.is_grad_enabled()
    args = (recorder.arg(options), given, free, tuple(o for _, _, o in results))
    out_types = tuple(x.type for x in made)
    node = recorder.builder.add(REGION + kind, args, out_types, recorder.env.locate(), grad)
    node.blocks = tuple(b.block(free) for b in bodies)
    wanted = {x.fake.value for x in session.of_fake.values() if x.fake.requires_grad}
    flows = follows and grad and not wanted.isdisjoint((*given, *free))
    for x, v in zip(made, node.outs, strict=True):
        x.value, x.requires_grad = v, flows and is_inexact(x.dtype)
    return [session.shown(x) for x in made]


_CPU = flambeau.device("cpu")


def _fresh(f: Frame, x: Any, drop: int | None = None, wants: bool = False) -> Any:
    """A tensor of a block's own, like one of the program, without the dim `drop`."""
    session = f.interpreter.tensors.session
    like = session.fake(x)
    kept = [d for d in range(like.ndim) if d != drop]
    shape = tuple(like.shape[d] for d in kept)
    made = Fake(like.dtype, shape, tuple(like.strides[d] for d in kept), like.device)
    made.value = session.recorder.builder.value(made.type)
    made.requires_grad = like.requires_grad or (wants and is_inexact(like.dtype))
    return session.shown(made)


def like(x: Any) -> tuple[Any, Any]:
    fake = x.fake if not isinstance(x, Fake) else x
    return fake.dtype, fake.shape


def _recording(run: Callable[[], Any]) -> Callable[[], Any]:
    """A call with gradients on, as transforms make them."""

    def call() -> Any:
        before = flambeau.is_grad_enabled()
        _C._set_grad_enabled(True)
        try:
            return run()
        finally:
            _C._set_grad_enabled(before)

    return call


def _variables(f: Frame, function: types.FunctionType) -> dict[str, Any]:
    """What a function closes over, by name."""
    cells, names = _cells(f, function), function.__code__.co_freevars
    return {n: f.shadow_state.read_cell(c) for n, c in zip(names, cells, strict=True)}


def _cells(f: Frame, function: types.FunctionType) -> tuple[Any, ...]:
    """The cells of a function as the program sees them."""
    cells = function.__closure__ or ()
    if f.shadow_state.is_created(function):
        return cells
    source = f.shadow_state.source_of(function).attribute("__closure__")
    return tuple(f.shadow_state.outside_cell(c, source.item(n)) for n, c in enumerate(cells))


def _whole(handler: Any) -> Any:
    """A meaning for `fullgraph=True`; else the library's code is followed to where it breaks."""

    def special(f: Frame, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if not f.interpreter.config.fullgraph:
            return calls.follow(f, function, args, kwargs)
        return handler(f, function, args, kwargs)

    return special


def _inside(function: Any, name: str) -> types.CodeType:
    """The code of a function that a transform returns."""
    consts = function.__code__.co_consts
    return next(c for c in consts if isinstance(c, types.CodeType) and c.co_name == name)


def _of(function: Any, name: str) -> Callable[[Meaning], Meaning]:
    def file(handler: Meaning) -> Meaning:
        calls.BY_CODE[_inside(function, name)] = _whole(handler)
        return handler

    return file


def calls_of(function: Any) -> Callable[[Meaning], Meaning]:
    def file(handler: Meaning) -> Meaning:
        whole = _whole(handler)
        means(function)(lambda f, args, kwargs: whole(f, function, args, kwargs))
        return handler

    return file


def _direct(f: Frame, function: Any, *args: Any) -> Any:
    return f.interpreter.direct(function, *args)


# Transforms ---------------------------------------------------------------------------------------


@_of(func.vmap, "batched")
def _vmap(f: Frame, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    given = _variables(f, function)
    leaves, spec, dims = _direct(f, flat_in_dims, given["in_dims"], tuple(args), given["func"])
    own = [x for x, d in zip(leaves, dims, strict=True) if d is not None]
    in_dims = tuple(d for d in dims if d is not None)
    if not own:
        return calls.follow(f, function, args, kwargs)  # which says what is wrong
    sizes = [x.shape[d] for x, d in zip(own, in_dims, strict=True)]
    if any(n != sizes[0] for n in sizes):
        return calls.follow(f, function, args, kwargs)
    inner = [_fresh(f, x, d) for x, d in zip(own, in_dims, strict=True)]
    rest = iter(inner)
    new = [x if d is None else next(rest) for x, d in zip(leaves, dims, strict=True)]
    tree = pytree.tree_unflatten(new, spec)
    body = Body(f, "vmap", inner, lambda: f.call(given["func"], list(tree), dict(kwargs)))
    out_dims = given["out_dims"]
    if isinstance(out_dims, int):
        per_leaf = [out_dims] * len(body.leaves)
    else:
        if type(out_dims) is tuple and len(out_dims) == 1 and body.spec.is_leaf():
            out_dims = out_dims[0]
        found = pytree._broadcast_to_and_flatten(
            out_dims, body.spec, is_leaf=lambda x: x is None or isinstance(x, int)
        )
        if found is None:
            raise Break("the structure of out_dims is not that of the results of vmap")
        per_leaf = found
    wanted = [per_leaf[k] for k in body.places]
    if len(body.places) != len(body.leaves) and any(
        d is not None for k, d in enumerate(per_leaf) if k not in body.places
    ):
        raise Break("the function given to vmap returns what is no tensor")
    results = []
    for x, d in zip(body.outputs, wanted, strict=True):
        shape = list(x.shape)
        order = _order(x)
        if d is not None:  # samples lie one after another, wherever the dim is
            d %= len(shape) + 1
            shape.insert(d, sizes[0])
            order = [d, *(k + (k >= d) for k in order)]
        results.append((x.dtype, shape, order))
    options = (in_dims, tuple(wanted), given["randomness"], given["chunk_size"])
    return body.rebuilt(add(f, "vmap", options, own, [body], results))


def _order(x: Fake) -> list[int]:
    """The dims of a tensor as they lie in memory, slowest first."""
    dims = range(x.ndim)
    if not all(isinstance(s, int) for s in x.strides):
        return list(dims)
    return sorted(dims, key=lambda d: -x.strides[d])


def _chosen(f: Frame, args: Any, argnums: Any, name: str) -> tuple[list[Any], Any]:
    _direct(f, trees.check_argnums, argnums, tuple(args), name)
    chosen = _direct(f, trees.chosen, tuple(args), argnums)
    leaves, spec = pytree.tree_flatten(chosen)
    if not leaves or not all(kinds.is_tensor(x) for x in leaves):
        raise Break(f"{name}: the inputs that argnums selects are not all tensors")
    return leaves, spec


def _of_chosen(
    f: Frame, name: str, given: Any, args: list[Any], kwargs: Any, aux: bool
) -> tuple[list[Any], Any, Body]:
    """The chosen leaves, their structure, the body that is a function of them."""
    leaves, spec = _chosen(f, args, given["argnums"], name)
    inner = [_fresh(f, x, wants=True) for x in leaves]
    tree = pytree.tree_unflatten(inner, spec)
    new = _direct(f, trees.replaced, tuple(args), given["argnums"], tree)
    run = _recording(lambda: f.call(given["func"], list(new), dict(kwargs)))
    body = Body(f, name, inner, run)
    if aux and not (body.spec.type is tuple and len(body.spec.children_specs) == 2):
        raise Break(f"{name}: with has_aux=True the function is to return (outputs, aux)")
    return leaves, spec, body


def _outputs_of(body: Body, aux: bool) -> int:
    """How many leaves of the result come before what is auxiliary."""
    return body.spec.children_specs[0].num_leaves if aux else len(body.leaves)


def _check_tensors(body: Body, count: int, name: str) -> None:
    if body.places[:count] != list(range(count)) or not count:
        raise Break(f"the function given to {name} returns what is no tensor")


@_of(func.grad_and_value, "derived")
def _grad(f: Frame, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    given = _variables(f, function)
    aux = bool(given["has_aux"])
    leaves, spec, body = _of_chosen(f, "grad", given, args, kwargs, aux)
    if _outputs_of(body, aux) != 1 or body.outputs[0].ndim != 0 or 0 not in body.places:
        raise Break("the function given to grad returns no tensor without dims; sum it up")
    results = [like(x) for x in (*leaves, *body.outputs)]
    made = add(f, "grad", (), leaves, [body], results)
    gradient = pytree.tree_unflatten(made[: len(leaves)], spec)
    value = body.rebuilt(made[len(leaves) :])
    return gradient, value


@_of(func.jacrev, "jacobian")
@_of(func.jacfwd, "jacobian")
def _jacobian(f: Frame, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    name = function.__code__.co_qualname.partition(".")[0]
    given = _variables(f, function)
    aux = bool(given["has_aux"])
    leaves, spec, body = _of_chosen(f, name, given, args, kwargs, aux)
    count = _outputs_of(body, aux)
    _check_tensors(body, count, name)
    outs = body.outputs[:count]
    results: list[Any] = []
    for y in outs:
        for x in leaves:
            shape = (*y.shape, *x.fake.shape)
            order = list(range(len(shape)))
            if name == "jacfwd":  # whose columns are made one after another
                order = order[y.ndim :] + order[: y.ndim]
            results.append((y.dtype, shape, order))
    results += [like(x) for x in body.outputs[count:]]
    options = [("chunk_size", given["chunk_size"])]
    if name == "jacfwd":
        options.append(("randomness", given["randomness"]))
    made = add(f, "jacobian", (name, count, tuple(options)), leaves, [body], results)
    n = len(leaves)
    rows = [pytree.tree_unflatten(made[k * n : k * n + n], spec) for k in range(count)]
    out_spec = body.spec.children_specs[0] if aux else body.spec
    result = pytree.tree_unflatten(rows, out_spec)
    if not aux:
        return result
    return result, body.rebuilt([*body.outputs[:count], *made[count * n :]])[1]


def _primal_body(f: Frame, name: str, function: Any, primals: Any, aux: bool) -> Any:
    leaves, spec = pytree.tree_flatten(tuple(primals))
    if not leaves or not all(kinds.is_tensor(x) for x in leaves):
        raise Break(f"{name}: the primals are not all tensors")
    inner = [_fresh(f, x, wants=True) for x in leaves]
    tree = pytree.tree_unflatten(inner, spec)
    body = Body(f, name, inner, _recording(lambda: f.call(function, list(tree), {})))
    if aux and not (body.spec.type is tuple and len(body.spec.children_specs) == 2):
        raise Break(f"{name}: with has_aux=True the function is to return (outputs, aux)")
    count = _outputs_of(body, aux)
    _check_tensors(body, count, name)
    return leaves, spec, body, count


class Linear:
    """What `vjp` and `linearize` return beside the value, while a program is followed."""

    __slots__ = ("call",)

    def __init__(self, call: Callable[[Frame, list[Any], dict[str, Any]], Any]) -> None:
        self.call = call


calls.BY_KIND[Linear] = lambda f, function, args, kwargs: function.call(f, args, kwargs)


def _twice(body: Body, name: str) -> None:
    if body.draws:
        raise Break(f"the function given to {name} draws random numbers, and runs more than once")


def _pulled(f: Frame, name: str, args: list[Any], kwargs: Any, spec: Any) -> list[Any]:
    """The leaves of cotangents or tangents."""
    if set(kwargs) - {"retain_graph", "create_graph"}:
        raise Break(f"{name}: unknown keywords {sorted(kwargs)}")
    tree = args[0] if len(args) == 1 else tuple(args)
    leaves, found = pytree.tree_flatten(tree)
    if found != spec or not all(kinds.is_tensor(x) for x in leaves):
        raise Break(f"{name}: expected tensors with the structure {spec}, got {found}")
    return leaves


@calls_of(func.vjp)
def _vjp(f: Frame, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    aux = bool(kwargs.get("has_aux", False))
    leaves, spec, body, count = _primal_body(f, "vjp", args[0], args[1:], aux)
    _twice(body, "vjp")
    made = add(f, "call", (), leaves, [body], [like(x) for x in body.outputs])
    out_spec = body.spec.children_specs[0] if aux else body.spec

    def pull(g: Frame, given: list[Any], named: dict[str, Any]) -> Any:
        seeds = _pulled(g, "vjp_fn", given, named, out_spec)
        found = add(g, "vjp", (count,), [*leaves, *seeds], [body], map(like, leaves))
        return pytree.tree_unflatten(found, spec)

    result = body.rebuilt(made)
    return (result[0], Linear(pull), result[1]) if aux else (result, Linear(pull))


@calls_of(func.jvp)
def _jvp(f: Frame, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    bound = inspect.signature(func.jvp).bind(*args, **kwargs)
    bound.apply_defaults()
    given = bound.arguments
    if given["strict"] or type(given["primals"]) is not tuple:
        return calls.follow(f, function, args, kwargs)
    aux = bool(given["has_aux"])
    leaves, spec, body, count = _primal_body(f, "jvp", given["func"], given["primals"], aux)
    tangents, found = pytree.tree_flatten(given["tangents"])
    if found != spec:
        raise Break(f"jvp: expected tangents with the structure of the primals, {spec}")
    outs = body.outputs
    results = [like(x) for x in (*outs[:count], *outs[:count], *outs[count:])]
    made = add(f, "jvp", (count,), [*leaves, *tangents], [body], results)
    first = body.rebuilt([*made[:count], *made[2 * count :]])
    value = first[0] if aux else first
    out_spec = body.spec.children_specs[0] if aux else body.spec
    slopes = pytree.tree_unflatten(made[count : 2 * count], out_spec)
    return (value, slopes, first[1]) if aux else (value, slopes)


@calls_of(func.linearize)
def _linearize(f: Frame, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    leaves, spec, body, count = _primal_body(f, "linearize", args[0], args[1:], False)
    _twice(body, "linearize")
    made = add(f, "call", (), leaves, [body], map(like, body.outputs))

    def push(g: Frame, given: list[Any], named: dict[str, Any]) -> Any:
        tangents, found = pytree.tree_flatten(tuple(given))
        if found != spec:
            raise Break(f"jvp_fn: expected tangents with the structure of the primals, {spec}")
        results = [like(x) for x in body.outputs] * 2
        got = add(g, "jvp", (count,), [*leaves, *tangents], [body], results)
        slopes = [g.interpreter.direct(x.detach) for x in got[count:]]
        return pytree.tree_unflatten(slopes, body.spec)

    # `linearize` gives what has no history.
    detached = [f.interpreter.direct(x.detach) for x in made]
    return body.rebuilt(detached), Linear(push)


# Control flow -------------------------------------------------------------------------------------


def _condition(x: Any) -> Any:
    """The tensor that decides in each run; None where the program knows the answer."""
    if type(x) is RunNumber:
        return x.tensor
    if kinds.is_tensor(x) and x.numel() == 1 and x.constant() is None:
        return x
    return None


@calls_of(cond)
def _cond(f: Frame, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    given = inspect.signature(cond).bind(*args, **kwargs)
    given.apply_defaults()
    pred, true_fn, false_fn, operands = given.arguments.values()
    decides = _condition(pred)
    if decides is None or not isinstance(operands, (tuple, list)):
        return calls.follow(f, function, args, kwargs)
    bodies = [
        Body(f, "cond", [], lambda g=g: f.call(g, list(operands), {}))  # type: ignore[misc]
        for g in (true_fn, false_fn)
    ]
    yes, no = bodies
    same = yes.spec == no.spec and yes.places == no.places
    others = [k for k in range(len(yes.leaves)) if k not in yes.places]
    same = same and all(_equal(yes.leaves[k], no.leaves[k]) for k in others)
    pairs = list(zip(yes.outputs, no.outputs, strict=same))
    if not same or any(like(a) != like(b) for a, b in pairs):
        raise Break(
            "the functions given to cond return other shapes, dtypes or structures: "
            f"{_shown(yes)} and {_shown(no)}; return the same from both"
        )
    results = add(f, "cond", (), [decides], bodies, map(like, yes.outputs))
    return yes.rebuilt(results)


def _equal(a: Any, b: Any) -> bool:
    return a is b or (type(a) in kinds.CONSTANT_TYPES and type(a) is type(b) and bool(a == b))


def _shown(body: Body) -> str:
    names = (f"{x.dtype} {list(x.shape)}" for x in body.outputs)
    return f"({', '.join(names)})"


@calls_of(while_loop)
def _while_loop(f: Frame, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    given = inspect.signature(while_loop).bind(*args, **kwargs)
    test, turn, start = given.arguments.values()
    leaves, spec = pytree.tree_flatten(start if not isinstance(start, list) else tuple(start))
    if not isinstance(start, (tuple, list)) or not all(map(kinds.is_tensor, leaves)):
        return calls.follow(f, function, args, kwargs)
    known: list[bool] = []

    def first() -> Any:  # where the first answer is known, the loop is unrolled
        answer = f.call(test, list(start), {})
        known.append(_condition(answer) is None)
        return ()

    Body(f, "while_loop", [], first)
    if known[0]:
        return calls.follow(f, function, args, kwargs)
    wants = any(x.requires_grad for x in leaves)

    def body(g: Any) -> Body:
        own = [_fresh(f, x, wants=wants) for x in leaves]
        tree = pytree.tree_unflatten(own, spec)
        return Body(f, "while_loop", own, lambda: f.call(g, list(tree), {}))

    asks, goes = body(test), body(turn)
    if len(asks.outputs) != 1 or len(asks.leaves) != 1:
        raise Break("the condition given to while_loop returns what is no tensor of one element")
    found = pytree.tree_structure(tuple(goes.rebuilt(goes.outputs)))
    wanted = [like(x) for x in leaves]
    if found != spec or [like(x) for x in goes.outputs] != wanted:
        shown = ", ".join(f"{d} {list(s)}" for d, s in wanted)
        raise Break(
            f"the function given to while_loop returns {_shown(goes)}, and is given ({shown}); "
            "return the same shapes and dtypes"
        )
    return pytree.tree_unflatten(add(f, "while_loop", (), leaves, [asks, goes], wanted), spec)
