"""Causal masks for queries and keys of different numbers, as PyTorch's torch.nn.attention.bias has them."""

from __future__ import annotations

import enum
from typing import Any

import mortice
from mortice.notice import warn

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """Which corner of (queries, keys) the triangle of a causal mask begins or ends in."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(mortice.Tensor):
    """A causal mask for `scaled_dot_product_attention`, True where a key takes part; it goes to the query's device."""

    __torch_function__ = mortice._disabled_torch_function_impl
    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int

    @staticmethod
    def __new__(cls: Any, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> Any:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"CausalBias: expected variant to be a CausalVariant; got {type(variant).__name__}.")
        if seq_len_q > seq_len_kv and variant is CausalVariant.LOWER_RIGHT:
            warn(
                "Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv: the first "
                f"{seq_len_q - seq_len_kv} of {seq_len_q} queries see none of {seq_len_kv} keys."
            )
        offset = seq_len_kv - seq_len_q if variant is CausalVariant.LOWER_RIGHT else 0
        made = mortice.ones(seq_len_q, seq_len_kv, dtype=mortice.bool).tril(offset)
        made = mortice.Tensor._make_subclass(cls, made)
        made.variant, made.seq_len_q, made.seq_len_kv = variant, seq_len_q, seq_len_kv
        return made

    def __repr__(self) -> str:
        return repr(self._materialize())

    def _materialize(self, device: Any = None) -> Any:
        """Return the mask as a plain Tensor on a device."""
        return mortice.Tensor._make_subclass(mortice.Tensor, self).to("cpu" if device is None else device)


def causal_upper_left(*size: int) -> CausalBias:
    """Return the mask (queries, keys) by which query i sees the keys up to i."""
    return _of_size("causal_upper_left", CausalVariant.UPPER_LEFT, size)


def causal_lower_right(*size: int) -> CausalBias:
    """Return the mask (queries, keys) by which the last query sees all keys, the one before it all but the last."""
    return _of_size("causal_lower_right", CausalVariant.LOWER_RIGHT, size)


def _of_size(name: str, variant: CausalVariant, size: tuple[int, ...]) -> CausalBias:
    if len(size) != 2:
        raise AssertionError(f"{name}: expected two sizes, of queries and keys; got {size}.")
    return CausalBias(variant, *size)
