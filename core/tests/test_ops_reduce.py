"""Reductions, scans, statistics: values, dtypes, empty and 0-d tensors, gradients with zeros and ties, error texts."""

import math

import pytest

import mortice as mt
from mortice.errors import DTypeError

NAN = math.nan


def grad(fn, x, order=1):
    """Return the gradient of fn's sum, or the gradient of that gradient's sum."""
    x = mt.tensor(x, dtype=mt.float64, requires_grad=True)
    (g,) = mt.autograd.grad(fn(x).sum(), x, create_graph=True)
    if order == 2:
        (g,) = mt.autograd.grad(g.sum(), x)
    return g.tolist()


# ---- sums, products, averages ----


def test_integers_and_bools_add_up_in_int64():
    assert mt.ones(3, dtype=mt.uint8).sum().dtype is mt.int64
    assert mt.tensor([True, True]).prod().dtype is mt.int64
    assert mt.ones(3).sum(dtype=mt.float64).dtype is mt.float64
    assert mt.ones(300, dtype=mt.int64).sum(dtype=mt.uint8).item() == 300 % 256


def test_half_adds_up_in_float32():
    assert mt.ones(4096, dtype=mt.float16).sum().item() == 4096.0
    assert mt.ones(1000, dtype=mt.bfloat16).sum().item() == 1000.0
    assert mt.ones(1000, dtype=mt.bfloat16).cumsum(0)[-1].item() == 1000.0


def test_dims_and_numpy_names():
    x = mt.arange(6.0).reshape(2, 3)
    assert x.sum(0).tolist() == [3.0, 5.0, 7.0]
    assert x.sum((0, 1), keepdim=True).shape == (1, 1)
    assert x.mean(axis=1, keepdims=True).tolist() == [[1.0], [4.0]]
    assert x.sum(()).item() == 15.0
    assert mt.tensor(3.0).sum(0).item() == 3.0
    assert x.all(()).shape == (2, 3)


def test_results_put_into_out_have_types_of_their_own():
    out = mt.empty(2), mt.empty(2, dtype=mt.int64)
    found = mt.max(mt.tensor([[1.0, 3.0], [5.0, 2.0]]), 1, out=out)
    assert type(found) is mt.return_types.max_out is not mt.return_types.max
    assert found.values is out[0] and found.indices.tolist() == [1, 0]
    assert type(mt.sort(mt.ones(2), out=out)) is mt.return_types.sort_out
    for name in ("histogramdd_out", "no_out", "named_out", "_repr_out"):
        assert not hasattr(mt.return_types, name)


def test_empty():
    assert mt.zeros(0).sum().item() == 0.0
    assert mt.zeros(0, 3).prod(0).tolist() == [1.0, 1.0, 1.0]
    assert math.isnan(mt.zeros(0).mean().item())
    assert not mt.zeros(0).any()
    assert mt.zeros(0).all()
    assert mt.zeros(0).logsumexp(0).item() == -math.inf


def test_truth_of_uint8_is_uint8():
    assert mt.tensor([1, 0], dtype=mt.uint8).any().dtype is mt.uint8
    assert mt.tensor([1, 0]).any().dtype is mt.bool


def test_nan_is_left_out():
    x = mt.tensor([1.0, NAN, 3.0])
    assert x.nansum().item() == 4.0
    assert x.nanmean().item() == 2.0
    assert x.nanmedian().item() == 1.0
    assert x.nanquantile(0.5).item() == 2.0
    assert math.isnan(x.median().item())
    assert math.isnan(x.quantile(0.5).item())


@pytest.mark.parametrize("zeros", [0, 1, 2])
def test_gradients_of_products_need_no_care_for_zeros(zeros):
    x = [0.0] * zeros + [2.0, 3.0, 5.0][zeros:] + [7.0]
    others = [math.prod(x[:i] + x[i + 1 :]) for i in range(4)]
    assert grad(lambda t: t.prod(), x) == others
    pairs = [
        sum(math.prod(v for n, v in enumerate(x) if n not in (i, j)) for j in range(4) if j != i) for i in range(4)
    ]
    assert grad(lambda t: t.prod(), x, 2) == pairs
    tails = [sum(math.prod(x[:i] + x[i + 1 : end]) for end in range(i + 1, 5)) for i in range(4)]
    assert grad(lambda t: t.cumprod(0), x) == tails


