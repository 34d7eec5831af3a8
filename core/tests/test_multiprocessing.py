"""mortice.multiprocessing: tensors that several processes see, handed over by queues, pipes, pools and arguments."""

from __future__ import annotations

import gc
import importlib.util
import os
import signal
import sys

import pytest

import mortice as mt
import mortice.multiprocessing as mp
from mortice import nn

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="memory is handed over as open files, which Windows has not")
STRICT = importlib.util.find_spec("mortice_conformance") is not None
METHODS = ["fork", "spawn"]
SOON = 120  # seconds after which a test that waits has hung


def change_and_return(inbox, outbox, direct, net):
    got = inbox.get(timeout=SOON)
    got += 1
    direct[1] = 7
    net.weight.data.fill_(3)
    outbox.put((got * 2, direct[1:3], net.bias))
    inbox.get(timeout=SOON)  # what was put stays to be had while its process runs


@pytest.mark.needs("sharing")
@pytest.mark.parametrize("method", METHODS)
def test_both_sides_write_the_same_memory(method):
    context = mp.get_context(method)
    inbox, outbox = context.Queue(), context.Queue()
    direct, net = mt.zeros(4), nn.Linear(2, 2).share_memory()
    process = context.Process(target=change_and_return, args=(inbox, outbox, direct.share_memory_(), net))
    process.start()
    sent = mt.arange(6.0).reshape(2, 3).t()
    inbox.put(sent)
    made, part, bias = outbox.get(timeout=SOON)
    assert sent.tolist() == [[1, 4], [2, 5], [3, 6]] and made.tolist() == [[2, 8], [4, 10], [6, 12]]
    assert direct.tolist() == [0, 7, 0, 0] and part.data_ptr() == direct.data_ptr() + 4
    assert isinstance(bias, nn.Parameter) and bias.requires_grad and bias.data_ptr() == net.bias.data_ptr()
    assert net.weight.tolist() == [[3, 3], [3, 3]]
    part.fill_(9)
    assert direct.tolist() == [0, 9, 9, 0]
    inbox.put(None)
    process.join(SOON)
    assert process.exitcode == 0


VALUES = {
    "a number": lambda: mt.tensor(2.5),
    "nothing": lambda: mt.zeros(0, 3),
    "bfloat16": lambda: mt.tensor([1.5, -2.0], dtype=mt.bfloat16),
    "complex": lambda: mt.tensor([1 + 2j, 3 - 4j]),
    "every second": lambda: mt.arange(10)[1::2],
    "expanded": lambda: mt.arange(3.0).expand(2, 3),
    "a view of another dtype": lambda: mt.arange(4, dtype=mt.int32).view(mt.int16)[2:],
    "a leaf that requires grad": lambda: mt.ones(2, requires_grad=True),
    "a buffer": lambda: nn.Buffer(mt.ones(2)),
}


@pytest.mark.parametrize("name", VALUES)
def test_what_goes_through_a_pipe_comes_out_as_it_was(name):
    value = VALUES[name]()
    here, there = mp.Pipe()
    there.send(value)
    got = here.recv()
    assert type(got) is type(value) and got.dtype is value.dtype and mt.equal(got, value)
    assert got.requires_grad == value.requires_grad


@pytest.mark.needs("sharing")
@pytest.mark.parametrize("name", VALUES)
def test_what_goes_through_a_pipe_keeps_its_strides(name):
    here, there = mp.Pipe()
    there.send(VALUES[name]())
    assert here.recv().stride() == VALUES[name]().stride()


@pytest.mark.needs("sharing")
def test_storages_and_attributes_go_along():
    here, there = mp.Pipe()
    storage = mt.arange(4.0).untyped_storage()
    there.send(storage)
    assert here.recv().data_ptr() == storage.data_ptr() and storage.is_shared()
    weight = nn.Parameter(mt.ones(2))
    weight.sparse = True
    there.send(weight)
    assert here.recv().sparse is True


def test_a_tensor_with_history_is_refused():
    here, there = mp.Pipe()
    with pytest.raises(RuntimeError, match=r"refusing to serialize non-leaf tensor .* call detach\(\)"):
        there.send(mt.ones(2, requires_grad=True) * 2)


