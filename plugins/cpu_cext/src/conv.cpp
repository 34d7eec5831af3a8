// conv, conv_input_grad, conv_weight_grad for floating dtypes and one to three spatial axes.
#include <algorithm>
#include <atomic>

#include "blas.hpp"
#include "conv_products.hpp"
#include "families.hpp"

namespace mortice {

namespace {

constexpr int64_t PACK_CHANNELS = 16;

template <class T> void run_plan(ConvPlanner<T> &planner) {
    ConvPlan<T> &plan = planner.plan;
    const ConvSet<T> &set = conv_set<T>();
    Scratch<T> filters(planner.filters());
    planner.place_filters(filters);
    int64_t panels = (plan.outputs + set.panel - 1) / set.panel, room = planner.task_room(), tasks = planner.tasks();
    Scratch<T> rooms(room * num_threads());
    double work = planner.task_work() * static_cast<double>(tasks);
    Unlocked free(static_cast<int64_t>(std::min(work, 1e15)));
    int64_t depth = 0;
    for (int64_t i = 0; i < plan.phases_count; i++) depth = std::max(depth, plan.phases[i].depth);
    // A gradient's filters lie side by side: all panels take theirs from some channels before the next ones are read.
    int64_t block = plan.weight_output < plan.weight_channel ? PACK_CHANNELS : std::max<int64_t>(plan.channels, 1);
    int64_t blocks = (plan.channels + block - 1) / block;
    parallel_for(plan.groups * blocks * panels, grain_for(10.0 * set.panel * depth * plan.kernel_z / static_cast<double>(blocks)),
                 [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; i++)
                         for (int64_t phase = 0; phase < plan.phases_count; phase++) {
                             int64_t channel = i / panels % blocks * block;
                             set.pack(plan, phase, i / panels / blocks, i % panels, channel, std::min(block, plan.channels - channel));
                         }
                 });
    parallel_for(tasks, grain_for(planner.task_work()), [&](int64_t begin, int64_t end) {
        T *own = rooms + room * thread_number();
        for (int64_t i = begin; i < end; i++) set.run(plan, own, i);
    });
}

// A single window, which is the whole image: products of matrices.
bool is_product(const Window &w) {
    bool whole = w.groups == 1 && !w.last;
    for (int i = 0; i < 3; i++)
        whole = whole && w.count[i] == 1 && w.padding[i] == 0 && w.kernel[i] == w.size[i] && w.filter[i] == w.kernel[i];
    return whole;
}

// Leaves out the taps at the kernel's ends that see nothing but padding; returns how many elements of a filter come before
// the first that is left. Small images under wide or dilated kernels have many.
int64_t crop(Window &w) {
    int64_t first = 0;
    for (int a = 0; a < 3; a++) {
        auto sees = [&](int64_t tap) {
            int64_t at = tap * w.dilation[a] - w.padding[a], window = at < 0 ? (w.stride[a] - 1 - at) / w.stride[a] : 0;
            return window < w.count[a] && at + window * w.stride[a] < w.size[a];
        };
        int64_t before = 0;
        while (w.kernel[a] > 1 && !sees(w.kernel[a] - 1)) w.kernel[a]--;
        for (; w.kernel[a] > 1 && !sees(0); w.kernel[a]--, before++) w.padding[a] -= w.dilation[a];
        first = first * w.filter[a] + before;
    }
    return first;
}

constexpr int64_t SUMS_ELEMENTS = 1 << 16;  // of windows gathered at once
constexpr int64_t SUMS_PLACES = 512;        // summed over in registers at once
constexpr int64_t SINGLE_PLACES = 1 << 15;
constexpr int64_t OUTER_PLACES = 192;       // of which the columns of gradients stay in a first-level cache
constexpr int64_t OUTER_GRADIENTS = 1 << 16;

// ---- one channel a group ----

constexpr int64_t TILE_BYTES = 96 << 10;        // of a padded band: near enough to be read again for each tap
constexpr int64_t LAST_BYTES = 256 << 10;
constexpr int64_t MOST_TILE_BYTES = 512 << 10;  // longer rows are left to the general way, which cuts them

// Sets up all but the operands; false where channels are too few to fill vectors, or rows too long, or in double.
template <class T> bool depthwise(const Window &w, bool backward, ConvDepth<T> &d) {
    const ConvSet<T> &set = conv_set<T>();
    if (!set.depth || w.inputs != 1 || w.outputs != 1 || 2 * w.groups < set.lanes || w.kernel[0] != 1 || w.size[0] != 1 || w.count[0] != 1 ||
        w.padding[0] != 0)
        return false;
    d.samples = w.samples, d.channels = w.groups, d.last = w.last;
    int64_t reach[2];
    for (int a = 0; a < 2; a++) {
        d.kernel[a] = w.kernel[a + 1], d.dilation[a] = w.dilation[a + 1];
        reach[a] = d.dilation[a] * (d.kernel[a] - 1);
        d.in[a] = backward ? w.count[a + 1] : w.size[a + 1];
        d.size[a] = backward ? w.size[a + 1] : w.count[a + 1];
        d.stride[a] = backward ? 1 : w.stride[a + 1];
        d.spread[a] = backward ? w.stride[a + 1] : 1;
        d.before[a] = backward ? reach[a] - w.padding[a + 1] : w.padding[a + 1];
    }
    d.pitch = (d.size[1] - 1) * d.stride[1] + reach[1] + 1;
    int64_t row = d.pitch * set.lanes * static_cast<int64_t>(sizeof(T));
    if ((reach[0] + 1) * row > MOST_TILE_BYTES) return false;
    d.band = std::clamp<int64_t>((TILE_BYTES / row - reach[0] - 1) / d.stride[0] + 1, 1, d.size[0]);
    if (w.last) {  // a band of all channels stays in a second-level cache
        int64_t rows = LAST_BYTES / (d.in[1] * d.channels * static_cast<int64_t>(sizeof(T)));
        d.band = std::clamp<int64_t>((rows - reach[0]) / d.stride[0], std::min(reach[0] + 1, d.band), d.band);
    }
    d.bands = (d.size[0] + d.band - 1) / d.band;
    d.band = (d.size[0] + d.bands - 1) / d.bands;
    d.bands = (d.size[0] + d.band - 1) / d.band;
    int64_t rows = (d.band - 1) * d.stride[0] + reach[0] + 1;
    d.tile_room = (rows * d.pitch + 8 * d.stride[1]) * set.lanes;
    d.sums_room = (d.kernel[0] * d.kernel[1] + 8) * set.lanes;
    return true;
}

template <class T> void run_depth(const ConvDepth<T> &d, int64_t tasks) {
    const ConvSet<T> &set = conv_set<T>();
    int64_t room = d.tile_room + (d.band * d.size[1] + set.lanes + 8) * set.lanes;
    Scratch<T> rooms(room * num_threads());
    double work = static_cast<double>(d.samples) * d.channels *
                  (3.0 * d.in[0] * d.in[1] + (d.kernel[0] * d.kernel[1] + 3.0) * d.size[0] * d.size[1]);
    Unlocked free(static_cast<int64_t>(std::min(work, 1e15)));
    parallel_for(tasks, grain_for(work / static_cast<double>(tasks)), [&](int64_t begin, int64_t end) {
        T *own = rooms + room * thread_number();
        for (int64_t i = begin; i < end; i++) set.depth(d, own, i);
    });
}

template <class T> void depth_of(const Window &w, ConvDepth<T> &d, bool backward, const T *weight) {
    int64_t lanes = conv_set<T>().lanes, taps = w.taps(), whole = w.filter_taps(), blocks = (d.channels + lanes - 1) / lanes;
    Scratch<T> filters(blocks * taps * lanes);
    T *to = filters;
    for (int64_t first = 0; first < d.channels; first += lanes, weight += lanes * whole)
        for (int64_t k = 0; k < taps; k++, to += lanes) {
            int64_t own = backward ? taps - 1 - k : k, n = std::min(lanes, d.channels - first);
            const T *at = weight + own / d.kernel[1] * w.filter[2] + own % d.kernel[1];
            for (int64_t i = 0; i < lanes; i++, at += whole) to[i] = i < n ? *at : T(0);
        }
    d.filters = filters;
    run_depth(d, d.samples * blocks * d.bands);
}

template <class T> void depth_sums(ConvDepth<T> &d, T *out) {
    const ConvSet<T> &set = conv_set<T>();
    int64_t blocks = (d.channels + set.lanes - 1) / set.lanes, taps = d.kernel[0] * d.kernel[1];
    d.parts = std::clamp<int64_t>(MOST_PARTS / blocks, 1, d.samples * d.bands);
    Scratch<T> sums(d.parts * blocks * d.sums_room);
    d.out = sums;
    run_depth(d, d.parts * blocks);
    const T *from = sums;
    for (int64_t first = 0; first < d.channels; first += set.lanes, from += d.sums_room)
        for (int64_t i = 0; i < std::min(set.lanes, d.channels - first); i++)
            for (int64_t k = 0; k < taps; k++, out++) {
                const T *at = from + k * set.lanes + i;
                *out = *at;
                for (int64_t part = 1; part < d.parts; part++) *out += *(at += blocks * d.sums_room);
            }
}

// ---- windows of 3 x 3, in tiles of four ----

// Of channels, outputs, tiles of a sample: of all samples never, or one alone might differ from itself in a batch.
constexpr int64_t TILES_LEAST = 16;
constexpr int64_t TILES_BYTES = 320 << 10;  // of a block's tiles and products
constexpr int64_t TILES_SUMMED = 48;        // tiles that pay for turning their sums back
constexpr int64_t TILES_PLACES = 512;       // as OUTER_PLACES: a quarter as many tiles, and the sums are longer
constexpr int64_t TILES_ZEROS = 32;         // one zero in so many elements of the filters: a mask of one place in nine has more, also of half the channels
constexpr int64_t TILES_PART = 64;          // outputs that are worth transforming tiles for

// Sets up all but the operands; false where there is nothing to gain, or in double.
template <class T> bool in_tiles(const Window &w, bool backward, ConvTiles &t) {
    const ConvSet<T> &set = conv_set<T>();
    bool fit = set.tiles && w.groups == 1 && w.kernel[0] == 1 && w.size[0] == 1 && w.count[0] == 1 && w.padding[0] == 0;
    for (int a = 1; a < 3; a++) fit = fit && w.kernel[a] == 3 && w.filter[a] == 3 && w.stride[a] == 1 && w.dilation[a] == 1;
    if (!fit) return false;
    t.samples = w.samples, t.turned = backward;
    t.channels = backward ? w.outputs : w.inputs, t.outputs = backward ? w.inputs : w.outputs;
    t.weight_output = (backward ? 1 : w.inputs) * 9, t.weight_channel = (backward ? w.inputs : 1) * 9;
    for (int a = 0; a < 2; a++) {
        t.in[a] = backward ? w.count[a + 1] : w.size[a + 1];
        t.size[a] = backward ? w.size[a + 1] : w.count[a + 1];
        t.before[a] = backward ? 2 - w.padding[a + 1] : w.padding[a + 1];
    }
    t.down = (t.size[0] + 1) / 2, t.across = (t.size[1] + 1) / 2;
    int64_t own = t.down * t.across, tiles = t.samples * own;
    if (std::min({t.channels, t.outputs, own}) < TILES_LEAST || t.size[0] * t.size[1] < 3 * own) return false;
    // Blocks of three vectors, which the kernels take at once, as many as stay in a second-level cache.
    int64_t three = 3 * set.lanes, threads = num_threads();
    int64_t most = std::clamp<int64_t>(TILES_BYTES / (64 * (t.channels + TILES_OUTPUTS) * three), 1, 8);
    most = std::clamp<int64_t>(tiles / (three * 4 * threads), 1, most);
    int64_t blocks = (tiles + most * three - 1) / (most * three);
    t.block = ((tiles + blocks - 1) / blocks + set.lanes - 1) / set.lanes * set.lanes;
    blocks = (tiles + t.block - 1) / t.block;
    t.parts = threads > 1 ? (2 * threads + blocks - 1) / blocks : 1;
    t.parts = std::clamp<int64_t>(t.parts, 1, (t.outputs + TILES_PART - 1) / TILES_PART);
    t.part = ((t.outputs + t.parts - 1) / t.parts + TILES_OUTPUTS - 1) / TILES_OUTPUTS * TILES_OUTPUTS;
    t.parts = (t.outputs + t.part - 1) / t.part;
    return true;
}

// False where the filters have more zeros than chance gives: what those leave out (the pixels to come, in a masked convolution),
// or a filter that shows a place as it is, must be exact, and in tiles it would be what is left of a difference.
bool run_in_tiles(ConvTiles &t) {
    const ConvSet<float> &set = conv_set<float>();
    int64_t panels = (t.outputs + set.panel - 1) / set.panel;
    Scratch<float> filters(panels * 16 * (t.channels * set.panel + TILES_APART));
    int64_t zeros = 0;
    t.filters = filters, t.zeros = &zeros;
    int64_t room = 16 * ((t.channels + TILES_OUTPUTS) * t.block + 2 * TILES_APART) + (2 * t.channels + 15) / 16 * 16;
    Scratch<float> rooms(room * num_threads());
    int64_t tasks = (t.samples * t.down * t.across + t.block - 1) / t.block * t.parts;
    double work = 16.0 * static_cast<double>(t.block) * (t.channels * (t.part + 8.0) + 8.0 * t.part);
    Unlocked free(static_cast<int64_t>(std::min(work * static_cast<double>(tasks), 1e15)));
    // A gradient's filters lie side by side: all panels take theirs from some channels before the next ones are read.
    int64_t blocks = (t.channels + TILES_CHANNELS - 1) / TILES_CHANNELS;
    parallel_for(blocks * panels, grain_for(200.0 * set.panel * TILES_CHANNELS), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) {
            int64_t channel = TILES_CHANNELS * (t.turned ? i / panels : i % blocks);
            set.pack_tiles(t, t.turned ? i % panels : i / blocks, channel, std::min(TILES_CHANNELS, t.channels - channel));
        }
    });
    if (zeros * TILES_ZEROS > t.outputs * t.channels * 9) return false;
    parallel_for(tasks, grain_for(work), [&](int64_t begin, int64_t end) {
        float *own = rooms + room * thread_number();
        for (int64_t i = begin; i < end; i++) set.tiles(t, own, i);
    });
    return true;
}

