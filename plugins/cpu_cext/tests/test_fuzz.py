"""Shapes, strides, dtypes and indices at random: the kernels must agree with cpu_numpy's on all of them."""

from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy", reason="the reference of these tests is cpu_numpy, which needs NumPy")
hypothesis = pytest.importorskip("hypothesis", reason="the cases are drawn by hypothesis")
pytest.importorskip("mortice_cpu_numpy", reason="the reference of these tests is cpu_numpy")

from hypothesis import HealthCheck, assume, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from mortice.backends import DTYPES, HostBuffer  # noqa: E402
from mortice.backends.plugins import load  # noqa: E402
from mortice.dtype import by_name  # noqa: E402

SETTINGS = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
NAMES = [d.name for d in DTYPES]
REAL = [d.name for d in DTYPES if d.kind in "uif"]
FLOATS = ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
# How far results may be apart, relative to the largest value in them: products and sums are rounded in another order.
TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 1e-5, "float64": 1e-12, "complex64": 1e-5, "complex128": 1e-12}


class Twin:
    """The same array on both backends."""

    def __init__(self, values: Any, dtype: str) -> None:
        self.numpy, self.cext = load("cpu_numpy"), load("cpu_cext")
        wide = np.ascontiguousarray(values, dtype=np.complex128 if dtype.startswith("complex") else np.float64)
        d = by_name("complex128" if wide.dtype.kind == "c" else "float64")
        host = HostBuffer(memoryview(wide), wide.shape, d)
        self.pair = [k.astype(k.from_host(host, k.device("cpu")), by_name(dtype)) for k in (self.numpy, self.cext)]
        self.dtype = dtype

    def view(self, kernel: str, *args: Any, **attributes: Any) -> Twin:
        """Take the same view of both."""
        self.pair = [getattr(k, kernel)(x, *args, **attributes) for k, x in zip((self.numpy, self.cext), self.pair)]
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.pair[0].shape)


def of(k: Any, x: Any) -> Any:
    """Return an array's elements as NumPy's, in double precision."""
    flat = np.asarray(k.to_host(x).tolist())
    return flat.astype(np.complex128 if flat.dtype.kind == "c" else np.float64).reshape(k.shape_of(x))


def check(kernel: str, *operands: Any, exact: bool = False, **attributes: Any) -> None:
    """Run a kernel on both backends and compare values, shape and dtype; inputs must stay as they were."""
    backends = load("cpu_numpy"), load("cpu_cext")
    results = []
    for i, k in enumerate(backends):
        raw = [o.pair[i] if isinstance(o, Twin) else o for o in operands]
        before = [of(k, x) for x, o in zip(raw, operands) if isinstance(o, Twin)]
        results.append(getattr(k, kernel)(*raw, **attributes))
        after = [of(k, x) for x, o in zip(raw, operands) if isinstance(o, Twin)]
        assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(before, after)), f"{kernel} changed its input"
    pairs = zip(*results) if isinstance(results[0], tuple) else [results]
    for expected, got in pairs:
        d, e = backends[1].dtype_of(got), backends[0].dtype_of(expected)
        assert d is e, f"{kernel}: {d.name} for {e.name}"
        expected, got = of(backends[0], expected), of(backends[1], got)
        assert got.shape == expected.shape, kernel
        tolerance = 0 if exact else TOLERANCE.get(d.name, 0)
        finite = np.abs(expected[np.isfinite(expected)])
        scale = finite.max() if finite.size else 1.0
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance * scale, equal_nan=True, err_msg=kernel)


