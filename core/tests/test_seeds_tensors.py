"""The seed inventory, rows CR, RS, MA, BC and RE: creation, random numbers, element-wise math, broadcasting, reductions.

One test a row, named after it. Matmul, shapes, types, NumPy and printing are in test_seeds_shapes.py.
"""

import math
import random
import subprocess
import sys
import warnings

import numpy as np
import pytest

import mortice as mt

F = mt.nn.functional


def _close(found, expected, tolerance=1e-4):
    """Compare a tensor with nested lists."""
    expected = mt.tensor(expected, dtype=mt.float64)
    assert tuple(found.shape) == tuple(expected.shape)
    assert (found.detach().double() - expected).abs().max().item() <= tolerance


# Tensor creation


def test_CR01_empty_has_shape_and_default_dtype():
    x = mt.empty(5, 3)
    assert x.shape == (5, 3)
    assert x.dtype is mt.float32
    assert mt.empty(2, dtype=mt.int64).dtype is mt.int64


@pytest.mark.parametrize("make, value", [(mt.zeros, 0.0), (mt.ones, 1.0)])
def test_CR02_zeros_and_ones_take_ints_or_one_sequence(make, value):
    for sizes in ((2, 3), ((2, 3),), ([2, 3],), (mt.Size([2, 3]),)):
        x = make(*sizes)
        assert x.dtype is mt.float32
        assert x.tolist() == [[value] * 3] * 2
    assert make(2, 3, dtype=mt.int64).dtype is mt.int64


def test_CR03_new_ones_inherits_dtype_and_device():
    x = mt.zeros(2, dtype=mt.int8).new_ones(5, 3)
    assert x.dtype is mt.int8
    assert x.device == mt.zeros(1).device
    assert x.tolist() == [[1] * 3] * 5
    assert x.new_ones(5, 3, dtype=mt.double).dtype is mt.float64


def test_CR04_new_ones_without_size_names_it():
    with pytest.raises(TypeError, match="size"):
        mt.zeros(2).new_ones()


