"""Policies of random changes: AutoAugment, RandAugment, TrivialAugment and AugMix."""

from __future__ import annotations

import math
import struct
from enum import Enum
from typing import Any

import mortice
from mortice import nn
from mortice.vision.transforms import functional as F
from mortice.vision.transforms._draws import fill_for, integer
from mortice.vision.transforms.functional import InterpolationMode

__all__ = ["AutoAugmentPolicy"]


class AutoAugmentPolicy(Enum):
    """Policies that AutoAugment learned, each on a data set."""

    IMAGENET = "imagenet"
    CIFAR10 = "cifar10"
    SVHN = "svhn"


# The tables of the paper (Cubuk et al., 2018): pairs of changes, each with its probability and its magnitude in tenths.
_POLICIES = {
    AutoAugmentPolicy.IMAGENET: """
        Posterize 0.4 8 Rotate 0.6 9; Solarize 0.6 5 AutoContrast 0.6 -; Equalize 0.8 - Equalize 0.6 -;
        Posterize 0.6 7 Posterize 0.6 6; Equalize 0.4 - Solarize 0.2 4; Equalize 0.4 - Rotate 0.8 8; Solarize
        0.6 3 Equalize 0.6 -; Posterize 0.8 5 Equalize 1.0 -; Rotate 0.2 3 Solarize 0.6 8; Equalize 0.6 -
        Posterize 0.4 6; Rotate 0.8 8 Color 0.4 0; Rotate 0.4 9 Equalize 0.6 -; Equalize 0.0 - Equalize 0.8 -;
        Invert 0.6 - Equalize 1.0 -; Color 0.6 4 Contrast 1.0 8; Rotate 0.8 8 Color 1.0 2; Color 0.8 8 Solarize
        0.8 7; Sharpness 0.4 7 Invert 0.6 -; ShearX 0.6 5 Equalize 1.0 -; Color 0.4 0 Equalize 0.6 -; Equalize
        0.4 - Solarize 0.2 4; Solarize 0.6 5 AutoContrast 0.6 -; Invert 0.6 - Equalize 1.0 -; Color 0.6 4
        Contrast 1.0 8; Equalize 0.8 - Equalize 0.6 -
    """,
    AutoAugmentPolicy.CIFAR10: """
        Invert 0.1 - Contrast 0.2 6; Rotate 0.7 2 TranslateX 0.3 9; Sharpness 0.8 1 Sharpness 0.9 3; ShearY 0.5
        8 TranslateY 0.7 9; AutoContrast 0.5 - Equalize 0.9 -; ShearY 0.2 7 Posterize 0.3 7; Color 0.4 3
        Brightness 0.6 7; Sharpness 0.3 9 Brightness 0.7 9; Equalize 0.6 - Equalize 0.5 -; Contrast 0.6 7
        Sharpness 0.6 5; Color 0.7 7 TranslateX 0.5 8; Equalize 0.3 - AutoContrast 0.4 -; TranslateY 0.4 3
        Sharpness 0.2 6; Brightness 0.9 6 Color 0.2 8; Solarize 0.5 2 Invert 0.0 -; Equalize 0.2 - AutoContrast
        0.6 -; Equalize 0.2 - Equalize 0.6 -; Color 0.9 9 Equalize 0.6 -; AutoContrast 0.8 - Solarize 0.2 8;
        Brightness 0.1 3 Color 0.7 0; Solarize 0.4 5 AutoContrast 0.9 -; TranslateY 0.9 9 TranslateY 0.7 9;
        AutoContrast 0.9 - Solarize 0.8 3; Equalize 0.8 - Invert 0.1 -; TranslateY 0.7 9 AutoContrast 0.9 -
    """,
    AutoAugmentPolicy.SVHN: """
        ShearX 0.9 4 Invert 0.2 -; ShearY 0.9 8 Invert 0.7 -; Equalize 0.6 - Solarize 0.6 6; Invert 0.9 -
        Equalize 0.6 -; Equalize 0.6 - Rotate 0.9 3; ShearX 0.9 4 AutoContrast 0.8 -; ShearY 0.9 8 Invert 0.4 -;
        ShearY 0.9 5 Solarize 0.2 6; Invert 0.9 - AutoContrast 0.8 -; Equalize 0.6 - Rotate 0.9 3; ShearX 0.9 4
        Solarize 0.3 3; ShearY 0.8 8 Invert 0.7 -; Equalize 0.9 - TranslateY 0.6 6; Invert 0.9 - Equalize 0.6 -;
        Contrast 0.3 3 Rotate 0.8 4; Invert 0.8 - TranslateY 0.0 2; ShearY 0.7 6 Solarize 0.4 8; Invert 0.6 -
        Rotate 0.8 4; ShearY 0.3 7 TranslateX 0.9 3; ShearX 0.1 6 Invert 0.6 -; Solarize 0.7 2 TranslateY 0.6 7;
        ShearY 0.8 4 Invert 0.8 -; ShearX 0.7 9 TranslateY 0.8 3; ShearY 0.8 5 AutoContrast 0.7 -; ShearX 0.7 2
        Invert 0.1 -
    """,
}

