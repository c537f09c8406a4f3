"""Files of scripts: the unit as text, the objects as data, and what the user adds.

A zip of `format.json` (name, version), `code.txt` (see `text`), `state` (the objects, as
`flambeau.save` writes data) and `extra/NAME`. A file describes a program of the IR, which is read,
checked and then run by code made here; it carries no code of Python, and names no class but those
of its own text and the modules of `flambeau.nn`. Version 1 is read for good: an entry of the table
keeps its uid, and parameters that it gains are optional.
"""

from __future__ import annotations

import collections
import contextlib
import enum
import io
import json
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import flambeau
from flambeau.nn import Module
from flambeau.nn.utils.rnn import PackedSequence
from flambeau.serialization import read_archive

from .._ir.errors import CompileError
from .._ir.types import Type
from .._serialization.archive import ArchiveReader, ArchiveWriter, Parts, atomic_file
from .._table import added
from .._table.added import is_added, is_there
from ..classes import class_named
from . import runtime, text
from .made import module_state, qualified
from .merging import merged
from .objects import Program, RecursiveScriptModule, ScriptFunction, library_module
from .unit import Class, Unit

_FORMAT, VERSION = "flambeau script", 1
_PLAIN = (bool, int, float, str, complex, type(None))


class _Writer:
    """Turns modules and values into data; each object once."""

    def __init__(self, root: Program, modules: Iterable[Any]) -> None:
        self.unit = Unit(dict(root.unit.functions), dict(root.unit.classes))
        #: programs of modules that came to stand where an interface is, and their names here
        self.names: dict[int, Callable[[str], str]] = {id(root): lambda name: name}
        self.programs = [root]
        for m in modules:
            other = getattr(m, "_script_program", root)
            if id(other) not in self.names:
                self.programs.append(other)
                self.names[id(other)] = merged(self.unit, other.unit)
        #: what is saved as `code.txt`
        self.code = root.machine.text if len(self.programs) == 1 else text.write(self.unit)
        self.objects: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._alive: list[Any] = []

    def module(self, m: Module) -> int:
        """The number of a module."""
        found = self._numbers.get(id(m))
        if found is not None:
            return found
        record: Class | None = getattr(m, "_script_record", None)
        if record is not None:
            named = self.names[id(m._script_program)](record.name)
            record = self.unit.classes[named]
        children = {n: None if c is None else self.module(c) for n, c in m._modules.items()}
        made: dict[str, Any] = {
            "parameters": dict(m._parameters), "children": children,
            "buffers": {n: _plain_tensor(x) for n, x in m._buffers.items()},
            "transient": sorted(m._non_persistent_buffers_set), "training": m.training,
        }  # fmt: skip
        if record is None or record.kind == "library":
            cls = _library_class(m)
            made["library"] = cls.__name__
            made["class"] = record.name if record is not None else ""
            made["fields"] = {
                n: _field(x) for n, x in vars(m).items()
                if not module_state(n) and not n.startswith("_script_") and n != "training"
            }  # fmt: skip
        else:
            made["class"] = record.name
            made["attributes"] = {
                n: self.value(vars(m)[n], t, f"{record.name}.{n}")
                for n, t in record.attributes.items()
                if n not in record.places and n != "training" and n in vars(m)
            }  # fmt: skip
            made["constants"] = _constants(m, record)
        return self._add(m, made)

    def _add(self, obj: Any, made: Any) -> int:
        self._numbers[id(obj)] = len(self.objects)
        self._alive.append(obj)
        self.objects.append(made)
        return len(self.objects) - 1

    def value(self, x: Any, t: Type, where: str) -> Any:
        """A value of a type as data."""
        if x is None or isinstance(x, flambeau.Tensor) or type(x) in _PLAIN:
            return x
        if isinstance(x, enum.Enum):
            return x.name
        record = self.unit.classes.get(t.base)
        if record is not None and record.kind == "tuple":
            fields = zip(x, record.attributes.values(), strict=True)
            return [self.value(y, a, where) for y, a in fields]
        if record is not None and record.kind == "class":
            found = self._numbers.get(id(x))
            if found is None:
                found = self._add(x, None)
                self.objects[found] = {
                    "class": record.name,
                    "attributes": {n: self.value(getattr(x, n), a, where)
                                   for n, a in record.attributes.items() if hasattr(x, n)},
                }  # fmt: skip
            return {"object": found}
        if record is not None and record.kind == "native":
            found = self._numbers.get(id(x))
            if found is None:
                state = _state_type(record)
                found = self._add(x, None)
                self.objects[found] = {
                    "class": record.name, "state": self.value(x.__getstate__(), state, where),
                }  # fmt: skip
            return {"object": found}
        if isinstance(x, (flambeau.dtype, flambeau.device)):
            return x
        if t.base == "Tuple":
            return [self.value(y, m, where) for y, m in zip(x, t.items, strict=True)]
        if t.is_list:
            return [self.value(y, t.element, where) for y in x]
        if t.base == "Dict":
            key, item = t.items
            pairs = [[self.value(k, key, where), self.value(v, item, where)] for k, v in x.items()]
            return {"pairs": pairs}
        if t.base in ("Layout", "MemoryFormat"):
            return {"name": str(x)}
        raise TypeError(f"jit.save: {where} is a {type(x).__name__}, which is no data")


