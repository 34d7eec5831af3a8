// Exponentials, logarithms, powers and hyperbolic functions on whole vectors (V is vf or vd), to within about 2 ulp: what
// every elementwise kernel, softmax and loss is made of. Circular functions are in vtrig.hpp, the error and gamma functions
// in vspecial.hpp. Names are prefixed with v_, so that the C library's stay reachable.
//
// The coefficients were made for this file with Remez's algorithm in 50 digits. Nans, infinities, signed zeros and
// subnormal numbers come out as C99 has them.
#pragma once
#include <math.h>

#include "simd.hpp"

// Functions that others call: at x86's baseline, which is built for size, there is one copy of each in a file.
#if defined(__x86_64__) && !defined(__AVX2__)
#define SHARED static __attribute__((noinline, unused))
#else
#define SHARED INLINE
#endif
// Of what only rare functions call there is one copy in a file everywhere.
#define RARE static __attribute__((noinline, unused))

namespace mortice::ISA {

// ---- tools ----

template <class V> struct parts_of;
template <> struct parts_of<vf> {
    using T = float;
    using I = vi;
    using U = vec<uint32_t>;
    using S = int32_t;
    static constexpr int digits = 23, bias = 127;
    static constexpr float magic = 0x1.8p23f, least = 0x1p-126f;
};
template <> struct parts_of<vd> {
    using T = double;
    using I = vl;
    using U = vec<uint64_t>;
    using S = int64_t;
    static constexpr int digits = 52, bias = 1023;
    static constexpr double magic = 0x1.8p52, least = 0x1p-1022;
};
template <class V> using scalar_of = typename parts_of<V>::T;
template <class V> using ints_of = typename parts_of<V>::I;
template <class V> using uints_of = typename parts_of<V>::U;
template <class V> constexpr bool is_single = sizeof(scalar_of<V>) == 4;

template <class V> INLINE V num(double x) { return splat<scalar_of<V>>(static_cast<scalar_of<V>>(x)); }
template <class V> INLINE V num(float single, double twice) {
    if constexpr (is_single<V>) return splat<float>(single);
    else return splat<double>(twice);
}
template <class V> INLINE ints_of<V> ints(V x) { return (ints_of<V>)x; }
template <class V> INLINE V as_real(ints_of<V> x) { return (V)x; }

INLINE bool any_lane(vi mask) {
#if defined(__AVX512F__)
    return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask) != 0;
#elif defined(__AVX2__)
    return _mm256_movemask_epi8((__m256i)mask) != 0;
#elif defined(__SSE2__)
    return _mm_movemask_epi8((__m128i)mask) != 0;
#else
    int32_t some = 0;
    for (int i = 0; i < LANES<int32_t>; i++) some |= mask[i];
    return some != 0;
#endif
}
INLINE bool any_lane(vl mask) { return any_lane((vi)mask); }

template <class V> INLINE ints_of<V> sign_bits() {
    return ints(num<V>(-0.0));
}
template <class V> INLINE V v_abs(V x) { return as_real<V>(ints(x) & ~sign_bits<V>()); }
template <class V> INLINE V sign_of(V x) { return as_real<V>(ints(x) & sign_bits<V>()); }  // 0 or -0
template <class V> INLINE V with_sign(V size, V sign) { return as_real<V>(ints(size) | ints(sign)); }
template <class V> INLINE V flip_sign(V x, V sign) { return as_real<V>(ints(x) ^ ints(sign)); }

