// Windows of 3 x 3, a step apart, by Winograd's F(2 x 2, 3 x 3): a tile of four outputs takes 16 products in place of 36.
//
// Every term of an output is of its own window: what lies beside that, not a number perhaps, never reaches it. And with no
// factors but halves, sums of small whole numbers are exact, and zeros stay zeros.
#pragma once
#include "conv.hpp"
#include "conv_micro.hpp"
#include "conv_outer.hpp"

namespace mortice::ISA {

// The lanes whose columns from + lane lie within a row of `size`. A load touches no others, and finds zeros there.
struct Inside {
#if defined(__AVX512F__)
    __mmask16 lanes;
#else
    vi lanes;
#endif
    __attribute__((always_inline)) Inside(int64_t from, int64_t size) {
        constexpr int64_t L = LANES<float>;
        const int64_t low = least(most(-from, 0), L), high = least(most(size - from, 0), L);
#if defined(__AVX512F__)
        lanes = static_cast<__mmask16>(((1u << high) - 1) & ~((1u << low) - 1));
#else
        for (int i = 0; i < L; i++) lanes[i] = -(i >= low && i < high);
#endif
    }
};
INLINE vf load(const float *p, Inside inside) {
#if defined(__AVX512F__)
    return (vf)_mm512_maskz_loadu_ps(inside.lanes, p);
#elif defined(__AVX2__)
    return (vf)_mm256_maskload_ps(p, (__m256i)inside.lanes);
#else
    vf v{};
    for (int i = 0; i < LANES<float>; i++)
        if (inside.lanes[i]) v[i] = p[i];
    return v;
#endif
}

INLINE void put(float *to, vf v, int64_t n) {
    if (n >= LANES<float>) return store(to, v);
    if (n <= 0) return;
#if defined(__AVX512F__)
    _mm512_mask_storeu_ps(to, (__mmask16)((1u << n) - 1), (__m512)v);
#else
    store_part(to, v, n);
#endif
}

template <class V, int L, int FIRST, int... I> INLINE V every_other(V a, V b, Places<I...>) {
    return __builtin_shufflevector(a, b, (2 * I + FIRST)...);
}

// Calls one(sample, row, column, place in the block, how many) for the tiles of a block that lie in a row, a vector at a time.
template <class F> INLINE void over_tiles(const ConvTiles &t, int64_t begin, int64_t end, F one) {
    for (int64_t i = begin, n; i < end; i += n) {
        const int64_t row = i / t.across, x = i % t.across;
        n = least(least(t.across - x, end - i), LANES<float>);
        one(row / t.down, row % t.down, x, i - begin, n);
    }
}

// A block's tiles, transformed: [point][channel][tile].
static void take_tiles(const ConvTiles &t, float *v, int64_t begin, int64_t end) {
    constexpr int64_t L = LANES<float>;
    using P = PlacesUpTo<L>::type;
    const int64_t area = t.in[0] * t.in[1], point = t.channels * t.block + TILES_APART;
    over_tiles(t, begin, end, [&](int64_t sample, int64_t y, int64_t x, int64_t at, int64_t) {
        const int64_t top = 2 * y - t.before[0], left = 2 * x - t.before[1], room = t.block - at;
        const Inside lanes[4] = {{left, t.in[1]}, {left + L, t.in[1]}, {left + 2, t.in[1]}, {left + 2 + L, t.in[1]}};
        const float *from = t.source + sample * t.channels * area + top * t.in[1] + left;
        // The lanes behind the last tile are those of the next ones, which are still to come, unless the block ends.
        const bool whole = room >= L;
        const int64_t step = whole ? point : L;
        float rest[16 * L], *to = v + at, *at_once = whole ? to : rest;
        for (int64_t c = 0; c < t.channels; c++, from += area) {
            vf d[4][4];
#pragma GCC unroll 4
            for (int r = 0; r < 4; r++) {
                if (top + r < 0 || top + r >= t.in[0]) {
                    d[r][0] = d[r][1] = d[r][2] = d[r][3] = vf{};
                    continue;
                }
                const float *row = from + r * t.in[1];
                const vf a = load(row, lanes[0]), b = load(row + L, lanes[1]);
                const vf e = load(row + 2, lanes[2]), f = load(row + 2 + L, lanes[3]);
                const vf first = every_other<vf, L, 0>(a, b, P{}), second = every_other<vf, L, 1>(a, b, P{});
                const vf third = every_other<vf, L, 0>(e, f, P{}), fourth = every_other<vf, L, 1>(e, f, P{});
                d[r][0] = first - third, d[r][1] = second + third, d[r][2] = third - second, d[r][3] = second - fourth;
            }
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++) {
                float *own = at_once + i * step;
                store(own, d[0][i] - d[2][i]), store(own + 4 * step, d[1][i] + d[2][i]);
                store(own + 8 * step, d[2][i] - d[1][i]), store(own + 12 * step, d[1][i] - d[3][i]);
            }
            if (whole) at_once += t.block;
            else for (int i = 0; i < 16; i++) put(to + i * point + c * t.block, load(rest + i * L), room);
        }
    });
}

