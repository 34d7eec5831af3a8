// Resampling: rows of outputs as weighted sums of rows of inputs, whose elements are then weighted along the row.
#pragma once
#include <stdint.h>

#include "../isa.hpp"

namespace mortice {

// What each of `count` outputs along an axis is made of: taps [t][count], each an input position and how much of it.
template <class T> struct ResizeAxis {
    int64_t size, count, taps;  // taps 0: the axis stays as it is
    const int32_t *at;
    const T *weight;
};

template <class T> struct ResizePlan {
    const T *from;
    T *out;
    ResizeAxis<T> axis[3];
    int64_t planes;
    const uint8_t *narrow;  // for each vector of outputs along the last axis: whether all its taps lie within two vectors
};

template <class T> struct ResizeSet {
    int64_t lanes;
    void (*run)(const ResizePlan<T> &, T *room, int64_t plane_slice);
    void (*add)(T *into, const T *from, int64_t n);
};
struct ResizeTable {
    ResizeSet<float> f32;
    ResizeSet<double> f64;
    // One row of bytes: the sum of rows times whole weights, over 2^bits and rounded. Tap t is at at[t * step].
    void (*bytes)(const int32_t *at, const int32_t *weight, int64_t taps, int64_t step, int bits, const uint8_t *from, uint8_t *out,
                  int64_t width);
};
MORTICE_TABLE(ResizeTable, resize)

}  // namespace mortice
