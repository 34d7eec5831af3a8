"""The machinery of mortice.overrides: who is asked about a call, and the functions and methods that ask."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from inspect import signature
from types import FunctionType, MethodType
from typing import Any

import mortice
from mortice import Tensor, autograd, fast
from mortice.autograd.gradients import _wanted
from mortice.device import Local
from mortice.lazy import Lazy, LazyProperty, StandIn
from mortice.methods import _disabled_torch_function_impl, _let_operands_ask


class _State(Local):
    """What this thread has switched off, and the modes that it is in, innermost last."""

    classes_off = modes_off = 0
    untold = 0  # how often it was said that classes shall not be told of operators
    skipping = False  # whether the next to look for classes and modes shall see none
    modes: tuple[Any, ...] = ()


_state = _State()
CLASSES: Any = None  # the module `subclasses`, once a class has `__torch_dispatch__`


# ---- who is asked ----


class _Asked(dict):
    """Whether a class takes calls over, found at its first argument; a list is asked for what is in it."""

    def __missing__(self, kind: type) -> bool:
        asked = getattr(kind, "__torch_function__", None)
        own = kind is Tensor or asked is None or asked is _disabled_torch_function_impl
        # PyTorch's tensors are arrays of another library here: what theirs does is call the function again.
        found = self[kind] = kind in (list, tuple) or not own and (issubclass(kind, Tensor) or not _of_pytorch(asked))
        return found


def _of_pytorch(function: Any) -> bool:
    """Tell whether it is one of PyTorch's own functions."""
    maker = getattr(function, "__module__", None) or getattr(function, "__objclass__", type).__module__
    return maker.partition(".")[0] == "torch"


_asked = _Asked()


def _overloaded(values: Any) -> list[Any]:
    """Return one argument of each class that takes calls over, those within lists too; derived classes come first."""
    found: list[Any] = []
    if _state.classes_off:
        return found
    for value in values:
        kind = type(value)
        if not _asked[kind]:
            continue
        for v in value if kind is list or kind is tuple else (value,):
            kind = type(v)
            if kind is not list and kind is not tuple and _asked[kind] and not any([type(f) is kind for f in found]):
                at = next((i for i, f in enumerate(found) if issubclass(kind, type(f))), len(found))
                found.insert(at, v)
    return found


def has_torch_function(relevant_args: Any) -> bool:
    """Tell whether an argument, or a mode, takes calls over."""
    if _state.skipping:
        _state.skipping = False
        return False
    return bool(_modes() or _overloaded(relevant_args))