// The masked forms: the plain ones of some GCC warn of an operand that they do not use.
INLINE vf v_sqrt(vf x) {
#if defined(__AVX512F__)
    return (vf)_mm512_maskz_sqrt_ps(0xffff, (__m512)x);
#elif defined(__AVX2__)
    return (vf)_mm256_sqrt_ps((__m256)x);
#elif defined(__SSE2__)
    return (vf)_mm_sqrt_ps((__m128)x);
#else
    for (int i = 0; i < LANES<float>; i++) x[i] = sqrtf(x[i]);
    return x;
#endif
}
INLINE vd v_sqrt(vd x) {
#if defined(__AVX512F__)
    return (vd)_mm512_maskz_sqrt_pd(0xff, (__m512d)x);
#elif defined(__AVX2__)
    return (vd)_mm256_sqrt_pd((__m256d)x);
#elif defined(__SSE2__)
    return (vd)_mm_sqrt_pd((__m128d)x);
#else
    for (int i = 0; i < LANES<double>; i++) x[i] = sqrt(x[i]);
    return x;
#endif
}

// 1 / sqrt(x): the machine's estimate and Newton's steps are faster than a root and a division.
template <class V> INLINE V v_rsqrt(V x) {
#if defined(__AVX512F__)
    V y, gap;  // the half is taken of y: of a subnormal x it would lose a bit
    if constexpr (is_single<V>) y = (V)_mm512_maskz_rsqrt14_ps(0xffff, (__m512)x);
    else y = (V)_mm512_maskz_rsqrt14_pd(0xff, (__m512d)x);
    V start = y;
    if constexpr (!is_single<V>) y = fma(y, fma(-x * y, y * num<V>(0.5), num<V>(0.5)), y);
    gap = fma(-x * y, y * num<V>(0.5), num<V>(0.5));
    return select(gap == gap, fma(y, gap, y), start);
#else
    return num<V>(1) / v_sqrt(x);
#endif
}

// Apply a scalar function to the lanes of a mask: what is rare is done one by one.
template <class V, class F> INLINE V rescue(V y, V x, ints_of<V> mask, F f) {
    for (int i = 0; i < LANES<scalar_of<V>>; i++)
        if (mask[i]) y[i] = f(x[i]);
    return y;
}

// c0 + c1 x + c2 x**2 + ...
template <class V> INLINE V poly(V, double c) { return num<V>(c); }
template <class V, class... Rest> INLINE V poly(V x, double c, Rest... rest) {
    return fma(poly(x, rest...), x, num<V>(c));
}

// The same by pairs of terms, pairs of pairs and so on: a few operations more, of which fewer wait for each other. With AVX-512
// several vectors are on their way at once, and fewer operations count.
template <class V, int N> INLINE V pairs(V x, V (&c)[N]) {
    if constexpr (N == 1) return c[0];
    else {
        V half[(N + 1) / 2];
#pragma GCC unroll 16
        for (int i = 0; i < N; i += 2) half[i / 2] = i + 1 < N ? fma(c[i + 1], x, c[i]) : c[i];
        return pairs(x * x, half);
    }
}
template <class V, class... C> INLINE V poly_pairs(V x, C... c) {
#if defined(__AVX512F__)
    return poly(x, c...);
#else
    V terms[] = {num<V>(c)...};
    return pairs(x, terms);
#endif
}

// The nearest whole number, of |x| < 2**22 or 2**51.
template <class V> INLINE V nearest(V x) { return (x + num<V>(parts_of<V>::magic)) - num<V>(parts_of<V>::magic); }

// 2**n for whole n between the least and the largest normal exponent.
template <class V> INLINE V power_of_2(V n) {
    return as_real<V>(ints(n + num<V>(parts_of<V>::magic + parts_of<V>::bias)) << parts_of<V>::digits);
}

// x * 2**n for whole n, also where the result is subnormal or infinite.
template <class V> INLINE V scale_by_2(V x, V n) {
#if defined(__AVX512F__)
    if constexpr (is_single<V>) return (V)_mm512_maskz_scalef_ps(0xffff, (__m512)x, (__m512)n);
    else return (V)_mm512_maskz_scalef_pd(0xff, (__m512d)x, (__m512d)n);
#else
    V half = nearest(n * num<V>(0.5));
    return x * power_of_2(half) * power_of_2(n - half);
#endif
}

// x * 2**n, also given as `power`, where that and the result are normal numbers.
template <class V> INLINE V scale_normal(V x, V n, V power) {
#if defined(__AVX512F__)
    return scale_by_2(x, n);
#else
    return x * power;
#endif
}

