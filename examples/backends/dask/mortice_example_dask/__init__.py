"""dask.array as a backend of mortice: the whole plugin. Importing it is cheap; `load` imports the library."""

from mortice.backends import BackendInfo, from_namespace, hookimpl


def load():
    """Import dask and return the backend."""
    import dask
    import dask.array
    import numpy
    from array_api_compat.dask import array as xp

    # The kernels of a small model are over before a thread has started.
    dask.config.set(scheduler="synchronous")

    class Namespace:
        """dask.array by the standard's names, each result computed at once: a training loop would pile up its whole past."""

        def __getattr__(self, name):
            found = getattr(xp, name)
            if callable(found) and not isinstance(found, type):
                found = at_once(found)
            self.__dict__[name] = found
            return found

        @staticmethod
        def take(x, indices, *, axis):
            # By a dask array of indices it warns of complex numbers: https://github.com/dask/dask/issues/11883.
            return at_once(dask.array.take)(x, numpy.asarray(indices), axis=axis)

        @staticmethod
        def reshape(x, shape):
            # It merges or splits axes, no more: https://github.com/dask/dask/issues/8634. From one axis it can do all.
            if 0 not in x.shape:
                x = dask.array.reshape(x.rechunk(-1), (-1,))
            return at_once(dask.array.reshape)(x, shape)

        @staticmethod
        def max(x, **attrs):
            return extreme(xp.max, x, attrs)

        @staticmethod
        def min(x, **attrs):
            return extreme(xp.min, x, attrs)

    def extreme(function, x, attrs):
        # It reduces empty chunks, though the result is empty too: https://github.com/dask/dask/issues/2794.
        return at_once(function)(x, **attrs) if 0 not in x.shape else at_once(xp.sum)(x, dtype=x.dtype, **attrs)

    def at_once(function):
        def eager(*args, **kwargs):
            # It computes with NumPy, which would warn where IEEE 754 has an answer.
            with numpy.errstate(all="ignore"):
                out = function(*args, **kwargs)
                return out.persist() if isinstance(out, dask.array.Array) else out

        return eager

    from mortice_example_dask.matrices import kernels

    return from_namespace(Namespace(), "dask", kernels=kernels(at_once(dask.array.from_array)), register=False)


@hookimpl
def mortice_backends():
    """Offer `dask`, for those who ask for it."""
    return [BackendInfo("dask", ("cpu",), load, needs="dask[array] array-api-compat")]
