// The exponential of a vector, to about one unit in the last place: e**x = 2**n * e**r with |r| <= log(2) / 2.
#pragma once
#include "simd.hpp"

namespace mortice::ISA {

// 2**n * x for whole n, in two steps, so that results below the normal numbers are rounded and not lost.
INLINE vf scale_by_power(vf x, vf n) {
#if defined(__AVX512F__)
    return (vf)_mm512_maskz_scalef_ps((__mmask16)-1, (__m512)x, (__m512)n);
#else
    const vi whole = __builtin_convertvector(n, vi), half = whole >> 1;
    return x * (vf)((half + 127) << 23) * (vf)((whole - half + 127) << 23);
#endif
}
INLINE vd scale_by_power(vd x, vd n) {
#if defined(__AVX512F__)
    return (vd)_mm512_maskz_scalef_pd((__mmask8)-1, (__m512d)x, (__m512d)n);
#else
    const vl whole = (vl)(n + 0x1.8p52) - (vl)(vd{} + 0x1.8p52), half = whole >> 1;  // no instruction converts
    return x * (vd)((half + 1023) << 52) * (vd)((whole - half + 1023) << 52);
#endif
}

INLINE vf exp_of(vf x) {
    // Beyond these all is inf or 0; the comparisons keep a nan.
    x = vmin(splat(90.0f), vmax(splat(-105.0f), x));
    const vf big = splat(0x1.8p23f);
    const vf n = fma(x, splat(1.44269504f), big) - big;
    vf r = fma(n, splat(-0x1.62e4p-1f), x);
    r = fma(n, splat(-0x1.7f7d1cp-20f), r);
    vf p = splat(1.0f / 5040);
    p = fma(p, r, splat(1.0f / 720));
    p = fma(p, r, splat(1.0f / 120));
    p = fma(p, r, splat(1.0f / 24));
    p = fma(p, r, splat(1.0f / 6));
    p = fma(p, r, splat(0.5f));
    p = fma(p * r, r, r);
    return scale_by_power(p + 1.0f, n);
}
INLINE vd exp_of(vd x) {
    x = vmin(splat(710.0), vmax(splat(-746.0), x));
    const vd big = splat(0x1.8p52);
    const vd n = fma(x, splat(0x1.71547652b82fep0), big) - big;
    vd r = fma(n, splat(-0x1.62e42fee00000p-1), x);
    r = fma(n, splat(-0x1.a39ef35793c76p-33), r);
    vd p = splat(1.0 / 6227020800.0);
    p = fma(p, r, splat(1.0 / 479001600.0));
    p = fma(p, r, splat(1.0 / 39916800.0));
    p = fma(p, r, splat(1.0 / 3628800.0));
    p = fma(p, r, splat(1.0 / 362880.0));
    p = fma(p, r, splat(1.0 / 40320.0));
    p = fma(p, r, splat(1.0 / 5040.0));
    p = fma(p, r, splat(1.0 / 720.0));
    p = fma(p, r, splat(1.0 / 120.0));
    p = fma(p, r, splat(1.0 / 24.0));
    p = fma(p, r, splat(1.0 / 6.0));
    p = fma(p, r, splat(0.5));
    p = fma(p * r, r, r);
    return scale_by_power(p + 1.0, n);
}

}  // namespace mortice::ISA
