// Kernels of one array: elementwise functions, tests, activations and their gradients.
#include <cmath>
#include <cstring>

#include "families.hpp"
#include "kernels/binary.hpp"
#include "kernels/unary.hpp"
#include "loop.hpp"

namespace mortice {

namespace {

// ---- functions of real numbers ----

// What an element takes in float32, in the measure of `walk`; in float64 twice that and more.
constexpr float MAP_COST[MAPS] = {
    1.2f, 1.2f, 1.5f, 1.5f, 2, 2, 2, 1.5f, 1.5f, 1.5f, 1.5f,  // exp .. cosh
    4, 4, 3, 2, 2, 2, 1.5f, 1.5f, 1.5f, 2.5f, 5, 5,           // asinh .. erfcx
    12, 8, 8, 1, 1, 1, 1, 1, 1, 1,                            // erfinv .. sign
    1, 1, 1, 1, 1.5f, 1.5f, 1, 1, 1,                          // floor .. relu
    1.8f, 2.5f, 2, 5, 2, 2, 1, 2, 1, 1, 1, 1,                 // silu .. softshrink
};

Ref map_real(const Array &x, Map which, double a = 0, double b = 0, double c = 0) {
    const UnaryTable &table = unary();
    Applied f = {x.dtype == F64 ? table.map64[which] : table.map32[which], {a, b, c},
                 is_half(x.dtype) ? table.direct[x.dtype - F16][which] : nullptr};
    const Array *xs[] = {&x};
    return map(xs, 1, x.dtype, table.one[x.dtype - F16], &f, MAP_COST[which] * (x.dtype == F64 ? 2 : 1));
}

// The real or the imaginary parts of complex numbers.
Ref part(Array &x, int which) {
    int64_t strides[MAX_NDIM];
    for (int i = 0; i < x.ndim; i++) strides[i] = 2 * x.strides()[i];
    return make_view(x, x.data + which * x.itemsize() / 2, x.ndim, x.shape(), strides, real_of(x.dtype));
}

Ref map_complex(Array &x, Complex which) {
    if (which == COMPLEX_NONE)
        fail(PyExc_TypeError, "cpu_cext: this function is not defined for %s.", DTYPE_NAMES[x.dtype]);
    DType to = which >= COMPLEX_REAL ? real_of(x.dtype) : x.dtype;
    if (which == COMPLEX_ANGLE || (which == COMPLEX_ABS && x.dtype == C64)) {  // whose loops there are for every instruction set
        const Ref re = part(x, 0), im = part(x, 1);
        const bool length = which == COMPLEX_ABS;
        const Array *parts[] = {length ? re.get() : im.get(), length ? im.get() : re.get()};
        return map(parts, 2, to, binary_math().two[(length ? HYPOT : ATAN2) - BINARY_OPS][to], nullptr, length ? 3 : 10);
    }
    bool cheap = which == COMPLEX_SQUARE || which == COMPLEX_NEGATIVE || which == COMPLEX_CONJ;
    const Array *xs[] = {&x};
    return map(xs, 1, to, complex_unary().loop[which][x.dtype - C64], nullptr, cheap ? 2 : which == COMPLEX_ABS ? 3 : 40);
}

Ref map_whole(const Array &x, Whole which) {
    const Array *xs[] = {&x};
    return map(xs, 1, x.dtype, plain().whole[which][x.dtype]);
}

struct Smooth {
    const char *name;
    Map map;
    Complex on_complex;
};

// Integers are taken as float32, as the core would.
__attribute__((noinline)) PyObject *call(const Smooth &f, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    Array &x = only(f.name, args, n, names);
    if (is_float(x.dtype)) return map_real(x, f.map).release();
    if (is_complex(x.dtype)) return map_complex(x, f.on_complex).release();
    return map_real(*converted(x, F32), f.map).release();
}
template <const Smooth &S> PyObject *smooth(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    return call(S, args, n, names);
}

// Functions that integers have too.
struct Ordinary {
    const char *name;
    Map map;
    Complex on_complex;
    Whole on_integers;
};
__attribute__((noinline)) PyObject *call(const Ordinary &f, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    Array &x = only(f.name, args, n, names);
    if (is_float(x.dtype)) return map_real(x, f.map).release();
    if (is_complex(x.dtype)) return map_complex(x, f.on_complex).release();
    return map_whole(x, f.on_integers).release();
}
template <const Ordinary &S> PyObject *ordinary(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    return call(S, args, n, names);
}

// Functions that leave integers as they are.
struct Rounding {
    const char *name;
    Map map;
};
__attribute__((noinline)) PyObject *call(const Rounding &f, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    Array &x = only(f.name, args, n, names);
    return (is_float(x.dtype) ? map_real(x, f.map) : cloned(x)).release();
}
template <const Rounding &S> PyObject *rounding(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    return call(S, args, n, names);
}

PyObject *round(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<2> N{"round", {"x", "decimals"}, 1};
    PyObject *a[2];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    int64_t decimals = a[1] ? as_int(a[1]) : 0;
    if (!is_float(x.dtype)) return cloned(x).release();
    if (decimals == 0) return map_real(x, MAP_ROUND).release();
    double scale = std::pow(10.0, static_cast<double>(decimals < 0 ? -decimals : decimals));
    return map_real(x, decimals > 0 ? MAP_ROUND_SCALED : MAP_ROUND_DIVIDED, scale).release();
}

// ---- tests ----

struct Tested {
    const char *name;
    Test test;
};
__attribute__((noinline)) PyObject *call(const Tested &f, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    Array &x = only(f.name, args, n, names);
    const Array *xs[] = {&x};
    return map(xs, 1, BOOL, plain().test[f.test][x.dtype]).release();
}
template <const Tested &S> PyObject *tested(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    return call(S, args, n, names);
}

PyObject *bitwise_invert(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    Array &x = only("bitwise_invert", args, n, names);
    if (x.dtype > I64) fail(PyExc_TypeError, "bitwise_invert: expected integers or bools; got %s.", DTYPE_NAMES[x.dtype]);
    return map_whole(x, WHOLE_INVERT).release();
}

// ---- parts of complex numbers ----

PyObject *real(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    Array &x = only("real", args, n, names);
    return (is_complex(x.dtype) ? part(x, 0) : Ref::share(&x)).release();
}
PyObject *imag(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    Array &x = only("imag", args, n, names);
    return (is_complex(x.dtype) ? part(x, 1) : make_zeros(x.dtype, x.ndim, x.shape())).release();
}
PyObject *conj(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    Array &x = only("conj", args, n, names);
    return (is_complex(x.dtype) ? map_complex(x, COMPLEX_CONJ) : Ref::share(&x)).release();
}

// ---- functions with attributes ----

// The largest finite number.
double largest(DType d) {
    switch (d) {
    case F16: return 65504;
    case BF16: return 0x1.fep127;
    case F64:
    case C128: return 0x1.fffffffffffffp1023;
    default: return 0x1.fffffep127;
    }
}

PyObject *nan_to_num(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<4> N{"nan_to_num", {"x", "nan", "posinf", "neginf"}, 1};
    PyObject *a[4];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    if (!is_float(x.dtype) && !is_complex(x.dtype)) return cloned(x).release();
    double most = largest(x.dtype);
    double nan = a[1] && a[1] != Py_None ? as_double(a[1]) : 0;
    double high = a[2] && a[2] != Py_None ? as_double(a[2]) : most;
    double low = a[3] && a[3] != Py_None ? as_double(a[3]) : -most;
    if (is_float(x.dtype)) return map_real(x, MAP_NAN_TO_NUM, nan, high, low).release();
    // A row of complex numbers is one of twice as many real ones.
    Ref row = contiguous(x), out = make_like(x);
    int64_t size = 2 * x.size;
    DType d = real_of(x.dtype);
    const UnaryTable &table = unary();
    Applied f = {d == F64 ? table.map64[MAP_NAN_TO_NUM] : table.map32[MAP_NAN_TO_NUM], {nan, high, low}, nullptr};
    int64_t one = 1;
    Operand operands[] = {{out->data, &one, 1, ITEMSIZE[d], &size}, {row->data, &one, 1, ITEMSIZE[d], &size}};
    walk(1, &size, operands, 2, table.one[d - F16], &f);
    return out.release();
}

void floats_only(const char *name, const Array &x) {
    if (!is_float(x.dtype)) fail(PyExc_TypeError, "%s: expected floating-point numbers; got %s.", name, DTYPE_NAMES[x.dtype]);
}

PyObject *softplus(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<3> N{"softplus", {"x", "beta", "threshold"}, 1};
    PyObject *a[3];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    floats_only("softplus", x);
    return map_real(x, MAP_SOFTPLUS, a[1] ? as_double(a[1]) : 1, a[2] ? as_double(a[2]) : 20).release();
}

// Whether gelu goes through tanh.
bool by_tanh(const char *name, PyObject *approximate) {
    if (!approximate || approximate == Py_None) return false;
    if (PyUnicode_Check(approximate)) {
        if (PyUnicode_CompareWithASCIIString(approximate, "none") == 0) return false;
        if (PyUnicode_CompareWithASCIIString(approximate, "tanh") == 0) return true;
    }
    fail(PyExc_RuntimeError, "%s: approximate argument must be either none or tanh; got %R.", name, approximate);
}

PyObject *gelu(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<2> N{"gelu", {"x", "approximate"}, 1};
    PyObject *a[2];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    floats_only("gelu", x);
    return map_real(x, by_tanh("gelu", a[1]) ? MAP_GELU_TANH : MAP_GELU).release();
}

// ---- gradients ----

PyObject *slope(const char *name, Array &g, Array &x, Slope which, double a = 0, double b = 0, double c = 0) {
    bool pairs = is_complex(g.dtype) && which < SLOPE_GELU && complex_unary().slope[which][0];
    if (g.dtype != x.dtype || !(is_float(g.dtype) || pairs))
        fail(PyExc_TypeError, "%s: expected floating-point numbers of one dtype; got %s and %s.", name, DTYPE_NAMES[g.dtype],
             DTYPE_NAMES[x.dtype]);
    const Array *xs[] = {&g, &x};
    if (pairs) return map(xs, 2, g.dtype, complex_unary().slope[which][g.dtype - C64], nullptr, 40).release();
    const UnaryTable &table = unary();
    Applied f = {g.dtype == F64 ? table.slope64[which] : table.slope32[which], {a, b, c}, nullptr};
    float cost = which == SLOPE_SILU ? 2 : which >= SLOPE_LEAKY_RELU ? 1.5f : which >= SLOPE_GELU ? 4 : 1.5f;
    return map(xs, 2, g.dtype, table.two[g.dtype - F16], &f, cost * (g.dtype == F64 ? 2 : 1)).release();
}

struct Sloped {
    const char *name, *second;
    Slope slope;
};
template <const Sloped &S> PyObject *sloped(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<2> N{S.name, {"g", S.second}, 2};
    PyObject *a[2];
    arguments(N, args, n, names, a);
    return slope(S.name, as_array(a[0]), as_array(a[1]), S.slope);
}

PyObject *gelu_grad(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<3> N{"gelu_grad", {"g", "x", "approximate"}, 2};
    PyObject *a[3];
    arguments(N, args, n, names, a);
    return slope("gelu_grad", as_array(a[0]), as_array(a[1]), by_tanh("gelu_grad", a[2]) ? SLOPE_GELU_TANH : SLOPE_GELU);
}

PyObject *leaky_relu(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<2> N{"leaky_relu", {"x", "slope"}, 2};
    PyObject *a[2];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    floats_only("leaky_relu", x);
    return map_real(x, MAP_LEAKY_RELU, as_double(a[1])).release();
}
template <Map MAP> PyObject *shrink(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<2> N{MAP == MAP_HARDSHRINK ? "hardshrink" : "softshrink", {"x", "lambd"}, 2};
    PyObject *a[2];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    floats_only(N.function, x);
    // The limit of half precision is a number of its own.
    return MAP == MAP_HARDSHRINK && is_half(x.dtype) ? default_body() : map_real(x, MAP, as_double(a[1])).release();
}
PyObject *prelu(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<2> N{"prelu", {"x", "weight"}, 2};
    PyObject *a[2];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]), &weight = as_array(a[1]);
    if (weight.size != 1 || weight.ndim > x.ndim || weight.dtype != x.dtype || !is_float(x.dtype)) return default_body();
    return map_real(x, MAP_LEAKY_RELU, to_double(weight.data, weight.dtype)).release();
}

