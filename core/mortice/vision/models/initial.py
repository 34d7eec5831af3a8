"""How the models draw their first weights: one walk over the modules, with a rule for each kind of layer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from mortice import nn
from mortice.notice import warn

NORMS = (nn.BatchNorm2d, nn.BatchNorm3d, nn.GroupNorm)

he_fan_out = partial(nn.init.kaiming_normal_, mode="fan_out", nonlinearity="relu")
small_normal = partial(nn.init.normal_, mean=0.0, std=0.01)


def wanted(name: str, init_weights: bool | None) -> bool:
    """Tell whether a model that draws its weights unless told not to should do so; warn where nobody said."""
    if init_weights is None:
        warn(
            f"The default weight initialization of {name} will be changed in future releases of torchvision. If you wish to keep "
            "the old behavior (which leads to long initialization times due to scipy/scipy#11299), please set init_weights=True.",
            FutureWarning,
        )
    return init_weights is not False


def draw(
    model: nn.Module, conv: Callable[..., Any], linear: Callable[..., Any] | None = None, biases: bool = True
) -> None:
    """Draw the weights of convolutions and linear layers, with biases of zero; set norms to one and zero."""
    for layer in model.modules():
        if isinstance(layer, NORMS):
            nn.init.ones_(layer.weight)
        elif isinstance(layer, (nn.Conv2d, nn.Conv3d)):
            conv(layer.weight)
        elif isinstance(layer, nn.Linear) and linear is not None:
            linear(layer.weight)
        else:
            continue
        if layer.bias is not None and (biases or isinstance(layer, NORMS)):
            nn.init.zeros_(layer.bias)
