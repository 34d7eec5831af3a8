"""Which of mortice's functions in Python a call comes to."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def asked(call: Callable[[], Any]) -> list[str]:
    """Return the names of mortice's functions in Python that a call comes to."""
    called = []

    def note(frame: Any, event: str, arg: Any) -> None:
        package, _, module = frame.f_globals["__name__"].partition(".")
        if event == "call" and package == "mortice" and not module.startswith("backends."):  # what a kernel calls is its own
            called.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return called
