"""Matrix products by cuBLAS, in the precision that the program allows.

CuPy's own matmul copies transposed operands of a batch, computes float16 batches in float32, has no bfloat16 batches and
takes TF32 from an environment variable. Here cuBLAS is called for all of them in one way, `gemmStridedBatchedEx`.
"""

from __future__ import annotations

from typing import Any

import cupy
import ml_dtypes
import numpy as np

from mortice.settings import settings

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
# cudaDataType_t and cublasComputeType_t, by the numbers of NVIDIA's headers.
_TYPES = {"float16": 2, "bfloat16": 14, "float32": 0, "float64": 1, "complex64": 4, "complex128": 5}
_COMPUTE_32F, _COMPUTE_32F_FAST_16BF, _COMPUTE_32F_FAST_TF32, _COMPUTE_64F = 68, 75, 77, 70
_FAST = {"highest": _COMPUTE_32F, "high": _COMPUTE_32F_FAST_TF32, "medium": _COMPUTE_32F_FAST_16BF}
_ONE = {name: np.array(1, name) for name in ("float32", "float64", "complex64", "complex128")}
_ZERO = {name: np.array(0, name) for name in _ONE}


def compute_type(dtype: Any) -> int:
    """Return how cuBLAS is to compute products of that dtype, by `set_float32_matmul_precision`.

    Halves are added up in float32 whatever the switches for reduced precision say: they allow less, and ask for nothing.
    """
    if dtype.itemsize // (2 if dtype.kind == "c" else 1) == 8:
        return _COMPUTE_64F
    return _FAST[settings.matmul_precision] if dtype.name in ("float32", "complex64") else _COMPUTE_32F


class Products:
    """matmul."""

    def matmul(self, x: Any, y: Any) -> Any:
        if x.dtype.name not in _TYPES:
            # Integers have no cuBLAS; CuPy multiplies them by a kernel of its own, bools as 0 and 1.
            if x.dtype.kind == "b":
                return cupy.matmul(x.astype(np.uint8), y.astype(np.uint8)).astype(np.bool_)
            return cupy.matmul(x, y)
        a = x.reshape(1, -1) if x.ndim == 1 else x
        b = y.reshape(-1, 1) if y.ndim == 1 else y
        out = _product(a, b)
        if x.ndim == 1:
            out = out.reshape(*out.shape[:-2], out.shape[-1])
        if y.ndim == 1:
            out = out.reshape(out.shape[:-1])
        return out


def _product(a: Any, b: Any) -> Any:
    """Multiply stacks of matrices."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
    if b.ndim == 2 and a.ndim > 2 and a.flags.c_contiguous:
        # One matrix for the whole stack: the stack is one tall matrix.
        return _product(a.reshape(-1, k), b).reshape(*batch, m, n)
    if not k or not m or not n or 0 in batch:
        return cupy.zeros((*batch, m, n), a.dtype)
    out = cupy.empty((*batch, m, n), a.dtype)
    (a, flip_a, lead_a, step_a), (b, flip_b, lead_b, step_b) = _laid_out(a, batch), _laid_out(b, batch)
    scalar = {"float16": "float32", "bfloat16": "float32"}.get(out.dtype.name, out.dtype.name)
    kind = _TYPES[out.dtype.name]
    from cupy_backends.cuda.libs import cublas

    # cuBLAS counts columns first: it is asked for the transposed product of the transposed operands.
    cublas.gemmStridedBatchedEx(
        cupy.cuda.device.get_cublas_handle(), int(flip_b), int(flip_a), n, m, k, _ONE[scalar].ctypes.data,
        b.data.ptr, kind, lead_b, step_b, a.data.ptr, kind, lead_a, step_a, _ZERO[scalar].ctypes.data,
        out.data.ptr, kind, n, m * n, out.size // (m * n), compute_type(out.dtype), -1,
    )  # fmt: skip
    return out


def _laid_out(x: Any, batch: tuple[int, ...]) -> tuple[Any, bool, int, int]:
    """Return a stack as cuBLAS can read it: with whether its matrices are transposed, their row length, their distance."""
    size = x.itemsize
    rows, columns = x.shape[-2:]
    for attempt in (x, None):
        x = cupy.ascontiguousarray(x) if attempt is None else x
        row, column = (s // size for s in x.strides[-2:])
        step = _distance(x, batch)
        if step is not None:
            if (column == 1 or columns == 1) and (row >= columns or rows == 1):
                return x, False, max(row, columns) if rows > 1 else columns, step
            if (row == 1 or rows == 1) and (column >= rows or columns == 1):
                return x, True, max(column, rows) if columns > 1 else rows, step
    # Only a stack that is repeated in part comes here.
    x = cupy.ascontiguousarray(cupy.broadcast_to(x, (*batch, rows, columns)))
    return x, False, columns, rows * columns


def _distance(x: Any, batch: tuple[int, ...]) -> int | None:
    """Return the elements from a matrix to the next in the whole batch, None where that is not one number."""
    lead = len(batch) - (x.ndim - 2)
    step, reach = None, 1
    for i in range(len(batch) - 1, -1, -1):
        if batch[i] == 1:
            continue
        stride = 0 if i < lead or x.shape[i - lead] == 1 else x.strides[i - lead] // x.itemsize
        if step is None:
            step = stride
        elif stride != step * reach:
            return None
        reach *= batch[i]
    return 0 if step is None else step if step >= 0 else None
