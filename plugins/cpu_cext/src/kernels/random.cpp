// All of it is integers, exact conversions and correctly rounded + - * / sqrt, none fused: results agree to the bit with
// the default bodies on every machine. This file is compiled without contraction.
#include "random.hpp"

#include "simd.hpp"

namespace mortice::ISA {

// ---- the stream ----

static const uint64_t M0 = 0xD2E7470EE14C6C93, M1 = 0xCA5A826395121157;
static const uint64_t W0 = 0x9E3779B97F4A7C15, W1 = 0xBB67AE8584CAA73B;

struct Words {
    uint64_t w[4];
};

INLINE uint64_t high_part(uint64_t x, uint64_t y) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(x) * y) >> 64);
}

// The block of counter (x, 0, 0, 0) under the key (seed, 0). Of the first round one product is 0, and of the second one is
// the same for all blocks.
struct Key {
    uint64_t seed, second_high, second_low;
};
INLINE Key key_of(uint64_t seed) { return {seed, high_part(M0, seed), M0 * seed}; }

INLINE Words block(uint64_t x, Key key) {
    uint64_t k0 = key.seed + W0, k1 = W1;
    const uint64_t first = high_part(M0, x);
    uint64_t c0 = high_part(M1, first) ^ k0, c1 = M1 * first, c2 = key.second_high ^ (M0 * x) ^ k1, c3 = key.second_low;
    for (int round = 2; round < 10; round++) {
        k0 += W0;
        k1 += W1;
        const uint64_t h0 = high_part(M0, c0), l0 = M0 * c0, h1 = high_part(M1, c2), l1 = M1 * c2;
        c0 = h1 ^ c1 ^ k0;
        c2 = h0 ^ c3 ^ k1;
        c1 = l1;
        c3 = l0;
    }
    return {{c0, c1, c2, c3}};
}

#if defined(__AVX512F__) && defined(__AVX512DQ__)

typedef uint64_t Eight __attribute__((vector_size(64)));
INLINE Eight all(uint64_t x) { return Eight{} + x; }
// The product of the lower halves.
INLINE Eight product(Eight x, Eight y) {
    return (Eight)_mm512_maskz_mul_epu32(static_cast<__mmask8>(-1), (__m512i)x, (__m512i)y);
}

INLINE Eight high_part(Eight x, uint64_t m) {
    const Eight low = all(m & 0xffffffff), high = all(m >> 32), up = x >> 32;
    const Eight cross = product(x, high) + (product(x, low) >> 32);
    const Eight middle = product(up, low) + (cross & 0xffffffff);
    return product(up, high) + (cross >> 32) + (middle >> 32);
}

// Sixteen blocks: eight in vectors and eight in general registers. The two use different units of the machine, so one
// round of the first is put beside a block of the second.
INLINE void sixteen(uint64_t counter, Key key, uint64_t *out) {
    const Eight x = all(counter) + Eight{0, 1, 2, 3, 4, 5, 6, 7};
    uint64_t k0 = key.seed + W0, k1 = W1;
    const Eight first = high_part(x, M0);
    Eight c0 = high_part(first, M1) ^ k0, c1 = first * M1, c2 = x * M0 ^ (key.second_high ^ k1), c3 = all(key.second_low);
    for (int round = 0; round < 8; round++) {
        const Words w = block(counter + 8 + round, key);
        __builtin_memcpy(out + 32 + 4 * round, w.w, sizeof w.w);
        k0 += W0;
        k1 += W1;
        const Eight h0 = high_part(c0, M0), l0 = c0 * M0, h1 = high_part(c2, M1), l1 = c2 * M1;
        c0 = h1 ^ c1 ^ k0;
        c2 = h0 ^ c3 ^ k1;
        c1 = l1;
        c3 = l0;
    }
    // The words of a block side by side: first two by two, then the pairs.
    const Eight a = __builtin_shufflevector(c0, c1, 0, 8, 2, 10, 4, 12, 6, 14);
    const Eight b = __builtin_shufflevector(c2, c3, 0, 8, 2, 10, 4, 12, 6, 14);
    const Eight c = __builtin_shufflevector(c0, c1, 1, 9, 3, 11, 5, 13, 7, 15);
    const Eight d = __builtin_shufflevector(c2, c3, 1, 9, 3, 11, 5, 13, 7, 15);
    const Eight ab0 = __builtin_shufflevector(a, b, 0, 1, 8, 9, 2, 3, 10, 11);
    const Eight ab1 = __builtin_shufflevector(a, b, 4, 5, 12, 13, 6, 7, 14, 15);
    const Eight cd0 = __builtin_shufflevector(c, d, 0, 1, 8, 9, 2, 3, 10, 11);
    const Eight cd1 = __builtin_shufflevector(c, d, 4, 5, 12, 13, 6, 7, 14, 15);
    const Eight rows[4] = {__builtin_shufflevector(ab0, cd0, 0, 1, 2, 3, 8, 9, 10, 11),
                           __builtin_shufflevector(ab0, cd0, 4, 5, 6, 7, 12, 13, 14, 15),
                           __builtin_shufflevector(ab1, cd1, 0, 1, 2, 3, 8, 9, 10, 11),
                           __builtin_shufflevector(ab1, cd1, 4, 5, 6, 7, 12, 13, 14, 15)};
    __builtin_memcpy(out, rows, sizeof rows);
}
static const int AT_ONCE = 16;

