"""What the derivatives of this package share: arguments by number, trees of tensors, inputs of a
level, bases of Jacobians.

Invariant: an input of a derivative is an alias with a node of its own, connected to the caller's
graph, so that levels of derivatives cannot be confused.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import flambeau as fb
from flambeau import _C
from flambeau.utils import _pytree as pytree

ArgNums = int | tuple[int, ...]


def check_argnums(argnums: Any, args: Sequence[Any], name: str) -> None:
    if not isinstance(argnums, (int, tuple)) or isinstance(argnums, bool):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)
    if not numbers:
        raise RuntimeError("argnums must be non-empty")
    if len({n % max(len(args), 1) for n in numbers}) != len(numbers):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    for n in numbers:
        if not -len(args) <= n < len(args):
            raise RuntimeError(f"{name}: Got argnum={n}, but only {len(args)} positional inputs")


def chosen(args: Sequence[Any], argnums: ArgNums) -> Any:
    if isinstance(argnums, tuple):
        return tuple(args[n] for n in argnums)
    return args[argnums]


def replaced(args: Sequence[Any], argnums: ArgNums, new: Any) -> tuple[Any, ...]:
    out = list(args)
    if isinstance(argnums, tuple):
        for n, value in zip(argnums, new, strict=True):
            out[n] = value
    else:
        out[argnums] = new
    return tuple(out)


def tensors_of(tree: Any, what: str) -> tuple[list[Any], Any]:
    """Leaves, all of them tensors, and the structure."""
    leaves, spec = pytree.tree_flatten(tree)
    for x in leaves:
        if not isinstance(x, _C.Tensor):
            raise RuntimeError(f"{what} to be tensors, got {type(x)}")
    return leaves, spec


def fresh_input(x: Any) -> Any:
    """An alias to differentiate by."""
    y = _C._func_fresh(_C._func_lift(x))
    if not y.requires_grad:
        y.requires_grad = True
    return y


@contextlib.contextmanager
def frame(*trees: Any) -> Iterator[None]:
    """While it runs a function: what the function was not given and did not make is not changed."""
    given = [x for x in pytree.tree_leaves(trees) if isinstance(x, _C.Tensor)]
    entered = _C._func_enter(given)
    try:
        yield
    finally:
        _C._func_leave(entered)


def own_handles(tree: Any) -> Any:
    """Other handles on tensors that are not differentiated: their history is the function's."""
    return pytree.tree_map(lambda x: _C._func_fresh(x) if type(x) is _C.Tensor else x, tree)


def gradients(
    outputs: Sequence[Any], inputs: Sequence[Any], cotangents: Any, keep: bool, create: bool
) -> list[Any]:
    """Gradients by reverse mode; zeros for inputs that no output depends on."""
    pairs = [
        (y, None if cotangents is None else c)
        for y, c in zip(outputs, cotangents or [None] * len(outputs), strict=True)
        if y.requires_grad
    ]
    if not pairs:
        return [fb.zeros_like(x) for x in inputs]
    roots, seeds = zip(*pairs, strict=True)
    found = _C._run_backward(roots, seeds, keep, create, tuple(inputs), True, False)
    return [fb.zeros_like(x) if g is None else g for x, g in zip(inputs, found, strict=True)]


def wanted_outside(given: Sequence[Any], outputs: Sequence[Any], inputs: Sequence[Any]) -> bool:
    """Whether somebody outside may differentiate what comes out: then it keeps its graph.

    Leaves that were made inside of the frame are nobody's outside.
    """
    return (
        any(_C._func_wants_grad(x) for x in given)
        or _C._func_is_foreign()
        or _C._func_leads_elsewhere(list(outputs), list(inputs))
    )


def released(tree: Any, keep: bool) -> Any:
    """Results without the graph of this level, unless it is wanted outside."""
    if keep:
        return tree
    return pytree.tree_map(lambda x: x.detach() if isinstance(x, _C.Tensor) else x, tree)


def with_aux(result: Any, has_aux: bool, name: str) -> tuple[Any, Any]:
    if not has_aux:
        return result, None
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(
            f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    return result


def basis(tensors: Sequence[Any]) -> list[Any]:
    """For each tensor a batch of directions: together, one for each element of all of them."""
    total = sum(x.numel() for x in tensors)
    out, start = [], 0
    for x in tensors:
        n = x.numel()
        rows = fb.zeros((total, n), dtype=x.dtype, device=x.device)
        rows.narrow(0, start, n).diagonal().fill_(1)
        out.append(rows.view(total, *x.shape))
        start += n
    return out


def split_like(rows: Any, tensors: Sequence[Any], dim: int) -> list[Any]:
    """A dim that numbers the elements of all tensors, cut into their shapes."""
    pieces = rows.split([x.numel() for x in tensors], dim)
    shape = tuple(rows.shape)
    return [
        piece.reshape(shape[:dim] + tuple(x.shape) + shape[dim + 1 :])
        for piece, x in zip(pieces, tensors, strict=True)
    ]


def named(func: Callable[..., Any]) -> str:
    return getattr(func, "__name__", None) or repr(func)
