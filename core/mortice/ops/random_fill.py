"""Filling a tensor with random numbers in place: `uniform_` and its kin, by what `ops.random` draws with."""

from __future__ import annotations

import math
from typing import Any

from mortice.dtype import DType, bool_
from mortice.errors import DTypeError
from mortice.layout import sparse_coo, strided
from mortice.mutation import assign, check_writable, plain, stand_in, write
from mortice.ops.complex import view_as_complex, view_as_real
from mortice.ops.movement import cast
from mortice.ops.random import (
    _check_std,
    _checked,
    _draw,
    _floating,
    _in_both_parts,
    _in_turn,
    _integers,
    _kept,
    _limits,
    _moved,
    _open_uniform,
    _usual,
    bernoulli,
    bernoulli_mask,
)
from mortice.tensor import TensorBase


def _fill(name: str, t: Any, made: Any) -> Any:
    if made.dtype is not t.dtype:
        made = cast(made, t.dtype)
    if made._device is t._device and made._storage is None and not made._rg and plain(t):
        write(t, made._buffer, True)
        return t
    check_writable(name, t)
    return assign(t, _kept(made.detach(), stand_in(t)), True)


def _fill_about(name: str, draw: str, t: Any, d: DType, generator: Any, scale: Any, shift: Any, *place: Any) -> Any:
    """Fill with floats that PyTorch's engine draws where they belong, and rounds after that; others are moved there."""
    if _checked(generator).engine_for(t._device.base) is None:
        drawn = _draw(name, draw, t.shape, d, t._device, generator, t)
        return _fill(name, t, _moved(drawn, scale, _in_both_parts(shift, d)))
    parts, real = (view_as_real(t.detach()), d.to_real()) if d.kind == "c" else (t, d)
    made = _in_turn(draw, generator, parts.shape, real, parts._device, real, *map(float, place), like=parts)
    return _fill(name, t, made if parts is t else view_as_complex(made))


def _lowest(name: str, from_: Any, named: dict[str, Any]) -> Any:
    """Return the lowest number to draw, whose keyword `from` no parameter can have for a name."""
    if not named:
        return from_
    for unknown in named.keys() - {"from"}:
        raise TypeError(f"{name}() got an unexpected keyword argument {unknown!r}")
    return named.get("from", from_)


def uniform_(self: Any, from_: float = 0.0, to: float = 1.0, *, generator: Any = None, **named: Any) -> Any:
    """Fill with uniform numbers on [from, to)."""
    from_ = _lowest("uniform_", from_, named)
    if from_ > to:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={from_} > to={to}")
    d = _floating("uniform_", self.dtype)
    if from_ != 0 or to != 1:
        most = _limits(d).max
        for what, value in (("from", from_), ("to", to)):
            if not abs(value) <= most:
                raise RuntimeError(f"uniform_: {what} is out of bounds for {self.dtype}; got {value}.")
        if to - from_ > most:
            raise RuntimeError(f"uniform_ expects to-from <= {most}, but found to={to} and from={from_}")
    if (done := _usual("uniform_", "random_uniform", generator, self.shape, d, None, self, to - from_, from_)) is not None:
        return done
    return _fill_about("uniform_", "random_uniform", self, d, generator, to - from_, from_, from_, to)


def normal_(self: Any, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Any:
    """Fill with normal numbers."""
    _check_std("normal_", std)
    d = _floating("normal_", self.dtype)
    if (done := _usual("normal_", "random_normal", generator, self.shape, self.dtype, None, self, std, mean)) is not None:
        return done
    if self._device.level is not None and self.layout not in (strided, sparse_coo):
        self.values().normal_(mean, std, generator=generator)  # numbers where it has any
        return self
    each = std / math.sqrt(2) if d.kind == "c" else std
    return _fill_about("normal_", "random_normal", self, d, generator, std, mean, mean, each)


def bernoulli_(self: Any, p: Any = 0.5, *, generator: Any = None) -> Any:
    """Fill with 1 with probability p, else 0."""
    if isinstance(p, TensorBase) or (p.__class__ is float and 0 <= p <= 1):
        return _fill("bernoulli_", self, bernoulli_mask(p, self.shape, self._device, generator, self))
    return _fill("bernoulli_", self, bernoulli(self.detach(), p, generator=generator))


def exponential_(self: Any, lambd: float = 1.0, *, generator: Any = None) -> Any:
    """Fill with exponential numbers of rate lambd."""
    if lambd <= 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd}")
    kind = _floating("exponential_", self.dtype)
    name, kernel = "exponential_", "random_exponential"
    if lambd == 1 and (done := _usual(name, kernel, generator, self.shape, kind, None, self, 1, 0)) is not None:
        return done
    made = _draw(name, kernel, self.shape, kind, self._device, generator, self)
    return _fill("exponential_", self, made if lambd == 1 else made / lambd)


def cauchy_(self: Any, median: float = 0.0, sigma: float = 1.0, *, generator: Any = None) -> Any:
    """Fill with numbers of a Cauchy distribution."""
    if sigma <= 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    _floating("cauchy_", self.dtype)
    u = _open_uniform("cauchy_", self, generator)
    return _fill("cauchy_", self, ((u - 0.5) * math.pi).tan() * sigma + median)


def log_normal_(self: Any, mean: float = 1.0, std: float = 2.0, *, generator: Any = None) -> Any:
    """Fill with numbers whose logarithm is normal."""
    if std <= 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std}")
    kind = _floating("log_normal_", self.dtype)
    wide = self._device.widest_float  # PyTorch rounds what the exponential makes, and only that
    z = _in_turn("random_normal_each", generator, self.shape, wide, self._device, wide, like=self)
    if z is None:
        z = _draw("log_normal_", "random_normal", self.shape, kind, self._device, generator)
    return _fill("log_normal_", self, (z * std + mean).exp())


def geometric_(self: Any, p: float, *, generator: Any = None) -> Any:
    """Fill with the number of trials up to the first success."""
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    if self.dtype.kind in "bc":
        raise DTypeError(f"geometric_: not implemented for {self.dtype}; expected integers or floats.")
    u = _open_uniform("geometric_", self, generator)
    return _fill("geometric_", self, (u.log() / math.log1p(-p)).ceil())


def random_(self: Any, from_: Any = None, to: Any = ..., *, generator: Any = None, **named: Any) -> Any:
    """Fill with integers: from `from` to `to` - 1, from 0 to `to` - 1, or over all that the dtype counts exactly.

    A `to` of None is the dtype's last: `random_(3)` draws 0, 1 and 2, `random_(3, None)` from 3 on.
    """
    from_ = _lowest("random_", from_, named)
    if from_ is not None and to is ...:
        from_, to = 0, from_
    d, whole = self.dtype, from_ is None and to is ...
    if to is None or to is ...:
        last = 1 if d is bool_ else int(2 / _limits(d).eps) if d.kind in "fc" else min(_limits(d).max, 2**63 - 1)
        to = last + 1
    return _fill("random_", self, _integers("random_", from_ or 0, to, self.shape, d, self._device, generator, whole, self))
