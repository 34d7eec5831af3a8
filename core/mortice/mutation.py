"""Writing in place: the one path by which a tensor's memory changes, with its place in the graph kept right.

On a mutable backend the memory itself is written. Elsewhere the new value replaces the buffer, and every tensor that
shares the memory is derived from it anew. Either way the graph of a view's base records the write as `view_scatter`.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from mortice import op as _op
from mortice.dtype import DType, can_cast
from mortice.errors import ShapeError
from mortice.graph import modes, no_grad
from mortice.op import TENSOR_KERNELS, op, promote, record, same
from mortice.shape import Size, contiguous_strides
from mortice.tensor import DATA, TensorBase, make

Steps = tuple[tuple[Any, dict[str, Any]], ...]


def replay(k: Any, x: Any, steps: Steps) -> Any:
    """Take the view steps from x again."""
    for step, attrs in steps:
        x = step.body(k, x, **attrs)
    return x


def put(k: Any, x: Any, steps: Steps, part: Any) -> Any:
    """Return x with what the view steps show replaced by `part`."""
    if not steps:
        return part
    (step, attrs), rest = steps[0], steps[1:]
    if rest:
        part = put(k, step.body(k, x, **attrs), rest, part)
    return step.scatter(k, x, part, **attrs)


@op(result=promote, shape=same, grad_name="CopySlices")
def view_scatter(k: Any, x: Any, part: Any, /, *, steps: Steps) -> Any:
    """Replace what a view of x shows."""
    return put(k, x, steps, part)


view_scatter.vjp(
    x=lambda k, g, part_shape, steps: put(k, g, steps, k.new_full(g, part_shape, 0)),
    part=lambda k, g, steps: replay(k, g, steps),
    jvp="linear",
)


def layout(t: Any) -> tuple[int, ...]:
    """Return the strides in elements: the backend's, or those that the view steps imply."""
    backend = t._device.backend
    found = backend.strides_of(t._data)
    if found is not None:
        return found  # type: ignore[no-any-return]
    if t._storage is None or t._steps is None:
        return contiguous_strides(t.shape)
    shape: Any = Size(backend.shape_of(t._storage.root))
    strides = contiguous_strides(shape)
    for step, attrs in t.view_steps:
        below = step.shape(step.name, shape, **attrs)
        strides = step.strides(shape, strides, **attrs) if step.strides else contiguous_strides(below)
        shape = below
    return strides


def check_writable(name: str, t: Any) -> None:
    """Refuse in-place operations that autograd could not follow."""
    if t.is_inference() and not modes.inference:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a "
            "normal tensor before doing inplace update."
        )
    if not modes.grad:
        return
    base = t._base
    if base is None:
        if t._rg and t._node is None:
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
        return
    if base._rg and base._node is None:
        raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
    origin = t._note
    if origin and origin != DATA and (t._rg or base._rg):
        if origin == "no_grad":
            raise RuntimeError(
                "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given that "
                "this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving "
                "both the view and the inplace either both inside the no_grad block (if you don't want the inplace to "
                "be tracked) or both outside (if you want the inplace to be tracked)."
            )
        raise RuntimeError(
            f"Output of {origin} is a view and is being modified inplace. This view is the output of a function that "
            "returns multiple views. Such functions do not allow the output views to be modified inplace. You should "
            "replace the inplace operation by an out-of-place one."
        )


def assign(t: Any, value: Any, fresh: bool) -> Any:
    """Write the tensor `value`, of t's shape and dtype, into t's memory; the graph of t becomes that of `value`.

    `fresh` says that nobody else holds the buffer of `value`, so that t may simply take it over.
    """
    recording = modes.grad and (t._rg or value._rg)
    old = None
    base = t._base
    if recording and base is not None:
        old = make(base._data, base._device, base.dtype, base.shape)
        old._rg, old._node = base._rg, base._node
    write(t, value._data, fresh)
    if not recording:
        return t
    if base is None:
        t._rg, t._node = value._rg, value._node
        return t
    record(view_scatter.op, (old, value), {"steps": t.view_steps[len(base.view_steps) :]}, None, base)
    for view in t._storage.live():
        if view._viewed is base:
            again = replay(TENSOR_KERNELS, base, view.view_steps[len(base.view_steps) :])
            view._rg, view._node = again._rg, again._node
    return t


