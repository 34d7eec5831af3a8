"""layer_norm, rms_norm, group_norm and batch_norm with joint gradients, which read g and x twice in all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mortice.backends import NamespaceBackend
from mortice.backends.kernel_tools import KernelMixin
from mortice_cuda_cupy.kernels.copying import contiguous, turns
from mortice_cuda_cupy.kernels.launch import (
    FLOATS,
    Plans,
    Program,
    all_in_order,
    empty,
    float32,
    launcher,
    over_elements,
    over_rows,
    prod,
    scratch,
)

_PARAMETERS = ("{T}", "wide_t<{T}>")  # the types that those have
_ROWS = [
    f"norm_{part}rows<{{T}}, {weight}, {kind}>"
    for part in ("", "grad_")
    for weight in _PARAMETERS
    for kind in ("false, false", "true, false", "false, true")
]
_FEW, _MANY = 8, 32  # elements of a row that a lane keeps
_grads_of = lambda kept: [
    f"norm_grads_rows<{{T}}, {weight}, {rms}, {kept}>" for weight in _PARAMETERS for rms in ("false", "true")
]
NORM = Program(
    "norm.cu", *_ROWS, *_grads_of(_FEW), "norm_sums_columns<{T}, false>", "norm_sums_columns<{T}, true>",
    *[f"fold_parts<{{T}}, {parameter}>" for parameter in _PARAMETERS],
)  # fmt: skip
CHANNELS = Program(
    "channels.cu",
    *[f"{name}<{{T}}>" for name in (
        "channel_moments", "merge_moments", "channel_sums", "channel_apply", "channel_grad", "joined_apply", "columns_moments",
        "columns_sums", "columns_apply", "columns_grad", "blend",
    )],
    *[f"joined_grad<{{T}}, {parameter}>" for parameter in _PARAMETERS],
)  # fmt: skip
# So many of float64 would need more registers than there are.
LONG = Program("norm.cu", *_grads_of(_MANY), types=tuple([d for d in FLOATS if d.itemsize < 8]))
_LAYER, _RMS, _GROUP = "false, false", "true, false", "false, true"
_Core = NamespaceBackend
_ALONE = 1 << 13  # elements of a channel that one block goes through twice, sooner than two launches would; not measured, for lack of a GPU
_ROWS_OF_BLOCK = 16  # at least: two for each of its warps
_AT_ONCE = 264  # blocks that keep rows: 2 for each of 132 multiprocessors
_BLOCKS = 1056  # that sums are cut into, where there is enough to add: 8 for each of 132 multiprocessors


class NormKernels(KernelMixin):
    """Statistics are float32 for half precision; gradients read the forward's, and go to the core's bodies without."""

    mixed_norms = True

    # ---- rows ----

    def layer_norm(
        self, x: Any, weight: Any = None, bias: Any = None, *, ndim: int, eps: float = 1e-5
    ) -> tuple[Any, Any, Any]:
        made = _forward(self, _LAYER, x, weight, bias, ndim, eps)
        return made or _Core.layer_norm(self, x, weight, bias, ndim=ndim, eps=eps)

    def layer_norm_grad(
        self, g: Any, x: Any, weight: Any = None, mean: Any = None, rstd: Any = None, *, ndim: int, eps: float = 1e-5
    ) -> Any:
        if mean is None or rstd is None or not _fits(self, x, g):
            return _Core.layer_norm_grad(self, g, x, weight, mean, rstd, ndim=ndim, eps=eps)
        return _backward(self, _LAYER, g, x, weight, mean, rstd, prod(x.shape[x.ndim - ndim :]))

    def layer_norm_weight_grad(
        self, g: Any, x: Any, mean: Any = None, rstd: Any = None, *, ndim: int, eps: float = 1e-5
    ) -> Any:
        if mean is None or rstd is None or not _fits(self, x, g):
            return _Core.layer_norm_weight_grad(self, g, x, mean, rstd, ndim=ndim, eps=eps)
        return _column_sums(self, "false", g, x, mean, rstd, ndim, (True, False))[0]

    def layer_norm_grads(
        self, g: Any, x: Any, weight: Any, mean: Any, rstd: Any, *, ndim: int, eps: float, needs: Sequence[bool]
    ) -> tuple[Any, ...]:
        if mean is None or rstd is None or not _fits(self, x, g):
            return _by_core(self, "layer_norm_grads", g, x, weight, mean, rstd, ndim=ndim, eps=eps, needs=needs)
        return _row_grads(self, _LAYER, g, x, weight, mean, rstd, ndim, needs)

    def rms_norm(self, x: Any, weight: Any = None, *, ndim: int, eps: float) -> tuple[Any, Any]:
        made = _forward(self, _RMS, x, weight, None, ndim, eps)
        return made[::2] if made else _Core.rms_norm(self, x, weight, ndim=ndim, eps=eps)

    def rms_norm_grad(self, g: Any, x: Any, weight: Any = None, rrms: Any = None, *, ndim: int, eps: float) -> Any:
        if rrms is None or not _fits(self, x, g):
            return _Core.rms_norm_grad(self, g, x, weight, rrms, ndim=ndim, eps=eps)
        return _backward(self, _RMS, g, x, weight, None, rrms, prod(x.shape[x.ndim - ndim :]))

    def rms_norm_weight_grad(self, g: Any, x: Any, rrms: Any = None, *, ndim: int, eps: float) -> Any:
        if rrms is None or not _fits(self, x, g):
            return _Core.rms_norm_weight_grad(self, g, x, rrms, ndim=ndim, eps=eps)
        return _column_sums(self, "true", g, x, None, rrms, ndim, (True, False))[0]

    def rms_norm_grads(
        self, g: Any, x: Any, weight: Any, rrms: Any, *, ndim: int, eps: float, needs: Sequence[bool]
    ) -> tuple[Any, ...]:
        if rrms is None or not _fits(self, x, g):
            return _by_core(self, "rms_norm_grads", g, x, weight, rrms, ndim=ndim, eps=eps, needs=needs)
        return _row_grads(self, _RMS, g, x, weight, None, rrms, ndim, (*needs[:2], False))[:2]

    def group_norm(
        self, x: Any, weight: Any = None, bias: Any = None, *, groups: int, eps: float = 1e-5
    ) -> tuple[Any, Any, Any]:
        made = _forward(self, _GROUP, x, weight, bias, groups, eps)
        return made or _Core.group_norm(self, x, weight, bias, groups=groups, eps=eps)

    def group_norm_grad(
        self, g: Any, x: Any, weight: Any = None, mean: Any = None, rstd: Any = None, *, groups: int, eps: float = 1e-5
    ) -> Any:
        if mean is None or rstd is None or not _fits(self, x, g):
            return _Core.group_norm_grad(self, g, x, weight, mean, rstd, groups=groups, eps=eps)
        return _backward(self, _GROUP, g, x, weight, mean, rstd, prod(x.shape[1:]) // groups, groups)

    def group_norm_weight_grad(
        self, g: Any, x: Any, mean: Any = None, rstd: Any = None, *, groups: int, eps: float = 1e-5
    ) -> Any:
        if mean is None or rstd is None or not _fits(self, x, g):
            return _Core.group_norm_weight_grad(self, g, x, mean, rstd, groups=groups, eps=eps)
        return _channel_sums(self, g, x, mean, rstd, groups, (True, False))[1]

    def group_norm_grads(
        self, g: Any, x: Any, weight: Any, mean: Any, rstd: Any, *, groups: int, eps: float, needs: Sequence[bool]
    ) -> tuple[Any, ...]:
        if mean is None or rstd is None or not _fits(self, x, g):
            return _by_core(self, "group_norm_grads", g, x, weight, mean, rstd, groups=groups, eps=eps, needs=needs)
        of_x = self.group_norm_grad(g, x, weight, mean, rstd, groups=groups, eps=eps) if needs[0] else None
        return of_x, *_channel_sums(self, g, x, mean, rstd, groups, needs[1:], like=_wider(x, weight))[1:]

    # ---- channels ----

    def batch_norm(self, x: Any, weight: Any = None, bias: Any = None, *, eps: float = 1e-5) -> tuple[Any, Any, Any]:
        x, shape, turn = _lying(x)
        plan = _batch_plans[self.dtype_of(x), shape]
        if not plan:
            return _Core.batch_norm(self, x, weight, bias, eps=eps)  # type: ignore[no-any-return]
        moments, finish, together, channels, size = plan
        wide, parts = _wide(self, x), (scratch(size),) if moments else ()
        mean, var = empty((channels,), wide), empty((channels,), wide)
        if moments:
            moments(x, *parts)
        if together:
            out = empty(x.shape, x.dtype)
            finish(x, *parts, mean, var, _as_wide(self, weight, wide), _as_wide(self, bias, wide), out, eps)
            return out, mean, var
        finish(*parts, mean, var)
        return _apply(self, x, shape, turn, mean, var, weight, bias, eps), mean, var

    def batch_norm_grads(
        self, g: Any, x: Any, weight: Any, mean: Any, var: Any, *, eps: float, needs: Sequence[bool]
    ) -> tuple[Any, ...]:
        if mean is None or var is None or not _fits(self, x, g):
            return _by_core(self, "batch_norm_grads", g, x, weight, mean, var, eps=eps, needs=needs)
        x, shape, turn = _lying(x)
        g, mean, var = _in_turn(g, turn), contiguous(mean), contiguous(var)
        like = _wider(x, weight)
        sums_of, finish, together, channels, size = _batch_grad_plans[self.dtype_of(x), shape, like.dtype != x.dtype]
        if needs[0] and together:
            parts, of_x = (scratch(size),) if sums_of else (), empty(x.shape, x.dtype)
            if sums_of:
                sums_of(g, x, mean, var, *parts, eps)
            of_weight, of_bias = [empty((channels,), like.dtype) if need else None for need in needs[1:]]
            finish(g, x, mean, var, _as_wide(self, weight, mean.dtype), *parts, of_x, of_bias, of_weight, eps)
            return of_x, of_weight, of_bias
        sums, of_weight, of_bias = _channel_sums(self, g, x, mean, var, 0, needs[1:], float(eps), like, shape)
        if not needs[0]:
            return None, of_weight, of_bias
        of_x = _new_like(x, turn)
        finish(g, x, mean, var, _as_wide(self, weight, mean.dtype), sums, of_x, eps)
        return of_x, of_weight, of_bias

    def batch_norm_grad(
        self, g: Any, x: Any, weight: Any = None, mean: Any = None, var: Any = None, *, eps: float = 1e-5
    ) -> Any:
        if mean is None or var is None or not _fits(self, x, g):
            return _Core.batch_norm_grad(self, g, x, weight, mean, var, eps=eps)
        return self.batch_norm_grads(g, x, weight, mean, var, eps=eps, needs=(True, False, False))[0]

    def batch_norm_weight_grad(self, g: Any, x: Any, mean: Any = None, var: Any = None, *, eps: float = 1e-5) -> Any:
        if mean is None or var is None or not _fits(self, x, g):
            return _Core.batch_norm_weight_grad(self, g, x, mean, var, eps=eps)
        return self.batch_norm_grads(g, x, None, mean, var, eps=eps, needs=(False, True, False))[1]

    def batch_norm_eval(
        self, x: Any, mean: Any, var: Any, weight: Any = None, bias: Any = None, *, eps: float = 1e-5
    ) -> Any:
        if not _fits(self, x):
            return _Core.batch_norm_eval(self, x, mean, var, weight, bias, eps=eps)
        mean, var = (_as_wide(self, a, _wide(self, x)) for a in (mean, var))
        return _apply(self, *_lying(x), mean, var, weight, bias, eps)

    def batch_norm_eval_weight_grad(self, g: Any, x: Any, mean: Any, var: Any, *, eps: float = 1e-5) -> Any:
        if not _fits(self, x, g):
            return _Core.batch_norm_eval_weight_grad(self, g, x, mean, var, eps=eps)
        mean, var = (_as_wide(self, a, _wide(self, x)) for a in (mean, var))
        return self.batch_norm_weight_grad(g, x, mean, var, eps=eps)

    def blend(self, xs: Sequence[Any], share: float, ys: Sequence[Any], others: Sequence[float]) -> list[Any]:
        x = xs[0]
        if len(xs) != 2 or not all([_fits(self, x, a) for a in (xs[1], *ys)]) or not all_in_order(xs):
            return _Core.blend(self, xs, share, ys, others)
        _blends[self.dtype_of(x), x.size](x, contiguous(ys[0]), xs[1], contiguous(ys[1]), share, *others)
        return list(xs)


# ---- launches ----


def _fits(k: Any, x: Any, g: Any = None) -> bool:
    return x.size > 0 and k.dtype_of(x) in FLOATS and (g is None or (g.dtype == x.dtype and g.shape == x.shape))


def _wider(x: Any, weight: Any) -> Any:
    """Return the one whose dtype the gradients of parameters have: a weight that is wider than x."""
    return x if weight is None or weight.itemsize <= x.itemsize else weight


def _by_core(k: Any, name: str, g: Any, x: Any, weight: Any, *stats: Any, **numbers: Any) -> tuple[Any, ...]:
    """Return gradients by the core's body, which takes g and x in the dtype of a wide weight."""
    own, wide = x.dtype, _wider(x, weight).dtype
    of_x, *rest = getattr(_Core, name)(k, g.astype(wide, copy=False), x.astype(wide, copy=False), weight, *stats, **numbers)
    return of_x if of_x is None else of_x.astype(own, copy=False), *rest


