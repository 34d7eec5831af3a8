// The gradient of convolution to its filters: places are summed over, so they lie along the vectors.
#pragma once
#include "conv.hpp"
#include "conv_micro.hpp"
#include "conv_stage.hpp"

namespace mortice::ISA {

// Some columns of the sums: `at` of each row of windows.
template <class T> struct Sums {
    T *to;          // of the first row of outputs
    int64_t ld;     // between outputs
    int64_t inner;  // taps of a slice
    int64_t outer;  // taps of a filter
};

template <class T, int MR, int NR>
static void inner_add(const Sums<T> &s, int64_t m, int64_t k, int64_t vectors, const T *g, const T *x, int64_t ld) {
    constexpr int L = LANES<T>;
    T out[(MR * NR + L - 1) / L * L];
    inner<T, MR, NR>(vectors, g + m * ld, ld, x + k * ld, ld, out);
    for (int j = 0; j < NR; j++) {
        T *to = s.to + m * s.ld + (k + j) / s.inner * s.outer + (k + j) % s.inner;
        for (int i = 0; i < MR; i++) to[i * s.ld] += out[i * NR + j];
    }
}

template <class T, int MR, int NR>
static void inner_rows(const Sums<T> &s, int64_t m, int64_t depth, int64_t vectors, const T *g, const T *x, int64_t ld) {
    int64_t k = 0;
    for (; k + NR <= depth; k += NR) inner_add<T, MR, NR>(s, m, k, vectors, g, x, ld);
    for (; k < depth; k++) inner_add<T, MR, 1>(s, m, k, vectors, g, x, ld);
}

template <class T>
static void inner_all(const Sums<T> &s, int64_t ms, int64_t depth, int64_t vectors, const T *g, const T *x, int64_t ld) {
    int64_t m = 0;
    if constexpr (PANEL == 8)
        for (; m + 8 <= ms; m += 8) inner_rows<T, 8, 3>(s, m, depth, vectors, g, x, ld);
    for (; m + 4 <= ms; m += 4) inner_rows<T, 4, PANEL == 8 ? 6 : 3>(s, m, depth, vectors, g, x, ld);
    for (; m + 2 <= ms && !SMALL; m += 2) inner_rows<T, 2, PANEL == 8 ? 8 : 4>(s, m, depth, vectors, g, x, ld);
    for (; m < ms; m++) inner_rows<T, 1, 8>(s, m, depth, vectors, g, x, ld);
}

// out[t] += sum over rows and columns of g * x at offset[t].
template <class T, int NR>
static void correlate(int64_t rows, int64_t columns, const T *g, int64_t ldg, const T *x, int64_t ldx,
                      const int64_t *offset, T *out) {
    constexpr int L = LANES<T>, N = (NR + L - 1) / L * L;
    vec<T> sum[N];
#pragma GCC unroll 16
    for (int i = 0; i < N; i++) sum[i] = vec<T>{};
    for (int64_t y = 0; y < rows; y++, g += ldg, x += ldx) {
        int64_t i = 0;
        for (; i + L <= columns; i += L) {
            vec<T> own = load(g + i);
#pragma GCC unroll 16
            for (int t = 0; t < NR; t++) sum[t] = fma(own, load(x + offset[t] + i), sum[t]);
        }
        if (i < columns) {
            vec<T> own = load_some(g + i, columns - i);
#pragma GCC unroll 16
            for (int t = 0; t < NR; t++) sum[t] = fma(own, load_some(x + offset[t] + i, columns - i), sum[t]);
        }
    }
    T room[N];
#pragma GCC unroll 16
    for (int i = 0; i < N; i += L) store(room + i, fold_lanes<T, 1>(sum + i));
    for (int t = 0; t < NR; t++) out[t] += room[t];
}

template <class T>
static void correlate_all(int64_t taps, int64_t rows, int64_t columns, const T *g, int64_t ldg, const T *x, int64_t ldx,
                          const int64_t *offset, T *out) {
    for (int64_t t = 0; t < taps;) {
        int64_t left = taps - t;
        if (left >= 9 && !SMALL) correlate<T, 9>(rows, columns, g, ldg, x, ldx, offset + t, out + t), t += 9;
        else if (left >= 5 && !SMALL) correlate<T, 5>(rows, columns, g, ldg, x, ldx, offset + t, out + t), t += 5;
        else if (left >= 3) correlate<T, 3>(rows, columns, g, ldg, x, ldx, offset + t, out + t), t += 3;
        else correlate<T, 1>(rows, columns, g, ldg, x, ldx, offset + t, out + t), t += 1;
    }
}

// One channel a group: products where the places lie.
template <class T>
static void sums_single(const ConvSums<T> &s, T *room, const Rectangle &r, int64_t z, int64_t group, T *sums) {
    const ConvPlan<T> &p = *s.plan;
    int64_t area = p.size[1] * p.size[2], volume = p.size[0] * area, inner = p.phases->taps_count;
    for (int64_t j = 0; j < p.kernel_z; j++) {
        int64_t slice = p.z_source[z * p.kernel_z + j];
        if (slice < 0) continue;
        for (int64_t b = 0; b < r.samples; b++) {
            stage(p, room, r.sample + b, group, 0, 1, slice, r.y, r.x);
            zeros(room + p.plane, p.shared + MOST * LANES<T>);
            const T *g = s.g + ((r.sample + b) * p.groups + group) * p.outputs * volume + z * area + r.y * p.size[2] + r.x;
            for (int64_t m = 0; m < p.outputs; m++)
                correlate_all(inner, r.rows, r.columns, g + m * volume, p.size[2], room, p.pitch, p.phases->offsets,
                              sums + m * s.taps + j * inner);
        }
    }
}

template <class T>
static void sums_block(const ConvSums<T> &s, T *room, const Rectangle &r, int64_t z, int64_t group, int64_t first,
                       int64_t ms, T *sums) {
    constexpr int L = LANES<T>;
    const ConvPlan<T> &p = *s.plan;
    int64_t area = p.size[1] * p.size[2], volume = p.size[0] * area, inner = p.phases->taps_count;
    int64_t places = r.samples * r.rows * r.columns, ld = (places + L - 1) / L * L;
    T *copy = room, *x = copy + s.copy_room, *g = x + s.x_room;
    Run *runs = reinterpret_cast<Run *>(g + s.g_room);

    bool whole = r.columns == p.size[2];
    int64_t lines = whole ? 1 : r.rows, length = whole ? r.rows * r.columns : r.columns;
    for (int64_t m = 0; m < ms; m++) {
        T *to = g + m * ld;
        for (int64_t b = 0; b < r.samples; b++) {
            const T *from = s.g + (((r.sample + b) * p.groups + group) * p.outputs + first + m) * volume + z * area;
            from += r.y * p.size[2] + r.x;
            for (int64_t y = 0; y < lines; y++, to += length) copy_exact(to, from + y * p.size[2], length);
        }
        zeros(to, ld - places);
    }
    int64_t sample_step = s.channel_block * p.plane, count = 0;
    if (!p.staged) sample_step = p.groups * p.channels * p.in[0] * p.in[1] * p.in[2];
    // Rows that follow each other without a gap are one run.
    int64_t rows = p.pitch == r.columns ? 1 : r.rows, run = p.pitch == r.columns ? r.rows * r.columns : r.columns;
    for (int64_t b = 0; b < r.samples; b++)
        for (int64_t y = 0; y < rows; y++, count++) runs[count] = {b * sample_step + y * p.pitch, count * run, run};

    for (int64_t j = 0; j < p.kernel_z; j++) {
        int64_t slice = p.z_source[z * p.kernel_z + j];
        if (slice < 0) continue;
        for (int64_t c = 0; c < p.channels; c += s.channel_block) {
            int64_t cs = least(s.channel_block, p.channels - c), depth = cs * inner;
            const T *base = copy;
            if (p.staged) {
                for (int64_t b = 0; b < r.samples; b++) {
                    stage(p, copy + b * sample_step, r.sample + b, group, c, cs, slice, r.y, r.x);
                    zeros(copy + b * sample_step + cs * p.plane, p.shared + L);
                }
            } else {
                base = p.source + r.sample * sample_step + (group * p.channels + c) * p.in[0] * p.in[1] * p.in[2];
                base += (slice * p.in[1] + r.y) * p.in[2] + r.x;
            }
            gather(x, ld, base, p.phases->offsets, depth, runs, count, !p.staged);
            for (int64_t k = 0; k < depth; k++) zeros(x + k * ld + places, ld - places);
            Sums<T> own{sums + c * s.taps + j * inner, p.channels * s.taps, inner, s.taps};
            inner_all(own, ms, depth, ld / L, g, x, ld);
        }
    }
}

template <class T> static void sums(const ConvSums<T> &s, T *room, int64_t task) {
    const ConvPlan<T> &p = *s.plan;
    int64_t block = task % s.output_blocks, group = task / s.output_blocks % p.groups;
    int64_t part = task / (s.output_blocks * p.groups);
    int64_t first = block * s.output_block, ms = least(s.output_block, p.outputs - first);
    T *to = s.sums + ((part * p.groups + group) * p.outputs + first) * p.channels * s.taps;
    zeros(to, ms * p.channels * s.taps);
    for (int64_t u = s.units * part / s.parts; u < s.units * (part + 1) / s.parts; u++) {
        int64_t bx = u % p.bands[2], by = u / p.bands[2] % p.bands[1], rest = u / (p.bands[2] * p.bands[1]);
        int64_t z = rest % p.size[0], bn = rest / p.size[0];
        Rectangle r{bn * p.band[0], 0, by * p.band[1], 0, bx * p.band[2], 0};
        r.samples = least(p.band[0], p.samples - r.sample);
        r.rows = least(p.band[1], p.size[1] - r.y);
        r.columns = least(p.band[2], p.size[2] - r.x);
        if (s.single)
            sums_single(s, room, r, z, group, to);
        else
            sums_block(s, room, r, z, group, first, ms, to);
    }
}

}  // namespace mortice::ISA
