"""Levels: a running vmap, a running forward-mode derivative, or sparse tensors, as a device that stands above another one.

A tensor of a level lives on the level's device. Its buffer wraps buffers of the level below, and the level's backend
knows how to compute with it, so the call path, the graph and every op work as they do anywhere. Here: the stack of a
thread, and how tensors cross from one level to another, with gradients both ways.
"""

from __future__ import annotations

import functools

from mortice import call as _call
from mortice import mutation as _mutation
from mortice.device import Device, Local, stand_above
from mortice.graph import Node, next_seq
from mortice.layout import strided
from mortice.modes import modes
from mortice.node import TENSOR_KERNELS
from mortice.shape import Size
from mortice.tensor import Storage, TensorBase, make

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any


class DataDependent(RuntimeError):
    """Raised where a value of a whole batch would be needed as one number or one shape."""


class _Stack(Local):
    levels: tuple[Any, ...] = ()


stack = _Stack()


class Level:
    """A running transform, or what sparse tensors have in common. Subclasses say what a buffer of theirs is made of."""

    backend_class: Any
    name = "level"
    transforms = True  # whether it is a function transform, which ends
    size = 1  # of the batch
    randomness = "same"
    ended = False
    below: tuple[Any, ...] = ()  # the levels around it

    def __init__(self) -> None:
        self.devices: dict[int, Device] = {}  # by the identity of the device below, which is equal to those above it
        self.entered: list[tuple[Any, Any, Any]] = []  # (tensor below, tensor of the level, how to write back)
        self.lifted: list[tuple[Any, Any, dict[int, Any]]] = []  # (storage, its memory below, its tensors' buffers there)

    def layout(self, data: Any) -> Any:
        """Return the kind of storage of a buffer of this level."""
        return strided

    def above(self, inner: Device) -> Device:
        """Return the device of this level above `inner`."""
        found = self.devices.get(id(inner))
        if found is None:
            # One backend serves all levels of a kind above one backend: it keeps its compiled rules.
            kinds = inner.backend.__dict__.setdefault("_levels", {})
            backend = kinds.get(self.backend_class) or kinds.setdefault(self.backend_class, self.backend_class(inner.backend))
            found = self.devices[id(inner)] = stand_above(inner, self, backend)
        return found

    def check_writable(self, name: str, t: Any) -> None:
        """Refuse a write that this level cannot do."""

    def constant(self, data: Any) -> Any:
        """Wrap a buffer of the level below that takes no part in the transform."""
        raise NotImplementedError

    def total(self, backend: Any, data: Any) -> Any:
        """Do the transpose of `constant`, of a gradient."""
        raise NotImplementedError

    def lowered(self, t: Any) -> Any:
        """Return a tensor of this level at the one below, None if it would lose something."""
        raise NotImplementedError

    def settled(self, data: Any) -> Any:
        """Return the buffer below of memory that was lifted, when the level ends; None if it would lose something."""
        raise NotImplementedError

    def kept(self, t: Any) -> Any:
        """Return what memory of the level below can keep of a tensor when this level ends; None if it can keep nothing."""
        return self.lowered(t)

    def room_for(self, t: Any, value: Any) -> bool:
        """Let `t`, of a level below, be written with a value of this one: its memory has no room, a buffer above has."""
        levels = []
        while value._device is not t._device:
            level = value._device.level
            value = None if level is None else level.kept(value)
            if value is None:
                return False
            levels.append(level)
        family = list(t.own_storage().live())
        if any([s._rg for s in family]) or all([s._steps is not None for s in family]):
            return False
        for level in reversed(levels):
            level.lift(t._storage)
        return True

    def lift(self, storage: Any) -> None:
        """Bring all tensors of a storage up to this level until it ends."""
        family = list(storage.live())
        memory = next(s for s in family if s._steps is None)._buffer
        self.lifted.append((storage, memory, {id(s): s._buffer for s in family}))
        for s in family:
            s._buffer, s._device = self.constant(s._buffer), self.above(s._device)
        storage.root = self.constant(memory)

    def lower(self, storage: Any, memory: Any, before: dict[int, Any]) -> bool:
        """Bring them down again, what was written then being in their memory; tell whether it could be."""
        value, family = self.settled(storage.root), list(storage.live())
        k = family[0]._device.inner.backend if family else None
        if not storage.pinned and any([s._rg for s in family]):
            return value is not None  # nodes have kept them, and they outlive the level as its results do
        if k is not None and k.mutable and value is not None:
            k.setitem(memory, (...,), value)
        elif value is not None:
            memory, before = value, {}
        for s in family:
            if not s._rg:  # the others are of the graph of this level, and its nodes have kept them
                s._buffer = before[id(s)] if id(s) in before else _mutation.replay(k, memory, s.view_steps)
                s._device = s._device.inner
        storage.root = memory
        return value is not None

    def text(self, t: Any) -> str:
        """Return how a tensor of this level is printed."""
        raise NotImplementedError

    def pickled(self, t: Any) -> tuple[Any, ...]:
        """Return what a tensor of this level is rebuilt from."""
        raise self.no_memory("pickle")

    def no_memory(self, name: str) -> Exception:
        """Return the error for an operation that asks a tensor of this level for its memory."""
        return RuntimeError(f"{name}: a tensor inside a function transform (vmap, jvp, ...) has no memory of its own.")

    def meet(self, op: Any, args: Sequence[Any], attrs: dict[str, Any], out: Any) -> Any:
        """Apply an op to operands of which one is of this level, which is no transform, and others are not."""
        raise NotImplementedError

    def moved(self, data: Any, source: Device, target: Device, move: Callable[..., Any]) -> Any:
        """Return a buffer with its parts moved by `move(part, source, target)`, devices below."""
        return self.over(data, lambda part: move(part, source.inner, target.inner))

    def inside(self, data: Any, t: Any) -> Any:
        """Wrap a buffer of the level below as a tensor there, to be looked at."""
        inner = t._device.inner
        return make(data, inner, t.dtype, Size(inner.backend.shape_of(data)))

    def over(self, data: Any, fn: Callable[[Any], Any]) -> Any:
        """Rebuild a buffer from parts that `fn` has changed."""
        raise NotImplementedError

    def detach(self, t: Any, storage: Any = None) -> Any:
        """Return a tensor over t's memory, or that of `storage`, without the tangents of any level."""
        made = t._share(storage)
        data = t._device.backend.detached(t._buffer)
        if data is not t._buffer:
            made._buffer, made._steps = data, (t._steps, WithoutTangents, {"own": [None]})
        return made

    def __enter__(self) -> Any:
        self.below = stack.levels
        stack.levels = (*self.below, self)
        return self

    def __exit__(self, kind: Any, *exc: Any) -> None:
        stack.levels = self.below  # at once: an interrupt may come at a call
        self.ended = True
        done = [self.lower(*lifted) for lifted in reversed(self.lifted)]
        self.lifted = []
        if kind is None and not all(done):
            raise RuntimeError(NO_ROOM.format(self.name))
        if kind is None:
            for below, t, write_back in self.entered:
                if getattr(t._storage, "first", t._storage.root) is not t._storage.root:
                    write_back(below, t)
        self.entered = []
        self.close()

    def close(self) -> None:
        """Do what is left to do when it has ended."""


