"""Affine maps by cuBLASLt: a product with the bias added in the same launch, as PyTorch has it.

What it does not compute, or has no algorithm for, is a product and a sum: two launches.

Not tried for lack of a GPU: the choice of algorithms and the launch. Descriptions were made by the library itself.
"""

from __future__ import annotations

import ctypes
from typing import Any

import cupy

from mortice.backends import NamespaceBackend
from mortice.backends.kernel_tools import KernelMixin
from mortice.settings import settings
from mortice_cuda_cupy.cublas import Handle, function, handle
from mortice_cuda_cupy.matmul import ONE, TYPES, ZERO, compute_type, lies

# By the numbers of NVIDIA's header, cublasLt.h.
_TRANSPOSED, _EPILOGUE, _BIAS_POINTER = (3, 4), 7, 8  # attributes of a product; the first of either operand
_WITH_BIAS = 4
_MOST_WORKSPACE, _ALIGNMENTS = 1, (5, 6, 7, 8)  # attributes of a preference
_DTYPES = frozenset(["float16", "bfloat16", "float32"])
_ALIGNED = 16
_KEPT = 1024  # plans of a thread


class _Choice(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t."""

    _fields_ = (
        ("algorithm", ctypes.c_uint64 * 8), ("workspace", ctypes.c_size_t), ("state", ctypes.c_int),
        ("waves", ctypes.c_float), ("reserved", ctypes.c_int * 4),
    )  # fmt: skip


class Description:
    """A description that cuBLASLt keeps: of a product, of how a matrix lies, or of what is asked of an algorithm."""

    def __init__(self, kind: str, *numbers: int) -> None:
        self._kind, self.at = kind, ctypes.c_void_p()
        self._destroy = function(f"cublasLt{kind}Destroy")
        _checked(function(f"cublasLt{kind}Create")(ctypes.byref(self.at), *numbers))

    def set(self, attribute: int, value: Any) -> None:
        """Set an attribute, to a number of ctypes that has its size."""
        change = function(f"cublasLt{self._kind}SetAttribute")
        _checked(change(self.at, attribute, ctypes.byref(value), ctypes.sizeof(value)))

    def __del__(self) -> None:
        if self.at:
            self._destroy(self.at)


class _Unserved(Exception):
    """cuBLASLt does not compute a map."""


def _checked(status: int) -> None:
    if status:
        raise _Unserved


class AffineMaps(KernelMixin):
    """linear."""

    def linear(self, x: Any, w: Any, b: Any = None) -> Any:
        if b is not None and x.dtype.name in _DTYPES and x.dtype == w.dtype == b.dtype and x.size and w.size and b._c_contiguous:
            rows = x if x.ndim == 2 else self.reshape(x, (x.size // x.shape[-1], x.shape[-1]))
            out = _affine(rows, w.T, b)
            if out is not None:
                return out if x.ndim == 2 else out.reshape(*x.shape[:-1], w.shape[0])
        return NamespaceBackend.linear(self, x, w, b)


def _affine(x: Any, y: Any, bias: Any) -> Any:
    """Return the product of two matrices plus a row; None where cuBLASLt does not compute it."""
    at = x.data.ptr, y.data.ptr, bias.data.ptr
    if (at[0] | at[1] | at[2]) % _ALIGNED:
        return None
    place = handle(x.data.device_id)
    precision = settings.matmul_precision
    known = (x.dtype, x.shape, x.strides, y.shape, y.strides, precision)
    plan = place.plans.get(known)
    if plan is None:
        if len(place.plans) >= _KEPT:
            place.plans.clear()
        try:
            plan = _Plan(place, x, y, bias)
        except (_Unserved, AttributeError):  # a library older than these functions
            plan = False
        place.plans[known] = plan
    if not plan:
        return None
    out = cupy.empty((x.shape[0], y.shape[1]), x.dtype)
    if plan.launch(place, *at, out.data.ptr):
        place.plans[known] = False
        return None
    return out


class _Plan:
    """What is asked of cuBLASLt for operands of these shapes and strides, and the algorithm that it has chosen."""

    def __init__(self, place: Handle, x: Any, y: Any, bias: Any) -> None:
        how = [lies(a, ()) for a in (x, y)]
        if None in how:
            raise _Unserved
        (flip_x, lead_x, _), (flip_y, lead_y, _) = how  # type: ignore[misc]
        (m, k), n, kind = x.shape, y.shape[1], TYPES[x.dtype.name]
        # Columns first: the transposed product of the transposed operands, to whose rows the bias belongs.
        self._how = Description("MatmulDesc", compute_type(x.dtype), TYPES["float32"])
        for attribute, flip in zip(_TRANSPOSED, (flip_y, flip_x)):
            self._how.set(attribute, ctypes.c_int32(flip))
        self._how.set(_EPILOGUE, ctypes.c_int32(_WITH_BIAS))
        self._bias = ctypes.c_uint64(bias.data.ptr)
        self._how.set(_BIAS_POINTER, self._bias)
        stored = lambda flip, rows, columns, lead: Description(
            "MatrixLayout", kind, *((columns, rows) if flip else (rows, columns)), lead
        )
        self._lays = stored(flip_y, n, k, lead_y), stored(flip_x, k, m, lead_x), stored(False, n, m, n)
        self._choice = _Choice()
        self._choose(place)
        self._scalars = ONE["float32"], ZERO["float32"]
        self._call = function("cublasLtMatmul")

    def _choose(self, place: Handle) -> None:
        wanted, found = Description("MatmulPreference"), ctypes.c_int()
        wanted.set(_MOST_WORKSPACE, ctypes.c_uint64(place.size))
        for attribute in _ALIGNMENTS:
            wanted.set(attribute, ctypes.c_uint32(_ALIGNED))
        a, b, c = [lay.at for lay in self._lays]
        ask = function("cublasLtMatmulAlgoGetHeuristic")
        choice = ctypes.byref(self._choice)
        _checked(ask(place.number, self._how.at, a, b, c, c, wanted.at, 1, choice, ctypes.byref(found)))
        _checked(self._choice.state if found.value else 1)

    def launch(self, place: Handle, x: int, y: int, bias: int, out: int) -> int:
        """Launch it; return cuBLAS's status."""
        if bias != self._bias.value:
            self._bias.value = bias
            self._how.set(_BIAS_POINTER, self._bias)
        (one, zero), (a, b, c) = self._scalars, self._lays
        return self._call(  # type: ignore[no-any-return]
            place.number, self._how.at, one, y, a.at, x, b.at, zero, out, c.at, out, c.at, ctypes.byref(self._choice),
            place.room, place.size, place.stream,
        )  # fmt: skip
