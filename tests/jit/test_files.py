"""Files of scripts: what they hold, other devices and places, what is refused."""

import enum
import io
import math
import os
import subprocess
import sys
import zipfile
from typing import Final, NamedTuple

import pytest

import flambeau as torch
from flambeau import Tensor, nn
from tools import script_mutations


class Mode(enum.Enum):
    UP = 1
    DOWN = -1


class Limits(NamedTuple):
    low: float
    high: float = 1.0


class Counter:
    def __init__(self, start: int):
        self.n = start

    def step(self, by: int) -> int:
        self.n += by
        return self.n


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.same = self.linear
        self.view = nn.Parameter(self.linear.weight.detach()[0])
        self.register_buffer("seen", torch.zeros(1))
        self.register_buffer("short", torch.ones(1), persistent=False)
        self.names: list[str] = ["a"]
        self.table: dict[str, list[int]] = {"a": [1, 2]}
        self.mode = Mode.UP
        self.limits = Limits(0.0, 2.0)
        self.counter = Counter(3)
        self.maybe: int | None = None
        self.scale = 2.0

    def forward(self, x: Tensor) -> Tensor:
        self.seen += 1
        self.names.append("b")
        x = self.same(x) * self.scale * self.counter.step(1)
        if self.mode == Mode.UP:
            x = x.clamp(self.limits.low, self.limits.high)
        self.maybe = self.table["a"][1]
        return x


def test_state_of_every_kind(tmp_path):
    script = torch.jit.script(Model())
    x = torch.rand(2, 3)
    path = tmp_path / "model.pt"
    script.save(path)
    loaded = torch.jit.load(path)
    for _ in range(2):
        assert torch.equal(script(x), loaded(x))
    assert loaded.seen == 2 and loaded.names == ["a", "b", "b"] and loaded.counter.n == 5
    assert loaded.table == {"a": [1, 2]} and loaded.maybe == 2 and loaded.mode.name == "UP"
    assert tuple(loaded.limits) == (0.0, 2.0) and loaded.limits.high == 2.0
    assert loaded.same is loaded.linear
    assert list(loaded.state_dict()) == list(script.state_dict()) and "short" in dict(
        loaded.named_buffers()
    )
    again = torch.jit.load(io.BytesIO(loaded.save_to_buffer()))
    assert torch.equal(again(x), loaded(x))


class Constants(nn.Module):
    __constants__ = ["heads", "names"]
    width: Final[float]

    def __init__(self):
        super().__init__()
        self.heads, self.width, self.names = 3, 0.5, ("a", "b")
        self.calls = torch.jit.Attribute(0, int)
        self.picked = torch.tanh

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return self.picked(x) * self.heads * self.width


def test_constants_are_there_after_loading():
    script = torch.jit.script(Constants())
    loaded = torch.jit.load(io.BytesIO(script.save_to_buffer()))
    for m in (script, loaded, torch.jit.load(io.BytesIO(loaded.save_to_buffer()))):
        assert (m.heads, m.width, m.names) == (3, 0.5, ("a", "b"))
        assert m(torch.ones(1)).item() == pytest.approx(1.5 * math.tanh(1.0))
    assert (script.calls, loaded.calls) == (1, 1)


def test_constants_replace_nothing_of_a_module():
    data = torch.jit.script(Constants()).save_to_buffer()

    def change(state):
        made, out = torch.load(io.BytesIO(state)), io.BytesIO()
        made["objects"][-1]["constants"]["forward"] = 1
        torch.save(made, out)
        return out.getvalue()

    hostile = script_mutations.replaced(data, "state", change)
    with pytest.raises(RuntimeError, match="damaged: constants"):
        torch.jit.load(io.BytesIO(hostile))


