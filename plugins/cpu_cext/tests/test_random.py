"""Draws against the default bodies on the same backend, bit by bit, also in long draws and at odd offsets."""

from __future__ import annotations

import hashlib
import struct
import sys
from typing import Any

import pytest
from lists import array  # noqa: E402

import mortice as mt
from mortice.backends import Backend
from mortice.backends.mt19937 import MT19937
from mortice.dtype import by_name

SEEDS = [(0, 0), (42, 5), (2**64 - 1, 2**40 + 2)]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
# What torch.randn(17) gave after torch.manual_seed(5), exactly.
PYTORCHS = (
    1.8423298597335815, 1.2220252752304077, -0.33644935488700867, -0.9650601744651794, -0.1296626776456833,
    -0.6017656326293945, 0.14499856531620026, -0.14982716739177704, 2.614577054977417, 0.7792337536811829,
    -0.05833946168422699, -2.0304951667785645, 1.4829323291778564, 0.49403807520866394, 0.24921877682209015,
    1.7470314502716064, 0.7447769641876221,
)  # fmt: skip


def same(k: Any, x: Any, y: Any) -> None:
    assert k.dtype_of(x) is k.dtype_of(y) and k.shape_of(x) == k.shape_of(y)
    assert k.to_host(x).tobytes() == k.to_host(y).tobytes()


@pytest.mark.parametrize(("seed", "offset"), SEEDS)
@pytest.mark.parametrize("n", [0, 1, 3, 4, 63, 64, 65, 5000])
def test_words_are_those_of_the_default_body(k: Any, seed: int, offset: int, n: int) -> None:
    device = k.device("cpu")
    same(k, k.random_bits(seed, offset, n, device=device), Backend.random_bits(k, seed, offset, n, device=device))


@pytest.mark.parametrize(("seed", "offset"), SEEDS)
@pytest.mark.parametrize("kernel", ["random_uniform", "random_normal", "random_exponential"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_floats_are_those_of_the_default_body(k: Any, seed: int, offset: int, kernel: str, dtype: str) -> None:
    for shape in ((), (3, 5), (40001,)):
        mine = getattr(k, kernel)(seed, offset, shape, dtype=by_name(dtype), device=k.device("cpu"))
        same(k, mine, getattr(Backend, kernel)(k, seed, offset, shape, dtype=by_name(dtype), device=k.device("cpu")))


def test_a_million_normals_are_rounded_from_the_exact_ones(k: Any) -> None:
    device = k.device("cpu")
    exact = k.random_normal(9, 3, (1_000_000,), dtype=by_name("float64"), device=device)
    same(k, k.random_normal(9, 3, (1_000_000,), dtype=by_name("float32"), device=device), k.astype(exact, by_name("float32")))


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (-5, 6), (0, 2**32), (-(2**40), 2**41 + 3), (-(2**63), 2**63 - 1), (-(2**63), 2**63)]
)
def test_integers_are_those_of_the_default_body(k: Any, low: int, high: int) -> None:
    device = k.device("cpu")
    mine = k.random_integers(3, 7, low, high, (2001,), device=device)
    same(k, mine, Backend.random_integers(k, 3, 7, low, high, (2001,), device=device))


def test_masks_and_permutations_are_those_of_the_default_body(k: Any) -> None:
    device = k.device("cpu")
    for p in (0.0, 1.0, 0.5, 1e-3, 1 - 2**-53, -1.0, 2.0, float("nan")):
        same(k, k.random_bernoulli(1, 2, p, (3001,), device=device), Backend.random_bernoulli(k, 1, 2, p, (3001,), device=device))
    for dtype in FLOATS:
        p = array(k, [0.25, 0.5, -1.0, 3.0, float("nan"), 0.1], (6,), dtype)
        same(k, k.random_bernoulli(1, 2, p, (50, 6), device=device), Backend.random_bernoulli(k, 1, 2, p, (50, 6), device=device))
    for n in (0, 1, 2, 100, 70000):
        same(k, k.random_permutation(1, 2, n, device=device), Backend.random_permutation(k, 1, 2, n, device=device))


def test_every_instruction_set_gives_the_same_bits(k: Any) -> None:
    import os
    import subprocess

    code = (
        "import hashlib, mortice as mt\n"
        "mt.manual_seed(5)\n"
        "made = [mt.randn(5001), mt.rand(5001), mt.randn(5001, dtype=mt.float64), mt.randn(999, dtype=mt.bfloat16),\n"
        "        mt.empty(5001).exponential_(), mt.randint(0, 1000, (5001,)), mt.randperm(5001)]\n"
        "text = repr([t.to(mt.float64).tolist() for t in made])\n"
        "print(hashlib.sha256(text.encode()).hexdigest())\n"
    )
    seen = set()
    for level in ("baseline", "avx2", "avx512"):
        environment = {**os.environ, "MORTICE_BACKEND": "cpu_cext", "MORTICE_ISA": level}
        run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)
        assert run.returncode == 0, run.stderr
        seen.add(run.stdout.split()[-1])
    assert len(seen) == 1


