"""Making tensors: what `out=` decides, counting, the range that random integers may have, old constructors."""

import math
import struct

import pytest

import mortice as mt


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda out: mt.full((2,), 2.75, out=out), [2, 2]),
        (lambda out: mt.zeros(2, out=out), [0, 0]),
        (lambda out: mt.ones(1, 2, out=out), [[1, 1]]),
        (lambda out: mt.eye(2, out=out), [[1, 0], [0, 1]]),
        (lambda out: mt.arange(1.5, 4, out=out), [1, 2, 3]),
        (lambda out: mt.linspace(0, 9, 4, out=out), [0, 3, 6, 9]),
        (lambda out: mt.logspace(0, 3, 4, base=2, out=out), [1, 2, 4, 8]),
        (lambda out: mt.randint(7, 8, (2,), out=out), [7, 7]),
    ],
)
def test_a_tensor_given_as_out_decides_the_dtype(make, expected):
    out = mt.empty(0, dtype=mt.int64)
    assert make(out) is out and out.dtype is mt.int64 and out.tolist() == expected


@pytest.mark.parametrize("make", [mt.zeros, mt.ones, mt.empty, mt.rand, mt.randn, mt.arange, mt.eye, mt.randperm])
def test_another_dtype_than_that_of_out_is_refused(make):
    with pytest.raises(RuntimeError, match="dtype mortice.float64 does not match dtype of out parameter"):
        make(3, dtype=mt.float64, out=mt.empty(3))


@pytest.mark.parametrize("make", [mt.zeros, mt.ones, mt.empty])
def test_another_layout_than_that_of_out_is_refused(make):
    with pytest.raises(RuntimeError, match="layout mortice.sparse_coo does not match layout of out parameter"):
        make(3, layout=mt.sparse_coo, out=mt.empty(3))
    assert make(3, layout=mt.strided, out=mt.empty(3)).shape == (3,)


@pytest.mark.parametrize("make", [mt.zeros, mt.ones, mt.empty, mt.rand, mt.randn])
def test_unknown_keywords_are_refused(make):
    with pytest.raises(TypeError, match="got an unexpected keyword argument 'dtyp'"):
        make(2, dtyp=mt.int64)


@pytest.mark.parametrize("make", [mt.zeros, mt.ones, mt.empty, mt.rand, mt.randn])
def test_sizes_are_given_once(make):
    assert make(size=(2,)).shape == (2,)
    with pytest.raises(TypeError, match="got multiple values for argument 'size'"):
        make(2, size=(2,))


@pytest.mark.filterwarnings("ignore:mortice.range is deprecated")
def test_what_is_counted_keeps_the_shape_of_out():
    frame = mt.zeros(2, 4)
    for make, row in (
        (lambda out: mt.arange(4, out=out), [0, 1, 2, 3]),
        (lambda out: mt.range(5, 8, out=out), [5, 6, 7, 8]),
        (lambda out: mt.linspace(2, 8, 4, out=out), [2, 4, 6, 8]),
    ):
        make(frame[:, 1:3])
        assert frame.tolist() == [[0, row[0], row[1], 0], [0, row[2], row[3], 0]]


def test_out_takes_requires_grad_and_complex_draws():
    out = mt.zeros(3)
    assert mt.ones(3, out=out, requires_grad=True) is out and out.requires_grad
    mt.manual_seed(4)
    drawn = mt.randn(5, dtype=mt.complex64)
    mt.manual_seed(4)
    assert mt.equal(mt.randn(5, out=mt.empty(5, dtype=mt.complex64)), drawn) and drawn.imag.abs().min() > 0


def test_spacing_between_complex_numbers():
    assert mt.logspace(0, 1j, 2).dtype is mt.complex64 and mt.linspace(0, 2j, 3).tolist() == [0, 1j, 2j]
    for make in (mt.linspace, mt.logspace):
        with pytest.raises(RuntimeError, match="can't be safely cast to passed dtype mortice.float32"):
            make(0, 1j, 3, dtype=mt.float32)
    with pytest.raises(TypeError):
        mt.logspace(0, 1, 3, base=2j)


