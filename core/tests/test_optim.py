"""Optimisers: first steps by hand, state, groups, hooks, gradients through steps, and what they minimise."""

from __future__ import annotations

import copy
import math
import pickle

import pytest

import mortice as mt
from mortice import optim

STEPPERS = {
    "SGD": dict(lr=0.1, momentum=0.9), "ASGD": dict(lr=0.1), "Adadelta": dict(lr=30.0), "Adafactor": dict(lr=0.3),
    "Adagrad": dict(lr=1.0), "Adam": dict(lr=0.3), "AdamW": dict(lr=0.3), "Adamax": dict(lr=0.3), "NAdam": dict(lr=0.3),
    "RAdam": dict(lr=0.3), "RMSprop": dict(lr=0.1), "Rprop": dict(lr=0.1),
    "Muon": dict(lr=0.3), "LBFGS": dict(),
}  # fmt: skip
ELEMENTWISE = [n for n in STEPPERS if n not in ("LBFGS", "Adafactor", "Muon")]


def close(t, values, rel=1e-9):
    assert t.reshape(-1).tolist() == pytest.approx(values, rel=rel, abs=1e-12)


def after(name, grads, start=(1.0, -2.0), dtype=mt.float64, **options):
    """Return a parameter, and its optimiser, after steps by the gradients given."""
    p = mt.tensor(list(start), dtype=dtype, requires_grad=True)
    made = getattr(optim, name)([p], **options)
    for g in grads:
        p.grad = mt.tensor(g, dtype=dtype)
        made.step()
    return p, made


# ---- first steps by hand ----


def test_sgd_goes_down_the_gradient_and_keeps_momentum():
    close(after("SGD", [[3.0, -1.0]], lr=0.1)[0], [0.7, -1.9])
    close(after("SGD", [[3.0, -1.0]], lr=0.1, maximize=True)[0], [1.3, -2.1])
    close(after("SGD", [[3.0, -1.0]], lr=0.1, weight_decay=0.5)[0], [1 - 0.35, -2 + 0.2])
    close(after("SGD", [[3.0, -1.0], [1.0, 1.0]], lr=0.1, momentum=0.5)[0], [1 - 0.3 - 0.25, -2 + 0.1 - 0.05])
    close(after("SGD", [[2.0, 0.0]], lr=0.1, momentum=0.5, nesterov=True)[0], [1 - 0.3, -2.0])


@pytest.mark.parametrize("name", ["Adam", "AdamW", "Adamax"])
def test_adams_first_step_is_the_learning_rate_in_the_gradients_direction(name):
    p, _ = after(name, [[3.0, -0.1]], lr=0.1, weight_decay=0, eps=0)
    close(p, [0.9, -1.9])


def test_adamw_shrinks_the_parameter_itself():
    close(after("AdamW", [[3.0, -0.1]], lr=0.1, weight_decay=0.5, eps=0)[0], [0.95 - 0.1, -1.9 + 0.1])


def test_amsgrad_remembers_the_largest_square():
    _, made = after("Adam", [[10.0, 1.0], [0.0, 0.0]], amsgrad=True)
    (state,) = made.state.values()
    close(state["max_exp_avg_sq"], [0.1, 1e-3])
    close(state["exp_avg_sq"], [0.0999, 0.999e-3])


def test_radam_starts_as_plain_momentum():
    close(after("RAdam", [[3.0, -0.1]], lr=0.1)[0], [0.7, -1.99])


def test_nadam_looks_ahead():
    mu, ahead = [0.9 * (1 - 0.5 * 0.96 ** (n * 0.004)) for n in (1, 2)]
    mu32 = mt.tensor(mu, dtype=mt.float32).item()  # the product of momenta is kept in float32
    step = 0.1 * ((1 - mu) / (1 - mu32) + ahead * 0.1 / (1 - mu32 * ahead))
    close(after("NAdam", [[3.0, -0.1]], lr=0.1, eps=0)[0], [1 - step, -2 + step])


