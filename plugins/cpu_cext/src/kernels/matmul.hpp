// Products that are too small or too thin for the BLAS library, and those of integers, which it does not know.
#pragma once
#include <stdint.h>

#include "../isa.hpp"

namespace mortice {

// C (m x n, rows ldc apart) = A B, or C += A B where `add`. A's element (i, l) is at a[i * ra + l * ca].
// rows: B's element (l, j) is at b[l * ldb + j]. dots: A has ca == 1, and B's element (l, j) is at b[j * ldb + l].
template <class T>
using Product = void (*)(int64_t m, int64_t n, int64_t k, const T *a, int64_t ra, int64_t ca, const T *b, int64_t ldb, T *c,
                         int64_t ldc, bool add);

struct MatmulKernels {
    Product<float> rows_f32, dots_f32;
    Product<double> rows_f64, dots_f64;
    // c (n) = or += the combination of k rows of b, ldb apart, with the factors a[l * ca]: b is read once, row by row.
    void (*combine_f32)(int64_t n, int64_t k, const float *a, int64_t ca, const float *b, int64_t ldb, float *c, bool add);
    void (*combine_f64)(int64_t n, int64_t k, const double *a, int64_t ca, const double *b, int64_t ldb, double *c, bool add);
    // Integers wrap around, so signed and unsigned are the same; bool is "or" of "and".
    Product<uint8_t> rows_bool, rows_u8;
    Product<uint16_t> rows_u16;
    Product<uint32_t> rows_u32;
    Product<uint64_t> rows_u64;
};
MORTICE_MIXED_TABLE(MatmulKernels, matmul)

}  // namespace mortice
