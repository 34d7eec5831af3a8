// Normalisation of channels (axis 1) by the batch or by given statistics, with the gradients.
#include <cmath>
#include <cstring>

#include "kernels/channels.hpp"
#include "norm.hpp"

namespace mortice {

namespace {

ChannelShape channels_of(const char *name, const Array &x) {
    if (x.ndim < 2) fail(PyExc_RuntimeError, "%s: expected samples and channels; got %d dimensions.", name, x.ndim);
    return {x.shape()[0], x.shape()[1], product(x.shape(), 2, x.ndim)};
}

// How many channels make a part of the work: enough elements, and whole cache lines of channels that are columns.
int64_t channel_grain(ChannelShape s) {
    const int64_t work = at_least_one(NORM_GRAIN / at_least_one(s.samples * s.length));
    const int64_t line = SHORT_CHANNEL / at_least_one(s.length);
    return work > line ? work : line;
}

Ref parameter(const char *name, const char *what, PyObject *x, DType d, int64_t channels) {
    Ref found = plain_or_none(x, d);
    need_size(name, what, found, channels);
    return found;
}

double eps_of(PyObject *x) { return x ? as_double(x) : 1e-5; }

template <class T> T *room(Ref &x) { return x ? x->as<T>() : nullptr; }

Ref zeros(DType d, int64_t n) { return make_zeros(d, 1, &n); }

// ---- by the batch ----

struct Operands {
    Array &g;
    ChannelShape shape;
    DType d;
    Ref grad, x;
};
Operands operands_of(const char *name, PyObject *g_, PyObject *x_) {
    Array &g = as_array(g_), &x = as_array(x_);
    need_float(name, g);
    need_float(name, x);
    need_same_shape(name, g, x);
    const DType d = wide(g.dtype);
    return {g, channels_of(name, x), d, plain(g, d), plain(x, d)};
}

// The gradients; mean and var are those that the forward kept, or are computed again.
Grads grads_of(const char *name, PyObject *g, PyObject *x, PyObject *weight_, PyObject *mean_, PyObject *var_, double eps,
               Needs needs) {
    Operands o = operands_of(name, g, x);
    const ChannelShape s = o.shape;
    Ref weight = parameter(name, "weight", weight_, o.d, s.channels), mean = plain_or_none(mean_, o.d),
        var = plain_or_none(var_, o.d);
    Grads out;
    if (o.g.size == 0) {
        if (needs.x) out.x = make_like(*o.x);
        if (needs.weight) out.weight = zeros(o.d, s.channels);
        if (needs.bias) out.bias = zeros(o.d, s.channels);
        return out;
    }
    const bool again = !mean || !var || mean->size != s.channels || var->size != s.channels;
    Ref normal;
    if (again) {
        mean = make(o.d, {s.channels});
        var = make(o.d, {s.channels});
        normal = make_like(*o.x);
    }
    if (needs.x) out.x = make_like(*o.x);
    if (needs.weight) out.weight = make(o.d, {s.channels});
    if (needs.bias) out.bias = make(o.d, {s.channels});
    Unlocked free(2 * o.x->size);
    with_real(o.d, [&](auto t) {
        using T = decltype(t);
        const auto &k = channel_kernels().of<T>();
        parallel_for(s.channels, channel_grain(s), [&](int64_t begin, int64_t end) {
            if (again)
                k.forward(o.x->as<T>(), nullptr, nullptr, normal->as<T>(), mean->as<T>(), var->as<T>(), s, begin, end, eps);
            k.backward(o.grad->as<T>(), o.x->as<T>(), elements<T>(weight), mean->as<T>(), var->as<T>(), room<T>(out.x),
                       room<T>(out.weight), room<T>(out.bias), s, begin, end, eps);
        });
    });
    return out;
}

PyObject *one(Ref out, PyObject *g) { return narrowed(static_cast<Ref &&>(out), as_array(g).dtype).release(); }

Names<4> BATCH_NORM{"batch_norm", {"x", "weight", "bias", "eps"}, 1};
Names<6> BATCH_NORM_GRAD{"batch_norm_grad", {"g", "x", "weight", "mean", "var", "eps"}, 2};
Names<5> BATCH_NORM_WEIGHT_GRAD{"batch_norm_weight_grad", {"g", "x", "mean", "var", "eps"}, 2};
Names<7> BATCH_NORM_GRADS{"batch_norm_grads", {"g", "x", "weight", "mean", "var", "eps", "needs"}, 2};
Names<6> BATCH_NORM_EVAL{"batch_norm_eval", {"x", "mean", "var", "weight", "bias", "eps"}, 3};
Names<4> BATCH_NORM_EVAL_GRAD{"batch_norm_eval_grad", {"g", "var", "weight", "eps"}, 2};
Names<5> BATCH_NORM_EVAL_WEIGHT_GRAD{"batch_norm_eval_weight_grad", {"g", "x", "mean", "var", "eps"}, 4};

// ---- by given statistics ----

// weight / sqrt(var + eps) for each channel.
template <class T> void scales_of(const Ref &var, const Ref &weight, double eps, T *out) {
    for (int64_t c = 0; c < var->size; c++) {
        const double rstd = 1 / std::sqrt(static_cast<double>(var->as<T>()[c]) + eps);
        out[c] = static_cast<T>(weight ? rstd * static_cast<double>(weight->as<T>()[c]) : rstd);
    }
}

// The numbers of channels, once for each element of a sample.
template <class T> const T *repeated(const T *x, ChannelShape s, T *room) {
    if (!x) return nullptr;
    for (int64_t c = 0; c < s.channels; c++)
        for (int64_t i = 0; i < s.length; i++) room[c * s.length + i] = x[c];
    return room;
}

// out = (x - mean) * scale + bias with numbers of the channels.
template <class T> void apply(const T *x, const T *mean, const T *scale, const T *bias, T *out, ChannelShape s) {
    const auto &k = channel_kernels().of<T>();
    if (s.length >= SHORT_CHANNEL) {
        parallel_for(s.samples * s.channels, at_least_one(NORM_GRAIN / s.length), [&](int64_t begin, int64_t end) {
            k.apply(x, mean, scale, bias, out, s, begin, end);
        });
        return;
    }
    const int64_t width = s.channels * s.length;
    Scratch<T> room(s.length > 1 ? static_cast<size_t>(3 * width) : 1);
    if (s.length > 1) {
        mean = repeated<T>(mean, s, room);
        scale = repeated<T>(scale, s, room + width);
        bias = repeated<T>(bias, s, room + 2 * width);
    }
    const ChannelShape flat{s.samples, width, 1};
    parallel_for(s.samples, at_least_one(NORM_GRAIN / at_least_one(width)), [&](int64_t begin, int64_t end) {
        k.apply_columns(x, mean, scale, bias, out, flat, begin, end);
    });
}

PyObject *evaluated(const char *name, PyObject *x_, PyObject *mean_, PyObject *var_, PyObject *weight_, PyObject *bias_,
                    double eps) {
    Array &x = as_array(x_);
    need_float(name, x);
    const ChannelShape s = channels_of(name, x);
    const DType d = wide(x.dtype);
    Ref from = plain(x, d), mean = parameter(name, "mean", mean_, d, s.channels),
        var = parameter(name, "var", var_, d, s.channels), weight = parameter(name, "weight", weight_, d, s.channels),
        bias = parameter(name, "bias", bias_, d, s.channels);
    if (!var) fail(PyExc_TypeError, "%s: expected an array of variances; got None.", name);
    Ref out = make_like(*from), scale = make(d, {s.channels});
    if (x.size) {
        Unlocked free(x.size);
        with_real(d, [&](auto t) {
            using T = decltype(t);
            scales_of<T>(var, weight, eps, scale->as<T>());
            apply<T>(from->as<T>(), elements<T>(mean), scale->as<T>(), elements<T>(bias), out->as<T>(), s);
        });
    }
    return narrowed(static_cast<Ref &&>(out), x.dtype).release();
}

}  // namespace

PyObject *batch_norm(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyObject *a[4];
    arguments(BATCH_NORM, args, n, names, a);
    Array &x = as_array(a[0]);
    need_float("batch_norm", x);
    const ChannelShape s = channels_of("batch_norm", x);
    const DType d = wide(x.dtype);
    const double eps = eps_of(a[3]);
    Ref from = plain(x, d), weight = parameter("batch_norm", "weight", a[1], d, s.channels),
        bias = parameter("batch_norm", "bias", a[2], d, s.channels);
    Ref out = make_like(*from), mean, var;
    if (x.size == 0) {
        mean = zeros(d, s.channels);
        var = zeros(d, s.channels);
    } else {
        mean = make(d, {s.channels});
        var = make(d, {s.channels});
        Unlocked free(x.size);
        with_real(d, [&](auto t) {
            using T = decltype(t);
            const auto &k = channel_kernels().of<T>();
            parallel_for(s.channels, channel_grain(s), [&](int64_t begin, int64_t end) {
                k.forward(from->as<T>(), elements<T>(weight), elements<T>(bias), out->as<T>(), mean->as<T>(), var->as<T>(), s,
                          begin, end, eps);
            });
        });
    }
    out = narrowed(static_cast<Ref &&>(out), x.dtype);
    return as_tuple(out, mean, var);
}

PyObject *batch_norm_grad(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyObject *a[6];
    arguments(BATCH_NORM_GRAD, args, n, names, a);
    return one(grads_of("batch_norm_grad", a[0], a[1], a[2], a[3], a[4], eps_of(a[5]), {true, false, false}).x, a[0]);
}

PyObject *batch_norm_weight_grad(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyObject *a[5];
    arguments(BATCH_NORM_WEIGHT_GRAD, args, n, names, a);
    return one(grads_of("batch_norm_weight_grad", a[0], a[1], nullptr, a[2], a[3], eps_of(a[4]), {false, true, false}).weight,
               a[0]);
}

PyObject *batch_norm_grads(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyObject *a[7];
    arguments(BATCH_NORM_GRADS, args, n, names, a);
    if (!a[6]) fail(PyExc_TypeError, "batch_norm_grads: expected the argument needs.");
    Grads out = grads_of("batch_norm_grads", a[0], a[1], a[2], a[3], a[4], eps_of(a[5]), as_needs(a[6], 3));
    return grads_tuple(out, 3, as_array(a[0]).dtype);
}

PyObject *batch_norm_eval(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyObject *a[6];
    arguments(BATCH_NORM_EVAL, args, n, names, a);
    return evaluated("batch_norm_eval", a[0], a[1], a[2], a[3], a[4], eps_of(a[5]));
}

PyObject *batch_norm_eval_grad(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyObject *a[4];
    arguments(BATCH_NORM_EVAL_GRAD, args, n, names, a);
    return evaluated("batch_norm_eval_grad", a[0], nullptr, a[1], a[2], nullptr, eps_of(a[3]));
}

// The sums of `batch_norm_weight_grad`, about the given mean.
PyObject *batch_norm_eval_weight_grad(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyObject *a[5];
    arguments(BATCH_NORM_EVAL_WEIGHT_GRAD, args, n, names, a);
    const char *name = "batch_norm_eval_weight_grad";
    for (int i = 2; i < 4; i++) {
        Array &x = as_array(a[1]), &statistic = as_array(a[i]);
        if (statistic.size != channels_of(name, x).channels) fail(PyExc_RuntimeError, "%s: expected statistics of each channel.", name);
    }
    return one(grads_of(name, a[0], a[1], nullptr, a[2], a[3], eps_of(a[4]), {false, true, false}).weight, a[0]);
}

}  // namespace mortice
