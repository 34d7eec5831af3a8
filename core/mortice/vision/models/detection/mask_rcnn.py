"""Mask R-CNN: K. He et al., "Mask R-CNN" (2017)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from mortice import nn
from mortice.vision.models import initial
from mortice.vision.models.detection import _utils as det_utils
from mortice.vision.models.detection.backbone_utils import detector, frozen, resnet50_pyramid
from mortice.vision.models.detection.faster_rcnn import FasterRCNN, check_kind, pool, second
from mortice.vision.ops import Conv2dNormActivation, MultiScaleRoIAlign

__all__ = ["MaskRCNN", "maskrcnn_resnet50_fpn", "maskrcnn_resnet50_fpn_v2"]


class MaskRCNN(FasterRCNN):
    """`FasterRCNN` with a mask of each object: "masks" (N, H, W) of 0 and 1 in training, otherwise probabilities (N, 1, H, W)."""

    def __init__(
        self,
        backbone: nn.Module,
        num_classes: int | None = None,
        *args: Any,
        mask_roi_pool: MultiScaleRoIAlign | None = None,
        mask_head: nn.Module | None = None,
        mask_predictor: nn.Module | None = None,
        **kwargs: Any,
    ) -> None:
        check_kind("mask_roi_pool", mask_roi_pool, MultiScaleRoIAlign)
        if num_classes is not None and mask_predictor is not None:
            raise ValueError("num_classes should be None when mask_predictor is specified")
        if mask_head is None:
            mask_head = MaskRCNNHeads(backbone.out_channels, (256,) * 4, 1)
        if mask_predictor is None:
            mask_predictor = MaskRCNNPredictor(256, 256, num_classes)
        super().__init__(backbone, num_classes, *args, **kwargs)
        heads = self.roi_heads
        heads.mask_roi_pool, heads.mask_head, heads.mask_predictor = mask_roi_pool or pool(14), mask_head, mask_predictor


class MaskRCNNHeads(nn.Sequential):
    """Convolutions that keep the size, of so many channels each."""

    _version = 2

    def __init__(
        self,
        in_channels: int,
        layers: Sequence[int],
        dilation: int,
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:
        channels = [in_channels, *layers]
        super().__init__(
            *(
                Conv2dNormActivation(inp, out, padding=dilation, dilation=dilation, norm_layer=norm_layer)
                for inp, out in zip(channels, channels[1:])
            )
        )
        initial.draw(self, conv=initial.he_fan_out)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any) -> None:
        if local_metadata.get("version", None) in (None, 1):
            det_utils.renamed(state_dict, prefix, {f"mask_fcn{i + 1}": f"{i}.0" for i in range(len(self))})
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class MaskRCNNPredictor(nn.Sequential):
    """Maps twice as large, and the logits of a mask for each class."""

    def __init__(self, in_channels: int, dim_reduced: int, num_classes: int | None) -> None:
        super().__init__(
            OrderedDict(
                conv5_mask=nn.ConvTranspose2d(in_channels, dim_reduced, 2, 2, 0),
                relu=nn.ReLU(inplace=True),
                mask_fcn_logits=nn.Conv2d(dim_reduced, num_classes, 1, 1, 0),
            )
        )
        for name, parameter in self.named_parameters():
            if "weight" in name:
                initial.he_fan_out(parameter)


def _make(given: dict[str, Any], num_classes: int, count: int, trained: bool, **kwargs: Any) -> MaskRCNN:
    return MaskRCNN(resnet50_pyramid(given, count, frozen(trained)), num_classes, **kwargs)


def _make_v2(given: dict[str, Any], num_classes: int, count: int, trained: bool, **kwargs: Any) -> MaskRCNN:
    parts = second(given, count)
    head = MaskRCNNHeads(parts["backbone"].out_channels, [256] * 4, 1, norm_layer=nn.BatchNorm2d)
    return MaskRCNN(num_classes=num_classes, mask_head=head, **parts, **kwargs)


maskrcnn_resnet50_fpn = detector(
    "maskrcnn_resnet50_fpn", MaskRCNN, _make, about="Mask R-CNN over a pyramid of resnet50"
)
maskrcnn_resnet50_fpn_v2 = detector(
    "maskrcnn_resnet50_fpn_v2", MaskRCNN, _make_v2, about="the second Mask R-CNN over a pyramid of resnet50",
    weights_backbone=None,
)  # fmt: skip
