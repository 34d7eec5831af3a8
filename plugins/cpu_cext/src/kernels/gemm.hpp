// Products of matrices that are large enough for B to be copied first, where there are 32 wide registers.
#pragma once
#include <stdint.h>

#include "../isa.hpp"

namespace mortice {

constexpr int GEMM_ROWS = 14, GEMM_FEWER = 12;  // of a tile: one of the two, so that little is left over
// Steps that a tile takes at once: so much of its rows and of a panel of B lies in the nearest caches.
template <class T> constexpr int64_t GEMM_DEPTH = 1280 / sizeof(T);

constexpr int64_t GEMM_STRIPS = 4;  // of A's rows, that are read together

template <class T> struct GemmKernel {
    // How many columns a panel of packed B has: their rows follow each other, with zeros up to whole vectors.
    int64_t panel;
    // `width` columns to panels: element (l, j) is at b[l * rb + j * cb], and one of the steps is 1.
    void (*pack)(int64_t depth, int64_t width, const T *b, int64_t rb, int64_t cb, T *to);
    // C (m x n, rows ldc apart) = start + A B, its rows lds apart (C itself, one row for all, or nullptr for none); A's element
    // (i, l) is at a[i * ra + l * ca], and one of the steps is 1. The rows are those of GEMM_STRIPS strips or fewer, of which
    // the first `low` have GEMM_FEWER rows.
    void (*strips)(int64_t low, int64_t m, int64_t n, int64_t depth, const T *a, int64_t ra, int64_t ca, const T *packed,
                   const T *start, int64_t lds, T *c, int64_t ldc);
};
struct GemmKernels {
    GemmKernel<float> f32;
    GemmKernel<double> f64;
};
#if defined(MORTICE_PACKED)
namespace avx512 { extern const GemmKernels gemm_table; }
#endif

}  // namespace mortice
