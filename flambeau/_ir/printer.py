"""Text of the IR: one line a statement, every variable with its type, conversions shown.

For people and golden tests. Reads the IR, decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from .ir import (
    Check,
    Do,
    Expr,
    For,
    Function,
    If,
    Jump,
    Let,
    Return,
    SetItem,
    Stmt,
    Unpack,
    While,
)  # fmt: skip


def show(e: Expr) -> str:
    """One expression."""
    a = [show(x) for x in e.args]
    match e.op:
        case "const":
            return repr(e.attr)
        case "var":
            return str(e.attr)
        case "call":
            return f"{e.attr.name}({', '.join(a)})"
        case "core":
            return f"core.{e.attr}({', '.join(a)})"
        case "bin" | "cmp":
            return f"({a[0]} {e.attr} {a[1]})"
        case "and" | "or":
            return f"({a[0]} {e.op} {a[1]})"
        case "not" | "neg" | "invert" | "is_none":
            return f"{e.op}({a[0]})"
        case "if":
            return f"({a[1]} if {a[0]} else {a[2]})"
        case "list":
            return f"[{', '.join(a)}]"
        case "tuple":
            return f"({', '.join(a)})"
        case "index":
            return f"{a[0]}[{a[1]}]"
        case "item":
            return f"{a[0]}.{e.attr}"
        case "slice":
            ends = ["" if x == "None" else x for x in a[1:]]
            return f"{a[0]}[{ends[0]}:{ends[1]}]"
        case "format":
            return f"format({', '.join(a)})"
        case "cast":
            kind = e.attr if isinstance(e.attr, str) else f"{e.attr[0]}{e.attr[1]}"
            return f"{kind}({', '.join(a)})"
        case "comp":
            return _comp(e, a)
    raise AssertionError(e.op)


def _comp(e: Expr, a: list[str]) -> str:
    n = len(a) - 1 - int(e.attr.filtered)
    test = f" if {a[n]}" if e.attr.filtered else ""
    names = ", ".join(t or "_" for t in e.attr.targets)
    return f"[{a[-1]} for {names} in {_over(e.attr.over, a[:n])}{test}]"


def _over(over: str, args: list[str]) -> str:
    return args[0] if over == "list" else f"{over}({', '.join(args)})"


def _lines(block: list[Stmt], depth: int) -> Iterator[str]:
    pad = "  " * depth
    for s in block:
        match s:
            case Let(name=name, value=value, declared=t):
                yield f"{pad}{name}: {t} = {show(value)}"
            case Unpack(names=names, types=types, value=value):
                left = ", ".join(f"{n or '_'}: {t}" for n, t in zip(names, types, strict=True))
                yield f"{pad}{left} = {show(value)}"
            case SetItem(target=xs, index=i, value=value):
                yield f"{pad}{show(xs)}[{show(i)}] = {show(value)}"
            case If(test=test, then=then, other=other):
                yield f"{pad}if {show(test)}:"
                yield from _lines(then, depth + 1)
                if other:
                    yield f"{pad}else:"
                    yield from _lines(other, depth + 1)
            case For(targets=names, over=over, args=args, body=body):
                left = ", ".join(n or "_" for n in names)
                yield f"{pad}for {left} in {_over(over, [show(x) for x in args])}:"
                yield from _lines(body, depth + 1)
            case While(test=test, body=body):
                yield f"{pad}while {show(test)}:"
                yield from _lines(body, depth + 1)
            case Jump(kind=kind):
                yield pad + kind
            case Return(value=value):
                yield f"{pad}return {show(value)}" if value else f"{pad}return"
            case Check(kind=kind, test=None, message=message):
                yield f"{pad}raise {kind}({show(message)})"
            case Check(kind=kind, test=Expr() as test, message=message):
                yield f"{pad}check {kind} {show(test)}: {show(message)}"
            case Do(value=value):
                yield pad + show(value)
            case _:
                raise AssertionError(type(s))


def dump(f: Function) -> str:
    """A whole function."""
    params = ", ".join(f"{p.name}: {p.type}" for p in f.params)
    return "\n".join([f"{f.name}({params}) -> {f.returns}:", *_lines(f.body, 1)]) + "\n"
