"""Printing: golden texts on a stand-in tensor of nested lists, and many cases against PyTorch's repr."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from mortice import printing
from mortice.dtype import by_name, get_default_dtype, set_default_dtype
from mortice.printing import get_printoptions, parameter_repr, printoptions, set_printoptions, tensor_repr

inf, nan = math.inf, math.nan


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Put options and default dtype back after each test."""
    dtype = get_default_dtype()
    yield
    set_printoptions(profile="default")
    set_default_dtype(dtype)


# A stand-in: nested lists that count what is read.


def _shape(data: Any) -> tuple[int, ...]:
    return (len(data), *(_shape(data[0]) if data else ())) if isinstance(data, list) else ()


def _cut(data: Any, key: tuple[slice, ...]) -> Any:
    return [_cut(item, key[1:]) for item in data[key[0]]] if key else data


def _size(data: Any) -> int:
    return sum(map(_size, data)) if isinstance(data, list) else 1


class Tensor:
    def __init__(self, data: Any, dtype: str = "float32", **state: Any) -> None:
        self.data = data
        self.shape = state.get("shape", _shape(data))
        self.dtype = by_name(dtype)
        self.device = state.get("device", Device("cpu"))
        self.requires_grad = state.get("requires_grad", False)
        self.grad_fn = state.get("grad_fn")
        self.detached = state.get("detached", False)
        self.reads = state.get("reads", [])

    def numel(self) -> int:
        return math.prod(self.shape)

    def detach(self) -> Tensor:
        return self._like(self.data, detached=True)

    def tolist(self) -> Any:
        assert self.detached
        self.reads.append(_size(self.data))
        return self.data

    def __getitem__(self, key: tuple[slice, ...]) -> Tensor:
        assert self.detached
        assert all(isinstance(part, slice) for part in key)
        return self._like(_cut(self.data, key), detached=True)

    def _like(self, data: Any, **state: Any) -> Tensor:
        return type(self)(data, self.dtype.name, reads=self.reads, **state)


class Parameter(Tensor):
    pass


class Weight(Tensor):
    pass


class Device(SimpleNamespace):
    def __init__(self, text: str) -> None:
        super().__init__(type=text.partition(":")[0], text=text)

    def __str__(self) -> str:
        return self.text


class AddBackward0:
    pass


NODE = SimpleNamespace(name=lambda: "MulBackward0")


# Golden texts.

