"""Every module of `flambeau.nn` in a script: on the machine, in files, in C++, equal to eager.

`nn_modules.txt` names those that run on Python, each with its reason; it can only get shorter.
"""

import copy
import io
import os
import subprocess
import warnings
from pathlib import Path

import pytest

import flambeau as torch
from flambeau import nn
from tests.cpp.conftest import build_program, program  # noqa: F401  (a fixture)

from .nn_modules import CASES, MODULES, made
from .test_machine import tensors

ON_PYTHON = dict(
    line.split(": ", 1)
    for line in Path(__file__).with_name("nn_modules.txt").read_text().splitlines() if line
)  # fmt: skip
ids = [f"{name}({text})" for name, text, _ in CASES]


class Holds(nn.Module):
    """A module and what its forward is given."""

    def __init__(self, module, args):
        super().__init__()
        self.module, self.args = module, args

    def forward(self):
        return self.module(*self.args)


def results(m):
    """Values and gradients."""
    torch.manual_seed(1)
    out = tensors(m())
    for p in m.parameters():
        p.grad = None
    found = [x for x in out if x.requires_grad]
    if found:
        _summed(found).backward()
    return out, [p.grad for p in m.parameters()]


def _summed(xs):
    total = xs[0].sum()
    for x in xs[1:]:
        total = total + x.sum()
    return total


def held(name, text, given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module, args = made(name, text, given)
    return Holds(module, args)


def on_python(script):
    """Why parts of a script run as Python."""
    program = script._script_program
    unit = program.unit
    found = [c.name for c in unit.classes.values() if c.kind == "library"]
    reasons = {n: why for n in unit.functions if (why := program.machine.reason(n)) is not None}
    return found, reasons


def equal(a, b):
    return len(a) == len(b) and all(
        x is y or (x is not None and y is not None and torch.equal(x, y) and x.dtype == y.dtype)
        for x, y in zip(a, b, strict=True)
    )


def test_the_list_is_whole():
    public = {n for n in dir(nn) if isinstance(getattr(nn, n), type)}
    modules = {n for n in public if issubclass(getattr(nn, n), nn.Module)}
    assert modules == set(MODULES)
    assert set(ON_PYTHON) <= modules


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "text", "given"), CASES, ids=ids)
def test_modules(name, text, given):
    eager = held(name, text, given)
    script = torch.jit.script(copy.deepcopy(eager))
    found, reasons = on_python(script)
    assert (bool(found) or bool(reasons)) == (name in ON_PYTHON), (found, reasons)
    loaded = torch.jit.load(io.BytesIO(script.save_to_buffer()))
    want = results(eager)
    for m in (script, loaded):
        values, gradients = results(m)
        assert equal(values, want[0]) and equal(gradients, want[1])
    eager.eval()
    for m in (script, loaded):
        m.eval()
        assert equal(results(m)[0], results(eager)[0])


@pytest.mark.filterwarnings("ignore")
def test_modules_in_cpp(build_program, tmp_path):  # noqa: F811
    paths, wanted = [], []
    cases = [c for c in CASES if c[0] not in ON_PYTHON]
    for i, case in enumerate(cases):
        m = held(*case)
        paths.append(str(tmp_path / f"{i}.pt"))
        torch.jit.script(copy.deepcopy(m)).save(paths[-1])
        values, gradients = results(m)
        texts = ["values", *map(_hexed, values), "gradients", *map(_hexed, gradients)]
        wanted.append(" ".join(texts))
    binary = build_program(program("script_modules"))
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    done = subprocess.run(
        [binary, *paths], capture_output=True, text=True, check=False, env=environment, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    got = done.stdout.splitlines()
    wrong = [f"{c[0]}({c[1]}): {g[:300]}" for c, w, g in zip(cases, wanted, got, strict=True)
             if g != w]  # fmt: skip
    assert not wrong, "\n".join(wrong)


def _hexed(x):
    return "none" if x is None else x.detach().contiguous().numpy().tobytes().hex()


def test_packed_sequences_come_back_as_such():
    torch.manual_seed(0)
    m = nn.LSTM(4, 5, bidirectional=True)
    x = nn.utils.rnn.pack_padded_sequence(torch.randn(4, 3, 4), [2, 4, 3], enforce_sorted=False)
    script = torch.jit.script(m)
    loaded = torch.jit.load(io.BytesIO(script.save_to_buffer()))
    want, (h, c) = m(x)
    for f in (script, loaded):
        got, state = f(x)
        assert type(got) is nn.utils.rnn.PackedSequence
        assert equal(tensors((got, state)), tensors((want, (h, c))))
        padded, lengths = nn.utils.rnn.pad_packed_sequence(got)
        assert lengths.tolist() == [2, 4, 3] and padded.shape == (4, 3, 10)