# ---- extremes ----


def test_extremes_share_or_select_the_gradient():
    assert grad(lambda x: x.amax(), [1.0, 2.0, 2.0]) == [0.0, 0.5, 0.5]
    assert grad(lambda x: x.max(), [1.0, 2.0, 2.0]) == [0.0, 0.5, 0.5]
    assert grad(lambda x: x.max(0).values, [1.0, 2.0, 2.0]) == [0.0, 1.0, 0.0]
    assert grad(lambda x: x.median(), [3.0, 1.0, 2.0, 4.0]) == [0.0, 0.0, 1.0, 0.0]


def test_max_has_three_forms():
    x = mt.tensor([[1, 5], [7, 2]])
    assert x.max().item() == 7
    values, indices = mt.max(x, dim=1)
    assert (values.tolist(), indices.tolist()) == ([5, 7], [1, 0])
    assert mt.max(x, mt.tensor([3, 3])).tolist() == [[3, 5], [7, 3]]
    assert mt.max(x, 1, keepdim=True).indices.shape == (2, 1)
    assert mt.argmin(x).item() == 0
    assert mt.aminmax(x, dim=0).min.tolist() == [1, 2]


def test_nan_is_the_extreme():
    x = mt.tensor([1.0, NAN, 3.0, NAN])
    assert x.max(0).indices.item() == 1
    assert math.isnan(x.min().item())
    assert x.argmin().item() == 1


# ---- statistics ----


def test_deviations():
    x = mt.tensor([[1.0, 3.0], [2.0, 6.0]])
    assert x.var(1).tolist() == [2.0, 8.0]
    assert x.var(1, unbiased=False).tolist() == [1.0, 4.0]
    assert x.std(1, correction=0, keepdim=True).tolist() == [[1.0], [2.0]]
    assert [t.item() for t in mt.var_mean(x[0], 0)] == [2.0, 2.0]
    assert grad(lambda t: t.std(), [2.0, 2.0]) == [0.0, 0.0]
    with pytest.warns(UserWarning, match=r"std\(\): degrees of freedom is <= 0"):
        assert math.isnan(mt.tensor([1.0]).std().item())


@pytest.mark.parametrize(
    ("p", "expected"), [("fro", 5.0), (1, 7.0), (math.inf, 4.0), (-math.inf, 0.0), (0, 2.0), (3, 91.0 ** (1 / 3))]
)
def test_norms_and_their_gradient_at_zero(p, expected):
    assert mt.tensor([3.0, 0.0, -4.0], dtype=mt.float64).norm(p).item() == pytest.approx(expected, rel=1e-14)
    assert all(math.isfinite(g) for g in grad(lambda x: x.norm(p), [0.0, 0.0]))


def test_quantiles_interpolate():
    x = mt.tensor([0.0, 1.0, 2.0, 4.0])
    assert mt.quantile(x, mt.tensor([0.0, 0.5, 0.75])).tolist() == [0.0, 1.5, 2.5]
    assert [x.quantile(0.75, interpolation=how).item() for how in ("lower", "higher", "midpoint", "nearest")] == [
        2.0, 4.0, 3.0, 2.0,
    ]  # fmt: skip
    assert mt.quantile(mt.zeros(2, 3), 0.5, dim=1, keepdim=True).shape == (2, 1)


def test_modes_medians_and_counts():
    x = mt.tensor([3, 1, 1, 3, 2])
    assert [t.item() for t in x.mode()] == [1, 2]
    assert x.median().item() == 2
    assert [t.item() for t in x.kthvalue(4)] == [3, 0]
    assert mt.bincount(x, minlength=6).tolist() == [0, 2, 1, 2, 0, 0]
    assert mt.bincount(x, mt.ones(5)).dtype is mt.float32
    weights = mt.ones(5, requires_grad=True)
    (mt.bincount(x, weights) * mt.arange(4)).sum().backward()
    assert weights.grad.tolist() == [3.0, 1.0, 1.0, 3.0, 2.0]
    assert mt.histc(mt.tensor([1.0, 2.0, 3.0]), 4, 0, 3).tolist() == [0.0, 1.0, 1.0, 1.0]


