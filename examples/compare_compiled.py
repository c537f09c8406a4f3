"""Trains both example models for some steps, eager and compiled side by side, and times them.

Both copies begin with the same weights and see the same batches, so that their losses can be
compared. Where no C++ compiler is found it says so and gives no result.
"""

from __future__ import annotations

import copy
import statistics
import time
from collections.abc import Callable
from typing import Any

import train_digits
import train_gpt

import flambeau as torch
from flambeau import nn
from flambeau.nn import functional as F

WARM = 3  # steps that are not timed: they compile, and fill caches
LONGEST = 15.0  # seconds that the comparison of one model may take


def compare(
    name: str, model: nn.Module, draw: Callable[[], tuple], loss_of: Callable, steps: int
) -> dict[str, Any] | None:
    """Steps of a model in pairs, one eager and one compiled.

    Args:
        name: what to call it.
        model: where both begin.
        draw: makes a batch.
        loss_of: the loss of a model on a batch.
        steps: how many pairs are timed.

    Returns:
        Seconds per step (medians), the seconds of the first compiled step, the largest difference
        of losses; None where nothing can be compiled.
    """
    twins = {"eager": model, "compiled": copy.deepcopy(model)}
    calls = {"eager": twins["eager"], "compiled": torch.compile(twins["compiled"])}
    optimizers = {k: torch.optim.SGD(m.parameters(), lr=0.01) for k, m in twins.items()}
    times: dict[str, list[float]] = {"eager": [], "compiled": []}
    difference, began = 0.0, time.perf_counter()
    for step in range(WARM + steps):
        batch, losses = draw(), {}
        for kind, call in calls.items():
            torch.manual_seed(step)  # the same dropout
            start = time.perf_counter()
            try:
                loss = loss_of(call, *batch)
            except torch._dynamo.exc.BackendCompilerFailed as error:
                print(f"{name}: not compiled, {error.inner_exception}")
                return None
            optimizers[kind].zero_grad()
            loss.backward()
            optimizers[kind].step()
            losses[kind] = loss.item()
            times[kind].append(time.perf_counter() - start)
        if time.perf_counter() - began > LONGEST and step > WARM:
            break  # a busy or a small machine: fewer steps tell it, too
        difference = max(difference, abs(losses["eager"] - losses["compiled"]))
    median = {kind: statistics.median(ts[WARM:]) for kind, ts in times.items()}
    result = {**median, "first": times["compiled"][0], "difference": difference}
    print(
        f"{name}: {1000 * median['eager']:.1f} ms per training step eager, "
        f"{1000 * median['compiled']:.1f} ms compiled: {median['eager'] / median['compiled']:.2f} "
        f"times as fast (first step, with compiling: {result['first']:.1f} s; losses differ by at "
        f"most {difference:.0e})"
    )
    return result


def compare_both(steps: int) -> dict[str, dict[str, Any]]:
    """The digits' network and the GPT, by name; empty where nothing can be compiled."""
    torch.manual_seed(0)
    gpt, length = train_gpt.GPT(64), 64
    characters = len(train_gpt.CHARACTERS)

    def windows() -> tuple:
        codes = torch.randint(characters, (24, length + 1))
        return codes[:, :-1], codes[:, 1:]

    def images() -> tuple:
        return torch.rand(64, 1, 8, 8), torch.randint(10, (64,))

    def of_images(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(model(x), y)

    found = {}
    for name, model, draw, loss_of in (
        ("ConvNet", train_digits.ConvNet(), images, of_images),
        ("GPT", gpt, windows, train_gpt.loss_of),
    ):
        result = compare(name, model, draw, loss_of, steps)
        if result is None:
            break
        found[name] = result
    return found


if __name__ == "__main__":
    compare_both(30)
