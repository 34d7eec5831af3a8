// The array type itself: making and freeing, views, layout, and its few Python attributes.
#include "array.hpp"

#include <cstdarg>
#include <cstring>
#include <new>

#include "call.hpp"
#include "host.hpp"

namespace mortice {

const char *const DTYPE_NAMES[DTYPES] = {"bool",  "uint8",   "uint16",   "uint32",  "uint64",  "int8",      "int16",     "int32",
                                         "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"};

void fail(PyObject *type, const char *format, ...) {
    va_list values;
    va_start(values, format);
    PyErr_FormatV(type, format, values);
    va_end(values);
    throw Failed{};
}

void out_of_memory(size_t bytes) { throw OutOfMemory{bytes}; }

// ---- making ----

int64_t count(int ndim, const int64_t *shape) {
    int64_t n = 1, nonzero = 1;
    for (int i = 0; i < ndim; i++) {
        if (shape[i] < 0) fail(PyExc_ValueError, "array: sizes must not be negative; got %lld.", static_cast<long long>(shape[i]));
        n *= shape[i] ? 1 : 0;
        if (shape[i] && __builtin_mul_overflow(nonzero, shape[i], &nonzero)) out_of_memory(INT64_MAX);
    }
    if (nonzero > (INT64_MAX >> 5)) out_of_memory(INT64_MAX);
    return n ? nonzero : 0;
}

// An array without memory; shape and strides are to be set.
static Array *bare(DType dtype, int ndim, int64_t size, size_t inline_bytes) {
    if (ndim > MAX_NDIM) fail(PyExc_RuntimeError, "array: only tensors with up to %d dims are supported; got %d.", MAX_NDIM, ndim);
    size_t head = sizeof(Array) + 2 * sizeof(int64_t) * static_cast<size_t>(ndim);
    head = (head + 15) & ~size_t{15};
    auto *x = static_cast<Array *>(PyObject_Malloc(head + inline_bytes));
    if (!x) out_of_memory(head + inline_bytes);
    PyObject_Init(reinterpret_cast<PyObject *>(x), &ArrayType);
    x->data = reinterpret_cast<char *>(x) + head;
    x->size = size;
    x->base = x->shape_ = nullptr;
    x->dtype = dtype;
    x->ndim = static_cast<uint8_t>(ndim);
    x->contiguous = x->writable = true;
    x->inline_ = true;
    return x;
}

static void set_row_major(Array &x, const int64_t *shape) {
    int64_t step = 1;
    int64_t *strides = x.strides();
    for (int i = x.ndim - 1; i >= 0; i--) {
        x.dims[i] = shape[i];
        strides[i] = step;
        step *= shape[i] ? shape[i] : 1;
    }
}

static void take_memory(Ref &x) {
    x->inline_ = false;
    x->data = static_cast<char *>(memory_take(static_cast<size_t>(x->bytes())));
    if (!x->data) {
        x->inline_ = true;  // nothing to give back
        out_of_memory(static_cast<size_t>(x->bytes()));
    }
}

Ref make(DType dtype, int ndim, const int64_t *shape) {
    int64_t size = count(ndim, shape);
    int64_t bytes = size * ITEMSIZE[dtype];
    bool small = bytes <= INLINE_BYTES;
    Ref x(bare(dtype, ndim, size, small ? static_cast<size_t>(bytes) : 0));
    set_row_major(*x, shape);
    if (!small) take_memory(x);
    return x;
}

// Whether two arrays might see a common element: their ranges of addresses meet.
bool may_overlap(const Array &x, const Array &y) {
    auto range = [](const Array &v, const char *&low, const char *&high) {
        low = high = v.data;
        for (int i = 0; i < v.ndim; i++) {
            int64_t reach = (v.shape()[i] - 1) * v.strides()[i] * v.itemsize();
            (reach < 0 ? low : high) += reach;
        }
        high += v.itemsize();
    };
    if (!x.size || !y.size) return false;
    const char *a, *b, *c, *d;
    range(x, a, b);
    range(y, c, d);
    return a < d && c < b;
}

// The axes of x from the widest stride to the narrowest; false where they overlap or leave gaps.
static bool dense_order(const Array &x, int *order) {
    int n = x.ndim;
    for (int i = 0; i < n; i++) {
        int j = i;
        for (; j > 0 && (x.strides()[order[j - 1]] < x.strides()[i] ||
                         (x.strides()[order[j - 1]] == x.strides()[i] && x.shape()[order[j - 1]] == 1)); j--)
            order[j] = order[j - 1];
        order[j] = i;
    }
    int64_t step = 1;
    for (int i = n - 1; i >= 0; i--) {
        int64_t size = x.shape()[order[i]];
        if (size == 1) continue;
        if (x.strides()[order[i]] != step) return false;
        step *= size;
    }
    return true;
}

bool is_dense(const Array &x) {
    if (x.contiguous || x.size == 0) return true;
    int order[MAX_NDIM];
    return dense_order(x, order);
}

static bool row_major(const Array &x) {
    if (x.size == 0) return true;
    int64_t step = 1;
    for (int i = x.ndim - 1; i >= 0; i--) {
        if (x.shape()[i] == 1) continue;
        if (x.strides()[i] != step) return false;
        step *= x.shape()[i];
    }
    return true;
}

// The channels' axis first, then the others from the last to the first: the i-th closest together with channels last.
static int axis_of_last(int i, int ndim) { return i == 0 ? 1 : i == ndim - 1 ? 0 : ndim - i; }

bool channels_last(const Array &x) {
    if (x.ndim < 3 || x.ndim > 5) return false;
    int64_t least = 0;
    for (int i = 0; i < x.ndim; i++) {
        int d = axis_of_last(i, x.ndim);
        if (x.strides()[d] < least || (d == 0 && least == x.strides()[1])) return false;
        least = x.strides()[d] * x.shape()[d];
    }
    return x.strides()[1] > 0;
}

Ref make_channels_last(DType dtype, int ndim, const int64_t *shape) {
    Ref y = make(dtype, ndim, shape);
    int64_t step = 1;
    for (int i = 0; i < ndim; i++) {
        int d = axis_of_last(i, ndim);
        y->strides()[d] = step;
        step *= shape[d];
    }
    y->contiguous = row_major(*y);
    return y;
}

Ref with_channels_last(Array &x) {
    if (channels_last(x) && is_dense(x)) return Ref::share(&x);
    Ref y = make_channels_last(x.dtype, x.ndim, x.shape());
    assign(*y, x);
    return y;
}

// Whether axis i lies closer together than j: above 0 if so, below 0 if not, 0 where no array tells. As PyTorch's
// TensorIterator has it: the first array that has a stride along both decides, equal strides by the sizes.
static int closer(int i, int j, int ndim, const int64_t *shape, const Array *const *xs, int count) {
    for (int k = 0; k < count; k++) {
        const Array &x = *xs[k];
        const int behind = ndim - x.ndim;
        if (i < behind || j < behind) continue;
        const bool spread = (x.shape()[i - behind] != shape[i]) || (x.shape()[j - behind] != shape[j]);
        const int64_t a = x.strides()[i - behind], b = x.strides()[j - behind];
        if (spread || a == 0 || b == 0) continue;
        if (a != b) return a < b ? 1 : -1;
        if (shape[j] > shape[i]) return 1;
    }
    return 0;
}

Ref make_laid_out_like(const Array *const *xs, int count, int ndim, const int64_t *shape, DType dtype) {
    const Array &x = *xs[0];
    Ref y = make(dtype, ndim, shape);
    if (x.ndim == ndim && !memcmp(x.shape(), shape, sizeof(int64_t) * static_cast<size_t>(ndim)) && is_dense(x)) {
        memcpy(y->strides(), x.strides(), sizeof(int64_t) * static_cast<size_t>(ndim));
        y->contiguous = x.contiguous;
        return y;
    }
    if (y->size == 0) return y;
    int order[MAX_NDIM];  // from the widest stride to the narrowest
    for (int i = 0; i < ndim; i++) order[i] = i;
    for (int i = ndim - 2; i >= 0; i--)
        for (int at = i, j = i + 1; j < ndim; j++) {
            const int found = closer(order[at], order[j], ndim, shape, xs, count);
            if (found < 0) break;
            if (found) std::swap(order[at], order[j]), at = j;
        }
    int64_t step = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        y->strides()[order[i]] = step;
        step *= shape[order[i]];
    }
    y->contiguous = row_major(*y);
    return y;
}

