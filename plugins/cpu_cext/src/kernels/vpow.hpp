<<<<<<< HEAD
// Powers of whole vectors, v_pow(x, y) as C99 has pow: of floats by way of double, of doubles with a logarithm in two
// parts. See vmath.hpp.
=======
// Powers on whole vectors: the logarithm in two parts, so that the product with the exponent keeps its digits.
>>>>>>> w-binary
#pragma once
#include "vmath.hpp"

namespace mortice::ISA {

<<<<<<< HEAD
// ---- floats as doubles ----

struct Wide {
    vd low, high;
};
INLINE Wide wide(vf x) {
#if defined(__AVX512F__)
    __m512d y = (__m512d)x;
    __m256 a = _mm256_castpd_ps(_mm512_castpd512_pd256(y)), b = _mm256_castpd_ps(_mm512_extractf64x4_pd(y, 1));
    return {(vd)_mm512_maskz_cvtps_pd(0xff, a), (vd)_mm512_maskz_cvtps_pd(0xff, b)};
#elif defined(__AVX2__)
    return {(vd)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)x)), (vd)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)x, 1))};
#elif defined(__SSE2__)
    return {(vd)_mm_cvtps_pd((__m128)x), (vd)_mm_cvtps_pd(_mm_movehl_ps((__m128)x, (__m128)x))};
#else
    Wide w;
    for (int i = 0; i < LANES<double>; i++) w.low[i] = x[i], w.high[i] = x[i + LANES<double>];
    return w;
#endif
}
INLINE vf narrow(Wide w) {
#if defined(__AVX512F__)
    __m256 a = _mm512_maskz_cvtpd_ps(0xff, (__m512d)w.low), b = _mm512_maskz_cvtpd_ps(0xff, (__m512d)w.high);
    return (vf)_mm512_insertf32x8(_mm512_castps256_ps512(a), b, 1);
#elif defined(__AVX2__)
    return (vf)_mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps((__m256d)w.low)), _mm256_cvtpd_ps((__m256d)w.high), 1);
#elif defined(__SSE2__)
    return (vf)_mm_movelh_ps(_mm_cvtpd_ps((__m128d)w.low), _mm_cvtpd_ps((__m128d)w.high));
#else
    vf x;
    for (int i = 0; i < LANES<double>; i++) x[i] = static_cast<float>(w.low[i]), x[i + LANES<double>] = static_cast<float>(w.high[i]);
    return x;
#endif
}

// a**y of floats a > 0, to 2**-27.
INLINE vd power_single(vd a, vd y) {
    auto [e, m] = split_log(a);
    vd f = m - num<vd>(1);
    vd p = poly(f, 1.4426950409107078, -0.721347520833838, 0.48089833260934006, -0.36067365296828835, 0.2885404299796694,
                -0.2404584478867479, 0.2060568550613843, -0.18000298885954447, 0.16050175389806556, -0.14921173452573175,
                0.1388090237719121, -0.10206038069005757, 0.037997463796236336);
    vd t = y * fma(f, p, e);
    t = vmin(num<vd>(200), t);
    t = vmax(num<vd>(-200), t);
    vd n = nearest(t), r = t - n;
    vd q = poly(r, 1.0, 0.6931472057347688, 0.24022646892213906, 0.05550328779169839, 0.009618488812427751,
                0.0013399930583583987, 0.00015345847741374548);
    return q * power_of_2(n);
}

// ---- doubles ----

