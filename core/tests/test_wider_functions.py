"""Functions beyond the everyday ones: divisors, differences and integrals, histograms, copies, packed factorisations."""

import inspect
import math
import operator

import pytest

import mortice as mt
from mortice.autograd import gradcheck, gradgradcheck

DEVICES = ["cpu", "strict:0", "strict_f32"]


def on(device):
    """Return a maker of tensors on a device, in its widest float dtype."""
    dtype = mt.float32 if device == "strict_f32" else mt.float64
    return lambda data: mt.tensor(data, dtype=dtype, device=device)


# ---- numbers taken apart ----


@pytest.mark.parametrize("device", DEVICES)
def test_divisors_and_multiples(device):
    x, y = mt.tensor([12, 0, -18, 7, 0], device=device), mt.tensor([18, 5, 12, -14, 0], device=device)
    assert mt.gcd(x, y).tolist() == [math.gcd(a, b) for a, b in zip(x.tolist(), y.tolist())]
    assert mt.lcm(x, y).tolist() == [math.lcm(a, b) for a, b in zip(x.tolist(), y.tolist())]
    # Neighbours in Fibonacci's sequence take the most steps.
    a, b = 4660046610375530309, 7540113804746346429
    assert mt.gcd(mt.tensor([a], device=device), mt.tensor([b], device=device)).item() == 1
    big = mt.tensor([255, 128], dtype=mt.uint8, device=device)
    assert mt.gcd(big, mt.tensor([51, 96], dtype=mt.uint8, device=device)).tolist() == [51, 32]


@pytest.mark.parametrize("device", DEVICES)
def test_frexp_takes_every_number_apart(device):
    values = [0.0, -0.0, 1.0, -3.0, 0.1, 2.0**100, 2.0**-140, math.inf, -math.inf]
    x = mt.tensor(values, device=device)
    mantissa, exponent = mt.frexp(x)
    assert exponent.dtype is mt.int32 and mt.frexp(x).mantissa is not None
    expected = [math.frexp(v) for v in x.tolist()[:-2]]
    assert mantissa.tolist()[:-2] == [m for m, _ in expected] and exponent.tolist()[:-2] == [e for _, e in expected]
    assert mantissa.tolist()[-2:] == [math.inf, -math.inf]
    half = mt.tensor([6.0, 0.375], dtype=mt.float16, device=device)
    assert mt.frexp(half).mantissa.tolist() == [0.75, 0.75] and mt.frexp(half).exponent.tolist() == [3, -1]


def test_the_gradient_of_frexp_is_a_power_of_two():
    x = mt.tensor([3.0, -0.1, 40.0], dtype=mt.float64, requires_grad=True)
    mt.frexp(x).mantissa.sum().backward()
    assert x.grad.tolist() == [2.0**-2, 2.0**3, 2.0**-6]


# ---- differences and integrals ----


@pytest.mark.parametrize("device", DEVICES)
def test_gradient_is_exact_for_parabolas(device):
    make = on(device)
    x = make([0.0, 0.5, 2.0, 3.0, 3.5])
    (slope,) = mt.gradient(x * x - x, spacing=(x,), edge_order=2)
    assert mt.allclose(slope, 2 * x - 1)
    even = make([0.0, 2.0, 4.0, 6.0])
    (slope,) = mt.gradient(even * even, spacing=2.0)
    assert slope.tolist() == [2.0, 4.0, 8.0, 10.0]
    grid = even.unsqueeze(1) * make([1.0, 2.0, 3.0])
    down, across = mt.gradient(grid, spacing=(2.0, 1.0))
    assert mt.allclose(down, make([1.0, 2.0, 3.0]).expand(4, 3)) and mt.allclose(across, even.unsqueeze(1).expand(4, 3))


@pytest.mark.parametrize("device", DEVICES)
def test_gradient_divides_by_a_spacing_of_zero(device):
    x = on(device)([0.0, 1.0, 4.0, 9.0, 16.0])
    for spacing in (0, 0.0):
        (slope,) = mt.gradient(x, spacing=spacing, edge_order=2)
        assert slope[0].isnan() and slope[1:].tolist() == [math.inf] * 4
    assert mt.gradient(x, spacing=0.5, edge_order=2)[0].tolist() == [0, 4, 8, 12, 16]


