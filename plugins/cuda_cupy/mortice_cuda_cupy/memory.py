"""Memory of the devices: what CuPy's pool holds, the most that it held, and memory of the host that is locked for transfers."""

from __future__ import annotations

import threading
from typing import Any

import cupy

from mortice.backends.services import OutOfMemoryError
from mortice_cuda_cupy.graphs import POOLS


def _pools() -> list[Any]:
    """Return CuPy's pool, then those of captured work."""
    return [cupy.get_default_memory_pool(), *(pool.blocks for pool in POOLS)]


class Memory:
    """Counts over CuPy's memory pool, which the plugin shares with the program's own CuPy arrays."""

    def start_counting(self) -> None:
        """Watch the pool: CuPy counts what is in use, but keeps no peaks."""
        self._peaks: dict[int, list[int]] = {}
        self._counting = threading.Lock()
        pool = cupy.get_default_memory_pool()
        malloc, used, total, current = pool.malloc, pool.used_bytes, pool.total_bytes, cupy.cuda.runtime.getDevice
        peaks, full = self._peaks, cupy.cuda.memory.OutOfMemoryError

        def allocate(size: int) -> Any:
            try:
                memory = malloc(size)
            except full as error:
                # As the class that scripts catch; CuPy's own is a MemoryError.
                raise OutOfMemoryError(f"CUDA {error}") from error
            peak = peaks.get(current())
            if peak is None:
                peak = peaks.setdefault(current(), [0, 0])
            # Two threads may pass here at once; a peak is then short of the other's last allocation, no more.
            in_use = used()
            if in_use > peak[0]:
                peak[0] = in_use
                peak[1] = max(peak[1], total())
            return memory

        # Only where the program has not set an allocator of its own: that one stays, and peaks are then what is in use.
        if getattr(cupy.cuda.get_allocator(), "__self__", None) is pool:
            cupy.cuda.set_allocator(allocate)

    def empty_cache(self, device: Any) -> None:
        self.let_go()  # type: ignore[attr-defined]
        with cupy.cuda.Device(device.index):
            cupy.get_default_memory_pool().free_all_blocks()
        cupy.get_default_pinned_memory_pool().free_all_blocks()

    def memory_allocated(self, device: Any) -> int:
        with cupy.cuda.Device(device.index):
            return int(sum(pool.used_bytes() for pool in _pools()))

    def memory_stats(self, device: Any) -> dict[str, int]:
        with cupy.cuda.Device(device.index) as here:
            pools = _pools()
            allocated, reserved = int(sum(p.used_bytes() for p in pools)), int(sum(p.total_bytes() for p in pools))
            free, total = here.mem_info
        peak = self._peaks.get(device.index, (0, 0))
        return {
            "reserved": reserved, "peak_allocated": max(peak[0], allocated), "peak_reserved": max(peak[1], reserved),
            "free": int(free), "total": int(total),
        }  # fmt: skip

    def reset_peak_memory(self, device: Any) -> None:
        with cupy.cuda.Device(device.index):
            pool = cupy.get_default_memory_pool()
            self._peaks[device.index] = [int(pool.used_bytes()), int(pool.total_bytes())]

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
