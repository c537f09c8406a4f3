"""Instructions that move values: stack, locals, cells, globals, constants, building containers."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from typing import Any

from . import module_attributes, objects
from .errors import Break, Raised, unset_variable
from .interpreter import Frame, handles
from .kinds import DELETED, NULL, UNSET
from .opcodes import Instruction


@handles("RESUME", "NOP", "CACHE", "PRECALL", "EXTENDED_ARG", "SETUP_ANNOTATIONS")
def nothing(f: Frame, i: Instruction) -> None:
    pass


@handles("POP_TOP")
def pop_top(f: Frame, i: Instruction) -> None:
    f.pop()


@handles("PUSH_NULL")
def push_null(f: Frame, i: Instruction) -> None:
    f.push(NULL)


@handles("SWAP")
def swap(f: Frame, i: Instruction) -> None:
    s = f.stack
    s[-1], s[-i.arg] = s[-i.arg], s[-1]


@handles("COPY")
def copy(f: Frame, i: Instruction) -> None:
    f.push(f.stack[-i.arg])


@handles("LOAD_CONST")
def load_const(f: Frame, i: Instruction) -> None:
    f.push(f.code.co_consts[i.arg])


@handles("LOAD_FAST")
def load_fast(f: Frame, i: Instruction) -> None:
    f.stack.append(f.load(i.arg))


@handles("LOAD_FAST_AND_CLEAR")
def load_fast_and_clear(f: Frame, i: Instruction) -> None:
    value = f.slots[i.arg]
    f.push(NULL if value is UNSET else value)
    f.slots[i.arg] = UNSET


@handles("LOAD_CLOSURE")
def load_closure(f: Frame, i: Instruction) -> None:
    f.push(f.load(i.arg))


@handles("STORE_FAST")
def store_fast(f: Frame, i: Instruction) -> None:
    value = f.stack.pop()
    f.slots[i.arg] = UNSET if value is NULL else value


@handles("DELETE_FAST")
def delete_fast(f: Frame, i: Instruction) -> None:
    f.load(i.arg)  # an error when it is not set
    f.slots[i.arg] = UNSET


@handles("MAKE_CELL")
def make_cell(f: Frame, i: Instruction) -> None:
    value = f.slots[i.arg]
    if value is not UNSET:
        value = f.resolve(f.load(i.arg))
    cell = types.CellType() if value is UNSET else types.CellType(value)
    f.slots[i.arg] = f.shadow_state.create(cell)


@handles("COPY_FREE_VARS")
def copy_free_vars(f: Frame, i: Instruction) -> None:
    """Done when the frame was made."""


@handles("LOAD_DEREF", "LOAD_CLASSDEREF")
def load_deref(f: Frame, i: Instruction) -> None:
    value = f.shadow_state.read_cell(f.resolve(f.load(i.arg)))
    if value is UNSET:
        name = f.decoded.names[i.arg]
        raise Raised(unset_variable(name, name in f.code.co_freevars))
    f.push(value)


@handles("STORE_DEREF")
def store_deref(f: Frame, i: Instruction) -> None:
    cell = f.resolve(f.load(i.arg))
    f.shadow_state.write_cell(cell, f.pop())


@handles("DELETE_DEREF")
def delete_deref(f: Frame, i: Instruction) -> None:
    cell = f.resolve(f.load(i.arg))
    if id(cell) in f.shadow_state.cells:
        raise Break("a variable of an enclosing function is deleted")
    load_deref(f, i)
    f.pop()
    del cell.cell_contents


@handles("LOAD_GLOBAL")
def load_global(f: Frame, i: Instruction) -> None:
    name = f.code.co_names[i.arg >> 1]
    if i.arg & 1:
        f.push(NULL)
    f.push(read_name(f, name))


def read_name(f: Frame, name: str) -> Any:
    value = f.shadow_state.read_global(f.globals, name, f.builtins)
    if value is UNSET:
        raise Raised(NameError(f"name '{name}' is not defined", name=name))
    return value


@handles("STORE_GLOBAL")
def store_global(f: Frame, i: Instruction) -> None:
    f.shadow_state.write_global(f.globals, f.code.co_names[i.arg], f.pop())


@handles("DELETE_GLOBAL")
def delete_global(f: Frame, i: Instruction) -> None:
    name = f.code.co_names[i.arg]
    read_name(f, name)
    f.shadow_state.write_global(f.globals, name, DELETED)


# Containers ---------------------------------------------------------------------------------------


@handles("BUILD_TUPLE")
def build_tuple(f: Frame, i: Instruction) -> None:
    f.push(tuple(f.pop_many(i.arg)))


@handles("BUILD_LIST")
def build_list(f: Frame, i: Instruction) -> None:
    f.push(f.pop_many(i.arg))


@handles("BUILD_SET")
def build_set(f: Frame, i: Instruction) -> None:
    f.push(f.interpreter.direct(set, f.pop_many(i.arg)))


@handles("BUILD_MAP")
def build_map(f: Frame, i: Instruction) -> None:
    items = f.pop_many(2 * i.arg)
    f.push(f.interpreter.direct(dict, list(zip(items[::2], items[1::2], strict=True))))


@handles("BUILD_CONST_KEY_MAP")
def build_const_key_map(f: Frame, i: Instruction) -> None:
    keys = f.pop()
    f.push(dict(zip(keys, f.pop_many(i.arg), strict=True)))


@handles("BUILD_STRING")
def build_string(f: Frame, i: Instruction) -> None:
    f.push("".join(f.pop_many(i.arg)))


@handles("BUILD_SLICE")
def build_slice(f: Frame, i: Instruction) -> None:
    f.push(slice(*f.pop_many(i.arg)))


@handles("LIST_TO_TUPLE")
def list_to_tuple(f: Frame, i: Instruction) -> None:
    f.push(tuple(f.pop()))


@handles("LIST_APPEND")
def list_append(f: Frame, i: Instruction) -> None:
    value = f.pop()
    f.at(i.arg).append(value)


@handles("SET_ADD")
def set_add(f: Frame, i: Instruction) -> None:
    value = f.pop()
    f.interpreter.direct(set.add, f.at(i.arg), value)


@handles("MAP_ADD")
def map_add(f: Frame, i: Instruction) -> None:
    key, value = f.pop_many(2)
    f.interpreter.direct(dict.__setitem__, f.at(i.arg), key, value)


@handles("LIST_EXTEND")
def list_extend(f: Frame, i: Instruction) -> None:
    items = f.pop()
    f.interpreter.direct(list.extend, f.at(i.arg), objects.iterable(f, items))


@handles("SET_UPDATE")
def set_update(f: Frame, i: Instruction) -> None:
    items = f.pop()
    f.interpreter.direct(set.update, f.at(i.arg), objects.iterable(f, items))


@handles("DICT_UPDATE")
def dict_update(f: Frame, i: Instruction) -> None:
    other = f.pop()
    f.interpreter.direct(dict.update, f.at(i.arg), objects.mapping(f, other))


@handles("DICT_MERGE")
def dict_merge(f: Frame, i: Instruction) -> None:
    other = objects.mapping(f, f.pop())
    into = f.at(i.arg)
    for key in other:
        if key in into:
            raise Raised(TypeError(f"got multiple values for keyword argument '{key}'"))
    dict.update(into, other)


@handles("UNPACK_SEQUENCE")
def unpack_sequence(f: Frame, i: Instruction) -> None:
    f.stack.extend(reversed(_unpack(f, f.pop(), i.arg, i.arg)))


@handles("UNPACK_EX")
def unpack_ex(f: Frame, i: Instruction) -> None:
    before, after = i.arg & 255, i.arg >> 8
    items = _unpack(f, f.pop(), before + after, -1)
    tail = len(items) - after
    out = [*items[:before], items[before:tail], *items[tail:]]
    f.stack.extend(reversed(out))


def _unpack(f: Frame, value: Any, least: int, exactly: int) -> list[Any]:
    if type(value) in (tuple, list):
        items = list(value)
    else:
        iterator = objects.get_iter(f, value)
        items = []
        while exactly < 0 or len(items) <= exactly:
            item = objects.next_of(f, iterator)
            if item is UNSET:
                break
            items.append(item)
    if len(items) < least:
        most = f"{least}" if exactly >= 0 else f"at least {least}"
        raise Raised(ValueError(f"not enough values to unpack (expected {most}, got {len(items)})"))
    if 0 <= exactly < len(items):
        raise Raised(ValueError(f"too many values to unpack (expected {exactly})"))
    return items


# Functions ----------------------------------------------------------------------------------------


@handles("MAKE_FUNCTION")
def make_function(f: Frame, i: Instruction) -> None:
    code = f.pop()
    closure = f.pop() if i.arg & 8 else None
    annotations = f.pop() if i.arg & 4 else ()
    kwdefaults = f.pop() if i.arg & 2 else None
    defaults = f.pop() if i.arg & 1 else None
    function = types.FunctionType(code, f.globals, code.co_name, defaults, closure)
    function.__kwdefaults__ = kwdefaults
    if annotations:
        names = iter(annotations)
        function.__annotations__ = dict(zip(names, names, strict=True))
    f.push(f.shadow_state.create(function))


@handles("LOAD_BUILD_CLASS")
def _load_build_class(f: Frame, i: Instruction) -> None:
    raise Break("a class is defined; define it outside of compiled code")


@handles("LOAD_ASSERTION_ERROR")
def load_assertion_error(f: Frame, i: Instruction) -> None:
    f.push(AssertionError)


@handles("IMPORT_NAME")
def import_name(f: Frame, i: Instruction) -> None:
    names = f.pop()
    level = f.pop()
    f.push(_imported(f, f.code.co_names[i.arg], names, level))


@handles("IMPORT_FROM")
def import_from(f: Frame, i: Instruction) -> None:
    f.push(objects.load_attr(f, f.top(), f.code.co_names[i.arg]))


def _imported(f: Frame, name: str, names: Any, level: int) -> Any:
    """What an import statement gives: modules that are there already, or ours."""
    if level:
        package = f.globals.get("__package__") or f.globals.get("__name__", "").rpartition(".")[0]
        name = "." * level + name
    else:
        package = None
    full = importlib.util.resolve_name(name, package) if level else name
    module = module_attributes.imported(full)
    if names:
        for n in names:
            if not hasattr(module, n):
                try:
                    importlib.import_module(f"{full}.{n}")
                except ImportError:
                    pass
        return module
    return sys.modules[full.partition(".")[0]] if not level else module