// ---- exponentials ----

// x = n ln 2 + r, |r| <= ln 2 / 2; and 2**n where that is a normal number: beside the exponent's bias, n is the low digits of
// a large sum.
template <class V> struct ExpParts {
    V n, r, power;
};
template <class V> INLINE ExpParts<V> reduce_exp(V x) {
    const V large = num<V>(parts_of<V>::magic + parts_of<V>::bias);
    V sum = fma(x, num<V>(0x1.71547652b82fep+0), large), n = sum - large;
    V r = fma(n, num<V>(-0.693359375f, -0x1.62e42feep-1), x);
    r = fma(n, num<V>(2.12194440e-4f, -1.90821492927058770002e-10), r);
    return {n, r, as_real<V>(ints(sum) << parts_of<V>::digits)};
}

// (exp(r) - 1 - r) / r**2
template <class V> INLINE V exp_rest(V r) {
    if constexpr (is_single<V>) return poly(r, 0.49999994f, 0.166665196f, 0.0416683108f, 0.00836888328f, 0.00138183672f);
    else
        return poly(r, 0.5000000000000001, 0.16666666666666669, 0.04166666666662274, 0.008333333333329956,
                    0.0013888888917903373, 0.00019841269863583974, 2.4801520228646452e-05, 2.7557267639224082e-06,
                    2.76205940841413e-07, 2.510077433671713e-08);
}
template <class V> INLINE V exp_less_1(V r) { return fma(r * r, exp_rest(r), r); }

template <class V> INLINE V exp_of_rest(V r) { return fma(fma(exp_rest(r), r, num<V>(1)), r, num<V>(1)); }

// exp of x where the result is neither subnormal nor infinite.
template <class V> INLINE V exp_normal(V x) {
    auto [n, r, power] = reduce_exp(x);
    return scale_normal(exp_of_rest(r), n, power);
}

// exp(r) * 2**n, of `reduce`. Below `least` it is 0 without being computed: an underflow takes processors twenty-five times as
// long.
template <class V, class F> INLINE V exp_between(V x, V least, V most, F reduce) {
#if defined(__AVX512F__)  // has masks for that
    const auto [n, r, power] = reduce(vmin(most, x));
    const V y = exp_of_rest(r);
    if constexpr (is_single<V>)
        return (V)_mm512_maskz_scalef_ps(_mm512_cmp_ps_mask((__m512)x, (__m512)least, _CMP_NLT_UQ), (__m512)y, (__m512)n);
    else return (V)_mm512_maskz_scalef_pd(_mm512_cmp_pd_mask((__m512d)x, (__m512d)least, _CMP_NLT_UQ), (__m512d)y, (__m512d)n);
#else
    const auto gone = x < least;
    const auto [n, r, power] = reduce(select(gone, V{}, vmin(most, x)));
    return select(gone, V{}, scale_by_2(exp_of_rest(r), n));
#endif
}

template <class V> SHARED V v_exp(V x) { return exp_between(x, num<V>(-104.0f, -746.0), num<V>(89.0f, 710.0), reduce_exp<V>); }

template <class V> SHARED V v_exp2(V x) {
    return exp_between(x, num<V>(-150.0f, -1075.0), num<V>(129.0f, 1025.0), [](V at) {
        const V n = nearest(at);
        return ExpParts<V>{n, (at - n) * num<V>(0x1.62e42fefa39efp-1), n};
    });
}

// expm1(x) / 2; it overflows where it must, if x is not much larger.
template <class V> INLINE V half_expm1(V x) {
    auto [n, r, power] = reduce_exp(x);
    V quarter = power_of_2(n - num<V>(2)), y = fma(quarter, exp_less_1(r), quarter - num<V>(0.25));
    return y + y;
}

