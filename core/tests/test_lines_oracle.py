"""Lines run in mortice and in PyTorch: values, dtypes, order in memory, names in the graph, classes of errors.

What a fuzzer of random calls found, one line a cause.
"""

import math
import warnings

import numpy as np
import pytest

import mortice

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

LINES = """
x[...]; x[()]; x[:, :]; x[:]; (x[None], x[0], x[1:])
list(x); [row for row in x.detach()]
set(x * 1, x > 0, 0.0); set(x * 1, t.tensor([0, 1]), 2.0); set(x * 1, [[0, 1], [1, 0]], x[0, :2])
set(z, True, t.tensor(True)); set(x * 1, (5, [0]), t.ones(2).half()); set(x * 1, ([0], [0]), t.ones(1).half())
t.amax(x); t.amin(x, 0); x.max(); t.aminmax(x); t.aminmax(x, dim=0); t.std_mean(x, 1); t.var_mean(x)
t.nanmedian(x); t.nanmedian(x, 0); t.median(x)
t.zeros(2, 3).masked_fill_(t.zeros(3, 2, dtype=t.bool).t(), 1).stride(); t.zeros(3, 2).t().ge_(1).stride()
t.diag_embed(t.zeros(1, 1), -1, -1, 0).stride(); t.tensor(1).mT; t.ones(2).mT
t.tensor(2j, dtype=t.int8); t.full((2,), 2j, dtype=t.int8); t.ones(2, dtype=t.int64).new_full((2,), 2j)
t.index_select(x, 0, t.tensor([-1])); t.index_select(x, 1, t.tensor([3]))
t.special.zeta(x.abs() + 2, x.abs() + 1); t.autograd.grad(t.special.zeta(t.tensor(3.0), x.abs() + 1).sum(), x)
F.pad(t.ones(1, 2, 3), (1, 1), mode="reflect", value=2.0)
F.cross_entropy(t.ones(4, 2), t.ones(5, 2)); F.cross_entropy(t.ones(4, 2), t.ones(5)); F.nll_loss(t.ones(4, 2), t.ones(5))
F.cross_entropy(t.ones(4, 2), t.ones(4, 3)); F.cross_entropy(t.ones(4, 2), t.ones(4, 2).long())
t.nn.InstanceNorm1d(3, track_running_stats=True)(t.ones(1, 3))
t.normal(t.zeros(2), t.ones(2, dtype=t.float64)); t.normal(t.zeros(2).half(), x[0, :2].abs()).dtype is t.half
t.normal(t.zeros(2, dtype=t.float64), t.ones(2)); t.normal(0.0, t.ones(2))
t.randint_like(t.arange(6.0).view(3, 2).t(), 9); F.gumbel_softmax(t.arange(6.0).view(3, 2).t())
F.dropout3d(t.ones(3, 3)); F.dropout3d(t.ones(3), 1.0); F.dropout3d(t.ones(2, 3, 2, 2)); F.dropout2d(t.ones(2, 3, 2, 2))
t.distributions.Normal(0.0, 1.0).cdf(d); t.distributions.Normal(d, t.tensor([0.3, 0.2, 0.1])).log_prob(t.tensor([0.3, 0.2, 0.1]))
t.cumsum(t.rand(3000), 0); t.cumsum(t.rand(40, 3), 0); t.cumsum(t.rand(3, 40), 1); t.cumsum(t.rand(80)[::2], 0)
F.softshrink(x, float("inf")); F.softshrink(x, -1); F.hardshrink(x, 1e39); t.clamp(x, max=1e39); t.clamp(d, max=1e39)
t.autograd.grad(t.cosine_similarity(x, x.detach() * 2 + 1, eps=3.0).sum(), x); t.cosine_similarity(x * 0, x, 0)
F.linear(x[0].detach(), x[1].detach(), t.tensor(2.0)); F.linear(x[0], x[1], t.ones(2))
[v.sign() for v in t.linalg.svd(t.rand(40, 30))]; [v.sign() for v in t.linalg.svd(t.rand(30, 40), full_matrices=False)]
t.linspace(0, 1e38, 3, dtype=t.float16); t.linspace(0, 300, 4, dtype=t.uint8); t.linspace(-1, 3, 5, dtype=t.uint8)
[x.detach()[:1, ::2].stride(), x[2:, ::3].stride(), t.ones(3, 1).t().unsqueeze(-1).stride(), t.ones(4, 1).t()[:, None].stride()]
[t.ones(1).expand(1, 1).stride(), t.ones(()).expand(1, 2).stride(), x[0].expand(1, 3, 1, 3).stride(), x[:1].expand(2, 1, 2, 3).stride()]
[t.ones(4, 1).t().view(1, 4, 1).stride(), t.ones(3, 2, 1).unfold(0, 3, 1).squeeze(-2).stride(), t.ones(4, 2, 1).mT.squeeze(1).stride()]
[t.ones(4, 1).t().clone().stride(), t.ones(4, 1, 3).mT.double().stride(), x.detach().t().flip(0).stride(), t.rot90(x.detach().mT).stride()]
[t.ones(s).is_contiguous(memory_format=t.channels_last) for s in ((2, 0, 2, 2), (2, 2, 2, 0), (1, 2, 1, 0), (2, 1, 3, 1))]
t.Size([2.0]); t.Size([2, "a"]); t.Size([None]); t.Size([t.tensor(2.0)]); sum([t.Size([2])], ())
t.Size([1]) + (1.5,); t.Size([1]) + [2]; t.Size([1]) * 2.0
[t.Size([True, np.int64(2), t.tensor(3)]) + (4,), (0,) + t.Size([1]), 2 * t.Size([1]), t.Size(range(3))[1:], t.Size(np.array([2, 3]))]
[type(n) for n in t.Size([True, t.tensor(3)])]; (t.Size([2]) * np.array([3])).tolist(); (t.Size([2]) + np.array([1])).tolist()
[t.is_anomaly_enabled(), t.set_anomaly_enabled(True, False), t.is_anomaly_check_nan_enabled(), t.set_anomaly_enabled(False)]
t.broadcast_shapes((1, -2)); t.broadcast_shapes((1, 2), (2, -3)); t.broadcast_shapes(-2, 3); t.nn.LSTMCell(3, 4)(t.ones(2, 3), t.ones(2, 4))
t.ones(1, 5, 1)[:, :, ::3].view(t.int32).stride(); t.ones(2, 3)[::4].view(t.float32).stride()
t.zeros(); t.ones(dtype=t.int64); t.empty(); t.rand(); t.randn(); t.arange(); t.arange(end=2); t.range(); t.zeros(size=()); t.zeros(())
x[0, 0].reshape(); x[0, 0].view(); x[0, 0].expand(); x[0, 0].permute(); x[0, 0].repeat(); x[0, 0].tile(); x[0, 0].sum_to_size()
x[0, 0].view(()); x[0, 0].expand(()); x.detach().new_zeros(); x.reshape(-1).shape; x.detach().mean(dim=(0, 1), keepdim=np.bool_(True))
z.float().uniform_(foo=1); z.float().random_(0, to=9, foo=1); z.float().uniform_(**{"from": 3.0, "to": 3.0}); z.float().fill_("3")
x.sum(0, 1); x.mean(0, 1); x.amax(0, 1); x.max(1, 0); x.std(0, True, 2); x.sum(0, keepdims=1); t.sort(d, 0, 1); t.topk(d, 1, 0, 1)
x.var(0, 1); x.std(0, 0); t.var_mean(x, 0, 1); t.std_mean(x, 0, 1, True); x.norm(2, 0, 1); t.unique(x, 0); t.unique_consecutive(x, 1)
x.requires_grad_(1); x.var(0, True, True); x.norm(2, 0, True)
F.rms_norm(x, (3,), t.ones(3).half()); F.rms_norm(x.double(), (3,), t.ones(3, requires_grad=True)); F.rms_norm(x.double(), (3,), t.ones(2))
t.nn.Bilinear(3, 3, 2)(x.double(), x.double()); F.bilinear(x, x, t.ones(2, 3, 3), t.ones(2).double())
x.max(keepdim=True); x.min(keepdim=True); x.median(keepdim=True); x.nanmedian(keepdim=True); x.argmax(keepdim=True)
t.special.zeta(t.tensor([2.0, 50.0, 127.0, 128.0, 200.0, 1e4, 1e10]), 1.0); t.special.zeta(t.tensor([30.0, 200.0]), t.tensor([0.5, 2.0]))
F.gaussian_nll_loss(t.arange(6).view(2, 3), t.ones(2, 3), 0.5); t.return_types.max([1, 2]); x.max(0).n_fields; t.return_types.sort((1,))
t.nanmean(x, 0, dtype=t.int32); t.nanmean(x, 0, dtype=t.float64)
F.soft_margin_loss(x[0], t.ones(2, 3)); F.soft_margin_loss(x, t.ones(3)); F.affine_grid(x[None], (1, 1, 2, 2), align_corners=False)
t.where(x > 0, 0, np.int64(2)); t.where(x > 0, np.float64(1.5), 2); t.where(x > 0, x, np.float32(2))
[getattr(t.ones(s), f)(memory_format=t.channels_last).stride() for s in ((4, 8, 1, 1), (2, 1, 4, 4)) for f in FORMS]
[getattr(cl(4, 8, 1, 1), f)(memory_format=t.contiguous_format).stride() for f in ("to", "float", "double", "contiguous", "cpu")]
[getattr(t.ones(3, 2).t(), f)(memory_format=t.contiguous_format).stride() for f in FORMS]
[getattr(cl(2, 8, 4, 4)[:, :4], f)(memory_format=t.channels_last).stride() for f in FORMS]
[t.empty(4, 8, 1, 1, memory_format=t.channels_last).stride(), t.zeros_like(t.ones(2, 8, 1, 1), memory_format=t.channels_last).stride()]
t.ones(2, 3).to(memory_format=t.channels_last); t.ones(2, 3).float(memory_format=t.channels_last_3d)
[F.conv2d(a(2, 8, 4, 4), b(8, 8, 1, 1)).stride() for a in (t.ones, cl) for b in (t.ones, cl)]
[F.conv2d(a(2, 8, 4, 4), b(8, 1, 3, 3), groups=8).stride() for a in (t.ones, cl) for b in (t.ones, cl)]
[F.conv2d(a(2, 1, 4, 4), b(1, 1, 3, 3)).stride() for a in (t.ones, cl) for b in (t.ones, cl)]
[t.finfo(t.float32) == t.finfo(), t.finfo(t.half) != t.finfo(), t.finfo(t.complex64) == t.finfo(), t.iinfo(t.int8) == t.iinfo(t.int8)]
[F.rms_norm(cl(2, 3, 4, 5), s).stride() for s in ((5,), (4, 5))]; F.rms_norm(t.ones(4, 5).t(), (4,)).stride()
[F.rms_norm(t.ones(2, 3, 4, 4, 5).to(memory_format=t.channels_last_3d), (5,), t.ones(5)).stride()]
F.rms_norm(cl(2, 3, 4, 5)[:, :2], (5,)).stride()
[F.pixel_shuffle(cl(s, 4, 3, 3), 2).stride() for s in (1, 2)]
[F.pixel_unshuffle(t.ones(s, c, 2, 2), 2).stride() for s in (1, 2) for c in (1, 4)]
[f(t.ones(2, 3).t()).stride() for f in (F.logsigmoid, F.rrelu, t.poisson, t.angle, t.exp2)]
t.angle(t.ones(2, 3, dtype=t.cfloat).t()).stride()
[f(t.ones(2, 3, dtype=d).t()).stride() for d in (t.float, t.cfloat) for f in (lambda e: 2**e, lambda e: t.pow(1, e), lambda e: e**2)]
[f(x.detach(), y, out=d.new_ones(2, 3)) for f in (t.clamp, t.clamp_min, t.clamp_max) for y in (x.detach() + 1, t.ones(3).int())]
t.clamp(x.detach(), 0, out=t.ones(2, 3, dtype=t.float64)); t.clamp_min(x.detach(), x.detach(), out=t.ones(2, 3, dtype=t.int32))
t.clamp(x, t.zeros(3), out=x.detach()); t.clamp_max(x.detach(), t.zeros(4), out=x.detach())
[F.rrelu(t.ones(2, 3).t(), training=True).stride(), F.rrelu(t.ones(2, 3).t(), inplace=True).stride()]
t.iinfo(t.int32) == t.finfo(t.float32); hash(t.finfo()); t.autograd.forward_ad._current_level
t.inference_mode(mode=lambda v: v * 2)(x); t.autograd.gradcheck(t.exp, d.requires_grad_(), check_backward_ad=False)
t.ones(2, dtype=t.int32).set_(t.ones(3).storage()); t.autograd.functional.hessian(lambda a: a.detach().sum(), d, strict=True)
t.segment_reduce(nn, "max", lengths=t.tensor([3, 2])); grad(t.segment_reduce(nn, "max", lengths=t.tensor([3, 2])).sum(), nn)
grad(t.segment_reduce(nn, "min", lengths=t.tensor([5])).sum(), nn)
t.linalg.vector_norm(d, 1j); t.linalg.norm(d, 1 + 0j); t.linalg.matrix_norm(w, 2 + 0j); t.linalg.norm(w, 1j)
[grad(t.segment_reduce(nn, "prod", lengths=t.tensor([n, 5 - n]), initial=2.0).sum(), nn) for n in (2, 3, 4)]
grad(t.scatter_reduce(d, 0, t.tensor([1, 1, 1, 2, 2]), nn, "amax").sum(), nn)
[t.special.zeta(t.tensor(n), t.tensor([inf, -inf, 0.5, -0.5, 2.0])) for n in (inf, -inf, 2.0, 1.5, 1.0)]; t.polygamma(1, t.tensor(inf))
t.vmap(lambda a: t.linspace(a, a + 1, 3))(d.float()).tolist(); t.vmap(lambda a: t.logspace(0, a, 3))(d.float()).tolist()
[t.linalg.inv(w), t.linalg.cholesky(w @ w.t()), t.linalg.solve(w, w), t.linalg.solve(w, w, left=False), t.linalg.qr(x.detach())]
[t.linalg.solve_triangular(w.triu(), w, upper=True, left=f) for f in (True, False)]
t.cholesky_solve(w, w.tril()); t.cholesky(w @ w.t(), upper=True)
t.addmm(w.t(), w, w); t.addmm(t.ones(3), w.t(), w.t()); t.linalg.inv(w).flatten().mul_(2); t.linalg.inv_ex(w)[0]; w.inverse()
grad(t.atan2(nn * 0, nn - 1).nansum(), nn); grad(t.atan2(nn - 1, nn - 1).nansum(), nn)
again(F.elu, z0); again(F.selu, z0); again(F.celu, z0)
t.vmap(lambda a: a.masked_scatter(a > 0, a.flip(0)))(x).tolist(); t.vmap(lambda a, b: a.masked_scatter(b, d.float()))(x, x > 1).tolist()
t.vmap(lambda a: t.histc(a, 4))(x.detach()); t.arange(start=4); t.arange(4, start=2); t.arange(start=1, end=3); t.arange(end=3, step=2)
[t.sparse.spdiags(x.detach(), t.tensor([0, -1]), s).to_dense() for s in ((3, 3), (2, 4))]
[t.sparse.spdiags(d, t.tensor([1]), (3, 3), f).to_dense() for f in (t.sparse_csr, t.sparse_csc)]; t.sparse.spdiags(d, t.tensor(1.0), (3, 3))
t.sparse.spdiags(x.detach(), t.tensor([0, 0]), (3, 3)); t.sparse.spdiags(x.detach(), t.tensor([0]), (3, 3))
t.sparse.spdiags(d, t.tensor([[0]]), (3, 3)); t.sparse.spdiags(d, t.tensor([0]), (3,))
t.sparse.spdiags(d, t.tensor([0]), (3, 3), t.sparse_bsr)
F.hinge_embedding_loss(t.tensor([1, 2]), t.tensor([1, -1]), 2.5, reduction="sum"); t.clamp(x > 0, x > 1); t.clamp(x > 0, False, 1)
t.arange(300).chunk(t.tensor(2, dtype=t.uint8)); t.addcdiv(t.tensor([1, 2]), t.tensor([1, 2]), d[:2]);
d.polygamma(1); d.polygamma(t.tensor(2)); t.polygamma(t.tensor([2]), d); t.special.polygamma(t.tensor(2.0), d); d.clone().polygamma_(2)
t.range(3); t.range(end=3); t.range(start=3); t.arange(stop=3); t.arange(1, end=3); t.arange(start=1, step=2)
t.vmap(lambda a: t.histc(a, 4, 0, 1))(x.detach()); t.vmap(t.vmap(lambda a: t.linspace(0, end=a, steps=2)))(x.detach()).tolist()
t.vmap(t._standard_gamma, randomness="different")(x.detach().abs()); t.vmap(lambda a: t._standard_gamma(d.abs()) + a, randomness="same")(d)
t.vmap(lambda a: t._standard_gamma(d.abs()) + a, randomness="different")(d); t.vmap(t._standard_gamma)(x.abs())
[f(t.ones(2), out=t.empty((), dtype=t.float64)) for f in (t.max, t.min)]; t.max(t.ones(2), out=t.empty((), dtype=t.int64))
[t.linalg.matrix_power(t.ones(2, 2), n, out=t.empty((2, 2), dtype=t.float64)) for n in (0, 1)]
t.max(t.ones(2), 0, out=(d, t.empty(0).long())); t.linalg.matrix_power(t.ones(2, 2), 2, out=t.empty((2, 2), dtype=t.float64))
t.linalg.matrix_power(t.ones(2, 2), 0, out=t.empty((2, 2)).long())
t.fft.irfft(t.ones(3) * 1j, out=t.empty(0) * 1j); t.fft.hfft(t.ones(3) * 1j, out=t.empty(0) * 1j)
t.fft.hfft(t.ones(3), out=t.empty(0).double())
[f(t.ones(3, 3) * 1j, out=t.empty(0) * 1j) for f in [t.fft.irfft2]]; [f(t.ones(3, 3) * 1j, out=t.empty(0) * 1j) for f in [t.fft.irfftn]]
[f(t.ones(3, 3) * 1j, out=t.empty(0) * 1j) for f in [t.fft.hfft2]]; [f(t.ones(3, 3) * 1j, out=t.empty(0) * 1j) for f in [t.fft.hfftn]]
t.float_power(t.ones(2).char(), t.ones(2).to(t.uint64)); t.float_power(t.ones(2).char(), 1j); t.float_power(2, t.ones(2) * 1j)
t.vmap(lambda v: t.histogram(v, 3))(t.arange(6.0).view(2, 3)); t.vmap(lambda v: t.histogram(v, 3, density=True))(t.arange(6.0).view(2, 3))
t.vmap(lambda i, w: F.embedding(i, w, max_norm=1.0))(t.tensor([[0, 1], [2, 2]]), t.arange(16.0).view(2, 4, 2))
t.vmap(lambda i, w: F.embedding_bag(i, w, max_norm=1.0))(t.tensor([[[0, 1]], [[2, 3]]]), t.arange(16.0).view(2, 4, 2))
t.special.zeta(t.tensor([501.0, 500.0, 501.0, 500.0]), t.tensor([-1001.2, -1001.2, -13437.7, -13437.7]))
[getattr(t._C._nn, f"upsample_nearest{n}d")(t.arange(8.0).view(1, 2, 4, *(1,) * (n - 1)), [6] * n) for n in (1, 2, 3)]
[getattr(t._C._nn, f"_upsample_nearest_exact{n}d")(t.arange(8.0).view(1, 2, 4, *(1,) * (n - 1)), None, [1.5] * n) for n in (1, 2, 3)]
[f(t.arange(8.0).view(1, 2, 2, 2), (4, 3), True, None, None) for f in (t._C._nn.upsample_bilinear2d, t._C._nn.upsample_bicubic2d)]
[f(t.arange(32.0).view(1, 2, 4, 4), [2, 3], False) for f in (t._C._nn._upsample_bilinear2d_aa, t._C._nn._upsample_bicubic2d_aa)]
t._C._nn._upsample_lanczos2d_aa(t.arange(32.0).view(1, 2, 4, 4), [2, 3], False); t._C._nn.upsample_linear1d(t.ones(1, 2, 3), 5, False)
t._C._nn.upsample_trilinear3d(t.arange(8.0).view(1, 1, 2, 2, 2), None, align_corners=False, scale_factors=[2.0, 1.5, 3.0])
"""  # fmt: skip


