"""Random functions in the language of scripts: typed statements over numbers, text, containers, tensors.

Owns what is drawn and how a program is made smaller. A program is a tree of statements, so that any
of them can be left out. Must not know how programs are judged.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

TYPES = (
    "int", "float", "bool", "str", "List[int]", "List[float]", "List[str]", "Dict[str, int]",
    "Dict[int, float]", "Tensor", "Optional[int]", "Optional[Tensor]", "Tuple[int, str]",
    "List[Tensor]", "List[List[int]]", "Optional[str]", "Tuple[float, List[int]]",
)  # fmt: skip


@dataclass
class Step:
    """A statement: its line, and the blocks below it."""

    line: str
    blocks: list[list[Step]] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)  # of the blocks after the first
    kept: bool = False  # without it a loop might not end

    def text(self, depth: int) -> str:
        pad = "    " * depth
        out = pad + self.line + "\n"
        for i, b in enumerate(self.blocks):
            if i:
                out += pad + self.heads[i - 1] + "\n"
            out += "".join(s.text(depth + 1) for s in b) or pad + "    pass\n"
        return out


@dataclass
class Program:
    seed: int
    params: list[tuple[str, str]]
    steps: list[Step]
    helper: list[Step]

    def text(self) -> str:
        params = ", ".join(f"{n}: {t}" for n, t in self.params)
        body = "".join(s.text(1) for s in self.steps) or "    pass\n"
        helper = "".join(s.text(1) for s in self.helper)
        return (
            "from typing import Dict, List, Optional, Tuple\n\nimport flambeau as torch\n"
            "from flambeau import Tensor\n\n\n"
            f"def helper(a: int, b: str = 'h', c: Optional[int] = None) -> int:\n{helper}\n\n"
            f"def program({params}):\n{body}"
        )


class Draw:
    """Draws one program."""

    def __init__(self, seed: int, length: int) -> None:
        self.rng = random.Random(seed)
        self.scope: dict[str, str] = {}
        self.count = 0
        self.loops = 0
        self.left = length
        self.fixed: set[str] = set()  # counters of loops, which nothing assigns
        self.helping = False

    # -- expressions ------------------------------------------------------------------------------

    def pick(self, options: list[Callable[[], str]]) -> str:
        return self.rng.choice(options)()

    def names(self, t: str) -> list[str]:
        return [n for n, u in self.scope.items() if u == t]

    def expr(self, t: str, depth: int = 2) -> str:
        """An expression of a type."""
        names = self.names(t)
        if names and (depth == 0 or self.rng.random() < 0.35):
            return self.rng.choice(names)
        return getattr(self, "_" + "".join(c.lower() if c.isalnum() else "_" for c in t))(depth)

    def small(self) -> str:
        return str(self.rng.choice([-3, -2, -1, 0, 1, 2, 3, 5, 7]))

    def _int(self, d: int) -> str:
        if d == 0:
            return self.small()
        e, r = lambda: self.expr("int", d - 1), self.rng
        options = [
            self.small,
            lambda: f"({e()} {r.choice('+-')} {e()})",
            lambda: f"({e()} * {e()} % {r.choice([7, 101, -9])})",
            lambda: f"({e()} // {r.choice(['2', '-3', e()])})",
            lambda: f"({e()} {r.choice(['&', '|', '^'])} {e()})",
            lambda: f"len({self.expr(r.choice(['List[int]', 'str', 'Dict[str, int]', 'Tensor']), d - 1)})",
            lambda: f"({e()} if {self.cond(d - 1)} else {e()})",
            lambda: f"abs({e()})", lambda: f"-{e()}", lambda: f"min({e()}, {e()})",
            lambda: f"max({e()}, {e()})", lambda: f"int({self.expr('bool', d - 1)})",
            lambda: f"sum({self.expr('List[int]', d - 1)})",
            lambda: f"{self.expr('Dict[str, int]', d - 1)}.get({self.expr('str', d - 1)}, {e()})",
            lambda: f"{self.expr('str', d - 1)}.{r.choice(['find', 'count'])}({self.expr('str', 0)})",
            lambda: f"{self.expr('Tuple[int, str]', d - 1)}[0]",
            lambda: f"int({self.expr('float', 0)} % 50)",
            lambda: f"({self.expr('int', 0)} {r.choice(['or', 'and'])} {e()})",
            lambda: f"divmod({e()}, {r.choice([3, -4])})[{r.choice([0, 1])}]",
            lambda: f"{self.expr('Tensor', 0)}.size({r.choice([0, 1, -1])})",
            lambda: f"round({self.expr('float', 0)} % 9)",
        ]  # fmt: skip
        lists = self.names("List[int]")
        if lists:
            options.append(lambda: f"{r.choice(lists)}[{self.rng.choice([0, -1, 1])}]")
        optional = self.names("Optional[int]")
        if optional:
            n = r.choice(optional)
            options.append(lambda: f"({n} if {n} is not None else {e()})")
        if not self.helping:
            options.append(lambda: f"helper({e()}, {self.expr('str', 0)})")
            options.append(lambda: f"helper({e()}, c={self.expr('Optional[int]', 0)})")
        return self.pick(options)

    def _float(self, d: int) -> str:
        if d == 0:
            return self.rng.choice(["0.5", "-1.25", "2.0", "3.75", "0.0"])
        e, r = lambda: self.expr("float", d - 1), self.rng
        return self.pick([
            lambda: self._float(0),
            lambda: f"({e()} {r.choice('+-*')} {e()})",
            lambda: f"({e()} / {r.choice(['2', '4.0', e()])})",
            lambda: f"({self.expr('int', d - 1)} {r.choice('+-*/')} {e()})",
            lambda: f"float({self.expr('int', d - 1)})",
            lambda: f"({e()} % 3)", lambda: f"({e()} // 2)",
            lambda: f"min({e()}, {e()})", lambda: f"abs({e()})",
            lambda: f"({e()} if {self.cond(d - 1)} else {e()})",
            lambda: f"max({self.expr('List[float]', d - 1)})",
            lambda: f"{self.expr('Tuple[float, List[int]]', d - 1)}[0]",
            lambda: f"float({self.expr('Tensor', d - 1)}.sum())",
            lambda: f"{self.expr('Dict[int, float]', d - 1)}.get({self.expr('int', 0)}, {e()})",
        ])  # fmt: skip

    def _bool(self, d: int) -> str:
        return self.rng.choice(["True", "False"]) if d == 0 else self.cond(d - 1)

    def cond(self, d: int) -> str:
        """A condition that is a bool."""
        r = self.rng
        if d <= 0:
            names = self.names("bool")
            t = r.choice(["int", "float"])
            return (
                r.choice(names)
                if names and r.random() < 0.5
                else (
                    f"{self.expr(t, 0)} {r.choice(['<', '<=', '==', '!=', '>'])} {self.expr(t, 0)}"
                )
            )
        c = lambda: self.cond(d - 1)  # noqa: E731
        i = lambda: self.expr("int", d - 1)  # noqa: E731
        options = [
            lambda: f"({i()} {r.choice(['<', '<=', '==', '!=', '>', '>='])} {i()})",
            lambda: f"({self.small()} < {self.expr('int', 0)} <= {i()})",
            lambda: f"({c()} {r.choice(['and', 'or'])} {c()})",
            lambda: f"(not {c()})",
            lambda: (
                f"({self.expr('str', d - 1)} {r.choice(['==', '<', 'in'])} {self.expr('str', 0)})"
            ),
            lambda: f"({i()} {r.choice(['in', 'not in'])} {self.expr('List[int]', d - 1)})",
            lambda: f"({self.expr('str', 0)} in {self.expr('Dict[str, int]', d - 1)})",
            lambda: f"bool({self.expr('Tensor', d - 1)}.sum() > {self.expr('float', 0)})",
            lambda: f"({self.expr('List[int]', d - 1)} == {self.expr('List[int]', 0)})",
            lambda: f"any([{c()}, {c()}])",
            lambda: f"bool({i()})",
            lambda: f"{self.expr('str', d - 1)}.startswith({self.expr('str', 0)})",
        ]
        for t in ("Optional[int]", "Optional[Tensor]", "Optional[str]"):
            for n in self.names(t)[:1]:
                options.append(lambda n=n: f"({n} is {r.choice(['', 'not '])}None)")
        for n in self.names("Optional[int]")[:1]:
            options.append(lambda n=n: f"({n} is not None and {n} > {i()})")
        return self.pick(options)

    def _str(self, d: int) -> str:
        if d == 0:
            return repr(self.rng.choice(["", "a", "ab", "xyz", "b c", "q,r"]))
        e, r = lambda: self.expr("str", d - 1), self.rng
        return self.pick([
            lambda: self._str(0), lambda: f"({e()} + {e()})", lambda: f"({e()} * 2)",
            lambda: f"str({self.expr(r.choice(['int', 'float', 'bool']), d - 1)})",
            lambda: f"f'{{{self.expr('int', 0)}}}_{{{r.choice(self.names('str') or ['1'])}}}'",
            lambda: f"{e()}.{r.choice(['upper', 'lower', 'strip', 'title', 'swapcase'])}()",
            lambda: f"{e()}.replace('a', {self.expr('str', 0)})",
            lambda: f"{e()}[{r.choice(['1:', ':2', '::-1', '-2:'])}]",
            lambda: f"'-'.join({self.expr('List[str]', d - 1)})",
            lambda: f"({e()} if {self.cond(d - 1)} else {e()})",
            lambda: f"'{{}}:{{}}'.format({self.expr('int', d - 1)}, {self.expr('str', 0)})",
            lambda: f"{self.expr('Tuple[int, str]', d - 1)}[1]",
        ])  # fmt: skip

    def _list(self, t: str, d: int) -> str:
        r = self.rng
        item = t[5:-1]
        e = lambda: self.expr(t, d - 1)  # noqa: E731
        if d == 0:
            return f"[{', '.join(self.expr(item, 0) for _ in range(r.choice([1, 2, 3])))}]"
        n = f"q{d}"
        return self.pick([
            lambda: f"[{', '.join(self.expr(item, d - 1) for _ in range(r.choice([1, 2, 3])))}]",
            lambda: f"({e()} + {e()})",
            lambda: f"{e()}[{r.choice(['1:', ':-1', '::2', '::-1'])}]",
            lambda: f"[{n} for {n} in {e()}]",
            lambda: self.comprehension(t, item, d),
        ])  # fmt: skip

    def comprehension(self, t: str, item: str, d: int) -> str:
        n = f"q{d}"
        over, of = self.rng.choice([
            (f"range({self.rng.choice([0, 2, 4])})", "int"),
            (self.expr("List[int]", d - 1), "int"), (self.expr("List[str]", d - 1), "str"),
        ])  # fmt: skip
        outer = dict(self.scope)
        self.scope[n] = of
        made = self.expr(item, d - 1)
        test = f" if {self.cond(d - 1)}" if self.rng.random() < 0.4 else ""
        self.scope = outer
        return f"[{made} for {n} in {over}{test}]"

    def _list_int_(self, d: int) -> str:
        if d and self.rng.random() < 0.3:
            return self.pick([
                lambda: f"sorted({self.expr('List[int]', d - 1)})",
                lambda: f"list(range({self.small()}))",
                lambda: f"list({self.expr('Dict[str, int]', d - 1)}.values())",
                lambda: f"{self.expr('Tuple[float, List[int]]', d - 1)}[1]",
                lambda: f"[i * k for i, k in enumerate({self.expr('List[int]', d - 1)})]",
                lambda: f"[i + k for i, k in zip({self.expr('List[int]', d - 1)}, "
                        f"{self.expr('List[int]', d - 1)})]",
            ])  # fmt: skip
        return self._list("List[int]", d)

    def _list_float_(self, d: int) -> str:
        return self._list("List[float]", d)

    def _list_str_(self, d: int) -> str:
        if d and self.rng.random() < 0.3:
            return f"{self.expr('str', d - 1)}.split(',')"
        return self._list("List[str]", d)

    def _list_tensor_(self, d: int) -> str:
        return self._list("List[Tensor]", d)

    def _list_list_int__(self, d: int) -> str:
        return self._list("List[List[int]]", d)

    def _dict_str__int_(self, d: int) -> str:
        k, v = (lambda: self.expr("str", max(d - 1, 0))), (lambda: self.expr("int", max(d - 1, 0)))
        if d and self.rng.random() < 0.3:
            return f"{{str(q): q * 2 for q in {self.expr('List[int]', d - 1)}}}"
        return f"{{{k()}: {v()}, {k()}: {v()}}}"

    def _dict_int__float_(self, d: int) -> str:
        d = max(d - 1, 0)
        return f"{{{self.expr('int', d)}: {self.expr('float', d)}}}"

    def _tensor(self, d: int) -> str:
        if d == 0:
            return self.rng.choice(["torch.ones(2, 3)", "torch.full((2, 3), 0.5)"])
        e, r = lambda: self.expr("Tensor", d - 1), self.rng
        return self.pick([
            lambda: f"({e()} {r.choice('+-*')} {e()})",
            lambda: f"({e()} {r.choice('+-*')} {self.expr(r.choice(['int', 'float']), d - 1)})",
            lambda: f"({self.expr('float', d - 1)} {r.choice('+-*')} {e()})",
            lambda: f"torch.{r.choice(['tanh', 'relu', 'abs', 'neg'])}({e()})",
            lambda: f"{e()}.clamp(min={self.expr('float', 0)})", lambda: f"-{e()}",
            lambda: f"torch.where({e()} > {self.expr('float', 0)}, {e()}, {e()})",
            lambda: f"torch.stack([{e()}, {e()}]).mean(0)",
            lambda: f"{e()}[{r.choice(['[1, 0]', 'torch.tensor([1, 0])', ':'])}]",
            lambda: f"({e()} @ {e()}.t() @ torch.ones(2, 3))",
            lambda: f"({e()} if {self.cond(d - 1)} else {e()})",
        ])  # fmt: skip

    def _optional(self, item: str, d: int) -> str:
        if self.rng.random() < 0.4:
            return "None"
        return self.expr(item, max(d - 1, 0))

    def _optional_int_(self, d: int) -> str:
        return self._optional("int", d)

    def _optional_tensor_(self, d: int) -> str:
        return self._optional("Tensor", d)

    def _optional_str_(self, d: int) -> str:
        return self._optional("str", d)

    def _tuple_int__str_(self, d: int) -> str:
        d = max(d - 1, 0)
        return f"({self.expr('int', d)}, {self.expr('str', d)})"

    def _tuple_float__list_int__(self, d: int) -> str:
        d = max(d - 1, 0)
        return f"({self.expr('float', d)}, {self.expr('List[int]', d)})"

    # -- statements -------------------------------------------------------------------------------

    def block(self, depth: int) -> list[Step]:
        outer = dict(self.scope)
        steps = [s for _ in range(self.rng.choice([1, 2, 2, 3])) if (s := self.step(depth))]
        self.scope = outer
        return steps

    def new_name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def step(self, depth: int) -> Step | None:
        if self.left <= 0:
            return None
        self.left -= 1
        r = self.rng
        kinds = ["new"] * 4 + ["set"] * 4 + ["aug"] * 3 + ["change"] * 4
        if depth < 3:
            kinds += ["if"] * 3 + ["for"] * 2 + ["while", "narrow"]
        if self.loops and depth:
            kinds += ["jump"]
        if depth and r.random() < 0.1 and not self.helping:
            return Step(f"return {self.result()}") if self.returns else None
        return getattr(self, "s_" + r.choice(kinds))(depth)

    returns = False

    def result(self) -> str:
        return ""

    def s_new(self, depth: int) -> Step:
        t = self.rng.choice(TYPES)
        name, value = self.new_name(), self.expr(t)
        self.scope[name] = t
        return Step(f"{name}: {t} = {value}")

    def settable(self, *types: str) -> str | None:
        names = [n for n, t in self.scope.items()
                 if n not in self.fixed and (not types or t in types)]  # fmt: skip
        return self.rng.choice(names) if names else None

    def s_set(self, depth: int) -> Step | None:
        name = self.settable()
        if name is None:
            return None
        t = self.scope[name]
        other = self.settable(t)
        if other and other != name and self.rng.random() < 0.2:
            return Step(f"{name}, {other} = {other}, {self.expr(t)}")
        return Step(f"{name} = {self.kept_short(t, self.expr(t))}")

    def kept_short(self, t: str, value: str) -> str:
        """In loops, what could double with every turn is cut."""
        if self.loops and (t == "str" or t.startswith("List")):
            return f"({value})[:6]"
        return value

    def s_aug(self, depth: int) -> Step | None:
        name = self.settable("int", "float", "str", "List[int]", "Tensor")
        if name is None:
            return None
        t, r = self.scope[name], self.rng
        op = {"int": r.choice(["+", "-", "&"]), "float": r.choice("+-*"),
              "Tensor": r.choice("+-*")}.get(t, "+")  # fmt: skip
        if self.loops and t in ("str", "List[int]"):
            return Step(f"{name} += {'[1]' if t == 'List[int]' else repr('z')}")
        if t == "Tensor":
            return Step(f"{name} = {name} {op} {self.expr('float', 1)}")
        return Step(f"{name} {op}= {self.expr(t, 1)}")

    def s_change(self, depth: int) -> Step | None:
        name = self.settable("List[int]", "List[str]", "Dict[str, int]", "List[List[int]]",
                             "List[Tensor]", "Dict[int, float]", "List[float]")  # fmt: skip
        if name is None:
            return None
        t, r = self.scope[name], self.rng
        if t.startswith("Dict"):
            k, v = t[5:-1].split(", ")
            return Step(self.pick([
                lambda: f"{name}[{self.expr(k, 1)}] = {self.expr(v, 1)}",
                lambda: f"{name}.update({self.expr(t, 1)})",
                lambda: f"{name}.setdefault({self.expr(k, 1)}, {self.expr(v, 1)})",
                lambda: f"{name}.pop({self.expr(k, 0)})",
            ]))  # fmt: skip
        item = t[5:-1]
        return Step(self.pick([
            lambda: f"{name}.append({self.expr(item, 1)})",
            lambda: f"{name}.insert({r.choice([0, 1, -1])}, {self.expr(item, 1)})",
            lambda: f"{name}[{r.choice([0, -1])}] = {self.expr(item, 1)}",
            lambda: f"{name}.reverse()",
            lambda: f"{name}.extend({self.kept_short(t, self.expr(t, 1))})" if not self.loops
            else f"{name}.append({self.expr(item, 0)})",
            lambda: f"{name}.pop()" if r.random() < 0.7 else f"{name}.clear()",
            lambda: f"{name}[1:2] = {self.kept_short(t, self.expr(t, 0))}",
        ]))  # fmt: skip

    def s_if(self, depth: int) -> Step:
        test = self.cond(2)
        blocks, heads = [self.block(depth + 1)], []
        if self.rng.random() < 0.25:
            heads.append(f"elif {self.cond(1)}:")
            blocks.append(self.block(depth + 1))
        if self.rng.random() < 0.6:
            heads.append("else:")
            blocks.append(self.block(depth + 1))
        return Step(f"if {test}:", blocks, heads)

    def s_narrow(self, depth: int) -> Step | None:
        """What is tested for None is a value below."""
        t = self.rng.choice(["Optional[int]", "Optional[Tensor]", "Optional[str]"])
        name = self.settable(t)
        if name is None:
            return None
        outer = dict(self.scope)
        self.fixed.add(name)
        self.scope[name] = t[9:-1]
        inner = self.block(depth + 1)
        self.scope = outer
        self.fixed.discard(name)
        return Step(f"if {name} is not None:", [inner, self.block(depth + 1)], ["else:"])

    def s_for(self, depth: int) -> Step:
        r, name = self.rng, self.new_name()
        outer = dict(self.scope)
        kind = r.choice(["range", "list", "enumerate", "dict", "tensor", "zip", "text"])
        e, bound = self.expr, {name: "int"}
        if kind == "range":
            line = f"range({r.choice(['3', '1, 4', '5, 0, -2', e('int', 1) + ' % 4'])})"
        elif kind == "enumerate":
            bound = {name: "int", name + "i": "str"}
            line = f"enumerate({e('List[str]', 1)}[:5])"
        elif kind == "dict":
            bound = {name: "str", name + "i": "int"}
            line = f"list({e('Dict[str, int]', 1)}.items())"
        elif kind == "zip":
            bound = {name: "float", name + "i": "int"}
            line = f"zip({e('List[float]', 1)}[:3], {e('List[int]', 1)})"
        elif kind == "tensor":
            bound = {name: "Tensor"}
            line = f"{e('List[Tensor]', 1)}[:3]"
        elif kind == "text":
            bound = {name: "str"}
            line = f"{e('str', 1)}[:4]"
        else:
            line = f"{e('List[int]', 1)}[:4]"
        line = f"for {', '.join(bound)} in {line}:"
        self.scope.update(bound)
        self.loops += 1
        body = self.block(depth + 1)
        self.loops -= 1
        self.scope = outer
        return Step(line, [body])

    def s_while(self, depth: int) -> Step:
        name = self.new_name()
        outer = dict(self.scope)
        self.scope[name] = "int"
        self.fixed.add(name)
        self.loops += 1
        body = [Step(f"{name} += 1", kept=True), *self.block(depth + 1)]
        self.loops -= 1
        self.scope = outer
        test = f"{name} < {self.rng.choice([2, 4])}"
        if self.rng.random() < 0.4:
            test += f" and {self.cond(1)}"
        return Step("if True:", [[Step(f"{name} = 0"), Step(f"while {test}:", [body])]])

    def s_jump(self, depth: int) -> Step:
        word = self.rng.choice(["break", "continue"])
        return Step(f"if {self.cond(1)}:", [[Step(word)]])


def generate(seed: int, length: int) -> Program:
    """The program of a seed."""
    d = Draw(seed, length)
    d.helping = True
    d.scope = {"a": "int", "b": "str"}
    d.left = 4
    helper = [s for _ in range(3) if (s := d.step(1))]
    helper.append(Step("if c is not None:", [[Step("return a + c")]]))
    helper.append(Step("return a % 100 + len(b)"))
    d.helping = False
    d.count, d.left, d.fixed = 0, length, set()
    params = [("p0", "int"), ("p1", "float"), ("p2", "str"), ("p3", "List[int]"),
              ("p4", "Dict[str, int]"), ("p5", "Tensor"), ("p6", "Optional[int]"),
              ("p7", "Optional[Tensor]"), ("p8", "List[str]"), ("p9", "bool")]  # fmt: skip
    d.scope = dict(params)
    steps = []
    while d.left > 0:
        if s := d.step(0):
            steps.append(s)
    names = ", ".join(d.scope)
    steps.append(Step(f"return {names}"))
    return Program(seed, params, steps, helper)


def arguments(seed: int, torch: object) -> list[object]:
    """Arguments for the parameters of every program."""
    r = random.Random(seed)
    ints = [r.randint(-5, 9) for _ in range(r.choice([1, 3, 4]))]
    g = torch.Generator().manual_seed(seed)  # type: ignore[attr-defined]
    x = torch.randn(2, 3, generator=g)  # type: ignore[attr-defined]
    y = torch.randn(2, 3, generator=g)  # type: ignore[attr-defined]
    return [
        r.randint(-4, 8), r.choice([0.5, -2.25, 7.0]), r.choice(["ab", "a,b", "Xyz"]), ints,
        {"ab": 3, "x": r.randint(0, 9)}, x, r.choice([None, 4]), y if r.random() < 0.5 else None,
        ["a", "ab"][: r.choice([1, 2])], r.random() < 0.5,
    ]  # fmt: skip


def shrunk(program: Program, fails: Callable[[Program], bool]) -> Program:
    """A smaller program that fails too: statements left out, blocks in place of what held them."""

    def without(steps: list[Step]) -> list[list[Step]]:
        out = []
        for i, s in enumerate(steps):
            if not s.kept:
                out.append(steps[:i] + steps[i + 1 :])
            for b in s.blocks:
                out.append(steps[:i] + b + steps[i + 1 :])
            for j, b in enumerate(s.blocks):
                for smaller in without(b):
                    blocks = [*s.blocks[:j], smaller, *s.blocks[j + 1 :]]
                    out.append(steps[:i] + [Step(s.line, blocks, s.heads)] + steps[i + 1 :])
        return out

    changed = True
    while changed:
        changed = False
        for steps in without(program.steps):
            smaller = Program(program.seed, program.params, steps, program.helper)
            if fails(smaller):
                program, changed = smaller, True
                break
    return program
