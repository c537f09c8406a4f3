"""Reductions of many rows into few columns: values, rounding, memory read in its order."""

from __future__ import annotations

import pytest
from test_native import agree, compiled, uniform

import flambeau as torch
from flambeau import nn
from flambeau._compiler.emit_cpp import Emitter, innermost, strategy
from flambeau._compiler.nest import Nest, Program
from flambeau._compiler.scalar import walk
from flambeau._compiler.schedule import schedule
from flambeau._trace import trace

F = nn.functional


pytestmark = pytest.mark.usefixtures("cache")


def nests(f, inputs, dynamic=False) -> list[Nest]:
    program: Program = schedule(trace(f, inputs, "primitive", dynamic))
    return [s for s in program.steps if isinstance(s, Nest)]


def normed(x):
    mean = x.mean(0, keepdim=True)
    square = ((x - mean) ** 2).mean(0, keepdim=True)
    return (x - mean) * torch.rsqrt(square + 1e-5) * x.amax(0) + x.amin(0)


def several(x):
    return (x * 2).sum(0), x.exp().sum(0), x.amax(0)


CASES = {
    "sum": (lambda x: (x * 2).sum(0), (3000, 40)),
    "one column left over": (lambda x: x.sin().sum(0), (1100, 17)),
    "several": (several, (2000, 16)),
    "statistics": (normed, (1500, 24)),
    "rows of two dims": (lambda x: (x * x.mean((0, 1))).sum((0, 1)), (70, 33, 20)),
    "rows around columns": (lambda x: (x * 1.5).sum((0, 2)), (40, 50, 30)),
}


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_eager(name):
    f, shape = CASES[name]
    agree(f, [uniform(*shape)])
    agree(f, [uniform(*shape)], dynamic=True)


@pytest.mark.parametrize("name", ["sum", "several", "statistics", "rows of two dims"])
def test_goes_over_rows(name):
    f, shape = CASES[name]
    assert [strategy(n) for n in nests(f, [uniform(*shape).detach()])][0] == "panels"


def test_few_rows_or_wide_ones_go_by_tiles():
    for shape in ((60, 2000), (4000, 4000)):
        assert [strategy(n) for n in nests(lambda x: (x * 2).sum(0), [uniform(*shape)])] == [
            "columns"
        ]


def test_nan_is_kept():
    x = uniform(2000, 12).detach()
    x[1234, 5] = float("nan")
    for f in (lambda x: x.amax(0), lambda x: x.amin(0), lambda x: x.sum(0)):
        (got,) = compiled(f, [x])(x)
        assert torch.equal(got.isnan(), f(x).isnan())


def test_whole_numbers_and_truth():
    def f(tensors):
        return [
            y
            for x in tensors
            for y in ((x * 3).sum(0), (x * 3).amax(0), (x > 1011).any(0), (x * 2.0).sum(0))
        ]

    widths = (1, 2, 7, 12, 16, 33, 100)
    tensors = [torch.arange(3000 * n).view(3000, n) % 1013 for n in widths]
    tensors += [x[:40] for x in tensors]
    got = torch.compile(f)(tensors)
    assert all(torch.equal(x, y) for x, y in zip(got, f(tensors), strict=True))


def test_rounding_stays_small():
    x = uniform(65536, 8).detach()
    (got,) = compiled(lambda x: (x * 2).sum(0), [x])(x)
    exact = (x.double() * 2).sum(0)
    assert (got - exact).abs().max() < 1e-5 * x.abs().double().sum(0).max()


def test_threads_do_not_change_results():
    x = uniform(5000, 30).detach()
    f = compiled(normed, [x])
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        (one,) = f(x)
        torch.set_num_threads(2)
        (two,) = f(x)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(one, two)


def test_what_a_column_needs_is_computed_before_the_rows():
    *_, nest = nests(lambda x, w: ((x - (w * 2).reciprocal()) * 3).sum(0),
                     [uniform(3000, 16).detach(), uniform(16).detach()])  # fmt: skip
    memory = dict.fromkeys(nest.reads | nest.writes, "float")
    lines = Emitter(nest, memory).emit()
    (at,) = (i for i, x in enumerate(lines) if "s::reciprocal" in x)
    (rows,) = (i for i, x in enumerate(lines) if "= from;" in x and "{" in x and "to;" in x)
    assert at < rows


