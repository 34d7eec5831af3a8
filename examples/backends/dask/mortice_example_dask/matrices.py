"""Linear algebra by NumPy's LAPACK, on arrays that are computed anyway.

dask.array has some of it, of matrices cut along one axis, and no eigenvalues: https://github.com/dask/dask/issues/2618.
mortice's own bodies serve too; they take thousands of small steps, of some milliseconds each here.
"""

import numpy

from mortice.backends import Backend


def _good(x):
    return numpy.zeros(x.shape[:-2], numpy.int32)


def _cholesky_ex(x, *, upper=False):
    return numpy.linalg.cholesky(x, upper=upper), _good(x)


def _solve_ex(a, b):
    return numpy.linalg.solve(a, b), _good(a)


def _inv_ex(x):
    return numpy.linalg.inv(x), _good(x)


def _qr(x, *, mode="reduced"):
    return (numpy.zeros((0,), x.dtype), numpy.linalg.qr(x, "r")) if mode == "r" else numpy.linalg.qr(x, mode)


def _eigh(x, *, upper=False):
    return numpy.linalg.eigh(x, "U" if upper else "L")


def _eig(x):
    return tuple(found.astype(numpy.result_type(x, numpy.complex64)) for found in numpy.linalg.eig(x))


def _svd(x, *, full_matrices=True):
    return numpy.linalg.svd(x, full_matrices)


FUNCTIONS = {
    "cholesky_ex": _cholesky_ex, "solve_ex": _solve_ex, "inv_ex": _inv_ex, "qr": _qr, "eigh": _eigh, "eig": _eig,
    "svd": _svd, "det": numpy.linalg.det, "slogdet": numpy.linalg.slogdet,
}  # fmt: skip


def kernels(from_array):
    """Return kernels of dask's arrays by name; what LAPACK refuses, such as singular matrices, mortice's bodies do."""

    def lent(name, function):
        def kernel(x, *more, **attrs):
            if 0 not in x.shape:
                try:
                    found = function(*[numpy.asarray(operand) for operand in (x, *more)], **attrs)
                    results = [from_array(numpy.asarray(f)) for f in (found if isinstance(found, tuple) else (found,))]
                    return tuple(results) if isinstance(found, tuple) else results[0]
                except numpy.linalg.LinAlgError:
                    pass
            from mortice.backends.plugins import load

            return getattr(Backend, name)(load("dask"), x, *more, **attrs)

        return kernel

    return {name: lent(name, function) for name, function in FUNCTIONS.items()}
