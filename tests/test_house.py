"""The compiler knows no operation by name: what still names one is listed, and the list shrinks.

`names_in_compiler.txt` gives, for each file and name, how many string constants equal the name of
an entry of the table. More of them fail, and so do fewer until the list says so. A name that is
also a scalar primitive or a word of its own counts as well: the text cannot tell them apart.
"""

import ast
import pathlib
from collections import Counter

from flambeau._table.entries import entries

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKAGES = ("_aot", "_capture", "_compiler", "_ir", "_trace")
LISTED = pathlib.Path(__file__).with_name("names_in_compiler.txt")


def names_in(text, names):
    """How often each of the names stands in a source as a string constant."""
    found = (n.value for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Constant))
    return Counter(s for s in found if isinstance(s, str) and s.removesuffix(".new") in names)


def test_a_name_is_found():
    assert names_in("x = {'cat': 1, 'cat.new': 2, 'no entry': 'cat'}", {"cat"}) == {
        "cat": 2,
        "cat.new": 1,
    }


def test_no_more_names_than_listed():
    names = {name for uid, op in entries().items() for name in (uid, op.name)}
    found = Counter()
    for package in PACKAGES:
        for path in sorted((ROOT / "flambeau" / package).glob("*.py")):
            for name, count in names_in(path.read_text(encoding="utf-8"), names).items():
                found[f"{package}/{path.name} {name}"] = count
    listed = Counter()
    for line in LISTED.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            place, count = line.rsplit(" ", 1)
            listed[place] = int(count)
    assert not found - listed, "a stage asks for an option or a rule of the entry, not its name"
    assert not listed - found, "fewer names than listed: take them off the list"
