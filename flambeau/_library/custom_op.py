"""`CustomOpDef`: an operator made of one function, and what can be registered for any operator."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import flambeau
from flambeau import _C, Tensor

from . import rules, schemas
from .operators import OpOverload, _overloads, added, overload_of, remove

#: devices by the names that registrations use, and the kernels of the core that they mean; a device
#: that is not built has None: its kernels are never called
_DEVICES = {"cpu": "CPU", "cuda": "CUDA", "meta": "Meta"}
#: shapes that were given before their operator
_early_fakes: dict[str, Callable[..., Any]] = {}


def as_list(given: Any) -> list[Any]:
    """One thing or several, as a list."""
    return [given] if isinstance(given, str) or not isinstance(given, Sequence) else list(given)


def set_kernel(
    op: OpOverload,
    kind: str,
    function: Callable[..., Any] | None,
    *,
    when_recording: bool = False,
    opaque: bool = False,
) -> None:
    """Give an operator a kernel of the core's kind."""
    _C._op_kernel(op._uid, kind, function, when_recording, opaque)
    if kind == "Composite":
        op._composite = function
    elif kind == "Autograd":
        op._autograd, op._when_recording = function, when_recording
    elif kind == "Autocast":
        op._autocast = function
    elif kind in ("CPU", "AnyDevice"):
        op._opaque = opaque


def set_fake(op: OpOverload, function: Callable[..., Any] | None) -> None:
    """Say what an operator returns for tensors without data."""
    op._fake = function
    set_kernel(op, "Meta", function)
    _forget_targets()


def set_autograd(
    op: OpOverload,
    backward: Callable[..., Any],
    setup_context: Callable[..., Any] | None,
    shown: Any,
) -> None:
    """Give an operator a derivative.

    Raises:
        RuntimeError: the operator writes to an argument.
    """
    if op._schema.is_mutable:
        raise RuntimeError(
            f"Cannot register autograd formula for non-functional operator {shown} with schema "
            f"{op._schema}. Please create a functional operator and register an autograd formula "
            "for that."
        )
    recorded = rules.function_of(op, backward, setup_context)
    set_kernel(op, "Autograd", recorded, when_recording=True)
    _C._op_vjp(op._uid, rules.vjp_of(op, backward, setup_context))


def set_vmap(op: OpOverload, function: Callable[..., Any]) -> None:
    """Give an operator a batching rule."""
    _C._op_vmap(op._uid, rules.batching_of(op, function))


def set_autocast(op: OpOverload, device_type: str, cast_inputs: Any) -> None:
    """Have an operator run in a dtype where autocast is on."""
    if device_type not in ("cpu", "cuda"):
        raise ValueError(f"register_autocast: expected 'cpu' or 'cuda', got {device_type!r}")
    if device_type != "cpu":
        return  # a device that is not there

    def cast(x: Any) -> Any:
        if isinstance(x, Tensor):
            fits = x.is_floating_point() and x.dtype != flambeau.float64
            return x.to(cast_inputs) if fits and x.device.type == device_type else x
        if isinstance(x, (list, tuple)):
            return [cast(t) for t in x]
        return x

    def kernel(*args: Any, **kwargs: Any) -> Any:
        return op(*map(cast, args), **{k: cast(v) for k, v in kwargs.items()})

    set_kernel(op, "Autocast", kernel)


def _forget_targets() -> None:
    """What graphs know of operators is looked up anew."""
    table = sys.modules.get("flambeau._table.added")
    if table is not None:
        table.forget()


def define(schema: str, tags: Any = ()) -> OpOverload:
    """A new operator without a kernel."""
    op = added(schema)
    op.tags = as_list(tags)
    _forget_targets()
    fake = _early_fakes.pop(op._uid, None)
    if fake is not None:
        set_fake(op, fake)
    return op


def undefine(op: OpOverload) -> None:
    """Take an operator away."""
    remove(op)
    _forget_targets()


