"""Errors for what is no tensor, where a public function wants one, and for what is not of the type that it is annotated with.

Ops ask themselves what they were given. Functions made of ops just begin, and what is no tensor then lacks an attribute,
or Python refuses its type: that error is told in terms of the call.
"""

from __future__ import annotations

import functools
import sys
from opcode import opmap
from types import FunctionType

from mortice import call, fast
from mortice.dtype import DType
from mortice.errors import DataError, switch, too_big
from mortice.modes import beneath
from mortice.op import _ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

_OF_TENSORS = ("mortice.ops.", "mortice.nn.functional.", "mortice.mutation", "mortice.methods.", "mortice.utils.dlpack")
_PLAIN = frozenset(("int", "float", "bool", "str", "None"))
# What Python says of the type of an object, and what it wanted.
_REFUSALS = {
    "object cannot be interpreted as an integer": "an integer", "object is not subscriptable": "a Tensor",
    "argument must be a string or a real number, not": "a number", "object is not iterable": "a tuple", "has no len()": "a tuple",
    "must be real number, not": "a number", "could not convert string to float": "a number",
}  # fmt: skip
# Where a tensor that is no number refuses to be one; the function that asked for the number knows more.
_CONVERSIONS = {"__bool__": "a number", "__index__": "an integer", "_scalar": "a number", "item": "a number"}
_RAISING = (opmap["RAISE_VARARGS"], opmap["RERAISE"])
# NumPy's names of arguments, and PyTorch's.
_NUMPY = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other"}
_guarded: dict[Any, Any] = {}


def explain(fn: Any, error: Exception, values: tuple[Any, ...], names: tuple[str, ...]) -> TypeError | None:
    """Return the error for the argument that lacks an attribute or is of a wrong type; None where no argument is to blame.

    What an op says of itself is then told of the function that called it.
    """
    _name_caller(fn, error)
    trace: Any = error.__traceback__
    asking = trace
    while trace is not None and trace.tb_next:
        asking, trace = trace, trace.tb_next
    # What is missing in a backend's kernel is a fault of the kernel, even where the object is an argument as well.
    big = isinstance(error, OverflowError)  # which kernels read first
    if trace is None or not (big or trace.tb_frame.f_globals.get("__name__", "").startswith("mortice.")):
        return None
    frame = trace.tb_frame
    ours = asking.tb_frame.f_globals.get("__name__", "").startswith("mortice.")  # and no program's, which was called back
    refuses = ours and isinstance(frame.f_locals.get("self"), call.Tensor)
    number = _CONVERSIONS.get(frame.f_code.co_name) if refuses else None
    said = frame.f_code.co_code[trace.tb_lasti] in _RAISING and not number and not isinstance(error, DataError)
    if said and not isinstance(error, AttributeError):
        return None  # it says what is wrong
    from inspect import signature

    n, asked = len(values) - len(names), signature(fn)
    try:
        given = asked.bind(*values[:n], **dict(zip(names, values[n:]))).arguments
    except TypeError:  # there are too few, or too many: Python's own error says which
        return None
    if big:
        return _too_big(fn, given)
    if not isinstance(error, AttributeError):
        if found := _mistyped(fn, asked.parameters, given):
            return found
        return _no_number(fn, asked.parameters, frame.f_locals["self"], number, given) if number else _refused(fn, str(error), given)
    wanted = _who_has(error.name)
    if wanted is None or isinstance(error.obj, call.Tensor):
        return None
    for name, value in given.items():
        itself = value is error.obj  # as is the only letter of a short text
        several = not itself and isinstance(value, (list, tuple, str)) and any([v is error.obj for v in value])
        if several or itself:
            if wanted == "a Tensor" and not several:
                return call.no_tensor(fn.__name__, name, value)
            what = f"each of `{name}`" if several else f"`{name}`"
            return TypeError(f"{fn.__name__}: expected {what} to be {wanted}; got {call.advice(error.obj)}")
    return None


