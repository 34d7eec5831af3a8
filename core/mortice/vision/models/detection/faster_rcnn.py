"""Faster R-CNN: S. Ren et al., "Faster R-CNN: towards real-time object detection with region proposal networks" (2015)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mortice import nn
from mortice.nn import functional as F
from mortice.vision.models import initial
from mortice.vision.models.detection.anchor_utils import AnchorGenerator
from mortice.vision.models.detection.backbone_utils import _mobilenet_extractor, detector, frozen, resnet50_pyramid
from mortice.vision.models.detection.generalized_rcnn import GeneralizedRCNN
from mortice.vision.models.detection.roi_heads import RoIHeads
from mortice.vision.models.detection.rpn import RegionProposalNetwork, RPNHead
from mortice.vision.models.detection.transform import GeneralizedRCNNTransform
from mortice.vision.models.registry import get_model
from mortice.vision.ops import Conv2dNormActivation, MultiScaleRoIAlign

__all__ = [
    "FasterRCNN", "fasterrcnn_mobilenet_v3_large_320_fpn", "fasterrcnn_mobilenet_v3_large_fpn", "fasterrcnn_resnet50_fpn",
    "fasterrcnn_resnet50_fpn_v2",
]  # fmt: skip

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def _default_anchorgen() -> AnchorGenerator:
    return AnchorGenerator(((32,), (64,), (128,), (256,), (512,)), ((0.5, 1.0, 2.0),) * 5)


def channels_of(backbone: Any) -> int:
    """Return the channels of a backbone's maps."""
    if not hasattr(backbone, "out_channels"):
        raise ValueError(
            "backbone should contain an attribute out_channels specifying the number of output channels (assumed to be the "
            "same for all the levels)"
        )
    return backbone.out_channels


def check_kind(name: str, value: Any, kind: type) -> None:
    """Refuse a part of another kind; None is none."""
    if not isinstance(value, (kind, type(None))):
        raise TypeError(f"{name} should be of type {kind.__name__} or None instead of {type(value)}")


def pool(output_size: int) -> MultiScaleRoIAlign:
    """Make what pools the maps of a pyramid of four."""
    return MultiScaleRoIAlign(featmap_names=["0", "1", "2", "3"], output_size=output_size, sampling_ratio=2)


class FasterRCNN(GeneralizedRCNN):
    """A detector of two stages; see `GeneralizedRCNNTransform` for sizes, `RegionProposalNetwork` and `RoIHeads` for the rest.

    Args:
        backbone: a network with `out_channels` that gives one map, or several by name.
        num_classes: the number of classes, background among them, unless `box_predictor` knows.
    """

    def __init__(
        self,
        backbone: nn.Module,
        num_classes: int | None = None,
        min_size: Any = 800,
        max_size: int = 1333,
        image_mean: list[float] | None = None,
        image_std: list[float] | None = None,
        rpn_anchor_generator: AnchorGenerator | None = None,
        rpn_head: nn.Module | None = None,
        rpn_pre_nms_top_n_train: int = 2000,
        rpn_pre_nms_top_n_test: int = 1000,
        rpn_post_nms_top_n_train: int = 2000,
        rpn_post_nms_top_n_test: int = 1000,
        rpn_nms_thresh: float = 0.7,
        rpn_fg_iou_thresh: float = 0.7,
        rpn_bg_iou_thresh: float = 0.3,
        rpn_batch_size_per_image: int = 256,
        rpn_positive_fraction: float = 0.5,
        rpn_score_thresh: float = 0.0,
        box_roi_pool: MultiScaleRoIAlign | None = None,
        box_head: nn.Module | None = None,
        box_predictor: nn.Module | None = None,
        box_score_thresh: float = 0.05,
        box_nms_thresh: float = 0.5,
        box_detections_per_img: int = 100,
        box_fg_iou_thresh: float = 0.5,
        box_bg_iou_thresh: float = 0.5,
        box_batch_size_per_image: int = 512,
        box_positive_fraction: float = 0.25,
        bbox_reg_weights: tuple[float, float, float, float] | None = None,
        **kwargs: Any,
    ) -> None:
        channels = channels_of(backbone)
        check_kind("rpn_anchor_generator", rpn_anchor_generator, AnchorGenerator)
        check_kind("box_roi_pool", box_roi_pool, MultiScaleRoIAlign)
        if (num_classes is None) == (box_predictor is None):
            known = ("not be None", "not specified") if num_classes is None else ("be None", "specified")
            raise ValueError(f"num_classes should {known[0]} when box_predictor is {known[1]}")
        anchors = _default_anchorgen() if rpn_anchor_generator is None else rpn_anchor_generator
        if rpn_head is None:
            rpn_head = RPNHead(channels, anchors.num_anchors_per_location()[0])
        rpn = RegionProposalNetwork(
            anchors, rpn_head, rpn_fg_iou_thresh, rpn_bg_iou_thresh, rpn_batch_size_per_image, rpn_positive_fraction,
            {"training": rpn_pre_nms_top_n_train, "testing": rpn_pre_nms_top_n_test},
            {"training": rpn_post_nms_top_n_train, "testing": rpn_post_nms_top_n_test},
            rpn_nms_thresh, score_thresh=rpn_score_thresh,
        )  # fmt: skip
        if box_roi_pool is None:
            box_roi_pool = pool(7)
        if box_head is None:
            box_head = TwoMLPHead(channels * box_roi_pool.output_size[0] ** 2, 1024)
        if box_predictor is None:
            box_predictor = FastRCNNPredictor(1024, num_classes)
        roi_heads = RoIHeads(
            box_roi_pool, box_head, box_predictor, box_fg_iou_thresh, box_bg_iou_thresh, box_batch_size_per_image,
            box_positive_fraction, bbox_reg_weights, box_score_thresh, box_nms_thresh, box_detections_per_img,
        )  # fmt: skip
        mean, std = MEAN if image_mean is None else image_mean, STD if image_std is None else image_std
        transform = GeneralizedRCNNTransform(min_size, max_size, mean, std, **kwargs)
        super().__init__(backbone, rpn, roi_heads, transform)


