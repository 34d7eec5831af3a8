// Resampling and its gradient.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "families.hpp"
#include "kernels/resize.hpp"
#include "kernels/transpose.hpp"
#include "parallel.hpp"
#include "sliding.hpp"

namespace mortice {

namespace {

template <class T> const ResizeSet<T> &resize_set();
template <> const ResizeSet<float> &resize_set<float>() { return resize().f32; }
template <> const ResizeSet<double> &resize_set<double>() { return resize().f64; }

enum Mode { NEAREST, NEAREST_EXACT, LINEAR, CUBIC, LANCZOS, OTHER };

Mode mode_of(PyObject *name) {
    const char *text = PyUnicode_AsUTF8(name);
    if (!text) throw Failed{};
    if (!strcmp(text, "nearest")) return NEAREST;
    if (!strcmp(text, "nearest-exact")) return NEAREST_EXACT;
    if (!strcmp(text, "linear")) return LINEAR;
    if (!strcmp(text, "cubic")) return CUBIC;
    return strcmp(text, "lanczos") ? OTHER : LANCZOS;
}

// What an axis is resampled by. An empty one stays as it is.
template <class T> struct Taps {
    int64_t taps = 0;
    std::vector<int32_t> at;
    std::vector<T> weight;
};

template <class T> T cubic(T x, T a, bool inner) {
    return inner ? ((a + 2) * x - (a + 3)) * x * x + 1 : ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

// The rules of the default body, in the precision that it computes places in.
template <class T> Taps<T> taps_of(int64_t n, int64_t m, Mode mode, bool align, double scale) {
    Taps<T> taps;
    if (m == n && (mode == LINEAR || scale == 0)) return taps;
    double ratio = scale == 0 ? static_cast<double>(n) / static_cast<double>(m) : 1 / scale;
    bool nearest = mode == NEAREST || mode == NEAREST_EXACT;
    taps.taps = nearest ? 1 : mode == LINEAR ? 2 : 4;
    taps.at.resize(taps.taps * m);
    taps.weight.resize(taps.taps * m);
    auto put = [&](int64_t t, int64_t i, int64_t at, T weight) {
        taps.at[t * m + i] = static_cast<int32_t>(std::clamp<int64_t>(at, 0, n - 1));
        taps.weight[t * m + i] = weight;
    };
    for (int64_t i = 0; i < m; i++) {
        if (nearest) {
            float place = static_cast<float>(i);
            if (mode == NEAREST_EXACT) place += 0.5f;
            place *= static_cast<float>(ratio);
            put(0, i, static_cast<int64_t>(std::floor(std::min(place, static_cast<float>(n)))), T(1));
            continue;
        }
        T place = align ? static_cast<T>(i) * static_cast<T>(m > 1 ? static_cast<double>(n - 1) / static_cast<double>(m - 1) : 0.0)
                        : (static_cast<T>(i) + T(0.5)) * static_cast<T>(ratio) - T(0.5);
        if (mode == LINEAR) place = std::max(place, T(0));
        int64_t low = static_cast<int64_t>(std::floor(std::min(place, static_cast<T>(n - 1))));
        T past = std::clamp(place - static_cast<T>(low), T(0), T(1));
        if (mode == LINEAR) {
            put(0, i, low, 1 - past);
            put(1, i, low + 1, past);
        } else {
            for (int t = 0; t < 4; t++)
                put(t, i, low + t - 1, cubic(std::abs(past - static_cast<T>(t - 1)), T(-0.75), t == 1 || t == 2));
        }
    }
    return taps;
}

template <class T> T filter(Mode mode, T x) {
    if (mode == LINEAR) return std::max(1 - x, T(0));
    if (mode == CUBIC) return x < 1 ? cubic(x, T(-0.5), true) : x < 2 ? cubic(x, T(-0.5), false) : T(0);
    T angle = std::max(x * static_cast<T>(M_PI), T(1e-7));  // sin(x) / x is 1 there already
    return x < 3 ? 3 * std::sin(angle) * std::sin(angle / 3) / (angle * angle) : T(0);
}

// The filter is as wide as the inputs under one output.
template <class T> Taps<T> antialias_taps(int64_t n, int64_t m, Mode mode, bool align, double scale) {
    Taps<T> taps;
    if (n == m) return taps;
    double ratio = align ? (m > 1 ? static_cast<double>(n - 1) / static_cast<double>(m - 1) : 0.0)
                   : scale == 0 ? static_cast<double>(n) / static_cast<double>(m) : 1 / scale;
    double radius = mode == LINEAR ? 1 : mode == CUBIC ? 2 : 3, support = ratio >= 1 ? radius * ratio : radius, squeeze = ratio >= 1 ? 1 / ratio : 1;
    std::vector<int64_t> first(m), last(m);
    for (int64_t i = 0; i < m; i++) {
        T center = (static_cast<T>(i) + T(0.5)) * static_cast<T>(ratio);
        first[i] = std::clamp<int64_t>(static_cast<int64_t>(std::floor(center + static_cast<T>(0.5 - support))), 0, n);
        last[i] = std::clamp<int64_t>(static_cast<int64_t>(std::floor(center + static_cast<T>(0.5 + support))), first[i], n);
        taps.taps = std::max(taps.taps, last[i] - first[i]);
    }
    if (taps.taps == 0) taps.taps = 1;
    taps.at.assign(taps.taps * m, 0);
    taps.weight.assign(taps.taps * m, T(0));
    for (int64_t i = 0; i < m; i++) {
        T center = (static_cast<T>(i) + T(0.5)) * static_cast<T>(ratio), total = 0;
        for (int64_t j = first[i]; j < last[i]; j++) {
            T d = std::abs((static_cast<T>(j) + T(0.5) - center) * static_cast<T>(squeeze));
            T w = filter(mode, d);
            taps.at[(j - first[i]) * m + i] = static_cast<int32_t>(j);
            taps.weight[(j - first[i]) * m + i] = w;
            total += w;
        }
        for (int64_t t = 0; t < taps.taps; t++) {
            if (t >= last[i] - first[i]) taps.at[t * m + i] = static_cast<int32_t>(std::min(first[i], n - 1));
            taps.weight[t * m + i] /= total;
        }
    }
    return taps;
}

// The adjoint: for each input the outputs that it is in.
template <class T> Taps<T> turned(const Taps<T> &taps, int64_t n, int64_t m) {
    Taps<T> back;
    if (!taps.taps) return back;
    std::vector<int64_t> used(n, 0);
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t t = 0; t < taps.taps; t++)
            for (int64_t i = 0; i < m; i++) {
                int64_t at = taps.at[t * m + i];
                if (taps.weight[t * m + i] == T(0) && taps.taps > 1) continue;
                if (pass) {
                    back.at[used[at] * n + at] = static_cast<int32_t>(i);
                    back.weight[used[at] * n + at] = taps.weight[t * m + i];
                }
                used[at]++;
            }
        if (pass) break;
        back.taps = std::max<int64_t>(1, *std::max_element(used.begin(), used.end()));
        back.at.assign(back.taps * n, 0);
        back.weight.assign(back.taps * n, T(0));
        std::fill(used.begin(), used.end(), 0);
    }
    // Unused places read what is read anyway.
    for (int64_t i = 0; i < n; i++)
        for (int64_t t = used[i]; t < back.taps; t++) back.at[t * n + i] = used[i] ? back.at[i] : 0;
    return back;
}

struct Request {
    int nd;
    int64_t size[3], count[3];  // of the input and the output of the map, not of its adjoint
    double scale[3];            // 0 for none
    Mode mode;
    bool align, antialias;
};

template <class T> void resample(const Request &r, bool grad, const T *from, T *out, int64_t planes) {
    const ResizeSet<T> &set = resize_set<T>();
    ResizePlan<T> p{};
    p.from = from, p.out = out, p.planes = planes;
    Taps<T> taps[3];
    for (int i = 0; i < 3; i++) {
        int64_t n = r.size[i], m = r.count[i];
        if (i >= 3 - r.nd)
            taps[i] = r.antialias ? antialias_taps<T>(n, m, r.mode, r.align, r.scale[i]) : taps_of<T>(n, m, r.mode, r.align, r.scale[i]);
        if (grad) taps[i] = turned(taps[i], n, m), std::swap(n, m);
        p.axis[i] = {n, m, taps[i].taps, taps[i].at.data(), taps[i].weight.data()};
    }
    const ResizeAxis<T> &a = p.axis[2];
    std::vector<uint8_t> narrow(a.count / set.lanes + 1, 0);
    for (int64_t i = 0; a.taps && a.size >= 2 * set.lanes && i + set.lanes <= a.count; i += set.lanes) {
        bool fits = true;
        for (int64_t t = 0; t < a.taps && fits; t++) {
            const int32_t *at = a.at + t * a.count + i;
            int64_t first = std::min<int64_t>(at[0], a.size - 2 * set.lanes);
            for (int64_t j = 0; j < set.lanes && fits; j++) fits = at[j] >= first && at[j] < first + 2 * set.lanes;
        }
        narrow[i / set.lanes] = fits;
    }
    p.narrow = narrow.data();
    int64_t room = (a.size + 31) / 16 * 16, tasks = planes * p.axis[0].count;
    Scratch<T> rooms(room * num_threads());
    double rows = std::max<int64_t>(1, p.axis[0].taps) * std::max<int64_t>(1, p.axis[1].taps);
    double work = p.axis[1].count * (a.size * rows / 8 + a.count * (1.0 + static_cast<double>(a.taps) / 2));
    Unlocked free(static_cast<int64_t>(std::min(work * static_cast<double>(tasks), 1e15)));
    parallel_for(tasks, std::max<int64_t>(1, static_cast<int64_t>(65536 / std::max(work, 1.0))), [&](int64_t begin, int64_t end) {
        T *own = rooms + room * thread_number();
        for (int64_t i = begin; i < end; i++) set.run(p, own, i);
    });
}

// Weights as whole numbers of 2^-bits: as many bits as the largest leaves room for in an int16. Those of one position are added
// first.
int whole_weights(Taps<double> &taps, int64_t m, std::vector<int32_t> &weight) {
    double largest = 0;
    int bits = 0;
    for (int64_t i = 0; i < m; i++)
        for (int64_t t = 0; t < taps.taps; t++) {
            double &w = taps.weight[t * m + i];
            if (t && taps.at[t * m + i] == taps.at[(t - 1) * m + i]) w += std::exchange(taps.weight[(t - 1) * m + i], 0.0);
            largest = std::max(largest, w);
        }
    while (bits < 22 && static_cast<int>(0.5 + largest * (2 << bits)) < 1 << 15) bits++;
    for (double w : taps.weight) weight.push_back(static_cast<int32_t>(w * (1 << bits) + (w < 0 ? -0.5 : 0.5)));
    return bits;
}

// Sum rows, or, along the last axis, rows of blocks that are turned.
void sum_bytes(const uint8_t *from, uint8_t *to, int64_t planes, int64_t n, int64_t m, int64_t width, bool last, const Taps<double> &taps,
               const int32_t *weight, int bits) {
    constexpr int64_t BLOCK = 192;
    auto row = [&](int64_t j, const uint8_t *rows, uint8_t *into, int64_t size) {
        resize().bytes(taps.at.data() + j, weight + j, taps.taps, m, bits, rows, into, size);
    };
    Unlocked free(planes * m * width * taps.taps / 16);
    if (!last) {
        parallel_for(planes * m, std::max<int64_t>(1, 65536 / (width * taps.taps)), [&](int64_t begin, int64_t end) {
            for (int64_t j = begin; j < end; j++) row(j % m, from + j / m * n * width, to + j * width, width);
        });
        return;
    }
    Transpose turn = transpose().bytes1;
    Scratch<char> rooms((n + m) * BLOCK * num_threads());
    parallel_for((planes + BLOCK - 1) / BLOCK, std::max<int64_t>(1, 65536 / (BLOCK * (n + m))), [&](int64_t begin, int64_t end) {
        char *columns = rooms + (n + m) * BLOCK * thread_number(), *found = columns + n * BLOCK;
        for (int64_t first = begin * BLOCK; first < std::min(planes, end * BLOCK); first += BLOCK) {
            int64_t size = std::min(BLOCK, planes - first);
            turn(columns, size, reinterpret_cast<const char *>(from) + first * n, n, n, size);
            for (int64_t j = 0; j < m; j++)
                row(j, reinterpret_cast<uint8_t *>(columns), reinterpret_cast<uint8_t *>(found) + j * size, size);
            turn(reinterpret_cast<char *>(to) + first * m, m, found, size, size, m);
        }
    });
}

// Like PyTorch, bytes are rounded after each axis, the last axis first.
Ref resample_bytes(const Request &r, Array &given) {
    Ref x = contiguous(given);
    int64_t shape[MAX_NDIM];
    std::copy_n(given.shape(), given.ndim, shape);
    for (int axis = given.ndim - 1, i = 2; i > 2 - r.nd; axis--, i--) {
        int64_t n = r.size[i], m = r.count[i], planes = 1, width = 1;
        if (n == m) continue;
        Taps<double> taps = r.antialias ? antialias_taps<double>(n, m, r.mode, r.align, r.scale[i]) : taps_of<double>(n, m, r.mode, r.align, r.scale[i]);
        std::vector<int32_t> weight;
        int bits = whole_weights(taps, m, weight);
        for (int j = 0; j < given.ndim; j++) (j < axis ? planes : width) *= j == axis ? 1 : shape[j];
        shape[axis] = m;
        Ref out = make(U8, given.ndim, shape);
        sum_bytes(x->as<uint8_t>(), out->as<uint8_t>(), planes, n, m, width, i == 2, taps, weight.data(), bits);
        x = std::move(out);
    }
    return x.get() == &given ? copied(given) : std::move(x);
}

// The nearest elements of any dtype: nothing but copies.
template <class T> void copy_nearest(const Request &r, const char *given, char *result, int64_t planes) {
    Taps<float> taps[3];
    std::vector<int64_t> at[3];
    for (int i = 0; i < 3; i++) {
        if (i >= 3 - r.nd) taps[i] = taps_of<float>(r.size[i], r.count[i], r.mode, false, r.scale[i]);
        for (int64_t j = 0; j < r.count[i]; j++) at[i].push_back(taps[i].taps ? taps[i].at[j] : j);
    }
    const T *from = reinterpret_cast<const T *>(given);
    T *out = reinterpret_cast<T *>(result);
    int64_t width = r.count[2], rows = r.count[1], tasks = planes * r.count[0];
    bool twice = width == 2 * r.size[2];
    for (int64_t j = 0; twice && j < width; j++) twice = at[2][j] == j / 2;
    Unlocked free(tasks * rows * width);
    parallel_for(tasks, std::max<int64_t>(1, 32768 / (rows * width)), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) {
            const T *slice = from + (i / r.count[0] * r.size[0] + at[0][i % r.count[0]]) * r.size[1] * r.size[2];
            T *to = out + i * rows * width;
            for (int64_t y = 0; y < rows; y++, to += width) {
                const T *row = slice + at[1][y] * r.size[2];
                if (y && at[1][y] == at[1][y - 1])
                    copy_bytes(to, to - width, width * sizeof(T));
                else if (twice)
                    for (int64_t x = 0; x < r.size[2]; x++) to[2 * x] = to[2 * x + 1] = row[x];
                else
                    for (int64_t x = 0; x < width; x++) to[x] = row[at[2][x]];
            }
        }
    });
}

