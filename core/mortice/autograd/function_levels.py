"""A custom Function inside vmap and forward mode: its own `vmap` and `jvp`, or what follows from the rest of it."""

from __future__ import annotations

from typing import Any, NamedTuple

from mortice.autograd.functional import twice
from mortice.autograd.trees import leaves, rebuild, spread, tree_map
from mortice.levels import absent, chain, highest, raise_to, record_crossing
from mortice.levels.dual import Dual, DualLevel
from mortice.levels.mapped import Mapped
from mortice.levels.vmap import MapLevel
from mortice.modes import enable_grad, modes, set_grad_enabled
from mortice.mutation import assign
from mortice.node import TENSOR_KERNELS
from mortice.tensor import TensorBase, make

k: Any = TENSOR_KERNELS


class VmapInfo(NamedTuple):
    """What a Function's `vmap` is told about the vmap that it is in."""

    batch_size: int
    randomness: str


def apply(cls: Any, base: Any, args: tuple[Any, ...]) -> Any:
    """Run a Function whose arguments are of a level."""
    device = highest([a._device for a in args if isinstance(a, TensorBase)])
    level: Any = device.level
    raised = [tree_map(lambda a: raise_to(a, device) if isinstance(a, TensorBase) else a, arg) for arg in args]
    if isinstance(level, MapLevel):
        if cls.vmap is base.vmap:
            dual: Any = next((other for other in chain(device) if isinstance(other, DualLevel)), None)
            return cls._run(tuple(raised))[0] if dual is None else _pushed_first(cls, base, dual, raised)
        if cls.generate_vmap_rule:
            raise RuntimeError(
                f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an overridden vmap "
                "staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid ambiguity."
            )
        call: Any = _mapped
    else:
        call = _pushed
    with absent(level):
        return call(cls, base, level, raised)


def _pushed_first(cls: Any, base: Any, dual: Any, args: list[Any]) -> Any:
    """Run a Function inside a vmap inside a forward-mode derivative with the levels in the other order.

    A batch of values with tangents is as well a value and a tangent that are batches; so the Function's `jvp` or
    `backward` says how it moves, not what its `forward` does.
    """

    def up(data: Any, device: Any) -> tuple[Any, Any]:
        if device.level is dual:
            return data, device
        part, place = up(data.data, device.inner)
        both = [None if x is None else Mapped(x, data.on) for x in (part.primal, part.tangent)]
        return Dual(*both), dual.above(device.level.above(place.inner))

    def down(data: Any, device: Any) -> tuple[Any, Any]:
        level, k = device.inner.level, device.inner.backend
        if level not in above:
            return data, device
        both = (data.primal, data.tangent)
        on = any([x is not None and x.on for x in both])
        parts = [None if x is None else k.spread(x, level.size) if on else x.data for x in both]
        part, place = down(Dual(*parts), dual.above(device.inner.inner))
        return Mapped(part, on), level.above(place)

    def crossed(x: Any, there: Any, back: Any) -> Any:
        data, device = there(x._buffer, x._device)
        made = make(data, device, x.dtype, x.shape)
        return record_crossing(made, (x,), lambda g: (crossed(g, back, there),), "PermuteLevelsBackward")

    place = highest([a._device for a in leaves(args) if isinstance(a, TensorBase)])
    above = chain(place)[: chain(place).index(dual)]
    with absent(dual):
        given = [tree_map(lambda a: crossed(a, up, down) if isinstance(a, TensorBase) else a, arg) for arg in args]
        out = _pushed(cls, base, dual, given)
    return tree_map(lambda o: crossed(o, down, up) if isinstance(o, TensorBase) and o._device.level is dual else o, out)


