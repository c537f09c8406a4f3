"""From Python objects to a unit: functions, classes, modules, each once.

Owns what a unit has been made of: which Python function or class each of its names was, what is
left to Python, the attributes of modules and when two of them share a class. Types bodies when they
are called for; what it makes is in `unit`.
"""

from __future__ import annotations

import ast
import inspect
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import flambeau
from flambeau.jit._marks import AttributeValue
from flambeau.nn import Module

from .._ir.errors import CompileError
from .._ir.typed import Expr
from .._ir.types import BOOL, NONE, TENSOR, Param, Type
from . import signatures
from .annotations import ANY, TypeError_, type_of, type_of_value
from .attributes import CONTAINERS, Attributes
from .calls import Given
from .classes import Classes
from .hooked import Hooked
from .hooks import PLAIN, hooks_of
from .made import (
    SEQUENTIAL,
    Host,
    Library,
    Made,
    Opening,
    class_key,
    comment_types,
    guess,
    hinted_type,
    longer,
    looker,
    module_state,
    names_given,
    naming,
    open_parameters,
    ours,
    qualified,
    raises,
)
from .meaning import constant
from .merging import merged
from .overloads import Declared, Overloads, star_of, star_param
from .sources import NoSource, Source, forget, names_of, source_of
from .typer import ScriptTyper
from .unit import Class, Signature, Unit

#: arguments of a call, by position and by name
Given_ = tuple[Sequence[Expr], Mapping[str, Expr]]