def test_rmsprop_adagrad_adadelta_divide_by_their_roots():
    close(after("RMSprop", [[3.0, -0.1]], lr=0.1, alpha=0.75, eps=0)[0], [0.8, -1.8])
    close(after("RMSprop", [[3.0, -0.1]], lr=0.1, alpha=0.5, eps=0, centered=True)[0], [0.8, -1.8])
    close(after("Adagrad", [[3.0, -4.0], [4.0, -3.0]], lr=0.1, eps=0)[0], [1 - 0.1 - 0.08, -2 + 0.1 + 0.06])
    rms = lambda v: math.sqrt(v + 1e-6)
    close(after("Adadelta", [[3.0, -0.1]])[0], [1 - 3 * rms(0) / rms(0.9), -2 + 0.1 * rms(0) / rms(0.001)])


def test_rprop_grows_steps_and_stays_where_the_gradient_turned():
    p, made = after("Rprop", [[3.0, -1.0], [0.1, 5.0]], lr=0.1)
    close(p, [1 - 0.1 - 0.12, -2 + 0.1])
    (state,) = made.state.values()
    close(state["step_size"], [0.12, 0.05])
    close(state["prev"], [0.1, 0.0])


def test_asgd_averages_after_t0():
    p, made = after("ASGD", [[1.0, 0.0]] * 4, lr=0.1, lambd=0, t0=1)
    (state,) = made.state.values()
    close(p, [0.6, -2.0], rel=1e-6)
    close(state["ax"], [(0.7 + 0.6) / 2, -2.0], rel=1e-6)


def test_adafactor_keeps_rows_and_columns_only():
    p = mt.ones(3, 4, dtype=mt.float64, requires_grad=True)
    p.grad = mt.tensor([[1.0], [2.0], [3.0]], dtype=mt.float64) * mt.tensor([1.0, 2.0, 3.0, 4.0], dtype=mt.float64)
    made = optim.Adafactor([p], lr=0.1)
    made.step()
    state = made.state[p]
    assert (state["row_var"].shape, state["col_var"].shape) == ((3, 1), (1, 4))
    close(state["row_var"], [7.5, 30.0, 67.5])
    # The squares of a matrix of rank one are known exactly, so each element steps by lr in its direction.
    close(p, [0.9] * 12)


def test_muons_step_is_nearly_orthogonal():
    mt.manual_seed(0)
    p = mt.zeros(4, 8, requires_grad=True)
    p.grad = mt.randn(4, 8)
    made = optim.Muon([p], lr=1.0, weight_decay=0.0)
    made.step()
    sizes = mt.linalg.svdvals(p.detach()).tolist()
    assert all(0.6 < s < 1.3 for s in sizes)


# ---- what they are for ----


@pytest.mark.parametrize("name", STEPPERS)
def test_every_optimiser_finds_the_bottom_of_a_bowl(name):
    start = [[3.0, -2.0], [1.0, 0.5]]
    p = mt.tensor(start, requires_grad=True)
    made = getattr(optim, name)([p], **STEPPERS[name])

    def closure():
        made.zero_grad()
        loss = ((p - 1) ** 2).sum()
        loss.backward()
        return loss

    first = made.step(closure).item()
    for _ in range(60):
        made.step(closure)
    assert first == pytest.approx(13.25)
    assert closure().item() < 0.05 * first


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_solves_rosenbrock(search):
    p = mt.tensor([-1.2, 1.0], dtype=mt.float64, requires_grad=True)
    made = optim.LBFGS(
        [p], lr=1 if search else 0.2, max_iter=100, tolerance_grad=1e-10, tolerance_change=1e-14, line_search_fn=search
    )

    def closure():
        made.zero_grad()
        loss = 100 * (p[1] - p[0] ** 2) ** 2 + (1 - p[0]) ** 2
        loss.backward()
        return loss

    for _ in range(5 if search else 30):
        made.step(closure)
    close(p, [1.0, 1.0], rel=1e-6)


def test_lbfgs_steps_once_to_the_bottom_of_a_line_searched_bowl():
    p = mt.tensor([4.0, -4.0], dtype=mt.float64, requires_grad=True)
    made = optim.LBFGS([p], line_search_fn="strong_wolfe", max_iter=3)

    def closure():
        made.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    made.step(closure)
    close(p, [0.0, 0.0])
    (state,) = made.state.values()
    assert state["n_iter"] <= 3 and state["func_evals"] <= 6


