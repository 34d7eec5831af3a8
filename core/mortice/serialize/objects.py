"""What `load(weights_only=False)` reads: modules, optimisers, NumPy's arrays, the library's values, objects of plain classes.

Here too no code is called because a file says so, but for the `__setstate__` of modules and optimisers. A class is plain
if making and filling its objects is a matter of `object` or of mortice alone: such are dataclasses, enums, named tuples,
datasets, schedules, and most that hold a configuration. What a program has not imported is not looked for.
"""

from __future__ import annotations

import abc
import argparse
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import inspect
import logging
import operator
import pathlib
import re
import sys
import types
import typing
from collections import OrderedDict, defaultdict, deque
from typing import Any

from mortice.interop import numpy_for
from mortice.serialize import homes, registry
from mortice.serialize.machine import UnpicklingError
from mortice.serialize.registry import Known
from mortice.shape import prod
from mortice.tensor import TensorBase

# What a file may name and not call, such as the types of options, and what makes the values that a defaultdict lacks.
_TYPES = (int, float, str, bool, list, dict, tuple)
_OF_LIBRARY = (argparse.Namespace, types.SimpleNamespace)
_BUILTIN = (object, dict, OrderedDict, abc.ABC, typing.Generic, typing.Protocol, *_OF_LIBRARY)
_TAKE_STATE = (("nn.module", "Module"), ("optim.optimizer", "Optimizer"))
# Methods that run, or decide, when an object is made, filled or forgotten.
_OWN = {"__new__", "__setstate__", "__setitem__", "__del__"}
_FIELDS = dataclasses._dataclass_setstate
_DTYPE = re.compile(r"[<=|]?(\?|[bBhHiIlLqQ]|[biufc]\d{1,2}|[SU]\d{1,9})")


def find(module: str, name: str) -> Any:
    """Return what a name stands for, None where it is not for `load` to make."""
    known = _KNOWN.get(f"{module}.{name}") or homes.look_up(module, name)
    if known is not None:
        return known
    if module == "typing" and name in typing.__all__:  # a value: what is called, or indexed, `call` says
        return getattr(typing, name)
    found: Any = None if module.partition(".")[0] in homes.ROOTS else sys.modules.get(module)
    for part in name.split("."):  # as it lies there: to ask for an attribute may run code
        found = vars(found).get(part) if isinstance(found, (types.ModuleType, type)) else None
    if isinstance(found, types.BuiltinFunctionType) and module in ("math", "_operator"):
        return found
    if isinstance(found, type) and module == "numpy" and issubclass(found, sys.modules["numpy"].generic):
        return found
    if isinstance(found, types.FunctionType):  # a value such as any other: it is not called
        return found if found.__module__ == module and not _is_of_others(module) else None
    return found if isinstance(found, type) and (takes_state(found) or is_plain(found) or is_of_tensors(found) or _is_enum(found)) else None


def _is_of_others(module: str) -> bool:
    """Tell whether a module is Python's or mortice's: what is in those is named one by one."""
    return module.partition(".")[0] in sys.stdlib_module_names or module.partition(".")[0] == "mortice"


def takes_state(kind: type) -> bool:
    """Tell whether objects of a class take their state themselves: modules, optimisers, and mortice's own that do."""
    if homes.is_ours(kind) and hasattr(kind, "__setstate__"):
        return True
    bases = [getattr(sys.modules.get(f"mortice.{m}"), n, None) for m, n in _TAKE_STATE]
    return any(base is not None and issubclass(kind, base) for base in bases)


def is_plain(kind: type) -> bool:
    """Tell whether making and filling objects of a class runs nothing of its own."""
    if kind in _OF_LIBRARY or homes.is_ours(kind):
        return True
    if _is_of_others(kind.__module__) or kind is Known:
        return False
    if _is_named_tuple(kind):
        return True
    *own, last = kind.__mro__
    theirs = [c for c in own if c not in _BUILTIN and not homes.is_ours(c)]
    return bool(theirs) and last is object and not any(
        _own_code(c) or not c.__flags__ & (1 << 9) or _is_of_others(c.__module__) for c in theirs
    )  # fmt: skip  # (1 << 9: a class that was made by a class statement)


def is_of_tensors(kind: type) -> bool:
    """Tell whether it is a class of a user's tensors, made without a call of it, that takes over no state itself."""
    return issubclass(kind, TensorBase.cls) and kind.__setstate__ is TensorBase.cls.__setstate__ and not _is_of_others(kind.__module__)


def _own_code(kind: type) -> bool:
    own = _OWN & kind.__dict__.keys()
    # That of a frozen dataclass with slots sets its fields.
    return bool(own - {"__setstate__"}) or ("__setstate__" in own and kind.__dict__["__setstate__"] is not _FIELDS)


def _is_named_tuple(kind: type) -> bool:
    made = getattr(kind.__new__, "__module__", None) or ""  # the name that collections.namedtuple gives to its code
    return kind.__bases__ == (tuple,) and hasattr(kind, "_fields") and made.startswith("namedtuple_")


