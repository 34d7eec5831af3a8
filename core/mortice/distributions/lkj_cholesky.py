"""The LKJ distribution of Cholesky factors of correlation matrices."""

from __future__ import annotations

import math
from typing import Any

import mortice
from mortice.distributions import constraints
from mortice.distributions.beta import Beta
from mortice.distributions.distribution import Distribution
from mortice.distributions.utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """The distribution of lower Cholesky factors of dim x dim correlation matrices; 1 makes the matrices uniform."""

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args=validate_args)
        c = self.concentration
        rows = mortice.arange(dim - 1, dtype=c.dtype, device=c.device)
        before = mortice.cat([rows.new_zeros((1,)), rows])
        # By the onion method: each row's squared length off the diagonal is a beta variable of these parameters.
        self._beta = Beta(before + 0.5, (c + 0.5 * (dim - 2)).unsqueeze(-1) - 0.5 * before)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._beta = self._beta.expand((*batch_shape, self.dim))
        return new

    def sample(self, sample_shape: Any = ()) -> Any:
        with mortice.no_grad():
            y = self._beta.sample(sample_shape).unsqueeze(-1)
            shape = self._extended_shape(sample_shape)
            directions = mortice.randn(shape, dtype=y.dtype, device=y.device).tril(-1)
            lengths = directions.norm(dim=-1, keepdim=True)
            directions = directions / mortice.where(lengths == 0, 1.0, lengths)  # the first row has none
            w = (y.sqrt() * directions).tril(-1)
            tiny = mortice.finfo(w.dtype).tiny
            return w + (1 - w.square().sum(-1)).clamp(min=tiny).sqrt().diag_embed()

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = mortice.arange(2, self.dim + 1, dtype=value.dtype, device=value.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        unnormalized = (order * diagonal.log()).sum(-1)
        less = self.dim - 1
        alpha = self.concentration + 0.5 * less
        normalizer = 0.5 * less * math.log(math.pi) + mortice.mvlgamma(alpha - 0.5, less) - alpha.lgamma() * less
        return unnormalized - normalizer
