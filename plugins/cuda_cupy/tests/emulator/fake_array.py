"""The stand-in's array: NumPy's, on a device, refusing what CuPy's refuses."""

from __future__ import annotations

import builtins
import warnings
from typing import Any

import ml_dtypes
import numpy as np
from fake_runtime import (
    Device,
    MemoryPointer,
    _check_place,
    _do,
    _refuse_in_capture,
    get_allocator,
    get_current_stream,
)

BF = np.dtype(ml_dtypes.bfloat16)


def _open(value: Any) -> Any:
    """Return an operand as NumPy takes it; refuse what CuPy refuses."""
    if isinstance(value, ndarray):
        _check_place(value.data.device_id)
        return value._a
    if isinstance(value, np.ndarray):
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")
    if type(value) in (list, tuple):
        return type(value)(map(_open, value))
    return value


def _new(shape: Any, dtype: Any) -> ndarray:
    dtype = np.dtype(dtype)
    shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    data = get_allocator()(size)
    _check_place(data.device_id)
    return ndarray(data.mem.block[:size].view(dtype).reshape(shape), data)


def _result(compute: Any) -> ndarray:
    """Return a new array of what a computation gives; while work is written down, junk until it is done."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        found = np.asarray(compute())
    out = _new(found.shape, found.dtype)
    a = out._a  # steps know memory, not who has it: what is freed goes to others, as on a device

    def step(known: Any = None) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            a[...] = compute() if known is None else known

    if get_current_stream()._steps is None:
        step(found)
    else:
        _do(step)
    return out


def _write(compute: Any) -> None:
    _do(compute)


class _Flags:
    def __init__(self, a: Any) -> None:
        self.c_contiguous, self.f_contiguous, self.owndata = a.flags.c_contiguous, a.flags.f_contiguous, a.base is None


class ndarray:
    """An array on an emulated device."""

    __slots__ = ("_a", "data", "base", "__weakref__")
    __array_priority__ = 100

    def __init__(self, a: Any, data: MemoryPointer, base: Any = None) -> None:
        self._a, self.base = a, base
        self.data = data if a.ctypes.data == data.ptr else MemoryPointer(data.mem, a.ctypes.data, data.device_id)

    shape = property(lambda self: self._a.shape)
    dtype = property(lambda self: self._a.dtype)
    ndim = property(lambda self: self._a.ndim)
    size = property(lambda self: self._a.size)
    strides = property(lambda self: self._a.strides)
    itemsize = property(lambda self: self._a.itemsize)
    nbytes = property(lambda self: self._a.nbytes)
    _c_contiguous = property(lambda self: self._a.flags.c_contiguous)
    _f_contiguous = property(lambda self: self._a.flags.f_contiguous)
    flags = property(lambda self: _Flags(self._a))
    device = property(lambda self: Device(self.data.device_id))
    T = property(lambda self: self._view(self._a.T))

    def _view(self, a: Any) -> ndarray:
        return ndarray(a, self.data, self if self.base is None else self.base)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a NumPy array explicitly."
        )

    def __len__(self) -> int:
        return len(self._a)

    def __iter__(self) -> Any:
        raise TypeError("emulator: iterating over an array on a device reads it element by element")

    def _read(self, convert: Any) -> Any:
        raise TypeError("emulator: a number was read from the device; only get() may")

    def __bool__(self) -> bool:
        return self._read(bool)  # type: ignore[no-any-return]

    def __int__(self) -> int:
        return self._read(int)  # type: ignore[no-any-return]

    def __float__(self) -> float:
        return self._read(float)  # type: ignore[no-any-return]

    def __index__(self) -> int:
        return self._read(int)  # type: ignore[no-any-return]

    item = tolist = __bool__

    def get(self, stream: Any = None, order: str = "C", out: Any = None, blocking: bool = True) -> Any:
        """Copy to the host."""
        _check_place(self.data.device_id)
        _refuse_in_capture("copying to the host")
        if not self._c_contiguous:
            with stream or get_current_stream():  # CuPy brings it into order in such a block
                pass
        return np.array(self._a, order=order)  # type: ignore[call-overload]

    @property
    def real(self) -> ndarray:
        """The real part, a view."""
        return self._view(self._a.real)

    @property
    def imag(self) -> ndarray:
        """The imaginary part, a view."""
        return self._view(self._a.imag) if self._a.dtype.kind == "c" else _result(lambda a=self._a: np.zeros_like(a))

    def astype(
        self, dtype: Any, order: str = "K", casting: Any = None, subok: Any = None, copy: bool = True
    ) -> ndarray:
        """Convert."""
        _open(self)
        dtype = np.dtype(dtype)
        if not copy and dtype == self.dtype:
            return self
        if self.dtype.kind == "c" and dtype.kind in "iuf":
            warnings.warn("Casting complex values to real discards the imaginary part", np.exceptions.ComplexWarning)  # noqa: B028
        # Its axes lie in the order of this one's, as CuPy's do.
        axes = list(range(self.ndim))
        lie = sorted(axes, key=lambda i: -abs(self._a.strides[i])) if order == "K" else axes
        a = self._a.transpose(lie)  # steps know memory, not who has it
        turned = _result(lambda: np.array(a.astype(dtype), order="C"))
        return turned if lie == axes else ndarray(turned._a.transpose([lie.index(i) for i in axes]), turned.data)

    def copy(self, order: str = "C") -> ndarray:
        """Copy."""
        _open(self)
        return _result(lambda a=self._a: np.array(a, order="C"))

    def reshape(self, *shape: Any, order: str = "C") -> ndarray:
        """Show under another shape, by a copy where strides do not allow a view."""
        shape = shape[0] if len(shape) == 1 else shape
        a = self._a.reshape(shape)
        if np.shares_memory(a, self._a) or not a.size:
            return self._view(a)
        _open(self)
        return _result(lambda a=self._a: a.reshape(shape))

    def ravel(self) -> ndarray:
        """Show in one dimension."""
        return self.reshape(-1)

    def transpose(self, *axes: Any) -> ndarray:
        """Permute the axes."""
        return self._view(self._a.transpose(*axes))

    def view(self, dtype: Any = None) -> ndarray:
        """Show the same memory."""
        return self._view(self._a.view(dtype) if dtype is not None else self._a.view())

    def squeeze(self, axis: Any = None) -> ndarray:
        """Drop axes of size 1."""
        return self._view(self._a.squeeze(axis))

    def fill(self, value: Any) -> None:
        """Fill with a number."""
        _open(self)
        if self.dtype == BF and type(value) is float:
            raise TypeError("emulator: a Python float beside bfloat16 counts as float64")
        if isinstance(value, (ndarray, np.ndarray)):
            raise TypeError("emulator: fill takes a number")
        number = np.array(value).astype(self.dtype) if type(value) is not int or self.dtype.kind not in "iu" else value
        # Every zero is a memset.
        _write(lambda a=self._a: a.fill(number if number != 0 else 0))

    def __getitem__(self, key: Any) -> ndarray:
        parts = key if isinstance(key, tuple) else (key,)
        if builtins.any(isinstance(p, (ndarray, np.ndarray, list)) for p in parts):
            where = tuple(_open(p) for p in parts)
            _open(self)
            return _result(lambda a=self._a: a[_wrapped(where, a.shape)])
        return self._view(self._a[parts if Ellipsis in parts else (*parts, Ellipsis)])

    def __setitem__(self, key: Any, value: Any) -> None:
        _open(self)
        if self.dtype == BF and type(value) is float:
            raise TypeError("emulator: a Python float beside bfloat16 counts as float64")
        parts = key if isinstance(key, tuple) else (key,)
        where, given = tuple(_open(p) for p in parts), _open(value)
        if isinstance(given, np.ndarray):
            _write(lambda a=self._a: a.__setitem__(where, given))
        else:
            self._view(self._a[where if Ellipsis in where else (*where, Ellipsis)]).fill(given)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self._a.__array_interface__, "version": 3, "stream": get_current_stream().ptr or 1}

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.data.device_id

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
    ) -> Any:
        from mortice.backends import dlpack

        if stream is not None and (type(stream) is not int or stream < -1):
            raise ValueError(f"On CUDA, the valid stream for the DLPack protocol is -1, 1, 2, or larger; got {stream}")
        # NumPy 2.4 has no capsules of 16-bit words that it calls bfloat16; the label is put on.
        a = self._a.view(np.uint16) if self.dtype == BF else self._a
        capsule = a.__dlpack__(max_version=max_version)
        lent = dlpack._open(capsule)[0]
        lent.device_type, lent.device_id = 2, self.data.device_id
        if self.dtype == BF:
            lent.code = 4
        return capsule


def _wrapped(where: Any, shape: Any) -> Any:
    """Wrap indices around as CuPy does, which does not look whether they are inside."""
    return tuple(w % n if isinstance(w, np.ndarray) and w.dtype.kind in "iu" and n else w for w, n in zip(where, shape))
