"""One run of a user's code under a recorder: bound calls of Python turned into calls of entries.

The bindings call a session with what they bound (csrc/python/trace_hook.h). Arguments become fakes,
numbers and lists; results become `FakeTensor`s. Tensors with data that the code brings along are
attached to the graph as further inputs.
"""

from __future__ import annotations

import ast
from collections import namedtuple
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import flambeau
from flambeau import _C

from .._ir.symscalar import SymFloat, SymInt
from .._ir.targets import resolve
from .._ir.types import Param
from .._table.added import by_name
from .._table.entries import record
from .._table.model import Op
from .dtypes import PYTHON_DTYPES
from .fake import Fake
from .handwritten import FUNCTIONS, unknown
from .interp import wrapped
from .record import Recorder, fake_input
from .tensor import FakeTensor


@by_name
def default(uid: str, name: str) -> Any:
    """Value of a parameter that was not given."""
    p = next(p for p in record(uid).params if p.name == name)
    if p.default is None:
        raise TypeError(f"{record(uid).name}() missing required argument {name!r}")
    if isinstance(p.default, ast.Name):
        return getattr(flambeau, p.default.id)
    return ast.literal_eval(p.default)


@by_name
def result_fields(uid: str) -> Any:
    """The type of a named result; None: results are plain."""
    op = record(uid)
    names = op.option("fields")
    return namedtuple(op.name, names) if names else None


@by_name
def device_parameter(uid: str) -> int | None:
    """Which parameter of a factory is its device; None for what takes tensors."""
    bases = [p.type.base for p in record(uid).params]
    if "Device" not in bases or any("Tensor" in b for b in bases):
        return None
    return bases.index("Device")


@contextmanager
def traced_by(session: Session | None) -> Iterator[None]:
    """Hands this thread's calls to a session, or to none."""
    before = _C._set_tracer(session, SymInt, SymFloat)
    try:
        yield
    finally:
        _C._set_tracer(before, SymInt, SymFloat)


