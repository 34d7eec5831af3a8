// Pooling: maximum with places, average, both with windows fitted to an output size, and their gradients.
#include <algorithm>
#include <atomic>
#include <vector>

#include "families.hpp"
#include "kernels/pool.hpp"
#include "parallel.hpp"

namespace mortice {

namespace {

template <class T> const PoolSet<T> &pool_set();
template <> const PoolSet<float> &pool_set<float>() { return pool().f32; }
template <> const PoolSet<double> &pool_set<double>() { return pool().f64; }

// ---- arguments ----

struct Settings {
    int nd;
    PoolAxis axis[3];
    std::vector<int64_t> start[3], end[3];
};

void read_axes(PyObject *value, int nd, int64_t PoolAxis::*field, int64_t least, Settings &s, const char *name) {
    int64_t given[MAX_NDIM];
    if (as_ints(value, given, MAX_NDIM) != nd) fail(PyExc_RuntimeError, "pool: expected %s to have %d entries.", name, nd);
    for (int i = 0; i < nd; i++) {
        if (given[i] < least || given[i] > INT32_MAX)
            fail(PyExc_RuntimeError, "pool: expected %s of at least %lld; got %lld.", name, (long long)least, (long long)given[i]);
        s.axis[3 - nd + i].*field = given[i];
    }
}

// How many windows there are; see pool_count of the default bodies.
int64_t pool_count(const PoolAxis &a, bool ceil) {
    int64_t reach = a.size + 2 * a.padding - a.dilation * (a.kernel - 1) - 1 + (ceil ? a.stride - 1 : 0);
    if (reach < 0) return 0;
    int64_t count = reach / a.stride + 1;
    return ceil && (count - 1) * a.stride >= a.size + a.padding ? count - 1 : count;
}

// Sizes are the last axes of `shape`; kernel, stride, padding, dilation, ceil_mode as the kernels get them.
void read_windows(Settings &s, int ndim, const int64_t *shape, PyObject *kernel, PyObject *stride, PyObject *padding,
                  PyObject *dilation, PyObject *ceil) {
    int64_t given[MAX_NDIM];
    s.nd = as_ints(kernel, given, MAX_NDIM);
    if (s.nd < 1 || s.nd > 3 || s.nd > ndim) fail(PyExc_RuntimeError, "pool: expected one to three axes; got %d.", s.nd);
    for (int i = 0; i < 3; i++) s.axis[i] = {1, 1, 1, 1, 0, 1, nullptr, nullptr};
    read_axes(kernel, s.nd, &PoolAxis::kernel, 1, s, "kernel");
    read_axes(stride, s.nd, &PoolAxis::stride, 1, s, "stride");
    read_axes(padding, s.nd, &PoolAxis::padding, 0, s, "padding");
    if (dilation) read_axes(dilation, s.nd, &PoolAxis::dilation, 1, s, "dilation");
    for (int i = 3 - s.nd; i < 3; i++) {
        s.axis[i].size = shape[ndim - 3 + i];
        s.axis[i].count = pool_count(s.axis[i], as_bool(ceil));
    }
}

void read_parts(Settings &s, int ndim, const int64_t *shape, PyObject *output_size) {
    int64_t given[MAX_NDIM];
    s.nd = as_ints(output_size, given, MAX_NDIM);
    if (s.nd < 1 || s.nd > 3 || s.nd > ndim) fail(PyExc_RuntimeError, "pool: expected one to three axes; got %d.", s.nd);
    for (int i = 0; i < 3; i++) {
        s.axis[i] = {1, 1, 1, 1, 0, 1, nullptr, nullptr};
        if (i < 3 - s.nd) continue;
        s.axis[i].size = shape[ndim - 3 + i];
        s.axis[i].count = given[i - (3 - s.nd)];
        if (s.axis[i].count < 0) fail(PyExc_RuntimeError, "pool: expected sizes of at least 0; got %lld.", (long long)s.axis[i].count);
    }
}

// What each window sees, cut to the input; or each part of an axis cut into `count`.
void list_windows(Settings &s, bool parts) {
    for (int i = 0; i < 3; i++) {
        PoolAxis &a = s.axis[i];
        s.start[i].resize(a.count);
        s.end[i].resize(a.count);
        for (int64_t j = 0; j < a.count; j++) {
            int64_t low = parts ? j * a.size / a.count : j * a.stride - a.padding;
            int64_t high = parts ? ((j + 1) * a.size + a.count - 1) / a.count : low + a.kernel;
            s.start[i][j] = std::clamp<int64_t>(low, 0, a.size);
            s.end[i][j] = std::clamp<int64_t>(high, s.start[i][j], a.size);
        }
        a.start = s.start[i].data();
        a.end = s.end[i].data();
    }
}

int64_t outer(const Array &x, int nd) {
    int64_t n = 1;
    for (int i = 0; i < x.ndim - nd; i++) n *= x.shape()[i];
    return n;
}

Ref make_pooled(const Array &x, const Settings &s, DType dtype) {
    int64_t shape[MAX_NDIM];
    std::copy_n(x.shape(), x.ndim, shape);
    for (int i = 0; i < s.nd; i++) shape[x.ndim - s.nd + i] = s.axis[3 - s.nd + i].count;
    return make(dtype, x.ndim, shape);
}

int64_t grain_for(double work) { return std::max<int64_t>(1, static_cast<int64_t>(65536 / std::max(work, 1.0))); }

// ---- maximum ----

template <class T> void max_float(const Settings &s, const Array &x, Array &out, int64_t *at) {
    const PoolSet<T> &set = pool_set<T>();
    PoolPlan<T> p{};
    std::copy_n(s.axis, 3, p.axis);
    p.from = x.as<T>(), p.out = out.as<T>(), p.at = at;
    p.planes = outer(x, s.nd);
    const PoolAxis &az = s.axis[0], &ay = s.axis[1], &ax = s.axis[2];
    int64_t reach = ax.dilation * (ax.kernel - 1), residues = std::min(ax.stride, reach + 1);
    p.pitch = (ax.count + reach / ax.stride + set.lanes - 1) / set.lanes * set.lanes + set.lanes;
    int64_t rows = std::max<int64_t>(1, (1 << 14) / (az.kernel * residues * p.pitch));  // of the copy: a first-level cache
    p.band = std::clamp<int64_t>((rows - ay.dilation * (ay.kernel - 1)) / ay.stride, 1, ay.count);
    p.bands = (ay.count + p.band - 1) / p.band;
    p.room = az.kernel * ((p.band - 1) * ay.stride + ay.dilation * (ay.kernel - 1) + 1) * residues * p.pitch + 2 * set.lanes;
    int64_t tasks = p.planes * az.count * p.bands;
    double work = static_cast<double>(p.band) * ax.count * (az.kernel * ay.kernel * ax.kernel + 4) / 4;
    Scratch<T> rooms(p.room * num_threads());
    Unlocked free(out.size * 4);
    parallel_for(tasks, grain_for(work), [&](int64_t begin, int64_t end) {
        T *own = rooms + p.room * thread_number();
        for (int64_t i = begin; i < end; i++) set.max(p, own, i);
    });
}

// One window at a time: integers, and windows fitted to an output size.
// What a window has along an axis: where it begins, the step from one element to the next, and how many there are.
struct Seen {
    int64_t first, step, count;
    void cut(int64_t size) {  // what lies outside; there may be nothing left
        for (; count > 0 && first < 0; count--) first += step;
        if (count > 0) count = std::min(count, (size - first + step - 1) / step);
    }
};
Seen seen(const PoolAxis &a, bool parts, int64_t i) {
    if (!parts) return {i * a.stride - a.padding, a.dilation, a.kernel};
    const int64_t first = i * a.size / a.count;
    return {first, a.dilation, ((i + 1) * a.size + a.count - 1) / a.count - first};
}

// Write the largest elements of a row of windows of a plane, and their places where wanted; a nan is the largest.
template <class T>
void largest(const Settings &s, bool parts, Seen along_z, Seen along_y, const char *plane, char *to, int64_t *at) {
    const int64_t depth = s.axis[0].size, height = s.axis[1].size, width = s.axis[2].size;
    const T *from = reinterpret_cast<const T *>(plane);
    const int64_t line = (std::clamp<int64_t>(along_z.first, 0, depth - 1) * height + std::clamp<int64_t>(along_y.first, 0, height - 1)) * width;
    along_z.cut(depth), along_y.cut(height);
    for (int64_t j = 0; j < s.axis[2].count; j++) {
        Seen along_x = seen(s.axis[2], parts, j);
        int64_t place = line + std::clamp<int64_t>(along_x.first, 0, width - 1);
        along_x.cut(width);
        if (along_z.count > 0 && along_y.count > 0 && along_x.count > 0) place = (along_z.first * height + along_y.first) * width + along_x.first;
        T best = from[place];
        for (int64_t k = 0, z = along_z.first; k < along_z.count; k++, z += along_z.step)
            for (int64_t l = 0, y = along_y.first; l < along_y.count; l++, y += along_y.step) {
                int64_t own = (z * height + y) * width + along_x.first;
                for (int64_t m = 0; m < along_x.count; m++, own += along_x.step) {
                    const T v = from[own];
                    if (v > best || v != v) best = v, place = own;
                }
            }
        reinterpret_cast<T *>(to)[j] = best;
        if (at) at[j] = place;
    }
}

using Largest = void (*)(const Settings &, bool, Seen, Seen, const char *, char *, int64_t *);
Largest largest_of(DType d) {
    switch (d) {
#define CASE(D, T) case D: return largest<T>;
        CASE(U8, uint8_t) CASE(U16, uint16_t) CASE(U32, uint32_t) CASE(U64, uint64_t) CASE(I8, int8_t) CASE(I16, int16_t)
        CASE(I32, int32_t) CASE(I64, int64_t) CASE(F32, float) CASE(F64, double)
#undef CASE
        default: fail(PyExc_RuntimeError, "max_pool: dtype %s is not served.", DTYPE_NAMES[d]);
    }
}

void max_by_window(const Settings &s, bool parts, const Array &x, Array &out, int64_t *at) {
    const PoolAxis &az = s.axis[0], &ay = s.axis[1], &ax = s.axis[2];
    const Largest find = largest_of(x.dtype);
    const int64_t volume = az.size * ay.size * ax.size, area = az.count * ay.count * ax.count, size = x.itemsize();
    Unlocked free(x.size * 2);
    parallel_for(outer(x, s.nd) * az.count * ay.count, grain_for(4.0 * ax.count * volume / std::max<int64_t>(area, 1)),
                 [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) {
            const int64_t y = i % ay.count, z = i / ay.count % az.count, plane = i / (ay.count * az.count), own = i * ax.count;
            find(s, parts, seen(az, parts, z), seen(ay, parts, y), x.data + plane * volume * size, out.data + own * size,
                 at ? at + own : nullptr);
        }
    });
}

bool whole_number(DType d) { return is_int(d); }

// What was made of a batch of samples, where it is kept, with its channels last in memory where those of the batch are.
Ref in_format_of(const Array &x, int nd, bool kept, Ref made) {
    return kept && made && x.ndim == nd + 2 && channels_last(x) ? with_channels_last(*made) : std::move(made);
}

// Returns (values, places) or the values alone.
PyObject *max_pool_of(Array &given, Settings &s, bool parts, bool places) {
    DType wide = is_half(given.dtype) ? F32 : given.dtype;
    Ref x = converted(given, wide);
    x = contiguous(*x);
    Ref out = make_pooled(*x, s, wide), at;
    if (places) at = make_pooled(*x, s, I64);
    int64_t *to = places ? at->as<int64_t>() : nullptr;
    if (out->size > 0) {
        for (int i = 0; i < 3; i++)
            if (s.axis[i].size == 0) fail(PyExc_RuntimeError, "max_pool: expected an input with elements.");
        bool vectors = !parts && is_float(wide) && s.axis[0].size * s.axis[1].size * s.axis[2].size < INT32_MAX / 2;
        for (int i = 0; i < 3; i++) vectors = vectors && s.axis[i].padding < (1 << 20) && s.axis[i].dilation < (1 << 20) &&
                                              s.axis[i].kernel < (1 << 10) && s.axis[i].stride < (1 << 20);
        if (!vectors) max_by_window(s, parts, *x, *out, to);
        else if (wide == F32) max_float<float>(s, *x, *out, to);
        else max_float<double>(s, *x, *out, to);
    }
    if (wide != given.dtype) out = converted(*out, given.dtype);
    const bool kept = parts ? s.nd < 3 : places || s.nd > 1;  // PyTorch's for rows keeps no format where it gives no places
    out = in_format_of(given, s.nd, kept, std::move(out)), at = in_format_of(given, s.nd, kept, std::move(at));
    return places ? as_tuple(out, at) : out.release();
}

bool max_served(const Array &x) { return whole_number(x.dtype) || is_float(x.dtype); }

template <bool PLACES> PyObject *max_pool_body(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<6> N{"max_pool", {"x", "kernel", "stride", "padding", "dilation", "ceil_mode"}, 5};
    PyObject *a[6];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    int64_t sizes[MAX_NDIM];
    int nd = as_ints(a[1], sizes, MAX_NDIM);
    if (!max_served(x) || nd > 3) return default_body();
    Settings s;
    read_windows(s, x.ndim, x.shape(), a[1], a[2], a[3], a[4], a[5]);
    return max_pool_of(x, s, false, PLACES);
}

PyObject *adaptive_max_body(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<2> N{"adaptive_max_pool", {"x", "output_size"}, 2};
    PyObject *a[2];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    if (!max_served(x)) return default_body();
    Settings s;
    read_parts(s, x.ndim, x.shape(), a[1]);
    return max_pool_of(x, s, true, true);
}

// ---- places ----

template <class T, bool TAKE>
bool walk_places(const T *from, const int64_t *at, T *to, int64_t planes, int64_t windows, int64_t elements) {
    std::atomic<bool> fine{true};
    parallel_for(planes, grain_for(2.0 * windows + elements / 4.0), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) {
            const int64_t *own = at + i * windows;
            const T *source = from + i * (TAKE ? elements : windows);
            T *target = to + i * (TAKE ? windows : elements);
            if constexpr (!TAKE) memset(target, 0, elements * sizeof(T));
            uint64_t wrong = 0;
            for (int64_t j = 0; j < windows; j++) {
                uint64_t place = static_cast<uint64_t>(own[j]);
                if (place >= static_cast<uint64_t>(elements)) {
                    wrong = 1;
                    continue;
                }
                if constexpr (TAKE) target[j] = source[place];
                else target[place] += source[j];
            }
            if (wrong) fine.store(false, std::memory_order_relaxed);
        }
    });
    return fine;
}

