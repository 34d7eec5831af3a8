"""What a training step asks of the device: how many launches and products, and that nothing waits for it.

Counted on the stand-in; not run on a GPU. A number that rises is a kernel more in each step of every program.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pytest

import mortice as mt
from mortice import cuda

if not cuda.is_available():
    pytest.skip("no GPU here; test_emulated runs these on the stand-in", allow_module_level=True)
fake_cupy = pytest.importorskip("fake_cupy", reason="launches are counted on the stand-in")


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count launches by kernel, products, waits, and copies to the host or from it."""
    import gc

    import fake_array
    import fake_runtime

    from mortice_cuda_cupy.kernels.launch import Plans, Program

    gc.unfreeze()  # what is frozen is not listed
    for plans in gc.get_objects():
        if isinstance(plans, Plans):
            plans.clear()  # whose launches are made already, and not counted

    found: Counter[str] = Counter()
    get = Program.get.__wrapped__

    def counting(what: str, function: Any) -> Any:
        def run(*args: Any, **options: Any) -> Any:
            found[what] += 1
            return function(*args, **options)

        return run

    for cls, name in (
        (fake_runtime._BaseStream, "synchronize"), (fake_runtime.Device, "synchronize"), (fake_runtime.Event, "synchronize"),
        (fake_array.ndarray, "get"), (fake_runtime.MemoryPointer, "copy_from_host_async"),
    ):  # fmt: skip
        monkeypatch.setattr(cls, name, counting("waits and copies", getattr(cls, name)))
    monkeypatch.setattr(Program, "get", lambda self, d, kernel: counting(kernel.partition("<")[0], get(self, d, kernel)))
    monkeypatch.setattr(fake_cupy.Cublas, "_many", counting("products", fake_cupy.Cublas._many))
    return found


def test_little_attention_has_no_scores(done: Counter[str]) -> None:
    q = mt.ones(2, 64, 16, device="cuda", requires_grad=True)
    mt.nn.functional.scaled_dot_product_attention(q, q, q).sum().backward()
    assert [done[name] for name in ("products", "attend_tiles", "attend_grad_queries", "attend_grad_keys")] == [0, 1, 1, 1]


