"""Custom differentiable functions.

Owns ``Function`` and the Python side of its context. What a call does (running forward, saving,
joining the graph) is the compiled core's; this file chooses which of the user's methods it runs.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from flambeau import _C

if TYPE_CHECKING:
    from flambeau import Tensor

__all__ = [
    "BackwardCFunction",
    "Function",
    "FunctionCtx",
    "FunctionMeta",
    "InplaceFunction",
    "once_differentiable",
]


class FunctionCtx:
    """What `forward` and `setup_context` may tell about a call."""

    to_save: tuple[Any, ...]
    saved_for_forward: tuple[Any, ...]
    dirty_tensors: tuple[Any, ...]
    non_differentiable: tuple[Any, ...]
    materialize_grads: bool
    needs_input_grad: tuple[bool, ...]

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keeps tensors for `backward`, which finds them in `saved_tensors`.

        Changes in place between both are noticed, and what is kept is freed after backward.
        """
        self.to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keeps tensors for `jvp`, which finds them in `saved_tensors`."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, _C.Tensor):
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors; you should save "
                    f"non-tensors as attributes on ctx, got {type(tensor).__name__}"
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Tensor) -> None:
        """Names the inputs that forward changed in place; they must be returned, too."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """Names outputs that have no gradient."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward gets zeros (the default) or None for gradients that are zero."""
        self.materialize_grads = value


class BackwardCFunction(_C._FunctionBase, FunctionCtx):
    """Context of a call; in the graph it is the node."""

    _forward_cls: type[Function]

    def apply(self, *args: Any) -> Any:
        """Runs the user's backward. Called by the engine."""
        cls = self._forward_cls
        backward, vjp = cls.backward, cls.vjp
        if backward is not Function.backward and vjp is not Function.vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You "
                "should only implement one of them."
            )
        return (vjp if vjp is not Function.vjp else backward)(self, *args)


class FunctionMeta(type):
    """Gives each Function class its own class of contexts, named after it."""

    _backward_cls: type[BackwardCFunction]

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        context = type(name + "Backward", (BackwardCFunction,), {"_forward_cls": cls})
        context.__module__ = "flambeau.autograd.function"
        cls._backward_cls = context
        super().__init__(name, bases, attrs)


class Function(metaclass=FunctionMeta):
    """A differentiable operation with a derivative of your own.

    Subclasses define static methods: `forward(ctx, *args)`, or `forward(*args)` together with
    `setup_context(ctx, inputs, output)`; `backward(ctx, *grads)`, which returns one gradient (or
    None) per argument of forward; and, for forward mode, `jvp(ctx, *tangents)`. Call it by `apply`.

    >>> class Square(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         (x,) = ctx.saved_tensors
    ...         return 2 * x * grad
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> Square.apply(x).backward()
    >>> x.grad
    tensor(6.)
    """

    generate_vmap_rule = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all "
            "static, so you should invoke them on the class itself. Instantiating an autograd "
            "function will raise an error in a future version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use "
            "new-style autograd function with static forward method."
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Computes the outputs. Takes the context first, unless `setup_context` is defined."""
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Fills the context after forward, when forward does not take it."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Gradients of the inputs from those of the outputs."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    # Another name for backward; which of both a class defines is told by identity.
    @staticmethod
    def vjp(ctx: Any, *grad_outputs: Any) -> Any:
        """Gradients of the inputs from those of the outputs."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Tangents of the outputs from those of the inputs (None: no tangent)."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with "
            "forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """Outputs and their batch dims from batched inputs."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or "
            "set generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Runs the function and records it."""
        setup = cls.setup_context
        if setup is Function.setup_context:
            if kwargs:
                raise TypeError(f"{cls.__name__}.apply() takes no keyword arguments")
            return _C._function_apply(cls, None, args)
        if kwargs or len(args) < cls.forward.__code__.co_argcount:
            bound = inspect.signature(cls.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            args = bound.args
        return _C._function_apply(cls, setup, args)


class InplaceFunction(Function):
    """Base of functions that have an in-place form."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class _Refuse(Function):
    """Identity whose derivative is an error."""

    @staticmethod
    def forward(ctx: Any, message: str, *tensors: Tensor) -> Any:
        ctx.message = message
        return tuple(t.detach() for t in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(ctx.message)


def refused(tensors: Sequence[Tensor | None], message: str) -> tuple[Tensor | None, ...]:
    """The same values, whose backward raises RuntimeError with the message."""
    found = [t.detach().requires_grad_() for t in tensors if t is not None]
    made = iter(_Refuse.apply(message, *found))
    return tuple(None if t is None else next(made) for t in tensors)


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a backward whose result cannot be differentiated again; trying to is an error."""

    @functools.wraps(fn)
    def wrapper(ctx: Any, *args: Any) -> Any:
        with _C.no_grad():
            outputs = fn(ctx, *args)
        if not _C.is_grad_enabled():
            return outputs
        if not any(isinstance(a, _C.Tensor) and a.requires_grad for a in args):
            return outputs
        several = isinstance(outputs, tuple)
        items = outputs if several else (outputs,)
        results = refused(
            items,
            "trying to differentiate twice a function that was marked with @once_differentiable",
        )
        return results if several else results[0]

    return wrapper