@st.composite
def twins(draw: Any, dtypes: list[str] = NAMES, low: int = -20, high: int = 20, least: int = 0, most: int = 4, size: int = 7) -> Twin:
    """Draw an array and a view of it: sliced, reversed, permuted, repeated."""
    dtype = draw(st.sampled_from(dtypes))
    shape = draw(st.lists(st.integers(0, size), min_size=least, max_size=most))
    if dtype.startswith("u") or dtype == "bool":
        low = 0
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    values = rng.integers(low, high + 1, shape).astype(np.float64)
    if dtype in FLOATS:
        values = values + rng.integers(-4, 5, shape) / 8
    if dtype.startswith("complex"):
        values = values + 1j * rng.integers(low, high + 1, shape)
    x = Twin(values, dtype)
    if draw(st.booleans()) and shape:
        x.view("permute_dims", tuple(draw(st.permutations(range(len(shape))))))
    if draw(st.booleans()):
        key = tuple(
            slice(draw(st.integers(-n - 1, n + 1) | st.none()), draw(st.integers(-n - 1, n + 1) | st.none()),
                  draw(st.sampled_from([1, 1, 2, 3, -1, -2])))
            for n in x.shape
        )  # fmt: skip
        x.view("getitem", key)
    if len(x.shape) < 4 and draw(st.integers(0, 4)) == 0:
        x.view("broadcast_to", (draw(st.integers(1, 3)), *x.shape))
    assume(len(x.shape) >= least)
    return x


def partner(draw: Any, x: Twin, low: int, high: int) -> Twin:
    """Draw an operand that broadcasts with x."""
    shape = [draw(st.sampled_from([n, n, 1])) for n in x.shape][draw(st.integers(0, len(x.shape))) :]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    low = 0 if x.dtype.startswith("u") or x.dtype == "bool" else low
    y = Twin(rng.integers(low, high + 1, shape), x.dtype)
    if len(shape) > 1 and draw(st.booleans()):
        y = Twin(rng.integers(low, high + 1, shape[::-1]), x.dtype).view("permute_dims", tuple(reversed(range(len(shape)))))
    return y


@SETTINGS
@given(st.data())
def test_two_operands(data: Any) -> None:
    kernel = data.draw(st.sampled_from("add subtract multiply equal less maximum minimum not_equal greater_equal".split()))
    ordered = kernel in ("less", "maximum", "minimum", "greater_equal")
    x = data.draw(twins([n for n in NAMES if not (ordered and n.startswith("c")) and not (kernel == "subtract" and n == "bool")]))
    y = partner(data.draw, x, -3, 3) if data.draw(st.booleans()) else 2 if x.dtype != "bool" else True
    check(kernel, x, y, exact=True) if not x.dtype.startswith("c") else check(kernel, x, y)


@SETTINGS
@given(st.data())
def test_quotients_and_powers(data: Any) -> None:
    kernel = data.draw(st.sampled_from("divide floor_divide remainder pow".split()))
    x = data.draw(twins(FLOATS if kernel == "divide" else REAL, low=-9, high=9))
    y = partner(data.draw, x, 1, 3)
    check(kernel, x, y)


@SETTINGS
@given(st.data())
def test_bits(data: Any) -> None:
    kernel = data.draw(st.sampled_from("bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift".split()))
    shift = kernel.endswith("shift")
    x = data.draw(twins([n for n in NAMES if "int" in n or (n == "bool" and not shift)]))
    check(kernel, x, partner(data.draw, x, 0, 6), exact=True)


@SETTINGS
@given(st.data())
def test_one_operand(data: Any) -> None:
    plain = "negative abs sign floor isnan square logical_not".split()
    x = data.draw(twins([n for n in NAMES if n != "bool"]))
    kernels = [n for n in plain if not (x.dtype.startswith("c") and n in ("sign", "floor"))]
    if x.dtype in FLOATS:
        kernels += "exp sin cos tanh".split()
    check(data.draw(st.sampled_from(kernels)), x)


@SETTINGS
@given(st.data())
def test_conversion(data: Any) -> None:
    x = data.draw(twins(low=0, high=100))
    check("astype", x, by_name(data.draw(st.sampled_from(NAMES))), exact=True)


@SETTINGS
@given(st.data())
def test_where(data: Any) -> None:
    x = data.draw(twins())
    condition = Twin(np.random.default_rng(1).integers(0, 2, x.shape[data.draw(st.integers(0, len(x.shape))) :]), "bool")
    check("where", condition, x, partner(data.draw, x, 0, 5), exact=True)


