"""Anomaly detection: a backward that fails or gives NaN names the forward line that recorded the node."""

from __future__ import annotations

from typing import Any

from mortice.errors import switch
from mortice.modes import modes, watch
from mortice.notice import warn


class set_detect_anomaly:
    """Switch anomaly detection on or off, at once; as a context manager until the block ends."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        name = "set_detect_anomaly"
        self._before = modes.anomaly, modes.check_nan
        modes.anomaly, modes.check_nan = switch(name, "mode", mode), switch(name, "check_nan", check_nan)
        watch()

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: Any) -> None:
        modes.anomaly, modes.check_nan = self._before
        watch()


class detect_anomaly(set_detect_anomaly):
    """Inside, record the forward line of every node, and (with `check_nan`) raise where backward makes a NaN."""

    def __init__(self, check_nan: bool = True) -> None:
        self._check_nan = bool(check_nan)
        warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging."
        )

    def __enter__(self) -> None:
        super().__init__(True, self._check_nan)


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Switch anomaly detection on or off."""
    set_detect_anomaly(enabled, check_nan)


def is_anomaly_enabled() -> bool:
    """Tell whether anomaly detection is on in this thread."""
    return modes.anomaly


def is_anomaly_check_nan_enabled() -> bool:
    """Tell whether anomaly detection looks for NaN."""
    return modes.check_nan