class WithoutTangents:
    """The view that `detach` is inside forward mode: of the same values, with tangents of its own once it is written."""

    name = "detach"

    @staticmethod
    def shape(name: str, shape: Any, own: list[Any]) -> Any:
        return shape

    @staticmethod
    def strides(shape: Any, strides: Any, own: list[Any]) -> Any:
        return strides

    @staticmethod
    def body(k: Any, x: Any, own: list[Any]) -> Any:
        if own[0] is None or type(own[0]) is not type(x):  # where a level has ended there are no tangents
            return k.detached(x) if _wraps(k) else x
        return k.with_tangents(x, own[0])

    @staticmethod
    def scatter(k: Any, x: Any, part: Any, own: list[Any]) -> Any:
        own[0] = part
        return k.with_tangents(part, x) if _wraps(k) else part


def _wraps(k: Any) -> bool:
    from mortice.levels.backend import LevelBackend  # not before there is a level

    return isinstance(k, LevelBackend)


class LevelStorage(Storage):
    """The storage of a tensor whose buffer shows another tensor's memory: writes to that one count as well."""

    __slots__ = ("below", "first", "written")

    def __init__(self, below: Any, first: Any) -> None:
        self.below, self.first = below, first
        super().__init__()

    @property
    def version(self) -> int:
        return self.written + self.below._version  # type: ignore[no-any-return]

    @version.setter
    def version(self, value: int) -> None:
        self.written = max(value - self.below._version, 0)


