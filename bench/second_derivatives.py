"""Training steps that differentiate gradients, eager and compiled: milliseconds a step.

    python bench/second_derivatives.py [MODULE]

MODULE is flambeau by default; torch measures PyTorch where that is installed, eager alone: it
refuses second derivatives of compiled code. Each figure is the least of several turns, one thread.
The losses of the two forms are compared.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from typing import Any

TURNS = 12

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


def main() -> None:
    torch: Any = importlib.import_module(sys.argv[1] if len(sys.argv) > 1 else "flambeau")
    torch.set_num_threads(1)
    forms = (False, True) if torch.__name__ == "flambeau" else (False,)
    print(f"{torch.__name__}: ms a step" + "      eager  compiled  ratio" * (len(forms) > 1))
    for made in (pinn, penalty, product):
        steps, values = [], []
        for compiled in forms:
            torch.manual_seed(0)
            steps.append(made(torch, compiled))
            values.append(steps[-1]())
            for _ in range(2):
                steps[-1]()
        assert all(abs(v - values[0]) <= 1e-3 * abs(values[0]) + 1e-4 for v in values), values
        best = [float("inf")] * len(steps)
        for _ in range(TURNS):  # turn about, so that a busy machine is busy for both
            for k, step in enumerate(steps):
                began = time.perf_counter()
                step()
                best[k] = min(best[k], time.perf_counter() - began)
        shown = "".join(f"{1e3 * b:10.2f}" for b in best)
        ratio = f"{best[1] / best[0]:7.2f}" if len(best) > 1 else ""
        print(f"  {made.__name__:20}{shown}{ratio}")


if __name__ == "__main__":
    main()
