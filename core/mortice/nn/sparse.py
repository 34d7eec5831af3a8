"""Embedding, and bags of embeddings."""

from __future__ import annotations

from typing import Any

import mortice
from mortice.nn import functional as F
from mortice.nn import init
from mortice.nn.module import Module
from mortice.nn.parameter import Parameter

__all__ = ["Embedding", "EmbeddingBag"]


def _set_up(layer: Any, rows: int, cols: int, padding: Any, weight: Any, frozen: bool, device: Any, dtype: Any, name: str) -> None:
    """Give a layer its sizes, its padding row and its table."""
    if padding is not None:
        if not -rows <= padding < rows:
            raise AssertionError(f"{name} must be within num_embeddings")
        padding %= rows
    layer.num_embeddings, layer.embedding_dim, layer.padding_idx = rows, cols, padding
    if weight is not None and tuple(weight.shape) != (rows, cols):
        raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
    table = mortice.empty((rows, cols), device=device, dtype=dtype) if weight is None else weight
    layer.weight = Parameter(table, requires_grad=not frozen)
    if weight is None:
        layer.reset_parameters()


def _sizes(table: Any) -> tuple[int, ...]:
    if table.ndim != 2:
        raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
    return tuple(table.shape)


class Embedding(Module):
    """A table of vectors, looked up by index; the vector at `padding_idx` starts as zeros and is not trained.

    With `sparse` the gradient of the table is a sparse tensor.
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Any = None,
        _freeze: bool = False, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        _set_up(self, num_embeddings, embedding_dim, padding_idx, _weight, _freeze, device, dtype, "Padding_idx")

    def reset_parameters(self) -> None:
        """Draw the table from the standard normal, the padding row 0."""
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self) -> None:
        if self.padding_idx is not None:
            with mortice.no_grad():
                self.weight[self.padding_idx].fill_(0)

    def forward(self, input: Any) -> Any:
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        for name, default in (("padding_idx", None), ("max_norm", None), ("norm_type", 2), ("scale_grad_by_freq", False)):
            if getattr(self, name) != default:
                text += f", {name}={getattr(self, name)}"
        return text + (", sparse=True" if self.sparse else "")

    @classmethod
    def from_pretrained(
        cls, embeddings: Any, freeze: bool = True, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
    ) -> Any:  # fmt: skip
        """Make a layer over a given table, frozen unless told otherwise."""
        return cls(
            *_sizes(embeddings), padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, _weight=embeddings, _freeze=freeze
        )


class EmbeddingBag(Module):
    """The sum, mean or maximum of the vectors of each bag of indices; those at `padding_idx` do not count.

    With `sparse` the gradient of the table is a sparse tensor.
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, _weight: Any = None,
        include_last_offset: bool = False, padding_idx: int | None = None, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        self.mode, self.sparse, self.include_last_offset = mode, sparse, include_last_offset
        _set_up(self, num_embeddings, embedding_dim, padding_idx, _weight, False, device, dtype, "padding_idx")

    reset_parameters, _fill_padding_idx_with_zero = Embedding.reset_parameters, Embedding._fill_padding_idx_with_zero

    def forward(self, input: Any, offsets: Any = None, per_sample_weights: Any = None) -> Any:
        return F.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse,
            per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        for name, default in (("max_norm", None), ("norm_type", 2), ("scale_grad_by_freq", False)):
            if getattr(self, name) != default:
                text += f", {name}={getattr(self, name)}"
        text += f", mode={self.mode!r}"
        return text if self.padding_idx is None else f"{text}, padding_idx={self.padding_idx}"

    @classmethod
    def from_pretrained(
        cls, embeddings: Any, freeze: bool = True, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> Any:  # fmt: skip
        """Make a layer over a given table, frozen unless told otherwise."""
        layer = cls(
            *_sizes(embeddings), max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings, include_last_offset,
            padding_idx,
        )  # fmt: skip
        layer.weight.requires_grad = not freeze
        return layer