PyObject *leaky_relu_grad(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<3> N{"leaky_relu_grad", {"g", "x", "slope"}, 3};
    PyObject *a[3];
    arguments(N, args, n, names, a);
    return slope("leaky_relu_grad", as_array(a[0]), as_array(a[1]), SLOPE_LEAKY_RELU, as_double(a[2]));
}

PyObject *elu(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<4> N{"elu", {"x", "alpha", "scale", "input_scale"}, 4};
    PyObject *a[4];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    floats_only("elu", x);
    const double scale = as_double(a[2]);
    return map_real(x, MAP_ELU, as_double(a[1]) * scale, scale, as_double(a[3])).release();
}
PyObject *elu_grad(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<5> N{"elu_grad", {"g", "x", "alpha", "scale", "input_scale"}, 5};
    PyObject *a[5];
    arguments(N, args, n, names, a);
    const double scale = as_double(a[3]), input_scale = as_double(a[4]);
    return slope("elu_grad", as_array(a[0]), as_array(a[1]), SLOPE_ELU, as_double(a[2]) * scale * input_scale, scale, input_scale);
}

PyObject *hardtanh_grad(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<4> N{"hardtanh_grad", {"g", "x", "low", "high"}, 4};
    PyObject *a[4];
    arguments(N, args, n, names, a);
    return slope("hardtanh_grad", as_array(a[0]), as_array(a[1]), SLOPE_HARDTANH, as_double(a[2]), as_double(a[3]));
}
PyObject *softplus_grad(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<4> N{"softplus_grad", {"g", "x", "beta", "threshold"}, 4};
    PyObject *a[4];
    arguments(N, args, n, names, a);
    return slope("softplus_grad", as_array(a[0]), as_array(a[1]), SLOPE_SOFTPLUS, as_double(a[2]), as_double(a[3]));
}

