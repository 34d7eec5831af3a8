"""Samples of the neural network ops that work on each element, on rows, and of the losses."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

from mortice_conformance.domain import Domain, below, nonzero, probability, real
from mortice_conformance.record import sample
from mortice_conformance.references import log_softmax, normal_cdf, softmax
from mortice_conformance.references_nn import affine, attention, normalized

# The ops register when their module is first used.
if importlib.util.find_spec("mortice.nn") is not None:
    importlib.import_module("mortice.nn.functional")

_INF = float("inf")
_ENDS = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 7.0, -7.0, float("inf"), float("nan"))


def _sigmoid(x: object) -> object:
    return 1 / (1 + np.exp(-x))  # type: ignore[operator]


def _softplus(x: object, beta: float = 1.0, threshold: float = 20.0) -> object:
    return np.where(x * beta > threshold, x, np.logaddexp(0, x * beta) / beta)  # type: ignore[operator]


def _gelu(x: object, approximate: str) -> object:
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))  # type: ignore[operator]
    return x * normal_cdf(x)


# What a failure of the written operands means most likely.
_EXP = "The exponential of a large operand overflows, and that of a small one is lost beside 1: use expm1, log1p and -abs(x)."
_MAX = "The exponential of a large operand overflows: subtract the row's maximum first. That of -inf, as masks leave it, is 0."
_SQUARES = "The mean square less the squared mean cancels where the mean is large: subtract the mean before squaring."

# ---- activations ----
sample("relu", lambda x: np.maximum(x, 0), nonzero, values=_ENDS, kind="exact")
sample(
    "hardtanh",
    lambda x, low, high: np.clip(x, low, high),
    nonzero,
    attrs=[{"low": -1, "high": 2}],
    dtypes="if",
    kind="exact",
)
sample(
    "leaky_relu",
    lambda x, slope: np.where(x > 0, x, x * slope),
    nonzero,
    attrs=[{"slope": 0.01}],
    values=_ENDS,
    kind="elementwise",
)
sample("prelu_kernel", lambda x, w: np.where(x > 0, x, x * w), nonzero, kind="arithmetic")
sample(
    "threshold",
    lambda x, limit, value: np.where(x > limit, x, value),
    nonzero,
    attrs=[{"limit": 1, "value": 2}],
    kind="exact",
)
sample("hardshrink", lambda x, lambd: np.where(np.abs(x) > lambd, x, 0), nonzero, attrs=[{"lambd": 0.5}], kind="exact")
sample("softshrink", lambda x, lambd: np.where(x > lambd, x - lambd, np.where(x < -lambd, x + lambd, 0)), nonzero,
       attrs=[{"lambd": 0.5}], kind="arithmetic")  # fmt: skip
sample("hardsigmoid", lambda x: np.clip(x + 3, 0, 6) / 6, real, values=_ENDS, kind="smooth")
sample("hardswish", lambda x: x * np.clip(x + 3, 0, 6) / 6, real, kind="smooth")
sample("silu", lambda x: x * _sigmoid(x), real, dtypes="f", values=_ENDS, kind="special")
sample("gelu", _gelu, real, attrs=[{"approximate": "none"}, {"approximate": "tanh"}], kind="smooth")
sample("elu", lambda x, alpha, scale, input_scale: scale * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) * input_scale)), nonzero,
       attrs=[{"alpha": 1.5, "scale": 1.1, "input_scale": 1.0}], kind="special",
       given=[(([-1e-6, -1e-3, -1000.0, 1000.0],), {"alpha": 1.5, "scale": 1.1, "input_scale": 1.0}, "f", _EXP)])  # fmt: skip
sample(
    "softplus",
    _softplus,
    real,
    attrs=[{"beta": 1.0, "threshold": 20.0}, {"beta": 2.0, "threshold": 3.0}],
    kind="special",
    given=[(([-15.0, -80.0, 15.0, 1000.0],), {"beta": 1.0, "threshold": 20.0}, "f", _EXP),
           (([1000.0, -8.0],), {"beta": 1.0, "threshold": 2000.0}, "f", _EXP)],
)  # fmt: skip
sample("logsigmoid", lambda x: -np.logaddexp(0, -x), real, kind="special", given=[(([-1000.0, -100.0, 15.0, 1000.0],), {}, "f", _EXP)])
sample("mish", lambda x: x * np.tanh(np.logaddexp(0, x)), real, kind="special", given=[(([1000.0, 60.0, -1000.0],), {}, "f", _EXP)])
_ROWS = [((3, 4), {"axis": 1}), ((2, 6, 3), {"axis": 1}), ((8,), {"axis": 0})]
sample(
    "glu",
    lambda x, axis: np.split(x, 2, axis)[0] * _sigmoid(np.split(x, 2, axis)[1]),
    real,
    cases=[c for c in _ROWS],
    kind="special",
)
_FAR = [([1000.0, 1001.0, -1000.0],), ([-1000.0, -1001.0],), ([-_INF, 0.0, 1.0],)]
_ROWS_GIVEN = [(row, {"axis": 0}, "f", _MAX) for row in _FAR]
_ROWS_ENDS = [((1,), {"axis": 0}), ((0, 3), {"axis": 1})]
sample("softmax", softmax, real, cases=_ROWS, edges=_ROWS_ENDS, kind="nn", given=_ROWS_GIVEN)
sample("log_softmax", log_softmax, real, cases=_ROWS, edges=_ROWS_ENDS, kind="nn", given=_ROWS_GIVEN)
_kept = Domain("kept", dtype="bool", draw=lambda rng, shape, dtype, case: rng.integers(0, 2, shape))
sample("dropout", lambda x, keep, p: np.where(keep, x / (1 - p), 0), real, _kept, dtypes="fc", kind="elementwise",
       cases=[(((3, 4), (3, 4)), {"p": 0.25}), (((37,), (37,)), {"p": 0.5})])  # fmt: skip

# ---- affine maps and attention ----
sample("linear", lambda x, w, b=None: x @ w.T + (0 if b is None else b), kind="matmul", dtypes="uifc",
       shapes=[((4, 3), (5, 3), None), ((2, 4, 3), (5, 3), None), ((3,), (2, 3), None)], edges=[((0, 3), (2, 3), None)])  # fmt: skip


def _with_bias(x: object, w: object, b: object) -> object:
    from mortice.op import OPS

    return OPS["linear"].fn(x, w, b)


sample(
    "linear",
    lambda x, w, b: x @ w.T + b,
    kind="matmul",
    dtypes="f",
    variant="bias",
    call=_with_bias,
    shapes=[((4, 3), (5, 3), (5,))],
)
_mask = Domain(
    "mask",
    dtype="bool",
    draw=lambda rng, shape, dtype, case: rng.integers(0, 2, shape) | np.eye(*shape[-2:], dtype=int),
)
_PLAIN = {"causal": False, "scale": None, "dropout_p": 0.0}
sample("attention", attention, real, real, real, _mask, _kept, kind="nn",
       cases=[(((2, 4, 3), (2, 5, 3), (2, 5, 6), None, None), _PLAIN), (((1, 2, 4, 3),) * 3 + (None, None), {**_PLAIN, "causal": True}),
              (((4, 3), (5, 3), (5, 2), (4, 5), None), {**_PLAIN, "scale": 0.5})],
       given=[(([[60.0, 0.0], [0.0, -60.0]], [[60.0, 0.0], [0.0, 60.0]], [[1.0, 2.0], [3.0, 4.0]], None, None), _PLAIN, "f",
               "A large score overflows in exp: subtract each row's maximum first.")])  # fmt: skip
# Sizes that the kernels of vendors' libraries take: sixteen queries or more, heads of a multiple of 8.
sample("attention", attention, real, real, real, _mask, _kept, kind="nn", variant="wide",
       cases=[(((1, 2, 17, 8), (1, 2, 19, 8), (1, 2, 19, 16), None, None), {**_PLAIN, "causal": True}),
              (((2, 1, 16, 8), (2, 1, 16, 8), (2, 1, 16, 8), (16, 16), None), _PLAIN)])  # fmt: skip

# ---- normalisation ----


def _batch_norm(x: object, weight: object, bias: object, eps: float) -> object:
    out, mean, var, _ = normalized(x, (0, *range(2, x.ndim)), eps)  # type: ignore[attr-defined]
    return affine(out, weight, bias, 1), mean.reshape(-1), var.reshape(-1)


def _batch_norm_eval(x: object, mean: object, var: object, weight: object, bias: object, eps: float) -> object:
    shape = (-1, *[1] * (x.ndim - 2))  # type: ignore[attr-defined]
    out = (x - mean.reshape(shape)) / np.sqrt(var.reshape(shape) + eps)  # type: ignore[attr-defined]
    return affine(out, weight, bias, 1)


def _layer_norm(x: object, weight: object, bias: object, ndim: int, eps: float) -> object:
    out, mean, _, rstd = normalized(x, tuple(range(-ndim, 0)), eps)
    return affine(out, weight, bias, None), mean, rstd


def _rms_norm(x: object, weight: object, ndim: int, eps: float) -> object:
    rrms = 1 / np.sqrt(np.mean(np.square(x), axis=tuple(range(-ndim, 0)), keepdims=True) + eps)  # type: ignore[call-overload]
    return affine(x * rrms, weight, None, None), rrms


def _group_norm(x: object, weight: object, bias: object, groups: int, eps: float) -> object:
    n = x.shape[0]  # type: ignore[attr-defined]
    out, mean, _, rstd = normalized(x.reshape(n, groups, -1), -1, eps)  # type: ignore[attr-defined]
    return affine(out.reshape(x.shape), weight, bias, 1), mean[..., 0], rstd[..., 0]  # type: ignore[attr-defined]


_EPS = {"eps": 1e-5}
_positive = Domain("variance", 0.5, 2.0)
sample(
    "batch_norm", _batch_norm, real, kind="nn", cases=[(((4, 3), (3,), (3,)), _EPS), (((2, 3, 5), None, None), _EPS)],
    given=[(([[3000.1], [3001.3], [3002.2], [3003.7]], None, None), _EPS, "f", _SQUARES)],
)  # fmt: skip
sample("batch_norm_eval", _batch_norm_eval, real, real, _positive, real, kind="nn", grad=(0, 3, 4),
       cases=[(((4, 3), (3,), (3,), (3,), (3,)), _EPS), (((2, 3, 5), (3,), (3,), None, None), _EPS)])  # fmt: skip
sample("layer_norm", _layer_norm, real, kind="nn",
       cases=[(((4, 6), (6,), (6,)), {"ndim": 1, **_EPS}), (((2, 3, 4), None, None), {"ndim": 2, **_EPS})],
       given=[(([[3000.1, 3001.3, 3002.2, 3003.7]], None, None), {"ndim": 1, **_EPS}, "f", _SQUARES)])  # fmt: skip
sample("rms_norm", _rms_norm, real, kind="nn",
       cases=[(((4, 6), (6,)), {"ndim": 1, **_EPS}), (((2, 3, 4), None), {"ndim": 2, **_EPS})])  # fmt: skip
sample("group_norm", _group_norm, real, kind="nn",
       cases=[(((2, 4, 3), (4,), (4,)), {"groups": 2, **_EPS}), (((3, 6), None, None), {"groups": 3, **_EPS})],
       given=[(([[3000.1, 3001.3, 3002.2, 3003.7]], None, None), {"groups": 1, **_EPS}, "f", _SQUARES)])  # fmt: skip

# ---- losses and tables ----


def _nll(logp: object, target: object, weight: object, reduction: str, ignore_index: int) -> object:
    kept = target != ignore_index
    at = np.where(kept, target, 0)  # type: ignore[call-overload]
    weights = (np.ones(logp.shape[1]) if weight is None else weight)[at] * kept  # type: ignore[attr-defined,index]
    losses = -np.take_along_axis(logp, np.expand_dims(at, 1), 1)[:, 0] * weights  # type: ignore[arg-type]
    if reduction == "none":
        return losses, weights
    return losses.sum() / (weights.sum() if reduction == "mean" else 1), weights.sum()


_labels = below(3)
_LOSSES = [
    (((5, 3), (5,), None), {"reduction": r, "ignore_index": i}) for r in ("mean", "sum", "none") for i in (-100, 1)
]
sample("nll_loss", _nll, real, _labels, Domain("weight", 0.5, 2.0), kind="nn", grad=(0,),
       cases=[*_LOSSES, (((2, 3, 4), (2, 4), (3,)), {"reduction": "mean", "ignore_index": -100})])  # fmt: skip


def _cross_entropy(
    x: object, target: object, weight: object, reduction: str, ignore_index: int, smoothing: float
) -> object:
    logp = log_softmax(x, 1)
    w = np.ones(logp.shape[1]) if weight is None else weight
    picked, weights = _nll(logp, target, weight, "none", ignore_index)  # type: ignore[misc]
    spread = np.moveaxis(logp, 1, -1) @ w * (target != ignore_index)
    losses = (1 - smoothing) * picked - smoothing * spread / logp.shape[1]
    loss = losses if reduction == "none" else losses.sum() / (weights.sum() if reduction == "mean" else 1)
    top = x.max(1)  # type: ignore[attr-defined]
    return loss, np.stack([top, np.log(np.exp(x - np.expand_dims(top, 1)).sum(1))])  # type: ignore[operator]


_SMOOTHED = [
    (((2, 3, 4), (2, 4), (3,)), {"reduction": r, "ignore_index": i, "smoothing": s})
    for r, i, s in (("mean", -100, 0.0), ("mean", 1, 0.25), ("sum", -100, 0.1), ("none", 2, 0.5))
]
sample("cross_entropy", _cross_entropy, real, _labels, Domain("weight", 0.5, 2.0), kind="nn", grad=(0,),
       cases=[*[(shapes, {**attrs, "smoothing": s}) for shapes, attrs in _LOSSES for s in (0.0, 0.1)], *_SMOOTHED],
       given=[(([[1000.0, 0.0, -1000.0], [-1000.0, 999.0, 1000.0]], [1, 2], None),
               {"reduction": "none", "ignore_index": -100, "smoothing": 0.0}, "f", _MAX)])  # fmt: skip

def _reduced(losses: object, reduction: str) -> object:
    return losses if reduction == "none" else losses.mean() if reduction == "mean" else losses.sum()  # type: ignore[attr-defined]


def _pair_loss(name: str, of: object, x: object, y: object, given: object = (), **attrs: float) -> None:
    """Add the sample of a loss of an input and a target of one shape, with each reduction."""
    cases = [(((3, 4), (3, 4)), {"reduction": r, **attrs}) for r in ("mean", "sum", "none")]
    sample(name, lambda *args, reduction, **rest: _reduced(of(*args, **rest), reduction), x, y, cases=cases, dtypes="f", kind="special",
           given=given)  # type: ignore[operator,arg-type]  # fmt: skip


def _smooth(x: object, y: object, beta: float) -> object:
    d = np.abs(x - y)  # type: ignore[operator]
    return np.where(d < beta, d * d / 2 / beta, d - beta / 2)


def _huber(x: object, y: object, delta: float) -> object:
    d = np.abs(x - y)  # type: ignore[operator]
    return np.where(d < delta, d * d / 2, delta * (d - delta / 2))


_pair_loss("mse_loss", lambda x, y: (x - y) ** 2, real, real)
_pair_loss("smooth_l1_loss", _smooth, real, real, beta=1.25)
_pair_loss("huber_loss", _huber, real, real, delta=1.25)
_pair_loss("binary_cross_entropy", lambda x, y: -(y * np.log(x) + (1 - y) * np.log1p(-x)), probability, probability)
_pair_loss("binary_cross_entropy_with_logits", lambda x, y: (1 - y) * x + np.logaddexp(0, -x), real, probability,
           given=[(([1000.0, -1000.0, 15.0, 1000.0], [1.0, 0.0, 1.0, 0.0]), {"reduction": "none"}, "f", _EXP)])  # fmt: skip


def _embedding_grad(
    y: object, indices: object, num_weights: int, padding_idx: object, scale_grad_by_freq: bool
) -> object:
    out = np.zeros((num_weights, y.shape[-1]), y.dtype)  # type: ignore[attr-defined]
    for at in np.ndindex(*indices.shape):  # type: ignore[attr-defined]
        if indices[at] != padding_idx:  # type: ignore[index]
            out[indices[at]] += y[at] / (np.sum(indices == indices[at]) if scale_grad_by_freq else 1)  # type: ignore[index]
    return out


_TABLE = [
    (((5, 3), (4,)), {"padding_idx": -1, "scale_grad_by_freq": False}),
    (((5, 3), (2, 6)), {"padding_idx": -1, "scale_grad_by_freq": False}),
]
sample("embedding", lambda w, i, **_: w[i], real, below(5), kind="exact", cases=_TABLE, dtypes="fc")


def _starts(rng: Any, shape: tuple[int, ...], d: object, case: object) -> Any:
    return np.sort(np.concatenate([[0], rng.integers(0, 7, shape[0] - 1)]))


def _bags(weight: Any, indices: Any, offsets: Any, mean: bool) -> Any:
    parts = [weight[part] for part in np.split(indices, offsets[1:])]
    return np.stack([p.sum(0) / (max(len(p), 1) if mean else 1) for p in parts])


sample("embedding_bag", _bags, real, below(5), Domain("starts", dtype="int64", draw=_starts), kind="reduction", grad=(0,),
       cases=[(((5, 3), (6,), (4,)), {"mean": mean}) for mean in (False, True)])  # fmt: skip
sample("embedding_grad", _embedding_grad, real, below(5), kind="reduction",
       cases=[(((4, 3), (4,)), {"num_weights": 5, "padding_idx": -1, "scale_grad_by_freq": False}),
              (((2, 6, 3), (2, 6)), {"num_weights": 5, "padding_idx": 2, "scale_grad_by_freq": True})])  # fmt: skip