// Products [point][output][tile] to the outputs [first, first + count).
static void give_tiles(const ConvTiles &t, const float *m, int64_t first, int64_t count, int64_t begin, int64_t end) {
    constexpr int64_t L = LANES<float>;
    using P = PlacesUpTo<L>::type;
    const int64_t area = t.size[0] * t.size[1], point = TILES_OUTPUTS * t.block + TILES_APART;
    over_tiles(t, begin, end, [&](int64_t sample, int64_t y, int64_t x, int64_t at, int64_t n) {
        const int64_t columns = least(2 * n, t.size[1] - 2 * x);
        const bool both = 2 * y + 1 < t.size[0];
        float *to = t.out + (sample * t.outputs + first) * area + 2 * y * t.size[1] + 2 * x;
        const float *from = m + at;
        vf doubt{};  // becomes nan where an output is not finite
        for (int64_t k = 0; k < count; k++, from += t.block, to += area) {
            vf s[2][4];
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++) {
                const float *own = from + i * point;
                const vf one = load(own + 4 * point), two = load(own + 8 * point);
                s[0][i] = load(own) + one + two, s[1][i] = one - two - load(own + 12 * point);
            }
#pragma GCC unroll 2
            for (int r = 0; r < 2; r++) {
                const vf a = s[r][0] + s[r][1] + s[r][2], b = s[r][1] - s[r][2] - s[r][3];
                doubt = fma(a, vf{}, fma(b, vf{}, doubt));
                if (r && !both) break;
                put(to + r * t.size[1], zip<vf, L, 0>(a, b, P{}), columns);
                put(to + r * t.size[1] + L, zip<vf, L, 1>(a, b, P{}), columns - L);
            }
        }
        float lanes[L];
        store(lanes, doubt);
        bool sure = true;
        for (int64_t i = 0; i < n; i++) sure &= lanes[i] == 0;
        if (!sure) __atomic_store_n(t.doubtful + sample, 1, __ATOMIC_RELAXED);
    });
}

