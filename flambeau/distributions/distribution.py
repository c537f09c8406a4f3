"""The base class of all distributions: shapes, validation, printing, expansion.

Invariant: a sample has shape ``sample_shape + batch_shape + event_shape``. Must not know any
family; ``family`` gives each its ``expand``, from the dims that one event's parameters have.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import flambeau as fb
from flambeau import Tensor

from . import constraints
from .utils import is_tensor_like, lazy_property, sizes

__all__ = ["Distribution"]

Class = TypeVar("Class", bound=type)


class Distribution:
    """A probability distribution, or a batch of them.

    A subclass states ``arg_constraints`` (by parameter) and ``support``, sets ``has_rsample`` if
    samples have pathwise derivatives, and defines ``log_prob``, ``rsample`` or ``sample`` and
    ``expand``.

    Args:
        batch_shape: shape over which parameters vary.
        event_shape: shape of one sample of one distribution.
        validate_args: whether parameters and values are checked; the default is that of
            :meth:`set_default_validate_args`.

    Raises:
        ValueError: if a parameter violates its constraint.

    Example:
        >>> import flambeau as torch
        >>> d = torch.distributions.Normal(torch.zeros(3), 1.0)
        >>> d.batch_shape, d.event_shape, d.sample((2,)).shape
        (torch.Size([3]), torch.Size([]), torch.Size([2, 3]))
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Turn the checks of parameters and values on or off for all that choose nothing.

        Raises:
            ValueError: if ``value`` is no bool.
        """
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args: expected a bool, got {value!r}")
        Distribution._validate_args = value

    def __init__(
        self,
        batch_shape: Any = fb.Size(),
        event_shape: Any = fb.Size(),
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape = batch_shape
        self._event_shape = event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _check_parameters(self) -> None:
        try:
            wanted = self.arg_constraints
        except NotImplementedError:
            wanted = {}
            warnings.warn(
                f"{type(self).__name__} does not define `arg_constraints`: its parameters are not "
                "checked. Set validate_args=False to silence this.",
                stacklevel=3,
            )
        for name, constraint in wanted.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(
                getattr(type(self), name, None), lazy_property
            ):
                continue  # one of two ways to say the same, and not the one that was given
            value = getattr(self, name)
            if not bool(constraint.check(value).all()):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape "
                    f"{tuple(value.shape)}) of distribution {self!r} to satisfy the constraint "
                    f"{constraint!r}, but found invalid values:\n{value}"
                )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution with the parameters expanded to ``batch_shape``, without copies."""
        raise NotImplementedError(f"{type(self).__name__} does not implement expand")

    def _expand_parts(self, new: Any, batch_shape: Any) -> None:
        """What ``family``'s expansion does besides expanding parameters."""

    @property
    def batch_shape(self) -> Any:
        """Shape over which the parameters vary."""
        return self._batch_shape

    @property
    def event_shape(self) -> Any:
        """Shape of one sample of one distribution."""
        return self._event_shape

    @property
    def arg_constraints(self) -> dict[str, Any]:
        """The constraint of each parameter, by name."""
        raise NotImplementedError(f"{type(self).__name__} does not implement arg_constraints")

    @property
    def support(self) -> Any:
        """The constraint that samples satisfy."""
        raise NotImplementedError(f"{type(self).__name__} does not implement support")

    @property
    def mean(self) -> Tensor:
        """Expectation. Shape: batch_shape + event_shape."""
        raise NotImplementedError(f"{type(self).__name__} does not implement mean")

    @property
    def mode(self) -> Tensor:
        """Where the density is largest. Shape: batch_shape + event_shape."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """Variance of each entry. Shape: batch_shape + event_shape."""
        raise NotImplementedError(f"{type(self).__name__} does not implement variance")

    @property
    def stddev(self) -> Tensor:
        """Root of the variance."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = fb.Size()) -> Tensor:
        """Draw without derivatives. Shape: sample_shape + batch_shape + event_shape."""
        with fb.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = fb.Size()) -> Tensor:
        """Draw such that the numbers can be differentiated by the parameters (pathwise)."""
        raise NotImplementedError(f"{type(self).__name__} does not implement rsample")

    def sample_n(self, n: int) -> Tensor:
        """Draw n. Old spelling of ``sample((n,))``."""
        warnings.warn(
            "sample_n(n) will be deprecated. Use .sample((n,)) instead.",
            FutureWarning,
            stacklevel=2,
        )
        return self.sample(fb.Size((n,)))

    def log_prob(self, value: Tensor) -> Tensor:
        """Logarithm of the density or probability at ``value``. Shape: without the event's."""
        raise NotImplementedError(f"{type(self).__name__} does not implement log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """Probability of a sample that is at most ``value``."""
        raise NotImplementedError(f"{type(self).__name__} does not implement cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """Inverse of the distribution function."""
        raise NotImplementedError(f"{type(self).__name__} does not implement icdf")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values, along a new first dim; of a discrete distribution with finite support.

        Args:
            expand: whether the values are expanded over the batch, which else has dims of 1.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement enumerate_support")

    def entropy(self) -> Tensor:
        """Entropy in nats. Shape: batch_shape."""
        raise NotImplementedError(f"{type(self).__name__} does not implement entropy")

    def perplexity(self) -> Tensor:
        """Exponential of the entropy. Shape: batch_shape."""
        return fb.exp(self.entropy())

    def _extended_shape(self, sample_shape: Any = fb.Size()) -> Any:
        """Shape of what ``sample(sample_shape)`` returns."""
        return fb.Size((*sizes(sample_shape), *self._batch_shape, *self._event_shape))

    def _validate_sample(self, value: Tensor) -> None:
        """Check type, shape and range of a value for ``log_prob`` and its like.

        Raises:
            ValueError: if the value cannot be a sample.
        """
        if not is_tensor_like(value):
            raise ValueError(
                f"The value argument to log_prob must be a Tensor, got {type(value).__name__}"
            )
        dims = len(self._event_shape)
        tail = tuple(value.shape)[len(value.shape) - dims :]
        if tail != tuple(self._event_shape):
            raise ValueError(
                "The right-most size of value must match event_shape: "
                f"{value.shape} vs {self._event_shape}."
            )
        whole = (*self._batch_shape, *self._event_shape)
        for i, j in zip(reversed(value.shape), reversed(whole), strict=False):
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    "Value is not broadcastable with batch_shape+event_shape: "
                    f"{value.shape} vs {fb.Size(whole)}."
                )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self).__name__} does not define `support`: values are not checked. "
                "Set validate_args=False to silence this.",
                stacklevel=3,
            )
            return
        if support is None:
            raise ValueError(f"{type(self).__name__}: support is None, values cannot be checked")
        if not bool(support.check(value).all()):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) "
                f"to be within the support ({support!r}) of the distribution {self!r}, but found "
                f"invalid values:\n{value}"
            )

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """An empty instance for ``expand`` to fill, unless one is given.

        Raises:
            NotImplementedError: if a subclass of ``cls`` has its own ``__init__``, and so perhaps
                attributes that ``cls`` knows nothing of.
        """
        if _instance is not None:
            return _instance
        if type(self).__init__ is not cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ "
                "method must also define a custom .expand() method."
            )
        return self.__new__(type(self))

    def __repr__(self) -> str:
        given = [(k, self.__dict__[k]) for k in self.arg_constraints if k in self.__dict__]
        text = ", ".join(f"{k}: {v if v.numel() == 1 else v.size()}" for k, v in given)
        return f"{type(self).__name__}({text})"


def family(*plain: str, **dims: int) -> Callable[[Class], Class]:
    """Give a class its ``expand``: that of its parameters.

    Args:
        plain: attributes that vary over the batch alone.
        dims: how many dims one event has in other attributes; an attribute that holds a
            distribution is expanded as such.
    """
    names = {**dict.fromkeys(plain, 0), **dims}

    def decorate(cls: Class) -> Class:
        def expand(self: Any, batch_shape: Any, _instance: Any = None) -> Any:
            new = self._get_checked_instance(cls, _instance)
            batch_shape = sizes(batch_shape)
            for name, rank in names.items():
                value = self.__dict__.get(name)
                if isinstance(value, Distribution):
                    tail = value.batch_shape[len(value.batch_shape) - rank :]
                    setattr(new, name, value.expand(fb.Size((*batch_shape, *tail))))
                elif value is not None:
                    tail = value.shape[value.ndim - rank :]
                    setattr(new, name, value.expand(fb.Size((*batch_shape, *tail))))
            for name in getattr(cls, "_shared", ()):
                if name in self.__dict__:
                    setattr(new, name, self.__dict__[name])
            self._expand_parts(new, batch_shape)
            Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
            new._validate_args = self._validate_args
            return new

        expand.__doc__ = Distribution.expand.__doc__
        expand.__qualname__ = f"{cls.__qualname__}.expand"
        made: Any = cls
        made.expand = expand
        return cls

    return decorate
