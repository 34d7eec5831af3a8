// Convolutions that are products of matrices: of few windows and large filters, or of windows that share nothing.
#pragma once
#include <algorithm>
#include <cstring>

#include "conv_plan.hpp"
#include "parallel.hpp"

namespace mortice {

inline int64_t grain_for(double work) { return std::max<int64_t>(1, static_cast<int64_t>(1e6 / std::max(work, 1.0))); }

constexpr int64_t SUMS_BLOCK = 64;          // outputs that windows are gathered for
constexpr int64_t MOST_PARTS = 16;          // sums kept apart until the end: by the shape, never by the threads
constexpr int64_t PARTS_ELEMENTS = 1 << 21;

// What parts of the samples give the filters.
template <class T> void add_parts(T *out, const T *sums, int64_t parts, int64_t weights) {
    parallel_for(weights, 1 << 14, [&](int64_t begin, int64_t end) {
        memcpy(out + begin, sums + begin, (end - begin) * sizeof(T));
        for (int64_t i = 1; i < parts; i++) conv_set<T>().add(out + begin, sums + i * weights + begin, end - begin);
    });
}

// Few windows of large filters, which are read once, as they lie. `whole` is the window before taps were left out.
constexpr int64_t FEW_WINDOWS = 32, FEW_GRADIENTS = 64;  // gradients save more: their filters would be read across
bool few_windows(const Window &w, int64_t few);  // of the taps that are left there must be enough
template <class T> void conv_of_few(const Window &whole, const T *x, const T *weight, T *out);
template <class T> void input_grad_of_few(const Window &whole, const T *g, const T *weight, T *out);

bool is_points(const Window &w);  // places side by side, each a window
// Windows that share nothing; false where they do, or nothing would be gained.
template <class T> bool by_points(const Window &w, bool backward, const T *source, const T *weight, T *out);
template <class T> bool weight_grad_by_points(const Window &w, const T *g, const T *x, T *out);

}  // namespace mortice
