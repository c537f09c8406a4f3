"""Training steps that differentiate gradients, eager and compiled: milliseconds a step.

    python bench/second_derivatives.py [--beside PYTHON]

One thread; the losses of the two forms are compared. With the interpreter of a PyTorch, which
refuses second derivatives of compiled code, its eager steps take turns with ours. Figures are
medians of the turns, with the least and the most.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

TURNS = 14
SECONDS = 0.08  # of a turn, about

Step = Callable[[], Any]


def pinn(torch: Any, compiled: bool) -> Step:
    """Burgers' equation at 2,000 points, by a network of four layers of 64."""
    nn = torch.nn
    layers: list[Any] = [nn.Linear(2, 64), nn.Tanh()]
    for _ in range(3):
        layers += [nn.Linear(64, 64), nn.Tanh()]
    net = nn.Sequential(*layers, nn.Linear(64, 1))
    call = torch.compile(net) if compiled else net
    x = torch.rand(2000, 2).requires_grad_()

    def step() -> Any:
        net.zero_grad()
        u = call(x)
        (du,) = torch.autograd.grad(u.sum(), x, create_graph=True)
        (ddu,) = torch.autograd.grad(du[:, 0].sum(), x, create_graph=True)
        loss = (du[:, 1] + u[:, 0] * du[:, 0] - 0.01 * ddu[:, 0]).square().mean()
        loss.backward()
        return loss.item()

    return step


def penalty(torch: Any, compiled: bool) -> Step:
    """The gradient penalty of a critic of images, 16 of 3 x 32 x 32."""
    nn = torch.nn
    critic = nn.Sequential(
        nn.Conv2d(3, 32, 4, 2, 1), nn.LeakyReLU(0.2),
        nn.Conv2d(32, 64, 4, 2, 1), nn.LeakyReLU(0.2),
        nn.Flatten(), nn.Linear(64 * 8 * 8, 1),
    )  # fmt: skip
    call = torch.compile(critic) if compiled else critic
    x = torch.rand(16, 3, 32, 32).requires_grad_()

    def step() -> Any:
        critic.zero_grad()
        y = call(x)
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        loss = y.mean() + 10 * (g.flatten(1).norm(dim=1) - 1).square().mean()
        loss.backward()
        return loss.item()

    return step


def product(torch: Any, compiled: bool) -> Step:
    """The Hessian of a small network's loss by its parameters, times a vector."""
    nn = torch.nn
    net = nn.Sequential(nn.Linear(32, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 10))
    loss = nn.CrossEntropyLoss()
    x, target = torch.rand(256, 32), torch.arange(256) % 10
    whole = lambda: loss(net(x), target)  # noqa: E731
    call = torch.compile(whole) if compiled else whole
    parameters = list(net.parameters())
    vectors = [torch.full_like(p, 0.1) for p in parameters]

    def step() -> Any:
        grads = torch.autograd.grad(call(), parameters, create_graph=True)
        along = sum((g * v).sum() for g, v in zip(grads, vectors))  # noqa: B905
        made = torch.autograd.grad(along, parameters)
        return sum(float(m.sum()) for m in made)

    return step


MADE: tuple[Callable[..., Step], ...] = (pinn, penalty, product)


def timed(step: Step, count: int) -> float:
    """Seconds of a step."""
    began = time.perf_counter()
    for _ in range(count):
        step()
    return (time.perf_counter() - began) / count


def serve() -> None:
    """A process with PyTorch: reads names and counts, answers with seconds of a step."""
    torch: Any = importlib.import_module("torch")
    torch.set_num_threads(1)
    steps: dict[str, Step] = {}
    for line in sys.stdin:
        name, count = line.split()
        if name not in steps:
            torch.manual_seed(0)
            steps[name] = next(made for made in MADE if made.__name__ == name)(torch, False)
        print(timed(steps[name], int(count)), flush=True)


def peer(python: str) -> Callable[[str, int], float]:
    """Times a step in another interpreter."""
    process = subprocess.Popen(
        [python, __file__, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None and process.stdout is not None
    to, answers = process.stdin, process.stdout

    def ask(name: str, count: int) -> float:
        to.write(f"{name} {count}\n")
        to.flush()
        return float(answers.readline())

    return ask


def shown(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--beside", metavar="PYTHON", help="an interpreter that has PyTorch")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve()
    torch: Any = importlib.import_module("flambeau")
    torch.set_num_threads(1)
    ask = peer(options.beside) if options.beside else None
    for made in MADE:
        steps, values = [], []
        for compiled in (False, True):
            torch.manual_seed(0)
            steps.append(made(torch, compiled))
            values.append(steps[-1]())
        assert all(abs(v - values[0]) <= 1e-3 * abs(values[0]) + 1e-4 for v in values), values
        count = max(1, int(SECONDS / min(timed(step, 3) for step in steps)))
        if ask:
            ask(made.__name__, 3)
        own, theirs, best = [], [], float("inf")
        for _ in range(TURNS):  # so that a busy machine is busy for all
            compiled_time, eager = (timed(step, count) for step in reversed(steps))
            best = min(best, compiled_time)
            own.append(compiled_time / eager)
            if ask:
                theirs.append(compiled_time / ask(made.__name__, count))
        line = f"{made.__name__:10} compiled {1e3 * best:6.2f} ms at least; of eager {shown(own)}"
        print(line + (f"; of PyTorch's eager {shown(theirs)}" if theirs else ""), flush=True)


if __name__ == "__main__":
    main()
