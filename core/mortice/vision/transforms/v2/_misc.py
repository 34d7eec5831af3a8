"""Transforms from one kind or type to another, of values, boxes and points."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import mortice
from mortice import Tensor
from mortice.notice import warn
from mortice.utils import _pytree
from mortice.vision import transforms as v1
from mortice.vision import tv_tensors
from mortice.vision._pillow import is_pil
from mortice.vision.transforms import functional as F1
from mortice.vision.transforms._draws import pair
from mortice.vision.transforms.v2 import functional as F
from mortice.vision.transforms.v2._transform import Transform
from mortice.vision.transforms.v2._utils import (
    _parse_labels_getter,
    _setup_number_or_seq,
    get_bounding_boxes,
    get_keypoints,
    has_any,
)
from mortice.vision.transforms.v2.functional._boxes import good_boxes
from mortice.vision.transforms.v2.functional._kernels import is_pure_tensor
from mortice.vision.transforms.v2.functional._points import good_points
from mortice.vision.tv_tensors import BoundingBoxes, Image, KeyPoints, Mask, TVTensor, Video

__all__ = [
    "ClampBoundingBoxes", "ClampKeyPoints", "ConvertBoundingBoxFormat", "ConvertImageDtype", "GaussianBlur",
    "GaussianNoise", "Identity", "Lambda", "LinearTransformation", "Normalize", "PILToTensor",
    "SanitizeBoundingBoxes", "SanitizeKeyPoints", "SetClampingMode", "ToDtype", "ToImage", "ToPILImage",
    "ToPureTensor", "ToTensor", "UniformTemporalSubsample",
]  # fmt: skip


def _is_array(value: Any) -> bool:
    """Tell whether an object is a NumPy array, without importing NumPy."""
    module = sys.modules.get("numpy")
    return module is not None and isinstance(value, module.ndarray)


# ---- from one kind to another ----


class ToImage(Transform):
    """Make an Image of a tensor, a NumPy array or a PIL image; its values stay."""

    _transformed_types = (is_pure_tensor, is_pil, _is_array)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Make an Image of an input."""
        return F.to_image(inpt)


class PILToTensor(Transform):
    """Make a tensor (C, H, W) of a PIL image, in the image's own type."""

    _transformed_types = (is_pil,)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Make a tensor of an input."""
        return F.pil_to_tensor(inpt)


class ToPILImage(Transform):
    """Make a PIL image of a tensor (C, H, W) or an array (H, W, C); floats count from 0 to 1."""

    _transformed_types = (is_pure_tensor, Image, _is_array)

    def __init__(self, mode: str | None = None) -> None:
        super().__init__()
        self.mode = mode

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Make a PIL image of an input."""
        return F.to_pil_image(inpt, mode=self.mode)


class ToPureTensor(Transform):
    """Make plain tensors of all that say what they are."""

    _transformed_types = (TVTensor,)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Make a plain tensor of an input."""
        return inpt.as_subclass(Tensor)


class ToTensor(Transform):
    """Make float tensors in [0, 1], as v1 does; `ToImage` and `ToDtype` do it here."""

    _transformed_types = (is_pil, _is_array)

    def __init__(self) -> None:
        warn(
            "The transform `ToTensor()` is deprecated and will be removed in a future release. Instead, please use "
            "`v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])`. Output is equivalent up to float precision."
        )
        super().__init__()

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Make a tensor of an input."""
        return F1.to_tensor(inpt)


def _scales(inpt: Any) -> bool:
    return is_pure_tensor(inpt) or isinstance(inpt, (Image, Video))


class ToDtype(Transform):
    """Convert images and videos to a dtype, or each class of inputs to the one that a dict gives, "others" being the rest.

    `scale` keeps white white, in images and videos. None in the dict leaves a class as it is.
    """

    _transformed_types = (Tensor,)

    def __init__(self, dtype: Any, scale: bool = False) -> None:
        super().__init__()
        if not isinstance(dtype, (dict, mortice.dtype)):
            raise ValueError(f"dtype must be a dict or a torch.dtype, got {type(dtype)} instead")
        if isinstance(dtype, dict) and Tensor in dtype and (Image in dtype or Video in dtype):
            warn(
                "Got `dtype` values for `torch.Tensor` and either `tv_tensors.Image` or `tv_tensors.Video`. Note that a plain "
                "`torch.Tensor` will *not* be transformed by this (or any other transformation) in case a `tv_tensors.Image` or "
                "`tv_tensors.Video` is present in the input."
            )
        self.dtype, self.scale = dtype, scale

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Convert an input."""
        dtype = self.dtype
        if isinstance(dtype, dict):
            if type(inpt) not in dtype and "others" not in dtype:
                raise ValueError(
                    f"No dtype was specified for type {type(inpt)}. If you only need to convert the dtype of images or videos, "
                    "you can just pass e.g. dtype=torch.float32. If you're passing a dict as dtype, you can use \"others\" as a "
                    'catch-all key e.g. dtype={tv_tensors.Mask: torch.int64, "others": None} to pass-through the rest of the '
                    "inputs."
                )
            dtype = dtype.get(type(inpt), dtype.get("others"))
        elif not _scales(inpt):
            return inpt
        if dtype is None:
            if self.scale and _scales(inpt):
                warn("scale was set to True but no dtype was specified for images or videos: no scaling will be done.")
            return inpt
        return self._call_kernel(F.to_dtype, inpt, dtype=dtype, scale=self.scale)


class ConvertImageDtype(Transform):
    """Convert images to another dtype, white staying white, as `ToDtype` with `scale` does."""

    _v1_transform_cls = v1.ConvertImageDtype

    def __init__(self, dtype: Any = mortice.float32) -> None:
        super().__init__()
        self.dtype = dtype

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Convert an input."""
        return self._call_kernel(F.to_dtype, inpt, dtype=self.dtype, scale=True)


