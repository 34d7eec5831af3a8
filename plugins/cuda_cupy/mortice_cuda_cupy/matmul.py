"""Matrix products by cuBLAS, in the precision that the program allows.

CuPy's own matmul copies transposed operands of a batch, computes float16 batches in float32, has no bfloat16 batches, takes
TF32 from an environment variable, and refuses to be captured. Here cuBLAS is called for all of them in one way.
"""

from __future__ import annotations

from typing import Any

import cupy
import ml_dtypes
import numpy as np

from mortice.backends import NamespaceBackend
from mortice.backends.kernel_tools import KernelMixin
from mortice.settings import settings
from mortice_cuda_cupy.cublas import check, function, handle, plain, quick
from mortice_cuda_cupy.graphs import current_capture
from mortice_cuda_cupy.kernels.copying import contiguous
from mortice_cuda_cupy.kernels.launch import array_maker

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
# cudaDataType_t and cublasComputeType_t, by the numbers of NVIDIA's headers.
TYPES = {"float16": 2, "bfloat16": 14, "float32": 0, "float64": 1, "complex64": 4, "complex128": 5}
_COMPUTE_32F, _COMPUTE_32F_FAST_16BF, _COMPUTE_32F_FAST_TF32, _COMPUTE_64F = 68, 75, 77, 70
_FAST = {"highest": _COMPUTE_32F, "high": _COMPUTE_32F_FAST_TF32, "medium": _COMPUTE_32F_FAST_16BF}
_SCALARS = {name: np.array([1, 0], name) for name in ("float32", "float64", "complex64", "complex128")}
ONE = {name: pair.ctypes.data for name, pair in _SCALARS.items()}
ZERO = {name: pair.ctypes.data + pair.itemsize for name, pair in _SCALARS.items()}
_SCALARS |= dict.fromkeys(("float16", "bfloat16"), _SCALARS["float32"])
_SINGLE = ("float32", "complex64")
_NATIVE = frozenset([BFLOAT16, *[np.dtype(name) for name in TYPES if name != "bfloat16"]])
_PLANS = 4096  # that are kept
_MOST = (1 << 31) - 1


def compute_type(dtype: Any) -> int:
    """Return how cuBLAS is to compute products of that dtype, by `set_float32_matmul_precision`.

    Halves are added up in float32 whatever the switches for reduced precision say: they allow less, and ask for nothing.
    """
    if dtype.itemsize // (2 if dtype.kind == "c" else 1) == 8:
        return _COMPUTE_64F
    return _FAST[settings.matmul_precision] if dtype.name in _SINGLE else _COMPUTE_32F


_plans: dict[Any, Any] = {}
_empty = array_maker()


class Products(KernelMixin):
    """matmul."""

    def matmul(self, x: Any, y: Any) -> Any:
        plan = _plans.get(_known(x, y))
        if plan is None:
            if x.dtype.name not in TYPES:
                # Integers have no cuBLAS; CuPy multiplies them by a kernel of its own, bools as 0 and 1.
                if x.dtype.kind == "b":
                    return cupy.matmul(x.astype(np.uint8), y.astype(np.uint8)).astype(np.bool_)
                return cupy.matmul(x, y)
            plan = _new_plan(x, y)
        return plan.run(x, y)

    def product_into(self, out: Any, x: Any, y: Any, *, add: bool = False) -> None:
        """Write the product of two floating matrices into one in row-major order, or add it to that."""
        plan = _plans.get(_known(x, y)) or _new_plan(x, y)
        plan.run(x, y, out, add)

    def turned_product(self, x: Any, y: Any, turn: int, out: Any = None) -> Any:
        """Return the product of floating matrices, into `out` if given; `turn` is 1 where x is to be transposed, 2 for y."""
        key = _known(x, y, turn)
        plan = _plans.get(key)
        if plan is not None and not plan.copied:
            return plan.run(x, y, out)  # which asks for no more than where they begin
        x, y = (self.matrix_transpose(x), y) if turn == 1 else (x, self.matrix_transpose(y))
        return (plan or _new_plan(x, y, key)).run(x, y, out)

    def linear_weight_grad(self, g: Any, x: Any) -> Any:
        # Leading axes are rows of one matrix, of which no view need be made.
        if g.ndim > 2 and g._c_contiguous and x._c_contiguous and g.dtype == x.dtype:
            key = "rows", g.dtype, g.shape, x.shape
            plan = _plans.get(key)
            if plan is None and g.dtype.name in TYPES and g.size and x.size:
                plan = _new_plan(g.reshape(-1, g.shape[-1]).T, x.reshape(-1, x.shape[-1]), key)
            if plan is not None and not plan.copied:
                return plan.run(g, x)
        elif g.ndim == x.ndim == 2 and g.dtype == x.dtype and g.dtype in _NATIVE:
            return self.turned_product(g, x, 1)
        return NamespaceBackend.linear_weight_grad(self, g, x)


def _new_plan(x: Any, y: Any, key: Any = None) -> _Plan:
    if len(_plans) >= _PLANS:
        _plans.clear()
    plan = _plans[key or _known(x, y)] = _Plan(x, y)
    return plan


def _known(x: Any, y: Any, turn: int = 0) -> tuple[Any, ...]:
    """Return what a plan depends on. Strides, of which CuPy makes a tuple each time, are asked for where shapes do not tell."""
    return (
        turn, x.dtype, x.shape, None if x._c_contiguous else x.strides, y.shape, None if y._c_contiguous else y.strides
    )  # fmt: skip