// Filters of up to TILES_CHANNELS channels for a panel of outputs, transformed: [panel][point][channel][output].
static void pack_tiles(const ConvTiles &t, int64_t panel, int64_t channel, int64_t channels) {
    typedef float side __attribute__((vector_size(PANEL * sizeof(float))));
    float room[9 * TILES_CHANNELS * PANEL];
    const int64_t point = t.channels * PANEL + TILES_APART, used = least(PANEL, t.outputs - panel * PANEL);
    const float *from = t.weight + panel * PANEL * t.weight_output + channel * t.weight_channel;
    float *to = t.filters + panel * 16 * point + channel * PANEL;
    const float *own = room;
    auto zeros = side{} != side{};  // how many, of each output
    if (used < PANEL) {
        float *at = room;
        for (int64_t c = 0; c < channels; c++, from += t.weight_channel)
            for (int64_t k = 0; k < 9; k++)
                for (int64_t i = 0; i < PANEL; i++) *at++ = i < used ? from[i * t.weight_output + k] : 1.0f;
    } else if (t.turned) {
        for (int64_t c = 0; c < channels; c++, from += t.weight_channel) turn<float, PANEL>(room + 9 * c * PANEL, PANEL, from, 9, 9);
    } else {
        turn<float, PANEL>(room, PANEL, from, t.weight_output, 9 * channels);
    }
    for (int64_t c = 0; c < channels; c++, own += 9 * PANEL, to += PANEL) {
        side g[9], u[4][3];
        for (int k = 0; k < 9; k++) __builtin_memcpy(&g[t.turned ? 8 - k : k], own + k * PANEL, sizeof(side));
        for (int k = 0; k < 9; k++) zeros -= g[k] == side{};
#pragma GCC unroll 3
        for (int j = 0; j < 3; j++) {
            const side outer = g[j] + g[6 + j];
            u[0][j] = g[j], u[1][j] = (outer + g[3 + j]) * 0.5f, u[2][j] = (outer - g[3 + j]) * 0.5f, u[3][j] = g[6 + j];
        }
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            const side outer = u[i][0] + u[i][2];
            const side all[4] = {u[i][0], (outer + u[i][1]) * 0.5f, (outer - u[i][1]) * 0.5f, u[i][2]};
            for (int j = 0; j < 4; j++) __builtin_memcpy(to + (4 * i + j) * point, &all[j], sizeof(side));
        }
    }
    int64_t all = 0;
    for (int i = 0; i < PANEL; i++) all += zeros[i];
    if (all) __atomic_fetch_add(t.zeros, all, __ATOMIC_RELAXED);
}

static void run_tiles(const ConvTiles &t, float *room, int64_t task) {
    constexpr int64_t L = LANES<float>;
    const int64_t begin = task / t.parts * t.block, end = least(begin + t.block, t.samples * t.down * t.across);
    const int64_t part = task % t.parts * t.part, stop = least(part + t.part, t.outputs), vectors = (end - begin + L - 1) / L;
    const int64_t taken = t.channels * t.block + TILES_APART, given = TILES_OUTPUTS * t.block + TILES_APART;
    const int64_t packed = t.channels * PANEL + TILES_APART;
    float *v = room, *m = v + 16 * taken;
    int64_t *offset = reinterpret_cast<int64_t *>(m + 16 * given);
    for (int64_t c = 0; c < t.channels; c++) offset[c] = c * t.block;
    take_tiles(t, v, begin, end);
    for (int64_t first = part; first < stop; first += TILES_OUTPUTS) {
        const int64_t count = least(TILES_OUTPUTS, stop - first);
        for (int64_t p = 0; p < 16; p++)
            for (int64_t i = 0; i < count; i += PANEL)
                product(PANEL, vectors, t.channels, t.filters + ((first + i) / PANEL * 16 + p) * packed, v + p * taken, offset,
                        m + p * given + i * t.block, t.block, false);
        give_tiles(t, m, first, count, begin, end);
    }
}

// ---- the gradient to the filters: sums of products of tiles, transformed back at the end ----

