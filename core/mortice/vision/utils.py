"""Grids of pictures, pictures in files, and drawing on pictures; torchvision.utils' names."""

from __future__ import annotations

import math
import os
from typing import Any

import mortice as mt
from mortice.notice import warn
from mortice.vision._pillow import pillow
from mortice.vision.pictures import to_image, to_tensor

__all__ = [
    "draw_bounding_boxes", "draw_keypoints", "draw_segmentation_masks", "flow_to_image", "make_grid", "save_image",
]  # fmt: skip

Color = str | tuple[int, int, int]


# ---- grids ----


@mt.no_grad()
def make_grid(
    tensor: Any,
    nrow: int = 8,
    padding: int = 2,
    normalize: bool = False,
    value_range: tuple[float, float] | None = None,
    scale_each: bool = False,
    pad_value: float = 0.0,
) -> Any:
    """Lay out a batch of images, or a list of images of one size, with `nrow` in a row.

    Args:
        normalize: shift to between 0 and 1 by `value_range`, by default the least and greatest value there is.
        scale_each: take least and greatest from each image by itself.
        pad_value: what lies between the images.

    Returns:
        A tensor of three channels, or as many as the images have; a single image as it is, without a border.
    """
    if isinstance(tensor, list):
        for t in tensor:
            if not isinstance(t, mt.Tensor):
                raise TypeError(f"tensor or list of tensors expected, got a list containing {type(t)}")
        tensor = mt.stack(tensor, dim=0)
    elif not isinstance(tensor, mt.Tensor):
        raise TypeError(f"tensor or list of tensors expected, got {type(tensor)}")
    if tensor.dim() == 2:
        tensor = tensor.unsqueeze(0)
    if tensor.dim() == 3:
        tensor = tensor.unsqueeze(0)
    if tensor.dim() == 4 and tensor.size(1) == 1:  # grey
        tensor = mt.cat((tensor, tensor, tensor), 1)
    if normalize is True:
        if value_range is not None and not isinstance(value_range, tuple):
            raise TypeError("value_range has to be a tuple (min, max) if specified. min and max are numbers")
        if scale_each is True:
            tensor = mt.stack([_to_unit(t, value_range) for t in tensor])
        else:
            tensor = _to_unit(tensor, value_range)
    n, channels, height, width = tensor.shape
    if n == 1:
        return tensor.squeeze(0)
    columns = min(nrow, n)
    rows = math.ceil(n / columns)
    height, width = height + padding, width + padding
    # Each image with the border above it and to its left, then all of them, then the border on the other two sides.
    cells = tensor.new_full((rows * columns, channels, height, width), pad_value)
    cells[:n, :, padding:, padding:] = tensor
    laid = cells.reshape(rows, columns, channels, height, width).permute(2, 0, 3, 1, 4)
    grid = tensor.new_full((channels, rows * height + padding, columns * width + padding), pad_value)
    grid[:, : rows * height, : columns * width] = laid.reshape(channels, rows * height, columns * width)
    return grid


def _to_unit(t: Any, value_range: tuple[float, float] | None) -> Any:
    low, high = (float(t.min()), float(t.max())) if value_range is None else value_range
    return t.clone().clamp_(min=low, max=high).sub_(low).div_(max(high - low, 1e-5))


@mt.no_grad()
def save_image(tensor: Any, fp: Any, format: str | None = None, **kwargs: Any) -> None:
    """Write images between 0 and 1 to a file, several as a grid; `kwargs` go to `make_grid`.

    Args:
        fp: a path, whose ending gives the format, or a file.
        format: one of Pillow's formats; needed for a file.
    """
    grid = make_grid(tensor, **kwargs)
    to_image(grid.mul(255).add_(0.5).clamp_(0, 255).permute(1, 2, 0).to(mt.uint8)).save(fp, format=format)


# ---- drawing ----


def _check(image: Any, message: str, channels: tuple[int, ...] = (3,)) -> None:
    if not isinstance(image, mt.Tensor):
        raise TypeError(message.format(type(image)))
    if not (image.dtype == mt.uint8 or image.is_floating_point()):
        raise ValueError(f"The image dtype must be uint8 or float, got {image.dtype}")
    if image.dim() != 3:
        raise ValueError("Pass individual images, not batches")
    if image.size(0) not in channels:
        kinds = "Pass an RGB image. Other Image formats are not supported"
        raise ValueError(kinds if channels == (3,) else "Only grayscale and RGB images are supported")


def _colors(colors: Any, n: int) -> list[tuple[int, ...]]:
    """Return a color for each of n objects: those given, the one given, or by default n that differ."""
    if colors is None:
        return [tuple(i * v % 255 for v in (2**25 - 1, 2**15 - 1, 2**21 - 1)) for i in range(n)]
    if isinstance(colors, list):
        if len(colors) < n:
            raise ValueError(
                f"Number of colors must be equal or larger than the number of objects, but got {len(colors)} < {n}."
            )
    elif not isinstance(colors, (tuple, str)):
        raise ValueError(f"colors must be a tuple or a string, or a list thereof, but got {colors}.")
    elif isinstance(colors, tuple) and len(colors) != 3:
        raise ValueError(f"If passed as tuple, colors should be an RGB triplet, but got {colors}.")
    else:
        colors = [colors] * n
    parse = pillow("ImageColor").getrgb
    return [parse(color) if isinstance(color, str) else color for color in colors]


