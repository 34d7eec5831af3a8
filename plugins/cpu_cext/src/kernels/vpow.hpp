// Powers on whole vectors: the logarithm in two parts, so that the product with the exponent keeps its digits.
#pragma once
#include "vmath.hpp"

namespace mortice::ISA {

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
    return scale_by_2(exp_of_rest(r), n);
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

}  // namespace mortice::ISA
