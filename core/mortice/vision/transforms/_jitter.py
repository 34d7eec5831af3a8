"""Transforms that change colours and sharpness."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mortice
from mortice import nn
from mortice.vision.transforms import functional as F
from mortice.vision.transforms._draws import Perhaps, pair, uniform


class ColorJitter(nn.Module):
    """Change brightness, contrast, saturation and hue at random, in a random order.

    Each is given as the most that its factor is away from 1 (the hue's from 0), or as the range (least, largest).
    """

    def __init__(self, brightness: Any = 0, contrast: Any = 0, saturation: Any = 0, hue: Any = 0) -> None:
        super().__init__()
        self.brightness = _factors("brightness", brightness)
        self.contrast = _factors("contrast", contrast)
        self.saturation = _factors("saturation", saturation)
        self.hue = _factors("hue", hue, 0, (-0.5, 0.5))

    @staticmethod
    def get_params(brightness: Any, contrast: Any, saturation: Any, hue: Any) -> tuple[Any, ...]:
        """Draw the order of the four changes, as a tensor, and their factors, None where there is no range."""
        order = mortice.randperm(4)
        return order, *[None if r is None else uniform(r[0], r[1]) for r in (brightness, contrast, saturation, hue)]

    def forward(self, img: Any) -> Any:
        """Change an image's colours."""
        order, *factors = self.get_params(self.brightness, self.contrast, self.saturation, self.hue)
        changes = (F.adjust_brightness, F.adjust_contrast, F.adjust_saturation, F.adjust_hue)
        for i in order.tolist():
            if factors[i] is not None:
                img = changes[i](img, factors[i])
        return img

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(brightness={self.brightness}, contrast={self.contrast}, "
            f"saturation={self.saturation}, hue={self.hue})"
        )


def _factors(name: str, value: Any, center: int = 1, bound: tuple[float, float] = (0, float("inf"))) -> Any:
    """Return a range of factors, None for the one that changes nothing."""
    if isinstance(value, (int, float)):
        if value < 0:
            raise ValueError(f"If {name} is a single number, it must be non negative.")
        low, high = center - float(value), center + float(value)
        low = max(low, 0.0) if center else low
    elif isinstance(value, (tuple, list)) and len(value) == 2:
        low, high = float(value[0]), float(value[1])
    else:
        raise TypeError(f"{name} should be a single number or a list/tuple with length 2.")
    if not bound[0] <= low <= high <= bound[1]:
        raise ValueError(f"{name} values should be between {bound}, but got {[low, high]}.")
    return None if low == high == center else (low, high)


class Grayscale(nn.Module):
    """Make images black and white, in 1 or 3 channels."""

    def __init__(self, num_output_channels: int = 1) -> None:
        super().__init__()
        self.num_output_channels = num_output_channels

    def forward(self, img: Any) -> Any:
        """Make an image black and white."""
        return F.rgb_to_grayscale(img, num_output_channels=self.num_output_channels)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(num_output_channels={self.num_output_channels})"


class GaussianBlur(nn.Module):
    """Blur with a Gaussian whose sigma is drawn from a range."""

    def __init__(self, kernel_size: Any, sigma: Any = (0.1, 2.0)) -> None:
        super().__init__()
        self.kernel_size = pair(kernel_size, "Kernel size should be a tuple/list of two integers")
        if any([n <= 0 or n % 2 == 0 for n in self.kernel_size]):
            raise ValueError("Kernel size value should be an odd and positive number.")
        if isinstance(sigma, (int, float)):
            if sigma <= 0:
                raise ValueError("If sigma is a single number, it must be positive.")
            sigma = (sigma, sigma)
        elif not isinstance(sigma, Sequence) or len(sigma) != 2:
            raise ValueError("sigma should be a single number or a list/tuple with length 2.")
        elif not 0.0 < sigma[0] <= sigma[1]:
            raise ValueError("sigma values should be positive and of the form (min, max).")
        self.sigma = sigma

    @staticmethod
    def get_params(sigma_min: float, sigma_max: float) -> float:
        """Draw a sigma."""
        return uniform(sigma_min, sigma_max)

    def forward(self, img: Any) -> Any:
        """Blur an image."""
        return F.gaussian_blur(img, self.kernel_size, [self.get_params(*self.sigma)] * 2)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(kernel_size={self.kernel_size}, sigma={self.sigma})"


# ---- changes made with a probability ----


class RandomGrayscale(Perhaps):
    """Make images black and white with probability `p`, in as many channels as they have."""

    def __init__(self, p: float = 0.1) -> None:
        super().__init__(p)

    def change(self, img: Any) -> Any:
        """Make an image black and white."""
        return F.rgb_to_grayscale(img, num_output_channels=F.get_dimensions(img)[0])


class RandomInvert(Perhaps):
    """Make negatives with probability `p`."""

    def change(self, img: Any) -> Any:
        """Make a negative of an image."""
        return F.invert(img)


class RandomPosterize(Perhaps):
    """Keep that many upper bits of each value with probability `p`."""

    _shown = ("bits", "p")

    def __init__(self, bits: int, p: float = 0.5) -> None:
        super().__init__(p)
        self.bits = bits

    def change(self, img: Any) -> Any:
        """Drop the lower bits of an image."""
        return F.posterize(img, self.bits)


class RandomSolarize(Perhaps):
    """Invert the values at or above a threshold with probability `p`."""

    _shown = ("threshold", "p")

    def __init__(self, threshold: float, p: float = 0.5) -> None:
        super().__init__(p)
        self.threshold = threshold

    def change(self, img: Any) -> Any:
        """Invert an image's bright values."""
        return F.solarize(img, self.threshold)


class RandomAdjustSharpness(Perhaps):
    """Change the sharpness with probability `p`."""

    _shown = ("sharpness_factor", "p")

    def __init__(self, sharpness_factor: float, p: float = 0.5) -> None:
        super().__init__(p)
        self.sharpness_factor = sharpness_factor

    def change(self, img: Any) -> Any:
        """Sharpen or blur an image."""
        return F.adjust_sharpness(img, self.sharpness_factor)


class RandomAutocontrast(Perhaps):
    """Stretch the values to the full range with probability `p`."""

    def change(self, img: Any) -> Any:
        """Stretch an image's values."""
        return F.autocontrast(img)


class RandomEqualize(Perhaps):
    """Spread the values evenly over the range with probability `p`."""

    def change(self, img: Any) -> Any:
        """Spread an image's values."""
        return F.equalize(img)
