"""DualBackend: forward mode. A buffer is a value and its tangent, and each op carries the tangents along.

An op's own rule (`jvp=`) is used where it declares one. Otherwise the rule follows from its gradient formula: vᵀJ is
linear in v, so the gradient of that along the tangent is the Jacobian times the tangent. Kernels, as the formulas of a
backward call them, are ops over Tensors of this level: so derivatives of derivatives nest in any order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mortice.backward import backward
from mortice.device import Device
from mortice.levels import Level, chain, here, highest, plain, raise_to, record_crossing, watch_memory
from mortice.levels.backend import LevelBackend
from mortice.modes import enable_grad
from mortice.node import TENSOR_KERNELS, Const, record
from mortice.shape import Size, broadcast, prod
from mortice.tensor import make


class Dual:
    """A buffer of a forward-mode level: value and tangent are buffers below; None stands for a tangent of zero."""

    __slots__ = ("primal", "tangent")

    def __init__(self, primal: Any, tangent: Any) -> None:
        self.primal, self.tangent = primal, tangent


def _map(fn: Callable[[Dual], Any], x: Any) -> Any:
    """Apply a function to the buffers of an argument or result."""
    if type(x) is Dual:
        return fn(x)
    return type(x)([_map(fn, v) for v in x]) if type(x) in (list, tuple) else x


def _primal(x: Dual) -> Any:
    return x.primal


def _moves(x: Any) -> bool:
    """Tell whether an argument has a tangent."""
    if type(x) is Dual:
        return x.tangent is not None
    return type(x) in (list, tuple) and any([_moves(v) for v in x])


class DualTable(dict[Any, Callable[..., Any]]):
    """The compiled ops of a forward-mode backend."""

    def __init__(self, backend: DualBackend) -> None:
        self.backend = backend

    def __missing__(self, op: Any) -> Callable[..., Any]:
        found = self[op] = rule_for(self.backend, op)
        return found


class DualBackend(LevelBackend):
    """The backend of a forward-mode level."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.table = DualTable(self)

    def _constant(self, data: Any) -> Dual:
        return Dual(data, None)

    def _parts(self, x: Dual) -> Any:
        return x.primal

    def shape_of(self, x: Dual) -> Any:
        return self.inner.shape_of(x.primal)

    def numel_of(self, x: Dual) -> int:
        return prod(self.inner.shape_of(x.primal))

    def copy_to(self, x: Dual, device: Device) -> Dual:
        tangent = None if x.tangent is None else self.inner.copy_to(x.tangent, device.inner)
        return Dual(self.inner.copy_to(x.primal, device.inner), tangent)

    def to_host(self, x: Dual) -> Any:
        return self.inner.to_host(x.primal)

    def detached(self, x: Dual) -> Dual:
        primal = self.detached_below(x.primal)
        return x if primal is x.primal and x.tangent is None else Dual(primal, None)

    def with_tangents(self, x: Dual, y: Dual) -> Dual:
        return Dual(self.with_tangents_below(x.primal, y.primal), y.tangent)

    def item(self, x: Dual) -> Any:
        return self.inner.item(x.primal)

    def index_range(self, indices: Dual) -> Any:
        return self.inner.index_range(indices.primal)

    def refuse_outside(self, x: Dual, *rest: Any) -> Any:
        return self.inner.refuse_outside(x.primal, *rest)

    def flat_nonzero(self, x: Dual) -> Dual:
        return Dual(self.inner.flat_nonzero(x.primal), None)

    def unique_all(self, x: Dual) -> Any:
        return tuple([Dual(o, None) for o in self.inner.unique_all(x.primal)])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        below = getattr(self.inner, name)
        if not callable(below):
            return below
        found = self.__dict__[name] = self._kernel(below, getattr(TENSOR_KERNELS, name, None))
        return found

    def _kernel(self, below: Callable[..., Any], over: Any) -> Callable[..., Any]:
        """Make a kernel: the one below where no tangent comes in, the one over Tensors otherwise."""

        def each(fn: Callable[[Any], Any], out: Any) -> Any:
            several = type(out) in (tuple, list)
            return type(out)([None if o is None else fn(o) for o in out]) if several else fn(out)

        def kernel(*args: Any, **attrs: Any) -> Any:
            device = attrs.get("device")
            if device is not None:
                attrs["device"] = device.inner
            if not any([_moves(a) for a in args]) and not any([_moves(v) for v in attrs.values()]):
                out = below(*[_map(_primal, a) for a in args], **{n: _map(_primal, v) for n, v in attrs.items()})
                return each(lambda o: Dual(o, None), out)
            out = over(*[_map(self.tensor, a) for a in args], **{n: _map(self.tensor, v) for n, v in attrs.items()})
            return each(lambda o: o._buffer, out)

        return kernel

    def tensor(self, x: Dual) -> Any:
        """Wrap a buffer as a tensor outside any graph."""
        return make(x, self.device_of(x), self.dtype_of(x), Size(self.shape_of(x)))


