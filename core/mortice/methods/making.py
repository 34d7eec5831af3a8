"""Methods that make tensors like this one, or fill it with random numbers."""

from __future__ import annotations

from importlib import import_module

from mortice.lazy import family
from mortice.tensor import TensorBase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mortice.ops import creation, random_fill, strided
    from mortice.ops import random as randoms
else:
    creation, strided, randoms = family("ops.creation"), family("ops.strided"), family("ops.random")
    random_fill = family("ops.random_fill")


class Making(TensorBase):
    """New tensors and random ones."""

    __slots__ = ()

    # ---- random ----

    uniform_, normal_, bernoulli_, random_ = random_fill.uniform_, random_fill.normal_, random_fill.bernoulli_, random_fill.random_
    exponential_, cauchy_, geometric_ = random_fill.exponential_, random_fill.cauchy_, random_fill.geometric_
    log_normal_, bernoulli, multinomial = random_fill.log_normal_, randoms.bernoulli, randoms.multinomial

    # ---- creation ----

    new_zeros, new_ones, new_empty = creation.new_zeros, creation.new_ones, creation.new_empty
    new_full, new_tensor = creation.new_full, creation.new_tensor
    new_empty_strided = strided.new_empty_strided

    def new(self, *args: Any, device: Any = None, **named: Any) -> Any:
        """Make a tensor of this one's dtype, from data or of a size: the old form of new_tensor and new_empty."""
        from mortice.ops import storage

        if args and isinstance(args[0], TensorBase) and device is not None:
            raise RuntimeError("new: expected a tensor or a device, not both. Use .to(device).")
        if self.is_sparse:
            return import_module("mortice.sparse").old_style(args, self.dtype, device or self.device)
        return storage.old_style(args, self.dtype, self._device if device is None else device, named)
