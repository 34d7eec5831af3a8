"""The plugin's kernels over NumPy arrays: its mixins on top of cpu_numpy, launching through the emulator.

A kernel's test runs it here and compares with the core's default body on cpu_numpy. Where CuPy is replaced as a whole
(`emulator/fake_cupy.py`), the conformance kit covers the rest.
"""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np
import pytest
import run_on_cpu


def _stand_in() -> types.ModuleType:
    """Return the part of CuPy that launches need."""
    cupy = types.ModuleType("cupy", "A stand-in: what launches of kernels need, over NumPy.")

    # New memory on a device holds anything; here it holds nan, or what is as easily seen.
    def empty(shape: Any, dtype: Any) -> Any:
        out = np.empty(shape, dtype)
        out.reshape(-1).view(np.uint8)[...] = 0xFF
        return out

    cupy.empty = empty  # type: ignore[attr-defined]
    cupy.ndarray = type("ndarray", (), {})  # type: ignore[attr-defined]  # other libraries ask whether an array is one
    for name in ("ascontiguousarray", "zeros", "asarray", "full"):
        setattr(cupy, name, getattr(np, name))
    return cupy


def without_cupy() -> None:
    """Let the plugin's kernels be imported where CuPy is not."""
    sys.modules.setdefault("cupy", _stand_in())


def backends() -> tuple[Any, Any]:
    """Return cpu_numpy with the plugin's kernels, and one with the core's default bodies alone."""
    if run_on_cpu.compiler() is None:
        pytest.skip("CUDA kernels run on the CPU through a C++ compiler; there is none here", allow_module_level=True)
    without_cupy()
    from mortice.backends import NamespaceBackend
    from mortice_cpu_numpy.backend import NNOverrides, NumPyBackend, NumPyOptim
    from mortice_cuda_cupy.kernels import CudaKernels, copying, launch

    copying.packed = np.ascontiguousarray  # NumPy's arrays have no address to ask for so
    launch.build = run_on_cpu.Module
    launch.in_order = copying.in_order = lambda x: x.flags.c_contiguous  # NumPy's arrays say it so
    launch.WHOLE_SOURCES = True  # one start of the C++ compiler instead of one a kernel

    class Emulated(CudaKernels, NumPyBackend):
        """The overrides under test."""

        def product_into(self, out: Any, x: Any, y: Any, *, add: bool = False) -> None:
            with np.errstate(invalid="ignore"):  # BLAS may take what lies beside the operands along, and NumPy warns of it
                out[...] = out + x @ y if add else x @ y

    class Plain(NumPyBackend):
        """The law: every free kernel that networks use is the core's own body."""

    for base in (NNOverrides, NumPyOptim):
        for name in _public(base):
            if hasattr(NamespaceBackend, name):
                setattr(Plain, name, getattr(NamespaceBackend, name))
    return Emulated(), Plain()


def _public(base: type) -> set[str]:
    return {name for part in base.__mro__ if part is not object for name in vars(part) if not name.startswith("_")}
