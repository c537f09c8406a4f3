"""Expressions of the IR as C++.

Owns the C++ spelling of every intrinsic. Values have Python's meaning: `csrc/core/pylist.h` holds
the helpers for what C++ does otherwise (negative indices, floor division).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence

from .._ir import ir
from .._ir.intrinsics import DTYPES
from .._ir.types import TENSOR, Type
from .cpp_types import cpp_value

CPP_KEYWORDS = frozenset(
    "alignas and asm auto bool break case catch char class const continue default delete do "
    "double else enum explicit export extern float for friend goto if inline int long mutable "
    "namespace new not operator or private protected public register return short signed "
    "sizeof static struct switch template this throw try typedef typename union unsigned "
    "using virtual void volatile while xor".split()
)

_CHECKED = {"+": "plus", "-": "minus", "*": "times"}  # of whole numbers
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
    "element_size": "{0}.itemsize()",
    "suggest_memory_format": "{0}.suggest_memory_format()",
    "item": "{0}.item()",
    "is_bool": "{0}.is_bool()",
    "conj": "{0}.conj()",
    "fits": "Scalar({0}).fits({1})",
    "undefined": "Tensor()",
    "defined": "{0}.defined()",
    "is_wrapped": "{0}.is_wrapped_number()",
    "wrapped": "flambeau::wrapped_number({0})",
    "grad_mode": "modes.grad",
    "attention_place": "modes.attention.place({0})",
    "same_tensor": "{0}.is_same({1})",
    "overlaps": "(flambeau::overlap({0}, {1}) != Overlap::None)",
    "infer_size": "flambeau::infer_sizes({0}, {1})",
    "result_type": "flambeau::result_type({all})",
    "dtype_of": "{0}.dtype()",
    "dtype_name": "std::string(flambeau::dtype_name({0}))",
    "scalar_type_name": "std::string(flambeau::scalar_type_name({0}))",
    "cpu": "Device{{}}",
    "default_device": "modes.device",
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
    "find": "py::find({0}, {1})",
    "startswith": "{0}.starts_with({1})",
    "endswith": "{0}.ends_with({1})",
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
    "is_cpu": "({0}.device().type == DeviceType::CPU)",
    "is_cuda": "({0}.device().type == DeviceType::CUDA)",
    "is_meta": "({0}.device().type == DeviceType::Meta)",
    "smallest": "py::smallest({0})",
    "largest": "py::largest({0})",
    "epsilon": "py::epsilon({0})",
    "sum_to": "flambeau::sum_to({0}, {1})",
}
#: the same on a DType: free functions
_DTYPE_FUNCTIONS = (
    "is_floating_point",
    "is_complex",
    "is_signed",
    "is_inexact",
    "is_integral",
    "itemsize",
)


def named_constant(name: str) -> str:
    """C++ of a constant that is written as a name: a dtype, a memory format, a layout."""
    return _FORMATS.get(name) or dtype_enumerator(name)


def constant(value: object, t: Type) -> str:
    """A literal of type `t`."""
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


class ExprEmitter:
    """Emits expressions of one function; `rename` maps variables to C++ names."""

    def __init__(self, overloaded: Callable[[str], bool]) -> None:
        self.overloaded = overloaded
        self.rename: dict[str, str] = {}
        self.used: set[str] = set()  # variables that are read somewhere
        self.counter = 0

    def fresh(self, stem: str) -> str:
        self.counter += 1
        return f"{stem}_{self.counter}"

    def var(self, name: str) -> str:
        return self.rename.get(name) or (name + "_" if name in CPP_KEYWORDS else name)

    def expr(self, e: ir.Expr) -> str:
        """C++ of an expression."""
        return getattr(self, "_" + e.op)(e)

    def many(self, es: Sequence[ir.Expr]) -> list[str]:
        return [self.expr(a) for a in es]

    def exactly(self, e: ir.Expr) -> str:
        """C++ whose type is exactly the node's (literals and options spelled out)."""
        if e.op == "const" and e.type.base in ("int", "str", "None") or e.op == "cast":
            text = "" if e.op == "cast" and e.attr == "none" else self.expr(e)
            return f"{cpp_value(e.type)}({text})"
        return self.expr(e)

    def member(self, e: ir.Expr) -> str:
        """C++ to which `.member` can be added."""
        text = self.expr(e)
        return f"({text})" if text[0] in "*-!" else text

    # -- by kind of node --------------------------------------------------------------------------

    def _const(self, e: ir.Expr) -> str:
        return constant(e.attr, e.type)

    def _var(self, e: ir.Expr) -> str:
        return self.var(e.attr)

    def _call(self, e: ir.Expr) -> str:
        name = e.attr.name
        one = self.exactly if self.overloaded(name) else self.expr
        return f"ops::{name}({', '.join(one(a) for a in e.args)})"

    def _core(self, e: ir.Expr) -> str:
        name = e.attr
        special = getattr(self, f"_core_{name}", None)
        if special is not None:
            return special(e)
        if not e.args and name in DTYPES:
            return dtype_enumerator(name)
        if e.args and e.args[0].type.base == "DType":
            if name in _DTYPE_FUNCTIONS:
                return f"{self.free(name)}({self.expr(e.args[0])})"
            if name == "is_bool":
                return f"({self.expr(e.args[0])} == DType::Bool)"
        args = [self.member(e.args[0]), *self.many(e.args[1:])] if e.args else []
        if name in ("size", "stride") and len(args) == 1:
            return f"{args[0]}.{'sizes' if name == 'size' else 'strides'}()"
        if name in (
            "is_floating_point",
            "is_complex",
            "is_integral",
            "is_contiguous",
            "size",
            "stride",
        ):
            return f"{args[0]}.{name}({', '.join(args[1:])})"
        if name in _FORMATS:
            return _FORMATS[name].format(*args, all=", ".join(args))
        return f"{self.free(name)}({', '.join(args)})"

    def free(self, name: str) -> str:
        """A function of the core, qualified: operations and variables may have the same name."""
        return f"flambeau::{name}"

    def _core_min(self, e: ir.Expr) -> str:
        return f"std::{e.attr}<{cpp_value(e.type)}>({', '.join(self.many(e.args))})"

    _core_max = _core_min

    def _core_pop(self, e: ir.Expr) -> str:
        return f"py::pop({', '.join(self.many(e.args))})"

    def _core_empty(self, e: ir.Expr) -> str:
        shape, dtype, like, device, memory_format = e.args
        parts = [
            self.expr(shape),
            self._from_like(dtype, like, "dtype", "flambeau::default_dtype()"),
            self._or_default(memory_format, "MemoryFormat::Contiguous"),
            self._from_like(device, like, "device", "modes.device"),
        ]
        return f"{self.free('empty')}({', '.join(parts)})"

    def _core_empty_strided_as(self, e: ir.Expr) -> str:
        shape, strides, dtype, like, device = e.args
        parts = [
            self.expr(shape),
            self.expr(strides),
            self._from_like(dtype, like, "dtype", "flambeau::default_dtype()"),
            self._from_like(device, like, "device", "modes.device"),
        ]
        return f"{self.free('empty_strided')}({', '.join(parts)})"

    def _core_empty_as(self, e: ir.Expr) -> str:
        like, dtype, memory_format, device = e.args
        options = [self.expr(dtype), self._or_default(memory_format, "MemoryFormat::Preserve")]
        if not (device.op == "cast" and device.attr == "none"):
            options.append(self._or_default(device, f"{self.member(like)}.device()"))
        return f"{self.free('empty_like')}({self.expr(like)}, {', '.join(options)})"

    def _core_device_of(self, e: ir.Expr) -> str:
        if len(e.args) == 1 and e.args[0].type == TENSOR:
            return f"{self.member(e.args[0])}.device()"
        return f"{self.free('device_of')}({{{', '.join(self.many(e.args))}}})"

    def _core_strided(self, e: ir.Expr) -> str:
        *geometry, dtype = e.args
        x, shape, stride, offset = self.many(geometry)
        if dtype.op == "cast" and dtype.attr == "none":
            return f"flambeau::alias({x}, {shape}, {stride}, {offset})"
        kind = self._or_default(dtype, "DType::Float32")
        return f"flambeau::alias_as({x}, {kind}, {shape}, {stride}, {offset})"

    def _core_alias_of(self, e: ir.Expr) -> str:
        x, dtype = e.args
        if dtype.op == "cast" and dtype.attr == "none":
            return f"flambeau::alias({self.expr(x)})"
        t = self.member(x)
        return (
            f"flambeau::alias_as({t}, {self.expr(dtype)}, {t}.sizes(), {t}.strides(), {t}.offset())"
        )

    def _or_default(self, e: ir.Expr, default: str) -> str:
        if e.op == "cast" and e.attr == "none":
            return default
        if e.op == "cast" and e.attr == "some":
            return self.expr(e.args[0])
        return f"{self.member(e)}.value_or({default})"

    def _from_like(self, e: ir.Expr, like: ir.Expr, what: str, default: str) -> str:
        if like.op == "cast" and like.attr == "some":
            default = f"{self.member(like.args[0])}.{what}()"
        return self._or_default(e, default)

    def _bin(self, e: ir.Expr) -> str:
        a, b = self.many(e.args)
        if e.attr in ("//", "%"):
            return f"py::{'floordiv' if e.attr == '//' else 'mod'}({a}, {b})"
        if e.attr == "**":
            return f"py::pow({a}, {b})"
        if e.attr in _CHECKED and e.type.base == "int":
            return f"py::{_CHECKED[e.attr]}({a}, {b})"
        return f"({a} {e.attr} {b})"

    def _cmp(self, e: ir.Expr) -> str:
        a, b = self.many(e.args)
        if e.args[0].type.base == "Number":
            test = f"{self.member(e.args[0])}.equal({b})"
            return test if e.attr == "==" else f"!{test}"
        if e.args[0].op == "const" and e.args[0].type.base == "str":
            a = f"std::string({a})"
        return f"({a} {e.attr} {b})"

    def _and(self, e: ir.Expr) -> str:
        return f"({self.expr(e.args[0])} && {self.expr(e.args[1])})"

    def _or(self, e: ir.Expr) -> str:
        return f"({self.expr(e.args[0])} || {self.expr(e.args[1])})"

    def _not(self, e: ir.Expr) -> str:
        inner = e.args[0]
        if inner.op == "is_none":
            return f"{self.member(inner.args[0])}.has_value()"
        return f"!{self.expr(inner)}"

    def _neg(self, e: ir.Expr) -> str:
        return f"(-{self.expr(e.args[0])})"

    def _invert(self, e: ir.Expr) -> str:
        return f"(~{self.expr(e.args[0])})"

    def _is_none(self, e: ir.Expr) -> str:
        return f"!{self.member(e.args[0])}.has_value()"

    def _if(self, e: ir.Expr) -> str:
        test, a, b = e.args
        return f"({self.expr(test)} ? {self.exactly(a)} : {self.exactly(b)})"

    def _list(self, e: ir.Expr) -> str:
        exact = e.type.base == "List"
        items = [self.exactly(a) if exact else self.expr(a) for a in e.args]
        return f"{cpp_value(e.type)}{{{', '.join(items)}}}"

    def _tuple(self, e: ir.Expr) -> str:
        return f"{cpp_value(e.type)}{{{', '.join(self.many(e.args))}}}"

    def _index(self, e: ir.Expr) -> str:
        return f"py::at({self.expr(e.args[0])}, {self.expr(e.args[1])})"

    def _item(self, e: ir.Expr) -> str:
        return f"std::get<{e.attr}>({self.expr(e.args[0])})"

    def _slice(self, e: ir.Expr) -> str:
        return f"py::slice({', '.join(self.many(e.args))})"

    def _format(self, e: ir.Expr) -> str:
        return f"flambeau::concat({', '.join(self.pieces(e))})"

    def pieces(self, e: ir.Expr) -> list[str]:
        """Operands of a text, to be joined by the callee."""
        if e.op != "format":
            return [self.expr(e)]
        out: list[str] = []
        for a in e.args:
            if a.op == "format":
                out.extend(self.pieces(a))
            elif a.type.base == "bool":
                out.append(f'({self.expr(a)} ? "True" : "False")')
            else:
                out.append(self.expr(a))
        return out

    def _cast(self, e: ir.Expr) -> str:
        kind = e.attr
        if kind == "none":
            return "std::nullopt"
        inner = e.args[0]
        x = self.expr(inner)
        if isinstance(kind, tuple):
            return f"Ints({', '.join([str(kind[1]), x])})"
        if kind == "unwrap":
            return f"*{x}"
        if kind == "some":
            return x
        if kind == "number":
            return f"Scalar({x})"
        if kind == "wrap":
            return f"flambeau::wrapped_number({x})"
        if kind == "opttensors":
            return f"OptTensors({x}.begin(), {x}.end())"
        if inner.type.base == "Number":
            convert = {"int": "to_int", "float": "to_double", "bool": "to_bool"}[kind]
            return f"{self.member(inner)}.{convert}()"
        if kind == "bool":
            return f"({x} != 0)"
        return f"static_cast<{cpp_value(e.type)}>({x})"

    def _comp(self, e: ir.Expr) -> str:
        comp: ir.Comp = e.attr
        n = len(e.args) - 1 - int(comp.filtered)
        shadowed = {t: self.rename.pop(t) for t in comp.targets if t in self.rename}
        head, close = self.loop(comp.targets, comp.types, comp.over, e.args[:n])
        test = f"if ({self.expr(e.args[n])}) " if comp.filtered else ""
        push = f"out.push_back({self.expr(e.args[-1])});"
        self.rename.update(shadowed)
        body = f"{' '.join(head)} {test}{push} {close}".rstrip()
        return f"[&] {{ {cpp_value(e.type)} out; {body} return out; }}()"

    # -- loops, shared by statements and comprehensions -----------------------------------------

    def loop(
        self, targets: Sequence[str], types: Sequence[Type], over: str, args: Sequence[ir.Expr]
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
        self, targets: Sequence[str], types: Sequence[Type], args: Sequence[ir.Expr]
    ) -> tuple[list[str], str]:
        i = self.var(targets[0]) if targets[0] else self.fresh("i")
        start, stop = self.expr(args[0]), self.expr(args[1])
        if args[2].op != "const":
            end, by = self.fresh("end"), self.fresh("step")
            init = f"int64_t {i} = {start}, {end} = {stop}, {by} = {self.expr(args[2])}"
            return [f"for ({init}; {by} > 0 ? {i} < {end} : {i} > {end}; {i} += {by}) {{"], "}"
        step = args[2].attr
        init = f"int64_t {i} = {start}"
        if args[1].op != "const":
            end = self.fresh("end")
            init, stop = f"{init}, {end} = {stop}", end
        test = "<" if step > 0 else ">"
        move = f"++{i}" if step == 1 else f"--{i}" if step == -1 else f"{i} += {step}"
        return [f"for ({init}; {i} {test} {stop}; {move}) {{"], "}"

    def _loop_list(
        self, targets: Sequence[str], types: Sequence[Type], args: Sequence[ir.Expr]
    ) -> tuple[list[str], str]:
        xs = self.expr(args[0])
        item = args[0].type
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
        self, targets: Sequence[str], types: Sequence[Type], args: Sequence[ir.Expr]
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
        self, targets: Sequence[str], types: Sequence[Type], args: Sequence[ir.Expr]
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
        self, targets: Sequence[str], types: Sequence[Type], args: Sequence[ir.Expr]
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
