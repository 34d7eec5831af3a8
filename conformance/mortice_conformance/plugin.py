"""The pytest plugin: `--mortice-backend NAME`, the `device` fixture, the header, and the kit's own tests from the catalog."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

# Cheap on purpose: this module is imported by every pytest that has the kit installed. mortice is imported on use.


def pytest_addoption(parser: Any) -> None:
    """Add the options; prefixed, because they are seen by every project."""
    group = parser.getgroup("mortice", "mortice backends")
    group.addoption(
        "--mortice-backend", action="append", default=[], metavar="NAME",
        help="run tests that take the `device` fixture, and the conformance kit, on this backend; may be repeated",
    )  # fmt: skip
    group.addoption("--mortice-level", type=int, default=6, metavar="N", help="run the kit up to this level, 0 to 6")


def pytest_configure(config: Any) -> None:
    """Register the markers of the levels."""
    for n in range(7):
        config.addinivalue_line("markers", f"L{n}: a check of conformance level {n}")


def backend_names(config: Any) -> list[str]:
    """Return the backends to test: those asked for, else the one that serves new tensors."""
    names = list(dict.fromkeys(config.getoption("--mortice-backend")))
    if names:
        return names
    from mortice.backends.plugins import default_backend

    return [default_backend()]


def pytest_report_header(config: Any) -> list[str]:
    """Show the backends with versions and devices, and MORTICE_* variables."""
    if not config.getoption("--mortice-backend"):
        return []
    from mortice.backends.plugins import entries, load
    from mortice_conformance.scorecard import installed

    lines = [
        f"mortice: {installed('mortice') or 'source'}, conformance kit {installed('mortice-conformance') or 'source'}"
    ]
    for name in backend_names(config):
        try:
            backend = load(name)
            entry = entries()[name]
            lines.append(f"mortice backend: {name} {entry.version}, devices {', '.join(backend.device_names())}")
        except Exception as error:
            lines.append(f"mortice backend: {name}: {error}")
    lines += [f"mortice: {n}={v}" for n, v in sorted(os.environ.items()) if n.startswith("MORTICE_")]
    return lines


# ---- the catalog as tests ----

_catalogs: dict[str, Any] = {}


def _catalog(name: str) -> Any:
    """Return (subject, items, known failures) of a backend, made once."""
    if name not in _catalogs:
        from mortice_conformance.catalog import catalog
        from mortice_conformance.runner import known_failures, unknown_ids
        from mortice_conformance.subject import Subject

        subject = Subject(name)
        items = catalog(subject)
        known = known_failures(subject.backend)
        strangers = unknown_ids(known, items)
        if strangers:
            raise pytest.UsageError(f"known_failures.toml of {name}: no check is called {', '.join(strangers)}.")
        _catalogs[name] = subject, items, known
    return _catalogs[name]


def pytest_generate_tests(metafunc: Any) -> None:
    """Parametrise the kit's tests over the catalogs, and tests with a `device` over the backends."""
    if "mortice_item" in metafunc.fixturenames:
        check = metafunc.function.__name__.removeprefix("test_")
        found = []
        for name in backend_names(metafunc.config):
            subject, items, known = _catalog(name)
            for item in items:
                if item.check != check or item.level > metafunc.config.getoption("--mortice-level"):
                    continue
                marks = [getattr(pytest.mark, f"L{item.level}")]
                if item.id in known:
                    reason = f"{known[item.id].reason} {known[item.id].link}".strip()
                    marks.append(pytest.mark.xfail(reason=reason, strict=True))
                found.append(pytest.param((subject, item), id=item.key, marks=marks))
        metafunc.parametrize("mortice_item", found)
    elif "device" in metafunc.fixturenames and "device" in metafunc._arg2fixturedefs:
        own = metafunc._arg2fixturedefs["device"][-1].func.__module__
        if own == __name__ and not any("device" in m.args[0] for m in metafunc.definition.iter_markers("parametrize")):
            metafunc.parametrize("device", backend_names(metafunc.config), indirect=True)


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Leave out the kit's tests that have nothing to check at this level."""
    empty = [i for i in items if "mortice_item" in getattr(i, "fixturenames", ()) and _nothing(i)]
    if empty:
        config.hook.pytest_deselected(items=empty)
        items[:] = [i for i in items if i not in empty]


def _nothing(item: Any) -> bool:
    callspec = getattr(item, "callspec", None)
    return callspec is None or not isinstance(callspec.params.get("mortice_item"), tuple)


@pytest.fixture
def device(request: Any) -> Iterator[Any]:
    """The first device of the backend under test; new tensors are made there."""
    from mortice.backends.plugins import load, use_backend, use_device

    name = request.param
    found = load(name)
    place = found.device(found.device_names()[0])
    with use_backend(name), use_device(str(place)):
        yield place
