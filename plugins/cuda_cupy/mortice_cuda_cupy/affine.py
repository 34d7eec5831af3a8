"""Affine maps by cuBLASLt: a product with the bias added in the same launch, as PyTorch has it.

What it does not compute, or has no algorithm for, is a product and a sum: two launches.

Not tried for lack of a GPU: the choice of algorithms and the launch. Descriptions were made by the library itself.
"""

from __future__ import annotations

import ctypes
from typing import Any

from mortice.backends import NamespaceBackend
from mortice.backends.kernel_tools import KernelMixin
from mortice.settings import settings
from mortice_cuda_cupy.cublas import Handle, function, handle
from mortice_cuda_cupy.kernels.launch import array_maker
from mortice_cuda_cupy.matmul import ONE, TYPES, ZERO, compute_type, lies

# By the numbers of NVIDIA's header, cublasLt.h.
_TRANSPOSED, _EPILOGUE, _BIAS_POINTER = (3, 4), 7, 8  # attributes of a product; the first of either operand
_WITH_BIAS = 4
_MOST_WORKSPACE, _ALIGNMENTS = 1, (5, 6, 7, 8)  # attributes of a preference
_DTYPES = frozenset(["float16", "bfloat16", "float32"])
_ALIGNED = 16
_KEPT = 1024  # plans of a thread
_empty = array_maker()


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
        if b is not None:
            if x.ndim != 2 and not x._c_contiguous:
                x = self.copy(x)
            out = _affine(x, w, b)
            if out is not None:
                return out
        return NamespaceBackend.linear(self, x, w, b)


def _affine(x: Any, w: Any, bias: Any) -> Any:
    """Return a linear map of the rows of x; None where cuBLASLt does not compute it."""
    at = x.data.ptr, w.data.ptr, bias.data.ptr
    if (at[0] | at[1] | at[2]) % _ALIGNED:
        return None
    place = handle(x.data.device_id)
    known = (
        x.dtype, x.shape, None if x._c_contiguous else x.strides, w.dtype, w.shape, None if w._c_contiguous else w.strides, bias.dtype,
        bias._c_contiguous, settings.matmul_precision,
    )  # fmt: skip
    plan = place.plans.get(known)
    if plan is None:
        if len(place.plans) >= _KEPT:
            place.plans.clear()
        try:
            plan = _Plan(place, x, w, bias)
        except (_Unserved, AttributeError):  # a library older than these functions
            plan = False
        place.plans[known] = plan
    if not plan:
        return None
    out = _empty(plan.shape, x.dtype)
    if plan.launch(place, *at, out.data.ptr):
        place.plans[known] = False
        return None
    return out


class _Plan:
    """What is asked of cuBLASLt for operands of these shapes and strides, and the algorithm that it has chosen."""

    def __init__(self, place: Handle, x: Any, w: Any, bias: Any) -> None:
        if x.dtype.name not in _DTYPES or not x.dtype == w.dtype == bias.dtype or not x.size or not w.size or not bias._c_contiguous:
            raise _Unserved
        self.shape = (*x.shape[:-1], w.shape[0])
        x, y = x if x.ndim == 2 else x.reshape(-1, x.shape[-1]), w.T
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
        self._set_bias = function("cublasLtMatmulDescSetAttribute"), (self._how.at, _BIAS_POINTER, ctypes.byref(self._bias), 8)
        stored = lambda flip, rows, columns, lead: Description(
            "MatrixLayout", kind, *((columns, rows) if flip else (rows, columns)), lead
        )
        self._lays = stored(flip_y, n, k, lead_y), stored(flip_x, k, m, lead_x), stored(False, n, m, n)
        self._choice = _Choice()
        self._choose(place)
        self._call, (a, b, c) = function("cublasLtMatmul"), [lay.at for lay in self._lays]
        self._known = (place.number, self._how.at, ONE["float32"]), a, (b, ZERO["float32"]), c, ctypes.byref(self._choice)

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
        """Launch it; return cuBLAS's status.

        A signal's handler or a finalizer that asks for the same with another bias may come between: then it is launched again.
        """
        before, a, between, c, choice = self._known
        while True:
            if bias != self._bias.value:
                self._bias.value = bias
                change, how = self._set_bias
                change(*how)
            status = self._call(*before, y, a, x, *between, out, c, out, c, choice, place.room, place.size, place.stream)
            if bias == self._bias.value:
                return status  # type: ignore[no-any-return]
