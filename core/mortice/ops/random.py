"""Random tensors: which numbers each draws from its generator's stream. The streams are in `backends.philox`."""

from __future__ import annotations

import math
import operator
from typing import Any

from mortice import random as _streams
from mortice.backends.plugins import resolve
from mortice.device import Device
from mortice.dtype import DType, as_dtype, bool_, float64, get_default_dtype, int64, uint8
from mortice.errors import DTypeError
from mortice.levels import drawing, raise_to
from mortice.modes import modes
from mortice.mutation import assign, check_writable
from mortice.op import TensorBase
from mortice.ops.creation import _into
from mortice.ops.data import check_dtype, finish, from_host, range_of
from mortice.ops.movement import cast
from mortice.shape import Size, check_sizes, prod
from mortice.tensor import make

__all__ = [
    "bernoulli", "get_rng_state", "initial_seed", "manual_seed", "multinomial", "normal", "rand", "rand_like",
    "randint", "randint_like", "randn", "randn_like", "randperm", "seed", "set_rng_state",
]  # fmt: skip


def _take(generator: Any, n: int, device: Device) -> tuple[int, int, Device]:
    """Reserve words of a generator, by default the process's own; inside vmap each sample may need its own."""
    device, n = drawing(device, n)
    if generator is None:
        generator = _streams.default_generator
    elif not isinstance(generator, _streams.Generator):
        raise TypeError(f"generator: expected a mortice.Generator; got {type(generator).__name__}.")
    return (*generator.take(n, device), device)


def _floating(name: str, dtype: DType | None) -> DType:
    found = as_dtype(name, dtype or get_default_dtype())
    if found.kind not in "fc":
        raise DTypeError(f"{name}: not implemented for {found}; expected a floating point dtype.")
    return found


def _draw(name: str, kernel: str, shape: Size, dtype: DType, device: Device, generator: Any) -> Any:
    """Draw floats; a complex number takes its real and imaginary part from one stream, one after the other."""
    check_dtype(name, dtype, device)
    seed, offset, device = _take(generator, prod(shape) * (2 if dtype.is_complex else 1), device)
    k = device.backend
    draw = getattr(k, kernel)
    if not dtype.is_complex:
        return make(draw(seed, offset, shape, dtype=dtype, device=device), device, dtype, shape)
    parts = draw(seed, offset, (*shape, 2), dtype=dtype.to_real(), device=device)
    re, im = (make(k.getitem(parts, (..., i)), device, dtype.to_real(), shape) for i in (0, 1))
    joined = cast(re, dtype) + cast(im, dtype) * 1j
    # PyTorch's standard complex normal has variance 1 in all.
    return joined * math.sqrt(0.5) if kernel == "random_normal" else joined


# ---- uniform and normal ----


def rand(
    *size: Any, generator: Any = None, dtype: DType | None = None, device: Any = None, requires_grad: bool = False,
    out: Any = None, layout: Any = None, pin_memory: bool = False, names: Any = None, **named: Any,
) -> Any:  # fmt: skip
    """Draw from the uniform distribution on [0, 1)."""
    shape = check_sizes("rand", (named["size"],) if "size" in named else size)
    made = _draw("rand", "random_uniform", shape, _floating("rand", dtype), resolve(device), generator)
    return _into(out, finish(made, requires_grad, pin_memory))


def randn(
    *size: Any, generator: Any = None, dtype: DType | None = None, device: Any = None, requires_grad: bool = False,
    out: Any = None, layout: Any = None, pin_memory: bool = False, names: Any = None, **named: Any,
) -> Any:  # fmt: skip
    """Draw from the standard normal distribution."""
    shape = check_sizes("randn", (named["size"],) if "size" in named else size)
    made = _draw("randn", "random_normal", shape, _floating("randn", dtype), resolve(device), generator)
    return _into(out, finish(made, requires_grad, pin_memory))


def rand_like(
    input: Any, *, dtype: DType | None = None, device: Any = None, requires_grad: bool = False, layout: Any = None,
    memory_format: Any = None, pin_memory: bool = False, generator: Any = None,
) -> Any:  # fmt: skip
    """Draw uniform numbers in another tensor's shape, dtype and device."""
    where = input._device if device is None else resolve(device)
    kind = _floating("rand_like", dtype or input.dtype)
    return finish(_draw("rand_like", "random_uniform", input.shape, kind, where, generator), requires_grad, pin_memory)