template <bool TAKE> Ref place_walk(Array &values, Array &indices, int ndim, const int64_t *shape, int spatial) {
    DType wide = is_half(values.dtype) ? F32 : values.dtype;
    Ref x = converted(values, wide), at = contiguous(indices);
    x = contiguous(*x);
    if (at->dtype != I64 || at->ndim != ndim || spatial < 0 || spatial > ndim || x->ndim != ndim)
        fail(PyExc_RuntimeError, "max_pool: expected int64 places with %d axes.", ndim);
    int64_t planes = 1, elements = 1, windows = 1;
    for (int i = 0; i < ndim; i++) {
        if (i < ndim - spatial) {
            if (shape[i] != at->shape()[i]) fail(PyExc_RuntimeError, "max_pool: places and elements differ in their planes.");
            planes *= shape[i];
        } else {
            elements *= shape[i];
            windows *= at->shape()[i];
        }
    }
    Ref out = TAKE ? make(wide, ndim, at->shape()) : make(wide, ndim, shape);
    bool fine;
    {
        Unlocked free(out->size + x->size);
        if (wide == F32) fine = walk_places<float, TAKE>(x->as<float>(), at->as<int64_t>(), out->as<float>(), planes, windows, elements);
        else fine = walk_places<double, TAKE>(x->as<double>(), at->as<int64_t>(), out->as<double>(), planes, windows, elements);
    }
    if (!fine) fail(PyExc_IndexError, "max_pool: expected places within the %lld elements of a plane.", (long long)elements);
    return wide == values.dtype ? std::move(out) : converted(*out, values.dtype);
}

