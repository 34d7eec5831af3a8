// Reading at positions: take, take_along_axis, gather, embedding; and what is known of positions: their range, where
// elements are not zero. Writing at positions is in scatter.cpp.
#include <utility>

#include "families.hpp"
#include "grid.hpp"
#include "index_tools.hpp"
#include "kernels/index.hpp"
#include "loop.hpp"

namespace mortice {

// ---- positions ----

void out_of_bounds(const char *name, Array &indices, int64_t n) {
    Ref flat = contiguous(indices);
    const int64_t *at = flat->as<int64_t>();
    int64_t bad = -1;
    for (int64_t i = 0; i < flat->size; i++)
        if (static_cast<uint64_t>(at[i]) >= static_cast<uint64_t>(n)) {
            bad = at[i];
            break;
        }
    fail(PyExc_IndexError, "%s: index %lld is out of bounds for an axis of size %lld", name, static_cast<long long>(bad),
         static_cast<long long>(n));
}

int64_t around(const Array &x, int begin, int end) {
    int64_t n = 1;
    for (int i = begin; i < end; i++) n *= x.shape()[i];
    return n;
}

// ---- reading ----

namespace {

struct Wide {
    uint64_t low, high;
};

struct Read {
    char *out;
    const char *x;
    const int64_t *at;
    int64_t so[2], sx[2], si[2];  // steps over a tile
    int64_t step, limit;          // of x along the indexed axis
    bool ahead;                   // x is too large for the caches
};

template <int BYTES> bool read_rows(const Read &r, const int64_t *offset, const int64_t *sizes, int64_t itemsize) {
    const int64_t bytes = BYTES ? BYTES : sizes[1] * itemsize, n = sizes[0];
    char *out = r.out + offset[0] * itemsize;
    const char *x = r.x + offset[1] * itemsize;
    const int64_t *at = r.at + offset[2];
    const int64_t so = r.so[0] * itemsize, sx = r.sx[0] * itemsize, step = r.step * itemsize, si = r.si[0];
    for (int64_t j = 0; j < n; j++) {
        const int64_t i = at[j * si];
        if (__builtin_expect(static_cast<uint64_t>(i) >= static_cast<uint64_t>(r.limit), 0)) return false;
        if (r.ahead && j + 8 < n) __builtin_prefetch(x + (j + 8) * sx + at[(j + 8) * si] * step);
        __builtin_memcpy(out + j * so, x + j * sx + i * step, bytes);
    }
    return true;
}

template <class T> bool read_each(const Read &r, const int64_t *offset, const int64_t *sizes) {
    const auto limit = static_cast<uint64_t>(r.limit);
    const int64_t n = sizes[1], sx = r.sx[1], si = r.si[1], so = r.so[1], step = r.step;
    for (int64_t row = 0; row < sizes[0]; row++) {
        T *__restrict out = reinterpret_cast<T *>(r.out) + offset[0] + row * r.so[0];
        const T *__restrict x = reinterpret_cast<const T *>(r.x) + offset[1] + row * r.sx[0];
        const int64_t *__restrict at = r.at + offset[2] + row * r.si[0];
        if (so == 1 && si == 1 && sx == 0 && step == 1) {
            int64_t j = 0;
            for (; j + 4 <= n; j += 4) {
                const auto a = static_cast<uint64_t>(at[j]), b = static_cast<uint64_t>(at[j + 1]);
                const auto c = static_cast<uint64_t>(at[j + 2]), d = static_cast<uint64_t>(at[j + 3]);
                if (__builtin_expect((a >= limit) | (b >= limit) | (c >= limit) | (d >= limit), 0)) return false;
                out[j] = x[a];
                out[j + 1] = x[b];
                out[j + 2] = x[c];
                out[j + 3] = x[d];
            }
            for (; j < n; j++) {
                const int64_t i = at[j];
                if (__builtin_expect(static_cast<uint64_t>(i) >= limit, 0)) return false;
                out[j] = x[i];
            }
        } else {
            for (int64_t j = 0; j < n; j++) {
                const int64_t i = at[j * si];
                if (__builtin_expect(static_cast<uint64_t>(i) >= limit, 0)) return false;
                out[j * so] = x[j * sx + i * step];
            }
        }
    }
    return true;
}

bool read_tile(const Read &r, const int64_t *offset, const int64_t *sizes, int itemsize) {
    if (r.si[1] == 0 && r.so[1] == 1 && r.sx[1] == 1) {
        switch (sizes[1] * itemsize) {
            case 4: return read_rows<4>(r, offset, sizes, itemsize);
            case 8: return read_rows<8>(r, offset, sizes, itemsize);
            case 16: return read_rows<16>(r, offset, sizes, itemsize);
            case 32: return read_rows<32>(r, offset, sizes, itemsize);
            case 64: return read_rows<64>(r, offset, sizes, itemsize);
            case 128: return read_rows<128>(r, offset, sizes, itemsize);
            default: return read_rows<0>(r, offset, sizes, itemsize);
        }
    }
    return by_width(itemsize, [&](auto kind) { return read_each<decltype(kind)>(r, offset, sizes); });
}

// Operands of a grid: 0 is the result, 1 is x, 2 the indices.
void read(const char *name, Array &out, Array &x, Array &indices, Grid<3> &grid, int64_t step, int64_t limit) {
    if (!out.size) return;
    grid.finish();
    const int a = grid.ndim - 2;
    Read r{out.data, x.data, indices.as<int64_t>(),
           {grid.step[0][a], grid.step[0][a + 1]}, {grid.step[1][a], grid.step[1][a + 1]},
           {grid.step[2][a], grid.step[2][a + 1]}, step, limit,
           limit * (step < 0 ? -step : step) * x.itemsize() > (1 << 20)};
    const int itemsize = x.itemsize();
    bool fine;
    {
        Unlocked free(out.size);
        fine = parallel_tiles(grid, 0, out.size * (itemsize < 8 ? 1 : itemsize / 8),
                              [&](const int64_t *at, const int64_t *sizes) { return read_tile(r, at, sizes, itemsize); });
    }
    if (!fine) out_of_bounds(name, indices, limit);
}

Ref positions_of(const char *name, PyObject *given) {
    Array &x = as_array(given);
    if (!is_int(x.dtype)) fail(PyExc_TypeError, "%s: expected integer indices; got %s", name, DTYPE_NAMES[x.dtype]);
    return converted(x, I64);
}

Ref take_axis(const char *name, Array &x, Array &indices, int axis, const int64_t *shape, int ndim) {
    Ref out = make(x.dtype, ndim, shape);
    const int64_t after = around(x, axis + 1, x.ndim), *sizes = x.shape(), *steps = x.strides();
    Grid<3> grid;
    const int64_t count = indices.size;
    int64_t so = out->size;
    for (int i = 0; i < x.ndim; i++) {
        const int64_t n = i == axis ? count : sizes[i];
        if (n) so /= n;
        if (i != axis) {
            grid.add(n, {so, steps[i], 0});
        } else {
            grid.add(count, {after, 0, 1});
        }
    }
    read(name, *out, x, indices, grid, steps[axis], sizes[axis]);
    return out;
}

PyObject *take(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<3> N{"take", {"x", "indices", "axis"}, 3};
    PyObject *a[3];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    Ref at = positions_of("take", a[1]);
    if (at->ndim != 1 || x.ndim == 0) fail(PyExc_RuntimeError, "take: expected 1-D indices and an axis to take from");
    at = contiguous(*at);
    const int axis = as_axis(a[2], x.ndim);
    int64_t shape[MAX_NDIM];
    for (int i = 0; i < x.ndim; i++) shape[i] = i == axis ? at->size : x.shape()[i];
    return take_axis("take", x, *at, axis, shape, x.ndim).release();
}

PyObject *embedding(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<2> N{"embedding", {"weight", "indices"}, 2};
    PyObject *a[2];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    Ref at = positions_of("embedding", a[1]);
    at = contiguous(*at);
    const int ndim = at->ndim + x.ndim - 1;
    if (x.ndim == 0 || ndim > MAX_NDIM) fail(PyExc_RuntimeError, "embedding: expected a table; got %d axes", x.ndim);
    int64_t shape[2 * MAX_NDIM];
    for (int i = 0; i < at->ndim; i++) shape[i] = at->shape()[i];
    for (int i = 1; i < x.ndim; i++) shape[at->ndim + i - 1] = x.shape()[i];
    return take_axis("embedding", x, *at, 0, shape, ndim).release();
}

// The shape of x and of the indices broadcast together, apart from the axis, whose size the indices give.
void along_shape(const Array &x, const Array &indices, int axis, bool broadcast, int64_t *shape) {
    for (int i = 0; i < x.ndim; i++) {
        const int64_t have = x.shape()[i], want = indices.shape()[i];
        shape[i] = i != axis && broadcast && want == 1 ? have : want;
        const bool fits = i == axis || (broadcast ? have == 1 || have == shape[i] : have >= shape[i]);
        if (!fits)
            fail(PyExc_RuntimeError, "take_along_axis: sizes must agree apart from the axis; got %lld and %lld at axis %d",
                 static_cast<long long>(have), static_cast<long long>(want), i);
    }
}

template <bool BROADCAST> PyObject *along(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<3> N{BROADCAST ? "take_along_axis" : "gather", {"x", "indices", "axis"}, 3};
    PyObject *a[3];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    Ref at = positions_of(N.function, a[1]);
    if (x.ndim != at->ndim)
        fail(PyExc_RuntimeError, "%s: expected as many axes in the indices as in x; got %d and %d", N.function, at->ndim, x.ndim);
    if (x.ndim == 0) {
        if (*at->as<int64_t>() != 0) out_of_bounds(N.function, *at, 1);
        return copied(x).release();
    }
    const int axis = as_axis(a[2], x.ndim);
    int64_t shape[MAX_NDIM];
    along_shape(x, *at, axis, BROADCAST, shape);
    Ref out = make(x.dtype, x.ndim, shape);
    Grid<3> grid;
    for (int i = 0; i < x.ndim; i++) {
        const int64_t sx = i == axis || x.shape()[i] == 1 ? 0 : x.strides()[i];
        grid.add(shape[i], {out->strides()[i], sx, at->shape()[i] == 1 ? 0 : at->strides()[i]});
    }
    read(N.function, *out, x, *at, grid, x.strides()[axis], x.shape()[axis]);
    return out.release();
}

// ---- the range of values ----

template <class T> struct Ends {
    T low, high;
    bool nan;
};

template <class T> Ends<T> ends_of(const T *x, int64_t n) {
    Ends<T> e{x[0], x[0], false};
    bool nan = false;
    for (int64_t i = 0; i < n; i++) {
        e.low = x[i] < e.low ? x[i] : e.low;
        e.high = x[i] > e.high ? x[i] : e.high;
        nan |= !(x[i] == x[i]);
    }
    e.nan = nan;
    return e;
}
template <> Ends<int64_t> ends_of(const int64_t *x, int64_t n) {
    Ends<int64_t> e{};
    index_kernels().range_i64(x, n, &e.low, &e.high);
    return e;
}

// Cold: small rather than fast, but for the body of parallel_for.
template <class T> __attribute__((cold)) PyObject *range_of(Array &x) {
    constexpr int64_t PART = 1 << 15;
    const T *data = x.as<T>();
    const int64_t parts = (x.size + PART - 1) / PART;
    Ends<T> few[16];
    Scratch<Ends<T>> room(parts > 16 ? parts : 1);
    Ends<T> *ends = parts > 16 ? room.get() : few;
    {
        Unlocked free(x.size);
        parallel_for(parts, 4, [&](int64_t begin, int64_t end) {
            for (int64_t p = begin; p < end; p++)
                ends[p] = ends_of(data + p * PART, x.size - p * PART < PART ? x.size - p * PART : PART);
        });
    }
    Ends<T> all = ends[0];
    for (int64_t p = 1; p < parts; p++) {
        all.low = ends[p].low < all.low ? ends[p].low : all.low;
        all.high = ends[p].high > all.high ? ends[p].high : all.high;
        all.nan |= ends[p].nan;
    }
    if (all.nan) all.low = all.high = static_cast<T>(NAN);
    PyObject *low = to_python(reinterpret_cast<const char *>(&all.low), x.dtype);
    PyObject *high = low ? to_python(reinterpret_cast<const char *>(&all.high), x.dtype) : nullptr;
    PyObject *pair = high ? PyTuple_Pack(2, low, high) : nullptr;
    Py_XDECREF(low);
    Py_XDECREF(high);
    return pair;
}

// x without the axes along which it repeats, row-major or in any order without gaps: it has the same values.
Ref dense_values(Array &x) {
    int64_t shape[MAX_NDIM], strides[MAX_NDIM];
    int ndim = 0;
    for (int i = 0; i < x.ndim; i++)
        if (x.strides()[i] != 0 || x.shape()[i] == 0) {
            shape[ndim] = x.shape()[i];
            strides[ndim++] = x.strides()[i];
        }
    Ref view = make_view(x, x.data, ndim, shape, strides);
    return is_dense(*view) ? std::move(view) : contiguous(*view);
}

PyObject *index_range(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<1> N{"index_range", {"indices"}, 1};
    PyObject *a[1];
    arguments(N, args, n, names, a);
    Array &given = as_array(a[0]);
    if (!given.size) fail(PyExc_RuntimeError, "index_range: expected at least one element; got none");
    if (is_complex(given.dtype)) fail(PyExc_TypeError, "index_range: complex numbers have no order");
    Ref dense = given.contiguous ? Ref::share(&given) : dense_values(given);
    if (is_half(given.dtype)) dense = converted(*dense, F32);
    else if (given.dtype == U32) dense = converted(*dense, I64);
    else if (is_int(given.dtype) && given.itemsize() < 4) dense = converted(*dense, I32);
    switch (dense->dtype) {
        case BOOL: return range_of<bool>(*dense);
        case U64: return range_of<uint64_t>(*dense);
        case I32: return range_of<int32_t>(*dense);
        case I64: return range_of<int64_t>(*dense);
        case F32: return range_of<float>(*dense);
        default: return range_of<double>(*dense);
    }
}

// ---- positions over several axes ----

// Along two axes of the grid: out * size + index, the index wrapped; false where one is out of range.
bool add_axis(int64_t *out, const int64_t *index, const Grid<2> &grid, int64_t size) {
    const int a = grid.ndim - 2;
    return parallel_tiles(grid, 0, grid.size(), [&](const int64_t *at, const int64_t *sizes) {
        bool fine = true;
        for (int64_t i = 0; i < sizes[0]; i++) {
            int64_t *o = out + at[0] + i * grid.step[0][a];
            const int64_t *x = index + at[1] + i * grid.step[1][a];
            for (int64_t j = 0; j < sizes[1]; j++, o += grid.step[0][a + 1], x += grid.step[1][a + 1]) {
                const int64_t v = *x < 0 ? *x + size : *x;
                fine &= static_cast<uint64_t>(v) < static_cast<uint64_t>(size);
                *o = *o * size + v;
            }
        }
        return fine;
    });
}

PyObject *flat_index(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    int64_t sizes[MAX_NDIM], shape[MAX_NDIM];
    const int count = static_cast<int>(n);
    if (n < 1 || n > MAX_NDIM || !names || PyTuple_GET_SIZE(names) != 1 || as_ints(args[n], sizes, MAX_NDIM) != count)
        fail(PyExc_TypeError, "flat_index: expected arrays of indices, and a size for each.");
    const Array *xs[MAX_NDIM];
    for (int k = 0; k < count; k++) {
        Array &x = as_array(args[k]);
        if (x.dtype != I64) fail(PyExc_TypeError, "flat_index: expected int64 indices; got %s.", DTYPE_NAMES[x.dtype]);
        xs[k] = &x;
    }
    const Array &first = *xs[0];
    if (count == 1 && first.ndim == 1 && first.contiguous) {
        int64_t low = 0, high = -1;
        if (first.size) index_kernels().range_i64(first.as<int64_t>(), first.size, &low, &high);
        if (low < -sizes[0] || high >= sizes[0]) Py_RETURN_NONE;
        if (low >= 0) return Py_NewRef(args[0]);
    }
    const int ndim = broadcast_shapes(xs, count, shape);
    int64_t size = 1;
    for (int i = 0; i < ndim; i++) size *= shape[i];
    Ref out = make_zeros(I64, 1, &size);
    for (int k = 0; k < count && size; k++) {
        const Array &x = *xs[k];
        Grid<2> grid;
        int64_t step = size;
        for (int i = 0; i < ndim; i++) {
            const int own = i - (ndim - x.ndim);
            step /= shape[i];
            grid.add(shape[i], {step, own < 0 || x.shape()[own] == 1 ? 0 : x.strides()[own]});
        }
        grid.finish();
        bool fine;
        {
            Unlocked free(size);
            fine = add_axis(out->as<int64_t>(), x.as<int64_t>(), grid, sizes[k]);
        }
        if (!fine) Py_RETURN_NONE;
    }
    return out.release();
}

PyObject *float8_codes(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<2> N{"float8_codes", {"x", "table"}, 2};
    PyObject *a[2];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    if (x.dtype != F32 || !PyBytes_Check(a[1]) || PyBytes_GET_SIZE(a[1]) != 1 << 16)
        fail(PyExc_TypeError, "float8_codes: expected float32 numbers, and the codes of 2^16.");
    const char *table = PyBytes_AS_STRING(a[1]);
    Ref out = make_laid_out_like(x, U8), from = is_dense(x) ? Ref::share(&x) : contiguous(x);
    Unlocked free(out->size);
    parallel_for(out->size, 1 << 14, [bits = from->as<uint32_t>(), to = out->data, table](int64_t i, int64_t end) {
        const uint32_t *__restrict b = bits;
        char *__restrict o = to;
        // The last bit of a place is also set where a bit below it is.
        for (; i < end; i++) o[i] = table[(b[i] | ((b[i] & 0xffff) + 0xffff)) >> 16];
    });
    return out.release();
}

// ---- where elements are not zero ----

// The bits that a zero of the dtype has none of: all but the sign of floats.
uint64_t value_bits(DType d) {
    switch (d) {
        case F16: case BF16: return 0x7fff;
        case F32: return 0x7fffffff;
        case C64: return 0x7fffffff7fffffff;
        case F64: case C128: return 0x7fffffffffffffff;
        default: return ~uint64_t{0};
    }
}

template <class T> void truth(const char *x, int64_t n, uint64_t bits, uint8_t *out) {
    const T *__restrict v = reinterpret_cast<const T *>(x);
    const T mask = static_cast<T>(bits);
    for (int64_t i = 0; i < n; i++) out[i] = (v[i] & mask) != 0;
}

// n elements from x as bytes of 0 and 1, in `room` or where they are.
const uint8_t *truths(const char *x, int64_t n, DType d, uint8_t *room) {
    const uint64_t bits = value_bits(d);
    switch (d) {
        case BOOL: return reinterpret_cast<const uint8_t *>(x);
        case U8: case I8: truth<uint8_t>(x, n, bits, room); break;
        case U16: case I16: case F16: case BF16: truth<uint16_t>(x, n, bits, room); break;
        case U32: case I32: case F32: truth<uint32_t>(x, n, bits, room); break;
        case C128: {
            const auto *v = reinterpret_cast<const Wide *>(x);
            for (int64_t i = 0; i < n; i++) room[i] = ((v[i].low | v[i].high) & bits) != 0;
            break;
        }
        default: truth<uint64_t>(x, n, bits, room);
    }
    return room;
}

PyObject *flat_nonzero(PyObject *const *args, Py_ssize_t n, PyObject *names) {
        Ref x = contiguous(only("flat_nonzero", args, n, names));
    constexpr int64_t ROOM = 1024, PART = 64 * ROOM;
    const int64_t size = x->size, parts = (size + PART - 1) / PART, itemsize = x->itemsize();
    const IndexTable &kernels = index_kernels();
    Scratch<int64_t> found(parts + 1);
    {
        Unlocked free(size);
        parallel_for(parts, 2, [&](int64_t begin, int64_t end) {
            uint8_t room[ROOM];
            for (int64_t p = begin; p < end; p++) {
                int64_t total = 0;
                const int64_t stop = (p + 1) * PART < size ? (p + 1) * PART : size;
                for (int64_t i = p * PART; i < stop; i += ROOM) {
                    const int64_t m = stop - i < ROOM ? stop - i : ROOM;
                    total += kernels.count(truths(x->data + i * itemsize, m, x->dtype, room), m);
                }
                found[p] = total;
            }
        });
    }
    int64_t total = 0;
    for (int64_t p = 0; p < parts; p++) {
        const int64_t here = found[p];
        found[p] = total;
        total += here;
    }
    found[parts] = total;
    Ref out = make(I64, {total});
    int64_t *at = out->as<int64_t>();
    {
        Unlocked free(size);
        parallel_for(parts, 2, [&](int64_t begin, int64_t end) {
            uint8_t room[ROOM];
            for (int64_t p = begin; p < end; p++) {
                int64_t k = found[p];
                const int64_t stop = (p + 1) * PART < size ? (p + 1) * PART : size;
                for (int64_t i = p * PART; i < stop && k < found[p + 1]; i += ROOM) {
                    const int64_t m = stop - i < ROOM ? stop - i : ROOM;
                    const uint8_t *mask = truths(x->data + i * itemsize, m, x->dtype, room);
                    const int64_t here = kernels.count(mask, m);
                    kernels.positions(mask, m, i, at + k, here);
                    k += here;
                }
            }
        });
    }
    return out.release();
}

}  // namespace

const Method index_methods[] = {
    MORTICE_METHOD("take", take),
    MORTICE_METHOD("take_along_axis", along<true>),
    MORTICE_METHOD("gather", along<false>),
    MORTICE_METHOD("embedding", embedding),
    MORTICE_METHOD("index_range", index_range),
    MORTICE_METHOD("flat_index", flat_index),
    MORTICE_METHOD("float8_codes", float8_codes),
    MORTICE_METHOD("flat_nonzero", flat_nonzero),
    MORTICE_METHOD("scatter_add", scatter_add),
    MORTICE_METHOD("index_add", index_add),
    MORTICE_METHOD("index_write", index_write),
    MORTICE_METHOD("put_rows", put_rows),
    MORTICE_METHOD("scatter_write", scatter_write),
    MORTICE_METHOD("scatter_combine", scatter_combine),
    MORTICE_METHOD("spread_indices", spread_indices),
    MORTICE_METHOD("partial_embedding_bag", embedding_bag),
    MORTICE_METHOD("embedding_grad", embedding_grad),
    {},
};

}  // namespace mortice
