"""The FREE kernels: everything a backend need not write, with default bodies in required kernels.

`FreeKernels` gathers the families and adds the small helpers that all of them use. A backend inherits it and overrides
what it can do faster; Tensors inherit it too (`node.TensorKernels`), so a default body differentiates.
"""

from __future__ import annotations

from array import array

from mortice.catalog import FREE_KERNELS
from mortice.dtype import DType, bool_, float64, int64
from mortice.lazy import Lazy
from mortice.shape import prod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mortice.backends.elementwise import ElementwiseKernels
    from mortice.backends.elementwise_extra import ExtraKernels
    from mortice.backends.fft import FFTKernels
    from mortice.backends.linalg import LinalgKernels
    from mortice.backends.movement import MovementKernels
    from mortice.backends.nn_activation import ActivationKernels
    from mortice.backends.nn_attention import AttentionKernels
    from mortice.backends.nn_conv import ConvKernels
    from mortice.backends.nn_ctc import CTCKernels
    from mortice.backends.nn_grid import GridKernels
    from mortice.backends.nn_linear import LinearKernels
    from mortice.backends.nn_loss import LookupKernels
    from mortice.backends.nn_norm import NormKernels
    from mortice.backends.nn_pool import PoolKernels
    from mortice.backends.nn_resize import ResizeKernels
    from mortice.backends.nn_rnn import RecurrentKernels
    from mortice.backends.optim import OptimKernels
    from mortice.backends.philox import RandomKernels
    from mortice.backends.reduction import ReductionKernels
    from mortice.backends.special_bessel import BesselKernels
    from mortice.backends.special_gamma import GammaKernels


    class Families(
        OptimKernels, ElementwiseKernels, ExtraKernels, BesselKernels, GammaKernels, ReductionKernels, LinalgKernels,
        ActivationKernels, NormKernels, ConvKernels, PoolKernels, LookupKernels, AttentionKernels, ResizeKernels,
        GridKernels, RecurrentKernels, CTCKernels, LinearKernels, RandomKernels, FFTKernels, MovementKernels,
    ):  # fmt: skip
        """The families in the files beside this one."""
else:
    # Each kernel is imported when it is first asked for.
    Families = type("Families", (), {
        name: Lazy(f"mortice.{module}", f"{cls}.{name}")
        for place, names in FREE_KERNELS.items() for module, cls in [place.split(":")] for name in names.split()
    })  # fmt: skip


