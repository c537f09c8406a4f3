"""Runs functions of the IR: control flow, and what the language itself has on plain values.

The front end has resolved overloads, filled in defaults and spelled out conversions, so this
decides nothing. Calls of operations go to `call`; what the other intrinsics mean (over fakes, over
tensors with data) is in the tables of subclasses.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar

from .graph import CHANGES, Arg, Block, Function, Node, Value
from .symscalar import SymFloat, SymInt
from .targets import resolve

Call = Callable[[Any, bool, list[Any]], Any]  # entry, in place?, arguments
Run = Callable[..., Any]
Values = dict[Value, Any]
Left = tuple[str, list[Any]]  # how a block was left, and with what

ERRORS = {
    "Runtime": RuntimeError,
    "Value": ValueError,
    "Type": TypeError,
    "Index": IndexError,
    "Assertion": AssertionError,
    "NotImplemented": NotImplementedError,
}


class Interpreter:
    """One run of one function: who is called.

    `core` are meanings of intrinsics, `operations` of those that call operations of the table:
    they get `call` first. `known` says by target how a node is run (as control, by values, or with
    who is called), and by what.
    """

    core: ClassVar[Mapping[str, Run]] = {}
    operations: ClassVar[Mapping[str, Run]] = {}
    known: ClassVar[dict[str, tuple[str, Run]]]

    def __init_subclass__(cls) -> None:
        cls.known = dict(_CONTROL)

    def __init__(self, call: Call) -> None:
        self.call = call

    @classmethod
    def learn(cls, target: str) -> tuple[str, Run]:
        """What `known` says from now on."""
        name = target.removeprefix("core.")
        found: tuple[str, Run]
        if name == target:
            op, inplace = resolve(target).op, resolve(target).form == "inplace"
            found = "calls", lambda call, *args: call(op, inplace, list(args))
        elif target in CHANGES and name not in LANGUAGE:
            found = "plain", lambda xs, *args: getattr(xs, name)(*args)
        elif name in cls.operations:
            found = "calls", cls.operations[name]
        else:
            found = "plain", LANGUAGE.get(name) or cls.core[name]
        return cls.known.setdefault(target, found)

    def run(self, f: Function, args: Iterable[Any]) -> Any:
        """The function's result."""
        left = self.block(f, dict(zip(f.inputs, args, strict=True)))
        return left[1][0] if left and left[1] else None

    def block(self, block: Block, values: Values) -> Left | None:
        """Runs the nodes; how control left before the end."""
        for node in block.nodes:
            kind, function = self.known.get(node.target) or self.learn(node.target)
            if kind == "control":
                left: Left | None = function(self, node, values)
                if left is not None:
                    return left
                continue
            given = [values[a] if a.__class__ is Value else a for a in node.args]
            result = function(*given) if kind == "plain" else function(self.call, *given)
            for out in node.outs:
                if result.__class__ is list and out.name:
                    result = list(result)  # a variable has a list of its own
                values[out] = result
        return None

    def unpack(self, node: Node, values: Values) -> None:
        (xs,) = _fetch(node.args, values)
        if len(xs) != len(node.outs):
            raise ValueError(f"expected {len(node.outs)} values, got {len(xs)}")
        values.update(zip(node.outs, xs, strict=True))

    def leave(self, node: Node, values: Values) -> Left:
        return node.target, _fetch(node.args, values)

    def refuse(self, node: Node, values: Values) -> Left:
        kind, message = _fetch(node.args, values)
        raise ERRORS[kind](message)

    def choose(self, node: Node, values: Values) -> Left | None:
        test = node.args[0]
        block = node.blocks[0 if (values[test] if test.__class__ is Value else test) else 1]
        if block.nodes:
            left = self.block(block, values)
            if left is not None:
                return left
        for v, a in zip(node.outs, block.outputs, strict=True):
            values[v] = values[a] if a.__class__ is Value else a
        return None

    def loop(self, node: Node, values: Values) -> Left | None:
        kind, lists, init = node.args
        carried, body = _fetch(init, values), node.blocks[-1]
        for items in self.turns(node, values, carried):
            values.update(zip(body.inputs, [*items, *carried], strict=True))
            left = self.block(body, values)
            if left is None:
                carried[:] = _fetch(body.outputs, values)
            elif left[0] == "return":
                return left
            else:
                carried[:] = left[1]
                if left[0] == "break":
                    break
        values.update(zip(node.outs, carried, strict=True))
        return None

    def turns(self, node: Node, values: Values, carried: list[Any]) -> Iterator[Iterable[Any]]:
        """Items of each turn; `carried` is what the turn before has left."""
        if node.args[0] != "while":
            yield from _items(node, _fetch(node.args[1], values), len(carried))
            return
        test = node.blocks[0]
        while True:
            values.update(zip(test.inputs, carried, strict=True))
            self.block(test, values)
            if not _fetch(test.outputs, values)[0]:
                return
            yield ()

    def collect(self, node: Node, values: Values) -> None:
        out: list[Any] = []
        for items in _items(node, _fetch(node.args[1], values), 0):
            for block in node.blocks:
                values.update(zip(block.inputs, items, strict=True))
                self.block(block, values)
                (result,) = _fetch(block.outputs, values)
                if block is node.blocks[-1]:
                    out.append(result)
                elif not result:
                    break
        values[node.out] = out


