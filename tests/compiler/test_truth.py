"""Compiled is eager, for every entry of the table: values, dtypes, shapes, strides, memory, changed
arguments, gradients and errors; functional graphs and native code; sizes fixed and varying.

`make truth` runs all; otherwise every `STEP`th entry is taken. Samples of many entries are compiled
by one call of the C++ compiler.
"""

from __future__ import annotations

import os
import warnings

import pytest
from table_samples import Sample, entries, samples

import flambeau as torch
from tools._agreement import difference, is_inexact, observe
from tools._batch import Batch
from tools._program_check import Stages, optimised
from tools._tolerance import tolerance

#: entries that are refused when they are compiled, by an error that says why
REFUSED = {
    "index_fill_1": "the size of the result depends on the data",
}
ENTRIES = [op for op in entries() if op.uid not in REFUSED]
POINTWISE = {op.uid for op in ENTRIES if op.kind == "pointwise"}
STEP = 1 if os.environ.get("TRUTH") == "all" else 40
LEVEL = os.environ.get("TRUTH_LEVEL", "-O1")  # what the C++ compiler takes most of its time for
SHARD = 10  # entries whose code is compiled together


class Compared:
    """One sample with sizes fixed or varying."""

    def __init__(self, sample: Sample, dynamic: bool) -> None:
        self.sample, self.dynamic = sample, dynamic
        self.stages = Stages()
        self.compiled = torch.compile(sample.function, backend=self.stages, dynamic=dynamic)
        larger = sample.larger() if dynamic else None
        self.inputs = [sample.tensors, *([larger] if larger else [])]
        self.grads = [self.differentiable(x) for x in self.inputs]
        self.want = [self.run(sample.function, k) for k in range(len(self.inputs))]
        self.found: list[str] = []

    def differentiable(self, tensors):
        """Whether eager takes gradients of this."""
        if not any(map(is_inexact, tensors)):
            return False
        made, leaves = fresh(tensors, True)
        return observe(self.sample.function, made, leaves).error is None

    def run(self, f, k):
        torch.manual_seed(0)
        return observe(f, *fresh(self.inputs[k], self.grads[k]))

    def check(self, mode: str) -> None:
        self.stages.mode = mode
        for k, want in enumerate(self.want):
            if k and want.error is not None:
                continue
            before = self.stages.count
            got = self.run(self.compiled, k)
            why = difference(got, want, *bound(self.sample, want))
            sizes = "sizes varying" if self.dynamic else "sizes fixed"
            if why and not self.found:
                self.found.append(
                    f"{self.sample.uid}: {self.sample.text}, {mode}, {sizes}"
                    f"{', at other sizes' * k}: {why}"
                )
            elif k and self.stages.count > before and self.sample.uid in POINTWISE:
                self.found.append(f"{self.sample.uid}: {self.sample.text}: compiled again")


def bound(sample, want):
    """The tolerance of the entry for the least exact dtype involved, and that of gradients."""
    dtypes = [x.dtype for x in sample.tensors] + [facts[0] for facts in want.facts]
    coarse = [8 * torch.finfo(d).eps for d in dtypes if d.is_floating_point or d.is_complex]
    return max(tolerance(sample.uid, d) for d in dtypes), max(coarse, default=0.0)


def fresh(tensors, grads):
    """Arguments that are nobody else's, in the layout of the sample, and the leaves of them."""
    made, leaves = [], []
    for x in tensors:
        y = torch.empty_strided(tuple(x.shape), x.stride(), dtype=x.dtype).copy_(x)
        if grads and is_inexact(x):
            leaves.append(y.requires_grad_())
            y = y * 1 if not x.dtype.is_complex else y.clone()
        made.append(y)
    return made, leaves


def ways(sample):
    """Sizes fixed and varying; fixed alone where one sample has tensors of many dtypes."""
    return (False, True) if len({t.dtype for t in sample.tensors}) < 5 else (False,)


def differences(ops):
    with warnings.catch_warnings(), Batch(), optimised(LEVEL):
        warnings.simplefilter("ignore")
        trials = []
        for op in ops:
            trials += [Compared(s, d) for s in samples(op) for d in ways(s)]
        for mode in ("eager", "aot_eager", "inductor"):
            for t in trials:
                t.check(mode)
        found = [line for t in trials for line in t.found]
        for t in trials:
            t.compiled._flambeau_config.forget()
    return found


CHOSEN = ENTRIES[::STEP]


@pytest.mark.parametrize("shard", range(0, len(CHOSEN), SHARD))
def test_compiled_is_eager(shard):
    found = differences(CHOSEN[shard : shard + SHARD])
    assert not found, "\n".join(found)


@pytest.mark.parametrize("uid", REFUSED)
def test_refusals(uid):
    op = next(op for op in entries() if op.uid == uid)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trials = [Compared(s, False) for s in samples(op)]
    assert any(REFUSED[uid] in str(t.run(t.compiled, 0).error) for t in trials)


def test_errors_that_depend_on_data():
    """An index out of range is an error of compiled code as it is of eager's."""
    x = torch.rand(4, 3)
    f = torch.compile(lambda x, i: x.sin().index_select(0, i) + 1)
    assert torch.allclose(f(x, torch.tensor([1, 3])), x.sin()[[1, 3]] + 1)
    with pytest.raises(IndexError):
        x.index_select(0, torch.tensor([7]))
    with pytest.raises(IndexError):
        f(x, torch.tensor([1, 7]))
    g = torch.compile(lambda x, i: torch.gather(x * 2, 1, i))
    with pytest.raises(RuntimeError):
        g(x, torch.full((4, 1), 5))
