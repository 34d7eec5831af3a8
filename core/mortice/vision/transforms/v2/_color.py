"""Transforms that change colours and sharpness."""

from __future__ import annotations

from typing import Any

import mortice
from mortice.vision import transforms as v1
from mortice.vision.transforms._draws import chance, uniform
from mortice.vision.transforms._jitter import _factors
from mortice.vision.transforms.v2 import functional as F
from mortice.vision.transforms.v2._transform import RandomApplyTransform, Transform
from mortice.vision.transforms.v2._utils import query_chw

__all__ = [
    "ColorJitter", "Grayscale", "RGB", "RandomAdjustSharpness", "RandomAutocontrast",
    "RandomChannelPermutation", "RandomEqualize", "RandomGrayscale", "RandomInvert",
    "RandomPhotometricDistort", "RandomPosterize", "RandomSolarize",
]  # fmt: skip


class Grayscale(Transform):
    """Make images black and white, in 1 or 3 channels."""

    _v1_transform_cls = v1.Grayscale

    def __init__(self, num_output_channels: int = 1) -> None:
        super().__init__()
        self.num_output_channels = num_output_channels

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Make an input black and white."""
        return self._call_kernel(F.rgb_to_grayscale, inpt, num_output_channels=self.num_output_channels)


class RandomGrayscale(RandomApplyTransform):
    """Make images black and white with probability `p`, in as many channels as they have."""

    _v1_transform_cls = v1.RandomGrayscale

    def __init__(self, p: float = 0.1) -> None:
        super().__init__(p)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """Count the channels."""
        return {"num_output_channels": query_chw(flat_inputs)[0]}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Make an input black and white."""
        return self._call_kernel(F.rgb_to_grayscale, inpt, **params)


class RGB(Transform):
    """Give images of one channel three."""

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Give an input three channels."""
        return self._call_kernel(F.grayscale_to_rgb, inpt)


_ADJUST = (F.adjust_brightness, F.adjust_contrast, F.adjust_saturation, F.adjust_hue)


class ColorJitter(Transform):
    """Change brightness, contrast, saturation and hue at random, in a random order.

    Each is given as the most that its factor is away from 1 (the hue's from 0), or as the range (least, largest).
    """

    _v1_transform_cls = v1.ColorJitter

    def __init__(self, brightness: Any = None, contrast: Any = None, saturation: Any = None, hue: Any = None) -> None:
        super().__init__()
        self.brightness = None if brightness is None else _factors("brightness", brightness)
        self.contrast = None if contrast is None else _factors("contrast", contrast)
        self.saturation = None if saturation is None else _factors("saturation", saturation)
        self.hue = None if hue is None else _factors("hue", hue, 0, (-0.5, 0.5))

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """Draw the order and the factors."""
        drawn = v1.ColorJitter.get_params(self.brightness, self.contrast, self.saturation, self.hue)
        names = ("fn_idx", "brightness_factor", "contrast_factor", "saturation_factor", "hue_factor")
        return dict(zip(names, drawn))

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Change an input's colours."""
        factors = list(params.values())[1:]
        for i in params["fn_idx"].tolist():
            if factors[i] is not None:
                inpt = self._call_kernel(_ADJUST[i], inpt, factors[i])
        return inpt


class RandomChannelPermutation(Transform):
    """Put the channels in a random order."""

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """Draw the order."""
        return {"permutation": mortice.randperm(query_chw(flat_inputs)[0])}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Change the order of an input's channels."""
        return self._call_kernel(F.permute_channels, inpt, **params)


class RandomPhotometricDistort(Transform):
    """Change brightness, contrast, saturation, hue and the order of the channels, each with probability `p`, as for SSD."""

    def __init__(
        self, brightness: tuple[float, float] = (0.875, 1.125), contrast: tuple[float, float] = (0.5, 1.5),
        saturation: tuple[float, float] = (0.5, 1.5), hue: tuple[float, float] = (-0.05, 0.05), p: float = 0.5,
    ) -> None:  # fmt: skip
        super().__init__()
        self.brightness, self.contrast, self.hue, self.saturation, self.p = brightness, contrast, hue, saturation, p

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """Draw the factors, None for what stays, when the contrast is changed, and the order of the channels."""
        n = query_chw(flat_inputs)[0]
        params: dict[str, Any] = {
            f"{name}_factor": uniform(*getattr(self, name)) if chance() < self.p else None
            for name in ("brightness", "contrast", "saturation", "hue")
        }
        params["contrast_before"] = chance() < 0.5
        params["channel_permutation"] = mortice.randperm(n) if chance() < self.p else None
        return params

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Change an input's colours."""
        steps = [(F.adjust_brightness, params["brightness_factor"]), (F.adjust_saturation, params["saturation_factor"]),
                 (F.adjust_hue, params["hue_factor"])]  # fmt: skip
        steps.insert(1 if params["contrast_before"] else 3, (F.adjust_contrast, params["contrast_factor"]))
        for change, factor in (*steps, (F.permute_channels, params["channel_permutation"])):
            if factor is not None:
                inpt = self._call_kernel(change, inpt, factor)
        return inpt


# ---- changes made with a probability ----


class RandomEqualize(RandomApplyTransform):
    """Spread the values evenly over the range with probability `p`."""

    _v1_transform_cls = v1.RandomEqualize

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Spread an input's values."""
        return self._call_kernel(F.equalize, inpt)


class RandomInvert(RandomApplyTransform):
    """Make negatives with probability `p`."""

    _v1_transform_cls = v1.RandomInvert

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Make a negative of an input."""
        return self._call_kernel(F.invert, inpt)


class RandomPosterize(RandomApplyTransform):
    """Keep that many upper bits of each value with probability `p`."""

    _v1_transform_cls = v1.RandomPosterize

    def __init__(self, bits: int, p: float = 0.5) -> None:
        super().__init__(p)
        self.bits = bits

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Drop the lower bits of an input."""
        return self._call_kernel(F.posterize, inpt, bits=self.bits)


class RandomSolarize(RandomApplyTransform):
    """Invert the values at or above a threshold with probability `p`."""

    _v1_transform_cls = v1.RandomSolarize

    def __init__(self, threshold: float, p: float = 0.5) -> None:
        super().__init__(p)
        self.threshold = threshold

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Invert an input's bright values."""
        return self._call_kernel(F.solarize, inpt, threshold=self.threshold)


class RandomAutocontrast(RandomApplyTransform):
    """Stretch the values to the full range with probability `p`."""

    _v1_transform_cls = v1.RandomAutocontrast

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Stretch an input's values."""
        return self._call_kernel(F.autocontrast, inpt)


class RandomAdjustSharpness(RandomApplyTransform):
    """Change the sharpness with probability `p`."""

    _v1_transform_cls = v1.RandomAdjustSharpness

    def __init__(self, sharpness_factor: float, p: float = 0.5) -> None:
        super().__init__(p)
        self.sharpness_factor = sharpness_factor

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Sharpen or blur an input."""
        return self._call_kernel(F.adjust_sharpness, inpt, sharpness_factor=self.sharpness_factor)