@pytest.mark.parametrize("most, calls", [(1, 2), (3, 4)])
def test_a_line_search_ends_when_max_eval_is_used_up(most, calls):
    p = mt.tensor([100.0], requires_grad=True)
    made = optim.LBFGS([p], lr=1e-9, max_iter=2, max_eval=most, line_search_fn="strong_wolfe")
    asked = []

    def closure():
        made.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        asked.append(p.item())
        return loss

    made.step(closure)
    assert len(asked) == made.state[p]["func_evals"] == calls


@pytest.mark.parametrize("tolerance", [-math.inf, -1.0])
def test_lbfgs_may_be_asked_to_go_on_without_a_gradient(tolerance):
    p = mt.zeros(3, requires_grad=True)
    optimiser = optim.LBFGS([p], tolerance_grad=tolerance)
    assert optimiser.step(lambda: mt.tensor([10])).item() == 10
    assert p.tolist() == [0, 0, 0]


# ---- kinds of parameters ----


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_a_complex_parameter_moves_like_a_pair_of_reals(name):
    grads = [[1.0, -2.0, 0.5, 3.0], [0.5, 1.0, -1.0, 3.0], [2.0, -1.0, -1.0, 0.0]]
    pair, _ = after(name, grads, start=[1.0, -2.0, 3.0, 0.5])
    p = mt.tensor([1 - 2j, 3 + 0.5j], dtype=mt.complex128, requires_grad=True)
    made = getattr(optim, name)([p])
    for g in grads:
        p.grad = mt.tensor([complex(*g[:2]), complex(*g[2:])], dtype=mt.complex128)
        made.step()
    close(mt.view_as_real(p.detach()), pair.tolist())


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_a_large_or_strided_parameter_moves_like_its_elements(name):
    base = mt.sin(mt.arange(180_000, dtype=mt.float64) * 0.37)
    whole = base.clone().requires_grad_()
    strided = mt.zeros(300, 1200, dtype=mt.float64)[:, ::2]
    strided.copy_(base.reshape(600, 300).T)
    strided.requires_grad_()
    some = base[::1000].clone().requires_grad_()
    made = getattr(optim, name)([whole, strided, some])
    for i in range(3):
        for p in (whole, strided, some):
            p.grad = p.detach() * (i - 1.5)
        made.step()
    assert mt.equal(whole.detach()[::1000], some.detach())
    assert mt.equal(strided.detach().T.reshape(-1), whole.detach())


@pytest.mark.parametrize("dtype", [mt.float16, mt.bfloat16, mt.float32])
@pytest.mark.parametrize("name", [*ELEMENTWISE, "Adafactor"])
def test_parameters_of_few_bits_keep_their_dtype_and_move(name, dtype):
    p, made = after(name, [[1.0, -2.0], [0.5, 1.0]], dtype=dtype)
    exact, _ = after(name, [[1.0, -2.0], [0.5, 1.0]])
    assert p.dtype is dtype
    if dtype is mt.float32 or name not in ("Adam", "NAdam", "RAdam", "AdamW", "Adadelta"):
        close(p.to(mt.float64), exact.tolist(), rel=2e-2 if dtype.itemsize == 2 else 1e-5)
    (state,) = made.state.values() or ({},)
    assert all(v.dtype is dtype for k, v in state.items() if k not in ("step", "eta", "mu", "mu_product"))


def test_a_parameter_without_elements_or_dims_is_fine():
    for name in [*ELEMENTWISE, "Adafactor"]:
        for shape in ((0,), (), (2, 0), (3, 1, 2)):
            p = mt.ones(shape, requires_grad=True)
            made = getattr(optim, name)([p])
            p.grad = mt.ones(shape)
            made.step()
            assert p.shape == shape
            assert not p.numel() or float(p.detach().max()) < 1


