"""`python tools/compile_kills.py [--kills 200] [--seed N]` kills compilers in the middle of work.

Pairs of processes compile into one cache and are killed, with the compiler that they run, at random
moments. Afterwards a run over what they left must give right results. Prints the seed.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / "tests" / "compiler")]

from killed import kill_writers, run_to_the_end  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    args = parser.parse_args()
    print(f"seed {args.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="flambeau-kills-") as name:
        cache = Path(name)
        left = kill_writers(cache, args.kills, args.seed)
        run_to_the_end(cache)
        print(f"{args.kills} kills, {left} folders of unfinished work left; results are right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
