"""The random stream against Random123 and NumPy, the draws against their definitions, and generators.

The kernels under test are the default bodies, on NumPy as a plain namespace.
"""

from __future__ import annotations

import copy
import json
import math
import pickle
import threading
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")

import mortice as mt  # noqa: E402
from mortice import random  # noqa: E402
from mortice.backends import NamespaceBackend  # noqa: E402
from mortice.backends.philox import philox  # noqa: E402
from mortice.dtype import (  # noqa: E402
    bfloat16,
    by_name,
    float16,
    float32,
    float64,
)

GOLDEN = Path(__file__).parents[2] / "conformance" / "mortice_conformance" / "golden_random.json"
SEEDS = (0, 1, 67280421310721, 2**63, 2**64 - 1)
M = 2**64 - 1


class _Namespace:
    """NumPy, with bfloat16 where ml_dtypes is installed."""

    def __init__(self) -> None:
        try:
            from ml_dtypes import bfloat16 as native
        except ImportError:
            return
        self.bfloat16 = native

    def __getattr__(self, name: str) -> Any:
        if name == "bfloat16":
            raise AttributeError(name)
        return getattr(np, name)


class Plain(NamespaceBackend):
    """NumPy with the default random kernels."""

    name = "philox_test"

    def __init__(self) -> None:
        super().__init__(_Namespace(), {"cpu": None})

    def dtype_of(self, x: Any) -> Any:
        return by_name(x.dtype.name)

    def argsort(self, x: Any, *, axis: int, descending: bool = False) -> Any:
        # NumPy itself has no `descending`, and no draw asks for it.
        return np.argsort(x, axis=axis, stable=True)


class SmallChunks(Plain):
    """The same, four words at a time."""

    name = "philox_test_chunks"
    random_chunk = 4


class NoFloat64(Plain):
    """The same, on a device without float64."""

    name = "philox_test_float32"

    def dtypes(self, device: Any) -> Any:
        return super().dtypes(device) - {float64}

    def astype(self, x: Any, dtype: Any) -> Any:
        assert dtype is not float64
        return super().astype(x, dtype)


class GivenWords(Plain):
    """The draws, from words of our choice."""

    name = "philox_test_words"

    def __init__(self, words: Any) -> None:
        super().__init__()
        self.words = np.asarray(words, np.uint64)

    def random_bits(self, seed: int, offset: int, n: int, *, device: Any) -> Any:
        return self.words[offset : offset + n]


K = Plain()
CPU = K.device("cpu")


def draws(k: Any, seed: int = 9, offset: int = 3, shape: tuple[int, ...] = (3, 7)) -> dict[str, Any]:
    """Make one of each draw."""
    d, n = k.device("cpu"), math.prod(shape)
    return {
        "bits": k.random_bits(seed, offset, n, device=d),
        "uniform": k.random_uniform(seed, offset, shape, dtype=float32, device=d),
        "normal": k.random_normal(seed, offset, shape, dtype=float32, device=d),
        "exponential": k.random_exponential(seed, offset, shape, dtype=float32, device=d),
        "integers": k.random_integers(seed, offset, -3, 40, shape, device=d),
        "bernoulli": k.random_bernoulli(seed, offset, 0.3, shape, device=d),
        "permutation": k.random_permutation(seed, offset, n, device=d),
    }


def numpy_words(seed: int, offset: int, n: int) -> Any:
    """Return words of the stream from NumPy's generator."""
    return np.random.Philox(key=seed).random_raw(offset + n)[offset:]


def probe_words() -> Any:
    """Return random words, and words near both ends and the middle at every scale."""
    rng = np.random.default_rng(1)
    scales = np.array([int(rng.integers(1 << e, 2 << e)) for e in range(62) for _ in range(8)], np.uint64)
    middle = np.uint64(1 << 63)
    edges = np.array([0, 1, M, M - 1, 1 << 63, (1 << 63) - 1], np.uint64)
    return np.concatenate(
        [rng.integers(0, M, 3000, np.uint64), scales, ~scales, middle + scales, middle - scales, edges]
    )


