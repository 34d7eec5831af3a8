"""Where in the user's program a frame comes from."""

from __future__ import annotations

import os
import sysconfig
from typing import Any, NamedTuple

from mortice import op
from mortice.tracing import Frame

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_TRACING = os.path.join(_HERE, "tracing") + os.sep
_INSTALLED = tuple({os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "purelib", "platlib")})


class Line(NamedTuple):
    """A line of the user's, the public function of mortice that it called, and whether promotion stands between."""

    where: str
    via: str
    promoted: bool


def is_own(file: str) -> bool:
    """Tell whether a file is mortice's."""
    return file.startswith(_HERE)


def _is_core(at: Any) -> bool:
    """Tell whether code that runs is mortice's; what fetches a formula's arguments is compiled, and of no module."""
    return is_own(at.f_code.co_filename) or "__name__" not in at.f_globals


def line(frame: Frame) -> Line:
    """Return the line that the outermost call around a frame comes from; of a library's only where there is no other."""
    assert frame.outer is not None
    at: Any = frame.outer.python
    via, promoted = frame.outer.name, False
    while at is not None and _is_core(at):
        code = at.f_code
        if code is op.slow.__code__:
            via, promoted = at.f_locals["op"].name, True
        elif _is_public(code):
            via = code.co_name
        at = at.f_back
    first = at
    while at is not None and at.f_code.co_filename.startswith(_INSTALLED):
        at = at.f_back
    at = first if at is None else at
    return Line("" if at is None else f"{at.f_code.co_filename}:{at.f_lineno}", via, promoted)


def _is_public(code: Any) -> bool:
    """Tell a public function from helpers, and from functions within others: wrappers, and the compiled call path."""
    name = code.co_name
    shown = name[:1] not in "_<" or (name.startswith("__") and name.endswith("__"))
    return shown and "<locals>" not in code.co_qualname and not code.co_filename.startswith(_TRACING)
