"""What `jit.script` gives: functions and modules that run their unit, and show it.

Owns `ScriptFunction`, `RecursiveScriptModule` and how arguments from Python are checked. A scripted
module is a module like others: its weights are the tensors of the module it was made from.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import flambeau
from flambeau import _C
from flambeau.jit._marks import AttributeValue
from flambeau.jit._module import ScriptModule
from flambeau.nn import Module
from flambeau.nn.utils.rnn import PackedSequence

from .._ir.errors import CompileError
from .._ir.graph import Function, show
from .._ir.types import Type
from . import runtime
from .annotations import TypeError_
from .calls import default_value
from .emit import Emitter
from .forms import shown_type, unplaced
from .interfaces import unlike
from .machine import Machine
from .runtime import ArgumentError, ScriptError
from .sources import NoSource
from .unit import Class, Unit


class Program:
    """A unit that runs: its code, and the Python classes of its values."""

    def __init__(
        self, unit: Unit, python: Mapping[str, type], hosts: Mapping[str, Any],
        errors: Mapping[str, Any], trusted: bool = True, written: str | None = None,
    ) -> None:  # fmt: skip
        self._written = written  # the unit's text, where it was read from one
        self.unit, self.python, self.hosts, self.errors = unit, python, hosts, errors
        self.trusted = trusted
        self.emitter = Emitter(unit, python, hosts, errors, trusted)
        self._entries: dict[str, Callable[..., Any]] = {}
        self._machine: Machine | None = None

    def entry(self, name: str) -> Callable[..., Any]:
        """A function of the unit as Python calls it: defaults, arguments checked."""
        found = self._entries.get(name)
        if found is None:
            found = self._entries[name] = self._made(name)
        return found

    @property
    def machine(self) -> Machine:
        """The unit as the machine has it."""
        if self._machine is None:
            self._machine = Machine(
                self.unit, self.emitter, self.python, self.trusted, self._written
            )
            self._written = None
        return self._machine

    def _made(self, name: str) -> Callable[..., Any]:
        if self.machine.reason(name) is not None:
            return self._entry(name)
        params = self.unit.functions[name].params
        given = [p for p in params if p.default is not None]
        plain = not any(p.kwonly for p in params) and params[len(params) - len(given) :] == given
        defaults = tuple(default_value(p.default) for p in given if p.default) if plain else ()
        return _C._ScriptCall(
            self.machine.program, name, lambda bind: self._entry(name, bind), runtime.TRACERS,
            defaults, self.machine.changes,
        )  # fmt: skip

    def _entry(self, name: str, bind: bool = False) -> Callable[..., Any]:
        """The function for Python; `bind`: its arguments, checked and in order, as a tuple."""
        f = self.unit.functions[name]
        self.emitter.function(name)
        space = self.emitter.space
        given = f.params
        args: list[ast.arg] = []
        kwonly: list[ast.arg] = []
        defaults: list[ast.expr] = []
        kw_defaults: list[ast.expr | None] = []
        body: list[ast.stmt] = []
        short = name.rpartition(".")[2]
        label = f"entry {name}"
        for i, p in enumerate(given):
            (kwonly if p.kwonly else args).append(ast.arg(p.name, None))
            if p.default is not None:
                key = f"{label} default {i}"
                space[key] = default_value(p.default)
                read = ast.Name(key, ast.Load())
                if p.kwonly:
                    kw_defaults.append(read)
                else:
                    defaults.append(read)
            elif p.kwonly:
                kw_defaults.append(None)
            if p.name == "self" and i == 0 and "." in p.type.base:
                continue
            key = f"{label} check {i}"
            space[key] = _check(short, i, p.name, p.type, f, self.python)
            test = (
                "_0 is not None and _0.__class__ is not _1"
                if p.type.optional
                else ("_0.__class__ is not _1")
            )
            kind = _EXACT.get(p.type.base)
            convert = "_0 = _2(_0)"
            text = f"if {test}:\n  {convert}" if kind else convert
            tree = unplaced(ast.parse(text).body[0])
            names = {"_0": p.name, "_1": f"exact {p.type.base}", "_2": key}
            if kind:
                space[f"exact {p.type.base}"] = kind
            for n in ast.walk(tree):
                if isinstance(n, ast.Name):
                    n.id = names[n.id]
            body.append(tree)
        read_all: list[ast.expr] = [ast.Name(p.name, ast.Load()) for p in given]
        if bind:
            body.append(ast.Return(ast.Tuple(read_all, ast.Load())))
        else:
            body.append(ast.Return(ast.Call(ast.Name(f"fn.{name}", ast.Load()), read_all, [])))
        signature = ast.arguments([], args, None, kwonly, kw_defaults, None, defaults)
        tree = ast.FunctionDef(_identifier(short), signature, body, [], None)
        for n in ast.walk(tree):
            if "lineno" in n._attributes:
                n.lineno = n.end_lineno = f.line or 1  # type: ignore[attr-defined]
                n.col_offset = n.end_col_offset = 0  # type: ignore[attr-defined]
        made = self.emitter.compiled(tree, f.file, label)
        made.__module__ = "flambeau.jit"
        return made


_EXACT: dict[str, type] = {
    "Tensor": flambeau.Tensor, "int": int, "float": float, "bool": bool, "str": str,
}  # fmt: skip


def _identifier(name: str) -> str:
    return name if name.isidentifier() else "call"


def _check(
    function: str, i: int, name: str, t: Type, f: Function, python: Mapping[str, type]
) -> Callable[[Any], Any]:
    def check(x: Any) -> Any:
        try:
            return runtime.taken(x, t, python)
        except TypeError:
            raise ArgumentError(
                f"{function}() Expected a value of type '{shown_type(t)}' for argument '{name}' "
                f"but instead found type '{runtime.shown(x)}'.\nPosition: {i}\nDeclaration: "
                f"{declaration(f)}"
            ) from None

    return check


def declaration(f: Function) -> str:
    """The head of a function, for messages."""
    parts = []
    for p in f.params:
        default = f"={default_value(p.default)!r}" if p.default is not None else ""
        parts.append(f"{shown_type(p.type)} {p.name}{default}")
    return f"{f.name.rpartition('.')[2]}({', '.join(parts)}) -> {shown_type(f.returns)}"


def _archive() -> Any:
    """Files, which are read and written below this and so know it."""
    return importlib.import_module("flambeau._script.archive")


class _Shown:
    """What can be looked at of a function of a unit."""

    _program: Program
    _function_name: str

    @property
    def graph(self) -> Graph:
        """The function in the IR: typed values, one node to a line."""
        return Graph(self._program, self._function_name)

    inlined_graph = graph

    @property
    def code(self) -> str:
        """The function as Python-like text."""
        return self._program.emitter.shown(self._function_name) + "\n"

    @property
    def schema(self) -> str:
        """Name, parameters and result."""
        return declaration(self._program.unit.functions[self._function_name])


class Graph:
    """A function of a script to look at: `str` is its text."""

    def __init__(self, program: Program, name: str, inlined: bool = False) -> None:
        self._program, self.name = program, name
        self.function = program.unit.functions[name]
        if inlined:
            from .inlining import inlined as written_out

            self.function = written_out(program.unit, name)

    def __str__(self) -> str:
        return show(self.function)

    __repr__ = __str__

    def nodes(self) -> list[Any]:
        """The nodes in order, those of nested blocks after their owner."""
        return list(self.function.walk())

    def inputs(self) -> list[Any]:
        """The values that come in."""
        return list(self.function.inputs)


class ScriptFunction(_Shown, _C._ScriptFace):
    """A function that `jit.script` or `jit.trace` has made.

    >>> @torch.jit.script
    ... def f(x: torch.Tensor, n: int) -> torch.Tensor:
    ...     return x * n
    """

    def __init__(
        self, program: Program, name: str, source: Any = None, constants: Sequence[Any] = ()
    ) -> None:
        self._program, self._function_name = program, name
        self._call, self._tracers = program.entry(name), runtime.TRACERS
        #: tensors that a trace holds besides its arguments, given to its last parameters
        self._constants = list(constants)
        if constants:
            names = [p.name for p in program.unit.functions[name].params[-len(constants) :]]
            given = dict(zip(names, constants, strict=True))
            self._call = functools.partial(self._call, **given)
        self._script_source = source
        if source is not None:
            functools.update_wrapper(self, source)
        else:
            self.__name__ = name.rpartition(".")[2]

    def _traced(self, *args: Any, **kwargs: Any) -> Any:
        """A call while somebody traces, perhaps in this thread."""
        tracer = runtime.tracer()
        if tracer is not None:
            return tracer.script_call(self, args, kwargs)
        return self._call(*args, **kwargs)

    @property
    def name(self) -> str:
        """The function's name."""
        return self._function_name.rpartition(".")[2]

    @property
    def qualified_name(self) -> str:
        """The name with that of its module."""
        return self._function_name

    def save(self, f: Any, _extra_files: Any = None) -> None:
        """Write the function to a file that `jit.load` reads."""
        _archive().save(self, f, _extra_files)

    def save_to_buffer(self, _extra_files: Any = None) -> bytes:
        """The bytes that `save` writes."""
        made: bytes = _archive().to_bytes(self, _extra_files)
        return made

    def __repr__(self) -> str:
        return f"<ScriptFunction {self.qualified_name}>"

    def __reduce__(self) -> Any:
        raise TypeError("a ScriptFunction cannot be pickled; write it with jit.save")

    def __deepcopy__(self, memo: Any) -> ScriptFunction:
        return self