def test_CR05_tensor_infers_the_dtype_of_a_list():
    assert mt.tensor([1, 2]).dtype is mt.int64
    assert mt.tensor([1.5, 2.0]).dtype is mt.float32
    assert mt.tensor([True, False]).dtype is mt.bool
    assert mt.tensor([5.5, 3]).dtype is mt.float32
    assert mt.tensor([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    assert mt.tensor(3).shape == ()


def test_CR06_tensor_of_an_array_keeps_the_dtype_and_copies():
    array = np.zeros(2)
    x = mt.tensor(array)
    array[0] = 1
    assert x.dtype is mt.float64
    assert x.tolist() == [0, 0]


def test_CR07_rand_is_uniform_on_0_1():
    x = mt.rand(1000)
    assert x.dtype is mt.float32
    assert 0 <= x.min().item() and x.max().item() < 1
    assert abs(x.mean().item() - 0.5) < 0.1
    assert mt.rand(2, 3, dtype=mt.double).dtype is mt.float64


def test_CR08_randn_is_standard_normal_and_keeps_dims_of_size_1():
    mt.manual_seed(0)
    x = mt.randn(4000)
    assert abs(x.mean().item()) < 0.1
    assert abs(x.std().item() - 1) < 0.1
    assert [mt.randn(2, 1, 3).shape, mt.randn(1, 2, 3).shape] == [(2, 1, 3), (1, 2, 3)]
    assert mt.randn(2, dtype=mt.double).dtype is mt.float64


def test_CR09_randn_like_takes_size_and_dtype_of_its_tensor():
    x = mt.zeros(2, 3, dtype=mt.float64)
    assert mt.randn_like(x).shape == (2, 3)
    assert mt.randn_like(x).dtype is mt.float64
    assert mt.randn_like(x, dtype=mt.float32).dtype is mt.float32
    with pytest.raises(TypeError):
        mt.randn_like(2, 3)


def test_CR10_size_and_shape_are_tuples():
    x = mt.zeros(2, 3)
    rows, columns = x.size()
    assert (rows, columns) == (2, 3)
    assert x.size() == x.shape == (2, 3)
    assert isinstance(x.shape, tuple) and isinstance(x.shape, mt.Size)
    assert x.size(0) == 2 and x.size(-1) == 3
    assert x.shape.numel() == 6
    assert x.shape[1:] == (3,) and x.shape + (4,) == (2, 3, 4)


def test_CR11_arange_is_int_for_ints_and_excludes_the_end():
    assert mt.arange(5).tolist() == [0, 1, 2, 3, 4]
    assert mt.arange(1, 4).tolist() == [1, 2, 3]
    x = mt.arange(5, 11, 2)
    assert x.dtype is mt.int64 and x.tolist() == [5, 7, 9]
    x = mt.arange(1, 2.5, 0.5)
    assert x.dtype is mt.float32 and x.tolist() == [1, 1.5, 2]
    assert mt.arange(5, 0, -2).tolist() == [5, 3, 1]


def test_CR12_range_warns_and_includes_the_end():
    if not hasattr(mt, "range"):
        pytest.skip("the row allows leaving mortice.range out")
    with pytest.warns(UserWarning, match="arange"):
        x = mt.range(1, 4)
    assert x.dtype is mt.float32 and x.tolist() == [1, 2, 3, 4]


def test_CR13_randperm_is_a_permutation():
    x = mt.randperm(10)
    assert x.dtype is mt.int64
    assert sorted(x.tolist()) == list(range(10))


def test_CR14_linspace_includes_both_ends():
    x = mt.linspace(1, 10, 10)
    assert x.dtype is mt.float32
    assert x.tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    assert mt.linspace(10, 1, 10).tolist() == x.flip(0).tolist()


def test_CR15_Tensor_takes_sizes_or_one_sequence_of_data():
    assert mt.Tensor(2, 3).shape == (2, 3)
    assert mt.Tensor((2, 3)).tolist() == [2, 3]
    assert mt.Tensor([2, 3]).shape == (2,)


def test_CR16_Tensor_is_the_class_and_tensor_infers():
    assert isinstance(mt.Tensor, type)
    assert mt.Tensor([1, 2]).dtype is mt.float32
    assert mt.Tensor(3).shape == (3,)
    assert mt.Tensor().shape == (0,)
    assert mt.tensor(3).item() == 3
    assert mt.tensor([1, 2]).dtype is mt.int64


def test_CR17_ones_of_5_is_not_a_row():
    assert mt.ones(5).shape == (5,)
    assert mt.ones(1, 5).shape == (1, 5)


def test_CR18_fill_writes_in_place_and_returns_self():
    x = mt.empty(4)
    assert x.fill_(10) is x
    assert x.tolist() == [10] * 4


def test_CR19_ones_like_is_placed_on_the_device():
    x = mt.ones_like(mt.zeros(2, 3, dtype=mt.float64), device=mt.device("cpu"))
    assert x.shape == (2, 3)
    assert x.dtype is mt.float64
    assert x.device.type == "cpu"


def test_CR20_tensor_of_a_tensor_copies_and_warns():
    x = mt.zeros(2)
    with pytest.warns(UserWarning, match="clone"):
        y = mt.tensor(x)
    x[0] = 1
    assert y.tolist() == [0, 0]


def test_CR21_tensor_of_a_list_of_longer_tensors_is_refused():
    with pytest.raises(ValueError, match="one element|single element"):
        mt.tensor([mt.zeros(2), mt.ones(2)])
    with pytest.raises(TypeError, match="one element|single element|elements cannot"):
        mt.tensor([mt.tensor([1, 2]), mt.tensor([3, 4])])
    assert mt.tensor([mt.tensor(1.0), mt.tensor(2.0)]).tolist() == [1, 2]


def test_CR22_rows_can_be_assigned_and_stack_is_direct():
    a, b = mt.tensor([1, 2]), mt.tensor([3, 4])
    c = mt.zeros(2, 2)
    c[0], c[1] = a, b
    assert c.dtype is mt.float32
    assert c.tolist() == mt.stack([a, b]).tolist() == [[1, 2], [3, 4]]


def test_CR23_a_number_is_a_tensor_without_dims():
    x = mt.tensor(8, dtype=mt.float32)
    assert x.item() == 8.0 and isinstance(x.item(), float)
    assert x.shape == mt.Size([])
    assert mt.tensor(1.0).dtype is mt.float32


def test_CR24_new_tensors_do_not_track_gradients():
    for x in (mt.zeros(2), mt.rand(2), mt.tensor([1.0])):
        assert x.requires_grad is False
        assert x.grad is None
    x.requires_grad = True
    assert x.requires_grad


def test_CR25_a_tensor_holds_one_dtype():
    x = mt.zeros(2, dtype=mt.int64)
    x[0] = 3.7
    assert x.dtype is mt.int64
    assert x.tolist() == [3, 0]


@pytest.mark.parametrize("name", ["ones", "zeros", "randn", "rand", "empty"])
def test_CR26_factories_take_requires_grad(name):
    x = getattr(mt, name)(2, requires_grad=True)
    assert x.requires_grad and x.is_leaf
    y = mt.tensor([1.0], requires_grad=True)
    assert y.requires_grad and y.is_leaf


# Random numbers and seeding


def test_RS01_the_same_seed_gives_the_same_numbers():
    def draw():
        mt.manual_seed(2)
        order = list(mt.utils.data.RandomSampler(range(10)))
        weight = mt.nn.init.normal_(mt.empty(3))
        return [mt.rand(2).tolist(), mt.randn(2).tolist(), mt.randperm(9).tolist(), order, weight.tolist()]

    assert draw() == draw()


def test_RS02_manual_seed_returns_the_generator():
    generator = mt.manual_seed(6895)
    assert isinstance(generator, mt.Generator)
    assert "Generator" in repr(generator)


def test_RS03_the_generator_is_independent_of_python_and_numpy():
    mt.manual_seed(1)
    first = mt.rand(3).tolist()
    mt.manual_seed(1)
    assert random.seed(5) is None
    np.random.seed(5)
    assert mt.rand(3).tolist() == first
    random.seed(5)
    before = random.random()
    random.seed(5)
    mt.manual_seed(9)
    mt.rand(3)
    assert random.random() == before


def test_a_program_that_does_not_seed_draws_anew_each_time():
    code = "import mortice as mt; print(mt.initial_seed(), mt.rand(3).tolist(), mt.Generator().initial_seed())"
    runs = {subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout for _ in range(2)}
    assert len(runs) == 2 and all(run.split()[-1] == "67280421310721" for run in runs)


def test_RS04_the_stream_continues():
    mt.manual_seed(1)
    assert mt.rand(2).tolist() != mt.rand(2).tolist()


def test_RS06_manual_seed_fixes_the_order_of_a_shuffling_loader():
    def order():
        mt.manual_seed(1)
        return [batch.tolist() for batch in mt.utils.data.DataLoader(range(20), batch_size=5, shuffle=True)]

    assert order() == order()


# Tensor math


def test_MA01_plus_is_add():
    x, y = mt.ones(2, 3), mt.rand(2, 3)
    assert (x + y).tolist() == mt.add(x, y).tolist() == x.add(y).tolist()


def test_MA02_mixed_dtypes_are_promoted():
    x = mt.ones(2, 3)
    assert (x + mt.rand(2, 3, dtype=mt.double)).dtype is mt.float64
    assert (mt.tensor([1]) + mt.tensor([1.0])).dtype is mt.float32
    assert (mt.tensor([1], dtype=mt.uint8) + mt.tensor([1], dtype=mt.int8)).dtype is mt.int16
    x += mt.ones(3, dtype=mt.double)
    assert x.dtype is mt.float32
    with pytest.raises(RuntimeError):
        n = mt.tensor([1])
        n += mt.tensor([1.5])


def test_MA03_python_numbers_do_not_widen():
    x = mt.add(mt.tensor([1.0, 2.0]), 20)
    assert x.dtype is mt.float32 and x.tolist() == [21, 22]
    assert mt.add(mt.tensor([1]), 0.5).dtype is mt.float32


def test_MA04_add_scales_by_alpha():
    a, b = mt.tensor([1.0, 2.0]), mt.tensor([3.0, 4.0])
    assert mt.add(a, b, alpha=10).tolist() == [31, 42]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            old = mt.add(a, 10, b).tolist()
        except TypeError:
            old = [31, 42]
    assert old == [31, 42]


def test_MA05_addcmul():
    t, a = mt.tensor([1.0]).requires_grad_(), mt.tensor([[2.0], [3.0]]).requires_grad_()
    b = mt.tensor([4.0, 5.0]).requires_grad_()
    out = mt.addcmul(t, a, b, value=2)
    assert out.tolist() == [[17, 21], [25, 31]]
    out.sum().backward()
    assert [t.grad.tolist(), a.grad.tolist(), b.grad.tolist()] == [[4], [[18], [18]], [10, 10]]


def test_MA06_addcdiv():
    t, a, b = mt.tensor([1.0]), mt.tensor([6.0]), mt.tensor([2.0])
    assert mt.addcdiv(t, a, b, value=2).tolist() == [7]
    with pytest.raises(RuntimeError):
        mt.addcdiv(mt.tensor([1]), mt.tensor([6]), mt.tensor([2]))


def test_MA07_abs():
    x = mt.tensor([-1, 2])
    assert mt.abs(x).tolist() == x.abs().tolist() == [1, 2]
    assert mt.abs(x).dtype is mt.int64


@pytest.mark.parametrize("name", ["sin", "cos", "tan", "asin", "acos", "atan"])
def test_MA08_trigonometry(name):
    x = mt.tensor([0.3], requires_grad=True)
    y = getattr(x, name)()
    assert y.item() == pytest.approx(getattr(math, name)(x.item()), abs=1e-6)
    assert getattr(mt, name)(x).item() == y.item()
    y.backward()
    assert x.grad is not None
    assert getattr(mt, name)(mt.tensor([1])).dtype is mt.float32


def test_MA09_ceil():
    assert mt.ceil(mt.tensor([0.2, -0.2, 3.0])).tolist() == [1, 0, 3]
    assert mt.ceil(mt.tensor([0.2], dtype=mt.float64)).dtype is mt.float64
    assert mt.ceil(mt.tensor([2])).dtype is mt.int64


def test_MA10_floor_and_round_half_to_even():
    assert mt.floor(mt.tensor([0.8, -0.2])).tolist() == [0, -1]
    assert mt.round(mt.tensor([0.5, 1.5, 2.5, -1.4])).tolist() == [0, 2, 2, -1]


def test_MA11_clamp():
    x = mt.tensor([-2.0, 0.5, 3.0], requires_grad=True)
    assert mt.clamp(x, min=0).tolist() == [0, 0.5, 3]
    assert mt.clamp(x, max=1).tolist() == [-2, 0.5, 1]
    mt.clamp(x, min=0, max=1).sum().backward()
    assert x.grad.tolist() == [0, 1, 0]
    with pytest.raises(RuntimeError):
        mt.clamp(x)
    y = mt.tensor([-2.0, 3.0])
    assert y.clamp_(0, 1) is y and y.tolist() == [0, 1]


def test_MA12_mul():
    a, b = mt.tensor([1.0, 2.0]), mt.tensor([[3.0], [4.0]])
    assert mt.mul(a, 3).tolist() == [3, 6]
    assert mt.mul(a, b).tolist() == [[3, 6], [4, 8]]


def test_MA13_div_is_true_division():
    a, b = mt.tensor([7, -7]), mt.tensor([2, 2])
    assert mt.div(a, b).dtype is mt.float32
    assert mt.div(a, b).tolist() == [3.5, -3.5]
    assert mt.div(a, b, rounding_mode="trunc").tolist() == [3, -3]
    assert mt.div(a, b, rounding_mode="floor").tolist() == [3, -4]


def test_MA14_exp_overflows_silently():
    assert mt.exp(mt.tensor([0.0, 1000.0])).tolist() == [1, math.inf]


def test_MA15_fmod_has_the_sign_of_the_dividend():
    x = mt.tensor([-3.0, 3.0])
    assert mt.fmod(x, 2).tolist() == [-1, 1]
    assert mt.fmod(x, mt.tensor([-2.0, -2.0])).tolist() == [-1, 1]


def test_MA16_remainder_has_the_sign_of_the_divisor():
    x = mt.tensor([-3.0, 3.0])
    assert mt.remainder(x, 2).tolist() == [1, 1]
    assert mt.remainder(x, mt.tensor([-2.0, -2.0])).tolist() == [-1, -1]


def test_MA17_frac_keeps_the_sign():
    _close(mt.frac(mt.tensor([1, 2.5, -3.2])), [0, 0.5, -0.2])


def test_MA18_lerp():
    start, end = mt.arange(1.0, 5.0), mt.empty(4).fill_(10)
    assert mt.lerp(start, end, 0.5).tolist() == [5.5, 6, 6.5, 7]
    assert mt.lerp(start, end, mt.full_like(start, 0.5)).tolist() == [5.5, 6, 6.5, 7]


def test_MA19_logarithms_and_neg():
    assert mt.log(mt.tensor([math.e])).item() == pytest.approx(1)
    assert mt.log10(mt.tensor([1000.0])).item() == pytest.approx(3)
    assert mt.log2(mt.tensor([8.0])).item() == pytest.approx(3)
    assert mt.neg(mt.tensor([1, -2])).tolist() == [-1, 2]


def test_MA20_pow():
    x = mt.tensor([1, 2, 3])
    assert mt.pow(x, 2).tolist() == (x**2).tolist() == [1, 4, 9]
    assert mt.pow(x, x).tolist() == [1, 4, 27]
    assert (2**x).tolist() == [2, 4, 8]
    assert (x**x).dtype is mt.int64
    assert not hasattr(mt, "power")


def test_MA21_reciprocal():
    x = mt.reciprocal(mt.tensor([2, 4]))
    assert x.dtype is mt.float32
    assert x.tolist() == [0.5, 0.25]


def test_MA22_sqrt_and_rsqrt():
    x = mt.tensor([4.0, -1.0])
    assert mt.sqrt(x)[0].item() == 2 and math.isnan(mt.sqrt(x)[1].item())
    assert mt.rsqrt(x)[0].item() == 0.5 and math.isnan(mt.rsqrt(x)[1].item())


def test_MA23_sigmoid_is_stable():
    assert mt.sigmoid(mt.tensor([-1e4, 0.0, 1e4])).tolist() == [0, 0.5, 1]


def test_MA24_sign():
    assert mt.sign(mt.tensor([-3.0, 0.0, 2.0])).tolist() == [-1, 0, 1]
    assert mt.sign(mt.tensor([-3])).dtype is mt.int64


def test_MA25_trunc_keeps_the_signed_zero():
    x = mt.trunc(mt.tensor([3.4742, 0.5466, -0.8008, -0.9079]))
    assert repr(x).startswith("tensor([3., 0., -0., -0.]")
    assert math.copysign(1, x[2].item()) == -1


def test_MA26_out_of_domain_is_silent_and_in_place_keeps_self():
    zero = mt.zeros(1)
    values = [(1 / zero), zero / zero, mt.log(zero), mt.log(zero - 1), mt.acos(zero + 2), mt.exp(zero + 1e3)]
    assert [str(v.item()) for v in values] == ["inf", "nan", "-inf", "nan", "nan", "inf"]
    x = same = mt.ones(2)
    x += 1
    x *= 3
    assert x is same and x.sqrt_() is x and x.add_(1) is x


# Broadcasting


def test_BC01_tensor_with_scalar():
    assert (mt.tensor([1.0, 2.0]) + 20).tolist() == [21, 22]


def test_BC02_same_shape():
    assert (mt.tensor([1.0, 2.0]) + mt.tensor([3.0, 4.0])).tolist() == [4, 6]


def test_BC03_4_with_2_1():
    assert (mt.arange(4) + mt.tensor([[10], [20]])).tolist() == [[10, 11, 12, 13], [20, 21, 22, 23]]


def test_BC04_1_3_with_3_1():
    assert (mt.tensor([[1, 2, 3]]) + mt.tensor([[0], [10], [20]])).tolist() == [[1, 2, 3], [11, 12, 13], [21, 22, 23]]


def test_BC05_1_3_with_3_3_sums_the_gradient_back():
    a, b = mt.ones(1, 3, requires_grad=True), mt.ones(3, 3)
    out = a + b
    assert out.shape == (3, 3)
    out.sum().backward()
    assert a.grad.tolist() == [[3, 3, 3]]


def test_BC06_incompatible_shapes_name_sizes_and_dim():
    with pytest.raises(RuntimeError, match=r"3.*4.*dim.* 1"):
        mt.ones(2, 3) + mt.ones(2, 4)


@pytest.mark.seed("TR07")
def test_BC07_losses_broadcast_silently_or_complain():
    column, row = mt.rand(4, 1), mt.rand(4)
    assert (column - row).shape == (4, 4)
    with pytest.warns(UserWarning, match="target size"):
        F.mse_loss(column, row)
    with pytest.raises(ValueError):
        mt.nn.BCELoss()(column, row)


# Reductions

A34 = [[0.7913, 0.9236, 0.0348, 0.5403], [0.4394, -0.4464, -0.6759, -0.3718], [-1.4133, 1.0612, 1.0322, -2.5048]]


def test_RE01_argmax():
    a = mt.tensor(A34)
    assert mt.argmax(a).item() == 9 and mt.argmax(a).shape == ()
    assert mt.argmax(a, dim=0).tolist() == [0, 2, 2, 0]
    assert mt.argmax(a, dim=1).tolist() == [1, 0, 1]
    assert mt.argmax(a, dim=1, keepdim=True).shape == (3, 1)
    assert mt.argmax(a).dtype is mt.int64


def test_RE02_argmin():
    a = mt.tensor(A34)
    assert mt.argmin(a).item() == 11
    assert mt.argmin(a, dim=0).tolist() == [2, 1, 1, 2]
    assert mt.argmin(a, dim=1).tolist() == [2, 2, 3]
    assert mt.argmin(a, dim=1, keepdim=True).shape == (3, 1)


def test_RE03_prod_has_the_right_gradient_with_zeros():
    x = mt.tensor([[2.0, 0.0, 3.0]], requires_grad=True)
    assert mt.prod(x).item() == 0
    assert mt.prod(x, 0).tolist() == [2, 0, 3]
    mt.prod(x).backward()
    assert x.grad.tolist() == [[0, 6, 0]]


def test_RE04_cumprod():
    a = mt.tensor([0.6001, 0.2069, -0.1919, 0.9792, 0.6727, 1.0062, 0.4126])
    _close(mt.cumprod(a, dim=0), [0.6001, 0.1241, -0.0238, -0.0233, -0.0157, -0.0158, -0.0065])
    a[5] = 0.0
    assert mt.cumprod(a, dim=0)[5:].tolist() == [0, 0]
    a = [[-0.4318, 0.4427, 0.0, -0.1199], [-0.2790, 0.9716, -0.9334, 1.1384], [-1.1763, 0.0, -1.4534, -1.2983]]
    a = mt.tensor(a)
    columns = [[-0.4318, 0.4427, 0.0, -0.1199], [0.1205, 0.4302, 0, -0.1365], [-0.1417, 0, 0, 0.1773]]
    rows = [[-0.4318, -0.1912, 0, 0], [-0.2790, -0.2711, 0.2530, 0.2880], [-1.1763, 0, 0, 0]]
    _close(mt.cumprod(a, dim=0), columns, 2e-4)
    _close(mt.cumprod(a, dim=1), rows, 2e-4)
    assert mt.cumprod(a, dim=0, dtype=mt.float64).dtype is mt.float64


def test_RE05_cumsum_accumulates_small_ints_in_int64():
    x = mt.cumsum(mt.tensor([100, 100], dtype=mt.int8), dim=0)
    assert x.dtype is mt.int64 and x.tolist() == [100, 200]
    assert mt.cumsum(mt.tensor([1.0, 2.0]), 0).tolist() == [1, 3]
    assert mt.cumsum(mt.tensor([1.0]), 0, dtype=mt.float64).dtype is mt.float64


def test_RE06_dist_is_the_norm_of_the_difference():
    a, b = mt.tensor([1.0, 5.0, 3.0]), mt.tensor([1.0, 2.0, -1.0])
    assert mt.dist(a, b).item() == pytest.approx(5)
    assert mt.dist(a, b).shape == ()
    found = [mt.dist(a, b, p).item() for p in (0, 1, 3, math.inf)]
    assert found == pytest.approx([2, 7, (27 + 64) ** (1 / 3), 4])


def test_RE07_mean():
    a = mt.tensor([[0.5877, 0.6770], [0.9455, 0.4647], [0.0451, 0.9079]])
    assert mt.mean(a).item() == pytest.approx(0.6047, abs=1e-4)
    _close(mt.mean(a, dim=1), [0.6323, 0.7051, 0.4765])
    _close(mt.mean(a, 1, True), [[0.6323], [0.7051], [0.4765]])
    _close(mt.mean(a, dim=1, keepdim=True), [[0.6323], [0.7051], [0.4765]])
    _close(mt.mean(a, dim=0), [0.5261, 0.6832])
    with pytest.raises(RuntimeError, match="dtype|float"):
        mt.mean(mt.tensor([1, 2]))


def test_RE08_median_is_the_lower_middle_value():
    assert mt.median(mt.tensor([4.0, 1.0, 3.0, 2.0])).item() == 2
    found = mt.median(mt.tensor([[4.0, 1.0, 3.0, 2.0]]), dim=1)
    assert found.values.tolist() == [2] and found.indices.tolist() == [3]


def test_RE09_norm():
    a = mt.tensor([[3.0, 4.0], [0.0, 12.0]])
    assert mt.norm(a).item() == pytest.approx(13)
    assert mt.norm(a, p=1).item() == pytest.approx(19)
    assert mt.norm(a, p=math.inf).item() == 12
    _close(mt.norm(a, dim=1, keepdim=True), [[5], [12]])


def test_RE10_std_and_var_are_unbiased():
    a = mt.tensor([[1.0, 2.0, 3.0, 4.0]])
    assert mt.var(a).item() == pytest.approx(5 / 3)
    assert mt.std(a).item() == pytest.approx(math.sqrt(5 / 3))
    assert mt.var(a, unbiased=False).item() == pytest.approx(1.25)
    _close(mt.var(a, dim=1, keepdim=True), [[5 / 3]])
    _close(mt.std(a, dim=1, unbiased=False), [math.sqrt(1.25)])


def test_RE11_sum():
    a = mt.arange(24.0).reshape(2, 3, 4)
    assert mt.sum(a).item() == 276
    assert mt.sum(a, 0).shape == (3, 4)
    assert mt.sum(a, [0, 1]).tolist() == mt.sum(a, (0, 1)).tolist() == [60, 66, 72, 78]
    assert mt.sum(a, dim=(1, 2), keepdim=True).shape == (2, 1, 1)
    assert mt.tensor([True, True]).sum().dtype is mt.int64
    assert mt.tensor([200, 100], dtype=mt.uint8).sum().item() == 300


def test_RE12_unique_sorts():
    assert mt.unique(mt.tensor([1, 3, 2, 3])).tolist() == [1, 2, 3]
    values, inverse = mt.unique(mt.tensor([[1, 3], [2, 3]]), sorted=True, return_inverse=True)
    assert values.tolist() == [1, 2, 3]
    assert inverse.tolist() == [[0, 2], [1, 2]]
    values, counts = mt.unique(mt.tensor([3, 1, 3]), return_counts=True)
    assert [values.tolist(), counts.tolist()] == [[1, 3], [1, 2]]
    assert mt.unique(mt.tensor([[2, 1], [0, 5], [2, 1]]), dim=0).tolist() == [[0, 5], [2, 1]]


@pytest.mark.seed("TR07")
def test_RE13_without_dim_everything_is_reduced():
    a = mt.rand(2, 3)
    assert [a.sum().shape, a.mean().shape, a.max().shape] == [(), (), ()]


def test_RE14_max_and_min_with_dim_are_named_tuples():
    a = mt.tensor([[1.0, 3.0], [5.0, 4.0]])
    found = a.max(dim=1)
    assert found.values.tolist() == [3, 5] and found.indices.tolist() == [1, 0]
    values, indices = mt.min(a, 0)
    assert [values.tolist(), indices.tolist()] == [[1, 3], [0, 0]]


def test_RE15_norm_can_be_compared():
    y, steps = mt.ones(3), 0
    while y.data.norm() < 1000:
        y, steps = y * 2, steps + 1
    assert steps == 10
    assert y.norm() > 1000


def test_RE16_the_rest_of_the_reductions():
    a, b = mt.tensor([1.0, 5.0]), mt.tensor([4.0, 2.0])
    assert mt.max(a, b).tolist() == [4, 5] and mt.min(a, b).tolist() == [1, 2]
    assert (a == b).tolist() == [False, False] and mt.equal(a, a)
    assert mt.all(a > 0).item() is True and mt.any(a > 4, dim=0).item() is True
    assert mt.logsumexp(mt.tensor([1000.0, 1000.0]), 0).item() == pytest.approx(1000 + math.log(2))
    assert mt.topk(a, 1).values.tolist() == [5] and mt.sort(b).indices.tolist() == [1, 0]
    assert mt.isnan(a).tolist() == [False, False] and mt.allclose(a, a)
    assert mt.kthvalue(a, 2).values.item() == 5 and mt.mode(mt.tensor([2, 1, 2])).values.item() == 2