def watch_memory(t: Any, below: Any) -> None:
    """Let writes to the tensor below count as writes to `t`, which shows its memory."""
    storage = LevelStorage(below, t._buffer)
    t.set_storage(storage)
    storage.root = t._buffer


class CrossNode(Node):
    """The node of a crossing between levels: `back` maps a gradient, as a Tensor, to those of the edges."""

    __slots__ = ("back", "title")
    back: Any
    title: str

    def name(self) -> str:
        return self.title

    def pull(self, g: Any, graph: bool) -> Sequence[Any]:
        if graph:
            return self.back(g)  # type: ignore[no-any-return]
        pulled = self.back(make(g, self.device, self.dtype, self.shape))
        return [None if p is None else p._buffer for p in pulled]


def record_crossing(t: Any, sources: Sequence[Any], back: Callable[[Any], Any], title: str) -> Any:
    """Give `t`, made from tensors of other levels, its place in the graph."""
    if modes.grad and any([s is not None and s._rg for s in sources]) and t.dtype.kind in "fc":
        node = CrossNode()
        node.seq, node.extra = next_seq(), None
        node.edges = tuple([None if s is None or not s._rg else s._node or s.note_use(node.seq) for s in sources])
        node.device, node.shape, node.dtype = t._device, t.shape, t.dtype
        node.back, node.title = back, title
        t._rg, t._node = True, node
    return t


ESCAPED = (
    "{}: your tensor may have escaped from inside a function being vmapped: it was made there and is used outside. Return it "
    "from the function instead."
)


# ---- up: what knows nothing of a level becomes a constant of it ----


def chain(device: Device) -> list[Any]:
    """Return the levels that a device stands on, the highest first."""
    found = []
    while device.level is not None:
        found.append(device.level)
        assert device.inner is not None
        device = device.inner
    return found


def highest(devices: Sequence[Device]) -> Device:
    """Return the device of most levels."""
    return max(devices, key=lambda device: len(chain(device)))


def _raised(data: Any, source: Device, target: Device) -> Any:
    if source is target:
        return data
    if target.inner is None:
        raise RuntimeError(ESCAPED.format("vmap"))
    if source.level is target.level:
        assert source.inner is not None
        below, above = source.inner, target.inner
        return source.level.over(data, lambda part: _raised(part, below, above))
    return target.level.constant(_raised(data, source, target.inner))


# Filled in by `subclasses`: a plain tensor with the values of one of a class that says itself what they are.
OF_OUTLINE: Any = None


def plain(t: Any) -> Any:
    """Return a tensor whose elements a level can compute with."""
    return OF_OUTLINE(t) if t._device.is_outline and OF_OUTLINE is not None else t


def raise_to(t: Any, target: Device) -> Any:
    """Return a tensor as a constant of the levels of `target` that it does not know; a device move it is not."""
    if t._device is target:
        return t
    source = (t := plain(t))._device
    made = make(_raised(t._buffer, source, target), target, t.dtype, t.shape)
    if modes.grad:
        if t.dtype.kind in "fc":
            watch_memory(made, t)
        gone = [level for level in chain(target) if level not in chain(source)]
        record_crossing(made, (t,), lambda g: (_drop(g, gone),), "LiftBackward")
    return made


def _dropped(data: Any, device: Device, gone: list[Any]) -> tuple[Any, Device]:
    if device.level is None:
        return data, device
    assert device.inner is not None
    if device.level in gone:
        return _dropped(device.level.total(device.backend, data), device.inner, gone)
    parts = device.level.over(data, lambda part: _dropped(part, device.inner, gone)[0])
    return parts, device.level.above(_place_without(device.inner, gone))


def _place_without(device: Device, gone: list[Any]) -> Device:
    if device.level is None:
        return device
    assert device.inner is not None
    below = _place_without(device.inner, gone)
    return below if device.level in gone else device.level.above(below)


def _drop(g: Any, gone: list[Any]) -> Any:
    """Do the transpose of `raise_to`: add a gradient up over the levels in `gone`."""
    data, place = _dropped(g._buffer, g._device, gone)
    if place is g._device:
        return g
    source = g._device
    made = make(data, place, g.dtype, g.shape)
    return record_crossing(made, (g,), lambda h: (raise_to(h, with_levels(h._device, source)),), "LiftBackward")


def with_levels(device: Device, wanted: Device) -> Device:
    """Return the device of `wanted`'s levels, above those of `device` that it lacks."""
    have = chain(wanted)
    extra = [level for level in chain(device) if level not in have]
    found = device.base
    for level in (*reversed(extra), *reversed(have)):
        found = level.above(found)
    return found