@SETTINGS
@given(st.data())
def test_reductions(data: Any) -> None:
    kernel = data.draw(st.sampled_from("sum prod max min any all mean".split()))
    dtypes = {"max": REAL, "min": REAL, "mean": FLOATS}.get(kernel, [n for n in NAMES if n != "bool" or kernel in ("any", "all")])
    x = data.draw(twins(dtypes, low=-2, high=2))
    axes = data.draw(st.sets(st.integers(0, len(x.shape) - 1))) if x.shape else set()
    axis = None if not axes else tuple(sorted(axes)) if data.draw(st.booleans()) else axes.pop()
    if kernel in ("max", "min", "mean"):
        assume(0 not in x.shape)
    check(kernel, x, axis=axis, keepdims=data.draw(st.booleans()))


@SETTINGS
@given(st.data())
def test_along_an_axis(data: Any) -> None:
    kernel = data.draw(st.sampled_from("argmax cumulative_sum argsort".split()))
    x = data.draw(twins(REAL, least=1))
    axis = data.draw(st.integers(0, len(x.shape) - 1))
    if kernel == "argmax":
        assume(x.shape[axis] > 0)
        check(kernel, x, axis=axis, keepdims=data.draw(st.booleans()), exact=True)
    elif kernel == "argsort":
        check(kernel, x, axis=axis, descending=data.draw(st.booleans()), exact=True)
    else:
        check(kernel, x, axis=axis)


@SETTINGS
@given(st.data())
def test_indices(data: Any) -> None:
    x = data.draw(twins(least=1))
    axis = data.draw(st.integers(0, len(x.shape) - 1))
    assume(x.shape[axis] > 0)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    some = Twin(rng.integers(0, x.shape[axis], data.draw(st.integers(0, 9))), "int64")
    if data.draw(st.booleans()):
        some.view("flip", 0)
    check("take", x, some, axis=axis, exact=True)
    wide = tuple(data.draw(st.integers(0, 9)) if i == axis else n for i, n in enumerate(x.shape))
    along = Twin(rng.integers(0, x.shape[axis], wide), "int64")
    check("take_along_axis", x, along, axis=axis, exact=True)
    if x.dtype not in ("bool", "float16", "bfloat16"):
        check("scatter_add", x, along, Twin(rng.integers(0, 3, wide), x.dtype), axis=axis)
    k = x.cext
    if 0 not in x.shape:
        for wrong in (-1, x.shape[axis], -(2**62), 2**62):
            with pytest.raises((IndexError, RuntimeError, ValueError)):
                k.take(x.pair[1], k.full((3,), wrong, dtype=by_name("int64"), device=k.device("cpu")), axis=axis)


@SETTINGS
@given(st.data())
def test_matmul(data: Any) -> None:
    dtype = data.draw(st.sampled_from([n for n in NAMES if n != "bool"]))
    m, n, p = (data.draw(st.integers(0, 9)) for _ in range(3))
    batch = tuple(data.draw(st.lists(st.integers(1, 3), max_size=2)))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))

    def matrix(rows: int, columns: int, lead: tuple[int, ...]) -> Twin:
        if data.draw(st.booleans()):
            turned = Twin(rng.integers(0, 4, (*lead, columns, rows)), dtype)
            return turned.view("matrix_transpose")
        return Twin(rng.integers(0, 4, (*lead, rows, columns)), dtype)

    lead = batch[data.draw(st.integers(0, len(batch))) :]
    check("matmul", matrix(m, n, batch), matrix(n, p, lead))
    check("matmul", Twin(rng.integers(0, 4, n), dtype), matrix(n, p, batch))
    check("matmul", matrix(m, n, batch), Twin(rng.integers(0, 4, n), dtype))


@SETTINGS
@given(st.data())
def test_writing(data: Any) -> None:
    x = data.draw(twins(least=1))
    key = tuple(slice(None, None, data.draw(st.sampled_from([1, 2, -1]))) for _ in x.shape)
    for k, a in zip((x.numpy, x.cext), x.pair):
        part = k.getitem(a, key)
        k.setitem(k.copy(a), key, part)
    written = [k.setitem(k.copy(a), key, 1 if x.dtype != "bool" else True) for k, a in zip((x.numpy, x.cext), x.pair)]
    assert np.array_equal(of(x.numpy, written[0]), of(x.cext, written[1]))
