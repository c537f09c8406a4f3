"""Types of the subset, and typed parameters, with their spelling as Python annotations.

`Ints`, `Floats`, `Bools`, `Numbers`, `Tensors`, `OptTensors` are the named lists; any other list is
`List[T]`. Must not know how a type is represented in C++ or at run time.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from .errors import CompileError

#: names of types that stand in annotations by themselves
BASES = (
    "Tensor", "Tensors", "OptTensors", "int", "float", "bool", "str", "Number", "Ints", "Floats",
    "Bools", "Numbers", "DType", "Device", "Layout", "MemoryFormat", "Generator", "None",
)  # fmt: skip


@dataclass(frozen=True)
class Type:
    """A type of the subset: a base name, perhaps optional, perhaps with item types."""

    base: str
    optional: bool = False
    items: tuple[Type, ...] = ()
    length: int = 0  # Ints1, Ints2, Ints3: an int stands for that many
    or_number: bool = False  # `Tensor | Number`: the binding also takes a Python scalar

    @property
    def is_tensor(self) -> bool:
        return self.base == "Tensor"

    @property
    def is_list(self) -> bool:
        return self.base in _ELEMENTS or self.base == "List"

    @property
    def is_numeric(self) -> bool:
        """A plain int, float or bool."""
        return self.base in ("int", "float", "bool") and not self.optional

    def required(self) -> Type:
        return Type(self.base, False, self.items, self.length, self.or_number)

    def or_none(self) -> Type:
        return Type(self.base, True, self.items, self.length, self.or_number)

    def plain(self) -> Type:
        """The same without what only matters where Python values come in."""
        if not (self.items or self.length or self.or_number):
            return self
        return Type(self.base, self.optional, tuple(i.plain() for i in self.items))

    @property
    def element(self) -> Type:
        """Type of the items of a list."""
        return self.items[0] if self.base == "List" else _ELEMENTS[self.base]

    def __str__(self) -> str:
        text = self.base + (str(self.length) if self.length else "")
        if self.items:
            text = f"{self.base}[{', '.join(map(str, self.items))}]"
        return text + (" | None" if self.optional else "")


TENSOR, INT, FLOAT, BOOL, STR = (
    Type("Tensor"),
    Type("int"),
    Type("float"),
    Type("bool"),
    Type("str"),
)
NUMBER, INTS, NONE, DTYPE = Type("Number"), Type("Ints"), Type("None"), Type("DType")
DEVICE = Type("Device")
_ELEMENTS = {
    "Ints": INT,
    "Floats": FLOAT,
    "Bools": BOOL,
    "Numbers": NUMBER,
    "Tensors": TENSOR,
    "OptTensors": TENSOR.or_none(),
}
_LISTS = {t: Type(name) for name, t in _ELEMENTS.items()}


def list_of(item: Type) -> Type:
    """Type of a list of `item`s."""
    item = item.plain()
    return _LISTS.get(item) or Type("List", items=(item,))


def tuple_of(*items: Type) -> Type:
    return Type("Tuple", items=tuple(i.plain() for i in items))


@dataclass
class Param:
    """A parameter of an operation, a rule or a function."""

    name: str
    type: Type
    default: ast.expr | None = None  # None: required
    kwonly: bool = False

    @property
    def required(self) -> bool:
        return self.default is None


def parse_type(node: ast.expr, file: str) -> Type:
    """Type of an annotation."""
    match node:
        case ast.BinOp(left=left, op=ast.BitOr(), right=ast.Constant(value=None)):
            return parse_type(left, file).or_none()
        case ast.BinOp(left=ast.Name(id="Tensor"), op=ast.BitOr(), right=ast.Name(id="Number")):
            return Type("Tensor", or_number=True)
        case ast.Constant(value=None):
            return NONE
        case ast.Name(id=name) if name in BASES:
            return Type(name)
        case ast.Name(id=name) if name[:-1] == "Ints" and name[-1].isdigit():
            return Type("Ints", length=int(name[-1]))
        case ast.Subscript(value=ast.Name(id="Tuple" | "tuple"), slice=ast.Tuple(elts=items)):
            return Type("Tuple", items=tuple(parse_type(e, file) for e in items))
        case ast.Subscript(value=ast.Name(id="Tuple" | "tuple"), slice=item):
            return Type("Tuple", items=(parse_type(item, file),))
        case ast.Subscript(value=ast.Name(id="List" | "list"), slice=item):
            return list_of(parse_type(item, file))
        case ast.Subscript(value=ast.Name(id="Optional"), slice=item):
            return parse_type(item, file).or_none()
    raise CompileError(f"unknown type {ast.unparse(node)!r}", file, node)


def parse_params(node: ast.FunctionDef, file: str, typed: bool) -> list[Param]:
    """Parameters of a function (typed) or of a rule (an empty type where not annotated)."""
    a = node.args
    if a.vararg or a.kwarg or a.posonlyargs:
        raise CompileError("star arguments are not part of the subset", file, node)
    defaults = [None] * (len(a.args) - len(a.defaults)) + list(a.defaults)
    pairs = [(p, d, False) for p, d in zip(a.args, defaults, strict=True)]
    pairs += [(p, d, True) for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True)]
    out: list[Param] = []
    for p, default, kwonly in pairs:
        if p.annotation is not None:
            out.append(Param(p.arg, parse_type(p.annotation, file), default, kwonly))
        elif typed:
            raise CompileError(f"parameter {p.arg!r} has no type", file, p)
        else:
            out.append(Param(p.arg, Type(""), default, kwonly))
    return out