PyObject *dropout(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<3> N{"dropout", {"x", "keep", "p"}, 3};
    PyObject *a[3];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]), &keep = as_array(a[1]);
    if (x.dtype < F16 || keep.dtype != BOOL)
        fail(PyExc_TypeError, "dropout: expected numbers that are not whole, and bools; got %s and %s.", DTYPE_NAMES[x.dtype],
             DTYPE_NAMES[keep.dtype]);
    const double p = as_double(a[2]), scale = p >= 1 ? 0 : 1 / (1 - p);
    const Array *xs[] = {&x, &keep};
    if (keep.size < x.size && (x.dtype == F32 || x.dtype == F64)) {  // whole channels: factors, which repeat
        Ref factors = converted(keep, x.dtype);
        for (int64_t i = 0; i < keep.size; i++)
            if (x.dtype == F32) factors->as<float>()[i] *= static_cast<float>(scale);
            else factors->as<double>()[i] *= scale;
        xs[1] = factors.get();
        return map(xs, 2, x.dtype, binary().two[MULTIPLY][x.dtype]).release();
    }
    return map(xs, 2, x.dtype, unary().dropout[x.dtype - F16], &scale).release();
}

// ---- the kernels ----

#define SMOOTH(F)                                                                                                     \
    F(exp, EXP, EXP) F(exp2, EXP2, EXP2) F(expm1, EXPM1, EXPM1) F(log, LOG, LOG) F(log2, LOG2, LOG2)                  \
    F(log10, LOG10, LOG10) F(log1p, LOG1P, LOG1P) F(sigmoid, SIGMOID, SIGMOID) F(tanh, TANH, TANH)                    \
    F(sinh, SINH, SINH) F(cosh, COSH, COSH) F(asinh, ASINH, ASINH) F(acosh, ACOSH, ACOSH) F(atanh, ATANH, ATANH)      \
    F(sin, SIN, SIN) F(cos, COS, COS) F(tan, TAN, TAN) F(asin, ASIN, ASIN) F(acos, ACOS, ACOS) F(atan, ATAN, ATAN)    \
    F(erf, ERF, NONE) F(erfc, ERFC, NONE) F(erfcx, ERFCX, NONE) F(erfinv, ERFINV, NONE) F(lgamma, LGAMMA, NONE)       \
    F(digamma, DIGAMMA, NONE) F(sqrt, SQRT, SQRT) F(rsqrt, RSQRT, RSQRT) F(reciprocal, RECIPROCAL, RECIPROCAL)        \
    F(angle, ANGLE, ANGLE)
