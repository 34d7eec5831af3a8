"""The probes: what tells a session of ops, modules, backwards, optimisers and loaders. None is there while nobody watches.

Ops and optimisers have hooks of their own. Methods of classes are wrapped while a session is on, those that are called
often while it looks closely, and put back afterwards.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any

import mortice
from mortice import Tensor, nn, optim
from mortice.doctor import events
from mortice.doctor.events import all_tensors
from mortice.doctor.session import Session
from mortice.lazy import behind
from mortice.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from mortice.tracing import calls, doubts, places
from mortice.utils.data import DataLoader

Make = Callable[[Session, Any], Any]
_sessions: list[Session] = []  # the last one is told
_undo: list[Callable[[], Any]] = []
_near: list[Callable[[], Any]] = []  # what ends a close look
_HOOKS = ("forward_hook", "forward_pre_hook", "full_backward_hook", "full_backward_pre_hook", "backward_hook")


def current() -> Session | None:
    """Return the session that is on, if any."""
    return _sessions[-1] if _sessions else None


def attach(session: Session) -> None:
    """Tell a session of everything from now on, instead of the one before it."""
    if _sessions:
        _remove()
    _sessions.append(session)
    _install(session)


def detach(session: Session) -> None:
    """End that; the session before it is told again."""
    if session not in _sessions:
        return
    _remove()
    _sessions.remove(session)
    if _sessions:
        _install(_sessions[-1])


@contextmanager
def paused() -> Iterator[None]:
    """Tell no session of what runs in a block, such as what a tool of the doctor tries on copies."""
    session = current()
    if session is not None:
        _remove()
    try:
        yield
    finally:
        if session is not None and current() is session:
            _install(session)


def _install(session: Session) -> None:
    _wrap(session, _always(session), _undo)
    _undo.append(register_optimizer_step_post_hook(functools.partial(_stepped, session)).remove)
    if session.far["step"]:
        _undo.append(register_optimizer_step_pre_hook(functools.partial(_step, session)).remove)
    told = functools.partial(_doubted, session)
    doubts.listeners.append(told)
    _undo.append(lambda: doubts.listeners.remove(told))
    for module, _ in session.roots.items():
        _guard_parts(session, module)
    session.looks, session.rearm = functools.partial(_look, session), functools.partial(_rearm, session)
    _look(session, session.close)


def _rearm(session: Session) -> None:
    _remove()
    _install(session)


def _look(session: Session, closely: bool) -> None:
    """Put in place what is needed for a close look only, or take it away."""
    if not closely:
        _take_back(_near)
    elif not _near:
        if session.by_op:
            _near.append(calls.observe(session.by_op, functools.partial(_call, session)))
        _wrap(session, _closely(session), _near)
        if not session.far["step"]:
            _near.append(register_optimizer_step_pre_hook(functools.partial(_step, session)).remove)


def _wrap(session: Session, places: Iterable[tuple[Any, str, Make]], undo: list[Callable[[], Any]]) -> None:
    for owner, name, make in list(places):
        before = getattr(owner, name)
        own = name in vars(owner)
        setattr(owner, name, functools.wraps(before)(make(session, before)))
        undo.append(functools.partial(setattr, owner, name, before) if own else functools.partial(delattr, owner, name))


def _remove() -> None:
    _take_back(_near)
    _take_back(_undo)
    for session in _sessions:
        session.looks = session.rearm = None


def _take_back(undo: list[Callable[[], Any]]) -> None:
    while undo:
        undo.pop()()


def _forget() -> None:
    """In a process that was forked off, such as a loader's worker, nothing is watched."""
    _remove()
    _sessions.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


# ---- ops ----


def _call(session: Session, op: str, args: tuple[Any, ...], attrs: dict[str, Any], out: Any) -> None:
    if not session.busy:
        session.tell(session.by_op[op], events.Call(op, args, attrs, out))


def _function(name: str, session: Session, before: Any) -> Any:
    handlers = session.by_function[name]

    def function(*args: Any, **kwargs: Any) -> Any:
        out = before(*args, **kwargs)
        if session.close and not session.busy:
            session.tell(handlers, events.Call(name, args, kwargs, out))
        return out

    return function


def _functions(session: Session) -> Iterator[tuple[Any, str, Make]]:
    """Yield where functions of nn.functional that rules want are found: there, and in modules that imported them."""
    wanted = {id(behind(getattr(nn.functional, name))): name for name in session.by_function}
    for name in session.by_function:
        for owner in (Tensor, mortice):
            if hasattr(owner, name):
                yield owner, name, functools.partial(_function, name)
    for module in list(sys.modules.values()) if wanted else ():
        file = getattr(module, "__file__", None)
        if module is nn.functional or not (file is None or places.is_own(file) or places.is_installed(file)):
            for bound, value in list(vars(module).items()):
                if id(behind(value)) in wanted:
                    yield module, bound, functools.partial(_function, wanted[id(behind(value))])