class ScriptMethod(_Shown):
    """A method of a scripted module, bound to it."""

    def __init__(self, program: Program, name: str, owner: Any) -> None:
        self._program, self._function_name = program, name
        self.owner = owner
        self._call = program.entry(name)
        self.name = name.rpartition(".")[2]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(self.owner, *args, **kwargs)


class RecursiveScriptModule(ScriptModule):
    """A module that runs its script.

    Parameters, buffers and submodules are as of any module; attributes that the script sets are
    attributes of this object. `original_name` is the name of the class it was made from.
    """

    _script_program: Program
    _script_record: Class

    def __init__(self, program: Program, record: Class) -> None:
        super().__init__()
        self.__dict__["_script_program"] = program
        self.__dict__["_script_record"] = record

    def __setattr__(self, name: str, value: Any) -> None:
        record = self.__dict__.get("_script_record")
        if record is not None and record.places.get(name) == "_modules":
            unit = self._script_program.unit
            wanted = unit.classes.get(record.attributes[name].base) if (
                name in record.attributes
            ) else None  # fmt: skip
            if wanted is not None and wanted.kind == "interface":
                self._check_interface(name, value, wanted)
        if record is not None and f"__set_{name}" in record.methods:
            self._script_program.entry(record.methods[f"__set_{name}"])(self, value)
            return
        if record is not None and f"__get_{name}" in record.methods:
            raise AttributeError(f"property {name!r} of {self.original_name} has no setter that a "
                                 "script calls")  # fmt: skip
        super().__setattr__(name, value)

    def _check_interface(self, name: str, value: Any, wanted: Class) -> None:
        what = f"{self.original_name}.{name}"
        if not isinstance(value, RecursiveScriptModule):
            raise TypeError(
                f"{what}: expected a scripted module of {wanted.name.rpartition('.')[2]}, got "
                f"{type(value).__name__}; make one with jit.script"
            )
        own = self._script_program.unit
        why = unlike(value._script_program.unit, value._script_record, own, wanted)
        if why:
            raise TypeError(f"{what}: {why}")

    @property
    def original_name(self) -> str:
        """The name of the class that the script was made from."""
        return self._script_record.name.rpartition(".")[2]

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """The name of the original class."""
        return f"original_name={self.original_name}"

    def __getattr__(self, name: str) -> Any:
        record = self.__dict__.get("_script_record")
        if record is not None:
            method = record.methods.get(name)
            if method is not None:
                return ScriptMethod(self.__dict__["_script_program"], method, self)
            getter = record.methods.get(f"__get_{name}")
            if getter is not None:  # of a property
                return self.__dict__["_script_program"].entry(getter)(self)
            own = inspect.getattr_static(self.__dict__.get("_script_class"), name, None)
            if isinstance(own, property) and own.fget is not None:  # that no script reads
                return own.fget(self)
        return super().__getattr__(name)

    @property
    def _script_forward(self) -> Any:
        call = self.__dict__.get("_script_call")
        if call is None:
            name = self._script_record.methods.get("forward")
            if name is None:
                raise NotImplementedError(f"{self.original_name} has no forward in its script")
            call = self._script_program.entry(name)
            self.__dict__["_script_call"] = call
        return call

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the script's `forward`."""
        if runtime.TRACERS and (tracer := runtime.tracer()) is not None:
            return tracer.module_call(self, args, kwargs)
        if args and type(args[0]) is PackedSequence:
            packed = self._script_record.methods.get("forward_packed")
            if packed is not None:
                return self._script_program.entry(packed)(self, *args, **kwargs)
        return self._script_forward(self, *args, **kwargs)

    @property
    def graph(self) -> Graph:
        """`forward` in the IR."""
        return Graph(self._script_program, self._script_record.methods["forward"])

    @property
    def inlined_graph(self) -> Graph:
        """`forward` in the IR, with what it calls written out."""
        name = self._script_record.methods["forward"]
        return Graph(self._script_program, name, inlined=True)

    @property
    def code(self) -> str:
        """`forward` as Python-like text."""
        return self._script_program.emitter.shown(self._script_record.methods["forward"]) + "\n"

    def save(self, f: Any, _extra_files: Any = None) -> None:
        """Write the module to a file that `jit.load` reads."""
        _archive().save(self, f, _extra_files)

    def save_to_buffer(self, _extra_files: Any = None) -> bytes:
        """The bytes that `save` writes."""
        made: bytes = _archive().to_bytes(self, _extra_files)
        return made

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("a scripted module cannot be pickled; write it with jit.save")

    def __deepcopy__(self, memo: dict[int, Any]) -> RecursiveScriptModule:
        import copy

        made = RecursiveScriptModule(self._script_program, self._script_record)
        memo[id(self)] = made
        for key, value in self.__dict__.items():
            if key not in ("_script_program", "_script_record", "_script_call"):
                made.__dict__[key] = copy.deepcopy(value, memo)
        return made

    def __copy__(self) -> RecursiveScriptModule:
        made = RecursiveScriptModule(self._script_program, self._script_record)
        made.__dict__.update({k: v for k, v in self.__dict__.items() if k != "_script_call"})
        return made

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._script_record.methods})

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Any:
        return iter(self._modules.values())

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, key: Any) -> Any:
        names = list(self._modules)
        if isinstance(key, slice):
            return [self._modules[n] for n in names[key]]
        return self._modules[key if isinstance(key, str) else names[key]]

    def __contains__(self, key: Any) -> bool:
        return key in self._modules

    def keys(self) -> Any:
        """Names of submodules."""
        return self._modules.keys()

    def items(self) -> Any:
        """Names and submodules."""
        return self._modules.items()

    def values(self) -> Any:
        """Submodules."""
        return self._modules.values()