// ---- the operations ----

template <class T> void directly(const Window &w, bool backward, const T *source, const T *weight, T *out) {
    ConvPlanner<T> planner(w);
    planner.plan.source = source, planner.plan.weight = weight, planner.plan.out = out;
    backward ? planner.backward() : planner.forward();
    planner.fit(num_threads());
    run_plan(planner);
}

// A convolution of windows that overlap, or its gradient to the input.
template <class T> void general(const Window &w, bool backward, const T *source, const T *weight, T *out) {
    if (by_points(w, backward, source, weight, out)) return;
    ConvDepth<T> d{};
    if (depthwise(w, backward, d)) {
        d.source = source, d.out = out;
        return depth_of(w, d, backward, weight);
    }
    if constexpr (sizeof(T) == sizeof(float)) {
        ConvTiles t{};
        if (in_tiles<T>(w, backward, t)) {
            Scratch<unsigned char> doubtful(w.samples);
            memset(doubtful, 0, w.samples);
            t.source = source, t.weight = weight, t.out = out, t.doubtful = doubtful;
            if (!run_in_tiles(t)) return directly(w, backward, source, weight, out);
            Window one = w;
            one.samples = 1;
            for (int64_t n = 0; n < w.samples; n++)
                if (doubtful[n])
                    directly(one, backward, source + n * t.channels * t.in[0] * t.in[1], weight,
                             out + n * t.outputs * t.size[0] * t.size[1]);
            return;
        }
    }
    directly(w, backward, source, weight, out);
}

