"""The Python side of the table: for every entry its functions, methods, in-place and out= forms.

One small thunk per overload converts the bound arguments and calls C++; everything else is static
data that `csrc/python/argparse.cpp` reads. Names that several entries share become overload sets.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from dataclasses import replace

from .._ir.types import Param, Type
from .._table.fronts import Form, Front, Group, groups, loose_tensors, self_index
from .._table.model import Op
from . import declare
from .compiler import Unit
from .emit_op import default_text

_HEAD = "// Generated from flambeau/ops by flambeau._build; do not edit.\n"
_OPEN = "namespace flambeau::python {\n"
_CLOSE = "}  // namespace flambeau::python\n"

#: subset type -> (enumerator of Arg, converter, spelling in messages)
_ARGS = {
    "Tensor": ("Tensor", "", "Tensor"),
    "Tensors": ("Tensors", "to_tensors", "tuple of Tensors"),
    "OptTensors": ("OptTensors", "to_opt_tensors", "tuple of Tensors"),
    "int": ("Int", "to_int", "int"),
    "float": ("Float", "to_float", "float"),
    "bool": ("Bool", "to_bool", "bool"),
    "str": ("Str", "to_str", "str"),
    "Number": ("Number", "to_number", "Number"),
    "Ints": ("Ints", "to_ints", "tuple of ints"),
    "Floats": ("Floats", "to_floats", "tuple of floats"),
    "Bools": ("Bools", "to_bools", "tuple of bools"),
    "Numbers": ("Numbers", "to_numbers", "tuple of Scalars"),
    "DType": ("DType", "to_dtype", "torch.dtype"),
    "Device": ("Device", "to_usable_device", "torch.device"),
    "Layout": ("Layout", "to_layout", "torch.layout"),
    "MemoryFormat": ("MemoryFormat", "to_memory_format", "torch.memory_format"),
    "Generator": ("Generator", "to_generator", "torch.Generator"),
}
_EXTRAS = (
    ("layout", "Layout", "torch.layout"),
    ("pin_memory", "Bool", "bool"),
    ("requires_grad", "Bool", "bool"),
)


def _old_orders(forms: Sequence[Form], methods: bool) -> list[tuple[int, Form]]:
    """Further signatures: which form each stands for, and the order of its arguments."""
    return [
        (i, replace(form, method=methods, order=str(order)))
        for i, form in enumerate(forms)
        for order in form.op.option("old_orders", ())
    ]


def _converted(p: Param, i: int) -> str:
    """C++ expression of parameter `i`, not a required Tensor, from its slot."""
    t = p.type
    if t.base == "Tensor" and t.optional and not t.or_number:
        return f"to_opt_tensor(a[{i}])"
    if t.base == "Ints":
        if t.optional:
            default = "std::nullopt" if p.required else default_text(p)
            value = f"optional_ints(a, {i}, {t.length})"
            return (
                value
                if default == "std::nullopt"
                else f"a[{i}] ? {value} : std::optional<Ints>({default})"
            )
        value = f"to_ints(a, {i}, {t.length})"
        return value if p.required else f"a[{i}] ? {value} : {default_text(p)}"
    convert = _ARGS[t.base][1]
    if t.base == "Tensors" and p.required:
        return f"to_tensors(a, {i})"
    if t.optional:
        default = "std::nullopt" if p.required else default_text(p)
        value = f"optional(a[{i}], {convert})"
        return (
            value
            if default == "std::nullopt"
            else f"a[{i}] ? {value} : decltype({value})({default})"
        )
    value = f"{convert}(a[{i}])"
    return value if p.required else f"a[{i}] ? {value} : {default_text(p)}"


def _tensor_arg(p: Param, i: int) -> str:
    if p.required:
        return f"  TensorArg x{i}(a[{i}]);"
    return f"  TensorArg x{i}(a[{i}], {default_text(p).removeprefix('Scalar')});"


def _size_test(form: Form) -> str:
    """C++ test: is the work large enough to let other Python threads run meanwhile?"""
    tests = [
        f"big({'*' if _plain_tensor(p.type) else ''}x{i})"
        for i, p in enumerate(form.params)
        if p.type.base in ("Tensor", "Tensors") or (form.op.option("factory") and p.name == "size")
    ]
    return " || ".join(tests) or "false"


def _plain_tensor(t: Type) -> bool:
    return t.base == "Tensor" and (not t.optional or t.or_number)


def _asked(form: Form, flag: str) -> str:
    """C++ test of the flag that asks for a result; "" stands for a result that always is given."""
    names = [p.name for p in form.params]
    return f"x{names.index(flag)}" if flag else "true"


def _thunk(form: Form, fields: str) -> list[str]:
    op = form.op
    lines = [f"static PyObject* call_{form.id}([[maybe_unused]] const Args& a) {{"]
    args = []
    for i, p in enumerate(form.params):
        if _plain_tensor(p.type):
            lines.append(_tensor_arg(p, i))
            args.append(f"*x{i}")
        else:
            lines.append(f"  auto x{i} = {_converted(p, i)};")
            args.append(f"x{i}")
    if form.op.option("numbers") and not form.inplace:
        own = "ops::full({}, to_number(a[0]))"
        lines.append(f"  if (x0.from_number() && x1.from_number()) [[unlikely]] x0.replace({own});")
    if form.method:
        args.insert(self_index(op.params), args.pop(0))
    call = f"ops::{form.cpp}({', '.join(args)})"
    pack = f"pack<{len(op.outputs)}>({fields}, " if fields else "pack("
    if asked := op.option("asked"):
        flags = [_asked(form, str(flag)) for flag in asked]
        pack = f"pack_asked({{{', '.join(flags)}}}, "
    test = _size_test(form)
    n = len(op.params)
    tail = f", a, {n + form.has_out}" if form.factory else ""
    finish = "pack_factory(" if form.factory else pack
    if form.has_out:
        count = len(op.outputs)
        outs = ["*out"] if count == 1 else [f"out[{k}]" for k in range(count)]
        take = (
            f"TensorArg out(a[{n}])"
            if count == 1
            else f'Tensors out = to_outputs(a[{n}], {count}, "{form.name}")'
        )
        out_call = f"ops::{op.name}_out({', '.join([*args, *outs])})"
        lines += [
            f"  if (given(a[{n}])) [[unlikely]] {{",
            f"    {take};",
            f"    return {pack}unlocked({test}, [&] {{ return {out_call}; }}));",
            "  }",
        ]
    if op.returns.base == "None":
        return [*lines, f"  unlocked({test}, [&] {{ {call}; }});", "  Py_RETURN_NONE;", "}"]
    return [*lines, f"  return {finish}unlocked({test}, [&] {{ return {call}; }}){tail});", "}"]


def _param(p: Param, op: Op) -> str:
    t = p.type
    size = p.name in op.option("sizes", ())
    kind = "TensorOrNumber" if t.or_number else "Size" if size else _ARGS[t.base][0]
    length = 1 if t.base == "Tensors" and op.option("varargs") else t.length
    flags = [str(t.optional).lower(), str(p.required).lower(), str(length)]
    return f'{{"{p.name}", Arg::{kind}, {", ".join(flags)}}}'


def _default(p: Param) -> str:
    assert p.default is not None
    text = ast.unparse(p.default)
    return f"torch.{text}" if isinstance(p.default, ast.Name) else text


def signature_text(form: Form, front: Front | None = None) -> str:
    """`(Tensor input, *, Number alpha = 1)`, as error messages show it."""
    parts: list[str] = []
    star = False
    for p in front.params if front else form.params:
        if p.kwonly and not star:
            parts.append("*")
            star = True
        text = f"{_ARGS[p.type.base][2]} {p.name}"
        parts.append(text if p.required else f"{text} = {_default(p)}")
    extra = []
    if form.has_out and not front:
        extra.append(f"{'Tensor' if len(form.op.outputs) == 1 else 'tuple of Tensors'} out = None")
    if form.factory:
        extra += [
            f"{text} {name} = {'None' if name == 'layout' else 'False'}"
            for name, _, text in _EXTRAS
        ]
    if extra and not star:
        parts.append("*")
    return f"({', '.join(parts + extra)})"


def _params(form: Form, name: str) -> list[str]:
    """The parameters' array of that name, none where there are no parameters."""
    params = [_param(p, form.op) for p in form.params]
    if form.has_out:
        kind = "Tensor" if len(form.op.outputs) == 1 else "Tensors"
        params.append(f'{{"out", Arg::{kind}, true, false}}')
    if form.factory:
        params += [f'{{"{name}", Arg::{kind}, true, false}}' for name, kind, _ in _EXTRAS]
    return [f"static Param {name}[] = {{{', '.join(params)}}};"] if params else []


