"""Builtins that need to know what is followed: they ask for attributes, classes, iteration."""

from __future__ import annotations

import abc
import builtins
import collections
import functools
import importlib
import importlib.util
import operator
import sys
import threading
import types
import warnings
from collections.abc import Callable
from typing import Any

import flambeau
from flambeau import _C
from flambeau._ir.enumerations import CheckKind
from flambeau._trace.tensor import SymSize
from flambeau.compiler import _marks

from . import arrays, c_code, calls, kinds, module_attributes, objects
from .errors import Break, Raised
from .interpreter import Frame, Generator
from .kinds import UNSET, mro_lookup
from .shadow_state import is_key

Special = Callable[[Frame, list[Any], dict[str, Any]], Any]


def means(*functions: Any) -> Callable[[Special], Special]:
    """Files the meaning of builtins."""

    def file(special: Special) -> Special:
        for function in functions:
            calls.SPECIAL[function] = special
        return special

    return file


def _breaks(name: str) -> Special:
    def special(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
        raise Break(f"a call of {name}")

    return special


for _name in "print input open exec eval compile breakpoint globals locals dir __import__".split():
    means(getattr(builtins, _name))(_breaks(_name))


def class_of(f: Frame, value: Any) -> type:
    """`type(value)` as the program sees it."""
    if kinds.is_tensor(value):
        return f.interpreter.tensors.real_class(value)
    if f.interpreter.tensors.is_symbol(value):
        return f.interpreter.tensors.symbol_class(value)
    if type(value) is Generator:
        return types.GeneratorType
    if type(value) is SymSize:
        return flambeau.Size
    if type(value) is arrays.Array:
        return arrays.class_of(value)
    return type(value)


def _for_libraries(function: Any) -> None:
    """Libraries tell objects or threads apart by it, or end a loop that does not end; a program's
    result may depend on the number, which may be another one in each call."""

    def special(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if not kinds.in_library(f.code.co_filename):
            raise Break(f"a call of {function.__name__}")
        return function(*args)

    means(function)(special)


_for_libraries(id)
_for_libraries(sys.getrecursionlimit)


@means(threading.get_ident)
def get_ident(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """The number of this thread; others compile for theirs."""
    found = threading.get_ident()
    if not kinds.in_library(f.code.co_filename):  # libraries tell threads apart by it
        source = f.shadow_state.sources.constant(threading.get_ident, "threading.get_ident")
        source.check(CheckKind.Truth, lambda get: get() == found, f"get_ident() == {found}")
    return found


@means(importlib.import_module)
def import_module(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """A module that is there already."""
    name, package = (lambda name, package=None: (name, package))(*args, **kwargs)
    if type(name) is not str or (name.startswith(".") and package is None):
        raise Break("a call of importlib.import_module with what it refuses")
    return module_attributes.imported(importlib.util.resolve_name(name, package))


def _of_environment(function: Any) -> None:
    """It says what can be imported: that does not change, as library code does not."""

    def special(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
        try:
            found = f.interpreter.tensors.session.outside(function, *args, **kwargs)
        except (ImportError, ValueError) as error:
            raise Raised(error) from None
        name = f"{function.__module__}.{function.__name__}()"
        return f.shadow_state.wrap(found, f.shadow_state.sources.constant(found, name))

    means(function)(special)


_of_environment(importlib.util.find_spec)


def notice_modules() -> None:
    """Files what is known of modules that take long to import, once a program has imported them."""
    metadata = sys.modules.get("importlib.metadata")
    if metadata is not None and metadata.version not in calls.SPECIAL:
        _of_environment(metadata.version)
        _of_environment(metadata.packages_distributions)


@means(types.MappingProxyType)
def _proxy(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Of a mapping that is read here; one from outside, as of a class, shows what has no guard."""
    if kwargs or len(args) != 1 or type(args[0]) not in kinds.MAPPINGS:
        raise Break("a call of MappingProxyType")
    return f.shadow_state.create(types.MappingProxyType(args[0]))


@means(isinstance)
def isinstance_(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    value, classes = args
    if isinstance(classes, tuple):
        return any(isinstance_(f, [value, c], {}) for c in classes)
    if isinstance(classes, types.UnionType):
        return any(isinstance_(f, [value, c], {}) for c in classes.__args__)
    if not isinstance(classes, type):
        return f.interpreter.direct(isinstance, value, classes)
    if classes is arrays.Array:
        return type(value) is classes
    cls = class_of(f, value)
    check, _ = mro_lookup(type(classes), "__instancecheck__")
    if isinstance(check, types.FunctionType) and not kinds.in_library(check.__code__.co_filename):
        return objects.truth(f, f.call(check, [classes, value], {}))
    if cls is not type(value):
        if kinds.is_tensor(value):
            return f.interpreter.tensors.is_instance(value, classes)
        return issubclass_(f, [cls, classes], {})
    if type(classes) is abc.ABCMeta and check is abc.ABCMeta.__instancecheck__:
        return _is_kind(f, isinstance, value, classes)
    if isinstance(mro_lookup(cls, "__getattribute__")[0], types.FunctionType):
        if f.interpreter.direct(issubclass, cls, classes):
            return True
        said = objects.load_attr(f, value, "__class__")  # which `isinstance` asks for then
        return isinstance(said, type) and issubclass_(f, [said, classes], {})
    return f.interpreter.direct(isinstance, value, classes)


@means(issubclass)
def issubclass_(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    if len(args) == 2 and type(args[1]) is abc.ABCMeta:
        return _is_kind(f, issubclass, *args)
    return f.interpreter.direct(issubclass, *args)


def _is_kind(f: Frame, question: Any, value: Any, base: Any) -> bool:
    """An abstract class is asked about another class, which it answers once and keeps; a package
    may have put a function of its own in the place of the method that says so."""
    return bool(f.interpreter.tensors.session.outside(question, value, base))


@means(callable)
def callable_(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return callable(args[0])


def _named(args: list[Any]) -> None:
    if len(args) > 1 and not isinstance(args[1], str):
        kind = type(args[1]).__name__
        raise Raised(TypeError(f"attribute name must be string, not '{kind}'"))


@means(getattr)
def getattr_(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    _named(args)
    if len(args) == 3:
        return objects.load_attr_or(f, args[0], args[1], args[2])
    return objects.load_attr(f, *args)


@means(hasattr)
def hasattr_(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    _named(args)
    return objects.load_attr_or(f, args[0], args[1], UNSET) is not UNSET


@means(setattr)
def setattr_(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    _named(args)
    objects.store_attr(f, *args)


@means(delattr)
def delattr_(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    _named(args)
    objects.delete_attr(f, *args)


@means(object.__setattr__)
def object_setattr(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    _named(args)
    target, name, value = args
    objects.generic_store(f, target, type(target), name, value)


@means(object.__delattr__)
def object_delattr(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    _named(args)
    target, name = args
    objects.generic_delete(f, target, type(target), name)


@means(object.__getattribute__)
def object_getattribute(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    _named(args)
    return objects.generic_attr(f, args[0], type(args[0]), args[1])


@means(vars)
def vars_(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    if not args:
        raise Break("a call of vars")
    return objects.load_attr(f, args[0], "__dict__")


@means(super)
def super_(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    if args:
        return super(*args)
    names = f.decoded.names
    if "__class__" not in names:
        raise Raised(RuntimeError("super(): __class__ cell not found"))
    cls = f.shadow_state.read_cell(f.resolve(f.slots[names.index("__class__")]))
    first = f.resolve(f.load(0))
    if isinstance(first, types.CellType):
        first = f.shadow_state.read_cell(first)
    return super(cls, first)


@means(sys.exc_info)
def exc_info(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """The exception being handled; it has no traceback while it is followed."""
    error = f.interpreter.handling
    return (None, None, None) if error is None else (type(error), error, None)


@means(iter)
def iter_(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    if len(args) == 2:
        return calls.run_c(f, iter, args, {})
    return objects.get_iter(f, args[0])


@means(next)
def next_(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    if type(args[0]) is Generator:
        try:
            return args[0].__next__()
        except StopIteration as stop:
            if len(args) == 2:
                return args[1]
            raise Raised(stop) from None
    value = objects.next_of(f, args[0])
    if value is not UNSET:
        return value
    if len(args) == 2:
        return args[1]
    raise Raised(StopIteration())


def _through(function: Any, method: str) -> None:
    """A builtin that is a special method of its argument."""

    def special(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if args and objects.python_special(args[0], method):
            return f.call(objects.special(f, args[0], method), args[1:], kwargs)
        if function in (int, float) and len(args) == 1:
            kept = f.interpreter.tensors.converted(f, function, args[0])
            if kept is not UNSET:
                return kept
        if isinstance(function, type):
            return calls.instantiate(f, function, args, kwargs)
        return calls.run_c(f, function, calls.specialised_for(f, function, args), kwargs)

    means(function)(special)


_METHODS: tuple[tuple[Any, str], ...] = (
    (len, "__len__"),
    (abs, "__abs__"),
    (hash, "__hash__"),
    (int, "__int__"),
    (float, "__float__"),
    (round, "__round__"),
    (reversed, "__reversed__"),
    (divmod, "__divmod__"),
    (repr, "__repr__"),
)
for _function, _method in _METHODS:
    _through(_function, _method)


@means(bool)
def bool_(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    if not args:
        return False
    if kinds.is_tensor(args[0]) and f.interpreter.tensors.may_decide(f, args[0]):
        return args[0]
    kept = f.interpreter.tensors.converted(f, bool, args[0])
    return objects.truth(f, args[0]) if kept is UNSET else kept


@means(str)
def str_(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    for method in ("__str__", "__repr__"):
        if len(args) == 1 and objects.python_special(args[0], method):
            return f.call(objects.special(f, args[0], method), [], {})
        if args and mro_lookup(type(args[0]), method)[1] is not object:
            break
    _shown(f, args)
    return calls.instantiate(f, str, c_code.specialised(f, args), kwargs)


@means(format)
def format_(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    value, spec = args if len(args) == 2 else (args[0], "")
    if objects.python_special(value, "__format__"):
        return f.call(objects.special(f, value, "__format__"), [spec], {})
    if spec == "" and not kinds.is_plain(value):
        return str_(f, [value], {})
    _shown(f, args)
    return calls.run_c(f, format, c_code.specialised(f, [value, spec]), {})


def _shown(f: Frame, args: list[Any]) -> None:
    for a in args:
        if kinds.is_tensor(a):
            raise Break("a tensor is turned into text")
        if f.interpreter.tensors.is_symbol(a):
            continue
        text = mro_lookup(type(a), "__repr__")[1]
        if text is object and not f.shadow_state.is_created(a):
            raise Break(f"the address of {kinds.describe(a)} is shown")


def _consumes(function: Any) -> None:
    """A builtin that iterates over its arguments and calls what it is given."""

    def special(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
        args = [objects.iterable(f, a) if calls._has_python_iter(a) else a for a in args]
        return calls.run_c(f, function, args, kwargs)

    means(function)(special)


for _function in (list, tuple, set, frozenset, sorted, any, all, zip, enumerate, map, filter):
    _consumes(_function)
_consumes(functools.reduce)


def _any_all(function: Any, stop_at: bool) -> None:
    def special(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
        iterator = objects.get_iter(f, args[0])
        while (item := objects.next_of(f, iterator)) is not UNSET:
            if objects.truth(f, item) == stop_at:
                return stop_at
        return not stop_at

    means(function)(special)


_any_all(any, True)
_any_all(all, False)


@means(sum)
def sum_(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    total = args[1] if len(args) > 1 else kwargs.get("start", 0)
    iterator = objects.get_iter(f, args[0])
    while (item := objects.next_of(f, iterator)) is not UNSET:
        total = objects.binary(f, 0, total, item)
    return total


def _extreme(function: Any, sign: str) -> None:
    def special(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
        key = kwargs.get("key")
        items = args if len(args) > 1 else None
        if items is None:
            iterator = objects.get_iter(f, args[0])
            items = []
            while (item := objects.next_of(f, iterator)) is not UNSET:
                items.append(item)
        if not items:
            if "default" in kwargs:
                return kwargs["default"]
            raise Raised(ValueError(f"{function.__name__}() arg is an empty sequence"))
        tensors = f.interpreter.tensors
        if key is None and any(tensors.is_symbol(v) for v in items):
            return tensors.extreme(f, function, items)
        best = items[0]
        best_key = best if key is None else f.call(key, [best], {})
        for item in items[1:]:
            item_key = item if key is None else f.call(key, [item], {})
            if objects.truth(f, objects.compare(f, sign, item_key, best_key)):
                best, best_key = item, item_key
        return best

    means(function)(special)


_extreme(min, "<")
_extreme(max, ">")


@means(dict)
def dict_(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    if args and not kinds.is_plain(args[0]):
        if objects.load_attr_or(f, args[0], "keys", UNSET) is not UNSET:
            args = [objects.mapping(f, args[0])]
        else:
            args = [objects.iterable(f, args[0])]
    return calls.run_c(f, dict, args, kwargs)


def _binary(op: int) -> Special:
    return lambda f, args, kwargs: objects.binary(f, op, *args)


def _comparison(sign: str) -> Special:
    return lambda f, args, kwargs: objects.compare(f, sign, *args)


def _operators() -> None:
    """Functions of `operator` are the operators."""
    for n, (function, _) in enumerate(objects._BINARY):
        means(function)(_binary(n))
    for n, function in enumerate(objects._INPLACE):
        means(function)(_binary(n + len(objects._BINARY)))
    for sign, (function, _, _) in objects._COMPARISONS.items():
        means(function)(_comparison(sign))
    means(operator.getitem)(lambda f, args, kwargs: objects.get_item(f, *args))
    means(operator.setitem)(lambda f, args, kwargs: objects.set_item(f, *args))
    means(operator.truth)(lambda f, args, kwargs: objects.truth(f, args[0]))
    means(operator.not_)(lambda f, args, kwargs: not objects.truth(f, args[0]))
    means(operator.contains)(lambda f, args, kwargs: objects.contains(f, *args))
    means(operator.is_)(lambda f, args, kwargs: objects.same(f, *args))
    means(operator.is_not)(lambda f, args, kwargs: not objects.same(f, *args))


_operators()


@means(type.__subclasses__)
def subclasses(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Of a class from outside; later calls are to find the same ones."""
    cls, shadow_state = args[0], f.shadow_state
    found = type.__subclasses__(cls)
    if not shadow_state.is_created(cls):
        shadow_state.source_of(cls).check(
            CheckKind.Truth,
            lambda c: type.__subclasses__(c) == found,
            f"subclasses of {cls.__qualname__} are {found}",
        )
    return list(found)


@means(_C._func_inside)
def func_inside(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Whether a transform of `func` runs: one that is followed, or one around the whole graph."""
    if _C._func_inside():
        raise Break("a transform of torch.func runs")
    return f.interpreter.tensors.transforms > 0


@means(dict.get)
def dict_get(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    entries = f.shadow_state.large(args[0]) if len(args) in (2, 3) else None
    if entries is None or not is_key(args[1]):
        args[1:2] = c_code.specialised(f, args[1:2])
        return calls.run_c(f, dict.get, args, kwargs)
    found = entries.get(args[1])
    return found if found is not UNSET else args[2] if len(args) == 3 else None


@means(list.sort)
def list_sort(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    items = calls.run_c(f, sorted, args, kwargs)
    args[0][:] = items


def _searches(function: Any) -> None:
    def special(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if any(kinds.is_tensor(v) for v in (*args[0], args[1])):
            raise Break(f"tensors are compared by {function.__qualname__}")
        return calls.run_c(f, function, args, kwargs)

    means(function)(special)


for _function in (list.index, list.count, list.remove, tuple.index, tuple.count):
    _searches(_function)


@means(collections.namedtuple)
def namedtuple_(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """The class, made once: calls of what is compiled share it."""
    args, kwargs = c_code.specialised(f, args), dict(kwargs)
    kwargs.setdefault("module", f.globals.get("__name__"))
    return f.interpreter.direct(collections.namedtuple, *args, **kwargs)


@means(type.__call__)
def type_call(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return calls.build(f, args[0], args[1:], kwargs)


@means(warnings.warn)
def warn(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Given when the function is captured, not at each call."""
    warnings.warn(*args, **{**kwargs, "stacklevel": 1})


@means(_C._record_enter)
def record_enter(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Ranges are left out: a compiled program is an event of its own in profiles."""
    return None


@means(_C._profiler_enabled)
def profiler_enabled(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return False


@means(_marks.is_compiling, _marks.is_dynamo_compiling)
def is_compiling(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    f.interpreter.said_compiling = True
    return True


@means(_marks.records_trace)
def records_trace(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    if _marks.records_trace():
        raise Break("jit.trace records what the program does")
    return False


@means(_marks.reaches_others)
def reaches_others(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    raise Break(f"{args[0]} of torch.distributed, in which other processes take part")


@means(_marks.errors_on_break)
def errors_on_break(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    before, f.interpreter.errors_on_break = f.interpreter.errors_on_break, args[0]
    return before


def _nesting(step: int) -> Special:
    """Counted by the interpreter, whose recorder has a cache of casts of its own."""

    def special(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
        f.interpreter.autocast_depth += step
        return f.interpreter.autocast_depth

    return special


means(flambeau.autocast_increment_nesting)(_nesting(1))
means(flambeau.autocast_decrement_nesting)(_nesting(-1))
means(flambeau.clear_autocast_cache)(
    lambda f, args, kwargs: f.interpreter.tensors.recorder.kept.clear()
)


@means(flambeau.device.__enter__)
def enter_device(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Followed here alone; what is still entered when the graph ends is entered then."""
    f.interpreter.entered_devices.append((args[0], flambeau.get_default_device()))
    flambeau.set_default_device(args[0].type)
    return args[0]


@means(flambeau.device.__exit__)
def exit_device(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    if not f.interpreter.entered_devices:
        raise Break("a device that was entered before is left")
    flambeau.set_default_device(f.interpreter.entered_devices.pop()[1])


@means(_marks.cudagraph_mark_step_begin)
def step_begins(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Of no meaning here."""
