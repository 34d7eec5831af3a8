"""Connectionist temporal classification: `ctc_loss`, which reads the lengths and labels, and its op."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from mortice.backends.nn_ctc import CTCKernels
from mortice.call import no_tensor
from mortice.dtype import int64
from mortice.errors import DTypeError, ShapeError
from mortice.levels import lane_by_lane
from mortice.node import TENSOR_KERNELS
from mortice.op import op
from mortice.ops.creation import arange, full
from mortice.ops.data import tensor
from mortice.ops.index import where
from mortice.ops.index_rows import index_select
from mortice.ops.movement import cast, reshape, unsqueeze
from mortice.ops.nn_loss import check_classes
from mortice.ops.reduce import mean
from mortice.ops.reduce import sum as add_up
from mortice.rules import beside_wide
from mortice.shape import Size
from mortice.tensor import TensorBase

__all__ = ["ctc_loss"]


def _ctc_shapes(name: str, log_probs: Size, labels: Size, *rest: Any, **attrs: Any) -> Any:
    return Size((labels[0],)), Size((log_probs[0], labels[0], 2 * labels[1] + 1))


@op(
    result=beside_wide, shape=_ctc_shapes, kernel="ctc_loss", name="ctc_loss", dtypes="f", outputs=("out", "reached"),
    differentiable=1, fixed=("labels", "input_lengths", "target_lengths"),
)  # fmt: skip
def _ctc_loss(
    k: Any, log_probs: Any, labels: Any, input_lengths: Any, target_lengths: Any, /, *, blank: int, zero_infinity: bool
) -> Any:
    """Return each sample's negative log-likelihood of its labels, and what backward reads."""


_ctc_loss.vjp(
    log_probs=lambda k, g, log_probs, labels, input_lengths, target_lengths, reached, blank, zero_infinity: (
        k.ctc_loss_grad(
            g, log_probs, labels, input_lengths, target_lengths, reached, blank=blank, zero_infinity=zero_infinity
        )
    )
)


# On Tensors the gradient sums over the ways again, in the graph: the op's `reached` has no gradient.
def _tensor_ctc_loss(*operands: Any, **attrs: Any) -> Any:
    return CTCKernels.ctc_loss(TENSOR_KERNELS, *operands, **attrs)


def _tensor_ctc_loss_grad(*operands: Any, **attrs: Any) -> Any:
    return CTCKernels.ctc_loss_grad(TENSOR_KERNELS, *operands[:5], **attrs)


TENSOR_KERNELS.replace("ctc_loss", _tensor_ctc_loss)
TENSOR_KERNELS.replace("ctc_loss_grad", _tensor_ctc_loss_grad)


def _lengths(what: str, value: Any, batch: int, limit: int | None = None) -> list[int]:
    """Return lengths given as a tensor or a sequence of ints."""
    if isinstance(value, TensorBase):
        if value.dtype.kind not in "iu":
            raise DTypeError(f"ctc_loss: {what} must be integral; got {value.dtype}.")
        found = reshape(value, (-1,)).tolist()
    elif isinstance(value, (list, tuple)):
        found = [int(n) for n in value]
    else:
        raise TypeError(f"ctc_loss: expected {what} to be a Tensor or a tuple of ints; got {type(value).__name__}.")
    if len(found) != batch:
        raise ShapeError(f"ctc_loss: {what} must be of size batch_size ({batch}); got {len(found)}.")
    for n in found:
        if n < 0:
            raise ShapeError(f"ctc_loss: Expected {what} to have value at least 0, but got value {n}.")
        if limit is not None and n > limit:
            raise ShapeError(f"ctc_loss: Expected {what} to have value at most {limit}, but got value {n}.")
    return found


def _padded(targets: Any, lengths: Sequence[int], counts: Any, blank: int, classes: int) -> Any:
    """Return the labels as (N, S), S at least 1, with blanks after each sample's own; refuse what is no class."""
    longest, total = max(lengths), sum(lengths)
    if len(targets.shape) == 1:
        if targets.shape[0] != total:
            raise ShapeError(
                f"ctc_loss: Expected tensor to have size {total} at dimension 0, but got size {targets.shape[0]} for "
                "argument #2 'targets'. Give every sample's labels one after the other."
            )
    else:
        if targets.shape[0] != len(lengths) or targets.shape[1] < longest:
            raise ShapeError(
                f"ctc_loss: Expected tensor to have size {len(lengths)} at dimension 0 and at least {longest} at "
                f"dimension 1, but got size {list(targets.shape)} for argument #2 'targets'."
            )
    device = counts.device
    if not longest:
        return full((len(lengths), 1), blank, dtype=int64, device=device)
    number = arange(longest, device=device)
    own = number < reshape(counts, (-1, 1))
    if len(targets.shape) == 1:
        starts = tensor([end - n for end, n in zip(accumulate(lengths), lengths)], device=device)
        at = where(own, number + reshape(starts, (-1, 1)), 0)
        targets = reshape(index_select(targets, 0, reshape(at, (-1,))), at.shape)
    labels = where(own, cast(targets[:, :longest], int64), blank)
    check_classes("ctc_loss", labels, classes)
    return labels


@lane_by_lane
def ctc_loss(
    log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: int = 0,
    zero_infinity: bool = False,
) -> Any:  # fmt: skip
    """Return the negative log-likelihood of label sequences under log_probs (T, N, C) or (T, C).

    Targets are (N, S), or all labels one after the other; the reduction is 0 (none), 1 (mean over samples of the loss
    by label) or 2 (sum).

    Differs from torch: where log_probs are -inf the gradient is 0 and not nan; second derivatives are there.
    """
    for value, what in ((log_probs, "log_probs"), (targets, "targets")):
        if not isinstance(value, TensorBase):
            raise no_tensor("ctc_loss", what, value)
    single = len(log_probs.shape) == 2
    if single:
        log_probs = unsqueeze(log_probs, 1)
        targets = unsqueeze(targets, 0) if len(targets.shape) == 1 else targets
    if len(log_probs.shape) != 3:
        raise ShapeError(f"ctc_loss: Expected log_probs of shape (T, N, C) or (T, C); got {list(log_probs.shape)}.")
    if len(targets.shape) not in (1, 2):
        raise ShapeError(f"ctc_loss: Expected targets with 1 to 2 dimensions; got {list(targets.shape)}.")
    time, batch, classes = log_probs.shape
    if not (time and batch and classes):
        raise ShapeError(f"ctc_loss: log_probs tensor must not be empty; got {list(log_probs.shape)}.")
    if not 0 <= blank < classes:
        raise ShapeError(f"ctc_loss: blank must be in label range; got {blank} for {classes} classes.")
    inputs = _lengths("input_lengths", input_lengths, batch, time)
    lengths = _lengths("target_lengths", target_lengths, batch)
    device = log_probs.device
    ends = [tensor(n, dtype=int64, device=device) for n in (inputs, lengths)]
    labels = _padded(targets, lengths, ends[1], blank, classes)
    losses = _ctc_loss(log_probs, labels, *ends, blank=blank, zero_infinity=bool(zero_infinity))[0]
    if reduction == 1:
        return mean(losses / tensor([max(n, 1) for n in lengths], dtype=losses.dtype, device=device))
    if reduction == 2:
        return add_up(losses)
    return reshape(losses, ()) if single else losses
