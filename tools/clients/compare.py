"""The judgement of a record against PyTorch's: equal, differing where, or an error.

Invariant: the tolerance of a case is derived, never set. Its floor is that of the digits it
computes in; above that it is what PyTorch's own numbers move by when the weights move by a known
amount, scaled to those digits, so that an ill-conditioned case is judged by its condition.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from .registry import NUDGE

#: relative floors: all in float64, or with steps in float32
FLOOR = {False: 1e-9, True: 1e-5}
UNIT = {False: 2.0**-53, True: 2.0**-24}
#: rounding errors of that many operations in a row
OPERATIONS = 64.0


def deviation(ours: list[Any], theirs: list[Any], largest: float) -> float:
    """Relative difference of two summaries of tensors of one shape."""
    scale = theirs[3] + 1e-6 * largest + 1e-300
    # Projections of n entries are sums of n roundings, of size norm times a wave of norm sqrt(n).
    size = math.sqrt(max(1, math.prod(theirs[0])))
    gap = abs(ours[3] - theirs[3]) / scale
    for at in (4, 5):
        gap = max(gap, abs(ours[at] - theirs[at]) / (scale * size**0.5))
    return gap


def differences(ours: dict[str, Any], theirs: dict[str, Any]) -> Iterator[tuple[str, float, str]]:
    """For each named tensor the relative difference, or infinity and what else differs."""
    largest = max((entry[3] for entry in theirs.values()), default=0.0)
    for name in theirs.keys() | ours.keys():
        if name not in ours or name not in theirs:
            where = "ours" if name in ours else "PyTorch"
            yield name, math.inf, f"only {where} has it"
            continue
        mine, other = ours[name], theirs[name]
        if mine[0] != other[0]:
            yield name, math.inf, f"shape {mine[0]}, PyTorch {other[0]}"
        elif mine[1] != other[1]:
            yield name, math.inf, f"dtype {mine[1]}, PyTorch {other[1]}"
        elif mine[2] != other[2]:
            yield name, math.inf, f"{mine[2]} entries not finite, PyTorch {other[2]}"
        else:
            yield name, deviation(mine, other, largest), ""


def numbers(section: dict[str, Any]) -> dict[str, Any]:
    """The losses and the norm of the weights of a training section, as summaries."""
    losses = {f"loss{i}": [[], "number", 0, abs(x), x, x] for i, x in enumerate(section["losses"])}
    weights = section["weights"]
    return {**losses, "weights": [[], "number", 0, weights, weights, weights]}


def sections(record: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found = {}
    if record.get("infer") is not None:
        found["infer"] = record["infer"]
    if record.get("train") is not None:
        found["grads"] = record["train"]["grads"]
        found["steps"] = numbers(record["train"])
    return found


def conditions(record: dict[str, Any]) -> dict[str, float]:
    """How much each section of a reference moves, in units of the change of its weights: the most
    of the directions that were tried, since a chaotic case need not show it in one."""
    runs = [sections(run) for run in record["nudged"]]
    return {
        name: max(
            (
                gap
                for moved in runs
                if name in moved
                for _, gap, _ in differences(moved[name], section)
                if math.isfinite(gap)
            ),
            default=0.0,
        )
        / NUDGE[record["mixed"]]
        for name, section in sections(record).items()
    }


def tolerance(condition: float, mixed: bool) -> float:
    return FLOOR[mixed] + OPERATIONS * UNIT[mixed] * condition


def last_lines(record: dict[str, Any]) -> list[str]:
    """What the sections that raised said, without their tracebacks."""
    said = []
    for name, text in record["errors"].items():
        lines = [line for line in text.strip().splitlines() if line and line[0] not in " \t"]
        said.append(f"error in {name}: {(lines or [text])[-1][:300]}")
    return said


def judge(record: dict[str, Any], reference: dict[str, Any], train: bool) -> list[str]:
    """What differs, a line each; empty when the case is equal to its reference."""
    said = last_lines(record)
    if said:
        return said
    pairs = zip(record["state"], reference["state"], strict=True)
    floor = max(FLOOR[reference["mixed"]] / 100, 1e-11)
    if any(abs(a - b) > floor * (abs(b) + reference["state"][1]) for a, b in pairs):
        said.append("weights or inputs before the run differ")
    ours = sections(record)
    for name, theirs in sections(reference).items():
        if name not in ours:
            continue
        bound = tolerance(reference["conditions"].get(name, 0.0), reference["mixed"])
        worst = sorted(
            ((gap, what, why) for what, gap, why in differences(ours[name], theirs) if gap > bound),
            reverse=True,
        )
        for gap, what, why in worst[:3]:
            said.append(f"{name}: {what} differs by {gap:.2g}, bound {bound:.2g} {why}".rstrip())
    return said
