// Kernels of running sums, products, extremes and log-sum-exps, along a row or down a line of columns.
#pragma once
#include <stdint.h>

#include "../dtype.hpp"
#include "../isa.hpp"

namespace mortice {

constexpr int SCAN_TILE = 512;         // the most columns
constexpr int64_t SCAN_CHUNK = 16384;  // elements of a row whose sum starts anew, so that rows can be cut anywhere

// A number to go on from, of any dtype: wider than the elements where that helps.
struct alignas(16) Carry { char bytes[16]; };

// out[i * out_step] = base + (carry with all x up to the i-th), carry being brought up to date. Without `out` only that.
// A product has no base, nor has a row of doubles.
using ScanRow = void (*)(const void *x, int64_t step, void *out, int64_t out_step, int64_t n, const Carry &base, Carry &carry);
// Lines of m elements (at most SCAN_TILE), count of them: out[r][j] = op over x[0..r][j].
using ScanColumns = void (*)(const void *x, int64_t step, void *out, int64_t out_step, int64_t count, int64_t m);
// The same for extremes, with the place of the last one.
using ExtremeRow = void (*)(const void *x, int64_t step, void *out, int64_t *places, int64_t out_step, int64_t n);
using ExtremeColumns = void (*)(const void *x, int64_t step, void *out, int64_t *places, int64_t out_step, int64_t count,
                                int64_t m);

struct Scanner {
    ScanRow row;
    ScanColumns columns;
    void (*combine)(Carry &base, const Carry &more);
};
struct ExtremeScanner {
    ExtremeRow row;
    ExtremeColumns columns;
};
struct ScanKernels {
    Scanner sum[DTYPES], prod[DTYPES], logsumexp[DTYPES];
    ExtremeScanner max[DTYPES], min[DTYPES];
};
MORTICE_NARROW_MIXED_TABLE(ScanKernels, scan_kernels)

}  // namespace mortice
