"""Random programs as scripts, few of them; `make truth` runs more."""

import linecache
import types

import flambeau as torch
from tools.script_programs import run


def test_random_programs():
    counts = run(seed=3, start=0, count=60, length=14, show=1)
    assert not counts["failed"] and counts["agreed"] >= 55, counts


def scripted(text):
    """The function `f` of a source, and its script."""
    file = f"<{hash(text)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    module = types.ModuleType("found")
    exec(compile(text, file, "exec"), module.__dict__)
    return module.f, torch.jit.script(module.f)


#: what random programs have found
FOUND = [
    (
        """
from typing import List
def f(xs: List[int], n: int) -> int:
    for x in xs:
        n += x
        continue
        xs += [1]
    return n
""",
        ([1, 2], 3),
    ),
    (  # what two variables of a loop hold stays in one of them
        """
from typing import Dict, Tuple
def f(a: Dict[str, int], b: Dict[str, int]) -> Tuple[Dict[str, int], Dict[str, int]]:
    n = 0
    while n < 2:
        n += 1
        a, b = b, b
    return a, b
""",
        ({"x": 1}, {"y": 2}),
    ),
    (
        """
def f(n: int, m: int) -> int:
    k = None
    if k is not None and k > n:
        return 0
    return (n and m) + (n or m) + (m or 7)
""",
        (0, 5),
    ),
]


def test_what_was_found():
    for text, given in FOUND:
        f, script = scripted(text)
        for call in (script, script._call.as_python):
            assert call(*given) == f(*given)
