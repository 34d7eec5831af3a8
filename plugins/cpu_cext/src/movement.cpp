// Views by shape and strides, basic indexing, and writing through them.
#include <cstring>

#include "families.hpp"
#include "host.hpp"

namespace mortice {

// ---- reshape ----

// Find strides that show x in another shape without copying, PyTorch's for sizes of 1 too; false where there are none.
static bool reshaped_strides(const Array &x, int ndim, const int64_t *shape, int64_t *strides) {
    if (!x.size && x.ndim == ndim && !memcmp(x.shape(), shape, sizeof(int64_t) * static_cast<size_t>(ndim))) {
        memcpy(strides, x.strides(), sizeof(int64_t) * static_cast<size_t>(ndim));
        return true;
    }
    int to = ndim - 1;
    int64_t base = x.size && x.ndim ? x.strides()[x.ndim - 1] : 1, old = 1, seen = 1;
    // Group the old axes that lie in one line, and cut each group's length into the new sizes.
    for (int from = x.size ? x.ndim - 1 : -1; from >= 0; from--) {
        old *= x.shape()[from];
        if (from && (x.shape()[from - 1] == 1 || x.strides()[from - 1] == old * base)) continue;
        for (; to >= 0 && (seen < old || shape[to] == 1); to--) strides[to] = seen * base, seen *= shape[to];
        if (seen != old) return false;
        if (from) base = x.strides()[from - 1], old = seen = 1;
    }
    for (; to >= 0; to--) strides[to] = seen * base, seen *= shape[to] ? shape[to] : 1;
    return true;
}

static void infer(Array &x, int64_t *shape, int ndim) {
    int64_t known = 1;
    int free = -1;
    for (int i = 0; i < ndim; i++) {
        if (shape[i] == -1 && free < 0)
            free = i;
        else if (__builtin_mul_overflow(known, shape[i], &known))
            known = 0;  // `count` refuses such a shape
    }
    if (free >= 0 && known > 0 && x.size % known == 0) shape[free] = x.size / known;
    if (count(ndim, shape) != x.size)
        fail(PyExc_ValueError, "reshape: the sizes do not hold the %lld elements.", static_cast<long long>(x.size));
}

static PyObject *reshape_to(Array &x, PyObject *sizes, bool copy) {
    int64_t shape[MAX_NDIM], strides[MAX_NDIM];
    int ndim = as_ints(sizes, shape, MAX_NDIM);
    infer(x, shape, ndim);
    if (reshaped_strides(x, ndim, shape, strides)) return make_view(x, x.data, ndim, shape, strides).release();
    if (!copy) fail(PyExc_ValueError, "reshape: the elements do not lie so that a view could show them.");
    Ref row = make(x.dtype, ndim, shape);
    Ref seen = make_view(*row, row->data, x.ndim, x.shape(), [&] {
        int64_t step = 1;
        for (int i = x.ndim - 1; i >= 0; i--) strides[i] = step, step *= x.shape()[i];
        return strides;
    }());
    assign(*seen, x);
    return row.release();
}

static PyObject *reshape(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<2> N{"reshape", {"x", "shape"}, 2};
    PyObject *a[2];
    arguments(N, args, n, names, a);
    return reshape_to(as_array(a[0]), a[1], true);
}

static PyObject *reshape_view(PyObject *const *args, Py_ssize_t n, PyObject *) {
    if (n != 2) fail(PyExc_TypeError, "reshape_view: expected an array and sizes.");
    return reshape_to(as_array(args[0]), args[1], false);
}

// ---- axes ----

static PyObject *permuted(Array &x, const int *order) {
    int64_t shape[MAX_NDIM], strides[MAX_NDIM];
    for (int i = 0; i < x.ndim; i++) {
        shape[i] = x.shape()[order[i]];
        strides[i] = x.strides()[order[i]];
    }
    return make_view(x, x.data, x.ndim, shape, strides).release();
}

static PyObject *permute_dims(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<2> N{"permute_dims", {"x", "axes"}, 2};
    PyObject *a[2];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    int64_t axes[MAX_NDIM];
    int order[MAX_NDIM];
    uint64_t seen = 0;
    if (as_ints(a[1], axes, MAX_NDIM) != x.ndim) fail(PyExc_ValueError, "permute_dims: expected %d axes.", x.ndim);
    for (int i = 0; i < x.ndim; i++) {
        int64_t axis = axes[i] < 0 ? axes[i] + x.ndim : axes[i];
        if (axis < 0 || axis >= x.ndim || (seen >> axis & 1)) fail(PyExc_ValueError, "permute_dims: expected each axis once.");
        seen |= uint64_t{1} << axis;
        order[i] = static_cast<int>(axis);
    }
    return permuted(x, order);
}

static PyObject *matrix_transpose(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    Array &x = only("matrix_transpose", args, n, names);
    if (x.ndim < 2) fail(PyExc_ValueError, "matrix_transpose: expected at least 2 dimensions; got %d.", x.ndim);
    int order[MAX_NDIM];
    for (int i = 0; i < x.ndim; i++) order[i] = i;
    order[x.ndim - 2] = x.ndim - 1;
    order[x.ndim - 1] = x.ndim - 2;
    return permuted(x, order);
}

static PyObject *moveaxis(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<3> N{"moveaxis", {"x", "source", "destination"}, 3};
    PyObject *a[3];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    if (!x.ndim) fail(PyExc_ValueError, "moveaxis: expected at least 1 dimension.");
    int from = as_axis(a[1], x.ndim), to = as_axis(a[2], x.ndim), order[MAX_NDIM];
    for (int i = 0; i < x.ndim; i++)
        order[i] = i == to ? from : i >= from && i < to ? i + 1 : i > to && i <= from ? i - 1 : i;
    return permuted(x, order);
}

static PyObject *broadcast_to(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<2> N{"broadcast_to", {"x", "shape"}, 2};
    PyObject *a[2];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    int64_t shape[MAX_NDIM], strides[MAX_NDIM];
    int ndim = as_ints(a[1], shape, MAX_NDIM), lead = ndim - x.ndim;
    if (lead < 0) fail(PyExc_ValueError, "broadcast_to: %d dimensions cannot become %d.", x.ndim, ndim);
    for (int i = 0; i < ndim; i++) {
        int64_t have = i < lead ? 1 : x.shape()[i - lead];
        if (have != shape[i] && have != 1)
            fail(PyExc_ValueError, "broadcast_to: size %lld cannot become %lld.", static_cast<long long>(have),
                 static_cast<long long>(shape[i]));
        strides[i] = have != shape[i] || i < lead ? 0 : x.strides()[i - lead];
    }
    for (int i = lead - 1; i >= 0 && x.ndim; i--)
        if (shape[i] == 1) strides[i] = shape[i + 1] * strides[i + 1];
    return make_view(x, x.data, ndim, shape, strides).release();
}

static PyObject *expand_dims(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<2> N{"expand_dims", {"x", "axis"}, 2};
    PyObject *a[2];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    if (x.ndim == MAX_NDIM) fail(PyExc_ValueError, "expand_dims: at most %d dimensions are supported.", MAX_NDIM);
    int axis = as_axis(a[1], x.ndim + 1);
    int64_t shape[MAX_NDIM], strides[MAX_NDIM];
    for (int i = 0; i <= x.ndim; i++) {
        shape[i] = i == axis ? 1 : x.shape()[i - (i > axis)];
        strides[i] = i == axis ? (axis < x.ndim ? x.strides()[axis] * x.shape()[axis] : 1) : x.strides()[i - (i > axis)];
    }
    return make_view(x, x.data, x.ndim + 1, shape, strides).release();
}

static PyObject *squeeze(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<2> N{"squeeze", {"x", "axis"}, 2};
    PyObject *a[2];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    uint64_t drop = as_axes(a[1], x.ndim);
    int64_t shape[MAX_NDIM], strides[MAX_NDIM];
    int ndim = 0;
    for (int i = 0; i < x.ndim; i++) {
        if (drop >> i & 1) {
            if (x.shape()[i] != 1) fail(PyExc_ValueError, "squeeze: axis %d has size %lld.", i, static_cast<long long>(x.shape()[i]));
            continue;
        }
        shape[ndim] = x.shape()[i];
        strides[ndim++] = x.strides()[i];
    }
    return make_view(x, x.data, ndim, shape, strides).release();
}

static PyObject *flip(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<2> N{"flip", {"x", "axis"}, 2};
    PyObject *a[2];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    uint64_t axes = as_axes(a[1], x.ndim);
    int64_t strides[MAX_NDIM];
    char *data = x.data;
    for (int i = 0; i < x.ndim; i++) {
        strides[i] = x.strides()[i];
        if ((axes >> i & 1) && x.shape()[i] > 0) {
            data += (x.shape()[i] - 1) * strides[i] * x.itemsize();
            strides[i] = -strides[i];
        }
    }
    if (!x.size) data = x.data;
    Ref seen = make_view(x, data, x.ndim, x.shape(), strides), out = make_laid_out_like(x, x.dtype);
    assign(*out, *seen);
    return out.release();
}

// ---- joining ----

static void check_joinable(const char *name, const Array &first, const Array &x, int axis) {
    bool fits = x.ndim == first.ndim && x.dtype == first.dtype;
    for (int i = 0; fits && i < x.ndim; i++) fits = i == axis || x.shape()[i] == first.shape()[i];
    if (!fits) fail(PyExc_ValueError, "%s: expected arrays of one dtype whose sizes agree but for axis %d.", name, axis);
}

static PyObject *join(const char *name, PyObject *list, PyObject *axis_, bool stacked) {
    Own<> fast(PySequence_Fast(list, "expected a sequence of arrays"));
    if (!fast) throw Failed{};
    Py_ssize_t many = PySequence_Fast_GET_SIZE(fast.get());
    PyObject **items = PySequence_Fast_ITEMS(fast.get());
    if (!many) fail(PyExc_ValueError, "%s: expected at least one array.", name);
    Array &first = as_array(items[0]);
    int ndim = first.ndim + stacked;
    if (!ndim || ndim > MAX_NDIM) fail(PyExc_ValueError, "%s: expected 1 to %d dimensions; got %d.", name, MAX_NDIM, ndim);
    int axis = as_axis(axis_, ndim);
    int64_t shape[MAX_NDIM], length = 0;
    for (Py_ssize_t i = 0; i < many; i++) {
        Array &x = as_array(items[i]);
        check_joinable(name, first, x, stacked ? -1 : axis);
        length += stacked ? 1 : x.shape()[axis];
    }
    for (int i = 0; i < ndim; i++) shape[i] = i == axis ? length : first.shape()[i - (stacked && i > axis)];
    Ref out = make(first.dtype, ndim, shape);
    int64_t outer = 1, inner = first.itemsize();
    for (int i = 0; i < axis; i++) outer *= shape[i];
    for (int i = axis + 1; i < ndim; i++) inner *= shape[i];
    int64_t row = length * inner, at = 0;
    for (Py_ssize_t i = 0; i < many; i++) {
        Array &x = as_array(items[i]);
        int64_t part = stacked ? 1 : x.shape()[axis], bytes = part * inner;
        char *to = out->data + at;
        at += bytes;
        if (!x.size) continue;
        if (x.contiguous && (outer == 1 || bytes * outer <= 8192)) {
            if (outer == 1 && bytes > 65536) {
                Ref from = over_memory(items[i], x.data, x.dtype, 1, &x.size, nullptr, false);
                Ref target = over_memory(reinterpret_cast<PyObject *>(out.get()), to, x.dtype, 1, &x.size, nullptr, true);
                assign(*target, *from);
            } else {
                for (int64_t o = 0; o < outer; o++) copy_bytes(to + o * row, x.data + o * bytes, static_cast<size_t>(bytes));
            }
            continue;
        }
        int64_t strides[MAX_NDIM], view[MAX_NDIM];
        int d = 0;
        for (int k = 0; k < ndim; k++) {
            if (stacked && k == axis) continue;
            view[d] = k == axis ? part : shape[k];
            strides[d++] = out->strides()[k];
        }
        Ref target = make_view(*out, to, d, view, strides);
        assign(*target, x);
    }
    return out.release();
}

static PyObject *concat(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<2> N{"concat", {"arrays", "axis"}, 2};
    PyObject *a[2];
    arguments(N, args, n, names, a);
    return join("concat", a[0], a[1], false);
}

static PyObject *stack(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<2> N{"stack", {"arrays", "axis"}, 2};
    PyObject *a[2];
    arguments(N, args, n, names, a);
    return join("stack", a[0], a[1], true);
}

// ---- basic indexing ----

static Ref indexed(Array &x, PyObject *key) {
    PyObject *const *items = &key;
    Py_ssize_t many = 1;
    if (PyTuple_Check(key)) {
        items = &PyTuple_GET_ITEM(key, 0);
        many = PyTuple_GET_SIZE(key);
    }
    int used = 0, ellipses = 0;
    for (Py_ssize_t i = 0; i < many; i++) {
        used += items[i] != Py_None && items[i] != Py_Ellipsis;
        ellipses += items[i] == Py_Ellipsis;
    }
    if (used > x.ndim || ellipses > 1) fail(PyExc_IndexError, "getitem: too many indices for %d dimensions.", x.ndim);
    int64_t shape[MAX_NDIM], strides[MAX_NDIM];
    int axis = 0, ndim = 0;
    char *data = x.data;
    auto keep = [&](int64_t size, int64_t stride) {
        if (ndim == MAX_NDIM) fail(PyExc_IndexError, "getitem: at most %d dimensions are supported.", MAX_NDIM);
        shape[ndim] = size;
        strides[ndim++] = stride;
    };
    for (Py_ssize_t i = 0; i < many; i++) {
        PyObject *k = items[i];
        if (k == Py_None) {
            keep(1, axis < x.ndim ? x.shape()[axis] * x.strides()[axis] : 1);
        } else if (k == Py_Ellipsis) {
            for (int left = x.ndim - used; left > 0; left--, axis++) keep(x.shape()[axis], x.strides()[axis]);
        } else if (PySlice_Check(k)) {
            Py_ssize_t start, stop, step;
            if (PySlice_Unpack(k, &start, &stop, &step) < 0) throw Failed{};
            Py_ssize_t length = PySlice_AdjustIndices(x.shape()[axis], &start, &stop, step);
            if (length > 0) data += start * x.strides()[axis] * x.itemsize();
            keep(length, static_cast<int64_t>(static_cast<uint64_t>(x.strides()[axis]) * static_cast<uint64_t>(step)));
            axis++;
        } else {
            Py_ssize_t at = PyNumber_AsSsize_t(k, PyExc_IndexError);
            if (at == -1 && PyErr_Occurred()) throw Failed{};
            int64_t size = x.shape()[axis];
            if (at < -size || at >= size)
                fail(PyExc_IndexError, "index %zd is out of bounds for dimension %d with size %lld", at, axis, static_cast<long long>(size));
            data += (at < 0 ? at + size : at) * x.strides()[axis] * x.itemsize();
            axis++;
        }
    }
    for (; axis < x.ndim; axis++) keep(x.shape()[axis], x.strides()[axis]);
    bool empty = false;
    for (int i = 0; i < ndim; i++) empty = empty || shape[i] == 0;
    return make_view(x, empty ? x.data : data, ndim, shape, strides);
}

static PyObject *getitem(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<2> N{"getitem", {"x", "key"}, 2};
    PyObject *a[2];
    arguments(N, args, n, names, a);
    return indexed(as_array(a[0]), a[1]).release();
}

static PyObject *setitem(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<3> N{"setitem", {"x", "key", "value"}, 3};
    PyObject *a[3];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    if (!x.writable) fail(PyExc_ValueError, "setitem: the array is read-only. Use .clone() first.");
    Ref part = indexed(x, a[1]);
    if (is_array(a[2])) {
        Array &value = as_array(a[2]);
        if (may_overlap(*part, value) && !(part->data == value.data && same_shape(*part, value))) {
            assign(*part, *copied(value));
        } else {
            assign(*part, value);
        }
    } else {
        Scalar s = as_scalar(a[2], x.dtype);
        fill(*part, s.bytes);
    }
    return Py_NewRef(a[0]);
}

static PyObject *pad(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<3> N{"pad", {"x", "widths", "value"}, 2};
    PyObject *a[3];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    Own<> widths(PySequence_Fast(a[1], "pad: expected (before, after) for each axis"));
    if (!widths) throw Failed{};
    if (PySequence_Fast_GET_SIZE(widths.get()) != x.ndim) fail(PyExc_ValueError, "pad: expected widths for %d axes.", x.ndim);
    int64_t shape[MAX_NDIM], start = 0, before[MAX_NDIM];
    bool any = false;
    for (int i = 0; i < x.ndim; i++) {
        int64_t pair[2] = {0, 0};
        if (as_ints(PySequence_Fast_GET_ITEM(widths.get(), i), pair, 2) != 2 || pair[0] < 0 || pair[1] < 0)
            fail(PyExc_ValueError, "pad: expected (before, after), not negative, for each axis.");
        any = any || pair[0] || pair[1];
        before[i] = pair[0];
        if (__builtin_add_overflow(x.shape()[i], pair[0], &shape[i]) || __builtin_add_overflow(shape[i], pair[1], &shape[i]))
            fail(PyExc_ValueError, "pad: the widths are too large.");
    }
    if (!any) return Py_NewRef(a[0]);
    Ref out = make(x.dtype, x.ndim, shape);
    for (int i = 0; i < x.ndim; i++) start += before[i] * out->strides()[i];
    Scalar s = a[2] ? as_scalar(a[2], x.dtype) : scalar_of(0, x.dtype);
    fill(*out, s.bytes);
    if (!x.size) return out.release();
    Ref inside = make_view(*out, out->data + start * x.itemsize(), x.ndim, x.shape(), out->strides());
    assign(*inside, x);
    return out.release();
}

// ---- other views ----

static Ref diagonal_of(Array &x, PyObject *const *place) {  // offset, axis1, axis2
    int first = as_axis(place[1], x.ndim), second = as_axis(place[2], x.ndim);
    if (x.ndim < 2 || first == second) fail(PyExc_ValueError, "diagonal: expected two different axes.");
    int64_t offset = as_int(place[0]), rows = x.shape()[first], columns = x.shape()[second];
    int64_t length = offset >= 0 ? (rows < columns - offset ? rows : columns - offset) : (rows + offset < columns ? rows + offset : columns);
    length = length < 0 ? 0 : length;
    int64_t shape[MAX_NDIM], strides[MAX_NDIM];
    int ndim = 0;
    for (int i = 0; i < x.ndim; i++) {
        if (i == first || i == second) continue;
        shape[ndim] = x.shape()[i];
        strides[ndim++] = x.strides()[i];
    }
    shape[ndim] = length;
    strides[ndim++] = x.strides()[first] + x.strides()[second];
    int64_t skip = offset >= 0 ? offset * x.strides()[second] : -offset * x.strides()[first];
    return make_view(x, x.data + (length && x.size ? skip * x.itemsize() : 0), ndim, shape, strides);
}

static PyObject *diagonal(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<4> N{"diagonal", {"x", "offset", "axis1", "axis2"}, 4};
    PyObject *a[4];
    arguments(N, args, n, names, a);
    return diagonal_of(as_array(a[0]), a + 1).release();
}

static PyObject *diagonal_write(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<5> N{"diagonal_write", {"x", "part", "offset", "axis1", "axis2"}, 5};
    PyObject *a[5];
    arguments(N, args, n, names, a);
    Ref out = cloned(as_array(a[0]));
    const Ref line = diagonal_of(*out, a + 2);
    if (line->size) assign(*line, as_array(a[1]));
    return out.release();
}

static PyObject *sliding_window(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<4> N{"sliding_window", {"x", "axis", "size", "step"}, 4};
    PyObject *a[4];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    int64_t size = as_int(a[2]), step = as_int(a[3]), shape[MAX_NDIM], strides[MAX_NDIM];
    if (x.ndim == MAX_NDIM || size < 0 || step < 1) fail(PyExc_ValueError, "sliding_window: expected a size and a positive step.");
    for (int i = 0; i < x.ndim; i++) shape[i] = x.shape()[i], strides[i] = x.strides()[i];
    strides[x.ndim] = 1;
    shape[x.ndim] = size;
    if (x.ndim) {
        int axis = as_axis(a[1], x.ndim);
        if (size > shape[axis]) fail(PyExc_ValueError, "sliding_window: the window is longer than the axis.");
        strides[x.ndim] = strides[axis];
        shape[axis] = (shape[axis] - size) / step + 1;
        strides[axis] *= step;
    } else if (size > 1) {
        fail(PyExc_ValueError, "sliding_window: a window of a single element has size 0 or 1.");
    }
    return make_view(x, x.data, x.ndim + 1, shape, strides).release();
}

static PyObject *strided(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<4> N{"strided", {"x", "shape", "strides", "offset"}, 4};
    PyObject *a[4];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    int64_t shape[MAX_NDIM], strides[MAX_NDIM], offset = as_int(a[3]);
    int ndim = as_ints(a[1], shape, MAX_NDIM);
    if (as_ints(a[2], strides, MAX_NDIM) != ndim) fail(PyExc_ValueError, "strided: expected a stride for each size.");
    if (!x.contiguous) fail(PyExc_ValueError, "strided: expected row-major memory.");
    if (count(ndim, shape)) {
        int64_t low = offset, high = offset;
        for (int i = 0; i < ndim; i++) {
            int64_t reach;
            if (__builtin_mul_overflow(shape[i] - 1, strides[i], &reach) || __builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high))
                fail(PyExc_ValueError, "strided: the strides reach too far.");
        }
        if (low < 0 || high >= x.size)
            fail(PyExc_ValueError, "strided: the elements %lld to %lld are outside of the %lld in memory.", static_cast<long long>(low),
                 static_cast<long long>(high), static_cast<long long>(x.size));
    } else {
        offset = 0;
    }
    return make_view(x, x.data + offset * x.itemsize(), ndim, shape, strides).release();
}

