"""Changing the dtype, device or memory format of a module's tensors.

Owns `_apply`, the one place where a parameter's data are replaced, and the methods built on it.
Invariant: a parameter stays the same Python object wherever its new data can live in it, so
optimisers keep referring to it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau import Tensor
from flambeau.nn.parameter import Parameter


class ConvertMixin:
    """The conversion methods of `Module`."""

    if TYPE_CHECKING:  # `Module` finds the registries

        def __getattr__(self, name: str) -> Any: ...

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        """Replace every parameter, gradient and buffer by `fn` of it."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, param in self._parameters.items():
            if param is not None:
                self._parameters[name] = _converted(param, fn)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def _cast_floating(self, dtype: Any) -> Any:
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def float(self) -> Any:
        """Cast floating-point parameters and buffers to float32."""
        return self._cast_floating(fb.float32)

    def double(self) -> Any:
        """Cast floating-point parameters and buffers to float64."""
        return self._cast_floating(fb.float64)

    def half(self) -> Any:
        """Cast floating-point parameters and buffers to float16."""
        return self._cast_floating(fb.float16)

    def bfloat16(self) -> Any:
        """Cast floating-point parameters and buffers to bfloat16."""
        return self._cast_floating(fb.bfloat16)

    def type(self, dst_type: Any) -> Any:
        """Cast all parameters and buffers to `dst_type`."""
        return self._apply(lambda t: t.type(dst_type))

    def cpu(self) -> Any:
        """Move all parameters and buffers to the CPU."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device: Any = None) -> Any:
        """Move all parameters and buffers to a CUDA device (default: the current one)."""
        return self._apply(lambda t: t.cuda(device))

    def share_memory(self) -> Any:
        """Move all parameters and buffers to memory that other processes can map."""
        return self._apply(lambda t: t.share_memory_())

    def to_empty(self, *, device: Any, recurse: bool = True) -> Any:
        """Move to `device` without copying: the values are left uninitialised.

        Args:
            device: where to.
            recurse: whether children move too.
        """
        return self._apply(lambda t: fb.empty_like(t, device=device), recurse=recurse)

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Move or cast the module in place; returns self.

        Called as `to(device=None, dtype=None, non_blocking=False)`, `to(dtype, ...)`,
        `to(tensor, ...)` or `to(memory_format=...)`. A dtype applies to floating-point and complex
        tensors only; a memory format to tensors of 4 or 5 dimensions.

        Raises:
            RuntimeError: `copy=True`, for a module changes in place.
        """
        device, dtype, non_blocking, memory_format = _parse_to(*args, **kwargs)
        if dtype is not None:
            if not (dtype.is_floating_point or dtype.is_complex):
                raise TypeError(
                    "nn.Module.to only accepts floating point or complex dtypes, "
                    f"but got desired dtype={dtype}"
                )
            if dtype.is_complex:
                warnings.warn(
                    "Complex modules are a new feature: some modules might not work as expected "
                    "when using complex tensors as parameters or buffers.",
                    stacklevel=2,
                )

        def convert(t: Tensor) -> Tensor:
            new_dtype = dtype if t.is_floating_point() or t.is_complex() else None
            if memory_format is not None and t.dim() in (4, 5):
                return t.to(device, new_dtype, non_blocking, memory_format=memory_format)
            return t.to(device, new_dtype, non_blocking)

        def convert_or_explain(t: Tensor) -> Tensor:
            try:
                return convert(t)
            except NotImplementedError as error:
                if not t.is_meta:
                    raise
                raise NotImplementedError(
                    f"{error} Please use torch.nn.Module.to_empty() instead of "
                    "torch.nn.Module.to() when moving module from meta to a different device."
                ) from None

        return self._apply(convert_or_explain)


def _converted(param: Parameter, fn: Callable[[Tensor], Tensor]) -> Parameter:
    with fb.no_grad():
        data = fn(param)
    grad = param.grad
    if data.is_meta == param.is_meta:
        param.data = data
        kept = param
    else:
        # A tensor cannot gain or lose its storage in place, so this one is replaced.
        kept = Parameter(data, param.requires_grad)
    if grad is not None:
        with fb.no_grad():
            new_grad = fn(grad)
        kept.grad = new_grad.requires_grad_(grad.requires_grad)
    return kept


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """Sort out the call forms of `Module.to`: (device, dtype, non_blocking, memory_format)."""
    memory_format = kwargs.pop("memory_format", None)
    names: tuple[str, ...] = ("device", "dtype", "non_blocking", "copy")
    if (args and isinstance(args[0], Tensor)) or "other" in kwargs or "tensor" in kwargs:
        names = ("tensor", "non_blocking", "copy")
    elif args and isinstance(args[0], fb.dtype):
        names = ("dtype", "non_blocking", "copy")
    if len(args) > len(names):
        raise TypeError(
            f"to() takes at most {len(names)} positional arguments, {len(args)} were given"
        )
    given = dict(zip(names, args, strict=False))
    for key, value in kwargs.items():
        if key not in names:
            raise TypeError(f"to() got an unexpected keyword argument '{key}'")
        if key in given:
            raise TypeError(f"to() got multiple values for argument '{key}'")
        given[key] = value
    if given.get("copy"):
        raise RuntimeError(
            ".to() does not accept copy argument: a module changes in place; copy.deepcopy it first"
        )
    if "tensor" in given:
        like = given["tensor"]
        return like.device, like.dtype, bool(given.get("non_blocking", False)), memory_format
    device, dtype = given.get("device"), given.get("dtype")
    if device is not None and not isinstance(device, fb.device):
        device = fb.device(device)
    if dtype is not None and not isinstance(dtype, fb.dtype):
        raise TypeError(f"to(): argument 'dtype' must be a dtype, got {type(dtype).__name__}")
    return device, dtype, bool(given.get("non_blocking", False)), memory_format
