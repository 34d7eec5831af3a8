#include "index.hpp"

#include "simd.hpp"

namespace mortice::ISA {

template <class T> static void add(T *__restrict out, const T *__restrict x, int64_t n) {
    for (int64_t i = 0; i < n; i++) out[i] += x[i];
}

template <class T> static void bag(T *out, const T *rows, int64_t step, const int64_t *at, int64_t count, int64_t width) {
    constexpr int L = LANES<T>, V = SMALL ? 1 : 4;
    int64_t c = 0;
    for (; c + V * L <= width; c += V * L) {
        vec<T> sum[V] = {};
        for (int64_t j = 0; j < count; j++) {
            const T *row = rows + at[j] * step + c;
#pragma GCC unroll 4
            for (int v = 0; v < V; v++) sum[v] += load(row + v * L);
        }
#pragma GCC unroll 4
        for (int v = 0; v < V; v++) store(out + c + v * L, sum[v]);
    }
    for (int64_t i = c; i < width; i++) out[i] = 0;
    for (int64_t j = 0; j < count && c < width; j++) add(out + c, rows + at[j] * step + c, width - c);
}

static void range_i64(const int64_t *x, int64_t n, int64_t *low, int64_t *high) {
    int64_t lo = x[0], hi = x[0];
    for (int64_t i = 0; i < n; i++) {
        lo = x[i] < lo ? x[i] : lo;
        hi = x[i] > hi ? x[i] : hi;
    }
    *low = lo;
    *high = hi;
}

static int64_t count(const uint8_t *x, int64_t n) {
    int64_t total = 0;
    while (n > 0) {
        // Sums of bytes eight at a time: 255 of them fit.
        int64_t words = n / 8 < 255 ? n / 8 : 255;
        if (!words) {
            for (int64_t i = 0; i < n; i++) total += x[i] != 0;
            break;
        }
        uint64_t sum = 0;
        for (int64_t i = 0; i < words; i++) {
            uint64_t w;
            __builtin_memcpy(&w, x + 8 * i, 8);
            w = (((w & 0x7f7f7f7f7f7f7f7f) + 0x7f7f7f7f7f7f7f7f) | w) >> 7;  // 1 for what is not 0
            sum += w & 0x0101010101010101;
        }
        sum = (sum & 0x00ff00ff00ff00ff) + ((sum >> 8) & 0x00ff00ff00ff00ff);
        total += (sum * 0x0001000100010001) >> 48;
        x += 8 * words;
        n -= 8 * words;
    }
    return total;
}

static void positions(const uint8_t *x, int64_t n, int64_t base, int64_t *out, int64_t total) {
    int64_t i = 0, found = 0;
#if defined(__AVX512BW__) && defined(__AVX512F__)
    const __m512i steps = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
    for (; i + 64 <= n && found + 64 <= total; i += 64) {
        const __m512i bytes = _mm512_loadu_si512(x + i);
        uint64_t mask = _mm512_test_epi8_mask(bytes, bytes);
        // Whole vectors are written, of which the next one covers what was too much; 64 places are left at this point.
        for (__m512i at = _mm512_add_epi64(_mm512_set1_epi64(base + i), steps); mask; mask >>= 8) {
            const __mmask8 part = static_cast<__mmask8>(mask);
            _mm512_storeu_si512(out + found, _mm512_maskz_compress_epi64(part, at));
            found += __builtin_popcount(part);
            at = _mm512_add_epi64(at, _mm512_set1_epi64(8));
        }
    }
#endif
    while (found < total) {
        uint64_t w;
        if (i + 8 <= n && (__builtin_memcpy(&w, x + i, 8), w == 0)) {
            i += 8;
            continue;
        }
        const int64_t stop = i + 8 < n ? i + 8 : n;
        for (; i < stop && found < total; i++) {
            out[found] = base + i;
            found += x[i] != 0;
        }
    }
}

template <class T> static bool largest(const T *x, int64_t n, T sign, T *peak, int64_t groups) {
    using V = vec<T>;
    const V signs = splat(sign);
    V strange = {};  // 1 in lanes that have seen a nan
    for (int64_t g = 0; g < groups; g++) peak[g] = sign * x[g];
    for (int64_t begin = groups; begin < n; begin += groups) {
        const int64_t stop = n - begin < groups ? n - begin : groups;
        int64_t g = 0;
        for (; g + LANES<T> <= stop; g += LANES<T>) {
            const V v = load(x + begin + g) * signs;
            store(peak + g, vmax(load(peak + g), v));  // a nan in v stays until the next vector
            strange = v == v ? strange : splat(T(1));
        }
        for (; g < stop; g++) {
            const T v = x[begin + g] * sign;
            if (v != v) return false;
            peak[g] = peak[g] > v ? peak[g] : v;
        }
    }
    T odd = sum_lanes<T>(strange);
    for (int64_t g = 0; g < groups; g++) odd += x[g] != x[g];
    return odd == 0;
}

// A bit for each of 64 elements that reaches the bound.
template <class T> static uint64_t reached(const T *x, T sign, T bound) {
    uint64_t bits = 0;
#if defined(__AVX512F__)
    for (int i = 0; i < 64; i += LANES<T>) {
        const vec<T> v = load(x + i) * splat(sign);
        if constexpr (sizeof(T) == 4)
            bits |= static_cast<uint64_t>(_mm512_cmp_ps_mask((__m512)v, _mm512_set1_ps(bound), _CMP_GE_OQ)) << i;
        else
            bits |= static_cast<uint64_t>(_mm512_cmp_pd_mask((__m512d)v, _mm512_set1_pd(bound), _CMP_GE_OQ)) << i;
    }
#elif defined(__AVX2__)
    for (int i = 0; i < 64; i += LANES<T>) {
        const vec<T> v = load(x + i) * splat(sign);
        if constexpr (sizeof(T) == 4)
            bits |= static_cast<uint64_t>(_mm256_movemask_ps((__m256)(v >= splat(bound)))) << i;
        else
            bits |= static_cast<uint64_t>(_mm256_movemask_pd((__m256d)(v >= splat(bound)))) << i;
    }
#else
    for (int i = 0; i < 64; i++) bits |= static_cast<uint64_t>(sign * x[i] >= bound) << i;
#endif
    return bits;
}

template <class T> static int64_t reaching(const T *x, int64_t n, T sign, T bound, int64_t *at, int64_t most) {
    int64_t found = 0, i = 0;
    for (; i + 64 <= n; i += 64)
        for (uint64_t bits = reached(x + i, sign, bound); bits; bits &= bits - 1) {
            if (found == most) return -1;
            at[found++] = i + __builtin_ctzll(bits);
        }
    for (; i < n; i++) {
        if (!(sign * x[i] >= bound)) continue;
        if (found == most) return -1;
        at[found++] = i;
    }
    return found;
}

extern const IndexTable index_kernels_table;
const IndexTable index_kernels_table = {
    add<float>, add<double>, bag<float>, bag<double>, range_i64, count, positions, {largest<float>, reaching<float>}, {largest<double>, reaching<double>},
};

}  // namespace mortice::ISA
