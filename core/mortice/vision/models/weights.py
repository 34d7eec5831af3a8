"""The weights that are published for these models: fetched at the first use, verified, and kept."""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Any

import mortice as mt
from mortice.utils.fetch import DownloadError, digest, fetch

__all__ = ["get_model_weights", "get_weight"]

BASE = "https://download.pytorch.org/models/"

# model: the start of the SHA-256 checksums of IMAGENET1K_V1 and IMAGENET1K_V2
PUBLISHED = {
    "alexnet": "7be5be79", "densenet121": "a639ec97", "densenet161": "8d451a50", "densenet169": "b2777c0a",
    "densenet201": "c1103571", "googlenet": "1378be20", "mobilenet_v2": "b0353104 7ebf99e0", "resnet18": "f37072fd",
    "resnet34": "b627a593", "resnet50": "0676ba61 11ad3fa6", "resnet101": "63fe2227 cd907fc2",
    "resnet152": "394f9c45 f82ba261", "resnext50_32x4d": "7cdf4587 1a0047aa", "resnext101_32x8d": "8ba56ff5 110c445d",
    "resnext101_64x4d": "173b62eb", "shufflenet_v2_x0_5": "f707e7126e", "shufflenet_v2_x1_0": "5666bf0f80",
    "shufflenet_v2_x1_5": "3c479a10", "shufflenet_v2_x2_0": "8be3c8ee", "squeezenet1_0": "b66bff10",
    "squeezenet1_1": "b8a52dc0", "vgg11": "8a719046", "vgg11_bn": "6002323d", "vgg13": "19584684", "vgg13_bn": "abd245e5",
    "vgg16": "397923af", "vgg16_bn": "6c64b313", "vgg19": "dcbb9e9d", "vgg19_bn": "c79401a0", "vit_b_16": "c867db91",
    "vit_b_32": "d86f8d99", "vit_l_16": "852ce7e3", "vit_l_32": "c7638314", "wide_resnet50_2": "95faca4d 9ba9bcbe",
    "wide_resnet101_2": "32ee1156 d733dc28",
}  # fmt: skip
_FILES = {
    "alexnet": "alexnet-owt", "shufflenet_v2_x0_5": "shufflenetv2_x0.5", "shufflenet_v2_x1_0": "shufflenetv2_x1",
    "shufflenet_v2_x1_5": "shufflenetv2_x1_5", "shufflenet_v2_x2_0": "shufflenetv2_x2_0",
}  # fmt: skip
_PARAMETERS = {
    "alexnet": 61_100_840, "densenet121": 7_978_856, "densenet161": 28_681_000, "densenet169": 14_149_480,
    "densenet201": 20_013_928, "googlenet": 6_624_904, "mobilenet_v2": 3_504_872, "resnet18": 11_689_512,
    "resnet34": 21_797_672, "resnet50": 25_557_032, "resnet101": 44_549_160, "resnet152": 60_192_808,
    "resnext50_32x4d": 25_028_904, "resnext101_32x8d": 88_791_336, "resnext101_64x4d": 83_455_272,
    "shufflenet_v2_x0_5": 1_366_792, "shufflenet_v2_x1_0": 2_278_604, "shufflenet_v2_x1_5": 3_503_624,
    "shufflenet_v2_x2_0": 7_393_996, "squeezenet1_0": 1_248_424, "squeezenet1_1": 1_235_496, "vgg11": 132_863_336,
    "vgg11_bn": 132_868_840, "vgg13": 133_047_848, "vgg13_bn": 133_053_736, "vgg16": 138_357_544,
    "vgg16_bn": 138_365_992, "vgg19": 143_667_240, "vgg19_bn": 143_678_248, "vit_b_16": 86_567_656,
    "vit_b_32": 88_224_232, "vit_l_16": 304_326_632, "vit_l_32": 306_535_400, "wide_resnet50_2": 68_883_240,
    "wide_resnet101_2": 126_886_696,
}  # fmt: skip
# The shorter side to which images are resized, where it is neither 256 nor, for the second weights of a model, 232.
_RESIZED = {
    "resnext101_64x4d": 232, "shufflenet_v2_x1_5": 232, "shufflenet_v2_x2_0": 232, "vit_l_16": 242,
}  # fmt: skip
_LEAST = {
    "alexnet": 63, "densenet": 29, "googlenet": 15, "squeezenet1_0": 21, "squeezenet1_1": 17, "vgg": 32, "vit": 224,
}  # fmt: skip
_WORDS = "AlexNet DenseNet GoogLeNet MobileNet ResNet ResNeXt ShuffleNet SqueezeNet ViT Wide".split()


