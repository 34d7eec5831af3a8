// The walk of reductions: axes sorted by their strides and merged, then rows or lines of columns, on several threads. How
// the work is cut depends on shapes and strides only, so results are the same whatever the number of threads.
#pragma once
#include "array.hpp"
#include "kernels/reduce.hpp"

namespace mortice {

// How elements become accumulators.
struct Recipe {
    Reducer unit;                  // elements into accumulators
    Reducer merge;                 // accumulators into accumulators
    StageKernel stage = nullptr;   // changes elements to what `unit` reads; without it they are read in place
    int in_size, staged_size, acc_size;
    bool cascade = false;          // lines are added up in groups of groups, for float sums
    bool indexed = false;          // accumulators are Best
    alignas(16) char identity[sizeof(Moments)];
};

// How accumulators become results.
struct Finish {
    enum How : uint8_t { COPY, FLOAT, VARIANCE, INDEX, LOG } how;
    DType acc;           // of FLOAT: F32 or F64
    DType out;
    bool divide = false, root = false;
    double divisor = 1;  // of FLOAT; what VARIANCE divides by
};

struct Axes {
    int count = 0;
    int64_t shape[MAX_NDIM + 1], step[MAX_NDIM + 1], out[MAX_NDIM + 1];  // steps in elements
};

struct Reduction {
    const char *x;
    char *out;
    Recipe recipe;
    Finish finish;
    Axes kept, gone;  // longest steps first

    // Add an axis; `out_step` is its step in the result, of an axis that is kept.
    void keep(int64_t size, int64_t step, int64_t out_step);
    void drop(int64_t size, int64_t step);
    void run();  // with all axes added, none of them empty
};

// Write n results, `step` elements apart.
void finish_results(const Finish &f, const char *acc, int acc_size, int64_t n, char *out, int64_t step);

// The kernel logsumexp of real numbers over any axes; that over one is in softmax.cpp.
PyObject *logsumexp_over_axes(PyObject *const *args, Py_ssize_t n, PyObject *names);

}  // namespace mortice
