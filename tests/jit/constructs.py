"""Constructs of TorchScript's language reference, each as a small program with its arguments.

The only list of them: `test_constructs.py` holds scripts to eager Python on every one, and the
section of docs/script.md is `table()` of what works. `python -m tests.jit.constructs` prints it.
"""

# ruff: noqa: E501, S102

from __future__ import annotations

import linecache
import sys
import textwrap
import types
from dataclasses import dataclass
from typing import Any

import flambeau as torch

HEAD = """
import enum, math, warnings
from dataclasses import dataclass
from typing import *
import flambeau as torch
from flambeau import Tensor, nn
from flambeau.jit import Final
class Color(enum.Enum):
    RED = 1
    BLUE = 2
class Pair(NamedTuple):
    a: int
    b: Tensor
class Box:
    def __init__(self, n: int):
        self.n = n
    def twice(self) -> int:
        return self.n * 2
    def __add__(self, other: 'Box') -> 'Box':
        return Box(self.n + other.n)
    def __eq__(self, other: 'Box') -> bool:
        return self.n == other.n
    def __lt__(self, other: 'Box') -> bool:
        return self.n < other.n
    def __len__(self) -> int:
        return self.n
    def __contains__(self, n: int) -> bool:
        return n == self.n
    def __getitem__(self, i: int) -> int:
        return self.n + i
    def __setitem__(self, i: int, x: int) -> None:
        self.n = i + x
    def __neg__(self) -> 'Box':
        return Box(-self.n)
    @property
    def half(self) -> int:
        return self.n // 2
    @staticmethod
    def three() -> int:
        return 3
    def __enter__(self):
        self.n += 1
        return self
    def __exit__(self, kind: Any, error: Any, trace: Any):
        self.n += 10
@dataclass
class Point:
    x: int
    y: int = 2
SIZE = 3
NAMES = ("a", "b")
def helper(x: int, y: int = 5) -> int:
    return x + y
@torch.jit.ignore
def left(x: int) -> int:
    return x + 1
@torch.jit.unused
def never(x: int) -> int:
    return x + 1
def before(module, args):
    return args[0] + 1
def after(module, args, out):
    return out + args[0]
@torch.jit._overload
def twice(x: int) -> int: ...
@torch.jit._overload
def twice(x: Tensor) -> Tensor: ...
def twice(x):
    return x * 2 if isinstance(x, int) else x + x
def total(*xs: int) -> int:
    n = 0
    for x in xs:
        n += x
    return n
@torch.jit.interface
class Doubles(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass
class Two(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2
"""


@dataclass(frozen=True)
class Construct:
    """One construct: its name in the table, a program, arguments; `refused`: what to write instead."""

    section: str
    name: str
    text: str
    given: tuple[Any, ...]
    refused: str = ""


ALL: list[Construct] = []
_section = ""


def section(name: str) -> None:
    global _section
    _section = name


def add(name: str, params: str, body: str, *given: Any, refused: str = "") -> None:
    """A program `def f(params)`; a body of one line without `return` is an expression."""
    body = textwrap.dedent(body).strip("\n")
    if "\n" not in body and not body.startswith(("return ", "yield ")):
        body = f"return {body}"
    text = f"def f({params}):\n{textwrap.indent(body, '    ')}\n"
    ALL.append(Construct(_section, name, text, given, refused))


def module(name: str, body: str, *given: Any, refused: str = "") -> None:
    """A program that is a class of modules, `f`."""
    text = f"class f(nn.Module):\n{textwrap.indent(textwrap.dedent(body).strip(chr(10)), '    ')}\n"
    ALL.append(Construct(_section, name, text, given, refused))


def program(c: Construct) -> Any:
    """The Python function or module of a construct, with a source that can be read."""
    name = f"<construct {ALL.index(c)}>"
    text = HEAD + c.text
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    held = types.ModuleType(f"constructs_{ALL.index(c)}")  # classes find their source by it
    held.__file__ = name
    sys.modules[held.__name__] = held
    exec(compile(text, name, "exec", dont_inherit=True), vars(held))  # programs of this file
    made = held.f
    return made() if isinstance(made, type) else made


T = torch.arange(6.0).view(2, 3)

