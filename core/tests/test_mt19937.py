"""The engine mt19937: what a seed gives is what PyTorch 2.13 gives on the CPU. The numbers here were printed by it."""

from __future__ import annotations

import copy
import math
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import mortice as mt
from mortice.random import get_engine, set_engine

# fmt: off
DRAWN: dict[str, tuple[Callable[[], Any], Any]] = {
    "rand": (lambda: mt.rand(3), [0.8302518725395203, 0.12611091136932373, 0.9074696898460388]),
    "rand of float64": (lambda: mt.rand(2, dtype=mt.float64), [0.6420150066280941, 0.2597579151763153]),
    "randn, one by one": (lambda: mt.randn(3), [-0.4867807626724243, -0.6038215756416321, -0.5580962300300598]),
    "randn, a block and a rest": (lambda: mt.randn(17), [
        1.8423298597335815, 1.2220252752304077, -0.33644935488700867, -0.9650601744651794, -0.1296626776456833,
        -0.6017656326293945, 0.14499856531620026, -0.14982716739177704, 2.614577054977417, 0.7792337536811829,
        -0.05833946168422699, -2.0304951667785645, 1.4829323291778564, 0.49403807520866394, 0.24921877682209015,
        1.7470314502716064, 0.7447769641876221]),
    "randn of float64": (lambda: mt.randn(16, dtype=mt.float64)[:3], [0.8235713931461853, -0.7421276044281208, -0.5944275099013685]),
    "randint": (lambda: mt.randint(10, (5,)), [1, 4, 7, 5, 6]),
    "randint, wide": (lambda: mt.randint(2**40, (2,)), [425438759118, 1030067709629]),
    "randperm": (lambda: mt.randperm(7), [1, 0, 4, 2, 6, 5, 3]),
    "bernoulli_": (lambda: mt.empty(6).bernoulli_(0.3), [0.0, 1.0, 0.0, 0.0, 1.0, 0.0]),
    "bernoulli": (lambda: mt.bernoulli(mt.full((6,), 0.3)), [0.0, 1.0, 0.0, 0.0, 0.0, 1.0]),
    "exponential_": (lambda: mt.empty(2).exponential_(), [1.0272642374038696, 0.30077800154685974]),
    "random_": (lambda: mt.empty((), dtype=mt.int64).random_(), 4095051218741643470),
    "random_ of int32": (lambda: mt.empty(3, dtype=mt.int32).random_(), [953453411, 236996814, 1592283119]),
    "multinomial": (lambda: mt.multinomial(mt.tensor([1.0, 2, 3, 4]), 2), [3, 2]),
    "multinomial, replaced": (lambda: mt.multinomial(mt.tensor([1.0, 2, 3, 4]), 3, True), [3, 1, 2]),
    "poisson": (lambda: mt.poisson(mt.tensor([0.0, 0.5, 3.0, 9.9, 10.0, 30.0, 1000.0])), [0.0, 1.0, 2.0, 11.0, 9.0, 30.0, 991.0]),
    "binomial": (lambda: mt.binomial(mt.tensor([0.0, 5.0, 9.0, 40.0, 90.0, 1000.0]), mt.tensor([0.5, 0.0, 0.7, 0.1, 0.4, 0.8])), [
        0.0, 0.0, 6.0, 6.0, 33.0, 811.0]),
    "Laplace": (lambda: mt.distributions.Laplace(mt.zeros(3), 1.0).sample(), [1.0802923440933228, -1.3774458169937134, 1.6870718002319336]),
    "Geometric": (lambda: mt.distributions.Geometric(mt.tensor([0.1, 0.2, 0.9])).sample(), [1.0, 9.0, 0.0]),
    "VonMises": (lambda: mt.distributions.VonMises(mt.zeros(3), mt.tensor([0.5, 2.0, 9.0])).sample(), [
        1.5918446779251099, 0.30105358362197876, 0.21127696335315704]),
    "Wishart": (lambda: mt.distributions.Wishart(mt.tensor([4.0, 5.0]), mt.tensor([[2.0, 0.3], [0.3, 1.0]])).sample((2,)), [
        [[[4.150622844696045, -1.3602516651153564], [-1.3602516651153564, 1.3599238395690918]],
         [[11.580558776855469, 5.582357883453369], [5.582357883453369, 4.596672534942627]]],
        [[[0.8109277486801147, -0.22964705526828766], [-0.22964705526828766, 1.3280131816864014]],
         [[7.532439708709717, 4.389510154724121], [4.389510154724121, 9.166573524475098]]]]),
    "uniform_ of bfloat16": (lambda: mt.empty(3, dtype=mt.bfloat16).uniform_(-0.3, 0.7), [0.53125, -0.173828125, 0.609375]),
    "normal_ of float16": (lambda: mt.empty(18, dtype=mt.float16).normal_(1, 3)[-4:], [5.44921875, 2.482421875, 1.748046875, 6.2421875]),
    "rand of bfloat16 ends below 1": (lambda: mt.rand(2000, dtype=mt.bfloat16).max(), 0.99609375),
    "Linear of bfloat16": (lambda: mt.nn.Linear(2, 2, dtype=mt.bfloat16).weight.detach(), [
        [0.466796875, -0.52734375], [0.578125, 0.453125]]),
    "make_tensor, not contiguous": (lambda: mt.testing.make_tensor(3, dtype=mt.float32, noncontiguous=True), [
        -6.730003356933594, 5.758686542510986, -6.900385856628418]),
    "make_tensor of complex64": (lambda: mt.testing.make_tensor(2, dtype=mt.complex64), [
        (5.944533824920654-6.730003356933594j), (7.334454536437988+5.758686542510986j)]),
    "make_tensor of uint8": (lambda: mt.testing.make_tensor(4, dtype=mt.uint8), [1, 4, 7, 5]),
    "dropout": (lambda: mt.nn.functional.dropout(mt.ones(6), 0.5), [0.0, 2.0, 2.0, 2.0, 2.0, 0.0]),
    "Linear": (lambda: mt.nn.Linear(2, 2).weight.detach(), [
        [0.46704667806625366, -0.5287590026855469], [0.5762491226196289, 0.4524451494216919]]),
}
# fmt: on


