"""How objects behave: attributes, operators, truth, iteration, items, as CPython defines them.

Methods written in Python are followed; what C defines on plain values runs directly.
"""

from __future__ import annotations

import collections
import contextvars
import functools
import operator
import threading
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._ir.enumerations import Access, CheckKind
from flambeau._trace.run_numbers import RunNumber

from . import c_code, kinds, module_attributes
from .errors import Break, Raised
from .frames import sequence_frame
from .interpreter import Frame, Generator
from .kinds import DELETED, UNSET, mro_lookup
from .shadow_state import is_key
from .sources import Source
from .state import Entries, LacksSlot

_FUNCTION_TYPES = (types.FunctionType,)
_PLAIN = kinds.PLAIN_TYPES


def special(f: Frame, value: Any, name: str) -> Any:
    """A special method, bound; looked up on the class alone. UNSET when there is none."""
    cls = type(value)
    found, owner = mro_lookup(cls, name)
    if found is UNSET or found is None:
        return UNSET
    return bind(f, found, owner, value, cls, name)


def python_special(value: Any, name: str) -> bool:
    """Whether a special method of the value's class is written in Python."""
    if kinds.is_plain(value):
        return False
    found, _ = mro_lookup(type(value), name)
    return isinstance(found, _FUNCTION_TYPES)


def class_place(f: Frame, owner: type, name: str) -> Source | None:
    """Where an entry of a class is guarded; None for classes of libraries."""
    if kinds.library_class(owner) or f.shadow_state.is_created(owner):
        return None
    source = f.shadow_state.source_of(owner)
    return source.instance().child(Access.Dict, name, f"{owner.__qualname__}.{name}")


def bind(f: Frame, found: Any, owner: type | None, value: Any, cls: type, name: str) -> Any:
    """The descriptor protocol for something found in class `owner`, read through `value`."""
    assert owner is not None
    found = kinds.written(found, owner, name)
    f.shadow_state.in_classes(cls, name, owner)
    source = class_place(f, owner, name)
    kind = type(found)
    if kind is types.FunctionType:
        if source is not None:
            f.shadow_state.wrap(found, source)
        return found if value is UNSET else types.MethodType(found, value)
    if kind is staticmethod or kind is classmethod:
        inner = found.__func__
        if source is not None:
            source.is_object(found)
        if kind is staticmethod:
            return inner
        if isinstance(inner, types.FunctionType):
            return types.MethodType(inner, cls)
        return inner.__get__(value, cls)
    if kind is property or _is_property(kind):
        if source is not None:
            source.is_object(found)
        if value is UNSET:
            return found
        if found.fget is None:
            raise Raised(
                AttributeError(f"property '{name}' of '{cls.__name__}' object has no getter")
            )
        return f.call(found.fget, [value], {})
    if kind is types.BuiltinFunctionType:
        return found
    if kind is kinds.CACHED:
        if source is not None:
            source.is_object(found)
        return found if value is UNSET else types.MethodType(found, value)
    if kind in kinds.METHOD_WRAPPERS:
        return found.__get__(None if value is UNSET else value, cls)
    if kind in _C_ATTRIBUTES:
        if value is UNSET:
            return found
        return c_attribute(f, found, value, name)
    getter, getter_owner = mro_lookup(kind, "__get__")
    if getter is not UNSET:
        if not isinstance(getter, types.FunctionType):
            raise Break(f"the descriptor {kinds.describe(kind)} is not followed")
        if source is not None:
            found = f.shadow_state.wrap(found, source)
        return f.call(getter, [found, None if value is UNSET else value, cls], {})
    if source is not None:
        return f.shadow_state.wrap(found, source)
    if type(found) in kinds.CONSTANT_TYPES or isinstance(found, type):
        return found
    source = (
        f.shadow_state.source_of(owner)
        .instance()
        .child(Access.Dict, name, f"{owner.__qualname__}.{name}")
    )
    return f.shadow_state.wrap(found, source)


def _is_property(kind: type) -> bool:
    """Whether a class of descriptors reads as `property` does."""
    return issubclass(kind, property) and mro_lookup(kind, "__get__")[1] is property


_C_ATTRIBUTES = (
    types.MemberDescriptorType,
    types.GetSetDescriptorType,
    type(collections.namedtuple("_N", "x").x),  # type: ignore[attr-defined]
)


