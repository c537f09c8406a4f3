"""Every operation of the table under vmap: the call in its docstring's example, with its tensors
made batches, equals the loop over samples; so do gradients through it.

What an example calls is found in its source, so that the table's examples are the samples here.
"""

from __future__ import annotations

import re
import sys
import warnings
from pathlib import Path

import pytest

import flambeau as torch
from flambeau.utils import _pytree as pytree

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "ops"))
from example_calls import calls, compares  # noqa: E402
from table_cases import TABLE  # noqa: E402

BATCH = 3


def documented(kind):
    """Names below a heading of docs/design/vmap.md, from lines such as `name: reason`."""
    text = (ROOT / "docs" / "design" / "vmap.md").read_text()
    section = text.split(f"## {kind}\n")[1].split("\n## ")[0]
    return {
        name: why for names, why in re.findall(r"^- (.+?): (.+)$", section, re.M)
        for name in re.findall(r"`([\w.]+)`", names)
    }  # fmt: skip


LOOPS = documented("What falls to the loop")
REFUSED = documented("What is refused")


def samples_of(x, i):
    """Sample i for a tensor of an example: other values of the same domain."""
    if x.dtype.is_floating_point or x.dtype.is_complex:
        return x.detach() * (1 - 0.1 * i)
    return x.flip(0) if i == 1 and x.dim() and x.dtype != torch.bool else x.clone()


def prepared(op):
    for function, args, kwargs in calls(op):
        leaves, spec = pytree.tree_flatten(args)
        where = [i for i, x in enumerate(leaves) if isinstance(x, torch.Tensor)]
        if not where or any(isinstance(x, torch.Tensor) for x in pytree.tree_leaves(kwargs)):
            continue

        def run(*tensors, function=function, leaves=leaves, spec=spec, where=where, kwargs=kwargs):
            new = list(leaves)
            for i, t in zip(where, tensors, strict=True):
                new[i] = t
            out = function(*pytree.tree_unflatten(new, spec), **kwargs)
            return [y for y in pytree.tree_leaves(out) if isinstance(y, torch.Tensor)]

        tensors = [leaves[i] for i in where]
        yield run, tensors


def looped(run, batches, dims):
    rows = [
        run(*(x if d is None else x.select(d, i) for x, d in zip(batches, dims, strict=True)))
        for i in range(BATCH)
    ]
    return [torch.stack(column) for column in zip(*rows, strict=True)]


ENTRIES = [op for op in TABLE if ">>>" in op.doc and not op.mutates and compares(op)]


def same(a, b):
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.is_floating_point or a.dtype.is_complex:
        return torch.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True)
    return torch.equal(a, b)


def variants(tensors):
    """Which tensors are batched, and in which dim."""
    n = len(tensors)
    yield (0,) * n
    yield tuple(x.dim() for x in tensors)
    if n > 1:
        for k in range(n):
            yield tuple(0 if i == k else None for i in range(n))


def check(run, tensors):
    many = [[samples_of(x, i) for i in range(BATCH)] for x in tensors]
    for dims in variants(tensors):
        batches = [
            xs[0] if d is None else torch.stack(xs, d) for xs, d in zip(many, dims, strict=True)
        ]
        try:
            want = looped(run, batches, dims)
        except RuntimeError:
            continue  # the entry refuses samples of this layout
        if not want:
            return
        got = torch.vmap(run, dims, randomness="same")(*batches)
        for a, b in zip(got, want, strict=True):
            assert same(a, b), f"in_dims={dims}: {a} is not {b}"
        gradients(run, batches, dims)


def gradients(run, batches, dims):
    leaves = [x.detach().requires_grad_() if x.dtype.is_floating_point else x for x in batches]
    wanted = [x for x in leaves if x.requires_grad]

    def total(outs):
        parts = [
            (y * y.detach().cos()).sum()
            for y in outs
            if y.dtype.is_floating_point and y.requires_grad
        ]
        return sum(parts) if parts else None

    want = total(looped(run, leaves, dims))
    if want is None or not wanted:
        return
    try:
        expected = torch.autograd.grad(want, wanted, allow_unused=True)
    except NotImplementedError:
        return  # an entry without a derivative
    got = total(torch.vmap(run, dims, randomness="same")(*leaves))
    found = torch.autograd.grad(got, wanted, allow_unused=True)
    inside = per_sample(run, leaves, dims)
    for i, (a, b) in enumerate(zip(found, expected, strict=True)):
        zero = torch.zeros_like(wanted[i])
        a, b = zero if a is None else a, zero if b is None else b
        assert same(a, b), f"gradient {i} through vmap, in_dims={dims}: {a} is not {b}"
        if inside is not None:
            assert same(inside[i], b), f"gradient {i} inside vmap, in_dims={dims}"


def per_sample(run, leaves, dims):
    """Gradients taken inside vmap; of tensors that all samples share, summed."""
    at = [i for i, x in enumerate(leaves) if x.dtype.is_floating_point]

    def loss(floats, others):
        given = dict(zip(at, floats, strict=True))
        rest = iter(others)
        outs = run(*(given[i] if i in given else next(rest) for i in range(len(leaves))))
        parts = [(y * y.detach().cos()).sum() for y in outs if y.dtype.is_floating_point]
        return sum(parts)

    floats = tuple(leaves[i].detach() for i in at)
    others = tuple(x for i, x in enumerate(leaves) if i not in at)
    in_dims = (tuple(dims[i] for i in at), tuple(d for i, d in enumerate(dims) if i not in at))
    found = torch.vmap(torch.func.grad(loss), in_dims, randomness="same")(floats, others)
    out = []
    for g, i in zip(found, at, strict=True):
        out.append(g.sum(0) if dims[i] is None else g.movedim(0, dims[i]))
    return out


@pytest.mark.parametrize("op", ENTRIES, ids=lambda op: op.uid)
def test_vmap_equals_the_loop(op):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for run, tensors in prepared(op):
            try:
                run(*tensors)
                looped(run, [torch.stack([x] * BATCH) for x in tensors], (0,) * len(tensors))
            except Exception:
                continue  # the example shows an error, or results of no fixed shape
            if op.uid in REFUSED:
                with pytest.raises(RuntimeError, match="vmap: "):
                    torch.vmap(run)(*(torch.stack([x] * BATCH) for x in tensors))
            else:
                check(run, tensors)
    text = " ".join(str(w.message) for w in caught)
    looping = set(re.findall(r"no batching rule for (\w+)", text))
    assert looping <= set(LOOPS), f"undocumented loops: {looping - set(LOOPS)}"