template <class T> void conv_of(const Window &whole, const T *x, const T *weight, T *out) {
    Window w = whole;
    int64_t first = crop(w);
    if (!is_product(w) && !w.last && few_windows(w, FEW_WINDOWS)) return conv_of_few(whole, x, weight, out);
    weight += first;
    int64_t depth = w.inputs * w.taps();
    if (is_product(w)) {
        need_blas();
        Unlocked free(w.samples * w.outputs * depth);
        return gemm_parallel(false, true, w.samples, w.outputs, depth, T(1), x, depth, weight, depth, T(0), out, w.outputs);
    }
    general(w, false, x, weight, out);
}

template <class T> void input_grad_of(const Window &whole, const T *g, const T *weight, T *out) {
    Window w = whole;
    int64_t first = crop(w);
    if (!is_product(w) && !w.last && few_windows(w, FEW_GRADIENTS)) return input_grad_of_few(whole, g, weight, out);
    weight += first;
    int64_t depth = w.inputs * w.taps();
    if (is_product(w)) {
        need_blas();
        Unlocked free(w.samples * w.outputs * depth);
        return gemm_parallel(false, false, w.samples, depth, w.outputs, T(1), g, w.outputs, weight, depth, T(0), out, depth);
    }
    general(w, true, g, weight, out);
}