def _state_type(record: Class) -> Type:
    """Type of what an object of a class of C++ is saved as."""
    uid = vars(class_named(record.name))["_script_methods"].get("__getstate__")
    if uid is None:
        raise TypeError(f"objects of {record.name} cannot be saved: their C++ says no def_pickle")
    return added.record(uid).returns


def _plain_tensor(x: Any) -> Any:
    """A buffer without what Python has written on it, which files have no place for."""
    if x is None or not getattr(x, "__dict__", None):
        return x
    return x.detach().requires_grad_(x.requires_grad)


def _library_class(m: Module) -> type:
    for c in type(m).__mro__:
        if getattr(flambeau.nn, c.__name__, None) is c or _inner(c):
            return c
    raise TypeError(f"jit.save: {type(m).__name__} is not part of the script")


def _inner(c: type) -> bool:
    """A module inside of public ones, by its name below `flambeau.nn.modules`."""
    return c.__name__ in _INNER and getattr(
        flambeau.nn.modules.linear, c.__name__, None
    ) is c  # fmt: skip


_INNER = ("NonDynamicallyQuantizableLinear",)


def _constants(m: Module, record: Class) -> dict[str, Any]:
    """What its code holds as numbers and texts, for those who ask the module."""
    out = {}
    for n, x in vars(m).items():
        own = n in record.attributes or module_state(n) or n.startswith("_script_")
        if own or hasattr(type(m), n) or isinstance(x, flambeau.Tensor):
            continue
        with contextlib.suppress(TypeError):
            out[n] = _field(x)
    return out


def _class_named(name: str) -> type:
    found = getattr(flambeau.nn, name, None)
    if found is None and name in _INNER:
        found = getattr(flambeau.nn.modules.linear, name)
    if not (isinstance(found, type) and issubclass(found, Module)):
        raise ValueError(f"jit.load: there is no module {name!r} in flambeau.nn")
    return found


def _field(x: Any) -> Any:
    """An attribute of a module of the package as data."""
    name = str(getattr(x, "__name__", ""))
    if name in _ACTIVATIONS:
        for kind, where in (("functional", flambeau.nn.functional), ("function", flambeau)):
            if getattr(where, name, None) is x:
                return {kind: name}
    if isinstance(x, tuple):
        return {"tuple": [_field(y) for y in x]}
    if isinstance(x, list):
        return {"list": [_field(y) for y in x]}
    if x is None or isinstance(x, (*_PLAIN, flambeau.Tensor, flambeau.dtype, flambeau.device)):
        return x
    raise TypeError(f"jit.save: a {type(x).__name__} in a module of flambeau.nn is no data")