def c_attribute(f: Frame, descriptor: Any, value: Any, name: str) -> Any:
    """A slot or a computed attribute defined by C."""
    shadow_state = f.shadow_state
    if name == "__dict__":
        return instance_dict(f, value)
    if name == "__class__":
        return type(value)
    if kinds.is_plain(value) or shadow_state.is_created(value) or isinstance(value, tuple):
        return f.interpreter.direct(descriptor.__get__, value, type(value))
    slots = shadow_state.slots_of(value)
    slots.touched.add(descriptor)
    stored = slots.written.get(descriptor, UNSET)
    if stored is not UNSET:
        if stored is DELETED:
            raise Raised(AttributeError(name))
        return stored
    original = shadow_state.original(value)
    if original is not value and not kinds.is_slot(descriptor):
        return f.interpreter.direct(descriptor.__get__, value, type(value))
    try:
        found = f.interpreter.direct(descriptor.__get__, original, type(value))
    except Raised as raised:
        if not kinds.is_slot(descriptor) or not isinstance(raised.error, AttributeError):
            words = f"the attribute {name} of {kinds.describe(value)} is not set"
            raise Break(words) from None
        source = shadow_state.source_of(value)
        source.check(CheckKind.Truth, LacksSlot(descriptor), f"{source.name}.{name} is not set")
        raise
    return shadow_state.wrap(found, shadow_state.source_of(value).attribute(name))


def instance_dict(f: Frame, value: Any) -> Any:
    """`value.__dict__`"""
    shadow_state = f.shadow_state
    if isinstance(value, (type, types.ModuleType)) or kinds.is_tensor(value):
        raise Break(f"__dict__ of {kinds.describe(value)} is read")
    store = shadow_state.store(value)
    if store is None:
        raise Raised(AttributeError(f"{type(value).__name__!r} object has no attribute '__dict__'"))
    found = store.all()
    if shadow_state.is_created(value) or id(value) not in shadow_state.origin:
        shadow_state.holders[id(found)] = value
    return found


# Attributes ---------------------------------------------------------------------------------------


def load_attr(f: Frame, value: Any, name: str) -> Any:
    cls = type(value)
    if cls in _PLAIN and not cls.__dictoffset__:
        return _plain_attr(f, value, name)
    if kinds.is_tensor(value):
        return f.interpreter.tensors.attribute(f, value, name)
    if isinstance(value, types.ModuleType):
        if module_attributes.are_plain(value, cls, name):
            return module_attributes.read(f, value, name)
        if module_attributes.is_method(f, value, cls, name):
            return bind(f, *mro_lookup(cls, name), value, cls, name)
        if module_attributes.are_loaded(cls, name):
            getter = bind(f, *mro_lookup(cls, "__getattr__"), value, cls, "__getattr__")
            return module_attributes.load(f, value, getter, name)
    if cls is super:
        return super_attr(f, value, name)
    if isinstance(value, type):
        return type_attr(f, value, name)
    if cls is types.CellType and name == "cell_contents":
        found = f.shadow_state.read_cell(value)
        if found is UNSET:
            raise Raised(ValueError("cell is empty"))
        return found
    if cls is types.MethodType and name not in ("__self__", "__func__", "__call__"):
        return load_attr(f, value.__func__, name)
    if (
        cls is Generator
        or isinstance(value, (np.generic, np.dtype, BaseException))
        or cls in _DIRECT
    ):
        if isinstance(value, BaseException) and not kinds.library_class(cls):
            return instance_attr(f, value, cls, name)
        return _plain_attr(f, value, name)
    return instance_attr(f, value, cls, name)


def _plain_attr(f: Frame, value: Any, name: str) -> Any:
    value = c_code.specialised(f, value) if f.interpreter.tensors.is_symbol(value) else value
    return f.interpreter.direct(getattr, value, name)


_DIRECT = (
    types.MethodType,
    types.MethodWrapperType,
    types.BuiltinFunctionType,
    *kinds.METHOD_WRAPPERS,
    types.CellType,
)


def load_attr_or(f: Frame, value: Any, name: str, default: Any) -> Any:
    """The attribute, or the default where reading it raises AttributeError."""
    try:
        return load_attr(f, value, name)
    except Raised as raised:
        if isinstance(raised.error, AttributeError):
            return default
        raise


