"""Datasets, samplers, collation and the DataLoader, in this process and with workers.

What happens to the processes when things go wrong is in `test_data_processes`.
"""

import collections
import multiprocessing
import os
import pickle
import random
import time
import warnings
from collections import namedtuple

import pytest

import mortice as mt
from mortice.utils.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    default_convert,
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
    pids = [p.pid for p in loader._pool.processes]
    assert values(loader) == first
    assert [p.pid for p in loader._pool.processes] == pids
    loader._pool.stop()
    assert not any(p.is_alive() for p in loader._pool.processes)


def test_workers_end_when_the_iterator_is_dropped_or_ends_them():
    iterator = iter(DataLoader(Squares(100), num_workers=2))
    next(iterator)
    processes = iterator._pool.processes
    del iterator
    assert not any(p.is_alive() for p in processes)
    iterator = iter(DataLoader(Squares(100), num_workers=2))
    processes = iterator._workers
    assert [p.is_alive() for p in processes] == [True, True]
    iterator._shutdown_workers()
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
        (dict(prefetch_factor=0, num_workers=1), "prefetch_factor option should be positive"),
        (dict(multiprocessing_context="fork"), "multiprocessing_context can only be used with multi-process loading"),
        (dict(multiprocessing_context="no", num_workers=1), "should specify a valid start method in .*, but got"),
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


# ---- what crosses from worker to parent ----

Pair = namedtuple("Pair", "left right")
Custom = collections.UserDict


class Holder(Squares):
    """Items made by a function that forked workers inherit."""

    def __init__(self, make, n=4):
        super().__init__(n)
        self.make = make

    def __getitem__(self, i):
        return self.make(i)


def through_a_worker(make, n=4, **options):
    return list(DataLoader(Holder(make, n), num_workers=1, **options))


@pytest.mark.parametrize("size", [3, 300_000])  # through the pipe, and by shared memory
def test_nested_batches_cross_as_they_are(size):
    def make(i):
        x = mt.full((size,), float(i))
        return {"pair": Pair(x, [x + 1, i]), "more": collections.OrderedDict(t=(x * 2, "text"), n=None is None)}

    (batch,) = through_a_worker(make, n=2, batch_size=2)
    assert type(batch["pair"]) is Pair and type(batch["more"]) is collections.OrderedDict
    assert batch["pair"].left.shape == (2, size) and batch["pair"].left[:, -1].tolist() == [0, 1]
    assert batch["pair"].right[0][:, 0].tolist() == [1, 2] and batch["pair"].right[1].tolist() == [0, 1]
    assert batch["more"]["t"][0][:, 5 % size].tolist() == [0, 2] and batch["more"]["t"][1] == ("text", "text")
    assert batch["more"]["n"].tolist() == [True, True]


@pytest.mark.parametrize("size", [4, 40_000])
@pytest.mark.parametrize("name", ["bool", "uint8", "uint64", "int16", "float16", "bfloat16", "float64", "complex64"])
def test_every_kind_of_tensor_crosses(name, size):
    dtype = getattr(mt, name)

    def make(i):
        x = (mt.arange(2 * size) % 2).to(dtype).reshape(2, size)
        return [x.t(), x[:, ::2], x[0, 0], x[:0], x[1:]]

    for batch in through_a_worker(make, n=1, batch_size=None):
        for got, sent in zip(batch, make(0)):
            assert got.dtype is dtype and got.shape == sent.shape and (got == sent).all() and got.is_leaf
            assert got._base is None
            got.fill_(1)  # handed over for good: writing is allowed


