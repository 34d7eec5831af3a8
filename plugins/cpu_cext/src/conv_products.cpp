#include "conv_products.hpp"

#include <atomic>

#include "blas.hpp"
#include "families.hpp"

namespace mortice {

namespace {

constexpr int64_t MANY_WEIGHTS = 1 << 14;
constexpr int64_t POINTS_OUTPUTS = 48, POINTS_CHANNELS = 8, POINTS_PLACES = 96;  // fewer are sooner done in place
constexpr int64_t PATCHES = 16;        // windows of a sample that are worth a product
constexpr double POINTS_WORK = 1.6e7;  // multiply-adds of a task

}  // namespace

bool is_points(const Window &w) {
    bool fit = w.groups == 1 && w.filter_taps() == 1;
    for (int a = 0; a < 3; a++) fit = fit && w.stride[a] == 1 && w.padding[a] == 0 && w.count[a] == w.size[a];
    return fit;
}

namespace {

// Windows that do not overlap: gathered, they are no more than the image. Steps of two are taken faster from planes.
bool is_patches(const Window &w) {
    bool fit = w.groups == 1 && w.taps() == w.filter_taps() && w.stride[2] > 2 && w.count[0] * w.count[1] * w.count[2] >= PATCHES;
    for (int a = 0; a < 3; a++) fit = fit && w.dilation[a] * (w.kernel[a] - 1) < w.stride[a];
    return fit && w.outputs >= POINTS_OUTPUTS && w.inputs * w.taps() >= POINTS_CHANNELS;
}

// Windows times filters, turned or not: in blocks by the shape, as other widths might be added up in another order.
template <class T>
void multiply_few(bool turned, int64_t windows, int64_t columns, int64_t depth, const T *x, const T *weight, T *out) {
    const int64_t block = turned ? (std::max<int64_t>(64, 4 * windows) + 15) / 16 * 16 : 512;
    const double work = static_cast<double>(windows) * static_cast<double>(block * depth);
    parallel_for((columns + block - 1) / block, grain_for(work), [&](int64_t begin, int64_t end) {
        for (int64_t low = begin * block, high; low < std::min(end * block, columns); low = high) {
            high = std::min(low + block, columns);
            gemm(false, turned, windows, high - low, depth, T(1), x, depth, weight + (turned ? low * depth : low),
                 turned ? depth : columns, T(0), out + low, columns);
        }
    });
}

// Calls one(row of the image or -1, column) for each row of a window's taps, in order; the column may lie outside.
template <class F> inline void over_rows(const Window &w, int64_t window, F one) {
    int64_t at[3] = {window / w.count[2] / w.count[1], window / w.count[2] % w.count[1], window % w.count[2]};
    for (int a = 0; a < 3; a++) at[a] = at[a] * w.stride[a] - w.padding[a];
    for (int64_t z = 0, k = at[0]; z < w.kernel[0]; z++, k += w.dilation[0])
        for (int64_t y = 0, j = at[1]; y < w.kernel[1]; y++, j += w.dilation[1])
            one(k >= 0 && k < w.size[0] && j >= 0 && j < w.size[1] ? k * w.size[1] + j : -1, at[2]);
}

// Calls one(element of the image or -1) for each tap of a window, in order.
template <class F> inline void over_taps(const Window &w, int64_t window, F one) {
    over_rows(w, window, [&](int64_t row, int64_t l) {
        for (int64_t x = 0; x < w.kernel[2]; x++, l += w.dilation[2]) one(row >= 0 && l >= 0 && l < w.size[2] ? row * w.size[2] + l : -1);
    });
}

// Windows [low, high) of a sample, one after the other.
template <class T> void gather_windows(const Window &w, const T *x, int64_t low, int64_t high, T *to) {
    constexpr int64_t FOUR = 4;
    for (; low < high; low++)
        for (int64_t c = 0; c < w.inputs; c++) {
            const T *plane = x + c * w.size[0] * w.size[1] * w.size[2];
            over_rows(w, low, [&](int64_t row, int64_t l) {
                const T *from = plane + row * w.size[2] + l;
                int64_t i = 0, n = w.kernel[2];
                if (row >= 0 && l >= 0 && l + n <= w.size[2] && w.dilation[2] == 1)
                    for (; i + FOUR <= n; i += FOUR) memcpy(to + i, from + i, FOUR * sizeof(T));
                for (; i < n; i++) {
                    int64_t at = l + i * w.dilation[2];
                    to[i] = row >= 0 && at >= 0 && at < w.size[2] ? plane[row * w.size[2] + at] : T(0);
                }
                to += n;
            });
        }
}

}  // namespace

// ---- few windows ----

bool few_windows(const Window &w, int64_t few) {
    int64_t windows = w.samples * w.count[0] * w.count[1] * w.count[2], taps = w.filter_taps();
    return w.groups == 1 && windows * taps <= few * w.taps() && w.inputs * w.outputs * taps >= MANY_WEIGHTS;
}

template <class T> void conv_of_few(const Window &w, const T *x, const T *weight, T *out) {
    int64_t places = w.count[0] * w.count[1] * w.count[2], depth = w.inputs * w.taps(), windows = w.samples * places;
    int64_t volume = w.inputs * w.size[0] * w.size[1] * w.size[2];
    need_blas();
    Scratch<T> gathered(windows * depth), products(windows * w.outputs);
    Unlocked free(windows * w.outputs * depth);
    T *to = gathered;
    parallel_for(windows, grain_for(4.0 * depth), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) gather_windows(w, x + i / places * volume, i % places, i % places + 1, to + i * depth);
    });
    multiply_few(true, windows, w.outputs, depth, gathered.get(), weight, products.get());
    for (int64_t n = 0; n < w.samples; n++)
        conv_set<T>().turn(out + n * places * w.outputs, places, products + n * places * w.outputs, w.outputs, w.outputs, places);
}

