"""vmap: a function of one sample becomes a function of a batch, computed at once."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from mortice.autograd.trees import leaves, rebuild, spread
from mortice.func.levels import Fn, k, name_of, structure, wraps
from mortice.lazy import load
from mortice.levels import chain, here
from mortice.levels.mapped_rules import Mapped, MappedBackend
from mortice.levels.vmap import MapLevel
from mortice.mutation import replay
from mortice.ops.arrange import become
from mortice.random import get_rng_state, set_rng_state
from mortice.tensor import TensorBase


def vmap(
    func: Fn,
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Fn:
    """Return a function that maps `func` over a dim of its inputs: all samples at once, written for one.

    Args:
        in_dims: for each input the dim to map over, None for one that all samples share; nests like the inputs.
        out_dims: where the mapped dim appears in the outputs.
        randomness: whether random functions inside are an error, draw the "same" for all samples or "different" ones.
        chunk_size: how many samples to compute at a time.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}"
        )
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        steps = sys.modules.get("mortice._functorch.vmap")
        if "_create_batched_inputs" in vars(steps or object):  # a library has set its own
            return load("mortice.utils.vmap_steps", "call")(steps, func, in_dims, out_dims, randomness, args, kwargs)
        flat, dims, n = _inputs(func, in_dims, args)
        if n and any([isinstance(x, TensorBase) and x._device.is_outline for x in flat]):
            return load("mortice.subclasses.lanes", "by_sample")(func, args, kwargs, flat, dims, n, out_dims, randomness)
        given, flat = flat, [k.moveaxis(x, d, 0) if d else x for x, d in zip(flat, dims)]
        if chunk_size is None or chunk_size >= n:
            return _run(func, args, kwargs, flat, dims, n, out_dims, randomness, given)
        parts = []
        # What is drawn the same for all samples is the same in every chunk.
        drawn = get_rng_state() if randomness == "same" else None
        for start in range(0, n, chunk_size):
            stop = min(start + chunk_size, n)
            if drawn is not None:
                set_rng_state(drawn)
            part = [x if d is None else x[start:stop] for x, d in zip(flat, dims)]
            parts.append(_run(func, args, kwargs, part, dims, stop - start, out_dims, randomness))
        return _joined(func, parts, out_dims)

    return wrapper


def chunk_vmap(
    func: Fn, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", chunks: int = 2
) -> Fn:
    """Return what `vmap` does, with the batch in a number of chunks, one after the other."""
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")

    def call(*args: Any, **kwargs: Any) -> Any:
        size = -(-_inputs(func, in_dims, args)[2] // chunks)
        return vmap(func, in_dims, out_dims, randomness, chunk_size=max(size, 1))(*args, **kwargs)

    return wraps(func)(call)


def _vmap(func: Fn, in_dims: Any = 0, out_dims: Any = 0, allow_none_pass_through: bool = False) -> Fn:
    """Do what `vmap` does, as libraries call it that are older than it."""
    return vmap(func, in_dims, out_dims)


def _inputs(func: Fn, in_dims: Any, args: tuple[Any, ...]) -> tuple[list[Any], list[Any], int]:
    """Return the leaves of the arguments, the dim (not negative, or None) of each, and the batch's size."""
    call = f"vmap({name_of(func)}, in_dims={in_dims}, ...)(<inputs>): "
    if not isinstance(in_dims, (int, tuple)) or isinstance(in_dims, bool):
        raise ValueError(
            f"{call}expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, got: "
            f"{type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name_of(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap "
            "over a function with no inputs. The latter is unsupported."
        )
    problem = (
        f"{call}in_dims is not compatible with the structure of `inputs`. in_dims has structure {structure(in_dims)} but inputs "
        f"has structure {structure(args)}."
    )
    flat = list(leaves(args))
    dims = list(spread(in_dims, args, problem))
    sizes: list[int] = []
    for i, (leaf, dim) in enumerate(zip(flat, dims)):
        if dim is None:
            continue
        if not isinstance(leaf, TensorBase):
            raise ValueError(
                f"{call}Got in_dim={dim} for an input but the input is of type {type(leaf)}. We cannot vmap over "
                "non-Tensor arguments, please use None as the respective in_dim"
            )
        if not -len(leaf.shape) <= dim < len(leaf.shape):
            raise ValueError(
                f"{call}Got in_dim={dim} for some input, but that input is a Tensor of dimensionality "
                f"{len(leaf.shape)} so expected in_dim to satisfy -{len(leaf.shape)} <= in_dim < {len(leaf.shape)}."
            )
        dims[i] = dim % len(leaf.shape)
        sizes.append(leaf.shape[dims[i]])
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if len(set(sizes)) > 1:
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped dimension"
        )
    return flat, dims, sizes[0]