def type_attr(f: Frame, cls: type, name: str) -> Any:
    meta = type(cls)
    on_meta, meta_owner = mro_lookup(meta, name)
    if on_meta is not UNSET and mro_lookup(type(on_meta), "__set__")[0] is not UNSET:
        if kinds.library_class(meta_owner):  # type: ignore[arg-type]
            return f.interpreter.direct(getattr, cls, name)
        return bind(f, on_meta, meta_owner, cls, meta, name)
    found, owner = mro_lookup(cls, name)
    if found is not UNSET:
        return bind(f, found, owner, UNSET, cls, name)
    if on_meta is not UNSET:
        return bind(f, on_meta, meta_owner, cls, meta, name)
    if kinds.library_class(cls):
        return f.interpreter.direct(getattr, cls, name)
    getter, owner = mro_lookup(meta, "__getattr__")
    if getter is not UNSET and not kinds.library_class(meta):
        return f.call(getter, [cls, name], {})
    raise Raised(AttributeError(f"type object '{cls.__name__}' has no attribute '{name}'"))


def super_attr(f: Frame, proxy: Any, name: str) -> Any:
    if name == "__class__":
        return super
    value, after = proxy.__self__, proxy.__thisclass__
    cls = proxy.__self_class__
    mro = cls.__mro__
    for owner in mro[mro.index(after) + 1 :]:
        if name in owner.__dict__:
            found = owner.__dict__[name]
            return bind(f, found, owner, UNSET if value is cls else value, cls, name)
    raise Raised(AttributeError(f"'super' object has no attribute '{name}'"))


def instance_attr(f: Frame, value: Any, cls: type, name: str) -> Any:
    lookup, owner = mro_lookup(cls, "__getattribute__")
    followed = isinstance(lookup, types.FunctionType)
    if not followed and owner not in _GENERIC:
        raise Break(f"attributes of {kinds.describe(value)} are computed by C code")
    try:
        if followed:
            return f.call(special(f, value, "__getattribute__"), [name], {})
        return generic_attr(f, value, cls, name)
    except Raised as raised:
        if not isinstance(raised.error, AttributeError):
            raise
        fallback, owner = mro_lookup(cls, "__getattr__")
        if fallback is UNSET:
            raise
        if not isinstance(fallback, types.FunctionType):
            raise Break(f"attributes of {kinds.describe(value)} are computed by C code") from None
        return f.call(special(f, value, "__getattr__"), [name], {})


#: classes whose `__getattribute__` is the ordinary one
_GENERIC = frozenset(
    (
        object,
        BaseException,
        types.FunctionType,
        types.SimpleNamespace,
        contextvars.ContextVar,
        functools.partial,
        threading.local,
        tuple,
        list,
        dict,
        set,
        frozenset,
        int,
        float,
        str,
    )
)


def generic_attr(f: Frame, value: Any, cls: type, name: str) -> Any:
    """object.__getattribute__"""
    if name == "__dict__" and isinstance(value, threading.local):
        return instance_dict(f, value)
    found, owner = mro_lookup(cls, name)
    if found is not UNSET and kinds.is_data_descriptor(found):
        return bind(f, found, owner, value, cls, name)
    store = f.shadow_state.store(value)
    if store is not None:
        stored = store.get(name)
        if stored is not UNSET:
            return stored
    if found is not UNSET:
        return bind(f, found, owner, value, cls, name)
    raise Raised(AttributeError(f"'{cls.__name__}' object has no attribute '{name}'"))


def store_attr(f: Frame, target: Any, name: str, value: Any) -> None:
    cls = type(target)
    if kinds.is_tensor(target):
        f.interpreter.tensors.store_attribute(f, target, name, value)
        return
    if isinstance(target, types.ModuleType) and module_attributes.are_written(cls, name):
        f.shadow_state.write_global(target.__dict__, name, value)
        return
    if isinstance(target, type):
        raise Break(f"an attribute of the class {target.__qualname__} is set")
    if cls is types.CellType and name == "cell_contents":
        f.shadow_state.write_cell(target, value)
        return
    setter, owner = mro_lookup(cls, "__setattr__")
    if isinstance(setter, types.FunctionType):
        f.call(special(f, target, "__setattr__"), [name, value], {})
    elif setter in _SETTERS or kinds.is_plain(target):
        generic_store(f, target, cls, name, value)
    else:
        raise Break(f"attributes of {kinds.describe(target)} are set by C code")


