// Tiles in registers: rows of B with broadcast elements of A, or rows of A with columns of B where both are contiguous.
#include "matmul.hpp"

#include "simd.hpp"

namespace mortice::ISA {

// ---- parts of vectors ----

// The first n lanes, the others 0; 0 < n <= LANES.
INLINE vf first(const float *p, int64_t n) {
#if defined(__AVX512F__)
    return (vf)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
#elif defined(__AVX2__)
    const vi lane = {0, 1, 2, 3, 4, 5, 6, 7};
    return (vf)_mm256_maskload_ps(p, (__m256i)(lane < (int32_t)n));
#else
    return n == LANES<float> ? load(p) : load_part(p, n);
#endif
}
INLINE vd first(const double *p, int64_t n) {
#if defined(__AVX512F__)
    return (vd)_mm512_maskz_loadu_pd((__mmask8)((1u << n) - 1), p);
#elif defined(__AVX2__)
    const vl lane = {0, 1, 2, 3};
    return (vd)_mm256_maskload_pd(p, (__m256i)(lane < n));
#else
    return n == LANES<double> ? load(p) : load_part(p, n);
#endif
}
INLINE void put_first(float *p, vf v, int64_t n) {
#if defined(__AVX512F__)
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)v);
#elif defined(__AVX2__)
    const vi lane = {0, 1, 2, 3, 4, 5, 6, 7};
    _mm256_maskstore_ps(p, (__m256i)(lane < (int32_t)n), (__m256)v);
#else
    store_part(p, v, n);
#endif
}
INLINE void put_first(double *p, vd v, int64_t n) {
#if defined(__AVX512F__)
    _mm512_mask_storeu_pd(p, (__mmask8)((1u << n) - 1), (__m512d)v);
#elif defined(__AVX2__)
    const vl lane = {0, 1, 2, 3};
    _mm256_maskstore_pd(p, (__m256i)(lane < n), (__m256d)v);
#else
    store_part(p, v, n);
#endif
}

// ---- rows ----

// MR rows of C by NV vectors of columns, of which the last has `last` columns.
template <class T, int MR, int NV>
INLINE void row_tile(int64_t k, const T *a, int64_t ra, int64_t ca, const T *b, int64_t ldb, T *c, int64_t ldc, bool add,
                     int64_t last) {
    constexpr int L = LANES<T>;
    vec<T> sum[MR][NV];
#pragma GCC unroll 8
    for (int i = 0; i < MR; i++)
#pragma GCC unroll 8
        for (int v = 0; v < NV; v++) sum[i][v] = vec<T>{};
    for (int64_t l = 0; l < k; l++, a += ca, b += ldb) {
        vec<T> row[NV];
#pragma GCC unroll 8
        for (int v = 0; v < NV; v++) row[v] = v == NV - 1 ? first(b + v * L, last) : load(b + v * L);
#pragma GCC unroll 8
        for (int i = 0; i < MR; i++) {
            const vec<T> factor = splat<T>(a[i * ra]);
#pragma GCC unroll 8
            for (int v = 0; v < NV; v++) sum[i][v] = fma(factor, row[v], sum[i][v]);
        }
    }
    const T *from = c;
    if (add)  // before any are put: what overlaps a vector on its way to memory waits for it
#pragma GCC unroll 8
        for (int i = 0; i < MR; i++, from += ldc)
#pragma GCC unroll 8
            for (int v = 0; v < NV; v++) sum[i][v] += v == NV - 1 ? first(from + v * L, last) : load(from + v * L);
#pragma GCC unroll 8
    for (int i = 0; i < MR; i++, c += ldc)
#pragma GCC unroll 8
        for (int v = 0; v < NV; v++) {
            if (v == NV - 1) put_first(c + v * L, sum[i][v], last);
            else store(c + v * L, sum[i][v]);
        }
}

template <class T, int NV>
static void row_strip(int64_t m, int64_t k, const T *a, int64_t ra, int64_t ca, const T *b, int64_t ldb, T *c, int64_t ldc,
                      bool add, int64_t last) {
    int64_t i = 0;
    // With 32 registers more rows share what is read of B, and few columns have sums enough to wait for each other.
    constexpr int MOST = NV == 4 ? 6 : 8;
    for (; VECTOR_BYTES == 64 && i + MOST <= m; i += MOST) row_tile<T, MOST, NV>(k, a + i * ra, ra, ca, b, ldb, c + i * ldc, ldc, add, last);
    for (; i + 4 <= m && !SMALL; i += 4) row_tile<T, 4, NV>(k, a + i * ra, ra, ca, b, ldb, c + i * ldc, ldc, add, last);
    for (; i + 2 <= m; i += 2) row_tile<T, 2, NV>(k, a + i * ra, ra, ca, b, ldb, c + i * ldc, ldc, add, last);
    if (i < m) row_tile<T, 1, NV>(k, a + i * ra, ra, ca, b, ldb, c + i * ldc, ldc, add, last);
}