#else

INLINE void sixteen(uint64_t counter, Key key, uint64_t *out) {
    for (int i = 0; i < 4; i++) {
        const Words w = block(counter + i, key);
        __builtin_memcpy(out + 4 * i, w.w, sizeof w.w);
    }
}
static const int AT_ONCE = 4;

#endif

static void bits(uint64_t seed, uint64_t offset, int64_t n, uint64_t *out) {
    const Key key = key_of(seed);
    uint64_t counter = offset / 4 + 1;
    const int skip = static_cast<int>(offset % 4);
    if (skip && n > 0) {
        const Words w = block(counter++, key);
        const int64_t here = n < 4 - skip ? n : 4 - skip;
        for (int64_t i = 0; i < here; i++) out[i] = w.w[skip + i];
        out += here;
        n -= here;
    }
    for (; n >= 4 * AT_ONCE; n -= 4 * AT_ONCE, out += 4 * AT_ONCE, counter += AT_ONCE) sixteen(counter, key, out);
    for (; n > 0; n -= 4, out += 4) {
        const Words w = block(counter++, key);
        __builtin_memcpy(out, w.w, (n < 4 ? n : 4) * sizeof(uint64_t));
    }
}

// ---- numbers ----

// A whole number below 2^54 that a double holds.
INLINE double exact(uint64_t x) {
#if defined(__AVX512DQ__)
    return static_cast<double>(static_cast<int64_t>(x));
#else
    // Halves are put behind the exponents of 2^52 and 2^84, which are then taken off.
    const uint64_t low = (x & 0xffffffff) | 0x4330000000000000, high = (x >> 32) | 0x4530000000000000;
    double l, h;
    __builtin_memcpy(&l, &low, 8);
    __builtin_memcpy(&h, &high, 8);
    return (h - 0x1p84) + (l - 0x1p52);
#endif
}

static const double NORMAL_P[] = {
    2.506628274630997, 41.610024223070944, 699.5294491076273, 7537.374555685381, 64140.241267262885,
    430809.54424461897, 2240105.7098528417, 9014238.549845701, 28736077.077634394, 73629719.93826562,
    61669567.52989514, -89168847.79872355, -243988112.49771804, 161201971.9512388,
};
static const double NORMAL_Q[] = {
    1.0, -0.15516286804290316, 219.91484869490563, -36.39518557998456, 15925.751732967647, -4784.370427590704,
    434697.29352078, -178485.48220446563, 4528057.629661268, -2577199.882885755, 8837773.747934662,
    -22756416.223380495, 11736616.753918856,
};
static const double ATANH[] = {
    1.0, 0.333333333333209, 0.20000000004237664, 0.14285713730722088, 0.11111147425932162, 0.09089579432616766,
    0.07720723739890376, 0.0631712834555425, 0.08129664303566268,
};

// By Horner's rule, written as a recursion: a loop would keep the loop around it from being vectorised.
template <int I, int N> INLINE double from(double x, const double (&c)[N]) {
    if constexpr (I == N - 2) return x * c[N - 1] + c[N - 2];
    else return from<I + 1>(x, c) * x + c[I];
}
template <int N> INLINE double polynomial(double x, const double (&c)[N]) { return from<0>(x, c); }

INLINE double normal(uint64_t word) {
    const auto steps = static_cast<int64_t>((word >> 10) | 1) - (int64_t{1} << 53);
    const uint64_t away = steps < 0 ? -steps : steps;
    const double size = exact(away) * 0x1p-54, p = exact((uint64_t{1} << 53) - away) * 0x1p-54;
    double root = p * (size * 4.0 + 2.0);
    root = __builtin_sqrt(__builtin_sqrt(__builtin_sqrt(root)));
    root = __builtin_sqrt(__builtin_sqrt(__builtin_sqrt(root)));
    const double d = 1.0 - root, q = steps < 0 ? -size : size;
    return q * (polynomial(d, NORMAL_P) / polynomial(d, NORMAL_Q));
}

