"""The modes of a thread: whether operations are recorded, watched or made for inference only; no_grad and its kin."""

from __future__ import annotations

import contextlib
import functools
import threading

from mortice.device import Local
from mortice.errors import switch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

__all__ = [
    "enable_grad", "inference_mode", "is_grad_enabled", "is_inference_mode_enabled", "no_grad",
    "set_grad_enabled",
]  # fmt: skip


class _Modes(Local):
    """Per-thread switches; the class attributes are what a new thread starts with, in a dict of its own."""

    grad = True
    inference = False
    anomaly = False
    pulled: Any = None  # under anomaly detection the node that computes gradients
    check_nan = True
    saved_hooks: tuple[Any, ...] = ()  # (pack, unpack) pairs, the last one counts
    hooks_disabled: str | None = None
    watched = False  # anomaly or saved_hooks: what recording a node asks
    running: Any = None  # the running backward, a `backward.Run`
    capture: Any = None  # while work is captured, what it draws: a `random.CapturedDraws`
    autocast: Any = None  # while amp.autocast is on, what casts operands: see `amp.autocast_mode`
    dispatch: tuple[Any, ...] = ()  # what is told of every op, innermost last: see `subclasses.dispatching`
    rerouted = False  # one of inference, autocast, dispatch: what the fast cases of the call path ask, and leave it to `call.slow`
    unusual = False  # whether it counts in `special`
    quiet = False  # whether that is only since nothing is recorded: fast cases in C serve all the same

    def __init__(self) -> None:
        self.__dict__.update({name: value for name, value in vars(_Modes).items() if not name.startswith("__")})


modes = _Modes()
# How many threads have a mode other than those above. While there are none the call path need not ask: reading a
# thread's own mode costs more than the rest of its bookkeeping.
special = [0]
_special_lock = threading.Lock()


def saved_hooks() -> Any:
    """Return the (pack, unpack) in force in this thread, or None."""
    return modes.saved_hooks[-1] if modes.saved_hooks else None


def watch() -> None:
    """Note that anomaly detection or saved tensor hooks were switched."""
    modes.watched = bool(modes.anomaly or modes.saved_hooks)
    settle()


def settle() -> None:
    """Keep count, in `special`, of whether this thread has a mode other than the usual ones; after every change.

    An interrupt may come at any call. So a block changes modes within its `try`, and its `finally` puts them back by assignments,
    before this: `quiet` too, or the fast cases would go on recording nothing.
    """
    own = modes.__dict__  # of this thread: to ask `modes` for each takes longer than the rest
    rerouted = own["rerouted"] = own["inference"] or own["autocast"] is not None or bool(own["dispatch"])
    others = rerouted or own["watched"]
    unusual = others or not own["grad"]
    own["quiet"] = unusual and not others
    if unusual is not own["unusual"]:
        with _special_lock:  # where memory ends here, the next switch counts
            own["unusual"] = unusual
            special[0] += 1 if unusual else -1


def set_recording(value: bool) -> None:
    """Switch recording in this thread, and do what `settle` does for that alone."""
    own = modes.__dict__
    if own["grad"] is value:
        return
    own["grad"] = value
    if own["unusual"] is value and not (own["rerouted"] or own["watched"]):  # by which it counts anyway
        with _special_lock:
            own["quiet"] = own["unusual"] = not value
            special[0] += -1 if value else 1


# By a function that usually only hands its call over: to which, by what parameters (by any where none are here), a bit for each of
# them that must be a bool, and whether in the usual modes alone.
beneath: dict[Any, tuple[Any, tuple[str, ...], int, bool]] = {}


