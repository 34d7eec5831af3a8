#include "sliding.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/resize.hpp"
#include "parallel.hpp"

namespace mortice {

namespace {

int64_t grain_for(double work) { return std::max<int64_t>(1, static_cast<int64_t>(65536 / std::max(work, 1.0))); }

// ---- sliding blocks ----

struct Blocks {
    int nd;
    int64_t planes, size[3], count[3], kernel[3], stride[3], padding[3], dilation[3];
    int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
    int64_t windows() const { return count[0] * count[1] * count[2]; }
};

// False where there are more axes than three.
bool read_blocks(Blocks &b, const int64_t *sizes, int nd, PyObject *const *settings) {
    if (nd < 1 || nd > 3) return false;
    b.nd = nd;
    int64_t *fields[4] = {b.kernel, b.stride, b.padding, b.dilation};
    for (int f = 0; f < 4; f++) {
        int64_t given[MAX_NDIM], least = f == 2 ? 0 : 1;
        if (as_ints(settings[f], given, MAX_NDIM) != nd) fail(PyExc_RuntimeError, "unfold: expected %d entries.", nd);
        for (int i = 0; i < 3; i++) {
            int j = i - (3 - nd);
            fields[f][i] = j < 0 ? least : given[j];
            if (fields[f][i] < least || fields[f][i] > INT32_MAX) fail(PyExc_RuntimeError, "unfold: a setting is out of range.");
        }
    }
    for (int i = 0; i < 3; i++) {
        int j = i - (3 - nd);
        b.size[i] = j < 0 ? 1 : sizes[j];
        int64_t reach = b.size[i] + 2 * b.padding[i] - b.dilation[i] * (b.kernel[i] - 1) - 1;
        b.count[i] = reach < 0 ? 0 : reach / b.stride[i] + 1;
    }
    return true;
}

// Visit, for one tap, the rows of windows: body(window, source row or -1, first window inside, past the last inside).
template <class F> void tap_rows(const Blocks &b, int64_t tap, F body) {
    int64_t kx = tap % b.kernel[2], ky = tap / b.kernel[2] % b.kernel[1], kz = tap / (b.kernel[2] * b.kernel[1]);
    int64_t left = kx * b.dilation[2] - b.padding[2], s = b.stride[2];
    int64_t low = std::min(b.count[2], left >= 0 ? 0 : (-left + s - 1) / s);
    int64_t high = std::clamp<int64_t>(b.size[2] > left ? (b.size[2] - left + s - 1) / s : 0, low, b.count[2]);
    for (int64_t z = 0; z < b.count[0]; z++)
        for (int64_t y = 0; y < b.count[1]; y++) {
            int64_t iz = z * b.stride[0] + kz * b.dilation[0] - b.padding[0];
            int64_t iy = y * b.stride[1] + ky * b.dilation[1] - b.padding[1];
            bool inside = iz >= 0 && iz < b.size[0] && iy >= 0 && iy < b.size[1];
            body((z * b.count[1] + y) * b.count[2], inside ? (iz * b.size[1] + iy) * b.size[2] + left : INT64_MIN, low, high);
        }
}

template <class T> void unfold_all(const Blocks &b, const T *from, T *out) {
    int64_t taps = b.taps(), windows = b.windows(), volume = b.size[0] * b.size[1] * b.size[2], s = b.stride[2];
    parallel_for(b.planes, grain_for(static_cast<double>(taps) * windows), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++)
            for (int64_t t = 0; t < taps; t++) {
                const T *plane = from + i * volume;
                T *to = out + (i * taps + t) * windows;
                tap_rows(b, t, [&](int64_t window, int64_t row, int64_t low, int64_t high) {
                    T *own = to + window;
                    if (row == INT64_MIN) {
                        memset(static_cast<void *>(own), 0, b.count[2] * sizeof(T));
                        return;
                    }
                    for (int64_t x = 0; x < low; x++) own[x] = T{};
                    if (s == 1 && high > low) copy_bytes(own + low, plane + row + low, (high - low) * sizeof(T));
                    else
                        for (int64_t x = low; x < high; x++) own[x] = plane[row + x * s];
                    for (int64_t x = high; x < b.count[2]; x++) own[x] = T{};
                });
            }
    });
}

