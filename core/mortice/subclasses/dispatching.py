"""Dispatch: modes that are told of every operator below autograd, in PyTorch's names.

`call` hands each op over; what is no op, as making a tensor, is met where its public function is called.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache, partial
from inspect import Parameter, signature
from typing import Any

import mortice
import mortice.overrides
from mortice import Tensor, asking, call
from mortice._ops import OpOverload, aten, own
from mortice.asking import _overloaded, _state, let_methods_ask, redispatch_function
from mortice.layout import contiguous_format
from mortice.lazy import behind
from mortice.modes import modes, set_recording, settle
from mortice.nn._reduction import NAMES
from mortice.op import OPS, Op
from mortice.ops import copies
from mortice.ops.index import as_key
from mortice.shape import prod
from mortice.tensor import TensorBase


def _set(stack: tuple[Any, ...]) -> None:
    """Have those told from now on, innermost last."""
    modes.dispatch = stack
    settle()
    _state.modes = ((_functions,) if stack else ()) + tuple([m for m in _state.modes if m is not _functions])


class _told:
    """A block in which only these are told."""

    def __init__(self, stack: tuple[Any, ...] = ()) -> None:
        self.stack = stack

    def __enter__(self) -> None:
        self.before = modes.dispatch
        try:
            _set(self.stack)
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *exc: object) -> None:
        modes.dispatch = self.before  # at once; see `settle`
        _set(self.before)


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
        modes.dispatch = (*modes.dispatch, self)
        try:
            _set(modes.dispatch)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        modes.dispatch = modes.dispatch[:-1]
        _set(modes.dispatch)
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
    try:
        set_recording(False)
        modes.autocast = None  # it has cast the operands
        made = _operator(op, args, attrs)
    finally:
        modes.autocast, modes.grad, modes.quiet = casting, recording, False
        settle()
    if op.view and recording and isinstance(made, TensorBase):
        made._note = getattr(args[0], "_note", "")  # which is not that nothing was recorded here
    if not whole or (out is None and not (recording and any([t._rg for t in tensors]))):
        return made
    with _told():
        return call.slow(op, args, attrs, out, made)


vars(call)["DISPATCH"] = dispatch

# ---- which operator an op is ----

_PLACES = (mortice, mortice.nn.functional, Tensor)
_KEYWORD, _NO_DEFAULT = Parameter.KEYWORD_ONLY, Parameter.empty
_IN_PLACE = Parameter.POSITIONAL_OR_KEYWORD, Parameter.POSITIONAL_ONLY
# What parameters of public functions are called that ops have other names for.
_PUBLIC = {
    "axis": "dim axes dims dimension", "axes": "dims", "keepdims": "keepdim", "axis1": "dim1", "axis2": "dim2", "shape": "sizes size",
    "steps": "stride", "offset": "storage_offset", "reps": "sizes", "count": "k", "nth": "k", "slope": "negative_slope",
    "limit": "threshold", "low": "min_val", "high": "max_val", "lo": "min", "hi": "max", "indices": "index", "values": "src source",
    "a": "tensor1", "b": "tensor2",
}  # fmt: skip
_NAMED = {"floordiv": "floor_divide", "max_dim": "max", "min_dim": "min", "sum_all": "sum"}
# Overloads: of a tensor as the second operand, and of a number; after "default", of some arguments.
_OVERLOADS = {
    name: row.split()[1:]
    for row in (
        "add,sub,mul,div Tensor Tensor", "pow Tensor_Tensor Tensor_Scalar", "sum default dim_IntList", "prod default dim_int",
        "eq,ne,lt,le,gt,ge,remainder,fmod,bitwise_and,bitwise_or,bitwise_xor,fill,masked_fill,lerp Tensor Scalar",
        "var,std correction correction",
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
    if plain != name:
        found = found.removeprefix("Tensor_")
    return getattr(getattr(aten, name), found)  # type: ignore[no-any-return]


@cache
def _taken(op: Op, name: str) -> Any:
    """Return which of an op's operands and attributes its public function takes, in order and by name, with their defaults."""
    names = [*op.inputs, *op.attrs]
    for place in _PLACES:
        public = behind(getattr(place, name, None))
        if not callable(public):
            continue
        free = dict(signature(public).parameters)
        found: dict[str, int] = {}
        for i, n in enumerate(names):
            found |= {p: i for p in [p for p in (*_PUBLIC.get(n, "").split(), n) if p in free and p not in found][:1]}
        for i in [i for i in range(len(op.inputs)) if i not in found.values()]:
            if i == 0 or names[i] in ("x", "y"):  # no more than the first and the second
                found |= {p: i for p in [p for p in free if p not in found][:1]}
        needed = [p for p, how in free.items() if how.default is _NO_DEFAULT and how.kind in _IN_PLACE]
        if len(found) == len(names) and found.keys() >= {*needed}:
            ends = next((i for i, p in enumerate(free) if p not in found or free[p].kind is _KEYWORD), len(free))
            ordered = [*free][:ends]
            rest = [p for p in free if p in found and p not in ordered]
            return [(found[p], free[p].default) for p in ordered], [(p, found[p], free[p].default) for p in rest]
    return None