static PyObject *whole(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    Array &x = only("whole", args, n, names);
    Array &root = x.base && is_array(x.base) ? as_array(x.base) : x;
    // From the lowest address that the root sees: the root of borrowed memory may have any strides.
    int64_t low = 0, high = 0;
    for (int i = 0; root.size && i < root.ndim; i++) {
        int64_t reach = (root.shape()[i] - 1) * root.strides()[i];
        (reach < 0 ? low : high) += reach;
    }
    char *start = root.data + low * root.itemsize();
    int64_t bytes = root.size ? (high - low + 1) * root.itemsize() : 0, length = bytes / x.itemsize(), one = 1;
    Ref flat = make_view(root, start, 1, &length, &one, x.dtype);
    int64_t offset = x.size ? (x.data - start) / x.itemsize() : 0;
    return Py_BuildValue("NL", flat.release(), static_cast<long long>(offset));
}

static PyObject *reinterpret(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<2> N{"reinterpret", {"x", "dtype"}, 2};
    PyObject *a[2];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    DType dtype = as_dtype(a[1]);
    int64_t have = x.itemsize(), want = ITEMSIZE[dtype];
    if (have == want) return make_view(x, x.data, x.ndim, x.shape(), x.strides(), dtype).release();
    if (!x.ndim) fail(PyExc_ValueError, "reinterpret: expected at least 1 dimension for elements of another size.");
    Ref row = x.strides()[x.ndim - 1] == 1 || x.size == 0 ? Ref::share(&x) : contiguous(x);
    bool divides = true;
    for (int i = 0; i < x.ndim - 1; i++) divides = divides && row->strides()[i] * have % want == 0;
    if (!divides) row = contiguous(x);
    int64_t shape[MAX_NDIM], strides[MAX_NDIM];
    for (int i = 0; i < x.ndim; i++) shape[i] = x.shape()[i], strides[i] = row->strides()[i] * have / want;
    int last = x.ndim - 1;
    if (shape[last] * have % want) fail(PyExc_ValueError, "reinterpret: the last axis does not hold whole elements.");
    shape[last] = shape[last] * have / want;
    strides[last] = 1;
    return make_view(*row, row->data, x.ndim, shape, strides, dtype).release();
}

