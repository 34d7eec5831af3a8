"""The backend: housekeeping, then the required kernels. All else in mortice is made of these.

By the time that a kernel is called, the core has checked shapes and promoted dtypes: operands have one dtype and are on
one device, and axes are in range. One of two operands may be a Python number; it counts as the other's dtype. A kernel
never changes an operand, and computes as IEEE 754 says, without a warning.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any

from mortice.backends import DTYPES, Backend, DType, HostBuffer
from mortice_conformance.new.template import plain

# mortice's dtypes that this backend has, and how its memory calls them. bool, int64 and float32 are the least.
CODES = {
    "bool": "B", "uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q",
    "int8": "b", "int16": "h", "int32": "i", "int64": "q", "float32": "f", "float64": "d",
}  # fmt: skip
NATIVE = {d: CODES[d.name] for d in DTYPES if d.name in CODES}
BOOL, INT64 = (next(d for d in DTYPES if d.name == name) for name in ("bool", "int64"))


class Buffer:
    """What kernels take and return: elements in row-major order. Put your library's own array in its place."""

    __slots__ = ("data", "shape", "dtype", "device", "__weakref__")

    def __init__(self, data: array, shape: Sequence[int], dtype: DType, device: Any) -> None:
        self.data, self.shape, self.dtype, self.device = data, tuple(shape), dtype, device

    def like(self, values: Iterable[Any], shape: Sequence[int], dtype: DType | None = None) -> Buffer:
        """Return a buffer of other values on the same device, of the same dtype unless another is given."""
        dtype = dtype or self.dtype
        return Buffer(array(NATIVE[dtype], values), shape, dtype, self.device)


