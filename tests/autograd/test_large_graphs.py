"""Graphs of a million nodes: recorded, run and freed in linear time, without recursion."""

import threading
import time

import flambeau as torch

N = 300_000


def chain(x, n):
    y = x
    for _ in range(n):
        y = y + x
    return y


def test_long_chain_forward_backward_free():
    x = torch.ones(1, requires_grad=True)
    y = chain(x, N)
    y.backward()
    assert x.grad.item() == N + 1


def test_long_chain_is_freed_without_backward():
    x = torch.ones(1, requires_grad=True)
    y = chain(x, N)
    del y


def test_diamonds():
    x = torch.ones(1, dtype=torch.float64, requires_grad=True)
    y = x
    for _ in range(1000):
        y = (y + y) * 0.5
    y.backward()
    assert x.grad.item() == 1.0
    y = x
    for _ in range(N // 3):
        y = y + y
    del y


def test_time_is_linear():
    def seconds(n):
        x = torch.ones(1, requires_grad=True)
        y = chain(x, n)
        start = time.perf_counter()
        y.backward()
        return time.perf_counter() - start

    small = min(seconds(20_000) for _ in range(3))
    large = min(seconds(200_000) for _ in range(2))
    assert large < 10 * small * 4 + 0.1


def test_chain_on_a_small_stack():
    x = torch.ones(1, requires_grad=True)
    failures = []

    def work():
        try:
            y = chain(x, 50_000)
            y.backward()
            del y
        except BaseException as error:
            failures.append(error)

    before = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert not failures and x.grad.item() == 50_001


def test_deeply_nested_backward():
    class Nested(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, depth):
            ctx.depth = depth
            return x * 2

        @staticmethod
        def backward(ctx, g):
            if not ctx.depth:
                return g, None
            with torch.enable_grad():
                x = torch.ones(1, requires_grad=True)
                Nested.apply(x, ctx.depth - 1).backward()
            return x.grad + g, None

    x = torch.ones(1, requires_grad=True)
    Nested.apply(x, 1000).backward()
    assert x.grad.item() == 1001.0