def described(value, lib):
    if isinstance(value, (list, tuple)) and not isinstance(value, lib.Size):
        return [described(v, lib) for v in value]
    if not isinstance(value, lib.Tensor):
        return value
    made = None if value.grad_fn is None else type(value.grad_fn).__name__
    steps = [step for step, n in zip(value.stride(), value.shape) if n > 1]
    return [str(value.dtype).split(".")[1], tuple(value.shape), steps, value.requires_grad, made, value.detach().tolist()]


def outcome(line, lib):
    def put(x, key, value):
        x[key] = value
        return x

    engine = mortice.random.get_engine() if lib is mortice else None
    if lib is mortice:
        mortice.random.set_engine("mt19937")
    lib.manual_seed(3)
    names = {
        "np": np, "t": lib, "F": lib.nn.functional, "set": put, "z": lib.zeros(2, dtype=lib.complex64),
        "x": lib.tensor([[0.5, -1.25, 2.0], [1.5, 0.25, -0.75]], requires_grad=True),
        "d": lib.tensor([0.3, -1.2, 2.1], dtype=lib.float64), "FORMS": ["to", "float", "double", "clone", "contiguous", "cpu"],
        "nn": lib.tensor([1.0, math.nan, 3.0, math.nan, math.nan], requires_grad=True), "inf": math.inf, "grad": lib.autograd.grad,
        "cl": lambda *s: lib.ones(s).to(memory_format=lib.channels_last),
    }  # fmt: skip
    names["w"] = names["x"].detach()[[0, 1, 1]] + 2 * lib.eye(3)
    names["z0"] = lib.tensor([-1.0, 0.0, -0.0, 1.0], requires_grad=True)
    names["again"] = lambda f, x: lib.autograd.grad(lib.autograd.grad(f(x).sum(), x, create_graph=True)[0].square().sum(), x)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return described(eval(line, names), lib)  # noqa: S307
    except Exception as error:
        return error
    finally:
        if lib is mortice:
            mortice.random.set_engine(engine)


