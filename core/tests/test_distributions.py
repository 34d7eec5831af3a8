"""Distributions: closed forms, draws against distribution functions and moments, gradients of draws, validation, PyTorch."""

from __future__ import annotations

import itertools
import math
import pickle
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from distribution_table import COUNTS, FACTOR, MATRIX, PLAIN, REAL, SIMPLEX, TABLE, UNIT, make, mixtures

import mortice as mt
from mortice import distributions as d
from mortice.distributions import constraints
from mortice.distributions.gamma_draws import _standard_gamma, log_gamma_slope, log_odds_slope

torch: Any = None
IDS = [f"{name}-{'-'.join(parameters)}" for name, parameters, _ in TABLE]
table = pytest.mark.parametrize(("name", "parameters", "value"), TABLE, ids=IDS)


@pytest.fixture(autouse=True)
def _seeded() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Low df values detected")
        mt.manual_seed(7)
        yield


def t64(value: Any) -> Any:
    return mt.tensor(value, dtype=mt.float64)


def event(module: Any, value: Any) -> Any:
    first = value[0]
    return module.tensor(value, dtype=module.int64 if isinstance(first, int) else module.float64)


def flat(t: Any) -> list[float]:
    return t.detach().reshape(-1).tolist()


# ---- closed forms ----


def test_well_known_values() -> None:
    assert d.Normal(0.0, 1.0).log_prob(mt.tensor(0.0)).item() == pytest.approx(-0.5 * math.log(2 * math.pi))
    assert d.Normal(1.0, 2.0).cdf(mt.tensor(1.0)).item() == pytest.approx(0.5)
    # A cdf is asked at the ends of an open support, and beyond them where the base tells the value.
    assert flat(d.LogNormal(0.0, t64(1.0)).cdf(t64([0.0, 1.0]))) == pytest.approx([0.0, 0.5])
    assert flat(d.Weibull(t64(1.0), 2.0).cdf(t64([0.0, 1.0]))) == pytest.approx([0.0, 1 - math.exp(-1)])
    with pytest.raises(ValueError, match="within the support"):
        d.LogNormal(0.0, 1.0).cdf(mt.tensor(-1.0))
    assert d.Poisson(t64(3.0)).log_prob(t64(2.0)).exp().item() == pytest.approx(4.5 * math.exp(-3))
    assert d.Binomial(4, t64(0.5)).log_prob(t64(2.0)).exp().item() == pytest.approx(6 / 16)
    assert d.Categorical(t64([1.0, 1.0, 2.0])).entropy().item() == pytest.approx(1.5 * math.log(2))
    assert d.Beta(t64(2.0), t64(3.0)).log_prob(t64(0.5)).exp().item() == pytest.approx(12 * 0.5 * 0.25)
    assert d.kl_divergence(d.Normal(0.0, 1.0), d.Normal(1.0, 1.0)).item() == pytest.approx(0.5)
    # Where PyTorch gives nan: the density of shape below 1 is greatest at 0, and of two concentrations above 1 inside.
    assert d.Weibull(1.0, 0.7).mode.item() == 0
    assert d.Kumaraswamy(t64(2.0), t64(3.0)).mode.item() == pytest.approx(math.sqrt(1 / 5))
    # Where PyTorch gives infinity, although one allows all that the other does.
    same = d.kl_divergence(d.ContinuousBernoulli(t64(0.3)), d.Uniform(t64(0.0), t64(1.0)))
    assert same.item() == pytest.approx(-d.ContinuousBernoulli(t64(0.3)).entropy().item())


# Neither has PyTorch these.
WITHOUT_CDF = {"Beta", "FisherSnedecor", "RelaxedBernoulli", "StudentT", "VonMises"}
WITHOUT_INVERSE = {"Chi2", "Gamma", "InverseGamma"}


@table
def test_a_density_is_the_slope_of_its_distribution_function(name: str, parameters: Any, value: Any) -> None:
    dist, _ = make(mt, name, parameters)
    x = event(mt, value)
    if dist.support.is_discrete or dist.event_shape:
        pytest.skip("discrete, or of vectors")
    if name in WITHOUT_CDF:
        with pytest.raises(NotImplementedError):
            dist.cdf(x)
        return
    h = 1e-5
    slope = (dist.cdf(x + h) - dist.cdf(x - h)) / (2 * h)
    assert flat(slope) == pytest.approx(flat(dist.log_prob(x).exp()), rel=1e-5, abs=1e-8)
    if name in WITHOUT_INVERSE:
        with pytest.raises(NotImplementedError):
            dist.icdf(dist.cdf(x))
    else:
        assert flat(dist.icdf(dist.cdf(x))) == pytest.approx(flat(x), rel=1e-6)


