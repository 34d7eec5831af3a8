"""Warnings, told at the line of the program that led to them."""

from __future__ import annotations

import sys
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

always = [False]  # what `set_warn_always` asks: to be told every time of what is told once
told: set[str] = set()  # what has been told once


def warn(message: str, category: type[Warning] = UserWarning, *, once: bool = False) -> None:
    """Warn at the innermost line that is not mortice's own, so that Python's filters tell one place of a program from another.

    With `once` a program is told a message a single time, wherever from: what PyTorch tells so.
    """
    if once and not always[0]:
        if message in told:
            return
        told.add(message)
    at: Any = sys._getframe(1)
    while at.f_back is not None and (is_own(at) or at.f_globals.get("__name__") == "contextlib"):  # between `with` and its function
        at = at.f_back
    warn_at(at, message, category)


def is_own(at: Any) -> bool:
    """Tell whether the code of an interpreter's frame is mortice's."""
    return at.f_globals.get("__name__", "").partition(".")[0] == "mortice"  # type: ignore[no-any-return]


def warn_at(at: Any, message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that an interpreter's frame is in."""
    space = at.f_globals
    warnings.warn_explicit(
        message, category, at.f_code.co_filename, at.f_lineno, module=space.get("__name__", "<string>"),
        registry=space.setdefault("__warningregistry__", {}),
    )  # fmt: skip
