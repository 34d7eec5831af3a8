"""What is done to key points, and how places move with an image, which boxes need too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mortice
from mortice import Tensor
from mortice.vision import tv_tensors
from mortice.vision.transforms import _tensor, _warp
from mortice.vision.transforms import functional as F
from mortice.vision.transforms.v2.functional import _images
from mortice.vision.transforms.v2.functional._kernels import is_pure_tensor, kernel, plain_input
from mortice.vision.tv_tensors import KeyPoints

Size = tuple[int, int]

# ---- how places move ----


def padded(padding: Any, canvas_size: Size) -> tuple[int, int, Size]:
    """Return the padding of the left and the top, and the size of the padded canvas."""
    left, right, top, bottom = _tensor.sides(padding)
    return left, top, (canvas_size[0] + top + bottom, canvas_size[1] + left + right)


def central(canvas_size: Size, output_size: Any) -> tuple[int, int, int, int]:
    """Return top, left, height and width of the box that `center_crop` cuts out."""
    height, width = F._pair(output_size)
    return round((canvas_size[0] - height) / 2), round((canvas_size[1] - width) / 2), height, width


def ratios(t: Any, canvas_size: Size, size: Any, max_size: int | None) -> tuple[Any, Size]:
    """Return by what x and y are multiplied when a canvas is resized, None when it stays, and its new size."""
    height, width = _images.resized_to(canvas_size, size, max_size)
    if (height, width) == tuple(canvas_size):
        return None, canvas_size
    return mortice.tensor([width / canvas_size[1], height / canvas_size[0]], device=t.device), (height, width)


def _projected(points: Any, rows: Sequence[Sequence[float]]) -> Any:
    """Return a * x + b * y + c for each row."""
    matrix = mortice.tensor(rows, dtype=points.dtype, device=points.device)
    return mortice.cat([points, points.new_ones(points.shape[0], 1)], -1) @ matrix.T


def affine_move(
    canvas_size: Size, angle: float, translate: Any, scale: float, shear: Any, center: Any, expand: bool = False
) -> tuple[Callable[[Any], Any], Size]:
    """Return where `affine` moves points (N, 2), and the size of the canvas, which grows where it expands."""
    shear = F.check_affine(angle, translate, scale, shear, center)
    height, width = canvas_size
    center = [width * 0.5, height * 0.5] if center is None else [float(c) for c in center]
    n = F.affine_matrix(center, angle, translate, scale, shear)
    rows = [n[:3], n[3:]]
    if not expand:
        return lambda points: _projected(points, rows), canvas_size
    new_width, new_height = _warp._bounds(F._inverse_affine_matrix(center, angle, translate, scale, shear), width, height)

    def move(points: Any) -> Any:
        ends = points.new_tensor([[0, 0], [0, height], [width, height], [width, 0]])
        return _projected(points, rows) - _projected(ends, rows).amin(0, keepdim=True)

    return move, (new_height, new_width)


def perspective_move(coefficients: Sequence[float]) -> Callable[[Any], Any]:
    """Return where `perspective` moves points (N, 2): the other way than the 8 numbers do."""
    a, b, c, d, e, f, g, h = coefficients
    whole = a * e - b * d
    if whole == 0:
        raise RuntimeError(f"perspective: expected coefficients that can be inverted to move points; got {list(coefficients)}.")
    rows = [[e - f * h, c * h - b, b * f - c * e], [f * g - d, a - c * g, c * d - a * f], [d * h - e * g, b * g - a * h, whole]]
    rows = [[v / whole for v in row] for row in rows]

    def move(points: Any) -> Any:
        moved = _projected(points if points.is_floating_point() else points.float(), rows)
        return moved[:, :2] / moved[:, 2:]

    return move


def elastic_move(canvas_size: Size, displacement: Any) -> Callable[[Any], Any]:
    """Return where `elastic` moves points (N, 2): as it moves the pixels that they lie in."""
    if not isinstance(displacement, Tensor):
        raise TypeError("Argument displacement should be a Tensor")
    height, width = canvas_size
    if tuple(displacement.shape) != (1, height, width, 2):
        raise ValueError(
            f"Argument displacement shape should be {(1, height, width, 2)}, but given {tuple(displacement.shape)}"
        )

    def move(points: Any) -> Any:
        dtype = points.dtype if points.is_floating_point() else mortice.float32
        x, y = points.to(mortice.int64).unbind(-1)
        x, y = x.clamp(0, width - 1), y.clamp(0, height - 1)
        size = mortice.tensor([width, height], dtype=dtype, device=points.device)
        own = (mortice.stack([x, y], -1).to(dtype) * 2 + 1 - size) / size
        return (own - displacement[0, y, x].to(own) + 1) * (0.5 * size) - 0.5

    return move


# ---- key points ----


@kernel(_images.get_size, KeyPoints, wraps=False)
def get_size_keypoints(keypoints: Any) -> Any:
    """Return height and width of the canvas."""
    return list(keypoints.canvas_size)


def _mirrored(points: Any, length: int, axis: int) -> Any:
    out = points.clone()
    out[..., axis] = length - 1 - points[..., axis]
    return out


@kernel(_images.horizontal_flip, KeyPoints)
def horizontal_flip_keypoints(keypoints: Any, canvas_size: Size) -> Any:
    """Mirror left and right."""
    return _mirrored(keypoints, canvas_size[1], 0)


@kernel(_images.vertical_flip, KeyPoints)
def vertical_flip_keypoints(keypoints: Any, canvas_size: Size) -> Any:
    """Mirror top and bottom."""
    return _mirrored(keypoints, canvas_size[0], 1)


def _shifted(points: Any, x: int, y: int) -> Any:
    return points + mortice.tensor([x, y], dtype=points.dtype, device=points.device)


@kernel(_images.pad, KeyPoints)
def pad_keypoints(keypoints: Any, canvas_size: Size, padding: Any, padding_mode: str = "constant") -> tuple[Any, Size]:
    """Move points with the image that is padded."""
    if padding_mode != "constant":
        raise ValueError(f"Padding mode '{padding_mode}' is not supported with KeyPoints (supported modes are constant)")
    left, top, size = padded(padding, canvas_size)
    return _shifted(keypoints, left, top), size


@kernel(_images.crop, KeyPoints)
def crop_keypoints(keypoints: Any, top: int, left: int, height: int, width: int) -> tuple[Any, Size]:
    """Move points with what is cut out."""
    return _shifted(keypoints, -left, -top), (height, width)


@kernel(_images.center_crop, KeyPoints)
def center_crop_keypoints(inpt: Any, canvas_size: Size, output_size: Any) -> tuple[Any, Size]:
    """Move points with the middle that is cut out."""
    return crop_keypoints(inpt, *central(canvas_size, output_size))


@kernel(_images.resize, KeyPoints)
def resize_keypoints(keypoints: Any, size: Any, canvas_size: Size, max_size: int | None = None) -> tuple[Any, Size]:
    """Move points with a canvas that is resized."""
    by, wanted = ratios(keypoints, canvas_size, size, max_size)
    return (keypoints, canvas_size) if by is None else (keypoints.mul(by).to(keypoints.dtype), wanted)


@kernel(_images.resized_crop, KeyPoints)
def resized_crop_keypoints(keypoints: Any, top: int, left: int, height: int, width: int, size: Any) -> tuple[Any, Size]:
    """Move points with what is cut out and resized."""
    points, canvas = crop_keypoints(keypoints, top, left, height, width)
    return resize_keypoints(points, size, canvas)


def _moved(points: Any, move: Callable[[Any], Any]) -> Any:
    if not points.numel():
        return points
    return move(points.reshape(-1, 2)).to(points.dtype).reshape(points.shape)


def _in_floats(move: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda points: move(points if points.is_floating_point() else points.float())


@kernel(_images.affine, KeyPoints)
def affine_keypoints(
    keypoints: Any, canvas_size: Size, angle: float, translate: Any, scale: float, shear: Any, center: Any = None
) -> tuple[Any, Size]:
    """Move points with the image."""
    move, size = affine_move(canvas_size, angle, translate, scale, shear, center)
    return _moved(keypoints, _in_floats(move)), size


@kernel(_images.rotate, KeyPoints)
def rotate_keypoints(
    keypoints: Any, canvas_size: Size, angle: float, expand: bool = False, center: Any = None
) -> tuple[Any, Size]:
    """Turn points with the image, whose canvas grows where it expands."""
    if not keypoints.numel():
        return keypoints, canvas_size
    move, size = affine_move(canvas_size, -angle, [0.0, 0.0], 1.0, [0.0, 0.0], center, expand)
    return _moved(keypoints, _in_floats(move)), size


@kernel(_images.perspective, KeyPoints)
def perspective_keypoints(
    keypoints: Any, canvas_size: Size, startpoints: Any, endpoints: Any, coefficients: Any = None
) -> Any:
    """Warp points with the image."""
    if not keypoints.numel():
        return keypoints
    return _moved(keypoints, perspective_move(_images.coefficients_of(startpoints, endpoints, coefficients)))


@kernel(_images.elastic, KeyPoints)
def elastic_keypoints(keypoints: Any, canvas_size: Size, displacement: Any) -> Any:
    """Move points with the pixels that they lie in."""
    return _moved(keypoints, elastic_move(canvas_size, displacement))


def clamp_keypoints(inpt: Any, canvas_size: Any = None) -> Any:
    """Move points that lie outside of the canvas to its outermost pixels."""
    points = plain_input(inpt, "keypoints", KeyPoints, "`canvas_size`", canvas_size)
    h, w = canvas_size or inpt.canvas_size
    made = mortice.stack([points[..., 0].clamp(0, w - 1), points[..., 1].clamp(0, h - 1)], -1)
    return made if points is inpt else tv_tensors.wrap(made, like=inpt)


def sanitize_keypoints(key_points: Any, canvas_size: Any = None) -> tuple[Any, Any]:
    """Leave out points, or groups of them, that are not wholly within the canvas; return the rest, and which ones they are."""
    if is_pure_tensor(key_points):
        if canvas_size is None:
            raise ValueError(
                "canvas_size cannot be None if key_points is a pure tensor. Set it to an appropriate value or pass key_points as "
                "a tv_tensors.KeyPoints object."
            )
        valid = good_points(key_points, canvas_size)
        return key_points[valid], valid
    if not isinstance(key_points, KeyPoints):
        raise ValueError("key_points must be a tv_tensors.KeyPoints instance or a pure tensor.")
    if canvas_size is not None:
        raise ValueError(
            f"canvas_size must be None when key_points is a tv_tensors.KeyPoints instance. Got canvas_size={canvas_size}. Leave "
            "it to None or pass key_points as a pure tensor."
        )
    valid = good_points(key_points, key_points.canvas_size)
    return tv_tensors.wrap(key_points[valid], like=key_points), valid


def good_points(points: Any, canvas_size: Sequence[int]) -> Any:
    """Tell which points, or groups of them, lie within the canvas."""
    x, y = points[..., 0], points[..., 1]
    within = (x >= 0) & (x < canvas_size[1]) & (y >= 0) & (y < canvas_size[0])
    return within.flatten(1).all(1) if within.ndim > 1 else within
