"""More planted bugs: of movement, creation, storage and devices, of behaviour, of random numbers and training."""

from __future__ import annotations

import time
from typing import Any

from mortice.backends import HostBuffer
from mortice.backends.dlpack import borrow
from mortice.shape import prod
from mortice_conformance.planted_bugs import BY_NAME, bug, size_of


# ---- movement ----
@bug("concat", "the parts are joined in reverse")
def _(k: Any, right: Any, arrays: Any, *, axis: int) -> Any:
    return right(list(arrays)[::-1], axis=axis)


@bug("concat", "an empty part is an error", "strict")
def _(k: Any, right: Any, arrays: Any, *, axis: int) -> Any:
    if any(size_of(k, a) == 0 for a in arrays):
        raise ValueError("concat: empty array")
    return right(arrays, axis=axis)


@bug("reshape", "it reads in column order")
def _(k: Any, right: Any, x: Any, shape: Any) -> Any:
    n = len(k.shape_of(x))
    return right(k.permute_dims(x, tuple(range(n))[::-1]), shape) if n > 1 else right(x, shape)


@bug("permute_dims", "the inverse order is taken")
def _(k: Any, right: Any, x: Any, axes: Any) -> Any:
    back = [0] * len(axes)
    for i, a in enumerate(axes):
        back[a] = i
    return right(x, tuple(back))


@bug("broadcast_to", "what is repeated is zero", "strict")
def _(k: Any, right: Any, x: Any, shape: Any) -> Any:
    out = right(x, shape)
    same = tuple(k.shape_of(x)) == tuple(shape) or 0 in shape
    return (
        out
        if same
        else k.setitem(k.full_like(out, 0), (slice(0, 1), Ellipsis), k.getitem(out, (slice(0, 1), Ellipsis)))
    )


@bug("getitem", "a negative step is taken as positive")
def _(k: Any, right: Any, x: Any, key: Any) -> Any:
    if not isinstance(key, tuple):
        return right(x, key)
    forward = lambda p: (
        slice(None, None, -p.step) if isinstance(p, slice) and p.start is p.stop is None and (p.step or 1) < 0 else p
    )
    return right(x, tuple(forward(p) for p in key))


@bug("setitem", "a value that broadcasts is written as 0")
def _(k: Any, right: Any, x: Any, key: Any, value: Any) -> Any:
    small = not isinstance(value, (bool, int, float, complex)) and len(k.shape_of(value)) == 0
    return right(x, key, 0 if small else value)


@bug("setitem", "it writes into a copy")
def _(k: Any, right: Any, x: Any, key: Any, value: Any) -> Any:
    return right(k.copy(x), key, value)


@bug("setitem", "it writes in place, where mutable is False", "strict")
def _(k: Any, right: Any, x: Any, key: Any, value: Any) -> Any:
    x._strict_array = right(x, key, value)._strict_array
    return x


@bug("into", "the target is cleared before the operands are read")
def _(k: Any, right: Any, target: Any, kernel: Any, *operands: Any, **attrs: Any) -> Any:
    k.setitem(target, (Ellipsis,), 0)
    return right(target, kernel, *operands, **attrs)


@bug("into", "the last element is not written")
def _(k: Any, right: Any, target: Any, kernel: Any, *operands: Any, **attrs: Any) -> Any:
    made = kernel(*operands, **attrs)
    if size_of(k, target) < 2:
        return made
    key = (*[slice(None)] * (len(k.shape_of(target)) - 1), slice(-1))
    return k.setitem(target, key, k.getitem(made, key))


@bug("flip", "two axes are flipped as one")
def _(k: Any, right: Any, x: Any, axis: Any) -> Any:
    return right(x, axis if isinstance(axis, int) else tuple(axis)[:1])


# ---- creation, casts, storage ----
@bug("astype", "floats round to integers, where they should be cut")
def _(k: Any, right: Any, x: Any, dtype: Any) -> Any:
    if k.dtype_of(x).kind == "f" and dtype.kind in "ui":
        return right(k.floor(k.add(x, 0.5)), dtype)
    return right(x, dtype)


