"""vmap of samples without dims, and of reductions over no dims, over the whole table: the calls in
the entries' docstrings, with their tensors replaced by single entries and their dims by others,
equal the loop over samples.

Which operations there are, and with which arguments, is found in the table; the loop is the
reference.
"""

from __future__ import annotations

import itertools
import sys
import warnings
from pathlib import Path

import pytest

import flambeau as torch
from flambeau._table.model import DIM_NAMES
from flambeau.utils import _pytree as pytree

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).resolve().parents[1] / "ops")]
from example_calls import calls, compares  # noqa: E402
from table_cases import TABLE  # noqa: E402
from test_examples import LOOPS, REFUSED, same  # noqa: E402

BATCH = 3

#: the composite writes to what is the same for all samples, or asks how many entries are under a
#: mask
NOT_BATCHED = {"fill_1", "index_put", "histogram_1", "histogramdd_1", "histogramdd_2"}


def without_dims(tensors):
    """The tensors with all, with each, and with all but each of them cut to one entry."""
    n = len(tensors)
    for cut in itertools.product((False, True), repeat=n):
        if n <= 3 or sum(cut) in (0, 1, n - 1, n):
            yield tuple(
                x.reshape(-1)[0] if c and x.numel() else x
                for x, c in zip(tensors, cut, strict=True)
            )


def dims_of(op, args, kwargs):
    """The arguments as they are, and with those that number dims replaced by others."""
    yield args, kwargs
    for i, p in enumerate(op.params):
        if p.name not in DIM_NAMES or p.type.base not in ("int", "Ints"):
            continue
        others = (0, -1) if p.type.base == "int" else ((), (0,), (-1,))
        for other in others + ((None,) if p.type.optional else ()):
            if i < len(args):
                yield (*args[:i], other, *args[i + 1 :]), kwargs
            else:
                yield args, {**kwargs, p.name: other}


def flat_results(function, args, kwargs):
    out = function(*args, **kwargs)
    return [y for y in pytree.tree_leaves(out) if isinstance(y, torch.Tensor)]


def samples(x):
    """A batch of the tensor; not all of its samples are equal."""
    if x.dtype.is_floating_point or x.dtype.is_complex:
        return torch.stack([x.detach() * (1 - 0.1 * i) for i in range(BATCH)])
    return torch.stack([x] * BATCH)


def cases(op):
    for function, args, kwargs in calls(op):
        for given, named in dims_of(op, args, kwargs):
            leaves, spec = pytree.tree_flatten(given)
            where = [i for i, x in enumerate(leaves) if isinstance(x, torch.Tensor)]
            if not where or any(isinstance(x, torch.Tensor) for x in pytree.tree_leaves(named)):
                continue
            for tensors in without_dims([leaves[i] for i in where]):

                def run(*new, leaves=leaves, spec=spec, where=where, named=named, f=function):
                    full = list(leaves)
                    for i, t in zip(where, new, strict=True):
                        full[i] = t
                    return flat_results(f, pytree.tree_unflatten(full, spec), named)

                yield run, tensors, (given, named)


def entries():
    for op in TABLE:
        changes = op.mutates or op.name.endswith("_")  # in place: test_vmap.py
        if ">>>" in op.doc and not changes and compares(op) and op.returns.base != "bool":
            if op.uid not in REFUSED and op.uid not in LOOPS and op.uid not in NOT_BATCHED:
                yield op


@pytest.mark.parametrize("op", list(entries()), ids=lambda op: op.uid)
def test_vmap_equals_the_loop(op):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for run, tensors, told in cases(op):
            n = len(tensors)
            for dims in {(0,) * n, *((0,) + (None,) * (n - 1), (None,) * (n - 1) + (0,))}:
                xs = [x if d is None else samples(x) for x, d in zip(tensors, dims, strict=True)]
                try:
                    rows = [
                        run(*(x if d is None else x[b] for x, d in zip(xs, dims, strict=True)))
                        for b in range(BATCH)
                    ]
                    want = [torch.stack(column) for column in zip(*rows, strict=True)]
                except Exception:
                    continue  # refused, or results of no fixed shape
                got = torch.vmap(run, dims, randomness="same")(*xs)
                for a, b in zip(got, want, strict=True):
                    assert same(a, b), f"{told}, in_dims={dims}, {xs}: {a} is not {b}"


@pytest.mark.parametrize("name", ["sum", "mean", "amax", "amin", "logsumexp", "var", "std"])
def test_reductions_over_an_empty_list_of_dims(name):
    f = getattr(torch, name)
    x = torch.arange(1.0, 13.0).view(3, 2, 2)
    for batch in (x, x[:, 0, 0]):
        if batch.dim() == 1 and name in ("var", "std"):
            continue  # one entry has none, of which a warning tells
        got = torch.vmap(lambda a: f(a, ()))(batch)
        assert same(got, torch.stack([f(a, ()) for a in batch]))
    x.requires_grad_()
    inside = torch.vmap(torch.func.grad(lambda a: f(a, ())))(x.detach())
    outside = torch.autograd.grad(sum(f(a, ()) for a in x), x)[0]
    assert same(inside, outside)


def test_a_rule_that_gives_no_batch_is_found_out():
    """Whatever a rule does wrong, memory beyond its result is never read."""
    ones = torch.ones(3)
    assert torch.vmap(lambda a: torch.logsumexp(a, ()))(ones).tolist() == [1, 1, 1]
    assert torch.vmap(lambda a: torch.any(a, ()))(ones).tolist() == [True] * 3
    assert torch.vmap(lambda a: a.unfold(0, 1, 1))(ones).shape == (3, 1)
