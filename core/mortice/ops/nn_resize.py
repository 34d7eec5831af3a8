"""Padding in its four modes and interpolation: linear maps, each with its adjoint, which is its gradient."""

from __future__ import annotations

import math
import operator
from functools import lru_cache
from typing import Any

from mortice.call import no_tensor
from mortice.dtype import CLASS_NAMES, DType, check_kind, uint8
from mortice.errors import DTypeError, ShapeError
from mortice.op import Op, op
from mortice.ops.data import number
from mortice.ops.movement import contiguous
from mortice.ops.nn_pool import _adaptive_avg_pool
from mortice.rules import as_stored, hold, of_images
from mortice.shape import Size
from mortice.tensor import TensorBase

__all__ = ["constant_pad_nd"]

# ---- padding ----


def _padded(name: str, x: Size, *, widths: Any, mode: str, value: Any = 0) -> Size:
    return Size([n + b + a for n, (b, a) in zip(x, widths)])


def _by_mode(node: Any) -> str:
    kind = {"reflect": "Reflection", "replicate": "Replication"}.get(node.attrs["mode"])
    first = next((i for i, w in enumerate(node.attrs["widths"]) if tuple(w) != (0, 0)), -1)
    return f"{kind}Pad{len(node.shape[first:])}DBackward0" if kind else "ConstantPadNdBackward0"


@op(
    shape=_padded, kernel="pad_border", name="pad", grad_name="ConstantPadNdBackward0", grad_name_of=_by_mode, keeps_format=of_images,
    float8="moved",
)
def _pad_border(k: Any, x: Any, /, *, widths: Any, mode: str, value: Any = 0) -> Any:
    """Extend each axis by (before, after) elements, or cut where negative."""


def _pad_tangent(k: Any, op: Any, primals: Any, tangents: Any, attrs: Any, out: Any) -> Any:
    return k.pad_border(tangents[0], widths=attrs["widths"], mode=attrs["mode"], value=0)


_pad_border.vjp(
    x=lambda k, g, widths, mode: k.pad_border_grad(g, widths=widths, mode=mode), jvp=_pad_tangent,
    zero_again=lambda node: node.attrs["mode"] in ("reflect", "replicate"),
)  # fmt: skip


def _unpadded(name: str, x: Size, *, widths: Any, mode: str) -> Size:
    return Size([n - b - a for n, (b, a) in zip(x, widths)])


@op(shape=_unpadded, kernel="pad_border_grad", name="pad_border_grad")
def _pad_border_grad(k: Any, x: Any, /, *, widths: Any, mode: str) -> Any:
    """Add each border element to the element that it repeats."""


_pad_border_grad.vjp(x=lambda k, g, widths, mode: k.pad_border(g, widths=widths, mode=mode, value=0), jvp="linear")

_MODES = ("constant", "reflect", "replicate", "circular")


@lru_cache(4096)
def _widths(shape: Size, pad: tuple[int, ...], mode: str, value: Any) -> Any:
    """Return (before, after) of each dim; refuse what is wrong, and a value where one has no use."""
    if len(pad) % 2:
        raise ShapeError(f"pad: Padding length must be divisible by 2; got {len(pad)} numbers.")
    nd = len(pad) // 2
    if nd > len(shape):
        raise ShapeError(
            "pad: Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(pad)} and input of dimension {len(shape)}"
        )
    if mode not in _MODES:
        raise NotImplementedError(f"pad: Unrecognised padding mode {mode}; expected one of {', '.join(_MODES)}.")
    pairs = [(pad[2 * i], pad[2 * i + 1]) for i in reversed(range(nd))]
    widths = ((0, 0),) * (len(shape) - nd) + tuple(pairs)
    sizes = [n + b + a for n, (b, a) in zip(shape, widths)]
    if mode == "constant":
        for n, (b, a), out in zip(shape, widths, sizes):
            if out < 0:
                raise ShapeError(
                    f"pad: The input size {n}, plus negative padding {b} and {a}, resulted in a negative output size, "
                    "which is invalid. Check the padding, which should be such that the sizes stay positive."
                )
        return widths
    if value is not None:
        raise ShapeError(f'pad: Padding mode "{mode}" doesn\'t take in value argument; got value={value}.')
    if len(shape) not in (nd + 1, nd + 2) or nd not in (1, 2, 3):
        raise NotImplementedError(
            f"pad: Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now; got {len(pad)} numbers "
            f"for input of {len(shape)} dimensions."
        )
    if mode != "circular" and 0 in shape[len(shape) - nd - 1 :]:
        raise ShapeError(f"pad: Expected {nd + 1}D or {nd + 2}D input with non-zero sizes apart from the batch; got input {list(shape)}.")
    for dim, (n, (b, a), out) in reversed([*enumerate(zip(shape, widths, sizes))]):
        if mode == "reflect" and (b >= n or a >= n) and (b or a):
            raise ShapeError(
                f"pad: Padding size should be less than the corresponding input dimension, but got: padding ({b}, {a}) "
                f"at dimension {dim} of input {list(shape)}"
            )
        if mode == "circular" and (b > n or a > n):
            raise ShapeError(
                f"pad: Padding value causes wrapping around more than once; got ({b}, {a}) at dimension {dim} of input "
                f"{list(shape)}."
            )
        if out < (mode != "circular" and nd == 1) and (b or a):
            raise ShapeError(
                f"pad: input {list(shape)} is too small; calculated output size {out} at dimension {dim} for padding ({b}, {a})."
            )
    return widths