def test_runs_without_its_source(tmp_path):
    source = tmp_path / "net.py"
    source.write_text(
        "import flambeau as torch\n"
        "class Net(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.linear = torch.nn.Linear(2, 2)\n"
        "    def forward(self, x):\n"
        "        y = x\n"
        "        for i in range(int(x.sum())):\n"
        "            y = self.linear(y).relu()\n"
        "        return y\n"
        "torch.manual_seed(0)\n"
        "net = Net()\n"
        "torch.jit.save(torch.jit.script(net), 'net.pt')\n"
        "print(net(torch.ones(1, 2)).tolist())\n"
    )
    read = "import flambeau as t; print(t.jit.load('net.pt')(t.ones(1, 2)).tolist())"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    runs = []
    for command in ([str(source)], ["-c", read]):
        done = subprocess.run(
            [sys.executable, *command], cwd=tmp_path, env=env, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        source.unlink(missing_ok=True)
        runs.append(done.stdout)
    assert runs[0] == runs[1]


def test_added_files_streams_and_devices(tmp_path):
    script = torch.jit.script(Model())
    path = tmp_path / "m.pt"
    torch.jit.save(script, path, _extra_files={"note.txt": "first", "raw": b"\0\1"})
    extra = {"note.txt": "", "raw": "", "none": "kept"}
    with open(path, "rb") as stream:
        torch.jit.load(stream, _extra_files=extra)
    assert extra == {"note.txt": b"first", "raw": b"\0\1", "none": "kept"}
    assert torch.jit.load(path, map_location="meta").linear.weight.is_meta
    names = zipfile.ZipFile(path).namelist()
    assert names == ["format.json", "code.txt", "state", "extra/note.txt", "extra/raw"]
    assert b"pickle" not in path.read_bytes()


def test_refusals(tmp_path):
    with pytest.raises(RuntimeError, match="expected a script, got Linear"):
        torch.jit.save(nn.Linear(1, 1), tmp_path / "x")
    with pytest.raises(ValueError, match="does not exist"):
        torch.jit.load(tmp_path / "none")
    with pytest.raises(ValueError, match="is a directory"):
        torch.jit.load(tmp_path)
    torch.save({"a": torch.ones(1)}, tmp_path / "c.pt")
    with pytest.raises(RuntimeError, match=r"torch\.load reads those"):
        torch.jit.load(tmp_path / "c.pt")
    (tmp_path / "t").write_text("text")
    with pytest.raises(RuntimeError, match=r"not a file of jit\.save"):
        torch.jit.load(tmp_path / "t")
    with pytest.raises(TypeError, match="cannot be pickled"):
        torch.save(torch.jit.script(Model()), tmp_path / "y")


def test_damaged_files():
    loaded, refused, mistakes = script_mutations.run(400, 0)
    assert not mistakes, mistakes[0]
    assert loaded > 10 and refused > 100


def test_a_damaged_weight_is_refused(tmp_path):
    path = tmp_path / "m.pt"
    torch.jit.script(torch.nn.Linear(40, 30)).save(path)
    data = bytearray(path.read_bytes())
    weight = torch.jit.load(path).weight.detach().numpy().tobytes()
    data[data.index(weight) + 100] ^= 1
    path.write_bytes(data)
    for given in (path, io.BytesIO(data)):
        with pytest.raises(RuntimeError, match="checksum"):
            torch.jit.load(given)


def test_a_loaded_script_saves_the_same_file(tmp_path):
    path = tmp_path / "m.pt"
    torch.jit.script(Model()).save(path)
    once = torch.jit.load(path)
    once.save(tmp_path / "again.pt")
    first, again = (zipfile.ZipFile(p) for p in (path, tmp_path / "again.pt"))
    assert first.read("code.txt") == again.read("code.txt")
    assert first.testzip() is None and again.testzip() is None


HOSTILE = {
    "a built-in through fork": """
def main.f(%x.0: Tensor) -> Any:
  %1: Future[Any] = core.fork('eval', '__import__("os").getpid()')
  %2: Any = core.wait(%1)
  return(%2)
""",
    "an attribute of a tensor": """
def main.f(%x.0: Tensor) -> Any:
  %1: Any = core.getattr(%x.0, '__class__')
  return(%1)
""",
    "a call of what is no module": """
def main.f(%x.0: Tensor) -> Any:
  %1: Any = core.call_module(%x.0)
  return(%1)
""",
    "an attribute by a false type": """
class main.P(class):
  emitter: Any

def main.f(%x.0: Tensor) -> Any:
  %1: main.P = core.unwrap(%x.0)
  %2: Any = core.getattr(%1, 'emitter')
  return(%2)
""",
    "the insides of scripts": """
class main.P(class):
  _script_record: Any

def main.f(%x.0: main.P) -> Any:
  %1: Any = core.getattr(%x.0, '_script_record')
  return(%1)
""",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_programs_reach_nothing(text):
    @torch.jit.script
    def f(x):
        return x

    entries = zipfile.ZipFile(io.BytesIO(f.save_to_buffer()))
    name = f.qualified_name
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        for entry in entries.namelist():
            data = entries.read(entry)
            if entry == "code.txt":
                data = text.replace("main.f", name).lstrip().encode()
            made.writestr(entry, data)
    with pytest.raises((RuntimeError, TypeError), match="no function of the script|no attribute"
                       "|no module|damaged"):  # fmt: skip
        torch.jit.load(io.BytesIO(out.getvalue()))(torch.ones(1))
