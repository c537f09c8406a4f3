"""Everyday operations that become loops: which they are, their values, gradients and errors."""

from __future__ import annotations

import pytest
from triton_programs import program_of

import flambeau as torch
import flambeau.nn.functional as F
from flambeau._compiler import lower
from flambeau._compiler.nest import Call, Nest
from flambeau._compiler.triton_module import source
from flambeau._trace import trace

pytestmark = pytest.mark.usefixtures("cache")


def indices(n, *shape):
    return torch.randint(0, n, shape)


def rows():
    return torch.randn(6, 9)


def images():
    return torch.randn(2, 4, 5, 3)


#: name -> function, its operands
CASES = {
    "std": (lambda x: x.std(1), lambda: [rows()]),
    "std of all": (lambda x: x.std(correction=0, dim=None, keepdim=True), lambda: [rows()]),
    "logsumexp": (lambda x: torch.logsumexp(x, 1), lambda: [rows()]),
    "logsumexp of both": (lambda x: torch.logsumexp(x, (0, 1), keepdim=True), lambda: [rows()]),
    "prod": (lambda x: x.prod(1), lambda: [rows()]),
    "prod of all": (lambda x: x.prod(), lambda: [rows()]),
    "prod of integers": (lambda x: x.prod(0), lambda: [indices(5, 4, 3)]),
    "norm": (lambda x: torch.norm(x, dim=1), lambda: [rows()]),
    "norm 1": (lambda x: torch.linalg.vector_norm(x, 1, 0), lambda: [rows()]),
    "norm inf": (lambda x: torch.linalg.vector_norm(x, torch.inf), lambda: [rows()]),
    "norm -inf": (lambda x: torch.linalg.vector_norm(x, -torch.inf, 1), lambda: [rows()]),
    "norm 3": (lambda x: torch.linalg.vector_norm(x, 3.0, 1, True), lambda: [rows()]),
    "norm 0": (lambda x: torch.linalg.vector_norm(x, 0, 1), lambda: [rows()]),
    "argmax": (lambda x: x.argmax(1), lambda: [rows()]),
    "argmax of all": (lambda x: x.argmax(keepdim=True), lambda: [rows()]),
    "argmin": (lambda x: x.argmin(0, True), lambda: [indices(3, 5, 7)]),
    "max": (lambda x: x.max(1), lambda: [rows()]),
    "max down": (lambda x: x.max(0, True), lambda: [indices(3, 5, 7)]),
    "min": (lambda x: x.min(-1), lambda: [images()]),
    "cross_entropy": (F.cross_entropy, lambda: [rows(), indices(9, 6)]),
    "cross_entropy of all kinds": (
        lambda x, t, w: F.cross_entropy(x, t, w, ignore_index=3, label_smoothing=0.1),
        lambda: [rows(), torch.tensor([3, 0, 8, 3, 1, 1]), torch.rand(9) + 0.5],
    ),
    "cross_entropy of images": (
        lambda x, t: F.cross_entropy(x, t, reduction="none"),
        lambda: [images(), indices(4, 2, 5, 3)],
    ),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b).relu(),
                   lambda: [images(), torch.randn(4), torch.randn(4)]),
    "embedding": (lambda i, w: F.embedding(i, w) * 2,
                  lambda: [indices(7, 3, 5), torch.randn(7, 4)]),
    "pad": (lambda x: F.pad(x, (1, 2)), lambda: [rows()]),
    "pad and crop": (lambda x: F.pad(x, (-1, 2, 3, 0, 1, -1), value=2.5), lambda: [images()]),
    "roll": (lambda x: x.roll(2, 1), lambda: [rows()]),
    "roll of several": (lambda x: x.roll((-1, 2, 5), (0, 2, 3)), lambda: [images()]),
    "roll as flat": (lambda x: x.roll(4), lambda: [rows()]),
    "gather": (lambda x, i: x.gather(1, i), lambda: [rows(), indices(9, 6, 4)]),
    "gather down": (lambda x, i: x.exp().gather(0, i), lambda: [rows(), indices(6, 4, 9)]),
    "index_select": (lambda x, i: x.index_select(0, i) + 1, lambda: [rows(), indices(6, 11)]),
    "index_select inside": (lambda x, i: x.index_select(2, i), lambda: [images(), indices(5, 3)]),
    "sum of selected": (lambda x, i: x.index_select(0, i).sum(0), lambda: [rows(), indices(6, 4)]),
    "count_nonzero": (lambda x: x.count_nonzero(1), lambda: [indices(3, 6, 9)]),
    "nansum": (lambda x: x.log().nansum(1), lambda: [rows()]),
    "one_hot": (lambda t: F.one_hot(t, 16), lambda: [indices(16, 3, 4)]),
    "linspace": (lambda x: x + torch.linspace(0, 1, 9), lambda: [rows()]),
    "linspace of doubles": (lambda x: x * torch.linspace(3, -2, 9, dtype=torch.float64),
                            lambda: [rows()]),
    "eye": (lambda x: x + torch.eye(6, 9), lambda: [rows()]),
}  # fmt: skip


