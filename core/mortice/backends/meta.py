"""The device "meta": tensors that have a shape, strides and a dtype, and no elements.

On it a model of any size is built and run in no memory, to ask for its parameters' shapes or what it would give. Every
kernel that looks at no values works: the required ones stand below, and what is made of them follows.
"""

from __future__ import annotations

from mortice.backends.backend import REQUIRED, Backend
from mortice.backends.movement import diagonal_place
from mortice.dtype import DTYPES, DType, bool_, int64
from mortice.shape import broadcast, contiguous_strides, prod, reduced_shape, view_strides

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mortice.device import Device


class Outline:
    """What a buffer without elements is: `size` is the number of elements of its memory, `offset` where it begins there."""

    __slots__ = ("shape", "dtype", "strides", "offset", "size", "owns")

    def __init__(self, shape: Any, dtype: DType, strides: Any = None, offset: int = 0, memory: Outline | None = None) -> None:
        self.shape, self.dtype = tuple(shape), dtype
        self.strides = contiguous_strides(self.shape) if strides is None else tuple(strides)
        self.offset, self.owns = offset, memory is None
        self.size: int = prod(self.shape) if memory is None else memory.size


def _common(*operands: Any) -> tuple[Any, DType]:
    """Return the shape and dtype of operands together; a Python number has neither."""
    found = [x for x in operands if isinstance(x, Outline)]
    return broadcast("meta", *[x.shape for x in found]), found[-1].dtype