class Session:
    """Calls of one thread, recorded."""

    #: the user's program runs, which must not see what stands for its tensors
    in_program = False

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.attached: list[Any] = []
        self.of_tensor: dict[int, FakeTensor] = {}  # fakes of attached tensors
        self.of_fake: dict[int, FakeTensor] = {}
        self.results: list[Fake] = []

    # -- running --------------------------------------------------------------------------------

    def run(self, f: Callable[..., Any], args: Sequence[Any]) -> Any:
        """The result of `f`, whose calls are recorded."""
        functions = _C._set_torch_function_enabled(False)
        try:
            with traced_by(self):
                return f(*args)
        finally:
            _C._set_torch_function_enabled(functions)

    def input(self, fake: Fake) -> FakeTensor:
        """A new input of the graph."""
        return self.shown(self.recorder.input(fake))

    def attach(self, x: Any) -> FakeTensor:
        """The fake of a tensor with data."""
        if id(x) not in self.of_tensor:
            index = len(self.recorder.graph.inputs)
            self.of_tensor[id(x)] = self.input(fake_input(x, self.recorder.env, index, False))
            self.attached.append(x)
        return self.of_tensor[id(x)]

    def set_requires_grad(self, x: Fake, on: bool) -> None:
        """Begin or end a tensor's history."""
        raise NotImplementedError(
            "requires_grad_() and requires_grad=True: not traced; call it outside"
        )

    def outputs(self, result: Any) -> Any:
        """A result as outputs of the graph."""
        if isinstance(result, flambeau.Tensor):
            self.results.append(self.fake(result))
            return self.recorder.arg(self.results[-1])
        if isinstance(result, dict):
            return tuple(map(self.outputs, result.values()))
        if isinstance(result, (list, tuple)):
            return tuple(map(self.outputs, result))
        return self.recorder.arg(result)

    # -- values ---------------------------------------------------------------------------------

    def shown(self, x: Any) -> Any:
        """A result as the user's code gets it."""
        if isinstance(x, Fake):
            made = self.of_fake.get(id(x))
            if made is None:
                with traced_by(None):
                    empty = flambeau.empty(0, dtype=x.dtype, device="cpu")
                    made = FakeTensor._make_subclass(FakeTensor, empty)
                made.fake, made.session = x, self
                self.of_fake[id(x)] = made
            return made
        if isinstance(x, (list, tuple)):
            return tuple(map(self.shown, x))
        return x

    def fake(self, x: Any) -> Fake:
        """A tensor of either sort as a fake."""
        if isinstance(x, FakeTensor):
            if x.session is not self:
                raise RuntimeError("a tensor of another trace was used in this one")
            return x.fake
        return self.attach(x).fake

    def tensor(self, x: Any) -> FakeTensor:
        """A tensor or a number as a traced tensor."""
        if isinstance(x, flambeau.Tensor):
            return x if isinstance(x, FakeTensor) else self.attach(x)
        return self.shown(wrapped(_number(x)))

    def may_change_geometry(self, x: Any) -> bool:
        """Whether the program made `x` itself; what came from outside would keep its geometry."""
        if not isinstance(x, FakeTensor) or x.session is not self:
            return False
        memory = x.fake.memory
        return not (memory.outside and memory.base is x.fake)

    def become(self, x: FakeTensor, fake: Fake) -> None:
        """The object `x` stands for `fake` from now on."""
        self.of_fake.pop(id(x.fake), None)
        self.of_fake[id(fake)] = x
        x.fake = fake

    def seen(self, x: FakeTensor, what: str) -> Any:
        """The tensor that the program holds, where the run has data and may look at it."""
        return None

    # -- calls ----------------------------------------------------------------------------------

    def __call__(self, name: str, target: str | None, named: dict[str, Any]) -> Any:
        """A call as the bindings hand it over."""
        with traced_by(None), self.recorder.env.assuming():
            self.recorder.grad = flambeau.is_grad_enabled()
            if target is None:
                function: Callable[..., Any] = FUNCTIONS.get(name, unknown)
                return function(self, name, *named.values())
            form = resolve(target)
            return self.entry(form.op, form.form == "inplace", named)

    def entry(self, op: Op, inplace: bool, named: dict[str, Any]) -> Any:
        """A call of an entry with arguments by name."""
        source = op.option("nothing_from_itself")
        if source and named[source] is named[op.params[0].name]:
            return named[source]
        own = {p.name for p in op.params}
        extras = {name: value for name, value in named.items() if name not in own}
        if extras.get("pin_memory"):
            raise NotImplementedError(f"{op.name}(): pin_memory=True is not traced")
        args = [
            self.bound(op, p, named[p.name] if p.name in named else default(op.uid, p.name))
            for p in op.params
        ]
        place = device_parameter(op.uid)
        if place is not None and args[place] is None:
            args[place] = self.default_device()
        result = self.recorder.call(op, inplace, args)
        out = extras.get("out")
        if out is not None:
            return self.into(result, out)
        if extras.get("requires_grad"):
            self.set_requires_grad(result, True)
        shown = self.shown(result)
        fields = result_fields(op.uid)
        return fields(*shown) if fields is not None and not inplace else shown

    @staticmethod
    def default_device() -> Any:
        """Where factories that are not told a device put tensors; None: on the CPU, where graphs
        run."""
        device = flambeau.get_default_device()
        return None if device.type == "cpu" else device

    @staticmethod
    def outside(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """The result of a call that no trace sees."""
        with traced_by(None):
            return function(*args, **kwargs)

    def into(self, result: Any, out: Any) -> Any:
        """Results written to the tensors of `out=`."""
        pairs = [(result, out)] if isinstance(result, Fake) else zip(result, out, strict=True)
        for r, o in pairs:
            self.recorder.call(record("copy_"), False, [self.fake(o), r, False])
        return out

    def op(self, name: str, *args: Any) -> Any:
        """A call of the only entry of a name, over fakes; parameters left out take defaults."""
        entry = record(name)
        rest = [default(name, p.name) for p in entry.params[len(args) :]]
        return self.recorder.call(entry, False, [*args, *rest])

    def method(self, name: str, *args: Any) -> Any:
        """A method as operators call it: the overload that the bindings choose."""
        with traced_by(self):
            return getattr(flambeau.Tensor, name)(*args)

    def bound(self, op: Op, p: Param, x: Any) -> Any:
        """A bound argument as entries take it."""
        if x is None:
            return None
        match p.type.base:
            case "Tensor":
                return self.tensor(x).fake
            case "Tensors" | "OptTensors":
                return [None if t is None else self.fake(t) for t in x]
            case "int":
                return _integer(x)
            case "Ints":
                given = list(x) if _is_list(x) else [x] * (p.type.length or 1)
                return [_integer(i) for i in given]
            case "Floats" | "Numbers":
                return [_number(i) for i in x] if _is_list(x) else [_number(x)]
            case "float" | "Number":
                return _number(x)
            case "bool":
                return bool(x)
            case "Bools":
                return list(x)
            case "DType":
                return PYTHON_DTYPES.get(x, x)
            case "Device":
                return flambeau.device(x)
            case "Generator":
                raise NotImplementedError(f"{op.name}(): generator= is not traced")
        return x


def _is_list(x: Any) -> bool:
    return isinstance(x, (list, tuple))


def _integer(x: Any) -> Any:
    return x if isinstance(x, SymInt) else x.__index__()


def _number(x: Any) -> Any:
    if isinstance(x, (SymInt, SymFloat)) or type(x) in (bool, int, float, complex):
        return x
    for base in (int, float, complex):  # of a class of its own, such as a NumPy scalar
        if isinstance(x, base):
            make: Any = base
            return make(x)
    return x.item()  # a NumPy scalar that is no number of Python, a tensor of one element