template <class T> void fold_all(const Blocks &b, const T *from, T *out, void (*add)(T *, const T *, int64_t)) {
    int64_t taps = b.taps(), windows = b.windows(), volume = b.size[0] * b.size[1] * b.size[2], s = b.stride[2];
    parallel_for(b.planes, grain_for(static_cast<double>(taps) * windows), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) {
            T *plane = out + i * volume;
            memset(plane, 0, volume * sizeof(T));
            for (int64_t t = 0; t < taps; t++) {
                const T *own = from + (i * taps + t) * windows;
                tap_rows(b, t, [&](int64_t window, int64_t row, int64_t low, int64_t high) {
                    if (row == INT64_MIN || high <= low) return;
                    if (s == 1) return add(plane + row + low, own + window + low, high - low);
                    for (int64_t x = low; x < high; x++) plane[row + x * s] += own[window + x];
                });
            }
        }
    });
}

// ---- padding ----

constexpr int64_t CONSTANT = -1;

// A padded axis: at each place the element that it repeats.
struct Padded {
    int64_t n, before, count, low, period;
    char mode;  // the third letter of its name

    Padded() = default;
    Padded(int64_t n, int64_t before, int64_t after, const char *name)
        : n(n), before(before), count(std::max<int64_t>(0, n + before + after)), low(std::max<int64_t>(-before, 0)),
          period(n - std::max<int64_t>(-after, 0) - low), mode(name[2]) {
        for (int64_t i = 0; mode != 'n' && i < count; i += std::max<int64_t>(1, count - 1))  // the ends are furthest away
            if ((*this)[i] < 0 || (*this)[i] >= n)
                fail(PyExc_RuntimeError, "pad: expected a border narrower than the axis; got (%lld, %lld) at size %lld.",
                     (long long)before, (long long)after, (long long)n);
    }
    int64_t operator[](int64_t i) const {
        const int64_t q = i - before;
        if (q >= 0 && q < n) return q;
        if (mode == 'n') return CONSTANT;
        if (mode == 'f') return q < 0 ? -q : 2 * (n - 1) - q;
        if (mode == 'p') return q < 0 ? 0 : n - 1;
        return period > 0 ? low + ((i - std::max<int64_t>(before, 0)) % period + period) % period : -1;
    }
};

struct Padding {
    int64_t planes, size[3], count[3];
    Padded at[3];
    int64_t low, length, first;  // of a row: where the run of elements that stay begins, how long it is, its first element
    int64_t rows() const { return count[0] * count[1]; }
};

constexpr int MANY = 100;  // axes: more than there can be

// Reads widths for x's shape into `before`, `after`.
void read_widths(PyObject *widths, int ndim, int64_t *before, int64_t *after) {
    Own<PyObject> pairs(PySequence_Tuple(widths));
    if (!pairs) throw Failed{};
    if (PyTuple_GET_SIZE(pairs.get()) != ndim) fail(PyExc_RuntimeError, "pad: expected widths for %d axes.", ndim);
    for (int i = 0; i < ndim; i++) {
        int64_t pair[MANY];
        if (as_ints(PyTuple_GET_ITEM(pairs.get(), i), pair, MANY) != 2) fail(PyExc_RuntimeError, "pad: expected pairs of widths.");
        before[i] = pair[0], after[i] = pair[1];
        if (std::abs(pair[0]) > INT64_C(1) << 48 || std::abs(pair[1]) > INT64_C(1) << 48)
            fail(PyExc_RuntimeError, "pad: expected widths that fit in memory.");
    }
}

// False where more than the last three axes change.
bool plan_padding(Padding &p, int ndim, const int64_t *shape, const int64_t *before, const int64_t *after, const char *mode) {
    p.planes = 1;
    for (int i = 0; i < ndim - 3; i++) {
        if (before[i] || after[i]) return false;
        p.planes *= shape[i];
    }
    for (int i = 0; i < 3; i++) {
        int j = ndim - 3 + i;
        p.size[i] = j < 0 ? 1 : shape[j];
        p.at[i] = j < 0 ? Padded(1, 0, 0, mode) : Padded(shape[j], before[j], after[j], mode);
        p.count[i] = p.at[i].count;
    }
    int64_t b = ndim ? before[ndim - 1] : 0;
    p.low = std::min(std::max<int64_t>(b, 0), p.count[2]);
    p.first = std::max<int64_t>(-b, 0);
    p.length = std::clamp<int64_t>(p.size[2] - p.first, 0, p.count[2] - p.low);
    return true;
}

