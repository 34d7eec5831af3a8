"""Random tensors: which numbers each draws from its generator's stream. The streams are in `backends.philox`."""

from __future__ import annotations

import math
import operator
from functools import lru_cache
from importlib import import_module
from typing import Any

from mortice import call as _call
from mortice import fast
from mortice import random as _streams
from mortice.backends.plugins import resolve
from mortice.device import Device
from mortice.dtype import (
    CLASS_NAMES,
    DType,
    as_dtype,
    bool_,
    finfo,
    float32,
    float64,
    get_default_dtype,
    iinfo,
    int64,
    no_float8,
    uint8,
)
from mortice.errors import DTypeError
from mortice.layout import sparse_coo, strided
from mortice.levels import chain, drawing, raise_to, record_crossing, stack
from mortice.modes import modes
from mortice.notice import warn
from mortice.ops.bounds import where
from mortice.ops.creation import given, kind_of, sized
from mortice.ops.data import check_dtype, finish, from_host, range_of
from mortice.ops.elementwise import undefined
from mortice.ops.movement import cast, dense_order, in_format_like, in_order, is_row_major, keeps
from mortice.ops.sort import searchsorted
from mortice.random import get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from mortice.rules import number_of
from mortice.shape import Size, check_sizes, out_of_memory, prod
from mortice.tensor import TensorBase, make

__all__ = [
    "bernoulli", "get_rng_state", "initial_seed", "manual_seed", "multinomial", "normal", "rand", "rand_like",
    "randint", "randint_like", "randn", "randn_like", "randperm", "seed", "set_rng_state",
]  # fmt: skip


_in_c: Any = getattr(fast._engine, "draw", None)  # where that was built


def _checked(generator: Any) -> Any:
    if generator is None:
        return _streams.default_generator
    if not isinstance(generator, _streams.Generator):
        raise TypeError(f"generator: expected a mortice.Generator; got {type(generator).__name__}.")
    return generator


def _take(generator: Any, n: int, device: Device) -> tuple[int, int, Device]:
    """Reserve words of a generator, by default the process's own; inside vmap each sample may need its own."""
    if stack.levels:
        device, n = drawing(device, n)
    return (*_checked(generator).take(n, device), device)


def _in_turn(
    draw: str, generator: Any, shape: Size, dtype: DType, device: Device, *given: Any, like: Any = None
) -> Any:
    """Draw with an engine that makes one number after the other, if the generator has one; None elsewhere.

    Numbers for a tensor `like` come in the order in which it lies, and normal ones one by one where that is not row-major
    without gaps.
    """
    generator = _checked(generator)
    base = device.base
    engine = generator.engine_for(base)
    if engine is None:
        return None
    levels = chain(drawing(device, 1)[0])[::-1]
    lanes = Size((*[level.size for level in levels if level.randomness == "different"], *shape))
    while like is not None and (level := like._device.level) is not None:  # to the memory of all samples
        each = level.randomness == "different" and like._buffer.on
        like = level.inside(like._buffer.data, like) if each else None
    order = None
    if like is not None and not is_row_major(like):
        draw = "random_normal_each" if draw == "random_normal" else draw
        order, m = dense_order(like), len(lanes) - like.ndim
        if order is not None:
            order = (*range(m), *[d + m for d in order])
            lanes = Size([lanes[d] for d in order])
    with generator._lock:
        made = make(getattr(engine, draw)(base.backend, base, lanes, *given), base, dtype, lanes)
    made = made if order is None else in_order(made, order)
    for level in levels:
        made = level.enter(made) if level.randomness == "different" else raise_to(made, level.above(made._device))
    return made


