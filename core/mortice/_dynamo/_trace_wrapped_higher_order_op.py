"""What libraries write around a mapped function that indexes with its argument."""

from contextlib import nullcontext

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex(nullcontext[None]):
    """Do nothing: an index that is mapped over stays a tensor here, and no int is asked of it."""