_library_classes: dict[type, type] = {}


def library_module(m: Module, program: Program, record: Class) -> Module:
    """A module of the package that runs as it is, as a part of a script."""
    base: Any = type(m)
    cls: Any = _library_classes.get(base)
    if cls is None:
        space = {
            "__module__": base.__module__, "__doc__": base.__doc__,
            "original_name": property(lambda self: base.__name__),
            "save": RecursiveScriptModule.save,
            "save_to_buffer": RecursiveScriptModule.save_to_buffer,
            "__reduce_ex__": RecursiveScriptModule.__reduce_ex__,
            "__deepcopy__": _copied_library, "_script_base": base,
        }  # fmt: skip
        cls = _library_classes[base] = type(base.__name__, (base, ScriptModule), space)
    out: Any = cls.__new__(cls)
    out.__dict__.update(vars(m))
    for table in ("_parameters", "_buffers", "_modules"):
        out.__dict__[table] = dict(getattr(m, table))
    out.__dict__["_script_program"], out.__dict__["_script_record"] = program, record
    made: Module = out
    return made


def _copied_library(self: Any, memo: dict[int, Any]) -> Any:
    import copy

    cls: Any = type(self)
    out: Any = cls.__new__(cls)
    memo[id(self)] = out
    for key, value in vars(self).items():
        kept = key.startswith("_script_")
        out.__dict__[key] = value if kept else copy.deepcopy(value, memo)
    return out