@pytest.fixture
def by_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have products of matrices compute attention, however little it is."""
    monkeypatch.setattr("mortice_cuda_cupy.kernels.attention._tiles", defaultdict(lambda: False))


@pytest.mark.usefixtures("by_products")
def test_scores_of_attention_are_whole_where_they_are_few(done: Counter[str]) -> None:
    q = mt.ones(2, 64, 16, device="cuda", requires_grad=True)
    mt.nn.functional.scaled_dot_product_attention(q, q, q).sum().backward()
    assert (done["attend_rows"], done["attend_grad_rows"]) == (1, 1)


@pytest.mark.usefixtures("by_products")
def test_scores_of_attention_are_whole_where_that_makes_no_new_peak(
    done: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mortice_cuda_cupy.kernels.attention._LITTLE", 0)
    q = mt.ones(8, 256, 16, device="cuda", requires_grad=True)
    out, grads = mt.nn.functional.scaled_dot_product_attention(q, q, q), []
    for room in (False, True):
        cuda.reset_peak_memory_stats()
        if room:
            mt.empty(1 << 24, device="cuda")
        peak = cuda.max_memory_allocated()
        done.clear()
        grads.append(mt.autograd.grad(out, q, mt.ones_like(out), retain_graph=True)[0])
        assert (done["attend_grad_rows"] == 1) == room == (cuda.max_memory_allocated() == peak)
    assert (grads[0] == grads[1]).all()


def _step(model: Any, loss_of: Any, optimizer: Any, norm: float | None = None) -> Any:
    def step() -> None:
        optimizer.zero_grad()
        loss_of(model).backward()
        if norm is not None:
            mt.nn.utils.clip_grad_norm_(model.parameters(), norm)
        optimizer.step()

    return step


def _counted(step: Any, done: Counter[str]) -> Counter[str]:
    step()
    done.clear()
    step()
    return done


def test_a_step_of_a_classifier(done: Counter[str]) -> None:
    nn = mt.nn
    with mt.device("cuda"):
        model = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 4))
        x, y = mt.ones(8, 6), mt.arange(8) % 4
    loss = lambda m: nn.functional.cross_entropy(m(x), y)
    found = _counted(_step(model, loss, mt.optim.Adam(model.parameters()), norm=1.0), done)
    assert found["waits and copies"] == 0
    # tanh; the norm with eps, 1 over that and its bound. A layer's bias is added by its product.
    assert (found["products"], found["unary"], found["binary"]) == (5, 1, 3)
    assert found["optimiser_step"] == 2  # the gradients' scale, and the step
    assert found["two"] == 1  # tanh's gradient
    assert [found[name] for name in ("look", "cross_entropy", "sum_losses", "sum_weights", "cross_entropy_grad")] == [1, 1, 1, 0, 1]


@pytest.mark.parametrize("clipped", [False, True])
def test_a_step_with_a_scaled_loss(done: Counter[str], clipped: bool) -> None:
    nn = mt.nn
    with mt.device("cuda"):
        model = nn.Sequential(*[nn.Linear(6, 6) for _ in range(9)])
        x = mt.ones(8, 6)
    optimizer, scaler = mt.optim.Adam(model.parameters()), mt.amp.GradScaler("cuda", init_scale=4.0)

    def step() -> None:
        optimizer.zero_grad()
        scaler.scale(model(x).sum()).backward()
        if clipped:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()

    found = _counted(step, done)
    # One launch looks at all gradients and scales them; one number is read.
    assert (found["unscale"], found["waits and copies"], found["optimiser_step"]) == (1, 1, 1 + clipped)
    assert (found["unary"], found["chunk_squares"], found["chunk_roots"]) == (0, clipped, clipped)


def test_parameters_that_lie_in_another_order_share_the_launch(done: Counter[str]) -> None:
    nn = mt.nn
    with mt.device("cuda"):
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3)).to(memory_format=mt.channels_last)
        x = mt.ones(2, 3, 9, 9).to(memory_format=mt.channels_last)
    found = _counted(_step(model, lambda m: m(x).sum(), mt.optim.Adam(model.parameters())), done)
    assert found["optimiser_step"] == 1 and found["blended"] == 0


def test_activations_go_through_channels_last_as_it_lies(done: Counter[str]) -> None:
    F = mt.nn.functional
    with mt.device("cuda"):
        x = mt.rand(2, 3, 4, 5).to(memory_format=mt.channels_last).requires_grad_()
        g = mt.rand(2, 3, 4, 5).to(memory_format=mt.channels_last)
    for f in (F.silu, F.relu, lambda x: F.leaky_relu(x, 0.2), F.gelu):
        done.clear()
        out = f(x)
        (grad,) = mt.autograd.grad(out, x, g)
        assert sum(done.values()) == 2, done
        assert out.is_contiguous(memory_format=mt.channels_last) and grad.is_contiguous(memory_format=mt.channels_last)
        mt.testing.assert_close(grad.contiguous(), mt.autograd.grad(f(y := x.detach().contiguous().requires_grad_()), y, g.contiguous())[0])


@pytest.mark.parametrize("size", [8, 46])  # a block has all of a channel, or a part
def test_a_step_with_batch_norm(done: Counter[str], size: int) -> None:
    nn = mt.nn
    with mt.device("cuda"):
        model, x = nn.BatchNorm2d(3), mt.rand(4, 3, size, size, requires_grad=True)
    found = _counted(_step(model, lambda m: m(x).sum(), mt.optim.SGD(model.parameters(), lr=0.1)), done)
    assert found["waits and copies"] == 0
    parts = size > 8
    assert [found[n] for n in ("channel_moments", "joined_apply", "blend", "merge_moments", "channel_apply")] == [parts, 1, 1, 0, 0]
    assert found["channel_sums"] + found["fold_parts"] <= 2 * parts


@pytest.mark.parametrize(("last", "dtype"), [(True, "float32"), (True, "bfloat16"), (False, "bfloat16")])
def test_batch_norm_copies_and_casts_nothing(done: Counter[str], last: bool, dtype: str) -> None:
    with mt.device("cuda"):
        model = mt.nn.BatchNorm2d(8)  # its parameters are float32, as beside a convolution under autocast
        x = mt.rand(2, 8, 6, 8).to(getattr(mt, dtype))
        x = x.to(memory_format=mt.channels_last) if last else x
        g = mt.rand(2, 8, 6, 8).to(x.dtype).to(memory_format=mt.preserve_format if not last else mt.channels_last)
    inputs = (x.requires_grad_(), *model.parameters())
    model(x)
    done.clear()
    out = model(x)
    grads = mt.autograd.grad(out, inputs, g)
    kinds = {"columns_moments", "merge_moments", "columns_apply", "columns_sums", "fold_parts", "columns_grad"}
    assert done == dict.fromkeys((kinds if last else {"joined_apply", "joined_grad"}) | {"blend", "binary"}, 1)
    assert [a.dtype for a in (out, *grads)] == [x.dtype, x.dtype, mt.float32, mt.float32]
    assert all(a.is_contiguous(memory_format=mt.channels_last) == last for a in (out, grads[0]))
    wanted = mt.nn.BatchNorm2d(8)
    inputs = (x.detach().float().cpu().contiguous().requires_grad_(), *wanted.parameters())
    near = {"rtol": 1e-2, "atol": 1e-2} if dtype == "bfloat16" else {"rtol": 1e-5, "atol": 1e-5}
    mt.testing.assert_close(out.float().cpu(), wanted(inputs[0]), **near)
    for found, law in zip(grads, mt.autograd.grad(wanted(inputs[0]), inputs, g.float().cpu())):
        mt.testing.assert_close(found.float().cpu(), law, **near)


def test_a_step_of_a_language_model(done: Counter[str]) -> None:
    nn = mt.nn

    class Model(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.table, self.norm, self.out = nn.Embedding(9, 8), nn.LayerNorm(8), nn.Linear(8, 9)

        def forward(self, x: Any) -> Any:
            return self.out(nn.functional.dropout(self.norm(self.table(x)), 0.1))

    with mt.device("cuda"):
        model, x = Model(), mt.arange(12).reshape(3, 4) % 9
    loss = lambda m: nn.functional.cross_entropy(m(x).reshape(-1, 9), x.reshape(-1))
    found = _counted(_step(model, loss, mt.optim.AdamW(model.parameters())), done)
    assert found["waits and copies"] == 0
    assert (found["look"], found["optimiser_step"]) == (2, 1)
    # What layer_norm's gradients read is read once.
    assert [found[n] for n in ("norm_grads_rows", "fold_parts", "norm_grad_rows", "norm_sums_columns")] == [1, 1, 0, 0]


def test_losses_of_many_labels_are_added_up_by_many_blocks(done: Counter[str]) -> None:
    with mt.device("cuda"):
        x, y = mt.zeros(2, 3, 160, 128, requires_grad=True), mt.zeros(2, 160, 128, dtype=mt.int64)
    mt.nn.functional.cross_entropy(x, y).backward()
    # Losses and weights in two launches, and then the weights' sums of blocks.
    assert (done["sum_losses"], done["sum_weights"], done["reduce_rows"]) == (1, 1, 3)


@pytest.mark.parametrize(("lengths", "room"), [((6, 6), 264), ((6, 6), 0), ((6, 4), 264)])
def test_a_step_of_a_recurrent_layer(done: Counter[str], lengths: Any, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    nn = mt.nn
    monkeypatch.setattr("mortice_cuda_cupy.kernels.rnn.together_at_most", lambda: room)
    with mt.device("cuda"):
        model, x = nn.LSTM(3, 4), mt.rand(6, 2, 3)
    x = nn.utils.rnn.pack_padded_sequence(x, mt.tensor(lengths)) if lengths[1] < 6 else x
    loss = lambda m: (m(x)[0].data if lengths[1] < 6 else m(x)[0]).sum()
    found = _counted(_step(model, loss, mt.optim.SGD(model.parameters(), lr=0.1)), done)
    assert found["waits and copies"] == 0
    # All steps of one size at once, where the device has room; else one a step, with its product.
    step = "all_steps" if room and lengths[1] == 6 else "whole_step"
    assert (found[f"lstm_{step}"], found[f"lstm_{step}_grad"]) == ((1, 1) if step == "all_steps" else (6, 6))
    assert (found["products"], found["lstm_step"]) == (4, 0)


@pytest.mark.parametrize("tiles", [True, False])
def test_attention_of_heads_that_lie_inside_positions(done: Counter[str], tiles: bool, request: pytest.FixtureRequest) -> None:
    if not tiles:
        request.getfixturevalue("by_products")
    nn, F = mt.nn, mt.nn.functional

    class Model(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.qkv = nn.Linear(8, 24)

        def forward(self, x: Any) -> Any:
            q, k, v = (p.view(2, 5, 2, 4).transpose(1, 2) for p in self.qkv(x).split(8, dim=2))
            return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(2, 5, 8)

    with mt.device("cuda"):
        model, x = Model(), mt.rand(2, 5, 8)
    found = _counted(_step(model, lambda m: m(x).square().sum(), mt.optim.SGD(model.parameters(), lr=0.1)), done)
    # By products those of query, key and value forward and backward, and of their gradients; of the result and its gradient. The loss's.
    assert (found["strided_alike"], found["strided"], found["transpose"], found["join"]) == ((0, 1, 0, 1) if tiles else (3, 3, 0, 1))


EACH: list[tuple[str, tuple[Any, ...]]] = [
    ("add_", ("ys",)), ("add_", (2.0,)), ("sub_", ("ys",)), ("mul_", (0.5,)), ("mul_", ("ys",)), ("div_", (3,)), ("div_", ("ys",)),
    ("lerp_", ("ys", 0.25)), ("lerp_", ("ys", 0.75)), ("addcmul_", ("ys", "ys", 0.5)), ("addcdiv_", ("ys", "ys", -2.0)),
    ("copy_", ("ys",)), ("zero_", ()), ("sqrt_", ()), ("neg_", ()), ("abs_", ()),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_operations_on_lists_are_one_launch(done: Counter[str], dtype: str) -> None:
    def drawn(device: str, shift: float) -> list[Any]:
        made = [(mt.arange(n) % 7 + shift).to(device, getattr(mt, dtype)).reshape(shape) for n, shape in
                ((5, (5,)), (1, ()), (12, (3, 4)), (5600, (70, 80)), (0, (0, 2)))]  # fmt: skip
        return [*made, mt.nn.Parameter(made[2].clone())]

    for name, others in EACH:
        found = []
        for device in ("cpu", "cuda"):
            xs, ys = drawn(device, 0.5), drawn(device, 1.25)
            done.clear()
            with mt.no_grad():
                assert getattr(mt, f"_foreach_{name}")(xs, *[ys if o == "ys" else o for o in others]) is xs
            assert done == ({"optimiser_step": 1} if device == "cuda" else {})
            found.append([(x.tolist(), x._version) for x in xs])
        for (wanted, before), (made, after) in zip(*found):
            mt.testing.assert_close(mt.tensor(made), mt.tensor(wanted), rtol=1e-2 if dtype == "bfloat16" else 1e-6, atol=1e-6)
            assert before == after


def test_lists_that_no_launch_can_take_are_walked(done: Counter[str]) -> None:
    with mt.device("cuda"):
        x, p = mt.ones(3), mt.nn.Parameter(mt.ones(3))
        for lists, numbers in (
            (([x, x],), (2.0,)), (([x], [mt.tensor(2.0)]), ()), (([x.int()],), (2,)), (([x, x.double()],), (2.0,)),
            (([x],), (mt.tensor(2.0),)),
        ):  # fmt: skip
            done.clear()
            mt._foreach_mul_(*lists, *numbers)
            assert done["optimiser_step"] == 0
        assert x.tolist() == [32.0] * 3
        mt._foreach_lerp_([x], [mt.zeros(3)], [mt.full((3,), 0.25)])
        assert x.tolist() == [24.0] * 3 and done["optimiser_step"] == 0
        for lists, numbers in ((([x], [x], [x]), ()), (([x],), (2.0, 3.0))):
            with pytest.raises(TypeError):
                mt._foreach_mul_(*lists, *numbers)
        sparse = mt.eye(3).to_sparse()
        assert mt._foreach_mul_([sparse], 2.0)[0].to_dense().sum() == 6
        with pytest.raises(RuntimeError, match="leaf"):
            mt._foreach_mul_([p], 2.0)
        with pytest.raises(RuntimeError, match="single memory location"):
            mt._foreach_mul_([mt.ones(1).expand(3)], 2.0)


def test_gradients_become_zeros_and_averages_follow_in_one_launch(done: Counter[str]) -> None:
    with mt.device("cuda"):
        model = mt.nn.Sequential(*[mt.nn.Linear(3, 3) for _ in range(5)])
        average = mt.optim.swa_utils.AveragedModel(model, multi_avg_fn=mt.optim.swa_utils.get_ema_multi_avg_fn(0.9))
        model(mt.ones(2, 3)).sum().backward()
    average.update_parameters(model)
    before = [p.tolist() for p in average.parameters()]
    mt.optim.SGD(model.parameters(), lr=0.1).step()
    done.clear()
    model.zero_grad(set_to_none=False)
    assert done == {"optimiser_step": 1} and all(not p.grad.any() for p in model.parameters())
    done.clear()
    average.update_parameters(model)
    assert done["optimiser_step"] == 1 and done["binary"] <= 3
    for old, p, new in zip(before, model.parameters(), average.parameters()):
        mt.testing.assert_close(new.cpu(), mt.tensor(old) * 0.9 + p.detach().cpu() * 0.1)