# ---- rules of ops ----


class Point:
    """Stands for a node where a gradient formula is applied to a tangent."""

    def __init__(self, saved: Any, out: Any, attrs: Any, shapes: Any) -> None:
        self.saved, self.out, self.attrs, self.shapes = saved, out, attrs, shapes

    def needs(self) -> tuple[bool, ...]:
        """Return which inputs want a gradient."""
        return (True,) * len(self.saved)


# What `jvp=` may be beside a name: called with (k, op, primals, tangents (None: zero), attributes, output), over buffers
# of the level below; returns the output's tangent.
Rule = Callable[[Any, Any, list[Any], list[Any], dict[str, Any], Any], Any]


def _zero(k: Any, primal: Any) -> Any:
    """Return the tangent of an operand that has none."""
    if primal is None or isinstance(primal, (int, float, complex)):
        return None if primal is None else 0
    return k.zeros_like(primal)


def _linear(k: Any, op: Any, primals: list[Any], tangents: list[Any], attrs: dict[str, Any], out: Any) -> Any:
    """Apply the op to the tangents; operands such as indices stay as they are."""
    spare = op.shape is broadcast  # then a number stands for zeros of any shape
    given = [
        p if i in op.fixed else t if t is not None else 0 if spare and p is not None else _zero(k, p)
        for i, (p, t) in enumerate(zip(primals, tangents))
    ]
    found = k.table[op](*given, **attrs)
    shape = tuple(k.shape_of(out))
    return k.broadcast_to(found, shape) if spare and tuple(k.shape_of(found)) != shape else found


def _bilinear(k: Any, op: Any, primals: list[Any], tangents: list[Any], attrs: dict[str, Any], out: Any) -> Any:
    """Apply the product rule; a third operand is added, so that its tangent is too."""
    total = None
    for i, t in enumerate(tangents):
        if t is None:
            continue
        if i > 1:
            alone = [t if n == i else None for n in range(len(primals))]
            (part,) = _derived(k, op, primals, alone, attrs, (out,))
        else:
            part = k.table[op](*[t if n == i else p for n, p in enumerate(primals[:2])], **attrs)
        total = part if total is None else k.add(total, part)
    shape = tuple(k.shape_of(out))
    return k.broadcast_to(total, shape) if tuple(k.shape_of(total)) != shape else total


def _elementwise(k: Any, op: Any, primals: list[Any], tangents: list[Any], attrs: dict[str, Any], out: Any) -> Any:
    """Apply the formulas to the tangents: a diagonal Jacobian is its own transpose."""
    if op.joint is not None or (not op.holomorphic and any(_is_complex(k, b) for b in (*primals, out))):
        return _derived(k, op, primals, tangents, attrs, (out,))[0]
    shape, total = tuple(k.shape_of(out)), None
    shapes = [() if p is None or isinstance(p, (int, float, complex)) else tuple(k.shape_of(p)) for p in primals]
    point = Point([Const(p) for p in primals], (out,), attrs, shapes)
    for i, t in enumerate(tangents):
        formula = op.by_position[i] if t is not None else None
        if formula is not None:
            wide = t if tuple(k.shape_of(t)) == shape else k.broadcast_to(t, shape)
            part = formula.raw(formula.fn, k, wide, point)
            total = part if total is None else k.add(total, part)
    return total


def _is_complex(k: Any, x: Any) -> bool:
    if x is None or isinstance(x, (int, float, complex)):
        return isinstance(x, complex)
    return k.dtype_of(x).is_complex  # type: ignore[no-any-return]


def _derived(k: Any, op: Any, primals: list[Any], tangents: list[Any], attrs: dict[str, Any], outs: Any) -> list[Any]:
    """Return the tangents of the outputs: the derivative, along the tangents, of the gradient formulas."""

    def wrap(x: Any) -> Any:
        return make(x, k.device_of(x), k.dtype_of(x), Size(k.shape_of(x)))

    with enable_grad():
        given = [Const(p) if p is None or isinstance(p, (int, float, complex)) else wrap(p) for p in primals]
        for t, x in zip(tangents, given):
            if t is not None:
                x._rg = True
        results = tuple([wrap(o) for o in outs])
        t = results if len(op.outputs) > 1 else results[0]
        record(op, given, attrs, outs if len(op.outputs) > 1 else outs[0], t)
        roots = [r for r in results[: op.differentiable] if r._rg]
        if not roots:
            return [None] * len(outs)
        node = roots[0].grad_fn
        for x in given:
            if x._rg:
                x._rg = False  # only the way through u counts
        us = [wrap(k.zeros_like(o)) for o in outs[: op.differentiable]]
        for u in us:
            u._rg = True
        pulled = node.pull(us if op.differentiable > 1 else us[0], True)
    pairs = [(p, t) for p, t in zip(pulled, tangents) if t is not None and p is not None and p._rg]
    found = pairs and backward(
        [p for p, _ in pairs], [t for _, t in pairs], retain_graph=True, create_graph=False, inputs=us, accumulate=False
    )
    return [u._buffer if f is None else f._buffer for u, f in zip(us, found or [None] * len(us))] + [None] * (len(outs) - len(us))


