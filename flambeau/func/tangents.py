"""Forward mode as transforms: ``jvp``, ``jacfwd``, ``linearize``, and ``hessian`` on top of both.

A level is a dual level of the core; levels nest, each with tangents of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import flambeau as fb
from flambeau import _C
from flambeau.utils import _pytree as pytree

from . import _trees as trees
from .reverse import jacrev
from .vmap import vmap

__all__ = ["hessian", "jacfwd", "jvp", "linearize"]


def _check_tangents(primals: Any, tangents: Any) -> tuple[list[Any], list[Any], Any]:
    head = "jvp(f, primals, tangents): "
    for what, value in (("primals", primals), ("tangents", tangents)):
        if not isinstance(value, tuple):
            raise RuntimeError(
                f"{head}Expected {what} to be a tuple. E.g. it should be valid to call "
                f"f(*{what}), got {type(value)}"
            )
    xs, spec = trees.tensors_of(primals, f"{head}expected primals")
    vs, v_spec = trees.tensors_of(tangents, f"{head}expected tangents")
    if spec != v_spec:
        raise RuntimeError(
            f"{head}Expected primals and tangents to have the same python structure, got {spec} "
            f"and {v_spec}"
        )
    return xs, vs, spec


def jvp(
    func: Callable[..., Any],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> tuple[Any, ...]:
    """The value of ``func`` and its derivative in the direction of the tangents.

    Args:
        func: takes and returns trees of tensors.
        primals: its arguments.
        tangents: like the primals.
        strict: refuse outputs that do not depend on a primal, in place of zeros.
        has_aux: ``func`` returns (outputs, aux).

    Returns:
        (outputs, tangents of the outputs), and aux with ``has_aux``.

    >>> torch.func.jvp(torch.sin, (torch.tensor(0.0),), (torch.tensor(2.0),))
    (tensor(0.), tensor(2.))
    """
    xs, vs, spec = _check_tangents(primals, tangents)
    level = _C._enter_nested_dual_level()
    try:
        duals = [_C._make_dual(x, v) for x, v in zip(xs, vs, strict=True)]
        with trees.frame(primals, tangents):
            result = func(*pytree.tree_unflatten(duals, spec))
        result, aux = trees.with_aux(result, has_aux, "jvp(f, primals, tangents)")
        outputs, out_spec = trees.tensors_of(
            result, "jvp(f, primals, tangents): Expected f(*primals)"
        )
        values, slopes = [], []
        for y in outputs:
            value, slope = _C._unpack_dual(y)
            if slope is None and strict:
                raise RuntimeError(
                    "jvp(f, primals, tangents, strict=True): The output of f is independent of the "
                    "inputs. This is not allowed with strict=True."
                )
            values.append(value)
            slopes.append(fb.zeros_like(value) if slope is None else slope)
        aux = pytree.tree_map(
            lambda x: _C._unpack_dual(x)[0] if isinstance(x, _C.Tensor) else x, aux
        )
    finally:
        _C._exit_dual_level(level)
    out = (pytree.tree_unflatten(values, out_spec), pytree.tree_unflatten(slopes, out_spec))
    return (*out, aux) if has_aux else out


def jacfwd(
    func: Callable[..., Any],
    argnums: trees.ArgNums = 0,
    has_aux: bool = False,
    *,
    chunk_size: int | None = None,
    randomness: str = "error",
) -> Callable[..., Any]:
    """A function that returns the Jacobian of ``func``, by forward mode: one pass for all columns.

    Args:
        func: takes and returns trees of tensors.
        argnums: by which positional arguments; a tuple gives a tuple.
        has_aux: ``func`` returns (outputs, aux); aux is passed on.
        chunk_size: how many columns at a time; None: all.
        randomness: as in ``vmap``.

    Returns:
        For each output, for each input, a tensor of shape ``output.shape + input.shape``.

    >>> torch.func.jacfwd(torch.square)(torch.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """

    @functools.wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        trees.check_argnums(argnums, args, "jacfwd")
        inputs, in_spec = trees.tensors_of(
            trees.chosen(args, argnums), "jacfwd: expected the inputs that argnums selects"
        )

        def of_inputs(*leaves: Any) -> Any:
            new = pytree.tree_unflatten(leaves, in_spec)
            return func(*trees.replaced(args, argnums, new), **kwargs)

        def push(*directions: Any) -> Any:
            out = jvp(of_inputs, tuple(inputs), directions, has_aux=has_aux)
            return (out[1], out[2]) if has_aux else out[1]

        columns = vmap(
            push, out_dims=(0, None) if has_aux else 0, chunk_size=chunk_size, randomness=randomness
        )(*trees.basis(inputs))
        columns, aux = columns if has_aux else (columns, None)
        outputs, out_spec = pytree.tree_flatten(columns)
        result = []
        for y in outputs:
            blocks = trees.split_like(y.movedim(0, -1), inputs, y.dim() - 1)
            result.append(pytree.tree_unflatten(blocks, in_spec))
        tree = pytree.tree_unflatten(result, out_spec)
        return (tree, aux) if has_aux else tree

    return jacobian


def hessian(func: Callable[..., Any], argnums: trees.ArgNums = 0) -> Callable[..., Any]:
    """A function that returns the second derivatives of ``func``: forward over reverse mode.

    Args:
        func: takes and returns trees of tensors.
        argnums: by which positional arguments; a tuple gives a tuple of tuples.

    >>> torch.func.hessian(lambda x: (x**3).sum())(torch.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """The value of ``func`` and its derivative there, as a linear function of tangents.

    ``func`` runs once; the linear function is backward transposed, so that it can be called often.

    Args:
        func: takes and returns trees of tensors.
        primals: its arguments.

    >>> value, push = torch.func.linearize(torch.square, torch.tensor(3.0))
    >>> push(torch.tensor(1.0))
    tensor(6.)
    """
    given, spec = trees.tensors_of(primals, "linearize(f, *primals): expected primals")
    with fb.enable_grad():
        inputs = [trees.fresh_input(x) for x in given]
        with trees.frame(primals):
            result = func(*pytree.tree_unflatten(inputs, spec))
        outputs, out_spec = trees.tensors_of(result, "linearize(f, *primals): Expected f(*primals)")
        probes = [trees.fresh_input(fb.zeros_like(y)) for y in outputs]
        pulled = trees.gradients(outputs, inputs, probes, True, True)

    def push(*tangents: Any) -> Any:
        vs, v_spec = trees.tensors_of(tangents, "jvp_fn(*tangents): expected tangents")
        if v_spec != spec:
            raise RuntimeError(
                f"jvp_fn(*tangents): Expected tangents to have the structure of the primals, "
                f"{spec}, got {v_spec}"
            )
        slopes = trees.gradients(pulled, probes, vs, True, False)
        return pytree.tree_unflatten(slopes, out_spec)

    return pytree.tree_unflatten([y.detach() for y in outputs], out_spec), push