def _run(
    func: Fn, args: Any, kwargs: Any, flat: list[Any], dims: list[Any], n: int, out_dims: Any, randomness: str,
    given: Sequence[Any] = (),
) -> Any:  # fmt: skip
    """Call the function once for the whole batch; `given` are the inputs as they came."""
    raised = [x if dim is None else here(x) for x, dim in zip(flat, dims)]
    whole: dict[int, Any] = {}
    with MapLevel(n, randomness) as level:
        mine = []
        for i, (x, dim) in enumerate(zip(raised, dims)):
            if dim is None:
                mine.append(x)
                continue
            t = level.enter(x)
            if given and x is flat[i]:
                whole[id(t)] = given[i], dim
            level.entered.append((x, t, lambda x, t: x.copy_(level.leave(t))))
            mine.append(t)
        out = func(*rebuild(args, iter(mine)), **kwargs)
        made = rebuild(out, iter(_outputs(func, level, out, out_dims, whole)))
        for below, t, _ in level.entered:
            if not below._rg and t._steps is not None and getattr(t._storage, "below", None) is below:  # as after `unsqueeze_`
                become("vmap", below, _below, t.view_steps)
        return made


def _below(x: Any, steps: Any) -> Any:
    """Take the view steps of one lane from a tensor that holds all of them."""
    return replay(MappedBackend(k), Mapped(k.reshape(x, x.shape), True), steps).data


def _outputs(func: Fn, level: Any, out: Any, out_dims: Any, given: dict[int, Any]) -> list[Any]:
    """Return the outputs with the mapped dim where `out_dims` says."""
    found = []
    for t, dim in zip(leaves(out), _out_dims(func, out, out_dims)):
        if not isinstance(t, TensorBase):
            if dim is None:
                found.append(t)
                continue
            raise ValueError(
                f"vmap({name_of(func)}, ...): `{name_of(func)}` must only return Tensors, got type {type(t)}. Did you "
                "mean to set out_dims= to None for output?"
            )
        if dim is None:
            if t._device.level is level:
                if t._buffer.on:
                    raise ValueError(
                        f"vmap({name_of(func)}, ...): `{name_of(func)}` can not return a BatchedTensor when out_dim is None"
                    )
                t = level.common(t)
            found.append(t)
            continue
        if not -len(t.shape) - 1 <= dim <= len(t.shape):
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-len(t.shape) - 1}, {len(t.shape)}], but got {dim})"
            )
        x, at = given.get(id(t), (None, None))
        if at == dim:  # an input, with its batch where it was
            found.append(x)
            continue
        if level not in chain(t._device):  # what all lanes share: each shows the same memory
            whole = k.broadcast_to(t, (level.size, *t.shape))
        else:
            whole = _seen(level, t)
            whole = level.leave(t) if whole is None else whole
        dim %= len(whole.shape)
        found.append(k.moveaxis(whole, 0, dim) if dim else whole)
    return found


def _seen(level: Any, t: Any) -> Any:
    """Return an output that is a view of an input as a view of that input below, None if it is none.

    With gradients it is none: the graph of the output may leave out that of the input, as after `detach`.
    """
    for x, entered, _ in level.entered:
        if t._storage is entered._storage and t._device is entered._device and not (x._rg or t._rg):
            if all([isinstance(below, MapLevel) for below in chain(x._device)]):
                seen = _below(x, t.view_steps)
                shares = seen._storage is not None and seen._storage.aliases is x.own_storage().aliases
                return seen if shares and seen.dtype is t.dtype else None
    return None


def _out_dims(func: Fn, out: Any, out_dims: Any) -> list[Any]:
    name = name_of(func)
    problem = (
        f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of `outputs`. "
        f"out_dims has structure {structure(out_dims)} but outputs has structure {structure(out)}. An out_dim "
        "must be an int, None or a python collection of ints."
    )
    if isinstance(out, TensorBase) and isinstance(out_dims, (tuple, list)) and len(out_dims) == 1:
        out_dims = out_dims[0]
    return list(spread(out_dims, out, problem))


def _joined(func: Fn, parts: list[Any], out_dims: Any) -> Any:
    """Join the results of chunks along the mapped dim."""
    columns = list(zip(*[list(leaves(part)) for part in parts]))
    dims = _out_dims(func, parts[0], out_dims)
    made = [c[0] if d is None else k.concat(list(c), axis=d % len(c[0].shape)) for c, d in zip(columns, dims)]
    return rebuild(parts[0], iter(made))