section("Types")
add("Tensor", "x: Tensor", "x + 1", T)
add("int", "n: int", "n + 1", 3)
add("float", "x: float", "x / 2", 3.0)
add("bool", "b: bool", "not b", True)
add("complex", "z: complex", "z * 2 + abs(z) + z.real", 1 + 2j)
add("str", "s: str", "s + 'x'", "a")
add("None", "x: None", "x is None", None)
add("Optional", "x: Optional[int]", "x if x is not None else 0", None)
add("T | None", "x: int | None", "0 if x is None else x", 3)
add("Union", "x: Union[int, str]", "len(x) if isinstance(x, str) else x", "abc")
add("List", "xs: List[int]", "xs[0]", [1])
add("list", "xs: list[str]", "xs[0]", ["a"])
add("Dict", "d: Dict[str, Tensor]", "d['a'] + 1", {"a": T})
add("dict", "d: dict[int, int]", "d[1]", {1: 2})
add("Tuple", "p: Tuple[int, str]", "p[1] * p[0]", (2, "a"))
add("tuple", "p: tuple[int, Tensor]", "p[1] * p[0]", (2, T))
add("nested containers", "x: Dict[str, List[Tuple[int, Optional[Tensor]]]]", "x['a'][0][0]", {"a": [(1, None)]})
add("NamedTuple", "n: int, x: Tensor", "p = Pair(n, x)\nreturn p.a, p.b, p", 1, T)
add(
    "Enum", "n: int",
    "c = Color.RED\nreturn c.value, c.name, c == Color.BLUE, c is Color.RED, Color(n) == Color.BLUE",
    2,
)  # fmt: skip
add("class", "n: int", "b = Box(n)\nb.n += 1\nreturn b.n, b.twice(), b.half, Box.three()", 2)
add("dataclass", "n: int", "p = Point(n)\nreturn p.x + p.y", 2)
add("Any", "x: Any", "isinstance(x, int)", 1)
add("Future", "x: Tensor", "t: torch.jit.Future[Tensor] = torch.jit.fork(torch.neg, x)\nreturn torch.jit.wait(t)", T)
add("torch.device", "x: Tensor, d: torch.device", "x.to(d), d.type, x.device == d", T, torch.device("cpu"))
add("torch.dtype", "d: torch.dtype", "torch.ones(2, dtype=d), d.is_floating_point", torch.int64)
add("torch.layout", "x: Tensor", "x.layout == torch.strided", T)
add("torch.memory_format", "x: Tensor", "x.contiguous(memory_format=torch.contiguous_format)", T)
add("torch.Size", "x: Tensor", "s: torch.Size = x.shape\nreturn s[0]", T)
add("Final", "x: Tensor", "n: Final[int] = 3\nreturn x * n", T)
add("type comment", "x, n", "# type: (Tensor, int) -> Tensor\nreturn x * n", T, 2)
add("text as annotation", "x: 'int', y: 'List[int]'", "y[x]", 0, [4])
add("BroadcastingList", "k: torch.jit.annotations.BroadcastingList2[int]", "k[0] + k[1]", [3, 3])
add("Callable", "f: Callable[[int], int]", "f(1)", len, refused="a module or a function of the program, by its name")
add("set", "x: int", "{x, 1}", 1, refused="a list, or a dict of bools")
add("bytes", "x: int", "b'a'", 1, refused="text")
add("range as a value", "n: int", "r = range(n)\nreturn r[1]", 3)

section("Literals and displays")
add("int, float, complex, bool, text, None", "x: int", "1_000, 0x1f, 1e3, 2.5j, True, 'a' \"b\", None", 1)
add("list", "x: int", "[x, 2]", 1)
add("empty list", "x: Tensor", "ys: List[int] = []\nys.append(3)\nreturn ys", T)
add("tuple", "x: int", "(x, 'a'), (x,)", 1)
add("dict", "x: int", "{'a': x, 'b': 2}", 1)
add("empty dict", "x: int", "d: Dict[int, str] = {}\nd[x] = 'a'\nreturn d", 1)
add("list comprehension", "n: int", "[i * i for i in range(n) if i % 2 == 0]", 5)
add("comprehension over two", "n: int", "[a + b for a, b in zip([1, 2], [n, 3])]", 5)
add("two fors in one comprehension", "n: int", "[i * j for i in range(n) for j in range(i)]", 4, refused="loops")
add("dict comprehension", "n: int", "{i: i * 2 for i in range(n)}", 3)
add("generator in a call", "n: int", "sum(i for i in range(n)), any(i > 2 for i in range(n))", 4)
add("starred in a display", "p: Tuple[int, int]", "[*p, 3], (*p, 'a')", (1, 2))
add("f-string", "x: int, s: str", "f'{x} of {s}: {x + 1}!'", 1, "a")
add("f-string with a format", "x: float, n: int", "f'{x:.2f} {n:>4}|{n!r}'", 1.5, 3)
add("% of text", "x: int, s: str", "'%d of %s' % (x, s)", 1, "a")
add("str.format", "x: int, s: str", "'{} of {}'.format(x, s)", 1, "a")
add("slice literal", "xs: List[int]", "xs[1:], xs[:-1], xs[::2], xs[:]", [1, 2, 3])
add("lambda", "x: int", "(lambda y: y + 1)(x)", 1, refused="def")

section("Operators")
for op in ("+", "-", "*", "/", "//", "%", "**"):
    add(op, "a: int, b: int, x: float, t: Tensor", f"a {op} b, x {op} a, t {op} b, t {op} x", 7, 2, 2.5, T + 1)
