"""Makes docs/data_names.md: PyTorch's and torchdata's names for data, ours, and a test of each.

    python -m tools.data_names [--check]

Owns the page. The names and the reasons of those that are not there are in data_names.txt; that the
others are there, and under which test, is found out: by importing them, and by reading the tests.
Invariant: a name has a test that uses it, or a reason. The tests keep the page as it would be made.
"""

from __future__ import annotations

import argparse
import ast
import functools
import importlib
import pathlib
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
NAMES = ROOT / "tools" / "data_names.txt"
PAGE = ROOT / "docs" / "data_names.md"
TESTS = ROOT / "tests" / "data"

_HEAD = """# Names for data

Each public name of `torch.utils.data` (2.13), `torchdata.datapipes`, `torchdata.dataloader2` and
`torchdata.stateful_dataloader` (0.9) and `torchdata.nodes` (0.11), and a test that uses it, or why
it is not there. `python -m tools.data_names` makes this page of the names, the package and the
tests; a test keeps it so.
"""


@dataclass
class Name:
    """A name of theirs.

    Attributes:
        functional: what a pipe is called by.
        reason: why it is not there, or not what it was.
        there: whether ours has it.
        test: a test that uses it.
    """

    text: str
    functional: str = ""
    reason: str = ""
    there: bool = False
    test: str = ""

    @property
    def settled(self) -> bool:
        """Whether it has a test or a reason."""
        return bool(self.reason) or (self.there and bool(self.test))


@dataclass
class Module:
    """A module of theirs and its names; why none of them is there."""

    text: str
    reason: str = ""
    names: list[Name] = field(default_factory=list)

    @property
    def ours(self) -> str:
        """The module of ours that answers for it."""
        if self.text.startswith("torchdata."):
            return "flambeau.utils.data." + self.text.removeprefix("torchdata.")
        return "flambeau." + self.text.removeprefix("torch.")


def read(text: str) -> list[Module]:
    """The modules and names of data_names.txt."""
    modules: list[Module] = []
    for line in text.splitlines():
        line = line.partition("#")[0].strip()
        if not line:
            continue
        left, _, reason = (part.strip() for part in line.partition(":"))
        if left.startswith("["):
            modules.append(Module(left.strip("[]"), reason))
        else:
            name, *functional = left.split()
            modules[-1].names.append(Name(name, "".join(functional), reason or modules[-1].reason))
    return modules


@dataclass(frozen=True)
class _Test:
    """A test, the words that it uses, and where it stands."""

    label: str
    words: frozenset[str]


def _words(node: ast.AST, renamed: dict[str, str]) -> set[str]:
    """Names, attributes and short texts in a piece of a program."""
    found = set()
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            found.add(renamed.get(each.id, each.id))
        elif isinstance(each, ast.Attribute):
            found.add(each.attr)
        elif isinstance(each, ast.Constant) and isinstance(each.value, str):
            found.update(re.findall(r"\w+", each.value) if len(each.value) < 60 else ())
    return found


@functools.cache
def _tests_of(path: pathlib.Path) -> tuple[_Test, ...]:
    return tuple(_read_tests(path))


def _read_tests(path: pathlib.Path) -> Iterator[_Test]:
    """The tests of a file, with the words of the functions and tables that they use.

    A table from names to cases (`test_pipes.py`) is a test for each name.
    """
    tree = ast.parse(path.read_text())
    renamed = {
        alias.asname: alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname
    }
    where = path.stem
    tables = {"ITER_VALUES": "test_values[{}-0]", "MAP_VALUES": "test_values_of_map_style[{}-0]"}
    parts: dict[str, set[str]] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            parts[node.name] = _words(node, renamed)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            table = node.targets[0].id
            if table in tables and isinstance(node.value, ast.Dict):
                for key in node.value.keys:
                    name = ast.literal_eval(key) if key else ""
                    label = f"{where}: {tables[table].format(name)}"
                    yield _Test(label, frozenset((f"{table}.{name}",)))
            else:
                parts[table] = _words(node.value, renamed)
    for name in parts:
        if name.startswith("test_"):
            yield _Test(f"{where}: {name}", frozenset(_reached(name, parts)))