def _name_caller(fn: Any, error: Any) -> None:
    """Put a function's name before what an op beneath it said of itself, which the user need not know; no program's calls."""
    op, colon, text = str(error.args[0] if error.args else "").partition(": ")
    name = fn.__name__.removeprefix("torch_").rstrip("_")
    if not colon or f"_{op}".endswith(f"_{name}") or fn.__name__[0] == "_" or not (op in _ops or op == vars(error).get("_told")):
        return
    trace: Any = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__name__", "").startswith("mortice."):
        trace = trace.tb_next
    if trace is None:
        error.args = (f"{name}: {text}", *error.args[1:])
        error._told = name


def _ask(fn: Any, values: tuple[Any, ...], names: tuple[str, ...]) -> Any:
    n = len(values) - len(names)
    return call.ASK(fn, values[:n], dict(zip(names, values[n:])))


def _mistyped(fn: Any, parameters: Any, given: dict[str, Any]) -> TypeError | None:
    """Return the error for the first argument that is not what its annotation says, of those that say plain types."""
    for name, value in given.items():
        kinds = str(parameters[name].annotation).split(" | ")
        fits = value is parameters[name].default or not _PLAIN.issuperset(kinds) or any([_fits(value, kind) for kind in kinds])
        if not fits:
            wanted = " or ".join([kind for kind in kinds if kind != "None"])
            return TypeError(f"{fn.__name__}: argument '{name}' must be {wanted}, not {type(value).__name__}.")
    return None


def _no_number(fn: Any, parameters: Any, tensor: Any, wanted: str, given: dict[str, Any]) -> TypeError | None:
    """Return the error for the tensor that stood where a number was wanted: an argument, or in one, or which one was taken apart."""
    if tensor.numel() == 1:
        return None
    held = [name for name, v in given.items() if v is tensor or isinstance(v, (list, tuple)) and any([e is tensor for e in v])]
    others = [name for name, v in list(given.items())[1:] if isinstance(v, call.Tensor)]  # what comes first is the operand
    found = held or [name for name in others if "Tensor" not in str(parameters[name].annotation)]
    if len(found) != 1:
        return None
    inside = held and given[found[0]] is not tensor
    what = f"expected each of `{found[0]}` to be" if inside else f"argument '{found[0]}' must be"
    return TypeError(f"{fn.__name__}: {what} {wanted}; got a Tensor of shape {list((tensor if held else given[found[0]]).shape)}.")


def _refused(fn: Any, text: str, given: dict[str, Any]) -> TypeError | None:
    """Return the error for the only argument, or the only one that holds an element, of the type that Python refused."""
    for said, wanted in _REFUSALS.items():
        if said in text:
            kind = "str" if "string to" in text else text.split(" ")[-1] if "'" not in text else text.split("'")[1].rpartition(".")[2]
            found = [name for name, value in given.items() if type(value).__name__ == kind]
            if len(found) == 1:
                return TypeError(f"{fn.__name__}: argument '{found[0]}' must be {wanted}, not {kind}.")
            found = [n for n, v in given.items() if isinstance(v, (list, tuple)) and any([type(e).__name__ == kind for e in v])]
            if len(found) == 1:
                return TypeError(f"{fn.__name__}: expected each of `{found[0]}` to be {wanted}; got {kind}.")
    return None


def _too_big(fn: Any, given: dict[str, Any]) -> TypeError | None:
    """Return the error for the first argument that is, or holds, an integer of more than 64 bits."""
    for name, value in given.items():
        for v in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(v, int) and v.bit_length() > 63:
                return too_big(fn.__name__, name, v)
    return None


def _fits(value: Any, kind: str) -> bool:
    if isinstance(value, call.Tensor) and (value.numel() != 1 or (kind == "int" and value.dtype.kind not in "iub")):
        return False
    if kind in ("int", "float"):
        return hasattr(value, "__index__") or kind == "float" and hasattr(value, "__float__")
    return value is None if kind == "None" else isinstance(value, str if kind == "str" else bool)