#: what setting and deleting attributes ordinarily is
_SETTERS: tuple[Any, ...] = (
    object.__setattr__,
    BaseException.__setattr__,
    functools.partial.__setattr__,
    threading.local.__setattr__,
    types.FunctionType.__setattr__,
    types.SimpleNamespace.__setattr__,
)
_DELETERS: tuple[Any, ...] = (
    object.__delattr__,
    BaseException.__delattr__,
    functools.partial.__delattr__,
    threading.local.__delattr__,
    types.FunctionType.__delattr__,
    types.SimpleNamespace.__delattr__,
)


def generic_store(f: Frame, target: Any, cls: type, name: str, value: Any) -> None:
    """object.__setattr__"""
    found, owner = mro_lookup(cls, name)
    if found is not UNSET and kinds.is_data_descriptor(found):
        _store_through(f, found, owner, target, name, value)
        return
    store = f.shadow_state.store(target)
    if store is None:
        words = "is read-only" if found is not UNSET else "does not exist"
        if cls in _PLAIN or f.shadow_state.is_created(target):
            f.interpreter.direct(object.__setattr__, target, name, value)
            return
        raise Break(f"the attribute {name} of {kinds.describe(target)} {words}")
    store.set(name, value)


def _store_through(f: Frame, found: Any, owner: Any, target: Any, name: str, value: Any) -> None:
    """A data descriptor of the class is set, or deleted by DELETED."""
    shadow_state, deletes = f.shadow_state, value is DELETED
    cls = type(target)
    kind = type(found)
    if kind is property:
        source = class_place(f, owner, name)
        if source is not None:
            source.is_object(found)
        function = found.fdel if deletes else found.fset
        if function is None:
            word = "deleter" if deletes else "setter"
            raise Raised(
                AttributeError(f"property {name!r} of {cls.__name__!r} object has no {word}")
            )
        f.call(function, [target] if deletes else [target, value], {})
        return
    if name == "__dict__" and kind is types.GetSetDescriptorType and not deletes:
        replace_dict(f, target, value)
        return
    if kind in _C_ATTRIBUTES:
        if (
            shadow_state.is_created(target)
            or shadow_state.holds_itself(target)
            and not kinds.is_slot(found)
        ):
            function = kind.__delete__ if deletes else kind.__set__
            f.interpreter.direct(function, found, target, *(() if deletes else (value,)))
            return
        if not kinds.is_slot(found):
            raise Break(f"the attribute {name} of {kinds.describe(target)} is set")
        slots = shadow_state.slots_of(target)
        slots.touched.add(found)
        if deletes:
            c_attribute(f, found, target, name)  # guarded, and an error if it is gone already
        slots.written[found] = value
        return
    method, _ = mro_lookup(kind, "__delete__" if deletes else "__set__")
    if method is UNSET:
        word = "__delete__" if deletes else "__set__"
        raise Raised(AttributeError(word))
    if not isinstance(method, types.FunctionType):
        raise Break(f"the descriptor {kinds.describe(kind)} is not followed")
    source = class_place(f, owner, name)
    if source is not None:
        f.shadow_state.wrap(found, source)
    f.call(method, [found, target] if deletes else [found, target, value], {})


def replace_dict(f: Frame, target: Any, value: Any) -> None:
    """`target.__dict__ = value`"""
    shadow_state = f.shadow_state
    if type(value) is not dict:
        if isinstance(value, dict):
            raise Break(f"__dict__ of {kinds.describe(target)} becomes a {type(value).__name__}")
        kind = type(value).__name__
        raise Raised(TypeError(f"__dict__ must be set to a dictionary, not a {kind!r}"))
    if shadow_state.holds_itself(target) and id(target) not in shadow_state.shadows:
        f.interpreter.direct(object.__setattr__, target, "__dict__", value)
    elif id(target) in shadow_state.shadows or isinstance(target, types.FunctionType):
        raise Break(f"__dict__ of {kinds.describe(target)} is replaced")
    else:
        shadow_state.store(target)  # which is guarded
        shadow_state.replaced[id(target)] = (target, value)


