"""Covariances and correlation coefficients."""

from __future__ import annotations

import math
from typing import Any

from mortice.dtype import promote_types
from mortice.node import TENSOR_KERNELS
from mortice.notice import warn
from mortice.ops import elementwise
from mortice.ops.matmul import conj, matmul
from mortice.ops.movement import cast, reshape, unsqueeze
from mortice.shape import prod
from mortice.tensor import TensorBase

__all__ = ["corrcoef", "cov"]


def cov(input: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    """Return the covariances of variables in rows, over observations in columns."""
    if len(input.shape) > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {len(input.shape)} dimensions"
        )
    if input.dtype.kind == "b":
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x = reshape(input, (1, -1) if prod(input.shape) else (1, 0)) if len(input.shape) < 2 else input
    n = x.shape[1]
    weights = None
    if fweights is not None:
        _check_weights("fweights", fweights, n, "iu", "integral")
        if bool((fweights < 0).any().item()):
            raise RuntimeError("cov(): fweights cannot be negative")
        weights = fweights
    if aweights is not None:
        _check_weights("aweights", aweights, n, "f", "floating point")
        if bool((aweights < 0).any().item()):
            raise RuntimeError("cov(): aweights cannot be negative")
        weights = aweights if weights is None else elementwise.mul(weights, aweights)
    total: Any = n if weights is None else weights.sum(0)
    if weights is None:
        average = x.sum(1, keepdim=True) / total
    else:
        if total.item() == 0:
            raise RuntimeError("cov(): weights sum to zero, can't be normalized")
        average = (x * weights).sum(1, keepdim=True) / total
    if weights is not None and aweights is not None and correction != 0:
        norm = total - correction * (weights * aweights).sum(0) / total
    else:
        norm = total - correction
    if isinstance(norm, TensorBase):
        norm = TENSOR_KERNELS.maximum(norm, 0)
    elif norm <= 0:
        warn("cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.")
        norm = 0
    centred = x - average
    weighted = centred if weights is None else centred * weights
    if weighted.dtype is not centred.dtype:
        d = promote_types(weighted.dtype, centred.dtype)
        weighted, centred = cast(weighted, d), cast(centred, d)
    product = matmul(weighted, conj(centred.t()))
    made = product / norm if isinstance(norm, TensorBase) or norm else product * math.nan if n == 0 else product / 0.0
    return made.squeeze()


def _check_weights(name: str, w: Any, n: int, kinds: str, what: str) -> None:
    if len(w.shape) > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with {len(w.shape)} dimensions"
        )
    if w.dtype.kind not in kinds:
        raise RuntimeError(f"cov(): expected {name} to have {what} dtype but got {name} with {w.dtype} dtype")
    if prod(w.shape) != n:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the input but got {prod(w.shape)} != {n}"
        )


def corrcoef(input: Any) -> Any:
    """Return the correlation coefficients of variables in rows."""
    if len(input.shape) > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {len(input.shape)} dimensions"
        )
    c = cov(input)
    if not c.shape:
        return c / c
    d = TENSOR_KERNELS.diagonal(c, offset=0, axis1=0, axis2=1)
    d = TENSOR_KERNELS.real(d) if d.dtype.is_complex else d
    s = TENSOR_KERNELS.sqrt(d)
    c = c / unsqueeze(s, -1) / unsqueeze(s, 0)
    if c.dtype.is_complex:
        from mortice.ops import complex as complex_ops

        return complex_ops.complex(TENSOR_KERNELS.real(c).clamp(-1, 1), TENSOR_KERNELS.imag(c).clamp(-1, 1))
    return c.clamp(-1, 1)
