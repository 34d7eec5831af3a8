// Circular functions and their inverses on whole vectors; see vmath.hpp.
#pragma once
#include "vmath.hpp"

namespace mortice::ISA {

// ---- sine, cosine, tangent ----

// x = n pi/2 + r, |r| <= pi/4, for x up to `far_angle`: pi/2 is taken away in parts, so that little is lost near its
// multiples. Where products are rounded the parts are so short that they are exact.
#if defined(__FMA__) || defined(__AVX512F__)
template <class V> INLINE V far_angle() { return num<V>(0x1p16f, 0x1p20); }
template <class V> INLINE V reduce_angle(V x, V n) {
    V r = fma(n, num<V>(-0x1.921fb6p+0f, -0x1.921fb54442d18p+0), x);
    r = fma(n, num<V>(0x1.777a5cp-25f, -0x1.1a62633145c07p-54), r);
    return fma(n, num<V>(0x1.ee59dap-50f, 0x1.f1976b7ed8fbcp-110), r);
}
#else
template <class V> INLINE V far_angle() { return num<V>(0x1p12f, 0x1p20); }
template <class V> INLINE V reduce_angle(V x, V n) {
    V r = x - n * num<V>(0x1.92p+0f, 0x1.921fb544p+0);
    r = r - n * num<V>(0x1.fb4p-12f, 0x1.0b4611a6p-34);
    r = r - n * num<V>(0x1.444p-24f, 0x1.3198a2ep-69);
    return r - n * num<V>(0x1.68c234c4c6629p-39f, 0x1.b839a252049c1p-104);
}
#endif

template <class V> INLINE V sin_small(V r, V z) {
    V p;
    if constexpr (is_single<V>) p = poly(z, -0.166666552f, 0.00833216682f, -0.000195156637f);
    else
        p = poly(z, -0.1666666666666663, 0.008333333333322144, -0.0001984126982958239, 2.7557313610537903e-06,
                 -2.50507449128059e-08, 1.5896005500334563e-10);
    return fma(r * z, p, r);
}
template <class V> INLINE V cos_small(V z) {
    V p;
    if constexpr (is_single<V>) p = poly(z, 0.0416666456f, -0.00138873525f, 2.44366147e-05f);
    else
        p = poly(z, 0.041666666666666595, -0.0013888888888873763, 2.4801587289244978e-05, -2.755731428089043e-07,
                 2.0875713194045294e-09, -1.1359108109133115e-11);
    return fma(z, fma(z, p, num<V>(-0.5)), num<V>(1));
}

// |x| and what is left of it in its quadrant; lanes that are too far (nan and infinities too) are taken as 0.
template <class V> struct AngleParts {
    V r, z;
    ints_of<V> quadrant, far;
};
template <class V> INLINE AngleParts<V> angle_of(V x) {
    V a = v_abs(x);
    ints_of<V> far = ~(a <= far_angle<V>());
    a = as_real<V>(ints(a) & ~far);
    V moved = fma(a, num<V>(0x1.45f306dc9c883p-1), num<V>(parts_of<V>::magic));
    V r = reduce_angle(a, moved - num<V>(parts_of<V>::magic));
    return {r, r * r, ints(moved), far};
}

// The sign bit where a bit of the quadrant is set.
template <class V> INLINE V sign_at(ints_of<V> quadrant, int bit) {
    return as_real<V>((quadrant << (sizeof(scalar_of<V>) * 8 - 1 - bit)) & sign_bits<V>());
}

template <class V> INLINE V v_sin(V x) {
    AngleParts<V> a = angle_of(x);
    V y = select((a.quadrant & 1) != 0, cos_small(a.z), sin_small(a.r, a.z));
    y = flip_sign(flip_sign(y, sign_at<V>(a.quadrant, 1)), sign_of(x));
    if (__builtin_expect(any_lane(a.far), 0)) y = rescue(y, x, a.far, [](double v) { return sin(v); });
    return y;
}
template <class V> INLINE V v_cos(V x) {
    AngleParts<V> a = angle_of(x);
    V y = select((a.quadrant & 1) != 0, sin_small(a.r, a.z), cos_small(a.z));
    y = flip_sign(y, sign_at<V>(a.quadrant + 1, 1));
    if (__builtin_expect(any_lane(a.far), 0)) y = rescue(y, x, a.far, [](double v) { return cos(v); });
    return y;
}
template <class V> INLINE V v_tan(V x) {
    AngleParts<V> a = angle_of(x);
    ints_of<V> odd = (a.quadrant & 1) != 0;
    V s = sin_small(a.r, a.z), c = cos_small(a.z);
    V y = select(odd, c, s) / select(odd, s, c);
    y = flip_sign(flip_sign(y, sign_at<V>(a.quadrant, 0)), sign_of(x));
    if (__builtin_expect(any_lane(a.far), 0)) y = rescue(y, x, a.far, [](double v) { return tan(v); });
    return y;
}

// ---- their inverses ----

// (atan(t) - t) / t for |t| <= tan(pi / 8)
template <class V> INLINE V atan_rest(V t) {
    V z = t * t, p;
    if constexpr (is_single<V>) p = poly(z, -0.333333164f, 0.199984848f, -0.142437682f, 0.105953731f, -0.0608177446f);
    else
        p = poly(z, -0.3333333333333333, 0.19999999999999804, -0.14285714285659779, 0.11111111105150588,
                 -0.09090908753259112, 0.07692296368042296, -0.0666642476020052, 0.05878927554473807,
                 -0.05230443640686948, 0.045515447340221615, -0.03456931506332609, 0.016284375050043393);
    return z * p;
}

// atan(y / x) for y, x >= 0, not both 0 or infinite: the quotient is turned by pi/4 or pi/2 towards 0 in one division.
template <class V> INLINE V atan_ratio(V y, V x) {
    ints_of<V> steep = y > x * num<V>(2.414213562373095), middle = y > x * num<V>(0.41421356237309503);
    V t = select(steep, -x, select(middle, y - x, y)) / select(steep, y, select(middle, y + x, x));
    V base = select(steep, num<V>(0x1.921fb54442d18p+0), select(middle, num<V>(0x1.921fb54442d18p-1), num<V>(0)));
    V lost = select(steep, num<V>(-4.37113900018624283e-8, 6.123233995736766e-17),
                    select(middle, num<V>(-2.18556950009312141e-8, 3.061616997868383e-17), num<V>(0)));
    return base + (t + fma(t, atan_rest(t), lost));
}

template <class V> INLINE V v_atan(V x) {
    V a = v_abs(x);
    // Beyond this the angle no longer changes, and y + x stays finite.
    V most = num<V>(0x1p60);
    return flip_sign(atan_ratio(select(a > most, most, a), num<V>(1)), sign_of(x));
}

template <class V> INLINE V v_atan2(V y, V x) {
    V a = v_abs(y), b = v_abs(x), zero = num<V>(0), one = num<V>(1), endless = num<V>(__builtin_inf());
    ints_of<V> both = (a == endless) & (b == endless);
    a = select(both, one, a);
    b = select(both | ((a == zero) & (b == zero)), one, b);
    // Halved or lifted, sums stay finite and quotients of small numbers keep their digits.
    V large = select(a > b, a, b);
    V by = select(large > num<V>(0x1p100f, 0x1p1000), num<V>(0x1p-40), num<V>(1));
    by = select(large < num<V>(0x1p-60f, 0x1p-900), num<V>(0x1p60), by);
    V near = atan_ratio(a * by, b * by);
    V far = num<V>(0x1.921fb54442d18p+1) - (near - num<V>(-8.742278000372485e-08, 1.2246467991473532e-16));
    ints_of<V> left = ints(sign_of(x)) != 0;
    V angle = flip_sign(select(left, far, near), sign_of(y));
    return select((x == x) & (y == y), angle, x + y);
}

// (asin(x) - x) / x for |x| <= 1/2, z = x**2
template <class V> INLINE V asin_rest(V z) {
    V p;
    if constexpr (is_single<V>) p = poly(z, 0.166667536f, 0.0749523267f, 0.0454783216f, 0.0241410751f, 0.0422304198f);
    else
        p = poly(z, 0.16666666666665375, 0.07500000000344793, 0.04464285682198421, 0.03038195939504628,
                 0.022371751949738825, 0.01735979545019809, 0.013884352338107846, 0.012174930707286466,
                 0.00650356560085031, 0.019594231221735987, -0.016326541678738888, 0.03198159959340862);
    return z * p;
}

// Above 1/2 the angle is measured from the other side: asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)).
template <class V> INLINE V v_asin(V x) {
    V a = v_abs(x);
    ints_of<V> near = a <= num<V>(0.5);
    V z = select(near, a * a, fma(a, num<V>(-0.5), num<V>(0.5)));
    V t = select(near, a, v_sqrt(z)), rest = t * asin_rest(z);
    V far = num<V>(0x1.921fb54442d18p+0) - (fma(t, num<V>(2), rest + rest) + num<V>(4.37113900018624283e-8, -6.123233995736766e-17));
    return flip_sign(select(near, t + rest, far), sign_of(x));
}
template <class V> INLINE V v_acos(V x) {
    V a = v_abs(x);
    ints_of<V> near = a <= num<V>(0.5);
    V z = select(near, a * a, fma(a, num<V>(-0.5), num<V>(0.5)));
    V t = select(near, x, v_sqrt(z)), rest = t * asin_rest(z);
    V low = num<V>(-4.37113900018624283e-8, 6.123233995736766e-17);
    V central = num<V>(0x1.921fb54442d18p+0) - (t - (low - rest));
    V side = fma(t, num<V>(2), rest + rest);
    V other = num<V>(0x1.921fb54442d18p+1) - (side - (low + low));
    return select(near, central, select(x < num<V>(0), other, side));
}

}  // namespace mortice::ISA
