"""Compiled code is made for the level of instructions that eager's kernels keep to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import flambeau as torch

PROGRAM = """
import flambeau as torch
from flambeau._compiler.toolchain import flags

torch.manual_seed(0)
x = torch.rand(999) * 6 - 3
g = lambda x: (x * 2)[::2].exp() - x[::2]
print([a for a in flags() if a.startswith("-march")], torch.equal(torch.compile(g)(x), g(x)))
print(torch.backends.cpu.get_cpu_capability())
"""


def run(level, folder):
    env = {**os.environ, "FLAMBEAU_CACHE": str(folder), "FLAMBEAU_ISA": level}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        env=env,
        cwd=Path(torch.__file__).parents[1],
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(("level", "capability"), [("v2", "DEFAULT"), ("v3", "AVX2")])
def test_compiled_code_rounds_as_eager_does(level, capability, tmp_path):
    if torch._C._build_info()["isa"] < level:
        pytest.skip(f"the processor, or this build, has no {level}")
    march, equal, found = run(level, tmp_path)
    assert (march, equal, found) == (f"['-march=x86-64-{level}']", "True", capability)
