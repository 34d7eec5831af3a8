// One step of a Fourier transform of several lines at once, in split form: real parts and imaginary parts apart.
#pragma once
#include <stdint.h>

#include "../isa.hpp"

namespace mortice {

// Cut n = factor * m: from x[k][p][q], k < factor, p < m, to y[p][j][q], each sum over k of x[k] w^(j k) times the root of
// order n to the power p * j. The innermost q, of which there are s, is several lines or what earlier steps have done.
template <class T> struct FFTStep {
    const T *x_re, *x_im;
    T *y_re, *y_im;
    int64_t factor, m, s;
    const T *root_re, *root_im;  // exp(-2 pi i k / whole) for k < whole
    int64_t whole;               // a multiple of factor * m
};

constexpr int MOST_FACTOR = 31;  // larger prime factors go through a convolution

struct FFTTable {
    void (*step_f32)(const FFTStep<float> &);
    void (*step_f64)(const FFTStep<double> &);
};
MORTICE_MODERN_NARROW_TABLE(FFTTable, fft_kernels)

// Lines in memory are pairs of numbers, and `apart` numbers lie between the beginnings of two. Here those of a point are side by
// side, `many` real parts and elsewhere as many imaginary ones.
template <class T> struct FFTLines {
    void (*take)(const T *lines, int64_t apart, int64_t many, int64_t points, T *re, T *im);
    void (*put)(const T *re, const T *im, int64_t many, int64_t points, T scale, T *lines, int64_t apart);
    void (*split)(const T *pairs, int64_t n, T *re, T *im);
    void (*join)(const T *re, const T *im, int64_t n, T scale, T *pairs);
    void (*reflect)(const T *pairs, int64_t n, int64_t step, T *to);  // the conjugates of pairs `step` numbers apart
    // The n + 1 points of the spectrum of a real line of 2 n, from those of the line of half the length, and back: n + 1 points
    // of which the first and the last are real. c and s are roots of order 2 n.
    void (*unfold)(const T *x_re, const T *x_im, int64_t n, int64_t many, const T *c, const T *s, T half, T *re, T *im);
    void (*fold)(const T *x_re, const T *x_im, int64_t n, int64_t many, const T *c, const T *s, T *re, T *im);
};
struct FFTLinesTable {
    FFTLines<float> f32;
    FFTLines<double> f64;
};
MORTICE_MODERN_NARROW_TABLE(FFTLinesTable, fft_lines)

}  // namespace mortice
