"""What random transforms share: their draws, all of them from mortice's default generator, and the checks of ranges."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

import mortice
from mortice import nn
from mortice.notice import warn


def chance() -> float:
    """Draw from [0, 1)."""
    return mortice.rand(1).item()  # type: ignore[no-any-return]


def uniform(low: float, high: float) -> float:
    """Draw from [low, high)."""
    return low + (high - low) * chance()


def integer(low: int, high: int) -> int:
    """Draw an integer from low to high - 1."""
    return mortice.randint(low, high, (1,)).item()  # type: ignore[no-any-return]


def box_sides(area: int, scale: Sequence[float], ratio: Sequence[float]) -> tuple[int, int]:
    """Draw the sides of a box: its share of an area, then the quotient of the first side and the second."""
    wanted = area * uniform(scale[0], scale[1])
    quotient = math.exp(uniform(math.log(ratio[0]), math.log(ratio[1])))
    return round(math.sqrt(wanted * quotient)), round(math.sqrt(wanted / quotient))


def crop_box(height: int, width: int, scale: Sequence[float], ratio: Sequence[float]) -> tuple[int, int, int, int]:
    """Draw top, left, height and width of a box within an image; in the middle where ten of them were too large."""
    for _ in range(10):
        w, h = box_sides(height * width, scale, ratio)
        if 0 < w <= width and 0 < h <= height:
            return integer(0, height - h + 1), integer(0, width - w + 1), h, w
    w, h = width, height
    if width / height < min(ratio):
        h = round(w / min(ratio))
    elif width / height > max(ratio):
        w = round(h * max(ratio))
    return (height - h) // 2, (width - w) // 2, h, w


def erased_box(channels: int, height: int, width: int, scale: Any, ratio: Any, value: Any) -> tuple[Any, ...] | None:
    """Draw top, left, height and width of a box to erase, and what to put there: noise when there is no value.

    There is none when ten of them were too large.
    """
    for _ in range(10):
        h, w = box_sides(height * width, scale, ratio)
        if h < height and w < width:
            v = mortice.randn(channels, h, w) if value is None else mortice.tensor(value).reshape(-1, 1, 1)
            return integer(0, height - h + 1), integer(0, width - w + 1), h, w, v
    return None


def check_box(scale: Any, ratio: Any) -> None:
    """Refuse what are no ranges for `box_sides`, and warn of reversed ones."""
    if not isinstance(scale, Sequence):
        raise TypeError("Scale should be a sequence")
    if not isinstance(ratio, Sequence):
        raise TypeError("Ratio should be a sequence")
    if scale[0] > scale[1] or ratio[0] > ratio[1]:
        warn("Scale and ratio should be of kind (min, max)")


def pair(size: Any, error_msg: str = "Please provide only two dimensions (h, w) for size.") -> Any:
    """Return a size as (h, w)."""
    if isinstance(size, numbers.Number):
        return int(size), int(size)  # type: ignore[call-overload]
    if isinstance(size, Sequence) and len(size) == 1:
        return size[0], size[0]
    if len(size) != 2:
        raise ValueError(error_msg)
    return size


def check_sequence(value: Any, name: str, *lengths: int) -> None:
    """Refuse what is no sequence of one of the lengths."""
    text = f"{name} should be a sequence of length {' or '.join(map(str, lengths))}."
    if not isinstance(value, Sequence):
        raise TypeError(text)
    if len(value) not in lengths:
        raise ValueError(text)


def angles(value: Any, name: str, *lengths: int) -> list[float]:
    """Return a range of angles, which a single number gives to both sides of 0."""
    if isinstance(value, numbers.Number):
        if value < 0:  # type: ignore[operator]
            raise ValueError(f"If {name} is a single number, it must be positive.")
        value = [-value, value]  # type: ignore[operator]
    else:
        check_sequence(value, name, *lengths)
    return [float(v) for v in value]


def checked_fill(fill: Any) -> Any:
    """Return a fill, 0 for None."""
    if fill is not None and not isinstance(fill, (Sequence, numbers.Number)):
        raise TypeError("Fill should be either a sequence or a number.")
    return 0 if fill is None else fill


def fill_for(img: Any, fill: Any, channels: int) -> Any:
    """Return a fill as tensors take it, a float for each channel; PIL images take it as it is."""
    if fill is None or not isinstance(img, mortice.Tensor):
        return fill
    return [float(fill)] * channels if isinstance(fill, (int, float)) else [float(v) for v in fill]


class Perhaps(nn.Module):
    """Apply `change` with probability `p`."""

    _shown: tuple[str, ...] = ("p",)

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    def change(self, img: Any) -> Any:
        """Change an image."""
        raise NotImplementedError

    def forward(self, img: Any) -> Any:
        """Change an image, perhaps."""
        return self.change(img) if chance() < self.p else img

    def __repr__(self) -> str:
        return f"{type(self).__name__}({','.join([f'{name}={getattr(self, name)}' for name in self._shown])})"