def delete_attr(f: Frame, target: Any, name: str) -> None:
    cls = type(target)
    if kinds.is_tensor(target):
        f.interpreter.tensors.delete_attribute(f, target, name)
        return
    if isinstance(target, (type, types.ModuleType)) or cls in _PLAIN:
        raise Break(f"the attribute {name} of {kinds.describe(target)} is deleted")
    deleter, _ = mro_lookup(cls, "__delattr__")
    if isinstance(deleter, types.FunctionType):
        f.call(special(f, target, "__delattr__"), [name], {})
    elif deleter in _DELETERS:
        generic_delete(f, target, cls, name)
    else:
        raise Break(f"attributes of {kinds.describe(target)} are deleted by C code")


def generic_delete(f: Frame, target: Any, cls: type, name: str) -> None:
    """object.__delattr__"""
    found, owner = mro_lookup(cls, name)
    if found is not UNSET and kinds.is_data_descriptor(found):
        _store_through(f, found, owner, target, name, DELETED)
        return
    store = f.shadow_state.store(target)
    if store is None or not store.delete(name):
        raise Raised(AttributeError(f"{cls.__name__!r} object has no attribute {name!r}"))


# Operators ----------------------------------------------------------------------------------------

_BINARY: list[tuple[Callable[..., Any], str]] = [
    (operator.add, "add"),
    (operator.and_, "and"),
    (operator.floordiv, "floordiv"),
    (operator.lshift, "lshift"),
    (operator.matmul, "matmul"),
    (operator.mul, "mul"),
    (operator.mod, "mod"),
    (operator.or_, "or"),
    (operator.pow, "pow"),
    (operator.rshift, "rshift"),
    (operator.sub, "sub"),
    (operator.truediv, "truediv"),
    (operator.xor, "xor"),
]
_INPLACE = [getattr(operator, f"i{name}") for _, name in _BINARY]


def binary(f: Frame, op: int, a: Any, b: Any) -> Any:
    """`a op b`, or `a op= b` from 13 on."""
    inplace = op >= len(_BINARY)
    function, name = _BINARY[op - len(_BINARY) if inplace else op]
    if inplace:
        function = _INPLACE[op - len(_BINARY)]
        if python_special(a, f"__i{name}__"):
            result = f.call(special(f, a, f"__i{name}__"), [b], {})
            if result is not NotImplemented:
                return result
    return _two(f, function, f"__{name}__", f"__r{name}__", a, b)


def _two(f: Frame, function: Any, name: str, reflected: str, a: Any, b: Any) -> Any:
    for value, method, other in ((a, name, b), (b, reflected, a)):
        if kinds.is_tensor(value):
            replaced = f.interpreter.tensors.replaced(f, method)
            if type(replaced) is types.FunctionType:
                result = f.call(types.MethodType(replaced, value), [other], {})
                if result is not NotImplemented:
                    return result
            break
    left, right = python_special(a, name), python_special(b, reflected)
    if not (left or right):
        check_operand(f, a)
        check_operand(f, b)
        if function is operator.mod and type(a) is str:
            b = c_code.specialised(f, b)
        return c_code.operate(f, function, a, b)
    if right and type(a) is not type(b) and isinstance(b, type(a)):
        result = f.call(special(f, b, reflected), [a], {})
        if result is not NotImplemented:
            return result
        right = False
    if left:
        result = f.call(special(f, a, name), [b], {})
        if result is not NotImplemented:
            return result
    elif not kinds.is_plain(a) and mro_lookup(type(a), name)[0] is not UNSET:
        raise Break(f"{name} of {kinds.describe(a)} with {kinds.describe(b)}")
    elif kinds.is_plain(a) and not right:
        raise Break(f"{name} of {kinds.describe(a)} with {kinds.describe(b)}")
    if right and type(a) is not type(b):
        result = f.call(special(f, b, reflected), [a], {})
        if result is not NotImplemented:
            return result
    if function in (operator.eq, operator.ne):
        return (a is b) == (function is operator.eq)
    sign = name.strip("_")
    raise Raised(
        TypeError(
            f"unsupported operand type(s) for {sign}: '{type(a).__name__}' and '{type(b).__name__}'"
        )
    )


def check_operand(f: Frame, value: Any) -> None:
    """C code may look into this value: it must be one whose contents are guarded."""
    if not c_code.may_be_read(f, value):
        raise Break(f"an operation of C code on {kinds.describe(value)}")


