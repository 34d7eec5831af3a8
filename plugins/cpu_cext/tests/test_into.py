"""`into`: elementwise kernels whose result is written where memory is already, above all over one of their operands."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

import mortice as mt
from mortice.backends import DTYPES
from mortice_cpu_cext import _cext

# Below a vector, around vectors of each width, around blocks, and enough for several threads, none of them whole vectors.
SIZES = (1, 2, 7, 8, 15, 17, 31, 33, 63, 65, 127, 129, 255, 256, 257, 513, 1025, 70001)
TWO = (
    "add subtract multiply divide maximum minimum bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift "
    "copysign logical_and logical_or logical_xor equal less floor_divide remainder fmod pow hypot atan2 logaddexp2 nextafter "
    "gcd lcm floordiv"
).split()
ONE = (
    "exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh erf erfc erfcx erfinv "
    "lgamma digamma negative abs sign sgn sqrt rsqrt square reciprocal floor ceil round trunc sigmoid relu "
    "bitwise_invert logical_not nan_to_num"
).split()
if hasattr(_cext, "silu"):  # a processor without AVX2 takes the default bodies
    ONE += "silu gelu softplus logsigmoid mish hardsigmoid hardswish".split()


def drawn(n: int, d: Any) -> Any:
    if d.kind == "b":
        return mt.rand(n) > 0.5
    if d.kind == "c":
        return mt.randn(n, dtype=d)
    return ((mt.randn(n, dtype=mt.float64) * 2) if d.kind == "f" else mt.randint(1, 7, (n,))).to(d)


def bits(x: Any) -> bytes:
    return memoryview(_cext.to_host(x).view).tobytes()


def tried(kernel: Any, *xs: Any) -> Any:
    """Return a kernel's result in memory of its own; None where it is not for these dtypes."""
    try:
        return kernel(*xs)
    except (TypeError, ZeroDivisionError):
        return None


def calls(a: Any, b: Any, c: Any) -> dict[str, list[tuple[Any, ...]]]:
    """Return operands for each kernel: `a`, where the result is to go, in every place, and twice."""
    pairs = [(a, b), (b, a), (a, a), (b, c)]
    mask = (mt.rand(_cext.numel_of(a)) > 0.5)._buffer
    return {
        **dict.fromkeys(TWO, pairs), **{name: [(a,), (b,)] for name in ONE},
        "lerp": [(a, b, c), (b, c, a)], "clip": [(a, b, c), (b, a, c), (a, b)], "where": [(mask, a, b), (mask, b, a)],
        "addcmul": [(a, b, c, 2), (b, a, a), (a, b, 3)], "addcdiv": [(a, b, c, 2), (b, a, c)],
    }  # fmt: skip


@pytest.mark.parametrize("d", DTYPES, ids=str)
def test_what_is_written_over_an_operand_is_what_is_written_elsewhere(d: Any) -> None:
    mt.manual_seed(0)
    with mt.use_backend("cpu_cext"):
        written = 0
        for n in SIZES:
            a, b, c = (drawn(n, d) for _ in range(3))
            kept = a.clone()
            for name, operands in calls(a._buffer, b._buffer, c._buffer).items():
                kernel = getattr(_cext, name)
                for xs in operands:
                    if (want := tried(kernel, *xs)) is None:
                        continue
                    got = _cext.into(a._buffer, kernel, *xs)
                    assert bits(got) == bits(want), (name, n)
                    if _cext.dtype_of(want) is d:
                        written += got is a._buffer
                    else:
                        assert got is not a._buffer
                    a.copy_(kept)
        assert written > 20 * len(SIZES)


# Lines, columns, repeated patterns, what lies across or apart, and dims of a few elements, whose lines go along another axis.
BESIDE = {
    "row": lambda x: x[0], "column": lambda x: x[:, :1], "corner": lambda x: x[:1, :1], "turned": lambda x: x.t().contiguous().t(),
    "apart": lambda x: mt.stack([x, x], -1)[..., 1], "backwards": lambda x: x.flip(1).flip(1), "one": lambda x: x[0, 0],
}  # fmt: skip