# ---- the stream ----


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        (
            [0, 0, 0, 0],
            [0, 0],
            [0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B],
        ),
        (
            [M, M, M, M],
            [M, M],
            [0x87B092C3013FE90B, 0x438C3C67BE8D0224, 0x9CC7D7C69CD777B6, 0xA09CAEBF594F0BA0],
        ),
        (
            [0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0, 0x082EFA98EC4E6C89],
            [0x452821E638D01377, 0xBE5466CF34E90C6C],
            [0xA528F45403E61D95, 0x38C72DBD566E9788, 0xA5A1610E72FD18B5, 0x57BD43B5E52B7FE6],
        ),
    ],
)
def test_rounds_give_the_known_answers_of_random123(counter: Any, key: Any, expected: Any) -> None:
    words = np.array(counter, np.uint64).reshape(2, 2, 1)
    even, odd = philox(K, words[:, 0], words[:, 1], key, CPU)
    assert [int(w) for w in (even[0, 0], odd[0, 0], even[1, 0], odd[1, 0])] == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_bits_are_those_of_numpy(seed: int) -> None:
    expected = numpy_words(seed, 0, 60)
    for offset in (0, 1, 2, 3, 4, 5, 39):
        for n in (0, 1, 3, 4, 5, 20):
            words = K.random_bits(seed, offset, n, device=CPU)
            assert words.dtype == np.uint64 and words.shape == (n,)
            assert np.array_equal(words, expected[offset : offset + n])


def test_bits_far_into_the_stream_are_those_of_numpy() -> None:
    for offset in (2**32 - 1, 2**34 - 6, 2**63 + 2, 2**64 - 12):
        generator = np.random.Philox(key=[5, 0], counter=offset // 4)
        expected = generator.random_raw(offset % 4 + 9)[offset % 4 :]
        assert np.array_equal(K.random_bits(5, offset, 9, device=CPU), expected)


def test_draws_do_not_depend_on_the_chunk() -> None:
    chunked = draws(SmallChunks())
    for name, value in draws(K).items():
        assert np.array_equal(value, chunked[name]), name


def test_draws_longer_than_a_chunk_are_whole() -> None:
    n = K.random_chunk + 77
    assert np.array_equal(K.random_bits(3, 1, n, device=CPU), numpy_words(3, 1, n))
    long = K.random_normal(3, 1, (n,), dtype=float32, device=CPU)
    last = K.random_normal(3, 1 + n - 100, (100,), dtype=float32, device=CPU)
    assert np.array_equal(long[-100:], last)


def test_element_depends_on_its_word_alone() -> None:
    one, other = draws(K, offset=3, shape=(3, 7)), draws(K, offset=8, shape=(2, 2, 4))
    for name in one:
        if name != "permutation":
            assert np.array_equal(one[name].reshape(-1)[5:21], other[name].reshape(-1)), name


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1,)])
def test_draws_have_the_shape_asked_for(shape: tuple[int, ...]) -> None:
    for name, value in draws(K, shape=shape).items():
        assert value.shape == ((math.prod(shape),) if name in ("bits", "permutation") else shape), name


def test_golden_vectors() -> None:
    records = json.loads(GOLDEN.read_text())["records"]
    assert len(records) > 100
    for record in records:
        arguments = {n: by_name(v) if n == "dtype" else v for n, v in record["arguments"].items()}
        if arguments.get("dtype", float32) not in K.dtypes(CPU):
            continue
        got = getattr(K, record["draw"])(int(record["seed"], 16), record["offset"], **arguments, device=CPU)
        assert encode(got) == record["values"], {
            n: record[n] for n in ("draw", "seed", "offset", "arguments")
        }


def encode(x: Any) -> list[Any]:
    """Return the elements as the golden vectors spell them: floats and words by their bits in hexadecimal."""
    flat = np.ascontiguousarray(x).reshape(-1)
    if flat.dtype.kind in "bi":
        return [int(v) for v in flat]
    return [format(int(v), f"0{2 * flat.itemsize}x") for v in flat.view(f"u{flat.itemsize}")]


@pytest.mark.parametrize("seed", SEEDS)
def test_numpy_override_gives_the_same_bits(seed: int) -> None:
    fast = pytest.importorskip("mortice_cpu_numpy.random").random_bits
    for offset in (0, 1, 2, 3, 4, 4098, 2**40 + 1, 2**64 - 12):
        for n in (0, 1, 4, 11):
            words = fast(K, seed, offset, n, device=CPU)
            assert words.dtype == np.uint64 and words.shape == (n,)
            assert np.array_equal(words, K.random_bits(seed, offset, n, device=CPU))


