"""What PyTorch calls tensors, parameters, dtypes and storages in its files, and how they are made.

Owns the table from PyTorch's names to ours. Invariant: a tensor is made only inside a storage of
the file, after the checks of `storages.view_of`. It does not know where storages come from.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import flambeau as fb
from flambeau import _C

from . import storages

#: storage classes of PyTorch's older names, and the dtypes they stand for
STORAGE_DTYPES = {
    "Bool": "bool", "Byte": "uint8", "Char": "int8", "Short": "int16", "Int": "int32",
    "Long": "int64", "Half": "float16", "BFloat16": "bfloat16", "Float": "float32",
    "Double": "float64", "ComplexFloat": "complex64", "ComplexDouble": "complex128",
}  # fmt: skip
_ALIASES = "half float double short int long cfloat cdouble".split()
_QUANTIZED = ("QInt8", "QUInt8", "QInt32", "QUInt4x2", "QUInt2x4")
_REFUSED = {
    "torch._utils._rebuild_sparse_tensor": "a sparse tensor",
    "torch._utils._rebuild_sparse_csr_tensor": "a sparse tensor",
    "torch._utils._rebuild_qtensor": "a quantised tensor",
    "torch._utils._rebuild_nested_tensor": "a nested tensor",
    "torch._utils._rebuild_wrapper_subclass": "a tensor of a wrapper subclass",
} | {f"torch.{name}Storage": "a quantised tensor" for name in _QUANTIZED}


_DTYPES = frozenset(getattr(fb, name) for name in storages.DTYPES)


class StorageType:
    """Stands for one of PyTorch's storage classes; ``dtype`` is None where it is bytes."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return 1 if self.dtype is None else int(self.dtype.itemsize)


