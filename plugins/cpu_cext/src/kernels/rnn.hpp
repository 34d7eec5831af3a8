// What recurrent layers do between their matrix products, for the rows of one step: gates opened, states moved, and back.
#pragma once
#include <stdint.h>

#include "../isa.hpp"

namespace mortice {

// All matrices are row-major without gaps; `n` rows, `size` units. Biases may be nullptr.
template <class T> struct RecurrentOf {
    // sum (n x size) becomes the new state, which goes to h as well.
    void (*rnn_forward)(int64_t n, int64_t size, T *sum, const T *bias, T *h, bool relu);
    // d = (d_h + g) times the activation's slope.
    void (*rnn_backward)(int64_t n, int64_t size, const T *out, const T *g, const T *d_h, T *d, bool relu);
    // gates (n x 4 size), sums so far, are opened; c moves on and goes to cells; shown = o * tanh(c), to h as well where
    // that is not nullptr.
    void (*lstm_forward)(int64_t n, int64_t size, T *gates, const T *bias, T *c, T *cells, T *shown, T *h);
    // d (n x 4 size), and d_c moves back. `shown`, where it is not nullptr, gets o * tanh(c).
    void (*lstm_backward)(int64_t n, int64_t size, const T *gates, const T *cells, const T *before, const T *d_h, T *d_c, T *d,
                          T *shown);
    // own and hidden (n x 3 size) are the sums of the input and of the state; h moves on and goes to out.
    void (*gru_forward)(int64_t n, int64_t size, const T *own, const T *b_own, const T *hidden, const T *b_hidden, T *gates,
                        T *h, T *out);
    // d_own and d_hidden (n x 3 size); d_h keeps what goes straight to the state before.
    void (*gru_backward)(int64_t n, int64_t size, const T *gates, const T *before, T *d_h, T *d_own, T *d_hidden);
    void (*add)(int64_t n, T *to, const T *from);
};
struct RecurrentKernels {
    RecurrentOf<float> f32;
    RecurrentOf<double> f64;
};
MORTICE_MODERN_MIXED_TABLE(RecurrentKernels, recurrent)

}  // namespace mortice
