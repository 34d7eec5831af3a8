"""What is done to boxes: their formats, moves with the image that they belong to, and the removal of those that are no good."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import mortice
from mortice import Tensor
from mortice.vision import tv_tensors
from mortice.vision.transforms.v2.functional import _images, _points
from mortice.vision.transforms.v2.functional._clamp import clamped_turned
from mortice.vision.transforms.v2.functional._kernels import is_pure_tensor, kernel, plain_input
from mortice.vision.tv_tensors import BoundingBoxes, BoundingBoxFormat, box_format, is_rotated_bounding_format

XYXY, XYWH, CXCYWH = BoundingBoxFormat.XYXY, BoundingBoxFormat.XYWH, BoundingBoxFormat.CXCYWH
XYWHR, CXCYWHR, CORNERS = BoundingBoxFormat.XYWHR, BoundingBoxFormat.CXCYWHR, BoundingBoxFormat.XYXYXYXY
Size = tuple[int, int]


# ---- formats ----


def _converted(boxes: Any, old: BoundingBoxFormat, new: BoundingBoxFormat) -> Any:
    """Convert boxes by way of corner and size; whole numbers are cut, and half of an odd size is rounded down."""
    if new == old:
        return boxes
    if is_rotated_bounding_format(old) != is_rotated_bounding_format(new):
        raise ValueError("Cannot convert between rotated and unrotated bounding boxes.")
    if is_rotated_bounding_format(old):
        return _from_turned(*_turned(boxes, old), new)
    a, b = boxes[..., :2], boxes[..., 2:]
    if old == XYXY:
        b = b - a
    elif old == CXCYWH:
        corner = a - b / 2
        a = corner.to(boxes.dtype)
        b = b if boxes.is_floating_point() else (corner + b).to(boxes.dtype) - a
    if new == XYXY:
        b = a + b
    elif new == CXCYWH:
        a = a + (b / 2 if boxes.is_floating_point() else b.div(2, rounding_mode="floor"))
    return mortice.cat([a, b], -1)


def _directions(degrees: Any) -> tuple[Any, Any]:
    """Return the directions of width and height of boxes that are turned counter-clockwise."""
    angle = degrees.mul(math.pi).div(180.0)
    cos, sin = angle.cos(), angle.sin()
    return mortice.stack([cos, -sin], -1), mortice.stack([sin, cos], -1)


def _turned(boxes: Any, format: BoundingBoxFormat) -> tuple[Any, Any, Any]:
    """Return corner, size and degrees of turned boxes."""
    if format == CORNERS:
        wide = boxes if boxes.dtype in (mortice.float32, mortice.float64) else boxes.float()
        first, second, third = wide[..., 0:2], wide[..., 2:4], wide[..., 4:6]
        along = second - first
        size = [v.pow(2).sum(-1).sqrt() for v in (along, third - second)]
        degrees = mortice.atan2(-along[..., 1], along[..., 0]).div(math.pi).mul(180.0)
        return first.to(boxes.dtype), mortice.stack(size, -1).to(boxes.dtype), degrees.to(boxes.dtype)
    place, size, degrees = boxes[..., :2], boxes[..., 2:4], boxes[..., 4]
    return (place - _to_middle(size.abs(), degrees) if format == CXCYWHR else place), size, degrees


def _to_middle(size: Any, degrees: Any) -> Any:
    across, down = _directions(degrees)
    return (across * size[..., :1] + down * size[..., 1:]) / 2


def _from_turned(place: Any, size: Any, degrees: Any, new: BoundingBoxFormat) -> Any:
    if new != CORNERS:
        place = place + _to_middle(size.abs(), degrees) if new == CXCYWHR else place
        return mortice.cat([place, size, degrees.unsqueeze(-1)], -1)
    across, down = _directions(degrees)
    across, down = across * size[..., :1], down * size[..., 1:]
    return mortice.cat([place, place + across, place + across + down, place + down], -1)


def convert_bounding_box_format(inpt: Any, old_format: Any = None, new_format: Any = None, inplace: bool = False) -> Any:
    """Write boxes in another format; that of plain tensors must be given."""
    if new_format is None:
        raise TypeError("convert_bounding_box_format() missing 1 required argument: 'new_format'")
    new_format, old_format = box_format(new_format), box_format(old_format)
    plain = plain_input(inpt, "bounding box", BoundingBoxes, "`old_format`", old_format)
    made = _converted(plain, old_format or inpt.format, new_format)
    if inplace and made is not plain and made.shape == plain.shape:
        made = plain.copy_(made)
    return made if is_pure_tensor(inpt) else tv_tensors.wrap(made, like=inpt, format=new_format)


# ---- what lies outside of the canvas ----


def _clamped(boxes: Any, format: BoundingBoxFormat, canvas_size: Sequence[int], clamping_mode: str | None) -> Any:
    if clamping_mode is None:
        return boxes.clone()
    if is_rotated_bounding_format(format):
        corners = _converted(boxes, format, CORNERS).reshape(-1, 8)
        return _converted(clamped_turned(corners, canvas_size, clamping_mode), CORNERS, format).reshape(boxes.shape)
    corners = _converted(boxes if boxes.is_floating_point() else boxes.float(), format, XYXY)
    h, w = canvas_size
    x, y = corners[..., 0::2].clamp(0, w), corners[..., 1::2].clamp(0, h)
    corners = mortice.stack([x, y], -1).flatten(-2)
    return _converted(corners, XYXY, format).to(boxes.dtype)


def clamp_bounding_boxes(
    inpt: Any, format: Any = None, canvas_size: Any = None, clamping_mode: str | None = "auto"
) -> Any:
    """Move what lies outside of the canvas to its edge, as the mode says, which boxes know themselves."""
    if clamping_mode not in (None, "soft", "hard", "auto"):
        raise ValueError(f"clamping_mode must be soft, hard, auto or None, got {clamping_mode}")
    plain = plain_input(inpt, "bounding box", BoundingBoxes, "`format` and `canvas_size`", format, canvas_size)
    if plain is inpt:
        if clamping_mode == "auto":
            raise ValueError("For pure tensor inputs, `format`, `canvas_size` and `clamping_mode` have to be passed.")
        return _clamped(plain, box_format(format), canvas_size, clamping_mode)
    mode = inpt.clamping_mode if clamping_mode == "auto" else clamping_mode
    return tv_tensors.wrap(_clamped(plain, inpt.format, inpt.canvas_size, mode), like=inpt)


def sanitize_bounding_boxes(
    bounding_boxes: Any, format: Any = None, canvas_size: Any = None, min_size: float = 1.0, min_area: float = 1.0
) -> tuple[Any, Any]:
    """Leave out boxes that are too small or not within the canvas; return the rest, and which ones they are."""
    if is_pure_tensor(bounding_boxes):
        if format is None or canvas_size is None:
            raise ValueError(
                "format and canvas_size cannot be None if bounding_boxes is a pure tensor. Got "
                f"format={format} and canvas_size={canvas_size}. Set those to appropriate values or pass bounding_boxes as a "
                "tv_tensors.BoundingBoxes object."
            )
        valid = good_boxes(bounding_boxes, box_format(format), canvas_size, min_size, min_area)
        return bounding_boxes[valid], valid
    if not isinstance(bounding_boxes, BoundingBoxes):
        raise ValueError("bounding_boxes must be a tv_tensors.BoundingBoxes instance or a pure tensor.")
    if format is not None or canvas_size is not None:
        raise ValueError(
            "format and canvas_size must be None when bounding_boxes is a tv_tensors.BoundingBoxes instance. Got "
            f"format={format} and canvas_size={canvas_size}. Leave those to None or pass bounding_boxes as a pure tensor."
        )
    valid = good_boxes(bounding_boxes, bounding_boxes.format, bounding_boxes.canvas_size, min_size, min_area)
    return tv_tensors.wrap(bounding_boxes[valid], like=bounding_boxes), valid


def good_boxes(
    boxes: Any, format: BoundingBoxFormat, canvas_size: Sequence[int], min_size: float = 1.0, min_area: float = 1.0
) -> Any:
    """Tell which boxes are large enough and lie within the canvas."""
    turned = is_rotated_bounding_format(format)
    boxes = _converted(boxes.as_subclass(Tensor), format, CORNERS if turned else XYXY)
    x, y = boxes[..., 0::2], boxes[..., 1::2]
    if turned:
        w = ((x[..., 0] - x[..., 1]).pow(2) + (y[..., 0] - y[..., 1]).pow(2)).sqrt()
        # The height as torchvision has it, which mixes the second side with the third.
        h = ((y[..., 1] - y[..., 2]).pow(2) + (x[..., 2] - x[..., 3]).pow(2)).sqrt()
    else:
        w, h = x[..., 1] - x[..., 0], y[..., 1] - y[..., 0]
    within = (boxes >= 0).all(-1) & (x <= canvas_size[1]).all(-1) & (y <= canvas_size[0]).all(-1)
    return (w >= min_size) & (h >= min_size) & (w * h >= min_area) & within


# ---- moves ----


@kernel(_images.get_size, BoundingBoxes, wraps=False)
def get_size_bounding_boxes(bounding_box: Any) -> Any:
    """Return height and width of the canvas."""
    return list(bounding_box.canvas_size)


def _mirrored(boxes: Any, format: BoundingBoxFormat, length: int, axis: int) -> Any:
    """Mirror boxes along an axis, 0 for x and 1 for y."""
    out = boxes.clone()
    if format == XYXY:
        out[..., [axis, axis + 2]] = length - boxes[..., [axis + 2, axis]]
    elif format in (XYWH, CXCYWH):
        out[..., axis] = length - boxes[..., axis] - (boxes[..., axis + 2] if format == XYWH else 0)
    elif format == CORNERS:
        out[..., axis::2] = length - boxes[..., axis::2]
        out = out[..., [2, 3, 0, 1, 6, 7, 4, 5]]  # the order of the corners stays clockwise
    else:
        if format == XYWHR:  # the second corner becomes the first
            across, _ = _directions(boxes[..., 4])
            out[..., :2] += across * boxes[..., 2:3]
        out[..., axis] = length - out[..., axis]
        out[..., 4] = 180 * axis - boxes[..., 4]
    return out


@kernel(_images.horizontal_flip, BoundingBoxes)
def horizontal_flip_bounding_boxes(bounding_boxes: Any, format: BoundingBoxFormat, canvas_size: Size) -> Any:
    """Mirror left and right."""
    return _mirrored(bounding_boxes, format, canvas_size[1], 0)


@kernel(_images.vertical_flip, BoundingBoxes)
def vertical_flip_bounding_boxes(bounding_boxes: Any, format: BoundingBoxFormat, canvas_size: Size) -> Any:
    """Mirror top and bottom."""
    return _mirrored(bounding_boxes, format, canvas_size[0], 1)


def _shift(format: BoundingBoxFormat, x: int, y: int) -> list[int]:
    """Return what is added to the numbers of a box that moves."""
    if format in (XYXY, CORNERS):
        return [x, y] * (2 if format == XYXY else 4)
    return [x, y, 0, 0] + [0] * is_rotated_bounding_format(format)


def _shifted(boxes: Any, format: BoundingBoxFormat, x: int, y: int) -> Any:
    return boxes + mortice.tensor(_shift(format, x, y), dtype=boxes.dtype, device=boxes.device)


@kernel(_images.pad, BoundingBoxes)
def pad_bounding_boxes(
    bounding_boxes: Any, format: BoundingBoxFormat, canvas_size: Size, padding: Any, padding_mode: str = "constant",
    clamping_mode: str | None = "soft",
) -> tuple[Any, Size]:  # fmt: skip
    """Move boxes with the image that is padded."""
    if padding_mode != "constant":
        raise ValueError(f"Padding mode '{padding_mode}' is not supported with bounding boxes")
    left, top, size = _points.padded(padding, canvas_size)
    return _clamped(_shifted(bounding_boxes, format, left, top), format, size, clamping_mode), size


@kernel(_images.crop, BoundingBoxes)
def crop_bounding_boxes(
    bounding_boxes: Any, format: BoundingBoxFormat, top: int, left: int, height: int, width: int,
    clamping_mode: str | None = "soft",
) -> tuple[Any, Size]:  # fmt: skip
    """Move boxes with what is cut out."""
    moved = _shifted(bounding_boxes, format, -left, -top)
    moved = _upright(moved) if format == CORNERS else moved
    return _clamped(moved, format, (height, width), clamping_mode), (height, width)


@kernel(_images.center_crop, BoundingBoxes)
def center_crop_bounding_boxes(
    bounding_boxes: Any, format: BoundingBoxFormat, canvas_size: Size, output_size: Any, clamping_mode: str | None = "soft"
) -> tuple[Any, Size]:
    """Move boxes with the middle that is cut out."""
    box = _points.central(canvas_size, output_size)
    return crop_bounding_boxes(bounding_boxes, format, *box, clamping_mode=clamping_mode)


@kernel(_images.resize, BoundingBoxes)
def resize_bounding_boxes(
    bounding_boxes: Any, canvas_size: Size, size: Any, max_size: int | None = None, format: BoundingBoxFormat = XYXY,
    clamping_mode: str | None = "soft",
) -> tuple[Any, Size]:  # fmt: skip
    """Resize boxes with their canvas."""
    ratios, wanted = _points.ratios(bounding_boxes, canvas_size, size, max_size)
    if ratios is None:
        return bounding_boxes, canvas_size
    if not is_rotated_bounding_format(format):
        return bounding_boxes.mul(ratios.tile(2)).to(bounding_boxes.dtype), wanted
    corners = _upright(_converted(bounding_boxes, format, CORNERS).mul(ratios.tile(4)))
    corners = _clamped(corners, CORNERS, wanted, clamping_mode)
    return _converted(corners, CORNERS, format).to(bounding_boxes.dtype), wanted


@kernel(_images.resized_crop, BoundingBoxes)
def resized_crop_bounding_boxes(
    bounding_boxes: Any, format: BoundingBoxFormat, top: int, left: int, height: int, width: int, size: Any,
    clamping_mode: str | None = "soft",
) -> tuple[Any, Size]:  # fmt: skip
    """Move boxes with what is cut out and resized."""
    boxes, canvas = crop_bounding_boxes(bounding_boxes, format, top, left, height, width, clamping_mode)
    return resize_bounding_boxes(boxes, canvas, size, format=format, clamping_mode=clamping_mode)


def _upright(corners: Any) -> Any:
    """Return the rectangles, about the same middles, of parallelograms that rectangles have become; the longer side stays."""
    wide = corners if corners.dtype in (mortice.float32, mortice.float64) else corners.float()
    first, second, third, fourth = wide.unflatten(-1, (4, 2)).unbind(-2)
    across, down = second - first, fourth - first
    w, h = across.pow(2).sum(-1).sqrt(), down.pow(2).sum(-1).sqrt()
    turn, lean = (mortice.atan2(-v[..., 1], v[..., 0]) for v in (across, down))
    between = turn - lean
    cos, sin = between.cos(), between.sin()
    cos = mortice.where(between > math.pi / 2, -cos, cos)
    width = mortice.where(w < h, w * sin, w + h * cos)
    height = mortice.where(w > h, h * sin, h + w * cos)
    degrees = mortice.where(h > w, lean + math.pi / 2, turn).mul(180.0 / math.pi)
    size = mortice.stack([width, height], -1)
    corner = (first + third) / 2 - _to_middle(size, degrees)
    return _from_turned(corner, size, degrees, CORNERS).to(corners.dtype)


def _through_corners(
    boxes: Any, format: BoundingBoxFormat, canvas_size: Size, clamping_mode: str | None, move: Callable[[Any], Any]
) -> Any:
    """Move the corners of boxes, and return the boxes around them."""
    turned = is_rotated_bounding_format(format)
    corners = _converted(boxes, format, CORNERS if turned else XYXY)
    corners = corners.reshape(-1, 4, 2) if turned else corners.reshape(-1, 4)[:, [[0, 1], [2, 1], [2, 3], [0, 3]]]
    moved = move(corners.reshape(-1, 2)).reshape(-1, 4, 2)
    if turned:
        moved = _upright(moved.flatten(1))
    else:
        moved = mortice.cat([moved.amin(1), moved.amax(1)], 1)
    moved = _clamped(moved, CORNERS if turned else XYXY, canvas_size, clamping_mode)
    return _converted(moved, CORNERS if turned else XYXY, format).reshape(boxes.shape)


@kernel(_images.affine, BoundingBoxes)
def affine_bounding_boxes(
    bounding_boxes: Any, format: BoundingBoxFormat, canvas_size: Size, angle: float, translate: Any, scale: float, shear: Any,
    center: Any = None, clamping_mode: str | None = "soft",
) -> Any:  # fmt: skip
    """Move boxes with the image."""
    move, _ = _points.affine_move(canvas_size, angle, translate, scale, shear, center)
    return _moved(bounding_boxes, format, canvas_size, clamping_mode, move)


def _moved(boxes: Any, format: Any, canvas_size: Size, clamping_mode: str | None, move: Callable[[Any], Any]) -> Any:
    if not boxes.numel():
        return boxes
    work = boxes if boxes.is_floating_point() else boxes.float()
    return _through_corners(work, format, canvas_size, clamping_mode, move).to(boxes.dtype)


@kernel(_images.rotate, BoundingBoxes)
def rotate_bounding_boxes(
    bounding_boxes: Any, format: BoundingBoxFormat, canvas_size: Size, angle: float, expand: bool = False, center: Any = None,
    clamping_mode: str | None = "soft",
) -> tuple[Any, Size]:  # fmt: skip
    """Turn boxes with the image, whose canvas grows where it expands."""
    if not bounding_boxes.numel():
        return bounding_boxes, canvas_size
    move, size = _points.affine_move(canvas_size, -angle, [0.0, 0.0], 1.0, [0.0, 0.0], center, expand)
    return _moved(bounding_boxes, format, size, clamping_mode, move), size


@kernel(_images.perspective, BoundingBoxes)
def perspective_bounding_boxes(
    bounding_boxes: Any, format: BoundingBoxFormat, canvas_size: Size, startpoints: Any, endpoints: Any,
    coefficients: Any = None, clamping_mode: str | None = "soft",
) -> Any:  # fmt: skip
    """Warp boxes with the image."""
    if not bounding_boxes.numel():
        return bounding_boxes
    move = _points.perspective_move(_images.coefficients_of(startpoints, endpoints, coefficients))
    return _through_corners(bounding_boxes, format, canvas_size, clamping_mode, move).to(bounding_boxes.dtype)


@kernel(_images.elastic, BoundingBoxes)
def elastic_bounding_boxes(
    bounding_boxes: Any, format: BoundingBoxFormat, canvas_size: Size, displacement: Any, clamping_mode: str | None = "soft"
) -> Any:
    """Move boxes with the pixels under their corners, or under the middles of turned ones."""
    move = _points.elastic_move(canvas_size, displacement)
    if not bounding_boxes.numel():
        return bounding_boxes

    def of_next_pixels(points: Any) -> Any:
        return move(points.ceil() if points.is_floating_point() else points).to(points.dtype)

    if not is_rotated_bounding_format(format):
        return _through_corners(bounding_boxes, format, canvas_size, clamping_mode, of_next_pixels)
    boxes = _converted(bounding_boxes, format, CXCYWHR)
    moved = mortice.cat([of_next_pixels(boxes[..., :2]), boxes[..., 2:]], -1)
    return _converted(_clamped(moved, CXCYWHR, canvas_size, clamping_mode), CXCYWHR, format)