template <class V> SHARED V v_expm1(V x) {
    V y = vmin(num<V>(88.8f, 709.8), x);
    y = vmax(num<V>(-30.0f, -60.0), y);
    y = half_expm1(y);
    return select(x == num<V>(0), x, y + y);
}

// ---- logarithms ----

// x = 2**e m with m from 3/4 to 3/2, for positive normal x.
template <class V> struct LogParts {
    V e, m;
};
template <class V> INLINE LogParts<V> split_log(V x) {
#if defined(__AVX512F__)
    if constexpr (is_single<V>) {
        __m512 m = _mm512_maskz_getmant_ps(0xffff, (__m512)x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan);
        return {(V)_mm512_maskz_getexp_ps(0xffff, (__m512)x) - (V)_mm512_maskz_getexp_ps(0xffff, m), (V)m};
    } else {
        __m512d m = _mm512_maskz_getmant_pd(0xff, (__m512d)x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan);
        return {(V)_mm512_maskz_getexp_pd(0xff, (__m512d)x) - (V)_mm512_maskz_getexp_pd(0xff, m), (V)m};
    }
#else
    using P = parts_of<V>;
    using U = uints_of<V>;
    // The exponent is moved by a power of 2, so that it is positive, and read as the low digits of a large number.
    constexpr int up = P::bias + 1;
    U moved = (U)ints(x) - (U)ints(num<V>(0.75)) + (U)(ints(num<V>(0)) + (static_cast<typename P::S>(up) << P::digits));
    V e = as_real<V>(ints_of<V>((moved >> P::digits) | (U)ints(num<V>(P::magic)))) - num<V>(P::magic + up);
    U whole = (moved >> P::digits) - static_cast<typename P::S>(up);
    return {e, as_real<V>(ints(x) - ints_of<V>(whole << P::digits))};
#endif
}

// log(1 + f) = f + rest(f), for f from -1/4 to 1/2
template <class V> INLINE V log_rest(V f) {
    V square = f * f;
    if constexpr (is_single<V>) {
        V p = poly(f, 0.333333403f, -0.250001669f, 0.199996054f, -0.166552797f, 0.142761678f, -0.127278835f, 0.117015488f,
                   -0.091175884f, 0.0376794375f);
        return fma(square * f, p, square * num<V>(-0.5));
    } else {
        V s = f / (f + num<V>(2)), z = s * s;
        V p = poly(z, 0.6666666666666661, 0.40000000000052727, 0.2857142855654835, 0.2222222423160642,
                   0.18181669082562876, 0.1539102329046289, 0.13174885159774133, 0.13835418048558284);
        V half = square * num<V>(0.5);
        return s * fma(z, p, half) - half;
    }
}

template <class V> INLINE ints_of<V> plain(V x) {  // positive and normal
    return (x >= num<V>(parts_of<V>::least)) & (x <= num<V>(is_single<V> ? 0x1.fffffep127 : 0x1.fffffffffffffp1023));
}
template <class V> INLINE bool all_plain(V x) {
#if defined(__AVX512F__)
    if constexpr (is_single<V>) return _mm512_fpclass_ps_mask((__m512)x, 0xff) == 0;
    else return _mm512_fpclass_pd_mask((__m512d)x, 0xff) == 0;
#else
    return !any_lane(~plain(x));
#endif
}

// x with subnormal numbers lifted by `lift`, the rest made harmless; and where it was anything but positive and normal.
template <class V> struct LogInput {
    V x, lift;
    bool odd;
};
template <class V> INLINE LogInput<V> check_log(V x) {
    if (__builtin_expect(all_plain(x), 1)) return {x, num<V>(0), false};
    ints_of<V> low = (x > num<V>(0)) & (x < num<V>(parts_of<V>::least));
    V lifted = select(low, x * num<V>(0x1p25f, 0x1p54), select(plain(x), x, num<V>(1)));
    return {lifted, select(low, num<V>(-25.0f, -54.0), num<V>(0)), true};
}
template <class V> INLINE V log_ends(V y, V x) {
    y = select(x == num<V>(0), num<V>(-__builtin_inf()), y);
    y = select(x == num<V>(__builtin_inf()), x, y);
    return select(x >= num<V>(0), y, select(x < num<V>(0), num<V>(__builtin_nan("")), x - x));
}

