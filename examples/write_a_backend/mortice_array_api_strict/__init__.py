"""array-api-strict as a backend of mortice: the whole plugin. Importing it is cheap; `load` imports the library."""

from mortice.backends import BackendInfo, NamespaceBackend, hookimpl


def load():
    """Import the library and return the backend."""
    import array_api_strict
    import numpy

    class Namespace:
        """The library's functions; it computes with NumPy, which would warn where IEEE 754 has an answer."""

        def __getattr__(self, name):
            found = getattr(array_api_strict, name)
            if callable(found) and not isinstance(found, type):
                found = numpy.errstate(all="ignore")(found)
            self.__dict__[name] = found
            return found

    return NamespaceBackend(Namespace(), {"cpu": array_api_strict.Device("CPU_DEVICE")})


@hookimpl
def mortice_backends():
    """Offer `array_api_strict`, for those who ask for it: cpu_numpy has a higher priority."""
    return [BackendInfo("array_api_strict", ("cpu",), load, needs="array-api-strict numpy")]
