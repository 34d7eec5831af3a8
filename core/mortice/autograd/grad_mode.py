"""The grad modes under the module name that PyTorch gives them."""

from __future__ import annotations

from types import TracebackType

from mortice.errors import switch
from mortice.modes import enable_grad, inference_mode, no_grad, set_grad_enabled


class set_multithreading_enabled:
    """Accepted for PyTorch's sake: backward always runs in the thread that calls it."""

    def __init__(self, mode: bool) -> None:
        self.mode = switch("set_multithreading_enabled", "mode", mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        pass


__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled", "set_multithreading_enabled"]