PyObject *max_grad_body(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<4> N{"max_pool_grad", {"g", "indices", "x_shape", "ndim"}, 4};
    PyObject *a[4];
    arguments(N, args, n, names, a);
    Array &g = as_array(a[0]), &at = as_array(a[1]);
    int64_t shape[MAX_NDIM];
    int ndim = as_ints(a[2], shape, MAX_NDIM);
    if (!is_float(g.dtype)) return default_body();
    if (!same_shape(g, at)) fail(PyExc_RuntimeError, "max_pool_grad: expected as many places as gradients.");
    return place_walk<false>(g, at, ndim, shape, static_cast<int>(as_int(a[3]))).release();
}

PyObject *max_take_body(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<3> N{"max_pool_take", {"x", "indices", "ndim"}, 3};
    PyObject *a[3];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]), &at = as_array(a[1]);
    if (!is_float(x.dtype)) return default_body();
    return place_walk<true>(x, at, x.ndim, x.shape(), static_cast<int>(as_int(a[2]))).release();
}

// ---- average ----

struct Divisors {
    double by = 0;               // of all windows alike; 0 where they differ
    std::vector<double> own[3];
};

template <class T> void average_of(const Settings &s, const Divisors &d, bool grad, bool regular, const Array &x, Array &out) {
    const PoolSet<T> &set = pool_set<T>();
    PoolPlan<T> p{};
    std::copy_n(s.axis, 3, p.axis);
    p.from = x.as<T>(), p.out = out.as<T>(), p.regular = regular;
    p.planes = outer(x, s.nd);
    p.divide_by = static_cast<T>(d.by);
    std::vector<T> divisors[3];
    for (int i = 0; i < 3 && d.by == 0; i++) {
        divisors[i].assign(d.own[i].begin(), d.own[i].end());
        p.divisor[i] = divisors[i].data();
    }
    const PoolAxis &az = s.axis[0], &ay = s.axis[1], &ax = s.axis[2];
    p.pitch = ax.count + (ax.kernel - 1) / ax.stride + set.lanes;
    p.room = ax.size + 192 + std::max(ax.count, regular ? std::min(ax.stride, ax.kernel) * p.pitch : 0);
    p.room = (p.room + 15) / 16 * 16;
    Scratch<T> rooms(p.room * num_threads());
    int64_t tasks = grad ? p.planes : p.planes * az.count;
    double work = static_cast<double>(az.size) * ay.size * ax.size / (grad ? 1 : az.count) + 2.0 * ay.count * ax.count;
    Unlocked free(x.size + out.size);
    parallel_for(tasks, grain_for(work), [&](int64_t begin, int64_t end) {
        T *own = rooms + p.room * thread_number();
        for (int64_t i = begin; i < end; i++) (grad ? set.average_grad : set.average)(p, own, i);
    });
}

