"""Random programs over Python state: classes, objects, aliases, and a function that reads and
writes them by many ways, between operations on tensors and graph breaks.

A program is a tree of lines, so that it can be made smaller, and its text defines `setup`, `f` and
what happens to the state between two calls. Invariant: what is drawn is fixed by the seed. Programs
may raise; sets are not iterated, and no address is shown, so that a program does one thing only.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from ._state_parts import CLASS_PARTS, HEAD, LISTS, MAPPINGS, MODULE_WAYS

NAMES = ("p", "q", "r", "n")
KEYS = ("'p'", "'q'", "'k'", "3")
OBJECTS = ("a", "b", "a.other", "c")
ROOTS = ("a", "b", "c", "m", "d", "e", "l")


@dataclass
class Node:
    """A line, or a line that opens a block."""

    text: str
    body: list[Node] = field(default_factory=list)

    def lines(self, depth: int) -> list[str]:
        out = ["    " * depth + self.text]
        for node in self.body:
            out += node.lines(depth + 1)
        if self.text.endswith(":") and not self.body:
            out.append("    " * (depth + 1) + "pass")
        return out

    def copy(self) -> Node:
        return Node(self.text, [n.copy() for n in self.body])


@dataclass
class Program:
    """Classes, what makes the state, the function, and changes between its calls."""

    seed: int
    classes: list[Node]
    setup: list[Node]
    body: list[Node]
    between: list[Node]
    form: str = "arguments"  # how the function reaches the state

    def text(self) -> str:
        out = [HEAD]
        for node in self.classes:
            out += ["\n".join(node.lines(0)), ""]
        roots = ", ".join(ROOTS)
        made = [Node("def setup():", [*self.setup, Node(f"return {roots}")])]
        if self.form == "globals":
            made.append(Node(f"{roots} = setup()"))
            made.append(Node("def roots():", [Node(f"return {roots}")]))
            given = ""
        else:
            made.append(Node("ROOTS = setup()"))
            made.append(Node("def roots():", [Node("return ROOTS")]))
            given = f", {roots}"
        body = [Node("out = []"), *self.body, Node("return x, out")]
        if self.form == "closure":
            inner = [Node("def f(x):", body), Node("return f")]
            made += [Node(f"def make({roots}):", inner), Node("f = make(*ROOTS)")]
            call = "f(x)"
        else:
            made.append(Node(f"def f(x{given}):", body))
            call = "f(x, *ROOTS)" if given else "f(x)"
        made.append(Node("def call(f, x):", [Node(f"return {call}")]))
        made.append(Node(f"def between({roots}, step):", [Node("out = []"), *self.between]))
        for node in made:
            out += [*node.lines(0), ""]
        return "\n".join(out)


def nodes(program: Program) -> Iterator[tuple[list[Node], int]]:
    """Every node of a program, as a place in a list; inner ones after those around them."""

    def visit(items: list[Node]) -> Iterator[tuple[list[Node], int]]:
        for k in reversed(range(len(items))):
            yield items, k
            if k < len(items):
                yield from visit(items[k].body)

    for items in (program.body, program.between, program.setup, program.classes):
        yield from visit(items)


class Drawer:
    """Draws one program."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.functions: list[Node] = []

    def choose(self, *options: str) -> str:
        return self.rng.choice(options)

    # -- expressions -------------------------------------------------------------------------------

    def name(self) -> str:
        return self.rng.choice(NAMES)

    def read(self) -> str:
        """An expression that reads some state."""
        o, n, k = self.rng.choice(OBJECTS), self.name(), self.rng.choice(KEYS)
        d, i = self.choose("d", "e", "a.map", "kept"), self.choose("0", "-1", "1")
        return self.choose(
            f"{o}.{n}", f"{o}.{n}", f"{o}.{n}", f"getattr({o}, '{n}')",
            f"getattr({o}, '{n}', 7)", f"{o}.__dict__['{n}']", f"vars({o})['{n}']",
            f"{o}.__dict__.get('{n}', 5)", f"object.__getattribute__({o}, '{n}')",
            f"hasattr({o}, '{n}')", f"'{n}' in {o}.__dict__", f"list({o}.__dict__)",
            f"len(vars({o}))", f"{o}.get_{n}()", f"{o}.total()", "dict(a.__dict__)",
            f"{d}[{k}]", f"{d}.get({k}, 2)", f"{d}.get({k})", f"{k} in {d}", f"len({d})",
            f"list({d})", f"list({d}.items())", f"list({d}.values())", f"list({d}.keys())",
            f"dict({d})", f"l[{i}]", "len(l)", "list(l)", "l[:]", "sum(map(num, l))", "a.items[0]",
            f"[num(v) for v in {d}.values()]", "G", "GL", "GD.get('p')", "counter()",
            "remember(1)", "noted(2)", "counter.__dict__", "remember.__defaults__",
            "a is b", "a.map is d", "a.items is l", "a.__dict__ is kept", "b.__dict__ is kept",
            "a.other is b", "helper.state", "x.sum()", "kind.G", "type(d).__name__",
            "point.x", "point", "record.x", "record.name", "record['x']", "list(record.items())",
            "counter.__closure__[0].cell_contents", "noted.__kwdefaults__", "point.note",
            *MODULE_WAYS["read"],
        )  # fmt: skip

    def value(self) -> str:
        """An expression for something to store."""
        i = self.rng.randrange(6)
        return self.choose(
            str(i), str(i), f"{i}.5", f"'s{i}'", "x", "x * 2", "x.sum()", f"[{i}]", "None",
            self.read(), self.read(), f"num({self.read()}) + {i}", "l", "(1, x)",
        )  # fmt: skip

    # -- statements --------------------------------------------------------------------------------

    def write(self) -> str:
        """A statement that changes some state."""
        o, n, k, v = self.rng.choice(OBJECTS), self.name(), self.rng.choice(KEYS), self.value()
        d = self.choose("d", "e", "a.map", "kept", "d", "e")
        return self.choose(
            f"{o}.{n} = {v}", f"{o}.{n} = {v}", f"{o}.{n} = {v}", f"setattr({o}, '{n}', {v})",
            f"object.__setattr__({o}, '{n}', {v})", f"{o}.__dict__['{n}'] = {v}",
            f"vars({o})['{n}'] = {v}", f"{o}.__dict__.update({n}={v})",
            f"{o}.__dict__.setdefault('{n}', {v})", f"{o}.__dict__.pop('{n}', None)",
            f"del {o}.{n}", f"delattr({o}, '{n}')", f"object.__delattr__({o}, '{n}')",
            f"{o}.{n} += {self.rng.randrange(4)}", f"{o}.set_{n}({v})", f"{o}.bump()",
            f"kept = {o}.__dict__", f"kept['{n}'] = {v}", f"kept.pop('{n}', None)",
            f"del {o}.__dict__['{n}']", f"{o}.__dict__ |= {{'{n}': {v}}}",
            f"{o}.__dict__ = {{'{n}': {v}, 'items': l, 'map': d, 'other': b}}",
            "b.__dict__ = a.__dict__", "c.__dict__ = dict(a.__dict__)",
            f"a.other = {self.choose('a', 'b', 'c', 'd')}", f"a.map = {self.choose('d', 'e')}",
            f"{d}[{k}] = {v}", f"{d}[{k}] = {v}", f"{d}[{k}] = {v}", f"{d}.update({{{k}: {v}}})",
            f"{d}.update(q={v})", f"{d}.pop({k}, None)", f"{d}.pop({k})", f"del {d}[{k}]",
            f"{d}.setdefault({k}, {v})", f"{d}[{k}] += 1", f"{d}.clear()", f"{d}.popitem()",
            f"out.append({d}.copy())", f"e.move_to_end({k})", f"dict.__setitem__(d, {k}, {v})",
            f"l.append({v})", f"l[0] = {v}", "l.pop()", f"l.insert(0, {v})", f"l += [{v}]",
            f"l.extend([{v}, 1])", "l.reverse()", "del l[0]", f"l[1:] = [{v}]", "l.note = 3",
            f"a.items.append({v})", f"a.items = {self.choose('l', '[]', '[1, x]')}",
            f"bump_global({v})", f"GL.append({v})", f"GD['p'] = {v}", "counter()",
            f"remember({v})", f"noted({v})", f"counter.note = {v}", f"helper.state = {v}",
            f"kind.G = {v}", f"a.q, b.q = b.q, {v}", f"c = Plain(p={v})", f"kept = dict(q={v})",
            f"record = Record(x={v})", f"record.name = {v}", f"record['x'] = {v}",
            f"point = Point({v}, 2)", f"point = point._replace(x={v})", f"point.note = {v}",
            f"c = {self.choose('A', 'B')}()", "x.mul_(1.5)", f"d = {{'p': {v}}}",
            f"e = Ordered([('q', {v}), ('p', 1)])", "l = [*l, *l[:1]]",
            f"out.append({o})", f"out.append({o}.__dict__)", "out.append((d, l, kept))",
            *MODULE_WAYS["write"],
        )  # fmt: skip

    def statement(self, depth: int, in_loop: bool = False) -> Node:
        roll = self.rng.random()
        if roll < 0.38:
            return Node(self.write())
        if roll < 0.55:
            return Node(f"out.append({self.read()})")
        if roll < 0.66:
            return Node(f"x = x {self.choose('+', '*')} num({self.read()})")
        if roll < 0.74:
            return Node(self.choose("torch._dynamo.graph_break()", "opaque('a')"))
        if roll < 0.76:
            return Node(self.choose(f"if num({self.read()}) > 3: raise ValueError('large')",
                                    "raise KeyError('stop')"))  # fmt: skip
        if depth >= 2:
            return Node(self.write())
        return self.block(depth)

    def block(self, depth: int) -> Node:
        d = self.choose("d", "e", "a.map")
        o = self.rng.choice(OBJECTS)
        head = self.choose(
            "for i in range(2):", f"for k in list({d}):", f"for k, v in {d}.items():",
            "for v in l:", f"for k in {d}:", f"for v in walk({o}):", f"with {o}:",
            f"with changed({o}):", f"if num({self.read()}) > 2:", "try:", "try:", "def inner():",
            "for k in [*a.__dict__]:", f"while num({o}.{self.name()}) < 3:",
        )  # fmt: skip
        body = [self.statement(depth + 1, True) for _ in range(self.rng.randrange(1, 4))]
        if head.startswith(("for k in", "for k, v")) and self.rng.random() < 0.5:
            body.append(Node(f"{d}[k] = {self.value()}"))
        if head.startswith("while"):
            body.append(Node(f"{head[10:].partition(')')[0]} += 1"))
        if head.startswith("while") or head == "for v in l:":  # it may grow as it is read
            body[:0] = [Node("out.append(0)"), Node("if len(out) > 40: break")]
        if head == "try:":
            handler = [self.statement(depth + 1) for _ in range(self.rng.randrange(0, 2))]
            kinds = self.choose("Exception", "(AttributeError, KeyError)", "ValueError")
            rest = Node(f"except {kinds} as error:", [Node("out.append(type(error))"), *handler])
            last = [Node("finally:", [Node(self.write())])] if self.rng.random() < 0.2 else []
            return Node("if True:", [Node(head, body), rest, *last])
        if head.startswith("def"):
            shared = Node("nonlocal x, kept, c, out")
            return Node("if True:", [Node(head, [shared, *body]), Node("inner()")])
        return Node(head, body)

    # -- the whole ---------------------------------------------------------------------------------

    def one_class(self, name: str, base: str) -> Node:
        rng = self.rng
        body = [Node(f"{rng.choice(NAMES)} = {rng.randrange(5)}")] if rng.random() < 0.5 else []
        count = rng.choice((0, 1, 1, 2, 2, 3))
        for part in rng.sample(CLASS_PARTS, count):
            text = part.replace("NAME", self.name()).replace("OTHER", self.name())
            body += parsed(text)
        return Node(f"class {name}({base}):", body)

    def program(self, length: int) -> Program:
        rng = self.rng
        base = rng.choice(("Plain", "Plain", "Slotted", "Tracked", "Data"))
        classes = [self.one_class("A", base)]
        classes.append(self.one_class("B", rng.choice(("A", "Plain", base))))
        setup = [Node(f"l = {rng.choice(LISTS)}"), Node(f"d = {rng.choice(MAPPINGS)}")]
        setup.append(Node(f"e = {rng.choice(MAPPINGS[:-3])}"))
        setup += [Node("a = A()"), Node(f"b = {rng.choice(('A()', 'B()', 'B()', 'a'))}")]
        setup.append(Node(f"c = {rng.choice(('Plain()', 'A()', 'B()'))}"))
        setup += [Node("a.items = l"), Node("a.map = d"), Node("a.other = b"), Node("m = M()")]
        for _ in range(rng.randrange(4)):
            setup.append(Node(self.start()))
        form = rng.choice(("arguments", "arguments", "globals", "closure"))
        names = ", ".join((*ROOTS, "kept", "record", "point"))
        body = [Node(f"global {names}")] if form == "globals" else []
        if form == "closure":
            body = [Node(f"nonlocal {', '.join(ROOTS)}")]
        body += [Node("kept = a.__dict__"), Node("record = Record(x=x)"),
                 Node("point = Point(1, x)")]  # fmt: skip
        steps = [self.statement(0) for _ in range(length)]
        changes = [self.change() for _ in range(rng.randrange(4))]
        if form == "globals":  # `nonlocal` has nothing to name
            steps = [n for n in steps if not _defines(n)]
        return Program(self.seed, classes, setup, [*body, *steps], changes, form)

    def start(self) -> str:
        n, v = self.name(), self.rng.randrange(5)
        return self.choose(
            f"a.{n} = {v}", f"b.{n} = {v}", f"d['{n}'] = {v}", "a.kept = a.__dict__",
            "b.__dict__ = a.__dict__", "d['l'] = l", "d['p'] = a.__dict__", "l.append(d)",
            "l.append(a)", "e['q'] = d", f"a.__dict__['{n}'] = {v}", "m.k = a", "a.m = m",
            "a.items = list(l)", "GD['d'] = d", "helper.state = a.__dict__", f"c.{n} = [{v}]",
        )  # fmt: skip

    def change(self) -> Node:
        """Something that happens between two calls."""
        x = "torch.ones(3)"
        text = self.write()
        while any(w in text for w in ("kept", "record", "point", "out.append")):
            text = self.write()
        step = self.rng.randrange(3)
        safe = Node("try:", [Node(text.replace("x", x) if text == "x" else text)])
        quiet = Node("except Exception: pass")
        return Node(f"if step == {step}:", [Node("x = torch.ones(3)"), safe, quiet])


def _defines(node: Node) -> bool:
    return node.text.startswith("def") or any(map(_defines, node.body))


def parsed(text: str) -> list[Node]:
    """Lines indented by four spaces a level, as nodes."""
    out: list[Node] = []
    levels = [out]
    for line in text.strip("\n").splitlines():
        depth = (len(line) - len(line.lstrip())) // 4
        node = Node(line.strip())
        levels[depth].append(node)
        levels[depth + 1 :] = [node.body]
    return out


def generate(seed: int, length: int = 10) -> Program:
    return Drawer(seed).program(length)
