"""The NumPy backend of mortice. Importing this module is cheap; NumPy is imported by `load`."""

from mortice.backends import Backend, BackendInfo, hookimpl


def load() -> Backend:
    """Import NumPy and return the backend."""
    from mortice_cpu_numpy.backend import NumPyBackend
    from mortice_cpu_numpy.memory import keep_freed_memory

    keep_freed_memory()
    return NumPyBackend()


@hookimpl
def mortice_backends() -> list[BackendInfo]:
    """Offer `cpu_numpy`."""
    return [BackendInfo("cpu_numpy", ("cpu",), load, priority=10, needs="mortice-cpu-numpy")]
