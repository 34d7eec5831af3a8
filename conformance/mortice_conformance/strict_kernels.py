"""The required kernels of the strict backend, each no longer than its meaning."""

from __future__ import annotations

from typing import Any

import numpy as np

from mortice.backends import DTYPES, DType, in_full
from mortice_conformance.strict_buffers import STORAGE, Buffer, StrictBackend, StrictError

_BY_NAME = {d.name: d for d in DTYPES}
_BOOL, _INT64 = _BY_NAME["bool"], _BY_NAME["int64"]


def _quiet(fn: Any) -> Any:
    """Compute as IEEE 754 says, without NumPy's warnings."""

    def call(*args: Any, **kwargs: Any) -> Any:
        with np.errstate(all="ignore"):
            return fn(*args, **kwargs)

    return call


def _unary(kernel: str, fn: Any, kinds: str, result: DType | None = None) -> Any:
    fn = _quiet(fn)

    def method(self: Any, x: Any, /) -> Any:
        array, dtype, device = self._operands(kernel, x, kinds=kinds)
        return self._wrap(fn(array), result or dtype, device)

    method.__name__ = kernel
    return method


def _binary(kernel: str, fn: Any, kinds: str, result: DType | None = None) -> Any:
    fn = _quiet(fn)

    def method(self: Any, x: Any, y: Any, /) -> Any:
        a, b, dtype, device = self._operands(kernel, x, y, kinds=kinds)
        return self._wrap(fn(a, b), result or dtype, device)

    method.__name__ = kernel
    return method


def _shift(kernel: str, fn: Any) -> Any:
    def method(self: Any, x: Any, y: Any, /) -> Any:
        a, b, dtype, device = self._operands(kernel, x, y, kinds="ui")
        return self._wrap(fn(a, b), dtype, device)

    method.__name__ = kernel
    return method


