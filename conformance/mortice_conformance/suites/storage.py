"""L0: values go in and come out unchanged, in every dtype, shape and memory order, on every device."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import numpy as np

import mortice
from mortice.backends import DTYPES, HostBuffer
from mortice_conformance.arrays import bfloat16_bits, limits, native, rounded, widened
from mortice_conformance.checks.behaviour import on_subject
from mortice_conformance.subject import Failure, Skip, Subject
from mortice_conformance.suites import suite

SHAPES = [(), (1,), (5,), (0,), (2, 3), (3, 0, 2), (2, 1, 3, 2), (1030,)]
NAMES = [d.name for d in DTYPES]


def content(shape: tuple[int, ...], dtype: Any) -> Any:
    """Return values that differ from their neighbours and use the dtype's range."""
    n = int(np.prod(shape))
    if dtype.kind == "b":
        found = np.arange(n) % 3 == 0
    elif dtype.kind in "ui":
        bottom, top = limits(dtype)
        found = np.array([top, bottom, 1, 0, *range(2, 2 + n)][:n], dtype=object) if n else np.zeros(0)
        found = np.array([int(v) % (int(top) + 1) if v >= 0 else int(v) for v in found], native(dtype))
    else:
        found = np.array([0.5, -0.0, np.inf, -np.inf, np.nan, *np.arange(n) * 0.37 - 3][:n])
        if dtype.kind == "c":
            parts = np.stack([found, found[::-1]], -1)
            found = parts.reshape(-1).view(np.complex128)
    return rounded(np.asarray(found).reshape(shape), dtype)


def dtype_here(subject: Subject, name: str) -> Any:
    """Return the dtype of that name, or skip where the device has none."""
    for d in subject.available:
        if d.name == name:
            return d
    raise Skip(f"{subject.device} has no {name}")


def same(subject: Subject, what: str, t: Any, want: Any) -> None:
    """Check that a tensor holds exactly these values."""
    subject.inspect(t, what)
    got = subject.read(t)
    if got.shape != want.shape or got.tobytes() != np.ascontiguousarray(want, got.dtype).tobytes():
        if got.shape != want.shape or not np.array_equal(widened(got), widened(want), equal_nan=got.dtype.kind in "fc"):
            raise Failure(f"{what}: expected {want.tolist()}; got {got.tolist()}.")


def _host(name: str) -> tuple[str, str]:
    return "from_host", "to_host"


@suite("storage", 0, each=NAMES, due=_host)
def check_round_trip(subject: Subject, name: str) -> None:
    """Bring values to the device and back."""
    d = dtype_here(subject, name)
    for shape in SHAPES:
        want = content(shape, d)
        t = subject.tensor(want, d)
        same(subject, f"{name} {shape}", t, want)
        if subject.read(t).tobytes() != want.tobytes():
            raise Failure(f"{name} {shape}: the bits changed on the way to the device and back.")


@suite("storage", 0, each=NAMES, due=_host)
def check_strided_host(subject: Subject, name: str) -> None:
    """Read host memory by its strides: transposed, stepped, reversed."""
    d = dtype_here(subject, name)
    if name == "bfloat16":
        raise Skip("bfloat16 travels as contiguous bytes")
    base = content((4, 6), d)
    for label, view in (("transposed", base.T), ("stepped", base[:, ::2]), ("reversed", base[::-1, ::-1])):
        for bring in (subject.backend.from_host, subject.backend.share_host):
            host = HostBuffer(memoryview(view), view.shape, d)
            same(subject, f"{name} {label}", subject.wrap(bring(host, subject.device), d), view)


@suite("storage", 0, each=NAMES, due=lambda name: ["full"])
def check_full(subject: Subject, name: str) -> None:
    """Fill with a number, of a kind no higher than the dtype's."""
    d = dtype_here(subject, name)
    for shape in SHAPES:
        for value in (0, 1, True) if d.kind in "bui" else (0, 1.5, -0.0, float("inf"), float("nan")):
            t = mortice.full(shape, value, dtype=d, device=subject.device)
            same(subject, f"full {name} {shape} {value}", t, rounded(np.full(shape, value), d))


