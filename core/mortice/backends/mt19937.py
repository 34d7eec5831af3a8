"""PyTorch's random numbers on the CPU: MT19937, and the draws that PyTorch 2.13 makes from it, one after the other.

The words are those of Python's own `random.Random`, which is the same twister. What takes which words is in `MT19937`'s
methods; measured against PyTorch 2.13 on x86, uniform numbers, integers, permutations and masks are equal, and normal and
exponential numbers to the rounding of their logarithms and sines. The draws use required kernels alone; a backend may
have a `twister` of its own, which is faster, and may come closer.
"""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from typing import Any

from mortice.backends.host import HostBuffer, pack
from mortice.device import Device
from mortice.dtype import DType, bfloat16, float16, float32, float64, int32, int64
from mortice.shape import prod

_N = 624
# PyTorch's state of a CPU generator: the seed, words left, a flag, the next word, the words, and the normal kept back.
_STATE = struct.Struct(f"<QiiQ{_N}Q3di4xfi")
_BLOCK = 16  # normal numbers are made so many at once
_WIDE = 1 << 28  # ranges from which an integer takes two words
_LOW = 0xFFFFFFFF
_MANY = 10  # expected counts from which one is drawn by rejection
_CHUNK = 1 << 24  # bytes that Python draws at once: it makes one integer of them, of fewer than 2^31 bits