def alike(mine, want):
    if isinstance(want, list):
        return len(mine) == len(want) and all(map(alike, mine, want))
    return mine == want or (isinstance(want, (float, complex)) and np.isclose(mine, want, 1e-6, 1e-7, equal_nan=True))


@pytest.mark.parametrize("line", [part.strip() for line in LINES.strip().split("\n") for part in line.split("; ")])
def test_a_line_ends_as_in_pytorch(line):
    pytest.importorskip("mortice_cpu_cext")
    before = mortice.default_backend()
    mortice.set_backend("cpu_cext")
    mortice.set_type_promotion("pytorch")
    try:
        mine, want = outcome(line, mortice), outcome(line, torch)
    finally:
        mortice.set_backend(before)
        mortice.set_type_promotion("standard")
    if isinstance(want, Exception):
        assert isinstance(mine, type(want)), (mine, want)
    else:
        assert not isinstance(mine, Exception), mine
        assert "cumsum" not in line or mine == want
        assert alike(mine, want), (mine, want)


WARNED = """
F.grid_sample(t.ones(1, 1, 2, 2), t.zeros(1, 1, 1, 2)); F.affine_grid(t.ones(1, 2, 3), (1, 1, 2, 1), align_corners=True)
t.frombuffer(b"abcd", dtype=t.uint8); t.ones(9).stft(4, return_complex=True); t.istft(t.ones(3, 5) + 0j, 4, length=99, window=t.ones(4))
t.ones(9).stft(4, window=t.ones(4), return_complex=False); x[[slice(0, 1), [0]]]; x[t.tensor([1, 0], dtype=t.uint8)]
F.embedding_bag(t.ones(3, 2), t.tensor([[0, 1]])); t.nn.Linear(1, 1).to(t.complex64); t.nn.utils.weight_norm(t.nn.Linear(1, 1))
t.nn.utils.clip_grad_norm([x], 1.0); t.utils.checkpoint.checkpoint(lambda y: y, x); t.amp.autocast("cpu", t.float32)
t.cov(x[:, :1]); t.cross(t.ones(3), t.ones(3)); t.cpu.amp.GradScaler()
t.set_default_tensor_type(t.FloatTensor); t.ones(2).random_(0, 2**25); t.normal(x, x.abs(), out=t.ones(1)); t.var(t.ones(1))
t.meshgrid(t.ones(2), t.ones(2)); t.ones(()).T
"""
TOLD_ONCE = """
t.meshgrid(x, x); t.cross(x, x); t.frombuffer(b"abcd", dtype=t.uint8); t.set_default_tensor_type(t.FloatTensor); t.ones(()).T
t.istft(t.ones(3, 5) + 0j, 4, length=99, window=t.ones(4)); t.ones(2, 3, 4).T; t.cholesky(t.eye(2)); t.ones(()).H; t.lu(t.eye(2))
t.range(0, 3); t.qr(t.eye(2)); t.chain_matmul(t.eye(2), t.eye(2)); F.upsample(x[None, None], 6); F.mse_loss(x, x, reduce=True)
"""


