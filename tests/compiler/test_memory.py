"""Compiling and forgetting leaves nothing in memory (tools/compile_memory.py has a longer run)."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

import flambeau as torch
from flambeau import _C
from flambeau._compiler import toolchain
from tools._program_check import optimised
from tools.compile_memory import BOUND, compile_and_forget, growth, libraries


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("FLAMBEAU_CACHE", str(tmp_path))
    torch.compiler.reset()
    with optimised("-O1"):
        yield


@pytest.mark.freed_memory_is_kept
def test_what_is_forgotten_is_freed():
    assert growth(10, warm=4) <= BOUND
    assert libraries() == 0


def test_a_library_is_open_while_something_needs_it():
    x = torch.linspace(-1, 1, 12).view(3, 4).requires_grad_()
    f = torch.compile(lambda x: torch.softmax(x * 2, -1).sum(0))
    y = f(x)
    assert libraries() == 2  # forward and backward
    again = weakref.ref(f)
    torch.compiler.reset()
    del f
    gc.collect()
    assert again() is None and libraries() == 1  # the node has what backward runs
    y.sum().backward()
    assert torch.allclose(x.grad, torch.zeros(3, 4), atol=1e-6)
    del y
    gc.collect()
    assert libraries() == 0


def test_functions_share_a_library():
    x = torch.ones(5)
    fs = [torch.compile(lambda x: x.exp() + 1) for _ in range(2)]
    assert all(torch.allclose(f(x), x.exp() + 1) for f in fs)
    assert libraries() == 1
    fs[0]._flambeau_config.forget()
    gc.collect()
    assert torch.allclose(fs[1](x), x.exp() + 1) and libraries() == 1
    torch.compiler.reset()
    del fs
    gc.collect()
    assert libraries() == 0


def test_forgetting_in_the_middle_of_calls():
    """Other threads are inside of the library, its parallel regions too, while it is forgotten."""
    x = torch.linspace(0, 1, 1 << 20)
    want = x.sin() * 2
    f = torch.compile(lambda x: x.sin() * 2)
    done, wrong = threading.Event(), []

    def call():
        while not done.is_set():
            if not torch.allclose(f(x), want, atol=1e-6):
                wrong.append(1)

    threads = [threading.Thread(target=call) for _ in range(3)]
    for t in threads:
        t.start()
    for k in range(20):
        compile_and_forget(k % 2)  # resets what the threads run
    done.set()
    for t in threads:
        t.join()
    assert not wrong


TEXT = (
    'extern "C" __attribute__((visibility("default"))) void run(int, void*const*, const long*) {}'
)


def test_a_library_and_its_functions():
    library = toolchain.load(TEXT)
    run = library.function("run")
    with pytest.raises(OSError, match="there is no function walk"):
        library.function("walk")
    handle = library.handle
    del library
    assert handle and libraries() == 1  # the function keeps it
    del run
    assert libraries() == 0
    with pytest.raises(OSError, match="cannot open"):
        _C._Library("/nowhere/library.so")


def test_what_is_no_function_of_a_library_is_refused():
    spec = (((), (), ()), (), (), ((3, 0),), (), (4, ()))
    with pytest.raises(ValueError, match="a nest, but no library"):
        _C._Program(spec, (), None)
    for other in (1, "run", object()):
        with pytest.raises(TypeError, match="expected a function of a library"):
            _C._Program(spec, (), other)
