"""Tensors and symbolic numbers of a followed program: the side of capture that knows `_trace`.

An outside tensor becomes a fake and an input of the graph when it is read; calls of the library run
on fakes under the tracer, which records them. Sizes and integers that vary become symbols.
"""

from __future__ import annotations

import math
import types
from typing import Any

import flambeau
from flambeau import _C
from flambeau._ir import formula
from flambeau._ir.graph import Graph, ScalarType
from flambeau._ir.symbols import Source, SymInt, sym_max, sym_min
from flambeau._ir.symfloat import SymFloat
from flambeau._ir.where import Where
from flambeau._trace.fake import Fake
from flambeau._trace.meanings import DataDependent
from flambeau._trace.record import fake_input
from flambeau._trace.session import Session
from flambeau._trace.stand_ins import check_results
from flambeau._trace.tensor import FakeTensor, SymSize

from . import calls, kinds
from .autocasting import AutocastRecorder
from .errors import Break
from .interpreter import Frame, TensorMethod
from .places import TENSOR, TYPE, Place

#: functions of the core that read a state which guards cover, or none
_QUERIES = frozenset(
    "is_grad_enabled is_inference_mode_enabled get_default_dtype get_default_device is_tensor "
    "promote_types can_cast "
    "result_type is_autocast_enabled get_autocast_dtype is_autocast_cache_enabled "
    "set_autocast_enabled set_autocast_dtype set_autocast_cache_enabled _set_grad_enabled "
    "_has_torch_function _has_torch_function_unary _is_torch_function_enabled is_complex "
    "is_floating_point numel broadcast_shapes _attention_backends _set_attention_backends".split()
)
#: what a fake cannot answer because it depends on data or on memory
_VALUES = frozenset(
    "item tolist numpy data_ptr storage untyped_storage __array__ grad grad_fn _version "
    "backward register_hook retain_grad __dlpack__ share_memory_ set_ resize_ requires_grad_ "
    "names _base output_nr __dict__ register_post_accumulate_grad_hook is_shared data".split()
)


class _CaptureSession(Session):
    """Tensors with data that library code brings along become constants of the graph."""

    owner: Tensors

    def attach(self, x: Any) -> FakeTensor:
        return self.owner.input(x, self.owner.places.constant(x, "a constant tensor"))


