// Kernels of reductions: many elements to one accumulator, along rows (side by side) or columns (a line at a time).
#pragma once
#include <stdint.h>

#include "../dtype.hpp"
#include "../isa.hpp"

namespace mortice {

constexpr int ROW_BLOCK = 4096;   // the most elements of a row that a kernel is given at once
constexpr int COLUMN_TILE = 1024;  // the most columns
constexpr int COLUMN_ROWS = 64;   // the most lines

// out[r] = the elements x[r * step], x[r * step + 1], ... (n of them, 1 or more) reduced, for `count` rows.
using RowsKernel = void (*)(const void *x, int64_t n, int64_t count, int64_t step, void *out);
// acc[j] = acc[j] with x[j], x[step + j], ... (count of them), for j below m. `base` is the first line's number.
using ColumnsKernel = void (*)(const void *x, int64_t count, int64_t step, int64_t m, void *acc, int64_t base);
// out[i] = in[i * step], copied or changed to what a kernel reads.
using StageKernel = void (*)(const void *in, int64_t step, void *out, int64_t n);

struct Reducer {
    RowsKernel rows;
    ColumnsKernel columns;
};

// Accumulators of more than one number.
struct Best {  // of argmax: the value, and where it first is
    char value[8];
    int64_t index;
};
struct Moments {  // of var: how many, their mean, the sum of squared distances from it
    double count, mean, squares;
};
struct Exponents {  // of logsumexp: the largest, and the sum of exp(x - largest)
    double top, sum;
};

struct ReduceKernels {
    Reducer sum[DTYPES], prod[DTYPES], max[DTYPES], min[DTYPES];  // without kernels: halves, and complex but for prod
    Reducer count;                   // of bytes that are 0 or 1, in int64
    StageKernel truth[DTYPES];       // x != 0, as bytes
    StageKernel widen[DTYPES];       // halves to float, small integers to int32; nullptr for others
    StageKernel known[DTYPES];       // floats, a nan as 0; halves as float
    StageKernel gather[5];           // by the logarithm of the element's size
};
struct ReduceMoreKernels {
    Reducer argmax[DTYPES], argmin[DTYPES];  // of what `widen` leaves: 32 and 64 bits
    Reducer merge_argmax[DTYPES], merge_argmin[DTYPES];  // of Best
    Reducer var[2], merge_var;                           // float, double
    Reducer logsumexp[2], merge_logsumexp;
};
MORTICE_NARROW_MIXED_TABLE(ReduceKernels, reduce_kernels)
MORTICE_MIXED_TABLE(ReduceMoreKernels, reduce_more_kernels)

}  // namespace mortice
