"""What a node has kept, as others than its formulas meet it: hooks on saved values, properties, and errors that tell of it.

Few programs need any of it, so it loads at its first use.
"""

from __future__ import annotations

import os
import sys
from functools import partial

from mortice.graph import Node, Slot, next_seq
from mortice.modes import modes, no_grad, saved_hooks
from mortice.tensor import TensorBase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from mortice.formula import Differentiable
    from mortice.node import OpNode

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def forward_trace() -> tuple[str, ...]:
    """Return the traceback of the line being recorded, without the library's own frames.

    What a backward records was led to by a node, about which more texts tell, as far as the first forward.
    """
    import traceback

    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    here = "".join(traceback.format_list(traceback.extract_stack(frame)))
    node = modes.pulled
    if node is None or node.extra is None or not node.extra.trace:
        return (here,)
    first, *rest = node.extra.trace
    led = f"\n\nPrevious calculation was induced by {node.name()}. Traceback of forward call that induced the previous "
    return here, f"{led}calculation:\n{first}", *rest


# ---- hooks ----


class PackedValue:
    """A saved tensor that the pack hook of `saved_tensors_hooks` has taken; read like the tensor it stands for."""

    __slots__ = ("handle", "unpack", "cache", "shape", "dtype", "_rg", "target")
    _storage = None  # hooks replace the check that nobody wrote to it

    def __init__(self, t: Any, target: Any, pack: Any, unpack: Any) -> None:
        self.shape, self.dtype, self._rg, self.target = t.shape, t.dtype, t._rg, target
        version = t._version
        with no_grad():
            self.handle = pack(t)
        if self.handle is t and target is None:
            self.handle = t._share()  # a node must not own what it has made
        if t._version != version:
            raise RuntimeError(
                "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can "
                "not be modified by in-place operations as this can lead to unexpected side-effects. Please open an "
                "issue if you need to perform in-place operations on the input to a pack hook."
            )
        self.unpack, self.cache = unpack, None

    def load(self) -> Any:
        """Return what the unpack hook makes of it; the node that asked drops it when it is done."""
        if self.cache is None:
            with no_grad():
                found = self.unpack(self.handle)
            if not hasattr(found, "_buffer"):
                raise TypeError(f"Output of saved tensor unpack_hook expected to be a Tensor; got {type(found).__name__}.")
            self.cache = found
        return self.cache

    @property
    def _buffer(self) -> Any:
        return self.load()._buffer

    def tensor(self) -> Any:
        """Return it with its place in the graph."""
        t = self.load()._share()
        if self._rg:
            t._rg = True
            t._node = self.target if isinstance(self.target, Node) else _Leaf(self.target)
        return t


class _Leaf(Node):
    """Stands between a leaf and another tensor object that has its value, which users see as a leaf too."""

    __slots__ = ()

    def __init__(self, leaf: Any) -> None:
        self.seq, self.edges, self.extra = next_seq(), (leaf,), None
        self.device, self.shape, self.dtype = leaf._device, leaf.shape, leaf.dtype

    def seen(self) -> Any:
        return None

    def pull(self, g: Any, graph: bool) -> Sequence[Any]:
        return (g,)


class PackedOut:
    """The kept outputs of a node in the care of saved tensor hooks, read like the tuple of buffers."""

    def __init__(self, values: dict[int, PackedValue]) -> None:
        self.values = values

    def __getitem__(self, number: int) -> Any:
        found = self.values[number].load()
        return partial(found._share) if found._device.is_outline else found._buffer


