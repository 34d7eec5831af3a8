#pragma once
#include <stdint.h>

#include "../isa.hpp"

namespace mortice {

// Rows of n contiguous elements, numbers r0 to r1 of all; weight and bias (or nullptr) have n elements for each of
// `groups`, which rows take in turn. Kernels of root mean squares have no mean: it is nullptr.
template <class T> struct RowNormKernels {
    // out = (x - mean) * rstd * weight + bias; out is nullptr where only the statistics are wanted.
    void (*forward)(const T *x, const T *weight, const T *bias, T *out, T *mean, T *rstd, int64_t r0, int64_t r1, int64_t n,
                    int64_t groups, double eps);
    // The gradient of x.
    void (*backward)(const T *g, const T *x, const T *weight, const T *mean, const T *rstd, T *out, int64_t r0, int64_t r1,
                     int64_t n, int64_t groups);
    // Add to the gradients of weight and bias; each may be nullptr.
    void (*backward_weight)(const T *g, const T *x, const T *mean, const T *rstd, T *weight, T *bias, int64_t r0, int64_t r1,
                            int64_t n, int64_t groups);
};
template <class T> struct NormKernels {
    RowNormKernels<T> layer, rms;
    void (*add)(T *to, const T *from, int64_t n);
    // The sum of squares, the sum of sizes, and the largest size, nan where there is one.
    double (*squares)(const T *x, int64_t n);
    double (*sizes)(const T *x, int64_t n);
    double (*largest)(const T *x, int64_t n);
    // out (rows x width, `step` apart) = the distances of x's rows, of n elements, from `width` others, by these norms. The
    // others are a panel: columns, of which `panel` lie side by side.
    int64_t panel;
    void (*distances[3])(const T *x, const T *others, T *out, int64_t rows, int64_t n, int64_t width, int64_t step);
};
struct NormTable {
    NormKernels<float> f;
    NormKernels<double> d;
    template <class T> const NormKernels<T> &of() const {
        if constexpr (sizeof(T) == 4)
            return f;
        else
            return d;
    }
};
MORTICE_MODERN_NARROW_TABLE(NormTable, norm_kernels)

}  // namespace mortice