@table
def test_probabilities_of_all_values_add_up_to_one(name: str, parameters: Any, value: Any) -> None:
    dist, _ = make(mt, name, parameters)
    if not dist.has_enumerate_support:
        pytest.skip("has too many values")
    total = dist.log_prob(dist.enumerate_support()).exp().sum(0)
    assert flat(total) == pytest.approx([1.0] * total.numel())
    entropy = -(dist.log_prob(dist.enumerate_support()).exp() * dist.log_prob(dist.enumerate_support())).sum(0)
    assert flat(dist.entropy()) == pytest.approx(flat(entropy))


# ---- draws ----


@table
def test_draws_follow_the_distribution(name: str, parameters: Any, value: Any) -> None:
    dist, _ = make(mt, name, parameters)
    n = 4000
    x = dist.sample((n,))
    assert tuple(x.shape) == (n, *dist.batch_shape, *dist.event_shape)
    assert not x.requires_grad and bool(dist.support.check(x).all())
    x = x.to(mt.float64)
    try:
        if not dist.support.is_discrete and not dist.event_shape:
            # Kolmogorov and Smirnov's distance, below 2 / sqrt(n) but once in 1,500 samples.
            p = dist.cdf(x).sort(0).values.reshape(n, -1)
            steps = mt.arange(1, n + 1, dtype=p.dtype).unsqueeze(-1) / n
            assert (p - steps).abs().max().item() < 2 / math.sqrt(n)
            return
    except NotImplementedError:
        pass
    try:
        mean, variance = dist.mean, dist.variance
    except NotImplementedError:
        return
    if name == "VonMises":  # its moments are of angles on a circle
        x = (x - dist.loc + math.pi) % (2 * math.pi) - math.pi + dist.loc
        variance = x.var(0)
    finite = mean.isfinite() & variance.isfinite() & (variance < 1e3)
    error = ((x.mean(0) - mean).abs() / (variance / n).sqrt().clamp(min=1e-9)).masked_fill(~finite, 0)
    assert error.max().item() < 4.5
    if name not in ("FisherSnedecor", "StudentT", "VonMises", "Pareto"):  # whose fourth moments are large or infinite
        spread = (x.var(0) / variance).masked_fill(~finite | (variance == 0), 1)
        assert (spread - 1).abs().max().item() < 0.35


@pytest.mark.parametrize(("n", "p"), [(5, 0.3), (40, 0.5), (1000, 0.02), (1000, 0.97), (100000, 0.4), (3, 0.0), (3, 1.0)])
def test_binomial_draws_of_all_sizes(n: int, p: float) -> None:
    x = d.Binomial(n, t64(p)).sample((4000,))
    assert x.min().item() >= 0 and x.max().item() <= n and bool((x == x.floor()).all())
    deviation = math.sqrt(n * p * (1 - p))
    assert abs(x.mean().item() - n * p) <= 4.5 * deviation / math.sqrt(4000)
    assert abs(x.std().item() - deviation) <= 0.06 * deviation


@pytest.mark.parametrize("a", [0.001, 0.05, 0.7, 1.0, 3.0, 200.0])
def test_gamma_draws_and_logs_of_small_shapes(a: float) -> None:
    n = 4000
    z = _standard_gamma(t64(a).expand(n))
    assert (z > 0).all()
    p = mt.special.gammainc(t64(a), z).sort().values
    if a >= 0.05:  # below, most draws are too small for a float64
        assert (p - mt.arange(1, n + 1, dtype=p.dtype) / n).abs().max().item() < 2 / math.sqrt(n)
    x = d.Dirichlet(mt.full((3,), a)).sample((1000,))
    assert bool(x.isfinite().all()) and (x.sum(-1) - 1).abs().max().item() < 1e-5


def test_the_slope_of_gamma_draws_agrees_with_the_slope_of_their_quantiles() -> None:
    h = 1e-6
    for a, z in itertools.product((0.05, 0.3, 1.0, 2.5, 30.0, 400.0), (0.2, 0.8, 1.0, 1.3, 3.0)):
        z = z * a
        dF = (mt.special.gammainc(t64(a * (1 + h)), t64(z)) - mt.special.gammainc(t64(a * (1 - h)), t64(z))) / (2 * h * a)
        density = d.Gamma(t64(a), t64(1.0)).log_prob(t64(z)).exp()
        if density.item() < 1e-12:
            continue
        wanted = (-dF / (density * z)).item()
        assert log_gamma_slope(t64(a), t64(z).log()).item() == pytest.approx(wanted, rel=1e-5)


