"""Random programs over tensors, as Python text that is run as it is printed.

A `Program` is a list of steps over a growing list of tensors, and inputs, in two sets of sizes.
`generate(seed)` runs every step as it is drawn, at both sizes; what eager refuses is no step. A
program is kept when small errors in each step stay small in its results: only then does a
difference between two ways of running it mean anything.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import flambeau as torch

from . import _program_steps as steps
from ._agreement import Seen, difference, observe

F = torch.nn.functional
BOUND = 1e3  # values stay below
LARGEST = 600  # elements
REFUSED = (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError, AttributeError)


@dataclass(frozen=True)
class Step:
    """`t<out> = text`; a statement has no `out`. `computes`: the result has values of its own."""

    text: str
    out: int | None
    reads: tuple[int, ...]
    computes: bool = True


@dataclass(frozen=True)
class Input:
    """How an argument is made: sizes at two occasions, dtype, and a form by `a.` expressions.

    Gradients are taken to a dense leaf that the argument is a form of (`leaf`), or a form of a
    result of (`result`), or to the argument as it is (`formed`).
    """

    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    dtype: str
    form: str  # dense | swapped | stepped | expanded | offset
    grad: str  # none | leaf | result | formed

    def make(self, seed: int, which: int) -> Any:
        """The tensor, and the leaf that gradients are taken to (or None)."""
        shape = self.shapes[which]
        x = _values(_base(shape, self.form), self.dtype, seed)
        if self.grad == "formed":
            leaf = _formed(x, shape, self.form).requires_grad_()
            return leaf, leaf
        if self.grad != "none":
            x.requires_grad_()
        leaf = x if self.grad != "none" else None
        if self.grad == "result":
            x = x * 1
        return _formed(x, shape, self.form), leaf


def _base(shape: tuple[int, ...], form: str) -> tuple[int, ...]:
    match form:
        case "swapped":
            return (*shape[:-2], shape[-1], shape[-2])
        case "stepped":
            return (*shape[:-1], shape[-1] * 2)
        case "expanded":
            return (1, *shape[1:])
        case "offset":
            return (shape[0] + 1, *shape[1:])
    return shape


def _formed(x: Any, shape: tuple[int, ...], form: str) -> Any:
    match form:
        case "swapped":
            return x.transpose(-1, -2)
        case "stepped":
            return x[..., ::2]
        case "expanded":
            return x.expand(shape)
        case "offset":
            return x[1:]
    return x


def _values(shape: tuple[int, ...], dtype: str, seed: int) -> Any:
    generator = torch.Generator().manual_seed(seed)
    kind = getattr(torch, dtype)
    if dtype == "bool":
        return torch.rand(shape, generator=generator) > 0.5
    if not kind.is_floating_point and not kind.is_complex:
        low = 0 if dtype.startswith("uint") else -4
        return torch.randint(low, 9, shape, generator=generator).to(kind)
    x = torch.rand(shape, generator=generator, dtype=torch.float64) * 2 - 1
    if kind.is_complex:
        x = torch.complex(x, x.flip(-1) if shape else x + 0.5)
    return x.to(kind)


@dataclass
class Program:
    """A function of `inputs` (and two numbers, n and w) that returns `returns`."""

    seed: int
    inputs: list[Input]
    steps: list[Step] = field(default_factory=list)
    returns: tuple[int, ...] = ()
    tolerance: float = 1e-9
    numbers: tuple[tuple[int, float], tuple[int, float]] = ((3, 0.75), (4, 0.5))
    draws: bool = False

    def text(self) -> str:
        """The function as Python."""
        names = ", ".join([*(f"t{i}" for i in range(len(self.inputs))), "n", "w"])
        lines = [f"def f({names}):"]
        for s in self.steps:
            lines.append(f"    {'' if s.out is None else f't{s.out} = '}{s.text}")
        results = ", ".join(f"t{i}" for i in self.returns)
        return "\n".join([*lines, f"    return ({results},)"]) + "\n"

    def function(self) -> Callable[..., Any]:
        space: dict[str, Any] = {"torch": torch, "F": F}
        exec(compile(self.text(), f"<program {self.seed}>", "exec"), space)
        return space["f"]

    def arguments(self, which: int = 0) -> tuple[list[Any], list[Any]]:
        """Fresh arguments of one set of sizes, the same every time, and the leaves of them."""
        made = [x.make(self.seed * 31 + i, which) for i, x in enumerate(self.inputs)]
        return [*(x for x, _ in made), *self.numbers[which]], [
            leaf for _, leaf in made if leaf is not None
        ]

    def seen(self, f: Callable[..., Any], which: int = 0) -> Seen:
        """What a function does with the program's arguments."""
        args, leaves = self.arguments(which)
        torch.manual_seed(self.seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return observe(f, args, leaves, every=1 + self.seed % 2)

    def noisy(self, size: float, seed: int) -> Callable[..., Any]:
        """The function with a small error made in each step."""
        generator = torch.Generator().manual_seed(seed)

        def f(*args: Any) -> Any:
            space: dict[str, Any] = {"torch": torch, "F": F}
            names = [*(f"t{i}" for i in range(len(self.inputs))), "n", "w"]
            space.update(zip(names, args, strict=True))
            for s in self.steps:
                _execute(s, space)
                if s.computes:
                    _disturb(space[f"t{s.reads[0] if s.out is None else s.out}"], size, generator)
            return tuple(space[f"t{i}"] for i in self.returns)

        return f


def _execute(s: Step, space: dict[str, Any]) -> None:
    exec(s.text if s.out is None else f"t{s.out} = {s.text}", space)


def _disturb(x: Any, size: float, generator: Any) -> None:
    if not (x.dtype.is_floating_point or x.dtype.is_complex) or not x.numel() or 0 in x.stride():
        return
    with torch.no_grad():
        noise = (torch.rand(x.shape, generator=generator) - 0.5).to(x.dtype)
        x.data.add_(noise * (x.data + 0.01) * size)


def _anything(x: Any) -> bool:
    return True


def _floating(x: Any) -> bool:
    return bool(x.dtype.is_floating_point)


def _truth(x: Any) -> bool:
    return bool(x.dtype == torch.bool)


def _whole(x: Any) -> bool:
    return not (_floating(x) or x.dtype.is_complex or _truth(x))


class Drawer:
    """Draws one program; tensors of both sizes are at hand in two name spaces."""

    def __init__(self, seed: int, length: int) -> None:
        self.r = random.Random(seed)
        self.length = length
        self.program = Program(seed, self.draw_inputs())
        self.program.numbers = ((self.r.randint(2, 4), 0.75), (self.r.randint(2, 5), 0.5))
        self.spaces: list[dict[str, Any]] = []
        for which in (0, 1):
            args, _ = self.program.arguments(which)
            names = [*(f"t{i}" for i in range(len(self.program.inputs))), "n", "w"]
            self.spaces.append({"torch": torch, "F": F, **dict(zip(names, args, strict=True))})
        self.count = len(self.program.inputs)

    def draw_inputs(self) -> list[Input]:
        r = self.r
        first = r.sample(range(2, 8), 3)
        second = r.sample([n for n in range(2, 10) if n not in first], 3)
        if r.random() < 0.06:  # nothing, or a single one, in one dim
            k, n = r.randrange(3), r.choice([0, 0, 1])
            first[k] = second[k] = n
        kinds = ["float64"] * 6 + ["float32"] * 2 + ["float64"]
        main = r.choice(kinds)
        grads = r.random() < 0.7
        out = []
        for k in range(r.choice([1, 2, 2, 3])):
            rank = r.choice([0, 1, 2, 2, 2, 3, 3])
            shapes = tuple(tuple(b[3 - rank :]) for b in (first, second))
            if rank and r.random() < 0.12:
                at = r.randrange(rank)
                shapes = tuple((*s[:at], 1, *s[at + 1 :]) for s in shapes)
            dtype = main if k == 0 or r.random() < 0.8 else r.choice(
                "float32 float64 int64 int32 uint8 bool complex128 float16 bfloat16 int8".split()
            )  # fmt: skip
            forms = ["dense"] * 4 + ["swapped"] * (rank > 1)
            forms += ["stepped", "expanded", "offset"] * (rank > 0)
            form = r.choice(forms) if all(all(s) for s in shapes) else "dense"
            inexact = dtype.startswith(("float", "complex", "bfloat"))
            wanted = r.choice(["leaf", "leaf", "result", "formed", "none"])
            grad = wanted if grads and inexact else "none"
            out.append(Input(shapes, dtype, form, grad))  # type: ignore[arg-type]
        return out

    # Steps ----------------------------------------------------------------------------------

    def of(self, test: Callable[[Any], bool]) -> list[int]:
        return [i for i in range(self.count) if test(self.spaces[0][f"t{i}"])]

    def pick(self, test: Callable[[Any], bool]) -> int | None:
        """A tensor that passes; the latest ones more often."""
        found = self.of(test)
        if not found:
            return None
        return found[-1] if self.r.random() < 0.4 else self.r.choice(found)

    def template(self) -> tuple[str, bool, bool]:
        """A template, whether it computes, and whether it is a statement."""
        r = self.r
        kinds: list[tuple[int, list[str], bool, bool]] = [
            (14, steps.UNARY, True, False), (14, steps.BINARY, True, False),
            (11, steps.REDUCTIONS, True, False), (16, steps.VIEWS, False, False),
            (9, steps.MOVES, False, False), (6, steps.PRODUCTS, True, False),
            (13, steps.INPLACE, True, True), (5, steps.DTYPES, False, False),
            (6, steps.INTEGER, True, False), (3, steps.INTEGER_TWO, False, False),
            (2, steps.INTEGER_INPLACE, False, True), (3, steps.BOOLEAN, False, False),
            (2, steps.COMPLEX, True, False), (1, steps.RANDOM, True, False),
        ]  # fmt: skip
        if self.program.seed % 10 == 0:
            kinds.append((3, steps.LOW, True, False))
        weights = [k[0] for k in kinds]
        _, templates, computes, statement = r.choices(kinds, weights)[0]
        return r.choice(templates), computes, statement

    def draw(self) -> Step | None:
        text, computes, statement = self.template()
        moved = text in steps.VIEWS or text in steps.MOVES
        tests: dict[str, Callable[[Any], bool]] = {
            "a": _anything if moved else _floating, "b": _anything if moved else _floating,
            "i": _whole, "j": _whole, "m": _truth,
            "n2": _truth, "z": lambda x: x.dtype.is_complex,
        }  # fmt: skip
        values: dict[str, Any] = {}
        reads: list[int] = []
        for name in ("a", "i", "m", "z", "b", "j", "n2"):
            if f"{{{name}}}" in text:
                k = self.pick(tests[name])
                if k is None:
                    return None
                reads.append(k)
                values[name] = f"t{k}"
        x = self.spaces[0][f"t{reads[0]}"]
        rank = x.dim()
        if rank == 0 and any(k in text for k in ("{d}", "{e}", "...", "order")):
            return None
        values["d"] = self.r.randrange(rank) if rank else 0
        values["e"] = self.r.randrange(rank) if rank else 0
        order = list(range(rank))
        self.r.shuffle(order)
        values["order"] = ", ".join(map(str, order))
        first = reads[0]
        if statement and first < len(self.program.inputs) and self.r.random() < 0.5:
            return None
        out = None if statement else self.count
        return Step(text.format(**values), out, tuple(reads), computes)

    def run(self) -> Program:
        program = self.program
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            attempts = 0
            while len(program.steps) < self.length and attempts < 25 * self.length:
                attempts += 1
                step = self.draw()
                if step is not None and self.possible(step):
                    program.steps.append(step)
                    self.count += step.out is not None
        self.finish()
        return program

    def possible(self, s: Step) -> bool:
        """Runs the step at both sizes; a failing one leaves no trace."""
        made: list[Any] = []
        for space in self.spaces:
            torch.manual_seed(0)
            try:
                _execute(s, space)
            except REFUSED:
                for other in self.spaces:
                    if s.out is not None:
                        other.pop(f"t{s.out}", None)
                if s.out is None and made:
                    raise _Spoilt from None
                return False
            made.append(space[f"t{s.reads[0] if s.out is None else s.out}"])
        x, y = made
        good = isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor)
        good = good and x.dim() == y.dim() and all(_tame(t) for t in made)
        if not good and s.out is None:
            raise _Spoilt
        return good

    def finish(self) -> None:
        program = self.program
        last = self.count - 1
        read = {i for s in program.steps for i in s.reads if s.out is not None}
        others = [i for i in range(last) if self.r.random() < (0.1 if i in read else 0.7)]
        program.returns = (*others, last)
        program.draws = any("rand" in s.text or "dropout" in s.text or "bernoulli" in s.text
                            for s in program.steps)  # fmt: skip
        text = program.text()
        low = {"float32": 1e-4, "float16": 0.05, "bfloat16": 0.1, "complex64": 1e-4}
        dtypes = [str(self.spaces[0][f"t{i}"].dtype).split(".")[-1] for i in range(self.count)]
        dtypes += ["float32"] * ("float" in text) + ["bfloat16"] * ("half" in text)
        program.tolerance = max(program.tolerance, *(low.get(d, 0.0) for d in dtypes))