class TemplateBackend(Backend):
    """The required kernels. Write a free one too, such as `softmax`, where your library is faster: that declares it."""

    # True once `setitem` writes in place, and `getitem`, `reshape`, `permute_dims`, `broadcast_to` return views.
    mutable = False

    # ---- housekeeping: written for the Buffer above; adapt it to your array first ----

    def device_names(self) -> list[str]:
        """Return the devices that are there now; the first is the default."""
        return ["template"]

    def dtypes(self, device: Any) -> frozenset[DType]:
        """Return the dtypes that a device computes in."""
        return frozenset(NATIVE)

    def from_host(self, host: HostBuffer, device: Any) -> Buffer:
        """Copy host memory to the device. `host.tobytes()` has the elements in row-major order."""
        data = array(NATIVE[host.dtype])
        data.frombytes(host.tobytes())
        return Buffer(data, host.shape, host.dtype, device)

    def to_host(self, x: Buffer) -> HostBuffer:
        """Return the elements in host memory: anything with Python's buffer protocol, row-major, as a HostBuffer."""
        return HostBuffer(x.data.tobytes(), x.shape, x.dtype)

    def synchronize(self, device: Any) -> None:
        """Wait until all work on the device is done."""

    def shape_of(self, x: Buffer) -> tuple[int, ...]:
        """Return the sizes. Asked often, as are the next two."""
        return x.shape

    def dtype_of(self, x: Buffer) -> DType:
        """Return mortice's dtype."""
        return x.dtype

    def device_of(self, x: Buffer) -> Any:
        """Return mortice's device, as `full`, `arange` and `from_host` were given it."""
        return x.device

    # ---- REQUIRED: creation ----

    def full(self, shape: Any, value: Any, *, dtype: DType, device: Any) -> Buffer:
        """Fill a new buffer of that shape with a Python number."""
        shape = tuple(shape)
        return Buffer(array(NATIVE[dtype], [plain.element(value, dtype)]) * plain.size(shape), shape, dtype, device)

    def arange(self, start: Any, stop: Any, step: Any, *, dtype: DType, device: Any) -> Buffer:
        """Count from start up to, or down to, stop and without it; floats may count in fractions."""
        values = [plain.element(start + i * step, dtype) for i in range(plain.steps(start, stop, step))]
        return Buffer(array(NATIVE[dtype], values), (len(values),), dtype, device)

    def astype(self, x: Buffer, dtype: DType) -> Buffer:
        """Convert: floats to integers towards zero, integers wrap, to bool what is not zero."""
        return x.like([plain.element(v, dtype) for v in x.data], x.shape, dtype)

    def copy(self, x: Buffer) -> Buffer:
        """Return the same elements in memory of their own."""
        return x.like(x.data, x.shape)

    # ---- REQUIRED: movement ----

    def reshape(self, x: Buffer, shape: Any) -> Buffer:
        """Return the elements, in row-major order, in another shape; one size may be -1."""
        return x.like(x.data, plain.inferred(shape, len(x.data)))

    def permute_dims(self, x: Buffer, axes: Any) -> Buffer:
        """Order the axes anew: axis i of the result is axes[i] of x."""
        return plain.permute_dims(x, axes)

    def broadcast_to(self, x: Buffer, shape: Any) -> Buffer:
        """Repeat along axes of size 1 and along new axes in front."""
        return x.like(plain.spread(x, tuple(shape)), shape)

    def concat(self, arrays: Any, *, axis: int) -> Buffer:
        """Join buffers along an axis; their other sizes agree."""
        return plain.concat(arrays, axis)

    def getitem(self, x: Buffer, key: Any) -> Buffer:
        """Index by a tuple of ints, slices of any step, None and Ellipsis. Slices may reach beyond the end."""
        return plain.getitem(x, key)

    def setitem(self, x: Buffer, key: Any, value: Any) -> Buffer:
        """Write value, broadcast, where `getitem` reads. Return x after the write: itself if mutable, else a new buffer."""
        return plain.setitem(x, key, value)

    # ---- REQUIRED: elementwise ----

    def negative(self, x: Buffer) -> Buffer:
        """Change the sign; unsigned integers wrap."""
        return plain.unary(lambda v: -v, x)

    def abs(self, x: Buffer) -> Buffer:
        """Drop the sign."""
        return plain.unary(abs, x)

    def sign(self, x: Buffer) -> Buffer:
        """Give -1, 0 or 1; nan stays, bools stay."""
        return plain.unary(plain.sign, x)

    def exp(self, x: Buffer) -> Buffer:
        """Raise e to each element. Floats only, as in the next six."""
        return plain.unary(plain.exp, x)

    def log(self, x: Buffer) -> Buffer:
        """Take the natural logarithm: -inf of 0, nan below."""
        return plain.unary(plain.log, x)

    def sqrt(self, x: Buffer) -> Buffer:
        """Take the square root, correctly rounded: nan below 0."""
        return plain.unary(plain.sqrt, x)

    def sin(self, x: Buffer) -> Buffer:
        """Take the sine: nan of infinities."""
        return plain.unary(plain.sin, x)

    def cos(self, x: Buffer) -> Buffer:
        """Take the cosine: nan of infinities."""
        return plain.unary(plain.cos, x)

    def tanh(self, x: Buffer) -> Buffer:
        """Take the hyperbolic tangent."""
        return plain.unary(plain.tanh, x)

    def floor(self, x: Buffer) -> Buffer:
        """Round down; integers stay."""
        return plain.unary(plain.floor, x)

    def isnan(self, x: Buffer) -> Buffer:
        """Tell where an element is nan, as bools."""
        return plain.unary(lambda v: v != v, x, BOOL)

    def logical_not(self, x: Buffer) -> Buffer:
        """Tell where an element is zero, as bools."""
        return plain.unary(lambda v: not v, x, BOOL)

    # ---- REQUIRED: arithmetic; operands broadcast, and either may be a Python number ----

    def add(self, x: Any, y: Any) -> Buffer:
        """Add; integers wrap, bools give `or`."""
        return plain.binary(lambda a, b: a + b, x, y)

    def subtract(self, x: Any, y: Any) -> Buffer:
        """Subtract; integers wrap."""
        return plain.binary(lambda a, b: a - b, x, y)

    def multiply(self, x: Any, y: Any) -> Buffer:
        """Multiply; integers wrap, bools give `and`."""
        return plain.binary(lambda a, b: a * b, x, y)

    def divide(self, x: Any, y: Any) -> Buffer:
        """Divide floats: inf or nan by 0."""
        return plain.binary(plain.divide, x, y)

    def floor_divide(self, x: Any, y: Any) -> Buffer:
        """Divide and round down; integers by 0 may give anything, floats give what `divide` does."""
        return plain.binary(plain.floor_divide, x, y)

    def remainder(self, x: Any, y: Any) -> Buffer:
        """Return what `floor_divide` leaves: it has the sign of y; nan for floats by 0."""
        return plain.binary(plain.remainder, x, y)

    def pow(self, x: Any, y: Any) -> Buffer:
        """Raise x to y. Integers have y of at least 0 and wrap."""
        return plain.binary(plain.pow, x, y)

    def maximum(self, x: Any, y: Any) -> Buffer:
        """Return the larger; nan where either is nan."""
        return plain.binary(plain.larger, x, y)

    def minimum(self, x: Any, y: Any) -> Buffer:
        """Return the smaller; nan where either is nan."""
        return plain.binary(plain.smaller, x, y)

    def equal(self, x: Any, y: Any) -> Buffer:
        """Tell where x is y, as bools."""
        return plain.binary(lambda a, b: a == b, x, y, BOOL)

    def less(self, x: Any, y: Any) -> Buffer:
        """Tell where x is less than y, as bools."""
        return plain.binary(lambda a, b: a < b, x, y, BOOL)

    def where(self, cond: Buffer, x: Any, y: Any) -> Buffer:
        """Choose x where the bools of cond are true, else y; all three broadcast."""
        return plain.where(cond, x, y)

    # ---- REQUIRED: bits of integers and bools ----

    def bitwise_and(self, x: Any, y: Any) -> Buffer:
        """Keep the bits that both have."""
        return plain.binary(lambda a, b: a & b, x, y)

    def bitwise_or(self, x: Any, y: Any) -> Buffer:
        """Join the bits of both."""
        return plain.binary(lambda a, b: a | b, x, y)

    def bitwise_xor(self, x: Any, y: Any) -> Buffer:
        """Keep the bits that one of them has."""
        return plain.binary(lambda a, b: a ^ b, x, y)

    def bitwise_left_shift(self, x: Any, y: Any) -> Buffer:
        """Shift the bits of integers up by y; bits fall off the top."""
        return plain.binary(lambda a, b: a << min(b, 64), x, y)

    def bitwise_right_shift(self, x: Any, y: Any) -> Buffer:
        """Shift the bits of integers down by y; the sign stays."""
        return plain.binary(lambda a, b: a >> min(b, 64), x, y)

    # ---- REQUIRED: reduction; axis is None, an int or a tuple of ints, and results keep the dtype ----

    def sum(self, x: Buffer, *, axis: Any = None, keepdims: bool = False) -> Buffer:
        """Add up along axes, in the dtype of x: 0 of nothing; integers wrap."""
        return plain.reduce(sum, x, axis, keepdims)

    def prod(self, x: Buffer, *, axis: Any = None, keepdims: bool = False) -> Buffer:
        """Multiply along axes, in the dtype of x: 1 of nothing; integers wrap."""
        return plain.reduce(plain.product, x, axis, keepdims)

    def max(self, x: Buffer, *, axis: Any = None, keepdims: bool = False) -> Buffer:
        """Return the largest along axes; nan counts as the largest."""
        return plain.reduce(lambda row: max(row, key=plain.rank), x, axis, keepdims)

    def min(self, x: Buffer, *, axis: Any = None, keepdims: bool = False) -> Buffer:
        """Return the smallest along axes, nan where one is there."""
        return plain.reduce(plain.least, x, axis, keepdims)

    def argmax(self, x: Buffer, *, axis: int | None = None, keepdims: bool = False) -> Buffer:
        """Return where the largest is, as int64: the first of equals; nan counts as the largest."""
        return plain.reduce(plain.first_largest, x, axis, keepdims, INT64)

    def cumulative_sum(self, x: Buffer, *, axis: int) -> Buffer:
        """Add up along an axis, in the dtype of x, keeping each sum on the way."""
        return plain.along(x, axis, plain.sums)

    # ---- REQUIRED: linear algebra and indexing ----

    def matmul(self, x: Buffer, y: Buffer) -> Buffer:
        """Multiply matrices, of two axes or more, in their dtype: leading axes broadcast; a 1-D operand is a row, or a column."""
        return plain.matmul(x, y)

    def take(self, x: Buffer, indices: Buffer, *, axis: int) -> Buffer:
        """Pick positions along an axis by 1-D int64 indices, all in range."""
        return plain.take(x, indices, axis)

    def take_along_axis(self, x: Buffer, indices: Buffer, *, axis: int) -> Buffer:
        """Pick along an axis by int64 indices of x's number of axes; elsewhere each keeps its place."""
        return plain.take_along_axis(x, indices, axis)

    def scatter_add(self, x: Buffer, indices: Buffer, values: Buffer, *, axis: int) -> Buffer:
        """Return x with each value added where `take_along_axis` would read; positions may repeat."""
        return plain.scatter_add(x, indices, values, axis)

    def argsort(self, x: Buffer, *, axis: int, descending: bool = False) -> Buffer:
        """Return the int64 positions that sort along an axis. Equals keep their order both ways; nan is the largest."""
        return plain.along(x, axis, lambda row: plain.order(row, descending), INT64)