def _to_bytes(image: Any) -> Any:
    """Return an image for Pillow of a tensor, whose numbers between 0 and 1 fill 256 steps evenly."""
    if image.is_floating_point():
        image = image.mul(255 + 1 - 1e-3).to(mt.uint8)
    return to_image(image.detach().permute(1, 2, 0))


def _back(image: Any, like: Any) -> Any:
    """Return the pixels of an image with the dtype, and on the device, of the tensor that it was drawn on."""
    found = to_tensor(image).to(like.device)
    return found.to(like.dtype).mul(1 / 255) if like.is_floating_point() else found


@mt.no_grad()
def draw_bounding_boxes(
    image: Any,
    boxes: Any,
    labels: list[str] | None = None,
    colors: list[Color] | Color | None = None,
    fill: bool | None = False,
    width: int = 1,
    font: str | os.PathLike[str] | None = None,
    font_size: int | None = None,
    label_colors: list[Color] | Color | None = None,
    label_background_colors: list[Color] | Color | None = None,
    fill_labels: bool = False,
) -> Any:
    """Return an image with boxes drawn on it, of (xmin, ymin, xmax, ymax) or of four corners, and labels in them.

    Args:
        image: of one or three channels, uint8 or floating.
        fill: fill the boxes with their color, let through by more than half.
        font: a TrueType file for the labels, of `font_size` points.
        fill_labels: put `label_background_colors`, by default the boxes', behind the labels.
    """
    _check(image, "Tensor expected, got {}", (1, 3))
    corners = boxes.to(mt.int64).tolist()
    if boxes.shape[-1] == 4 and bool((boxes[:, 0] > boxes[:, 2]).any() | (boxes[:, 1] > boxes[:, 3]).any()):
        raise ValueError(
            "Boxes need to be in (xmin, ymin, xmax, ymax) format; got one whose first corner is beyond its second."
        )
    n = boxes.shape[0]
    if n == 0:
        warn("boxes doesn't contain any box. No box was drawn")
        return image
    if labels is not None and len(labels) != n:
        raise ValueError(
            f"Number of boxes ({n}) and labels ({len(labels)}) mismatch. Please specify labels for each box."
        )
    outlines = _colors(colors, n)
    texts = _colors(label_colors or "black", n) if label_colors or fill_labels else outlines
    grounds = _colors(label_background_colors, n) if fill_labels and label_background_colors else outlines
    fonts = pillow("ImageFont")
    if font is None and font_size is not None:
        warn("Argument 'font_size' will be ignored since 'font' is not set.")
    letters = fonts.load_default() if font is None else fonts.truetype(font=font, size=font_size or 10)
    picture = _to_bytes(image.expand(3, -1, -1))
    draw = pillow("ImageDraw").Draw(picture, "RGBA" if fill else None)
    for i, box in enumerate(corners):
        inside = (*outlines[i], 100) if fill else None
        if len(box) > 4:
            _draw_corners(draw, list(zip(box[::2], box[1::2])), outlines[i], inside, width)
        else:
            draw.rectangle(box, width=width, outline=outlines[i], fill=inside)
        if labels is not None and labels[i] is not None:
            place = box[0] + width + 1, box[1] + width + 1
            if fill_labels:
                left, top, right, bottom = draw.textbbox(place, labels[i], font=letters)
                draw.rectangle((left - 1, top - 1, right + 1, bottom + 1), fill=grounds[i])
            draw.text(place, labels[i], fill=texts[i], font=letters)
    return _back(picture, image)


def _draw_corners(draw: Any, corners: list[tuple[int, int]], outline: Any, inside: Any, width: int) -> None:
    """Draw a box that may be turned; its first side is dashed, to show which way is up."""
    (x, y), (end_x, end_y) = corners[:2]
    left, turn = math.hypot(end_x - x, end_y - y), math.atan2(end_y - y, end_x - x)
    drawn = True
    while left > 0:
        step = min(left, 5)
        to = x + math.cos(turn) * step, y + math.sin(turn) * step
        if drawn:
            draw.line([(x, y), to], fill=outline, width=width)
        (x, y), left, drawn = to, left - step, not drawn
    for a, b in zip(corners[1:], [*corners[2:], corners[0]]):
        draw.line([a, b], fill=outline, width=width)
    draw.polygon(corners, fill=inside, outline=None, width=0)


