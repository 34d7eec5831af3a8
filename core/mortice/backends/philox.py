"""Random kernels: the Philox4x64-10 stream, and the draws made from it, in required kernels alone.

The stream is a sequence of 64-bit words fixed by (seed, offset) and nothing else. Word i is lane i % 4 of
block i // 4; block b is Philox4x64-10 of the counter (b + 1, 0, 0, 0) under the key (seed, 0), so the
stream equals `numpy.random.Philox(key=seed).random_raw()`. Every draw takes exactly one word for each
element of its result, in row-major order: element i comes from word offset + i alone, whatever the shape,
the threads or the device.

All of it is exact integer arithmetic, exact conversions and correctly rounded + - * / sqrt, so results
agree to the bit. A backend that compiles or overrides these bodies keeps each rounding, so it fuses no
multiplication with an addition. Seeds, offsets and generator objects are in `mortice.random`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from mortice.device import Device
from mortice.dtype import DType, bfloat16, float16, float32, float64, int64, uint8, uint64
from mortice.shape import prod

ROUNDS = 10
MULTIPLIERS = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
KEY_STEPS = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
_LOW = 0xFFFFFFFF

# Leading bits of a word that make a uniform number: what the significand holds, so 1.0 never comes out.
_UNIFORM_BITS = {float16: 11, bfloat16: 8, float32: 24, float64: 53}

# The normal quantile is q P(d) / Q(d), with q = u - 1/2 and d = 1 - (1 - 4 q^2)^(1/64): one formula from
# the centre to the far tails, because the 64th root (six square roots) flattens the logarithm that a
# quantile needs. P and Q are a least-maximum fit of relative error 1.4e-15, lowest power first.
_NORMAL_P = (
    2.506628274630997, 41.610024223070944, 699.5294491076273, 7537.374555685381, 64140.241267262885,
    430809.54424461897, 2240105.7098528417, 9014238.549845701, 28736077.077634394, 73629719.93826562,
    61669567.52989514, -89168847.79872355, -243988112.49771804, 161201971.9512388,
)  # fmt: skip
_NORMAL_Q = (
    1.0, -0.15516286804290316, 219.91484869490563, -36.39518557998456, 15925.751732967647, -4784.370427590704,
    434697.29352078, -178485.48220446563, 4528057.629661268, -2577199.882885755, 8837773.747934662,
    -22756416.223380495, 11736616.753918856,
)  # fmt: skip

# atanh(sqrt(v)) / sqrt(v) for v up to 0.079: a fit of relative error 7e-17, lowest power first.
_ATANH = (
    1.0, 0.333333333333209, 0.20000000004237664, 0.14285713730722088, 0.11111147425932162,
    0.09089579432616766, 0.07720723739890376, 0.0631712834555425, 0.08129664303566268,
)  # fmt: skip


class RandomKernels:
    """Words, and draws from them. `random_bits` is the one to override first."""

    # Elements worked on at a time: few enough for a CPU's cache, and a bound on temporary memory. No result
    # depends on it; an accelerator sets it higher.
    random_chunk = 1 << 15

    def random_bits(self: Any, seed: int, offset: int, n: int, *, device: Device) -> Any:
        """Return words offset to offset + n of the seed's stream, as uint64."""
        first, skip = divmod(offset, 4)
        blocks = -(-(skip + n) // 4)
        step = max(self.random_chunk // 4, 1)
        parts = []
        for start in range(0, max(blocks, 1), step):
            count = min(step, blocks - start)
            counter = self.add(self.arange(0, count, 1, dtype=uint64, device=device), first + start + 1)
            parts.append(_blocks(self, counter, count, seed, device))
        words = parts[0] if len(parts) == 1 else self.concat(parts, axis=0)
        return words if n == 4 * blocks else self.getitem(words, (slice(skip, skip + n),))

    def random_uniform(
        self: Any, seed: int, offset: int, shape: Sequence[int], *, dtype: DType, device: Device
    ) -> Any:
        """Draw from [0, 1).

        A float64 is a word's leading 53 bits, a float32 24, a float16 11 and a bfloat16 8: the narrow
        results are the float64 rounded towards zero.
        """
        bits = _UNIFORM_BITS[dtype]
        wide = float64 if dtype is float64 else float32

        def convert(words: Any) -> Any:
            top = self.astype(self.bitwise_right_shift(words, 64 - bits), wide)
            return _narrow(self, self.multiply(top, 2.0**-bits), wide, dtype)

        return self._random_draw(seed, offset, shape, device, convert)

    def random_normal(
        self: Any, seed: int, offset: int, shape: Sequence[int], *, dtype: DType, device: Device
    ) -> Any:
        """Draw from the standard normal: the quantile at the middle of the float64 uniform's cell.

        It lies within +-8.3. The float64 has a relative error below 4e-15; the float32 is that number
        rounded (0.501 ulp), and float16 and bfloat16 are the float32 rounded. A device without float64
        works in float32 and stays within 24 ulp of the others' float32.
        """
        work = device.widest_float
        convert = lambda words: _narrow(self, _normal(self, words, work), work, dtype)
        return self._random_draw(seed, offset, shape, device, convert)

    def random_exponential(
        self: Any, seed: int, offset: int, shape: Sequence[int], *, dtype: DType, device: Device
    ) -> Any:
        """Draw from the exponential distribution of rate 1, in 2^-53 to 36.8.

        The float64 has a relative error below 2e-15. The narrower dtypes are made from it as in
        `random_normal`; a device without float64 stays within 10 ulp.
        """
        work = device.widest_float
        convert = lambda words: _narrow(self, _exponential(self, words, work), work, dtype)
        return self._random_draw(seed, offset, shape, device, convert)

    def random_integers(
        self: Any, seed: int, offset: int, low: int, high: int, shape: Sequence[int], *, device: Device
    ) -> Any:
        """Draw int64 from low to high - 1, as low + floor(word (high - low) / 2^64).

        No value's probability differs from 1 / (high - low) by 2^-64 or more.
        """
        convert = lambda words: _integers(self, words, low, high - low)
        return self._random_draw(seed, offset, shape, device, convert)

    def random_permutation(self: Any, seed: int, offset: int, n: int, *, device: Device) -> Any:
        """Draw a permutation of 0 to n - 1, int64: the stable argsort of n words."""
        return self.argsort(self.random_bits(seed, offset, n, device=device), axis=0)

    def random_bernoulli(
        self: Any, seed: int, offset: int, p: Any, shape: Sequence[int], *, device: Device
    ) -> Any:
        """Draw a bool mask, True where the float64 uniform is below p.

        p is a number, or a floating point buffer that broadcasts to the shape. A p outside [0, 1] counts as
        the nearer end, and nan as 0. Equal numbers p of any dtype give one mask.
        """
        if isinstance(p, (bool, int, float)):
            limit = math.ceil(min(p, 1.0) * 2.0**53) if p > 0 else 0
            below = lambda words: self.less(self.bitwise_right_shift(words, 11), limit)
            return self._random_draw(seed, offset, shape, device, below)
        words = self.reshape(self.random_bits(seed, offset, prod(shape), device=device), tuple(shape))
        return self.less(self.bitwise_right_shift(words, 11), _threshold(self, p))

    def _random_draw(
        self: Any, seed: int, offset: int, shape: Sequence[int], device: Device, convert: Callable[[Any], Any]
    ) -> Any:
        """Convert the words of a result, a chunk at a time."""
        n = prod(shape)
        step = self.random_chunk
        if n >> 32:  # that there is no memory for it is better known now than when the chunks have filled it
            self.full((n,), 0, dtype=uint8, device=device)
        parts = [
            convert(self.random_bits(seed, offset + start, min(step, n - start), device=device))
            for start in range(0, max(n, 1), step)
        ]
        return self.reshape(parts[0] if len(parts) == 1 else self.concat(parts, axis=0), tuple(shape))


def _blocks(k: Any, counter: Any, count: int, seed: int, device: Device) -> Any:
    """Return the words of the blocks with those counters, in order."""
    zero = k.full((1, count), 0, dtype=uint64, device=device)
    even, odd = philox(k, k.concat([k.reshape(counter, (1, count)), zero], axis=0), zero, (seed, 0), device)
    lanes = k.concat([k.reshape(even, (1, 2, count)), k.reshape(odd, (1, 2, count))], axis=0)
    return k.reshape(k.permute_dims(lanes, (2, 1, 0)), (4 * count,))


def philox(k: Any, even: Any, odd: Any, key: Sequence[int], device: Device) -> tuple[Any, Any]:
    """Run the rounds of Philox4x64 on counters, a column each.

    Args:
        even: words 0 and 2 of the counters, in two rows; the result has the same layout.
        odd: words 1 and 3.
    """
    factor, keys, steps = (
        k.concat([k.full((1, 1), word, dtype=uint64, device=device) for word in pair], axis=0)
        for pair in (MULTIPLIERS, key, KEY_STEPS)
    )
    factor_low, factor_high = k.bitwise_and(factor, _LOW), k.bitwise_right_shift(factor, 32)
    swap = (slice(None, None, -1),)
    for _ in range(ROUNDS):
        low, high = k.multiply(even, factor), _multiply_high(k, even, factor_low, factor_high)
        even = k.bitwise_xor(k.bitwise_xor(k.getitem(high, swap), odd), keys)
        odd = k.getitem(low, swap)
        keys = k.add(keys, steps)
    return even, odd


def _multiply_high(k: Any, x: Any, low: Any, high: Any) -> Any:
    """Return the upper half of the 128-bit product of words and a factor given in 32-bit halves."""
    x_low, x_high = k.bitwise_and(x, _LOW), k.bitwise_right_shift(x, 32)
    cross = k.multiply(x_low, high)
    # At most (2^32 - 1)^2 + 2 (2^32 - 1) = 2^64 - 1: no carry is lost.
    middle = k.add(k.bitwise_right_shift(k.multiply(x_low, low), 32), k.bitwise_and(cross, _LOW))
    middle = k.add(middle, k.multiply(x_high, low))
    top = k.add(k.multiply(x_high, high), k.bitwise_right_shift(cross, 32))
    return k.add(top, k.bitwise_right_shift(middle, 32))


def _narrow(k: Any, x: Any, wide: DType, dtype: DType) -> Any:
    """Round to a dtype, to the half-width ones by way of float32: backends differ in the direct step."""
    if wide is float64 and dtype is not float64:
        x = k.astype(x, float32)
    return k.astype(x, dtype) if dtype in (float16, bfloat16) else x


def _polynomial(k: Any, x: Any, coefficients: Sequence[float]) -> Any:
    """Evaluate a polynomial, lowest power first."""
    *rest, before, last = coefficients
    result = k.add(k.multiply(x, last), before)
    for c in reversed(rest):
        result = k.add(k.multiply(result, x), c)
    return result


def _normal(k: Any, words: Any, work: DType) -> Any:
    """Turn words into normal numbers. q and p = 1/2 - |q| are odd multiples of 2^-54: exact in float64."""
    steps = k.subtract(k.astype(k.bitwise_or(k.bitwise_right_shift(words, 10), 1), int64), 1 << 53)
    q = k.multiply(k.astype(steps, work), 2.0**-54)
    p = k.multiply(k.astype(k.subtract(1 << 53, k.abs(steps)), work), 2.0**-54)
    root = k.multiply(p, k.add(k.multiply(k.abs(q), 4.0), 2.0))
    for _ in range(6):
        root = k.sqrt(root)
    d = k.subtract(1.0, root)
    return k.multiply(q, k.divide(_polynomial(k, d, _NORMAL_P), _polynomial(k, d, _NORMAL_Q)))


def _exponential(k: Any, words: Any, work: DType) -> Any:
    """Turn words into -log p, where p and u = 1 - p are odd multiples of 2^-53.

    With r = p^(1/64) and t = (1 - r) / (1 + r) it is 128 atanh(t); 1 - r = u / product of the 1 + p^(1/2^i)
    does not cancel where p is near 1.
    """
    steps = k.astype(k.bitwise_or(k.bitwise_right_shift(words, 11), 1), int64)
    u = k.multiply(k.astype(steps, work), 2.0**-53)
    root = k.multiply(k.astype(k.subtract(1 << 53, steps), work), 2.0**-53)
    product = 2.0
    for _ in range(6):
        root = k.sqrt(root)
        product = k.multiply(k.add(root, 1.0), product)
    t = k.divide(u, k.subtract(product, u))
    return k.multiply(k.multiply(t, 128.0), _polynomial(k, k.multiply(t, t), _ATANH))


def _integers(k: Any, words: Any, low: int, count: int) -> Any:
    """Scale words to 0 to count - 1 exactly, and add low."""
    if count <= 1 << 32:
        half = k.bitwise_right_shift(k.multiply(k.bitwise_and(words, _LOW), count), 32)
        scaled = k.bitwise_right_shift(k.add(k.multiply(k.bitwise_right_shift(words, 32), count), half), 32)
    elif count < 1 << 64:
        scaled = _multiply_high(k, words, count & _LOW, count >> 32)
    else:
        scaled = words
    if count <= 1 << 63:
        return k.add(k.astype(scaled, int64), low)
    # Here `scaled` may be more than int64 holds: its halves are signed apart.
    top = k.add(k.astype(k.bitwise_right_shift(scaled, 32), int64), low >> 32)
    bottom = k.add(k.astype(k.bitwise_and(scaled, _LOW), int64), low & _LOW)
    return k.add(k.multiply(top, 1 << 32), bottom)


def _threshold(k: Any, p: Any) -> Any:
    """Return ceil(2^53 p) as uint64, in two exact steps so that float32 can take them."""
    if k.dtype_of(p) in (float16, bfloat16):
        p = k.astype(p, float32)
    scaled = k.multiply(k.minimum(k.where(k.less(0.0, p), p, 0.0), 1.0), 2.0**32)
    top = k.floor(scaled)
    rest = k.negative(k.floor(k.multiply(k.subtract(scaled, top), -(2.0**21))))
    return k.add(k.bitwise_left_shift(k.astype(top, uint64), 21), k.astype(rest, uint64))