def _set_fields(m: Module, fields: Mapping[str, Any]) -> None:
    for n, x in fields.items():
        if not n.isidentifier() or module_state(n) or n.startswith(("__", "_script_")):
            raise ValueError(f"a module has a field {n!r}")
        m.__dict__[n] = _field_read(x)


def _field_read(x: Any) -> Any:
    if isinstance(x, dict):
        if len(x) != 1:
            raise ValueError("jit.load: a field of a module is malformed")
        ((kind, value),) = x.items()
        if kind in ("tuple", "list"):
            items = [_field_read(y) for y in value]
            return tuple(items) if kind == "tuple" else items
        if kind in ("functional", "function") and value in _ACTIVATIONS:
            return getattr(flambeau.nn.functional if kind == "functional" else flambeau, value)
        raise ValueError(f"jit.load: a field {x!r} of a module is malformed")
    return x


_ACTIVATIONS = ("relu", "gelu", "tanh", "sigmoid", "celu", "elu", "silu", "selu", "mish", "relu6")


def write(obj: Any, stream: Any, extra: Mapping[str, Any] | None) -> None:
    """Writes a scripted function or module to a binary stream."""
    program: Program = obj._program if isinstance(obj, ScriptFunction) else obj._script_program
    writer = _Writer(program, obj.modules() if isinstance(obj, Module) else ())
    if any(p.hosts for p in writer.programs):
        used = sorted(_hosts_called(writer.unit))
        if used:
            raise RuntimeError(
                f"jit.save: {used[0]} is left to Python (@jit.ignore) and cannot be saved; "
                "mark it @jit.unused, or leave it out"
            )
    root: dict[str, Any] = (
        {"function": obj._function_name, "constants": obj._constants}
        if isinstance(obj, ScriptFunction)
        else {"module": writer.module(obj)}
    )
    state = Parts()
    flambeau.save({"objects": writer.objects, "root": root}, state)
    out = ArchiveWriter(stream)
    out.add("format.json", json.dumps({"format": _FORMAT, "version": VERSION}).encode())
    out.add("code.txt", writer.code.encode())
    out.add_parts("state", state.parts)
    for name, data in (extra or {}).items():
        out.add(f"extra/{name}", data.encode() if isinstance(data, str) else bytes(data))
    out.close()


def _hosts_called(unit: Unit) -> set[str]:
    return {
        n.target.partition(".")[2] for f in unit.functions.values() for n in f.walk()
        if n.target.startswith("host.")
    }  # fmt: skip


def save(obj: Any, f: Any, extra: Mapping[str, Any] | None = None) -> None:
    """Writes to a path or a binary stream."""
    if isinstance(f, (str, os.PathLike)):
        with atomic_file(os.fspath(f)) as stream:
            write(obj, stream, extra)
    else:
        write(obj, f, extra)


def to_bytes(obj: Any, extra: Mapping[str, Any] | None = None) -> bytes:
    """The bytes of the file."""
    out = io.BytesIO()
    write(obj, out, extra)
    return out.getvalue()


# -- reading --------------------------------------------------------------------------------------


def load(f: Any, map_location: Any = None, extra: dict[str, Any] | None = None) -> Any:
    """The function or module of a file.

    Raises:
        RuntimeError: the file is not a sound one of `jit.save`; says why.
    """
    if isinstance(f, (str, os.PathLike)):
        path = os.fspath(f)
        if not os.path.exists(path):
            raise ValueError(f"The provided filename {path} does not exist")
        if os.path.isdir(path):
            raise ValueError(f"The provided filename {path} is a directory")
        with open(path, "rb") as stream:
            return _read(stream, map_location, extra)
    return _read(io.BytesIO(f.read()), map_location, extra)