def _is_enum(kind: Any) -> bool:
    return isinstance(kind, enum.EnumMeta) and not _is_of_others(kind.__module__)


def call(reading: Any, function: Any, args: tuple[Any, ...]) -> Any:
    """Return what a file asks for: a method, several results, an empty namespace, a type hint, an enum's member; else `NotImplemented`."""
    if function is getattr:
        return homes.attribute(*args, reading.may_make)
    if isinstance(function, type) and function.__module__ == "mortice.return_types":
        return function(*args[0])
    if not args and isinstance(function, type) and issubclass(function, types.SimpleNamespace) and is_plain(function):
        return new(function, args)
    if function is operator.getitem and (type(args[0]).__module__ == "typing" or args[0] is typing.Union):
        return args[0][args[1]]  # a hint
    if not _is_enum(function):
        return NotImplemented
    for value, member in function._value2member_map_.items():
        if type(value) is type(args[0]) and value == args[0]:
            return member
    raise UnpicklingError(f"load: {function.__name__} has no member of the value {args[0]!r:.100}.")


def new(kind: type, args: tuple[Any, ...]) -> Any:
    """Make an object of a plain class."""
    if issubclass(kind, tuple) and homes.is_ours(kind):
        return kind.__new__(kind, *args)
    if issubclass(kind, tuple):
        if len(args) != len(kind._fields):
            raise UnpicklingError(f"load: {kind.__name__} has {len(kind._fields)} fields; got {len(args)}.")
        return tuple.__new__(kind, args)
    if args:
        raise UnpicklingError(f"load: the file makes a {kind.__name__} of {len(args)} arguments; nothing was executed.")
    return kind.__new__(kind)


def build(obj: Any, state: Any) -> bool:
    """Give an object of a plain class, an array or a dtype of NumPy its state; False for anything else."""
    if is_plain(type(obj)):
        slots: Any = None
        if getattr(type(obj), "__setstate__", None) is _FIELDS:
            _FIELDS(obj, state)
            return True
        if isinstance(state, tuple) and len(state) == 2:
            state, slots = state
        if state:
            obj.__dict__.update(state)
        for name, value in (slots or {}).items():
            place = getattr(type(obj), name, None)
            if type(place) is not types.MemberDescriptorType:  # a property would run its setter
                raise UnpicklingError(f"load: the file sets the attribute {name!r} of a {type(obj).__name__}.")
            place.__set__(obj, value)
        return True
    if type(obj) is functools.partial:
        function, args, kwargs, attributes = state
        obj.__setstate__((_partly(function), tuple(args), dict(kwargs or {}), attributes))
        return True
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return False
    if type(obj) is numpy.ndarray:
        _, shape, dtype, fortran, data = state
        _check(numpy, dtype, shape, data)
        obj.__setstate__((1, tuple(shape), dtype, bool(fortran), bytes(data)))
        return True
    if isinstance(obj, numpy.dtype):
        _, order, *rest = state
        if order not in ("<", "|", "=") or any(v not in (None, -1, 0) for v in rest[:3]):
            raise UnpicklingError(f"load: expected an array of numbers or text in little-endian order; got {obj} {order!r}.")
        return True
    return False


# ---- NumPy: the file says what an array is of, and its bytes are copied ----


def _check(numpy: Any, dtype: Any, shape: Any, data: Any) -> None:
    whole = isinstance(dtype, numpy.dtype) and isinstance(shape, tuple) and all(type(n) is int and n >= 0 for n in shape)
    if not whole or not isinstance(data, (bytes, bytearray)) or len(data) != prod(shape) * dtype.itemsize:
        raise UnpicklingError(f"load: an array of NumPy has impossible sizes {shape!r:.100} for its bytes.")


def _dtype(code: Any, *options: Any) -> Any:
    if not isinstance(code, str) or not _DTYPE.fullmatch(code):
        raise UnpicklingError(f"load: an array of NumPy holds {code!r:.100}; expected numbers or text.")
    return numpy_for("an array in a checkpoint").dtype(code)


def _array(kind: Any, *start: Any) -> Any:
    numpy = numpy_for("an array in a checkpoint")
    return numpy.ndarray((0,), numpy.int8)


def _scalar(dtype: Any, data: Any = None) -> Any:
    numpy = numpy_for("a number in a checkpoint")
    _check(numpy, dtype, (), data)
    return numpy.frombuffer(data, dtype)[0]


def _from_buffer(data: Any, dtype: Any, shape: Any, order: Any) -> Any:
    numpy = numpy_for("an array in a checkpoint")
    _check(numpy, dtype, shape, data)
    return numpy.frombuffer(bytearray(data), dtype).reshape(shape, order="F" if order == "F" else "C")


# ---- the library's values ----


