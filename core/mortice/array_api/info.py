"""The inspection API: what the namespace can do, and the devices and dtypes there are."""

from __future__ import annotations

from typing import Any

import mortice as mt
from mortice.array_api.dtypes import kinds
from mortice.backends.plugins import default_backend, load, resolve
from mortice.dtype import DTYPES

# What mortice has beyond the standard's dtypes.
_BEYOND = (mt.float16, mt.bfloat16)


class Info:
    """What the namespace can do; its methods are the standard's inspection functions."""

    def capabilities(self) -> dict[str, Any]:
        """Tell which optional behaviour there is."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}

    def default_device(self) -> mt.device:
        """Return the device of new arrays."""
        return mt.get_default_device()

    def default_dtypes(self, *, device: Any = None) -> dict[str, mt.dtype]:
        """Return the dtypes that new arrays have when none is given."""
        real = mt.get_default_dtype()
        return {
            "real floating": real,
            "complex floating": real.to_complex(),
            "integral": mt.int64,
            "indexing": mt.int64,
        }

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, mt.dtype]:
        """Return the standard's dtypes that a device has, of all kinds or of some."""
        where = resolve(device)
        known = where.backend.dtypes(where)
        asked = (
            "biufc"
            if kind is None
            else "".join([kinds("dtypes", k) for k in ((kind,) if isinstance(kind, str) else kind)])
        )
        return {d.name: d for d in DTYPES if d in known and d.kind in asked and d not in _BEYOND}

    def devices(self) -> tuple[mt.device, ...]:
        """Return the devices of the default backend."""
        backend = load(default_backend())
        return tuple([backend.device(name) for name in backend.device_names()])


def __array_namespace_info__() -> Info:
    """Return the inspection functions."""
    return Info()