// With channels last. Sums are turned round at the end. False where sums of tiles are not finite: they are to be made without.
template <class T> bool weight_grad_outer(const Window &w, const T *g, const T *x, T *out, bool in_fours) {
    const bool tiles = sizeof(T) == sizeof(float) && in_fours;
    ConvPlanner<T> planner(w);
    ConvPlan<T> &plan = planner.plan;
    const ConvSet<T> &set = conv_set<T>();
    plan.source = x;
    planner.forward();
    planner.fit_sums(tiles ? TILES_PLACES : OUTER_PLACES, false, tiles ? 2 : 1);
    ConvOuter<T> s{};
    s.plan = &plan, s.g = g;
    int64_t extent[2];
    for (int a = 0; a < 2; a++) {
        int64_t kernel = w.kernel[a + 1], stride = w.stride[a + 1];
        s.before[a] = w.padding[a + 1];
        s.skip[a] = kernel == 1 ? stride : 1;  // what no window sees is not copied
        s.tap[a] = w.dilation[a + 1];
        extent[a] = ((tiles ? (plan.band[a + 1] + 1) / 2 * 2 : plan.band[a + 1]) - 1) * (stride / s.skip[a]) + w.dilation[a + 1] * (kernel - 1) + 1;
    }
    s.rows = extent[0], s.pitch = extent[1];
    s.channel_room = w.inputs + (w.kernel[2] == 1 && w.inputs % 64 == 0 ? 16 : 0);
    s.kernel_y = w.kernel[1];
    s.runs = w.dilation[2] == 1 ? 1 : w.kernel[2];
    int64_t run = w.kernel[2] / s.runs * w.inputs, lanes = set.lanes;
    s.run_room = (run + lanes - 1) / lanes * lanes;
    s.columns = w.kernel[0] * s.kernel_y * s.runs * s.run_room;
    if (tiles) {
        s.run_room = (w.inputs + lanes - 1) / lanes * lanes, s.columns = 16 * s.run_room;
        s.tile_room = s.run_room + (s.run_room % 64 ? 0 : TILES_APART);
    }
    s.units = plan.bands[0] * plan.bands[1] * plan.bands[2] * plan.size[0];
    int64_t total = plan.groups * plan.panel_rows * s.columns;
    s.parts = std::clamp<int64_t>(PARTS_ELEMENTS / total, 1, std::min(MOST_PARTS, s.units));
    int64_t places = plan.band[0] * plan.band[1] * plan.band[2];
    // Whole outputs a task, as images are turned for each block of them anew; but some tasks there should be, and their
    // gradients are to stay in a second-level cache.
    int64_t blocks = std::max((2 * num_threads() + s.parts * plan.groups - 1) / (s.parts * plan.groups), plan.outputs * places / OUTER_GRADIENTS);
    blocks = std::clamp<int64_t>(MOST_PARTS / (s.parts * plan.groups), 1, std::max<int64_t>(blocks, 1));
    s.output_block = std::max(SUMS_BLOCK, (plan.outputs / blocks + 7) / 8 * 8);
    s.output_blocks = (plan.outputs + s.output_block - 1) / s.output_block;
    s.copy_room = plan.band[0] * s.rows * s.pitch * s.channel_room + 2 * lanes;
    s.g_room = std::min(s.output_block, plan.panel_rows) * places + 8 * lanes;
    s.row_room = s.skip[1] > 1 ? 8 * s.pitch + lanes : 0;
    int64_t unit = plan.band[0] * ((plan.band[1] + 1) / 2) * ((plan.band[2] + 1) / 2);
    s.tiles_room = tiles ? 16 * (unit * (s.tile_room + s.output_block) + 2 * TILES_APART) : places * set.tile;
    for (int64_t *room : {&s.copy_room, &s.g_room, &s.row_room, &s.tiles_room}) *room = (*room + 15) / 16 * 16;
    int64_t room = s.copy_room + s.g_room + s.row_room + s.tiles_room + 2 * places * static_cast<int64_t>(sizeof(int64_t) / sizeof(T));
    room = (room + 31) / 16 * 16;
    Scratch<T> sums(total * s.parts), rooms(room * num_threads());
    s.sums = sums;
    int64_t tasks = s.parts * plan.groups * s.output_blocks, taps = w.taps();
    double work = static_cast<double>(w.samples) * w.count[0] * w.count[1] * w.count[2] * static_cast<double>(total);
    Unlocked free(static_cast<int64_t>(std::min(work, 1e15)));
    parallel_for(tasks, grain_for(work / static_cast<double>(tasks)), [&](int64_t begin, int64_t end) {
        T *own = rooms + room * thread_number();
        for (int64_t i = begin; i < end; i++) set.outer(s, own, i);
    });
    std::atomic<bool> finite{true};
    parallel_for(plan.groups * plan.outputs, grain_for(static_cast<double>(s.columns) * (s.parts + 8) * 8), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) {
            T *row = sums + (i / plan.outputs * plan.panel_rows + i % plan.outputs) * s.columns, *to = out + i * w.inputs * taps;
            for (int64_t part = 1; part < s.parts; part++) set.add(row, row + part * total, s.columns);
            if constexpr (sizeof(T) == sizeof(float))
                if (tiles) {
                    if (!set.sum_tiles(row, s.run_room)) finite.store(false, std::memory_order_relaxed);
                    set.turn(to, taps, row, s.run_room, w.inputs, taps);
                    continue;
                }
            // Taps lie evenly, or else those of a row of the window do.
            bool even = s.runs > 1 || s.run_room == w.kernel[2] * w.inputs;
            int64_t together = even ? taps : w.kernel[2], step = s.runs > 1 ? s.run_room : w.inputs;
            if (taps == 1) memcpy(to, row, w.inputs * sizeof(T));
            else for (int64_t k = 0; k < taps; k += together, row += s.run_room) set.turn(to + k, taps, row, step, w.inputs, together);
        }
    });
    return finite;
}