// All products of gradients and filters first, then what each element of the image gets of them.

template <class T> void input_grad_of_few(const Window &w, const T *g, const T *weight, T *out) {
    int64_t places = w.count[0] * w.count[1] * w.count[2], taps = w.taps(), depth = w.inputs * taps, windows = w.samples * places;
    int64_t volume = w.size[0] * w.size[1] * w.size[2];
    need_blas();
    Scratch<T> turned(windows * w.outputs), products(windows * depth);
    Unlocked free(windows * w.outputs * depth);
    for (int64_t n = 0; n < w.samples; n++)
        conv_set<T>().turn(turned + n * places * w.outputs, w.outputs, g + n * places * w.outputs, places, places, w.outputs);
    multiply_few(false, windows, depth, w.outputs, turned.get(), weight, products.get());
    parallel_for(w.samples * w.inputs, grain_for(4.0 * (places * taps + volume)), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) {
            T *to = out + i * volume;
            std::fill_n(to, volume, T(0));
            const T *from = products + i / w.inputs * places * depth + i % w.inputs * taps;
            for (int64_t p = 0; p < places; p++, from += depth) {
                const T *own = from;
                over_taps(w, p, [&](int64_t at) {
                    if (at >= 0) to[at] += *own;
                    own++;
                });
            }
        }
    });
}

// ---- windows that share nothing ----