@bug("astype", "bfloat16 is cut, where it should be rounded")
def _(k: Any, right: Any, x: Any, dtype: Any) -> Any:
    if dtype.name == "bfloat16" and k.dtype_of(x).name == "float32":
        return right(k.multiply(x, 1 - 2.0**-9), dtype)
    return right(x, dtype)


@bug("astype", "complex to real takes the absolute value", "strict")
def _(k: Any, right: Any, x: Any, dtype: Any) -> Any:
    return right(k.abs(x), dtype) if k.dtype_of(x).is_complex and dtype.kind == "f" else right(x, dtype)


@bug("astype", "float16 stops at its largest number")
def _(k: Any, right: Any, x: Any, dtype: Any) -> Any:
    narrow = dtype.name == "float16" and k.dtype_of(x).kind == "f"
    return right(k.maximum(k.minimum(x, 65504.0), -65504.0), dtype) if narrow else right(x, dtype)


@bug("full", "the dtype is always float32", "strict")
def _(k: Any, right: Any, shape: Any, value: Any, *, dtype: Any, device: Any) -> Any:
    return right(shape, value, dtype=BY_NAME["float32"] if dtype.name == "float64" else dtype, device=device)


@bug("full", "it is made on the first device", "strict")
def _(k: Any, right: Any, shape: Any, value: Any, *, dtype: Any, device: Any) -> Any:
    return right(shape, value, dtype=dtype, device=k.device(k.device_names()[0]))


@bug("from_host", "it is put on the first device", "strict")
def _(k: Any, right: Any, host: Any, device: Any) -> Any:
    return right(host, k.device(k.device_names()[0]))


@bug("device_of", "it names the first device always", "strict")
def _(k: Any, right: Any, x: Any) -> Any:
    return k.device(k.device_names()[0])


@bug("arange", "the end is included")
def _(k: Any, right: Any, start: Any, stop: Any, step: Any, **place: Any) -> Any:
    return right(start, stop + step, step, **place)


@bug("copy", "nothing is copied")
def _(k: Any, right: Any, x: Any) -> Any:
    return x


@bug("to_dlpack", "what is lent is a copy")
def _(k: Any, right: Any, x: Any, **options: Any) -> Any:
    return right(k.copy(x), **options)


@bug("from_dlpack", "borrowed memory is read without its strides")
def _(k: Any, right: Any, source: Any, device: Any) -> Any:
    loan = borrow(source)
    flat = k.share_host(loan.memory, device)
    return k.reshape(k.getitem(flat, (slice(0, prod(loan.shape)),)), loan.shape)


@bug("whole", "a view's memory begins where the view does")
def _(k: Any, right: Any, x: Any) -> Any:
    return right(x)[0], 0


@bug("from_host", "host memory is read without its strides")
def _(k: Any, right: Any, host: Any, device: Any) -> Any:
    if host.view.c_contiguous or not host.shape:
        return right(host, device)
    return right(HostBuffer(host.view.tobytes("F"), host.shape, host.dtype), device)


@bug("to_host", "strides are ignored on the way out")
def _(k: Any, right: Any, x: Any) -> Any:
    if k.is_contiguous(x) or k.dtype_of(x).name == "bfloat16":
        return right(x)
    n = len(k.shape_of(x))
    return HostBuffer(right(k.copy(k.permute_dims(x, tuple(range(n))[::-1]))).tobytes(), k.shape_of(x), k.dtype_of(x))


@bug("item", "it gives floats for integers")
def _(k: Any, right: Any, x: Any) -> Any:
    return right(x) + 0.0 if k.dtype_of(x).kind in "ui" else right(x)


@bug("dtype_of", "bfloat16 is reported as float16", "strict")
def _(k: Any, right: Any, x: Any) -> Any:
    found = right(x)
    return BY_NAME["float16"] if found.name == "bfloat16" else found


# ---- behaviour ----
@bug("exp", "its operand is overwritten")
def _(k: Any, right: Any, x: Any) -> Any:
    out = right(x)
    k.setitem(x, (Ellipsis,), out)
    return out


