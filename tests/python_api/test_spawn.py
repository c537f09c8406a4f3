"""`multiprocessing.spawn`: the first rank that fails ends the others, and its traceback is here."""

import os
import pickle
import signal
import sys
import time

import pytest

import flambeau.multiprocessing as mp

METHODS = ["fork", "spawn"]


def fail_alone(rank, bad, started):
    started[rank] = 1
    if rank == bad:
        while not all(started):
            time.sleep(0.01)
        raise KeyError("the table is gone")
    time.sleep(300)


def fail_at_length(rank):
    raise ValueError("x" * 1_000_000)


def leave(rank, code):
    if code < 0:
        os.kill(os.getpid(), -code)
    sys.exit(code)


def ignore_requests(rank):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if rank == 0:
        time.sleep(0.5)
        sys.exit(3)
    time.sleep(300)


def fill(rank, values):
    values[rank] = rank + 1


def interrupted(rank):
    raise KeyboardInterrupt


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("bad", [0, 1, 2])
def test_the_first_that_fails_ends_the_others(bad, method):
    started = mp.get_context(method).Array("b", 3)
    begin = time.monotonic()
    with pytest.raises(mp.ProcessRaisedException) as caught:
        mp.start_processes(fail_alone, (bad, started), nprocs=3, start_method=method)
    assert time.monotonic() - begin < 100
    text = str(caught.value)
    assert f"-- Process {bad} terminated with the following error:" in text
    assert "Traceback (most recent call last)" in text and "in fail_alone" in text
    assert "KeyError: 'the table is gone'" in text
    assert caught.value.error_index == bad and caught.value.error_pid > 0


def test_long_tracebacks():
    with pytest.raises(mp.ProcessRaisedException) as caught:
        mp.start_processes(fail_at_length, nprocs=2, start_method="fork")
    assert len(str(caught.value)) > 1_000_000


@pytest.mark.parametrize("code, text", [(7, "with exit code 7"), (-9, "with signal SIGKILL")])
def test_exits(code, text):
    with pytest.raises(mp.ProcessExitedException, match=text) as caught:
        mp.start_processes(leave, (code,), start_method="fork")
    assert caught.value.exit_code == code
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is mp.ProcessExitedException and again.exit_code == code
    assert again.signal_name == caught.value.signal_name


def test_what_does_not_end_is_killed():
    context = mp.start_processes(ignore_requests, nprocs=2, join=False, start_method="fork")
    begin = time.monotonic()
    with pytest.raises(mp.ProcessExitedException, match="process 0 terminated with exit code 3"):
        while not context.join(grace_period=0.2):
            pass
    assert time.monotonic() - begin < 20
    assert not any(process.is_alive() for process in context.processes)


def test_success_and_time_limits():
    values = mp.get_context("fork").Array("i", 3)
    context = mp.start_processes(fill, (values,), nprocs=3, join=False, start_method="fork")
    assert len(context.pids()) == 3
    while not context.join():
        pass
    assert list(values) == [1, 2, 3] and context.join()
    assert mp.start_processes(interrupted, start_method="fork") is None


def test_a_time_limit_that_passes():
    started = mp.get_context("fork").Array("b", 2)
    context = mp.start_processes(fail_alone, (5, started), 2, join=False, start_method="fork")
    assert context.join(timeout=0.1) is False
    for process in context.processes:
        process.kill()
    with pytest.raises(mp.ProcessExitedException, match="SIGKILL"):
        while not context.join():
            pass


def test_names():
    from flambeau.multiprocessing.spawn import ProcessContext, ProcessException

    assert mp.ProcessContext is ProcessContext
    assert issubclass(mp.ProcessRaisedException, ProcessException)
    assert issubclass(mp.ProcessExitedException, ProcessException)
    assert mp.spawn(fill, (mp.get_context("spawn").Array("i", 1),)) is None