def test_the_slope_of_gamma_draws_at_known_points() -> None:
    # From 40 digits of the incomplete gamma function: (a, log z, d log z / d a).
    for a, log_z, wanted in (
        (0.001, 0.0, 597.2229774959449), (0.1, -9.892051477398155, 94.68773673788064), (0.01, -4.605170185988091, 409.44035676054335),
    ):  # fmt: skip
        assert log_gamma_slope(t64(a), t64(log_z)).item() == pytest.approx(wanted, rel=1e-6)


def test_the_slope_of_beta_draws_where_their_quantiles_are_powers() -> None:
    # With b = 1 the distribution function is x ** a, so that the quantile of p is p ** (1 / a).
    for a, odds in itertools.product((0.001, 0.1, 1.0, 7.0, 1000.0), (-30.0, -3.0, -0.1, 0.5, 2.0, 12.0)):
        log_x = -math.log1p(math.exp(-odds))
        wanted = -log_x * (1 + math.exp(odds)) / a
        assert log_odds_slope(t64(a), t64(1.0), t64(odds)).item() == pytest.approx(wanted, rel=1e-6)
    # From differences of the incomplete beta function.
    for a, b, x, wanted in ((30.0, 0.1, 0.9910340420986805, 0.0339895816), (0.1, 1000.0, 2.662389156828639e-4, 14.1522789)):
        assert log_odds_slope(t64(a), t64(b), t64(x).logit()).item() == pytest.approx(wanted, rel=1e-6)


def test_the_gradient_of_a_beta_draw_is_a_function_of_the_draw() -> None:
    a = t64([0.02, 0.5, 1.0, 4.0, 90.0]).requires_grad_()
    x = d.Beta(a, t64(1.0)).rsample()
    (g,) = mt.autograd.grad(x.sum(), a)
    assert flat(g) == pytest.approx(flat(-x * x.log() / a), rel=1e-6, abs=1e-300)
    b = a.detach().requires_grad_()
    x = d.Beta(t64(1.0), b).rsample()
    (g,) = mt.autograd.grad(x.sum(), b)
    assert flat(g) == pytest.approx(flat((1 - x) * (1 - x).log() / b), rel=1e-6, abs=1e-11)


def test_second_gradients_of_dirichlet_draws() -> None:
    # The mean of x0 ** 2 is a (a + 1) / (s (s + 1)), s the sum of the concentrations.
    c = t64([1.5, 0.8, 2.0])
    n = 4000

    def mean(a: Any) -> Any:
        return d.Dirichlet(mt.stack([a, c[1], c[2]]).expand(n, 3)).rsample()[:, 0].square().mean()

    def exact(a: Any) -> Any:
        s = a + 2.8
        return a * (a + 1) / (s * (s + 1))

    for f, tolerance in ((mt.func.grad, 0.06), (lambda f: mt.func.grad(mt.func.grad(f)), 0.3)):
        assert f(mean)(c[0]).item() == pytest.approx(f(exact)(c[0]).item(), rel=tolerance)
    out, tangent = mt.func.jvp(mean, (c[0],), (t64(1.0),))
    assert tangent.item() == pytest.approx(mt.func.grad(exact)(c[0]).item(), rel=0.06)


def test_shares_are_never_none_and_never_all() -> None:
    for dtype in (mt.float32, mt.float64):
        x = d.Beta(mt.tensor(1e-5, dtype=dtype), mt.tensor(1e-5, dtype=dtype)).sample((500,))
        assert bool((x > 0).all()) and bool((x < 0.1).any()) and float(x.max()) == 1 - mt.finfo(dtype).eps / 2


def _mean_gradient(make_one: Callable[[Any], Any], parameter: Any, f: Callable[[Any], Any], n: int = 20000) -> Any:
    p = parameter.clone().requires_grad_()
    return mt.autograd.grad(f(make_one(p).rsample((n,))).mean(0).sum(), p)[0]