def _usual(name: str, kernel: str, generator: Any, shape: Size, dtype: DType, device: Device | None, *given: Any) -> Any:
    """Draw in C where nothing is unusual; None elsewhere. Without a device: into a tensor, times a number, plus another."""
    generator = _streams.default_generator if generator is None else generator
    if _in_c is None or type(generator) is not _streams.Generator or generator._engine is not None:
        return None
    try:
        if device is None:
            return fast._engine.fill(generator, stack, kernel, *given)
        return _in_c(generator, stack, kernel, shape, dtype, device, *given)
    except (MemoryError, ValueError, OverflowError) as error:
        raise out_of_memory(name, shape, dtype, error) from None


def _floating(name: str, dtype: DType | None) -> DType:
    found = dtype if dtype.__class__ is DType else as_dtype(name, dtype or get_default_dtype())
    if found.stored is not found:
        raise no_float8(name, found)
    if found.kind not in "fc":
        raise DTypeError(f"{name}: not implemented for {found}; expected a floating point dtype.")
    return found


def _draw(
    name: str, kernel: str, shape: Size, dtype: DType, device: Device, generator: Any, like: Any = None
) -> Any:
    """Draw floats; a complex number takes its real and imaginary part from one stream, one after the other."""
    if device.base is not device:
        device = device.of_values
    check_dtype(name, dtype, device, computes=True)
    if dtype.kind == "c":
        parts = _draw(name, kernel, Size((*shape, 2)), dtype.to_real(), device, generator)
        joined = cast(parts[..., 0], dtype) + cast(parts[..., 1], dtype) * 1j
        # PyTorch's standard complex normal has variance 1 in all.
        return joined * math.sqrt(0.5) if kernel == "random_normal" else joined
    if (made := _usual(name, kernel, generator, shape, dtype, device)) is not None:
        return made
    try:
        if (made := _in_turn(kernel, generator, shape, dtype, device, dtype, like=like)) is not None:
            return made
        seed, offset, device = _take(generator, prod(shape), device)
        draw = getattr(device.backend, kernel)
        return make(draw(seed, offset, shape, dtype=dtype, device=device), device, dtype, shape)
    except (MemoryError, ValueError, OverflowError) as error:
        raise out_of_memory(name, shape, dtype, error) from None


def _moved(t: Any, scale: Any, shift: Any) -> Any:
    """Return a draw, which nobody else has, times a number plus another, past the operators where that is all they do."""
    if scale == 1 and shift == 0:
        return t
    plain = (type(scale) is float or type(scale) is int) and (type(shift) is float or type(shift) is int)
    if not plain or t.dtype.kind != "f" or t._device.level is not None or t._storage is not None:
        return t * scale + shift
    k, drawn = t._device.backend, t._buffer
    try:  # in the memory that was drawn into, since new memory of large tensors costs more than the sums
        drawn = drawn if scale == 1 else k.into(drawn, k.multiply, drawn, scale)
        return make(drawn if shift == 0 else k.into(drawn, k.add, drawn, shift), t._device, t.dtype, t.shape)
    except MemoryError as error:
        raise out_of_memory("mul", t.shape, t.dtype, error) from None


def _in_both_parts(shift: Any, dtype: DType) -> Any:
    """Return what is added to a draw: PyTorch moves the real and the imaginary part of complex numbers alike."""
    return complex(shift, shift) if dtype.is_complex and not isinstance(shift, (TensorBase, complex)) else shift


# ---- uniform and normal ----


def rand(
    *sizes: Any, size: Any = None, generator: Any = None, dtype: DType | None = None, device: Any = None, out: Any = None,
    requires_grad: bool = False, layout: Any = None, pin_memory: bool | None = False,
) -> Any:  # fmt: skip
    """Draw from the uniform distribution on [0, 1)."""
    return _drawn("rand", "random_uniform", sized("rand", sizes, size), dtype, device, generator, out, requires_grad, pin_memory)


def randn(
    *sizes: Any, size: Any = None, generator: Any = None, dtype: DType | None = None, device: Any = None, out: Any = None,
    requires_grad: bool = False, layout: Any = None, pin_memory: bool | None = False,
) -> Any:  # fmt: skip
    """Draw from the standard normal distribution."""
    return _drawn("randn", "random_normal", sized("randn", sizes, size), dtype, device, generator, out, requires_grad, pin_memory)


