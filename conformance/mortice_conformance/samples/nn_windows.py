"""Samples of convolution, pooling, padding and interpolation, and of the adjoints that are their gradients."""

from __future__ import annotations

import numpy as np

from mortice_conformance import references_nn as r
from mortice_conformance.domain import Domain, below, distinct, real
from mortice_conformance.record import sample

_ONE = {"stride": (1,), "padding": (0,), "dilation": (1,), "groups": 1}
_TWO = {"stride": (2, 1), "padding": (1, 0), "dilation": (1, 2), "groups": 1}
_GROUPED = {"stride": (2,), "padding": (1,), "dilation": (1,), "groups": 2}

# ---- convolution ----
sample("conv", r.conv, real, kind="matmul", dtypes="fc",
       cases=[(((2, 3, 7), (4, 3, 3), None), _ONE), (((1, 2, 5, 6), (3, 2, 3, 2), None), _TWO),
       (((2, 4, 8), (6, 2, 3), None), _GROUPED), (((1, 4, 9), (4, 2, 3), None), {**_GROUPED, "dilation": (2,)}),
       (((1, 2, 3, 4, 4), (3, 2, 2, 1, 3), None),
        {"stride": (1, 2, 1), "padding": (0, 0, 1), "dilation": (1, 1, 1), "groups": 1})])  # fmt: skip
sample("conv", r.conv, real, kind="matmul", dtypes="f", variant="bias", call=lambda x, w, b, **attrs: _op("conv")(x, w, b, **attrs),
       cases=[(((2, 3, 7), (4, 3, 3), (4,)), _ONE)],
       terms=10)  # fmt: skip
sample("conv_input_grad", r.conv_input_grad, real, kind="matmul", dtypes="fc",
       cases=[(((2, 4, 5), (4, 3, 3), None), {"x_shape": (2, 3, 7), **_ONE}),
       (((2, 6, 4), (6, 2, 3), None), {"x_shape": (2, 4, 8), **_GROUPED}),
       # Dilated; and the last element of x has no part in any window.
       (((1, 3, 3, 4), (3, 2, 3, 2), None), {"x_shape": (1, 2, 5, 6), **_TWO}),
       (((1, 2, 3), (2, 2, 3), None), {"x_shape": (1, 2, 8), **_ONE, "stride": (2,)})])  # fmt: skip
sample("conv_weight_grad", r.conv_weight_grad, real, kind="matmul", dtypes="fc",
       cases=[(((2, 4, 5), (2, 3, 7)), {"w_shape": (4, 3, 3), **_ONE}),
       (((2, 6, 4), (2, 4, 8)), {"w_shape": (6, 2, 3), **_GROUPED}),
       (((1, 3, 3, 4), (1, 2, 5, 6)), {"w_shape": (3, 2, 3, 2), **_TWO})])  # fmt: skip


def _op(name: str) -> object:
    from mortice.op import OPS

    return OPS[name].fn


_BLOCKS = {"kernel": (2, 3), "stride": (1, 2), "padding": (0, 1), "dilation": (1, 1)}
sample(
    "im2col",
    r.im2col,
    real,
    kind="exact",
    cases=[((2, 3, 4, 5), _BLOCKS), ((1, 2, 5, 5), {**_BLOCKS, "dilation": (2, 1)})],
)
sample(
    "col2im", r.col2im, real, kind="reduction", dtypes="uifc", cases=[((2, 18, 9), {"output_size": (4, 5), **_BLOCKS})]
)

# ---- pooling ----
_POOL = {"kernel": (2, 3), "stride": (2, 1), "padding": (0, 1), "dilation": (1, 1), "ceil_mode": False}
_POOL1 = {"kernel": (3,), "stride": (2,), "padding": (1,), "dilation": (1,), "ceil_mode": False}
_CEIL1 = {**_POOL1, "padding": (0,), "ceil_mode": True}
_POOLED = [((2, 3, 4, 5), _POOL), ((2, 3, 7), _POOL1), ((2, 3, 8), _CEIL1), ((1, 2, 9), {**_POOL1, "dilation": (2,)}),
           ((1, 2, 5, 6), {**_POOL, "stride": (2, 2), "padding": (1, 1), "ceil_mode": True})]  # fmt: skip
_PAIRS = {"kernel": (2,), "stride": (1,), "padding": (0,), "dilation": (1,), "ceil_mode": False}
_TIES = [(([[[1.0, 1.0, 0.0, 2.0, 2.0]]],), _PAIRS, "f", "Of equal elements in a window the first is taken."),
         (([[[1.0, float("nan"), 0.0, 2.0]]],), _PAIRS, "f", "A window with nan in it gives nan.")]  # fmt: skip
sample("max_pool", r.max_pool, distinct, kind="exact", cases=_POOLED, result=("promote", "int64"), given=_TIES)
sample("max_pool_values", lambda x, **attrs: r.max_pool(x, **attrs)[0], distinct, kind="exact", cases=_POOLED, given=_TIES)


