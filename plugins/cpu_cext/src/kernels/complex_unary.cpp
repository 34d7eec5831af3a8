// Functions of complex numbers, one by one: branch cuts and special values are the C library's (C99, Annex G). Single
// precision is computed in double and rounded once.
#include <math.h>

#include "../dtype.hpp"
#include "unary.hpp"

#ifndef ISA
#define ISA baseline
#endif

namespace mortice::ISA {
namespace {

using Z = cdouble;
typedef _Complex double C;

inline C c_of(Z z) {
    C c;
    __real__ c = z.re;
    __imag__ c = z.im;
    return c;
}
inline Z z_of(C c) { return {__real__ c, __imag__ c}; }

constexpr double LN2 = 0x1.62e42fefa39efp-1, LN10 = 0x1.26bb1bbb55516p+1;

#define LIBRARY(name, function) \
    inline Z name(Z z) { return z_of(__builtin_##function(c_of(z))); }
LIBRARY(z_exp, cexp) LIBRARY(z_log, clog) LIBRARY(z_sqrt, csqrt) LIBRARY(z_sin, csin) LIBRARY(z_cos, ccos)
LIBRARY(z_tan, ctan) LIBRARY(z_asin, casin) LIBRARY(z_acos, cacos) LIBRARY(z_atan, catan) LIBRARY(z_sinh, csinh)
LIBRARY(z_cosh, ccosh) LIBRARY(z_tanh, ctanh) LIBRARY(z_asinh, casinh) LIBRARY(z_acosh, cacosh) LIBRARY(z_atanh, catanh)
#undef LIBRARY

inline Z z_exp2(Z z) {
    double size = exp2(z.re), turn = z.im * LN2;
    // Nothing times what an infinite turn leaves is nothing.
    bool lost = size == 0 && !__builtin_isfinite(turn);
    double c = lost ? 0 : size * cos(turn), s = lost ? 0 : size * sin(turn);
    return {c, turn == 0 ? turn : s};
}
inline Z z_expm1(Z z) {
    if (!(fabs(z.re) < 1)) {
        Z e = z_exp(z);
        return {e.re - 1, e.im};
    }
    double half = sin(z.im * 0.5);
    // Adding 0 turns a real part of -0 into +0.
    return {expm1(z.re) * cos(z.im) - 2 * half * half + 0.0, exp(z.re) * sin(z.im)};
}
inline Z z_log1p(Z z) {
    double up = z.re + 1, most = fmax(fabs(z.re), fabs(z.im));
    bool small = most < 0.5;
    double length = small ? log1p(z.re * (z.re + 2) + z.im * z.im) * 0.5 : log(hypot(up, z.im));
    return {length, atan2(z.im, up)};
}
inline Z z_log2(Z z) {
    Z y = z_log(z);
    return {y.re / LN2, y.im / LN2};
}
inline Z z_log10(Z z) {
    Z y = z_log(z);
    return {y.re / LN10, y.im / LN10};
}
// top / z by Smith's method: scaled by the larger part.
inline Z divided(Z top, Z z) {
    if (fabs(z.im) <= fabs(z.re)) {
        double r = z.im / z.re, d = z.re + z.im * r;
        return {(top.re + top.im * r) / d, (top.im - top.re * r) / d};
    }
    double r = z.re / z.im, d = z.re * r + z.im;
    return {(top.re * r + top.im) / d, (top.im * r - top.re) / d};
}
inline Z z_reciprocal(Z z) {
    if (fabs(z.im) <= fabs(z.re)) {
        double r = z.im / z.re, d = z.re + z.im * r;
        return {1 / d, -r / d};
    }
    double r = z.re / z.im, d = z.re * r + z.im;
    return {r / d, -1 / d};
}
inline Z z_rsqrt(Z z) { return z_reciprocal(z_sqrt(z)); }
inline Z times(Z x, Z y) { return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re}; }
inline Z z_sigmoid(Z z) {
    bool left = z.re < 0;
    Z e = z_exp(left ? z : Z{-z.re, -z.im}), below = {e.re + 1, e.im};
    return left ? divided(e, below) : z_reciprocal(below);
}
inline Z z_silu(Z z) { return times(z, z_sigmoid(z)); }
inline double larger(double a, double b) { return a > b || a != a ? a : b; }
// Scaled by the larger part, which keeps subnormal and huge numbers away from the ends of the range.
inline Z z_sgn(Z z) {
    double most = larger(fabs(z.re), fabs(z.im));
    if (most == 0) return {0, 0};
    double x = z.re / most, y = z.im / most, length = hypot(x, y);
    return {x / length, y / length};
}
// Squares of floats fit into a double; those of doubles where they are far from its ends.
inline double z_abs(Z z) {
    double square = z.re * z.re + z.im * z.im;
    return square > 0x1p-900 && square < 0x1p900 ? __builtin_sqrt(square) : hypot(z.re, z.im);
}

template <class T, Z (*F)(Z)> void each(char *const *at, const int64_t *step, int64_t n, const void *) {
    using C = complex_of<T>;
    for (int64_t i = 0; i < n; i++) {
        C x = *reinterpret_cast<const C *>(at[1] + i * step[1]);
        Z y = F({static_cast<double>(x.re), static_cast<double>(x.im)});
        *reinterpret_cast<C *>(at[0] + i * step[0]) = {static_cast<T>(y.re), static_cast<T>(y.im)};
    }
}
template <class T, double (*F)(Z)> void size_of_each(char *const *at, const int64_t *step, int64_t n, const void *) {
    using C = complex_of<T>;
    for (int64_t i = 0; i < n; i++) {
        C x = *reinterpret_cast<const C *>(at[1] + i * step[1]);
        *reinterpret_cast<T *>(at[0] + i * step[0]) = static_cast<T>(F({static_cast<double>(x.re), static_cast<double>(x.im)}));
    }
}

void abs_single(char *const *at, const int64_t *step, int64_t n, const void *extra) {
    if (step[0] != sizeof(float) || step[1] != sizeof(cfloat)) return size_of_each<float, z_abs>(at, step, n, extra);
    const cfloat *__restrict x = reinterpret_cast<const cfloat *>(at[1]);
    float *__restrict out = reinterpret_cast<float *>(at[0]);
    for (int64_t i = 0; i < n; i++) {
        double re = static_cast<double>(x[i].re), im = static_cast<double>(x[i].im);
        bool endless = __builtin_fabs(re) == __builtin_inf() || __builtin_fabs(im) == __builtin_inf();
        out[i] = endless ? __builtin_inff() : static_cast<float>(__builtin_sqrt(re * re + im * im));
    }
}

// Those that are cheap in T itself.
template <class T> struct Square {
    static complex_of<T> of(complex_of<T> z) { return {z.re * z.re - z.im * z.im, z.re * z.im + z.im * z.re}; }
};
template <class T> struct Negative {
    static complex_of<T> of(complex_of<T> z) { return {-z.re, -z.im}; }
};
template <class T> struct Conj {
    static complex_of<T> of(complex_of<T> z) { return {z.re, -z.im}; }
};
template <class F, class T> void simple(char *const *at, const int64_t *step, int64_t n, const void *) {
    using C = complex_of<T>;
    if (step[0] == sizeof(C) && step[1] == sizeof(C)) {
        C *__restrict out = reinterpret_cast<C *>(at[0]);
        const C *__restrict x = reinterpret_cast<const C *>(at[1]);
        for (int64_t i = 0; i < n; i++) out[i] = F::of(x[i]);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        *reinterpret_cast<C *>(at[0] + i * step[0]) = F::of(*reinterpret_cast<const C *>(at[1] + i * step[1]));
}

inline Z less_1(Z z) { return {1 - z.re, -z.im}; }
inline Z sigmoid_slope(Z g, Z y) { return times(times(g, y), less_1(y)); }
inline Z tanh_slope(Z g, Z y) { return times(g, less_1(times(y, y))); }
inline Z silu_slope(Z g, Z x) {
    Z s = z_sigmoid(x), bend = times(x, less_1(s));
    return times(g, times(s, {bend.re + 1, bend.im}));
}

template <class T, Z (*F)(Z, Z)> void each_pair(char *const *at, const int64_t *step, int64_t n, const void *) {
    using C = complex_of<T>;
    for (int64_t i = 0; i < n; i++) {
        C g = *reinterpret_cast<const C *>(at[1] + i * step[1]), x = *reinterpret_cast<const C *>(at[2] + i * step[2]);
        Z y = F({static_cast<double>(g.re), static_cast<double>(g.im)}, {static_cast<double>(x.re), static_cast<double>(x.im)});
        *reinterpret_cast<C *>(at[0] + i * step[0]) = {static_cast<T>(y.re), static_cast<T>(y.im)};
    }
}

}  // namespace

#define PAIRS(F) {each_pair<float, F>, each_pair<double, F>}
#define BOTH(F) {each<float, F>, each<double, F>}

extern const ComplexTable complex_unary_table = {
    {
    BOTH(z_exp), BOTH(z_exp2), BOTH(z_expm1), BOTH(z_log), BOTH(z_log2), BOTH(z_log10), BOTH(z_log1p), BOTH(z_sqrt),
    BOTH(z_rsqrt), BOTH(z_sin), BOTH(z_cos), BOTH(z_tan), BOTH(z_asin), BOTH(z_acos), BOTH(z_atan), BOTH(z_sinh),
    BOTH(z_cosh), BOTH(z_tanh), BOTH(z_asinh), BOTH(z_acosh), BOTH(z_atanh), BOTH(z_sigmoid), BOTH(z_silu),
    BOTH(z_reciprocal),
    {simple<Square<float>, float>, simple<Square<double>, double>},
    {simple<Negative<float>, float>, simple<Negative<double>, double>},
    {simple<Conj<float>, float>, simple<Conj<double>, double>},
    BOTH(z_sgn),
    {abs_single, size_of_each<double, z_abs>},
    {},
    },
    {{nullptr, nullptr}, PAIRS(sigmoid_slope), PAIRS(tanh_slope), PAIRS(silu_slope)},
};

}  // namespace mortice::ISA
