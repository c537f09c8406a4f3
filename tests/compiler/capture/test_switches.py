"""Switches of `_dynamo.config`: each has its effect, unknown ones are refused; `_dynamo.utils`."""

from __future__ import annotations

import logging

import pytest

import flambeau as torch
from flambeau._dynamo import config, exc, utils


@pytest.fixture(autouse=True)
def _fresh():
    torch.compiler.reset()
    utils.counters.clear()


def test_unknown_names_and_values_are_refused():
    with pytest.raises(AttributeError, match="there is no switch 'cache_limit'.*recompile_limit"):
        config.cache_limit = 3
    with pytest.raises(AttributeError, match="there is no switch"):
        config.cache_limit  # noqa: B018
    with pytest.raises(TypeError, match="expected int, got str"):
        config.recompile_limit = "8"
    with pytest.raises(NotImplementedError, match="operations whose result's shape depends on"):
        config.capture_dynamic_output_shape_ops = True
    config.capture_dynamic_output_shape_ops = False
    assert not hasattr(config, "another")


@pytest.mark.parametrize("name", ["recompile_limit", "cache_size_limit"])
def test_the_limit_of_recompiles(name):
    f = torch.compile(lambda x, word: x * len(word), backend="eager")
    with config.patch(name, 2):
        assert config.recompile_limit == config.cache_size_limit == 2
        f(torch.ones(1), "a"), f(torch.ones(1), "bb")
        with pytest.warns(UserWarning, match="was compiled 2 times, which is the limit"):
            assert f(torch.ones(1), "ccc").item() == 3
    assert config.recompile_limit == 8


def test_an_error_at_the_limit():
    f = torch.compile(lambda x, word: x * len(word), backend="eager")
    with config.patch(recompile_limit=1, fail_on_recompile_limit_hit=True):
        f(torch.ones(1), "a")
        with pytest.raises(exc.FailOnRecompileLimitHit, match="word == 'a'"):
            f(torch.ones(1), "bb")


def test_an_error_on_recompile():
    f = torch.compile(lambda x, word: x * len(word), backend="eager")
    with config.patch({"error_on_recompile": True}):
        f(torch.ones(1), "a")
        with pytest.raises(exc.RecompileError, match="not so any more: word == 'a'"):
            f(torch.ones(1), "bb")
    assert f(torch.ones(1), "bb").item() == 2


def test_sizes_that_never_become_symbols():
    f = torch.compile(lambda x, n: x.sum() * n, backend="eager")
    with config.patch(automatic_dynamic_shapes=False):
        for n in (3, 4, 5):
            f(torch.ones(n), n)
    assert [p.symbols for p in f._flambeau_config.parts] == [[], [], []]


def test_sizes_that_are_symbols_from_the_start():
    f = torch.compile(lambda x: x.sum(), backend="eager")
    with config.patch(assume_static_by_default=False):
        f(torch.ones(3)), f(torch.ones(4))
    assert [p.symbols for p in f._flambeau_config.parts] == [["s0 = x.size(0) (was 3)"]]


@config.patch(recompile_limit=3)
def limit():
    return config.recompile_limit


def test_patch_is_a_decorator_and_undoes_itself():
    assert limit() == 3 and config.recompile_limit == 8
    with pytest.raises(AttributeError), config.patch(recompile_limit=5, unknown=1):
        pass
    assert config.recompile_limit == 8


def test_counters():
    def f(x):
        y = x + 1
        print(end="")
        return y * x.sin()

    torch.compile(f, backend="eager")(torch.ones(2))
    counters = utils.counters
    assert dict(counters["stats"]) == {"unique_graphs": 2, "calls_captured": 3}
    assert counters["graph_break"] == {"a call of print": 1}
    assert counters["frames"]["ok"] >= 2


def test_switches_of_one_value():
    for name in sorted(config._ONE_VALUE):
        only = getattr(config, name)
        setattr(config, name, only)
        with pytest.raises(NotImplementedError, match=f"{name}: expected {only}, got {not only}; "):
            setattr(config, name, not only)


def test_verbose_prints_what_ends_graphs(capsys):
    def f(x, word):
        torch._dynamo.graph_break()
        return x * len(word)

    with config.patch(verbose=True):
        compiled = torch.compile(f, backend="eager")
        compiled(torch.ones(1), "a"), compiled(torch.ones(1), "bb")
    err = capsys.readouterr().err
    assert "[graph_breaks] " in err and "test_switches.py:" in err and "[recompiles] " in err
    torch.compile(f, backend="eager")(torch.ones(1), "a")
    assert not capsys.readouterr().err


def test_disable():
    compiled = torch.compile(lambda x: x + torch.compiler.is_compiling(), backend="eager")
    with config.patch(disable=True):
        assert compiled(torch.zeros(1)).item() == 0
    assert compiled(torch.zeros(1)).item() == 1


def test_the_limit_of_all_compilations_together():
    def f(x, word):
        return x * len(word)

    first, second = (torch.compile(f, backend="eager") for _ in range(2))
    with config.patch(accumulated_cache_size_limit=2):
        first(torch.ones(1), "a"), first(torch.ones(1), "bb"), second(torch.ones(1), "a")
        with pytest.warns(UserWarning, match="which is the limit"):
            assert second(torch.ones(1), "ccc").item() == 3


def test_loggers_that_are_ignored():
    logger = logging.getLogger("flambeau.tests.ignored")
    seen = []
    logger.addFilter(lambda record: bool(seen.append(record)))

    def f(x):
        y = x + 1
        logger.warning("here %s", y.shape)
        return y * 2

    with config.patch(ignore_logger_methods={logging.Logger.warning}):
        compiled = torch.compile(f, backend="eager", fullgraph=True)
        assert compiled(torch.ones(1)).item() == 4 and not seen
    with config.patch(ignore_logger_methods={logger.warning}):
        torch.compiler.reset()
        assert torch.compile(f, backend="eager", fullgraph=True)(torch.ones(1)).item() == 4


def test_programs_that_ask_whether_they_are_traced(monkeypatch):
    """A process with many modules has no part in it: `sys.modules` is not looked at."""
    import sys
    import types

    for i in range(2500):
        monkeypatch.setitem(sys.modules, f"some_module_{i}", types.ModuleType(f"some_module_{i}"))

    def f(x):
        return x * 2 if torch.jit.is_tracing() else x * 3

    x = torch.ones(2)
    compiled = torch.compile(f, fullgraph=True)
    assert compiled(x).tolist() == [3, 3]
    traced = torch.jit.trace(f, x, check_trace=False)
    assert traced(x).tolist() == [2, 2]
    assert compiled(x).tolist() == [3, 3]