def test_histc_counts_everything_where_the_width_of_its_bins_is_no_number():
    for extreme in (mt.finfo(mt.float32).min, mt.finfo(mt.float32).max):
        assert mt.histc(mt.tensor([extreme] * 3), 4).sum().item() == 3
    assert mt.histc(mt.tensor([-3.4e38, 3.4e38]), 4).tolist() == [1.0, 0.0, 0.0, 1.0]


# ---- scans ----


def test_scans():
    x = mt.tensor([3, 1, 2])
    assert x.cumsum(0).tolist() == [3, 4, 6]
    assert x.cumprod(0, dtype=mt.float32).tolist() == [3.0, 3.0, 6.0]
    values, indices = mt.cummin(mt.tensor([2.0, 1.0, 1.0, NAN, 0.0]), 0)
    assert indices.tolist() == [0, 1, 2, 3, 3]
    assert math.isnan(values[-1].item())
    assert mt.tensor(4).cumsum(0).item() == 4
    assert mt.diff(x).tolist() == [-2, 1]
    with pytest.raises(RuntimeError, match="diff expects input to be at least one-dimensional"):
        mt.diff(mt.tensor(1))
    assert mt.diff(x, append=mt.tensor([2])).tolist() == [-2, 1, 0]


def test_logcumsumexp_and_its_gradient_survive_infinities():
    x = mt.tensor([-math.inf, 0.0, 0.0], dtype=mt.float64)
    assert mt.logcumsumexp(x, 0).tolist() == pytest.approx([-math.inf, 0.0, math.log(2.0)])
    assert all(math.isfinite(g) for g in grad(lambda t: t.logcumsumexp(0), [-math.inf, 0.0, 1.0]))


@pytest.mark.parametrize("turn", [0.0, 1.5, math.inf, -math.inf])
def test_complex_logarithms_of_sums_survive_infinities(turn):
    nothing, other = complex(-math.inf, turn), complex(-math.inf, -1.0)
    x = mt.tensor([nothing, other, 1 + 2j, complex(math.inf, 1), 3j], dtype=mt.complex128)
    found = mt.logcumsumexp(x, 0).tolist()
    assert [z.real for z in found] == [-math.inf, -math.inf, 1, math.inf, math.inf]
    assert found[2:4] == [1 + 2j, complex(math.inf, 1)]


# ---- errors ----

MISUSE = [
    (lambda: mt.tensor([1]).mean(), DTypeError,
     "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
     "Got: Long. Pass dtype=, or convert with .float()."),
    (lambda: mt.zeros(0).max(), RuntimeError,
     "max(): Expected reduction dim to be specified for input.numel() == 0; got [0]. Specify the reduction dim with "
     "the 'dim' argument."),
    (lambda: mt.zeros(0, 2).amax(0), IndexError, "amax(): Expected reduction dim 0 to have non-zero size; got [0, 2]."),
    (lambda: mt.ones(2).sum(2), IndexError,
     "sum: Dimension out of range (expected to be in range of [-1, 0], but got 2)."),
    (lambda: mt.ones(2, 2).sum((0, 0)), RuntimeError, "sum: dim 0 appears multiple times in the list of dims; got (0, 0)."),
    (lambda: mt.tensor([True]).argmax(), DTypeError,
     "argmax: not implemented for bool; got mortice.bool. Use .to(mortice.uint8) first."),
    (lambda: mt.ones(3).kthvalue(4), RuntimeError,
     "kthvalue(): selected number k out of range for dimension 0; got k = 4 for size 3."),
    (lambda: mt.ones(2, 0).kthvalue(1), IndexError,
     "kthvalue(): Expected reduction dim 1 to have non-zero size; got [2, 0]."),
    (lambda: mt.ones(3).quantile(2.0), RuntimeError, "quantile() q must be in the range [0, 1] but got 2.0"),
    (lambda: mt.norm(mt.zeros(0), math.inf), RuntimeError,
     "norm: cannot compute the inf norm on an empty tensor because the operation does not have an identity; got shape "
     "[0]."),
    (lambda: mt.bincount(mt.tensor([-1])), RuntimeError,
     "bincount: only supports 1-d non-negative integral inputs; got -1."),
    (lambda: mt.std(3), TypeError, "std: expected a Tensor; got int."),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), MISUSE, ids=[text.split(":")[0] for _, _, text in MISUSE])
