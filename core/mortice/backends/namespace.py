"""NamespaceBackend: any array-API namespace (2023.12 or newer) as a backend, no kernel written.

The kernels are the namespace's own functions. What is added is only what the standard leaves out or leaves undefined:
Python numbers as operands, arithmetic and order of bools, slices beyond the end, writing at repeated positions, and the
way to and from host memory. Plugins subclass it for what their library does otherwise or faster; `from_namespace` makes
one in a line.
"""

from __future__ import annotations

import struct

from mortice.backends.backend import Backend
from mortice.backends.host import HostBuffer, pack
from mortice.device import Device
from mortice.dtype import DType, bfloat16, bool_, float16, float32, int64, uint8
from mortice.errors import DTypeError, PluginError
from mortice.shape import prod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_NUMBERS = (bool, int, float, complex)
_SHORT = {float16: "<e", bfloat16: "<f"}


def _one(name: str, kinds: str) -> Any:
    """Make a kernel of one array; `kinds` are those for which the standard defines the function."""

    def kernel(self: Any, x: Any) -> Any:
        d = self._names[x.dtype]
        if d.kind not in kinds:
            return self._beyond(name, d, x)
        return getattr(self.xp, name)(x)

    kernel.__name__ = name
    return kernel


def _two(name: str, kinds: str) -> Any:
    """Make a kernel of two arrays, or of an array and a Python number."""

    def kernel(self: Any, x: Any, y: Any) -> Any:
        x, y = self._pair(x, y)
        d = self._names[x.dtype]
        if d.kind not in kinds:
            return self._beyond(name, d, x, y)
        return getattr(self.xp, name)(x, y)

    kernel.__name__ = name
    return kernel


def in_full(kernel: Any) -> Any:
    """Make a kernel of two operands count a number beside 16-bit floats in full.

    As in PyTorch, 16-bit floats are computed with in float32, and a number loses nothing before that: 1e5 * 0.5 is 50000,
    although float16 has no 1e5.
    """

    def full(self: Any, x: Any, y: Any) -> Any:
        swapped = type(x) in _NUMBERS
        given, value = (y, x) if swapped else (x, y)
        if type(value) in _NUMBERS and not _fits(value, d := self.dtype_of(given)):
            wide = self.astype(given, float32)
            return self.astype(kernel(self, value, wide) if swapped else kernel(self, wide, value), d)
        return kernel(self, x, y)

    full.__name__ = kernel.__name__
    return full


def _fits(value: Any, d: DType) -> bool:
    """Tell whether a number is one of a dtype's, where that is a 16-bit float; of others it is taken for one."""
    code = _SHORT.get(d)
    if code is None or value != value:
        return True
    try:
        packed = struct.pack(code, float(value))
    except OverflowError:
        return False
    return not any(packed[:2]) if code == "<f" else struct.unpack(code, packed)[0] == value