def flat(x):
    return list(x) if isinstance(x, tuple) else [x]


def near(ours, theirs, tolerance=2e-5):
    assert ours.dtype is theirs.dtype and ours.shape == theirs.shape
    assert ours.stride() == theirs.stride()
    if not ours.dtype.is_floating_point:
        assert torch.equal(ours, theirs)
        return
    torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.fixture
def calls(monkeypatch):
    """Names of the entries that compiled code calls."""
    names, call = [], lower.Lowering.call

    def noted(self, node, args):
        names.append(node.target)
        return call(self, node, args)

    monkeypatch.setattr(lower.Lowering, "call", noted)
    return names


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_loops_give_what_kernels_give(name, dynamic, calls):
    torch.manual_seed(0)
    f, operands = CASES[name]
    given = operands()
    compiled = torch.compile(f, fullgraph=True, dynamic=dynamic)
    for _ in range(2):
        for ours, theirs in zip(flat(compiled(*given)), flat(f(*given)), strict=True):
            near(ours, theirs)
    assert set(calls) <= {"_to_copy"}  # which turns what lies the other way
    differentiable = [i for i, x in enumerate(given) if x.dtype.is_floating_point]
    if not differentiable or not flat(f(*given))[0].dtype.is_floating_point:
        return
    grads = []
    for g in (compiled, f):
        own = [x.clone().requires_grad_(i in differentiable) for i, x in enumerate(given)]
        out = flat(g(*own))[0]
        (out * torch.linspace(0.5, 2, out.numel()).reshape(out.shape)).sum().backward()
        grads.append([own[i].grad for i in differentiable])
    for ours, theirs in zip(*grads, strict=True):
        if theirs is not None:
            near(ours, theirs)


OUTSIDE = {
    "gather": lambda x, i: x.gather(0, i.unsqueeze(1)).exp(),
    "index_select": lambda x, i: x.index_select(0, i) * 2,
    "embedding": lambda x, i: F.embedding(i, x) + 1,
    "one_hot": lambda x, i: F.one_hot(i, 6) + x.sum().long(),
    "cross_entropy": lambda x, i: F.cross_entropy(x[:, :6], i),
}


@pytest.mark.parametrize("bad", [6, -1, 1 << 40])
@pytest.mark.parametrize("name", OUTSIDE)
def test_indices_out_of_bounds_are_told_as_eager_does(name, bad):
    f, x = OUTSIDE[name], torch.randn(6, 6)
    compiled = torch.compile(f, fullgraph=True)
    compiled(x, torch.tensor([1, 5, 0, 0, 2, 3]))
    wrong = torch.tensor([1, 5, bad, 0, -3, 3])
    with pytest.raises((IndexError, RuntimeError)) as ours:
        compiled(x, wrong)
    with pytest.raises((IndexError, RuntimeError)) as theirs:
        f(x, wrong)
    assert type(ours.value) is type(theirs.value)
    if name != "one_hot":  # eager looks at the classes before it places them
        assert str(ours.value) == str(theirs.value)
    near(compiled(x, wrong.clamp(0, 5)), f(x, wrong.clamp(0, 5)))


@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize("find", ["max", "min", "argmax", "argmin"])
def test_places_of_ties_and_nan_are_those_of_eager(find, down):
    torch.manual_seed(1)
    x = torch.randint(0, 4, (40, 33)).float()
    x[3, 7] = x[3, 20] = x[5, 0] = x[9, 32] = torch.nan
    x[11] = -torch.inf
    x[12] = torch.inf
    f = lambda x: getattr(x, find)(0 if down else 1)  # noqa: E731
    for ours, theirs in zip(flat(torch.compile(f)(x)), flat(f(x)), strict=True):
        near(ours, theirs)


def test_an_index_that_is_wrong_leaves_inputs_alone():
    def f(x, i):
        x.mul_(2)
        return x.index_select(0, i)

    x, compiled = torch.ones(4, 3), torch.compile(f)
    compiled(x, torch.tensor([1]))
    with pytest.raises(IndexError):
        torch.compile(lambda x, i: x.add_(x.index_select(0, i)))(x, torch.tensor([4, 0, 0, 0]))
    assert torch.equal(x, torch.full((4, 3), 2.0))


@pytest.mark.parametrize("name", ["std", "prod", "norm inf", "max", "cross_entropy", "pad", "roll"])
def test_triton_has_them_but_for_what_is_picked(name):
    f, operands = CASES[name]
    given = operands()
    program, _ = program_of(trace(f, given, level="primitive"))
    calls = [s.node.target for s in program.steps if isinstance(s, Call)]
    assert set(calls) <= {"gather"}
    source([s for s in program.steps if isinstance(s, Nest)], program.symbols)
