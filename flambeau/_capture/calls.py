"""Calling things: functions of the program are followed, classes instantiated, C code that only
works on its arguments runs directly, everything else ends the graph.
"""

from __future__ import annotations

import builtins
import collections
import enum
import functools
import inspect
import operator
import re
import sys
import types
from typing import Any

import numpy as np

import flambeau
from flambeau import _C
from flambeau._dynamo import config as switches
from flambeau._ir.own import own_module
from flambeau.compiler import _wrappers
from flambeau.utils._contextlib import context_decorator

from . import arrays, kinds, objects
from .c_code import GETTERS, ITERATORS, MODES, may_be_read, operate, specialised
from .errors import Break, Raised
from .frames import frame_of
from .interpreter import Followed, Frame, Generator, TensorMethod
from .kinds import UNSET, mro_lookup

#: builtin callable -> function(frame, args, kwargs); filled by `builtin_calls`
SPECIAL: dict[Any, Any] = {}
#: code of a function of a library -> function(frame, callable, args, kwargs)
BY_CODE: dict[types.CodeType, Any] = {}
#: class of a callable -> function(frame, callable, args, kwargs)
BY_KIND: dict[type, Any] = {}
#: functions that users allowed in graphs, and those whose results they said are constants
ALLOWED: set[Any] = set()
CONSTANT: set[Any] = set()

_PURE_MODULES = ("math", "_operator", "itertools", "_functools", "_heapq", "_bisect")
_PURE = frozenset(
    getattr(builtins, n)
    for n in (
        "abs all any ascii bin bool bytes chr complex dict divmod enumerate filter float format "
        "frozenset hash hex int iter len list map max min next oct ord pow range repr reversed "
        "round set slice sorted str sum tuple zip object property staticmethod classmethod"
    ).split()
)
_GENERATOR, _OTHER_SUSPENDED = (
    inspect.CO_GENERATOR,
    inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR,
)


