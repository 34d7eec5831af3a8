"""Rules of data: orders, crops, raw pixels, passes of one batch, hooks that are passed by."""

import copy
import importlib.util

import pytest

import mortice as mt
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset


@pytest.fixture(autouse=True)
def seed():
    mt.manual_seed(0)


def watch(*ids):
    return doctor.watch(strict=True, quiet=True, only=ids)


def levels(session):
    return [(f.rule, f.level) for f in session.findings]


class Augmented(Dataset):
    """Samples that differ at each reading, with labels that do not."""

    def __init__(self, labels):
        self.labels = labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return mt.randn(3), self.labels[index]


def train(loader, epochs=3, optimizers=1):
    model = nn.Linear(3, 5)
    for epoch in range(epochs):
        if epoch == 0 or optimizers > 1:
            optimizer = mt.optim.SGD(model.parameters(), lr=0.01)
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        (mt.arange(80) // 16, [("D08", "warning")]),
        (mt.arange(80) % 5, [("D08", "info")]),
        ((mt.arange(80) == 3).long(), [("D08", "info")]),  # one common class, which most batches hold alone
        (mt.zeros(80, dtype=mt.int64), []),  # no way to tell orders apart
    ],
)
def test_an_order_is_known_by_its_labels(labels, found):
    with watch("D08") as session:
        train(DataLoader(Augmented(labels), batch_size=8))
    assert levels(session) == found
    with watch("D08") as session:
        train(DataLoader(Augmented(labels), batch_size=8, shuffle=True))
    assert not session.findings


def test_an_order_that_is_no_mistake():
    class Stream(IterableDataset):
        def __iter__(self):
            return ((mt.ones(3) * i, i // 8) for i in range(40))

    data = TensorDataset(mt.randn(40, 3), mt.arange(40) % 5)
    with watch("D08") as session:
        train(DataLoader(Stream(), batch_size=8))
        train(DataLoader(data, batch_size=40))
        train(DataLoader(data, sampler=list(range(40)), batch_size=8))
        train(DataLoader(data, batch_sampler=[[0, 1], [2, 3], [4, 5]]))
        train(DataLoader(data, batch_size=8), epochs=1)
        train(DataLoader(data, batch_size=8), optimizers=3)  # a search over learning rates
        for _ in range(3):
            for _ in DataLoader(data, batch_size=8):
                pass
    assert not session.findings


@pytest.mark.skipif(importlib.util.find_spec("mortice.vision") is None, reason="mortice.vision is not installed here")
def test_crops_of_pictures_of_pillow():
    Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed here")
    from mortice.vision import transforms

    def run(*steps):
        compose = transforms.Compose(steps)
        for _ in range(6):
            compose(Image.new("RGB", (90, 60)))

    with watch("D31") as session:
        run(transforms.Resize(30), transforms.CenterCrop(30))
        run(transforms.CenterCrop(30), transforms.ToTensor())
        run(transforms.CenterCrop(50), transforms.Resize(30))
        run(transforms.CenterCrop(45), transforms.Resize(45))
        assert not session.findings
        run(transforms.CenterCrop(30), transforms.Resize((30, 30)))
    (found,) = session.findings
    assert found.values["share"] == pytest.approx(1 / 6) and found.site.function == "run"


class Pictures(Dataset):
    def __init__(self, data, transform):
        self.data, self.transform = data, transform

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        return self.transform(self.data[index])


def test_raw_pixels_of_an_array_with_its_channels_last():
    np = pytest.importorskip("numpy", reason="NumPy is not installed here")
    data = np.random.default_rng(0).integers(0, 256, (20, 6, 6, 3), dtype=np.uint8)
    pictures = Pictures(data, lambda image: mt.tensor(image).permute(2, 0, 1).float())
    with watch("D33") as session:
        model = nn.Conv2d(3, 2, 3)
        for x in DataLoader(pictures, batch_size=4):  # as its transform makes them
            model(x)
        assert not session.findings
        nn.Conv2d(3, 2, 3)(mt.tensor(pictures.data).permute(0, 3, 1, 2).float()[5:9])
    (found,) = session.findings
    assert found.values["dataset"] == "pictures" and "Conv2d" in found.message
    other = mt.randint(0, 256, (4, 3, 6, 6)).float()
    with watch("D33") as session:
        nn.Conv2d(3, 2, 3)(other)
    assert not session.findings and len(pictures) == 20


@pytest.mark.parametrize(
    ("options", "length", "found"),
    [
        ({}, 40, [("D34", "warning")]),
        ({"shuffle": True}, 40, [("D34", "info")]),
        ({}, 8, []),  # the batch is the data
    ],
)
def test_passes_of_one_batch(options, length, found):
    loader = DataLoader(TensorDataset(mt.randn(length, 3)), batch_size=8, **options)
    w = mt.zeros(3, requires_grad=True)
    with watch("D34") as session:
        for _ in range(10):
            (x,) = next(iter(loader))
            (x @ w).sum().backward()
        assert not session.findings
        for _ in range(5):
            (x,) = next(iter(loader))
            (x @ w).sum().backward()
    assert levels(session) == found


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, x):
        return self.fc(x)


def test_hooks_that_are_passed_by():
    own, inherited = Net.forward, nn.Linear.forward
    early, late, other = Net(), Net(), Net()
    early.register_forward_hook(lambda *_: None)
    with doctor.watch(early, strict=True, quiet=True, only=["D38"]) as session:
        x = mt.randn(4, 3)
        other.forward(x)
        early(x)
        assert not session.findings
        early.forward(x)
        late.fc.register_forward_pre_hook(lambda *_: None)
        copy.deepcopy(late)(x).sum().backward()
        late.fc.forward(x)
    assert [f.message for f in session.findings] == [
        "Net.forward(x) skips the 1 registered hook of Net.",
        "Linear.forward(x) skips the 1 registered hook of Linear.",
    ]
    assert Net.forward is own and nn.Linear.forward is inherited


def test_a_rule_may_leave_an_event():
    with watch("D33") as session:
        (rule,) = session.rules
        model = nn.Linear(3, 2)
        for _ in range(rule.CALLS + 2):
            session.phase(1)
            model(mt.ones(1, 3))
        assert rule.calls == rule.CALLS + 1 and not session.of_kind("forward_pre", model)
