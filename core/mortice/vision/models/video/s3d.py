"""S3D: S. Xie et al., "Rethinking spatiotemporal feature learning" (2017), without its gates."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import mortice as mt
from mortice import nn
from mortice.vision.models.googlenet import _BLOCKS
from mortice.vision.models.registry import register
from mortice.vision.ops import Conv3dNormActivation

__all__ = ["S3D", "s3d"]


class TemporalSeparableConv(nn.Sequential):
    """A convolution in each frame and one over frames."""

    def __init__(
        self, in_planes: int, out_planes: int, kernel_size: int, stride: int, padding: int,
        norm_layer: Callable[..., nn.Module],
    ) -> None:  # fmt: skip
        k, s, p = kernel_size, stride, padding
        super().__init__(
            Conv3dNormActivation(in_planes, out_planes, (1, k, k), (1, s, s), (0, p, p), norm_layer=norm_layer),
            Conv3dNormActivation(out_planes, out_planes, (k, 1, 1), (s, 1, 1), (p, 0, 0), norm_layer=norm_layer),
        )


class SepInceptionBlock3D(nn.Module):
    """Four ways side by side, as in GoogLeNet."""

    def __init__(
        self, in_planes: int, b0_out: int, b1_mid: int, b1_out: int, b2_mid: int, b2_out: int, b3_out: int,
        norm_layer: Callable[..., nn.Module],
    ) -> None:  # fmt: skip
        super().__init__()
        single = partial(Conv3dNormActivation, kernel_size=1, norm_layer=norm_layer)
        over = partial(TemporalSeparableConv, kernel_size=3, stride=1, padding=1, norm_layer=norm_layer)
        self.branch0 = single(in_planes, b0_out)
        self.branch1 = nn.Sequential(single(in_planes, b1_mid), over(b1_mid, b1_out))
        self.branch2 = nn.Sequential(single(in_planes, b2_mid), over(b2_mid, b2_out))
        pool = nn.MaxPool3d(kernel_size=(3, 3, 3), stride=1, padding=1)
        self.branch3 = nn.Sequential(pool, single(in_planes, b3_out))

    def forward(self, x: Any) -> Any:
        """Return the maps of all ways, one after the other."""
        return mt.cat([branch(x) for branch in self.children()], 1)


class S3D(nn.Module):
    """GoogLeNet over films, of at least 14 frames of 224 by 224."""

    def __init__(
        self, num_classes: int = 400, dropout: float = 0.2, norm_layer: Callable[..., nn.Module] | None = None
    ) -> None:
        super().__init__()
        norm = norm_layer or partial(nn.BatchNorm3d, eps=0.001, momentum=0.001)
        flat = partial(nn.MaxPool3d, kernel_size=(1, 3, 3), stride=(1, 2, 2), padding=(0, 1, 1))
        features: list[nn.Module] = [
            TemporalSeparableConv(3, 64, 7, 2, 3, norm), flat(),
            Conv3dNormActivation(64, 64, kernel_size=1, norm_layer=norm),
            TemporalSeparableConv(64, 192, 3, 1, 1, norm), flat(),
        ]  # fmt: skip
        for name, sizes in _BLOCKS.items():
            if name == "4a":
                features.append(nn.MaxPool3d(kernel_size=(3, 3, 3), stride=(2, 2, 2), padding=(1, 1, 1)))
            elif name == "5a":
                features.append(nn.MaxPool3d(kernel_size=(2, 2, 2), stride=(2, 2, 2), padding=(0, 0, 0)))
            features.append(SepInceptionBlock3D(*sizes, norm_layer=norm))
        self.features = nn.Sequential(*features)
        self.avgpool = nn.AvgPool3d(kernel_size=(2, 7, 7), stride=1)
        self.classifier = nn.Sequential(nn.Dropout(p=dropout), nn.Conv3d(1024, num_classes, kernel_size=1))

    def forward(self, x: Any) -> Any:
        """Return the logits of a batch of films."""
        return self.classifier(self.avgpool(self.features(x))).mean((2, 3, 4))


s3d = register("s3d", S3D, about="S3D")
