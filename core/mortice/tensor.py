"""TensorBase: what a tensor is, below the operations: buffer, dtype, shape, device, place in the graph, storage.

The public `Tensor`, with its operators and methods, is in `mortice.methods`; it registers itself here as `TensorBase.cls`.
"""

from __future__ import annotations

import threading
import weakref

from mortice import graph
from mortice.device import Device
from mortice.dtype import DType
from mortice.errors import switch
from mortice.graph import Node, RemovableHandle, add_hook
from mortice.modes import modes
from mortice.shape import Size, SizeMember, contiguous_strides, size_member

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, ClassVar


def _nobody() -> None:
    """Stand in for the weak reference to a view."""


class Aliases(list):  # type: ignore[type-arg]
    """Weak references to the tensors that share memory, and what is true of the memory itself.

    Most views live alone and shortly: `last` takes one after the other without the list growing.
    """

    __slots__ = ("last", "pinned", "root", "laid")

    def __init__(self) -> None:
        self.last: Callable[[], Any] = _nobody
        self.pinned = False
        self.root: Any = None
        self.laid: Any = None  # steps, sizes and strides of the view last asked for its own, where buffers have none


class Storage:
    """Memory that several tensors share, and its version; `.data` makes a second Storage over the same memory."""

    __slots__ = ("version", "aliases", "pruned", "reshapes")
    below: Any = None  # in a transform, the tensor that the root shows

    def __init__(self, aliases: Aliases | None = None, version: int = 0) -> None:
        self.version = version
        self.aliases = Aliases() if aliases is None else aliases
        self.pruned = 16
        self.reshapes = False  # whether `reshape_view` is known to serve the tensor that sees all of it

    @property
    def _version(self) -> int:
        """The version, under the name that it has for the tensors which share this memory."""
        return self.version

    @property
    def pinned(self) -> bool:
        """Whether it is seen from outside (NumPy, a pointer), so that the memory must stay where it is."""
        return self.aliases.pinned

    @pinned.setter
    def pinned(self, value: bool) -> None:
        self.aliases.pinned = value

    @property
    def root(self) -> Any:
        """On a backend without mutation, the buffer that all sharers are views of."""
        return self.aliases.root

    @root.setter
    def root(self, value: Any) -> None:
        self.aliases.root = value

    def add(self, t: TensorBase) -> None:
        """Note that `t` shares this memory."""
        if len(self.aliases) > self.pruned:
            self.prune()
        self.aliases.append(weakref.ref(t))

    def prune(self) -> None:
        """Forget tensors that are gone; done when the list has doubled, so its cost per view stays constant."""
        self.aliases[:] = [r for r in self.aliases if r() is not None]
        self.pruned = 2 * len(self.aliases) + 16

    def lonely(self) -> bool:
        """Tell whether a single tensor has this memory."""
        if self.aliases.last() is None and [r() is None for r in self.aliases].count(False) == 1:
            return True
        return sum(1 for _ in self.live()) == 1

    def live(self) -> Iterator[TensorBase]:
        """Yield the tensors that share this memory."""
        for ref in (*self.aliases, self.aliases.last):
            t = ref()
            if t is not None and t._storage is not None and t._storage.aliases is self.aliases:
                yield t


class LeafState:
    """What few tensors have: a gradient, hooks."""

    __slots__ = ("grad", "hooks", "post_hooks", "retains", "first_use", "prehooks")

    def __init__(self) -> None:
        self.grad: Any = None
        self.first_use = 0  # `seq` of the oldest node that reads this leaf since its last gradient; 0 if not known
        self.hooks: Any = None  # by number, once there are any
        self.prehooks: Any = None  # of what accumulates, after those of the tensor
        self.post_hooks: Any = None
        self.retains = False


class _WideLeaf(LeafState):
    """That of a float8 tensor, whose gradient is float32; the short ways know the other class alone."""

    __slots__ = ()


def _laid_out_like(backend: Any, g: Any, data: Any) -> Any:
    """Return a gradient in the order of memory of its tensor's data, row by row where those have gaps or overlaps."""
    strides, shape = backend.strides_of(data), backend.shape_of(data)
    if strides is None or backend.strides_of(g) == strides:
        return g
    order = sorted(range(len(shape)), key=lambda d: -strides[d])
    steps = contiguous_strides([shape[d] for d in order])
    if any([shape[d] != 1 and strides[d] != step for d, step in zip(order, steps)]):
        return backend.contiguous(g)
    made = backend.contiguous(backend.permute_dims(g, tuple(order)))
    return backend.permute_dims(made, tuple([order.index(d) for d in range(len(shape))]))


