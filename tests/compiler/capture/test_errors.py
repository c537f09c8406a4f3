"""What becomes of errors: a back end's reach the user, mistakes of capture itself are told once."""

from __future__ import annotations

import warnings

import pytest

import flambeau as torch
from flambeau._capture.interpreter import HANDLERS
from flambeau._dynamo import config
from flambeau._dynamo.exc import BackendCompilerFailed, Unsupported


def broken(graph, example_inputs):
    raise ValueError("this back end is broken")


def test_errors_of_a_back_end_are_raised_with_its_name_and_the_place():
    def f(x):
        return x.sin() + 1

    with pytest.raises(BackendCompilerFailed) as caught:
        torch.compile(f, backend=broken)(torch.ones(2))
    assert isinstance(caught.value, RuntimeError)
    assert caught.value.backend_name == "broken"
    assert isinstance(caught.value.inner_exception, ValueError)
    assert caught.value.__cause__ is caught.value.inner_exception
    lines = str(caught.value).splitlines()
    at = f"{__file__}:{f.__code__.co_firstlineno} in {f.__qualname__}"
    assert lines[0] == (
        f"compile: backend='broken' raised on the graph of 2 operations captured from {at}:"
    )
    assert lines[1] == "ValueError: this back end is broken"


def test_a_back_end_that_returns_no_function_is_an_error():
    with pytest.raises(BackendCompilerFailed, match="returns a callable, got NoneType"):
        torch.compile(lambda x: x + 1, backend=lambda graph, inputs: None)(torch.ones(2))


def test_a_compiler_that_fails_is_an_error_of_the_native_back_end(monkeypatch, tmp_path):
    from flambeau._compiler import toolchain

    monkeypatch.setenv("FLAMBEAU_CACHE", str(tmp_path))
    monkeypatch.setattr(toolchain, "compiler", lambda: "/bin/false")
    with pytest.raises(BackendCompilerFailed, match="backend='inductor' raised") as caught:
        torch.compile(lambda x: x.sin() * 3)(torch.ones(2))
    assert caught.value.backend_name == "inductor"


def test_errors_are_silent_when_asked_for(monkeypatch):
    monkeypatch.setattr(config, "suppress_errors", True)
    f = torch.compile(lambda x: x + 1, backend=broken)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert f(torch.ones(2)).tolist() == [2.0, 2.0]
        assert f(torch.ones(2)).tolist() == [2.0, 2.0]


@pytest.fixture
def mistake(monkeypatch):
    """An instruction that capture has wrong."""

    def handler(frame, instruction):
        raise KeyError("a mistake")

    monkeypatch.setitem(HANDLERS, "UNARY_NEGATIVE", handler)


def test_a_mistake_of_capture_is_told_once_and_the_program_runs(mistake):
    def f(x):
        y = x + 1
        return -y

    g = torch.compile(f, backend="eager")
    line = f.__code__.co_firstlineno + 2
    with pytest.warns(RuntimeWarning, match="capture failed") as seen:
        assert g(torch.ones(2)).tolist() == [-2.0, -2.0]
        assert g(torch.ones(3)).tolist() == [-2.0, -2.0, -2.0]
    assert len(seen) == 1 and seen[0].lineno == line and seen[0].filename == __file__
    assert "KeyError: 'a mistake'" in str(seen[0].message)


def test_a_mistake_of_capture_is_raised_with_fullgraph(mistake):
    g = torch.compile(lambda x: -x, backend="eager", fullgraph=True)
    with pytest.raises(Unsupported, match="capture failed") as caught:
        g(torch.ones(2))
    assert isinstance(caught.value.__cause__, KeyError)
