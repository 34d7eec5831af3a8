// What kernels over rows share: partial vectors at the ends of rows, reductions of a vector, sums that stay accurate.
#pragma once
#include <math.h>

#include "simd.hpp"

namespace mortice::ISA {

#if !defined(__AVX2__)
#define TAIL static __attribute__((noinline))
#else
#define TAIL INLINE
#endif
#if defined(__AVX2__) && !defined(__AVX512F__)
// Eight set lanes, then eight that are not: a window of it is a mask for the first n lanes.
static const int32_t FIRST_LANES[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
#endif

// The first n lanes (0 < n < LANES), the others `rest`. Nothing beyond them is read.
TAIL vf load_first(const float *p, int64_t n, float rest = 0) {
#if defined(__AVX512F__)
    return (vf)_mm512_mask_loadu_ps(_mm512_set1_ps(rest), (__mmask16)((1u << n) - 1), p);
#elif defined(__AVX2__)
    vi mask;
    __builtin_memcpy(&mask, FIRST_LANES + 8 - n, sizeof mask);
    return select(mask, (vf)_mm256_maskload_ps(p, (__m256i)mask), splat(rest));
#else
    return load_part(p, n, rest);
#endif
}
TAIL vd load_first(const double *p, int64_t n, double rest = 0) {
#if defined(__AVX512F__)
    return (vd)_mm512_mask_loadu_pd(_mm512_set1_pd(rest), (__mmask8)((1u << n) - 1), p);
#elif defined(__AVX2__)
    vl mask;
    __builtin_memcpy(&mask, FIRST_LANES + 8 - 2 * n, sizeof mask);
    return select(mask, (vd)_mm256_maskload_pd(p, (__m256i)mask), splat(rest));
#else
    return load_part(p, n, rest);
#endif
}
TAIL void store_first(float *p, vf v, int64_t n) {
#if defined(__AVX512F__)
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)v);
#elif defined(__AVX2__)
    vi mask;
    __builtin_memcpy(&mask, FIRST_LANES + 8 - n, sizeof mask);
    _mm256_maskstore_ps(p, (__m256i)mask, (__m256)v);
#else
    store_part(p, v, n);
#endif
}
TAIL void store_first(double *p, vd v, int64_t n) {
#if defined(__AVX512F__)
    _mm512_mask_storeu_pd(p, (__mmask8)((1u << n) - 1), (__m512d)v);
#elif defined(__AVX2__)
    vl mask;
    __builtin_memcpy(&mask, FIRST_LANES + 8 - 2 * n, sizeof mask);
    _mm256_maskstore_pd(p, (__m256i)mask, (__m256d)v);
#else
    store_part(p, v, n);
#endif
}
// A vector of which `left` lanes are there, which may be all of them and more.
template <class T> INLINE vec<T> get(const T *p, int64_t left, T rest = 0) {
    return left >= LANES<T> ? load(p) : load_first(p, left, rest);
}
template <class T> INLINE void put(T *p, vec<T> v, int64_t left) {
    if (left >= LANES<T>)
        store(p, v);
    else
        store_first(p, v, left);
}

// A vector turned by half, a quarter, ... of its lanes.
template <int N, class V> INLINE V turned(V v) {
    constexpr int LAST = sizeof(V) / sizeof(v[0]) - 1;
#define AT(i) ((i + N) & LAST)
    if constexpr (LAST == 15)
        return __builtin_shufflevector(v, v, AT(0), AT(1), AT(2), AT(3), AT(4), AT(5), AT(6), AT(7), AT(8), AT(9), AT(10),
                                       AT(11), AT(12), AT(13), AT(14), AT(15));
    else if constexpr (LAST == 7)
        return __builtin_shufflevector(v, v, AT(0), AT(1), AT(2), AT(3), AT(4), AT(5), AT(6), AT(7));
    else if constexpr (LAST == 3)
        return __builtin_shufflevector(v, v, AT(0), AT(1), AT(2), AT(3));
    else
        return __builtin_shufflevector(v, v, AT(0), AT(1));
#undef AT
}
template <class T, int N = LANES<T> / 2> INLINE T total(vec<T> v) {
    if constexpr (N == 0)
        return v[0];
    else
        return total<T, N / 2>(v + turned<N>(v));
}
template <class T, int N = LANES<T> / 2> INLINE T largest(vec<T> v) {
    if constexpr (N == 0)
        return v[0];
    else
        return largest<T, N / 2>(vmax(v, turned<N>(v)));
}

