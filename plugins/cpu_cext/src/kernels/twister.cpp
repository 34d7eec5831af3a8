// This file is compiled without contraction: what is fused says so.
#include "twister.hpp"

#include "simd.hpp"

namespace mortice::ISA {

static const int WORDS = 624, AHEAD = 397;

INLINE uint32_t twisted(uint32_t a, uint32_t b, uint32_t ahead) {
    return ahead ^ (((a & 0x80000000) | (b & 0x7fffffff)) >> 1) ^ (b & 1 ? 0x9908b0df : 0);
}

static void twist(uint32_t *words) {
    for (int i = 0; i < WORDS - AHEAD; i++) words[i] = twisted(words[i], words[i + 1], words[i + AHEAD]);
#pragma GCC ivdep
    for (int i = WORDS - AHEAD; i < WORDS - 1; i++) words[i] = twisted(words[i], words[i + 1], words[i + AHEAD - WORDS]);
    words[WORDS - 1] = twisted(words[WORDS - 1], words[0], words[AHEAD - 1]);
}

static void temper(const uint32_t *__restrict words, int64_t n, uint32_t *__restrict out) {
    for (int64_t i = 0; i < n; i++) {
        uint32_t w = words[i];
        w ^= w >> 11;
        w ^= w << 7 & 0x9d2c5680;
        w ^= w << 15 & 0xefc60000;
        out[i] = w ^ w >> 18;
    }
}

static void uniform_f32(const uint32_t *__restrict w, int64_t n, float *__restrict out, float low, float range) {
    range *= 0x1p-24f;
    for (int64_t i = 0; i < n; i++) out[i] = __builtin_fmaf(static_cast<float>(static_cast<int32_t>(w[i] & 0xffffff)), range, low);
}
// The upper half is put behind the exponent of 2^84, the lower behind that of 2^52, which are then taken off.
static void uniform_f64(const uint32_t *__restrict w, int64_t n, double *__restrict out, double low, double range) {
    range *= 0x1p-53;
    for (int64_t i = 0; i < n; i++) {
        uint64_t pair;
        __builtin_memcpy(&pair, w + 2 * i, 8);
        const uint64_t upper = (pair & 0x1fffff) | 0x4530000000000000, lower = pair >> 32 | 0x4330000000000000;
        double u, l;
        __builtin_memcpy(&u, &upper, 8);
        __builtin_memcpy(&l, &lower, 8);
        out[i] = __builtin_fma((u - 0x1p84) + (l - 0x1p52), range, low);
    }
}

// Each step is fused or not as in PyTorch's build: the numbers are the same to the bit.
INLINE float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

// Cephes' logarithm of a number in (0, 1].
INLINE float log_of(float x) {
    uint32_t bits;
    __builtin_memcpy(&bits, &x, 4);
    float e = static_cast<float>(static_cast<int32_t>(bits >> 23) - 126);
    bits = (bits & 0x007fffff) | 0x3f000000;
    __builtin_memcpy(&x, &bits, 4);
    const bool low = x < 0.707106781186547524f;
    e -= low ? 1.0f : 0.0f;
    x = (x - 1.0f) + (low ? x : 0.0f);
    const float z = x * x;
    float y = 7.0376836292e-2f;
    y = fused(y, x, -1.1514610310e-1f);
    y = fused(y, x, 1.1676998740e-1f);
    y = fused(y, x, -1.2420140846e-1f);
    y = fused(y, x, 1.4249322787e-1f);
    y = fused(y, x, -1.6668057665e-1f);
    y = fused(y, x, 2.0000714765e-1f);
    y = fused(y, x, -2.4999993993e-1f);
    y = fused(y, x, 3.3333331174e-1f);
    y = fused(y * x, z, e * -2.12194440e-4f) - z * 0.5f;
    return fused(e, 0.693359375f, x + y);
}

// Cephes' sine and cosine of an angle from 0 to 2 pi.
struct Turn {
    float sine, cosine;
};
INLINE Turn turn_of(float x) {
    const int32_t octant = (static_cast<int32_t>(x * 1.27323954473516f) + 1) & ~1;
    const float y = static_cast<float>(octant);
    x = fused(y, -0.78515625f, x);
    x = fused(y, -2.4187564849853515625e-4f, x);
    x = fused(y, -3.77489497744594108e-8f, x);
    const float z = x * x;
    float c = fused(2.443315711809948e-5f, z, -1.388731625493765e-3f);
    c = fused(c, z, 4.166664568298827e-2f);
    c = fused(c * z, z, z * -0.5f) + 1.0f;
    float s = fused(-1.9515295891e-4f, z, 8.3321608736e-3f);
    s = fused(s, z, -1.6666654611e-1f);
    s = fused(s * z, x, x);
    const bool crossed = octant & 2;
    const float sine = crossed ? c : s, cosine = crossed ? s : c;
    return {octant & 4 ? -sine : sine, (octant + 2) & 4 ? -cosine : cosine};
}

static void normal_blocks(float *at, int64_t blocks) {
    for (; blocks; blocks--, at += 16) {
        float first[8], second[8];
        for (int i = 0; i < 8; i++) {
            const float radius = __builtin_sqrtf(log_of(1.0f - at[i]) * -2.0f);
            const Turn turn = turn_of(at[i + 8] * 6.283185307179586f);
            first[i] = radius * turn.cosine;
            second[i] = radius * turn.sine;
        }
        __builtin_memcpy(at, first, sizeof first);
        __builtin_memcpy(at + 8, second, sizeof second);
    }
}

extern const TwisterTable twister_kernels_table;
const TwisterTable twister_kernels_table = {twist, temper, uniform_f32, uniform_f64, normal_blocks};

}  // namespace mortice::ISA
