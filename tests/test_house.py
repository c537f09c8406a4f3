"""Who knows what: an operation stands in one place, no file knows a file that knows it.

`names_elsewhere.txt` gives, for each file and entry, how often the file names it, beside the
entry's own and its kernel's (`tools.where`): as a string in a stage of the compiler, or as a
function that Python defines once more. More fail, and so do fewer until the list says so.
"""

import ast
import pathlib
from collections import Counter

from tools import where

ROOT = pathlib.Path(__file__).resolve().parents[1]
LISTED = pathlib.Path(__file__).with_name("names_elsewhere.txt")


def test_no_more_names_than_listed():
    found = where.strays()
    listed = Counter()
    for line in LISTED.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            place, count = line.rsplit(" ", 1)
            listed[place] = int(count)
    assert not found - listed, "a stage asks for an option or a rule of the entry, not its name"
    assert not listed - found, "fewer names than listed: take them off the list"


def imports():
    """Which module imports which, at the top or in a function; not those for type checkers alone.

    `from flambeau import _C` is the extension's, and names that load late (`_HOMES`, `_LATE`) are
    nobody's import.
    """
    package = ROOT / "flambeau"
    names = {}
    for path in package.rglob("*.py"):
        parts = ("flambeau", *path.relative_to(package).with_suffix("").parts)
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    found = {name: set() for name in names}
    for name, path in names.items():
        here = name if path.name == "__init__.py" else name.rpartition(".")[0]
        for node in _statements(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found[name].update(a.name for a in node.names if a.name in names)
                continue
            base = node.module or ""
            if node.level:
                up = here.rsplit(".", node.level - 1)[0]
                base = f"{up}.{base}" if base else up
            for a in node.names:
                inner = f"{base}.{a.name}"
                if inner in names or base in names and inner != "flambeau._C":
                    found[name].add(inner if inner in names else base)
        found[name].discard(name)
    return found


def _statements(tree):
    """Import statements that run."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        elif not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            yield from _statements(node)


def circles(graph):
    """Sets of modules that reach each other (Tarjan, 1972)."""
    number, low, stack, out = {}, {}, [], []

    def visit(v):
        number[v] = low[v] = len(number)
        stack.append(v)
        for w in graph[v]:
            if w not in number:
                visit(w)
            if w in stack:
                low[v] = min(low[v], low[w])
        if low[v] == number[v]:
            at = stack.index(v)
            if len(stack) - at > 1:
                out.append(set(stack[at:]))
            del stack[at:]

    for v in graph:
        if v not in number:
            visit(v)
    return out


def test_a_circle_is_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == [{"b", "c"}]


def test_no_circles_between_files():
    assert circles(imports()) == []