def test_numpy_override_is_safe_in_threads() -> None:
    fast = pytest.importorskip("mortice_cpu_numpy.random").random_bits
    wrong = []

    def work(seed: int) -> None:
        expected = numpy_words(seed, 0, 5000)
        for i in range(100):
            if not np.array_equal(fast(K, seed, i, 4900, device=CPU), expected[i : i + 4900]):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


# ---- the draws ----


def test_uniform_is_the_leading_bits_of_the_word() -> None:
    words = probe_words()
    k, n = GivenWords(words), len(words)
    for dtype, bits in ((float64, 53), (float32, 24), (float16, 11), (bfloat16, 8)):
        if dtype not in k.dtypes(CPU):
            continue
        u = k.random_uniform(0, 0, (n,), dtype=dtype, device=CPU)
        assert u.dtype == k.native(dtype)
        assert np.array_equal(u.astype(np.float64), (words >> np.uint64(64 - bits)) * 2.0**-bits)
        assert float(u.max()) == 1 - 2.0**-bits and float(u.min()) == 0


def test_uniform_float64_is_what_numpy_draws() -> None:
    expected = np.random.Generator(np.random.Philox(key=[4, 0])).random(50)
    assert np.array_equal(K.random_uniform(4, 0, (50,), dtype=float64, device=CPU), expected)


def test_normal_is_the_quantile_of_the_uniform() -> None:
    words = probe_words()
    z = GivenWords(words).random_normal(0, 0, (len(words),), dtype=float64, device=CPU)
    worst_tail = worst_centre = 0.0
    for word, value in zip(words.tolist(), z.tolist()):
        steps = ((word >> 10) | 1) - 2**53
        assert (value > 0) == (steps > 0)
        # The distribution function magnifies an error of z by z^2 in the tails, hence the two bounds.
        if abs(value) > 0.6:
            tail = (2**53 - abs(steps)) * 2.0**-54
            worst_tail = max(worst_tail, abs(math.erfc(abs(value) / math.sqrt(2)) / 2 / tail - 1) / value**2)
        else:
            centre = steps * 2.0**-54
            worst_centre = max(worst_centre, abs(math.erf(value / math.sqrt(2)) / 2 / centre - 1))
    assert worst_tail < 1.5e-14 and worst_centre < 5e-15
    assert z.max() == -z.min() == 8.292361075813599


def test_normal_is_odd_about_the_middle_of_the_words() -> None:
    words = probe_words()
    for dtype in (float64, float32):
        plus = GivenWords(words).random_normal(0, 0, (len(words),), dtype=dtype, device=CPU)
        minus = GivenWords(~words).random_normal(0, 0, (len(words),), dtype=dtype, device=CPU)
        assert np.array_equal(plus, -minus)


@pytest.mark.parametrize("draw", ["random_normal", "random_exponential"])
def test_narrow_floats_are_float64_rounded(draw: str) -> None:
    wide = getattr(K, draw)(1, 2, (999,), dtype=float64, device=CPU)
    single = getattr(K, draw)(1, 2, (999,), dtype=float32, device=CPU)
    half = getattr(K, draw)(1, 2, (999,), dtype=float16, device=CPU)
    assert np.array_equal(single, wide.astype(np.float32)) and np.array_equal(half, single.astype(np.float16))
    if bfloat16 in K.dtypes(CPU):
        brain = getattr(K, draw)(1, 2, (999,), dtype=bfloat16, device=CPU)
        assert np.array_equal(brain, single.astype(brain.dtype))


@pytest.mark.parametrize(("draw", "bound"), [("random_normal", 24), ("random_exponential", 10)])
def test_device_without_float64_draws_nearly_the_same(draw: str, bound: int) -> None:
    words = probe_words()
    exact, narrow = GivenWords(words), NoFloat64()
    narrow.random_bits = exact.random_bits
    a = getattr(exact, draw)(0, 0, (len(words),), dtype=float32, device=exact.device("cpu"))
    b = getattr(narrow, draw)(0, 0, (len(words),), dtype=float32, device=narrow.device("cpu"))
    assert b.dtype == np.float32
    assert np.abs(a.view(np.int32).astype(int) - b.view(np.int32)).max() <= bound