def test_channels_that_lie_last():
    x = uniform(4, 16, 12, 12).detach().contiguous(memory_format=torch.channels_last)

    def f(x):
        return F.relu(F.batch_norm(x, None, None, training=True))

    agree(f, [x.requires_grad_()])
    agree(f, [uniform(4, 16, 12, 12)])
    nest = nests(lambda x: (x * 2).sum((0, 2, 3)), [x.detach()])[0]
    assert innermost(nest) not in nest.reduced


def test_local_rows_do_not_change_the_order_of_loops():
    # Without the buffers that become local the other order would look better.
    def f(x):
        y = (torch.nn.functional.gelu(x).abs() + 0.3).log()
        return y.var(1, correction=0), x.var(1, correction=0)

    for x in (torch.rand(5, 3).t(), torch.rand(3, 1).expand(3, 5), torch.rand(5).expand(3, 5)):
        for got, want in zip(torch.compile(f, dynamic=False)(x), f(x), strict=True):
            assert torch.allclose(got, want, rtol=1e-5, atol=1e-7)


def scaled(x, variance):
    return torch.relu((x - 0.25) * torch.rsqrt(variance + 1e-5))


@pytest.mark.parametrize("dynamic", [False, True])
def test_slow_functions_of_a_column_are_computed_once_for_all_rows(dynamic):
    x, variance = uniform(500, 24), (uniform(24).detach().abs() + 0.5).requires_grad_()
    agree(scaled, [x, variance], dynamic=dynamic)

    def slow(nest: Nest) -> bool:
        return any(n.op == "rsqrt" for s in nest.statements for n in walk([s.value]))

    (held,) = (n for n in nests(scaled, [x, variance], dynamic) if slow(n))
    assert len(held.domain) == 1
    few = nests(scaled, [x[:4], variance])  # of so few rows it is not worth a buffer
    assert len(few) == 1 and slow(few[0])


def masked(x, mask):
    """As the gradient of a batch norm and the activation behind it."""
    g = torch.where(mask, x, 0.0)
    return g - g.mean(0) - x * (g * x).mean(0), mask.sum(0)


@pytest.mark.parametrize("columns", [16, 20, 64, 130])
def test_sums_that_do_not_wait_are_one_sweep(columns):
    x = uniform(2000, columns)
    mask = x.detach().roll(1) > 0
    agree(masked, [x, mask])
    (nest,) = nests(lambda x, mask: masked(x, mask)[0], [x.detach(), mask])
    assert [s.kind for s in nest.stages].count("full") == 2
    memory = dict.fromkeys(nest.reads | nest.writes, "float")
    memory |= {n.value[0]: n.value[2] for s in nest.statements for n in walk([s.value])
               if n.op == "load"}  # fmt: skip
    text = "\n".join(Emitter(nest, memory).emit())
    assert text.count("int32_t mask0") == 2 and "bool*" not in text  # neither has vectors


def test_a_sum_waits_for_what_it_needs():
    def f(x):
        mean = x.mean(0)
        return mean, ((x - mean) ** 2).sum(0), (x * x).sum(0), x.amax(0)

    agree(f, [uniform(2000, 16)])
    (nest,) = nests(f, [uniform(2000, 16).detach()])
    full = [[a.combine for a in s.statements] for s in nest.stages if s.kind == "full"]
    assert full[0] == ["add", "add"] and full[1][0] == "add" and len(full) <= 3


def test_another_layout_is_not_read_by_sweeps():
    def f(x):
        y = x.contiguous(memory_format=torch.channels_last)
        return (y - y.mean((0, 2, 3), keepdim=True)).relu()

    x = uniform(4, 16, 20, 20)
    agree(f, [x])
    program = schedule(trace(f, [x.detach()], "primitive", False))
    copy, nest = program.steps
    assert copy.node.target == "_to_copy" and nest.reads == {*copy.outs}


def test_sweeps_of_size_one_keep_their_names_apart():
    """Two stages over one column read it at an index that both compute."""

    def f(x):
        y = x.transpose(2, 1)
        y = y.index_select(2, torch.arange(y.shape[2] - 1, -1, -1)).std(2, correction=0)
        return y.mT[0:1], torch.norm(y.mT, p=1, dim=1)

    x = torch.randn(4, 1, 3, dtype=torch.float64)
    for a, b in zip(torch.compile(f)(x), f(x), strict=True):
        assert torch.equal(a, b)
