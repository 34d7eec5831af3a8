"""Where in the user's program a frame comes from."""

from __future__ import annotations

import os
import sys
import sysconfig
from typing import Any, NamedTuple

from mortice import call, notice
from mortice.tracing import Frame

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_BETWEEN = (os.path.join(_HERE, "tracing") + os.sep, os.path.join(_HERE, "asking.py"))  # what users call passes through these
_INSTALLED = tuple({os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "purelib", "platlib")})
_PROMOTING = {fn.__code__ for fn in (call.slow, call.slow_one, call.slow_two, call.slow_number)}


class Line(NamedTuple):
    """A line of the user's, the public function of mortice that it called, and whether promotion stands between."""

    where: str
    via: str
    promoted: bool


def is_own(file: str) -> bool:
    """Tell whether a file is mortice's."""
    return file.startswith(_HERE)


def is_installed(file: str) -> bool:
    """Tell whether a file is an installed library's, or Python's."""
    return file.startswith(_INSTALLED)


def line(frame: Frame) -> Line:
    """Return the line that the outermost call around a frame comes from; of a library's only where there is no other."""
    assert frame.outer is not None
    at: Any = frame.outer.python
    via, promoted = frame.outer.name, False
    while at is not None and notice.is_own(at):
        code = at.f_code
        if code in _PROMOTING:
            via, promoted = at.f_locals["op"].name, True
        elif _is_public(code):
            via = code.co_name
        at = at.f_back
    at = _users(at)
    return Line("" if at is None else f"{at.f_code.co_filename}:{at.f_lineno}", via, promoted)


def _users(at: Any) -> Any:
    """Return the first frame that no installed library runs, or the given one if all are libraries'."""
    first = at
    while at is not None and is_installed(at.f_code.co_filename):
        at = at.f_back
    return first if at is None else at


def caller() -> Any:
    """Return the interpreter's frame of the user's that has called into mortice; None where nobody has."""
    at: Any = sys._getframe(1)
    while at is not None and notice.is_own(at):
        at = at.f_back
    return _users(at)


def _is_public(code: Any) -> bool:
    """Tell a public function from helpers, and from functions within others: wrappers, and the compiled call path."""
    name = code.co_name
    shown = name[:1] not in "_<" or (name.startswith("__") and name.endswith("__"))
    return shown and "<locals>" not in code.co_qualname and not code.co_filename.startswith(_BETWEEN)


def name_of(value: Any, at: Any) -> str:
    """Return what the user calls a value in a frame: "loss", "losses[3]"; empty where nothing stands for it."""
    spaces = (at.f_locals,) if at.f_locals is at.f_globals else (at.f_locals, at.f_globals)
    for space in spaces:
        for name, found in list(space.items()):
            if found is value and not name.startswith("_"):
                return str(name)
    for space in spaces:
        for name, found in list(space.items()):
            if type(found) in (list, tuple) and not name.startswith("_"):
                for i, item in enumerate(found[:1000]):
                    if item is value:
                        return f"{name}[{i}]"
    return ""
