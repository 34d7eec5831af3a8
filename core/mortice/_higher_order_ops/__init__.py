"""What libraries import of the functions that PyTorch's compiler knows: ones that scan or map, and control flow."""

from mortice._higher_order_ops.associative_scan import associative_scan
from mortice._higher_order_ops.control import cond, while_loop
from mortice._higher_order_ops.map import map
from mortice._higher_order_ops.scan import scan

__all__ = ["associative_scan", "cond", "map", "scan", "while_loop"]
