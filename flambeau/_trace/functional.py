"""The recorder of the primitive level: composites run their bodies, nothing is changed in place.

Functionalisation follows memories. A write to a tensor gives it a new value; a write to a view
gives one to the tensor it is a view of, through the chain of views. A view whose memory was written
to since is made again when it is read.

Note [Writing through views]
The new value of the tensor below a view is `NAME_scatter` of the table where that exists, the
view's own derivative where the view is a bijection (it undoes a permutation), and
`as_strided_scatter` of everything else.
"""

from __future__ import annotations

from typing import Any

from .._ir.graph import CUSTOM, Block, Value
from .._ir.symbols import ShapeEnv
from .._ir.targets import updated
from .._table.entries import known, record
from .._table.model import Op
from . import geometry
from .fake import Fake, View, repeats, views_of
from .interp import Interpreter
from .record import Recorder, fakes_of, is_inexact
from .table import body, evaluate, evaluate_call, fits, is_primitive, vjp


class NotFunctional(NotImplementedError):
    """A change in place that no functional graph stands for; run as it is, it is right."""


class PrimitiveRecorder(Recorder):
    """Records a functional graph of primitives."""

    may_stand_in = False

    def __init__(self, env: ShapeEnv | None = None) -> None:
        super().__init__(env)
        #: what bodies made that stay in the operations they are written in (option `as_written`)
        self.as_written: set[Value] = set()

    def call(self, op: Op, inplace: bool, args: list[Any]) -> Any:
        if inplace:
            result = self.call(op, False, args)
            fits(op, args[0], result)
            self.write(args[0], result)
            self.propagate(op, args, args[:1])
            return args[0]
        if op.mutates and op.kind == "structured":
            return self.mutate(op, args)
        if op.option("unrelated") and not op.option("differentiable", True):
            return self.detached(args[0])
        if not is_primitive(op.uid):
            function = body(op.uid)
            assert function is not None
            start = len(self.graph.nodes)
            made = Interpreter(self.call).run(function, args)
            if op.option("as_written"):
                self.as_written.update(v for n in self.graph.nodes[start:] for v in n.outs)
            return made
        result = evaluate(op, args, evaluate_call)
        results = fakes_of(result)
        self.propagate(op, args, results)
        changed = [args[i] for i in updated(op, args)]
        made = [Fake(x.dtype, x.shape, x.strides, x.device) for x in changed]
        self.add(f"{op.uid}.new" if changed else op.uid, args, [*results, *made])
        for x, value in zip(changed, made, strict=True):
            self.write(x, value)
        if op.kind == "view":
            result.view_of = View(op, args, self.grad)
            result.seen = result.memory.version
        return result

    def mutate(self, op: Op, args: list[Any]) -> Any:
        """A mutating entry: its form that makes a new tensor, written back."""
        if op.mutated_lists:
            raise NotFunctional(f"{op.name}: not traced; it changes lists of tensors")
        target = args[0]
        evaluate(op, args, evaluate_call)
        made = Fake(target.dtype, target.shape, target.strides, target.device)
        self.add(f"{op.uid}.new", args, [made])
        self.propagate(op, args, [made])
        self.write(target, made)
        self.propagate(op, args, [target])
        return target

    # -- values ---------------------------------------------------------------------------------

    def read(self, x: Fake) -> Any:
        if x.only_number:
            return self.arg(x.number)
        if x.value is None:  # memory that a body took for itself
            kind = record("empty_strided")
            self.add(kind.uid, [list(x.shape), list(x.strides), x.dtype, x.device], [x])
            x.seen = x.memory.version
        elif x.seen < x.memory.version:
            self.refresh(x)
        return x.value

    def refresh(self, x: Fake) -> None:
        """Makes a view of what its memory holds now."""
        if x.view_of is None:
            raise NotFunctional("a tensor was changed through memory that it does not own")
        if x.requires_grad and not x.view_of.grad:
            raise NotFunctional("a detached view with a history of its own was read after a change")
        base = x.memory.base
        if x.view_of.op.name == "as_strided" and not geometry.is_dense(base.shape, base.strides):
            raise NotFunctional("a view that may show memory of gaps was read after a change")
        grad, self.grad = self.grad, x.view_of.grad
        self.add(x.view_of.op.uid, x.view_of.args, [x])
        self.grad = grad
        x.seen = x.memory.version

    def write(self, x: Fake, new: Fake) -> None:
        """`x` holds the values of `new` from now on."""
        if repeats(x):
            raise NotFunctional(
                "a tensor that shows an element more than once was changed in place"
            )
        new = self.conform(new, x)
        x.requires_grad = x.requires_grad or (self.grad and new.requires_grad)
        if x.view_of is None:
            value = self.read(new)
            memory = x.memory
            quiet = not self.grad and (memory.version == 0 or memory.quiet is not None)
            memory.quiet = value if quiet else None
            memory.late |= value not in self.graph.nodes[-1].outs if self.graph.nodes else True
            memory.version += 1
            keeps = x.requires_grad and not self.grad
            x.value = self.with_history(x, value) if keeps else value
        else:
            self.write_through(x, new)
            if x.requires_grad and not self.grad:
                return  # made again of what is below, it keeps its history
            x.value = self.read(new)
        x.seen = x.memory.version

    def write_through(self, x: Fake, new: Fake) -> None:
        """The tensor below the view `x` gets the values of `new`, see Note [Writing through views].

        What is written to a detached view changes no history but its own, nor does what is written
        to the bits of a number.
        """
        grad, views = self.grad, views_of(x)
        # Elements that the view below has twice would get their cotangents twice: not by way of it.
        direct = len(views) > 1 and repeats(views[1][0])
        passed = views if direct else views[:1]
        made = passed[-1][1]
        below = made.below
        detached = [m.op.name for v, m in passed if not (m.grad and is_inexact(v.dtype))]
        if grad and detached:
            if new.requires_grad and any(name != "alias" for name in detached):
                raise NotFunctional("a view made without gradients was changed with them")
            if below.requires_grad and new.requires_grad:
                raise NotFunctional(
                    "values with gradients were written to a detached view of a tensor that "
                    "requires grad"
                )
            self.grad = False
            if new.requires_grad:
                new = self.detached(new)
        placed = self.placed(below, new, x) if direct else self.scatter(made, new)
        self.write(below, placed)
        self.grad = grad

    def with_history(self, x: Fake, value: Any) -> Any:
        """New values written without gradients: those that arrive go where they went before."""
        g = self.builder.value(x.type)
        args = ((value,), (x.value,), ())
        node = self.builder.add(CUSTOM, args, (x.type,), self.env.locate(), True)
        node.blocks = (Block((g,), [], (g,)),)
        return node.out

    def detached(self, x: Fake) -> Any:
        """The same data without history: a view that is made without gradients."""
        grad, self.grad = self.grad, False
        made = self.call(record("alias"), False, [x])
        self.grad = grad
        return made

    def conform(self, new: Fake, x: Fake) -> Fake:
        """`new` in the dtype and layout of `x`."""
        if new.dtype is x.dtype and geometry.same(new.strides, x.strides):
            if not new.only_number:
                return new
        made = Fake(x.dtype, x.shape, x.strides, x.device)
        made.requires_grad = new.requires_grad and is_inexact(x.dtype)
        self.add("copy_.new", [x, new, False], [made])
        return made

    def scatter(self, made: View, new: Fake) -> Fake:
        """The tensor below a view once the view holds `new`, see Note [Writing through views]."""
        op, args, below = made.op, made.args, made.below
        own = f"{op.uid}_scatter"
        view = evaluate(op, list(args), evaluate_call)
        view.view_of = made
        if op.name == "as_strided":
            return self.placed(below, new, view)
        if known(own):
            return self.call(record(own), False, [below, new, *args[1:]])
        rule = vjp(op.uid)
        if rule is not None and _bytes(below) == _bytes(new) and not repeats(view):
            given = {"g": new, **{p.name: a for p, a in zip(op.params, args, strict=True)}}
            given[op.params[0].name] = below
            values = [given[p.name] for p in rule.params]
            return Interpreter(self.call).run(rule.function, values)[0]
        return self.placed(below, new, view)

    def placed(self, below: Fake, new: Fake, view: Fake) -> Fake:
        """`below` with `new` where a view of its memory lies."""
        if below.dtype is not view.dtype:
            raise NotFunctional("a view of another dtype was changed in place")
        if not geometry.is_contiguous(below.shape, below.strides):
            raise NotFunctional("a view was changed in place that shows memory of gaps")
        place = [list(view.shape), list(view.strides), view.offset]
        made: Fake = self.call(record("as_strided_scatter"), False, [below, new, *place])
        return made


def _bytes(x: Fake) -> Any:
    return x.numel() * x.dtype.itemsize
