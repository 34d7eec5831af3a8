"""cuda_cupy: the differences between CuPy and the kernels that the core asks for, each with its reason.

What is said of CuPy was read in the source of 14.2. What runs several kernels here for lack of one of CuPy's is a free
kernel of `elementwise` or `reduce` where speed matters.
"""

from __future__ import annotations

import functools
import math
import operator
import uuid
from typing import Any

import cupy
import ml_dtypes
import numpy as np

from mortice.backends import DType, NamespaceBackend, in_full
from mortice_cuda_cupy.affine import AffineMaps
from mortice_cuda_cupy.cudnn import CudnnKernels
from mortice_cuda_cupy.exchange import Exchange
from mortice_cuda_cupy.guard import guarded, outside_captures
from mortice_cuda_cupy.kernels import CudaKernels
from mortice_cuda_cupy.kernels.copying import contiguous, joined
from mortice_cuda_cupy.kernels.elementwise import direct
from mortice_cuda_cupy.kernels.index import indexing
from mortice_cuda_cupy.kernels.launch import Plans, empty, in_order
from mortice_cuda_cupy.kernels.optim import AT_ONCE
from mortice_cuda_cupy.kernels.reduce import reductions
from mortice_cuda_cupy.kernels.scan import scans
from mortice_cuda_cupy.kernels.sort import sorting
from mortice_cuda_cupy.late import LateChecks
from mortice_cuda_cupy.matmul import Products
from mortice_cuda_cupy.memory import Memory
from mortice_cuda_cupy.movement import Movement, grid
from mortice_cuda_cupy.names import find
from mortice_cuda_cupy.streams import Streams

ndarray = cupy.ndarray
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
WORDS = np.dtype(np.uint16)
# cupy.add.at takes these; they are what CUDA adds atomically.
_ATOMIC = {np.dtype(name) for name in "int32 int64 uint32 uint64 float16 float32 float64".split()}


class _Namespace:
    """CuPy under array-API names, with its devices and bfloat16."""

    bfloat16 = BFLOAT16
    bool = np.dtype(np.bool_)

    def __getattr__(self, name: str) -> Any:
        return getattr(cupy, name)

    @staticmethod
    def zeros(shape: Any, dtype: Any, device: int | None) -> Any:
        """Make zeros on a device; CuPy's own functions take none."""
        with cupy.cuda.Device(device):
            return cupy.zeros(shape, dtype)


