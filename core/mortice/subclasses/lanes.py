"""What transforms do with tensors whose class alone knows what they hold, as no level does: one sample after the other."""

from __future__ import annotations

from typing import Any

from mortice import stack
from mortice.autograd.gradients import grad
from mortice.autograd.trees import leaves, rebuild
from mortice.func.vmap import _out_dims
from mortice.levels import RANDOM
from mortice.random import get_rng_state, set_rng_state


def by_sample(func: Any, args: Any, kwargs: Any, flat: Any, dims: Any, n: int, out_dims: Any, randomness: str) -> Any:
    """Call a function for each sample: what `vmap` returns."""
    rows, drawn = [], get_rng_state()
    for i in range(n):
        if randomness == "same":
            set_rng_state(drawn)
        rows.append(func(*rebuild(args, iter([x if d is None else x.select(d, i) for x, d in zip(flat, dims)])), **kwargs))
    if randomness == "error" and drawn.tolist() != get_rng_state().tolist():
        raise RuntimeError(RANDOM)
    columns = zip(*[list(leaves(row)) for row in rows])
    made = [c[0] if d is None else stack(c, d) for c, d in zip(columns, _out_dims(func, rows[0], out_dims))]
    return rebuild(rows[0], iter(made))


def by_gradient(outs: Any, wanted: Any, given: Any, n: int, keep: bool, create_graph: bool, unused: Any, zeros: bool) -> Any:
    """Return what `autograd.grad` does for a batch of gradients."""
    slices = [[None if g is None else g[i] for g in given] for i in range(n)]
    rows = [grad(outs, wanted, g, keep or g is not slices[-1], create_graph, True, unused, False, zeros) for g in slices]
    return tuple([None if c[0] is None else stack(c) for c in zip(*rows)])
