"""`python -m tools.where OP`: every hand-written file that names an operation.

The entry in `flambeau/ops` (its rules follow it there); for a structured one the kernel files that
define `kernels::KERNEL`; functions of the same public name in Python; and where a stage of the
compiler has its name as a string. `strays` counts what goes beyond one file, two for a
structured entry; a test holds it to a list that only shrinks. Reads sources; needs neither a build
nor the extension.
"""

from __future__ import annotations

import ast
import re
import sys
import types
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__":  # the package itself needs the extension, the table does not
    _bare = types.ModuleType("flambeau")
    _bare.__path__ = [str(ROOT / "flambeau")]
    sys.modules["flambeau"] = _bare

from flambeau._build import emit_op  # noqa: E402
from flambeau._table import reader  # noqa: E402
from flambeau._table.model import Op  # noqa: E402
from flambeau.ops.scalar import PRIMITIVES  # noqa: E402

#: stages that know no operation by name
STAGES = ("_aot", "_capture", "_compiler", "_ir", "_trace")
#: where functions of PyTorch's names are written in Python, and the namespace that shows them
PUBLIC = (("*functional.py", ""), ("_[a-z]*.py", ""), ("nn/_functional*.py", "nn.functional"),
          ("fft.py", "fft"), ("linalg.py", "linalg"), ("special.py", "special"))  # fmt: skip
#: names of entries that are words of the language, of its scalar formulas or of Python as well
WORDS = frozenset(("index", "slice", "select", "t", "to", "all", "any", "sum", "max", "min", "var",
                   "repeat", "trace", "split", "complex", "empty", "positive"))  # fmt: skip


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


def words(text: str) -> Iterator[tuple[str, int]]:
    """String constants of a source that could name an entry, and their lines."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value.removesuffix(".new")
            if name.isidentifier() and name not in PRIMITIVES and name not in WORDS:
                yield name, node.lineno


@cache
def _named(root: Path) -> dict[str, list[Site]]:
    """Sites outside the table and the kernels, by the name that stands there."""
    out: dict[str, list[Site]] = {}
    package = root / "flambeau"
    for stage in STAGES:
        for path in sorted((package / stage).glob("*.py")):
            file = str(path.relative_to(root))
            for name, line in words(path.read_text(encoding="utf-8")):
                out.setdefault(name, []).append(Site(file, line, f"{name!r} in {stage}"))
    return out


@cache
def _functions(root: Path) -> dict[tuple[str, str], list[Site]]:
    """Functions written in Python, by namespace and name."""
    out: dict[tuple[str, str], list[Site]] = {}
    for pattern, namespace in PUBLIC:
        for path in sorted((root / "flambeau").glob(pattern)):
            file = str(path.relative_to(root))
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.FunctionDef):
                    site = Site(file, node.lineno, f"function {node.name}")
                    out.setdefault((namespace, node.name), []).append(site)
    return out


def sites(op: Op, root: Path = ROOT) -> list[Site]:
    """Hand-written sites of one entry."""
    out = [Site(op.file, op.node.lineno, f"entry {op.uid}, {op.kind}"), *kernel_sites(op, root)]
    for namespace in op.namespaces:
        out += _functions(root).get((namespace, op.name), [])
    for name in dict.fromkeys((op.uid, op.name)):
        out += _named(root).get(name, [])
    return out


def strays(root: Path = ROOT) -> Counter[str]:
    """How often a file names an entry that is not the entry's own, or its one kernel file."""
    found = {}
    for op in reader.load(root):
        home, *places = sites(op, root)
        kernels = [s.file for s in places if s.what.startswith("kernel")][:1]
        for site in places:
            if site.file not in (home.file, *kernels):
                found[site] = f"{site.file} {op.name}"
    return Counter(found.values())


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
