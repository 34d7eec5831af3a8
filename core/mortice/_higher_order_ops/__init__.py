"""What libraries import of the functions that PyTorch's compiler knows: one that scans, and control flow."""

from mortice._higher_order_ops.associative_scan import associative_scan
from mortice._higher_order_ops.control import cond, while_loop

__all__ = ["associative_scan", "cond", "while_loop"]