add("@", "a: Tensor", "a @ a.T", T)
for op in ("&", "|", "^"):
    add(op, "a: int, b: int, p: bool, t: Tensor", f"a {op} b, p {op} True, t {op} t", 6, 3, True, torch.tensor([1, 2]))
for op in ("<<", ">>"):
    add(op, "a: int, b: int", f"a {op} b", 6, 1)
for op in ("==", "!=", "<", "<=", ">", ">="):
    add(op, "a: int, x: float, s: str, t: Tensor", f"a {op} 2, x {op} 2, s {op} 'b', t {op} 1", 2, 2.5, "a", T)
add(
    "== of containers", "xs: List[int], d: Dict[str, int]",
    "xs == [1], d == {'a': 1}, (1, 'a') == (1, 'b'), xs != [2]",
    [1], {"a": 1},
)  # fmt: skip
add("chained comparison", "a: int", "0 < a <= 3 < 9", 2)
add("and, or, not", "a: bool, b: bool", "a and b, a or b, not a", True, False)
add("unary -, +, ~", "a: int, t: Tensor", "-a, +a, ~a, -t", 2, T)
add(
    "in, not in", "xs: List[int], d: Dict[str, int], s: str",
    "1 in xs, 'a' in d, 'a' in s, 2 not in xs",
    [1], {"b": 1}, "abc",
)
add("is, is not", "x: Optional[int]", "x is None, x is not None", None)
add("x if c else y", "a: int", "'big' if a > 2 else 'small'", 3)
add("+ and * of lists and text", "xs: List[int], s: str", "xs + xs, xs * 2, s + s, s * 2", [1], "a")
add(
    "operators of classes", "n: int",
    "b = Box(n) + Box(1)\nreturn b.n, b == Box(3), b < Box(9), len(b), 3 in b, b[1], (-b).n",
    2,
)
add(":=", "n: int", "m = 0\nif (m := n + 1) > 2:\n    return m\nreturn 0", 2, refused="an assignment before")

section("Subscripts and attributes")
add(
    "x[i]", "x: Tensor, xs: List[int], s: str, p: Tuple[int, str], d: Dict[str, int]",
    "x[0], xs[-1], s[0], p[1], d['a']",
    T, [1], "ab", (1, "c"), {"a": 2},
)
add("x[i:j:k]", "x: Tensor, xs: List[int], s: str", "x[0:1], xs[1:], s[::2], xs[-2:]", T, [1, 2, 3], "abc")
add("slice of a tuple", "p: Tuple[int, str, float]", "p[1:], p[:-1], p[::-1]", (1, "a", 2.0))
add("x[i, j:], x[..., 0], x[None]", "x: Tensor", "x[0, 1:], x[..., 0], x[None], x[:, None, 1]", T)
add("x[mask], x[indices]", "x: Tensor, i: Tensor", "x[x > 2], x[i], x[[0, 1]], x[i, i]", T, torch.tensor([1, 0]))
add(
    "x[i] = y", "x: Tensor, xs: List[int], d: Dict[str, int]",
    "x = x.clone()\nx[0] = 5\nx[:, 1] = x[:, 2]\nx[x > 4] = 0\nxs[0] = 7\nd['z'] = 1\nreturn x, xs, d",
    T, [1], {"a": 2},
)  # fmt: skip
add("xs[i:j] = ys", "xs: List[int]", "xs[1:] = [8, 9]\nreturn xs", [1, 2, 3])
add(
    "x[i] += y", "x: Tensor, xs: List[int], d: Dict[str, int]",
    "x = x.clone()\nx[0] += 5\nxs[0] *= 7\nd['a'] -= 1\nreturn x, xs, d",
    T, [1], {"a": 2},
)
add(
    "attributes of tensors", "x: Tensor",
    "x.shape, x.ndim, x.dtype, x.device, x.requires_grad, x.is_cuda, x.T, x.mT, x.is_leaf, "
    "x.layout == torch.strided, x.itemsize, x.is_sparse",
    T,
)
add(
    "methods of tensors", "x: Tensor",
    "x.sum(), x.size(), x.size(0), x.dim(), x.numel(), x.view(-1), x.item() if x.numel() == 1 else 0, "
    "x.t(), x.to(torch.float64), x.long(), x.cpu()",
    T,
)  # fmt: skip
add("attribute of an object", "n: int", "b = Box(n)\nb.n = 5\nb.n -= 1\nreturn b.n", 2)
add("items of an object", "n: int", "b = Box(n)\nb[2] = 4\nreturn b[1]", 2)

