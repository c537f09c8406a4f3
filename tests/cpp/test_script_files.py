"""Files of `jit.save` in C++: loaded, run and trained without Python, values to the bit."""

from __future__ import annotations

import os
import random
import subprocess
from typing import List, Tuple  # noqa: UP035  (as scripts are written)

import pytest

import flambeau as torch
from flambeau import Tensor, nn
from tests.cpp.conftest import program


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 4)
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 2)])
        self.register_buffer("shift", torch.full((2,), 0.25))
        self.k = 2.5
        self.names = ["a", "b"]
        self.seen: List[int] = []  # noqa: UP006

    def forward(self, x: Tensor) -> Tuple[Tensor, int]:  # noqa: UP006
        y = torch.tanh(self.fc(x)) * self.k
        for layer in self.layers:
            y = layer(y)
        if self.training:
            y = y + self.shift
        return y, len(self.names)

    @torch.jit.export
    def counted(self, n: int = 2) -> int:
        self.seen.append(n)
        return len(self.seen) * n


def scaled(x: Tensor, n: int) -> Tensor:
    total = torch.zeros_like(x)
    for i in range(n):
        total = total + x * i
    return total


def hexed(x: Tensor) -> str:
    return x.detach().contiguous().numpy().tobytes().hex()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("scripts")
    torch.manual_seed(0)
    torch.jit.script(Net()).save(path / "net.pt")
    torch.jit.script(scaled).save(path / "function.pt")
    torch.save({"a": torch.ones(1)}, path / "checkpoint.pt")
    torch.jit.script(nn.Sequential(nn.SyncBatchNorm(2))).save(path / "library.pt")
    data = (path / "net.pt").read_bytes()
    (path / "damaged.pt").write_bytes(data[: len(data) // 2] + data[len(data) // 2 + 9 :])
    return path


def run(binary, *args):
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    return subprocess.run(
        [binary, *args], capture_output=True, text=True, check=False, env=environment, timeout=300
    )


def test_a_saved_model_is_loaded_run_and_trained(build_program, folder):
    binary = build_program(program("scripts"))
    done = run(binary, str(folder))
    assert (done.returncode, done.stderr) == (0, ""), done
    lines = done.stdout.splitlines()

    net = torch.jit.load(folder / "net.pt")
    head = "".join(f"{n}[{', '.join(map(str, p.shape))}] " for n, p in net.named_parameters())
    assert lines[0] == f"{head}shift fc layers 12.5['a', 'b']0"
    torch.manual_seed(3)
    x, y = torch.randn(6, 3), torch.randn(6, 2)
    assert lines[1] == hexed(net(x)[0]) + "2"
    net.eval()
    assert lines[2] == hexed(net(x)[0]) + "0"
    net.train()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x)[0], y)
        loss.backward()
        optimizer.step()
        losses.append(hexed(loss))
    assert lines[3].split() == losses
    parameters = [f"{n} {hexed(p)}" for n, p in net.named_parameters()]
    assert lines[4 : 4 + len(parameters)] == parameters
    rest = lines[4 + len(parameters) :]
    assert rest[:4] == ["34", "2", "5[4, 3]", "tensor([3., 3.])"]

    texts = "\n".join(rest[4:])
    for said in (
        "has no method 'nothing'", "has no attribute 'nothing'", ".k must be float, not Tensor",
        "missing required argument: 'x'", "expected at most 1 arguments, got 3",
        "mat1 and mat2 shapes cannot be multiplied", "line 2", "cannot open", "format.json",
        "runs in Python alone", "jit::load: ",
    ):  # fmt: skip
        assert said in texts, (said, texts)


def test_damaged_files_end_in_errors(build_program, folder, tmp_path):
    """A byte changed, a piece left out, the end cut off: an error or the same result."""
    source = r"""
#include <torch/script.h>
int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    try {
      auto net = torch::jit::load(argv[i]);
      net.forward({torch::ones({1, 3})});
      std::cout << "ran\n";
    } catch (const std::exception& e) {
      std::cout << "error\n";
    }
  }
}
"""
    binary = build_program(source)
    data = (folder / "net.pt").read_bytes()
    rng = random.Random(4)
    paths = []
    for i in range(300):
        at = rng.randrange(len(data))
        changed = bytearray(data)
        kind = i % 3
        if kind == 0:
            changed[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del changed[at : at + rng.randrange(1, 40)]
        else:
            del changed[at:]
        path = tmp_path / f"{i}.pt"
        path.write_bytes(bytes(changed))
        paths.append(str(path))
    done = run(binary, *paths)
    assert done.returncode == 0 and len(done.stdout.split()) == 300, done.stderr[-500:]
    assert done.stdout.count("error") > 150


def of_data(n: int, xs: List[float]) -> Tensor:  # noqa: UP006
    grid = torch.tensor([[n, 2], [3, 4]], dtype=torch.float32)
    return grid @ torch.tensor(xs) + torch.tensor([0.5, 1.5])


def test_tensors_are_made_of_data_without_python(run_program, tmp_path):
    torch.jit.script(of_data).save(tmp_path / "data.pt")
    source = r"""
#include <torch/script.h>
int main() {
  auto made = torch::jit::load("PATH");
  std::cout << made.forward({7, std::vector<double>{1.0, -2.0}}).toTensor() << '\n';
  try {
    made.forward({7, std::vector<double>{1.0}});
  } catch (const c10::Error& e) {
    std::cout << "refused\n";
  }
}
""".replace("PATH", str(tmp_path / "data.pt"))
    assert run_program(source).splitlines() == [str(of_data(7, [1.0, -2.0])), "refused"]