Ref average(Array &given, const Settings &s, const Divisors &d, bool grad, bool regular, int ndim, const int64_t *shape) {
    DType wide = is_half(given.dtype) ? F32 : given.dtype;
    Ref x = converted(given, wide);
    x = contiguous(*x);
    if (grad) {
        bool fits = x->ndim == ndim;
        for (int i = 0; fits && i < ndim; i++)
            fits = x->shape()[i] == (i < ndim - s.nd ? shape[i] : s.axis[3 - ndim + i].count);
        if (!fits) fail(PyExc_RuntimeError, "pool: the gradient does not fit the input's shape.");
    }
    Ref out = grad ? make(wide, ndim, shape) : make_pooled(*x, s, wide);
    if (out->size > 0 && wide == F32) average_of<float>(s, d, grad, regular, *x, *out);
    else if (out->size > 0) average_of<double>(s, d, grad, regular, *x, *out);
    return wide == given.dtype ? std::move(out) : converted(*out, given.dtype);
}

Divisors window_divisors(const Settings &s, bool include_pad, PyObject *override) {
    Divisors d;
    if (override && override != Py_None) {
        d.by = static_cast<double>(as_int(override));
        if (d.by == 0) fail(PyExc_RuntimeError, "avg_pool: divisor must be not zero.");
        return d;
    }
    bool even = true, padded = false;
    double taps = 1;
    for (const PoolAxis &a : s.axis) {
        even = even && (a.count - 1) * a.stride + a.kernel <= a.size + 2 * a.padding;
        padded = padded || a.padding;
        taps *= static_cast<double>(a.kernel);
    }
    if (even && (include_pad || !padded)) {
        d.by = taps;
        return d;
    }
    for (int i = 0; i < 3; i++) {
        const PoolAxis &a = s.axis[i];
        for (int64_t j = 0; j < a.count; j++) {
            int64_t start = j * a.stride - a.padding, end = std::min(start + a.kernel, a.size + a.padding);
            if (!include_pad) start = std::max<int64_t>(start, 0), end = std::min(end, a.size);
            d.own[i].push_back(static_cast<double>(std::max<int64_t>(end - start, 1)));
        }
    }
    return d;
}