@pytest.mark.parametrize("d", [mt.float32, mt.float64, mt.bfloat16, mt.int64, mt.uint8, mt.complex64], ids=str)
@pytest.mark.parametrize("sizes", [(1, 5), (3, 4), (5, 300), (300, 3), (40, 257), (33, 1000), (700, 500)], ids=str)
def test_what_is_broadcast_is_written_over_the_operand_that_has_the_shape_of_all(sizes: Any, d: Any) -> None:
    mt.manual_seed(0)
    with mt.use_backend("cpu_cext"):
        a, c = (drawn(sizes[0] * sizes[1], d).reshape(sizes).clone() for _ in range(2))
        kept, written = a.clone(), 0
        for name in ("add", "multiply", "subtract", "less", "where", "addcmul", "clip"):
            kernel = getattr(_cext, name)
            for what, seen in BESIDE.items():
                b = seen(c)._buffer
                at = {"where": [((kept == kept)._buffer, a._buffer, b)], "addcmul": [(a._buffer, b, b, 2)], "clip": [(a._buffer, b, b)]}
                for xs in at.get(name, [(a._buffer, b), (b, a._buffer)]):
                    if (want := tried(kernel, *xs)) is None:
                        continue
                    got = _cext.into(a._buffer, kernel, *xs)
                    assert bits(got) == bits(want), (name, what)
                    written += got is a._buffer
                    a.copy_(kept)
            # Where an operand lies in a part of what is written, that is not written over.
            for part in (a[:1], a[:, :1], a[0], a[0, 0]) if name in ("add", "multiply", "subtract") else ():
                want = kernel(a._buffer, part._buffer)
                assert bits(_cext.into(a._buffer, kernel, a._buffer, part._buffer)) == bits(want), name
                a.copy_(kept)
        assert written > (40 if d is not mt.complex64 else 20)


PARTS = {
    "columns": lambda x: x[:, 1:-1], "every other": lambda x: x[:, ::2], "rows apart": lambda x: x[::2], "turned": lambda x: x.t(),
    "corner": lambda x: x[1:, 1:], "column": lambda x: x[:, 1], "diagonal": lambda x: x.diagonal(), "deep": lambda x: x[None, :, :-1],
}  # fmt: skip


@pytest.mark.parametrize("d", [mt.float32, mt.float64, mt.bfloat16, mt.int64, mt.uint8, mt.complex64], ids=str)
@pytest.mark.parametrize("sizes", [(3, 4), (5, 300), (300, 3), (40, 259), (500, 700)], ids=str)
def test_what_lies_apart_is_written_where_it_is(sizes: Any, d: Any) -> None:
    mt.manual_seed(0)
    with mt.use_backend("cpu_cext"):
        whole, c = (drawn(sizes[0] * sizes[1], d).reshape(sizes).clone() for _ in range(2))
        kept, written = whole.clone(), 0
        for what, seen in PARTS.items():
            a, b = seen(whole), seen(c)
            others = {"add": (b,), "multiply": (b.contiguous(),), "subtract": (b[:1],), "negative": (), "exp": (), "square": ()}
            for name, rest in {**others, "less": (b,), "addcmul": (b, b, 2), "clip": (b, b), "divide": (c[0, 0],)}.items():
                kernel, xs = getattr(_cext, name), [getattr(x, "_buffer", x) for x in (a, *rest)]
                if (want := tried(kernel, *xs)) is None:
                    continue
                got = _cext.into(a._buffer, kernel, *xs)
                assert bits(got) == bits(want), (name, what)
                if got is a._buffer:
                    written += 1
                    a.copy_(seen(kept))
                assert bits(whole._buffer) == bits(kept._buffer), (name, what)  # nothing beside it
        assert written > 30
        windows = mt.arange(9.0).as_strided((4, 3), (2, 1))
        assert _cext.into(windows._buffer, _cext.negative, windows._buffer) is not windows._buffer  # of which some are written twice


