// Sampling at the points of a grid: each point reads some elements of a plane, the same ones in every channel.
#pragma once
#include <stdint.h>

#include "../isa.hpp"

namespace mortice {

enum SampleMode { SAMPLE_NEAREST, SAMPLE_LINEAR, SAMPLE_CUBIC };
enum SamplePadding { OUTSIDE_ZEROS, OUTSIDE_BORDER, OUTSIDE_REFLECTION };

// All row-major: x (n, channels, *size), grid (n, count, nd) with the last axis of x first, g (n, channels, count).
template <class T> struct SamplePlan {
    const T *x, *grid, *g;
    T *out, *d_x, *d_grid;
    int nd;
    SampleMode mode;
    SamplePadding padding;
    bool align;  // whether -1 and 1 are the centres of the outer elements, not their edges
    int64_t size[3], volume, channels, count;
};

template <class T> struct SampleSet {
    void (*read)(const SamplePlan<T> &, int64_t image, int64_t begin, int64_t end);    // points begin to end of out
    void (*slopes)(const SamplePlan<T> &, int64_t image, int64_t begin, int64_t end);  // points begin to end of d_grid
    void (*spread)(const SamplePlan<T> &, int64_t image, int64_t begin, int64_t end);  // channels begin to end of d_x
};
struct SampleTable {
    SampleSet<float> f32;
    SampleSet<double> f64;
};
MORTICE_MODERN_NARROW_TABLE(SampleTable, sample)

}  // namespace mortice
