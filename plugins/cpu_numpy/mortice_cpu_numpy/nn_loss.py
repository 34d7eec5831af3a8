"""The negative log likelihood of classes by indexing, for the commonest case: rows of scores, no weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from mortice_cpu_numpy.quiet import ndarray


class LossOverrides:
    """One element a row is read, or written, where the default bodies gather and scatter."""

    def nll_loss(
        self: Any, logp: Any, target: Any, weight: Any = None, *, ignore_index: int = -100
    ) -> tuple[Any, Any]:
        rows = _rows(logp.ndim, target, weight, ignore_index)
        if rows is None:
            return super().nll_loss(logp, target, weight, ignore_index=ignore_index)  # type: ignore[misc,no-any-return]
        return np.negative(logp[rows, target]), np.ones(target.shape, logp.dtype)

    def nll_loss_grad(
        self: Any, g: Any, target: Any, weight: Any = None, *, x_shape: Any, ignore_index: int = -100
    ) -> Any:
        rows = _rows(len(x_shape), target, weight, ignore_index) if g.__class__ is ndarray else None
        if rows is None:
            return super().nll_loss_grad(  # type: ignore[misc]
                g, target, weight, x_shape=x_shape, ignore_index=ignore_index
            )
        out = np.zeros(x_shape, g.dtype)
        out[rows, target] = np.negative(g)
        return out


def _rows(ndim: int, target: Any, weight: Any, ignore_index: int) -> Any:
    """Return the numbers of the rows, None where rows are to be weighted or left out or there is more than one axis."""
    if weight is not None or ndim != 2 or np.count_nonzero(target == ignore_index):
        return None
    return np.arange(target.shape[0])
