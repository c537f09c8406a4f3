"""Classes of operators, where PyTorch keeps them. They are `flambeau._library`'s."""

from __future__ import annotations

from ._library.operators import OpOverload, OpOverloadPacket

__all__ = ["OpOverload", "OpOverloadPacket"]