def test_large_batches_lie_in_shared_memory():
    def make(i):
        return mt.full((600_000,), float(i))

    iterator = iter(DataLoader(Holder(make, 12), batch_size=1, num_workers=1))
    first = next(iterator)
    slabs = iterator._pool.receivers[0].slabs
    assert slabs and all(len(slab) >= first.nbytes for slab in slabs.values())
    kept = [first, *iterator]
    assert [int(b.sum().item()) // 600_000 for b in kept] == list(range(12))
    assert [int(b[0, -1].item()) for b in kept] == list(range(12))  # none was overwritten by a later one


def test_slabs_are_used_again_and_grow():
    def make(i):
        return mt.full((20_000 * (1 + i // 10),), float(i))

    iterator = iter(DataLoader(Holder(make, 40), batch_size=None, num_workers=1))
    for i, x in enumerate(iterator):
        assert x.shape == (20_000 * (1 + i // 10),) and x[0].item() == x[-1].item() == i
        assert len(iterator._pool.receivers[0].slabs) <= 4
        del x


def test_texts_of_numpy_stay_texts_in_a_batch():
    np = pytest.importorskip("numpy")
    texts = [np.str_("a"), np.str_("b")]
    assert default_collate(texts) is texts and default_collate([np.bytes_(b"a")]) == [b"a"]
    words = np.array(["a", "b"])
    assert default_collate(words) is words and default_collate([(1, w) for w in words])[1] == ("a", "b")


def test_numpy_arrays_cross_in_shared_memory():
    np = pytest.importorskip("numpy", reason="NumPy arrays are what is sent")

    def make(i):
        return {"a": np.full((50_000, 2), i, "int32").T, "s": np.array(["x", "y"])}

    batch = next(iter(DataLoader(Holder(make), batch_size=None, num_workers=1, collate_fn=lambda item: item)))
    assert type(batch["a"]) is np.ndarray and batch["a"].shape == (2, 50_000) and batch["s"].tolist() == ["x", "y"]
    assert next(iter(DataLoader(Holder(make), batch_size=None)))["a"].dtype is mt.int32


def test_parameters_and_leaves_keep_requires_grad():
    def make(i):
        return [mt.ones(3, requires_grad=True), mt.nn.Parameter(mt.ones(3)), object]

    (batch,) = through_a_worker(make, n=1, batch_size=None)
    assert batch[0].requires_grad and batch[0].is_leaf and type(batch[1]) is mt.nn.Parameter and batch[2] is object
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor which requires_grad"):
        through_a_worker(lambda i: mt.ones(3, requires_grad=True) * 2, batch_size=None)


def test_what_cannot_cross_is_an_error_and_not_a_hang():
    with pytest.raises(Exception, match=r"DataLoader worker process 0(.|\n)*Can't (pickle|get) local object"):  # from 3.13 on
        through_a_worker(lambda i: (lambda: i), batch_size=None)


# ---- errors of workers ----


class TwoArguments(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


def failing(error):
    def make(i):
        raise error

    return make


def test_errors_that_cannot_be_made_again_become_runtime_errors():
    class Local(Exception):
        pass

    for error, kind in [
        (TwoArguments(1, "two"), RuntimeError), (Local("here"), RuntimeError), (StopIteration("odd"), RuntimeError),
        (KeyError("key"), KeyError), (IndexError("at"), IndexError),
    ]:  # fmt: skip
        with pytest.raises(kind, match="(?s)Caught .* in DataLoader worker process 0.*Original Traceback.*in make") as e:
            through_a_worker(failing(error))
        assert type(e.value) is kind
        assert "\n" in str(e.value)  # a KeyError would show its text on one line


def test_a_loop_goes_on_after_an_error():
    iterator = iter(DataLoader(Broken(6), num_workers=2))
    seen = []
    for _ in range(6):
        try:
            seen.append(next(iterator).item())
        except ZeroDivisionError:
            seen.append("error")
    assert seen == [0, 1, 4, "error", 16, 25]
    assert list(iterator) == []


def test_errors_of_worker_init_fn_and_of_iter_are_told():
    def refuse(worker_id):
        raise OSError("no such disk")

    class Never(IterableDataset):
        def __iter__(self):
            raise OSError("no such stream")

    with pytest.raises(OSError, match="no such disk"):
        list(DataLoader(Squares(2), num_workers=1, worker_init_fn=refuse))
    with pytest.raises(OSError, match="no such stream"):
        list(DataLoader(Never(), num_workers=1))


def test_an_exit_in_a_worker_is_a_death():
    with pytest.raises(RuntimeError, match="exited unexpectedly: exit code 5"):
        through_a_worker(failing(SystemExit(5)))


# ---- passes ----


def test_streams_with_workers_come_in_turn():
    with warnings.catch_warnings(record=True) as seen:
        assert values(DataLoader(Stream(10), batch_size=2, num_workers=3)) == [
            [0, 3], [1, 4], [2, 5], [6, 9], [7], [8]]  # fmt: skip
        assert values(DataLoader(Stream(10), batch_size=2, num_workers=3, drop_last=True)) == [
            [0, 3], [1, 4], [2, 5], [6, 9]]  # fmt: skip
        assert [x for x in DataLoader(Stream(5), batch_size=None, num_workers=2)] == [0, 1, 2, 3, 4]
    assert all("worker processes in total" in str(w.message) for w in seen)


class Restarting(IterableDataset):
    """Its own iterator, which begins anew whenever it is asked for one."""

    def __iter__(self):
        self.left = iter(range(5))
        return self

    def __next__(self):
        return next(self.left)


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("size, batches", [(2, [[0, 1], [2, 3], [4]]), (5, [[0, 1, 2, 3, 4]]), (None, [0, 1, 2, 3, 4])])
def test_a_stream_that_is_its_own_iterator_is_asked_for_one_only_once(size, batches, workers):
    loader = DataLoader(Restarting(), batch_size=size, num_workers=workers)
    for _ in range(2):
        stream = iter(loader)
        found = [next(stream) for _ in batches]
        assert [b if size is None else b.tolist() for b in found] == batches


def test_streams_that_are_longer_than_they_say_warn():
    class Liar(Stream):
        def __len__(self):
            return 2

    for workers in (0, 1):
        loader = DataLoader(Liar(3), num_workers=workers)
        assert len(loader) == 2 and len(DataLoader(Liar(3), batch_size=3)) == 1
        with pytest.warns(UserWarning, match="was reported to be 2 .*but 3 samples have been fetched"):
            list(loader)


def test_batches_out_of_order_come_as_they_are_ready():
    def make(i):
        time.sleep(2 if i == 0 else 0.01)
        return i

    found = [b.item() for b in DataLoader(Holder(make, 12), num_workers=2, in_order=False)]
    assert sorted(found) == list(range(12)) and found.index(0) > 4


def test_persistent_workers_forget_a_pass_that_was_left():
    loader = DataLoader(Squares(40), num_workers=2, persistent_workers=True)
    for _ in range(3):
        assert next(iter(loader)).item() == 0
    whole = [b.item() for b in loader]
    assert whole == [i * i for i in range(40)]
    old = iter(loader)
    next(old)
    iter(loader)
    with pytest.raises(RuntimeError, match="persistent workers have begun another pass"):
        list(old)
    stream = DataLoader(Stream(6), num_workers=2, persistent_workers=True)
    assert values(stream) == values(stream) == [[0], [1], [2], [3], [4], [5]]


def test_persistent_workers_are_started_anew_after_a_death():
    flag = []

    def make(i):
        if i == 1 and not flag:
            os._exit(3)
        return i

    loader = DataLoader(Holder(make), num_workers=1, persistent_workers=True)
    with pytest.raises(RuntimeError, match="exit code 3"):
        list(loader)
    flag.append(1)
    assert [b.item() for b in loader] == [0, 1, 2, 3]


def test_the_number_of_workers_changes_no_random_number_here():
    drawn = set()
    for workers in (0, 2):
        mt.manual_seed(5)
        order = values(DataLoader(Squares(8), batch_size=4, shuffle=True, num_workers=workers))
        drawn.add((str(order), mt.rand(1).item()))
    assert len(drawn) == 1


def test_workers_are_seeded_by_the_loader_s_generator():
    def make(i):
        info = get_worker_info()
        assert (info.num_workers, info.dataset.n) == (2, 4) and "seed=" in repr(info)
        assert (info.rng, info.worker_method) == (None, "multiprocessing")
        return [info.id, info.seed, random.getrandbits(30), mt.randint(0, 1 << 30, ()).item()]

    def run(seed, **options):
        generator = mt.Generator().manual_seed(seed)
        return [[v.item() for v in b] for b in DataLoader(Holder(make), num_workers=2, generator=generator, **options)]

    first = run(1)
    assert run(1) == first != run(2)
    assert [row[0] for row in first] == [0, 1, 0, 1] and first[1][1] == first[0][1] + 1
    assert len({row[2] for row in first}) == len({row[3] for row in first}) == 4
    assert get_worker_info() is None


def test_numpy_is_seeded_in_forked_workers():
    np = pytest.importorskip("numpy", reason="its generator is what is seeded")
    mt.manual_seed(0)
    found = [b.item() for b in DataLoader(Holder(lambda i: int(np.random.randint(1 << 30))), num_workers=2)]
    mt.manual_seed(0)
    assert len(set(found)) == 4
    assert found == [b.item() for b in DataLoader(Holder(lambda i: int(np.random.randint(1 << 30))), num_workers=2)]


def test_worker_init_fn_gets_the_id():
    def init(worker_id):
        os.environ["MORTICE_TEST_WORKER"] = str(worker_id)

    loader = DataLoader(Holder(lambda i: int(os.environ["MORTICE_TEST_WORKER"])), num_workers=2, worker_init_fn=init)
    assert [b.item() for b in loader] == [0, 1, 0, 1]


def test_workers_use_the_backend_of_the_parent():
    loader = DataLoader(Holder(lambda i: mt.default_backend(), 1), batch_size=None, num_workers=1)
    assert list(loader) == [mt.default_backend()]


@pytest.mark.parametrize("method", ["spawn", "forkserver"])  # the second is Python's own choice from 3.14 on
def test_workers_that_are_not_forked_get_pickles(method):
    loader = DataLoader(Squares(3), num_workers=1, multiprocessing_context=method)
    assert values(loader) == values(DataLoader(Squares(3)))
    with pytest.raises((AttributeError, pickle.PicklingError)) as error:
        through_a_worker(lambda i: i, multiprocessing_context=method)
    told = error.value.__notes__[-1]  # Python 3.14 adds its own before
    assert "at the top of a module" in told and "multiprocessing_context='fork'" in told


def test_a_loader_can_be_copied_and_its_iterator_not():
    loader = DataLoader(Squares(4), num_workers=1, persistent_workers=True)
    first = values(loader)
    assert values(pickle.loads(pickle.dumps(loader))) == first
    with pytest.raises(NotImplementedError, match="_SingleProcessDataLoaderIter cannot be pickled"):
        pickle.dumps(iter(DataLoader(Squares(2))))
    with pytest.raises(ValueError, match="batch_size attribute should not be set after DataLoader is initialized"):
        loader.batch_size = 3
    assert all(kind[int] for kind in (DataLoader, Subset, ConcatDataset, ChainDataset, StackDataset, DistributedSampler))
    assert len(iter(DataLoader(Squares(5), 2))) == 3 and len(DataLoader(Squares(5), 2)._get_iterator()) == 3


@pytest.mark.parametrize("workers", [0, 2])
def test_a_pass_takes_a_loader_of_another_library(workers):
    from mortice.utils.data.dataloader import _DatasetKind, _MultiProcessingDataLoaderIter, _SingleProcessDataLoaderIter

    class Loader:  # what fastai's has: PyTorch's attributes and no more
        _IterableDataset_len_called, _auto_collation, drop_last, in_order, prefetch_factor = None, False, False, True, 2
        _dataset_kind, _index_sampler, generator, timeout, persistent_workers = _DatasetKind.Iterable, range(9), None, 0, True
        pin_memory, pin_memory_device, worker_init_fn = False, "", None
        multiprocessing_context = multiprocessing.get_context("fork")
        num_workers = workers

        def __init__(self):
            self.dataset = self

        def __iter__(self):
            return iter([mt.ones(2), mt.zeros(2)])

        def collate_fn(self, x):
            return x

    loader = Loader()
    for _ in range(2):
        found = list((_MultiProcessingDataLoaderIter if workers else _SingleProcessDataLoaderIter)(loader))
        assert sorted(x[0].item() for x in found) == sorted([0, 1] * max(workers, 1))



def test_options_that_do_nothing_here_say_so():
    with pytest.warns(UserWarning, match="no accelerator is found"):
        assert values(DataLoader(Squares(2), pin_memory=True)) == [[0], [1]]
    with pytest.raises(ValueError, match="timeout option needs num_workers > 0, but got timeout=3"):
        iter(DataLoader(Squares(2), timeout=3))
    with pytest.raises(TypeError, match="should be a valid context object or a string specifying the start method"):
        DataLoader(Squares(2), num_workers=1, multiprocessing_context=3)


# ---- collation, datasets and samplers, case by case ----


def test_collate_makes_the_dtypes_of_pytorch():
    assert default_collate([1, 2]).dtype is mt.int64 and default_collate([True, False]).dtype is mt.bool
    assert default_collate([1.5, 2]).dtype is mt.float64 and default_collate([b"a", b"b"]) == [b"a", b"b"]
    assert default_collate([mt.ones(2, dtype=mt.float16)] * 2).dtype is mt.float16
    point = default_collate([Custom(a=1), Custom(a=2)])
    assert type(point) is Custom and point["a"].tolist() == [1, 2]
    assert default_collate([[1, [2]], [3, [4]]])[1][0].tolist() == [2, 4]
    assert default_collate([range(2), range(2)])[1].tolist() == [1, 1]
    for bad in (None, object(), 1j):
        with pytest.raises(TypeError, match="default_collate: batch must contain tensors"):
            default_collate([bad])
    with pytest.raises(KeyError):
        default_collate([{"a": 1}, {"b": 1}])


def test_collate_takes_numpy():
    np = pytest.importorskip("numpy", reason="NumPy values are what is collated")
    assert default_collate([np.float32(1), np.float32(2)]).dtype is mt.float32
    assert default_collate([np.float64(1)]).dtype is mt.float64
    assert default_collate([np.arange(2, dtype="uint16")] * 3).shape == (3, 2)
    with pytest.raises(TypeError, match="found <U1"):
        default_collate([np.array("a")])
    made = default_convert({"a": np.ones(2), "b": (1, np.array(["s"])), "c": Pair("x", [np.ones(1)])})
    assert isinstance(made["a"], mt.Tensor) and type(made["b"]) is list and isinstance(made["b"][1], np.ndarray)
    assert isinstance(made["c"].right[0], mt.Tensor) and made["c"].left == "x"


def test_collate_can_be_taught_a_type():
    from mortice.utils.data.collate import collate, default_collate_fn_map

    class Box:
        def __init__(self, x):
            self.x = x

    table = {**default_collate_fn_map, Box: lambda batch, *, collate_fn_map: sum(b.x for b in batch)}
    assert collate([[Box(1), 1], [Box(2), 2]], collate_fn_map=table)[0] == 3


def test_several_items_are_read_in_one_call():
    class Several(Squares):
        calls = []

        def __getitems__(self, indices):
            self.calls.append(indices)
            return [self[i] for i in indices]

    data = Several(8)
    assert values(DataLoader(Subset(data, [7, 6, 5]), batch_size=2)) == [[49, 36], [25]]
    assert StackDataset(data, list(range(8))).__getitems__([1, 2]) == [(mt.tensor(1), 1), (mt.tensor(4), 2)]
    assert StackDataset(a=list(range(3))).__getitems__([2]) == [{"a": 2}]
    assert data.calls == [[7, 6], [5], [1, 2]]
    Several.__getitems__ = lambda self, indices: []
    with pytest.raises(ValueError, match="output size mismatch. Expected 1, got 0"):
        Subset(data, [1]).__getitems__([0])


def test_datasets_refuse_what_they_cannot_hold():
    for make, error in [
        (lambda: StackDataset(), ValueError), (lambda: StackDataset([1], a=[1]), ValueError),
        (lambda: StackDataset([1], [1, 2]), ValueError), (lambda: ConcatDataset([]), AssertionError),
        (lambda: ConcatDataset([Stream(1)]), AssertionError), (lambda: list(ChainDataset([[1]])), AssertionError),
        (lambda: ConcatDataset([[1]])[1], IndexError), (lambda: ConcatDataset([[1]])[-2], ValueError),
        (lambda: Dataset()[0], NotImplementedError), (lambda: iter(IterableDataset()), NotImplementedError),
        (lambda: iter(Sampler()), NotImplementedError),
    ]:  # fmt: skip
        with pytest.raises(error):
            make()
    assert list(Stream(2) + Stream(3)) == [0, 1, 0, 1, 2]
    assert len(Squares(2) + Squares(3)) == 5


def test_random_split_takes_fractions_and_a_seed():
    data = list(range(11))
    parts = random_split(data, [0.5, 0.25, 0.25], mt.Generator().manual_seed(7))
    assert [len(p) for p in parts] == [6, 3, 2] and sorted(x for p in parts for x in p) == data
    again = random_split(data, [0.5, 0.25, 0.25], mt.Generator().manual_seed(7))
    assert [list(p) for p in again] == [list(p) for p in parts]
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
        random_split([1], [0.5, 0.5])


def test_samplers_refuse_bad_arguments():
    for make, error in [
        (lambda: RandomSampler([]), ValueError), (lambda: RandomSampler([1], num_samples=-1), ValueError),
        (lambda: RandomSampler([1], 1), TypeError), (lambda: BatchSampler([1], 0, False), ValueError),
        (lambda: BatchSampler([1], 1, 1), ValueError), (lambda: WeightedRandomSampler([1.0], 0), ValueError),
        (lambda: WeightedRandomSampler([[1.0]], 1), ValueError), (lambda: WeightedRandomSampler([1.0], 1, 3), ValueError),
        (lambda: DistributedSampler([1], 2, 2), ValueError), (lambda: DistributedSampler([1]), RuntimeError),
    ]:  # fmt: skip
        with pytest.raises(error):
            make()


def test_samplers_draw_what_they_say():
    g = mt.Generator().manual_seed(3)
    assert sorted(SubsetRandomSampler([5, 6, 9], g)) == [5, 6, 9]
    drawn = list(RandomSampler(range(5), replacement=True, num_samples=500, generator=g))
    assert set(drawn) == set(range(5)) and len(drawn) == 500
    assert sorted(list(RandomSampler(range(5), num_samples=13, generator=g))[:10]) == sorted([*range(5), *range(5)])
    assert sorted(WeightedRandomSampler([1.0, 2.0, 3.0], 3, replacement=False, generator=g)) == [0, 1, 2]
    counts = collections.Counter(WeightedRandomSampler([1.0, 3.0], 4000, generator=g))
    assert abs(counts[1] - 3000) < 150
    assert list(SequentialSampler("abc")) == [0, 1, 2] and list(BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]]


def test_distributed_parts_are_a_partition_in_pytorch_s_order():
    def parts(n, replicas, **options):
        return [list(DistributedSampler(range(n), replicas, r, **options)) for r in range(replicas)]

    assert parts(10, 4, shuffle=False) == [[0, 4, 8], [1, 5, 9], [2, 6, 0], [3, 7, 1]]
    assert parts(10, 4, shuffle=False, drop_last=True) == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert parts(3, 8, shuffle=False)[7] == [1] and parts(3, 8, drop_last=True)[7] == []
    shuffled = parts(12, 3, seed=4)
    assert sorted(i for p in shuffled for i in p) == list(range(12)) and shuffled == parts(12, 3, seed=4)
    assert shuffled != parts(12, 3, seed=5)
    sampler = DistributedSampler(range(12), 3, 1, seed=4)
    sampler.set_epoch(1)
    assert list(sampler) == parts(12, 3, seed=5)[1] and len(sampler) == 4
    assert values(DataLoader(Squares(6), sampler=DistributedSampler(range(6), 2, 1, shuffle=False), num_workers=1)) == [
        [1], [9], [25]]  # fmt: skip


@pytest.mark.oracle
def test_parts_and_streams_are_those_of_pytorch():
    torch_data = pytest.importorskip("torch.utils.data", reason="the oracle is PyTorch")
    for n in (1, 7, 10, 16):
        for replicas in (1, 3, 5):
            for rank in range(replicas):
                for drop in (False, True):
                    args = (range(n), replicas, rank, False, 0, drop)
                    ours, theirs = DistributedSampler(*args), torch_data.DistributedSampler(*args)
                    assert list(ours) == list(theirs) and len(ours) == len(theirs)
    for lengths in ([0.1] * 10, [0.5, 0.5], [0.33, 0.33, 0.34], [5, 6]):
        assert [len(p) for p in random_split(range(11), lengths)] == [
            len(p) for p in torch_data.random_split(range(11), lengths)
        ]

    class Theirs(torch_data.IterableDataset):
        def __init__(self, sizes):
            self.sizes = sizes

        def __iter__(self):
            info = torch_data.get_worker_info()
            return iter(range(info.id * 100, info.id * 100 + self.sizes[info.id]))

    class Ours(IterableDataset):
        __init__ = Theirs.__init__

        def __iter__(self):
            info = get_worker_info()
            return iter(range(info.id * 100, info.id * 100 + self.sizes[info.id]))

    for sizes in ([7, 1], [0, 5], [4, 4]):
        for drop in (False, True):
            options = dict(batch_size=2, num_workers=2, drop_last=drop)
            theirs = values(torch_data.DataLoader(Theirs(sizes), **options))
            assert values(DataLoader(Ours(sizes), **options)) == theirs


def test_more_workers_than_cores_are_warned_of_where_the_loader_is_made() -> None:
    with pytest.warns(UserWarning, match="excessive worker creation might get DataLoader running slow or even freeze"):
        DataLoader([1, 2], num_workers=4096)