# ---- values ----


class Identity(Transform):
    """Leave everything as it is."""

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Return an input."""
        return inpt


class Lambda(Transform):
    """Apply a function of one's own to the inputs of some classes, or to all."""

    _transformed_types = (object,)

    def __init__(self, lambd: Any, *types: type) -> None:
        super().__init__()
        self.lambd = lambd
        self.types = types or self._transformed_types

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Apply the function to an input."""
        return self.lambd(inpt) if isinstance(inpt, self.types) else inpt

    def extra_repr(self) -> str:
        """Name the function and the classes."""
        name = getattr(self.lambd, "__name__", None)
        return ", ".join([*([name] if name else []), f"types={[kind.__name__ for kind in self.types]}"])


class _OfTensors(Transform):
    def check_inputs(self, flat_inputs: list[Any]) -> None:
        """Refuse samples with PIL images."""
        if has_any(flat_inputs, is_pil):
            raise TypeError(f"{type(self).__name__}() does not support PIL images.")


class LinearTransformation(_OfTensors):
    """Subtract a mean vector from flattened tensor images and multiply them by a matrix, as for whitening."""

    _v1_transform_cls = v1.LinearTransformation
    _transformed_types = (is_pure_tensor, Image, Video)

    def __init__(self, transformation_matrix: Any, mean_vector: Any) -> None:
        super().__init__()
        self._of_tensors = v1.LinearTransformation(transformation_matrix, mean_vector)
        self.transformation_matrix, self.mean_vector = transformation_matrix, mean_vector

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Transform an input."""
        out = self._of_tensors(inpt)
        return out if is_pure_tensor(inpt) else tv_tensors.wrap(out, like=inpt)


