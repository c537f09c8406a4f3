"""The legacy tensor types: `FloatTensor(2, 3)`, `isinstance(x, LongTensor)`.

Each stands for Tensor with one dtype; none has instances of its own.
"""

from __future__ import annotations

from typing import Any

from . import _C

_DTYPES = {
    "BFloat16Tensor": "bfloat16",
    "BoolTensor": "bool",
    "ByteTensor": "uint8",
    "CharTensor": "int8",
    "DoubleTensor": "float64",
    "FloatTensor": "float32",
    "HalfTensor": "float16",
    "IntTensor": "int32",
    "LongTensor": "int64",
    "ShortTensor": "int16",
}


class _LegacyType(type):
    """Metaclass: calls make tensors, isinstance asks for the dtype."""

    dtype: Any

    def __call__(cls, *args: Any, device: Any = None) -> Any:
        if device is not None and _C.device(device).type != "cpu":
            raise RuntimeError(
                f"legacy constructor expects device type: cpu but device type: "
                f"{_C.device(device).type} was passed"
            )
        return _C._legacy_new(cls.dtype, args)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _C.Tensor) and instance.dtype is cls.dtype

    def __repr__(cls) -> str:
        return f"<class 'torch.{cls.__name__}'>"


for _name, _dtype in _DTYPES.items():
    _members = {"dtype": getattr(_C, _dtype), "__module__": "flambeau"}
    globals()[_name] = _LegacyType(_name, (), _members)
