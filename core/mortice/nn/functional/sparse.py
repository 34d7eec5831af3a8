"""Rows of a table by index: embedding, bags of rows summed, averaged or maximised; products of groups of rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mortice
from mortice import _nn
from mortice import _node_name as node_name
from mortice import _range_of as range_of
from mortice.notice import warn

__all__ = ["embedding", "embedding_bag", "grouped_mm"]


def embedding(
    input: Any, weight: Any, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Any:  # fmt: skip
    """Return the rows of `weight` at the indices `input`; with `max_norm`, first shorten these rows in place."""
    if padding_idx is not None:
        rows = weight.size(0)
        if not -rows <= padding_idx < rows:
            raise AssertionError(f"padding_idx must be within num_embeddings; got {padding_idx} for {rows}.")
        padding_idx %= rows
    if max_norm is not None and not weight.is_meta:
        embedding_renorm_(weight, input, max_norm, norm_type)
    return _nn.embedding(weight, input, -1 if padding_idx is None else padding_idx, scale_grad_by_freq, sparse)


def embedding_renorm_(input: Any, indices: Any, max_norm: float, norm_type: float) -> Any:
    """Scale down the rows at the indices that are longer than `max_norm`, in place."""
    with mortice.no_grad():
        at = _nn.check_rows("embedding", indices, input.size(0)).reshape(-1)
        at = at if at._device.level else mortice.unique(at)  # each sample has as many as it has
        rows = input[at]
        plain = rows.detach()
        length = mortice.norm(plain, norm_type, -1, keepdim=True)
        # The difference is 0: it keeps the tangents of forward mode, which shortening leaves alone in PyTorch.
        input[at] = mortice.where(length > max_norm, plain * (max_norm / (length + 1e-7)) + (rows - plain), rows)
    return input


def _check_bags(input: Any, weight: Any, mode: str, summed: bool, per_sample_weights: Any) -> None:
    """Refuse arguments of `embedding_bag` that do not fit; `summed` says that something is asked for which only sums and means have."""
    if per_sample_weights is not None and input.shape != per_sample_weights.shape:
        raise ValueError(
            f"embedding_bag: expected per_sample_weights to have the same shape as the input, {tuple(input.shape)}; got "
            f"{tuple(per_sample_weights.shape)}."
        )
    if weight.ndim != 2:
        raise ValueError(f"embedding_bag: weight has to be a 2D Tensor, but got Tensor of dimension {weight.ndim}")
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"embedding_bag: mode has to be one of sum, mean or max; got {mode!r}.")
    if mode == "max" and summed:
        raise ValueError("embedding_bag: max mode supports neither scale_grad_by_freq nor sparse.")
    if per_sample_weights is not None:
        if mode != "sum":
            raise NotImplementedError(
                f"embedding_bag: per_sample_weights is only supported for mode='sum' (got mode='{mode}')."
            )
        if per_sample_weights.dtype is not weight.dtype:
            raise RuntimeError(
                f"embedding_bag: expected per_sample_weights to have the same type as weight, {weight.dtype}; got "
                f"{per_sample_weights.dtype}."
            )


@node_name("EmbeddingBagBackward0")
def embedding_bag(
    input: Any, weight: Any, offsets: Any = None, max_norm: float | None = None, norm_type: float = 2,
    scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, per_sample_weights: Any = None,
    include_last_offset: bool = False, padding_idx: int | None = None,
) -> Any:  # fmt: skip
    """Return the sum, mean or maximum of the rows of `weight` in each bag of indices; of an empty bag, zeros.

    A bag is a row of a 2-D `input`, or the indices of a 1-D one from one of the `offsets` to the next. The rows at
    `padding_idx` do not count.
    With `sparse` the gradient of `weight`, a leaf, is a sparse tensor.
    """
    if weight.dtype is mortice.int64 and input.is_floating_point():
        warn("Argument order of nn.functional.embedding_bag was changed: it is (input, weight, ...) now.")
        weight, input = input, weight
    _check_bags(input, weight, mode, scale_grad_by_freq or sparse, per_sample_weights)
    if per_sample_weights is not None:
        per_sample_weights = per_sample_weights.reshape(-1)
    if isinstance(offsets, mortice.Tensor):
        input = input.to(mortice.promote_types(input.dtype, offsets.dtype))
    sizes: Any
    ordinary = mode != "max" and not (sparse or scale_grad_by_freq or include_last_offset)
    if ordinary and max_norm is None and padding_idx is None and per_sample_weights is None and weight.is_floating_point():
        starts = _starts(input, offsets)
        if starts is not None:
            with _refused_as_value():
                at = _nn.check_rows("embedding", input.reshape(-1), weight.shape[0])
            return _nn.embedding_bag(weight, at, starts, mean=mode == "mean")
    count, total, sizes = _sizes(input, offsets, include_last_offset, padding_idx is not None)
    at = input.reshape(-1)
    if total < at.numel():
        at = at[:total]
        per_sample_weights = None if per_sample_weights is None else per_sample_weights[:total]
    if max_norm is not None:
        embedding_renorm_(weight, at, max_norm, norm_type)
    if padding_idx is not None:
        rows = weight.shape[0]
        if not -rows <= padding_idx < rows:
            raise RuntimeError(
                f"embedding_bag: padding_idx must be within the number of embeddings, {-rows} through {rows - 1}, but "
                f"got {padding_idx}"
            )
    elif total and type(sizes) is int:  # bags of one size: the rows of a matrix
        rows = _wide(_rows(at.reshape(count, sizes), weight, scale_grad_by_freq, sparse))
        if per_sample_weights is not None:
            rows = rows * per_sample_weights.to(rows.dtype).reshape(count, sizes, 1)
        made = rows.max(1).values if mode == "max" else rows.sum(1) if mode == "sum" else rows.mean(1)
        return made.to(weight.dtype)
    each = sizes if type(sizes) is int else mortice.tensor(sizes, dtype=mortice.int64, device=input.device)
    bags = mortice.arange(count, device=input.device).repeat_interleave(each)
    if padding_idx is not None:
        kept = at != padding_idx % weight.shape[0]
        at, bags = at[kept], bags[kept]
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights[kept]
    sizes = None if mode == "sum" else mortice.bincount(bags, minlength=count)
    if mode == "max" and at.numel():
        return _bag_maxima(at, weight, sizes)
    rows = _wide(_rows(at, weight, scale_grad_by_freq, sparse))
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.to(rows.dtype).unsqueeze(1)
    made = mortice.zeros(count, weight.shape[1], dtype=rows.dtype, device=weight.device).index_add(0, bags, rows)
    if mode == "mean":
        made = made / sizes.clamp(min=1).unsqueeze(1).to(made.dtype)
    return made.to(weight.dtype)


def _wide(rows: Any) -> Any:
    """Return what is added up in float32, and rounded once."""
    return rows.float() if rows.dtype in (mortice.float16, mortice.bfloat16) else rows


def _sizes(input: Any, offsets: Any, include_last: bool, whole: bool) -> tuple[int, int, int | list[int]]:
    """Return how many bags there are, how many indices they hold, and their one size or the sizes.

    With `whole` the last bag goes on to the end of the input, whatever the last offset says, as in PyTorch.
    """
    if input.ndim == 2:
        if offsets is not None:
            raise ValueError(
                "embedding_bag: if input is 2D, then offsets has to be None, as input is treated as a mini-batch of "
                f"fixed length sequences; got offsets of type {type(offsets)}."
            )
        count, size = tuple(input.shape)
        return count, count * size, size
    if input.ndim != 1:
        raise ValueError(f"embedding_bag: input has to be 1D or 2D Tensor, but got Tensor of dimension {input.ndim}")
    if offsets is None or offsets.ndim != 1:
        raise ValueError("embedding_bag: offsets has to be a 1D Tensor" + (" but got None" if offsets is None else ""))
    starts, end = offsets.tolist(), input.numel()
    if include_last:
        if not starts:
            raise RuntimeError("embedding_bag: include_last_offset: number of offset should be at least 1")
        end = starts.pop()
    first = [*starts, end][0] if include_last else sum(starts[:1])
    if first != 0:
        raise RuntimeError(f"embedding_bag: offsets[0] has to be 0; got {first}. The first bag starts at position 0.")
    if max([end, *starts[-1:]]) > input.numel():
        raise RuntimeError(
            f"embedding_bag: offsets[-1] can not be greater than input's length {input.numel()} but got offsets[-1] of "
            f"{max([end, *starts[-1:]])}"
        )
    if whole and starts:
        end = input.numel()
    sizes = [b - a for a, b in zip(starts, [*starts[1:], end])]
    if sizes and min(sizes) < 0:
        raise RuntimeError(f"embedding_bag: offsets must not decrease; got {offsets.tolist()}.")
    return len(sizes), sum(sizes), sizes[0] if sizes and sizes == sizes[:1] * len(sizes) else sizes


def _starts(input: Any, offsets: Any) -> Any:
    """Return where bags begin, as int64; None where something is unusual, or wrong."""
    if input.numel() == 0:
        return None
    if input.ndim == 2 and offsets is None:
        return mortice.arange(0, input.numel(), input.shape[1], device=input.device)
    if input.ndim != 1 or offsets is None or offsets.ndim != 1 or offsets.numel() == 0 or offsets.is_floating_point():
        return None
    starts = offsets.to(mortice.int64)
    low, high = range_of(starts) or (0, 0)
    least, _ = (range_of(starts[1:] - starts[:-1]) if starts.numel() > 1 else None) or (0, 0)
    return starts if low == 0 <= least and high <= input.numel() else None


@contextmanager
def _refused_as_value() -> Iterator[None]:
    """What PyTorch refuses as an index in `embedding` it refuses as a value in `embedding_bag`."""
    try:
        yield
    except IndexError as error:
        _, _, got = str(error).partition("; ")
        raise RuntimeError(f"embedding_bag: Expected idx >= 0 && idx < num_embeddings; {got}") from None


def _rows(at: Any, weight: Any, scale_grad_by_freq: bool = False, sparse: bool = False) -> Any:
    """Return the rows that bags hold."""
    with _refused_as_value():
        return _nn.embedding(weight, at, -1, scale_grad_by_freq, sparse)


def _bag_maxima(at: Any, weight: Any, sizes: Any) -> Any:
    """Return each bag's maximum in each column; the bags, not all of them empty, lie one after the other in `at`."""
    steps = mortice.arange(int(sizes.max()), device=at.device)
    filled = steps < sizes.unsqueeze(1)
    places = (sizes.cumsum(0) - sizes).unsqueeze(1) + steps
    rows = _rows(at[mortice.where(filled, places, 0)], weight)
    rows = mortice.where(filled.unsqueeze(2), rows, -math.inf).max(1).values
    return mortice.where(sizes.unsqueeze(1) == 0, 0, rows)


