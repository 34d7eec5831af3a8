"""amp: what autocast casts and what not, its cache and nesting, gradients through it; GradScaler; the lists against PyTorch."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import mortice as mt
from mortice.amp import GradScaler, autocast, custom_bwd, custom_fwd, lists
from mortice.nn import functional as F

BF, F16, F32, F64 = mt.bfloat16, mt.float16, mt.float32, mt.float64


@pytest.fixture(autouse=True)
def _off_afterwards() -> Iterator[None]:
    mt.manual_seed(0)
    yield
    assert not mt.is_autocast_enabled("cpu") and mt.autocast_increment_nesting() == 1 and mt.autocast_decrement_nesting() == 0


# ---- what is cast ----


@pytest.mark.needs("cpu")
def test_products_compute_in_the_lower_dtype_whatever_comes_in() -> None:
    x, w = mt.randn(3, 4), mt.randn(4, 4)
    half = x.bfloat16()
    with autocast("cpu"):
        for made in (
            x @ w, half @ w, mt.mm(x, w), mt.matmul(x, w.bfloat16()), F.linear(x, w), F.linear(half, w, mt.ones(4)),
            mt.addmm(mt.ones(4), x, w), mt.bmm(x[None], w[None]), F.conv1d(x[None, :3], mt.ones(2, 3, 1), mt.ones(2)),
            F.scaled_dot_product_attention(x, w, half.mean() * w), mt.einsum("ij,jk->ik", x, w),
        ):  # fmt: skip
            assert made.dtype is BF
        assert (x.double() @ w.double()).dtype is F64  # float64 is left alone
    assert (x @ w).dtype is F32


@pytest.mark.needs("cpu")
def test_the_values_are_those_of_the_cast_operands() -> None:
    x, w = mt.randn(3, 4), mt.randn(4, 5)
    for dtype in (BF, F16):
        with autocast("cpu", dtype=dtype):
            made = x @ w
        assert made.dtype is dtype and made.tolist() == (x.to(dtype) @ w.to(dtype)).tolist()


@pytest.mark.needs("cpu")
def test_sensitive_functions_compute_in_float32_on_the_cpu() -> None:
    x, y = mt.rand(2, 3).bfloat16(), mt.rand(2, 3).bfloat16()
    with autocast("cpu"):
        for made in (
            F.mse_loss(x, y), F.l1_loss(x, y), F.smooth_l1_loss(x, y), F.huber_loss(x, y), F.cross_entropy(x, mt.tensor([0, 2])),
            F.binary_cross_entropy(x, y), F.binary_cross_entropy_with_logits(x, y), F.kl_div(x, y, reduction="sum"),
            F.nll_loss(x, mt.tensor([0, 2])), mt.prod(x), mt.cdist(x, y), mt.quantile(x, mt.tensor(0.5)),
            mt.linalg.inv(mt.eye(3).bfloat16()), mt.fft.rfft(x).real, mt.trace(x), F.avg_pool3d(mt.ones(1, 2, 2, 2).bfloat16(), 2),
        ):  # fmt: skip
            assert made.dtype is F32
        # PyTorch's list for the CPU leaves these as they come, unlike the one for accelerators.
        for made in (x.exp(), x.softmax(-1), x.log(), x.pow(2), x.sum(), F.layer_norm(x, (3,)), x.norm()):
            assert made.dtype is BF
        assert mt.cat([x, y.float()]).dtype is F32 and mt.stack([x, y]).dtype is BF
        assert F.bilinear(x.float(), y.float(), mt.rand(4, 3, 3)).dtype is F32
        assert mt.dot(x[0].float(), y[0].float()).dtype is F32 and mt.mv(x.float(), y[0].float()).dtype is F32


@pytest.mark.needs("cpu")
def test_accelerators_have_a_list_of_their_own() -> None:
    from mortice.backends import plugins

    if "strict" not in plugins.list_backends():
        pytest.skip("no backend here has a device that is not a CPU")
    kind = "strict"
    x = mt.rand(2, 3, device=kind)
    assert x.half().pow(1.1).dtype is F16
    with autocast(kind):
        low = x @ x.T
        assert low.dtype is F16 and low.device == x.device
        for made in (low.exp(), low.softmax(-1), low.sum(), low**2, low.log(), F.layer_norm(low, (2,)), low.norm(), low.cumsum(0)):
            assert made.dtype is F32
        assert mt.addcmul(low, low, low.float()).dtype is F32 and mt.dot(low[0], low.float()[0]).dtype is F32
        assert x.half().pow(1.1).tolist() == x.half().float().pow(1.1).tolist()  # the number is not rounded to half
        with pytest.raises(RuntimeError, match="unsafe to autocast"):
            F.binary_cross_entropy(low.sigmoid(), low.sigmoid())
        assert (mt.rand(2, 2) @ mt.rand(2, 2)).dtype is F32  # on the CPU it is off
        with autocast("cpu"):
            assert (mt.rand(2, 2) @ mt.rand(2, 2)).dtype is BF and (x @ x.T).dtype is F16


def test_a_function_is_one_operation_and_nothing_inside_is_cast_again() -> None:
    x, y = mt.randn(4, 3), mt.randn(5, 3)
    with autocast("cpu"):
        inside = mt.cdist(x, y)
    assert inside.tolist() == mt.cdist(x, y).tolist()


def test_results_written_into_a_given_tensor_are_not_cast() -> None:
    x, out = mt.randn(2, 2), mt.empty(2, 2)
    with autocast("cpu"):
        assert mt.mm(x, x, out=out).dtype is F32 and mt.cdist(x, x).dtype is F32
    assert out.tolist() == mt.mm(x, x).tolist()


# ---- modes ----


@pytest.mark.needs("cpu")
def test_blocks_nest_and_end_when_they_raise() -> None:
    x = mt.randn(2, 2)
    with autocast("cpu"):
        with autocast("cpu", enabled=False):
            assert (x @ x).dtype is F32 and not mt.is_autocast_enabled("cpu")
            with autocast("cpu", dtype=F16):
                assert (x @ x).dtype is F16 and mt.get_autocast_dtype("cpu") is F16
        assert (x @ x).dtype is BF and mt.get_autocast_dtype("cpu") is BF
    with pytest.raises(KeyError), autocast("cpu"):
        raise KeyError
    assert (x @ x).dtype is F32


@pytest.mark.needs("cpu")
def test_it_decorates_functions_and_belongs_to_a_thread() -> None:
    x, seen = mt.randn(2, 2), []

    @autocast("cpu")
    def twice(n: int) -> Any:
        return twice(n - 1) if n else x @ x

    assert twice(2).dtype is BF and not mt.is_autocast_enabled("cpu")
    with autocast("cpu"):
        thread = threading.Thread(target=lambda: seen.append((x @ x).dtype))
        thread.start()
        thread.join()
    assert seen == [F32]


@pytest.mark.needs("cpu")
def test_the_switches_one_by_one() -> None:
    x = mt.randn(2, 2)
    mt.set_autocast_enabled("cpu", True)
    try:
        assert (x @ x).dtype is BF and mt.is_autocast_cpu_enabled()
    finally:
        mt.set_autocast_enabled("cpu", False)
    mt.set_autocast_dtype("cpu", F16)
    try:
        with autocast("cpu"):
            assert (x @ x).dtype is F16
    finally:
        mt.set_autocast_dtype("cpu", BF)
    assert mt.get_autocast_cpu_dtype() is BF and mt.get_autocast_gpu_dtype() is F16
    assert mt.is_autocast_available("cpu:0") and not mt.is_autocast_available("meta")
    with pytest.raises(RuntimeError, match="unsupported autocast device_type 'meta'"):
        autocast("meta")
    for call in (autocast, mt.is_autocast_available, mt.is_autocast_enabled, mt.get_autocast_dtype):
        with pytest.raises(RuntimeError, match="at start of device string: nowhere"):
            call("nowhere")
    with autocast("cpu:0"):
        assert mt.is_autocast_enabled("cpu") and (x @ x).dtype is BF
    with pytest.raises(ValueError, match="of type `str`"):
        autocast(3)  # type: ignore[arg-type]
    with pytest.warns(UserWarning, match="CPU Autocast only supports dtypes of"), autocast("cpu", F32):
        assert (x @ x).dtype is F32
    if not mt.cuda.is_available():
        with pytest.warns(UserWarning, match="CUDA is not available"), mt.autocast("cuda"):
            assert (x @ x).dtype is F32
        with (
            pytest.warns(UserWarning, match="CUDA is not available"),
            pytest.warns(FutureWarning, match=r"`torch.cuda.amp.GradScaler\(args...\)` is deprecated"),
        ):
            assert not mt.cuda.amp.GradScaler().is_enabled()
    with pytest.warns(FutureWarning, match=r"use `torch.amp.autocast\('cuda', args...\)` instead"):
        mt.cuda.amp.autocast(enabled=False)
    with pytest.warns(FutureWarning, match="`torch.cpu.amp.autocast"), mt.cpu.amp.autocast():
        assert (x @ x).dtype is BF
    with pytest.warns(FutureWarning, match=r"use `torch.amp.custom_bwd\(args..., device_type='cuda'\)` instead"):
        mt.cuda.amp.custom_bwd(lambda ctx, g: g)


# ---- gradients and the cache ----


def test_gradients_come_back_in_the_dtype_of_each_tensor() -> None:
    x, w = mt.randn(3, 4).requires_grad_(), mt.randn(4, 4).requires_grad_()
    with autocast("cpu"):
        loss = F.mse_loss(x @ w, mt.zeros(3, 4))
    loss.backward()
    assert loss.dtype is F32 and x.grad.dtype is F32 and w.grad.dtype is F32
    exact = mt.autograd.grad(F.mse_loss(x @ w, mt.zeros(3, 4)), [x, w])
    mt.testing.assert_close([x.grad, w.grad], list(exact), rtol=0.05, atol=0.02)
    with autocast("cpu"):
        (g,) = mt.autograd.grad((x @ w).square().sum(), w, create_graph=True)
        mt.autograd.grad(g.sum(), x)


@pytest.mark.needs("cpu")
def test_a_parameter_is_cast_once_while_it_stays_the_same() -> None:
    w, x = mt.randn(4, 4).requires_grad_(), mt.randn(2, 4)
    with autocast("cpu"):
        a, b = x @ w, x @ w
        with mt.no_grad():
            frozen = x @ w
            w.mul_(2)
        c = x @ w
        with autocast("cpu"):
            pass
        d = x @ w
    casts = [t.grad_fn.next_functions[1][0] for t in (a, b, c, d)]
    assert casts[0] is casts[1] and casts[1] is not casts[2] and casts[2] is casts[3]
    assert not frozen.requires_grad and c.tolist() == (2 * a).tolist()
    (a.sum() + b.sum()).backward()
    assert w.grad.tolist() == (2 * x.bfloat16().sum(0).float()[:, None].expand(4, 4)).tolist()
    with autocast("cpu", cache_enabled=False):
        assert (x @ w).grad_fn.next_functions[1][0] is not (x @ w).grad_fn.next_functions[1][0]


@pytest.mark.needs("cpu")
def test_custom_functions_choose_how_they_take_part() -> None:
    class Product(mt.autograd.Function):
        @staticmethod
        @custom_fwd(device_type="cpu")
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x, w)
            return x.mm(w)

        @staticmethod
        @custom_bwd(device_type="cpu")
        def backward(ctx: Any, g: Any) -> Any:
            x, w = ctx.saved_tensors
            seen.append(mt.is_autocast_enabled("cpu"))
            return g.mm(w.t()), x.t().mm(g)

    class Exact(mt.autograd.Function):
        @staticmethod
        @custom_fwd(device_type="cpu", cast_inputs=F32)
        def forward(ctx: Any, x: Any) -> Any:
            seen.append(x.dtype)
            return x.mm(x)

        @staticmethod
        @custom_bwd(device_type="cpu")
        def backward(ctx: Any, g: Any) -> Any:
            return g

    seen: list[Any] = []
    x = mt.randn(2, 2).requires_grad_()
    with autocast("cpu"):
        y = Product.apply(x, x)
        assert y.dtype is BF and Exact.apply(x.bfloat16()).dtype is F32
    y.sum().backward()
    assert seen == [F32, True] and not mt.is_autocast_enabled("cpu")
    # A plain function has no ctx: what is kept for its backward is kept on its first tensor, which stays what it was.
    assert custom_fwd(lambda x: x + x, device_type="cpu", cast_inputs=F32)(x).dtype is x.dtype is F32


def test_training_a_network_under_autocast_and_a_scaler_learns() -> None:
    x, net = mt.randn(64, 4), mt.nn.Sequential(mt.nn.Linear(4, 16), mt.nn.BatchNorm1d(16), mt.nn.ReLU(), mt.nn.Linear(16, 1))
    y = x[:, :1] * 2 - x[:, 1:2]
    optimizer, scaler, losses = mt.optim.Adam(net.parameters(), lr=0.03), GradScaler("cpu"), []
    for _ in range(60):
        optimizer.zero_grad()
        with autocast("cpu"):
            loss = F.mse_loss(net(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        mt.nn.utils.clip_grad_norm_(net.parameters(), 10.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0] and all(p.dtype is F32 for p in net.parameters())


# ---- GradScaler ----


def parameter(optimizer: str = "SGD", **options: Any) -> tuple[Any, Any]:
    p = mt.nn.Parameter(mt.ones(2))
    return p, getattr(mt.optim, optimizer)([p], **{"lr": 0.1, **options})


def test_a_step_is_that_of_the_unscaled_gradients() -> None:
    for name in ("SGD", "Adam", "AdamW", "Adagrad", "RMSprop", "Adadelta"):
        (p, plain), (q, scaled) = parameter(name), parameter(name)
        scaler = GradScaler("cpu", init_scale=1024.0)
        (p * mt.tensor([1.0, -3.0])).sum().backward()
        plain.step()
        scaler.scale((q * mt.tensor([1.0, -3.0])).sum()).backward()
        scaler.step(scaled)
        scaler.update()
        assert p.tolist() == q.tolist() and q.grad.tolist() == [1.0, -3.0]


def test_gradients_of_several_dtypes_and_shared_ones_are_scaled_as_often_as_they_come() -> None:
    single, double, twin = (mt.nn.Parameter(mt.ones(2, dtype=d)) for d in (F32, mt.float64, F32))
    optimizer, scaler = mt.optim.SGD([single, double, twin], lr=0.1), GradScaler("cpu", init_scale=4.0)
    scaler.scale((single.double() * double).sum()).backward()
    twin.grad = single.grad
    version = double.grad._version
    scaler.unscale_(optimizer)
    assert double.grad.tolist() == [1.0, 1.0] and single.grad.tolist() == [0.25, 0.25] and double.grad._version > version
    twin.grad = mt.full((2,), float("nan"))  # what was found is what was there
    scaler.update()
    assert scaler.get_scale() == 4.0


def test_gradients_over_the_same_memory_are_changed_one_after_the_other() -> None:
    flat, left, right = mt.full((3,), 4.0), mt.nn.Parameter(mt.ones(2)), mt.nn.Parameter(mt.ones(2))
    left.grad, right.grad = flat[:2], flat[1:]
    scaler = GradScaler("cpu", init_scale=4.0)
    scaler.scale(flat)
    scaler.unscale_(mt.optim.SGD([left, right], lr=0.1))
    assert flat.tolist() == [1.0, 0.25, 1.0]
    mt.nn.utils.clip_grads_with_norm_([left, right], 1.0, mt.tensor(2.0))
    assert flat.tolist() == pytest.approx([0.5, 0.0625, 0.5], rel=1e-5)


def test_what_replaces_the_unscaling_of_a_scaler_is_called_with_tensors_and_may_call_it() -> None:
    p = mt.nn.Parameter(mt.ones(2, dtype=mt.float16))
    optimizer, scaler = mt.optim.SGD([p], lr=0.5), GradScaler("cpu", init_scale=2.0**14)
    plain, told = scaler._unscale_grads_, []

    def in_halves(optimizer: Any, inv_scale: Any, found_inf: Any, allow_fp16: bool) -> Any:
        told.append((inv_scale.dtype, float(inv_scale), float(found_inf), allow_fp16))
        return plain(optimizer, inv_scale, found_inf, True)

    scaler.scale((p * 0.25).sum()).backward()
    with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients"):
        scaler.unscale_(optimizer)
    scaler._unscale_grads_ = in_halves
    scaler.step(optimizer)
    scaler.update()
    assert told == [(F32, 2.0**-14, 0.0, False)] and p.grad.tolist() == [0.25] * 2 and p.tolist() == [0.875] * 2

    class Own(GradScaler):
        def _unscale_grads_(self, optimizer: Any, inv_scale: Any, found_inf: Any, allow_fp16: bool) -> Any:
            mt._amp_foreach_non_finite_check_and_unscale_([p.grad], found_inf, inv_scale)
            return {p.device: found_inf}

    scaler = Own("cpu", init_scale=16.0)
    for factor, wanted in ((0.5, 16.0), (float("inf"), 8.0)):
        optimizer.zero_grad()
        scaler.scale((p * factor).sum()).backward()
        assert scaler.step(optimizer) is None
        scaler.update()
        assert scaler.get_scale() == wanted and p.tolist() == [0.625] * 2


def test_the_scale_backs_off_and_grows() -> None:
    p, optimizer = parameter()
    scaler = GradScaler("cpu", init_scale=16.0, growth_interval=2)
    for factor, wanted in ((1.0, 16.0), (1.0, 32.0), (float("inf"), 16.0), (float("nan"), 8.0), (1.0, 8.0), (1.0, 16.0)):
        optimizer.zero_grad()
        before = p.tolist()
        scaler.scale((p * factor).sum()).backward()
        stepped = scaler.step(optimizer)
        scaler.update()
        assert stepped is None and scaler.get_scale() == wanted
        assert (p.tolist() == before) is (factor != 1.0)
    state = scaler.state_dict()
    assert state == {
        "scale": 16.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2, "_growth_tracker": 0,
    }  # fmt: skip
    fresh = GradScaler("cpu")
    fresh.load_state_dict({**state, "scale": 4.0})
    assert fresh.get_scale() == 4.0 and fresh.get_growth_interval() == 2
    scaler.scale(p.sum()), scaler.update(3.0)
    assert scaler.get_scale() == 3.0
    scaler.update(mt.tensor(5.0))
    assert scaler.get_scale() == 5.0


@pytest.mark.parametrize("unscaled", [False, True])
@pytest.mark.parametrize("value", [1.0, float("inf")])
def test_an_optimiser_that_unscales_by_itself_is_told_the_scale_and_always_steps(unscaled: bool, value: float) -> None:
    class Own(mt.optim.SGD):
        _step_supports_amp_scaling = True
        told: Any = None

        def step(self, closure: Any = None) -> Any:
            self.told = (None if self.grad_scale is None else self.grad_scale.item(), self.found_inf.item())
            return "stepped"

    p = mt.ones(2, requires_grad=True)
    own, scaler = Own([p], lr=0.1), GradScaler("cpu", init_scale=8.0)
    scaler.scale((p * value).sum()).backward()
    if unscaled:
        scaler.unscale_(own)
    assert scaler.step(own) == "stepped" and own.told == (None if unscaled else 8.0, float(value != 1))
    assert p.grad.tolist() == [value if unscaled else 8 * value] * 2 and not hasattr(own, "grad_scale")
    scaler.update()
    assert scaler.get_scale() == (8.0 if value == 1 else 4.0)


def test_an_optimiser_may_take_the_scaler_itself() -> None:
    class Own(mt.optim.SGD):
        _step_supports_amp_scaling = True

        def step(self, closure: Any = None, grad_scaler: Any = None) -> Any:
            grad_scaler.unscale_(self)
            return grad_scaler

    p = mt.ones(2, requires_grad=True)
    own, scaler = Own([p], lr=0.1), GradScaler("cpu")
    scaler.scale(p.sum()).backward()
    assert scaler.step(own) is scaler
    with pytest.raises(RuntimeError, match="already been called since the last update"):
        scaler.step(own)
    assert p.grad.tolist() == [1.0, 1.0]


def test_what_overflows_in_the_sum_of_a_sparse_place_is_found() -> None:
    pytest.importorskip("mortice.sparse")
    found = []
    for values in ([64000.0, 32.0, 64000.0], [640.0, 32.0, 640.0]):
        p = mt.nn.Parameter(mt.zeros(2, 3, dtype=mt.float16))
        p.grad = mt.sparse_coo_tensor([[0, 1, 0], [2, 0, 2]], mt.tensor(values, dtype=mt.float16), (2, 3))
        scaler = GradScaler("cpu", init_scale=4.0)
        scaler.scale(mt.ones(1))
        seen = scaler._unscale_grads_(mt.optim.SGD([p], lr=0.1), 0.25, None, True)
        found.append(([bool(v) for v in seen.values()], p.grad.is_coalesced()))
    assert found == [([True], True), ([False], True)]
    assert p.grad.to_dense().tolist() == [[0, 0, 320], [8, 0, 0]]


def test_misuse_of_a_scaler_is_refused() -> None:
    assert [s.name for s in mt.amp.grad_scaler.OptState] == ["READY", "UNSCALED", "STEPPED"]  # which libraries import
    p, optimizer = parameter()
    scaler = GradScaler("cpu", init_scale=4.0)
    for call in (lambda: scaler.step(optimizer), lambda: scaler.unscale_(optimizer), scaler.update):
        with pytest.raises(AssertionError, match="_scale is None"):
            call()
    scaler.scale(p.sum()).backward()
    with pytest.raises(AssertionError, match="No inf checks were recorded prior to update"):
        scaler.update()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called on this optimizer"):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="Closure use"):
        scaler.step(optimizer, closure=lambda: 1)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="already been called since the last update"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="being called after step"):
        scaler.unscale_(optimizer)
    with pytest.raises(ValueError, match="iterable of Tensors"):
        scaler.scale(3)
    with pytest.raises(AssertionError, match="growth factor"):
        GradScaler("cpu", growth_factor=1.0)
    with pytest.raises(RuntimeError, match="source state dict is empty"):
        scaler.load_state_dict({})
    half = mt.nn.Parameter(mt.ones(2, dtype=F16))
    half.grad = mt.ones(2, dtype=F16)
    with pytest.raises(ValueError, match="unscale FP16"):
        scaler.unscale_(mt.optim.SGD([half], lr=0.1))


def test_a_scaler_passes_through_when_disabled_and_takes_nests() -> None:
    p, optimizer = parameter()
    off = GradScaler("cpu", enabled=False)
    p.sum().backward()
    assert off.scale(p) is p and off.get_scale() == 1.0 and off.state_dict() == {} and off.update() is None
    off.unscale_(optimizer), off.step(optimizer)
    assert p.tolist() == pytest.approx([0.9, 0.9])
    on = GradScaler("cpu", init_scale=2.0)
    scaled = on.scale([mt.ones(1), (mt.ones(1), mt.full((1,), 0.25, dtype=F16))])
    assert scaled[0].item() == 2 and scaled[1][1].item() == 0.5 and scaled[1][1].dtype is F16
    # The scale is more than a float16 holds, the product is not.
    assert GradScaler("cpu", init_scale=2.0**17).scale(mt.tensor(0.125, dtype=F16)).item() == 2.0**14


# ---- PyTorch's lists ----


def _variant(sample: Any, kind: str) -> Any:
    """Return a sample with its float32 tensors in bfloat16, or every second one."""
    import torch

    numbers = itertools.count()

    def change(x: Any) -> Any:
        if not isinstance(x, torch.Tensor) or x.dtype is not torch.float32:
            return x
        low = next(numbers) % 2 if kind == "mixed" else kind == "low"
        return x.detach().to(torch.bfloat16) if low else x.detach()

    return sample.transform(change)


def _dtypes(result: Any, module: Any) -> list[str]:
    if isinstance(result, module.Tensor):
        return [str(result.dtype).rpartition(".")[2]]
    return [d for r in result for d in _dtypes(r, module)] if isinstance(result, (tuple, list)) else []


_DIFFER = {"nn.functional.max_pool3d"}  # PyTorch's other form of pooling with indices


@pytest.mark.oracle
@pytest.mark.needs("cpu")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted({*lists.CPU} - {"huber", "smooth_l1", "prelu_kernel", "cholesky_ex"}))
def test_result_dtypes_are_as_in_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: the lists are not compared with it")
    from tests.oracle.samples import NothingLeftOver, table
    from tests.oracle.subject import Subject, Unconvertible

    mine, theirs = Subject(mt), Subject(torch)
    known = table()
    titles = [t for t in known if t.rpartition(".")[2] == name and t not in _DIFFER and mine.has(t)]
    for op in [op for title in titles for op in known[title] if torch.float32 in op.dtypes]:
        with NothingLeftOver():  # not by `op.sample_inputs`, which reads the source of all callers to find a test of PyTorch's
            made = list(itertools.islice(op.sample_inputs_func(op, "cpu", torch.float32, False), 4))
        for sample in made:
            for kind in ("float32", "low", "mixed"):
                changed = _variant(sample, kind)
                try:
                    a, b = mine.arguments(changed), theirs.arguments(changed)
                except Unconvertible:
                    continue
                try:
                    with torch.autocast("cpu"), torch.no_grad():
                        wanted = _dtypes(theirs.function(op)(*b[0], **b[1]), torch)
                except Exception:  # what PyTorch refuses may be refused or not
                    continue
                with autocast("cpu"), mt.no_grad(), mine.pytorchs_promotion():
                    assert _dtypes(mine.function(op)(*a[0], **a[1]), mt) == wanted, (op.name, kind)


@pytest.mark.needs("cpu")
@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpoint_computes_again_as_it_did_at_first(reentrant: bool) -> None:
    w, x = mt.randn(3, 3, requires_grad=True), mt.randn(3, 3, requires_grad=True)
    seen = []

    def f(x: Any) -> Any:
        y = x @ w
        seen.append(y.dtype)
        return (y @ w).float()

    with autocast("cpu"):
        loss = mt.utils.checkpoint.checkpoint(f, x, use_reentrant=reentrant).sum()
    loss.backward()
    loss = mt.utils.checkpoint.checkpoint(f, x, use_reentrant=reentrant).sum()
    with autocast("cpu"):
        loss.backward()
        assert mt.is_autocast_enabled("cpu") and (x @ x).dtype is mt.bfloat16
    assert seen == [mt.bfloat16, mt.bfloat16, mt.float32, mt.float32]
    assert not mt.is_autocast_enabled("cpu")


def test_functions_of_one_device_have_names() -> None:
    for name in dir(mt):
        if name.endswith(("cpu_enabled", "cpu_dtype", "gpu_dtype")):
            assert getattr(mt, name).__name__ == name
