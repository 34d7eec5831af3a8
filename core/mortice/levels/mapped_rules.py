"""Rules over a batch for kernels and ops that treat axes, leading axes or samples alike: one call below, not many.

Each table below names kernels with a property; `rule_for` finds the rule of an op. What is in none runs by its body.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from mortice.levels import DataDependent
from mortice.levels.mapped import DYNAMIC, Mapped, MappedBackend
from mortice.notice import warn
from mortice.shape import broadcast

__all__ = ["Mapped", "MappedBackend", "rule_for"]

# Operands broadcast, each element of the result comes from those at its place.
ELEMENTWISE = """
    astype copy contiguous negative abs sign exp log sqrt sin cos tanh floor isnan logical_not conj real imag
    add subtract multiply divide floor_divide remainder pow maximum minimum equal less where
    bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift bitwise_invert
    not_equal greater less_equal greater_equal logical_and logical_or logical_xor isfinite isinf signbit positive sgn
    copysign floordiv ceil trunc round square reciprocal rsqrt hypot fmod clip nan_to_num lerp complex angle expm1 exp2 log1p log2
    log10 logaddexp sigmoid softplus tan asin acos atan atan2 sinh cosh asinh acosh atanh zeta logaddexp2 nextafter
    erf erfc erfcx erfinv lgamma digamma relu silu gelu leaky_relu hardsigmoid hardswish elu logsigmoid mish
    constant
"""
# Reduce over `axis`: None (everything), an int or several.
REDUCTIONS = "sum prod max min any all mean var std logsumexp count_nonzero vector_norm"
# Work along one axis; all buffers have the same axes.
ALONG = """
    cumulative_sum cumulative_prod cumulative_max cumulative_min logcumsumexp argsort sort kthvalue diff softmax
    softmax_grad log_softmax log_softmax_grad take_along_axis gather scatter_add scatter_write scatter_combine median
    sort_pairs topk
"""
# Leave leading axes alone; operands have one shape, or no business with each other's.
LEADING = """
    cholesky_ex lu_ex inv_ex det slogdet qr eigh svd eig tril triu reinterpret max_pool
    max_pool_values avg_pool adaptive_avg_pool adaptive_max_pool matrix_transpose view_as_real view_as_complex relu_grad
    sigmoid_grad tanh_grad silu_grad gelu_grad leaky_relu_grad hardtanh_grad hardsigmoid_grad hardswish_grad elu_grad
    logsigmoid_grad softplus_grad mish_grad dropout
"""
# The same of several operands, whose leading axes broadcast: how many axes of each are its own.
BROADCAST_LEADING = {"solve_triangular": (2, 2), "solve_ex": (2, 2), "lu_solve": (2, 1, 2)}
# The first axis counts samples; so does the first number of an `x_shape`.
SAMPLES = """
    unfold fold max_pool_grad max_pool_take avg_pool_grad adaptive_avg_pool_grad interpolate interpolate_grad