def _signature(form: Form, fields: str) -> list[str]:
    """Thunk and parameters of a form."""
    return [*_thunk(form, fields), *_params(form, f"params_{form.id}")]


def _counts(form: Form) -> str:
    """How many parameters there are, and how many of them may be given by position."""
    extra = form.has_out + 3 * form.factory
    return f"{len(form.params) + extra}, {sum(not p.kwonly for p in form.params)}"


def _row(form: Form) -> str:
    params = f"params_{form.id}" if form.params or form.has_out or form.factory else "nullptr"
    text = json.dumps(signature_text(form))
    loose = "true" if loose_tensors(form.op) else "false"
    call = f"call_{form.id}, {loose}, {json.dumps(form.target)}"
    call += ", true" if form.op.option("numbers") else ""
    return f"{{{params}, {_counts(form)}, {text}, {call}}}"


def _old_order(form: Form, stands_for: int, params: str, own: Form) -> str:
    """The row of an old order of the arguments of a form."""
    names = [p.name for p in form.params]
    places = [names.index(p.name) for p in own.params] + [len(names)] * form.has_out
    return f'{{{{{params}, {_counts(form)}, "", nullptr}}, {stands_for}, {{{_listed(places)}}}}}'


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _binding(kind: str, g: Group, forms: list[Form]) -> list[str]:
    rows = ",\n    ".join(_row(f) for f in forms)
    module = "" if "" in g.spaces or not g.spaces else next(iter(g.spaces))
    lines = [f"static Signature {kind}_signatures_{g.id}[] = {{\n    {rows}}};"]
    old_rows = []
    for k, (i, form) in enumerate(_old_orders(forms, kind == "m")):
        name = f"{kind}_old_params_{g.id}_{k}"
        lines += _params(form, name)
        old_rows.append(_old_order(form, i, name, forms[i]))
    old = ""
    if old_rows:
        old = f", {kind}_old_orders_{g.id}, {len(old_rows)}"
        rows = ",\n    ".join(old_rows)
        lines.append(f"static OldOrder {kind}_old_orders_{g.id}[] = {{\n    {rows}}};")
    if g.front:
        lines += _front(g, g.front)
        old = (old or ", nullptr, 0") + f", &f_front_{g.id}"
    return [
        *lines,
        f'const Binding {kind}_binding_{g.id} = {{"{g.name}", "{module}", '
        f"{kind}_signatures_{g.id}, {len(forms)}, {str(bool(g.methods)).lower()}{old}}};",
    ]