// What a strip of B is copied to where it is used often enough: rows at steps of large powers of two would push each other
// out of the caches.
constexpr int64_t DEEP = VECTOR_BYTES == 64 ? 160 : 256;
template <class T> INLINE const T *packed(const T *b, int64_t ldb, int64_t depth, int64_t width, T *room) {
    constexpr int64_t W = 4 * LANES<T>;
    for (int64_t l = 0; l < depth; l++)
        for (int64_t j = 0; j < width; j++) room[l * W + j] = b[l * ldb + j];
    return room;
}

template <class T>
static void rows(int64_t m, int64_t n, int64_t k, const T *a, int64_t ra, int64_t ca, const T *b, int64_t ldb, T *c,
                 int64_t ldc, bool add) {
    constexpr int L = LANES<T>, WIDE = VECTOR_BYTES == 64 ? 4 : 2;  // what the registers hold
    T room[DEEP * 4 * L];
    const bool pack = m >= 128 && ldb >= (VECTOR_BYTES == 64 ? 32 : 8) * L && k >= 16;
    for (int64_t low = 0; low < k; low += DEEP, a += DEEP * ca, b += DEEP * ldb) {
        const int64_t depth = k - low < DEEP ? k - low : DEEP;
        for (int64_t j = 0; j < n;) {
            const int64_t left = n - j, vectors = (left + L - 1) / L, take = vectors >= WIDE ? WIDE : vectors >= 2 ? 2 : 1;
            const int64_t last = left < take * L ? left - (take - 1) * L : L;
            const T *from = b + j;
            int64_t step = ldb;
            if (pack) from = packed(from, ldb, depth, (take - 1) * L + last, room), step = 4 * L;
            T *to = c + j;
            if (WIDE == 4 && take == 4) row_strip<T, WIDE>(m, depth, a, ra, ca, from, step, to, ldc, add || low, last);
            else if (take == 2) row_strip<T, 2>(m, depth, a, ra, ca, from, step, to, ldc, add || low, last);
            else row_strip<T, 1>(m, depth, a, ra, ca, from, step, to, ldc, add || low, last);
            j += take * L;
        }
    }
}

// ---- dots ----

// The sums of four vectors' lanes.
#if defined(__x86_64__)
INLINE __m128 folded(vf v) {
#if defined(__AVX512F__)
    const __m256 half = (__m256)(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                                 __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15));
    return _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
#elif defined(__AVX2__)
    return _mm_add_ps(_mm256_castps256_ps128((__m256)v), _mm256_extractf128_ps((__m256)v, 1));
#else
    return (__m128)v;
#endif
}
INLINE __m128d folded(vd v) {
#if defined(__AVX512F__)
    const __m256d half =
        (__m256d)(__builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7));
    return _mm_add_pd(_mm256_castpd256_pd128(half), _mm256_extractf128_pd(half, 1));
#elif defined(__AVX2__)
    return _mm_add_pd(_mm256_castpd256_pd128((__m256d)v), _mm256_extractf128_pd((__m256d)v, 1));
#else
    return (__m128d)v;
#endif
}
INLINE void four_sums(const vf *v, float *out) {
    __m128 a = folded(v[0]), b = folded(v[1]), c = folded(v[2]), d = folded(v[3]);
    _MM_TRANSPOSE4_PS(a, b, c, d);
    _mm_storeu_ps(out, _mm_add_ps(_mm_add_ps(a, c), _mm_add_ps(b, d)));
}
INLINE void four_sums(const vd *v, double *out) {
    const __m128d a = folded(v[0]), b = folded(v[1]), c = folded(v[2]), d = folded(v[3]);
    _mm_storeu_pd(out, _mm_add_pd(_mm_unpacklo_pd(a, b), _mm_unpackhi_pd(a, b)));
    _mm_storeu_pd(out + 2, _mm_add_pd(_mm_unpacklo_pd(c, d), _mm_unpackhi_pd(c, d)));
}
#else
template <class V, class T> INLINE void four_sums(const V *v, T *out) {
#pragma GCC unroll 8
    for (int i = 0; i < 4; i++) out[i] = sum_lanes<T>(v[i]);
}
#endif