class MT19937:
    """A position in a seed's stream, and the draws from there on; `k` is the backend whose kernels make them.

    Each draw returns an array of that backend. Only the lower 32 bits of the seed count, as in PyTorch.
    """

    def __init__(self, seed: int) -> None:
        self._words: Any = None
        self.seed(seed)

    def seed(self, seed: int) -> None:
        """Go to the start of a seed's stream."""
        self._start: int | None = seed & _LOW  # its words are made at the first draw, by the backend where it can
        self._kept: float | None = None

    def _go(self, words: Sequence[int], place: int) -> None:
        self._start = None
        self._words = self._words or random.Random()
        self._words.setstate((3, (*words, place), None))

    def _here(self) -> Any:
        """Return the words, which are made if they have not been since the seed was set."""
        if self._start is not None:
            words = [word := self._start]
            for i in range(1, _N):
                word = (1812433253 * (word ^ (word >> 30)) + i) & _LOW
                words.append(word)
            self._go(words, _N)
        return self._words

    def state(self, seed: int) -> bytes:
        """Return the position as PyTorch's `get_rng_state` does."""
        *words, place = self._here().getstate()[1]
        kept = 0.0 if self._kept is None else self._kept
        return _STATE.pack(seed, _N + 1 - place, 1, place, *words, 0.0, kept, 0.0, self._kept is not None, 0.0, 0)

    def load(self, state: bytes) -> int:
        """Go to a position of `state`, or of PyTorch; return the seed."""
        seed, left, seeded, place, *rest = _STATE.unpack(state)
        if not (seeded and 1 <= left <= _N and place <= _N and max(rest[:_N]) <= _LOW):
            raise RuntimeError("set_state: expected the state of PyTorch's mt19937 CPU generator; these bytes are none.")
        self._go(rest[:_N], _N if left == 1 else place)
        self._kept = rest[_N + 1] if rest[_N + 3] else None
        return int(seed)

    def _own(self, k: Any) -> Any:
        """Return the backend's twister where it has one; the words come from there from now on."""
        kind: Any = getattr(k, "twister", None)
        if self._start is not None and hasattr(kind, "start"):
            self._words = self._words if type(self._words) is kind else kind()
            self._words.start(self._start)
            self._start = None
        elif type(self._here()) is not (kind or random.Random):
            words = (kind or random.Random)()
            words.setstate(self._words.getstate())
            self._words = words
        return self._words if kind else None

    def random_uniform(
        self, k: Any, device: Device, shape: Sequence[int], dtype: DType, low: float = 0.0, high: float = 1.0
    ) -> Any:
        """Draw from [low, high): 24 bits of a word, 53 bits of two for float64, multiplied and added to in one step."""
        half = dtype in (float16, bfloat16)
        if (own := self._own(k)) and not half:
            return own.uniform(shape, dtype, low, high)
        u = self._double(k, device, prod(shape)) if dtype is float64 else self._single(k, device, prod(shape))
        if dtype is not float64:  # which has room for the product
            low, high = struct.unpack("2f", struct.pack("2f", low, high))
            high = low + struct.unpack("f", struct.pack("f", high - low))[0]
            u = k.astype(u, float64)
        u = _moved(k, u, high - low, low)
        u = k.reshape(k.astype(k.astype(u, float32) if half else u, dtype), tuple(shape))
        if not half:
            return u
        start, end = (k.full((), bound, dtype=dtype, device=device) for bound in (low, high))
        return k.where(k.less(u, end), u, start)  # PyTorch puts what rounds up to the end at the start

    def random_normal(
        self, k: Any, device: Device, shape: Sequence[int], dtype: DType, mean: float = 0.0, std: float = 1.0
    ) -> Any:
        """Draw normal numbers by Box and Muller's pairs.

        Fewer than 16 come one at a time, of each pair the second is kept for the next. Others are made in blocks of 16 from
        as many uniforms; where 16 does not divide their number, the last 16 are drawn once more.
        """
        n, own = prod(shape), self._own(k)
        if n < _BLOCK:
            made = HostBuffer(pack([self._one_normal() * std + mean for _ in range(n)], dtype), shape, dtype)
            return k.from_host(made, device)
        if own and (dtype is float32 or dtype is float64):
            return _moved(k, own.normal(shape, dtype), std, mean)
        draw = self._double if dtype is float64 else self._single
        whole = n // _BLOCK * _BLOCK
        first = draw(k, device, whole if dtype in (float16, bfloat16) else n)
        made = _normal_blocks(k, first if whole == n else k.getitem(first, (slice(whole),)))
        if whole < n:
            last = _normal_blocks(k, draw(k, device, _BLOCK))
            made = k.concat([k.getitem(made, (slice(n - _BLOCK),)), last], axis=0)
        return k.reshape(k.astype(_moved(k, made, std, mean), dtype), tuple(shape))

    def random_normal_each(
        self, k: Any, device: Device, shape: Sequence[int], dtype: DType, mean: float = 0.0, std: float = 1.0
    ) -> Any:
        """Draw from the standard normal in pairs, the second of each kept for the next, however many there are."""
        n = prod(shape)
        if n < _BLOCK:
            return self.random_normal(k, device, shape, dtype, mean, std)
        parts, early = [], self._kept is not None
        if early:
            parts.append(k.full((1,), self._one_normal(), dtype=float64, device=device))
        u = k.reshape(self._double(k, device, (n - early + 1) // 2 * 2), (-1, 2))
        turn, length = (k.getitem(u, (slice(None), slice(i, i + 1))) for i in (0, 1))
        radius = k.sqrt(k.multiply(k.log1p(k.negative(length)), -2.0))
        angle = k.multiply(turn, 2.0 * math.pi)
        pairs = k.concat([k.multiply(radius, k.cos(angle)), k.multiply(radius, k.sin(angle))], axis=1)
        parts.append(k.reshape(pairs, (-1,)))
        made = k.concat(parts, axis=0)
        if (n - early) % 2:
            self._kept = float(k.item(k.getitem(made, (n,))))
            made = k.getitem(made, (slice(n),))
        return k.reshape(k.astype(_moved(k, made, std, mean), dtype), tuple(shape))

    def random_exponential(self, k: Any, device: Device, shape: Sequence[int], dtype: DType) -> Any:
        """Draw from the exponential distribution of rate 1, from a float64 uniform each."""
        made = k.negative(k.log1p(k.negative(self._double(k, device, prod(shape)))))
        return k.reshape(k.astype(made, dtype), tuple(shape))

    def random_integers(self, k: Any, device: Device, shape: Sequence[int], low: int, high: int, one_word: bool) -> Any:
        """Draw int64 from low to high - 1: the rest of a word by their number, of two words from 2^28 on."""
        n, count = prod(shape), high - low
        one_word = one_word or count < _WIDE
        if own := self._own(k):
            return own.integers(shape, low, count, one_word)
        if one_word:
            words = k.bitwise_and(k.astype(self._array(k, device, n, int32), int64), _LOW)
            return k.reshape(k.add(k.remainder(words, count), low), tuple(shape))
        values = [low + (word >> 32 | (word & _LOW) << 32) % count for word in struct.unpack(f"<{n}Q", self._bytes(8 * n))]
        return k.from_host(HostBuffer(pack(values, int64), shape, int64), device)

    def random_permutation(self, k: Any, device: Device, shape: Sequence[int]) -> Any:
        """Shuffle 0 to n - 1, from the first place on: each changes with one not before it; one row after the other."""
        *rows, n = shape
        if rows:
            made = [self.random_permutation(k, device, (n,)) for _ in range(prod(rows))]
            return k.reshape(k.concat(made, axis=0), tuple(shape))
        if own := self._own(k):
            return own.permutation(n)
        order = list(range(n))
        left = max(n - 1, 0)
        for i, word in enumerate(struct.unpack(f"<{left}I", self._bytes(4 * left))):
            other = i + word % (n - i)
            order[i], order[other] = order[other], order[i]
        return k.from_host(HostBuffer(pack(order, int64), (n,), int64), device)

    def log_gammas(self, k: Any, shapes: list[float]) -> list[float]:
        """Return logs of gamma variables of rate 1, drawn by Marsaglia and Tsang's method, one after the other."""
        own = self._own(k)
        if hasattr(own, "log_gammas"):
            made, self._kept = own.log_gammas(shapes, self._kept)
            return made  # type: ignore[no-any-return]
        return [self._log_gamma(a) if 0 < a < math.inf else -math.inf if a == 0 else math.nan for a in shapes]

    def _log_gamma(self, a: float) -> float:
        power = 0.0
        if a < 1:
            power, a = math.log(1 - self._one_uniform()) / a, a + 1
        d = a - 0.3333333432674408  # PyTorch's third is a float's, in double precision too
        c = 1 / math.sqrt(9 * d)
        while True:
            x = self._one_normal()
            if 1 + c * x <= 0:
                continue
            v, u = (1 + c * x) ** 3, 1 - self._one_uniform()
            if math.log(u) < 0.5 * x * x + d * (1 - v + math.log(v)):
                return power + math.log(d * v)

    def poissons(self, rates: Sequence[float]) -> list[float]:
        """Return Poisson numbers, one after the other."""
        return self._each(lambda draw, rate: _poisson(draw, rate) if 0 < rate < math.inf else rate, rates)

    def binomials(self, counts: Sequence[float], probs: Sequence[float]) -> list[float]:
        """Return numbers of successes, one after the other; nan where a count or a probability is none."""
        return self._each(
            lambda draw, n, p: _binomial(draw, n, p) if 0 <= n < math.inf and 0 <= p <= 1 else math.nan, counts, probs
        )

    def _each(self, make: Callable[..., float], *given: Sequence[float]) -> list[float]:
        """Make a number for each place from as many uniforms as it asks for: words are drawn ahead, and what is left goes back."""
        start, taken = self._here().getstate(), 0

        def uniforms() -> Iterator[float]:
            nonlocal taken
            while True:
                for upper, lower in struct.iter_unpack("<II", self._bytes(4096)):
                    taken += 1
                    yield (lower | (upper & 0x1FFFFF) << 32) * 2.0**-53

        made = list(map(make, repeat(uniforms().__next__), *given))
        self._words.setstate(start)
        self._bytes(8 * taken)
        return made

    def _bytes(self, n: int) -> bytes:
        draw: Callable[[int], bytes] = self._here().randbytes
        return draw(n) if n <= _CHUNK else b"".join([draw(min(_CHUNK, n - at)) for at in range(0, n, _CHUNK)])

    def _array(self, k: Any, device: Device, n: int, dtype: DType) -> Any:
        return k.from_host(HostBuffer(self._bytes(n * dtype.itemsize), (n,), dtype), device)

    def _single(self, k: Any, device: Device, n: int) -> Any:
        """Return float32 uniforms."""
        if own := self._own(k):
            return own.uniform((n,), float32)
        bits = k.bitwise_and(self._array(k, device, n, int32), 0xFFFFFF)
        return k.multiply(k.astype(bits, float32), 2.0**-24)

    def _double(self, k: Any, device: Device, n: int) -> Any:
        """Return float64 uniforms. Of two words the first is the upper half of the number, and the lower in memory."""
        if own := self._own(k):
            return own.uniform((n,), float64)
        pairs = self._array(k, device, n, int64)
        upper = k.bitwise_left_shift(k.bitwise_and(pairs, (1 << 21) - 1), 32)
        bits = k.bitwise_or(upper, k.bitwise_and(k.bitwise_right_shift(pairs, 32), _LOW))
        return k.multiply(k.astype(bits, float64), 2.0**-53)

    def _one_uniform(self) -> float:
        pair = int.from_bytes(self._bytes(8), "little")
        return (pair >> 32 | (pair & 0x1FFFFF) << 32) * 2.0**-53

    def _one_normal(self) -> float:
        if self._kept is not None:
            made, self._kept = self._kept, None
            return made
        turn, length = self._one_uniform(), self._one_uniform()
        radius, angle = math.sqrt(-2.0 * math.log1p(-length)), 2.0 * math.pi * turn
        self._kept = radius * math.sin(angle)
        return radius * math.cos(angle)


def _poisson(draw: Callable[[], float], rate: float) -> float:
    if rate < _MANY:  # as many uniforms as keep the product above
        least, product, count = math.exp(-rate), draw(), 0
        while product > least:
            product, count = product * draw(), count + 1
        return count
    b = 0.931 + 2.53 * math.sqrt(rate)
    log_rate = math.log(rate)
    hat = -0.059 + 0.02483 * b, b, rate + 0.43, 0.9277 - 3.6224 / (b - 2), 1.1239 + 1.1328 / (b - 3.4)
    return _rejected(draw, *hat, math.inf, lambda k: k * log_rate - rate - math.lgamma(k + 1))


def _binomial(draw: Callable[[], float], n: float, p: float) -> float:
    if p > 0.5:
        return n - (_binomial(draw, n, 1 - p) if p < 1 else 0)
    if not n or not p:
        return 0
    if n * p < _MANY:  # from success to success the trials are a geometric number
        trials, count = 0.0, -1
        while trials <= n:
            u = draw()
            trials, count = trials + (math.ceil(math.log(u) / math.log1p(-p)) if u else math.inf), count + 1
        return count
    spread = math.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * spread
    mode, log_odds = math.floor((n + 1) * p), math.log(p / (1 - p))
    weight: Callable[[int], float] = lambda k: k * log_odds - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    hat = -0.0873 + 0.0248 * b + 0.01 * p, b, n * p + 0.5, 0.92 - 4.2 / b, (2.83 + 5.1 / b) * spread
    return _rejected(draw, *hat, n, lambda k: weight(k) - weight(mode))


def _rejected(
    draw: Callable[[], float], a: float, b: float, centre: float, quick: float, scale: float, most: float,
    log_ratio: Callable[[int], float],
) -> float:  # fmt: skip
    """Draw by Hoermann's table mountain, as `ops.counts` does for all elements at a time."""
    while True:
        u, v = draw() - 0.5, draw()
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + centre) if us else -1
        if 0 <= k <= most and (
            (us >= 0.07 and v <= quick) or not v or math.log(v * scale / (a / (us * us) + b)) <= log_ratio(k)
        ):
            return k


def _moved(k: Any, t: Any, scale: float, shift: float) -> Any:
    t = t if scale == 1 else k.into(t, k.multiply, t, scale)
    return t if shift == 0 else k.into(t, k.add, t, shift)


def _normal_blocks(k: Any, u: Any) -> Any:
    """Turn blocks of 16 uniforms into as many normals: 8 radii before 8 angles give 8 cosines before 8 sines."""
    u = k.reshape(u, (k.shape_of(u)[0] // _BLOCK, 2, _BLOCK // 2))
    length, turn = (k.getitem(u, (slice(None), slice(i, i + 1))) for i in (0, 1))
    radius = k.sqrt(k.multiply(k.log(k.subtract(1.0, length)), -2.0))
    angle = k.multiply(turn, 2.0 * math.pi)
    return k.reshape(k.concat([k.multiply(radius, k.cos(angle)), k.multiply(radius, k.sin(angle))], axis=1), (-1,))
