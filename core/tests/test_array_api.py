"""The array API namespace: its names and signatures, special cases, dtypes, devices, exchange, gradients.

The public suite (`mortice-conformance array-api`) tests far more; what is here needs neither it nor NumPy.
"""

import importlib.util
import inspect
import math
import subprocess
import sys

import pytest

import mortice as mt
import mortice.array_api as xp

INF, NAN = math.inf, math.nan
STRICT = importlib.util.find_spec("mortice_conformance") is not None
BACKENDS = [mt.default_backend(), *(["strict"] if STRICT else [])]


@pytest.fixture(params=BACKENDS, autouse=True)
def backend(request):
    """Run each test on the default backend, and on the strict one where the conformance kit is installed."""
    with mt.use_backend(request.param):
        yield request.param


def same(have, want):
    """Compare numbers, the signs of zeros and nan included."""
    if isinstance(want, complex):
        return same(have.real, want.real) and same(have.imag, want.imag)
    return math.isnan(have) if math.isnan(want) else have == want and math.copysign(1, have) == math.copysign(1, want)


def check(t, want):
    values = t.reshape(-1).tolist()
    assert len(values) == len(want) and all(map(same, values, want)), f"{values} where {want} was due"


# ---- names and signatures ----

# Each function of the standard with its parameters: "/" ends the positional ones, "*" begins those by name alone.
MAIN = """
abs(x,/) acos(x,/) acosh(x,/) add(x1,x2,/) asin(x,/) asinh(x,/) atan(x,/) atan2(x1,x2,/) atanh(x,/)
bitwise_and(x1,x2,/) bitwise_left_shift(x1,x2,/) bitwise_invert(x,/) bitwise_or(x1,x2,/) bitwise_right_shift(x1,x2,/)
bitwise_xor(x1,x2,/) ceil(x,/) clip(x,/,min,max) conj(x,/) copysign(x1,x2,/) cos(x,/) cosh(x,/) divide(x1,x2,/)
equal(x1,x2,/) exp(x,/) expm1(x,/) floor(x,/) floor_divide(x1,x2,/) greater(x1,x2,/) greater_equal(x1,x2,/)
hypot(x1,x2,/) imag(x,/) isfinite(x,/) isinf(x,/) isnan(x,/) less(x1,x2,/) less_equal(x1,x2,/) log(x,/) log1p(x,/)
log2(x,/) log10(x,/) logaddexp(x1,x2,/) logical_and(x1,x2,/) logical_not(x,/) logical_or(x1,x2,/)
logical_xor(x1,x2,/) maximum(x1,x2,/) minimum(x1,x2,/) multiply(x1,x2,/) negative(x,/) nextafter(x1,x2,/)
not_equal(x1,x2,/) positive(x,/) pow(x1,x2,/) real(x,/) reciprocal(x,/) remainder(x1,x2,/) round(x,/) sign(x,/)
signbit(x,/) sin(x,/) sinh(x,/) square(x,/) sqrt(x,/) subtract(x1,x2,/) tan(x,/) tanh(x,/) trunc(x,/)
arange(start,/,stop,step,*,dtype,device) asarray(obj,/,*,dtype,device,copy) empty(shape,*,dtype,device)
empty_like(x,/,*,dtype,device) eye(n_rows,n_cols,/,*,k,dtype,device) from_dlpack(x,/,*,device,copy)
full(shape,fill_value,*,dtype,device) full_like(x,/,fill_value,*,dtype,device)
linspace(start,stop,/,num,*,dtype,device,endpoint) ones(shape,*,dtype,device) ones_like(x,/,*,dtype,device)
tril(x,/,*,k) triu(x,/,*,k) zeros(shape,*,dtype,device) zeros_like(x,/,*,dtype,device)
astype(x,dtype,/,*,copy,device) can_cast(from_,to,/) finfo(type,/) iinfo(type,/) isdtype(dtype,kind)
take(x,indices,/,*,axis) take_along_axis(x,indices,/,*,axis)
matmul(x1,x2,/) matrix_transpose(x,/) tensordot(x1,x2,/,*,axes) vecdot(x1,x2,/,*,axis)
broadcast_to(x,/,shape) concat(arrays,/,*,axis) expand_dims(x,/,axis) flip(x,/,*,axis)
moveaxis(x,source,destination,/) permute_dims(x,/,axes) repeat(x,repeats,/,*,axis) reshape(x,/,shape,*,copy)
roll(x,/,shift,*,axis) squeeze(x,/,axis) stack(arrays,/,*,axis) tile(x,repetitions,/) unstack(x,/,*,axis)
argmax(x,/,*,axis,keepdims) argmin(x,/,*,axis,keepdims) count_nonzero(x,/,*,axis,keepdims) nonzero(x,/)
searchsorted(x1,x2,/,*,side,sorter) where(condition,x1,x2,/)
isin(x1,x2,/,*,invert) unique_all(x,/) unique_counts(x,/) unique_inverse(x,/) unique_values(x,/)
argsort(x,/,*,axis,descending,stable) sort(x,/,*,axis,descending,stable)
cumulative_prod(x,/,*,axis,dtype,include_initial) cumulative_sum(x,/,*,axis,dtype,include_initial)
max(x,/,*,axis,keepdims) mean(x,/,*,axis,keepdims) min(x,/,*,axis,keepdims) prod(x,/,*,axis,dtype,keepdims)
std(x,/,*,axis,correction,keepdims) sum(x,/,*,axis,dtype,keepdims) var(x,/,*,axis,correction,keepdims)
all(x,/,*,axis,keepdims) any(x,/,*,axis,keepdims) diff(x,/,*,axis,n,prepend,append)
__array_namespace_info__()
"""
VARIADIC = "meshgrid broadcast_arrays broadcast_shapes result_type"
LINALG = """
cholesky(x,/,*,upper) cross(x1,x2,/,*,axis) det(x,/) diagonal(x,/,*,offset) eigh(x,/) eigvalsh(x,/) eig(x,/)
eigvals(x,/) inv(x,/) matmul(x1,x2,/) matrix_norm(x,/,*,keepdims,ord) matrix_power(x,n,/) matrix_rank(x,/,*,rtol)
matrix_transpose(x,/) outer(x1,x2,/) pinv(x,/,*,rtol) qr(x,/,*,mode) slogdet(x,/) solve(x1,x2,/)
svd(x,/,*,full_matrices) svdvals(x,/) tensordot(x1,x2,/,*,axes) trace(x,/,*,offset,dtype) vecdot(x1,x2,/,*,axis)
vector_norm(x,/,*,axis,keepdims,ord)
"""
FFT = """
fft(x,/,*,n,axis,norm) ifft(x,/,*,n,axis,norm) fftn(x,/,*,s,axes,norm) ifftn(x,/,*,s,axes,norm) rfft(x,/,*,n,axis,norm)
irfft(x,/,*,n,axis,norm) rfftn(x,/,*,s,axes,norm) irfftn(x,/,*,s,axes,norm) hfft(x,/,*,n,axis,norm)
ihfft(x,/,*,n,axis,norm) fftfreq(n,/,*,d,dtype,device) rfftfreq(n,/,*,d,dtype,device) fftshift(x,/,*,axes)
ifftshift(x,/,*,axes)
"""
INFO = "capabilities() default_device() default_dtypes(*,device) devices() dtypes(*,device,kind)"
DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128".split()
METHODS = """
abs add and array_namespace bool complex dlpack dlpack_device eq float floordiv ge getitem gt index int invert le lshift
lt matmul mod mul ne neg or pos pow rshift setitem sub truediv xor radd rand rfloordiv rlshift rmatmul rmod rmul ror rpow
rrshift rsub rtruediv rxor iadd iand ifloordiv ilshift imod imul ior ipow irshift isub itruediv ixor
""".split()