def _of_large(f: Frame, container: Any, key: Any) -> Entries | None:
    """The entries of a container that is asked by key alone, for a key that can be guarded."""
    if type(container) is not dict or not f.shadow_state.by_key:
        return None
    entries = f.shadow_state.large(container)
    return entries if entries is not None and is_key(key) else None


def _check_container(f: Frame, value: Any) -> None:
    """The same where a mapping is asked by key: what it holds is not looked into."""
    if not (isinstance(value, dict) and c_code.may_be_read(f, value, 0)):
        check_operand(f, value)


def unary(f: Frame, function: Callable[..., Any], name: str, value: Any) -> Any:
    if kinds.is_tensor(value):
        replaced = f.interpreter.tensors.replaced(f, name)
        if type(replaced) is types.FunctionType:
            return f.call(types.MethodType(replaced, value), [], {})
    if python_special(value, name):
        return f.call(special(f, value, name), [], {})
    check_operand(f, value)
    return c_code.operate(f, function, value)


_COMPARISONS = {
    "<": (operator.lt, "__lt__", "__gt__"),
    "<=": (operator.le, "__le__", "__ge__"),
    "==": (operator.eq, "__eq__", "__eq__"),
    "!=": (operator.ne, "__ne__", "__ne__"),
    ">": (operator.gt, "__gt__", "__lt__"),
    ">=": (operator.ge, "__ge__", "__le__"),
}


def compare(f: Frame, sign: str, a: Any, b: Any) -> Any:
    function, name, reflected = _COMPARISONS[sign]
    if sign == "!=" and not python_special(a, "__ne__") and python_special(a, "__eq__"):
        result = f.call(special(f, a, "__eq__"), [b], {})
        return result if result is NotImplemented else not truth(f, result)
    return _two(f, function, name, reflected, a, b)


def same(f: Frame, a: Any, b: Any) -> bool:
    """`a is b` for wrapped values; two from outside that differ must do so in later calls."""
    if a is b:
        return True
    origin = f.shadow_state.origin
    one, other = origin.get(id(a)), origin.get(id(b))
    if one is not None and other is not None and type(a) is type(b):
        if not (one.is_identified() and other.is_identified()):
            f.shadow_state.sources.distinct += [one, other]
    return False


def truth(f: Frame, value: Any) -> bool:
    if value is True or value is False or value is None:
        return bool(value)
    cls = type(value)
    if kinds.is_tensor(value):
        return f.interpreter.tensors.truth(f, value)
    if cls is RunNumber:
        value = f.interpreter.tensors.decide(value)
    if cls in _PLAIN:
        if cls in kinds.STATEFUL:
            check_operand(f, value)
        f.shadow_state.refuse_large(value)
        return bool(value)
    for name in ("__bool__", "__len__"):
        found, _ = mro_lookup(cls, name)
        if found is not UNSET:
            if isinstance(found, types.FunctionType) and not f.interpreter.tensors.is_symbol(value):
                return truth(f, f.call(special(f, value, name), [], {}))
            check_operand(f, value)
            return bool(f.interpreter.direct(bool, value))
    return True


def contains(f: Frame, container: Any, value: Any) -> bool:
    if python_special(container, "__contains__"):
        return truth(f, f.call(special(f, container, "__contains__"), [value], {}))
    if not kinds.is_plain(container) and mro_lookup(type(container), "__contains__")[0] is UNSET:
        iterator = get_iter(f, container)
        while (item := next_of(f, iterator)) is not UNSET:
            if item is value or truth(f, compare(f, "==", item, value)):
                return True
        return False
    if (entries := _of_large(f, container, value)) is not None:
        return entries.has(value)
    _check_container(f, container)
    if type(container) in (list, tuple) and (
        kinds.is_tensor(value) or any(kinds.is_tensor(x) for x in container)
    ):
        return any(x is value or truth(f, compare(f, "==", x, value)) for x in container)
    return bool(f.interpreter.direct(operator.contains, container, value))