def _shaping(session: Session, before: Any) -> Any:
    def shaped(*given: Any, **kwargs: Any) -> Any:
        out = before(*given, **kwargs)
        handlers = session.handlers["view"]
        if handlers and not session.busy and given:
            self, *args = given
            sizes = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args or tuple(kwargs.values())
            session.tell(handlers, events.Call("view", (self, *sizes), kwargs, out))
        return out

    return shaped


def _broadcast(name: str, session: Session, before: Any) -> Any:
    def operator(*args: Any, **kwargs: Any) -> Any:
        out = before(*args, **kwargs)
        handlers = session.handlers["broadcast"]
        if handlers and len(args) == 2:
            a, b = args
            if isinstance(a, Tensor) and isinstance(b, Tensor) and not session.busy and a.shape != b.shape:
                session.tell(handlers, events.Call(name, args, kwargs, out))
        return out

    return operator


def _getitem(session: Session, before: Any) -> Any:
    def getitem(self: Any, key: Any) -> Any:
        out = before(self, key)
        handlers = session.handlers["getitem"]
        if handlers and not session.busy:
            session.tell(handlers, events.Call("getitem", (self, key), {}, out))
        return out

    return getitem


def _doubted(session: Session, rule: str, message: str, values: dict[str, Any]) -> None:
    if not session.busy:
        for each in session.rules:
            if each.id == rule:
                each.report(message, **values)


# ---- modules ----


def _module_call(session: Session, before: Any) -> Any:
    running, home = session.running, get_ident()

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if session.busy or (running and not session.close) or get_ident() != home:
            return before(self, *args, **kwargs)
        root = not running
        if root and self not in session.roots:
            session.meet_root(self)
            _guard_parts(session, self)
        running.append(self)
        try:
            handlers = session.of_kind("forward_pre", self)
            if handlers:
                session.tell(handlers, events.Forward(self, args, kwargs, None, root, mortice.is_grad_enabled()))
            output = before(self, *args, **kwargs)
        except Exception as error:
            if root:
                session.show("failed", events.Failed(error, self))
            raise
        finally:
            running.pop()
        _module_done(session, self, args, kwargs, output, root)
        return output

    return call


def _module_done(session: Session, module: Any, args: Any, kwargs: Any, output: Any, root: bool) -> None:
    handlers = session.of_kind("forward", module)
    answers = session.handlers["answer"] if root and session.close else ()
    if session.close:
        for t in all_tensors(output):
            if t._node is not None:
                session.makers.setdefault(id(getattr(t._node, "parent", t._node)), session.names.get(module, ""))
            if root:
                session.outputs[t] = module
    if handlers or answers:
        event = events.Forward(module, args, kwargs, output, root, mortice.is_grad_enabled())
        session.tell([*handlers, *answers], event)