@pytest.fixture(autouse=True)
def engine() -> Iterator[None]:
    set_engine("mt19937")
    yield
    set_engine("philox")


@pytest.mark.needs("cpu")
@pytest.mark.parametrize("name", DRAWN)
def test_draws_are_pytorchs(name: str) -> None:
    draw, expected = DRAWN[name]
    mt.manual_seed(5)
    drawn = draw()
    mt.testing.assert_close(drawn, mt.tensor(expected, dtype=drawn.dtype), rtol=2e-6, atol=1e-6)


@pytest.mark.needs("cpu")
def test_uniform_numbers_in_a_range_are_pytorchs_to_the_last_bit() -> None:
    mt.manual_seed(5)
    drawn = mt.empty(2000).uniform_(-(3**-0.5), 3**-0.5)
    assert [x.hex() for x in drawn[:3].tolist()] == ["0x1.867e840000000p-2", "-0x1.ba17680000000p-2", "0x1.e1cc300000000p-2"]
    assert math.fsum(drawn.tolist()).hex() == "-0x1.aab3269903800p+5"
    mt.manual_seed(5)
    assert math.fsum(mt.nn.Linear(3, 700).weight.flatten().tolist()).hex() == "-0x1.aa65f8e7cb800p+5"
    for dtype, total in (
        (mt.bfloat16, "-0x1.bd56cb4000000p+5"), (mt.float16, "-0x1.bd23df1000000p+5"), (mt.complex64, "-0x1.05c0f4e301c00p+6"),
    ):  # fmt: skip
        mt.manual_seed(5)
        drawn = mt.empty(2000, dtype=dtype).uniform_(-(3**-0.5), 3**-0.5)
        drawn = mt.view_as_real(drawn).flatten() if dtype.is_complex else drawn
        assert math.fsum(drawn.tolist()).hex() == total


@pytest.mark.needs("cpu")
def test_few_normal_numbers_are_moved_before_they_are_rounded_as_pytorchs() -> None:
    mt.manual_seed(5)
    drawn = [x.hex() for x in mt.empty(3).normal_(0.1, 0.7).tolist()]
    assert drawn == ["-0x1.ed0c840000000p-3", "-0x1.4a6b580000000p-2", "-0x1.29a4b40000000p-2"]
    mt.manual_seed(5)
    drawn = [x.hex() for x in mt.view_as_real(mt.empty(2, dtype=mt.complex64).normal_(0.1, 0.7)).flatten().tolist()]
    assert drawn == ["-0x1.20a7580000000p-3", "-0x1.974c880000000p-3", "-0x1.68f2600000000p-3", "0x1.b8bcca0000000p-2"]
    mt.manual_seed(1)
    drawn = mt.zeros(2, 3, 2, dtype=mt.complex64).transpose(0, 1).normal_()  # in the order in which it lies
    near = [0.46764659881591797 + 0.18874384462833405j, 0.04361240938305855 + 0.43933770060539246j]
    assert drawn[0, 0].tolist() == pytest.approx(near, rel=1e-6)
    for n in (3, 20):  # a mean and a deviation may be tensors
        mt.manual_seed(1)
        drawn = mt.zeros(n).normal_(mt.tensor(1.0), mt.tensor(2.0))
        mt.manual_seed(1)
        assert mt.equal(drawn, mt.zeros(n).normal_(1.0, 2.0))