"""
# The same, of the operands up to a number: the next ones are parameters that all samples share, the rest is a cache.
SHARED = {"conv": 1, "conv_input_grad": 1, "group_norm": 1, "group_norm_grad": 2, "batch_norm_eval": 1}
# Leave leading axes alone, of the operands up to a number, and share parameters likewise.
ROWS = {"layer_norm": 1, "layer_norm_grad": 2, "rms_norm": 1, "rms_norm_grad": 2}


def _is_on(args: Any) -> bool:
    """Tell whether any operand differs from lane to lane."""
    return any([type(a) is Mapped and a.on for a in args])


def _plain(args: Any) -> list[Any]:
    """Return operands that all lanes share as the backend below has them."""
    return [a.data if type(a) is Mapped else a for a in args]


def _each(out: Any, fn: Callable[[Any], Any]) -> Any:
    return tuple([fn(o) for o in out]) if type(out) is tuple else fn(out)


def _method(name: str, make: Callable[[Any, Callable[..., Any]], Callable[..., Any]]) -> None:
    """Give MappedBackend a kernel: compiled for a backend at its first use, and kept."""

    def kernel(self: Any, *args: Any, **attrs: Any) -> Any:
        found = self.__dict__[name] = make(self, getattr(self.inner, name))
        return found(*args, **attrs)

    kernel.__name__ = name
    setattr(MappedBackend, name, kernel)


def reduction(k: Any, below: Callable[..., Any]) -> Callable[..., Any]:
    """Make the rule of a reduction."""

    def rule(x: Mapped, *, axis: Any = None, keepdims: bool = False, **attrs: Any) -> Mapped:
        if not x.on:
            return Mapped(below(x.data, axis=axis, keepdims=keepdims, **attrs), False)
        rank = k.rank(x)
        if not rank:
            return Mapped(below(k.inner.expand_dims(x.data, 1), axis=1, keepdims=False, **attrs), True)
        if axis is None:
            axis = tuple(range(1, rank + 1))
        else:
            axis = axis % rank + 1 if isinstance(axis, int) else tuple([a % rank + 1 for a in axis])
        return Mapped(below(x.data, axis=axis, keepdims=keepdims, **attrs), True)

    return rule


def position(k: Any, below: Callable[..., Any]) -> Callable[..., Any]:
    """Make the rule of argmax and argmin, which without an axis count row-major."""

    def rule(x: Mapped, *, axis: Any = None, keepdims: bool = False) -> Mapped:
        if not x.on:
            return Mapped(below(x.data, axis=axis, keepdims=keepdims), False)
        rank = k.rank(x)
        if axis is not None and rank:
            return Mapped(below(x.data, axis=axis % rank + 1, keepdims=keepdims), True)
        n = k.lanes([x])
        found = below(k.inner.reshape(x.data, (n, k.numel_of(x))), axis=1, keepdims=False)
        return Mapped(k.inner.reshape(found, (n, *[1] * rank)) if keepdims else found, True)

    return rule


def along(k: Any, below: Callable[..., Any]) -> Callable[..., Any]:
    """Make the rule of a kernel that works along one axis."""

    def rule(*args: Any, axis: int = -1, **attrs: Any) -> Any:
        if not _is_on(args):
            out = below(*_plain(args), axis=axis, **attrs)
            return _each(out, lambda o: Mapped(o, False))
        buffers = [a for a in args if type(a) is Mapped]
        n, rank = k.lanes(buffers), k.rank(buffers[0])
        spread = [k.spread(a, n) if type(a) is Mapped else a for a in args]
        if rank:
            return _each(below(*spread, axis=axis % rank + 1, **attrs), lambda o: Mapped(o, True))
        spread = [k.inner.reshape(a, (n, 1)) if type(b) is Mapped else a for a, b in zip(spread, args)]
        out = below(*spread, axis=1, **attrs)
        return _each(out, lambda o: Mapped(k.inner.reshape(o, (n,)), True))

    return rule


def leading(k: Any, below: Callable[..., Any]) -> Callable[..., Any]:
    """Make the rule of a kernel that leaves leading axes alone."""

    def rule(*args: Any, **attrs: Any) -> Any:
        on = _is_on(args)
        n = k.lanes(args) if on else 0
        found = [a if type(a) is not Mapped else k.spread(a, n) if on else a.data for a in args]
        return _each(below(*found, **attrs), lambda o: Mapped(o, on))

    return rule


def broadcast_leading(k: Any, below: Callable[..., Any], own: tuple[int, ...]) -> Callable[..., Any]:
    """Make the rule of a kernel of several operands whose leading axes broadcast."""

    def rule(*args: Any, **attrs: Any) -> Any:
        if not any([a.on for a in args]):
            return _each(below(*[a.data for a in args], **attrs), lambda o: Mapped(o, False))
        n, most = k.lanes(args), max([k.rank(a) - m for a, m in zip(args, own)])
        found = [k.widen(k.spread(a, n), most - k.rank(a) + m) for a, m in zip(args, own)]
        return _each(below(*found, **attrs), lambda o: Mapped(o, True))

    return rule


def samples(k: Any, below: Callable[..., Any]) -> Callable[..., Any]:
    """Make the rule of a kernel whose operands' first axis counts samples: the lanes' samples are put end to end."""

    def rule(*args: Any, **attrs: Any) -> Any:
        if not _is_on(args):
            return _each(below(*_plain(args), **attrs), lambda o: Mapped(o, False))
        n, each = k.lanes(args), k.shape_of(next(a for a in args if type(a) is Mapped))[0]

        def join(x: Any) -> Any:
            data = k.spread(x, n)
            shape = k.inner.shape_of(data)
            return k.inner.reshape(data, (n * shape[1], *shape[2:]))

        def part(x: Any) -> Mapped:
            shape = k.inner.shape_of(x)
            return Mapped(k.inner.reshape(x, (n, each, *shape[1:])), True)

        if attrs.get("x_shape") is not None:
            first, *rest = attrs["x_shape"]
            attrs["x_shape"] = (n * first, *rest)
        return _each(below(*[join(a) if type(a) is Mapped else a for a in args], **attrs), part)

    return rule


def sharing(k: Any, make: Any, below: Any, body: Any, many: int) -> Callable[..., Any]:
    """Make the rule of a kernel of `many` operands that `make` knows, and parameters that all lanes may share."""

    def rule(*args: Any, **attrs: Any) -> Any:
        parameters = args[many:]
        if below.__name__.endswith("_grad"):
            parameters = parameters[:1]
        if _is_on(parameters):
            return body(*args, **attrs)
        shared = _plain(parameters)
        return make(k, lambda *own, **attrs: below(*own, *shared, **attrs))(*args[:many], **attrs)

    return rule


# ---- convolutions where samples and filters are mapped: lanes become groups of channels ----


def _into_channels(k: Any, x: Mapped, n: int) -> Any:
    """Return (N, lanes * C, ...)."""
    data = k.inner.moveaxis(k.spread(x, n), 0, 1)
    shape = k.inner.shape_of(data)
    return k.inner.reshape(data, (shape[0], n * shape[2], *shape[3:]))


def _out_of_channels(k: Any, x: Any, n: int) -> Mapped:
    shape = k.inner.shape_of(x)
    return Mapped(k.inner.moveaxis(k.inner.reshape(x, (shape[0], n, shape[1] // n, *shape[2:])), 1, 0), True)


def _filters(k: Any, w: Mapped, n: int) -> Any:
    data = k.spread(w, n)
    shape = k.inner.shape_of(data)
    return k.inner.reshape(data, (n * shape[1], *shape[2:]))


def _convolved(name: str) -> Callable[..., Any]:
    def rule(k: Any, x: Mapped, w: Mapped, *, groups: int = 1, **attrs: Any) -> Mapped:
        n = k.lanes((x, w))
        if "x_shape" in attrs:
            first, channels, *rest = attrs["x_shape"]
            attrs["x_shape"] = (first, n * channels, *rest)
        out = getattr(k.inner, name)(_into_channels(k, x, n), _filters(k, w, n), groups=n * groups, **attrs)
        return _out_of_channels(k, out, n)

    return rule


def _conv_weight_grad(k: Any, g: Mapped, x: Mapped, *, w_shape: Any, groups: int = 1, **attrs: Any) -> Mapped:
    if not (g.on or x.on):
        return Mapped(k.inner.conv_weight_grad(g.data, x.data, w_shape=w_shape, groups=groups, **attrs), False)
    n = k.lanes((g, x))
    whole = (n * w_shape[0], *w_shape[1:])
    out = k.inner.conv_weight_grad(
        _into_channels(k, g, n), _into_channels(k, x, n), w_shape=whole, groups=n * groups, **attrs
    )
    return Mapped(k.inner.reshape(out, (n, *w_shape)), True)


MappedBackend.conv_weight_grad = _conv_weight_grad  # type: ignore[method-assign,assignment]


# ---- positions: the lanes end to end ----


def embedding(k: Any, weight: Mapped, indices: Mapped) -> Mapped:
    """Look rows up: in one table for all lanes, or in the lanes' tables end to end."""
    if not weight.on:
        return Mapped(k.inner.embedding(weight.data, indices.data), indices.on)
    shape = tuple(k.shape_of(indices))
    flat = k.reshape(indices, (-1,)) if len(shape) != 1 else indices
    rows = k.take(weight, flat, axis=0)
    return k.reshape(rows, (*shape, *tuple(k.shape_of(weight))[1:])) if len(shape) != 1 else rows  # type: ignore[no-any-return]


