"""A stand-in for the part of CuPy that the plugin uses, over NumPy, for tests where there is no GPU. It is an emulator.

It refuses what CuPy 14 refuses (NumPy arrays among operands, conversion in silence, operands on another device, dtypes that
a function lacks) and errs where CuPy errs, so that the plugin is kept honest. Work is done at once; while a stream is
captured it is written down. It says nothing of speed. `install()` puts it where `import cupy` finds it.
"""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import importlib.util
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import fake_cublaslt
import fake_runtime
import numpy as np
from fake_array import BF, _new, _open, _result, _wrapped, _write, ndarray
from fake_runtime import (
    CUDARuntimeError,
    Device,
    Event,
    Graph,
    MemoryPointer,
    MemoryPool,
    OutOfMemoryError,
    Stream,
    _do,
    _local,
    _pinned_pool,
    _pointer_attributes,
    _refuse_in_capture,
    alloc_pinned_memory,
    get_allocator,
    get_current_stream,
    get_elapsed_time,
    set_allocator,
    using_allocator,
)

__version__ = "14.2.0"
NAME = "emulated GPU (NumPy; no CUDA)"

# ---- elementwise functions ----

_NO_BFLOAT16 = {
    "logical_not",
    "logical_xor",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "left_shift",
    "right_shift",
    "invert",
}
_NO_BOOL = {"negative", "subtract"}
_NO_COMPLEX = {"logical_not", "logical_and", "logical_or", "logical_xor"}
_IN_FLOAT32 = {"bfloat16", "float16"}


def _loops(name: str, xs: Any) -> Any:
    """Return operands of one dtype, chosen as CuPy chooses a loop."""
    kinds = [x.dtype for x in xs if isinstance(x, (np.ndarray, np.generic))]
    if BF in kinds:
        if builtins.any(type(x) is float for x in xs):
            # np.result_type(0.0, bfloat16) is float64, and that is whom CuPy asks.
            return [np.asarray(x, np.float64) for x in xs]
        if name in _NO_BFLOAT16:
            raise TypeError(f"Wrong type ({kinds}) of arguments for cupy_{name}")
    if name in _NO_COMPLEX and builtins.any(k.kind == "c" for k in kinds):
        raise TypeError(f"Wrong type ({kinds}) of arguments for cupy_{name}")
    if name in _NO_BOOL and builtins.all(k.kind == "b" for k in kinds):
        raise TypeError(f"The cupy boolean {name} is not supported.")
    return xs


def _flushed(x: Any) -> Any:
    """Return numbers without subnormal ones of float32: CuPy compiles all its kernels so."""
    if not isinstance(x, (np.ndarray, np.generic)) or x.dtype not in (np.float32, BF):
        return x
    return np.where(np.abs(x) < np.finfo(np.float32).tiny, np.copysign(x.dtype.type(0), x), x)


def _ufunc(name: str, compute: Any = None) -> Any:
    compute = compute or getattr(np, name)

    def function(*operands: Any, out: Any = None) -> Any:
        if not builtins.any(isinstance(x, ndarray) for x in operands):
            raise TypeError(f"emulator: cupy.{name} without an array on a device")
        xs = _loops(name, [_open(x) for x in operands])
        computed = lambda: _flushed(compute(*map(_flushed, xs)))
        if out is not None:
            _open(out)
            _write(lambda a=out._a: a.__setitem__(..., computed()))
            return out
        return _result(computed)

    function.__name__ = name
    return function


def _floor_divide(x: Any, y: Any) -> Any:
    if np.result_type(x, y).kind in "fV":
        return np.floor(np.true_divide(x, y))
    return np.floor_divide(x, y)


def _remainder(x: Any, y: Any) -> Any:
    if np.result_type(x, y).kind in "fV":
        return np.subtract(x, np.multiply(_floor_divide(x, y), y))
    return np.remainder(x, y)


