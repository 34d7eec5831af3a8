"""What all detectors do with images before their heads, and the networks of two stages."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import mortice
from mortice import nn

__all__ = ["GeneralizedRCNN"]


class Detector(nn.Module):
    """Base of the detectors, which have a `transform` and a `backbone`.

    They take a list of images (C, H, W) of any sizes, of values from 0 to 1. In training they take for each of them a
    dictionary too, with "boxes" (N, 4), corners in pixels, and "labels" (N,), and return their losses by name; otherwise
    they return a dictionary for each image, with "boxes", "labels" and "scores".
    """

    def prepared(self, images: Any, targets: Any) -> tuple[Any, Any, list[tuple[int, int]], dict[str, Any]]:
        """Return images and targets as `transform` makes them, the sizes that images had, and maps by name."""
        if self.training:
            if targets is None:
                raise AssertionError("targets should not be none when in training mode")
            for target in targets:
                boxes = target["boxes"]
                if not isinstance(boxes, mortice.Tensor):
                    raise AssertionError(f"Expected target boxes to be of type Tensor, got {type(boxes)}.")
                if boxes.dim() != 2 or boxes.shape[-1] != 4:
                    raise AssertionError(
                        f"Expected target boxes to be a tensor of shape [N, 4], got {boxes.shape}."
                    )
        for image in images:
            if image.dim() < 2:
                raise AssertionError(
                    f"expecting the last two dimensions of the Tensor to be H and W instead got {image.shape[-2:]}"
                )
        sizes = [(image.shape[-2], image.shape[-1]) for image in images]
        images, targets = self.transform(images, targets)
        for i, target in enumerate(targets or ()):
            boxes = target["boxes"]
            empty = (boxes[:, 2:] <= boxes[:, :2]).any(1)
            if empty.any():
                raise AssertionError(
                    "All bounding boxes should have positive height and width."
                    f" Found invalid box {boxes[empty][0].tolist()} for target at index {i}."
                )
        features = self.backbone(images.tensors)
        if isinstance(features, mortice.Tensor):
            features = OrderedDict([("0", features)])
        return images, targets, sizes, features

    def eager_outputs(self, losses: Any, detections: Any) -> Any:
        """Return what is wanted of both: losses in training."""
        return losses if self.training else detections


class GeneralizedRCNN(Detector):
    """Maps, boxes of which `rpn` says that something is there, and what `roi_heads` says that it is."""

    def __init__(self, backbone: nn.Module, rpn: nn.Module, roi_heads: nn.Module, transform: nn.Module) -> None:
        super().__init__()
        self.transform, self.backbone, self.rpn, self.roi_heads = transform, backbone, rpn, roi_heads

    def forward(self, images: Any, targets: Any = None) -> Any:
        """Return losses by name in training, and otherwise what is found in each image."""
        images, targets, sizes, features = self.prepared(images, targets)
        proposals, proposal_losses = self.rpn(images, features, targets)
        detections, losses = self.roi_heads(features, proposals, images.image_sizes, targets)
        detections = self.transform.postprocess(detections, images.image_sizes, sizes)
        return self.eager_outputs({**losses, **proposal_losses}, detections)