def _drawn(name: str, kernel: str, shape: Size, dtype: Any, device: Any, generator: Any, out: Any, *finishing: bool) -> Any:
    if out is not None:
        dtype, device = kind_of(name, out, dtype, device)
    made = _draw(name, kernel, shape, _floating(name, dtype), resolve(device), generator)
    return given(name, made, out, *finishing)


def rand_like(
    input: Any, *, dtype: DType | None = None, device: Any = None, requires_grad: bool = False, layout: Any = None,
    memory_format: Any = None, pin_memory: bool | None = False, generator: Any = None,
) -> Any:  # fmt: skip
    """Draw uniform numbers in another tensor's shape, dtype and device."""
    made = _drawn_like("rand_like", "random_uniform", input, dtype, device, generator, memory_format)
    return finish(made, requires_grad, pin_memory)


def randn_like(
    input: Any, *, dtype: DType | None = None, device: Any = None, requires_grad: bool = False, layout: Any = None,
    memory_format: Any = None, pin_memory: bool | None = False, generator: Any = None,
) -> Any:  # fmt: skip
    """Draw normal numbers in another tensor's shape, dtype and device."""
    if input.layout in (strided, sparse_coo):
        made = _drawn_like("randn_like", "random_normal", input, dtype, device, generator, memory_format)
    else:
        made = import_module("mortice.sparse").like(input, 0, dtype, device, None).normal_(generator=generator)
    return finish(made, requires_grad, pin_memory)


def _drawn_like(name: str, kernel: str, x: Any, dtype: Any, device: Any, generator: Any, memory_format: Any) -> Any:
    where = x._device if device is None else resolve(device)
    kept = keeps(memory_format)
    like = x if kept and (x._device.level or dense_order(x) is not None) else None  # what is made has no gaps
    made = _draw(name, kernel, x.shape, _floating(name, dtype or x.dtype), where, generator, like)
    return made if kept and like is None else in_format_like(made, x, memory_format)


def normal(
    mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Any = None, dtype: DType | None = None,
    device: Any = None, requires_grad: bool = False, out: Any = None, layout: Any = None, pin_memory: bool | None = False,
) -> Any:  # fmt: skip
    """Draw from normal distributions of the given means and standard deviations (numbers or tensors)."""
    if size is not None:
        mean, std = number_of("normal", "mean", mean), number_of("normal", "std", std)
    tensors = [v for v in (mean, std) if isinstance(v, TensorBase)]
    _check_std("normal", std)
    if not tensors:
        if size is None:
            raise TypeError("normal: size is needed when mean and std are numbers.")
        if out is not None:
            dtype, device = kind_of("normal", out, dtype, device)
        made = randn(size, generator=generator, dtype=dtype, device=device)
        made = _moved(made, float(std), _in_both_parts(float(mean), made.dtype))
    else:
        shape = (tensors[0] + tensors[1]).shape if len(tensors) == 2 else tensors[0].shape
        first = tensors[0]
        z = _draw("normal", "random_normal", shape, _floating("normal", first.dtype), first._device, generator)
        made = _kept(cast(cast(z * _outside(std), first.dtype) + _outside(mean), first.dtype), *tensors)
        if out is not None:
            return _call.WRITE_OUT("normal", out, made)
    return given("normal", made, out, requires_grad, pin_memory)


def _kept(made: Any, *parents: Any) -> Any:
    """Keep a draw in the graph as PyTorch does, with a gradient of zero and a tangent of zero."""
    for x in parents:
        if (x._rg and modes.grad) or hasattr(x._device.level, "tangent"):
            made = where(x.new_zeros((), dtype=bool_), cast(x, made.dtype), made)
    return made


