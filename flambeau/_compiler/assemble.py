"""A program of nests and calls as the native object that runs it (csrc/runtime/program.h).

Everything is numbered here: buffers, parameters, sizes that vary. Must not decide anything about
memory, which is `plan`'s, nor about loops.
"""

from __future__ import annotations

from typing import Any

from flambeau import _C

from .._ir.enumerations import ArgumentKind, StepKind
from .._ir.formula import Numbers
from .._ir.symbols import ShapeEnv
from .._ir.symexpr import Expr
from .._ir.symscalar import FloatExpr
from .._ir.targets import resolve, updated
from .nest import Call, Nest, Program, View, views_of
from .plan import Allocate, Change, Free, Instruction, Run, Take, last_uses, plan


def assemble(spec: tuple[Any, ...], library: Any, attached: tuple[Any, ...] = ()) -> Any:
    """The native program; `library` has its nests, `attached` are its last inputs."""
    nests = None if library is None else library.function("run")
    return _C._Program(spec, tuple(attached), nests)


def describe(program: Program, env: ShapeEnv) -> tuple[Any, ...]:
    """What the native program is made of, as plain data."""
    return _Assembly(program, env).spec()


class _Assembly:
    def __init__(self, program: Program, env: ShapeEnv) -> None:
        self.program, self.numbers = program, Numbers(env)
        self.buffers = _filled(program)
        self.last = last_uses(program)
        self.kept = {v.buffer for v in views_of(tuple(program.outputs))}
        self.kept.update(n for n in program.inputs if n is not None)
        self.nests: dict[int, int] = {}
        for k, s in enumerate(program.steps):
            if isinstance(s, Nest):
                self.nests[k] = len(self.nests)
        self.views: list[Any] = []

    def spec(self) -> tuple[Any, ...]:
        program, numbers = self.program, self.numbers
        buffers = tuple(numbers.geometry(b.dtype, b.shape, b.strides) for b in self.buffers)
        inputs = tuple(None if n is None else _index(n) for n in program.inputs)
        steps = tuple(map(self.step, plan(program)))
        output = numbers.output(tuple(program.outputs), self.result)
        return (numbers.spec(), buffers, inputs, steps, tuple(self.views), output)

    def result(self, a: Any) -> int | None:
        """The index of an output that is a tensor."""
        if not isinstance(a, View):
            return None
        self.views.append(self.view(a))
        return len(self.views) - 1

    def view(self, v: View) -> tuple[Any, ...]:
        return (_index(v.buffer), self.numbers.geometry(v.dtype, v.shape, v.strides, v.offset))

    def step(self, i: Instruction) -> tuple[Any, ...]:
        match i:
            case Allocate(name):
                return (StepKind.Allocate, _index(name))
            case Take(name, other):
                return (StepKind.Take, _index(name), _index(other))
            case Free(name):
                return (StepKind.Free, _index(name))
            case Change(name):
                return (StepKind.Change, _index(name))
            case Run(k):
                step = self.program.steps[k]
                if isinstance(step, Nest):
                    return (StepKind.Nest, self.nests[k], tuple(map(_check, step.checks)))
                return self.call(step, k)

    def call(self, call: Call, k: int) -> tuple[Any, ...]:
        """An entry of the table; what it would change in place it is given copies of, or buffers
        that nothing needs after it."""
        target = resolve(call.node.target)
        op = target.op
        if target.form == "inplace":
            raise NotImplementedError(f"compile: {call.node.target} in a functional graph")
        updates = target.form == "new" and bool(op.updates)
        places = updated(op, call.node.args) if updates else [0] if target.form == "new" else []
        uid = op.uid
        if call.own:
            uid, places = uid if target.form else op.inplace_uid, []
        elif op.option("own_memory") and self.takes_over(call, k):
            uid, places = op.inplace_uid, [0]
        ending = tuple(i for i in places if self.is_last(call, call.args[i], k))
        args = tuple(map(self.argument, call.args))
        spread = len(op.outputs) == 1 and op.outputs[0].is_list
        outs = tuple(map(_index, call.outs))
        return (StepKind.Entry, uid, args, outs, tuple(places), updates, spread, ending)

    def takes_over(self, call: Call, k: int) -> bool:
        """Whether the result may lie in the memory of the first argument, which ends with this."""
        first, (out,) = call.args[0], call.outs
        buffers = self.program.buffers
        return self.is_last(call, first, k) and buffers[out].lies_as(buffers[first.buffer])

    def is_last(self, call: Call, a: Any, k: int) -> bool:
        """Whether a view is all of a buffer that ends with step k."""
        if not isinstance(a, View):
            raise NotImplementedError(f"compile: {call.node.target} of a number")
        b = self.program.buffers[a.buffer]
        whole = (a.shape, a.strides, a.offset) == (b.shape, b.strides, 0)
        alone = sum(v.buffer == a.buffer for v in views_of(call.args)) == 1
        return whole and alone and self.last[a.buffer] == k and a.buffer not in self.kept

    def argument(self, a: Any) -> tuple[int, Any]:
        if isinstance(a, View):
            return (ArgumentKind.OneView, self.view(a))
        if isinstance(a, Expr):
            if a.constant is None:
                return (ArgumentKind.Integer, self.numbers.index(a))
            return (ArgumentKind.Constant, a.constant)
        if isinstance(a, FloatExpr):
            return (ArgumentKind.Float, self.numbers.floating(a))
        if isinstance(a, tuple) and any(isinstance(x, View) for x in a):
            return (ArgumentKind.Views, tuple(self.element(x) for x in a))
        if isinstance(a, tuple) and any(isinstance(x, Expr) for x in a):
            return (ArgumentKind.Integers, self.numbers.geometry(_C.int64, a, (0,) * len(a)))
        if isinstance(a, tuple) and any(isinstance(x, FloatExpr) for x in a):
            raise NotImplementedError("compile: a list of numbers that vary")
        return (ArgumentKind.Constant, a)

    def element(self, a: Any) -> tuple[Any, ...] | None:
        if a is None or isinstance(a, View):
            return None if a is None else self.view(a)
        raise NotImplementedError("compile: a list of tensors and numbers")


def _index(name: str) -> int:
    return int(name[1:])


def _check(text: str) -> tuple[bool, str]:
    """Whether an error is an IndexError (else a RuntimeError), and what it says."""
    kind, _, said = text.partition(": ")
    return kind == "IndexError", said


def _filled(program: Program) -> list[Any]:
    """Buffers by number; one that a pass has removed leaves an empty place."""
    count = 1 + max((_index(n) for n in program.buffers), default=-1)
    some = next(iter(program.buffers.values()), None)
    return [program.buffers.get(f"b{i}", some) for i in range(count)]
