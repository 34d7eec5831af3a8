"""Complex numbers: making them from parts, taking them apart (as views where memory allows), conjugation, angles."""

from __future__ import annotations

from typing import Any

from mortice.dtype import CLASS_NAMES, DType, float32, float64, get_default_dtype
from mortice.errors import DTypeError, PartError, ShapeError
from mortice.modes import autocasting
from mortice.node import TENSOR_KERNELS, node_name
from mortice.op import Op, op
from mortice.ops.elementwise import mul, same_dtypes
from mortice.ops.unary import cos, sin
from mortice.rules import promote, real_part, same
from mortice.shape import Size, broadcast

__all__ = [
    "angle", "complex", "conj", "conj_physical", "imag", "polar", "real", "resolve_conj", "resolve_neg",
    "view_as_complex", "view_as_real",
]  # fmt: skip


def _doubled(shape: Any, strides: Any) -> tuple[int, ...]:
    return tuple([2 * s for s in strides])


def _check_parts(name: str, d: DType) -> None:
    if d is not float32 and d is not float64:
        raise DTypeError(f"{name}: Expected both inputs to be Float or Double tensors; got {d}. Use .float() first.")


def _check_pair(name: str, first: tuple[str, Any], second: tuple[str, Any]) -> None:
    kinds = [getattr(x, "dtype", float32) for _, x in (first, second)]
    if any(d.kind != "f" for d in kinds):
        told = " and ".join(CLASS_NAMES[d.name] for d in kinds)
        raise DTypeError(f"{name}: Expected both inputs to be Half, Float or Double tensors but got {told}")
    words = "Expected object of scalar type {want} but got scalar type {have} for second argument"
    same_dtypes(name, first, second, words=words)


def _joined(op: Op, d: DType) -> tuple[DType, DType]:
    _check_parts(op.name, d)
    return d, d.to_complex()


@op(result=_joined, shape=broadcast, kernel="complex", name="complex", holomorphic=False)
def _complex(k: Any, x: Any, y: Any, /) -> Any:
    """Join real and imaginary parts."""


_complex.vjp(x=lambda k, g: k.real(g), y=lambda k, g: k.imag(g), jvp="linear")


def complex(real: Any, imag: Any, *, out: Any = None) -> Any:
    """Join real and imaginary parts, float32 or float64, to complex numbers."""
    _check_pair("complex", ("real", real), ("imag", imag))
    return _complex(real, imag, out=out)


@autocasting
@node_name("PolarBackward0")
def polar(abs: Any, angle: Any, *, out: Any = None) -> Any:
    """Join absolute values and angles to complex numbers."""
    _check_pair("polar", ("abs", abs), ("angle", angle))
    _check_parts("polar", abs.dtype)
    return _complex(mul(abs, cos(angle)), mul(abs, sin(angle)), out=out)


@op(
    result=real_part,
    shape=same,
    view=True,
    kernel="real",
    name="real",
    dtypes="c",
    holomorphic=False,
    scatter=lambda k, x, part: k.complex(part, k.imag(x)),
    strides=_doubled,
)
def _real(k: Any, x: Any, /) -> Any:
    """Show the real parts."""


_real.vjp(x=lambda k, g: k.astype(g, k.dtype_of(g).to_complex()), jvp="linear")


@op(
    result=real_part,
    shape=same,
    view=True,
    kernel="imag",
    name="imag",
    dtypes="c",
    holomorphic=False,
    scatter=lambda k, x, part: k.complex(k.real(x), part),
    strides=_doubled,
    start=lambda *_: 1,
)
def _imag(k: Any, x: Any, /) -> Any:
    """Show the imaginary parts."""


_imag.vjp(x=lambda k, g: k.complex(k.zeros_like(g), g), jvp="linear")


def real(input: Any) -> Any:
    """Return the real parts: of complex numbers a view, of real ones the tensor itself."""
    return _real(input) if input.dtype.is_complex else input


def imag(input: Any) -> Any:
    """Return the imaginary parts of complex numbers; a view."""
    if not input.dtype.is_complex:
        raise PartError(f"imag: imag is not implemented for tensors with non-complex dtypes; got {input.dtype}.")
    return _imag(input)


@op(result=promote, shape=same, kernel="conj", name="conj", holomorphic=False)
def _conj(k: Any, x: Any, /) -> Any:
    """Mirror at the real axis."""


_conj.vjp(x=lambda k, g: k.conj(g), jvp="linear")
TENSOR_KERNELS.replace("conj", lambda x: conj(x))


def conj(input: Any) -> Any:
    """Mirror complex numbers at the real axis; real ones are returned themselves.

    Differs from torch: the result is computed at once, in memory of its own.
    """
    return _conj(input) if input.dtype.is_complex else input


def conj_physical(input: Any, *, out: Any = None) -> Any:
    """Mirror complex numbers at the real axis, in memory of their own."""
    return _conj(input, out=out) if input.dtype.is_complex or out is not None else input


