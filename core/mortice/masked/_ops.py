"""Reductions and normalisations of the elements that a mask has True. What is masked out is read as what changes nothing."""

from __future__ import annotations

import math
from typing import Any

import mortice
from mortice.nn import functional as F

_SMALL = (mortice.uint8, mortice.bool, mortice.int8, mortice.int16, mortice.int32)


def _dims(dim: Any, ndim: int) -> tuple[int, ...]:
    """Return dims in order, all for None and for none."""
    if dim is None or dim == ():
        return tuple(range(ndim))
    found: list[int] = []
    ndim = max(ndim, 1)
    for d in (dim,) if isinstance(dim, int) else dim:
        if d in found:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        if not -ndim <= d < ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {d})")
        found.append(d % ndim)
    return tuple(sorted(found))


def _lowest(x: Any, sign: int = -1) -> Any:
    """Return the lowest number of a dtype, or with sign 1 the highest."""
    if x.is_floating_point() or x.is_complex():
        return sign * math.inf
    limits = mortice.iinfo(x.dtype)
    return limits.min if sign < 0 else limits.max


def _mask_of(input: Any, mask: Any) -> Any:
    if mask.ndim > input.ndim:
        raise IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)")
    return mortice.broadcast_to(mask if mask.layout is mortice.strided else mask.to_dense(), input.shape).to(mortice.bool)


def _parts(input: Any, mask: Any) -> tuple[Any, Any]:
    """Return plain data and the mask to use, None for all; that of a MaskedTensor is its own."""
    own = getattr(input, "_masked_mask", None)
    if own is not None:
        return input.get_data(), own
    return input, None if mask is None else _mask_of(input, mask)


def _filled(input: Any, mask: Any, value: Any) -> Any:
    data, mask = _parts(input, mask)
    if data.layout is not mortice.strided:
        raise ValueError(f"masked: expects strided tensor (got {data.layout} tensor). Call to_dense() first.")
    if mask is None:
        return data
    value = value(data) if callable(value) else value
    return mortice.where(mask, data, mortice.tensor(value, dtype=data.dtype, device=data.device))


def _of_layouts(fn: Any, *layouts: Any) -> Any:
    """Let a reduction take tensors of these layouts too, and give such ones: zeros where no element counts."""

    def reduced(input: Any, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None) -> Any:
        layout, keepdim = input.layout, bool(keepdim)
        if layout is mortice.strided:
            return fn(input, dim, keepdim=keepdim, dtype=dtype, mask=mask)
        if layout not in layouts:
            raise ValueError(f"masked {name} expects strided or {' or '.join(map(str, layouts))} tensor (got {layout} tensor)")
        if mask is None and name != "sum":
            raise ValueError(f"masked {name} expects explicit mask for {str(layout).rpartition('.')[2]} tensor input")
        if layout is mortice.sparse_csr and not keepdim:
            raise RuntimeError(f"masked {name}: reduction operations on CSR tensors with keepdim=False is unsupported")
        inside = None if mask is None else _mask_of(input, mask)
        made = fn(input.to_dense(), dim, keepdim=keepdim, dtype=dtype, mask=inside)
        if inside is not None:
            made = mortice.where(inside.any(_dims(dim, input.ndim), keepdim), made, mortice.zeros_like(made))
        return made.to_sparse(layout=layout)

    name = fn.__name__
    reduced.__name__ = reduced.__qualname__ = name
    reduced.__doc__ = fn.__doc__
    return reduced


def sum(input: Any, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None) -> Any:
    """Return the sum."""
    dtype = dtype or (mortice.int64 if input.dtype in _SMALL else input.dtype)
    return mortice.sum(_filled(input, mask, 0), _dims(dim, input.ndim), bool(keepdim), dtype=dtype)


def prod(input: Any, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None) -> Any:
    """Return the product."""
    x = _filled(input, mask, 1).to(dtype or (mortice.int64 if input.dtype in _SMALL else input.dtype))
    for d in reversed(_dims(dim, input.ndim)):
        x = x.prod(dim=d, keepdim=bool(keepdim))
    return x


_SPARSE = (mortice.sparse_coo, mortice.sparse_csr)
sum, prod = _of_layouts(sum, *_SPARSE), _of_layouts(prod, *_SPARSE)


def _like(fn: Any, made: Any) -> Any:
    made.__name__ = made.__qualname__ = name = fn.__name__
    made.__doc__ = f"Return `{name}`, with what `mask` has False read as what changes nothing."
    return made


