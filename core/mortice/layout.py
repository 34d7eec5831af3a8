"""Memory formats and layouts that PyTorch's signatures name. A format is taken as a hint."""

from __future__ import annotations

__all__ = [
    "channels_last", "channels_last_3d", "contiguous_format", "layout", "memory_format", "preserve_format",
    "sparse_bsc", "sparse_bsr", "sparse_coo", "sparse_csc", "sparse_csr", "strided",
]  # fmt: skip


class memory_format:
    """The order of elements in memory that a caller prefers."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"mortice.{self.name}"

    def __reduce__(self) -> str:
        return self.name


class layout(memory_format):
    """The kind of storage of a tensor."""


contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
strided = layout("strided")
sparse_coo = layout("sparse_coo")
sparse_csr, sparse_csc, sparse_bsr, sparse_bsc = map(layout, ("sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"))