def test_misuse_says_what_is_wrong(call, error, text):
    with pytest.raises(error) as raised:
        call()
    assert str(raised.value) == text


def test_sums_products_and_averages_are_taken_in_the_dtype_of_out():
    x, double = mt.tensor([1e8, 1.0, -1e8]), mt.empty((), dtype=mt.float64)
    assert mt.sum(x, 0, out=double) is double and double.tolist() == 1.0
    assert mt.mean(x, 0, out=double).tolist() == 1 / 3 and mt.nansum(x, 0, out=double).tolist() == 1.0
    assert mt.nanmean(x, 0, out=double).tolist() == 1 / 3
    assert mt.cumsum(x, 0, out=mt.empty(3, dtype=mt.float64)).tolist() == [1e8, 1e8 + 1, 1.0]
    y, whole = mt.tensor([[1.5, 2.5], [3.0, -1.0]]), mt.empty(2, dtype=mt.int64)
    assert mt.sum(y, 0, out=whole).tolist() == [4, 1] and mt.prod(y, 0, out=whole).tolist() == [3, -2]
    assert mt.cumprod(y[0], 0, out=whole).tolist() == [1, 2] and mt.cumsum(y[0, 0], 0, out=whole[0]).tolist() == 1
    for function in (mt.sum, mt.prod, mt.mean, mt.cumsum, mt.cumprod):
        with pytest.raises(RuntimeError, match="expected out to have the dtype mortice.float64 that is asked for"):
            function(y, 0, dtype=mt.float64, out=mt.empty(2))
    with pytest.raises(RuntimeError, match="expected out of a floating point dtype"):
        mt.nansum(y, 0, out=whole)
    with pytest.raises(RuntimeError, match="could not infer output dtype"):
        mt.mean(whole, 0, out=mt.empty(()))


def test_sums_of_bools_in_bools_are_any_and_their_products_all():
    x, truth = mt.tensor([[0.5, 2.0], [0.0, -1.0], [0.0, 0.0]]), mt.empty(3, dtype=mt.bool)
    assert mt.sum(x, 1, dtype=mt.bool).tolist() == mt.sum(x, 1, out=truth).tolist() == [True, True, False]
    assert mt.prod(x, 1, dtype=mt.bool).tolist() == [True, False, False] and mt.nansum(x, dtype=mt.bool).item() is True
    assert mt.sum(mt.ones(512), dtype=mt.bool).item() is True
    for function in (mt.cumsum, mt.cumprod):
        for given in (x, x[0, 0]):
            with pytest.raises(DTypeError, match=rf"{function.__name__}: not implemented for 'Bool'"):
                function(given, 0, dtype=mt.bool)
        with pytest.raises(NotImplementedError):
            function(x[:, 0], 0, out=truth)
        with pytest.raises(NotImplementedError):
            getattr(truth, f"{function.__name__}_")(0)


def test_scans_in_place_keep_the_dtype():
    for name in ("cumsum_", "cumprod_"):
        assert getattr(mt.ones(3), name)(0, dtype=mt.float32).dtype is mt.float32
        assert getattr(mt.ones(3, dtype=mt.int32), name)(0).dtype is mt.int32
        with pytest.raises(RuntimeError, match="input tensor dtype float and output tensor dtype double should match"):
            getattr(mt.ones(3), name)(0, dtype=mt.float64)
        with pytest.raises(NotImplementedError, match="not implemented for 'Bool'"):
            getattr(mt.ones(3) > 0, name)(0)
    for x in (mt.ones(3) > 0, mt.ones(3, dtype=mt.complex64)):
        with pytest.raises(NotImplementedError, match="geometric_: not implemented"):
            x.geometric_(0.5)