Divisors part_divisors(const Settings &s) {
    Divisors d;
    bool even = true;
    double all = 1;
    for (const PoolAxis &a : s.axis) {
        even = even && a.count && a.size % a.count == 0;
        if (even) all *= static_cast<double>(a.size / a.count);
    }
    if (even && all > 0) {
        d.by = all;
        return d;
    }
    for (int i = 0; i < 3; i++)
        for (int64_t j = 0; j < s.axis[i].count; j++)
            d.own[i].push_back(static_cast<double>(s.end[i][j] - s.start[i][j]));
    return d;
}

PyObject *avg_body(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<7> N{"avg_pool", {"x", "kernel", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override"}, 4};
    PyObject *a[7];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    int64_t sizes[MAX_NDIM];
    if (!is_float(x.dtype) || as_ints(a[1], sizes, MAX_NDIM) > 3) return default_body();
    Settings s;
    read_windows(s, x.ndim, x.shape(), a[1], a[2], a[3], nullptr, a[4]);
    list_windows(s, false);
    Divisors d = window_divisors(s, a[5] ? as_bool(a[5]) : true, a[6]);
    return in_format_of(x, s.nd, s.nd < 3, average(x, s, d, false, true, 0, nullptr)).release();
}

PyObject *avg_grad_body(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<8> N{"avg_pool_grad", {"g", "x_shape", "kernel", "stride", "padding", "ceil_mode", "count_include_pad",
                                        "divisor_override"}, 5};
    PyObject *a[8];
    arguments(N, args, n, names, a);
    Array &g = as_array(a[0]);
    int64_t shape[MAX_NDIM], sizes[MAX_NDIM];
    int ndim = as_ints(a[1], shape, MAX_NDIM);
    if (!is_float(g.dtype) || as_ints(a[2], sizes, MAX_NDIM) > 3) return default_body();
    Settings s;
    read_windows(s, ndim, shape, a[2], a[3], a[4], nullptr, a[5]);
    list_windows(s, false);
    Divisors d = window_divisors(s, a[6] ? as_bool(a[6]) : true, a[7]);
    return average(g, s, d, true, true, ndim, shape).release();
}

PyObject *adaptive_avg_body(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<2> N{"adaptive_avg_pool", {"x", "output_size"}, 2};
    PyObject *a[2];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    if (!is_float(x.dtype)) return default_body();
    Settings s;
    read_parts(s, x.ndim, x.shape(), a[1]);
    list_windows(s, true);
    return in_format_of(x, s.nd, s.nd < 3, average(x, s, part_divisors(s), false, false, 0, nullptr)).release();
}

PyObject *adaptive_avg_grad_body(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<3> N{"adaptive_avg_pool_grad", {"g", "x_shape", "output_size"}, 3};
    PyObject *a[3];
    arguments(N, args, n, names, a);
    Array &g = as_array(a[0]);
    if (!is_float(g.dtype)) return default_body();
    int64_t shape[MAX_NDIM];
    int ndim = as_ints(a[1], shape, MAX_NDIM);
    Settings s;
    read_parts(s, ndim, shape, a[2]);
    list_windows(s, true);
    return average(g, s, part_divisors(s), true, false, ndim, shape).release();
}

}  // namespace

const Method pool_methods[] = {
    MORTICE_METHOD("partial_max_pool", max_pool_body<true>),
    MORTICE_METHOD("partial_max_pool_values", max_pool_body<false>),
    MORTICE_METHOD("partial_adaptive_max_pool", adaptive_max_body),
    MORTICE_KEEPING("partial_max_pool_grad", max_grad_body, 5),
    MORTICE_METHOD("partial_max_pool_take", max_take_body),
    MORTICE_METHOD("partial_avg_pool", avg_body),
    MORTICE_KEEPING("partial_avg_pool_grad", avg_grad_body, 5),
    MORTICE_METHOD("partial_adaptive_avg_pool", adaptive_avg_body),
    MORTICE_KEEPING("partial_adaptive_avg_pool_grad", adaptive_avg_grad_body, 5),
    {},
};

}  // namespace mortice
