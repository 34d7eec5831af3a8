"""The CUDA backend of mortice, over CuPy. Importing this module is cheap; CuPy is imported by `load`."""

from mortice.backends import Backend, BackendInfo, hookimpl


def load() -> Backend:
    """Import CuPy and return the backend.

    Raises:
        NoGPU: when CuPy, the driver or a GPU is missing; the text says which, and what to do.
    """
    from mortice_cuda_cupy.presence import require_gpu

    require_gpu()
    from mortice_cuda_cupy.backend import CuPyBackend

    return CuPyBackend()


@hookimpl
def mortice_backends() -> list[BackendInfo]:
    """Offer `cuda_cupy`."""
    return [BackendInfo("cuda_cupy", ("cuda",), load, priority=10)]
