"""Floating-point operations of calls, from the shapes and numbers of their arguments.

Owns a formula for each operation that counts: products of matrices, convolutions, sums and products
by elements. A multiplication and an addition are two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

#: tensors as their sizes, numbers and lists of numbers as they are
Given = Sequence[Any]


def _product(a: Sequence[int], b: Sequence[int], batch: Sequence[int] = ()) -> int:
    return 2 * math.prod(batch) * a[-2] * a[-1] * b[-1]


def _broadcast(a: Sequence[int], b: Sequence[int]) -> list[int]:
    size = max(len(a), len(b))
    pairs = zip((1,) * (size - len(a)) + tuple(a), (1,) * (size - len(b)) + tuple(b), strict=True)
    return [max(x, y) if x and y else 0 for x, y in pairs]


def _linear(given: Given) -> int:
    x, w = given[0], given[1]
    return 2 * math.prod(x) * (w[0] if len(w) > 1 else 1)


def _convolution(given: Given) -> int:
    """Input, weight, bias, stride, padding, dilation, groups."""
    x, w = given[0], given[1]
    dims = len(w) - 2
    numbers = [list(g) if isinstance(g, tuple) else g for g in given[3:6]]
    if any(isinstance(n, str) or n is None or n is Ellipsis for n in numbers):
        return 0  # padding by name
    stride, padding, dilation = (
        [n] * dims if isinstance(n, int) else n * dims if len(n) == 1 else n for n in numbers
    )
    sizes = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(x[-dims:], w[2:], stride, padding, dilation, strict=True)
    ]
    batch = x[0] if len(x) == dims + 2 else 1
    return 2 * batch * math.prod(w) * math.prod(sizes)


def _convolution_back(given: Given) -> int:
    """Towards the input (gradient, weight) or the weight (gradient, input, its sizes)."""
    grad = given[0]
    weight = given[2] if isinstance(given[2], tuple) else given[1]
    return 2 * grad[0] * math.prod(weight) * math.prod(grad[2:])


def _attention(given: Given) -> int:
    """Query, key, value: scores, and their sums of values."""
    q, k, v = given[:3]
    pairs = math.prod(q[:-1]) * k[-2]
    return 2 * pairs * (q[-1] + v[-1])


def _attention_back(given: Given) -> int:
    """The scores once more, and the gradients of weights, value, query and key."""
    q, k, v = given[1:4]
    pairs = math.prod(q[:-1]) * k[-2]
    return 2 * pairs * (3 * q[-1] + 2 * v[-1])


def _recurrence(given: Given) -> int:
    """Gates of all steps, and the state that each step multiplies."""
    gates, state = given[0], given[1]
    return 2 * math.prod(gates) * state[-1]


def _elements(given: Given) -> int:
    sizes = [g for g in given[:2] if isinstance(g, list)]
    shape: list[int] = []
    for s in sizes:
        shape = _broadcast(shape, s)
    return math.prod(shape)


_FORMULAS: dict[str, Callable[[Given], int]] = {
    "mm": lambda g: _product(g[0], g[1]),
    "addmm": lambda g: _product(g[1], g[2]),
    "bmm": lambda g: _product(g[0], g[1], g[0][:1]),
    "baddbmm": lambda g: _product(g[1], g[2], g[1][:1]),
    "mv": lambda g: 2 * math.prod(g[0]),
    "dot": lambda g: 2 * math.prod(g[0]),
    "_linear": _linear,
    "_conv": _convolution,
    "_conv_input": _convolution_back,
    "_conv_weight": _convolution_back,
    "conv1d": _convolution,
    "conv2d": _convolution,
    "conv3d": _convolution,
    "_attention": _attention,
    "_attention_backward": _attention_back,
    "_rnn_layer": _recurrence,
    "add": _elements,
    "mul": _elements,
}


def flops(name: str, given: Given) -> int:
    """Of a call of `aten::NAME`; 0 for operations that do not count."""
    formula = _FORMULAS.get(name.removeprefix("aten::").removesuffix("_"))
    if formula is None or len(given) < 2:
        return 0
    try:
        return int(formula(given))
    except (TypeError, ValueError, IndexError):
        return 0