@pytest.mark.parametrize("device", DEVICES)
def test_trapezoids(device):
    make = on(device)
    y, x = make([[1.0, 2.0, 4.0], [0.0, 1.0, 0.0]]), make([0.0, 1.0, 3.0])
    assert mt.trapezoid(y).tolist() == [4.5, 1.0] and mt.trapz(y, dx=2).tolist() == [9.0, 2.0]
    assert mt.trapezoid(y, x).tolist() == [7.5, 1.5] and mt.trapezoid(y, axis=0).tolist() == [0.5, 1.5, 2.0]
    assert mt.cumulative_trapezoid(y, x).tolist() == [[1.5, 7.5], [0.5, 1.5]]
    with pytest.raises(TypeError, match="either x or dx"):
        mt.trapezoid(y, x, dx=1)
    with pytest.raises(RuntimeError, match="Currently, we only support dx as a real number"):
        mt.cumulative_trapezoid(y, dx=1j)
    assert mt.cumulative_trapezoid(y[:, :1], x[:1]).shape == (2, 0) and mt.trapezoid(y[:, :1]).tolist() == [0.0, 0.0]
    with pytest.raises(RuntimeError, match="one `x` value for each sample point; got 3 for 1"):
        mt.cumulative_trapezoid(y[:, :1], x)


# ---- histograms and norms ----