@bug("abs", "of positive numbers it returns the operand itself")
def _(k: Any, right: Any, x: Any) -> Any:
    return k.setitem(x, (Ellipsis,), right(x)) if k.dtype_of(x).kind in "if" else right(x)


@bug("sqrt", "data makes a round trip through the host", "strict")
def _(k: Any, right: Any, x: Any) -> Any:
    return right(k.from_host(k.to_host(x), k.device_of(x)))


@bug("tanh", "every result is kept")
def _(k: Any, right: Any, x: Any, kept: list[Any] = []) -> Any:  # noqa: B006 - that is the bug
    kept.append(right(x))
    return kept[-1]


@bug("exp", "every result is kept for ever")
def _(k: Any, right: Any, x: Any, kept: list[Any] = []) -> Any:  # noqa: B006
    kept.append(right(x))
    return kept[-1]


_scratch: dict[str, Any] = {}


@bug("exp", "threads share a scratch buffer")
def _(k: Any, right: Any, x: Any) -> Any:
    _scratch["x"] = x
    time.sleep(1e-4)
    other = _scratch["x"]
    return right(other if k.shape_of(other) == k.shape_of(x) and k.dtype_of(other) is k.dtype_of(x) else x)


@bug("less", "nan gives a warning")
def _(k: Any, right: Any, x: Any, y: Any) -> Any:
    import warnings

    warnings.warn("invalid value encountered in less", RuntimeWarning, stacklevel=2)
    return right(x, y)


# ---- random numbers and training ----
@bug("random_bits", "the seed is ignored")
def _(k: Any, right: Any, seed: int, offset: int, n: int, *, device: Any) -> Any:
    return right(0, offset, n, device=device)


@bug("random_bits", "the offset is one too large", "strict")
def _(k: Any, right: Any, seed: int, offset: int, n: int, *, device: Any) -> Any:
    return right(seed, offset + 1, n, device=device)


@bug("random_uniform", "the last bit is missing")
def _(k: Any, right: Any, seed: int, offset: int, shape: Any, *, dtype: Any, device: Any) -> Any:
    out = right(seed, offset, shape, dtype=dtype, device=device)
    return k.multiply(k.floor(k.multiply(out, 2.0**7)), 2.0**-7)


@bug("random_normal", "the numbers have the wrong sign", "strict")
def _(k: Any, right: Any, *args: Any, **attrs: Any) -> Any:
    return k.negative(right(*args, **attrs))


@bug("random_permutation", "it is the inverse permutation")
def _(k: Any, right: Any, seed: int, offset: int, n: int, *, device: Any) -> Any:
    return k.argsort(right(seed, offset, n, device=device), axis=0)


@bug("sgd_step", "the step is one per cent too long")
def _(k: Any, right: Any, *args: Any, lr: float, **attrs: Any) -> Any:
    return right(*args, lr=lr * 1.01, **attrs)


@bug("adam_step", "epsilon is a hundred times too large", "strict")
def _(k: Any, right: Any, *args: Any, eps: float, **attrs: Any) -> Any:
    return right(*args, eps=eps * 1e5, **attrs)


@bug("rmsprop_step adadelta_step adagrad_step", "epsilon is a hundred thousand times too large", "strict")
def _(k: Any, right: Any, *args: Any, eps: float, **attrs: Any) -> Any:
    return right(*args, eps=eps * 1e5, **attrs)


@bug("nadam_step radam_step adamax_step", "the step number is one too large")
def _(k: Any, right: Any, *args: Any, step: float, **attrs: Any) -> Any:
    return right(*args, step=step + 1, **attrs)


@bug("rprop_step", "a step that turned is taken all the same", "strict")
def _(k: Any, right: Any, params: Any, grads: Any, prev: Any, sizes: Any, **attrs: Any) -> Any:
    return right(params, grads, [k.abs(p) for p in prev], sizes, **attrs)


@bug("run_step", "the last parameter is left as it was", "strict")
def _(k: Any, right: Any, rule: Any, lists: Any, *rest: Any) -> Any:
    changed = right(rule, [buffers[:-1] for buffers in lists], *rest)
    return tuple([*new, *old[-1:]] for new, old in zip(changed, [lists[0], *lists[2:]]))