def _power(x: Any, y: Any) -> Any:
    d = np.result_type(x, y)
    if d.kind not in "iu":
        return np.power(x, y)
    x, y = np.broadcast_arrays(np.asarray(x, d), np.asarray(y, d))
    negative_power = np.where(x == 1, 1, np.where((x == -1) if d.kind == "i" else False, 1 - 2 * (y & 1), 0)).astype(d)
    return np.where(y < 0, negative_power, np.power(x, np.maximum(y, 0)))


_OWN = {"floor_divide": _floor_divide, "remainder": _remainder, "power": _power}
for _name in (
    "exp log sqrt sin cos tan tanh sinh cosh arcsin arccos arctan arcsinh arccosh arctanh expm1 log1p log2 log10 exp2 floor "
    "ceil trunc rint isnan isinf isfinite signbit square reciprocal negative absolute sign logical_not invert conj add "
    "subtract multiply true_divide floor_divide remainder power maximum minimum equal not_equal less less_equal greater "
    "greater_equal bitwise_and bitwise_or bitwise_xor left_shift right_shift logical_and logical_or logical_xor arctan2 hypot "
    "copysign fmod nextafter fmax fmin cbrt deg2rad rad2deg logaddexp"
).split():  # fmt: skip
    globals()[_name] = _ufunc(_name, _OWN.get(_name))
_ALSO = {"abs": "absolute", "divide": "true_divide", "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift"}


def where(condition: Any, x: Any, y: Any) -> ndarray:
    """Choose."""
    c, x, y = _open(condition), _open(x), _open(y)
    kinds = [a.dtype for a in (x, y) if isinstance(a, (np.ndarray, np.generic))]
    if BF in kinds:
        raise TypeError("Wrong type of arguments for cupy_where: it has no bfloat16")
    return _result(lambda: np.where(c, x, y))


# ---- everything else ----


def _function(name: str) -> Any:
    compute = getattr(np, name)

    def function(*operands: Any, **options: Any) -> Any:
        if name in ("concatenate", "stack") and len(operands[0]) > 8 and get_current_stream()._steps is not None:
            # It copies their addresses to the device.
            raise RuntimeError("the current stream is capturing, so H2D transfers are disallowed")
        xs = [_open(x) for x in operands]
        options = {k: _open(v) for k, v in options.items()}
        return _result(lambda: compute(*xs, **options))

    function.__name__ = name
    return function


for (
    _name
) in "concatenate stack repeat tile roll take_along_axis tril triu cumsum cumprod prod all any outer argmin searchsorted".split():
    globals()[_name] = _function(_name)
concat = concatenate  # type: ignore[name-defined]  # noqa: F821