def watch(node: OpNode, t: Any) -> None:
    """Do what few recordings ask for: keep the line being run (anomaly detection), hand saved values to hooks."""
    if modes.anomaly:
        node.more().trace = forward_trace()
    hooks = saved_hooks()
    if hooks is None:
        return
    packed: list[PackedValue] = []

    def pack(s: Any, target: Any) -> PackedValue:
        packed.append(PackedValue(s, target, *hooks))
        return packed[-1]

    # PyTorch asks by its names' alphabet: the operands, then what was made.
    op, saved, called = node.op, list(node.saved), _called(node.name())
    for i in sorted(range(len(saved)), key=lambda i: called(op.inputs[i])):
        if isinstance(s := saved[i], TensorBase):
            saved[i] = pack(s, s._node or s)
    node.saved = tuple(saved)
    if node.out is not None:
        formulas = [op.joint] if op.joint else [f for f, e in zip(op.by_position, node.edges) if f and e is not None]
        outs = t if type(t) is tuple else (t,)
        numbers = set().union(*(f.out for f in formulas))
        node.out = None  # the outputs are shown to the hook without being watched
        order = sorted(numbers, key=lambda i: called(op.outputs[i]) if op.outputs else "")
        node.out = PackedOut({i: pack(outs[i], None) for i in order})
    if packed:
        node.more().packed = packed


# ---- what users read ----

# PyTorch's names of what nodes keep, where ours are another.
_SAVED = {"x": "self", "y": "other", "out": "result", "axis": "dim", "keepdims": "keepdim", "w": "weight", "rstd": "result2"}
# And where the names of nodes begin so.
_SAVED_OF = {
    ("Mm", "Bmm"): {"y": "mat2", "w": "mat2"}, ("Addmm",): {"x": "mat1", "w": "mat2"}, ("Gather", "IndexS"): {"indices": "index"},
    ("Native", "Convolution"): {"x": "input", "mean": "result1", "var": "result2"}, ("MseL", "BinaryC"): {"y": "target"},
    ("MaxPool",): {"indices": "result1", "kernel": "kernel_size"}, ("Mv",): {"y": "vec"}, ("Dot",): {"y": "tensor"},
    ("LinalgSvd",): {"u": "U", "s": "S", "vh": "Vh"}, ("ScaledDot",): {"out": "output", "lse": "logsumexp"},
}  # fmt: skip


def _called(node: str) -> Callable[[str], str]:
    """Return what gives PyTorch's name for what a node so called keeps."""
    names = _SAVED | next((names for starts, names in _SAVED_OF.items() if node.startswith(starts)), {})
    return lambda name: names.get(name, name)


def saved_properties(op: Differentiable, node: str) -> dict[str, property]:
    """Return what tools that draw graphs read of an op's nodes: `_saved_self`, `_saved_result`, `_saved_dim`, ..."""
    formulas = [f for f in (op.joint, *op.by_position) if f is not None]
    found: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {name: (_kept_attribute, name) for name in op.attrs}
    found.update({op.inputs[i]: (_kept_input, i) for f in formulas for i in f.saves})
    found.update({op.outputs[i]: (_kept_output, i) for f in formulas for i in f.out})

    def checked(get: Callable[[Any, Any], Any], key: Any) -> property:
        return property(lambda n: n.check() or _dropping(n, get(n, key)))

    called = _called(node)
    return {f"_saved_{called(name)}": checked(*how) for name, how in found.items()}


def _dropping(n: Any, found: Any) -> Any:
    """Return what was read of a node, which unpacks it anew for the next reader."""
    for p in () if n.extra is None else n.extra.packed or ():
        p.cache = None
    return found


def _kept_input(n: Any, i: int) -> Any:
    return n.input_tensor(i)


def _kept_output(n: Any, i: int) -> Any:
    return None if n.out is None or n.out[i] is None else n.out_tensor(i)


def _kept_attribute(n: Any, name: str) -> Any:
    return n.attrs.get(name) if type(n.attrs) is dict else None


def modified_in_place(d: Any, shape: Any, version: int, expected: int, node: Any = None, number: int = 0) -> str:
    """Return PyTorch's message about an overwritten saved value; `node` is the one that made it."""
    maker = ""
    remedy = (
        "Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
        "mortice.autograd.set_detect_anomaly(True, check_nan=False)."
    )
    if node is None:
        maker = ", a leaf,"
        remedy = (
            "If it is a parameter, optimizer.step() changed it after the forward: step after every backward that needs "
            "it, or compute the loss again. " + remedy
        )
    else:
        number = node.number if isinstance(node, Slot) else number
        maker = f", which is output {number} of {node.name().partition('Backward')[0] or node.name()},"
    return (
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{d} {list(shape)}]{maker} is at version {version}; expected version {expected} instead. {remedy}"
    )