def underived(name: str, made: Any, *parents: Any) -> Any:
    """Keep in the graph what has no derivative: backward fails, where the part would be lost in silence; a tangent is refused at once."""
    parents = tuple([p for p in parents if p is not None])
    for p in parents:
        if p._device.level and p._device.backend.detached(p._buffer) is not p._buffer:
            raise NotImplementedError(f"Trying to use forward AD with aten::{name} that does not support it. Detach what it gets.")
    return record_crossing(made, parents, lambda g: undefined(f"aten::{name}"), "NotImplemented")


def _outside(value: Any) -> Any:
    return value.detach() if isinstance(value, TensorBase) else float(value)


def _check_std(name: str, std: Any) -> None:
    if std.__class__ is float and std >= 0:
        return
    if isinstance(std, TensorBase) and std.dtype.is_complex:
        raise RuntimeError(f"{name} expects standard deviation to be non-complex")
    low = (range_of(std) or (0,))[0] if isinstance(std, TensorBase) and std.numel() else std
    if not isinstance(low, TensorBase) and low < 0:
        every = "all elements of " * isinstance(std, TensorBase)
        raise RuntimeError(f"{name.removesuffix('_')} expects {every}std >= 0.0, but found std {low}")


def _open_uniform(name: str, t: Any, generator: Any) -> Any:
    """Draw float64 (or the widest) uniforms that are never 0."""
    kind = t._device.widest_float
    u = _draw(name, "random_uniform", t.shape, kind, t._device, generator, t)
    return u + 2.0 ** (-54 if kind is float64 else -25)


# ---- integers ----


@lru_cache
def _limits(dtype: DType) -> Any:
    return finfo(dtype) if dtype.kind in "fc" else iinfo(uint8 if dtype is bool_ else dtype)