class _Spoilt(Exception):
    """A statement has changed tensors at one size alone, or beyond bounds: start anew."""


def _tame(x: Any) -> bool:
    if x.numel() > LARGEST:
        return False
    if not x.numel() or x.dtype == torch.bool:
        return True
    if x.dtype.is_complex:
        x = torch.view_as_real(x.detach().resolve_conj())
    x = x.detach().to(torch.float64)
    return bool((x.abs() < BOUND).all()) if x.dtype.is_floating_point else True


def stable(program: Program) -> bool:
    """Does eager agree with itself when each step errs a little, at both sizes?"""
    error = program.tolerance * 1e-4 if program.tolerance < 1e-6 else program.tolerance * 0.02
    for which in (0, 1):
        want = program.seen(program.function(), which)
        if want.error is not None:
            return False
        for seed in (1, 2):
            got = program.seen(program.noisy(error, seed), which)
            if difference(got, want, program.tolerance * 0.1):
                return False
    return True


def generate(seed: int, length: int = 10, errors: bool = False) -> Program:
    """A program whose every step runs, forward and backward, and which is well conditioned.

    With `errors` also one whose steps run, but which is refused as a whole or by backward.
    """
    for attempt in range(60):
        try:
            drawer = Drawer(seed + attempt * 1_000_003, length)
            program = drawer.run()
        except _Spoilt:
            continue
        if not program.steps:
            continue
        if stable(program) or (errors and program.seen(program.function()).error is not None):
            return program
    raise RuntimeError(f"no stable program of seed {seed}")


