// Loops of the index family that the instruction set matters to.
#pragma once
#include <stdint.h>

#include "../isa.hpp"

namespace mortice {

struct IndexTable {
    void (*add_f32)(float *out, const float *x, int64_t n);
    void (*add_f64)(double *out, const double *x, int64_t n);
    // The least and the greatest of n > 0 integers.
    void (*range_i64)(const int64_t *x, int64_t n, int64_t *low, int64_t *high);
    // How many of n bytes are not 0.
    int64_t (*count)(const uint8_t *x, int64_t n);
    // Write base + i for each byte i that is not 0, of which there are `total`; nothing is written beyond those.
    void (*positions)(const uint8_t *x, int64_t n, int64_t base, int64_t *out, int64_t total);
};
MORTICE_TABLE(IndexTable, index_kernels)

}  // namespace mortice
