"""Sums of products over named or numbered dimensions: einsum, tensordot, chain_matmul, multi_dot.

Plans only: parses, orders and reshapes, the products are `bmm` and `matmul`. Knows nothing of
autograd, which follows from the operations.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from flambeau import _C

from ._outputs import fill

Tensor = _C.Tensor

__all__ = ["chain_matmul", "einsum", "multi_dot", "tensordot"]

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_DOTS = "..."


def _terms(text: str) -> list[str]:
    """Letters of one side of an equation, an ellipsis being one term."""
    out: list[str] = []
    text = text.replace(" ", "")
    i = 0
    while i < len(text):
        if text.startswith(_DOTS, i):
            if _DOTS in out:
                raise RuntimeError(
                    f"einsum(): found '.' for operand in {text!r} more than one ellipsis"
                )
            out.append(_DOTS)
            i += 3
        elif text[i] in _LETTERS:
            out.append(text[i])
            i += 1
        elif text[i] == ".":
            raise RuntimeError("einsum(): found '.' that is not part of any ellipsis")
        else:
            raise RuntimeError(
                f"einsum(): invalid subscript given: {text[i]}, subscripts must be in [a-zA-Z]"
            )
    return out


def _from_sublists(args: Sequence[Any]) -> tuple[list[list[str]], list[str] | None, list[Tensor]]:
    """`einsum(x, [0, 1], y, [1, 2], [0, 2])` as terms."""

    def terms(numbers: Sequence[Any]) -> list[str]:
        out = []
        for n in numbers:
            if n is Ellipsis:
                out.append(_DOTS)
            elif 0 <= int(n) < len(_LETTERS):
                out.append(_LETTERS[int(n)])
            else:
                raise ValueError(
                    f"einsum(): subscript {n} is not within the valid range [0, {len(_LETTERS)})"
                )
        return out

    pairs = len(args) // 2
    tensors = [args[2 * i] for i in range(pairs)]
    output = terms(args[-1]) if len(args) % 2 else None
    return [terms(args[2 * i + 1]) for i in range(pairs)], output, tensors


def _parse(args: Sequence[Any]) -> tuple[list[list[str]], list[str] | None, list[Tensor]]:
    if not isinstance(args[0], str):
        return _from_sublists(args)
    tensors = list(args[1:])
    left, arrow, right = args[0].partition("->")
    inputs = [_terms(t) for t in left.split(",")]
    if len(inputs) > len(tensors):
        raise RuntimeError("einsum(): more operands were given in the equation than in the call")
    if len(inputs) < len(tensors):
        raise RuntimeError(
            "einsum(): fewer operands were provided in the equation than in the call"
        )
    return inputs, _terms(right) if arrow else None, tensors


def _spread(terms: list[str], ndim: int, index: int, broadcast: int) -> list[str]:
    """Terms with the ellipsis as names "0", "1", ... of the broadcast dims, aligned at the last."""
    named = [t for t in terms if t != _DOTS]
    missing = ndim - len(named)
    if _DOTS not in terms:
        if missing:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(named)}) does not match "
                "the "
                f"number of dimensions ({ndim}) for operand {index} and no ellipsis was given"
            )
        return named
    if missing < 0:
        raise RuntimeError(
            f"einsum(): the number of subscripts in the equation ({len(named)}) is more than the "
            "number "
            f"of dimensions ({ndim}) for operand {index}"
        )
    at = terms.index(_DOTS)
    return terms[:at] + [str(i) for i in range(broadcast - missing, broadcast)] + terms[at + 1 :]


def _without_repeats(x: Tensor, names: list[str], index: int) -> tuple[Tensor, list[str]]:
    """Diagonals taken for names that stand twice."""
    for name in dict.fromkeys(names):
        while names.count(name) > 1:
            i = names.index(name)
            j = names.index(name, i + 1)
            if x.shape[i] != x.shape[j]:
                raise RuntimeError(
                    f"einsum(): subscript {name} is repeated for operand {index} but the sizes "
                    "don't "
                    f"match, {x.shape[j]} != {x.shape[i]}"
                )
            x = x.diagonal(0, i, j)
            names = [n for k, n in enumerate(names) if k not in (i, j)] + [name]
    return x, names


def _arranged(x: Tensor, names: list[str], order: Sequence[str]) -> Tensor:
    """Dims in `order`, new ones of size 1 for names that x lacks."""
    present = [n for n in order if n in names]
    x = x.permute([names.index(n) for n in present])
    for i, n in enumerate(order):
        if n not in names:
            x = x.unsqueeze(i)
    return x


def _pair(
    a: Tensor, an: list[str], b: Tensor, bn: list[str], keep: set[str]
) -> tuple[Tensor, list[str]]:
    """Product of two operands; names that nothing else needs are summed."""
    summed_a = [i for i, n in enumerate(an) if n not in bn and n not in keep]
    summed_b = [i for i, n in enumerate(bn) if n not in an and n not in keep]
    if summed_a:
        a, an = a.sum(summed_a), [n for i, n in enumerate(an) if i not in summed_a]
    if summed_b:
        b, bn = b.sum(summed_b), [n for i, n in enumerate(bn) if i not in summed_b]
    size = dict(zip(an, a.shape, strict=True))
    for n, s in zip(bn, b.shape, strict=True):
        size[n] = s if size.get(n, 1) == 1 else size[n]
    # A shared dim of size 1 on one side broadcasts; it cannot be contracted as it is.
    contracted = [n for n in an if n in bn and n not in keep]
    for n in contracted:
        if a.shape[an.index(n)] != b.shape[bn.index(n)]:
            one_a = a.shape[an.index(n)] == 1
            if one_a:
                b, bn = b.sum([bn.index(n)]), [m for m in bn if m != n]
                a, an = a.squeeze(an.index(n)), [m for m in an if m != n]
            else:
                a, an = a.sum([an.index(n)]), [m for m in an if m != n]
                b, bn = b.squeeze(bn.index(n)), [m for m in bn if m != n]
    contracted = [n for n in contracted if n in an]
    batch = [n for n in an if n in bn and n in keep]
    left = [n for n in an if n not in bn]
    right = [n for n in bn if n not in an]
    if not contracted:
        order = batch + left + right
        return _arranged(a, an, order) * _arranged(b, bn, order), order
    a = _arranged(a, an, batch + left + contracted)
    b = _arranged(b, bn, batch + contracted + right)

    def count(names: list[str]) -> int:
        n = 1
        for name in names:
            n *= size[name]
        return n

    def flat(x: Tensor, first: list[str], second: list[str]) -> Tensor:
        shape = [size[n] for n in batch] + list(x.shape[len(batch) :])
        return x.expand(shape).reshape(count(batch), count(first), count(second))

    out = _C.bmm(flat(a, left, contracted), flat(b, contracted, right))
    order = batch + left + right
    return out.reshape([size[n] for n in order]), order


def _overridden(function: Any, relevant: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
    """What arguments with a `__torch_function__` make of the call."""
    from .overrides import handle_torch_function

    return handle_torch_function(function, relevant, *args, **kwargs)


def einsum(*args: Any) -> Tensor:
    """Sum of products given by Einstein's notation.

    Args:
        args: an equation and operands, `einsum("ij,jk->ik", a, b)`, or operands each followed
            by the list of its dims' numbers, and perhaps that of the result.

    >>> torch.einsum("ij,jk->ik", torch.ones(2, 3), torch.ones(3, 4)).shape
    torch.Size([2, 4])
    """
    if len(args) == 2 and isinstance(args[0], str) and isinstance(args[1], list | tuple):
        args = (args[0], *args[1])
    if _C._has_torch_function(args):
        return _overridden(einsum, args, *args)
    if len(args) < 2:
        raise ValueError("einsum(): must specify the equation string and at least one operand")
    inputs, output, tensors = _parse(args)
    extra = [
        x.ndim - len([t for t in terms if t != _DOTS])
        for terms, x in zip(inputs, tensors, strict=True)
        if _DOTS in terms
    ]
    broadcast = max(extra, default=0)
    operands: list[tuple[Tensor, list[str]]] = []
    for i, (terms, x) in enumerate(zip(inputs, tensors, strict=True)):
        operands.append(_without_repeats(x, _spread(terms, x.ndim, i, broadcast), i))
    result = _output_names(inputs, output, broadcast)
    _check_sizes(operands)
    x, names = operands[0]
    for i in range(1, len(operands)):
        keep = set(result).union(*(n for _, n in operands[i + 1 :]))
        x, names = _pair(x, names, *operands[i], keep)
    summed = [i for i, n in enumerate(names) if n not in result]
    if summed:
        x, names = x.sum(summed), [n for n in names if n in result]
    return x.permute([names.index(n) for n in result])


def _output_names(inputs: list[list[str]], output: list[str] | None, broadcast: int) -> list[str]:
    dots = [str(i) for i in range(broadcast)]
    letters = [t for terms in inputs for t in terms if t != _DOTS]
    if output is None:
        return dots + sorted({t for t in letters if letters.count(t) == 1})
    names: list[str] = []
    for t in output:
        if t == _DOTS:
            names.extend(dots)
        elif t in names:
            raise RuntimeError(
                f"einsum(): output subscript {t} appears more than once in the output"
            )
        elif t not in letters:
            raise RuntimeError(
                f"einsum(): output subscript {t} does not appear in the equation for any input "
                "operand"
            )
        else:
            names.append(t)
    return names


def _check_sizes(operands: list[tuple[Tensor, list[str]]]) -> None:
    size: dict[str, int] = {}
    for i, (x, names) in enumerate(operands):
        for d, (n, s) in enumerate(zip(names, x.shape, strict=True)):
            known = size.get(n, 1)
            if known != 1 and s not in (1, known):
                raise RuntimeError(
                    f"einsum(): subscript {n} has size {s} for operand {i} which does not "
                    "broadcast with "
                    f"previously seen size {known} (dimension {d})"
                )
            size[n] = max(known, s) if s else s


def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """Sum of products over `dims`: the last of `a` with the first of `b`, or two lists of dims.

    >>> torch.tensordot(torch.ones(2, 3), torch.ones(3, 4), dims=1).shape
    torch.Size([2, 4])
    """
    if _C._has_torch_function((a, b)):
        return _overridden(tensordot, (a, b), a, b, dims=dims, out=out)
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.ndim, b.ndim):
            raise RuntimeError(
                f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}, {a.ndim} and "
                f"{b.ndim}"
            )
        of_a, of_b = list(range(a.ndim - dims, a.ndim)), list(range(dims))
    else:
        of_a, of_b = ([d] if isinstance(d, int) else list(d) for d in dims)
    if len(of_a) != len(of_b):
        raise RuntimeError("tensordot: both dimension lists should have same length")
    of_a = [d + a.ndim if d < 0 else d for d in of_a]
    of_b = [d + b.ndim if d < 0 else d for d in of_b]
    for i, j in zip(of_a, of_b, strict=True):
        n, m = a.shape[i], b.shape[j]
        if n != m and 1 not in (n, m):
            raise RuntimeError(
                f"tensordot: contracted dimensions need to match, but first has size {n} in dim "
                f"{i} and "
                f"second has size {m} in dim {j}"
            )
        if n != m:
            a = a.sum(i, keepdim=True) if m == 1 else a
            b = b.sum(j, keepdim=True) if n == 1 else b
    rest_a = [d for d in range(a.ndim) if d not in of_a]
    rest_b = [d for d in range(b.ndim) if d not in of_b]
    shape = [a.shape[d] for d in rest_a] + [b.shape[d] for d in rest_b]
    inner = rows = columns = 1
    for d in of_a:
        inner *= a.shape[d]
    for d in rest_a:
        rows *= a.shape[d]
    for d in rest_b:
        columns *= b.shape[d]
    left = a.permute(rest_a + of_a).reshape(rows, inner)
    right = b.permute(of_b + rest_b).reshape(inner, columns)
    result = _C.mm(left, right).reshape(shape)
    return result if out is None else fill(out, result, "tensordot")


def _best_order(sizes: list[int]) -> list[list[int]]:
    """Where to split each product of matrices i..j for the fewest multiplications."""
    n = len(sizes) - 1
    cost = [[0] * n for _ in range(n)]
    split = [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            options = [
                (cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            ]
            cost[i][j], split[i][j] = min(options)
    return split


def multi_dot(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Product of matrices in the order that multiplies least; the ends may be vectors.

    >>> torch.linalg.multi_dot([torch.ones(2, 3), torch.ones(3, 4), torch.ones(4)]).shape
    torch.Size([2])
    """
    xs = list(tensors)
    if len(xs) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(xs)}")
    for i, x in enumerate(xs):
        ends = i in (0, len(xs) - 1)
        if x.ndim != 2 and not (ends and x.ndim == 1):
            raise RuntimeError(
                f"multi_dot(): tensor {i} must be {'1D or ' if ends else ''}2D but got {x.ndim}D"
            )
    first, last = xs[0].ndim == 1, xs[-1].ndim == 1
    xs[0] = xs[0].unsqueeze(0) if first else xs[0]
    xs[-1] = xs[-1].unsqueeze(1) if last else xs[-1]
    for i in range(len(xs) - 1):
        if xs[i].shape[1] != xs[i + 1].shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {i} and {i + 1} with shapes {list(xs[i].shape)} and "
                f"{list(xs[i + 1].shape)} cannot be multiplied"
            )
    split = _best_order([x.shape[0] for x in xs] + [xs[-1].shape[1]])

    def product(i: int, j: int) -> Tensor:
        if i == j:
            return xs[i]
        k = split[i][j]
        return _C.mm(product(i, k), product(k + 1, j))

    result = product(0, len(xs) - 1)
    if first:
        result = result.squeeze(0)
    if last:
        result = result.squeeze(-1)
    return result if out is None else fill(out, result, "multi_dot")


def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """Product of matrices in the order that multiplies least.

    >>> torch.chain_matmul(torch.ones(2, 3), torch.ones(3, 4)).shape
    torch.Size([2, 4])
    """
    warnings.warn(
        "torch.chain_matmul is deprecated: use torch.linalg.multi_dot, which takes a list",
        stacklevel=2,
    )
    if len(matrices) == 1:
        return matrices[0]
    return multi_dot(matrices, out=out)
