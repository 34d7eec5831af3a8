"""mortice.doctor: names the classic mistakes of training while a program makes them, and says what to do.

`with doctor.watch(model, optimizer, loader):` or MORTICE_DOCTOR=1 in the environment watches; nothing is paid otherwise.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mortice.doctor.finding import Finding, Site
from mortice.doctor.rule import Rule, register

if TYPE_CHECKING:
    from mortice.doctor.known import rules
    from mortice.doctor.plugins import hookimpl
    from mortice.doctor.session import Session

# By the module that each is in, which is imported when it is asked for: the static part starts in a moment that way.
_TOOLS = {
    "overfit_one_batch": "overfit", "check_gradients": "gradients", "check_inputs": "inputs", "check_dataset": "datasets",
    "find_lr": "lr", "compare": "comparing", "record": "comparing", "check_regularization": "regularization",
    "sweep_verdict": "sweep",
}  # fmt: skip
_LATER = {"Session": "session", "rules": "known", "hookimpl": "plugins", **{n: f"tools.{m}" for n, m in _TOOLS.items()}}

__all__ = [
    "Finding", "Rule", "Session", "Site", "findings", "hookimpl", "ignore", "register", "report", "rules", "start", "stop",
    "watch", "wrap", *_TOOLS,
]  # fmt: skip

_last: Session | None = None


def __getattr__(name: str) -> Any:
    where = _LATER.get(name)
    if where is None:
        raise AttributeError(f"module 'mortice.doctor' has no attribute {name!r}")
    return getattr(importlib.import_module(f"mortice.doctor.{where}"), name)


@contextmanager
def watch(
    *watched: Any,
    ignore: Iterable[str] = (),
    only: Iterable[str] | None = None,
    style: bool = False,
    quiet: bool = False,
    strict: bool = False,
) -> Iterator[Session]:
    """Watch what runs inside for mistakes; gives the session, which has `findings` and `report()`.

    Args:
        watched: models, optimizers and loaders. What is not named is met when it is first used; naming a model
            beforehand gives its parts their names in it from the start.
        ignore: ids of rules that are not to report; patterns such as "D0*" work.
        only: ids of the only rules that are to watch.
        style: also report matters of taste.
        quiet: do not print findings as they come.
        strict: let errors of rules through, as tests of rules want.
    """
    from mortice.doctor import events
    from mortice.doctor.session import Session

    session = Session(watched, ignore=ignore, only=only, style=style, quiet=quiet, strict=strict)
    start(session)
    try:
        yield session
    except Exception as error:
        session.show("failed", events.Failed(error, "program"))
        raise
    finally:
        stop(session)


def start(session: Session | None = None) -> Session:
    """Begin to watch, until `stop`; what `watch` does at its beginning."""
    from mortice.doctor import probes
    from mortice.doctor.session import Session

    global _last
    _last = Session() if session is None else session
    probes.attach(_last)
    return _last


def stop(session: Session | None = None) -> Session | None:
    """End what `start` began; returns the session."""
    from mortice.doctor import probes

    session = probes.current() if session is None else session
    if session is not None:
        try:
            session.end()
        finally:
            probes.detach(session)
    return session


def wrap(step: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Return a training step that is watched whenever it runs; its `session` has the findings. Options as `watch`'s."""
    from mortice.doctor import probes
    from mortice.doctor.session import Session

    session = Session(options.pop("watched", ()), **options)

    @functools.wraps(step)
    def run(*args: Any, **kwargs: Any) -> Any:
        global _last
        _last = session
        probes.attach(session)
        try:
            return step(*args, **kwargs)
        finally:
            probes.detach(session)

    run.session = session  # type: ignore[attr-defined]
    return run


def ignore(*ids: str) -> None:
    """Silence rules from here on: "D06", or a pattern such as "D0*"."""
    from mortice.doctor import session

    session.ignored.update(ids)


def findings() -> list[Finding]:
    """Return the findings of the session that is on, or of the last one."""
    return [] if _last is None else _last.findings


def report(format: str = "text", file: Any = None) -> str:
    """Return the report of the session that is on, or of the last one: "text", "json" or "html"; write it to `file` too."""
    if _last is None:
        raise RuntimeError("report: nothing has been watched yet. Use `with mortice.doctor.watch(...)` first.")
    return _last.report(format, file)


def from_environment() -> None:
    """Watch the whole program, as MORTICE_DOCTOR asks: 1, or the path of a report that ends in .json, .html or .txt."""
    if "--multiprocessing-fork" in sys.orig_argv:  # a worker of a program that is watched itself
        return
    wanted = os.environ["MORTICE_DOCTOR"]
    kind = {".json": "json", ".html": "html", ".txt": "text"}.get(os.path.splitext(wanted)[1])
    start()

    def finish() -> None:
        session = stop()
        if session is None:
            return
        if kind is None:
            print(session.report(), file=sys.stderr)
        else:
            session.report(kind, wanted)

    atexit.register(finish)
