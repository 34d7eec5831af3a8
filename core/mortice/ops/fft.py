"""mortice.fft: discrete Fourier transforms of complex, real and Hermitian signals, over one dim or several.

Five ops do all of them: complex to complex in both directions, real to a spectrum or to half of it, and half a spectrum to real.
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

from mortice import call as _call
from mortice.backends.plugins import resolve
from mortice.dtype import CLASS_NAMES, DType, bfloat16, float16, get_default_dtype
from mortice.errors import DimError, DTypeError, ShapeError
from mortice.modes import autocasting
from mortice.op import Op, op
from mortice.ops.arguments import numpy_names
from mortice.ops.arrange import roll
from mortice.ops.complex import conj
from mortice.ops.creation import _wide, arange
from mortice.ops.data import check_dtype, finish
from mortice.ops.elementwise import div
from mortice.ops.movement import cast, clone
from mortice.ops.nn_resize import pad
from mortice.ops.views import narrow
from mortice.rules import real_part, same
from mortice.shape import Size, check_dim
from mortice.strides import layout
from mortice.tensor import TensorBase

# ---- the ops: sizes are as they should be, axes are not negative ----

# Which factor makes a transform the adjoint of its inverse: the gradient of one is the other.
_ADJOINT = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def _laid(k: Any, made: Any, order: Any) -> Any:
    """Return a result whose dims lie in memory in this order, None for row-major."""
    if order is None:
        return made
    return k.permute_dims(k.contiguous(k.permute_dims(made, axes=order)), axes=tuple(map(order.index, range(len(order)))))


def _order(x: Any, axes: tuple[int, ...], half: int) -> tuple[int, ...] | None:
    """Return the dims as PyTorch's results have them in memory: as in x, then those transformed, the halved one last or (-1) first."""
    strides = layout(x) if len(x.shape) > 1 and x._device.level is None else ()
    order = sorted(range(len(strides)), key=lambda d: (d in axes, half * (d == axes[-1]), -strides[d]))
    return None if order == sorted(order) else tuple(order)


@op(shape=same, name="fftn", dtypes="c", holomorphic=False, grad_name="FftC2CBackward0")
def _fftn(k: Any, x: Any, /, *, axes: tuple[int, ...], norm: str, order: Any = None) -> Any:
    """Transform complex numbers along axes."""
    return _laid(k, k.fftn(x, axes=axes, norm=norm), order)


@op(shape=same, name="ifftn", dtypes="c", holomorphic=False, grad_name="FftC2CBackward0")
def _ifftn(k: Any, x: Any, /, *, axes: tuple[int, ...], norm: str, order: Any = None) -> Any:
    """Transform complex numbers along axes, back."""
    return _laid(k, k.ifftn(x, axes=axes, norm=norm), order)


_fftn.vjp(x=lambda k, g, axes, norm: k.ifftn(g, axes=axes, norm=_ADJOINT[norm]), jvp="linear")
_ifftn.vjp(x=lambda k, g, axes, norm: k.fftn(g, axes=axes, norm=_ADJOINT[norm]), jvp="linear")


def complex_part(op: Op, d: DType) -> tuple[DType, DType]:
    """Real gives the complex dtype of such parts; other kinds the op refuses."""
    return d, d.to_complex() if d.kind in "fc" else d


