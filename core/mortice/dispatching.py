"""Dispatch: modes that are told of every operator below autograd, in PyTorch's names.

`call` hands each op over; what is no op, as making a tensor, is met where its public function is called.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import mortice
import mortice.overrides
from mortice import Tensor, asking, call
from mortice._ops import OpOverload, aten, own
from mortice.asking import _overloaded, _state, let_methods_ask, redispatch_function
from mortice.layout import contiguous_format
from mortice.modes import modes, set_recording, settle
from mortice.op import OPS, Op
from mortice.ops import copies
from mortice.tensor import TensorBase


def _set(stack: tuple[Any, ...]) -> None:
    """Have those told from now on, innermost last."""
    modes.dispatch = stack
    settle()
    _state.modes = ((_functions,) if stack else ()) + tuple([m for m in _state.modes if m is not _functions])


@contextlib.contextmanager
def _told(stack: tuple[Any, ...] = ()) -> Iterator[None]:
    before = modes.dispatch
    _set(stack)
    try:
        yield
    finally:
        _set(before)


class TorchDispatchMode:
    """A mode: in its block every operator, below autograd and in backward, goes to its `__torch_dispatch__`.

    Operators called there go to the mode around it.

    Differs from torch: ops that PyTorch has no operator for are told of as `ops.mortice`'s; nothing but writes is recorded there.
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Compute `func(*args, **kwargs)`, or anything else."""
        raise NotImplementedError(f"{type(self).__name__}: give it a method __torch_dispatch__(func, types, args, kwargs).")

    def __enter__(self) -> Any:
        let_methods_ask(True)
        _set((*modes.dispatch, self))
        return self

    def __exit__(self, *exc: object) -> None:
        _set(modes.dispatch[:-1])
        let_methods_ask(False)


def _tensors(values: Any) -> list[Any]:
    return [t for v in values for t in (_tensors(v) if isinstance(v, (list, tuple)) else [v]) if isinstance(t, TensorBase)]


def called(func: OpOverload, args: Any, kwargs: Any) -> Any:
    """Call an operator: tell the innermost that is to be told, or compute it."""
    stack = modes.dispatch
    if not stack:
        if asking.CLASSES is not None and not _state.untold:
            return asking.CLASSES.mode.__torch_dispatch__(func, (), args, kwargs)
        return computed(func)(*args, **kwargs)
    with _told(stack[:-1]):
        return stack[-1].__torch_dispatch__(func, (), args, kwargs)


def dispatch(op: Op, args: Any, attrs: Any, out: Any, whole: bool = False) -> Any:
    """Tell of an op; return what that gives, of a `whole` call once recorded. None without dense tensors."""
    tensors = _tensors(args)
    if not tensors or not all([t._device.level is None or t._device.level.transforms for t in tensors]):
        return None
    recording, casting = modes.grad, modes.autocast
    set_recording(False)
    modes.autocast = None  # it has cast the operands
    try:
        made = _operator(op, args, attrs)
    finally:
        modes.autocast = casting
        set_recording(recording)
    if op.view and recording and isinstance(made, TensorBase):
        made._note = getattr(args[0], "_note", "")  # which is not that nothing was recorded here
    if not whole or (out is None and not (recording and any([t._rg for t in tensors]))):
        return made
    with _told():
        return call.slow(op, args, attrs, out, made)


vars(call)["DISPATCH"] = dispatch

# ---- which operator an op is ----

_PLACES = (mortice, mortice.nn.functional, Tensor)
# Views and ops with attributes that their public function takes in this order, by default the op's own.
_ORDER = dict.fromkeys(
    "all any argmax argmin argsort cat cumprod cumsum diagonal embedding expand glu leaky_relu amax amin max_dim mean "
    "min_dim prod sort softplus stack sum tril triu".split(), ""
) | {"gather": "021", "scatter_add": "0312", "topk": "0213"}  # fmt: skip
_NAMED = {"floordiv": "floor_divide", "max_dim": "max", "min_dim": "min", "sum_all": "sum"}
# Overloads: of a tensor as the second operand, and of a number; after "default", of some arguments.
_OVERLOADS = {
    name: row.split()[1:]
    for row in (
        "add,sub,mul,div Tensor Tensor", "pow Tensor_Tensor Tensor_Scalar", "sum default dim_IntList", "prod default dim_int",
        "eq,ne,lt,le,gt,ge,remainder,fmod,bitwise_and,bitwise_or,bitwise_xor,fill,masked_fill,lerp Tensor Scalar",
        "mean,max,min,all,any default dim", "where self self", "empty memory_format memory_format", "split Tensor Tensor",
        "unbind int int",
    )
    for name in row.split()[0].split(",")
}  # fmt: skip


def _overload(name: str, args: Any) -> OpOverload:
    plain = name.removesuffix("_")
    found, other = _OVERLOADS.get(plain, ("default", "default"))
    if found == "default":
        found = other if len(args) > 1 else found
    elif found != other and not isinstance(args[0], TensorBase):
        found = "Scalar"
    elif len(args) < 2 or not isinstance(args[-1 if plain in ("masked_fill", "lerp") else 1], TensorBase):
        found = other
    return getattr(getattr(aten, name), found)  # type: ignore[no-any-return]


def _operator(op: Op, args: Any, attrs: Any) -> Any:
    """Call the operator, or operators, that an op is."""
    name = _NAMED.get(op.name, op.name)
    made = RULES[name](*args, **attrs) if name in RULES else NotImplemented
    if made is not NotImplemented:
        return made
    listed = op.name in _ORDER or not (op.view or op.attrs or len(op.inputs) > 3)
    if not listed or not any(hasattr(place, name) for place in _PLACES):
        return getattr(own, op.name).default(*args, **attrs)
    values = [*([args] if op.variadic else args), *[attrs[n] for n in op.attrs]]
    values = [[*v] if type(v) is tuple else v for v in ([values[int(i)] for i in _ORDER.get(name, "")] or values)]
    flag = bool(op.attrs) and op.attrs[-1] != "largest"  # which is True where it is not given
    while values[-1] is None or (values[-1] is False and flag):
        values.pop()
    if name in ("prod", "any", "all") and len(values) > 1 and type(values[1]) is list and len(values[1]) == 1:
        values[1] = values[1][0]
    return _overload(name, values)(*values)


def computed(func: Any) -> Callable[..., Any]:
    """Return what computes an operator."""
    name = func.__name__.partition(".")[0]
    found = COMPUTED.get(name) or (OPS[name].fn if func.namespace == "mortice" else None)
    for place in _PLACES:
        found = found or getattr(place, name, None)
    space, _, rest = name.partition("_")
    if found is None and space in ("fft", "linalg", "special"):
        found = getattr(getattr(mortice, space), rest, None)
    if found is None:
        raise NotImplementedError(f"ops.aten: expected a function's or a method's name; got {name!r}, which has none here.")
    return found


def _number_first(op: str, x: Any, y: Any) -> Any:
    if isinstance(x, TensorBase):
        return NotImplemented
    if op == "sub":
        return aten.rsub.Scalar(y, x)
    return getattr(aten, op).Tensor(y, x)


def _matmul(x: Any, y: Any) -> Any:
    dims = x.ndim, y.ndim
    if 0 in (*x.shape, *y.shape) or (1 in dims and dims not in ((1, 1), (2, 1))):
        return NotImplemented
    if max(dims) < 3:
        return (aten.dot if dims == (1, 1) else aten.mm if y.ndim == 2 else aten.mv).default(x, y)
    if dims == (3, 3) and x.shape[0] == y.shape[0]:
        return aten.bmm.default(x, y)
    if y.ndim == 2:
        return aten.mm.default(x.flatten(0, -2), y).unflatten(0, x.shape[:-1])
    lead = mortice.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    return aten.bmm.default(*[t.expand(*lead, *t.shape[-2:]).flatten(0, -3) for t in (x, y)]).unflatten(0, lead)


def _linear(x: Any, w: Any, b: Any = None) -> Any:
    if x.ndim < 2 or 0 in (*x.shape, *w.shape):
        return NotImplemented
    flat = x if x.ndim == 2 else x.flatten(0, -2)
    made = aten.mm.default(flat, w.t()) if b is None else aten.addmm.default(b, flat, w.t())
    return made if x.ndim == 2 else made.unflatten(0, x.shape[:-1])


def _addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    if beta == alpha == 1 and input.shape == mat2.shape[1:]:
        return mortice.nn.functional.linear(mat1, mat2.t(), input)  # as the layer itself is computed
    return mortice.addmm(input, mat1, mat2, beta=beta, alpha=alpha)


def _getitem(x: Any, key: Any, shape: Any) -> Any:
    full, dim = slice(None), 0
    if all([type(k) is slice and k == full for k in key]) or any([type(k) is slice and (k.step or 1) != 1 for k in key]):
        return NotImplemented
    for k in key:
        if k is None:
            x = aten.unsqueeze.default(x, dim)
        elif isinstance(k, int):
            x, dim = aten.select.int(x, dim, k), dim - 1
        elif k != full:
            x = aten.slice.Tensor(x, dim, k.start or 0, 2**63 - 1 if k.stop is None or k.stop >= x.shape[dim] else k.stop)
        dim += 1
    return x


def _view(x: Any, shape: Any, axis: Any = None) -> Any:
    if isinstance(axis, int):
        return aten.unsqueeze.default(x, axis)
    return aten.squeeze.dim(x, *axis) if axis and len(axis) == 1 else aten.view.default(x, [*shape])


def _permute(x: Any, axes: Any) -> Any:
    moved = [d for d, a in enumerate(axes) if a != d]
    if len(moved) == 2:
        return aten.t.default(x) if len(axes) == 2 else aten.transpose.int(x, *moved)
    return aten.permute.default(x, [*axes])


# By the op's name, what calls operators on its operands.
RULES: dict[str, Callable[..., Any]] = {
    **{name: partial(_number_first, name) for name in ("add", "sub", "mul")},
    "matmul": _matmul, "linear": _linear, "getitem": _getitem, "view": _view, "permute": _permute,
    "linear_weight_grad": lambda g, x: aten.mm.default(g.reshape(-1, g.shape[-1]).t(), x.reshape(-1, x.shape[-1])),
    "cast": lambda x, dtype, source: aten._to_copy.default(x, dtype=dtype),
    "contiguous": lambda x: aten.clone.default(x, memory_format=contiguous_format),
    "reinterpret": lambda x, dtype, source: aten.view.dtype(x, dtype),
    "conv": lambda x, w, b=None, *, stride, padding, dilation, groups: aten.convolution.default(
        x, w, b, [*stride], [*padding], [*dilation], False, [0] * len(stride), groups),
    "layer_norm": lambda x, weight, bias, ndim, eps: aten.native_layer_norm.default(
        x, [*x.shape[len(x.shape) - ndim :]], weight, bias, eps),
    "reshape": lambda x, shape: aten._unsafe_view.default(aten.clone.default(x, memory_format=contiguous_format), [*shape]),
    **{name: lambda x, axis, name=name: getattr(aten, f"_{name}").default(x, axis, False) for name in ("softmax", "log_softmax")},
    "take": lambda x, indices, axis: aten.index.Tensor(x, [None] * axis + [indices]),
}  # fmt: skip
# What computes operators that no public function has the name and arguments of.
COMPUTED: dict[str, Callable[..., Any]] = {
    "addmm": _addmm, "slice": copies._slice, "setitem_": operator.setitem, "_local_scalar_dense": lambda x: x.item(),
    **{f"_{name}": lambda x, dim, half, name=name: OPS[name].fn(x, axis=dim % (x.ndim or 1)) for name in ("softmax", "log_softmax")},
    "_to_copy": lambda x, dtype=None, device=None, **rest: x.to(device=device or x.device, dtype=dtype or x.dtype, copy=True),
    "_unsafe_view": lambda x, size: OPS["reshape"].fn(x, shape=mortice.Size(size)),
    "index": lambda x, indices: x[tuple([slice(None) if i is None else i for i in indices])],
    "native_layer_norm": lambda x, shape, weight, bias, eps: OPS["layer_norm"].fn(x, weight, bias, ndim=len(shape), eps=eps),
    "alias": lambda x: x.view_as(x), "lift_fresh": lambda x: x, "unfold": Tensor.unfold, "im2col": mortice.nn.functional.unfold,
    "_adaptive_avg_pool2d": mortice.nn.functional.adaptive_avg_pool2d, "threshold_backward": lambda g, x, threshold: g * (x > threshold),
    "sigmoid_backward": lambda g, out: g * out * (1 - out), "tanh_backward": lambda g, out: g * (1 - out * out),
}  # fmt: skip

# ---- what is no op: public functions ----

_SIZED = frozenset("zeros ones empty rand randn new_zeros new_ones new_empty".split())
_WHOLE = _SIZED | frozenset(
    "full arange eye linspace randint randperm normal bernoulli multinomial zeros_like ones_like empty_like full_like "
    "rand_like randn_like detach equal".split()
)
_RECORDED = frozenset("masked_fill index_select addmm baddbmm split chunk unbind roll".split())  # for classes, op by op
_WHOLE |= _RECORDED
_QUIET = frozenset("requires_grad_ share_memory_ apply_ map_ detach_ rename_".split())


class _Functions:
    """The mode that public functions ask."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, kwargs = getattr(func, "__name__", ""), dict(kwargs or {})
        with _told(modes.dispatch):
            for value in _overloaded((*args, *kwargs.values())):
                made = value.__torch_function__(func, types, args, kwargs)
                if made is not NotImplemented:
                    return made
            of_tensor = bool(args) and isinstance(args[0], TensorBase)
            held = name in _RECORDED and asking.CLASSES is not None and asking.CLASSES.records(args)
            writes = name[-1:] == "_" != name[:1] and name not in _QUIET and of_tensor
            if ((name in _WHOLE and not held) or writes) and kwargs.get("out") is None:
                recorded = kwargs.pop("requires_grad", False)
                if name in _SIZED and args and type(args[-1]) is int:
                    args = (*args[: int(of_tensor)], [*args[int(of_tensor) :]])
                made = _overload(name, args)(*args, **kwargs)
                return args[0] if writes else made.requires_grad_() if recorded else made
            if name in ("item", "__bool__", "__float__", "__int__") and of_tensor and args[0].numel() == 1:
                number = aten._local_scalar_dense.default(args[0])
                return number if name == "item" else getattr(number, name)()
            if name == "__getitem__" and isinstance(args[1], TensorBase):
                return aten.index.Tensor(args[0], [args[1]])
            return own.setitem_.default(*args) if name == "__setitem__" else redispatch_function(func, types, args, kwargs)


_functions = _Functions()
