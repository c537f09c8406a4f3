"""Tensors and symbolic numbers of a followed program: the side of capture that knows `_trace`.

An outside tensor becomes a fake and an input of the graph when it is read; calls of the library run
on fakes under the tracer, which records them. Sizes and integers that vary become symbols.
"""

from __future__ import annotations

import math
import types
from typing import Any

import numpy as np

import flambeau
from flambeau import _C
from flambeau._dynamo import config as switches
from flambeau._ir import formula
from flambeau._ir.enumerations import CheckKind, FormulaOp, SymbolKind
from flambeau._ir.graph import REGION, Graph
from flambeau._ir.symbols import Origin, UnbackedError
from flambeau._ir.symexpr import symbol
from flambeau._ir.symscalar import SymFloat, SymInt, sym_max, sym_min
from flambeau._ir.targets import resolve
from flambeau._ir.types import INT
from flambeau._ir.where import Where
from flambeau._table.added import is_added
from flambeau._table.entries import overloads
from flambeau._trace.fake import Fake
from flambeau._trace.meanings import DataDependent
from flambeau._trace.record import fake_input
from flambeau._trace.run_numbers import RunNumber, pick
from flambeau._trace.session import Session, traced_by
from flambeau._trace.stand_ins import check_results
from flambeau._trace.tensor import FakeTensor, SymSize

from . import array_calls, c_code, functions, kinds
from .autocasting import AutocastRecorder
from .errors import Break, ConstraintViolationError, Raised
from .interpreter import Frame, TensorMethod
from .sources import Source
from .state import Entries

#: functions of the core that read a state which guards cover, or none
_QUERIES = frozenset(
    "is_grad_enabled is_inference_mode_enabled get_default_dtype get_default_device is_tensor "
    "promote_types can_cast "
    "result_type is_autocast_enabled get_autocast_dtype is_autocast_cache_enabled "
    "set_autocast_enabled set_autocast_dtype set_autocast_cache_enabled _set_grad_enabled "
    "_has_torch_function _has_torch_function_unary _is_torch_function_enabled is_complex "
    "is_floating_point numel broadcast_shapes _attention_backends _set_attention_backends".split()
)
#: functions of the core that make a tensor of Python's values
_MAKERS = frozenset(("tensor", "as_tensor", "asarray", "scalar_tensor", "range"))
#: operations whose results are tensors of numbers alone too
_OF_NUMBERS = frozenset("add sub subtract mul multiply div divide true_divide floor_divide".split())
#: what a fake cannot answer because it depends on data or on memory
_VALUES = frozenset(
    "item tolist numpy data_ptr storage untyped_storage __array__ grad grad_fn _version "
    "backward register_hook retain_grad __dlpack__ share_memory_ set_ resize_ requires_grad_ "
    "names _base output_nr __dict__ register_post_accumulate_grad_hook is_shared data".split()
)


_ONLY_RUN = "a number that only the run tells"
_LONGEST_LIST = 1000  # numbers that `tolist()` makes


class _CaptureSession(Session):
    """Tensors with data that library code brings along become constants of the graph."""

    owner: Tensors

    def attach(self, x: Any) -> FakeTensor:
        return self.owner.input(x, self.owner.sources.constant(x, "a constant tensor"))

    def set_requires_grad(self, x: Fake, on: bool) -> None:
        if not on or not self.owner.keeps_histories:
            raise Break("a call of Tensor.requires_grad_, or requires_grad=True")
        builder, given = self.recorder.builder, (self.recorder.read(x),)
        builder.add(REGION + "requires_grad", ((), given, (), ()), (), self.recorder.env.locate())
        x.requires_grad = True


