"""The subject of a run: one backend on one device, the way of values in and out, and what a check may ask of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mortice.backends import DType, HostBuffer
from mortice.backends.plugins import load
from mortice.errors import BackendNotFound
from mortice.shape import Size
from mortice.tensor import TensorBase, make
from mortice_conformance.arrays import describe, from_host_buffer, host_buffer, ulps, widened
from mortice_conformance.record import Case, Sample
from mortice_conformance.tolerance import POINTWISE, allowed


class Failure(AssertionError):
    """A check that a backend did not pass; the text says on what and by how much."""


class Skip(Exception):
    """A check that does not apply here; the text says why."""


class Subject:
    """A backend on one of its devices.

    Args:
        name: the backend's name, as ids show it.
        backend: the backend itself; loaded by name when not given.
        device: the name of one of its devices; its first when not given.
    """

    def __init__(self, name: str, backend: Any = None, device: str | None = None) -> None:
        self.name = name
        self.backend = load(name) if backend is None else backend
        self.devices = list(self.backend.device_names())
        if not self.devices:
            raise BackendNotFound(f"backend {name!r}: device_names() lists no device here.")
        self.device = self.backend.device(device or self.devices[0])
        self.available = self.backend.dtypes(self.device)

    def on(self, device: str) -> Subject:
        """Return the same backend on another device."""
        return Subject(self.name, self.backend, device)

    # ---- values in and out ----

    def tensor(self, array: Any, dtype: DType, requires_grad: bool = False) -> Any:
        """Make a tensor of host values by the backend's `from_host` alone."""
        return self.wrap(self.backend.from_host(host_buffer(array, dtype), self.device), dtype, requires_grad)

    def wrap(self, buffer: Any, dtype: DType, requires_grad: bool = False) -> Any:
        """Make a tensor of a buffer."""
        shape = self.backend.shape_of(buffer)
        if not isinstance(shape, tuple) or any([type(n) is not int for n in shape]):  # it is a key of what is remembered
            raise Failure(f"shape_of must return a tuple of ints; got {type(shape).__name__} {shape!r}.")
        t = make(buffer, self.device, dtype, Size(shape))
        t._rg = requires_grad
        return t

    def operands(self, sample: Sample, case: Case, dtype: DType, smooth: bool = False) -> tuple[list[Any], list[Any]]:
        """Draw a case's operands: the arrays and the tensors, None where one is absent."""
        arrays = sample.draw(case, dtype, smooth)
        return arrays, self.tensors(sample, case, dtype, arrays)

    def tensors(self, sample: Sample, case: Case, dtype: DType, arrays: Sequence[Any]) -> list[Any]:
        """Make the tensors of drawn operands."""
        return [None if a is None else self.tensor(a, d) for a, d in zip(arrays, sample.operand_dtypes(case, dtype))]

    def read(self, t: Any) -> Any:
        """Return a tensor's values in the dtype's native NumPy dtype."""
        return from_host_buffer(self._host(t))

    def _host(self, t: Any) -> HostBuffer:
        """Return what `to_host` gives for a tensor's buffer, which must be a HostBuffer of its dtype and shape."""
        host = self.backend.to_host(t._buffer)
        if not isinstance(host, HostBuffer):
            raise Failure(f"to_host must return a HostBuffer; got {type(host).__name__}.")
        if host.dtype is not t.dtype or tuple(host.shape) != tuple(t.shape):
            raise Failure(f"to_host gives {host.dtype!r} {tuple(host.shape)} for a buffer of {t.dtype!r} {tuple(t.shape)}.")
        return host

    def bits(self, t: Any) -> bytes:
        """Return a tensor's elements as bytes."""
        return self._host(t).tobytes()

    # ---- what every result must satisfy ----

    def inspect(self, t: Any, what: str) -> None:
        """Check that a result's buffer is one of the backend's, and what its tensor says: dtype, shape and device."""
        if not isinstance(t, TensorBase):
            raise Failure(f"{what}: expected a Tensor; got {type(t).__name__}.")
        k = self.backend
        if t._device is not self.device:
            raise Failure(f"{what}: the result is on {t._device}, its operands were on {self.device}.")
        # Where nothing is written in place, NumPy's scalars for one serve as arrays do.
        if k.mutable and type(t._buffer) is not (due := type(k.full((), 0, dtype=t.dtype, device=self.device))):
            raise Failure(f"{what}: expected a buffer of the type that full makes, {due.__name__}; got a "
                          f"{type(t._buffer).__name__}.{'' if t.shape else ' A result without axes is a buffer, too.'}")  # fmt: skip
        place = k.device_of(t._buffer)
        if place is not self.device:
            raise Failure(f"{what}: device_of gives {place!r} for the buffer; its tensor says {self.device!r}.")
        if (found := k.dtype_of(t._buffer)) is not t.dtype:
            raise Failure(f"{what}: dtype_of gives {found!r} for the buffer; its tensor says {t.dtype!r}.")
        if tuple(k.shape_of(t._buffer)) != tuple(t.shape):
            raise Failure(
                f"{what}: the buffer has shape {tuple(k.shape_of(t._buffer))}, its tensor says {tuple(t.shape)}."
            )

    def compare(self, sample: Sample, case: Case, dtype: DType, out: Sequence[Any], want: Sequence[Any],
                arrays: Sequence[Any]) -> None:  # fmt: skip
        """Compare the outputs of a case with the reference's."""
        what = f"{sample.id} {dtype.name} {case}"
        results = sample.results(dtype)
        if len(out) != len(want) or len(results) not in (1, len(out)):
            raise Failure(f"{what}: expected {len(want)} outputs; got {len(out)}.")
        for i, (t, w) in enumerate(zip(out, want)):
            due = results[i] if len(results) > 1 else results[0]
            label = what if len(out) == 1 else f"{what} output {i}"
            self.inspect(t, label)
            if t.dtype is not due:
                raise Failure(f"{label}: expected dtype {due.name}; got {t.dtype.name}.")
            if tuple(t.shape) != w.shape:
                raise Failure(f"{label}: expected shape {w.shape}; got {tuple(t.shape)}.")
            shrunk = (a.size // max(w.size, 1) for a in arrays if a is not None)
            terms = sample.terms or (max(1, *shrunk) if arrays else 1)
            operands = [a for a, follows in zip(arrays, sample.follows(case)) if follows]
            self.close(label, self.read(t), w, due, sample, terms, operands)

    def close(self, what: str, got: Any, want: Any, dtype: DType, sample: Sample, terms: int,
              arrays: Sequence[Any] = ()) -> None:  # fmt: skip
        """Compare values within the tolerance of the sample's class."""
        if dtype.kind in "bui":
            wrong = np.asarray(got != want.astype(got.dtype) if want.dtype.kind in "biu" else got != want)
            if wrong.any():
                raise Failure(f"{what}: {_first(wrong, got, want)}.")
            return
        limit = sample.tolerance.get(dtype.name, allowed(sample.kind, dtype, terms))
        scale = None if sample.kind in POINTWISE else magnitude([want, *arrays])
        apart = ulps(got, want, dtype, scale)
        # Not `apart > limit`: a nan must not pass.
        wrong = ~(apart <= limit)
        if wrong.any():
            worst = float(np.max(np.where(np.isnan(apart), np.inf, apart)))
            raise Failure(f"{what}: {_first(wrong, got, want)} ({worst:.3g} ulp at most, {limit:.3g} allowed).")
        if sample.zeros and dtype.kind == "f":
            wrong = (got == 0) & (want == 0) & (np.signbit(got) != np.signbit(want))
            if wrong.any():
                raise Failure(f"{what}: a zero has the wrong sign: {_first(wrong, got, want)}.")

    # ---- counting ----

    @contextlib.contextmanager
    def counting(self) -> Iterator[list[str]]:
        """List the calls that bring data to the host while the block runs."""
        seen: list[str] = []
        k = self.backend
        originals = {name: k.__dict__.get(name) for name in ("to_host", "item")}

        def watch(name: str) -> Any:
            call = getattr(k, name)

            def counted(*args: Any, **kwargs: Any) -> Any:
                seen.append(name)
                depth = len(seen)
                result = call(*args, **kwargs)
                # `item` reads through `to_host`: that is one transfer.
                del seen[depth:]
                return result

            return counted

        for name in originals:
            setattr(k, name, watch(name))
        try:
            yield seen
        finally:
            for name, original in originals.items():
                if original is None:
                    delattr(k, name)
                else:
                    setattr(k, name, original)


def magnitude(arrays: Sequence[Any]) -> float:
    """Return the largest finite magnitude among arrays."""
    top = 0.0
    for a in arrays:
        if a is None:
            continue
        sizes = np.abs(widened(a).astype(np.complex128))
        sizes = sizes[np.isfinite(sizes)]
        if sizes.size:
            top = max(top, float(sizes.max()))
    return top


def _first(wrong: Any, got: Any, want: Any) -> str:
    at = tuple(int(i) for i in np.argwhere(wrong)[0]) if np.ndim(wrong) else ()
    where = f"element {list(at)}: " if at else ""
    return f"{where}expected {describe(want, at)}; got {describe(got, at)}"