template <class T> __attribute__((noinline)) void repeat(T *to, int64_t n, T value) { std::fill_n(to, n, value); }

template <class T> void pad_all(const Padding &p, const T *from, T *out, T value) {
    int64_t volume = p.size[0] * p.size[1] * p.size[2], width = p.count[2], low = p.low, high = low + p.length;
    Scratch<int64_t> places(width - p.length + 1);  // of a row's borders
    int64_t *const at = places;
    for (int64_t x = 0; x < low; x++) at[x] = p.at[2][x];
    for (int64_t x = high; x < width; x++) at[x - p.length] = p.at[2][x];
    const auto border = [&](T *to, const T *row, int64_t begin, int64_t end) {
        if (p.at[2].mode == 'n') return repeat(to, end - begin, value);
        for (; begin < end; begin++) *to++ = row[at[begin]];
    };
    parallel_for(p.planes * p.count[0], grain_for(static_cast<double>(p.count[1]) * width), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) {
            int64_t z = p.at[0][i % p.count[0]];
            const T *plane = from + i / p.count[0] * volume;
            T *to = out + i * p.count[1] * width;
            for (int64_t y = 0; y < p.count[1]; y++, to += width) {
                int64_t iy = p.at[1][y];
                if (z == CONSTANT || iy == CONSTANT) {
                    repeat(to, width, value);
                    continue;
                }
                const T *row = plane + (z * p.size[1] + iy) * p.size[2];
                border(to, row, 0, low);
                copy_bytes(to + low, row + p.first, p.length * sizeof(T));
                border(to + high, row, low, width - p.length);
            }
        }
    });
}

template <class T> void pad_grad_all(const Padding &p, const T *g, T *out, void (*add)(T *, const T *, int64_t)) {
    int64_t volume = p.size[0] * p.size[1] * p.size[2], width = p.count[2];
    const Padded &at = p.at[2];
    parallel_for(p.planes, grain_for(static_cast<double>(p.rows()) * width), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) {
            T *plane = out + i * volume;
            memset(plane, 0, volume * sizeof(T));
            const T *from = g + i * p.rows() * width;
            for (int64_t r = 0; r < p.rows(); r++, from += width) {
                T *row = plane + (p.at[0][r / p.count[1]] * p.size[1] + p.at[1][r % p.count[1]]) * p.size[2];
                for (int64_t x = 0; x < p.low; x++) row[at[x]] += from[x];
                add(row + p.first, from + p.low, p.length);
                for (int64_t x = p.low + p.length; x < width; x++) row[at[x]] += from[x];
            }
        }
    });
}

const char *mode_text(PyObject *mode) {
    const char *text = mode ? PyUnicode_AsUTF8(mode) : "constant";
    if (!text) throw Failed{};
    for (const char *known : {"constant", "reflect", "replicate", "circular"})
        if (!strcmp(text, known)) return known;
    fail(PyExc_RuntimeError, "pad: expected constant, reflect, replicate or circular; got %s.", text);
}

PyObject *pad_constant(Array &x, const int64_t *before, const int64_t *after, PyObject *value) {
    Padding p{};
    if (!plan_padding(p, x.ndim, x.shape(), before, after, "constant")) return default_body();
    Scalar fill = value ? as_scalar(value, x.dtype) : scalar_of(0, x.dtype);
    int64_t shape[MAX_NDIM];
    for (int i = 0; i < x.ndim; i++) shape[i] = std::max<int64_t>(0, x.shape()[i] + before[i] + after[i]);
    Ref from = contiguous(x), out = make(x.dtype, x.ndim, shape);
    Unlocked free(out->size);
    if (out->size)
        by_width(x.itemsize(), [&](auto kind) {
            using T = decltype(kind);
            T own;
            memcpy(static_cast<void *>(&own), fill.bytes, sizeof own);
            pad_all<T>(p, from->as<T>(), out->as<T>(), own);
        });
    return out.release();
}

}  // namespace

PyObject *unfold_body(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<5> N{"unfold", {"x", "kernel", "stride", "padding", "dilation"}, 5};
    PyObject *a[5];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    Blocks b{};
    if (x.ndim < 3 || !read_blocks(b, x.shape() + 2, x.ndim - 2, a + 1)) return default_body();
    b.planes = x.shape()[0] * x.shape()[1];
    Ref from = contiguous(x), out = make(x.dtype, {x.shape()[0], x.shape()[1] * b.taps(), b.windows()});
    if (out->size == 0) return out.release();
    {
        Unlocked free(out->size);
        by_width(x.itemsize(), [&](auto kind) { unfold_all(b, from->as<decltype(kind)>(), out->as<decltype(kind)>()); });
    }
    return out.release();
}

