"""What can be seen of a call, and whether two calls agree: results, in values, dtypes, shapes and
strides; what shares memory with what; arguments that were changed; gradients; errors.

Knows nothing of how the two were computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import flambeau as torch


@dataclass
class Seen:
    """What a call left to see."""

    tree: Any = None  # the structure of the result
    leaves: list[Any] = field(default_factory=list)  # tensors are kept as copies
    facts: list[Any] = field(default_factory=list)  # of each tensor result
    sharing: list[Any] = field(default_factory=list)
    changed: list[Any] = field(default_factory=list)  # arguments after the call
    grads: list[Any] = field(default_factory=list)
    error: str | None = None


def is_inexact(x: Any) -> bool:
    return bool(x.dtype.is_floating_point or x.dtype.is_complex)


def copied(x: Any) -> Any:
    return x.detach().clone() if isinstance(x, torch.Tensor) else x


def observe(
    f: Callable[..., Any], args: Sequence[Any], leaves: Sequence[Any] = (), every: int = 1
) -> Seen:
    """Calls f with arguments that are nobody else's. Gradients of its results and of the arguments
    are taken to the leaves; of each second, third of them, where `every` is 2, 3."""
    try:
        result = f(*args)
    except Exception as e:
        return Seen(error=f"{type(e).__name__}: {e}")
    flat: list[Any] = []
    tree = _flattened(result, flat)
    tensors = [x for x in flat if isinstance(x, torch.Tensor)]
    given = [x for x in args if isinstance(x, torch.Tensor)]
    seen = Seen(tree, [copied(x) for x in flat])
    seen.facts = [(x.dtype, tuple(x.shape), _strides(x), x.requires_grad) for x in tensors]
    seen.sharing = _sharing(given, tensors)
    seen.changed = [copied(x) for x in given]
    if leaves:
        try:
            seen.grads = _gradients([*tensors, *given][::every], leaves)
        except Exception as e:
            seen.error = f"backward: {type(e).__name__}: {e}"
    return seen


def _flattened(x: Any, flat: list[Any]) -> Any:
    """The structure of a result; leaves are added to `flat`. Results with names are tuples."""
    if isinstance(x, (tuple, list)):
        kind = "list" if isinstance(x, list) else "tuple"
        return (kind, *(_flattened(y, flat) for y in x))
    if isinstance(x, dict):
        return ("dict", *((k, _flattened(y, flat)) for k, y in x.items()))
    flat.append(x)
    return "*"


def _strides(x: Any) -> tuple[int, ...]:
    """Strides, of dims where they mean something."""
    if not x.numel():
        return ()
    return tuple(s for n, s in zip(x.shape, x.stride(), strict=True) if n != 1)


def _sharing(given: list[Any], results: list[Any]) -> list[Any]:
    """For each result: the first tensor whose memory it is in, if any, and from where on."""
    out: list[Any] = []
    everything = [*given, *results]
    for i, x in enumerate(results):
        found: tuple[Any, ...] | None = None
        for j, y in enumerate(everything[: len(given) + i]):
            if y is x:
                found = ("is", j)
                break
            if y.numel() and x.numel() and x.untyped_storage().data_ptr() == (
                y.untyped_storage().data_ptr()
            ):  # fmt: skip
                found = ("in", j, x.data_ptr() - y.data_ptr())
                break
        out.append(found)
    return out


def _gradients(results: list[Any], leaves: Sequence[Any]) -> list[Any]:
    """Of a sum to which every entry of every result contributes differently."""
    total: Any = None
    done: list[Any] = []
    for x in results:
        if not x.requires_grad or not is_inexact(x) or any(x is y for y in (*done, *leaves)):
            continue
        done.append(x)
        real = torch.view_as_real(x.resolve_conj()) if x.dtype.is_complex else x
        weights = torch.linspace(0.5, 1.5, max(1, real.numel()), dtype=torch.float64)
        weights = weights[: real.numel()].reshape(real.shape)
        part = (real.to(torch.float64) * weights).sum()
        total = part if total is None else total + part
    if total is None:
        return [None for _ in leaves]
    grads = torch.autograd.grad(total, list(leaves), allow_unused=True)
    return [copied(g) for g in grads]


def difference(
    ours: Seen, theirs: Seen, tolerance: float, of_grads: float | None = None
) -> str | None:
    """How two calls differ, or None. Floating numbers may by `tolerance` of the largest entry.

    Gradients, which other entries compute, may by `of_grads`, where that is given.
    """
    if (ours.error is None) != (theirs.error is None):
        return f"error: {ours.error} where eager has {theirs.error}"
    if theirs.error is not None:
        return None
    if ours.tree != theirs.tree:
        return f"structure: {ours.tree} where eager has {theirs.tree}"
    if ours.facts != theirs.facts:
        pairs = enumerate(zip(ours.facts, theirs.facts, strict=True))
        k, (a, b) = next((k, (a, b)) for k, (a, b) in pairs if a != b)
        return f"result {k}: dtype, shape, strides, requires_grad {a} where eager has {b}"
    for k, (a, b) in enumerate(zip(ours.leaves, theirs.leaves, strict=True)):
        why = unequal(a, b, tolerance)
        if why:
            return f"result {k}: {why}"
    for k, (a, b) in enumerate(zip(ours.changed, theirs.changed, strict=True)):
        why = unequal(a, b, tolerance)
        if why:
            return f"argument {k} after the call: {why}"
    if ours.sharing != theirs.sharing:
        return f"memory: {ours.sharing} where eager has {theirs.sharing}"
    for k, (a, b) in enumerate(zip(ours.grads, theirs.grads, strict=True)):
        why = unequal(*_both(a, b), max(tolerance, of_grads or 0.0))
        if why:
            return f"gradient {k}: {why}"
    return None


def _both(a: Any, b: Any) -> tuple[Any, Any]:
    """Gradients, with no gradient as zeros."""
    if a is None and b is None:
        return 0, 0
    return (torch.zeros_like(b) if a is None else a), (torch.zeros_like(a) if b is None else b)


def unequal(a: Any, b: Any, tolerance: float) -> str | None:
    """How two values differ beyond the tolerance, or None."""
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        same = type(a) is type(b) and (a == b or (a != a and b != b))
        if not same and isinstance(a, float) and isinstance(b, float):
            same = math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)
        return None if same else f"{a!r} where eager has {b!r}"
    if a.dtype is not b.dtype or a.shape != b.shape:
        return f"{a.dtype} {tuple(a.shape)} where eager has {b.dtype} {tuple(b.shape)}"
    if not b.numel():
        return None
    if not is_inexact(b):
        return None if torch.equal(a, b) else _show(a, b, a != b)
    kind = torch.complex128 if b.dtype.is_complex else torch.float64
    x, y = a.to(kind), b.to(kind)
    if b.dtype.is_complex:
        x, y = (torch.view_as_real(t.resolve_conj()) for t in (x, y))
    x, y = x.reshape(-1), y.reshape(-1)
    finite = y.isfinite()
    scale = max(1.0, float(y[finite].abs().max()) if bool(finite.any()) else 1.0)
    close = (x - y).abs() <= tolerance * scale
    bad = ~torch.where(finite, close, (x == y) | (x.isnan() & y.isnan()))
    return _show(x, y, bad) if bool(bad.any()) else None


def _show(a: Any, b: Any, bad: Any) -> str:
    at = bad.reshape(-1).to(torch.int64).argmax().item()
    n = int(bad.sum())
    x, y = a.reshape(-1)[at].item(), b.reshape(-1)[at].item()
    return f"{n} of {bad.numel()} entries, the first at {at}: {x!r} where eager has {y!r}"
