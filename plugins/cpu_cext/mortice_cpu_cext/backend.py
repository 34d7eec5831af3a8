"""cpu_cext: the kernels of the extension module bound to a Backend; what is not in C falls to the default bodies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mortice.backends import DTYPES, Backend, DType, HostBuffer
from mortice_cpu_cext import _cext
from mortice_cpu_cext.linalg import LinalgOverrides
from mortice_cpu_cext.nn import NNOverrides
from mortice_cpu_cext.numeric import NumericOverrides
from mortice_cpu_cext.optim import OptimOverrides
from mortice_cpu_cext.random import RandomOverrides

_PARTIAL = "partial_"


class CextBackend(NNOverrides, LinalgOverrides, NumericOverrides, OptimOverrides, RandomOverrides, Backend):
    """Arrays and kernels in C on the CPU."""

    name = "cpu_cext"
    mutable = True

    def __init__(self) -> None:
        super().__init__()
        self._device = self.device("cpu")
        _cext._set_objects(DTYPES, self._device, HostBuffer)

    # ---- housekeeping ----

    def device_names(self) -> list[str]:
        return ["cpu"]

    def dtypes(self, device: Any) -> frozenset[DType]:
        return frozenset(DTYPES)

    def synchronize(self, device: Any) -> None:
        pass

    def from_host(self, host: HostBuffer, device: Any) -> Any:
        return _cext._from_host(host.view, host.shape, host.dtype, True)

    def share_host(self, host: HostBuffer, device: Any) -> Any:
        return _cext._from_host(host.view, host.shape, host.dtype, False)

    def set_num_threads(self, n: int) -> None:
        _cext._set_num_threads(n)

    def empty_cache(self, device: Any) -> None:
        _cext._empty_cache()

    def memory_allocated(self, device: Any) -> int:
        return int(_cext._memory_stats()["allocated"])

    def memory_stats(self, device: Any) -> dict[str, int]:
        return dict(_cext._memory_stats())

    def reset_peak_memory(self, device: Any) -> None:
        _cext._reset_peak_memory()


def _or_default(kernel: Callable[..., Any], default: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that the default body stands in for where the extension does not serve the operands."""

    def call(self: Any, *args: Any, **attributes: Any) -> Any:
        found = kernel(*args, **attributes)
        return default(self, *args, **attributes) if found is NotImplemented else found

    return call


# A function of the extension is no method, so as a class attribute it is called without the backend, at no cost.
for _name, _kernel in vars(_cext).items():
    if _name.startswith(_PARTIAL):
        _name = _name.removeprefix(_PARTIAL)
        setattr(CextBackend, _name, _or_default(_kernel, getattr(CextBackend, _name)))
    elif callable(_kernel) and _name.islower() and not _name.startswith("_"):
        setattr(CextBackend, _name, _kernel)