def rule_for(k: Any, op: Any) -> Callable[..., Any]:
    """Return what computes an op and carries tangents through it."""
    inner = k.inner
    own: Rule | None = op.jvp if callable(op.jvp) else {"linear": _linear, "bilinear": _bilinear, "elementwise": _elementwise}.get(op.jvp)

    def rule(*args: Any, **attrs: Any) -> Any:
        primals = [a.primal if type(a) is Dual else a for a in args]
        out = inner.table[op](*primals, **attrs)
        several = type(out) is tuple
        outs = out if several else (out,)
        tangents = [a.tangent if type(a) is Dual else None for a in args]
        if op.no_grad_reason is not None or not any([t is not None for t in tangents]):
            found = [None] * len(outs)
        elif several or own is None:
            found = _derived(inner, op, primals, tangents, attrs, outs)
        elif inner.dtype_of(out).kind not in "fc":
            found = [None]
        else:
            found = [own(inner, op, primals, tangents, attrs, out)]
        duals = tuple([Dual(o, t) for o, t in zip(outs, found)])
        return duals if several else duals[0]

    return rule


class DualLevel(Level):
    """A running forward-mode derivative."""

    backend_class = DualBackend
    name = "jvp"

    def constant(self, data: Any) -> Dual:
        return Dual(data, None)

    def total(self, backend: Any, data: Dual) -> Any:
        # The gradient of (value, tangent) is kept as (gradient of the tangent, gradient of the value): so the formulas,
        # run over duals, are the transpose of what forward mode did.
        return backend.inner.zeros_like(data.primal) if data.tangent is None else data.tangent

    def lowered(self, t: Any) -> Any:
        return None if t._buffer.tangent is not None else self.primal(t)

    def settled(self, data: Any) -> Any:
        return data.primal

    def kept(self, t: Any) -> Any:
        return self.primal(t)

    def text(self, t: Any) -> str:
        shown = repr(self.inside(t._buffer.primal, t))
        if t._buffer.tangent is None or self.ended:
            return shown
        return f"{shown[:-1]}, tangent={self.inside(t._buffer.tangent, t)!r})"

    def over(self, data: Dual, fn: Callable[[Any], Any]) -> Dual:
        return Dual(fn(data.primal), None if data.tangent is None else fn(data.tangent))

    def carry(self, x: Any, tangent: Any) -> Any:
        """Return a tensor with the value of `x` that carries a tangent; writes to it show in `x` when the level ends."""
        if x.shape != tangent.shape:
            raise RuntimeError(
                "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
                f"supported. Tensor is of size {list(x.shape)} while the given forward gradient is of size {list(tangent.shape)}."
            )
        x, tangent = plain(x), plain(tangent)
        made = self.enter(here(self.primal(x), self), self.primal(tangent.to(x.dtype)))
        self.entered.append((x, made, lambda x, t: x.copy_(self.primal(t))))
        return made

    def enter(self, primal: Any, tangent: Any) -> Any:
        """Return the tensor of a value and a tangent (None: zero), both at the levels below."""
        if tangent is not None:
            place = highest((primal._device, tangent._device))
            primal, tangent = raise_to(primal, place), raise_to(tangent, place)
        data = Dual(primal._buffer, None if tangent is None else tangent._buffer)
        t = make(data, self.above(primal._device), primal.dtype, primal.shape)
        watch_memory(t, primal)

        both = tangent is not None

        def back(g: Any) -> tuple[Any, Any]:
            return self._part(g, "tangent"), self._part(g, "primal") if both else None

        return record_crossing(t, (primal, tangent), back, "MakeDualBackward")

    def primal(self, t: Any) -> Any:
        """Return the value of a tensor, at the level below."""
        return self._part(t, "primal")

    def tangent(self, t: Any) -> Any:
        """Return the tangent of a tensor, at the level below; None where it is zero."""
        return None if t._device.level is not self or t._buffer.tangent is None else self._part(t, "tangent")

    def _part(self, t: Any, which: str) -> Any:
        if self not in chain(t._device):
            return t if which == "primal" else TENSOR_KERNELS.zeros_like(t)
        if t._device.level is not self:
            raise RuntimeError("jvp: a gradient is asked for across the end of another transform, in the wrong order.")
        data = getattr(t._buffer, which)
        k = t._device.backend.inner
        if data is None:
            data = k.zeros_like(t._buffer.primal)
        elif t._storage is not None or t._rg or not k.owns(data):
            data = k.copy(data)
        made = make(data, t._device.inner, t.dtype, t.shape)

        def back(g: Any) -> tuple[Any]:
            return (self.enter(TENSOR_KERNELS.zeros_like(g), g) if which == "primal" else self.enter(g, None),)

        return record_crossing(made, (t,), back, "UnpackDualBackward")