def test_gradients_of_draws_are_those_of_the_means() -> None:
    a = t64([0.4, 1.5, 6.0])
    assert flat(_mean_gradient(lambda p: d.Gamma(p, 2.0), a, lambda x: x)) == pytest.approx([0.5] * 3, rel=0.05)
    logs = _mean_gradient(lambda p: d.Gamma(p, 2.0), a, lambda x: x.log())
    assert flat(logs) == pytest.approx(flat(mt.polygamma(1, a)), rel=0.05)
    c = t64([0.6, 2.0, 4.0])
    wanted = flat(t64([1.0, 1.0, 1.0]) / c.sum() - c / c.sum() ** 2)  # of the mean of the first component
    wanted = [(c.sum() - c[0]).item() / c.sum().item() ** 2, *[-c[0].item() / c.sum().item() ** 2] * 2]
    got = _mean_gradient(lambda p: d.Dirichlet(p), c, lambda x: x[..., 0])
    assert flat(got) == pytest.approx(wanted, rel=0.08, abs=0.004)
    beta = _mean_gradient(lambda p: d.Beta(p, t64(3.0)), t64([0.5, 2.0]), lambda x: x)
    assert flat(beta) == pytest.approx([3 / 3.5**2, 3 / 5**2], rel=0.08)
    half = _mean_gradient(lambda p: d.StudentT(p), t64([5.0]), lambda x: x.square())
    assert half.item() == pytest.approx(-2 / 9, rel=0.4)


def test_second_gradients_of_gamma_draws() -> None:
    a = t64(2.0).requires_grad_()
    x = d.Gamma(a, 1.0).rsample((4000,))
    (g,) = mt.autograd.grad(x.log().mean(), a, create_graph=True)
    (h,) = mt.autograd.grad(g, a)
    assert h.item() == pytest.approx(mt.polygamma(2, t64(2.0)).item(), rel=0.1)


@table
def test_reparameterised_draws_carry_gradients(name: str, parameters: Any, value: Any) -> None:
    dist, tensors = make(mt, name, parameters, grad=True)
    if not dist.has_rsample:
        with pytest.raises(NotImplementedError):
            dist.rsample()
        return
    x = dist.rsample((3,))
    assert x.requires_grad
    grads = mt.autograd.grad(x.square().sum(), tensors, allow_unused=True)
    assert any(g is not None for g in grads)
    assert all(bool(g.isfinite().all()) for g in grads if g is not None)


# ---- shapes, validation, transforms ----


@table
def test_expanding_repeats_the_distribution(name: str, parameters: Any, value: Any) -> None:
    dist, _ = make(mt, name, parameters)
    x = event(mt, value)
    wide = dist.expand((2, *dist.batch_shape))
    assert tuple(wide.batch_shape) == (2, *dist.batch_shape) and wide.event_shape == dist.event_shape
    logs = dist.log_prob(x)
    assert flat(wide.log_prob(x)) == pytest.approx(flat(logs.expand(mt.broadcast_shapes(wide.batch_shape, logs.shape))))
    assert tuple(wide.sample((3,)).shape) == (3, 2, *dist.batch_shape, *dist.event_shape)
    copied = pickle.loads(pickle.dumps(dist))
    assert flat(copied.log_prob(x)) == flat(dist.log_prob(x))


def test_distributions_of_ones_own_are_made_anew_as_those_of_pytorch_are() -> None:
    class Doubled(d.Normal):
        def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
            return super().expand(batch_shape, self._get_checked_instance(Doubled, _instance))

    class Unready(Doubled):
        def __init__(self) -> None:
            super().__init__(0.0, 1.0)

    class Shifted(d.Categorical):
        arg_constraints = {"shift": d.constraints.real}

        def __init__(self, shift: Any) -> None:
            self.shift = shift
            super().__init__(logits=shift[..., None] * mt.arange(3.0))

        def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
            new = self._get_checked_instance(Shifted, _instance)
            new.shift = self.shift.expand(batch_shape)
            return super().expand(batch_shape, new)

    class Sealed(d.Normal):
        def __init__(self) -> None:
            super().__init__(0.0, 1.0)

    class Between(d.Uniform):
        pass

    made = Doubled(mt.zeros(()), 1.0).expand((2,))
    assert type(made) is Doubled and made.log_prob(mt.zeros(2)).shape == (2,)
    made = Shifted(mt.tensor(2.0)).expand((2,))
    assert made.shift.shape == (2,) and made.logits.shape == (2, 3) and made.entropy().shape == (2,)
    assert Between(0.0, 1.0).expand((2,)).low.shape == (2,)
    for one, base in ((Unready(), "Doubled"), (Sealed(), "Normal")):
        with pytest.raises(NotImplementedError, match=rf"of {base} .* must also define a custom .expand\(\) method"):
            one.expand((2,))


