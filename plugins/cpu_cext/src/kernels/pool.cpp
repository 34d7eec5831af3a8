// Pooling along rows: what a row of windows sees is laid out such that each tap of it is one run of elements.
#include "pool.hpp"

#include "simd.hpp"

namespace mortice::ISA {

#define APART static __attribute__((noinline))  // works on a row, and is called from several places

INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
INLINE int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

template <class T> struct same_width { using type = int32_t; };
template <> struct same_width<double> { using type = int64_t; };
template <class T> using Index = typename same_width<T>::type;

// Element q of residue r is from[q * stride + r - padding], `rest` outside.
template <class T> APART void spread(T *to, int64_t pitch, const T *from, const PoolAxis &a, T rest) {
    int64_t s = a.stride, residues = least(s, a.dilation * (a.kernel - 1) + 1);
    for (int64_t r = 0; r < residues; r++, to += pitch) {
        int64_t start = r - a.padding;
        int64_t low = least(pitch, start >= 0 ? 0 : (-start + s - 1) / s);
        int64_t high = least(pitch, a.size > start ? (a.size - start + s - 1) / s : 0);
        high = most(high, low);
        for (int64_t q = 0; q < low; q++) to[q] = rest;
        const T *at = from + start;
        if (s == 1)
            INDEPENDENT for (int64_t q = low; q < high; q++) to[q] = at[q];
        else if (s == 2)
            INDEPENDENT for (int64_t q = low; q < high; q++) to[q] = at[2 * q];
        else
            for (int64_t q = low; q < high; q++) to[q] = at[q * s];
        for (int64_t q = high; q < pitch; q++) to[q] = rest;
    }
}

template <class T, bool PLACES>
static void max_row(const PoolPlan<T> &p, const T *room, int64_t rows_first, int64_t slice_rows, int64_t z, int64_t y, T *out,
                    int64_t *at) {
    constexpr int L = LANES<T>;
    using I = Index<T>;
    const PoolAxis &az = p.axis[0], &ay = p.axis[1], &ax = p.axis[2];
    int64_t residues = least(ax.stride, ax.dilation * (ax.kernel - 1) + 1), row_step = residues * p.pitch;
    int64_t iz = z * az.stride - az.padding, iy = y * ay.stride - ay.padding;
    vec<I> lane{};
    for (int i = 0; i < L; i++) lane[i] = static_cast<I>(i * ax.stride);
    const vec<I> none = vec<I>{};
    for (int64_t x = 0; x < ax.count; x += L) {
        vec<T> best = splat(static_cast<T>(-__builtin_inf()));
        vec<I> columns = lane + static_cast<I>(x * ax.stride - ax.padding), place;
        if constexpr (PLACES) {
            // A window of nothing but -inf still points into the input.
            vec<I> inside = columns > none ? columns : none;
            inside = inside < static_cast<I>(ax.size - 1) ? inside : none + static_cast<I>(ax.size - 1);
            int64_t above = least(most(iz, 0), az.size - 1) * ay.size + least(most(iy, 0), ay.size - 1);
            place = inside + static_cast<I>(above * ax.size);
        }
        for (int64_t kz = 0, slice = 0; kz < az.kernel; kz++) {
            int64_t own_z = iz + kz * az.dilation;
            if (own_z < 0 || own_z >= az.size) continue;
            const T *plane = room + slice++ * slice_rows * row_step;
            for (int64_t ky = 0; ky < ay.kernel; ky++) {
                int64_t own_y = iy + ky * ay.dilation;
                if (own_y < 0 || own_y >= ay.size) continue;
                const T *row = plane + (own_y - rows_first) * row_step + x;
                I base = static_cast<I>((own_z * ay.size + own_y) * ax.size);
                for (int64_t kx = 0, reach = 0; kx < ax.kernel; kx++, reach += ax.dilation) {
                    int64_t shift = reach < ax.stride ? 0 : reach / ax.stride, residue = reach - shift * ax.stride;
                    vec<T> v = load(row + residue * p.pitch + shift);
                    auto better = (v > best) | (v != v);  // the last nan, or the first of the largest
                    best = better ? v : best;
                    if constexpr (PLACES) place = better ? columns + static_cast<I>(base + reach) : place;
                }
            }
        }
        int64_t n = least(L, ax.count - x);
        if (n == L) {
            store(out + x, best);
            if constexpr (PLACES)
                for (int i = 0; i < L; i++) at[x + i] = place[i];
        } else {
            for (int i = 0; i < n; i++) out[x + i] = best[i];
            if constexpr (PLACES)
                for (int i = 0; i < n; i++) at[x + i] = place[i];
        }
    }
}

template <class T> static void max(const PoolPlan<T> &p, T *room, int64_t task) {
    const PoolAxis &az = p.axis[0], &ay = p.axis[1], &ax = p.axis[2];
    int64_t band = task % p.bands, z = task / p.bands % az.count, plane = task / (p.bands * az.count);
    int64_t first = band * p.band, last = least(first + p.band, ay.count);
    int64_t top = most(0, first * ay.stride - ay.padding);
    int64_t bottom = least(ay.size, (last - 1) * ay.stride - ay.padding + ay.dilation * (ay.kernel - 1) + 1);
    int64_t rows = most(0, bottom - top), residues = least(ax.stride, ax.dilation * (ax.kernel - 1) + 1);
    T *to = room;
    for (int64_t k = 0; k < az.kernel; k++) {
        int64_t own = z * az.stride - az.padding + k * az.dilation;
        if (own < 0 || own >= az.size) continue;
        const T *from = p.from + ((plane * az.size + own) * ay.size + top) * ax.size;
        for (int64_t y = 0; y < rows; y++, from += ax.size, to += residues * p.pitch)
            spread(to, p.pitch, from, ax, static_cast<T>(-__builtin_inf()));
    }
    for (int64_t y = first; y < last; y++) {
        int64_t at = ((plane * az.count + z) * ay.count + y) * ax.count;
        if (p.at)
            max_row<T, true>(p, room, top, rows, z, y, p.out + at, p.at + at);
        else
            max_row<T, false>(p, room, top, rows, z, y, p.out + at, nullptr);
    }
}

// ---- averages ----

template <class T> APART T sum_run(const T *from, int64_t n) {
    constexpr int L = LANES<T>;
    int64_t i = 0;
    T total = T(0);
    if (n >= L) {
        vec<T> sum[4] = {};
        for (; i + 4 * L <= n; i += 4 * L)
#pragma GCC unroll 4
            for (int j = 0; j < 4; j++) sum[j] += load(from + i + j * L);
        for (; i + L <= n; i += L) sum[0] += load(from + i);
        total = sum_lanes<T>((sum[0] + sum[1]) + (sum[2] + sum[3]));
    }
    for (; i < n; i++) total += from[i];
    return total;
}

template <class T> APART void divide_row(const PoolPlan<T> &p, int64_t z, int64_t y, T *row) {
    int64_t n = p.axis[2].count;
    if (!p.divisor[0]) {
        T by = p.divide_by;
        for (int64_t x = 0; x < n; x++) row[x] /= by;
        return;
    }
    T by = p.divisor[0][z] * p.divisor[1][y];
    const T *own = p.divisor[2];
    INDEPENDENT for (int64_t x = 0; x < n; x++) row[x] /= by * own[x];
}

template <class T> static void average(const PoolPlan<T> &p, T *room, int64_t task) {
    const PoolAxis &az = p.axis[0], &ay = p.axis[1], &ax = p.axis[2];
    int64_t volume = az.size * ay.size * ax.size;
    int64_t z = task % az.count, plane = task / az.count;
    const T *from = p.from + plane * volume;
    T *out = p.out + task * ay.count * ax.count;
    bool whole = ay.count == 1 && ax.count == 1 && ay.start[0] == 0 && ay.end[0] == ay.size && ax.start[0] == 0 &&
                 ax.end[0] == ax.size;
    if (whole) {
        int64_t area = ay.size * ax.size;
        out[0] = sum_run(from + az.start[z] * area, (az.end[z] - az.start[z]) * area);
        divide_row(p, z, 0, out);
        return;
    }
    T *columns = room, *taps = room + (ax.size + 64);
    for (int64_t y = 0; y < ay.count; y++, out += ax.count) {
        const T *row = nullptr;  // the sums down the window: a lone row is read where it is
        int64_t rows = 0;
        for (int64_t i = az.start[z]; i < az.end[z]; i++)
            for (int64_t j = ay.start[y]; j < ay.end[y]; j++, rows++) {
                const T *own = from + (i * ay.size + j) * ax.size;
                if (rows == 0) {
                    row = own;
                } else {
                    const T *sum = row;
                    INDEPENDENT for (int64_t x = 0; x < ax.size; x++) columns[x] = sum[x] + own[x];
                    row = columns;
                }
            }
        if (rows == 0) {
            for (int64_t x = 0; x < ax.size; x++) columns[x] = T(0);
            row = columns;
        }
        if (p.regular && ax.kernel <= 8) {
            spread(taps, p.pitch, row, ax, T(0));
            INDEPENDENT for (int64_t x = 0; x < ax.count; x++) out[x] = taps[x];
            for (int64_t k = 1; k < ax.kernel; k++) {
                const T *own = taps + k % ax.stride * p.pitch + k / ax.stride;
                INDEPENDENT for (int64_t x = 0; x < ax.count; x++) out[x] += own[x];
            }
        } else {
            for (int64_t x = 0; x < ax.count; x++) out[x] = sum_run(row + ax.start[x], ax.end[x] - ax.start[x]);
        }
        divide_row(p, z, y, out);
    }
}

// wide[x] = the sum over the windows that see x.
template <class T> static void widen_row(const PoolPlan<T> &p, const T *row, T *wide) {
    const PoolAxis &ax = p.axis[2];
    int64_t k = ax.kernel, s = ax.stride;
    if (p.regular && ax.padding == 0 && k == s && ax.count * k <= ax.size) {
        if (k == 2)
            INDEPENDENT for (int64_t x = 0; x < ax.count; x++) wide[2 * x] = wide[2 * x + 1] = row[x];
        else
            for (int64_t x = 0; x < ax.count; x++)
                INDEPENDENT for (int64_t i = 0; i < k; i++) wide[x * k + i] = row[x];
        for (int64_t x = ax.count * k; x < ax.size; x++) wide[x] = T(0);
        return;
    }
    for (int64_t x = 0; x < ax.size; x++) wide[x] = T(0);
    if (p.regular && s == 1 && k <= 16) {
        for (int64_t t = 0; t < k; t++) {
            int64_t low = most(0, ax.padding - t), high = least(ax.count, ax.size + ax.padding - t);
            T *to = wide + t - ax.padding;
            INDEPENDENT for (int64_t x = low; x < high; x++) to[x] += row[x];
        }
        return;
    }
    for (int64_t x = 0; x < ax.count; x++) {
        T own = row[x];
        for (int64_t i = ax.start[x]; i < ax.end[x]; i++) wide[i] += own;
    }
}

template <class T> static void average_grad(const PoolPlan<T> &p, T *room, int64_t plane) {
    const PoolAxis &az = p.axis[0], &ay = p.axis[1], &ax = p.axis[2];
    int64_t volume = az.size * ay.size * ax.size;
    const T *g = p.from + plane * az.count * ay.count * ax.count;
    T *out = p.out + plane * volume, *row = room, *wide = room + (ax.count + 64);
    if (az.count == 1 && ay.count == 1 && ax.count == 1 && az.end[0] - az.start[0] == az.size &&
        ay.end[0] - ay.start[0] == ay.size && ax.end[0] - ax.start[0] == ax.size) {
        row[0] = g[0];
        divide_row(p, 0, 0, row);
        T own = row[0];
        for (int64_t i = 0; i < volume; i++) out[i] = own;
        return;
    }
    int64_t fresh = 0;  // rows that something was written to: windows move on, so they are the first ones
    for (int64_t z = 0; z < az.count; z++)
        for (int64_t y = 0; y < ay.count; y++, g += ax.count) {
            INDEPENDENT for (int64_t x = 0; x < ax.count; x++) row[x] = g[x];
            divide_row(p, z, y, row);
            widen_row(p, row, wide);
            for (int64_t i = az.start[z]; i < az.end[z]; i++)
                for (int64_t j = ay.start[y]; j < ay.end[y]; j++) {
                    int64_t at = i * ay.size + j;
                    T *to = out + at * ax.size;
                    if (at >= fresh) {
                        for (T *t = out + fresh * ax.size; t < to; t++) *t = T(0);
                        INDEPENDENT for (int64_t x = 0; x < ax.size; x++) to[x] = wide[x];
                        fresh = at + 1;
                    } else {
                        INDEPENDENT for (int64_t x = 0; x < ax.size; x++) to[x] += wide[x];
                    }
                }
        }
    for (T *t = out + fresh * ax.size; t < out + volume; t++) *t = T(0);
}

// Averages of rows that are shorter than AVX-512's vectors, or little longer, are faster without it.
template <class T> static constexpr PoolSet<T> SET = {LANES<T>, max<T>, MORTICE_UP_TO_AVX2(average<T>), MORTICE_UP_TO_AVX2(average_grad<T>)};

extern const PoolTable pool_table;
const PoolTable pool_table = {SET<float>, MORTICE_UP_TO_AVX2(SET<double>)};

}  // namespace mortice::ISA