def redispatch_function(func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """Compute a call that `__torch_function__` got, without asking about it; calls within it ask."""
    kwargs, known = kwargs or {}, isinstance(func, Overridable)
    _state.skipping = not (known and all([isinstance(v, Tensor) for v in _overloaded((*args, *kwargs.values()))]))
    try:
        return (func.__wrapped__ if known else func)(*args, **kwargs)
    finally:
        _state.skipping = False


def has_torch_function_unary(obj: Any) -> bool:
    """Tell whether an argument, or a mode, takes calls over."""
    return has_torch_function((obj,))


def has_torch_function_variadic(*args: Any) -> bool:
    """Tell whether an argument, or a mode, takes calls over."""
    return has_torch_function(args)


def is_tensor_like(inp: Any) -> bool:
    """Tell whether an object is a Tensor or has `__torch_function__`."""
    return isinstance(inp, Tensor) or hasattr(inp, "__torch_function__")


def _modes() -> tuple[Any, ...]:
    return () if _state.modes_off else _state.modes


def _ask(public_api: Any, found: list[Any], args: Any, kwargs: Any) -> Any:
    """Give a call to the innermost mode, then to classes in turn; NotImplemented when all decline."""
    types = tuple(map(type, found))
    modes = _modes()
    if modes:
        _state.modes = modes[:-1]
        try:
            result = modes[-1].__torch_function__(public_api, types, args, kwargs)
        finally:
            _state.modes = modes
        if result is not NotImplemented:
            return result
    for value in found:
        result = value.__torch_function__(public_api, types, args, kwargs)
        if result is not NotImplemented:
            return result
    return NotImplemented


def handle_torch_function(public_api: Any, relevant_args: Any, *args: Any, **kwargs: Any) -> Any:
    """Give a call to the innermost mode, or to the classes of the arguments in turn, until one does not decline.

    Raises:
        TypeError: when all decline by NotImplemented.
    """
    found = _overloaded(relevant_args)
    result = _ask(public_api, found, args, kwargs)
    if result is NotImplemented:
        name = getattr(public_api, "__name__", public_api)
        asked = [type(value).__name__ for value in (*_modes()[-1:], *found)]
        raise TypeError(
            f"no implementation found for 'mortice.{name}' on types that implement __torch_function__: {asked}. "
            "Handle it there, or call it with Tensors."
        )
    return result


def _ask_operands(what: Any, args: Any, attrs: Any, first: bool = False) -> Any:
    """Give a call that has asked nobody to the class of what is no tensor; NotImplemented where none is asked.

    What is called is a method where a tensor comes first: functions ask before, but those that code had `first`.
    """
    values = (*args, *attrs.values())
    if _state.skipping or not _overloaded(values):
        _state.skipping = False
        return NotImplemented if CLASSES is None else CLASSES.indexed(what, args)
    name, public = what, None
    if not isinstance(what, str):
        name = what.__name__.lstrip("_")
        if first or not isinstance(args[0], Tensor):
            public = next((v for path in _NAMESPACES for v in vars(import_module(path)).values() if _stands_for(v, what)), None)
    public = public or _methods().get(name) or getattr(Tensor, name, None)
    return NotImplemented if public is None else handle_torch_function(public, values, *args, **attrs)


def _stands_for(value: Any, function: Any) -> bool:
    return isinstance(value, Overridable) and value._fn is function


class DisableTorchFunctionSubclass:
    """A block in which classes are not asked; modes still are."""

    def __enter__(self) -> None:
        _state.classes_off += 1

    def __exit__(self, *exc: object) -> None:
        _state.classes_off -= 1


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """A block in which nobody is asked."""

    def __enter__(self) -> None:
        super().__enter__()
        _state.modes_off += 1

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        _state.modes_off -= 1


# ---- what asks ----


class Overridable(StandIn):
    """A public function or a method that asks before it runs. It equals what it stands for, so that either is a key."""

    held = True  # whether somebody may have what it stands for; a function that nobody has seen is none of Tensor's methods

    def __init__(self, fn: Any, name: str, module: str = "", family: str = "") -> None:
        self._fn, self._name, self.__name__, self.__module__ = fn, name, family + name, module
        if not isinstance(fn, Lazy):
            self.__doc__ = fn.__doc__

    def _loaded(self) -> Any:
        if isinstance(self._fn, Lazy):
            self._fn = self._fn.settle()
        return self._fn

    __wrapped__ = property(_loaded)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        values = (*args, *kwargs.values()) if kwargs else args
        if _overloaded(values) or (_state.modes and _modes()):
            if self._name == "einsum" and len(args) == 2 and isinstance(args[0], str) and type(args[1]) in (list, tuple):
                return self(args[0], *args[1])  # as PyTorch calls itself again: classes see the operands one by one
            return handle_torch_function(self, values, *args, **kwargs)
        return self._fn(*args, **kwargs) if CLASSES is None else CLASSES.reach(self, values, args, kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loaded(), name)  # not __wrapped__, which asks here again where there is nothing to load

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Overridable):  # a method is no function to handlers, though here they are the same
            return self.__wrapped__ is other.__wrapped__ and isinstance(self, _Method) is isinstance(other, _Method)
        return self.held and self.__wrapped__ is other

    def __hash__(self) -> int:
        return hash(self.__wrapped__)

    def __repr__(self) -> str:
        return repr(self.__wrapped__)

    def __reduce__(self) -> Any:
        return self._name  # in its namespace


