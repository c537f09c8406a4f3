"""Classes of C++ (torch::class_): in Python, scripts, traces, files, and without Python."""

from __future__ import annotations

import copy
import io
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

import flambeau as torch
from flambeau import classes
from flambeau.utils import cpp_extension
from tests.cpp.conftest import PROGRAMS, program

pytest.importorskip("pybind11")
SPACE = "cpptest_classes"


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLAMBEAU_EXTENSIONS_DIR", str(tmp_path_factory.mktemp("extensions")))
        source = str(PROGRAMS / "custom_classes.cpp")
        path = cpp_extension.load(SPACE, [source], is_python_module=False)
        classes.load_library(path)
        return path


@pytest.fixture(scope="module")
def ours(library):
    return getattr(classes, SPACE)


@pytest.fixture(scope="module")
def ops(library):
    from flambeau._library.operators import registry

    return getattr(registry(), SPACE)


def test_objects_have_their_methods(ours):
    s = ours.Texts(["foo", "bar"])
    assert isinstance(s, torch.ScriptObject) and isinstance(s, ours.Texts)
    s.push("last")
    assert s.top() == s.pop() == "last" and len(s) == 2 == s.count
    s.mark = 7
    assert s.mark == 7
    other = s.clone()
    s.merge(other)
    assert [s.pop() for _ in range(4)] == ["bar", "foo", "bar", "foo"] and len(other) == 2
    assert ours.Texts.of(3).pop() == "x"
    assert ours.Texts.__doc__ == "A stack of texts." and ours.Texts.pop.__doc__ == "Takes the last."
    assert ours.Texts.count.__doc__ == "How many there are."
    assert dir(ours) == ["Bare", "Plain", "Scale", "Texts"] and s != other and s == s
    assert repr(s).startswith(f"<torch.ScriptObject __torch__.torch.classes.{SPACE}.Texts at ")
    assert isinstance(ours.Plain(3), torch.ScriptObject)


def test_arguments_have_names_and_any_type(ours):
    c = ours.Scale(torch.ones(2, requires_grad=True), calls=5)
    assert ours.Scale(torch.ones(2)).calls == 0
    c.apply(x=torch.tensor([2.0, 3.0])).sum().backward()
    assert c.weight.grad.tolist() == [2, 3] and c.calls == 6
    n, weight = c.both()
    assert n == 6 and weight is c.table()["weight"] is c.weight
    assert c.total({"a": [1, 2], "b": [4]}) == 7 and c.first((2.0, "x")) == 2.0
    assert c.named(None) is c.named() is None and c.named("x") == "x"
    assert c.same({"a": [1, (2, "x")]}) == {"a": [1, (2, "x")]} and c.same(c) == c
    assert c(torch.ones(2)).tolist() == [1, 1]


def test_operators_take_objects_and_containers(ours, ops):
    s = ours.Texts(["a", "b"])
    assert ops.shortened(s) == s and len(s) == 1
    c = ours.Scale(torch.full((2,), 3.0))
    x = torch.ones(2, requires_grad=True)
    ops.scaled(c, x).sum().backward()
    assert x.grad.tolist() == [3, 3]
    assert ops.reversed(["a", "b"]) == ["b", "a"] and ops.reversed([]) == []
    ops.sum_of({"x": x, "y": x * 2}).backward()
    assert x.grad.tolist() == [6, 6]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda o, s: s.push(3), TypeError, r"Texts\(\): argument '_1' \(position 2\) must be str"),
        (
            lambda o, s: s.merge(3),
            TypeError,
            r"merge\(\): argument '_1'.*classes.Texts, not int: 3",
        ),
        (
            lambda o, s: s.merge(o.Plain(1)),
            TypeError,
            "an object of the class .*Texts, got .*Plain",
        ),
        (
            lambda o, s: o.Texts([3]),
            TypeError,
            r"__new__\(\): argument '_0'.*str\[\], not list: \[3\]",
        ),
        (lambda o, s: o.Texts(), TypeError, "missing 1 required"),
        (lambda o, s: o.Texts([]).pop(), RuntimeError, "pop from an empty stack"),
        (lambda o, s: setattr(s, "count", 3), AttributeError, "count"),
        (lambda o, s: setattr(s, "other", 3), AttributeError, "other"),
        (lambda o, s: o.Missing, RuntimeError, "no class 'cpptest_classes.Missing'; load the lib"),
        (lambda o, s: o.Bare(), TypeError, "no constructor"),
        (lambda o, s: torch.ScriptObject(), TypeError, "no constructor"),
        (lambda o, s: copy.deepcopy(o.Plain(1)), TypeError, "says no def_pickle"),
    ],
)
def test_errors(ours, make, error, message):
    with pytest.raises(error, match=message):
        make(ours, ours.Texts(["a"]))


def test_values_that_hold_themselves_end(ours):
    looped: list = []
    looped.append(looped)
    with pytest.raises(RecursionError):
        ours.Scale(torch.ones(1)).same(looped)


def test_copies_and_pickles(ours):
    s = ours.Texts(["a", "b"])
    for made in (copy.deepcopy(s), copy.copy(s), pickle.loads(pickle.dumps(s))):
        made.push("c")
        assert len(made) == 3 and len(s) == 2 and made.clone().pop() == "c"


