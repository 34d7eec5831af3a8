"""Reductions, scans, sorting and matrix products, over all elements and over either axis of a matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.harness import Case, Timed, positive, wave

ROWS, COLUMNS = 1000, 512

_ON_MATRIX: list[tuple[str, Callable[[Any, Any], Any]]] = [
    ("sum, all", lambda t, x: x.sum()),
    ("sum, dim 0", lambda t, x: x.sum(0)),
    ("sum, dim 1", lambda t, x: x.sum(1)),
    ("nansum, dim 1", lambda t, x: x.nansum(1)),
    ("mean, dim 1", lambda t, x: x.mean(1)),
    ("var, dim 1", lambda t, x: x.var(1)),
    ("amax, dim 0", lambda t, x: x.amax(0)),
    ("amax, dim 1", lambda t, x: x.amax(1)),
    ("argmax, dim 1", lambda t, x: x.argmax(1)),
    ("norm, all", lambda t, x: t.linalg.vector_norm(x)),
    ("logsumexp, dim 1", lambda t, x: t.logsumexp(x, 1)),
    ("softmax, dim 1", lambda t, x: t.softmax(x, 1)),
    ("log_softmax, dim 1", lambda t, x: t.log_softmax(x, 1)),
    ("cumsum, dim 1", lambda t, x: x.cumsum(1)),
    ("sort, dim 1", lambda t, x: x.sort(1)[0]),
    ("topk 5, dim 1", lambda t, x: x.topk(5, 1)[0]),
    ("unique of bytes", lambda t, x: (x * 100).to(t.uint8).unique()),
    ("cdist by norm 1", lambda t, x: t.cdist(x[:300, :16], x[300:600, :16], 1.0)),
    ("cdist by norm 2, exact", lambda t, x: t.cdist(x[:300, :16], x[300:600, :16], compute_mode="donot_use_mm_for_euclid_dist")),
    ("sum of the transpose, dim 1", lambda t, x: x.T.sum(1)),
    ("contiguous of the transpose", lambda t, x: x.T.contiguous()),
]

# The spelling of jax.numpy, where it has the same thing in one call.
_JAX: dict[str, Callable[[Any, Any], Any]] = {
    "sum, all": lambda jnp, x: jnp.sum(x),
    "sum, dim 0": lambda jnp, x: jnp.sum(x, axis=0),
    "sum, dim 1": lambda jnp, x: jnp.sum(x, axis=1),
    "mean, dim 1": lambda jnp, x: jnp.mean(x, axis=1),
    "amax, dim 0": lambda jnp, x: jnp.max(x, axis=0),
    "amax, dim 1": lambda jnp, x: jnp.max(x, axis=1),
    "argmax, dim 1": lambda jnp, x: jnp.argmax(x, axis=1),
    "cumsum, dim 1": lambda jnp, x: jnp.cumsum(x, axis=1),
    "sort, dim 1": lambda jnp, x: jnp.sort(x, axis=1),
}


def _matrix(function: Callable[[Any, Any], Any]) -> Callable[[Any], Timed]:
    def setup(t: Any) -> Timed:
        x = positive(t, ROWS, COLUMNS)
        return lambda: function(t, x)

    return setup


def _jax(function: Callable[[Any, Any], Any] | None) -> Callable[[Any], Timed] | None:
    if function is None:
        return None

    def setup(jnp: Any) -> Timed:
        x = positive(jnp, ROWS, COLUMNS)
        return lambda: function(jnp, x).block_until_ready()

    return setup


def _product(*shapes: tuple[int, ...]) -> Callable[[Any], Timed]:
    def setup(t: Any) -> Timed:
        x, y = (wave(t, *shape) + 0.5 for shape in shapes)
        return lambda: x @ y

    return setup


def _softmax_backward(t: Any) -> Timed:
    x, y = wave(t, ROWS, COLUMNS).requires_grad_(), positive(t, ROWS, COLUMNS)

    def step() -> Any:
        x.grad = None
        (t.softmax(x, 1) * y).sum().backward()
        return x.grad

    return step


CASES = [
    *(Case("reductions", name, _matrix(function), _jax(_JAX.get(name))) for name, function in _ON_MATRIX),
    Case("reductions", "softmax with backward", _softmax_backward),
    Case("reductions", "matmul 64x64", _product((64, 64), (64, 64))),
    Case("reductions", "matmul 512x512", _product((512, 512), (512, 512))),
    Case("reductions", "matmul 32 of 64x64", _product((32, 64, 64), (32, 64, 64))),
    Case("reductions", "matrix times vector 1000x512", _product((ROWS, COLUMNS), (COLUMNS,))),
]
