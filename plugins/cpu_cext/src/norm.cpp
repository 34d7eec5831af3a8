// The norm family: its table, and normalisation of rows (layer_norm, rms_norm) with the gradients.
#include "norm.hpp"

#include <cmath>
#include <cstring>

#include "families.hpp"
#include "kernels/norm.hpp"

namespace mortice {

// ---- rows ----

template <class T>
void normalise_rows(const T *x, const T *weight, const T *bias, T *out, T *mean, T *rstd, int64_t rows, int64_t n,
                    int64_t groups, double eps) {
    const auto &k = norm_kernels().of<T>();
    const auto forward = mean ? k.layer.forward : k.rms.forward;
    parallel_for(rows, at_least_one(NORM_GRAIN / at_least_one(n)), [&](int64_t begin, int64_t end) {
        forward(x, weight, bias, out, mean, rstd, begin, end, n, groups, eps);
    });
}

namespace {

constexpr int64_t ROWS_TOGETHER = 8;  // of each group, whose gradients of weights are added up at once
constexpr int64_t MOST_CHUNKS = 32;   // of rows, each with sums of its own

// How many rows make a chunk. Chunks depend on sizes alone, so results do not depend on the number of threads.
int64_t chunk_rows(int64_t rows, int64_t n, int64_t groups) {
    const int64_t unit = ROWS_TOGETHER * groups, work = NORM_GRAIN / at_least_one(n) + 1, share = rows / MOST_CHUNKS + 1;
    const int64_t wanted = work > share ? work : share;
    return (wanted + unit - 1) / unit * unit;
}

}  // namespace

template <class T>
void row_grads(const T *g, const T *x, const T *weight, const T *mean, const T *rstd, T *d_x, T *d_weight, T *d_bias,
               int64_t rows, int64_t n, int64_t groups) {
    const auto &all = norm_kernels().of<T>();
    const auto &k = mean ? all.layer : all.rms;
    if (!d_weight && !d_bias) {
        parallel_for(rows, at_least_one(NORM_GRAIN / at_least_one(n)), [&](int64_t begin, int64_t end) {
            k.backward(g, x, weight, mean, rstd, d_x, begin, end, n, groups);
        });
        return;
    }
    const int64_t width = groups * n, length = chunk_rows(rows, n, groups), chunks = (rows + length - 1) / length;
    Scratch<T> sums(static_cast<size_t>(chunks > 1 ? 2 * chunks * width : 0) + 1);
    // The first chunk adds to the results themselves.
    const auto room = [&](T *result, int64_t chunk, int64_t which) {
        return !result ? nullptr : chunk == 0 ? result : sums.get() + (2 * chunk + which) * width;
    };
    const size_t bytes = sizeof(T) * static_cast<size_t>(width);
    if (d_weight) memset(d_weight, 0, bytes);
    if (d_bias) memset(d_bias, 0, bytes);
    const int64_t step = ROWS_TOGETHER * groups;
    parallel_for(chunks, 1, [&](int64_t begin, int64_t end) {
        for (int64_t c = begin; c < end; c++) {
            T *w = room(d_weight, c, 0), *b = room(d_bias, c, 1);
            if (c && w) memset(w, 0, bytes);
            if (c && b) memset(b, 0, bytes);
            const int64_t last = (c + 1) * length < rows ? (c + 1) * length : rows;
            for (int64_t r = c * length; r < last; r += step) {
                const int64_t stop = r + step < last ? r + step : last;
                if (d_x) k.backward(g, x, weight, mean, rstd, d_x, r, stop, n, groups);
                k.backward_weight(g, x, mean, rstd, w, b, r, stop, n, groups);
            }
        }
    });
    if (chunks <= 1) return;
    parallel_for(width, at_least_one(NORM_GRAIN / chunks), [&](int64_t begin, int64_t end) {
        for (int64_t c = 1; c < chunks; c++) {
            if (d_weight) all.add(d_weight + begin, room(d_weight, c, 0) + begin, end - begin);
            if (d_bias) all.add(d_bias + begin, room(d_bias, c, 1) + begin, end - begin);
        }
    });
}

#define MORTICE_ROWS(T)                                                                                     \
    template void row_grads<T>(const T *, const T *, const T *, const T *, const T *, T *, T *, T *, int64_t, int64_t, \
                               int64_t);                                                                    \
    template void normalise_rows<T>(const T *, const T *, const T *, T *, T *, T *, int64_t, int64_t, int64_t, double);
MORTICE_ROWS(float) MORTICE_ROWS(double)
#undef MORTICE_ROWS

Needs as_needs(PyObject *needs, int count) {
    if (!PyTuple_Check(needs) || PyTuple_GET_SIZE(needs) < count)
        fail(PyExc_TypeError, "norm: expected `needs` to be a tuple of %d bools.", count);
    return {as_bool(PyTuple_GET_ITEM(needs, 0)), as_bool(PyTuple_GET_ITEM(needs, 1)),
            count > 2 && as_bool(PyTuple_GET_ITEM(needs, 2))};
}

PyObject *grads_tuple(Grads &grads, int count, DType d) {
    for (Ref *x : {&grads.x, &grads.weight, &grads.bias})
        if (*x) *x = narrowed(static_cast<Ref &&>(*x), d);
    return count == 3 ? as_tuple(grads.x, grads.weight, grads.bias) : as_tuple(grads.x, grads.weight);
}

namespace {

// ---- layer_norm and rms_norm ----

struct Rows {
    int64_t rows, n;
};

Rows rows_of(const char *name, const Array &x, int64_t ndim) {
    if (ndim < 0 || ndim > x.ndim)
        fail(PyExc_RuntimeError, "%s: expected ndim from 0 to %d; got %lld.", name, x.ndim, static_cast<long long>(ndim));
    const int lead = x.ndim - static_cast<int>(ndim);
    return {product(x.shape(), 0, lead), product(x.shape(), lead, x.ndim)};
}

Ref make_statistic(const Array &x, int64_t ndim, DType d) {
    int64_t shape[MAX_NDIM];
    for (int i = 0; i < x.ndim; i++) shape[i] = i < x.ndim - ndim ? x.shape()[i] : 1;
    return make(d, x.ndim, shape);
}

PyObject *normalised(const char *name, PyObject *x_, PyObject *weight_, PyObject *bias_, int64_t ndim, double eps, bool centred) {
    Array &x = as_array(x_);
    need_float(name, x);
    const DType d = wide(x.dtype);
    const Rows at = rows_of(name, x, ndim);
    Ref from = plain(x, d), weight = plain_or_none(weight_, d), bias = plain_or_none(bias_, d);
    need_size(name, "weight", weight, at.n);
    need_size(name, "bias", bias, at.n);
    Ref out = make_like(*from), rstd = make_statistic(x, ndim, d), mean = centred ? make_statistic(x, ndim, d) : Ref();
    {
        Unlocked free(x.size);
        with_real(d, [&](auto t) {
            using T = decltype(t);
            normalise_rows<T>(from->as<T>(), elements<T>(weight), elements<T>(bias), out->as<T>(),
                              centred ? mean->as<T>() : nullptr, rstd->as<T>(), at.rows, at.n, 1, eps);
        });
    }
    out = narrowed(static_cast<Ref &&>(out), x.dtype);
    return centred ? as_tuple(out, mean, rstd) : as_tuple(out, rstd);
}

// A statistic that the forward kept, if it is one of `count` rows.
Ref kept(PyObject *x, DType d, int64_t count) {
    Ref found = plain_or_none(x, d);
    return found && found->size == count ? static_cast<Ref &&>(found) : Ref();
}

struct RowGradArguments {
    const char *name;
    PyObject *g, *x, *weight, *mean, *rstd;
    int64_t ndim;
    double eps;
    bool centred;
};

Grads grads_of(const RowGradArguments &a, Needs needs) {
    Array &g = as_array(a.g), &x = as_array(a.x);
    need_float(a.name, g);
    need_float(a.name, x);
    need_same_shape(a.name, g, x);
    const DType d = wide(g.dtype);
    const Rows at = rows_of(a.name, x, a.ndim);
    Ref grad = plain(g, d), from = plain(x, d), weight = plain_or_none(a.weight, d);
    need_size(a.name, "weight", weight, at.n);
    Ref mean = a.centred ? kept(a.mean, d, at.rows) : Ref(), rstd = kept(a.rstd, d, at.rows);
    const bool again = !rstd || (a.centred && !mean);
    if (again) {
        rstd = make(d, {at.rows});
        if (a.centred) mean = make(d, {at.rows});
    }
    const int lead = x.ndim - static_cast<int>(a.ndim);
    Grads out;
    if (needs.x) out.x = make_like(*from);
    if (needs.weight) out.weight = make(d, x.ndim - lead, x.shape() + lead);
    if (needs.bias) out.bias = make(d, x.ndim - lead, x.shape() + lead);
    Unlocked free(2 * x.size);
    with_real(d, [&](auto t) {
        using T = decltype(t);
        T *m = a.centred ? mean->as<T>() : nullptr, *s = rstd->as<T>();
        const T *p = from->as<T>();
        if (again) normalise_rows<T>(p, nullptr, nullptr, nullptr, m, s, at.rows, at.n, 1, a.eps);
        const auto room = [](Ref &r) { return r ? r->as<T>() : nullptr; };
        row_grads<T>(grad->as<T>(), p, elements<T>(weight), m, s, room(out.x), room(out.weight), room(out.bias), at.rows, at.n,
                     1);
    });
    return out;
}

PyObject *one(Ref out, PyObject *g) { return narrowed(static_cast<Ref &&>(out), as_array(g).dtype).release(); }
double eps_of(PyObject *x) { return x ? as_double(x) : 1e-5; }

Names<5> LAYER_NORM{"layer_norm", {"x", "weight", "bias", "ndim", "eps"}, 1};
PyObject *layer_norm(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyObject *a[5];
    arguments(LAYER_NORM, args, n, names, a);
    if (!a[3]) fail(PyExc_TypeError, "layer_norm: expected the argument ndim.");
    return normalised("layer_norm", a[0], a[1], a[2], as_int(a[3]), eps_of(a[4]), true);
}

Names<4> RMS_NORM{"rms_norm", {"x", "weight", "ndim", "eps"}, 1};
PyObject *rms_norm(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyObject *a[4];
    arguments(RMS_NORM, args, n, names, a);
    if (!a[2] || !a[3]) fail(PyExc_TypeError, "rms_norm: expected the arguments ndim and eps.");
    return normalised("rms_norm", a[0], a[1], nullptr, as_int(a[2]), as_double(a[3]), false);
}

void need_ndim(const char *name, PyObject *ndim) {
    if (!ndim) fail(PyExc_TypeError, "%s: expected the argument ndim.", name);
}

Names<7> LAYER_NORM_GRAD{"layer_norm_grad", {"g", "x", "weight", "mean", "rstd", "ndim", "eps"}, 2};
PyObject *layer_norm_grad(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyObject *a[7];
    arguments(LAYER_NORM_GRAD, args, n, names, a);
    need_ndim("layer_norm_grad", a[5]);
    return one(grads_of({"layer_norm_grad", a[0], a[1], a[2], a[3], a[4], as_int(a[5]), eps_of(a[6]), true},
                        {true, false, false}).x, a[0]);
}

Names<6> LAYER_NORM_WEIGHT_GRAD{"layer_norm_weight_grad", {"g", "x", "mean", "rstd", "ndim", "eps"}, 2};
PyObject *layer_norm_weight_grad(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyObject *a[6];
    arguments(LAYER_NORM_WEIGHT_GRAD, args, n, names, a);
    need_ndim("layer_norm_weight_grad", a[4]);
    return one(grads_of({"layer_norm_weight_grad", a[0], a[1], nullptr, a[2], a[3], as_int(a[4]), eps_of(a[5]), true},
                        {false, true, false}).weight, a[0]);
}

Names<8> LAYER_NORM_GRADS{"layer_norm_grads", {"g", "x", "weight", "mean", "rstd", "ndim", "eps", "needs"}, 2};
PyObject *layer_norm_grads(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyObject *a[8];
    arguments(LAYER_NORM_GRADS, args, n, names, a);
    need_ndim("layer_norm_grads", a[5]);
    if (!a[7]) fail(PyExc_TypeError, "layer_norm_grads: expected the argument needs.");
    Grads out = grads_of({"layer_norm_grads", a[0], a[1], a[2], a[3], a[4], as_int(a[5]), eps_of(a[6]), true}, as_needs(a[7], 3));
    return grads_tuple(out, 3, as_array(a[0]).dtype);
}

Names<6> RMS_NORM_GRAD{"rms_norm_grad", {"g", "x", "weight", "rrms", "ndim", "eps"}, 2};
PyObject *rms_norm_grad(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyObject *a[6];
    arguments(RMS_NORM_GRAD, args, n, names, a);
    need_ndim("rms_norm_grad", a[4]);
    return one(grads_of({"rms_norm_grad", a[0], a[1], a[2], nullptr, a[3], as_int(a[4]), eps_of(a[5]), false},
                        {true, false, false}).x, a[0]);
}

Names<5> RMS_NORM_WEIGHT_GRAD{"rms_norm_weight_grad", {"g", "x", "rrms", "ndim", "eps"}, 2};
PyObject *rms_norm_weight_grad(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyObject *a[5];
    arguments(RMS_NORM_WEIGHT_GRAD, args, n, names, a);
    need_ndim("rms_norm_weight_grad", a[3]);
    return one(grads_of({"rms_norm_weight_grad", a[0], a[1], nullptr, nullptr, a[2], as_int(a[3]), eps_of(a[4]), false},
                        {false, true, false}).weight, a[0]);
}

Names<7> RMS_NORM_GRADS{"rms_norm_grads", {"g", "x", "weight", "rrms", "ndim", "eps", "needs"}, 2};
PyObject *rms_norm_grads(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyObject *a[7];
    arguments(RMS_NORM_GRADS, args, n, names, a);
    need_ndim("rms_norm_grads", a[4]);
    if (!a[6]) fail(PyExc_TypeError, "rms_norm_grads: expected the argument needs.");
    Grads out = grads_of({"rms_norm_grads", a[0], a[1], a[2], nullptr, a[3], as_int(a[4]), eps_of(a[5]), false},
                         as_needs(a[6], 2));
    return grads_tuple(out, 2, as_array(a[0]).dtype);
}

// ---- vector norms ----

// A row's part is a fixed number of elements, so results are the same on any number of threads.
constexpr int64_t NORM_PART = 1 << 16;

template <class T> void vector_norms(const T *x, int64_t rows, int64_t n, double p, T *out) {
    const auto &k = norm_kernels().of<T>();
    const auto kernel = p == 2 ? k.squares : p == 1 ? k.sizes : k.largest;
    const int64_t parts = (n + NORM_PART - 1) / NORM_PART;
    Scratch<double> found(static_cast<size_t>(rows * parts));
    double *at = found;
    parallel_for(rows * parts, at_least_one(NORM_GRAIN / n), [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) {
            const int64_t first = i % parts * NORM_PART;
            at[i] = kernel(x + i / parts * n + first, n - first < NORM_PART ? n - first : NORM_PART);
        }
    });
    for (int64_t r = 0; r < rows; r++) {
        double all = at[r * parts];
        for (int64_t i = 1; i < parts; i++) {
            const double more = at[r * parts + i];
            all = p <= 2 ? all + more : all >= more || all != all ? all : more;
        }
        out[r] = static_cast<T>(p == 2 ? sqrt(all) : all);
    }
}

// Norms 1, 2 and of the maximum, of everything or along the last axes.
Names<4> VECTOR_NORM{"vector_norm", {"x", "p", "axis", "keepdims"}, 2};
PyObject *vector_norm(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyObject *a[4];
    arguments(VECTOR_NORM, args, n, names, a);
    Array &x = as_array(a[0]);
    const double p = as_double(a[1]);
    uint64_t axes = ~uint64_t{0};
    if (a[2] && a[2] != Py_None) axes = as_axes(a[2], x.ndim);
    int64_t shape[MAX_NDIM], rows = 1;
    int kept = 0, ndim = 0;
    while (kept < x.ndim && !(axes >> kept & 1)) rows *= x.shape()[kept], shape[ndim++] = x.shape()[kept], kept++;
    bool last = true;
    for (int i = kept; i < x.ndim; i++) last = last && (axes >> i & 1);
    if (!is_float(x.dtype) || x.size == 0 || !last || (kept == x.ndim && kept) || (p != 1 && p != 2 && p != HUGE_VAL))
        return default_body();
    for (int i = kept; as_bool(a[3]) && i < x.ndim; i++) shape[ndim++] = 1;
    Ref from = plain(x, wide(x.dtype)), out = make(from->dtype, ndim, shape);
    with_real(from->dtype, [&](auto t) {
        using T = decltype(t);
        Unlocked free(x.size);
        vector_norms<T>(from->as<T>(), rows, x.size / rows, p, out->as<T>());
    });
    return narrowed(static_cast<Ref &&>(out), x.dtype).release();
}

// Distances of all pairs of rows, by the norms 1, 2 and of the maximum.
PyObject *row_distances(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<3> N{"row_distances", {"x", "y", "p"}, 3};
    PyObject *a[3];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]), &y = as_array(a[1]);
    const double p = as_double(a[2]);
    const int nd = x.ndim, last = nd - 1;
    bool fit = is_float(x.dtype) && x.dtype == y.dtype && nd >= 2 && y.ndim == nd && x.size && y.size;
    for (int i = 0; fit && i < nd; i++) fit = i == nd - 2 || x.shape()[i] == y.shape()[i];
    if (!fit || (p != 1 && p != 2 && p != HUGE_VAL)) return default_body();
    int64_t shape[MAX_NDIM];
    for (int i = 0; i < last; i++) shape[i] = x.shape()[i];
    const int64_t rows = shape[nd - 2], others = shape[last] = y.shape()[nd - 2], length = x.shape()[last];
    const Ref left = plain(x, wide(x.dtype)), right = plain(y, wide(y.dtype));
    Ref out = make(left->dtype, nd, shape);
    with_real(left->dtype, [&](auto t) {
        using T = decltype(t);
        const auto &k = norm_kernels().of<T>();
        const auto kernel = k.distances[p == 2 ? 0 : p == 1 ? 1 : 2];
        const int64_t W = k.panel, panels = (others + W - 1) / W, room = length * W, work = rows * room;
        const Scratch<T> rooms(static_cast<size_t>(num_threads() * room));
        T *const all = rooms.get(), *const to = out->as<T>();
        const T *const from = left->as<T>(), *const with = right->as<T>();
        Unlocked free(work * panels / 8);
        parallel_for(y.size / (others * length) * panels, at_least_one(8 * NORM_GRAIN / work), [=](int64_t begin, int64_t end) {
            T *const panel = all + thread_number() * room;
            for (int64_t i = begin; i < end; i++) {
                const int64_t batch = i / panels, j = i % panels * W, width = others - j < W ? others - j : W;
                for (int64_t c = 0; c < W; c++)  // beyond the last the first again
                    for (int64_t l = 0; l < length; l++)
                        panel[l * W + c] = with[(batch * others + j + (c < width ? c : 0)) * length + l];
                kernel(from + batch * rows * length, panel, to + batch * rows * others + j, rows, length, width, others);
            }
        });
    });
    return narrowed(static_cast<Ref &&>(out), x.dtype).release();
}

}  // namespace

