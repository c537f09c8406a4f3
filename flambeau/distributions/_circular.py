"""The von Mises distribution over angles.

Invariant: samples lie in [-pi, pi); they are drawn in double precision, by rejection, and so have
no derivative. Must not know other families.
"""

from __future__ import annotations

import math
from typing import Any

import flambeau as fb
from flambeau import Tensor

from . import constraints
from .distribution import Distribution, family
from .utils import broadcast_all, lazy_property


@family("loc", "concentration")
class VonMises(Distribution):
    """The von Mises distribution, the normal one of angles.

    Args:
        loc: mean angle, in radians.
        concentration: inverse of a variance.
        validate_args: whether parameters and values are checked.

    Source: Best & Fisher, Efficient simulation of the von Mises distribution (1979).

    Example:
        >>> import flambeau as torch
        >>> d = torch.distributions.VonMises(torch.tensor(0.0), torch.tensor(1.0))
        >>> d.log_prob(torch.tensor(0.0))
        tensor(-1.0738)
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """Mean angle."""
        return self.loc

    mode = mean

    @lazy_property
    def variance(self) -> Tensor:
        """Circular variance: one minus the mean length."""
        k = self.concentration
        return 1 - fb.special.i1e(k) / fb.special.i0e(k)

    @lazy_property
    def _proposal_r(self) -> Tensor:
        """The parameter of the wrapped Cauchy distribution that samples are proposed from."""
        kappa = self.concentration.double()
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        r = (1 + rho**2) / (2 * rho)
        return fb.where(kappa < 1e-5, 1 / kappa + kappa, r)

    def sample(self, sample_shape: Any = fb.Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with fb.no_grad():
            loc = self.loc.double().expand(shape)
            kappa = self.concentration.double().expand(shape)
            r = self._proposal_r.expand(shape)
            angle = fb.empty(shape, dtype=fb.float64, device=loc.device)
            done = fb.zeros(shape, dtype=fb.bool, device=loc.device)
            while not bool(done.all()):
                u1, u2, u3 = fb.rand((3, *shape), dtype=fb.float64, device=loc.device).unbind()
                z = (math.pi * u1).cos()
                f = (1 + r * z) / (r + z)
                c = kappa * (r - f)
                accept = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0)
                angle = fb.where(accept, (u3 - 0.5).sign() * f.acos(), angle)
                done = done | accept
            return ((angle + math.pi + loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        k = self.concentration
        log_bessel = fb.special.i0e(k).log() + k
        return k * fb.cos(value - self.loc) - math.log(2 * math.pi) - log_bessel