# ---- the changes, and how far each goes ----

_MOVES = "ShearX ShearY TranslateX TranslateY Rotate"
_COLOURS = "Brightness Color Contrast Sharpness"
_LEVELS = "Posterize Solarize AutoContrast Equalize"
_SIGNED = {*_MOVES.split(), *_COLOURS.split()}  # what goes either way
_ADJUSTMENTS = {"Brightness": "brightness", "Color": "saturation", "Contrast": "contrast", "Sharpness": "sharpness"}
_PLAIN = {"AutoContrast", "Equalize", "Invert"}


def _space(
    names: str, shear: float, translate: tuple[float, float], turn: float, colour: float, bits: tuple[int, int],
    white: float = 255.0,
) -> dict[str, Any]:  # fmt: skip
    """Return the first and the last magnitude of each change, None for those that have none."""
    ranges: dict[str, Any] = {
        "ShearX": (0.0, shear), "ShearY": (0.0, shear), "TranslateX": (0.0, translate[0]),
        "TranslateY": (0.0, translate[1]), "Rotate": (0.0, turn), "Posterize": bits, "Solarize": (white, 0.0),
        **dict.fromkeys(_COLOURS.split(), (0.0, colour)),
    }  # fmt: skip
    return {name: ranges.get(name) for name in names.split()}


def _magnitude(name: str, ends: tuple[float, float], i: int, bins: int) -> float:
    """Return the i-th of evenly spaced magnitudes."""
    if name == "Posterize":
        return ends[0] - round(i / ((bins - 1) / (ends[0] - ends[1])))
    # As PyTorch's linspace has it, in float32: magnitudes of whole pixels are cut, and the last bit decides.
    first, last = map(_single, ends)
    step = _single((last - first) / (bins - 1))
    return _single(first + step * i if i < bins // 2 else last - step * (bins - 1 - i))


def _single(value: float) -> float:
    return struct.unpack("f", struct.pack("f", value))[0]  # type: ignore[no-any-return]


def _apply(img: Any, name: str, magnitude: float, interpolation: Any, fill: Any, F: Any = F) -> Any:
    """Make a change, with the functions of a module like `functional`."""
    if name == "Identity":
        return img
    if name in _PLAIN:
        return getattr(F, name.lower())(img)
    if name in _ADJUSTMENTS:
        return getattr(F, f"adjust_{_ADJUSTMENTS[name]}")(img, 1.0 + magnitude)
    if name == "Posterize":
        return F.posterize(img, int(magnitude))
    if name == "Solarize":
        return F.solarize(img, magnitude)
    if name == "Rotate":
        return F.rotate(img, magnitude, interpolation=interpolation, fill=fill)
    axis = 0 if name.endswith("X") else 1
    if name.startswith("Shear"):
        shear = [0.0, 0.0]
        shear[axis] = math.degrees(math.atan(magnitude))
        # About the upper left corner, as the paper's own code has it.
        return F.affine(img, 0.0, [0, 0], 1.0, shear, interpolation=interpolation, fill=fill, center=[0, 0])
    move = [0, 0]
    move[axis] = int(magnitude)
    return F.affine(img, 0.0, move, 1.0, [0.0, 0.0], interpolation=interpolation, fill=fill)


def _draw(
    space: dict[str, Any], bins: int, place: Any, negative: Any = lambda: integer(0, 2)
) -> tuple[str, float]:
    """Draw a change; `place` gives the number of its magnitude, and `negative` whether it goes the other way."""
    name = list(space)[integer(0, len(space))]
    magnitude = 0.0 if space[name] is None else _magnitude(name, space[name], place(), bins)
    return name, -magnitude if name in _SIGNED and negative() else magnitude


# ---- the policies ----


class _Policy(nn.Module):
    _shown: tuple[str, ...]

    def __init__(self, interpolation: InterpolationMode, fill: Any) -> None:
        super().__init__()
        self.interpolation, self.fill = interpolation, fill

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join([f'{name}={getattr(self, name)}' for name in self._shown])})"


