"""Attention whose scores and mask are functions of positions; both are computed whole, as PyTorch does without a compiler."""

from __future__ import annotations

import copy
import inspect
import itertools
import math
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import mortice

__all__ = [
    "AuxOutput", "AuxRequest", "BlockMask", "and_masks", "create_block_mask", "create_mask", "flex_attention",
    "noop_mask", "or_masks",
]  # fmt: skip
_DEFAULT_SPARSE_BLOCK_SIZE = 128
_mask_mod_signature = _score_mod_signature = Callable[..., Any]  # the types that programs give such functions


class AuxRequest(NamedTuple):
    """What `flex_attention` is to return beside its result."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What was asked for by an `AuxRequest`."""

    lse: Any = None
    max_scores: Any = None


def noop_mask(batch: Any, head: Any, token_q: Any, token_kv: Any) -> Any:
    """Mask nothing."""
    return mortice.ones((), dtype=mortice.bool, device=token_q.device)


def and_masks(*mask_mods: Callable[..., Any]) -> Callable[..., Any]:
    """Return the mask function that lets through what all let through."""
    return lambda b, h, q, kv: math.prod([noop_mask(b, h, q, kv), *[mod(b, h, q, kv) for mod in mask_mods]]) > 0


def or_masks(*mask_mods: Callable[..., Any]) -> Callable[..., Any]:
    """Return the mask function that lets through what any lets through."""
    return lambda b, h, q, kv: sum(mod(b, h, q, kv).int() for mod in mask_mods) > 0


def _positions(shape: Any, device: Any) -> list[Any]:
    # PyTorch maps the functions over single positions; written with tensors, they broadcast to the same.
    return [mortice.arange(n, device=device).reshape([-1 if i == d else 1 for i in range(4)]) for d, n in enumerate(shape)]


def create_mask(
    mod_fn: Callable[..., Any], B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None
) -> Any:
    """Return the bool mask (B, H, Q_LEN, KV_LEN) of a mask function, or of the -inf of a score function."""
    shape = (B or 1, H or 1, Q_LEN, KV_LEN)
    positions = _positions(shape, device)
    if len(inspect.signature(mod_fn).parameters) == 5:
        return ~mortice.isneginf(mod_fn(mortice.zeros(shape, device=device), *positions).expand(shape))
    return mod_fn(*positions).expand(shape).clone()