// log of 2**e (1 + f). Both parts of log(2) are positive: of an infinite e they are not to be infinities of two signs.
template <class V> INLINE V log_sum(V e, V f) {
    V low = fma(e, num<V>(0x1.7f7d1cp-20f, 1.90821492927058770002e-10), log_rest(f));
    return fma(e, num<V>(0x1.62e4p-1f, 0x1.62e42feep-1), f + low);
}

template <class V> SHARED V v_log(V x) {
#if defined(__AVX512F__)  // splits subnormal numbers too; 0 and infinity have such an exponent, nans and what is below 0 a nan
    auto [e, m] = split_log(x);
    return log_sum(e, m - num<V>(1));
#else
    LogInput<V> in = check_log(x);
    auto [e, m] = split_log(in.x);
    if (__builtin_expect(in.odd, 0)) e += in.lift;
    V y = log_sum(e, m - num<V>(1));
    if (__builtin_expect(in.odd, 0)) y = log_ends(y, x);
    return y;
#endif
}

// log of 1 / log(base) = high + low and log(2) / log(base) = two_high + two_low: the large products are exact.
template <class V> INLINE V log_base(V x, V high, V low, V two_high, V two_low) {
    LogInput<V> in = check_log(x);
    auto [e, m] = split_log(in.x);
    if (__builtin_expect(in.odd, 0)) e += in.lift;
    V f = m - num<V>(1);
    V rest = log_rest(f);
    V sum = f + rest;
    // The leading digits of the logarithm, so few that their product with `high` is exact.
    constexpr long long mask = is_single<V> ? ~0xfffLL : ~0x7ffffffLL;
    V top = as_real<V>(ints(sum) & static_cast<typename parts_of<V>::S>(mask));
    V bottom = (f - top) + rest;
    V a = e * two_high, b = top * high;
    V large = a + b;
    V lost = select(e == num<V>(0), num<V>(0), b - (large - a));
    V small = fma(e, two_low, fma(bottom, high + low, top * low));
    V y = large + (lost + small);
    if (__builtin_expect(in.odd, 0)) y = log_ends(y, x);
    return y;
}
template <class V> INLINE V v_log2(V x) {
    return log_base(x, num<V>(0x1.714p+0f, 0x1.715476p+0), num<V>(0x1.47652b82fe177p-12f, 0x1.4ae0bf85ddf44p-26), num<V>(1),
                    num<V>(0));
}
template <class V> INLINE V v_log10(V x) {
    return log_base(x, num<V>(0x1.bcap-2f, 0x1.bcb7b1p-2), num<V>(0x1.7b1526e50e32ap-14f, 0x1.49b9438ca9aaep-28),
                    num<V>(0x1.344p-2f, 0x1.34413509f7p-2), num<V>(0x1.3509f79fef312p-18f, 0x1.3fde623e2566bp-43));
}

template <class V> SHARED V v_log1p(V x) {
    V u = x + num<V>(1);
    LogInput<V> in = check_log(u);
    auto [e, m] = split_log(in.x);
    // What the sum lost; of a large x it is nothing beside it.
    V small = vmin(v_abs(x), num<V>(0x1p60f, 0x1p120));
    V lost = select(small < num<V>(1), x - (u - num<V>(1)), num<V>(1) - (u - x));
    lost = select(v_abs(e) < num<V>(60.0f, 120.0), lost * power_of_2(vmax(num<V>(-60.0f, -120.0), -e)), num<V>(0));
    V f = (m - num<V>(1)) + lost;
    V y = log_sum(e, f);
    if (__builtin_expect(in.odd, 0)) y = log_ends(y, u);
    return select(v_abs(x) < num<V>(parts_of<V>::least), x, y);
}

