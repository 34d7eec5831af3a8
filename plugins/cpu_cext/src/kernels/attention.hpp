// The rows of scores between the two products of attention, a tile at a time.
#pragma once
#include <stdint.h>

#include "../isa.hpp"

namespace mortice {

// A tile of query times key: `rows` rows, `lead` apart, a multiple of 16 so that whole vectors fit behind the last column.
template <class T> struct ScoreTile {
    T *scores;
    int64_t rows, columns, lead;
    int64_t visible;  // how many columns the first row sees; each next row sees one more (causal), at most all
    T scale;
    const void *mask;  // bool, or numbers to add (T); nullptr for none
    bool mask_is_bool;
    int64_t mask_row, mask_column;  // steps; the columns' is 0 or 1
    const uint8_t *keep;            // of the dropout, nullptr for none
    int64_t keep_row, keep_column;
    T keep_scale;
};

template <class T> struct AttentionOf {
    // Scores become exponentials less `top`, each row's largest so far, for the product with the values; `total` adds
    // them up, and `turn` is what earlier sums and outputs have to be multiplied by.
    void (*forward)(const ScoreTile<T> &tile, T *top, T *total, T *turn);
    // Scores become weights, and `d`, the gradient of the weights, becomes that of query times key. `inner` is what each
    // row's gradient and output give multiplied.
    void (*backward)(const ScoreTile<T> &tile, T *d, const T *lse, const T *inner);
    // The output of `rows` rows times or divided by a factor each.
    void (*multiply_rows)(T *out, int64_t rows, int64_t columns, int64_t lead, const T *factor);
    // Divide by the totals, and give the logarithm of the sums of exponentials.
    void (*finish)(T *out, int64_t rows, int64_t columns, int64_t lead, const T *top, const T *total, T *lse);
    void (*row_products)(const T *x, int64_t x_lead, const T *y, int64_t y_lead, int64_t rows, int64_t columns, T *inner);
};
struct AttentionKernels {
    AttentionOf<float> f32;
    AttentionOf<double> f64;
};
MORTICE_MODERN_MIXED_TABLE(AttentionKernels, attention)

}  // namespace mortice