// MR rows of A with `used` columns of B: columns beyond are taken as the first, and dropped.
template <class T, int MR, int NC>
INLINE void dot_tile(int64_t k, const T *a, int64_t ra, const T *b, int64_t ldb, T *c, int64_t ldc, bool add, int64_t used) {
    constexpr int L = LANES<T>;
    vec<T> sum[MR][NC];
    const T *column[NC];
#pragma GCC unroll 8
    for (int j = 0; j < NC; j++) column[j] = b + (j < used ? j : 0) * ldb;
#pragma GCC unroll 8
    for (int i = 0; i < MR; i++)
#pragma GCC unroll 8
        for (int j = 0; j < NC; j++) sum[i][j] = vec<T>{};
    int64_t l = 0;
    for (; l + L <= k; l += L) {
        vec<T> row[MR];
#pragma GCC unroll 8
        for (int i = 0; i < MR; i++) row[i] = load(a + i * ra + l);
#pragma GCC unroll 8
        for (int j = 0; j < NC; j++) {
            const vec<T> y = load(column[j] + l);
#pragma GCC unroll 8
            for (int i = 0; i < MR; i++) sum[i][j] = fma(row[i], y, sum[i][j]);
        }
    }
    if (l < k) {
        vec<T> row[MR];
#pragma GCC unroll 8
        for (int i = 0; i < MR; i++) row[i] = first(a + i * ra + l, k - l);
#pragma GCC unroll 8
        for (int j = 0; j < NC; j++) {
            const vec<T> y = first(column[j] + l, k - l);
#pragma GCC unroll 8
            for (int i = 0; i < MR; i++) sum[i][j] = fma(row[i], y, sum[i][j]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < MR; i++, c += ldc) {
        T total[NC];
#pragma GCC unroll 8
        for (int j = 0; j < NC; j += 4) four_sums(&sum[i][j], total + j);
        for (int64_t j = 0; j < used; j++) c[j] = add ? c[j] + total[j] : total[j];
    }
}

// All rows of A with NC columns of B, which stay in the nearest cache meanwhile.
template <class T, int NC>
static void dot_strip(int64_t m, int64_t k, const T *a, int64_t ra, const T *b, int64_t ldb, T *c, int64_t ldc, bool add,
                      int64_t used) {
    int64_t i = 0;
    for (; i + 4 <= m && !SMALL; i += 4) dot_tile<T, 4, NC>(k, a + i * ra, ra, b, ldb, c + i * ldc, ldc, add, used);
    if (m - i >= 2 && !SMALL) {
        dot_tile<T, 2, NC>(k, a + i * ra, ra, b, ldb, c + i * ldc, ldc, add, used);
        i += 2;
    }
    for (; i < m; i++) dot_tile<T, 1, NC>(k, a + i * ra, ra, b, ldb, c + i * ldc, ldc, add, used);
}

// A long dot of single vectors: sums of blocks are added up pairwise enough by many lanes.
template <class T> static T one_dot(int64_t k, const T *a, const T *b) {
    constexpr int L = LANES<T>, U = 8;
    vec<T> sum[U] = {};
    int64_t l = 0;
    for (; l + U * L <= k; l += U * L)
#pragma GCC unroll 8
        for (int u = 0; u < U; u++) sum[u] = fma(load(a + l + u * L), load(b + l + u * L), sum[u]);
    for (; l + L <= k; l += L) sum[0] = fma(load(a + l), load(b + l), sum[0]);
    if (l < k) sum[1] = fma(first(a + l, k - l), first(b + l, k - l), sum[1]);
#pragma GCC unroll 8
    for (int u = U / 2; u; u /= 2)
#pragma GCC unroll 8
        for (int i = 0; i < u; i++) sum[i] += sum[i + u];
    return sum_lanes<T>(sum[0]);
}

template <class T>
static void dots(int64_t m, int64_t n, int64_t k, const T *a, int64_t ra, int64_t, const T *b, int64_t ldb, T *c, int64_t ldc,
                 bool add) {
    if (m == 1 && n < 4) {
        for (int64_t j = 0; j < n; j++) c[j] = (add ? c[j] : T(0)) + one_dot(k, a, b + j * ldb);
        return;
    }
    if (m == 1 && !SMALL) {
        for (int64_t j = 0; j < n; j += 8) dot_tile<T, 1, 8>(k, a, ra, b + j * ldb, ldb, c + j, ldc, add, n - j < 8 ? n - j : 8);
        return;
    }
    constexpr int64_t DEEP = 4096 / sizeof(T);
    for (int64_t l = 0; l < k; l += DEEP) {
        const int64_t depth = k - l < DEEP ? k - l : DEEP;
        for (int64_t j = 0; j < n; j += 4)
            dot_strip<T, 4>(m, depth, a + l, ra, b + j * ldb + l, ldb, c + j, ldc, add || l > 0, n - j < 4 ? n - j : 4);
    }
}

// ---- combinations of rows ----

template <class T>
static void combine(int64_t n, int64_t k, const T *__restrict a, int64_t ca, const T *__restrict b, int64_t ldb, T *__restrict c,
                    bool add) {
    if (!add)
        for (int64_t j = 0; j < n; j++) c[j] = 0;
    int64_t l = 0;
    for (; l + 8 <= k; l += 8) {
        const T *row = b + l * ldb, *f = a + l * ca;
        const T f0 = f[0], f1 = f[ca], f2 = f[2 * ca], f3 = f[3 * ca], f4 = f[4 * ca], f5 = f[5 * ca], f6 = f[6 * ca], f7 = f[7 * ca];
        const T *r1 = row + ldb, *r2 = r1 + ldb, *r3 = r2 + ldb, *r4 = r3 + ldb, *r5 = r4 + ldb, *r6 = r5 + ldb, *r7 = r6 + ldb;
        for (int64_t j = 0; j < n; j++)
            c[j] += ((f0 * row[j] + f1 * r1[j]) + (f2 * r2[j] + f3 * r3[j])) + ((f4 * r4[j] + f5 * r5[j]) + (f6 * r6[j] + f7 * r7[j]));
    }
    for (; l < k; l++) {
        const T *row = b + l * ldb, f = a[l * ca];
        for (int64_t j = 0; j < n; j++) c[j] += f * row[j];
    }
}

// ---- integers ----

template <class T>
static void integer_rows(int64_t m, int64_t n, int64_t k, const T *a, int64_t ra, int64_t ca, const T *b, int64_t ldb, T *c,
                         int64_t ldc, bool add) {
    constexpr int64_t STRIP = 1024 / sizeof(T);
    for (int64_t low = 0; low < n; low += STRIP) {
        const int64_t width = n - low < STRIP ? n - low : STRIP;
        for (int64_t i = 0; i < m; i++) {
            T *__restrict to = c + i * ldc + low;
            if (!add)
                for (int64_t j = 0; j < width; j++) to[j] = 0;
            int64_t l = 0;
            for (; l + 4 <= k; l += 4) {
                const T *f = a + i * ra + l * ca, *__restrict r0 = b + l * ldb + low;
                const T f0 = f[0], f1 = f[ca], f2 = f[2 * ca], f3 = f[3 * ca];
                const T *__restrict r1 = r0 + ldb, *__restrict r2 = r1 + ldb, *__restrict r3 = r2 + ldb;
                INDEPENDENT for (int64_t j = 0; j < width; j++) to[j] = (T)(to[j] + f0 * r0[j] + f1 * r1[j] + f2 * r2[j] + f3 * r3[j]);
            }
            for (; l < k; l++) {
                const T f = a[i * ra + l * ca], *__restrict row = b + l * ldb + low;
                INDEPENDENT for (int64_t j = 0; j < width; j++) to[j] = (T)(to[j] + f * row[j]);
            }
        }
    }
}

[[maybe_unused]] static void bool_rows(int64_t m, int64_t n, int64_t k, const uint8_t *a, int64_t ra, int64_t ca, const uint8_t *b, int64_t ldb,
                      uint8_t *c, int64_t ldc, bool add) {
    for (int64_t i = 0; i < m; i++) {
        uint8_t *__restrict to = c + i * ldc;
        if (!add)
            for (int64_t j = 0; j < n; j++) to[j] = 0;
        for (int64_t l = 0; l < k; l++) {
            const uint8_t *__restrict row = b + l * ldb;
            if (a[i * ra + l * ca])
                for (int64_t j = 0; j < n; j++) to[j] |= row[j];
        }
    }
}

extern const MatmulKernels matmul_table = {
    rows<float>, dots<float>, rows<double>, dots<double>, combine<float>, combine<double>,
    // AVX-512 makes nothing of integers but the largest.
    MORTICE_UP_TO_AVX2(bool_rows), MORTICE_UP_TO_AVX2(integer_rows<uint8_t>), MORTICE_UP_TO_AVX2(integer_rows<uint16_t>),
    MORTICE_UP_TO_AVX2(integer_rows<uint32_t>), integer_rows<uint64_t>,
};

}  // namespace mortice::ISA
