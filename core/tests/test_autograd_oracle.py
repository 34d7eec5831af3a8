"""The same random programs in PyTorch and in mortice: values, flags, gradients, and whether a step is refused."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import mortice as mt

torch = pytest.importorskip("torch")
from autograd_fuzz import play  # noqa: E402

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("block", range(10))
def test_random_programs_agree(block: int) -> None:
    torch.set_num_threads(1)
    wrong = [found for seed in range(block * 100, block * 100 + 60) if (found := play(seed, torch, mt, steps=30))]
    wrong += [found for seed in range(10_000 + block * 10, 10_000 + block * 10 + 6) if (found := play(seed, torch, mt, 80))]
    wrong += [found for seed in range(block * 100, block * 100 + 20) if (found := play(seed, torch, mt, 30, complex_=True))]
    assert not wrong, wrong[0]


@pytest.mark.parametrize("complex_", [False, True], ids=["real", "complex"])
def test_random_programs_agree_where_memory_cannot_be_written(complex_: bool) -> None:
    pytest.importorskip("mortice_conformance")
    with mt.use_backend("strict"):
        wrong = [found for seed in range(50) if (found := play(seed, torch, mt, 30, complex_))]
    assert not wrong, wrong[0]


def _values(x: Any) -> Any:
    if isinstance(x, (tuple, list)):
        return [_values(v) for v in x]
    return tuple(x.shape), [round(v, 9) for v in x.detach().reshape(-1).tolist()], x.requires_grad


@pytest.mark.parametrize("name", ["jacobian", "hessian", "vjp", "jvp", "vhp", "hvp"])
@pytest.mark.parametrize("create_graph", [False, True])
def test_functional_agrees(name: str, create_graph: bool) -> None:
    def scalar(x: Any, y: Any) -> Any:
        return (x.exp() * y * y).sum() + x[0] * y[1]

    def several(x: Any, y: Any) -> Any:
        return x * y.sin(), x.sum() * y

    found = []
    for m in (torch, mt):
        x = m.tensor([0.3, 0.7], dtype=m.float64, requires_grad=True)
        y = m.tensor([1.1, -0.4], dtype=m.float64)
        f = several if name in ("jacobian", "vjp", "jvp") else scalar
        extra = {"jacobian": (), "hessian": ()}.get(name, ((y.detach(), x.detach()),))
        found.append(_values(getattr(m.autograd.functional, name)(f, (x, y), *extra, create_graph=create_graph)))
    assert found[0] == found[1]


PROGRAMS = {
    "grad": lambda m, f, x, y: f.grad(lambda x: (x**3).sum())(x),
    "grad of grad": lambda m, f, x, y: f.grad(lambda x: f.grad(lambda x: (x**3).sum())(x).sum())(x),
    "argnums": lambda m, f, x, y: f.grad(lambda x, y: (x * y).sum(), argnums=(0, 1))(x, y),
    "value": lambda m, f, x, y: f.grad_and_value(lambda x: (x * y).sum())(x),
    "jacrev": lambda m, f, x, y: f.jacrev(lambda x: (x.sin(), x.sum()))(x),
    "jacfwd": lambda m, f, x, y: f.jacfwd(lambda x: x.sin() * x.sum())(x),
    "hessian": lambda m, f, x, y: f.hessian(lambda x: (x**3).prod())(x),
    "vjp": lambda m, f, x, y: f.vjp(lambda x, y: x * y, x, y)[1](y),
    "jvp": lambda m, f, x, y: f.jvp(f.grad(lambda x: x.sin().sum()), (x,), (y,)),
    "vmap": lambda m, f, x, y: f.vmap(f.grad(lambda x, y: x.sin() * y), in_dims=(0, 0))(x, y),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("ignore:vmap", "ignore::DeprecationWarning")
def test_func_agrees(name: str) -> None:
    import torch.func


    found = []
    for m, f in ((torch, torch.func), (mt, mt.func)):
        x = m.tensor([0.3, 0.7], dtype=m.float64)
        y = m.tensor([1.1, -0.4], dtype=m.float64)
        found.append(_values(PROGRAMS[name](m, f, x, y)))
    assert found[0] == found[1]


def test_error_classes_agree() -> None:
    def errors(m: Any) -> list[Any]:
        def one() -> Any:
            return m.ones(3, requires_grad=True)

        cases = [
            lambda: (one() * 2).backward(),
            lambda: m.ones(3).sum().backward(),
            lambda: one().add_(1),
            lambda: one()[:1].add_(1),
            lambda: (one() * 2).requires_grad_(False),
            lambda: m.ones(3).long().requires_grad_(),
            lambda: setattr(one(), "requires_grad", 1),
            lambda: setattr(one(), "grad", m.ones(2)),
            lambda: setattr(one(), "grad", 1),
            lambda: m.ones(3).register_hook(print),
            lambda: m.ones(3).retain_grad(),
            lambda: (one() * 2).backward(m.ones(4)),
            lambda: (one() * 2).sum().backward(inputs=[]),
            lambda: m.autograd.grad((one() * 2).sum(), one()),
            lambda: m.autograd.grad((one() * 2).sum(), m.ones(1)),
            lambda: (one() * 1)[:1].detach_(),
            lambda: (one() * 1).split(1)[0].mul_(2),
            lambda: (one() * 2).numpy(),
            lambda: m.autograd.gradcheck(lambda x: x, (m.ones(1),)),
            lambda: m.add(one(), one(), out=m.ones(3)),
        ]
        found = []
        for case in cases:
            try:
                case()
                found.append(None)
            except Exception as error:  # noqa: BLE001 - the class is what is compared
                found.append(error)
        return found

    for i, (theirs, ours) in enumerate(zip(errors(torch), errors(mt))):
        assert (theirs is None) == (ours is None), (i, theirs, ours)
        assert theirs is None or isinstance(ours, type(theirs)), (i, theirs, ours)


def _strict(name: str, f: Any, **options: Any) -> Any:
    extra = {"jacobian": 0, "hessian": 0}.get(name, 1)
    return lambda m: getattr(m.autograd.functional, name)(f, m.ones(2), *(m.ones(2),) * extra, strict=True, **options)


def _dirty_view(m: Any) -> Any:
    class Add(m.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            ctx.mark_dirty(a.add_(1))
            return a, a + 1

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            return g + h

    return Add.apply((m.ones(2, requires_grad=True) * 1).view_as(m.ones(2)))


def _saved_variables(m: Any) -> Any:
    class Same(m.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            ctx.save_for_backward(a)
            return a.clone()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.saved_variables[0]

    return Same.apply(m.ones(2, requires_grad=True)).sum().backward()


def _dual(m: Any) -> Any:
    with m.autograd.forward_ad.dual_level():
        return m.autograd.forward_ad.make_dual(m.ones(2), m.autograd.forward_ad.make_dual(m.ones(2), m.ones(2)))


def _wrong_hook(m: Any) -> Any:
    y = m.ones(2, requires_grad=True) * 2
    y.register_hook(lambda g: 3)
    return y.sum().backward()


def _grads(m: Any, g: Any, **options: Any) -> Any:
    x = m.ones(2, 3, requires_grad=True)
    return m.autograd.grad(x * 2, x, g, **options)


SAID = [
    *[_strict(name, lambda x: x.sum() * 0 + 1) for name in ("vhp", "hvp", "hessian")],
    *[_strict(name, lambda x: x.sum()) for name in ("vhp", "hvp", "hessian")],
    *[_strict(name, lambda x: x * 3, create_graph=True) for name in ("jacobian", "jvp", "vjp")],
    *[_strict(name, lambda x: x[0] * x[1], create_graph=True) for name in ("vhp", "hvp", "hessian")],
    lambda m: m.autograd.functional.jvp(lambda x: x, m.ones(2), (m.ones(2), m.ones(2))),
    lambda m: _grads(m, m.ones(2)),
    lambda m: _grads(m, m.ones(2, 3), is_grads_batched=True),
    lambda m: setattr(m.ones(2, requires_grad=True), "data", m.ones(2, dtype=m.int64)),
    lambda m: setattr(m.ones(2), "grad", 3),
    lambda m: setattr(m.ones(2), "grad", m.ones(3)),
    lambda m: m.autograd.forward_ad.make_dual(m.ones(2), m.ones(2)),
    lambda m: m.no_grad()(type("Made", (), {})),
    lambda m: (m.ones(2, requires_grad=True) ** 2).sum().backward(create_graph=True),
    _dirty_view, _saved_variables, _dual,
    *[lambda m, out=out: m.func.vjp(lambda x: out, m.ones(2)) for out in (None, 3, (), {})],
    *[lambda m, at=at: m.func.grad(lambda x: x.sum(), at)(m.ones(2)) for at in ((), 1, "0", (0, 0), (0, "1"))],
    *[lambda m, of=of: getattr(m.func, of)(lambda x: x * 1j)(m.ones(2)) for of in ("jacrev", "jacfwd")],
    *[lambda m, of=of: getattr(m.func, of)(lambda x: x, has_aux=True)(m.ones(2)) for of in ("grad", "jacrev", "jacfwd")],
    lambda m: m.func.grad(lambda x: (x * 1j).sum())(m.ones(2)),
    lambda m: m.func.grad(lambda x: None)(m.ones(2)),
    lambda m: m.func.jacrev(lambda x: x)("x"),
    lambda m: m.func.vjp(lambda x: (x, x), m.ones(2))[1](m.ones(2)),
    lambda m: m.func.vjp(lambda x: x, m.ones(2))[1](m.ones(3)),
    lambda m: m.func.jvp(lambda x: x, (m.ones(2),), (m.ones(3),)),
    lambda m: m.func.jvp(lambda x: x, m.ones(2), m.ones(2)),
    lambda m: m.func.jvp(lambda x: (), (m.ones(2),), (m.ones(2),)),
    lambda m: m.func.jacfwd(lambda x: x)(m.ones(2, dtype=m.int64)),
    _wrong_hook,
]  # fmt: skip


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("case", SAID)
def test_what_autograd_refuses_or_warns_of_is_said_as_in_pytorch(case: Any) -> None:
    found = []
    once = torch.is_warn_always_enabled()
    for m in (torch, mt):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            torch.set_warn_always(True)  # another test may have been warned
            try:
                case(m)
            except (RuntimeError, TypeError, ValueError) as error:
                found.append((isinstance(error, TypeError), str(error).replace("mortice", "torch")[:75]))
            else:
                found.append([(w.category, str(w.message)[:75]) for w in said])
            finally:
                torch.set_warn_always(once)
    assert found[1] == found[0] != []


NAMES = """
    1 - x; x ** x; 2 ** x; x ** 2; x % x; x % 2; x.add(x, alpha=2); x.clamp(0, 1); x.clamp(x); x.clamp_min(0); x.clamp_max(1)
    x.t(); x.T; x.mT; x.transpose(0, 1); x.permute(1, 0); x.squeeze(); x.squeeze(0); x.squeeze((0, 1)); x.unsqueeze(0); x[None]
    x.split(2)[0]; x.split([1, 2])[0]; x.chunk(2)[0]; x.unbind()[0]; x.roll(1); x.rot90(); x.prod(0); x.nansum(); x.trace()
    x[i]; x[:, i]; x[i, 0]; x[i, i]; x[x > 0]; x.index_select(0, i); x.take(i); x.masked_select(x > 0); x.masked_fill(x > 0, 0)
    x.index_add(0, i, x[:2]); x.index_copy(0, i, x[:2]); x.index_fill(0, i, 0); x.index_put((i,), x[:2]); x.put(i, x[0, :2])
    x @ x; x @ x[0]; x[0] @ x; im @ x; im @ im; x.addmm(x, x); x[0].addmv(x, x[0]); im[0].baddbmm(im[0], im[0]); x.addr(x[0], x[0])
    F.linear(x, x); F.linear(x, x, x[0]); F.linear(im, x); F.linear(im, x, x[0]); F.linear(x[0], x); F.linear(x[0], x, x[0])
    F.dropout(x); F.celu(x); F.rms_norm(x, (3,)); F.cross_entropy(x, i[:1].expand(3)); F.nll_loss(x, i[:1].expand(3))
    F.cross_entropy(im, im[:, 0].detach().long()); F.cross_entropy(x, i[:1].expand(3), label_smoothing=0.1)
    F.max_pool2d(im, 2); F.avg_pool2d(im, 2); F.adaptive_max_pool2d(im, 2); F.max_pool1d(im[0], 2); F.adaptive_avg_pool2d(im, 2)
    F.interpolate(im, scale_factor=2); F.interpolate(im, size=5, mode="bilinear"); F.interpolate(im[0], size=5, mode="linear")
    F.pad(im, (1, 1)); F.pad(im, (1, 1, 1, 1), mode="reflect"); F.pad(im[0], (1, 1), mode="replicate"); torch.special.entr(x)
    x.sum(); x[0].sum(0); x.sum((0, 1)); x.sum(dtype=torch.float64); x.mean(); x[0].mean(-1); x.mean((0, 1)); x.mean(()); 1 / x; 2 / x
    torch.nn.LSTM(3, 2)(x)[0]; torch.nn.GRU(3, 2)(im[0])[0]; torch.nn.RNNCell(3, 2)(x); torch.deg2rad(x); F.unfold(im, 2)
    F.binary_cross_entropy(x, x.detach(), x.detach()); F.binary_cross_entropy_with_logits(x, x.detach(), pos_weight=x[0].detach())
    F.soft_margin_loss(x, x.detach()); F.multi_margin_loss(x, i[:1].expand(3)); F.multilabel_margin_loss(x, i[:1].expand(3, 3))
    F.margin_ranking_loss(x, x, x.detach(), reduction="none"); F.pairwise_distance(x, 0 * x); F.pdist(x); F.conv2d(im[0], im)
    F.channel_shuffle(im, 3); F.pixel_unshuffle(im[..., :2, :2], 2); F.pixel_shuffle(im.reshape(1, 9, 3, 2), 3); F.unfold(im[0], 2)
    F.embedding_bag(i[None], x); F.embedding_bag(i, x, i[:1]); F.fractional_max_pool2d(im, 2, 2)
    F.max_unpool2d(im, im.detach().long(), 2)
    torch.view_copy(x, (9,)); torch.alias_copy(x); torch.unbind_copy(x)[0]; torch.expand_copy(x, (2, 3, 3)); x.diag()
    x.narrow_copy(0, 0, 1); torch.rsub(x, x); torch.rsub(x, 2); x.round(); x.round(decimals=1); x.sort(stable=True)[0]
    x.sort()[0]; x.lerp(x, 0.5)
    x.lerp(x, x); x.clamp_min(x); x.clamp_max(x); x.div(x, rounding_mode="floor"); torch.polar(x, x); x.ldexp(i[:1])
    x.ldexp(x); (x + 3).mvlgamma(2)
    torch.block_diag(x, x); torch.fft.fft(x); torch.fft.ifft(x); torch.fft.fft(x + 0j); torch.linalg.lu(x[:2])[1]; torch.linalg.lu(x)[2]
    torch.linalg.lstsq(x[:, :2], x)[0]; torch.linalg.householder_product(x, x[0]); torch.ormqr(x, x[0], x)
    torch.lu_unpack(*torch.linalg.lu_factor(x + torch.eye(3)))[1]; torch.linalg.lu_solve(*torch.linalg.lu_factor(x + torch.eye(3)), x)
