"""Tasks of fork: on threads, with the modes of who forks, and without locks."""

import os
import threading
import time

import pytest

import flambeau as torch
from flambeau._script import forks


def done(task, seconds=10):
    limit = time.monotonic() + seconds
    while not task.done() and time.monotonic() < limit:
        time.sleep(0.001)
    return task.done()


def test_tasks_run_on_other_threads_at_once():
    meet = threading.Barrier(2, timeout=10)

    def task():
        meet.wait()  # comes back when both are there
        return threading.get_ident()

    if torch.get_num_interop_threads() < 2:
        pytest.skip("one thread for tasks")
    tasks = [forks.fork(task) for _ in range(2)]
    assert all(done(t) for t in tasks)
    assert len({threading.get_ident(), *(t.wait() for t in tasks)}) == 3


def test_who_waits_runs_what_is_not_begun():
    hold = threading.Event()
    count = torch.get_num_interop_threads()
    blocked = [forks.fork(hold.wait) for _ in range(count)]
    late = forks.fork(threading.get_ident)
    assert late.wait() == threading.get_ident()
    hold.set()
    assert all(t.wait() for t in blocked)


def test_tasks_that_wait_for_tasks_never_lock():
    def total(n):
        if n == 0:
            return 1
        parts = [forks.fork(total, n - 1) for _ in range(3)]
        return sum(p.wait() for p in parts)

    assert forks.fork(total, 5).wait() == 3**5


def test_modes_go_along():
    def modes():
        x = torch.ones(2, 2, requires_grad=not torch.is_inference_mode_enabled())
        return (x * 2).requires_grad, torch.is_inference(x), (x @ x).dtype

    def on_a_thread():
        task = forks.fork(modes)
        assert done(task)
        return task.wait()

    assert on_a_thread() == (True, False, torch.float32)
    with torch.no_grad():
        assert on_a_thread() == (False, False, torch.float32)
    with torch.inference_mode():
        assert on_a_thread() == (False, True, torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        assert on_a_thread() == (True, False, torch.bfloat16)
    assert on_a_thread() == (True, False, torch.float32)


def test_errors_arrive_where_they_are_waited_for():
    def fails():
        raise ValueError("of the task")

    task = forks.fork(fails)
    with pytest.raises(ValueError, match="of the task"):
        task.wait()


def test_gradients_flow_through_tasks():
    @torch.jit.script
    def square(x: torch.Tensor) -> torch.Tensor:
        return x * x

    @torch.jit.script
    def f(x: torch.Tensor) -> torch.Tensor:
        future = torch.jit.fork(square, x)
        return torch.jit.wait(future) + square(x)

    x = torch.tensor([3.0], requires_grad=True)
    f(x).sum().backward()
    assert x.grad.item() == 12
    assert torch.func.grad(lambda x: f(x).sum())(torch.tensor([3.0])).item() == 12
    assert torch.func.vmap(f)(torch.ones(3, 2)).tolist() == [[2, 2]] * 3
    value, tangent = torch.func.jvp(f, (torch.tensor([3.0]),), (torch.ones(1),))
    assert (value.item(), tangent.item()) == (18, 12)


def test_children_of_fork_have_threads_of_their_own():
    assert forks.fork(os.getpid).wait() == os.getpid()
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            task = forks.fork(os.getpid)
            os.write(write, f"{done(task)} {task.wait() == os.getpid()}".encode())
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(read, 100).decode() == "True True"
