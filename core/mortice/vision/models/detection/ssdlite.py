"""SSDLite: M. Sandler et al., "MobileNetV2" (2018), and A. Howard et al., "Searching for MobileNetV3" (2019)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from mortice import nn
from mortice.vision.models import initial
from mortice.vision.models.detection.anchor_utils import DefaultBoxGenerator
from mortice.vision.models.detection.backbone_utils import detector, stages
from mortice.vision.models.detection.ssd import SSD, SSDScoringHead, channels_and_anchors, fixed
from mortice.vision.models.registry import get_model
from mortice.vision.ops import Conv2dNormActivation

__all__ = ["ssdlite320_mobilenet_v3_large"]

_normal = partial(nn.init.normal_, mean=0.0, std=0.03)


def _prediction_block(
    in_channels: int, out_channels: int, kernel_size: int, norm_layer: Callable[..., nn.Module]
) -> nn.Sequential:
    """Make a filter of each channel by itself, and a convolution of single pixels."""
    step = Conv2dNormActivation(
        in_channels, in_channels, kernel_size, groups=in_channels, norm_layer=norm_layer, activation_layer=nn.ReLU6
    )
    return nn.Sequential(step, nn.Conv2d(in_channels, out_channels, 1))


def _extra_block(in_channels: int, out_channels: int, norm_layer: Callable[..., nn.Module]) -> nn.Sequential:
    """Make what halves the picture: narrow, filter each channel by itself, widen."""
    narrow = out_channels // 2
    step = partial(Conv2dNormActivation, norm_layer=norm_layer, activation_layer=nn.ReLU6)
    return nn.Sequential(
        step(in_channels, narrow, kernel_size=1),
        step(narrow, narrow, kernel_size=3, stride=2, groups=narrow),
        step(narrow, out_channels, kernel_size=1),
    )


def _normal_init(module: nn.Module) -> None:
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d):
            initial.draw(layer, conv=_normal)


def _blocks(
    in_channels: Sequence[int], num_anchors: Sequence[int], columns: int, norm_layer: Callable[..., nn.Module]
) -> nn.ModuleList:
    made = nn.ModuleList(_prediction_block(c, columns * n, 3, norm_layer) for c, n in zip(in_channels, num_anchors))
    _normal_init(made)
    return made


class SSDLiteClassificationHead(SSDScoringHead):
    """Logits of classes, of each anchor."""

    def __init__(
        self, in_channels: Sequence[int], num_anchors: Sequence[int], num_classes: int,
        norm_layer: Callable[..., nn.Module],
    ) -> None:  # fmt: skip
        super().__init__(_blocks(in_channels, num_anchors, num_classes, norm_layer), num_classes)


class SSDLiteRegressionHead(SSDScoringHead):
    """Codes of a box, of each anchor."""

    def __init__(
        self, in_channels: Sequence[int], num_anchors: Sequence[int], norm_layer: Callable[..., nn.Module]
    ) -> None:
        super().__init__(_blocks(in_channels, num_anchors, 4, norm_layer), 4)


class SSDLiteHead(nn.Module):
    """Both heads."""

    def __init__(
        self, in_channels: Sequence[int], num_anchors: Sequence[int], num_classes: int,
        norm_layer: Callable[..., nn.Module],
    ) -> None:  # fmt: skip
        super().__init__()
        self.classification_head = SSDLiteClassificationHead(in_channels, num_anchors, num_classes, norm_layer)
        self.regression_head = SSDLiteRegressionHead(in_channels, num_anchors, norm_layer)

    def forward(self, x: list[Any]) -> dict[str, Any]:
        """Return what both say."""
        return {"bbox_regression": self.regression_head(x), "cls_logits": self.classification_head(x)}


class SSDLiteFeatureExtractorMobileNet(nn.Module):
    """The layers of a MobileNet, apart where its last stage widens, and more that go on halving the picture."""

    def __init__(
        self, backbone: Any, c4_pos: int, norm_layer: Callable[..., nn.Module], width_mult: float = 1.0,
        min_depth: int = 16,
    ) -> None:  # fmt: skip
        super().__init__()
        if backbone[c4_pos].use_res_connect:
            raise ValueError("backbone[c4_pos].use_res_connect should be False")
        block = backbone[c4_pos].block
        self.features = nn.Sequential(
            nn.Sequential(*backbone[:c4_pos], block[0]), nn.Sequential(block[1:], *backbone[c4_pos + 1 :])
        )
        depths = [max(min_depth, int(depth * width_mult)) for depth in (512, 256, 256, 128)]
        channels = [backbone[-1].out_channels, *depths]
        extra = nn.ModuleList(_extra_block(*pair, norm_layer) for pair in zip(channels, depths))
        _normal_init(extra)
        self.extra = extra

    def forward(self, x: Any) -> dict[str, Any]:
        """Return the maps by their numbers."""
        found = []
        for block in (*self.features, *self.extra):
            x = block(x)
            found.append(x)
        return OrderedDict((str(i), y) for i, y in enumerate(found))


def _mobilenet_extractor(
    backbone: Any, trainable_layers: int, norm_layer: Callable[..., nn.Module]
) -> SSDLiteFeatureExtractorMobileNet:
    starts = stages(backbone.features, trainable_layers)
    return SSDLiteFeatureExtractorMobileNet(backbone.features, starts[-2], norm_layer)


def _make(
    given: dict[str, Any], num_classes: int, count: int, trained: bool, norm_layer: Any = None, **kwargs: Any
) -> SSD:
    if norm_layer is None:
        norm_layer = partial(nn.BatchNorm2d, eps=0.001, momentum=0.03)
    fresh = given["weights"] is None
    backbone = get_model("mobilenet_v3_large", norm_layer=norm_layer, reduced_tail=fresh, **given, **kwargs)
    if fresh:
        _normal_init(backbone)
    size, anchors = (320, 320), DefaultBoxGenerator([[2, 3]] * 6, min_ratio=0.2, max_ratio=0.95)
    extractor = _mobilenet_extractor(backbone, count, norm_layer)
    head = SSDLiteHead(*channels_and_anchors(extractor, anchors, size), num_classes, norm_layer)
    return SSD(extractor, anchors, size, num_classes, head=head, **fixed(kwargs))


ssdlite320_mobilenet_v3_large = detector(
    "ssdlite320_mobilenet_v3_large", SSD, _make, layers=(6, 6), score_thresh=0.001, nms_thresh=0.55,
    detections_per_img=300, topk_candidates=300, image_mean=[0.5] * 3, image_std=[0.5] * 3,
    about="SSDLite over mobilenet_v3_large",
)  # fmt: skip
