"""Workers that die, stop or hang, and programs that end while workers run: nothing is left."""

import os
import signal
import subprocess
import sys
import time

import pytest

import flambeau as fb
from flambeau.utils.data import DataLoader, Dataset
from tools import loader_faults


class Numbers(Dataset):
    """Numbers, at some of which something happens, once."""

    def __init__(self, happens, done=None):
        self.happens, self.done = happens, done

    def __len__(self):
        return 12

    def __getitem__(self, i):
        if i in self.happens and not (self.done and self.done.exists()):
            if self.done:
                self.done.touch()
            self.happens[i]()
        return i


def killed():
    os.kill(os.getpid(), signal.SIGKILL)


def test_random_faults_end_in_clear_errors_and_leave_nothing():
    assert loader_faults.main(25, seed=5) == 0


def test_a_dead_worker_is_named_with_its_cause_without_a_time_limit():
    batches = iter(DataLoader(Numbers({5: killed}), num_workers=2))
    pid = batches._workers[1].pid
    assert [next(batches).item() for _ in range(5)] == [0, 1, 2, 3, 4]
    began = time.monotonic()
    with pytest.raises(RuntimeError) as caught:
        next(batches)
    assert str(caught.value) == (
        f"DataLoader worker (pid(s) {pid}) exited unexpectedly\n"
        f"worker 1 (pid {pid}): killed by SIGKILL, as the kernel does where memory runs out"
    )
    assert time.monotonic() - began < 4
    with pytest.raises(RuntimeError, match="the workers of this pass have ended; call iter"):
        next(batches)


def test_kept_workers_are_started_again_after_one_has_died(tmp_path):
    data = Numbers({4: killed}, tmp_path / "done")
    loader = DataLoader(data, num_workers=2, persistent_workers=True)
    with pytest.raises(RuntimeError, match="killed by SIGKILL"):
        list(loader)
    assert [b.item() for b in loader] == list(range(12))


def test_an_exception_that_no_other_process_knows():
    def raises():
        class Local(LookupError):
            pass

        raise Local("here alone")

    loader = DataLoader(Numbers({0: raises}), num_workers=1)
    with pytest.raises(LookupError, match="Caught Local in DataLoader worker process 0"):
        next(iter(loader))


def test_long_requests_and_answers_do_not_block_one_another():
    """More than a socket holds goes both ways while nobody reads."""
    keys = [[f"{n:0100000d}"] * 3 for n in range(12)]

    class Echo(Dataset):
        def __getitem__(self, key):
            return key

    loader = DataLoader(
        Echo(), batch_size=None, sampler=[tuple(k) for k in keys], num_workers=2,
        prefetch_factor=6, collate_fn=list, timeout=60,
    )  # fmt: skip
    assert list(loader) == keys


PROGRAM = """
import sys, time
from flambeau.utils.data import DataLoader, Dataset
import flambeau as torch
class Slow(Dataset):
    def __len__(self):
        return 1000
    def __getitem__(self, i):
        time.sleep(0.02)
        return torch.full((100_000,), float(i))
def main():
    batches = iter(DataLoader(Slow(), num_workers=2, batch_size=None{options}))
    next(batches)
    print(*[p.pid for p in batches._workers], flush=True)
    {then}
if __name__ == "__main__":
    main()
"""
GO_ON = "for batch in batches: pass"


def start(tmp_path, then=GO_ON, options=""):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.format(then=then, options=options))
    process = subprocess.Popen(
        [sys.executable, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell's background jobs, of which this may be one, are started with interrupts ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    return process, [int(pid) for pid in process.stdout.readline().split()]


def shared():
    return set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()


def ended(pids, seconds):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not any(os.path.exists(f"/proc/{pid}/cmdline") and running(pid) for pid in pids):
            return True
        time.sleep(0.05)
    return False


def running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("options", ["", ", persistent_workers=True", ", timeout=5"])
def test_an_interrupt_ends_all(tmp_path, options):
    before = shared()
    process, pids = start(tmp_path, options=options)
    assert len(pids) == 2
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode in (-signal.SIGINT, 1, 130)
    assert errors.count("Traceback") == 1 and errors.strip().endswith("KeyboardInterrupt")
    assert ended(pids, 5) and not loader_faults.left_by_nobody(shared() - before)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_when_the_program_is_killed(tmp_path, number):
    before = shared()
    process, pids = start(tmp_path)
    process.send_signal(number)
    process.communicate(timeout=30)
    assert ended(pids, 10) and not loader_faults.left_by_nobody(shared() - before)


@pytest.mark.parametrize(
    "then", ["return", "sys.exit(0)", "del batches", GO_ON.replace("pass", "return")]
)
def test_a_program_that_ends_in_a_pass_ends_its_workers(tmp_path, then):
    process, pids = start(tmp_path, then)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 0 and errors == "" and ended(pids, 5)


@pytest.mark.parametrize("mount", ["size=16m", "size=4k", "size=4k,ro"])
def test_a_small_shared_memory_is_enough(tmp_path, mount):
    """In a mount namespace where we may make one; the batches are larger than what is mounted."""
    path = tmp_path / "program.py"
    path.write_text(
        "import flambeau as torch\n"
        "from flambeau.utils.data import DataLoader\n"
        "rows = [torch.full((1_500_000,), float(i)) for i in range(8)]\n"
        "for kind in ('process', 'thread'):\n"
        "    loader = DataLoader(rows, 4, num_workers=2, worker_backend=kind)\n"
        "    print([batch.sum().item() / 1_500_000 for batch in loader])\n"
    )
    script = f"mount -t tmpfs -o {mount} none /dev/shm 2>/dev/null; exec {sys.executable} {path}"
    namespace = ["unshare", "-m"]
    try:
        subprocess.run([*namespace, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        namespace = []
    done = subprocess.run(
        [*namespace, "bash", "-c", script if namespace else f"exec {sys.executable} {path}"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stderr == "" and done.stdout == "[6.0, 22.0]\n" * 2


def test_descriptors_and_memory_go_with_the_pass():
    def passes(count):
        for _ in range(count):
            loader = DataLoader([fb.zeros(100_000)] * 6, num_workers=2)
            batches = iter(loader)
            next(batches)
            del batches
            assert len(list(loader)) == 6
        return len(os.listdir("/proc/self/fd"))

    before = passes(1)
    assert passes(4) <= before


def test_workers_load_numpy_when_they_need_it_and_seed_it_then(tmp_path):
    program = (
        "import sys\n"
        "import flambeau as torch\n"
        "from flambeau.utils.data import DataLoader\n"
        "class Data:\n"
        "    def __len__(self):\n"
        "        return 4\n"
        "    def __getitem__(self, i):\n"
        "        before = 'numpy' in sys.modules\n"
        "        import numpy as np\n"
        "        return before, np.random.randint(1 << 30)\n"
        "{}"
        "torch.manual_seed(3)\n"
        "print(list(DataLoader(Data(), None, num_workers=2, collate_fn=tuple)))\n"
    )
    outputs = []
    for first in ("", "import numpy.random\n"):
        done = subprocess.run(
            [sys.executable, "-c", program.format(first)],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.stderr == ""
        outputs.append(eval(done.stdout))
    late, early = outputs
    assert [value for _, value in late] == [value for _, value in early]
    assert [loaded for loaded, _ in late] == [False, False, True, True]