def _front(g: Group, front: Front) -> list[str]:
    """The signature that is matched in the place of a group's own."""
    op = g.functions[0].op
    names = [p.name for p in front.params]
    for form in g.functions:
        assert [p.name for p in form.params] == [p.name for p in op.params], g.name
    params = [
        f'{{"{p.name}", Arg::Object, false, false}}' if p.name == front.flag else _param(p, op)
        for p in front.params
    ]
    folded = [
        str(names.index(n)) if n in names and "old_reduction" in op.options else "Front::none"
        for n in ("size_average", "reduce", "reduction")
    ]
    flag = str(names.index(front.flag)) if front.flag else "Front::none"
    places = [str(names.index(p.name)) for p in op.params]
    places += ["Front::none"] * (16 - len(places))
    counts = f"{len(names)}, {sum(not p.kwonly for p in front.params)}"
    text = json.dumps(signature_text(g.functions[0], front))
    return [
        f"static Param f_front_params_{g.id}[] = {{{', '.join(params)}}};",
        f"static Front f_front_{g.id} = {{{{f_front_params_{g.id}, {counts}, {text}, nullptr}}, "
        f"{flag}, {', '.join(folded)}, {{{', '.join(places)}}}}};",
    ]


_CALL = "PyObject* const* args, Py_ssize_t n, PyObject* names"


def _entry_points(g: Group) -> list[str]:
    lines = []
    if g.functions:
        lines.append(
            f"PyObject* f_{g.id}(PyObject*, {_CALL}) {{\n"
            f"  return call_binding(f_binding_{g.id}, nullptr, args, n, names);\n}}"
        )
    if g.methods:
        lines.append(
            f"PyObject* m_{g.id}(PyObject* self, {_CALL}) {{\n"
            f"  return call_binding(m_binding_{g.id}, self, args, n, names);\n}}"
        )
    return lines


def _fields(form: Form) -> str:
    """C++ name of the type of a named result, "" for plain results."""
    return f"result_type_{form.op.uid}" if form.op.option("fields") and not form.inplace else ""


def _source(parts: list[Group], known: declare.Names) -> str:
    lines: list[str] = []
    done: set[str] = set()
    for g in parts:
        for form in [*g.functions, *g.methods]:
            if form.id in done:
                continue
            done.add(form.id)
            fields = _fields(form)
            if fields:
                names = [form.name, *form.op.option("fields")]
                lines.append(f"static ResultType {fields}{{{', '.join(map(json.dumps, names))}}};")
            lines += _signature(form, fields)
        if g.functions:
            lines += _binding("f", g, g.functions)
        if g.methods:
            lines += _binding("m", g, g.methods)
        lines += [*_entry_points(g), ""]
    body = "\n".join(lines)
    own = "\n".join(_declarations(parts))
    used = "\n".join(declare.prelude(lines, known))
    return f'{_HEAD}#include "python/thunks.h"\n\n{used}\n{_OPEN}\n{own}\n\n{body}\n{_CLOSE}'