template <class T> void weight_grad_of(Window w, const T *g, const T *x, T *out) {
    int64_t first = crop(w), taps = w.taps(), whole = w.filter_taps(), filters = w.groups * w.outputs * w.inputs;
    if (taps < whole) {
        Scratch<T> seen(filters * taps);
        const T *from = seen;
        Window own = w;
        std::copy_n(w.kernel, 3, own.filter);
        weight_grad_of(own, g, x, seen.get());
        Scratch<int64_t> places(taps);
        int64_t *at = places;
        for (int64_t k = 0; k < taps; k++) {
            int64_t zy = k / w.kernel[2];
            at[k] = first + (zy / w.kernel[1] * w.filter[1] + zy % w.kernel[1]) * w.filter[2] + k % w.kernel[2];
        }
        Unlocked free(filters * whole);
        constexpr int64_t BLOCK = 64;  // filters whose zeros are still near when the sums come
        parallel_for((filters + BLOCK - 1) / BLOCK, grain_for(BLOCK * (1.0 * whole + taps)), [&](int64_t begin, int64_t end) {
            for (int64_t low = begin * BLOCK, high; low < std::min(end * BLOCK, filters); low = high) {
                high = std::min(low + BLOCK, filters);
                memset(out + low * whole, 0, (high - low) * whole * sizeof(T));
                for (int64_t i = low; i < high; i++)
                    for (int64_t k = 0; k < taps; k++) out[i * whole + at[k]] = from[i * taps + k];
            }
        });
        return;
    }
    if (is_product(w)) {
        int64_t depth = w.inputs * w.taps();
        need_blas();
        Unlocked free(w.samples * w.outputs * depth);
        return gemm_parallel(true, false, w.outputs, depth, w.samples, T(1), g, w.outputs, x, depth, T(0), out, depth);
    }
    if (weight_grad_by_points(w, g, x, out)) return;
    ConvDepth<T> d{};
    if (depthwise(w, false, d)) {
        d.source = x, d.g = g;
        return depth_sums(d, out);
    }
    const ConvSet<T> &set = conv_set<T>();
    int64_t run = (w.dilation[2] == 1 ? w.kernel[2] : 1) * w.inputs;
    const auto fills = [&](int64_t n) { return 4 * n >= 3 * ((n + set.lanes - 1) / set.lanes * set.lanes); };
    if (w.outputs > 2 && fills(run)) {
        ConvTiles t{};
        bool tiles = w.outputs % set.panel == 0 && fills(w.inputs) && in_tiles<T>(w, false, t);
        tiles = tiles && t.samples * t.down * t.across >= TILES_SUMMED;
        if (!tiles || !weight_grad_outer(w, g, x, out, true)) weight_grad_outer(w, g, x, out, false);
        return;
    }
    ConvPlanner<T> planner(w);
    ConvPlan<T> &plan = planner.plan;
    plan.source = x;
    planner.forward();
    ConvSums<T> s{};
    s.plan = &plan, s.g = g, s.taps = w.taps();
    s.single = w.inputs == 1 && w.outputs <= 2;
    planner.fit_sums(s.single ? SINGLE_PLACES : SUMS_PLACES, s.single);
    int64_t inner = w.kernel[1] * w.kernel[2], places = plan.band[0] * plan.band[1] * plan.band[2];
    int64_t ld = (places + set.lanes - 1) / set.lanes * set.lanes, slack = 8 * set.lanes + plan.shared;
    s.output_block = s.single ? plan.outputs : std::min(plan.outputs, SUMS_BLOCK);
    s.output_blocks = (plan.outputs + s.output_block - 1) / s.output_block;
    s.channel_block = s.single ? 1 : std::clamp<int64_t>(SUMS_ELEMENTS / (inner * ld), 1, plan.channels);
    s.copy_room = plan.staged ? plan.band[0] * s.channel_block * plan.plane + slack : 0;
    s.x_room = s.single ? 0 : s.channel_block * inner * ld + slack;
    s.g_room = s.single ? 0 : s.output_block * ld + slack;
    for (int64_t *room : {&s.copy_room, &s.x_room, &s.g_room}) *room = (*room + 15) / 16 * 16;
    s.units = plan.bands[0] * plan.bands[1] * plan.bands[2] * plan.size[0];
    int64_t weights = plan.groups * plan.outputs * plan.channels * s.taps;
    s.parts = std::clamp<int64_t>(PARTS_ELEMENTS / weights, 1, std::min(MOST_PARTS, s.units));
    Scratch<T> sums(s.parts > 1 ? weights * s.parts : 1);
    s.sums = s.parts > 1 ? sums.get() : out;
    int64_t runs = plan.band[0] * plan.band[1] * 3 * static_cast<int64_t>(sizeof(int64_t) / sizeof(T));
    int64_t room = (s.copy_room + s.x_room + s.g_room + runs + 31) / 16 * 16;
    Scratch<T> rooms(room * num_threads());
    int64_t tasks = s.parts * plan.groups * s.output_blocks;
    double work = static_cast<double>(w.samples) * w.count[0] * w.count[1] * w.count[2] * weights;
    Unlocked free(static_cast<int64_t>(std::min(work, 1e15)));
    parallel_for(tasks, grain_for(work / static_cast<double>(tasks)), [&](int64_t begin, int64_t end) {
        T *own = rooms + room * thread_number();
        for (int64_t i = begin; i < end; i++) set.sums(s, own, i);
    });
    if (s.parts == 1) return;
    add_parts<T>(out, s.sums, s.parts, weights);
}

