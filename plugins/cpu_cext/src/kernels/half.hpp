// Half precision: float16 and bfloat16 as float and back, one number, one vector, or a block. Rounding is to the nearest,
// ties to even, also where the machine has no instruction for it. Kernels compute on blocks of floats on the stack.
#pragma once
#include "simd.hpp"

namespace mortice::ISA {

constexpr int HALF_BLOCK = 512;  // elements of a block: small enough for the stack and the first-level cache

typedef uint32_t vu __attribute__((vector_size(VECTOR_BYTES)));       // the bits of a vf
typedef uint16_t vh __attribute__((vector_size(VECTOR_BYTES / 2)));   // the bits of as many halves

// ---- bits, for vectors (U = vu, F = vf) and for single numbers (U = uint32_t, F = float) ----

template <class F, class U> INLINE F as_float_bits(U u) {
    F f;
    __builtin_memcpy(&f, &u, sizeof f);
    return f;
}
template <class U, class F> INLINE U as_bits(F f) {
    U u;
    __builtin_memcpy(&u, &f, sizeof u);
    return u;
}

// float16 in the low bits of u. The product moves the exponent, subnormals included, and is exact.
template <class F, class U> INLINE F float_of_half(U u) {
    U magnitude = (u & 0x7fffu) << 13;
    U scaled = as_bits<U>(as_float_bits<F>(magnitude) * 0x1p112f);
    U bits = magnitude >= 0x0f800000u ? (magnitude | 0x7f800000u) : scaled;
    return as_float_bits<F>(bits | ((u & 0x8000u) << 16));
}

template <class U, class F> INLINE U half_of_float(F f) {
    U bits = as_bits<U>(f), sign = (bits >> 16) & 0x8000u, a = bits & 0x7fffffffu;
    // Beside 0.5 the last place of a float is that of a subnormal half: the addition rounds.
    U low = as_bits<U>(as_float_bits<F>(a) + 0.5f) - 0x3f000000u;
    U normal = (a - 0x38000000u + 0xfffu + ((a >> 13) & 1u)) >> 13;
    U high = a > 0x7f800000u ? (((a >> 13) & 0x3ffu) | 0x7e00u) : (a & 0u) + 0x7c00u;
    return sign | (a < 0x38800000u ? low : a >= 0x47800000u ? high : normal);
}

template <class F, class U> INLINE F float_of_bhalf(U u) { return as_float_bits<F>(u << 16); }

template <class U, class F> INLINE U bhalf_of_float(F f) {
    U bits = as_bits<U>(f);
    U rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return (bits & 0x7fffffffu) > 0x7f800000u ? ((bits >> 16) | 0x40u) : rounded;
}

// ---- one number ----

INLINE float to_float(half h) {
#if defined(__F16C__)
    return _cvtsh_ss(h.bits);
#else
    return float_of_half<float, uint32_t>(h.bits);
#endif
}
INLINE float to_float(bhalf h) { return float_of_bhalf<float, uint32_t>(h.bits); }
INLINE float to_float(float x) { return x; }

template <class H> INLINE H from_float(float x) {
    if constexpr (__is_same(H, bhalf)) {
        return {static_cast<uint16_t>(bhalf_of_float<uint32_t>(x))};
    } else if constexpr (__is_same(H, float)) {
        return x;
    } else {
#if defined(__F16C__)
        return {static_cast<uint16_t>(_cvtss_sh(x, 0))};
#else
        return {static_cast<uint16_t>(half_of_float<uint32_t>(x))};
#endif
    }
}

// ---- one vector: LANES<float> numbers at p ----

INLINE vf load_floats(const half *p) {
#if defined(__AVX512F__)
    __m256i h;
    __builtin_memcpy(&h, p, sizeof h);
    return (vf)_mm512_maskz_cvtph_ps(0xffff, h);
#elif defined(__F16C__)
    __m128i h;
    __builtin_memcpy(&h, p, sizeof h);
    return (vf)_mm256_cvtph_ps(h);
#else
    vh h;
    __builtin_memcpy(&h, p, sizeof h);
    return float_of_half<vf>(__builtin_convertvector(h, vu));
#endif
}
INLINE vf load_floats(const bhalf *p) {
#if defined(__AVX512F__)
    __m256i h;
    __builtin_memcpy(&h, p, sizeof h);
    return (vf)(vu)((vu)_mm512_maskz_cvtepu16_epi32(0xffff, h) << 16);
#elif defined(__AVX2__)
    __m128i h;
    __builtin_memcpy(&h, p, sizeof h);
    return (vf)_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16);
#else
    vh h;
    __builtin_memcpy(&h, p, sizeof h);
    return float_of_bhalf<vf>(__builtin_convertvector(h, vu));
#endif
}
INLINE vf load_floats(const float *p) { return load<float>(p); }

