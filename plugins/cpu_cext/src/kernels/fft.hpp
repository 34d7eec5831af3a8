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

// Rows of `many` numbers, one of each line: of a point its real parts, then its imaginary parts.
template <class T> struct FFTLines {
    void (*deal)(const T *rows, int64_t many, int64_t points, T *re, T *im);
    void (*collect)(const T *re, const T *im, int64_t many, int64_t points, T scale, T *rows);
    void (*split)(const T *pairs, int64_t n, T *re, T *im);
    void (*join)(const T *re, const T *im, int64_t n, T *pairs);
    // A point of the spectrum of a real line, from two of the line of half the length, at `there` the mirror image; and back,
    // from the rows of two points, of which the first and the last are real.
    void (*unfold)(const T *re, const T *im, int64_t here, int64_t there, int64_t many, T c, T s, T half, T *row);
    void (*fold)(const T *x, const T *y, int64_t many, T c, T s, bool first, T *re, T *im);
};
struct FFTLinesTable {
    FFTLines<float> f32;
    FFTLines<double> f64;
};
MORTICE_MODERN_NARROW_TABLE(FFTLinesTable, fft_lines)

}  // namespace mortice