section("Statements")
add("assignment", "x: int", "y = x\ny = y + 1\nreturn y", 1)
add("annotated assignment", "x: int", "y: Optional[int] = x\nreturn y", 1)
add("annotation without a value", "x: int", "y: float\nif x > 1:\n    y = 1.0\nelse:\n    y = 2.0\nreturn y", 1)
add("several targets", "x: int", "a = b = x\nreturn a + b", 1)
add("unpacking", "p: Tuple[int, Tuple[str, float]]", "a, (b, c) = p\nreturn b, a, c", (1, ("a", 2.0)))
add("unpacking of lists", "xs: List[int]", "a, b = xs\nreturn a - b", [1, 2])
add("unpacking of tensors", "x: Tensor", "a, b = x\nreturn a - b", T)
add("starred unpacking", "p: Tuple[int, int, int]", "a, *b = p\nreturn a, b", (1, 2, 3))
add("starred unpacking of lists", "xs: List[int]", "a, *b = xs\nreturn a, b", [1, 2, 3], refused="slices")
add("swap", "a: int, b: int", "a, b = b, a\nreturn a, b", 1, 2)
for op in ("+=", "-=", "*=", "/=", "//=", "%=", "**="):
    add(op, "x: float, t: Tensor", f"t = t.clone()\nx {op} 2\nt {op} 2\nreturn x, t", 7.0, T)
for op in ("&=", "|=", "^=", "<<=", ">>="):
    add(op, "x: int", f"x {op} 1\nreturn x", 7)
add("@=", "x: Tensor", "x @= x.T\nreturn x", T[:, :2].clone())
add("+= of lists and text", "xs: List[int], s: str", "xs += [2]\ns += 'b'\nreturn xs, s", [1], "a")
add("expression statement", "xs: List[int]", "'text'\nxs.append(1)\nreturn xs", [1])
add("if, elif, else", "x: int", "if x > 2:\n    return 'a'\nelif x > 1:\n    return 'b'\nelse:\n    return 'c'", 2)
add("if of a tensor", "x: Tensor", "if x.sum() > 2:\n    return x\nreturn -x", T)
add(
    "truth of numbers, lists and text", "n: int, xs: List[int], s: str",
    "r = 0\nif n:\n    r += 1\nif xs:\n    r += 2\nif not s:\n    r += 4\nreturn r",
    2, [1], "",
)
add("while", "n: int", "s = 0\nwhile n > 0:\n    s += n\n    n -= 1\nreturn s", 4)
add("while True, break", "n: int", "while True:\n    n += 1\n    if n > 5:\n        break\nreturn n", 1)
add("while and else", "n: int", "while n > 0:\n    n -= 1\nelse:\n    n = 9\nreturn n", 2, refused="a flag")
add("for over range", "n: int", "s = 0\nfor i in range(1, n, 2):\n    s += i\nreturn s", 6)
add("for over a list", "xs: List[int]", "s = 0\nfor x in xs:\n    s += x\nreturn s", [1, 2])
add("for over a tensor", "x: Tensor", "s = x[0]\nfor r in x:\n    s = s + r\nreturn s", T)
add(
    "for over a dict", "d: Dict[str, int]",
    "s = ''\nfor k in d:\n    s += k\nfor k, v in d.items():\n    s += k * v\nfor v in d.values():\n"
    "    s += str(v)\nreturn s",
    {"a": 1, "b": 2},
)  # fmt: skip
add("for over text", "s: str", "n = 0\nfor c in s:\n    n += ord(c)\nreturn n", "ab")
add("for over a tuple", "p: Tuple[int, float]", "s = 0.0\nfor x in p:\n    s += x\nreturn s", (1, 2.0))
add(
    "for over enumerate and zip", "xs: List[int], ys: List[float]",
    "s = 0.0\nfor i, (x, y) in enumerate(zip(xs, ys), 1):\n    s += i * x * y\nreturn s",
    [1, 2], [3.0, 4.0],
)  # fmt: skip
add("for over reversed", "xs: List[int]", "s = 0\nfor x in reversed(xs):\n    s = s * 10 + x\nreturn s", [1, 2])
add(
    "for and else", "xs: List[int]",
    "for x in xs:\n    if x > 5:\n        break\nelse:\n    return -1\nreturn 1",
    [1, 2], refused="a flag",
)  # fmt: skip
add(
    "break, continue", "n: int",
    "s = 0\nfor i in range(n):\n    if i == 2:\n        continue\n    if i == 5:\n        break\n"
    "    s += i\nreturn s",
    9,
)
add(
    "break in a loop over a tuple", "p: Tuple[int, int]",
    "s = 0\nfor x in p:\n    if x == 2:\n        break\n    s += x\nreturn s",
    (1, 2), refused="a list, or an if",
)
add("return", "x: int", "if x > 1:\n    return 1\nreturn 2", 2)
add("return without a value", "xs: List[int]", "if len(xs) > 1:\n    return\nxs.append(1)", [1])
add("pass", "x: int", "if x > 1:\n    pass\nreturn x", 2)
add("assert", "x: int", "assert x > 0\nassert x < 9, f'{x} is large'\nreturn x", 2)
add("raise", "x: int", "if x > 0:\n    raise ValueError(f'no {x}')\nreturn x", 2)
add("raise a class", "x: int", "if x > 0:\n    raise RuntimeError\nreturn x", 2)
add("raise from", "x: int", "if x > 0:\n    raise ValueError('a') from None\nreturn x", 2)
add("del", "xs: List[int], d: Dict[str, int]", "y = 1\ndel y\ndel xs[0]\ndel d['a']\nreturn xs, d", [1, 2], {"a": 1})
add("with torch.no_grad()", "x: Tensor", "with torch.no_grad():\n    y = x * 2\nreturn y", T)
add("with an object", "n: int", "b = Box(n)\nwith b as c:\n    n += c.n\nreturn n, b.n", 1)
add("with several", "x: Tensor, n: int", "with torch.no_grad(), Box(n) as b:\n    x = x * b.n\nreturn x", T, 1)
add("constants of the module", "x: int", "x * SIZE, NAMES[0], math.pi, math.inf > x", 1)
add("call of a function", "x: int", "helper(x), helper(x, 2), helper(x, y=3), helper(y=1, x=x)", 1)
add("call with a starred tuple", "p: Tuple[int, int]", "helper(*p)", (1, 2))
add("call of a function with *args", "x: int", "total(x, 2), total()", 1)
add("call with **", "x: int", "helper(**{'x': x})", 1, refused="arguments by name")
add(
    "try", "x: int",
    "try:\n    return x\nexcept ValueError:\n    return 0",
    1, refused="a test before, or @torch.jit.ignore",
)
add("global", "x: int", "global SIZE\nSIZE = x\nreturn x", 1, refused="a result, or an attribute of a module")
add(
    "a function inside", "x: int",
    "def g(y: int) -> int:\n    return y\nreturn g(x)",
    1, refused="a function beside it",
)  # fmt: skip
add("import inside", "x: float", "import math\nreturn math.sqrt(x)", 4.0, refused="import at the top of the file")
add("yield", "x: int", "yield x", 1, refused="a list")
add(
    "match", "x: int",
    "match x:\n    case 1:\n        return 'a'\n    case _:\n        return 'b'",
    1, refused="if and elif",
)