def pad(input: Any, pad: Any, mode: str = "constant", value: Any = None) -> Any:
    """Pad the last axes: (left, right) of the last one, then of the one before, and so on; negative numbers cut."""
    if not isinstance(input, TensorBase):
        raise no_tensor("pad", "input", input)
    constant = mode == "constant"
    widths = _widths(input.shape, tuple([p.__index__() for p in pad]), mode, None if constant else value or None)
    if mode in ("reflect", "replicate"):
        check_kind("pad", input.dtype, "uifc")
    value = as_stored(hold("pad", number(value or 0, "pad", "value"), input.dtype), input.dtype) if constant else 0
    return _pad_border(contiguous(input) if mode == "circular" else input, widths=widths, mode=mode, value=value)


def constant_pad_nd(input: Any, pad: Any, value: Any = 0) -> Any:
    """Pad the last axes with a number."""
    return globals()["pad"](input, pad, "constant", value)


# ---- interpolation ----


def _resized(name: str, x: Size, *, size: Any, **attrs: Any) -> Size:
    return Size((*tuple(x)[: len(x) - len(size)], *size))


def _bytes_or_floats(op: Op, d: DType) -> tuple[DType, DType]:
    if d.kind == "u" and d is not uint8:
        raise DTypeError(f"interpolate: not implemented for '{CLASS_NAMES[d.name]}'; got {d}. Convert to uint8 or floating point.")
    return d, d


def _by_kind(node: Any) -> str:
    dims, mode = len(node.attrs["size"]), node.attrs["mode"]
    times = ("", "bi", "tri")[dims - 1] if mode in ("linear", "cubic") else ""
    kind = "".join(part.title() for part in (times + mode).split("-"))
    return f"Upsample{kind}{dims}D{'Aa' * node.attrs['antialias']}Backward0"


@op(
    result=_bytes_or_floats, shape=_resized, kernel="interpolate", dtypes="uf", name="interpolate",
    grad_name_of=_by_kind, keeps_format=of_images,
)  # fmt: skip
def _interpolate(
    k: Any, x: Any, /, *, size: Any, mode: str, align_corners: bool, scales: Any, antialias: bool
) -> Any:
    """Resample the spatial axes of (N, C, *sizes) to `size`."""


_interpolate.vjp(
    x=lambda k, g, x_shape, mode, align_corners, scales, antialias: k.interpolate_grad(
        g, x_shape=x_shape, mode=mode, align_corners=align_corners, scales=scales, antialias=antialias
    ),
    jvp="linear",
)


def _resized_back(name: str, y: Size, *, x_shape: Any, **attrs: Any) -> Size:
    return Size(x_shape)


@op(shape=_resized_back, kernel="interpolate_grad", dtypes="f", name="interpolate_grad")
def _interpolate_grad(
    k: Any, y: Any, /, *, x_shape: Any, mode: str, align_corners: bool, scales: Any, antialias: bool
) -> Any:
    """Give each input element the values of the samples that it took part in."""


_interpolate_grad.vjp(
    y=lambda k, g, y_shape, mode, align_corners, scales, antialias: k.interpolate(
        g, size=tuple(y_shape)[2:], mode=mode, align_corners=align_corners, scales=scales, antialias=antialias
    ),
    jvp="linear",
)

# Mode -> (the kernel's mode, how many spatial axes it takes).
_RESAMPLE = {
    "nearest": ("nearest", (1, 2, 3)), "nearest-exact": ("nearest-exact", (1, 2, 3)), "linear": ("linear", (1,)),
    "bilinear": ("linear", (2,)), "trilinear": ("linear", (3,)), "bicubic": ("cubic", (2,)),
    "area": ("area", (1, 2, 3)), "lanczos": ("lanczos", (2,)),
}  # fmt: skip


