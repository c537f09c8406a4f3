"""A line search for the strong Wolfe conditions, with cubic interpolation.

Owns ``strong_wolfe``. Works on numbers and on whatever ``evaluate`` returns as gradient: must not
know parameters, closures or optimisers.

Source: Nocedal, Wright, "Numerical Optimization", 2nd edition, algorithms 3.5 and 3.6, with the
safeguards of Schmidt's minFunc (2005).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

SUFFICIENT_DECREASE = 1e-4
CURVATURE = 0.9


class Point(NamedTuple):
    """A trial step: its length, the loss and gradient there, and the slope along the direction.

    Length and slope may be one-element tensors, whose dtype then rounds the interpolation.
    """

    t: Any
    loss: float
    grad: Any
    slope: Any


def cubic_minimum(a: Point, b: Point, bounds: tuple[Any, Any] | None = None) -> Any:
    """Minimiser, within ``bounds``, of the cubic through two points and their slopes."""
    low, high = bounds if bounds is not None else (min(a.t, b.t), max(a.t, b.t))
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2.0
    d2 = square**0.5
    first, last = (a, b) if a.t <= b.t else (b, a)
    curvature = last.slope - first.slope + 2 * d2
    if curvature == 0:
        return (low + high) / 2.0
    best = last.t - (last.t - first.t) * ((last.slope + d2 - d1) / curvature)
    return min(max(best, low), high)


def strong_wolfe(
    evaluate: Callable[[Any], Point],
    start: Point,
    t: Any,
    direction_size: float,
    tolerance_change: float = 1e-9,
    max_evals: int = 25,
) -> tuple[Point, int]:
    """A step that decreases the loss enough and flattens the slope.

    Args:
        evaluate: the point at a step length.
        start: the point at zero.
        t: first trial.
        direction_size: largest entry of the direction; a bracket narrower than
            ``tolerance_change / direction_size`` is final.
        max_evals: trials after the first.

    Returns:
        the best point found and the number of evaluations.
    """

    def too_high(p: Point) -> bool:
        return p.loss > start.loss + SUFFICIENT_DECREASE * p.t * start.slope

    def flat(p: Point) -> bool:
        return abs(p.slope) <= -CURVATURE * start.slope

    # Grow the step until a bracket holds a good point, or the point is good itself.
    previous, new = start, evaluate(t)
    trials = 0
    while True:
        if trials == max_evals:
            bracket = [start, new]
            break
        if too_high(new) or (trials > 1 and new.loss >= previous.loss):
            bracket = [previous, new]
            break
        if flat(new):
            return new, trials + 1
        if new.slope >= 0:
            bracket = [previous, new]
            break
        reach = (new.t + 0.01 * (new.t - previous.t), new.t * 10)
        t = cubic_minimum(previous, new, reach)
        previous, new = new, evaluate(t)
        trials += 1

    # Narrow it.
    low, high = _order(bracket)
    stalled = False
    while trials < max_evals:
        left, right = sorted((bracket[0].t, bracket[1].t))
        if (right - left) * direction_size < tolerance_change:
            break
        t, stalled = _off_the_edges(cubic_minimum(bracket[0], bracket[1]), left, right, stalled)
        new = evaluate(t)
        trials += 1
        if too_high(new) or new.loss >= bracket[low].loss:
            bracket[high] = new
            low, high = _order(bracket)
            continue
        if flat(new):
            bracket[low] = new
            break
        if new.slope * (bracket[high].t - bracket[low].t) >= 0:
            bracket[high] = bracket[low]
        bracket[low] = new
    return bracket[low], trials + 1


def _order(bracket: list[Point]) -> tuple[int, int]:
    """Positions of the lower and the higher end."""
    return (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)


def _off_the_edges(t: Any, left: Any, right: Any, stalled: bool) -> tuple[Any, bool]:
    """Move a trial that keeps falling at an end of the bracket a tenth of its width inside."""
    margin = 0.1 * (right - left)
    if min(right - t, t - left) >= margin:
        return t, False
    if stalled or t >= right or t <= left:
        return (right - margin if abs(t - right) < abs(t - left) else left + margin), False
    return t, True
