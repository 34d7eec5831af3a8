"""frozen_lists as a backend of mortice. Importing this module is cheap; the array library is imported by `load`."""

from mortice.backends import Backend, BackendInfo, hookimpl


def load() -> Backend:
    """Import the array library and return the backend."""
    from mortice_frozen_lists.backend import FrozenListsBackend

    return FrozenListsBackend()


@hookimpl
def mortice_backends() -> list[BackendInfo]:
    """Offer `frozen_lists`."""
    return [BackendInfo("frozen_lists", ("frozen_lists",), load, needs="mortice-frozen-lists", api=1)]
