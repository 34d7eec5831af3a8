// Writing at positions: scatter_add, index_add, embedding_grad, and those that replace, multiply or take extremes.
//
// Threads share the work along an axis on which the result moves, so each element of it is written by one thread, in the
// order in which the indices come: results are the same for every number of threads.
#include <cstring>

#include "grid.hpp"
#include "index_tools.hpp"
#include "kernels/index.hpp"
#include "loop.hpp"

namespace mortice {

namespace {

// Operands of a grid: 0 is the result, 1 the values, 2 the indices.
struct Write {
    char *out;
    const char *values;
    const int64_t *at;
    int64_t so[2], sv[2], si[2];
    int64_t step, limit, skip;  // of the result along the indexed axis; an index whose values are left out, or -1
};

struct Replace {
    template <class T> static void apply(T &out, T x) { out = x; }
};
struct Add {
    template <class T> static void apply(T &out, T x) { out += x; }
    static void apply(bool &out, bool x) { out |= x; }
    template <class T> static void apply(complex_of<T> &out, complex_of<T> x) { out.re += x.re, out.im += x.im; }
};
struct Multiply {
    template <class T> static void apply(T &out, T x) { out = static_cast<T>(out * x); }
    static void apply(bool &out, bool x) { out &= x; }
    template <class T> static void apply(complex_of<T> &out, complex_of<T> x) {
        out = {out.re * x.re - out.im * x.im, out.re * x.im + out.im * x.re};
    }
};
// Of numbers that do not compare, the one that is nan stays.
struct Largest {
    template <class T> static void apply(T &out, T x) { out = out >= x || out != out ? out : x; }
};
struct Smallest {
    template <class T> static void apply(T &out, T x) { out = out <= x || out != out ? out : x; }
};

template <class T, class Op> void apply_row(T *__restrict out, const T *__restrict x, int64_t n) {
    for (int64_t i = 0; i < n; i++) Op::apply(out[i], x[i]);
}
template <> void apply_row<float, Add>(float *__restrict out, const float *__restrict x, int64_t n) {
    index_kernels().add_f32(out, x, n);
}
template <> void apply_row<double, Add>(double *__restrict out, const double *__restrict x, int64_t n) {
    index_kernels().add_f64(out, x, n);
}

template <class T, class Op> bool write_tile(const Write &w, const int64_t *offset, const int64_t *sizes) {
    T *out = reinterpret_cast<T *>(w.out) + offset[0];
    const T *values = reinterpret_cast<const T *>(w.values) + offset[1];
    const int64_t *at = w.at + offset[2];
    const auto limit = static_cast<uint64_t>(w.limit);
    const int64_t n = sizes[1], so = w.so[1], sv = w.sv[1], si = w.si[1], step = w.step;
    for (int64_t j = 0; j < sizes[0]; j++, out += w.so[0], values += w.sv[0], at += w.si[0]) {
        if (si == 0 && so == 1 && sv == 1) {  // one index for a whole row
            const int64_t i = *at;
            if (static_cast<uint64_t>(i) >= limit) return false;
            if (i != w.skip) apply_row<T, Op>(out + i * step, values, n);
        } else if (si == 1 && so == 0 && step == 1 && w.skip < 0) {
            const T *value = values;
            for (int64_t k = 0; k < n; k++, value += sv) {
                const int64_t i = at[k];
                if (__builtin_expect(static_cast<uint64_t>(i) >= limit, 0)) return false;
                Op::apply(out[i], *value);
            }
        } else {
            for (int64_t k = 0; k < n; k++) {
                const int64_t i = at[k * si];
                if (__builtin_expect(static_cast<uint64_t>(i) >= limit, 0)) return false;
                if (i != w.skip) Op::apply(out[k * so + i * step], values[k * sv]);
            }
        }
    }
    return true;
}

using Tile = bool (*)(const Write &, const int64_t *, const int64_t *);

// Signs do not matter to sums and products.
template <class Op> Tile ring_tile(DType d) {
    switch (d) {
        case BOOL: return write_tile<bool, Op>;
        case U8: case I8: return write_tile<uint8_t, Op>;
        case U16: case I16: return write_tile<uint16_t, Op>;
        case U32: case I32: return write_tile<uint32_t, Op>;
        case U64: case I64: return write_tile<uint64_t, Op>;
        case F32: return write_tile<float, Op>;
        case F64: return write_tile<double, Op>;
        case C64: return write_tile<cfloat, Op>;
        case C128: return write_tile<cdouble, Op>;
        default: return nullptr;
    }
}
// Of what `wide_order` gives.
template <class Op> Tile order_tile(DType d) {
    switch (d) {
        case I32: return write_tile<int32_t, Op>;
        case I64: return write_tile<int64_t, Op>;
        case U64: return write_tile<uint64_t, Op>;
        case F32: return write_tile<float, Op>;
        case F64: return write_tile<double, Op>;
        default: return nullptr;
    }
}
Tile replace_tile(int itemsize) {
    return by_width(itemsize, [](auto kind) -> Tile { return write_tile<decltype(kind), Replace>; });
}

void write(const char *name, Array &out, Array &values, Array &indices, Grid<3> &grid, int axis, Tile tile,
           int64_t skip = -1) {
    if (!values.size) return;
    if (!tile) fail(PyExc_TypeError, "%s: not defined for %s", name, DTYPE_NAMES[out.dtype]);
    grid.finish();
    const int a = grid.ndim - 2;
    const Write w{out.data, values.data, indices.as<int64_t>(),
                  {grid.step[0][a], grid.step[0][a + 1]}, {grid.step[1][a], grid.step[1][a + 1]},
                  {grid.step[2][a], grid.step[2][a + 1]}, out.strides()[axis], out.shape()[axis], skip};
    bool fine;
    {
        Unlocked free(values.size);
        fine = parallel_tiles(grid, 0, values.size,
                              [&](const int64_t *at, const int64_t *sizes) { return tile(w, at, sizes); });
    }
    if (!fine) out_of_bounds(name, indices, out.shape()[axis]);
}

// A row-major copy in `dtype`, for kernels to write into.
Ref fresh(Array &x, DType dtype) {
    Ref out = make_like(x, dtype);
    assign(*out, x);
    return out;
}
// The dtypes to work in.
DType own(DType d) { return d; }
DType wide(DType d) { return is_half(d) ? F32 : d; }
DType wide_order(DType d) { return d == U32 ? I64 : is_float(d) || ITEMSIZE[d] >= 4 ? wide(d) : I32; }

struct Operands {
    Array *x;
    Ref indices, values;
    int axis;
};

Operands operands(const char *name, PyObject *const *a, bool vector) {
    Operands o;
    o.x = &as_array(a[0]);
    Array &indices = as_array(a[1]), &values = as_array(a[2]);
    if (!is_int(indices.dtype)) fail(PyExc_TypeError, "%s: expected integer indices; got %s", name, DTYPE_NAMES[indices.dtype]);
    if (values.dtype != o.x->dtype)
        fail(PyExc_TypeError, "%s: expected values of dtype %s; got %s", name, DTYPE_NAMES[o.x->dtype], DTYPE_NAMES[values.dtype]);
    bool fits = o.x->ndim == values.ndim && indices.ndim == (vector ? 1 : values.ndim);
    o.axis = o.x->ndim ? as_axis(a[3], o.x->ndim) : 0;
    for (int i = 0; fits && i < values.ndim; i++) {
        const int64_t n = values.shape()[i];
        fits = vector ? i == o.axis ? n == indices.shape()[0] : n == o.x->shape()[i]
                      : n == indices.shape()[i] && (i == o.axis || n <= o.x->shape()[i]);
    }
    if (!fits || (vector && !o.x->ndim)) fail(PyExc_RuntimeError, "%s: sizes of x, the indices and the values do not fit", name);
    o.indices = converted(indices, I64);
    o.values = Ref::share(&values);
    return o;
}

Grid<3> grid_of(const Operands &o, const Array &out, bool vector) {
    Grid<3> grid;
    const Array &v = *o.values, &at = *o.indices;
    for (int i = 0; i < v.ndim; i++)
        grid.add(v.shape()[i], {i == o.axis ? 0 : out.strides()[i], v.strides()[i],
                                vector ? (i == o.axis ? at.strides()[0] : 0) : at.strides()[i]});
    return grid;
}

// x with one element and no axes, as one with an axis.
void lift(Operands &o) {
    const int64_t one = 1;
    o.indices = make_view(*o.indices, o.indices->data, 1, &one, &one);
    o.values = make_view(*o.values, o.values->data, 1, &one, &one);
}

PyObject *scatter(const char *name, PyObject *const *a, bool vector, Tile (*tile_for)(DType), DType (*work)(DType)) {
    Operands o = operands(name, a, vector);
    const DType d = o.x->dtype, d_work = work(d);
    Ref out;
    if (d_work == d) out = result_over(*o.x, {o.indices.get(), o.values.get()});
    if (!out) out = fresh(*o.x, d_work);
    Ref whole = Ref::share(out.get());
    if (!o.x->ndim) {
        const int64_t one = 1;
        out = make_view(*whole, whole->data, 1, &one, &one);
        lift(o);
    }
    o.values = converted(*o.values, d_work);
    Grid<3> grid = grid_of(o, *out, vector);
    write(name, *out, *o.values, *o.indices, grid, o.axis, tile_for(d_work));
    return converted(*whole, d).release();
}

Tile replace_for(DType d) { return replace_tile(ITEMSIZE[d]); }

template <int N> const char *named(Names<N> &n, PyObject *const *args, Py_ssize_t count, PyObject *kw, PyObject *(&a)[N]) {
    arguments(n, args, count, kw, a);
    return n.function;
}

}  // namespace

PyObject *scatter_add(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<4> N{"scatter_add", {"x", "indices", "values", "axis"}, 4};
    PyObject *a[4];
    return scatter(named(N, args, n, names, a), a, false, ring_tile<Add>, wide);
}

PyObject *index_add(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<4> N{"index_add", {"x", "indices", "values", "axis"}, 4};
    PyObject *a[4];
    return scatter(named(N, args, n, names, a), a, true, ring_tile<Add>, wide);
}

PyObject *index_write(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<4> N{"index_write", {"x", "indices", "values", "axis"}, 4};
    PyObject *a[4];
    return scatter(named(N, args, n, names, a), a, true, replace_for, own);
}

PyObject *put_rows(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<5> N{"put_rows", {"x", "indices", "values", "axis", "add"}, 5};
    PyObject *a[5];
    Operands o = operands(named(N, args, n, names, a), a, true);
    Array &x = *o.x;
    const int add = PyObject_IsTrue(a[4]);
    // Sums of halves need a wider place to add up in.
    if (!x.writable || may_overlap(x, *o.values) || may_overlap(x, as_array(a[1])) || (add && (is_half(x.dtype) || x.dtype == BOOL)))
        Py_RETURN_FALSE;
    Grid<3> grid = grid_of(o, x, true);
    write(N.function, x, *o.values, *o.indices, grid, o.axis, add ? ring_tile<Add>(x.dtype) : replace_for(x.dtype));
    Py_RETURN_TRUE;
}

PyObject *scatter_write(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<4> N{"scatter_write", {"x", "indices", "values", "axis"}, 4};
    PyObject *a[4];
    return scatter(named(N, args, n, names, a), a, false, replace_for, own);
}

PyObject *scatter_combine(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<5> N{"scatter_combine", {"x", "indices", "values", "axis", "how"}, 5};
    PyObject *a[5];
    named(N, args, n, names, a);
    const char *how = PyUnicode_Check(a[4]) ? PyUnicode_AsUTF8(a[4]) : "";
    if (!how) throw Failed{};
    const auto is = [&](const char *word) { return strcmp(how, word) == 0; };
    Tile (*tile)(DType) = is("prod")  ? ring_tile<Multiply>
                          : is("max") ? order_tile<Largest>
                          : is("min") ? order_tile<Smallest>
                                      : nullptr;
    if (!tile) fail(PyExc_RuntimeError, "scatter_combine: expected how to be prod, max or min; got %s", how);
    return scatter(N.function, a, false, tile, is("prod") ? wide : wide_order);
}

namespace {


// Each row of g over how many rows there are for its index.
template <class T> void over_counts(T *g, const int64_t *at, int64_t count, int64_t width, const int64_t *often) {
    for (int64_t j = 0; j < count; j++) {
        const T n = static_cast<T>(often[at[j]]);
        for (int64_t c = 0; c < width; c++) g[j * width + c] /= n;
    }
}

}  // namespace

namespace {

// Sums (or means) of the rows of bags; false where an index or the bounds of a bag are outside.
template <class T> bool bags(const Array &weight, const Array &at, const Array &offsets, bool mean, T *out) {
    const auto *rows = weight.as<T>();
    const int64_t *index = at.as<int64_t>(), *start = offsets.as<int64_t>();
    const int64_t n = at.size, count = offsets.size, width = weight.shape()[1], row_step = weight.strides()[0];
    const auto limit = static_cast<uint64_t>(weight.shape()[0]);
    bool fine = true;
    parallel_for(count, 1 + 20000 * count / (1 + (n + count) * (4 + width / 8)), [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; b++) {
            const int64_t low = start[b], high = b + 1 < count ? start[b + 1] : n;
            T *to = out + b * width;
            bool inside = low >= 0 && low <= high && high <= n;
            for (int64_t j = low; inside && j < high; j++) inside = static_cast<uint64_t>(index[j]) < limit;
            if (!inside) return __atomic_store_n(&fine, false, __ATOMIC_RELAXED);
            if constexpr (sizeof(T) == 4) index_kernels().bag_f32(to, rows, row_step, index + low, high - low, width);
            else index_kernels().bag_f64(to, rows, row_step, index + low, high - low, width);
            if (mean && high - low > 1)
                for (int64_t i = 0; i < width; i++) to[i] /= static_cast<T>(high - low);
        }
    });
    return fine;
}

}  // namespace

