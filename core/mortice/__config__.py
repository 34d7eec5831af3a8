"""How this copy was set up, as text."""

from __future__ import annotations

from mortice import backends, get_num_interop_threads, get_num_threads, version


def show() -> str:
    """Return the version and the backends that are installed."""
    return "".join([f"mortice {version.__version__} with:\n", *(f"  - {name}\n" for name in backends.list())])


def parallel_info() -> str:
    """Return how many threads are used."""
    return f"get_num_threads() : {get_num_threads()}\nget_num_interop_threads() : {get_num_interop_threads()}\n"
