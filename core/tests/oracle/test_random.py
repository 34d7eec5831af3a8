# ruff: noqa: E402 - torch is optional
"""The engine mt19937 beside PyTorch: from one seed the same draws, weights, orders, dropout, and the same words afterwards."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if find_spec("torch") is None or find_spec("numpy") is None:
    pytest.skip("the comparison with PyTorch needs torch and numpy", allow_module_level=True)

import numpy as np
import torch

import mortice
from mortice.random import set_engine

pytestmark = pytest.mark.oracle
FLOATS = ("float32", "float64", "float16", "bfloat16")
LENGTHS = (0, 1, 2, 5, 15, 16, 17, 35, 64, 1000)
ROUNDED = {"float16": 2e-3, "bfloat16": 2e-2}  # a number times the deviation is rounded once more than there

Draw = Callable[[Any], Any]


@pytest.fixture(autouse=True)
def engine() -> Iterator[None]:
    set_engine("mt19937")
    yield
    set_engine("philox")


def numbers(value: Any) -> list[Any]:
    """Return the arrays of nested results, in order."""
    if isinstance(value, (list, tuple)):
        return [array for item in value for array in numbers(item)]
    if hasattr(value, "detach"):
        value = value.detach()
        return [np.asarray((value.float() if value.dtype in (torch.bfloat16, mortice.bfloat16) else value).numpy())]
    return [np.asarray(value)]


def same(draw: Draw, tolerance: float = 2e-6) -> None:
    """Check that both draw the same from a seed, and go on with the same numbers."""
    results = []
    for library in (mortice, torch):
        library.manual_seed(5)
        results.append(numbers([draw(library), library.rand(3)]))
    assert len(results[0]) == len(results[1]) > 1
    for mine, theirs in zip(*results, strict=True):
        assert mine.dtype == theirs.dtype and mine.shape == theirs.shape
        np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance)


DRAWS: dict[str, Callable[[Any, int, Any], Any]] = {
    "rand": lambda T, n, d: T.rand(n, dtype=d),
    "randn": lambda T, n, d: T.randn(n, dtype=d),
    "exponential_": lambda T, n, d: T.empty(n, dtype=d).exponential_(2.0),
    "normal_": lambda T, n, d: T.empty(n, dtype=d).normal_(1.0, 3.0),
    "uniform_": lambda T, n, d: T.empty(n, dtype=d).uniform_(-1.0, 3.0),
    "bernoulli_": lambda T, n, d: T.empty(n, dtype=d).bernoulli_(0.3),
    "bernoulli": lambda T, n, d: T.bernoulli(T.linspace(0, 1, n, dtype=T.float64).to(d)),
    "dropout": lambda T, n, d: T.nn.functional.dropout(T.ones(n, dtype=d), 0.3),
    "random_": lambda T, n, d: T.empty(n, dtype=d).random_(),
    "cauchy_": lambda T, n, d: T.empty(n, dtype=d).cauchy_(),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", DRAWS)
def test_draws_of_floats(name: str, dtype: str) -> None:
    for n in LENGTHS:
        same(lambda T, n=n: DRAWS[name](T, n, getattr(T, dtype)), ROUNDED.get(dtype, 2e-6))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_draws_of_complex_numbers(dtype: str) -> None:
    for n in LENGTHS:
        same(lambda T, n=n: [T.rand(n, dtype=getattr(T, dtype)), T.randn(n, dtype=getattr(T, dtype))])


@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "int8", "uint8", "bool"])
def test_draws_of_integers(dtype: str) -> None:
    same(lambda T: [T.empty(50, dtype=getattr(T, dtype)).random_(), T.empty(50, dtype=getattr(T, dtype)).bernoulli_(0.3)])


def test_integers_from_a_range_and_permutations() -> None:
    ranges = ((0, 10), (-5, 2**28 - 6), (-5, 2**28), (-(2**62), 2**62), (3, 4))
    same(lambda T: [T.randint(low, high, (9,)) for low, high in ranges])
    same(lambda T: T.empty(9, dtype=T.int64).random_(3, None))
    same(lambda T: [T.randperm(n) for n in (0, 1, 2, 7, 3000)])


IN_ORDER: dict[str, Draw] = {
    "rand_like": lambda T: T.rand_like(T.ones(5, 4, 7).permute(2, 0, 1)),
    "randn_like": lambda T: T.randn_like(T.ones(5, 4, 7).permute(2, 0, 1)),
    "randn_like, few": lambda T: [T.randn(1), T.randn_like(T.ones(2, 3).t()), T.randn(1)],
    "randn_like, after one": lambda T: [T.randn(1), T.randn_like(T.ones(5, 8).t()), T.randn(1), T.randn(1)],
    "randn_like, odd": lambda T: [T.randn_like(T.ones(5, 7).t()), T.randn(1), T.randn(1)],
    "randn_like, contiguous": lambda T: T.randn_like(T.ones(5, 8).t(), memory_format=T.contiguous_format),
    "randn_like, with gaps": lambda T: [T.randn_like(T.ones(5, 24)[:, :12]), T.randn_like(T.ones(4, 6, 8)[:, ::2].mT), T.randn(1)],
    "normal_": lambda T: T.empty(5, 8).t().normal_(1, 2),
    "normal_, with gaps": lambda T: [T.empty(5, 24)[:, :12].normal_(1, 0.5), T.empty(4, 5, 24)[:, 1:3].normal_(), T.randn(1)],
    "geometric_": lambda T: T.empty(5, 8).t().geometric_(0.2),
    "uniform_": lambda T: T.empty(2, 3, 4, 5).to(memory_format=T.channels_last).uniform_(-1, 1),
    "bernoulli_": lambda T: T.empty(5, 8).t().bernoulli_(0.3),
    "bernoulli_, a tensor": lambda T: T.empty(5, 8).t().bernoulli_(T.linspace(0, 1, 40).reshape(8, 5)),
    "exponential_": lambda T: T.empty(5, 8).t().exponential_(),
    "random_": lambda T: T.empty(5, 8, dtype=T.int64).t().random_(0, 50),
    "log_normal_": lambda T: T.empty(20).log_normal_(0.5, 0.7),
    "dropout": lambda T: T.nn.functional.dropout(T.ones(6, 5, 4).transpose(0, 1), 0.4),
    "dropout, channels_last": lambda T: T.nn.functional.dropout(T.ones(2, 3, 4, 5).to(memory_format=T.channels_last), 0.4),
    "dropout2d": lambda T: T.nn.functional.dropout2d(T.ones(2, 3, 4, 5).to(memory_format=T.channels_last), 0.4),
    "dropout2d of a plane": lambda T: T.nn.functional.dropout2d(T.ones(5, 6, 1).transpose(0, 1)[..., None], 0.4),
    "dropout of what was expanded": lambda T: T.nn.functional.dropout(T.ones(6, 1).expand(6, 5), 0.4),
    "bernoulli": lambda T: T.bernoulli(T.full((5, 8), 0.3).t()),
    "attention as long as a head is wide": lambda T: T.nn.functional.scaled_dot_product_attention(
        *(T.linspace(0, 1, 96).reshape(2, 4, 3, 4).transpose(1, 2) for _ in range(3)), dropout_p=0.3
    ),
    "attention": lambda T: T.nn.functional.scaled_dot_product_attention(
        *(T.linspace(0, 1, 120).reshape(2, 5, 3, 4).transpose(1, 2) for _ in range(3)), dropout_p=0.3
    ),
    "feature_dropout": lambda T: T.feature_dropout(T.ones(4, 5, 1, 1).transpose(0, 1), 0.5, True),
    "feature_alpha_dropout": lambda T: T.feature_alpha_dropout(T.ones(4, 5, 1, 1).transpose(0, 1), 0.5, True),
    "LSTM": lambda T: T.nn.LSTM(3, 4, 2, dropout=0.5, batch_first=True)(T.ones(2, 5, 3))[0],
    "TransformerEncoderLayer": lambda T: T.nn.TransformerEncoderLayer(8, 2, 16, 0.3, batch_first=True)(T.ones(2, 5, 8)),
    "MultiheadAttention": lambda T: T.nn.MultiheadAttention(8, 2, dropout=0.3)(*[T.linspace(0, 1, 80).reshape(5, 2, 8)] * 3),
}  # fmt: skip


@pytest.mark.parametrize("name", IN_ORDER)
def test_numbers_come_in_the_order_of_memory(name: str) -> None:
    same(IN_ORDER[name], 1e-5)


def test_numbers_kept_back() -> None:
    same(lambda T: [T.randn(1), T.randn(2), T.randn(20), T.randn(1), T.randn(3, dtype=T.float64)])


OTHERS: dict[str, Draw] = {
    "multinomial": lambda T: T.multinomial(T.tensor([[0.1, 0.2, 0.3, 0.4], [4, 3, 2, 1.0]]), 3),
    "multinomial, replaced": lambda T: T.multinomial(T.tensor([[0.1, 0.2, 0.3, 0.4], [4, 3, 2, 1.0]]), 9, True),
    "multinomial, one": lambda T: T.multinomial(T.tensor([[0.1, 0.2, 0.3, 0.4], [4, 3, 2, 1.0]]), 1, True),
    "normal of tensors": lambda T: T.normal(T.arange(20.0), T.ones(20) * 2),
    "geometric_": lambda T: T.empty(20).geometric_(0.2),
    "gumbel_softmax": lambda T: T.nn.functional.gumbel_softmax(T.ones(3, 20)),
    "dropout2d": lambda T: T.nn.functional.dropout2d(T.ones(3, 20, 2, 2), 0.4),
    "alpha_dropout": lambda T: T.nn.functional.alpha_dropout(T.ones(3, 20), 0.4),
    "fractional_max_pool2d": lambda T: T.nn.functional.fractional_max_pool2d(
        T.arange(128.0).reshape(1, 2, 8, 8), 2, output_size=4
    ),
    "after CUDA was seeded": lambda T: [T.cuda.manual_seed(3), T.cuda.manual_seed_all(4), T.cuda.seed_all(), T.randn(20)][3],
    "vmap": lambda T: T.vmap(lambda x: x + T.rand(3), randomness="different")(T.zeros(4)),
    "vmap of permutations": lambda T: T.vmap(lambda x: T.randperm(5) + x, randomness="different")(T.zeros(4)),
    "random_split": lambda T: [list(part.indices) for part in T.utils.data.random_split(range(20), [0.7, 0.3])],
    "WeightedRandomSampler": lambda T: list(T.utils.data.WeightedRandomSampler([0.1, 0.5, 0.2], 10)),
    "RandomSampler": lambda T: list(T.utils.data.RandomSampler(range(40), replacement=True, num_samples=70)),
}
for _init in (
    "xavier_normal_", "xavier_uniform_", "kaiming_normal_", "kaiming_uniform_", "trunc_normal_", "orthogonal_", "normal_",
):  # fmt: skip
    OTHERS[_init] = lambda T, _init=_init: getattr(T.nn.init, _init)(T.empty(7, 9))
for _made in (
    "Linear(5, 7)", "Conv2d(3, 8, 3)", "ConvTranspose2d(3, 8, 3)", "Conv1d(4, 4, 3, groups=2)", "LSTM(5, 7, 2)",
    "GRU(4, 4, bidirectional=True)", "Embedding(10, 4, padding_idx=2)", "EmbeddingBag(10, 3)", "MultiheadAttention(8, 2)",
    "Transformer(8, 2, 1, 1, 16)", "Bilinear(3, 4, 5)", "RNNCell(3, 4)",
):  # fmt: skip
    OTHERS[_made] = lambda T, _made=_made: list(eval(f"T.nn.{_made}", {"T": T}).state_dict().values())
for _made in (
    "Normal(0.0, 1.0)", "Categorical(T.ones(2, 5))", "Bernoulli(T.ones(4) * 0.3)", "Uniform(0.0, 2.0)", "Gumbel(0.0, 1.0)",
    "Exponential(T.ones(3))", "Cauchy(0.0, 1.0)", "MultivariateNormal(T.zeros(3), T.eye(3))", "LogNormal(0.0, 1.0)",
    "Multinomial(10, T.ones(4))", "Weibull(T.ones(2), 2.0)", "HalfNormal(1.0)", "RelaxedBernoulli(1.0, T.ones(2) * 0.4)",
    "Gamma(T.linspace(0.2, 9, 4), 2.0)", "Beta(T.full((3,), 0.2), 0.2)", "Dirichlet(T.linspace(0.5, 3, 4))", "Chi2(T.ones(3))",
    "Beta(T.tensor([1e-3, 1e-9]), 1e-3)", "StudentT(T.full((3,), 4.0))",
    "FisherSnedecor(T.full((3,), 4.0), 3.0)", "InverseGamma(T.full((3,), 4.0), 3.0)",
):  # fmt: skip
    OTHERS[_made] = lambda T, _made=_made: eval(f"T.distributions.{_made}", {"T": T}).sample((7,))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OTHERS)
def test_what_draws(name: str) -> None:
    same(OTHERS[name], 1e-5)


@pytest.mark.parametrize(
    "given", [{}, {"shuffle": True}, {"shuffle": True, "num_workers": 2}, {"num_workers": 1, "persistent_workers": True}], ids=str
)
def test_orders_of_loaders(given: dict[str, Any]) -> None:
    def order(T: Any) -> list[Any]:
        loader = T.utils.data.DataLoader(T.utils.data.TensorDataset(T.arange(23)), batch_size=4, **given)
        return [batch for _ in range(2) for (batch,) in loader]

    same(order)


@pytest.mark.parametrize("count", [None, 5, 24, 30])
def test_orders_by_a_generator_that_goes_on(count: int | None) -> None:
    def order(T: Any) -> list[Any]:
        generator = T.Generator().manual_seed(5)
        sampler = T.utils.data.RandomSampler(range(12), num_samples=count, generator=generator)
        return [T.tensor(list(sampler)) for _ in range(2)] + [T.rand(2, generator=generator)]

    same(order)


class _ByNumPy:
    def __len__(self) -> int:
        return 4

    def __getitem__(self, i: int) -> tuple[float, float]:
        return random.random(), np.random.rand()


def test_what_workers_draw_by_python_and_numpy() -> None:
    same(lambda T: [T.stack(batch) for batch in T.utils.data.DataLoader(_ByNumPy(), 2, num_workers=2)])


def test_states_go_both_ways() -> None:
    theirs, mine = torch.Generator().manual_seed(9), mortice.Generator()
    for count in (700, 1, 623, 17):
        torch.rand(count, generator=theirs)
        torch.randn(1, generator=theirs)
        mine.set_state(mortice.from_numpy(theirs.get_state().numpy()))
        assert bytes(mine.get_state().tolist()) == bytes(theirs.get_state().tolist())
        drawn = mortice.randn(3, generator=mine)
        theirs.set_state(torch.tensor(mine.get_state().tolist(), dtype=torch.uint8))
        np.testing.assert_allclose(mortice.rand(5, generator=mine).numpy(), torch.rand(5, generator=theirs).numpy(), rtol=0)
        assert drawn.shape == (3,)


SCRIPT = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(300, 1, 8, 8)
y = (x[:, 0, 2:6, 2:6].sum((1, 2)) > 0).long() + (x[:, 0, 0].sum(1) > 0)
train, held = random_split(TensorDataset(x, y), [250, 50])
net = nn.Sequential(
    nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout2d(0.1), nn.Flatten(), nn.Dropout(0.3), nn.Linear(288, 3),
)
optimizer = torch.optim.Adam(net.parameters(), 3e-3)
for epoch in range(3):
    total = 0.0
    for images, labels in DataLoader(train, batch_size=32, shuffle=True):
        loss = nn.functional.cross_entropy(net(images + 0.05 * torch.randn_like(images)), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(epoch, f"{total:.4f}")
"""


def test_a_script_prints_what_it_prints_with_pytorch(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    printed = []
    for command in ([], ["-m", "mortice", "run"]):
        done = subprocess.run([sys.executable, *command, str(script)], capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout)
    assert printed[0] == printed[1]
