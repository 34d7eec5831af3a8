"""einops' layers as Modules, with the names and arguments that they have for other libraries."""

from __future__ import annotations

from typing import Any

from einops.layers import RearrangeMixin, ReduceMixin
from einops.layers._einmix import _EinmixMixin

from mortice import einsum, empty
from mortice.nn import Module, Parameter


class Rearrange(RearrangeMixin, Module):
    """Rearrange the dims of its input by a pattern."""

    def forward(self, input: Any) -> Any:
        return self._apply_recipe(input)


class Reduce(ReduceMixin, Module):
    """Reduce dims of its input by a pattern."""

    def forward(self, input: Any) -> Any:
        return self._apply_recipe(input)


class EinMix(_EinmixMixin, Module):
    """Multiply by a weight along dims that a pattern names, and add a bias."""

    weight: Any
    bias: Any
    einsum_pattern: str

    def _create_parameters(self, weight_shape: Any, weight_bound: float, bias_shape: Any, bias_bound: float) -> None:
        self.weight = Parameter(empty(weight_shape).uniform_(-weight_bound, weight_bound))
        self.bias = None if bias_shape is None else Parameter(empty(bias_shape).uniform_(-bias_bound, bias_bound))

    def _create_rearrange_layers(self, before: Any, before_sizes: Any, after: Any, after_sizes: Any) -> None:
        self.pre_rearrange = None if before is None else Rearrange(before, **before_sizes)
        self.post_rearrange = None if after is None else Rearrange(after, **after_sizes)

    def forward(self, input: Any) -> Any:
        x = input if self.pre_rearrange is None else self.pre_rearrange(input)
        x = einsum(self.einsum_pattern, x, self.weight)
        if self.bias is not None:
            x = x + self.bias
        return x if self.post_rearrange is None else self.post_rearrange(x)