def test_a_transform_may_be_a_module_too() -> None:
    class Scaled(d.transforms.Transform, mt.nn.Module):
        domain = codomain = d.constraints.real

        def __init__(self) -> None:
            super().__init__(cache_size=1)
            self.layer = mt.nn.Linear(1, 1)

        __hash__ = mt.nn.Module.__hash__

        def _call(self, x: Any) -> Any:
            return self.layer(x)

    scaled, x = Scaled(), mt.ones(1, 1)
    assert list(scaled.state_dict()) == ["layer.weight", "layer.bias"] and scaled(x) is scaled(x)
    assert scaled._cached_x_y[0] is x  # by PyTorch's name, which subclasses read


def test_parameters_and_values_are_checked() -> None:
    with pytest.raises(ValueError, match=r"Expected parameter scale \(Tensor of shape \(1,\)\) of distribution Normal"):
        d.Normal(mt.tensor([0.0]), mt.tensor([-1.0]))
    d.Normal(0.0, -1.0, validate_args=False)
    with pytest.raises(ValueError, match="to be within the support"):
        d.Exponential(1.0).log_prob(mt.tensor(-1.0))
    with pytest.raises(ValueError, match="not broadcastable"):
        d.Normal(mt.zeros(2), 1.0).log_prob(mt.zeros(3))
    with pytest.raises(ValueError, match="must be a Tensor"):
        d.Normal(0.0, 1.0).log_prob(1.0)
    with pytest.raises(ValueError, match="must be specified, but not both"):
        d.Bernoulli()
    with pytest.raises(ValueError, match="right-most size"):
        d.Dirichlet(mt.ones(3)).log_prob(mt.ones(2))
    with pytest.raises(NotImplementedError, match=r"No KL\(p \|\| q\)"):
        d.kl_divergence(d.Normal(0.0, 1.0), d.Categorical(mt.ones(2)))
    with pytest.raises(NotImplementedError):
        d.Poisson(1.0).rsample()
    d.Distribution.set_default_validate_args(False)
    try:
        d.Normal(0.0, -1.0)
    finally:
        d.Distribution.set_default_validate_args(True)


@table
def test_a_distribution_for_each_sample_of_vmap(name: str, parameters: Any, value: Any) -> None:
    plain = {key: parameters[key] for key in parameters if key in PLAIN or key in COUNTS.get(name, ())}
    given = {key: mt.tensor(parameters[key], dtype=mt.float64) for key in parameters if key not in plain}
    density = lambda of, x: getattr(d, name)(**plain, **of).log_prob(x)
    x = event(mt, value)
    found = mt.vmap(density)({key: mt.stack([p, p]) for key, p in given.items()}, mt.stack([x, x]))
    assert flat(found) == pytest.approx(flat(density(given, x)) * 2)


def test_one_sample_outside_is_an_error_for_all_of_vmap() -> None:
    with pytest.raises(ValueError, match="Expected parameter scale"):
        mt.vmap(lambda s: d.Normal(0.0, s).log_prob(s))(mt.tensor([[1.0, 1.0], [1.0, -1.0]]))


def test_parameters_that_are_properties_are_checked_too() -> None:
    for bad in (lambda: d.Chi2(t64([0.0, 1.0])), lambda: d.RelaxedBernoulli(mt.tensor(-1.0), probs=mt.tensor(2.0))):
        with pytest.raises(ValueError, match="Expected parameter"):
            bad()
    with pytest.raises(ValueError, match="must be a Tensor"):
        d.HalfCauchy(1.0).log_prob(1)


def test_logits_as_far_out_as_floats_go_have_finite_densities() -> None:
    for sign, x in ((1.0, 1.0), (-1.0, 0.0)):
        logits = mt.tensor([sign * 1e38]).requires_grad_()
        found = d.ContinuousBernoulli(logits=logits).log_prob(mt.tensor([x]))
        (g,) = mt.autograd.grad(found.sum(), logits)
        # The density's factor is -log(eps) / (1 - 2 eps), to the digits of 1 - eps.
        assert found.item() == pytest.approx(math.log(-math.log(mt.finfo(mt.float32).eps)), abs=1e-2) and g.item() == 0


def test_degrees_of_freedom_may_be_counted() -> None:
    whole, real = [d.Wishart(mt.tensor(df), t64([[2.0, 0.3], [0.3, 1.0]])) for df in (4, 4.0)]
    assert whole.sample((3,)).dtype is mt.float64
    assert whole.log_prob(t64([[1.0, 0.0], [0.0, 1.0]])).item() == pytest.approx(real.log_prob(mt.eye(2, dtype=mt.float64)).item())


