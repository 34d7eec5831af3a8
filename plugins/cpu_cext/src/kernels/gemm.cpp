// Tiles of 14 or 12 rows by two vectors stay in registers while A's elements meet B's packed rows.
#include "gemm.hpp"

#include "simd.hpp"

namespace mortice::ISA {

INLINE void put_first(float *p, vf v, int64_t n) { _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)v); }
INLINE void put_first(double *p, vd v, int64_t n) { _mm512_mask_storeu_pd(p, (__mmask8)((1u << n) - 1), (__m512d)v); }
INLINE vf first(const float *p, int64_t n) { return (vf)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p); }
INLINE vd first(const double *p, int64_t n) { return (vd)_mm512_maskz_loadu_pd((__mmask8)((1u << n) - 1), p); }

// The rows of a strip of A, as they are copied: a little apart, lest they push each other out of the cache.
template <class T> static constexpr int64_t STEP = GEMM_DEPTH<T> + 64 / sizeof(T);

// A's element (i, l) is at a[i * RA + l * CA]. C's rows and what follows `next` come nearer meanwhile, a line now and then: all
// at once they would keep B's rows waiting.
template <class T, int MR, int NV, int64_t RA, int64_t CA>
static __attribute__((noinline)) void tile(int64_t m, int64_t last, int64_t depth, const T *a, const T *b, const T *start, int64_t lds, T *c, int64_t ldc,
                                           const T *next) {
    constexpr int L = LANES<T>;
    const int steps = 63 - __builtin_clzll((uint64_t)depth / 32 | 1);  // for a row of C: its binary logarithm
    vec<T> sum[MR][NV];
#pragma GCC unroll 16
    for (int i = 0; i < MR; i++)
#pragma GCC unroll 2
        for (int v = 0; v < NV; v++) sum[i][v] = vec<T>{};
    for (int64_t l = 0; l < depth; l++, a += CA, b += NV * L) {
        vec<T> row[NV];
        __builtin_prefetch(next + l, 0, 2);
#pragma GCC unroll 2
        for (int v = 0; v < NV; v++) {
            __builtin_prefetch(c + (l >> steps) * ldc + v * L, 0, 2);
            row[v] = load(b + v * L);
        }
#pragma GCC unroll 16
        for (int i = 0; i < MR; i++) {
            const vec<T> factor = splat<T>(a[i * RA]);
#pragma GCC unroll 2
            for (int v = 0; v < NV; v++) sum[i][v] = fma(factor, row[v], sum[i][v]);
        }
    }
    const bool add = start;
#pragma GCC unroll 16
    for (int i = 0; i < MR; i++, c += ldc, start += lds) {
        if (i >= m) break;
#pragma GCC unroll 2
        for (int v = 0; v < NV; v++) {
            const bool part = v == NV - 1;
            if (add) sum[i][v] += part ? first(start + v * L, last) : load(start + v * L);
            if (part) put_first(c + v * L, sum[i][v], last);
            else store(c + v * L, sum[i][v]);
        }
    }
}

template <class T, int MR, int64_t RA, int64_t CA>
static void panels(int64_t m, int64_t n, int64_t depth, const T *a, const T *b, const T *start, int64_t lds, T *c, int64_t ldc,
                   const T *next, int64_t apart) {
    constexpr int64_t L = LANES<T>, W = 2 * L;
    const T *const end = next + (m - 1) * apart;  // a panel prefetches one of the next strip's rows
    for (; n > 0; n -= W, b += W * depth, c += W, start = start ? start + W : start, next += next < end ? apart : 0)
        if (n > L) tile<T, MR, 2, RA, CA>(m, n < W ? n - L : L, depth, a, b, start, lds, c, ldc, next);
        else tile<T, GEMM_ROWS, 1, RA, CA>(m, n, depth, a, b, start, lds, c, ldc, next);
}

// Calls one(strip, its first row, how many rows it has).
template <class F> INLINE void each_strip(int64_t low, int64_t m, F one) {
    for (int64_t s = 0, i = 0; i < m; s++) {
        const int64_t most = s < low ? GEMM_FEWER : GEMM_ROWS, rows = m - i < most ? m - i : most;
        one(s, i, rows);
        i += rows;
    }
}

