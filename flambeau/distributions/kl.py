"""Kullback-Leibler divergences: a registry of pairs of families, and the choice among them.

Invariant: the most derived registered pair is used; ties are told. The formulas of the package's
own families are in ``_kl_same`` (a family with itself) and ``_kl_cross``. Must not know them.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from flambeau import Tensor

from .distribution import Distribution

__all__ = ["kl_divergence", "register_kl"]

Formula = Callable[[Any, Any], Tensor]

_KL_REGISTRY: dict[tuple[type, type], Formula] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Formula], Formula]:
    """Decorate a function of p and q that gives the divergence of these families.

    Args:
        type_p: class of distributions, or one that distributions may inherit from.
        type_q: the same.

    Raises:
        TypeError: for what is no class.

    Example:
        >>> import flambeau as torch
        >>> from flambeau.distributions import Normal, kl_divergence, register_kl
        >>> class Mine(Normal): pass
        >>> @register_kl(Mine, Normal)
        ... def formula(p, q):
        ...     return torch.tensor(1.0)
        >>> kl_divergence(Mine(0.0, 1.0), Normal(0.0, 1.0))
        tensor(1.)
    """
    for name, given in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(given, type):  # a class may be a mixin that distributions inherit from
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {given}")

    def decorate(formula: Formula) -> Formula:
        _KL_REGISTRY[type_p, type_q] = formula
        _dispatch_kl.cache_clear()
        return formula

    return decorate


@functools.lru_cache(maxsize=1024)
def _dispatch_kl(type_p: type, type_q: type) -> Formula | None:
    """The formula of the most derived pair that both classes belong to."""
    pairs = [(p, q) for p, q in _KL_REGISTRY if issubclass(type_p, p) and issubclass(type_q, q)]
    if not pairs:
        return None

    def distance(a: tuple[type, type], first: int) -> tuple[int, int]:
        steps = type_p.__mro__.index(a[0]), type_q.__mro__.index(a[1])
        return steps[first], steps[1 - first]

    left = min(pairs, key=lambda a: distance(a, 0))
    right = min(pairs, key=lambda a: distance(a, 1))
    if _KL_REGISTRY[left] is not _KL_REGISTRY[right]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please "
            f"register_kl({left[0].__name__}, {right[1].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return _KL_REGISTRY[left]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The mean under p of log p(x) - log q(x), in nats.

    Args:
        p: distribution.
        q: distribution.

    Returns:
        shape of the broadcast batch shapes.

    Raises:
        NotImplementedError: if no formula is registered for the pair.

    Example:
        >>> import flambeau as torch
        >>> from flambeau.distributions import Normal, kl_divergence
        >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
        tensor(0.5000)
    """
    families: tuple[type, type] = type(p), type(q)
    formula = _dispatch_kl(*families)
    if formula is None:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type "
            f"{type(q).__name__}"
        )
    return formula(p, q)