def _fitting(name: str, low: int, high: int, dtype: DType) -> int:
    """Check that a dtype holds the integers from low to high - 1; return a high that no draw below it is rounded up to."""
    if dtype.kind == "c":
        raise DTypeError(f"{name}: not implemented for {dtype}; expected integers, floats or bool.")
    limits = _limits(dtype)
    least, most = (0, 1) if dtype is bool_ else (limits.min, limits.max)
    if dtype.kind != "f" and least <= low < high <= most:
        return high
    for what, value in (("from", low), ("to - 1", high - 1)):
        if not least <= value <= most:
            raise RuntimeError(f"{name}: {what} is out of bounds for {dtype}; got {value}. Use a wider dtype.")
        if dtype.kind == "f" and abs(value) > 2 / limits.eps:
            warn(
                f"{what} is out of bounds [-{int(2 / limits.eps)}, {int(2 / limits.eps)}], within which {dtype} holds every "
                f"integer; {name} got {value}. Draws beyond are rounded."
            )
    step = int(2 ** abs(high - 1).bit_length() * limits.eps / 2) if dtype.kind == "f" else 0
    if step < 2:
        return high
    last = (high - 1 + step // 2) // step * step  # what the greatest draw is rounded to
    return max(last - step // 2, low + 1) if last >= high else high


def _integers(
    name: str, low: Any, high: Any, shape: Size, dtype: DType, device: Device, generator: Any, whole: bool = False,
    like: Any = None,
) -> Any:
    low, high = operator.index(low), operator.index(high)
    if low >= high:
        raise RuntimeError(f"{name}: random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    dtype = check_dtype(name, dtype, device, computes=True)
    high = _fitting(name, low, high, dtype)
    made = _usual(name, "random_integers", generator, shape, int64, device, low, high, shape)
    if made is not None:
        return cast(made, dtype)
    try:
        # PyTorch fills a dtype of up to 32 bits with one word each, however many values it has.
        made = _in_turn("random_integers", generator, shape, int64, device, low, high, whole and dtype.itemsize < 8, like=like)
        if made is None:
            seed, offset, device = _take(generator, prod(shape), device)
            data = device.backend.random_integers(seed, offset, low, high, shape, device=device)
            made = make(data, device, int64, shape)
    except (MemoryError, ValueError, OverflowError) as error:
        raise out_of_memory(name, shape, int64, error) from None
    return cast(made, dtype)


def randint(
    low: Any = 0, high: Any = None, size: Any = None, *, generator: Any = None, dtype: DType | None = None,
    device: Any = None, requires_grad: bool = False, out: Any = None, layout: Any = None, pin_memory: bool | None = False,
) -> Any:  # fmt: skip
    """Draw integers from low (0 when left out) to high - 1."""
    if size is None and not hasattr(high, "__index__"):  # randint(3, 5) lacks a size: it is no draw of five numbers below three
        low, high, size = 0, low, high
    if high is None:
        low, high = 0, low
    if size is None:
        raise TypeError("randint: size is needed, as in randint(high, size) or randint(low, high, size).")
    if out is not None:
        dtype, device = kind_of("randint", out, dtype, device)
    made = _integers("randint", low, high, check_sizes("randint", (size,)), dtype or int64, resolve(device), generator)
    return given("randint", made, out, requires_grad, pin_memory)


def randint_like(
    input: Any, low: Any = 0, high: Any = None, *, dtype: DType | None = None, device: Any = None, layout: Any = None,
    requires_grad: bool = False, memory_format: Any = None, pin_memory: bool | None = False, generator: Any = None,
) -> Any:  # fmt: skip
    """Draw integers from low to high - 1 in another tensor's shape, dtype and device."""
    if high is None:
        low, high = 0, low
    where = input._device if device is None else resolve(device)
    like = input if keeps(memory_format) else None
    made = _integers("randint_like", low, high, input.shape, dtype or input.dtype, where, generator, like=like)
    return finish(in_format_like(made, input, memory_format), requires_grad, pin_memory)


def randperm(
    n: int, *, generator: Any = None, dtype: DType | None = None, device: Any = None, requires_grad: bool = False,
    out: Any = None, layout: Any = None, pin_memory: bool | None = False,
) -> Any:  # fmt: skip
    """Draw a permutation of 0 to n - 1."""
    n = operator.index(n)
    if n < 0:
        raise RuntimeError(f"randperm: n must be non-negative, got {n}")
    if out is not None:
        dtype, device = kind_of("randperm", out, dtype, device)
    where = resolve(device)
    dtype = check_dtype("randperm", dtype or int64, where, computes=True)
    if dtype.kind in "bc":
        raise DTypeError(f"randperm: not implemented for {dtype}; expected integers or floats.")
    most = 2 / _limits(dtype).eps + 1 if dtype.kind == "f" else _limits(dtype).max + 1
    if n > most:
        raise RuntimeError(f"randperm: n cannot be greater than {int(most)} for {dtype}; got {n}.")
    shape = Size((n,))
    made = _usual("randperm", "random_permutation", generator, shape, int64, where, n)
    if made is None:
        try:
            if (made := _in_turn("random_permutation", generator, shape, int64, where)) is None:
                seed, offset, where = _take(generator, n, where)
                made = make(where.backend.random_permutation(seed, offset, n, device=where), where, int64, shape)
        except (MemoryError, ValueError, OverflowError) as error:
            raise out_of_memory("randperm", shape, int64, error) from None
    return given("randperm", cast(made, dtype), out, requires_grad, pin_memory)


# ---- drawing by probabilities ----


def bernoulli_mask(p: Any, shape: Size, device: Device, generator: Any = None, like: Any = None) -> Any:
    """Draw a bool tensor that is True with probability p (a number or a tensor)."""
    many, device = isinstance(p, TensorBase), device.of_values
    if many and p.dtype.stored is not p.dtype:
        raise no_float8("bernoulli", p.dtype)
    if not many or p._device is device:
        made = _usual("bernoulli", "random_bernoulli", generator, shape, bool_, device, p._buffer if many else float(p), shape)
        if made is not None:
            return made
    kind = float32 if isinstance(p, TensorBase) and p.dtype is not float64 else float64
    if (made := _in_turn("random_uniform", generator, shape, kind, device, kind, like=like)) is not None:
        return made < p
    seed, offset, device = _take(generator, prod(shape), device)
    given = raise_to(p, device)._buffer if isinstance(p, TensorBase) else float(p)
    data = device.backend.random_bernoulli(seed, offset, given, shape, device=device)
    return make(data, device, bool_, shape)


def bernoulli(input: Any, p: Any = None, *, generator: Any = None, out: Any = None) -> Any:
    """Draw 1 with the probability that each element gives (or `p` everywhere), else 0."""
    if p is None:
        if input.dtype.kind != "f" or input.dtype.itemsize == 1:
            raise DTypeError(f"bernoulli: not implemented for {input.dtype}; expected probabilities as floats.")
        if input.numel():
            low, high = range_of(input) or (0, 1)
            if not (low >= 0 and high <= 1):
                raise RuntimeError(f"bernoulli: Expected p_in >= 0 && p_in <= 1; got values from {low} to {high}.")
        p = input.detach()
    elif not isinstance(p, TensorBase) and not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli: bernoulli_ expects p to be in [0, 1], but got p={p}")
    # It is drawn in the dtype of `out`: ones and zeros are the same in each.
    dtype = out.dtype if isinstance(out, TensorBase) else input.dtype
    made = cast(bernoulli_mask(p, input.shape, input._device, generator), dtype)
    return given("bernoulli", _kept(made, input), out)


def multinomial(
    input: Any, num_samples: int, replacement: bool = False, *, generator: Any = None, out: Any = None
) -> Any:
    """Draw indices with probabilities in proportion to each row of weights."""
    if len(input.shape) not in (1, 2):
        raise RuntimeError(f"multinomial: prob_dist must be 1 or 2 dim; got {len(input.shape)} dims.")
    if input.dtype.kind != "f":
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {CLASS_NAMES[input.dtype.name]}")
    n = input.shape[-1]
    if n > 1 << 24:  # beyond, PyTorch's float weights could not tell neighbours apart
        raise RuntimeError(f"multinomial: number of categories cannot exceed 2^24; got {n}.")
    if num_samples <= 0:
        raise RuntimeError(f"multinomial: cannot sample n_sample <= 0 samples; got {num_samples}.")
    if not replacement and num_samples > n:
        raise RuntimeError("multinomial: cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    weights = cast(input.detach(), input._device.widest_float)
    total = weights.sum(-1, keepdim=True)
    low, high = (weights.numel() and range_of(weights)) or (0, 0)
    if not (low >= 0 and high < math.inf):
        raise RuntimeError("multinomial: probability tensor contains either `inf`, `nan` or element < 0")
    if total.numel() and not (range_of(total) or (1, 1))[0] > 0:
        raise RuntimeError("multinomial: invalid multinomial distribution (sum of probabilities <= 0)")
    rows = input.shape[:-1]
    if replacement and num_samples > 1:
        edges = (weights / total).cumsum(-1)
        u = _draw("multinomial", "random_uniform", Size((*rows, num_samples)), weights.dtype, input._device, generator)
        # Rounding may carry a draw up to the last edge; what lies below that has an index of weight more than 0.
        most = edges[..., -1:]
        made = searchsorted(edges, (u * most).minimum(most * (1 - _limits(weights.dtype).eps)), right=True)
    else:
        # The smallest exponential clocks of rate w ring in the order of a draw without replacement.
        clock = _draw("multinomial", "random_exponential", input.shape, weights.dtype, input._device, generator)
        rung = clock / weights
        made = rung.argmin(-1, keepdim=True) if num_samples == 1 else rung.argsort(-1)[..., :num_samples].contiguous()
    return given("multinomial", made, out)


# ---- seeds and states ----


def _state_tensor(state: bytes) -> Any:
    return from_host(list(state), (len(state),), uint8, resolve())


_streams.wrap_state = _state_tensor