section("Built-in functions")
add("abs", "a: int, x: float, t: Tensor", "abs(-a), abs(-x), abs(-t)", 1, 2.0, T)
add("all, any", "xs: List[bool], ys: List[int]", "all(xs), any(xs), all(ys), any(ys)", [True, False], [1, 0])
add("bin, hex, oct", "a: int", "bin(a), hex(a), oct(a)", 10)
add("bool", "a: int, x: float, t: Tensor, s: str", "bool(a), bool(x), bool(t), bool(s)", 1, 0.0, torch.ones(1), "")
add("callable", "x: int", "callable(x)", 1, refused="isinstance")
add("chr, ord", "a: int", "chr(a), ord('b')", 97)
add("complex", "a: float", "complex(a, 2.0), complex(a)", 1.0)
add("dict", "xs: List[Tuple[str, int]]", "dict(xs), dict(a=1)", [("a", 1)])
add("divmod", "a: int, x: float", "divmod(a, 2), divmod(x, 2.0), divmod(-a, 2)", 7, 7.5)
add("enumerate", "xs: List[str]", "[(i, s) for i, s in enumerate(xs, 1)]", ["a", "b"])
add("filter, map", "xs: List[int]", "list(map(abs, xs))", [1], refused="a comprehension")
add(
    "float", "a: int, s: str, t: Tensor, b: bool",
    "float(a), float(s), float(t), float(b), float('inf')",
    1, "1.5", torch.ones(1), True,
)
add("format", "x: float", "format(x, '.2f')", 1.5)
add("getattr", "x: Tensor", "getattr(x, 'ndim'), getattr(x, 'nope', 3)", T)
add("hasattr", "x: Tensor", "hasattr(x, 'ndim'), hasattr(x, 'nope')", T)
add("hash, id", "x: int", "hash(x) == hash(x)", 3)
add(
    "int", "x: float, s: str, t: Tensor, b: bool",
    "int(x), int(s), int(t), int(b), int('0')",
    1.5, "12", torch.ones(1), True,
)
add("int with a base", "s: str", "int(s, 16)", "ff")
add("isinstance", "x: Union[int, str, List[int]]", "isinstance(x, (int, str)), isinstance(x, list)", 1)
add(
    "len", "xs: List[int], d: Dict[str, int], s: str, t: Tensor, p: Tuple[int, int]",
    "len(xs), len(d), len(s), len(t), len(p)",
    [1], {"a": 1}, "ab", T, (1, 2),
)  # fmt: skip
add(
    "list", "s: str, xs: List[int], d: Dict[str, int]",
    "list(s), list(xs), list(range(3)), list(d.keys()), list(d), list(reversed(xs)), list(zip(xs, xs)), "
    "list(enumerate(xs))",
    "ab", [1, 2], {"a": 1},
)  # fmt: skip
add(
    "max, min", "a: int, b: int, x: float, xs: List[float]",
    "max(a, b), min(a, b), max(a, x), max(xs), min(xs), min(a, b, 0)",
    1, 2, 1.5, [1.0, 3.0],
)
add("pow", "a: int, x: float", "pow(a, 2), pow(x, 2), pow(x, 0.5)", 3, 2.0)
add("print", "x: int", "print(x, 'a', [x])\nreturn x", 1)
add("print with sep and end", "x: int", "print(x, 'a', sep='-', end='')\nreturn x", 1, refused="one text")
add("range", "n: int", "[i for i in range(n)], [i for i in range(n, 0, -2)], list(range(1, n))", 5)
add("reversed", "xs: List[int]", "[x for x in reversed(xs)]", [1, 2])
add("round", "x: float, n: int", "round(x), round(x, 1), round(n)", 2.55, 3)
add("set", "xs: List[int]", "len(set(xs))", [1, 1], refused="a dict")
add("sorted", "xs: List[int], ys: List[str]", "sorted(xs), sorted(xs, reverse=True), sorted(ys)", [2, 1], ["b", "a"])
add("sorted of tuples", "xs: List[Tuple[int, str]]", "sorted(xs)", [(2, "a"), (1, "b")])
add(
    "sorted with a key", "xs: List[int]",
    "sorted(xs, key=abs)",
    [1], refused="a list of tuples, whose first item is the key",
)
add("str", "a: int, x: float, b: bool, xs: List[int]", "str(a), str(x), str(b), str(xs), str(None)", 1, 1.5, True, [1])
add("sum", "xs: List[int], ys: List[float]", "sum(xs), sum(ys)", [1, 2], [1.5])
add("sum with a start", "xs: List[int]", "sum(xs, 10)", [1, 2])
add("tuple", "x: int", "tuple([x, 2])", 1)
add("type", "x: int", "type(x)", 1, refused="isinstance")
add(
    "zip", "xs: List[int], ys: List[str], zs: List[float]",
    "[(x, y, z) for x, y, z in zip(xs, ys, zs)]",
    [1, 2], ["a", "b"], [1.0, 2.0],
)
add(
    "zip with strict", "xs: List[int], ys: List[int]",
    "s = 0\nfor x, y in zip(xs, ys, strict=True):\n    s += x * y\nreturn s", [1, 2], [3, 4],
)
add("super", "x: int", "super()", 1, refused="inside of a method")
add("eval, exec, open", "s: str", "eval(s)", "1", refused="@torch.jit.ignore")

