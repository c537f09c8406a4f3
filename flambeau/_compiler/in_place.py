"""Inputs that a graph replaces get their new values in the memory that they have.

A functional graph gives the new value of such an input as a result, and whoever runs it copies that
back. The copy falls away where nobody can tell: the old value is not read once the new one is being
written, no other output shows either, and no call that might raise would find the input changed too
early. An operation with an in-place form then works in the input's memory, a nest stores into it,
and what a nest would only have copied from the input to itself is left out.
Invariant: the program gives what it gave before. Knows nothing of history, which is the caller's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .._ir.graph import Graph
from .._ir.targets import resolve
from .emit_cpp import strategy
from .emit_segments import Segments
from .nest import Call, Nest, Program, Stage, Step, Store, View, views_of
from .scalar import Body, Scalar, guarded, rewritten, walk


def in_place(
    program: Program, body: Body, graph: Graph, replaced: Sequence[tuple[int, int]]
) -> Program:
    """The program with the memory of replaced inputs for their new values, where that is right.

    Args:
        program: of a graph; the steps of equal nodes are in the order of the graph.
        body: what its nests are made of.
        graph: what the program was made of.
        replaced: positions of a result and of the input whose new value it is.
    """
    for result, position in replaced:
        own = program.inputs[position]
        earlier = _kept_in_part(program, program.outputs[result])
        while earlier is not None:  # of several writes to parts, each takes the memory of the last
            made = _Replacement(program, body, graph, result, earlier).made()
            if made is None:
                break
            program, earlier = made, _kept_in_part(made, made.outputs[result])
        if own is not None:
            program = _Replacement(program, body, graph, result, own).made() or program
    return program


def _kept_in_part(program: Program, view: Any) -> str | None:
    """The temporary buffer of which a result keeps a part as it is."""
    if not isinstance(view, View):
        return None
    stores = [s for n in program.steps if isinstance(n, Nest) for s in n.statements]
    found = {
        s.value.value[0]
        for s in stores
        if isinstance(s, Store) and s.buffer == view.buffer and _stays(s, s.value.value)
    } - {view.buffer}
    ending = [name for name in found if program.buffers[name].kind == "temporary"]
    return ending[0] if len(ending) == 1 else None


def _stays(s: Store, place: Any) -> bool:
    """Whether a store only copies what is at the same place of another buffer."""
    return s.value.op == "load" and place[1:] == (s.index, s.memory)


class _Replacement:
    """An input, or a buffer that ends, and its new value."""

    def __init__(self, program: Program, body: Body, graph: Graph, result: int, own: str) -> None:
        self.program, self.body, self.graph = program, body, graph
        self.result, self.own = result, own
        self.new: set[str] = set()  # the new value, and what it was before the last change
        self.value = graph.outputs[result]  # the earliest of them

    def made(self) -> Program | None:
        """The program with the new value in the memory of the old; None where that is not right."""
        view = self.program.outputs[self.result]
        if not isinstance(view, View):
            return None
        shown = [v.buffer for v in views_of(tuple(self.program.outputs))]
        if view.buffer in self.program.inputs or not self.is_whole(view):
            return None
        if self.own in shown or shown.count(view.buffer) > 1:
            return None
        if not self.follow(view.buffer):
            return None
        steps = [(s, self.changed(s)) for s in self.program.steps]
        kept = [(old, new) for old, new in steps if new is not None]
        if not self.is_right(kept):
            return None
        outputs = list(self.program.outputs)
        outputs[self.result] = replace(view, buffer=self.own)
        buffers = {name: b for name, b in self.program.buffers.items() if name not in self.new}
        left = [new for _, new in kept]
        return replace(self.program, steps=left, outputs=outputs, buffers=buffers)

    def follow(self, name: str) -> bool:
        """Whether a buffer is made by nests, or by operations in place of the input or of another
        such buffer; these are `new` then."""
        if not self.program.buffers[name].lies_as(self.program.buffers[self.own]):
            return False
        self.new.add(name)
        writers = [s for s in self.program.steps if name in s.writes]
        if all(isinstance(s, Nest) for s in writers):
            return True
        call = writers[0]
        if len(writers) > 1 or not isinstance(call, Call) or not _works_in_place(call):
            return False
        first = call.args[0]
        others = views_of(call.args[1:])
        if not isinstance(first, View) or any(v.buffer == first.buffer for v in others):
            return False
        if not self.is_whole(first):
            return False
        if first.buffer == self.own:
            return True
        shown = {v.buffer for v in views_of(tuple(self.program.outputs))}
        if first.buffer in shown or first.buffer in self.program.inputs:
            return False
        uses = [s for s in self.program.steps if first.buffer in s.reads | s.writes]
        self.value = call.node.args[0]
        return uses[-1] is call and self.follow(first.buffer)

    def is_whole(self, view: View) -> bool:
        return view.offset == 0 and self.program.buffers[view.buffer].lies_as(view)

    def changed(self, step: Step) -> Step | None:
        """A step in the new memory; None where nothing is left to do."""
        if self.new.isdisjoint(step.reads | step.writes):
            return step
        if isinstance(step, Nest):
            return self.stored(step)
        args = _with_buffer(step.args, self.new, self.own)
        if self.new.isdisjoint(step.outs):
            return replace(step, args=args)
        return replace(step, args=args, outs=(), own=True)

    def stored(self, nest: Nest) -> Nest | None:
        own, new = self.own, self.new

        def change(n: Scalar) -> Scalar | None:
            if n.op == "load" and n.value[0] in new:
                args = [rewritten(self.body, a, change) for a in n.args]
                return self.body.make("load", n.type, args, (own, *n.value[1:]))
            return None

        stages: list[Stage] = []
        for stage in nest.stages:
            statements = []
            for s in stage.statements:
                s = replace(s, value=rewritten(self.body, s.value, change))
                if isinstance(s, Store) and s.buffer in new:
                    s = replace(s, buffer=own)
                    if _stays(s, s.value.value) and s.value.value[0] == own:
                        continue
                statements.append(s)
            stages += [Stage(stage.kind, statements)] if statements else []
        return replace(nest, stages=stages) if stages else None

    def is_right(self, steps: Sequence[tuple[Step, Step]]) -> bool:
        """No step reads the old value once the new one is being written, none that might raise
        comes too late."""
        first = next((k for k, (_, new) in enumerate(steps) if self.own in new.writes), None)
        if first is None:
            return False
        for k, (old, new) in enumerate(steps):
            if self.own not in old.reads:
                continue
            if isinstance(old, Call) and resolve(old.node.target).op.kind == "view":
                return False  # what it gives shows the input
            if isinstance(new, Nest) and k >= first and self.own not in _kept_loads(new, old):
                continue  # it read what stays as it is
            if k > first or (k == first and not self.reads_first(old, new)):
                return False
        if isinstance(steps[first][0], Call):
            return True
        raising = any(isinstance(new, Nest) and new.checks for _, new in steps[first:])
        return not raising and not self.overtaken(steps[first + 1 :])

    def reads_first(self, old: Step, new: Step) -> bool:
        """Whether the step that begins to write has read each old element by then."""
        if isinstance(old, Call) or isinstance(new, Call):
            return True  # `follow` has seen that it reads no other part
        stores = [s for s in new.statements if isinstance(s, Store) and s.buffer == self.own]
        nodes = walk(s.value for s in new.statements)
        if len(stores) != 1 or any(guarded(n) for n in nodes):  # those may run a second time
            return False
        loads = {id(n) for n in nodes if n.op == "load" and n.value[0] == self.own}
        if any(id(n) in loads and n.value[1] != stores[0].index for n in nodes):
            return False
        at = next(k for k, s in enumerate(new.statements) if s is stores[0])
        before = {id(n) for n in walk(s.value for s in new.statements[: at + 1])}
        after = {id(n) for n in walk(s.value for s in new.statements[at + 1 :])}
        if strategy(new) != "flat":
            return loads.isdisjoint(after)
        every = [s for s in new.statements if isinstance(s, Store)]
        # In one loop equal loads are one, made when first needed.
        return loads <= before if Segments(every).count == 1 else len(every) == 1

    def overtaken(self, later: Sequence[tuple[Step, Step]]) -> bool:
        """Whether an operation that runs before the change in the graph comes after it now: it
        might raise, and the input would have changed."""
        places = {id(n): k for k, n in enumerate(self.graph.nodes)}
        made = [k for k, n in enumerate(self.graph.nodes) if self.value in n.outs]
        calls = [old.node for old, _ in later if isinstance(old, Call)]
        return not made or any(places[id(n)] < made[0] for n in calls)


def _kept_loads(new: Nest, old: Step) -> set[str]:
    """Buffers that a nest still loads by the loads that it had."""
    assert isinstance(old, Nest)
    had = {id(n) for n in walk(s.value for s in old.statements) if n.op == "load"}
    now = walk(s.value for s in new.statements)
    return {n.value[0] for n in now if n.op == "load" and id(n) in had}


def _works_in_place(call: Call) -> bool:
    """Whether an operation has a form that changes its first argument, and gives just that."""
    target = resolve(call.node.target)
    if target.form == "new":
        return not target.op.updates
    return not target.form and bool(target.op.option("own_memory"))


def _with_buffer(args: tuple[Any, ...], names: set[str], own: str) -> tuple[Any, ...]:
    """Arguments with another buffer for the named ones."""
    out: list[Any] = []
    for a in args:
        if isinstance(a, View) and a.buffer in names:
            a = replace(a, buffer=own)
        elif isinstance(a, tuple):
            a = _with_buffer(a, names, own)
        out.append(a)
    return tuple(out)
