// Reductions over axes: sum, nansum, prod, max, min, any, all, count_nonzero, mean, var, std, logsumexp, argmax, argmin.
#include <math.h>
#include <string.h>
#include <algorithm>

#include "families.hpp"
#include "parallel.hpp"
#include "reduce_walk.hpp"

namespace mortice {
namespace {

enum Op : uint8_t { SUM, NANSUM, PROD, MAX, MIN, ANY, ALL, COUNT, MEAN, VAR, STD, LOGSUMEXP, ARGMAX, ARGMIN };
const char *const NAMES[] = {"sum", "nansum", "prod", "max", "min", "any", "all", "count_nonzero", "mean", "var", "std",
                             "logsumexp", "argmax", "argmin"};

// ---- what each does with elements ----

// Elements that a kernel reads as they are, or what they are widened to.
DType staged(Recipe &r, DType d) {
    r.stage = reduce_kernels().widen[d];
    return !r.stage ? d : is_half(d) ? F32 : I32;
}

template <class T> void extreme_identity(Recipe &r, bool largest) {
    T value;
    if constexpr (T(0.5) != T(0)) value = static_cast<T>(largest ? HUGE_VAL : -HUGE_VAL);
    else if constexpr (T(-1) < T(0)) value = static_cast<T>((T(1) << (sizeof(T) * 8 - 1)) ^ (largest ? T(-1) : T(0)));
    else value = largest ? T(-1) : T(0);
    memcpy(r.identity, &value, sizeof value);
}
void set_extreme_identity(Recipe &r, DType d, bool largest) {
    switch (d) {
        case U8: return extreme_identity<uint8_t>(r, largest);
        case U32: return extreme_identity<uint32_t>(r, largest);
        case U64: return extreme_identity<uint64_t>(r, largest);
        case I32: return extreme_identity<int32_t>(r, largest);
        case I64: return extreme_identity<int64_t>(r, largest);
        case F32: return extreme_identity<float>(r, largest);
        default: return extreme_identity<double>(r, largest);
    }
}
void set_one(Recipe &r, DType d) {
    Scalar one = scalar_of(1, d);
    memcpy(r.identity, one.bytes, sizeof one.bytes);
}

// Bytes that are 0 or 1: any is their max, all is their min.
void truth_recipe(Recipe &r, DType d, bool all) {
    r.stage = d == BOOL ? nullptr : reduce_kernels().truth[d];
    r.staged_size = r.acc_size = 1;
    r.unit = r.merge = all ? reduce_kernels().min[U8] : reduce_kernels().max[U8];
    r.identity[0] = all;
}

// Returns the dtype of the accumulators, where they are single numbers.
DType single_recipe(Recipe &r, Op op, DType d) {
    const ReduceKernels &k = reduce_kernels();
    const Reducer *table = op == PROD ? k.prod : op == MAX ? k.max : op == MIN ? k.min : k.sum;
    DType acc = d;
    bool bytes = d == U8 && (op == MAX || op == MIN);
    if (!bytes) acc = staged(r, d);
    if (op == NANSUM) r.stage = reduce_kernels().known[d];
    r.staged_size = r.acc_size = ITEMSIZE[acc];
    r.unit = r.merge = table[acc];
    r.cascade = table == k.sum && is_float(acc);
    if (op == PROD) set_one(r, acc);
    if (op == MAX || op == MIN) set_extreme_identity(r, acc, op == MIN);
    return acc;
}

void wide_recipe(Recipe &r, Op op, DType d) {
    const ReduceMoreKernels &k = reduce_more_kernels();
    DType acc = staged(r, d);
    r.staged_size = ITEMSIZE[acc];
    if (op == ARGMAX || op == ARGMIN) {
        r.unit = (op == ARGMAX ? k.argmax : k.argmin)[acc];
        r.merge = (op == ARGMAX ? k.merge_argmax : k.merge_argmin)[acc];
        r.indexed = true;
        r.acc_size = sizeof(Best);
        int64_t none = -1;
        memcpy(r.identity + offsetof(Best, index), &none, sizeof none);
    } else if (op == LOGSUMEXP) {
        r.unit = k.logsumexp[acc == F64], r.merge = k.merge_logsumexp;
        r.acc_size = sizeof(Exponents);
        double none = -HUGE_VAL;
        memcpy(r.identity, &none, sizeof none);
    } else {
        r.unit = k.var[acc == F64], r.merge = k.merge_var;
        r.acc_size = sizeof(Moments);
    }
}

// Set up for elements of dtype d; n of them make a result.
void set_up(Reduction &job, Op op, DType d, DType out, int64_t n) {
    Recipe &r = job.recipe;
    memset(r.identity, 0, sizeof r.identity);
    r.in_size = ITEMSIZE[d];
    Finish &f = job.finish;
    f.how = Finish::COPY;
    f.out = out;
    switch (op) {
        case ANY: case ALL:
            return truth_recipe(r, d, op == ALL);
        case COUNT:
            truth_recipe(r, d, false);
            r.unit = reduce_kernels().count, r.merge = reduce_kernels().sum[I64];
            r.acc_size = 8;
            return;
        case SUM: case NANSUM: case PROD: case MAX: case MIN: case MEAN:
            if (d == BOOL) return truth_recipe(r, d, op == PROD || op == MIN);
            f.acc = single_recipe(r, op, d);
            f.divide = op == MEAN;
            f.divisor = static_cast<double>(n);
            if (f.divide || is_half(d)) f.how = Finish::FLOAT;
            return;
        case ARGMAX: case ARGMIN:
            f.how = Finish::INDEX;
            break;
        case LOGSUMEXP:
            f.how = Finish::LOG;
            break;
        default:
            f.how = Finish::VARIANCE;
    }
    wide_recipe(r, op, d);
}

// ---- shapes ----

struct Request {
    Op op;
    uint64_t axes;
    bool keepdims;
    double correction = 1;
};

inline bool gone(const Request &q, int axis) { return q.axes >> axis & 1; }

int result_shape(const Array &x, const Request &q, int64_t *shape) {
    int ndim = 0;
    for (int i = 0; i < x.ndim; i++) {
        if (!gone(q, i)) shape[ndim++] = x.shape()[i];
        else if (q.keepdims) shape[ndim++] = 1;
    }
    return ndim;
}

int64_t reduced_count(const Array &x, const Request &q) {
    int64_t n = 1;
    for (int i = 0; i < x.ndim; i++)
        if (gone(q, i)) n *= x.shape()[i];
    return n;
}

// Add x's axes. Of complex numbers taken apart each number is two elements.
void add_axes(Reduction &job, const Array &x, const Request &q, int64_t parts) {
    int64_t out_step = parts;
    if (parts > 1) job.keep(parts, 1, 1);
    for (int i = x.ndim - 1; i >= 0; i--) {
        int64_t size = x.shape()[i], step = x.strides()[i] * parts;
        if (gone(q, i)) {
            job.drop(size, step);
        } else {
            job.keep(size, step, out_step);
            out_step *= size;
        }
    }
}

void reduce_nothing(Reduction &job, const Request &q, Array &out) {
    if (out.size && (q.op == MAX || q.op == MIN || q.op == ARGMAX || q.op == ARGMIN))
        fail(PyExc_RuntimeError, "%s: expected elements to choose from; got none along the axes.", NAMES[q.op]);
    int parts = is_complex(out.dtype) && q.op != PROD ? 2 : 1;
    for (int64_t i = 0; i < out.size * parts; i++)
        finish_results(job.finish, job.recipe.identity, job.recipe.acc_size, 1,
                       out.data + i * (ITEMSIZE[out.dtype] / parts), 1);
}

// Many elements to few, whatever the reduction: x, or its numbers' two parts each for themselves.
void reduce_into(Array &x, const Request &q, Array &out, bool apart, double divisor) {
    Reduction job;
    int64_t n = reduced_count(x, q);
    set_up(job, q.op, apart ? real_of(x.dtype) : x.dtype, apart ? real_of(out.dtype) : out.dtype, n);
    if (q.op == VAR || q.op == STD) job.finish.divisor = divisor, job.finish.root = q.op == STD;
    job.x = x.data;
    job.out = out.data;
    const Recipe &r = job.recipe;
    if (x.size == 0) return reduce_nothing(job, q, out);
    if (n == x.size && x.contiguous && n <= ROW_BLOCK && !r.stage && !apart) {  // few, in one go
        alignas(16) char acc[sizeof(Moments)];
        r.unit.rows(x.data, n, 1, n, acc);
        return finish_results(job.finish, acc, r.acc_size, 1, out.data, 1);
    }
    add_axes(job, x, q, apart ? 2 : 1);
    job.run();
}

DType result_dtype(Op op, DType d) {
    switch (op) {
        case ANY: case ALL: return BOOL;
        case COUNT: case ARGMAX: case ARGMIN: return I64;
        case VAR: case STD: return real_of(d);
        default: return d;
    }
}

// The variance of complex numbers is that of their real parts and that of their imaginary parts, added.
Ref complex_variance(Array &x, const Request &q, Ref out, double divisor) {
    int64_t shape[MAX_NDIM + 1];
    int ndim = result_shape(x, q, shape);
    if (ndim == MAX_NDIM) fail(PyExc_RuntimeError, "%s: expected fewer than 64 axes; got 64.", NAMES[q.op]);
    shape[ndim] = 2;
    Ref parts = make(F64, ndim + 1, shape);
    Reduction job;
    DType real = real_of(x.dtype);
    set_up(job, VAR, real, F64, 1);
    job.finish.divisor = divisor;
    job.x = x.data;
    job.out = parts->data;
    if (x.size == 0) {
        for (int64_t i = 0; i < parts->size; i++) parts->as<double>()[i] = 0 / divisor;
    } else {
        add_axes(job, x, q, 2);
        job.run();
    }
    for (int64_t i = 0; i < out->size; i++) {
        double sum = parts->as<double>()[2 * i] + parts->as<double>()[2 * i + 1];
        double value = q.op == STD ? sqrt(sum) : sum;
        if (real == F64) out->as<double>()[i] = value;
        else out->as<float>()[i] = static_cast<float>(value);
    }
    return out;
}

Ref reduce(Array &x, const Request &q) {
    DType d = x.dtype;
    bool real = q.op == MAX || q.op == MIN || q.op == ARGMAX || q.op == ARGMIN || q.op == LOGSUMEXP;
    if (real && is_complex(d)) fail(PyExc_RuntimeError, "%s: expected real numbers; got %s.", NAMES[q.op], DTYPE_NAMES[d]);
    bool floating = q.op == MEAN || q.op == NANSUM || q.op == VAR || q.op == STD || q.op == LOGSUMEXP;
    if (floating && !is_float(d) && (q.op == NANSUM || !is_complex(d)))
        fail(PyExc_RuntimeError, "%s: expected floating point numbers; got %s.", NAMES[q.op], DTYPE_NAMES[d]);
    int64_t shape[MAX_NDIM];
    int ndim = result_shape(x, q, shape);
    Ref out = make(result_dtype(q.op, d), ndim, shape);
    if (out->size == 0) return out;
    double divisor = 1;
    if (q.op == VAR || q.op == STD) {
        divisor = static_cast<double>(reduced_count(x, q)) - q.correction;
        if (divisor < 0) divisor = 0;
        if (is_complex(d)) return complex_variance(x, q, static_cast<Ref &&>(out), divisor);
    }
    bool apart = is_complex(d) && (q.op == SUM || q.op == MEAN);
    reduce_into(x, q, *out, apart, divisor);
    return out;
}

// ---- kernels ----

uint64_t all_axes(const Array &x) { return x.ndim == 64 ? ~uint64_t{0} : (uint64_t{1} << x.ndim) - 1; }

template <Op op> PyObject *over_axes(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<3> N{NAMES[op], {"x", "axis", "keepdims"}, 1};
    PyObject *a[3];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    return reduce(x, {op, a[1] && a[1] != Py_None ? as_axes(a[1], x.ndim) : all_axes(x), as_bool(a[2])}).release();
}

template <Op op> PyObject *spread(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<4> N{NAMES[op], {"x", "axis", "correction", "keepdims"}, 1};
    PyObject *a[4];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    uint64_t axes = a[1] && a[1] != Py_None ? as_axes(a[1], x.ndim) : all_axes(x);
    return reduce(x, {op, axes, as_bool(a[3]), a[2] && a[2] != Py_None ? as_double(a[2]) : 1.0}).release();
}

PyObject *sum_all(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    Array &x = only("sum_all", args, n, names);
    if (x.dtype == F32 && x.contiguous && x.size > 0 && x.size <= ROW_BLOCK) {
        Ref out = make(F32, 0, nullptr);
        reduce_kernels().sum[F32].rows(x.data, x.size, 1, x.size, out->data);
        return out.release();
    }
    return reduce(x, {SUM, all_axes(x), false}).release();
}

// Along one axis, or in row-major order over all.
template <Op op> PyObject *place(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<3> N{NAMES[op], {"x", "axis", "keepdims"}, 1};
    PyObject *a[3];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    if (a[1] && a[1] != Py_None) {
        uint64_t axis = x.ndim ? uint64_t{1} << as_axis(a[1], x.ndim) : 0;
        return reduce(x, {op, axis, as_bool(a[2])}).release();
    }
    Ref flat = contiguous(x);
    return reduce(*flat, {op, all_axes(x), as_bool(a[2])}).release();
}

// The element of x that each place along the axis names; `places` has what is kept of x's axes, row-major.
template <class Bits> void pick(const Array &x, int axis, const int64_t *places, int64_t count, Bits *out) {
    int64_t shape[MAX_NDIM], step[MAX_NDIM];
    int ndim = 0;
    for (int i = 0; i < x.ndim; i++)
        if (i != axis) shape[ndim] = x.shape()[i], step[ndim++] = x.strides()[i];
    const int64_t along = x.strides()[axis];
    parallel_for(count, 1 << 14, [&](int64_t begin, int64_t end) {
        int64_t index[MAX_NDIM], at = 0, rest = begin;
        for (int i = ndim - 1; i >= 0; i--) {
            index[i] = rest % shape[i], rest /= shape[i];
            at += index[i] * step[i];
        }
        for (int64_t o = begin; o < end; o++) {
            out[o] = x.as<Bits>()[at + places[o] * along];
            for (int i = ndim - 1; i >= 0; i--) {
                at += step[i];
                if (++index[i] < shape[i]) break;
                at -= index[i] * step[i], index[i] = 0;
            }
        }
    });
}

// The extreme along an axis and its place: found in one pass, and read there.
template <Op op> PyObject *extreme_and_place(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<3> N{op == ARGMAX ? "max_dim" : "min_dim", {"x", "axis", "keepdims"}, 2};
    PyObject *a[3];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    if (x.ndim == 0) fail(PyExc_IndexError, "%s: expected at least one axis; got a number.", N.function);
    const int axis = as_axis(a[1], x.ndim);
    Ref places = reduce(x, {op, uint64_t{1} << axis, as_bool(a[2])}), values = make_like(*places, x.dtype);
    {
        const int64_t *at = places->as<int64_t>();
        Unlocked free(places->size);
        switch (ITEMSIZE[x.dtype]) {
            case 1: pick(x, axis, at, places->size, values->as<uint8_t>()); break;
            case 2: pick(x, axis, at, places->size, values->as<uint16_t>()); break;
            case 4: pick(x, axis, at, places->size, values->as<uint32_t>()); break;
            default: pick(x, axis, at, places->size, values->as<uint64_t>());
        }
    }
    return as_tuple(values, places);
}

template <class T, class Word> bool same_values(const Array &x, const Array &y, int64_t count) {
    const T *a = x.as<T>(), *b = y.as<T>();
    for (int64_t i = 0; i < count; i += 1024) {
        const int64_t end = std::min(count, i + 1024);
        Word differ = 0;
        for (int64_t j = i; j < end; j++) differ |= static_cast<Word>(a[j] != b[j]);
        if (differ) return false;
    }
    return true;
}

// Whether all elements are equal. Of many floats only the first are looked at here: `equal` and `all` are faster then.
PyObject *all_equal(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<2> N{"all_equal", {"x", "y"}, 2};
    PyObject *a[2];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]), &y = as_array(a[1]);
    if (x.dtype != y.dtype || is_half(x.dtype) || !same_shape(x, y)) return default_body();
    if (x.size > 4096 && !(x.contiguous && y.contiguous)) return default_body();
    const Ref row_x = contiguous(x), row_y = contiguous(y);
    const int64_t all = x.size * (is_complex(x.dtype) ? 2 : 1), some = std::min<int64_t>(all, 8192);
    bool same;
    if (x.dtype == F32 || x.dtype == C64) same = same_values<float, uint32_t>(*row_x, *row_y, some);
    else if (x.dtype == F64 || x.dtype == C128) same = same_values<double, uint64_t>(*row_x, *row_y, some);
    else same = memcmp(row_x->data, row_y->data, static_cast<size_t>(x.bytes())) == 0;
    if (same && some < all && (is_float(x.dtype) || is_complex(x.dtype))) return default_body();
    return same ? Py_NewRef(Py_True) : Py_NewRef(Py_False);
}

}  // namespace