class CustomOpDef:
    """An operator: call it, and register what it lacks. Made by `custom_op`."""

    def __init__(
        self, namespace: str, name: str, schema: str, fn: Callable[..., Any], tags: Any = None
    ) -> None:
        self._namespace, self._name, self._schema = namespace, name, schema
        self._init_fn = fn
        self._opoverload = define(f"{namespace}::{name}{schema}", tags or ())
        self._kernels: dict[str, Callable[..., Any]] = {}
        self._disabled: set[str] = set()
        functools.update_wrapper(self, fn)
        self.__name__ = name

    @property
    def _qualname(self) -> str:
        return f"{self._namespace}::{self._name}"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._opoverload(*args, **kwargs)

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Say what the operator returns for tensors without data: `compile` needs it.

        Args:
            fn: takes what the operator takes, and returns empty tensors of the shapes, strides and
                dtypes of its results. Also a decorator.
        """
        set_fake(self._opoverload, fn)
        return fn

    def register_kernel(
        self, device_types: str | Sequence[str] | None, fn: Callable[..., Any] | None = None, /
    ) -> Callable[..., Any]:
        """Give the function for kinds of devices; also a decorator.

        Args:
            device_types: such as "cpu"; None: all.
            fn: takes and returns what the operator does, without views of its arguments.
        """

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            for device in [None] if device_types is None else as_list(device_types):
                kind = "AnyDevice" if device is None else _DEVICES.get(device)
                if device == "meta":
                    set_fake(self._opoverload, function)
                elif kind is not None:
                    self._kernels[kind] = function
                    self._set(kind)
            return function

        return register if fn is None else register(fn)

    register_impl = register_kernel

    def _set(self, kind: str) -> None:
        chosen = self._init_fn if kind in self._disabled else self._kernels[kind]
        set_kernel(self._opoverload, kind, chosen, opaque=True)

    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Any:
        """Run the function that the operator was made of in the place of a device's kernel.

        Args:
            device_type: such as "cpu".
            enabled: False leaves the device's kernel out; True takes it again.

        Returns:
            A context manager that undoes the change.
        """
        kind = _DEVICES.get(device_type, "")
        before = set(self._disabled)

        def change(disabled: set[str]) -> None:
            self._disabled = disabled
            if kind in self._kernels:
                self._set(kind)

        change(before - {kind} if enabled else before | {kind})
        return _Undone(lambda: change(before))

    def register_autograd(
        self,
        backward: Callable[..., Any],
        /,
        *,
        setup_context: Callable[..., Any] | None = None,
    ) -> None:
        """Give the derivative.

        Args:
            backward: `backward(ctx, *grads)` returns a gradient, or None, per positional argument.
            setup_context: `setup_context(ctx, inputs, output)` keeps what backward needs.
        """
        set_autograd(self._opoverload, backward, setup_context, self)

    def register_vmap(self, func: Callable[..., Any] | None = None) -> Any:
        """Give the batching rule, `func(info, in_dims, *args)`, which returns results and their
        batch dims; also a decorator. Without one the operator runs once for each sample."""

        def register(function: Callable[..., Any]) -> None:
            set_vmap(self._opoverload, function)

        return register if func is None else register(func)

    def register_autocast(self, device_type: str, cast_inputs: Any) -> None:
        """Have the operator run in `cast_inputs` where autocast is on for the device."""
        set_autocast(self._opoverload, device_type, cast_inputs)

    def register_torch_dispatch(self, torch_dispatch_class: Any, fn: Any = None, /) -> Any:
        """Refuse: classes with `__torch_dispatch__` are not built."""
        refuse_torch_dispatch(torch_dispatch_class)

    def register_effect(self, effect: Any) -> None:
        """Refuse: effects have no tokens here."""
        raise NotImplementedError(
            "register_effect: effects of operators are not built; name what the operator writes to "
            "in mutates_args"
        )

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"


def refuse_torch_dispatch(cls: Any) -> None:
    """Raises for `register_torch_dispatch`."""
    raise NotImplementedError(
        f"register_torch_dispatch({getattr(cls, '__name__', cls)}): classes with "
        "__torch_dispatch__ are not built; give the class a __torch_function__, which sees calls "
        "of operators too"
    )


class _Undone:
    """A context manager whose end undoes what was done before it."""

    def __init__(self, undo: Callable[[], None]) -> None:
        self._undo = undo

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        self._undo()


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Sequence[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Make an operator of a function; also a decorator.

    Calls of it run the function as it is, whatever it does: gradients go through what
    `register_autograd` says, and `compile` looks at what `register_fake` says.

    Args:
        name: "namespace::name".
        fn: the function. Its parameters and its result are annotated, unless `schema` is given.
            What it returns shares no memory with what it takes.
        mutates_args: names of the arguments that it writes to, or "unknown".
        device_types: devices that the function is for; all where it is None.
        schema: its signature, such as "(Tensor x, int n=1) -> Tensor".
        tags: `torch.Tag.inplace` for a function that returns its first argument, which it writes
            to, `torch.Tag.out` for one that returns what it is given to write to by name; others
            are noted.

    Returns:
        The `CustomOpDef`.

    Raises:
        ValueError: the name has no namespace, or an annotation says what no schema can.

    >>> @torch.library.custom_op("docs::double", mutates_args=())
    ... def double(x: torch.Tensor) -> torch.Tensor:
    ...     return torch.from_numpy(x.numpy() * 2)
    >>> double(torch.ones(2))
    tensor([2., 2.])
    """
    namespace, colons, short = name.partition("::")
    if not colons or not namespace or not short or "::" in short:
        raise ValueError(f"custom_op: expected a name like 'space::name', got {name!r}")
    if "." in short:
        raise ValueError(f"custom_op: expected a name without an overload, got {name!r}")

    def make(function: Callable[..., Any]) -> CustomOpDef:
        text = schema
        if text is None:
            text = schemas.infer_schema(function, mutates_args=mutates_args, tags=tags)
        else:
            _check_mutated(name, text, mutates_args)
        known = _overloads.get(name)
        if known is not None:  # defined again, as when a cell of a notebook runs twice
            undefine(known)
        op = CustomOpDef(namespace, short, text, function, tags)
        op.register_kernel(device_types, function)
        return op

    return make if fn is None else make(fn)


def _check_mutated(name: str, text: str, mutates_args: str | Sequence[str]) -> None:
    """A schema that is given says itself what is written to: both must say the same."""
    found = {a.name for a in schemas.parse(f"{name}{text}").arguments if a.is_write}
    said = {mutates_args} if isinstance(mutates_args, str) else set(mutates_args)
    if said != {"unknown"} and said != found:
        raise ValueError(
            f"custom_op: {name}: mutates_args names {sorted(said)}, but the schema says that "
            f"{sorted(found)} are written to"
        )


def register_fake(
    op: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None, **options: Any
) -> Any:
    """Say what an operator returns for tensors without data; also a decorator.

    Args:
        op: the operator or its name, which may be defined later.
        func: takes what the operator takes and returns empty tensors like its results.
        lib: has no influence.
        options: `allow_override` False refuses where there is one already.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        if isinstance(op, str) and op not in _C._ops_added():
            if op.count("::") != 1:
                raise RuntimeError(f"register_fake: expected a name like 'space::name', got {op!r}")
            _early_fakes[op] = function
            return function
        found = overload_of(op)
        if not options.get("allow_override", True) and found._fake is not None:
            raise RuntimeError(f"register_fake: {found._uid} has a fake already")
        set_fake(found, function)
        return function

    return register if func is None else register(func)