GOLDEN = [
    # whole floats, zeros and what is not finite
    (Tensor([[1.0, 1.0], [1.0, 1.0]]), "tensor([[1., 1.],\n        [1., 1.]])"),
    (Tensor([1.0, -10.0, 2.0]), "tensor([  1., -10.,   2.])"),
    (Tensor([0.0, -0.0]), "tensor([0., -0.])"),
    (Tensor([0.0, nan, inf, -inf]), "tensor([0., nan, inf, -inf])"),
    (Tensor([1.0, nan]), "tensor([1., nan])"),
    (Tensor([100.0, nan, -inf]), "tensor([100.,  nan, -inf])"),
    # fractions
    (Tensor([0.1, 12.5]), "tensor([ 0.1000, 12.5000])"),
    (Tensor([0.5, nan, -inf, 0.0]), "tensor([0.5000,    nan,   -inf, 0.0000])"),
    (Tensor([-1.0107]), "tensor([-1.0107])"),
    # scientific notation: too small, too large, too far apart, and just not
    (Tensor([1e-5]), "tensor([1.0000e-05])"),
    (Tensor([1e-4], "float64"), "tensor([0.0001], dtype=mortice.float64)"),
    (Tensor([9.9999e-5]), "tensor([9.9999e-05])"),
    (Tensor([1e8]), "tensor([100000000.])"),
    (Tensor([2e8]), "tensor([2.0000e+08])"),
    (Tensor([1.0, 1000.0]), "tensor([   1., 1000.])"),
    (Tensor([1.0, 1001.0]), "tensor([1.0000e+00, 1.0010e+03])"),
    (Tensor([1e9, nan, 0.0]), "tensor([1.0000e+09,        nan, 0.0000e+00])"),
    (Tensor([5e-324, 1e308], "float64"), "tensor([4.9407e-324, 1.0000e+308], dtype=mortice.float64)"),
    # other kinds
    (Tensor([1, -20, 300], "int64"), "tensor([  1, -20, 300])"),
    (Tensor([1, 2], "uint16"), "tensor([1, 2], dtype=mortice.uint16)"),
    (Tensor([2**64 - 1], "uint64"), "tensor([18446744073709551615], dtype=mortice.uint64)"),
    (Tensor([True, False], "bool"), "tensor([ True, False])"),
    (Tensor([1.5], "bfloat16"), "tensor([1.5000], dtype=mortice.bfloat16)"),
    (Tensor([1 + 2j, complex(-1.5, -0.0)], "complex64"), "tensor([ 1.0000+2.j, -1.5000-0.j])"),
    (Tensor([complex(nan, nan), 1j], "complex64"), "tensor([nan+nanj, 0.+1.j])"),
    (Tensor([1j], "complex128"), "tensor([0.+1.j], dtype=mortice.complex128)"),
    # no dimension
    (Tensor(3.0), "tensor(3.)"),
    (Tensor(3.14159), "tensor(3.1416)"),
    (Tensor(7, "int32"), "tensor(7, dtype=mortice.int32)"),
    (Tensor(True, "bool"), "tensor(True)"),
    (Tensor(2 - 0.5j, "complex64"), "tensor(2.-0.5000j)"),
    # no element
    (Tensor([]), "tensor([])"),
    (Tensor([], shape=(0, 3)), "tensor([], size=(0, 3))"),
    (Tensor([], "int64"), "tensor([], dtype=mortice.int64)"),
    (Tensor([[], []], "bool"), "tensor([], size=(2, 0), dtype=mortice.bool)"),
    # place in the graph, device, class
    (Tensor([1.0], requires_grad=True), "tensor([1.], requires_grad=True)"),
    (Tensor([1.0], requires_grad=True, grad_fn=NODE), "tensor([1.], grad_fn=<MulBackward0>)"),
    (Tensor([1.0], grad_fn=AddBackward0()), "tensor([1.], grad_fn=<AddBackward0>)"),
    (Tensor([1.0], device=Device("strict:1")), "tensor([1.], device='strict:1')"),
    (
        Tensor([1.0], "float64", device=Device("cuda:0"), requires_grad=True),
        "tensor([1.], device='cuda:0', dtype=mortice.float64, requires_grad=True)",
    ),
    (Weight([[1.0], [2.0]]), "Weight([[1.],\n        [2.]])"),
    # depth
    (
        Tensor([[[1, 2], [3, 4]], [[5, 6], [7, 8]]], "int64"),
        "tensor([[[1, 2],\n         [3, 4]],\n\n        [[5, 6],\n         [7, 8]]])",
    ),
    (Tensor([[[[1]]], [[[2]]]], "int64"), "tensor([[[[1]]],\n\n\n        [[[2]]]])"),
    # long lines
    (
        Tensor(list(range(30)), "int64"),
        "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
        "        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29])",
    ),
    (
        Tensor([0.25] * 8, "float64"),
        "tensor([0.2500, 0.2500, 0.2500, 0.2500, 0.2500, 0.2500, 0.2500, 0.2500],\n"
        "       dtype=mortice.float64)",
    ),
    # summaries
    (
        Tensor([float(i) for i in range(1001)]),
        "tensor([   0.,    1.,    2.,  ...,  998.,  999., 1000.])",
    ),
    (
        Tensor([float(i) for i in range(1002)]),
        "tensor([0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 9.9900e+02, 1.0000e+03,\n        1.0010e+03])",
    ),
    (
        Tensor([[j for j in range(4)] for i in range(300)], "int64"),
        "tensor([[0, 1, 2, 3],\n        [0, 1, 2, 3],\n        [0, 1, 2, 3],\n        ...,\n"
        "        [0, 1, 2, 3],\n        [0, 1, 2, 3],\n        [0, 1, 2, 3]])",
    ),
    (
        Tensor([[0] * 501] * 2, "int64"),
        "tensor([[0, 0, 0,  ..., 0, 0, 0],\n        [0, 0, 0,  ..., 0, 0, 0]])",
    ),
]


@pytest.mark.parametrize(("t", "text"), GOLDEN, ids=map(str, range(len(GOLDEN))))
def test_text_is_the_golden_one(t: Tensor, text: str) -> None:
    assert tensor_repr(t) == text