def _listed():
    for namespace, text in ((xp, MAIN), (xp.linalg, LINALG), (xp.fft, FFT), (xp.Info(), INFO)):
        for entry in text.split():
            name, _, rest = entry.rstrip(")").partition("(")
            parts = [p for p in rest.split(",") if p]
            yield pytest.param(getattr(namespace, name), parts, id=f"{getattr(namespace, '__name__', 'info')}.{name}")


@pytest.mark.parametrize(("fn", "parts"), list(_listed()))
def test_every_function_takes_the_standards_arguments(fn, parts):
    have = list(inspect.signature(fn).parameters.values())
    named = "*" in parts
    before, after = (parts[: parts.index("*")], parts[parts.index("*") + 1 :]) if named else (parts, [])
    positional, either = (before[: before.index("/")], before[before.index("/") + 1 :]) if "/" in before else ([], before)
    for i in range(len(positional)):
        assert have[i].kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    for i, name in enumerate(either, len(positional)):
        assert have[i].name == name and have[i].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    by_name = {p.name for p in have if p.kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)}
    assert set(after) <= by_name
    assert fn.__doc__


def test_the_namespace_has_the_rest_of_the_standards_names():
    for name in [*DTYPES, *VARIADIC.split(), "e", "inf", "nan", "newaxis", "pi", "fft", "linalg"]:
        assert hasattr(xp, name), name
    assert (xp.e, xp.pi, xp.inf, xp.newaxis) == (math.e, math.pi, INF, None) and math.isnan(xp.nan)
    assert xp.__array_api_version__ == "2025.12"