class BlockMask:
    """A mask function and the sizes it is meant for; blocks are counted, and save nothing."""

    def __init__(self, mask_mod: Callable[..., Any], shape: tuple[int, ...], block_size: Any, device: Any) -> None:
        self.mask_mod, self.shape, self.device = mask_mod, shape, device
        self.seq_lengths = shape[2:]
        self.BLOCK_SIZE = block_size if isinstance(block_size, tuple) else (block_size, block_size)

    @cached_property
    def _let_through(self) -> Any:
        """How many elements of each block are let through."""
        mask = create_mask(self.mask_mod, *self.shape, device=self.device)
        (q, kv), (rows, columns) = self.BLOCK_SIZE, self.seq_lengths
        padded = mortice.nn.functional.pad(mask.int(), (0, -columns % kv, 0, -rows % q))
        return padded.unflatten(3, (-1, kv)).unflatten(2, (-1, q)).sum((3, 5))

    def _listed(self, full: bool) -> Any:
        size = self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1]
        return self._let_through == size if full else (self._let_through > 0) & (self._let_through < size)

    def _indices(self, full: bool) -> Any:
        return self._listed(full).int().argsort(-1, descending=True, stable=True).int()

    kv_num_blocks = property(lambda self: self._listed(False).sum(-1).int(), doc="How many blocks of each row are masked in part.")
    full_kv_num_blocks = property(lambda self: self._listed(True).sum(-1).int(), doc="How many blocks of each row are not masked.")
    kv_indices = property(lambda self: self._indices(False), doc="The blocks of each row, those masked in part first.")
    full_kv_indices = property(lambda self: self._indices(True), doc="The blocks of each row, those not masked first.")

    def to_dense(self) -> Any:
        """Return 1 for every block of which something is let through."""
        return (self._let_through > 0).int()

    def numel(self) -> int:
        """Return the number of elements of the mask."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """Return the percentage of the mask that no block with something let through covers."""
        return 100 * (1 - self.to_dense().sum().item() * math.prod(self.BLOCK_SIZE) / self.numel())

    def __getitem__(self, index: Any) -> BlockMask:
        padded = (*(index if isinstance(index, tuple) else (index,)), slice(None), slice(None), slice(None))[:3]
        made = copy.copy(self)
        made._let_through = self._let_through[tuple([slice(i, i + 1 or None) if isinstance(i, int) else i for i in padded])]
        made.shape, made.mask_mod = (*made._let_through.shape[:2], *self.shape[2:]), _of_a_part
        return made

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """Draw the blocks of up to `limit` heads, several to a field where there are more than `grid_size` in a row."""
        dense = self.to_dense().float()
        steps = [-(-n // m) for n, m in zip(dense.shape[2:], (grid_size, grid_size) if isinstance(grid_size, int) else grid_size)]
        drawn = []
        for place in list(itertools.product(*map(range, dense.shape[:2])))[:limit]:
            fields = [[part.mean().item() for part in row.split(steps[1], 1)] for row in dense[place].split(steps[0])]
            rows = ["".join(("█" if f == 1 else "░" if f else " ") * 2 for f in row) for row in fields]
            drawn.append("\n".join([str(place), *rows, ""]))
        if math.prod(dense.shape[:2]) > limit:
            drawn += ["...", "To print out more, set BlockMask.to_string(limit=N)"]
            drawn += ["You can also index (BlockMask[batch, head]) to choose a specific batch or head"]
        return "\n".join(drawn)

    def __str__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{self.to_string().strip()}\n)"

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%)"


def _of_a_part(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    raise RuntimeError("BlockMask: expected a mask_mod of a part that was taken by an index; got none. Set its mask_mod.")


def create_block_mask(
    mask_mod: Callable[..., Any], B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None,
    BLOCK_SIZE: Any = _DEFAULT_SPARSE_BLOCK_SIZE, _compile: bool = False,
) -> BlockMask:  # fmt: skip
    """Return what `flex_attention` takes for its `block_mask`."""
    return BlockMask(mask_mod, (B or 1, H or 1, Q_LEN, KV_LEN), BLOCK_SIZE, device)


def flex_attention(
    query: Any, key: Any, value: Any, score_mod: Callable[..., Any] | None = None, block_mask: BlockMask | None = None,
    scale: float | None = None, enable_gqa: bool = False, return_lse: bool = False, kernel_options: Any = None, *,
    return_aux: AuxRequest | None = None,
) -> Any:  # fmt: skip
    """Attend with scores that `score_mod(score, b, h, q_idx, kv_idx)` changes and `block_mask` masks.

    The functions get tensors of positions that broadcast to (B, H, L, S), not single ones.
    """
    for name, t in (("query", query), ("key", key), ("value", value)):
        if t.ndim != 4:
            raise NotImplementedError(f"flex_attention: expected {name} to be a 4D tensor; got {t.ndim}D.")
    if query.shape[1] != key.shape[1]:
        if not enable_gqa:
            raise ValueError(
                f"flex_attention: expected query and key/value to have the same num_heads; got {query.shape[1]} and "
                f"{key.shape[1]}. Try setting enable_gqa=True for GQA."
            )
        groups = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    wide = mortice.float64 if query.dtype is mortice.float64 else mortice.float32
    scores = (query @ key.mT).to(wide) * (query.shape[-1] ** -0.5 if scale is None else scale)
    positions = _positions(scores.shape, query.device)
    if score_mod is not None:
        scores = score_mod(scores, *positions).to(wide).expand(scores.shape)
    if block_mask is not None:
        if query.shape[2] > block_mask.seq_lengths[0] or key.shape[2] > block_mask.seq_lengths[1]:
            raise ValueError(
                f"flex_attention: expected a block_mask for sizes of at least {query.shape[2]} and {key.shape[2]}; got one for "
                f"{block_mask.seq_lengths}. Create it anew."
            )
        scores = scores.masked_fill(~block_mask.mask_mod(*positions), -math.inf)
    lse = scores.logsumexp(-1)
    # A row of which nothing is left attends to nothing.
    weights = scores.softmax(-1).masked_fill(lse.isneginf()[..., None], 0.0)
    out = weights.to(query.dtype) @ value
    if return_aux is not None:
        return out, AuxOutput(lse if return_aux.lse else None, scores.amax(-1) if return_aux.max_scores else None)
    return (out, lse) if return_lse else out