def _mapped(cls: Any, base: Any, level: Any, args: list[Any]) -> Any:
    """Call the Function's `vmap` with the whole batch."""
    flat = list(leaves(args))
    # What a gradient reaches counts as mapped: that of a shared tensor may differ from one sample to the next.
    mapped = [isinstance(a, TensorBase) and (a._buffer.on or a._rg) for a in flat]
    below = [
        level.leave(a) if on else level.common(a) if isinstance(a, TensorBase) else a for a, on in zip(flat, mapped)
    ]
    given = rebuild(args, iter(below))
    versions = [b._version if isinstance(b, TensorBase) else 0 for b in below]
    if not any(mapped):
        return cls.apply(*given)
    dims = rebuild(args, iter([0 if on else None for on in mapped]))
    result = cls.vmap(VmapInfo(level.size, level.randomness), tuple(dims), *given)
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(
            f"Expected the vmap staticmethod of {cls.__name__} to return (output, out_dims); got {type(result).__name__}."
        )
    kept = _written(level, flat, below, versions)
    out, out_dims = result
    try:
        places = list(spread(out_dims, out, ""))
    except ValueError:
        raise RuntimeError(
            f"The vmap staticmethod of {cls.__name__} returned an incompatible (output, out_dims) tuple. Expected out_dims "
            f"to be compatible with the structure of `output`; got {out_dims}."
        ) from None
    made = [
        kept[id(o)] if id(o) in kept else o if d is None or not isinstance(o, TensorBase)
        else level.enter(k.moveaxis(o, d, 0) if d else o)
        for o, d in zip(leaves(out), places)
    ]  # fmt: skip
    return rebuild(out, iter(made))


def _written(level: Any, args: list[Any], below: list[Any], versions: list[int]) -> dict[int, Any]:
    """Write to arguments of the level what a Function has written to what it was given for them, and return those."""
    found = {}
    for a, b, version in zip(args, below, versions):
        if b is not a and isinstance(b, TensorBase) and b._version != version:
            found[id(b)] = assign(a, level.enter(b), False)
    return found


def _pushed(cls: Any, base: Any, level: Any, args: list[Any]) -> Any:
    """Run the Function on the values, and push the tangents through it."""
    primals = [level.primal(a) if isinstance(a, TensorBase) else a for a in args]
    tangents = [level.tangent(a) if isinstance(a, TensorBase) else None for a in args]
    if all(t is None for t in tangents):
        return cls.apply(*primals)
    dirty: dict[int, Any] = {}  # arguments whose values `forward` has written
    if cls.jvp is base.jvp:
        keep = modes.grad and any([isinstance(t, TensorBase) and t._rg for t in (*primals, *tangents)])
        with enable_grad():
            primals = [_opened(p) if t is not None else p for p, t in zip(primals, tangents)]
            out = cls.apply(*primals)
            outs = out if isinstance(out, tuple) else (out,)
            live = tuple([o for o in outs if isinstance(o, TensorBase) and o._rg])
            at = [i for i, t in enumerate(tangents) if t is not None]
            through = tuple([primals[i] for i in at]), tuple([tangents[i] for i in at])
            found = dict(zip(map(id, live), twice(live, *through, keep))) if live else {}
        pushed = [found.get(id(o)) for o in outs]
        if not keep:
            outs = tuple([o._share() if isinstance(o, TensorBase) else o for o in outs])
    else:
        out, ctx = cls._run_below(tuple(primals))
        outs = out if isinstance(out, tuple) else (out,)
        dirty = {id(p): a for p, a in zip(primals, args) if any([p is t for t in ctx._dirty])}
        if ctx._materialize:
            tangents = [
                k.zeros_like(p) if t is None and isinstance(p, TensorBase) and p.dtype.kind in "fc" else t
                for p, t in zip(primals, tangents)
            ]
        ctx._pushing = True
        with set_grad_enabled(modes.grad):
            result = cls.jvp(ctx, *tangents)
        ctx._pushing = False
        pushed = list(result) if isinstance(result, tuple) else [result]
        if len(pushed) != len(outs):
            raise RuntimeError(
                f"{cls.__name__}.jvp: returned an incorrect number of tangents (expected {len(outs)}, got {len(pushed)})"
            )
        for i, (o, t) in enumerate(zip(outs, pushed)):
            moves = isinstance(o, TensorBase) and o.dtype.kind in "fc" and all([o is not fixed for fixed in ctx._non_differentiable])
            if t is not None and not moves:
                raise RuntimeError(
                    f"{cls.__name__}.jvp: returned a tangent at position {i}, where forward's output is not differentiable. "
                    "You should return None at that position instead."
                )
            if t is not None and t.shape != o.shape:
                raise RuntimeError(
                    "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
                    f"supported. Tensor is of size {list(o.shape)} while the given forward gradient is of size {list(t.shape)}."
                )
    duals = [o if t is None else level.enter(o, t) for o, t in zip(outs, pushed)]
    duals = [assign(dirty[id(o)], d, False) if id(o) in dirty else d for o, d in zip(outs, duals)]
    return tuple(duals) if isinstance(out, tuple) else duals[0]


def _opened(t: Any) -> Any:
    return k.reshape(t, t.shape) if t._rg else t._share().requires_grad_()