// a**y of doubles a > 0: log2(a) as high + low, where the machine multiplies and adds in one rounding.
INLINE vd power_double(vd a, vd y) {
    vl small = a < num<vd>(0x1p-1022);
    vd lift = num<vd>(0);
    if (__builtin_expect(any_lane(small), 0)) {
        a = select(small, a * num<vd>(0x1p54), a);
        lift = select(small, num<vd>(-54), lift);
    }
    auto [e, m] = split_log(a);
    e += lift;
    vd one = num<vd>(1), f = m - one;
    // s = f / (2 + f), z = s**2
    vd t = m + one, t_low = m - (t - one), inverse = one / t;
    vd s = f * inverse, s_low = (fma(-s, t, f) - s * t_low) * inverse;
    vd z = s * s, z_low = fma(s, s, -z) + (s + s) * s_low;
    // log(m) = 2 s + s z (2/3 + z rest)
    vd third = num<vd>(0x1.5555555555555p-1);
    vd rest = z * poly(z, 0.3999999999999997, 0.2857142857147475, 0.22222222207616357, 0.1818182019681699,
                       0.1538446714477079, 0.13339580653622177, 0.11613824261059133, 0.12449864831167248);
    vd b = third + rest, b_low = ((third - b) + rest) + num<vd>(0x1.5555555555555p-55);
    vd c = z * b, c_low = fma(z, b, -c) + fma(z, b_low, z_low * b);
    vd d = s * c, d_low = fma(s, c, -d) + fma(s, c_low, s_low * c);
    vd twice = s + s, sum = twice + d, sum_low = ((twice - sum) + d) + (d_low + (s_low + s_low));
    // times 1 / log(2), plus e
    vd scale = num<vd>(0x1.71547652b82fep+0);
    vd p = sum * scale, p_low = fma(sum, scale, -p) + fma(sum, num<vd>(0x1.777d0ffda0d24p-56), sum_low * scale);
    vd high = e + p, low = ((e - high) + p) + p_low;
    vd power = y * high, power_low = fma(y, high, -power) + y * low;
    vl inside = (power < num<vd>(1100)) & (power > num<vd>(-1100));
    power = vmin(num<vd>(1100), power);
    power = vmax(num<vd>(-1100), power);
    vd n = nearest(power), r = (power - n) + select(inside, power_low, num<vd>(0));
    return scale_by_2(exp_less_1(r * num<vd>(0x1.62e42fefa39efp-1)) + one, n);
}

// ---- both ----

INLINE vf power_positive(vf a, vf y) {
    Wide wa = wide(a), wy = wide(y);
    return narrow(Wide{power_single(wa.low, wy.low), power_single(wa.high, wy.high)});
}
INLINE vd power_positive(vd a, vd y) { return power_double(a, y); }

