// Arrays from numbers and from other arrays: full, arange, astype, copy.
#include <cmath>
#include <cstring>

#include "families.hpp"
#include "kernels/convert.hpp"
#include "loop.hpp"
#include "parallel.hpp"

namespace mortice {

void fill(Array &x, const void *value) {
    Scalar s;
    copy_bytes(s.bytes, value, static_cast<size_t>(x.itemsize()));
    if (x.contiguous && memcmp(s.bytes, s.bytes + 1, static_cast<size_t>(x.itemsize() - 1)) == 0) {  // bytes that are alike, as of 0
        Unlocked unlocked(x.size);
        parallel_for(x.bytes(), 1 << 18, [&](int64_t begin, int64_t end) { memset(x.data + begin, s.bytes[0], static_cast<size_t>(end - begin)); });
        return;
    }
    Operand operands[2] = {operand(x), operand(s, x.dtype)};
    walk(x.ndim, x.shape(), operands, 2, convert().inner[x.dtype][x.dtype], nullptr, 0.3f);
}

// Neither array has gaps, and both have their elements in the same order.
static bool same_layout(const Array &x, const Array &y) {
    if (!same_shape(x, y)) return false;
    if (x.contiguous && y.contiguous) return true;
    return memcmp(x.strides(), y.strides(), sizeof(int64_t) * x.ndim) == 0 && is_dense(x);
}

// How often a view shows each element of row-major memory, one after the other; 0 if not at all so, or so often that it is a
// line for the loops over any strides.
static int64_t short_run(const Array &x) {
    int axis = x.ndim - 1;
    int64_t run = 1, count = 1;
    for (; axis >= 0 && (x.strides()[axis] == 0 || x.shape()[axis] == 1); axis--) run *= x.shape()[axis];
    for (; axis >= 0; count *= x.shape()[axis--])
        if (x.strides()[axis] != count && x.shape()[axis] != 1) return 0;
    return run > 1 && run < 32 ? run : 0;
}

template <class T> static void repeat_each(const char *from, char *to, int64_t n, int64_t run) {
    const T *x = reinterpret_cast<const T *>(from);
    T *out = reinterpret_cast<T *>(to);
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < run; k++) *out++ = x[i];
}
static void repeat_each(Array &to, const Array &from, int64_t run) {
    constexpr decltype(&repeat_each<char>) loops[] = {repeat_each<uint8_t>, repeat_each<uint16_t>, repeat_each<uint32_t>, repeat_each<uint64_t>, repeat_each<cdouble>};
    const auto loop = loops[__builtin_ctz(from.itemsize())];
    Unlocked unlocked(to.size);
    parallel_for(to.size / run, 16384 / run, [&](int64_t begin, int64_t end) {
        loop(from.data + begin * from.itemsize(), to.data + begin * run * to.itemsize(), end - begin, run);
    });
}

void assign(Array &to, Array &from) {
    if (to.size == 0) return;
    if (to.dtype == from.dtype && same_layout(to, from)) {
        int64_t bytes = to.bytes();
        if (bytes <= 32768) {
            memmove(to.data, from.data, static_cast<size_t>(bytes));
            return;
        }
        Unlocked unlocked(bytes / 4);
        parallel_for(bytes, 1 << 18, [&](int64_t begin, int64_t end) {
            memmove(to.data + begin, from.data + begin, static_cast<size_t>(end - begin));
        });
        return;
    }
    if (to.contiguous && to.dtype == from.dtype && same_shape(to, from))
        if (const int64_t run = short_run(from)) return repeat_each(to, from, run);
    if (from.ndim > to.ndim)
        for (int i = 0; i < from.ndim - to.ndim; i++)
            if (from.shape()[i] != 1) fail(PyExc_ValueError, "cpu_cext: a value of %d dimensions does not fit %d.", from.ndim, to.ndim);
    int lead = from.ndim > to.ndim ? from.ndim - to.ndim : 0;
    for (int i = lead; i < from.ndim; i++) {
        int64_t n = from.shape()[i], want = to.shape()[i - from.ndim + to.ndim];
        if (n != 1 && n != want)
            fail(PyExc_ValueError, "cpu_cext: a value of size %lld does not fit size %lld at axis %d.", static_cast<long long>(n),
                 static_cast<long long>(want), i - from.ndim + to.ndim);
    }
    Operand source{from.data, from.strides() + lead, from.ndim - lead, from.itemsize(), from.shape() + lead};
    Operand operands[2] = {operand(to), source};
    walk(to.ndim, to.shape(), operands, 2, convert().inner[from.dtype][to.dtype],
         from.dtype == to.dtype ? &PLAIN_COPY : nullptr, 0.5f);
}

// ---- kernels ----

static PyObject *full(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<4> N{"full", {"shape", "value", "dtype", "device"}, 3};
    PyObject *a[4];
    arguments(N, args, n, names, a);
    int64_t shape[MAX_NDIM];
    int ndim = as_ints(a[0], shape, MAX_NDIM);
    DType dtype = as_dtype(a[2]);
    Ref x = make(dtype, ndim, shape);
    if (is_array(a[1])) {  // an element that is already there
        assign(*x, as_array(a[1]));
        return x.release();
    }
    Scalar value = as_scalar(a[1], dtype);
    fill(*x, value.bytes);
    return x.release();
}