// ---- arguments ----

void axis_ints(PyObject *value, int nd, int64_t *out, int64_t missing, int64_t least, const char *name) {
    int64_t given[MAX_NDIM];
    if (as_ints(value, given, MAX_NDIM) != nd) fail(PyExc_RuntimeError, "conv: expected %s to have %d entries.", name, nd);
    for (int i = 0; i < 3 - nd; i++) out[i] = missing;
    for (int i = 0; i < nd; i++) {
        if (given[i] < least || given[i] > INT32_MAX)
            fail(PyExc_RuntimeError, "conv: expected %s of %lld to %d; got %lld.", name, (long long)least, INT32_MAX,
                 (long long)given[i]);
        out[3 - nd + i] = given[i];
    }
}

// From the shapes of a convolution's input, weight and output.
Window window_of(int nd, const int64_t *x, const int64_t *w, const int64_t *y, PyObject *const *settings) {
    Window v{};
    v.groups = settings[3] ? as_int(settings[3]) : 1;
    v.samples = x[0];
    bool fit = v.groups > 0 && w[0] % v.groups == 0 && x[1] == w[1] * v.groups;
    if (!fit) fail(PyExc_RuntimeError, "conv: expected channels that fit the weight and its groups; got %lld, (%lld, %lld), %lld.",
                   (long long)x[1], (long long)w[0], (long long)w[1], (long long)v.groups);
    v.inputs = w[1];
    v.outputs = w[0] / v.groups;
    axis_ints(settings[0], nd, v.stride, 1, 1, "stride");
    axis_ints(settings[1], nd, v.padding, 0, 0, "padding");
    axis_ints(settings[2], nd, v.dilation, 1, 1, "dilation");
    for (int i = 0; i < 3; i++) {
        int j = i - (3 - nd) + 2;
        v.size[i] = j < 2 ? 1 : x[j];
        v.kernel[i] = v.filter[i] = j < 2 ? 1 : w[j];
        if (v.kernel[i] < 1) fail(PyExc_RuntimeError, "conv: expected a kernel of at least one element an axis.");
        int64_t reach = v.size[i] + 2 * v.padding[i] - v.dilation[i] * (v.kernel[i] - 1) - 1;
        v.count[i] = reach < 0 ? 0 : reach / v.stride[i] + 1;
        // A gradient may have fewer windows than there is room for, and a transposed convolution more room.
        if (y && j >= 2) {
            if (y[j] > v.count[i]) fail(PyExc_RuntimeError, "conv: expected at most %lld windows along an axis; got %lld.",
                                        (long long)v.count[i], (long long)y[j]);
            v.count[i] = y[j];
        }
    }
    if (y && (y[0] != x[0] || y[1] != w[0]))
        fail(PyExc_RuntimeError, "conv: expected a gradient of %lld samples and %lld channels; got %lld and %lld.",
             (long long)x[0], (long long)w[0], (long long)y[0], (long long)y[1]);
    return v;
}

