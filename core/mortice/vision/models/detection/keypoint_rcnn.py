"""Keypoint R-CNN, of K. He et al., "Mask R-CNN" (2017)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mortice import nn
from mortice.nn import functional as F
from mortice.vision.models import initial
from mortice.vision.models.detection.backbone_utils import detector, frozen, resnet50_pyramid
from mortice.vision.models.detection.faster_rcnn import FasterRCNN, check_kind, pool
from mortice.vision.ops import MultiScaleRoIAlign

__all__ = ["KeypointRCNN", "keypointrcnn_resnet50_fpn"]


class KeypointRCNN(FasterRCNN):
    """`FasterRCNN` with "keypoints" (N, K, 3) of each object: x, y and whether it is seen; and "keypoints_scores" (N, K)."""

    def __init__(
        self,
        backbone: nn.Module,
        num_classes: int | None = None,
        min_size: Any = None,
        *args: Any,
        keypoint_roi_pool: MultiScaleRoIAlign | None = None,
        keypoint_head: nn.Module | None = None,
        keypoint_predictor: nn.Module | None = None,
        num_keypoints: int | None = None,
        **kwargs: Any,
    ) -> None:
        check_kind("keypoint_roi_pool", keypoint_roi_pool, MultiScaleRoIAlign)
        if num_keypoints is not None and keypoint_predictor is not None:
            raise ValueError("num_keypoints should be None when keypoint_predictor is specified")
        if keypoint_head is None:
            keypoint_head = KeypointRCNNHeads(backbone.out_channels, (512,) * 8)
        if keypoint_predictor is None:
            keypoint_predictor = KeypointRCNNPredictor(512, 17 if num_keypoints is None else num_keypoints)
        super().__init__(
            backbone, num_classes, (640, 672, 704, 736, 768, 800) if min_size is None else min_size, *args, **kwargs
        )
        heads = self.roi_heads
        heads.keypoint_roi_pool, heads.keypoint_head = keypoint_roi_pool or pool(14), keypoint_head
        heads.keypoint_predictor = keypoint_predictor


class KeypointRCNNHeads(nn.Sequential):
    """Convolutions that keep the size, of so many channels each."""

    def __init__(self, in_channels: int, layers: Sequence[int]) -> None:
        steps: list[nn.Module] = []
        for out in layers:
            steps += [nn.Conv2d(in_channels, out, 3, stride=1, padding=1), nn.ReLU(inplace=True)]
            in_channels = out
        super().__init__(*steps)
        initial.draw(self, conv=initial.he_fan_out)


class KeypointRCNNPredictor(nn.Module):
    """Maps four times as large, of logits of where each keypoint is."""

    def __init__(self, in_channels: int, num_keypoints: int) -> None:
        super().__init__()
        self.kps_score_lowres = nn.ConvTranspose2d(in_channels, num_keypoints, 4, stride=2, padding=1)
        initial.he_fan_out(self.kps_score_lowres.weight)
        nn.init.zeros_(self.kps_score_lowres.bias)
        self.up_scale, self.out_channels = 2, num_keypoints

    def forward(self, x: Any) -> Any:
        """Return the maps."""
        return F.interpolate(
            self.kps_score_lowres(x), scale_factor=float(self.up_scale), mode="bilinear", align_corners=False,
            recompute_scale_factor=False,
        )  # fmt: skip


def _make(given: dict[str, Any], num_classes: int, count: int, trained: bool, **kwargs: Any) -> KeypointRCNN:
    return KeypointRCNN(resnet50_pyramid(given, count, frozen(trained)), num_classes, **kwargs)


keypointrcnn_resnet50_fpn = detector(
    "keypointrcnn_resnet50_fpn", KeypointRCNN, _make, num_classes=2,
    about="Keypoint R-CNN over a pyramid of resnet50",
)  # fmt: skip