def test_parameters_keep_their_memory_and_count_the_write():
    p = mt.ones(3, requires_grad=True)
    alias = p.detach()
    y = (p * p).sum()
    p.grad = mt.ones(3)
    optim.SGD([p], lr=1.0).step()
    assert alias.tolist() == [0, 0, 0]
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_parameters_without_gradient_stay():
    p, q = mt.ones(2, requires_grad=True), mt.ones(2, requires_grad=True)
    p.grad = mt.ones(2)
    optim.Adam([p, q]).step()
    assert q.tolist() == [1, 1] and p.tolist() != [1, 1]


def test_a_state_of_another_dtype_is_named():
    p, made = after("Adam", [[1.0, 1.0]])
    made.state[p]["exp_avg"] = mt.zeros(2, dtype=mt.float32)
    with pytest.raises(TypeError, match="adam_step: expected gradient and state in .*float64; got .*float32"):
        made.step()


# ---- state ----


@pytest.mark.parametrize("name", [n for n in STEPPERS if n != "LBFGS"])
@pytest.mark.parametrize("how", ["state_dict", "pickle", "deepcopy"])
def test_a_state_goes_on_where_it_was(name, how):
    def run(split):
        p = mt.tensor([[3.0, -2.0]], requires_grad=True)
        made = getattr(optim, name)([p], **STEPPERS[name])
        for i in range(8):
            if i == split and how == "state_dict":
                state = copy.deepcopy(made.state_dict())
                made = getattr(optim, name)([p], **STEPPERS[name])
                made.load_state_dict(state)
            elif i == split:
                made = pickle.loads(pickle.dumps(made)) if how == "pickle" else copy.deepcopy(made)
                (p,) = made.param_groups[0]["params"]
            p.grad = p.detach() * 2
            made.step()
        return p.tolist()

    assert run(4) == run(None)


def test_a_step_count_that_someone_writes_counts():
    p, made = after("Adam", [[1.0, 1.0]] * 3)
    made.state[p]["step"].fill_(10.0)
    p.grad = mt.ones(2, dtype=mt.float64)
    made.step()
    assert made.state[p]["step"].item() == 11.0
    other, again = after("Adam", [[1.0, 1.0]] * 3)
    again.state[other]["step"] = mt.tensor(10.0)
    other.grad = mt.ones(2, dtype=mt.float64)
    again.step()
    assert other.tolist() == p.tolist()


def test_loading_copies_and_casts_the_state_but_not_the_count():
    p, made = after("Adam", [[1.0, 1.0]], dtype=mt.float32)
    q = mt.ones(2, dtype=mt.float64, requires_grad=True)
    other = optim.Adam([q], lr=0.5)
    other.load_state_dict(made.state_dict())
    assert other.param_groups[0]["lr"] == 1e-3
    assert other.state[q]["exp_avg"].dtype is mt.float64 and other.state[q]["step"].dtype is mt.float32
    q.grad = mt.ones(2, dtype=mt.float64)
    other.step()
    assert made.state[p]["step"].item() == 1


def test_step_counts_live_in_the_default_double_dtype():
    mt.set_default_dtype(mt.float64)
    try:
        _, made = after("NAdam", [[1.0, 1.0]])
    finally:
        mt.set_default_dtype(mt.float32)
    (state,) = made.state.values()
    assert state["step"].dtype is state["mu_product"].dtype is mt.float64


# ---- groups ----


def test_a_parameter_list_is_a_list_of_parameters():
    weight = mt.nn.Parameter(mt.ones(2))
    optimizer = optim.SGD(mt.nn.ParameterList([weight]), lr=0.5)  # as a module's own `parameters` may return
    weight.sum().backward()
    optimizer.step()
    assert weight.tolist() == [0.5, 0.5]
    for module in mt.nn.Sequential(mt.nn.Linear(1, 1)), mt.nn.ParameterDict({"a": weight}):
        with pytest.raises(TypeError, match=r"Give its \.parameters\(\)"):
            optim.SGD(module, lr=0.5)


def test_groups_have_options_of_their_own():
    p, q = mt.ones(1, requires_grad=True), mt.ones(1, requires_grad=True)
    made = optim.SGD([{"params": [p]}, {"params": [q], "lr": 0.5}], lr=0.0)
    for t in (p, q):
        t.grad = mt.ones(1)
    made.step()
    assert (p.item(), q.item()) == (1.0, 0.5)
    assert "Parameter Group 1" in repr(made)


