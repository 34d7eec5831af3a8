"""Words of the random stream from NumPy's own C Philox, the same bits as the default kernel."""

from __future__ import annotations

import threading
from functools import cache
from typing import Any


class _Philox(threading.local):
    """A NumPy generator for each thread: setting its state is cheaper than making one for every draw."""

    def __init__(self) -> None:
        # Here because it takes several milliseconds, and not every program draws.
        from numpy.random import Philox

        self.generator = Philox(key=0)
        self.state: Any = self.generator.state
        self.key = self.state["state"]["key"]
        self.counter = self.state["state"]["counter"]


@cache
def _shared() -> _Philox:
    return _Philox()


def random_bits(self: Any, seed: int, offset: int, n: int, *, device: Any) -> Any:
    """Return words offset to offset + n of the seed's stream, as uint64."""
    philox = _shared()
    block, skip = divmod(offset, 4)
    philox.key[0] = seed
    # NumPy steps the counter before each block, so it is set one behind; the buffer counts as used up.
    philox.counter[0] = block
    generator = philox.generator
    generator.state = philox.state
    if skip:
        generator.random_raw(skip, output=False)
    return generator.random_raw(n)
