"""The strict backend: NumPy inside opaque read-only buffers, made to fail where a real backend would forgive.

It has the required kernels alone, so every default body runs on it. It refuses what the boundary does not allow (mixed
devices or dtypes, NumPy scalars, unchecked indices), counts what comes to the host, and has a device without float64.
"""

from __future__ import annotations

from mortice.backends import Backend, BackendInfo, hookimpl


def load() -> Backend:
    """Return the strict backend."""
    from mortice_conformance.strict_kernels import StrictKernels

    return StrictKernels()


@hookimpl
def mortice_backends() -> list[BackendInfo]:
    """Offer `strict`, never chosen unasked."""
    return [BackendInfo("strict", ("strict", "strict_f32"), load, priority=-100, needs="mortice-conformance")]
