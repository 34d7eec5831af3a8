// What the files of the norm family share: operands in a type that kernels have, and how much work is worth a thread.
#pragma once
#include "call.hpp"
#include "parallel.hpp"

namespace mortice {

constexpr int64_t NORM_GRAIN = 1 << 15;  // elements of a part of the work

// The dtype that floating point numbers of dtype d are computed in.
inline DType wide(DType d) { return is_half(d) ? F32 : d; }

inline void need_float(const char *name, const Array &x) {
    if (!is_float(x.dtype)) fail(PyExc_TypeError, "%s: expected floating point numbers; got %s.", name, DTYPE_NAMES[x.dtype]);
}
// x as a row-major array of dtype d.
inline Ref plain(Array &x, DType d) {
    if (x.dtype == d) return contiguous(x);
    Ref y = converted(x, d);
    return y->contiguous ? static_cast<Ref &&>(y) : contiguous(*y);
}
inline Ref plain_or_none(PyObject *x, DType d) {
    Array *given = as_optional(x);
    return given ? plain(*given, d) : Ref();
}
// A result in the dtype that its operand came in.
inline Ref narrowed(Ref out, DType d) { return out->dtype == d ? static_cast<Ref &&>(out) : converted(*out, d); }

template <class T> const T *elements(const Ref &x) { return x ? x->as<T>() : nullptr; }

inline void need_size(const char *name, const char *what, const Ref &x, int64_t size) {
    if (x && x->size != size)
        fail(PyExc_RuntimeError, "%s: expected %lld elements of %s; got %lld.", name, static_cast<long long>(size), what,
             static_cast<long long>(x->size));
}
inline void need_same_shape(const char *name, const Array &x, const Array &y) {
    if (!same_shape(x, y)) fail(PyExc_RuntimeError, "%s: expected operands of one shape.", name);
}

inline int64_t at_least_one(int64_t n) { return n > 1 ? n : 1; }
inline int64_t product(const int64_t *shape, int from, int to) {
    int64_t n = 1;
    for (int i = from; i < to; i++) n *= shape[i];
    return n;
}

// Call f with a float or a double, as d says.
template <class F> inline void with_real(DType d, F &&f) {
    if (d == F64)
        f(double{});
    else
        f(float{});
}

// ---- lines: rows where they lie along the last axis, strips of columns elsewhere ----

constexpr int64_t STRIP_COLUMNS = 64;  // of a part of the work at least: whole cache lines

struct Lines {
    int64_t outer, n, inner;  // lines of n elements, `inner` apart
};

// Call `rows(first, count)` for lines along the last axis, else `strip(offset, width)` with the first element of a strip.
template <class Rows, class Strip> inline void over_lines(const Lines &l, Rows &&rows, Strip &&strip) {
    const int64_t length = at_least_one(l.n);
    if (l.inner == 1) {
        parallel_for(l.outer, at_least_one(NORM_GRAIN / length), [&](int64_t begin, int64_t end) { rows(begin, end - begin); });
        return;
    }
    int64_t width = at_least_one(NORM_GRAIN / length) / STRIP_COLUMNS * STRIP_COLUMNS;
    if (width < STRIP_COLUMNS) width = STRIP_COLUMNS;
    if (width > l.inner) width = l.inner;
    const int64_t strips = (l.inner + width - 1) / width;
    parallel_for(l.outer * strips, at_least_one(NORM_GRAIN / (length * width)), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) {
            const int64_t j = i % strips * width;
            strip(i / strips, j, l.inner - j < width ? l.inner - j : width);
        }
    });
}

// Gradients that a kernel is asked for; what is not wanted stays empty.
struct Grads {
    Ref x, weight, bias;
};
// The gradients of rows of n elements normalised with weights for each of `groups` that rows take in turn; those of weight
// and bias have groups * n elements. Without means the rows were divided by their root mean square.
template <class T>
void row_grads(const T *g, const T *x, const T *weight, const T *mean, const T *rstd, T *d_x, T *d_weight, T *d_bias,
               int64_t rows, int64_t n, int64_t groups);
// Statistics of rows, and the rows normalised where `out` is not nullptr.
template <class T>
void normalise_rows(const T *x, const T *weight, const T *bias, T *out, T *mean, T *rstd, int64_t rows, int64_t n,
                    int64_t groups, double eps);

// Which gradients a tuple of bools asks for.
struct Needs {
    bool x, weight, bias;
};
Needs as_needs(PyObject *needs, int count);
// (x, weight, bias) of a tuple, `count` of them, None for what is empty; each in dtype d.
PyObject *grads_tuple(Grads &grads, int count, DType d);

// The rows of the method table that are in files of their own.
#define MORTICE_BODY(name) PyObject *name(PyObject *const *args, Py_ssize_t nargs, PyObject *names)
MORTICE_BODY(softmax);
MORTICE_BODY(softmax_grad);
MORTICE_BODY(log_softmax);
MORTICE_BODY(log_softmax_grad);
MORTICE_BODY(logsumexp);
MORTICE_BODY(batch_norm);
MORTICE_BODY(batch_norm_grad);
MORTICE_BODY(batch_norm_weight_grad);
MORTICE_BODY(batch_norm_grads);
MORTICE_BODY(batch_norm_eval);
MORTICE_BODY(batch_norm_eval_grad);
MORTICE_BODY(batch_norm_eval_weight_grad);
MORTICE_BODY(group_norm);
MORTICE_BODY(group_norm_grad);
MORTICE_BODY(group_norm_weight_grad);
MORTICE_BODY(group_norm_grads);

}  // namespace mortice