static PyObject *view_as_real(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    Array &x = only("view_as_real", args, n, names);
    if (!is_complex(x.dtype) || x.ndim == MAX_NDIM) fail(PyExc_TypeError, "view_as_real: expected complex numbers.");
    int64_t shape[MAX_NDIM], strides[MAX_NDIM];
    for (int i = 0; i < x.ndim; i++) shape[i] = x.shape()[i], strides[i] = 2 * x.strides()[i];
    shape[x.ndim] = 2;
    strides[x.ndim] = 1;
    return make_view(x, x.data, x.ndim + 1, shape, strides, real_of(x.dtype)).release();
}

static PyObject *view_as_complex(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    Array &x = only("view_as_complex", args, n, names);
    int last = x.ndim - 1;
    if ((x.dtype != F32 && x.dtype != F64) || last < 0 || x.shape()[last] != 2)
        fail(PyExc_TypeError, "view_as_complex: expected float32 or float64 with a last axis of size 2.");
    bool pairs = x.strides()[last] == 1;
    for (int i = 0; i < last; i++) pairs = pairs && (x.strides()[i] % 2 == 0 || x.shape()[i] < 2);
    Ref row = pairs ? Ref::share(&x) : contiguous(x);
    int64_t strides[MAX_NDIM];
    for (int i = 0; i < last; i++) strides[i] = row->strides()[i] / 2;
    return make_view(*row, row->data, last, x.shape(), strides, complex_with(x.dtype)).release();
}

