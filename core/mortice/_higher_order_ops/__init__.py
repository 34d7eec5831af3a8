"""What libraries import of the functions that PyTorch's compiler knows: one that scans."""

from mortice._higher_order_ops.associative_scan import associative_scan

__all__ = ["associative_scan"]
