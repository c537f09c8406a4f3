"""Programs as users of PyTorch's C++ front end write them compile as they are and print "
"what is known."""

from __future__ import annotations

import subprocess
from typing import Optional

import numpy as np
import pytest

import flambeau as torch
from tests.cpp.conftest import PROGRAMS, program

KNOWN = PROGRAMS / "known"


@pytest.mark.parametrize(
    "name", ["own_dataset", "custom_functions", "residual", "tensors", "kernels", "names"]
)
def test_programs_print_what_is_known(run_program, name):
    assert run_program(program(name), "-w", "-pthread") == (KNOWN / f"{name}.txt").read_text()


def run(binary, *args) -> str:
    done = subprocess.run(
        [binary, *map(str, args)], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def test_groups_of_parameters(build_program, tmp_path):
    out = run(build_program(program("parameter_groups"), "-w"), tmp_path)
    assert out == (KNOWN / "parameter_groups.txt").read_text()
    saved = torch.load(tmp_path / "opt.pt")
    group = saved["param_groups"][0]
    assert group["momentum"] == 0.9 and group["lr"] == pytest.approx(0.0005)


class Values(torch.nn.Module):
    """The script of programs/script_values.cpp."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)
        self.scale = 2.0
        self.register_buffer("buf", torch.zeros(1))

    def forward(self, x):
        return self.linear(x) * self.scale, x

    @torch.jit.export
    def dicts(self, d: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {"sum": d["x"] + d["y"]}

    @torch.jit.export
    def lists(self, l: list[torch.Tensor], n: int) -> list[torch.Tensor]:  # noqa: E741
        return [t * n for t in l]

    @torch.jit.export
    def tup(self, t: tuple[torch.Tensor, int]) -> tuple[torch.Tensor, int]:
        return t[0] + 1, t[1] + 1

    @torch.jit.export
    def ints(self, l: list[int]) -> list[int]:  # noqa: E741
        return [i * 2 for i in l]

    @torch.jit.export
    def opt(self, x: Optional[torch.Tensor]) -> Optional[torch.Tensor]:  # noqa: UP045
        return x

    @torch.jit.export
    def text(self, s: str, f: float, b: bool) -> str:
        return s + str(f) + str(b)

    @torch.jit.export
    def sdict(self, d: dict[str, int]) -> int:
        return d["a"]


def test_values_of_scripts(build_program, tmp_path):
    file = tmp_path / "values.pt"
    torch.jit.save(torch.jit.script(Values()), file, _extra_files={"note.txt": "a note"})
    out = run(build_program(program("script_values"), "-w"), file)
    assert out == (KNOWN / "script_values.txt").read_text()
    assert torch.jit.load(f"{file}.saved").scale == 4.0


def test_operators_of_the_tutorial(tmp_path, monkeypatch):
    pytest.importorskip("pybind11")
    from flambeau._library.operators import Ops
    from flambeau.utils import cpp_extension

    monkeypatch.setenv("FLAMBEAU_EXTENSIONS_DIR", str(tmp_path))
    module = cpp_extension.load("tutorial", [str(PROGRAMS / "tutorial_operators.cpp")])
    ops = Ops(lambda name: None).extension_cpp
    a, b = torch.randn(3), torch.randn(3)
    x, y = a.numpy(), b.numpy()
    np.testing.assert_array_equal(ops.mymuladd(a, b, 1.0).numpy(), x * y + np.float32(1))
    np.testing.assert_array_equal(ops.via(a, b).numpy(), x * y + np.float32(1))
    out = torch.empty(3)
    ops.myadd_out(a, b, out)
    np.testing.assert_array_equal(out.numpy(), x + y)
    total, parts = ops.many([a, b], [0], None, 2, "mean", f=[1.0, 2.0])
    np.testing.assert_allclose(float(total), (x.sum() + 2) / 2, rtol=1e-6)
    assert [torch.equal(p, q) for p, q in zip(parts, (a, b), strict=True)] == [True, True]
    np.testing.assert_array_equal(ops.scalar(a, 2).numpy(), x * 2)
    np.testing.assert_array_equal(ops.short(a, 3).numpy(), x + 3)
    with pytest.raises(RuntimeError, match="Could not find schema for extension_cpp::nothing"):
        ops.missing(a)
    with pytest.raises(
        TypeError, match="expected a signature of 3 arguments and 1 results, got one of 2 and 1"
    ):
        ops.misread(a)
    assert (module.opt(), module.opt(a)) == (False, True)
    assert module.dev(torch.device("cpu"), torch.float64).dtype is torch.float64
    assert (module.obj(a), module.obj(3)) == ([3], [])
    assert torch.equal(module.wrap(a), a) and torch.equal(module.nogil(a), a + 1)
    ones = torch.ones
    assert len(module.forward(ones(2, 3), ones(12, 7), ones(12), ones(2, 4), ones(2, 4))) == 7
    w = torch.randn(3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(ops.doubled, w)
