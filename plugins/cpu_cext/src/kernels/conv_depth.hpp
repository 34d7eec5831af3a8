// Convolutions of one channel each, and their gradients: a vector holds as many channels, so that planes of any size and step
// fill it. Planes are turned into padded tiles with channels last, and sums of places are turned back.
#pragma once
#include "conv.hpp"
#include "conv_micro.hpp"
#include "conv_outer.hpp"
#include "conv_stage.hpp"

namespace mortice::ISA {

constexpr int ACROSS = 8;  // places that share each tap's filters
constexpr int TOGETHER = 9;  // taps that share each place's gradients

// block[p * L + c] = from[c * ld + p] for n places and m channels; what is missing is zero.
template <class T> static __attribute__((noinline)) void turn_block(T *block, const T *from, int64_t ld, int64_t n, int64_t m) {
    constexpr int L = LANES<T>;
    if (n == L && m == L) return interleave<T, L>(from, ld, block);
    T rest[L * L];
    zeros(rest, L * L);
    for (int64_t c = 0; c < m; c++) copy_exact(rest + c * L, from + c * ld, n);
    interleave<T, L>(rest, L, block);
}

// block[p * L + c] is place `first` + p of channel c of those at `from`.
template <class T>
static void depth_lanes(const ConvDepth<T> &d, T *block, const T *from, int64_t area, int64_t first, int64_t n, int64_t channels) {
    constexpr int L = LANES<T>;
    if (!d.last) return turn_block(block, from + first, area, n, channels);
    from += first * d.channels;
    for (int64_t i = 0; i < n; i++, from += d.channels) store(block + i * L, channels < L ? load_part(from, channels) : load(from));
}

// Rows [y, y + rows) of the padded plane.
// `from` is channel `channel` of the sample.
template <class T>
static void depth_stage(const ConvDepth<T> &d, T *tile, const T *from, int64_t channels, int64_t y, int64_t rows) {
    constexpr int L = LANES<T>;
    int64_t s = d.spread[0], low = most(0, ceil_div(y - d.before[0], s)), high = least(d.in[0], ceil_div(y + rows - d.before[0], s));
    if (d.last && s == 1 && d.spread[1] == 1) {
        // Rows as they lie: what is around them is set to zero, and nothing twice.
        const int64_t first = most(0, -d.before[1]), left = least(d.pitch, d.before[1] + first);
        const int64_t end = most(first, least(d.in[1], d.pitch - d.before[1])), right = least(d.pitch, d.before[1] + end);
        for (int64_t r = 0; r < rows; r++, tile += d.pitch * L) {
            const int64_t row = y + r - d.before[0];
            const bool inside = row >= low && row < high;
            zeros(tile, (inside ? left : d.pitch) * L);
            if (!inside) continue;
            const T *at = from + (row * d.in[1] + first) * d.channels;
            if (channels == L)
                for (int64_t p = left; p < right; p++, at += d.channels) store(tile + p * L, load(at));
            else
                for (int64_t p = left; p < right; p++, at += d.channels) store(tile + p * L, load_part(at, channels));
            zeros(tile + right * L, (d.pitch - right) * L);
        }
        return zeros(tile, ACROSS * d.stride[1] * L);
    }
    zeros(tile, (rows * d.pitch + ACROSS * d.stride[1]) * L);
    int64_t area = d.in[0] * d.in[1], column = 0, row = d.before[0] + low * s - y;
    for (int64_t p = low * d.in[1]; p < high * d.in[1]; p += L) {
        int64_t n = least(L, high * d.in[1] - p);
        T block[L * L];
        depth_lanes(d, block, from, area, p, n, channels);
        for (int64_t i = 0; i < n; i++) {
            int64_t at = d.before[1] + column * d.spread[1];
            if (at >= 0 && at < d.pitch) store(tile + (row * d.pitch + at) * L, load(block + i * L));
            if (++column == d.in[1]) column = 0, row += s;
        }
    }
}

// Sums over taps for N places of a row.
template <class T, int N>
static void depth_places(const ConvDepth<T> &d, const T *tile, const T *filters, int64_t first, int64_t every, T *to) {
    constexpr int L = LANES<T>;
    int64_t move = d.stride[1] * L, across = d.dilation[1] * L;
    vec<T> sum[N];
#pragma GCC unroll 8
    for (int i = 0; i < N; i++) sum[i] = vec<T>{};
    for (int64_t k = first; k < d.kernel[0]; k += every) {
        const T *at = tile + k * d.dilation[0] * d.pitch * L, *own = filters + k * d.kernel[1] * L;
        for (int64_t j = 0; j < d.kernel[1]; j++, at += across, own += L) {
            vec<T> left = load(own);
#pragma GCC unroll 8
            for (int i = 0; i < N; i++) sum[i] = fma(left, load(at + i * move), sum[i]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < N; i++) store(to + i * L, sum[i]);
}

// Sums over places for some taps.
template <class T, int N>
static void depth_taps(const ConvDepth<T> &d, const T *tile, const T *g, int64_t rows, const int64_t *offset, T *to) {
    constexpr int L = LANES<T>;
    int64_t move = d.stride[1] * L;
    vec<T> sum[N];
#pragma GCC unroll 16
    for (int i = 0; i < N; i++) sum[i] = vec<T>{};
    for (int64_t y = 0; y < rows; y++, tile += d.stride[0] * d.pitch * L) {
        const T *at = tile;
        for (int64_t x = 0; x < d.size[1]; x++, at += move, g += L) {
            vec<T> left = load(g);
#pragma GCC unroll 16
            for (int i = 0; i < N; i++) sum[i] = fma(left, load(at + offset[i]), sum[i]);
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < N; i++) store(to + i * L, sum[i] + load(to + i * L));
}

// One band of rows of one block of channels in one sample.
template <class T> static void depth_band(const ConvDepth<T> &d, T *room, int64_t sample, int64_t block, int64_t y, T *sums) {
    constexpr int L = LANES<T>;
    int64_t rows = least(d.band, d.size[0] - y), channel = block * L, channels = least(L, d.channels - channel);
    int64_t area = d.size[0] * d.size[1], places = rows * d.size[1], before = sample * d.channels;
    T *tile = room, *line = room + d.tile_room;
    const auto own = [&](int64_t size) { return before * size + channel * (d.last ? 1 : size); };
    depth_stage(d, tile, d.source + own(d.in[0] * d.in[1]), channels, y * d.stride[0],
                (rows - 1) * d.stride[0] + d.dilation[0] * (d.kernel[0] - 1) + 1);
    int64_t taps = d.kernel[0] * d.kernel[1], at = own(area), first = y * d.size[1];
    if (sums) {
        for (int64_t p = 0; p < places; p += L) depth_lanes(d, line + p * L, d.g + at, area, first + p, least(L, places - p), channels);
        for (int64_t k = 0; k < taps; k += TOGETHER) {
            int64_t offset[TOGETHER];  // those beyond the last tap are of the last one, and of no use
            for (int64_t i = 0; i < TOGETHER; i++) {
                int64_t tap = least(k + i, taps - 1);
                offset[i] = (tap / d.kernel[1] * d.dilation[0] * d.pitch + tap % d.kernel[1] * d.dilation[1]) * L;
            }
            if (taps - k > 4) depth_taps<T, TOGETHER>(d, tile, line, rows, offset, sums + k * L);
            else depth_taps<T, 4>(d, tile, line, rows, offset, sums + k * L);
        }
        return;
    }
    const T *filters = d.filters + block * taps * L;
    for (int64_t r = 0; r < rows; r++) {
        // Rows that were spread have others of zeros between them: the taps on these are left out.
        int64_t start = 0, every = 1;
        if (d.spread[0] > 1 && d.dilation[0] == 1) {
            every = d.spread[0];
            start = ((d.before[0] - y - r) % every + every) % every;
        }
        const T *from = tile + r * d.stride[0] * d.pitch * L;
        T *to = d.last ? line : line + r * d.size[1] * L;
        for (int64_t x = 0; x < d.size[1]; x += ACROSS) {
            const T *window = from + x * d.stride[1] * L;
            if (d.size[1] - x > 4) depth_places<T, ACROSS>(d, window, filters, start, every, to + x * L);
            else depth_places<T, 4>(d, window, filters, start, every, to + x * L);
        }
        if (!d.last) continue;
        T *out = d.out + at + (first + r * d.size[1]) * d.channels;
        for (int64_t p = 0; p < d.size[1]; p++, out += d.channels)
            if (channels == L) store(out, load(line + p * L));
            else copy_exact(out, line + p * L, channels);
    }
    if (d.last) return;
    for (int64_t p = 0; p < places; p += L) {
        T turned[L * L];
        int64_t n = least(L, places - p);
        interleave<T, L>(line + p * L, L, turned);
        for (int64_t c = 0; c < channels; c++) copy_exact(d.out + at + c * area + first + p, turned + c * L, n);
    }
}

template <class T> static void depth(const ConvDepth<T> &d, T *room, int64_t task) {
    constexpr int L = LANES<T>;
    int64_t blocks = (d.channels + L - 1) / L;
    if (!d.g) {
        // Channels that are last share cache lines: all of a band, then the next band.
        const int64_t rest = task % (blocks * d.bands), block = d.last ? rest % blocks : rest / d.bands;
        return depth_band(d, room, task / d.bands / blocks, block, (d.last ? rest / blocks : rest % d.bands) * d.band, (T *)nullptr);
    }
    int64_t part = task / blocks, block = task % blocks, units = d.samples * d.bands;
    T *sums = d.out + task * d.sums_room;
    zeros(sums, d.sums_room);
    for (int64_t u = units * part / d.parts; u < units * (part + 1) / d.parts; u++)
        depth_band(d, room, u / d.bands, block, u % d.bands * d.band, sums);
}

}  // namespace mortice::ISA
