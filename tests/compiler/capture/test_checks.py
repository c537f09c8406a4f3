"""Branches of which one way only raises: graphs go on the other way, and look at the condition.

Plain Python is the reference: the same results, the same errors from the same lines, and nothing
changed before an error that plain Python had not changed.
"""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import nn
from flambeau._dynamo.utils import counters
from flambeau.distributions import Categorical

from .programs_checks import BAD, GOOD, PROGRAMS, if_any, one_of_two_messages, several


@pytest.fixture(autouse=True)
def _fresh():
    torch.compiler.reset()
    counters.clear()


def outcome(f, x):
    try:
        return str(f(x).tolist())  # where NaN is equal to itself
    except Exception as error:
        lines = [entry for entry in traces(error) if entry[0].endswith("_checks.py")]
        return type(error), str(error), lines[1:]


def traces(error):
    at = error.__traceback__
    while at is not None:
        yield at.tb_frame.f_code.co_filename, at.tb_lineno, at.tb_frame.f_code.co_name
        at = at.tb_next


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_one_graph_and_the_errors_of_plain_python(f, backend):
    compiled = torch.compile(f, backend=backend, fullgraph=True)
    for x in (GOOD, BAD, GOOD, torch.tensor([5.0, 1.0, 2.0]), BAD, torch.full((3,), torch.nan)):
        if f is one_of_two_messages and x is not GOOD:
            continue  # a branch within a way that only raises is taken by plain Python alone
        assert outcome(compiled, x) == outcome(f, x)
    assert not counters["graph_break"]


def test_the_checks_are_told():
    compiled = torch.compile(several, fullgraph=True)
    compiled(GOOD)
    guards = compiled._flambeau_config.parts[0].guards
    assert sum(g.startswith("a branch that would raise is not taken (") for g in guards) == 3
    assert any("programs_checks.py" in g and "in several" in g for g in guards)


def test_nothing_is_changed_before_an_error():
    log, total = [], torch.zeros(3)

    def f(x):
        log.append("began")
        if (x < 0).any():
            raise ValueError("negative")
        log.append("went on")
        return x * 2 + total

    compiled = torch.compile(f, fullgraph=True)
    compiled(GOOD)
    assert log == ["began", "went on"]
    with pytest.raises(ValueError, match="negative"):
        compiled(BAD)
    assert log == ["began", "went on", "began"]


def changes_an_input(x):
    x.add_(1)
    if (x < 0).any():
        raise ValueError("negative")
    return x * 2


BATCH_NORM = nn.BatchNorm1d(3)


def updates_statistics(x):
    y = BATCH_NORM(torch.stack((x, x + 1)))
    if (x < 0).any():
        raise ValueError("negative")
    return y


@torch.library.custom_op("tests_checks::noted", mutates_args=())
def noted(x: torch.Tensor) -> torch.Tensor:
    return x + 1


noted.register_fake(torch.empty_like)


def calls_an_operator(x):
    y = noted(x)
    if (x < 0).any():
        raise ValueError("negative")
    return y


@pytest.mark.parametrize("f", [changes_an_input, updates_statistics, calls_an_operator])
def test_a_graph_that_leaves_traces_ends_at_the_branch(f):
    compiled = torch.compile(f)
    results = []
    for call in (f, compiled):
        torch.manual_seed(0)
        BATCH_NORM.reset_running_stats()
        for x in (GOOD.clone(), BAD.clone()):
            results.append((outcome(call, x)[:2], x.tolist(), torch.rand(1).item()))
            results[-1] += ([round(v, 5) for v in BATCH_NORM.running_mean.tolist()],)
    assert results[:2] == results[2:]
    assert counters["graph_break"]["a branch depends on the values of a tensor"]


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_random_numbers_are_drawn_again(backend):
    def f(x):
        noise = torch.rand(3)
        if (x < 0).any():
            raise ValueError(f"negative: {noise.tolist()}, {torch.rand(1).item()}")
        return nn.functional.dropout(x * 2 + noise, 0.5)

    results = []
    for call in (f, torch.compile(f, fullgraph=True, backend=backend)):
        call(GOOD)
        for seed in range(3):
            torch.manual_seed(seed)
            results.append((outcome(call, BAD)[:2], torch.rand(1).item()))
    assert results[:3] == results[3:]


def test_checks_that_fail_often_are_breaks():
    def f(x):
        try:
            return if_any(x)
        except ValueError:
            return x * 10

    compiled = torch.compile(f)
    for _ in range(20):
        assert torch.equal(compiled(BAD), BAD * 10)
    assert counters["graph_break"]["a branch depends on the values of a tensor"] == 1
    assert torch.equal(compiled(GOOD), GOOD * 2) and torch.equal(compiled(BAD), BAD * 10)


def test_a_branch_that_goes_on_both_ways_is_no_check():
    def f(x):
        if (x < 0).any():
            x = x.abs()
        return x * 2

    compiled = torch.compile(f)
    assert torch.equal(compiled(BAD), BAD.abs() * 2) and torch.equal(compiled(GOOD), GOOD * 2)
    assert counters["graph_break"]["a branch depends on the values of a tensor"] == 1


def test_what_is_transformed_has_no_checks():
    def f(x):
        return torch.vmap(lambda row: if_any(row))(x.view(3, 1))

    with pytest.raises(Exception, match="depends on|data-dependent|values"):
        torch.compile(f, fullgraph=True)(GOOD)


def test_a_sample_of_a_categorical():
    def f(logits, value):
        return Categorical(logits=logits).log_prob(value)

    compiled = torch.compile(f, fullgraph=True)
    logits, value = torch.zeros(2, 3), torch.tensor([0, 2])
    assert torch.equal(compiled(logits, value), f(logits, value))
    with pytest.raises(ValueError, match="within the support"):
        compiled(logits, torch.tensor([0, 3]))
