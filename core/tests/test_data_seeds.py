"""DataLoader(seed_samples=True): what a sample draws depends on the seed and its place, not on who loads it."""

from __future__ import annotations

import random

import pytest

import mortice as mt
from mortice.utils.data import DataLoader, Dataset, IterableDataset, RandomSampler, Subset


class Drawing(Dataset):
    """Items that draw from every generator, some of them more than others."""

    def __len__(self):
        return 14

    def __getitem__(self, i):
        drawn = [mt.rand(1 + i % 3)[-1].item(), random.random()]
        return mt.tensor([float(i), *drawn], dtype=mt.float64)


def passes(n=2, seed=7, data=None, **settings):
    """Return what a number of passes over a loader give, sample after sample."""
    settings = {"batch_size": 4, "shuffle": True, "seed_samples": True} | settings
    mt.manual_seed(seed)
    random.seed(seed)
    loader = DataLoader(Drawing() if data is None else data, **settings)
    return [[row for batch in loader for row in batch.tolist()] for _ in range(n)]


def test_any_number_of_workers_gives_the_same_samples():
    alone = passes()
    assert alone[0] != alone[1] and len({tuple(r[1:]) for r in alone[0] + alone[1]}) == 28
    for workers in (1, 2, 3):
        assert passes(num_workers=workers) == alone
    assert passes(num_workers=2, persistent_workers=True) == alone
    assert passes(num_workers=2, multiprocessing_context="spawn", n=1) == alone[:1]
    assert sorted(passes(num_workers=2, in_order=False)[0]) == sorted(alone[0])
    assert passes(seed=8) != alone


def test_the_batches_size_and_what_is_prefetched_do_not_matter():
    alone = passes(n=1, shuffle=False)
    for batch_size in (1, 3, 14):
        assert passes(n=1, shuffle=False, batch_size=batch_size) == alone
    assert passes(n=1, shuffle=False, num_workers=2, prefetch_factor=5) == alone
    mt.manual_seed(7)
    rows = [row.tolist() for row in DataLoader(Drawing(), batch_size=None, seed_samples=True)]
    assert [rows] == alone


def test_a_dataset_that_hands_out_several_items_at_once_is_asked_for_each():
    part = Subset(Drawing(), range(14))
    assert passes(data=part) == passes() == passes(data=part, num_workers=2)


def test_an_index_drawn_twice_in_a_pass_draws_anew():
    sampler = RandomSampler(range(1), replacement=True, num_samples=6)
    drawn = passes(n=1, sampler=sampler, shuffle=None)[0]
    assert {r[0] for r in drawn} == {0.0} and len({r[1] for r in drawn}) == 6


def test_loading_moves_no_generator_of_this_process():
    def after(**settings):
        passes(n=1, **settings)
        return mt.rand(1).item(), random.random()

    assert after() == after(num_workers=2) == after(batch_size=1)


def test_collating_draws_from_the_last_samples_stream():
    def mixed(samples):
        return mt.rand(1).repeat(1, 1)

    assert passes(collate_fn=mixed) == passes(collate_fn=mixed, num_workers=2)


def test_without_it_items_draw_from_the_generators_of_whoever_loads_them():
    mt.manual_seed(7)
    random.seed(7)
    first = next(iter(DataLoader(Drawing(), batch_size=1)))[0].tolist()
    mt.manual_seed(7)
    random.seed(7)
    mt.randint(0, 2**63 - 1, ())  # the workers' seed, which is drawn without workers too
    assert first == Drawing()[0].tolist()


def test_numpys_generator_is_seeded_where_it_is_loaded():
    np = pytest.importorskip("numpy")

    class Noise(Drawing):
        def __getitem__(self, i):
            return mt.tensor([np.random.random()], dtype=mt.float64)

    before = np.random.get_state()[1].tolist()
    alone = passes(data=Noise())
    assert np.random.get_state()[1].tolist() == before
    assert len({r[0] for p in alone for r in p}) == 28 and passes(data=Noise(), num_workers=2) == alone


def test_a_stream_has_no_places():
    class Stream(IterableDataset):
        def __iter__(self):
            return iter(range(3))

    with pytest.raises(ValueError, match="unspecified seed_samples option"):
        DataLoader(Stream(), seed_samples=True)


def test_random_transforms_do_the_same_with_any_number_of_workers():
    Image = pytest.importorskip("PIL.Image")
    from mortice.vision import transforms as T

    change = T.Compose(
        [T.RandomResizedCrop(8), T.RandomOrder([T.RandomHorizontalFlip(), T.ColorJitter(0.4)]), T.TrivialAugmentWide(),
         T.RandomChoice([T.RandomRotation(30), T.RandomAffine(9)]), T.ToTensor(), T.RandomErasing(p=0.5, value="random")]
    )  # fmt: skip

    class Pictures(Drawing):
        def __getitem__(self, i):
            return change(Image.linear_gradient("L").convert("RGB"))

    data = Pictures()
    alone = passes(data=data)
    assert passes(data=data, num_workers=1) == alone == passes(data=data, num_workers=4)