@outside_captures
class CuPyBackend(
    AffineMaps, CudaKernels, CudnnKernels, LateChecks, Movement, Products, Memory, Streams, Exchange, NamespaceBackend
):
    """CuPy on CUDA devices."""

    name = "cuda_cupy"
    at_once = AT_ONCE
    cuda_name = staticmethod(find)
    wide_products = False  # cuDNN and cuBLAS take halves as they are

    def __init__(self) -> None:
        count = cupy.cuda.runtime.getDeviceCount()
        super().__init__(_Namespace(), {f"cuda:{i}": i for i in range(count)}, mutable=True)
        self._dtypes = {d: np.dtype(native) for d, native in self._dtypes.items()}
        self._names = {native: d for d, native in self._dtypes.items()}
        self._all = frozenset(self._dtypes)
        self._by_number = [self.device(name) for name in self._devices]
        for name, native in _ONE.items():
            setattr(self, name, getattr(cupy, native))
        for name, native in _TWO.items():
            setattr(self, name, two(getattr(cupy, native)))
        for name, kernel in (direct(self) | reductions(self)).items():
            setattr(self, name, kernel)
        for name, kernel in (indexing(self) | scans(self) | sorting(self)).items():
            setattr(self, name, kernel)
        self.start_counting()
        if count > 1:
            self.__class__ = guarded(type(self), self.__dict__)

    # ---- housekeeping ----

    def dtypes(self, device: Any) -> frozenset[DType]:
        return self._all

    def device_of(self, x: Any) -> Any:
        return self._by_number[x.data.device_id]

    def device_label(self, device: Any) -> str:
        name = cupy.cuda.runtime.getDeviceProperties(device.index)["name"]
        return name.decode() if isinstance(name, bytes) else str(name)

    def device_properties(self, device: Any) -> dict[str, Any]:
        found = cupy.cuda.runtime.getDeviceProperties(device.index)
        return {
            "major": found["major"], "minor": found["minor"], "total_memory": found["totalGlobalMem"],
            "multi_processor_count": found["multiProcessorCount"], "warp_size": found.get("warpSize", 32),
            "is_integrated": found.get("integrated", 0), "is_multi_gpu_board": found.get("isMultiGpuBoard", 0),
            "uuid": uuid.UUID(bytes=bytes(found["uuid"][:16])) if len(found.get("uuid", b"")) >= 16 else None,
            **{name: found.get(key, 0) for name, key in _PROPERTIES.items()},
        }  # fmt: skip

    def strides_of(self, x: Any) -> tuple[int, ...] | None:
        return _in_elements(x.strides, x.itemsize)

    is_contiguous = staticmethod(in_order)
    address = staticmethod(operator.attrgetter("data.ptr"))
    reshape_view = staticmethod(ndarray.reshape)

    # ---- creation and conversion ----

    def full(self, shape: Any, value: Any, *, dtype: DType, device: Any) -> Any:
        native = self.native(dtype)
        x = empty(shape, native)
        # Zeros are a memset; every other number goes to a kernel as an argument, never through host memory.
        if value or not _negative_zero(x, value):
            x.fill(_number(value, native))
        return x

    def arange(self, start: Any, stop: Any, step: Any, *, dtype: DType, device: Any) -> Any:
        # Counted as wide as on the CPU, then narrowed: the same numbers result on both.
        return cupy.arange(start, stop, step).astype(self.native(dtype), copy=False)

    def astype(self, x: Any, dtype: DType) -> Any:
        native = self.native(dtype)
        if x.dtype.kind == "c" and native.kind != "c":
            # CuPy warns where the imaginary part is dropped; by then that is asked for.
            if native.kind == "b":
                return x != 0
            x = x.real
        # Where elements repeat CuPy would put their copies side by side.
        repeats = 0 in x.strides and any([n > 1 and not s for n, s in zip(x.shape, x.strides)])
        return x.astype(native, "C" if repeats else "K")

    def copy(self, x: Any) -> Any:
        return x.copy()

    # ---- movement ----

    def reshape(self, x: Any, shape: Any) -> Any:
        if x._c_contiguous or not _copied[x.shape, x.strides, tuple(shape)]:
            return x.reshape(shape)
        return contiguous(x).reshape(shape)

    def permute_dims(self, x: Any, axes: Any) -> Any:
        return x.transpose(axes)

    def broadcast_to(self, x: Any, shape: Any) -> Any:
        return cupy.broadcast_to(x, shape)

    def concat(self, arrays: Any, *, axis: int) -> Any:
        made = joined(arrays, axis)
        return cupy.concatenate(arrays, axis=axis) if made is None else made

    def getitem(self, x: Any, key: Any) -> Any:
        return x[key]

    def setitem(self, x: Any, key: Any, value: Any) -> Any:
        if value.__class__ is ndarray:
            x[key] = value
        elif value or not _negative_zero(x[key], value):
            x[key] = _number(value, x.dtype)
        return x

    # ---- elementwise: what CuPy's functions do otherwise ----

    def _pair(self, x: Any, y: Any) -> tuple[Any, Any]:
        # Numbers stay numbers: they reach the kernel as arguments, an array would be a transfer.
        if x.__class__ is not ndarray:
            return _number(x, y.dtype), y
        return (x, y) if y.__class__ is ndarray else (x, _number(y, x.dtype))

    def _like(self, x: Any, value: Any) -> Any:
        return self.full((), value, dtype=self._names[x.dtype], device=self.device_of(x))

    def _binary(self, name: str, function: Any, x: Any, y: Any) -> Any:
        x, y = self._pair(x, y)
        d = (x if x.__class__ is ndarray else y).dtype
        if d.kind != "b":
            return function(x, y)
        # CuPy refuses bools here or gives int8.
        xs = [a.astype(np.uint8) if a.__class__ is ndarray else int(a) for a in (x, y)]
        return function(*xs).astype(np.bool_)

    @in_full
    def add(self, x: Any, y: Any) -> Any:
        return self._binary("add", cupy.add, x, y)

    @in_full
    def multiply(self, x: Any, y: Any) -> Any:
        return self._binary("multiply", cupy.multiply, x, y)

    @in_full
    def divide(self, x: Any, y: Any) -> Any:
        return self._binary("divide", cupy.true_divide, x, y)

    @in_full
    def subtract(self, x: Any, y: Any) -> Any:
        return self._binary("subtract", cupy.subtract, x, y)

    @in_full
    def pow(self, x: Any, y: Any) -> Any:
        return self._binary("pow", cupy.power, x, y)

    @in_full
    def remainder(self, x: Any, y: Any) -> Any:
        return self._binary("remainder", _remainder, x, y)

    @in_full
    def floor_divide(self, x: Any, y: Any) -> Any:
        return self._binary("floor_divide", _floor_divide, x, y)

    def negative(self, x: Any) -> Any:
        return cupy.negative(x) if x.dtype.kind != "b" else x.copy()

    def sign(self, x: Any) -> Any:
        return cupy.sign(x) if x.dtype.kind != "b" else x.copy()

    def logical_not(self, x: Any) -> Any:
        # CuPy's has neither bfloat16 nor complex numbers.
        return cupy.equal(x, _number(0, x.dtype)) if x.dtype.kind in "cV" else cupy.logical_not(x)

    def logical_and(self, x: Any, y: Any) -> Any:
        return two(cupy.logical_and)(_truth(x), _truth(y))

    def logical_or(self, x: Any, y: Any) -> Any:
        return two(cupy.logical_or)(_truth(x), _truth(y))

    def where(self, cond: Any, x: Any, y: Any) -> Any:
        x, y = self._pair(x, y)
        d = (x if x.__class__ is ndarray else y).dtype
        if d == BFLOAT16:
            # CuPy's has no bfloat16; choosing does not look at the bits.
            return cupy.where(cond, _words(x), _words(y)).view(BFLOAT16)
        return cupy.where(cond, x, y)

    def real(self, x: Any) -> Any:
        return x.real

    def imag(self, x: Any) -> Any:
        return x.imag

    def conj(self, x: Any) -> Any:
        return cupy.conj(x) if x.dtype.kind == "c" else x

    # ---- reduction ----

    def sum(self, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        return cupy.sum(x, axis=axis if x.ndim else None, dtype=x.dtype, keepdims=keepdims)

    def prod(self, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        return cupy.prod(x, axis=axis if x.ndim else None, dtype=x.dtype, keepdims=keepdims)

    def max(self, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        return cupy.max(x, axis=axis if x.ndim else None, keepdims=keepdims)

    def min(self, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        return cupy.min(x, axis=axis if x.ndim else None, keepdims=keepdims)

    def argmax(self, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        axis = axis if x.ndim else None
        # CuPy's has no bfloat16; float32 has the same order.
        x = x.astype(np.float32) if x.dtype == BFLOAT16 else x
        found = cupy.argmax(x, axis=axis, keepdims=keepdims)
        if x.dtype.kind != "f":
            return found
        # Of several nan CuPy takes any, as its tree of comparisons meets them; the first is asked for.
        nan = cupy.isnan(x)
        first = cupy.argmax(nan, axis=axis, keepdims=keepdims)
        return cupy.where(cupy.max(nan, axis=axis, keepdims=keepdims), first, found)

    def cumulative_sum(self, x: Any, *, axis: int) -> Any:
        if not x.ndim:
            return x.copy()
        if x.dtype.itemsize == 2 and x.dtype.kind in "fV":
            # CuPy's scan adds up in the dtype of the result, and it knows no bfloat16.
            return cupy.cumsum(x, axis=axis, dtype=np.float32).astype(x.dtype)
        return cupy.cumsum(x, axis=axis, dtype=x.dtype)

    def argsort(self, x: Any, *, axis: int, descending: bool = False) -> Any:
        if not x.ndim or not x.size:
            return cupy.zeros(x.shape, np.int64)
        # Thrust, which sorts, knows no bfloat16; float32 has the same order.
        x = x.astype(np.float32) if x.dtype == BFLOAT16 else x
        # CuPy's is stable and has nan last, but only ascends; descending is the flipped order of the flipped input.
        if not descending:
            return cupy.argsort(x, axis=axis)
        return x.shape[axis] - 1 - cupy.flip(cupy.argsort(cupy.flip(x, axis), axis=axis), axis)

    # ---- indexing ----

    def take(self, x: Any, indices: Any, *, axis: int) -> Any:
        # CuPy wraps indices that are outside instead of looking; the core has looked.
        return cupy.take(x, indices, axis=axis)

    def take_along_axis(self, x: Any, indices: Any, *, axis: int) -> Any:
        if not x.ndim:
            return cupy.take(x.reshape(1), indices)
        return x[grid(indices, x.ndim, axis)]

    def scatter_add(self, x: Any, indices: Any, values: Any, *, axis: int) -> Any:
        """Add by atomic operations: the order of floating additions at one position is not fixed, as in PyTorch."""
        if not x.ndim:
            return self.scatter_add(x.reshape(1), indices.reshape(-1), values.reshape(-1), axis=0).reshape(())
        where = grid(indices, x.ndim, axis)
        if x.dtype.kind == "c":
            out = x.copy()
            # CUDA adds no complex numbers atomically; their parts it does.
            for part, added in ((out.real, values.real), (out.imag, values.imag)):
                sums = cupy.ascontiguousarray(part)
                cupy.add.at(sums, where, added)
                part[...] = sums
            return out
        wide = x.dtype if x.dtype in _ATOMIC else np.dtype(np.float32 if x.dtype == BFLOAT16 else np.int32)
        out = x.astype(wide)
        cupy.add.at(out, where, values.astype(wide, copy=False))
        return out.astype(x.dtype, copy=False)


_PROPERTIES = {
    "max_threads_per_multi_processor": "maxThreadsPerMultiProcessor", "max_threads_per_block": "maxThreadsPerBlock",
    "regs_per_multiprocessor": "regsPerMultiprocessor", "shared_memory_per_block": "sharedMemPerBlock",
    "shared_memory_per_block_optin": "sharedMemPerBlockOptin", "shared_memory_per_multiprocessor": "sharedMemPerMultiprocessor",
    "L2_cache_size": "l2CacheSize", "clock_rate": "clockRate", "memory_clock_rate": "memoryClockRate", "memory_bus_width": "memoryBusWidth",
    "pci_bus_id": "pciBusID", "pci_device_id": "pciDeviceID", "pci_domain_id": "pciDomainID",
}  # fmt: skip
_ONE = {
    "abs": "absolute", "asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh",
    "atanh": "arctanh",
    **{n: n for n in "exp log sqrt sin cos tanh floor isnan expm1 log1p log2 log10 exp2 tan sinh cosh ceil trunc isinf "
       "isfinite signbit reciprocal".split()},
}  # fmt: skip
_TWO = {
    "atan2": "arctan2", "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift",
    **{n: n for n in "maximum minimum equal less not_equal greater less_equal greater_equal bitwise_and bitwise_or "
       "bitwise_xor hypot copysign".split()},
}  # fmt: skip


def _reshape_copies(shape: Any, strides: Any, to: Any) -> bool:
    """Tell whether a shape can only be had by a copy."""
    shown = np.lib.stride_tricks.as_strided(np.empty((), np.uint8), shape, strides)
    try:
        shown.reshape(to, copy=False)
    except ValueError:
        return True
    return False


_copied = Plans(_reshape_copies)


@functools.lru_cache(4096)  # strides recur
def _in_elements(strides: tuple[int, ...], size: int) -> tuple[int, ...]:
    return tuple([s // size for s in strides])


def two(function: Any) -> Any:
    """Let a function of two arrays take a number for one of them."""

    def kernel(x: Any, y: Any) -> Any:
        if x.__class__ is not ndarray:
            if y.dtype == BFLOAT16:
                x = _number(x, BFLOAT16)
        elif y.__class__ is not ndarray and x.dtype == BFLOAT16:
            y = _number(y, BFLOAT16)
        return function(x, y)

    return kernel


def _number(value: Any, dtype: Any) -> Any:
    """Return a number as CuPy must have it beside that dtype."""
    # NumPy, which CuPy asks, takes a Python float beside bfloat16, which is foreign to it, for float64.
    return ml_dtypes.bfloat16(value) if dtype == BFLOAT16 and value.__class__ is not ml_dtypes.bfloat16 else value


def _negative_zero(x: Any, value: Any) -> bool:
    """Fill with a zero that has a sign, if the number is one: CuPy writes every zero as zero bytes."""
    if value.__class__ is complex and x.dtype.kind == "c":
        for part, number in ((x.real, value.real), (x.imag, value.imag)):
            if not _negative_zero(part, number):
                part.fill(0)
        return True
    if value.__class__ is not float or value or math.copysign(1, value) > 0 or x.dtype.kind not in "fV":
        return False
    x.fill(_number(0, x.dtype))
    cupy.negative(x, out=x)
    return True


def _truth(x: Any) -> Any:
    """Return complex numbers as bools, everything else as it is: CuPy's logic has no complex numbers."""
    if x.__class__ is not ndarray:
        return bool(x) if x.__class__ is complex else x
    return cupy.not_equal(x, 0) if x.dtype.kind == "c" else x


def _words(x: Any) -> Any:
    """Return the bits of bfloat16 values."""
    return x.view(WORDS) if x.__class__ is ndarray else np.asarray(x).view(WORDS)[()]


def _wide(function: Any) -> Any:
    """Compute for floats, halves in float32, by a function of arrays and numbers."""

    def run(x: Any, y: Any) -> Any:
        d = (x if x.__class__ is ndarray else y).dtype
        if d.itemsize != 2:
            return function(x, y)
        x, y = (a.astype(np.float32) if a.__class__ is ndarray else float(a) for a in (x, y))
        return function(x, y).astype(d)

    return run


def _apart(rest: Any, y: Any) -> Any:
    """Tell where a remainder by fmod is not zero and has another sign than the divisor."""
    below = cupy.less(y, 0.0) if y.__class__ is ndarray else y < 0
    return cupy.logical_and(cupy.not_equal(rest, 0.0), cupy.not_equal(cupy.less(rest, 0.0), below))


@_wide
def _float_remainder(x: Any, y: Any) -> Any:
    rest = cupy.fmod(x, y)
    return cupy.where(_apart(rest, y), rest + y, cupy.where(cupy.equal(rest, 0.0), cupy.copysign(rest, y), rest))


@_wide
def _float_floor_divide(x: Any, y: Any) -> Any:
    rest, quotient = cupy.fmod(x, y), cupy.true_divide(x, y)
    whole = cupy.true_divide(cupy.subtract(x, rest), y)
    whole = cupy.rint(cupy.where(_apart(rest, y), whole - 1.0, whole))
    whole = cupy.where(cupy.equal(whole, 0.0), cupy.copysign(whole, quotient), whole)
    return cupy.where(cupy.equal(y, 0.0), quotient, whole) if y.__class__ is ndarray else whole if y else quotient


def _remainder(x: Any, y: Any) -> Any:
    """Return x - floor(x / y) * y; for floats by fmod, which is exact: CuPy's formula gives nan for 5 % inf."""
    integers = (x if x.__class__ is ndarray else y).dtype.kind in "ui"
    return cupy.remainder(x, y) if integers else _float_remainder(x, y)


def _floor_divide(x: Any, y: Any) -> Any:
    """Return floor(x / y); for floats of what the remainder leaves: CuPy floors x / y, which may have been rounded up."""
    integers = (x if x.__class__ is ndarray else y).dtype.kind in "ui"
    return cupy.floor_divide(x, y) if integers else _float_floor_divide(x, y)