template <class T>
static void strips(int64_t low, int64_t m, int64_t n, int64_t depth, const T *a, int64_t ra, int64_t ca, const T *b,
                   const T *start, int64_t lds, T *c, int64_t ldc) {
    constexpr int64_t L = LANES<T>, MR = GEMM_ROWS, LESS = GEMM_FEWER, SIZE = MR * GEMM_DEPTH<T> + L;  // whole vectors are stored
    alignas(64) T room[GEMM_STRIPS * SIZE];
    const auto before = [=](int64_t i) { return start ? start + i * lds : start; };
    if (ca == 1) {
        each_strip(low, m, [&](int64_t, int64_t i, int64_t rows) {
            for (int64_t r = 0; r < MR; r++) {
                const T *from = a + (i + (r < rows ? r : 0)) * ra;
                T *to = room + r * STEP<T>;
                int64_t l = 0;
                for (; l + L <= depth; l += L) store(to + l, load(from + l));
                if (l < depth) put_first(to + l, first(from + l, depth - l), depth - l);
            }
            const T *const next = a + (i + rows) * ra;
            if (rows > LESS) panels<T, MR, STEP<T>, 1>(rows, n, depth, room, b, before(i), lds, c + i * ldc, ldc, next, ra);
            else panels<T, LESS, STEP<T>, 1>(rows, n, depth, room, b, before(i), lds, c + i * ldc, ldc, next, ra);
        });
        return;
    }
    for (int64_t l = 0; l < depth; l++)
        each_strip(low, m, [&](int64_t s, int64_t i, int64_t rows) {
            const T *from = a + l * ca + i;
            T *to = room + s * SIZE + l * MR;
            __builtin_prefetch(from + 16 * ca);
            for (int64_t r = 0; r < rows; r += L) store(to + r, first(from + r, rows - r < L ? rows - r : L));
        });
    each_strip(low, m, [&](int64_t s, int64_t i, int64_t rows) {
        if (rows > LESS) panels<T, MR, 1, MR>(rows, n, depth, room + s * SIZE, b, before(i), lds, c + i * ldc, ldc, b, 0);
        else panels<T, LESS, 1, MR>(rows, n, depth, room + s * SIZE, b, before(i), lds, c + i * ldc, ldc, b, 0);
    });
}

// Rows of LANES elements from as many columns, `apart` each. Quarters of vectors come from every fourth (second) column, and
// then elements change places within quarters only.
INLINE void turn(const float *from, int64_t apart, float *to, int64_t step) {
    __m512 v[4], w[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const float *p = from + i * apart;
        v[i] = _mm512_castps128_ps512(_mm_loadu_ps(p));
        v[i] = _mm512_insertf32x4(v[i], _mm_loadu_ps(p + 4 * apart), 1);
        v[i] = _mm512_insertf32x4(v[i], _mm_loadu_ps(p + 8 * apart), 2);
        v[i] = _mm512_insertf32x4(v[i], _mm_loadu_ps(p + 12 * apart), 3);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 4; i += 2) w[i] = _mm512_unpacklo_ps(v[i], v[i + 1]), w[i + 1] = _mm512_unpackhi_ps(v[i], v[i + 1]);
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        const __m512d low = (__m512d)w[i], high = (__m512d)w[i + 2];
        _mm512_storeu_pd(to + 2 * i * step, _mm512_unpacklo_pd(low, high));
        _mm512_storeu_pd(to + (2 * i + 1) * step, _mm512_unpackhi_pd(low, high));
    }
}
INLINE void turn(const double *from, int64_t apart, double *to, int64_t step) {
    __m512d v[2];
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        const double *p = from + i * apart;
        v[i] = _mm512_castpd128_pd512(_mm_loadu_pd(p));
        v[i] = _mm512_insertf64x2(v[i], _mm_loadu_pd(p + 2 * apart), 1);
        v[i] = _mm512_insertf64x2(v[i], _mm_loadu_pd(p + 4 * apart), 2);
        v[i] = _mm512_insertf64x2(v[i], _mm_loadu_pd(p + 6 * apart), 3);
    }
    _mm512_storeu_pd(to, _mm512_unpacklo_pd(v[0], v[1]));
    _mm512_storeu_pd(to + step, _mm512_unpackhi_pd(v[0], v[1]));
}

template <class T> static void pack(int64_t depth, int64_t width, const T *b, int64_t rb, int64_t cb, T *to) {
    constexpr int64_t L = LANES<T>, Q = 16 / sizeof(T), W = 2 * L, AHEAD = 4;
    const auto step = [=](int64_t j) { return width - j / W * W > L ? W : L; };  // of the rows of column j's panel
    const auto place = [=](int64_t j) { return to + j / W * W * depth + j % W; };
    if (cb == 1) {
        for (int64_t l = 0; l < depth; l++, b += rb)
            for (int64_t j = 0; j < width; j += L) {
                __builtin_prefetch(b + AHEAD * rb + j);
                store(place(j) + l * step(j), first(b + j, width - j < L ? width - j : L));
            }
        return;
    }
    for (int64_t j = 0; j < width; j += L, b += L * cb) {
        T *at = place(j);
        const int64_t apart = step(j);
        int64_t l = 0;
        if (width - j >= L)
            for (; l + Q <= depth; l += Q) turn(b + l, cb, at + l * apart, apart);
        for (; l < depth; l++)
            for (int64_t i = 0; i < L; i++) at[l * apart + i] = i < width - j ? b[i * cb + l] : T(0);
    }
}

extern const GemmKernels gemm_table = {
    {2 * LANES<float>, pack<float>, strips<float>},
    {2 * LANES<double>, pack<double>, strips<double>},
};

}  // namespace mortice::ISA