def _reached(name: str, parts: dict[str, set[str]]) -> set[str]:
    """The words of a part of a file and of the parts that it names."""
    words: set[str] = set()
    seen, open_ = {name}, [name]
    while open_:
        found = parts[open_.pop()]
        words |= found
        new = (found & parts.keys()) - seen
        seen |= new
        open_ += sorted(new)
    return words


def _files(module: str) -> list[pathlib.Path]:
    if module == "torchdata.nodes":
        return [TESTS / "test_nodes.py", TESTS / "datapipes" / "test_names.py"]
    pipes = sorted((TESTS / "datapipes").glob("test_*.py"))
    return pipes if ".datapipes" in module else [*sorted(TESTS.glob("test_*.py")), *pipes]


def _pick(wanted: set[str], hint: str, module: str) -> str:
    """The test that uses one of the words: best one that is called by the name."""
    table = "MAP_VALUES." if ".map" in module else "ITER_VALUES."
    own = {table + word for word in wanted} if ".datapipes" in module else set()
    candidates = [t for path in _files(module) for t in _tests_of(path) if t.words & (wanted | own)]
    candidates.sort(
        key=lambda t: (not t.words & own, "missing" in t.label, hint.lower() not in t.label.lower())
    )
    return candidates[0].label if candidates else ""


def _also_called(value: Any) -> set[str]:
    """The names of a class of pipes: its own, the short one, the functional one."""
    if not isinstance(value, type):
        return set()
    from flambeau.utils.data import datapipes

    short = {
        name
        for package in (datapipes.iter, datapipes.map)
        for name in package.__all__
        if getattr(package, name) is value
    }
    return short | {value.__name__}


def settle(modules: list[Module]) -> list[Module]:
    """Look up which names are there, and a test of each."""
    for module in modules:
        try:
            found: Any = importlib.import_module(module.ours)
        except ModuleNotFoundError:
            found = None
        for name in module.names:
            name.there = hasattr(found, name.text)
            if not name.there:
                continue
            words = {name.text, *_also_called(getattr(found, name.text))}
            words |= {name.functional} - {""}
            name.test = _pick(words, name.functional or name.text, module.text)
    return modules


def _wrapped(names: list[str]) -> str:
    return textwrap.fill(", ".join(names), 118, break_on_hyphens=False)


def page(modules: list[Module]) -> str:
    """The text of the page."""
    names = [name for module in modules for name in module.names]
    refused = sum(bool(name.reason) for name in names)
    total = (
        f"{len(names)} names: {len(names) - refused} there, {refused} not, each with a reason.\n"
    )
    text = [_HEAD, total]
    for module in modules:
        text.append(f"## `{module.text}`\n")
        if module.reason:
            text.append(f"Not there: {module.reason}.\n")
            text.append(_wrapped([f"`{name.text}`" for name in module.names]) + "\n")
            continue
        text.append("| name | functional | test, or reason |\n|---|---|---|")
        for name in module.names:
            functional = f"`{name.functional}`" if name.functional else ""
            last = name.reason or (f"`{name.test}`" if name.test else "")
            text.append(f"| `{name.text}` | {functional} | {last} |")
        text.append("")
    return "\n".join(text).rstrip() + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Write the page, or say whether it is as it would be written."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing; fail if it is stale")
    options = parser.parse_args(arguments)
    modules = settle(read(NAMES.read_text()))
    for module in modules:
        for name in module.names:
            if not name.settled:
                what = "no test uses it" if name.there else "it is not there, without a reason"
                print(f"{module.text}.{name.text}: {what}", file=sys.stderr)
    if not all(name.settled for module in modules for name in module.names):
        return 1
    made = page(modules)
    if not options.check:
        PAGE.write_text(made)
    elif PAGE.read_text() != made:
        print(f"{PAGE.name} is stale: run python -m tools.data_names", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
