"""`torch.ops.aten`: PyTorch's operators by name and overload, which libraries call, or keep tables by.

A call of one is a call of the function or method that has its name here; where none has, the call says so.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import mortice
from mortice.lazy import load

__all__ = ["OpOverload", "OpOverloadPacket", "aten", "ops"]

ops = mortice.ops


class OpOverloadPacket:
    """An operator; its attributes are its overloads."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = self.__name__.partition(".")[0]
        for place in (mortice, mortice.nn.functional, mortice.Tensor):
            if hasattr(place, name):
                return getattr(place, name)(*args, **kwargs)
        if name == "slice":  # Python's own name, so no function's
            return load("mortice.ops.copies", "_slice")(*args, **kwargs)
        raise NotImplementedError(f"ops.aten: expected a function's or a method's name; got {name!r}, which has none here.")

    def __getattr__(self, name: str) -> OpOverload:
        if name.startswith("__"):
            raise AttributeError(f"operator {self.__name__!r} has no attribute {name!r}")
        made = OpOverload(self, name)
        setattr(self, name, made)
        return made

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    __reduce__ = __str__  # copies are the operator itself, and pickles hold where it is

    def __repr__(self) -> str:
        return f"<{type(self).__name__}(op='aten.{self.__name__}')>"


class OpOverload(OpOverloadPacket):
    """An operator for some types of arguments; the function here takes all of them."""

    def __init__(self, overloadpacket: OpOverloadPacket, name: str) -> None:
        super().__init__(f"{overloadpacket.__name__}.{name}")
        self.overloadpacket, self._overloadname = overloadpacket, name

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.overloadpacket}', overload='{self._overloadname}')>"


class _Aten:
    """The operators, each made when it is first named."""

    __getattr__ = cache(lambda self, name: OpOverloadPacket(name))
    __reduce__ = lambda self: "aten"


aten = _Aten()
