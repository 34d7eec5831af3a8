// BLAS and LAPACK of the OpenBLAS that scipy-openblas32 brings, loaded at the first need. OpenBLAS itself is kept to one
// thread: work is divided among the threads of parallel.hpp, so two pools never fight for the cores.
#pragma once
#include <cstdint>

#include "dtype.hpp"

namespace mortice {

// Of real and complex numbers alike.
template <class T> inline T times(T a, T b) { return a * b; }
inline cfloat times(cfloat a, cfloat b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
inline cdouble times(cdouble a, cdouble b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
template <class T> inline T plus(T a, T b) { return a + b; }
inline cfloat plus(cfloat a, cfloat b) { return {a.re + b.re, a.im + b.im}; }
inline cdouble plus(cdouble a, cdouble b) { return {a.re + b.re, a.im + b.im}; }

// Load the library; call it with the GIL before anything below. Throws Failed (ImportError) where it is missing.
void need_blas();
// A function of the library by its plain name ("dgetrf_", "cblas_sgemv"), nullptr when it has none.
void *blas_function(const char *name);

// Row-major C = alpha op(A) op(B) + beta C, C being m x n and k the inner size; op transposes where ta, tb say so, leading
// dimensions are those of the matrices as they lie in memory. With `row` C need not be filled: alpha and beta are 1, and each of
// its rows was that. One thread: for use inside parallel_for.
#define MORTICE_GEMM(T)                                                                                     \
    void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, T alpha, const T *a, int64_t lda, const T *b, \
              int64_t ldb, T beta, T *c, int64_t ldc, const T *row = nullptr);                              \
    /* The same on all threads, divided where it is worth it. */                                            \
    void gemm_parallel(bool ta, bool tb, int64_t m, int64_t n, int64_t k, T alpha, const T *a, int64_t lda, \
                       const T *b, int64_t ldb, T beta, T *c, int64_t ldc, const T *row = nullptr);
MORTICE_GEMM(float) MORTICE_GEMM(double) MORTICE_GEMM(cfloat) MORTICE_GEMM(cdouble)
#undef MORTICE_GEMM

// C = op(A) B by the kernels that copy B once for many rows of A, which are for AVX-512: no element depends on how many rows and
// columns there are. On one thread. False where they were not compiled, or there is no memory for the copy.
template <class T>
bool gemm_packed(bool ta, int64_t m, int64_t n, int64_t k, const T *a, int64_t lda, const T *b, int64_t ldb, T *c, int64_t ldc);

}  // namespace mortice