def test_both_parts_of_complex_numbers_are_drawn_from_the_range():
    assert (mt.view_as_real(mt.empty(200, dtype=mt.complex64).normal_(5, 0.5)).mean(0) - 5).abs().max() < 0.2
    drawn = mt.view_as_real(mt.empty(200, dtype=mt.complex64).uniform_(-3, -2))
    assert -3 <= drawn.min() < -2.9 and -2.1 < drawn.max() < -2


@pytest.mark.parametrize("steps", [1, 2, 3, 20, 129])
def test_linspace_counts_by_a_step_of_float32_from_both_ends(steps: int) -> None:
    def single(value: float) -> float:
        return float(mt.tensor(value, dtype=mt.float64).float().item())

    start, end = single(-1.219), single(1.3)
    step = single(single(end - start) / max(steps - 1, 1))
    up = [single(start + i * step) for i in range(steps // 2 or steps)]
    down = [single(end - i * step) for i in range(steps - len(up))]
    assert mt.linspace(-1.219, 1.3, steps).tolist() == up + down[::-1]


@pytest.mark.filterwarnings("ignore:mortice.range is deprecated")
def test_range_counts_in_integers():
    assert mt.range(1, 7, 3, dtype=mt.int64).tolist() == [1, 4, 7] and mt.range(0.5, 2).tolist() == [0.5, 1.5]
    assert mt.range(7, 2, -2, dtype=mt.int32).tolist() == [7, 5, 3]
    for start, end, step in ((0, 3, 0), (0, 3, -1), (3, 0, 1)):
        with pytest.raises(RuntimeError, match="lead from start to end"):
            mt.range(start, end, step)


@pytest.mark.parametrize(
    "make",
    [
        lambda: mt.arange(2**63 - 1),
        lambda: mt.arange(0, 1, 1e-300),
        lambda: mt.arange(1e-38, 3e38),
        lambda: mt.linspace(0, 1, 2**61),
        lambda: mt.zeros(2, 2**62),
        lambda: mt.eye(2**40, 2**40),
        lambda: mt.zeros(1).resize_(2**40, 2**40),
    ],
)
def test_more_elements_than_memory_can_count_are_refused(make):
    with pytest.raises(RuntimeError):
        make()


def test_a_step_that_is_zero_as_an_integer_is_refused():
    with pytest.raises(ValueError, match="which is 0 as int64"):
        mt.arange(0, 3, 0.25, dtype=mt.int64)


# ---- random numbers ----


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        (mt.bool, 0, 3), (mt.uint8, -1, 3), (mt.uint8, 0, 257), (mt.int8, -129, 0), (mt.int16, 0, 32769),
        (mt.float16, 0, 70000), (mt.float16, -70000, 0),
    ],
)  # fmt: skip
def test_integers_that_the_dtype_does_not_hold_are_refused(dtype, low, high):
    for draw in (
        lambda: mt.randint(low, high, (2,), dtype=dtype),
        lambda: mt.randint_like(mt.zeros(2, dtype=dtype), low, high),
        lambda: mt.zeros(2, dtype=dtype).random_(low, high),
    ):
        with pytest.raises(RuntimeError, match="is out of bounds for|expects to-from"):
            draw()


@pytest.mark.filterwarnings("ignore:.*Draws beyond are rounded")
@pytest.mark.parametrize(("low", "high"), [(32000, 32752), (-5000, -4096), (4090, 4097), (2048, 2051)])
def test_no_rounded_draw_reaches_the_end(low, high):
    mt.manual_seed(0)
    drawn = mt.empty(4000, dtype=mt.float16).random_(low, high)
    assert drawn.max().item() < high and drawn.min().item() >= low