def test_a_new_distribution_and_its_divergence() -> None:
    class Shifted(d.Normal):
        """A subclass, for which the parent's divergence serves."""

    class Odd(d.Distribution):
        """A distribution of a user's own."""

        arg_constraints: Any = {}

    @d.register_kl(Odd, d.Normal)
    def odd(p: Any, q: Any) -> Any:
        return mt.tensor(5.0)

    assert d.kl_divergence(Shifted(0.0, 1.0), d.Normal(0.0, 1.0)).item() == 0
    assert d.kl_divergence(Odd(), Shifted(0.0, 1.0)).item() == 5

    class Foreign:
        """A library's own base of distributions."""

    assert d.register_kl(Odd, Foreign)(odd) is odd
    with pytest.raises(TypeError, match="type_q"):
        d.register_kl(Odd, 3)  # type: ignore[arg-type]


TRANSFORMS = [
    (d.ExpTransform(), REAL), (d.SigmoidTransform(), REAL), (d.TanhTransform(), REAL), (d.SoftplusTransform(), REAL),
    (d.PowerTransform(2.0), UNIT), (d.AffineTransform(0.5, -2.0), REAL),
    (d.ComposeTransform([d.AffineTransform(0.5, 2.0), d.ExpTransform()]), REAL),
    (d.CumulativeDistributionTransform(d.Normal(0.0, 1.0)), REAL),
]  # fmt: skip


@pytest.mark.parametrize(("transform", "points"), TRANSFORMS, ids=[type(t).__name__ for t, _ in TRANSFORMS])
def test_transforms_of_numbers_invert_and_know_their_slope(transform: Any, points: Any) -> None:
    x = t64(points).requires_grad_()
    y = transform(x)
    assert flat(transform.inv(y)) == pytest.approx(flat(x)) and flat(transform.inv.inv(x)) == flat(y)
    (slope,) = mt.autograd.grad(y.sum(), x)
    assert flat(transform.log_abs_det_jacobian(x, y)) == pytest.approx(flat(slope.abs().log()))
    assert flat(slope.sign()) == [transform.sign] * x.numel()
    assert bool(transform.codomain.check(y).all())
    cached = transform.with_cache(1)
    assert cached.inv(cached(x)) is x


def test_an_inverse_is_one_object_while_someone_holds_it() -> None:
    exp = d.ExpTransform()
    for transform in (exp, exp.inv, d.ComposeTransform([d.AffineTransform(1.0, 2.0), exp])):
        inverse = transform.inv
        assert transform.inv is inverse and inverse.inv is transform
        assert pickle.loads(pickle.dumps(transform)).inv is not inverse


@pytest.mark.parametrize(
    ("transform", "n"), [(d.StickBreakingTransform(), 3), (d.CorrCholeskyTransform(), 3)], ids=["sticks", "corr_cholesky"]
)
def test_transforms_of_vectors_invert_and_know_their_determinant(transform: Any, n: int) -> None:
    x = t64([0.3, -0.7, 1.1])
    y = transform(x)
    assert bool(transform.codomain.check(y)) and tuple(y.shape) == tuple(transform.forward_shape(x.shape))
    assert flat(transform.inv(y)) == pytest.approx(flat(x))

    def free(x: Any) -> Any:  # the numbers of the result that are free
        y = transform(x)
        return y[:-1] if y.dim() == 1 else mt.stack([y[1, 0], y[2, 0], y[2, 1]])

    jacobian = mt.func.jacrev(free)(x)
    wanted = mt.linalg.slogdet(jacobian).logabsdet.item()
    assert transform.log_abs_det_jacobian(x, y).item() == pytest.approx(wanted)


@pytest.mark.parametrize(
    "constraint",
    [
        constraints.real, constraints.positive, constraints.nonnegative, constraints.greater_than(2.0),
        constraints.less_than(-1.0), constraints.unit_interval, constraints.interval(-1.0, 3.0),
        constraints.half_open_interval(0.0, 2.0), constraints.simplex, constraints.corr_cholesky,
        constraints.lower_cholesky, constraints.positive_definite, constraints.real_vector,
        constraints.independent(constraints.positive, 1), constraints.stack([constraints.real, constraints.positive], -1),
        constraints.cat([constraints.positive, constraints.real], -1, [1, 2]),
    ],
    ids=repr,
)  # fmt: skip
def test_constraints_are_reached_from_unconstrained_numbers(constraint: Any) -> None:
    matrix = constraint in (constraints.lower_cholesky, constraints.positive_definite)
    pair = isinstance(constraint, constraints.stack)
    x = mt.randn((4, 3, 3) if matrix else (4, 2) if pair else (4, 3), dtype=mt.float64)
    found = d.transform_to(constraint)
    assert bool(constraint.check(found(x)).all())
    if matrix:
        with pytest.raises(NotImplementedError):
            d.biject_to(constraint)
        return
    bijection = d.biject_to(constraint)
    y = bijection(x)
    assert bool(constraint.check(y).all()) and flat(bijection.inv(y)) == pytest.approx(flat(x))


