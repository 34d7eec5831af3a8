"""Arithmetic, functions of one operand, comparisons: values, dtypes, edge cases, in-place forms, error texts."""

import math
import operator

import pytest

import mortice as mt
from mortice.errors import DTypeError

INF, NAN = math.inf, math.nan


def near(t, expected, tol=1e-6):
    values = t.flatten().tolist()
    assert len(values) == len(expected)
    for have, want in zip(values, expected):
        assert (math.isnan(have) and math.isnan(want)) or have == want or abs(have - want) <= tol * max(1, abs(want)), (
            values,
            expected,
        )


def grads(fn, *inputs):
    """Return first gradients of fn's sum, and second ones of theirs."""
    inputs = [mt.tensor(x, dtype=mt.float64, requires_grad=True) for x in inputs]
    first = mt.autograd.grad(fn(*inputs).sum(), inputs, create_graph=True)
    total = sum(g.sum() for g in first)
    second = mt.autograd.grad(total, inputs, allow_unused=True) if total.requires_grad else [None] * len(inputs)
    return [g.tolist() for g in first], [None if g is None else g.tolist() for g in second]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("count", [1, 9, 70])
def test_a_rest_of_zero_has_the_sign_of_the_divisor(dtype, count):
    kind = getattr(mt, dtype)
    x, one = mt.full((count,), -2.0, dtype=kind), mt.ones(count, dtype=kind)
    for rest in (x % one, mt.remainder(x, 1.0), x.clone().remainder_(one), -4.0 % one):
        assert [str(v) for v in rest.tolist()] == ["0.0"] * count
    for rest in (-x % -one, mt.remainder(-x, -1.0), 4.0 % -one):
        assert [str(v) for v in rest.tolist()] == ["-0.0"] * count
    assert [str(v) for v in mt.fmod(x, one).tolist()] == ["-0.0"] * count


# ---- dtypes ----


def test_arithmetic_takes_numbers_alone():
    results = [
        (mt.mul(3, 2), 6, mt.int64), (mt.add(1, 2.5), 3.5, mt.float32), (mt.add(1, 2, alpha=3), 7, mt.int64),
        (mt.sub(1, 3), -2, mt.int64), (mt.div(7, 2), 3.5, mt.float32), (mt.true_divide(3, 2), 1.5, mt.float32),
        (mt.div(7, 2, rounding_mode="floor"), 3, mt.int64), (mt.div(-7, 2, rounding_mode="trunc"), -3, mt.int64),
        (mt.floor_divide(-7, 2), -4, mt.int64), (mt.multiply(True, True), True, mt.bool), (mt.add(1j, 2), 2 + 1j, mt.complex64),
        (mt.mul(3, 2, out=mt.empty(())), 6.0, mt.float32),
    ]  # fmt: skip
    for result, value, dtype in results:
        assert result.shape == () and result.item() == value and result.dtype is dtype
    for fn in (mt.pow, mt.maximum, mt.remainder, mt.eq):
        with pytest.raises(TypeError, match="expected .*Tensor"):
            fn(3, 2)
    with pytest.raises(TypeError, match="mul: argument 'other' must be Tensor, not str"):
        mt.mul(3, "2")


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        (mt.uint8, mt.int8, mt.int16), (mt.int64, mt.float16, mt.float16), (mt.bool, mt.uint8, mt.uint8),
        (mt.float16, mt.bfloat16, mt.float32), (mt.float64, mt.complex64, mt.complex128),
    ],
)  # fmt: skip
def test_dtypes_promote(x, y, expected):
    a, b = mt.ones(2, dtype=x), mt.ones(2, dtype=y)
    assert (a + b).dtype is expected
    assert (a * b).dtype is expected


def test_numbers_are_weak_and_raise_the_kind_alone():
    assert (mt.ones(2, dtype=mt.int8) + 1).dtype is mt.int8
    assert (mt.ones(2, dtype=mt.int8) + 1.5).dtype is mt.float32
    assert (mt.ones(2, dtype=mt.float16) * 2.5).dtype is mt.float16
    assert (mt.ones(2, dtype=mt.bool) + 1).dtype is mt.int64
    assert (mt.ones(2) + 1j).dtype is mt.complex64
    assert (mt.tensor([1], dtype=mt.uint8) - 2).tolist() == [255]
    assert (mt.tensor([250], dtype=mt.uint8) + -1).tolist() == [249]


