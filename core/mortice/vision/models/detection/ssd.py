"""SSD: W. Liu et al., "SSD: single shot multibox detector" (2015)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import mortice
from mortice import nn
from mortice.nn import functional as F
from mortice.notice import warn
from mortice.vision.models import initial
from mortice.vision.models.detection import _utils as det_utils
from mortice.vision.models.detection.anchor_utils import DefaultBoxGenerator
from mortice.vision.models.detection.backbone_utils import detector
from mortice.vision.models.detection.faster_rcnn import MEAN, STD
from mortice.vision.models.detection.one_stage import OneStage
from mortice.vision.models.detection.transform import GeneralizedRCNNTransform
from mortice.vision.models.registry import get_model
from mortice.vision.ops import boxes as box_ops

__all__ = ["ssd300_vgg16"]


class SSDScoringHead(nn.Module):
    """A module for each map, whose results have so many columns."""

    def __init__(self, module_list: nn.ModuleList, num_columns: int) -> None:
        super().__init__()
        self.module_list, self.num_columns = module_list, num_columns

    def forward(self, x: list[Any]) -> Any:
        """Return the results (N, anchors, columns) of all maps."""
        found = [det_utils.by_anchor(module(maps), self.num_columns) for module, maps in zip(self.module_list, x)]
        return mortice.cat(found, dim=1)


def _convolutions(in_channels: Sequence[int], num_anchors: Sequence[int], columns: int) -> nn.ModuleList:
    made = nn.ModuleList(nn.Conv2d(c, columns * n, kernel_size=3, padding=1) for c, n in zip(in_channels, num_anchors))
    initial.draw(made, conv=nn.init.xavier_uniform_)
    return made


class SSDClassificationHead(SSDScoringHead):
    """Logits of classes, of each anchor."""

    def __init__(self, in_channels: Sequence[int], num_anchors: Sequence[int], num_classes: int) -> None:
        super().__init__(_convolutions(in_channels, num_anchors, num_classes), num_classes)


class SSDRegressionHead(SSDScoringHead):
    """Codes of a box, of each anchor."""

    def __init__(self, in_channels: Sequence[int], num_anchors: Sequence[int]) -> None:
        super().__init__(_convolutions(in_channels, num_anchors, 4), 4)


class SSDHead(nn.Module):
    """Both heads."""

    def __init__(self, in_channels: Sequence[int], num_anchors: Sequence[int], num_classes: int) -> None:
        super().__init__()
        self.classification_head: nn.Module = SSDClassificationHead(in_channels, num_anchors, num_classes)
        self.regression_head: nn.Module = SSDRegressionHead(in_channels, num_anchors)

    def forward(self, x: list[Any]) -> dict[str, Any]:
        """Return what both say."""
        return {"bbox_regression": self.regression_head(x), "cls_logits": self.classification_head(x)}


class SSD(OneStage):
    """A detector of one stage for images of one size.

    Args:
        backbone: a network that gives maps by name; `out_channels` lists their channels if it is there.
        size: the (width, height) that images are brought to.
        num_classes: the number of classes, background among them.
        iou_thresh: from which overlap with a true box on an anchor is of its class.
        positive_fraction: which part of the anchors that count are not background: of the others the worst are taken.
        score_thresh, nms_thresh: how probable a class must be, and how much boxes may overlap better ones of it.
        topk_candidates, detections_per_img: how many boxes of each class are taken, and how many are left at most.
    """

    def __init__(
        self,
        backbone: nn.Module,
        anchor_generator: DefaultBoxGenerator,
        size: tuple[int, int],
        num_classes: int,
        image_mean: list[float] | None = None,
        image_std: list[float] | None = None,
        head: nn.Module | None = None,
        score_thresh: float = 0.01,
        nms_thresh: float = 0.45,
        detections_per_img: int = 200,
        iou_thresh: float = 0.5,
        topk_candidates: int = 400,
        positive_fraction: float = 0.25,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self.backbone, self.anchor_generator = backbone, anchor_generator
        self.box_coder = det_utils.BoxCoder(weights=(10.0, 10.0, 5.0, 5.0))
        if head is None:
            head = SSDHead(*channels_and_anchors(backbone, anchor_generator, size), num_classes)
        self.head = head
        self.proposal_matcher = det_utils.SSDMatcher(iou_thresh)
        mean, std = MEAN if image_mean is None else image_mean, STD if image_std is None else image_std
        self.transform = GeneralizedRCNNTransform(
            min(size), max(size), mean, std, size_divisible=1, fixed_size=size, **kwargs
        )
        self.score_thresh, self.nms_thresh = score_thresh, nms_thresh
        self.detections_per_img, self.topk_candidates = detections_per_img, topk_candidates
        self.neg_to_pos_ratio = (1.0 - positive_fraction) / positive_fraction

    def _losses(self, targets: Any, outputs: Any, anchors: list[Any], pixels: list[int]) -> dict[str, Any]:
        return self.compute_loss(targets, outputs, anchors, self._matches(targets, anchors))

    def compute_loss(
        self, targets: Any, head_outputs: dict[str, Any], anchors: list[Any], matched_idxs: list[Any]
    ) -> dict[str, Any]:
        """Return the losses by name, of the anchors that have a box and, of classes, of the worst of the others."""
        logits, count, box_losses, classes = head_outputs["cls_logits"], 0, [], []
        for target, codes, boxes, matches in zip(targets, head_outputs["bbox_regression"], anchors, matched_idxs):
            at = mortice.where(matches >= 0)[0]
            count += len(at)
            wanted = self.box_coder.encode_single(target["boxes"][matches[at]], boxes[at])
            box_losses.append(F.smooth_l1_loss(codes[at], wanted, reduction="sum"))
            labels = target["labels"].new_zeros((len(matches),))
            labels[at] = target["labels"][matches[at]]
            classes.append(labels)
        kinds = mortice.stack(classes)
        losses = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), kinds.reshape(-1), reduction="none")
        losses = losses.view(kinds.shape)
        there = kinds > 0
        few = self.neg_to_pos_ratio * there.sum(1, keepdim=True)
        worst = losses.detach().masked_fill(there, -float("inf")).argsort(dim=1, descending=True)
        taken = worst.argsort(dim=1) < few
        count = max(1, count)
        return {
            "bbox_regression": mortice.stack(box_losses).sum() / count,
            "classification": (losses[there].sum() + losses[taken].sum()) / count,
        }

    def _detections(self, outputs: Any, anchors: list[Any], sizes: Any, pixels: list[int]) -> list[Any]:
        return self.postprocess_detections(outputs, anchors, sizes)

    def postprocess_detections(
        self, head_outputs: dict[str, Any], image_anchors: list[Any], image_shapes: Any
    ) -> list[Any]:
        """Return what is found in each image."""
        found, probable = [], F.softmax(head_outputs["cls_logits"], dim=-1)
        for codes, scores, anchors, size in zip(head_outputs["bbox_regression"], probable, image_anchors, image_shapes):
            boxes = box_ops.clip_boxes_to_image(self.box_coder.decode_single(codes, anchors), size)
            parts: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
            for label, of_class in enumerate(scores.T[1:], 1):
                at = mortice.where(of_class > self.score_thresh)[0]
                best, order = of_class[at].topk(det_utils._topk_min(at, self.topk_candidates, 0))
                values = boxes[at[order]], best, mortice.full_like(order, label)
                for kept, value in zip(parts, values):
                    kept.append(value)
            found.append(self._kept(*parts))
        return found


def channels_and_anchors(
    backbone: Any, anchor_generator: DefaultBoxGenerator, size: tuple[int, int]
) -> tuple[list[int], list[int]]:
    """Return the channels of each map of a backbone, and how many anchors a pixel of it has."""
    channels = getattr(backbone, "out_channels", None) or det_utils.retrieve_out_channels(backbone, size)
    if len(channels) != len(anchor_generator.aspect_ratios):
        raise ValueError(
            f"The length of the output channels from the backbone ({len(channels)}) do not match the length of the anchor "
            f"generator aspect ratios ({len(anchor_generator.aspect_ratios)})"
        )
    return channels, anchor_generator.num_anchors_per_location()


def _narrowing(inp: int, between: int, out: int, *args: Any, **kwargs: Any) -> nn.Sequential:
    convs = nn.Conv2d(inp, between, kernel_size=1), nn.Conv2d(between, out, *args, **kwargs)
    return nn.Sequential(convs[0], nn.ReLU(inplace=True), convs[1], nn.ReLU(inplace=True))


class SSDFeatureExtractorVGG(nn.Module):
    """The convolutions of a VGG, and more that go on halving the picture; `highres` is for images of 512 by 512."""

    def __init__(self, backbone: Any, highres: bool) -> None:
        super().__init__()
        _, _, third, fourth, _ = (i for i, layer in enumerate(backbone) if isinstance(layer, nn.MaxPool2d))
        backbone[third].ceil_mode = True  # so that the maps are of the paper's sizes
        self.scale_weight = nn.Parameter(mortice.ones(512) * 20)
        self.features = nn.Sequential(*backbone[:fourth])
        extra = nn.ModuleList(
            [
                _narrowing(1024, 256, 512, kernel_size=3, padding=1, stride=2),
                _narrowing(512, 128, 256, kernel_size=3, padding=1, stride=2),
                _narrowing(256, 128, 256, kernel_size=3),
                _narrowing(256, 128, 256, kernel_size=3),
            ]
        )
        if highres:
            extra.append(_narrowing(256, 128, 256, kernel_size=4))
        initial.draw(extra, conv=nn.init.xavier_uniform_)
        linear = nn.Sequential(  # what the linear layers of the VGG become
            nn.MaxPool2d(kernel_size=3, stride=1, padding=1, ceil_mode=False),
            nn.Conv2d(512, 1024, kernel_size=3, padding=6, dilation=6), nn.ReLU(inplace=True),
            nn.Conv2d(1024, 1024, kernel_size=1), nn.ReLU(inplace=True),
        )  # fmt: skip
        initial.draw(linear, conv=nn.init.xavier_uniform_)
        extra.insert(0, nn.Sequential(*backbone[fourth:-1], linear))
        self.extra = extra

    def forward(self, x: Any) -> dict[str, Any]:
        """Return the maps by their numbers; the first is of length 20, or what is learnt, at each pixel."""
        x = self.features(x)
        found = [self.scale_weight.view(1, -1, 1, 1) * F.normalize(x)]
        for block in self.extra:
            x = block(x)
            found.append(x)
        return OrderedDict((str(i), y) for i, y in enumerate(found))


def _vgg_extractor(backbone: Any, highres: bool, trainable_layers: int) -> SSDFeatureExtractorVGG:
    layers = backbone.features
    starts = [0, *(i for i, layer in enumerate(layers) if isinstance(layer, nn.MaxPool2d))][:-1]
    if not 0 <= trainable_layers <= len(starts):
        raise AssertionError(
            f"trainable_layers should be in the range [0, {len(starts)}]. Instead got {trainable_layers}"
        )
    for layer in layers[: starts[-trainable_layers] if trainable_layers else len(layers)]:
        layer.requires_grad_(False)
    return SSDFeatureExtractorVGG(layers, highres)


def fixed(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return keyword arguments without the size, which such a model has by definition."""
    if "size" in kwargs:
        warn("The size of the model is already fixed; ignoring the parameter.")
    return {key: value for key, value in kwargs.items() if key != "size"}


def _make(given: dict[str, Any], num_classes: int, count: int, trained: bool, **kwargs: Any) -> SSD:
    backbone = _vgg_extractor(get_model("vgg16", **given), False, count)
    anchors = DefaultBoxGenerator(
        [[2], [2, 3], [2, 3], [2, 3], [2], [2]], scales=[0.07, 0.15, 0.33, 0.51, 0.69, 0.87, 1.05],
        steps=[8, 16, 32, 64, 100, 300],
    )  # fmt: skip
    return SSD(backbone, anchors, (300, 300), num_classes, **fixed(kwargs))


ssd300_vgg16 = detector(
    "ssd300_vgg16", SSD, _make, weights_backbone="IMAGENET1K_FEATURES", layers=(5, 4),
    image_mean=[0.48235, 0.45882, 0.40784], image_std=[1.0 / 255.0] * 3, about="SSD over vgg16",
)  # fmt: skip