@pytest.mark.skipif(not STRICT, reason="the conformance kit is not installed")
def test_a_backend_of_copies_sends_values():
    here, there = mp.Pipe()
    there.send(mt.arange(3.0, device="strict:0"))
    got = here.recv()
    assert got.device == mt.device("strict:0") and got.tolist() == [0, 1, 2]


def square(x):
    return x * x


def test_a_pool_maps_over_tensors():
    with mp.get_context("fork").Pool(2) as pool:
        assert mt.stack(pool.map(square, list(mt.arange(5.0)))).tolist() == [0, 1, 4, 9, 16]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="this system does not list open files")
def test_shared_memory_that_nobody_uses_is_given_back():
    def opened():
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    here, there = mp.Pipe()
    there.send(mt.ones(3))
    here.recv()  # starts what hands files over
    before = opened()
    for _ in range(20):
        there.send(mt.ones(1000))
        assert here.recv().sum().item() == 1000
    assert opened() <= before + 1


@pytest.mark.needs("sharing")
def test_processes_train_one_model_together():
    model = nn.Linear(4, 1)
    model.share_memory()
    workers = [mp.get_context("fork").Process(target=fit, args=(model, seed)) for seed in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(SOON)
    x = mt.randn(64, 4)
    assert nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).item() < 0.01


def fit(model, seed):
    mt.manual_seed(seed)
    optimizer = mt.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(100):
        x = mt.randn(16, 4)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).backward()
        optimizer.step()


@pytest.mark.needs("sharing")
def test_an_optimiser_shares_its_state():
    layer = nn.Linear(2, 1).share_memory()
    optimizer = mt.optim.Adagrad(layer.parameters(), lr=0.1)
    optimizer.share_memory()
    layer(mt.ones(1, 2)).sum().backward()
    optimizer.step()
    assert optimizer.state[layer.weight]["sum"].is_shared() and layer.weight.is_shared()


# ---- spawn ----


def write(index, t):
    t[index] = index + 10


def fail_in_the_second(index, t):
    if index == 1:
        raise ValueError("the second fails")
    signal.pause()


def end(index, how):
    if how == "exit":
        sys.exit(3)
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.needs("sharing")
def test_spawn_runs_a_function_by_number():
    t = mt.zeros(3)
    assert mp.spawn(write, (t,), nprocs=2) is None and t.tolist() == [10, 11, 0]


def test_an_error_in_one_ends_the_others_and_is_raised_here():
    with pytest.raises(mp.ProcessRaisedException, match="(?s)Process 1 terminated.*the second fails") as e:
        mp.start_processes(fail_in_the_second, (mt.zeros(1),), nprocs=2, start_method="fork")
    assert e.value.error_index == 1 and e.value.error_pid > 0


@pytest.mark.parametrize(("how", "code", "name"), [("exit", 3, None), ("kill", -9, "SIGKILL")])
def test_a_process_that_ends_otherwise_is_told(how, code, name):
    with pytest.raises(mp.ProcessExitedException) as e:
        mp.start_processes(end, (how,), start_method="fork")
    assert (e.value.exit_code, e.value.signal_name) == (code, name)


@pytest.mark.needs("sharing")
def test_processes_are_joined_later():
    t = mt.zeros(2).share_memory_()
    context = mp.start_processes(write, (t,), nprocs=2, join=False, start_method="fork")
    assert len(context.pids()) == 2
    while not context.join(timeout=SOON):
        pass
    assert t.tolist() == [10, 11] and context.join()


def test_all_names_of_multiprocessing_are_there():
    import multiprocessing

    assert set(multiprocessing.__all__) <= set(mp.__all__) and mp.Queue is multiprocessing.Queue
    assert mp.get_sharing_strategy() in mp.get_all_sharing_strategies()
    mp.set_sharing_strategy("file_system")
    assert mp.get_sharing_strategy() == "file_system"
    mp.set_sharing_strategy("file_descriptor")
    with pytest.raises(ValueError, match="expected one of"):
        mp.set_sharing_strategy("pigeon")
