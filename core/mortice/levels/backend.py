"""LevelBackend: what the backends of all levels share: housekeeping is the business of the backend below."""

from __future__ import annotations

from typing import Any

from mortice.device import Device, stand_above


class LevelBackend:
    """A backend whose buffers wrap those of `inner`."""

    mutable = False
    rooted = True
    overridden: tuple[str, ...] = ()
    reshape_view: Any = None
    flat_index: Any = None
    float8_codes: Any = None
    count_terms: Any = None

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.has_values = inner.has_values
        self.name = inner.name
        self.interned: dict[Any, Device] = {}
        self._places: dict[int, Device] = {}

    def _constant(self, data: Any) -> Any:
        """Wrap a buffer of `inner` that takes no part in the transform."""
        raise NotImplementedError

    def _parts(self, x: Any) -> Any:
        """Return the buffer of `inner` that has x's dtype and device."""
        raise NotImplementedError

    def detached(self, x: Any) -> Any:
        """Return a buffer without the tangents of any level: x itself where it has none."""
        raise NotImplementedError

    def detached_below(self, data: Any) -> Any:
        """Return a buffer of `inner` without tangents."""
        return self.inner.detached(data) if isinstance(self.inner, LevelBackend) else data

    def with_tangents(self, x: Any, y: Any) -> Any:
        """Return the values of x with the tangents of y."""
        raise NotImplementedError

    def with_tangents_below(self, x: Any, y: Any) -> Any:
        """Do so with buffers of `inner`."""
        return self.inner.with_tangents(x, y) if isinstance(self.inner, LevelBackend) else x

    def device_names(self) -> list[str]:
        return self.inner.device_names()  # type: ignore[no-any-return]

    def dtypes(self, device: Device) -> Any:
        return self.inner.dtypes(device.inner)

    def dtype_of(self, x: Any) -> Any:
        return self.inner.dtype_of(self._parts(x))

    def device_of(self, x: Any) -> Device:
        """Return a device of this backend; which level it stands for no kernel asks."""
        inner = self.inner.device_of(self._parts(x))
        return self._places.get(id(inner)) or self._places.setdefault(id(inner), stand_above(inner, None, self))

    def from_host(self, host: Any, device: Device) -> Any:
        return self._constant(self.inner.from_host(host, device.inner))

    def share_host(self, host: Any, device: Device) -> Any:
        return self._constant(self.inner.share_host(host, device.inner))

    def full(self, shape: Any, value: Any, *, dtype: Any, device: Device) -> Any:
        return self._constant(self.inner.full(shape, value, dtype=dtype, device=device.inner))

    def arange(self, start: Any, stop: Any, step: Any, *, dtype: Any, device: Device) -> Any:
        return self._constant(self.inner.arange(start, stop, step, dtype=dtype, device=device.inner))

    def strides_of(self, x: Any) -> None:
        return None

    def is_contiguous(self, x: Any) -> bool:
        return True

    def into(self, target: Any, kernel: Any, /, *operands: Any, **attrs: Any) -> Any:
        return kernel(*operands, **attrs)

    def owns(self, x: Any) -> bool:
        return True

    def address(self, x: Any) -> int:
        raise RuntimeError("data_ptr: a tensor inside a function transform (vmap, jvp, ...) has no memory of its own.")