def _shape(name: str, shape: Size, *, axes: tuple[int, ...], n: int | None = None, **_: Any) -> Size:
    return Size([size if i != axes[-1] else size // 2 + 1 if n is None else n for i, size in enumerate(shape)])


@op(
    result=complex_part, shape=_shape, name="rfftn", dtypes="f", holomorphic=False, grad_name="FftR2CBackward0",
)  # fmt: skip
def _rfftn(k: Any, x: Any, /, *, axes: tuple[int, ...], norm: str, order: Any = None) -> Any:
    """Transform real numbers along axes; along the last of them only the first half is kept."""
    return _laid(k, k.rfftn(x, axes=axes, norm=norm), order)


@op(result=complex_part, shape=same, name="fftn_real", dtypes="f", holomorphic=False, grad_name="FftR2CBackward0")
def _fftn_real(k: Any, x: Any, /, *, axes: tuple[int, ...], norm: str, order: Any = None) -> Any:
    """Transform real numbers along axes, to the whole spectrum."""
    return _laid(k, k.fftn_real(x, axes=axes, norm=norm), order)


_fftn_real.vjp(x=lambda k, g, axes, norm: k.real(k.ifftn(g, axes=axes, norm=_ADJOINT[norm])), jvp="linear")


@op(
    result=real_part, shape=_shape, name="irfftn", dtypes="c", holomorphic=False, grad_name="FftC2RBackward0",
)  # fmt: skip
def _irfftn(k: Any, x: Any, /, *, axes: tuple[int, ...], n: int, norm: str, order: Any = None) -> Any:
    """Transform the first half of a spectrum of real numbers along axes, back to n of them along the last axis."""
    return _laid(k, k.irfftn(x, axes=axes, n=n, norm=norm), order)


def _weighed(k: Any, half: Any, axis: int, n: int, weight: float) -> Any:
    """Multiply what stands in half a spectrum of n places for two: all but the first and, for even n, the last."""
    ones, pairs = n // 2 + 1 - (n - 1) // 2 - 1, (n - 1) // 2
    weights = [k.new_full(half, (count,), w) for count, w in ((1, 1), (pairs, weight), (ones, 1)) if count]
    along = tuple([-1 if i == axis else 1 for i in range(len(k.shape_of(half)))])
    return k.multiply(half, k.reshape(k.concat(weights, axis=0), along))


def _rfftn_back(k: Any, g: Any, x_shape: Any, axes: tuple[int, ...], norm: str) -> Any:
    n = x_shape[axes[-1]]
    # irfftn adds to every place its mirror image; g has no share in those.
    return k.irfftn(_weighed(k, g, axes[-1], n, 0.5), axes=axes, n=n, norm=_ADJOINT[norm])


def _irfftn_back(k: Any, g: Any, axes: tuple[int, ...], n: int, norm: str) -> Any:
    return _weighed(k, k.rfftn(g, axes=axes, norm=_ADJOINT[norm]), axes[-1], n, 2)


_rfftn.vjp(x=_rfftn_back, jvp="linear")
_irfftn.vjp(x=_irfftn_back, jvp="linear")


# ---- reading arguments ----


class Plan(NamedTuple):
    """A transform that is asked for: of what, along which dims, to which sizes (None: as they are)."""

    name: str
    x: Any
    axes: tuple[int, ...]
    sizes: tuple[int | None, ...]
    norm: str


def _check(name: str, x: Any, norm: Any) -> str:
    if not isinstance(x, TensorBase):
        raise TypeError(f"{name}: expected a Tensor; got {type(x).__name__}. Use mortice.tensor(...) first.")
    if norm is not None and not isinstance(norm, str):
        raise TypeError(f"{name}: expected norm to be a str or None; got {type(norm).__name__}.")
    if norm not in (None, *_ADJOINT):
        raise RuntimeError(f'{name}: Invalid normalization mode: "{norm}"; expected one of {", ".join(_ADJOINT)}.')
    return norm or "backward"


def whole(name: str, what: str, value: Any) -> int:
    """Return an argument that must be an int."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: expected {what} to be an int; got {type(value).__name__}.") from None


def _wrapped(name: str, x: Any, dim: Any) -> int:
    if not x.shape:
        raise DimError(f"{name}: Dimension specified as {dim} but tensor has no dimensions.")
    return check_dim(name, dim, len(x.shape))


def _points(name: str, n: Any) -> int:
    n = whole(name, "the number of points", n)
    if n < 1:
        raise ShapeError(f"{name}: Invalid number of data points ({n}) specified; expected at least 1.")
    return n


def one(name: str, x: Any, n: Any, dim: Any, norm: Any) -> Plan:
    """Read the arguments of a transform along one dim."""
    norm = _check(name, x, norm)
    return Plan(name, x, (_wrapped(name, x, dim),), (None if n is None else _points(name, n),), norm)


def _many(name: str, x: Any, s: Any, dim: Any, norm: Any) -> Plan:
    """Read the arguments of a transform along several dims; without any, all of them."""
    norm = _check(name, x, norm)
    sizes = None if s is None else tuple(s) if isinstance(s, (tuple, list)) else (s,)
    if dim is not None:
        dims = tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
        axes = tuple([_wrapped(name, x, d) for d in dims])
        if len(set(axes)) != len(axes):
            raise ShapeError(f"{name}: FFT dims must be unique; got {dims}.")
        if sizes is not None and len(sizes) != len(axes):
            raise ShapeError(
                f"{name}: When given, dim and shape arguments must have the same length; got {len(axes)} dims and "
                f"{len(sizes)} sizes."
            )
    else:
        ndim = len(x.shape)
        if sizes is not None and len(sizes) > ndim:
            raise ShapeError(f"{name}: Got shape with {len(sizes)} values but input tensor only has {ndim} dimensions.")
        axes = tuple(range(0 if sizes is None else ndim - len(sizes), ndim))
    if sizes is None:
        sizes = (None,) * len(axes)
    return Plan(name, x, axes, tuple([None if n is None or n == -1 else _points(name, n) for n in sizes]), norm)


# ---- carrying plans out ----


def _ready(p: Plan, kinds: str) -> Any:
    """Return the input in a dtype of these kinds."""
    d = p.x.dtype
    if d.kind in "bui":
        d = get_default_dtype()
    if d is float16 or d is bfloat16:
        raise DTypeError(f"{p.name}: not implemented for '{CLASS_NAMES[d.name]}'; got {d}. Use .float() first.")
    if d.is_complex and kinds == "f":
        kind = "real" if p.name in ("fft.rfft", "fft.ihfft") else "real-valued"
        raise DTypeError(f"{p.name} expects a {kind} input tensor, but got {CLASS_NAMES[d.name]}. Use mortice.real(...), or fft.fft.")
    return cast(p.x, d if kinds == "f" else d.to_complex())


def _resized(name: str, x: Any, axes: tuple[int, ...], sizes: tuple[int | None, ...]) -> Any:
    """Cut each of the dims to its size, or fill it up with zeros."""
    shape, more = tuple(x.shape), {}
    for axis, size in zip(axes, sizes):
        n = shape[axis]
        size = n if size is None else size
        if size < n:
            x = narrow(x, axis, 0, size)
        elif size > n:
            more[axis] = size - n
        elif not n:
            _points(name, n)
    return pad(x, [w for d in reversed(range(len(shape))) for w in (0, more.get(d, 0))]) if more else x


def _give(p: Plan, out: Any, made: Any) -> Any:
    if isinstance(out, TensorBase) and out.dtype.kind != made.dtype.kind:
        kind = "complex" if made.dtype.is_complex else "floating point"
        raise DTypeError(f"{p.name} expects a {kind} output tensor, but got {CLASS_NAMES[out.dtype.name]}")
    return _call.give(p.name, out, made)


def to_spectrum(p: Plan, transform: Any, out: Any = None) -> Any:
    """Transform complex numbers, or real ones."""
    if p.axes and not p.x.dtype.is_complex:  # back is forth with conjugates, of which real numbers are their own
        back = transform is _ifftn
        x = _resized(p.name, _ready(p, "f"), p.axes, p.sizes)
        made = _fftn_real(x, axes=p.axes, norm=_ADJOINT[p.norm] if back else p.norm, order=_order(x, p.axes, 0))
        return _give(p, out, conj(made) if back else made)
    x = _resized(p.name, _ready(p, "c"), p.axes, p.sizes)
    return _give(p, out, transform(x, axes=p.axes, norm=p.norm, order=_order(x, p.axes, 0)) if p.axes else clone(x))


def _some_axis(p: Plan) -> None:
    if not p.axes:
        raise ShapeError(f"{p.name}: must transform at least one axis; got input of shape {list(p.x.shape)}.")


def to_half(p: Plan, out: Any = None, inverse: bool = False) -> Any:
    """Transform real numbers to half a spectrum, or back to half a Hermitian signal."""
    _some_axis(p)
    x = _resized(p.name, _ready(p, "f"), p.axes, p.sizes)
    norm = _ADJOINT[p.norm] if inverse else p.norm
    made = _rfftn(x, axes=p.axes, norm=norm, order=_order(x, p.axes, -1 if inverse else 1))
    return _give(p, out, conj(made) if inverse else made)


def to_real(p: Plan, out: Any = None, forward: bool = False) -> Any:
    """Transform half a spectrum to real numbers, or half a Hermitian signal to its spectrum."""
    _some_axis(p)
    x = _ready(p, "c")
    n = _points(p.name, 2 * (x.shape[p.axes[-1]] - 1) if p.sizes[-1] is None else p.sizes[-1])
    x = _resized(p.name, x, p.axes, (*p.sizes[:-1], n // 2 + 1))
    norm = _ADJOINT[p.norm] if forward else p.norm
    made = _irfftn(conj(x) if forward else x, axes=p.axes, n=n, norm=norm, order=_order(x, p.axes, 1))
    return _give(p, out, made)


def _public(fn: Any) -> Any:
    return numpy_names(autocasting(fn))


# ---- one dim ----


@_public
def fft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Any = None) -> Any:
    """Transform a signal of n points along a dim: it is cut to n, or filled up with zeros."""
    return to_spectrum(one("fft.fft", input, n, dim, norm), _fftn, out)


@_public
def ifft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Any = None) -> Any:
    """Transform a spectrum of n points back along a dim."""
    return to_spectrum(one("fft.ifft", input, n, dim, norm), _ifftn, out)


@_public
def rfft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Any = None) -> Any:
    """Transform n real numbers along a dim to the first n // 2 + 1 places of their spectrum, which imply the others."""
    return to_half(one("fft.rfft", input, n, dim, norm), out)


@_public
def irfft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Any = None) -> Any:
    """Transform the first half of a spectrum back to n real numbers along a dim; without n, to an even number."""
    return to_real(one("fft.irfft", input, n, dim, norm), out)


@_public
def hfft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Any = None) -> Any:
    """Transform the first half of a Hermitian signal along a dim to its spectrum of n real numbers."""
    return to_real(one("fft.hfft", input, n, dim, norm), out, forward=True)