def test_parameter_says_so_on_a_line_of_its_own() -> None:
    t = Parameter([1.0, 2.0], requires_grad=True)
    assert parameter_repr(t, tensor_repr(t)) == "Parameter containing:\ntensor([1., 2.], requires_grad=True)"


def test_parameter_subclass_shows_its_class() -> None:
    t = Weight([1.0], requires_grad=True)
    assert parameter_repr(t, tensor_repr(t)) == "Parameter containing:\nParameter(Weight([1.], requires_grad=True))"


def test_default_dtype_is_not_said() -> None:
    set_default_dtype(by_name("float64"))
    assert tensor_repr(Tensor([1.0], "float64")) == "tensor([1.])"
    assert tensor_repr(Tensor([1j], "complex128")) == "tensor([0.+1.j])"
    assert tensor_repr(Tensor([1.0], "float32")) == "tensor([1.], dtype=mortice.float32)"


# What is read.


def test_summary_reads_only_its_edges() -> None:
    t = Tensor([[[float(i + j + k) for k in range(20)] for j in range(2)] for i in range(40)])
    tensor_repr(t)
    assert sum(t.reads) == 6 * 2 * 6


def test_summary_of_a_vector_reads_two_slices() -> None:
    t = Tensor([1.0] * 5000)
    tensor_repr(t)
    assert t.reads == [3, 3]


def test_full_print_reads_once() -> None:
    t = Tensor([[1.0] * 10] * 10)
    tensor_repr(t)
    assert t.reads == [100]


def test_nothing_is_read_without_edges() -> None:
    t = Tensor([[1.0] * 100] * 100)
    with printoptions(edgeitems=0):
        assert tensor_repr(t) == "tensor([...], size=(100, 100))"
    assert t.reads == []


# Options.


def test_options_start_at_the_defaults() -> None:
    assert get_printoptions() == {
        "precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None,
    }  # fmt: skip


def test_precision_sets_the_digits() -> None:
    set_printoptions(precision=2)
    assert tensor_repr(Tensor([1.12345])) == "tensor([1.12])"


def test_threshold_and_edgeitems_shape_the_summary() -> None:
    set_printoptions(threshold=5, edgeitems=1)
    assert tensor_repr(Tensor(list(range(10)), "int64")) == "tensor([0,  ..., 9])"


@pytest.mark.parametrize(
    ("profile", "wanted"), [("default", (4, 1000, 3)), ("short", (2, 1000, 2)), ("full", (4, inf, 3))]
)
def test_profile_sets_its_options(profile: str, wanted: tuple[float, ...]) -> None:
    set_printoptions(precision=7, edgeitems=9, threshold=1, linewidth=10)
    set_printoptions(profile=profile)
    options = get_printoptions()
    assert (options["precision"], options["threshold"], options["edgeitems"]) == wanted
    assert options["linewidth"] == 80


def test_argument_beats_the_profile() -> None:
    set_printoptions(profile="short", precision=6)
    assert get_printoptions()["precision"] == 6
    assert get_printoptions()["edgeitems"] == 2


def test_sci_mode_lasts_until_the_next_call() -> None:
    set_printoptions(sci_mode=True)
    assert tensor_repr(Tensor([1.0])) == "tensor([1.0000e+00])"
    set_printoptions(precision=4)
    assert tensor_repr(Tensor([1.0])) == "tensor([1.])"


def test_sci_mode_false_keeps_the_point_fixed() -> None:
    with printoptions(sci_mode=False):
        assert tensor_repr(Tensor([1e-7, 1.5])) == "tensor([0.0000, 1.5000])"


def test_endless_line_is_not_broken() -> None:
    with printoptions(linewidth=inf, threshold=inf):
        assert "\n" not in tensor_repr(Tensor([1.0] * 2000, "float64"))


def test_printoptions_puts_options_back_after_an_error() -> None:
    with pytest.raises(KeyError), printoptions(precision=1, sci_mode=True):
        raise KeyError
    assert get_printoptions()["precision"] == 4
    assert get_printoptions()["sci_mode"] is None