// Keeps the columns of each matrix up to the diagonal, or from it on; zero elsewhere.
template <bool LOWER> static PyObject *triangle(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<2> N{LOWER ? "tril" : "triu", {"x", "diagonal"}, 1};
    PyObject *a[2];
    arguments(N, args, n, names, a);
    Ref x = contiguous(as_array(a[0]));
    if (x->ndim < 2) fail(PyExc_ValueError, "%s: expected matrices.", N.function);
    int64_t rows = x->shape()[x->ndim - 2], columns = x->shape()[x->ndim - 1];
    int64_t diagonal = a[1] ? as_int(a[1]) : 0, item = x->itemsize();
    diagonal = diagonal > columns ? columns : diagonal < -rows - 1 ? -rows - 1 : diagonal;
    Ref y = make_like(*x);
    int64_t lines = columns ? x->size / columns : 0;
    Unlocked unlocked(x->size / 4);
    for (int64_t i = 0; i < lines; i++) {
        int64_t edge = i % rows + diagonal + LOWER;
        size_t kept = static_cast<size_t>((edge < 0 ? 0 : edge > columns ? columns : edge) * item);
        size_t all = static_cast<size_t>(columns * item);
        char *to = y->data + i * columns * item, *from = x->data + i * columns * item;
        copy_bytes(LOWER ? to : to + kept, LOWER ? from : from + kept, LOWER ? kept : all - kept);
        memset(LOWER ? to + kept : to, 0, LOWER ? all - kept : kept);
    }
    return y.release();
}