def test_device_without_float64_draws_the_rest_bit_for_bit() -> None:
    narrow = draws(NoFloat64())
    for name, value in draws(K).items():
        assert name in ("normal", "exponential") or np.array_equal(value, narrow[name]), name


def test_exponential_is_minus_log_of_the_uniform() -> None:
    words = probe_words()
    got = GivenWords(words).random_exponential(0, 0, (len(words),), dtype=float64, device=CPU)
    u = [((w >> 11) | 1) * 2.0**-53 for w in words.tolist()]
    # 1 - u is exact, and each function is the accurate one on its side.
    expected = [-math.log1p(-x) if x < 0.5 else -math.log(1 - x) for x in u]
    assert np.abs(got / expected - 1).max() < 2e-15
    assert got.min() == 2.0**-53 and got.max() == 36.73680056967712


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (0, 1),
        (0, 2),
        (-7, 3),
        (0, 2**31),
        (-5, 2**32 - 5),
        (0, 2**32 + 1),
        (10**15, 10**15 + 12345678901),
        (-(2**63), 0),
        (0, 2**63 - 1),
        (-(2**63), 1),
        (-(2**62) - 5, 2**63 - 1),
        (-(2**63), 2**63 - 1),
        (-(2**63), 2**63),
    ],
)
def test_integers_are_the_scaled_word(low: int, high: int) -> None:
    words = probe_words()
    got = GivenWords(words).random_integers(0, 0, low, high, (len(words),), device=CPU)
    assert got.dtype == np.int64
    assert got.tolist() == [low + (w * (high - low) >> 64) for w in words.tolist()]


def test_permutation_is_the_order_of_the_words() -> None:
    for n in (0, 1, 2, 1000):
        order = K.random_permutation(6, 2, n, device=CPU)
        assert order.dtype == np.int64 and sorted(order.tolist()) == list(range(n))
        assert np.array_equal(order, np.argsort(numpy_words(6, 2, n), kind="stable"))
    assert GivenWords([5, 3, 5, 3]).random_permutation(0, 0, 4, device=CPU).tolist() == [1, 3, 0, 2]


def test_bernoulli_is_the_uniform_below_p() -> None:
    words = probe_words()
    k, n = GivenWords(words), len(words)
    u = k.random_uniform(0, 0, (n,), dtype=float64, device=CPU)
    for p in (0.0, 1.0, 0.5, 0.1, 1 - 2.0**-24, 2.0**-30, 1e-17, 0.75):
        for dtype in (float64, float32, float16, bfloat16):
            if dtype not in k.dtypes(CPU):
                continue
            buffer = k.full((), p, dtype=dtype, device=CPU)
            mask = k.random_bernoulli(0, 0, buffer, (n,), device=CPU)
            assert mask.dtype == bool and mask.shape == (n,)
            assert np.array_equal(mask, u < float(buffer))
            assert np.array_equal(mask, k.random_bernoulli(0, 0, float(buffer), (n,), device=CPU))


def test_bernoulli_takes_p_of_every_element() -> None:
    p = np.linspace(0, 1, 4, dtype=np.float32)
    mask = K.random_bernoulli(2, 0, p, (500, 4), device=CPU)
    u = K.random_uniform(2, 0, (500, 4), dtype=float64, device=CPU)
    assert np.array_equal(mask, u < p.astype(np.float64))


def test_bernoulli_draws_into_any_dtype() -> None:
    p = mt.tensor([1.0, 0.0, 1.0])
    for dtype in (mt.bool, mt.uint8, mt.int64, mt.float16, mt.float64):
        out = mt.full((3,), 1, dtype=dtype)
        assert mt.bernoulli(p, out=out) is out and out.tolist() == [1, 0, 1] and out.dtype is dtype


def test_draws_stay_in_the_graph_with_gradients_of_zero() -> None:
    p, inf = mt.tensor([0.2, 0.7], requires_grad=True), mt.tensor([math.inf, 1.0], requires_grad=True)
    for made in (
        mt.normal(p, 1.0), mt.normal(0.0, p), mt.normal(p.detach(), p), mt.bernoulli(p), mt.poisson(p), mt.normal(p[:, None], p)
    ):  # fmt: skip
        assert mt.autograd.grad(made.sum(), p)[0].tolist() == [0, 0]
    assert mt.bernoulli(inf, 0.5).isfinite().all() and mt.bernoulli(inf, 0.5).requires_grad
    with mt.no_grad():
        assert not mt.normal(p, 1.0).requires_grad


