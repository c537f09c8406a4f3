"""Reverse mode as transforms: ``grad``, ``grad_and_value``, ``vjp``, ``jacrev``.

A level of derivatives is an alias of each input with a node of its own (see ``_trees``): the graph
between it and the outputs is the level's, and what goes on beyond it is the caller's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import flambeau as fb
from flambeau import _C
from flambeau.utils import _pytree as pytree

from . import _trees as trees
from .vmap import vmap

__all__ = ["grad", "grad_and_value", "jacrev", "vjp"]


def grad_and_value(
    func: Callable[..., Any], argnums: trees.ArgNums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns the gradient of ``func`` and its value.

    Args:
        func: returns a tensor of one element without dims, or (that, aux) with ``has_aux``.
        argnums: by which positional arguments; a tuple gives a tuple. Each may be a tree.
        has_aux: ``func`` returns something beside the value, which is passed on.

    Returns:
        (gradient, value), or (gradient, (value, aux)).

    >>> torch.func.grad_and_value(lambda x: x**3)(torch.tensor(2.0))
    (tensor(12.), tensor(8.))
    """

    @functools.wraps(func)
    def derived(*args: Any, **kwargs: Any) -> Any:
        outer = fb.is_grad_enabled()
        trees.check_argnums(argnums, args, "grad")
        given, spec = trees.tensors_of(
            trees.chosen(args, argnums), "grad: expected the inputs that argnums selects"
        )
        with fb.enable_grad():
            inputs = [trees.fresh_input(x) for x in given]
            new = trees.replaced(
                trees.own_handles(args), argnums, pytree.tree_unflatten(inputs, spec)
            )
            with trees.frame(args, kwargs):
                result = func(*new, **trees.own_handles(kwargs))
                value, aux = trees.with_aux(result, has_aux, "grad_and_value(f)(*args)")
                _check_scalar(value)
                keep = outer and trees.wanted_outside(given, [value], inputs)
            grads = trees.gradients([value], inputs, None, keep, keep)
        gradient = pytree.tree_unflatten(grads, spec)
        value, aux = trees.released(value, keep), trees.released(aux, keep)
        return (gradient, (value, aux)) if has_aux else (gradient, value)

    return derived


def _check_scalar(value: Any) -> None:
    if not isinstance(value, _C.Tensor):
        raise RuntimeError(
            f"grad_and_value(f)(*args): Expected f(*args) to return tensor, got type {type(value)}"
        )
    if value.dim() != 0:
        raise RuntimeError(
            "grad_and_value(f)(*args): Expected f(*args) to return a scalar tensor, got tensor "
            f"with {value.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
        )


def grad(
    func: Callable[..., Any], argnums: trees.ArgNums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns the gradient of ``func``.

    Args:
        func: returns a tensor of one element without dims, or (that, aux) with ``has_aux``.
        argnums: by which positional arguments; a tuple gives a tuple. Each may be a tree.
        has_aux: ``func`` returns something beside the value, which is passed on.

    >>> torch.func.grad(torch.func.grad(torch.sin))(torch.tensor(1.0))
    tensor(-0.8415)
    """

    @functools.wraps(func)
    def derived(*args: Any, **kwargs: Any) -> Any:
        gradient, rest = grad_and_value(func, argnums, has_aux)(*args, **kwargs)
        return (gradient, rest[1]) if has_aux else gradient

    return derived


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The value of ``func`` and a function that maps cotangents of it to cotangents of the primals.

    Args:
        func: takes and returns trees of tensors.
        primals: its arguments.
        has_aux: ``func`` returns (outputs, aux).

    Returns:
        (outputs, vjp_fn), and aux with ``has_aux``. ``vjp_fn(*cotangents)`` returns a tuple with
        one tree for each primal; it may be called any number of times, inside ``vmap`` too.

    >>> value, pull = torch.func.vjp(torch.sin, torch.tensor(0.0))
    >>> pull(torch.tensor(2.0))
    (tensor(2.),)
    """
    outer = fb.is_grad_enabled()
    given, spec = trees.tensors_of(primals, "vjp(f, *primals): expected primals")
    with fb.enable_grad():
        inputs = [trees.fresh_input(x) for x in given]
        with trees.frame(primals):
            result = func(*pytree.tree_unflatten(inputs, spec))
            result, aux = trees.with_aux(result, has_aux, "vjp(f, *primals)")
            outputs, out_spec = trees.tensors_of(result, "vjp(f, *primals): Expected f(*primals)")
            keep = trees.wanted_outside(given, outputs, inputs)
    if not outputs:
        raise RuntimeError(
            "vjp(f, *primals): Expected f to be a function that has non-empty output"
        )

    def pull(
        cotangents: Any, *more: Any, retain_graph: bool = True, create_graph: Any = None
    ) -> Any:
        tree = (cotangents, *more) if more else cotangents
        seeds, seed_spec = trees.tensors_of(tree, "vjp_fn(cotangents): expected cotangents")
        if seed_spec != out_spec:
            raise RuntimeError(
                "vjp_fn(cotangents): Expected cotangents to have the same structure as the output "
                f"of f, {out_spec}, got {seed_spec}"
            )
        create = create_graph
        if create is None:
            create = fb.is_grad_enabled() and (keep or any(map(_C._func_wants_grad, seeds)))
        grads = trees.gradients(outputs, inputs, seeds, retain_graph, create)
        return tuple(pytree.tree_unflatten(grads, spec))

    # Under no_grad the value has no history; cotangents that are pulled back later may have one.
    shown = outer and keep
    value = pytree.tree_unflatten(trees.released(outputs, shown), out_spec)
    return (value, pull, trees.released(aux, shown)) if has_aux else (value, pull)


def jacrev(
    func: Callable[..., Any],
    argnums: trees.ArgNums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """A function that returns the Jacobian of ``func``, by reverse mode: one pass for all rows.

    Args:
        func: takes and returns trees of tensors.
        argnums: by which positional arguments; a tuple gives a tuple.
        has_aux: ``func`` returns (outputs, aux); aux is passed on.
        chunk_size: how many rows at a time; None: all.

    Returns:
        For each output, for each input, a tensor of shape ``output.shape + input.shape``.

    >>> torch.func.jacrev(torch.square)(torch.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        trees.check_argnums(argnums, args, "jacrev")

        def of_chosen(*primals: Any) -> Any:
            new = primals if isinstance(argnums, tuple) else primals[0]
            return func(*trees.replaced(args, argnums, new), **kwargs)

        primals = trees.chosen(args, argnums)
        many = isinstance(argnums, tuple)
        value, pull, *aux = vjp(of_chosen, *(primals if many else (primals,)), has_aux=has_aux)
        outputs, out_spec = pytree.tree_flatten(value)
        seeds = trees.basis(outputs)
        by_rows = vmap(
            lambda *rows: pull(pytree.tree_unflatten(rows, out_spec)), chunk_size=chunk_size
        )
        found = by_rows(*seeds)
        inputs, in_spec = pytree.tree_flatten(found if many else found[0])
        blocks = [trees.split_like(rows, outputs, 0) for rows in inputs]
        per_output = [
            pytree.tree_unflatten([block[i] for block in blocks], in_spec)
            for i in range(len(outputs))
        ]
        result = pytree.tree_unflatten(per_output, out_spec)
        return (result, aux[0]) if has_aux else result

    return jacobian
