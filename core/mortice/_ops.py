"""`torch.ops.aten`: PyTorch's operators by name and overload, which libraries call, or keep tables by.

A call of one is a call of the function or method that has its name here, or of what `subclasses.dispatching` says; where none has, the call
says so. Those of `own` are the ops here that PyTorch has no operator for.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import mortice
from mortice.lazy import load

__all__ = ["OpOverload", "OpOverloadPacket", "aten", "ops"]

ops = mortice.ops


class profiler:
    """What `record_function` is made of in PyTorch, where libraries call it."""

    @staticmethod
    def _record_function_enter_new(name: str, args: str | None = None) -> Any:
        return mortice.profiler.record_function(name, args).__enter__()

    @staticmethod
    def _record_function_exit(record: Any) -> None:
        record.__exit__()

    _record_function_enter = _record_function_enter_new


for _f in (profiler._record_function_enter_new, profiler._record_function_exit):
    _f.__module__ = "mortice.ops.profiler"  # where generated code finds it


class HigherOrderOperator:
    """The type of an operator that takes functions, for `isinstance`: here those are functions."""


class OpOverloadPacket:
    """An operator; its attributes are its overloads."""

    def __init__(self, name: str, namespace: str = "aten") -> None:
        self.__name__, self.namespace = name, namespace

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return load("mortice.subclasses.dispatching", "computed")(self)(*args, **kwargs)

    def __getattr__(self, name: str) -> OpOverload:
        if name.startswith("_") or isinstance(self, OpOverload):  # libraries ask what an overload has
            raise AttributeError(f"operator {self.__name__!r} has no attribute {name!r}")
        made = OpOverload(self, name)
        setattr(self, name, made)
        return made

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    __reduce__ = __str__  # copies are the operator itself, and pickles hold where it is

    def __repr__(self) -> str:
        return f"<{type(self).__name__}(op='{self}')>"


class OpOverload(OpOverloadPacket):
    """An operator for some types of arguments, whose calls modes are told of; the function here takes all types."""

    def __init__(self, overloadpacket: OpOverloadPacket, name: str) -> None:
        super().__init__(f"{overloadpacket.__name__}.{name}", overloadpacket.namespace)
        self.overloadpacket = self._overloadpacket = overloadpacket
        self._overloadname = name
        full, mutable = f"{overloadpacket.namespace}::{overloadpacket.__name__}", overloadpacket.__name__.endswith("_")
        overload = "" if name == "default" else name
        self._schema = SimpleNamespace(name=full, overload_name=overload, is_mutable=mutable)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return load("mortice.subclasses.dispatching", "called")(self, args, kwargs)

    def name(self) -> str:
        """Return the name as schemas spell it."""
        return ".".join(filter(None, (self._schema.name, self._schema.overload_name)))

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.overloadpacket}', overload='{self._overloadname}')>"


class _Operators:
    """Operators, each made when it is first named."""

    def __init__(self, name: str) -> None:
        self._name = name

    __getattr__ = cache(lambda self, name: OpOverloadPacket(name, self._name))
    __reduce__ = lambda self: "aten"


aten, own = _Operators("aten"), _Operators("mortice")
