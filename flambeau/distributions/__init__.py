"""Probability distributions: samples, densities, moments, divergences, and maps between supports.

Owns the public names. Each family's file holds several distributions; ``_HOMES`` says under which
module names these are found as well, the names that programs import them by. Must not be loaded
by ``import flambeau``.
"""

from __future__ import annotations

import sys
from typing import Any

from . import (
    _categories,
    _circular,
    _continuous_bernoulli,
    _counts,
    _derived,
    _extremes,
    _gaussian,
    _location_scale,
    _matrices,
    _positive,
    _relaxed,
    _simplex,
    distribution,
    exp_family,
    independent,
    mixture_same_family,
    transformed_distribution,
    transforms,
)
from . import _kl_cross as _kl_cross  # their formulas register themselves
from . import _kl_same as _kl_same
from . import (
    constraints as constraints,
)
from .constraint_registry import biject_to, transform_to
from .kl import kl_divergence, register_kl
from .transforms import *  # noqa: F403

#: files of families: the modules that each answers for
_HOMES: dict[Any, tuple[str, ...]] = {
    _categories: ("categorical", "multinomial", "one_hot_categorical"),
    _circular: ("von_mises",),
    _continuous_bernoulli: ("continuous_bernoulli",),
    _counts: ("bernoulli", "binomial", "geometric", "negative_binomial", "poisson"),
    _derived: ("half_cauchy", "half_normal", "log_normal", "logistic_normal"),
    _extremes: ("gumbel", "inverse_gamma", "kumaraswamy", "pareto", "weibull"),
    _gaussian: ("lowrank_multivariate_normal", "multivariate_normal"),
    _location_scale: ("cauchy", "laplace", "normal", "studentT", "uniform"),
    _matrices: ("lkj_cholesky", "wishart"),
    _positive: ("chi2", "exponential", "fishersnedecor", "gamma", "generalized_pareto"),
    _relaxed: ("relaxed_bernoulli", "relaxed_categorical"),
    _simplex: ("beta", "dirichlet"),
}
for _home, _names in _HOMES.items():
    for _name in _names:
        globals()[_name] = sys.modules[f"{__name__}.{_name}"] = _home

#: the classes of distributions, as their files have them
_CLASSES = {
    _name: _value
    for _home in (*_HOMES, distribution, exp_family, independent, mixture_same_family,
                  transformed_distribution)
    for _name, _value in vars(_home).items()
    if isinstance(_value, type) and issubclass(_value, distribution.Distribution)
    and _name[0] != "_"
}  # fmt: skip
globals().update(_CLASSES)

#: not shown here, as they stand for a step of another
_INNER = {"LogitRelaxedBernoulli", "ExpRelaxedCategorical"}
__all__ = sorted(_CLASSES.keys() - _INNER) + [
    "biject_to",
    "kl_divergence",
    "register_kl",
    "transform_to",
    *transforms.__all__,
]
del _home, _name, _names
