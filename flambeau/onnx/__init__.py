"""`onnx`: what programs say about their operators before there is an exporter.

Owns the list of functions that write an operator as ONNX. The exporter is not built yet, so
nothing reads the list.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["is_in_onnx_export", "register_custom_op_symbolic", "unregister_custom_op_symbolic"]

#: (operator, first opset) -> function
_symbolics: dict[tuple[str, int], Callable[..., Any]] = {}


def _check(name: str) -> None:
    if name.count("::") != 1:
        raise ValueError(
            f"register_custom_op_symbolic: expected a name like 'domain::op', got {name!r}"
        )


def register_custom_op_symbolic(
    symbolic_name: str, symbolic_fn: Callable[..., Any], opset_version: int
) -> None:
    """Note how an operator is written as ONNX.

    Args:
        symbolic_name: "domain::op".
        symbolic_fn: takes the graph and the operator's inputs.
        opset_version: the first opset that it is for.
    """
    _check(symbolic_name)
    _symbolics[symbolic_name, opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Forget what was noted."""
    _check(symbolic_name)
    _symbolics.pop((symbolic_name, opset_version), None)


def is_in_onnx_export() -> bool:
    """Whether a program is being exported: never.

    >>> torch.onnx.is_in_onnx_export()
    False
    """
    return False