def test_rounded_draws_are_told():
    with pytest.warns(UserWarning, match="within which mortice.float16 holds every integer"):
        mt.randint(0, 5000, (2,), dtype=mt.float16)
    with pytest.raises(NotImplementedError):
        mt.zeros(2, dtype=mt.complex64).random_()


def test_random_without_an_end_goes_to_the_last_of_the_dtype():
    mt.manual_seed(1)
    drawn = mt.empty(5000, dtype=mt.int8).random_(100, None)
    assert (drawn.min(), drawn.max()) == (100, 127)
    assert mt.empty(500, dtype=mt.int64).random_(-(2**63), None).min() < -(2**62)
    assert mt.empty(5000, dtype=mt.uint8).random_().max() == 255 and mt.empty(50).random_(3).max() == 2


@pytest.mark.parametrize(
    ("dtype", "low", "high"), [(mt.float32, -1e39, 0.0), (mt.float32, -3e38, 3e38), (mt.float64, -1.7e308, 1.7e308)]
)
def test_uniform_numbers_stay_in_the_dtype(dtype, low, high):
    with pytest.raises(RuntimeError, match="is out of bounds for|expects to-from"):
        mt.zeros(2, dtype=dtype).uniform_(low, high)


def test_a_permutation_needs_a_dtype_that_tells_its_numbers_apart():
    assert mt.randperm(2049, dtype=mt.float16).unique().numel() == 2049
    for n, dtype in ((2050, mt.float16), (257, mt.uint8), (2, mt.bool)):
        with pytest.raises(RuntimeError, match="randperm"):
            mt.randperm(n, dtype=dtype)


# ---- data ----


def test_lists_inside_themselves_and_sequences_that_fail_are_no_data():
    data = [1.0]
    data.append(data)

    class Broken:
        def __len__(self):
            return 2

        def __getitem__(self, i):
            raise TypeError("no items")

    for make in (mt.tensor, mt.as_tensor, mt.asarray):
        with pytest.raises(TypeError, match="inside itself"):
            make(data)
        with pytest.raises(ValueError, match="could not determine the shape of object type Broken"):
            make(Broken())


@pytest.mark.parametrize("make", [mt.tensor, mt.as_tensor, mt.asarray])
def test_what_is_no_number_is_refused_in_pytorchs_words(make):
    with pytest.raises(TypeError, match=r"new\(\): invalid data type 'str'"):
        make("a duck")
    with pytest.raises(RuntimeError, match="Could not infer dtype of object"):
        make([object()])


def test_a_capsule_is_memory_to_share():
    x = mt.arange(3.0)
    shared = mt.asarray(x.__dlpack__())
    shared[0] = 5
    assert x.tolist() == [5, 1, 2]
    copied = mt.asarray(x.__dlpack__(), copy=True)
    copied[0] = 6
    assert x[0] == 5
    with pytest.raises(ValueError):
        mt.asarray(x.__dlpack__(), copy=False, dtype=mt.float64)


def test_a_number_of_numpys_has_no_memory_to_alias():
    number = pytest.importorskip("numpy").float64(0.5)
    assert mt.asarray(number).item() == 0.5
    for kind in (ValueError, RuntimeError):
        with pytest.raises(kind, match="can't alias"):
            mt.asarray(number, copy=False)


def test_fills_and_draws_resize_out_in_silence(recwarn):
    out = mt.ones(5)
    for make in (lambda: mt.zeros(3, out=out), lambda: mt.eye(2, out=out), lambda: mt.rand(4, out=out)):
        assert make() is out
    assert out.shape == (4,) and not recwarn.list
    with pytest.warns(UserWarning, match="was resized since it had shape"):
        mt.exp(mt.ones(2), out=out)


