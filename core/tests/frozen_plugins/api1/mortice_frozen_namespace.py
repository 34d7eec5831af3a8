"""A backend written against api 1 over an array-API namespace, with one kernel of its own."""

from mortice.backends import BackendInfo, NamespaceBackend, hookimpl


def load():
    import array_api_compat.numpy as compat
    import numpy as np

    class Quiet:
        def __getattr__(self, name):
            found = getattr(compat, name)
            if callable(found) and not isinstance(found, type):
                found = np.errstate(all="ignore")(found)
            self.__dict__[name] = found
            return found

    class Backend(NamespaceBackend):
        def cumulative_sum(self, x, *, axis):
            return np.cumsum(x, axis=axis, dtype=x.dtype) if x.ndim else self.copy(x)

    return Backend(Quiet(), {"cpu": None}, mutable=False)


@hookimpl
def mortice_backends():
    return [BackendInfo("frozen_namespace", ("cpu",), load, priority=-1, needs="numpy array-api-compat", api=1)]