class Normalize(_OfTensors):
    """Subtract the mean and divide by the standard deviation, one of each for every channel of images and videos."""

    _v1_transform_cls = v1.Normalize

    def __init__(self, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> None:
        super().__init__()
        self.mean, self.std, self.inplace = list(mean), list(std), inplace

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Normalize an input."""
        return self._call_kernel(F.normalize, inpt, mean=self.mean, std=self.std, inplace=self.inplace)


class GaussianBlur(Transform):
    """Blur with a Gaussian whose sigma is drawn from a range."""

    _v1_transform_cls = v1.GaussianBlur

    def __init__(self, kernel_size: Any, sigma: Any = (0.1, 2.0)) -> None:
        super().__init__()
        self.kernel_size = pair(kernel_size, "Kernel size should be a tuple/list of two integers")
        if any([n <= 0 or n % 2 == 0 for n in self.kernel_size]):
            raise ValueError("Kernel size value should be an odd and positive number.")
        self.sigma = _setup_number_or_seq(sigma, "sigma")
        if not 0.0 < self.sigma[0] <= self.sigma[1]:
            raise ValueError(f"sigma values should be positive and of the form (min, max). Got {self.sigma}")

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """Draw sigma."""
        return {"sigma": [v1.GaussianBlur.get_params(*self.sigma)] * 2}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Blur an input."""
        return self._call_kernel(F.gaussian_blur, inpt, self.kernel_size, **params)


class GaussianNoise(Transform):
    """Add noise to float or uint8 images and videos, with a mean and a deviation as of values from 0 to 1."""

    def __init__(self, mean: float = 0.0, sigma: float = 0.1, clip: Any = True) -> None:
        super().__init__()
        self.mean, self.sigma, self.clip = mean, sigma, clip

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Add noise to an input."""
        return self._call_kernel(F.gaussian_noise, inpt, mean=self.mean, sigma=self.sigma, clip=self.clip)


class UniformTemporalSubsample(Transform):
    """Take that many frames of videos, at equal steps from the first to the last."""

    _transformed_types = (Tensor,)

    def __init__(self, num_samples: int) -> None:
        super().__init__()
        self.num_samples = num_samples

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Take frames of an input."""
        return self._call_kernel(F.uniform_temporal_subsample, inpt, self.num_samples)


# ---- boxes and points ----


class ConvertBoundingBoxFormat(Transform):
    """Write boxes in another format."""

    _transformed_types = (BoundingBoxes,)

    def __init__(self, format: Any) -> None:
        super().__init__()
        self.format = format

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Convert boxes."""
        return F.convert_bounding_box_format(inpt, new_format=self.format)


class ClampBoundingBoxes(Transform):
    """Move what lies outside of the canvas to its edge, as the mode says: that of the boxes for "auto"."""

    _transformed_types = (BoundingBoxes,)

    def __init__(self, clamping_mode: str | None = "auto") -> None:
        super().__init__()
        self.clamping_mode = clamping_mode

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Clamp boxes."""
        return F.clamp_bounding_boxes(inpt, clamping_mode=self.clamping_mode)


class ClampKeyPoints(Transform):
    """Move points that lie outside of the canvas to its outermost pixels."""

    _transformed_types = (KeyPoints,)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Clamp points."""
        return F.clamp_keypoints(inpt)


class SetClampingMode(Transform):
    """Set what transforms do with boxes that come to lie outside of the canvas: "soft", "hard" or None."""

    _transformed_types = (BoundingBoxes,)

    def __init__(self, clamping_mode: str | None) -> None:
        super().__init__()
        if clamping_mode not in (None, "soft", "hard"):
            raise ValueError(f"clamping_mode must be soft, hard or None, got {clamping_mode}")
        self.clamping_mode = clamping_mode

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Set the mode of boxes."""
        return tv_tensors.wrap(inpt.clone(), like=inpt, clamping_mode=self.clamping_mode)


class _Sanitize(Transform):
    """Removes what is no good, and its labels."""

    _kinds: tuple[type, ...]

    def __init__(self, labels_getter: Any) -> None:
        super().__init__()
        self.labels_getter = labels_getter
        self._labels_getter = _parse_labels_getter(labels_getter)

    def _valid(self, flat_inputs: list[Any]) -> tuple[Any, Any]:
        raise NotImplementedError

    def forward(self, *inputs: Any) -> Any:
        """Remove what is no good from a sample."""
        sample = inputs if len(inputs) > 1 else inputs[0]
        labels = self._labels_getter(sample)
        labels = labels if isinstance(labels, (tuple, list)) else () if labels is None else (labels,)
        for label in labels:
            if not isinstance(label, Tensor):
                raise ValueError(
                    f"The labels in the input to forward() must be a tensor or None, got {type(label)} instead."
                )
        flat_inputs, spec = _pytree.tree_flatten(sample)
        found, valid = self._valid(flat_inputs)
        for label in labels:
            if label.shape[0] != found.shape[0]:
                raise ValueError(
                    f"{type(self).__name__}: expected as many labels as {type(found).__name__}; got {label.shape} and {found.shape}."
                )
        params = {"valid": valid, "labels": labels}
        return _pytree.tree_unflatten([self.transform(inpt, params) for inpt in flat_inputs], spec)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Leave the good ones of an input."""
        if any(inpt is label for label in params["labels"]):
            return inpt[params["valid"]]
        if not isinstance(inpt, self._kinds):
            return inpt
        if isinstance(inpt, Mask) and (not inpt.ndim or inpt.shape[0] != params["valid"].shape[0]):
            return inpt  # a mask of the whole image
        return tv_tensors.wrap(inpt[params["valid"]], like=inpt)


class SanitizeBoundingBoxes(_Sanitize):
    """Remove boxes that are too small or not within the canvas, with their labels and masks.

    Args:
        min_size: the least width and height.
        min_area: the least area.
        labels_getter: a function that finds the labels in a sample, a tensor or several; "default" looks for a name like
            it; None leaves all labels.
    """

    _kinds = (BoundingBoxes, Mask)

    def __init__(self, min_size: float = 1.0, min_area: float = 1.0, labels_getter: Any = "default") -> None:
        for name, value in (("min_size", min_size), ("min_area", min_area)):
            if value < 1:
                raise ValueError(f"{name} must be >= 1, got {value}.")
        super().__init__(labels_getter)
        self.min_size, self.min_area = min_size, min_area

    def _valid(self, flat_inputs: list[Any]) -> tuple[Any, Any]:
        boxes = get_bounding_boxes(flat_inputs)
        return boxes, good_boxes(boxes, boxes.format, boxes.canvas_size, self.min_size, self.min_area)

    def extra_repr(self) -> str:
        """Name the settings in the order of the parameters."""
        labels = f", labels_getter={self.labels_getter}" if isinstance(self.labels_getter, str) else ""
        return f"min_size={self.min_size}, min_area={self.min_area}{labels}"


class SanitizeKeyPoints(_Sanitize):
    """Remove points, or groups of them, that are not wholly within the canvas, with the labels that a function finds."""

    _kinds = (KeyPoints,)

    def __init__(self, labels_getter: Any = None) -> None:
        super().__init__(labels_getter)

    def _valid(self, flat_inputs: list[Any]) -> tuple[Any, Any]:
        points = get_keypoints(flat_inputs)
        return points, good_points(points, points.canvas_size)
