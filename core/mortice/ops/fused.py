"""Steps over many tensors at once, written in place: what optimisers call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mortice.errors import DeviceError
from mortice.modes import no_grad
from mortice.mutation import write

__all__: list[str] = []


def _fused_step_(kernel: str, changed: Sequence[Sequence[Any]], read: Sequence[Sequence[Any]] = (), **numbers: Any) -> None:
    """Run an optimiser kernel of the tensors' backend over lists of tensors and write its results into `changed`.

    The kernel gets the first changed list (the parameters), then the lists of `read` (the gradients), then the other
    changed lists (the state), as in `backends.optim`.
    """
    first = changed[0][0]._device
    for tensors in (*changed, *read):
        for t in tensors:
            if t._device is not first:
                raise DeviceError(f"{kernel}: expected all tensors on {first}; got one on {t._device}.")
    lists = [[t._data for t in tensors] for tensors in (changed[0], *read, *changed[1:])]
    with no_grad():
        results = getattr(first.backend, kernel)(*lists, **numbers)
        for tensors, buffers in zip(changed, results):
            for t, data in zip(tensors, buffers):
                if data is t._data:
                    t.own_storage().version += 1
                else:
                    write(t, data, True)
