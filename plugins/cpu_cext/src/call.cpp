// Arguments: sorting them by name, and reading numbers, shapes and dtypes.
#include "call.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/convert.hpp"

namespace mortice {

static PyObject *memory_error;  // the class

void set_out_of_memory(PyObject *type) { Py_XSETREF(memory_error, Py_NewRef(type)); }

// What a function of the module is bound to. One function with one handler serves for all kernels: a function for each, which
// only passes its kernel on, takes more room in the tables that exceptions need than in code.
struct Bound {
    PyObject_HEAD
    PyMethodDef row;
    Fast body;
};

static PyObject *run(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names) noexcept {
    try {
        return reinterpret_cast<Bound *>(self)->body(args, nargs, names);
    } catch (const Failed &) {
        return nullptr;
    } catch (const OutOfMemory &asked) {
        return PyErr_Format(memory_error, "DefaultCPUAllocator: can't allocate memory: you tried to allocate %zu bytes.", asked.bytes);
    } catch (const std::exception &) {  // of the library's containers: no memory, or a length that none could hold
        return PyErr_NoMemory();
    }
}

static PyTypeObject bound_type() {
    PyTypeObject type{PyVarObject_HEAD_INIT(nullptr, 0)};
    type.tp_name = "mortice_cpu_cext._cext.Kernel";
    type.tp_basicsize = sizeof(Bound);
    type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
    return type;
}

int add_methods(PyObject *module, const Method *methods) {
    static PyTypeObject type = bound_type();
    if (PyType_Ready(&type) < 0) return -1;
    Own<> name(PyModule_GetNameObject(module));
    if (!name) return -1;
    for (; methods->name; methods++) {
        Bound *self = PyObject_New(Bound, &type);  // never given back: functions keep a pointer to its row
        if (!self) return -1;
        self->row = {methods->name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&run)), METH_FASTCALL | METH_KEYWORDS,
                     nullptr};
        self->body = methods->body;
        Own<> function(PyCFunction_NewEx(&self->row, reinterpret_cast<PyObject *>(self), name.get()));
        if (!function || PyModule_AddObjectRef(module, methods->name, function.get()) < 0) return -1;
    }
    return 0;
}

void sort_arguments(const char *function, const char *const *names, PyObject **interned, int count, int required,
                    PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **out) {
    if (nargs > count)
        fail(PyExc_TypeError, "%s: expected at most %d positional arguments; got %zd.", function, count, nargs);
    int i = 0;
    for (; i < nargs; i++) out[i] = args[i];
    for (; i < count; i++) out[i] = nullptr;
    if (kwnames) {
        if (!interned[count - 1])
            for (int k = 0; k < count; k++)
                if (!interned[k] && !(interned[k] = PyUnicode_InternFromString(names[k]))) throw Failed{};
        Py_ssize_t given = PyTuple_GET_SIZE(kwnames);
        for (Py_ssize_t k = 0; k < given; k++) {
            PyObject *key = PyTuple_GET_ITEM(kwnames, k);
            int at = 0;
            while (at < count && interned[at] != key) at++;
            if (at == count)
                for (at = 0; at < count && PyUnicode_Compare(interned[at], key) != 0;) at++;
            if (at == count) fail(PyExc_TypeError, "%s: got an unexpected argument %R.", function, key);
            if (out[at]) fail(PyExc_TypeError, "%s: argument '%s' was given twice.", function, names[at]);
            out[at] = args[nargs + k];
        }
    }
    for (int k = 0; k < required; k++)
        if (!out[k]) fail(PyExc_TypeError, "%s: argument '%s' is missing.", function, names[k]);
}

PyObject *with_channels_last(PyObject *results, int ndim) {
    Own<> found(results);
    if (is_array(results)) return with_channels_last(*reinterpret_cast<Array *>(results)).release();
    for (Py_ssize_t i = PyTuple_Check(results) ? PyTuple_GET_SIZE(results) : 0; i-- > 0;) {
        PyObject *&item = PyTuple_GET_ITEM(results, i);
        if (is_array(item) && reinterpret_cast<Array *>(item)->ndim == ndim)
            Py_SETREF(item, with_channels_last(*reinterpret_cast<Array *>(item)).release());
    }
    return found.release();
}

