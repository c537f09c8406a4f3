"""Instructions that compute, branch, iterate, call, raise and yield."""

from __future__ import annotations

import operator
from typing import Any

from flambeau._trace.run_numbers import RunNumber

from . import calls, kinds, objects
from .errors import Break, Raised
from .interpreter import Frame, Generator, handles
from .kinds import NULL, STATEFUL, UNSET
from .opcodes import Instruction

# Arithmetic and comparison ------------------------------------------------------------------------

_UNARY: dict[str, tuple[Any, str]] = {
    "UNARY_POSITIVE": (operator.pos, "__pos__"),
    "UNARY_NEGATIVE": (operator.neg, "__neg__"),
    "UNARY_INVERT": (operator.invert, "__invert__"),
}
_COMPARE = ("<", "<=", "==", "!=", ">", ">=")


@handles(*_UNARY)
def unary(f: Frame, i: Instruction) -> None:
    function, name = _UNARY[i.name]
    f.push(objects.unary(f, function, name, f.pop()))


@handles("UNARY_NOT")
def unary_not(f: Frame, i: Instruction) -> None:
    f.push(not objects.truth(f, f.pop()))


@handles("BINARY_OP")
def binary_op(f: Frame, i: Instruction) -> None:
    right = f.pop()
    f.push(objects.binary(f, i.arg, f.pop(), right))


@handles("COMPARE_OP")
def compare_op(f: Frame, i: Instruction) -> None:
    right = f.pop()
    f.push(objects.compare(f, _COMPARE[i.arg], f.pop(), right))


@handles("IS_OP")
def is_op(f: Frame, i: Instruction) -> None:
    right, left = f.pop(), f.pop()
    f.push(objects.same(f, left, right) != bool(i.arg))


@handles("CONTAINS_OP")
def contains_op(f: Frame, i: Instruction) -> None:
    container, value = f.pop(), f.pop()
    f.push(objects.contains(f, container, value) != bool(i.arg))


@handles("BINARY_SUBSCR")
def binary_subscr(f: Frame, i: Instruction) -> None:
    key = f.pop()
    f.push(objects.get_item(f, f.pop(), key))


@handles("BINARY_SLICE")
def binary_slice(f: Frame, i: Instruction) -> None:
    container, start, stop = f.pop_many(3)
    f.push(objects.get_item(f, container, slice(start, stop)))


@handles("STORE_SUBSCR")
def store_subscr(f: Frame, i: Instruction) -> None:
    value, container, key = f.pop_many(3)
    objects.set_item(f, container, key, value)


@handles("STORE_SLICE")
def store_slice(f: Frame, i: Instruction) -> None:
    value, container, start, stop = f.pop_many(4)
    objects.set_item(f, container, slice(start, stop), value)


@handles("DELETE_SUBSCR")
def delete_subscr(f: Frame, i: Instruction) -> None:
    container, key = f.pop_many(2)
    objects.del_item(f, container, key)


@handles("FORMAT_VALUE")
def format_value(f: Frame, i: Instruction) -> None:
    spec = f.pop() if i.arg & 4 else ""
    value = f.pop()
    convert = (None, str, repr, ascii)[i.arg & 3]
    if convert is not None:
        value = calls.call(f, convert, [value], {})
    f.push(calls.call(f, format, [value, spec], {}))


# Attributes ---------------------------------------------------------------------------------------


@handles("LOAD_ATTR")
def load_attr(f: Frame, i: Instruction) -> None:
    f.push(objects.load_attr(f, f.pop(), f.code.co_names[i.arg]))


@handles("LOAD_METHOD")
def load_method(f: Frame, i: Instruction) -> None:
    value = objects.load_attr(f, f.pop(), f.code.co_names[i.arg])
    f.push(NULL)
    f.push(value)


@handles("LOAD_SUPER_ATTR")
def load_super_attr(f: Frame, i: Instruction) -> None:
    function, *args = f.pop_many(3)
    proxy = calls.call(f, function, args if i.arg & 2 else [], {})
    found = objects.load_attr(f, proxy, f.code.co_names[i.arg >> 2])
    if i.arg & 1:
        f.push(NULL)
    f.push(found)


@handles("STORE_ATTR")
def store_attr(f: Frame, i: Instruction) -> None:
    value, target = f.pop_many(2)
    objects.store_attr(f, target, f.code.co_names[i.arg], value)


@handles("DELETE_ATTR")
def delete_attr(f: Frame, i: Instruction) -> None:
    objects.delete_attr(f, f.pop(), f.code.co_names[i.arg])


# Jumps --------------------------------------------------------------------------------------------


