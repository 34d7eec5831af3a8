"""The backends on which each client is tried, and the process in which it may be."""

from __future__ import annotations

import os

import pytest

if os.environ.get("SCIPY_ARRAY_API") != "1":  # another test may have imported SciPy without: ../test_clients.py sees to it
    collect_ignore_glob = ["test_*.py"]


def backends() -> list[str]:
    """Return the backend that MORTICE_BACKEND names; without it the one that serves the CPU here, and the strict one."""
    import mortice as mt

    chosen = os.environ.get("MORTICE_BACKEND")
    return [chosen] if chosen else [mt.default_backend(), "strict"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Try each record of a file's CLIENTS on every backend that it is for."""
    if "client" in metafunc.fixturenames:
        records = metafunc.module.CLIENTS
        if metafunc.function.__name__.endswith("gradients_flow"):
            records = [c for c in records if c.gradient or c.overwrites]
        if metafunc.function.__name__.endswith("refused"):
            records = [c for c in records if c.overwrites]
        tries = [(c, b) for c in records for b in backends() if not (c.host and b == "strict")]
        metafunc.parametrize(("client", "device"), tries, indirect=["device"], ids=[f"{c.id}-{b}" for c, b in tries])
    elif "device" in metafunc.fixturenames:
        metafunc.parametrize("device", backends(), indirect=True)


@pytest.fixture
def device(request: pytest.FixtureRequest):
    """Return a device of a backend which is the default one meanwhile."""
    import mortice as mt

    if request.param not in mt.backends.list():
        pytest.skip(f"{request.param} is not installed: this client is not tried on it")
    with mt.use_backend(request.param):
        yield mt.ones(()).device  # one that names its backend
