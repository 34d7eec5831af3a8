"""Doubts about how a part of mortice is used: warnings that also go to whoever watches, such as the training doctor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mortice.notice import warn, warn_at
from mortice.tracing import places

listeners: list[Callable[[str, str, dict[str, Any]], None]] = []


def doubt(rule: str, message: str, **values: Any) -> None:
    """Warn, at the user's line, of what is probably a mistake; tell listeners which rule of the doctor it is."""
    for listener in listeners:
        listener(rule, message, values)
    at = places.caller()
    if at is None:
        warn(message)
    else:
        warn_at(at, message)