def test_a_profile_that_is_none_changes_nothing_as_in_pytorch() -> None:
    with printoptions(linewidth=320, precision=5, profile="long"):
        assert get_printoptions() == {"precision": 5, "threshold": 1000, "edgeitems": 3, "linewidth": 320, "sci_mode": None}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"precision": -1},
            "set_printoptions: precision must be an integer of at least 0; got -1. "
            "Pass None to leave it as it is.",
        ),
        (
            {"edgeitems": 2.5},
            "set_printoptions: edgeitems must be an integer of at least 0; got 2.5. "
            "Pass None to leave it as it is.",
        ),
    ],
)
def test_misuse_is_refused_and_changes_nothing(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        set_printoptions(linewidth=10, **options)
    assert get_printoptions()["linewidth"] == 80


# PyTorch as the oracle.


class Adapted:
    """A torch tensor, with the dtype that mortice has for its own."""

    def __init__(self, t: Any) -> None:
        self.inner = t
        self.dtype = by_name(str(t.dtype).removeprefix("torch."))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def adapt(t: Any) -> Any:
    return type(type(t).__name__, (Adapted,), {})(t)


@pytest.fixture
def torch() -> Iterator[Any]:
    module = pytest.importorskip("torch", minversion="2.13", reason="the oracle, PyTorch 2.13, is not here")
    default = module.get_default_dtype()
    yield module
    module.set_printoptions(profile="default")
    module.set_default_dtype(default)


def check(torch: Any, t: Any, **options: Any) -> None:
    """Assert that both print a tensor alike under the same options."""
    for module in (torch, printing):
        module.set_printoptions(profile="default")
        module.set_printoptions(**options)
    wanted = repr(t).replace("torch.", "mortice.")
    given = parameter_repr(adapt(t), tensor_repr(adapt(t))) if isinstance(t, torch.nn.Parameter) else tensor_repr(adapt(t))
    assert given == wanted, options


ALL = [
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip
SHAPES = [
    (), (1,), (2,), (7,), (25,), (60,), (999,), (1000,), (1001,), (1, 1), (3, 4), (5, 30), (40, 3), (1, 1200),
    (1200, 1), (7, 150), (6, 200), (2, 3, 4), (1, 1, 1), (9, 2, 70), (3, 7, 51), (12, 12, 12), (2, 1, 2, 3),
    (7, 7, 7, 7), (2, 2, 2, 2, 2), (0,), (0, 3), (2, 0), (1, 0, 4),
]  # fmt: skip


def _numbers(rng: random.Random, count: int) -> list[float]:
    """Draw floats of one of the looks that printing tells apart, some with what is not finite mixed in."""
    scale = 10.0 ** rng.choice([-320, -45, -8, -5, -4, -3, -1, 0, 1, 2, 3, 4, 7, 8, 9, 30, 300])
    draw = rng.choice(
        [
            lambda: rng.gauss(0, 1) * scale,
            lambda: rng.uniform(0, 1) * scale,
            lambda: float(rng.randint(-9, 9)),
            lambda: float(rng.randint(-100_000, 100_000)),
            lambda: float(rng.randint(0, 1)) * scale,
            lambda: rng.choice([0.5, 1.0, 1000.0, 1000.5, 500.0, 0.0]),
            lambda: rng.choice([1e-4, 0.1, 1e8, 100000001.0]),
            lambda: rng.choice([0.0, -0.0]),
            lambda: rng.gauss(0, 1) * 10.0 ** rng.randint(-6, 9),
        ]
    )
    odd = rng.choice([0.0, 0.0, 0.1, 0.5, 1.0])
    return [rng.choice([nan, inf, -inf, 0.0, -0.0]) if rng.random() < odd else draw() for _ in range(count)]


def _values(rng: random.Random, dtype: str, count: int) -> list[Any]:
    kind = by_name(dtype).kind
    if kind == "b":
        share = rng.choice([0.0, 0.5, 1.0])
        return [rng.random() < share for _ in range(count)]
    if kind in "iu":
        bits = 8 * by_name(dtype).itemsize - (kind == "i")
        high = 2 ** rng.randint(0, bits) - 1
        return [rng.randint(-high - 1 if kind == "i" else 0, high) for _ in range(count)]
    if kind == "c":
        return [complex(re, im) for re, im in zip(_numbers(rng, count), _numbers(rng, count), strict=True)]
    return _numbers(rng, count)


def _random_options(rng: random.Random) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if rng.random() < 0.5:
        return options
    choices = {
        "precision": [0, 1, 2, 8, 17],
        "threshold": [-1, 0, 5, 50, 300, inf],
        "edgeitems": [0, 1, 2, 5],
        "linewidth": [0, 1, 10, 33, 60, 120, 200],
        "profile": ["default", "short", "full"],
        "sci_mode": [True, False],
    }
    for name in rng.sample(sorted(choices), rng.randint(1, 4)):
        options[name] = rng.choice(choices[name])
    return options


@pytest.mark.oracle
def test_golden_texts_are_what_torch_prints(torch: Any) -> None:
    for t, text in GOLDEN:
        if type(t) is Tensor and t.device.type == "cpu" and t.grad_fn is None:
            _check_golden(torch, t, text)


def _check_golden(torch: Any, t: Tensor, text: str) -> None:
    twin = torch.tensor(t.data, dtype=getattr(torch, t.dtype.name)).reshape(t.shape)
    assert repr(twin.requires_grad_(t.requires_grad)).replace("torch.", "mortice.") == text


@pytest.mark.oracle
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ALL)
def test_random_tensor_prints_as_in_torch(torch: Any, dtype: str, shape: tuple[int, ...]) -> None:
    rng = random.Random(f"{dtype} {shape}")
    count = math.prod(shape)
    for _ in range(3 if count < 100 else 1):
        values = _values(rng, dtype, count)
        t = torch.tensor(values, dtype=getattr(torch, dtype)).reshape(shape)
        if rng.random() < 0.3 and t.ndim > 1:
            t = t.transpose(0, -1)
        check(torch, t, **_random_options(rng))


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", [d for d in ALL if by_name(d).kind in "fc"])
@pytest.mark.parametrize("seed", range(10))
def test_graph_suffix_prints_as_in_torch(torch: Any, dtype: str, seed: int) -> None:
    rng = random.Random(f"{dtype} {seed}")
    shape = rng.choice([(), (1,), (2, 2), (0,), (0, 2)] + [(n,) for n in range(4, 12)])
    t = torch.tensor(_values(rng, dtype, math.prod(shape)), dtype=getattr(torch, dtype)).reshape(shape)
    options = _random_options(rng)
    check(torch, t.requires_grad_(), **options)
    check(torch, t * 2, **options)
    check(torch, (t * 2).detach(), **options)
    check(torch, torch.nn.Parameter(t.detach()), **options)
    check(torch, torch.nn.Parameter(t.detach(), requires_grad=False), **options)


@pytest.mark.oracle
@pytest.mark.parametrize("width", range(1, 100))
def test_suffix_breaks_the_line_where_torch_breaks_it(torch: Any, width: int) -> None:
    t = torch.arange(6, dtype=torch.float64, requires_grad=True)
    for shown in (t, t.sum(), t.reshape(2, 3) + 0.5, t[:0].reshape(0, 4).exp()):
        check(torch, shown, linewidth=width)


@pytest.mark.oracle
@pytest.mark.parametrize("default", ["float16", "bfloat16", "float32", "float64"])
def test_default_dtype_is_left_out_as_in_torch(torch: Any, default: str) -> None:
    torch.set_default_dtype(getattr(torch, default))
    set_default_dtype(by_name(default))
    for dtype in ALL:
        check(torch, torch.ones(2, dtype=getattr(torch, dtype)))
        check(torch, torch.ones(0, 2, dtype=getattr(torch, dtype)))


@pytest.mark.oracle
def test_unusual_nodes_and_classes_print_as_in_torch(torch: Any) -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    class Weight(torch.Tensor):
        pass

    class Bias(torch.nn.Parameter):
        pass

    x = torch.ones(3, requires_grad=True)
    check(torch, Double.apply(x))
    y = x.clone()
    y[0] = 5.0
    check(torch, y)
    check(torch, torch.ones(2, 30).as_subclass(Weight))
    check(torch, Bias(torch.ones(2, 2)))


@pytest.mark.oracle
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"precision": 2},
        {"profile": "short"},
        {"profile": "full", "edgeitems": 1},
        {"threshold": 10, "sci_mode": True},
        {"linewidth": 100, "profile": "short", "precision": 9},
    ],
)
def test_options_read_back_as_in_torch(torch: Any, options: dict[str, Any]) -> None:
    for module in (torch, printing):
        module.set_printoptions(precision=7, threshold=1, edgeitems=9, linewidth=10, sci_mode=False)
        module.set_printoptions(**options)
    # torch does not export its reader.
    assert get_printoptions() == torch._tensor_str.get_printoptions()