section("Methods of str")
for name, call in {
    "capitalize": "", "casefold": "", "center": "9, '*'", "count": "'a'", "endswith": "'c'", "expandtabs": "4",
    "find": "'b'", "index": "'b'", "isalnum": "", "isalpha": "", "isascii": "", "isdecimal": "", "isdigit": "",
    "isidentifier": "", "islower": "", "isnumeric": "", "isprintable": "", "isspace": "", "istitle": "", "isupper": "",
    "ljust": "9, '*'", "lower": "", "lstrip": "'a'", "partition": "' '", "replace": "'a', 'z'", "rfind": "'a'",
    "rindex": "'a'", "rjust": "9", "rpartition": "' '", "rsplit": "' ', 1", "rstrip": "", "split": "' '",
    "splitlines": "", "startswith": "'a'", "strip": "", "swapcase": "", "title": "", "upper": "", "zfill": "9",
    "removeprefix": "'a'", "removesuffix": "'c'", "encode": "",
}.items():  # fmt: skip
    add(name, "s: str", f"s.{name}({call})", "ab Ca\tb c", refused="text stays text" if name == "encode" else "")
add("join", "xs: List[str]", "'-'.join(xs)", ["a", "b"])
add("format", "x: int", "'{} {}'.format(x, 'a')", 1)
add(
    "find, count, index with start and end", "s: str",
    "s.find('a', 1), s.count('a', 1, 5), s.index('a', 1), s.rfind('a', 0, 3), s.startswith('b', 1), "
    "s.endswith('b', 0, 2)",
    "abaab",
)  # fmt: skip
add("replace with a count", "s: str", "s.replace('a', 'z', 1)", "aba")
add("split with maxsplit", "s: str", "s.split(' ', 1), s.split(), s.split(None, 1)", "a b c")
add("splitlines with keepends", "s: str", "s.splitlines(True)", "a\nb")

