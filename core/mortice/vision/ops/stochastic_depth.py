"""Stochastic depth: whole branches dropped while training."""

from __future__ import annotations

from typing import Any

import mortice
from mortice import nn
from mortice.asking import wrap

__all__ = ["StochasticDepth", "stochastic_depth"]


@wrap
def stochastic_depth(input: Any, p: float, mode: str, training: bool = True) -> Any:
    """Zero the whole input ("batch") or each sample of it ("row") with probability p, and scale what stays."""
    if not 0 <= p <= 1:
        raise ValueError(f"stochastic_depth: drop probability has to be between 0 and 1, but got {p}")
    if mode not in ("batch", "row"):
        raise ValueError(f"stochastic_depth: mode has to be either 'batch' or 'row', but got {mode}")
    if not training or p == 0:
        return input
    size = [input.shape[0] if mode == "row" else 1] + [1] * (input.dim() - 1)
    kept = mortice.empty(size, dtype=input.dtype, device=input.device).bernoulli_(1 - p)
    return input * (kept / (1 - p) if p < 1 else kept)


class StochasticDepth(nn.Module):
    """`stochastic_depth` as a module."""

    def __init__(self, p: float, mode: str) -> None:
        super().__init__()
        self.p, self.mode = p, mode

    def forward(self, input: Any) -> Any:
        return stochastic_depth(input, self.p, self.mode, self.training)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p={self.p}, mode={self.mode})"