@suite("storage", 0, due=lambda: ["arange"])
def check_arange(subject: Subject) -> None:
    """Count up, down and by fractions."""
    for start, stop, step in ((0, 5, 1), (5, 0, -2), (0, 0, 1), (-3, 4, 3), (0.0, 1.0, 0.25), (2, 1030, 1)):
        for name in ("int64", "float32", "uint8", "int32"):
            d = dtype_here(subject, name)
            want = np.arange(start, stop, step)
            if d.kind != "f" and (want.dtype.kind == "f" or (want.size and (want.min() < 0 or want.max() > 255))):
                continue
            t = mortice.arange(start, stop, step, dtype=d, device=subject.device)
            same(subject, f"arange {start} {stop} {step} {name}", t, rounded(want, d))


@suite("storage", 0, each=NAMES, due=lambda name: ["astype"])
def check_cast(subject: Subject, name: str) -> None:
    """Cast to every dtype: floats round to nearest, integers wrap, complex drops its imaginary part."""
    d = dtype_here(subject, name)
    values = {"b": [0, 1], "u": [0, 1, 2, 100, 127], "i": [0, 1, -1, -100, 127]}.get(
        d.kind, [0.0, 1.0, -1.75, 2.75, 100.3125, 3.14159265358979, -0.0]
    )
    source = rounded(np.array(values), d)
    for target in sorted(subject.available, key=lambda t: t.index):
        start = np.abs(source) if target.kind == "u" and d.kind != "u" else source
        if d.kind == "c" and target.kind not in "cb":
            start = np.abs(start.real) if target.kind == "u" else start
        t = subject.tensor(start, d).to(target)
        values_in = start.real if d.kind == "c" and target.kind not in "cb" else start
        if target.kind == "b":
            want = values_in != 0
        elif target.kind in "ui":
            want = np.trunc(values_in).astype(np.int64).astype(native(target)) if d.kind in "fc" else values_in
        else:
            want = values_in
        same(subject, f"cast {name} to {target.name}", t, rounded(want, target))
    k = subject.backend
    x = k.copy(subject.tensor(source, d)._buffer)
    if k.mutable:
        k.setitem(k.astype(x, d), (Ellipsis,), 1)
        if k.to_host(x).tobytes() != subject.bits(subject.tensor(source, d)):
            raise Failure(f"cast {name} to {name}: they share memory. Return a copy where there is nothing to compute.")


# What is lost where a cast goes by way of another dtype: (from, to, values, why).
_BY_TRUTH = "A bool says whether a number is not equal to 0: nan, a fraction, 256 and an imaginary number are not."
_WRAPS = "Integers that do not fit wrap around, and exactly: not by way of floats, nor cut at the ends."
_NEAREST = "An integer that a float does not hold is rounded to the nearest."
_CASTS: list[tuple[str, str, list[Any], str]] = [
    *[(f, "bool", [0.0, -0.0, 0.25, float("nan"), float("inf")], _BY_TRUTH) for f in ("float16", "bfloat16", "float32", "float64")],
    *[(c, "bool", [0j, 1j, -0.5 + 0j], _BY_TRUTH) for c in ("complex64", "complex128")],
    *[(i, "bool", [0, 256, -(2**8)], _BY_TRUTH) for i in ("int16", "int32", "int64")],
    ("int64", "bool", [2**32, 2**53, 0], _BY_TRUTH), ("int64", "int8", [300, -129, 2**40 + 5], _WRAPS),
    ("int64", "uint8", [-1, 263], _WRAPS), ("int64", "int32", [2**40 + 5, -(2**31) - 1], _WRAPS),
    ("int64", "uint64", [-1, 2**53 + 1], _WRAPS), ("uint64", "int64", [2**63 + 1, 2**53 + 1], _WRAPS),
    ("int8", "uint16", [-1, -128], _WRAPS), ("uint8", "int8", [200, 255], _WRAPS), ("int32", "uint8", [-1, 256], _WRAPS),
    ("int64", "float32", [2**24 + 1, 2**24 + 3, -(2**40) - 1], _NEAREST), ("int32", "float32", [2**24 + 1, 2**24 + 3], _NEAREST),
    ("int64", "float64", [2**53 + 1, 2**53 + 3], _NEAREST), ("uint64", "float64", [2**64 - 1, 2**63 + 2**11], _NEAREST),
    ("uint64", "float32", [2**64 - 1, 2**63 + 2**40], _NEAREST),
]  # fmt: skip


