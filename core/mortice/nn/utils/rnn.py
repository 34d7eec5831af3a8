"""Sequences of different lengths: padded into one tensor, or packed into the rows of one step after another."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import mortice


class PackedSequence_(NamedTuple):
    """The fields of PackedSequence."""

    data: Any
    batch_sizes: Any
    sorted_indices: Any
    unsorted_indices: Any


class PackedSequence(PackedSequence_):
    """Sequences packed for a recurrent layer: the rows of all of them at step 0, then at step 1, and so on.

    `batch_sizes` has how many sequences reach each step; `sorted_indices` says which of them each was before they were
    sorted by length, `unsorted_indices` takes that back. Made by `pack_padded_sequence` and `pack_sequence`.
    """

    __slots__ = ()

    def __new__(
        cls, data: Any, batch_sizes: Any = None, sorted_indices: Any = None, unsorted_indices: Any = None
    ) -> PackedSequence:
        if batch_sizes is None:
            if not (isinstance(data, (list, tuple)) and len(data) == 2):
                raise TypeError(f"PackedSequence: expected data and batch_sizes; got one {type(data).__name__}.")
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Convert the data as `Tensor.to` does; the indices follow its device, the batch sizes stay."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        moved = [None if t is None else t.to(data.device) for t in (self.sorted_indices, self.unsorted_indices)]
        return type(self)(data, self.batch_sizes, *moved)

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Return it on a CUDA device."""
        return self.to(*args, **kwargs) if args or "device" in kwargs else self.to("cuda", **kwargs)

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Return it on the CPU."""
        return self.to("cpu", *args, **kwargs)

    def double(self) -> PackedSequence:
        """Return it in float64."""
        return self.to(mortice.float64)

    def float(self) -> PackedSequence:
        """Return it in float32."""
        return self.to(mortice.float32)

    def half(self) -> PackedSequence:
        """Return it in float16."""
        return self.to(mortice.float16)

    def long(self) -> PackedSequence:
        """Return it in int64."""
        return self.to(mortice.int64)

    def int(self) -> PackedSequence:
        """Return it in int32."""
        return self.to(mortice.int32)

    def short(self) -> PackedSequence:
        """Return it in int16."""
        return self.to(mortice.int16)

    def char(self) -> PackedSequence:
        """Return it in int8."""
        return self.to(mortice.int8)

    def byte(self) -> PackedSequence:
        """Return it in uint8."""
        return self.to(mortice.uint8)

    @property
    def is_cuda(self) -> bool:
        """Whether the data lives on a CUDA device."""
        return bool(self.data.is_cuda)

    def is_pinned(self) -> bool:
        """Tell whether the data lies in pinned memory."""
        return bool(self.data.is_pinned())

    def pin_memory(self) -> Any:
        """Return the sequences with their data in pinned memory."""
        return type(self)(self.data.pin_memory(), *self[1:])


def invert_permutation(permutation: Any) -> Any:
    """Return the permutation that takes another back; None of None."""
    return None if permutation is None else mortice.argsort(permutation)


# ---- packed ----


def pack_padded_sequence(input: Any, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True) -> Any:
    """Pack sequences padded to (T, N, *), or (N, T, *) with `batch_first`.

    Lengths must fall from sequence to sequence, unless `enforce_sorted` is False: they are then sorted here.
    """
    lengths = lengths.to(mortice.int64) if isinstance(lengths, mortice.Tensor) else _small(lengths)
    if not input.numel() or not enforce_sorted and not lengths.numel():
        raise RuntimeError("pack_padded_sequence: Cannot pack empty tensors.")
    if lengths.ndim != 1:
        raise RuntimeError(f"'lengths' argument should be a 1D CPU int64 tensor, but got {lengths.ndim}D cpu Long tensor")
    if input.ndim < 2:
        raise IndexError(f"pack_padded_sequence: expected input (T, N, *) or (N, T, *); got {list(input.shape)}.")
    batch_dim = 0 if batch_first else 1
    batch, time = input.shape[batch_dim], input.shape[1 - batch_dim]
    order = None
    if not enforce_sorted:
        lengths, order = mortice.sort(lengths, descending=True)
        order = order.to(input.device)
    sizes = lengths.tolist()
    if len(sizes) > batch or enforce_sorted and len(sizes) < batch:  # unsorted ones may be those of the first sequences
        raise RuntimeError(
            f"pack_padded_sequence: Expected `len(lengths)` to be equal to batch_size, but got {len(sizes)} (batch_size={batch})"
        )
    if any(n < later for n, later in pairwise(sizes)):
        raise RuntimeError(
            "pack_padded_sequence: `lengths` array must be sorted in decreasing order when `enforce_sorted` is True; "
            f"got {sizes}. You can pass `enforce_sorted=False` to have the sequences sorted."
        )
    if sizes[-1] <= 0 or sizes[0] > time:
        raise RuntimeError(
            "pack_padded_sequence: Length of all samples has to be greater than 0 and at most the padded length "
            f"{time}, but found {sizes[-1] if sizes[-1] <= 0 else sizes[0]} in 'lengths'."
        )
    if order is not None:
        input = input.index_select(batch_dim, order)
    batch_sizes = _turned(sizes)
    at = _places(batch_sizes, time, batch_first, input.device)
    data = input.reshape(-1, *input.shape[2:]).index_select(0, at)
    return PackedSequence(data, mortice.tensor(batch_sizes, device=lengths.device), order)


def pad_packed_sequence(
    sequence: Any, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Any, Any]:
    """Return the sequences padded to (T, N, *), or (N, T, *) with `batch_first`, and their lengths."""
    data, batch_sizes, _, unsorted = sequence
    sizes = batch_sizes.tolist()
    time, batch = len(sizes), sizes[0]
    if total_length is not None:
        if total_length < time:
            raise ValueError(
                "pad_packed_sequence: Expected total_length to be at least the length of the longest sequence in "
                f"input, but got total_length={total_length} and max sequence length being {time}"
            )
        time = total_length
    rest = data.shape[1:]
    at = _places(sizes, time, batch_first, data.device)
    padded = mortice.full((batch * time, *rest), padding_value, dtype=data.dtype, device=data.device)
    padded = mortice.index_copy(padded, 0, at, data)
    padded = padded.reshape(*((batch, time) if batch_first else (time, batch)), *rest)
    lengths = mortice.tensor(_turned(sizes), device=batch_sizes.device)
    if unsorted is None:
        return padded, lengths
    return padded.index_select(0 if batch_first else 1, unsorted), lengths[unsorted.to(lengths.device)]


def pack_sequence(sequences: Any, enforce_sorted: bool = True) -> Any:
    """Pack a list of sequences (L, *); they must be sorted by falling length unless `enforce_sorted` is False."""
    lengths = [s.shape[0] for s in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: Any) -> list[Any]:
    """Return the sequences that were packed, in their own order."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


