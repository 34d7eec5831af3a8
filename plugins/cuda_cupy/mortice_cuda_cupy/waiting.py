"""What a program has asked to be told of: that the host reads values of a device, and waits for it."""

from __future__ import annotations

from mortice.notice import warn

MODES = ("default", "warn", "error")


class _Waiting:
    mode = 0

    def told(self) -> None:
        """Warn or refuse, before the host waits."""
        if self.mode == 2:
            raise RuntimeError("called a synchronizing CUDA operation")
        if self.mode:
            warn("called a synchronizing CUDA operation")


waiting = _Waiting()
