"""Two backends side by side for the tests of products: the extension's and cpu_numpy's, fed with the same arrays."""

import numpy as np

from mortice.backends import HostBuffer
from mortice.dtype import by_name
from mortice_cpu_numpy.backend import NumPyBackend

TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "complex64": 2e-5, "float64": 1e-11, "complex128": 1e-11}


class Pair:
    """Runs kernels on both backends."""

    def __init__(self, k):
        self.own, self.other = k, NumPyBackend()
        self.device = self.own.device("cpu")

    def array(self, x):
        """Return an array of the extension with x's strides as far as axes' order goes."""
        if not isinstance(x, np.ndarray):
            return x
        order = sorted(range(x.ndim), key=lambda i: -abs(x.strides[i]))
        flat = np.ascontiguousarray(x.transpose(order))
        view = memoryview(flat.reshape(-1).view(np.uint8)) if flat.size else memoryview(b"")
        made = self.own.from_host(HostBuffer(view, x.transpose(order).shape, by_name(str(x.dtype))), self.device)
        return self.own.permute_dims(made, tuple(int(i) for i in np.argsort(order))) if x.ndim > 1 else made

    def numpy(self, x):
        host = self.own.to_host(x)
        return np.frombuffer(host.tobytes(), dtype=host.dtype.name).reshape(tuple(host.shape))

    def agree(self, kernel, *operands, tolerance=None, **attributes):
        """Check that both backends give the same, and return what NumPy's gave."""
        mine = getattr(self.own, kernel)(*[self.array(x) for x in operands], **attributes)
        theirs = getattr(self.other, kernel)(*operands, **attributes)
        both = zip(mine, theirs) if isinstance(theirs, tuple) else [(mine, theirs)]
        for own, expected in both:
            if expected is None:
                assert own is None
                continue
            found = self.numpy(own)
            assert found.shape == expected.shape
            assert found.dtype == expected.dtype
            if expected.dtype.kind in "fc":
                limit = tolerance or TOLERANCE[str(expected.dtype)]
                size = max(1.0, float(np.abs(expected[np.isfinite(expected)]).max(initial=0)))
                np.testing.assert_allclose(found, expected, rtol=limit, atol=limit * size)
            else:
                np.testing.assert_array_equal(found, expected)
        return theirs
