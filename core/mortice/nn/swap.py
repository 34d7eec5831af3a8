"""swap_tensors: two tensors exchange what they are, for those who hold them."""

from __future__ import annotations

from typing import Any


def swap_tensors(t1: Any, t2: Any) -> None:
    """Exchange the values, the gradients, the classes and the attributes of two tensors that no operation has made."""
    for t in (t1, t2):
        if t.grad_fn is not None:
            raise RuntimeError(
                f"swap_tensors: expected tensors that no operation has made; got one of {t.grad_fn.name()}. Detach it."
            )
    first, second = _held(t1), _held(t2)
    for t, (data, requires_grad, grad, kind, attributes) in ((t1, second), (t2, first)):
        t.grad = None
        t.data = data
        t.requires_grad_(requires_grad)
        t.__class__ = kind
        t.__dict__.clear()
        t.__dict__.update(attributes)
        t.grad = grad


def _held(t: Any) -> tuple[Any, ...]:
    return t.data, t.requires_grad, t.grad, type(t), dict(t.__dict__)