def embedding_grad(
    k: Any, g: Mapped, indices: Mapped, *, num_weights: int, padding_idx: int | None = None,
    scale_grad_by_freq: bool = False,
) -> Mapped:  # fmt: skip
    """Add rows into the lanes' tables end to end."""
    if not (g.on or indices.on):
        out = k.inner.embedding_grad(
            g.data, indices.data, num_weights=num_weights, padding_idx=padding_idx, scale_grad_by_freq=scale_grad_by_freq
        )
        return Mapped(out, False)
    if padding_idx is not None and padding_idx >= 0:
        apart = (*k.shape_of(indices), *[1] * (k.rank(g) - k.rank(indices)))
        g = k.where(k.reshape(k.equal(indices, padding_idx), apart), 0, g)
    n = k.lanes((g, indices))
    at = k.spread(indices, n)
    start = k.inner.reshape(k.inner.multiply(k.inner.new_arange(at, 0, n), num_weights), (n, *[1] * k.rank(indices)))
    out = k.inner.embedding_grad(
        k.spread(g, n), k.inner.add(at, start), num_weights=n * num_weights, padding_idx=None,
        scale_grad_by_freq=scale_grad_by_freq,
    )  # fmt: skip
    return Mapped(k.inner.reshape(out, (n, num_weights, *k.inner.shape_of(out)[1:])), True)


