"""The code that runs in place of a captured frame: calls the graph, puts side effects in place,
rebuilds the result (or the state that a step goes on from).

It is written as Python text over slots: `a0, a1, ...` are what the guards found at the sources that
were asked for.
"""

from __future__ import annotations

import collections
import enum
import functools
import math
import types
from collections.abc import Iterable
from typing import Any

import numpy as np

import flambeau
from flambeau import _C
from flambeau._ir.enumerations import Access
from flambeau._ir.own import own_module
from flambeau._trace.run_numbers import RunNumber

from . import c_code, kinds
from .arrays import Array
from .errors import Skip
from .interpreter import Followed, Pending, TensorMethod
from .kinds import DELETED, NULL, UNSET
from .shadow_state import ShadowState, base_of, contents
from .state import mapping_changes, written_together
from .tensors import as_input

_LITERAL = (int, bool, type(None), str)
_FACTORY: Any = collections.defaultdict.__dict__["default_factory"]
#: classes of C whose objects can be made without running code of a program's class
_LAID_OUT = (
    object,
    dict,
    list,
    set,
    collections.OrderedDict,
    collections.defaultdict,
    collections.deque,
    types.SimpleNamespace,
)


class Entry:
    """Builds the text, value by value."""

    def __init__(self, shadow_state: ShadowState) -> None:
        self.shadow_state, self.tensors = shadow_state, shadow_state.tensors
        self.lines: list[str] = []
        self.constants: dict[str, Any] = {}
        self._constant_of: dict[int, str] = {}
        self.built: dict[int, str] = {}
        self.outputs: list[Any] = []  # fakes the graph must return
        self._output_of: dict[int, str] = {}
        self.draws = False  # so does the graph, and there are checks
        self.failed = ""  # an expression that says whether a check failed; "": there are none
        self._keep: list[Any] = []
        self._temporaries = 0
        self.effects: list[str] = []

    # -- pieces ------------------------------------------------------------------------------------

    def constant(self, value: Any) -> str:
        name = self._constant_of.get(id(value))
        if name is None:
            name = self._constant_of[id(value)] = f"c{len(self.constants)}"
            self.constants[name] = value
        return name

    def slot(self, source: Any) -> str:
        if source.access == Access.Constant:
            return self.constant(source.key)
        return f"a{source.take()}"

    def temporary(self, expression: str) -> str:
        name = f"t{self._temporaries}"
        self._temporaries += 1
        self.lines.append(f"{name} = {expression}")
        return name

    def output(self, fake: Any) -> str:
        """A tensor that the graph computes."""
        name = self._output_of.get(id(fake))
        if name is None:
            name = self._output_of[id(fake)] = f"g[{len(self.outputs)}]"
            self.outputs.append(fake)
            for n, item in self.tensors.attributes.get(id(fake), {}).items():
                self.lines.append(f"setattr({name}, {n!r}, {self.value(item)})")
        return name

    # -- values ------------------------------------------------------------------------------------

    def value(self, v: Any) -> str:
        """An expression that gives what the program's value stands for."""
        cls = type(v)
        if v is UNSET or v is NULL:
            return "None"
        if cls is Pending:
            return self.slot(v.source)
        if cls in _LITERAL:
            return repr(v)
        if kinds.is_tensor(v):
            source = self.shadow_state.origin.get(id(v))
            return self.slot(source) if source is not None else self.output(v)
        if cls is RunNumber:
            source = self.shadow_state.origin.get(id(v))
            if source is not None:
                return self.slot(source)
            number = f"{self.output(v.tensor)}.item()"
            return number if v.numpy is None else f"{self.constant(v.numpy)}({number})"
        if self.tensors.is_symbol(v):
            return self.symbol(v)
        if cls in kinds.CONSTANT_TYPES:
            return self.constant(v)
        known = self.built.get(id(v))
        if known is not None:
            return known
        self._keep.append(v)
        made = v if isinstance(v, type) else cls
        if self.shadow_state.is_created(made):
            words = f"the class {made.__qualname__}, made in compiled code"
            raise Skip(f"{words}, is alive where the graph ends; make it outside")
        source = self.shadow_state.origin.get(id(v))
        if source is not None and not self.shadow_state.is_created(v):
            return self.slot(source)
        shadow = self.shadow_state.shadows.get(id(v))
        if shadow is not None:
            return self.slot(shadow.source)
        return self._build(v, cls)

    def values(self, vs: Iterable[Any]) -> str:
        return "".join(f"{self.value(v)}, " for v in vs)

    def symbol(self, v: Any) -> str:
        """An expression over symbols, computed from where they are found."""
        text = repr(v)
        names = sorted(v.expr.symbols)
        env = self.tensors.env
        parts = []
        for n in names:
            source = env.symbols[n].origin
            if source is None:
                shows, d = self.tensors.recorder.bound[n]
                parts.append(f"{n}={self.output(self.tensors.session.shown(shows))}.size({d})")
                continue
            slot = self.slot(self.tensors.inputs[source.input][0])
            found = slot if source.kind == "value" else f"{slot}.{source.kind}({source.dim})"
            parts.append(f"{n}={found}")
        function = f"(lambda {', '.join(names)}: {text})"
        return self.temporary(f"{function}({', '.join(parts)})")

    def _build(self, v: Any, cls: Any) -> str:
        if cls is tuple:
            return f"({self.values(v)})"
        if cls is list:
            return self._fill(v, "[]", "{0} += [{1}]", v)
        if cls is dict:
            holder = self.shadow_state.holders.get(id(v))
            if holder is not None and kinds.instance_dict(holder) is v:
                self.value(holder)
                if id(v) in self.built:
                    return self.built[id(v)]
            return self._fill_dict(v, "{}")
        if cls is set:
            return self._fill(v, "set()", "{0}.update([{1}])", v)
        if cls is frozenset:
            return f"{self.constant(frozenset)}([{self.values(v)}])"
        if isinstance(v, flambeau.Size):
            return f"{self.constant(flambeau.Size)}([{self.values(v)}])"
        if cls is slice:
            return f"slice({self.value(v.start)}, {self.value(v.stop)}, {self.value(v.step)})"
        if cls is Array:
            found = f"{self.value(v._tensor)}.numpy()"
            return self._named(v, f"{found}[()]" if v._scalar else found)
        if cls is types.MethodType and type(v.__self__) is Array:
            return self.temporary(f"{self.value(v.__self__)}.{v.__func__.__name__}")
        if cls is types.MethodType:
            owner = self.value(v.__self__)
            return self.temporary(
                f"{self.constant(types.MethodType)}({self.value(v.__func__)}, {owner})"
            )
        if cls is types.CellType:
            return self._build_cell(v)
        if cls is types.FunctionType and self.shadow_state.is_created(v):
            return self._build_function(v)
        if cls is types.BuiltinFunctionType:
            return self._build_builtin(v)
        if cls is functools.partial and self.shadow_state.is_created(v):
            keywords = self.value(dict(v.keywords))
            made = (
                f"{self.constant(functools.partial)}({self.value(v.func)}, *({self.values(v.args)})"
            )
            return self._named(v, f"{made}, **{keywords})")
        if cls in c_code.MODES:
            return self._build_mode(v)
        if cls is super:
            inner = f"{self.value(v.__thisclass__)}, {self.value(v.__self__)}"
            return f"{self.constant(super)}({inner})"
        if cls is types.MethodWrapperType:
            descriptor = v.__objclass__.__dict__[v.__name__]
            return f"{self.constant(descriptor)}.__get__({self.value(v.__self__)})"
        if cls is Followed:
            return self.value(v.function)
        if cls is TensorMethod:
            return f"{self.constant(getattr)}({self.value(v.__self__)}, {v.__name__!r})"
        if cls in c_code.GETTERS:
            make, args = v.__reduce__()[:2]
            return f"{self.constant(make)}({self.values(args)})"
        if isinstance(
            v,
            (type, types.ModuleType, types.FunctionType, enum.Enum, np.generic, np.dtype, property),
        ) or cls in (*kinds.METHOD_WRAPPERS, types.GetSetDescriptorType):
            return self.constant(v)
        if cls in _ITERATORS:
            return self._build_iterator(v)
        if isinstance(v, dict) and cls in kinds.MAPPINGS and not cls.__dictoffset__:
            if cls is collections.defaultdict:
                factory = self.value(getattr(v, "default_factory"))  # noqa: B009
                return self._fill_dict(v, f"{self.constant(cls)}({factory})")
            return self._fill_dict(v, f"{self.constant(cls)}()")
        if isinstance(v, collections.deque) and cls is collections.deque:
            start = f"{self.constant(cls)}(maxlen={v.maxlen!r})"
            return self._fill(v, start, "{0}.extend([{1}])", v)
        by_c = isinstance(v, (BaseException, tuple)) or cls in kinds.MAPPINGS
        if self.shadow_state.is_created(v) or by_c:
            return self._build_instance(v, cls)
        if own_module(type(v).__module__) == "_limits":
            return self.constant(v)
        raise Skip(f"an object of type {cls.__qualname__} is alive where the graph ends")

    def _named(self, v: Any, expression: str) -> str:
        name = self.built[id(v)] = self.temporary(expression)
        return name

    def _fill(self, v: Any, start: str, fill: str, items: Iterable[Any]) -> str:
        name = self._named(v, start)
        inner = self.values(items)
        if inner:
            self.lines.append(fill.format(name, inner))
        return name

    def _fill_dict(self, v: dict[Any, Any], start: str) -> str:
        name = self._named(v, start)
        inner = contents(v)
        for key, item in zip(inner[::2], inner[1::2], strict=True):
            self.lines.append(f"{name}[{self.value(key)}] = {self.value(item)}")
        return name

    def _build_cell(self, cell: Any) -> str:
        outside = self.shadow_state.cells.get(id(cell))
        if outside is not None:
            return self.slot(outside.source)
        name = self._named(cell, f"{self.constant(types.CellType)}()")
        value = self.shadow_state.read_cell(cell)
        if value is not UNSET:
            self.lines.append(f"{name}.cell_contents = {self.value(value)}")
        return name

    def _build_function(self, v: types.FunctionType) -> str:
        closure = "None"
        if v.__closure__:
            closure = f"({self.values(v.__closure__)})"
        defaults = self.value(v.__defaults__)
        name = self._named(
            v,
            f"{self.constant(types.FunctionType)}({self.constant(v.__code__)}, "
            f"{self.constant(v.__globals__)}, {v.__name__!r}, {defaults}, {closure})",
        )
        for attribute in ("__kwdefaults__", "__annotations__", "__dict__"):
            found = getattr(v, attribute)
            if found:
                target = f"{name}.{attribute}"
                if attribute == "__dict__":
                    self.lines.append(f"{target}.update({self.value(dict(found))})")
                else:
                    self.lines.append(f"{target} = {self.value(dict(found))}")
        return name

    def _build_builtin(self, v: Any) -> str:
        owner = v.__self__
        if owner is None or isinstance(owner, (types.ModuleType, type)):
            return self.constant(v)
        for base in type(owner).__mro__:  # not getattr: a subclass may have one of its own
            descriptor: Any = base.__dict__.get(v.__name__)
            if (
                type(descriptor) in kinds.METHOD_WRAPPERS
                and descriptor.__get__(owner, type(owner)) == v
            ):
                kind = self.constant(type(owner))  # C code of methods asks for it
                return f"{self.constant(descriptor)}.__get__({self.value(owner)}, {kind})"
        raise Skip(f"the method {v.__qualname__} is alive where the graph ends")

    def _build_mode(self, v: Any) -> str:
        """A context of a grad mode, as it was when it was entered."""
        self.lines.append(f"set_grad({v.prev})")
        asked = isinstance(v, (flambeau.set_grad_enabled, flambeau.inference_mode))
        args = f"{v.mode}" if asked else ""
        name = self._named(v, f"{self.constant(type(v))}({args})")
        self.lines.append(f"{name}.__enter__()")
        self.effects.append(f"set_grad({flambeau.is_grad_enabled()})")
        return name

    def _build_iterator(self, v: Any) -> str:
        if type(v) in _OF_MAPPINGS:  # another iterator would not notice that keys come and go
            raise Skip("an iterator over a dict or a set is alive where the graph ends")
        make, args, *state = v.__reduce__()
        made = f"{self.constant(make)}({self.values(args)})"
        name = self._named(v, made)
        if state and state[0] is not None:
            self.lines.append(f"{name}.__setstate__({self.value(state[0])})")
        return name

    def _build_instance(self, v: Any, cls: type) -> str:
        """An object the program made: its memory first, so that it may refer to itself."""
        made = self.constant(cls)
        if isinstance(v, BaseException):
            name = self._named(v, f"{made}.__new__({made}, {self.values(v.args)})")
        elif isinstance(v, tuple):
            name = self._named(v, f"tuple.__new__({made}, ({self.values(tuple.__iter__(v))}))")
        elif isinstance(v, (int, float, str)):
            name = self._named(v, f"{made}.__new__({made}, {cls.__mro__[-2].__name__}({v!r}))")
        else:
            name = self._build_contents(v, cls, made)
        self._build_attributes(v, cls, name)
        return name

    def _build_contents(self, v: Any, cls: type, made: str) -> str:
        """Memory of the class of C that an object is laid out by, and what that keeps in it."""
        base = base_of(cls)
        if base not in _LAID_OUT:
            raise Skip(f"an object of type {cls.__qualname__} is alive where the graph ends")
        owner = self.constant(base)
        name = self._named(v, f"{owner}.__new__({made})")
        if isinstance(v, dict):
            if base is collections.OrderedDict:
                self.lines.append(f"{owner}.__init__({name})")
            if isinstance(v, collections.defaultdict):
                factory = self.value(_FACTORY.__get__(v))
                self.lines.append(f"{self.constant(_FACTORY)}.__set__({name}, {factory})")
            put = owner if base is collections.OrderedDict else "dict"
            inner = contents(v)
            for key, item in zip(inner[::2], inner[1::2], strict=True):
                self.lines.append(
                    f"{put}.__setitem__({name}, {self.value(key)}, {self.value(item)})"
                )
        elif isinstance(v, (list, set, collections.deque)):
            if isinstance(v, collections.deque) and v.maxlen is not None:
                raise Skip(f"an object of type {cls.__qualname__} is alive where the graph ends")
            fill = "update" if base is set else "extend"
            items = self.values(contents(v))
            self.lines.append(f"{owner}.{fill}({name}, [{items}])")
        return name

    def _build_attributes(self, v: Any, cls: type, name: str) -> None:
        """The instance dictionary, which may be that of others too, and the slots."""
        if cls.__dictoffset__:
            store = kinds.instance_dict(v)
            if id(store) in self.built or id(store) in self.shadow_state.origin:
                self.lines.append(f"set_attribute({name}, '__dict__', {self.value(store)})")
            else:
                self._keep.append(store)
                self.built[id(store)] = f"{name}.__dict__"
                for n, item in store.items():
                    if type(n) is not str or kinds.mro_lookup(cls, n)[0] is not UNSET:
                        at = f"{name}.__dict__[{self.value(n)}]"
                        self.lines.append(f"{at} = {self.value(item)}")
                    else:
                        self.lines.append(f"set_attribute({name}, {n!r}, {self.value(item)})")
        if isinstance(v, BaseException):
            return
        for base in cls.__mro__:
            if not kinds.by_statement(base):
                continue
            for d in base.__dict__.values():
                if type(d) is types.MemberDescriptorType:
                    try:
                        item = d.__get__(v)
                    except AttributeError:
                        continue
                    self.lines.append(f"{self.constant(d)}.__set__({name}, {self.value(item)})")

    def check(self, failed: Any, note: Any, draws: bool) -> None:
        """The frame is handed back where the tensor is true or the graph raises; `note` is told,
        with the state of the generator where the graph draws."""
        self.failed, self.draws = self.value(failed), draws
        self._hand_back = f"return {self.constant(note)}({'r' if draws else ''})"

    # -- side effects ------------------------------------------------------------------------------

    def side_effects(self) -> None:
        """What the program changed outside. All values first, then all changes."""
        shadow_state = self.shadow_state
        changed = [s for s in shadow_state.shadows.values() if s.changed()]
        for s in changed:
            self._shadow_effects(s)
        for entries in shadow_state.dicts.values():
            if entries.written:
                self._entry_effects(entries)
        for slots in shadow_state.slots.values():
            self._slot_effects(slots)
        for owner, store in shadow_state.replaced.values():
            target, new = (
                self.slot(shadow_state.source_of(owner)),
                self.temporary(self.value(store)),
            )
            self.effects.append(f"set_attribute({target}, '__dict__', {new})")
        for outside in shadow_state.cells.values():
            if outside.changed():
                target = self.slot(outside.source)
                new = self.temporary(self.value(shadow_state.read_cell(outside.cell)))
                self.effects.append(f"{target}.cell_contents = {new}")
        for var, v in shadow_state.context.items():
            new = self.temporary(self.value(v))
            self.effects.append(f"{self.slot(shadow_state.source_of(var))}.set({new})")
        shadow_state.sources.distinct += written_together(shadow_state)

    def _shadow_effects(self, s: Any) -> None:
        target = self.slot(s.source)
        base = base_of(type(s.original))  # type: ignore[arg-type]
        owner = self.constant(base)
        if isinstance(s.original, dict):
            kind = owner if base is collections.OrderedDict else "dict"
            gone, now = mapping_changes(s.before, contents(s.copy))
            for k in gone:
                self.effects.append(f"{kind}.__delitem__({target}, {self.value(k)})")
            for k, v in now:
                new = self.temporary(self.value(v))
                self.effects.append(f"{kind}.__setitem__({target}, {self.value(k)}, {new})")
        elif base is list:
            items = self.temporary(f"[{self.values(contents(s.copy))}]")
            self.effects.append(f"list.__setitem__({target}, slice(None), {items})")
        else:
            for x in contents(s.copy):
                self.effects.append(f"set.add({target}, {self.value(x)})")
            for x in s.before:
                if x not in set(contents(s.copy)):
                    self.effects.append(f"set.discard({target}, {self.value(x)})")

    def _entry_effects(self, entries: Any) -> None:
        target = self.slot(entries.source)
        for key, v in entries.written.items():
            at = f"{target}[{self.value(key)}]"
            if v is DELETED or key in entries.moved:
                self.effects.append(f"del {at}")
            if v is not DELETED:
                self.effects.append(f"{at} = {self.temporary(self.value(v))}")

    def _slot_effects(self, slots: Any) -> None:
        for descriptor, v in slots.written.items():
            target = self.slot(self.shadow_state.source_of(slots.owner))
            slot = self.constant(descriptor)
            if v is DELETED:  # set first: what the program set and deleted may be unset outside
                self.effects.append(f"{slot}.__set__({target}, None)")
                self.effects.append(f"{slot}.__delete__({target})")
            else:
                self.effects.append(f"{slot}.__set__({target}, {self.temporary(self.value(v))})")

    # -- the whole ---------------------------------------------------------------------------------

    def function(self, result: str, graph: Any, slots: int, around: list[tuple[str, str]]) -> Any:
        """The function; `graph` computes the outputs from the inputs.

        Args:
            result: an expression for what is returned.
            graph: what the back end made; None: there is nothing to compute.
            slots: how many values the guards hand over.
            around: statements before and after the call of the graph.
        """
        args = ", ".join(f"a{k}" for k in range(slots))
        lines = [f"def compiled({args}):"]
        if graph is not None:
            inputs = "".join(f"{x}, " for x in self.inputs())
            native = isinstance(graph, _C._CompiledFunction)  # it runs with nothing in force itself
            call = f"graph({inputs})" if native else f"run(None, graph, ({inputs}), None)"
            lines += _surrounded(f"g = {call}", around)
            if self.failed:
                lines[1:] = ["    try:", *(f"    {line}" for line in lines[1:])]
                lines += [f"        if {self.failed}:", f"            {self._hand_back}"]
                lines += ["    except Exception:", f"        {self._hand_back}"]
                lines[1:1] = ["    r = random_state()"] * self.draws
        lines += [f"    {line}" for line in (*self.lines, *self.effects)]
        lines.append(f"    return {result}")
        namespace = {
            **self.constants,
            "graph": graph,
            "run": _C._call_captured,
            "set_grad": _C._set_grad_enabled,
            "as_input": as_input,
            "random_state": flambeau.get_rng_state,
            "set_attribute": object.__setattr__,
            **{name: getattr(math, name) for name in ("sqrt", "exp", "log", "cos", "sin")},
        }
        self.text = "\n".join(lines) + "\n"
        alone = self._alone(result, graph, slots)
        if alone is not None and not around:
            return alone
        exec(compile(self.text, kinds.ENTRY_FILE, "exec"), namespace)
        function = namespace["compiled"]
        _C._skip_code(function.__code__)
        return function

    def inputs(self) -> list[str]:
        """What the graph is given."""
        floats = self.tensors.floats
        slots = ((self.slot(p), p) for p, _ in self.tensors.inputs)
        return [f"as_input({a})" if p in floats else a for a, p in slots]

    def _alone(self, result: str, graph: Any, slots: int) -> Any:
        """The native function where the text does nothing but call it; else None."""
        only = getattr(graph, "only", None)  # which native functions have
        if only is None or self.lines or self.effects or self.failed:
            return None
        if self.inputs() != [f"a{k}" for k in range(slots)]:
            return None
        outputs = [f"g[{k}]" for k in range(len(self.outputs))]
        if result in outputs:
            return only(outputs.index(result))
        return graph if result == f"({''.join(f'{g}, ' for g in outputs)})" else None


def _surrounded(line: str, around: list[tuple[str, str]]) -> list[str]:
    """A statement of a function between others, the last of which run in any case."""
    if not around:
        return [f"    {line}"]
    before = [f"    {first}" for first, _ in around]
    after = [f"        {last}" for _, last in reversed(around)]
    return [*before, "    try:", f"        {line}", "    finally:", *after]


_OF_MAPPINGS: tuple[type, ...] = (
    type(iter({})),
    type(iter({}.values())),
    type(iter({}.items())),
    type(iter(set())),
    *kinds.REVERSED_DICTS,
)
_ITERATORS = (
    type(iter([])),
    type(iter(())),
    *_OF_MAPPINGS,
    *kinds.STRING_ITERATORS,
    type(iter(range(0))),
    type(reversed([])),
    enumerate,
    zip,
    map,
    filter,
    *(t for t in c_code.ITERATORS if hasattr(t, "__reduce__")),
)