INLINE double exponential(uint64_t word) {
    const uint64_t steps = (word >> 11) | 1;
    const double u = exact(steps) * 0x1p-53;
    double root = exact((uint64_t{1} << 53) - steps) * 0x1p-53, product = 2.0;
    for (int i = 0; i < 6; i++) {
        root = __builtin_sqrt(root);
        product = (root + 1.0) * product;
    }
    const double t = u / (product - u);
    return (t * 128.0) * polynomial(t * t, ATANH);
}

// Floats of normals: a quantile of relative error 2^-37 decides them, unless it is that close to where rounding turns, or
// far out in a tail; there the exact one is asked. So the float is always that of the exact one.
static const uint64_t DOUBT = 1 << 17;  // what the error may be, in units of a double

struct Quick {
    double value;
    bool doubtful;
};
INLINE Quick quick_normal(uint64_t word) {
    const auto steps = static_cast<int64_t>((word >> 10) | 1) - (int64_t{1} << 53);
    const double size = exact(steps < 0 ? -steps : steps) * 0x1p-54, y = (0.5 - size) * (size * 4.0 + 2.0);
    uint64_t b;
    __builtin_memcpy(&b, &y, 8);
    const uint64_t piece = 2045 - (b >> 51);
    if (piece > 15) return {0, true};
    b = (b & 0x0007ffffffffffff) | 0x3ff0000000000000;
    double t;
    __builtin_memcpy(&t, &b, 8);
    t -= 1.25;
    double value = NORMAL_PIECES[9][piece];
    for (int c = 8; c >= 0; c--) value = value * t + NORMAL_PIECES[c][piece];
    value *= steps < 0 ? -size : size;
    __builtin_memcpy(&b, &value, 8);
    return {value, ((b + DOUBT - (1 << 28)) & 0x1fffffff) <= 2 * DOUBT};
}

static void float_normals(const uint64_t *w, int64_t n, float *out) {
    int64_t i = 0;
#if defined(__AVX2__)
    // The same for a vector of them.
    constexpr int N = LANES<double>;
    typedef float Floats __attribute__((vector_size(VECTOR_BYTES / 2)));
    typedef vec<uint64_t> Bits;
#if defined(__AVX512F__)
    vd low[10], high[10];
    for (int c = 0; c < 10; c++) low[c] = load(NORMAL_PIECES[c]), high[c] = load(NORMAL_PIECES[c] + 8);
#endif
    for (; i + N <= n; i += N) {
        const vl steps = (vl)((load(w + i) >> 10) | 1) - (int64_t{1} << 53);
        const Bits away = (Bits)(steps < 0 ? -steps : steps);
#if defined(__AVX512F__)
        const vd size = __builtin_convertvector((vl)away, vd) * 0x1p-54;
#else
        const vd size = (((vd)((away >> 32) | 0x4530000000000000) - 0x1p84) + ((vd)((away & 0xffffffff) | 0x4330000000000000) - 0x1p52)) * 0x1p-54;
#endif
        const vd y = (0.5 - size) * (size * 4.0 + 2.0);
        const Bits piece = 2045 - ((Bits)y >> 51);
        const vd t = (vd)(((Bits)y & 0x0007ffffffffffff) | 0x3ff0000000000000) - 1.25;
        const auto at = [&](int c) {
#if defined(__AVX512F__)
            return (vd)_mm512_permutex2var_pd((__m512d)low[c], (__m512i)piece, (__m512d)high[c]);
#else
            const double *from = NORMAL_PIECES[c];  // quicker one by one than gathered
            return vd{from[piece[0] & 15], from[piece[1] & 15], from[piece[2] & 15], from[piece[3] & 15]};
#endif
        };
        vd value = at(9);
#pragma GCC unroll 9
        for (int c = 8; c >= 0; c--) value = value * t + at(c);
        value = (vd)((Bits)(value * size) ^ ((Bits)steps & 0x8000000000000000));
        const Floats narrow = __builtin_convertvector(value, Floats);
        __builtin_memcpy(out + i, &narrow, sizeof narrow);
        const Bits place = ((Bits)value + (DOUBT - (1 << 28))) & 0x1fffffff;
        const vl doubt = ((vl)place <= static_cast<int64_t>(2 * DOUBT)) | ((vl)(piece & ~uint64_t{15}) != 0);
#if defined(__AVX512F__)
        unsigned doubtful = _mm512_movepi64_mask((__m512i)doubt);
#else
        int doubtful = _mm256_movemask_pd((__m256d)doubt);
#endif
        for (; doubtful; doubtful &= doubtful - 1) {
            const int j = __builtin_ctz(doubtful);
            out[i + j] = static_cast<float>(normal(w[i + j]));
        }
    }
#endif
    for (; i < n; i++) {
        const Quick q = quick_normal(w[i]);
        out[i] = static_cast<float>(q.doubtful ? normal(w[i]) : q.value);
    }
}