def _running(fn: Any, fill: int) -> Any:
    def running(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
        dtype = dtype or input.dtype
        return fn(_filled(input, mask, fill), _dims(dim, input.ndim)[0], dtype=dtype).to(dtype)

    return _like(fn, running)


def _extreme(fn: Any, sign: int, dims: Any = lambda dim, ndim: dim) -> Any:
    def extreme(
        input: Any, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None
    ) -> Any:  # fmt: skip
        x = _filled(input, mask, lambda x: _lowest(x, sign))
        return fn(x, dims(dim, input.ndim), bool(keepdim)).to(dtype or input.dtype)

    return _like(fn, extreme)


def _soft(fn: Any, sign: int) -> Any:
    def soft(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
        x = _filled(input, mask, lambda x: _lowest(x, sign))
        return fn(x, _dims(dim, input.ndim)[0], dtype=dtype or input.dtype)

    return _like(fn, soft)


cumsum, cumprod = _running(mortice.cumsum, 0), _running(mortice.cumprod, 1)
amax, amin = [_of_layouts(_extreme(*given, _dims), *_SPARSE) for given in ((mortice.amax, -1), (mortice.amin, 1))]
argmax, argmin = _extreme(mortice.argmax, -1), _extreme(mortice.argmin, 1)  # in the input's dtype
softmax, log_softmax, softmin = _soft(F.softmax, -1), _soft(F.log_softmax, -1), _soft(F.softmin, 1)


def _count(input: Any, dim: Any, keepdim: bool, mask: Any) -> Any:
    inside = mortice.ones(input.shape, dtype=mortice.bool, device=input.device) if mask is None else mask
    return mortice.sum(inside, _dims(dim, input.ndim), keepdim)


def mean(input: Any, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None) -> Any:
    """Return the mean."""
    made = dtype or input.dtype
    if not (made.is_floating_point or made.is_complex):
        raise ValueError(
            f"mean(): Could not infer output dtype. {'Optional' if dtype else 'Input'} dtype must be either a floating point "
            f"or complex dtype. Got: {made}"
        )
    data, inside = _parts(input, mask)
    return sum(data, dim, keepdim=keepdim, dtype=made, mask=inside) / _count(data, dim, bool(keepdim), inside)


mean = _of_layouts(mean, mortice.sparse_csr)


def median(input: Any, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """Return the median, nan where all is masked out."""
    real = input.is_floating_point()
    x = _filled(input if real else input.float(), mask, math.nan)
    out = mortice.nanmedian(x, _dims(dim, input.ndim)[0], keepdim).values
    if not real and bool(out.isnan().any()):
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return out if real else out.to(dtype or input.dtype)


def logsumexp(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """Return the logarithm of the sum of exponentials."""
    return mortice.logsumexp(_filled(input, mask, _lowest), _dims(dim, input.ndim), keepdim=keepdim).to(dtype or input.dtype)


def logaddexp(input: Any, other: Any, *, dtype: Any = None, input_mask: Any = None, other_mask: Any = None) -> Any:
    """Return log(exp(input) + exp(other))."""
    x, y = _filled(input, input_mask, _lowest), _filled(other, other_mask, _lowest)
    return mortice.logaddexp(x, y).to(dtype or input.dtype)


def norm(
    input: Any, ord: float | None = 2.0, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None
) -> Any:  # fmt: skip
    """Return the vector norm."""
    x = _filled(input, mask, math.inf if ord == -math.inf else 0)
    return mortice.linalg.vector_norm(x, ord, _dims(dim, input.ndim), bool(keepdim), dtype=dtype or input.dtype)


def var(
    input: Any, dim: Any = None, unbiased: bool | None = None, *, correction: float | None = None,
    keepdim: bool | None = False, dtype: Any = None, mask: Any = None,
) -> Any:  # fmt: skip
    """Return the variance."""
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    less = correction if correction is not None else 1.0 if unbiased is None else float(unbiased)
    made = dtype or (input.dtype if input.is_floating_point() or input.is_complex() else mortice.float32)
    data, inside = _parts(input, mask)
    n = _count(data, dim, True, inside)
    apart = data - sum(data, dim, keepdim=True, dtype=made, mask=inside) / n
    total = sum(apart * apart.conj(), dim, keepdim=keepdim, mask=inside)
    return (total / (n.reshape(total.shape) - less).clamp(min=0)).to(made)


def std(
    input: Any, dim: Any = None, unbiased: bool | None = None, *, correction: float | None = None,
    keepdim: bool | None = False, dtype: Any = None, mask: Any = None,
) -> Any:  # fmt: skip
    """Return the standard deviation."""
    return mortice.sqrt(var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask))


def normalize(input: Any, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Any = None) -> Any:
    """Return the input over its norm, zeros where it is masked out."""
    length = norm(input, ord, dim, keepdim=True, dtype=dtype or input.dtype, mask=mask)
    return _filled(input, mask, 0) / length.clamp(min=eps)
