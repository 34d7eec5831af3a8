"""What comparisons of mortice with PyTorch side by side share: each takes the library as `t`."""

from __future__ import annotations

import inspect
import warnings


def as_if_in(t, value):
    """Return a nested state with its tensors made anew in library t."""
    if isinstance(value, dict):
        return {k: as_if_in(t, v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(as_if_in(t, v) for v in value)
    if hasattr(value, "requires_grad"):
        return t.tensor(value.tolist(), dtype=getattr(t, str(value.dtype).split(".")[-1]))
    return value


def declared(cls):
    return [(p.name, p.kind, p.default) for p in inspect.signature(cls.__init__).parameters.values()]


def outcome(t, do):
    """Return what happened: the exception's class and text, and the warnings."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            do(t)
            raised = None
        except Exception as error:
            raised = (next(c for c in type(error).__mro__ if c.__module__ == "builtins"), str(error))
    return raised, [w.category for w in seen]


def P(t, *shape, **kwargs):
    return t.ones(*(shape or (2,)), requires_grad=True, **kwargs)
