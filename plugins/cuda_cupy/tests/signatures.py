"""What a function takes: of Python's own, and of those compiled by Cython, whose documentation begins with it."""

from __future__ import annotations

import inspect
import re
from typing import Any, NamedTuple


class Takes(NamedTuple):
    """The parameters of a function, but for self and cls."""

    places: list[str]  # those that may be given without a name, in order
    needed: int  # how many of them must be given
    names: set[str]  # those that may be given by name
    more: bool  # whether it takes any number without a name
    others: bool  # whether it takes any name

    def refuses(self, count: int, names: set[str]) -> str:
        """Say why a call with so many values and these names fails, or nothing."""
        if count > len(self.places) and not self.more:
            return f"{count} values where it takes {len(self.places)}"
        if not self.others and (unknown := names - self.names):
            return f"no parameter {', '.join(sorted(unknown))}"
        if twice := names & set(self.places[:count]):
            return f"{', '.join(sorted(twice))} twice"
        missing = set(self.places[count : self.needed]) - names
        return f"{', '.join(sorted(missing))} is missing" if missing else ""


def takes(function: Any) -> Takes | None:
    """Return what a function takes, None where nothing tells."""
    if hasattr(function, "nin") and hasattr(function, "_ops"):  # CuPy's ufuncs
        return Takes(
            [f"in{i}" for i in range(function.nin)] + ["out"], function.nin, {"out", "dtype", "casting"}, False, False
        )
    told = _told(function)
    if told is not None:
        return told
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    return _of(parameters)


def _of(parameters: list[inspect.Parameter]) -> Takes:
    own = [p for p in parameters if p.name not in ("self", "cls")]
    places = [p for p in own if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return Takes(
        [p.name for p in places], sum(p.default is p.empty for p in places),
        {p.name for p in own if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)},
        any(p.kind is p.VAR_POSITIONAL for p in own), any(p.kind is p.VAR_KEYWORD for p in own),
    )  # fmt: skip


def _told(function: Any) -> Takes | None:
    """Read `name(type a, b=1, *, c)`, the first line of what Cython documents."""
    text = (getattr(function, "__doc__", None) or "").partition("\n")[0]
    name = getattr(function, "__name__", "")
    found = re.match(rf"(?:\w+\.)?{re.escape(name)}\((.*)\)", text) if name else None
    if found is None or (inspect.isfunction(function) or "..." in found[1]):
        return None
    parameters, kind = [], inspect.Parameter.POSITIONAL_OR_KEYWORD
    for part in re.split(r",\s*(?![^(\[]*[)\]])", found[1]):
        plain = part.strip().replace("\\", "")
        if plain in ("", "/"):
            continue
        if plain == "*":
            kind = inspect.Parameter.KEYWORD_ONLY
        elif plain.startswith("**"):
            parameters.append(inspect.Parameter("others", inspect.Parameter.VAR_KEYWORD))
        elif plain.startswith("*"):
            parameters.append(inspect.Parameter("more", inspect.Parameter.VAR_POSITIONAL))
            kind = inspect.Parameter.KEYWORD_ONLY
        else:
            left, _, default = plain.partition("=")
            word = re.findall(r"\w+", left.partition(":")[0])[-1]
            parameters.append(inspect.Parameter(word, kind, default=default if default else inspect.Parameter.empty))
    return _of(parameters)
