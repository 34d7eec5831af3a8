"""The seed inventory, rows OP, DL and SL: optimizers, data loading, saving and loading. One test a row."""

import argparse
import io
import multiprocessing
import pickle
import time

import numpy as np
import pytest

import mortice as mt

nn = mt.nn
DataLoader, Dataset, TensorDataset = mt.utils.data.DataLoader, mt.utils.data.Dataset, mt.utils.data.TensorDataset


def _parameter(value=1.0, grad=None):
    p = nn.Parameter(mt.tensor([value]))
    p.grad = None if grad is None else mt.tensor([grad])
    return p


# Optimizers and training procedure


def test_OP01_step_uses_the_current_gradient_and_skips_the_others():
    a, b = _parameter(grad=2.0), _parameter()
    mt.optim.SGD([a, b], lr=0.5).step()
    assert [a.item(), b.item()] == [0, 1]


def test_OP02_zero_grad_sets_gradients_to_none():
    a = _parameter(grad=2.0)
    optimizer = mt.optim.SGD([a], lr=0.5)
    optimizer.zero_grad()
    assert a.grad is None
    a.grad = mt.ones(1)
    optimizer.zero_grad(set_to_none=False)
    assert a.grad.tolist() == [0]


def test_OP03_sgd_subtracts_the_scaled_gradient():
    a, b, c = _parameter(grad=2.0), _parameter(grad=2.0), _parameter(grad=2.0)
    mt.optim.SGD([a], lr=0.25).step()
    with mt.no_grad():
        b -= 0.25 * b.grad
    c.data.sub_(c.grad.data * 0.25)
    assert a.item() == b.item() == c.item() == 0.5
    assert b.requires_grad and b.is_leaf


def test_OP04_lr_0_freezes_a_group():
    a, b = _parameter(grad=1.0), _parameter(grad=1.0)
    optimizer = mt.optim.SGD([{"params": [a], "lr": 0}, {"params": [b]}], lr=0.5)
    optimizer.step()
    assert [a.item(), b.item()] == [1, 0.5]
    assert [group["lr"] for group in optimizer.param_groups] == [0, 0.5]


def test_OP05_gradient_0_freezes_under_plain_sgd_only():
    a, b = _parameter(grad=0.0), _parameter(grad=0.0)
    mt.optim.SGD([a], lr=0.5).step()
    mt.optim.SGD([b], lr=0.5, weight_decay=0.1).step()
    assert a.item() == 1 and b.item() != 1


def test_OP06_parameters_left_out_are_untouched():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 1))
    for p in net[0].parameters():
        p.requires_grad = False
    before = {name: p.clone() for name, p in net.state_dict().items()}
    optimizer = mt.optim.SGD([*net[0].parameters(), *net[2].parameters()], lr=0.5)
    net(mt.ones(1, 2)).sum().backward()
    optimizer.step()
    changed = {name for name, p in net.state_dict().items() if not mt.equal(p, before[name])}
    assert changed == {"2.weight", "2.bias"}
    assert net[0].weight.grad is None and net[1].weight.grad is not None


@pytest.mark.parametrize("make", [
    lambda p: mt.optim.SGD(p, lr=0.1, momentum=0.9), lambda p: mt.optim.SGD(p, lr=0.1, weight_decay=0.1),
    lambda p: mt.optim.Adam(p, lr=0.1),
])  # fmt: skip
def test_OP07_state_still_moves_a_parameter_with_zero_gradient(make):
    a, b = _parameter(grad=1.0), _parameter(grad=1.0)
    optimizer = make([a, b])
    optimizer.step()
    before = a.item()
    a.grad, b.grad = mt.zeros(1), None
    optimizer.step()
    assert a.item() != before and b.item() == before


def test_OP08_two_optimizers_and_what_is_refused():
    d, g = nn.Linear(1, 1), nn.Linear(1, 1)
    d_step = mt.optim.Adam(d.parameters(), lr=0.0002, betas=(0.5, 0.999))
    g_step = mt.optim.SGD(g.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4)
    before = [d.weight.item(), g.weight.item()]
    d(g(mt.ones(1, 1))).sum().backward()
    d_step.step()
    assert abs(d.weight.item() - before[0]) == pytest.approx(0.0002, abs=1e-6) and g.weight.item() == before[1]
    g_step.step()
    assert g.weight.item() != before[1]
    p = _parameter()
    for make in (
        lambda: mt.optim.SGD([p * 2], lr=0.1), lambda: mt.optim.SGD([], lr=0.1), lambda: mt.optim.SGD([p], lr=-1),
        lambda: mt.optim.Adam([p], lr=-1), lambda: mt.optim.Adam([p], betas=(1.5, 0.9)),
    ):  # fmt: skip
        with pytest.raises(ValueError):
            make()
    with pytest.raises(TypeError):
        mt.optim.SGD(p, lr=0.1)