class _Walk(Overridable):
    """`autograd.grad` or `backward`: what it asks gets tuples, and every option by its name."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound = signature(self._fn).bind(*args, **kwargs)
        bound.apply_defaults()
        options, names = bound.arguments, bound.arguments["inputs"]
        several = [n for n in (next(iter(options)), "inputs") if options[n] is not None]
        for n in several:
            options[n] = (options[n],) if is_tensor_like(options[n]) else _wanted(self._name, options[n])
        values = [v for n in several for v in options[n]]
        if options.get("grad_variables", self) is None:
            del options["grad_variables"]
        first = [options.pop(n) for n in several[: 1 + (self._name == "grad")]]
        asked = has_torch_function(values)
        found = handle_torch_function(self, values, *first, **options) if asked else self._fn(*first, **options)
        return dict(zip(names, found)) if type(names) is dict and found else found


class _Method(Overridable):
    """A method of Tensor that asks; it tells the name that PyTorch tells."""

    def __init__(self, fn: Any, name: str, told: Any = None) -> None:
        super().__init__(fn, name)
        self.told, self.operator = told or self, told is not None or name.startswith("__")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        values = (*args, *kwargs.values()) if kwargs else args
        found = _overloaded(values)
        if not found and not (_state.modes and _modes()):
            return self.__wrapped__(*args, **kwargs) if CLASSES is None else CLASSES.reach(self, values, args, kwargs)
        if self.operator:  # what declines here may be answered by the other operand's operator
            try:
                return _ask(self.told, found, args, kwargs)
            except TypeError as error:
                if isinstance(error, RuntimeError) or self._name.strip("_") in _ALONE:  # as a DTypeError is
                    raise
                return NotImplemented
        return handle_torch_function(self.told, values, *args, **kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> Any:
        return getattr, (Tensor, self._name)


class _Reflected(_Method):
    """An operator with the tensor on the right: Python asks a derived class's first only where it differs from the base's."""

    straight: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.straight and len(args) == 2 and isinstance(args[1], Tensor) and not _overloaded(args[1:]):
            made = self.straight(args[1], args[0])  # what PyTorch is asked by the tensor on the left
            if made is not NotImplemented:
                return made
        return super().__call__(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = _Method.__hash__


class _Attribute:
    """An attribute of Tensor. All code here asks what a tensor is: of what is no tensor only others' reading is told."""

    def __init__(self, name: str) -> None:
        self.name, self.quiet = name, name not in _TENSORS

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        of_tensor = getattr(Tensor, self.name)
        if instance is None:
            return of_tensor
        inside = _state.classes_off and not _state.modes
        if inside or (self.quiet and sys._getframe(1).f_globals.get("__name__", "").startswith("mortice")):
            return of_tensor.__get__(instance)
        if _modes() or _overloaded((instance,)):
            return handle_torch_function(of_tensor.__get__, (instance,), instance)
        if CLASSES is not None and not self.quiet:
            return CLASSES.read(of_tensor, self.name, instance)
        return of_tensor.__get__(instance)

    def __set__(self, instance: Any, value: Any) -> None:
        of_tensor = getattr(Tensor, self.name)
        if _modes() or _overloaded((instance,)):
            handle_torch_function(of_tensor.__set__, (instance,), instance, value)
        else:
            of_tensor.__set__(instance, value)


# Operators, and the methods under whose names PyTorch tells of them; None is told of as it is called.
_OPERATORS: dict[str, str | None] = {
    "add": "add", "radd": "add", "iadd": "add_", "sub": "sub", "isub": "sub_", "mul": "mul", "rmul": "mul", "imul": "mul_",
    "truediv": "div", "itruediv": "div_", "ifloordiv": "floor_divide_", "mod": "remainder", "imod": "remainder_", "pow": "pow",
    "ipow": "pow_", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge", "neg": "neg", "pos": "positive", "abs": "abs",
    "matmul": "matmul", "rand": "bitwise_and", "ror": "bitwise_or", "rxor": "bitwise_xor",
}  # fmt: skip
_OPERATORS |= dict.fromkeys(
    "rsub rtruediv floordiv rfloordiv rmod rpow rmatmul eq ne and iand or ior xor ixor lshift rlshift ilshift rshift "
    "rrshift irshift".split()
)
_ALONE = "invert getitem setitem len reversed bool float int index complex contains repr format deepcopy array".split()
_TENSORS = ("T", "mT", "H", "mH", "data", "real", "imag")
_ATTRIBUTES = (
    *_TENSORS, "shape", "ndim", "dtype", "device", "layout", "requires_grad", "is_leaf", "grad", "grad_fn", "is_cuda", "is_sparse",
    "itemsize", "nbytes",
)  # fmt: skip
# Methods that ask what a tensor is, which all code here does, or that are told of elsewhere.
_SILENT = frozenset("as_subclass is_inference cls note_use own_storage set_storage view_steps".split())
_NO_METHODS = (type, staticmethod, classmethod, LazyProperty)


def _added(value: Any) -> bool:
    """Tell whether it is a function that a program has set on Tensor or in a namespace: it calls what asks."""
    return isinstance(value, FunctionType) and not value.__module__.startswith("mortice")


