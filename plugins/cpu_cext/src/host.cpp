// Memory that crosses: buffers in and out, single elements, addresses, and what the plugin asks the extension about.
#include "host.hpp"

#include <cstring>

#include "families.hpp"
#include "parallel.hpp"

namespace mortice {

void set_dtypes(PyObject *sequence);  // call.cpp

// The formats of PEP 3118; bfloat16 has none and travels as bytes.
constexpr bool LONG = sizeof(long) == 8;  // then NumPy's int64 is "l", and "q" its longlong, another type
static const char *const FORMATS[DTYPES] = {"?", "B", "H", "I", LONG ? "L" : "Q", "b", "h", "i", LONG ? "l" : "q", "e", nullptr, "f", "d", "Zf", "Zd"};

int array_getbuffer(PyObject *self, Py_buffer *view, int flags) {
    auto *x = reinterpret_cast<Array *>(self);
    view->obj = nullptr;
    if (!FORMATS[x->dtype]) {
        PyErr_SetString(PyExc_BufferError, "cpu_cext: bfloat16 has no buffer format. Read it as bytes, by `to_host`.");
        return -1;
    }
    if ((flags & PyBUF_WRITABLE) && !x->writable) {
        PyErr_SetString(PyExc_BufferError, "cpu_cext: the memory may only be read.");
        return -1;
    }
    if (!x->contiguous && (flags & PyBUF_STRIDES) != PyBUF_STRIDES) {
        PyErr_SetString(PyExc_BufferError, "cpu_cext: the elements do not lie in row-major order. Ask for strides.");
        return -1;
    }
    int64_t *strides = nullptr;
    if ((flags & PyBUF_STRIDES) == PyBUF_STRIDES && x->ndim) {
        strides = static_cast<int64_t *>(PyMem_Malloc(sizeof(int64_t) * x->ndim));
        if (!strides) {
            PyErr_NoMemory();
            return -1;
        }
        for (int i = 0; i < x->ndim; i++) strides[i] = x->strides()[i] * x->itemsize();
    }
    view->buf = x->data;
    view->len = x->bytes();
    view->itemsize = x->itemsize();
    view->readonly = !x->writable;
    view->ndim = x->ndim;
    view->format = (flags & PyBUF_FORMAT) ? const_cast<char *>(FORMATS[x->dtype]) : nullptr;
    view->shape = (flags & PyBUF_ND) ? reinterpret_cast<Py_ssize_t *>(x->shape()) : nullptr;
    view->strides = reinterpret_cast<Py_ssize_t *>(strides);
    view->suboffsets = nullptr;
    view->internal = strides;
    view->obj = Py_NewRef(self);
    return 0;
}

void array_releasebuffer(PyObject *, Py_buffer *view) { PyMem_Free(view->internal); }

// ---- in ----

struct Held {  // a buffer, released at the end
    Py_buffer view;
    ~Held() { PyBuffer_Release(&view); }
};

static PyObject *from_host(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<4> N{"_from_host", {"view", "shape", "dtype", "copy"}, 4};
    PyObject *a[4];
    arguments(N, args, n, names, a);
    int64_t shape[MAX_NDIM], strides[MAX_NDIM];
    int ndim = as_ints(a[1], shape, MAX_NDIM);
    DType dtype = as_dtype(a[2]);
    int64_t size = count(ndim, shape), itemsize = ITEMSIZE[dtype];
    Held held;
    bool writable = true;
    if (PyObject_GetBuffer(a[0], &held.view, PyBUF_FULL) < 0) {
        PyErr_Clear();
        writable = false;
        if (PyObject_GetBuffer(a[0], &held.view, PyBUF_FULL_RO) < 0) throw Failed{};
    }
    const Py_buffer &v = held.view;
    bool shaped = v.itemsize == itemsize && v.ndim == ndim;
    for (int i = 0; shaped && i < ndim; i++) shaped = v.shape[i] == shape[i];
    bool whole = true;  // the strides count whole elements
    if (shaped) {
        for (int i = 0; i < ndim; i++) {
            whole = whole && v.strides[i] % itemsize == 0;
            strides[i] = v.strides[i] / itemsize;
        }
    } else if (v.len != size * itemsize || !PyBuffer_IsContiguous(&v, 'C')) {
        fail(PyExc_ValueError, "cpu_cext: a buffer of %zd bytes does not hold %lld elements of %s.", v.len,
             static_cast<long long>(size), DTYPE_NAMES[dtype]);
    }
    bool aligned = reinterpret_cast<uintptr_t>(v.buf) % static_cast<uintptr_t>(itemsize > 8 ? 8 : itemsize) == 0;
    if (whole && aligned) {
        Own<> owner(PyMemoryView_FromObject(a[0]));
        if (!owner) throw Failed{};
        Ref x = over_memory(owner.get(), static_cast<char *>(v.buf), dtype, ndim, shape, shaped ? strides : nullptr, writable);
        if (!as_bool(a[3])) return x.release();
        Ref y = make(dtype, ndim, shape);
        assign(*y, *x);
        return y.release();
    }
    Ref y = make(dtype, ndim, shape);
    if (PyBuffer_ToContiguous(y->data, const_cast<Py_buffer *>(&v), v.len, 'C') < 0) throw Failed{};
    return y.release();
}

// Memory that an object lends as whole elements; None for the rest, which `_from_host` sees to.
static PyObject *share_buffer(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<1> N{"share_buffer", {"lender"}, 1};
    PyObject *a[1];
    arguments(N, args, n, names, a);
    Own<> owner(PyMemoryView_FromObject(a[0]));
    if (!owner) {
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    const Py_buffer &v = *PyMemoryView_GET_BUFFER(owner.get());
    int dtype = 0;
    const char *format = !strcmp(v.format, "q") ? FORMATS[I64] : !strcmp(v.format, "Q") ? FORMATS[U64] : v.format;
    while (dtype < DTYPES && (!FORMATS[dtype] || strcmp(FORMATS[dtype], format))) dtype++;
    if (dtype == DTYPES || v.ndim > MAX_NDIM || v.itemsize != ITEMSIZE[dtype]) Py_RETURN_NONE;
    int64_t strides[MAX_NDIM];
    bool fine = reinterpret_cast<uintptr_t>(v.buf) % static_cast<uintptr_t>(v.itemsize > 8 ? 8 : v.itemsize) == 0;
    for (int i = 0; i < v.ndim; i++) {
        fine = fine && v.strides[i] % v.itemsize == 0;
        strides[i] = v.strides[i] / v.itemsize;
    }
    if (!fine || v.readonly || v.suboffsets) Py_RETURN_NONE;
    return over_memory(owner.get(), static_cast<char *>(v.buf), static_cast<DType>(dtype), v.ndim, v.shape, strides, true).release();
}

// ---- out ----

static PyObject *host_type;

static PyObject *to_host(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    Array &x = only("to_host", args, n, names);
    Own<> shape(shape_tuple(x));
    Own<> view;
    if (FORMATS[x.dtype]) {
        view = Own<>(PyMemoryView_FromObject(reinterpret_cast<PyObject *>(&x)));
    } else {
        Ref row = contiguous(x);
        int64_t bytes = row->bytes();
        Ref raw = over_memory(reinterpret_cast<PyObject *>(row.get()), row->data, U8, 1, &bytes, nullptr, row->writable);
        view = Own<>(PyMemoryView_FromObject(reinterpret_cast<PyObject *>(raw.get())));
    }
    if (!shape || !view) throw Failed{};
    PyObject *out[3] = {view.get(), shape.get(), dtype_object(x.dtype)};
    PyObject *made = PyObject_Vectorcall(host_type, out, 3, nullptr);
    if (!made) throw Failed{};
    return made;
}

static PyObject *item(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    Array &x = only("item", args, n, names);
    if (x.size != 1) fail(PyExc_ValueError, "item: expected one element; got %lld.", static_cast<long long>(x.size));
    return to_python(x.data, x.dtype);
}

// What the core asks about one array.
template <PyObject *(*answer)(Array &)> static PyObject *asked(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    return answer(only("cpu_cext", args, n, names));
}
static PyObject *dtype_of_(Array &x) { return Py_NewRef(dtype_object(x.dtype)); }
static PyObject *strides_of(Array &x) { return tuple_of(x.ndim, x.strides()); }
static PyObject *is_contiguous(Array &x) { return PyBool_FromLong(x.contiguous); }
static PyObject *address(Array &x) { return PyLong_FromVoidPtr(x.data); }
static PyObject *owns(Array &x) { return PyBool_FromLong(x.base == nullptr); }
static PyObject *numel_of(Array &x) { return PyLong_FromLongLong(x.size); }

static PyObject *to_dlpack_(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<3> N{"to_dlpack", {"x", "stream", "max_version"}, 1};
    PyObject *a[3];
    arguments(N, args, n, names, a);
    bool versioned = false;
    if (a[2] && a[2] != Py_None) {
        int64_t version[2] = {0, 0};
        as_ints(a[2], version, 2);
        versioned = version[0] >= 1;
    }
    return to_dlpack(as_array(a[0]), versioned);
}

// ---- the plugin's own questions ----

static PyObject *set_objects(PyObject *const *args, Py_ssize_t n, PyObject *) {
    if (n != 3) fail(PyExc_TypeError, "_set_objects: expected the dtypes, HostBuffer and OutOfMemoryError.");
    set_dtypes(args[0]);
    Py_XSETREF(host_type, Py_NewRef(args[1]));
    set_out_of_memory(args[2]);
    Py_RETURN_NONE;
}

static PyObject *stats(PyObject *const *, Py_ssize_t, PyObject *) {
    MemoryStats s = memory_stats();
    return Py_BuildValue("{s:n,s:n,s:n,s:n}", "allocated", static_cast<Py_ssize_t>(s.allocated), "peak_allocated",
                         static_cast<Py_ssize_t>(s.peak_allocated), "reserved", static_cast<Py_ssize_t>(s.reserved),
                         "peak_reserved", static_cast<Py_ssize_t>(s.peak_reserved));
}

static PyObject *reset_peaks(PyObject *const *, Py_ssize_t, PyObject *) {
    memory_reset_peaks();
    Py_RETURN_NONE;
}

static PyObject *empty_cache(PyObject *const *, Py_ssize_t, PyObject *) {
    memory_empty_cache();
    Py_RETURN_NONE;
}

static PyObject *fail_after(PyObject *const *args, Py_ssize_t n, PyObject *) {
    memory_fail_after(n ? as_int(args[0]) : -1);
    Py_RETURN_NONE;
}

static PyObject *get_threads(PyObject *const *, Py_ssize_t, PyObject *) { return PyLong_FromLong(num_threads()); }

static PyObject *set_threads(PyObject *const *args, Py_ssize_t n, PyObject *) {
    if (n != 1) fail(PyExc_TypeError, "_set_num_threads: expected how many.");
    set_num_threads(static_cast<int>(as_int(args[0])));
    Py_RETURN_NONE;
}

const Method host_methods[] = {
    MORTICE_METHOD("_from_host", from_host),
    MORTICE_METHOD("to_host", to_host),
    MORTICE_METHOD("item", item),
    MORTICE_METHOD("shape_of", asked<shape_tuple>),
    MORTICE_METHOD("dtype_of", asked<dtype_of_>),
    MORTICE_METHOD("strides_of", asked<strides_of>),
    MORTICE_METHOD("is_contiguous", asked<is_contiguous>),
    MORTICE_METHOD("address", asked<address>),
    MORTICE_METHOD("owns", asked<owns>),
    MORTICE_METHOD("numel_of", asked<numel_of>),
    MORTICE_METHOD("share_buffer", share_buffer),
    MORTICE_METHOD("to_dlpack", to_dlpack_),
    MORTICE_METHOD("_set_objects", set_objects),
    MORTICE_METHOD("_memory_stats", stats),
    MORTICE_METHOD("_reset_peak_memory", reset_peaks),
    MORTICE_METHOD("_empty_cache", empty_cache),
    MORTICE_METHOD("_fail_after", fail_after),
    MORTICE_METHOD("_get_num_threads", get_threads),
    MORTICE_METHOD("_set_num_threads", set_threads),
    {},
};

}  // namespace mortice