PyObject *keep(PyObject *found, int most, PyObject *const *args, Py_ssize_t nargs) {
    for (Py_ssize_t i = 0; found && i < std::min<Py_ssize_t>(nargs, 2); i++) {
        if (!is_array(args[i])) continue;
        Array &x = *reinterpret_cast<Array *>(args[i]);
        if (x.ndim >= 4 && x.ndim <= most && channels_last(x)) return with_channels_last(found, x.ndim);
    }
    return found;
}

Array &only(const char *function, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (nargs == 1 && !kwnames) return as_array(args[0]);
    const char *const x[] = {"x"};
    PyObject *interned[1] = {}, *out[1];
    sort_arguments(function, x, interned, 1, 1, args, nargs, kwnames, out);
    Py_XDECREF(interned[0]);
    return as_array(out[0]);
}

Array &as_array(PyObject *x) {
    if (!x || !is_array(x))
        fail(PyExc_TypeError, "cpu_cext: expected an array of this backend; got %s.", x ? Py_TYPE(x)->tp_name : "nothing");
    return *reinterpret_cast<Array *>(x);
}

// ---- objects that the Python side hands over ----

static PyObject *dtypes[DTYPES];

void set_dtypes(PyObject *sequence) {
    Own<> fast(PySequence_Fast(sequence, "expected the dtypes"));
    if (!fast) throw Failed{};
    if (PySequence_Fast_GET_SIZE(fast.get()) != DTYPES) fail(PyExc_ValueError, "cpu_cext: expected %d dtypes.", int{DTYPES});
    for (int i = 0; i < DTYPES; i++) {
        Py_XDECREF(dtypes[i]);
        dtypes[i] = Py_NewRef(PySequence_Fast_GET_ITEM(fast.get(), i));
    }
}

DType as_dtype(PyObject *d) {
    for (int i = 0; i < DTYPES; i++)
        if (dtypes[i] == d) return static_cast<DType>(i);
    fail(PyExc_TypeError, "cpu_cext: expected a mortice dtype; got %R.", d ? d : Py_None);
}

PyObject *dtype_object(DType d) { return dtypes[d]; }

// ---- numbers ----

int64_t as_int(PyObject *x) {
    if (!x) fail(PyExc_TypeError, "cpu_cext: an int is missing.");
    int64_t v = PyLong_AsLongLong(x);
    if (v == -1 && PyErr_Occurred()) throw Failed{};
    return v;
}

double as_double(PyObject *x) {
    if (!x) fail(PyExc_TypeError, "cpu_cext: a number is missing.");
    double v = PyFloat_AsDouble(x);
    if (v == -1 && PyErr_Occurred()) throw Failed{};
    return v;
}

bool as_bool(PyObject *x) {
    if (!x) return false;
    int v = PyObject_IsTrue(x);
    if (v < 0) throw Failed{};
    return v;
}

int as_axis(PyObject *x, int ndim) {
    int64_t a = as_int(x), limit = ndim ? ndim : 1;
    if (a < -limit || a >= limit)
        fail(PyExc_IndexError, "cpu_cext: axis %lld is out of range for %d dimensions.", static_cast<long long>(a), ndim);
    return static_cast<int>(a < 0 ? a + limit : a);
}

uint64_t as_axes(PyObject *x, int ndim) {
    uint64_t all = ndim == 64 ? ~uint64_t{0} : (uint64_t{1} << ndim) - 1;
    if (!x || x == Py_None) return all;
    if (PyLong_Check(x)) return (uint64_t{1} << as_axis(x, ndim)) & all;
    int64_t axes[MAX_NDIM];
    int n = as_ints(x, axes, MAX_NDIM);
    uint64_t mask = 0;
    for (int i = 0; i < n; i++) {
        int64_t a = axes[i] < 0 ? axes[i] + ndim : axes[i];
        if (a < 0 || a >= ndim)
            fail(PyExc_IndexError, "cpu_cext: axis %lld is out of range for %d dimensions.", static_cast<long long>(axes[i]), ndim);
        mask |= uint64_t{1} << a;
    }
    return mask;
}

