"""The gradient of each sample of a batch, kept beside a module's parameters."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from mortice import Tensor
from mortice.autograd import Function
from mortice.autograd.trees import leaves, rebuild, tree_map
from mortice.func import functional_call, vmap


class _OfEachSample(Function):
    """One parameter for each sample; what comes back is its `grad_sample`, and its `grad` stays as it is."""

    @staticmethod
    def forward(ctx: Any, parameter: Any, size: int, factor: int) -> Any:
        ctx.parameter, ctx.factor = parameter, factor
        return parameter.expand(size, *parameter.shape)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        known = getattr(ctx.parameter, "grad_sample", None)
        ctx.parameter.grad_sample = g * ctx.factor + (0 if known is None else known)
        return None, None, None


def call_for_per_sample_grads(
    module: Any, *, batch_size: int | None = None, loss_reduction: str = "sum", batch_first: bool = True
) -> Callable[..., Any]:
    """Return a module's forward whose backward sets `grad_sample`, of shape (batch, *shape), on each trained parameter.

    Args:
        loss_reduction: "sum", or "mean" where the loss divides by the size of the batch.
        batch_first: the batch is dimension 0 of what comes and goes, else 1.

    Raises:
        RuntimeError: for other arguments, where the size of the batch is not clear, or where a parameter has a `grad_sample`.
    """
    if loss_reduction not in ("sum", "mean") or not (batch_size is None or (isinstance(batch_size, int) and batch_size > 0)):
        raise RuntimeError(
            "call_for_per_sample_grads: expected loss_reduction sum or mean and batch_size None or positive; got "
            f"{loss_reduction!r} and {batch_size!r}."
        )
    if any(getattr(p, "grad_sample", None) is not None for p in module.parameters()):
        raise RuntimeError("call_for_per_sample_grads: a parameter has a grad_sample, which would be added to; set it to None first.")
    dim = 0 if batch_first else 1

    @wraps(module.forward)
    def forward(*args: Any, **kwargs: Any) -> Any:
        sizes = {x.shape[dim] for x in leaves((args, kwargs)) if isinstance(x, Tensor)}
        if batch_size is None and len(sizes) != 1:
            raise RuntimeError(f"call_for_per_sample_grads: expected tensors of one batch size; got {sorted(sizes)}. Give batch_size.")
        size = batch_size or sizes.pop()
        factor = size if loss_reduction == "mean" else 1
        each = {n: _OfEachSample.apply(p, size, factor) for n, p in module.named_parameters() if p.requires_grad}
        dims = [dim if isinstance(x, Tensor) and x.shape[dim : dim + 1] == (size,) else None for x in leaves((args, kwargs))]

        def one(parameters: Any, given: Any) -> Any:  # a batch of one
            given = rebuild(given, (x if d is None else x.unsqueeze(d) for x, d in zip(leaves(given), dims)))
            return tree_map(lambda y: y.squeeze(dim), functional_call(module, parameters, *given))

        return vmap(one, in_dims=(0, rebuild((args, kwargs), iter(dims))), out_dims=dim, randomness="different")(each, (args, kwargs))

    return forward