"""


@pytest.mark.parametrize("text", [text.strip() for line in NAMES.splitlines() for text in line.split(";") if text.strip()])
def test_nodes_have_pytorchs_names(text: str) -> None:
    found = []
    for m in (torch, mt):
        x = (m.arange(9.0).reshape(3, 3) / 10 + 0.1).requires_grad_(True)
        im = (m.arange(54.0).reshape(2, 3, 3, 3) / 60).requires_grad_(True)
        made = eval(text, {"torch": m, "F": m.nn.functional, "x": x, "im": im, "i": m.tensor([0, 2])})
        assert made.grad_fn.name() == type(made.grad_fn).__name__
        made.abs().sum().backward()
        found.append(type(made.grad_fn).__name__)
    assert found[1] == found[0]


def _below(node: Any, depth: int) -> Any:
    below = [(_below(f, depth - 1), i) for f, i in node.next_functions] if node is not None and depth else []
    return type(node).__name__, below


@pytest.mark.parametrize("shape", [(2,), (4, 2), (3, 4, 2)])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("inner", [False, True])
def test_a_linear_layer_shows_pytorchs_nodes(shape: tuple[int, ...], bias: bool, inner: bool) -> None:
    found = []
    for m in (torch, mt):
        layer, x = m.nn.Linear(2, 3, bias=bias), m.ones(shape, requires_grad=inner)
        y = layer(x).relu().reshape(-1, 3)
        loss = m.nn.functional.cross_entropy(y, m.zeros(len(y), dtype=m.int64))
        found.append(_below(loss.grad_fn, 8))
    assert found[1] == found[0]


KEEPERS = {
    "mul": lambda m, a, b: a * b, "div": lambda m, a, b: a / b, "mm": lambda m, a, b: a @ b, "pow": lambda m, a, b: a**b,
    "atan2": lambda m, a, b: a.atan2(b), "lerp": lambda m, a, b: m.lerp(a, b, b),
    "mv": lambda m, a, b: a.mv(b[0]), "dot": lambda m, a, b: a[0].dot(b[0]), "addcdiv": lambda m, a, b: m.addcdiv(a, a, b),
    "bmm": lambda m, a, b: m.bmm(a[None], b[None]), "hypot": lambda m, a, b: m.hypot(a, b),
    "conv": lambda m, a, b: m.nn.functional.conv1d(a[None], b[:, :, None], b[0]), "svd": lambda m, a, b: m.linalg.svd(a).S,
}  # fmt: skip


@pytest.mark.parametrize("name", KEEPERS)
def test_hooks_on_saved_tensors_are_called_in_order(name: str) -> None:
    found = []
    for m in (torch, mt):
        a = m.tensor([[0.5, 1.25], [0.75, 2.0]], requires_grad=True)
        b = m.tensor([[1.5, 0.25], [2.0, 0.125]], requires_grad=True)
        log: list[Any] = []

        def note(what: str, t: Any, to: list[Any] = log) -> Any:
            to.append((what, tuple(t.shape), [round(abs(v), 4) for v in t.detach().reshape(-1).tolist()]))
            return t

        with m.autograd.graph.saved_tensors_hooks(lambda t: note("pack", t), lambda t: note("unpack", t)):
            y = KEEPERS[name](m, a, b)
        y.sum().backward()
        found.append(log)
    assert found[0] == found[1]


def test_an_unpacked_leaf_is_shown_as_a_leaf() -> None:
    found = []
    for m in (torch, mt):
        x = m.ones(2, requires_grad=True)
        with m.autograd.graph.saved_tensors_hooks(lambda t: t.detach() * 4, lambda t: t):
            y = x.square()
        kept = y.grad_fn._saved_self
        (g,) = m.autograd.grad(y.sum(), x, create_graph=True)
        (h,) = m.autograd.grad(g.sum(), x)
        found.append(["grad_fn" in str(kept), kept.is_leaf, kept.grad_fn, kept.requires_grad, g.tolist(), h.tolist()])
    assert found[0] == found[1]


UNDEFINED = {
    "floor_divide": lambda m, x: m.floor_divide(x, x),
    "//": lambda m, x: 2 // x,
    "heaviside": lambda m, x: m.heaviside(x, x),
    "ldl_factor": lambda m, x: m.linalg.ldl_factor(x)[0],
    "ldl_solve": lambda m, x: m.linalg.ldl_solve(x, m.arange(1, 3, dtype=m.int32), x),
    "geqrf": lambda m, x: m.geqrf(x)[0],
    "unique": lambda m, x: m.unique(x),
    "unique dim": lambda m, x: m.unique(x, dim=0),
    "unique_consecutive": lambda m, x: m.unique_consecutive(x, dim=0),
    "zeta": lambda m, x: m.special.zeta(x, 2.0),
    "igamma": lambda m, x: m.igamma(x, x),
    "igammac": lambda m, x: m.igammac(x, x),
    "histogram": lambda m, x: m.histogram(x, 3)[0],
    "edges": lambda m, x: m.histogram(x, 3)[1],
    "weights": lambda m, x: m.histogram(x.detach(), 3, weight=x)[0],
    "bins": lambda m, x: m.histogram(x.detach(), x[0].sort()[0])[0],
    "out": lambda m, x: m.histogram(x, 3, out=(m.empty(0), m.empty(0)))[0],
    "histogramdd": lambda m, x: m.histogramdd(x, [2, 2])[0],
    "histogramdd, edges": lambda m, x: m.histogramdd(x, [m.arange(3.0)] * 2)[0],
    "binomial": lambda m, x: m.binomial(m.full((2, 2), 5.0), x / 4),
    "count": lambda m, x: m.binomial(x, m.full((2, 2), 0.5)),
}


@pytest.mark.parametrize("name", UNDEFINED)
def test_what_has_no_derivative_says_so_in_backward(name: str) -> None:
    found = []
    for m in (torch, mt):
        x = m.tensor([[1.5, 0.25], [2.0, 3.0]], requires_grad=True)
        y = UNDEFINED[name](m, x)
        with pytest.raises(RuntimeError) as caught:
            (x.sum() + y.sum()).backward()
        found.append((y.requires_grad, str(caught.value)))
    assert found[0] == found[1]