@mt.no_grad()
def draw_segmentation_masks(
    image: Any, masks: Any, alpha: float = 0.8, colors: list[Color] | Color | None = None
) -> Any:
    """Return an RGB image with the areas of masks coloured, black where several overlap; `alpha` 1 hides the image."""
    _check(image, "The image must be a tensor, got {}")
    masks = masks[None] if masks.ndim == 2 else masks
    if masks.ndim != 3:
        raise ValueError("masks must be of shape (H, W) or (batch_size, H, W)")
    if masks.dtype != mt.bool:
        raise ValueError(f"The masks must be of dtype bool. Got {masks.dtype}")
    if masks.shape[-2:] != image.shape[-2:]:
        raise ValueError("The image and the masks must have the same height and width")
    if masks.shape[0] == 0:
        warn("masks doesn't contain any mask. No mask was drawn")
        return image
    drawn = image.detach()
    for mask, color in zip(masks, _colors(colors, masks.shape[0])):
        values = [v / 255 for v in color] if image.is_floating_point() else list(color)
        drawn = mt.where(mask, mt.tensor(values, dtype=image.dtype, device=image.device)[:, None, None], drawn)
    drawn = mt.where(masks.sum(dim=0) > 1, mt.zeros_like(drawn), drawn)
    return (image * (1 - alpha) + drawn * alpha).to(image.dtype)


@mt.no_grad()
def draw_keypoints(
    image: Any,
    keypoints: Any,
    connectivity: list[tuple[int, int]] | None = None,
    colors: Color | None = None,
    radius: int = 2,
    width: int = 3,
    visibility: Any = None,
) -> Any:
    """Return an RGB image with the points (instances, K, 2) drawn on it, and lines between those of `connectivity`.

    Args:
        visibility: of shape (instances, K), which points are drawn; all by default.
    """
    _check(image, "The image must be a tensor, got {}")
    if keypoints.ndim != 3:
        raise ValueError("keypoints must be of shape (num_instances, K, 2)")
    if visibility is None:
        visibility = mt.ones(tuple(keypoints.shape[:-1]), dtype=mt.bool)
    visibility = visibility.squeeze(-1) if visibility.ndim == 3 else visibility
    if visibility.ndim != 2:
        raise ValueError(f"visibility must be of shape (num_instances, K). Got ndim={visibility.ndim}")
    if visibility.shape != keypoints.shape[:-1]:
        raise ValueError(
            "keypoints and visibility must have the same dimensionality for num_instances and K. "
            f"Got {visibility.shape=} and {keypoints.shape=}"
        )
    picture = _to_bytes(image)
    draw = pillow("ImageDraw").Draw(picture)
    for points, seen in zip(keypoints.to(mt.int64).tolist(), visibility.to(mt.bool).tolist()):
        for (x, y), visible in zip(points, seen):
            if visible:
                draw.ellipse([x - radius, y - radius, x + radius, y + radius], fill=colors, outline=None, width=0)
        for a, b in connectivity or ():
            if seen[a] and seen[b]:
                draw.line((tuple(points[a]), tuple(points[b])), width=width)
    return _back(picture, image)


# ---- optical flow ----

# Baker et al., "A database and evaluation methodology for optical flow" (2007): from each color to the next, in how
# many steps, which channel changes, and whether it rises
_WHEEL = (((255, 0, 0), 15, 1, True), ((255, 255, 0), 6, 0, False), ((0, 255, 0), 4, 2, True),
          ((0, 255, 255), 11, 1, False), ((0, 0, 255), 13, 0, True), ((255, 0, 255), 6, 2, False))  # fmt: skip


def _wheel() -> list[list[float]]:
    colors = []
    for start, steps, channel, rises in _WHEEL:
        for i in range(steps):
            color = [float(v) for v in start]
            color[channel] = 255 * i // steps if rises else 255 - 255 * i // steps
            colors.append(color)
    return colors


@mt.no_grad()
def flow_to_image(flow: Any) -> Any:
    """Return a flow (2, H, W) or (N, 2, H, W) as uint8 colours: hue for the direction, saturation for the speed."""
    if flow.dtype != mt.float32:
        raise ValueError(f"Flow should be of dtype {mt.float}, got {flow.dtype}.")
    batch = flow[None] if flow.ndim == 3 else flow
    if batch.ndim != 4 or batch.shape[1] != 2:
        raise ValueError(f"Input flow should have shape (2, H, W) or (N, 2, H, W), got {flow.shape}.")
    batch = batch / (batch.pow(2).sum(dim=1).sqrt().max() + mt.finfo(mt.float32).eps)
    wheel = mt.tensor(_wheel(), device=flow.device) / 255
    speed = batch.pow(2).sum(dim=1).sqrt()[:, None]
    angle = mt.atan2(-batch[:, 1], -batch[:, 0]) / math.pi
    place = (angle + 1) / 2 * (len(wheel) - 1)
    below = place.floor().to(mt.int64)
    part = (place - below)[:, None]
    hue = (1 - part) * wheel[below].permute(0, 3, 1, 2) + part * wheel[(below + 1) % len(wheel)].permute(0, 3, 1, 2)
    colors = (255 * (1 - speed * (1 - hue))).floor().to(mt.uint8)
    return colors[0] if flow.ndim == 3 else colors
