// Several arrays walked together in one fixed order, as tiles of two axes: for kernels that read or write at positions.
// Axes of size 1 are dropped and neighbours merged where every operand allows it.
#pragma once
#include "array.hpp"
#include "parallel.hpp"

namespace mortice {

template <int K> struct Grid {
    int ndim = 0;
    int64_t shape[MAX_NDIM + 2];
    int64_t step[K][MAX_NDIM + 2];  // in elements

    // Axes are added from the first to the last; an axis that continues the one before is merged with it.
    void add(int64_t n, const int64_t (&by)[K]) {
        if (n == 1) return;
        if (ndim) {
            bool one = true;
            for (int k = 0; k < K; k++) one &= step[k][ndim - 1] == by[k] * n;
            if (one) {
                shape[ndim - 1] *= n;
                for (int k = 0; k < K; k++) step[k][ndim - 1] = by[k];
                return;
            }
        }
        shape[ndim] = n;
        for (int k = 0; k < K; k++) step[k][ndim] = by[k];
        ndim++;
    }
    // At least two axes, so that tiles have both.
    void finish() {
        while (ndim < 2) {
            for (int i = ndim; i > 0; i--) {
                shape[i] = shape[i - 1];
                for (int k = 0; k < K; k++) step[k][i] = step[k][i - 1];
            }
            shape[0] = 1;
            for (int k = 0; k < K; k++) step[k][0] = 0;
            ndim++;
        }
    }
    int64_t size() const {
        int64_t n = 1;
        for (int i = 0; i < ndim; i++) n *= shape[i];
        return n;
    }
};

// Call tile(at) for each pair of the last two axes, where at[k] is operand k's offset; stops when one returns false.
// Along axis `cut` only begin..end are walked, and sizes[0..1] are the tile's.
template <int K, class F>
inline bool walk_tiles(const Grid<K> &g, int cut, int64_t begin, int64_t end, F &&tile) {
    int64_t sizes[MAX_NDIM + 2], place[MAX_NDIM + 2] = {}, at[K];
    for (int k = 0; k < K; k++) at[k] = begin * g.step[k][cut];
    for (int i = 0; i < g.ndim; i++) sizes[i] = g.shape[i];
    sizes[cut] = end - begin;
    const int outer = g.ndim - 2;
    for (int i = 0; i < g.ndim; i++)
        if (sizes[i] <= 0) return true;
    for (;;) {
        if (!tile(at, sizes + outer)) return false;
        int i = outer - 1;
        for (; i >= 0; i--) {
            for (int k = 0; k < K; k++) at[k] += g.step[k][i];
            if (++place[i] < sizes[i]) break;
            for (int k = 0; k < K; k++) at[k] -= sizes[i] * g.step[k][i];
            place[i] = 0;
        }
        if (i < 0) return true;
    }
}

// The same on several threads: the longest axis on which operand `by` moves is cut, so that no two threads touch the same
// element of it. `work` is about the nanoseconds that all of it takes.
template <int K, class F> inline bool parallel_tiles(const Grid<K> &g, int by, int64_t work, F &&tile) {
    int cut = -1;
    // An outer axis is preferred: its parts lie apart in memory.
    for (int i = 0; i < g.ndim; i++)
        if (g.step[by][i] && (cut < 0 || (g.shape[cut] < 4 * num_threads() && g.shape[i] > g.shape[cut]))) cut = i;
    if (cut < 0 || work < 40000) return walk_tiles(g, 0, 0, g.shape[0], tile);
    const int64_t n = g.shape[cut];
    int64_t grain = work > 0 ? n * 20000 / work : n;
    if (cut == g.ndim - 1 && grain < 64) grain = 64;
    bool fine = true;
    parallel_for(n, grain < 1 ? 1 : grain, [&](int64_t begin, int64_t end) {
        if (!walk_tiles(g, cut, begin, end, tile)) __atomic_store_n(&fine, false, __ATOMIC_RELAXED);
    });
    return fine;
}

}  // namespace mortice