bool served(const Array &x, const Array &w) {
    return is_float(x.dtype) && w.dtype == x.dtype && x.ndim == w.ndim && x.ndim >= 3 && x.ndim <= 5;
}

bool empty(int n, const int64_t *shape) {
    for (int i = 0; i < n; i++)
        if (shape[i] == 0) return true;
    return false;
}

// Whether images with their channels last are taken as they lie: what else there is turns them.
template <class T> bool takes_last(Window w, bool backward) {
    crop(w);
    ConvDepth<T> d;
    return is_points(w) || depthwise(w, backward, d);
}

// Of the image a, and of b: filters, or with `images` another image, for filters. Channels stay last where they are taken so.
template <class F> Ref compute(Array &a, Array &b, Window &w, int nd, const int64_t *shape, bool images, bool backward, F of) {
    DType wide = is_half(a.dtype) ? F32 : a.dtype;
    if (a.size == 0 || b.size == 0 || empty(nd + 2, shape)) return make_zeros(a.dtype, nd + 2, shape);
    if (nd == 2 && wide == a.dtype && (channels_last(a) || (images && channels_last(b))))
        w.last = wide == F32 ? takes_last<float>(w, backward) : takes_last<double>(w, backward);
    const auto lying = [&](Array &x, bool last) { return last ? with_channels_last(x) : contiguous(*converted(x, wide)); };
    Ref x = lying(a, w.last), y = lying(b, w.last && images);
    Ref out = w.last && !images ? make_channels_last(wide, nd + 2, shape) : make(wide, nd + 2, shape);
    if (wide == F32)
        of(x->as<float>(), y->as<float>(), out->as<float>());
    else
        of(x->as<double>(), y->as<double>(), out->as<double>());
    return wide == a.dtype ? std::move(out) : converted(*out, a.dtype);
}