PyObject *logsumexp_over_axes(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    return over_axes<LOGSUMEXP>(args, n, names);
}

const Method reduce_methods[] = {
    MORTICE_METHOD("sum", over_axes<SUM>),
    MORTICE_METHOD("sum_all", sum_all),
    MORTICE_METHOD("nansum", over_axes<NANSUM>),
    MORTICE_METHOD("prod", over_axes<PROD>),
    MORTICE_METHOD("max", over_axes<MAX>),
    MORTICE_METHOD("min", over_axes<MIN>),
    MORTICE_METHOD("any", over_axes<ANY>),
    MORTICE_METHOD("all", over_axes<ALL>),
    MORTICE_METHOD("partial_all_equal", all_equal),
    MORTICE_METHOD("count_nonzero", over_axes<COUNT>),
    MORTICE_METHOD("mean", over_axes<MEAN>),
    MORTICE_METHOD("max_dim", extreme_and_place<ARGMAX>),
    MORTICE_METHOD("min_dim", extreme_and_place<ARGMIN>),
    MORTICE_METHOD("argmax", place<ARGMAX>),
    MORTICE_METHOD("argmin", place<ARGMIN>),
    {},
};
const Method spread_methods[] = {
    MORTICE_METHOD("var", spread<VAR>),
    MORTICE_METHOD("std", spread<STD>),
    {},
};

}  // namespace mortice