# ---- padded ----


def pad_sequence(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Any:
    """Stack sequences (L, *) of different lengths into (T, N, *), or (N, T, *), padded at their end or beginning."""
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"pad_sequence: Expected padding_side to be one of left or right, but got {padding_side}.")
    parts = list(sequences)
    if not parts:
        raise RuntimeError("pad_sequence: received an empty list of sequences")
    first, shapes = parts[0], [tuple(s.shape) for s in parts]
    rest = shapes[0][1:]
    if not all([s and s[1:] == rest for s in shapes]):
        raise RuntimeError(
            f"pad_sequence: expected sequences that differ in their first dim only; got {[list(s) for s in shapes]}."
        )
    time = max([s[0] for s in shapes])
    filler = mortice.full((time, *rest), padding_value, dtype=first.dtype, device=first.device)
    rows = []
    for s, shape in zip(parts, shapes):
        row = [s if s.dtype is first.dtype else s.to(first.dtype), *([filler[shape[0] :]] if shape[0] < time else [])]
        rows += row if padding_side == "right" else row[::-1]
    padded = mortice.cat(rows).reshape(len(parts), time, *rest)
    return padded if batch_first else padded.transpose(0, 1).contiguous()


def unpad_sequence(padded_sequences: Any, lengths: Any, batch_first: bool = False) -> list[Any]:
    """Return the sequences of (T, N, *), or (N, T, *), without their padding."""
    batch = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    sizes = lengths.tolist()
    if len(sizes) != batch.shape[0]:
        raise ValueError(f"unpad_sequence: expected {batch.shape[0]} lengths, one a sequence; got {len(sizes)}.")
    return [s[:n] for s, n in zip(batch, sizes)]


# ---- helpers ----


def _small(values: Any) -> Any:
    """Return lengths as a tensor on the CPU, where Python reads them at no cost; if there is none, where tensors go."""
    try:
        return mortice.tensor(list(values), dtype=mortice.int64, device="cpu")
    except RuntimeError:
        return mortice.tensor(list(values), dtype=mortice.int64)


def _turned(counts: list[int]) -> list[int]:
    """Return for each n below the first of falling counts how many of them are larger: lengths to batch sizes, and back."""
    turned: list[int] = []
    for many in range(len(counts), 0, -1):
        turned += [many] * (counts[many - 1] - len(turned))
    return turned


def _places(batch_sizes: list[int], time: int, batch_first: bool, device: Any) -> Any:
    """Return which row of the flattened padded tensor each packed row is."""
    steps, batch = len(batch_sizes), batch_sizes[0]
    at = mortice.arange((time if batch_first else steps) * batch, device=device)
    at = at.view(batch, time)[:, :steps].t() if batch_first else at.view(steps, batch)
    return at[mortice.arange(batch, device=device) < mortice.tensor(batch_sizes, device=device).unsqueeze(1)]


__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence",
    "pad_sequence", "unpack_sequence", "unpad_sequence",
]  # fmt: skip