class Tensors:
    """The graph under construction and the tensors it was made from."""

    refusals = (DataDependent, NotImplementedError)

    def __init__(self, places: Any, varying: Any) -> None:
        self.places, self.varying = places, varying
        self.recorder = AutocastRecorder()
        self.env = self.recorder.env
        self.env.locate = self.locate
        self.session = _CaptureSession(self.recorder)
        self.session.owner = self
        self.inputs: list[tuple[Place, Any]] = []  # of the graph: place, example
        self.real: dict[int, Any] = {}  # fake -> the tensor it stands for
        self.strides: list[tuple[int, int, Any]] = []  # input, dim, what the stride must be
        self.integers: dict[Place, Any] = {}
        self.interpreter: Any = None

    def locate(self) -> Where | None:
        at = self.interpreter.where
        return None if at is None else Where(at.file, at.line, at.function)

    @property
    def graph(self) -> Graph:
        return self.recorder.graph

    # -- reading -----------------------------------------------------------------------------------

    def input(self, value: Any, place: Place) -> Any:
        """The fake of an outside tensor; its facts are guarded."""
        known = self.session.of_tensor.get(id(value))
        if known is not None:
            return known
        cls = type(value)
        if cls is not _C.Tensor and hasattr(cls, "__torch_function__"):
            if cls.__torch_function__ is not _C._disabled_torch_function_impl and (
                getattr(cls.__torch_function__, "__func__", None)
                is not getattr(_C.Tensor.__torch_function__, "__func__", None)
            ):
                raise Break(f"{place.name} is a {cls.__qualname__}, which overrides operations")
        if value.device.type != "cpu" or value.layout is not flambeau.strided:
            raise Break(f"{place.name} is on {value.device} with layout {value.layout}")
        if value.requires_grad and value.grad_fn is None and not value.is_leaf:
            raise Break(f"{place.name} has an unusual history")
        index = len(self.inputs)
        dims = self.varying.dims(value, place)
        fake = fake_input(value, self.env, index, dims)
        fixed = [n if isinstance(n, int) else None for n in fake.shape]
        strides = [n if isinstance(n, int) else None for n in fake.strides]
        facts = (cls, value, fixed, strides, value.storage_offset(), value.requires_grad)
        words = f"{place.name} is a {value.dtype} tensor of shape {_shape(fixed)}"
        if value.requires_grad:
            words += " that requires grad"
        place.check(TENSOR, facts, words)
        self._guard_strides(fake, index)
        self.inputs.append((place, value))
        self.places.distinct.append(place)
        shown = self.session.input(fake)
        self.session.of_tensor[id(value)] = shown
        self.real[id(shown)] = value
        place.take()
        return shown

    def _guard_strides(self, fake: Fake, index: int) -> None:
        """Strides that are expressions of sizes: so they must be in later calls."""
        for d, n in enumerate(fake.strides):
            if not isinstance(n, int):
                self.strides.append((index, d, n))

    def integer(self, value: int, place: Place) -> Any:
        """An outside integer: a constant, or a symbol once it was seen to vary."""
        if not self.varying.integer(value, place):
            place.equals(value)
            return value
        known = self.integers.get(place)
        if known is None:
            place.check(TYPE, int, f"type({place.name}) is int")
            place.take()
            source = Source(len(self.inputs), "value")
            low, high = (2, math.inf) if value > 1 else (-math.inf, -1)
            known = self.env.symbol(value, source, low, high)
            if isinstance(known, SymInt):
                self.recorder.builder.input(ScalarType("int"))
                self.inputs.append((place, value))
            else:
                place.equals(value)
            self.integers[place] = known
        return known

    # -- what fakes are ----------------------------------------------------------------------------

    def real_class(self, value: Any) -> type:
        known = self.real.get(id(value))
        return type(known) if known is not None else _C.Tensor

    def is_instance(self, value: Any, cls: type) -> bool:
        """`isinstance` of the tensor that a fake stands for."""
        known = self.real.get(id(value))
        return isinstance(known, cls) if known is not None else issubclass(_C.Tensor, cls)

    @staticmethod
    def is_symbol(value: Any) -> bool:
        return type(value) is SymInt or type(value) is SymFloat

    @staticmethod
    def is_shape(value: Any) -> bool:
        return type(value) is SymSize

    @staticmethod
    def shape(sizes: list[Any]) -> Any:
        """A `Size` some of whose sizes are symbols."""
        return SymSize(sizes)

    @staticmethod
    def symbol_class(value: Any) -> type:
        return int if type(value) is SymInt else float

    @staticmethod
    def decide(value: Any) -> Any:
        return int(value) if type(value) is SymInt else float(value)

    @staticmethod
    def extreme(function: Any, items: list[Any]) -> Any:
        if all(type(v) in (int, SymInt) for v in items):
            return (sym_min if function is min else sym_max)(*items)
        return function(*items)

    # -- running -----------------------------------------------------------------------------------

    def traced(self, function: Any, args: Any, kwargs: Any, call: Any = _C._call_strict) -> Any:
        """A call under the tracer, in which no user code may run."""
        before = _C._set_tracer(self.session, SymInt, SymFloat)
        enabled = _C._set_torch_function_enabled(False)
        outer, self.session.in_program = self.session.in_program, True
        try:
            return call(function, args, kwargs)
        finally:
            self.session.in_program = outer
            _C._set_torch_function_enabled(enabled)
            _C._set_tracer(before, SymInt, SymFloat)

    def call(self, f: Frame, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """A function or method of the core."""
        name = getattr(function, "__name__", "")
        if name == "_function_apply":
            return self.apply(f, *args)
        if name in ("item", "tolist"):
            subject = args[0] if args else getattr(function, "__self__", None)
            if isinstance(subject, FakeTensor) and subject.fake.constant is not None:
                return subject.value_of(name)
        if name in _VALUES:
            raise Break(f"a call of Tensor.{name}")
        on_tensors = has_tensor([*args, *kwargs.values()])
        owner = getattr(function, "__self__", None)
        on_tensors = on_tensors or kinds.is_tensor(owner)
        if not on_tensors and name not in _QUERIES and not self.makes_tensor(function, name):
            raise Break(f"a call of {kinds.describe(function)}")
        if kwargs.get("out") is not None and _C.is_autocast_enabled("cpu"):
            raise Break("an operation with out= under autocast")
        if name.startswith(("_set_", "set_")):
            return f.interpreter.direct(function, *args, **kwargs)
        for value in (*args, *kwargs.values()):
            if not calls.may_be_read(f, value):
                raise Break(f"a call of {kinds.describe(function)} with {kinds.describe(value)}")
            if isinstance(value, flambeau.Generator):
                raise Break("an operation with a generator of its own")
        return f.interpreter.direct(function, *args, **kwargs)

    @staticmethod
    def makes_tensor(function: Any, name: str) -> bool:
        """Factories: operations without tensor arguments."""
        return name in _factories() or isinstance(function, type)

    @staticmethod
    def truth(value: Any) -> bool:
        """`bool(x)`: known of a tensor that the program made of numbers."""
        if value.fake.constant is None:
            raise Break("a branch depends on the values of a tensor")
        return bool(value.value_of("__bool__"))

    def attribute(self, f: Frame, value: Any, name: str) -> Any:
        if name in ("grad", "_grad", "grad_fn", "_base", "_version", "names", "output_nr", "data"):
            if name == "data":
                return f.interpreter.direct(getattr, value, name)
            raise Break(f"Tensor.{name} is read")
        if name == "__class__":
            return self.real_class(value)
        known = self.real.get(id(value))
        if known is not None:
            store = getattr(known, "__dict__", None)
            if store and name in store:
                return f.world.wrap(store[name], f.world.place_of(value).in_instance(name))
            cls = type(known)
            if cls is not _C.Tensor:
                found, owner = kinds.mro_lookup(cls, name)
                if isinstance(found, types.FunctionType) and owner is not _C.Tensor:
                    return types.MethodType(found, value)
        found, owner = kinds.mro_lookup(_C.Tensor, name)
        if isinstance(found, types.FunctionType) and name not in FakeTensor.__dict__:
            return types.MethodType(found, value)
        bound = f.interpreter.direct(getattr, value, name)
        if isinstance(bound, types.MethodType):
            return TensorMethod(bound, name)
        return bound

    def store_attribute(self, f: Frame, target: Any, name: str, value: Any) -> None:
        raise Break(f"the attribute {name} of a tensor is set")

    def apply(self, f: Frame, cls: Any, setup: Any, args: Any) -> Any:
        """autograd.Function"""
        from .functions import apply

        return apply(f, cls, setup, args)

    # -- the end -----------------------------------------------------------------------------------

    def relations(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Where symbols are found, and what must hold of them, as native guards take it."""
        places: list[tuple[int, int, int]] = []
        names: dict[str, int] = {}
        for s in self.env.symbols.values():
            if s.source is not None:
                names[s.name] = len(places)
                slot = self.inputs[s.source.input][0].take()
                places.append((slot, formula.KINDS.index(s.source.kind), s.source.dim))
        rows = [
            (formula.steps(g.expr, names), formula.RELATIONS.index(g.relation), str(g))
            for g in self.env.conditions()
        ]
        for index, d, n in self.strides:
            place = self.inputs[index][0]
            places.append((place.take(), formula.KINDS.index("stride"), d))
            steps = (
                *formula.steps(self.env.simplify(n.expr) * -1, names),
                (formula.LOAD, len(places) - 1),
                (formula.ADD, 0),
            )
            rows.append((steps, 0, f"{place.name}.stride({d}) == {n}"))
        return tuple(places), tuple(rows)

    def symbol_texts(self) -> list[str]:
        """Symbols in words: what each stands for."""
        out = []
        for s in self.env.symbols.values():
            if s.source is not None:
                name = self.inputs[s.source.input][0].name
                part = "" if s.source.kind == "value" else f".{s.source.kind}({s.source.dim})"
                out.append(f"{s.name} = {name}{part} (was {s.hint})")
        return out

    def clear(self) -> None:
        """Lets go of the user's tensors."""
        self.real.clear()
        self.inputs = []
        self.session.of_tensor.clear()
        self.session.of_fake.clear()
        self.session.attached.clear()
        self.env.locate = _nowhere

    def finish(self, outputs: list[Any]) -> Graph:
        """The graph with these fakes as outputs."""
        graph = self.recorder.graph
        fakes = [self.session.fake(x) for x in outputs]
        try:
            graph.outputs = tuple(map(self.recorder.arg, fakes))
            check_results(self.recorder, fakes)
        except DataDependent as e:
            raise Break(str(e)) from None
        return graph


def _nowhere() -> None:
    return None


def freely(function: Any, args: Any, kwargs: Any) -> Any:
    """A call in which any code may run: what the user vouches for."""
    strict = _C._set_strict(False)
    try:
        return function(*args, **kwargs)
    finally:
        _C._set_strict(strict)


def has_tensor(value: Any, within: tuple[Any, ...] = ()) -> bool:
    """Whether a tensor is in a tuple or list, which may hold itself."""
    if isinstance(value, (list, tuple)):
        inside = (*within, value)
        return not any(value is w for w in within) and any(has_tensor(v, inside) for v in value)
    return kinds.is_tensor(value)


def _factories() -> frozenset[str]:
    return _FACTORIES


_FACTORIES = frozenset(
    "tensor as_tensor zeros ones empty full rand randn randint randperm arange linspace logspace "
    "eye scalar_tensor empty_strided tril_indices triu_indices hann_window hamming_window "
    "bartlett_window blackman_window kaiser_window device dtype finfo iinfo normal "
    "bernoulli complex polar range asarray".split()
)


def _shape(sizes: list[Any]) -> str:
    return "[" + ", ".join("?" if n is None else str(n) for n in sizes) + "]"