def test_constraints_tell_what_is_inside() -> None:
    c = constraints
    assert c.boolean.check(mt.tensor([0.0, 1.0, 0.5])).tolist() == [True, True, False]
    assert c.integer_interval(0, 2).check(mt.tensor([0.0, 2.0, 3.0, 0.5])).tolist() == [True, True, False, False]
    assert c.simplex.check(mt.tensor([[0.5, 0.5], [0.5, 0.6]])).tolist() == [True, False]
    assert c.one_hot.check(mt.tensor([[0, 1], [1, 1]])).tolist() == [True, False]
    assert c.multinomial(3).check(mt.tensor([[1, 2], [2, 2]])).tolist() == [True, False]
    assert c.positive_definite.check(t64([MATRIX, FACTOR])).tolist() == [True, False]
    assert c.positive_definite.check(t64(MATRIX)).item() and not c.positive_definite.check(-t64(MATRIX)).item()
    assert c.lower_cholesky.check(t64([FACTOR, MATRIX])).tolist() == [True, False]
    assert not c.square.check(mt.ones(2, 3)).item() and c.symmetric.check(t64(MATRIX)).item()
    with pytest.raises(ValueError, match="dependent"):
        c.dependent.check(mt.ones(1))
    assert c.is_dependent(c.dependent) and d.Uniform.support.event_dim == 0


# ---- as PyTorch ----


@pytest.fixture
def oracle() -> Any:
    global torch
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: distributions are not compared with it")
    torch.set_num_threads(1)
    return torch


def attempt(f: Callable[[], Any]) -> Any:
    try:
        return f()
    except Exception as error:  # whatever it raises is compared
        return error


# Values that PyTorch gets wrong, or does not give, and mortice does.
BETTER = {
    ("GeneralizedPareto", "log_prob"), ("GeneralizedPareto", "cdf"),  # PyTorch mixes dtypes
    ("Kumaraswamy", "mode"), ("Weibull", "mode"),  # nan
    ("Multinomial", "entropy"), ("Multinomial", "perplexity"),  # the factorial in float32
}  # fmt: skip
ATTRIBUTES = ("mean", "variance", "stddev", "mode", "entropy", "perplexity", "log_prob", "cdf", "icdf", "enumerate_support")


def ask(module: Any, dist: Any, attribute: str, value: Any) -> Any:
    if attribute in ("log_prob", "cdf"):
        return getattr(dist, attribute)(event(module, value))
    if attribute == "icdf":
        return dist.icdf(module.tensor(UNIT, dtype=module.float64))
    found = getattr(dist, attribute)
    return found() if callable(found) else found


def check_same(title: str, mine: Any, theirs: Any, my_tensors: Any = (), their_tensors: Any = (), rel: float = 1e-9) -> None:
    if isinstance(theirs, Exception):
        assert isinstance(mine, type(theirs)), f"{title}: {mine!r}, {theirs!r}"
        return
    assert not isinstance(mine, Exception), f"{title}: {mine!r}"
    assert tuple(mine.shape) == tuple(theirs.shape), title
    assert str(mine.dtype).rpartition(".")[2] == str(theirs.dtype).rpartition(".")[2], title
    assert flat(mine) == pytest.approx(flat(theirs), rel=rel, abs=1e-9, nan_ok=True), title
    if my_tensors and theirs.requires_grad:
        got = attempt(lambda: mt.autograd.grad(mine.sum(), my_tensors, allow_unused=True))
        wanted = attempt(lambda: torch.autograd.grad(theirs.sum(), their_tensors, allow_unused=True))
        if isinstance(wanted, Exception):
            assert isinstance(got, type(wanted)), f"{title}: {got!r}"
            return
        for g, w in zip(got, wanted):
            if w is None:
                assert g is None or not bool(g.any()), title
                continue
            g = mt.zeros(tuple(w.shape)) if g is None else g
            # Of a triangular parameter only the triangle counts; where PyTorch's is not finite, mortice's may be.
            pairs = zip(flat(g.tril() if g.dim() > 1 else g), flat(w.tril() if w.dim() > 1 else w))
            for x, y in pairs:
                assert not math.isfinite(y) or x == pytest.approx(y, rel=max(rel, 1e-8), abs=1e-8), title