def here(t: Any, below: Any = None) -> Any:
    """Return a tensor at the level of the code that runs now (or that which is below a level)."""
    if not stack.levels:
        return t
    target = t._device.base
    for level in stack.levels:
        if level is below:
            break
        target = level.above(target)
    return t if len(chain(t._device)) >= len(chain(target)) else raise_to(t, target)


def _outlived(t: Any) -> Any:
    level = t._device.level
    kept = level.kept(t) if level is not None and level.ended and modes.running is None else None
    return t if kept is None else _outlived(kept)


def to_one_level(args: Sequence[Any]) -> list[Any]:
    """Return the operands of an op with all tensors at the level of the highest one; levels that have ended count no more."""
    args = [_outlived(a) if isinstance(a, TensorBase) else a for a in args]
    target = highest([a._device for a in args if isinstance(a, TensorBase)])
    return [raise_to(a, target) if isinstance(a, TensorBase) else a for a in args]


def across_levels(op: Any, args: Sequence[Any], attrs: dict[str, Any], out: Any) -> Any:
    """Apply an op to operands of one device, of several levels perhaps."""
    levels = [a._device.level for a in args if isinstance(a, TensorBase) and a._device.level is not None]
    sparse = next((level for level in levels if not level.transforms), None)
    return _call.slow(op, to_one_level(args), attrs, out) if sparse is None else sparse.meet(op, args, attrs, out)


NO_ROOM = (
    "{}: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that has "
    "more elements than `self`: it is transformed, and `self` has no room for the result. Use the out-of-place operator "
    "instead, or make `self` from a transformed tensor, as with x.new_zeros or zeros_like."
)


def into_level(t: Any, value: Any) -> Any:
    """Return a value as it can be written into `t`."""
    if (kept := _outlived(t)) is not t:
        t._device = kept._device
        t._take_memory(kept._buffer, t.shape)
    while len(chain(value._device)) > len(chain(t._device)):
        level = value._device.level
        lowered = level.lowered(value)
        if lowered is None and level.room_for(t, value):
            return value
        value = lowered
        if value is None:
            raise RuntimeError(NO_ROOM.format(level.name))
    return TENSOR_KERNELS.copy(raise_to(value, t._device)) if value._device is not t._device else value


RANDOM = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' randomness "
    "flags on vmap or perform the randomness operation out of vmap"
)


def drawing(device: Device, n: int) -> tuple[Device, int]:
    """Return where n random words are drawn for a tensor on `device`, and how many words that takes."""
    if not stack.levels:
        return device, n
    place = device.base
    for level in stack.levels:
        if level.randomness == "error":
            raise RuntimeError(RANDOM)
    last = max([i for i, level in enumerate(stack.levels) if level.randomness == "different"], default=-1)
    for level in stack.levels[: last + 1]:
        place = level.above(place)
    if len(chain(device)) >= len(chain(place)):
        place = device
    for level in chain(place):
        n *= level.size if level.randomness == "different" else 1
    return place, n


class absent:
    """A block that runs what is below a level as if that were not there."""

    def __init__(self, level: Any) -> None:
        self.level = level

    def __enter__(self) -> None:
        self.outer = stack.levels
        stack.levels = tuple([other for other in self.outer if other is not self.level])

    def __exit__(self, *exc: Any) -> None:
        stack.levels = self.outer


def lane_by_lane(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function that reads values of tensors be called inside vmap: there it is called for each sample."""

    @functools.wraps(fn)
    def wrapper(*args: Any, **attrs: Any) -> Any:
        if not stack.levels or not any([isinstance(a, TensorBase) and a._device.level for a in (*args, *attrs.values())]):
            return fn(*args, **attrs)
        try:
            return fn(*args, **attrs)
        except DataDependent:
            found = [a._device for a in (*args, *attrs.values()) if isinstance(a, TensorBase)]
            level = highest(found).level
            if not hasattr(level, "leave") or attrs.get("out") is not None:
                raise
            left = [level.leave(a) if isinstance(a, TensorBase) else (a,) * level.size for a in (*args, *attrs.values())]
            n = len(args)
            made = [wrapper(*lane[:n], **dict(zip(attrs, lane[n:]))) for lane in zip(*left)]
            return level.enter(TENSOR_KERNELS.stack(made, axis=0))

    return wrapper


_call.ACROSS_LEVELS, _mutation.INTO_LEVEL = across_levels, into_level