#define ACTIVATIONS(F)                                                                                                \
    F(silu, SILU, SILU) F(logsigmoid, LOGSIGMOID, NONE) F(mish, MISH, NONE) F(hardsigmoid, HARDSIGMOID, NONE)         \
    F(hardswish, HARDSWISH, NONE)
#define ORDINARY(F)                                                                                                   \
    F(negative, NEGATIVE, NEGATIVE) F(abs, ABS, ABS) F(sign, SIGN, SGN) F(sgn, SIGN, SGN) F(square, SQUARE, SQUARE)   \
    F(relu, RELU, NONE)
#define ROUNDING(F) F(floor, FLOOR) F(ceil, CEIL) F(trunc, TRUNC)
#define TESTED(F) F(logical_not, NOT) F(isnan, NAN) F(isinf, INF) F(isfinite, FINITE) F(signbit, SIGN)
#define SLOPED(F)                                                                                                     \
    F(relu_grad, "out", RELU) F(sigmoid_grad, "out", SIGMOID) F(tanh_grad, "out", TANH) F(silu_grad, "x", SILU)       \
    F(logsigmoid_grad, "x", LOGSIGMOID) F(mish_grad, "x", MISH) F(hardsigmoid_grad, "x", HARDSIGMOID)                 \
    F(hardswish_grad, "x", HARDSWISH)

