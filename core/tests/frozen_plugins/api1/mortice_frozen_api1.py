"""A backend written against api 1 by hand: every required kernel, nothing else, and a device type of its own."""

from mortice.backends import DTYPES, Backend, BackendInfo, HostBuffer, hookimpl


def load():
    import numpy as np

    names = {d: np.dtype(d.name) for d in DTYPES if d.name != "bfloat16"}
    dtypes = {native: d for d, native in names.items()}

    class FrozenBackend(Backend):
        mutable = True

        # housekeeping

        def device_names(self):
            return ["frozen:0", "frozen:1"]

        def dtypes(self, device):
            return frozenset(names)

        def from_host(self, host, device):
            if host.raw:
                x = np.frombuffer(host.tobytes(), names[host.dtype]).reshape(host.shape)
            else:
                x = np.asarray(host.view)
            x = np.array(x).view(Placed)
            x.place = device
            return x

        def to_host(self, x):
            return HostBuffer(memoryview(np.asarray(x)), x.shape, dtypes[x.dtype])

        def synchronize(self, device):
            pass

        def shape_of(self, x):
            return x.shape

        def dtype_of(self, x):
            return dtypes[x.dtype]

        def device_of(self, x):
            return getattr(x, "place", None) or self.device("frozen:0")

        # required kernels that are not NumPy's own

        def full(self, shape, value, *, dtype, device):
            return self.placed(np.full(shape, value, names[dtype]), device)

        def arange(self, start, stop, step, *, dtype, device):
            return self.placed(np.arange(start, stop, step).astype(names[dtype]), device)

        def placed(self, x, device):
            x = x.view(Placed)
            x.place = device
            return x

        def astype(self, x, dtype):
            return (x.real if x.dtype.kind == "c" and not dtype.is_complex else x).astype(names[dtype])

        def copy(self, x):
            return np.array(x, subok=True)

        def reshape(self, x, shape):
            return x.reshape(shape)

        def permute_dims(self, x, axes):
            return x.transpose(axes)

        def broadcast_to(self, x, shape):
            return np.broadcast_to(x, shape, subok=True)

        def concat(self, arrays, *, axis):
            return np.concatenate(arrays, axis=axis)

        def getitem(self, x, key):
            return x[(*key, ...) if Ellipsis not in key else key]

        def setitem(self, x, key, value):
            x[key] = value
            return x

        def where(self, cond, x, y):
            like = x if hasattr(x, "dtype") else y
            return self.placed(np.asarray(np.where(cond, x, y)).astype(like.dtype), self.device_of(like))

        def sign(self, x):
            return x if x.dtype.kind == "b" else np.sign(x)

        def floor(self, x):
            return np.floor(x) if x.dtype.kind == "f" else x

        def sum(self, x, *, axis=None, keepdims=False):
            return np.asanyarray(np.sum(x, axis=axis if x.ndim else None, dtype=x.dtype, keepdims=keepdims))

        def prod(self, x, *, axis=None, keepdims=False):
            return np.asanyarray(np.prod(x, axis=axis if x.ndim else None, dtype=x.dtype, keepdims=keepdims))

        def max(self, x, *, axis=None, keepdims=False):
            return np.asanyarray(np.max(x, axis=axis if x.ndim else None, keepdims=keepdims))

        def min(self, x, *, axis=None, keepdims=False):
            return np.asanyarray(np.min(x, axis=axis if x.ndim else None, keepdims=keepdims))

        def argmax(self, x, *, axis=None, keepdims=False):
            return np.asanyarray(np.argmax(x, axis=axis if x.ndim else None, keepdims=keepdims))

        def cumulative_sum(self, x, *, axis):
            return np.cumsum(x, axis=axis, dtype=x.dtype)

        def take(self, x, indices, *, axis):
            return np.take(x, indices, axis=axis)

        def take_along_axis(self, x, indices, *, axis):
            return np.take_along_axis(x, indices, axis=axis)

        def scatter_add(self, x, indices, values, *, axis):
            out = self.copy(x)
            where = list(np.ix_(*[np.arange(n) for n in indices.shape]))
            where[axis] = np.asarray(indices)
            np.add.at(out, tuple(where), values)
            return out

        def argsort(self, x, *, axis, descending=False):
            if not descending:
                return np.argsort(x, axis=axis, kind="stable")
            return x.shape[axis] - 1 - np.flip(np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)

        def matmul(self, x, y):
            return np.asanyarray(np.matmul(x, y))

    class Placed(np.ndarray):
        """An array that knows its device; what is computed from it is there too."""

        place = None

        def __array_finalize__(self, source):
            self.place = getattr(source, "place", None)

        def __array_wrap__(self, array, context=None, return_scalar=False):
            array = np.asarray(array).view(Placed)
            array.place = self.place
            return array

    def kernel(fn):
        def call(self, *xs):
            with np.errstate(all="ignore"):
                return np.asanyarray(fn(*xs))

        return call

    for name, native in {
        **{n: n for n in "negative abs exp log sqrt sin cos tanh isnan logical_not conj real imag".split()},
        **{n: n for n in "add subtract multiply divide floor_divide remainder maximum minimum equal less".split()},
        **{n: n for n in "bitwise_and bitwise_or bitwise_xor".split()},
        "pow": "power", "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift",
    }.items():  # fmt: skip
        setattr(FrozenBackend, name, kernel(getattr(np, native)))
    return FrozenBackend()


@hookimpl
def mortice_backends():
    return [BackendInfo("frozen_api1", ("frozen",), load, priority=-1, needs="numpy", api=1)]