def _fold(name: str, kinds: str) -> Any:
    """Make a reduction."""

    def kernel(self: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        if not x.ndim:
            axis = None
        d = self._names[x.dtype]
        if d.kind not in kinds:
            return self._beyond(name, d, x, axis=axis, keepdims=keepdims)
        # Sums keep the dtype: the core has chosen the one to add up in.
        more = {"dtype": x.dtype} if name in ("sum", "prod") else {}
        return getattr(self.xp, name)(x, axis=axis, keepdims=keepdims, **more)

    kernel.__name__ = name
    return kernel


class NamespaceBackend(Backend):
    """A backend over an array-API namespace `xp`.

    Args:
        xp: the namespace, e.g. from `array_api_compat`.
        devices: mortice's names of its devices -> what the namespace takes as `device=`; the first is the default, and
            its memory can be read by the host. All are of types that the plugin claims. The namespace is asked by default.
        mutable: whether arrays can be written in place and basic indexing gives views; tried by default.
        kernels: functions of the namespace's arrays that replace kernels, by name.
    """

    def __init__(
        self, xp: Any, devices: dict[str, Any] | None = None, mutable: bool | None = None, kernels: Any = None
    ) -> None:
        from mortice.backends import inspection  # not before a backend is needed

        super().__init__()
        if not isinstance(devices, (dict, type(None))):
            raise PluginError(f"NamespaceBackend: expected devices as {{'cpu': the library's own}}; got {type(devices).__name__}.")
        self.xp = xp
        kernels = dict(kernels or {})
        own = [n for n in dir(self) if getattr(type(self), n, None) is not getattr(NamespaceBackend, n, None)]
        inspection.check_functions(xp, [*kernels, *own])
        self._devices = inspection.find_devices(xp) if devices is None else devices
        first = next(iter(self._devices.values()), None)
        self._places = [(native, self.device(name)) for name, native in self._devices.items()]
        self._dtypes, kept = inspection.dtypes_on(xp, first), inspection.kept_only(xp, first)
        self._dtypes, self._kept = self._dtypes | kept, frozenset(kept)
        self._names = {native: d for d, native in self._dtypes.items()}
        self._offered: dict[str, frozenset[DType]] = {}
        inspection.check_vital(xp, self._dtypes, next(iter(self._devices), "cpu"), first)
        self.mutable = inspection.writes_in_place(xp, first) if mutable is None else mutable
        self._reverses = inspection.reverses(xp)
        self._updates = not self.mutable and inspection.updates(xp, first)
        for name in _TAKEN_OVER:
            # A free kernel that the standard has too: the namespace's own is used unless a subclass has its own.
            if hasattr(xp, name) and getattr(type(self), name) is getattr(Backend, name):
                setattr(self, name, self._taken_over(name, _TAKEN_OVER[name]))
        for name, kernel in _transforms(xp.fft).items() if hasattr(xp, "fft") else ():
            if getattr(type(self), name) is getattr(Backend, name):
                setattr(self, name, _of_some(kernel, getattr(self, name)))
        if self._kept:
            from mortice.backends.unsigned import emulate

            emulate(self, self._kept)
        for name, kernel in kernels.items():
            setattr(self, name, kernel)

    # ---- housekeeping ----

    def device_names(self) -> list[str]:
        return list(self._devices)

    def dtypes(self, device: Device) -> frozenset[DType]:
        found = self._offered.get(str(device))
        if found is None:
            from mortice.backends import inspection

            place = self._devices.get(str(device))
            here = inspection.dtypes_on(self.xp, place) | inspection.kept_only(self.xp, place)
            found = self._offered[str(device)] = frozenset(d for d in here if self._dtypes.get(d) == here[d])
        return found

    def native(self, dtype: DType) -> Any:
        """Return the namespace's own dtype object; KeyError where there is none, which the engine explains."""
        return self._dtypes[dtype]

    def from_host(self, host: HostBuffer, device: Device) -> Any:
        native, dtype = self._devices[str(device)], self.native(host.dtype)
        view = host.shaped()
        if view is not None and (view.readonly or not view.c_contiguous):
            # Some libraries read no strides, and warn of memory that they may not write, though it is to be copied.
            view = HostBuffer(bytearray(view.tobytes()), host.shape, host.dtype).shaped()
        if view is not None:
            try:
                x = self.xp.asarray(view, dtype=dtype, device=native, copy=True)
                if tuple(x.shape) == host.shape and x.dtype == dtype:
                    return x
            except Exception:  # whatever a library raises for buffers, or for some format
                pass
        if not prod(host.shape):
            return self.full(host.shape, 0, dtype=host.dtype, device=device)
        return self.xp.asarray(host.tolist(), dtype=dtype, device=native)

    def to_host(self, x: Any) -> HostBuffer:
        d, shape = self._names[x.dtype], tuple(x.shape)
        if len(self._places) > 1 and self.device_of(x) is not self._places[0][1]:
            x = self._moved(x, self._places[0][0])
        for way in (memoryview, lambda x: memoryview(x.__array__()), lambda x: _lent(self.copy(x))):
            try:
                view = way(x)
                if view.nbytes == d.itemsize * prod(shape):
                    return HostBuffer(view, shape, d)
            except Exception:  # whatever a library raises for "not this way", there is another
                continue
        convert = {"b": bool, "u": int, "i": int, "f": float, "c": complex}[d.kind]
        flat = self.xp.reshape(x, (-1,))
        return HostBuffer(pack([convert(flat[i]) for i in range(prod(shape))], d), shape, d)

    def copy_to(self, x: Any, device: Device) -> Any:
        return self._moved(x, self._devices[str(device)]) if len(self._places) > 1 else self.copy(x)

    def _moved(self, x: Any, native: Any) -> Any:
        # Not every library's arrays have the standard's method; asarray takes a device in all of them.
        return x.to_device(native) if hasattr(x, "to_device") else self.xp.asarray(x, device=native)

    def dlpack_device(self, x: Any) -> tuple[int, int]:
        x = self.xp.asarray(x)
        return x.__dlpack_device__() if hasattr(x, "__dlpack_device__") else super().dlpack_device(x)

    def to_dlpack(self, x: Any, *, stream: Any = None, max_version: Any = None) -> Any:
        x = self.xp.asarray(x)  # a namespace may have numbers of its own where 0-d arrays are due
        if not hasattr(x, "__dlpack__"):
            x = x.__array__()  # what is computed when it is asked for can lend no more than the result
        try:
            return x.__dlpack__(stream=stream, max_version=max_version)
        except TypeError:  # max_version came with 2023.12
            return x.__dlpack__(stream=stream)

    def from_dlpack(self, source: Any, device: Device) -> Any:
        from mortice.backends.dlpack import on_host

        # A library without negative strides may not survive those of others; the base class reads all memory of the host.
        if on_host(source) and not (device.type == "cpu" and self._reverses and hasattr(self.xp, "from_dlpack")):
            return super().from_dlpack(source, device)
        try:
            x = self.xp.from_dlpack(source)
        except Exception:  # such as strides that the library does not take
            if on_host(source):
                return super().from_dlpack(source, device)
            raise
        if x.dtype not in self._names:
            raise DTypeError(f"from_dlpack: backend {self.name} has no {x.dtype}.")
        return x if self.device_of(x) is device else self.copy_to(x, device)

    def synchronize(self, device: Device) -> None:
        """Array-API namespaces have no asynchronous work of their own to wait for."""

    def shape_of(self, x: Any) -> tuple[int, ...]:
        return x.shape  # type: ignore[no-any-return]

    def dtype_of(self, x: Any) -> DType:
        return self._names[x.dtype]

    def device_of(self, x: Any) -> Device:
        if len(self._places) > 1:
            for native, device in self._places:
                if x.device == native:
                    return device
        return self._places[0][1]

    def _place(self, x: Any) -> Any:
        """Return the namespace's device of an array, for new arrays beside it; one that is alone need not be told."""
        return x.device if len(self._places) > 1 else self._places[0][0]

    # ---- operands ----

    def _pair(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Turn a Python number into an array of the other's dtype: older versions of the standard take arrays only."""
        # By exact type: a library's 0-d results may be subclasses of Python's numbers, with a dtype.
        if type(x) in _NUMBERS:
            x = self._like(y, x)
        elif type(y) in _NUMBERS:
            y = self._like(x, y)
        return x, y

    def _like(self, x: Any, value: Any) -> Any:
        return self.xp.asarray(value, dtype=x.dtype, device=self._place(x))

    def _beyond(self, name: str, d: DType, *xs: Any, **attrs: Any) -> Any:
        """Compute where the standard defines nothing: bools as 0 and 1."""
        if d is not bool_:
            raise DTypeError(f"{name}: the array API does not define it for {d.name}.")
        narrow = self.native(uint8)
        out = getattr(self, name)(*[self.xp.astype(x, narrow) for x in xs], **attrs)
        return self.xp.astype(out, self.native(bool_)) if out.dtype == narrow else out

    def _taken_over(self, name: str, kinds: str) -> Any:
        """Return the namespace's function, with the default body for kinds that the standard leaves out."""
        own, free = getattr(self.xp, name), getattr(super(), name)

        def kernel(*xs: Any) -> Any:
            if len(xs) == 2:
                xs = self._pair(*xs)
            d = self._names[xs[0].dtype]
            return (own if d.kind in kinds and d not in self._kept else free)(*xs)

        return kernel

    # ---- elementwise ----

    negative, abs, sign = _one("negative", "uifc"), _one("abs", "uifc"), _one("sign", "uifc")
    exp, log, sqrt = _one("exp", "fc"), _one("log", "fc"), _one("sqrt", "fc")
    sin, cos, tanh = _one("sin", "fc"), _one("cos", "fc"), _one("tanh", "fc")
    floor, isnan = _one("floor", "uif"), _one("isnan", "uifc")
    add, subtract, multiply = (in_full(_two(n, "uifc")) for n in ("add", "subtract", "multiply"))
    divide, pow = in_full(_two("divide", "fc")), in_full(_two("pow", "uifc"))
    floor_divide, remainder = (in_full(_two(n, "uif")) for n in ("floor_divide", "remainder"))
    maximum, minimum = _two("maximum", "uif"), _two("minimum", "uif")
    equal, less = _two("equal", "buifc"), _two("less", "uif")
    bitwise_and, bitwise_or, bitwise_xor = (_two(f"bitwise_{n}", "bui") for n in ("and", "or", "xor"))
    bitwise_left_shift, bitwise_right_shift = (_two(f"bitwise_{n}_shift", "ui") for n in ("left", "right"))
    matmul = _two("matmul", "uifc")
    real, imag = _one("real", "c"), _one("imag", "c")

    def conj(self, x: Any) -> Any:
        return self.xp.conj(x) if self._names[x.dtype].is_complex else x

    def logical_not(self, x: Any) -> Any:
        return self.xp.logical_not(x) if self._names[x.dtype] is bool_ else self.equal(x, 0)

    def where(self, cond: Any, x: Any, y: Any) -> Any:
        return self.xp.where(cond, *self._pair(x, y))

    # ---- creation and conversion ----

    def full(self, shape: Any, value: Any, *, dtype: DType, device: Device) -> Any:
        return self.xp.full(tuple(shape), value, dtype=self.native(dtype), device=self._devices[str(device)])

    def arange(self, start: Any, stop: Any, step: Any, *, dtype: DType, device: Device) -> Any:
        native = self._devices[str(device)]
        if dtype.kind in "bc" or (dtype.kind in "ui" and any(isinstance(n, float) for n in (start, stop, step))):
            # The standard counts in real dtypes only, and in integers only by integers.
            between = int64 if dtype.kind == "b" else next(d for d in reversed(self._ranked()) if d.kind == "f")
            return self.astype(self.xp.arange(start, stop, step, dtype=self.native(between), device=native), dtype)
        return self.xp.arange(start, stop, step, dtype=self.native(dtype), device=native)

    def _ranked(self) -> list[DType]:
        return sorted(self._dtypes, key=lambda d: d.index)

    def astype(self, x: Any, dtype: DType) -> Any:
        source = self._names[x.dtype]
        if source.is_complex and dtype is bool_:
            return self.xp.not_equal(x, self._like(x, 0))
        if source.is_complex and not dtype.is_complex:
            x = self.xp.real(x)
        return self.xp.astype(x, self.native(dtype))

    def copy(self, x: Any) -> Any:
        return self.xp.asarray(x, copy=True)

    # ---- movement ----

    def reshape(self, x: Any, shape: Any) -> Any:
        return self.xp.reshape(x, tuple(shape))

    def permute_dims(self, x: Any, axes: Any) -> Any:
        return self.xp.permute_dims(x, tuple(axes))

    def broadcast_to(self, x: Any, shape: Any) -> Any:
        return self.xp.broadcast_to(x, tuple(shape))

    def concat(self, arrays: Any, *, axis: int) -> Any:
        return self.xp.concat(list(arrays), axis=axis)

    def getitem(self, x: Any, key: Any) -> Any:
        key = _within(key, x.shape)
        if not self._reverses:
            x, key = self._forward(x, key)
        return x[key]

    def _forward(self, x: Any, key: Any) -> Any:
        """Return an array and a key without negative steps that lead to the same elements."""
        axis, out = 0, []
        for i, part in enumerate(key):
            if isinstance(part, slice) and part.step is not None and part.step < 0:
                start, stop, step = part.indices(x.shape[axis])
                x, last = self.xp.flip(x, axis=axis), x.shape[axis] - 1
                part = slice(last - start, last - stop, -step)
            out.append(part)
            axis = axis + 1 if part is not Ellipsis else x.ndim - sum(p is not None for p in key[i + 1 :])
            axis -= part is None
        return x, tuple(out)

    def setitem(self, x: Any, key: Any, value: Any) -> Any:
        if 0 in x.shape:  # nothing is written, over which some libraries stumble
            return x
        if self._updates:
            return x.at[_within(key, x.shape)].set(value)
        if not self._reverses and any(isinstance(part, slice) and (part.step or 1) < 0 for part in key):
            return self._replaced(x, key, value)
        key = _within(key, x.shape)
        if not self.mutable:
            x = self.copy(x)
        try:
            x[key] = value
        except TypeError:
            if self.mutable:
                raise
            return self._replaced(x, key, value)
        return x

    def _replaced(self, x: Any, key: Any, value: Any) -> Any:
        """Write where arrays cannot be written: each element is taken from the old ones or from the new."""
        xp, size = self.xp, prod(x.shape)
        numbers = xp.arange(size, dtype=self.native(int64), device=self._place(x))
        there = self.getitem(xp.reshape(numbers, x.shape), key)
        at = xp.reshape(there, (-1,))
        if not at.shape[0]:
            return x
        value = self._like(x, value) if type(value) in _NUMBERS else value
        new = xp.reshape(xp.broadcast_to(value, there.shape), (-1,))
        order = xp.argsort(at)
        at, new = xp.take(at, order, axis=0), xp.take(new, order, axis=0)
        place = self.minimum(xp.searchsorted(at, numbers), at.shape[0] - 1)
        hit = xp.equal(xp.take(at, place, axis=0), numbers)
        return xp.reshape(xp.where(hit, xp.take(new, place, axis=0), xp.reshape(x, (-1,))), x.shape)

    # ---- reduction ----

    sum, prod = _fold("sum", "uifc"), _fold("prod", "uifc")
    max, min = _fold("max", "uif"), _fold("min", "uif")

    def argmax(self, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        found = self.xp.argmax(self._ordered(x), axis=axis if x.ndim else None, keepdims=keepdims)
        return self.xp.astype(found, self.native(int64), copy=False)

    def cumulative_sum(self, x: Any, *, axis: int) -> Any:
        return self.xp.cumulative_sum(x, axis=axis, dtype=x.dtype) if x.ndim else self.copy(x)

    def argsort(self, x: Any, *, axis: int, descending: bool = False) -> Any:
        if not x.ndim:
            return self.xp.zeros((), dtype=self.native(int64), device=self._place(x))
        order = self.xp.argsort(self._ordered(x), axis=axis, descending=descending, stable=True)
        return self.xp.astype(order, self.native(int64), copy=False)

    def _ordered(self, x: Any) -> Any:
        """Return x as the standard can order it: a bool as 0 or 1."""
        return self.xp.astype(x, self.native(uint8)) if self._names[x.dtype] is bool_ else x

    # ---- indexing ----

    def take(self, x: Any, indices: Any, *, axis: int) -> Any:
        return self.xp.take(x, indices, axis=axis)

    def take_along_axis(self, x: Any, indices: Any, *, axis: int) -> Any:
        if x.ndim and hasattr(self.xp, "take_along_axis"):  # it came with 2024.12
            return self.xp.take_along_axis(x, indices, axis=axis)
        flat = self._flat(indices, x.shape, axis)
        return self.xp.reshape(self.xp.take(self.xp.reshape(x, (-1,)), flat, axis=0), indices.shape)

    def scatter_add(self, x: Any, indices: Any, values: Any, *, axis: int) -> Any:
        xp, count = self.xp, prod(indices.shape)
        if not count:
            return self.copy(x)
        if self._names[x.dtype] is bool_:
            wide = [self.astype(part, int64) for part in (x, values)]
            return self.astype(self.scatter_add(wide[0], indices, wide[1], axis=axis), bool_)
        if self._updates:
            flat = self._flat(indices, x.shape, axis)
            return xp.reshape(xp.reshape(x, (-1,)).at[(flat,)].add(xp.reshape(values, (-1,))), x.shape)
        # The standard has no function that adds at repeated positions. Sorted, the values of one position are
        # neighbours; each round adds the next of every position, in the order of writing as a loop would.
        flat = self._flat(indices, x.shape, axis)
        order = xp.argsort(flat, stable=True)
        flat = xp.take(flat, order, axis=0)
        values = xp.take(xp.reshape(values, (-1,)), order, axis=0)
        slots = xp.arange(prod(x.shape), dtype=flat.dtype, device=self._place(x))
        first, end = xp.searchsorted(flat, slots), xp.searchsorted(flat, slots, side="right")
        out = xp.reshape(x, (-1,))
        for turn in range(int(xp.max(end - first))):
            place = self.add(first, turn)
            added = xp.take(values, self.minimum(place, count - 1), axis=0)
            out = xp.where(xp.less(place, end), self.add(out, added), out)
        return xp.reshape(out, x.shape)

    def _flat(self, indices: Any, shape: Any, axis: int) -> Any:
        """Return the positions along an axis as positions in the flattened array."""
        xp, ndim, step = self.xp, len(shape), 1
        flat = xp.zeros(indices.shape, dtype=indices.dtype, device=self._place(indices))
        for i in range(ndim - 1, -1, -1):
            along = indices
            if i != axis % ndim:
                here = xp.arange(indices.shape[i], dtype=indices.dtype, device=self._place(indices))
                along = xp.reshape(here, tuple(-1 if j == i else 1 for j in range(ndim)))
            flat = self.add(flat, self.multiply(along, step))
            step *= shape[i]
        return xp.reshape(flat, (-1,))


# Free kernels that the standard has with the same meaning, and the kinds for which it defines them.
_TAKEN_OVER = {
    **dict.fromkeys("expm1 log1p log2 log10 tan sinh cosh asin acos atan asinh acosh atanh".split(), "fc"),
    **dict.fromkeys("isinf isfinite".split(), "uifc"),
    **dict.fromkeys("ceil trunc greater less_equal greater_equal".split(), "uif"),
    **dict.fromkeys("atan2 hypot copysign".split(), "f"),
    **dict.fromkeys("logical_and logical_or logical_xor".split(), "b"),
    "not_equal": "buifc",
}


def _transforms(fft: Any) -> dict[str, Any]:
    """Return the kernels that the standard's fft extension has."""

    def irfftn(x: Any, *, axes: tuple[int, ...], n: int, norm: str) -> Any:
        # In two steps: how irfftn reads a spectrum that is not Hermitian, as gradients are, the standard leaves open.
        *rest, last = axes
        half = fft.ifftn(x, axes=tuple(rest), norm=norm) if rest else x
        return fft.irfft(half, n=n, axis=last, norm=norm)

    return {"fftn": fft.fftn, "ifftn": fft.ifftn, "rfftn": fft.rfftn, "irfftn": irfftn}


def _of_some(transform: Any, default: Any) -> Any:
    """Take the default body where there are no elements: libraries differ there, down to crashes."""
    return lambda x, **attrs: (transform if 0 not in x.shape else default)(x, **attrs)


def _lent(x: Any) -> memoryview:
    """Return the memory of an array that is in row-major order, by DLPack."""
    from mortice.backends.dlpack import borrow

    loan = borrow(x)
    if not loan.row_major:
        raise BufferError(f"to_host: expected row-major elements; got strides {loan.strides} of {loan.shape}.")
    return loan.memory.view


def _within(key: Any, shape: Any) -> tuple[Any, ...]:
    """Return a basic key as the standard defines it: an Ellipsis where axes are left out, slices inside the array."""
    key = key if isinstance(key, tuple) else (key,)
    named = sum(part is not None and part is not Ellipsis for part in key)
    out: list[Any] = []
    axis = 0
    for part in key:
        if part is Ellipsis:
            axis += len(shape) - named
        elif isinstance(part, slice):
            start, stop, step = part.indices(shape[axis])
            if not range(start, stop, step):
                part = slice(0, 0)
            else:
                part = slice(start, None if stop < 0 else stop, step)
            axis += 1
        elif part is not None:
            axis += 1
        out.append(part)
    return (*out,) if Ellipsis in key or named == len(shape) else (*out, Ellipsis)