class FreeKernels(Families):
    """Every FREE kernel. Those here are constants beside a buffer, and rearrangements that are one required kernel each."""

    # Whether the kernels that end in norm_grads take g and x beside a weight of a wider dtype, and return the parameters' gradients
    # in that one; where not, g and x come in it too.
    mixed_norms = False
    # Whether convolutions and products of halves are computed in float32, so that a bias joins them before they are rounded.
    wide_products = True

    def zeros_like(self, x: Any) -> Any:
        """Make zeros of x's shape and dtype."""
        return self.full_like(x, 0)

    def ones_like(self, x: Any) -> Any:
        """Make ones of x's shape and dtype."""
        return self.full_like(x, 1)

    def full_like(self, x: Any, value: Any) -> Any:
        """Fill x's shape with a number."""
        return self.full(self.shape_of(x), value, dtype=self.dtype_of(x), device=self.device_of(x))

    def new_full(self, x: Any, shape: Any, value: Any, dtype: DType | None = None) -> Any:
        """Fill a shape with a number, on x's device, in x's dtype unless one is given."""
        return self.full(tuple(shape), value, dtype=dtype or self.dtype_of(x), device=self.device_of(x))

    def new_arange(self, x: Any, start: Any, stop: Any, step: Any = 1, dtype: DType = int64) -> Any:
        """Count on x's device."""
        return self.arange(start, stop, step, dtype=dtype, device=self.device_of(x))

    def ramp(
        self, start: float, step: float, count: int, lanes: int, *, dtype: DType, device: Any, end: float | None = None
    ) -> Any:
        """Return start + i * step for each i below count, as if rounded once, in the device's widest float.

        With lanes, of each so many elements the first is rounded to the dtype and the others count from it; what is left of
        whole pairs of such groups counts from start. So arange(-3, 3, 0.1) holds -2.3842e-08 and no 0, as in PyTorch.
        With an end, and without lanes, the latter half counts back from it.
        """
        if end is not None and count > 1:
            back = self.ramp(end, -step, count - count // 2, 0, dtype=dtype, device=device)
            there = self.ramp(start, step, count // 2, 0, dtype=dtype, device=device)
            return self.concat([there, self.flip(back, axis=0)], axis=0)
        wide = device.widest_float
        exact = float64 is wide is not dtype
        # Two products that nothing rounds; else what cancels would leave 0 or the rounding of the product.
        high = array("f", (step,))[0] if exact else step
        parts = [part for part in (high, step - high) if part] or [step]

        def line(first: int, last: int, by: int, base: Any) -> Any:
            index = self.arange(first, last, by, dtype=float64 if wide is float64 else int64, device=device)
            index = index if wide is float64 else self.astype(index, wide)
            for part in parts:
                index_part = index if part == 1 else self.multiply(index, part)
                base = index_part if base is None else self.add(index_part, base)
            return self.astype(base, dtype)

        begin = start or (None if step > 0 else 0.0)  # -0 + 0 is 0
        whole = count - count % (2 * lanes) if lanes and exact and not start % 1 == step % 1 == 0 else 0
        if not whole:
            return line(0, count, 1, begin)
        first = self.reshape(self.astype(line(0, whole, lanes, begin), wide), (-1, 1))
        data = self.reshape(line(0, lanes, 1, first), (whole,))
        return data if whole == count else self.concat([data, line(whole, count, 1, begin)], axis=0)

    def expand_dims(self, x: Any, axis: int) -> Any:
        """Insert an axis of size 1."""
        shape = tuple(self.shape_of(x))
        axis = axis % (len(shape) + 1)
        return self.reshape(x, (*shape[:axis], 1, *shape[axis:]))

    def squeeze(self, x: Any, axis: Any) -> Any:
        """Drop axes of size 1."""
        shape = self.shape_of(x)
        drop = {a % len(shape) for a in ((axis,) if isinstance(axis, int) else axis)}
        return self.reshape(x, tuple(n for i, n in enumerate(shape) if i not in drop))

    def matrix_transpose(self, x: Any) -> Any:
        """Swap the last two axes."""
        n = len(self.shape_of(x))
        return self.permute_dims(x, (*range(n - 2), n - 1, n - 2))

    def moveaxis(self, x: Any, source: int, destination: int) -> Any:
        """Move one axis to another place."""
        n = len(self.shape_of(x))
        order = [i for i in range(n) if i != source % n]
        order.insert(destination % n, source % n)
        return self.permute_dims(x, tuple(order))

    def flip(self, x: Any, axis: Any) -> Any:
        """Reverse along axes; may be a view."""
        n = len(self.shape_of(x))
        axes = {a % n for a in ((axis,) if isinstance(axis, int) else axis)} if n else set()
        if not axes:
            return self.copy(x)
        return self.getitem(x, tuple(slice(None, None, -1) if i in axes else slice(None) for i in range(n)))

    def stack(self, arrays: Any, axis: int) -> Any:
        """Join along a new axis."""
        return self.concat([self.expand_dims(a, axis) for a in arrays], axis=axis % (len(self.shape_of(arrays[0])) + 1))

    def pad(self, x: Any, widths: Any, value: Any = 0) -> Any:
        """Surround with a constant; `widths` has (before, after) per axis, not negative."""
        shape = self.shape_of(x)
        if not any(b or a for b, a in widths):
            return x
        padded = self.new_full(x, tuple(n + b + a for n, (b, a) in zip(shape, widths)), value)
        return self.setitem(padded, tuple(slice(b, b + n) for n, (b, _) in zip(shape, widths)), x)

    def index_add(self, x: Any, indices: Any, values: Any, *, axis: int) -> Any:
        """Add slices of `values` at positions (1-D) along an axis."""
        return self.scatter_add(x, self._along(indices, values, axis), values, axis=axis)

    def index_write(self, x: Any, indices: Any, values: Any, *, axis: int) -> Any:
        """Replace slices at positions (1-D) along an axis; of a repeated position the last write stays."""
        count = self.shape_of(indices)[0]
        if count == 0:
            return self.copy(x)
        if self.dtype_of(x) is bool_:
            wide = self.index_write(self.astype(x, int64), indices, self.astype(values, int64), axis=axis)
            return self.astype(wide, bool_)
        # A stable sort puts equal positions side by side in the order of writing: the last of each run wins.
        order = self.argsort(indices, axis=0)
        places = self.take(indices, order, axis=0)
        last = self.concat(
            [self.not_equal(self.getitem(places, (slice(1, None),)), self.getitem(places, (slice(0, -1),))),
             self.full((1,), True, dtype=bool_, device=self.device_of(x))], axis=0)  # fmt: skip
        shape = tuple(-1 if i == axis else 1 for i in range(len(self.shape_of(x))))
        keep = self.reshape(last, tuple(count if n == -1 else 1 for n in shape))
        values = self.take(values, order, axis=axis)
        wide = self._along(places, values, axis)
        zero = self.new_full(x, self.shape_of(x), 0, dtype=self.dtype_of(values))
        written = self.scatter_add(zero, wide, self.where(keep, values, 0), axis=axis)
        hits = self.scatter_add(
            self.new_full(x, self.shape_of(x), 0, dtype=int64), wide,
            self.broadcast_to(self.astype(keep, int64), self.shape_of(values)), axis=axis)  # fmt: skip
        return self.where(self.less(0, hits), written, x)

    def _along(self, indices: Any, values: Any, axis: int) -> Any:
        shape = self.shape_of(values)
        wide = self.reshape(indices, tuple(n if i == axis else 1 for i, n in enumerate(shape)))
        return self.broadcast_to(wide, shape)

    def sum_all(self, x: Any) -> Any:
        """Add up all elements: what `sum` does without arguments, for backends where handling them costs."""
        return self.sum(x, axis=None, keepdims=False)

    def numel_of(self, x: Any) -> int:
        """Return the number of elements."""
        return prod(self.shape_of(x))
