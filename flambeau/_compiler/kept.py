"""What compiling a captured graph came to, kept on disk: descriptions of its native programs.

A later process that captures an equal graph makes the function from the descriptions and loads the
libraries, without going through the passes. The name of a description is the digest of everything
that the passes see: the graph, what is known of its symbols, modes, our sources, the processor.
Whatever a pass comes to read besides these must go into `_key` or `_environment`. A description
that is damaged, or that the native side refuses, is as good as none.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import platform
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import flambeau
from flambeau import _C

from .._ir import plain, symexpr
from .._ir.graph import Block, Graph, Node, TensorType, Value
from .._ir.logs import enabled
from .._ir.native import Function, Makers, Program
from .._ir.settings import current
from .._ir.symbols import Guard, ShapeEnv
from .._ir.symexpr import Expr
from .._ir.symscalar import FloatExpr
from .._ir.types import Type
from .._library.operators import overload_of
from .._table import entries as _entries  # noqa: F401  graphs that are run name its entries
from .._table.added import is_added
from . import cache as disk
from . import toolchain

#: function, programs of the forward and (perhaps) the backward graph
Lowered = tuple[Function, list[Program]]
_PACKAGE = Path(__file__).resolve().parents[1]
_SOURCES = ("_ir", "_table", "_trace", "_aot", "_compiler", "ops")  # what passes are made of
_BUILD_ID = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0"  # the head of an ELF note, before the number


def fetch(
    graph: Graph,
    wanted: Sequence[bool],
    lower: Callable[[], Lowered | None],
    makers: Makers,
) -> Any:
    """The function of a captured graph, from the cache or from `lower`, whose work is then kept.
    None where `lower` gives None.

    Args:
        graph: as captured.
        wanted: of each input, whether gradients flow to it.
        lower: compiles the graph.
        makers: see `Function.made`.
    """

    def made_of(function: Function, programs: Sequence[Program]) -> Any:
        forward, *backward = (p.run for p in programs)
        last = backward[0] if backward else None
        return function.made(forward, last, graph, makers, graph.attached)

    name = None if enabled("output_code") else _name(graph, wanted)
    if name is None:
        lowered = lower()
        return lowered and made_of(*lowered)
    found = _read(name)
    made = None if found is None or _verify() else _from(found, graph, makers)
    if made is not None:
        return made
    before = len(graph.env.history), len(graph.env.symbols)
    lowered = lower()
    if lowered is None:
        return None
    function, programs = lowered
    new = _describe(function, programs, graph, *before)
    _keep(name, found, new)
    if _verify() and new is not None:
        made = _from(plain.loads(new), graph, makers, learn=False)
    return made or made_of(function, programs)


def part(whole: str, there: str, lower: Callable[[], tuple[Any, ...]]) -> tuple[Any, ...]:
    """A backward of some cotangents, see `native.Part`, from the cache or from `lower`.

    Args:
        whole: text of the whole backward graph.
        there: which cotangents there are.
        lower: compiles the part; what it gives has a `Program` first.
    """
    key = plain.dumps((flambeau.get_default_dtype(), _settings(), there, whole))
    name = None if enabled("output_code") else _file(key)
    found = None if name is None else _read(name)
    if found is not None and not _verify():
        try:
            program, *rest = found
            return (_program(*program), *rest)
        except Exception:  # whatever a file may hold that nobody wrote so
            pass
    made, *rest = lower()
    if name is not None:
        _keep(name, found, plain.dumps((made.plain(), *rest)) if made.kept else None)
    return (made.run, *rest)


# Writing ----------------------------------------------------------------------------------------


def _describe(
    function: Function, programs: Sequence[Program], graph: Graph, learned: int, symbols: int
) -> str | None:
    """The text of what was compiled; None where another process could not use it."""
    if graph.attached or not all(p.kept for p in programs) or len(graph.env.symbols) != symbols:
        return None
    guards = {id(g) for g in graph.env.guards}
    facts = tuple(
        (id(g) in guards, g.relation, g.expr.text, _node_at(graph, g))
        for g in graph.env.history[learned:]
    )
    try:
        return plain.dumps((function.plain(), tuple(p.plain() for p in programs), facts))
    except plain.NotPlain:
        return None


def _node_at(graph: Graph, guard: Guard) -> int | None:
    """A node of the line that left a guard: the line itself may move."""
    found = (k for k, node in enumerate(graph.nodes) if node.where == guard.where)
    return None if guard.where is None else next(found, None)


def _keep(name: str, found: Any, new: str | None) -> None:
    """Writes what was compiled, unless it is what was found; None cannot be written."""
    same = found is not None and new == plain.dumps(found)
    if _verify() and found is not None and not same:
        raise RuntimeError(f"compile: {name} in the cache is not what compiling gives now")
    if new is not None and not same:
        disk.write(name, new.encode())


def _verify() -> bool:
    """Is what the cache has to be compared with what compiling gives?"""
    return bool(os.environ.get("FLAMBEAU_VERIFY"))


# Reading ----------------------------------------------------------------------------------------


def _read(name: str) -> Any:
    data = disk.read(name)
    if data is None:
        return None
    try:
        return plain.loads(data)
    except ValueError:
        return None


def _from(found: Any, graph: Graph, makers: Makers, learn: bool = True) -> Any:
    """The function that is described; None where it cannot be made.

    Args:
        found: the description.
        graph: what it is of.
        makers: see `Function.made`.
        learn: the graph's symbols have yet to learn what the passes found out.
    """
    try:
        function, programs, facts = found
        runs = [_program(*p) for p in programs]
        forward, backward = runs if len(runs) == 2 else (*runs, None)
        made = Function(*function).made(forward, backward, graph, makers)
        guards = [(own, _guard(graph, *g)) for own, *g in facts]
    except Exception:  # whatever a file may hold that nobody wrote so
        return None
    for own, guard in guards if learn else ():
        if own:
            graph.env.guards.append(guard)
        graph.env.learn(guard)
    return made


def _program(spec: tuple[Any, ...], code: str | None) -> Any:
    library = None if code is None else toolchain.find(code)
    if code is not None and library is None:
        raise OSError("the library is gone")
    return _C._Program(spec, (), None if library is None else library.function("run"))


def _guard(graph: Graph, relation: str, text: str, node: int | None) -> Guard:
    expr = symexpr.parse(text)
    if relation not in (">=", "==", "!=") or not expr.symbols <= graph.env.symbols.keys():
        raise ValueError(text)
    return Guard(relation, expr, None if node is None else graph.nodes[node].where)


# The name ---------------------------------------------------------------------------------------


def _name(graph: Graph, wanted: Sequence[bool]) -> str | None:
    """The file for a graph; None where it has something that cannot be told apart in text."""
    try:
        return _file(_key(graph, wanted))
    except plain.NotPlain:
        return None


def _file(key: str) -> str:
    return hashlib.sha256(_environment() + key.encode()).hexdigest()[:40] + ".plan"


def _key(graph: Graph, wanted: Sequence[bool]) -> str:
    modes = (flambeau.get_default_dtype(), flambeau.is_grad_enabled(), _settings())
    if graph.attached:
        raise plain.NotPlain("a graph with tensors of its own")
    described = (modes, tuple(wanted), _state(graph.env), _block(graph), _added(graph))
    numbers: dict[Value, int] = {}

    def other(x: Any) -> Any:
        if isinstance(x, Value):
            known = numbers.get(x)
            if known is None:  # where it is defined
                known = numbers[x] = len(numbers)
                return {"new": (known, x.type)}
            return {"value": known}
        if isinstance(x, TensorType):
            return {"tensor": (x.dtype, x.shape, x.strides, x.device)}
        if isinstance(x, Type):
            return {"scalar": str(x)}
        if isinstance(x, Expr):
            return {"expr": x.text}
        if isinstance(x, FloatExpr):
            return {"float": (x.op, x.args)}
        return plain.tagged(x)

    return plain.dumps(described, other)


def _settings() -> tuple[Any, ...]:
    return dataclasses.astuple(current())


def choice(graph: Graph, wanted: Sequence[bool], choose: Callable[[], int]) -> int:
    """The number of what was chosen for a graph by trials, from the cache or from `choose`."""
    try:
        name: str | None = _file(plain.dumps(("choice", _key(graph, wanted))))
    except plain.NotPlain:
        name = None
    found = None if name is None else _read(name)
    if isinstance(found, int):
        return found
    made = choose()
    if name is not None:
        disk.write(name, plain.dumps(made).encode())
    return made


def _state(env: ShapeEnv) -> Any:
    """Symbols and what is known of them."""
    symbols = [
        (s.name, s.hint, s.low, s.high, s.origin and (s.origin.input, s.origin.kind, s.origin.dim))
        for s in env.symbols.values()
    ]
    lists = (env.guards, env.history)
    return symbols, [[(g.relation, g.expr) for g in some] for some in lists]


def _added(graph: Graph) -> list[str]:
    """Schemas of the operators that programs added: what one writes to is not in the graph."""
    names = {n.target for n in graph.walk() if is_added(n.target)}
    return [str(overload_of(name)._schema) for name in sorted(names)]


def _block(block: Block) -> Any:
    return (block.inputs, [_node(n) for n in block.nodes], block.outputs)


def _node(node: Node) -> Any:
    return (node.target, node.args, node.outs, node.grad, [_block(b) for b in node.blocks])


@cache
def _environment() -> bytes:
    """What does not depend on the graph: our sources, the built core, Python, the processor."""
    h = hashlib.sha256()
    provider = flambeau.backends.mkldnn.is_available()  # layouts depend on it
    h.update(repr((sys.version, platform.machine(), toolchain.processor(), provider)).encode())
    for folder in _SOURCES:
        for path in sorted((_PACKAGE / folder).glob("*.py")):
            h.update(f"\0{folder}/{path.name}\0".encode() + path.read_bytes())
    h.update(_identity(Path(_C.__file__)) + _identity(toolchain.library()))
    return h.digest()


def _identity(path: Path) -> bytes:
    """Tells one build of the core from another: the linker's number, else size and time."""
    with open(path, "rb") as f:
        head = f.read(1 << 14)
    at = head.find(_BUILD_ID)
    if at >= 0:
        return head[at : at + len(_BUILD_ID) + 20]
    found = os.stat(path)
    return repr((found.st_size, found.st_mtime_ns, found.st_ctime_ns)).encode()