@suite("storage", 0, each=[n for n in NAMES if any(start == n for start, *_ in _CASTS)])
def check_cast_ends(subject: Subject, name: str) -> None:
    """Cast what a way round loses: large and negative integers, and the truth of all but 0."""
    d = dtype_here(subject, name)
    known = {t.name: t for t in subject.available}
    found = [(known[to], values, why) for start, to, values, why in _CASTS if start == name and to in known]
    for target, values, why in found:
        source = np.array(values, native(d))
        got = subject.tensor(source, d).to(target)
        try:
            same(subject, f"cast {name} {values} to {target.name}", got, source.astype(native(target)))
        except Failure as failure:
            raise Failure(f"{failure} {why}") from None


@suite("storage", 0)
def check_item(subject: Subject) -> None:
    """Give Python numbers of the right kind."""
    for name, value in (
        ("float32", 0.5),
        ("int64", -(2**62)),
        ("bool", True),
        ("complex64", 1 - 2j),
        ("uint64", 2**63),
    ):
        d = dtype_here(subject, name)
        got = subject.tensor(rounded(np.array(value), d), d).item()
        if got != value or type(got) is not type(value):
            raise Failure(f"item of {name}: expected {value!r}; got {got!r} ({type(got).__name__}).")
    found = subject.tensor(np.arange(6).reshape(2, 3), dtype_here(subject, "int64")).tolist()
    if found != [[0, 1, 2], [3, 4, 5]]:
        raise Failure(f"tolist: got {found!r}.")


@suite("storage", 0)
def check_copies(subject: Subject) -> None:
    """Copy, deep-copy and pickle into memory of its own, with the bits kept."""
    for name in ("float32", "bfloat16", "int16", "bool", "complex64"):
        d = dtype_here(subject, name)
        want = content((3, 4), d)
        t = subject.tensor(want, d)
        for label, made in (("clone", t.clone()), ("deepcopy", copy.deepcopy(t))):
            same(subject, f"{label} {name}", made, want)
            made[0] = 1
            same(subject, f"{label} {name}: the source after a write", t, want)


@suite("storage", 0)
def check_pickle(subject: Subject) -> None:
    """Come back from a pickle on the device it was on."""
    if subject.name not in mortice.backends.plugins.entries():
        raise Skip("a wrapped backend has no name to come back to")
    with mortice.use_backend(subject.name):
        for name in ("float32", "bfloat16", "complex64", "uint8"):
            d = dtype_here(subject, name)
            want = content((2, 3), d)
            same(subject, f"pickle {name}", pickle.loads(pickle.dumps(subject.tensor(want, d))), want)


@suite("storage", 0)
def check_save(subject: Subject) -> None:
    """Come back from a saved file, bit by bit."""
    with on_subject(subject):
        for name in ("float32", "bfloat16", "complex64", "int64", "bool"):
            d = dtype_here(subject, name)
            want = content((2, 3), d)
            file = io.BytesIO()
            mortice.save({"x": subject.tensor(want, d)}, file)
            file.seek(0)
            same(subject, f"save and load {name}", mortice.load(file, map_location=str(subject.device))["x"], want)


