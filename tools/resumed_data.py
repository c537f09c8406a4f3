"""Random stops of pipes, nodes and loaders: what is put back goes on as if nothing had been.

    python -m tools.resumed_data --count 2000 --seed 1

Each trial draws an object (`_resume_draw`), runs three passes of it, runs it once more up to a
random element, saves its state and the program's generators, and puts them back in another object
like it, now and then in a fresh process. The rest of the pass and the next passes must be those of
the first run; where batches come as they are ready, the same batches. Some are stopped twice.
"""

from __future__ import annotations

import argparse
import io
import itertools
import pickle
import random
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import flambeau as fb
from flambeau.utils.data import nodes
from flambeau.utils.data._utils.snapshot import read_global, write_global

from . import _resume_draw

PASSES = 3


@dataclass
class Stop:
    """Where a trial stops.

    Attributes:
        full: passes before the one that is stopped.
        taken: elements of that pass; -1 before its iterator is made.
        ended: whether the end of the pass is seen, after its last element.
        fresh: whether to go on in another process.
        hop: elements after which what was put back is stopped again, or None.
    """

    full: int
    taken: int
    ended: bool
    fresh: bool
    hop: int | None


def _plain(value: Any) -> Any:
    if isinstance(value, fb.Tensor):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


def _seed(seed: int) -> None:
    random.seed(seed)
    fb.manual_seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002


def _saved(state: Any) -> Any:
    """A state after a file that holds plain data and tensors alone."""
    file = io.BytesIO()
    fb.save(state, file)
    file.seek(0)
    return fb.load(file, weights_only=True)


def whole(seed: int) -> list[list[Any]]:
    """The passes of a run that nothing stops."""
    made, _ = _resume_draw.subject(seed)
    _seed(seed)
    return [[_plain(element) for element in made] for _ in range(PASSES)]


def _taken(made: Any, count: int, ended: bool) -> tuple[list[Any], Iterator[Any] | None]:
    """Some elements of a pass, and its iterator, which has to live while the state is taken."""
    if count < 0:
        return [], None
    iterator = iter(made)
    elements = [_plain(element) for element in itertools.islice(iterator, count)]
    if ended:
        elements += [_plain(element) for element in iterator]
    return elements, iterator


def stopped(seed: int, stop: Stop) -> tuple[list[list[Any]], Any]:
    """The passes up to a stop, and what was saved there."""
    made, _ = _resume_draw.subject(seed)
    _seed(seed)
    passes = [[_plain(element) for element in made] for _ in range(stop.full)]
    last, iterator = _taken(made, stop.taken, stop.ended)
    saved = _saved(made.state_dict()), read_global()
    del iterator
    return [*passes, last], saved


def gone_on(seed: int, saved: Any, hop: int | None, most: int) -> list[list[Any]]:
    """The passes after a stop, up to some number of elements."""
    state, generators = saved
    passes: list[list[Any]] = []
    made, _ = _resume_draw.subject(seed)
    _seed(77)
    made.load_state_dict(state)
    write_global(generators)
    if hop is not None:
        part, iterator = _taken(made, hop, False)
        state, generators = _saved(made.state_dict()), read_global()
        del iterator
        passes.append(part)
        made, _ = _resume_draw.subject(seed)
        _seed(78)
        made.load_state_dict(state)
        write_global(generators)
    joined = hop is not None and len(passes[0]) == hop
    while sum(map(len, passes)) < most or joined:
        found = [_plain(element) for element in made]
        if joined:
            passes[-1] += found
            joined = False
        else:
            passes.append(found)
        if len(passes) > PASSES + 3:
            break
    return passes


def _elsewhere(seed: int, saved: Any, hop: int | None, most: int) -> list[list[Any]]:
    """The same in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tools.resumed_data", "--go-on"],
        input=pickle.dumps((seed, saved, hop, most)),
        capture_output=True,
        timeout=120,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr.decode())
    passes: list[list[Any]] = pickle.loads(done.stdout)
    return passes


def draw(rng: random.Random, passes: list[list[Any]]) -> Stop:
    """A stop of a run with these passes."""
    full = rng.randrange(PASSES - 1)
    count = len(passes[full])
    taken = rng.choice([rng.randrange(-1, count + 1), rng.randrange(count + 1)])
    hop = rng.randrange(6) if rng.random() < 0.25 else None
    ended = taken == count and rng.random() < 0.5
    return Stop(full, taken, ended, rng.random() < 0.04, hop)


def _in_any_order(made: Any) -> bool:
    return getattr(made, "in_order", True) is False


def _keys(passes: list[list[Any]]) -> list[list[str]]:
    """Passes of which the order is not the loader's promise: batches without what was drawn."""
    return [sorted(str(element) for element in each) for each in passes]


def _joined(before: list[list[Any]], after: list[list[Any]], stop: Stop) -> list[list[Any]]:
    """The passes of a stopped run and of what went on, as those of one run."""
    *full, last = before
    if stop.ended:
        return [*full, last, *(each for each in after if each)]
    if stop.taken <= 0:
        return [*full, *after]
    return [*full, last + (after[0] if after else []), *after[1:]]


def run(seed: int) -> str:
    """One trial; returns what went wrong."""
    made, words = _resume_draw.subject(seed)
    any_order = _in_any_order(made)
    flat = isinstance(made, nodes.Loader)  # one that is put back at the end begins the next pass
    del made
    expected = whole(seed)
    if not all(expected):
        return ""
    stop = draw(random.Random(seed + 1), expected)
    before, saved = stopped(seed, stop)
    most = sum(map(len, expected)) - sum(map(len, before))
    go_on = _elsewhere if stop.fresh else gone_on
    after = go_on(seed, saved, stop.hop, most)
    joined = _joined(before, after, stop)
    joined = joined if flat else joined[:PASSES]
    if any_order:
        expected, joined = _keys(expected), _keys(joined)
    if flat:
        expected, joined = [list(itertools.chain(*each)) for each in (expected, joined)]
        joined = joined[: len(expected)]  # two stops at the end of a pass begin one more
    if joined == expected:
        return ""
    where = f"{words}\n  {stop}"
    if flat:
        return f"{where}\n  expected {expected}\n  got {joined}"
    for number, (ours, theirs) in enumerate(zip(joined, expected, strict=False)):
        if ours != theirs:
            return f"{where}\n  pass {number}: expected {theirs}\n  {' ' * 7} got {ours}"
    return f"{where}\n  expected {len(expected)} passes, got {len(joined)}"


def main(count: int, seed: int, first: int = 0) -> int:
    """Run trials; returns how many went wrong, each of which is printed."""
    warnings.simplefilter("ignore")
    wrong, began = 0, time.monotonic()
    for number in range(first, first + count):
        try:
            text = run(1_000_003 * seed + number)
        except Exception as error:
            _, words = _resume_draw.subject(1_000_003 * seed + number)
            text = f"{words}\n  {type(error).__name__}: {error}"
        if text:
            wrong += 1
            print(f"{number}: {text}", flush=True)
    print(f"{count} stops, {wrong} went on differently, in {time.monotonic() - began:.0f} s")
    return wrong


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first trial")
    parser.add_argument("--go-on", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.go_on:
        warnings.simplefilter("ignore")
        answer = gone_on(*pickle.loads(sys.stdin.buffer.read()))
        sys.stdout.buffer.write(pickle.dumps(answer))
    else:
        sys.exit(1 if main(given.count, given.seed, given.first) else 0)
