"""Training that PyTorch 2.13 began goes on here, and the losses are those of one run of PyTorch's.

`tools/resumed_training.py` made the checkpoints, and compares both ways where PyTorch is installed.
"""

import io
import json
import pathlib
import tarfile

import pytest

import flambeau as fb
from flambeau.serialization import load, save

from .cases.resumed import RUNS, STEPS, Run

ARCHIVE = pathlib.Path(__file__).parent / "pytorch_files" / "resumed.tar.gz"
with tarfile.open(ARCHIVE) as _archive:
    STORED = {entry.name: _archive.extractfile(entry).read() for entry in _archive}
LOSSES = json.loads(STORED["losses.json"])  # of 40 steps of PyTorch, in one run


@pytest.fixture(autouse=True)
def random_numbers():
    with fb.random.fork_rng():
        yield


def near(losses):
    return pytest.approx(losses, rel=1e-6)


@pytest.mark.parametrize("name", sorted(RUNS))
def test_begun_there_and_gone_on_here(name):
    run = Run(fb, name)
    run.go_on(load(io.BytesIO(STORED[f"{name}.pt"])))
    assert run.steps(STEPS) == near(LOSSES[name][STEPS:])


@pytest.mark.parametrize("name", sorted(RUNS))
def test_begun_and_gone_on_here(name):
    run = Run(fb, name)
    losses = run.steps(STEPS)
    stream = io.BytesIO()
    save(run.state(), stream)
    rest = run.steps(STEPS)
    assert losses + rest == near(LOSSES[name])
    other = Run(fb, name)
    other.go_on(load(stream))
    assert other.steps(STEPS) == rest


@pytest.mark.parametrize("name", sorted(RUNS))
def test_the_checkpoint_has_the_same_keys(name):
    run = Run(fb, name)
    run.steps(STEPS)

    def keys(value):
        if isinstance(value, dict):
            return {k: keys(v) for k, v in value.items()}
        return [keys(v) for v in value] if isinstance(value, list) else type(value)

    theirs = load(io.BytesIO(STORED[f"{name}.pt"]))
    assert json.dumps(keys(run.state()), default=str) == json.dumps(keys(theirs), default=str)
    assert run.state()["scaler"] == theirs["scaler"]  # the overflow was met by both


def test_every_part_of_the_state_is_needed():
    run = Run(fb, "mlp")
    for part in ("rng", "optimizer"):
        state = load(io.BytesIO(STORED["mlp.pt"]))
        other = Run(fb, "mlp")
        state[part] = {"rng": fb.get_rng_state, "optimizer": other.optimiser.state_dict}[part]()
        run.go_on(state)
        assert run.steps(STEPS) != near(LOSSES["mlp"][STEPS:])
