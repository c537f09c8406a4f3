"""The cache of memory: what a loop asks for again comes out of it, and it stays small."""

import subprocess
import sys

import pytest

LOOP = """
import flambeau as fb

MB = 1 << 18  # floats

def step():
    peak = fb.empty(24 * MB)
    del peak
    for size in (3, 5, 9, 13):  # none of them at the peak, each of a size of its own
        x = fb.empty(size * MB)
        del x

for _ in range(3):
    step()
before = fb.memory_stats()
step()
after = fb.memory_stats()
print(after["allocations"] - before["allocations"], after["cache_hits"] - before["cache_hits"])
for n in range(1, 40):  # sizes that never come again
    fb.empty(n * MB + n * MB // 3)
s = fb.memory_stats()
print(s["peak_bytes"] >> 20, (s["live_bytes"] + s["cached_bytes"]) >> 20)
"""


@pytest.mark.freed_memory_is_kept
def test_a_loop_is_served_from_the_cache_and_the_cache_stays_bounded():
    done = subprocess.run(
        [sys.executable, "-c", LOOP], capture_output=True, text=True, check=True, timeout=60
    )
    loop, held = done.stdout.splitlines()
    assert loop == "5 5"
    peak, most = map(int, held.split())
    assert most <= peak + 32


AT_EXIT = """
import gc
import flambeau as fb

gc.disable()
x = fb.nn.Parameter(fb.ones(2))
y = x * 2
ring = [y]
y.ring = ring  # y's node, which alone has x then, goes in a collection after the last statement
del x, y, ring
"""


def test_what_dies_in_the_last_collection_harms_nothing():
    done = subprocess.run([sys.executable, "-c", AT_EXIT], capture_output=True, timeout=60)
    assert done.returncode == 0 and not done.stderr