def _partly(function: Any) -> Any:
    """Return what a partial may be made of; anything else could be told by a file what to do when it is called."""
    made = isinstance(function, type) and any(map(homes.is_ours, function.__mro__))
    if not (made or homes.is_function(function) or registry.is_allowed(function)):
        raise UnpicklingError(
            f"load: a partial is made of a class derived from mortice's, of what mortice has, or of what add_safe_globals allows; got "
            f"{getattr(function, '__qualname__', function)!r:.100}."
        )
    return function


def _default_dict(factory: Any = None, *rest: Any) -> Any:
    if rest or not (factory is None or any(factory is kind for kind in _TYPES) or (isinstance(factory, type) and is_plain(factory))):
        raise UnpicklingError("load: a defaultdict makes its values by something else than a type of Python's own.")
    return defaultdict(factory)


def _deque(items: Any = (), maxlen: Any = None) -> Any:
    if not isinstance(items, (list, tuple)) or not (maxlen is None or type(maxlen) is int):
        raise UnpicklingError("load: a deque is made of a list and a length.")
    return deque(items, maxlen)


def _type_of(value: Any = 0) -> Any:
    if not any(value is known for known in (None, Ellipsis, NotImplemented)):
        raise UnpicklingError(f"load: the file asks for the type of {value!r:.100}.")
    return type(value)


def _united(function: Any = None, kinds: Any = (0,)) -> Any:
    if function is not operator.or_ or any(type(kind) not in (type, types.GenericAlias) for kind in kinds):
        raise UnpicklingError("load: functools.reduce is read where it unites types.")
    return functools.reduce(operator.or_, kinds)


def _logger(name: Any = None) -> Any:
    if not (name is None or isinstance(name, str)):
        raise UnpicklingError("load: the name of a logger is a text.")
    return logging.getLogger(name)


def _path(kind: type) -> Known:
    def made(*parts: Any) -> Any:
        if not all(isinstance(p, str) for p in parts):
            raise UnpicklingError("load: the parts of a path are texts.")
        return kind(*parts)

    return Known(made)


_here = type(pathlib.Path())
_PATHS = {
    "PurePosixPath": pathlib.PurePosixPath, "PureWindowsPath": pathlib.PureWindowsPath, "Path": _here,
    # One of another system names files that are not here.
    "PosixPath": _here if issubclass(_here, pathlib.PurePosixPath) else pathlib.PurePosixPath,
    "WindowsPath": _here if issubclass(_here, pathlib.PureWindowsPath) else pathlib.PureWindowsPath,
}  # fmt: skip
_DECIMAL = re.compile(r"[-+.\w]{1,10000}")


def _decimal(text: Any = "0") -> decimal.Decimal:
    if not isinstance(text, str) or not _DECIMAL.fullmatch(text):
        raise UnpicklingError("load: a Decimal is made of a text.")
    return decimal.Decimal(text)


def _fraction(numerator: Any, denominator: Any = 1) -> fractions.Fraction:
    if isinstance(numerator, str):
        numerator, _, given = numerator.partition("/")
        numerator, denominator = int(numerator), int(given or 1)
    if type(numerator) is not int or type(denominator) is not int:
        raise UnpicklingError("load: a Fraction is made of integers.")
    return fractions.Fraction(numerator, denominator)


_KNOWN: dict[str, Any] = {
    "builtins.getattr": getattr,  # a mark: `call` does what it stands for
    "collections.defaultdict": Known(_default_dict),
    "functools.partial": Known(lambda function: functools.partial(_partly(function))),
    **{f"{module}.reduce": Known(_united) for module in ("functools", "_functools")},  # int | None
    "decimal.Decimal": Known(_decimal),
    "fractions.Fraction": Known(_fraction),
    **{f"builtins.{t.__name__}": t for t in _TYPES},
    **{f"builtins.{f.__name__}": f for f in (abs, all, any, divmod, len, max, min, pow, round, sorted, sum)},
    "builtins.Ellipsis": Ellipsis,
    "builtins.NotImplemented": NotImplemented,
    "builtins.type": Known(_type_of),
    "collections.deque": Known(_deque),
    "inspect._empty": inspect._empty,  # signatures have it where there is nothing
    "types.GenericAlias": Known(types.GenericAlias),
    "logging.getLogger": Known(_logger),
    **{f"datetime.{n}": Known(getattr(datetime, n)) for n in ("date", "time", "datetime", "timedelta", "timezone")},
    **{f"{module}.{name}": _path(kind) for name, kind in _PATHS.items() for module in ("pathlib", "pathlib._local")},
    **{f"numpy.{core}.multiarray._reconstruct": Known(_array) for core in ("core", "_core")},
    **{f"numpy.{core}.multiarray.scalar": Known(_scalar) for core in ("core", "_core")},
    **{f"numpy.{core}.numeric._frombuffer": Known(_from_buffer) for core in ("core", "_core")},
    "numpy.dtype": Known(_dtype),
    "numpy.ndarray": Known(_array),
}