def autocasting(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Show autocast a function that is made of other operations, as one operation of the function's name."""

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        if special[0] and modes.autocast is not None:
            return modes.autocast.call(fn, args, kwargs)
        return fn(*args, **kwargs)

    beneath[call] = fn, (), 0, True
    return call


class _DecoratorContextManager(contextlib.ContextDecorator):
    """A context manager that decorates functions and generators too: each call enters what `clone` returns."""

    def clone(self) -> Any:
        """Return another one of the kind."""
        return type(self)()

    def _recreate_cm(self) -> Any:
        return self.clone()

    def __call__(self, fn: Any) -> Any:
        if isinstance(fn, type):
            from mortice.notice import warn

            warn(
                "Decorating classes is deprecated and will be disabled in future versions. You should only decorate "
                "functions or methods, such as the class's `__init__`.",
                FutureWarning,
            )
        return _wrap_generator(self, fn) if _is_generator(fn) else super().__call__(fn)


class _Switch(_DecoratorContextManager):
    """A grad mode as context manager and decorator; nests, and is restored when the block raises."""

    _value: bool = False
    _outer: Any = None  # what was before, where that was switched at once

    def __init__(self) -> None:
        self._before: list[Any] = []

    def __enter__(self) -> Any:
        self._before.append(modes.grad if self._outer is None else self._outer)
        try:
            set_recording(self._value)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc: Any) -> None:
        own, before = modes.__dict__, self._before[-1]
        if own["grad"] is not before:
            own["grad"], own["quiet"] = before, False
            settle()
        self._before.pop()

    def clone(self) -> Any:
        fresh = object.__new__(type(self))
        fresh.__dict__.update(self.__dict__, _before=[])
        return fresh


def _is_generator(fn: Any) -> bool:
    import inspect

    return inspect.isgeneratorfunction(fn)


def _wrap_generator(switch: Any, fn: Any) -> Any:
    """Apply the mode only while the generator itself runs, not in the code that consumes it."""

    @functools.wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Iterator[Any]:
        generator = fn(*args, **kwargs)
        resume: Any = lambda: next(generator)
        try:
            while True:
                with switch._recreate_cm():
                    try:
                        item = resume()
                    except StopIteration as stop:
                        return stop.value  # type: ignore[no-any-return]
                try:
                    value = yield item
                    resume = lambda value=value: generator.send(value)
                except GeneratorExit:
                    raise
                except BaseException as error:  # noqa: BLE001 - whatever is thrown in belongs to the generator
                    resume = lambda error=error: generator.throw(error)
        finally:
            with switch._recreate_cm():
                generator.close()

    return run


class _bare_decorator(type):
    """Lets `@no_grad` work without parentheses, as in PyTorch."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        given = (*args, *kwargs.values()) if args or kwargs else ()
        if len(given) == 1 and callable(given[0]) and not isinstance(given[0], bool):
            return type.__call__(cls)(given[0])
        return type.__call__(cls, *args, **kwargs)


class no_grad(_Switch, metaclass=_bare_decorator):
    """Record nothing inside.

    Differs from torch: a view made inside does not require grad either, whatever it is a view of.
    """


class enable_grad(_Switch, metaclass=_bare_decorator):
    """Record again inside a `no_grad` block."""

    _value = True


class set_grad_enabled(_Switch):
    """Switch recording on or off, at once; as a context manager until the block ends."""

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self._value = switch("set_grad_enabled", "mode", mode)
        self._outer = modes.grad
        set_recording(self._value)

    def __call__(self, fn: Any) -> Any:
        set_recording(self._outer)  # a decorator must not switch the mode where it is applied
        return super().__call__(fn)

    def _recreate_cm(self) -> Any:
        return set_grad_enabled(self._value)


class inference_mode(_Switch, metaclass=_bare_decorator):
    """Record nothing inside; the results can never be recorded later.

    Differs from torch: what is recorded outside may still keep such a result for backward, since writes to it count.
    """

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self._mode = bool(mode)

    def __enter__(self) -> Any:
        self._before.append((modes.grad, modes.inference))
        try:
            modes.grad, modes.inference = not self._mode, self._mode
            settle()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc: Any) -> None:
        (modes.grad, modes.inference), modes.quiet = self._before[-1], False
        self._before.pop()
        settle()


def is_grad_enabled() -> bool:
    """Tell whether operations are being recorded in this thread."""
    return modes.grad


def is_inference_mode_enabled() -> bool:
    """Tell whether `inference_mode` is on in this thread."""
    return modes.inference