PyObject *conv_body(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<6> N{"conv", {"x", "w", "stride", "padding", "dilation", "groups"}, 5};
    PyObject *a[6];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]), &w = as_array(a[1]);
    if (!served(x, w)) return default_body();
    int nd = x.ndim - 2;
    Window v = window_of(nd, x.shape(), w.shape(), nullptr, a + 2);
    int64_t shape[5] = {x.shape()[0], w.shape()[0]};
    for (int i = 0; i < nd; i++) shape[2 + i] = v.count[3 - nd + i];
    return compute(x, w, v, nd, shape, false, false, [&](auto *p, auto *q, auto *o) { conv_of(v, p, q, o); }).release();
}

PyObject *input_grad_body(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<7> N{"conv_input_grad", {"g", "w", "x_shape", "stride", "padding", "dilation", "groups"}, 6};
    PyObject *a[7];
    arguments(N, args, n, names, a);
    Array &g = as_array(a[0]), &w = as_array(a[1]);
    if (!served(g, w)) return default_body();
    int nd = g.ndim - 2;
    int64_t shape[MAX_NDIM];
    if (as_ints(a[2], shape, MAX_NDIM) != nd + 2) fail(PyExc_RuntimeError, "conv_input_grad: x_shape does not fit g.");
    Window v = window_of(nd, shape, w.shape(), g.shape(), a + 3);
    return compute(g, w, v, nd, shape, false, true, [&](auto *p, auto *q, auto *o) { input_grad_of(v, p, q, o); }).release();
}

PyObject *weight_grad_body(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<7> N{"conv_weight_grad", {"g", "x", "w_shape", "stride", "padding", "dilation", "groups"}, 6};
    PyObject *a[7];
    arguments(N, args, n, names, a);
    Array &g = as_array(a[0]), &x = as_array(a[1]);
    if (!served(g, x)) return default_body();
    int nd = g.ndim - 2;
    int64_t shape[MAX_NDIM];
    if (as_ints(a[2], shape, MAX_NDIM) != nd + 2) fail(PyExc_RuntimeError, "conv_weight_grad: w_shape does not fit g.");
    Window v = window_of(nd, x.shape(), shape, g.shape(), a + 3);
    return compute(g, x, v, nd, shape, true, false, [&](auto *p, auto *q, auto *o) { weight_grad_of(v, p, q, o); }).release();
}

}  // namespace

const Method conv_methods[] = {
    MORTICE_KEEPING("partial_conv", conv_body, 5),
    MORTICE_KEEPING("partial_conv_input_grad", input_grad_body, 5),
    MORTICE_KEEPING("partial_conv_weight_grad", weight_grad_body, 5),
    {},
};

}  // namespace mortice