@suite("storage", 0)
def check_made(subject: Subject) -> None:
    """Make zeros, ones, the identity, even steps, triangles and copies of a kind as NumPy does."""
    made = {
        "zeros": (lambda: mortice.zeros(2, 3), np.zeros((2, 3))),
        "ones": (lambda: mortice.ones(2, 0), np.ones((2, 0))),
        "eye": (lambda: mortice.eye(3, 4), np.eye(3, 4)),
        "linspace": (lambda: mortice.linspace(-1, 1, 5), np.linspace(-1, 1, 5)),
        "full_like": (lambda: mortice.full_like(mortice.ones(3), 2.5), np.full(3, 2.5)),
        "zeros_like": (lambda: mortice.zeros_like(mortice.ones(2, 2)), np.zeros((2, 2))),
        "new_ones": (lambda: mortice.zeros(1).new_ones(2), np.ones(2)),
        "tril_indices": (lambda: mortice.tril_indices(3, 3), np.stack(np.tril_indices(3))),
        "meshgrid": (
            lambda: mortice.meshgrid(mortice.arange(2), mortice.arange(3), indexing="ij")[1],
            np.mgrid[:2, :3][1],
        ),
    }
    with on_subject(subject):
        for name, (make, want) in made.items():
            t = make()
            same(subject, name, t, want.astype(native(t.dtype)))


@suite("storage", 0, due=lambda: ["device_of"])
def check_devices(subject: Subject) -> None:
    """Move between all devices, and keep each tensor where it is."""
    d = dtype_here(subject, "float32")
    want = content((2, 3), d)
    for first in subject.devices:
        for second in subject.devices:
            here, there = subject.on(first), subject.on(second)
            moved = here.tensor(want, d).to(there.device)
            same(there, f"{first} to {second}", moved, want)
    subject.backend.synchronize(subject.device)


@suite("storage", 0)
def check_declared_dtypes(subject: Subject) -> None:
    """Refuse a dtype that a device does not declare, with the dtype's name."""
    from mortice.errors import DTypeError

    for name in subject.devices:
        there = subject.on(name)
        for d in DTYPES:
            try:
                t = mortice.full((2,), 1, dtype=d, device=there.device)
            except DTypeError as error:
                if d in there.available or d.name not in str(error):
                    raise Failure(
                        f"{name}: {d.name} is {'declared' if d in there.available else 'refused'}: {error}"
                    ) from error
                continue
            if d not in there.available:
                raise Failure(f"{name}: it does not declare {d.name}, but made a tensor of it.")
            there.inspect(t, f"{name} {d.name}")


@suite("storage", 0)
def check_views(subject: Subject) -> None:
    """Show a write through a view, by slices or at positions, in its base and in every other view."""
    d = dtype_here(subject, "float32")
    base = subject.tensor(np.arange(12.0).reshape(3, 4), d)
    flat, column, back = base.reshape(12), base[:, 1], base[::-1]
    turned = base.transpose(0, 1)
    column[...] = -1
    flat[11] = 50
    want = np.arange(12.0).reshape(3, 4)
    want[:, 1] = -1
    want[2, 3] = 50
    at = subject.tensor(np.array([3, 0, 3]), dtype_here(subject, "int64"))
    turned[at] = subject.tensor(np.arange(100.0, 109.0).reshape(3, 3), d)
    want[:, 3], want[:, 0] = (106, 107, 108), (103, 104, 105)
    back.index_add_(1, at[1:], subject.tensor(np.array([[1.0, 2.0]] * 3), d))
    want[:, 0], want[:, 3] = want[:, 0] + 1, want[:, 3] + 2
    flat[flat < 0] = 60
    want[want < 0] = 60
    try:
        for label, t, w in (("base", base, want), ("reshape", flat, want.reshape(12)), ("flip", back, want[::-1]),
                            ("transpose", turned, want.T), ("column", column, want[:, 1])):  # fmt: skip
            same(subject, f"views: {label}", t, w.astype(np.float32))
    except Failure as failure:
        if subject.backend.mutable:
            failure.add_note("as mutable is True: views, from getitem, reshape, permute_dims and broadcast_to, of the memory that "
                             "setitem writes. Of a library that copies, mutable is False.")  # fmt: skip
        raise


# ---- writes in place ----

_LENGTHS = (1, 7, 64, 257, 4099)  # around vectors and blocks, and enough for several threads of some