def _wanted(size: Any, scale_factor: Any, sizes: tuple[int, ...], nd: int) -> tuple[tuple[int, ...], Any]:
    """Return the sizes that are asked for, and the factors where it is by these; `sizes` are the input's."""
    if size is not None and scale_factor is not None:
        raise ValueError("interpolate: only one of size or scale_factor should be defined; got both.")
    if size is None and scale_factor is None:
        raise ValueError("interpolate: either size or scale_factor should be defined; got neither.")
    if size is not None:
        given = tuple(size) if isinstance(size, (tuple, list)) else (size,) * nd
        if len(given) != nd:
            raise ValueError(
                "interpolate: Input and output must have the same number of spatial dimensions, but got input with "
                f"spatial dimensions of {list(sizes)} and output size of {size}. Please provide input tensor in (N, C, "
                "d1, d2, ...,dK) format and output size in (o1, o2, ...,oK) format."
            )
        try:
            return tuple([operator.index(n) for n in given]), None
        except TypeError:
            raise TypeError(
                f"interpolate: expected size to be one of int or a tuple of {nd} ints; got {size!r}. Round it first."
            ) from None
    factors = tuple(scale_factor) if isinstance(scale_factor, (tuple, list)) else (scale_factor,) * nd
    if len(factors) != nd:
        raise ValueError(
            "interpolate: Input and scale_factor must have the same number of spatial dimensions, but got input with "
            f"spatial dimensions of {list(sizes)} and scale_factor of shape {scale_factor}. Please provide input "
            "tensor in (N, C, d1, d2, ...,dK) format and scale_factor in (s1, s2, ...,sK) format."
        )
    factors = tuple([float(f) for f in factors])
    scaled = [n * f for n, f in zip(sizes, factors)]
    if not all(abs(n) < 2**63 for n in scaled):
        raise RuntimeError(f"interpolate: scaled sizes cannot be counted in int64; got scale_factor {scale_factor!r}.")
    return tuple([math.floor(n) for n in scaled]), factors


def interpolate(
    input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None, antialias: bool = False,
) -> Any:  # fmt: skip
    """Resample the spatial axes of (N, C, L), (N, C, H, W) or (N, C, D, H, W) to `size`, or by `scale_factor`."""
    corners = ("linear", "bilinear", "bicubic", "trilinear", "lanczos")
    if align_corners is not None and mode not in corners:
        raise ValueError(
            "interpolate: align_corners option can only be set with the interpolating modes: linear | bilinear | "
            f"bicubic | trilinear | lanczos; got mode={mode!r}."
        )
    if mode == "lanczos" and (align_corners or not antialias):
        raise ValueError(
            f"interpolate: mode 'lanczos' needs antialias=True and align_corners=False; got {antialias} and {align_corners}."
        )
    nd = len(input.shape) - 2
    sizes = tuple(input.shape)[2:]
    wanted, factors = _wanted(size, scale_factor, sizes, nd)
    if recompute_scale_factor:
        if size is not None:
            raise ValueError("interpolate: recompute_scale_factor is not meaningful with an explicit size.")
        factors = None
    if mode not in _RESAMPLE:
        raise NotImplementedError(f"interpolate: expected mode to be one of {' | '.join(_RESAMPLE)} (got {mode})")
    kernel_mode, axes = _RESAMPLE[mode]
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and nd == 2):
        raise ValueError(
            "interpolate: Anti-alias option is restricted to bilinear, bicubic and lanczos modes and requires a 4-D tensor as "
            f"input; got mode={mode!r} and input of {nd + 2} dimensions."
        )
    if nd not in axes:
        if nd in (1, 2, 3) and mode != "bicubic":
            raise NotImplementedError(f"interpolate: Got {nd + 2}D input, but {mode} mode needs {axes[0] + 2}D input")
        raise NotImplementedError(
            "interpolate: Input Error: Only 3D, 4D and 5D input Tensors supported (got "
            f"{nd + 2}D) for the modes: nearest | linear | bilinear | bicubic | trilinear | area | nearest-exact (got {mode})"
        )
    if min(wanted) <= 0 or 0 in tuple(input.shape)[1:]:
        raise ShapeError(
            f"interpolate: Input and output sizes should be greater than 0, but got input {list(sizes)} and output {list(wanted)}."
        )
    if kernel_mode == "area":
        return _adaptive_avg_pool(input, output_size=wanted)
    settings = {"mode": kernel_mode, "align_corners": bool(align_corners), "antialias": bool(antialias)}
    return _interpolate(input, size=wanted, scales=factors, **settings)
