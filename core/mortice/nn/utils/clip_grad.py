"""Clipping gradients by their total norm or by value."""

from __future__ import annotations

import math
import types
from collections.abc import Iterable
from typing import Any

import mortice
from mortice.notice import warn

__all__ = [
    "clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm",
]  # fmt: skip


def _grads(parameters: Any) -> list[Any]:
    if isinstance(parameters, mortice.Tensor):
        parameters = [parameters]
    return [p.grad for p in parameters if p.grad is not None]


def _plain(tensors: list[Any]) -> bool:
    """Tell whether backends can be given the tensors' memory."""
    return all([type(t) is mortice.Tensor and not t.is_sparse and t.dtype.kind in "fc" for t in tensors])


def get_total_norm(
    tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Any:
    """Return the norm of all tensors taken as one vector."""
    given = [tensors] if isinstance(tensors, mortice.Tensor) else list(tensors)
    if not given:
        return mortice.tensor(0.0)
    norm_type = float(norm_type)  # "inf" is one
    with mortice.no_grad():
        device, d = given[0].device, given[0].dtype
        # Norms of negative order refuse empty tensors, one by one.
        if foreach is not False and norm_type >= 0 and _plain(given) and all([t.device is device and t.dtype is d for t in given]):
            norms = mortice._vector_norms(given, norm_type)
        else:
            each = [mortice.linalg.vector_norm(t, norm_type) for t in given]
            norms = mortice.stack([n if n.device == device else n.to(device) for n in each])
        total = mortice.linalg.vector_norm(norms, norm_type)
    if error_if_nonfinite and not math.isfinite(float(total)):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be clipped. "
            "To disable this error and scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total


def clip_grads_with_norm_(parameters: Any, max_norm: float, total_norm: Any, foreach: bool | None = None) -> None:
    """Scale the gradients in place by max_norm / total_norm where that is below 1."""
    with mortice.no_grad():
        scale = mortice.clamp(float(max_norm) / (total_norm + 1e-6), max=1.0)
        grads = _grads(parameters)
        factors = [
            scale if (g.device, g.dtype) == (scale.device, scale.dtype) else scale.to(g.device).to(g.dtype) for g in grads
        ]
        if grads and foreach is not False and _plain(grads) and mortice._apart(grads):
            mortice._fused_step_("scale_step", grads, None, (), {"factor": factors})
            return
        for g, factor in zip(grads, factors):
            g.mul_(factor)


def clip_grad_norm_(
    parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Any:  # fmt: skip
    """Scale the gradients of parameters in place so that their total norm is at most `max_norm`; return that norm."""
    generated = isinstance(parameters, types.GeneratorType)
    parameters = [parameters] if isinstance(parameters, mortice.Tensor) else list(parameters)
    if generated and not parameters:
        warn("`parameters` is an empty generator, no gradient clipping will occur.")
    total = get_total_norm(_grads(parameters), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total, foreach)
    return total


def clip_grad_norm(
    parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Any:  # fmt: skip
    """Do `clip_grad_norm_`, under its old name."""
    warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.", FutureWarning
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters: Any | Iterable[Any], clip_value: float, foreach: bool | None = None) -> None:
    """Limit the gradients of parameters in place to [-clip_value, clip_value]."""
    with mortice.no_grad():
        for g in _grads(parameters):
            g.clamp_(-float(clip_value), float(clip_value))