def _operator(op: Op, args: Any, attrs: Any) -> Any:
    """Call the operator, or operators, that an op is."""
    name = _NAMED.get(op.name, op.name)
    made = RULES[name](*args, **attrs) if name in RULES else NotImplemented
    if made is not NotImplemented:
        return made
    taken = _taken(op, name)
    if taken is None:
        return getattr(own, op.name).default(*args, **attrs)
    given = [*([args] if op.variadic else args), *[attrs[n] for n in op.attrs]]
    given = [[*v] if type(v) is tuple else v for v in given] + [None] * len(op.inputs)
    # PyTorch has operators for the reductions by number; so have public functions that stand for operators.
    numbered = {i for *_, i, default in (*taken[0], *taken[1]) if type(default) is int and type(given[i]) is str}
    given = [NAMES.index(v) if i in numbered else v for i, v in enumerate(given)]
    last = getattr(args[0], "ndim", 0) - 1  # a dim that is counted from the end where it is left out
    left_out = lambda v, default: default is not _NO_DEFAULT and (  # noqa: E731
        v is None or (not isinstance(v, TensorBase) and (v == default or default == -1 and type(v) is int and v == last)))
    values, ends = [given[i] for i, _ in taken[0]], taken[0][:]
    while left_out(values[-1], ends.pop()[1]):
        values.pop()
    rest = {p: given[i] for p, i, default in taken[1] if not left_out(given[i], default)}
    if name in ("prod", "any", "all") and len(values) > 1 and type(values[1]) is list and len(values[1]) == 1:
        values[1] = values[1][0]
    return _overload(name, values)(*values, **rest)


def computed(func: Any) -> Callable[..., Any]:
    """Return what computes an operator."""
    name = func.__name__.partition(".")[0]
    found = OPS[name].fn if func.namespace == "mortice" and name in OPS else COMPUTED.get(name)
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
        return aten._unsafe_view.default(aten.mm.default(x.flatten(0, -2), y), [*x.shape[:-1], y.shape[1]])
    lead = mortice.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    made = aten.bmm.default(*[t.expand(*lead, *t.shape[-2:]).flatten(0, -3) for t in (x, y)])
    return aten._unsafe_view.default(made, [*lead, *made.shape[1:]])


def _linear(x: Any, w: Any, b: Any = None) -> Any:
    if x.ndim < 2 or 0 in (*x.shape, *w.shape):
        return NotImplemented
    flat = x if x.ndim == 2 else x.flatten(0, -2)
    made = aten.mm.default(flat, w.t()) if b is None else aten.addmm.default(b, flat, w.t())
    return made if x.ndim == 2 else (aten._unsafe_view if b is None else aten.view).default(made, [*x.shape[:-1], w.shape[0]])


def _attention(q: Any, k: Any, v: Any, mask: Any = None, keep: Any = None, *, causal: bool, scale: Any, dropout_p: float) -> Any:
    if keep is not None or dropout_p or q.ndim != 4:
        return NotImplemented
    named = {name: value for name, value in (("attn_mask", mask), ("scale", scale)) if value is not None}
    return aten._scaled_dot_product_flash_attention_for_cpu.default(q, k, v, *[0.0, True] * causal, **named)


def _addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    if beta == alpha == 1 and input.shape == mat2.shape[1:]:
        return mortice.nn.functional.linear(mat1, mat2.t(), input)  # as the layer itself is computed
    return mortice.addmm(input, mat1, mat2, beta=beta, alpha=alpha)


