"""The affine map and the gradient of its weight: leading axes are rows of one big matrix."""

from __future__ import annotations

from typing import Any

from mortice.backends.kernel_tools import KernelMixin
from mortice.backends.nn_common import narrow, widen
from mortice.shape import prod


class LinearKernels(KernelMixin):
    """FREE: x is (..., in), w is (out, in), b is (out,) or None."""

    def linear(self, x: Any, w: Any, b: Any = None) -> Any:
        """Compute x w^T + b."""
        shape, dtype = self.shape_of(x), self.dtype_of(x)
        if b is not None and self.wide_products:
            x, w, b = widen(self, x), widen(self, w), widen(self, b)
        out = self.matmul(_rows(self, x), self.matrix_transpose(w))
        if b is not None:
            out = narrow(self, self.add(out, b), dtype)
        return out if len(shape) == 2 else self.reshape(out, (*tuple(shape)[:-1], self.shape_of(w)[0]))

    def linear_weight_grad(self, g: Any, x: Any) -> Any:
        """Compute g^T x over all rows: the gradient of `linear` by w."""
        return self.matmul(self.matrix_transpose(_rows(self, g)), _rows(self, x))


def _rows(k: Any, x: Any) -> Any:
    shape = k.shape_of(x)
    return x if len(shape) == 2 else k.reshape(x, (prod(shape[:-1]), shape[-1]))