class TwoMLPHead(nn.Module):
    """Two linear layers over what was pooled."""

    def __init__(self, in_channels: int, representation_size: int) -> None:
        super().__init__()
        self.fc6 = nn.Linear(in_channels, representation_size)
        self.fc7 = nn.Linear(representation_size, representation_size)

    def forward(self, x: Any) -> Any:
        """Return a row a box."""
        return F.relu(self.fc7(F.relu(self.fc6(x.flatten(start_dim=1)))))


class FastRCNNConvFCHead(nn.Sequential):
    """Convolutions and linear layers over what was pooled, which is of the size (channels, height, width)."""

    def __init__(
        self,
        input_size: tuple[int, int, int],
        conv_layers: Sequence[int],
        fc_layers: Sequence[int],
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:
        channels, height, width = input_size
        layers: list[nn.Module] = []
        for out in conv_layers:
            layers.append(Conv2dNormActivation(channels, out, norm_layer=norm_layer))
            channels = out
        layers.append(nn.Flatten())
        channels *= height * width
        for out in fc_layers:
            layers += [nn.Linear(channels, out), nn.ReLU(inplace=True)]
            channels = out
        super().__init__(*layers)
        initial.draw(self, conv=initial.he_fan_out)


class FastRCNNPredictor(nn.Module):
    """Logits of classes, and codes of a box for each of them."""

    def __init__(self, in_channels: int, num_classes: int) -> None:
        super().__init__()
        self.cls_score = nn.Linear(in_channels, num_classes)
        self.bbox_pred = nn.Linear(in_channels, num_classes * 4)

    def forward(self, x: Any) -> tuple[Any, Any]:
        """Return both of a row a box."""
        if x.dim() == 4 and tuple(x.shape[2:]) != (1, 1):
            raise AssertionError(
                "x has the wrong shape, expecting the last two dimensions to be [1,1] instead of "
                f"{list(x.shape[2:])}"
            )
        x = x.flatten(start_dim=1)
        return self.cls_score(x), self.bbox_pred(x)


def _make(given: dict[str, Any], num_classes: int, count: int, trained: bool, **kwargs: Any) -> FasterRCNN:
    return FasterRCNN(resnet50_pyramid(given, count, frozen(trained)), num_classes, **kwargs)


def second(given: dict[str, Any], count: int) -> dict[str, Any]:
    """Make what the second versions are made of, in which all has norms that are trained."""
    backbone = resnet50_pyramid(given, count, pyramid_norm=nn.BatchNorm2d)
    anchors = _default_anchorgen()
    return {
        "backbone": backbone, "rpn_anchor_generator": anchors,
        "rpn_head": RPNHead(backbone.out_channels, anchors.num_anchors_per_location()[0], conv_depth=2),
        "box_head": FastRCNNConvFCHead((backbone.out_channels, 7, 7), [256] * 4, [1024], norm_layer=nn.BatchNorm2d),
    }  # fmt: skip


def _make_v2(given: dict[str, Any], num_classes: int, count: int, trained: bool, **kwargs: Any) -> FasterRCNN:
    return FasterRCNN(num_classes=num_classes, **second(given, count), **kwargs)


def _make_mobile(given: dict[str, Any], num_classes: int, count: int, trained: bool, **kwargs: Any) -> FasterRCNN:
    backbone = _mobilenet_extractor(get_model("mobilenet_v3_large", norm_layer=frozen(trained), **given), True, count)
    anchors = AnchorGenerator(((32, 64, 128, 256, 512),) * 3, ((0.5, 1.0, 2.0),) * 3)
    return FasterRCNN(backbone, num_classes, rpn_anchor_generator=anchors, **kwargs)


fasterrcnn_resnet50_fpn = detector(
    "fasterrcnn_resnet50_fpn", FasterRCNN, _make, about="Faster R-CNN over a pyramid of resnet50"
)
fasterrcnn_resnet50_fpn_v2 = detector(
    "fasterrcnn_resnet50_fpn_v2", FasterRCNN, _make_v2, about="the second Faster R-CNN over a pyramid of resnet50",
    weights_backbone=None,
)  # fmt: skip
fasterrcnn_mobilenet_v3_large_fpn = detector(
    "fasterrcnn_mobilenet_v3_large_fpn", FasterRCNN, _make_mobile, layers=(6, 3), rpn_score_thresh=0.05,
    about="Faster R-CNN over a pyramid of mobilenet_v3_large",
)  # fmt: skip
fasterrcnn_mobilenet_v3_large_320_fpn = detector(
    "fasterrcnn_mobilenet_v3_large_320_fpn", FasterRCNN, _make_mobile, layers=(6, 3), rpn_score_thresh=0.05,
    min_size=320, max_size=640, rpn_pre_nms_top_n_test=150, rpn_post_nms_top_n_test=150,
    about="Faster R-CNN over a pyramid of mobilenet_v3_large, for small images",
)  # fmt: skip
