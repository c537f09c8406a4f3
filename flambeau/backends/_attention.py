"""Which implementations of scaled dot product attention this thread allows, preferred first.

Owns the names of the implementations and the ways to change the order, which the core keeps
(csrc/dispatch/modes.h). Invariant: leaving `sdpa_kernel` brings back what was allowed before, in
the same order. Which implementations a device has is not known here: that is the operation's.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

from flambeau import _C
from flambeau._C import Tensor
from flambeau.utils._contextlib import context_decorator


class SDPBackend(enum.IntEnum):
    """The implementations. CPUs have `FLASH_ATTENTION`, which is one kernel, and `MATH`."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


class SDPAParams(NamedTuple):
    """Arguments of a call of attention."""

    query: Tensor
    key: Tensor
    value: Tensor
    attn_mask: Tensor | None
    dropout: float
    is_causal: bool
    enable_gqa: bool


def order() -> list[SDPBackend]:
    """All implementations, preferred first, also those that may not be taken."""
    return [SDPBackend(max(n, ~n)) for n in _C._attention_backends()]


def allowed() -> list[SDPBackend]:
    """The implementations that may be taken now, preferred first."""
    return [SDPBackend(n) for n in _C._attention_backends() if n >= 0]


def allow(backends: Collection[SDPBackend], preferred: Iterable[SDPBackend]) -> None:
    """From now on these may be taken, and no others; all are preferred in this order."""
    _C._set_attention_backends(tuple(int(b) if b in backends else ~b for b in preferred))


#: the order in which nobody has changed anything yet
USUAL = allowed()


def set_allowed(backend: SDPBackend, enabled: bool) -> None:
    """Allow or forbid one implementation."""
    others = [b for b in allowed() if b != backend]
    allow([*others, backend] if enabled else others, order())


class sdpa_kernel:
    """Inside, `scaled_dot_product_attention` takes these implementations only. Also a decorator.

    It holds for the calls of this thread, those in compiled code too. A call that none of them can
    do is a RuntimeError.

    Args:
        backends: one or several.
        set_priority: their order is the order of preference; else it stays as it is.

    Raises:
        AssertionError: `backends` is something else.

    >>> from torch.nn.attention import SDPBackend, sdpa_kernel
    >>> q = torch.ones(1, 1, 2, 4, requires_grad=True)
    >>> with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
    ...     torch.nn.functional.scaled_dot_product_attention(q, q, q).grad_fn.name()
    'AttentionBackward0'
    """

    def __init__(
        self, backends: Sequence[SDPBackend] | SDPBackend, set_priority: bool = False
    ) -> None:
        given = [backends] if isinstance(backends, SDPBackend) else backends
        if not isinstance(given, list):
            _refuse(given)
        for b in given:
            if not isinstance(b, SDPBackend):
                _refuse(b)
        self._wanted = [b for b in dict.fromkeys(given) if b != SDPBackend.ERROR]
        self._given = given
        self._set_priority = set_priority
        # An instance may be entered again while it is active: one state for each entry.
        self._before: list[tuple[int, ...]] = []

    def __enter__(self) -> dict[str, Any]:
        self._before.append(_C._attention_backends())
        preferred = self._wanted if self._set_priority else []
        allow(self._wanted, [*preferred, *(b for b in order() if b not in preferred)])
        return {}

    def __exit__(self, *exception: object) -> None:
        _C._set_attention_backends(self._before.pop())

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, whose calls run inside."""
        made: Callable[..., Any] = context_decorator(self, function)
        return made

    def clone(self) -> sdpa_kernel:
        """The same choice, to be entered apart from this one."""
        return type(self)(self._given, self._set_priority)


def _refuse(given: object) -> None:
    raise AssertionError(
        "sdpa_kernel: Backend must be an instance of SDPBackend or a list of SDPBackend instances, "
        f"got {type(given).__name__}"
    )
