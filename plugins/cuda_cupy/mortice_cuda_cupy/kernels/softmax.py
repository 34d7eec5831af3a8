"""softmax and log_softmax, with their gradients."""

from __future__ import annotations

from typing import Any

from mortice.backends.kernel_tools import KernelMixin
from mortice_cuda_cupy.kernels.copying import contiguous
from mortice_cuda_cupy.kernels.launch import FLOATS, MAX_BLOCKS, Plans, Program, empty, launcher, over_rows, prod

SOFTMAX = Program(
    "softmax.cu",
    *[f"softmax_{part}<{{T}}, {log}>" for part in ("rows", "grad_rows", "columns", "grad_columns")
      for log in ("false", "true")],
)  # fmt: skip


class SoftmaxKernels(KernelMixin):
    """A row is read twice and written once, whatever its length; half precision is summed in float32."""

    def softmax(self, x: Any, *, axis: int) -> Any:
        return _launch(self, "", "false", (x,), axis) if _fits(self, x) else super().softmax(x, axis=axis)

    def softmax_grad(self, g: Any, out: Any, *, axis: int) -> Any:
        if not _fits(self, g):
            return super().softmax_grad(g, out, axis=axis)
        return _launch(self, "grad_", "false", (g, out), axis)

    def log_softmax(self, x: Any, *, axis: int) -> Any:
        return _launch(self, "", "true", (x,), axis) if _fits(self, x) else super().log_softmax(x, axis=axis)

    def log_softmax_grad(self, g: Any, out: Any, *, axis: int) -> Any:
        if not _fits(self, g):
            return super().log_softmax_grad(g, out, axis=axis)
        return _launch(self, "grad_", "true", (g, out), axis)


def _fits(k: Any, x: Any) -> bool:
    return x.ndim > 0 and x.size > 0 and k.dtype_of(x) in FLOATS


def _launch(k: Any, part: str, log: str, arrays: tuple[Any, ...], axis: int) -> Any:
    first = arrays[0]
    out = empty(first.shape, first.dtype)
    _plans[k.dtype_of(first), part, log, first.shape, axis % first.ndim](*map(contiguous, arrays), out)
    return out


def _plan(dtype: Any, part: str, log: str, shape: tuple[int, ...], axis: int) -> Any:
    n, inner = shape[axis], prod(shape[axis + 1 :])
    lines = prod(shape) // n
    if inner == 1:
        grid, block = over_rows(lines, n)
        kernel, sizes = "rows", (lines, n)
    else:
        grid, block = (min(-(-lines // 32), MAX_BLOCKS),), (32, 8)
        kernel, sizes = "columns", (lines, n, inner)
    launch = SOFTMAX.get(dtype, f"softmax_{part}{kernel}<{{T}}, {log}>")
    return launcher(launch, grid, block, ("xxx" if part else "xx") + "=" * len(sizes), *sizes)


_plans = Plans(_plan)
