// Loops of the index family that the instruction set matters to.
#pragma once
#include <stdint.h>

#include "../isa.hpp"

namespace mortice {

// What finds the elements that may be among the largest of sign * x, in rows that lie side by side.
template <class T> struct Peaks {
    // The largest of each group: those of elements i, i + groups, i + 2 groups ... Returns whether there is no nan.
    bool (*largest)(const T *x, int64_t n, T sign, T *peak, int64_t groups);
    // Positions of what reaches a bound; -1 if they are more than `most`.
    int64_t (*reaching)(const T *x, int64_t n, T sign, T bound, int64_t *at, int64_t most);
};

struct IndexTable {
    void (*add_f32)(float *out, const float *x, int64_t n);
    void (*add_f64)(double *out, const double *x, int64_t n);
    // The sum of `count` rows of a table, `step` apart: columns stay in registers.
    void (*bag_f32)(float *out, const float *rows, int64_t step, const int64_t *at, int64_t count, int64_t width);
    void (*bag_f64)(double *out, const double *rows, int64_t step, const int64_t *at, int64_t count, int64_t width);
    // The least and the greatest of n > 0 integers.
    void (*range_i64)(const int64_t *x, int64_t n, int64_t *low, int64_t *high);
    // How many of n bytes are not 0.
    int64_t (*count)(const uint8_t *x, int64_t n);
    // Write base + i for each byte i that is not 0, of which there are `total`; nothing is written beyond those.
    void (*positions)(const uint8_t *x, int64_t n, int64_t base, int64_t *out, int64_t total);
    Peaks<float> peaks_f32;
    Peaks<double> peaks_f64;
};
MORTICE_TABLE(IndexTable, index_kernels)

}  // namespace mortice
