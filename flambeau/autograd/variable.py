"""`Variable`, the name that tensors with gradients had once. Variables are tensors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from flambeau import _C

__all__ = ["Variable", "VariableMeta"]


class _Engine:
    """What `Variable._execution_engine` offers."""

    @staticmethod
    def queue_callback(callback: Callable[[], object]) -> None:
        """Runs `callback` at the end of the running backward."""
        _C._queue_callback(callback)


class VariableMeta(type):
    """Makes every tensor an instance of Variable."""

    def __instancecheck__(cls, other: object) -> bool:
        return isinstance(other, _C.Tensor)


class Variable(metaclass=VariableMeta):
    """Variable(x) is a tensor over the data of x."""

    _execution_engine = _Engine()

    def __new__(cls, data: Any, requires_grad: bool = False, volatile: bool = False) -> Any:
        if volatile:
            warnings.warn(
                "Variable: volatile has no effect; use torch.no_grad() around the program",
                stacklevel=2,
            )
        return data.detach().requires_grad_(requires_grad)
