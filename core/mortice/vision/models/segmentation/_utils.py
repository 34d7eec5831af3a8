"""What the models share: where their backbones come from, and the way from its maps to the picture's size."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from mortice import nn
from mortice.vision.models._utils import IntermediateLayerGetter
from mortice.vision.models.registry import first_weights, get_model, register


class _SimpleSegmentationModel(nn.Module):
    def __init__(self, backbone: nn.Module, classifier: nn.Module, aux_classifier: nn.Module | None = None) -> None:
        super().__init__()
        self.backbone, self.classifier, self.aux_classifier = backbone, classifier, aux_classifier

    def forward(self, x: Any) -> dict[str, Any]:
        """Return the logits of a batch of images by "out", and those of the auxiliary classifier by "aux"."""
        maps, heads = self.backbone(x), {"out": self.classifier, "aux": self.aux_classifier}
        made = ((name, head(maps[name])) for name, head in heads.items() if head is not None)
        return OrderedDict((name, resized(y, x.shape[-2:])) for name, y in made)


def resized(x: Any, size: Any) -> Any:
    """Return maps of another size."""
    return nn.functional.interpolate(x, size=size, mode="bilinear", align_corners=False)


def conv_norm(inp: int, out: int, kernel: int = 1, dilation: int = 1, inplace: bool = False) -> list[nn.Module]:
    """Make a convolution that keeps the size, its norm and its ReLU."""
    conv = nn.Conv2d(inp, out, kernel, padding=kernel // 2 * dilation, dilation=dilation, bias=False)
    return [conv, nn.BatchNorm2d(out), nn.ReLU(inplace=inplace)]


def backbone(name: str, late: str, early: str | None, **kwargs: Any) -> tuple[Any, int, int]:
    """Make a network that dilates its last stages, which gives its last maps and earlier ones by those names.

    Returns it and the channels of both.
    """
    if name.startswith("resnet"):
        model = get_model(name, replace_stride_with_dilation=[False, True, True], **kwargs)
        places, channels = ("layer4", "layer3"), (2048, 1024)
    else:
        model = get_model(name, dilated=True, **kwargs).features
        starts = [0, *(i for i, block in enumerate(model) if getattr(block, "_is_cn", False)), len(model) - 1]
        places = str(starts[-1]), str(starts[-4])
        channels = model[starts[-1]].out_channels, model[starts[-4]].out_channels
    wanted = {places[0]: late} | ({places[1]: early} if early is not None else {})
    return IntermediateLayerGetter(model, wanted), *channels


def segmentation(name: str, kind: type, over: str, make: Callable[..., Any], about: str) -> Callable[..., Any]:
    """List a model over a backbone, which has published weights where nothing else is said.

    `make` is called with the backbone's name, the number of classes, whether there is an auxiliary head, and what the
    backbone is made with.
    """

    def build(
        *, num_classes: int | None = None, aux_loss: bool | None = None, weights_backbone: Any = None,
        pretrained_backbone: bool | None = None, progress: bool = True, **kwargs: Any,
    ) -> Any:  # fmt: skip
        if pretrained_backbone is not None:  # as it was said at first
            weights_backbone = first_weights(
                pretrained_backbone, lambda: "IMAGENET1K_V1", "weights_backbone", "pretrained_backbone"
            )
        given = {"weights": weights_backbone, "progress": progress}
        return make(over, 21 if num_classes is None else num_classes, bool(aux_loss), **given)

    build.__name__, build.__module__ = kind.__name__, kind.__module__
    return register(name, build, usual={"weights_backbone": "IMAGENET1K_V1"}, about=f"{about} over {over}")
