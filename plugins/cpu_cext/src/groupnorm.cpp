// Normalisation of groups of channels of each sample, with the gradients.
#include <cstring>

#include "kernels/channels.hpp"
#include "norm.hpp"

namespace mortice {

namespace {

struct Groups {
    ChannelShape shape;
    int64_t groups, each;  // of channels
    int64_t rows() const { return shape.samples * groups; }
    int64_t row() const { return each * shape.length; }
    // Whether weights are taken as one for each element of a row, since there are few of a channel.
    bool flat(bool weighted) const { return !weighted || shape.length < SHORT_CHANNEL; }
};

Groups groups_of(const char *name, const Array &x, PyObject *groups_) {
    if (x.ndim < 2) fail(PyExc_RuntimeError, "%s: expected samples and channels; got %d dimensions.", name, x.ndim);
    if (!groups_) fail(PyExc_TypeError, "%s: expected the argument groups.", name);
    const int64_t groups = as_int(groups_), channels = x.shape()[1];
    if (groups < 1 || channels % groups)
        fail(PyExc_RuntimeError, "%s: expected groups to divide %lld channels; got %lld.", name, static_cast<long long>(channels),
             static_cast<long long>(groups));
    return {{x.shape()[0], channels, product(x.shape(), 2, x.ndim)}, groups, channels / groups};
}

double eps_of(PyObject *x) { return x ? as_double(x) : 1e-5; }

// An array of the channels' numbers, once for each element of a sample.
Ref repeated(const Ref &x, ChannelShape s) {
    Ref out = make(x->dtype, {s.channels * s.length});
    with_real(x->dtype, [&](auto t) {
        using T = decltype(t);
        for (int64_t c = 0; c < s.channels; c++)
            for (int64_t i = 0; i < s.length; i++) out->as<T>()[c * s.length + i] = x->as<T>()[c];
    });
    return out;
}
Ref folded(const Ref &x, ChannelShape s) {
    Ref out = make(x->dtype, {s.channels});
    with_real(x->dtype, [&](auto t) {
        using T = decltype(t);
        for (int64_t c = 0; c < s.channels; c++) {
            T sum = 0;
            for (int64_t i = 0; i < s.length; i++) sum += x->as<T>()[c * s.length + i];
            out->as<T>()[c] = sum;
        }
    });
    return out;
}

Ref parameter(const char *name, const char *what, PyObject *x, DType d, const Groups &at) {
    Ref found = plain_or_none(x, d);
    need_size(name, what, found, at.shape.channels);
    return found && at.shape.length > 1 && at.flat(true) ? repeated(found, at.shape) : static_cast<Ref &&>(found);
}

Names<5> GROUP_NORM{"group_norm", {"x", "weight", "bias", "groups", "eps"}, 1};
Names<7> GROUP_NORM_GRAD{"group_norm_grad", {"g", "x", "weight", "mean", "rstd", "groups", "eps"}, 2};
Names<6> GROUP_NORM_WEIGHT_GRAD{"group_norm_weight_grad", {"g", "x", "mean", "rstd", "groups", "eps"}, 2};
Names<8> GROUP_NORM_GRADS{"group_norm_grads", {"g", "x", "weight", "mean", "rstd", "groups", "eps", "needs"}, 2};

template <class T> T *room(Ref &x) { return x ? x->as<T>() : nullptr; }

// Gradients where weights go with the channels: also the sums of each sample's channels, which those of weight and bias are of.
template <class T>
void long_grads(const T *g, const T *x, const T *weight, const T *mean, const T *rstd, Grads &out, const Groups &at) {
    const ChannelShape s = at.shape;
    const int64_t all = s.samples * s.channels;
    Scratch<T> sums(out.bias ? static_cast<size_t>(all) : 1), products(out.weight ? static_cast<size_t>(all) : 1);
    const auto &k = channel_kernels().of<T>();
    parallel_for(at.rows(), at_least_one(NORM_GRAIN / at_least_one(at.row())), [&](int64_t begin, int64_t end) {
        k.group_backward(g, x, weight, mean, rstd, room<T>(out.x), out.bias ? sums.get() : nullptr,
                         out.weight ? products.get() : nullptr, s, at.each, begin, end);
    });
    for (int64_t c = 0; c < s.channels; c++) {
        double with_x = 0, sum = 0;
        for (int64_t n = 0; n < s.samples; n++) {
            const int64_t i = n * s.channels + c;
            if (out.weight) with_x += static_cast<double>(products[i]) * static_cast<double>(rstd[i / at.each]);
            if (out.bias) sum += static_cast<double>(sums[i]);
        }
        if (out.weight) out.weight->as<T>()[c] = static_cast<T>(with_x);
        if (out.bias) out.bias->as<T>()[c] = static_cast<T>(sum);
    }
}

Grads grads_of(const char *name, PyObject *g_, PyObject *x_, PyObject *weight_, PyObject *mean_, PyObject *rstd_,
               PyObject *groups_, double eps, Needs needs) {
    Array &g = as_array(g_), &x = as_array(x_);
    need_float(name, g);
    need_float(name, x);
    need_same_shape(name, g, x);
    const Groups at = groups_of(name, x, groups_);
    const DType d = wide(g.dtype);
    const bool flat = at.flat(weight_ != nullptr && weight_ != Py_None) && at.flat(needs.weight || needs.bias);
    Ref grad = plain(g, d), from = plain(x, d), weight = parameter(name, "weight", weight_, d, at),
        mean = plain_or_none(mean_, d), rstd = plain_or_none(rstd_, d);
    const bool again = !mean || !rstd || mean->size != at.rows() || rstd->size != at.rows();
    if (again) {
        mean = make(d, {at.rows()});
        rstd = make(d, {at.rows()});
    }
    const int64_t width = flat ? at.shape.channels * at.shape.length : at.shape.channels;
    Grads out;
    if (needs.x) out.x = make_like(*from);
    if (needs.weight) out.weight = make_zeros(d, 1, &width);
    if (needs.bias) out.bias = make_zeros(d, 1, &width);
    {
        Unlocked free(2 * x.size);
        with_real(d, [&](auto t) {
            using T = decltype(t);
            const T *p = from->as<T>();
            T *m = mean->as<T>(), *s = rstd->as<T>();
            if (again) normalise_rows<T>(p, nullptr, nullptr, nullptr, m, s, at.rows(), at.row(), 1, eps);
            if (flat)
                row_grads<T>(grad->as<T>(), p, elements<T>(weight), m, s, room<T>(out.x), room<T>(out.weight), room<T>(out.bias),
                             at.rows(), at.row(), at.groups);
            else
                long_grads<T>(grad->as<T>(), p, elements<T>(weight), m, s, out, at);
        });
    }
    if (flat && at.shape.length != 1) {
        if (out.weight) out.weight = folded(out.weight, at.shape);
        if (out.bias) out.bias = folded(out.bias, at.shape);
    }
    return out;
}

PyObject *one(Ref out, PyObject *g) { return narrowed(static_cast<Ref &&>(out), as_array(g).dtype).release(); }

}  // namespace

PyObject *group_norm(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyObject *a[5];
    arguments(GROUP_NORM, args, n, names, a);
    Array &x = as_array(a[0]);
    const char *name = "group_norm";
    need_float(name, x);
    const Groups at = groups_of(name, x, a[3]);
    const DType d = wide(x.dtype);
    const double eps = eps_of(a[4]);
    Ref from = plain(x, d), weight = parameter(name, "weight", a[1], d, at), bias = parameter(name, "bias", a[2], d, at);
    Ref out = make_like(*from), mean = make(d, {at.shape.samples, at.groups}), rstd = make(d, {at.shape.samples, at.groups});
    {
        Unlocked free(x.size);
        with_real(d, [&](auto t) {
            using T = decltype(t);
            T *m = mean->as<T>(), *s = rstd->as<T>();
            if (x.size == 0 || at.flat(weight || bias)) {
                normalise_rows<T>(from->as<T>(), elements<T>(weight), elements<T>(bias), out->as<T>(), m, s, at.rows(), at.row(),
                                  at.groups, eps);
                return;
            }
            const auto &k = channel_kernels().of<T>();
            parallel_for(at.rows(), at_least_one(NORM_GRAIN / at_least_one(at.row())), [&](int64_t begin, int64_t end) {
                k.group_forward(from->as<T>(), elements<T>(weight), elements<T>(bias), out->as<T>(), m, s, at.shape, at.each,
                                begin, end, eps);
            });
        });
    }
    out = narrowed(static_cast<Ref &&>(out), x.dtype);
    return as_tuple(out, mean, rstd);
}

PyObject *group_norm_grad(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyObject *a[7];
    arguments(GROUP_NORM_GRAD, args, n, names, a);
    return one(grads_of("group_norm_grad", a[0], a[1], a[2], a[3], a[4], a[5], eps_of(a[6]), {true, false, false}).x, a[0]);
}

PyObject *group_norm_weight_grad(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyObject *a[6];
    arguments(GROUP_NORM_WEIGHT_GRAD, args, n, names, a);
    return one(grads_of("group_norm_weight_grad", a[0], a[1], nullptr, a[2], a[3], a[4], eps_of(a[5]), {false, true, false}).weight,
               a[0]);
}

PyObject *group_norm_grads(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyObject *a[8];
    arguments(GROUP_NORM_GRADS, args, n, names, a);
    if (!a[7]) fail(PyExc_TypeError, "group_norm_grads: expected the argument needs.");
    Grads out = grads_of("group_norm_grads", a[0], a[1], a[2], a[3], a[4], a[5], eps_of(a[6]), as_needs(a[7], 3));
    return grads_tuple(out, 3, as_array(a[0]).dtype);
}

}  // namespace mortice
