"""torch.utils.deterministic: what new memory holds while deterministic kernels are asked for."""

__all__ = ["fill_uninitialized_memory"]

fill_uninitialized_memory = True  # memory is always filled before anything reads it, so that this changes nothing
