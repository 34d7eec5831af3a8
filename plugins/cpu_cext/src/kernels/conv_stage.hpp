// Copying: parts of images into padded planes, windows of these into rows of whole vectors, products out to the images.
#pragma once
#include "conv.hpp"
#include "simd.hpp"

namespace mortice::ISA {

INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
INLINE int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
INLINE int64_t ceil_div(int64_t a, int64_t b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }

template <class T> INLINE void zeros(T *to, int64_t n) {
    for (int64_t i = 0; i < n; i++) to[i] = T(0);
}

template <class T> INLINE void copy_exact(T *to, const T *from, int64_t n) {
    int64_t i = 0;
    for (; i + LANES<T> <= n; i += LANES<T>) store(to + i, load(from + i));
#if defined(__AVX512F__)
    if (i < n) {
        if constexpr (sizeof(T) == 4) {
            __mmask16 m = (__mmask16)((1u << (n - i)) - 1);
            _mm512_mask_storeu_ps(to + i, m, _mm512_maskz_loadu_ps(m, from + i));
        } else {
            __mmask8 m = (__mmask8)((1u << (n - i)) - 1);
            _mm512_mask_storeu_pd(to + i, m, _mm512_maskz_loadu_pd(m, from + i));
        }
    }
#else
    for (; i < n; i++) to[i] = from[i];
#endif
}

// Copy n elements, reading and writing up to a vector past the end.
template <class T> INLINE void copy_loose(T *to, const T *from, int64_t n) {
    for (int64_t i = 0; i < n; i += LANES<T>) store(to + i, load(from + i));
}

// A row of the copy: element q is source[q * step + start], zero outside [0, size).
template <class T>
static void stage_row(T *to, int64_t n, const T *from, int64_t size, int64_t step, int64_t start) {
    int64_t low = least(n, most(0, ceil_div(-start, step)));
    int64_t high = most(low, least(n, ceil_div(size - start, step)));
    zeros(to, low);
    const T *at = from + low * step + start;
    if (step == 1)
        copy_exact(to + low, at, high - low);
    else if (step == 2)
        for (int64_t q = low; q < high; q++, at += 2) to[q] = *at;
    else
        for (int64_t q = low; q < high; q++, at += step) to[q] = *at;
    zeros(to + high, n - high);
}

struct Rectangle {
    int64_t sample, samples, y, rows, x, columns;  // of output indices
};

// Copy what a rectangle of outputs sees of some channels of one slice: [channel][residues][rows][pitch].
template <class T>
static void stage(const ConvPlan<T> &p, T *to, int64_t sample, int64_t group, int64_t channel, int64_t channels,
                  int64_t slice, int64_t y, int64_t x) {
    int64_t area = p.in[1] * p.in[2], inner = p.in[0] * area;
    const T *from = p.source + ((sample * p.groups + group) * p.channels + channel) * inner + slice * area;
    for (int64_t c = 0; c < channels; c++, from += inner)
        for (int64_t i = 0; i < p.residues[0]; i++)
            for (int64_t j = 0; j < p.residues[1]; j++) {
                int64_t top = y * p.step[0] + p.residue[0][i] - p.before[0];
                int64_t left = x * p.step[1] + p.residue[1][j] - p.before[1];
                for (int64_t r = 0; r < p.rows; r++, to += p.pitch) {
                    int64_t row = top + r * p.step[0];
                    if (row < 0 || row >= p.in[1])
                        zeros(to, p.pitch);
                    else
                        stage_row(to, p.pitch, from + row * p.in[2], p.in[2], p.step[1], left);
                }
            }
}

// Runs of outputs that lie side by side: where they are in the copy, in the packed rows, and how many.
struct Run {
    int64_t from, to, count;
};

template <class T>
static void gather(T *to, int64_t ld, const T *from, const int64_t *offset, int64_t depth, const Run *runs, int64_t count,
                   bool exact) {
    for (int64_t k = 0; k < depth; k++, to += ld) {
        const T *row = from + offset[k];
        if (exact)
            for (int64_t r = 0; r < count; r++) copy_exact(to + runs[r].to, row + runs[r].from, runs[r].count);
        else
            for (int64_t r = 0; r < count; r++) copy_loose(to + runs[r].to, row + runs[r].from, runs[r].count);
    }
}

}  // namespace mortice::ISA