def _written(name: str) -> Callable[..., Any]:
    def rule(k: Any, x: Mapped, indices: Mapped, values: Mapped, *, axis: int) -> Mapped:
        below = getattr(k.inner, name)
        if not (x.on or indices.on or values.on):
            return Mapped(below(x.data, indices.data, values.data, axis=axis), False)
        axis, n = axis % k.rank(x), k.lanes((x, indices, values))
        if not indices.on:
            return Mapped(below(k.spread(x, n), indices.data, k.spread(values, n), axis=axis + 1), True)
        rows, at, back = k.joined(x, indices, axis)
        given = k.inner.moveaxis(k.spread(values, n), axis + 1, 1)
        shape = k.inner.shape_of(given)
        given = k.inner.reshape(given, (shape[0] * shape[1], *shape[2:]))
        return back(below(rows, at, given, axis=0), k.shape_of(x)[axis])  # type: ignore[no-any-return]

    rule.__name__ = name
    return rule


# ---- axes by number ----


def diagonal(k: Any, x: Mapped, *, offset: int, axis1: int, axis2: int) -> Mapped:
    """Take diagonals."""
    return Mapped(k.inner.diagonal(x.data, offset=offset, axis1=axis1 + x.on, axis2=axis2 + x.on), x.on)


def diagonal_write(k: Any, x: Mapped, part: Mapped, *, offset: int, axis1: int, axis2: int) -> Mapped:
    """Replace diagonals."""
    if not (x.on or part.on):
        return Mapped(k.inner.diagonal_write(x.data, part.data, offset=offset, axis1=axis1, axis2=axis2), False)
    n = k.lanes((x, part))
    axes = {"axis1": axis1 + 1, "axis2": axis2 + 1}
    return Mapped(k.inner.diagonal_write(k.spread(x, n), k.spread(part, n), offset=offset, **axes), True)


def sliding_window(k: Any, x: Mapped, *, axis: int, size: int, step: int) -> Mapped:
    """Show windows along an axis."""
    return Mapped(k.inner.sliding_window(x.data, axis=axis + x.on, size=size, step=step), x.on)


