// Convolution as one register-blocked product whose right rows are read where they lie in a padded copy of the image.
//
// A padded plane, its rows one after another, makes each tap of a window a fixed distance: output place p needs the
// elements p + offset[k]. So no windows are gathered, except (`dense`) where rows are too short for whole vectors.
#pragma once
#include <stdint.h>

#include "../isa.hpp"

namespace mortice {

// The outputs that see the same taps: all of them in a convolution, every stride-th in its gradient to the input.
template <class T> struct ConvPhase {
    T *filters;              // packed: group, slice, panel, depth, lane of the panel
    const int64_t *offsets;  // of the rows within the copy: one for each channel and tap
    const int64_t *taps;     // of these, their places in a filter's slice
    int64_t depth, taps_count;
    int64_t first_y, first_x, count_y, count_x;
};

template <class T> struct ConvPlan {
    const T *source, *weight;
    T *out;
    int64_t groups, channels, outputs;       // the last two a group
    int64_t samples, in[3], size[3];         // the source's and the output's sizes: depth, height, width
    int64_t weight_group, weight_output, weight_channel, weight_slice;  // strides
    int64_t kernel_z;
    const int64_t *z_source;                 // [size[0]][kernel_z]: the source's slice, -1 for none
    int64_t out_step[2];                     // between the outputs of a phase
    int64_t step[2], before[2];              // source place = index * step + residue - before
    int64_t residues[2];
    const int64_t *residue[2];
    bool staged, dense;
    int64_t band[3], bands[3];               // samples, rows, columns of a task and how many of these there are
    int64_t rows, pitch, plane;              // of the copy; a plane holds all residues of a channel
    int64_t shared;                          // columns that follow the last row and belong to the next
    int64_t panel_rows;                      // outputs rounded up to whole panels
    int64_t tile;                            // places that all panels pass over before the next ones
    int64_t phases_count;
    const ConvPhase<T> *phases;
    int64_t copy_room, pack_room, block_room;  // elements that a task needs
};

// The gradient to the weight: rows of output gradients times rows of windows, chunks of places at a time.
template <class T> struct ConvSums {
    const ConvPlan<T> *plan;  // as of the forward pass; one phase
    const T *g;
    T *sums;                  // [part][groups * outputs][channels][taps]
    int64_t taps;             // of a whole filter: slices included
    int64_t parts, output_blocks, output_block, channel_block;
    int64_t units;            // rectangles of places that the parts share
    int64_t copy_room, x_room, g_room;
    bool single;              // one channel a group: no gathering
};

// The same with channels last: the sums are [part][group][output][slice][row of taps][run], a run being the elements of a
// row's taps, or of one tap where dilation keeps them apart.
template <class T> struct ConvOuter {
    const ConvPlan<T> *plan;
    const T *g;
    T *sums;
    int64_t parts, units, output_blocks, output_block;
    int64_t before[2], skip[2];      // of the copy: element i is source[i * skip - before]
    int64_t rows, pitch, channel_room;  // of the copy; channels and what keeps places from sharing a cache's sets
    int64_t tap[2];                  // between taps, in the copy
    int64_t kernel_y, runs, run_room;  // runs of a row of taps; elements of each, whole vectors
    int64_t columns;                 // of the sums: all runs
    int64_t copy_room, g_room, row_room;
    int64_t tile_room;               // elements of a tile's channels, of float only; 0 where places are taken as they are
    int64_t tiles_room;              // of a unit's tiles and their gradients
};

// One channel a group, in planes: blocks of as many channels as a vector has lanes.
template <class T> struct ConvDepth {
    const T *source;
    const T *filters;                // packed: block, tap, lane; for the sums there are none
    const T *g;                      // for the sums
    T *out;                          // or the sums: part, block, tap, lane
    int64_t samples, channels, in[2], size[2];
    int64_t kernel[2], stride[2], dilation[2];
    int64_t before[2], spread[2];    // source element i is element i * spread + before of the padded plane
    int64_t band, bands;             // rows of the output that are done at once
    int64_t pitch;                   // of the padded plane
    int64_t parts;
    int64_t tile_room, sums_room;
    bool last;                       // source, g and out have their channels last
};

// Windows of 3 x 3, a step apart, in tiles of 2 x 2 outputs (conv_winograd.hpp).
struct ConvTiles {
    const float *source, *weight;
    float *out, *filters;
    bool turned;                     // the filters' taps: of a gradient
    int64_t weight_output, weight_channel;  // strides
    int64_t samples, channels, outputs, in[2], size[2], before[2];
    int64_t down, across;            // tiles of a sample
    int64_t block, part, parts;      // tiles and outputs of a task; tasks that share a block's tiles
    int64_t *zeros;                  // how many the filters have
    unsigned char *doubtful;         // samples with outputs that are not finite: there the way of summing tells
};
constexpr int64_t TILES_OUTPUTS = 32;  // that are multiplied before their products are given out
constexpr int64_t TILES_CHANNELS = 16; // whose filters are transformed at once
constexpr int64_t TILES_APART = 16;    // elements between the points: without them they would share a few sets of the caches

template <class T> struct ConvSet {
    int64_t lanes, panel, tile;  // elements of a vector, rows of the largest panel, places it does at once
    void (*run)(const ConvPlan<T> &, T *room, int64_t task);
    void (*pack)(const ConvPlan<T> &, int64_t phase, int64_t group, int64_t panel, int64_t channel, int64_t channels);
    void (*sums)(const ConvSums<T> &, T *room, int64_t task);
    void (*outer)(const ConvOuter<T> &, T *room, int64_t task);
    void (*add)(T *into, const T *from, int64_t n);
    void (*turn)(T *to, int64_t step, const T *from, int64_t ld, int64_t n, int64_t rows);  // to[i * step + r] = from[r * ld + i]
    void (*depth)(const ConvDepth<T> &, T *room, int64_t task);  // of float only, as the next ones
    void (*pack_tiles)(const ConvTiles &, int64_t panel, int64_t channel, int64_t channels);
    void (*tiles)(const ConvTiles &, float *room, int64_t task);
    bool (*sum_tiles)(float *row, int64_t run);
};
struct ConvTable {
    ConvSet<float> f32;
    ConvSet<double> f64;
};
MORTICE_MODERN_MIXED_TABLE(ConvTable, conv)

}  // namespace mortice
