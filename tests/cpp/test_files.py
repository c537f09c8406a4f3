"""Files of C++ and of Python: each reads what the other wrote, and training goes on, to the bit."""

from __future__ import annotations

import io
import random
from typing import Any

import pytest

import flambeau as torch
from flambeau import nn
from tests.cpp.conftest import program
from tests.cpp.test_script_files import Net as Script
from tests.cpp.test_script_files import hexed, run, scaled


class Net(nn.Module):
    """The module of programs/files.cpp."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 4)
        self.norm = nn.BatchNorm1d(4)
        self.drop = nn.Dropout(0.0)
        self.head = nn.Sequential(nn.Linear(4, 2))
        self.scale = nn.Parameter(torch.ones(1))
        self.register_buffer("shift", torch.full((1,), 0.5))

    def forward(self, x: Any) -> Any:
        return self.head(self.drop(self.norm(self.fc(x)).tanh())) * self.scale + self.shift


@pytest.fixture(scope="module")
def binary(build_program):
    return build_program(program("files"))


def lines(binary, folder, what):
    done = run(binary, str(folder), what)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout.splitlines()


def steps(net, optimizer, n):
    torch.manual_seed(3)
    x, y = torch.randn(6, 3), torch.randn(6, 2)
    losses = []
    for _ in range(n):
        optimizer.zero_grad()
        out = net(x)
        loss = nn.functional.mse_loss(out[0] if isinstance(out, tuple) else out, y)
        loss.backward()
        optimizer.step()
        losses.append(hexed(loss))
    return losses


def test_tensors_and_values(binary, tmp_path):
    torch.save(
        {"a": [torch.ones(1), 2], "b": (None, -1.5), 3: [True, False]}, tmp_path / "python.pt"
    )
    out = "\n".join(lines(binary, tmp_path, "values"))
    assert out.startswith("[1, 4]66\n51torch.bfloat16[0]tensor([0, 1, 2], dtype=torch.uint16)\n1\n")
    assert out.endswith("{'a': [tensor([1.]), 2], 'b': (None, -1.5), 3: [True, False]}")

    wide = torch.arange(12, dtype=torch.float64).view(3, 4)
    tensor = torch.load(tmp_path / "tensor.pt")
    assert torch.equal(tensor, wide.t()) and tensor.stride() == (1, 4)
    several = torch.load(tmp_path / "several.pt")
    assert [x.dtype for x in several[2:]] == [torch.bfloat16, torch.float32, torch.uint16]
    several[0][1, 0] = 50  # memory that was shared is
    assert float(several[1][0]) == 50 and several[3].numel() == 0
    value = torch.load(tmp_path / "value.pt")
    assert value["tensor"] is value["again"] and torch.equal(value["tensor"], wide)
    del value["tensor"], value["again"]
    assert value == {
        "n": 3, "x": 2.5, "on": True, "none": None, "name": "a name",
        "sizes": [1, -2, 70000, 1 << 40], "z": 1 + 2j, "dtype": torch.float16,
        "device": torch.device("cpu"), "both": (1, "b"), 7: [],
    }  # fmt: skip


def test_archives_and_what_they_refuse(binary, tmp_path):
    torch.save({"weight": torch.ones(4, 2), "bias": torch.ones(4)}, tmp_path / "other.pt")
    torch.save(Net(), tmp_path / "object.pt")
    adam = torch.optim.Adam([nn.Parameter(torch.ones(1))])
    torch.save(adam.state_dict(), tmp_path / "adam.pt")
    found = lines(binary, tmp_path, "archives")
    assert found[0] == "tensor([1., 1.])40200"
    for line, said in zip(
        found[1:],
        (
            "No such serialized tensor 'net'", "No such serialized tensor 'net.bias'",
            "No such serialized submodule: 'child'", "value 'lr' already defined",
            "load: cannot open", "No such serialized value '0'", "Parent directory",
            "is a folder", "not a readable zip archive", "not a readable zip archive",
            "which is not read here", "No such serialized tensor 'scale'",
            "Error(s) in loading Linear: size mismatch for weight: the file has [4, 2], the module "
            "has [4, 3]", "No such serialized value 'param_groups'",
            "load: group 0 of the file has 1 parameters, that of the optimizer has 7",
        ),
        strict=True,
    ):  # fmt: skip
        assert said in line, (said, line)
    assert torch.load(tmp_path / "archive.pt")["net.epoch"] == 4


OPTIMISERS = {
    "sgd": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    "adam": (torch.optim.Adam, {"lr": 0.05, "amsgrad": True}),
    "adamw": (torch.optim.AdamW, {"lr": 0.05, "betas": (0.8, 0.9)}),
    "rmsprop": (torch.optim.RMSprop, {"lr": 0.02, "centered": True, "momentum": 0.5}),
    "adagrad": (torch.optim.Adagrad, {"lr": 0.1, "lr_decay": 0.01}),
}


def test_training_goes_on_in_the_other_language(binary, tmp_path):
    torch.manual_seed(7)
    start = Net()
    torch.save(start.state_dict(), tmp_path / "start.pt")
    wanted = []
    for name, (cls, options) in OPTIMISERS.items():
        net = Net()
        net.load_state_dict(start.state_dict())
        optimizer = cls(net.parameters(), **options)
        wanted += [steps(net, optimizer, 5), steps(net, optimizer, 5)]
        torch.save(net.state_dict(), tmp_path / f"{name}_python_net.pt")
        torch.save(optimizer.state_dict(), tmp_path / f"{name}_python.pt")
        wanted += [wanted[-1], steps(net, optimizer, 5)]
    found = [line.split() for line in lines(binary, tmp_path, "train")]
    assert len(found) == len(wanted)
    for i, (f, w) in enumerate(zip(found, wanted, strict=True)):
        assert f == w, (i, f, w)
    # And from C++ to Python.
    for i, (name, (cls, _)) in enumerate(OPTIMISERS.items()):
        net = Net()
        net.load_state_dict(torch.load(tmp_path / f"{name}_net.pt"))
        optimizer = cls(net.parameters(), lr=0.7)
        optimizer.load_state_dict(torch.load(tmp_path / f"{name}.pt"))
        assert steps(net, optimizer, 5) == wanted[4 * i + 1], name


def test_a_script_is_trained_in_cpp_saved_and_trained_on_in_python(binary, tmp_path):
    torch.manual_seed(0)
    net = torch.jit.script(Script())
    net.save(tmp_path / "net.pt")
    torch.jit.script(scaled).save(tmp_path / "function.pt")
    wanted = steps(net, torch.optim.SGD(net.parameters(), lr=0.05), 10)
    found = lines(binary, tmp_path, "script")
    assert found[0].split() == wanted
    assert found[1:5] == ["ten stepsas it was3.5[5]", "1", "tensor([3., 3.])",
                          "jit::save: the module was not loaded"]  # fmt: skip
    assert "Parent directory" in found[5]
    extra = {"notes": ""}
    trained = torch.jit.load(tmp_path / "trained.pt", _extra_files=extra)
    assert extra["notes"] in ("ten steps", b"ten steps")
    assert (trained.k, trained.seen, trained.names) == (3.5, [5], ["a", "b"])
    trained.k = 2.5
    for (n, p), (m, q) in zip(trained.named_parameters(), net.named_parameters(), strict=True):
        assert n == m and torch.equal(p, q) and isinstance(p, nn.Parameter), n
    optimizer = torch.optim.SGD(trained.parameters(), lr=0.05)
    assert steps(trained, optimizer, 5) == steps(net, torch.optim.SGD(net.parameters(), lr=0.05), 5)
    assert not torch.jit.load(tmp_path / "eval.pt").training
    part = torch.jit.load(tmp_path / "part.pt")
    assert part(torch.ones(1, 3)).shape == (1, 4)


def test_damaged_files_end_in_errors(build_program, tmp_path):
    source = r"""
#include <torch/torch.h>
int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    try {
      torch::serialize::InputArchive archive;
      archive.load_from(std::string(argv[i]));
      std::ostringstream text;
      text << archive.value();
      std::cout << "read\n";
    } catch (const std::exception& e) {
      std::cout << "error\n";
    }
  }
}
"""
    binary = build_program(source)
    stream = io.BytesIO()
    torch.save({"a": [torch.ones(2, 3), 2], "b": {"c": (1.5, "text", None)}, "n": [1, 2]}, stream)
    data = stream.getvalue()
    rng = random.Random(4)
    paths = []
    for i in range(600):
        at = rng.randrange(len(data))
        changed = bytearray(data)
        if i % 3 == 0:
            changed[at] ^= 1 << rng.randrange(8)
        elif i % 3 == 1:
            del changed[at : at + rng.randrange(1, 40)]
        else:
            del changed[at:]
        path = tmp_path / f"{i}.pt"
        path.write_bytes(bytes(changed))
        paths.append(str(path))
    done = run(binary, *paths)
    assert done.returncode == 0 and len(done.stdout.split()) == 600, done.stderr[-500:]
    assert done.stdout.count("error") > 300
