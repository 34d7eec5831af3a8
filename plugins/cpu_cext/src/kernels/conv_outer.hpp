// The gradient of convolution to its filters where there are enough channels: with these last, all taps of a row of the
// window lie side by side, so that each place adds a column of gradients times a run of elements, and nothing is gathered.
#pragma once
#include "conv.hpp"
#include "conv_micro.hpp"
#include "conv_stage.hpp"

namespace mortice::ISA {

template <class V, int L, int HIGH, int... I> INLINE V zip(V a, V b, Places<I...>) {
    return __builtin_shufflevector(a, b, (I / 2 + I % 2 * L + HIGH * L / 2)...);
}

// out[p * R + r] = rows[r * ld + p] for a vector of places p.
template <class T, int R> INLINE void interleave(const T *rows, int64_t ld, T *out) {
    constexpr int L = LANES<T>;
    if constexpr (L < R) {
        for (int p = 0; p < L; p++)
            for (int r = 0; r < R; r++) out[p * R + r] = rows[r * ld + p];
    } else {
        using P = typename PlacesUpTo<L>::type;
        vec<T> v[R], w[R];
#pragma GCC unroll 16
        for (int r = 0; r < R; r++) v[r] = load(rows + r * ld);
#pragma GCC unroll 4
        for (int n = 1; n < R; n *= 2) {  // each round moves one bit of the row's number behind the place's
#pragma GCC unroll 8
            for (int r = 0; r < R / 2; r++) {
                w[2 * r] = zip<vec<T>, L, 0>(v[r], v[r + R / 2], P{});
                w[2 * r + 1] = zip<vec<T>, L, 1>(v[r], v[r + R / 2], P{});
            }
#pragma GCC unroll 16
            for (int r = 0; r < R; r++) v[r] = w[r];
        }
#pragma GCC unroll 16
        for (int r = 0; r < R; r++) store(out + r * L, v[r]);
    }
}

// to[p * step + r] = from[r * ld + p] for n places and R rows.
template <class T, int R> static void turn(T *to, int64_t step, const T *from, int64_t ld, int64_t n) {
    constexpr int L = LANES<T>;
    T block[R * L], rest[R * L];
    for (int64_t p = 0; p < n; p += L) {
        int64_t m = least(L, n - p);
        if (m == L) {
            interleave<T, R>(from + p, ld, block);
        } else {
            for (int r = 0; r < R; r++) store(rest + r * L, load_some(from + r * ld + p, m));
            interleave<T, R>(rest, L, block);
        }
        for (int64_t i = 0; i < m; i++) __builtin_memcpy(to + (p + i) * step, block + i * R, R * sizeof(T));
    }
}

template <class T> static void turn_channels(T *to, int64_t step, const T *from, int64_t ld, int64_t n, int64_t channels) {
    int64_t c = 0;
    for (; c + 8 <= channels; c += 8) turn<T, 8>(to + c, step, from + c * ld, ld, n);
    for (; c + 4 <= channels; c += 4) turn<T, 4>(to + c, step, from + c * ld, ld, n);
    for (; c < channels; c++)
        for (int64_t i = 0; i < n; i++) to[i * step + c] = from[c * ld + i];
}

// Copy what a rectangle sees of a slice: [row][column][channel].
template <class T>
static void stage_last(const ConvOuter<T> &s, T *to, T *row, int64_t sample, int64_t group, int64_t slice, int64_t y, int64_t x) {
    const ConvPlan<T> &p = *s.plan;
    int64_t area = p.in[1] * p.in[2], inner = p.in[0] * area;
    const T *from = p.source + (sample * p.groups + group) * p.channels * inner + slice * area;
    int64_t top = y * p.step[0] - s.before[0], left = x * p.step[1] - s.before[1];
    Fill across(s.pitch, p.in[2], s.skip[1], left), down(s.rows, p.in[1], s.skip[0], top);
    int64_t line = s.pitch * s.channel_room, count = across.high - across.low;
    zeros(to, down.low * line);
    for (int64_t r = down.low; r < down.high; r++) {
        T *own = to + r * line;
        const T *source = from + (top + r * s.skip[0]) * p.in[2] + left + across.low * s.skip[1];
        zeros(own, across.low * s.channel_room);
        own += across.low * s.channel_room;
        if (s.skip[1] == 1) {
            turn_channels(own, s.channel_room, source, inner, count, p.channels);
        } else {
            for (int64_t c = 0; c < p.channels; c += 8) {
                int64_t cs = least(8, p.channels - c);
                for (int64_t i = 0; i < cs; i++) {
                    const T *at = source + (c + i) * inner;
                    if (s.skip[1] == 2)
                        copy_every_other(row + i * count, at, count);
                    else
                        for (int64_t q = 0; q < count; q++) row[i * count + q] = at[q * s.skip[1]];
                }
                turn_channels(own + c, s.channel_room, row, count, count, cs);
            }
        }
        zeros(own + count * s.channel_room, (s.pitch - across.high) * s.channel_room);
    }
    zeros(to + down.high * line, (s.rows - down.high) * line);
}

// The gradients of a panel's outputs, place by place.
template <class T, int R>
static void turn_gradients(const ConvOuter<T> &s, T *to, const Rectangle &r, int64_t z, int64_t channel, int64_t used) {
    const ConvPlan<T> &p = *s.plan;
    int64_t area = p.size[1] * p.size[2], volume = p.size[0] * area;
    bool whole = r.columns == p.size[2];
    int64_t lines = whole ? 1 : r.rows, length = whole ? r.rows * r.columns : r.columns;
    for (int64_t b = 0; b < r.samples; b++) {
        const T *from = s.g + ((r.sample + b) * p.groups * p.outputs + channel) * volume + z * area + r.y * p.size[2] + r.x;
        for (int64_t y = 0; y < lines; y++, from += p.size[2], to += length * R) {
            if (used == R) {
                turn<T, R>(to, R, from, volume, length);
            } else {
                for (int64_t i = 0; i < length; i++)
                    for (int64_t k = 0; k < R; k++) to[i * R + k] = k < used ? from[k * volume + i] : T(0);
            }
        }
    }
}

// In tiles of four (conv_winograd.hpp).
static void add_outer(const ConvOuter<float> &, const Rectangle &, int64_t outputs, const float *copy, const float *g,
                      float *room, int64_t *offset, float *sums);

template <class T> static void outer(const ConvOuter<T> &s, T *room, int64_t task) {
    constexpr int L = LANES<T>;
    const ConvPlan<T> &p = *s.plan;
    int64_t block = task % s.output_blocks, group = task / s.output_blocks % p.groups;
    int64_t part = task / (s.output_blocks * p.groups);
    int64_t first = block * s.output_block, ms = least(s.output_block, p.outputs - first);
    T *sums = s.sums + ((part * p.groups + group) * p.panel_rows + first) * s.columns;
    auto rows_of = [](int64_t left) { return left > 4 ? PANEL : left > 2 ? 4 : static_cast<int>(left); };
    int64_t all_rows = 0;
    for (int64_t m = 0; m < ms; m += rows_of(ms - m)) all_rows = m + rows_of(ms - m);
    zeros(sums, all_rows * s.columns);
    T *copy = room, *g = copy + s.copy_room, *row = g + s.g_room;
    T *tiles = row + s.row_room;  // or vectors that were copied
    int64_t *offset = reinterpret_cast<int64_t *>(tiles + s.tiles_room), *close = offset + p.band[0] * p.band[1] * p.band[2];
    int64_t move_y = p.step[0] / s.skip[0] * s.pitch * s.channel_room, move_x = p.step[1] / s.skip[1] * s.channel_room;
    int64_t sample_step = s.rows * s.pitch * s.channel_room, tap_x = s.tap[1] * s.channel_room;
    int64_t tap_y = s.tap[0] * s.pitch * s.channel_room, vectors = s.run_room / L;
    for (int64_t u = s.units * part / s.parts; u < s.units * (part + 1) / s.parts; u++) {
        int64_t bx = u % p.bands[2], by = u / p.bands[2] % p.bands[1], rest = u / (p.bands[2] * p.bands[1]);
        int64_t z = rest % p.size[0], bn = rest / p.size[0];
        Rectangle r{bn * p.band[0], 0, by * p.band[1], 0, bx * p.band[2], 0};
        r.samples = least(p.band[0], p.samples - r.sample);
        r.rows = least(p.band[1], p.size[1] - r.y);
        r.columns = least(p.band[2], p.size[2] - r.x);
        int64_t places = 0;
        for (int64_t b = 0; b < r.samples; b++)
            for (int64_t y = 0; y < r.rows; y++)
                for (int64_t x = 0; x < r.columns; x++, places++)
                    offset[places] = b * sample_step + y * move_y + x * move_x, close[places] = places * WIDE * L;
        for (int64_t m = 0; m < ms;) {
            int64_t rows = rows_of(ms - m), used = least(rows, ms - m), channel = group * p.outputs + first + m;
            T *to = g + m * places;
            if (PANEL == 8 && rows == 8) turn_gradients<T, 8>(s, to, r, z, channel, used);
            else if (rows == 4) turn_gradients<T, 4>(s, to, r, z, channel, used);
            else if (rows == 2) turn_gradients<T, 2>(s, to, r, z, channel, used);
            else turn_gradients<T, 1>(s, to, r, z, channel, used);
            m += rows;
        }
        for (int64_t j = 0; j < p.kernel_z; j++) {
            int64_t slice = p.z_source[z * p.kernel_z + j];
            if (slice < 0) continue;
            for (int64_t b = 0; b < r.samples; b++)
                stage_last(s, copy + b * sample_step, row, r.sample + b, group, slice, r.y, r.x);
            zeros(copy + r.samples * sample_step, L);
            if constexpr (sizeof(T) == sizeof(float))
                if (s.tile_room) {
                    add_outer(s, r, ms, copy, g, tiles, offset, sums);
                    continue;
                }
            // Runs of a vector each are taken together, as vectors that lie a row of the window apart. For many outputs vectors
            // are copied to lie close: places a power of two apart share a few sets of the caches.
            const bool joined = vectors == 1 && s.runs == 1, many = ms >= 8 * PANEL;
            const int64_t apart = joined ? tap_y : L, all = joined ? s.kernel_y : vectors, at[WIDE] = {0, apart, 2 * apart};
            for (int64_t k = 0; k < (joined ? 1 : s.kernel_y * s.runs); k++) {
                const T *base = copy + k / s.runs * tap_y + k % s.runs * tap_x;
                T *to = sums + (j * s.kernel_y * s.runs + k) * s.run_room;
                for (int64_t v = 0, wide; v < all; v += wide) {
                    wide = all - v == 4 ? 2 : least(WIDE, all - v);  // one alone waits for its own sums
                    const T *from = base + v * apart;
                    for (int64_t i = 0; many && i < places; i++)
                        for (int64_t w = 0; w < wide; w++) store(tiles + (i * WIDE + w) * L, load(from + offset[i] + w * apart));
                    if (many) from = tiles;
                    for (int64_t m = 0; m < ms;) {
                        int rows = rows_of(ms - m);
                        product(rows, wide, places, g + m * places, from, many ? close : offset, to + m * s.columns + v * L, s.columns, true, many ? nullptr : at);
                        m += rows;
                    }
                }
            }
        }
    }
}

}  // namespace mortice::ISA
