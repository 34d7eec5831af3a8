"""NumPy's own reductions, scans and functions, in place of default bodies; half precision adds up in float32."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from mortice_cpu_numpy.quiet import _QUIET, BFLOAT16, _reset, _set, array, asarray, ndarray, quiet, quiet1, quiet2

_HALF = {np.dtype(np.float16): np.dtype(np.float32), BFLOAT16: np.dtype(np.float32)}
_COMPLEX = {np.dtype(np.float32): np.dtype(np.complex64), np.dtype(np.float64): np.dtype(np.complex128)}


# Since NumPy 2.3 `out=...` asks for an array where a scalar would come.
_ARRAYS = np.lib.NumpyVersion(np.__version__) >= "2.3.0"


def _reduce(ufunc: Any, wide: bool) -> Any:
    """Wrap a ufunc's reduction; NumPy would add half precision up in itself, PyTorch does in float32."""
    reduce = ufunc.reduce

    def kernel(self: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        d = x.dtype
        token = _set(_QUIET)
        try:
            if wide and d in _HALF:
                return asarray(reduce(x, axis, _HALF[d], None, keepdims)).astype(d, "C")
            if _ARRAYS and axis is None and not keepdims:
                return reduce(x, None, d, out=...)
            r = reduce(x, axis, d, None, keepdims)
        finally:
            _reset(token)
        # NumPy lays the result out as x is; PyTorch row by row, so that `view` can be asked for.
        return r if r.__class__ is ndarray and (r.ndim < 2 or r.flags.c_contiguous) else asarray(r, order="C")

    return kernel


def _scan(ufunc: Any) -> Any:
    """Wrap a ufunc's running form, half precision in float32."""
    accumulate = ufunc.accumulate

    def kernel(self: Any, x: Any, *, axis: int) -> Any:
        token = _set(_QUIET)
        try:
            wide = _HALF.get(x.dtype)
            return asarray(accumulate(x, axis, wide or x.dtype), x.dtype, order="C")
        finally:
            _reset(token)

    return kernel


def _ordered(x: Any) -> Any:
    """Return bfloat16 as float32, which has the same order: ml_dtypes compares without a place for nan."""
    return x.astype(np.float32) if x.dtype == BFLOAT16 else x


def _running(x: Any, axis: int, accumulate: Any) -> tuple[Any, Any]:
    """Return the extreme so far and its last position; NumPy's has no positions."""
    dtype, x = x.dtype, _ordered(x)
    values = accumulate(x, axis)
    hit = x == values
    if x.dtype.kind == "f":
        hit |= np.isnan(x)
    shape = [1] * x.ndim
    shape[axis] = x.shape[axis]
    places = np.arange(x.shape[axis]).reshape(shape)
    return values.astype(dtype, copy=False), np.maximum.accumulate(np.where(hit, places, 0), axis)


_logaddexp, _running_logaddexp = quiet2(np.logaddexp), quiet(np.logaddexp.accumulate)
_fmod, _exp, _rint = quiet2(np.fmod), quiet1(np.exp), quiet1(np.rint)


@quiet
def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


# A reduction costs NumPy three times what a dot product does, so few elements are added up as one with ones.
_ONES = {np.dtype(d): [np.ones(n, d) for n in range(65)] for d in (np.float32, np.float64)}
_ZERO = {np.dtype(d): np.zeros((), d) for d in (np.float32, np.float64)}  # NumPy takes longer over a Python number
empty, _maximum = np.empty, array(np.maximum)


class NumericOverrides:
    """What NumPy computes better or faster than the default bodies."""

    def sum_all(self, x: Any) -> Any:
        d = x.dtype
        ones = _ONES.get(d)
        if ones is None or x.size >= len(ones):
            return self.sum(x)
        total = empty((), d)
        token = _set(_QUIET)
        try:
            x.ravel().dot(ones[x.size], total)  # what it returns is a scalar
            return total
        finally:
            _reset(token)

    def mean(self: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        if axis is not None or keepdims or x.dtype not in _ONES or not x.size:
            return super().mean(x, axis=axis, keepdims=keepdims)
        total = self.sum_all(x)
        return np.divide(total, x.size, out=total)

    def relu(self, x: Any) -> Any:
        return _maximum(x, _ZERO.get(x.dtype, 0))

    sum, prod = _reduce(np.add, True), _reduce(np.multiply, True)
    max, min = _reduce(np.maximum, False), _reduce(np.minimum, False)
    cumulative_sum, cumulative_prod = _scan(np.add), _scan(np.multiply)
    logaddexp2, nextafter = staticmethod(quiet2(np.logaddexp2)), staticmethod(quiet2(np.nextafter))
    bitwise_invert = staticmethod(array(np.invert))

    # ---- elementwise ----

    def logaddexp(self: Any, x: Any, y: Any) -> Any:
        # NumPy's is for real numbers.
        d = (x if x.__class__ is ndarray else y).dtype
        return super().logaddexp(x, y) if d.kind == "c" else _logaddexp(x, y)

    def fmod(self, x: Any, y: Any) -> Any:
        return _fmod(x, y)

    def floordiv(self: Any, x: Any, y: Any) -> Any:
        whole = self.floor_divide(x, y)
        if whole.dtype.kind in "iu":
            return whole
        of_x, of_y = [np.isinf(v) if v.__class__ is ndarray else abs(v) == math.inf for v in (x, y)]
        infinite = of_x | of_y
        return np.where(infinite, self.divide(x, y), whole) if infinite.any() else whole

    def sigmoid(self: Any, x: Any) -> Any:
        wide = _HALF.get(x.dtype)
        return _sigmoid(x) if wide is None else _sigmoid(x.astype(wide)).astype(x.dtype)

    def round(self: Any, x: Any, decimals: int = 0) -> Any:
        return super().round(x, decimals) if decimals or x.dtype.kind in "iub" else _rint(x)

    def frexp(self: Any, x: Any) -> Any:
        mantissa, exponent = np.frexp(x.astype(np.float32) if x.dtype == BFLOAT16 else x)
        return asarray(mantissa).astype(x.dtype, copy=False), asarray(exponent)

    def complex(self, re: Any, im: Any) -> Any:
        re, im = np.broadcast_arrays(re, im)
        out = np.empty(re.shape, _COMPLEX[re.dtype])
        out.real, out.imag = re, im
        return out

    def view_as_real(self, x: Any) -> Any:
        parts = x.real
        return as_strided(parts, (*x.shape, 2), (*x.strides, parts.itemsize))

    def view_as_complex(self, x: Any) -> Any:
        if x.strides[-1] != x.itemsize:  # a gradient may come in any order, or repeat
            x = np.ascontiguousarray(x)
        return x.view(_COMPLEX[x.dtype])[..., 0]

    # ---- truth and positions ----

    def any(self, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        return asarray(np.logical_or.reduce(x, axis, None, None, keepdims))

    def all(self, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        return asarray(np.logical_and.reduce(x, axis, None, None, keepdims))

    def count_nonzero(self, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        return asarray(np.count_nonzero(x, axis=axis, keepdims=keepdims), np.int64)

    def argmax(self, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        return asarray(np.argmax(_ordered(x), axis=axis, keepdims=keepdims))

    def argmin(self, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        return asarray(np.argmin(_ordered(x), axis=axis, keepdims=keepdims))

    # ---- scans and searches ----

    def cumulative_max(self, x: Any, *, axis: int) -> Any:
        return _running(x, axis, np.maximum.accumulate)

    def cumulative_min(self, x: Any, *, axis: int) -> Any:
        return _running(x, axis, np.minimum.accumulate)

    def logcumsumexp(self: Any, x: Any, *, axis: int) -> Any:
        if x.dtype.kind == "c":
            return super().logcumsumexp(x, axis=axis)
        wide = _HALF.get(x.dtype)
        return _running_logaddexp(x, axis) if wide is None else _running_logaddexp(x.astype(wide), axis).astype(x.dtype)

    def searchsorted(self: Any, sorted: Any, values: Any, *, side: str = "left") -> Any:
        if sorted.ndim != 1:
            return super().searchsorted(sorted, values, side=side)
        return asarray(np.searchsorted(_ordered(sorted), _ordered(values), side))
