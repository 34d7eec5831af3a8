"""Memory of the devices: what CuPy's pool holds, the most that it held, and memory of the host that is locked for transfers."""

from __future__ import annotations

from typing import Any

import cupy

from mortice.backends.services import OutOfMemoryError
from mortice_cuda_cupy.graphs import POOLS, current_capture


def _pools() -> list[Any]:
    """Return CuPy's pool, then those of captured work."""
    return [cupy.get_default_memory_pool(), *([pool.blocks for pool in POOLS] if POOLS else ())]


class Memory:
    """Counts over CuPy's memory pool, which the plugin shares with the program's own CuPy arrays."""

    def start_counting(self) -> None:
        """Watch the pool: CuPy keeps no peaks."""
        count = len(self._by_number)  # type: ignore[attr-defined]
        self._peaks = [[0, 0] for _ in range(count)]
        self._refused = 0  # for want of memory
        self._known = [0] * count  # bytes in use of CuPy's pool up to which there is no new peak
        pool = cupy.get_default_memory_pool()
        malloc, used, known, look = pool.malloc, pool.used_bytes, self._known, self._look
        full = cupy.cuda.memory.OutOfMemoryError

        def allocate(size: int) -> Any:
            try:
                memory = malloc(size)
            except full as error:
                self._refused += 1
                # As the class that scripts catch; CuPy's own is a MemoryError.
                free, total = cupy.cuda.Device().mem_info
                raise OutOfMemoryError(f"CUDA {error} Of the device's {total:,} bytes {free:,} are free.") from error
            if used() > known[memory.device_id]:
                look(memory.device_id)
            return memory

        # Only where the program has not set an allocator of its own: that one stays, and peaks are then what is in use.
        if getattr(cupy.cuda.get_allocator(), "__self__", None) is pool:
            cupy.cuda.set_allocator(allocate)

    def _look(self, device: int) -> None:
        """Bring the peaks of the current device, of that index, up to date."""
        pools = _pools()
        first, *others = [int(pool.used_bytes()) for pool in pools]
        peak = self._peaks[device]
        peak[0], peak[1] = max(peak[0], first + sum(others)), max(peak[1], sum([int(pool.total_bytes()) for pool in pools]))
        self._known[device] = peak[0] - sum(others)

    def below_peak(self, device: int) -> int:
        """Return the bytes that work of a device, the current one, may take without a new peak; 0 for what is captured."""
        return 0 if current_capture() else self._known[device] - int(cupy.get_default_memory_pool().used_bytes())

    def empty_cache(self, device: Any) -> None:
        self.let_go()  # type: ignore[attr-defined]
        with cupy.cuda.Device(device.index):
            self._look(device.index)
            cupy.get_default_memory_pool().free_all_blocks()
        cupy.get_default_pinned_memory_pool().free_all_blocks()

    def memory_allocated(self, device: Any) -> int:
        with cupy.cuda.Device(device.index):
            return int(sum(pool.used_bytes() for pool in _pools()))

    def memory_stats(self, device: Any) -> dict[str, int]:
        with cupy.cuda.Device(device.index) as here:
            pools = _pools()
            reserved = int(sum(p.total_bytes() for p in pools))
            self._look(device.index)
            free, total = here.mem_info
        peak = self._peaks[device.index]
        return {
            "reserved": reserved, "peak_allocated": peak[0], "peak_reserved": peak[1],
            "free": int(free), "total": int(total), "num_ooms": self._refused,
        }  # fmt: skip

    def reset_peak_memory(self, device: Any) -> None:
        with cupy.cuda.Device(device.index):
            self._peaks[device.index] = [0, 0]
            self._look(device.index)

    def limit_memory(self, fraction: float, device: Any) -> None:
        with cupy.cuda.Device(device.index) as here:
            cupy.get_default_memory_pool().set_limit(size=int(here.mem_info[1] * fraction))

    # ---- memory of the host that a device reads and writes by itself ----

    def pinned_memory(self, nbytes: int) -> Any:
        return memoryview(cupy.cuda.alloc_pinned_memory(nbytes)).cast("B")[:nbytes]

    def is_pinned(self, address: int) -> bool:
        try:
            kind = cupy.cuda.runtime.pointerGetAttributes(address).type
        except cupy.cuda.runtime.CUDARuntimeError:
            return False
        return kind == cupy.cuda.runtime.memoryTypeHost  # type: ignore[no-any-return]