def _in_place(d: Any) -> dict[str, Any]:
    """Return calls on (x, y, z) whose result may be written over x, by what is done in place."""
    found = {
        "add_": lambda x, y, z: x.add(y), "mul_": lambda x, y, z: x.mul(y), "bitwise_not_": lambda x, y, z: x.bitwise_not(),
        "logical_and_": lambda x, y, z: x.logical_and(y).to(d), "copy_": lambda x, y, z: y.clone(),
    }  # fmt: skip
    if d.kind == "b":
        return {name: found[name] for name in ("bitwise_not_", "logical_and_", "copy_")}
    if d.kind in "fc":
        del found["bitwise_not_"]
        found.update(
            div_=lambda x, y, z: x.div(y), exp_=lambda x, y, z: x.exp(), lerp_=lambda x, y, z: x.lerp(y, 0.25),
            addcmul_=lambda x, y, z: x.addcmul(y, z, value=2), addcdiv_=lambda x, y, z: x.addcdiv(y, z),
            sigmoid_=lambda x, y, z: x.sigmoid(),
        )  # fmt: skip
    if d.kind in "if":
        found.update(neg_=lambda x, y, z: x.neg(), abs_=lambda x, y, z: x.abs(), clamp_=lambda x, y, z: x.clamp(1, 2))
    return found


_GIVEN = {  # what they are called with in place
    "add_": lambda y, z: (y,), "mul_": lambda y, z: (y,), "logical_and_": lambda y, z: (y,), "copy_": lambda y, z: (y,),
    "div_": lambda y, z: (y,), "lerp_": lambda y, z: (y, 0.25), "addcmul_": lambda y, z: (y, z), "addcdiv_": lambda y, z: (y, z),
    "clamp_": lambda y, z: (1, 2),
}  # fmt: skip
_NAMED = {"addcmul_": {"value": 2}}


@suite("storage", 2, each=NAMES)
def check_in_place(subject: Subject, name: str) -> None:
    """Write results over an operand, whole, a row and every other element: they are what is made elsewhere, the rest stays."""
    d = dtype_here(subject, name)
    for n in _LENGTHS:
        drawn = [np.random.Generator(np.random.PCG64(i)).integers(1, 4, 2 * n) for i in range(3)]
        make = lambda i, drawn=drawn: subject.tensor(rounded(drawn[i] % 2 if d.kind == "b" else drawn[i], d), d)
        y, z = make(1)[:n].clone(), make(2)[:n].clone()
        kept = [subject.bits(t) for t in (y, z)]
        for op, call in _in_place(d).items():
            for place, of in (("all", lambda b: b), ("a row", lambda b: b[1]), ("every other", lambda b: b[::2])):
                base = make(0)[:n].clone() if place == "all" else make(0).reshape(2, n) if place == "a row" else make(0)
                x = of(base)
                want, rest = call(x.clone(), y, z), base.clone()
                of(rest).copy_(want)
                if (made := getattr(x, op)(*_GIVEN.get(op, lambda y, z: ())(y, z), **_NAMED.get(op, {}))) is not x:
                    raise Failure(f"{op} {name}: expected the tensor itself; got {type(made).__name__}.")
                if subject.bits(base.clone()) != subject.bits(rest):
                    raise Failure(f"{op} {name}, {n} elements, {place}: what was written in place is not what is made elsewhere.")
                if [subject.bits(t) for t in (y, z)] != kept:
                    raise Failure(f"{op} {name}, {n} elements, {place}: another operand was written.")
        out = y.clone()
        mortice.logical_or(out, z, out=out)
        same(subject, f"logical_or(x, y, out=x) {name}", out, subject.read(mortice.logical_or(y, z).to(d)))


@suite("storage", 0)
def check_bfloat16_bits(subject: Subject) -> None:
    """Round to bfloat16 to nearest, ties to even."""
    d = dtype_here(subject, "bfloat16")
    wide = np.array([1.0, 1.00390625, 1.01171875, -2.005, 3.3895e38, 1e-40, np.nan], np.float32)
    got = subject.tensor(wide, dtype_here(subject, "float32")).to(d)
    want = np.where(np.isnan(wide), 0, bfloat16_bits(wide))
    bits = np.frombuffer(subject.bits(got), np.uint16)
    if not np.array_equal(np.where(np.isnan(wide), 0, bits), want):
        raise Failure(f"bfloat16: expected the words {want.tolist()}; got {bits.tolist()}.")
