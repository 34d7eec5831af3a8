"""Datasets, samplers, collation and the DataLoader, in this process and with workers."""

import os
import time
from collections import namedtuple

import pytest

import mortice as mt
from mortice.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    StackDataset,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    get_worker_info,
    random_split,
)


class Squares(Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return mt.tensor(i * i)


class Broken(Squares):
    def __getitem__(self, i):
        if i == 3:
            raise ZeroDivisionError("item 3 is broken")
        return super().__getitem__(i)


class Dying(Squares):
    def __getitem__(self, i):
        if i == 2:
            os._exit(7)
        return super().__getitem__(i)


class Slow(Squares):
    def __getitem__(self, i):
        time.sleep(5)
        return super().__getitem__(i)


class Seeds(Squares):
    def __getitem__(self, i):
        info = get_worker_info()
        return mt.tensor([info.id, mt.randint(0, 1 << 30, ()).item()])


class Stream(IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = get_worker_info()
        start, step = (info.id, info.num_workers) if info else (0, 1)
        yield from range(start, self.n, step)


def values(loader):
    return [batch.tolist() for batch in loader]


def test_batches_come_in_order_and_the_last_may_be_small():
    loader = DataLoader(Squares(5), batch_size=2)
    assert values(loader) == [[0, 1], [4, 9], [16]]
    assert len(loader) == 3
    assert values(DataLoader(Squares(5), batch_size=2, drop_last=True)) == [[0, 1], [4, 9]]


def test_shuffle_is_a_new_permutation_each_pass_and_repeats_with_the_seed():
    loader = DataLoader(Squares(32), batch_size=32, shuffle=True)
    mt.manual_seed(3)
    first, second = values(loader), values(loader)
    assert first != second and sorted(first[0]) == sorted(second[0]) == [i * i for i in range(32)]
    mt.manual_seed(3)
    assert values(loader) == first


def test_batch_size_none_hands_out_samples():
    assert [t.item() for t in DataLoader(Squares(3), batch_size=None)] == [0, 1, 4]


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_workers_keep_the_order(workers):
    assert values(DataLoader(Squares(11), batch_size=2, num_workers=workers)) == values(DataLoader(Squares(11), batch_size=2))


def test_workers_have_seeds_of_their_own():
    mt.manual_seed(0)
    loader = DataLoader(Seeds(4), batch_size=2, num_workers=2)
    drawn = [row for batch in values(loader) for row in batch]
    assert {row[0] for row in drawn} == {0, 1}
    assert len({row[1] for row in drawn}) == 4
    mt.manual_seed(0)
    assert [row for batch in values(loader) for row in batch] == drawn


def test_an_error_in_a_worker_keeps_its_type_and_text():
    with pytest.raises(ZeroDivisionError, match="Caught ZeroDivisionError in DataLoader worker process 0") as caught:
        values(DataLoader(Broken(6), batch_size=2, num_workers=1))
    assert "item 3 is broken" in str(caught.value)


def test_a_worker_that_dies_is_noticed():
    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly"):
        values(DataLoader(Dying(6), batch_size=2, num_workers=1))


def test_a_slow_worker_times_out():
    with pytest.raises(RuntimeError, match="DataLoader timed out after 0.3 seconds"):
        values(DataLoader(Slow(2), num_workers=1, timeout=0.3))


def test_persistent_workers_serve_several_passes():
    loader = DataLoader(Squares(6), batch_size=2, num_workers=2, persistent_workers=True)
    first = values(loader)
    pids = [p.pid for p in loader._workers.processes]
    assert values(loader) == first
    assert [p.pid for p in loader._workers.processes] == pids
    loader._workers.stop()
    assert not any(p.is_alive() for p in loader._workers.processes)


def test_workers_end_when_the_iterator_is_dropped():
    iterator = iter(DataLoader(Squares(100), num_workers=2))
    next(iterator)
    processes = iterator._workers.processes
    del iterator
    assert not any(p.is_alive() for p in processes)


def test_iterable_datasets_split_among_workers():
    assert sorted(v for b in values(DataLoader(Stream(10), batch_size=3)) for v in b) == list(range(10))
    assert sorted(v for b in values(DataLoader(Stream(10), batch_size=2, num_workers=2)) for v in b) == list(range(10))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (dict(num_workers=-1), "num_workers option should be non-negative"),
        (dict(timeout=-1), "timeout option should be non-negative"),
        (dict(batch_size=0), "batch_size should be a positive integer value, but got batch_size=0"),
        (dict(sampler=[0], shuffle=True), "sampler option is mutually exclusive with shuffle"),
        (dict(batch_sampler=[[0]], batch_size=2), "batch_sampler option is mutually exclusive with batch_size"),
        (dict(batch_size=None, drop_last=True), "batch_size=None option disables auto-batching"),
        (dict(prefetch_factor=2), "prefetch_factor option could only be specified in multiprocessing"),
        (dict(persistent_workers=True), "persistent_workers option needs num_workers > 0"),
    ],
)
def test_bad_options_are_refused(options, text):
    with pytest.raises(ValueError, match=text):
        DataLoader(Squares(2), **options)


def test_collate_keeps_the_structure():
    Point = namedtuple("Point", "x y")
    batch = default_collate([{"a": 1, "b": (1.5, "s")}, {"a": 2, "b": (2.5, "t")}])
    assert batch["a"].tolist() == [1, 2] and batch["b"][0].dtype is mt.float64 and batch["b"][1] == ("s", "t")
    assert default_collate([Point(mt.ones(2), 1), Point(mt.zeros(2), 2)]).x.tolist() == [[1, 1], [0, 0]]
    with pytest.raises(TypeError, match="default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists"):
        default_collate([object()])
    with pytest.raises(RuntimeError, match="equal size"):
        default_collate([mt.ones(2), mt.ones(3)])
    with pytest.raises(RuntimeError, match="each element in list of batch should be of equal size"):
        default_collate([[1], [1, 2]])


def test_datasets_combine():
    data = TensorDataset(mt.arange(4), mt.arange(4) * 10)
    assert [t.item() for t in data[1]] == [1, 10]
    both = ConcatDataset([Squares(2), Squares(3)])
    assert [both[i].item() for i in range(5)] == [0, 1, 0, 1, 4] and both[-1].item() == 4
    assert Subset(Squares(9), [8, 2])[0].item() == 64
    assert StackDataset(a=Squares(2), b=Squares(2))[1]["b"].item() == 1
    with pytest.raises(AssertionError, match="Size mismatch between tensors"):
        TensorDataset(mt.zeros(2), mt.zeros(3))


def test_random_split_partitions():
    parts = random_split(range(10), [0.7, 0.3], generator=mt.Generator().manual_seed(1))
    assert sorted(i for p in parts for i in p.indices) == list(range(10)) and [len(p) for p in parts] == [7, 3]
    with pytest.raises(ValueError, match="Sum of input lengths does not equal"):
        random_split(range(10), [1, 2])


def test_samplers_count_and_repeat():
    assert list(BatchSampler(range(5), 2, False)) == [[0, 1], [2, 3], [4]]
    g = mt.Generator()
    assert list(RandomSampler(range(6), generator=g.manual_seed(5))) == list(RandomSampler(range(6), generator=g.manual_seed(5)))
    assert len(list(RandomSampler(range(3), num_samples=7))) == 7
    assert set(WeightedRandomSampler([0.0, 1.0, 0.0], 5)) == {1}