def test_threads_do_not_change_a_draw(k: Any) -> None:
    own, seen = mt.get_num_threads(), set()
    for threads in (1, 2, 3):
        mt.set_num_threads(threads)
        try:
            drawn = k.random_normal(1, 1, (100_003,), dtype=by_name("float32"), device=k.device("cpu"))
            seen.add(k.to_host(drawn).tobytes())
        finally:
            mt.set_num_threads(own)
    assert len(seen) == 1


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_what_is_no_seed_is_refused(k: Any, seed: int) -> None:
    with pytest.raises((ValueError, OverflowError)):
        k.random_bits(seed, 0, 4, device=k.device("cpu"))


@pytest.fixture
def twins(k: Any) -> tuple[MT19937, MT19937, Any]:
    """An engine that draws with the extension's twister, one that draws with Python's, and a backend without a twister."""

    class Plain(type(k)):  # type: ignore[misc]
        twister = None

    return MT19937(5), MT19937(5), Plain()


def test_the_twister_draws_what_the_engine_draws_with_pythons(k: Any, twins: tuple[MT19937, MT19937, Any]) -> None:
    mine, plain, slow = twins
    device, float32, float64 = k.device("cpu"), by_name("float32"), by_name("float64")
    for n in (0, 1, 5, 623, 40001):
        for dtype in map(by_name, FLOATS):
            same(k, *[e.random_uniform(b, device, (n,), dtype) for e, b in ((mine, k), (plain, slow))])
        for low, high, one in ((0, 10, False), (-5, 2**30, True), (-(2**62), 2**62, False), (-(2**63), 2**63, False)):
            same(k, *[e.random_integers(b, device, (n,), low, high, one) for e, b in ((mine, k), (plain, slow))])
        same(k, *[e.random_permutation(b, device, (n,)) for e, b in ((mine, k), (plain, slow))])
        same(k, *[e.random_exponential(b, device, (n,), float32) for e, b in ((mine, k), (plain, slow))])
        for dtype, near in ((float32, 2e-6), (float64, 1e-13)):
            one_, other = (e.random_normal(b, device, (n,), dtype) for e, b in ((mine, k), (plain, slow)))
            gaps = k.abs(k.subtract(one_, other))
            assert not n or k.item(k.max(gaps)) < near
        shapes = [0.0, -1.0, 1e-3, 0.3, 1.0, 2.5, 1e4] * (n % 1000)
        assert repr(mine.log_gammas(k, shapes)) == repr(plain.log_gammas(slow, shapes))  # where nan is as nan
        assert mine.state(5) == plain.state(5)


def test_the_words_go_on_where_the_backend_changes(k: Any, twins: tuple[MT19937, MT19937, Any]) -> None:
    mine, plain, slow = twins
    for backend in (k, slow, k, slow, slow):
        drawn = [e.random_uniform(b, k.device("cpu"), (100,), by_name("float32")) for e, b in ((mine, backend), (plain, slow))]
        same(k, *drawn)
    assert mine.state(5) == plain.state(5)


def test_normal_numbers_are_pytorchs_to_the_bit(k: Any) -> None:
    engine, device = MT19937(5), k.device("cpu")
    drawn = k.to_host(engine.random_normal(k, device, (17,), by_name("float32"))).tobytes()
    assert struct.unpack("17f", drawn) == PYTORCHS
    engine.seed(5)
    many = k.to_host(engine.random_normal(k, device, (40001,), by_name("float32"))).tobytes()
    assert hashlib.sha256(many).hexdigest() == "08b85d0dfff215d97215cecd3b4f594439685a4a4b12afd36c7a7f4dd4a2d8f9"


def test_a_twister_refuses_a_state_that_is_none() -> None:
    from mortice_cpu_cext import _cext

    for state in (b"x" * 2500, bytearray(2499)):
        with pytest.raises(TypeError, match="twister: expected its 2500 bytes"):
            _cext._twister_bytes(state, 4)
    with pytest.raises(ValueError, match="a place from 0 to 624; got 4294967295"):
        _cext._twister_bytes(bytearray(b"\xff" * 2500), 4)
    with pytest.raises(ValueError, match="twister_bytes: expected"):
        _cext._twister_bytes(bytearray(2500), 3)