def grouped_mm(mat_a: Any, mat_b: Any, *, offs: Any = None, bias: Any = None, out_dtype: Any = None) -> Any:
    """Multiply group by group: `offs` says where each group ends in the dim that the groups share.

    (M, K) and (G, K, N): groups of rows. (G, M, K) and (K, N): of columns. (M, K) and (K, N): of the inner dim, which
    gives (G, M, N). (G, M, K) and (G, K, N): one pair a group, without `offs`. What lies past the last end is 0.
    """
    name, ranks = "grouped_mm", (mat_a.ndim, mat_b.ndim)
    if not set(ranks) <= {2, 3} or mat_a.shape[-1] != mat_b.shape[-2]:
        raise RuntimeError(
            f"{name}: expected 2-D or 3-D matrices whose inner sizes agree; got {tuple(mat_a.shape)} and {tuple(mat_b.shape)}."
        )
    if bias is not None:
        raise RuntimeError(f"{name}: bias is not supported; add it to the result.")
    if (offs is None) != (ranks == (3, 3)):
        raise RuntimeError(f"{name}: expected offs with a 2-D operand, and only then; got ranks {ranks} and offs={offs}.")
    if ranks == (3, 3):
        out = mat_a @ mat_b
    else:
        ends = offs.tolist()
        groups = [slice(start, end) for start, end in zip([0, *ends], ends)]
        if ranks == (2, 2):
            out = mortice.stack([mat_a[:, g] @ mat_b[g] for g in groups])
        elif ranks == (2, 3):
            out = mortice.cat([mat_a[g] @ b for g, b in zip(groups, mat_b)])
            out = _nn.pad(out, (0, 0, 0, mat_a.shape[0] - out.shape[0]))
        else:
            out = mortice.cat([a @ mat_b[:, g] for g, a in zip(groups, mat_a)], 1)
            out = _nn.pad(out, (0, mat_b.shape[1] - out.shape[1]))
    return out if out_dtype is None else out.to(out_dtype)