const Method movement_methods[] = {
    MORTICE_METHOD("reshape", reshape),
    MORTICE_METHOD("reshape_view", reshape_view),
    MORTICE_METHOD("permute_dims", permute_dims),
    MORTICE_METHOD("matrix_transpose", matrix_transpose),
    MORTICE_METHOD("moveaxis", moveaxis),
    MORTICE_METHOD("broadcast_to", broadcast_to),
    MORTICE_METHOD("expand_dims", expand_dims),
    MORTICE_METHOD("squeeze", squeeze),
    MORTICE_KEEPING("flip", flip, 5),
    MORTICE_METHOD("concat", concat),
    MORTICE_METHOD("stack", stack),
    MORTICE_METHOD("getitem", getitem),
    MORTICE_METHOD("setitem", setitem),
    MORTICE_KEEPING("pad", pad, 5),
    MORTICE_METHOD("diagonal", diagonal),
    MORTICE_METHOD("diagonal_write", diagonal_write),
    MORTICE_METHOD("sliding_window", sliding_window),
    MORTICE_METHOD("tril", triangle<true>),
    MORTICE_METHOD("triu", triangle<false>),
    MORTICE_METHOD("strided", strided),
    MORTICE_METHOD("whole", whole),
    MORTICE_METHOD("reinterpret", reinterpret),
    MORTICE_METHOD("view_as_real", view_as_real),
    MORTICE_METHOD("view_as_complex", view_as_complex),
    {},
};

}  // namespace mortice
