"""Forward-mode differentiation with dual numbers.

Owns ``flambeau.autograd.forward_ad``: levels, and tensors that carry a tangent inside one. The
tangents themselves are followed by the compiled core.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from flambeau import _C

if TYPE_CHECKING:
    from flambeau import Tensor

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]

_current_level = -1


class UnpackedDualTensor(NamedTuple):
    """Primal and tangent of a dual tensor; the tangent is None for an ordinary one."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Opens a level and returns its number. There can be one at a time."""
    global _current_level
    _current_level = _C._enter_dual_level()
    return _current_level


def exit_dual_level(*, level: int | None = None) -> None:
    """Closes the level: all tangents made in it are gone."""
    global _current_level
    if level is None:
        level = _current_level
    if level != _current_level:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is "
            "not supported."
        )
    _C._exit_dual_level(level)
    _current_level = -1


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A view of `tensor` that carries `tangent`.

    Args:
        tensor: the primal, floating point or complex.
        tangent: direction of differentiation, of the same shape.
        level: the open level.

    >>> import flambeau.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     x = fwAD.make_dual(torch.tensor(3.0), torch.tensor(1.0))
    ...     fwAD.unpack_dual(x * x).tangent
    tensor(6.)
    """
    if level is None:
        level = _current_level
    if level < 0:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
            "enter_dual_level() first."
        )
    for name, t in (("primal", tensor), ("tangent", tangent)):
        if not (t.is_floating_point() or t.is_complex()):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {t.dtype}")
    return _C._make_dual(tensor, tangent)


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """Primal and tangent of a tensor (tangent None: it has none in the current level)."""
    if level is None:
        level = _current_level
    if level < 0:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(*_C._unpack_dual(tensor))


class dual_level:
    """Opens a level for a block.

    >>> with torch.autograd.forward_ad.dual_level() as level:
    ...     pass
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exception: Any) -> None:
        exit_dual_level()

    def __call__(self, function: Any) -> Any:
        from flambeau.utils._contextlib import context_decorator

        return context_decorator(dual_level, function)


class _set_fwd_grad_enabled:
    """Whether tangents are followed, for a block."""

    def __init__(self, mode: bool) -> None:
        self.prev = _C._is_fwd_grad_enabled()
        _C._set_fwd_grad_enabled(mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: Any) -> None:
        _C._set_fwd_grad_enabled(self.prev)