Ref make_laid_out_like(const Array &x, DType dtype) {
    const Array *const xs[] = {&x};
    return make_laid_out_like(xs, 1, x.ndim, x.shape(), dtype);
}

Ref make_zeros(DType dtype, int ndim, const int64_t *shape) {
    Ref x = make(dtype, ndim, shape);
    memset(x->data, 0, static_cast<size_t>(x->bytes()));
    return x;
}

Ref make_view(Array &x, char *data, int ndim, const int64_t *shape, const int64_t *strides, DType dtype) {
    int64_t size = count(ndim, shape);
    Ref v(bare(dtype, ndim, size, 0));
    v->data = data;
    v->inline_ = false;
    memcpy(v->shape(), shape, sizeof(int64_t) * static_cast<size_t>(ndim));
    memcpy(v->strides(), strides, sizeof(int64_t) * static_cast<size_t>(ndim));
    v->contiguous = row_major(*v);
    v->writable = x.writable;
    // Of a chain of views the first array, which owns the memory or has borrowed it.
    v->base = x.base && is_array(x.base) ? x.base : reinterpret_cast<PyObject *>(&x);
    Py_INCREF(v->base);
    return v;
}

Ref over_memory(PyObject *owner, char *data, DType dtype, int ndim, const int64_t *shape, const int64_t *strides, bool writable) {
    int64_t size = count(ndim, shape);
    Ref v(bare(dtype, ndim, size, 0));
    v->data = data;
    v->inline_ = false;
    v->writable = writable;
    set_row_major(*v, shape);
    if (strides) {
        memcpy(v->strides(), strides, sizeof(int64_t) * static_cast<size_t>(ndim));
        v->contiguous = row_major(*v);
    }
    v->base = Py_NewRef(owner);
    return v;
}

