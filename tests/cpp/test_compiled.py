"""Compiled functions as files, run in C++ without Python: what Python's loader gives, to the bit."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

import flambeau as torch
from flambeau import Tensor, nn
from flambeau._inductor import aoti_compile_and_package, aoti_load_package
from tests.cpp.conftest import program


def flat(x: Any) -> list[Tensor]:
    return [x] if isinstance(x, Tensor) else [t for i in x for t in flat(i)]


class Convolutional(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
            nn.Linear(8 * 7 * 7, 5),
        )  # fmt: skip

    def forward(self, x: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        y = self.body(x)
        return y, (torch.topk(y, 2)[0], y.masked_fill(y < 0, float("-inf")).softmax(-1))


CASES: dict[str, tuple[Any, tuple[Tensor, ...]]] = {
    "convolutions": (Convolutional().eval(), (torch.randn(2, 3, 16, 16),)),
    "entries alone": (lambda a, b: (a.cumsum(0), torch.searchsorted(b, a)), (
        torch.randn(4, 4, dtype=torch.float64), torch.arange(4, dtype=torch.float64),
    )),
    "dtypes": (lambda a, b, c: (a.to(torch.bfloat16) + b, c * 1j, a.long() // 3, ~(a > b)), (
        torch.randn(5), torch.randn(5, dtype=torch.float16), torch.randn(5, dtype=torch.complex64)
    )),
    "an input and a view of it": (lambda a: (a, a[1:], a.t().reshape(-1)), (torch.randn(3, 4),)),
    "an index": (nn.Embedding(10, 4).eval(), (torch.tensor([[1, 2], [9, 0]]),)),
}  # fmt: skip


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    folder = tmp_path_factory.mktemp("packages")
    made = {}
    for i, (name, (f, inputs)) in enumerate(CASES.items()):
        package, data = folder / f"{i}.pt2", folder / f"{i}.pt"
        assert aoti_compile_and_package(f, inputs, package_path=package) == str(package)
        got = aoti_load_package(package)(*inputs)
        with torch.no_grad():
            want = f(*inputs)
        for a, b in zip(flat(got), flat(want), strict=True):
            assert a.dtype == b.dtype and a.stride() == b.stride()
            assert torch.allclose(a, b, rtol=1e-5, atol=1e-6), name
        torch.save({"inputs": list(inputs), "expected": flat(got)}, data)
        made[name] = package, data
    return made


def test_cpp_runs_what_python_compiled(
    build_program: Any, packages: dict[str, tuple[Path, Path]]
) -> None:
    built = build_program(program("compiled"), "-pthread")
    linked = subprocess.run(["ldd", built], capture_output=True, text=True, check=True).stdout
    assert "libflambeau" in linked and "libpython" not in linked
    names = [str(path) for pair in packages.values() for path in pair]
    # Without a compiler, and without a cache.
    environment = {"PATH": "/nonexistent", "HOME": "/nonexistent"}
    said = subprocess.run(
        [built, *names], capture_output=True, text=True, check=True, env=environment
    ).stdout
    sizes = [3, 2, 4, 3, 1]
    assert said.splitlines() == [
        f"results {n} equal 1 of version {torch.__version__}" for n in sizes
    ]


def test_cpp_refuses_other_files_and_other_inputs(
    build_program: Any, packages: dict[str, tuple[Path, Path]], tmp_path: Path
) -> None:
    package, data = packages["an index"]
    whole = torch.load(package)
    alone = {**whole, "constants": []}
    changed = {
        "none": None,
        "format": {**whole, "format": "a checkpoint"},
        "version": {**whole, "version": "0.0.1"},
        "processor": {**whole, "processor": "avx512fp99"},
        "library": {**whole, "library": torch.zeros(64, dtype=torch.uint8)},
        "text": {**whole, "program": whole["program"][:-3]},
        "buffer": {**alone, "program": "[[[],[],[]],[],[7777],[],[]]"},
        "short": {**alone, "program": "[[[],[],[]]]"},
        "entry": {**alone, "program": '[[[],[],[]],[],[],[[4,"no_such",[],[],[],0,0]],[]]'},
        "kind": {**alone, "program": '[[[],[],[]],[],[],[[77,0]],[]]'},
        "constants": {**whole, "constants": []},
    }
    names = []
    for name, held in changed.items():
        path = tmp_path / f"{name}.pt2"
        if held is not None:
            torch.save(held, path)
        names += [str(path), str(data)]
    other = tmp_path / "other.pt"
    torch.save({"inputs": [torch.zeros(3, dtype=torch.int64)], "expected": [torch.zeros(1)]}, other)
    names += [str(package), str(other)]
    damaged = tmp_path / "damaged.pt2"
    damaged.write_bytes(package.read_bytes()[:2000])
    names += [str(damaged), str(data)]
    done = subprocess.run(
        [build_program(program("compiled"), "-pthread"), *names],
        capture_output=True, text=True, check=True, env={**os.environ, "LD_PRELOAD": ""},
    )  # fmt: skip
    said = [line.rpartition(".pt2: ")[2] for line in done.stdout.splitlines()]
    expected = [
        "No such file", "it is no compiled function", "it was compiled by Flambeau 0.0.1",
        "processor with avx512fp99, which this one lacks", "ELF header", "a list does not end",
        "there is no buffer 7777", "a longer list", "the table has no entry no_such",
        "there is no kind of step 77", "expected 2 inputs, got 1",
        "compiled function: expected input 0 of shape [2, 2]", "load: ",
    ]  # fmt: skip
    assert len(said) == len(expected)
    for line, part in zip(said, expected, strict=True):
        assert part in line, (line, part)


def test_python_refuses_what_it_cannot_compile(tmp_path: Path) -> None:
    x, path = torch.ones(2, 3), tmp_path / "f.pt2"
    compiled = aoti_compile_and_package
    with pytest.raises(ValueError, match="ends in .pt2"):
        compiled(lambda a: a, (x,), package_path=tmp_path / "f.so")
    with pytest.raises(TypeError, match="a tensor as input 1, got int"):
        compiled(lambda a, n: a * n, (x, 2), package_path=path)
    with pytest.raises(TypeError, match="tensors, and tuples of them, as results, got dict"):
        compiled(lambda a: {"a": a}, (x,), package_path=path)
    with pytest.raises(NotImplementedError, match="changes its inputs"):
        compiled(nn.BatchNorm1d(3), (x,), package_path=path)
    with pytest.raises(RuntimeError):
        compiled(lambda a: a if a.sum() > 0 else -a, (x,), package_path=path)
    with pytest.raises(ValueError, match="got 'max_autotune'"):
        compiled(lambda a: a, (x,), package_path=path, inductor_configs={"max_autotune": True})
    assert not path.exists()


def test_python_loads_by_names_and_refuses_other_files(tmp_path: Path) -> None:
    path = tmp_path / "f.pt2"
    x, y = torch.arange(3.0), torch.full((3,), 2.0)
    aoti_compile_and_package(lambda a, *, b: a - b, (x,), {"b": y}, package_path=path)
    loaded = aoti_load_package(path)
    assert loaded(x, b=y).tolist() == loaded(x, y).tolist() == [-2.0, -1.0, 0.0]
    with pytest.raises(TypeError, match="by the names b, got c"):
        loaded(x, c=y)
    with pytest.raises(TypeError, match="expected 2 inputs, got 1"):
        loaded(x)
    with pytest.raises(RuntimeError, match="expected input 0 of shape"):
        loaded(torch.ones(4), y)
    held = torch.load(path)
    for change, said in (
        ({"format": "x"}, "no compiled function"),
        ({"version": "9"}, "compile it again"),
        ({"processor": "avx9"}, "avx9, which this one lacks"),
    ):
        torch.save({**held, **change}, path)
        with pytest.raises(RuntimeError, match=said):
            aoti_load_package(path)
    del held["program"]
    torch.save(held, path)
    with pytest.raises(RuntimeError, match="lacks program"):
        aoti_load_package(path)


def test_libraries_of_several_files_are_apart(tmp_path: Path) -> None:
    """The dynamic linker takes libraries of one name for one."""
    x = torch.arange(6.0)
    loaded = []
    for k in range(5):
        path = tmp_path / f"{k}.pt2"
        aoti_compile_and_package(lambda a, k=k: a * (k + 2) + k, (x,), package_path=path)
        loaded.append(aoti_load_package(path))
        if k == 2:
            del loaded[1]
    assert [f(x)[1].item() for f in loaded] == [2.0, 6.0, 8.0, 10.0]