def test_normals_refuse_a_spread_below_zero() -> None:
    with pytest.raises(RuntimeError, match="normal expects std >= 0.0, but found std -2.0"):
        mt.normal(0.0, -2.0, (2,))
    with pytest.raises(RuntimeError, match="normal expects all elements of std >= 0.0, but found std -2.0"):
        mt.normal(0.0, mt.tensor([1.0, -2.0]))


@pytest.mark.parametrize(("p", "share"), [(-0.5, 0), (1.5, 1), (math.nan, 0), (math.inf, 1), (0, 0), (1, 1)])
def test_bernoulli_clips_p(p: float, share: float) -> None:
    assert K.random_bernoulli(0, 0, p, (50,), device=CPU).mean() == share
    assert K.random_bernoulli(0, 0, np.asarray([p], np.float32), (50,), device=CPU).mean() == share


def test_draws_have_the_moments_of_their_distributions() -> None:
    n = 200_000
    for draw, moments in (
        ("random_uniform", (1 / 2, 1 / 3, 1 / 4, 1 / 5)),
        ("random_normal", (0, 1, 0, 3)),
        ("random_exponential", (1, 2, 6, 24)),
    ):
        x = getattr(K, draw)(2024, 0, (n,), dtype=float64, device=CPU)
        for power, moment in enumerate(moments, 1):
            y = x**power
            assert abs(y.mean() - moment) < 5 * y.std() / math.sqrt(n), (draw, power)


# ---- generators ----


def test_generator_starts_as_in_torch() -> None:
    g = random.Generator()
    assert g.initial_seed() == 67280421310721 and g.offset == 0 and str(g.device) == "cpu"
    assert str(random.Generator("cuda:1").device) == "cuda:1"


def test_take_reserves_words_in_order() -> None:
    g = random.Generator().manual_seed(5)
    assert [g.take(3), g.take(0), g.take(4), g.take(1)] == [(5, 0), (5, 3), (5, 3), (5, 7)]
    assert g.offset == 8
    assert g.manual_seed(5) is g and g.take(1) == (5, 0)


def test_take_is_safe_in_threads() -> None:
    g = random.Generator()
    starts: list[int] = []
    threads = [
        threading.Thread(target=lambda: starts.extend([g.take(3)[1] for _ in range(2000)])) for _ in range(4)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(starts) == list(range(0, 24000, 3)) and g.offset == 24000


def test_take_refuses_more_than_the_stream_has() -> None:
    g = random.Generator()
    g.take(2**64 - 10)
    with pytest.raises(RuntimeError) as error:
        g.take(10)
    assert str(error.value) == (
        "Generator.take: expected 0 to 9 words, all the stream has left; got 10. Seed the generator anew."
    )
    assert g.take(9) == (random.DEFAULT_SEED, 2**64 - 10)


def test_negative_seeds_wrap() -> None:
    g = random.Generator()
    assert g.manual_seed(-1).initial_seed() == 2**64 - 1
    assert g.manual_seed(-(2**63)).initial_seed() == 2**63
    assert g.manual_seed(2**64 - 1).initial_seed() == 2**64 - 1


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1])
def test_seed_out_of_range_is_refused(seed: int) -> None:
    for set_seed in (random.Generator().manual_seed, random.manual_seed):
        with pytest.raises(ValueError) as error:
            set_seed(seed)
        told = f"manual_seed: Overflow when unpacking long long; expected an integer from -2**63 to 2**64 - 1, got {seed}."
        assert str(error.value) == told


@pytest.mark.parametrize("seed", [1.5, "3", None])
def test_seed_that_is_no_integer_is_refused(seed: Any) -> None:
    with pytest.raises((RuntimeError, TypeError)) as error:
        random.Generator().manual_seed(seed)
    assert str(error.value) == f"manual_seed: expected an integer; got {seed!r} ({type(seed).__name__})."


def test_seed_from_the_system_differs() -> None:
    g = random.Generator()
    a, b = g.seed(), g.seed()
    assert a != b and g.initial_seed() == b and 0 <= b < 2**53 and g.offset == 0


