"""Functions of the IR: every one of the table prints, parses back and is verified; refusals."""

from __future__ import annotations

import ast
import random
import textwrap
from pathlib import Path
from typing import Any

import pytest

import flambeau as torch
from flambeau._compiler import decompose
from flambeau._ir.frontend import compile_function
from flambeau._ir.graph import Function, show
from flambeau._ir.graph_parse import parse_function
from flambeau._ir.graph_verify import GraphError, verify
from flambeau._ir.types import parse_params, parse_type
from flambeau._table import bodies
from flambeau._table.entries import entries, overloads
from flambeau._trace import on_data, table
from flambeau._trace.fake import Fake, new
from flambeau._trace.interp import Interpreter


def compiled(source: str) -> Function:
    node = ast.parse(textwrap.dedent(source)).body[0]
    assert isinstance(node, ast.FunctionDef) and node.returns is not None
    params = parse_params(node, "script.py", typed=True)
    returns = parse_type(node.returns, "script.py")
    return compile_function(node, params, returns, "script.py", overloads)


def again(f: Function) -> Function:
    """The function as its text is read, which prints as it does."""
    text = show(f)
    made = parse_function(text)
    assert show(made) == text
    return made


def functions(uid: str) -> list[Function]:
    """Body and rules of an entry."""
    op = entries()[uid]
    found = [table.body(uid), decompose.rule(uid)]
    rule = table.vjp(uid)
    if rule is not None:
        found.append(rule.function)
    for typed in (bodies.jvp_of(op, table.SCOPE), bodies.batching_of(op, table.SCOPE)):
        if typed is not None:
            found.append(typed.function)
    return [f for f in found if f is not None]


@pytest.mark.parametrize("family", sorted({op.family for op in entries().values()}))
def test_bodies_and_rules_are_read_back(family: str) -> None:
    for uid, op in entries().items():
        if op.family == family:
            for f in functions(uid):
                verify(f, "table")
                verify(again(f), "table")


def test_the_design_page_shows_what_is_printed() -> None:
    f = compiled("""
        def f(x: Tensor, n: int) -> Tensor:
            total = 0
            for i in range(n):
                total += i
            return x * total
    """)
    page = (Path(__file__).parents[2] / "docs" / "design" / "ir.md").read_text()
    assert show(f).replace("script.py", "model.py") in page


def test_text_of_control_flow() -> None:
    f = compiled("""
        def f(x: Tensor, n: int) -> Tensor:
            total = 0
            for i in range(n):
                if i == 3:
                    break
                total += i
            while total > 10:
                total = total // 2
                x = -x
            check(n > 0, f"no {n}")
            return x * total
    """)
    assert show(f).splitlines() == [
        "def f(%x.0: Tensor, %n.1: int) -> Tensor:  # script.py:2 in f",
        "  %total.2: int = core.same(0)  # 3",
        "  %total.3: int = loop('range', (0, %n.1, 1), (%total.2,))  # 4",
        "  do(%i.4: int, %total.5: int):",
        "    %6: bool = core.eq(%i.4, 3)  # 5",
        "    if(%6)  # 5",
        "    then():",
        "      break(%total.5)  # 6",
        "    else():",
        "    %total.7: int = core.add(%total.5, %i.4)  # 7",
        "    yield %total.7",
        "  %x.8: Tensor, %total.9: int = loop('while', (), (%x.0, %total.3))  # 8",
        "  while(%x.10: Tensor, %total.11: int):",
        "    %12: bool = core.gt(%total.11, 10)  # 8",
        "    yield %12",
        "  do(%x.13: Tensor, %total.14: int):",
        "    %total.15: int = core.floordiv(%total.14, 2)  # 9",
        "    %x.16: Tensor = neg(%x.13)  # 10",
        "    yield %x.16, %total.15",
        "  %17: bool = core.gt(%n.1, 0)  # 11",
        "  if(%17)  # 11",
        "  then():",
        "  else():",
        "    %18: str = core.format('no ', %n.1)  # 11",
        "    raise('Runtime', %18)  # 11",
        "  %19: Number = core.number(%total.9)  # 12",
        "  %20: Tensor = core.wrap(%19)  # 12",
        "  %21: Tensor = mul(%x.8, %20)  # 12",
        "  return(%21)  # 12",
    ]
    verify(f, "script")
    with pytest.raises(GraphError, match="%x.0 has the unknown type Tensor"):
        verify(again(f), "captured")


def test_damaged_text_is_refused_or_still_a_text() -> None:
    r = random.Random(7)
    texts = [show(compiled(source.replace("torch_stack", "stack"))) for source in SCRIPTS]
    put = ["", "%7", "(", "]", "'", "n.1", "-1", " = ", "\n", "  ", "do():", "yield ", "9" * 30]
    refused = 0
    for _ in range(600):
        text = r.choice(texts)
        at, n = r.randrange(len(text)), r.randrange(1, 12)
        damaged = text[:at] + r.choice(put) + text[at + (n if r.random() < 0.5 else 0) :]
        try:
            shown = show(parse_function(damaged))
        except ValueError as error:
            assert str(error).startswith("graph text, line "), damaged
            refused += 1
        else:
            assert show(parse_function(shown)) == shown, damaged
    assert refused > 250