def _mode(session: Session, before: Any) -> Any:
    def train(self: Any, mode: bool = True) -> Any:
        if session.running:
            return before(self, mode)
        if self.training is not mode:
            times = session.switched[self] = session.switched.get(self, 0) + 1
            session.phase(times // 2)
        result = before(self, mode)
        session.show("mode", events.Mode(self, mode))
        return result

    return train


def _registering(session: Session, before: Any) -> Any:
    def register(self: Any, *args: Any, **kwargs: Any) -> Any:
        handle = before(self, *args, **kwargs)
        if session.handlers["bypassed"]:
            _guard(session, type(self))
        return handle

    return register


def _guard_parts(session: Session, module: Any) -> None:
    if session.handlers["bypassed"]:
        for part in module.modules():
            if has_hooks(part):
                _guard(session, type(part))


def _guard(session: Session, kind: type) -> None:
    """From now on, tell when the `forward` of a module of this class that has hooks is called directly."""
    before, inner = kind.__dict__.get("forward"), getattr(kind, "forward", None)
    if inner is None or hasattr(inner, "guarded"):
        return
    home = get_ident()  # calls in other threads are not followed

    @functools.wraps(inner)
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        called = (session.running and session.running[-1] is self) or get_ident() != home
        if session.close and not called and not session.busy and has_hooks(self) and not places.is_own(_caller()):
            session.show("bypassed", events.Bypassed(self))
        return inner(self, *args, **kwargs)

    forward.guarded = True  # type: ignore[attr-defined]
    kind.forward = forward  # type: ignore[attr-defined]
    _undo.append(functools.partial(delattr if before is None else setattr, kind, "forward", *filter(None, [before])))


def _caller() -> str:
    """Return the file that called the function that asks."""
    return sys._getframe(2).f_code.co_filename


def has_hooks(module: Any) -> bool:
    """Tell whether hooks are registered on this very module."""
    return bool(
        module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or module._backward_pre_hooks
    )


# ---- backward ----


def _backward(session: Session, before: Any) -> Any:
    def backward(tensors: Any, grad_tensors: Any = None, retain_graph: Any = None, *args: Any, **kwargs: Any) -> Any:
        if session.busy:
            return before(tensors, grad_tensors, retain_graph, *args, **kwargs)
        losses = (tensors,) if isinstance(tensors, Tensor) else tuple(tensors)
        event = events.Backward(losses, events.here(), bool(retain_graph))
        if session.close and losses and losses[0].numel() == 1:
            session.curve.append((session.steps, losses[0].detach(), event.site))
        session.show("backward", event)
        try:
            result = before(tensors, grad_tensors, retain_graph, *args, **kwargs)
        except Exception as error:
            session.show("failed", events.Failed(error, "backward"))
            raise
        session.show("backward_done", event)
        return result

    return backward


def _zeroed(session: Session, before: Any) -> Any:
    def zero_grad(self: Any, *args: Any, **kwargs: Any) -> Any:
        handlers = session.handlers["zeroed"]
        if handlers and not session.busy:
            groups = getattr(self, "param_groups", None)
            params = [p for g in groups for p in g["params"]] if groups is not None else list(self.parameters())
            session.tell(handlers, events.Zeroed(self, params))
        return before(self, *args, **kwargs)

    return zero_grad


# ---- optimisers ----


def _new_optimizer(session: Session, before: Any) -> Any:
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        before(self, *args, **kwargs)
        session.phase(1)

    return init


def _step(session: Session, optimizer: Any, args: Any, kwargs: Any) -> None:
    if session.handlers["step"]:
        session.show("step", events.Step(optimizer, session.taken(optimizer).n + 1))


def _stepped(session: Session, optimizer: Any, args: Any, kwargs: Any) -> None:
    count = session.taken(optimizer)
    count.n += 1
    if session.handlers["stepped"]:
        session.show("stepped", events.Step(optimizer, count.n))
    session.advance()


# ---- loaders ----


class _Watched:
    """A loader's iterator that tells of batches."""

    def __init__(self, session: Session, loader: Any, inner: Iterator[Any]) -> None:
        number = session.loaders.get(loader, 0) + 1
        session.loaders[loader] = number
        self._session, self._inner = session, inner
        self._epoch = events.Epoch(loader, number, events.here())
        self._over, self._steps = False, -1
        session.phase(number)
        session.show("epoch", self._epoch)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        session, epoch = self._session, self._epoch
        session.batch = None
        try:
            data = next(self._inner)
        except StopIteration:
            epoch.finished = True
            self._end()
            raise
        epoch.batches += 1
        if session.steps == self._steps:  # no step came of the batch before
            session.turn()
        self._steps = session.steps
        if _sessions and session is _sessions[-1]:
            session.batch = events.Batch(epoch, data, epoch.batches - 1)
            if session.handlers["batch"]:
                session.show("batch", session.batch)
        return data

    def _end(self) -> None:
        if not self._over:
            self._over = True
            self._session.show("epoch_done", self._epoch)

    def __len__(self) -> int:
        return len(self._inner)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __getstate__(self) -> Any:
        return self._inner.__getstate__()  # which refuses

    def __del__(self) -> None:
        if "_epoch" in self.__dict__:
            self._end()


def _passes(session: Session, before: Any) -> Any:
    return lambda self: _Watched(session, self, before(self))


def _of_events() -> list[tuple[str, Any, str, Make]]:
    """Return what is wrapped for which event while the session looks closely, or always where a rule wants it always."""
    operators = [(owner, name) for name in ("sub", "mul", "eq") for owner in (Tensor, mortice)]
    signs = [(Tensor, f"__{name}__", name) for name in ("sub", "mul", "eq")]
    return [
        ("backward", mortice.autograd, "backward", _backward),
        ("zeroed", optim.Optimizer, "zero_grad", _zeroed),
        ("zeroed", nn.Module, "zero_grad", _zeroed),
        ("forward", nn.Module, "__call__", _module_call),
        *[("bypassed", nn.Module, f"register_{name}", _registering) for name in _HOOKS],
        ("view", Tensor, "view", _shaping),
        ("view", Tensor, "reshape", _shaping),
        ("view", mortice, "reshape", _shaping),
        ("getitem", Tensor, "__getitem__", _getitem),
        *[("broadcast", owner, name, functools.partial(_broadcast, name)) for owner, name in operators],
        *[("broadcast", owner, sign, functools.partial(_broadcast, name)) for owner, sign, name in signs],
    ]


def _wanted_always(session: Session, event: str) -> bool:
    kin = {"backward": ("backward", "backward_done"), "forward": ("forward", "forward_pre")}
    return any(session.far[e] for e in kin.get(event, (event,)))


def _always(session: Session) -> Iterator[tuple[Any, str, Make]]:
    """Yield what is wrapped while a session is on: (owner, name, what makes the wrapper)."""
    yield nn.Module, "train", _mode
    yield optim.Optimizer, "__init__", _new_optimizer
    yield DataLoader, "__iter__", _passes
    yield from _functions(session)
    for event, *place in _of_events():
        if _wanted_always(session, event):
            yield tuple(place)


def _closely(session: Session) -> Iterator[tuple[Any, str, Make]]:
    """Yield what else is wrapped while it looks closely."""
    for event, *place in _of_events():
        if not _wanted_always(session, event):
            yield tuple(place)