@pytest.mark.needs("cpu")
def test_gamma_in_double_precision_has_pytorchs_constant() -> None:
    mt.manual_seed(5)
    drawn = mt._standard_gamma(mt.tensor([2.5, 0.3], dtype=mt.float64))
    assert drawn.tolist() == pytest.approx([1.5262276735741198, 0.13767885549193956], rel=1e-14)


def test_counts_of_what_is_no_rate_or_probability() -> None:
    found = mt.binomial(mt.tensor([-1.0, 3.0, 3.0, float("inf"), 4.0]), mt.tensor([0.5, 1.5, float("nan"), 0.5, 1.0]))
    assert found.isnan().tolist() == [True, True, True, True, False] and found[4] == 4
    with pytest.raises(RuntimeError, match="expected rate to be non-negative"):
        mt.poisson(mt.tensor([-1.0]))
    rate = mt.full((2, 3), 4.0, dtype=mt.float64, requires_grad=True)
    drawn = mt.poisson(rate)
    assert drawn.dtype == mt.float64 and drawn.shape == (2, 3) and drawn.requires_grad
    many = mt.binomial(mt.full((4000,), 60.0), mt.full((4000,), 0.75))
    assert abs(many.mean().item() - 45) < 0.3 and abs(many.var().item() - 11.25) < 1.2 and many.max() <= 60


@pytest.mark.parametrize(
    ("drop", "shape"),
    [
        (lambda x: mt.nn.functional.scaled_dot_product_attention(x, x, x, dropout_p=0.3), (2, 4, 4, 4)),
        (lambda x: mt.feature_dropout(x, 0.5, True), (4, 4, 1, 1)),
        (lambda x: mt.feature_alpha_dropout(x, 0.5, True), (4, 4, 1, 1)),
    ],
    ids=["attention to as many keys as a head is wide", "feature_dropout of pixels", "feature_alpha_dropout of pixels"],
)
def test_masks_that_have_the_inputs_shape_by_chance_are_drawn_row_by_row(drop: Callable[[Any], Any], shape: tuple[int, ...]) -> None:
    x = mt.linspace(0, 1, math.prod(shape)).reshape(shape)
    dropped = []
    for laid_out in (x, x.transpose(0, 1).contiguous().transpose(0, 1)):
        mt.manual_seed(5)
        dropped.append(drop(laid_out))
    mt.testing.assert_close(*dropped)


@pytest.mark.needs("cpu")
@pytest.mark.seed("RS05")
def test_the_number_that_pytorch_prints_for_seed_6895() -> None:
    mt.manual_seed(6895)
    assert str(mt.randn(1)) == "tensor([-1.0107])"


def test_the_second_of_a_pair_of_normals_comes_next() -> None:
    mt.manual_seed(0)
    together = mt.randn(2).tolist()
    mt.manual_seed(0)
    assert [mt.randn(1).item(), mt.randn(1).item()] == together


@pytest.mark.needs("cpu")
@pytest.mark.parametrize("seed", [lambda: mt.cuda.manual_seed(6), lambda: mt.cuda.manual_seed_all(6), mt.cuda.seed, mt.cuda.seed_all])
@pytest.mark.parametrize("there", [True, False])
def test_seeding_cuda_leaves_what_the_cpu_draws(seed: Callable[[], None], there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mt.cuda, "is_available", lambda: there)
    mt.manual_seed(5)
    expected = mt.randn(9).tolist()
    mt.manual_seed(5)
    began = mt.get_rng_state()
    seed()
    assert mt.randn(9).tolist() == expected and (there or mt.initial_seed() == 5)
    if there:  # beside it they draw from their own seed, which states keep
        seeded = mt.default_generator.take(3, mt.device("cpu"))
        assert seeded[1] == 0 and mt.default_generator.take(3)[1] == 3 and len(mt.get_rng_state()) > len(began)
    mt.random.set_engine("philox")
    mt.cuda.manual_seed(7)
    drawn = mt.rand(4).tolist()
    mt.manual_seed(7)
    assert mt.rand(4).tolist() == drawn