def _who_has(attribute: str | None) -> str | None:
    if attribute is None or attribute == "__index__":
        return attribute and "an integer"
    return "a Tensor" if hasattr(call.Tensor, attribute) else "a dtype" if hasattr(DType, attribute) else None


# ---- switches ----


def parameters(fn: Callable[..., Any]) -> tuple[tuple[str | None, ...], frozenset[str], frozenset[str]]:
    """Return the names of a function's parameters, by place, which of them are switches, and of these which may be None."""
    inner: Any = fn
    while hasattr(inner, "__wrapped__"):
        inner = inner.__wrapped__
    code, kinds = inner.__code__, inner.__annotations__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if code.co_flags & 4:  # it has *args, whose places are no parameter's
        names = (*names[: code.co_argcount], *[None] * 16, *names[code.co_argcount :])
    maybe = frozenset([n for n in names if kinds.get(n) == "bool | None"])
    return names[:32], maybe.union([n for n in names if kinds.get(n) == "bool"]), maybe


def own_names(fn: Callable[..., Any], names: Iterable[str]) -> tuple[str, ...] | None:
    """Return a function's own names of the arguments that a call gives by NumPy's; None where that mends nothing."""
    own = parameters(fn)[0]
    made = tuple([_NUMPY[n] if n not in own and _NUMPY.get(n, "") in own else n for n in names])
    return made if made != tuple(names) else None


def check_switches(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], *asked: Any) -> None:
    """Refuse what is no bool for a switch, None where that may be."""
    names, switches, maybe = asked
    for name, value in (*zip(names, args), *kwargs.items()):  # the 2 of x.mean(1, 2) was meant as a dim
        if name in switches and value.__class__ is not bool and (value is not None or name not in maybe):
            switch(fn.__name__.removeprefix("torch_"), name, value)


def hands_over(call: Callable[..., Any], fn: Callable[..., Any], names: Any, switches: Any, maybe: Any) -> Callable[..., Any]:
    """Note of `call` that it usually hands over to `fn`, and with what parameters; return it."""
    under, _, _, usual = beneath.get(fn, (fn, (), 0, False))
    beneath[call] = under, names, sum([1 << i for i, name in enumerate(names) if name in switches]), usual
    return call


def switched(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that takes nothing but bools for what is a switch, as PyTorch's in C++ do; itself if it has none."""
    asked = parameters(fn)
    if not asked[1] or (fn in beneath and beneath[fn][1]):  # which asks already
        return fn

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        check_switches(fn, args, kwargs, *asked)
        return fn(*args, **kwargs)

    return hands_over(call, fn, *asked)


# ---- what public functions go through ----


def guarded(value: Any) -> Any:
    """Return a public function as one whose missing attributes are explained, here and in its module; other things as they are."""
    # Of those that begin in C ops ask themselves, and what is guarded already has `__wrapped__`.
    in_c = fast.serves() and type(value) is fast._engine.Fast and not (hasattr(value, "op") or hasattr(value, "__wrapped__"))
    if not (in_c or type(value) is FunctionType) or not value.__module__.startswith(_OF_TENSORS):
        return value
    made = _guarded.get(value)
    if made is None:
        asked = switched(value) if value.__module__.startswith(_OF_TENSORS[0]) else value  # others have bodies in Python there too
        made = _guarded[value] = fast.guard(asked, explain, _ask)
        if made is value:
            return value
        vars(made).update({**vars(value), "__wrapped__": value})
        module = sys.modules.get(value.__module__)
        if module is not None and vars(module).get(value.__qualname__) is value:
            setattr(module, value.__qualname__, made)
    return made


def guard_namespace(names: dict[str, Any]) -> None:
    """Guard the public functions of a module."""
    for name, value in list(names.items()):
        if not name.startswith("_"):
            names[name] = guarded(value)
