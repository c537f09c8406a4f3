"""What scripts cost: loops of operations, numbers, lists and dicts, of a module; calls, tasks.

    python bench/scripts.py

prints nanoseconds (the smallest of many runs): on the machine, and of the same function in Python.
"""

import time
from typing import Dict, List

import flambeau as torch
from flambeau import Tensor, nn

# ruff: noqa: UP006, UP035, B007


def small_ops(x: Tensor, n: int) -> Tensor:
    y = x
    for i in range(n):
        y = y * 0.99
        y = y + x
        if i % 2 == 0:
            y = torch.tanh(y)
        else:
            y = torch.relu(y)
        y = y - 0.5
        y = torch.neg(y)
    return y


def numbers(n: int) -> int:
    total = 0
    for i in range(n):
        if i % 3 == 0:
            total += i
        elif i % 3 == 1:
            total -= 2
        else:
            total = total ^ i
    return total


def lists_and_dicts(n: int) -> int:
    seen: Dict[int, List[int]] = {}
    for i in range(n):
        k = i % 10
        if k not in seen:
            fresh: List[int] = []
            seen[k] = fresh
        seen[k].append(i)
    total = 0
    for k, v in seen.items():
        total += k * len(v)
    return total


def identity(x: Tensor) -> Tensor:
    return x


def one_add(x: Tensor, y: Tensor) -> Tensor:
    return x + y


def fork_then_wait(x: Tensor, n: int) -> Tensor:
    for i in range(n):
        x = torch.jit.wait(torch.jit.fork(tiny_task, x))
    return x


def fork_all(x: Tensor, n: int) -> Tensor:
    futures: List[torch.jit.Future[Tensor]] = []
    for i in range(n):
        futures.append(torch.jit.fork(tiny_task, x))
    for f in futures:
        x = x + torch.jit.wait(f)
    return x


def tiny_task(x: Tensor) -> Tensor:
    return x + 1.0


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        return torch.tanh(self.linear(x) + h)


class Loop(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = Cell()

    def forward(self, xs: Tensor) -> Tensor:
        h = torch.zeros(3, 4)
        for i in range(xs.size(0)):
            h = self.cell(xs[i], h)
        return h


def calls(f, *args):
    def run():
        for _ in range(1000):
            f(*args)

    return run


def main() -> None:
    """Measures both ways of each in turn."""
    x = torch.randn(4)
    rows = [
        (small_ops, (x, 1000), 5000),
        (numbers, (10000,), 10000),
        (lists_and_dicts, (1000,), 1000),
        (identity, (x,), 0),
        (one_add, (x, x), 0),
        (fork_then_wait, (x, 100), 100),
        (fork_all, (x, 100), 100),
        (Loop(), (torch.randn(100, 3, 4),), 100),
        (nn.Linear(4, 4), (x,), 0),
    ]
    print(f"{'':16} machine  Python")
    for f, args, per in rows:
        script = torch.jit.script(f)
        ways = [calls(g, *args) if not per else lambda g=g, a=args: g(*a) for g in (script, f)]
        best = [float("inf")] * 2
        for _ in range(100):
            for k, way in enumerate(ways):
                begun = time.perf_counter()
                way()
                best[k] = min(best[k], time.perf_counter() - begun)
        shown = [b / (per or 1000) * 1e9 for b in best]
        name = getattr(f, "__name__", type(f).__name__)
        print(f"{name:16} {shown[0]:7.1f} {shown[1]:7.1f}")


if __name__ == "__main__":
    main()