@functools.cache
def _methods() -> dict[str, Any]:
    """Return what stands for the methods of Tensor in classes derived from it."""
    own: dict[str, Any] = {}
    for kind in reversed(Tensor.__mro__[:-1]):
        own.update(vars(kind))
    found: dict[str, Any] = {}
    for name, value in own.items():
        method = isinstance(value, Lazy) or callable(value)
        if method and not name.startswith("_") and name not in _SILENT and not isinstance(value, _NO_METHODS) and not _added(value):
            if isinstance(value, Lazy) and value.places[0][0] is Tensor:  # where what asks may come to stand
                value = value.then(value.made_into)
            found[name] = _Method(value, name)
    for name in (*_ALONE, *_OPERATORS):
        kind = _Reflected if name[0] == "r" and f"__{name[1:]}__" in own else _Method
        told, value = _OPERATORS.get(name), own[f"__{name}__"]
        # Handlers are told of what equals Tensor's own: a reflected one, or a program's, does not.
        tells = found[told] if told in found else _Method(value, f"__{name}__") if kind is _Reflected else None
        found[f"__{name}__"] = kind(value, told or f"__{name}__", tells)
    for name, made in found.items():
        if isinstance(made, _Reflected):
            made.straight = found.get(f"__{name[3:]}")
    return {**found, **{name: _Attribute(name) for name in _ATTRIBUTES}}


def _by_name(cls: type, name: str) -> Any:
    """Return an attribute of a class: of Tensor itself the methods that handlers are told of, which derived classes have too."""
    value = type.__getattribute__(cls, name)
    if cls is Tensor:
        method = _methods().get(name)
        # Python compares the reflected ones of two classes.
        if type(method) is _Method and (value is _of_plain.get(name) or method.__wrapped__ is value):
            return method
    return value


def _set_by_name(cls: type, name: str, value: Any) -> None:
    """Set an attribute of a class: on Tensor what a program has read there, and puts back, is the method that stood there."""
    if cls is Tensor and not _entered and value is _methods().get(name):
        value = _of_plain.get(name) or value.__wrapped__
    type.__setattr__(cls, name, value)
    if name == "__torch_function__":  # so too of derived classes
        _asked.clear()


@functools.cache
def _asking() -> Any:
    """Make the class between Tensor and the classes derived from it."""
    body = {"__slots__": (), "__hash__": Tensor.__hash__, "__module__": "mortice", "__torch_function__": _disabled_torch_function_impl}
    made: Any = type(Tensor)("Tensor", (Tensor,), {**_methods(), **body})
    type(Tensor).__getattribute__, type(Tensor).__setattr__ = _by_name, _set_by_name
    made.__torch_function__ = classmethod(_computed)
    for name, method in _methods().items():
        if type(method) is _Method and (name in _OF_PLAIN if name.startswith("__") else name not in _OWN_ALONE):
            _let_ask(name, method)
    return made