def write(t: Any, data: Any, fresh: bool) -> None:
    """Change t's memory to the buffer `data` and count the change."""
    backend = t._device.backend
    storage = t.own_storage()
    if fresh and not storage.pinned and t._steps is None and sum(1 for _ in storage.live()) == 1:
        t._data = data
        if not backend.mutable:
            storage.root = data
    elif backend.mutable:
        backend.setitem(t._data, (...,), data)
    else:
        storage.root = put(backend, storage.root, t.view_steps, data)
        for shared in storage.live():
            shared._data = replay(backend, storage.root, shared.view_steps)
    if t._note != DATA:
        storage.version += 1


def into(name: str, t: Any, value: Any) -> Any:
    """Return `value` as it can be written into t: broadcast is refused, a cast must not lose the kind."""
    if value.shape != t.shape:
        raise ShapeError(
            f"{name}: output with shape {list(t.shape)} doesn't match the broadcast shape {list(value.shape)}."
        )
    return cast_into(name, t.dtype, value)


def cast_into(name: str, d: DType, value: Any) -> Any:
    """Cast a result to the dtype of the tensor that receives it."""
    if value.dtype is d:
        return value
    if not can_cast(value.dtype, d):
        raise RuntimeError(
            f"{name}: result type {value.dtype.name} can't be cast to the desired output type {d.name}. "
            "Use the operation that is not in place, or convert first."
        )
    return _op.CAST(value, d)


def before_write(t: Any, args: tuple[Any, ...]) -> Any:
    """Return a stand-in for `t` as it is now, if its value may be saved for backward; otherwise `t`."""
    if not t._rg and not any(isinstance(a, TensorBase) and a._rg for a in args):
        return t
    old = make(t._data, t._device, t.dtype, t.shape)
    old._rg, old._node = t._rg, t._node
    return old


def is_saved(old: Any, value: Any) -> bool:
    """Tell whether the node that made `value` has kept `old` itself, so that its buffer must outlive the write."""
    saved = getattr(value._node, "saved", None)
    return saved is not None and any(s is old for s in saved)


def inplace(fn: Callable[..., Any], name: str | None = None) -> Callable[..., Any]:
    """Make the in-place method of a function: `add_` from `add`."""
    own = name or fn.__name__.strip("_") + "_"

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        check_writable(own, self)
        x = before_write(self, args) if modes.grad else self
        value = fn(x, *args, **kwargs)
        if x is not self and is_saved(x, value):
            x._data = self._device.backend.copy(self._data)
        return assign(self, into(own, self, value), True)

    functools.update_wrapper(method, fn, assigned=("__module__", "__doc__"), updated=())
    del method.__wrapped__  # type: ignore[attr-defined]
    method.__name__ = method.__qualname__ = own
    return method


def write_out(name: str, out: Any, value: Any) -> Any:
    """Put a result into the tensor given as `out=`, resizing it when its shape differs."""
    if not isinstance(out, TensorBase):
        raise TypeError(f"{name}: expected out to be a Tensor; got {type(out).__name__}.")
    if modes.grad and (value._rg or out._rg):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad."
        )
    if out._device is not value._device:
        raise RuntimeError(f"{name}: expected out on {value.device}; got {out.device}. Make it there.")
    value = cast_into(name, out.dtype, value)
    with no_grad():
        if out.shape != value.shape:
            if out.numel():
                warnings.warn(
                    f"An output with one or more elements was resized since it had shape {list(out.shape)}, which does "
                    f"not match the required output shape {list(value.shape)}. This behavior is deprecated.",
                    UserWarning,
                    stacklevel=3,
                )
            out._data, out.shape = value._device.backend.copy(value._data), value.shape
            out._storage = None
            return out
        return assign(out, value, False)


_op.WRITE_OUT = write_out
