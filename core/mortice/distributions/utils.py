"""What distributions share: parameters brought to one shape, properties computed once, probabilities and their logits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mortice
from mortice import Tensor
from mortice import _range_of as range_of

euler_constant = 0.57721566490153286060


def broadcast_all(*values: Any) -> tuple[Any, ...]:
    """Return tensors of one shape; numbers take the dtype and device of the first tensor among the values."""
    alike = [isinstance(v, Tensor) or hasattr(v, "__torch_function__") for v in values]
    if not all(a or isinstance(v, (int, float)) for v, a in zip(values, alike)):
        got = ", ".join(type(v).__name__ for v in values)
        raise ValueError(f"Input arguments must all be instances of Number, Tensor or objects implementing __torch_function__; got {got}.")
    first = next((v for v in values if isinstance(v, Tensor)), None)
    dtype = mortice.get_default_dtype() if first is None else first.dtype
    device = None if first is None else first.device
    made = [v if a else mortice.tensor(v, dtype=dtype, device=device) for v, a in zip(values, alike)]
    return tuple(mortice.broadcast_tensors(*made))


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Any:
    """Draw from the normal distribution. PyTorch's name for it, which libraries of distributions import."""
    return mortice.randn(shape, dtype=dtype, device=device)


class lazy_property:
    """A property computed at its first use, and then an attribute."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        self.name = wrapped.__name__
        self.__doc__ = wrapped.__doc__

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with mortice.enable_grad():
            value = self.wrapped(instance)
        instance.__dict__[self.name] = value
        return value


def holds(found: Any) -> bool:
    """Tell whether all is True, for a check; inside vmap of every sample, as one of them fails for all."""
    found = found.all()
    asked = None if found._device.level is None else range_of(found.long())
    return bool(asked[0] if asked else found)


def clamp_probs(probs: Any) -> Any:
    """Keep probabilities away from 0 and 1 by the dtype's eps."""
    eps = mortice.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def inside_unit(p: Any) -> Any:
    """Keep probabilities off the ends of [0, 1], by as little as the dtype allows."""
    info = mortice.finfo(p.dtype)
    return p.clamp(min=info.tiny, max=1.0 - info.eps)


def probs_to_logits(probs: Any, is_binary: bool = False) -> Any:
    """Return the log odds of probabilities, or their logs where they are of several categories."""
    ps = clamp_probs(probs)
    return ps.log() - (-ps).log1p() if is_binary else ps.log()


def logits_to_probs(logits: Any, is_binary: bool = False) -> Any:
    """Return the probabilities of log odds, or of unnormalised logs along the last dim."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def tril_matrix_to_vec(mat: Any, diag: int = 0) -> Any:
    """Return the lower triangles of matrices as vectors, row by row."""
    n = mat.shape[-1]
    if diag < -n or diag >= n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = mortice.tril_indices(n, n, diag, device=mat.device).unbind(0)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Any, diag: int = 0) -> Any:
    """Return the lower triangular matrices whose triangles are the vectors, row by row."""
    m = vec.shape[-1]
    # m numbers fill the triangle of n rows: n (n + 1) / 2 less what `diag` cuts off.
    size = (-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * m + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    n = round(size)
    if abs(size - n) > 1e-8 * max(n, 1):
        raise ValueError(f"The size of last dimension is {m} which cannot be expressed as the lower triangular part of a matrix.")
    rows, columns = mortice.tril_indices(n, n, diag, device=vec.device).unbind(0)
    flat = vec.new_zeros((*vec.shape[:-1], n * n))
    return flat.index_copy(-1, rows * n + columns, vec).reshape((*vec.shape[:-1], n, n))


def _sum_rightmost(value: Any, dims: int) -> Any:
    """Add up over the last `dims` dims."""
    return value if dims == 0 else value.reshape((*value.shape[: value.dim() - dims], -1)).sum(-1)


class ProbsOrLogits:
    """A distribution made from probabilities or from logits: the one that was not given is computed when it is asked for."""

    _binary = True

    def _take(self, probs: Any, logits: Any) -> Any:
        """Refuse both or neither; return the one that was given."""
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        return probs if logits is None else logits

    @lazy_property
    def logits(self) -> Any:
        """The log odds; for several categories, normalised logs."""
        return probs_to_logits(self.probs, self._binary)

    @lazy_property
    def probs(self) -> Any:
        """The probabilities."""
        return logits_to_probs(self.logits, self._binary)

    @property
    def _param(self) -> Any:
        return self.__dict__["probs"] if "probs" in self.__dict__ else self.logits

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter that was given."""
        return self._param.size()
