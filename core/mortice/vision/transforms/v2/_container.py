"""Transforms made of other transforms, in order or at random."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mortice
from mortice import nn
from mortice.vision import transforms as v1
from mortice.vision.transforms._draws import chance
from mortice.vision.transforms.v2._transform import Transform, check_probability

__all__ = ["Compose", "RandomApply", "RandomChoice", "RandomOrder"]


class _Container(Transform):
    def __init__(self, transforms: Any) -> None:
        super().__init__()
        if not isinstance(transforms, (Sequence, nn.ModuleList)):
            raise TypeError("Argument transforms should be a sequence of callables")
        if not len(transforms):
            raise ValueError("Pass at least one transform")
        self.transforms = transforms

    def _apply_all(self, transforms: Any, inputs: tuple[Any, ...]) -> Any:
        several = len(inputs) > 1
        for t in transforms:
            out = t(*inputs)
            inputs = out if several else (out,)
        return inputs if several else inputs[0]


class _Listing(_Container):
    def extra_repr(self) -> str:
        """List the transforms."""
        return "\n".join([f"    {t}" for t in self.transforms])


class Compose(_Listing):
    """Apply transforms one after the other."""

    def forward(self, *inputs: Any) -> Any:
        """Transform a sample."""
        return self._apply_all(self.transforms, inputs)


class RandomApply(_Listing):
    """Apply all of the transforms with probability `p`, or none."""

    _v1_transform_cls = v1.RandomApply

    def __init__(self, transforms: Any, p: float = 0.5) -> None:
        super().__init__(transforms)
        check_probability(p)
        self.p = p

    def forward(self, *inputs: Any) -> Any:
        """Transform a sample, perhaps."""
        return self._apply_all(self.transforms if chance() < self.p else (), inputs)


class RandomChoice(_Container):
    """Apply one of the transforms, chosen with the weights `p` or evenly."""

    def __init__(self, transforms: Sequence[Any], p: list[float] | None = None) -> None:
        super().__init__(transforms)
        if p is None:
            p = [1] * len(transforms)
        elif len(p) != len(transforms):
            raise ValueError(f"Length of p doesn't match the number of transforms: {len(p)} != {len(transforms)}")
        self.p = [weight / sum(p) for weight in p]

    def forward(self, *inputs: Any) -> Any:
        """Transform a sample."""
        return self.transforms[int(mortice.multinomial(mortice.tensor(self.p), 1))](*inputs)


class RandomOrder(_Container):
    """Apply all transforms in a random order."""

    def forward(self, *inputs: Any) -> Any:
        """Transform a sample."""
        return self._apply_all([self.transforms[i] for i in mortice.randperm(len(self.transforms)).tolist()], inputs)
