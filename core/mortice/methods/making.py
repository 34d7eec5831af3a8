"""Methods that make tensors like this one, or fill it with random numbers."""

from __future__ import annotations

from typing import Any

from mortice.ops import creation, storage, strided
from mortice.ops import random as randoms
from mortice.tensor import TensorBase


class Making(TensorBase):
    """New tensors and random ones."""

    __slots__ = ()

    # ---- random ----

    uniform_, normal_, bernoulli_, random_ = randoms.uniform_, randoms.normal_, randoms.bernoulli_, randoms.random_
    exponential_, cauchy_, geometric_ = randoms.exponential_, randoms.cauchy_, randoms.geometric_
    log_normal_, bernoulli, multinomial = randoms.log_normal_, randoms.bernoulli, randoms.multinomial

    # ---- creation ----

    new_zeros, new_ones, new_empty = creation.new_zeros, creation.new_ones, creation.new_empty
    new_full, new_tensor = creation.new_full, creation.new_tensor
    new_empty_strided = strided.new_empty_strided

    def new(self, *args: Any, device: Any = None) -> Any:
        """Make a tensor of this one's dtype, from data or of a size: the old form of new_tensor and new_empty."""
        return storage.old_style(args, self.dtype, self._device if device is None else device)