#define SMOOTH_ROW(n, m, c) constexpr Smooth s_##n = {#n, MAP_##m, COMPLEX_##c};
#define ORDINARY_ROW(n, m, c) constexpr Ordinary s_##n = {#n, MAP_##m, COMPLEX_##c, WHOLE_##m};
#define ROUNDING_ROW(n, m) constexpr Rounding s_##n = {#n, MAP_##m};
#define TESTED_ROW(n, t) constexpr Tested s_##n = {#n, TEST_##t};
#define SLOPED_ROW(n, second, s) constexpr Sloped s_##n = {#n, second, SLOPE_##s};
SMOOTH(SMOOTH_ROW)
ACTIVATIONS(SMOOTH_ROW)
ORDINARY(ORDINARY_ROW)
ROUNDING(ROUNDING_ROW)
TESTED(TESTED_ROW)
SLOPED(SLOPED_ROW)

PyObject *positive(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    return cloned(only("positive", args, n, names)).release();
}

}  // namespace

#define SMOOTH_METHOD(n, m, c) MORTICE_METHOD(#n, smooth<s_##n>),
#define ORDINARY_METHOD(n, m, c) MORTICE_METHOD(#n, ordinary<s_##n>),
#define ROUNDING_METHOD(n, m) MORTICE_METHOD(#n, rounding<s_##n>),
#define TESTED_METHOD(n, t) MORTICE_METHOD(#n, tested<s_##n>),
#define SLOPED_METHOD(n, second, s) MORTICE_METHOD(#n, sloped<s_##n>),

const Method unary_methods[] = {
    SMOOTH(SMOOTH_METHOD) ORDINARY(ORDINARY_METHOD) ROUNDING(ROUNDING_METHOD) TESTED(TESTED_METHOD)
    MORTICE_METHOD("round", round),
    MORTICE_METHOD("positive", positive),
    MORTICE_METHOD("bitwise_invert", bitwise_invert),
    MORTICE_METHOD("real", real),
    MORTICE_METHOD("imag", imag),
    MORTICE_METHOD("conj", conj),
    MORTICE_METHOD("nan_to_num", nan_to_num),
    {},
};
const Method activation_methods[] = {
    ACTIVATIONS(SMOOTH_METHOD) SLOPED(SLOPED_METHOD)
    MORTICE_METHOD("softplus", softplus),
    MORTICE_METHOD("gelu", gelu),
    MORTICE_METHOD("gelu_grad", gelu_grad),
    MORTICE_METHOD("softplus_grad", softplus_grad),
    MORTICE_METHOD("dropout", dropout),
    MORTICE_METHOD("leaky_relu", leaky_relu),
    MORTICE_METHOD("partial_prelu", prelu),
    MORTICE_METHOD("leaky_relu_grad", leaky_relu_grad),
    MORTICE_METHOD("partial_hardshrink", shrink<MAP_HARDSHRINK>),
    MORTICE_METHOD("softshrink", shrink<MAP_SOFTSHRINK>),
    MORTICE_METHOD("elu", elu),
    MORTICE_METHOD("elu_grad", elu_grad),
    MORTICE_METHOD("hardtanh_grad", hardtanh_grad),
    {},
};

}  // namespace mortice
