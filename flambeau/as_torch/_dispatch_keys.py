"""Names of the keys by which PyTorch's core finds kernels, and sets of them.

Owns the vocabulary alone: our core has no keys, and nothing here steers it.
"""

from __future__ import annotations

import enum
from typing import Any

DispatchKey = enum.Enum(
    "DispatchKey",
    """Undefined Dense CPU CUDA XPU MPS Meta SparseCPU SparseCUDA BackendSelect Python Fake
    FuncTorchDynamicLayerBackMode Functionalize ADInplaceOrView AutogradOther AutogradCPU
    AutogradCUDA AutogradXPU AutogradMPS AutogradMeta AutogradNestedTensor Autograd Tracer
    AutocastCPU AutocastCUDA AutocastXPU AutocastMPS FuncTorchBatched FuncTorchVmapMode
    FuncTorchGradWrapper PreDispatch PythonTLSSnapshot CompositeImplicitAutograd
    CompositeExplicitAutograd CompositeExplicitAutogradNonFunctional PythonDispatcher""",
)


class DispatchKeySet:
    """A set of keys."""

    def __init__(self, key: Any) -> None:
        self._keys = frozenset((key,)) if isinstance(key, DispatchKey) else frozenset(key)

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys | other._keys)

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys & other._keys)

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys - other._keys)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self._keys == other._keys

    def __hash__(self) -> int:
        return hash(self._keys)

    def has(self, key: Any) -> bool:
        """Whether the key is in the set."""
        return key in self._keys

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(sorted(k.name for k in self._keys))})"