def _put(y: object, indices: object, x_shape: tuple[int, ...], ndim: int) -> object:
    flat = np.zeros((*x_shape[: len(x_shape) - ndim], int(np.prod(x_shape[len(x_shape) - ndim :]))), y.dtype)  # type: ignore[attr-defined]
    lead = y.shape[: y.ndim - ndim]  # type: ignore[attr-defined]
    for at in np.ndindex(*y.shape):  # type: ignore[attr-defined]
        flat[(*at[: len(lead)], indices[at])] += y[at]  # type: ignore[index]
    return flat.reshape(x_shape)


def _pick(x: object, indices: object, ndim: int) -> object:
    lead = x.shape[: x.ndim - ndim]  # type: ignore[attr-defined]
    flat = x.reshape(*lead, -1)  # type: ignore[attr-defined]
    return np.take_along_axis(flat, indices.reshape(*lead, -1), -1).reshape(indices.shape)  # type: ignore[attr-defined]


_places = below(12)
sample(
    "max_pool_grad",
    _put,
    real,
    _places,
    kind="reduction",
    cases=[(((2, 2, 3), (2, 2, 3)), {"x_shape": (2, 3, 4), "ndim": 2})],
)
sample("max_pool_take", _pick, real, _places, kind="exact", cases=[(((2, 3, 4), (2, 2, 3)), {"ndim": 2})])
_AVERAGE = {
    "kernel": (2, 3),
    "stride": (2, 1),
    "padding": (0, 1),
    "ceil_mode": False,
    "count_include_pad": True,
    "divisor_override": None,
}
_MEANS = [
    ((2, 3, 4, 5), _AVERAGE),
    ((2, 3, 4, 5), {**_AVERAGE, "count_include_pad": False}),
    ((2, 3, 4, 5), {**_AVERAGE, "divisor_override": 4}),
    *[((1, 2, 5, 6), {**_AVERAGE, "stride": (2, 2), "ceil_mode": True, "count_include_pad": c}) for c in (True, False)],
]
sample("avg_pool", r.avg_pool, real, kind="reduction", cases=_MEANS)
sample("avg_pool_grad", lambda y, x_shape, **attrs: r.adjoint(lambda x: r.avg_pool(x, **attrs), x_shape, y), real, kind="reduction",
       cases=[((1, 2, 2, 5), {"x_shape": (1, 2, 4, 5), **_AVERAGE})])  # fmt: skip
_FITTED = [((2, 3, 5, 7), {"output_size": (2, 3)}), ((2, 3, 7), {"output_size": (4,)})]
sample("adaptive_avg_pool", r.adaptive_avg_pool, real, kind="reduction", cases=_FITTED)
sample("adaptive_avg_pool_grad",
       lambda y, x_shape, output_size: r.adjoint(lambda x: r.adaptive_avg_pool(x, output_size=output_size), x_shape, y),
       real, kind="reduction", cases=[((2, 3, 4), {"x_shape": (2, 3, 7), "output_size": (4,)})])  # fmt: skip
sample("adaptive_max_pool", r.adaptive_max_pool, distinct, kind="exact", cases=_FITTED, result=("promote", "int64"))

# ---- padding and interpolation ----
_WIDTHS = ((0, 0), (1, 2), (2, 0))
_PADS = [((2, 3, 4), {"widths": _WIDTHS, "mode": m}) for m in ("constant", "reflect", "replicate", "circular")]
sample("pad", r.pad, real, kind="exact", cases=[(s, {**a, "value": 0}) for s, a in _PADS]
       + [((2, 3, 4), {"widths": ((0, 0), (-1, 1), (0, -2)), "mode": "constant", "value": 2})])  # fmt: skip
sample("pad_border_grad", lambda y, widths, mode: r.adjoint(lambda x: r.pad(x, widths=widths, mode=mode), (2, 3, 4), y), real, dtypes="fc",
       kind="reduction", cases=[((2, 6, 6), a) for _, a in _PADS])  # fmt: skip
_RESIZE = {"scales": None, "antialias": False, "align_corners": False}
_SIZES = [((1, 2, 4, 5), {"size": (7, 3), "mode": m, **_RESIZE}) for m in ("nearest", "linear")]
sample("interpolate", r.interpolate, Domain("pixel", 0.0, 4.0, (0, 9)), kind="nn", dtypes="f",
       cases=[*_SIZES, ((2, 1, 6), {"size": (4,), "mode": "linear", **_RESIZE, "align_corners": True})])  # fmt: skip
sample("interpolate_grad",
       lambda y, x_shape, **attrs: r.adjoint(lambda x: r.interpolate(x, size=y.shape[2:], **attrs), x_shape, y), real, kind="nn",
       cases=[((1, 2, 7, 3), {"x_shape": (1, 2, 4, 5), "mode": m, **_RESIZE}) for m in ("nearest", "linear")])  # fmt: skip
