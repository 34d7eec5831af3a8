"""What Python computes from numbers, written down once and computed again from others.

An optimiser's rule computes a few numbers, such as the correction of a bias by the count of steps, and asks some. Running it is
how its kernel is found, and takes longer than the launch: here only its numbers are computed anew, while its questions have
the same answers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any


class Tape:
    """The numbers that a function is given, and what it computes from them."""

    def __init__(self, given: Sequence[float]) -> None:
        self._values: list[Any] = list(given)  # the answer, where a line asks
        self._lines: list[tuple[Callable[[Any, Any], Any], int, int, int]] = []
        self._given = len(given)

    def numbers(self) -> list[Number]:
        """Return the numbers given, as what writes down."""
        return [Number(value, self, at) for at, value in enumerate(self._values[: self._given])]

    def place(self, x: Any) -> int:
        """Return where a number is found in the values: one that is not of this tape stays as it is."""
        if x.__class__ is Number and x.tape is self:
            return x.at  # type: ignore[no-any-return]
        self._values.append(x)
        return len(self._values) - 1

    def line(self, function: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
        """Compute, and write it down."""
        at = self.place(x), self.place(y)
        made = function(self._values[at[0]], self._values[at[1]])
        place = self.place(made)
        self._lines.append((function, *at, place))
        return Number(made, self, place) if made.__class__ is float else made

    def again(self, given: Sequence[float]) -> list[Any] | None:
        """Return the values that other numbers make; None where a question has another answer."""
        values = self._values.copy()
        values[: self._given] = given
        for function, x, y, place in self._lines:
            made = function(values[x], values[y])
            if made.__class__ is float:
                values[place] = made
            elif made is not values[place]:
                return None
        return values


def _line(function: Callable[[Any, Any], Any], *, swapped: bool = False) -> Callable[[Number, Any], Any]:
    def method(self: Number, y: Any = None) -> Any:
        if y is not None and not isinstance(y, (float, int)):
            return NotImplemented
        return self.tape.line(function, y, self) if swapped else self.tape.line(function, self, y)

    return method


class Number(float):
    """A number that writes down what becomes of it."""

    tape: Tape
    at: int

    def __new__(cls, value: float, tape: Tape, at: int) -> Number:
        made = super().__new__(cls, value)
        made.tape, made.at = tape, at
        return made

    __hash__ = float.__hash__
    for _name in ("add", "sub", "mul", "truediv", "pow"):
        locals()[f"__{_name}__"] = _line(getattr(operator, _name))
        locals()[f"__r{_name}__"] = _line(getattr(operator, _name), swapped=True)
    for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
        locals()[f"__{_name}__"] = _line(getattr(operator, _name))
    del _name
    __neg__, __abs__, __bool__ = (_line(f) for f in (lambda x, _: -x, lambda x, _: abs(x), lambda x, _: bool(x)))