def script_error(error: Exception, lines: Mapping[str, Sequence[str]]) -> ScriptError:
    """The error that a user sees: message, line, a caret."""
    if isinstance(error, CompileError) and not error.file:
        return ScriptError(f"jit.script: {error.reason}")
    if isinstance(error, CompileError):
        return ScriptError(error.show(lines.get(error.file, _file_lines(error.file))))
    return ScriptError(str(error))


def _file_lines(file: str) -> Sequence[str]:
    import linecache

    return [x.rstrip("\n") for x in linecache.getlines(file)]


def _program(compiler: Any) -> Program:
    unit = compiler.finish()
    return Program(unit, compiler.python, compiler.hosts, compiler.errors, compiler.trusted)


REFUSALS = (CompileError, NoSource, TypeError_)


def script_function(f: types.FunctionType) -> ScriptFunction:
    """The script of a Python function.

    Raises:
        ScriptError: it is not in the language; the message shows the line.
    """
    from .compiler import Compiler

    compiler = Compiler()
    try:
        made = compiler.function(f)
    except REFUSALS as error:
        raise script_error(error, compiler.lines) from None
    program = _program(compiler)
    return ScriptFunction(program, made.name, f)


def script_class(cls: type) -> type:
    """The class itself, once it is known to be one that scripts can use.

    Raises:
        ScriptError: a method is not in the language; the message shows the line.
    """
    from .compiler import Compiler

    compiler = Compiler()
    if issubclass(cls, Module):
        raise ScriptError(f"jit.script: {cls.__name__} is a module's class; script an object of it")
    cls._script_class = True  # type: ignore[attr-defined]
    try:
        record = compiler.class_of(cls)
        if record is None:
            raise ScriptError(f"jit.script: {cls.__name__} cannot be a class of scripts")
        if record.kind == "class":
            compiler.all_methods(cls)
    except REFUSALS as error:
        raise script_error(error, compiler.lines) from None
    return cls


