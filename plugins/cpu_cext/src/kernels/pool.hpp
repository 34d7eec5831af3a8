// Pooling of planes: maxima with their places, averages over windows given axis by axis, and the averages' gradient.
#pragma once
#include <stdint.h>

#include "../isa.hpp"

namespace mortice {

// Windows along an axis: element i sees [start[i], end[i]) of the input, cut to it.
struct PoolAxis {
    int64_t size, count, kernel, stride, padding, dilation;
    const int64_t *start, *end;  // nullptr for maxima
};

template <class T> struct PoolPlan {
    const T *from;
    T *out;
    int64_t *at;           // places of the maxima; nullptr where nobody asks
    int64_t planes;        // volumes, in fact: depth, height, width
    PoolAxis axis[3];
    const T *divisor[3];   // of each window along an axis; the product divides. First one nullptr: `divide_by`
    T divide_by;
    bool regular;          // windows follow kernel, stride and padding
    int64_t band, bands;   // rows of outputs of a task
    int64_t pitch;         // of a row of the copy, one residue of the stride
    int64_t room;          // elements that a task needs
};

template <class T> struct PoolSet {
    int64_t lanes;
    void (*max)(const PoolPlan<T> &, T *room, int64_t task);
    void (*average)(const PoolPlan<T> &, T *room, int64_t task);
    void (*average_grad)(const PoolPlan<T> &, T *room, int64_t task);  // from: windows, out: elements
};
struct PoolTable {
    PoolSet<float> f32;
    PoolSet<double> f64;
};
MORTICE_MODERN_MIXED_TABLE(PoolTable, pool)

}  // namespace mortice