def test_tensors_have_the_standards_attributes_and_methods():
    t = xp.ones((2, 3))
    assert [name for name in METHODS if not hasattr(mt.Tensor, f"__{name}__")] == []
    assert t.ndim == 2 and t.size == 6 and t.shape == (2, 3) and t.T.shape == t.mT.shape == (3, 2)
    assert t.to_device(t.device) is t
    with pytest.raises(ValueError, match="expected no stream"):
        t.to_device(t.device, stream=1)


def test_a_tensor_knows_its_namespace():
    t = mt.ones(1)
    for version in (None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12"):
        assert t.__array_namespace__(api_version=version) is xp
    with pytest.raises(ValueError, match=r"expected a version among 2021\.12, .*; got '2020\.01'"):
        t.__array_namespace__(api_version="2020.01")


def test_importing_mortice_does_not_load_the_namespace():
    code = "import sys, mortice; assert 'mortice.array_api' not in sys.modules; mortice.array_api.ones"
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- special cases ----

# Dividend, divisor, and the floor of their quotient.
QUOTIENTS = [
    (INF, 2.0, INF), (INF, -2.0, -INF), (-INF, 2.0, -INF), (-INF, -2.0, INF), (3.0, INF, 0.0), (3.0, -INF, -0.0),
    (-3.0, INF, -0.0), (-3.0, -INF, 0.0), (INF, INF, NAN), (INF, -INF, NAN), (0.0, 0.0, NAN), (NAN, 1.0, NAN),
    (1.0, NAN, NAN), (INF, NAN, NAN), (0.0, INF, 0.0), (0.0, -INF, -0.0), (-0.0, INF, -0.0), (INF, 0.0, INF),
    (1.0, 0.0, INF), (1.0, -0.0, -INF), (-7.0, 2.0, -4.0), (7.0, 2.0, 3.0), (1.0, 0.1, 9.0),
]  # fmt: skip


def test_floor_divide_follows_the_standard_at_infinity():
    x, y, want = (list(column) for column in zip(*QUOTIENTS))
    a, b = xp.asarray(x, dtype=xp.float64), xp.asarray(y, dtype=xp.float64)
    check(xp.floor_divide(a, b), want)
    check(a // b, want)
    c = xp.asarray(a, copy=True)
    c //= b
    check(c, want)
    for p, q, r in QUOTIENTS:
        check(xp.asarray([p], dtype=xp.float64) // q, [r])
        check(p // xp.asarray([q], dtype=xp.float64), [r])


def test_the_torch_named_floor_divide_stays_as_pytorch_has_it():
    x, y = mt.tensor([INF, 3.0, -3.0]), mt.tensor([2.0, -INF, INF])
    check(mt.floor_divide(x, y), [NAN, -1.0, -1.0])
    check(mt.div(x, y, rounding_mode="floor"), [NAN, -1.0, -1.0])


def test_floor_divide_of_integers_rounds_down():
    check(xp.floor_divide(xp.asarray([-7, 7, -7]), xp.asarray([2, -2, -2])), [-4, -4, 3])
    with pytest.raises(RuntimeError, match="floor_divide: ZeroDivisionError"):
        xp.asarray([1]) // 0


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_expm1_of_complex_numbers_follows_the_standard(dtype):
    cases = {
        complex(0.0, 0.0): 0j, complex(-0.0, 0.0): 0j, complex(INF, 0.0): complex(INF, 0.0),
        complex(1.0, INF): complex(NAN, NAN), complex(1.0, NAN): complex(NAN, NAN), complex(NAN, 0.0): complex(NAN, 0.0),
        complex(NAN, 1.0): complex(NAN, NAN), complex(NAN, NAN): complex(NAN, NAN),
    }  # fmt: skip
    check(xp.expm1(xp.asarray(list(cases), dtype=getattr(xp, dtype))), list(cases.values()))
    # The sign of one part is unspecified here.
    for z, re, im in ((complex(-INF, INF), -1.0, 0.0), (complex(-INF, NAN), -1.0, 0.0), (complex(INF, INF), INF, NAN),
                      (complex(INF, NAN), INF, NAN)):  # fmt: skip
        got = xp.expm1(xp.asarray(z, dtype=getattr(xp, dtype))).item()
        assert same(abs(got.real) if re == INF else got.real, re) and same(abs(got.imag), im)
    small = xp.expm1(xp.asarray(1e-10 + 1e-10j, dtype=xp.complex128)).item()
    assert abs(small - (1e-10 + 1e-10j + 1e-20j)) < 1e-25


def test_signs_of_zeros_and_nan_are_the_standards():
    check(xp.signbit(xp.asarray([NAN, -NAN, -0.0, 0.0, -INF, 2.0])), [False, True, True, False, True, False])
    check(xp.sign(xp.asarray([complex(-0.0, -0.0), complex(0.0, -2.0), complex(NAN, 1.0)])), [0j, complex(0.0, -1.0), complex(NAN, NAN)])
    ends = xp.tanh(xp.asarray([complex(INF, 2.0), complex(INF, -2.0), complex(-INF, 2.0)]))
    check(ends, [complex(1.0, 0.0), complex(1.0, -0.0), complex(-1.0, 0.0)])
    check(xp.round(xp.asarray([0.5 + 1.5j, -0.5 - 2.5j])), [complex(0.0, 2.0), complex(-0.0, -2.0)])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_special_cases_that_the_public_suite_cannot_read(dtype):
    def at(fn, z):
        return fn(xp.asarray(z, dtype=getattr(xp, dtype))).item()

    sign = math.copysign
    for b in (0.7, 2.0, -2.0, 4.0):
        re, im = math.cos(b), math.sin(b)
        turned = complex(sign(INF, re), sign(INF, im))
        assert all(same(at(fn, complex(INF, b)), turned) for fn in (xp.exp, xp.expm1, xp.cosh, xp.sinh))
        assert same(at(xp.exp, complex(-INF, b)), complex(sign(0.0, re), sign(0.0, im)))
        assert same(at(xp.expm1, complex(-INF, b)), complex(-1.0, sign(0.0, im)))
    assert same(at(xp.sqrt, complex(-INF, 2.0)), complex(0.0, INF))
    for part in (1.0, NAN):
        assert at(xp.abs, complex(INF, part)) == at(xp.abs, complex(part, -INF)) == INF
        assert same(at(xp.sqrt, complex(part, INF)), complex(INF, INF))
    assert same(at(xp.atanh, complex(NAN, -4.6e16)), complex(NAN, NAN)) and at(xp.atanh, complex(NAN, INF)).imag > 1.5
    assert xp.hypot(xp.asarray(INF), xp.asarray(NAN)).item() == INF
    assert same((xp.asarray(complex(-0.0, 0.0)) + xp.asarray(complex(-0.0, -0.0))).item(), complex(-0.0, 0.0))


def test_clip_may_be_open_at_both_ends_and_propagates_nan():
    x = xp.asarray([1.0, 5.0, NAN])
    check(xp.clip(x), [1.0, 5.0, NAN])
    assert xp.clip(x) is not x
    check(xp.clip(x, max=2), [1.0, 2.0, NAN])
    check(xp.clip(x, xp.asarray(NAN), None), [NAN, NAN, NAN])


# ---- dtypes ----


def test_dtypes_of_results_follow_kinds_and_not_shapes():
    assert (xp.asarray([1], dtype=xp.uint8) + xp.asarray(1, dtype=xp.int8)).dtype is xp.int16
    assert (xp.ones(2, dtype=xp.float32) + xp.asarray(1.0, dtype=xp.float64)).dtype is xp.float64
    assert (xp.ones(2, dtype=xp.float32) * 1j).dtype is xp.complex64
    assert xp.matmul(xp.ones((2, 2), dtype=xp.float32), xp.ones((2, 2), dtype=xp.float64)).dtype is xp.float64
    assert (xp.ones((2, 2), dtype=xp.int32) @ xp.ones(2, dtype=xp.int64)).dtype is xp.int64
    assert xp.sum(xp.ones(2, dtype=xp.uint8)).dtype is xp.uint64
    assert xp.prod(xp.ones(2, dtype=xp.int8)).dtype is xp.int64
    assert xp.cumulative_sum(xp.ones(2, dtype=xp.float32)).dtype is xp.float32
    assert xp.all(xp.ones(2, dtype=xp.uint8)).dtype is xp.bool


def test_result_type_takes_arrays_dtypes_and_numbers():
    assert xp.result_type(xp.int8, xp.ones(1, dtype=xp.uint8)) is xp.int16
    assert xp.result_type(xp.float32, 1.0, 2) is xp.float32
    assert xp.result_type(1j, xp.float64) is xp.complex128
    assert xp.result_type(True, xp.int8) is xp.int8
    with pytest.raises(TypeError, match="expected at least one array or dtype"):
        xp.result_type(1, 2.0)


def test_can_cast_asks_promotion_and_the_device():
    assert xp.can_cast(xp.int8, xp.int16) and not xp.can_cast(xp.int16, xp.int8)
    assert not xp.can_cast(xp.uint64, xp.int64)
    assert xp.can_cast(xp.ones(1, dtype=xp.float32), xp.float64)
    if "strict_f32" in map(str, xp.__array_namespace_info__().devices()):
        assert not xp.can_cast(xp.ones(1, dtype=xp.float32, device="strict_f32"), xp.float64)


def test_isdtype_knows_the_standards_kinds():
    assert xp.isdtype(xp.uint8, "integral") and xp.isdtype(xp.uint8, ("bool", "unsigned integer"))
    assert xp.isdtype(xp.complex64, "numeric") and not xp.isdtype(xp.bool, "numeric")
    assert xp.isdtype(xp.float32, xp.float32) and not xp.isdtype(xp.float32, xp.float64)
    with pytest.raises(ValueError, match="expected a dtype or one of bool, "):
        xp.isdtype(xp.float32, "float")


def test_limits_take_arrays_and_name_their_dtype():
    found = xp.finfo(xp.ones(1, dtype=xp.complex128))
    assert (found.bits, found.eps, found.dtype) == (64, 2.0**-52, xp.float64)
    found = xp.iinfo(xp.uint16)
    assert (found.bits, found.min, found.max, found.dtype) == (16, 0, 65535, xp.uint16)


def test_astype_copies_unless_told_and_refuses_to_drop_imaginary_parts():
    x = xp.ones(2)
    assert xp.astype(x, xp.float32, copy=False) is x and xp.astype(x, xp.float32) is not x
    with pytest.raises(TypeError, match="expected a complex dtype for complex numbers"):
        xp.astype(xp.ones(1, dtype=xp.complex64), xp.float32)


# ---- creation and arrangement ----


def test_counting_has_the_standards_ends():
    check(xp.arange(5, 0), [])
    assert xp.arange(0, -1.0).dtype is xp.float32
    nothing = xp.arange(2**54 + 1, 0.0, 2**49)  # beside a float the start is rounded, to less than itself
    assert nothing.shape == (0,) and nothing.dtype is xp.float32
    check(xp.arange(5, 0, -2), [5, 3, 1])
    check(xp.linspace(0, 1, 4, endpoint=False), [0.0, 0.25, 0.5, 0.75])
    assert xp.eye(2, 3, k=1).tolist() == [[0, 1, 0], [0, 0, 1]] and xp.eye(2, k=-5).tolist() == [[0, 0], [0, 0]]


def test_lists_of_arrays_become_arrays_that_keep_their_graph():
    a, b = mt.tensor(2.0, requires_grad=True), mt.tensor([1.0, 3.0], requires_grad=True)
    made = xp.asarray([[a, 1], [b[0], b[1]]])
    assert made.tolist() == [[2.0, 1.0], [1.0, 3.0]]
    xp.sum(made * made).backward()
    assert a.grad.item() == 4.0 and b.grad.tolist() == [2.0, 6.0]


def test_copies_are_made_when_asked_and_refused_when_not():
    x = xp.asarray([[1.0, 2.0], [3.0, 4.0]])
    assert xp.asarray(x, copy=False) is x and xp.asarray(x, copy=True) is not x
    assert xp.reshape(x, (4,), copy=False).tolist() == [1, 2, 3, 4]
    with pytest.raises(ValueError, match="takes a copy here; got copy=False"):
        xp.reshape(x.mT, (4,), copy=False)
    y = xp.reshape(x, (4,), copy=True)
    y[0] = 9.0
    assert x[0, 0] == 1.0


def test_axes_may_be_several_or_none():
    x = xp.reshape(xp.arange(24), (2, 3, 4))
    assert xp.expand_dims(x, (0, -1)).shape == (1, 2, 3, 4, 1)
    assert xp.squeeze(xp.expand_dims(x, 1), (1,)).shape == (2, 3, 4)
    with pytest.raises(ValueError, match="squeeze: expected size 1 along axis 0"):
        xp.squeeze(x, 0)
    assert xp.sum(x, axis=(0, 2)).tolist() == [60, 92, 124]
    assert xp.prod(x + 1, axis=(0, 2), keepdims=True).shape == (1, 3, 1)
    assert xp.sum(x, axis=()).tolist() == xp.max(x, axis=(), keepdims=True).tolist() == x.tolist()
    assert xp.count_nonzero(x, axis=(0, 2), keepdims=True).tolist() == [[[7], [8], [8]]]
    assert xp.roll(xp.arange(4), (1, 1), axis=(0, 0)).tolist() == [2, 3, 0, 1]
    assert xp.broadcast_shapes((3, 1), (4,)) == (3, 4) and xp.broadcast_shapes() == ()


def test_running_sums_may_begin_before_the_first():
    x = xp.asarray([[1, 2], [3, 4]])
    assert xp.cumulative_sum(x, axis=1, include_initial=True).tolist() == [[0, 1, 3], [0, 3, 7]]
    assert xp.cumulative_prod(x, axis=0, include_initial=True).tolist() == [[1, 1], [1, 2], [3, 8]]
    with pytest.raises(ValueError, match="cumulative_sum: expected an axis"):
        xp.cumulative_sum(x)


def test_taking_counts_from_the_end_too():
    x = xp.asarray([[1, 2, 3], [4, 5, 6]])
    assert xp.take(x, xp.asarray([-1, 0], dtype=xp.int8), axis=1).tolist() == [[3, 1], [6, 4]]
    assert xp.take_along_axis(x, xp.asarray([[0], [-1]], dtype=xp.int32)).tolist() == [[1], [6]]
    assert xp.repeat(x, xp.asarray([1, 2], dtype=xp.uint8), axis=0).shape == (3, 3)
    with pytest.raises(IndexError):
        xp.take(x, xp.asarray([3]), axis=1)


def test_slices_may_have_arrays_as_bounds():
    x, one, three = xp.arange(5), xp.asarray(1), xp.asarray(3, dtype=xp.uint8)
    assert x[one:three].tolist() == x[(slice(one, three),)].tolist() == [1, 2]
    x[:one] = 7
    assert x.tolist() == [7, 1, 2, 3, 4]


def test_a_mask_of_no_elements_selects_none():
    assert xp.ones((3, 2))[xp.zeros((0,), dtype=xp.bool)].shape == (0, 2)
    assert xp.ones((3, 2))[xp.zeros((3, 0), dtype=xp.bool)].shape == (0,)
    with pytest.raises(IndexError, match="does not match"):
        xp.ones((3, 2))[xp.zeros((2,), dtype=xp.bool)]


# ---- sets, searching, linear algebra ----


def test_unique_elements_come_with_places_and_counts():
    found = xp.unique_all(xp.asarray([[3, 1], [3, 2]]))
    assert [t.tolist() for t in found] == [[1, 2, 3], [1, 3, 0], [[2, 0], [2, 1]], [1, 1, 2]]
    assert found._fields == ("values", "indices", "inverse_indices", "counts")
    z = xp.unique_all(xp.asarray([1j, 2.0, 1j, complex(NAN, 0.0), complex(NAN, 0.0)]))
    check(z.values, [1j, 2 + 0j, complex(NAN, 0.0), complex(NAN, 0.0)])
    assert z.counts.tolist() == [2, 1, 1, 1] and z.inverse_indices.tolist()[:3] == [0, 1, 0]


def test_membership_takes_numbers_on_either_side():
    x = xp.asarray([[1, 2], [3, 4]])
    assert xp.isin(x, xp.asarray([2, 3])).tolist() == [[False, True], [True, False]]
    assert xp.isin(x, 2, invert=True).tolist() == [[True, False], [True, True]]
    assert xp.isin(3, x).shape == () and bool(xp.isin(3, x))


def test_searching_takes_numbers_and_a_sorter():
    assert xp.searchsorted(xp.asarray([1.0, 2.0, 3.0]), 2.0).item() == 1
    found = xp.searchsorted(xp.asarray([3, 1, 2]), xp.asarray([2]), side="right", sorter=xp.asarray([1, 2, 0], dtype=xp.int32))
    assert found.tolist() == [2]
    with pytest.raises(ValueError, match="nonzero: expected at least one dimension"):
        xp.nonzero(xp.asarray(1))


NUMERIC = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "complex64", "complex128")


@pytest.mark.parametrize("a", NUMERIC)
def test_products_take_every_numeric_dtype_and_promote(a):
    products = (xp.vecdot, xp.linalg.vecdot, xp.linalg.cross, xp.linalg.outer, lambda x, y: xp.tensordot(x, y, axes=1), xp.matmul)
    for b in NUMERIC:
        if "uint64" in (a, b) and {a, b} & {"int8", "int16", "int32", "int64"}:
            continue  # no integer dtype holds both
        x, y = (xp.asarray([1, 2, 3], dtype=getattr(xp, d)) for d in (a, b))
        made = [f(x, y) for f in products]
        assert [m.dtype for m in made] == [xp.result_type(x, y)] * 6, (a, b)
        assert [m.tolist() for m in made] == [14, 14, [0, 0, 0], [[1, 2, 3], [2, 4, 6], [3, 6, 9]], 14, 14], (a, b)


def test_linear_algebra_broadcasts_as_the_standard_says():
    a = xp.reshape(xp.asarray([2.0, 0.0, 0.0, 4.0]), (1, 2, 2))
    # PyTorch takes the second one for a batch of vectors.
    assert xp.linalg.solve(a, xp.ones((1, 2, 2))).tolist() == [[[0.5, 0.5], [0.25, 0.25]]]
    assert xp.linalg.solve(a, xp.ones(2)).tolist() == [[0.5, 0.25]]
    assert xp.linalg.solve(xp.full((1, 1, 1), 4.0), xp.ones(1)).tolist() == [[0.25]]  # a vector, not a stack of one
    assert xp.linalg.cross(xp.ones((2, 3)), xp.asarray([1.0, 2.0, 3.0])).tolist() == [[1.0, -2.0, 1.0]] * 2
    assert xp.vecdot(xp.asarray([1j, 1.0]), xp.asarray([1.0, 1.0])).item() == 1 - 1j
    assert xp.linalg.trace(xp.ones((2, 2), dtype=xp.uint8)).dtype is xp.uint64
    assert xp.linalg.vector_norm(xp.asarray([3.0, -4.0]), axis=()).tolist() == [3.0, 4.0]
    assert xp.linalg.slogdet(a)._fields == ("sign", "logabsdet") and xp.linalg.eigh(a)._fields[0] == "eigenvalues"


# ---- inspection ----


def test_inspection_tells_devices_and_dtypes():
    info = xp.__array_namespace_info__()
    assert info.capabilities() == {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}
    assert isinstance(info.devices(), tuple) and info.default_device() in info.devices()
    assert list(info.dtypes(kind="complex floating")) == ["complex64", "complex128"]
    assert set(info.dtypes()) == set(DTYPES)
    assert set(info.dtypes(kind=("bool", "real floating"))) == {"bool", "float32", "float64"}
    assert info.default_dtypes()["real floating"] is xp.ones(1).dtype
    mt.set_default_dtype(mt.float64)
    try:
        assert info.default_dtypes()["complex floating"] is xp.asarray(1j).dtype is xp.complex128
    finally:
        mt.set_default_dtype(mt.float32)


@pytest.mark.skipif(not STRICT, reason="the conformance kit is not installed: no device that lacks a dtype")
def test_inspection_asks_each_device():
    info = xp.__array_namespace_info__()
    assert "float64" not in info.dtypes(device="strict_f32") and "float32" in info.dtypes(device="strict_f32")


# ---- exchange ----


class Borrowed:
    """An array of another library, which lends what it is given and notes what it was asked."""

    def __init__(self, t):
        self.t, self.asked = t, []

    def __dlpack__(self, **options):
        self.asked.append(options)
        return self.t.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.t.__dlpack_device__()


def test_dlpack_gives_capsules_of_every_version():
    x = xp.asarray([[1.0, 2.0], [3.0, 4.0]]).mT
    for version, name in ((None, "dltensor"), ((0, 8), "dltensor"), ((1, 0), "dltensor_versioned"), ((2, 0), "dltensor_versioned")):
        for copy in (None, True, False):
            assert f'"{name}"' in repr(x.__dlpack__(max_version=version, copy=copy, dl_device=(1, 0)))
    assert x.__dlpack_device__() == (1, 0)


def test_dlpack_says_what_is_a_copy():
    from mortice.backends.dlpack import _get_name, _get_pointer, _Versioned

    def flags(capsule):
        return _Versioned.from_address(_get_pointer(capsule, _get_name(capsule))).flags

    x = xp.ones(3)
    assert not flags(x.__dlpack__(max_version=(1, 0))) & 2
    assert flags(x.__dlpack__(max_version=(1, 0), copy=True)) & 2


def test_from_dlpack_takes_device_and_copy():
    x = xp.asarray([1.0, 2.0])
    other = Borrowed(x)
    where = xp.__array_namespace_info__().devices()[-1]
    y = xp.from_dlpack(other, device=where, copy=True)
    assert y.device == where and y.tolist() == [1.0, 2.0] and other.asked[0]["max_version"] == (1, 0)
    y[0] = 5.0
    assert x[0] == 1.0


# ---- gradients ----

FUNCTIONS = {
    "sum": lambda x: xp.sum(x, axis=(0, 1)), "prod": lambda x: xp.prod(x, axis=(0, 1)), "std": lambda x: xp.std(x, axis=0),
    "var": lambda x: xp.var(x, correction=1), "mean": lambda x: xp.mean(x, axis=()), "max": lambda x: xp.max(x, axis=1),
    "clip": lambda x: xp.clip(x, 0.7, 1.4), "expm1": xp.expm1, "tanh": xp.tanh, "sign": lambda x: xp.sign(x) * x,
    "round": lambda x: xp.round(x) + x, "sort": lambda x: xp.sort(x, axis=0, descending=True),
    "take": lambda x: xp.take(x, xp.asarray([1, 0, 1], device=x.device), axis=1), "tile": lambda x: xp.tile(x, (2, 2)),
    "take_along_axis": lambda x: xp.take_along_axis(x, xp.asarray([[0, 0], [1, 0]], device=x.device), axis=1),
    "cumulative_sum": lambda x: xp.cumulative_sum(x, axis=0, include_initial=True),
    "cumulative_prod": lambda x: xp.cumulative_prod(x, axis=1), "diff": lambda x: xp.diff(x, prepend=x[:, :1]),
    "concat": lambda x: xp.concat([x, x], axis=None), "meshgrid": lambda x: xp.meshgrid(x[0], x[1])[0],
    "roll": lambda x: xp.roll(x, 1), "repeat": lambda x: xp.repeat(x, 2, axis=0), "flip": xp.flip,
    "expand_dims": lambda x: xp.expand_dims(x, (0, 1)), "squeeze": lambda x: xp.squeeze(x[:1], 0), "tril": xp.tril,
    "where": lambda x: xp.where(x > 1, x, 2.0), "hypot": lambda x: xp.hypot(x, 2.0), "pow": lambda x: xp.pow(x, 3),
    "logaddexp": lambda x: xp.logaddexp(x, xp.flip(x)), "reciprocal": xp.reciprocal, "matmul": lambda x: xp.matmul(x, x),
    "tensordot": lambda x: xp.tensordot(x, x, axes=1), "vecdot": lambda x: xp.vecdot(x, x), "outer": lambda x: xp.linalg.outer(x[0], x[1]),
    "inv": xp.linalg.inv, "det": xp.linalg.det, "solve": lambda x: xp.linalg.solve(x, x[0]),
    "cholesky": lambda x: xp.linalg.cholesky(x @ x.mT), "qr": lambda x: xp.linalg.qr(x).R, "pinv": xp.linalg.pinv,
    "svdvals": xp.linalg.svdvals, "eigvalsh": lambda x: xp.linalg.eigvalsh(x + x.mT), "trace": xp.linalg.trace,
    "matrix_norm": xp.linalg.matrix_norm, "vector_norm": lambda x: xp.linalg.vector_norm(x, axis=0, ord=3),
    "cross": lambda x: xp.linalg.cross(xp.concat([x, x], axis=1)[:, :3], x.reshape(-1)[:3]),
    "fft": lambda x: xp.abs(xp.fft.fft(x)), "rfftn": lambda x: xp.abs(xp.fft.rfftn(x)),
    "fftshift": xp.fft.fftshift, "astype": lambda x: xp.astype(x, xp.float64), "asarray": lambda x: xp.asarray([x[0, 0], x[1, 1]]),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_flow_through(name):
    x = mt.tensor([[1.3, 0.6], [0.4, 1.7]], dtype=mt.float64, requires_grad=True)
    mt.autograd.gradcheck(FUNCTIONS[name], (x,))
