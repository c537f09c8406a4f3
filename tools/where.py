"""`python -m tools.where OP`: every hand-written site of an operation.

The entry in `flambeau/ops` (its rules follow it there) and, for a structured one, the kernel files
that define `kernels::KERNEL`. `crowded` gives the primitives with more than two files, which a test
asserts to be none. Reads sources; needs neither a build nor the extension.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from flambeau._build import emit_op
from flambeau._table import reader
from flambeau._table.model import Op

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Site:
    """A place in a file."""

    file: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.what}"


@cache
def _kernel_sources(root: Path) -> dict[str, str]:
    folder = root / "csrc" / "kernels"
    found = [p for p in sorted(folder.rglob("*")) if p.suffix in (".cpp", ".cu")]
    return {str(p.relative_to(root)): p.read_text() for p in found}


def _definition(op: Op) -> re.Pattern[str] | None:
    """A definition of the kernel of `op`: its declared type and name, and its first parameter."""
    declared = emit_op.kernel_declaration(op)
    if declared is None:
        return None
    head, _, rest = declared.partition("(")
    first = re.escape(rest.rstrip(");").split(", ")[0].rpartition(" ")[0])
    return re.compile(rf"^(?:\w+ )*{re.escape(head)}\(\s*{first}[^;{{]*{{", re.MULTILINE)


def kernel_sites(op: Op, root: Path = ROOT) -> list[Site]:
    """Where the kernel is defined."""
    kernel = str(op.option("kernel", op.name))
    pattern = _definition(op)
    if pattern is None:
        return []
    sites = []
    for file, text in _kernel_sources(root).items():
        match = pattern.search(text) if kernel in text else None
        if match is not None:
            sites.append(Site(file, text.count("\n", 0, match.start()) + 1, f"kernel {kernel}"))
    return sites


def sites(op: Op, root: Path = ROOT) -> list[Site]:
    """Hand-written sites of one entry."""
    out = [Site(op.file, op.node.lineno, f"entry {op.uid}, {op.kind}")]
    return out + kernel_sites(op, root)


def crowded(root: Path = ROOT) -> dict[str, list[Site]]:
    """Entries whose hand-written sites lie in more than two files."""
    out = {}
    for op in reader.load(root):
        places = sites(op, root)
        if len({s.file for s in places}) > 2:
            out[op.uid] = places
    return out


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the sites of the operations named."""
    names = list(sys.argv[1:] if argv is None else argv)
    if not names:
        print(__doc__)
        return 2
    ops = reader.load(ROOT)
    status = 0
    for name in names:
        found = [op for op in ops if name in (op.name, op.uid)]
        if not found:
            print(f"no entry named {name}", file=sys.stderr)
            status = 1
        for op in found:
            print(f"{op.uid}:")
            for site in sites(op):
                print(f"  {site}")
    return status


if __name__ == "__main__":
    raise SystemExit(main())