constexpr int64_t SUM_BLOCK = 4096;  // elements added in a vector's lanes before they go into a double

// Add up `of(i, left)`, vectors of a line of n elements, in lanes and blocks: errors grow as slowly as in a pairwise sum.
template <class T, class F> INLINE double sum_once(int64_t n, F &&of) {
    constexpr int L = LANES<T>;
    double all = 0;
    for (int64_t start = 0; start < n; start += SUM_BLOCK) {
        const int64_t end = n - start > SUM_BLOCK ? start + SUM_BLOCK : n;
        vec<T> sum{};
        for (int64_t i = start; i < end;) {
            const int64_t stop = end - i > SUM_BLOCK / 4 ? i + SUM_BLOCK / 4 : end;
            vec<T> a{};
            for (; i < stop; i += L) a += of(i, end - i);
            sum += a;
        }
        all += total<T>(sum);
    }
    return all;
}
// The same for what takes little itself: four vectors at once.
template <class T, class F> INLINE double sum_along(int64_t n, F &&of) {
    if constexpr (SMALL) return sum_once<T>(n, of);
    constexpr int L = LANES<T>;
    double all = 0;
    for (int64_t start = 0; start < n; start += SUM_BLOCK) {
        const int64_t end = n - start > SUM_BLOCK ? start + SUM_BLOCK : n;
        vec<T> a{}, b{}, c{}, d{};
        int64_t i = start;
        for (; i + 4 * L <= end; i += 4 * L) {
            a += of(i, L);
            b += of(i + L, L);
            c += of(i + 2 * L, L);
            d += of(i + 3 * L, L);
        }
        for (; i < end; i += L) a += of(i, end - i);
        all += total<T>((a + b) + (c + d));
    }
    return all;
}
// Two sums at once: `of(i, left, first, second)` adds to both.
template <class T, class F> INLINE void sums_along(int64_t n, double &first, double &second, F &&of) {
    constexpr int64_t L = LANES<T>, BLOCK = SMALL ? SUM_BLOCK / 2 : SUM_BLOCK;
    for (int64_t start = 0; start < n; start += BLOCK) {
        const int64_t end = n - start > BLOCK ? start + BLOCK : n;
        vec<T> a{}, b{}, c{}, d{};
        int64_t i = start;
        for (; i + 2 * L <= end && !SMALL; i += 2 * L) {
            of(i, L, a, b);
            of(i + L, L, c, d);
        }
        for (; i < end; i += L) of(i, end - i, a, b);
        first += total<T>(a + c);
        second += total<T>(b + d);
    }
}
// Do `f(i, left)` for each vector of a line. ONCE is for what takes long itself, and is not worth two loops.
template <class T, bool ONCE = false, class F> INLINE void along(int64_t n, F &&f) {
    constexpr int L = LANES<T>;
    int64_t i = 0;
    if constexpr (ONCE || SMALL) {
        for (; i < n; i += L) f(i, n - i);
    } else {
        for (; i + L <= n; i += L) f(i, L);
        if (i < n) f(i, n - i);
    }
}

// ---- columns: several beside each other, in strips ----

constexpr int64_t STRIP = 256;        // columns at once
constexpr int64_t COLUMN_BLOCK = 64;  // elements of a column added before they go into the whole sum
template <class T> struct Strip { T at[STRIP]; };

// sum = the sum of `of(row, j, left)` over the rows, in blocks.
template <class T, bool ONCE = false, class F> INLINE void column_sums(int64_t n, int64_t width, T *sum, F &&of) {
    Strip<T> part;
    T *to = sum;
    for (int64_t start = 0; start == 0 || start < n; start += COLUMN_BLOCK, to = part.at) {
        const int64_t end = n - start > COLUMN_BLOCK ? start + COLUMN_BLOCK : n;
        along<T>(width, [&](int64_t j, int64_t left) { put(to + j, vec<T>{}, left); });
        for (int64_t i = start; i < end; i++)
            along<T, ONCE>(width, [&](int64_t j, int64_t left) { put(to + j, get(to + j, left) + of(i, j, left), left); });
        if (start)
            along<T>(width, [&](int64_t j, int64_t left) { put(sum + j, get(sum + j, left) + get(part.at + j, left), left); });
    }
}

}  // namespace mortice::ISA