def shrunk(program: Program, fails: Callable[[Program], bool]) -> Program:
    """A shorter program that still fails."""
    changed = True
    while changed:
        changed = False
        for smaller in _smaller(program):
            try:
                smaller.function()
                bad = fails(smaller)
            except Exception:
                bad = False
            if bad:
                program, changed = smaller, True
                break
    return program


def _smaller(program: Program) -> Any:
    """Programs with one thing less."""
    if len(program.returns) > 1:
        for r in program.returns:
            yield replace(program, returns=(r,))
    for i in reversed(range(len(program.steps))):
        step = program.steps[i]
        rest = program.steps[:i] + program.steps[i + 1 :]
        if step.out is None:
            yield replace(program, steps=rest)
        elif step.out not in {r for s in rest for r in s.reads}:
            returns = tuple(r for r in program.returns if r != step.out)
            if returns:
                yield replace(program, steps=rest, returns=returns)
            for r in step.reads:  # what it was made of, in its place
                yield replace(program, steps=rest, returns=(*returns, r))
    for i, x in enumerate(program.inputs):
        if x.grad != "none":
            inputs = list(program.inputs)
            inputs[i] = replace(x, grad="none" if x.grad == "leaf" else "leaf")
            yield replace(program, inputs=inputs)
        if x.form != "dense":
            inputs = list(program.inputs)
            inputs[i] = replace(x, form="dense")
            yield replace(program, inputs=inputs)