def test_typed_classes_are_of_the_cpu():
    assert mt.FloatTensor([1, 2], device="cpu").tolist() == [1, 2] and mt.LongTensor(device="cpu").shape == (0,)
    with pytest.raises(RuntimeError, match="expects device type: cpu; got cuda"):
        mt.FloatTensor(2, device="cuda")
    x = mt.ones(2)
    for make in (lambda: mt.Tensor(x, device="cpu"), lambda: x.new(x, device="cpu")):
        with pytest.raises(RuntimeError, match="not both"):
            make()
    assert x.new(x).tolist() == mt.Tensor(x).tolist() == [1, 1]


LIKE = {
    "zeros": mt.zeros_like, "ones": mt.ones_like, "empty": mt.empty_like, "full": lambda x, **k: mt.full_like(x, 3, **k),
    "rand": mt.rand_like, "randn": mt.randn_like, "randint": lambda x, **k: mt.randint_like(x, 9, **k),
}  # fmt: skip


@pytest.mark.parametrize("name", LIKE)
def test_what_is_made_like_a_tensor_lies_in_its_order(name):
    like, image = LIKE[name], mt.ones(2, 3, 4, 5)
    for x in (image.to(memory_format=mt.channels_last), image.permute(3, 1, 0, 2), mt.ones(3, 4).t()):
        made = like(x)
        assert made.shape == x.shape and made.stride() == x.stride() and made._base is None and made.is_leaf
        assert like(x, memory_format=mt.contiguous_format).is_contiguous()
    for x in (image[:, :, ::2], image[:1].expand(2, 3, 4, 5)):
        assert like(x).is_contiguous()
    assert like(image.permute(3, 1, 0, 2)[1:, :, :1]).stride() == (1, 16, 48, 4)  # without the gaps
    assert like(image, memory_format=mt.channels_last).is_contiguous(memory_format=mt.channels_last)


@pytest.mark.parametrize("value", [0.1, -2.5e38, 3.4e38, 1e40, -1e40, math.inf, math.nan, 7, True, 1 << 62, 1.003906251])
@pytest.mark.parametrize("dtype", [None, "float64", "float32", "bfloat16", "float16", "bool"])
def test_a_number_alone_is_what_it_is_in_a_list(value, dtype):
    d = None if dtype is None else getattr(mt, dtype)
    alone, listed = mt.tensor(value, dtype=d), mt.tensor([value], dtype=d)
    assert alone.dtype is listed.dtype and str(alone.item()) == str(listed.item()) and alone.shape == ()


def test_a_bfloat16_is_rounded_from_float():
    # Just above the middle of two: a tie once it is a float, which goes to the even one, as in PyTorch.
    assert mt.full((1,), 1.003906251, dtype=mt.bfloat16).item() == mt.zeros(1, dtype=mt.bfloat16).fill_(1.003906251).item() == 1


@pytest.mark.parametrize("fill", [mt.ones((), requires_grad=True), mt.ones(1)], ids=["with a gradient", "with a dim"])
def test_a_tensor_fills_only_where_it_is_a_number(fill):
    for name, make in (("full", lambda: mt.full((2,), fill)), ("full_like", lambda: mt.full_like(mt.ones(2), fill)),
                       ("new_full", lambda: mt.ones(2).new_full((2,), fill))):  # fmt: skip
        with pytest.raises(TypeError, match=f"{name}: expected a number for fill_value; got a Tensor "):
            make()
    assert mt.full((2,), mt.tensor(3.0)).tolist() == [3, 3]


