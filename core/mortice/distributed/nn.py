"""Communication that gradients pass through, which is refused as the rest of `mortice.distributed` is."""

from mortice.distributed import all_gather, all_reduce, broadcast, gather, reduce, reduce_scatter, scatter

__all__ = ["all_gather", "all_reduce", "broadcast", "gather", "reduce", "reduce_scatter", "scatter"]