@handles("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")
def jump(f: Frame, i: Instruction) -> int:
    return i.target


@handles("POP_JUMP_IF_TRUE")
def pop_jump_if_true(f: Frame, i: Instruction) -> int | None:
    return i.target if _decided(f, i, f.pop()) else None


@handles("POP_JUMP_IF_FALSE")
def pop_jump_if_false(f: Frame, i: Instruction) -> int | None:
    return None if _decided(f, i, f.pop()) else i.target


def _decided(f: Frame, i: Instruction, value: Any) -> bool:
    """The truth of a value that a jump depends on."""
    if value is True or value is False:
        return value
    tensor = value.tensor if type(value) is RunNumber else value
    if kinds.is_tensor(tensor):
        wanted = f.decoded.expected(f.pc - 1)
        if wanted is not None and f.interpreter.tensors.check(f, tensor, wanted):
            return wanted
    return objects.truth(f, value)


@handles("POP_JUMP_IF_NONE")
def pop_jump_if_none(f: Frame, i: Instruction) -> int | None:
    return i.target if f.pop() is None else None


@handles("POP_JUMP_IF_NOT_NONE")
def pop_jump_if_not_none(f: Frame, i: Instruction) -> int | None:
    return i.target if f.pop() is not None else None


@handles("JUMP_IF_TRUE_OR_POP")
def jump_if_true_or_pop(f: Frame, i: Instruction) -> int | None:
    if objects.truth(f, f.top()):
        return i.target
    f.pop()
    return None


@handles("JUMP_IF_FALSE_OR_POP")
def jump_if_false_or_pop(f: Frame, i: Instruction) -> int | None:
    if not objects.truth(f, f.top()):
        return i.target
    f.pop()
    return None


# Iteration and generators -------------------------------------------------------------------------


@handles("GET_ITER")
def get_iter(f: Frame, i: Instruction) -> None:
    f.push(objects.get_iter(f, f.pop()))


@handles("FOR_ITER")
def for_iter(f: Frame, i: Instruction) -> int | None:
    iterator = f.top()
    if type(iterator) in STATEFUL and id(iterator) in f.shadow_state.origin:
        raise Break("a loop goes on that began before")
    value = objects.next_of(f, iterator)
    if value is not UNSET:
        f.push(value)
        return None
    f.pop()
    return i.target


@handles("RETURN_GENERATOR")
def return_generator(f: Frame, i: Instruction) -> None:
    f.push(None)  # the generator was made when the frame was; POP_TOP follows


@handles("GET_YIELD_FROM_ITER")
def get_yield_from_iter(f: Frame, i: Instruction) -> None:
    if type(f.top()) is not Generator:
        f.push(objects.get_iter(f, f.pop()))


@handles("SEND")
def send(f: Frame, i: Instruction) -> int | None:
    value = f.pop()
    receiver = f.top()
    try:
        if type(receiver) is Generator:
            result = receiver.send(value)
        else:
            result = objects.next_of(f, receiver)
            if result is UNSET:
                raise StopIteration
    except StopIteration as stop:
        f.stack[-1] = stop.value
        return i.target
    f.push(result)
    return None


@handles("YIELD_VALUE")
def yield_value(f: Frame, i: Instruction) -> int:
    f.yielded = f.pop()
    return -1


@handles("RETURN_VALUE")
def return_value(f: Frame, i: Instruction) -> int:
    f.result = f.stack.pop()
    return -1


@handles("RETURN_CONST")
def return_const(f: Frame, i: Instruction) -> int:
    f.result = f.code.co_consts[i.arg]
    return -1


# Calls --------------------------------------------------------------------------------------------


@handles("KW_NAMES")
def kw_names(f: Frame, i: Instruction) -> None:
    f.keywords = f.code.co_consts[i.arg]


@handles("CALL")
def call(f: Frame, i: Instruction) -> None:
    names, f.keywords = f.keywords, ()
    args = f.pop_many(i.arg)
    function, first = f.pop(), f.pop()
    if first is not NULL:  # (method, self, args...)
        function, args = first, [function, *args]
    kwargs = {}
    if names:
        kwargs = dict(zip(names, args[-len(names) :], strict=True))
        del args[-len(names) :]
    f.push(f.call_here(function, args, kwargs))


@handles("CALL_FUNCTION_EX")
def call_function_ex(f: Frame, i: Instruction) -> None:
    kwargs = objects.mapping(f, f.pop()) if i.arg & 1 else {}
    args = f.pop()
    if type(args) not in (tuple, list):
        args = f.interpreter.direct(list, objects.iterable(f, args))
    function = f.pop()
    f.pop()  # NULL
    f.push(f.call_here(function, list(args), dict(kwargs)))