// What a unit's copy and gradients become: [point][tile][channel] and [point][panel][tile][output].
static void take_outer(const ConvOuter<float> &s, const Rectangle &r, int64_t outputs, const float *copy, const float *g,
                       float *v, float *h) {
    typedef float side __attribute__((vector_size(PANEL * sizeof(float))));
    constexpr int64_t L = LANES<float>;
    const int64_t down = (r.rows + 1) / 2, across = (r.columns + 1) / 2, tiles = r.samples * down * across;
    const int64_t line = s.pitch * s.channel_room, point = tiles * s.tile_room + TILES_APART, side_point = tiles * outputs + TILES_APART;
    for (int64_t t = 0; t < tiles; t++, v += s.tile_room, h += PANEL) {
        const int64_t sample = t / (down * across), y = t / across % down * 2, x = t % across * 2;
        const float *from = copy + (sample * s.rows + y) * line + x * s.channel_room;
        for (int64_t c = 0; c < s.run_room; c += L) {
            vf d[4][4];
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++) {
                const float *at = from + i * line + c;
                const vf first = load(at), second = load(at + s.channel_room);
                const vf third = load(at + 2 * s.channel_room), fourth = load(at + 3 * s.channel_room);
                d[i][0] = first - third, d[i][1] = second + third, d[i][2] = third - second, d[i][3] = second - fourth;
            }
#pragma GCC unroll 4
            for (int j = 0; j < 4; j++) {
                float *to = v + c + j * point;
                store(to, d[0][j] - d[2][j]), store(to + 4 * point, d[1][j] + d[2][j]);
                store(to + 8 * point, d[2][j] - d[1][j]), store(to + 12 * point, d[1][j] - d[3][j]);
            }
        }
        const bool below = y + 1 < r.rows, beside = x + 1 < r.columns;
        const float *own = g + ((sample * r.rows + y) * r.columns + x) * PANEL;
        for (int64_t m = 0; m < outputs; m += PANEL, own += r.samples * r.rows * r.columns * PANEL) {
            side d[2][2] = {}, u[4][2];
            __builtin_memcpy(&d[0][0], own, sizeof(side));
            if (beside) __builtin_memcpy(&d[0][1], own + PANEL, sizeof(side));
            if (below) __builtin_memcpy(&d[1][0], own + r.columns * PANEL, sizeof(side));
            if (below && beside) __builtin_memcpy(&d[1][1], own + (r.columns + 1) * PANEL, sizeof(side));
#pragma GCC unroll 2
            for (int j = 0; j < 2; j++)
                u[0][j] = d[0][j], u[1][j] = d[0][j] + d[1][j], u[2][j] = d[0][j] - d[1][j], u[3][j] = -d[1][j];
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++) {
                const side all[4] = {u[i][0], u[i][0] + u[i][1], u[i][0] - u[i][1], -u[i][1]};
                for (int j = 0; j < 4; j++) __builtin_memcpy(h + (4 * i + j) * side_point + m * tiles, &all[j], sizeof(side));
            }
        }
    }
}

static void add_outer(const ConvOuter<float> &s, const Rectangle &r, int64_t outputs, const float *copy, const float *g,
                      float *room, int64_t *offset, float *sums) {
    constexpr int64_t L = LANES<float>;
    const int64_t tiles = r.samples * ((r.rows + 1) / 2) * ((r.columns + 1) / 2), vectors = s.run_room / L;
    const int64_t point = tiles * s.tile_room + TILES_APART, side_point = tiles * outputs + TILES_APART;
    float *h = room + 16 * point;
    take_outer(s, r, outputs, copy, g, room, h);
    for (int64_t t = 0; t < tiles; t++) offset[t] = t * s.tile_room;
    for (int64_t p = 0; p < 16; p++)
        for (int64_t v = 0, wide; v < vectors; v += wide) {
            wide = vectors - v == 4 ? 2 : least(WIDE, vectors - v);
            for (int64_t m = 0; m < outputs; m += PANEL)
                product(PANEL, wide, tiles, h + p * side_point + m * tiles, room + p * point + v * L, offset,
                        sums + m * s.columns + p * s.run_room + v * L, s.columns, true);
        }
}

// The sums of an output, [point][channel], to those of its taps, which lie as the points did. Whether all are finite.
static bool sum_tiles(float *row, int64_t run) {
    vf doubt{};
    for (int64_t c = 0; c < run; c += LANES<float>) {
        vf u[3][4];
#pragma GCC unroll 1
        for (int j = 0; j < 4; j++) {
            const float *at = row + j * run + c;
            const vf one = load(at + 4 * run) * 0.5f, two = load(at + 8 * run) * 0.5f;
            u[0][j] = load(at) + (one + two), u[1][j] = one - two, u[2][j] = load(at + 12 * run) + (one + two);
        }
#pragma GCC unroll 1  // rare: small rather than fast
        for (int i = 0; i < 3; i++) {
            float *to = row + 3 * i * run + c;
            const vf one = u[i][1] * 0.5f, two = u[i][2] * 0.5f;
            const vf all[3] = {u[i][0] + (one + two), one - two, u[i][3] + (one + two)};
#pragma GCC unroll 3
            for (int j = 0; j < 3; j++) store(to + j * run, all[j]), doubt = fma(all[j], vf{}, doubt);
        }
    }
    return sum_lanes<float>(doubt) == 0;
}

}  // namespace mortice::ISA
