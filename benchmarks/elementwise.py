"""Elementwise operations on 1,000 and 1,000,000 float32 elements, and a chain that fusion would shorten."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.harness import Case, Timed, positive, wave

SIZES = (1_000, 1_000_000)

# name, the same expression for mortice and torch, and for jax.numpy where it is spelled differently
_UNARY: list[tuple[str, Callable[[Any, Any], Any], Callable[[Any, Any], Any] | None]] = [
    ("exp", lambda t, x: t.exp(x), None),
    ("log", lambda t, x: t.log(x), None),
    ("sqrt", lambda t, x: t.sqrt(x), None),
    ("sin", lambda t, x: t.sin(x), None),
    ("tanh", lambda t, x: t.tanh(x), None),
    ("abs", lambda t, x: t.abs(x), None),
    ("pow 3", lambda t, x: x**3, None),
    ("sigmoid", lambda t, x: t.sigmoid(x), lambda t, x: 1 / (1 + t.exp(-x))),
    ("relu", lambda t, x: t.relu(x), lambda t, x: t.maximum(x, 0)),
    ("gelu", lambda t, x: t.nn.functional.gelu(x), None),
    ("clamp", lambda t, x: x.clamp(0.2, 0.8), lambda t, x: t.clip(x, 0.2, 0.8)),
    ("to float64", lambda t, x: x.to(t.float64), None),
]
_WITHOUT_JAX = {"gelu", "to float64"}

_BINARY: list[tuple[str, Callable[[Any, Any, Any], Any]]] = [
    ("add", lambda t, x, y: x + y),
    ("mul", lambda t, x, y: x * y),
    ("div", lambda t, x, y: x / y),
    ("maximum", lambda t, x, y: t.maximum(x, y)),
    ("x < y", lambda t, x, y: x < y),
    ("where", lambda t, x, y: t.where(x < y, x, y)),
    ("(x * y + x) * y - x", lambda t, x, y: (x * y + x) * y - x),
]


# Values stay what they are, over however many rounds.
_WRITES: list[tuple[str, Callable[[Any, Any, Any], Any]]] = [
    ("x.mul_(1)", lambda t, x, y: x.mul_(1.0)),
    ("x.add_(y, alpha=0)", lambda t, x, y: x.add_(y, alpha=0.0)),
    ("x.addcmul_(y, y, value=0)", lambda t, x, y: x.addcmul_(y, y, value=0.0)),
    ("add(y, y, out=x)", lambda t, x, y: t.add(y, y, out=x)),
]


def _unary(function: Callable[[Any, Any], Any], size: int) -> Callable[[Any], Timed]:
    def setup(t: Any) -> Timed:
        x = positive(t, size)
        return lambda: function(t, x)

    return setup


def _binary(function: Callable[[Any, Any, Any], Any], size: int) -> Callable[[Any], Timed]:
    def setup(t: Any) -> Timed:
        x, y = wave(t, size), positive(t, size)
        return lambda: function(t, x, y)

    return setup


def _backward(size: int) -> Callable[[Any], Timed]:
    def setup(t: Any) -> Timed:
        x, y = wave(t, size).requires_grad_(), positive(t, size)

        def step() -> Any:
            x.grad = None
            (t.tanh(x * y) * y).sum().backward()
            return x.grad

        return step

    return setup


def _waiting(setup: Callable[[Any], Timed]) -> Callable[[Any], Timed]:
    def waits(jnp: Any) -> Timed:
        function = setup(jnp)
        return lambda: function().block_until_ready()

    return waits


CASES = [
    case
    for size in SIZES
    for case in (
        *(
            Case(
                "elementwise",
                f"{name}, {size:,}",
                _unary(function, size),
                None if name in _WITHOUT_JAX else _waiting(_unary(for_jax or function, size)),
            )
            for name, function, for_jax in _UNARY
        ),
        *(
            Case(
                "elementwise", f"{name}, {size:,}", _binary(function, size), _waiting(_binary(function, size))
            )
            for name, function in _BINARY
        ),
        *(Case("elementwise", f"{name}, {size:,}", _binary(function, size)) for name, function in _WRITES),
        Case("elementwise", f"tanh(x * y) * y with backward, {size:,}", _backward(size)),
    )
]
