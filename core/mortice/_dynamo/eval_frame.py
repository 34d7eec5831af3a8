"""Where libraries take the types of a compiled module, and of tensors while one is recorded, from."""

from mortice.nn import Module

__all__ = ["FakeTensor", "OptimizedModule", "get_proxy_mode", "is_fake"]


class OptimizedModule(Module):
    """The type of a compiled module, for `isinstance`; there are none."""


class FakeTensor:
    """The type of a tensor that stands for one while a program is recorded, for `isinstance`; there are none."""


def is_fake(x: object) -> bool:
    """Return False."""
    return False


def get_proxy_mode() -> None:
    """Return None: no program is recorded."""
