"""Tensors that a module owns: parameters, buffers, and their not yet shaped forms.

Owns the tensor subclasses that `Module.__setattr__` recognises. Invariant: a parameter is a leaf
tensor; an operation on it gives a plain tensor. Knows nothing of modules.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, cast

import flambeau as fb
from flambeau import Tensor

__all__ = [
    "Parameter",
    "UninitializedParameter",
    "is_lazy",
    "Buffer",
    "UninitializedBuffer",
    "UninitializedTensorMixin",
]


class _ParameterMeta(type):
    """Lets a tensor of a user's own subclass count as a parameter once it is marked as one."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if (
            cls is Parameter
            and isinstance(instance, Tensor)
            and getattr(instance, "_is_param", False)
        ):
            return True
        return super().__instancecheck__(instance)


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any) -> Parameter:
    """Entry point of unpickling; the signature is the one that checkpoint files name."""
    param: Any = Parameter(data, requires_grad)
    if backward_hooks:
        param._backward_hooks = backward_hooks
    return param


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that becomes part of `Module.parameters()` when it is assigned to a module.

    Args:
        data: the values; they are shared, not copied.
        requires_grad: whether gradients are collected for it.

    Example:
        >>> import flambeau as fb
        >>> fb.nn.Parameter(fb.zeros(2))
        Parameter containing:
        tensor([0., 0.], requires_grad=True)
    """

    # Operations treat it as a plain tensor and give plain tensors.
    __torch_function__ = fb._C._disabled_torch_function_impl

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = fb.empty(0)
        if type(data) is Tensor or type(data) is Parameter:
            return Tensor._make_subclass(cls, data, requires_grad)
        marked = data.detach().requires_grad_(requires_grad)
        if type(marked) is not type(data):
            raise RuntimeError(
                f"Parameter: detach() of {type(data).__name__} gave {type(marked).__name__}; "
                "a tensor subclass must keep its type under detach() to become a parameter"
            )
        parameter = cast(Any, marked)
        parameter._is_param = True
        return parameter

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) not in memo:
            copied = self.data.clone(memory_format=fb.preserve_format)
            memo[id(self)] = type(self)(copied, self.requires_grad)
        return memo[id(self)]

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        # Hooks are closures of the running program; they never travel in a file.
        return _rebuild_parameter, (self.data, self.requires_grad, OrderedDict())


fb._C._set_parameter_type(Parameter)


class UninitializedTensorMixin:
    """A tensor whose shape is found at the first forward pass (or when a state is loaded)."""

    cls_to_become: type
    data: Tensor
    requires_grad: bool

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Give the tensor its shape; the memory is not initialised.

        Args:
            shape: sizes of the tensor.
            device: default: the device given at construction.
            dtype: default: the dtype given at construction.
        """
        device = self.data.device if device is None else device
        dtype = self.data.dtype if dtype is None else dtype
        self.data = fb.empty(shape, device=device, dtype=dtype)
        self.__class__ = self.cls_to_become

    @property
    def shape(self) -> Any:
        raise RuntimeError(
            "shape: the parameter or buffer is not initialized, so it has no shape yet; run "
            "forward once first (this also happens when load_state_dict copies an uninitialized "
            "parameter into an initialized one)"
        )

    def share_memory_(self) -> Any:
        raise RuntimeError(
            "share_memory_: the parameter or buffer is not initialized; run forward once first"
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def _arguments(self) -> tuple[Any, ...]:
        """What the constructor needs to make the like."""
        return self.requires_grad, self.data.device, self.data.dtype

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(*self._arguments())
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return type(self), self._arguments()


def is_lazy(param: Any) -> bool:
    """Whether `param` still waits for its shape."""
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter without a shape; `materialize` turns it into a `Parameter` in place."""

    cls_to_become = Parameter

    def __new__(
        cls, requires_grad: bool = True, device: Any = None, dtype: Any = None
    ) -> UninitializedParameter:
        data = fb.empty(0, device=device, dtype=dtype)
        return Tensor._make_subclass(cls, data, requires_grad)


class _BufferMeta(type):
    """Lets any tensor that is marked as a buffer count as one."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if (
            cls is Buffer
            and isinstance(instance, Tensor)
            and getattr(instance, "_is_buffer", False)
        ):
            return True
        return super().__instancecheck__(instance)


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that becomes part of `Module.buffers()` when it is assigned to a module.

    Args:
        data: the values; they are shared, not copied.
        persistent: whether it belongs to the module's `state_dict`.
    """

    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        data = fb.empty(0) if data is None else data
        # Not an instance of `cls`: what a module holds is an ordinary tensor, only marked.
        buffer: Any = data.detach().requires_grad_(data.requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer without a shape; `materialize` turns it into a plain tensor in place."""

    cls_to_become = Tensor
    persistent: bool

    def __new__(
        cls,
        requires_grad: bool = False,
        device: Any = None,
        dtype: Any = None,
        persistent: bool = True,
    ) -> UninitializedBuffer:
        data = fb.empty(0, device=device, dtype=dtype)
        buffer: Any = Tensor._make_subclass(cls, data, requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer

    def _arguments(self) -> tuple[Any, ...]:
        return *super()._arguments(), self.persistent