section("Methods of list")
for name, call in {
    "append": "4", "extend": "[4, 5]", "insert": "1, 9", "pop": "", "remove": "2", "clear": "", "reverse": "", "sort": "",
}.items():  # fmt: skip
    add(name, "xs: List[int]", f"xs.{name}({call})\nreturn xs", [3, 1, 2])
for name, call in {"copy": "", "count": "1", "index": "2"}.items():
    add(name, "xs: List[int]", f"xs.{name}({call})", [3, 1, 2])
add("pop with an index", "xs: List[int]", "xs.pop(0), xs", [3, 1])
add("sort(reverse=True)", "xs: List[float]", "xs.sort(reverse=True)\nreturn xs", [1.0, 2.0])
add("lists of tensors", "xs: List[Tensor]", "xs.append(xs[0])\nreturn torch.cat(xs)", [T])

section("Methods of dict")
for name, call in {
    "keys": "", "values": "", "items": "", "get": "'a'", "pop": "'a'", "popitem": "", "setdefault": "'z', 3", "copy": "",
}.items():  # fmt: skip
    end = f"list(d.{name}({call}))" if name in ("keys", "values", "items") else f"d.{name}({call})"
    add(name, "d: Dict[str, int]", f"{end}, d", {"a": 1, "b": 2})
add("clear", "d: Dict[str, int]", "d.clear()\nreturn d", {"a": 1})
add("update", "d: Dict[str, int]", "d.update({'q': 3})\nreturn d", {"a": 1})
add("get, pop with a default", "d: Dict[str, int]", "d.get('z', 5), d.pop('z', 6)", {"a": 1})
add(
    "keys of int, float, bool, Tensor", "a: Dict[int, int], b: Dict[float, int], c: Dict[bool, int]",
    "a[1] + b[1.5] + c[True]",
    {1: 1}, {1.5: 2}, {True: 3},
)  # fmt: skip

section("Methods of tuple")
add("count", "p: Tuple[int, int]", "p.count(1)", (1, 1))
add("index", "p: Tuple[int, int]", "p.index(2)", (1, 2))
add("_replace, _asdict", "x: Tensor", "Pair(1, x)._replace(a=3)", T, refused="the class, called by name")

section("math")
for name in ("acos asin atan ceil cos degrees erf erfc exp expm1 fabs floor gamma lgamma log log10 log1p log2 radians "
             "sin sinh cosh tanh sqrt tan trunc atanh asinh isfinite isinf isnan modf frexp").split():  # fmt: skip
    add(name, "x: float", f"math.{name}(x)", 0.5)
add("acosh", "x: float", "math.acosh(x)", 1.5)
for name in "atan2 copysign fmod hypot pow remainder".split():
    add(name, "x: float", f"math.{name}(x, 2.0)", 1.5)
add("log with a base", "x: float", "math.log(x, 2.0)", 8.0)
add("factorial, isqrt", "n: int", "math.factorial(n), math.isqrt(n)", 5)
add("gcd", "n: int", "math.gcd(n, 4)", 6)
add("lcm", "n: int", "math.lcm(n, 4)", 6)
add("comb, perm", "n: int", "math.comb(n, 2), math.perm(n, 2)", 6)
add("ldexp", "x: float", "math.ldexp(x, 2)", 1.5)
add(
    "isclose", "x: float",
    "math.isclose(x, 1.5), math.isclose(x, 1.6, rel_tol=0.1), math.isclose(x, 1.6, abs_tol=0.2)",
    1.5, refused="abs(x - y) and a bound",
)
add("fsum, prod", "xs: List[float]", "math.fsum(xs), math.prod(xs)", [1.5, 2.0])
add("dist", "x: float", "math.dist([x], [0.0])", 1.5)
add("pi, e, tau, inf, nan", "x: float", "math.pi, math.e, math.tau, math.inf, x + math.nan > 0", 1.0)