def test_scripts_make_and_take_objects(ours):
    def joined(s: ours.Texts, n: int):
        own = ours.Texts(["hi", "mom"])
        own.merge(s)
        own.mark = n
        more = ours.Texts.of(2)
        return own.clone(), own.top(), own.count + own.mark + len(more.top())

    scripted = torch.jit.script(joined)
    for f in (joined, scripted):
        made, top, n = f(ours.Texts(["wow"]), 4)
        assert (top, n, len(made)) == ("wow", 8, 3) and isinstance(made, ours.Texts)
    assert scripted._program.machine.reason(scripted._function_name) is None
    with pytest.raises(Exception, match="Texts"):
        scripted(3, 4)


class Net(torch.nn.Module):
    def __init__(self, ours):
        super().__init__()
        self.texts = ours.Texts(["just", "testing"])
        self.scale = ours.Scale(torch.full((2,), 3.0), 1)

    def forward(self, text: str, x: torch.Tensor):
        for _ in range(3):
            self.texts.push(text)
        n, _ = self.scale.both()
        return self.texts.pop(), self.scale.apply(x) + n, self.scale.total({"a": [len(text)]})


def test_modules_hold_them_in_scripts_and_files(ours, library, build_program, tmp_path):
    plain, scripted = Net(ours), torch.jit.script(Net(ours))
    x = torch.ones(2)

    def run(f, text="hey"):
        text, y, n = f(text, x)
        return text, y.tolist(), n

    assert run(plain) == run(scripted) == ("hey", [4, 4], 3)
    stream = io.BytesIO()
    torch.jit.save(scripted, stream)
    stream.seek(0)
    loaded = torch.jit.load(stream)
    assert loaded.texts.count == 4 and loaded.scale.calls == 2
    assert run(loaded) == run(scripted) == ("hey", [5, 5], 3)
    assert copy.deepcopy(loaded).texts.count == 6

    one, two = tmp_path / "one.pt", tmp_path / "two.pt"
    loaded.save(one)
    binary = build_program(program("holds_classes"), "-Wno-deprecated", "-ldl")
    done = subprocess.run(
        [binary, library, one, two], capture_output=True, text=True, check=False, timeout=300
    )
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, ""), done.stderr + done.stdout
    assert lines[:5] == ["2 2 0 2", "1 1", "1 1 4", "2", "1"]
    assert lines[5] == (
        "a number: expected an object of the class __torch__.torch.classes.own.Base, got a int"
    )
    assert lines[6].startswith("no class: there is no class of the type 7Derived; make it known by")
    assert lines[7] == "LongComplexDouble(1,2) 1"
    assert lines[8].endswith("there is no operation cpptest_classes::Texts.push")
    assert lines[9:] == ["('C++', tensor([6., 6.]), 3)", "('again', tensor([7., 7.]), 5)"]
    back = torch.jit.load(two)
    assert back.texts.count == 8 and back.scale.calls == 4


def test_the_class_of_the_page(ours, tmp_path, monkeypatch):
    page = (Path(__file__).resolve().parents[2] / "docs" / "cpp.md").read_text()
    (source,) = [s for s in re.findall(r"```c\+\+\n(.*?)```", page, re.DOTALL) if "class_<" in s]
    monkeypatch.setenv("FLAMBEAU_EXTENSIONS_DIR", str(tmp_path))
    (tmp_path / "stack.cpp").write_text(source)
    classes.load_library(
        cpp_extension.load("my_classes", [str(tmp_path / "stack.cpp")], is_python_module=False)
    )
    from flambeau._library.operators import registry

    stack = classes.my_classes.Stack(["a", "b"])
    stack.push("c")
    assert (stack.top(), stack.count, registry().my_classes.drop(stack)) == ("c", 3, 2)


def test_a_file_needs_the_library(ours, tmp_path):
    path = tmp_path / "net.pt"
    torch.jit.script(Net(ours)).save(path)
    code = f"import flambeau as torch\ntorch.jit.load({str(path)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "there is no class 'cpptest_classes.Texts'; load the library" in done.stderr


def test_traces_hold_those_of_their_modules(ours):
    class Part(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = ours.Scale(torch.full((2,), 3.0), 1)

        def forward(self, x):
            return self.scale.apply(x).sin()

    class Whole(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.part = Part()

        def forward(self, x):
            return self.part(x) + 1

    x = torch.ones(2)
    m = Whole()
    traced = torch.jit.trace(m, x)
    assert torch.equal(traced(x * 2), m(x * 2)) and traced.part.scale == m.part.scale
    stream = io.BytesIO()
    torch.jit.save(traced, stream)
    stream.seek(0)
    assert torch.equal(torch.jit.load(stream)(x * 3), m(x * 3))
    with pytest.raises(RuntimeError, match="is no attribute of a traced module"):
        torch.jit.trace(lambda x: ours.Scale(x).apply(x), x)


def test_compiled_functions_call_them_between_graphs(ours):
    scale = ours.Scale(torch.full((2,), 3.0), 0)

    def f(x):
        return scale.apply(x * 2).sin() + scale.calls

    x = torch.ones(2)
    wanted = [f(x) for _ in range(2)]
    scale = ours.Scale(torch.full((2,), 3.0), 0)
    compiled = torch.compile(f)
    for w in wanted:
        torch.testing.assert_close(compiled(x), w)
    with pytest.raises(Exception, match="made of operations in C\\+\\+"):
        torch.compile(f, fullgraph=True)(x)