// Reads mode, align_corners, scales, antialias; false where the default body has to serve.
bool read_request(Request &r, PyObject *const *settings) {
    r.mode = mode_of(settings[0]);
    r.align = as_bool(settings[1]);
    r.antialias = as_bool(settings[3]);
    if (r.mode == OTHER || (r.antialias ? r.mode < LINEAR : r.mode == LANCZOS)) return false;
    for (int i = 0; i < 3; i++) {
        r.scale[i] = 0;
        if (r.size[i] < 1 || r.count[i] < 1 || r.size[i] > (1 << 24) || r.count[i] > (1 << 24)) return false;
    }
    if (!settings[2] || settings[2] == Py_None) return true;
    Own<PyObject> scales(PySequence_Tuple(settings[2]));
    if (!scales) throw Failed{};
    if (PyTuple_GET_SIZE(scales.get()) != r.nd) fail(PyExc_RuntimeError, "interpolate: expected a scale for each axis.");
    for (int i = 0; i < r.nd; i++) {
        PyObject *own = PyTuple_GET_ITEM(scales.get(), i);
        int64_t n = r.size[3 - r.nd + i], m = r.count[3 - r.nd + i];
        if (own == Py_None || (r.mode == NEAREST && r.nd == 2 && (m == n || m == 2 * n))) continue;
        r.scale[3 - r.nd + i] = as_double(own);
        if (!std::isfinite(r.scale[3 - r.nd + i]) || r.scale[3 - r.nd + i] <= 0) return false;
    }
    return true;
}

