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


# Blocks of 64 KB to 2 MB come and go at random; each is full of its own number.
SLABS = """
import random
import flambeau as fb

def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) << 12

random.seed(1)
fb.full((20000,), 1.0) == 1  # what a first use loads
start, live, most = resident(), [], 0
for step in range(3000):
    if live and random.random() < 0.48:
        x, number = live.pop(random.randrange(len(live)))
        assert (x == number).all(), "blocks overlap"
    else:
        shape = random.choice([16400, 20000, 70000, 130000, 300000, 520000])
        live.append((fb.full((shape,), float(step)), float(step)))
    most = max(most, sum(x.nbytes for x, _ in live))
    if step % 500 == 0:
        fb.empty_cache()
for x, number in live:
    assert (x == number).all(), "blocks overlap"
held = resident() - start
live.clear()
fb.empty_cache()
print(most >> 20, held >> 20, (resident() - start) >> 20)
"""


@pytest.mark.freed_memory_is_kept
def test_blocks_that_share_pages_neither_overlap_nor_stay():
    done = subprocess.run(
        [sys.executable, "-c", SLABS], capture_output=True, text=True, check=True, timeout=120
    )
    most, held, rest = map(int, done.stdout.split())
    assert held <= 1.5 * most + 48  # the cache's slack, and holes
    assert rest <= 8
