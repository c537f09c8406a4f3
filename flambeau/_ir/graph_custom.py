"""Runs a derivative of the user's own, see Note [Derivatives of their own]: an autograd function
whose backward is the rule. Knows no entry of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .graph import Block, Node

Prepare = Callable[[Block], Callable[..., tuple[Any, ...]]]


def custom_caller(node: Node, prepare: Prepare) -> Callable[..., tuple[Any, ...]]:
    """A function of the node's arguments and the values of symbols."""
    import flambeau

    assert node.rule is not None
    rule = prepare(node.rule)

    class Custom(flambeau.autograd.Function):
        @staticmethod
        def forward(
            ctx: Any, sizes: Mapping[str, int], counts: tuple[int, int], *tensors: Any
        ) -> Any:
            made, wanted = counts
            ctx.sizes, ctx.counts = sizes, counts
            given = tensors[made + wanted :]
            ctx.save_for_backward(*given)
            return tuple(t.clone() for t in tensors[:made])

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            made, wanted = ctx.counts
            out = rule(*ctx.saved_tensors, *grads, sizes=ctx.sizes)
            given = len(ctx.saved_tensors)
            return (None, None, *[None] * made, *out, *[None] * given)

    def call(args: tuple[Any, ...], sizes: Mapping[str, int]) -> tuple[Any, ...]:
        made, wanted, given = args
        results: tuple[Any, ...] = Custom.apply(
            sizes, (len(made), len(wanted)), *made, *wanted, *given
        )
        return results

    return call