#if !defined(__FMA__) && !defined(__AVX512F__)
INLINE vd v_pow(vd x, vd y) {
    for (int i = 0; i < LANES<double>; i++) x[i] = pow(x[i], y[i]);
    return x;
}
INLINE vf v_pow(vf x, vf y) {
#else
template <class V> INLINE V v_pow(V x, V y) {
#endif
#if !defined(__FMA__) && !defined(__AVX512F__)
    using V = vf;
#endif
    V a = v_abs(x), zero = num<V>(0), endless = num<V>(__builtin_inf());
    // Zeros, infinities and nan are left to the C library.
    ints_of<V> plain = (a > zero) & (a < endless) & (v_abs(y) < endless);
    ints_of<V> odd_one = ~plain;
    bool rare = any_lane(odd_one);
    V base = a, exponent = y;
    if (__builtin_expect(rare, 0)) base = select(plain, a, num<V>(1)), exponent = select(plain, y, zero);
    V r = power_positive(base, exponent);
    ints_of<V> negative = x < zero;
    if (__builtin_expect(any_lane(negative), 0)) {
        V size = v_abs(y), most = num<V>(0x1p21f, 0x1p50), far = num<V>(0x1p24f, 0x1p53);
        // Beyond `most` a number may still be odd or have a half: such are left to the C library too.
        ints_of<V> doubtful = negative & (size >= most) & (size < far);
        ints_of<V> near = size < most;
        V part = select(near, size, zero), half = part * num<V>(0.5);
        ints_of<V> whole = nearest(part) == part, even = nearest(half) == half;
        r = select(negative & ~whole, num<V>(__builtin_nan("")), r);
        r = select(negative & whole & ~even, flip_sign(r, num<V>(-0.0)), r);
        odd_one |= doubtful;
        rare = rare || any_lane(doubtful);
    }
    if (__builtin_expect(rare, 0))
        for (int i = 0; i < LANES<scalar_of<V>>; i++)
            if (odd_one[i]) r[i] = static_cast<scalar_of<V>>(pow(static_cast<double>(x[i]), static_cast<double>(y[i])));
    return r;
}
=======
// A number as the sum of two, the second no more than half an ulp of the first.
template <class V> struct TwoParts {
    V high, low;
};
template <class V> INLINE TwoParts<V> two_sum(V large, V small) {
    V sum = large + small;
    return {sum, (large - sum) + small};
}

// log2 of 2**e m, m from 3/4 to 3/2: 2 / ln 2 times s (1 + z (1/3 + z Q(z))), s = (m - 1) / (m + 1), z = s**2.
template <class V> INLINE TwoParts<V> log2_parts(V e, V m) {
    const V one = num<V>(1), f = m - one, d = m + one, d_low = m - (d - one);
    const V inverse = one / d, s = f * inverse, s_low = (fma(-s, d, f) - s * d_low) * inverse;
    const V z = s * s, z_low = fma(s, s, -z) + (s + s) * s_low;
    V q;
    if constexpr (is_single<V>) q = poly(z, 0.199999998f, 0.142858472f, 0.110946355f, 0.0973859536f);
    else
        q = poly(z, 0.2, 0.142857142857142432, 0.111111111111393482, 0.0909090908369563619, 0.0769230861413090662,
                 0.0666660062692384462, 0.0588512274949240284, 0.0519589506640086743, 0.0562849521550664933);
    const auto p = two_sum(num<V>(0x1.555556p-2f, 0x1.5555555555555p-2), z * q);
    const V p_low = p.low + num<V>(-0x1.555556p-27f, 0x1.5555555555555p-56);
    const V t = z * p.high, t_low = fma(z, p.high, -t) + fma(z, p_low, z_low * p.high);
    const V u = s * t, u_low = fma(s, t, -u) + fma(s, t_low, s_low * t);
    const auto log = two_sum(s, u);
    const V log_low = log.low + (u_low + s_low);
    const V scale_high = num<V>(0x1.715476p+1f, 0x1.71547652b82fep+1), scale_low = num<V>(0x1.4ae0cp-25f, 0x1.777d0ffda0d24p-55);
    const V l = log.high * scale_high;
    const V l_low = fma(log.high, scale_high, -l) + fma(log.high, scale_low, log_low * scale_high);
    const auto sum = two_sum(e, l);
    return {sum.high, sum.low + l_low};
}

// x**y for positive normal x and finite y.
template <class V> INLINE V pow_positive(V x, V y) {
    const auto [e, m] = split_log(x);
    const auto log = log2_parts(e, m);
    const V most = num<V>(200.0f, 1200.0);
    V p = y * log.high, p_low = fma(y, log.high, -p) + y * log.low;
    p_low = select(v_abs(p) < most, p_low, num<V>(0));
    p = vmin(most, vmax(-most, p));
    const V n = nearest(p), r = ((p - n) + p_low) * num<V>(0x1.62e42fefa39efp-1);
    return scale_by_2(exp_less_1(r) + num<V>(1), n);
}

INLINE float pow_one(float x, float y) { return powf(x, y); }
INLINE double pow_one(double x, double y) { return pow(x, y); }

// What is not plain: zeros by rule, the rest one by one.
template <class V> static __attribute__((noinline)) void pow_rest(V *r, const V *x, const V *y) {
    for (int i = 0; i < LANES<scalar_of<V>>; i++) {
        const auto x1 = (*x)[i], y1 = (*y)[i], size = x1 < 0 ? -x1 : x1;
        const bool by_rule = (size >= parts_of<V>::least && size < scalar_of<V>(__builtin_inf())) || size == 0;
        if (!by_rule || y1 - y1 != 0) (*r)[i] = pow_one(x1, y1);
    }
}

#if defined(__FMA__)
template <class V> INLINE V v_pow(V x, V y) {
    using I = ints_of<V>;
    const V a = v_abs(x), endless = num<V>(__builtin_inf());
    const I plain = (a >= num<V>(parts_of<V>::least)) & (a < endless) & (v_abs(y) < endless);
    V r = pow_positive(select(plain, a, num<V>(1)), select(plain, y, num<V>(0)));
    if (__builtin_expect(!any_lane(~plain | (x < num<V>(0))), 1)) return r;
    // Of negative numbers there are whole powers only; large floats are even.
    const V limit = num<V>(0x1p30f, 0x1p62), size = v_abs(y);
    const I n = __builtin_convertvector(select(size < limit, y, num<V>(0)), I);
    const I whole = (__builtin_convertvector(n, V) == y) | (size >= limit), odd = whole & ((n & 1) != 0);
    const I negative = ints(sign_of(x)) != 0;
    const V zero = num<V>(0), of_zero = select(y > zero, zero, select(y < zero, endless, num<V>(1)));
    r = select(negative & ~whole, num<V>(__builtin_nan("")), r);
    r = select(a == zero, of_zero, r);
    r = select(negative & odd, flip_sign(r, num<V>(-0.0)), r);
    const I odd_one = ~plain & ~((a == zero) & (size < endless));
    if (any_lane(odd_one)) {
        V rest = r;
        pow_rest(&rest, &x, &y);
        r = select(odd_one, rest, r);
    }
    return r;
}
#else  // the lower parts of products need a fused multiply-add
template <class V> INLINE V v_pow(V x, V y) {
    for (int i = 0; i < LANES<scalar_of<V>>; i++) x[i] = pow_one(x[i], y[i]);
    return x;
}
#endif
>>>>>>> w-binary

}  // namespace mortice::ISA
