"""torch.utils.deterministic: what new memory holds while deterministic kernels are asked for."""

__all__ = ["fill_uninitialized_memory"]

fill_uninitialized_memory = True  # by nan, or the greatest integer; else by 0, as where they are not asked for
