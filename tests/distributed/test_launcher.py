"""`python -m flambeau.distributed.run`: variables, output, failures, signals, restarts."""

import os
import signal
import subprocess
import sys
import time

import pytest

from flambeau.distributed import run
from flambeau.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure

# Lines of several processes are not mixed when each is written at once.
SAY = """
import os, sys
def say(*words, fd=1):
    os.write(fd, (" ".join(map(str, words)) + "\\n").encode())
"""
COMMAND = [sys.executable, "-m", "flambeau.distributed.run"]


def begin(folder, code, *options, arguments=()):
    script = folder / "program.py"
    script.write_text(SAY + code)
    pipe = subprocess.PIPE
    command = [*COMMAND, *options, str(script), *arguments]
    # A shell lets its background jobs ignore SIGINT, and those what they start.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)
    finally:
        signal.signal(signal.SIGINT, before)


def launch(folder, code, *options, arguments=()):
    """(status, output, errors)"""
    process = begin(folder, code, *options, arguments=arguments)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


TRAIN = """
import os, sys
import flambeau as torch
import flambeau.distributed as dist
dist.init_process_group()
x = torch.tensor([float(os.environ["LOCAL_RANK"])])
dist.all_reduce(x)
names = "RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_RANK ROLE_NAME OMP_NUM_THREADS".split()
say(x.item(), sys.argv[1:], *(os.environ[n] for n in names), dist.is_torchelastic_launched())
dist.destroy_process_group()
"""


def test_processes_meet(tmp_path, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    options = ("--standalone", "--nproc-per-node=2")
    status, out, err = launch(tmp_path, TRAIN, *options, arguments=("--epochs", "3"))
    assert status == 0, err
    expected = "1.0 ['--epochs', '3'] {} 2 2 0 default 1 True"
    assert sorted(out.splitlines()) == [expected.format(r) for r in range(2)]


FAILS = """
import os, sys, time
from flambeau.distributed.elastic.multiprocessing.errors import record
@record
def main():
    if os.environ["RANK"] == "1":
        raise KeyError("what went wrong")
    say(os.getpid())
    time.sleep(60)
main()
"""


def gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_the_first_failure_is_shown_and_all_end(tmp_path):
    before = time.monotonic()
    status, out, err = launch(tmp_path, FAILS, "--nproc-per-node=3")
    assert status == 1 and time.monotonic() - before < 20
    last = err[err.index("program.py failed") :]
    assert "first: rank 1 (local rank 1, process" in last and "ended with 1" in last
    assert "KeyError: 'what went wrong'" in last and "raise KeyError" in last
    assert all(gone(int(pid)) for pid in out.split())


DEAF = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.environ["RANK"] == "0":
    open(sys.argv[1] + "/pid", "w").write(str(os.getpid()))
    time.sleep(60)
while not os.path.exists(sys.argv[1] + "/pid"):
    time.sleep(0.01)
time.sleep(0.2)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_deaf_process_is_killed(tmp_path):
    options = ("--nproc-per-node=2", "--shutdown-timeout=0.5")
    status, _, err = launch(tmp_path, DEAF, *options, arguments=(str(tmp_path),))
    assert status == 1 and "first: rank 1" in err and "SIGKILL (signal 9) ended it" in err
    assert gone(int((tmp_path / "pid").read_text()))


SLEEPS = """
import os, time
say(os.getpid())
time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_all(tmp_path, number):
    process = begin(tmp_path, SLEEPS, "--nproc-per-node=2")
    pids = [int(process.stdout.readline()) for _ in range(2)]
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 128 + number and f"stopped by {number.name}" in err
    assert all(map(gone, pids))


def test_no_process_outlives_the_launcher(tmp_path):
    process = begin(tmp_path, SLEEPS, "--nproc-per-node=2")
    pids = [int(process.stdout.readline()) for _ in range(2)]
    process.kill()
    process.communicate(timeout=30)
    deadline = time.monotonic() + 10
    while not all(map(gone, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert all(map(gone, pids))


SAYS = """
import os, sys
say("out", os.environ["RANK"])
say("err", os.environ["RANK"], fd=2)
sys.exit(int(os.environ["TORCHELASTIC_RESTART_COUNT"]) < 1 and os.environ["RANK"] == "0")
"""


def test_output_and_restarts(tmp_path):
    logs = tmp_path / "logs"
    options = ["--nproc-per-node=3", f"--log-dir={logs}", "--max-restarts=1", "--rdzv-id=name"]
    status, out, err = launch(tmp_path, SAYS, *options, "-r", "1:3,2:1", "-t", "0:1")
    assert status == 0, err
    assert set(out.splitlines()) == {"[default0]:out 0"}
    assert "err 2" in err and "err 1" not in err and "started again, 1 of 1" in err
    (folder,) = logs.iterdir()
    assert folder.name.startswith("name_")
    read = {str(p.relative_to(folder)): p.read_text() for p in folder.glob("attempt_1/*/*.log")}
    assert read == {
        "attempt_1/0/stdout.log": "out 0\n",
        "attempt_1/1/stdout.log": "out 1\n",
        "attempt_1/1/stderr.log": "err 1\n",
        "attempt_1/2/stdout.log": "out 2\n",
    }
    options = ["--nproc-per-node=2", "--max-restarts=1", "--local-ranks-filter=1"]
    assert set(launch(tmp_path, SAYS, *options)[1].splitlines()) == {"out 1"}


def test_kinds_of_programs(tmp_path):
    (tmp_path / "named.py").write_text("import sys; print(__name__, sys.argv[1:])")
    pipe = {"capture_output": True, "text": True, "cwd": tmp_path}
    for options in (["-m", "named"], ["--run-path", "named.py"], ["named.py"]):
        done = subprocess.run([*COMMAND, *options, "a", "-b"], **pipe)
        assert done.stdout == "__main__ ['a', '-b']\n", done.stderr
    done = subprocess.run([*COMMAND, "--no-python", "echo", "hello"], **pipe)
    assert done.stdout == "hello\n", done.stderr


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--nproc-per-node=gpu"], "expected a number from 1, auto or cpu, got 'gpu'"),
        (["--rdzv-conf=a=b"], "--rdzv-conf: expected timeout=SECONDS"),
        (["-r", "7"], "--redirects: expected 0 to 3"),
    ],
)
def test_refused(options, text):
    with pytest.raises(SystemExit, match=text):
        run.main([*options, "program.py"])


def test_what_a_failure_says(tmp_path):
    failure = ProcessFailure(0, 7, -11, str(tmp_path / "none"), timestamp=2.0)
    first = ProcessFailure(1, 8, 3, str(tmp_path / "none"), timestamp=1.0)
    error = ChildFailedError("train.py", {0: failure, 1: first})
    assert error.get_first_failure() == (1, first) and failure.signal_name() == "SIGSEGV"
    assert str(error).splitlines()[-1] == "then: rank 0 (local rank 0, process 7) ended with -11"