def call(f: Frame, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """`function(*args, **kwargs)`"""
    kind = type(function)
    if switches.ignore_logger_methods and _is_ignored(function):
        return None
    if kind is types.MethodType:
        if type(function.__self__) is Generator:
            return resume_generator(function, args, kwargs)
        return call(f, function.__func__, [function.__self__, *args], kwargs)
    if kind is types.FunctionType:
        return call_function(f, function, args, kwargs)
    if kind is functools.partial:
        return call_partial(f, function, args, kwargs)
    hands_on, f.hands_on = f.hands_on, False  # C code and what has a meaning of its own come first
    special = _special(function)
    if special is not None:
        return special(f, args, kwargs)
    if kind is types.BuiltinFunctionType or kind is types.MethodWrapperType:
        return call_builtin(f, function, args, kwargs)
    if isinstance(function, type):
        return instantiate(f, function, args, kwargs)
    if kind in kinds.METHOD_WRAPPERS:
        return call_descriptor(f, function, args, kwargs)
    if kind is TensorMethod:
        return f.interpreter.tensors.call(f, function, args, kwargs)
    if kind is Followed:
        return call(f, function.function, args, kwargs)
    if kind in GETTERS:
        return call_getter(f, function, args, kwargs)
    if isinstance(function, _C._ScriptCall):  # the Python that it is made of
        return call(f, function.as_python, args, kwargs)
    if isinstance(function, _C._ScriptFace):
        return call(f, function._call, args, kwargs)
    by_kind = BY_KIND.get(kind)
    if by_kind is not None:
        return by_kind(f, function, args, kwargs)
    if kind is kinds.CACHED:  # what it computes from is followed, so each graph does it itself
        return call(f, objects.load_attr(f, function, "__wrapped__"), args, kwargs)
    if kind in MODES:
        return call(f, context_decorator, [function, *args], kwargs)
    method = objects.special(f, function, "__call__")
    if method is UNSET:
        raise Raised(TypeError(f"'{kind.__name__}' object is not callable"))
    if not isinstance(method, types.MethodType):
        raise Break(f"a call of {kinds.describe(function)}, which is not followed")
    f.hands_on = hands_on
    return call(f, method, args, kwargs)


def _is_ignored(function: Any) -> bool:
    """Whether calls are left out, see `_dynamo.config.ignore_logger_methods`."""
    ignored = switches.ignore_logger_methods
    inner = function.__func__ if type(function) is types.MethodType else function
    is_code = type(inner) is types.FunctionType
    return is_code and any(
        i is inner or (type(i) is types.MethodType and i.__func__ is inner) for i in ignored
    )


def resume_generator(method: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """`g.send(...)` and its like, on a generator of the program."""
    try:
        return method(*args, **kwargs)
    except (StopIteration, TypeError) as e:
        raise Raised(e) from None


def call_getter(f: Frame, getter: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """A call of `operator.itemgetter(...)` and its like."""
    made = getter.__reduce__()
    if type(getter) is operator.itemgetter:
        found = [objects.get_item(f, args[0], key) for key in made[1]]
    elif type(getter) is operator.attrgetter:
        found = []
        for path in made[1]:
            value = args[0]
            for name in path.split("."):
                value = objects.load_attr(f, value, name)
            found.append(value)
    else:
        return call_method(f, getter, args[0])
    return found[0] if len(found) == 1 else tuple(found)


def call_method(f: Frame, caller: Any, value: Any) -> Any:
    """A call of `operator.methodcaller(...)`."""
    make, made = caller.__reduce__()
    keywords = make.keywords if isinstance(make, functools.partial) else {}
    name, *rest = (*make.args, *made) if isinstance(make, functools.partial) else made
    return call(f, objects.load_attr(f, value, name), rest, keywords)


def _special(function: Any) -> Any:
    try:
        return SPECIAL.get(function)
    except TypeError:  # not hashable
        return None


def substitute(original: Any, traceable: types.FunctionType, folds: bool) -> Any:
    """How calls of `original` are taken that `traceable` says in Python."""

    def call_substitute(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
        given = (*args, *kwargs.values())
        if folds and all(type(a) in kinds.CONSTANT_TYPES for a in given):
            return f.interpreter.direct(original, *args, **kwargs)
        return follow(f, traceable, args, kwargs)

    return call_substitute


# Functions of Python ------------------------------------------------------------------------------


def call_function(
    f: Frame, function: types.FunctionType, args: list[Any], kwargs: dict[str, Any]
) -> Any:
    special = SPECIAL.get(function)
    if special is not None:
        f.hands_on = False
        return special(f, args, kwargs)
    by_code = BY_CODE.get(function.__code__)
    if by_code is not None:
        f.hands_on = False
        return by_code(f, function, args, kwargs)
    return follow(f, function, args, kwargs)


def follow(f: Frame, function: types.FunctionType, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """A call of a function that has no other meaning than its code."""
    if function.__code__.co_filename != arrays.__file__:
        return _follow(f, function, args, kwargs)
    f.hands_on = False
    try:  # what NumPy makes of such arguments, NumPy shall say
        return _follow(f, function, args, kwargs)
    except Raised as e:
        raise Break(f"NumPy: {function.__name__} raises {e.error}") from None


def _follow(f: Frame, function: types.FunctionType, args: list[Any], kwargs: dict[str, Any]) -> Any:
    reason = _wrappers.reason_of_disabled(function)
    if reason is not None:
        words = "" if reason == "disabled" else f": {reason}"
        raise Break(f"{kinds.describe(function)} is disabled{words}")
    inner = _wrappers.compiled_model(function)
    if inner is not function:
        return call(f, inner, args, kwargs)
    if function in ALLOWED:
        return f.interpreter.vouched(function, args, kwargs)
    if function in CONSTANT:
        return _constant_result(f, function, args, kwargs)
    if kinds.runs_directly(function) and not any(
        isinstance(a, (types.FunctionType, types.MethodType)) for a in args
    ):
        args = f.interpreter.tensors.decided_of(args)
        kwargs = dict(zip(kwargs, f.interpreter.tensors.decided_of(kwargs.values()), strict=True))
        _guard_names(f, function)
        return f.interpreter.direct(function, *args, **kwargs)
    hands_on, f.hands_on = f.hands_on, False
    frame = frame_of(f, function, args, kwargs)
    flags = function.__code__.co_flags
    if flags & _GENERATOR:
        return Generator(frame)
    if flags & _OTHER_SUSPENDED:
        raise Break(f"{kinds.describe(function)} is a coroutine")
    if hands_on:
        frame.result_of = f
    return frame.run()


def _constant_result(
    f: Frame, function: types.FunctionType, args: list[Any], kwargs: dict[str, Any]
) -> Any:
    """What a function gives now, see `assume_constant_result`."""
    given, named = specialised(f, args), specialised(f, kwargs)
    if any(map(kinds.is_tensor, (*given, *named.values()))):
        raise Break(f"{kinds.describe(function)}, of constant result, is given a tensor")
    tensors = f.interpreter.tensors
    made = tensors.session.outside(lambda: function(*given, **named))
    if kinds.is_tensor(made):
        return tensors.session.attach(made)
    if type(made) in (list, dict, set):
        return f.shadow_state.create(made)
    if type(made) in kinds.CONSTANT_TYPES or type(made) in (tuple, flambeau.Size):
        return made
    raise Break(f"{kinds.describe(function)}, of constant result, gives {kinds.describe(made)}")


def _guard_names(f: Frame, function: types.FunctionType) -> None:
    """What a library function looks up by itself, in its module and in those that it names."""
    names = function.__code__.co_names
    homes = [function.__globals__]
    homes += [vars(sys.modules[n]) for n in names if own_module(n) and n in sys.modules]
    for home in homes:
        for name in names:
            value = home.get(name, UNSET)
            if isinstance(value, types.ModuleType) and own_module(value.__name__) is not None:
                for attribute in names:
                    if attribute in vars(value):
                        found = vars(value)[attribute]
                        f.shadow_state.sources.in_namespace(vars(value), attribute, found)
            if isinstance(value, types.FunctionType | types.BuiltinFunctionType):
                f.shadow_state.sources.in_namespace(home, name, value)


def call_partial(f: Frame, value: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    if f.shadow_state.is_created(value):
        return call(f, value.func, [*value.args, *args], {**value.keywords, **kwargs})
    source = f.shadow_state.source_of(value)
    function, bound, keywords = (
        f.shadow_state.wrap(getattr(value, n), source.attribute(n))
        for n in ("func", "args", "keywords")
    )
    return call(f, function, [*bound, *args], {**keywords, **kwargs})


# C code -------------------------------------------------------------------------------------------


#: C code that calls what it is given; elsewhere a callable is a value like others
CALLERS: set[Any] = set(ITERATORS) | {
    map,
    filter,
    sorted,
    iter,
    functools.reduce,
    functools.cmp_to_key,
}


def prepared(f: Frame, value: Any) -> Any:
    """An argument for C code: functions of the program become callables that are followed."""
    if isinstance(value, types.FunctionType):
        return value if kinds.runs_directly(value) else Followed(f, value)
    if isinstance(value, types.MethodType) and isinstance(value.__func__, types.FunctionType):
        return Followed(f, value)
    if isinstance(value, (functools.partial, *GETTERS)):
        return Followed(f, value)
    if isinstance(value, types.BuiltinFunctionType) and _special(value) is not None:
        return Followed(f, value)  # getattr and its like must not look at objects by themselves
    return value


def run_c(f: Frame, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Runs C code on values that it may read."""
    for value in (*args, *kwargs.values()):
        if not may_be_read(f, value):
            raise Break(f"a call of {kinds.describe(function)} with {kinds.describe(value)}")
    if function in CALLERS:
        args = [prepared(f, a) for a in args]
        kwargs = {k: prepared(f, v) for k, v in kwargs.items()}
    if function in _SYMBOLIC and not kwargs:
        return operate(f, function, *args)
    return f.interpreter.direct(function, *args, **kwargs)


def call_builtin(f: Frame, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    owner = getattr(function, "__self__", None)
    if owner is None or isinstance(owner, types.ModuleType):
        module = getattr(function, "__module__", None) or ""
        if own_module(module) is not None:
            return f.interpreter.tensors.call(f, function, args, kwargs)
        if module in _PURE_MODULES or function in _PURE:
            return run_c(f, function, specialised_for(f, function, args), kwargs)
        raise Break(f"a call of {kinds.describe(function)}")
    if isinstance(owner, MODES):
        _guard_mode(f, owner)
        return f.interpreter.direct(function, *args, **kwargs)
    if kinds.is_tensor(owner):
        return f.interpreter.tensors.call(f, function, args, kwargs)
    name = function.__name__
    if isinstance(owner, type):
        if name == "__new__":
            return new_object(f, owner, args, kwargs)
        of_classes = SPECIAL.get(type.__dict__.get(name))
        if of_classes is not None and type.__dict__[name].__get__(owner) == function:
            return of_classes(f, [owner, *args], kwargs)
        if owner in kinds.PLAIN_TYPES or owner is object or kinds.library_class(owner):
            return run_c(f, function, args, kwargs)
        raise Break(f"a call of {kinds.describe(function)}")
    if type(function) is types.MethodWrapperType:
        descriptor = function.__objclass__.__dict__[name]
    else:  # not getattr: a subclass may have one of its own
        held: Any = (b.__dict__.get(name) for b in type(owner).__mro__)
        descriptor = next(
            (
                d
                for d in held
                if type(d) in kinds.METHOD_WRAPPERS and d.__get__(owner, type(owner)) == function
            ),
            None,
        )
    if type(descriptor) in kinds.METHOD_WRAPPERS:
        return call_descriptor(f, descriptor, [owner, *args], kwargs)
    if kinds.is_plain(owner):
        if type(owner) is re.Pattern:
            args = [prepared(f, a) for a in specialised(f, args)]
        return run_c(f, function, args, kwargs)
    raise Break(f"a call of {kinds.describe(function)}")


def _guard_mode(f: Frame, context: Any) -> None:
    """Leaving a context that was entered before depends on what it found then."""
    if f.shadow_state.is_created(context):
        return
    if isinstance(context, flambeau.inference_mode):
        raise Break("a context of inference_mode that was entered before is used")
    f.shadow_state.wrap(context.prev, f.shadow_state.source_of(context).attribute("prev"))


def call_descriptor(f: Frame, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """An unbound method of C: `str.join`, `object.__setattr__`, `Tensor.add`."""
    special = _special(function)
    if special is not None:
        return special(f, args, kwargs)
    owner = function.__objclass__
    if owner is types.FunctionType and function.__name__ == "__get__" and len(args) > 1:
        return args[0] if args[1] is None else types.MethodType(args[0], args[1])
    if owner in MODES and args and isinstance(args[0], MODES):
        _guard_mode(f, args[0])
        return f.interpreter.direct(function, *args, **kwargs)
    if kinds.is_tensor(args[0]) if args else False:
        return f.interpreter.tensors.call(f, function, args, kwargs)
    if args and isinstance(args[0], np.generic) and issubclass(np.generic, owner):
        return run_c(f, function, args, kwargs)  # numbers do not change, and make arrays of none
    if owner in kinds.PLAIN_TYPES or owner in (object, type) or issubclass(owner, BaseException):
        subject = args[0] if args else None
        readable = not args or may_be_read(f, subject)
        if owner is dict and isinstance(subject, collections.OrderedDict):
            if function.__name__ in _WRITES_OF_DICT:
                raise Break(f"a call of {kinds.describe(function)} with an OrderedDict")
        if readable and owner is object and function.__name__ not in _OBJECT_METHODS:
            raise Break(f"a call of {kinds.describe(function)}")
        if readable:
            if owner in kinds.CONSTANT_TYPES:
                args = specialised(f, args)
            if function.__name__ in _CONSUMERS:
                args = [*args[:1], *_iterables(f, args[1:], owner)]
            return run_c(f, function, args, kwargs)
    raise Break(f"a call of {kinds.describe(function)}")


_OBJECT_METHODS = ("__init__", "__init_subclass__", "__eq__", "__ne__", "__hash__", "__repr__")


#: methods of dict that leave the order of an OrderedDict behind
_WRITES_OF_DICT = frozenset(
    "__delitem__ __init__ __ior__ __setitem__ clear pop popitem setdefault update".split()
)
#: methods that iterate over what they are given; others keep it, or compare it
_CONSUMERS = frozenset(
    "__init__ __new__ __iadd__ __ior__ difference difference_update extend extendleft fromkeys "
    "intersection intersection_update isdisjoint issubset issuperset join symmetric_difference "
    "symmetric_difference_update union update".split()
)


def _iterables(f: Frame, args: list[Any], owner: Any) -> list[Any]:
    """Objects of the program that iterate become iterators that C code can use; those that have
    keys become dicts for methods of dicts."""
    out = []
    for a in args:
        if not kinds.is_plain(a) and _has_python_iter(a):
            is_mapping = issubclass(owner, dict) and (
                objects.load_attr_or(f, a, "keys", UNSET) is not UNSET
            )
            a = objects.mapping(f, a) if is_mapping else objects.iterable(f, a)
        out.append(a)
    return out


_SYMBOLIC = frozenset((abs, min, max, sum, divmod, pow, round, list, tuple, zip, enumerate, len))


def specialised_for(f: Frame, function: Any, args: list[Any]) -> list[Any]:
    return args if function in _SYMBOLIC else specialised(f, args)


# Classes ------------------------------------------------------------------------------------------


def instantiate(f: Frame, cls: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    if cls in _PURE or cls in ITERATORS or cls in kinds.PLAIN_TYPES or cls is functools.partial:
        if cls is functools.partial and args:
            return f.shadow_state.create(functools.partial(args[0], *args[1:], **kwargs))
        args = [objects.iterable(f, a) if _has_python_iter(a) else a for a in args]
        args = specialised_for(f, cls, args)
        if cls is collections.defaultdict:  # keeps what it is given
            return f.interpreter.direct(cls, *args, **kwargs)
        return run_c(f, cls, args, kwargs)
    if cls in GETTERS:
        return run_c(f, cls, args, kwargs)
    if cls is types.MethodType:
        return f.interpreter.direct(cls, *args)
    if cls in MODES:
        if args and callable(args[0]):
            return call(f, context_decorator, [cls(), *args], kwargs)
        return f.shadow_state.create(f.interpreter.direct(cls, *args, **kwargs))
    if issubclass(cls, flambeau.nn.Parameter):
        raise Break("a parameter is made; make it, or the module it is part of, outside")
    if issubclass(cls, _C.Tensor):
        return f.interpreter.tensors.call(f, cls, args, kwargs)
    if isinstance(cls, enum.EnumMeta):
        return run_c(f, cls, args, kwargs)
    if issubclass(cls, np.generic):
        return run_c(f, cls, specialised(f, args), kwargs)
    meta_call, _ = mro_lookup(type(cls), "__call__")
    if isinstance(meta_call, types.FunctionType):
        return call(f, meta_call, [cls, *args], kwargs)
    return build(f, cls, args, kwargs)


def build(f: Frame, cls: type, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """type.__call__"""
    maker, owner = mro_lookup(cls, "__new__")
    f.shadow_state.in_classes(cls, "__new__", owner)
    if isinstance(maker, staticmethod):
        maker = maker.__func__
    if isinstance(maker, types.FunctionType):
        value = call(f, maker, [cls, *args], kwargs)
    else:
        value = new_object(f, owner, [cls, *args], kwargs)  # type: ignore[arg-type]
    if not isinstance(value, cls):
        return value
    start: Any
    start, owner = mro_lookup(type(value), "__init__")
    start = kinds.written(start, owner, "__init__")  # type: ignore[arg-type]
    f.shadow_state.in_classes(type(value), "__init__", owner)
    if isinstance(start, types.FunctionType):
        source = objects.class_place(f, owner, "__init__")  # type: ignore[arg-type]
        if source is not None:
            f.shadow_state.wrap(start, source)
        if call(f, start, [value, *args], kwargs) is not None:
            raise Raised(TypeError("__init__() should return None"))
    elif start is not object.__init__:
        f.interpreter.direct(start, value, *_iterables(f, args, cls), **kwargs)
    return value


def new_object(f: Frame, owner: type, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """`owner.__new__(cls, ...)` for a class whose memory C lays out."""
    cls, rest = args[0], args[1:]
    if owner is object:
        if rest or kwargs:
            has_init = mro_lookup(cls, "__init__")[0] is not object.__init__
            if not has_init:
                raise Raised(TypeError(f"{cls.__name__}() takes no arguments"))
        return f.shadow_state.create(f.interpreter.direct(object.__new__, cls))
    if owner is types.SimpleNamespace and not rest:
        made = f.shadow_state.create(owner.__new__(cls))
        made.__dict__.update(kwargs)
        return made
    if owner in kinds.PLAIN_TYPES or issubclass(owner, BaseException):
        rest = [objects.iterable(f, a) if _has_python_iter(a) else a for a in rest]
        value = run_c(f, owner.__new__, [cls, *specialised_for(f, owner, rest)], kwargs)
        return value if type(value) in kinds.PLAIN_TYPES else f.shadow_state.create(value)
    raise Break(f"an object of {kinds.describe(cls)} is made by C code")


def _has_python_iter(value: Any) -> bool:
    return objects.python_special(value, "__iter__") or (
        objects.python_special(value, "__getitem__")
        and mro_lookup(type(value), "__iter__")[0] is UNSET
    )
