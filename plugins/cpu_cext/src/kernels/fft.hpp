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

}  // namespace mortice