@pytest.mark.seed("TR21", "RN06")
def test_OP09_gradient_clipping():
    a, b = _parameter(grad=3.0), _parameter(grad=4.0)
    norm = nn.utils.clip_grad_norm_([a, b], max_norm=1.0)
    assert norm.item() == pytest.approx(5)
    assert [a.grad.item(), b.grad.item()] == pytest.approx([0.6, 0.8], abs=1e-4)
    a.grad, b.grad = mt.tensor([3.0]), mt.tensor([-4.0])
    nn.utils.clip_grad_value_([a, b], 1.0)
    assert [a.grad.item(), b.grad.item()] == [1, -1]


def test_OP10_the_learning_rate_can_be_changed():
    a = _parameter(grad=1.0)
    optimizer = mt.optim.SGD([a], lr=0.5)
    optimizer.step()
    for group in optimizer.param_groups:
        group["lr"] *= 0.5
    optimizer.step()
    assert a.item() == 0.25


def _train(net, x, y, optimizer, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
    return nn.functional.mse_loss(net(x), y).item()


@pytest.mark.seed("TR19")
def test_OP11_more_weight_decay_raises_the_loss():
    x = mt.linspace(-1, 1, 20).unsqueeze(1)
    losses = []
    for decay in (0, 0.1, 1):
        mt.manual_seed(0)
        net = nn.Linear(1, 1)
        losses.append(_train(net, x, 3 * x + 1, mt.optim.SGD(net.parameters(), lr=0.2, weight_decay=decay), 200))
    assert losses[0] < losses[1] < losses[2]


def test_OP12_the_typical_procedure_converges():
    mt.manual_seed(0)
    x = mt.randn(64, 3)
    y = x @ mt.tensor([[1.0], [-2.0], [0.5]]) + 3
    net = nn.Linear(3, 1)
    loss = _train(net, x, y, mt.optim.SGD(net.parameters(), lr=0.1), 300)
    assert loss < 1e-6
    assert net.bias.item() == pytest.approx(3, abs=1e-2)


def test_OP13_one_step_on_an_accumulated_gradient():
    a = _parameter()
    (a * 2).sum().backward()
    (a * 3).sum().backward()
    mt.optim.SGD([a], lr=0.1).step()
    assert a.item() == pytest.approx(0.5)


@pytest.mark.seed("TR01")
def test_OP14_a_small_net_overfits_8_samples():
    mt.manual_seed(0)
    x, y = mt.randn(8, 4), mt.randn(8, 1)
    net = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
    assert _train(net, x, y, mt.optim.Adam(net.parameters(), lr=0.02), 300) < 1e-3


# Dataset and DataLoader


class Squares(Dataset):
    """Pairs (i, i*i)."""

    def __init__(self, n, fail_at=None):
        self.n, self.fail_at = n, fail_at

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if i == self.fail_at:
            raise KeyError(f"no square of {i}")
        return mt.tensor(float(i)), i * i


def test_DL01_defaults_length_order_and_refusals():
    loader = DataLoader(Squares(10))
    assert loader.batch_size == 1 and loader.num_workers == 0 and len(loader) == 10
    assert [y.item() for _, y in loader] == [i * i for i in range(10)]
    assert len(DataLoader(Squares(10), 4)) == 3
    assert [len(x) for x, _ in DataLoader(Squares(10), 4, drop_last=True)] == [4, 4]
    for bad in ({"batch_size": 0}, {"batch_size": -1}, {"num_workers": -1}):
        with pytest.raises(ValueError):
            DataLoader(Squares(10), **bad)


def test_DL02_tensor_dataset():
    data = TensorDataset(mt.arange(3.0), mt.arange(3))
    assert len(data) == 3
    assert isinstance(data[1], tuple) and [t.item() for t in data[1]] == [1, 1]
    with pytest.raises((AssertionError, ValueError), match="(?i)size"):
        TensorDataset(mt.zeros(3), mt.zeros(2))
    with pytest.raises(TypeError):
        TensorDataset(data_tensor=mt.zeros(3), target_tensor=mt.zeros(3))


def test_DL03_three_epochs_of_two_batches():
    x, y = mt.linspace(1, 10, 10), mt.linspace(10, 1, 10)
    loader = DataLoader(TensorDataset(x, y), batch_size=5, shuffle=True)
    seen = []
    for epoch in range(3):
        for step, (batch_x, batch_y) in enumerate(loader):
            seen.append((epoch, step, tuple(batch_x.shape)))
            assert (batch_x + batch_y).tolist() == [11] * 5
    assert seen == [(epoch, step, (5,)) for epoch in range(3) for step in range(2)]


@pytest.mark.seed("TR24")
def test_DL04_shuffle_gives_a_new_permutation_every_epoch():
    loader = DataLoader(Squares(50), batch_size=50, shuffle=True)
    (x1, y1), (x2, _) = next(iter(loader)), next(iter(loader))
    assert x1.tolist() != x2.tolist() and sorted(x1.tolist()) == sorted(x2.tolist()) == list(range(50))
    assert y1.tolist() == [i * i for i in x1.tolist()]


@pytest.mark.slow
def test_DL05_two_workers_keep_the_order_and_the_exception():
    assert [y.tolist() for _, y in DataLoader(Squares(6), 2, num_workers=2)] == [[0, 1], [4, 9], [16, 25]]
    with pytest.raises(KeyError, match="no square of 3"):
        list(DataLoader(Squares(6, fail_at=3), 2, num_workers=2))


def test_DL06_a_dataset_has_getitem_and_len():
    assert [x.item() for x, _ in DataLoader(Squares(3))] == [0, 1, 2]
    assert [batch.tolist() for batch in DataLoader([1, 2, 3], batch_size=2)] == [[1, 2], [3]]


def test_DL07_what_an_item_may_contain():
    def batch(item):
        return next(iter(DataLoader([item, item], batch_size=2)))

    assert batch(mt.ones(2)).shape == (2, 2)
    assert [t.tolist() for t in batch([1, 2.5])] == [[1, 1], [2.5, 2.5]]
    assert batch(3).tolist() == [3, 3] and batch("a") == ["a", "a"]
    assert batch({"x": 1, "y": mt.ones(1)})["y"].shape == (2, 1)
    assert batch(np.zeros(3)).dtype is mt.float64
    text = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found"
    with pytest.raises(TypeError, match=text):
        batch(object())
    with pytest.raises(RuntimeError, match="equal size"):
        next(iter(DataLoader([mt.ones(1), mt.ones(2)], batch_size=2)))


def test_DL08_tuples_become_lists_of_stacked_tensors():
    items = [(mt.ones(3, 4, 4), 1), (mt.zeros(3, 4, 4), 0)]
    found = next(iter(DataLoader(items, batch_size=2)))
    assert isinstance(found, list)
    assert found[0].shape == (2, 3, 4, 4) and found[1].tolist() == [1, 0]


def test_DL09_next_of_iter_starts_anew():
    loader = DataLoader(range(4), batch_size=2)
    assert [next(iter(loader)).tolist() for _ in range(2)] == [[0, 1], [0, 1]]


def test_DL10_iterators_over_one_loader_are_independent():
    loader = DataLoader(range(2))
    assert [(a.item(), b.item()) for a in loader for b in loader] == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_DL11_a_batch_larger_than_the_data():
    assert len(DataLoader(range(360), batch_size=16)) == 23
    assert [len(batch) for batch in DataLoader(range(5), batch_size=64)] == [5]
    assert list(DataLoader(range(5), batch_size=64, drop_last=True)) == []


def test_DL12_samplers():
    assert [b.tolist() for b in DataLoader(range(9), sampler=[8, 2, 5], batch_size=2)] == [[8, 2], [5]]
    assert [b.tolist() for b in DataLoader(range(9), batch_sampler=[[1, 2, 3], [0]])] == [[1, 2, 3], [0]]
    for bad in ({"sampler": [1], "shuffle": True}, {"batch_sampler": [[1]], "batch_size": 2},
                {"batch_sampler": [[1]], "shuffle": True}):  # fmt: skip
        with pytest.raises(ValueError):
            DataLoader(range(9), **bad)


@pytest.mark.slow
def test_DL13_the_number_of_workers_from_the_command_line():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=0)
    workers = parser.parse_args(["--workers", "2"]).workers
    assert [b.item() for b in DataLoader(range(3), num_workers=workers)] == [0, 1, 2]