def _read(stream: Any, map_location: Any, extra: dict[str, Any] | None) -> Any:
    try:
        reader = ArchiveReader(stream)
    except RuntimeError as error:
        raise RuntimeError(f"jit.load: this is not a file of jit.save: {error}") from None
    names = reader.names()
    if "format.json" not in names:
        what = (
            "a TorchScript file of PyTorch, which is not read yet"
            if any(n.endswith("constants.pkl") for n in names)
            else "another archive (is it a checkpoint? torch.load reads those)"
        )
        raise RuntimeError(f"jit.load: this is not a file of jit.save, but {what}")
    try:
        head = json.loads(reader.read("format.json"))
        if head.get("format") != _FORMAT:
            raise ValueError("format.json names another format")
        if head.get("version") != VERSION:
            raise ValueError(f"version {head.get('version')} of the format is not known here")
        code = reader.read("code.txt").decode()
        unit = text.read(code)
        state = read_archive(reader.inside("state"), map_location)
        made = _Objects(unit, code, state["objects"])
        made.check()
        root = state["root"]
        if "function" in root:
            if root["function"] not in unit.functions:
                raise ValueError(f"there is no function {root['function']!r}")
            given = root["constants"]
            if not all(isinstance(x, flambeau.Tensor) for x in given):
                raise ValueError("constants of a function are tensors")
            out: Any = ScriptFunction(made.program, root["function"], constants=given)
        else:
            out = made.module(root["module"])
    except _DAMAGES as error:
        why = str(error) or type(error).__name__
        raise RuntimeError(f"jit.load: the file is damaged: {why}") from error
    for name in extra if extra is not None else ():
        entry = f"extra/{name}"
        if entry in names and extra is not None:
            extra[name] = reader.read(entry)
    return out


#: what descriptions that make no sense provoke
_DAMAGES = (
    ValueError, LookupError, TypeError, AttributeError, SyntaxError, AssertionError, RecursionError,
    StopIteration, OverflowError, MemoryError,
)  # fmt: skip