def _fetch(args: tuple[Arg, ...], values: Values) -> list[Any]:
    return [values[a] if a.__class__ is Value else a for a in args]


def _items(node: Node, lists: list[Any], carried: int) -> Iterable[tuple[Any, ...]]:
    kind = node.args[0]
    if kind == "range":
        return ((i,) for i in range(*map(operator.index, lists)))
    if kind == "zip":
        return zip(*lists, strict=False)
    if kind == "enumerate":
        return enumerate(lists[0])
    xs = list(lists[0])[::-1] if kind == "reversed" else list(lists[0])
    whole = len(node.blocks[-1].inputs) - carried == 1
    return ((x,) for x in xs) if whole else xs


def _position(xs: Any, i: Any) -> int:
    i = operator.index(i)
    if not -len(xs) <= i < len(xs):
        raise IndexError(f"list index {i} is out of range for {len(xs)} items")
    return i


def _to_float(x: Any) -> Any:
    if isinstance(x, SymInt):
        return SymFloat.of(x)
    return x if isinstance(x, SymFloat) else float(x.real if isinstance(x, complex) else x)


def _to_int(x: Any) -> Any:
    return x if isinstance(x, SymInt) else int(x.real if isinstance(x, complex) else x)


def _unwrap(x: Any) -> Any:
    if x is None:
        raise RuntimeError("a value that is None was taken for one that is not")
    return x


def _set_item(xs: list[Any], i: Any, value: Any) -> None:
    xs[_position(xs, i)] = value


def _slice(xs: Any, *ends: Any) -> Any:
    first, last = (None if x is None else operator.index(x) for x in ends)
    return xs[first:last]


def _compared(name: str) -> Callable[[Any, Any], bool]:
    compare = getattr(operator, name)
    return lambda a, b: bool(compare(a, b))


LANGUAGE: dict[str, Callable[..., Any]] = {
    "not": operator.not_, "is_none": lambda x: x is None, "list": lambda *xs: list(xs),
    "tuple": lambda *xs: xs, "getitem": lambda xs, i: xs[_position(xs, i)], "setitem": _set_item,
    "getslice": _slice, "part": lambda xs, i: xs[i], "same": lambda x: x,
    "float": _to_float, "int": _to_int,
    "bool": lambda x: bool(x != 0), "number": lambda x: x, "unwrap": _unwrap,
    "opttensors": list, "filled": lambda x, n: [x] * n,
}  # fmt: skip
for _name in "add sub mul truediv floordiv mod pow and_ or_ xor lshift rshift neg invert".split():
    LANGUAGE[_name] = getattr(operator, _name)
for _name in "eq ne lt le gt ge".split():
    LANGUAGE[_name] = _compared(_name)
_CONTROL: dict[str, tuple[str, Run]] = {
    target: ("control", run)
    for target, run in {
        "if": Interpreter.choose, "loop": Interpreter.loop, "collect": Interpreter.collect,
        "raise": Interpreter.refuse, "return": Interpreter.leave, "break": Interpreter.leave,
        "continue": Interpreter.leave, "core.unpack": Interpreter.unpack,
    }.items()
}  # fmt: skip