REFUSED = [
    ("if(True)\nthen():\n  %k.1: int = core.same(2)\nelse():\nreturn(%k.1)", "%k.1 is used before"),
    ("%n.1: int = core.same(2)\nreturn(%n.0)", "%n.0 is no longer the variable 'n'"),
    ("%b.1: bool = core.gt(%n.0, 1)\nif(%b.1)\nthen():\n  %n.2: int = core.same(2)\nelse():\n"
     "return(%n.0)", "%n.0 is no longer the variable 'n'"),
    ("loop('range', (0, 3, 1), ())\ndo(%i.1: int):\n  %n.2: int = core.add(%n.0, 1)\n"
     "return(1)", "%n.0 is no longer the variable 'n'"),
    ("%1: int = core.add(%n.0, 1)\n%2: int = core.add(%1, %1)\nreturn(%2)", None),
    ("%1: int = core.add(%n.0, 1)\n%a.2: int = core.add(%1, 1)\n%b.3: int = core.add(%1, 1)\n"
     "return(%b.3)", "%1 is used before"),
    ("break()", "break outside of a loop"),
    ("return('a')", "return takes other values"),
    ("return(1)\nreturn(2)", "after the end of a block"),
    ("raise('Runtime')", "raise takes other values"),
    ("%1: int = if(%n.0)\nthen():\n  yield 1\nelse():\n  yield 2\nreturn(%1)",
     "if has other blocks"),
    ("%1: int = if(True)\nthen():\n  yield 1\nelse():\nreturn(%1)", "gives other values"),
    ("%1: int = if(True)\nthen():\n  yield 1\nelse():\n  yield 'a'\nreturn(%1)",
     "gives other values"),
    ("%k.1: int = loop('range', (0, 3, 1), (%n.0,))\ndo(%i.2: int, %k.3: str):\n  yield 'a'\n"
     "return(%k.1)", "carries other values"),
    ("%k.1: int = loop('while', (), (%n.0,))\nwhile(%k.2: int):\n  yield %k.2\n"
     "do(%k.3: int):\n  yield %k.3\nreturn(%k.1)", "gives other values"),
    ("%1: int = core.sum(%n.0)\nreturn(%1)", "sum takes and gives other types"),
    ("%1: int = core.sun(%n.0)\nreturn(%1)", "no intrinsic sun"),
    ("%1: Tensor = core.undefined()\nreturn(1)", "undefined is for bodies of entries"),
    ("%1: Tensor = neg('a')\nreturn(1)", "'input' is Tensor, got 'a'"),
    ("%1: Ints = core.list(1)\n%2: int = neg(%1)\nreturn(1)", "'input' is Tensor, got %1"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_refusals(text: str, message: str | None) -> None:
    f = parse_function("def f(%n.0: int) -> int:\n" + textwrap.indent(text, "  ") + "\n")
    if message is None:
        verify(f, "script")
        return
    with pytest.raises(GraphError, match=message):
        verify(f, "script")


SCRIPTS = [
    """
    def f(x: Tensor, n: int) -> Tensor:
        for i in range(n, 0, -1):
            if i % 2 == 0:
                continue
            x = x * i + 1
            if i == 3:
                break
        return x
    """,
    """
    def f(x: Tensor, n: int) -> Tensor:
        if n > 3:
            return -x
        y = x
        while True:
            n += 1
            y = y + x
            if n >= 4:
                done = y * n
                break
        return done
    """,
    """
    def f(x: Tensor, n: int) -> Tuple[Tensor, int]:
        rows: Tensors = []
        total = 0
        for i, row in enumerate(x.unbind(0)):
            if i >= n:
                raise IndexError(f"row {i} of {n}")
            rows.append(row if i % 2 == 0 else row.neg())
            total += i * row.numel()
        rows[0] = rows[-1] * 2
        return torch_stack(rows), total
    """,
    """
    def f(x: Tensor, n: int) -> Tensor:
        sizes = [d for d in x.shape if d > 1]
        known: int | None = None
        for d, e in zip(sizes, [n, n + 1]):
            if d == e and known is None:
                known = d
            elif not (d < e or d > 2 * e):
                n += d // e
        if known is not None and known > 2:
            x = x.sum(dim=[0], keepdim=True)
        return x * (n if known is None else known)
    """,
    """
    def f(x: Tensor, n: int) -> Tensor:
        out, steps = x, 0
        while steps < n:
            inner = 0
            for j in range(steps):
                if j == 2:
                    break
                for k in range(j):
                    inner += k
                inner += j
            out, steps = out + inner, steps + 1
        return out
    """,
]


def natively(source: str, *args: Any) -> Any:
    """What Python makes of the same source, or the error that it raises."""
    space: dict[str, Any] = {"torch_stack": torch.stack}
    exec("from __future__ import annotations\n" + textwrap.dedent(source), space)
    try:
        return space["f"](*args)
    except IndexError as error:
        return str(error)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("source", SCRIPTS)
def test_scripts_do_what_python_does(source: str, n: int) -> None:
    f = again(compiled(source.replace("torch_stack", "stack")))
    verify(f, "script")
    x = torch.arange(12.0).reshape(4, 3)
    wanted = natively(source, x, n)
    try:
        made = on_data.run(f, [x, n])
        fake = Interpreter(table.evaluate_call).run(f, [new((4, 3), torch.float32), n])
    except IndexError as error:
        assert str(error) == wanted
        return
    for m, w, k in zip(*map(listed, (made, wanted, fake)), strict=True):
        if isinstance(w, torch.Tensor):
            assert torch.equal(m, w)
            assert isinstance(k, Fake) and (tuple(k.shape), k.dtype) == (tuple(w.shape), w.dtype)
        else:
            assert m == w == k


def listed(x: Any) -> list[Any]:
    return list(x) if isinstance(x, tuple) else [x]
