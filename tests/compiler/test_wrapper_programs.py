"""A few hundred functions in many wrappers, compiled at any of them and held against eager; `make
truth` runs thousands."""

from __future__ import annotations

import ast

import pytest

from tools import _wrapper_check
from tools._known import known
from tools._wrapper_draw import LAYERS, LEAVES, Call, Layer, Program, generate
from tools.wrapper_programs import KNOWN, found, outcome, script, small

PLAIN = "contextlib.nullcontext()"


@pytest.mark.parametrize("part", range(4))
def test_programs_agree_with_eager(part):
    programs = [generate(k) for k in range(40 * part, 40 * (part + 1))]
    ends = [found(p, known(KNOWN)) for p in programs]
    assert not any(text for _, text in ends), "\n".join(text for _, text in ends)
    assert sum(end == "agree" for end, _ in ends) > 30


def test_programs_are_the_same_every_time():
    assert generate(7).text() == generate(7).text()
    ast.parse(generate(7).text())


def test_every_part_runs_in_eager():
    """A part that always raises would agree with itself: alone, each gives a result."""
    calls = (Call(PLAIN, True, (3, 3)),)
    parts = [(Layer(t),) for t in LEAVES]
    parts += [(Layer(LEAVES[0]), Layer(t.partition("|")[0])) for t in LAYERS]
    for layers in parts:
        p = Program(0, layers, calls)
        error, seen = _wrapper_check.Way(p.text(), False).call(0)
        assert not error and seen, (error, p.text())


def test_a_difference_is_found_and_made_smaller(monkeypatch):
    """A wrapper that is bypassed where it is compiled, as once was."""
    real = _wrapper_check.Way.compile

    def bypassing(self, f, **options):
        return real(self, getattr(f, "__wrapped__", f), **options)

    layers = (
        Layer(LEAVES[0]),
        Layer("f{n} = Called({g})"),
        Layer("f{n} = wraps({g})", "eager"),
        Layer("f{n} = torch.no_grad()({g})"),
    )
    p = Program(0, layers, tuple(Call(PLAIN, True, (3, 3)) for _ in range(3)))
    assert not _wrapper_check.failure(p.text())
    monkeypatch.setattr(_wrapper_check.Way, "compile", bypassing)
    why = _wrapper_check.failure(p.text())
    assert outcome(why) == "fail" and "result differs" in why
    p, why = small(p, why)
    assert [x.text for x in p.layers] == [LEAVES[0], "f{n} = wraps({g})"] and len(p.calls) == 1
    said: list[str] = []
    exec(script(p, why), {"print": said.append})
    assert said == [why]


@pytest.mark.parametrize("wrong", ["requires_grad", "dtype", "gradient", "error"])
def test_what_differs_is_named(monkeypatch, wrong):
    changes = {
        "requires_grad": lambda f: lambda x: f(x).detach(),
        "dtype": lambda f: lambda x: f(x).double(),
        "gradient": lambda f: lambda x: f(x.detach()),
        "error": lambda f: lambda x: f(x, x),
    }
    monkeypatch.setattr(_wrapper_check.Way, "compile", lambda self, f, **_: changes[wrong](f))
    p = Program(0, (Layer(LEAVES[0], "eager"),), (Call(PLAIN, True, (3,)),))
    names = {
        "requires_grad": "call 0: result has requires_grad=False, eager's requires_grad=True",
        "dtype": "call 0: result has torch.float64, eager's torch.float32",
        "gradient": "call 0: gradient of x is None, eager's is a tensor",
        "error": "call 0: TypeError",
    }
    assert _wrapper_check.failure(p.text()).startswith(names[wrong])
