"""Where the time of a build goes, from Ninja's log: `python tools/build_time.py [NAME]`.

NAME is a folder under build/ that was built from nothing (`NO_CCACHE=1 scripts/build.sh NAME`).
Seconds are those of the clock, of one object each; objects that are built side by side count fully.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

_LONGEST = 15


def objects(log: Path) -> dict[str, float]:
    """Seconds of each compiled file; of several builds, the last."""
    found = {}
    for line in log.read_text().splitlines():
        if line.startswith("#"):
            continue
        start, end, _, output, *_ = line.split("\t")
        if output.endswith((".o", ".gch")):
            found[output.replace("CMakeFiles/", "")] = (int(end) - int(start)) / 1000
    return found


def kind(path: str) -> str:
    """What a compiled file is counted under."""
    target, _, rest = path.partition(".dir/")
    if rest.endswith(".gch"):
        return "precompiled headers"
    if target.startswith("kernels_"):
        return f"hot kernels, {target.removeprefix('kernels_')}"
    return "generated" if rest.startswith("gen/") else "/".join(rest.split("/")[:2])


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else "release"
    seconds = objects(Path(__file__).parents[1] / "build" / name / ".ninja_log")
    sums: dict[str, float] = defaultdict(float)
    for path, s in seconds.items():
        sums[kind(path)] += s
    for what, total in [*sorted(sums.items(), key=lambda x: -x[1]), ("all", sum(seconds.values()))]:
        count = sum(kind(p) == what for p in seconds) or len(seconds)
        print(f"{total:8.1f} s  {count:4}  {what}")
    print("longest:")
    for path in sorted(seconds, key=lambda p: -seconds[p])[:_LONGEST]:
        print(f"{seconds[path]:8.1f} s        {path}")


if __name__ == "__main__":
    main()
