// Convolution and its gradient to the input, for one rectangle of outputs of some samples and one group at a time.
#include "conv.hpp"

#include "conv_depth.hpp"
#include "conv_micro.hpp"
#include "conv_outer.hpp"
#include "conv_stage.hpp"
#include "conv_sums.hpp"
#include "conv_winograd.hpp"

namespace mortice::ISA {

constexpr int MOST_VECTORS = 16;              // of a tile
constexpr int MOST_RUNS = MOST_VECTORS * 16;  // the same, place by place

template <class T> struct Tile {
    const ConvPlan<T> &p;
    const ConvPhase<T> &phase;
    int64_t group, z;
    Rectangle r;
    const int64_t *slices;  // what the kernel's slices read, a negative number for nothing
    int64_t slice_step;     // between slices that are read
    T *pack, *block;
    int64_t *pack_offset;
};

// How a line of places lies in the copy and in the output.
struct Line {
    int64_t width;    // places from row to row
    int64_t columns;  // of these, how many are outputs
    int64_t sample, y, rows;
};

template <class T> INLINE T *output_at(const Tile<T> &t, int64_t m, const Line &line, int64_t row, int64_t column) {
    const ConvPlan<T> &p = t.p;
    int64_t sample = t.r.sample + line.sample + row / line.rows, y = t.r.y + line.y + row % line.rows;
    y = y * p.out_step[0] + t.phase.first_y;
    int64_t x = (t.r.x + column) * p.out_step[1] + t.phase.first_x;
    int64_t channel = (sample * p.groups + t.group) * p.outputs + m;
    return p.out + ((channel * p.size[0] + t.z) * p.size[1] + y) * p.size[2] + x;
}

// Write a panel's places [start, start + count) of a line to the output, those that are outputs.
template <class T>
static void emit(const Tile<T> &t, const Line &line, int64_t m, int64_t ms, int64_t start, int64_t count, const T *from,
                 int64_t ld) {
    int64_t image = t.p.size[0] * t.p.size[1] * t.p.size[2], step = t.p.out_step[1];
    T *to[MOST_RUNS];
    Run runs[MOST_RUNS];
    int64_t row = start / line.width, column = start % line.width, all = 0;
    for (int64_t i = 0; i < count;) {
        int64_t n = least(line.width - column, count - i);
        int64_t used = least(n, line.columns - column);
        if (used > 0) to[all] = output_at(t, m, line, row, column), runs[all++] = {i, 0, used};
        i += n;
        row++;
        column = 0;
    }
    // Image by image: they may lie a power of two apart, and share a few sets of the caches.
    for (int64_t k = 0; k < ms; k++, from += ld)
        for (int64_t r = 0; r < all; r++) {
            const T *own = from + runs[r].from;
            T *at = to[r] + k * image;
            if (step == 1)
                copy_exact(at, own, runs[r].count);
            else if (step == 2)
                put_every_other(at, own, runs[r].count);
            else
                for (int64_t q = 0; q < runs[r].count; q++) at[q * step] = own[q];
        }
}

// Whether the places lie side by side in the output too.
template <class T> static bool straight(const Tile<T> &t, const Line &line, int64_t start, int64_t count) {
    if (t.p.out_step[1] != 1) return false;
    int64_t first = start / line.width, last = (start + count - 1) / line.width;
    if (first == last) return start % line.width + count <= line.columns;
    return line.width == line.columns && line.columns == t.p.size[2] && t.p.out_step[0] == 1 &&
           first / line.rows == last / line.rows;
}

INLINE int panel_rows(int64_t left) { return left > 4 ? PANEL : left > 2 ? 4 : static_cast<int>(left); }

constexpr int64_t DEEP = 512;  // rows gathered at once: they are to stay near while all filters pass by

template <class T>
static void run_gathered(const Tile<T> &t, const Line &line, int64_t start, int64_t count, const T *base, const Run *runs,
                         int64_t runs_count, int64_t ld) {
    constexpr int L = LANES<T>;
    const ConvPlan<T> &p = t.p;
    const ConvPhase<T> &phase = t.phase;
    const T *filters = phase.filters + t.group * p.kernel_z * p.panel_rows * phase.depth;
    int64_t vectors = (count + L - 1) / L, ldc = ld;
    bool direct = count % L == 0 && p.outputs == p.panel_rows && straight(t, line, start, count), again = false;
    T *c = t.block;
    if (direct) {
        c = output_at(t, 0, line, start / line.width, start % line.width);
        ldc = p.size[0] * p.size[1] * p.size[2];
    }
    for (int64_t j = 0, s = 0; j < p.kernel_z; j++) {
        if (t.slices[j] < 0) continue;
        const T *own = base + s++ * t.slice_step;
        for (int64_t k = 0; k < phase.depth; k += DEEP) {
            int64_t depth = least(DEEP, phase.depth - k);
            gather(t.pack, ld, own, phase.offsets + k, depth, runs, runs_count, !p.staged);
            for (int64_t m = 0; m < p.outputs;) {
                int rows = panel_rows(p.outputs - m);
                const T *a = filters + (j * p.panel_rows + m) * phase.depth + k * rows;
                product(rows, vectors, depth, a, t.pack, t.pack_offset, c + m * ldc, ldc, again);
                m += rows;
            }
            again = true;
        }
    }
    for (int64_t m = 0; !again && m < p.outputs; m++) zeros(c + m * ldc, vectors * L);
    if (!direct) emit(t, line, 0, p.outputs, start, count, t.block, ld);
}

// All places of a line, vector by vector, times panels of filters.
template <class T>
static void run_line(const Tile<T> &t, const Line &line, int64_t total, const T *base, bool gathered, int64_t sample_step) {
    constexpr int L = LANES<T>;
    const ConvPlan<T> &p = t.p;
    const ConvPhase<T> &phase = t.phase;
    int64_t ld = p.tile, slices = 0, across = line.columns % L ? total : line.columns / L;  // vectors of a row
    for (int64_t j = 0; j < p.kernel_z; j++) slices += t.slices[j] >= 0;
    for (int64_t start = 0, count; start < total; start += count) {
        count = total - start;
        if (count > ld) count = count > ld + L ? ld : (ld / L + 1) / 2 * L;  // one vector alone waits for its own sums
        int64_t vectors = (count + L - 1) / L;
        const T *b = base;
        const int64_t *offset = phase.offsets;
        // What is read in place must not be read past its end.
        bool exact = !p.staged, packed = exact && count % L;
        int64_t at[MOST_VECTORS];
        for (int64_t v = 0, own = packed ? 0 : start / L; v < vectors; v++, own++) at[v] = own / across * p.pitch + own % across * L;
        if (gathered || packed) {
            Run runs[MOST_RUNS];
            int64_t n = 0, row = start / line.width, column = start % line.width;
            for (int64_t i = 0; i < count; n++) {
                int64_t m = least(line.width - column, count - i);
                int64_t from = gathered ? row / line.rows * sample_step + row % line.rows * p.pitch + column : start + i;
                runs[n] = {from, i, m};
                i += m;
                row++;
                column = 0;
            }
            if (exact && !gathered) {
                gather(t.pack, ld, base, offset, phase.depth, runs, n, true);
                b = t.pack;
                offset = t.pack_offset;
            } else {
                run_gathered(t, line, start, count, base, runs, n, ld);
                continue;
            }
        }
        bool direct = count % L == 0 && straight(t, line, start, count);
        const T *filters = phase.filters + t.group * p.kernel_z * p.panel_rows * phase.depth;
        // Of many rows as many at once as a first-level cache holds: all filters pass by these.
        const int64_t some = phase.depth > DEEP ? DEEP / 2 : most(phase.depth, 1);
        for (int64_t k = 0; k == 0 || k < phase.depth; k += some)
            for (int64_t m = 0; m < p.outputs;) {
                int64_t left = p.outputs - m, depth = least(some, phase.depth - k);
                int rows = panel_rows(left);
                bool whole = direct && rows <= left;
                T *c = whole ? output_at(t, m, line, start / line.width, start % line.width) : t.block;
                if (!whole && some < phase.depth) c += m * ld;
                int64_t ldc = whole ? p.size[0] * p.size[1] * p.size[2] : ld;
                if (!slices) product(rows, vectors, 0, filters, b, offset, c, ldc, false, at);
                for (int64_t j = 0, s = 0; j < p.kernel_z; j++)
                    if (t.slices[j] >= 0) {
                        const T *a = filters + (j * p.panel_rows + m) * phase.depth + k * rows;
                        product(rows, vectors, depth, a, b + s * t.slice_step, offset + k, c, ldc, s > 0 || k > 0, at);
                        s++;
                    }
                if (!whole && k + some >= phase.depth) emit(t, line, m, least(rows, left), start, count, c, ld);
                m += rows;
            }
    }
}

template <class T> static void run_phase(Tile<T> &t, const T *base, int64_t sample_step) {
    const ConvPlan<T> &p = t.p;
    Rectangle &r = t.r;
    r.rows = least(r.rows, t.phase.count_y - r.y);
    r.columns = least(r.columns, t.phase.count_x - r.x);
    if (r.rows <= 0 || r.columns <= 0) return;
    for (int64_t k = 0; k < t.phase.depth; k++) t.pack_offset[k] = k * p.tile;
    if (p.dense) {
        Line line{r.columns, r.columns, 0, 0, r.rows};
        run_line(t, line, r.samples * r.rows * r.columns, base, true, sample_step);
        return;
    }
    for (int64_t b = 0; b < r.samples; b++, base += sample_step) {
        const int64_t width = r.columns % LANES<T> ? p.pitch : r.columns;  // rows of whole vectors need nothing between them
        run_line(t, Line{width, r.columns, b, 0, r.rows}, (r.rows - 1) * width + r.columns, base, false, 0);
    }
}

template <class T> static void run(const ConvPlan<T> &p, T *room, int64_t task) {
    int64_t bx = task % p.bands[2], by = task / p.bands[2] % p.bands[1];
    int64_t z = task / (p.bands[2] * p.bands[1]) % p.size[0], rest = task / (p.bands[2] * p.bands[1] * p.size[0]);
    int64_t group = rest % p.groups, bn = rest / p.groups;
    Rectangle r{bn * p.band[0], 0, by * p.band[1], p.band[1], bx * p.band[2], p.band[2]};
    r.samples = least(p.band[0], p.samples - r.sample);
    const int64_t *slices = p.z_source + z * p.kernel_z;

    int64_t slice_step = p.channels * p.plane, sample_step = p.kernel_z * slice_step;
    const T *base = room;
    if (p.staged) {
        T *to = room;
        for (int64_t b = 0; b < r.samples; b++, to += sample_step) {
            int64_t s = 0;
            for (int64_t j = 0; j < p.kernel_z; j++)
                if (slices[j] >= 0)
                    stage(p, to + s++ * slice_step, r.sample + b, group, 0, p.channels, slices[j], r.y, r.x);
            zeros(to + s * slice_step, p.shared + MOST * LANES<T>);  // what the last rows' windows reach into
        }
    } else {
        int64_t area = p.in[1] * p.in[2], volume = p.in[0] * area;
        sample_step = p.groups * p.channels * volume;
        base = p.source + r.sample * sample_step + group * p.channels * volume + r.y * p.pitch + r.x;
        slice_step = 0;
        if (slices[0] > 0) base += slices[0] * area;
    }
    T *pack = room + p.copy_room, *block = pack + p.pack_room;
    int64_t *pack_offset = reinterpret_cast<int64_t *>(block + p.block_room);
    for (int64_t i = 0; i < p.phases_count; i++) {
        Tile<T> t{p, p.phases[i], group, z, r, slices, slice_step, pack, block, pack_offset};
        run_phase(t, base, sample_step);
    }
}

// Lay out the filters of one panel as `product` reads them, for some of the channels.
template <class T>
static void pack(const ConvPlan<T> &p, int64_t number, int64_t group, int64_t panel, int64_t channel, int64_t channels) {
    const ConvPhase<T> &phase = p.phases[number];
    int64_t m = panel * PANEL, left = p.outputs - m, taps = phase.taps_count;
    for (int64_t j = 0; j < p.kernel_z; j++) {
        T *start = phase.filters + ((group * p.kernel_z + j) * p.panel_rows + m) * phase.depth;
        const T *from = p.weight + group * p.weight_group + m * p.weight_output + j * p.weight_slice;
        from += channel * p.weight_channel;
        // The last panel may be of several smaller ones: what is left over is cut the same way as in run_line.
        for (int64_t i = 0; i < PANEL && i < left;) {
            int64_t rest = left - i, rows = rest > 4 ? PANEL : rest > 2 ? 4 : rest, used = least(rows, rest);
            const T *own = from + i * p.weight_output;
            T *to = start + i * phase.depth + channel * taps * rows;
            if (used == rows && rows >= 4 && taps == p.weight_channel) {  // all taps, in their order
                if (PANEL == 8 && rows == 8) turn<T, 8>(to, 8, own, p.weight_output, channels * taps);
                else turn<T, 4>(to, 4, own, p.weight_output, channels * taps);
            } else {
                for (int64_t c = 0; c < channels; c++, own += p.weight_channel)
                    for (int64_t k = 0; k < taps; k++, to += rows) {
                        const T *tap = own + phase.taps[k];
                        if (used < PANEL) {
                            for (int64_t row = 0; row < rows; row++) to[row] = row < used ? tap[row * p.weight_output] : T(0);
                        } else if (p.weight_output == 1) {
                            __builtin_memcpy(to, tap, PANEL * sizeof(T));
                        } else {
#pragma GCC unroll 8
                            for (int row = 0; row < PANEL; row++) to[row] = tap[row * p.weight_output];
                        }
                    }
            }
            i += rows;
        }
    }
}

template <class T> static void add(T *into, const T *from, int64_t n) {
    int64_t i = 0;
    for (; i + LANES<T> <= n; i += LANES<T>) store(into + i, load(into + i) + load(from + i));
    for (; i < n; i++) into[i] += from[i];
}

template <class T>
constexpr ConvSet<T> SET = {LANES<T>, PANEL, WIDE * LANES<T>, run<T>, pack<T>, sums<T>, outer<T>, add<T>, turn_channels<T>, nullptr, nullptr, nullptr, nullptr};

extern const ConvTable conv_table;
constexpr ConvSet<float> floats() {
    ConvSet<float> all = SET<float>;
    all.depth = depth<float>;
    all.pack_tiles = pack_tiles, all.tiles = run_tiles, all.sum_tiles = sum_tiles;
    return all;
}
const ConvTable conv_table = {floats(), MORTICE_UP_TO_AVX2(SET<double>)};

}  // namespace mortice::ISA
