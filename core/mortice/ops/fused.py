"""Steps over many tensors at once, written in place: what optimisers call."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from importlib import import_module
from typing import Any

from mortice.dtype import float32
from mortice.errors import DeviceError, DTypeError
from mortice.graph import next_seq
from mortice.modes import enable_grad, modes
from mortice.mutation import assign, cast_into, check_writable, keep_saved, may_rebind, stand_in, written
from mortice.node import TENSOR_KERNELS
from mortice.shape import SCALAR, remembered
from mortice.strides import overlaps
from mortice.tensor import make

__all__: list[str] = []

Tensors = Sequence[Any]


def _capturing() -> bool:
    """Tell whether this thread captures work."""
    return modes.capture is not None


def _beside_capture(device: Any) -> Any:
    """Return the context of work to be done at once, although this thread may capture."""
    return nullcontext() if modes.capture is None else modes.capture.beside(device)


def _captures(t: Any) -> bool:
    """Tell whether work on a tensor's device can be captured."""
    return t._device.backend.captures


def _fused_step_(
    kernel: str, params: Tensors, grads: Tensors | None, state: Sequence[Tensors], numbers: dict[str, Any],
    differentiable: bool = False,
) -> None:  # fmt: skip
    """Run a step kernel of `backends.optim` over lists of tensors and write the results into parameters and state.

    Tensors of several devices take a call each. A number may be a list with a tensor for each parameter, which the kernel
    reads on the device. A differentiable step is recorded, and its numbers may be tensors.
    """
    changed = (params, *state)
    lists = changed if grads is None else (params, grads, *state)
    first = params[0]._device
    if first.is_outline:
        return import_module("mortice.subclasses").step(kernel, lists, changed, numbers)
    for tensors in lists:
        for t, p in zip(tensors, params):
            if t._device is not first or t.dtype is not p.dtype:
                return _by_device(kernel, params, grads, state, numbers, differentiable)
    if differentiable:
        with enable_grad():
            return _recorded(kernel, params, grads, state, numbers)
    held = {name: [t._buffer for t in value] for name, value in numbers.items() if type(value) is list}
    if held:
        numbers = {**numbers, **held}
    results = getattr(first.backend, kernel)(*[[t._buffer for t in tensors] for tensors in lists], **numbers)
    for tensors, buffers in zip(changed, results):
        written(tensors, buffers)


def _apart(tensors: Tensors) -> bool:
    """Tell whether each tensor has memory of its own: what shares it is changed in turn, not at once."""
    return len({id(t._storage or t) for t in tensors}) == len(tensors)


def _unscale_(tensors: Tensors, factor: Any) -> Any:
    """Multiply tensors of one device in place, by a number or a tensor of one, where they lie apart.

    Return a float32, 1 if an element was not finite.
    """
    device = tensors[0]._device
    factor = float(factor) if factor.__class__ in (float, int) else factor._buffer
    buffers, found = device.backend.unscale_step([t._buffer for t in tensors], factor=factor)
    written(tensors, buffers)
    return make(found, device, float32, SCALAR)


def _each_(name: str, lists: Sequence[Tensors], numbers: Sequence[Any], known: Sequence[type]) -> bool:
    """Do an operation in place to each tensor of lists[0], if the backend does it at once; tell whether it did.

    Only for tensors of the classes that are known, which have memory of their own.
    """
    x = lists[0][0]
    if type(x) not in known or len(lists) > x._device.backend.at_once.get(name, 0) or x.dtype.kind != "f":
        return False
    device, dtype, own = x._device, x.dtype, {id(t): i for i, t in enumerate(lists[0])}
    if len(own) < len(lists[0]) or not all([type(n) in (int, float) for n in numbers]):
        return False
    for tensors in lists:
        for i, (t, x) in enumerate(zip(tensors, lists[0])):
            alike = type(t) in known and not t.is_sparse and t._device is device and t.dtype is dtype and t.shape == x.shape
            if not alike or own.get(id(t), i) != i or (t._rg and modes.grad) or (t is x and overlaps(t)):
                return False
    written(lists[0], device.backend.each_step(name, [[t._buffer for t in tensors] for tensors in lists], numbers))
    return True


def _vector_norms(tensors: Tensors, p: float) -> Any:
    """Return the norms of floating tensors of one device and dtype as one tensor, outside the graph."""
    device = tensors[0]._device
    norms = device.backend.vector_norms([t._buffer for t in tensors], p=p)
    return make(norms, device, tensors[0].dtype.to_real(), remembered((len(tensors),)))


def _by_device(
    kernel: str, params: Tensors, grads: Tensors | None, state: Sequence[Tensors], numbers: dict[str, Any], *rest: Any
) -> None:
    """Take one step for each device; refuse a parameter whose gradient or state is elsewhere or of another dtype."""
    members: dict[Any, list[int]] = {}
    for i, p in enumerate(params):
        for t in [tensors[i] for tensors in (grads or (), *state) if tensors and not p._device.is_outline]:
            if t._device is not p._device:
                raise DeviceError(f"{kernel}: expected gradient and state on {p.device}; got {t.device}. Move them there.")
            if t.dtype is not p.dtype:
                raise DTypeError(f"{kernel}: expected gradient and state in {p.dtype}; got {t.dtype}. Convert them.")
        members.setdefault(p._device, []).append(i)
    for chosen in members.values():
        pick = [[tensors[i] for i in chosen] if tensors else [] for tensors in (params, *state)]
        own = {n: [value[i] for i in chosen] if type(value) is list else value for n, value in numbers.items()}
        _fused_step_(kernel, pick[0], grads and [grads[i] for i in chosen], pick[1:], own, *rest)


def _recorded(
    kernel: str, params: Tensors, grads: Tensors | None, state: Sequence[Tensors], numbers: dict[str, Any]
) -> None:
    """Take the step in tensor operations, so that gradients flow through it, where they are off too: as PyTorch does."""
    changed = (params, *state)
    for tensors in changed:
        for t in tensors:
            check_writable(kernel, t)
    since = next_seq()
    before = [[stand_in(t) for t in tensors] for tensors in changed]
    lists = before if grads is None else (before[0], grads, *before[1:])
    results = getattr(TENSOR_KERNELS, kernel)(*lists, **numbers)
    written = [item for group in zip(changed, before, results) for item in zip(*group)]
    values = [cast_into(kernel, t.dtype, value) for t, _, value in written]
    fresh = [v._storage is None and v._device.backend.owns(v._buffer) for v in values]
    for (t, old, _), new in zip(written, fresh):
        if not (new and may_rebind(t)):
            for value in values:
                keep_saved(value, old, since)
    for (t, _, _), value, new in zip(written, values, fresh):
        assign(t, value, new)