def _lying(x: Any) -> tuple[Any, tuple[int, ...], Any]:
    """Return x, in row-major order unless its channels are last in memory; how it lies there, as (samples, channels, ...); the turn.

    The turn is that of `turns` where channels are last, else None.
    """
    turn = turns(x)
    if turn and turn[0] == (0, *range(2, x.ndim), 1):
        return x, (x.size // x.shape[1], x.shape[1]), turn
    return contiguous(x), x.shape, None


def _in_turn(g: Any, turn: Any) -> Any:
    """Return g in the order of what `_lying` gave that turn."""
    return contiguous(g.transpose(turn[0])).transpose(turn[1]) if turn else contiguous(g)


def _new_like(x: Any, turn: Any) -> Any:
    return empty([x.shape[a] for a in turn[0]], x.dtype).transpose(turn[1]) if turn else empty(x.shape, x.dtype)


def _wide(k: Any, x: Any) -> Any:
    return x.dtype if x.itemsize > 2 else k.native(float32)


def _as_wide(k: Any, x: Any, wide: Any) -> Any:
    """Return statistics or parameters of channels in the dtype that is computed in."""
    return x if x is None else contiguous(x if x.dtype == wide else x.astype(wide))


def _dtypes(k: Any, *arrays: Any) -> tuple[Any, ...]:
    return tuple([None if a is None else k.dtype_of(a) for a in arrays])


def _parameters(dtypes: Sequence[Any]) -> str:
    """Return in which type parameters are read: that of the first dtype where all have it, else the wide one."""
    return "wide_t<{T}>" if any([d not in (None, dtypes[0]) for d in dtypes]) else "{T}"


def _forward(k: Any, kind: str, x: Any, weight: Any, bias: Any, count: int, eps: float) -> Any:
    """Return (out, mean, rstd); None where there is no kernel. `count` are the axes of a row, or the groups."""
    dtypes = _dtypes(k, x, weight, bias)
    plan = _forwards[kind, x.shape, count, dtypes]
    if not plan:
        return None
    launch, same, stats = plan
    x, wide = contiguous(x), _wide(k, x)
    if not same:
        weight, bias = _as_wide(k, weight, wide), _as_wide(k, bias, wide)
    out, mean, rstd = empty(x.shape, x.dtype), None if kind == _RMS else empty(stats, wide), empty(stats, wide)
    launch(x, contiguous(weight), contiguous(bias), out, mean, rstd, eps)
    return out, mean, rstd


def _norm_rows(kind: str, shape: tuple[int, ...], count: int, dtypes: tuple[Any, ...]) -> Any:
    """Return the launch of a norm; whether parameters have the dtype of x, or none; and the shape of the statistics."""
    if dtypes[0] not in FLOATS or not prod(shape):
        return None
    first = len(shape) - count
    if kind == _GROUP:
        n, stats = prod(shape[1:]) // count, (shape[0], count)
    else:
        n, stats = prod(shape[first:]), (*shape[:first], *[1] * count)
    name = _parameters(dtypes)
    launch = _by_rows(dtypes[0], _ROW, f"norm_rows<{{T}}, {name}, {kind}>", shape, n, count if kind == _GROUP else 1)
    return launch, name == "{T}", stats


def _row_grads(
    k: Any, kind: str, g: Any, x: Any, weight: Any, mean: Any, rstd: Any, ndim: int, needs: Sequence[bool]
) -> tuple[Any, Any, Any]:
    """Return the gradients of input, weight and bias that are needed of normalised rows."""
    dtypes = _dtypes(k, x, weight)
    plan = _grads[kind, x.shape, ndim, dtypes] if needs[0] and (needs[1] or needs[2]) else None
    if not plan:
        row = x.shape[x.ndim - ndim :]
        of_x = _backward(k, kind, g, x, weight, mean, rstd, prod(row)) if needs[0] else None
        return of_x, *_column_sums(k, kind.partition(",")[0], g, x, mean, rstd, ndim, needs[1:], _wider(x, weight))
    launch, fold, same, row, size = plan
    weight = contiguous(weight) if same else _as_wide(k, weight, _wide(k, x))
    of_x, parts, like = empty(x.shape, x.dtype), scratch(size), _wider(x, weight)
    launch(contiguous(g), contiguous(x), weight, contiguous(mean), contiguous(rstd), of_x, parts)
    of_weight, of_bias = [empty(row, like.dtype) if need else None for need in needs[1:]]
    fold(parts, None, of_bias, of_weight)
    return of_x, of_weight, of_bias


def _grads_rows(kind: str, shape: tuple[int, ...], ndim: int, dtypes: tuple[Any, ...]) -> Any:
    """Return the launches that read g and x once: of the gradient of x and parts of the others, and of what joins these.

    With them whether the weight has the dtype of x, or is none; the shape of a row; and the bytes of the parts. None for rows that are
    too long for a warp to keep.
    """
    dtype, row = dtypes[0], shape[len(shape) - ndim :]
    n = prod(row)
    program, kept = (NORM, _FEW) if n <= 32 * _FEW else (LONG, _MANY)
    if n > 32 * kept or dtype not in program.types:
        return None
    rows, name = prod(shape) // n, _parameters(dtypes)
    count = max(1, min(rows // _ROWS_OF_BLOCK, _AT_ONCE))
    kernel = program.get(dtype, f"norm_grads_rows<{{T}}, {name}, {kind.partition(',')[0]}, {kept}>")
    launch = launcher(kernel, (count,), (32, 8), "xxooxxm==", rows, n)
    fold = _folds[dtype, count, n, name != "{T}" and dtype.itemsize == 2]
    return launch, fold, name == "{T}", row, count * 2 * n * max(dtype.itemsize, 4)


def _backward(k: Any, kind: str, g: Any, x: Any, weight: Any, mean: Any, rstd: Any, n: int, groups: int = 1) -> Any:
    g, x, name = contiguous(g), contiguous(x), _parameters(_dtypes(k, x, weight))
    weight = contiguous(weight) if name == "{T}" else _as_wide(k, weight, _wide(k, x))
    launch = _row_plans[k.dtype_of(x), _ROW_GRAD, f"norm_grad_rows<{{T}}, {name}, {kind}>", x.shape, n, groups]
    out = empty(x.shape, x.dtype)
    launch(g, x, weight, contiguous(mean), contiguous(rstd), out)
    return out


_ROW, _ROW_GRAD = "xooxox====f", "xxooxx===="  # what such kernels take


def _by_rows(dtype: Any, takes: str, kernel: str, shape: tuple[int, ...], n: int, groups: int) -> Any:
    """Return the launch of a kernel of rows of n elements."""
    rows = prod(shape) // n
    return launcher(NORM.get(dtype, kernel), *over_rows(rows, n), takes, rows, n, groups, prod(shape[2:]))


_row_plans = Plans(_by_rows)


def _by_channels(dtype: Any, shape: tuple[int, ...]) -> Any:
    """Return the launches of batch_norm: the moments of a channel's parts, None where there are no parts; and what joins them.

    With them whether the second normalises too, as it does where a channel's elements lie side by side; how many channels there are;
    and the bytes that the parts take.
    """
    if dtype not in FLOATS or not prod(shape):
        return None
    count, together, sizes = _shared(dtype, shape)
    samples, channels, inner = sizes
    if together and samples * inner <= _ALONE:
        finish = launcher(CHANNELS.get(dtype, "joined_apply<{T}>"), (channels,), (256,), "x=xxoox===f", None, *sizes)
        return None, finish, together, channels, 0
    if inner == 1:
        moments = _by_strips(dtype, "columns_moments<{T}>", "xm====", samples, channels)
    else:
        moments = launcher(CHANNELS.get(dtype, "channel_moments<{T}>"), (channels, count), (256,), "xm===", *sizes)
    if together:
        finish = launcher(CHANNELS.get(dtype, "joined_apply<{T}>"), (channels, count), (256,), "xmxxoox===f", *sizes)
    else:
        numbers = count, samples * inner, channels, inner
        finish = launcher(CHANNELS.get(dtype, "merge_moments<{T}>"), *_warps(channels), "mxx====", *numbers)
    return moments, finish, together, channels, count * 2 * channels * max(dtype.itemsize, 4)


def _by_channels_grad(dtype: Any, shape: tuple[int, ...], mixed: bool) -> Any:
    """Return those of its gradients: sums of a channel's parts, if there are any, and what joins them or takes them joined."""
    count, together, sizes = _shared(dtype, shape)
    samples, channels, inner = sizes
    joined = CHANNELS.get(dtype, f"joined_grad<{{T}}, {_PARAMETERS[mixed]}>") if together else None
    if together and samples * inner <= _ALONE:
        return None, launcher(joined, (channels,), (256,), "xxxxo=xoo===f", None, *sizes), together, channels, 0
    sums = _sums_plans[dtype, *sizes, 0]
    if together:
        finish = launcher(joined, (channels, count), (256,), "xxxxomxoo===f", *sizes)
    elif inner == 1:
        finish = _by_strips(dtype, "columns_grad<{T}>", "xxxxoxx====f", samples, channels)
    else:
        n, grad = prod(shape), CHANNELS.get(dtype, "channel_grad<{T}>")
        finish = launcher(grad, *over_elements(n, 16 // dtype.itemsize), "xxxxoxx===f", n, channels, inner)
    return sums, finish, together, channels, count * 2 * channels * max(dtype.itemsize, 4)


def _shared(dtype: Any, shape: tuple[int, ...], groups: int = 0) -> tuple[int, bool, tuple[int, int, int]]:
    """Return how many blocks share a channel; whether its elements lie side by side; samples, channels, elements of each."""
    samples, channels, inner = shape[0], shape[1], prod(shape[2:])
    count = _parts(channels, samples * inner) if inner > 1 or groups else _strips(dtype, samples, channels)[0][1]
    return count, inner * dtype.itemsize >= 64, (samples, channels, inner)


def _strips(dtype: Any, rows: int, channels: int) -> tuple[tuple[int, int], int, bool]:
    """Return the grid for channels that lie side by side, how many threads do, and whether each has 16 bytes of them."""
    lanes = 16 // dtype.itemsize
    packs = channels % lanes == 0
    threads = channels // lanes if packs else channels
    across = min(threads, 32)
    strips = -(-threads // across)
    return (strips, max(1, min(_BLOCKS // strips, rows // (4 * (256 // across))))), across, packs


def _by_strips(dtype: Any, kernel: str, takes: str, rows: int, channels: int) -> Any:
    grid, across, packs = _strips(dtype, rows, channels)
    return launcher(CHANNELS.get(dtype, kernel), grid, (256,), takes, rows, channels, across, int(packs))


def _by_columns(dtype: Any, rms: str, rows: int, n: int) -> tuple[Any, int, int]:
    """Return the launch of sums over rows of n elements, how many parts it makes, and their bytes."""
    across = -(-n // 32)
    count = max(1, min(_BLOCKS // across, -(-rows // 32)))
    kernel = NORM.get(dtype, f"norm_sums_columns<{{T}}, {rms}>")
    launch = launcher(kernel, (across, count), (32, 8), "xxoxm==", rows, n)
    return launch, count, count * 2 * n * max(dtype.itemsize, 4)


def _fold(dtype: Any, count: int, n: int, mixed: bool) -> Any:
    return launcher(NORM.get(dtype, f"fold_parts<{{T}}, {_PARAMETERS[mixed]}>"), *_warps(2 * n), "mooo==", count, n)


def _blend(dtype: Any, n: int) -> Any:
    return launcher(CHANNELS.get(dtype, "blend<{T}>"), *over_elements(n), "xxxx=fff", n)


_batch_plans, _batch_grad_plans, _column_plans = Plans(_by_channels), Plans(_by_channels_grad), Plans(_by_columns)
_folds, _blends, _forwards, _grads = Plans(_fold), Plans(_blend), Plans(_norm_rows), Plans(_grads_rows)


def _column_sums(
    k: Any, rms: str, g: Any, x: Any, mean: Any, rstd: Any, ndim: int, needs: Sequence[bool], like: Any = None
) -> tuple[Any, Any]:
    """Return the gradients of weight and bias of normalised rows, where needed, in the dtype of `like`, by default that of x."""
    if not any(needs):
        return None, None
    g, x, mean, rstd = contiguous(g), contiguous(x), contiguous(mean), contiguous(rstd)
    row = x.shape[x.ndim - ndim :]
    n, dtype = prod(row), k.dtype_of(x)
    launch, count, size = _column_plans[dtype, rms, x.size // n, n]
    parts = scratch(size)
    launch(g, x, mean, rstd, parts)
    of = x.dtype if like is None else like.dtype
    weight, bias = [empty(row, of) if need else None for need in needs]
    _folds[dtype, count, n, of != x.dtype](parts, None, bias, weight)
    return weight, bias


def _channel_sums(
    k: Any, g: Any, x: Any, mean: Any, var: Any, groups: int, needs: Sequence[bool], eps: float = -1.0, like: Any = None,
    shape: tuple[int, ...] = (),
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Return the channels' sums (2, C) of g and of g times the normal x, and the latter as gradients where needed.

    Without an eps the variances are the inverse standard deviations. Gradients come in the dtype of `like`, by default that of x; with
    a shape g and x lie so.
    """
    if groups and not any(needs):
        return None, None, None
    if not shape:
        g, x, shape = contiguous(g), contiguous(x), x.shape
    dtype, of = k.dtype_of(x), x.dtype if like is None else like.dtype
    count, _, (samples, channels, inner) = _shared(dtype, shape, groups)
    parts = scratch(count * 2 * channels * max(x.itemsize, 4))
    _sums_plans[dtype, samples, channels, inner, groups](g, x, contiguous(mean), contiguous(var), parts, eps)
    sums = None if groups else empty((2, channels), _wide(k, x))
    weight, bias = [empty((channels,), of) if need else None for need in needs]
    _folds[dtype, count, channels, of != x.dtype](parts, sums, bias, weight)
    return sums, weight, bias


def _sums(dtype: Any, samples: int, channels: int, inner: int, groups: int) -> Any:
    if inner == 1 and not groups:
        return _by_strips(dtype, "columns_sums<{T}>", "xxxxm====f", samples, channels)
    geometry = (channels, _parts(channels, samples * inner)), (256,)
    kernel = CHANNELS.get(dtype, "channel_sums<{T}>")
    return launcher(kernel, *geometry, "xxxxm====f", samples, channels, inner, groups)


_sums_plans = Plans(_sums)


def _warps(count: int) -> tuple[tuple[int], tuple[int, int]]:
    """Return grid and block for a warp each."""
    return (min(-(-count // 8), 1 << 20),), (32, 8)


def _apply(k: Any, x: Any, shape: tuple[int, ...], turn: Any, mean: Any, var: Any, weight: Any, bias: Any, eps: float) -> Any:
    out, dtype, wide = _new_like(x, turn), k.dtype_of(x), _wide(k, x)
    _apply_plans[dtype, shape](x, mean, var, _as_wide(k, weight, wide), _as_wide(k, bias, wide), out, eps)
    return out


def _normal(dtype: Any, shape: tuple[int, ...]) -> Any:
    n, channels, inner = prod(shape), shape[1], prod(shape[2:])
    if inner == 1:
        return _by_strips(dtype, "columns_apply<{T}>", "xxxoox====f", shape[0], channels)
    kernel = CHANNELS.get(dtype, "channel_apply<{T}>")
    return launcher(kernel, *over_elements(n, 16 // dtype.itemsize), "xxxoox===f", n, channels, inner)


_apply_plans = Plans(_normal)


def _parts(channels: int, per: int) -> int:
    """Return how many blocks share a channel's sum: some thousand in all, each with a thousand elements at least."""
    return max(1, min(_BLOCKS // channels, per // 1024))