const Method norm_methods[] = {
    MORTICE_METHOD("softmax", softmax),
    MORTICE_METHOD("softmax_grad", softmax_grad),
    MORTICE_METHOD("log_softmax", log_softmax),
    MORTICE_METHOD("log_softmax_grad", log_softmax_grad),
    MORTICE_METHOD("partial_logsumexp", logsumexp),
    MORTICE_METHOD("layer_norm", layer_norm),
    MORTICE_METHOD("layer_norm_grad", layer_norm_grad),
    MORTICE_METHOD("layer_norm_weight_grad", layer_norm_weight_grad),
    MORTICE_METHOD("layer_norm_grads", layer_norm_grads),
    MORTICE_METHOD("rms_norm", rms_norm),
    MORTICE_METHOD("rms_norm_grad", rms_norm_grad),
    MORTICE_METHOD("rms_norm_weight_grad", rms_norm_weight_grad),
    MORTICE_METHOD("rms_norm_grads", rms_norm_grads),
    MORTICE_KEEPING("batch_norm", batch_norm, 5),
    MORTICE_KEEPING("batch_norm_grad", batch_norm_grad, 5),
    MORTICE_METHOD("batch_norm_weight_grad", batch_norm_weight_grad),
    MORTICE_KEEPING("batch_norm_grads", batch_norm_grads, 5),
    MORTICE_KEEPING("batch_norm_eval", batch_norm_eval, 5),
    MORTICE_KEEPING("batch_norm_eval_grad", batch_norm_eval_grad, 5),
    MORTICE_METHOD("batch_norm_eval_weight_grad", batch_norm_eval_weight_grad),
    MORTICE_KEEPING("group_norm", group_norm, 5),
    MORTICE_KEEPING("group_norm_grad", group_norm_grad, 5),
    MORTICE_METHOD("group_norm_weight_grad", group_norm_weight_grad),
    MORTICE_KEEPING("group_norm_grads", group_norm_grads, 5),
    MORTICE_METHOD("partial_vector_norm", vector_norm),
    MORTICE_METHOD("partial_row_distances", row_distances),
    {},
};

}  // namespace mortice