int as_ints(PyObject *x, int64_t *out, int at_most) {
    if (!x) fail(PyExc_TypeError, "cpu_cext: a tuple of ints is missing.");
    if (PyLong_Check(x)) {
        out[0] = as_int(x);
        return 1;
    }
    PyObject *const *items;
    Py_ssize_t n;
    Own<> fast;
    if (PyTuple_Check(x)) {
        items = &PyTuple_GET_ITEM(x, 0);
        n = PyTuple_GET_SIZE(x);
    } else {
        fast = Own<>(PySequence_Fast(x, "cpu_cext: expected a tuple of ints."));
        if (!fast) throw Failed{};
        items = PySequence_Fast_ITEMS(fast.get());
        n = PySequence_Fast_GET_SIZE(fast.get());
    }
    if (n > at_most) fail(PyExc_RuntimeError, "only tensors with up to %d dims are supported; got %zd.", at_most, n);
    for (Py_ssize_t i = 0; i < n; i++) out[i] = as_int(items[i]);
    return static_cast<int>(n);
}

// ---- elements ----

template <class T> static Scalar stored(T value) {
    Scalar s;
    memcpy(s.bytes, &value, sizeof value);
    return s;
}

static void convert_one(char *to, DType to_dtype, const char *from, DType from_dtype) {
    char *at[2] = {to, const_cast<char *>(from)};
    const int64_t steps[2] = {0, 0};
    convert().inner[from_dtype][to_dtype](at, steps, 1, nullptr);
}

Scalar scalar_of(double x, DType dtype) {
    Scalar from = stored(x), to{};
    convert_one(to.bytes, dtype, from.bytes, F64);
    return to;
}

Scalar as_scalar(PyObject *x, DType dtype) {
    if (PyFloat_Check(x)) {
        double v = PyFloat_AS_DOUBLE(x);
        // Halves are rounded from float, as PyTorch has it.
        return dtype == F32 ? stored(static_cast<float>(v)) : dtype == F64 ? stored(v) : scalar_of(is_half(dtype) ? static_cast<float>(v) : v, dtype);
    }
    if (PyLong_Check(x)) {  // bool too
        int overflow = 0;
        long long v = PyLong_AsLongLongAndOverflow(x, &overflow);
        if (overflow) {
            if (dtype == U64) {
                uint64_t u = PyLong_AsUnsignedLongLong(x);
                if (PyErr_Occurred()) throw Failed{};
                return stored(u);
            }
            if (is_int(dtype)) fail(PyExc_OverflowError, "cpu_cext: the number %R does not fit %s.", x, DTYPE_NAMES[dtype]);
            return scalar_of(as_double(x), dtype);
        }
        if (v == -1 && PyErr_Occurred()) throw Failed{};
        Scalar from = stored(static_cast<int64_t>(v)), to{};
        if (dtype == F32) return stored(static_cast<float>(v));
        if (dtype == I64) return from;
        convert_one(to.bytes, dtype, from.bytes, I64);
        return to;
    }
    if (PyComplex_Check(x)) {
        Py_complex v = PyComplex_AsCComplex(x);
        Scalar from = stored(cdouble{v.real, v.imag}), to{};
        convert_one(to.bytes, dtype, from.bytes, C128);
        return to;
    }
    fail(PyExc_TypeError, "cpu_cext: expected an array or a Python number; got %s.", Py_TYPE(x)->tp_name);
}

double to_double(const char *element, DType dtype) {
    double v;
    convert_one(reinterpret_cast<char *>(&v), F64, element, dtype);
    return v;
}

PyObject *to_python(const char *element, DType dtype) {
    if (dtype == BOOL) return PyBool_FromLong(*element != 0);
    if (dtype == U64) {
        uint64_t v;
        memcpy(&v, element, 8);
        return PyLong_FromUnsignedLongLong(v);
    }
    if (is_int(dtype)) {
        int64_t v;
        convert_one(reinterpret_cast<char *>(&v), I64, element, dtype);
        return PyLong_FromLongLong(v);
    }
    if (is_complex(dtype)) {
        cdouble v;
        convert_one(reinterpret_cast<char *>(&v), C128, element, dtype);
        return PyComplex_FromDoubles(v.re, v.im);
    }
    return PyFloat_FromDouble(to_double(element, dtype));
}

PyObject *tuple_of(int n, const int64_t *values) {
    PyObject *t = PyTuple_New(n);
    if (!t) return nullptr;
    for (int i = 0; i < n; i++) {
        PyObject *v = PyLong_FromLongLong(values[i]);
        if (!v) {
            Py_DECREF(t);
            return nullptr;
        }
        PyTuple_SET_ITEM(t, i, v);
    }
    return t;
}

}  // namespace mortice