PyObject *spread_indices(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<2> N{"spread_indices", {"counts", "total"}, 2};
    PyObject *a[2];
    arguments(N, args, n, names, a);
    Array &given = as_array(a[0]);
    if (given.dtype != I64 || given.ndim != 1) fail(PyExc_TypeError, "spread_indices: expected a vector of int64 counts");
    const Ref counts = contiguous(given);
    Ref out = make(I64, {as_int(a[1])});
    const int64_t *often = counts->as<int64_t>(), size = counts->size;
    int64_t *to = out->as<int64_t>(), left = out->size;
    for (int64_t i = 0; i < size; i++) {
        if (often[i] < 0 || often[i] > left) break;
        for (int64_t j = 0; j < often[i]; j++) *to++ = i;
        left -= often[i];
    }
    if (left) fail(PyExc_ValueError, "spread_indices: the counts do not add up to the total");
    return out.release();
}

PyObject *embedding_bag(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<4> N{"embedding_bag", {"weight", "indices", "offsets", "mean"}, 4};
    PyObject *a[4];
    arguments(N, args, n, names, a);
    Array &table = as_array(a[0]), &indices = as_array(a[1]), &offsets = as_array(a[2]);
    if (table.dtype != F32 && table.dtype != F64) return default_body();
    if (table.ndim != 2 || indices.ndim != 1 || offsets.ndim != 1 || indices.dtype != I64 || offsets.dtype != I64)
        fail(PyExc_RuntimeError, "embedding_bag: expected a table, and vectors of indices and offsets in int64");
    const bool mean = as_bool(a[3]);
    const Ref weight = table.shape()[1] <= 1 || table.strides()[1] == 1 ? Ref::share(&table) : contiguous(table);
    const Ref at = contiguous(indices), start = contiguous(offsets);
    const int64_t shape[] = {offsets.size, table.shape()[1]};
    Ref out = make(table.dtype, 2, shape);
    bool fine;
    {
        Unlocked free(at->size * shape[1]);
        fine = table.dtype == F32 ? bags(*weight, *at, *start, mean, out->as<float>()) : bags(*weight, *at, *start, mean, out->as<double>());
    }
    if (!fine) fail(PyExc_IndexError, "embedding_bag: an index or offset is out of range");
    return out.release();
}

