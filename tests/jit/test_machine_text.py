"""Texts of scripts as the library reads them: printed back equal, held to their structure."""

import random
import re
import resource

import pytest

import flambeau as torch
from flambeau import _C
from flambeau._script import text

from . import language, programs
from .test_scripts import _program


def texts():
    """Every program of the tests as text."""
    found = []
    for case in programs.CASES:
        _, script = _program(case)
        program = getattr(script, "_program", None) or script._script_program
        found.append(text.write(program.unit))
    found += [text.write(torch.jit.script(f)._program.unit) for f, _ in language.PROGRAMS]
    return found


@pytest.fixture(scope="module")
def written():
    return texts()


def test_every_program_is_read_and_printed_back(written):
    for t in written:
        assert _C._script_text(t) == t


def f(x: torch.Tensor, n: int, s: str = "a\x00b\u20ac\n'\"", z: float = float("-inf")):
    out = [1.5, 1e-7, 1e22, -0.0, float("nan")]
    while n > 0:
        n -= 1
        for i, y in enumerate(x):
            if i > 2:
                break
            out.append(float(y))
    return out, s, (n,), 2 + 3j, torch.float32


def test_literals():
    t = text.write(torch.jit.script(f)._program.unit)
    assert _C._script_text(t) == t


HEAD = "def f(%x.0: Tensor, %n.1: int) -> Tensor:\n"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("  %2: Tensor = neg(%x.0, 3)\n", "neg takes 1 arguments, got 2"),
        ("  %2: Tensor = nega(%x.0)\n", "there is no operation nega"),
        ("  %2: Tensor = fn.g(%x.0)\n", "there is no function g"),
        ("  %2: Tensor = fn.f(%x.0)\n", "f takes 2 arguments, got 1"),
        ("  return(%9)\n", "line 2: there is no value %9"),
        ("  break()\n", "break outside of a loop"),
        ("  return(%x.0)\n  return(%x.0)\n", "return ends its block"),
        ("  if(%n.1)\n  then():\n    %2: int = core.neg(%n.1)\n", "two blocks"),
        (
            "  if(%n.1)\n  then():\n    %2: int = core.neg(%n.1)\n  else():\n"
            "    %3: int = core.neg(%2)\n",
            "%2 is not defined here",
        ),
        ("  %2: int = if(%n.1)\n  then():\n    yield 1\n  else():\n", "gives 0 values, expected 1"),
        ("  %2: int = loop('range', (0, 3), (%n.1,))\n  do(%3: int, %4: int):\n    yield 1\n",
         "range has three numbers"),
        ("  %2: Tensor = neg(%x.0)\n  %2: Tensor = neg(%x.0)\n", "line 3: expected a value that"),
        ("  %2: Tensor neg(%x.0)\n", "line 2: expected ' = '"),
        ("  return('\\ud800')\n", "line 2: expected a character's number"),
        ("  return(" + "(" * 1000 + "\n", "nested less deeply"),
        ("  %2: " + "List[" * 1000 + "\n", "nested less deeply"),
    ],
)  # fmt: skip
def test_what_is_not_sound_is_refused(body, message):
    with pytest.raises(ValueError, match=".") as error:
        _C._script_text(HEAD + body)
    assert message in str(error.value)


RUNS = "def f(%xs.0: Ints, %x.1: Tensor) -> Tensor:\n"


@pytest.mark.parametrize(
    "body",
    [
        "  %2: Ints = core.getslice(%xs.0)\n", "  () = core.tuple(%xs.0, %x.1)\n",
        "  %2: Tensor = core.wrap()\n", "  %2: Tensor = neg(None)\n",
        "  %2: int, %3: int = core.unpack()\n", "  () = core.append(%xs.0)\n",
        "  %2: Tensor = core.get_item(%x.1)\n", "  %2: Tensor = core.wait(%x.1)\n",
        "  %2: Future[Tensor] = core.fork('fn.f', %xs.0)\n", "  %2: int = core.len(%x.1, %x.1)\n",
        "  %2: Tensor = core.getitem(%xs.0, 0)\n  %3: Tensor = neg(%2)\n",
        "  %2: str = core.same(%xs.0)\n  %3: int = core.len(%2)\n  %4: str = core.add(%2, %2)\n",
        "  () = core.setattr(%x.1, 'a', 3)\n", "  %2: int = core.getattr(%xs.0, 'a')\n",
    ],
)  # fmt: skip
def test_nodes_of_the_wrong_arity_or_type_are_left_out_or_end_in_errors(body):
    class Maker:
        def node(self, name, place):
            return None

        context = node

        def attribute(self, cls, name):
            return 2

    unit = _C._Script(RUNS + body + "  return(%x.1)\n", Maker(), {}, lambda n: ValueError, False)
    if unit.reason("f") is None:
        call = _C._ScriptCall(unit, "f", lambda b: lambda *a: a if b else None, [], (), True)
        with pytest.raises((TypeError, IndexError, ValueError)):
            call([1, 2], torch.ones(2))


def test_blocks_in_blocks_end():
    body = "".join("  " * i + "  if(%n.1)\n" + "  " * i + "  then():\n" for i in range(1000))
    with pytest.raises(ValueError, match="nested less deeply"):
        _C._script_text(HEAD + body)


def test_names_stand_once():
    with pytest.raises(ValueError, match="f stands twice"):
        _C._script_text((HEAD + "  return(%x.0)\n\n") * 2)


CALLED = re.compile(r" = ([\w.]+)\(")
VALUE = re.compile(r"%(?:\w+\.)?\d+")


def mutated(t, rng):
    """A text with a few characters, words, values, targets or lines changed."""
    for _ in range(rng.choice((1, 1, 2, 5))):
        kind, i = rng.randrange(9), rng.randrange(len(t))
        if kind > 4:  # a value, or what is called, for another one
            found = list((CALLED if kind == 5 else VALUE).finditer(t))
            if len(found) > 1:
                a, b = rng.sample(found, 2)
                group = 1 if kind == 5 else 0
                t = t[: a.start(group)] + b[group] + t[a.end(group) :]
            continue
        j = min(len(t), i + rng.choice((1, 1, 3, 30)))
        if kind == 0:
            t = t[:i] + t[j:]
        elif kind == 1:
            t = t[:i] + rng.choice("%():,'\"[]{}=-#. 019\\\nxe") + t[i:]
        elif kind == 2:
            k = rng.randrange(len(t))
            t = t[:i] + t[k : k + j - i] + t[j:]
        elif kind == 3:
            lines = t.splitlines(keepends=True)
            rng.shuffle(lines[rng.randrange(len(lines)) :])
            lines.insert(rng.randrange(len(lines)), lines.pop(rng.randrange(len(lines))))
            t = "".join(lines)
        else:
            t = t[:i] + t[i:j] * rng.choice((2, 50)) + t[j:]
    return t


def test_mutated_texts_are_read_or_refused(written):
    rng = random.Random(7)
    read = 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(4000):
        t = mutated(rng.choice(written), rng)
        try:
            back = _C._script_text(t)
        except (ValueError, UnicodeEncodeError):
            continue
        read += 1
        assert _C._script_text(back) == back
    assert 100 < read < 3900
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000
