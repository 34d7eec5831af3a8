"""A small backend of REQUIRED kernels over NumPy, to test the default bodies of the FREE ones.

Its buffers are opaque and read-only, operands of different dtypes are refused, and reading one on the host is counted.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

from mortice.backends.backend import Backend
from mortice.backends.host import HostBuffer
from mortice.dtype import bfloat16, bool_, by_name


def native(d):
    return np.dtype(ml_dtypes.bfloat16) if d is bfloat16 else np.dtype(d.name)


class Opaque:
    """A buffer that only kernels open."""

    __slots__ = ("array",)

    def __init__(self, array):
        self.array = np.asarray(array)
        self.array.flags.writeable = False

    def _refuse(self, *args):
        raise TypeError("a buffer is opaque to kernels' bodies")

    __bool__ = __len__ = __iter__ = __getitem__ = __add__ = __mul__ = __eq__ = __lt__ = __float__ = __int__ = _refuse
    __hash__ = None


def _elementwise(name, *, logical=False):
    def kernel(self, *operands):
        arrays = [x.array if isinstance(x, Opaque) else x for x in operands]
        dtypes = {x.dtype for x in arrays if isinstance(x, np.ndarray)}
        if len(dtypes) != 1:
            raise TypeError(f"{name}: expected operands of one dtype; got {dtypes}")
        (dtype,) = dtypes
        if name == "divide" and dtype.kind in "iub":
            raise TypeError("divide: expected floats")
        # One element each, so that a Python number takes the operand's dtype (and rounds to it).
        arrays = [x if isinstance(x, np.ndarray) else np.asarray(x).astype(dtype) for x in arrays]
        with np.errstate(all="ignore"):
            found = getattr(np, name)(*arrays)
        return Opaque(found if logical else found.astype(arrays[0].real.dtype if name in REAL else dtype, copy=False))

    kernel.__name__ = name
    return kernel


REAL = ("abs", "real", "imag")
NAMES = """negative abs sign exp log sqrt sin cos tanh floor conj real imag add subtract multiply divide floor_divide
remainder pow maximum minimum bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift""".split()


class NumpyShim(Backend):
    """The required kernels, and nothing that NumPy could do better."""

    name = "shim"
    reads = 0

    def device_names(self):
        return ["shim"]

    def dtypes(self, device):
        from mortice.dtype import DTYPES

        return frozenset(DTYPES)

    def synchronize(self, device):
        pass

    def from_host(self, host, device):
        return Opaque(np.frombuffer(host.tobytes(), host.dtype.name).reshape(host.shape))

    def to_host(self, x):
        return HostBuffer(memoryview(np.ascontiguousarray(x.array)), x.array.shape, self.dtype_of(x))

    def item(self, x):
        self.reads += 1
        return x.array.item()

    def shape_of(self, x):
        return x.array.shape

    def dtype_of(self, x):
        return by_name(x.array.dtype.name)

    def device_of(self, x):
        return self.device("shim")

    def full(self, shape, value, *, dtype, device):
        return Opaque(np.full(shape, value, dtype=native(dtype)))

    def arange(self, start, stop, step, *, dtype, device):
        return Opaque(np.arange(start, stop, step, dtype=native(dtype)))

    def astype(self, x, dtype):
        with np.errstate(all="ignore"):
            return Opaque(x.array.astype(native(dtype)))

    def copy(self, x):
        return Opaque(x.array.copy())

    def reshape(self, x, shape):
        return Opaque(x.array.reshape(shape))

    def permute_dims(self, x, axes):
        return Opaque(x.array.transpose(axes))

    def broadcast_to(self, x, shape):
        return Opaque(np.broadcast_to(x.array, shape))

    def concat(self, arrays, *, axis):
        return Opaque(np.concatenate([x.array for x in arrays], axis=axis))

    def getitem(self, x, key):
        return Opaque(x.array[key])

    def setitem(self, x, key, value):
        found = x.array.copy()
        found[key] = value.array if isinstance(value, Opaque) else value
        return Opaque(found)

    def where(self, cond, x, y):
        if cond.array.dtype != np.bool_:
            raise TypeError("where: expected a condition of bools")
        dtypes = {v.array.dtype for v in (x, y) if isinstance(v, Opaque)}
        if len(dtypes) != 1:
            raise TypeError(f"where: expected operands of one dtype; got {dtypes}")
        (dtype,) = dtypes
        return Opaque(np.where(cond.array, *(v.array if isinstance(v, Opaque) else dtype.type(v) for v in (x, y))))

    def sum(self, x, *, axis=None, keepdims=False):
        with np.errstate(all="ignore"):
            return Opaque(x.array.sum(axis=axis, keepdims=keepdims, dtype=x.array.dtype))

    def prod(self, x, *, axis=None, keepdims=False):
        with np.errstate(all="ignore"):
            return Opaque(x.array.prod(axis=axis, keepdims=keepdims, dtype=x.array.dtype))

    def max(self, x, *, axis=None, keepdims=False):
        return Opaque(x.array.max(axis=axis, keepdims=keepdims))

    def min(self, x, *, axis=None, keepdims=False):
        return Opaque(x.array.min(axis=axis, keepdims=keepdims))

    def argmax(self, x, *, axis=None, keepdims=False):
        return Opaque(np.argmax(x.array, axis=axis, keepdims=keepdims).astype(np.int64))

    def cumulative_sum(self, x, *, axis):
        return Opaque(np.cumsum(x.array, axis=axis, dtype=x.array.dtype))

    def matmul(self, x, y):
        with np.errstate(all="ignore"):
            return Opaque(np.matmul(x.array, y.array))

    def take(self, x, indices, *, axis):
        return Opaque(np.take(x.array, indices.array, axis=axis))

    def take_along_axis(self, x, indices, *, axis):
        return Opaque(np.take_along_axis(x.array, indices.array, axis=axis))

    def scatter_add(self, x, indices, values, *, axis):
        found = x.array.copy()
        grid = list(np.indices(indices.array.shape, sparse=True))
        grid[axis] = indices.array
        np.add.at(found, tuple(grid), values.array)
        return Opaque(found)

    def argsort(self, x, *, axis, descending=False):
        array = x.array
        if not descending:
            return Opaque(np.argsort(array, axis=axis, stable=True).astype(np.int64))
        # Sorting the mirrored array backwards keeps equal elements in order.
        order = np.flip(np.argsort(np.flip(array, axis), axis=axis, stable=True), axis)
        return Opaque((array.shape[axis] - 1 - order).astype(np.int64))


for _name in NAMES:
    setattr(NumpyShim, _name, _elementwise(_name))
for _name in ("isnan", "logical_not", "equal", "less"):
    setattr(NumpyShim, _name, _elementwise(_name, logical=True))

shim = NumpyShim()


def buffer(array):
    """Make a buffer of anything that NumPy takes as an array."""
    return Opaque(np.array(array))


def run(kernel, *args, **attributes):
    """Call a kernel on arrays and return arrays."""
    opened = [Opaque(np.array(a)) if isinstance(a, np.ndarray | np.generic) else a for a in args]
    attributes = {n: Opaque(np.array(a)) if isinstance(a, np.ndarray) else a for n, a in attributes.items()}
    found = getattr(shim, kernel)(*opened, **attributes)
    return tuple(f.array for f in found) if isinstance(found, tuple) else found.array


__all__ = ["NumpyShim", "Opaque", "bool_", "buffer", "native", "run", "shim"]
