#include "conv_plan.hpp"

#include <algorithm>

namespace mortice {

namespace {

constexpr int64_t COPY_BYTES = 384 << 10;  // of a task's part of the image: what stays in a second-level cache
constexpr int MOST_VECTORS = 8;
constexpr int64_t DENSE_VECTORS = 15;      // of gathered places: filters are read once for all of them
constexpr int64_t DEEPEST = 512;           // rows taken at once, as in the kernel
constexpr int64_t LONG_ROW = 400;          // bytes of a row of outputs

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t floor_mod(int64_t a, int64_t b) { return ((a % b) + b) % b; }

}  // namespace

template <class T>
void ConvPlanner<T>::phase(int64_t fy, int64_t fx, const std::vector<int64_t> *taps, const std::vector<int64_t> *index,
                           const std::vector<int64_t> *shift, int64_t count_y, int64_t count_x) {
    ConvPhase<T> p{};
    p.first_y = fy;
    p.first_x = fx;
    p.count_y = count_y;
    p.count_x = count_x;
    p.taps_count = static_cast<int64_t>(taps[0].size() * taps[1].size());
    p.depth = p.taps_count * plan.channels;
    phases_.push_back(p);
    for (int a = 0; a < 2; a++) {
        kept_[a].push_back(taps[a]);
        indices_[a].push_back(index[a]);
        shifts_[a].push_back(shift[a]);
    }
}

template <class T> void ConvPlanner<T>::forward() {
    const Window &w = w_;
    plan.samples = w.samples, plan.groups = w.groups, plan.channels = w.inputs, plan.outputs = w.outputs;
    std::copy_n(w.size, 3, plan.in);
    std::copy_n(w.count, 3, plan.size);
    int64_t taps = w.filter_taps();
    plan.weight_channel = taps, plan.weight_output = w.inputs * taps;
    plan.weight_group = w.outputs * plan.weight_output, plan.weight_slice = w.filter[1] * w.filter[2];
    plan.kernel_z = w.kernel[0];
    for (int64_t z = 0; z < w.count[0]; z++)
        for (int64_t k = 0; k < w.kernel[0]; k++) {
            int64_t at = z * w.stride[0] + k * w.dilation[0] - w.padding[0];
            z_.push_back(at >= 0 && at < w.size[0] ? at : -1);
        }
    std::vector<int64_t> own[2], index[2], shift[2];
    for (int a = 0; a < 2; a++) {
        plan.step[a] = w.stride[a + 1], plan.before[a] = w.padding[a + 1], plan.out_step[a] = 1;
        for (int64_t k = 0; k < w.kernel[a + 1]; k++) {
            int64_t reach = k * w.dilation[a + 1], residue = reach % plan.step[a];
            auto found = std::find(residues_[a].begin(), residues_[a].end(), residue);
            index[a].push_back(found - residues_[a].begin());
            if (found == residues_[a].end()) residues_[a].push_back(residue);
            shift[a].push_back(reach / plan.step[a]);
            own[a].push_back(k);
        }
    }
    phase(0, 0, own, index, shift, w.count[1], w.count[2]);
    bounds();
}

template <class T> void ConvPlanner<T>::backward() {
    const Window &w = w_;
    plan.samples = w.samples, plan.groups = w.groups, plan.channels = w.outputs, plan.outputs = w.inputs;
    std::copy_n(w.count, 3, plan.in);
    std::copy_n(w.size, 3, plan.size);
    int64_t taps = w.filter_taps();
    plan.weight_output = taps, plan.weight_channel = w.inputs * taps;
    plan.weight_group = w.outputs * plan.weight_channel, plan.weight_slice = w.filter[1] * w.filter[2];
    plan.kernel_z = w.kernel[0];
    for (int64_t z = 0; z < w.size[0]; z++)
        for (int64_t k = 0; k < w.kernel[0]; k++) {
            int64_t at = z + w.padding[0] - k * w.dilation[0];
            bool hit = at >= 0 && at % w.stride[0] == 0 && at / w.stride[0] < w.count[0];
            z_.push_back(hit ? at / w.stride[0] : -1);
        }
    std::vector<std::vector<int64_t>> own[2], shift[2];
    int64_t firsts[2];
    for (int a = 0; a < 2; a++) {
        int64_t s = w.stride[a + 1];
        plan.step[a] = 1, plan.out_step[a] = s;
        residues_[a].push_back(0);
        firsts[a] = std::min(s, w.size[a + 1]);
        for (int64_t f = 0; f < firsts[a]; f++) {
            own[a].emplace_back(), shift[a].emplace_back();
            for (int64_t k = 0; k < w.kernel[a + 1]; k++) {
                int64_t at = f + w.padding[a + 1] - k * w.dilation[a + 1];
                if (floor_mod(at, s)) continue;
                own[a].back().push_back(k);
                shift[a].back().push_back((at - floor_mod(at, s)) / s);
            }
        }
    }
    for (int64_t y = 0; y < firsts[0]; y++)
        for (int64_t x = 0; x < firsts[1]; x++) {
            std::vector<int64_t> taps_yx[2] = {own[0][y], own[1][x]}, shifts[2] = {shift[0][y], shift[1][x]};
            std::vector<int64_t> index[2] = {std::vector<int64_t>(taps_yx[0].size()), std::vector<int64_t>(taps_yx[1].size())};
            phase(y, x, taps_yx, index, shifts, divide_up(w.size[1] - y, w.stride[1]),
                  divide_up(w.size[2] - x, w.stride[2]));
        }
    bounds();
}

// The furthest that taps reach, counted from where windows start; the copy starts at the lowest.
template <class T> void ConvPlanner<T>::bounds() {
    for (int a = 0; a < 2; a++) {
        int64_t low = INT64_MAX, high = INT64_MIN;
        for (auto &shifts : shifts_[a])
            for (int64_t s : shifts) low = std::min(low, s), high = std::max(high, s);
        if (low > high) low = high = 0;
        for (auto &shifts : shifts_[a])
            for (int64_t &s : shifts) s -= low;
        plan.before[a] -= low * plan.step[a];
        highest_[a] = high - low;
        plan.residues[a] = static_cast<int64_t>(residues_[a].size());
        plan.residue[a] = residues_[a].data();
    }
    plan.z_source = z_.data();
    plan.staged = plan.kernel_z != 1;
    for (int a = 0; a < 2; a++) {
        int64_t count = 0;
        for (auto &p : phases_) count = std::max(count, a ? p.count_x : p.count_y);
        if (plan.step[a] != 1 || plan.before[a] || plan.residues[a] != 1 || count + highest_[a] > plan.in[a + 1])
            plan.staged = true;
    }
}

template <class T> int64_t ConvPlanner<T>::panel_rows() const {
    int64_t panel = conv_set<T>().panel, rest = plan.outputs % panel;
    return plan.outputs - rest + (rest > 4 ? panel : rest > 2 ? 4 : rest);
}

// With the bands known: the copy's layout, and where each tap is in it.
template <class T> void ConvPlanner<T>::lay_out() {
    int64_t lanes = conv_set<T>().lanes;
    plan.rows = plan.band[1] + highest_[0];
    plan.pitch = columns();
    plan.shared = 0;
    int64_t count_x = 0, count_y = 0;
    for (auto &p : phases_) count_x = std::max(count_x, p.count_x), count_y = std::max(count_y, p.count_y);
    if (plan.staged && plan.band[2] == count_x) {
        // Zeros after a row serve as those before the next one too.
        int64_t shared = highest_[1];  // rows stay as long as they have outputs
        for (int64_t r : residues_[1]) {
            int64_t q = plan.pitch, s = plan.step[1], before = plan.before[1];
            int64_t low = std::clamp<int64_t>(before > r ? divide_up(before - r, s) : 0, 0, q);
            int64_t end = plan.in[2] + before - r;
            int64_t high = std::clamp<int64_t>(end > 0 ? divide_up(end, s) : 0, low, q);
            shared = std::min({shared, low, q - high});
        }
        plan.shared = std::max<int64_t>(shared, 0);
        plan.pitch -= plan.shared;
    }
    int64_t residue_plane = plan.rows * plan.pitch;
    plan.plane = plan.residues[0] * plan.residues[1] * residue_plane;
    int64_t channel_step = plan.plane, row_step = plan.pitch;
    if (!plan.staged) {
        plan.pitch = row_step = plan.in[2];
        channel_step = plan.in[0] * plan.in[1] * plan.in[2];
    }
    for (int a = 0; a < 3; a++) {
        int64_t total = a == 0 ? plan.samples : a == 1 ? count_y : count_x;
        plan.bands[a] = divide_up(total, plan.band[a]);
    }
    offsets_.assign(phases_.size(), {});
    taps_.assign(phases_.size(), {});
    int64_t deepest = 0;
    for (size_t i = 0; i < phases_.size(); i++) {
        auto &p = phases_[i];
        deepest = std::max(deepest, p.depth);
        std::vector<int64_t> inner;
        for (size_t y = 0; y < kept_[0][i].size(); y++)
            for (size_t x = 0; x < kept_[1][i].size(); x++) {
                int64_t residue = indices_[0][i][y] * plan.residues[1] + indices_[1][i][x];
                inner.push_back(residue * residue_plane + shifts_[0][i][y] * row_step + shifts_[1][i][x]);
                taps_[i].push_back(kept_[0][i][y] * w_.filter[2] + kept_[1][i][x]);
            }
        offsets_[i].reserve(p.depth);
        for (int64_t c = 0; c < plan.channels; c++)
            for (int64_t o : inner) offsets_[i].push_back(c * channel_step + o);
        p.offsets = offsets_[i].data();
        p.taps = taps_[i].data();
    }
    plan.phases = phases_.data();
    plan.phases_count = static_cast<int64_t>(phases_.size());
    plan.panel_rows = panel_rows();
    int64_t slack = plan.shared + MOST_VECTORS * lanes;
    plan.copy_room = plan.staged ? plan.band[0] * plan.kernel_z * plan.channels * plan.plane + slack : 0;
    bool gathers = plan.dense || !plan.staged;
    // A tile is of as many places as the panels' rows leave registers for, of more where what comes in stays near for all panels:
    // then each of many outputs is written in long runs, unless rows that go out by themselves are short.
    const bool by_rows = plan.band[2] % lanes == 0 && (plan.out_step[1] != 1 || plan.band[2] != plan.size[2]);
    const bool short_rows = by_rows && plan.band[2] * static_cast<int64_t>(sizeof(T)) < LONG_ROW;
    const bool near = plan.dense || (deepest <= DEEPEST && plan.outputs > 2 && !short_rows);
    plan.tile = (near ? DENSE_VECTORS : plan.outputs >= conv_set<T>().panel ? 3 : plan.outputs > 2 ? 6 : MOST_VECTORS) * lanes;
    plan.pack_room = gathers ? (plan.dense ? std::min(deepest, DEEPEST) : deepest) * plan.tile + lanes : 0;
    plan.block_room = (plan.dense || deepest > DEEPEST ? plan.panel_rows : conv_set<T>().panel) * plan.tile + lanes;
    plan.block_room = divide_up(plan.block_room, 16) * 16;
    // Each room starts at a cache line.
    plan.copy_room = divide_up(plan.copy_room, 16) * 16;
    plan.pack_room = divide_up(plan.pack_room, 16) * 16;
}

template <class T> void ConvPlanner<T>::fit(int threads) {
    const int64_t lanes = conv_set<T>().lanes;
    int64_t count_y = 0, count_x = 0;
    for (auto &p : phases_) count_y = std::max(count_y, p.count_y), count_x = std::max(count_x, p.count_x);
    int64_t planes = plan.kernel_z * plan.channels * plan.residues[0] * plan.residues[1];
    int64_t room = std::max<int64_t>(COPY_BYTES / static_cast<int64_t>(sizeof(T)) / planes, 1);  // elements of a plane
    int64_t *band = plan.band;
    band[0] = 1, band[1] = count_y, band[2] = count_x;
    if (count_y == 1) {
        if (count_x + highest_[1] > room) band[2] = std::max(room - highest_[1], 16 * lanes);
    } else if ((count_y + highest_[0]) * (count_x + highest_[1]) > room) {
        int64_t rows = room / (count_x + highest_[1]) - highest_[0];
        band[1] = std::max({rows, highest_[0], int64_t{1}});
    }
    // Enough tasks for all threads, as long as there are some rows in each.
    auto shrink = [&](int64_t &own, int64_t count, int64_t least) {
        int64_t others = plan.samples * plan.groups * plan.size[0];
        int64_t wanted = divide_up(4 * threads, std::max<int64_t>(others, 1));
        if (threads > 1 && divide_up(count, own) < wanted) own = std::max(divide_up(count, wanted), std::min(least, own));
    };
    if (count_y == 1)
        shrink(band[2], count_x, 4 * lanes);
    else
        shrink(band[1], count_y, std::max<int64_t>(2, divide_up(lanes, count_x)));
    band[1] = std::min(band[1], count_y);
    band[2] = std::min(band[2], count_x);
    // Even parts.
    band[1] = divide_up(count_y, divide_up(count_y, band[1]));

    // In place, places between the rows are computed for nothing; gathered, windows are copied.
    lay_out();
    double rows = static_cast<double>(band[1]), useful = rows * band[2];
    double line = (rows - 1) * plan.pitch + band[2];
    bool by_rows = band[2] % lanes == 0 && band[2] != plan.pitch;
    double in_place = by_rows ? 1 : divide_up(static_cast<int64_t>(line), lanes) * lanes / useful;
    int64_t together = 1;
    if (band[1] == count_y && useful < 12 * lanes) {
        // As many samples as make about a tile, such that few places of the last vector are left over.
        int64_t fits = std::max<int64_t>(1, 2 * room / (plan.rows * plan.pitch));
        int64_t share = std::max<int64_t>(1, plan.samples * plan.groups / (2 * threads));
        int64_t most = std::min({plan.samples, DENSE_VECTORS * lanes / static_cast<int64_t>(useful), fits, share});
        double best = 0;
        for (int64_t n = 1; n <= most; n++) {
            int64_t own = n * static_cast<int64_t>(useful);
            double full = static_cast<double>(own) / static_cast<double>(divide_up(own, lanes) * lanes);
            if (full >= best - 0.02) best = std::max(best, full), together = n;
        }
    }
    double runs = plan.pitch == band[2] && band[1] > 1 && band[2] == count_x ? 1 : std::max(1.0, double(lanes) / band[2]);
    double places = useful * together;
    double gathered = divide_up(static_cast<int64_t>(places), lanes) * lanes / places;
    gathered *= 1 + (0.5 + runs) * 1.2 / plan.panel_rows;
    plan.dense = gathered < 0.98 * in_place;
    // Planes a power of two apart would share a few sets of the caches.
    if (!plan.staged && plan.in[0] * plan.in[1] * plan.in[2] * sizeof(T) % 2048 == 0 && plan.outputs > 8) plan.dense = true;
    if (plan.dense) band[0] = together;
    lay_out();
}

// Rectangles of about `places` outputs, of whole units of rows; `single` keeps samples apart.
template <class T> void ConvPlanner<T>::fit_sums(int64_t places, bool single, int64_t unit) {
    int64_t *band = plan.band, count_y = plan.size[1], count_x = plan.size[2];
    band[2] = count_x <= 2 * places ? count_x : places;
    band[1] = std::clamp<int64_t>(places / band[2], 1, count_y);
    band[0] = 1;
    if (band[1] == count_y && !single) band[0] = std::clamp<int64_t>(places / (count_x * count_y), 1, plan.samples);
    band[1] = divide_up(divide_up(count_y, divide_up(count_y, band[1])), unit) * unit;
    plan.staged = plan.staged || single;
    plan.dense = true;
    lay_out();
}

template <class T> int64_t ConvPlanner<T>::tasks() const {
    return plan.bands[0] * plan.bands[1] * plan.bands[2] * plan.groups * plan.size[0];
}

template <class T> int64_t ConvPlanner<T>::filters() const {
    int64_t total = 0;
    for (auto &p : phases_) total += plan.groups * plan.kernel_z * plan.panel_rows * p.depth + 16;
    return total;
}

template <class T> void ConvPlanner<T>::place_filters(T *at) {
    for (auto &p : phases_) {
        p.filters = at;
        at += divide_up(plan.groups * plan.kernel_z * plan.panel_rows * p.depth, 16) * 16;
    }
}

template <class T> int64_t ConvPlanner<T>::task_room() const {
    int64_t deepest = 0;
    for (auto &p : phases_) deepest = std::max(deepest, p.depth);
    int64_t offsets = deepest * static_cast<int64_t>(sizeof(int64_t) / sizeof(T));
    return divide_up(plan.copy_room + plan.pack_room + plan.block_room + offsets, 16) * 16;
}

template <class T> double ConvPlanner<T>::task_work() const {
    double depth = 0;
    for (auto &p : phases_) depth += static_cast<double>(p.depth);
    double places = static_cast<double>(plan.band[0]) * plan.band[1] * plan.band[2];
    return places * (plan.panel_rows * depth * plan.kernel_z + 8.0 * plan.channels + 8.0 * plan.outputs);
}

template class ConvPlanner<float>;
template class ConvPlanner<double>;

}  // namespace mortice
