"""Networks for images as the backbones of detectors: their maps, and pyramids of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mortice import nn
from mortice.notice import warn
from mortice.vision.models._utils import IntermediateLayerGetter
from mortice.vision.models.registry import first_weights, get_model, register
from mortice.vision.ops import FeaturePyramidNetwork, FrozenBatchNorm2d
from mortice.vision.ops.feature_pyramid_network import ExtraFPNBlock, LastLevelMaxPool

__all__ = ["BackboneWithFPN", "mobilenet_backbone", "resnet_fpn_backbone"]


class BackboneWithFPN(nn.Module):
    """Some layers of a network, and the pyramid of what they give.

    Args:
        return_layers: the names of its children whose maps are wanted, and the names to return them by.
        in_channels_list: the channels of those maps.
        out_channels: the channels of the results.
    """

    def __init__(
        self,
        backbone: nn.Module,
        return_layers: dict[str, str],
        in_channels_list: list[int],
        out_channels: int,
        extra_blocks: ExtraFPNBlock | None = None,
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:
        super().__init__()
        self.body = IntermediateLayerGetter(backbone, return_layers=return_layers)
        extra = LastLevelMaxPool() if extra_blocks is None else extra_blocks
        self.fpn = FeaturePyramidNetwork(in_channels_list, out_channels, extra, norm_layer)
        self.out_channels = out_channels

    def forward(self, x: Any) -> dict[str, Any]:
        """Return maps by name."""
        return self.fpn(self.body(x))


def _first_weights(weights: Any, pretrained: bool | None) -> Any:
    """Return the weights that are meant, where they may be asked for as at first."""
    return weights if pretrained is None else first_weights(pretrained, lambda: "IMAGENET1K_V1")


def resnet_fpn_backbone(
    backbone_name: str,
    weights: Any = None,
    norm_layer: Callable[..., nn.Module] = FrozenBatchNorm2d,
    trainable_layers: int = 3,
    returned_layers: Sequence[int] | None = None,
    extra_blocks: ExtraFPNBlock | None = None,
    *,
    pretrained: bool | None = None,
) -> BackboneWithFPN:
    """Make a ResNet with a pyramid, of which that many layers are trained, counted from the last."""
    backbone = get_model(backbone_name, weights=_first_weights(weights, pretrained), norm_layer=norm_layer)
    return _resnet_fpn_extractor(backbone, trainable_layers, returned_layers, extra_blocks)


def _resnet_fpn_extractor(
    backbone: Any,
    trainable_layers: int,
    returned_layers: Sequence[int] | None = None,
    extra_blocks: ExtraFPNBlock | None = None,
    norm_layer: Callable[..., nn.Module] | None = None,
) -> BackboneWithFPN:
    if not 0 <= trainable_layers <= 5:
        raise ValueError(f"Trainable layers should be in the range [0,5], got {trainable_layers}")
    trained = ("layer4", "layer3", "layer2", "layer1", "conv1")[:trainable_layers]
    trained += ("bn1",) if trainable_layers == 5 else ()
    for name, parameter in backbone.named_parameters():
        if not name.startswith(trained):
            parameter.requires_grad_(False)
    layers = [1, 2, 3, 4] if returned_layers is None else returned_layers
    if min(layers) <= 0 or max(layers) >= 5:
        raise ValueError(f"Each returned layer should be in the range [1,4]. Got {layers}")
    names = {f"layer{k}": str(i) for i, k in enumerate(layers)}
    channels = [backbone.inplanes // 8 * 2 ** (k - 1) for k in layers]
    return BackboneWithFPN(backbone, names, channels, 256, extra_blocks, norm_layer)


def mobilenet_backbone(
    backbone_name: str,
    weights: Any = None,
    fpn: bool = True,
    norm_layer: Callable[..., nn.Module] = FrozenBatchNorm2d,
    trainable_layers: int = 2,
    returned_layers: Sequence[int] | None = None,
    extra_blocks: ExtraFPNBlock | None = None,
    *,
    pretrained: bool | None = None,
) -> nn.Module:
    """Make a MobileNet with a pyramid, or else one map, of which that many stages are trained, counted from the last."""
    backbone = get_model(backbone_name, weights=_first_weights(weights, pretrained), norm_layer=norm_layer)
    return _mobilenet_extractor(backbone, fpn, trainable_layers, returned_layers, extra_blocks)


def stages(features: Any, trainable_layers: int) -> list[int]:
    """Return where the stages of a MobileNet begin, and its last layer; freeze those that are not to be trained."""
    starts = [0, *(i for i, block in enumerate(features) if getattr(block, "_is_cn", False)), len(features) - 1]
    if not 0 <= trainable_layers <= len(starts):
        raise ValueError(f"Trainable layers should be in the range [0,{len(starts)}], got {trainable_layers} ")
    for block in features[: starts[-trainable_layers] if trainable_layers else len(features)]:
        block.requires_grad_(False)
    return starts


def _mobilenet_extractor(
    backbone: Any,
    fpn: bool,
    trainable_layers: int,
    returned_layers: Sequence[int] | None = None,
    extra_blocks: ExtraFPNBlock | None = None,
    norm_layer: Callable[..., nn.Module] | None = None,
) -> nn.Module:
    features = backbone.features
    starts = stages(features, trainable_layers)
    if not fpn:
        made = nn.Sequential(features, nn.Conv2d(features[-1].out_channels, 256, 1))
        made.out_channels = 256
        return made
    layers = [len(starts) - 2, len(starts) - 1] if returned_layers is None else returned_layers
    if min(layers) < 0 or max(layers) >= len(starts):
        raise ValueError(f"Each returned layer should be in the range [0,{len(starts) - 1}], got {layers} ")
    names = {str(starts[k]): str(i) for i, k in enumerate(layers)}
    channels = [features[starts[k]].out_channels for k in layers]
    return BackboneWithFPN(features, names, channels, 256, extra_blocks, norm_layer)


def _validate_trainable_layers(
    is_trained: bool, trainable_backbone_layers: int | None, max_value: int, default_value: int
) -> int:
    """Return how many layers are trained: all of a network that has not been."""
    if not is_trained:
        if trainable_backbone_layers is not None:
            warn(
                "Changing trainable_backbone_layers has no effect if neither pretrained nor pretrained_backbone have been "
                f"set to True, falling back to trainable_backbone_layers={max_value} so that all layers are trainable"
            )
        return max_value
    layers = default_value if trainable_backbone_layers is None else trainable_backbone_layers
    if not 0 <= layers <= max_value:
        raise ValueError(f"Trainable backbone layers should be in the range [0,{max_value}], got {layers} ")
    return layers


def detector(
    name: str,
    kind: type,
    make: Callable[..., Any],
    about: str,
    weights_backbone: str | None = "IMAGENET1K_V1",
    layers: tuple[int, int] = (5, 3),
    num_classes: int = 91,
    **usual: Any,
) -> Callable[..., Any]:
    """List a detector, over a backbone that has published weights where nothing else is said.

    Args:
        make: called with what the backbone is made with, the number of classes, how many of its layers are trained and
            whether it has weights, and what is left of the keyword arguments.
        layers: how many layers can be trained, and are in a backbone with weights.
        usual: keyword arguments by default.
    """
    classes, first = num_classes, "IMAGENET1K_FEATURES" if name.startswith("ssd300") else "IMAGENET1K_V1"

    def build(
        *, num_classes: int | None = None, weights_backbone: Any = None, pretrained_backbone: bool | None = None,
        trainable_backbone_layers: int | None = None, progress: bool = True, _trained: bool = False, **kwargs: Any,
    ) -> Any:  # fmt: skip
        if pretrained_backbone is not None:  # as it was said at first
            weights_backbone = first_weights(
                pretrained_backbone and not _trained, lambda: first, "weights_backbone", "pretrained_backbone"
            )
        trained = _trained or weights_backbone is not None
        count = _validate_trainable_layers(trained, trainable_backbone_layers, *layers)
        given = {"weights": weights_backbone, "progress": progress}
        return make(given, classes if num_classes is None else num_classes, count, trained, **{**usual, **kwargs})

    build.__name__, build.__module__ = kind.__name__, kind.__module__
    return register(name, build, usual={"weights_backbone": weights_backbone}, about=about)


def resnet50_pyramid(
    given: dict[str, Any], count: int, norm_layer: Any = None, pyramid_norm: Any = None, **pyramid: Any
) -> BackboneWithFPN:
    """Make the backbone that most detectors have."""
    return _resnet_fpn_extractor(
        get_model("resnet50", norm_layer=norm_layer, **given), count, norm_layer=pyramid_norm, **pyramid
    )


def frozen(trained: bool) -> Callable[..., nn.Module]:
    """Return the norm of a backbone: one that training leaves alone, if it has weights."""
    return FrozenBatchNorm2d if trained else nn.BatchNorm2d