def randn_like(
    input: Any, *, dtype: DType | None = None, device: Any = None, requires_grad: bool = False, layout: Any = None,
    memory_format: Any = None, pin_memory: bool = False, generator: Any = None,
) -> Any:  # fmt: skip
    """Draw normal numbers in another tensor's shape, dtype and device."""
    where = input._device if device is None else resolve(device)
    kind = _floating("randn_like", dtype or input.dtype)
    return finish(_draw("randn_like", "random_normal", input.shape, kind, where, generator), requires_grad, pin_memory)


def normal(
    mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Any = None, dtype: DType | None = None,
    device: Any = None, requires_grad: bool = False, out: Any = None, layout: Any = None, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """Draw from normal distributions of the given means and standard deviations (numbers or tensors)."""
    tensors = [v for v in (mean, std) if isinstance(v, TensorBase)]
    _check_std("normal", std)
    if not tensors:
        if size is None:
            raise TypeError("normal: size is needed when mean and std are numbers.")
        made = randn(size, generator=generator, dtype=dtype, device=device) * float(std) + float(mean)
    else:
        shape = (tensors[0] + tensors[1]).shape if len(tensors) == 2 else tensors[0].shape
        first = tensors[0]
        z = _draw("normal", "random_normal", shape, _floating("normal", first.dtype), first._device, generator)
        made = (z * _outside(std) + _outside(mean)).detach()
    return _into(out, finish(made, requires_grad, pin_memory))


def _outside(value: Any) -> Any:
    return value.detach() if isinstance(value, TensorBase) else float(value)


def _check_std(name: str, std: Any) -> None:
    low = (range_of(std) or (0,))[0] if isinstance(std, TensorBase) and std.numel() else std
    if not isinstance(low, TensorBase) and low < 0:
        raise RuntimeError(f"{name}: expects std >= 0.0, but found std {low}")


# ---- integers ----


def _integers(name: str, low: Any, high: Any, shape: Size, dtype: DType, device: Device, generator: Any) -> Any:
    low, high = int(low), int(high)
    if low >= high:
        raise RuntimeError(f"{name}: expects 'from' to be less than 'to', but got from={low} >= to={high}")
    dtype = check_dtype(name, dtype, device)
    seed, offset, device = _take(generator, prod(shape), device)
    data = device.backend.random_integers(seed, offset, low, high, shape, device=device)
    return cast(make(data, device, int64, shape), dtype)


def randint(
    low: Any = 0, high: Any = None, size: Any = None, *, generator: Any = None, dtype: DType | None = None,
    device: Any = None, requires_grad: bool = False, out: Any = None, layout: Any = None, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """Draw integers from low (0 when left out) to high - 1."""
    if size is None:
        low, high, size = 0, low, high
    if high is None:
        low, high = 0, low
    if size is None:
        raise TypeError("randint: size is needed, as in randint(high, size) or randint(low, high, size).")
    made = _integers("randint", low, high, check_sizes("randint", (size,)), dtype or int64, resolve(device), generator)
    return _into(out, finish(made, requires_grad, pin_memory))


def randint_like(
    input: Any, low: Any = 0, high: Any = None, *, dtype: DType | None = None, device: Any = None, layout: Any = None,
    requires_grad: bool = False, memory_format: Any = None, pin_memory: bool = False, generator: Any = None,
) -> Any:  # fmt: skip
    """Draw integers from low to high - 1 in another tensor's shape, dtype and device."""
    if high is None:
        low, high = 0, low
    where = input._device if device is None else resolve(device)
    made = _integers("randint_like", low, high, input.shape, dtype or input.dtype, where, generator)
    return finish(made, requires_grad, pin_memory)


def randperm(
    n: int, *, generator: Any = None, dtype: DType | None = None, device: Any = None, requires_grad: bool = False,
    out: Any = None, layout: Any = None, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """Draw a permutation of 0 to n - 1."""
    n = operator.index(n)
    if n < 0:
        raise RuntimeError(f"randperm: n must be non-negative, got {n}")
    where = resolve(device)
    dtype = check_dtype("randperm", dtype or int64, where)
    seed, offset, where = _take(generator, n, where)
    data = where.backend.random_permutation(seed, offset, n, device=where)
    return _into(out, finish(cast(make(data, where, int64, Size((n,))), dtype), requires_grad, pin_memory))


# ---- drawing by probabilities ----


def bernoulli_mask(p: Any, shape: Size, device: Device, generator: Any = None) -> Any:
    """Draw a bool tensor that is True with probability p (a number or a tensor)."""
    seed, offset, device = _take(generator, prod(shape), device)
    given = raise_to(p, device)._data if isinstance(p, TensorBase) else float(p)
    data = device.backend.random_bernoulli(seed, offset, given, shape, device=device)
    return make(data, device, bool_, shape)


def bernoulli(input: Any, p: Any = None, *, generator: Any = None, out: Any = None) -> Any:
    """Draw 1 with the probability that each element gives (or `p` everywhere), else 0."""
    if p is None:
        if input.dtype.kind != "f":
            raise DTypeError(f"bernoulli: not implemented for {input.dtype}; expected probabilities as floats.")
        if input.numel():
            low, high = range_of(input) or (0, 1)
            if not (low >= 0 and high <= 1):
                raise RuntimeError(f"bernoulli: Expected p_in >= 0 && p_in <= 1; got values from {low} to {high}.")
        p = input.detach()
    elif not isinstance(p, TensorBase) and not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli: bernoulli_ expects p to be in [0, 1], but got p={p}")
    made = cast(bernoulli_mask(p, input.shape, input._device, generator), input.dtype)
    if input._rg and modes.grad:
        made = made + input * 0  # PyTorch keeps the draw in the graph, with a gradient of zero
    return _into(out, made)


def multinomial(
    input: Any, num_samples: int, replacement: bool = False, *, generator: Any = None, out: Any = None
) -> Any:
    """Draw indices with probabilities in proportion to each row of weights."""
    if len(input.shape) not in (1, 2):
        raise RuntimeError(f"multinomial: prob_dist must be 1 or 2 dim; got {len(input.shape)} dims.")
    if input.dtype.kind != "f":
        raise RuntimeError(f"multinomial: only supports floating-point dtypes for input, got: {input.dtype}")
    n = input.shape[-1]
    if num_samples <= 0:
        raise RuntimeError(f"multinomial: cannot sample n_sample <= 0 samples; got {num_samples}.")
    if not replacement and num_samples > n:
        raise RuntimeError("multinomial: cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    weights = cast(input.detach(), float64 if float64 in input._device.backend.dtypes(input._device) else input.dtype)
    total = weights.sum(-1, keepdim=True)
    if not bool(((weights >= 0) & weights.isfinite()).all().item()):
        raise RuntimeError("multinomial: probability tensor contains either `inf`, `nan` or element < 0")
    if not bool((total > 0).all().item()):
        raise RuntimeError("multinomial: invalid multinomial distribution (sum of probabilities <= 0)")
    rows = input.shape[:-1]
    if replacement:
        edges = (weights / total).cumsum(-1)
        u = _draw("multinomial", "random_uniform", Size((*rows, num_samples)), weights.dtype, input._device, generator)
        u = u * edges[..., -1:]
        found = (u.unsqueeze(-1) >= edges.unsqueeze(-2)).sum(-1)
        # Rounding may carry a draw past the last weight: the last index of weight more than 0 takes it.
        last = (weights > 0).to(int64).cumsum(-1).argmax(-1, keepdim=True)
        made = found.minimum(last.expand(found.shape))
    else:
        # The smallest exponential clocks of rate w ring in the order of a draw without replacement.
        clock = _draw("multinomial", "random_exponential", input.shape, weights.dtype, input._device, generator)
        made = (clock / weights).argsort(-1)[..., :num_samples]
    return _into(out, made)


# ---- in place ----


def _fill(name: str, t: Any, made: Any) -> Any:
    check_writable(name, t)
    return assign(t, cast(made, t.dtype).detach(), True)


def uniform_(self: Any, from_: float = 0.0, to: float = 1.0, *, generator: Any = None, **named: Any) -> Any:
    """Fill with uniform numbers on [from, to)."""
    from_ = named.get("from", from_)
    if from_ > to:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={from_} > to={to}")
    u = _draw("uniform_", "random_uniform", self.shape, _floating("uniform_", self.dtype), self._device, generator)
    return _fill("uniform_", self, u * (to - from_) + from_)


def normal_(self: Any, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Any:
    """Fill with normal numbers."""
    _check_std("normal_", std)
    z = _draw("normal_", "random_normal", self.shape, _floating("normal_", self.dtype), self._device, generator)
    return _fill("normal_", self, z * std + mean)


def bernoulli_(self: Any, p: Any = 0.5, *, generator: Any = None) -> Any:
    """Fill with 1 with probability p, else 0."""
    return _fill("bernoulli_", self, bernoulli(self.detach(), p, generator=generator))


def exponential_(self: Any, lambd: float = 1.0, *, generator: Any = None) -> Any:
    """Fill with exponential numbers of rate lambd."""
    if lambd <= 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd}")
    kind = _floating("exponential_", self.dtype)
    return _fill("exponential_", self, _draw("exponential_", "random_exponential", self.shape, kind, self._device, generator) / lambd)


def _open_uniform(name: str, t: Any, generator: Any) -> Any:
    """Draw float64 (or the widest) uniforms that are never 0."""
    kind = float64 if float64 in t._device.backend.dtypes(t._device) else _floating(name, t.dtype)
    u = _draw(name, "random_uniform", t.shape, kind, t._device, generator)
    return u + 2.0 ** (-54 if kind is float64 else -25)


def cauchy_(self: Any, median: float = 0.0, sigma: float = 1.0, *, generator: Any = None) -> Any:
    """Fill with numbers of a Cauchy distribution."""
    if sigma <= 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    u = _open_uniform("cauchy_", self, generator)
    return _fill("cauchy_", self, ((u - 0.5) * math.pi).tan() * sigma + median)


def log_normal_(self: Any, mean: float = 1.0, std: float = 2.0, *, generator: Any = None) -> Any:
    """Fill with numbers whose logarithm is normal."""
    if std <= 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std}")
    kind = _floating("log_normal_", self.dtype)
    z = _draw("log_normal_", "random_normal", self.shape, kind, self._device, generator)
    return _fill("log_normal_", self, (z * std + mean).exp())


def geometric_(self: Any, p: float, *, generator: Any = None) -> Any:
    """Fill with the number of trials up to the first success."""
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    u = _open_uniform("geometric_", self.new_zeros(self.shape, dtype=float64), generator)
    return _fill("geometric_", self, (u.log() / math.log1p(-p)).ceil())


def random_(self: Any, from_: Any = None, to: Any = None, *, generator: Any = None, **named: Any) -> Any:
    """Fill with integers: from `from` to `to` - 1, from 0 to `to` - 1, or over all that the dtype counts exactly."""
    from_ = named.get("from", from_)
    if from_ is not None and to is None:
        from_, to = 0, from_
    if to is None:
        digits = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
        bits = digits.get(self.dtype.to_real().name, 8 * self.dtype.itemsize - (self.dtype.kind == "i"))
        to = 2 if self.dtype is bool_ else min(2**bits + (self.dtype.kind == "f"), 2**63 - 1)
    made = _integers("random_", from_ or 0, to, self.shape, int64, self._device, generator)
    return _fill("random_", self, made)


# ---- seeds and states ----


def _state_tensor(state: bytes) -> Any:
    return from_host(list(state), (len(state),), uint8, resolve())


_streams.wrap_state = _state_tensor


def manual_seed(seed: int) -> Any:
    """Seed the default generator, which serves every device, and return it."""
    return _streams.manual_seed(seed)


def seed() -> int:
    """Seed the default generator from the operating system, and return the seed."""
    return _streams.seed()


def initial_seed() -> int:
    """Return the default generator's seed."""
    return _streams.initial_seed()


def get_rng_state() -> Any:
    """Return the default generator's state as a uint8 tensor."""
    return _streams.get_rng_state()


def set_rng_state(new_state: Any) -> None:
    """Return the default generator to a state of `get_rng_state`."""
    _streams.set_rng_state(new_state)