class AutoAugment(_Policy):
    """Apply one of the pairs of changes that a policy lists.

    Paper: "AutoAugment: Learning Augmentation Strategies from Data", Cubuk et al., 2018.
    """

    _shown = ("policy", "fill")

    def __init__(
        self, policy: AutoAugmentPolicy = AutoAugmentPolicy.IMAGENET,
        interpolation: InterpolationMode = InterpolationMode.NEAREST, fill: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(interpolation, fill)
        if policy not in _POLICIES:
            raise ValueError(f"The provided policy {policy} is not recognized.")
        self.policy = policy
        self.policies = [_parsed(pair.split()) for pair in _POLICIES[policy].split(";")]

    @staticmethod
    def get_params(transform_num: int) -> tuple[int, Any, Any]:
        """Draw which pair, whether each of its changes is made, and their signs."""
        return integer(0, transform_num), mortice.rand((2,)), mortice.randint(0, 2, (2,))

    def forward(self, img: Any) -> Any:
        """Change an image."""
        channels, h, w = F.get_dimensions(img)
        fill = fill_for(img, self.fill, channels)
        which, chances, signs = self.get_params(len(self.policies))
        moves = 150.0 / 331.0 * w, 150.0 / 331.0 * h
        space = _space(f"{_MOVES} {_COLOURS} {_LEVELS} Invert", 0.3, moves, 30.0, 0.9, (8, 4))
        for (name, p, i), drawn, sign in zip(self.policies[which], chances.tolist(), signs.tolist()):
            if drawn <= p:
                magnitude = 0.0 if i is None else _magnitude(name, space[name], i, 10)
                magnitude = -magnitude if name in _SIGNED and sign == 0 else magnitude
                img = _apply(img, name, magnitude, self.interpolation, fill)
        return img


def _parsed(words: list[str]) -> tuple[tuple[str, float, int | None], ...]:
    return tuple(
        (words[i], float(words[i + 1]), None if words[i + 2] == "-" else int(words[i + 2]))
        for i in range(0, len(words), 3)
    )


class RandAugment(_Policy):
    """Apply `num_ops` changes of one magnitude.

    Paper: "RandAugment: Practical automated data augmentation with a reduced search space", Cubuk et al., 2019.
    """

    _shown = ("num_ops", "magnitude", "num_magnitude_bins", "interpolation", "fill")

    def __init__(
        self, num_ops: int = 2, magnitude: int = 9, num_magnitude_bins: int = 31,
        interpolation: InterpolationMode = InterpolationMode.NEAREST, fill: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(interpolation, fill)
        self.num_ops, self.magnitude, self.num_magnitude_bins = num_ops, magnitude, num_magnitude_bins

    def forward(self, img: Any) -> Any:
        """Change an image."""
        channels, h, w = F.get_dimensions(img)
        fill = fill_for(img, self.fill, channels)
        moves = 150.0 / 331.0 * w, 150.0 / 331.0 * h
        space = _space(f"Identity {_MOVES} {_COLOURS} {_LEVELS}", 0.3, moves, 30.0, 0.9, (8, 4))
        for _ in range(self.num_ops):
            drawn = _draw(space, self.num_magnitude_bins, lambda: self.magnitude)
            img = _apply(img, *drawn, self.interpolation, fill)
        return img


class TrivialAugmentWide(_Policy):
    """Apply one change of a random magnitude, from wide ranges.

    Paper: "TrivialAugment: Tuning-free Yet State-of-the-Art Data Augmentation", Mueller and Hutter, 2021.
    """

    _shown = ("num_magnitude_bins", "interpolation", "fill")

    def __init__(
        self,
        num_magnitude_bins: int = 31,
        interpolation: InterpolationMode = InterpolationMode.NEAREST,
        fill: Any = None,
    ) -> None:
        super().__init__(interpolation, fill)
        self.num_magnitude_bins = num_magnitude_bins

    def forward(self, img: Any) -> Any:
        """Change an image."""
        fill, bins = fill_for(img, self.fill, F.get_dimensions(img)[0]), self.num_magnitude_bins
        space = _space(f"Identity {_MOVES} {_COLOURS} {_LEVELS}", 0.99, (32.0, 32.0), 135.0, 0.99, (8, 2))
        return _apply(img, *_draw(space, bins, lambda: integer(0, bins)), self.interpolation, fill)


class AugMix(_Policy):
    """Mix an image with several chains of changes of it.

    Paper: "AugMix: A Simple Data Processing Method to Improve Robustness and Uncertainty", Hendrycks et al., 2019.

    Args:
        severity: the largest magnitude, from 1 to 10.
        mixture_width: the number of chains.
        chain_depth: the number of changes in each, from 1 to 3 at random where it is not positive.
        alpha: of the Dirichlet distributions that give the weights.
        all_ops: whether brightness, colour, contrast and sharpness are among the changes.
        interpolation, fill: as of `functional.affine`.
    """

    _shown = ("severity", "mixture_width", "chain_depth", "alpha", "all_ops", "interpolation", "fill")

    def __init__(
        self, severity: int = 3, mixture_width: int = 3, chain_depth: int = -1, alpha: float = 1.0, all_ops: bool = True,
        interpolation: InterpolationMode = InterpolationMode.BILINEAR, fill: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(interpolation, fill)
        if not 1 <= severity <= 10:
            raise ValueError(f"The severity must be between [1, 10]. Got {severity} instead.")
        self.severity, self.mixture_width, self.chain_depth = severity, mixture_width, chain_depth
        self.alpha, self.all_ops = alpha, all_ops

    def _weights(self, n: int, like: Any) -> Any:
        """Draw the weights of n parts, for each image of a batch (N, C, H, W)."""
        alphas = mortice.full((n,), self.alpha, device=like.device).expand(like.shape[0], n)
        return mortice._sample_dirichlet(alphas)

    def forward(self, orig_img: Any) -> Any:
        """Change an image."""
        img = orig_img if isinstance(orig_img, mortice.Tensor) else F.pil_to_tensor(orig_img)
        channels, h, w = F.get_dimensions(img)
        fill = fill_for(orig_img, self.fill, channels)
        names = f"{_MOVES} {_LEVELS} {_COLOURS if self.all_ops else ''}"
        space = _space(names, 0.3, (w / 3.0, h / 3.0), 30.0, 0.9, (4, 0))
        batch = img.reshape(-1, channels, h, w)
        shares = self._weights(2, batch)
        weights = self._weights(self.mixture_width, batch) * shares[:, 1:]
        mix = shares[:, 0].reshape(-1, 1, 1, 1) * batch
        for i in range(self.mixture_width):
            changed = batch
            for _ in range(self.chain_depth if self.chain_depth > 0 else integer(1, 4)):
                drawn = _draw(space, 10, lambda: integer(0, self.severity))
                changed = _apply(changed, *drawn, self.interpolation, fill)
            mix = mix + weights[:, i].reshape(-1, 1, 1, 1) * changed
        mix = mix.reshape(img.shape).to(img.dtype)
        return mix if img is orig_img else F.to_pil_image(mix)