def strided(k: Any, x: Mapped, *, shape: Any, strides: Any, offset: int) -> Mapped:
    """Show row-major lanes with any strides."""
    if not x.on:
        return Mapped(k.inner.strided(x.data, shape=shape, strides=strides, offset=offset), False)
    n, m = k.inner.shape_of(x.data)
    flat = k.inner.contiguous(k.inner.reshape(x.data, (n * m,)))
    return Mapped(k.inner.strided(flat, shape=(n, *shape), strides=(m, *strides), offset=offset), True)


def roll(k: Any, x: Mapped, *, shifts: Any, axes: Any) -> Mapped:
    """Shift along axes."""
    return Mapped(k.inner.roll(x.data, shifts=shifts, axes=tuple([a + x.on for a in axes])), x.on)


def flip(k: Any, x: Mapped, axis: Any) -> Mapped:
    """Reverse along axes."""
    rank = k.rank(x)
    axes = tuple([a % rank + x.on for a in ((axis,) if isinstance(axis, int) else axis)]) if rank else ()
    return Mapped(k.inner.flip(x.data, axes) if axes else x.data, x.on)


def pad(k: Any, x: Mapped, widths: Any, value: Any = 0) -> Mapped:
    """Surround with a constant."""
    return Mapped(k.inner.pad(x.data, [(0, 0)] * x.on + list(widths), value), x.on)


def _bordered(name: str) -> Callable[..., Any]:
    def rule(k: Any, x: Mapped, *, widths: Any, **attrs: Any) -> Mapped:
        return Mapped(getattr(k.inner, name)(x.data, widths=[(0, 0)] * x.on + list(widths), **attrs), x.on)

    rule.__name__ = name
    return rule


def sum_all(k: Any, x: Mapped) -> Mapped:
    """Add up each lane."""
    return k.sum(x, axis=None) if x.on else Mapped(k.inner.sum_all(x.data), False)


def unique_all(k: Any, x: Mapped) -> Any:
    """Refuse: how many values are distinct differs from lane to lane."""
    if x.on:
        raise DataDependent(DYNAMIC.format("unique"))
    return tuple([Mapped(o, False) for o in k.inner.unique_all(x.data)])


def searchsorted(k: Any, sorted: Mapped, values: Mapped, *, side: str = "left") -> Mapped:
    """Find places in one row for all, or in rows beside the values."""
    if not sorted.on and (k.rank(sorted) == 1 or not values.on):
        return Mapped(k.inner.searchsorted(sorted.data, values.data, side=side), values.on)
    n, shape = k.lanes((sorted, values)), tuple(k.shape_of(values))
    given = k.spread(values, n)
    if k.rank(sorted) == 1:
        given = k.inner.reshape(given, (n, k.numel_of(values)))
    found = k.inner.searchsorted(k.spread(sorted, n), given, side=side)
    return Mapped(k.inner.reshape(found, (n, *shape)), True)


def attention(k: Any, query: Mapped, key: Mapped, value: Mapped, mask: Any = None, keep: Any = None, **attrs: Any) -> Any:
    """Attend in every lane: the kernel's leading axes broadcast."""
    given = [query, key, value, mask, keep]
    if not _is_on(given):
        out = k.inner.attention(*[a and a.data for a in given], **attrs)
        return tuple([Mapped(o, False) for o in out])
    n = k.lanes(given)
    # Of a mask that all lanes share nothing need be said; its axes count from the right.
    spread = [Mapped(k.spread(a, n), True) if i < 3 else a for i, a in enumerate(given)]
    found, _ = k.align(spread)
    return tuple([Mapped(o, True) for o in k.inner.attention(*found, **attrs)])


for _names, _make in (
    (ELEMENTWISE, MappedBackend.elementwise), (REDUCTIONS, reduction), ("argmax argmin", position), (ALONG, along),
    (LEADING, leading), (SAMPLES, samples),
):  # fmt: skip
    for _name in _names.split():
        _method(_name, _make)
