"""Recorders: who is called with fakes, and what of it becomes nodes.

`CapturedRecorder` puts down the user's calls as they are: one node each, in-place forms too. The
primitive level is `functional.PrimitiveRecorder`'s.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

import numpy as np

from flambeau.backends._attention import USUAL, allowed

from .._ir.graph import Builder, Graph
from .._ir.symbols import Origin, ShapeEnv
from .._ir.symscalar import SymFloat, SymInt
from .._ir.targets import updated
from .._table.model import Op
from .fake import Fake, plain
from .interp import Interpreter
from .meanings import DataDependent
from .stand_ins import check_read, refuse_place, write_below
from .table import body, chooses_attention, differentiable, evaluate_call, is_primitive, vjp
from .unbacked import settle, taking


def is_inexact(d: Any) -> bool:
    return bool(d.is_floating_point or d.is_complex)


def fakes_of(x: Any) -> list[Fake]:
    """All fakes in an argument or a result."""
    if isinstance(x, Fake):
        return [x]
    if isinstance(x, (list, tuple)):
        return [f for item in x for f in fakes_of(item)]
    return []


class Recorder:
    """What recorders share: the graph under construction, arguments as graphs have them."""

    #: whether a copy may stand for a view, and whether somebody would have seen that it does
    may_stand_in, stand_ins_seen = True, False
    #: how often a tensor that came as an input was changed
    outside_writes = 0

    def __init__(self, env: ShapeEnv | None = None) -> None:
        self.env = env or ShapeEnv()
        self.builder = Builder(self.env)
        self.grad = True
        self.constants: dict[Any, Any] = {}  # values that are copies of tensors nobody changes

    @property
    def graph(self) -> Graph:
        return self.builder.graph

    def input(self, x: Fake) -> Fake:
        """The fake as a new input of the graph."""
        x.value = self.builder.input(x.type)
        x.memory.outside = True
        return x

    def read(self, x: Fake) -> Any:
        """What stands for the tensor in a node's arguments."""
        raise NotImplementedError

    def call(self, op: Op, inplace: bool, args: list[Any]) -> Any:
        """The result of a call, recorded."""
        raise NotImplementedError

    def arg(self, x: Any) -> Any:
        """An argument as it stands in nodes."""
        if isinstance(x, Fake):
            return self.read(x)
        if isinstance(x, (list, tuple)):
            return tuple(self.arg(a) for a in x)
        if isinstance(x, SymInt):
            return plain(x)
        if isinstance(x, np.generic):  # a number of Python's, as graphs write it
            return x.item()
        return x.expr if isinstance(x, SymFloat) else x

    def add(self, target: str, args: Sequence[Any], results: Sequence[Fake]) -> None:
        """Records a node that defines the results."""
        read = tuple(self.arg(a) for a in args)
        types = tuple(r.type for r in results)
        node = self.builder.add(target, read, types, self.env.locate(), self.grad)
        for r, v in zip(results, node.outs, strict=True):
            r.value = v

    def propagate(self, op: Op, args: list[Any], results: Sequence[Fake]) -> None:
        """Which results require grad."""
        wanted = self.grad and bool(op.option("differentiable", True))
        wanted = wanted and any(x.requires_grad for x in fakes_of(args))
        if wanted and is_primitive(op.uid) and vjp(op.uid) is not None:
            given = [args[k] for k in differentiable(op.uid)]
            wanted = any(x.requires_grad for x in fakes_of(given))
        for r in results:
            r.requires_grad = r.requires_grad or (wanted and is_inexact(r.dtype))


def _asked_in_place(op: Op, args: list[Any]) -> bool:
    """Whether an entry with a parameter `inplace` is called with it."""
    return any(p.name == "inplace" and a is True for p, a in zip(op.params, args, strict=True))