class _Objects:
    """The objects of a file, made when they are first asked for."""

    def __init__(self, unit: Unit, code: str, described: Any) -> None:
        self.unit, self.described = unit, described
        python = {c.name: _python_class(c) for c in unit.classes.values()}
        self.program = Program(unit, python, {}, {}, trusted=False, written=code)
        for c in unit.classes.values():
            if c.kind == "class":
                for n, f in c.methods.items():
                    setattr(python[c.name], n, _method(self.program, f))
                for n in [n.removeprefix("__get_") for n in c.methods if n.startswith("__get_")]:
                    given, taken = (vars(python[c.name]).get(f"__{x}_{n}") for x in ("get", "set"))
                    setattr(python[c.name], n, property(given, taken))
        self._made: dict[int, Any] = {}
        self._open: set[int] = set()

    def check(self) -> None:
        """All code can be made: targets are known, calls have their functions."""
        for c in self.unit.classes.values():
            for f in c.methods.values():
                if f not in self.unit.functions:
                    raise ValueError(f"{c.name} names a function {f!r} that is not there")
        for name in sorted({n.target for f in self.unit.functions.values() for n in f.walk()}):
            if is_added(name) and not is_there(name):
                raise RuntimeError(
                    f"jit.load: the file calls the operator {name}, which is not there; define it "
                    "before (torch.library)"
                )
        for f in self.unit.functions:
            self.program.entry(f)

    def described_at(self, number: Any) -> Any:
        if type(number) is not int or not 0 <= number < len(self.described):
            raise ValueError(f"there is no object {number!r}")
        if number in self._open:
            raise ValueError("a module contains itself")
        return self.described[number]

    def module(self, number: int) -> Any:
        """A module by its number."""
        if number in self._made:
            return self._made[number]
        given = self.described_at(number)
        self._open.add(number)
        made: Any
        if "library" in given:
            cls: Any = _class_named(given["library"])
            made = cls.__new__(cls)
            Module.__init__(made)
            _set_fields(made, given["fields"])
        else:
            record = self.unit.classes[given["class"]]
            if record.kind != "module":
                raise ValueError(f"{record.name} is no module")
            made = RecursiveScriptModule(self.program, record)
            constants = given.get("constants", {})
            if any(hasattr(RecursiveScriptModule, n) for n in constants):
                raise ValueError(f"constants {sorted(constants)} of a module")
            _set_fields(made, constants)
            for n, x in given["attributes"].items():
                made.__dict__[n] = self.value(x, record.attributes[n])
        for table in ("parameters", "buffers"):
            for n, x in given[table].items():
                if x is not None and not isinstance(x, flambeau.Tensor):
                    raise ValueError(f"{n} is no tensor")
                getattr(made, f"_{table}")[n] = x
        for n, child in given["children"].items():
            made._modules[n] = None if child is None else self.module(child)
        made.__dict__["_non_persistent_buffers_set"] = set(given["transient"])
        made.__dict__["training"] = bool(given["training"])
        if "library" in given and given["class"]:
            made = library_module(made, self.program, self.unit.classes[given["class"]])
        self._open.discard(number)
        self._made[number] = made
        return made

    def value(self, x: Any, t: Type) -> Any:
        """A value of a type from its description."""
        if x is None:
            if not (t.optional or t.base in ("None", "Any")):
                raise ValueError(f"None for a {t}")
            return None
        record = self.unit.classes.get(t.base)
        if record is not None:
            return self._of_class(x, record)
        if isinstance(x, dict) and "object" in x:
            given = self.described_at(x["object"])
            return self._of_class(x, self.unit.classes[given["class"]])
        if t.base == "Tuple":
            made: Any = tuple(self.value(y, m) for y, m in zip(x, t.items, strict=True))
        elif t.is_list:
            made = [self.value(y, t.element) for y in x]
        elif t.base == "Dict":
            key, item = t.items
            made = {self.value(k, key): self.value(v, item) for k, v in x["pairs"]}
        elif t.base in ("Layout", "MemoryFormat"):
            made = getattr(flambeau, str(x["name"]).removeprefix("torch."))
        else:
            made = x
        return runtime.taken(made, t, self.program.python)

    def _of_class(self, x: Any, record: Class) -> Any:
        cls: Any = self.program.python[record.name]
        if record.kind == "enum":
            return cls[x]
        if record.kind == "tuple":
            pairs = zip(x, record.attributes.values(), strict=True)
            return cls(*(self.value(y, t) for y, t in pairs))
        number = x["object"]
        if number in self._made:
            return self._made[number]
        given = self.described_at(number)
        if record.kind == "native":
            made = self._made[number] = cls._restore(
                self.value(given["state"], _state_type(record))
            )
            return made
        made = self._made[number] = object.__new__(cls)
        for n, y in given["attributes"].items():
            made.__dict__[n] = self.value(y, record.attributes[n])
        return made


def _python_class(c: Class) -> type:
    """A class of Python that stands for one of a file."""
    name = c.name.rpartition(".")[2]
    if c.kind == "tuple" and c.name == qualified(PackedSequence):
        return PackedSequence
    if c.kind == "tuple":
        fields = list(c.attributes)
        defaults = [c.defaults[n] for n in fields if n in c.defaults]
        return collections.namedtuple(name, fields, defaults=defaults)  # noqa: PYI024
    if c.kind == "native":
        return class_named(c.name)
    if c.kind == "enum":
        return enum.Enum(name, dict(c.defaults))  # type: ignore[return-value]
    return type(name, (), {"__module__": "flambeau.jit", "_script_record": c})


def _method(program: Program, function: str) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return program.entry(function)(self, *args, **kwargs)

    return call


__all__ = ["CompileError", "load", "save", "to_bytes"]