def test_state_comes_back() -> None:
    g = random.Generator().manual_seed(-3)
    g.take(1000)
    state, shown = g.state_bytes(), g.get_state()
    g.manual_seed(1)
    for form in (shown, state, bytearray(state), memoryview(state), list(state), np.frombuffer(state, np.uint8)):
        other = random.Generator()
        other.set_state(form)
        assert other.take(1) == (2**64 - 3, 1000)


@pytest.mark.parametrize("state", [5, "text", None, []])
def test_state_of_another_type_is_refused(state: Any) -> None:
    with pytest.raises(TypeError) as error:
        random.Generator().set_state(state)
    expected = f"set_state: expected the bytes that get_state gave; got {type(state).__name__}."
    assert str(error.value) == expected


def test_state_of_another_library_is_refused() -> None:
    with pytest.raises(RuntimeError) as error:
        random.Generator().set_state(bytes(16))
    assert str(error.value) == (
        "set_state: expected the 24 bytes of get_state, beginning with b'philox64', or the 5056 of a CPU "
        r"generator of PyTorch; got 16 bytes beginning with b'\x00\x00\x00\x00\x00\x00\x00\x00'. "
        "States of other libraries do not carry over."
    )


def test_copies_of_a_generator_go_their_own_way() -> None:
    g = random.Generator("cuda:0").manual_seed(8)
    g.take(5)
    for other in (g.clone_state(), copy.deepcopy(g), pickle.loads(pickle.dumps(g))):
        assert str(other.device) == "cuda:0" and other.take(2) == (8, 5)
    assert g.take(1) == (8, 5)
    assert repr(g) == "Generator(device='cuda:0', seed=8, offset=6)"


def test_module_functions_use_the_default_generator() -> None:
    with random.fork_rng():
        assert random.manual_seed(12) is random.default_generator and random.initial_seed() == 12
        random.default_generator.take(4)
        state = random.get_rng_state()
        assert random.seed() == random.initial_seed()
        random.set_rng_state(state)
        assert random.default_generator.take(0) == (12, 4)


def test_fork_rng_restores_the_default_generator() -> None:
    before = random.default_generator.state_bytes()
    with pytest.raises(KeyError), random.fork_rng(devices=[]):
        random.manual_seed(1)
        random.default_generator.take(7)
        raise KeyError
    assert random.default_generator.state_bytes() == before
    with random.fork_rng(enabled=False):
        random.default_generator.take(1)
    assert random.default_generator.state_bytes() != before
    random.set_rng_state(before)


def test_worker_seeds_count_up_and_wrap() -> None:
    assert [random.worker_seed(10, i) for i in range(3)] == [10, 11, 12]
    assert random.worker_seed(-1, 1) == 0
    with pytest.raises(ValueError) as error:
        random.worker_seed(0, -1)
    assert str(error.value) == "worker_seed: expected a worker number from 0; got -1."


@pytest.mark.oracle
def test_seeds_are_read_as_in_torch() -> None:
    torch = pytest.importorskip("torch")
    assert random.Generator().initial_seed() == torch.Generator().initial_seed()
    for seed in (0, 7, -1, -(2**63), 2**63, 2**64 - 1):
        assert (
            random.Generator().manual_seed(seed).initial_seed()
            == torch.Generator().manual_seed(seed).initial_seed()
        )
    for seed in (2**64, -(2**63) - 1, 1.5, "3", None):
        with pytest.raises(Exception) as theirs:
            torch.Generator().manual_seed(seed)
        with pytest.raises(type(theirs.value)):
            random.Generator().manual_seed(seed)


@pytest.mark.skipif(mt.ones(1).device.backend.count_terms is None, reason="the backend has no kernel for it")
@pytest.mark.parametrize("dtype", [mt.float32, mt.float64])
def test_counts_are_the_same_in_one_step(dtype: Any, monkeypatch: Any) -> None:
    rate, p = mt.linspace(0, 12, 400, dtype=dtype), mt.linspace(0, 1, 400, dtype=dtype)
    draws = lambda: [mt.manual_seed(3) and f().tolist() for f in (
        lambda: mt.poisson(rate), lambda: mt.poisson(rate[:8].reshape(2, 4).t()), lambda: mt.poisson(rate[1]), lambda: mt.poisson(rate[:0]),
        lambda: mt.binomial((rate * 5).floor(), p),
    )]  # fmt: skip
    found = draws()
    monkeypatch.setattr(rate.device.backend, "count_terms", None, raising=False)
    assert found == draws()