def script_module(m: Module) -> RecursiveScriptModule:
    """The script of a module and its submodules; weights are shared with it.

    Raises:
        ScriptError: a method is not in the language; the message shows the line.
    """
    from .compiler import Compiler

    compiler = Compiler()
    try:
        record = compiler.root(m)
        for child in m.modules():
            known = compiler.module(child)
            if known.kind != "library":
                for name in [] if is_scripted(child) else compiler.exported(child):
                    if name != "forward":
                        compiler.method(known.type, name, None, None)
    except REFUSALS as error:
        raise script_error(error, compiler.lines) from None
    program = _program(compiler)
    del record
    made: dict[int, Module] = {}
    return _wrapped(m, program, compiler, made)  # type: ignore[return-value]


def adopted_module(m: Any, program: Program, record: Class) -> Any:
    """A scripted module as a part of another program: the same tensors and attributes."""
    if record.kind == "library":
        return library_module(m, program, record)
    out = RecursiveScriptModule(program, record)
    kept = ("_script_program", "_script_record", "_script_call", "_modules")
    out.__dict__.update({k: x for k, x in vars(m).items() if k not in kept})
    for n, c in m._modules.items():
        if c is not None:
            out._modules[n] = _adopted_child(c, program, m, record)
    return out


def _adopted_child(c: Any, program: Program, m: Any, record: Class) -> Any:
    old, new = m._script_record.name, record.name
    suffix = new[len(old) :] if new.startswith(old) else ""
    found = program.unit.classes.get(f"{c._script_record.name}{suffix}") or c._script_record
    return adopted_module(c, program, found)


def _wrapped(m: Module, program: Program, compiler: Any, made: dict[int, Module]) -> Module:
    """The scripted module of a module: same tensors, attributes copied."""
    if id(m) in made:
        return made[id(m)]
    record = compiler.module(m)
    if isinstance(m, RecursiveScriptModule):
        adopted = RecursiveScriptModule(program, record)
        kept = ("_script_program", "_script_record", "_script_call", "_modules")
        adopted.__dict__.update({k: x for k, x in vars(m).items() if k not in kept})
        made[id(m)] = adopted
        for n, c in m._modules.items():
            adopted._modules[n] = None if c is None else _wrapped(c, program, compiler, made)
        return adopted
    if record.kind == "library":
        made[id(m)] = library_module(m, program, record)
        return made[id(m)]
    out = RecursiveScriptModule(program, record)
    made[id(m)] = out
    out._parameters.update(m._parameters)
    out._buffers.update(m._buffers)
    out.__dict__["_non_persistent_buffers_set"] = set(m._non_persistent_buffers_set)
    for n, c in m._modules.items():
        out._modules[n] = None if c is None else _wrapped(c, program, compiler, made)
    out.__dict__["training"] = m.training
    out.__dict__["_script_class"] = type(m)
    for n in record.attributes:
        if n in vars(m) and n not in out.__dict__:
            x = vars(m)[n]
            out.__dict__[n] = _copied(x.value if isinstance(x, AttributeValue) else x)
    for n, x in compiler.statics_of(record).items():
        if n not in out.__dict__:
            out.__dict__[n] = x
    return out


def _copied(x: Any) -> Any:
    if isinstance(x, list):
        return [_copied(y) for y in x]
    if isinstance(x, dict):
        return {k: _copied(v) for k, v in x.items()}
    return x


def is_scripted(obj: Any) -> bool:
    """It has been made by this package's scripts."""
    return isinstance(obj, (ScriptFunction, ScriptMethod, RecursiveScriptModule))


def source_function(obj: Any) -> Any:
    """The plain function of a function or bound method."""
    return inspect.unwrap(obj)