PyObject *fold_body(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<6> N{"fold", {"x", "output_size", "kernel", "stride", "padding", "dilation"}, 6};
    PyObject *a[6];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    Blocks b{};
    int64_t shape[MAX_NDIM + 2];
    int nd = as_ints(a[1], shape + 2, MAX_NDIM);
    if (x.ndim != 3 || !is_float(x.dtype) || !read_blocks(b, shape + 2, nd, a + 2)) return default_body();
    if (x.shape()[1] % b.taps() || x.shape()[2] != b.windows())
        fail(PyExc_RuntimeError, "fold: expected columns of %lld taps and %lld windows; got %lld and %lld.", (long long)b.taps(),
             (long long)b.windows(), (long long)x.shape()[1], (long long)x.shape()[2]);
    shape[0] = x.shape()[0], shape[1] = x.shape()[1] / b.taps();
    b.planes = shape[0] * shape[1];
    DType wide = is_half(x.dtype) ? F32 : x.dtype;
    Ref from = converted(x, wide), out = make(wide, nd + 2, shape);
    from = contiguous(*from);
    if (out->size) {
        Unlocked free(from->size);
        if (wide == F32) fold_all<float>(b, from->as<float>(), out->as<float>(), resize().f32.add);
        else fold_all<double>(b, from->as<double>(), out->as<double>(), resize().f64.add);
    }
    return wide == x.dtype ? out.release() : converted(*out, x.dtype).release();
}

PyObject *pad_border_body(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<4> N{"pad_border", {"x", "widths", "mode", "value"}, 2};
    PyObject *a[4];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    int64_t before[MAX_NDIM], after[MAX_NDIM], shape[MAX_NDIM];
    read_widths(a[1], x.ndim, before, after);
    const char *mode = mode_text(a[2]);
    if (!strcmp(mode, "constant")) return pad_constant(x, before, after, a[3]);
    Padding p{};
    if (!plan_padding(p, x.ndim, x.shape(), before, after, mode)) return default_body();
    for (int i = 0; i < x.ndim; i++) shape[i] = std::max<int64_t>(0, x.shape()[i] + before[i] + after[i]);
    Ref from = contiguous(x), out = make(x.dtype, x.ndim, shape);
    if (out->size) {
        Unlocked free(out->size);
        by_width(x.itemsize(), [&](auto kind) {
            using T = decltype(kind);
            pad_all<T>(p, from->as<T>(), out->as<T>(), T{});
        });
    }
    return out.release();
}

PyObject *pad_border_grad_body(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<3> N{"pad_border_grad", {"g", "widths", "mode"}, 2};
    PyObject *a[3];
    arguments(N, args, n, names, a);
    Array &g = as_array(a[0]);
    int64_t before[MAX_NDIM], after[MAX_NDIM], shape[MAX_NDIM];
    read_widths(a[1], g.ndim, before, after);
    const char *mode = mode_text(a[2]);
    for (int i = 0; i < g.ndim; i++) {
        shape[i] = g.shape()[i] - before[i] - after[i];
        if (shape[i] < 0) fail(PyExc_RuntimeError, "pad_border_grad: expected a gradient at least as large as its borders.");
    }
    if (!strcmp(mode, "constant")) {
        for (int i = 0; i < g.ndim; i++) before[i] = -before[i], after[i] = -after[i];
        return pad_constant(g, before, after, nullptr);
    }
    Padding p{};
    if (!is_float(g.dtype) || !plan_padding(p, g.ndim, shape, before, after, mode)) return default_body();
    DType wide = is_half(g.dtype) ? F32 : g.dtype;
    Ref from = converted(g, wide), out = make(wide, g.ndim, shape);
    from = contiguous(*from);
    if (out->size) {
        Unlocked free(from->size + out->size);
        if (wide == F32) pad_grad_all<float>(p, from->as<float>(), out->as<float>(), resize().f32.add);
        else pad_grad_all<double>(p, from->as<double>(), out->as<double>(), resize().f64.add);
    }
    return wide == g.dtype ? out.release() : converted(*out, g.dtype).release();
}

}  // namespace mortice
