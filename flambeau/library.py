"""Operators written by users in Python: `custom_op`, and what can be registered for one.

Owns the operators by name, as `torch.ops.NAMESPACE.NAME` finds them. An operator runs its function
without recording it; its derivative is the one registered, and without one backward raises.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from flambeau import Tensor, is_grad_enabled
from flambeau.autograd import Function

__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "get_ctx",
    "impl",
    "register_autograd",
    "register_fake",
    "register_kernel",
]

#: "namespace::name" -> operator
_operators: dict[str, CustomOpDef] = {}
#: shapes that were given before their operator
_early_fakes: dict[str, Callable[..., Any]] = {}
_KERNELS = ("CPU", "cpu", "default", "CompositeExplicitAutograd", "CompositeImplicitAutograd")


class CustomOpDef:
    """An operator: call it, and register what it lacks."""

    def __init__(self, name: str, fn: Callable[..., Any] | None) -> None:
        if name.count("::") != 1:
            raise ValueError(f"custom_op: expected a name like 'space::name', got {name!r}")
        self._name, self._fn = name, fn
        self.__name__ = name.partition("::")[2]
        self._fake: Callable[..., Any] | None = _early_fakes.pop(name, None)
        self._backward: Callable[..., Any] | None = None
        self._setup: Callable[..., Any] | None = None
        _operators[name] = self

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Say what shapes the operator returns; also a decorator."""
        self._fake = fn
        return fn

    def register_kernel(
        self, device_types: Any, fn: Callable[..., Any] | None = None, /
    ) -> Callable[..., Any]:
        """Give the function for a kind of device; also a decorator."""
        kinds = (device_types,) if isinstance(device_types, str) else device_types or ("cpu",)

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            if any(kind in _KERNELS for kind in kinds):
                self._fn = function
            return function

        return register if fn is None else register(fn)

    register_impl = register_kernel

    def register_autograd(
        self,
        backward: Callable[..., Any],
        /,
        *,
        setup_context: Callable[..., Any] | None = None,
    ) -> None:
        """Give the derivative: `backward(ctx, *grads)` and `setup_context(ctx, inputs, output)`."""
        self._backward, self._setup = backward, setup_context

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function = self._fn
        if function is None:
            raise NotImplementedError(f"{self._name}: expected a kernel for the CPU, got none")
        tensors = (a for a in (*args, *kwargs.values()) if isinstance(a, Tensor))
        if not is_grad_enabled() or not any(t.requires_grad for t in tensors):
            return function(*args, **kwargs)
        args, kwargs = _by_place(function, args, kwargs)
        return _recorded(self, function, kwargs).apply(*args)

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._name})>"


def _by_place(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call with those in their places that have one, however they were given."""
    if not kwargs:
        return args, kwargs
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args, bound.kwargs


def _recorded(op: CustomOpDef, function: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
    """The operator as a function of autograd, for one call."""

    class Recorded(Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            output = function(*inputs, **kwargs)
            if op._setup is not None:
                named = {"keyword_only_inputs": kwargs} if kwargs else {}
                op._setup(ctx=ctx, inputs=inputs, output=output, **named)
            return output

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            if op._backward is None:
                raise RuntimeError(
                    f"Trying to backward through {op._name} but no autograd formula was "
                    "registered. Please use register_autograd to add one."
                )
            return op._backward(ctx, *grads)

    return Recorded


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: Any = "unknown",
    device_types: Any = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Make an operator of a Python function; also a decorator.

    Args:
        name: "namespace::name".
        fn: the function.
        mutates_args: names of the arguments that it writes to.
        device_types: devices that the function is for; all where it is None.
        schema: its signature, which the function has too.
        tags: what else is known of it.

    >>> @torch.library.custom_op("docs::double", mutates_args=())
    ... def double(x: torch.Tensor) -> torch.Tensor:
    ...     return x * 2
    >>> double(torch.ones(2))
    tensor([2., 2.])
    """

    def make(function: Callable[..., Any]) -> CustomOpDef:
        kinds = (device_types,) if isinstance(device_types, str) else device_types
        usable = kinds is None or "cpu" in kinds
        op = CustomOpDef(name, function if usable else None)
        op.__doc__ = function.__doc__
        return op

    return make if fn is None else make(fn)


def _of(op: Any, asked_by: str) -> CustomOpDef:
    if isinstance(op, CustomOpDef):
        return op
    name = getattr(op, "_qualname", op)
    if name not in _operators:
        raise RuntimeError(f"{asked_by}: operator {name} does not exist")
    return _operators[name]


def register_fake(op: Any, func: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Say what shapes an operator returns, which may be defined later; also a decorator."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        if isinstance(op, str) and op not in _operators:
            _early_fakes[op] = function
            return function
        return _of(op, "register_fake").register_fake(function)

    return register if func is None else register(func)


def register_kernel(
    op: Any, device_types: Any, func: Callable[..., Any] | None = None, /, **options: Any
) -> Any:
    """Give an operator's function for a kind of device; also a decorator."""
    return _of(op, "register_kernel").register_kernel(device_types, func)


def register_autograd(
    op: Any,
    backward: Callable[..., Any],
    /,
    *,
    setup_context: Callable[..., Any] | None = None,
    lib: Any = None,
) -> None:
    """Give an operator's derivative."""
    _of(op, "register_autograd").register_autograd(backward, setup_context=setup_context)


def get_ctx() -> Any:
    """Refuse: shapes that depend on data are not traced through operators."""
    raise NotImplementedError("library.get_ctx: shapes that depend on data are not built yet")


def define(qualname: str, schema: str, *, lib: Any = None, tags: Any = ()) -> None:
    """Name an operator, whose function follows."""
    CustomOpDef(qualname, None)


def impl(
    qualname: str, types: Any, func: Callable[..., Any] | None = None, *, lib: Any = None
) -> Any:
    """Give an operator's function; also a decorator."""
    return _of(qualname, "impl").register_kernel(types, func)


class Library:
    """A namespace's operators.

    Args:
        ns: the namespace.
        kind: "DEF", "FRAGMENT" or "IMPL".
        dispatch_key: what `impl` is for, unless it says.
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("DEF", "FRAGMENT", "IMPL"):
            raise ValueError(f"Unsupported kind: {kind}")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Name an operator by its signature."""
        name = schema.partition("(")[0].strip().removeprefix(f"{self.ns}::")
        CustomOpDef(f"{self.ns}::{name}", None)
        return name

    def impl(
        self, op_name: Any, fn: Callable[..., Any], dispatch_key: str = "", **options: Any
    ) -> None:
        """Give an operator's function, or its shapes (`Meta`)."""
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        op = _of(f"{self.ns}::{str(op_name).removeprefix(self.ns + '::')}", "Library.impl")
        if key == "Meta":
            op.register_fake(fn)
        elif key in _KERNELS:
            op.register_kernel("cpu", fn)
        else:
            raise NotImplementedError(f"Library.impl: expected CPU, Composite or Meta, got {key}")