def test_division_gives_floats_and_rounding_keeps_integers():
    x = mt.tensor([7, -7])
    assert (x / 2).dtype is mt.float32
    assert mt.div(x, 2, rounding_mode="trunc").tolist() == [3, -3]
    assert mt.div(x, 2, rounding_mode="floor").tolist() == [3, -4]
    assert (x // 2).tolist() == [3, -4]
    assert (x % 3).tolist() == [1, 2]
    assert mt.fmod(x, 3).tolist() == [1, -1]


# ---- values ----


def test_alpha_scales_the_second_operand():
    x, y = mt.tensor([1.0, 2.0]), mt.tensor([10.0, 20.0])
    assert mt.add(x, y, alpha=2).tolist() == [21.0, 42.0]
    assert mt.sub(x, y, alpha=0.5).tolist() == [-4.0, -8.0]
    assert mt.rsub(x, y, alpha=2).tolist() == [8.0, 16.0]
    with pytest.warns(UserWarning, match="This overload of add is deprecated"):
        assert mt.add(x, 2, y).tolist() == [21.0, 42.0]
    with pytest.warns(UserWarning, match="This overload of addcmul is deprecated"):
        assert mt.addcmul(x, 2, x, y).tolist() == [21.0, 82.0]


@pytest.mark.parametrize(("alpha", "expected"), [(0, [True, False]), (3, [True, True]), (True, [True, True])])
def test_alpha_leaves_masks_masks(alpha, expected):
    x, y = mt.tensor([True, False]), mt.tensor([False, True])
    for found in (mt.add(x, y, alpha=alpha), x.clone().add_(y, alpha=alpha)):
        assert found.dtype is mt.bool and found.tolist() == expected
    assert mt.add(x, True, alpha=alpha).tolist() == [True, bool(alpha)]


@pytest.mark.parametrize("dtype", [mt.uint8, mt.int8, mt.int32, mt.int64, mt.uint64], ids=str)
@pytest.mark.parametrize("number", [1000, -300, 0xFFFFFFFF, 2**63, -(2**63)])
def test_sums_products_and_bits_take_numbers_of_64_bits(dtype, number):
    values = [0, 1, 100]
    x, bits = mt.tensor(values, dtype=dtype), mt.iinfo(dtype).bits

    def wrapped(results):
        low = mt.iinfo(dtype).min
        return [(r - low) % 2**bits + low for r in results]

    assert (x + number).tolist() == (number + x).tolist() == wrapped([v + number for v in values])
    assert (x - number).tolist() == wrapped([v - number for v in values])
    assert (number - x).tolist() == wrapped([number - v for v in values])
    assert (x * number).tolist() == x.clone().mul_(number).tolist() == wrapped([v * number for v in values])
    assert (x & number).tolist() == wrapped([v & number for v in values])
    assert (x | number).tolist() == wrapped([v | number for v in values])
    assert (x ^ number).tolist() == wrapped([v ^ number for v in values])
    for write in (x.__add__, x.__rsub__, x.mul_, x.__and__):
        with pytest.raises(OverflowError, match="int too big to convert"):
            write(number + (1 << 65 if number > 0 else -1 << 65))


COMPARED = "x == n; x != n; x < n; n <= x; x > n; n >= x; x // n; n // x; x % n; n % x; t.fmod(x, n); x << n; n >> x; n**x"
REFUSED = "x.clamp(max=n); x.fill_(n); t.full_like(x, n); x.masked_fill(x > 0, n); x.add(x, alpha=n); t.threshold(x, 2, n)"
NUMBERS = [-1, 255, 1000, -129, -300, 2**31, 2**40 + 3, 2**63 + 1]


@pytest.mark.parametrize(
    ("dtype", "call", "expected"),
    [
        ("int8", "x == 255", [False, True, False, False]),
        ("uint8", "x == 1000", [False, False, True, False]),
        ("uint8", "x // 1000", [0, 0, 1, 1]),
        ("int8", "x % 1000", [-23, -1, -19, -14]),
        ("int32", "x < 2**40 + 4", [True, True, False, False]),
        ("uint8", "t.full_like(x, -129)", [127] * 4),
        ("uint8", "x.clamp(max=300)", RuntimeError),
        ("int16", "x.add(1, alpha=70000)", RuntimeError),
        ("int8", "t.nn.functional.pad(x, (1, 1), value=200)", RuntimeError),
        ("int64", "x == 2**64", OverflowError),
    ],
)
def test_a_number_that_the_dtype_cannot_hold_wraps_as_an_operand_and_is_refused_as_an_argument(dtype, call, expected):
    values = {"int8": [1, -1, 5, 10], "uint8": [1, 5, 232, 255], "int32": [1, -5, 4, 9]}.get(dtype, [0, 1, 2, 3])
    names = {"t": mt, "x": mt.tensor(values, dtype=getattr(mt, dtype))}
    if isinstance(expected, list):
        assert eval(call, names).tolist() == expected
    else:
        with pytest.raises(expected):
            eval(call, names)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
def test_numbers_that_a_dtype_cannot_hold_are_taken_as_by_pytorch(dtype):
    torch = pytest.importorskip("torch")

    def answer(library, call, n):
        x = library.tensor([1, 5, 100, 127], dtype=getattr(library, dtype))
        try:
            return eval(call, {"t": library, "x": x, "n": n}).tolist()
        except RuntimeError:
            return RuntimeError

    calls = [(call, n) for call in f"{COMPARED}; {REFUSED}".split("; ") for n in NUMBERS]
    assert [c for c in calls if answer(mt, *c) != answer(torch, *c)] == []


@pytest.mark.parametrize("write", [operator.iadd, operator.ipow, operator.ior])
def test_in_place_operators_leave_foreign_objects_their_say(write):
    class Foreign:
        def __radd__(self, other):
            return "mine"

        __rpow__ = __ror__ = __radd__

    x = mt.tensor([1, 2])
    assert write(x, Foreign()) == "mine"
    with pytest.raises(TypeError, match="unsupported operand"):
        write(x, object())
    assert x.tolist() == [1, 2]


def test_half_precision_is_interpolated_in_single():
    x, y = mt.tensor([0.0, -30000.0]), mt.tensor([0.125, -20000.0])
    for dtype in (mt.float16, mt.bfloat16):
        start, end = x.to(dtype), y.to(dtype)
        for weight in (8.0, 0.3, 70000.0):
            wide = mt.lerp(start.float(), end.float(), weight)
            assert mt.lerp(start, end, weight).tolist() == wide.to(dtype).tolist()


def test_complex_log1p_keeps_small_numbers():
    z = mt.tensor([1e-19 + 1e-18j, -2e-30 + 1e-30j, 0.25j], dtype=mt.complex128)
    expected = [1e-19 + 1e-18j, -2e-30 + 1e-30j, complex(0.5 * math.log1p(0.0625), math.atan(0.25))]
    assert all(abs(found - true) <= 1e-15 * abs(true) for found, true in zip(mt.log1p(z).tolist(), expected))


def test_parts_of_complex_numbers_can_be_assigned_to():
    z = mt.tensor([[1 + 2j, 3j]])
    z.imag = 5
    z[0].real = mt.tensor([-1.0, 4.0])
    assert z.tolist() == [[-1 + 5j, 4 + 5j]]
    x = mt.ones(2)
    x.real = 3
    assert x.tolist() == [3, 3]
    with pytest.raises(RuntimeError, match="non-complex"):
        x.imag = 1
    with pytest.raises(RuntimeError, match="leaf"):
        mt.tensor([1j], requires_grad=True).imag = 1
    start, part = mt.tensor([1 + 2j], requires_grad=True), mt.tensor([3.0], requires_grad=True)
    z = start * 2
    z.imag = part
    (z * mt.tensor([2 - 1j])).real.sum().backward()  # 2 * re + im
    assert start.grad.tolist() == [4] and part.grad.tolist() == [1]


def test_powers():
    assert (mt.tensor([2, -1, -1, 1, 5]) ** mt.tensor([-1, -1, -2, -5, 2])).tolist() == [0, -1, 1, 1, 25]
    near(mt.tensor([4.0, 0.25]) ** -0.5, [0.5, 2.0])
    assert (2 ** mt.tensor([3.0])).tolist() == [8.0]
    assert mt.float_power(mt.tensor([2, 3]), 2).dtype is mt.float64
    for wrong in (2, [2], None):
        with pytest.raises(TypeError, match="float_power: argument 'input' must be Tensor, not "):
            mt.float_power(wrong, wrong)


def test_clamp_takes_numbers_and_tensors():
    x = mt.tensor([-2.0, 0.5, 3.0, NAN])
    near(mt.clamp(x, -1, 1), [-1.0, 0.5, 1.0, NAN])
    near(x.clamp(max=mt.tensor([0.0])), [-2.0, 0.0, 0.0, NAN])
    assert mt.clamp(mt.tensor([1, 5]), min=1.5).tolist() == [1.5, 5.0]
    assert mt.clamp(mt.tensor([5.0]), 3, 2).tolist() == [2.0]


def test_extremes_of_two_and_nan():
    x, y = mt.tensor([1.0, NAN, 3.0]), mt.tensor([2.0, 1.0, NAN])
    near(mt.maximum(x, y), [2.0, NAN, NAN])
    near(mt.fmax(x, y), [2.0, 1.0, 3.0])
    near(mt.fmin(x, y), [1.0, 1.0, 3.0])


def test_where_chooses_and_lists():
    c = mt.tensor([True, False, True])
    assert mt.where(c, 1.0, 0.0).dtype is mt.float32
    assert mt.where(c, 1, 0).tolist() == [1, 0, 1]
    assert mt.where(c)[0].tolist() == [0, 2]
    assert [[at.tolist() for at in mt.where(mt.tensor(x))] for x in (5.0, 0.0)] == [[[0]], [[]]]
    assert mt.tensor([1.0, 2.0, 3.0]).where(c, 9).tolist() == [1.0, 9.0, 3.0]
    assert mt.where(c, mt.ones(3, dtype=mt.float16), 1e6).tolist() == [1.0, INF, 1.0]
    assert mt.where(c, mt.ones(3), INF).tolist() == [1.0, INF, 1.0]
    for chosen in (mt.ones(3), 1.0):
        with pytest.raises(RuntimeError, match="where: value cannot be converted to type float32 without overflow; got 1e"):
            mt.where(c, chosen, 1e300)


def test_rounding_keeps_integers_and_ties_go_to_even():
    assert mt.floor(mt.tensor([1, 2])).dtype is mt.int64
    assert mt.round(mt.tensor([0.5, 1.5, 2.5, -0.5])).tolist() == [0.0, 2.0, 2.0, -0.0]
    near(mt.round(mt.tensor([1234.567]), decimals=-2), [1200.0])
    near(mt.frac(mt.tensor([-1.25])), [-0.25])


def test_complex_numbers_are_joined_and_taken_apart_as_views():
    z = mt.complex(mt.tensor([1.0, 2.0]), mt.tensor([0.0, -1.0]))
    assert z.dtype is mt.complex64
    assert z.conj().tolist() == [1 + 0j, 2 + 1j]
    z.real.mul_(10)
    assert z.tolist() == [10 + 0j, 20 - 1j]
    mt.view_as_real(z)[:, 1] = 5.0
    assert z.tolist() == [10 + 5j, 20 + 5j]
    near(mt.angle(mt.tensor([-1.0, 0.0, NAN])), [math.pi, 0.0, NAN])
    near(mt.abs(mt.polar(mt.tensor([2.0]), mt.tensor([1.0]))), [2.0])


def test_what_is_assigned_to_a_part_of_complex_numbers_is_written_there():
    z = mt.zeros(2, dtype=mt.complex64)
    z.real, z.imag = mt.tensor([1, 2]), -3
    assert z.tolist() == [1 - 3j, 2 - 3j]
    z.imag += 1
    z[1:].real = 7
    assert z.tolist() == [1 - 2j, 7 - 2j]
    x = mt.ones(2)
    x.real = mt.tensor([4.0, 5.0])
    assert x.tolist() == [4.0, 5.0]
    with pytest.raises(DTypeError, match="imag is not implemented for tensors with non-complex dtypes"):
        x.imag = 0
    weight, z = mt.tensor([2.0, 3.0], requires_grad=True), mt.zeros(2, dtype=mt.complex64)
    z.imag = weight
    (z * z).real.sum().backward()
    assert weight.grad.tolist() == [-4.0, -6.0]


def test_masks_add_up_to_masks_whatever_alpha_is():
    mask = mt.tensor([True, False])
    assert mt.add(mask, mask, alpha=0).tolist() == [True, False] and mt.add(mask, ~mask, alpha=2).dtype is mt.bool


def test_an_operator_in_place_lets_the_other_operand_answer():
    class Other:
        def __radd__(self, left):
            return "added"

    x = y = mt.ones(2)
    x += Other()
    assert x == "added" and y.__imul__(Other()) is NotImplemented and y.tolist() == [1, 1]
    with pytest.raises(TypeError, match="unsupported operand type"):
        y -= Other()


@pytest.mark.parametrize("dtype", [mt.uint8, mt.int64, mt.float64])
def test_what_is_made_goes_into_any_dtype(dtype):
    for made, expected in (
        (lambda out: mt.eye(2, out=out), [[1, 0], [0, 1]]),
        (lambda out: mt.zeros(2, out=out), [0, 0]),
        (lambda out: mt.full((2,), 3.0, out=out), [3, 3]),
        (lambda out: mt.arange(3.0, out=out), [0, 1, 2]),
        (lambda out: mt.linspace(0, 9, 4, out=out), [0, 3, 6, 9]),
    ):
        out = mt.empty(0, dtype=dtype)
        assert made(out) is out and out.tolist() == expected and out.dtype is dtype


def test_arange_counts_in_the_dtype_of_out():
    assert mt.arange(0, 4, 1.5, out=mt.empty(0, dtype=mt.int64)).tolist() == [0, 1, 2, 3]
    for asked in ({"dtype": mt.int64}, {"out": mt.empty(0, dtype=mt.int64)}):
        with pytest.raises(ValueError, match="step must be nonzero; got 0.5, which is 0 as int64"):
            mt.arange(0, 4, 0.5, **asked)


def test_special_functions():
    near(mt.special.polygamma(1, mt.tensor([1.0], dtype=mt.float64)), [math.pi**2 / 6], 1e-14)
    # Halfway between two poles the terms of both sides cancel; beyond 170 the factorial is infinite.
    near(mt.polygamma(100, mt.tensor([-0.5], dtype=mt.float64)) / -1.5303349262176004e140, [1.0], 1e-13)
    assert mt.polygamma(2**40, mt.tensor([0.5], dtype=mt.float64)).tolist() == [-math.inf]
    two, one = mt.tensor([2.0], dtype=mt.float64), mt.tensor([1.0], dtype=mt.float64)
    near(mt.special.zeta(two, one), [math.pi**2 / 6], 1e-14)
    near(mt.xlogy(mt.tensor([0.0, 0.0]), mt.tensor([0.0, NAN])), [0.0, NAN])
    near(mt.special.log_ndtr(mt.tensor([-40.0], dtype=mt.float64)), [-804.6084420137538], 1e-13)
    near(mt.sinc(mt.tensor([0.0, 0.5])), [1.0, 2 / math.pi])


def test_nextafter_steps_to_the_neighbour():
    x = mt.tensor([1.0, 0.0, INF, 2.0], dtype=mt.float64)
    y = mt.tensor([2.0, -1.0, 0.0, 2.0], dtype=mt.float64)
    assert mt.nextafter(x, y).tolist() == [1.0 + 2**-52, -5e-324, 1.7976931348623157e308, 2.0]


# ---- comparison, logic, bits ----


def test_comparisons_and_logic_give_bools():
    x = mt.tensor([1.0, 2.0, NAN])
    assert (x >= 2).tolist() == [False, True, False]
    assert (x != x).tolist() == [False, False, True]
    assert (x == None) is False  # noqa: E711
    assert mt.logical_xor(mt.tensor([0, 2]), mt.tensor([1, 1])).tolist() == [True, False]
    assert mt.isclose(x, x, equal_nan=True).all()
    assert mt.equal(mt.tensor([1, 2]), mt.tensor([1.0, 2.0]))
    assert not mt.allclose(mt.tensor([1.0]), mt.tensor([1.1]))


@pytest.mark.parametrize("dtype", [mt.bool, mt.int16, mt.int64, mt.float16, mt.float32, mt.float64, mt.complex64])
@pytest.mark.parametrize("shape", [(0,), (1,), (3, 4), (2, 3000), (70, 300)])
@pytest.mark.filterwarnings("ignore:The use of `x.T`")
def test_equal_finds_one_element_that_differs(dtype, shape):
    x = mt.ones(shape).to(dtype)
    assert mt.equal(x, x.clone()) and mt.equal(x.T, x.clone().T)
    for at in (0, -1) if x.numel() else ():
        y = x.clone()
        y.view(-1)[at] = 0
        assert not mt.equal(x, y) and not mt.equal(y.T, x.T)
    if x.numel() and dtype.kind in "fc":
        y.view(-1)[0] = NAN
        assert not mt.equal(y, y.clone())
        assert mt.equal(x * 0.0, x * -0.0)


def test_bits():
    x = mt.tensor([5, -4])
    assert (x & 3).tolist() == [1, 0]
    assert (~x).tolist() == [-6, 3]
    assert (x << 65).tolist() == [0, 0]
    assert (x >> 65).tolist() == [0, -1]
    assert (~mt.tensor([True, False])).tolist() == [False, True]


# ---- gradients ----


def test_ties_share_the_gradient():
    (x, y), _ = grads(mt.maximum, [1.0, 2.0], [1.0, 5.0])
    assert (x, y) == ([0.5, 0.0], [0.5, 1.0])


def test_gradients_at_edges():
    assert grads(lambda x: x.abs(), [0.0, -2.0])[0] == [[0.0, -1.0]]
    assert grads(lambda x, y: x**y, [0.0, 2.0], [2.0, 0.0])[0] == [[0.0, 0.0], [0.0, math.log(2.0)]]
    assert grads(lambda x: x**0, [0.0, 3.0])[0] == [[0.0, 0.0]]
    assert grads(lambda x: x.clamp(-1, 1), [-1.0, 0.0, 2.0])[0] == [[1.0, 1.0, 0.0]]
    assert grads(lambda x: mt.floor(x) + mt.sign(x), [0.3])[0] == [[0.0]]
    assert grads(mt.acosh, [1.0, -1.0, -1.25, 1.25])[0] == [pytest.approx([math.inf, math.inf, 4 / 3, 4 / 3])]


def test_second_gradients():
    first, second = grads(lambda x, y: x * x * y, [3.0], [2.0])
    assert first == [[12.0], [9.0]]
    assert second == [[10.0], [6.0]]


def test_backward_through_a_step_without_gradient_fails():
    x = mt.tensor([3.5], requires_grad=True)
    with pytest.raises(NotImplementedError, match="derivative for .* is not implemented"):
        (x // 2).backward()


# ---- in place ----


def test_in_place_keeps_the_dtype_and_differentiates():
    x = mt.tensor([1, 2])
    x += mt.tensor([1, 1], dtype=mt.int8)
    assert x.dtype is mt.int64
    w = mt.tensor([2.0, 3.0], requires_grad=True)
    y = w * 1
    y *= w
    y.sum().backward()
    assert w.grad.tolist() == [4.0, 6.0]
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        x.div_(2)


def test_out_is_written():
    out = mt.empty(2)
    assert mt.add(mt.tensor([1.0, 2.0]), 1, out=out) is out
    assert out.tolist() == [2.0, 3.0]


def test_out_of_another_dtype_is_cast_into_where_operands_promote_and_refused_elsewhere():
    x, i = mt.tensor([1.5, -2.5]), mt.tensor([1, 0])
    double = mt.empty(2, dtype=mt.float64)
    for cast in (
        lambda: mt.add(x, x, out=double), lambda: mt.exp(x, out=double), lambda: mt.div(i, 2, out=double),
        lambda: mt.gt(x, 0, out=double), lambda: mt.cat([x[:1], x[1:]], out=double), lambda: mt.square(x, out=double),
    ):  # fmt: skip
        assert cast() is double and double.dtype is mt.float64
    assert double.tolist() == [2.25, 6.25]
    for exact in (
        lambda: mt.neg(x, out=double), lambda: mt.floor(x, out=double), lambda: mt.where(x > 0, x, x, out=double),
        lambda: mt.amax(x, 0, out=double[0]), lambda: mt.argmax(x, 0, out=mt.empty((), dtype=mt.int32)),
        lambda: mt.sort(x, out=(mt.empty(2), double)), lambda: mt.sort(x, out=(double, mt.empty(2, dtype=mt.int64))),
        lambda: mt.index_select(x, 0, i, out=double), lambda: mt.isposinf(x, out=double), lambda: mt.dot(x, x, out=double[0]),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match="Expected out tensor to have dtype (float|long int|bool), but got"):
            exact()
    with pytest.raises(TypeError, match="can't be cast to the desired output type Long"):
        mt.cat([x, x], out=mt.empty(4, dtype=mt.int64))


@pytest.mark.parametrize("other", [1, 1.0, True])
def test_numbers_and_masks_are_not_subtracted(other):
    mask = mt.tensor([True, False])
    x = mt.ones(2)
    for wrong in (
        lambda: mask - other, lambda: other - mask, lambda: mt.rsub(mask, other), lambda: mt.sub(mask, other), lambda: x - mask,
        lambda: mask - x, lambda: mt.sub(x, mask, alpha=2), lambda: x.clone().sub_(mask), lambda: mt.sub(x, mask, out=mt.empty(2)),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match="Subtraction, the `-` operator, with a bool tensor is not supported"):
            wrong()
    with pytest.raises(RuntimeError, match="Subtraction"):
        mt.tensor([1, 2]) - True
    assert (mask + 1).tolist() == [2, 1]


# ---- errors ----

MISUSE = [
    (lambda: mt.tensor([1]) // 0, RuntimeError,
     "floor_divide: ZeroDivisionError: expected integers other than 0 to divide by; got 0."),
    (lambda: mt.tensor([1]) % mt.tensor([0]), RuntimeError,
     "remainder: ZeroDivisionError: expected integers other than 0 to divide by; got 0."),
    (lambda: mt.pow(mt.tensor([2]), -1), RuntimeError,
     "pow: Integers to negative integer powers are not allowed. The exponent is -1."),
    (lambda: mt.tensor([2], dtype=mt.uint8) ** -1, RuntimeError,
     "pow: Integers to negative integer powers are not allowed. The exponent is -1."),
    (lambda: mt.tensor([True]) - mt.tensor([True]), DTypeError,
     "sub: Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to "
     "invert a mask, use the `~` or `logical_not()` operator instead, and between masks `^` or `logical_xor()`."),
    (lambda: mt.clamp(mt.ones(2)), RuntimeError, "clamp: At least one of 'min' or 'max' must not be None."),
    (lambda: mt.div(mt.ones(2), 2, rounding_mode="up"), RuntimeError,
     "div: expected rounding_mode to be one of None, 'trunc', or 'floor' but found 'up'."),
    (lambda: mt.add(mt.tensor([1]), 1, alpha=0.5), DTypeError,
     "add: For integral input tensors, argument alpha must not be a floating point number. Got 0.5."),
    (lambda: mt.lerp(mt.ones(2), mt.ones(2, dtype=mt.float64), 0.5), DTypeError,
     "lerp: expected dtype float for `end` but got dtype double. Convert one."),
    (lambda: mt.imag(mt.ones(2)), DTypeError,
     "imag: imag is not implemented for tensors with non-complex dtypes; got mortice.float32."),
    (lambda: mt.ones(2, dtype=mt.complex64) < 1, DTypeError,
     "lt: not implemented for 'ComplexFloat'; got mortice.complex64. Convert to one of: bool, unsigned integer, integer, "
     "floating point."),
    (lambda: mt.ones(2).isclose(2), TypeError, "isclose: expected two Tensors; got int."),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), MISUSE, ids=[text.split(":")[0] for _, _, text in MISUSE])
def test_misuse_says_what_is_wrong(call, error, text):
    with pytest.raises(error) as raised:
        call()
    assert str(raised.value) == text


@pytest.mark.parametrize(
    "fn",
    [
        lambda x, out: mt.softmax(x, 0, out=out), lambda x, out: mt.matmul(x, x, out=out),
        lambda x, out: mt.addmm(x, x, x, out=out), lambda x, out: mt.tril(x, out=out),
        lambda x, out: mt.take(x, mt.tensor([0]), out=out), lambda x, out: mt.linalg.inv(x, out=out),
        lambda x, out: mt.logcumsumexp(x, 0, out=out),
        lambda x, out: mt.where(x > 0, x, x, out=out), lambda x, out: mt.clamp(x, 0, 1, out=out),
        lambda x, out: mt.sort(x, out=(out, mt.empty(2, 2).long())),
        lambda x, out: mt.max(x, 0, out=(mt.empty(2), out)), lambda x, out: mt.argmax(x, out=out),
        lambda x, out: mt.linalg.qr(x, out=(out, mt.empty(2, 2))),
    ],
)  # fmt: skip
def test_out_of_another_dtype_is_refused_where_nothing_goes_element_by_element(fn):
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype (float|long int), but got double instead"):
        fn(mt.eye(2), mt.empty(2, 2, dtype=mt.float64))


def test_limits_that_are_tensors_may_be_written_over_what_is_limited():
    x = mt.arange(6.0)
    assert mt.clamp(x, mt.ones(6), mt.full((6,), 3.0), out=x) is x and x.tolist() == [1, 1, 2, 3, 3, 3]


def test_answers_about_infinity_and_sign_go_into_bools():
    for fn in (mt.isposinf, mt.isneginf, mt.signbit):
        with pytest.raises(RuntimeError, match="Expected out tensor to have dtype bool, but got float instead"):
            fn(mt.ones(2), out=mt.empty(2))


@pytest.mark.needs("strides")
@pytest.mark.parametrize("fn", [mt.isnan, mt.isinf, mt.isfinite, mt.isreal, mt.isposinf, mt.isneginf])
def test_what_is_known_without_looking_lies_as_the_tensor_does(fn):
    for x in (mt.arange(6).reshape(2, 3).t(), mt.ones(2, 3).t()):
        found = fn(x)
        assert found.dtype is mt.bool and found.stride() == (1, 3) and found.tolist() == [[fn in (mt.isfinite, mt.isreal)] * 2] * 3


def test_a_wider_out_is_what_reductions_compute_in():
    x = mt.full((10,), 0.1)
    exact = 0.1 + 1.4901161138336505e-9  # float32's 0.1
    for fn, expected in [(mt.sum, 10 * exact), (mt.mean, exact), (mt.prod, exact**10), (mt.nansum, 10 * exact)]:
        assert abs(fn(x, 0, out=mt.empty((), dtype=mt.float64)).item() / expected - 1) < 1e-14
    assert abs(mt.cumsum(x, 0, out=mt.empty(10, dtype=mt.float64))[-1].item() / (10 * exact) - 1) < 1e-14


def test_numbers_of_numpy_take_part_beside_alpha():
    np = pytest.importorskip("numpy")
    x = mt.ones(2)
    assert mt.add(x, np.int64(2), alpha=3).tolist() == [7, 7] and mt.sub(x, np.float32(2), alpha=3).tolist() == [-5, -5]
    assert mt.quantile(mt.arange(5.0), np.float32(0.5)) == mt.nanquantile(mt.arange(5.0), np.float32(0.5)) == 2
    with pytest.raises(TypeError, match="add: argument 'other' must be Tensor, not list"):
        mt.add(x, [2], alpha=3)