def resolve_conj(input: Any) -> Any:
    """Return the tensor itself: conjugation is never delayed."""
    return input


resolve_neg = resolve_conj


def _angle_rule(op: Op, d: DType) -> tuple[DType, DType]:
    if d.kind in "bui":
        d = get_default_dtype()
    return d, d.to_real()


@op(result=_angle_rule, shape=same, holomorphic=False)
def angle(k: Any, x: Any, /) -> Any:
    """Return the argument of complex numbers; of real ones 0, or pi below 0."""
    return k.angle(k.contiguous(x) if k.dtype_of(x).is_complex else x)


def _angle_back(k: Any, g: Any, x: Any) -> Any:
    d = k.dtype_of(x)
    if not d.is_complex:
        return k.zeros_like(g)
    re, im = k.real(x), k.imag(x)
    square = k.add(k.multiply(re, re), k.multiply(im, im))
    scale = k.divide(g, k.where(k.equal(square, 0.0), 1.0, square))
    return k.complex(k.negative(k.multiply(im, scale)), k.multiply(re, scale))


angle.vjp(x=_angle_back, jvp="elementwise")


def _pairs_out(name: str, shape: Size) -> Size:
    return Size((*shape, 2))


def _pairs_in(name: str, shape: Size) -> Size:
    return Size(tuple(shape)[:-1])


def _to_real_strides(shape: Any, strides: Any) -> tuple[int, ...]:
    return (*_doubled(shape, strides), 1)


def _to_complex_strides(shape: Any, strides: Any) -> tuple[int, ...]:
    return tuple([s // 2 for s in strides[:-1]])


def _complex_rule(op: Op, d: DType) -> tuple[DType, DType]:
    if d is not float32 and d is not float64:
        raise DTypeError(f"{op.name}: is only supported for half, float and double tensors; got {d}.")
    return d, d.to_complex()


def _as_real(k: Any, x: Any, /) -> Any:
    """Show complex numbers as pairs along a new last dim."""
    return k.view_as_real(x)


def _as_complex(k: Any, x: Any, /) -> Any:
    """Show pairs along the last dim as complex numbers."""
    return k.view_as_complex(x)


_view_as_real = op(
    result=real_part, shape=_pairs_out, view=True, kernel="view_as_real", name="view_as_real", dtypes="c",
    holomorphic=False, scatter=lambda k, x, part: k.view_as_complex(part), strides=_to_real_strides,
)(_as_real)  # fmt: skip
_view_as_complex = op(
    result=_complex_rule, shape=_pairs_in, view=True, kernel="view_as_complex", name="view_as_complex", dtypes="f",
    holomorphic=False, scatter=lambda k, x, part: k.view_as_real(part), strides=_to_complex_strides,
)(_as_complex)  # fmt: skip
# The same as copies, for backends that write in place but cannot show memory as another dtype.
_copy_as_real = op(
    result=real_part, shape=_pairs_out, kernel="view_as_real", name="copy_as_real", dtypes="c", holomorphic=False
)(_as_real)
_copy_as_complex = op(
    result=_complex_rule, shape=_pairs_in, kernel="view_as_complex", name="copy_as_complex", dtypes="f",
    holomorphic=False,
)(_as_complex)  # fmt: skip
for _fn in (_view_as_real, _copy_as_real):
    _fn.vjp(x=lambda k, g: k.view_as_complex(g), jvp="linear")
for _fn in (_view_as_complex, _copy_as_complex):
    _fn.vjp(x=lambda k, g: k.view_as_real(g), jvp="linear")


def _shares(x: Any, kernel: str) -> bool:
    backend = x._device.backend
    return not backend.mutable or backend.does(kernel)


def view_as_real(input: Any) -> Any:
    """Show complex numbers as pairs of real ones along a new last dim; a view where the backend can."""
    if not input.dtype.is_complex:
        raise DTypeError(f"view_as_real: is only supported for complex tensors; got {input.dtype}.")
    return (_view_as_real if _shares(input, "view_as_real") else _copy_as_real)(input)


@autocasting
def view_as_complex(input: Any) -> Any:
    """Show pairs along the last dim as complex numbers; a view where the backend can."""
    _complex_rule(_view_as_complex.op, input.dtype)
    if not input.shape:
        raise ShapeError("view_as_complex: Input tensor must have one or more dimensions.")
    if input.shape[-1] != 2:
        raise ShapeError(f"view_as_complex: Tensor must have a last dimension of size 2; got {list(input.shape)}.")
    strides = input.stride()
    wrong = "" if strides[-1] == 1 else "last dimension with stride 1"
    if any([s % 2 for s, n in zip(strides[:-1], input.shape) if n > 1]):
        wrong = wrong or "stride divisible by 2 for all but last dimension"
    if wrong:
        raise ShapeError(f"view_as_complex: Tensor must have a {wrong}; got strides {list(strides)}. Use .contiguous() first.")
    return (_view_as_complex if _shares(input, "view_as_complex") else _copy_as_complex)(input)
