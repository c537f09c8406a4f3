"""`torch.ops.NAMESPACE.NAME`: operators as objects, those of programs and our own functions alike.

Owns the one object that stands for an overload. What a call does is the core's.
"""

from __future__ import annotations

import functools
import importlib
import importlib.machinery
import os
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import flambeau
from flambeau import _C

if TYPE_CHECKING:
    from .schemas import FunctionSchema

#: "space::name.overload" -> what stands for it
_overloads: dict[str, OpOverload] = {}
#: "space::name" -> its overloads together
_packets: dict[str, OpOverloadPacket] = {}
#: "space" -> what shows its operators
_namespaces: dict[str, OpNamespace] = {}


class OpOverload:
    """`torch.ops.space.name.overload`: called like a function.

    Args:
        packet: the operator that it is an overload of.
        name: of the overload, "default" where it has none.
        function: what is called; None: the operator of the core.
    """

    def __init__(
        self, packet: OpOverloadPacket, name: str, function: Callable[..., Any] | None = None
    ) -> None:
        self.overloadpacket, self._overloadname = packet, name
        qualname = packet._qualified_op_name
        self._uid = qualname if name == "default" else f"{qualname}.{name}"
        self.__name__ = self.__qualname__ = f"{packet.__name__}.{name}"
        self.__module__ = packet.__module__
        self.namespace = qualname.partition("::")[0]
        self._identity = f"{self._uid} {_C._ops_version()}"  # not that of one defined again
        self.tags: list[Any] = []
        #: of an operator that was added: functions of Python that say more of it
        self._composite: Callable[..., Any] | None = None
        self._autograd: Callable[..., Any] | None = None
        self._autocast: Callable[..., Any] | None = None
        self._fake: Callable[..., Any] | None = None
        self._when_recording = False  # the autograd kernel is called
        self._opaque = False  # the kernels record nothing
        self._call = function or _C._op_function(self._uid, self)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)

    @functools.cached_property
    def _schema(self) -> FunctionSchema:
        from .schemas import FunctionSchema  # with `torch.ops` it would be loaded by all programs

        return FunctionSchema(_C._op_schema(self._uid))

    def bind(self, args: Any, kwargs: dict[str, Any]) -> list[Any]:
        """The value of every argument of a call, in order.

        Raises:
            TypeError: the arguments are not those of the schema.
        """
        schema, rest = self._schema, dict(kwargs)
        if len(args) > schema.positional:
            raise TypeError(
                f"{self._uid}: expected at most {schema.positional} positional arguments, "
                f"got {len(args)}"
            )
        out = list(args)
        for a in schema.arguments[len(args) :]:
            if a.name not in rest and not a.has_default_value():
                raise TypeError(f"{self._uid}: missing argument '{a.name}'")
            out.append(rest.pop(a.name, a.default_value))
        if rest:
            raise TypeError(f"{self._uid}: got an unexpected argument '{next(iter(rest))}'")
        return out

    def spread(self, values: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Values of all arguments as they are given in a call."""
        schema = self._schema
        n = schema.positional
        named = {a.name: v for a, v in zip(schema.arguments[n:], values[n:], strict=True)}
        return tuple(values[:n]), named

    def below_autograd(self, /, *values: Any) -> Any:
        """A call that goes past the operator's autograd kernel, with all arguments in order."""
        args, kwargs = self.spread(values)
        guard = _C._below_autograd()
        try:
            return self._call(*args, **kwargs)
        finally:
            del guard

    def name(self) -> str:
        """`space::name.overload`."""
        return self._uid

    def __str__(self) -> str:
        return self.__name__

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.overloadpacket.__name__}', overload='{self._overloadname}')>"

    def __reduce__(self) -> Any:
        return _again, (self.overloadpacket._qualified_op_name, self._overloadname)


