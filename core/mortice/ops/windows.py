"""Window functions: `hann_window` and its like, periodic by default, and those of `mortice.signal.windows`, symmetric.

A window of span n is a function of the points 0, 1, ..., n; a periodic one leaves out the last, with which it repeats.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from mortice.backends.plugins import resolve
from mortice.dtype import DType, float32, float64, get_default_dtype
from mortice.errors import DTypeError, ShapeError
from mortice.layout import strided
from mortice.ops.bounds import clamp_min
from mortice.ops.creation import _wide, arange, filled, full_like
from mortice.ops.data import check_dtype, finish
from mortice.ops.fft import whole
from mortice.ops.movement import cast
from mortice.ops.special_bessel import i0e
from mortice.ops.unary import abs, cos, exp, sin, sqrt
from mortice.shape import Size

__all__ = ["bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window"]

# A formula gets the points, in the widest float of the device, and the span.
Formula = Callable[[Any, int], Any]


def _window(
    name: str, length: Any, formula: Formula, symmetric: bool, dtype: DType, device: Any, requires_grad: bool,
    pin_memory: bool | None = False,
) -> Any:  # fmt: skip
    """Evaluate a formula at the points of a window."""
    n, where = whole(name, "the window length", length), resolve(device)
    if n < 0:
        raise ShapeError(f"{name} requires non-negative window_length, got window_length={n}")
    dtype = check_dtype(name, dtype, where, computes=True)
    if n < 2:
        return finish(filled(name, Size((n,)), 1.0, dtype, where), requires_grad, pin_memory)
    points = arange(n, dtype=_wide(where.backend, where, dtype), device=where)
    return finish(cast(formula(points, n - 1 if symmetric else n), dtype), requires_grad, pin_memory)


# ---- formulas ----


def _cosines(*weights: float) -> Formula:
    """Sum cosines of 0, 1, 2, ... turns over the span, with signs that alternate."""

    def formula(points: Any, span: int) -> Any:
        total: Any = weights[0]
        for turns, w in enumerate(weights[1:], 1):
            total = cos(points * (2 * math.pi * turns / span)) * (-w if turns % 2 else w) + total
        return total if len(weights) > 1 else full_like(points, total)

    return formula


_HANN, _HAMMING, _BLACKMAN = _cosines(0.5, 0.5), _cosines(0.54, 0.46), _cosines(0.42, 0.5, 0.08)
_NUTTALL = _cosines(0.3635819, 0.4891775, 0.1365995, 0.0106411)


def _triangle(points: Any, span: int) -> Any:
    return 1 - abs(points * (2 / span) - 1)


def _half_wave(points: Any, span: int) -> Any:
    return sin((points + 0.5) * (math.pi / (span + 1)))


def _kaiser(beta: float) -> Formula:
    beta = math.fabs(beta)
    # The Bessel function I0(x) is the mean of exp(x cos t); so many even steps give all digits. Exponents are counted
    # from beta, which lets no beta overflow, and that of a point is a product, not a difference: its digits are the result's.
    steps = 24 + math.ceil(5 * math.sqrt(beta))
    below = [-2 * math.sin(math.pi * (i + 0.5) / steps / 2) ** 2 for i in range(steps)]
    top = sum([math.exp(beta * b) for b in below]) / steps  # i0e(beta)

    def formula(points: Any, span: int) -> Any:
        place = points * (2 / span)
        height = sqrt(clamp_min(place * (2 - place), 0))
        drop = (place - 1) ** 2 / (1 + height)  # 1 - height
        return i0e(height * beta) * exp(drop * -beta) / top

    return formula


# ---- mortice.hann_window and its like ----


def _periodic(
    name: str, length: Any, formula: Formula, periodic: bool, dtype: Any, layout: Any, device: Any, requires_grad: bool,
    pin_memory: bool | None,
) -> Any:  # fmt: skip
    dtype = get_default_dtype() if dtype is None else dtype
    if layout not in (None, strided):
        raise RuntimeError(f"{name}: is not implemented for sparse types; got {layout}. Leave out layout=.")
    if isinstance(dtype, DType) and dtype.kind != "f":
        raise DTypeError(f"{name}: expects floating point dtypes; got {dtype}.")
    return _window(name, length, formula, not periodic, dtype, device, requires_grad, pin_memory)


def hann_window(
    window_length: int, periodic: bool = True, *, dtype: DType | None = None, layout: Any = None, device: Any = None,
    pin_memory: bool | None = False, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Return a raised cosine."""
    return _periodic("hann_window", window_length, _HANN, periodic, dtype, layout, device, requires_grad, pin_memory)


def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, dtype: DType | None = None,
    layout: Any = None, device: Any = None, pin_memory: bool | None = False, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Return alpha minus beta times a cosine."""
    return _periodic("hamming_window", window_length, _cosines(alpha, beta), periodic, dtype, layout, device, requires_grad, pin_memory)


def blackman_window(
    window_length: int, periodic: bool = True, *, dtype: DType | None = None, layout: Any = None, device: Any = None,
    pin_memory: bool | None = False, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Return Blackman's sum of three cosines."""
    return _periodic("blackman_window", window_length, _BLACKMAN, periodic, dtype, layout, device, requires_grad, pin_memory)


