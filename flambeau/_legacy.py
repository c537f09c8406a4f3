"""The legacy tensor types: `FloatTensor(2, 3)`, `isinstance(x, LongTensor)`.

Each stands for Tensor with one dtype; none has instances of its own.
"""

from __future__ import annotations

from typing import Any

from . import _C


class _LegacyType(type):
    """Metaclass: calls make tensors, isinstance asks for the dtype."""

    dtype: Any

    def __call__(cls, *args: Any, device: Any = None, size: Any = None) -> Any:
        if device is not None and _C.device(device).type != "cpu":
            raise RuntimeError(
                f"legacy constructor expects device type: cpu but device type: "
                f"{_C.device(device).type} was passed"
            )
        return _C._legacy_new(cls.dtype, args if size is None else (_C.Size(size),))

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _C.Tensor) and instance.dtype is cls.dtype

    def __repr__(cls) -> str:
        return f"<class 'torch.{cls.__name__}'>"


def _legacy(name: str, dtype: _C.dtype) -> Any:
    return _LegacyType(name, (), {"dtype": dtype, "__module__": "flambeau"})


BFloat16Tensor = _legacy("BFloat16Tensor", _C.bfloat16)
BoolTensor = _legacy("BoolTensor", _C.bool)
ByteTensor = _legacy("ByteTensor", _C.uint8)
CharTensor = _legacy("CharTensor", _C.int8)
DoubleTensor = _legacy("DoubleTensor", _C.float64)
FloatTensor = _legacy("FloatTensor", _C.float32)
HalfTensor = _legacy("HalfTensor", _C.float16)
IntTensor = _legacy("IntTensor", _C.int32)
LongTensor = _legacy("LongTensor", _C.int64)
ShortTensor = _legacy("ShortTensor", _C.int16)

legacy_contiguous_format = _C.contiguous_format
