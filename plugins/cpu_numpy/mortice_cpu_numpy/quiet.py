"""Wrappers that keep NumPy's kernels silent about floating point events and their results arrays."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy._core import umath as _umath

# NumPy reports floating point events (1/0, log(-1)) as warnings, and users may have turned them into exceptions;
# results here are IEEE's, silently, as in PyTorch. `np.errstate` costs more than a small operation, so kernels set the
# context variable behind it themselves.
_STATE = _umath._extobj_contextvar
_QUIET = _umath._make_extobj(all="ignore")
_set, _reset = _STATE.set, _STATE.reset
ndarray, asarray = np.ndarray, np.asarray
BFLOAT16, FLOAT16 = np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16)


def array(ufunc: Any) -> Any:
    """Wrap a ufunc that raises no floating point events: NumPy returns scalars for 0-d arrays, kernels arrays."""

    def kernel(*args: Any) -> Any:
        r = ufunc(*args)
        return r if r.__class__ is ndarray else asarray(r)

    return kernel


def compared(ufunc: Any) -> Any:
    """Wrap a comparison: events come from ml_dtypes' bfloat16 with nan alone, and from numbers that a dtype cannot hold."""

    def kernel(x: Any, y: Any) -> Any:
        d = (x if x.__class__ is ndarray else y).dtype
        if d is not BFLOAT16 and (x.__class__ is y.__class__ or (y.__class__ is float and -65504 <= y <= 65504)):
            r = ufunc(x, y)
        else:
            token = _set(_QUIET)
            try:
                # NumPy takes a number beside bfloat16 for float64; what compares is the number as the dtype holds it.
                r = ufunc(x, y) if d is not BFLOAT16 else ufunc(asarray(x, d), asarray(y, d))
            finally:
                _reset(token)
        return r if r.__class__ is ndarray else asarray(r)

    return kernel


def quiet1(ufunc: Any) -> Any:
    """Wrap a ufunc of one array."""

    def kernel(x: Any) -> Any:
        token = _set(_QUIET)
        try:
            r = ufunc(x)
        finally:
            _reset(token)
        return r if r.__class__ is ndarray else asarray(r)

    return kernel


def _with_number(ufunc: Any, x: Any, y: Any) -> Any:
    """Compute with a number, which counts in full beside 16-bit floats, as in PyTorch: 1e5 * 0.5 is no infinity."""
    d = getattr(x, "dtype", None)
    number = x if d is None else y
    if isinstance(number, (list, tuple, str)):  # NumPy would make an array of it
        raise TypeError(f"{ufunc.__name__}: expected an array or a number; got {type(number).__name__}.")
    d = d or y.dtype
    if d != FLOAT16 and d != BFLOAT16:
        return ufunc(x, y)
    return ufunc(*(a if hasattr(a, "dtype") else np.float32(a) for a in (x, y))).astype(d)


def quiet2(ufunc: Any) -> Any:
    """Wrap a ufunc of two arrays, or of an array and a number."""

    def kernel(x: Any, y: Any) -> Any:
        token = _set(_QUIET)
        try:
            r = ufunc(x, y) if x.__class__ is y.__class__ else _with_number(ufunc, x, y)
        finally:
            _reset(token)
        return r if r.__class__ is ndarray else asarray(r)

    return kernel


def add_at(total: Any, where: Any, values: Any) -> None:
    """Add values in place, those of one position one after the other."""
    token = _set(_QUIET)
    try:
        np.add.at(total, where, values)
    finally:
        _reset(token)


def quiet(fn: Any) -> Any:
    """Wrap any function of arrays."""

    def kernel(*args: Any, **attrs: Any) -> Any:
        token = _set(_QUIET)
        try:
            r = fn(*args, **attrs)
        finally:
            _reset(token)
        return r if r.__class__ is ndarray else asarray(r)

    return kernel
