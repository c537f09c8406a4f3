"""Derivatives and batching rules that programs give to operators, as the core calls them.

A derivative is two functions: `setup_context(ctx, inputs, output)` keeps what is needed, and
`backward(ctx, *grads)` computes. A call that is recorded runs them as an `autograd.Function` of the
operator; what looks at calls from outside (`vmap`, forward mode) gets one function of both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import flambeau
from flambeau import Tensor
from flambeau.autograd.function import Function

from .operators import OpOverload


class VmapInfo(NamedTuple):
    """What a batching rule is told beside its arguments."""

    batch_size: int
    randomness: str


def _tensors(values: Sequence[Any]) -> list[Tensor]:
    """The tensors of arguments or results, those of lists among them."""
    out: list[Tensor] = []
    for v in values:
        if isinstance(v, Tensor):
            out.append(v)
        elif isinstance(v, (list, tuple)):
            out += [t for t in v if isinstance(t, Tensor)]
    return out


def _put(values: Sequence[Any], tensors: Sequence[Any]) -> list[Any]:
    """Arguments with other tensors in their places, which `_tensors` of them named."""
    rest = iter(tensors)
    out: list[Any] = []
    for v in values:
        if isinstance(v, (list, tuple)):
            out.append([next(rest) if isinstance(t, Tensor) else t for t in v])
        else:
            out.append(next(rest) if isinstance(v, Tensor) else v)
    return out


def _flat_grads(
    op: OpOverload, values: Sequence[Any], grads: Any, every_slot: bool
) -> list[Tensor | None]:
    """Gradients by argument as gradients by tensor.

    Args:
        op: whose they are.
        values: its arguments.
        grads: what `backward` returned.
        every_slot: also None for each tensor argument that was not given.

    Raises:
        RuntimeError: there is not one for each argument, or one that is none.
    """
    arguments = op._schema.arguments
    given = list(grads) if isinstance(grads, (tuple, list)) else [grads]
    n = op._schema.positional
    if len(given) != n:
        raise RuntimeError(
            f"{op._uid}: expected backward to return {n} gradients, one per positional argument, "
            f"got {len(given)}"
        )
    out: list[Tensor | None] = []
    for a, v, g in zip(arguments, values, [*given, *[None] * (len(arguments) - n)], strict=True):
        if isinstance(v, (list, tuple)) and a.type.holds_tensors:
            parts = [None] * len(v) if g is None else list(g)
            if len(parts) != len(v):
                raise RuntimeError(
                    f"{op._uid}: expected {len(v)} gradients for '{a.name}', got {len(parts)}"
                )
            out += [p for p, t in zip(parts, v, strict=True) if isinstance(t, Tensor)]
        elif isinstance(v, Tensor) or (every_slot and v is None and a.type.holds_tensors):
            if g is not None and not isinstance(g, Tensor):
                raise RuntimeError(
                    f"{op._uid}: expected a Tensor or None as the gradient of '{a.name}', "
                    f"got {type(g).__name__}"
                )
            out.append(g)
        elif g is not None:
            raise RuntimeError(
                f"{op._uid}: expected None as the gradient of '{a.name}', which is no tensor, "
                f"got {type(g).__name__}"
            )
    return out


def _kept(
    op: OpOverload, setup: Callable[..., Any] | None, ctx: Any, values: Sequence[Any], output: Any
) -> None:
    """Runs `setup_context`."""
    if setup is None:
        return
    inputs, named = op.spread(values)
    if named:
        setup(ctx=ctx, inputs=inputs, keyword_only_inputs=named, output=output)
    else:
        setup(ctx=ctx, inputs=inputs, output=output)


def function_of(
    op: OpOverload, backward: Callable[..., Any], setup: Callable[..., Any] | None
) -> Callable[..., Any]:
    """The operator as a function that autograd records.

    Args:
        op: the operator.
        backward: `backward(ctx, *grads)`.
        setup: `setup_context(ctx, inputs, output)`, or None.

    Returns:
        A function of its arguments, as its autograd kernel is called.
    """
    name = f"GeneratedBackwardFor_{op.namespace}_{op.__name__.partition('.')[2].replace('.', '_')}"
    schema = op._schema
    lists = any(
        a.type.holds_tensors and "[" in a.type.text for a in (*schema.arguments, *schema.returns)
    )
    made = (_with_lists if lists else _plain)(op, backward, setup)
    recorded: Any = type(name, (made,), {})

    def call(*args: Any, **kwargs: Any) -> Any:
        return recorded.apply(*args, *kwargs.values())

    def call_with_lists(*args: Any, **kwargs: Any) -> Any:
        values = (*args, *kwargs.values())
        out = recorded.apply(values, *_tensors(values))
        return recorded.shaped(out)

    return call_with_lists if lists else call


def _plain(op: OpOverload, backward: Any, setup: Any) -> type[Function]:
    """Of an operator without lists of tensors."""
    rest = (None,) * (len(op._schema.arguments) - op._schema.positional)

    class Recorded(Function):
        @staticmethod
        def forward(*values: Any) -> Any:
            return op.below_autograd(*values)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            _kept(op, setup, ctx, inputs, output)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            found = backward(ctx, *grads)
            return (*found, *rest) if isinstance(found, (tuple, list)) else (found, *rest)

    return Recorded


def _with_lists(op: OpOverload, backward: Any, setup: Any) -> type[Function]:
    """Of an operator with lists of tensors: the function takes and gives each by itself."""
    returns = op._schema.returns

    class Recorded(Function):
        @staticmethod
        def forward(values: Any, *tensors: Any) -> Any:
            output = op.below_autograd(*_put(values, tensors))
            results = output if len(returns) > 1 else (output,)
            lengths = tuple(len(r) if isinstance(r, (list, tuple)) else None for r in results)
            return lengths, *_flat(results)

        @staticmethod
        def shaped(out: tuple[Any, ...]) -> Any:
            results = _nested(out[0], out[1:])
            return tuple(results) if len(returns) > 1 else results[0]

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            values, *tensors = inputs
            needs = ctx.needs_input_grad[1:]
            given = _put(values, tensors)
            nested = _put(values, needs)
            ctx.needs_input_grad = tuple(
                n if isinstance(v, Tensor) or isinstance(n, list) else False
                for v, n in zip(values, nested, strict=True)
            )
            ctx._flambeau_lists = (given, output[0])
            _kept(op, setup, ctx, given, Recorded.shaped(output))

        @staticmethod
        def backward(ctx: Any, _: Any, *grads: Any) -> Any:
            values, lengths = ctx._flambeau_lists
            found = backward(ctx, *_nested(lengths, grads))
            return (None, *_flat_grads(op, values, found, False))

    return Recorded


def _flat(results: Sequence[Any]) -> list[Any]:
    out: list[Any] = []
    for r in results:
        out += r if isinstance(r, (list, tuple)) else [r]
    return out


def _nested(lengths: Sequence[int | None], flat: Sequence[Any]) -> list[Any]:
    """Results by tensor as results of the operator."""
    rest = iter(flat)
    return [next(rest) if n is None else [next(rest) for _ in range(n)] for n in lengths]


class _Context:
    """What `setup_context` is given where a derivative is asked for after the call."""

    def __init__(self, needs: tuple[Any, ...]) -> None:
        self.needs_input_grad = needs
        self.saved_tensors: tuple[Any, ...] = ()
        self.materialize_grads = True

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keeps tensors for `backward`."""
        self.saved_tensors = tensors

    def mark_non_differentiable(self, *outputs: Tensor) -> None:
        """Says nothing that is needed: their gradients are zero."""

    def mark_dirty(self, *inputs: Tensor) -> None:
        """Refuse: an operator with a derivative writes to no argument."""
        raise RuntimeError("mark_dirty: expected an operator that writes to no argument")

    def set_materialize_grads(self, value: bool) -> None:
        """Whether zeros stand for gradients that are not there."""
        self.materialize_grads = value


