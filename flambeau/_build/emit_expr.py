"""Expressions of the IR as C++.

Owns the C++ spelling of every intrinsic. Values have Python's meaning: `csrc/core/pylist.h` holds
the helpers for what C++ does otherwise (negative indices, floor division).
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from .._ir.graph import Arg, Node, Value
from .._ir.intrinsics import DTYPES
from .._ir.reading import Reading
from .._ir.types import NONE, TENSOR, Type
from .compiler import Called, Callees
from .cpp_types import cpp_value

CPP_KEYWORDS = frozenset(
    "alignas and asm auto bool break case catch char class const continue default delete do "
    "double else enum explicit export extern float for friend goto if inline int long mutable "
    "namespace new not operator or private protected public register return short signed "
    "sizeof static struct switch template this throw try typedef typename union unsigned "
    "using virtual void volatile while xor".split()
)

#: operators of plain numbers
_OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "and_": "&", "or_": "|", "xor": "^",
    "lshift": "<<", "rshift": ">>",
}  # fmt: skip
_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_CHECKED = {"add": "plus", "sub": "minus", "mul": "times"}  # of whole numbers
_CASTS = ("float", "int", "bool", "number", "wrap", "unwrap", "opttensors", "filled")
#: whose first argument is not asked for a member
_PLAIN = ("neg", "invert", "getitem", "getslice", "part", "pop")
_SPECIAL_DTYPES = {"bool_": "Bool", "bfloat16": "BFloat16"}


def dtype_enumerator(name: str) -> str:
    """C++ enumerator of a dtype constant: `uint8` is DType::UInt8."""
    text = _SPECIAL_DTYPES.get(name) or name.replace("uint", "UInt").replace("int", "Int")
    text = text.replace("UInt", "uInt") if name.startswith("uint") else text
    return "DType::" + text[0].upper() + text[1:]


#: intrinsics whose C++ is not `name(arguments)`
_FORMATS = {
    "shape": "{0}.sizes()",
    "strides": "{0}.strides()",
    "ndim": "{0}.dim()",
    "dim": "{0}.dim()",
    "dtype": "{0}.dtype()",
    "device": "{0}.device()",
    "offset": "{0}.offset()",
    "storage_offset": "{0}.offset()",
    "requires_grad": "func::wants_gradients({0})",
    "numel": "{0}.numel()",
    "suggest_memory_format": "{0}.suggest_memory_format()",
    "item": "{0}.item()",
    "is_bool": "{0}.is_bool()",
    "conj": "{0}.conj()",
    "fits": "Scalar({0}).fits({1})",
    "undefined": "Tensor()",
    "defined": "{0}.defined()",
    "is_wrapped": "{0}.is_wrapped_number()",
    "wrapped": "flambeau::wrapped_number({0})",
    "differentiated": "differentiated()",
    "traced": "false",
    "is_differentiated": "is_differentiated({0})",
    "attention_place": "modes.attention.place({0})",
    "infer_size": "flambeau::infer_sizes({0}, {1})",
    "result_type": "flambeau::result_type({all})",
    "dtype_of": "{0}.dtype()",
    "dtype_name": "std::string(flambeau::dtype_name({0}))",
    "scalar_type_name": "std::string(flambeau::scalar_type_name({0}))",
    "device_or": "{0}.value_or({1})",
    "sorted": "py::sorted({0})",
    "len": "py::len({0})",
    "abs": "std::abs({0})",
    "all": "py::all({0})",
    "any": "py::any({0})",
    "sum": "py::sum({0})",
    "prod": "py::prod({0})",
    "contains": "py::contains({0}, {1})",
    "sqrt": "std::sqrt({0})",
    "exp": "std::exp({0})",
    "log": "std::log({0})",
    "cos": "std::cos({0})",
    "sin": "std::sin({0})",
    "isnan": "std::isnan({0})",
    "isinf": "std::isinf({0})",
    "ceil": "static_cast<int64_t>(std::ceil({0}))",
    "floor": "static_cast<int64_t>(std::floor({0}))",
    "str": "std::to_string({0})",
    "ord": "py::ord({0})",
    "append": "{0}.push_back({1})",
    "extend": "py::extend({0}, {1})",
    "insert": "py::insert({0}, {1}, {2})",
    "index": "py::index({0}, {1})",
    "replace": "py::replace({0}, {1}, {2})",
    "concat_lists": "py::concat({0}, {1})",
    "repeat_list": "py::repeat({0}, {1})",
    "reversed_list": "py::reversed({0})",
    "min_of": "py::min({0})",
    "max_of": "py::max({0})",
    "number_add": "py::add({0}, {1})",
    "number_sub": "py::sub({0}, {1})",
    "number_mul": "py::mul({0}, {1})",
    "number_div": "py::div({0}, {1})",
    "contiguous_format": "MemoryFormat::Contiguous",
    "preserve_format": "MemoryFormat::Preserve",
    "channels_last": "MemoryFormat::ChannelsLast",
    "channels_last_3d": "MemoryFormat::ChannelsLast3d",
    "strided_layout": "Layout::Strided",
    "sparse_coo": "Layout::SparseCoo",
    "sparse_csr": "Layout::SparseCsr",
    "layout": "Layout::Strided",
    "is_cuda": "({0}.device().type() == DeviceType::CUDA)",
    "is_meta": "({0}.device().type() == DeviceType::Meta)",
    "smallest": "py::smallest({0})",
    "largest": "py::largest({0})",
    "epsilon": "py::epsilon({0})",
    "sum_to": "flambeau::sum_to({0}, {1})",
    "floordiv": "py::floordiv({0}, {1})",
    "mod": "py::mod({0}, {1})",
    "pow": "py::pow({0}, {1})",
    "neg": "(-{0})",
    "invert": "(~{0})",
    "unwrap": "*{0}",
    "number": "Scalar({0})",
    "wrap": "flambeau::wrapped_number({0})",
    "opttensors": "OptTensors({0}.begin(), {0}.end())",
    "is_none": "!{0}.has_value()",
    "getitem": "py::at({all})",
    "getslice": "py::slice({all})",
    "part": "std::get<{1}>({0})",
    "pop": "py::pop({all})",
    "filled": "Ints({1}, {0})",
}
#: the same on a DType: free functions
_DTYPE_FUNCTIONS = "is_floating_point is_complex is_inexact is_integral itemsize".split()
#: members of the same name
_MEMBERS = "is_floating_point is_complex is_integral is_contiguous size stride".split()


def named_constant(name: str) -> str:
    """C++ of a constant that is written as a name: a dtype, a memory format, a layout."""
    return _FORMATS.get(name) or dtype_enumerator(name)


def constant(value: object, t: Type = NONE) -> str:
    """A literal; of type `t` where that is float."""
    if value is None:
        return "std::nullopt"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, float) or t.base == "float":
        x = float(value)  # type: ignore[arg-type]
        if math.isnan(x):
            return "py::nan"
        if math.isinf(x):
            return "py::inf" if x > 0 else "-py::inf"
        return repr(x)
    assert isinstance(value, int)
    if value == -(2**63):
        return "INT64_MIN"
    return f"{value}LL" if abs(value) >= 2**31 else str(value)


def type_of(a: Arg) -> Type:
    """Type of an argument; a literal has that of its class."""
    if isinstance(a, Value):
        assert isinstance(a.type, Type)
        return a.type
    return NONE if a is None else Type(type(a).__name__)


def is_optional(a: Arg) -> bool:
    """It may be None."""
    return type_of(a).optional


def _given(n: Node) -> Type:
    return type_of(n.out)


def no_calls(target: str) -> Called:
    """The callees of what calls no operation."""
    raise AssertionError(target)


class ExprEmitter:
    """Emits expressions of one function; `rename` maps variables to C++ names."""

    def __init__(self, callees: Callees, reading: Reading | None = None) -> None:
        self.callees = callees
        self.reading = reading or Reading()
        self.rename: dict[str, str] = {}
        self.used: set[str] = set()  # variables that are read somewhere
        self.counter = 0

    def fresh(self, stem: str) -> str:
        self.counter += 1
        return f"{stem}_{self.counter}"

    def var(self, name: str) -> str:
        return self.rename.get(name) or (name + "_" if name in CPP_KEYWORDS else name)

    def expr(self, a: Arg) -> str:
        """C++ of an argument: a variable, a literal, or the expression of an operand."""
        if not isinstance(a, Value):
            return constant(a)
        return self.var(a.name) if a.name else self.node(self.reading.makers[a])

    def many(self, args: Sequence[Arg]) -> list[str]:
        return [self.expr(a) for a in args]

    def exactly(self, a: Arg, t: Type) -> str:
        """C++ whose type is exactly `t` (literals and options spelled out)."""
        if a is None:
            return f"{cpp_value(t)}()"
        made = self.reading.maker(a)
        cast = made is not None and made.target.removeprefix("core.") in _CASTS
        literal = isinstance(a, (int, str)) and not isinstance(a, bool)
        spelled = cast or literal or (t.optional and not is_optional(a))
        return f"{cpp_value(t)}({self.expr(a)})" if spelled else self.expr(a)

    def member(self, a: Arg) -> str:
        """C++ to which `.member` can be added."""
        text = self.expr(a)
        return f"({text})" if text[0] in "*-!" else text

    # -- by kind of node --------------------------------------------------------------------------

    def node(self, n: Node) -> str:
        """C++ of what a node computes."""
        if n.target == "if":
            return self._choice(n)
        if n.target == "collect":
            return self._comp(n)
        if n.target.startswith("core."):
            return self._core(n)
        called = self.callees(n.target)
        if called.params is None:
            args = self.many(n.args)
        else:
            pairs = zip(n.args, called.params, strict=True)
            args = [self.exactly(a, p.type.plain()) for a, p in pairs]
        return f"ops::{called.name}({', '.join(args)})"

    def _core(self, n: Node) -> str:
        name = n.target.removeprefix("core.")
        special = getattr(self, f"_core_{name}", None)
        if special is not None:
            text: str = special(n)
            return text
        if name in _OPERATORS:
            return self._operator(n, name)
        if name in _COMPARISONS:
            return self._comparison(n, _COMPARISONS[name])
        if not n.args and name in DTYPES:
            return dtype_enumerator(name)
        if n.args and type_of(n.args[0]).base == "DType":
            if name in _DTYPE_FUNCTIONS:
                return f"{self.free(name)}({self.expr(n.args[0])})"
            if name == "is_bool":
                return f"({self.expr(n.args[0])} == DType::Bool)"
        first = self.expr if name in _CASTS or name in _PLAIN else self.member
        args = [first(n.args[0]), *self.many(n.args[1:])] if n.args else []
        if name in ("size", "stride") and len(args) == 1:
            return f"{args[0]}.{'sizes' if name == 'size' else 'strides'}()"
        if name in _MEMBERS:
            return f"{args[0]}.{name}({', '.join(args[1:])})"
        if name in _FORMATS:
            return _FORMATS[name].format(*args, all=", ".join(args))
        return f"{self.free(name)}({', '.join(args)})"

    def free(self, name: str) -> str:
        """A function of the core, qualified: operations and variables may have the same name."""
        return f"flambeau::{name}"

    def _core_min(self, n: Node) -> str:
        name = n.target.removeprefix("core.")
        return f"std::{name}<{cpp_value(_given(n))}>({', '.join(self.many(n.args))})"

    _core_max = _core_min

    def _core_empty(self, n: Node) -> str:
        shape, dtype, like, device, memory_format = n.args
        parts = [
            self.expr(shape),
            self._from_like(dtype, like, "dtype", "flambeau::default_dtype()"),
            self._or_default(memory_format, "MemoryFormat::Contiguous"),
            self._from_like(device, like, "device", "modes.device"),
        ]
        return f"{self.free('empty')}({', '.join(parts)})"

    def _core_empty_strided_as(self, n: Node) -> str:
        shape, strides, dtype, like, device = n.args
        parts = [
            self.expr(shape),
            self.expr(strides),
            self._from_like(dtype, like, "dtype", "flambeau::default_dtype()"),
            self._from_like(device, like, "device", "modes.device"),
        ]
        return f"{self.free('empty_strided')}({', '.join(parts)})"

    def _core_empty_as(self, n: Node) -> str:
        like, dtype, memory_format, device = n.args
        options = [self.expr(dtype), self._or_default(memory_format, "MemoryFormat::Preserve")]
        if device is not None:
            options.append(self._or_default(device, f"{self.member(like)}.device()"))
        return f"{self.free('empty_like')}({self.expr(like)}, {', '.join(options)})"

    def _core_device_of(self, n: Node) -> str:
        if len(n.args) == 1 and type_of(n.args[0]) == TENSOR:
            return f"{self.member(n.args[0])}.device()"
        return f"{self.free('device_of')}({{{', '.join(self.many(n.args))}}})"

    def _core_strided(self, n: Node) -> str:
        *geometry, dtype = n.args
        x, shape, stride, offset = self.many(geometry)
        if dtype is None:
            return f"flambeau::alias({x}, {shape}, {stride}, {offset})"
        kind = self._or_default(dtype, "DType::Float32")
        return f"flambeau::alias_as({x}, {kind}, {shape}, {stride}, {offset})"

    def _core_alias_of(self, n: Node) -> str:
        x, dtype = n.args
        if dtype is None:
            return f"flambeau::alias({self.expr(x)})"
        t = self.member(x)
        return (
            f"flambeau::alias_as({t}, {self.expr(dtype)}, {t}.sizes(), {t}.strides(), {t}.offset())"
        )

    def _or_default(self, a: Arg, default: str) -> str:
        if a is None:
            return default
        return f"{self.member(a)}.value_or({default})" if is_optional(a) else self.expr(a)

    def _from_like(self, a: Arg, like: Arg, what: str, default: str) -> str:
        if like is not None and not is_optional(like):
            default = f"{self.member(like)}.{what}()"
        return self._or_default(a, default)

    def _operator(self, n: Node, name: str) -> str:
        a, b = self.many(n.args)
        if name in _CHECKED and _given(n).base == "int":
            return f"py::{_CHECKED[name]}({a}, {b})"
        return f"({a} {_OPERATORS[name]} {b})"

    def _comparison(self, n: Node, text: str) -> str:
        a, b = self.many(n.args)
        if type_of(n.args[0]).base == "Number":
            test = f"{self.member(n.args[0])}.equal({b})"
            return test if text == "==" else f"!{test}"
        if isinstance(n.args[0], str):
            a = f"std::string({a})"
        return f"({a} {text} {b})"

    def compares(self, n: Node) -> bool:
        return n.target.removeprefix("core.") in _COMPARISONS

    def logic(self, n: Node) -> str:
        """The operator that a choice between truth values is: `a && b` is `b if a else False`."""
        if n.target != "if" or _given(n).base != "bool":
            return ""
        (then,), (other,) = (b.outputs for b in n.blocks)
        return "&&" if other is False else "||" if then is True else ""

    def _choice(self, n: Node) -> str:
        test, ((a,), (b,)) = self.expr(n.args[0]), (x.outputs for x in n.blocks)
        if text := self.logic(n):
            return f"({test} {text} {self.expr(a if text == '&&' else b)})"
        return f"({test} ? {self.exactly(a, _given(n))} : {self.exactly(b, _given(n))})"

    def _core_not(self, n: Node) -> str:
        inner = self.reading.made_by(n.args[0], "core.is_none")
        if inner is not None:
            return f"{self.member(inner.args[0])}.has_value()"
        return f"!{self.expr(n.args[0])}"

    def _core_list(self, n: Node) -> str:
        t = _given(n)
        exact = t.base == "List"
        items = [self.exactly(a, t.element) if exact else self.expr(a) for a in n.args]
        return f"{cpp_value(t)}{{{', '.join(items)}}}"

    def _core_tuple(self, n: Node) -> str:
        return f"{cpp_value(_given(n))}{{{', '.join(self.many(n.args))}}}"

    def _core_format(self, n: Node) -> str:
        return f"flambeau::concat({', '.join(self._joined(n))})"

    def _joined(self, n: Node) -> list[str]:
        out: list[str] = []
        for a in n.args:
            if self.reading.made_by(a, "core.format"):
                out.extend(self.pieces(a))
            elif type_of(a).base == "bool":
                out.append(f'({self.expr(a)} ? "True" : "False")')
            else:
                out.append(self.expr(a))
        return out

    def pieces(self, a: Arg) -> list[str]:
        """Operands of a text, to be joined by the callee."""
        made = self.reading.made_by(a, "core.format")
        return self._joined(made) if made else [self.expr(a)]

    def _core_float(self, n: Node) -> str:
        (a,), kind = n.args, n.target.removeprefix("core.")
        if type_of(a).base == "Number":
            convert = {"int": "to_int", "float": "to_double", "bool": "to_bool"}[kind]
            return f"{self.member(a)}.{convert}()"
        if kind == "bool":
            return f"({self.expr(a)} != 0)"
        return f"static_cast<{cpp_value(_given(n))}>({self.expr(a)})"

    _core_int = _core_bool = _core_float

    def _comp(self, n: Node) -> str:
        over, lists = n.args
        items = n.blocks[0].inputs
        targets = [v.name for v in items]
        shadowed = {t: self.rename.pop(t) for t in targets if t in self.rename}
        head, close = self.loop(targets, [type_of(v) for v in items], over, lists)
        *tests, element = (b.outputs[0] for b in n.blocks)
        test = f"if ({self.expr(tests[0])}) " if tests else ""
        push = f"out.push_back({self.expr(element)});"
        self.rename.update(shadowed)
        body = f"{' '.join(head)} {test}{push} {close}".rstrip()
        return f"[&] {{ {cpp_value(_given(n))} out; {body} return out; }}()"

    # -- loops, shared by statements and comprehensions -----------------------------------------

    def loop(
        self, targets: Sequence[str], types: Sequence[Type], over: str, args: Sequence[Arg]
    ) -> tuple[list[str], str]:
        """Opening lines of a loop and what closes it."""
        return getattr(self, f"_loop_{over}")(targets, types, args)

    def bind(self, name: str, t: Type, value: str) -> str:
        by_value = t.base in ("int", "float", "bool", "DType") or t.optional
        left = cpp_value(t) if by_value else "const auto&"
        return f"{self.mark(name)}{left} {self.var(name)} = {value};"

    def mark(self, name: str) -> str:
        """Attribute of a variable that may be read nowhere."""
        return "" if name in self.used else "[[maybe_unused]] "

    def _loop_range(
        self, targets: Sequence[str], types: Sequence[Type], args: Sequence[Arg]
    ) -> tuple[list[str], str]:
        i = self.var(targets[0]) if targets[0] else self.fresh("i")
        start, stop = self.expr(args[0]), self.expr(args[1])
        if isinstance(args[2], Value):
            end, by = self.fresh("end"), self.fresh("step")
            init = f"int64_t {i} = {start}, {end} = {stop}, {by} = {self.expr(args[2])}"
            return [f"for ({init}; {by} > 0 ? {i} < {end} : {i} > {end}; {i} += {by}) {{"], "}"
        step = args[2]
        init = f"int64_t {i} = {start}"
        if isinstance(args[1], Value):
            end = self.fresh("end")
            init, stop = f"{init}, {end} = {stop}", end
        test = "<" if step > 0 else ">"
        move = f"++{i}" if step == 1 else f"--{i}" if step == -1 else f"{i} += {step}"
        return [f"for ({init}; {i} {test} {stop}; {move}) {{"], "}"

    def _loop_list(
        self, targets: Sequence[str], types: Sequence[Type], args: Sequence[Arg]
    ) -> tuple[list[str], str]:
        xs = self.expr(args[0])
        item = type_of(args[0])
        if len(targets) > 1:
            x = self.fresh("item")
            names = [
                self.bind(n, t, f"std::get<{k}>({x})")
                for k, (n, t) in enumerate(zip(targets, types, strict=True))
                if n
            ]
            return [f"for (const auto& {x} : {xs}) {{", *names], "}"
        x = self.var(targets[0]) if targets[0] else self.fresh("unused")
        mark = self.mark(targets[0])
        if item.base == "str":
            return [f"for ({mark}const std::string& {x} : py::chars({xs})) {{"], "}"
        plain = types[0].base in ("int", "float", "bool", "DType")
        declared = cpp_value(types[0]) if plain else "const auto&"
        return [f"for ([[maybe_unused]] {mark}{declared} {x} : {xs}) {{"], "}"

    def _loop_reversed(
        self, targets: Sequence[str], types: Sequence[Type], args: Sequence[Arg]
    ) -> tuple[list[str], str]:
        xs, k = self.fresh("list"), self.fresh("k")
        head = [
            f"{{ const auto& {xs} = {self.expr(args[0])};",
            f"for (size_t {k} = {xs}.size(); {k}-- > 0;) {{",
        ]
        if targets[0]:
            head.append(self.bind(targets[0], types[0], f"{xs}[{k}]"))
        return head, "} }"

    def _loop_enumerate(
        self, targets: Sequence[str], types: Sequence[Type], args: Sequence[Arg]
    ) -> tuple[list[str], str]:
        xs = self.fresh("list")
        i = self.var(targets[0]) if targets[0] else self.fresh("k")
        head = [
            f"{{ const auto& {xs} = {self.expr(args[0])};",
            f"for (int64_t {i} = 0; {i} < py::len({xs}); ++{i}) {{",
        ]
        if targets[1]:
            head.append(self.bind(targets[1], types[1], f"{xs}[static_cast<size_t>({i})]"))
        return head, "} }"

    def _loop_zip(
        self, targets: Sequence[str], types: Sequence[Type], args: Sequence[Arg]
    ) -> tuple[list[str], str]:
        lists = [self.fresh("list") for _ in args]
        k, n = self.fresh("k"), self.fresh("n")
        head = ["{"]
        head += [f"const auto& {x} = {self.expr(a)};" for x, a in zip(lists, args, strict=True)]
        sizes = ", ".join(f"{x}.size()" for x in lists)
        head.append(f"for (size_t {k} = 0, {n} = std::min({{{sizes}}}); {k} < {n}; ++{k}) {{")
        for name, t, x in zip(targets, types, lists, strict=True):
            if name:
                head.append(self.bind(name, t, f"{x}[{k}]"))
        return head, "} }"
