"""cpu_numpy: the differences between NumPy and the kernels that the core asks for, each with its reason."""

from __future__ import annotations

import functools
import math
from typing import Any

import ml_dtypes
import numpy as np

from mortice.backends import Backend, HostBuffer, NamespaceBackend
from mortice.backends.dlpack import relabel
from mortice_cpu_numpy.fft import FFTOverrides
from mortice_cpu_numpy.linalg import LinalgOverrides
from mortice_cpu_numpy.movement import MovementOverrides
from mortice_cpu_numpy.nn import NNOverrides
from mortice_cpu_numpy.numeric import NumericOverrides
from mortice_cpu_numpy.optim import NumPyOptim
from mortice_cpu_numpy.quiet import _QUIET, BFLOAT16, _reset, _set, array, asarray, compared, ndarray, quiet1, quiet2
from mortice_cpu_numpy.quiet import add_at as _add_at
from mortice_cpu_numpy.random import random_bits

_expm1, _log1p = quiet1(np.expm1), quiet1(np.log1p)


# NumPy lays these results out as their operands are; PyTorch row by row, so that `view` can be asked for.
_ROW_MAJOR = "any all scatter_add scatter_write index_write median cumulative_max cumulative_min fftn ifftn rfftn irfftn"


def _row_major(kernel: Any) -> Any:
    @functools.wraps(kernel)
    def call(*args: Any, **kwargs: Any) -> Any:
        r = kernel(*args, **kwargs)
        if r.__class__ is tuple:
            return tuple([np.asarray(part, order="C") for part in r])
        return r if r.flags.c_contiguous else np.array(r, order="C")

    return call


def _order(x: Any) -> Any:
    # Where elements repeat NumPy would put their copies side by side.
    return "C" if 0 in x.strides and any(n > 1 and not s for n, s in zip(x.shape, x.strides)) else "K"


class _Namespace:
    """NumPy with bfloat16 from ml_dtypes added, under array-API names."""

    bfloat16 = ml_dtypes.bfloat16
    bool = np.bool_

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