def get_item(f: Frame, container: Any, key: Any) -> Any:
    if type(container) in (list, tuple) and type(key) is int:
        try:
            return container[key]
        except IndexError as e:
            raise Raised(e) from None
    if python_special(container, "__getitem__"):
        return f.call(special(f, container, "__getitem__"), [key], {})
    if isinstance(container, type):
        return f.call(load_attr(f, container, "__class_getitem__"), [key], {})
    if (entries := _of_large(f, container, key)) is not None:
        found = entries.get(key)
        if found is UNSET:
            raise Raised(KeyError(key))
        return found
    _check_container(f, container)
    if type(container) in (list, tuple):
        key = f.interpreter.tensors.position(f, key)
    if isinstance(container, dict) and mro_lookup(type(container), "__missing__")[0] is not UNSET:
        return _missing_item(f, container, key)
    if kinds.is_tensor(container):
        key = f.interpreter.tensors.key(f, key)
    return f.interpreter.direct(operator.getitem, container, key)


def _missing_item(f: Frame, container: Any, key: Any) -> Any:
    if f.interpreter.direct(dict.__contains__, container, key):
        return f.interpreter.direct(dict.__getitem__, container, key)
    factory = getattr(container, "default_factory", None)
    if factory is not None:
        value = f.call(factory, [], {})
        f.interpreter.direct(operator.setitem, container, key, value)
        return value
    if python_special(container, "__missing__"):
        return f.call(special(f, container, "__missing__"), [key], {})
    return f.interpreter.direct(operator.getitem, container, key)


def set_item(f: Frame, container: Any, key: Any, value: Any) -> None:
    if python_special(container, "__setitem__"):
        f.call(special(f, container, "__setitem__"), [key, value], {})
        return
    if (entries := _of_large(f, container, key)) is not None:
        entries.set(key, value)
        return
    _check_container(f, container)
    if kinds.is_tensor(container):
        key = f.interpreter.tensors.key(f, key)
        value = f.interpreter.tensors.beside(f, [container, value])[1]
    f.interpreter.direct(operator.setitem, container, key, value)


def del_item(f: Frame, container: Any, key: Any) -> None:
    if python_special(container, "__delitem__"):
        f.call(special(f, container, "__delitem__"), [key], {})
        return
    if (entries := _of_large(f, container, key)) is not None:
        if not entries.delete(key):
            raise Raised(KeyError(key))
        return
    _check_container(f, container)
    f.interpreter.direct(operator.delitem, container, key)


# Iteration ----------------------------------------------------------------------------------------


def get_iter(f: Frame, value: Any) -> Any:
    if type(value) is Generator or type(value) in c_code.ITERATORS:
        return value
    if kinds.is_plain(value):
        check_operand(f, value)
        return f.interpreter.direct(iter, value)
    method, _ = mro_lookup(type(value), "__iter__")
    if isinstance(method, types.FunctionType):
        return f.call(special(f, value, "__iter__"), [], {})
    if method is UNSET and python_special(value, "__getitem__"):
        return Generator(sequence_frame(f, value))
    check_operand(f, value)
    return f.interpreter.direct(iter, value)


def next_of(f: Frame, iterator: Any) -> Any:
    """The next element; UNSET at the end."""
    if type(iterator) is Generator:
        try:
            return iterator.__next__()
        except StopIteration:
            return UNSET
    try:
        if python_special(iterator, "__next__"):
            return f.call(special(f, iterator, "__next__"), [], {})
        check_operand(f, iterator)
        return f.interpreter.direct(next, iterator)
    except Raised as raised:
        if isinstance(raised.error, StopIteration):
            return UNSET
        raise


def iterable(f: Frame, value: Any) -> Any:
    """The value, or an iterator over it, that C code may consume."""
    if kinds.is_plain(value) or type(value) is Generator:
        check_operand(f, value)
        return value
    iterator = get_iter(f, value)
    if python_special(iterator, "__next__") and type(iterator) is not Generator:
        items = []
        while (item := next_of(f, iterator)) is not UNSET:
            items.append(item)
        return items
    return iterator


def mapping(f: Frame, value: Any) -> dict[Any, Any]:
    """What `**value` gives."""
    if isinstance(value, dict) and not python_special(value, "keys"):
        check_operand(f, value)
        return dict(value)
    keys = f.call(load_attr(f, value, "keys"), [], {})
    iterator = get_iter(f, keys)
    out = {}
    while (key := next_of(f, iterator)) is not UNSET:
        out[key] = get_item(f, value, key)
    return out