def test_names_of_parameters_are_kept_and_saved():
    layer = mt.nn.Linear(2, 1)
    made = optim.SGD(layer.named_parameters(), lr=0.1)
    assert made.state_dict()["param_groups"][0]["param_names"] == ["weight", "bias"]
    other = optim.SGD(list(mt.nn.Linear(2, 1).named_parameters(prefix="other")), lr=0.1)
    other.load_state_dict(made.state_dict())
    assert other.param_groups[0]["param_names"] == ["weight", "bias"]


def test_gradients_are_dropped_or_zeroed():
    p = mt.ones(2, requires_grad=True)
    made = optim.SGD([p])
    p.grad = kept = mt.ones(2)
    made.zero_grad(set_to_none=False)
    assert kept.tolist() == [0, 0] and p.grad is not None
    made.zero_grad()
    assert p.grad is None


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda p: optim.SGD([], lr=1), ValueError, "optimizer got an empty parameter list"),
        (lambda p: optim.SGD(p, lr=1), TypeError, "should be an iterable of Tensors or dicts"),
        (lambda p: optim.SGD([p * 2], lr=1), ValueError, "can't optimize a non-leaf Tensor"),
        (lambda p: optim.SGD([p], lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda p: optim.Adam([p], betas=(1.0, 0.9)), ValueError, "Invalid beta parameter at index 0: 1.0"),
        (lambda p: optim.SGD([p], lr=1, nesterov=True), ValueError, "Nesterov momentum requires a momentum"),
        (lambda p: optim.Adam([{"params": p}, {"params": [p]}]), ValueError, "more than one parameter group"),
        (lambda p: optim.Muon([p]), ValueError, "Muon only supports 2D parameters"),
        (lambda p: optim.LBFGS([p], line_search_fn="x").step(lambda: p.sum()), None, ""),
        (lambda p: optim.Optimizer([p], {"lr": optim.optimizer.required}), ValueError, "didn't specify a value of required"),
        (lambda p: optim.Adam([p], fused=True, foreach=True), RuntimeError, "cannot be `True` together"),
        (lambda p: optim.Adam([p], lr=mt.ones(2)), ValueError, "Tensor lr must be 1-element"),
    ],
)  # fmt: skip
def test_bad_arguments_are_refused(make, kind, text):
    p = mt.ones(2, requires_grad=True)
    if kind is None:  # without a gradient there is nothing to search along
        assert make(p).item() == 2
        return
    with pytest.raises(kind, match=text):
        make(p)


def test_sparse_adam_refuses_dense_gradients():
    p = mt.ones(2, requires_grad=True)
    made = optim.SparseAdam([p])
    assert made.step(lambda: 3) == 3
    p.grad = mt.ones(2)
    with pytest.raises(RuntimeError, match="does not support dense gradients"):
        made.step()
    with pytest.raises(ValueError, match="Invalid learning rate: 0"):
        optim.SparseAdam([p], lr=0)


# ---- hooks ----


def test_hooks_run_around_steps_until_they_are_removed():
    seen = []
    p = mt.ones(1, requires_grad=True)
    made = optim.SGD([p])
    from mortice.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    handles = [
        made.register_step_pre_hook(lambda *_: seen.append("pre")),
        made.register_step_post_hook(lambda *_: seen.append("post")),
        register_optimizer_step_pre_hook(lambda *_: seen.append("all pre")),
        register_optimizer_step_post_hook(lambda *_: seen.append("all post")),
    ]
    made.step()
    assert seen == ["all pre", "pre", "post", "all post"]
    for handle in handles:
        handle.remove()
        handle.remove()
    made.step()
    assert len(seen) == 4
    made.register_step_pre_hook(lambda *_: 3)
    with pytest.raises(RuntimeError, match="must return None or a tuple"):
        made.step()


