"""How freed memory is kept: glibc hands arrays of 128 KiB and more back to the system, and asks for them anew, one by one."""

from __future__ import annotations

import ctypes
import os

# The size up to which glibc would itself adapt in time, and how much unused memory the process keeps at the most.
_LARGEST_KEPT, _KEPT = 32 << 20, 128 << 20
# Of <malloc.h>.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def keep_freed_memory() -> bool:
    """Let glibc keep freed arrays for the next ones, and tell whether it does; other allocators are left alone.

    The system clears each page that it hands out, which takes several times as long as adding two numbers in each
    place of it. `MORTICE_KEEP_MEMORY=0` and settings of the user's own for malloc are respected.
    """
    chosen = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")
    if os.environ.get("MORTICE_KEEP_MEMORY") == "0" or any(name in os.environ for name in chosen):
        return False
    try:
        libc = ctypes.CDLL(None)
        libc.gnu_get_libc_version  # noqa: B018 (glibc alone has it)
        mallopt = libc.mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, _LARGEST_KEPT) and mallopt(_M_TRIM_THRESHOLD, _KEPT))
