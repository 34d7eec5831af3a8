// softmax, log_softmax and their gradients, logsumexp: rows where the axis is the last, strips of columns elsewhere.
#include "kernels/softmax.hpp"

#include "norm.hpp"
#include "reduce_walk.hpp"

namespace mortice {

namespace {

Lines lines_of(const Array &x, PyObject *axis) {
    if (x.ndim == 0) {
        as_int(axis);
        return {1, 1, 1};
    }
    const int a = as_axis(axis, x.ndim);
    return {product(x.shape(), 0, a), x.shape()[a], product(x.shape(), a + 1, x.ndim)};
}

template <class T> void forward(const Array &x, Array &out, const Lines &l, bool logs) {
    const auto &k = softmax_kernels().of<T>();
    const T *from = x.as<T>();
    T *to = out.as<T>();
    over_lines(
        l, [&](int64_t first, int64_t count) { k.rows(from + first * l.n, to + first * l.n, count, l.n, logs); },
        [&](int64_t block, int64_t j, int64_t width) {
            const int64_t at = block * l.n * l.inner + j;
            k.columns(from + at, to + at, l.n, l.inner, width, logs);
        });
}

template <class T> void backward(const Array &g, const Array &y, Array &out, const Lines &l, bool logs) {
    const auto &k = softmax_kernels().of<T>();
    const T *from = g.as<T>(), *result = y.as<T>();
    T *to = out.as<T>();
    over_lines(
        l,
        [&](int64_t first, int64_t count) {
            const int64_t at = first * l.n;
            k.rows_grad(from + at, result + at, to + at, count, l.n, logs);
        },
        [&](int64_t block, int64_t j, int64_t width) {
            const int64_t at = block * l.n * l.inner + j;
            k.columns_grad(from + at, result + at, to + at, l.n, l.inner, width, logs);
        });
}

template <class T> void logsumexp_of(const Array &x, Array &out, const Lines &l) {
    const auto &k = softmax_kernels().of<T>();
    const T *from = x.as<T>();
    T *to = out.as<T>();
    over_lines(
        l, [&](int64_t first, int64_t count) { k.rows_logsumexp(from + first * l.n, to + first, count, l.n); },
        [&](int64_t block, int64_t j, int64_t width) {
            k.columns_logsumexp(from + block * l.n * l.inner + j, to + block * l.inner + j, l.n, l.inner, width);
        });
}

template <int N>
PyObject *softmax_as(Names<N> &names, PyObject *const *args, Py_ssize_t n, PyObject *given, bool logs) {
    PyObject *a[2];
    arguments(names, args, n, given, a);
    Array &x = as_array(a[0]);
    need_float(names.function, x);
    const Lines l = lines_of(x, a[1]);
    Ref from = plain(x, wide(x.dtype)), out = make_like(*from);
    if (x.size) {
        Unlocked free(2 * x.size);
        with_real(from->dtype, [&](auto t) { forward<decltype(t)>(*from, *out, l, logs); });
    }
    return narrowed(static_cast<Ref &&>(out), x.dtype).release();
}

template <int N>
PyObject *softmax_grad_as(Names<N> &names, PyObject *const *args, Py_ssize_t n, PyObject *given, bool logs) {
    PyObject *a[3];
    arguments(names, args, n, given, a);
    Array &g = as_array(a[0]), &y = as_array(a[1]);
    need_float(names.function, g);
    need_float(names.function, y);
    need_same_shape(names.function, g, y);
    const Lines l = lines_of(g, a[2]);
    const DType d = wide(g.dtype);
    Ref from = plain(g, d), result = plain(y, d), out = make_like(*from);
    if (g.size) {
        Unlocked free(2 * g.size);
        with_real(d, [&](auto t) { backward<decltype(t)>(*from, *result, *out, l, logs); });
    }
    return narrowed(static_cast<Ref &&>(out), g.dtype).release();
}

Names<2> SOFTMAX{"softmax", {"x", "axis"}, 2}, LOG_SOFTMAX{"log_softmax", {"x", "axis"}, 2};
Names<3> SOFTMAX_GRAD{"softmax_grad", {"g", "out", "axis"}, 3}, LOG_SOFTMAX_GRAD{"log_softmax_grad", {"g", "out", "axis"}, 3};
Names<3> LOGSUMEXP{"logsumexp", {"x", "axis", "keepdims"}, 1};

// The one axis that a reduction goes over, or -1 for none or several.
int single_axis(PyObject *axis, int ndim) {
    if (ndim == 0) return -1;
    const uint64_t axes = as_axes(axis, ndim);
    return axes && !(axes & (axes - 1)) ? __builtin_ctzll(axes) : -1;
}

}  // namespace

PyObject *softmax(PyObject *const *args, Py_ssize_t n, PyObject *names) { return softmax_as(SOFTMAX, args, n, names, false); }
PyObject *log_softmax(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    return softmax_as(LOG_SOFTMAX, args, n, names, true);
}
PyObject *softmax_grad(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    return softmax_grad_as(SOFTMAX_GRAD, args, n, names, false);
}
PyObject *log_softmax_grad(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    return softmax_grad_as(LOG_SOFTMAX_GRAD, args, n, names, true);
}

PyObject *logsumexp(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyObject *a[3];
    arguments(LOGSUMEXP, args, n, names, a);
    Array &x = as_array(a[0]);
    const int axis = single_axis(a[1], x.ndim);
    if (!is_float(x.dtype)) return default_body();
    if (axis < 0) return logsumexp_over_axes(args, n, names);
    const Lines l{product(x.shape(), 0, axis), x.shape()[axis], product(x.shape(), axis + 1, x.ndim)};
    int64_t shape[MAX_NDIM];
    int ndim = 0;
    for (int i = 0; i < x.ndim; i++)
        if (i != axis || as_bool(a[2])) shape[ndim++] = i == axis ? 1 : x.shape()[i];
    Ref from = plain(x, wide(x.dtype)), out = make(from->dtype, ndim, shape);
    if (out->size) {
        Unlocked free(2 * x.size);
        with_real(from->dtype, [&](auto t) { logsumexp_of<decltype(t)>(*from, *out, l); });
    }
    return narrowed(static_cast<Ref &&>(out), x.dtype).release();
}

}  // namespace mortice
