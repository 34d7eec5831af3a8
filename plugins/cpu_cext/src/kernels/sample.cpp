#include "sample.hpp"

#include "simd.hpp"

namespace mortice::ISA {
namespace {

#define APART __attribute__((noinline))  // there once, not in every user
constexpr int64_t BLOCK = 64;
constexpr int MOST = 16;  // taps of a point: 4 by 4 of cubic convolution; 8 of three axes

INLINE float floor_of(float x) { return __builtin_floorf(x); }
INLINE double floor_of(double x) { return __builtin_floor(x); }
INLINE float even(float x) { return __builtin_rintf(x); }
INLINE double even(double x) { return __builtin_rint(x); }
INLINE float once(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
INLINE double once(double x, double y, double z) { return __builtin_fma(x, y, z); }

// What the points of a block read along one axis: positions (-1 for outside), how much, and how that grows with the grid.
template <class T> struct Axis {
    int taps;
    int32_t at[4][BLOCK];
    T weight[4][BLOCK], slope[4][BLOCK];
};

// Move places outside to where they come to lie; `turn` is multiplied by the slope of that: 1, -1 or 0.
template <class T> APART void pad(const SamplePlan<T> &p, int64_t size, T *x, T *turn, int64_t n) {
    if (p.padding == OUTSIDE_ZEROS) return;
    const T last = static_cast<T>(size - 1);
    if (p.padding == OUTSIDE_REFLECTION) {
        const T low = p.align ? T(0) : T(-0.5), span = static_cast<T>(p.align ? size - 1 : size);
        if (span == 0) {
            for (int64_t i = 0; i < n; i++) x[i] = turn[i] = T(0);
            return;
        }
        INDEPENDENT for (int64_t i = 0; i < n; i++) {
            T away = x[i] - low, sign = away < 0 ? T(-1) : T(1);
            away = away < 0 ? -away : away;
            T turns = floor_of(away / span), left = away - turns * span, odd = turns - floor_of(turns / 2) * 2;
            x[i] = (odd == 0 ? left : span - left) + low;
            turn[i] *= odd == 0 ? sign : -sign;
        }
    }
    INDEPENDENT for (int64_t i = 0; i < n; i++) {
        turn[i] = (T(0) < x[i]) & (x[i] < last) ? turn[i] : T(0);
        T above = x[i] > 0 ? x[i] : T(0);  // nan too is put at 0
        x[i] = above > last ? last : above;
    }
}

template <class T> APART void index_of(int64_t size, const T *place, int32_t *at, int64_t n) {
    const T last = static_cast<T>(size - 1);
    for (int64_t i = 0; i < n; i++) {
        bool inside = (place[i] >= 0) & (place[i] <= last);
        T safe = inside ? place[i] : T(-1);
        at[i] = static_cast<int32_t>(safe);
    }
}

// The weight of a tap of cubic convolution, t past tap 1, and its slope.
template <class T> APART void cubic(int tap, const T *t, T *weight, T *slope, int64_t n) {
    constexpr T a = T(-0.75);
    const T from = static_cast<T>(tap < 2 ? 1 - tap : tap - 1), sign = tap < 2 ? T(1) : T(-1);
    INDEPENDENT for (int64_t i = 0; i < n; i++) {
        T d = from + sign * t[i];  // the distance
        if (tap == 1 || tap == 2) {
            weight[i] = (d * (a + 2) - (a + 3)) * d * d + 1;
            slope[i] = sign * ((d * (3 * (a + 2)) - 2 * (a + 3)) * d);
        } else {
            weight[i] = (((d - 5) * d + 8) * d - 4) * a;
            slope[i] = sign * (((d * 3 - 10) * d + 8) * a);
        }
    }
}

template <class T> APART void find(const SamplePlan<T> &p, const T *grid, int axis, int64_t n, Axis<T> &out) {
    const int64_t size = p.size[axis];
    const T half = static_cast<T>(static_cast<double>(p.align ? size - 1 : size) / 2), shift = p.align ? T(0) : T(0.5);
    T x[BLOCK], turn[BLOCK], low[BLOCK], place[BLOCK];
    grid += p.nd - 1 - axis;
    // The default body's order and roundings, so that at an element and half way between two the last bit says the same: in two
    // dimensions the product is not rounded.
    if (p.nd == 2) {
        for (int64_t i = 0; i < n; i++) x[i] = once(grid[i * 2] + 1, half, -shift), turn[i] = half;
    } else {
        for (int64_t i = 0; i < n; i++) x[i] = (grid[i * p.nd] + 1) * half - shift, turn[i] = half;
    }
    if (p.mode != SAMPLE_CUBIC) pad(p, size, x, turn, n);
    if (p.mode == SAMPLE_NEAREST) {
        out.taps = 1;
        for (int64_t i = 0; i < n; i++) place[i] = even(x[i]), out.weight[0][i] = T(1);
        return index_of(size, place, out.at[0], n);
    }
    for (int64_t i = 0; i < n; i++) low[i] = floor_of(x[i]), x[i] -= low[i];
    out.taps = p.mode == SAMPLE_LINEAR ? 2 : 4;
    for (int t = 0; t < out.taps; t++) {
        const T step = static_cast<T>(p.mode == SAMPLE_LINEAR ? t : t - 1);
        T *weight = out.weight[t], *slope = out.slope[t], unused[BLOCK];
        for (int64_t i = 0; i < n; i++) place[i] = low[i] + step;
        if (p.mode == SAMPLE_CUBIC) {
            cubic(t, x, weight, slope, n);
            pad(p, size, place, unused, n);
        } else {
            for (int64_t i = 0; i < n; i++) weight[i] = t ? x[i] : 1 - x[i], slope[i] = t ? T(1) : T(-1);
        }
        for (int64_t i = 0; i < n; i++) slope[i] *= turn[i];
        index_of(size, place, out.at[t], n);
    }
}

// All taps of the points of a block: the position in a plane, -1 for outside, and the weight.
template <class T> struct Taps {
    int64_t n, first;
    int count;
    Axis<T> axis[3];
    int32_t at[MOST][BLOCK];
    T weight[MOST][BLOCK];

    APART Taps(const SamplePlan<T> &p, int64_t image, int64_t begin, int64_t end) : n(end - begin < BLOCK ? end - begin : BLOCK), first(begin), count(1) {
        for (int d = 0; d < p.nd; d++) {
            find(p, p.grid + (image * p.count + begin) * p.nd, d, n, axis[d]);
            count *= axis[d].taps;
        }
        for (int tap = 0; tap < count; tap++) {
            const int32_t *before = axis[0].at[part(p, tap, 0)];
            const T *share = axis[0].weight[part(p, tap, 0)];
            int32_t *to = at[tap];
            T *shares = weight[tap];
            for (int d = 1; d < p.nd; d++, before = to, share = shares) {
                const int own = part(p, tap, d), size = static_cast<int>(p.size[d]);
                const int32_t *along = axis[d].at[own];
                const T *weights = axis[d].weight[own];
#pragma GCC ivdep
                for (int64_t i = 0; i < n; i++) {
                    to[i] = (before[i] | along[i]) < 0 ? -1 : before[i] * size + along[i];
                    shares[i] = share[i] * weights[i];
                }
            }
            for (int64_t i = n; i < BLOCK; i++) to[i] = -1, shares[i] = T(0);  // for whole vectors
        }
    }
    // Which tap of axis d the tap is made of; those of the last axis change first.
    int part(const SamplePlan<T> &p, int tap, int d) const {
        for (int after = p.nd - 1; after > d; after--) tap /= axis[after].taps;
        return tap % axis[d].taps;
    }
};

// Elements at as many positions as a vector has lanes; 0 outside.
INLINE vf seen(const float *plane, const int32_t *at) {
#if defined(__AVX2__) && !defined(__AVX512F__)
    const __m256i index = _mm256_loadu_si256((const __m256i *)at), inside = _mm256_xor_si256(index, _mm256_set1_epi32(-1));
    return (vf)_mm256_mask_i32gather_ps(_mm256_setzero_ps(), plane, index, _mm256_castsi256_ps(inside), 4);
#else
    vf v;
    for (int i = 0; i < LANES<float>; i++) v[i] = at[i] < 0 ? 0 : plane[at[i]];
    return v;
#endif
}
INLINE vd seen(const double *plane, const int32_t *at) {
    vd v;
    for (int i = 0; i < LANES<double>; i++) v[i] = at[i] < 0 ? 0 : plane[at[i]];
    return v;
}

template <class T> void read(const SamplePlan<T> &p, int64_t image, int64_t begin, int64_t end) {
    constexpr int L = LANES<T>;
    for (; begin < end; begin += BLOCK) {
        const Taps<T> taps(p, image, begin, end);
        for (int64_t c = 0; c < p.channels; c++) {
            const T *plane = p.x + (image * p.channels + c) * p.volume;
            T *out = p.out + (image * p.channels + c) * p.count + begin;
            for (int64_t i = 0; i < taps.n; i += L) {
                vec<T> total = seen(plane, taps.at[0] + i) * load(taps.weight[0] + i);
                for (int tap = 1; tap < taps.count; tap++) total += seen(plane, taps.at[tap] + i) * load(taps.weight[tap] + i);
                if (i + L <= taps.n) store(out + i, total);
                else store_part(out + i, total, taps.n - i);
            }
        }
    }
}

template <class T> void slopes(const SamplePlan<T> &p, int64_t image, int64_t begin, int64_t end) {
    constexpr int L = LANES<T>;
    for (; begin < end; begin += BLOCK) {
        const Taps<T> taps(p, image, begin, end);
        T slope[3][BLOCK] = {};
        for (int tap = 0; tap < taps.count; tap++) {
            const int32_t *at = taps.at[tap];
            T sum[BLOCK] = {};
            for (int64_t c = 0; c < p.channels; c++) {
                const T *plane = p.x + (image * p.channels + c) * p.volume, *g = p.g + (image * p.channels + c) * p.count + begin;
                for (int64_t i = 0; i < taps.n; i += L)
                    store(sum + i, load(sum + i) + (i + L <= taps.n ? load(g + i) : load_part(g + i, taps.n - i)) * seen(plane, at + i));
            }
            for (int d = 0; d < p.nd; d++) {
                T grows[BLOCK];
                for (int64_t i = 0; i < taps.n; i++) grows[i] = sum[i];
                for (int e = 0; e < p.nd; e++) {
                    const Axis<T> &own = taps.axis[e];
                    const T *by = e == d ? own.slope[taps.part(p, tap, e)] : own.weight[taps.part(p, tap, e)];
                    for (int64_t i = 0; i < taps.n; i++) grows[i] *= by[i];
                }
                for (int64_t i = 0; i < taps.n; i++) slope[d][i] += grows[i];
            }
        }
        T *out = p.d_grid + (image * p.count + begin) * p.nd;
        for (int64_t i = 0; i < taps.n; i++)
            for (int d = 0; d < p.nd; d++) out[i * p.nd + p.nd - 1 - d] = slope[d][i];
    }
}

template <class T> void spread(const SamplePlan<T> &p, int64_t image, int64_t begin, int64_t end) {
    for (int64_t first = 0; first < p.count; first += BLOCK) {
        const Taps<T> taps(p, image, first, p.count);
        for (int64_t c = begin; c < end; c++) {
            T *plane = p.d_x + (image * p.channels + c) * p.volume;
            const T *g = p.g + (image * p.channels + c) * p.count + first;
            for (int tap = 0; tap < taps.count; tap++)
                for (int64_t i = 0; i < taps.n; i++)
                    if (taps.at[tap][i] >= 0) plane[taps.at[tap][i]] += g[i] * taps.weight[tap][i];
        }
    }
}

template <class T> constexpr SampleSet<T> SET = {read<T>, slopes<T>, spread<T>};

}  // namespace

extern const SampleTable sample_table;
const SampleTable sample_table = {SET<float>, SET<double>};

}  // namespace mortice::ISA
