"""What models share and programs import by torchvision's private names: rounded channels, and a classifier's layers."""

from __future__ import annotations

from typing import Any

from mortice import nn

__all__ = ["IntermediateLayerGetter"]


def _make_divisible(v: float, divisor: int, min_value: int | None = None) -> int:
    """Round to a multiple of the divisor, at least one of it and at least nine tenths of what was asked for."""
    rounded = max(divisor if min_value is None else min_value, int(v + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < 0.9 * v else rounded


class IntermediateLayerGetter(nn.ModuleDict):
    """The children of a model up to the last that is wanted, run one after the other; it returns what some of them give.

    Args:
        return_layers: the names of children whose results are wanted, and the names to return them by.
    """

    _version = 2

    def __init__(self, model: nn.Module, return_layers: dict[str, str]) -> None:
        children = dict(model.named_children())
        wanted = {str(name) for name in return_layers}
        if not wanted <= set(children):
            raise ValueError(
                f"IntermediateLayerGetter: return_layers are not present in model: {sorted(wanted - set(children))}; "
                f"it has {list(children)}."
            )
        last = max((list(children).index(name) for name in wanted), default=0)
        super().__init__(dict(list(children.items())[: last + 1]))
        self.return_layers = return_layers

    def forward(self, x: Any) -> dict[str, Any]:
        found = {}
        for name, module in self.items():
            x = module(x)
            if name in self.return_layers:
                found[self.return_layers[name]] = x
        return found