// A sample is a matrix, of places where they lie or of gathered windows, which the filters multiply. Their outputs are written
// row by row; a tile of places for all outputs at once would touch a page for each of them. False where that is not so, or
// nothing would be gained: by the shape of a sample, as the tasks are cut by it.
template <class T> bool by_points(const Window &w, bool backward, const T *source, const T *weight, T *out) {
    const bool patches = !backward && !w.last && w.stride[2] > 4 && is_patches(w),  // shorter runs are taken faster from planes
               packs = cpu_level() == LEVEL_AVX512;
    int64_t m = backward ? w.inputs : w.outputs, k = (backward ? w.outputs : w.inputs) * w.taps(), n = w.count[0] * w.count[1] * w.count[2];
    if (!patches && !(is_points(w) && (w.last || (m >= POINTS_OUTPUTS && k >= POINTS_CHANNELS && n >= POINTS_PLACES)))) return false;
    double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    int64_t tiles = (n + 31) / 32, parts = std::clamp<int64_t>(static_cast<int64_t>(work / POINTS_WORK), 1, (tiles + 3) / 4);
    int64_t volume = w.inputs * w.size[0] * w.size[1] * w.size[2], room = patches ? (tiles + parts - 1) / parts * 32 * k : 0;
    std::atomic<bool> done{true};
    need_blas();
    Scratch<T> rooms(room * num_threads());
    Unlocked free(static_cast<int64_t>(std::min(work * static_cast<double>(w.samples), 1e15)));
    parallel_for(w.samples * parts, grain_for(work / static_cast<double>(parts)), [&](int64_t begin, int64_t end) {
        T *own = rooms + room * thread_number();
        for (int64_t i = begin; i < end && done.load(std::memory_order_relaxed); i++) {
            int64_t sample = i / parts, part = i % parts, low = tiles * part / parts * 32, high = std::min(tiles * (part + 1) / parts * 32, n);
            if (w.last) {
                const int64_t row = sample * n + low;
                gemm(false, !backward, high - low, m, k, T(1), source + row * k, k, weight, w.inputs, T(0), out + row * m, m);
                continue;
            }
            const T *from = source + sample * k * n + low;
            T *to = out + sample * m * n + low;
            if (patches) {
                gather_windows(w, source + sample * volume, low, high, own);
                gemm(false, true, m, high - low, k, T(1), weight, k, own, k, T(0), to, n);
            } else if (!packs) {
                gemm(backward, false, m, high - low, k, T(1), weight, w.inputs, from, n, T(0), to, n);
            } else if (!gemm_packed(backward, m, high - low, k, weight, w.inputs, from, n, to, n)) {
                done.store(false, std::memory_order_relaxed);
            }
        }
    });
    return done;
}

// The gradient to the filters of such windows: gradients times places, or windows that were gathered.
template <class T> bool weight_grad_by_points(const Window &w, const T *g, const T *x, T *out) {
    int64_t places = w.count[0] * w.count[1] * w.count[2], depth = w.inputs * w.taps();
    const bool patches = !w.last && is_patches(w);
    if (!patches && !(w.last && is_points(w)) && !(cpu_level() != LEVEL_AVX512 && is_points(w) && places >= POINTS_PLACES && w.outputs >= POINTS_CHANNELS)) return false;
    int64_t weights = w.outputs * depth, parts = std::clamp<int64_t>(PARTS_ELEMENTS / weights, 1, std::min(MOST_PARTS, w.samples));
    int64_t blocks = std::min(MOST_PARTS / parts, (w.outputs + SUMS_BLOCK - 1) / SUMS_BLOCK), block = (w.outputs + blocks - 1) / blocks;
    double work = static_cast<double>(weights) * static_cast<double>(places) * static_cast<double>(w.samples);
    need_blas();
    Scratch<T> sums(parts > 1 ? weights * parts : 1), gathered(patches ? w.samples * places * depth : 1);
    T *to = parts > 1 ? sums.get() : out;
    Unlocked free(static_cast<int64_t>(std::min(work, 1e15)));
    if (patches)
        parallel_for(w.samples * places, grain_for(4.0 * depth), [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; i++)
                gather_windows(w, x + i / places * w.inputs * w.size[0] * w.size[1] * w.size[2], i % places, i % places + 1, gathered + i * depth);
        });
    parallel_for(parts * blocks, grain_for(work / static_cast<double>(parts * blocks)), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) {
            int64_t part = i / blocks, first = i % blocks * block, rows = std::min(block, w.outputs - first);
            int64_t low = w.samples * part / parts;
            const bool across = !patches && !w.last;
            for (int64_t n = low; n < w.samples * (part + 1) / parts; n++)
                gemm(w.last, across, rows, depth, places, T(1), g + n * w.outputs * places + first * (w.last ? 1 : places),
                     w.last ? w.outputs : places, (patches ? gathered.get() : x) + n * places * depth, across ? places : depth,
                     n > low ? T(1) : T(0), to + part * weights + first * depth, depth);
        }
    });
    if (parts > 1) add_parts<T>(out, sums, parts, weights);
    return true;
}

#define MORTICE_PRODUCTS(T)                                                        \
    template void conv_of_few(const Window &, const T *, const T *, T *);          \
    template void input_grad_of_few(const Window &, const T *, const T *, T *);    \
    template bool by_points(const Window &, bool, const T *, const T *, T *);      \
    template bool weight_grad_by_points(const Window &, const T *, const T *, T *);
MORTICE_PRODUCTS(float) MORTICE_PRODUCTS(double)
#undef MORTICE_PRODUCTS

}  // namespace mortice
