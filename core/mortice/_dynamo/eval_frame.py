"""Where libraries take the type of a compiled module from."""

from mortice.nn import Module

__all__ = ["OptimizedModule"]


class OptimizedModule(Module):
    """The type of a compiled module, for `isinstance`; there are none."""