@_public
def ihfft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Any = None) -> Any:
    """Transform a spectrum of n real numbers back along a dim to the first half of a Hermitian signal."""
    return to_half(one("fft.ihfft", input, n, dim, norm), out, inverse=True)


# ---- two dims ----


@_public
def fft2(input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *, out: Any = None) -> Any:
    """Transform a signal along two dims, cut or filled up to the sizes s."""
    return to_spectrum(_many("fft.fft2", input, s, dim, norm), _fftn, out)


@_public
def ifft2(input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *, out: Any = None) -> Any:
    """Transform a spectrum back along two dims."""
    return to_spectrum(_many("fft.ifft2", input, s, dim, norm), _ifftn, out)


@_public
def rfft2(input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *, out: Any = None) -> Any:
    """Transform real numbers along two dims, keeping the first half along the last."""
    return to_half(_many("fft.rfft2", input, s, dim, norm), out)


@_public
def irfft2(input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *, out: Any = None) -> Any:
    """Transform half a spectrum back to real numbers along two dims."""
    return to_real(_many("fft.irfft2", input, s, dim, norm), out)


@numpy_names
def hfft2(input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *, out: Any = None) -> Any:
    """Transform half a Hermitian signal along two dims to its real spectrum."""
    return to_real(_many("fft.hfft2", input, s, dim, norm), out, forward=True)


