// Picking by label: nll_loss, cross_entropy and their gradients. Labels are checked before anything is read or written at them.
#include <cstring>

#include "families.hpp"
#include "kernels/softmax.hpp"
#include "norm.hpp"

namespace mortice {

namespace {

struct Labels {
    Ref at;
    int64_t samples, classes, length, ignored;
    int64_t count() const { return samples * length; }
    // f(i, where label i is in (samples, classes, length)) for labels begin to end; to divide for each takes longer than the rest.
    template <class F> void each(int64_t begin, int64_t end, F f) const {
        if (begin >= end) return;
        const int64_t *label = at->as<int64_t>();
        for (int64_t i = begin, s = begin / length, j = begin % length; i < end; i++) {
            f(i, (s * classes + label[i]) * length + j);
            if (++j == length) s++, j = 0;
        }
    }
    bool skips(int64_t i) const { return at->as<int64_t>()[i] == ignored; }
};

Labels labels_of(const char *name, PyObject *target_, PyObject *ignore_index, int ndim, const int64_t *shape) {
    Array &target = as_array(target_);
    if (ndim < 2 || target.ndim != ndim - 1)
        fail(PyExc_RuntimeError, "%s: expected classes of %d dimensions and labels of one less; got %d.", name, ndim, target.ndim);
    if (!is_int(target.dtype)) fail(PyExc_TypeError, "%s: expected integer labels; got %s.", name, DTYPE_NAMES[target.dtype]);
    for (int i = 0; i < target.ndim; i++)
        if (target.shape()[i] != shape[i ? i + 1 : 0]) fail(PyExc_RuntimeError, "%s: expected labels of the samples' shape.", name);
    Labels l{plain(target, I64), shape[0], shape[1], product(shape, 2, ndim), ignore_index ? as_int(ignore_index) : -100};
    const int64_t *at = l.at->as<int64_t>();
    for (int64_t i = 0; i < l.count(); i++)
        if ((at[i] < 0 || at[i] >= l.classes) && at[i] != l.ignored)
            fail(PyExc_IndexError, "%s: Target %lld is out of bounds for %lld classes.", name, static_cast<long long>(at[i]),
                 static_cast<long long>(l.classes));
    return l;
}

Ref weight_of(const char *name, PyObject *x, DType d, int64_t classes) {
    Ref found = plain_or_none(x, d);
    need_size(name, "weight", found, classes);
    return found;
}

// The weight of each label: 0 of those ignored, 1 without weights.
template <class T> void weigh(const Labels &l, const T *weight, T *out) {
    const int64_t *at = l.at->as<int64_t>();
    for (int64_t i = 0; i < l.count(); i++) out[i] = at[i] == l.ignored ? T(0) : weight ? weight[at[i]] : T(1);
}

Names<4> NLL_LOSS{"nll_loss", {"logp", "target", "weight", "ignore_index"}, 2};
PyObject *nll_loss(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyObject *a[4];
    arguments(NLL_LOSS, args, n, names, a);
    Array &logp = as_array(a[0]);
    need_float("nll_loss", logp);
    const Labels l = labels_of("nll_loss", a[1], a[3], logp.ndim, logp.shape());
    const DType d = wide(logp.dtype);
    Ref from = contiguous(logp), weight = weight_of("nll_loss", a[2], d, l.classes);
    Ref losses = make_like(*l.at, d), weights = make_like(*l.at, d);
    with_real(d, [&](auto t) {
        using T = decltype(t);
        T *loss = losses->as<T>(), *w = weights->as<T>();
        const T *x = from->dtype == d ? from->as<T>() : nullptr, *by = elements<T>(weight);
        const int64_t *label = l.at->as<int64_t>(), ignored = l.ignored;
        const int size = from->itemsize();
        l.each(0, l.count(), [=, &from](int64_t i, int64_t place) {
            T y = 0, own = 0;
            if (label[i] != ignored) {
                own = by ? by[label[i]] : T(1);
                y = -(x ? x[place] : static_cast<T>(to_double(from->data + place * size, from->dtype))) * own;
            }
            loss[i] = y, w[i] = own;
        });
    });
    return as_tuple(narrowed(static_cast<Ref &&>(losses), logp.dtype), narrowed(static_cast<Ref &&>(weights), logp.dtype));
}

// Zeros of the classes' shape, with values[i] at the label of number i.
template <class Bits> void place(const Labels &l, const Bits *values, Bits *out) {
    const int64_t row = l.classes * l.length;
    parallel_for(l.samples, at_least_one(4 * NORM_GRAIN / at_least_one(row)), [&](int64_t begin, int64_t end) {
        memset(static_cast<void *>(out + begin * row), 0, sizeof(Bits) * static_cast<size_t>((end - begin) * row));
        l.each(begin * l.length, end * l.length, [&](int64_t i, int64_t place) {
            if (!l.skips(i)) out[place] = values[i];
        });
    });
}

Names<5> NLL_LOSS_GRAD{"nll_loss_grad", {"g", "target", "weight", "x_shape", "ignore_index"}, 2};
PyObject *nll_loss_grad(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyObject *a[5];
    arguments(NLL_LOSS_GRAD, args, n, names, a);
    if (!a[3]) fail(PyExc_TypeError, "nll_loss_grad: expected the argument x_shape.");
    Array &g = as_array(a[0]);
    need_float("nll_loss_grad", g);
    int64_t shape[MAX_NDIM];
    const int ndim = as_ints(a[3], shape, MAX_NDIM);
    const Labels l = labels_of("nll_loss_grad", a[1], a[4], ndim, shape);
    need_same_shape("nll_loss_grad", g, *l.at);
    const DType d = wide(g.dtype);
    Ref weight = weight_of("nll_loss_grad", a[2], d, l.classes), grad = plain(g, d), values = make_like(*l.at, d);
    with_real(d, [&](auto t) {
        using T = decltype(t);
        T *v = values->as<T>();
        weigh<T>(l, elements<T>(weight), v);
        for (int64_t i = 0; i < l.count(); i++) v[i] = -(grad->as<T>()[i] * v[i]);
    });
    values = narrowed(static_cast<Ref &&>(values), g.dtype);
    Ref out = make(g.dtype, ndim, shape);
    Unlocked free(out->size);
    if (out->itemsize() == 2)
        place(l, values->as<uint16_t>(), out->as<uint16_t>());
    else if (out->itemsize() == 4)
        place(l, values->as<float>(), out->as<float>());
    else
        place(l, values->as<double>(), out->as<double>());
    return out.release();
}

// ---- cross_entropy ----

enum Reduction { NONE, SUM, MEAN };
Reduction as_reduction(const char *name, PyObject *x) {
    const char *const known[] = {"none", "sum", "mean"};
    for (int i = 0; x && PyUnicode_Check(x) && i < 3; i++)
        if (PyUnicode_CompareWithASCIIString(x, known[i]) == 0) return static_cast<Reduction>(i);
    fail(PyExc_ValueError, "%s: expected reduction to be none, sum or mean; got %R.", name, x ? x : Py_None);
}

// How much of a label's loss is at the label; the rest is spread over all classes.
struct Smooth {
    double at_label, spread, weights;  // `spread` for each class; the sum of the classes' weights
};
template <class T> Smooth smooth_of(PyObject *smoothing, const T *weight, int64_t classes) {
    const double s = smoothing ? as_double(smoothing) : 0;
    double sum = static_cast<double>(classes);
    if (weight && s != 0) {
        sum = 0;
        for (int64_t c = 0; c < classes; c++) sum += static_cast<double>(weight[c]);
    }
    return {1 - s, s / static_cast<double>(at_least_one(classes)), sum};
}

void need_classes(const char *name, const Labels &l) {
    if (l.count() && !l.classes) fail(PyExc_RuntimeError, "%s: expected at least one class.", name);
}

template <class T> T sum_of(const T *x, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += static_cast<double>(x[i]);
    return static_cast<T>(sum);
}

template <class T>
void entropies(const Labels &l, const T *x, const T *weight, const Smooth &smooth, T *top, T *below, T *spread, T *losses) {
    const auto &k = softmax_kernels().of<T>();
    const int64_t row = l.classes * l.length;
    const auto pick = [&](int64_t begin, int64_t end) {
        l.each(begin, end, [&](int64_t i, int64_t place) {
            if (l.skips(i)) {
                losses[i] = 0;
                return;
            }
            const T w = weight ? weight[l.at->as<int64_t>()[i]] : T(1), low = x[place] - top[i];
            losses[i] = (below[i] - low) * w;
            if (spread)
                losses[i] = static_cast<T>(smooth.at_label * static_cast<double>(losses[i]) +
                    smooth.spread * (smooth.weights * static_cast<double>(below[i]) - static_cast<double>(spread[i])));
        });
    };
    over_lines(
        {l.samples, l.classes, l.length},
        [&](int64_t first, int64_t count) {
            k.rows_logs(x + first * row, weight, top + first, below + first, spread ? spread + first : nullptr, count, l.classes);
            pick(first, first + count);
        },
        [&](int64_t block, int64_t j, int64_t width) {
            const int64_t at = block * l.length + j;
            k.columns_logs(x + block * row + j, weight, top + at, below + at, spread ? spread + at : nullptr, l.classes, l.length,
                           width);
            pick(at, at + width);
        });
}

Names<6> CROSS_ENTROPY{"cross_entropy", {"x", "target", "weight", "reduction", "ignore_index", "smoothing"}, 2};
PyObject *cross_entropy(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyObject *a[6];
    arguments(CROSS_ENTROPY, args, n, names, a);
    Array &x = as_array(a[0]);
    need_float("cross_entropy", x);
    const Reduction reduction = as_reduction("cross_entropy", a[3]);
    const Labels l = labels_of("cross_entropy", a[1], a[4], x.ndim, x.shape());
    need_classes("cross_entropy", l);
    const DType d = wide(x.dtype);
    Ref from = plain(x, d), weight = weight_of("cross_entropy", a[2], d, l.classes);
    int64_t shape[MAX_NDIM];
    shape[0] = 2;
    for (int i = 0; i < l.at->ndim; i++) shape[i + 1] = l.at->shape()[i];
    Ref logs = make(d, l.at->ndim + 1, shape), losses = make(d, l.at->ndim, l.at->shape());
    with_real(d, [&](auto t) {
        using T = decltype(t);
        const Smooth smooth = smooth_of(a[5], elements<T>(weight), l.classes);
        Scratch<T> spread(static_cast<size_t>(smooth.spread != 0 ? l.count() : 1));
        T *top = logs->as<T>(), *loss = losses->as<T>();
        {
            Unlocked free(2 * x.size);
            entropies<T>(l, from->as<T>(), elements<T>(weight), smooth, top, top + l.count(),
                         smooth.spread != 0 ? static_cast<T *>(spread) : nullptr, loss);
        }
        if (reduction == NONE) return;
        T total = sum_of(loss, l.count());
        if (reduction == MEAN) {
            weigh<T>(l, elements<T>(weight), loss);
            total /= sum_of(loss, l.count());
        }
        losses = make(d, 0, nullptr);
        *losses->as<T>() = total;
    });
    return as_tuple(narrowed(static_cast<Ref &&>(losses), x.dtype), logs);
}

// What a label's line is multiplied by, what is taken off at each class, and what at the label.
template <class T>
void pulls(const Labels &l, const T *weight, const Smooth &smooth, Reduction reduction, const T *g, T *scale, T *share, T *at_label) {
    weigh<T>(l, weight, at_label);
    const double one = reduction == NONE ? 0 : static_cast<double>(*g) / (reduction == MEAN ? static_cast<double>(sum_of(at_label, l.count())) : 1);
    for (int64_t i = 0; i < l.count(); i++) {
        const double pulled = l.skips(i) ? 0 : reduction == NONE ? static_cast<double>(g[i]) : one;
        const double label = pulled * static_cast<double>(at_label[i]) * smooth.at_label, off = pulled * smooth.spread;
        at_label[i] = static_cast<T>(label);
        scale[i] = static_cast<T>(label + off * smooth.weights);
        share[i] = static_cast<T>(off);
    }
}

template <class T>
void pull_all(const Labels &l, const T *x, const T *weight, const T *top, const T *below, const T *scale, const T *share,
              const T *at_label, T *out) {
    const auto &k = softmax_kernels().of<T>();
    const int64_t row = l.classes * l.length;
    const auto take = [&](int64_t begin, int64_t end) {
        l.each(begin, end, [&](int64_t i, int64_t place) {
            if (!l.skips(i)) out[place] -= at_label[i];
        });
    };
    over_lines(
        {l.samples, l.classes, l.length},
        [&](int64_t first, int64_t count) {
            k.rows_pulled(x + first * row, weight, top + first, below + first, scale + first, share ? share + first : nullptr,
                          out + first * row, count, l.classes);
            take(first, first + count);
        },
        [&](int64_t block, int64_t j, int64_t width) {
            const int64_t at = block * l.length + j;
            k.columns_pulled(x + block * row + j, weight, top + at, below + at, scale + at, share ? share + at : nullptr,
                             out + block * row + j, l.classes, l.length, width);
            take(at, at + width);
        });
}

Names<8> CROSS_ENTROPY_GRAD{
    "cross_entropy_grad", {"g", "x", "target", "weight", "logs", "reduction", "ignore_index", "smoothing"}, 6};
PyObject *cross_entropy_grad(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyObject *a[8];
    arguments(CROSS_ENTROPY_GRAD, args, n, names, a);
    Array &g = as_array(a[0]), &x = as_array(a[1]), &logs = as_array(a[4]);
    need_float("cross_entropy_grad", g);
    need_float("cross_entropy_grad", x);
    const Reduction reduction = as_reduction("cross_entropy_grad", a[5]);
    const Labels l = labels_of("cross_entropy_grad", a[2], a[6], x.ndim, x.shape());
    need_classes("cross_entropy_grad", l);
    const DType d = wide(x.dtype);
    if (g.size != (reduction == NONE ? l.count() : 1) || logs.size != 2 * l.count())
        fail(PyExc_RuntimeError, "cross_entropy_grad: expected a gradient and two logarithms for each label.");
    Ref from = plain(x, d), weight = weight_of("cross_entropy_grad", a[3], d, l.classes), grad = plain(g, d), kept = plain(logs, d);
    Ref out = make_like(*from);
    with_real(d, [&](auto t) {
        using T = decltype(t);
        const Smooth smooth = smooth_of(a[7], elements<T>(weight), l.classes);
        const size_t count = static_cast<size_t>(at_least_one(l.count()));
        Scratch<T> scale(count), share(count), at_label(count);
        Unlocked free(2 * x.size);
        pulls<T>(l, elements<T>(weight), smooth, reduction, grad->as<T>(), scale, share, at_label);
        pull_all<T>(l, from->as<T>(), elements<T>(weight), kept->as<T>(), kept->as<T>() + l.count(), scale,
                    smooth.spread != 0 ? static_cast<T *>(share) : nullptr, at_label, out->as<T>());
    });
    return narrowed(static_cast<Ref &&>(out), x.dtype).release();
}

}  // namespace

const Method loss_methods[] = {
    MORTICE_METHOD("nll_loss", nll_loss),
    MORTICE_METHOD("nll_loss_grad", nll_loss_grad),
    MORTICE_METHOD("cross_entropy", cross_entropy),
    MORTICE_METHOD("cross_entropy_grad", cross_entropy_grad),
    {},
};

}  // namespace mortice