NUMBERS = {
    "full": lambda v, d: mt.full((2,), v, dtype=d),
    "full_like": lambda v, d: mt.full_like(mt.ones(2, dtype=d), v),
    "new_full": lambda v, d: mt.ones(2, dtype=d).new_full((2,), v),
    "fill_": lambda v, d: mt.ones(2, dtype=d).fill_(v),
    "masked_fill": lambda v, d: mt.ones(2, dtype=d).masked_fill(mt.tensor([True, True]), v),
    "masked_fill_": lambda v, d: mt.ones(2, dtype=d).masked_fill_(mt.tensor([True, True]), v),
    "scatter": lambda v, d: mt.ones(2, dtype=d).scatter(0, mt.tensor([0, 1]), v),
    "index_fill": lambda v, d: mt.ones(2, dtype=d).index_fill(0, mt.tensor([0, 1]), v),
    "pad": lambda v, d: mt.nn.functional.pad(mt.ones(0, dtype=d), (1, 1), value=v),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_that_overflows_the_dtype_is_refused_and_infinity_is_not(name):
    fill = NUMBERS[name]
    for value, d in ((1e39, mt.float32), (1e39, mt.bfloat16), (1e5, mt.float16)):
        with pytest.raises(RuntimeError, match=f"value cannot be converted to type {d.name} without overflow"):
            fill(value, d)
        assert fill(math.inf, d).tolist() == [math.inf, math.inf]
        assert all(math.isnan(v) for v in fill(math.nan, d).tolist())
    assert fill(65504.0, mt.float16).tolist() == [65504.0, 65504.0]
    assert fill(1e39, mt.float64).tolist() == [1e39, 1e39]


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_alpha_that_overflows_is_refused_and_an_operand_is_not():
    x, half = mt.ones(2), mt.ones(2, dtype=mt.float16)
    for wrong in (lambda: mt.add(x, x, alpha=1e39), lambda: x.sub_(x, alpha=1e39)):
        with pytest.raises(RuntimeError, match="value cannot be converted to type float32 without overflow"):
            wrong()
    assert (x + 1e39).tolist() == (mt.tensor([1]) * 1e39).tolist() + [math.inf] == [math.inf] * 2
    assert (half * 1e6).tolist() == [math.inf, math.inf] and (half < 1e6).all()
    assert (1e39 / x).tolist() == [math.inf, math.inf]
    mask = mt.tensor([True, False])
    assert mt.where(mask, half, -1e9).tolist() == [1.0, -math.inf] == mt.where(~mask, -1e9, half).tolist()
    assert mt.addcmul(half, half, half, value=1e9).tolist() == [math.inf, math.inf]
    assert mt.lerp(half, half, 1e9).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    "count", [lambda **d: mt.arange(2, **d), lambda **d: mt.linspace(0, 1, 2, **d), lambda **d: mt.logspace(0, 1, 2, **d)]
)
def test_bools_do_not_count(count):
    with pytest.raises(RuntimeError, match="not implemented for mortice.bool; expected a dtype that counts"):
        count(dtype=mt.bool)
    with pytest.raises(RuntimeError, match="not implemented for mortice.bool"):
        count(out=mt.empty(2, dtype=mt.bool))


@pytest.mark.oracle
def test_full_of_numbers_that_another_library_has_made_has_pytorch_s_dtypes() -> None:
    np, torch = pytest.importorskip("numpy"), pytest.importorskip("torch")
    for value in (np.bool_(True), np.int32(1), np.float64(1), True, 1, 1.0):
        assert mt.full((2,), value).dtype.name == str(torch.full((2,), value).dtype).partition(".")[2], value
    assert mt.full((2,), mt.tensor(True)).dtype is mt.bool


@pytest.mark.parametrize("draw", ["uniform_", "normal_", "exponential_", "cauchy_", "log_normal_"])
def test_continuous_numbers_are_not_drawn_into_integers(draw):
    with pytest.raises(RuntimeError, match=f"{draw}: not implemented for mortice.int32; expected a floating point dtype"):
        getattr(mt.zeros(3, dtype=mt.int32), draw)()


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int64"])
@pytest.mark.parametrize("steps", [49, 50, 2, 1, 0])
def test_logspace_has_the_numbers_of_pytorch_to_the_last_bit(dtype, steps):
    torch = pytest.importorskip("torch")
    for start, end, base in ((0, 3, 10), (-2.5, 2.7, 2.0), (3, -1, 3.3), (0, 400, 10), (-3, 3, -2.0), (-2, 2, 0.0)):
        if dtype == "int64" and (end > 9 or base <= 0):
            continue  # what is no integer has none in C either
        mine, theirs = (t.logspace(start, end, steps, base=base, dtype=getattr(t, dtype)) for t in (mt, torch))
        assert str(mine.tolist()) == str(theirs.tolist())