for _name, _own in BROADCAST_LEADING.items():
    _method(_name, lambda k, below, own=_own: broadcast_leading(k, below, own))  # type: ignore[misc]
for _rule in (
    embedding, embedding_grad, _written("index_add"), _written("index_write"), diagonal, diagonal_write, sliding_window,
    strided, roll, flip, pad, _bordered("pad_border"), _bordered("pad_border_grad"), sum_all, unique_all, searchsorted, attention,
):  # fmt: skip
    setattr(MappedBackend, _rule.__name__, _rule)


def _share(name: str, make: Any, many: int) -> None:
    body: Any = _convolved(name) if name in ("conv", "conv_input_grad") else getattr(MappedBackend, name)
    _method(name, lambda k, below: sharing(k, make, below, functools.partial(body, k), many))


for _name, _many in SHARED.items():
    _share(_name, samples, _many)
for _name, _many in ROWS.items():
    _share(_name, leading, _many)


# ---- ops ----

# Ops whose body broadcasts or works element by element, beside those whose declaration says so.
ELEMENTWISE_OPS = frozenset("cast deg2rad rad2deg neg clone conj contiguous floor_divide heaviside".split())
# Ops of operands whose leading axes are free, where the others are shared: op -> how many.
FREE_LEADING_OPS = {"linear": 1}


def rule_for(k: Any, op: Any) -> Callable[..., Any]:
    """Return what computes an op over a batch."""
    body = functools.partial(op.body, k)
    if op.view or op.variadic:
        return body
    if op.shape is broadcast or op.jvp == "elementwise" or op.name in ELEMENTWISE_OPS:
        return k.elementwise(k.inner.table[op])  # type: ignore[no-any-return]
    if op.name in FREE_LEADING_OPS:
        return _free_leading(k, k.inner.table[op], body, FREE_LEADING_OPS[op.name])
    return _or_loop(k, op, body)


def _free_leading(k: Any, below: Callable[..., Any], body: Callable[..., Any], many: int) -> Callable[..., Any]:
    def rule(*args: Any, **attrs: Any) -> Any:
        if _is_on(args[many:]):
            return body(*args, **attrs)
        on = args[0].on
        return Mapped(below(*_plain(args), **attrs), on)

    return rule


MappedBackend.rule_for = staticmethod(rule_for)
_looped: set[str] = set()


def _or_loop(k: Any, op: Any, body: Callable[..., Any]) -> Callable[..., Any]:
    """Make a rule that takes the lanes one by one where the op's body must look at values."""

    def rule(*args: Any, **attrs: Any) -> Any:
        on = [type(a) is Mapped and a.on for a in args]
        if True not in on:
            out = k.inner.table[op](*_plain(args), **attrs)
            return _each(out, lambda o: Mapped(o, False))
        try:
            return body(*args, **attrs)
        except DataDependent:
            if op.shape is None:
                raise
            return _loop(k, op, args, attrs)

    return rule


def _loop(k: Any, op: Any, args: Any, attrs: Any) -> Any:
    """Call the op for each lane, and stack the results."""
    if op.name not in _looped:
        _looped.add(op.name)
        warn(f"vmap: there is no rule that computes {op.name} for a whole batch; each sample is a call of its own.")
    inner, outs = k.inner, []
    for i in range(k.lanes(args)):
        lane = [
            a if type(a) is not Mapped else inner.getitem(a.data, (i,)) if a.on else a.data for a in args
        ]
        outs.append(inner.table[op](*lane, **attrs))
    if type(outs[0]) is not tuple:
        return Mapped(_stack(k, op, outs), True)
    return tuple([Mapped(_stack(k, op, list(column)), True) for column in zip(*outs)])


def _stack(k: Any, op: Any, column: list[Any]) -> Any:
    if len({tuple(k.inner.shape_of(o)) for o in column}) > 1:
        raise RuntimeError(DYNAMIC.format(op.name))
    return k.inner.stack(column, 0)
