"""Switches of the whole process that scripts set once: precision of products, determinism, threads. Nothing computes here.

Backends may read them; the core's own results depend on none of them.
"""

from __future__ import annotations

import os
from typing import Any

from mortice.errors import switch
from mortice.notice import always, warn

__all__ = [
    "are_deterministic_algorithms_enabled", "get_deterministic_debug_mode", "get_float32_matmul_precision",
    "get_num_interop_threads", "get_num_threads", "is_deterministic_algorithms_warn_only_enabled",
    "is_warn_always_enabled", "set_deterministic_debug_mode", "set_float32_matmul_precision", "set_flush_denormal",
    "set_num_interop_threads", "set_num_threads", "set_warn_always", "use_deterministic_algorithms",
]  # fmt: skip


class _Settings:
    """The process's switches, as PyTorch starts with them."""

    matmul_precision = "highest"
    deterministic = warn_only = False
    asked = os.environ.get("MORTICE_NUM_THREADS") or os.environ.get("OMP_NUM_THREADS", "")
    threads = int(asked.isdecimal() and asked) or os.cpu_count() or 1
    followers: tuple[Any, ...] = ()  # who is told of a number of threads: backends that divide the work of a kernel
    interop_threads = os.cpu_count() or 1


settings = _Settings()
_PRECISIONS = ("highest", "high", "medium")
_MODES = ("default", "warn", "error")


def set_float32_matmul_precision(precision: str) -> None:
    """Let float32 products be computed in lower precision inside, where a backend can.

    An unknown word only warns, as in PyTorch.
    """
    if not isinstance(precision, str):
        raise RuntimeError(f"set_float32_matmul_precision expects a str, but got {type(precision).__name__}")
    if precision not in _PRECISIONS:
        warn(f"{precision} is not one of {', '.join(map(repr, _PRECISIONS))}; the current precision stays in effect.")
        return
    settings.matmul_precision = precision


def get_float32_matmul_precision() -> str:
    """Return the precision that float32 products may be computed in."""
    return settings.matmul_precision


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for kernels that give the same bits for the same operands.

    The conformance kit asks this of every backend, so it changes nothing for one that passes.
    """
    name = "use_deterministic_algorithms"
    settings.deterministic, settings.warn_only = switch(name, "mode", mode), switch(name, "warn_only", warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """Tell whether deterministic kernels were asked for."""
    return settings.deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Tell whether kernels that are not deterministic should only warn."""
    return settings.warn_only


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Ask for deterministic kernels by a mode: "default" or 0, "warn" or 1, "error" or 2."""
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    known: Any = _MODES if isinstance(debug_mode, str) else (0, 1, 2)
    if debug_mode not in known:
        expected = ", ".join(map(repr, known))
        raise RuntimeError(f"invalid value of debug_mode, expected one of {expected}, but got {debug_mode!r}")
    chosen = known.index(debug_mode)
    use_deterministic_algorithms(chosen > 0, warn_only=chosen == 1)


def get_deterministic_debug_mode() -> int:
    """Return 0, 1 or 2: deterministic kernels are not asked for, asked for with a warning, or with an error."""
    return (1 if settings.warn_only else 2) if settings.deterministic else 0


def set_num_threads(n: int) -> None:
    """Say how many threads a kernel may use.

    Differs from torch: a backend may not be able to follow; NumPy, for one, takes its number from the environment.
    """
    settings.threads = _positive("set_num_threads", n)
    for follow in settings.followers:
        follow(n)


def follow_threads(follow: Any) -> None:
    """Have a function called with each number of threads that is asked for, and with the last one now."""
    settings.followers += (follow,)
    if "threads" in vars(settings):
        follow(settings.threads)


def get_num_threads() -> int:
    """Return the number of threads that kernels were allowed, by default the environment's or the machine's."""
    return settings.threads


def set_num_interop_threads(n: int) -> None:
    """Say how many operations may run side by side; none do."""
    settings.interop_threads = _positive("set_num_interop_threads", n)


def get_num_interop_threads() -> int:
    """Return the number given to `set_num_interop_threads`."""
    return settings.interop_threads


def _positive(name: str, n: Any) -> int:
    if not isinstance(n, int) or isinstance(n, bool):
        raise RuntimeError(f"{name} expects an int, but got {type(n).__name__}")
    if n <= 0:
        raise RuntimeError(f"{name} expects a positive integer")
    if n >= 1 << 31:
        raise ValueError(f"{name}: Overflow when unpacking long; got {n}.")
    return n


def set_flush_denormal(mode: bool) -> bool:
    """Return False: no backend flushes the smallest numbers to zero."""
    switch("set_flush_denormal", "mode", mode)
    return False


def set_warn_always(b: bool) -> None:
    """Ask for warnings every time instead of once."""
    always[0] = switch("set_warn_always", "b", b)


def is_warn_always_enabled() -> bool:
    """Tell whether warnings should come every time."""
    return always[0]