def _getitem(x: Any, key: Any, shape: Any) -> Any:
    full, dim = slice(None), 0
    if any([type(k) is slice and (k.step or 1) < 0 for k in key]):
        return NotImplemented
    if all([type(k) is slice and k == full for k in key]):
        return aten.alias.default(x)
    for k in key:
        if k is None:
            x = aten.unsqueeze.default(x, dim)
        elif isinstance(k, int):
            x, dim = aten.select.int(x, dim, k), dim - 1
        elif k != full:
            stop = 2**63 - 1 if k.stop is None or k.stop >= x.shape[dim] else k.stop
            x = aten.slice.Tensor(x, dim, k.start or 0, stop, *[k.step] * ((k.step or 1) != 1))
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


def _pool(name: str, x: Any, kernel: Any, stride: Any, *rest: Any) -> Any:
    """Tell of a pool over windows; PyTorch has those of one dim as of two."""
    dims, given = len(kernel), [[*v] if type(v) is tuple else v for v in (kernel, stride, *rest)]
    if dims == 1:
        given = [[i, *v] if type(v) is list else v for v, i in zip(given, (1, 1, 0, 1 if name[0] == "m" else None))] + given[4:]
    left_out = [None, given[0], [0] * max(dims, 2), *([[1] * max(dims, 2), False] if name[0] == "m" else [False, True, None])]
    while given[-1] == left_out[len(given) - 1]:
        given.pop()
    made = getattr(aten, name.format(max(dims, 2))).default(x.unsqueeze(-2) if dims == 1 else x, *given)
    if dims > 1:
        return made
    return tuple([part.squeeze(-2) for part in made]) if isinstance(made, tuple) else made.squeeze(-2)


def _adaptive(name: str, x: Any, size: Any) -> Any:
    if len(size) == 1:
        made = getattr(aten, name.format(2)).default(x.unsqueeze(-2), [1, *size])
        return tuple([part.squeeze(-2) for part in made]) if isinstance(made, tuple) else made.squeeze(-2)
    return getattr(aten, name.format(len(size))).default(x, [*size])


def _pad(x: Any, widths: Any, mode: str, value: Any) -> Any:
    used = next((i for i, pair in enumerate(widths) if any(pair)), len(widths) - 1)
    if mode == "constant":
        return aten.constant_pad_nd.default(x, [n for pair in widths[used:][::-1] for n in pair], value)
    dims = max(len(widths) - used, len(widths) - 2)
    if mode == "circular" or not 0 < dims < 4:
        return NotImplemented
    name = {"reflect": "reflection", "replicate": "replication"}[mode]
    return getattr(aten, f"{name}_pad{dims}d").default(x, [n for pair in widths[-dims:][::-1] for n in pair])


def _median(x: Any, ignore_nan: bool, *dim: Any) -> Any:
    packet = aten.nanmedian if ignore_nan else aten.median
    return packet.dim(x, dim[0], *dim[1:] * dim[1]) if dim else packet.default(x)


def _vector_norm(x: Any, p: Any, axis: Any, keepdims: bool) -> Any:
    whole = axis is None or len(axis) == x.ndim
    given = [p, None if whole else [*axis], keepdims]
    while given and given[-1] == (2, None, False)[len(given) - 1]:
        given.pop()
    return aten.linalg_vector_norm.default(x, *given)