Ref copied(Array &x) {
    Ref y = make_like(x);
    assign(*y, x);
    return y;
}

Ref cloned(Array &x) {
    Ref y = make_laid_out_like(x, x.dtype);
    assign(*y, x);
    return y;
}

Ref contiguous(Array &x) { return x.contiguous ? Ref::share(&x) : copied(x); }

Ref converted(Array &x, DType dtype) {
    if (x.dtype == dtype) return Ref::share(&x);
    Ref y = make_like(x, dtype);
    assign(*y, x);
    return y;
}

bool same_shape(const Array &x, const Array &y) {
    return x.ndim == y.ndim && memcmp(x.shape(), y.shape(), sizeof(int64_t) * x.ndim) == 0;
}

// ---- the Python type ----

static void dealloc(PyObject *self) {
    auto *x = reinterpret_cast<Array *>(self);
    Py_XDECREF(x->shape_);
    if (x->base)
        Py_DECREF(x->base);
    else if (!x->inline_)
        memory_give(x->data);
    PyObject_Free(self);
}

PyObject *shape_tuple(Array &x) {
    if (!x.shape_) x.shape_ = tuple_of(x.ndim, x.shape());
    return Py_XNewRef(x.shape_);
}

static PyObject *get_shape(PyObject *self, void *) { return shape_tuple(*reinterpret_cast<Array *>(self)); }
static PyObject *get_strides(PyObject *self, void *) {
    auto *x = reinterpret_cast<Array *>(self);
    return tuple_of(x->ndim, x->strides());
}
static PyObject *get_dtype(PyObject *self, void *) { return Py_NewRef(dtype_object(reinterpret_cast<Array *>(self)->dtype)); }
static PyObject *get_size(PyObject *self, void *) { return PyLong_FromLongLong(reinterpret_cast<Array *>(self)->size); }
static PyObject *get_contiguous(PyObject *self, void *) { return PyBool_FromLong(reinterpret_cast<Array *>(self)->contiguous); }

static PyObject *repr(PyObject *self) {
    auto *x = reinterpret_cast<Array *>(self);
    Own<> shape(shape_tuple(*x));
    return shape ? PyUnicode_FromFormat("<mortice_cpu_cext.Array of %s, shape %R>", DTYPE_NAMES[x->dtype], shape.get()) : nullptr;
}

static PyGetSetDef attributes[] = {
    {"shape", get_shape, nullptr, "The sizes.", nullptr},
    {"strides", get_strides, nullptr, "The strides, in elements.", nullptr},
    {"dtype", get_dtype, nullptr, "The element type, a mortice dtype.", nullptr},
    {"size", get_size, nullptr, "The number of elements.", nullptr},
    {"contiguous", get_contiguous, nullptr, "Whether the elements lie in row-major order without gaps.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

static PyBufferProcs buffer = {array_getbuffer, array_releasebuffer};

PyTypeObject ArrayType = [] {
    PyTypeObject t{PyVarObject_HEAD_INIT(nullptr, 0)};
    t.tp_name = "mortice_cpu_cext.Array";
    t.tp_basicsize = sizeof(Array);
    t.tp_dealloc = dealloc;
    t.tp_repr = repr;
    t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE;
    t.tp_doc = "A strided array of the C extension backend; what it holds is read through the buffer protocol.";
    t.tp_getset = attributes;
    t.tp_as_buffer = &buffer;
    return t;
}();

}  // namespace mortice