class CapturedRecorder(Recorder):
    """One node for each call that the user's code makes.

    But where the program chooses among the implementations of attention, a call of it is recorded
    by what was chosen: nodes do not know the choice, which may change within a graph.
    """

    def __init__(self, env: ShapeEnv | None = None) -> None:
        super().__init__(env)
        self.attention = allowed()
        self.closed: set[Any] = set()  # values inside of regions
        self.takes_unbacked = False  # see Note [Sizes of a run]
        self.bound: dict[str, tuple[Fake, int]] = {}  # where the run finds such a size

    def read(self, x: Fake) -> Any:
        if x.wrapped:
            return self.arg(x.number)
        if x.value is None:
            raise RuntimeError("a tensor of another trace was used in this one")
        if x.value in self.closed:
            raise DataDependent("a tensor made by a function that is transformed leaves it")
        check_read(self, x)
        return x.value

    def call(self, op: Op, inplace: bool, args: list[Any]) -> Any:
        if op.name.startswith("as_strided"):
            refuse_place(self, args[0])
            for p, given in zip(op.params, args, strict=True):
                if p.name == "storage_offset":
                    _refuse_other_start(args[0], given)
        chosen = chooses_attention(op.uid) and self.chosen()
        if chosen or (op.kind == "composite" and _asked_in_place(op, args)):
            function = body(op.uid)  # only its parts say what was chosen, or what they change
            assert function is not None
            return Interpreter(partial(CapturedRecorder.call, self)).run(function, args)
        before = [self.arg(a) for a in args]
        if self.takes_unbacked:
            with taking(self.env):
                result = evaluate_call(op, inplace, args)
            settle(self.env, self.bound, fakes_of(result))
        else:
            result = evaluate_call(op, inplace, args)
        mutates = inplace or op.mutates
        given = {id(x) for x in fakes_of(args)}
        results = fakes_of(result)
        if not mutates and results and all(id(r) in given for r in results):
            return result  # the arguments themselves: nothing was computed
        self.propagate(op, args, results)
        types = tuple(r.type for r in results)
        target = op.inplace_uid if inplace else op.uid
        node = self.builder.add(target, tuple(before), types, self.env.locate(), self.grad)
        for r, v in zip(results, node.outs, strict=True):
            r.value = v
        changed = [args[i] for i in updated(op, args)]
        if mutates:
            changed += fakes_of(args[:1])
        for x in changed:
            x.memory.version += 1
            self.outside_writes += x.memory.outside
        for x in changed:
            write_below(self, x)
        return result

    def chosen(self) -> bool:
        """Whether the program allows other implementations of attention than usual."""
        return not self.attention == allowed() == USUAL


def _refuse_other_start(x: Fake, offset: Any) -> None:
    """Graphs count from where an input begins, not from where its storage does."""
    if offset is not None and x.memory.start is not None and x.memory.start() != 0:
        raise NotImplementedError(
            "as_strided: expected a tensor that begins where its storage does for storage_offset="
            f"{offset}, got one that begins at {x.memory.start()}; leave storage_offset out"
        )


def fake_input(
    x: Any, env: ShapeEnv, index: int, dynamic: Any, strided: Collection[int] = ()
) -> Fake:
    """A fake of an example tensor; sizes that vary become symbols.

    Args:
        x: the example.
        env: where symbols are made.
        index: number of the input, where its sizes are found.
        dynamic: False, True (all sizes), or the dims that vary.
        strided: dims whose strides vary, whatever the sizes are.
    """
    dims = range(x.dim()) if dynamic is True else dynamic or ()
    wanted = {d % x.dim() for d in dims} if x.dim() else set()
    shape = tuple(
        env.symbol(n, Origin(index, "size", d)) if d in wanted else n for d, n in enumerate(x.shape)
    )
    strides = list(_strides(x, shape))
    for d in strided:
        if isinstance(strides[d], int):
            strides[d] = env.symbol(strides[d], Origin(index, "stride", d))
    fake = Fake(x.dtype, shape, tuple(strides), x.device)
    start = x.storage_offset()
    fake.memory.start = lambda: start
    fake.requires_grad = x.requires_grad
    return fake


def _strides(x: Any, shape: tuple[Any, ...]) -> tuple[Any, ...]:
    """Strides of the example over symbolic sizes: products of sizes where they are dense."""
    order = sorted(range(x.dim()), key=lambda d: (x.stride(d), x.shape[d] > 1, -d))
    out: list[Any] = list(x.stride())
    step: Any = 1
    plain_step = 1
    for d in order:
        if x.stride(d) == plain_step:
            out[d] = step
        if x.stride(d) != 0:
            step, plain_step = out[d] * shape[d], x.stride(d) * x.shape[d]
    return tuple(out)
