"""Random functions, entries of the table and modules, differentiated in every nesting of two ways;
`make truth` takes all entries, and thousands of random functions.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

import pytest

import flambeau as torch
from tools._derivative_check import Checked, layouts
from tools._derivative_draw import generate
from tools.derivative_programs import checked, judged, script, shrunk

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "compiler"))
from table_samples import documented, entries  # noqa: E402

STEP = 1 if os.environ.get("TRUTH") == "all" else 12
ENTRIES = [op for op in entries() if op.option("differentiable", True)]
KNOWN = {
    line.split(" - ")[0]: line.split(" - ")[1]
    for line in Path(__file__).with_name("derivatives_known.txt").read_text().splitlines()
    if line and not line.startswith("#")
}


@pytest.mark.parametrize("part", range(4))
def test_random_functions(part):
    programs = [generate(k) for k in range(40 * part, 40 * (part + 1))]
    found = [(p, judged(p)) for p in programs]
    failed = [script(p, why) for p, why in found if why and not why.startswith("program:")]
    assert not failed, "\n".join(failed)
    assert sum(why.startswith("program:") for _, why in found) < 8


def test_programs_are_the_same_every_time():
    assert generate(7).text() == generate(7).text()


def as_real(x):
    return torch.view_as_real(x) if x.is_complex() else x


def entry_failure(sample):
    """What is wrong with the derivatives of a sample, at a point near its own."""
    torch.manual_seed(0)
    inexact = [x.is_floating_point() or x.is_complex() for x in sample.tensors]
    kinds = [x.is_complex() for x in sample.tensors]
    xs = [
        as_real(x.to(torch.complex128 if x.is_complex() else torch.float64)).clone()
        for x, varies in zip(sample.tensors, inexact, strict=True)
        if varies
    ]
    xs = [x + 0.03 * torch.rand_like(x) for x in xs]
    vs = [layouts(torch.randn_like(x), k % 4) for k, x in enumerate(xs)]

    def f(*given):
        rest, args = iter(given), []
        for x, varies, is_complex in zip(sample.tensors, inexact, kinds, strict=True):
            y = next(rest) if varies else x.clone()
            args.append(torch.view_as_complex(y) if is_complex else y)
        torch.manual_seed(1)
        return sample.function(*args)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Checked(f, xs, vs, compiled=True).failure() if xs else ""


@pytest.mark.parametrize("op", ENTRIES[::STEP], ids=lambda op: op.uid)
def test_entries(op):
    for sample in documented(op):
        why = entry_failure(sample)
        if why.startswith("program:"):
            continue
        if op.uid in KNOWN:
            assert why, f"{op.uid} agrees now: take it off the list"
            return
        assert not why, f"{sample.text}: {why}"


def flat(x):
    """The sine with its first derivative, which counts as a constant."""
    return x.sin().detach() + (x - x.detach()) * x.cos().detach()


def test_a_difference_is_found_and_made_smaller(monkeypatch):
    x, v = torch.tensor([0.3, 1.1]).double(), torch.tensor([1.0, -0.5]).double()
    assert not Checked(torch.sin, [x], [v]).failure()
    assert Checked(lambda x: x * x.detach(), [x], [v]).failure().startswith("backward: differs")
    assert Checked(flat, [x], [v]).failure().startswith("jvp of grad: differs")
    monkeypatch.setattr(torch, "atan", flat)
    programs = (generate(k) for k in range(1000, 1300))
    program = next(p for p in programs if "torch.atan(" in p.text() and judged(p))
    why = judged(program)
    small = shrunk(program, why)
    assert "torch.atan(" in small.text() and len(small.lines) <= 3
    assert checked(small.text(), small.shapes, small.seed)
