"""Implicit conversions of the subset: which exist, what they cost, and the nodes that make them.

A cost orders overloads: the call takes the candidate whose arguments convert most cheaply. Must
not convert what Python would not: a float never becomes an int, an optional never a value.
"""

from __future__ import annotations

from .typed import Expr
from .types import NONE, TENSOR, Type

EMPTY_LIST = Type("EmptyList")
EMPTY_DICT = Type("EmptyDict")
_WIDENING = {
    ("bool", "int"): 4,
    ("bool", "float"): 5,
    ("int", "float"): 2,
    ("bool", "Number"): 2,
    ("int", "Number"): 2,
    ("float", "Number"): 2,
    ("complex", "Number"): 2,
    ("bool", "complex"): 6,
    ("int", "complex"): 5,
    ("float", "complex"): 4,
    ("Tensors", "OptTensors"): 2,
}
_NUMBERS = ("bool", "int", "float", "Number", "complex")


def cost(src: Expr, dst: Type, wrap: bool = False) -> int | None:
    """Cost of turning `src` into `dst`; None: not possible. `wrap`: numbers become tensors."""
    have, want = src.type.plain(), dst.plain()
    if have == want:
        return 0
    if want.base == "Any":
        return 9
    if have.base == "None":
        return 1 if want.optional else None
    if want.base == "Union" and (inner := _member(have, want)) is not None:
        return inner
    if want.optional and not have.optional:
        inner = cost(src, dst.required(), wrap)
        return None if inner is None else inner + 1
    if have.optional or want.optional:
        return None
    if have == EMPTY_DICT:
        return 1 if want.base == "Dict" else None
    if src.op in ("list", "tuple") and dst.is_list:
        parts = [cost(a, want.element, wrap) for a in src.args]
        return None if None in parts else 1 + max((p for p in parts if p is not None), default=0)
    if have.base == "Tuple" and dst.is_list:  # a value of scripts, all of one type
        return 2 if have.items and set(have.items) == {want.element} else None
    if want == TENSOR and have.base in _NUMBERS:
        return 6 if wrap or dst.or_number else None
    if want.base == "Ints" and have.base == "int":
        return 3
    if want.base == "Floats" and have.base in ("int", "float"):
        return 3 if have.base == "float" else 4
    if want.base == "Tuple" == have.base and len(have.items) == len(want.items):
        if src.op == "tuple":
            parts = [cost(a, t, wrap) for a, t in zip(src.args, want.items, strict=True)]
        else:  # of the same parts, some of which may be None there
            pairs = zip(have.items, want.items, strict=True)
            parts = [0 if a == t or a.or_none() == t or a == NONE and t.optional
                     or t.base == "Any" else None for a, t in pairs]  # fmt: skip
        return None if None in parts else 1
    return _WIDENING.get((have.base, want.base))


def _member(have: Type, want: Type) -> int | None:
    """Cost of one of the types of a union, or of fewer of them."""
    if have.optional and not want.optional:
        return None
    members = have.items if have.base == "Union" else (have.required(),)
    return 1 if all(m in want.items for m in members) else None


def convert(src: Expr, dst: Type) -> Expr:
    """`src` as `dst`; `cost` must have allowed it."""
    have, want = src.type.plain(), dst.plain()
    if have == want:
        return src
    if have.base == "None":
        return Expr("none", (), want, None, src.line)
    if want.optional and not have.optional:
        return Expr("some", (convert(src, dst.required()),), want, None, src.line)
    if want.base in ("Any", "Union"):
        return Expr("some", (src,), want, None, src.line)
    if have == EMPTY_DICT:
        return Expr("dict", (), want, None, src.line)
    if src.op in ("list", "tuple") and dst.is_list:
        items = tuple(convert(a, want.element) for a in src.args)
        return Expr("list", items, want, None, src.line)
    if have.base == "Tuple" and dst.is_list:
        return Expr("core", (src,), want, "list_of", src.line)
    if want == TENSOR:
        return Expr("wrap", (convert(src, Type("Number")),), want, None, src.line)
    if want.base in ("Ints", "Floats"):
        src = convert(src, want.element)
        count = Expr("const", (), Type("int"), dst.length or 1, src.line)
        return Expr("filled", (src, count), want, None, src.line)
    if want.base == "Tuple" and src.op != "tuple":
        return Expr("some", (src,), want, None, src.line)
    if want.base == "Tuple":
        items = tuple(convert(a, t) for a, t in zip(src.args, want.items, strict=True))
        return Expr("tuple", items, want, None, src.line)
    if src.op == "const" and want.base == "float":
        return Expr("const", (), want, float(src.attr), src.line)
    return Expr(want.base.lower(), (src,), want, None, src.line)


def join(a: Type, b: Type) -> Type | None:
    """The type that both branches of a conditional have, None when there is none."""
    a, b = a.plain(), b.plain()
    if a == b:
        return a
    if a.base == "None":
        return b.or_none()
    if b.base == "None":
        return a.or_none()
    if a.required() == b.required():
        return a.or_none()
    if a.is_numeric and b.is_numeric:
        return Type("float") if "float" in (a.base, b.base) else Type("int")
    if a.base in _NUMBERS and b.base in _NUMBERS and not (a.optional or b.optional):
        return Type("Number")
    return None
