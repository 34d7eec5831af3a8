"""transforms: changes of images, fixed and random, of PIL images and tensors, under torchvision's names.

Random ones draw from mortice's default generator, so `mortice.manual_seed` repeats them; a DataLoader with
`seed_samples=True` makes them the same for any number of workers.
"""

from mortice.vision.transforms import autoaugment, functional
from mortice.vision.transforms._compose import Compose, Lambda, RandomApply, RandomChoice, RandomOrder, RandomTransforms
from mortice.vision.transforms._convert import (
    ConvertImageDtype,
    LinearTransformation,
    Normalize,
    PILToTensor,
    RandomErasing,
    ToPILImage,
    ToTensor,
)
from mortice.vision.transforms._geometry import (
    CenterCrop,
    ElasticTransform,
    FiveCrop,
    Pad,
    RandomAffine,
    RandomCrop,
    RandomHorizontalFlip,
    RandomPerspective,
    RandomResizedCrop,
    RandomRotation,
    RandomVerticalFlip,
    Resize,
    TenCrop,
)
from mortice.vision.transforms._jitter import (
    ColorJitter,
    GaussianBlur,
    Grayscale,
    RandomAdjustSharpness,
    RandomAutocontrast,
    RandomEqualize,
    RandomGrayscale,
    RandomInvert,
    RandomPosterize,
    RandomSolarize,
)
from mortice.vision.transforms.autoaugment import (
    AugMix,
    AutoAugment,
    AutoAugmentPolicy,
    RandAugment,
    TrivialAugmentWide,
)
from mortice.vision.transforms.functional import InterpolationMode

__all__ = [
    "AugMix", "AutoAugment", "AutoAugmentPolicy", "CenterCrop", "ColorJitter", "Compose", "ConvertImageDtype",
    "ElasticTransform", "FiveCrop", "GaussianBlur", "Grayscale", "InterpolationMode", "Lambda", "LinearTransformation",
    "Normalize", "PILToTensor", "Pad", "RandAugment", "RandomAdjustSharpness", "RandomAffine", "RandomApply",
    "RandomAutocontrast", "RandomChoice", "RandomCrop", "RandomEqualize", "RandomErasing", "RandomGrayscale",
    "RandomHorizontalFlip", "RandomInvert", "RandomOrder", "RandomPerspective", "RandomPosterize", "RandomResizedCrop",
    "RandomRotation", "RandomSolarize", "RandomTransforms", "RandomVerticalFlip", "Resize", "TenCrop", "ToPILImage",
    "ToTensor", "TrivialAugmentWide", "functional",
]  # fmt: skip

# What torchvision has removed -> what took its place.
_REMOVED = {"Scale": "Resize", "RandomSizedCrop": "RandomResizedCrop"}


def __getattr__(name: str) -> object:
    if name in ("v2", "transforms"):  # need no import of their own, as in torchvision; loading waits for the first use
        import importlib

        return importlib.import_module(f"mortice.vision.transforms.{name}")
    instead = f". torchvision removed it: use {_REMOVED[name]}" if name in _REMOVED else ""
    raise AttributeError(f"module 'mortice.vision.transforms' has no attribute {name!r}{instead}")
