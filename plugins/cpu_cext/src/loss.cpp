// Picking by label: nll_loss and its gradient. Labels are checked before anything is read or written at them.
#include <cstring>

#include "families.hpp"
#include "norm.hpp"

namespace mortice {

namespace {

struct Labels {
    Ref at;
    int64_t samples, classes, length, ignored;
    int64_t count() const { return samples * length; }
    // Where the label of number i is in (samples, classes, length).
    int64_t place(int64_t i) const { return ((i / length) * classes + at->as<int64_t>()[i]) * length + i % length; }
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

template <class T> T widened(const char *at, DType d) {
    return d == F32 || d == F64 ? *reinterpret_cast<const T *>(at) : static_cast<T>(to_double(at, d));
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
        weigh<T>(l, elements<T>(weight), w);
        const int size = from->itemsize();
        for (int64_t i = 0; i < l.count(); i++)
            loss[i] = l.skips(i) ? T(0) : -widened<T>(from->data + l.place(i) * size, from->dtype) * (weight ? w[i] : T(1));
    });
    PyObject *tuple = PyTuple_New(2);
    if (!tuple) throw Failed{};
    Own<> all(tuple);
    PyTuple_SET_ITEM(tuple, 0, narrowed(static_cast<Ref &&>(losses), logp.dtype).release());
    PyTuple_SET_ITEM(tuple, 1, narrowed(static_cast<Ref &&>(weights), logp.dtype).release());
    return all.release();
}

// Zeros of the classes' shape, with values[i] at the label of number i.
template <class Bits> void place(const Labels &l, const Bits *values, Bits *out) {
    const int64_t row = l.classes * l.length;
    parallel_for(l.samples, at_least_one(4 * NORM_GRAIN / at_least_one(row)), [&](int64_t begin, int64_t end) {
        memset(static_cast<void *>(out + begin * row), 0, sizeof(Bits) * static_cast<size_t>((end - begin) * row));
        for (int64_t i = begin * l.length; i < end * l.length; i++)
            if (!l.skips(i)) out[l.place(i)] = values[i];
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

}  // namespace

PyMethodDef loss_methods[] = {
    MORTICE_METHOD("nll_loss", nll_loss),
    MORTICE_METHOD("nll_loss_grad", nll_loss_grad),
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace mortice
