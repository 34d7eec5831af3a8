"""L0: memory that is lent and borrowed by DLPack, and what lies around a view. Levels, names and ids are those of storage."""

from __future__ import annotations

from typing import Any

import numpy as np

import mortice
from mortice.backends import Backend
from mortice.backends.dlpack import Held, borrow, on_host
from mortice_conformance.arrays import from_host_buffer, native
from mortice_conformance.subject import Failure, Skip, Subject
from mortice_conformance.suites import suite
from mortice_conformance.suites.storage import NAMES, content, dtype_here, same


def _array(loan: Any) -> Any:
    """Return borrowed memory as an array of its own."""
    flat = from_host_buffer(loan.memory)
    strides = tuple(s * flat.itemsize for s in loan.strides)
    return np.array(np.lib.stride_tricks.as_strided(flat[loan.offset :], loan.shape, strides))


def _layouts(base: Any) -> dict[str, Any]:
    """Return an array or a tensor of shape (4, 6) in several memory orders."""
    found = {"plain": base, "transposed": base.T, "stepped": base[:, ::2], "row": base[1], "number": base[1, 2, ...]}
    return found | {"empty": base[:0], "reversed": base[::-1, ::-1]}


@suite("storage", 0, each=NAMES)
def check_borrowed(subject: Subject, name: str) -> None:
    """Take over another library's array by DLPack, whatever its strides; see what is written to it, where memory is shared."""
    d = dtype_here(subject, name)
    if name == "bfloat16":
        raise Skip("NumPy lends no bfloat16")
    k, base = subject.backend, content((4, 6), d)
    for label, array in _layouts(base).items():
        t = subject.wrap(k.from_dlpack(array, subject.device), d)
        same(subject, f"borrowed {name} {label}", t, np.array(array))
    fixed = base.copy()
    fixed.flags.writeable = False
    same(subject, f"borrowed {name} read-only", subject.wrap(k.from_dlpack(fixed, subject.device), d), base)
    if k.mutable and not k.copies_host:
        array = base.copy()
        t = subject.wrap(k.from_dlpack(array.T, subject.device), d)
        array[1, 2] = base[0, 0]
        same(subject, f"borrowed {name} after a write", t, array.T)


@suite("storage", 0, each=NAMES)
def check_lent(subject: Subject, name: str) -> None:
    """Lend memory by DLPack with its dtype, shape and strides; show in the tensor what the borrower writes."""
    d, k = dtype_here(subject, name), subject.backend
    if getattr(type(k), "to_dlpack", None) is Backend.to_dlpack:
        raise Skip("the backend lends no memory")
    want = content((4, 6), d)
    base = subject.tensor(want, d)
    for (label, t), array in zip(_layouts(base).items(), _layouts(want).values()):
        back = subject.wrap(k.from_dlpack(t, subject.device), d)
        same(subject, f"lent {name} {label}", back, np.array(array))
        if on_host(t):
            loan = borrow(Held(t.__dlpack__(max_version=(1, 0))))
            if loan.memory.dtype is not d or loan.shape != array.shape:
                raise Failure(f"lent {name} {label}: the capsule says {loan.memory.dtype.name} {loan.shape}.")
            if _array(loan).tobytes() != from_host_buffer(k.to_host(t._buffer)).tobytes():
                raise Failure(f"lent {name} {label}: the capsule leads to {_array(loan).tolist()}.")
    if k.mutable:
        borrowed = subject.wrap(k.from_dlpack(base, subject.device), d)
        base[1, 2] = base[0, 0].clone()
        want[1, 2] = want[0, 0]
        same(subject, f"lent {name} after a write", borrowed, want)


@suite("storage", 0)
def check_whole(subject: Subject) -> None:
    """Tell all the memory that a view is a part of, and where in it the view begins."""
    d = dtype_here(subject, "float32")
    base = subject.tensor(np.arange(12.0, dtype=native(d)).reshape(3, 4), d)
    for label, t, start in (("base", base, 0), ("slice", base[1:, 2:], 6), ("transposed", base.transpose(0, 1)[1:], 1),
                            ("row", base[2], 8)):  # fmt: skip
        for view in (t, t.detach()):
            try:
                held = view._typed_storage().tolist()
            except RuntimeError as error:
                error.add_note("whole(x), of a backend with strides: the memory that x is a part of, 1-D, and where in it x begins.")
                raise
            if held != list(range(12)) or view.storage_offset() != start:
                raise Failure(f"whole: the {label} begins at {start} of 0 to 11; got {view.storage_offset()} of {held}.")


@suite("storage", 0)
def check_set(subject: Subject) -> None:
    """Set a tensor onto the memory of another, and write through it."""
    d = dtype_here(subject, "float32")
    base = subject.tensor(np.arange(6.0, dtype=native(d)), d)
    t = mortice.ones(2, device=subject.device)
    try:
        t.set_(base._typed_storage(), 1, (2, 2), (2, 1))
    except RuntimeError as error:
        # A mutable backend may have no views by strides; then nothing may be written into a copy.
        if "views by strides" in str(error) and "strided" not in subject.backend.overridden:
            return
        raise
    same(subject, "set_", t, np.array([[1, 2], [3, 4]], native(d)))
    t[0, 0] = 50
    same(subject, "set_: the memory after a write", base, np.array([0, 50, 2, 3, 4, 5], native(d)))
