"""Runs the regions of captured graphs: nodes whose blocks a transform or a condition governs, and
nodes without blocks that ask for gradients of what ran before them.

See Note [Regions]. Gradients of the results are those of the eager calls that are made here. Knows
no entry of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .graph import REGION, Block, Node

Prepare = Callable[[Block], Callable[..., tuple[Any, ...]]]
Results = tuple[Any, ...]


def region_caller(node: Node, prepare: Prepare) -> Callable[..., Results]:
    """A function of the node's arguments and the values of symbols."""
    blocks = [prepare(b) for b in node.blocks]
    run = _KINDS[node.target.removeprefix(REGION)]

    def call(args: tuple[Any, ...], sizes: Mapping[str, int]) -> Results:
        options, own, free, orders = args

        def bound(block: Any) -> Callable[..., Results]:
            return lambda *xs: block(*xs, *free, sizes=sizes)

        made = run([bound(b) for b in blocks], own, *options)
        return tuple(map(_laid_out, made, orders))

    return call


def _laid_out(x: Any, order: tuple[int, ...]) -> Any:
    """A result as the graph says that it lies in memory: dense, the dims slowest first."""
    if not order:
        return x.contiguous()
    back = sorted(range(len(order)), key=order.__getitem__)
    return x.permute(order).contiguous().permute(back)


def _cond(blocks: Any, own: Any) -> Results:
    result: Results = blocks[0 if own[0] else 1]()
    return result


def _while_loop(blocks: Any, own: Any) -> Results:
    test, turn = blocks
    while test(*own)[0]:
        own = turn(*own)
    return tuple(own)


def _vmap(
    blocks: Any, own: Any, in_dims: Any, out_dims: Any, randomness: str, chunk: Any
) -> Results:
    from flambeau.func import vmap

    result: Results = vmap(blocks[0], in_dims, out_dims, randomness, chunk_size=chunk)(*own)
    return result


def _split(block: Any, count: int) -> Callable[..., Any]:
    """The block as a function with an auxiliary result."""

    def function(*xs: Any) -> Any:
        out = block(*xs)
        return tuple(out[:count]), tuple(out[count:])

    return function


def _grad(blocks: Any, own: Any) -> Results:
    from flambeau.func import grad_and_value

    def value(*xs: Any) -> Any:
        first, *rest = blocks[0](*xs)
        return first, tuple(rest)

    which = tuple(range(len(own)))
    grads, (result, aux) = grad_and_value(value, which, has_aux=True)(*own)
    return (*grads, result, *aux)


def _jvp(blocks: Any, own: Any, count: int) -> Results:
    from flambeau.func import jvp

    n = len(own) // 2
    out, tangents, aux = jvp(_split(blocks[0], count), own[:n], own[n:], has_aux=True)
    return (*out, *tangents, *aux)


def _pull(blocks: Any, own: Any, count: int) -> Results:
    from flambeau.func import vjp

    n = len(own) - count
    _, pull, _ = vjp(_split(blocks[0], count), *own[:n], has_aux=True)
    result: Results = pull(tuple(own[n:]))
    return result


def _jacobian(blocks: Any, own: Any, name: str, count: int, options: Any) -> Results:
    from flambeau import func

    which = tuple(range(len(own)))
    transform = getattr(func, name)
    rows, aux = transform(_split(blocks[0], count), which, has_aux=True, **dict(options))(*own)
    return (*(x for row in rows for x in row), *aux)


def _autograd_grad(
    blocks: Any, own: Any, outputs: int, inputs: int, seeded: Any, keep: bool, create: bool,
    unused: bool, zeros: bool,
) -> Results:  # fmt: skip
    from flambeau import autograd, zeros_like

    ends, starts, seeds = own[:outputs], own[outputs : outputs + inputs], own[outputs + inputs :]
    given = iter(seeds)
    found = autograd.grad(
        ends, starts, tuple(next(given) if s else None for s in seeded), keep, create,
        allow_unused=unused, materialize_grads=zeros,
    )  # fmt: skip
    # The graph knows which are None. One that turns out to be so in the run is zero all the same.
    return tuple(zeros_like(x) if g is None else g for x, g in zip(starts, found, strict=True))


def _requires_grad(blocks: Any, own: Any) -> Results:
    own[0].requires_grad_()
    return ()


_KINDS: dict[str, Callable[..., Results]] = {
    "cond": _cond,
    "while_loop": _while_loop,
    "vmap": _vmap,
    "grad": _grad,
    "jvp": _jvp,
    "vjp": _pull,
    "jacobian": _jacobian,
    "autograd_grad": _autograd_grad,
    "requires_grad": _requires_grad,
    "call": lambda blocks, own: blocks[0](*own),
}
