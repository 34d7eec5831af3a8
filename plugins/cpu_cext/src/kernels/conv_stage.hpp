// Copying: parts of images into padded planes, windows of these into rows of whole vectors, products out to the images.
#pragma once
#include "conv.hpp"
#include "conv_micro.hpp"

namespace mortice::ISA {

INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
INLINE int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
INLINE int64_t ceil_div(int64_t a, int64_t b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }

template <class T> static __attribute__((noinline)) void zeros_run(T *to, int64_t n) {
    for (int64_t i = 0; i < n; i++) to[i] = T(0);
}
template <class T> INLINE void zeros(T *to, int64_t n) {  // in very many places, mostly none
    if (n > 0) zeros_run(to, n);
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
    for (; i < n; i++) {
        __asm__("" : "+r"(i));  // fewer than a vector: the compiler is not to make vectors of them again
        to[i] = from[i];
    }
#endif
}

// The first n lanes, zeros in the others; n < LANES.
template <class T> INLINE vec<T> load_some(const T *p, int64_t n) {
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4) return (vec<T>)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
    else return (vec<T>)_mm512_maskz_loadu_pd((__mmask8)((1u << n) - 1), p);
#elif defined(__AVX2__)
    static const int32_t ones[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    if constexpr (sizeof(T) == 4) return (vec<T>)_mm256_maskload_ps(p, (__m256i)load(ones + 8 - n));
    else return load_part(p, n);
#else
    return load_part(p, n);
#endif
}

// Copy n elements, reading and writing up to a vector past the end.
template <class T> INLINE void copy_loose(T *to, const T *from, int64_t n) {
    if (2 * n <= LANES<T>) {
        __builtin_memcpy(to, from, VECTOR_BYTES / 2);
        return;
    }
    for (int64_t i = 0; i < n; i += LANES<T>) store(to + i, load(from + i));
}

// Lanes 0, 2, 4, ... of two vectors.
template <class V, int L, int... I> INLINE V evens(V a, V b, Places<I...>) {
    return __builtin_shufflevector(a, b, (2 * I)...);
}

template <class T> INLINE void copy_every_other(T *to, const T *from, int64_t n) {
    constexpr int L = LANES<T>;
    int64_t i = 0;
    for (; i + L < n; i += L)  // one less than n: what is between the elements lies before the last of them
        store(to + i, evens<vec<T>, L>(load(from + 2 * i), load(from + 2 * i + L), typename PlacesUpTo<L>::type{}));
    for (; i < n; i++) {
        __asm__("" : "+r"(i));
        to[i] = from[2 * i];
    }
}

// A vector's lanes in turn with what is there: the lanes from FIRST on, at the places that are even from the vector's start.
template <class V, int L, int FIRST, int... I> INLINE V between(V own, V there, Places<I...>) {
    return __builtin_shufflevector(own, there, ((I + FIRST) % 2 ? L + I : (I + FIRST) / 2)...);
}

// to[2 * i] = from[i]; what lies between two of them is written as it is.
template <class T> INLINE void put_every_other(T *to, const T *from, int64_t n) {
    constexpr int L = LANES<T>;
    using P = typename PlacesUpTo<L>::type;
    int64_t i = 0;
    for (; i + L <= n; i += L) {
        T *at = to + 2 * i, *rest = at + L - 1;  // up to the last element, not past it
        const vec<T> own = load(from + i), low = load(at), high = load(rest);  // a store would make the second wait
        store(at, between<vec<T>, L, 0>(own, low, P{}));
        store(rest, between<vec<T>, L, L - 1>(own, high, P{}));
    }
    for (; i < n; i++) {
        __asm__("" : "+r"(i));
        to[2 * i] = from[i];
    }
}

// How a row of the copy is filled: element q is source[q * step + start] for q in [low, high), zero elsewhere.
struct Fill {
    int64_t low, high, step, start;
    Fill(int64_t n, int64_t size, int64_t step, int64_t start) : step(step), start(start) {
        low = least(n, most(0, ceil_div(-start, step)));
        high = most(low, least(n, ceil_div(size - start, step)));
    }
};

template <class T> INLINE void stage_row(T *to, int64_t n, const T *from, const Fill &f) {
    zeros(to, f.low);
    const T *at = from + f.low * f.step + f.start;
    if (f.step == 1)
        copy_exact(to + f.low, at, f.high - f.low);
    else if (f.step == 2)
        copy_every_other(to + f.low, at, f.high - f.low);
    else
        for (int64_t q = f.low; q < f.high; q++, at += f.step) to[q] = *at;
    zeros(to + f.high, n - f.high);
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
    int64_t residue_plane = p.rows * p.pitch;
    for (int64_t i = 0; i < p.residues[0]; i++)
        for (int64_t j = 0; j < p.residues[1]; j++, to += residue_plane) {
            int64_t top = y * p.step[0] + p.residue[0][i] - p.before[0];
            int64_t left = x * p.step[1] + p.residue[1][j] - p.before[1];
            Fill across(p.pitch, p.in[2], p.step[1], left), down(p.rows, p.in[1], p.step[0], top);
            for (int64_t c = 0; c < channels; c++) {
                T *row = to + c * p.plane;
                const T *own = from + c * inner + top * p.in[2];
                zeros(row, down.low * p.pitch);
                for (int64_t r = down.low; r < down.high; r++)
                    stage_row(row + r * p.pitch, p.pitch, own + r * p.step[0] * p.in[2], across);
                zeros(row + down.high * p.pitch, (p.rows - down.high) * p.pitch);
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