def test_an_optimiser_of_ones_own_works_as_written_for_pytorch():
    class Own(optim.Optimizer):
        def __init__(self, params, lr=0.5):
            super().__init__(params, {"lr": lr})

        @mt.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        self.state[p]["seen"] = self.state[p].get("seen", 0) + 1
                        p.add_(p.grad, alpha=-group["lr"])

    p = mt.ones(1, requires_grad=True)
    made, seen = Own([p]), []
    made.register_step_post_hook(lambda *_: seen.append(1))
    schedule = optim.lr_scheduler.StepLR(made, 1, 0.5)
    p.grad = mt.ones(1)
    made.step()
    schedule.step()
    made.step()
    assert p.item() == 0.25 and seen == [1, 1] and made.state_dict()["state"] == {0: {"seen": 2}}


# ---- gradients through steps ----


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_a_differentiable_step_has_the_gradient_that_differences_show(name):
    def outcome(w):
        p = w.clone()
        made = getattr(optim, name)([p], differentiable=True)
        for i in range(3):
            p.grad = w**3 + 0.3 * i * w
            made.step()
        return (p**2).sum()

    w = mt.tensor([0.7, -1.5], dtype=mt.float64, requires_grad=True)
    outcome(w).backward()
    for i in range(2):
        h = mt.zeros(2, dtype=mt.float64)
        h[i] = 1e-6
        slope = (outcome(w.detach() + h) - outcome(w.detach() - h)).item() / 2e-6
        assert w.grad[i].item() == pytest.approx(slope, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_steps_that_are_recorded_and_those_that_are_not_agree(name):
    grads = [[1.0, -2.0], [0.5, 1.0], [0.3, -0.2]]
    plain, _ = after(name, grads)
    p = mt.tensor([1.0, -2.0], dtype=mt.float64, requires_grad=True).clone()
    made = getattr(optim, name)([p], differentiable=True)
    for g in grads:
        p.grad = mt.tensor(g, dtype=mt.float64)
        made.step()
    close(p.detach(), plain.tolist())


def test_a_learning_rate_learns():
    lr = mt.tensor(0.1, dtype=mt.float64, requires_grad=True)
    p = mt.tensor([1.0, -2.0], dtype=mt.float64, requires_grad=True).clone()
    p.grad = mt.tensor([3.0, 1.0], dtype=mt.float64)
    optim.SGD([p], lr=lr, differentiable=True).step()
    p.sum().backward()
    assert lr.grad.item() == -4.0


def test_what_a_product_of_momenta_was_has_a_gradient():
    p, product = [mt.tensor(v, dtype=mt.float64, requires_grad=True) for v in ([1.0, 2.0], 0.9)]
    q = p.clone()
    q.grad = mt.tensor([0.5, -0.25], dtype=mt.float64)
    optimiser = optim.NAdam([q], lr=0.1, differentiable=True)
    optimiser.state[q].update(
        step=mt.tensor(3.0), exp_avg=mt.full_like(q, 0.2), exp_avg_sq=mt.full_like(q, 0.3), mu_product=product
    )
    optimiser.step()
    (g,) = mt.autograd.grad(q.sum(), product)
    h = 1e-6

    def moved(value):
        r = mt.tensor([1.0, 2.0], dtype=mt.float64, requires_grad=True)
        r.grad = q.grad
        plain = optim.NAdam([r], lr=0.1)
        held = mt.tensor(value, dtype=mt.float64)
        plain.state[r].update(step=mt.tensor(3.0), exp_avg=mt.full_like(r, 0.2), exp_avg_sq=mt.full_like(r, 0.3), mu_product=held)
        plain.step()
        return r.sum().item()

    assert g.item() == pytest.approx((moved(0.9 + h) - moved(0.9 - h)) / (2 * h), rel=1e-5)


def test_an_optimizer_that_wraps_another_makes_the_tables_of_hooks_itself():
    class Wrapper(mt.optim.Optimizer):
        def __init__(self, inner):
            self.inner = inner
            self._optimizer_step_pre_hooks, self._optimizer_step_post_hooks = {}, {}
            self._patch_step_function()
            self.defaults, self.param_groups, self.state = inner.defaults, inner.param_groups, inner.state

        def step(self, closure=None):
            return self.inner.step(closure)

    w = mt.ones(1, requires_grad=True)
    optimizer = Wrapper(mt.optim.SGD([w], lr=0.5))
    seen = []
    optimizer.register_step_post_hook(lambda *args: seen.append(1))
    w.sum().backward()
    optimizer.step()
    assert w.tolist() == [0.5] and seen == [1]
    del optimizer._optimizer_step_pre_hooks, optimizer._optimizer_step_post_hooks
    optimizer.step()
    assert w.tolist() == [0.0]


@pytest.mark.parametrize("name", ["clamp_min", "clamp_max", "maximum", "minimum"])
def test_foreach_bounds_are_of_numbers_and_lists_and_are_cast_no_way_that_loses(name):
    op = getattr(mt, {"maximum": "clamp_min", "minimum": "clamp_max"}.get(name, name))
    of_new, in_place = getattr(mt, f"_foreach_{name}"), getattr(mt, f"_foreach_{name}_")
    whole = [mt.tensor([0, 1, 4]), mt.tensor([[3], [0]])]
    for bound in (2, 2.5, [1, 2.5], [t.flip(0) for t in whole]):
        wanted = [op(t, bound[i] if isinstance(bound, list) else bound) for i, t in enumerate(whole)]
        found = of_new(whole, bound)
        assert all(mt.equal(f, w) and f.dtype == w.dtype for f, w in zip(found, wanted))
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type Long"):
        in_place(whole, 2.5)
    assert in_place(whole, 2) is whole and mt.equal(whole[0], op(mt.tensor([0, 1, 4]), 2))


def test_lists_are_divided_by_device_and_dtype():
    from mortice.utils._foreach_utils import _group_tensors_by_device_and_dtype as grouped
    from mortice.utils._foreach_utils import _has_foreach_support

    a, b, c = mt.ones(2), mt.ones(1, dtype=mt.float16), mt.zeros(3)
    found = grouped([[a, b, c], [None, None, a], []], with_indices=True)
    assert found == {(a.device, a.dtype): ([[a, c], [None, a], []], [0, 2]), (b.device, b.dtype): ([[b], [None], []], [1])}
    assert [lists[0][0] is t for (lists, _), t in zip(found.values(), (a, b))] == [True, True]
    assert [indices for _, indices in grouped([[a, b, c]]).values()] == [[], []]
    for wrong, words in (
        ([], r"got the lengths \[\]"), ([[]], r"got the lengths \[0\]"), ([[a, None]], "got None at 1"),
        ([[a, b], [a]], r"got the lengths \[2, 1\]"),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=words):
            grouped(wrong)
    assert _has_foreach_support([a, None], a.device) and not _has_foreach_support([mt.nn.Parameter(a)], a.device)
    assert not _has_foreach_support([a.to("meta")], mt.device("meta"))


def test_foreach_functions_take_lists():
    a, b = [mt.tensor([1.0, -4.0]), mt.tensor([[9.0]])], [mt.tensor([2.0, 3.0]), mt.tensor([[4.0]])]

    def values(tensors):
        return [t.flatten().tolist() for t in tensors]

    assert values(mt._foreach_add(a, b, alpha=2)) == [[5.0, 2.0], [17.0]]
    assert values(mt._foreach_mul(a, 2)) == values(mt._foreach_mul(a, mt.tensor(2.0))) == [[2.0, -8.0], [18.0]]
    assert values(mt._foreach_div(a, [2.0, 3.0])) == [[0.5, -2.0], [3.0]]
    assert values(mt._foreach_sub(a, b)) == [[-1.0, -7.0], [5.0]]
    assert values(mt._foreach_pow(a, 2)) == [[1.0, 16.0], [81.0]]
    assert values(mt._foreach_pow(2, b)) == [[4.0, 8.0], [16.0]]
    assert values(mt._foreach_norm(b, 1)) == [[5.0], [4.0]] and values(mt._foreach_max(a)) == [[1.0], [9.0]]
    assert values(mt._foreach_lerp(a, b, 0.5)) == [[1.5, -0.5], [6.5]]
    assert values(mt._foreach_addcmul(a, b, b, value=2)) == [[9.0, 14.0], [41.0]]
    assert values(mt._foreach_addcdiv(a, b, b, [1.0, 2.0])) == [[2.0, -3.0], [11.0]]
    assert values(mt._foreach_clamp_max(a, 0.5)) == [[0.5, -4.0], [0.5]]
    assert values(mt._foreach_mm([mt.eye(2)], [mt.ones(2, 1)])) == [[1.0, 1.0]]
    assert values(mt._foreach_maximum(a, b)) == [[2.0, 3.0], [9.0]] and values(mt._foreach_abs(a)) == [[1.0, 4.0], [9.0]]
    assert mt._foreach_mul_(a, b) is a and values(a) == [[2.0, -12.0], [36.0]]
    mt._foreach_addcmul_(a, b, b, mt.tensor([1.0, -1.0]))
    assert values(a) == [[6.0, -3.0], [20.0]]
    assert mt._foreach_addcdiv_(a, b, b, scalars=[0.0, 0.0]) is a and values(mt._foreach_clone(a)) == values(a)
    assert mt._foreach_clamp_min_(a, 0) is a
    mt._foreach_sqrt_(b)
    mt._foreach_copy_([a[1]], [b[1]])
    assert values(a) == [[6.0, 0.0], [2.0]] and b[1].item() == 2.0
    mt._foreach_zero_(a)
    assert values(a) == [[0.0, 0.0], [0.0]]
    w = mt.ones(2, requires_grad=True)
    mt._foreach_mul([w], 3)[0].sum().backward()
    assert w.grad.tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match="must have the same number of tensors, got 2 and 1"):
        mt._foreach_add(a, b[:1])
    for call, text in (
        (lambda: mt._foreach_norm([]), "at least one tensor"),
        (lambda: mt._foreach_mul(a, mt.ones(2)), "expected to be 0 dim but it has 1 dimensions and 2 elements"),
        (lambda: mt._foreach_addcdiv(a, b, b, mt.tensor(1.0)), "packed scalar Tensor to be of dimension 1. Got 0"),
        (lambda: mt._foreach_addcmul(a, b, b, mt.ones(2, 2)[:, 1]), "^Expected scalars to be contiguous"),
        (lambda: mt._foreach_addcmul(a, b, b, mt.ones(3)), "^Expected length of scalars to match input of length 2 but got 3 instead"),
    ):
        with pytest.raises(RuntimeError, match=text):
            call()
    with pytest.raises(TypeError, match="_foreach_add: expected a list or tuple of Tensors; got Tensor"):
        mt._foreach_add(b[0], 1)


