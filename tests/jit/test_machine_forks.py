"""Forks of scripts on the machine: threads, errors, gradients, what happens at the end."""

import os
import resource
import subprocess
import sys
import textwrap
import threading
import traceback
from typing import List

import pytest

import flambeau as torch

# ruff: noqa: UP006, UP035, B007
from .test_machine import machine


@torch.jit.ignore
def ident(x: torch.Tensor) -> int:
    return threading.get_ident()


@torch.jit.ignore
def meet(x: torch.Tensor) -> int:
    BARRIER.wait()  # comes back when all are there
    return threading.get_ident()


BARRIER = threading.Barrier(2, timeout=20)


def ident_of(x: torch.Tensor) -> int:
    return ident(x)


def met(x: torch.Tensor) -> int:
    return meet(x)


def tiny(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def fork_then_wait(x: torch.Tensor, n: int) -> torch.Tensor:
    for _ in range(n):
        x = torch.jit.wait(torch.jit.fork(tiny, x))
    return x


def fork_all(x: torch.Tensor, n: int) -> torch.Tensor:
    futures: List[torch.jit.Future[torch.Tensor]] = []
    for _ in range(n):
        futures.append(torch.jit.fork(tiny, x))
    y = torch.zeros_like(x)
    for f in futures:
        y = y + torch.jit.wait(f)
    return y


def nested(x: torch.Tensor, depth: int) -> torch.Tensor:
    if depth == 0:
        return x
    a = torch.jit.fork(nested, x, depth - 1)
    b = torch.jit.fork(nested, x, depth // 2)
    return torch.jit.wait(a) + torch.jit.wait(b) * 0


def test_forks_give_what_calls_give():
    x = torch.randn(4)
    for f, want in ((fork_then_wait, x + 1000), (fork_all, (x + 1) * 1000)):
        script = torch.jit.script(f)
        assert machine(script)
        assert torch.allclose(script(x, 1000), want, rtol=1e-4)


def test_a_hundred_thousand_forks_do_not_grow():
    x = torch.ones(2)
    then, all_ = torch.jit.script(fork_then_wait), torch.jit.script(fork_all)
    then(x, 1000), all_(x, 1000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    then(x, 100_000)
    for _ in range(20):
        all_(x, 5_000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # kilobytes


def test_forks_in_forks():
    script = torch.jit.script(nested)
    x = torch.randn(3)
    for _ in range(20):
        assert torch.equal(script(x, 50), x)


def test_tasks_run_beside_each_other():
    def f(x: torch.Tensor) -> List[int]:
        a = torch.jit.fork(met, x)
        b = torch.jit.fork(met, x + 1)
        x = x * 2
        return [torch.jit.wait(a), torch.jit.wait(b)]

    script = torch.jit.script(f)
    a, b = script(torch.ones(2))
    assert a != b


def test_who_waits_at_once_runs_it():
    def f(x: torch.Tensor) -> int:
        return torch.jit.wait(torch.jit.fork(ident_of, x))

    assert torch.jit.script(f)(torch.ones(1)) == threading.get_ident()


def fails(x: torch.Tensor, n: int) -> torch.Tensor:
    return x[n]


def waits(x: torch.Tensor) -> torch.Tensor:
    f = torch.jit.fork(fails, x, 7)
    y = x + 1
    return torch.jit.wait(f) + y


def test_errors_come_with_both_traces():
    with pytest.raises(IndexError, match="index 7 is out of bounds") as error:
        torch.jit.script(waits)(torch.ones(2))
    shown = [(x.name, x.line) for x in traceback.extract_tb(error.value.__traceback__)][1:]
    assert shown == [("waits", "return torch.jit.wait(f) + y"), ("fails", "return x[n]")]


def test_modes_and_gradients_go_along():
    def part(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x @ w)

    def f(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        futures: List[torch.jit.Future[torch.Tensor]] = []
        for _ in range(5):
            futures.append(torch.jit.fork(part, x, w))
            x = x * 0.5
        out = x @ w
        for g in futures:
            out = out + torch.jit.wait(g)
        return out

    def sequential(x, w):
        parts = []
        for _ in range(5):
            parts.append(part(x, w))
            x = x * 0.5
        return sum(parts, x @ w)

    script = torch.jit.script(f)
    assert machine(script)
    x, w = torch.randn(3, 3), torch.randn(3, 3, requires_grad=True)
    (a,) = torch.autograd.grad(script(x, w).sum(), w)
    (b,) = torch.autograd.grad(sequential(x, w).sum(), w)
    assert torch.allclose(a, b)
    with torch.no_grad():
        assert not script(x, w).requires_grad
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(script(x, w), sequential(x, w))
    xs = torch.stack([x, x])[:, None]
    batched = torch.vmap(script, (0, None))(xs, w)
    assert torch.equal(batched, torch.vmap(sequential, (0, None))(xs, w))


def test_tasks_that_nobody_waits_for_end_with_the_process():
    program = """
        import flambeau as torch

        def spin(n: int) -> int:
            total = 0
            while total >= 0:
                total = (total + n) % 1000
            return total

        def f(x: torch.Tensor) -> torch.Tensor:
            torch.jit.fork(spin, 3)
            return x + 1

        print(torch.jit.script(f)(torch.ones(1)))
    """
    path = os.path.join(os.path.dirname(__file__), os.pardir, os.pardir)
    done = subprocess.run(
        [sys.executable, "-c", "import sys; exec(compile(open(sys.argv[1]).read(), sys.argv[1],"
         "'exec'))", _written(program)],
        capture_output=True, text=True, check=False, timeout=60, cwd=path,
    )  # fmt: skip
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "tensor([2.])", "")


def _written(program):
    import tempfile

    with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as f:
        f.write(textwrap.dedent(program))
    return f.name


def test_a_forked_process_has_tasks_of_its_own():
    script = torch.jit.script(fork_all)
    x = torch.ones(2)
    script(x, 100)
    child = os.fork()
    if child == 0:
        os._exit(0 if torch.equal(script(x, 100), torch.full((2,), 200.0)) else 1)
    assert os.waitpid(child, 0)[1] == 0