INFERENCE = "inference"  # the note of what was made under inference_mode, which views inherit
FROM_FUNCTION = "function: "  # how the note of a view that a custom Function returned begins

# Threads that run backward at the same time may add to the same `.grad`.
_adding = threading.RLock()


class TensorBase:
    """State and identity of a tensor. Made by ops; users call `mortice.tensor` and friends."""

    __slots__ = (
        "_buffer",  # the backend's buffer, opaque here
        "_device",
        "_dtype",
        "_shape",
        "_rg",  # requires grad
        "_node",  # the node that made it; None for a leaf
        "_storage",  # None until its memory is shared or written; the next three are set with it, but for a note INFERENCE
        "_steps",  # how it is seen in the storage: (steps before, view op, attributes), None for all of it
        "_viewed",  # the tensor that it is a view of in the graph, or None
        "_note",  # why it must not be written in place: "no_grad" (": inference"), a multi-view op's name, INFERENCE, or ""
        "_leaf",  # None until it has a gradient or hooks
        "__dict__",
        "__weakref__",
    )
    cls: ClassVar[Any]  # the public class, set by `methods`
    _buffer: Any
    _device: Device
    _dtype: DType
    _shape: Size
    _rg: bool
    _node: Any
    _storage: Storage | None
    _steps: Any
    _viewed: Any
    _note: str
    _leaf: LeafState | None

    # ---- where and what ----

    @property
    def dtype(self) -> DType:
        """The dtype of its elements."""
        return self._dtype

    @property
    def shape(self) -> Size:
        """The sizes of its dimensions."""
        return self._shape

    @property
    def device(self) -> Device:
        """The device it lives on."""
        return self._device.base

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def is_leaf(self) -> bool:
        """Whether it was made by the user rather than by a recorded operation."""
        return self.grad_fn is None

    @property
    def grad_fn(self) -> Node | None:
        """The node that made it, None for a leaf."""
        node = self._node
        if node is None:
            return None
        return (node.parent if type(node) is graph.Slot else node).seen()  # type: ignore[no-any-return]

    @property
    def _version(self) -> int:
        """How often its memory has been written in place."""
        return 0 if self._storage is None else self._storage.version

    @property
    def _base(self) -> Any:
        """The tensor that this one is a view of, or None."""
        return None if self._storage is None else self._viewed

    def _is_view(self) -> bool:
        return self._base is not None

    @property
    def output_nr(self) -> int:
        """The number of this output among those of its `grad_fn`."""
        return self._node.number if isinstance(self._node, graph.Slot) else 0

    # ---- requires_grad ----

    @property
    def requires_grad(self) -> bool:
        """Whether operations on it are recorded."""
        return self._rg

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        switch("requires_grad_", "requires_grad", value)
        if self._node is not None and not value:
            raise RuntimeError(
                "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in "
                "a subgraph that doesn't require differentiation use var_no_grad = var.detach()."
            )
        if value and not (self.dtype.is_floating_point or self.dtype.is_complex):
            raise RuntimeError(
                f"Only Tensors of floating point and complex dtype can require gradients; got {self.dtype}."
            )
        if value and self.is_inference() and not modes.inference:
            raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
        self._rg = value

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Set `requires_grad` in place; return self."""
        self.requires_grad = requires_grad
        return self

    def is_inference(self) -> bool:
        """Tell whether it was made under `inference_mode`."""
        return getattr(self, "_note", "") == INFERENCE

    # ---- grad ----

    @property
    def grad(self) -> Any:
        """The gradient that backward has accumulated, or None."""
        state = self._leaf
        if self._node is not None and (state is None or not state.retains):
            if state is None or state.grad is None:
                from mortice.notice import warn

                warn(
                    "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute "
                    "won't be populated during autograd.backward(). If you indeed want the .grad field to be "
                    "populated for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor."
                )
        return None if state is None else state.grad

    @grad.setter
    def grad(self, value: Any) -> None:
        if value is not None:
            if not isinstance(value, TensorBase):
                raise TypeError(
                    f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}"
                )
            if value is self:
                raise RuntimeError("grad: can't assign Variable as its own grad.")
            level = value._device.level
            there = value._device if level is None or level.transforms else value._device.inner  # it may be sparse
            if value.shape != self.shape:
                raise RuntimeError(
                    f"attempting to assign a gradient of size '{list(value.shape)}' to a tensor of size '{list(self.shape)}'. "
                    "Please ensure that the gradient and the tensor are the same size"
                )
            if value.dtype is not self.dtype or not (self._device is there or self._device is value._device):
                raise RuntimeError(
                    f"grad: attempting to assign a gradient that does not match its tensor; expected shape "
                    f"{list(self.shape)}, {self.dtype}, on {self.device}; got {list(value.shape)}, {value.dtype}, on "
                    f"{value.device}."
                )
        self._state().grad = value

    @grad.deleter
    def grad(self) -> None:
        self._state().grad = None

    _grad = grad  # programs that write `p._grad` mean the same

    def _state(self) -> LeafState:
        if self._leaf is None:
            self._leaf = LeafState() if self._dtype.stored is self._dtype else _WideLeaf()
        return self._leaf

    def note_use(self, seq: int) -> Any:
        """Learn of a node that reads this leaf, and return self, for the node's edges."""
        state = self._leaf or self._state()
        if not state.first_use:
            state.first_use = seq
        return self

    def retain_grad(self) -> None:
        """Make backward keep the gradient of a non-leaf tensor too."""
        if not self._rg:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        if self._node is not None:
            self._state().retains = True
            self._node.more().retained = weakref.ref(self)

    @property
    def retains_grad(self) -> bool:
        """Whether `retain_grad` was called on this non-leaf."""
        return self._leaf is not None and self._leaf.retains

    def _accumulate(self, g: Any, mine: bool, algebra: Any) -> None:
        """Add a gradient to `.grad`; `mine` says that nobody else holds its buffer."""
        state = self._state()
        state.first_use = 0
        with _adding:
            total = state.grad
            if total is None:
                # Under create_graph the gradient is a Tensor that others may hold, so it is copied as well.
                g = g if mine and algebra is graph.RAW else algebra.fresh(g, self._device)
                state.grad = algebra.wrap(self._laid_out(g, algebra), self)
            elif total.shape != self.shape:
                raise RuntimeError(
                    f"backward: .grad has shape {list(total.shape)}, but its tensor now has shape {list(self.shape)}. "
                    "Set .grad = None after changing the shape."
                )
            elif total._device is not self._device and algebra is graph.RAW:  # a sparse .grad: the sum is as dense as `g`
                state.grad = algebra.wrap(g, self) + total
            else:
                state.grad = algebra.add_into(total, g)

    def _keep_grad(self, g: Any, algebra: Any) -> None:
        """Add the gradient of a non-leaf that asked for it to `.grad`."""
        if isinstance(g, TensorBase) and g._device is not self._device:
            return  # of several gradients at once (is_grads_batched), which lie at a level that ends before anybody could ask
        state = self._state()
        total = state.grad
        g = algebra.fresh(g, self._device) if total is None else algebra.add(self, algebra.unwrap(total), g)
        state.grad = algebra.wrap(self._laid_out(g, algebra), self)

    def _laid_out(self, g: Any, algebra: Any) -> Any:
        """Return a gradient in the order of this tensor in memory, so that what can be viewed of it can be of `.grad`."""
        if algebra is not graph.RAW:
            if self.is_contiguous():  # type: ignore[attr-defined]
                return g.contiguous()
            return _laid_out_like(algebra.kernels, g, self)
        backend = self._device.backend
        if backend.is_contiguous(g) and backend.is_contiguous(self._buffer):
            return g
        return _laid_out_like(backend, g, self._buffer)

    # ---- hooks ----

    def register_hook(self, hook: Callable[[Any], Any]) -> RemovableHandle:
        """Call `hook(grad)` when the gradient is known; what it returns replaces the gradient."""
        if not self._rg:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if self._node is None:
            return add_hook(self._state(), "hooks", hook)
        return add_hook(self._node.more(), "tensor_hooks", hook)

    @property
    def _backward_hooks(self) -> Any:
        """What `register_hook` has registered, by number; None where it never has."""
        if self._node is None:
            return self._leaf and self._leaf.hooks
        return self._node.extra and self._node.extra.tensor_hooks

    def register_post_accumulate_grad_hook(self, hook: Callable[[Any], Any]) -> RemovableHandle:
        """Call `hook(param)` after backward has added to `.grad`; leaves only."""
        if not self._rg:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if self._node is not None:
            raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
        return add_hook(self._state(), "post_hooks", hook)

    # ---- sharing memory ----

    def own_storage(self) -> Storage:
        """Return the storage, making one when the tensor had its memory to itself."""
        storage = self._storage
        if storage is None:
            storage = Storage()
            self.set_storage(storage, note=INFERENCE if self.is_inference() else "")
            if self._node is not None:
                self._node.note_storage(0, storage)
            backend = self._device.backend
            storage.reshapes = backend.reshape_view is not None and backend.is_contiguous(self._buffer)
            if backend.rooted:
                storage.root = self._buffer
        return storage

    def set_storage(self, storage: Storage, steps: Any = None, viewed: Any = None, note: str = "") -> None:
        """Join a storage."""
        self._storage, self._steps, self._viewed, self._note = storage, steps, viewed, note
        storage.add(self)

    def _take_memory(self, data: Any, shape: Size) -> None:
        """See other memory from now on, of its own; nodes that kept this tensor notice, as they do of a write."""
        version = self._version + 1
        self._buffer, self._shape, self._storage = data, shape, None
        self.own_storage().version = version

    @property
    def view_steps(self) -> tuple[tuple[Any, dict[str, Any]], ...]:
        """The view steps from the storage's root to this tensor, each an op and its attributes."""
        return steps_since(None, None if self._storage is None else self._steps)[1]

    def _share(self, storage: Storage | None = None) -> Any:
        """Return a new leaf over the same memory."""
        own = self._storage or self.own_storage()
        t = make(self._buffer, self._device, self.dtype, self.shape)
        t._storage = storage = storage or own
        t._steps, t._viewed, t._note = self._steps, None, INFERENCE if self._note == INFERENCE else ""
        storage.add(t)
        return t

    def _rejoin(self, rg: bool, node: Any) -> None:
        """Take another place in the graph, after a write in place; a kept gradient moves along."""
        state = self._leaf
        if state is not None and state.retains:
            if self._node is not None:
                self._node.more().retained = None
            if node is not None:
                node.more().retained = weakref.ref(self)
        self._rg, self._node = rg, node

    def detach(self) -> Any:
        """Return a tensor over the same memory, outside the graph; one without tangents in forward mode."""
        level = self._device.level
        return self._share() if level is None else level.detach(self)

    @property
    def size(self) -> SizeMember:
        """The number of elements; called, `size()` is the shape and `size(dim)` one size."""
        return size_member(self.shape)

    @property
    def data(self) -> Any:
        """The same memory outside the graph; writes through it are invisible to autograd's checks. Prefer `detach`."""
        storage, level = Storage((self._storage or self.own_storage()).aliases), self._device.level
        return self._share(storage) if level is None else level.detach(self, storage)

    @data.setter
    def data(self, value: Any) -> None:
        if not isinstance(value, TensorBase):
            raise TypeError(f"data: expected a Tensor; got {type(value).__name__}.")
        if value.dtype.kind not in "fc" and self._rg:
            raise RuntimeError(
                f"data set to a tensor that requires gradients must be floating point or complex dtype; got {value.dtype}."
            )
        aliases, version = value.own_storage().aliases, self._version
        self._buffer, self._device = value._buffer, value._device
        self._dtype, self._shape = value.dtype, value.shape
        self.set_storage(Storage(aliases, version), value._steps)

    # ---- identity ----

    def __hash__(self) -> int:
        return id(self)

    def dim(self) -> int:
        """Return the number of dimensions."""
        return len(self.shape)


def steps_since(known: Any, at: Any) -> tuple[Any, tuple[tuple[Any, dict[str, Any]], ...]]:
    """Return where the walk back from steps `at` ends, `known` steps on the way or None, and the steps from there."""
    found: list[Any] = []
    while at is not None and at is not known:
        at, op, attrs = at
        if type(attrs) is not dict:
            attrs = dict(zip(op.attrs, (attrs,) if type(attrs) is Size else attrs))
        found.append((op, attrs))
    return at, tuple(reversed(found))


def make(data: Any, device: Device, dtype: DType, shape: Size) -> Any:
    """Wrap a buffer as a leaf tensor of the public class."""
    t = object.__new__(TensorBase.cls)
    t._buffer = data
    t._device = device
    t._dtype = dtype
    t._shape = shape
    t._rg = False
    t._node = t._storage = t._leaf = None
    return t
