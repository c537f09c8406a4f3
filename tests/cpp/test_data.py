"""Data in C++: orders are those of Python's samplers, batches those of any number of threads."""

from __future__ import annotations

import os
import re
import struct
import subprocess

import numpy as np
import pytest

import flambeau as torch
from flambeau.utils.data import DistributedSampler, RandomSampler
from tests.cpp.conftest import program


def write_digits(folder, name: str, count: int, seed: int) -> np.ndarray:
    """Files as those of MNIST: a bright square whose place says the digit, in noise."""
    rng = np.random.default_rng(seed)
    targets = rng.integers(0, 10, count).astype(np.uint8)
    images = rng.integers(0, 55, (count, 28, 28)).astype(np.uint8)
    for image, digit in zip(images, targets, strict=True):
        row, column = divmod(int(digit), 4)
        image[3 + 8 * row : 9 + 8 * row, 2 + 6 * column : 8 + 6 * column] += 200
    head = struct.pack(">4I", 2051, count, 28, 28)
    (folder / f"{name}-images-idx3-ubyte").write_bytes(head + images.tobytes())
    head = struct.pack(">2I", 2049, count)
    (folder / f"{name}-labels-idx1-ubyte").write_bytes(head + targets.tobytes())
    return targets


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits")
    targets = write_digits(folder, "train", 640, 0)
    write_digits(folder, "t10k", 200, 1)
    for name in ("cut", "other"):
        (folder / name).mkdir()
    whole = (folder / "train-images-idx3-ubyte").read_bytes()
    (folder / "cut" / "train-images-idx3-ubyte").write_bytes(whole[:1000])
    labels = (folder / "train-labels-idx1-ubyte").read_bytes()
    (folder / "other" / "train-images-idx3-ubyte").write_bytes(labels)
    return folder, targets


def run(binary, *args) -> str:
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    done = subprocess.run(
        [binary, *map(str, args)], capture_output=True, text=True, check=False, env=environment,
        timeout=300,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def test_samplers_and_loaders(build_program, digits):
    folder, targets = digits
    lines = run(build_program(program("data"), "-pthread"), folder).splitlines()
    generator = torch.Generator().manual_seed(4)
    indices = [list(map(int, re.findall(r"\d+", line))) for line in lines[:8]]
    assert indices[0] == list(RandomSampler(range(10), generator=generator))
    assert lines[1] == "0 1 | 2 3 | 4 | "
    for rank in range(3):
        sampler = DistributedSampler(range(10), 3, rank)
        sampler.set_epoch(2)
        assert indices[2 + rank] == list(sampler)
    for i, drop in ((5, False), (6, True)):
        sampler = DistributedSampler(range(10), 3, 2, shuffle=False, drop_last=drop)
        assert indices[i] == list(sampler)
    assert lines[7] == "2 3 4 | 5 | "
    batches = [
        f"tensor([{', '.join(str(i * i) for i in part)}])[{len(part)}, 1, 2, 2] "
        for part in (range(4), range(4, 8), range(8, 10))
    ]
    assert lines[8:14] == ["".join(batches)] * 2 + ["".join(batches[:2])] + ["".join(batches)] * 3
    assert lines[14:16] == ["104", "20 22 14 "]
    assert lines[16:18] == ["tensor([[ 0, 10],", "        [20, 30]]) tensor([[40, 50]]) "]
    assert lines[18].startswith(f"640 2001[640, 1, 28, 28]tensor({targets[1]})")
    assert lines[18].endswith(f"tensor([{', '.join(map(str, targets[:5]))}])")
    for line, said in zip(
        lines[19:],
        (
            "no example 13", "Caught exception in DataLoader worker thread. Original message: no "
            "example 13", "(timeout was 20 ms)", "batch_size must be positive",
            "of a DataLoader that was joined", "Invalid rank 2", "Error opening images file at",
            "ends early", "is no file of images: it begins with 2049, expected 2051",
        ),
        strict=True,
    ):  # fmt: skip
        assert said in line, (said, line)


def test_a_network_learns_digits(build_program, digits):
    out = run(build_program(program("mnist"), "-pthread"), digits[0])
    assert out.splitlines()[-1] == "right: 1", out


def test_two_networks_train_and_are_saved(build_program, tmp_path):
    write_digits(tmp_path, "train", 256, 0)
    out = run(build_program(program("dcgan"), "-pthread"), tmp_path, tmp_path).splitlines()
    assert len(out) == 2 and out[0].startswith("[ 1/ 1][  8/  8] D_loss: ")
    assert out[1] == "[1, 1, 28, 28]"
    sample = torch.load(tmp_path / "dcgan-sample-1.pt")
    assert sample.shape == (8, 1, 28, 28) and 0 <= float(sample.min()) < float(sample.max()) <= 1
    state = torch.load(tmp_path / "generator-checkpoint.pt")
    assert state["conv1.weight"].shape == (16, 32, 4, 4)
    assert (
        torch.load(tmp_path / "generator-optimizer-checkpoint.pt")["param_groups"][0]["lr"] == 2e-4
    )


def test_sets_that_are_not_there_are_refused_by_name(tmp_path):
    source = "#include <torch/torch.h>\ntorch::data::datasets::ChunkDataset<int> x;\n"
    from tests.cpp.conftest import PACKAGE

    (tmp_path / "p.cpp").write_text(source)
    command = ["g++", "-std=c++20", f"-I{PACKAGE / 'include'}", "-fsyntax-only", "p.cpp"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "ChunkDataset is not in Flambeau" in done.stderr
