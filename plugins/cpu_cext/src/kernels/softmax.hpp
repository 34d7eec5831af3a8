#pragma once
#include <stdint.h>

#include "../isa.hpp"

namespace mortice {

// Softmax, its logarithm, and the gradients of both. Rows are contiguous; columns are `n` elements, a `stride` apart, of
// which `width` lie beside each other.
template <class T> struct SoftmaxKernels {
    void (*rows)(const T *x, T *out, int64_t rows, int64_t n, bool logs);
    void (*columns)(const T *x, T *out, int64_t n, int64_t stride, int64_t width, bool logs);
    void (*rows_grad)(const T *g, const T *y, T *out, int64_t rows, int64_t n, bool logs);
    void (*columns_grad)(const T *g, const T *y, T *out, int64_t n, int64_t stride, int64_t width, bool logs);
    void (*rows_logsumexp)(const T *x, T *out, int64_t rows, int64_t n);
    void (*columns_logsumexp)(const T *x, T *out, int64_t n, int64_t stride, int64_t width);
    // For cross entropies: the largest element, and the logarithm of the sum of exponentials of the elements less that;
    // where `spread` is wanted, the sum of the elements less that, weighted.
    void (*rows_logs)(const T *x, const T *weight, T *top, T *below, T *spread, int64_t rows, int64_t n);
    void (*columns_logs)(const T *x, const T *weight, T *top, T *below, T *spread, int64_t n, int64_t stride, int64_t width);
    // softmax * scale - weight * share, for each line its own; without `share` nothing is taken off.
    void (*rows_pulled)(const T *x, const T *weight, const T *top, const T *below, const T *scale, const T *share, T *out,
                        int64_t rows, int64_t n);
    void (*columns_pulled)(const T *x, const T *weight, const T *top, const T *below, const T *scale, const T *share, T *out,
                           int64_t n, int64_t stride, int64_t width);
};
struct SoftmaxTable {
    SoftmaxKernels<float> f;
    SoftmaxKernels<double> d;
    template <class T> const SoftmaxKernels<T> &of() const {
        if constexpr (sizeof(T) == 4)
            return f;
        else
            return d;
    }
};
MORTICE_MODERN_MIXED_TABLE(SoftmaxTable, softmax_kernels)

}  // namespace mortice