@numpy_names
def ihfft2(input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *, out: Any = None) -> Any:
    """Transform a real spectrum back along two dims to half a Hermitian signal."""
    return to_half(_many("fft.ihfft2", input, s, dim, norm), out, inverse=True)


# ---- any dims ----


@_public
def fftn(input: Any, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Any = None) -> Any:
    """Transform a signal along dims, cut or filled up to the sizes s; along all, or the last len(s), unless given."""
    return to_spectrum(_many("fft.fftn", input, s, dim, norm), _fftn, out)


@_public
def ifftn(input: Any, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Any = None) -> Any:
    """Transform a spectrum back along dims."""
    return to_spectrum(_many("fft.ifftn", input, s, dim, norm), _ifftn, out)


@_public
def rfftn(input: Any, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Any = None) -> Any:
    """Transform real numbers along dims, keeping the first half along the last of them."""
    return to_half(_many("fft.rfftn", input, s, dim, norm), out)


@_public
def irfftn(input: Any, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Any = None) -> Any:
    """Transform half a spectrum back to real numbers along dims."""
    return to_real(_many("fft.irfftn", input, s, dim, norm), out)


@numpy_names
def hfftn(input: Any, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Any = None) -> Any:
    """Transform half a Hermitian signal along dims to its real spectrum."""
    return to_real(_many("fft.hfftn", input, s, dim, norm), out, forward=True)


