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
MORTICE_TABLE(SoftmaxTable, softmax_kernels)

}  // namespace mortice
