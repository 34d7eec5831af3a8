"""The C extension backend of mortice: arrays, memory, threads and kernels of its own, for the device type `cpu`."""

from mortice.backends import Backend, BackendInfo, hookimpl


def load() -> Backend:
    """Load the extension and return the backend."""
    from mortice_cpu_cext.backend import CextBackend

    return CextBackend()


@hookimpl
def mortice_backends() -> list[BackendInfo]:
    """Offer `cpu_cext`."""
    return [BackendInfo("cpu_cext", ("cpu",), load, priority=20, needs="mortice-cpu-cext")]