class Compiler(Classes, Attributes, Hooked, Overloads):
    """Makes one unit."""

    def __init__(self) -> None:
        forget()
        self.unit = Unit()
        self.hosts: dict[str, Callable[..., Any]] = {}
        self.errors: dict[str, type[BaseException]] = {}
        self.python: dict[str, type] = {}  # classes of the unit
        self.lines: dict[str, Sequence[str]] = {}
        self._functions: dict[Any, Signature] = {}
        self._names: dict[str, Any] = {}
        self._open: set[str] = set()
        self._classes: dict[Any, Made] = {}
        self._made: dict[str, Made] = {}
        self._keys: dict[Any, Made] = {}
        self._declared: dict[str, Declared] = {}
        self.trusted = True  # nothing of it came from a file
        self._adopted: dict[int, tuple[Any, Callable[[str], str]]] = {}
        self._of_module: dict[int, tuple[Module, Class]] = {}

    # -- functions --------------------------------------------------------------------------------

    def function(
        self, f: types.FunctionType, node: ast.AST | None = None, typer: Any = None,
        given: Given_ | None = None,
    ) -> Signature:  # fmt: skip
        """The function of the unit made from a Python function; one for each kind of arguments
        where those of our own functions are of any kind."""
        f = inspect.unwrap(f)
        types_ = self.types_given(f, given, 0)
        key: Any = (f, tuple(types_.items())) if types_ else f
        chosen = self.chosen(f, None, given, node, typer)
        if chosen is not None:
            key = (f, chosen[0])
        known = self._functions.get(key)
        if known is None:
            name = self.name_for(qualified(f), key)
            if chosen is not None:
                self._declared[name] = chosen[1]
            return self._typed(name, key, f, None, None, node, typer, types_)
        self._check_known(known, node, typer)
        return known

    def _check_known(self, known: Signature, node: ast.AST | None, typer: Any) -> None:
        if known.name in self._open and known.returns.base == "" and typer is not None:
            typer.fail(f"{known.name} calls itself: declare the type of its result", node)

    def types_given(self, f: Any, given: Given_ | None, bound: int) -> dict[str, Type]:
        """Types of the arguments for the parameters that are declared `Any`."""
        if given is None:
            return {}
        args, kwargs = given
        names, star = open_parameters(f), star_of(f)
        stars = {star: kwargs[star].type} if star is not None and star in kwargs else {}
        if not names:
            return stars
        order = names_given(f, len(args) + bound)[bound:]
        values = {**dict(zip(order, args, strict=False)), **kwargs}
        defaults = f.__defaults__ or ()
        count = f.__code__.co_argcount
        left = dict(zip(names_given(f, count)[count - len(defaults) :], defaults, strict=True))
        out: dict[str, Type] = dict(stars)
        for name in names:
            e = values[name] if name in values else constant(left.get(name))
            if e is not None and e.op != "static":
                out[name] = e.type.plain()
        return out

    def name_for(self, name: str, obj: Any) -> str:
        """A name nobody else has."""
        made, n = name, 0
        while made in self._names and self._names[made] != obj:
            n += 1
            made = f"{name}_{n}"
        self._names[made] = obj
        return made

    def signature(
        self, f: types.FunctionType, source: Source, first: Type | None, name: str,
        given_types: Mapping[str, Type] | None = None,
    ) -> tuple[list[Param], Type | None]:  # fmt: skip
        """Parameters and declared result of a Python function."""
        node = source.tree
        assert isinstance(node, ast.FunctionDef)
        if name in self._declared:
            return self._declared[name]
        a = node.args
        if a.kwarg:
            raise CompileError(f"**{a.kwarg.arg} cannot be scripted; name the parameters",
                               source.file, a.kwarg)  # fmt: skip
        owner = self._made.get(first.base) if first is not None else None
        look = naming(owner.python if owner is not None else None, names_of(f))
        named = self.type_of_class
        comment, result = comment_types(source.comment)
        declared = dict(getattr(f, "__annotations__", {}))
        given = [*a.posonlyargs, *a.args]
        defaults: dict[str, Any] = dict(f.__kwdefaults__ or {})
        values = f.__defaults__ or ()
        defaults.update({p.arg: v for p, v in zip(given[len(given) - len(values):], values,
                                                  strict=True)})  # fmt: skip
        # Ours say Any where a flag decides; what a body gives says more.
        own = ours(f)
        params: list[Param] = []
        rest = given[1:] if first is not None else given
        if comment is not None and len(comment) == len(rest):
            declared.update({p.arg: t for p, t in zip(rest, comment, strict=True)})
            declared.setdefault("return", result)
        for i, p in enumerate([*given, *a.kwonlyargs]):
            if first is not None and i == 0:
                params.append(Param(p.arg, first))
                continue
            try:
                t = type_of(declared[p.arg], named, look) if p.arg in declared else TENSOR
            except TypeError_ as error:
                raise CompileError(f"parameter {p.arg!r}: {error}", source.file, p) from None
            default = Given(defaults[p.arg]) if p.arg in defaults else None
            if (
                p.arg in defaults
                and p.arg not in declared
                and not isinstance(defaults[p.arg], (flambeau.Tensor, type(None)))
            ):
                raise CompileError(
                    f"parameter {p.arg!r} has a default of type {type(defaults[p.arg]).__name__} "
                    "and no annotation: without one it is a Tensor", source.file, p,
                )  # fmt: skip
            if p.arg not in declared or (own and t == ANY):
                t = (given_types or {}).get(p.arg, TENSOR)
            params.append(Param(p.arg, t, default, i >= len(given)))
        if a.vararg:
            hint = declared.get(a.vararg.arg)
            item = type_of(hint, named, look) if hint is not None else None
            params.append(star_param(a, (given_types or {}).get(a.vararg.arg), item, source))
        returns = None
        if "return" in declared and not (own and "Any" in str(declared["return"])):
            try:
                returns = type_of(declared["return"], named, look)
            except TypeError_ as error:
                raise CompileError(f"result: {error}", source.file, node) from None
        return params, returns

    def _typed(
        self, name: str, key: Any, f: types.FunctionType, first: Type | None, owner: type | None,
        node: ast.AST | None, typer: Any, given_types: Mapping[str, Type] | None = None,
    ) -> Signature:  # fmt: skip
        try:
            source = source_of(f)
        except NoSource as error:
            if typer is not None:
                typer.fail(str(error), node)
            raise
        self.remember(source)
        params, returns = self.signature(f, source, first, name, given_types)
        if f is SEQUENTIAL and first is not None:
            params, returns = self._chained(first, params), None
        made = Signature(name, params, returns if returns is not None else Type(""))
        self._functions[key] = made
        self._open.add(name)
        try:
            assert isinstance(source.tree, ast.FunctionDef)
            body = ScriptTyper(
                self,
                source.tree,
                params,
                returns,
                source.file,
                naming(owner, names_of(f)),
                name,
                owner,
            )
            done = body.compile()
        except BaseException:
            del self._functions[key]
            raise
        finally:
            self._open.discard(name)
        made.returns = done.returns
        self.unit.functions[name] = done
        return made

    def declared(self, f: Any, node: ast.AST, typer: Any) -> Signature:
        """The signature of a function that is not looked into."""
        f = inspect.unwrap(f)
        try:
            source = source_of(f)
        except NoSource as error:
            typer.fail(str(error), node)
        params, returns = self.signature(f, source, None, f.__name__)
        return Signature(f.__name__, params, returns or TENSOR)

    def ignored(self, f: Any, node: ast.AST, typer: Any) -> Signature:
        """A call of a function that stays in Python."""
        made = self.declared(f, node, typer)
        name = self.name_for(qualified(f), f)
        self.hosts[name] = f
        return Host(name, made.params, made.returns)

    def error_class(self, cls: type[BaseException]) -> str:
        name = qualified(cls)
        self.errors[name] = cls
        return name

    # -- methods ----------------------------------------------------------------------------------

    def method(
        self, t: Type, name: str, node: ast.AST | None, typer: Any, given: Given_ | None = None
    ) -> Signature:
        """A method of a class, typed when it is first called."""
        made = self._made[t.base]
        if made.record.kind == "class" and name != "__init__" and not made.open:
            self.open_class(made, node, typer)
        if made.record.kind in ("interface", "native"):
            found = made.signatures.get("forward" if name == "__call__" else name)
            if found is None:
                typer.fail(f"{made.python.__name__} has no method {name!r}", node)
            return found
        after: type | None = None
        if name.startswith("super."):
            _, base, name = name.split(".", 2)
            mro = made.python.__mro__
            start = next(i for i, c in enumerate(mro) if c.__name__ == base)
            after = mro[start]
            found = next((vars(c)[name] for c in mro[start + 1 :] if name in vars(c)), None)
            label = f"super_{base}_{name}"
        else:
            hooked = bool(made.hooks) and after is None
            if made.module is not None and name == "__call__":
                name = "forward"
            elif hooked and name == "forward" and typer is not None:
                name = PLAIN  # hooks run where the module is called, as in Python
            if hooked and name == "forward":
                return self._hooked(made, node, typer)
            if name in made.signatures and made.module is not None and given is None:
                self._check_known(made.signatures[name], node, typer)
                return made.signatures[name]
            found = inspect.getattr_static(made.python, name, None)
            if made.module is not None and name in vars(made.module):
                found = vars(made.module)[name]
            label = name
            if name == PLAIN:
                name, found = "forward", inspect.getattr_static(made.python, "forward", None)
            elif name in made.hooks.named():
                return made.signatures[name]
        if isinstance(found, (staticmethod, classmethod)):
            typer.fail(f"{name} is no method of the object; call it by its class", node)
        if not isinstance(found, types.FunctionType):
            if typer is None:
                raise CompileError(f"{made.python.__name__} has no method {name!r}", "<script>")
            typer.fail(f"{made.python.__name__} has no method {name!r}", node)
        if made.record.kind == "library":
            return self.library_method(made, name, node, typer)
        if made.record.kind == "class" and (own := self.compared(made, name)) is not None:
            return own
        f = inspect.unwrap(found)
        types_ = self.types_given(f, given, 1)
        chosen = self.chosen(f, made.record.type, given, node, typer)
        if chosen is not None:
            label = f"{label}_overload_{chosen[0]}"
            self._declared[f"{made.record.name}.{label}"] = chosen[1]
        elif name == "forward" and after is None and star_of(f) is None:
            types_ = self.forward_types(made, f, types_)
            if types_ and any("." in x.base for x in types_.values()):
                if made.hooks:
                    typer.fail("a module with hooks takes no PackedSequence in scripts", node)
                label = "forward_packed"
        elif types_:
            known = made.labels.setdefault(label, {})
            own = f"{label}_{len(known)}" if known else label
            label = known.setdefault(tuple(types_.items()), own)
        return self._method(made, label, found, node, typer, after, types_)

    def remember(self, source: Source) -> None:
        """Lines of a file, for messages."""
        self.lines[source.file] = longer(self.lines.get(source.file, ()), source.lines)

    def forward_types(self, made: Made, f: Any, types_: dict[str, Type]) -> dict[str, Type]:
        """What a `forward` of ours takes where its annotations say less."""
        if not ours(f):
            return types_
        table = signatures.table(signatures.MODULES, "core.")
        found = next((table[c.__name__] for c in made.python.__mro__ if c.__name__ in table), None)
        if found is None:
            return types_
        out = {p.name: p.type for p in found[0].params}
        return {**out, **{n: t for n, t in types_.items() if "." in t.base}}

    def _method(
        self, made: Made, label: str, f: Any, node: ast.AST | None, typer: Any,
        after: type | None = None, given_types: Mapping[str, Type] | None = None,
    ) -> Signature:  # fmt: skip
        f = inspect.unwrap(f)
        kind = getattr(f, "_script_modifier", None)
        known = made.signatures.get(label)
        if known is not None:
            self._check_known(known, node, typer)
            return known
        if kind in ("ignore", "unused"):
            params, returns = self.signature(f, source_of(f), made.record.type, label)
            name = f"{made.record.name}.{label}"
            self.hosts[name] = raises(f) if kind == "unused" else f
            made.signatures[label] = Host(name, params, returns or TENSOR)
            return made.signatures[label]
        owner = after or next(
            (c for c in made.python.__mro__ if f.__name__ in vars(c)), made.python
        )
        if after is not None:
            mro = made.python.__mro__
            owner = next(c for c in mro[mro.index(after) + 1 :] if f.__name__ in vars(c))
        name = f"{made.record.name}.{label}"
        key = (made.record.name, label)
        signature = Opening(made.signatures, label)
        self._functions.pop(key, None)
        return signature.keep(
            self._typed_method(
                name, key, f, made.record.type, owner, node, typer, signature, given_types
            )
        )

    def _typed_method(
        self, name: str, key: Any, f: Any, first: Type, owner: type, node: Any, typer: Any,
        opening: Any, given_types: Mapping[str, Type] | None = None,
    ) -> Signature:  # fmt: skip
        known = self._functions.get(key)
        if known is not None:
            return known
        source = source_of(f)
        params, returns = self.signature(f, source, first, name, given_types)
        if f is SEQUENTIAL:
            params, returns = self._chained(first, params), None
        opening.keep(Signature(name, params, returns if returns is not None else Type("")))
        try:
            made = self._typed(name, key, f, first, owner, node, typer, given_types)
        except BaseException:
            opening.drop()
            raise
        return made

    def _chained(self, t: Type, params: list[Param]) -> list[Param]:
        """The parameters of a Sequential's forward: what its first module takes."""
        made = self._made[t.base]
        first = next(iter(made.children.values()), None)
        kind = TENSOR
        if first is not None:
            taken = self.method(first.type, "forward", None, None).params
            kind = taken[1].type if len(taken) > 1 else TENSOR
        return [params[0], Param(params[1].name, kind)]

    def library_method(self, made: Made, name: str, node: Any, typer: Any) -> Signature:
        """A call of a module of the package that runs as it is."""
        if name != "forward":
            typer.fail(f"{made.python.__name__}.{name} cannot be called in a script", node)
        known = made.signatures.get(name)
        if known is None:
            given = signatures.table(signatures.MODULES, "core.").get(made.python.__name__)
            if given:
                self_ = Param("self", made.record.type)
                known = Library(made.record.name, [self_, *given[0].params], given[0].returns)
                made.signatures[name] = known
                return known
            f = inspect.unwrap(made.python.forward)  # type: ignore[attr-defined]
            look = looker(vars(sys.modules[f.__module__]))
            hints = f.__annotations__
            node_ = source_of(f).tree
            assert isinstance(node_, ast.FunctionDef)
            names = [a.arg for a in node_.args.args][1:]
            values = f.__defaults__ or ()
            defaults = dict(zip(names[len(names) - len(values) :], values, strict=True))
            params = [Param("self", made.record.type)]
            for n in names:
                t = guess(hints.get(n), self.type_of_class, look)
                d = Given(defaults[n]) if n in defaults else None
                params.append(Param(n, t, d))
            returns = guess(hints.get("return"), self.type_of_class, look)
            known = made.signatures[name] = Library(made.record.name, params, returns)
        return known

    # -- modules ----------------------------------------------------------------------------------

    def module(self, m: Module) -> Class:
        """The class of a module, shared by those that differ in values alone."""
        if id(m) not in self._of_module:
            self._of_module[id(m)] = (m, self._class_of_module(m))
        return self._of_module[id(m)][1]

    def adopted(self, program: Any) -> Callable[[str], str]:
        """Takes in the unit of a script; what each of its names is here."""
        found = self._adopted.get(id(program))
        if found is None:
            name = merged(self.unit, program.unit)
            self._adopted[id(program)] = found = (program, name)
            for n, c in program.python.items():
                self.python.setdefault(name(n), c)
            self.hosts.update({name(n): f for n, f in program.hosts.items()})
            self.errors.update(program.errors)
            self.trusted = self.trusted and program.trusted
            for n in (*program.unit.functions, *program.unit.classes):
                self._names.setdefault(name(n), program)
        return found[1]

    def script(self, f: Any) -> Signature:
        """The function of the unit that a scripted or traced function is."""
        name = self.adopted(f._program)(f._function_name)
        made = self.unit.functions[name]
        return Signature(name, made.params, made.returns)

    def _class_of_script(self, m: Any) -> Class:
        """The class of a module that is a script already."""
        name = self.adopted(m._script_program)
        record = self.unit.classes[name(m._script_record.name)]
        if record.name not in self._made:
            made = Made(record, type(m), m)
            made.children = {n: self.module(c) for n, c in m._modules.items()
                             if c is not None and n not in record.attributes}  # fmt: skip
            for n, f in record.methods.items():
                g = self.unit.functions[f]
                made.signatures[n] = Signature(f, g.params, g.returns)
            if record.kind == "library":
                made.python = type(m)._script_base
            self._register(made)
        return record

    def _class_of_module(self, m: Module) -> Class:
        if hasattr(m, "_script_record"):
            return self._class_of_script(m)
        hooks = hooks_of(m)
        children = {n: self.module(c) for n, c in m._modules.items() if c is not None}
        made = self._attributes(m)
        made.hooks = hooks
        for n in list(children):
            wanted = self.interface_of(made.record.attributes.get(n))
            if wanted is not None:  # any module of it may come to stand there
                self.implement(children.pop(n), wanted, f"{type(m).__name__}.{n}")
        made.children = children
        for n, c in m._modules.items():
            if c is None:
                made.record.attributes[n] = NONE
        record = made.record
        key = (
            type(m), tuple(record.attributes.items()),
            tuple((n, c.name) for n, c in children.items()),
            tuple((n, class_key(v)) for n, v in made.statics.items()),
            tuple(n for n in vars(m) if isinstance(vars(m)[n], types.FunctionType)), hooks,
        )  # fmt: skip
        known = self._keys.get(key)
        if known is not None:
            return known.record
        record.name = self.name_for(qualified(type(m)), m)
        record.places.update(dict.fromkeys(children, "_modules"))
        self._keys[key] = made
        self._register(made)
        forward = inspect.unwrap(type(m).forward)
        if ours(forward) and not isinstance(m, (*CONTAINERS, flambeau.nn.Sequential)):
            self._or_library(made)
        return record

    def _or_library(self, made: Made) -> None:
        """A module of the package whose `forward` is not in the language runs as it is."""
        unit = self.unit
        before = dict(unit.functions), dict(unit.classes), dict(self._functions)
        try:
            self.method(made.record.type, PLAIN if made.hooks else "forward", None, None)
        except (CompileError, NoSource, TypeError_):
            if made.hooks:
                raise CompileError(f"{made.python.__name__} runs as it is in scripts, and without "
                                   "its hooks; remove them, or trace it", "") from None  # fmt: skip
            unit.functions, unit.classes, self._functions = before
            made.signatures.clear()
            made.record.kind = "library"
            made.children = {}

    def _attributes(self, m: Module) -> Made:
        cls = type(m)
        record = Class("", "module")
        made = Made(record, cls, m)
        hints: dict[str, Any] = {}
        for c in reversed(cls.__mro__):
            space = vars(sys.modules.get(c.__module__, types.ModuleType("")))
            for n, hint in typing.cast(dict[str, Any], vars(c).get("__annotations__", {})).items():
                hints[n] = (hint, looker(space))
        hints.update({n: (h, looker({})) for n, h in getattr(m, "__annotations__", {}).items()
                      if n not in hints})  # fmt: skip
        hints.update(self._hints_of_init(cls))
        constants = {*getattr(cls, "__constants__", ())}
        for n, (hint, _) in hints.items():
            if (
                typing.get_origin(hint) is typing.Final
                or hint is typing.Final
                or (isinstance(hint, str) and "Final" in hint.split("[")[0])
            ):
                constants.add(n)
        own = ours(cls)
        for table in ("_parameters", "_buffers"):
            for n, x in getattr(m, table).items():
                t = TENSOR if x is not None else NONE
                if n in hints and x is None and not own:
                    t = hinted_type(hints[n], self.type_of_class) or t
                record.attributes[n], record.places[n] = t, table
        for n in m._modules:
            t = hinted_type(hints[n], self.type_of_class) if n in hints else None
            if t is not None and self.interface_of(t) is not None:
                record.attributes[n], record.places[n] = t, "_modules"
        declared = vars(m).get("_script_types", {})
        for n, x in vars(m).items():
            if module_state(n):
                continue
            if n in declared or isinstance(x, AttributeValue):
                record.attributes[n] = self._type(declared[n] if n in declared else x.type)
                continue
            fixed = n in constants or (own and n != "training")
            if fixed and (constant(x) is not None or x == []):
                made.statics[n] = x
                continue
            hinted = hinted_type(hints[n], self.type_of_class) if n in hints else None
            found = hinted or type_of_value(x, self.type_of_class)
            if found is not None:
                record.attributes[n] = found
            elif callable(x) or isinstance(x, (type, types.ModuleType)):
                if not isinstance(x, Module):
                    made.statics[n] = x
            else:
                made.failed[n] = f"a {type(x).__name__} without a type of scripts"
        record.attributes.setdefault("training", BOOL)
        for n in constants:  # those that are computed
            if own and isinstance(inspect.getattr_static(cls, n, None), property):
                made.statics[n] = getattr(m, n)
        return made

    def _type(self, hint: Any) -> Type:
        return type_of(hint, self.type_of_class)

    def _hints_of_init(self, cls: type) -> dict[str, Any]:
        """What `self.x: T = ...` in an `__init__` of the program says of attributes."""
        out: dict[str, Any] = {}
        for c in reversed(cls.__mro__):
            init = vars(c).get("__init__")
            if not isinstance(init, types.FunctionType) or ours(c):
                continue
            try:
                tree = source_of(init).tree
            except (NoSource, CompileError):
                continue
            for node in ast.walk(tree):
                match node:
                    case ast.AnnAssign(
                        target=ast.Attribute(value=ast.Name(id="self"), attr=name), annotation=a
                    ):
                        out[name] = (ast.unparse(a), names_of(init))
        return out

    def root(self, m: Module) -> Class:
        """A module with its `forward` and exported methods typed."""
        record = self.module(m)
        made = self._made[record.name]
        for n in self.exported(m):
            self.method(record.type, n, None, None)
        if isinstance(m, flambeau.nn.RNNBase) and "forward" in made.signatures and not made.hooks:
            packed = self.type_of_class(flambeau.nn.utils.rnn.PackedSequence)
            assert packed is not None
            self.method(record.type, "forward", None, None, ([Expr("placed", (), packed)], {}))
        record.methods = {
            n: s.name for n, s in made.signatures.items() if s.name in self.unit.functions
        }
        return record

    def exported(self, m: Module) -> list[str]:
        """Methods that a scripted module has."""
        cls = type(m)
        names = []
        forward = inspect.getattr_static(cls, "forward", None)
        if (
            isinstance(forward, types.FunctionType)
            and forward is not Module.forward
            and (getattr(forward, "_script_modifier", None) not in ("ignore", "unused"))
        ):
            names.append("forward")
        for c in cls.__mro__:
            names += [
                n for n, f in vars(c).items()
                if getattr(f, "_script_modifier", None) == "export" and n not in names
            ]  # fmt: skip
        return names

    def finish(self) -> Unit:
        """The unit, its classes with the names of their methods."""
        for made in self._made.values():
            made.record.methods |= {
                n: s.name for n, s in made.signatures.items() if s.name in self.unit.functions
            }
        return self.unit

    def statics_of(self, record: Class) -> Mapping[str, Any]:
        return self._made[record.name].statics
