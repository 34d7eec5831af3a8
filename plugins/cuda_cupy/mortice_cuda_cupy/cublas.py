"""cuBLAS by its own interface, since CuPy's functions refuse to be captured; outside captures they are the quicker ones.

A handle for each thread and device, with memory to work in of its own: what cuBLAS takes by itself while a stream is captured
becomes nodes of the graph.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections import deque
from typing import Any

import cupy

from mortice_cuda_cupy.graphs import current_capture

_INT, _LONG, _POINTER = ctypes.c_int, ctypes.c_int64, ctypes.c_void_p
_STATUS = {1: "NOT_INITIALIZED", 3: "ALLOC_FAILED", 7: "INVALID_VALUE", 8: "ARCH_MISMATCH", 13: "EXECUTION_FAILED",
           14: "INTERNAL_ERROR", 15: "NOT_SUPPORTED"}  # fmt: skip


def _gemm_types(size: Any, *, batched: bool) -> list[Any]:
    step = [_LONG] * batched
    operand = [_POINTER, _INT, size, *step]
    return [_POINTER, _INT, _INT, size, size, size, _POINTER, *operand, *operand, _POINTER, *operand, *[size] * batched, _INT, _INT]


_FUNCTIONS = {
    "cublasCreate_v2": [_POINTER], "cublasSetStream_v2": [_POINTER, _POINTER],
    "cublasSetWorkspace_v2": [_POINTER, _POINTER, ctypes.c_size_t],
    "cublasGemmEx": _gemm_types(_INT, batched=False), "cublasGemmEx_64": _gemm_types(_LONG, batched=False),
    "cublasGemmStridedBatchedEx": _gemm_types(_INT, batched=True),
    "cublasGemmStridedBatchedEx_64": _gemm_types(_LONG, batched=True),
    # cuBLASLt, which is a part of it and takes its handles.
    "cublasLtMatmulDescCreate": [_POINTER, _INT, _INT], "cublasLtMatmulDescDestroy": [_POINTER],
    "cublasLtMatmulDescSetAttribute": [_POINTER, _INT, _POINTER, ctypes.c_size_t],
    "cublasLtMatrixLayoutCreate": [_POINTER, _INT, ctypes.c_uint64, ctypes.c_uint64, _LONG],
    "cublasLtMatrixLayoutDestroy": [_POINTER],
    "cublasLtMatmulPreferenceCreate": [_POINTER], "cublasLtMatmulPreferenceDestroy": [_POINTER],
    "cublasLtMatmulPreferenceSetAttribute": [_POINTER, _INT, _POINTER, ctypes.c_size_t],
    "cublasLtMatmulAlgoGetHeuristic": [*[_POINTER] * 7, _INT, _POINTER, _POINTER],
    "cublasLtMatmul": [*[_POINTER] * 14, ctypes.c_size_t, _POINTER],
}  # fmt: skip


@functools.cache
def library() -> Any:
    """Return the library that CuPy has found and loaded."""
    import os

    from cupy_backends.cuda.libs import cublas

    major = cupy.cuda.runtime.runtimeGetVersion() // 1000
    if os.name == "nt":  # where a library does not show what those that it loads have
        return ctypes.WinDLL(f"cublas64_{major}.dll")  # type: ignore[attr-defined]
    found = ctypes.CDLL(cublas.__file__)
    return found if hasattr(found, "cublasGemmEx") else ctypes.CDLL(f"libcublas.so.{major}")


@functools.cache
def function(name: str) -> Any:
    """Return a function of cuBLAS."""
    found = getattr(library(), name)
    found.argtypes, found.restype = _FUNCTIONS[name], _INT
    return found


def check(status: int, what: str = "matmul") -> None:
    """Raise for what cuBLAS refuses."""
    if status:
        raise RuntimeError(f"{what}: cuBLAS failed with CUBLAS_STATUS_{_STATUS.get(status, status)}.")


class Handle:
    """A handle of cuBLAS, in a thread and on a device."""

    def __init__(self, index: int) -> None:
        self._where, self._spare = (-1, 0), _SPARE.setdefault(index, deque())
        self._own: dict[int, Any] = {}  # by stream: products of two streams run at the same time
        self.room, self.stream = 0, 0  # what is worked in, and where work goes
        self.plans: dict[Any, Any] = {}  # of `affine`; descriptions are changed between calls, so threads share none
        # As PyTorch gives it, and as NVIDIA advises for Hopper.
        self.size = 32 << 20 if int(cupy.cuda.device.get_compute_capability()) >= 90 else 8 << 20
        try:
            self.number = self._spare.pop()
        except IndexError:
            made = ctypes.c_void_p()
            check(function("cublasCreate_v2")(ctypes.byref(made)), "cublasCreate")
            self.number = made.value

    def follow(self, stream: int) -> Handle:
        """Send later work to a stream."""
        capture = current_capture()
        where = (stream, 0 if capture is None else capture.number)
        if where == self._where:
            return self
        if capture is None:
            room = self._own.get(stream)
            if room is None:
                room = self._own[stream] = cupy.cuda.Memory(self.size)  # not the pool's: no array's, and for good
        else:
            room = capture.room(self.size)
        check(function("cublasSetStream_v2")(self.number, stream), "cublasSetStream")
        # In this order: the stream's change takes the memory away.
        check(function("cublasSetWorkspace_v2")(self.number, room.ptr, self.size), "cublasSetWorkspace")
        self._where, self.room, self.stream = where, room.ptr, stream
        return self

    def __del__(self) -> None:
        # When the thread ends. To destroy a handle waits for the device and is forbidden in a capture: the next has it.
        if getattr(self, "number", None) is not None:
            self._spare.append(self.number)


_SPARE: dict[int, deque[Any]] = {}


class _Local(threading.local):
    def __init__(self) -> None:
        self.handles: dict[int, Handle] = {}
        self.plain: dict[int, Handle] = {}


_local = _Local()


def quick(name: str) -> Any:
    """Return CuPy's function of that name, which sends to its current stream, outside captures; None where it has none."""
    try:
        from cupy_backends.cuda.libs import cublas
    except ImportError:
        return None
    return getattr(cublas, name, None)


def plain(index: int) -> int:
    """Return a handle of this thread, on the current device, of that index, for CuPy's functions.

    They take the memory away that `handle` has set: what cuBLAS has by itself serves outside captures.
    """
    found = _local.plain.get(index)
    if found is None:
        found = _local.plain[index] = Handle(index)
    return found.number  # type: ignore[no-any-return]


def handle(index: int) -> Handle:
    """Return this thread's handle on the current device, of that index, sending to the current stream."""
    return ready(index).follow(cupy.cuda.get_current_stream().ptr)


def ready(index: int) -> Handle:
    """Return it wherever it sends; it must be there before a capture, in which cuBLAS may make none."""
    found = _local.handles.get(index)
    if found is None:
        found = _local.handles[index] = Handle(index)
    return found