@pytest.mark.needs("cpu")
def test_numbers_are_scaled_in_the_memory_that_they_were_drawn_into(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = mt.get_default_device().backend
    into, own = backend.into, []

    def watched(target: Any, kernel: Any, /, *operands: Any, **attrs: Any) -> Any:
        own.append(target is operands[0])
        return into(target, kernel, *operands, **attrs)

    monkeypatch.setattr(backend, "into", watched)
    mt.manual_seed(5)
    drawn = mt.empty(20, dtype=mt.float64).normal_(1, 2)
    assert own.count(True) == 2
    mt.manual_seed(5)
    mt.testing.assert_close(drawn, mt.randn(20, dtype=mt.float64) * 2 + 1)


@pytest.mark.needs("cpu")
def test_only_32_bits_of_the_seed_count() -> None:
    a, b = (mt.rand(4, generator=mt.Generator().manual_seed(seed)) for seed in (7, 7 + (1 << 32)))
    assert a.equal(b)


@pytest.mark.needs("cpu")
def test_states_are_pytorchs_and_go_back() -> None:
    generator = mt.Generator().manual_seed(3)
    mt.randn(21, generator=generator)
    mt.randn(1, generator=generator)
    state = generator.get_state()
    assert state.shape == (5056,) and state[:8].tolist() == [3, 0, 0, 0, 0, 0, 0, 0]
    following = mt.randn(700, generator=generator)
    copies = [copy.deepcopy(generator.set_state(state)), pickle.loads(pickle.dumps(generator)), generator.clone_state(), generator]
    assert all(mt.randn(700, generator=g).equal(following) for g in copies)


@pytest.mark.needs("cpu")
def test_a_state_of_pytorch_brings_its_engine() -> None:
    mt.manual_seed(5)
    state = mt.get_rng_state()
    set_engine("philox")
    own = mt.get_rng_state()
    mt.set_rng_state(state)
    assert mt.rand(1).item() == pytest.approx(0.8302518725395203)
    mt.set_rng_state(own)
    assert mt.rand(1).item() != pytest.approx(0.12611091136932373)


@pytest.mark.parametrize("at, value", [(12, 0), (8, 9), (16, 255), (28, 1)])
def test_what_is_no_state_is_refused(at: int, value: int) -> None:
    broken = bytearray(mt.Generator().state_bytes())
    broken[at] = broken[at + 1] = value
    with pytest.raises(RuntimeError, match="expected the state of PyTorch's mt19937 CPU generator"):
        mt.set_rng_state(broken)


def test_lanes_of_vmap_draw_as_one_tensor_would() -> None:
    mt.manual_seed(1)
    apart = mt.vmap(lambda x: x + mt.rand(3), randomness="different")(mt.zeros(4))
    mt.manual_seed(1)
    assert apart.equal(mt.rand(4, 3))
    mt.manual_seed(1)
    alike = mt.vmap(lambda x: x + mt.rand(3), randomness="same")(mt.zeros(4))
    mt.manual_seed(1)
    assert alike.equal(mt.rand(3).expand(4, 3))


@pytest.mark.needs("cpu")
def test_lanes_that_lie_side_by_side_draw_in_the_order_of_memory_as_in_pytorch() -> None:
    x = mt.arange(12.0).reshape(3, 4)
    for draw in (mt.rand_like, lambda v: v.clone().uniform_()):
        mt.manual_seed(1)
        made = mt.vmap(draw, in_dims=1, randomness="different")(x)
        mt.manual_seed(1)
        assert made.equal(mt.rand(3, 4).T)
    mt.manual_seed(1)  # but a mask lane by lane
    made = mt.vmap(lambda v: mt.nn.functional.dropout(v + 1), in_dims=1, randomness="different")(x)
    mt.manual_seed(1)
    assert made.equal(mt.nn.functional.dropout(x.t().contiguous() + 1))


def test_the_engine_is_chosen_for_new_generators() -> None:
    before = mt.Generator()
    set_engine("philox")
    assert get_engine() == "philox" and len(mt.Generator().state_bytes()) == 24
    assert len(before.state_bytes()) == 5056
    with pytest.raises(ValueError, match=r"set_engine: expected one of 'philox', 'mt19937'; got 'xorwow'\."):
        set_engine("xorwow")


def test_the_default_generator_starts_its_seed_anew() -> None:
    mt.manual_seed(5)
    first = mt.rand(2)
    set_engine("mt19937")
    assert mt.rand(2).equal(first)


@pytest.mark.needs("cpu")
def test_the_environment_chooses_the_engine() -> None:
    code = "import mortice; mortice.manual_seed(6895); print(mortice.randn(1))"
    out = subprocess.run([sys.executable, "-c", code], env={"MORTICE_RANDOM": "mt19937", **_environment()}, capture_output=True, text=True)
    assert out.stdout.strip() == "tensor([-1.0107])", out.stderr


def _environment() -> dict[str, str]:
    import os

    return {k: v for k, v in os.environ.items() if k != "MORTICE_RANDOM"}


def test_workers_have_the_engine_too() -> None:
    loader = mt.utils.data.DataLoader(_Draws(), batch_size=2, num_workers=1, multiprocessing_context="spawn")
    mt.manual_seed(5)
    seed = mt.empty((), dtype=mt.int64).random_().item()
    generator = mt.Generator().manual_seed(seed)
    mt.manual_seed(5)
    (batch,) = loader
    assert batch.equal(mt.rand(2, generator=generator))


class _Draws(mt.utils.data.Dataset):
    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> Any:
        return mt.rand(())