def bartlett_window(
    window_length: int, periodic: bool = True, *, dtype: DType | None = None, layout: Any = None, device: Any = None,
    pin_memory: bool | None = False, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Return a triangle."""
    return _periodic("bartlett_window", window_length, _triangle, periodic, dtype, layout, device, requires_grad, pin_memory)


def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: DType | None = None, layout: Any = None,
    device: Any = None, pin_memory: bool | None = False, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Return Kaiser's window, narrower as beta grows."""
    return _periodic("kaiser_window", window_length, _kaiser(beta), periodic, dtype, layout, device, requires_grad, pin_memory)


# ---- mortice.signal.windows ----


def _signal_window(
    name: str, M: Any, formula: Formula, sym: bool, dtype: Any, layout: Any, device: Any, requires_grad: bool
) -> Any:
    dtype = get_default_dtype() if dtype is None else dtype
    if M < 0:
        raise ValueError(f"signal.windows.{name} requires non-negative window length, got M={M}")
    if layout not in (None, strided):
        raise ValueError(f"signal.windows.{name} is implemented for strided tensors only, got: {layout}")
    if dtype is not float32 and dtype is not float64:
        raise ValueError(f"signal.windows.{name} expects float32 or float64 dtypes, got: {dtype}")
    M = 0 if M == 0 else 1 if M == 1 else M  # these two may be floats, as in PyTorch
    return _window(f"signal.windows.{name}", M, formula, sym, dtype, device, requires_grad)


def bartlett(
    M: int, *, sym: bool = True, dtype: DType | None = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Return a triangle."""
    return _signal_window("bartlett", M, _triangle, sym, dtype, layout, device, requires_grad)


def blackman(
    M: int, *, sym: bool = True, dtype: DType | None = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Return Blackman's sum of three cosines."""
    return _signal_window("blackman", M, _BLACKMAN, sym, dtype, layout, device, requires_grad)


def cosine(
    M: int, *, sym: bool = True, dtype: DType | None = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Return half a wave."""
    return _signal_window("cosine", M, _half_wave, sym, dtype, layout, device, requires_grad)


def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, dtype: DType | None = None,
    layout: Any = strided, device: Any = None, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Return what decays by e within tau on both sides of the center, by default the middle."""
    if tau <= 0:
        raise ValueError(f"signal.windows.exponential: Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError(
            f"signal.windows.exponential: Center must be None for symmetric windows; got {center}. Pass sym=False."
        )
    formula = lambda points, span: exp(abs(points - (span / 2 if center is None else center)) / -tau)
    return _signal_window("exponential", M, formula, sym, dtype, layout, device, requires_grad)


def gaussian(
    M: int, *, std: float = 1.0, sym: bool = True, dtype: DType | None = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Return a bell curve of a standard deviation."""
    if std <= 0:
        raise ValueError(f"signal.windows.gaussian: Standard deviation must be positive, got: {std} instead.")
    formula = lambda points, span: exp(((points - span / 2) / std) ** 2 * -0.5)
    return _signal_window("gaussian", M, formula, sym, dtype, layout, device, requires_grad)


def general_cosine(
    M: int, *, a: Iterable[float], sym: bool = True, dtype: DType | None = None, layout: Any = strided,
    device: Any = None, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Return the sum of cosines of 0, 1, 2, ... turns with the weights a, whose signs alternate."""
    if not isinstance(a, Iterable):
        raise TypeError(f"signal.windows.general_cosine: Coefficients must be a list/tuple; got {type(a).__name__}.")
    weights = tuple(a)
    if not weights:
        raise ValueError("signal.windows.general_cosine: Coefficients cannot be empty; got 0 of them.")
    return _signal_window("general_cosine", M, _cosines(*weights), sym, dtype, layout, device, requires_grad)


def general_hamming(
    M: int, *, alpha: float = 0.54, sym: bool = True, dtype: DType | None = None, layout: Any = strided,
    device: Any = None, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Return alpha minus 1 - alpha times a cosine."""
    formula = _cosines(alpha, 1 - alpha)
    return _signal_window("general_hamming", M, formula, sym, dtype, layout, device, requires_grad)


def hamming(
    M: int, *, sym: bool = True, dtype: DType | None = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Return general_hamming with alpha = 0.54."""
    return _signal_window("hamming", M, _HAMMING, sym, dtype, layout, device, requires_grad)


def hann(
    M: int, *, sym: bool = True, dtype: DType | None = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Return a raised cosine."""
    return _signal_window("hann", M, _HANN, sym, dtype, layout, device, requires_grad)


def kaiser(
    M: int, *, beta: float = 12.0, sym: bool = True, dtype: DType | None = None, layout: Any = strided,
    device: Any = None, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Return Kaiser's window, narrower as beta grows."""
    if beta < 0:
        raise ValueError(f"signal.windows.kaiser: beta must be non-negative, got: {beta} instead.")
    return _signal_window("kaiser", M, _kaiser(beta), sym, dtype, layout, device, requires_grad)


def nuttall(
    M: int, *, sym: bool = True, dtype: DType | None = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Return Nuttall's sum of four cosines."""
    return _signal_window("nuttall", M, _NUTTALL, sym, dtype, layout, device, requires_grad)
