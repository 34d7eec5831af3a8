"""Transforms from one kind of image to another, and of tensors' values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mortice
from mortice import nn
from mortice.vision.transforms import functional as F
from mortice.vision.transforms._draws import chance, check_box, erased_box


class ToTensor:
    """Make a float tensor (C, H, W) in [0, 1] of a PIL image or of a uint8 array (H, W, C) or (H, W).

    Values of other types than bytes are kept as they are.
    """

    def __call__(self, pic: Any) -> Any:
        return F.to_tensor(pic)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class PILToTensor:
    """Make a tensor (C, H, W) of a PIL image, in the image's own type."""

    def __call__(self, pic: Any) -> Any:
        return F.pil_to_tensor(pic)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class ToPILImage:
    """Make a PIL image of a tensor (C, H, W) or an array (H, W, C); floats count from 0 to 1."""

    def __init__(self, mode: str | None = None) -> None:
        self.mode = mode

    def __call__(self, pic: Any) -> Any:
        return F.to_pil_image(pic, self.mode)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'' if self.mode is None else f'mode={self.mode}'})"


class ConvertImageDtype(nn.Module):
    """Convert a tensor image to another dtype, white staying white."""

    def __init__(self, dtype: Any) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, image: Any) -> Any:
        """Convert a tensor image."""
        return F.convert_image_dtype(image, self.dtype)


class Normalize(nn.Module):
    """Subtract the mean and divide by the standard deviation, one of each for every channel of a tensor image."""

    def __init__(self, mean: Any, std: Any, inplace: bool = False) -> None:
        super().__init__()
        self.mean = mean
        self.std = std
        self.inplace = inplace

    def forward(self, tensor: Any) -> Any:
        """Normalize a tensor image."""
        return F.normalize(tensor, self.mean, self.std, self.inplace)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(mean={self.mean}, std={self.std})"


class LinearTransformation(nn.Module):
    """Subtract a mean vector from flattened tensor images and multiply them by a matrix, as for whitening."""

    def __init__(self, transformation_matrix: Any, mean_vector: Any) -> None:
        super().__init__()
        shape, where = tuple(transformation_matrix.shape), "transformation_matrix"
        if shape[0] != shape[1]:
            raise ValueError(f"{where} should be square. Got {shape} rectangular matrix.")
        if mean_vector.shape[0] != shape[0]:
            raise ValueError(
                f"mean_vector should have the same length {mean_vector.shape[0]} as any one of the dimensions of the "
                f"{where} [{shape}]"
            )
        for what in ("device", "dtype"):
            a, b = getattr(transformation_matrix, what), getattr(mean_vector, what)
            if a != b:
                text = "be on the same device" if what == "device" else "have the same dtype"
                raise ValueError(f"Input tensors should {text}. Got {a} and {b}")
        self.transformation_matrix = transformation_matrix
        self.mean_vector = mean_vector

    def forward(self, tensor: Any) -> Any:
        """Transform a tensor image."""
        shape = tensor.shape
        n = shape[-3] * shape[-2] * shape[-1]
        if n != self.transformation_matrix.shape[0]:
            raise ValueError(
                "Input tensor and transformation matrix have incompatible shape."
                f"[{shape[-3]} x {shape[-2]} x {shape[-1]}] != {self.transformation_matrix.shape[0]}"
            )
        if tensor.device.type != self.mean_vector.device.type:
            raise ValueError(
                "Input tensor should be on the same device as transformation matrix and mean vector. "
                f"Got {tensor.device} vs {self.mean_vector.device}"
            )
        flat = tensor.reshape(-1, n) - self.mean_vector
        return mortice.mm(flat, self.transformation_matrix.to(flat.dtype)).reshape(shape)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(transformation_matrix={self.transformation_matrix.tolist()}, "
            f"mean_vector={self.mean_vector.tolist()})"
        )


class RandomErasing(nn.Module):
    """Put a value, or noise, in place of a random box of a tensor image, with probability `p`.

    Args:
        p: the probability.
        scale: the box's least and largest share of the image.
        ratio: the least and largest quotient of its sides.
        value: one number, one for each channel, or "random".
        inplace: whether the image itself is changed.
    """

    def __init__(
        self, p: float = 0.5, scale: Sequence[float] = (0.02, 0.33), ratio: Sequence[float] = (0.3, 3.3), value: Any = 0,
        inplace: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        if not isinstance(value, (int, float, str, tuple, list)):
            raise TypeError("Argument value should be either a number or str or a sequence")
        if isinstance(value, str) and value != "random":
            raise ValueError("If value is str, it should be 'random'")
        check_box(scale, ratio)
        if scale[0] < 0 or scale[1] > 1:
            raise ValueError("Scale should be between 0 and 1")
        if p < 0 or p > 1:
            raise ValueError("Random erasing probability should be between 0 and 1")
        self.p, self.scale, self.ratio, self.value, self.inplace = p, scale, ratio, value, inplace

    @staticmethod
    def get_params(img: Any, scale: Sequence[float], ratio: Sequence[float], value: Any = None) -> tuple[Any, ...]:
        """Draw top, left, height and width of a box, and what to put there: noise when there is no value."""
        return erased_box(*img.shape[-3:], scale, ratio, value) or (0, 0, *img.shape[-2:], img)

    def forward(self, img: Any) -> Any:
        """Erase a box of a tensor image, perhaps."""
        if chance() >= self.p:
            return img
        value: Any = self.value
        if isinstance(value, str):
            value = None
        else:
            value = [float(v) for v in (value if isinstance(value, (list, tuple)) else [value])]
            if len(value) not in (1, img.shape[-3]):
                raise ValueError(
                    "If value is a sequence, it should have either a single value or "
                    f"{img.shape[-3]} (number of input channels)"
                )
        return F.erase(img, *self.get_params(img, self.scale, self.ratio, value), inplace=self.inplace)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(p={self.p}, scale={self.scale}, ratio={self.ratio}, value={self.value}, "
            f"inplace={self.inplace})"
        )