class MetaBackend(Backend):
    """Kernels that say what the result would be."""

    mutable = True
    has_values = False
    random_chunk = 1 << 60  # draws need not be made piece by piece

    # ---- housekeeping ----

    def device_names(self) -> list[str]:
        return ["meta"]

    def dtypes(self, device: Device) -> frozenset[DType]:
        return frozenset(DTYPES)

    def from_host(self, host: Any, device: Device) -> Any:
        return Outline(host.shape, host.dtype)

    def to_host(self, x: Any) -> Any:
        raise NotImplementedError(
            "meta: Cannot copy out of meta tensor; no data! A tensor on this device has a shape and a dtype only. "
            "Give a module memory with .to_empty(device=...), a tensor with mortice.empty_like(t, device=...)."
        )

    def item(self, x: Any) -> Any:
        raise RuntimeError(
            "item: Tensor.item() cannot be called on meta tensors, which have no values; nor can what depends on them. "
            "Use a tensor on another device."
        )

    def copy_to(self, x: Any, device: Device) -> Any:
        return self.copy(x)

    def synchronize(self, device: Device) -> None:
        """Nothing is ever under way."""

    def shape_of(self, x: Any) -> tuple[int, ...]:
        return x.shape  # type: ignore[no-any-return]

    def dtype_of(self, x: Any) -> DType:
        return x.dtype  # type: ignore[no-any-return]

    def device_of(self, x: Any) -> Device:
        return self.device("meta")

    def strides_of(self, x: Any) -> tuple[int, ...]:
        return x.strides  # type: ignore[no-any-return]

    def owns(self, x: Any) -> bool:
        return x.owns  # type: ignore[no-any-return]

    def address(self, x: Any) -> int:
        return 0

    def whole(self, x: Any) -> tuple[Any, int]:
        return Outline((x.size,), x.dtype, memory=x), x.offset

    def strided(self, x: Any, *, shape: Any, strides: Any, offset: int) -> Any:
        return Outline(shape, x.dtype, strides, x.offset + offset, x)

    # ---- creation and conversion ----

    def full(self, shape: Any, value: Any, *, dtype: DType, device: Device) -> Any:
        return Outline(shape, dtype)

    def arange(self, start: Any, stop: Any, step: Any, *, dtype: DType, device: Device) -> Any:
        return Outline((max(0, -int((start - stop) // step)),), dtype)

    def astype(self, x: Any, dtype: DType) -> Any:
        return Outline(x.shape, dtype)

    def copy(self, x: Any) -> Any:
        return Outline(x.shape, x.dtype)

    def reinterpret(self, x: Any, dtype: DType) -> Any:
        return Outline((*x.shape[:-1], *[n * x.dtype.itemsize // dtype.itemsize for n in x.shape[-1:]]), dtype)

    # ---- movement ----

    def reshape(self, x: Any, shape: Any) -> Any:
        shape = tuple(shape)
        if -1 in shape:
            rest = prod([n for n in shape if n != -1])
            shape = tuple([prod(x.shape) // rest if n == -1 else n for n in shape])
        strides = view_strides(x.shape, x.strides, shape)
        return Outline(shape, x.dtype) if strides is None else Outline(shape, x.dtype, strides, x.offset, x)

    def permute_dims(self, x: Any, axes: Any) -> Any:
        return Outline([x.shape[a] for a in axes], x.dtype, [x.strides[a] for a in axes], x.offset, x)

    def broadcast_to(self, x: Any, shape: Any) -> Any:
        shape = tuple(shape)
        more = len(shape) - len(x.shape)
        strides = [0 if n == 1 and m != 1 else step for n, step, m in zip(x.shape, x.strides, shape[more:])]
        return Outline(shape, x.dtype, [0] * more + strides, x.offset, x)

    def concat(self, arrays: Any, *, axis: int) -> Any:
        first, *_ = arrays = list(arrays)
        shape = list(first.shape)
        shape[axis] = sum(x.shape[axis] for x in arrays)
        return Outline(shape, first.dtype)

    def getitem(self, x: Any, key: Any) -> Any:
        key = key if isinstance(key, tuple) else (key,)
        if Ellipsis not in key:
            key = (*key, Ellipsis)
        at = key.index(Ellipsis)
        left = len(x.shape) - sum(part is not None for part in key) + 1
        dims = iter(zip(x.shape, x.strides))
        shape, strides, offset = [], [], x.offset
        for part in (*key[:at], *[slice(None)] * left, *key[at + 1 :]):
            if part is None:
                shape.append(1)
                strides.append(1)
                continue
            n, step = next(dims)
            if isinstance(part, slice):
                places = range(*part.indices(n))
                shape.append(len(places))
                strides.append(step * places.step)
                offset += step * places.start if places else 0
            else:
                offset += step * (part + n if part < 0 else part)
        return Outline(shape, x.dtype, strides, offset, x)

    def diagonal(self, x: Any, *, offset: int, axis1: int, axis2: int) -> Any:
        _, count = diagonal_place(x.shape[axis1], x.shape[axis2], offset)
        down, right = x.strides[axis1], x.strides[axis2]
        start = right * offset if offset >= 0 else -down * offset
        rest = [a for a in range(len(x.shape)) if a not in (axis1, axis2)]
        shape, strides = [x.shape[a] for a in rest], [x.strides[a] for a in rest]
        return Outline((*shape, count), x.dtype, (*strides, down + right), x.offset + (start if count else 0), x)

    def sliding_window(self, x: Any, *, axis: int, size: int, step: int) -> Any:
        if not x.shape:
            return self.reshape(x, (size,))
        shape, strides = list(x.shape), list(x.strides)
        shape[axis] = (shape[axis] - size) // step + 1
        strides[axis] *= step
        return Outline((*shape, size), x.dtype, (*strides, x.strides[axis]), x.offset, x)

    def setitem(self, x: Any, key: Any, value: Any) -> Any:
        return x

    # ---- elementwise ----

    def abs(self, x: Any) -> Any:
        return Outline(x.shape, x.dtype.to_real())

    real = imag = abs

    def isnan(self, x: Any) -> Any:
        return Outline(x.shape, bool_)

    logical_not = isnan

    def equal(self, x: Any, y: Any) -> Any:
        return Outline(_common(x, y)[0], bool_)

    less = equal

    def where(self, cond: Any, x: Any, y: Any) -> Any:
        if not isinstance(x, Outline) and not isinstance(y, Outline):
            raise TypeError("where: expected a buffer beside the condition; got two numbers.")
        return Outline(_common(cond, x, y)[0], _common(x, y)[1])

    # ---- reduction ----

    def sum(self, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        dims = range(len(x.shape)) if axis is None or not x.shape else (axis,) if isinstance(axis, int) else axis
        return Outline(reduced_shape(x.shape, [a % len(x.shape) for a in dims], keepdims), x.dtype)

    prod = max = min = sum

    def argmax(self, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        return self.astype(self.sum(x, axis=axis, keepdims=keepdims), int64)

    def cumulative_sum(self, x: Any, *, axis: int) -> Any:
        return self.copy(x)

    # ---- linear algebra and indexing ----

    def matmul(self, x: Any, y: Any) -> Any:
        rows, columns = x.shape[-2:-1], y.shape[-1:] if len(y.shape) > 1 else ()
        return Outline((*broadcast("matmul", x.shape[:-2], y.shape[:-2]), *rows, *columns), x.dtype)

    def take(self, x: Any, indices: Any, *, axis: int) -> Any:
        axis %= len(x.shape)
        return Outline((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), x.dtype)

    def take_along_axis(self, x: Any, indices: Any, *, axis: int) -> Any:
        return Outline(indices.shape, x.dtype)

    def scatter_add(self, x: Any, indices: Any, values: Any, *, axis: int) -> Any:
        return self.copy(x)

    def argsort(self, x: Any, *, axis: int, descending: bool = False) -> Any:
        return self.astype(x, int64)


def _like(self: Any, *operands: Any) -> Any:
    """Give a buffer of the operands' shape and dtype."""
    return Outline(*_common(*operands))


for _name in " ".join(REQUIRED[family] for family in ("elementwise", "arithmetic", "bits")).split() + ["conj"]:
    if _name not in vars(MetaBackend):
        setattr(MetaBackend, _name, _like)