class OpOverloadPacket:
    """`torch.ops.space.name`: the overloads of a name."""

    def __init__(self, qualname: str, function: Callable[..., Any] | None = None) -> None:
        self._qualified_op_name = qualname
        space, _, name = qualname.partition("::")
        self.__name__ = self.__qualname__ = f"{space}.{name}"
        self.__module__ = f"torch.ops.{space}"
        self._function = function
        self._listed: tuple[int, list[str]] = (-1, [])  # when, and the names of the overloads
        self._only: tuple[int, Any] = (-1, None)  # when there was one, and the call of it

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if self._function is not None:
            return self._function(*args, **kwargs)
        if self._only[0] == _C._ops_version():
            return self._only[1](*args, **kwargs)
        names = self.overloads()
        if len(names) == 1:
            self._only = (_C._ops_version(), getattr(self, names[0])._call)
            return self._only[1](*args, **kwargs)
        errors = []
        for name in names:
            try:
                return getattr(self, name)(*args, **kwargs)
            except TypeError as e:
                errors.append(f"{name}: {e}")
        raise TypeError(f"{self.__name__}: no overload takes these arguments\n" + "\n".join(errors))

    def overloads(self) -> list[str]:
        """Names of the overloads."""
        version = _C._ops_version()
        if self._listed[0] != version:
            start = f"{self._qualified_op_name}."
            found = [u for u in _C._ops_added() if f"{u}.".startswith(start)]
            names = [u.removeprefix(start) if u.startswith(start) else "default" for u in found]
            self._listed = (version, names)
        return self._listed[1]

    def overload(self, name: str) -> OpOverload:
        """An overload, whatever its name: methods of classes of C++ are called `__len__` too.

        Raises:
            AttributeError: there is none of that name.
        """
        if self._function is not None:
            return OpOverload(self, name, self._function)
        if name not in self.overloads():
            raise AttributeError(
                f"The underlying op of '{self.__name__}' has no overload name '{name}'"
            )
        uid = self._qualified_op_name + ("" if name == "default" else f".{name}")
        found = _overloads[uid] = _overloads.get(uid) or OpOverload(self, name)
        return found

    def __getattr__(self, name: str) -> OpOverload:
        if name.startswith("__"):
            raise AttributeError(
                f"The underlying op of '{self.__name__}' has no overload name '{name}'"
            )
        found = self.overload(name)
        setattr(self, name, found)
        return found

    def __iter__(self) -> Any:
        return iter(self.overloads())

    def __str__(self) -> str:
        return self.__name__

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self.__name__}')>"


def _again(qualname: str, name: str) -> Any:
    """An operator that was pickled, by its name."""
    return packet_of(qualname).overload(name)


def packet_of(qualname: str) -> OpOverloadPacket:
    """The overloads of an added operator.

    Raises:
        RuntimeError: there is none of that name.
    """
    if qualname not in _packets:
        start = f"{qualname}."
        if not any(f"{u}.".startswith(start) for u in _C._ops_added()):
            raise RuntimeError(f"operator {qualname} does not exist")
        _packets[qualname] = OpOverloadPacket(qualname)
    return _packets[qualname]


def overload_of(op: Any) -> OpOverload:
    """The overload that a name, an overload, a packet or a `CustomOpDef` stands for.

    Raises:
        RuntimeError: there is no such operator.
    """
    if isinstance(op, OpOverload):
        return op
    if isinstance(op, str):
        space, colons, rest = op.partition("::")
        name, _, overload = rest.partition(".")
        if not colons:
            raise RuntimeError(f"operator {op}: expected a name like 'space::name'")
        packet = packet_of(f"{space}::{name}")
        try:
            return packet.overload(overload or "default")
        except AttributeError:
            raise RuntimeError(f"operator {op} does not exist") from None
    if isinstance(op, OpOverloadPacket):
        return op.default
    found = getattr(op, "_opoverload", None)
    if found is None:
        raise TypeError(f"expected an operator or its name, got {type(op).__name__}")
    return found


def added(schema: str) -> OpOverload:
    """A new operator of that schema.

    Raises:
        RuntimeError: the text is no schema, or the name is taken.
    """
    return overload_of(_C._op_add(schema))