def _computed(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Compute a call in which a tensor of a derived class takes part; what comes out is of that class too."""
    if _of_pytorch(func):  # which would ask here again and again
        return NotImplemented
    for kind in types:
        if not issubclass(cls, kind):
            return NotImplemented
    _state.classes_off += 1
    try:
        result = func(*args, **(kwargs or {}))
        return result if func == Tensor.grad.__get__ else _of_class(result, cls, args)
    finally:
        _state.classes_off -= 1


def _of_class(result: Any, cls: Any, args: Any) -> Any:
    """Return what a call gave with its tensors as tensors of a class."""
    if isinstance(result, Tensor):
        if isinstance(result, cls):
            return result
        if type(result) is not Tensor or any([result is a for a in args]):
            return result.as_subclass(cls)  # others have it too
        try:
            result.__class__ = cls
        except TypeError:  # one with slots, whose tensors have another layout
            return result.as_subclass(cls)
    elif isinstance(result, (tuple, list)):
        made = [_of_class(r, cls, args) for r in result]
        return type(result)(*made) if hasattr(result, "_fields") else type(result)(made)
    return result


def follow(cls: type) -> None:
    """Let the methods of a class derived from Tensor ask it: put the class whose methods ask before Tensor."""
    asking = _asking()
    if asking not in cls.__mro__:
        cls.__bases__ = tuple([asking if base is Tensor else base for base in cls.__bases__])


# ---- functions of the public namespaces ----

# Where they are, and what PyTorch puts before the names of those there.
_NAMESPACES = {
    "mortice": "", "mortice.nn.functional": "", "mortice.linalg": "linalg_", "mortice.fft": "fft_",
    "mortice.special": "special_",
}  # fmt: skip
# They make tensors of anything, tell what something is, or set what holds for the program; fastai adds the last.
_NEVER = frozenset(
    "tensor as_tensor asarray from_numpy frombuffer from_file is_tensor is_storage is_grad_enabled typename save load compile "
    "manual_seed seed initial_seed vmap use_backend default_backend can_cast promote_types finfo iinfo summary Size "
    "is_inference_mode_enabled as_subclass".split()
)


def asks(name: str, value: Any) -> bool:
    """Tell whether what has a public name is a function that asks."""
    quiet = name.startswith(("_", "set_", "get_", "is_autocast")) or name in _NEVER
    return (not quiet or name == "_assert") and not isinstance(value, type) and callable(value) and hasattr(value, "__name__")


def _made_overridable(name: str, value: Any, module: str = "mortice", family: str = "") -> Any:
    """Return what stands for a public name: functions ask, other things stay."""
    if isinstance(value, Overridable) or not asks(name, value) or _added(value):
        return value
    return Overridable(value, name, module, family)


def open_namespaces() -> None:
    """Let the functions of the public namespaces ask, those that are not imported yet too."""
    for path, family in _NAMESPACES.items():
        module = import_module(path)
        for name, value in list(vars(module).items()):
            vars(module)[name] = _made_overridable(name, value, path, family)
    for name in ("grad", "backward"):
        setattr(autograd, name, _Walk(getattr(autograd, name), name, "mortice.autograd"))
    load = mortice._load

    def load_overridable(module: str, name: str) -> Any:
        made = _made_overridable(name, load(module, name))
        if isinstance(made, Overridable):
            made.held = False
        return made

    mortice._load = load_overridable
    _let_operands_ask(_ask_operands)


# ---- methods of plain tensors ----

# Of the operators those that no other operand's answers.
_OF_PLAIN = frozenset(f"__{name}__" for name in ("getitem", "setitem", "contains", *[n for n in _OPERATORS if n[0] == "i"]))
_OWN_ALONE = ("new_tensor", "set_")  # as in PyTorch
_of_plain: dict[str, Any] = {}  # what asks about the other operands of a plain tensor, by name


def _let_ask(name: str, method: _Method) -> None:
    """Let a method of plain tensors ask the classes of its other operands."""
    fn = method._fn

    def made(_: Any) -> Any:
        _of_plain[name] = fast.asking(method.__wrapped__, method.told if name in _OF_PLAIN else method)
        return _of_plain[name]

    found = fn.then(made) if isinstance(fn, Lazy) else made(fn)
    if isinstance(found, Lazy):
        found.places.append((Tensor, name))
    if _entered:
        _before[name] = found
    else:
        setattr(Tensor, name, found)


_entering = threading.Lock()
_entered = 0
_before: dict[str, Any] = {}


def let_methods_ask(asking: bool) -> None:
    """Let the methods of plain tensors ask too, or after as many calls with False no longer."""
    global _entered
    with _entering:
        _entered += 1 if asking else -1
        if asking and _entered == 1:
            for name, method in _methods().items():
                if name in vars(Tensor):
                    _before[name] = vars(Tensor)[name]
                if not isinstance(method, _Attribute):
                    type.__setattr__(Tensor, name, method)
        elif not _entered:
            for name, method in _methods().items():
                if name in _before:
                    setattr(Tensor, name, _before[name])
                elif not isinstance(method, _Attribute):
                    delattr(Tensor, name)
            _before.clear()


# ---- what a trace of `fx` keeps as it is; here, since code marks functions that may never be traced ----

wrapped: dict[tuple[int, str], dict[str, Any]] = {}  # the namespaces of what `wrap` was told, by their ids and the names


def wrap(fn_or_name: str | Callable[..., Any]) -> str | Callable[..., Any]:
    """Let a trace keep a function of the calling module as one call. Also a decorator."""
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            "wrap: Unsupported type for global function! Must be either a callable or string name; "
            f"got {type(fn_or_name).__name__}."
        )
    if sys._getframe(1).f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    names = sys._getframe(1).f_globals
    wrapped[id(names), fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__] = names
    return fn_or_name