Ref resample_array(const Request &r, bool grad, Array &given, int ndim, const int64_t *shape) {
    DType wide = is_half(given.dtype) ? F32 : given.dtype;
    Ref x = converted(given, wide);
    x = contiguous(*x);
    Ref out = make(wide, ndim, shape);
    int64_t planes = 1;
    for (int i = 0; i < ndim - r.nd; i++) planes *= shape[i];
    if (wide == F32) resample<float>(r, grad, x->as<float>(), out->as<float>(), planes);
    else resample<double>(r, grad, x->as<double>(), out->as<double>(), planes);
    return wide == given.dtype ? std::move(out) : converted(*out, given.dtype);
}

PyObject *interpolate_body(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<6> N{"interpolate", {"x", "size", "mode", "align_corners", "scales", "antialias"}, 3};
    PyObject *a[6];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    int64_t size[MAX_NDIM], shape[MAX_NDIM];
    Request r{};
    r.nd = as_ints(a[1], size, MAX_NDIM);
    if (r.nd < 1 || r.nd > 3 || r.nd > x.ndim) return default_body();
    for (int i = 0; i < 3; i++) {
        int j = i - (3 - r.nd);
        r.size[i] = j < 0 ? 1 : x.shape()[x.ndim - r.nd + j];
        r.count[i] = j < 0 ? 1 : size[j];
    }
    if (!read_request(r, a + 2) || x.size == 0) return default_body();
    for (int i = 0; i < x.ndim; i++) shape[i] = i < x.ndim - r.nd ? x.shape()[i] : size[i - (x.ndim - r.nd)];
    if (r.mode != NEAREST && r.mode != NEAREST_EXACT) {
        if (x.dtype == U8) return resample_bytes(r, x).release();
        if (!is_float(x.dtype)) return default_body();
        return resample_array(r, false, x, x.ndim, shape).release();
    }
    Ref from = contiguous(x), out = make(x.dtype, x.ndim, shape);
    int64_t planes = 1;
    for (int i = 0; i < x.ndim - r.nd; i++) planes *= shape[i];
    by_width(x.itemsize(), [&](auto kind) { copy_nearest<decltype(kind)>(r, from->data, out->data, planes); });
    return out.release();
}

