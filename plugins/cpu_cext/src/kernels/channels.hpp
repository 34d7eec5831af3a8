#pragma once
#include <stdint.h>

#include "../isa.hpp"

namespace mortice {

struct ChannelShape {
    int64_t samples, channels, length;  // x is (samples, channels, length)
};
constexpr int64_t SHORT_CHANNEL = 16;  // lengths below are taken as columns of vectors over the channels

// Normalisation of channels c0 to c1 over samples and length. weight and bias may be nullptr.
template <class T> struct ChannelKernels {
    void (*forward)(const T *x, const T *weight, const T *bias, T *out, T *mean, T *var, ChannelShape s, int64_t c0, int64_t c1,
                    double eps);
    // Any of the results may be nullptr. The gradient of x goes through mean and variance too.
    void (*backward)(const T *g, const T *x, const T *weight, const T *mean, const T *var, T *d_x, T *d_weight, T *d_bias,
                     ChannelShape s, int64_t c0, int64_t c1, double eps);
    // out = (x - mean) * scale + bias for rows r0 to r1 of samples * channels; mean and bias may be nullptr.
    void (*apply)(const T *x, const T *mean, const T *scale, const T *bias, T *out, ChannelShape s, int64_t r0, int64_t r1);
    // The same where length is 1, for samples n0 to n1.
    void (*apply_columns)(const T *x, const T *mean, const T *scale, const T *bias, T *out, ChannelShape s, int64_t n0,
                          int64_t n1);
    // Groups of `each` channels, numbers r0 to r1 of samples * groups.
    void (*group_forward)(const T *x, const T *weight, const T *bias, T *out, T *mean, T *rstd, ChannelShape s, int64_t each,
                          int64_t r0, int64_t r1, double eps);
    // sums[c] and products[c] are the sums over a sample's channel of g and of g * (x - mean).
    void (*group_backward)(const T *g, const T *x, const T *weight, const T *mean, const T *rstd, T *d_x, T *sums, T *products,
                           ChannelShape s, int64_t each, int64_t r0, int64_t r1);
};
struct ChannelTable {
    ChannelKernels<float> f;
    ChannelKernels<double> d;
    template <class T> const ChannelKernels<T> &of() const {
        if constexpr (sizeof(T) == 4)
            return f;
        else
            return d;
    }
};
MORTICE_MODERN_MIXED_TABLE(ChannelTable, channel_kernels)

}  // namespace mortice