def _transposed(y: Any, w: Any, b: Any = None, *, x_shape: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    windows = zip(x_shape[2:], y.shape[2:], w.shape[2:], stride, padding, dilation)
    more = [n - (m - 1) * s + 2 * p - d * (k - 1) - 1 for n, m, k, s, p, d in windows]
    return aten.convolution.default(y, w, b, [*stride], [*padding], [*dilation], True, more, groups)


_SAMPLED, _OUTSIDE = ("linear", "nearest", "cubic"), ("zeros", "border", "reflection")  # PyTorch's numbers of them


def _padded(mode: str) -> Any:
    return lambda x, pad: mortice.nn.functional.pad(x, pad, mode=mode)


# By the op's name, what calls operators on its operands.
RULES: dict[str, Callable[..., Any]] = {
    **{name: partial(_number_first, name) for name in ("add", "sub", "mul")},
    "rdiv": lambda x, y: aten.mul.Tensor(aten.reciprocal.default(y), x),
    "addcmul": lambda x, a, b, value: NotImplemented if isinstance(b, TensorBase) else aten.add.Tensor(x, a, alpha=b * value),
    "matmul": _matmul, "linear": _linear, "attention": _attention, "getitem": _getitem, "view": _view, "permute": _permute,
    "linear_weight_grad": lambda g, x: aten.mm.default(g.reshape(-1, g.shape[-1]).t(), x.reshape(-1, x.shape[-1])),
    "cast": lambda x, dtype, source: aten._to_copy.default(x, dtype=dtype),
    "contiguous": lambda x: aten.clone.default(x, memory_format=contiguous_format),
    "round": lambda x, decimals=0: aten.round.decimals(x, decimals=decimals) if decimals else NotImplemented,
    "elu": lambda x, alpha, scale, input_scale: aten.elu.default(
        x, *[alpha, scale, input_scale][: 3 if input_scale != 1 else 2 if scale != 1 else alpha != 1]),
    "nll_loss": lambda logp, target, weight, reduction, ignore_index: aten.nll_loss_forward.default(
        logp, target, weight, NAMES.index(reduction), ignore_index),
    "reinterpret": lambda x, dtype, source: aten.view.dtype(x, dtype),
    "conv": lambda x, w, b=None, *, stride, padding, dilation, groups: aten.convolution.default(
        x, w, b, [*stride], [*padding], [*dilation], False, [0] * len(stride), groups),
    "layer_norm": lambda x, weight, bias, ndim, eps: aten.native_layer_norm.default(
        x, [*x.shape[len(x.shape) - ndim :]], weight, bias, eps),
    "reshape": lambda x, shape: aten._unsafe_view.default(aten.clone.default(x, memory_format=contiguous_format), [*shape]),
    **{name: lambda x, axis, name=name: getattr(aten, f"_{name}").default(x, axis, False) for name in ("softmax", "log_softmax")},
    "take": lambda x, indices, axis: aten.index.Tensor(x, [None] * axis + [indices]),
    "group_norm": lambda x, weight, bias, groups, eps: aten.native_group_norm.default(
        x, weight, bias, *x.shape[:2], prod(x.shape[2:]), groups, eps),
    "batch_norm_eval": lambda x, mean, var, weight=None, bias=None, *, eps: aten.native_batch_norm.default(
        x, weight, bias, mean, var, False, 0.1, eps)[0],
    "max_pool": lambda x, **how: _pool("max_pool{}d_with_indices", x, *how.values()),
    "max_pool_values": lambda x, **how: _pool("max_pool{}d_with_indices", x, *how.values())[0],
    "avg_pool": lambda x, **how: _pool("avg_pool{}d", x, *how.values()),
    "adaptive_avg_pool": lambda x, output_size: _adaptive("_adaptive_avg_pool{}d", x, output_size),
    "adaptive_max_pool": lambda x, output_size: _adaptive("adaptive_max_pool{}d", x, output_size),
    "pad": _pad,
    "scatter_write": lambda x, indices, values, axis: aten.scatter.src(x, axis, indices, values),
    "argsort": lambda x, axis, descending: aten.sort.default(
        x, *[-1 if axis == x.ndim - 1 else axis, descending][: 2 if descending else axis != x.ndim - 1])[1],
    "linalg_vector_norm": _vector_norm, "norm": _vector_norm, "median": _median, "conv_input_grad": _transposed,
    "median_dim": lambda x, axis, keepdims, ignore_nan: _median(x, ignore_nan, axis, keepdims),
    "square": lambda x: aten.pow.Tensor_Scalar(x, 2), "prelu_kernel": lambda x, weight: aten._prelu_kernel.default(x, weight),
    "inv_ex": lambda x: aten.linalg_inv_ex.default(x), "svd": lambda x, full_matrices: aten._linalg_svd.default(x, full_matrices),
    "eigh": lambda x, upper: aten._linalg_eigh.default(x, *["U"] * upper),
    "cholesky_ex": lambda x, upper: aten.linalg_cholesky_ex.default(x, **{"upper": True} if upper else {}),
    "qr": lambda x, mode: aten.linalg_qr.default(x, *[mode] * (mode != "reduced")),
    **{f"div_{mode}": lambda x, y, mode=mode: aten.div.Tensor_mode(x, y, rounding_mode=mode) for mode in ("floor", "trunc")},
    "searchsorted": lambda x, values, side: aten.searchsorted.Tensor(x, values, **{"right": True} if side == "right" else {}),
    "im2col": lambda x, kernel, stride, padding, dilation: aten.im2col.default(
        x, [*kernel], [*dilation], [*padding], [*stride]),
    "col2im": lambda x, output_size, kernel, stride, padding, dilation: aten.col2im.default(
        x, [*output_size], [*kernel], [*dilation], [*padding], [*stride]),
    "grid_sample": lambda x, grid, mode, padding, align_corners: getattr(aten, f"grid_sampler_{x.ndim - 2}d").default(
        x, grid, _SAMPLED.index(mode), _OUTSIDE.index(padding), align_corners),
    "count_nonzero": lambda x, axis, keepdims: NotImplemented if keepdims else aten.count_nonzero.default(x) if axis is None else
        aten.count_nonzero.dim_IntList(x, [*axis]),
    "row_distance": lambda x, y, p: aten._cdist_forward.default(x, y, p, None),
}  # fmt: skip
# What computes operators that no public function has the name and arguments of.
COMPUTED: dict[str, Callable[..., Any]] = {
    "addmm": _addmm, "slice": copies._slice, "setitem_": operator.setitem, "_local_scalar_dense": lambda x: x.item(),
    **{f"_{name}": lambda x, dim, half, name=name: OPS[name].fn(x, axis=dim % (x.ndim or 1)) for name in ("softmax", "log_softmax")},
    "_to_copy": lambda x, dtype=None, device=None, **rest: x.to(device=device or x.device, dtype=dtype or x.dtype, copy=True),
    "_unsafe_view": Tensor.view,
    "_scaled_dot_product_flash_attention_for_cpu": lambda q, k, v, dropout=0.0, causal=False, attn_mask=None, scale=None: OPS[
        "attention"].fn(q, k, v, attn_mask, None, causal=causal, scale=scale, dropout_p=dropout),
    "index": lambda x, indices: x[tuple([slice(None) if i is None else i for i in indices])],
    "elu": lambda x, alpha=1, scale=1, input_scale=1: OPS["elu"].fn(x, alpha=alpha, scale=scale, input_scale=input_scale),
    "nll_loss_forward": lambda x, target, weight, reduction, ignore_index: OPS["nll_loss"].fn(
        x, target, weight, reduction=NAMES[reduction], ignore_index=ignore_index),
    "alias": lambda x: x.view_as(x), "lift_fresh": lambda x: x, "unfold": Tensor.unfold, "im2col": mortice.nn.functional.unfold,
    "threshold_backward": lambda g, x, threshold: g * (x > threshold),
    **{f"max_pool{n}d_with_indices": getattr(mortice.nn.functional, f"max_pool{n}d_with_indices") for n in (2, 3)},
    **{f"_adaptive_avg_pool{n}d": getattr(mortice.nn.functional, f"adaptive_avg_pool{n}d") for n in (2, 3)},
    **{f"adaptive_max_pool{n}d": partial(getattr(mortice.nn.functional, f"adaptive_max_pool{n}d"), return_indices=True) for n in (2, 3)},
    "constant_pad_nd": lambda x, pad, value=0: mortice.nn.functional.pad(x, pad, value=value),
    **{f"reflection_pad{n}d": _padded("reflect") for n in (1, 2, 3)}, **{f"replication_pad{n}d": _padded("replicate") for n in (1, 2, 3)},
    "_prelu_kernel": lambda x, weight: OPS["prelu_kernel"].fn(x, weight),
    "linalg_inv_ex": mortice.linalg.inv_ex, "_linalg_svd": lambda x, full=False, *_: OPS["svd"].fn(x, full_matrices=full),
    "_linalg_eigh": lambda x, side="L", *_: OPS["eigh"].fn(x, upper=side == "U"), "col2im": mortice.nn.functional.fold,
    "_cdist_forward": lambda x, y, p, mode: mortice.cdist(x, y, p),
    "sigmoid_backward": lambda g, out: g * out * (1 - out), "tanh_backward": lambda g, out: g * (1 - out * out),
}  # fmt: skip

# ---- what is no op: public functions ----

_SIZED = frozenset("zeros ones empty rand randn new_zeros new_ones new_empty".split())
_WHOLE = _SIZED | frozenset(
    "bincount isin histc full new_full nonzero arange eye linspace randint randperm normal bernoulli multinomial zeros_like ones_like "
    "empty_like full_like rand_like randn_like randint_like poisson new_empty_strided detach equal".split()
)
_RECORDED = frozenset("masked_fill index_select addmm baddbmm roll repeat_interleave masked_select".split())  # for classes, op by op
_WHOLE |= _RECORDED
_ROWS = frozenset("unbind split chunk split_with_sizes".split())
_QUIET = frozenset("requires_grad_ share_memory_ apply_ map_ detach_ rename_".split())
_OUT = dict.fromkeys(("default", "Tensor", "dim"), "out")  # of others the name, with an ending


def _rows(x: Any, name: str, *given: Any, dim: Any = 0, axis: Any = None, **size: Any) -> Any:
    """Tell of what cuts a tensor into views; each takes its place in the graph as the slice that it is."""
    values = [*given, *size.values(), dim if axis is None else axis]
    parts, axis = (1, values[0]) if name == "unbind" else values[:2]
    end, n = [axis] * (axis != 0), x.shape[axis]
    if name == "unbind":
        func, first, kind = aten.unbind.int, [], "Unbind"
    elif isinstance(parts, (list, tuple)):
        func, first, kind = aten.split_with_sizes.default, [[*parts]], "SplitWithSizes"
    elif type(parts) is not int or parts < 1 or not n:
        return NotImplemented
    else:
        func, first, kind = aten.split.Tensor, [-(-n // parts) if name == "chunk" else parts], "Split"
    recording = modes.grad
    records = recording and x._rg and (x._device.level is None or (asking.CLASSES is not None and asking.CLASSES.records((x,))))
    try:
        set_recording(recording and not records)
        made = func(x, *first, *end)
    finally:
        modes.grad, modes.quiet = recording, False
        settle()
    if not records:
        return made
    start, placed = 0, []
    for row in made:
        part = start if name == "unbind" else slice(start, start + row.shape[axis])
        key = (*(slice(None),) * (axis % x.ndim), part)
        placed.append(place(OPS["getitem"], (x,), {"key": key, "shape": row.shape}, row))
        placed[-1]._note = f"{kind}Backward0"
        start += 1 if name == "unbind" else row.shape[axis]
    return tuple(placed)


def place(op: Op, args: Any, attrs: Any, made: Any) -> Any:
    """Give what a mode or a class has made its place in the graph, as what an op gives."""
    with _told():
        return call.slow(op, args, attrs, None, made)


def _followed(made: Any, fn: Any, args: Any, kwargs: Any) -> Any:
    """Give what a mode has made of its own its place in the graph, as what a function gives that is several ops."""
    tensors = _tensors((*args, *kwargs.values()))
    lost = type(made) is Tensor and not made._rg and made._dtype.is_floating_point
    if not (lost and modes.grad and any([t._rg and t._device.level is None for t in tensors])):
        return made
    with _told():
        graph = fn(*args, **kwargs)
    if graph._rg and graph.shape == made.shape and graph._dtype is made._dtype:
        graph._buffer = made._buffer
        return graph
    return made


def _split_key(x: Any, key: Any) -> Any:
    """Return the view that the basic parts of a key show, and the tensors that it is then read or written at."""
    parts = as_key(key)
    if any([type(k) is bool for k in parts]):
        return None
    basic = [k is None or k is Ellipsis or type(k) in (int, slice) for k in parts]
    parts = [k if plain or isinstance(k, TensorBase) else mortice.as_tensor(k, device=x.device) for k, plain in zip(parts, basic)]
    dims = [int(k is not None and k is not Ellipsis) if plain else _indexed(k) for k, plain in zip(parts, basic)]
    full, left = slice(None), x.ndim - sum(dims)
    shown: list[Any] = []
    flat: list[Any] = []
    for k, plain, n in zip(parts, basic, dims):
        shown += [full] * left if k is Ellipsis else [k] if plain else [full] * n
        flat += [None] * left if k is Ellipsis else [] if type(k) is int else [None] if plain else [k]
    if all(basic) or any([type(k) is not slice or k != full for k in shown]):
        x = x[tuple(shown)]
    return x, [] if all(basic) else flat[: len(flat) - next(i for i, k in enumerate(flat[::-1]) if k is not None)]


def _read(x: Any, key: Any) -> Any:
    """Tell of reading at tensors of positions or masks, after what shows a view; NotImplemented for other keys."""
    basic = all([k is None or k is Ellipsis or type(k) in (int, slice) for k in (key if type(key) is tuple else (key,))])
    found = None if basic else _split_key(x, key)
    return NotImplemented if found is None else found[0] if not found[1] else indexed(*found)


def _write(x: Any, key: Any, value: Any, held: bool) -> None:
    """Tell of a write by index, as of one into the view, at positions perhaps."""
    found = _split_key(x, key)
    if found is None:
        if held:
            raise NotImplementedError("setitem: a bool in a key, of a tensor of a class with __torch_dispatch__. Index by a tensor.")
        own.setitem_.default(x, key, value)
        return
    view, indices = found
    number = value if isinstance(value, TensorBase) else mortice.as_tensor(value, dtype=x.dtype, device=x.device)
    if indices:
        args = view, indices, number
        asking.CLASSES.written("index_put_", args, {}) if held else aten.index_put_.default(*args)
    elif number.ndim:
        lead = number.ndim - view.ndim
        view.copy_(number if lead <= 0 else number.reshape(number.shape[lead:]))
    else:
        view.fill_(number)


def _indexed(k: Any) -> int:
    return k.ndim if k.dtype in (mortice.bool, mortice.uint8) else 1


def indexed(x: Any, indices: Any) -> Any:
    """Read at tensors, each of a dim, or a mask of several; None leaves a dim as it is."""
    made = _followed(aten.index.Tensor(x, indices), COMPUTED["index"], (x, indices), {})
    if asking.CLASSES is None or not asking.CLASSES.records((x,)):
        return made

    def back(g: Any) -> Any:
        put = aten.index_put.default(g.new_zeros(x.shape), indices, g, True)
        return (asking.CLASSES.crossed(put, (g,), lambda second: (indexed(second, indices),), "IndexPutBackward0"),)

    return asking.CLASSES.crossed(made, (x,), back, "IndexBackward0")


class _Functions:
    """The mode that public functions ask."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, kwargs = getattr(func, "__name__", ""), dict(kwargs or {})
        name = "nonzero" if name == "argwhere" else name
        with _told(modes.dispatch):
            for value in _overloaded((*args, *kwargs.values())):
                made = value.__torch_function__(func, types, args, kwargs)
                if made is not NotImplemented:
                    return made
            of_tensor, out = bool(args) and isinstance(args[0], TensorBase), kwargs.get("out")
            held = asking.CLASSES is not None and asking.CLASSES.records((*args, *kwargs.values()))
            writes = name[-1:] == "_" != name[:1] and name not in _QUIET and of_tensor
            if (name == "where" and len(args) == 1 and not kwargs) or (name == "nonzero" and kwargs.get("as_tuple")):
                return args[0].nonzero().unbind(1)
            if writes and held:
                return asking.CLASSES.written(name, args, kwargs)
            whole = name in _WHOLE and not (held and name in _RECORDED)
            if name in _SIZED and args and type(args[-1]) is int:
                args = (*args[: int(of_tensor)], [*args[int(of_tensor) :]])
            if isinstance(out, TensorBase) and not held:
                found = _overload(name, args)
                overload = _OUT.get(found._overloadname) or f"{found._overloadname.removeprefix('dim_')}_out"
                getattr(found.overloadpacket, overload)(*args, **kwargs)
                return out
            if (whole or writes) and out is None:
                recorded = kwargs.pop("requires_grad", False)
                made = (told := _overload(name, args))(*args, **kwargs)
                if writes:
                    return args[0]
                return made.requires_grad_() if recorded else _followed(made, computed(told), args, kwargs) if name in _RECORDED else made
            if name in ("item", "__bool__", "__float__", "__int__") and of_tensor and args[0].numel() == 1:
                number = aten._local_scalar_dense.default(args[0])
                return number if name == "item" else getattr(number, name)()
            made = NotImplemented
            if name == "__getitem__":
                made = _read(*args)
            elif name in _ROWS and of_tensor and args[0].ndim:
                made = _rows(args[0], name, *args[1:], **kwargs)
            elif name == "__setitem__":
                return _write(*args, held)
            return redispatch_function(func, types, args, kwargs) if made is NotImplemented else made


_functions = _Functions()