@numpy_names
def ihfftn(input: Any, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Any = None) -> Any:
    """Transform a real spectrum back along dims to half a Hermitian signal."""
    return to_half(_many("fft.ihfftn", input, s, dim, norm), out, inverse=True)


# ---- frequencies ----


def _frequencies(
    name: str, n: Any, counted: Any, d: float, out: Any, dtype: Any, device: Any, requires_grad: bool
) -> Any:
    """Return the numbers in the range `counted(n)` over the time that n points take; negative ones come last."""
    n, where = whole(name, "n", n), resolve(device)
    if n < 0:
        raise ShapeError(f"{name}: expected n to be at least 0; got {n}.")
    dtype = check_dtype(name, dtype or (get_default_dtype() if out is None else out.dtype), where, computes=True)
    if dtype.kind not in "fc":
        raise DTypeError(f"{name}: requires a floating point or complex dtype; got {dtype}.")
    start, stop = counted(n)
    count = arange(start, stop, dtype=_wide(where.backend, where, dtype), device=where)
    made = cast(div(roll(count, start), n * d), dtype)
    return finish(_call.give(name, out, made), requires_grad)


def fftfreq(
    n: int, d: float = 1.0, *, out: Any = None, dtype: DType | None = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Return the frequencies in the order of fft, for n points that are d apart: from 0 up, then the negative ones."""
    counted = lambda n: (-(n // 2), n - n // 2)
    return _frequencies("fft.fftfreq", n, counted, d, out, dtype, device, requires_grad)


def rfftfreq(
    n: int, d: float = 1.0, *, out: Any = None, dtype: DType | None = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Return the frequencies in the order of rfft, for n points that are d apart: from 0 up."""
    return _frequencies("fft.rfftfreq", n, lambda n: (0, n // 2 + 1), d, out, dtype, device, requires_grad)


def _shifted(name: str, x: Any, dim: Any, back: bool) -> Any:
    if not isinstance(x, TensorBase):
        raise TypeError(f"{name}: expected a Tensor; got {type(x).__name__}.")
    dims = range(len(x.shape)) if dim is None else dim if isinstance(dim, (tuple, list)) else (dim,)
    axes = [check_dim(name, d, len(x.shape)) for d in dims]
    if not axes:
        raise ShapeError(f"{name}: expected at least one dim to shift; got input of shape {list(x.shape)}.")
    return roll(x, [-(x.shape[a] // 2) if back else x.shape[a] // 2 for a in axes], axes)


@numpy_names
def fftshift(input: Any, dim: Any = None) -> Any:
    """Roll the frequency 0 from the start to the middle of dims; of all, unless given."""
    return _shifted("fft.fftshift", input, dim, False)


@numpy_names
def ifftshift(input: Any, dim: Any = None) -> Any:
    """Roll the frequency 0 from the middle back to the start of dims."""
    return _shifted("fft.ifftshift", input, dim, True)