class TensorNames:
    """Makers of tensors for one file.

    Args:
        flat_of: gives the flat tensor of bytes of a storage that the file's persistent ids gave.
        allowed_class: whether a class is one that the user allowed.
    """

    def __init__(self, flat_of: Callable[[Any], Any], allowed_class: Callable[[Any], bool]) -> None:
        self._flat_of, self._allowed_class = flat_of, allowed_class
        self.names: dict[str, Any] = {
            "torch.Tensor": fb.Tensor,
            "torch._tensor.Tensor": fb.Tensor,
            "torch.nn.parameter.Parameter": fb.nn.Parameter,
            "torch.nn.Parameter": fb.nn.Parameter,
            "torch.Size": fb.Size,
            "torch.device": fb.device,
            "torch.strided": fb.strided,
            "torch.UntypedStorage": StorageType(None),
            "torch.storage.UntypedStorage": StorageType(None),
        }
        for name in (*storages.DTYPES, *_ALIASES):
            self.names[f"torch.{name}"] = getattr(fb, name)
        for name, dtype in STORAGE_DTYPES.items():
            self.names[f"torch.{name}Storage"] = StorageType(getattr(fb, dtype))
        self.calls: dict[int, Callable[..., Any]] = {
            id(fb.Size): _size,
            id(fb.device): _device,
            id(fb.Tensor): self._refuse_call,
        }
        for name, make in (
            ("_utils._rebuild_tensor", self._tensor),
            ("_utils._rebuild_tensor_v2", self._tensor_2),
            ("_utils._rebuild_tensor_v3", self._tensor_3),
            ("_utils._rebuild_parameter", self._parameter),
            ("_utils._rebuild_parameter_with_state", self._parameter_with_state),
            ("_utils._rebuild_meta_tensor_no_storage", self._meta),
            ("_utils._rebuild_device_tensor_from_numpy", self._device_numpy),
            ("_utils._rebuild_device_tensor_from_cpu_tensor", self._device_cpu),
            ("_tensor._rebuild_from_type_v2", self._from_type),
            ("serialization._get_layout", _layout),
        ):
            self.names[f"torch.{name}"] = make
            self.calls[id(make)] = make

    def refused(self, full: str) -> str | None:
        """Why a name that PyTorch's files use is not read here; None: it is not such a name."""
        what = _REFUSED.get(full)
        if what is None and full.startswith("torch.float") and full != "torch.float128":
            what = f"a tensor of dtype {full}"
        return what and f"load: the file holds {what} ({full}), which flambeau does not have"

    def _refuse_call(self, *_: Any) -> Any:
        raise ValueError("load: a tensor is made from a storage, not by a call of its class")

    def _view(self, storage: Any, dtype: Any, offset: Any, size: Any, stride: Any) -> Any:
        return self._made(self._flat_of(storage), dtype, offset, size, stride)

    def _made(self, flat: Any, dtype: Any, offset: Any, size: Any, stride: Any) -> Any:
        if dtype in _DTYPES:
            return _C._tensor_in(flat, dtype, offset, _counts(size), _counts(stride))
        raise ValueError(f"load: unknown dtype {dtype!r}")

    def _tensor(self, storage: Any, offset: Any, size: Any, stride: Any) -> Any:
        return self._view(storage, _storage_dtype(storage), offset, size, stride)

    def _tensor_2(
        self, storage: Any, offset: Any, size: Any, stride: Any, grad: Any, hooks: Any,
        metadata: Any = None,
    ) -> Any:  # fmt: skip
        dtype = _storage_dtype(storage)
        return self._tensor_3(storage, offset, size, stride, grad, hooks, dtype, metadata)

    def _tensor_3(
        self, storage: Any, offset: Any, size: Any, stride: Any, grad: Any, hooks: Any,
        dtype: Any, metadata: Any = None,
    ) -> Any:  # fmt: skip
        if not isinstance(dtype, fb.dtype):
            raise TypeError("the dtype of a tensor is not a dtype")
        tensor = self._view(storage, dtype, offset, size, stride)
        if metadata:
            if type(metadata) is not dict or not metadata.keys() <= {"conj", "neg"}:
                raise ValueError("load: a tensor with unknown marks beside its values")
            with fb.no_grad():  # the marks say what is still to be done to the bytes
                tensor = tensor.conj() if metadata.get("conj") else tensor
                tensor = -tensor if metadata.get("neg") else tensor
                tensor = tensor.detach()
        return _with_grad(tensor, grad)

    def _parameter(self, data: Any, grad: Any, hooks: Any) -> Any:
        if not isinstance(data, fb.Tensor):
            raise TypeError("a parameter of something that is not a tensor")
        _with_grad(data.detach(), grad)
        return fb.nn.Parameter(data, requires_grad=bool(grad))

    def _parameter_with_state(self, data: Any, grad: Any, hooks: Any, state: Any) -> Any:
        return _with_state(self._parameter(data, grad, hooks), state)

    def _meta(self, dtype: Any, size: Any, stride: Any, grad: Any) -> Any:
        return _with_grad(self._made(None, dtype, 0, size, stride), grad)

    def _device_numpy(self, array: Any, dtype: Any, device: Any, grad: Any) -> Any:
        return self._device_cpu(fb.from_numpy(array), dtype, "cpu", grad)

    def _device_cpu(self, data: Any, dtype: Any, device: Any, grad: Any) -> Any:
        return _with_grad(data.to(dtype=dtype).detach(), grad)

    def _from_type(self, function: Any, kind: Any, args: Any, state: Any) -> Any:
        make = self.calls.get(id(function))
        if make is None or type(args) is not tuple:
            raise TypeError("a tensor that no known function makes")
        tensor = make(*args)
        if kind is not type(tensor):
            if kind is not fb.Tensor and not self._allowed_class(kind):
                raise TypeError(f"a tensor of class {str(kind)[:80]}, which was not allowed")
            tensor = tensor.as_subclass(kind)
        return _with_state(tensor, state)


def _counts(values: Any) -> Any:
    exact = type(values) in (tuple, list) or not isinstance(values, (tuple, list))
    return values if exact else list(values)


def _storage_dtype(storage: Any) -> Any:
    if not isinstance(storage, fb.storage.TypedStorage):
        raise TypeError("a tensor without a storage")
    return storage.dtype


def _with_grad(tensor: Any, grad: Any) -> Any:
    if not grad:
        return tensor
    if not (tensor.is_floating_point() or tensor.is_complex()):
        raise ValueError(f"load: a tensor of dtype {tensor.dtype} cannot require gradients")
    return tensor.requires_grad_()


def _with_state(tensor: Any, state: Any) -> Any:
    parts = state if type(state) is tuple else (state,)
    for part in parts:
        if part is None:
            continue
        if not isinstance(part, (dict, OrderedDict)) or any(type(k) is not str for k in part):
            raise TypeError("the attributes of a tensor are not a dict of names")
        vars(tensor).update(part)
    return tensor


def _size(sizes: Any = ()) -> Any:
    if type(sizes) not in (tuple, list) or any(type(n) is not int for n in sizes):
        raise TypeError("a Size of something that is not whole numbers")
    return fb.Size(sizes)


def _device(*args: Any) -> Any:
    try:
        return fb.device(*args)
    except RuntimeError as error:
        raise ValueError(f"load: unknown device {args!r}") from error


def _layout(name: Any) -> Any:
    if name != "torch.strided":
        raise ValueError(f"load: the file holds a tensor of layout {str(name)[:40]}")
    return fb.strided