def sum(x: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> ndarray:
    """Add up; halves in float32, as CuPy does."""
    a = _open(x)
    wide = np.float32 if np.dtype(dtype or a.dtype).name in _IN_FLOAT32 else dtype
    return _result(lambda: np.asarray(np.sum(a, axis=axis, dtype=wide, keepdims=keepdims)).astype(dtype or a.dtype))


def _extreme(name: str) -> Any:
    def function(x: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> ndarray:
        a = _open(x)
        return _result(lambda: getattr(np, name)(a, axis=axis, keepdims=keepdims))

    return function


max, min = _extreme("max"), _extreme("min")


def argmax(x: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> ndarray:
    """Find the largest; of several nan any, here the last."""
    a = _open(x)
    if a.dtype == BF:
        raise TypeError("emulator: cupy.argmax has no bfloat16")
    if a.dtype.kind == "f":
        nan = np.isnan(a)
        if nan.any():
            last = lambda: _last(nan, axis, keepdims)
            return _result(
                lambda: np.where(nan.any(axis=axis, keepdims=keepdims), last(), np.argmax(a, axis, keepdims=keepdims))
            )
    return _result(lambda: np.argmax(a, axis=axis, keepdims=keepdims))


def _last(found: Any, axis: Any, keepdims: bool) -> Any:
    n = found.size if axis is None else found.shape[axis]
    return n - 1 - np.argmax(np.flip(found, axis), axis=axis, keepdims=keepdims)


def argsort(x: Any, axis: int = -1, kind: Any = None) -> ndarray:
    """Sort, stably; Thrust knows no bfloat16."""
    a = _open(x)
    if a.dtype == BF:
        raise NotImplementedError("Sorting arrays with dtype 'bfloat16' is not supported")
    return _result(lambda: np.argsort(a, axis=axis, kind="stable"))


def sort(x: Any, axis: int = -1) -> ndarray:
    """Sort."""
    a = _open(x)
    if a.dtype == BF:
        raise NotImplementedError("Sorting arrays with dtype 'bfloat16' is not supported")
    return _result(lambda: np.sort(a, axis=axis))


def take(x: Any, indices: Any, axis: Any = None) -> ndarray:
    """Take, wrapping indices around."""
    a, i = _open(x), _open(indices)
    return _result(lambda: np.take(a, i, axis=axis, mode="wrap"))


def matmul(x: Any, y: Any) -> ndarray:
    """Multiply matrices of integers; the plugin calls cuBLAS for the rest."""
    a, b = _open(x), _open(y)
    if a.dtype.kind not in "iu":
        raise TypeError("emulator: cupy.matmul is expected for integers only")
    return _result(lambda: np.matmul(a, b))


def flip(x: Any, axis: Any = None) -> ndarray:
    """Reverse, a view."""
    return x._view(np.flip(x._a, axis))


def broadcast_to(x: Any, shape: Any) -> ndarray:
    """Repeat, a view."""
    a = np.broadcast_to(x._a, shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        a.flags.writeable = True
    return x._view(a)


def ascontiguousarray(x: Any, dtype: Any = None) -> ndarray:
    """Return it in row-major order."""
    if x._a.flags.c_contiguous and dtype in (None, x.dtype):
        return x  # type: ignore[no-any-return]
    _open(x)
    return _result(lambda a=x._a: np.ascontiguousarray(a, dtype).reshape(a.shape))


def asarray(x: Any, dtype: Any = None) -> ndarray:
    """Make an array of a CuPy array or a number; NumPy arrays come by copy_from_host_async."""
    if isinstance(x, ndarray):
        return x if dtype in (None, x.dtype) else x.astype(dtype)
    if isinstance(x, np.ndarray):
        _refuse_in_capture("copying from memory of the host that may be gone by the replay")
    if hasattr(x, "__cuda_array_interface__"):
        shown = types.SimpleNamespace(__array_interface__={**x.__cuda_array_interface__, "version": 3})
        a = np.asarray(shown)
        return ndarray(a, MemoryPointer(x, a.ctypes.data, _local.device), base=x)
    return _result(lambda: np.asarray(x, dtype))


array = asarray


def empty(shape: Any, dtype: Any = float) -> ndarray:
    """Make an array of junk."""
    return _new(shape, dtype)


def zeros(shape: Any, dtype: Any = float) -> ndarray:
    """Make zeros."""
    out = _new(shape, dtype)
    _write(lambda a=out._a: a.fill(0))
    return out


def empty_like(x: Any, dtype: Any = None) -> ndarray:
    """Make an array of junk."""
    return _new(x.shape, dtype or x.dtype)


def zeros_like(x: Any, dtype: Any = None) -> ndarray:
    """Make zeros."""
    return zeros(x.shape, dtype or x.dtype)


def ones(shape: Any, dtype: Any = float) -> ndarray:
    """Make ones."""
    return full(shape, 1, dtype)


def full(shape: Any, value: Any, dtype: Any = None) -> ndarray:
    """Fill."""
    out = _new(shape, dtype or np.asarray(value).dtype)
    out.fill(value)
    return out


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> ndarray:
    """Count."""
    return _result(lambda: np.arange(start, stop, step, dtype) if stop is not None else np.arange(start, dtype=dtype))


def from_dlpack(source: Any) -> ndarray:
    """Borrow memory of a device."""
    from mortice.backends import dlpack

    kind, index = source.__dlpack_device__()
    if kind != 2:
        raise BufferError("emulator: from_dlpack takes memory of a device")
    capsule = dlpack.capsule_of(source, stream=get_current_stream().ptr or 1)
    lent = dlpack._open(capsule)[0]
    words = lent.code == 4
    lent.device_type, lent.device_id = 1, 0
    if words:
        lent.code = 1
    a = np.from_dlpack(dlpack.Held(capsule))
    if words:
        a = a.view(BF)
    with contextlib.suppress(ValueError):
        a.flags.writeable = True
    return ndarray(a, MemoryPointer(a, a.ctypes.data, index), base=a)


def scatter_add(a: ndarray, slices: Any, value: Any) -> None:
    """Add at indices, wrapping them around: `add.at`."""
    allowed = "int32 int64 uint32 uint64 float16 float32 float64".split()
    if value.dtype.name not in allowed or a.dtype != value.dtype:
        raise TypeError(f"cupy.add.at only supports {', '.join(allowed)} as data type")
    where, added = tuple(_open(s) for s in slices), _open(value)
    target = _open(a)
    _write(lambda: np.add.at(target, _wrapped(where, target.shape), added))


def scatter_max(a: ndarray, slices: Any, value: Any) -> None:
    """Raise to the maximum at indices: `maximum.at`."""
    if value.dtype.name not in "int32 int64 uint32 uint64 float32 float64".split():
        raise TypeError("cupy.maximum.at: dtype")
    where, given, target = tuple(_open(s) for s in slices), _open(value), _open(a)
    _write(lambda: np.maximum.at(target, _wrapped(where, target.shape), given))


def as_strided(x: ndarray, shape: Any, strides: Any) -> ndarray:
    """Show memory under other strides."""
    # Without a base, as CuPy has it.
    return ndarray(np.lib.stride_tricks.as_strided(x._a, shape, strides), x.data)


class KernelModule:
    """Sources compiled for the CPU by `run_on_cpu`, in the place of `kernels.build.Module`."""

    def __init__(self, code: str, options: Any, names: Any) -> None:
        self._module = _run_on_cpu().Module(code, options, names)

    def get_function(self, name: str) -> Any:
        """Return a kernel."""
        kernel = self._module.get_function(name)

        def launch(grid: Any, block: Any, args: Any, *, shared_mem: int = 0, stream: Any = None, together: bool = False) -> None:
            opened = tuple(_open(x) if not _by_value(x) else x.copy() for x in args)
            if builtins.sum(x.nbytes if _by_value(x) else 8 for x in args) > 4096:
                raise CUDARuntimeError("cudaErrorInvalidValue: more than 4 KiB of arguments")
            _do(lambda: kernel(grid, block, opened, shared_mem=shared_mem, together=together))

        return launch


def _by_value(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.size == 1


def _run_on_cpu() -> Any:
    found = sys.modules.get("run_on_cpu")
    if found is None:
        place = Path(__file__).with_name("run_on_cpu.py")
        spec = importlib.util.spec_from_file_location("run_on_cpu", place)
        assert spec and spec.loader
        found = sys.modules["run_on_cpu"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found)
    return found


# ---- operators ----

for _name, _function in (
    ("add", "add"), ("sub", "subtract"), ("mul", "multiply"), ("truediv", "true_divide"), ("floordiv", "floor_divide"),
    ("mod", "remainder"), ("pow", "power"), ("and", "bitwise_and"), ("or", "bitwise_or"), ("xor", "bitwise_xor"),
    ("lshift", "left_shift"), ("rshift", "right_shift"), ("matmul", "matmul"),
):  # fmt: skip
    setattr(ndarray, f"__{_name}__", lambda x, y, f=_function: globals()[f](x, y))
    setattr(ndarray, f"__r{_name}__", lambda x, y, f=_function: globals()[f](y, x))
for _name, _function in (
    ("eq", "equal"), ("ne", "not_equal"), ("lt", "less"), ("le", "less_equal"), ("gt", "greater"), ("ge", "greater_equal"),
):  # fmt: skip
    setattr(ndarray, f"__{_name}__", lambda x, y, f=_function: globals()[f](x, y))
ndarray.__neg__ = lambda x: negative(x)  # type: ignore[attr-defined]  # noqa: F821
ndarray.__invert__ = lambda x: invert(x)  # type: ignore[attr-defined]  # noqa: F821
ndarray.__hash__ = None  # type: ignore[assignment]


# ---- cuBLAS ----

_GEMM_TYPES = {2: np.dtype(np.float16), 14: BF, 0: np.dtype(np.float32), 1: np.dtype(np.float64),
               4: np.dtype(np.complex64), 5: np.dtype(np.complex128)}  # fmt: skip
products: list[int] = []  # the compute type of each product, for tests


def _matrices(ptr: int, dtype: Any, rows: int, columns: int, lead: int, step: int, count: int) -> Any:
    """Return matrices that lie column by column."""
    if lead < builtins.max(rows, 1):
        raise RuntimeError("CUBLAS_STATUS_INVALID_VALUE: leading dimension")
    extent = (abs(step) * (count - 1) + lead * (columns - 1) + rows) * dtype.itemsize
    block = np.frombuffer((ctypes.c_char * extent).from_address(ptr), np.uint8).view(dtype)
    strides = (step * dtype.itemsize, dtype.itemsize, lead * dtype.itemsize)
    return np.lib.stride_tricks.as_strided(block, (count, rows, columns), strides)


def _rounded(x: Any, compute: int) -> Any:
    """Round operands as the tensor cores do: TF32 has 10 bits after the point, bfloat16 has 7."""
    if compute not in (75, 77) or x.dtype.kind == "c":
        return x
    drop = 16 if compute == 75 else 13
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + np.uint32(1 << (drop - 1))) & np.uint32((0xFFFFFFFF << drop) & 0xFFFFFFFF)).view(np.float32)


class Cublas:
    """The part of cuBLAS that the plugin calls, on memory that is really there; work goes to the handle's stream."""

    def __init__(self) -> None:
        self._streams: dict[int, int] = {}
        self._rooms: dict[int, tuple[int, int] | None] = {}
        self._device: dict[int, int] = {}
        for name in ("Create_v2", "SetStream_v2", "SetWorkspace_v2"):
            setattr(self, f"cublas{name}", self._function(getattr(self, f"_{name.lower()}")))
        for end in ("", "_64"):
            setattr(self, f"cublasGemmEx{end}", self._function(self._gemm))
            setattr(self, f"cublasGemmStridedBatchedEx{end}", self._function(self._many))
        for name, function in fake_cublaslt.CublasLt(self).functions().items():
            setattr(self, name, self._function(function))

    @staticmethod
    def _function(method: Any) -> Any:
        def call(*args: Any) -> int:
            if len(args) != len(call.argtypes):  # type: ignore[attr-defined]
                raise TypeError(f"this function takes {len(call.argtypes)} arguments ({len(args)} given)")  # type: ignore[attr-defined]
            for kind, value in zip(call.argtypes, args):  # type: ignore[attr-defined]
                kind.from_param(value)
            return method(*args) or 0

        return call

    def _cupys(self, method: Any, count: int) -> Any:
        """Return a function as CuPy has it: on its current stream, which takes the handle's memory away, in no capture."""

        def call(*args: Any) -> None:
            if len(args) != count or not builtins.all(type(x) is int for x in args):
                raise TypeError(f"this function takes {count} ints; got {args}")
            if get_current_stream()._steps is not None:
                raise NotImplementedError("calling cuBLAS API during stream capture is currently unsupported")
            self._setstream_v2(args[0], get_current_stream().ptr)
            if method(*args):
                raise RuntimeError("CUBLAS_STATUS_INVALID_VALUE")

        return call

    def _create_v2(self, place: Any) -> int:
        if get_current_stream()._steps is not None:
            return 1
        number = place._obj.value = 0x77 + len(self._streams)
        self._streams[number], self._rooms[number], self._device[number] = 0, None, _local.device
        return 0

    def _setstream_v2(self, handle: int, stream: int) -> None:
        self._streams[handle], self._rooms[handle] = stream, None

    def _setworkspace_v2(self, handle: int, room: int, size: int) -> int:
        if room % 256:
            return 7
        self._rooms[handle] = (room, size)
        return 0

    def _gemm(self, handle: int, transa: int, transb: int, m: int, n: int, k: int, alpha: int, a: int, a_type: int, lda: int,
              b: int, b_type: int, ldb: int, beta: int, c: int, c_type: int, ldc: int, compute: int, algo: int) -> int:  # fmt: skip
        return self._many(handle, transa, transb, m, n, k, alpha, a, a_type, lda, 0, b, b_type, ldb, 0, beta, c, c_type, ldc, 0,
                          1, compute, algo)  # fmt: skip

    def _many(self, handle: int, transa: int, transb: int, m: int, n: int, k: int, alpha: int, a: int, a_type: int, lda: int,
              stride_a: int, b: int, b_type: int, ldb: int, stride_b: int, beta: int, c: int, c_type: int, ldc: int,
              stride_c: int, count: int, compute: int, algo: int, bias: int = 0) -> int:  # fmt: skip
        d = _GEMM_TYPES[a_type]
        if not a_type == b_type == c_type or (compute != 70 and d.itemsize // (2 if d.kind == "c" else 1) == 8):
            return 15
        if self._streams[handle] != get_current_stream().ptr or self._device[handle] != _local.device:
            raise RuntimeError("emulator: a product goes to another stream or device than the current one")
        if get_current_stream()._steps is not None and self._rooms[handle] is None:
            raise RuntimeError("emulator: what cuBLAS works in would become nodes of the graph")
        products.append(compute)
        wide = np.dtype(np.float32) if d.itemsize == 2 else d
        number = ctypes.c_char * (wide.itemsize)
        one, zero = (np.frombuffer(number.from_address(at), wide)[0] for at in (alpha, beta))
        x = _matrices(a, d, *((k, m) if transa else (m, k)), lda, stride_a, count)
        y = _matrices(b, d, *((n, k) if transb else (k, n)), ldb, stride_b, count)
        out = _matrices(c, d, m, n, ldc, stride_c, count)
        row = _matrices(bias, d, m, 1, m, 0, 1) if bias else None

        def step() -> None:
            left, right = (_rounded(v.astype(wide), compute) for v in (x, y))
            left = left.swapaxes(1, 2) if transa else left
            right = right.swapaxes(1, 2) if transb else right
            made = np.matmul(left, right)
            if one != 1 or zero:
                made = one * made + (zero * out.astype(wide) if zero else 0)
            made = made if row is None else made + row.astype(wide)
            out[...] = made.astype(d)

        _do(step)
        return 0


cublas = Cublas()


# ---- the modules ----


def _properties(device: int) -> dict[str, Any]:
    return {"name": NAME.encode(), "major": 9, "minor": 0, "totalGlobalMem": fake_runtime.TOTAL, "multiProcessorCount": 132, "warpSize": 32,
            "maxThreadsPerMultiProcessor": 2048, "sharedMemPerBlock": 49152, "l2CacheSize": 1 << 25}  # fmt: skip


def _set_device(device: int) -> None:
    Device(device).use()


def install(devices: int = 2) -> Any:
    """Let `import cupy` find the emulator in this process, and say so."""
    if "cupy" in sys.modules:
        raise RuntimeError("emulator: CuPy itself is loaded already")
    fake_runtime.start(devices)
    this = sys.modules[__name__]
    cupy = types.ModuleType("cupy", "The emulator of CuPy; no GPU is here.")
    for name, value in vars(this).items():
        if not name.startswith("_") and name not in ("install", "np", "cublas", "Cublas", "KernelModule"):
            setattr(cupy, name, value)
    for name, older in _ALSO.items():  # not among this module's own names, one of which would hide a builtin
        setattr(cupy, name, getattr(this, older))
    cupy.__version__ = __version__  # type: ignore[attr-defined]
    for d in "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split():
        setattr(cupy, d, getattr(np, d))
    cupy.bool_, cupy.newaxis, cupy.pi = np.bool_, None, np.pi  # type: ignore[attr-defined]
    cupy.get_default_memory_pool = fake_runtime.default_pool  # type: ignore[attr-defined]
    cupy.get_default_pinned_memory_pool = lambda: _pinned_pool  # type: ignore[attr-defined]
    fft = types.SimpleNamespace(**{n: _transform(n) for n in "fftn ifftn rfftn irfftn fft ifft rfft irfft".split()})
    runtime = types.SimpleNamespace(
        getDeviceCount=lambda: fake_runtime.DEVICES, getDevice=lambda: _local.device, setDevice=_set_device,
        getDeviceProperties=_properties, pointerGetAttributes=_pointer_attributes, memoryTypeHost=1,
        CUDARuntimeError=CUDARuntimeError, deviceCanAccessPeer=lambda a, b: int(a != b), streamCaptureModeGlobal=0,
        streamCaptureModeThreadLocal=1, streamCaptureModeRelaxed=2, runtimeGetVersion=lambda: 13020,
        driverGetVersion=lambda: 13020,
    )  # fmt: skip
    device = types.SimpleNamespace(get_compute_capability=lambda: "90")
    cuda = types.SimpleNamespace(
        Device=Device, Event=Event, Stream=Stream, Graph=Graph, MemoryPool=MemoryPool,
        Memory=fake_runtime.RawMemory, MemoryPointer=MemoryPointer, runtime=runtime, device=device, get_current_stream=get_current_stream,
        get_elapsed_time=get_elapsed_time, set_allocator=set_allocator, get_allocator=get_allocator,
        using_allocator=using_allocator, alloc_pinned_memory=alloc_pinned_memory,
        alloc=lambda size: get_allocator()(size), is_available=lambda: True,
        memory=types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
    )  # fmt: skip
    cupy.cuda, cupy.fft, cupy.ndarray = cuda, fft, ndarray  # type: ignore[attr-defined]
    cupy.add.at, cupy.maximum.at = scatter_add, scatter_max  # type: ignore[attr-defined]
    sys.modules["cupy"] = cupy
    for name in (
        "cupy.lib",
        "cupy.lib.stride_tricks",
        "cupy_backends",
        "cupy_backends.cuda",
        "cupy_backends.cuda.libs",
        "cupy_backends.cuda.libs.nvrtc",
        "cupy_backends.cuda.libs.cublas",
    ):
        sys.modules[name] = types.ModuleType(name)
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], last, sys.modules[name])
    libs = sys.modules["cupy_backends.cuda.libs.cublas"]
    libs.gemmEx, libs.gemmStridedBatchedEx = cublas._cupys(cublas._gemm, 19), cublas._cupys(cublas._many, 23)  # type: ignore[attr-defined]
    sys.modules["cupy.lib.stride_tricks"].as_strided = as_strided  # type: ignore[attr-defined]
    sys.modules["cupy_backends.cuda.libs.nvrtc"].getVersion = lambda: (13, 2)  # type: ignore[attr-defined]
    print("emulator: `cupy` is a stand-in over NumPy; no GPU takes part", file=sys.stderr)
    return cupy


def _transform(name: str) -> Any:
    compute = getattr(np.fft, name)

    def function(x: Any, *args: Any, **options: Any) -> ndarray:
        a = _open(x)
        return _result(lambda: compute(a, *args, **options))

    return function