section("Modules")
module("forward, parameters, submodules", """
def __init__(self):
    super().__init__()
    self.l = nn.Linear(3, 2)
    self.w = nn.Parameter(torch.ones(2))
    self.register_buffer('b', torch.ones(2))
    nn.init.constant_(self.l.weight, 0.5); nn.init.zeros_(self.l.bias)
def forward(self, x):
    return self.l(x) * self.w + self.b
""", T)
module("attributes, set in forward", """
def __init__(self):
    super().__init__()
    self.n: int = 0
    self.seen: List[int] = []
    self.last: Optional[Tensor] = None
def forward(self, x):
    self.n += 1
    self.seen.append(x.size(0))
    self.last = x
    return self.n, self.seen
""", T)
module("Final, __constants__", """
n: Final[int]
__constants__ = ['m']
def __init__(self):
    super().__init__()
    self.n, self.m = 2, 3
def forward(self, x):
    return [x * self.m for _ in range(self.n)]
""", T)
module("methods, properties, static methods", """
def double(self, x: Tensor, n: int = 2) -> Tensor:
    return x * n
@property
def three(self) -> int:
    return 3
@staticmethod
def four() -> int:
    return 4
def forward(self, x):
    return self.double(x), self.double(x, n=3), self.three, self.four()
""", T)
module("super()", """
class Base(nn.Module):
    def forward(self, x):
        return x + 1
class Derived(Base):
    def forward(self, x):
        return super().forward(x) * 2
def __init__(self):
    super().__init__()
    self.d = self.Derived()
def forward(self, x):
    return self.d(x)
""", T)
module("Sequential, ModuleList, ModuleDict", """
def __init__(self):
    super().__init__()
    self.s = nn.Sequential(nn.ReLU(), nn.Tanh())
    self.l = nn.ModuleList([nn.ReLU(), nn.Tanh()])
    self.d = nn.ModuleDict({'a': nn.ReLU()})
def forward(self, x):
    for m in self.l:
        x = m(x)
    for i, m in enumerate(self.l):
        x = m(x) + i
    for k, m in self.d.items():
        x = m(x) + len(k)
    return self.s(x) + self.l[0](x) + self.d['a'](x) + len(self.l), 'a' in self.d
""", T)
module("ParameterList", """
def __init__(self):
    super().__init__()
    self.p = nn.ParameterList([torch.ones(3), torch.zeros(3)])
def forward(self, x):
    for p in self.p:
        x = x + p
    return x
""", T)
module("a module that is None", """
def __init__(self):
    super().__init__()
    self.m = None
def forward(self, x):
    if self.m is not None:
        x = self.m(x)
    return x
""", T)
module("training", """
def forward(self, x):
    return x if self.training else -x
""", T)
module("hooks", """
def __init__(self):
    super().__init__()
    self.m = nn.ReLU()
    self.m.register_forward_pre_hook(before)
    self.m.register_forward_hook(after)
def forward(self, x):
    return self.m(x)
""", T)
module("setattr of a new name", """
def forward(self, x):
    self.fresh = x
    return x
""", T, refused="an attribute made in __init__")

section("torch.jit")
add("annotate", "x: int", "torch.jit.annotate(List[int], []), torch.jit.annotate(Optional[int], x)", 1)
add("isinstance", "x: Any", "torch.jit.isinstance(x, List[int])", [1])
add("is_scripting", "x: int", "x + 1 if torch.jit.is_scripting() else x + 1", 1)
add("is_tracing", "x: int", "torch.jit.is_tracing()", 1)
add(
    "fork, wait", "x: Tensor",
    "t = torch.jit.fork(helper, 1, y=2)\nu = torch.jit.fork(torch.neg, x)\n"
    "return torch.jit.wait(t), torch.jit.wait(u)",
    T,
)
add(
    "futures in lists", "x: Tensor",
    "ts: List[torch.jit.Future[Tensor]] = []\nfor i in range(3):\n"
    "    ts.append(torch.jit.fork(torch.mul, x, i))\nreturn [torch.jit.wait(t) for t in ts]",
    T,
)
add("_overload", "x: Tensor", "twice(x), twice(3)", T)
add("ignore", "x: int", "left(x)", 1)
add("unused", "x: int", "never(x) if x > 5 else x", 1)
module("_overload_method", """
@torch.jit._overload_method
def g(self, x: int) -> int: ...
@torch.jit._overload_method
def g(self, x: Tensor) -> Tensor: ...
def g(self, x):
    return x + 1
def forward(self, x):
    return self.g(x), self.g(3)
""", T)
module("export", """
@torch.jit.export
def more(self, x: Tensor) -> Tensor:
    return x + 1
def forward(self, x):
    return self.more(x)
""", T)
module("interface", """
two: Doubles
def __init__(self):
    super().__init__()
    self.two = Two()
def forward(self, x):
    return self.two.forward(x) + self.two(x)
""", T)
add("script of a script", "x: int", "torch.jit.script(helper)(x)", 1, refused="a script made outside")
add("warnings.warn", "x: int", "if x > 5:\n    warnings.warn('large')\nreturn x", 1)
add("typing.cast", "x: Any", "cast(int, x) + 1", 1)
add("torch._assert", "x: int", "torch._assert(x > 0, 'small')\nreturn x", 1)


def table() -> str:
    """The section of the documentation."""
    out: list[str] = []
    for s in dict.fromkeys(c.section for c in ALL):
        yes = [f"`{c.name}`" for c in ALL if c.section == s and not c.refused]
        no = [f"`{c.name}` ({c.refused})" for c in ALL if c.section == s and c.refused]
        text = f"**{s}.** {', '.join(yes)}."
        if no:
            text += f" Refused, what to write instead: {'; '.join(no)}."
        out.append(textwrap.fill(text, 118, break_long_words=False, break_on_hyphens=False))
    return "\n\n".join(out)


if __name__ == "__main__":
    print(table())
