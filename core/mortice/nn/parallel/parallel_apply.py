"""parallel_apply: modules that each have inputs of their own."""

from collections.abc import Sequence
from typing import Any


def parallel_apply(modules: Sequence[Any], inputs: Sequence[Any], kwargs_tup: Any = None, devices: Any = None) -> list[Any]:
    """Call each module with its own inputs, one after the other."""
    given = zip(modules, inputs, kwargs_tup or [{} for _ in modules], strict=True)
    return [module(*(x if isinstance(x, (list, tuple)) else (x,)), **named) for module, x, named in given]