static PyObject *arange(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<5> N{"arange", {"start", "stop", "step", "dtype", "device"}, 4};
    PyObject *a[5];
    arguments(N, args, n, names, a);
    DType dtype = as_dtype(a[3]);
    bool whole = PyLong_Check(a[0]) && PyLong_Check(a[1]) && PyLong_Check(a[2]);
    if (whole && is_int(dtype)) {
        int64_t start = as_int(a[0]), step = as_int(a[2]);
        Own<> span(PyNumber_Subtract(a[1], a[0]));
        if (!span) throw Failed{};
        if (step == 0) fail(PyExc_ValueError, "arange: step must not be zero.");
        int64_t length = as_int(span.get());
        length = (length > 0) == (step > 0) && length ? (length - (step > 0 ? 1 : -1)) / step + 1 : 0;
        Ref wide = make(I64, {length});
        auto *at = wide->as<int64_t>();
        for (int64_t i = 0; i < length; i++) at[i] = static_cast<int64_t>(static_cast<uint64_t>(start) + static_cast<uint64_t>(i) * static_cast<uint64_t>(step));
        return converted(*wide, dtype).release();
    }
    double start = as_double(a[0]), stop = as_double(a[1]), step = as_double(a[2]);
    if (step == 0) fail(PyExc_ValueError, "arange: step must not be zero.");
    double length = std::ceil((stop - start) / step);
    if (!(length < 9e15)) fail(PyExc_ValueError, "arange: the range has too many elements.");
    Ref wide = make(F64, {length > 0 ? static_cast<int64_t>(length) : 0});
    auto *at = wide->as<double>();
    for (int64_t i = 0; i < wide->size; i++) at[i] = start + static_cast<double>(i) * step;
    return converted(*wide, dtype).release();
}

// start + i * step, rounded once. Of each `lanes` elements the first is rounded to the dtype and the others count from it; with
// an end the latter half counts back from that.
static PyObject *ramp(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<7> N{"ramp", {"start", "step", "count", "lanes", "dtype", "device", "end"}, 5};
    PyObject *a[7];
    arguments(N, args, n, names, a);
    const double start = as_double(a[0]), step = as_double(a[1]);
    const int64_t count = as_int(a[2]), lanes = as_int(a[3]);
    const DType dtype = as_dtype(a[4]);
    const bool back = a[6] && a[6] != Py_None;
    const double end = back ? as_double(a[6]) : 0;
    if (count < 0 || lanes < 0 || lanes > 16) fail(PyExc_ValueError, "ramp: expected a count, and 0 to 16 lanes.");
    Ref out = make(dtype, {count});
    const ConvertTable &table = convert();
    constexpr int64_t BLOCK = 512;
    double room[BLOCK], firsts[BLOCK];
    const auto convert_to = [&](DType to, DType from, int64_t many, void *y, const void *x) {
        char *at[2] = {static_cast<char *>(y), const_cast<char *>(static_cast<const char *>(x))};
        const int64_t steps[2] = {ITEMSIZE[to], ITEMSIZE[from]};
        table.inner[from][to](at, steps, many, nullptr);
    };
    const int64_t up = back ? count / 2 ? count / 2 : count : count, grouped = lanes ? count / (2 * lanes) * 2 * lanes : 0;
    for (int64_t i = 0, m; i < count; i += m) {
        const int64_t stop = i < grouped ? grouped : i < up ? up : count;
        m = stop - i < BLOCK ? stop - i : BLOCK;
        double *to = dtype == F64 ? out->as<double>() + i : room;
        if (i < grouped) {
            const int64_t groups = m / lanes;
            table.ramp(start, step, i, lanes, groups, firsts);
            if (dtype != F64) convert_to(dtype, F64, groups, room, firsts), convert_to(F64, dtype, groups, firsts, room);
            table.ramps(firsts, step, groups, lanes, to);
        } else if (i < up) {
            table.ramp(start, step, i, 1, m, to);
        } else {
            table.ramp(end, -step, count - 1 - i, -1, m, to);
        }
        if (dtype != F64) convert_to(dtype, F64, m, out->data + i * out->itemsize(), room);
    }
    return out.release();
}

static PyObject *astype(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<2> N{"astype", {"x", "dtype"}, 2};
    PyObject *a[2];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    Ref y = make_laid_out_like(x, as_dtype(a[1]));
    assign(*y, x);
    return y.release();
}

static PyObject *copy(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    Array &x = only("copy", args, n, names);
    return cloned(x).release();
}

static PyObject *contiguous_(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    Array &x = only("contiguous", args, n, names);
    return copied(x).release();
}

template <int value> static PyObject *filled_like(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    Array &x = only(value ? "ones_like" : "zeros_like", args, n, names);
    Ref y = make_like(x);
    Scalar s = scalar_of(value, x.dtype);
    fill(*y, s.bytes);
    return y.release();
}

static PyObject *full_like(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<2> N{"full_like", {"x", "value"}, 2};
    PyObject *a[2];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    Ref y = make_like(x);
    Scalar s = as_scalar(a[1], x.dtype);
    fill(*y, s.bytes);
    return y.release();
}

const Method creation_methods[] = {
    MORTICE_METHOD("full", full),
    MORTICE_METHOD("arange", arange),
    MORTICE_METHOD("ramp", ramp),
    MORTICE_METHOD("astype", astype),
    MORTICE_METHOD("copy", copy),
    MORTICE_METHOD("contiguous", contiguous_),
    MORTICE_METHOD("zeros_like", filled_like<0>),
    MORTICE_METHOD("ones_like", filled_like<1>),
    MORTICE_METHOD("full_like", full_like),
    {},
};

}  // namespace mortice