@pytest.mark.parametrize("device", DEVICES)
def test_histograms(device):
    make = on(device)
    x = make([0.0, 0.5, 1.0, 1.0, 2.0, 9.0])
    counts, edges = mt.histogram(x, 4, range=(0.0, 2.0))
    assert counts.tolist() == [1.0, 1.0, 2.0, 1.0] and edges.tolist() == [0.0, 0.5, 1.0, 1.5, 2.0]
    counts, _ = x.histogram(make([0.0, 1.0, 10.0]), weight=make([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), density=True)
    assert mt.allclose(counts, make([3 / 21, 18 / 21 / 9]))
    points = make([[0.1, 0.1], [0.9, 0.1], [0.9, 0.9], [0.2, 0.2]])
    assert mt.histogramdd(points[:, :0], []).hist.item() == 0  # points of no coordinates
    grid = mt.histogramdd(points, bins=[2, 2], range=[0.0, 1.0, 0.0, 1.0])
    assert grid.hist.tolist() == [[2.0, 0.0], [1.0, 1.0]] and [len(e) for e in grid.bin_edges] == [3, 3]
    with pytest.raises(TypeError, match=r"histogram: expected a number of bins beside range"):
        mt.histogram(x, make([0.0, 1.0]), range=(0.0, 2.0))
    with pytest.raises(RuntimeError, match=r"histogram: bins must be > 0"):
        mt.histogram(x, 0)


def test_renorm_scales_only_what_is_too_long():
    x = mt.tensor([[3.0, 4.0], [0.3, 0.4]], dtype=mt.float64, requires_grad=True)
    made = mt.renorm(x, 2, 0, 1.0)
    assert mt.allclose(made.detach(), mt.tensor([[0.6, 0.8], [0.3, 0.4]], dtype=mt.float64), atol=1e-6)
    assert gradcheck(lambda x: mt.renorm(x, 2, 0, 1.0), (x,))
    assert x.detach().clone().renorm_(1, 1, 0.7).abs().sum(0).tolist() == pytest.approx([0.7, 0.7], rel=1e-6)
    with pytest.raises(RuntimeError, match="renorm: Expected out tensor to have dtype"):
        mt.renorm(mt.ones(2, 2), 2, 0, 1.0, out=mt.empty(2, 2, dtype=mt.float64))


# ---- copies, in-place functions, host functions ----


def test_copies_have_memory_of_their_own():
    x = mt.arange(6.0).reshape(2, 3)
    for made, seen in [
        (mt.t_copy(x), x.t()), (mt.slice_copy(x, 1, 0, 3, 2), x[:, ::2]), (mt.select_copy(x, 0, 1), x[1]),
        (mt.expand_copy(x, (4, 2, 3)), x.expand(4, 2, 3)), (mt.diagonal_copy(x), x.diagonal()),
        *zip(mt.unbind_copy(x), x.unbind()), *zip(mt.split_copy(x, 2, 1), x.split(2, 1)),
    ]:  # fmt: skip
        assert mt.equal(made, seen)
        made.zero_()
    assert x.sum() == 15


def test_in_place_functions_write_their_argument():
    x = mt.tensor([1.0, 4.0, 9.0])
    assert mt.sqrt_(x) is x and x.tolist() == [1.0, 2.0, 3.0]
    assert mt.clamp_(x, max=2).tolist() == [1.0, 2.0, 2.0] and mt.exp_(x) is x
    assert mt.gcd_(mt.tensor([4]), mt.tensor([6])).item() == 2 and mt.i0_(mt.zeros(1)).item() == 1.0
    with pytest.raises(RuntimeError, match="leaf"):
        mt.sin_(mt.ones(1, requires_grad=True))


@pytest.mark.parametrize("device", DEVICES)
def test_fill_diagonal_wraps_in_tall_matrices(device):
    assert mt.zeros(3, 3, device=device).fill_diagonal_(2).tolist() == mt.eye(3).mul(2).tolist()
    tall = mt.zeros(7, 3, device=device).fill_diagonal_(1, wrap=True)
    assert tall.nonzero().tolist() == [[0, 0], [1, 1], [2, 2], [4, 0], [5, 1], [6, 2]]
    assert mt.zeros(2, 2, 2, device=device).fill_diagonal_(5).nonzero().tolist() == [[0, 0, 0], [1, 1, 1]]
    x = mt.ones(2, 2, requires_grad=True, device=device)
    x.clone().fill_diagonal_(0).sum().backward()
    assert x.grad.tolist() == [[0.0, 1.0], [1.0, 0.0]]


@pytest.mark.parametrize("device", DEVICES)
def test_python_functions_on_elements(device):
    x, y = mt.tensor([1.0, 2.0, 3.0], device=device), mt.tensor([10.0, 20.0, 30.0], device=device)
    view = x[1:]
    assert x.apply_(lambda v: v + 1) is x and view.tolist() == [3.0, 4.0]
    assert x.map_(y, lambda a, b: b - a).tolist() == [8.0, 17.0, 26.0]
    assert x.map2_(y, y, lambda a, b, c: a + b + c).tolist() == [28.0, 57.0, 86.0]
    with pytest.raises(RuntimeError, match="requires grad"):
        mt.ones(1, requires_grad=True).clone().apply_(abs)
    with pytest.raises(TypeError, match="map_: expected a function that returns numbers; got str from it."):
        x.map_(y, lambda a, b: f"{a}")


def test_as_strided_scatter_and_its_gradient():
    x = mt.zeros(3, 3, dtype=mt.float64, requires_grad=True)
    part = mt.ones(2, 2, dtype=mt.float64, requires_grad=True)
    made = mt.as_strided_scatter(x, part, (2, 2), (1, 2), 0)
    assert made.tolist() == [[1.0, 1.0, 1.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    assert gradcheck(lambda x, part: mt.as_strided_scatter(x, part, (2, 2), (1, 2), 0), (x, part))


def test_nonzero_static_fills_up_and_cuts():
    x = mt.tensor([[0, 1], [2, 3]])
    assert mt.nonzero_static(x, size=2).tolist() == [[0, 1], [1, 0]]
    assert x.nonzero_static(size=4, fill_value=-7).tolist() == [[0, 1], [1, 0], [1, 1], [-7, -7]]


@pytest.mark.parametrize("device", ["cpu", "strict_f32"])
def test_binomial_draws_have_the_right_moments(device):
    mt.manual_seed(3)
    n, p = (
        mt.tensor([0.0, 10.0, 10.0, 40.0, 5.0, 5.0], device=device),
        mt.tensor([0.5, 0.2, 0.9, 0.5, 0.0, 1.0], device=device),
    )
    made = mt.binomial(n.expand(4000, 6), p.expand(4000, 6))
    assert made.dtype is mt.float32 and bool(((made >= 0) & (made <= n)).all()) and mt.equal(made, made.floor())
    assert mt.allclose(made.mean(0), n * p, atol=0.2) and mt.allclose(made.var(0), n * p * (1 - p), rtol=0.1, atol=0.01)
    assert made[:, 4].tolist() == [0.0] * 4000 and made[:, 5].tolist() == [5.0] * 4000


@pytest.mark.parametrize("draw", [mt.poisson, lambda x: mt.binomial(x, x / 130), mt._standard_gamma])
def test_draws_do_not_change_where_what_was_taken_is_not_computed_again(draw, monkeypatch):
    x, found = mt.linspace(0.1, 90, 600).reshape(20, 30).t(), []
    for worth in (1, 1 << 40):
        for module in ("mortice.ops.counts", "mortice.distributions.gamma_draws"):
            monkeypatch.setattr(f"{module}._WORTH", worth)
        mt.manual_seed(5)
        found.append([draw(x).tolist(), draw(x[:0]).tolist(), mt.rand(2).tolist()])
    assert found[0] == found[1]


@pytest.mark.parametrize("draw", [lambda: mt.poisson(mt.full((5,), 9.9)), lambda: mt.binomial(mt.full((5,), 12.0), mt.full((5,), 0.8))])
def test_few_counts_take_one_uniform_each(draw):
    mt.manual_seed(3)
    draw()
    found = mt.get_rng_state()
    mt.manual_seed(3)
    mt.rand(5, dtype=mt.float64)
    assert mt.equal(found, mt.get_rng_state())


# ---- names ----


def test_typed_classes_make_and_recognise_tensors():
    x = mt.FloatTensor([1, 2])
    assert type(x) is mt.Tensor and isinstance(x, mt.FloatTensor) and not isinstance(x, mt.LongTensor)
    assert mt._cast_Long(x.detach()).dtype is mt.int64 and mt._cast_Double(x).dtype is mt.float64 and mt._cast_Float(x) is x
    assert mt.LongTensor(2, 3).shape == (2, 3) and mt.BoolTensor([1, 0]).tolist() == [True, False]
    assert x.type() == mt.typename(x) == "mortice.FloatTensor" and x.new([3]).dtype is mt.float32


def test_what_no_tensor_is():
    x = mt.ones(2)
    assert not (x.is_sparse or x.is_quantized or x.is_nested or x.is_meta or x.is_mps) and x.name is None
    assert mt.Tensor.is_mps.__get__(x) is False and mt.Tensor.is_mps != mt.Tensor.is_nested
    assert x.is_set_to(x) and not x.is_set_to(x.clone()) and not x[:1].is_set_to(x)


def test_shapes_that_do_not_broadcast_are_told_with_the_argument_and_what_the_others_want():
    with pytest.raises(RuntimeError, match=r"length 3 at -1! Mismatching argument at index 2 had \(3,\); .* to \[4, 2\]"):
        mt.broadcast_shapes((4, 1), 2, (3,))
    assert mt.broadcast_shapes((4, 1), 2, (1, 1, 1)) == (1, 4, 2)


WORDED = [
    "m.ones(3, 4)[0, 0.0:2]", 'm.ones(3)["0":"1"]', "m.ones(3).__setitem__(slice(0.0, 1), 2)",
    "m.diff(m.ones(3, 4), prepend=m.ones(2, 2))", "m.diff(m.ones(3, 4), append=m.ones(3))",
    "m.nn.FractionalMaxPool2d((), output_size=2)(m.ones(1, 1, 5, 5))", "m.nn.FractionalMaxPool3d(2, ())(m.ones(1, 5, 5, 5))",
    *[f"m.nn.MultiheadAttention(4, 2)(*[m.ones({q})] * 3, key_padding_mask=m.ones({mask}) > 0)" for q in ("3, 4", "3, 2, 4")
      for mask in ("2, 3, 1", "()")],
    *[f"m.nn.MultiheadAttention(4, 2)(*[m.ones({q})] * 3, attn_mask=m.ones({mask}) > 0)" for q in ("3, 4", "3, 2, 4")
      for mask in ("3", "2, 3, 1", "2, 3, 3, 3")],
]  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("call", WORDED)
def test_errors_are_of_pytorchs_class_and_in_its_words(call):
    said = []
    for m in (pytest.importorskip("torch"), mt):
        with pytest.raises(Exception) as error:  # noqa: PT011
            eval(call, {"m": m})
        said.append(error.value)
    assert isinstance(said[1], type(said[0]))
    assert str(said[0]).removesuffix(".") in str(said[1]).replace("mortice.Size", "torch.Size")


def test_axis_is_another_name_of_dim():
    x, index = mt.arange(6.0).reshape(2, 3), mt.tensor([[0, 0, 1]])
    assert mt.equal(x.unsqueeze(axis=0), x.unsqueeze(0)) and mt.equal(x[None].squeeze(axis=0), x)
    assert mt.equal(x.gather(axis=0, index=index), x.gather(0, index))
    assert mt.equal(mt.index_select(x, axis=1, index=index[0]), mt.index_select(x, 1, index[0]))
    for name in ("chunk", "tensor_split"):
        assert mt.equal(getattr(x, name)(3, axis=1)[2], getattr(x, name)(3, 1)[2])
    assert mt.equal(x.unbind(axis=1)[0], x.unbind(1)[0]) and mt.equal(mt.diff(x, axis=0), mt.diff(x, dim=0))
    assert mt.equal(x.select(axis=1, index=2), x[:, 2]) and mt.equal(x.narrow(axis=1, start=1, length=1), x[:, 1:2])
    assert mt.equal(mt.linalg.vector_norm(x, axis=1), mt.linalg.vector_norm(x, dim=1))


@pytest.mark.oracle
def test_whatever_takes_dim_by_pytorchs_parser_takes_axis() -> None:
    torch = pytest.importorskip("torch")
    builtin, asked = (type(torch.sum), type(torch.Tensor.sum)), 0
    for place in ("", "linalg", "fft", "special", "nn.functional", "Tensor"):
        theirs, mine = operator.attrgetter(place)(torch) if place else torch, operator.attrgetter(place)(mt) if place else mt
        for name in dir(theirs):
            fn = getattr(mine, name, None)
            if not isinstance(getattr(theirs, name), builtin) or fn is None or name[0] == "_" or name in ("norm_except_dim", "stride"):
                continue
            try:
                names = inspect.signature(fn).parameters
            except (TypeError, ValueError):
                continue
            for wanted, other in (("dim", "axis"), ("keepdim", "keepdims")):
                if wanted in names:
                    asked += 1
                    with pytest.raises(Exception) as caught:  # something else is missing
                        fn(*([object()] if place == "Tensor" else []), **{other: 0}, no_such_name=1)
                    assert f"argument '{other}'" not in str(caught.value), (place, name)
    assert asked > 100



# ---- linear algebra ----


@pytest.mark.parametrize("device", DEVICES)
def test_packed_reflections_multiply_as_q_does(device):
    make = on(device)
    x = make([[[2.0, 1.0], [0.5, -3.0], [1.0, 2.0]], [[0.0, 1.0], [4.0, 2.0], [-1.0, 2.0]]])
    packed, tau = mt.geqrf(x)
    q = mt.orgqr(packed, tau)
    r = packed[:, :2].triu()
    assert mt.allclose(q @ r, x, atol=1e-5) and mt.allclose(
        q.mT @ q, make([[1.0, 0.0], [0.0, 1.0]]).expand(2, 2, 2), atol=1e-5
    )
    other = make([[[1.0, 2.0, 3.0], [0.0, 1.0, 5.0], [2.0, 0.0, 1.0]]]).expand(2, 3, 3)
    full = mt.ormqr(packed, tau, mt.eye(3, dtype=x.dtype, device=device).expand(2, 3, 3))
    assert mt.allclose(full[..., :2], q, atol=1e-5)
    assert mt.allclose(mt.ormqr(packed, tau, other, transpose=True), full.mT @ other, atol=1e-5)
    assert mt.allclose(mt.ormqr(packed, tau, other, left=False), other @ full, atol=1e-5)


def test_ormqr_differentiates():
    packed, tau = mt.geqrf(mt.tensor([[2.0, 1.0], [0.5, -3.0], [1.0, 2.0]], dtype=mt.float64))
    inputs = [t.clone().requires_grad_() for t in (packed, tau, mt.ones(3, 1, dtype=mt.float64))]
    assert gradcheck(mt.ormqr, inputs) and gradgradcheck(mt.ormqr, inputs)
    with pytest.raises(NotImplementedError, match="derivative"):
        mt.geqrf(packed.requires_grad_()).a.sum().backward()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_indefinite_factorisation_solves(device, n):
    make = on(device)
    rows = [[math.sin(7.0 * i * j + 3 * i + 5 * j) + (i + j == n - 1) for j in range(n)] for i in range(n)]
    a = make(rows)
    a = mt.stack([a + a.mT - 2 * mt.diag(a.diagonal()), a @ a.mT + mt.eye(n, dtype=a.dtype, device=device)])
    a = a + 0.01 * mt.eye(n, dtype=a.dtype, device=device)
    b = make([[1.0 + i, 2.0 - i] for i in range(n)])
    packed, pivots = mt.linalg.ldl_factor(a)
    assert pivots.dtype is mt.int32 and pivots.shape == (2, n) and bool((pivots[1] > 0).all())
    tolerance = 2e-3 if a.dtype is mt.float32 else 1e-9
    assert mt.allclose(a @ mt.linalg.ldl_solve(packed, pivots, b), b.expand(2, n, 2), atol=tolerance, rtol=tolerance)


def test_hermitian_factorisation_solves_and_zero_pivots_are_told():
    a = mt.tensor([[0.0, 1 + 2j, 3.0], [1 - 2j, 0.0, 1j], [3.0, -1j, 1.0]], dtype=mt.complex128)
    packed, pivots, info = mt.linalg.ldl_factor_ex(a, hermitian=True)
    b = mt.tensor([[1.0], [2j], [3.0]], dtype=mt.complex128)
    assert info.item() == 0 and bool((pivots < 0).any())
    assert mt.allclose(a @ mt.linalg.ldl_solve(packed, pivots, b, hermitian=True), b)
    assert mt.linalg.ldl_factor_ex(mt.zeros(2, 2)).info.item() == 1
    with pytest.raises(mt.linalg.LinAlgError, match=r"ldl_factor: D\[1,1\] is zero"):
        mt.linalg.ldl_factor(mt.zeros(2, 2))


def test_lobpcg_finds_the_ends_of_the_spectrum():
    mt.manual_seed(0)
    n = 40
    a = mt.diag(mt.arange(1.0, n + 1, dtype=mt.float64)) + 0.1 * mt.ones(n, n, dtype=mt.float64)
    b = mt.diag(mt.linspace(1.0, 2.0, n, dtype=mt.float64))
    exact = mt.linalg.eigvalsh(a)
    assert mt.allclose(mt.lobpcg(a, 3)[0], exact.flip(0)[:3], rtol=1e-9)
    values, vectors = mt.lobpcg(a, 2, b, largest=False, tol=1e-10)
    assert mt.allclose(a @ vectors, b @ vectors * values, atol=1e-6)
    a.requires_grad_()
    values, vectors = mt.lobpcg(a, 1, tol=1e-12)
    values.sum().backward()
    assert mt.allclose(a.grad, vectors @ vectors.mT, atol=1e-9)
    with pytest.raises(ValueError, match="lobpcg"):
        mt.lobpcg(mt.eye(4), 2)


@pytest.mark.parametrize("dtype", [mt.float16, mt.bfloat16], ids=["float16", "bfloat16"])
def test_factorisations_refuse_half_precision_as_ops_too(dtype):
    from mortice.op import OPS

    x = mt.eye(2, dtype=dtype)
    for name, attrs in (
        ("eigh", {"upper": False}),
        ("eig", {}),
        ("det", {}),
        ("inv_ex", {}),
        ("qr", {"mode": "reduced"}),
    ):
        with pytest.raises(mt.errors.DTypeError, match=f"{name}: Low precision dtypes not supported"):
            OPS[name].fn(x, **attrs)


def test_what_beta_zero_leaves_out_has_a_gradient_of_zeros():
    a = mt.ones(2, 2)
    for fn, x, args in [
        (mt.addmm, mt.full((2, 2), math.nan), (a, a)), (mt.addmv, mt.full((2,), math.nan), (a, a[0])),
        (mt.baddbmm, mt.full((1, 2, 2), math.nan), (a[None], a[None])), (mt.addr, mt.full((2, 2), math.nan), (a[0], a[0])),
    ]:  # fmt: skip
        x.requires_grad_()
        made = fn(x, *args, beta=0)
        made.sum().backward()
        assert not made.isnan().any() and x.grad.eq(0).all(), fn


def test_erfinv_and_sinc_keep_their_operand_not_their_result():
    for fn in (mt.erfinv, mt.sinc):
        x = mt.tensor([0.3, -0.2], dtype=mt.float64, requires_grad=True)
        made = fn(x)
        (slope,) = mt.autograd.grad(made.sum(), x, retain_graph=True)
        made.mul_(2)
        made.sum().backward()
        assert mt.allclose(x.grad, 2 * slope)


def test_stacks_take_lists_of_tensors():
    x = mt.ones(2, 2)
    for stack in (mt.hstack, mt.vstack, mt.dstack, mt.column_stack, mt.row_stack, mt.linalg.multi_dot):
        with pytest.raises(TypeError, match="argument 'tensors' must be tuple of Tensors, not Tensor"):
            stack(x)
        with pytest.raises(TypeError, match="expected Tensor as element 0; got NoneType"):
            stack([None, x])
    with pytest.raises(TypeError, match="combinations: expected a Tensor; got list"):
        mt.combinations([1, 2])
    with pytest.raises(RuntimeError, match="polar: Expected both inputs to be Half, Float or Double tensors but got Long and Long"):
        mt.polar(mt.tensor(1), mt.tensor(1))


SEGMENTS = [  # reduce, initial, what lengths 2, 0 and 3 of 1, 2, 3, 4, 5 give
    ("sum", None, [3.0, 0.0, 12.0]), ("mean", None, [1.5, math.nan, 4.0]), ("prod", None, [2.0, 1.0, 60.0]),
    ("max", None, [2.0, -math.inf, 5.0]), ("min", None, [1.0, math.inf, 3.0]), ("sum", 10, [13.0, 10.0, 22.0]),
    ("mean", 3, [3.0, 3.0, 5.0]), ("max", 4, [4.0, 4.0, 5.0]), ("amax", 4, [4.0, 4.0, 5.0]), ("amin", None, [1.0, math.inf, 3.0]),
]  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("reduce, initial, want", SEGMENTS)
def test_segments_are_reduced_one_by_one(device, reduce, initial, want):
    x = mt.arange(1.0, 6.0, device=device)
    lengths, offsets = mt.tensor([2, 0, 3], device=device), mt.tensor([0, 2, 2, 5], device=device)
    rows = x[:, None].expand(5, 2)
    for made in (
        mt.segment_reduce(x, reduce, lengths=lengths, initial=initial),
        mt.segment_reduce(x, reduce, offsets=offsets, initial=initial),
        mt.segment_reduce(rows, reduce, lengths=lengths, initial=initial)[:, 1],
        mt.segment_reduce(rows.T, reduce, lengths=lengths.expand(2, 3), axis=1, initial=initial)[1],
    ):
        assert str(made.tolist()) == str(want)


@pytest.mark.parametrize("device", DEVICES)
def test_segments_give_gradients_to_what_they_hold(device):
    x = mt.tensor([1.0, 3.0, 2.0, 5.0, 4.0], requires_grad=True, device=device)
    lengths = mt.tensor([2, 2], device=device)
    mt.segment_reduce(x, "max", lengths=lengths, unsafe=True).sum().backward()
    assert x.grad.tolist() == [0.0, 1.0, 0.0, 1.0, 0.0]
    # What it began with takes no part of the gradient, be it as large as an element or larger.
    ties = mt.tensor([2.0, 2.0, 1.0, 3.0], requires_grad=True, device=device)
    for reduce, initial, want in (("max", 2, [0.5, 0.5, 0, 1]), ("max", 2.5, [0, 0, 0, 1]), ("min", 2, [0.5, 0.5, 1, 0])):
        made = mt.segment_reduce(ties, reduce, lengths=lengths, initial=initial)
        assert mt.autograd.grad(made.sum(), ties)[0].tolist() == want
    # The derivative of a product by its only nan is what the others give.
    alone = mt.tensor([2.0, math.nan, 3.0, 4.0], requires_grad=True, device=device)
    (grad,) = mt.autograd.grad(mt.segment_reduce(alone, "prod", lengths=lengths).sum(), alone)
    assert str(grad.tolist()) == "[nan, 2.0, 4.0, 3.0]"
    for wrong in ({"lengths": lengths}, {"lengths": mt.tensor([6, -1], device=device)}, {}, {"offsets": lengths, "lengths": lengths}):
        with pytest.raises(RuntimeError, match="(?i)segment_reduce: expected"):
            mt.segment_reduce(x, "sum", **wrong)
    with pytest.raises(RuntimeError, match="add up to 0"):  # which they do in 64 bits
        mt.segment_reduce(x[:0], "sum", lengths=mt.tensor([2**62] * 4, device=device))


@pytest.mark.parametrize("offsets", [[1, 3, 6], [2, 2, 4], [0, 6], [6, 6]])
def test_what_lies_outside_of_all_offsets_takes_no_part(offsets):
    x = mt.arange(1.0, 7.0, dtype=mt.float64, requires_grad=True)
    made = mt.segment_reduce(x, "sum", offsets=mt.tensor(offsets))
    assert made.tolist() == [sum(range(a + 1, b + 1)) for a, b in zip(offsets, offsets[1:])]
    made.sum().backward()
    assert x.grad.tolist() == [float(offsets[0] <= i < offsets[-1]) for i in range(6)]


@pytest.mark.parametrize("offsets", [[0, 7], [-1, 3], [3, 1]])
def test_offsets_outside_of_the_data_are_refused(offsets):
    with pytest.raises(RuntimeError, match="(?i)segment_reduce: expected"):
        mt.segment_reduce(mt.ones(6), "sum", offsets=mt.tensor(offsets))


def test_ldexp_keeps_the_dtype_and_reaches_beyond_it(device):
    x = mt.tensor([2.0**-14, 1.5], dtype=mt.float16, device=device)
    made = mt.ldexp(x, mt.tensor([20, -3], device=device))  # 2**20 is no half
    assert made.dtype is mt.float16 and made.tolist() == [64.0, 0.1875]
    y = mt.tensor([2.0**-100, 1.5, 2.0**100, 1.0, 3.0], device=device, requires_grad=True)
    powers = mt.tensor([150, -149, -249, 200, 0], device=device)
    made = mt.ldexp(y, powers)
    assert made.tolist() == [2.0**50, 2.0**-148, 2.0**-149, math.inf, 3.0] and made.grad_fn.name() == "LdexpBackward0"
    made[1::3].sum().backward()
    assert y.grad.tolist() == [0, 2.0**-149, 0, 0, 1]
