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
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def array(ufunc: Any) -> Any:
    """Wrap a ufunc that raises no floating point events: NumPy returns scalars for 0-d arrays, kernels arrays."""

    def kernel(*args: Any) -> Any:
        r = ufunc(*args)
        return r if r.__class__ is ndarray else asarray(r)

    return kernel


def compared(ufunc: Any) -> Any:
    """Wrap a comparison: of NumPy's own dtypes it raises no events, of ml_dtypes' bfloat16 it does with nan."""

    def kernel(x: Any, y: Any) -> Any:
        if (x if x.__class__ is ndarray else y).dtype is BFLOAT16:
            with np.errstate(all="ignore"):
                return asarray(ufunc(x, y))
        r = ufunc(x, y)
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


def _rounded(r: Any, x: Any, y: Any) -> Any:
    """Round what bfloat16 and a number give: NumPy, to which the dtype is foreign, leaves it in float32."""
    d = getattr(x, "dtype", None) or getattr(y, "dtype", None)
    return r.astype(d) if d == BFLOAT16 and r.dtype != d else r


def quiet2(ufunc: Any) -> Any:
    """Wrap a ufunc of two arrays."""

    def kernel(x: Any, y: Any) -> Any:
        token = _set(_QUIET)
        try:
            r = ufunc(x, y)
        finally:
            _reset(token)
        if r.__class__ is ndarray and x.__class__ is y.__class__:
            return r
        return asarray(_rounded(r, x, y))

    return kernel


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