INLINE void store_floats(half *p, vf v) {
#if defined(__AVX512F__)
    __m256i h = _mm512_maskz_cvtps_ph(0xffff, (__m512)v, 0);
    __builtin_memcpy(p, &h, sizeof h);
#elif defined(__F16C__)
    __m128i h = _mm256_cvtps_ph((__m256)v, 0);
    __builtin_memcpy(p, &h, sizeof h);
#else
    vh h = __builtin_convertvector(half_of_float<vu>(v), vh);
    __builtin_memcpy(p, &h, sizeof h);
#endif
}
INLINE void store_floats(bhalf *p, vf v) {
#if defined(__AVX512F__)
    __m512i bits = (__m512i)v, odd = _mm512_maskz_srli_epi32(0xffff, bits, 16), quiet = _mm512_set1_epi32(0x400000);
    __m512i rounded = (__m512i)((vu)bits + 0x7fffu + ((vu)odd & 1u));
    rounded = _mm512_mask_or_epi32(rounded, _mm512_cmp_ps_mask((__m512)v, (__m512)v, _CMP_UNORD_Q), bits, quiet);
    __m256i h = _mm512_maskz_cvtepi32_epi16(0xffff, _mm512_maskz_srli_epi32(0xffff, rounded, 16));
    __builtin_memcpy(p, &h, sizeof h);
#elif defined(__AVX2__)
    __m256i h = (__m256i)bhalf_of_float<vu>(v);
    __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1));
    __builtin_memcpy(p, &packed, sizeof packed);
#else
    vh h = __builtin_convertvector(bhalf_of_float<vu>(v), vh);
    __builtin_memcpy(p, &h, sizeof h);
#endif
}
INLINE void store_floats(float *p, vf v) { store<float>(p, v); }

// The first n lanes, the others 0; n < LANES<float>.
template <class H> INLINE vf load_floats_part(const H *p, int64_t n) {
    H room[LANES<float>] = {};
    __builtin_memcpy(room, p, n * sizeof(H));
    return load_floats(room);
}
template <class H> INLINE void store_floats_part(H *p, vf v, int64_t n) {
    H room[LANES<float>];
    store_floats(room, v);
    __builtin_memcpy(p, room, n * sizeof(H));
}

// ---- blocks: not static, so that the files of an instruction set share one copy of each ----

template <class H> __attribute__((noinline)) void widen(const H *in, float *out, int64_t n) {
    int64_t i = 0;
    for (; i + LANES<float> <= n; i += LANES<float>) store<float>(out + i, load_floats(in + i));
    if (i < n) store_part<float>(out + i, load_floats_part(in + i, n - i), n - i);
}
template <class H> __attribute__((noinline)) void narrow(const float *in, H *out, int64_t n) {
    int64_t i = 0;
    for (; i + LANES<float> <= n; i += LANES<float>) store_floats(out + i, load<float>(in + i));
    if (i < n) store_floats_part(out + i, load_part<float>(in + i, n - i), n - i);
}
// The same with any step between halves, in bytes.
template <class H>
__attribute__((noinline)) void widen(const char *in, int64_t step, float *out, int64_t n) {
    if (step == sizeof(H)) return widen(reinterpret_cast<const H *>(in), out, n);
    for (int64_t i = 0; i < n; i++) out[i] = to_float(*reinterpret_cast<const H *>(in + i * step));
}
template <class H>
__attribute__((noinline)) void narrow(const float *in, char *out, int64_t step, int64_t n) {
    if (step == sizeof(H)) return narrow(in, reinterpret_cast<H *>(out), n);
    for (int64_t i = 0; i < n; i++) *reinterpret_cast<H *>(out + i * step) = from_float<H>(in[i]);
}

}  // namespace mortice::ISA
