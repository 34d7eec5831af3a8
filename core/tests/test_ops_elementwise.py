"""Arithmetic, functions of one operand, comparisons: values, dtypes, edge cases, in-place forms, error texts."""

import math

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


# ---- dtypes ----


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


def test_powers():
    assert (mt.tensor([2, -1, -1, 1, 5]) ** mt.tensor([-1, -1, -2, -5, 2])).tolist() == [0, -1, 1, 1, 25]
    near(mt.tensor([4.0, 0.25]) ** -0.5, [0.5, 2.0])
    assert (2 ** mt.tensor([3.0])).tolist() == [8.0]
    assert mt.float_power(mt.tensor([2, 3]), 2).dtype is mt.float64


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
    assert mt.tensor([1.0, 2.0, 3.0]).where(c, 9).tolist() == [1.0, 9.0, 3.0]


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


def test_special_functions():
    near(mt.special.polygamma(1, mt.tensor([1.0], dtype=mt.float64)), [math.pi**2 / 6], 1e-14)
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


def test_second_gradients():
    first, second = grads(lambda x, y: x * x * y, [3.0], [2.0])
    assert first == [[12.0], [9.0]]
    assert second == [[10.0], [6.0]]


def test_backward_through_a_step_without_gradient_fails():
    x = mt.tensor([3.5], requires_grad=True)
    with pytest.raises(NotImplementedError, match=r"the derivative of this operation is not implemented"):
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
    with pytest.raises(RuntimeError, match="result type float32 can't be cast to the desired output type int64"):
        x.div_(2)


def test_out_is_written():
    out = mt.empty(2)
    assert mt.add(mt.tensor([1.0, 2.0]), 1, out=out) is out
    assert out.tolist() == [2.0, 3.0]


# ---- errors ----

MISUSE = [
    (lambda: mt.tensor([1]) // 0, RuntimeError,
     "floor_divide: ZeroDivisionError: expected integers other than 0 to divide by; got 0."),
    (lambda: mt.tensor([1]) % mt.tensor([0]), RuntimeError,
     "remainder: ZeroDivisionError: expected integers other than 0 to divide by; got 0."),
    (lambda: mt.pow(mt.tensor([2]), -1), RuntimeError,
     "pow: Integers to negative integer powers are not allowed; got exponent -1."),
    (lambda: mt.tensor([True]) - mt.tensor([True]), DTypeError,
     "sub: Subtraction, the `-` operator, with a bool tensor is not supported. Use the `^` or `logical_xor()` operator "
     "between masks, `~` or `logical_not()` to invert one."),
    (lambda: mt.clamp(mt.ones(2)), RuntimeError, "clamp: At least one of 'min' or 'max' must not be None."),
    (lambda: mt.div(mt.ones(2), 2, rounding_mode="up"), RuntimeError,
     "div: expected rounding_mode to be one of None, 'trunc', or 'floor' but found 'up'."),
    (lambda: mt.add(mt.tensor([1]), 1, alpha=0.5), DTypeError,
     "add: For integral input tensors, argument alpha must not be a floating point number; got 0.5."),
    (lambda: mt.lerp(mt.ones(2), mt.ones(2, dtype=mt.float64), 0.5), DTypeError,
     "lerp: expected dtype float32 for `end`; got float64. Convert one."),
    (lambda: mt.imag(mt.ones(2)), DTypeError,
     "imag: imag is not implemented for tensors with non-complex dtypes; got mortice.float32."),
    (lambda: mt.ones(2, dtype=mt.complex64) < 1, DTypeError,
     "lt: not implemented for complex64; got mortice.complex64. Convert to one of: bool, unsigned integer, integer, "
     "floating point."),
    (lambda: mt.ones(2).isclose(2), TypeError, "isclose: expected two Tensors; got int."),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), MISUSE, ids=[text.split(":")[0] for _, _, text in MISUSE])
def test_misuse_says_what_is_wrong(call, error, text):
    with pytest.raises(error) as raised:
        call()
    assert str(raised.value) == text