@pytest.mark.parametrize("clear", [lambda p: optim.SGD([p], 0.1).zero_grad(False), lambda p: holding(p).zero_grad(False)])
def test_gradients_that_become_zeros_stay_the_tensors_that_they_are(clear):
    for create_graph in (False, True):
        p = mt.nn.Parameter(mt.ones(3))
        (p**3).sum().backward(create_graph=create_graph)
        g = p.grad
        clear(p)
        assert p.grad is g and g.tolist() == [0, 0, 0] and not g.requires_grad and g.grad_fn is None


def holding(p):
    module = mt.nn.Module()
    module.p = p
    return module


@pytest.mark.parametrize("kind", [optim.Adam, optim.AdamW, optim.Adamax, optim.NAdam, optim.RAdam])
def test_parameters_that_have_counted_differently_go_each_by_its_own_count(kind):
    together, apart = [[mt.nn.Parameter(mt.ones(3)) for _ in range(3)] for _ in range(2)]
    of_all, of_each = kind(together, lr=0.1), [kind([p], lr=0.1) for p in apart]
    for missing in (0, None, 2, None):
        for i, (p, q) in enumerate(zip(together, apart)):
            p.grad = q.grad = None if i == missing else mt.tensor([1.0, -2.0, 3.0 + i])
        of_all.step()
        [optimizer.step() for optimizer in of_each]
    assert [of_all.state[p]["step"].item() for p in together] == [3, 4, 3]
    of_all.state[together[1]]["step"].fill_(9), of_each[1].state[apart[1]]["step"].fill_(9)
    of_all.step(), [optimizer.step() for optimizer in of_each]
    assert [p.tolist() for p in together] == [p.tolist() for p in apart]