static const int64_t ROOM = 1024;

// Call body(words, n, at) for blocks of the words.
template <class F> INLINE void blocks(uint64_t seed, uint64_t offset, int64_t n, F body) {
    alignas(64) uint64_t words[ROOM];
    for (int64_t i = 0; i < n; i += ROOM) {
        const int64_t m = n - i < ROOM ? n - i : ROOM;
        bits(seed, offset + i, m, words);
        body(words, m, i);
    }
}

static void uniform_f32(uint64_t seed, uint64_t offset, int64_t n, float *out, int significant) {
    const int drop = 64 - significant;
    const float unit = 1.0f / static_cast<float>(1 << significant);
    blocks(seed, offset, n, [=](const uint64_t *w, int64_t m, int64_t at) {
        float *__restrict o = out + at;
        for (int64_t i = 0; i < m; i++) o[i] = static_cast<float>(static_cast<int32_t>(w[i] >> drop)) * unit;
    });
}

static void uniform_f64(uint64_t seed, uint64_t offset, int64_t n, double *out) {
    blocks(seed, offset, n, [=](const uint64_t *w, int64_t m, int64_t at) {
        double *__restrict o = out + at;
        for (int64_t i = 0; i < m; i++) o[i] = exact(w[i] >> 11) * 0x1p-53;
    });
}

static void normal_f32(uint64_t seed, uint64_t offset, int64_t n, float *out) {
    blocks(seed, offset, n, [=](const uint64_t *w, int64_t m, int64_t at) { float_normals(w, m, out + at); });
}

static void normal_f64(uint64_t seed, uint64_t offset, int64_t n, double *out) {
    blocks(seed, offset, n, [=](const uint64_t *w, int64_t m, int64_t at) {
        double *__restrict o = out + at;
        for (int64_t i = 0; i < m; i++) o[i] = normal(w[i]);
    });
}

template <class T> static void exponentials(uint64_t seed, uint64_t offset, int64_t n, T *out) {
    blocks(seed, offset, n, [=](const uint64_t *w, int64_t m, int64_t at) {
        T *__restrict o = out + at;
        for (int64_t i = 0; i < m; i++) o[i] = static_cast<T>(exponential(w[i]));
    });
}

static void integers(uint64_t seed, uint64_t offset, int64_t n, int64_t *out, uint64_t low, uint64_t count) {
    blocks(seed, offset, n, [=](const uint64_t *w, int64_t m, int64_t at) {
        int64_t *__restrict o = out + at;
        if (!count)
            for (int64_t i = 0; i < m; i++) o[i] = static_cast<int64_t>(low + w[i]);
        else
            for (int64_t i = 0; i < m; i++) o[i] = static_cast<int64_t>(low + high_part(w[i], count));
    });
}

static void below(uint64_t seed, uint64_t offset, int64_t n, uint8_t *out, uint64_t limit) {
    blocks(seed, offset, n, [=](const uint64_t *w, int64_t m, int64_t at) {
        uint8_t *__restrict o = out + at;
        for (int64_t i = 0; i < m; i++) o[i] = w[i] < limit;
    });
}

static void below_each(uint64_t seed, uint64_t offset, int64_t n, uint8_t *out, const double *p) {
    blocks(seed, offset, n, [=](const uint64_t *w, int64_t m, int64_t at) {
        uint8_t *__restrict o = out + at;
        const double *__restrict limit = p + at;
        for (int64_t i = 0; i < m; i++) o[i] = exact(w[i] >> 11) < limit[i] * 0x1p53;
    });
}

static void terms(const double *number, const double *first, const double *odds, const double *trials, int64_t n, double *out) {
    for (int64_t i = 0; i < n; i++) {
        double rest = number[i] - first[i], term = first[i];
        int k = 1;
        for (; k < 64 && rest > 0; k++) {
            double grown = 1.0 / k;
            if (trials) {
                const double left = trials[i] - (k - 1);
                grown *= left > 0 ? left : 0;
            }
            term *= odds[i] * grown;
            rest -= term;
        }
        out[i] = k - 1;
    }
}

extern const RandomTable random_kernels_table;
const RandomTable random_kernels_table = {
    bits, uniform_f32, uniform_f64, normal_f32, normal_f64, exponentials<float>, exponentials<double>,
    integers, below, below_each, terms,
};

}  // namespace mortice::ISA