@pytest.mark.parametrize("level", ["baseline", "avx2"])
def test_the_same_in_the_lines_of_older_processors(level: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", "elsewhere and (float or int64 or bool)"]
    done = subprocess.run(command, env={**os.environ, "MORTICE_ISA": level}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


@pytest.fixture
def rows() -> Any:
    with mt.use_backend("cpu_cext"):
        yield mt.arange(12.0).reshape(3, 4)


def test_what_does_not_fit_is_left_as_it_is(rows: Any) -> None:
    x = rows._buffer
    for other in (mt.zeros(4, 3), mt.zeros(3, 4, dtype=mt.float64), mt.zeros(4, 3).t(), mt.zeros(3, 8)[:, ::2]):
        with mt.use_backend("cpu_cext"):
            assert _cext.into(other._buffer, _cext.add, x, x) is not other._buffer
        assert not other.any()


def test_operands_that_lie_shifted_in_the_target_are_read_before(rows: Any) -> None:
    line = rows.reshape(-1)
    rest, first = line[1:]._buffer, line[:-1]._buffer
    found = _cext.into(rest, _cext.add, rest, first)
    assert found is not rest and _cext.to_host(found).tolist() == [2.0 * i - 1 for i in range(1, 12)]
    one = line[:1]._buffer
    found = _cext.into(line._buffer, _cext.add, line._buffer, one)  # an element of the target itself, repeated
    assert found is not line._buffer and line.tolist() == [float(i) for i in range(12)]


def test_a_target_takes_one_result_of_a_kernel_in_c_and_no_default_body(rows: Any) -> None:
    x = rows._buffer
    backend = rows._device.backend

    def twice(y: Any) -> Any:
        return _cext.add(_cext.multiply(y, 2.0), y)

    assert backend.into(x, twice, x) is not x and rows[0].tolist() == [0.0, 1.0, 2.0, 3.0]
    z = (rows[0, :2] + 1j)._buffer
    found = _cext.into(z, _cext.addcmul, z, z, z, 2)  # three kernels in one: the last of them may write there
    assert _cext.to_host(found).tolist() == [pytest.approx(v + 2 * v * v) for v in (1j, 1 + 1j)]


@pytest.mark.parametrize("name", ["scatter_write", "scatter_add", "index_add", "index_write"])
def test_few_values_are_written_without_a_copy_of_the_rest(rows: Any, name: str) -> None:
    kernel = getattr(_cext, name)
    with mt.use_backend("cpu_cext"):
        places, values = mt.tensor([2, 0]), mt.tensor([10.0, 20.0])
        vector = mt.arange(3.0)
    want = kernel(vector._buffer, places._buffer, values._buffer, axis=0)
    shown = rows[:, 1].copy_(vector)  # it need not be row-major
    assert _cext.into(shown._buffer, kernel, shown._buffer, places._buffer, values._buffer, axis=0) is shown._buffer
    assert shown.tolist() == _cext.to_host(want).tolist() and rows[:, 2].tolist() == [2.0, 6.0, 10.0]
    own = vector[:2]._buffer  # values in the memory that is written
    assert _cext.into(vector._buffer, kernel, vector._buffer, places._buffer, own, axis=0) is not vector._buffer


def test_errors_leave_the_target_and_what_follows(rows: Any) -> None:
    x = rows._buffer
    with pytest.raises(TypeError):
        _cext.into(x, _cext.add, x, "no number")
    assert _cext.add(x, x) is not x
    with pytest.raises(TypeError, match="into: expected an array, a kernel"):
        _cext.into(x)


def test_ctrl_c_waits_until_what_is_overwritten_is_whole() -> None:
    # Neighbours in Fibonacci's row take Euclid's algorithm longest: a kernel of some tenths of a second, which hears of
    # signals in between where its result is a new array.
    program = """
import signal
import mortice as mt
mt.set_backend("cpu_cext")
mt.set_num_threads(1)
x, y = (mt.full((1 << 24,), n) for n in (7540113804746346429, 4660046610375530309))
mt.ones(3, dtype=mt.int64).gcd_(y[:3])
def stop(*_): raise KeyboardInterrupt
signal.signal(signal.SIGALRM, stop)
signal.setitimer(signal.ITIMER_REAL, 0.02)
try:
    x.gcd_(y)
except KeyboardInterrupt:
    print("heard")
print("whole" if (x == 1).all() else "half done")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.splitlines() == ["heard", "whole"], done.stdout + done.stderr