class NumPyBackend(
    NumPyOptim, NNOverrides, LinalgOverrides, NumericOverrides, MovementOverrides, FFTOverrides, NamespaceBackend
):
    """NumPy on the CPU."""

    name = "cpu_numpy"
    random_bits = random_bits

    def __init__(self) -> None:
        super().__init__(_Namespace(), {"cpu": None}, mutable=True)
        self._dtypes = {d: np.dtype(native) for d, native in self._dtypes.items()}
        self._names = {native: d for d, native in self._dtypes.items()}
        self._device = self.device("cpu")
        for names, wrap in (
            ("floor logical_not bitwise_and bitwise_or bitwise_xor isnan logical_and logical_or logical_xor signbit "
             "isfinite isinf copysign trunc ceil", array),
            ("equal less not_equal greater less_equal greater_equal", compared),
            ("exp log sqrt sin cos tanh reciprocal expm1 log2 log10 exp2 tan sinh cosh", quiet1),
            ("add subtract multiply divide maximum minimum hypot atan2", quiet2),
        ):  # fmt: skip
            for name in names.split():
                if name not in type(self).__dict__:
                    setattr(self, name, wrap(getattr(np, name)))
        for name, native in (("asin", "arcsin"), ("acos", "arccos"), ("atan", "arctan"), ("asinh", "arcsinh"),
                             ("acosh", "arccosh"), ("atanh", "arctanh")):  # fmt: skip
            setattr(self, name, quiet1(getattr(np, native)))
        for name in _ROW_MAJOR.split():
            setattr(self, name, _row_major(getattr(self, name)))
        self.negative = quiet1(np.negative)
        self.abs = quiet1(np.absolute)

    # ---- housekeeping ----

    def device_of(self, x: Any) -> Any:
        return self._device

    def from_host(self, host: HostBuffer, device: Any) -> Any:
        return np.array(self.share_host(host, device))

    def share_host(self, host: HostBuffer, device: Any) -> Any:
        dtype = self.native(host.dtype)
        if host.raw:
            return np.frombuffer(host.view, dtype=dtype).reshape(host.shape)
        return np.asarray(host.view).view(dtype) if host.view.ndim else np.asarray(host.view).view(dtype).reshape(())

    def to_host(self, x: Any) -> HostBuffer:
        # bfloat16 has no PEP 3118 code, so it goes as bytes.
        if x.dtype == ml_dtypes.bfloat16:
            view = memoryview(np.ascontiguousarray(x).view(np.uint8).reshape(-1))
            return HostBuffer(view, x.shape, self.dtype_of(x))
        return HostBuffer(memoryview(x), x.shape, self.dtype_of(x))

    def to_dlpack(self, x: Any, *, stream: Any = None, max_version: Any = None) -> Any:
        # NumPy knows no bfloat16 here; its memory goes as that of another dtype, under the right label.
        if x.dtype == ml_dtypes.bfloat16:
            return relabel(super().to_dlpack(x.view(np.uint16), stream=stream, max_version=max_version), self.dtype_of(x))
        return super().to_dlpack(x, stream=stream, max_version=max_version)

    # np.from_dlpack knows no bfloat16 either.
    from_dlpack = Backend.from_dlpack

    def strides_of(self, x: Any) -> tuple[int, ...] | None:
        size = x.itemsize
        return tuple([s // size for s in x.strides])

    def address(self, x: Any) -> int:
        return x.__array_interface__["data"][0]  # type: ignore[no-any-return]

    def owns(self, x: Any) -> bool:
        return x.base is None

    def is_contiguous(self, x: Any) -> bool:
        return x.flags.c_contiguous  # type: ignore[no-any-return]

    reshape_view = staticmethod(np.ndarray.reshape)

    # ---- kernels ----

    def full(self, shape: Any, value: Any, *, dtype: Any, device: Any) -> Any:
        return np.full(shape, value, self._dtypes[dtype])

    def arange(self, start: Any, stop: Any, step: Any, *, dtype: Any, device: Any) -> Any:
        return np.arange(start, stop, step).astype(self._dtypes[dtype])

    def astype(self, x: Any, dtype: Any) -> Any:
        token = _set(_QUIET)
        try:
            native = self._dtypes[dtype]
            # NumPy warns where the imaginary part is dropped; casting to real is asked for by then.
            return (x.real if x.dtype.kind == "c" and native.kind not in "cb" else x).astype(native, _order(x))
        finally:
            _reset(token)

    def copy(self, x: Any) -> Any:
        return np.array(x, order=_order(x))

    def expm1(self, x: Any) -> Any:
        # NumPy's is nan for complex numbers with an infinite part.
        return Backend.expm1(self, x) if x.dtype.kind == "c" else _expm1(x)

    def log1p(self, x: Any) -> Any:
        # NumPy's loses small complex numbers beside the 1.
        return Backend.log1p(self, x) if x.dtype.kind == "c" else _log1p(x)

    def getitem(self, x: Any, key: Any) -> Any:
        r = x[key]
        # An index of ints alone gives a NumPy scalar; with an Ellipsis it gives a 0-d view.
        return r if r.__class__ is ndarray else x[(*key, ...)] if isinstance(key, tuple) else x[key, ...]

    def setitem(self, x: Any, key: Any, value: Any) -> Any:
        x[key] = value
        return x

    def reshape(self, x: Any, shape: Any) -> Any:
        return x.reshape(shape)

    def permute_dims(self, x: Any, axes: Any) -> Any:
        return x.transpose(axes)

    def broadcast_to(self, x: Any, shape: Any) -> Any:
        if x.flags.c_contiguous and x.size and x.dtype is not BFLOAT16:
            # A view by its strides, made in a third of the time that NumPy's function takes.
            lead = len(shape) - x.ndim
            strides = [0] * lead
            for n, m, s in zip(x.shape, shape[lead:], x.strides):
                if n != m and n != 1:
                    break
                strides.append(s if n == m else 0)
            else:
                return ndarray(shape, x.dtype, x, 0, strides)
        r = np.broadcast_to(x, shape)
        # NumPy makes it read-only; the core refuses writes to memory that repeats, and lets those to the rest through.
        r.flags.writeable = x.flags.writeable
        return r

    def concat(self, arrays: Any, *, axis: int) -> Any:
        return asarray(np.concatenate(arrays, axis=axis), order="C")

    def conj(self, x: Any) -> Any:
        return asarray(np.conjugate(x)) if x.dtype.kind == "c" else x

    def real(self, x: Any) -> Any:
        return x.real

    def imag(self, x: Any) -> Any:
        return x.imag

    def where(self, cond: Any, x: Any, y: Any) -> Any:
        r = np.where(cond, x, y)
        if x.__class__ is not ndarray or y.__class__ is not ndarray:
            # NumPy takes a number beside bfloat16, which is foreign to it, for float64.
            a, b = (x, y) if x.__class__ is ndarray else (y, x)
            if isinstance(b, (list, tuple, str)):
                raise TypeError(f"where: expected an array or a number; got {type(b).__name__}.")
            d = a.dtype
            return r if r.dtype == d else r.astype(d)
        return r

    @staticmethod
    def sign(x: Any) -> Any:
        # NumPy has no sign of bool.
        return asarray(np.sign(x)) if x.dtype.kind != "b" else x.copy()

    def take(self, x: Any, indices: Any, *, axis: int) -> Any:
        return np.take(x, indices, axis=axis)

    def argsort(self, x: Any, *, axis: int, descending: bool = False) -> Any:
        # ml_dtypes compares without a place for nan; float32 has the same order.
        x = x.astype(np.float32) if x.dtype == BFLOAT16 else x
        # NumPy sorts ascending only; a stable descending order is the flipped order of the flipped input.
        if not descending:
            return np.argsort(x, axis=axis, kind="stable")
        order = np.flip(np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)
        return x.shape[axis] - 1 - order

    def index_add(self, x: Any, indices: Any, values: Any, *, axis: int) -> Any:
        out = np.array(x, order="C")
        shape = values.shape
        after = math.prod(shape[axis + 1 :])
        # ufunc.at is fast for one axis only.
        at = indices[:, None] * after + np.arange(after)
        if axis:
            at = np.arange(math.prod(shape[:axis]))[:, None, None] * (x.shape[axis] * after) + at
        _add_at(out.reshape(-1), at.reshape(-1), values.reshape(-1))
        return out

    def index_write(self, x: Any, indices: Any, values: Any, *, axis: int) -> Any:
        out = np.array(x)
        # NumPy walks backwards through indices of negative stride, but the last write is to stay.
        out[(*(slice(None),) * axis, np.ascontiguousarray(indices))] = values
        return out

    def put_rows(self, x: Any, indices: Any, values: Any, *, axis: int, add: bool) -> bool:
        own = x.flags.writeable and not np.may_share_memory(x, values) and not np.may_share_memory(x, indices)
        if not own or (add and x.dtype.kind not in "iufc") or (add and x.dtype.itemsize == 2):
            return False
        where = (*(slice(None),) * axis, np.ascontiguousarray(indices))
        if add:
            _add_at(x, where, values)
        else:
            x[where] = values
        return True

    def scatter_add(self, x: Any, indices: Any, values: Any, *, axis: int) -> Any:
        out = np.array(x)
        where = list(np.ix_(*[np.arange(n) for n in indices.shape]))
        where[axis] = indices
        _add_at(out, tuple(where), values)
        return out

    @staticmethod
    def floor_divide(x: Any, y: Any) -> Any:
        return _floor_divide(x, y)

    @staticmethod
    def remainder(x: Any, y: Any) -> Any:
        return _remainder(x, y)

    @staticmethod
    def pow(x: Any, y: Any) -> Any:
        return _power(x, y)

    @staticmethod
    def matmul(x: Any, y: Any) -> Any:
        # NumPy multiplies bfloat16 matrices as float32 and leaves the result in it.
        r = _matmul(x, y)
        return r if r.dtype is x.dtype else r.astype(x.dtype)

    @staticmethod
    def bitwise_left_shift(x: Any, y: Any) -> Any:
        return asarray(np.left_shift(x, y))

    @staticmethod
    def bitwise_right_shift(x: Any, y: Any) -> Any:
        return asarray(np.right_shift(x, y))


_floor_divide, _remainder = quiet2(np.floor_divide), quiet2(np.remainder)
_power, _matmul = quiet2(np.power), quiet2(np.matmul)