#if defined(__x86_64__) && !defined(__AVX2__)
template <class V> INLINE V rare_log(V x) { return v_log(x); }
template <class V> INLINE V rare_log1p(V x) { return v_log1p(x); }
#else
template <class V> RARE V rare_log(V x) { return v_log(x); }
template <class V> RARE V rare_log1p(V x) { return v_log1p(x); }
#endif

// ---- hyperbolic functions and their relatives ----

// 1 / (1 + exp(-x)); a result that would be subnormal is 0.
template <class V> INLINE V v_sigmoid(V x) { return num<V>(1) / (v_exp(-x) + num<V>(1)); }

template <class V> SHARED V v_tanh(V x) {
    auto [n, r, power] = reduce_exp(vmin(num<V>(20.0f, 40.0), v_abs(x + x)));
    V e = fma(power, exp_less_1(r), power - num<V>(1));  // expm1(2 |x|)
    return flip_sign(e / (e + num<V>(2)), sign_of(x));
}

template <class V> INLINE V v_sinh(V x) {
    V a = vmin(num<V>(89.5f, 710.5), v_abs(x));
    V e = half_expm1(a);
    V y = fma(e, num<V>(1) / fma(e, num<V>(2), num<V>(1)), e);
    return flip_sign(select(e > num<V>(0x1p60), e, y), sign_of(x));
}

template <class V> INLINE V v_cosh(V x) {
    V a = vmin(num<V>(89.5f, 710.5), v_abs(x));
    auto [n, r, power] = reduce_exp(a);
    V e = exp_of_rest(r) * power_of_2(n - num<V>(2));
    e += e;
    return e + num<V>(0.25) / e;
}

// log(x) + log(2) beyond the square root of the inverse of eps, where x**2 + 1 is x**2
template <class V> INLINE V log_twice(V x) { return rare_log(x) + num<V>(0x1.62e42fefa39efp-1); }

template <class V> INLINE V v_asinh(V x) {
    V a = v_abs(x), most = num<V>(0x1p13f, 0x1p28);
    ints_of<V> large = a > most;
    V b = select(large, num<V>(1), a), square = b * b;
    V y = rare_log1p(b + square / (v_sqrt(square + num<V>(1)) + num<V>(1)));
    if (__builtin_expect(any_lane(large), 0)) y = select(large, log_twice(a), y);
    return flip_sign(y, sign_of(x));
}

template <class V> INLINE V v_acosh(V x) {
    V most = num<V>(0x1p13f, 0x1p28);
    ints_of<V> large = x > most;
    V t = select(large, num<V>(1), x) - num<V>(1);
    V y = rare_log1p(t + v_sqrt(t * (t + num<V>(2))));
    if (__builtin_expect(any_lane(large), 0)) y = select(large, log_twice(x), y);
    return select(x < num<V>(1), num<V>(__builtin_nan("")), y);
}

template <class V> INLINE V v_atanh(V x) {
    V a = v_abs(x), twice = a + a, quotient = a / (num<V>(1) - a);
    V t = select(a < num<V>(0.5), fma(twice, quotient, twice), quotient + quotient);
    return flip_sign(rare_log1p(t) * num<V>(0.5), sign_of(x));
}

// log(1 + x) for x from 0 to 1
template <class V> INLINE V log1p_unit(V x) {
    ints_of<V> high = x > num<V>(0.5);
    V f = select(high, fma(x, num<V>(0.5), num<V>(-0.5)), x);
    V low = select(high, num<V>(0.69314718055994531 - 0.693359375f, 1.90821492927058770002e-10), num<V>(0)) + log_rest(f);
    return select(high, num<V>(0.693359375f, 0x1.62e42feep-1), num<V>(0)) + (f + low);
}

// log(1 + exp(x))
template <class V> SHARED V v_softplus(V x) {
    return select(x > num<V>(0), x, num<V>(0)) + log1p_unit(v_exp(with_sign(v_abs(x), num<V>(-0.0))));
}

}  // namespace mortice::ISA
