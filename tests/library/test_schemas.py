"""Schemas: text in, the same text or an error out; and those made of annotations."""

from __future__ import annotations

import random
import typing
from collections.abc import Sequence

import pytest

import flambeau as torch
from flambeau._library import schemas

CANONICAL = """
f() -> ()
f(Tensor x) -> Tensor
space::f.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)
f(Tensor(a) x, int dim=0) -> Tensor(a)
f(Tensor(a|b! -> a|c) x) -> (Tensor(a) values, Tensor)
f(Tensor(a -> *) x, Tensor(b!)[] y) -> ()
f(SymInt[] s=[], int[2] pad=0, int[2] step=[1, 2], bool[3] mask=[True, False, True]) -> Tensor[]
f(float a=1., float b=-0.5, float c=1e+30, float d=inf, Scalar f=1, Scalar g=2.) -> int
f(str a="x", str b="a \\"b\\" \\\\ \\n", str? c=None) -> str
f(ScalarType? d=None, ScalarType e=float32, Device v=cpu, Device? w=cuda:1) -> bool
f(float x=-inf, Layout l=strided) -> bool
f(MemoryFormat m=contiguous_format, Generator? generator=None, Tensor? t=None) -> (Tensor, Tensor?)
f((int, Tensor) x, Dict(str, Tensor[]) d, t[] l, Any z, int?[] k, Future(int) w) -> (int, ...)
f(int x, ...) -> ...
f(__torch__.torch.classes.a.B x) -> ((int, float))
f(Scalar c=2.j, Scalar[] s=[1, 2.5, True], float[]? f=None) -> (Tensor out)
""".strip().splitlines()


@pytest.mark.parametrize("text", CANONICAL)
def test_printed_as_it_is_written(text):
    assert str(schemas.parse(text)) == text


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("f ( Tensor x,int y = 3 )->Tensor", "f(Tensor x, int y=3) -> Tensor"),
        ("f(float x=1, str s='q')  ->  (Tensor)", 'f(float x=1., str s="q") -> Tensor'),
        ("f(int[2] x=[4, 4], ScalarType t=long) -> ()", "f(int[2] x=4, ScalarType t=int64) -> ()"),
        ("f(int reduction=Mean, Tensor(a -> a) x) -> ()", "f(int reduction=1, Tensor(a) x) -> ()"),
        ("f(int x[2], Device d='cpu') -> ()", "f(int[2] x, Device d=cpu) -> ()"),
    ],
)
def test_other_spellings(text, means):
    assert str(schemas.parse(text)) == means


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected the name of an operation, got the end of the text"),
        ("f", "expected '(', got the end of the text"),
        ("f(Tensr x) -> Tensor", "expected a type, got 'Tensr' at character 2"),
        ("f(Tensor) -> Tensor", "expected the name of an argument, got ')' at character 8"),
        ("f(Tensor x, int x) -> ()", "expected a name that no argument before has, got 'x'"),
        ("f(Tensor x)", "expected '->', got the end of the text"),
        ("f(Tensor x) -> Tensor y z", "expected the end of the text, got 'z'"),
        ("f(*) -> ()", "expected an argument that is given by name"),
        ("f(int x=1.5) -> ()", "expected an integer, got '1'"),
        ("f(int x=99999999999999999999) -> ()", "expected an integer of 64 bits"),
        ("f(int x=None) -> ()", "expected a default of type int, got 'None'"),
        ("f(bool x=1) -> ()", "expected True or False"),
        ("f(str x='a) -> ()", "expected a quote at the end of the text"),
        ("f(int[0] x) -> ()", "expected a length from 1 to 255"),
        ("f(int[2] x=[1]) -> ()", "expected 2 items"),
        ("f(Tensor?? x) -> ()", "expected one '?'"),
        ("f.default(Tensor x) -> ()", "expected an overload that is not named default"),
        ("f(Dict(int) x) -> ()", "expected two types in Dict(KEY, VALUE)"),
        ("f(" + "(" * 5000 + "int", "expected types of at most 32 levels"),
        ("f(int" + "[]" * 5000 + " x) -> ()", "expected types of at most 32 levels"),
        ("f(Any x=3) -> ()", "expected no default for a parameter of type Any"),
    ],
)
def test_errors_say_where(text, words):
    with pytest.raises(RuntimeError) as e:
        schemas.parse(text)
    assert str(e.value).startswith("schema: expected ")
    assert words in str(e.value)


