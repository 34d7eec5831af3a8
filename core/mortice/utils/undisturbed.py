"""Running a model to look at it, without a trace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mortice
from mortice import Tensor


@contextmanager
def undisturbed(model: Any, training: bool | None = None) -> Iterator[None]:
    """Let a model run in a block without a trace: on copies of its buffers, then with its modes and the generator set back.

    `training` is the mode of all modules in the block, None leaves each its own.
    """
    modules = list(model.modules())
    modes = [m.training for m in modules]
    buffers = [dict(m._buffers) for m in modules]
    copies: dict[int, Tensor] = {}
    with mortice.random.fork_rng():
        try:
            for module in modules:
                for name, buffer in module._buffers.items():
                    if buffer is not None:
                        module._buffers[name] = copies.setdefault(id(buffer), buffer.detach().clone())
            if training is not None:
                model.train(training)
            yield
        finally:
            for module, mode, own in zip(modules, modes, buffers, strict=True):
                module.training = mode
                module._buffers.update(own)
