"""cpu_cext: the kernels of the extension module bound to a Backend; what is not in C falls to the default bodies."""

from __future__ import annotations

from array import array

from mortice.backends import DTYPES, Backend, DType, HostBuffer
from mortice.backends.services import OutOfMemoryError
from mortice_cpu_cext import _cext

TYPE_CHECKING = False  # as `typing` has it, whose import would cost more than the extension's
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_cext._set_objects(DTYPES, HostBuffer, OutOfMemoryError)  # what its functions return
_PARTIAL = "partial_"
_DTYPES = frozenset(DTYPES)


class Twister:
    """MT19937: of `random.Random` what core's engine uses, and draws whose numbers are the engine's own."""

    def __init__(self) -> None:
        self._state = bytearray(2500)

    def getstate(self) -> tuple[Any, ...]:
        return 3, tuple(memoryview(self._state).cast("I")), None

    def setstate(self, state: tuple[Any, ...]) -> None:
        memoryview(self._state).cast("I")[:] = array("I", state[1])

    def start(self, seed: int) -> None:
        _cext._twister_start(self._state, seed)

    def randbytes(self, n: int) -> bytes:
        return _cext._twister_bytes(self._state, n)

    def uniform(self, shape: Any, dtype: DType, low: float = 0.0, high: float = 1.0) -> Any:
        return _cext._twister_uniform(self._state, shape, dtype, low, high)

    def normal(self, shape: Any, dtype: DType) -> Any:
        return _cext._twister_normal(self._state, shape, dtype)

    def integers(self, shape: Any, low: int, count: int, one_word: bool) -> Any:
        return _cext._twister_integers(self._state, shape, low, count, one_word)

    def permutation(self, n: int) -> Any:
        return _cext._twister_permutation(self._state, n)

    def log_gammas(self, shapes: list[float], kept: float | None) -> Any:
        return _cext._twister_log_gammas(self._state, shapes, kept)


class CextBackend(Backend):
    """Arrays and kernels in C on the CPU."""

    name = "cpu_cext"
    mutable = True
    keeps_formats = hasattr(_cext, "batch_norm")  # else without AVX2, where the default bodies serve networks
    twister = Twister

    def __init__(self) -> None:
        super().__init__()
        self._device = self.device("cpu")

    # ---- housekeeping ----

    def device_names(self) -> list[str]:
        return ["cpu"]

    def dtypes(self, device: Any) -> frozenset[DType]:
        return _DTYPES

    def device_of(self, x: Any) -> Any:
        return self._device

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


def _or_default(name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that the default body stands in for where the extension does not serve the operands."""

    def call(self: Any, *args: Any, **attributes: Any) -> Any:
        found = kernel(*args, **attributes)
        # Looked up only here: the module of a default body loads when it is needed.
        return getattr(super(CextBackend, self), name)(*args, **attributes) if found is NotImplemented else found

    return call


# A function of the extension is no method, so as a class attribute it is called without the backend, at no cost.
for _name, _kernel in vars(_cext).items():
    if _name.startswith(_PARTIAL):
        _name = _name.removeprefix(_PARTIAL)
        setattr(CextBackend, _name, _or_default(_name, _kernel))
    elif callable(_kernel) and _name.islower() and not _name.startswith("_"):
        setattr(CextBackend, _name, _kernel)