def test_what_an_argument_is():
    schema = schemas.parse(
        "s::f.o(Tensor(a!)? x, int[2] n=3, *, float s=1) -> (Tensor(a!) out, int)"
    )
    x, n, s = schema.arguments
    assert (schema.name, schema.overload_name, schema.is_mutable) == ("s::f", "o", True)
    assert x.alias_info.is_write and x.alias_info.before_set == {"a"} and not x.has_default_value()
    assert (str(x.type), x.type.kind(), str(x.type.getElementType())) == (
        "Optional[Tensor]", "OptionalType", "Tensor",
    )  # fmt: skip
    assert n.default_value == [3, 3] and not n.kwarg_only and str(n.type) == "List[int]"
    assert s.kwarg_only and s.default_value == 1.0 and schema.positional == 2
    assert [r.name for r in schema.returns] == ["out", ""]
    assert schema == schemas.parse(str(schema)) != schemas.parse("f() -> ()")


WORDS = (
    "( ) [ ] , * ? = -> ... ! | . :: ' \" - 0 1 2.5 1e400 j a f x Tensor int SymInt float bool "
    "str Scalar ScalarType Device Layout MemoryFormat Generator Dict Future Any t None True "
    "False inf nan cpu float32 strided contiguous_format __torch__.a 9999999999999999999999 "
    "\\ \n \0 é"
).split(" ")


def test_any_text_gives_an_error_or_a_schema():
    draw = random.Random(5)
    good = 0
    for _ in range(30_000):
        base = draw.choice(CANONICAL)
        kind = draw.randrange(3)
        if kind == 0:
            text = "".join(
                draw.choice(WORDS) + draw.choice(("", " ")) for _ in range(draw.randrange(25))
            )
        elif kind == 1:
            at = draw.randrange(len(base) + 1)
            text = base[:at] + draw.choice(WORDS) + base[at + draw.randrange(3) :]
        else:
            i, j = sorted(draw.randrange(len(base) + 1) for _ in range(2))
            text = base[:i] + base[j:]
        try:
            printed = str(schemas.parse(text))
        except RuntimeError as e:
            assert str(e).startswith("schema: expected ")
            continue
        good += 1
        assert str(schemas.parse(printed)) == printed
    assert good > 1000


# Annotations --------------------------------------------------------------------------------------


def test_schemas_of_annotations():
    def f(
        x: torch.Tensor,
        xs: Sequence[torch.Tensor],
        os: list[torch.Tensor | None],
        y: torch.Tensor | None,
        n: int,
        sizes: list[int],
        maybe: typing.Optional[Sequence[int]],  # noqa: UP045
        kind: torch.dtype,
        number: int | float | bool,
        more: typing.Sequence[int | float | bool],
        where: torch.device | None = None,
        eps: float = 1e-5,
        *,
        name: str = "q",
        flag: bool = False,
    ) -> tuple[torch.Tensor, list[torch.Tensor], int]: ...

    text = torch.library.infer_schema(f, mutates_args={"y"}, op_name="s::f")
    assert text == (
        "s::f(Tensor x, Tensor[] xs, Tensor?[] os, Tensor(a3!)? y, SymInt n, SymInt[] sizes, "
        "SymInt[]? maybe, ScalarType kind, Scalar number, Scalar[] more, Device? where=None, "
        'float eps=1e-05, *, str name="q", bool flag=False) -> (Tensor, Tensor[], SymInt)'
    )
    assert schemas.parse(text).arguments[3].is_write

    def nothing(x: torch.Tensor) -> None: ...

    assert torch.library.infer_schema(nothing, mutates_args="unknown") == "(Tensor(a0!) x) -> ()"


def test_annotations_that_no_schema_has():
    def f(x) -> torch.Tensor: ...
    def g(x: dict[str, int]) -> torch.Tensor: ...
    def h(x: torch.Tensor): ...
    def i(*xs: torch.Tensor) -> torch.Tensor: ...
    def j(x: torch.Tensor) -> str: ...
    def k(x: int) -> torch.Tensor: ...
    def m(x: Nowhere) -> torch.Tensor: ...  # noqa: F821

    for function, words in (
        (f, "Parameter x must have a type annotation"),
        (g, "Parameter x has the unsupported type"),
        (h, "expected an annotation of the result"),
        (i, "expected parameters that can be given by name"),
        (j, "Return has the unsupported type"),
        (k, "expected tensors in mutates_args, but x is SymInt"),
        (m, "expected annotations that can be evaluated"),
    ):
        with pytest.raises(ValueError, match="infer_schema") as e:
            torch.library.infer_schema(function, mutates_args={"x"})
        assert words in str(e.value)
    with pytest.raises(ValueError, match="'z'.* are no parameters"):
        torch.library.infer_schema(j, mutates_args={"z"})