@pytest.mark.parametrize("line", [line.strip() for row in TOLD_ONCE.strip().splitlines() for line in row.split(";")])
def test_a_warning_is_repeated_where_pytorch_repeats_it(line):
    many = []
    for t in (torch, mortice):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(3):
                eval(line, {"t": t, "F": t.nn.functional, "x": t.ones(3)})
        many.append(len(caught) > 1)
    assert many[0] == many[1]


@pytest.mark.parametrize("line", [line.strip() for row in WARNED.strip().splitlines() for line in row.split(";")])
def test_warnings_begin_as_pytorchs_so_that_filters_match(line):
    texts = []
    for t in (torch, mortice):
        t.set_warn_always(True)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            eval(line, {"t": t, "F": t.nn.functional, "x": t.ones(2, 3).requires_grad_("clip" in line)})
        t.set_warn_always(False)
        texts.append([(w.category, str(w.message)) for w in caught])
    (kind, text), (own_kind, own) = texts[0][0], texts[1][0]
    assert own_kind is kind and own[:24] == text[:24]


@pytest.mark.parametrize("line", ["x.repeat()", "x.tile()", "t.tile(x)", "x.stft(3, 1, window=x[0])"])
def test_a_refusal_is_in_pytorchs_words(line):
    said = []
    for t in (torch, mortice):
        with pytest.raises((TypeError, RuntimeError)) as caught:
            eval(line, {"t": t, "x": t.ones(2, 3)})
        said.append((caught.type, str(caught.value)))
    assert said[0] == said[1]