class Weights(Enum):
    """Base of the enumerations such as `ResNet50_Weights`, whose values are (model, checksum)."""

    @property
    def url(self) -> str:
        """Where the file is published."""
        name, checksum = self.value
        return f"{BASE}{_FILES.get(name, name)}-{checksum}.pth"

    @property
    def meta(self) -> dict[str, Any]:
        """What is known of them: `categories` names the outputs; `num_params`, and `min_size` of images."""
        from mortice.vision.models.categories import categories

        name = self.value[0]
        least = next((size for start, size in _LEAST.items() if name.startswith(start)), 1)
        return {"categories": categories(), "num_params": _PARAMETERS[name], "min_size": (least, least)}

    def get_state_dict(
        self, progress: bool = True, check_hash: bool = True, model_dir: Any = None, map_location: Any = None
    ) -> Any:
        """Return the weights, from the folder where they are kept if they are there; what is fetched is verified."""
        path = os.path.join(model_dir or folder(), os.path.basename(self.url))
        if not os.path.isfile(path):
            try:
                fetch([self.url], path, self._is_in, progress=progress)
            except DownloadError as error:
                raise DownloadError(
                    f"{self}: {error}\n(MORTICE_HOME names another folder). A file of your own is read with "
                    "model.load_state_dict(mortice.load(path))."
                ) from error
        try:
            return mt.load(path, map_location=map_location)
        except Exception as error:
            if self._is_in(path):
                raise
            raise RuntimeError(
                f"{self}: {path} is not the published file: its SHA-256 checksum does not begin with {self.value[1]}. "
                "Remove it, and it is fetched anew."
            ) from error

    def _is_in(self, path: str) -> bool:
        return digest(path, "sha256").startswith(self.value[1])

    @property
    def transforms(self) -> Any:
        """The transform of images for which these weights were trained; to be called, if need be with other settings."""
        from mortice.vision.transforms._presets import ImageClassification

        resized = _RESIZED.get(self.value[0], 232 if self.name.endswith("_V2") else 256)
        return partial(ImageClassification, crop_size=224, resize_size=resized)

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    __str__ = __repr__


def folder() -> str:
    """Return where weights are kept: `checkpoints` below `hub.get_dir()`."""
    return os.path.join(mt.hub.get_dir(), "checkpoints")


_made: dict[str, Any] = {}


def enumeration(name: str) -> Any:
    """Return the enumeration of a model's weights by its name in small letters or capitals, None if there is none."""
    model = name.lower().removesuffix("_weights")
    if model not in _made:
        if model not in PUBLISHED:
            return None
        entries = {f"IMAGENET1K_V{i}": (model, checksum) for i, checksum in enumerate(PUBLISHED[model].split(), 1)}
        entries["DEFAULT"] = list(entries.values())[-1]
        shown = model.upper()
        for word in _WORDS:
            shown = shown.replace(word.upper(), word)
        _made[model] = Weights(f"{shown}_Weights", entries, module="mortice.vision.models")
    return _made[model]


def get_model_weights(name: str | Callable[..., Any]) -> Any:
    """Return the enumeration of the weights that are published for a model, given its name or constructor."""
    found = enumeration(name if isinstance(name, str) else name.__name__)
    if found is None:
        raise ValueError(f"{name}: no weights are published for it.")
    return found


def get_weight(name: str) -> Any:
    """Return weights by their full name, such as "ResNet50_Weights.IMAGENET1K_V1"."""
    kind, _, entry = name.partition(".")
    found = enumeration(kind)
    if not entry:
        raise ValueError(f"Invalid weight name provided: '{name}'.")
    if found is None:
        raise ValueError(f"The weight enum '{kind}' for the specific method couldn't be retrieved.")
    return found[entry]


def pretrained(name: str, make: Callable[..., Any], weights: Any, progress: bool, kwargs: dict[str, Any]) -> Any:
    """Make a model with published weights, which decide its classes."""
    kinds = get_model_weights(name)
    if isinstance(weights, str):
        entry = weights.rpartition(".")[2]
        if entry not in kinds.__members__:
            raise ValueError(f"{name}: expected weights among {', '.join(kinds.__members__)}; got {weights!r}.")
        weights = kinds[entry]
    if not isinstance(weights, kinds):
        raise TypeError(
            f"Invalid Weight class provided; expected {kinds.__name__} but received {type(weights).__name__}."
        )
    if kwargs.setdefault("num_classes", 1000) != 1000:
        raise ValueError(
            f"The parameter 'num_classes' expected value 1000 but got {kwargs['num_classes']} instead. Replace the last layer "
            "after the weights are loaded."
        )
    listens = kwargs.pop("aux_logits", False)
    if name == "googlenet":  # whose file has the auxiliary classifiers, and was trained on differently scaled images
        kwargs = {"transform_input": True, **kwargs, "aux_logits": True, "init_weights": False}
    model = make(**kwargs)
    model.load_state_dict(weights.get_state_dict(progress))
    if name == "googlenet" and not listens:
        model.aux_logits, model.aux1, model.aux2 = False, None, None
    return model