@handles("STOPITERATION_ERROR")
def stopiteration_error(f: Frame, i: Instruction) -> None:
    """What a generator that is left by an exception raises instead of it."""
    error = f.pop()
    if isinstance(error, StopIteration):
        stop, error = error, RuntimeError("generator raised StopIteration")
        error.__cause__ = stop
    f.push(error)


# Exceptions and with ------------------------------------------------------------------------------


@handles("RAISE_VARARGS")
def raise_varargs(f: Frame, i: Instruction) -> None:
    if not i.arg:
        handling = f.interpreter.handling
        raise Raised(handling or RuntimeError("No active exception to reraise"))
    cause = f.pop() if i.arg == 2 else UNSET
    error = f.pop()
    if isinstance(error, type) and issubclass(error, BaseException):
        error = f.call(error, [], {})
    if not isinstance(error, BaseException):
        raise Raised(TypeError("exceptions must derive from BaseException"))
    if cause is not UNSET:
        if isinstance(cause, type) and issubclass(cause, BaseException):
            cause = f.call(cause, [], {})
        error.__cause__ = cause
    raise Raised(error)


@handles("RERAISE")
def reraise(f: Frame, i: Instruction) -> None:
    error = f.pop()
    raise Raised(error)


@handles("PUSH_EXC_INFO")
def push_exc_info(f: Frame, i: Instruction) -> None:
    error = f.pop()
    f.push(f.interpreter.handling)
    f.push(error)
    f.interpreter.handling = error


@handles("POP_EXCEPT")
def pop_except(f: Frame, i: Instruction) -> None:
    f.interpreter.handling = f.pop()


@handles("CHECK_EXC_MATCH")
def check_exc_match(f: Frame, i: Instruction) -> None:
    kinds = f.pop()
    for k in kinds if isinstance(kinds, tuple) else (kinds,):
        if not (isinstance(k, type) and issubclass(k, BaseException)):
            raise Raised(
                TypeError("catching classes that do not inherit from BaseException is not allowed")
            )
    f.push(isinstance(f.top(), kinds))


@handles("BEFORE_WITH")
def before_with(f: Frame, i: Instruction) -> None:
    manager = f.pop()
    enter = objects.special(f, manager, "__enter__")
    leave = objects.special(f, manager, "__exit__")
    if enter is UNSET or leave is UNSET:
        raise Raised(
            TypeError(
                f"'{type(manager).__name__}' object does not support the context manager protocol"
            )
        )
    f.push(leave)
    f.push(calls.call(f, enter, [], {}))


@handles("WITH_EXCEPT_START")
def with_except_start(f: Frame, i: Instruction) -> None:
    error, leave = f.stack[-1], f.resolve(f.stack[-4])
    f.push(calls.call(f, leave, [type(error), error, None], {}))


# Patterns -----------------------------------------------------------------------------------------


@handles("GET_LEN")
def get_len(f: Frame, i: Instruction) -> None:
    f.push(calls.call(f, len, [f.top()], {}))


@handles("MATCH_SEQUENCE")
def match_sequence(f: Frame, i: Instruction) -> None:
    f.push(isinstance(f.top(), (list, tuple)))


@handles("MATCH_MAPPING")
def match_mapping(f: Frame, i: Instruction) -> None:
    f.push(isinstance(f.top(), dict))


@handles("MATCH_KEYS")
def match_keys(f: Frame, i: Instruction) -> None:
    subject, keys = f.resolve(f.stack[-2]), f.stack[-1]
    if type(subject) is not dict:
        raise Break("a pattern is matched against a mapping that is no dict")
    found: Any = tuple(subject[k] for k in keys) if all(k in subject for k in keys) else None
    f.push(found)


@handles("MATCH_CLASS")
def match_class(f: Frame, i: Instruction) -> None:
    names, cls, subject = f.pop(), f.pop(), f.pop()
    if not calls.call(f, isinstance, [subject, cls], {}):
        f.push(None)
        return
    out: list[Any] = []
    positional: tuple[str, ...] = ()
    if i.arg:
        if cls in _MATCH_SELF:
            out.append(subject)
        else:
            positional = objects.load_attr(f, cls, "__match_args__")[: i.arg]
    for name in (*positional, *names):
        value = objects.load_attr_or(f, subject, name, UNSET)
        if value is UNSET:
            f.push(None)
            return
        out.append(value)
    f.push(tuple(out))


_MATCH_SELF = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)
