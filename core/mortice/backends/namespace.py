"""NamespaceBackend: any array-API namespace as a backend, no kernel written. Plugins subclass it for differences."""

from __future__ import annotations

from typing import Any

from mortice.backends.backend import Backend
from mortice.backends.host import HostBuffer
from mortice.device import Device
from mortice.dtype import DTYPES, DType, by_name, int64

_DIRECT = (
    "negative abs sign exp log sqrt sin cos tanh floor isnan logical_not add subtract multiply divide floor_divide "
    "remainder pow maximum minimum equal less bitwise_and bitwise_or bitwise_xor bitwise_left_shift "
    "bitwise_right_shift matmul real imag conj reshape permute_dims broadcast_to"
).split()


class NamespaceBackend(Backend):
    """A backend over an array-API namespace `xp`.

    Args:
        xp: the namespace, e.g. from `array_api_compat`.
        devices: mortice's names of its devices -> what the namespace takes as `device=`.
        mutable: whether arrays can be written in place and basic indexing gives views.
    """

    def __init__(self, xp: Any, devices: dict[str, Any] | None = None, mutable: bool = False) -> None:
        super().__init__()
        self.xp = xp
        self.mutable = mutable
        self._devices = devices if devices is not None else {"cpu": None}
        self._dtypes = {d: getattr(xp, d.name) for d in DTYPES if hasattr(xp, d.name)}
        self._names = {native: d for d, native in self._dtypes.items()}
        for kernel in _DIRECT:
            # A subclass that defines the kernel is obeyed; the rest is the namespace's own function.
            if getattr(type(self), kernel, None) is None and hasattr(xp, kernel):
                setattr(self, kernel, getattr(xp, kernel))

    # ---- housekeeping ----

    def device_names(self) -> list[str]:
        return list(self._devices)

    def dtypes(self, device: Device) -> frozenset[DType]:
        return frozenset(self._dtypes)

    def native(self, dtype: DType) -> Any:
        """Return the namespace's own dtype object."""
        try:
            return self._dtypes[dtype]
        except KeyError:
            from mortice.errors import DTypeError

            raise DTypeError(f"backend {self.name}: it has no {dtype.name}.") from None

    def from_host(self, host: HostBuffer, device: Device) -> Any:
        return self.xp.asarray(host.view, dtype=self.native(host.dtype), device=self._devices[str(device)], copy=True)

    def to_host(self, x: Any) -> HostBuffer:
        return HostBuffer(memoryview(x), x.shape, self.dtype_of(x))

    def synchronize(self, device: Device) -> None:
        """Array-API namespaces have no asynchronous work of their own to wait for."""

    def shape_of(self, x: Any) -> tuple[int, ...]:
        return x.shape  # type: ignore[no-any-return]

    def dtype_of(self, x: Any) -> DType:
        return self._names[x.dtype]

    def device_of(self, x: Any) -> Device:
        return self.device(next(iter(self._devices)))

    # ---- kernels whose arguments differ from the namespace's ----

    def full(self, shape: Any, value: Any, *, dtype: DType, device: Device) -> Any:
        return self.xp.full(tuple(shape), value, dtype=self.native(dtype), device=self._devices[str(device)])

    def arange(self, start: Any, stop: Any, step: Any, *, dtype: DType, device: Device) -> Any:
        return self.xp.arange(start, stop, step, dtype=self.native(dtype), device=self._devices[str(device)])

    def astype(self, x: Any, dtype: DType) -> Any:
        return self.xp.astype(x, self.native(dtype))

    def copy(self, x: Any) -> Any:
        return self.xp.asarray(x, copy=True)

    def concat(self, arrays: Any, *, axis: int) -> Any:
        return self.xp.concat(list(arrays), axis=axis)

    def getitem(self, x: Any, key: Any) -> Any:
        return x[key]

    def setitem(self, x: Any, key: Any, value: Any) -> Any:
        if not self.mutable:
            x = self.xp.asarray(x, copy=True)
        x[key] = value
        return x

    def where(self, cond: Any, x: Any, y: Any) -> Any:
        return self.xp.where(cond, x, y)

    def sum(self, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        return self.xp.sum(x, axis=axis, dtype=x.dtype, keepdims=keepdims)

    def prod(self, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        return self.xp.prod(x, axis=axis, dtype=x.dtype, keepdims=keepdims)

    def max(self, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        return self.xp.max(x, axis=axis, keepdims=keepdims)

    def min(self, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        return self.xp.min(x, axis=axis, keepdims=keepdims)

    def argmax(self, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        return self.xp.astype(self.xp.argmax(x, axis=axis, keepdims=keepdims), self.native(int64))

    def cumulative_sum(self, x: Any, *, axis: int) -> Any:
        return self.xp.cumulative_sum(x, axis=axis, dtype=x.dtype)

    def take(self, x: Any, indices: Any, *, axis: int) -> Any:
        return self.xp.take(x, indices, axis=axis)

    def take_along_axis(self, x: Any, indices: Any, *, axis: int) -> Any:
        return self.xp.take_along_axis(x, indices, axis=axis)

    def argsort(self, x: Any, *, axis: int, descending: bool = False) -> Any:
        order = self.xp.argsort(x, axis=axis, descending=descending, stable=True)
        return self.xp.astype(order, self.native(int64), copy=False)

    def scatter_add(self, x: Any, indices: Any, values: Any, *, axis: int) -> Any:
        # The standard has no function that adds at repeated positions: one comparison per position is exact, if slow.
        xp, ndim, size = self.xp, x.ndim, x.shape[axis]
        slots = xp.reshape(xp.arange(size, dtype=indices.dtype), [size if i == axis % ndim else 1 for i in range(ndim)])
        region = tuple(slice(0, n) if i != axis % ndim else slice(None) for i, n in enumerate(indices.shape))
        added = x[region]
        for j in range(indices.shape[axis]):
            at = tuple(slice(j, j + 1) if i == axis % ndim else slice(None) for i in range(ndim))
            added = added + xp.where(indices[at] == slots, values[at], xp.zeros_like(values[at]))
        return self.setitem(self.copy(x), region, added)
