"""Families of classes: categorical, one-hot, multinomial, and the relaxed forms over the simplex.

Invariant: the last dim of the parameter numbers the classes; probabilities are normalised when the
distribution is made. Must not know other families, but for the entropy of the multinomial.
"""

from __future__ import annotations

import math
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.nn.functional import one_hot

from . import constraints
from ._counts import Binomial
from .distribution import Distribution, family
from .utils import lazy_property, logits_to_probs, probs_to_logits, sizes


@family(probs=1, logits=1)
class Categorical(Distribution):
    """A class, drawn with given probabilities.

    Args:
        probs: shape (..., classes), nonnegative; normalised to sum one.
        logits: unnormalised log probabilities, instead.
        validate_args: whether parameters and values are checked.

    Raises:
        ValueError: unless exactly one of ``probs`` and ``logits`` is given, with a dim.

    Example:
        >>> import flambeau as torch
        >>> torch.distributions.Categorical(torch.tensor([1.0, 3.0])).probs
        tensor([0.2500, 0.7500])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _shared = ("_is_logits", "_num_events")

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        self._is_logits = probs is None
        given = logits if self._is_logits else probs
        if given.ndim < 1:
            name = "logits" if self._is_logits else "probs"
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if self._is_logits:
            self.logits = given - given.logsumexp(-1, keepdim=True)
        else:
            self.probs = given / given.sum(-1, keepdim=True)
        self._num_events = given.size(-1)
        super().__init__(given.shape[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self) -> Tensor:
        """Log probabilities. Shape: batch_shape + (classes,)."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Tensor:
        """Probabilities. Shape: batch_shape + (classes,)."""
        return logits_to_probs(self.logits)

    @property
    def _param(self) -> Tensor:
        name = "logits" if self._is_logits else "probs"
        return self.__dict__[name]

    @property
    def param_shape(self) -> Any:
        """Shape of the parameter that was given."""
        return self._param.shape

    @property
    def mean(self) -> Tensor:
        return self._param.new_full(self._batch_shape, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(-1)

    @property
    def variance(self) -> Tensor:
        return self._param.new_full(self._batch_shape, math.nan)

    def sample(self, sample_shape: Any = fb.Size()) -> Tensor:
        sample_shape = sizes(sample_shape)
        with fb.no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            drawn = fb.multinomial(rows, math.prod(sample_shape), True).T
            return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        index = value.long().unsqueeze(-1)
        index, logits = fb.broadcast_tensors(index, self.logits)
        return logits.gather(-1, index[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = self.logits.clamp(min=fb.finfo(self.logits.dtype).min)  # 0 * -inf is 0
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = fb.arange(self._num_events, dtype=fb.long, device=self._param.device)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values


class _OverCategorical(Distribution):
    """Families whose parameter is that of a categorical distribution, which they hold."""

    arg_constraints: Any = {"probs": constraints.simplex, "logits": constraints.real_vector}
    _categorical: Any

    @property
    def _param(self) -> Tensor:
        return self._categorical._param

    @property
    def param_shape(self) -> Any:
        """Shape of the parameter that was given."""
        return self._categorical.param_shape

    @property
    def probs(self) -> Tensor:
        """Probabilities. Shape: batch_shape + event_shape."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """Log probabilities. Shape: batch_shape + event_shape."""
        return self._categorical.logits


@family("_categorical")
class OneHotCategorical(_OverCategorical):
    """A class as a vector of zeros and a one.

    Args:
        probs: shape (..., classes), nonnegative; normalised to sum one.
        logits: unnormalised log probabilities, instead.
        validate_args: whether parameters and values are checked.

    Raises:
        ValueError: unless exactly one of ``probs`` and ``logits`` is given, with a dim.

    Example:
        >>> import flambeau as torch
        >>> torch.distributions.OneHotCategorical(torch.tensor([0.0, 1.0])).sample()
        tensor([0., 1.])
    """

    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._categorical = Categorical(probs, logits)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return one_hot(self._categorical.mode, self.event_shape[0]).to(self._param.dtype)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = fb.Size()) -> Tensor:
        indices = self._categorical.sample(sample_shape)
        return one_hot(indices, self.event_shape[0]).to(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self.event_shape[0]
        values = fb.eye(n, dtype=self._param.dtype, device=self._param.device)
        values = values.view((n,) + (1,) * len(self.batch_shape) + (n,))
        return values.expand((n, *self.batch_shape, n)) if expand else values


@family("_categorical")
class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot samples whose derivatives are those of the probabilities.

    Source: Bengio, Léonard & Courville, Estimating or propagating gradients through stochastic
    neurons (2013).

    Example:
        >>> import flambeau as torch
        >>> d = torch.distributions.OneHotCategoricalStraightThrough(torch.tensor([0.0, 1.0]))
        >>> d.rsample()
        tensor([0., 1.])
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = fb.Size()) -> Tensor:
        probs = self._categorical.probs
        return self.sample(sample_shape) + (probs - probs.detach())


@family("_categorical", "_binomial")
class Multinomial(_OverCategorical):
    """How often each class comes in ``total_count`` draws.

    Args:
        total_count: number of draws, the same for the whole batch.
        probs: shape (..., classes), nonnegative; normalised to sum one.
        logits: unnormalised log probabilities, instead.
        validate_args: whether parameters and values are checked.

    Raises:
        NotImplementedError: if ``total_count`` is no int.

    Example:
        >>> import flambeau as torch
        >>> torch.distributions.Multinomial(4, torch.tensor([1.0, 1.0])).mean
        tensor([2., 2.])
    """

    total_count: int
    _shared = ("total_count",)

    def __init__(
        self,
        total_count: int = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = fb.Size()) -> Tensor:
        sample_shape = sizes(sample_shape)
        drawn = self._categorical.sample(fb.Size((self.total_count, *sample_shape)))
        drawn = drawn.movedim(0, -1)
        counts = self.probs.new_zeros(self._extended_shape(sample_shape))
        counts.scatter_add_(-1, drawn, fb.ones_like(drawn, dtype=counts.dtype))
        return counts

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = fb.broadcast_tensors(self.logits, value)
        logits = logits.masked_fill((value == 0) & (logits == -math.inf), 0)
        ways = fb.lgamma(value.sum(-1) + 1) - fb.lgamma(value + 1).sum(-1)
        return ways + (logits * value).sum(-1)

    def entropy(self) -> Tensor:
        n = self.total_count
        binomial = Binomial(n, self.probs, validate_args=False)
        counts = binomial.enumerate_support(expand=False)[1:]
        weighted = binomial.log_prob(counts).exp() * fb.lgamma(counts + 1)
        return n * self._categorical.entropy() - math.lgamma(n + 1) + weighted.sum([0, -1])