class _Plan:
    """What is asked of cuBLAS for operands of these shapes and strides."""

    __slots__ = ("after", "batch", "before", "compute", "copied", "copies", "dtype", "ends", "launch", "quick", "shape", "steps")

    def __init__(self, x: Any, y: Any) -> None:
        a, b = _matrices(x, y)
        batch: tuple[int, ...] = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
        self.dtype, self.launch, self.copied = a.dtype, None, False
        self.shape = (*batch, *[m] * (x.ndim > 1), *[n] * (y.ndim > 1))
        if not k or not m or not n or 0 in batch:
            return
        # One matrix for the whole stack: the stack is one tall matrix.
        if b.ndim == 2 and a.ndim > 2 and a.flags.c_contiguous:
            a = a.reshape(-1, k)
            batch, m = (), a.shape[0]
        self.batch, self.copies = batch, (lies(a, batch) is None, lies(b, batch) is None)
        self.copied = True in self.copies
        # As they will be: copies are in row-major order, and so are their shapes.
        (flip_a, lead_a, step_a), (flip_b, lead_b, step_b) = (
            lies(x, batch) or _packed(x, batch) for x in (a, b)
        )
        count, name = int(np.prod(batch, dtype=np.int64)), self.dtype.name
        kind, wide = TYPES[name], _SCALARS[name].dtype.name
        long = "_64" * (max(m, n, k, lead_a, lead_b, count) > _MOST)
        many = count > 1
        self.launch = function(f"cublasGemm{'StridedBatched' * many}Ex{long}")
        self.quick = None if long else quick("gemmStridedBatchedEx" if many else "gemmEx")
        # cuBLAS counts columns first: it is asked for the transposed product of the transposed operands.
        self.before = (int(flip_b), int(flip_a), n, m, k, ONE[wide])
        step = lambda s: (s,) * many
        self.steps = ((kind, lead_b, *step(step_b)), (kind, lead_a, *step(step_a)))
        self.ends = (ZERO[wide], ONE[wide])  # what the result before counts
        self.after = (kind, n, *step(m * n), *step(count))
        self.compute = None if name in _SINGLE else compute_type(self.dtype)

    def run(self, x: Any, y: Any, out: Any = None, add: bool = False) -> Any:
        if self.launch is None:
            if out is None:
                return cupy.zeros(self.shape, self.dtype)
            if not add:
                out.fill(0)
            return out
        if out is None:
            out = _empty(self.shape, self.dtype)
        if self.copied:
            a, b = _matrices(x, y)
            x = a if not self.copies[0] else _packing(a, self.batch)
            y = b if not self.copies[1] else _packing(b, self.batch)
        compute = _FAST[settings.matmul_precision] if self.compute is None else self.compute
        of_y, of_x = self.steps
        place = out.data
        told = (*self.before, y.data.ptr, *of_y, x.data.ptr, *of_x, self.ends[add], place.ptr, *self.after, compute, -1)
        if self.quick is not None and current_capture() is None:
            self.quick(plain(place.device_id), *told)
        else:
            check(self.launch(handle(place.device_id).number, *told))
        return out


def _matrices(x: Any, y: Any) -> tuple[Any, Any]:
    """Return operands with vectors as matrices."""
    return x.reshape(1, -1) if x.ndim == 1 else x, y.reshape(-1, 1) if y.ndim == 1 else y


def lies(x: Any, batch: tuple[int, ...]) -> tuple[bool, int, int] | None:
    """Return whether a stack's matrices are transposed, their row length, and their distance; None where it must be copied."""
    return laid(x.shape, x.strides, x.itemsize, batch)


def laid(shape: Any, strides: Any, size: int, batch: tuple[int, ...]) -> tuple[bool, int, int] | None:
    """Return the same of what has these shape and strides."""
    rows, columns = shape[-2:]
    row, column = (s // size for s in strides[-2:])
    step = _step(shape, strides, size, batch)
    if step is None:
        return None
    if (column == 1 or columns == 1) and (row >= columns or rows == 1):
        return False, max(row, columns) if rows > 1 else columns, step
    if (row == 1 or rows == 1) and (column >= rows or columns == 1):
        return True, max(column, rows) if columns > 1 else rows, step
    return None


def _packing(x: Any, batch: tuple[int, ...]) -> Any:
    """Return a copy of a stack that cuBLAS can read: as it is, or repeated where it is repeated in part."""
    if _apart(x, batch) is None:
        x = cupy.broadcast_to(x, (*batch, *x.shape[-2:]))
    return contiguous(x)


def _packed(x: Any, batch: tuple[int, ...]) -> tuple[bool, int, int]:
    """Return how such a copy lies."""
    rows, columns = x.shape[-2:]
    step = _apart(x, batch)
    return False, columns, rows * columns if step is None else step


def _apart(x: Any, batch: tuple[int, ...]) -> int | None:
    """Return the distance of matrices in a row-major copy."""
    strides = [x.itemsize]
    for n in reversed(x.shape[1:]):
        strides.append(strides[-1] * n)
    return _step(x.shape, strides[::-1], x.itemsize, batch)


def _step(shape: Any, strides: Any, size: int, batch: tuple[int, ...]) -> int | None:
    """Return the elements from a matrix to the next in the whole batch, None where that is not one number."""
    lead = len(batch) - (len(shape) - 2)
    step, reach = None, 1
    for i in range(len(batch) - 1, -1, -1):
        if batch[i] == 1:
            continue
        stride = 0 if i < lead or shape[i - lead] == 1 else strides[i - lead] // size
        if step is None:
            step = stride
        elif stride != step * reach:
            return None
        reach *= batch[i]
    return 0 if step is None else step if step >= 0 else None
