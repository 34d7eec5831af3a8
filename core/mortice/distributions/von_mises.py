"""The von Mises distribution."""

from __future__ import annotations

import math
from typing import Any

import mortice
from mortice.distributions import constraints
from mortice.distributions.distribution import Distribution
from mortice.distributions.utils import broadcast_all, lazy_property
from mortice.utils._wide import wide

__all__ = ["VonMises"]


class VonMises(Distribution):
    """The von Mises distribution of angles, in radians; draws lie in [-pi, pi)."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        k = self.concentration
        # log I0(k), with the exponential growth taken out.
        return k * (value - self.loc).cos() - math.log(2 * math.pi) - mortice.special.i0e(k).log() - k

    @lazy_property
    def _proposal_r(self) -> Any:
        """The parameter of the wrapped Cauchy distribution that draws are proposed from."""
        k = self.concentration.to(wide(self.concentration.device))
        tau = 1 + (1 + 4 * k**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * k)
        # For small concentrations rho cancels; by its series r is 1 / k + k.
        return mortice.where(k < 1e-5, 1 / k + k, (1 + rho**2) / (2 * rho))

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw by Best and Fisher's rejection."""
        with mortice.no_grad():
            shape = self._extended_shape(sample_shape)
            k = self.concentration.to(wide(self.loc.device)).expand(shape)
            r = self._proposal_r.expand(shape)
            angle, pending = mortice.full_like(k, math.nan), r.isfinite() & k.isfinite()
            while bool(pending.any()):
                u1, u2, u3 = mortice.rand((3, *shape), dtype=k.dtype, device=k.device)
                z = (math.pi * u1).cos()
                f = (1 + r * z) / (r + z)
                c = k * (r - f)
                accepted = (c * (2 - c) - u2 > 0) | ((c / u2).log() + 1 - c >= 0)
                # A draw that was taken gives way to one that is taken in a later round, as in PyTorch.
                angle = mortice.where(accepted, (u3 - 0.5).sign() * f.clamp(min=-1, max=1).acos(), angle)
                pending = pending & ~accepted
            return ((angle + math.pi + self.loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)

    @property
    def mean(self) -> Any:
        return self.loc

    mode = mean

    @lazy_property
    def variance(self) -> Any:  # type: ignore[override]
        """The circular variance."""
        return 1 - mortice.special.i1e(self.concentration) / mortice.special.i0e(self.concentration)