@pytest.mark.oracle
@table
def test_distributions_are_as_in_pytorch(oracle: Any, name: str, parameters: Any, value: Any) -> None:
    rel = 1e-4 if name == "VonMises" else 1e-9  # PyTorch's Bessel functions have seven digits, which cancel
    for attribute in ATTRIBUTES:
        if (name, attribute) not in BETTER:
            (mine, p), (theirs, q) = make(mt, name, parameters, grad=True), make(torch, name, parameters, grad=True)
            results = attempt(lambda: ask(mt, mine, attribute, value)), attempt(lambda: ask(torch, theirs, attribute, value))  # noqa: B023
            check_same(f"{name}.{attribute}", *results, p, q, rel=rel)
    mine, theirs = make(mt, name, parameters)[0], make(torch, name, parameters)[0]
    assert repr(mine) == repr(theirs).replace("torch.", "mortice.")
    for attribute in ("support", "has_rsample", "has_enumerate_support", "batch_shape", "event_shape", "arg_constraints"):
        assert str(getattr(mine, attribute)) == str(getattr(theirs, attribute)).replace("torch.", "mortice.")


@pytest.mark.oracle
def test_distributions_made_of_others_are_as_in_pytorch(oracle: Any) -> None:
    for (title, mine, x), (_, theirs, y) in zip(mixtures(mt), mixtures(torch)):
        for attribute in ("mean", "variance", "mode"):
            check_same(title, attempt(lambda: getattr(mine, attribute)), attempt(lambda: getattr(theirs, attribute)))  # noqa: B023
        check_same(title, attempt(lambda: mine.entropy()), attempt(lambda: theirs.entropy()))  # noqa: B023
        for attribute in ("log_prob", "cdf"):
            check_same(title, attempt(lambda: getattr(mine, attribute)(x)), attempt(lambda: getattr(theirs, attribute)(y)))  # noqa: B023
        check_same(title, attempt(lambda: mine.icdf(x.abs() / 10)), attempt(lambda: theirs.icdf(y.abs() / 10)))  # noqa: B023
        assert str(mine.support) == str(theirs.support) and tuple(mine.sample((2,)).shape) == tuple(theirs.sample((2,)).shape)
        wide, expanded = mine.expand((4, *mine.batch_shape)), theirs.expand((4, *theirs.batch_shape))
        assert tuple(wide.sample((2,)).shape) == tuple(expanded.sample((2,)).shape)


@pytest.mark.oracle
def test_divergences_are_as_in_pytorch(oracle: Any) -> None:
    from mortice.distributions.kl import _KL_REGISTRY

    wanted = {(a.__name__, b.__name__) for a, b in torch.distributions.kl._KL_REGISTRY}
    assert {(a.__name__, b.__name__) for a, b in _KL_REGISTRY} >= wanted
    for (n1, p1, _), (n2, p2, _) in itertools.product(TABLE, TABLE):
        if {n1, n2} == {"ContinuousBernoulli", "Uniform"}:
            continue  # PyTorch gives infinity for equal supports
        (a, pa), (b, pb) = make(mt, n1, p1, grad=True), make(mt, n2, p2, grad=True)
        (x, px), (y, py) = make(torch, n1, p1, grad=True), make(torch, n2, p2, grad=True)
        mine, theirs = attempt(lambda: d.kl_divergence(a, b)), attempt(lambda: torch.distributions.kl_divergence(x, y))  # noqa: B023
        check_same(f"{n1}{list(p1)}, {n2}{list(p2)}", mine, theirs, pa + pb, px + py, rel=1e-8)


@pytest.mark.oracle
def test_names_and_signatures_are_as_in_pytorch(oracle: Any) -> None:
    import importlib
    import inspect
    import pkgutil

    for module in pkgutil.iter_modules(torch.distributions.__path__, "mortice.distributions."):
        importlib.import_module(module.name)
    assert set(d.__all__) >= set(torch.distributions.__all__)
    for name in torch.distributions.__all__:
        theirs, mine = getattr(torch.distributions, name), getattr(d, name)
        if inspect.isclass(theirs):
            want = [(p.name, p.kind) for p in inspect.signature(theirs.__init__).parameters.values()]
            assert [(p.name, p.kind) for p in inspect.signature(mine.__init__).parameters.values()] == want, name
    for simplex in (SIMPLEX,):
        x, y = t64(simplex), torch.tensor(simplex, dtype=torch.float64)
        for name in ("StickBreakingTransform", "SoftmaxTransform"):
            assert flat(getattr(d, name)()._inverse(x)) == pytest.approx(flat(getattr(torch.distributions, name)()._inverse(y)))