PyObject *interpolate_grad_body(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<6> N{"interpolate_grad", {"g", "x_shape", "mode", "align_corners", "scales", "antialias"}, 3};
    PyObject *a[6];
    arguments(N, args, n, names, a);
    Array &g = as_array(a[0]);
    int64_t shape[MAX_NDIM];
    Request r{};
    int ndim = as_ints(a[1], shape, MAX_NDIM);
    r.nd = ndim - 2;
    if (r.nd < 1 || r.nd > 3 || !is_float(g.dtype) || g.size == 0) return default_body();
    if (g.ndim != ndim || g.shape()[0] != shape[0] || g.shape()[1] != shape[1])
        fail(PyExc_RuntimeError, "interpolate_grad: the gradient does not fit the input's shape.");
    for (int i = 0; i < 3; i++) {
        int j = i - (3 - r.nd) + 2;
        r.size[i] = j < 2 ? 1 : shape[j];
        r.count[i] = j < 2 ? 1 : g.shape()[j];
    }
    if (!read_request(r, a + 2)) return default_body();
    return resample_array(r, true, g, ndim, shape).release();
}

}  // namespace

const Method resize_methods[] = {
    MORTICE_KEEPING("partial_interpolate", interpolate_body, 5),
    MORTICE_KEEPING("partial_interpolate_grad", interpolate_grad_body, 5),
    MORTICE_METHOD("partial_unfold", unfold_body),
    MORTICE_METHOD("partial_fold", fold_body),
    MORTICE_KEEPING("partial_pad_border", pad_border_body, 5),
    MORTICE_KEEPING("partial_pad_border_grad", pad_border_grad_body, 5),
    {},
};

}  // namespace mortice
