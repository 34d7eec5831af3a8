"""What transforms of v2 ask about their inputs and settings, under the names by which programs reach into torchvision."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import Any

from mortice.vision._pillow import is_pil
from mortice.vision.transforms._draws import pair as _setup_size  # noqa: F401  one of those names
from mortice.vision.transforms.v2 import functional as F
from mortice.vision.transforms.v2.functional._kernels import is_pure_tensor
from mortice.vision.tv_tensors import BoundingBoxes, Image, KeyPoints, Mask, Video

__all__ = [
    "check_type", "get_bounding_boxes", "get_keypoints", "has_all", "has_any", "query_chw", "query_size",
]  # fmt: skip

# ---- questions about inputs ----


def check_type(obj: Any, types_or_checks: Sequence[Any]) -> bool:
    """Tell whether an object is of one of the classes or passes one of the tests."""
    return any(isinstance(obj, check) if isinstance(check, type) else check(obj) for check in types_or_checks)


def has_any(flat_inputs: Sequence[Any], *types_or_checks: Any) -> bool:
    """Tell whether one of the inputs is of one of the classes or passes one of the tests."""
    return any(check_type(inpt, types_or_checks) for inpt in flat_inputs)


def has_all(flat_inputs: Sequence[Any], *types_or_checks: Any) -> bool:
    """Tell whether each of the classes and tests is met by one of the inputs."""
    return all(any(check_type(inpt, (check,)) for inpt in flat_inputs) for check in types_or_checks)


def _first(flat_inputs: Sequence[Any], kind: type, name: str) -> Any:
    for inpt in flat_inputs:
        if isinstance(inpt, kind):
            return inpt
    raise ValueError(f"No {name} were found in the sample")


def get_bounding_boxes(flat_inputs: Sequence[Any]) -> Any:
    """Return the boxes among the inputs, of which there should be one tensor."""
    return _first(flat_inputs, BoundingBoxes, "bounding boxes")


def get_keypoints(flat_inputs: Sequence[Any]) -> Any:
    """Return the key points among the inputs, of which there should be one tensor."""
    return _first(flat_inputs, KeyPoints, "keypoints")


IMAGE_LIKE = (is_pure_tensor, Image, is_pil, Video)


def _one_size(flat_inputs: Sequence[Any], measure: Any, kinds: Sequence[Any], what: str, names: str) -> Any:
    sizes = {tuple(measure(inpt)) for inpt in flat_inputs if check_type(inpt, kinds)}
    if not sizes:
        raise TypeError(f"No {names} was found in the sample")
    if len(sizes) > 1:
        raise ValueError(f"Found multiple {what} dimensions in the sample: {', '.join(map(str, sorted(sizes)))}")
    return sizes.pop()


def query_chw(flat_inputs: Sequence[Any]) -> tuple[int, int, int]:
    """Return channels, height and width of the images and videos among the inputs, which must agree."""
    return _one_size(flat_inputs, F.get_dimensions, IMAGE_LIKE, "CxHxW", "image or video")  # type: ignore[no-any-return]


def query_size(flat_inputs: Sequence[Any]) -> tuple[int, int]:
    """Return height and width of the inputs that have them, which must agree."""
    kinds = (*IMAGE_LIKE, Mask, BoundingBoxes, KeyPoints)
    names = "image, video, mask, bounding box or keypoint"
    return _one_size(flat_inputs, F.get_size, kinds, "HxW", names)  # type: ignore[no-any-return]


# ---- settings ----


def _setup_fill_arg(fill: Any) -> dict[Any, Any]:
    """Return what is filled in for each class of inputs; under "others" stands what is for all the rest."""
    if isinstance(fill, dict):
        return {kind: _setup_fill_arg(value)["others"] for kind, value in fill.items()}
    if fill is not None and not isinstance(fill, (numbers.Number, tuple, list)):
        raise TypeError("Got inappropriate fill arg, only Numbers, tuples, lists and dicts are allowed.")
    return {"others": _convert_fill_arg(fill)}


def _convert_fill_arg(fill: Any) -> Any:
    """Return a fill as functions take it: a number, None, or a list of floats."""
    return [float(v) for v in fill] if isinstance(fill, (tuple, list)) else fill


def _get_fill(fill_dict: dict[Any, Any], inpt_type: Any) -> Any:
    """Return what is filled in for a class of inputs."""
    return fill_dict.get(inpt_type, fill_dict.get("others"))


def _setup_number_or_seq(value: Any, name: str) -> list[float]:
    """Return two numbers, of one or two."""
    if not isinstance(value, (int, float, Sequence)):
        raise TypeError(f"{name} should be a number or a sequence of numbers. Got {type(value)}")
    values = list(value) if isinstance(value, Sequence) else [value]
    if len(values) not in (1, 2):
        raise ValueError(f"If {name} is a sequence its length should be 1 or 2. Got {len(values)}")
    for v in values:
        if not isinstance(v, (int, float)):
            raise ValueError(f"{name} should be a sequence of numbers. Got {type(v)}")
    return [float(values[0]), float(values[-1])]


# ---- labels ----


def _find_labels_default_heuristic(inputs: Any) -> Any:
    """Return the labels of a sample: its second item, or what a dict, that or the sample itself, has under a name like it."""
    inputs = inputs[1] if isinstance(inputs, (tuple, list)) else inputs
    if is_pure_tensor(inputs):
        return inputs
    if not isinstance(inputs, Mapping):
        raise ValueError(
            "When using the default labels_getter, the input passed to forward must be a dictionary or a two-tuple whose "
            f"second item is a dictionary or a tensor, but got {inputs} instead."
        )
    exact = [key for key in inputs if key.lower() == "labels"]
    for key in exact or [key for key in inputs if "label" in key.lower()]:
        return inputs[key]
    raise ValueError(
        "Could not infer where the labels are in the sample. Try passing a callable as the labels_getter parameter? If there "
        "are no labels in the sample by design, pass labels_getter=None."
    )


def _parse_labels_getter(labels_getter: Any) -> Any:
    """Return the function that finds labels in a sample."""
    if labels_getter == "default":
        return _find_labels_default_heuristic
    if labels_getter is None:
        return _no_labels
    if not callable(labels_getter):
        raise ValueError(f"labels_getter should either be 'default', a callable, or None, but got {labels_getter}.")
    return labels_getter


def _no_labels(inputs: Any) -> None:
    """Find no labels."""
