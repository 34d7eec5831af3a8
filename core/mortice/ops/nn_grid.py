"""Sampling at the points of a grid (spatial transformers), and the grids of affine maps."""

from __future__ import annotations

from typing import Any

from mortice.errors import DTypeError, ShapeError
from mortice.modes import autocasting
from mortice.node import TENSOR_KERNELS, node_name
from mortice.notice import warn
from mortice.op import op
from mortice.ops.creation import linspace
from mortice.ops.joining import stack
from mortice.ops.movement import broadcast_to, reshape
from mortice.shape import Size
from mortice.tensor import TensorBase

__all__ = ["grid_sampler"]

# ---- sampling ----


def _sampled(name: str, x: Size, grid: Size, **attrs: Any) -> Size:
    return Size((*tuple(x)[:2], *tuple(grid)[1:-1]))


@op(
    shape=_sampled, kernel="grid_sample", name="grid_sample", dtypes="f",
    grad_name_of=lambda node: f"GridSampler{len(node.shape) - 2}DBackward0",
)  # fmt: skip
def _grid_sample(k: Any, x: Any, grid: Any, /, *, mode: str, padding: str, align_corners: bool) -> Any:
    """Return (N, C, *out): x between its elements, at the points of the grid."""


def _grid_sample_back(
    k: Any, g: Any, x: Any, grid: Any, mode: str, padding: str, align_corners: bool, needs: Any
) -> Any:
    return k.grid_sample_grad(g, x, grid, mode=mode, padding=padding, align_corners=align_corners, needs=tuple(needs))


_grid_sample.vjp(_grid_sample_back)

_MODES = {"bilinear": "linear", "nearest": "nearest", "bicubic": "cubic"}
_PADDINGS = ("zeros", "border", "reflection")


def _unsaid(name: str) -> None:
    warn(
        "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0: -1 and 1 are the outer "
        f"edges of the corner pixels. {name}: give align_corners=True where they are to be their centres."
    )


@autocasting
def grid_sample(
    input: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Any:
    """Sample (N, C, H, W) at (N, *, *, 2), or (N, C, D, H, W) at (N, *, *, *, 3): points (x, y[, z]) in [-1, 1]."""
    name = "grid_sample"
    if mode not in _MODES:
        raise ValueError(
            f"{name}: expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in _PADDINGS:
        raise ValueError(
            f"{name}: expected padding_mode to be 'zeros', 'border', or 'reflection', but got: '{padding_mode}'"
        )
    if align_corners is None:
        _unsaid(name)
    x, points = tuple(input.shape), tuple(grid.shape)
    if input.dtype is not grid.dtype:
        raise DTypeError(f"{name}: expected input and grid to have the same dtype; got {input.dtype} and {grid.dtype}.")
    if x[:1] != points[:1]:
        raise ShapeError(
            f"{name}: expected grid and input to have same batch size, but got input with sizes {list(x)} and grid with sizes "
            f"{list(points)}"
        )
    if points[-1:] != (len(x) - 2,):
        raise ShapeError(
            f"{name}: expected grid to have size {len(x) - 2} in last dimension, but got grid with sizes {list(points)}"
        )
    if len(x) not in (4, 5) or len(points) != len(x):
        raise ShapeError(
            f"{name}: expected 4D or 5D input and grid with same number of dimensions, but got input with sizes {list(x)} and "
            f"grid with sizes {list(points)}"
        )
    if 0 in x[2:]:
        raise ShapeError(f"{name}: expected input to have non-empty spatial dimensions; got {list(x)}.")
    if mode == "bicubic" and len(x) != 4:
        raise ShapeError(f"{name}: bicubic interpolation only supports 4D input; got {list(x)}.")
    return _grid_sample(input, grid, mode=_MODES[mode], padding=padding_mode, align_corners=bool(align_corners))


def grid_sampler(input: Any, grid: Any, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Any:
    """Do as `nn.functional.grid_sample`, with its modes by their numbers."""
    return grid_sample(input, grid, list(_MODES)[interpolation_mode], _PADDINGS[padding_mode], align_corners)


# ---- the grids of affine maps ----


def _centres(theta: Any, count: int, align_corners: bool) -> Any:
    """Return the places of `count` elements in [-1, 1]: the outer ones at its ends, or their edges there."""
    # Rounded as in PyTorch: the identity reads at whole elements, where the last bit chooses on which side a slope is taken.
    places = linspace(-1 if count > 1 else 0, 1, count, dtype=theta.dtype, device=theta.device)
    return places if align_corners else places * (count - 1) / count


@node_name("AffineGridGeneratorBackward0")
def affine_grid(theta: Any, size: Any, align_corners: bool | None = None) -> Any:
    """Return the points (N, *, *, 2) or (N, *, *, *, 3) of the image of a regular grid under (N, 2, 3) or (N, 3, 4)."""
    name = "affine_grid"
    if not isinstance(theta, TensorBase) or not theta.dtype.is_floating_point:
        raise ValueError(f"{name}: Expected theta to have floating point type, but got {getattr(theta, 'dtype', theta)}")
    if align_corners is None:
        _unsaid(name)
    sizes = tuple([n.__index__() for n in size])
    nd = len(sizes) - 2
    if nd not in (2, 3):
        raise NotImplementedError(
            f"{name} only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size {sizes}."
        )
    if tuple(theta.shape) != (sizes[0], nd, nd + 1):
        raise ValueError(
            f"{name}: Expected a batch of {nd}D affine matrices of shape Nx{nd}x{nd + 1} for size {sizes}. Got "
            f"{tuple(theta.shape)}."
        )
    if min(sizes) <= 0:
        raise ValueError(f"{name}: Expected non-zero, positive output size. Got {sizes}")
    k = TENSOR_KERNELS
    out = sizes[2:]
    if align_corners and 1 in out:
        warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True: the one point of "
            "a dim of size 1 is in the middle, at 0, and no longer at -1. See the documentation of affine_grid for details."
        )
    axes = [
        broadcast_to(reshape(_centres(theta, n, bool(align_corners)), (n, *[1] * (nd - 1 - d))), out)
        for d, n in enumerate(out)
    ]
    points = reshape(stack([*axes[::-1], k.full_like(axes[0], 1)], -1), (-1, nd + 1))
    return reshape(k.matmul(points, k.matrix_transpose(theta)), (sizes[0], *out, nd))
