"""Where libraries import the type of a compiled module from."""

from mortice._dynamo import OptimizedModule

__all__ = ["OptimizedModule"]