def test_DL14_transforms_run_when_an_item_is_read():
    class Lazy(Squares):
        def __init__(self, transform):
            super().__init__(3)
            self.data, self.transform = [1, 2, 3], transform

        def __getitem__(self, i):
            return self.transform(self.data[i])

    calls = []
    data = Lazy(lambda x: calls.append(x) or x * 10)
    loader = DataLoader(data)
    assert calls == [] and data.data == [1, 2, 3]
    assert data[0] == 10 and calls == [1]
    assert [b.item() for b in loader] == [10, 20, 30] and data.data == [1, 2, 3]


@pytest.mark.slow
@pytest.mark.seed("CU05", "WF04")
def test_DL15_no_worker_outlives_its_loop():
    others = multiprocessing.active_children()

    def left():
        deadline = time.monotonic() + 10
        while (there := [p for p in multiprocessing.active_children() if p not in others]) and time.monotonic() < deadline:
            time.sleep(0.05)
        return there

    list(DataLoader(Squares(4), num_workers=2))
    assert left() == []
    for _ in DataLoader(Squares(40), num_workers=2):
        break
    assert left() == []
    for error in (RuntimeError, KeyboardInterrupt):
        with pytest.raises(error):
            for _ in DataLoader(Squares(40), num_workers=2):
                raise error
        assert left() == []


