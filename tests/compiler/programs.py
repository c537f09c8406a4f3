"""Random programs over tensors: chains, branches of data flow, views, in-place, reductions,
broadcasts, mixed dtypes.

A program is a list of steps over a growing list of tensors. `generate(seed)` makes one, running it
as it goes to know shapes; `Program.text()` is Python; `shrunk` drops steps while it still fails.
Values stay tame: every step that could run away is bounded by tanh or a mean.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import flambeau as torch

Tensors = list[Any]

UNARY = [
    "{a}.sin()", "{a}.tanh()", "{a}.sigmoid()", "{a}.abs()", "-{a}", "{a} * 0.5", "{a} + 1",
    "({a} * 0.3).exp()", "torch.relu({a})", "torch.nn.functional.gelu({a})", "{a}.square() * 0.1",
    "1.0 / ({a}.abs() + 1)", "{a}.clamp(-0.5, 0.7)", "{a}.contiguous()", "{a}.clone()",
    "torch.where({a} > 0, {a}, {a} * 0.1)", "{a}.cos().to({a}.dtype)", "{a} - {a}.detach() * 0.5",
]  # fmt: skip
BINARY = [
    "{a} + {b}", "{a} * {b}", "{a} - {b}", "torch.maximum({a}, {b})", "{a} / ({b}.abs() + 1)",
    "torch.where({a} > {b}, {a}, {b})", "torch.add({a}, {b}, alpha=0.5)",
]  # fmt: skip
REDUCTIONS = [
    "{a}.sum({d}) * 0.2", "{a}.mean({d})", "{a}.sum({d}, keepdim=True) * 0.1", "{a}.amax({d})",
    "{a}.softmax({d})", "{a}.log_softmax({d}) * 0.3", "{a}.var({d}, correction=0)",
    "torch.logsumexp({a}, {d})", "{a}.cumsum({d}) * 0.2", "{a}.max({d})[0]", "{a}.mean()",
    "{a}.norm() * 0.1",
]  # fmt: skip
VIEWS = [
    "{a}.transpose({d}, {e})", "{a}.unsqueeze({d})", "{a}.reshape(-1)", "{a}.select({d}, 0)",
    "{a}.narrow({d}, 0, {half})", "{a}[..., ::2]", "{a}[None]", "{a}.flatten()",
    "{a}.unsqueeze({d}).expand({wide})", "{a}.permute({order})", "{a}.chunk(2, {d})[0]",
    "{a}.flip({d})", "torch.cat([{a}, {a}], {d})", "torch.stack([{a}, {a} * 2], {d})",
    "{a}.unbind({d})[-1]", "{a}.diagonal() if {a}.dim() > 1 else {a}",
]  # fmt: skip
INPLACE = [
    "{a}.add_(1)", "{a}.mul_(0.5)", "{a}.tanh_()", "{a}.select({d}, 0).mul_(2)",
    "{a}.narrow({d}, 0, {half}).add_(0.25)", "{a}[..., 0].fill_(0.5)",
    "{a}.transpose({d}, {e}).sin_()",
    "{a}.zero_()", "{a}.copy_({a}.cos())", "{a}.clamp_(-0.5, 0.5)", "{a}.view(-1).mul_(1.5)",
]  # fmt: skip
DTYPES = [
    "{a}.to(torch.float32)",
    "({a} > 0)",
    "({a} * 4).to(torch.int64)",
    "{a}.to(torch.float64)",
]


@dataclass
class Step:
    """`t<out> = text`; an in-place step has no `out`."""

    text: str
    out: int | None
    reads: tuple[int, ...]


@dataclass
class Program:
    """A function of `inputs` tensors that returns `returns`."""

    seed: int
    shapes: list[tuple[int, ...]]
    steps: list[Step] = field(default_factory=list)
    returns: tuple[int, ...] = ()

    def text(self) -> str:
        """The program as Python."""
        names = ", ".join(f"t{i}" for i in range(len(self.shapes)))
        lines = [f"# seed {self.seed}, inputs {self.shapes}", f"def f({names}):"]
        for s in self.steps:
            lines.append(f"    {'' if s.out is None else f't{s.out} = '}{s.text}")
        results = ", ".join(f"t{i}" for i in self.returns)
        return "\n".join([*lines, f"    return ({results},)"]) + "\n"

    def function(self) -> Callable[..., Any]:
        space: dict[str, Any] = {"torch": torch}
        exec(self.text(), space)
        return space["f"]

    def inputs(self, requires_grad: bool = False) -> Tensors:
        """Fresh inputs, the same every time."""
        generator = torch.Generator().manual_seed(self.seed)
        made = [
            torch.rand(s, generator=generator, dtype=torch.float64) * 2 - 1 for s in self.shapes
        ]
        return [x.requires_grad_() if requires_grad else x for x in made]


def _filled(rng: random.Random, template: str, names: Tensors, picks: list[int]) -> str | None:
    """The template for chosen tensors, or None where it does not fit their shapes."""
    a = names[picks[0]]
    if a.dim() == 0 and any(k in template for k in ("{d}", "{e}", "...", "order", "chunk")):
        return None
    d = rng.randrange(a.dim()) if a.dim() else 0
    e = rng.randrange(a.dim()) if a.dim() else 0
    if "{half}" in template and a.shape[d] < 2:
        return None
    order = list(range(a.dim()))
    rng.shuffle(order)
    wide = list(a.shape)
    wide.insert(d, 3)
    values = {
        "a": f"t{picks[0]}", "b": f"t{picks[-1]}", "d": d, "e": e,
        "half": (a.shape[d] + 1) // 2 if a.dim() else 1, "order": ", ".join(map(str, order)),
        "wide": ", ".join(map(str, wide)),
    }  # fmt: skip
    return template.format(**values)


def generate(seed: int, length: int = 10, inplace: bool = True, dtypes: bool = True) -> Program:
    """A program whose every step runs."""
    rng = random.Random(seed)
    base = [rng.randint(2, 5) for _ in range(3)]
    shapes = [tuple(base[3 - n :]) for n in (rng.randint(1, 3), rng.randint(1, 3))]
    program = Program(seed, shapes)
    values = program.inputs()
    kinds = [UNARY, BINARY, REDUCTIONS, VIEWS] + [INPLACE] * inplace + [DTYPES] * dtypes
    attempts = 0
    while len(program.steps) < length and attempts < 20 * length:
        attempts += 1
        templates = rng.choice(kinds)
        picks = [rng.randrange(len(values)) for _ in range(2)]
        if rng.random() < 0.5:
            picks[0] = len(values) - 1
        floating = values[picks[0]].dtype.is_floating_point
        if not floating and templates is not BINARY:
            continue
        if templates is INPLACE and picks[0] < len(shapes) and rng.random() < 0.7:
            continue
        text = _filled(rng, rng.choice(templates), values, picks)
        if text is None or values[picks[0]].numel() > 400:
            continue
        step = Step(text, None if templates is INPLACE else len(values), tuple(picks))
        if not _try(program, step):
            continue
        values = _run(program)
    last = len(values) - 1
    others = [i for i in range(len(shapes), last) if rng.random() < 0.2]
    program.returns = (*others, last)
    return program


def _try(program: Program, step: Step) -> bool:
    program.steps.append(step)
    try:
        values = _run(program)
        results = [v for v in _run(program, True) if v.requires_grad and not v.is_leaf]
        if results:  # a backward that eager refuses (of what was changed since) is no test
            sum(v.sum() for v in results).backward()
        good = all(
            bool(v.isfinite().all()) and (not v.numel() or float(v.abs().max()) < 1e3)
            for v in values
            if v.dtype.is_floating_point
        )
    except (RuntimeError, IndexError, ValueError, TypeError):
        good = False
    if not good:
        program.steps.pop()
    return good


def _run(program: Program, recorded: bool = False) -> Tensors:
    """All tensors of the program; recorded: made of inputs that require grad."""
    values = [x.clone() if recorded else x for x in program.inputs(recorded)]
    space: dict[str, Any] = {"torch": torch, **{f"t{i}": v for i, v in enumerate(values)}}
    for s in program.steps:
        if s.out is None:
            exec(s.text, space)
        else:
            exec(f"t{s.out} = {s.text}", space)
            values.append(space[f"t{s.out}"])
    return values


def shrunk(program: Program, fails: Callable[[Program], bool]) -> Program:
    """A shorter program that still fails: steps are dropped while nothing needs them."""
    changed = True
    while changed:
        changed = False
        for i in reversed(range(len(program.steps))):
            step = program.steps[i]
            rest = program.steps[:i] + program.steps[i + 1 :]
            needed = {r for s in rest for r in s.reads}
            returns = tuple(r for r in program.returns if r != step.out)
            if step.out in needed or not returns:
                continue
            smaller = Program(program.seed, program.shapes, rest, returns)
            if fails(smaller):
                program, changed = smaller, True
                break
    return program
