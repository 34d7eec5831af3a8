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
        for place in (mortice, mortice.nn.functional, mortice.Tensor):
            if hasattr(place, self.__name__):
                return getattr(place, self.__name__)(*args, **kwargs)
        if self.__name__ == "slice":  # Python's own name, so no function's
            return load("mortice.ops.copies", "_slice")(*args, **kwargs)
        raise NotImplementedError(f"ops.aten: expected a function's or a method's name; got {self.__name__!r}, which has none here.")

    def __getattr__(self, name: str) -> OpOverload:
        if name.startswith("__"):
            raise AttributeError(f"operator {self.__name__!r} has no attribute {name!r}")
        made = OpOverload(self, name)
        setattr(self, name, made)
        return made

    def __reduce__(self) -> str:
        return f"aten.{self.__name__}"  # copies are the operator itself, and pickles hold where it is

    def __repr__(self) -> str:
        return f"<{type(self).__name__}(op='aten.{self.__name__}')>"


class OpOverload(OpOverloadPacket):
    """An operator for some types of arguments; the function here takes all of them."""

    def __init__(self, overloadpacket: OpOverloadPacket, name: str) -> None:
        super().__init__(overloadpacket.__name__)
        self.overloadpacket, self._overloadname = overloadpacket, name

    def __reduce__(self) -> str:
        return f"aten.{self.__name__}.{self._overloadname}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='aten.{self.__name__}', overload='{self._overloadname}')>"


class _Aten:
    """The operators, each made when it is first named."""

    __getattr__ = cache(lambda self, name: OpOverloadPacket(name))
    __reduce__ = lambda self: "aten"


aten = _Aten()