def test_DL16_work_done_once_is_not_repeated():
    calls = []

    def prepare(i):
        calls.append(i)
        return mt.full((2, 2), float(i))

    stored = TensorDataset(mt.stack([prepare(i) for i in range(4)]))
    loader = DataLoader(stored, batch_size=2)
    assert [x[:, 0, 0].tolist() for _ in range(3) for (x,) in loader] == [[0, 1], [2, 3]] * 3
    assert calls == [0, 1, 2, 3]


# Save and load


def test_SL01_load_state_dict():
    net, other = nn.BatchNorm1d(2), nn.BatchNorm1d(2)
    other.weight.data.fill_(3)
    other.running_mean.fill_(4)
    weight = net.weight
    assert str(net.load_state_dict(other.state_dict())) == "<All keys matched successfully>"
    assert net.weight is weight and weight.tolist() == [3, 3] and net.running_mean.tolist() == [4, 4]
    state = dict(other.state_dict())
    del state["bias"]
    state["extra"] = mt.ones(1)
    with pytest.raises(
        RuntimeError, match="(?s)Missing key.*bias.*Unexpected key.*extra|Unexpected key.*extra.*Missing key.*bias"
    ):
        net.load_state_dict(state)
    found = net.load_state_dict(state, strict=False)
    assert (found.missing_keys, found.unexpected_keys) == (["bias"], ["extra"])
    with pytest.raises(RuntimeError, match="size mismatch"):
        net.load_state_dict({"weight": mt.ones(3)}, strict=False)


def test_SL02_load_takes_paths_and_files_and_plain_data(tmp_path):
    state = {"weight": mt.arange(3.0), "epoch": 7, "names": ["a"], "flag": None}
    buffer = io.BytesIO()
    mt.save(state, buffer)
    buffer.seek(0)
    mt.save(state, tmp_path / "state.pt")
    for source in (buffer, tmp_path / "state.pt", str(tmp_path / "state.pt")):
        found = mt.load(source, map_location="cpu")
        assert found["weight"].tolist() == [0, 1, 2] and found["epoch"] == 7 and found["names"] == ["a"]
    mt.save({"code": Squares(3)}, tmp_path / "code.pt")
    with pytest.raises(pickle.UnpicklingError):
        mt.load(tmp_path / "code.pt")


def test_SL03_state_dict_shares_storage_and_keeps_the_order():
    net = nn.Sequential(nn.Linear(1, 1), nn.BatchNorm1d(1))
    state = net.state_dict()
    assert list(state) == ["0.weight", "0.bias", "1.weight", "1.bias", "1.running_mean", "1.running_var",
                           "1.num_batches_tracked"]  # fmt: skip
    state["0.weight"].fill_(9)
    assert net[0].weight.item() == 9
    assert not state["0.weight"].requires_grad


def test_SL04_training_can_be_resumed(tmp_path):
    def start():
        mt.manual_seed(0)
        net = nn.Linear(2, 1)
        return net, mt.optim.Adam(net.parameters(), lr=0.1)

    x, y = mt.ones(4, 2), mt.zeros(4, 1)
    net, optimizer = start()
    _train(net, x, y, optimizer, 3)
    mt.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "checkpoint.pt")
    straight = _train(net, x, y, optimizer, 3)
    net, optimizer = start()
    state = mt.load(tmp_path / "checkpoint.pt")
    net.load_state_dict(state["net"])
    optimizer.load_state_dict(state["optimizer"])
    assert _train(net, x, y, optimizer, 3) == pytest.approx(straight, rel=1e-5)


def test_SL05_loading_converts_to_the_dtype_and_device_of_the_module():
    net = nn.Linear(2, 1)
    net.load_state_dict(nn.Linear(2, 1).double().state_dict())
    assert net.weight.dtype is mt.float32 and net.weight.device.type == mt.zeros(1).device.type