def remove(overload: OpOverload) -> None:
    """Take an operator's name away; what holds it raises when it is called."""
    if _overloads.pop(overload._uid, None) is not overload:
        return
    _C._op_remove(overload._uid)
    packet = overload.overloadpacket
    vars(packet).pop(overload._overloadname, None)
    if not packet.overloads():
        _packets.pop(packet._qualified_op_name, None)
        space, _, name = packet._qualified_op_name.partition("::")
        vars(_namespaces.get(space, packet)).pop(name, None)


class OpNamespace(types.ModuleType):
    """`torch.ops.NAME`: operators of one library.

    Args:
        name: the library's.
        find: gives a function of ours by its name, for libraries that are ours.
    """

    def __init__(self, name: str, find: Callable[[str], Any] | None = None) -> None:
        super().__init__(f"torch.ops.{name}")
        self.name, self._find = name, find

    def __getattr__(self, name: str) -> OpOverloadPacket:
        if not name.startswith("__"):
            function = None if self._find is None else self._find(name)
            if function is not None:
                packet = OpOverloadPacket(f"{self.name}::{name}", function)
                setattr(self, name, packet)
                return packet
            try:
                packet = packet_of(f"{self.name}::{name}")
                setattr(self, name, packet)
                return packet
            except RuntimeError:
                pass
        raise AttributeError(f"'_OpNamespace' {self.name!r} object has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        start = f"{self.name}::"
        added = {
            u.removeprefix(start).partition(".")[0] for u in _C._ops_added() if u.startswith(start)
        }
        return sorted({*super().__dir__(), *added})


def _function(name: str) -> Any:
    """Our function that `torch.ops.aten` shows under a name; None where there is none."""
    functional = importlib.import_module("flambeau.nn.functional")
    for place in (_C, _C.Tensor, flambeau, functional):
        found = getattr(place, name, None)
        if callable(found) and not isinstance(found, type):
            return found
    return None if explain is None else explain(name)


#: asked for a function of `torch.ops.aten` that is not ours; gives what refuses it with the reason
explain: Callable[[str], Any] | None = None


@functools.cache
def registry() -> Ops:
    """`torch.ops`, the same under both names of the package."""
    return Ops(lambda space: _function if space == "aten" else None)


def load_library(name: str) -> None:
    """Load a library of C++ for the operators that it adds (``TORCH_LIBRARY``).

    Raises:
        OSError: it cannot be loaded; a library built for PyTorch needs PyTorch's own binary
            interface and must be built again.
        RuntimeError: an operator could not be added.
    """
    import ctypes  # a millisecond that few programs need

    try:
        ctypes.CDLL(name)
    except OSError as error:
        raise OSError(
            f"torch.ops.load_library: {name} cannot be loaded: {error}; a library built for "
            "PyTorch must be built again (utils.cpp_extension)"
        ) from None
    if wrong := _C._take_library_errors():
        raise RuntimeError(f"torch.ops.load_library: {name}: {wrong}")


class Ops(types.ModuleType):
    """`torch.ops`: a namespace for each library.

    Args:
        find: gives, by the name of a library, the function that finds our operators in it; None for
            libraries that have those alone that programs added.
    """

    def __init__(self, find: Callable[[str], Callable[[str], Any] | None] | None = None) -> None:
        super().__init__("torch.ops", "Operations by the name of their library.")
        self.__path__: list[str] = []
        self.__spec__ = importlib.machinery.ModuleSpec("torch.ops", None, is_package=True)
        self._find = find
        self.loaded_libraries: set[str] = set()

    def __getattr__(self, name: str) -> OpNamespace:
        if name.startswith("__"):
            raise AttributeError(f"module 'torch.ops' has no attribute {name!r}")
        namespace = _namespaces[name] = OpNamespace(name, self._find and self._find(name))
        setattr(self, name, namespace)
        return namespace

    def load_library(self, path: Any) -> None:
        """Load a library of C++; see `load_library`."""
        name = os.fspath(path)
        if name not in self.loaded_libraries:
            load_library(name)
            self.loaded_libraries.add(name)

    def load_module(self, module: str) -> None:
        """Load a library of operations given by a Python module; none is known."""
        raise OSError(f"torch.ops.load_module: {module!r} is built for PyTorch, not for Flambeau")