class Tensors:
    """The graph under construction and the tensors it was made from."""

    refusals = (DataDependent, NotImplementedError, UnbackedError)

    def __init__(self, sources: Any, dynamic_shapes: Any) -> None:
        self.sources, self.dynamic_shapes = sources, dynamic_shapes
        self.recorder = AutocastRecorder()
        self.env = self.recorder.env
        self.env.locate = self.locate
        self.session = _CaptureSession(self.recorder)
        self.session.owner = self
        self.inputs: list[tuple[Source, Any]] = []  # of the graph: source, example
        self.real: dict[int, Any] = {}  # fake -> the tensor it stands for
        self.inputs_of: dict[int, Source] = {}  # fake -> where that is found
        self.strides: list[tuple[int, int, Any]] = []  # input, dim, what the stride must be
        self.integers: dict[Source, Any] = {}
        self.floats: dict[Source, RunNumber] = {}  # inputs that are made of floats
        self.attributes: dict[int, dict[str, Any]] = {}  # of tensors of the graph: stored by name
        self.interpreter: Any = None
        self.may_check = True  # see Note [Checks]
        self.failed: Any = None  # a tensor that says whether a check did
        self.checks: list[str] = []  # what they were, for people
        self.blocks = 0  # of regions that are followed now
        self.backwards = 0  # of functions with derivatives of their own, which are followed now
        self.transforms = 0  # of `func`, in whose blocks the program is now

    def locate(self) -> Where | None:
        at = self.interpreter.where
        return None if at is None else Where(at.file, at.line, at.function)

    @property
    def graph(self) -> Graph:
        return self.recorder.graph

    # -- reading -----------------------------------------------------------------------------------

    def input(self, value: Any, source: Source) -> Any:
        """The fake of an outside tensor; its facts are guarded."""
        known = self.session.of_tensor.get(id(value))
        if known is not None:
            return known
        with traced_by(None):  # C code may be asking, through an iterator of the program
            return self._new_input(value, source)

    def _new_input(self, value: Any, source: Source) -> Any:
        cls = type(value)
        if cls is not _C.Tensor and _results_are_its_own(cls):
            raise Break(f"{source.name} is a {cls.__qualname__}, which overrides operations")
        if value.device.type != "cpu" or value.layout is not flambeau.strided:
            raise Break(f"{source.name} is on {value.device} with layout {value.layout}")
        if value.requires_grad and value.grad_fn is None and not value.is_leaf:
            raise Break(f"{source.name} has an unusual history")
        index = len(self.inputs)
        dims = self.dynamic_shapes.dims(value, source)
        strided = self.dynamic_shapes.strides(value, source)
        fake = fake_input(value, self.env, index, dims, strided)
        start = value.storage_offset()
        fake.memory.start = lambda: self.start_of(start, source)
        fixed = [n if isinstance(n, int) else None for n in fake.shape]
        strides = [n if isinstance(n, int) else None for n in fake.strides]
        facts = (cls, value, fixed, strides, None, value.requires_grad)
        words = f"{source.name} is a {value.dtype} tensor of shape {_shape(fixed)}"
        words += ", contiguous" if value.is_contiguous() else f" and strides {_shape(strides)}"
        if value.requires_grad:
            words += ", that requires grad"
        source.check(CheckKind.Tensor, facts, words)
        self._guard_strides(fake, index)
        self.inputs.append((source, value))
        self.sources.distinct.append(source)
        shown = self.session.input(fake)
        self.session.of_tensor[id(value)] = shown
        self.real[id(shown)] = value
        self.inputs_of[id(shown)] = source
        source.take()
        return shown

    def _guard_strides(self, fake: Fake, index: int) -> None:
        """Strides that are expressions of sizes: so they must be in later calls."""
        for d, n in enumerate(fake.strides):
            if not isinstance(n, int) and not self.env.is_own(n, Origin(index, "stride", d)):
                self.strides.append((index, d, n))

    def start_of(self, start: int, source: Source) -> int:
        """Where a tensor begins in its storage; later calls are to find the same."""
        source.check(
            CheckKind.Truth, _BeginsAt(start), f"{source.name}.storage_offset() == {start}"
        )
        return start

    def integer(self, value: int, source: Source) -> Any:
        """An outside integer: a constant, or a symbol once it was seen to vary."""
        if not self.dynamic_shapes.integer(value, source):
            source.equals(value)
            return value
        known = self.integers.get(source)
        if known is None:
            source.check(CheckKind.Type, int, f"type({source.name}) is int")
            source.take()
            origin = Origin(len(self.inputs), "value")
            low, high = (2, math.inf) if value > 1 else (-math.inf, -1)
            known = self.env.symbol(value, origin, low, high)
            if isinstance(known, SymInt):
                self.recorder.builder.input(INT)
                self.inputs.append((source, value))
            else:
                source.equals(value)
            self.integers[source] = known
        return known

    def floating(self, value: Any, source: Source) -> Any:
        """An outside float or number of NumPy: a constant, or a number of the run once it was
        seen to vary."""
        if not self.dynamic_shapes.floating(value, source):
            return _fixed(value, source)
        known = self.floats.get(source)
        if known is None:
            cls = type(value)
            source.check(CheckKind.Type, cls, f"type({source.name}) is {cls.__name__}")
            source.take()
            example = self.session.outside(as_input, value)
            fake = self.session.input(fake_input(example, self.env, len(self.inputs), False))
            self.inputs.append((source, example))

            numpy = None if cls is float else cls
            known = RunNumber(fake, lambda: _fixed(value, source), numpy)
            self.floats[source] = known
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
        return type(value) in (SymInt, SymFloat, RunNumber)

    @staticmethod
    def shape(sizes: list[Any]) -> Any:
        """A `Size` some of whose sizes are symbols."""
        return SymSize(sizes)

    @staticmethod
    def symbol_class(value: Any) -> Any:
        if type(value) is RunNumber:
            return value.numpy or value.kind
        return int if type(value) is SymInt else float

    @staticmethod
    def decide(value: Any) -> Any:
        if type(value) is RunNumber:
            try:
                return value.decided()
            except DataDependent as e:
                raise Break(str(e)) from None
        return int(value) if type(value) is SymInt else float(value)

    def extreme(self, f: Frame, function: Any, items: list[Any]) -> Any:
        if any(type(v) is RunNumber for v in items):
            found = f.interpreter.direct(pick, function, items)
            if found is not None:
                return found
            items = c_code.specialised(f, items)
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
        if any(map(has_number, (*args, *kwargs.values()))):
            return self.call_with_numbers(f, function, args, kwargs)
        if name in ("item", "tolist", "numpy"):
            subject = args[0] if args else getattr(function, "__self__", None)
            if isinstance(subject, FakeTensor) and name != "numpy":
                if subject.constant() is not None:
                    return f.interpreter.direct(subject.value_of, name)
                if name == "item" and self.may_decide(f, subject):
                    return subject
                if name == "item" and self.may_decide(f, subject, compared=True):
                    floats = subject.is_floating_point()  # as Python's are, so they compare alike
                    return f.interpreter.direct(subject.double if floats else subject.long)
                if self.keeps_numbers(f):
                    return self.numbers_of(f, subject, name)
            if name == "numpy" and isinstance(subject, FakeTensor) and not kwargs:
                return array_calls.array_of(f, subject)
        if name in _VALUES and not (name == "requires_grad_" and self.keeps_histories):
            raise Break(f"a call of Tensor.{name}")
        if array_calls.holds_array([args, kwargs]):
            return array_calls.as_tensor(f, name, args, kwargs)
        on_tensors = has_tensor([*args, *kwargs.values()])
        owner = getattr(function, "__self__", None)
        on_tensors = on_tensors or kinds.is_tensor(owner)
        on_tensors = on_tensors or (name in _OF_NUMBERS and all(map(_is_number, args)))
        if not on_tensors and name not in _QUERIES and not self.makes_tensor(function, name):
            raise Break(f"a call of {kinds.describe(function)}")
        if kwargs.get("out") is not None and _C.is_autocast_enabled("cpu"):
            raise Break("an operation with out= under autocast")
        if name.startswith(("_set_", "set_")):
            return f.interpreter.direct(function, *args, **kwargs)
        for value in (*args, *kwargs.values()):
            if not c_code.may_be_read(f, value):
                raise Break(f"a call of {kinds.describe(function)} with {kinds.describe(value)}")
            if isinstance(value, flambeau.Generator):
                raise Break("an operation with a generator of its own")
        try:
            return f.interpreter.direct(function, *args, **kwargs)
        except Raised as raised:
            if not isinstance(raised.error, TypeError):
                raise
            sized = self._with_sizes(f, args)
            named = dict(zip(kwargs, self._with_sizes(f, kwargs.values()), strict=True))
            before, after = (*args, *kwargs.values()), (*sized, *named.values())
            if all(a is b for a, b in zip(after, before, strict=True)):
                raise
            return f.interpreter.direct(function, *sized, **named)

    def _with_sizes(self, f: Frame, args: Any) -> list[Any]:
        """Arguments of a call that refused them, with numbers for the sizes among them."""
        out = []
        for a in args:
            of_tensors = isinstance(a, (tuple, list)) and has_tensor(a)
            out.append(type(a)(self._with_sizes(f, a)) if of_tensors else self.sized(f, a))
        return out

    @property
    def keeps_histories(self) -> bool:
        """Whether the graph may begin histories of its own: it is a whole one."""
        return self.recorder.takes_unbacked

    @staticmethod
    def keeps_numbers(f: Frame) -> bool:
        """Whether `item()` of what is computed in a graph gives a number of the graph."""
        config = f.interpreter.config
        return bool(switches.capture_scalar_outputs or config.fullgraph)

    def numbers_of(self, f: Frame, x: FakeTensor, name: str) -> Any:
        """`x.item()` or `x.tolist()`, see Note [Numbers of a run]."""
        if name == "tolist" and x.ndim:
            if not isinstance(x.shape[0], int) or x.shape[0] > _LONGEST_LIST:
                raise Break("a call of Tensor.tolist")
            parts = f.interpreter.direct(x.unbind, 0)
            return [self.numbers_of(f, part, name) for part in parts]
        count = x.numel()
        if count != 1:
            words = f"a Tensor with {count} elements cannot be converted to Scalar"
            raise Raised(RuntimeError(words))
        made: Any = quietly(lambda: f.interpreter.direct(RunNumber.of, x))
        if made is None:
            raise Break(f"a call of Tensor.{name} of {x.dtype}")
        outside = self.given(f, x)
        if outside is not None:
            made.known = lambda: self.value_of(x, outside)
        return made

    def given(self, f: Frame, x: FakeTensor) -> Any:
        """The tensor from outside that a fake stands for, if it holds still what it was given
        with and a graph may not end where its value is asked for; None for others."""
        if not f.interpreter.config.fullgraph:
            return None
        unwritten = x.fake.memory.version == 0 and not self.recorder.outside_writes
        return self.real.get(id(x)) if unwritten else None

    def value_of(self, x: FakeTensor, outside: Any) -> Any:
        """The number in a tensor from outside; later calls are to find the same."""
        source = self.inputs_of[id(x)]
        value = self.session.outside(outside.item)
        source.check(CheckKind.Truth, _Holds(value), f"{source.name}.item() == {value!r}")
        return value

    def position(self, f: Frame, key: Any) -> Any:
        """A position in a list, as a tensor from outside tells it."""
        if not isinstance(key, FakeTensor) or key.dim() or not _is_whole(key.dtype):
            return key
        outside = self.given(f, key)
        return key if outside is None else self.value_of(key, outside)

    def sized(self, f: Frame, x: Any) -> Any:
        """A size that is given as a tensor: a number, where its value is known."""
        if not isinstance(x, FakeTensor) or x.dim() or not _is_whole(x.dtype):
            return x
        constant = x.constant()
        return self.position(f, x) if constant is None else constant.item()

    def converted(self, f: Frame, kind: Any, value: Any) -> Any:
        """`int(value)`, `float(value)` or `bool(value)` as a number of the graph; UNSET where it is
        none."""
        if isinstance(value, FakeTensor):
            if value.constant() is not None or not self.keeps_numbers(f):
                return kinds.UNSET
            value = self.numbers_of(f, value, "item")
        elif type(value) is not RunNumber:
            return kinds.UNSET
        return f.interpreter.direct(value.as_kind, kind)

    def beside(self, f: Frame, values: Any) -> list[Any]:
        """Operands, with tensors in the place of numbers that only the run tells."""
        tensors = [v for v in values if isinstance(v, FakeTensor)]

        def shown(v: Any) -> Any:
            return f.interpreter.direct(v.beside, tensors) if type(v) is RunNumber else v

        return [shown(v) for v in values]

    def key(self, f: Frame, key: Any) -> Any:
        """An index of a tensor, the same way."""
        if isinstance(key, tuple):
            return tuple(self.key(f, k) for k in key)
        if type(key) is RunNumber and key.kind is int:
            return key.tensor
        if type(key) is slice:
            key = slice(*self.decided_of((key.start, key.stop, key.step)))
        if has_number(key) or (type(key) is slice and has_number((key.start, key.stop, key.step))):
            raise Break(f"a tensor is indexed by {_ONLY_RUN}", ends_whole=False)
        return key

    def call_with_numbers(self, f: Frame, function: Any, args: Any, kwargs: Any) -> Any:
        """A function of the core that is given numbers which only the run tells: as tensors, where
        it takes those in their place."""
        name = getattr(function, "__name__", "")
        if name in ("tensor", "as_tensor") and type(args[0]) is RunNumber:
            made = f.interpreter.direct(args[0].as_tensor)
            return f.interpreter.direct(made.to, **kwargs) if kwargs else made
        owner = getattr(function, "__self__", None)
        given = self.beside(f, [owner, *args, *kwargs.values()])[1:]
        try:
            if not any(map(has_number, given)):
                named = dict(zip(kwargs, given[len(args) :], strict=True))
                return self.call(f, function, given[: len(args)], named)
        except (Break, Raised):
            pass
        given = self.decided_of([*args, *kwargs.values()])
        if any(map(has_number, given)):
            words = f"{kinds.describe(function)} is given {_ONLY_RUN}"
            raise Break(words, ends_whole=False)
        named = dict(zip(kwargs, given[len(args) :], strict=True))
        return self.call(f, function, given[: len(args)], named)

    def decided_of(self, values: Any) -> list[Any]:
        """The values, with numbers that may be taken for constants as such."""

        def shown(v: Any) -> Any:
            if type(v) is RunNumber and v.known is not None:
                return v.decided()
            return type(v)(self.decided_of(v)) if has_number(v) and type(v) is not RunNumber else v

        return [shown(v) for v in values]

    @staticmethod
    def makes_tensor(function: Any, name: str) -> bool:
        """Factories: operations without tensor arguments, and constructors."""
        if name in _MAKERS or isinstance(function, type):
            return True
        return any(not op.tensor_params for op in overloads(name))

    # Note [Checks]
    # `if (x < 0).any(): raise ValueError(...)` goes one way alone where nothing is wrong. The graph
    # goes on that way, and has a further output that says whether any such branch would have gone
    # the other way. If so, or if the graph raises, the entry has changed nothing yet: it hands the
    # frame back, which runs in plain Python from its beginning and raises what the program says,
    # where it says so. Random numbers are drawn again then, from the state before the graph. So a
    # graph with checks may change no tensor from outside and call no operator of programs; the
    # attempt for such a one begins again without.

    def check(self, f: Frame, value: Any, wanted: bool) -> bool:
        """Takes it on trust, until the run, that a tensor is true or not; False: it cannot be."""
        inside = self.blocks or self.backwards
        if not self.may_check or inside or value.numel() != 1 or value.constant() is not None:
            return False
        wrong = f.interpreter.direct(flambeau.eq if wanted else flambeau.ne, value, 0)
        if value.dim():
            wrong = f.interpreter.direct(wrong.reshape, ())
        if self.failed is not None:
            wrong = f.interpreter.direct(flambeau.logical_or, self.failed, wrong)
        self.failed = wrong
        self.checks.append(f"a branch that would raise is not taken ({f.interpreter.where})")
        return True

    def may_decide(self, f: Frame, value: Any, compared: bool = False) -> bool:
        """Whether a number is asked of a tensor for a check that comes next.

        Args:
            compared: the number is compared with a constant for it.
        """
        at, code = f.pc, f.decoded.instructions
        if compared:
            names = [i.name for i in code[at : at + 2]]
            if names != ["LOAD_CONST", "COMPARE_OP"] or value.is_complex():
                return False
            constant = f.code.co_consts[code[at].arg]
            numbers = (int, float) if value.is_floating_point() else (int,)
            if type(constant) not in numbers or not abs(constant) < 2**53:
                return False
            at += 2
        return self.may_check and value.numel() == 1 and f.decoded.expected(at) is not None

    def may_run_again(self) -> bool:
        """Whether a run of the graph leaves nothing behind."""
        added = any(n.is_call and is_added(n.target) for n in self.graph.nodes)
        return not self.recorder.outside_writes and not added

    def draws(self) -> bool:
        """Whether a run of the graph draws random numbers."""
        return any(n.is_call and resolve(n.target).draws for n in self.graph.nodes)

    def truth(self, f: Frame, value: Any) -> bool:
        """`bool(x)`: known of a tensor that the program made of numbers."""
        if value.constant() is None:
            outside = self.given(f, value)
            if outside is not None and outside.numel() == 1:
                return bool(self.value_of(value, outside))
            raise Break("a branch depends on the values of a tensor")
        return bool(value.value_of("__bool__"))

    def attribute(self, f: Frame, value: Any, name: str) -> Any:
        if name in ("grad", "_grad", "grad_fn", "_base", "_version", "names", "output_nr", "data"):
            if name == "data":
                return f.interpreter.direct(getattr, value, name)
            raise Break(f"Tensor.{name} is read")
        if name == "__class__":
            return self.real_class(value)
        own = self.own_attributes(f, value)
        if own is not None and own.shows(name):
            found = own.get(name)
            if found is not kinds.UNSET:
                return found
        known = self.real.get(id(value))
        if known is not None:
            cls = type(known)
            if cls is not _C.Tensor:
                found, owner = kinds.mro_lookup(cls, name)
                if isinstance(found, types.FunctionType) and owner is not _C.Tensor:
                    return types.MethodType(found, value)
        replaced = self.replaced(f, name)
        if type(replaced) is property:
            return f.call(replaced.fget, [value], {})
        if replaced is not kinds.UNSET:
            return types.MethodType(replaced, value)
        found = kinds.mro_lookup(_C.Tensor, name)[0]
        if found is kinds.UNSET and name not in FakeTensor.__dict__:
            if own is not None:
                own.get(name)  # guarded as absent
            words = f"'{self.real_class(value).__name__}' object has no attribute '{name}'"
            raise Raised(AttributeError(words))
        if isinstance(found, types.FunctionType) and name not in FakeTensor.__dict__:
            return types.MethodType(found, value)
        bound = f.interpreter.direct(getattr, value, name)
        if isinstance(bound, types.MethodType):
            return TensorMethod(bound, name)
        return bound

    @staticmethod
    def replaced(f: Frame, name: str) -> Any:
        """The function or property that a program put in the place of Tensor's; else UNSET."""
        found, owner = kinds.mro_lookup(_C.Tensor, name)
        f.shadow_state.sources.in_classes(_C.Tensor, name, owner)
        function = found.fget if type(found) is property else found
        if type(function) is not types.FunctionType or kinds.in_library(
            function.__code__.co_filename
        ):
            return kinds.UNSET
        return found

    def own_attributes(self, f: Frame, x: Any, makes: bool = False) -> Any:
        """What programs store in a tensor by name; None: nothing yet."""
        known = self.real.get(id(x))
        if known is None:
            if id(x) not in self.attributes and not makes:
                return None
            return Entries(f.shadow_state, None, None, self.attributes.setdefault(id(x), {}))
        store = kinds.instance_dict(known)
        source = self.inputs_of[id(x)]
        return None if store is None else f.shadow_state.entries(store, source.instance())

    def store_attribute(self, f: Frame, target: Any, name: str, value: Any) -> None:
        """`x.name = value` for a name that tensors do not have themselves."""
        if name == "requires_grad" and value is False and self._has_no_history(target):
            return
        self._check_own(target, name, "set")
        self.own_attributes(f, target, makes=True).set(name, value)

    @staticmethod
    def _has_no_history(x: Any) -> bool:
        return isinstance(x, FakeTensor) and not x.fake.requires_grad

    def delete_attribute(self, f: Frame, target: Any, name: str) -> None:
        """`del x.name` for such a name."""
        self._check_own(target, name, "deleted")
        own = self.own_attributes(f, target)
        if own is None or not own.delete(name):
            raise Raised(AttributeError(name))

    def _check_own(self, target: Any, name: str, word: str) -> None:
        cls = self.real_class(target)
        has_setter = kinds.mro_lookup(cls, "__setattr__")[1] not in (object, _C.Tensor)
        if kinds.mro_lookup(cls, name)[0] is not kinds.UNSET or has_setter:
            raise Break(f"the attribute {name} of a tensor is {word}")

    def apply(self, f: Frame, cls: Any, setup: Any, args: Any) -> Any:
        """autograd.Function"""
        return functions.apply(f, cls, setup, args)

    # -- the end -----------------------------------------------------------------------------------

    def check_marks(self) -> None:
        """Raise where the program fixes a size of which `mark_dynamic` says that it varies."""
        for s in self.env.symbols.values():
            size = self.env.simplify(symbol(s.name)).constant
            if size is None or s.origin is None or s.origin.kind != "size":
                continue
            source, tensor = self.inputs[s.origin.input]
            if s.origin.dim not in getattr(tensor, "_flambeau_dynamic_dims", ()):
                continue
            about = [g for g in self.env.history if g.relation == "==" and g.where is not None]
            own = [g for g in about if s.name in g.expr.symbols] or about
            at = f"\n  at {own[0].where}" if own else ""
            raise ConstraintViolationError(
                f"mark_dynamic: dim {s.origin.dim} of {source.name} is marked as one that varies, "
                f"but the program works for size {size} alone; remove the mark, or what fixes the "
                f"size{at}"
            )

    def relations(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Where symbols are found, and what must hold of them, as native guards take it."""
        sources: list[tuple[int, int, int]] = []
        names: dict[str, int] = {}
        for s in self.env.symbols.values():
            if s.origin is not None:
                names[s.name] = len(sources)
                slot = self.inputs[s.origin.input][0].take()
                sources.append((slot, SymbolKind[s.origin.kind], s.origin.dim))
        rows = [
            (formula.steps(g.expr, names), formula.RELATIONS[g.relation], str(g))
            for g in self.env.conditions()
        ]
        for index, d, n in self.strides:
            source = self.inputs[index][0]
            sources.append((source.take(), SymbolKind.Stride, d))
            steps = (
                *formula.steps(self.env.simplify(n.expr) * -1, names),
                (FormulaOp.Load, len(sources) - 1),
                (FormulaOp.Add, 0),
            )
            rows.append((steps, 0, f"{source.name}.stride({d}) == {n}"))
        return tuple(sources), tuple(rows)

    def symbol_texts(self) -> list[str]:
        """Symbols in words: what each stands for."""
        out = []
        for s in self.env.symbols.values():
            if s.origin is not None:
                name = self.inputs[s.origin.input][0].name
                part = "" if s.origin.kind == "value" else f".{s.origin.kind}({s.origin.dim})"
                out.append(f"{s.name} = {name}{part} (was {s.hint})")
        return out

    def clear(self) -> None:
        """Lets go of the user's tensors."""
        self.real.clear()
        self.attributes.clear()
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


def _is_number(value: Any) -> bool:
    return type(value) in (int, float, bool, SymInt)


def _nowhere() -> None:
    return None


def as_input(value: Any) -> Any:
    """A float or a number of NumPy as graphs take it."""
    dtype = flambeau.int64 if isinstance(value, np.integer) else flambeau.float64
    return flambeau.tensor(value, dtype=dtype, device="cpu")


def _fixed(value: Any, source: Source) -> Any:
    """A float or a number of NumPy as a constant; later calls are to find the same."""
    if type(value) is float:
        source.equals(value)
    else:
        source.check(CheckKind.Truth, _IsNumber(value), f"{source.name} == {value!r}")
    return value


class _IsNumber:
    """A check that a number of NumPy is this one: of its class, sign and NaN included."""

    def __init__(self, value: Any) -> None:
        self.cls, self.bytes = type(value), value.tobytes()

    def __call__(self, x: Any) -> bool:
        return type(x) is self.cls and x.tobytes() == self.bytes


class _Holds:
    """A check that a tensor holds a number, NaN included."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self, x: Any) -> bool:
        found = x.item()
        return bool(found == self.value or (found != found and self.value != self.value))


class _BeginsAt:
    """A check of where a tensor begins in its storage."""

    def __init__(self, start: int) -> None:
        self.start = start

    def __call__(self, x: Any) -> bool:
        return bool(x.storage_offset() == self.start)


def _is_whole(dtype: Any) -> bool:
    floating = dtype.is_floating_point or dtype.is_complex
    return not floating and dtype is not flambeau.bool


def _results_are_its_own(cls: type) -> bool:
    """Whether results of operations on objects of a subclass are not plain tensors."""
    return cls.__torch_function__ is not _C._disabled_torch_function_impl  # type: ignore[attr-defined]


def quietly(function: Any) -> Any:
    """What a function gives, recorded without gradients."""
    before = flambeau.is_grad_enabled()
    _C._set_grad_enabled(False)
    try:
        return function()
    finally:
        _C._set_grad_enabled(before)


def has_number(value: Any) -> bool:
    """Whether a number that only the run tells is in a tuple or list."""
    if type(value) in (tuple, list):
        return len(value) <= _LONGEST_LIST and any(map(has_number, value))
    return type(value) is RunNumber


def has_tensor(value: Any, within: tuple[Any, ...] = ()) -> bool:
    """Whether a tensor is in a tuple or list, which may hold itself."""
    if isinstance(value, (list, tuple)):
        inside = (*within, value)
        return not any(value is w for w in within) and any(has_tensor(v, inside) for v in value)
    return kinds.is_tensor(value)


def _shape(sizes: list[Any]) -> str:
    return "[" + ", ".join("?" if n is None else str(n) for n in sizes) + "]"