PyObject *embedding_grad(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<5> N{"embedding_grad", {"g", "indices", "num_weights", "padding_idx", "scale_grad_by_freq"}, 3};
    PyObject *a[5];
    arguments(N, args, n, names, a);
    Array &given = as_array(a[0]), &at = as_array(a[1]);
    const int64_t rows = as_int(a[2]), skip = a[3] && a[3] != Py_None ? as_int(a[3]) : -1;
    const DType d = given.dtype, d_work = wide(d);
    bool fits = is_int(at.dtype) && given.ndim >= at.ndim && rows >= 0;
    for (int i = 0; fits && i < at.ndim; i++) fits = given.shape()[i] == at.shape()[i];
    if (!fits) fail(PyExc_RuntimeError, "embedding_grad: expected a gradient with the axes of the indices in front");
    Ref indices = converted(at, I64);
    indices = contiguous(*indices);
    Ref g = converted(given, d_work);
    g = contiguous(*g);
    const int64_t count = indices->size, width = around(*g, at.ndim, g->ndim);
    int64_t shape[MAX_NDIM + 1];
    shape[0] = rows;
    for (int i = at.ndim; i < g->ndim; i++) shape[i - at.ndim + 1] = g->shape()[i];
    Ref out = make_zeros(d_work, g->ndim - at.ndim + 1, shape);
    const int64_t *place = indices->as<int64_t>();
    for (int64_t j = 0; j < count; j++)
        if (static_cast<uint64_t>(place[j]) >= static_cast<uint64_t>(rows)) out_of_bounds("embedding_grad", *indices, rows);
    if (as_bool(a[4]) && g->size) {
        if (!is_float(d_work) && !is_complex(d_work)) fail(PyExc_TypeError, "embedding_grad: scale_grad_by_freq is for floats");
        Ref often = make_zeros(I64, 1, shape);
        for (int64_t j = 0; j < count; j++) often->as<int64_t>()[place[j]]++;
        if (g.get() == &given) g = fresh(given, d_work);
        const int64_t parts = is_complex(d_work) ? 2 * width : width;
        if (real_of(d_work) == F32)
            over_counts(g->as<float>(), place, count, parts, often->as<int64_t>());
        else
            over_counts(g->as<double>(), place, count, parts, often->as<int64_t>());
    }
    const int64_t flat[2] = {rows, width}, steps[2] = {width, 1};
    Ref table = make_view(*out, out->data, 2, flat, steps);
    Grid<3> grid;
    grid.add(count, {0, width, 1});
    grid.add(width, {1, 1, 0});
    write("embedding_grad", *table, *g, *indices, grid, 0, ring_tile<Add>(d_work), skip);
    return converted(*out, d).release();
}

}  // namespace mortice