def _reduction(kernel: str, ufunc: Any, kinds: str, result: DType | None = None) -> Any:
    reduce = _quiet(ufunc)

    def method(self: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        array, dtype, device = self._operands(kernel, x, kinds=kinds)
        axis = _axes(kernel, axis, array.ndim)
        _check_flag(kernel, "keepdims", keepdims)
        out = np.asarray(reduce(array, axis=axis, keepdims=keepdims))
        return self._wrap(out.astype(STORAGE[result or dtype], copy=False), result or dtype, device)

    method.__name__ = kernel
    return method


def _check_flag(kernel: str, name: str, value: Any) -> None:
    if type(value) is not bool:
        raise StrictError(f"strict: {kernel}: expected {name} to be a bool; got {value!r}.")


def _axis(kernel: str, axis: Any, ndim: int) -> int:
    if type(axis) is not int or not -ndim <= axis < max(ndim, 1):
        raise StrictError(f"strict: {kernel}: expected an axis of {ndim} dims as an int; got {axis!r}.")
    return axis


def _axes(kernel: str, axis: Any, ndim: int) -> Any:
    if axis is None:
        return None
    if isinstance(axis, tuple):
        axes = tuple(_axis(kernel, a, ndim) % ndim for a in axis)
        if len(set(axes)) != len(axes):
            raise StrictError(f"strict: {kernel}: axes must differ; got {axis!r}.")
        return axes
    return _axis(kernel, axis, ndim) if ndim else None


def _sizes(kernel: str, shape: Any) -> tuple[int, ...]:
    if not isinstance(shape, (tuple, list)) or any(type(n) is not int or n < 0 for n in shape):
        raise StrictError(f"strict: {kernel}: expected a shape as a tuple of ints; got {shape!r}.")
    return tuple(shape)


def _key(kernel: str, key: Any) -> tuple[Any, ...]:
    """Check a basic key: a tuple of ints, slices, None and Ellipsis."""
    if type(key) is not tuple:
        raise StrictError(f"strict: {kernel}: expected the key as a tuple; got {type(key).__name__}.")
    for part in key:
        parts = (part.start, part.stop, part.step) if type(part) is slice else (part,)
        if not all(p is None or p is Ellipsis or type(p) is int for p in parts):
            raise StrictError(f"strict: {kernel}: expected ints, slices, None and Ellipsis; got {part!r}.")
    return key if Ellipsis in key else (*key, ...)


class StrictKernels(StrictBackend):
    """The whole strict backend."""

    # ---- creation ----

    def full(self, shape: Any, value: Any, *, dtype: DType, device: Any) -> Buffer:
        self._check_place("full", dtype, device)
        shape = _sizes("full", shape)
        if type(value) not in (bool, int, float, complex):
            raise StrictError(f"strict: full: expected a Python number; got {type(value).__name__}.")
        if dtype.kind not in "c" and type(value) is complex:
            raise StrictError(f"strict: full: the number {value!r} does not fit {dtype.name}.")
        with np.errstate(all="ignore"):
            return self._wrap(np.full(shape, value, STORAGE[dtype]), dtype, device)

    def arange(self, start: Any, stop: Any, step: Any, *, dtype: DType, device: Any) -> Buffer:
        self._check_place("arange", dtype, device)
        if not all(type(n) in (int, float) for n in (start, stop, step)):
            raise StrictError(f"strict: arange: expected Python numbers; got {start!r}, {stop!r}, {step!r}.")
        return self._wrap(np.arange(start, stop, step).astype(STORAGE[dtype]), dtype, device)

    def astype(self, x: Any, dtype: DType) -> Buffer:
        array, source, device = self._open("astype", x)
        self._check_place("astype", dtype, device)
        if source.is_complex and dtype.kind not in "cb":
            array = array.real
        with np.errstate(all="ignore"):
            return self._wrap(array.astype(STORAGE[dtype]), dtype, device)

    def copy(self, x: Any) -> Buffer:
        array, dtype, device = self._open("copy", x)
        return self._wrap(np.array(array), dtype, device)

    # ---- movement ----

    def reshape(self, x: Any, shape: Any) -> Buffer:
        array, dtype, device = self._open("reshape", x)
        # As the array API has it, one size may be -1.
        known = (
            tuple(n for n in shape if n != -1)
            if isinstance(shape, (tuple, list)) and list(shape).count(-1) == 1
            else shape
        )
        _sizes("reshape", known)
        return self._wrap(array.reshape(tuple(shape)), dtype, device)

    def permute_dims(self, x: Any, axes: Any) -> Buffer:
        array, dtype, device = self._open("permute_dims", x)
        if not isinstance(axes, (tuple, list)) or sorted(axes) != list(range(array.ndim)):
            raise StrictError(f"strict: permute_dims: expected every axis of {array.ndim} once; got {axes!r}.")
        return self._wrap(array.transpose(axes), dtype, device)

    def broadcast_to(self, x: Any, shape: Any) -> Buffer:
        array, dtype, device = self._open("broadcast_to", x)
        return self._wrap(np.broadcast_to(array, _sizes("broadcast_to", shape)), dtype, device)

    def concat(self, arrays: Any, *, axis: int) -> Buffer:
        if not isinstance(arrays, (tuple, list)) or not arrays:
            raise StrictError(f"strict: concat: expected a tuple or list of buffers; got {type(arrays).__name__}.")
        for x in arrays:
            self._open("concat", x)
        *parts, dtype, device = self._operands("concat", *arrays)
        return self._wrap(np.concatenate(parts, axis=_axis("concat", axis, parts[0].ndim)), dtype, device)

    def getitem(self, x: Any, key: Any) -> Buffer:
        array, dtype, device = self._open("getitem", x)
        return self._wrap(array[_key("getitem", key)], dtype, device)

    def setitem(self, x: Any, key: Any, value: Any) -> Buffer:
        array, dtype, device = self._open("setitem", x)
        _, new, dtype, device = self._operands("setitem", x, value)
        out = np.array(array)
        out[_key("setitem", key)] = new
        return self._wrap(out, dtype, device)

    # ---- elementwise ----

    negative = _unary("negative", np.negative, "uifc")
    sign = _unary("sign", lambda x: x if x.dtype.kind == "b" else np.sign(x), "buif")
    exp = _unary("exp", np.exp, "fc")
    log = _unary("log", np.log, "fc")
    sqrt = _unary("sqrt", np.sqrt, "fc")
    sin = _unary("sin", np.sin, "fc")
    cos = _unary("cos", np.cos, "fc")
    tanh = _unary("tanh", np.tanh, "fc")
    floor = _unary("floor", lambda x: np.floor(x) if x.dtype.kind == "f" else x, "uif")
    isnan = _unary("isnan", np.isnan, "buifc", _BOOL)
    logical_not = _unary("logical_not", np.logical_not, "buifc", _BOOL)
    conj = _unary("conj", np.conjugate, "buifc")

    def abs(self, x: Any, /) -> Buffer:
        array, dtype, device = self._operands("abs", x)
        with np.errstate(all="ignore"):
            return self._wrap(np.abs(array), dtype.to_real(), device)

    def _part(self, kernel: str, x: Any, fn: Any) -> Buffer:
        array, dtype, device = self._operands(kernel, x, kinds="c")
        return self._wrap(fn(array), dtype.to_real(), device)

    def real(self, x: Any, /) -> Buffer:
        return self._part("real", x, np.real)

    def imag(self, x: Any, /) -> Buffer:
        return self._part("imag", x, np.imag)

    # ---- arithmetic ----

    add = in_full(_binary("add", np.add, "buifc"))
    subtract = in_full(_binary("subtract", np.subtract, "uifc"))
    multiply = in_full(_binary("multiply", np.multiply, "buifc"))
    divide = in_full(_binary("divide", np.divide, "fc"))
    floor_divide = in_full(_binary("floor_divide", np.floor_divide, "uif"))
    remainder = in_full(_binary("remainder", np.remainder, "uif"))
    pow = in_full(_binary("pow", np.power, "uifc"))
    maximum = _binary("maximum", np.maximum, "buif")
    minimum = _binary("minimum", np.minimum, "buif")
    equal = _binary("equal", np.equal, "buifc", _BOOL)
    less = _binary("less", np.less, "buif", _BOOL)
    bitwise_and = _binary("bitwise_and", np.bitwise_and, "bui")
    bitwise_or = _binary("bitwise_or", np.bitwise_or, "bui")
    bitwise_xor = _binary("bitwise_xor", np.bitwise_xor, "bui")
    bitwise_left_shift = _shift("bitwise_left_shift", np.left_shift)
    bitwise_right_shift = _shift("bitwise_right_shift", np.right_shift)

    def where(self, cond: Any, x: Any, y: Any, /) -> Buffer:
        chosen, kind, place = self._open("where", cond)
        if kind is not _BOOL:
            raise StrictError(f"strict: where: expected a bool condition; got {kind.name}.")
        a, b, dtype, device = self._operands("where", x, y)
        if place is not device:
            raise StrictError(f"strict: where: operands on {place} and {device}.")
        return self._wrap(np.where(chosen, a, b), dtype, device)

    # ---- reduction ----

    sum = _reduction("sum", lambda x, **attrs: np.sum(x, dtype=x.dtype, **attrs), "uifc")
    prod = _reduction("prod", lambda x, **attrs: np.prod(x, dtype=x.dtype, **attrs), "uifc")
    max = _reduction("max", np.max, "buif")
    min = _reduction("min", np.min, "buif")
    argmax = _reduction("argmax", np.argmax, "buif", _INT64)

    def cumulative_sum(self, x: Any, *, axis: int) -> Buffer:
        array, dtype, device = self._operands("cumulative_sum", x, kinds="uifc")
        axis = _axis("cumulative_sum", axis, array.ndim)
        return self._wrap(np.cumsum(array, axis=axis, dtype=array.dtype).reshape(array.shape), dtype, device)

    # ---- linear algebra and indexing ----

    matmul = _binary("matmul", np.matmul, "uifc")

    def take(self, x: Any, indices: Any, *, axis: int) -> Buffer:
        array, dtype, device = self._open("take", x)
        axis = _axis("take", axis, array.ndim)
        places = self._indices("take", indices, device, array.shape[axis])
        if places.ndim != 1:
            raise StrictError(f"strict: take: expected 1-D indices; got {places.ndim}-D.")
        return self._wrap(np.take(array, places, axis=axis), dtype, device)

    def take_along_axis(self, x: Any, indices: Any, *, axis: int) -> Buffer:
        array, dtype, device = self._open("take_along_axis", x)
        axis = _axis("take_along_axis", axis, array.ndim)
        places = self._indices("take_along_axis", indices, device, array.shape[axis])
        return self._wrap(np.take_along_axis(array, places, axis=axis), dtype, device)

    def scatter_add(self, x: Any, indices: Any, values: Any, *, axis: int) -> Buffer:
        array, added, dtype, device = self._operands("scatter_add", x, values)
        self._open("scatter_add", values)
        axis = _axis("scatter_add", axis, array.ndim) % array.ndim
        places = self._indices("scatter_add", indices, device, array.shape[axis])
        if places.shape != added.shape or places.ndim != array.ndim:
            raise StrictError(
                f"strict: scatter_add: expected indices and values of one shape and x's ndim; got {places.shape}, "
                f"{added.shape} and {array.shape}."
            )
        if any(n > m for i, (n, m) in enumerate(zip(places.shape, array.shape)) if i != axis):
            raise StrictError(f"strict: scatter_add: indices {places.shape} reach outside {array.shape}.")
        out = np.array(array)
        at = list(np.ix_(*[np.arange(n) for n in places.shape]))
        at[axis] = places
        with np.errstate(all="ignore"):
            np.add.at(out, tuple(at), added)
        return self._wrap(out, dtype, device)

    def argsort(self, x: Any, *, axis: int, descending: bool = False) -> Buffer:
        array, _, device = self._operands("argsort", x, kinds="buif")
        axis = _axis("argsort", axis, array.ndim)
        _check_flag("argsort", "descending", descending)
        if not descending:
            return self._wrap(np.argsort(array, axis=axis, kind="stable"), _INT64, device)
        # Equal elements keep their order: sort the reversed row upwards, and read that backwards. nan comes first.
        order = np.flip(np.argsort(np.flip(array, axis), axis=axis, kind="stable"), axis)
        return self._wrap(array.shape[axis] - 1 - order, _INT64, device)