@pytest.mark.parametrize(("base", "end", "expected"), [(-2.0, 3, -8.0), (0.0, -1, math.inf), (10, 400, math.inf), (-10, 401, -math.inf)])
def test_logspace_of_what_no_double_holds_is_infinite(base, end, expected):
    assert mt.logspace(end, end, 2, base=base).tolist() == [expected] * 2
    assert mt.isnan(mt.logspace(0.5, 0.5, 1, base=-1.0)).item()


@pytest.mark.parametrize(
    ("start", "end", "steps", "base"), [(0, 3, 1001, 10.0), (-2.5, 7, 50, 3.0), (1, -30, 7, 0.3), (2, 5, 1, 2.0), (0, 1, 0, 7.0)]
)
def test_logspace_rounds_the_powers_of_python(start, end, steps, base):
    half = steps // 2 or steps
    step = struct.unpack("f", struct.pack("f", end - start))[0] / (steps - 1) if steps > 1 else 0.0
    powers = [base ** (start + step * i if i < half else end - step * (steps - i - 1)) for i in range(steps)]
    assert mt.logspace(start, end, steps, base).tolist() == list(struct.unpack(f"{steps}f", struct.pack(f"{steps}f", *powers)))


@pytest.mark.parametrize("dtype", [mt.float16, mt.bfloat16])
@pytest.mark.filterwarnings("error")
def test_one_half_may_become_infinite_as_in_pytorch(dtype: mt.dtype) -> None:
    assert mt.full((1,), -1e300, dtype=dtype).item() == -mt.inf == mt.zeros(1, dtype=dtype).fill_(-1e300).item()
    x = mt.zeros(2, dtype=dtype)
    for write in (lambda: x.fill_(1e300), lambda: mt.full((2,), 1e300, dtype=dtype), lambda: x.masked_fill(x == 0, 1e300)):
        with pytest.raises(RuntimeError, match="value cannot be converted to type b?float16 without overflow"):
            write()
    x[0] = 1e300
    assert x.tolist() == [mt.inf, 0]


def test_a_complex_number_without_an_imaginary_part_fills_what_is_real() -> None:
    for dtype in (mt.int8, mt.uint8, mt.float16, mt.float64):
        assert mt.full((2,), 2 + 0j, dtype=dtype).tolist() == [2, 2]
        with pytest.raises(RuntimeError, match=f"full: value cannot be converted to type {dtype.name} without overflow"):
            mt.full((2,), 2 + 1j, dtype=dtype)
    assert mt.full((2,), 1j, dtype=mt.bool).tolist() == [True, True]


def test_one_float_may_not() -> None:
    x = mt.zeros(2)
    for write in (lambda: x.__setitem__(0, 1e300), lambda: x[0].fill_(1e300), lambda: mt.full((), 1e300)):
        with pytest.raises(RuntimeError, match="value cannot be converted to type float32 without overflow"):
            write()
    x[0] = mt.inf
    assert x.tolist() == [mt.inf, 0]


@pytest.mark.parametrize("dtype", [mt.float32, mt.float64])
def test_logspace_of_more_than_any_memory_is_refused_at_once(dtype: mt.dtype) -> None:
    with pytest.raises(RuntimeError, match=r"logspace: Storage size calculation overflowed with sizes=\[9223372036854775808\]"):
        mt.logspace(0, 1, 1 << 63, dtype=dtype)
    with pytest.raises((RuntimeError, MemoryError), match="logspace: .*can't allocate memory"):
        mt.logspace(0, 1, 1 << 45, dtype=dtype)


def test_eye_of_bools_is_written_as_bools():  # a backend may refuse the number 1 there
    assert mt.eye(2, 3, dtype=mt.bool).tolist() == [[True, False, False], [False, True, False]]