def vjp_of(
    op: OpOverload, backward: Callable[..., Any], setup: Callable[..., Any] | None
) -> Callable[..., Any]:
    """Both functions as one, of arguments, cotangents and results."""

    def rule(values: Any, cotangents: Any, results: Any, wanted: int) -> list[Any]:
        slots = [i for i, a in enumerate(op._schema.arguments) if a.type.holds_tensors]
        wants = {i: bool(wanted >> k & 1) for k, i in enumerate(slots)}
        needs = tuple(
            [wants[i]] * len(v) if isinstance(v, list) and i in wants else wants.get(i, False)
            for i, v in enumerate(values[: op._schema.positional])
        )
        ctx = _Context(needs)
        _kept(op, setup, ctx, values, results if len(results) > 1 else results[0])
        grads = list(cotangents)
        if ctx.materialize_grads:
            grads = [
                flambeau.zeros_like(r) if g is None and isinstance(r, Tensor) else g
                for g, r in zip(grads, _flat(results), strict=True)
            ]
        lengths = [len(r) if isinstance(r, list) else None for r in results]
        return _flat_grads(op, values, backward(ctx, *_nested(lengths, grads)), True)

    return rule


def batching_of(op: OpOverload, function: Callable[..., Any]) -> Callable[..., Any]:
    """A rule `function(info, in_dims, *args)` as the core calls it: batches are in front."""

    def front(y: Any, dim: Any, batch: int) -> Any:
        if isinstance(y, (list, tuple)):
            dims = dim if isinstance(dim, (list, tuple)) else [dim] * len(y)
            return [front(t, d, batch) for t, d in zip(y, dims, strict=True)]
        if not isinstance(y, Tensor):
            return y
        if dim is None:
            return y.expand(batch, *y.shape)
        return y.movedim(dim, 0)

    def rule(values: Any, mask: int, batch: int, randomness: str) -> Any:
        in_dims = tuple(
            ([0] * len(v) if isinstance(v, list) else 0) if mask >> i & 1 else None
            for i, v in enumerate(values)
        )
        args, kwargs = op.spread(values)
        found = function(VmapInfo(batch, randomness), in_dims[: len(args)], *args, **kwargs)
        if not isinstance(found, tuple) or len(found) != 2:
            raise RuntimeError(
                f"{op._uid}: expected the vmap rule to return results and their dims, "
                f"got {type(found).__name__}"
            )
        results, dims = found
        n = len(op._schema.returns)
        if n == 0:
            return None
        if n == 1:
            return front(results, dims, batch)
        many = dims if isinstance(dims, (tuple, list)) else [dims] * n
        return tuple(front(y, d, batch) for y, d in zip(results, many, strict=True))

    return rule
