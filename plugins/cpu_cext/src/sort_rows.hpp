// Rows along an axis: what sorting and selecting go over.
#pragma once
#include "call.hpp"
#include "parallel.hpp"
#include "sort_keys.hpp"

namespace mortice {

struct Rows {
    Array &x;
    int axis;
    int64_t n, step;        // of a row of x
    int64_t count, inner;   // rows, and how many lie side by side

    Rows(Array &given, int along) : x(given), axis(along), n(1), step(1), count(1), inner(1) {
        for (int i = 0; i < x.ndim; i++) {
            if (i == axis) continue;
            count *= x.shape()[i];
            if (i > axis) inner *= x.shape()[i];
        }
        if (x.ndim) n = x.shape()[axis], step = x.strides()[axis];
    }
    // Where a row of x begins, in elements.
    int64_t at(int64_t row) const {
        int64_t offset = 0;
        for (int i = x.ndim - 1; i >= 0; i--) {
            if (i == axis) continue;
            offset += row % x.shape()[i] * x.strides()[i];
            row /= x.shape()[i];
        }
        return offset;
    }
    // Where it begins in a row-major result with m elements along the axis; they are `inner` apart.
    int64_t out(int64_t row, int64_t m) const { return row / inner * m * inner + row % inner; }
    template <class T> const T *data(int64_t row) const { return x.as<T>() + at(row); }
};

// Refuse what has no order, and rows whose positions do not fit beside their keys.
void check_rows(const char *name, const Rows &rows);

// Call each(row) for all rows: several at a time where there are enough of them, else one after the other, so that each may
// be worked on by all threads. `cost` is about the nanoseconds for an element.
template <class F> void for_rows(const Rows &rows, int64_t cost, F &&each) {
    Unlocked free(rows.count * rows.n * cost);
    if (rows.count < num_threads() && rows.n >= (1 << 16)) {
        for (int64_t r = 0; r < rows.count; r++) each(r);
        return;
    }
    const int64_t work = rows.n * cost + 100, grain = 20000 / work;
    parallel_for(rows.count, grain < 1 ? 1 : grain, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; r++) each(r);
    });
}

}  // namespace mortice
