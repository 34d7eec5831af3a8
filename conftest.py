"""What all tests need of the process that they run in."""

import gc
import multiprocessing
import signal
import sys

import pytest

import mortice
from mortice.backends import Backend, plugins
from mortice.notice import told

# Started in the background of a script a process ignores Ctrl-C, and so would those to which tests send one.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Python 3.14 does not fork by itself any more, and what many tests give to workers cannot be pickled.
if sys.version_info >= (3, 14) and sys.platform == "linux":
    multiprocessing.set_start_method("fork", force=True)

mortice.manual_seed(0)  # a process begins at a seed of chance, and some tests draw when they are collected


# What not every backend offers, and a test that asks for it says in its marker `needs`.
OFFERS = {
    "addresses": ("its buffers have no addresses", lambda backend: type(backend).address is not Backend.address),
    "cpu": ("its tensors are not on the device 'cpu'", lambda backend: backend.device_names()[0] == "cpu"),
    "sharing": ("it copies the host's memory", lambda backend: not backend.copies_host),
    "strides": ("its buffers have no strides", lambda backend: type(backend).strides_of is not Backend.strides_of),
}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let what takes long begin first: at the end it would run alone, while the other processes have nothing left to do."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_collection_finish() -> None:
    """Keep what collecting has made out of later collections of garbage: each would go through thousands of tests to free a graph."""
    gc.collect()
    gc.freeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test that needs what the backend which serves here does not offer."""
    for name in [name for mark in item.iter_markers("needs") for name in mark.args]:
        reason, offers = OFFERS[name]
        backend = mortice.get_default_device().backend
        if not offers(backend):
            pytest.skip(f"{backend.name}: {reason}")


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Make a test draw the same numbers and be told the same warnings in every run, whichever ran before it."""
    mortice.manual_seed(0)
    told.clear()


@pytest.fixture(autouse=True)
def unserved(request: pytest.FixtureRequest) -> None:
    """Leave a test that says it is one and the same on any backend without one that serves: it has to choose its own."""
    if request.node.get_closest_marker("any_backend"):
        patch = request.getfixturevalue("monkeypatch")
        patch.setenv("MORTICE_BACKEND", "any_backend")  # in other processes
        patch.setattr(plugins._local, "backends", ("any_backend",))
