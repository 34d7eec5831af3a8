"""einops on tensors: `from einops import rearrange` just works, since mortice registers this when einops is imported.

Layers (Rearrange, Reduce, EinMix) are in `mortice.utils.einops.layers`.
"""

from __future__ import annotations

from typing import Any

from einops._backends import AbstractBackend

import mortice


class MorticeBackend(AbstractBackend):
    """What einops asks of a library. It finds this class among the subclasses of its own, by the name below."""

    framework_name = "mortice"

    def is_appropriate_type(self, tensor: Any) -> bool:
        return isinstance(tensor, mortice.Tensor)

    def from_numpy(self, x: Any) -> Any:
        return mortice.from_numpy(x)

    def to_numpy(self, x: Any) -> Any:
        return x.numpy(force=True)

    def arange(self, start: int, stop: int) -> Any:
        return mortice.arange(start, stop)

    def shape(self, x: Any) -> tuple[int, ...]:
        return tuple(x.shape)

    def transpose(self, x: Any, axes: Any) -> Any:
        return x.permute(axes)

    def reduce(self, x: Any, operation: str, axes: Any) -> Any:
        axes = tuple(axes)
        if operation in ("min", "max"):
            return getattr(x, f"a{operation}")(axes)
        if operation == "prod":
            for axis in sorted(axes, reverse=True):
                x = x.prod(axis)
            return x
        return getattr(x, operation)(axes)

    def stack_on_zeroth_dimension(self, tensors: Any) -> Any:
        return mortice.stack(tensors)

    def add_axis(self, x: Any, new_position: int) -> Any:
        return x.unsqueeze(new_position)

    def add_axes(self, x: Any, n_axes: int, pos2len: dict[int, int]) -> Any:
        for position in sorted(pos2len):
            x = x.unsqueeze(position)
        return x.expand([pos2len.get(axis, -1) for axis in range(n_axes)])

    def tile(self, x: Any, repeats: Any) -> Any:
        return x.repeat(repeats)

    def concat(self, tensors: Any, axis: int) -> Any:
        return mortice.cat(tensors, axis)

    def is_float_type(self, x: Any) -> bool:
        return x.is_floating_point() or x.is_complex()

    def einsum(self, pattern: str, *x: Any) -> Any:
        return mortice.einsum(pattern, *x)

    def layers(self) -> Any:
        from mortice.utils.einops import layers

        return layers