def _declarations(of: list[Group]) -> list[str]:
    lines = []
    for g in of:
        for kind, forms in (("f", g.functions), ("m", g.methods)):
            if forms:
                lines.append(f"extern const Binding {kind}_binding_{g.id};")
                lines.append(f"PyObject* {kind}_{g.id}(PyObject*, {_CALL});")
    return lines


def _header(all_groups: list[Group]) -> str:
    body = "\n".join(_declarations(all_groups))
    return f'{_HEAD}#pragma once\n\n#include "python/argparse.h"\n\n{_OPEN}\n{body}\n\n{_CLOSE}'


def _doc(g: Group, forms: list[Form]) -> str:
    first = forms[0].op
    if g.front:
        text = f"{g.name}{signature_text(forms[0], g.front)} -> {first.returns}\n"
        return f"{_shown_signature(g.name, g.front.params)}{text}\n{first.doc}"
    text = "".join(f"{g.name}{signature_text(f)} -> {f.op.returns}\n" for f in forms)
    if forms[0].inplace:
        return f"{text}\nIn-place form of {forms[0].name[:-1]}()."
    # Forms that differ in the types of their parameters alone have one signature.
    shown = {_shown_signature(g.name, f.op.params) for f in forms}
    head = shown.pop() if list(g.spaces) == ["nn.functional"] and len(shown) == 1 else ""
    return f"{head}{text}\n{first.doc}"


def _shown_signature(name: str, params: Sequence[Param]) -> str:
    """What `inspect.signature` reads at the head of the docstring of a built-in function."""
    parts: list[str] = []
    for p in params:
        if p.kwonly and "*" not in parts:
            parts.append("*")
        parts.append(p.name if p.default is None else f"{p.name}={ast.unparse(p.default)}")
    return f"{name}($module, {', '.join(parts)})\n--\n\n"


def _method_def(name: str, function: str, doc: str) -> str:
    call = f"reinterpret_cast<PyCFunction>(reinterpret_cast<void*>({function}))"
    return f"    {{{json.dumps(name)}, {call}, METH_FASTCALL | METH_KEYWORDS, {json.dumps(doc)}}},"


def _tables(all_groups: list[Group]) -> str:
    end = "    {nullptr, nullptr, 0, nullptr},"
    spaces: dict[str, list[str]] = {}
    methods: list[str] = []
    bindings: list[str] = []
    for g in all_groups:
        if g.functions:
            doc = _doc(g, g.functions)
            names = [(space, g.name) for space in g.spaces]
            names += [tuple(("." + a).rsplit(".", 1)) for a in g.aliases]  # type: ignore[misc]
            for space, name in dict.fromkeys((s.removeprefix("."), n) for s, n in names):
                spaces.setdefault(space, []).append(_method_def(name, f"f_{g.id}", doc))
            bindings.append(f'    {{"{g.name}", &f_binding_{g.id}, nullptr}},')
        if g.methods:
            doc = _doc(g, g.methods)
            for name in (g.name, *g.alias_methods):
                methods.append(_method_def(name, f"m_{g.id}", doc))
            bindings.append(f'    {{"{g.name}", nullptr, &m_binding_{g.id}}},')
    lines = []
    rows = []
    for i, (space, defs) in enumerate(spaces.items()):
        lines += [f"static PyMethodDef functions_{i}[] = {{", *defs, end, "};", ""]
        rows.append(f'    {{"{space}", functions_{i}}},')
    lines += ["Namespace generated_namespaces[] = {", *rows, "    {nullptr, nullptr},", "};", ""]
    lines += ["PyMethodDef generated_methods[] = {", *methods, end, "};", ""]
    lines += [
        "NamedBinding generated_bindings[] = {",
        *bindings,
        "    {nullptr, nullptr, nullptr},",
        "};",
    ]
    body = "\n".join(lines)
    includes = '#include "gen/bindings.h"\n#include "python/module.h"\n'
    return f"{_HEAD}{includes}\n{_OPEN}\n{body}\n\n{_CLOSE}"


def files(unit: Unit) -> dict[str, str]:
    """File name -> text: one source per area (the first word of a family), the tables, a header."""
    all_groups = groups([e.op for e in unit.entries])
    known = declare.names(unit)
    areas: dict[str, list[Group]] = {}
    for g in all_groups:
        area = (g.functions or g.methods)[0].op.family.partition("_")[0]
        areas.setdefault(area, []).append(g)
    out = {f"bindings_{area}.cpp": _source(parts, known) for area, parts in areas.items()}
    return {**out, "bindings.h": _header(all_groups), "bindings.cpp": _tables(all_groups)}
