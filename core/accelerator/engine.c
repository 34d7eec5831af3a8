/* mortice._engine: the fast cases of the call path in C. `mortice/fast.py` says where it serves.

   A Fast stands before the Python function of an op. It does the usual case (tensors of one device and one dtype, no mode
   but the usual ones) and leaves every other, and what is wrong with it, to that function: the meaning of an operation is
   there. Attributes are read and written where the classes' __slots__ have them, so the classes themselves stay Python's.
   What is done with tensors themselves is in `tensors.h`, what a backward asks in `backward.h`, what draws in `draws.h`;
   `writes.h` is of functions that write in place, and `checksums.h` serves files. */
#include "checksums.h"
#include "tensors.h"

#include "backward.h"

#include <float.h>
#include <math.h>

#define VERSION 17 /* of what it does: raised with `fast.VERSION` when the functions that it repeats change */

/* ---- a function with a fast case ---- */

enum { ONE, ATTRIBUTES, VIEW, TWO, ANY, GETITEM, INTO };

typedef struct {
    PyObject_HEAD
    vectorcallfunc call, under; /* under: what `call_asking` goes on to */
    PyObject *dict, *weakrefs, *method;
    PyObject *op, *python, *same_dtype, *name, *attrs;
    PyObject *shape; /* of the result: None for the operand's own, else a Size, or a function of the operands' shapes */
    PyObject *operands; /* of INTO: None, or what finds an op and its operands for the arguments */
    int kind, numbers, lead, most; /* lead: the first operand that takes part in promotion; most: the operands of a fast case */
    unsigned fixed; /* the operands that keep their dtype, a bit for each */
} Fast;

/* Whether an object is nothing but a dict where it is read, whatever it does for what it has not got. */
static inline int reads_like_dict(PyObject *o) {
    return o && PyDict_Check(o) && _PyType_Lookup(Py_TYPE(o), word.read) == _PyType_Lookup(&PyDict_Type, word.read);
}

static inline int has(PyObject *list, PyObject *name) { /* names of calls are interned; another one is left to Python */
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++)
        if (PyList_GET_ITEM(list, i) == name) return 1;
    return 0;
}

static inline int bit(unsigned bits, Py_ssize_t i) { return i < MOST && bits >> i & 1; }
static inline int is_number(PyObject *o) { return PyFloat_CheckExact(o) || PyLong_CheckExact(o); }

static inline int is_kind(PyObject *dtype, Py_UCS4 letter) {
    PyObject *kind = SLOT(dtype, at.kind);
    return kind && PyUnicode_Check(kind) && PyUnicode_GET_LENGTH(kind) && PyUnicode_READ_CHAR(kind, 0) == letter;
}

/* Whether a dtype takes a number as it is: what it holds, of floats of 16 bits what all such hold. */
static int takes(PyObject *dtype, PyObject *value) {
    PyObject *kind = SLOT(dtype, at.kind), *size = SLOT(dtype, at.itemsize);
    if (!size || !PyLong_CheckExact(size)) return 0;
    if (is_kind(dtype, 'f')) {
        double as_float = PyFloat_CheckExact(value) ? PyFloat_AS_DOUBLE(value) : PyLong_AsDouble(value);
        if (PyErr_Occurred()) {
            PyErr_Clear(); /* of an integer that is no double */
            return 0;
        }
        const double length = fabs(as_float);
        const float single = (float)as_float;
        uint32_t bits;
        memcpy(&bits, &single, sizeof bits);
        if (PyLong_AsLong(size) > 2) return !(length > FLT_MAX && length < HUGE_VAL);
        return !length || (single == as_float && !(bits & 0xffff) && length >= 0x1p-14 && length <= 0x1p15);
    }
    if (!kind || !PyUnicode_Check(kind) || !PyUnicode_GET_LENGTH(kind) || !PyLong_CheckExact(value)) return 0;
    int over;
    const long long number = PyLong_AsLongLongAndOverflow(value, &over);
    const long bits = 8 * PyLong_AsLong(size);
    if (over || bits < 8 || bits > 64) return 0;
    if (PyUnicode_READ_CHAR(kind, 0) == 'u') return number >= 0 && (bits == 64 || !(number >> bits));
    return PyUnicode_READ_CHAR(kind, 0) == 'i' && number >> (bits - 1) == number >> 63;
}

static PyObject *dict_of(PyObject *const *values, PyObject *names) {
    PyObject *made = PyDict_New();
    for (Py_ssize_t i = 0; made && names && i < PyTuple_GET_SIZE(names); i++)
        if (PyDict_SetItem(made, PyTuple_GET_ITEM(names, i), values[i]) < 0) Py_CLEAR(made);
    return made;
}

/* The names of the attributes of a call, None where it has others than those of the op, or a tensor for a number;
   `out=None` may come last. */
static PyObject *attributes_of(Fast *f, PyObject *const *values, PyObject *names) {
    Py_ssize_t n = PyTuple_GET_SIZE(names);
    PyObject *last = PyTuple_GET_ITEM(names, n - 1);
    int without = last == word.out && values[n - 1] == Py_None;
    for (Py_ssize_t i = 0; i < n - without; i++)
        if (!has(f->attrs, PyTuple_GET_ITEM(names, i)) || PyObject_TypeCheck(values[i], class[TENSOR])) return Py_NewRef(Py_None);
    return without ? PyTuple_GetSlice(names, 0, n - 1) : Py_NewRef(names);
}

/* A number as the kernel gets it: `binary` of call.py passes it on as it came, `general` as `fit_number` has it. */
static PyObject *number_of(Fast *f, int floating, PyObject *value) {
    return f->kind == ANY && PyLong_CheckExact(value) && floating ? PyNumber_Float(value) : Py_NewRef(value);
}

static PyObject *const_of(PyObject *value) { /* takes value, which may be an error */
    PyObject *made = value ? class[CONST]->tp_alloc(class[CONST], 0) : NULL;
    if (made) put(made, at.value, value);
    Py_XDECREF(value);
    return made;
}

/* Records a call; names and values are those of the attributes. */
static int note_call(Fast *f, PyObject *const *args, Py_ssize_t n, PyObject *names, PyObject *out, PyObject *t, int one_shape) {
    PyObject *attrs = f->kind == ONE || f->kind == TWO ? Py_NewRef(Py_None) : dict_of(args + n, names);
    PyObject *operands = attrs ? PyList_New(n) : NULL;
    int status = operands ? 0 : -1;
    for (Py_ssize_t i = 0; i < n && !status; i++) {
        int plain = args[i] == Py_None || is_number(args[i]);
        PyObject *a = plain ? const_of(number_of(f, 1, args[i])) : still_whole(args[i]) < 0 ? NULL : Py_NewRef(args[i]);
        if (a) PyList_SET_ITEM(operands, i, a);
        else status = -1;
    }
    if (!status) {
        if (f->kind == TWO)
            status = record_two(f->op, PyList_GET_ITEM(operands, 0), PyList_GET_ITEM(operands, 1), t, one_shape);
        else if (f->kind == ANY)
            status = record_any(f->op, operands, attrs, out, t);
        else
            status = record_one(f->op, args[0], t, attrs);
    }
    Py_XDECREF(operands);
    Py_XDECREF(attrs);
    return status;
}

/* The results of a kernel with several: a tensor of each; takes nothing. NULL without an error where they do not match. */
static PyObject *several(PyObject *data, PyObject *device, PyObject *dtypes, PyObject *shapes) {
    Py_ssize_t n = PyTuple_GET_SIZE(data);
    int own_dtypes = PyTuple_CheckExact(dtypes), own_shapes = PyTuple_CheckExact(shapes);
    if ((own_dtypes && PyTuple_GET_SIZE(dtypes) != n) || (own_shapes && PyTuple_GET_SIZE(shapes) != n)) return NULL;
    PyObject *made = PyTuple_New(n);
    for (Py_ssize_t i = 0; made && i < n; i++) {
        PyObject *t = fresh(Py_NewRef(PyTuple_GET_ITEM(data, i)), device, own_dtypes ? PyTuple_GET_ITEM(dtypes, i) : dtypes,
                            own_shapes ? PyTuple_GET_ITEM(shapes, i) : shapes);
        if (t) PyTuple_SET_ITEM(made, i, t);
        else Py_CLEAR(made);
    }
    return made;
}

/* The usual case of a call; None where it is not usual, `quiet` where nothing is recorded. `args` are n operands, then the values of the attributes. */
static PyObject *try_op(Fast *f, PyObject *const *args, Py_ssize_t n, PyObject *names, int quiet) {
    Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0, i;
    unsigned numbers = 0; /* the operands that are numbers, a bit for each */
    int lead = f->lead;
    for (i = 0; f->numbers && i < n; i++)
        if (is_number(args[i]) && !(f->fixed >> i & 1)) numbers |= 1u << i;
    while ((f->fixed | numbers) >> lead & 1) lead++;
    if (lead >= n || !is_tensor(args[lead])) Py_RETURN_NONE;
    PyObject *x = args[lead], *device = SLOT(x, at.device), *dtype = SLOT(x, at.dtype), *shape = SLOT(x, at.shape);
    int recorded = wants_grad(x), one_shape = 1, floating = is_kind(dtype, 'f');
    for (i = 0; numbers >> i; i++)
        if (numbers >> i & 1 && !takes(dtype, args[i])) Py_RETURN_NONE;
    for (i = 0; i < n; i++) {
        PyObject *a = args[i];
        if (i == lead || bit(numbers, i) || (a == Py_None && f->kind == ANY)) continue;
        if (!is_tensor(a) || SLOT(a, at.device) != device || (SLOT(a, at.dtype) != dtype && !bit(f->fixed, i))) Py_RETURN_NONE;
        recorded |= wants_grad(a);
        if (one_shape && SLOT(a, at.shape) != shape)
            if ((one_shape = PyObject_RichCompareBool(shape, SLOT(a, at.shape), Py_EQ)) < 0) return NULL;
    }
    PyObject *table = SLOT(device, at.table);
    if (!reads_like_dict(table)) Py_RETURN_NONE;
    PyObject *result = f->kind == VIEW ? dtype : PyDict_GetItemWithError(f->same_dtype, dtype);
    PyObject *kernel = result ? PyDict_GetItemWithError(table, f->op) : NULL;
    if (!kernel) return PyErr_Occurred() ? NULL : Py_NewRef(Py_None); /* the first time */

    PyObject *room[1 + MANY + MOST], *data = NULL, *t = NULL;
    for (i = 0; i < named; i++) room[1 + n + i] = args[n + i];
    Py_INCREF(device);
    Py_INCREF(result);
    Py_INCREF(kernel);
    if ((numbers && f->kind == TWO) || f->shape == Py_None || (one_shape && f->shape == broadcast)) Py_INCREF(shape);
    else if (PyTuple_Check(f->shape)) shape = Py_NewRef(f->shape);
    else {
        room[0] = f->name;
        for (i = 0; i < n; i++) room[1 + i] = Py_NewRef(bit(numbers, i) || args[i] == Py_None ? no_sizes : SLOT(args[i], at.shape));
        shape = PyObject_Vectorcall(f->shape, room, 1 + n, names);
        for (i = 0; i < n; i++) Py_DECREF(room[1 + i]);
    }
    if (shape) {
        int ready = 1;
        for (i = 0; i < n; i++) {
            PyObject *a = args[i];
            room[1 + i] = bit(numbers, i) ? number_of(f, floating, a) : Py_NewRef(a == Py_None ? a : SLOT(a, at.data));
            ready &= room[1 + i] != NULL;
        }
        if (ready) data = PyObject_Vectorcall(kernel, room + 1, n | PY_VECTORCALL_ARGUMENTS_OFFSET, names);
        for (i = 0; i < n; i++) Py_XDECREF(room[1 + i]);
    }
    if (data && f->kind == VIEW) {
        PyObject *attrs = dict_of(args + n, names);
        t = attrs ? view(f->op, x, Py_NewRef(data), shape, attrs, quiet) : NULL;
        Py_XDECREF(attrs);
    } else if (data) {
        int many = f->kind == ANY && PyTuple_CheckExact(data);
        t = many ? several(data, device, result, shape) : fresh(Py_NewRef(data), device, result, shape);
        if (t && recorded && !quiet && SLOT(f->op, at.no_grad_reason) == Py_None &&
            note_call(f, args, n, names, data, t, one_shape && !(numbers && PyTuple_GET_SIZE(shape))) < 0) Py_CLEAR(t);
        if (many && !t && !PyErr_Occurred()) t = Py_NewRef(Py_None);
    }
    Py_XDECREF(data);
    Py_DECREF(device);
    Py_DECREF(result);
    Py_DECREF(kernel);
    Py_XDECREF(shape);
    return t;
}

/* What a Python function, which has failed, makes of a call under its own names of the arguments, where they were NumPy's: see
   `own_names` of misuse.py. */
COLD static PyObject *renamed(PyObject *python, PyObject *const *args, size_t nargsf, PyObject *names) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) return NULL;
    PyObject *type, *error, *trace, *found = NULL;
    PyErr_Fetch(&type, &error, &trace);
    PyObject *own = PyObject_CallFunctionObjArgs(own_names, python, names, NULL);
    if (own == Py_None) PyErr_Restore(Py_XNewRef(type), Py_XNewRef(error), Py_XNewRef(trace));
    else if (own) found = PyObject_Vectorcall(python, args, nargsf, own);
    Py_XDECREF(own);
    Py_XDECREF(type);
    Py_XDECREF(error);
    Py_XDECREF(trace);
    return found;
}

__attribute__((noinline)) static PyObject *in_python(Fast *f, PyObject *const *args, size_t nargsf, PyObject *names) {
    PyObject *found = PyObject_Vectorcall(f->python, args, nargsf, names);
    return found || !names ? found : renamed(f->python, args, nargsf, names);
}

static PyObject *call_op(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    Fast *f = (Fast *)self;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf), named = names ? PyTuple_GET_SIZE(names) : 0;
    PyObject *t = NULL;
    int now = mode();
    if (now && (f->kind == ANY ? n && n <= f->most : n == 1 + (f->kind == TWO)) && named <= MOST) {
        PyObject *given = named ? attributes_of(f, args + n, names) : NULL;
        if (named && !given) return NULL;
        if (given != Py_None) t = try_op(f, args, n, given, now == QUIET);
        else t = Py_NewRef(Py_None);
        Py_XDECREF(given);
        if (t && t != Py_None) return t;
        if (!t) {
            if (!PyErr_ExceptionMatches(PyExc_MemoryError)) return NULL; /* which is worded there */
            PyErr_Clear();
        }
        Py_XDECREF(t);
    }
    return in_python(f, args, nargsf, names);
}

static int is_bound(PyObject *bound) { return bound == Py_None || PyLong_CheckExact(bound); }

/* Whether the bounds of a slice are ints as they are: what `_is_bare` of ops/index.py asks. */
static int is_bare(PyObject *slice) {
    PySliceObject *s = (PySliceObject *)slice;
    return is_bound(s->start) && is_bound(s->stop) && is_bound(s->step);
}

/* A key of only slices, ints in range, None and one Ellipsis, as a tuple in which full slices stand for the Ellipsis: what
   `_plain_key` of ops/index.py does. None for any other key. */
static PyObject *plain_key(PyObject *key, PyObject *shape) {
    static PyObject *whole;
    if (!whole && !(whole = PySlice_New(NULL, NULL, NULL))) return NULL;
    int alone = !PyTuple_CheckExact(key);
    PyObject *one_part[1] = {key}, **parts = alone ? one_part : ((PyTupleObject *)key)->ob_item;
    Py_ssize_t n = alone ? 1 : PyTuple_GET_SIZE(key), ndim = PyTuple_GET_SIZE(shape), used = 0, dots = 0, dim = 0, at = 0, i;
    for (i = 0; i < n; i++) {
        dots += parts[i] == Py_Ellipsis;
        used += parts[i] != Py_Ellipsis && parts[i] != Py_None;
    }
    if (used > ndim || dots > 1) Py_RETURN_NONE;
    PyObject *made = alone || dots ? PyTuple_New(n - dots + (dots ? ndim - used : 0)) : Py_NewRef(key);
    for (i = 0; made && i < n; i++) {
        PyObject *part = parts[i];
        if (part == Py_Ellipsis) {
            for (Py_ssize_t j = used; j < ndim; j++, dim++) PyTuple_SET_ITEM(made, at++, Py_NewRef(whole));
            continue;
        }
        int fine = part == Py_None;
        if (PySlice_Check(part)) {
            fine = is_bare(part);
            dim++;
        } else if (PyLong_CheckExact(part)) {
            int over;
            long long k = PyLong_AsLongLongAndOverflow(part, &over), size = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, dim++));
            if (size == -1 && PyErr_Occurred()) Py_CLEAR(made);
            fine = !over && -size <= k && k < size;
        }
        if (made && !fine) Py_SETREF(made, Py_NewRef(Py_None));
        if (!made || !fine) break;
        if (made != key) PyTuple_SET_ITEM(made, at++, Py_NewRef(part));
    }
    return made;
}

static PyObject *call_getitem(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    Fast *f = (Fast *)self;
    int now = mode();
    if (names || PyVectorcall_NARGS(nargsf) != 2 || !now || !is_tensor(args[0]))
        return PyObject_Vectorcall(f->python, args, nargsf, names);
    PyObject *x = args[0];
    PyObject *key = plain_key(args[1], SLOT(x, at.shape));
    if (!key) return NULL;
    if (key == Py_None) {
        Py_DECREF(key);
        return PyObject_Vectorcall(f->python, args, nargsf, names);
    }
    PyObject *backend = Py_XNewRef(SLOT(SLOT(x, at.device), at.backend)), *whole = Py_NewRef(SLOT(x, at.data));
    PyObject *data = backend ? PyObject_CallMethodObjArgs(backend, word.getitem, whole, key, NULL) : NULL;
    if (!data && backend && PyErr_ExceptionMatches(PyExc_NotImplementedError)) { /* of a sparse tensor, whose part may be dense */
        PyErr_Clear();
        Py_DECREF(key);
        Py_DECREF(backend);
        Py_DECREF(whole);
        return PyObject_Vectorcall(f->python, args, nargsf, names);
    }
    PyObject *shape = data ? PyObject_CallMethodOneArg(backend, word.shape_of, data) : NULL, *attrs = NULL, *t = NULL;
    shape = size_known(shape);
    if (shape) {
        PyObject *pair[2] = {key, shape};
        static PyObject *fields;
        if (!fields) fields = PyTuple_Pack(2, word.key, word.shape);
        attrs = !fields ? NULL : wants_grad(x) ? dict_of(pair, fields) : PyTuple_Pack(2, key, shape);
    }
    if (attrs) t = view(f->op, x, Py_NewRef(data), shape, attrs, now == QUIET);
    Py_XDECREF(attrs);
    Py_XDECREF(shape);
    Py_XDECREF(data);
    Py_DECREF(key);
    Py_XDECREF(backend);
    Py_DECREF(whole);
    return t;
}

#include "writes.h"

/* Whether it has a class that takes calls over, or a list has something that does; classes of tensors count where they are to. */
static inline int asks(PyObject *o, int tensors) {
    PyTypeObject *type = Py_TYPE(o);
    PyObject *asked = type != Tensor && type->tp_flags & Py_TPFLAGS_HEAPTYPE ? _PyType_Lookup(type, word.torch_function) : NULL;
    return asked && (PyType_IsSubtype(type, class[TENSOR]) ? tensors && Tensor && asked != _PyType_Lookup(Tensor, word.torch_function) : 1);
}
COLD static int any_asks(PyObject *o, int tensors) {
    if (!PyList_CheckExact(o) && !PyTuple_CheckExact(o)) return asks(o, tensors);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); i++)
        if (asks(PySequence_Fast_GET_ITEM(o, i), tensors)) return 1;
    return 0;
}

COLD static PyObject *tuple_of(PyObject *const *args, Py_ssize_t n) {
    PyObject *values = PyTuple_New(n);
    for (Py_ssize_t i = 0; values && i < n; i++) PyTuple_SET_ITEM(values, i, Py_NewRef(args[i]));
    return values;
}

COLD static PyObject *give_away(Fast *f, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyObject *values = tuple_of(args, n);
    PyObject *answer = values ? PyObject_CallFunctionObjArgs(f->operands, (PyObject *)f, values, names ? names : no_sizes, NULL) : NULL;
    Py_XDECREF(values);
    return answer;
}

/* What a call goes to: the function beneath what was guarded, where that only hands over. `autocasting` of modes.py does in the
   usual modes, `numpy_names` of ops/arguments.py where each argument has one of the function's names and each switch is a bool. */
static PyObject *beneath(Fast *f, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    if (!f->op || (f->kind && !mode())) return f->python;
    const Py_ssize_t own = PyTuple_GET_SIZE(f->attrs), given = own ? n + (names ? PyTuple_GET_SIZE(names) : 0) : 0;
    for (Py_ssize_t i = 0, j = 0; i < given; i++, j = i) {
        if (i >= n)
            for (j = 0; j < own && PyTuple_GET_ITEM(f->attrs, j) != PyTuple_GET_ITEM(names, i - n);) j++;
        if (i >= n && j == own) return f->python;
        if (j < own && f->fixed >> j & 1 && !PyBool_Check(args[i])) return f->python;
    }
    return f->op;
}

/* A public function that is no op. `ask(function, values, names)` gives the call to the class of an argument that is no tensor,
   or returns NotImplemented. Where it fails, `explain(function, error, values, names)`
   may know which operand is to blame, and returns the error to raise instead, or None. */
static PyObject *call_guarded(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    Fast *f = (Fast *)self;
    const Py_ssize_t n = PyVectorcall_NARGS(nargsf) + (names ? PyTuple_GET_SIZE(names) : 0);
    for (Py_ssize_t i = 0; i < n; i++)
        if (Py_TYPE(args[i]) != Tensor && any_asks(args[i], 0)) {
            PyObject *answer = give_away(f, args, n, names);
            if (answer != Py_NotImplemented) return answer;
            Py_DECREF(answer);
            break;
        }
    PyObject *goes_to = beneath(f, args, PyVectorcall_NARGS(nargsf), names);
    PyObject *found = PyObject_Vectorcall(goes_to, args, nargsf, names), *values, *better = NULL;
    if (!found && goes_to != f->python && PyTuple_GET_SIZE(f->attrs) && PyVectorcall_NARGS(nargsf) &&
        !PyObject_TypeCheck(args[0], class[TENSOR]) && PyErr_ExceptionMatches(PyExc_AttributeError)) { /* `numpy_names` words it */
        PyErr_Clear();
        found = PyObject_Vectorcall(f->python, args, nargsf, names);
    }
    if (!found && names) found = renamed(f->python, args, nargsf, names);
    if (found || !PyErr_ExceptionMatches(PyExc_Exception)) return found;
    PyObject *type, *error, *trace;
    PyErr_Fetch(&type, &error, &trace);
    PyErr_NormalizeException(&type, &error, &trace);
    if (trace) PyException_SetTraceback(error, trace);
    if ((values = tuple_of(args, n))) better = PyObject_CallFunctionObjArgs(f->shape, f->python, error, values, names ? names : no_sizes, NULL);
    if (better && better != Py_None) PyErr_SetObject((PyObject *)Py_TYPE(better), better);
    else if (better) PyErr_Restore(Py_NewRef(type), Py_NewRef(error), Py_XNewRef(trace));
    Py_XDECREF(better);
    Py_XDECREF(values);
    Py_XDECREF(type);
    Py_XDECREF(error);
    Py_XDECREF(trace);
    return NULL;
}

/* It looks like the Python function, which carries its name, signature and documentation. */
static PyObject *fast_bind(PyObject *self, PyObject *obj, PyObject *Py_UNUSED(type)) {
    return obj && obj != Py_None ? PyMethod_New(self, obj) : Py_NewRef(self);
}
static PyObject *fast_reduce(PyObject *f, PyObject *Py_UNUSED(none)) {
    return PyObject_GetAttrString(((Fast *)f)->python, "__qualname__");
}
static PyObject *fast_repr(PyObject *f) { return PyObject_Repr(((Fast *)f)->python); }
static PyObject *of_python(PyObject *f, void *name) { return PyObject_GetAttrString(((Fast *)f)->python, name); }
static int into_python(PyObject *f, PyObject *value, void *name) {
    if (value) return PyObject_SetAttrString(((Fast *)f)->python, name, value);
    PyErr_Format(PyExc_AttributeError, "%s cannot be deleted", (char *)name);
    return -1;
}

static int fast_traverse(PyObject *self, visitproc visit, void *arg) {
    Fast *f = (Fast *)self;
    Py_VISIT(f->dict);
    Py_VISIT(f->method);
    Py_VISIT(f->op);
    Py_VISIT(f->python);
    Py_VISIT(f->same_dtype);
    Py_VISIT(f->attrs);
    Py_VISIT(f->shape);
    Py_VISIT(f->operands);
    return 0;
}

static void fast_dealloc(PyObject *self) {
    Fast *f = (Fast *)self;
    PyObject_GC_UnTrack(self);
    if (f->weakrefs) PyObject_ClearWeakRefs(self);
    Py_XDECREF(f->dict);
    Py_XDECREF(f->method);
    Py_XDECREF(f->op);
    Py_XDECREF(f->python);
    Py_XDECREF(f->same_dtype);
    Py_XDECREF(f->name);
    Py_XDECREF(f->attrs);
    Py_XDECREF(f->shape);
    Py_XDECREF(f->operands);
    Py_TYPE(self)->tp_free(self);
}

/* Only the dict: an op and its functions live as long as each other, and a call needs the rest. */
static int fast_clear(PyObject *self) {
    Py_CLEAR(((Fast *)self)->dict);
    return 0;
}

#define OF_PYTHON(name) {name, of_python, into_python, NULL, name}
static PyGetSetDef fast_getset[] = {
    OF_PYTHON("__doc__"), OF_PYTHON("__name__"), OF_PYTHON("__qualname__"), OF_PYTHON("__module__"), OF_PYTHON("__code__"),
    OF_PYTHON("__defaults__"), OF_PYTHON("__kwdefaults__"), OF_PYTHON("__annotations__"), OF_PYTHON("__globals__"),
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMethodDef fast_methods[] = {{"__reduce__", fast_reduce, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};
static PyTypeObject FastType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "mortice._engine.Fast",
    .tp_basicsize = sizeof(Fast),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_vectorcall_offset = offsetof(Fast, call),
    .tp_dictoffset = offsetof(Fast, dict),
    .tp_weaklistoffset = offsetof(Fast, weakrefs),
    .tp_call = PyVectorcall_Call,
    .tp_descr_get = fast_bind,
    .tp_repr = fast_repr,
    .tp_getattro = PyObject_GenericGetAttr,
    .tp_setattro = PyObject_GenericSetAttr,
    .tp_traverse = fast_traverse,
    .tp_clear = fast_clear,
    .tp_dealloc = fast_dealloc,
    .tp_getset = fast_getset,
    .tp_methods = fast_methods,
};

COLD static PyObject *fast(PyObject *Py_UNUSED(module), PyObject *args) { /* fast(kind, op, python, shape, operands) */
    int kind;
    PyObject *op, *python, *shape, *operands = Py_None;
    if (!PyArg_ParseTuple(args, "iOOO|O", &kind, &op, &python, &shape, &operands)) return NULL;
    const int without = op == Py_None && kind == INTO; /* `operands` finds one with each call */
    if (!is_op(op) && !without) {
        PyErr_SetString(PyExc_TypeError, "fast: expected an Op");
        return NULL;
    }
    Fast *f = PyObject_GC_New(Fast, &FastType);
    if (!f) return NULL;
    f->call = kind == GETITEM ? call_getitem : kind == INTO ? call_into : call_op;
    f->kind = kind;
    f->under = NULL;
    f->dict = f->weakrefs = f->method = NULL;
    f->op = Py_NewRef(op);
    f->python = Py_NewRef(python);
    f->shape = Py_NewRef(shape);
    f->operands = Py_NewRef(operands);
    f->same_dtype = without ? NULL : PyObject_GetAttr(op, word.same_dtype);
    f->name = f->same_dtype ? PyObject_GetAttr(op, word.name) : NULL;
    f->numbers = 0;
    f->fixed = 0;
    f->lead = 0;
    f->attrs = f->name ? PyObject_GetAttr(op, word.attrs) : NULL;
    PyObject *scalars = f->attrs ? PyObject_GetAttr(op, word.scalars) : NULL;
    PyObject *fixed = scalars ? PyObject_GetAttr(op, word.fixed) : NULL;
    if (fixed) {
        f->numbers = (kind == TWO || kind == ANY) && PyObject_IsTrue(scalars) > 0;
        for (int i = 0; i < MOST && !PyErr_Occurred(); i++) {
            PyObject *number = PyLong_FromLong(i);
            if (number && PySequence_Contains(fixed, number) == 1) f->fixed |= 1u << i;
            Py_XDECREF(number);
        }
        while (f->fixed >> f->lead & 1) f->lead++;
        if (!PyErr_Occurred() && (!PyDict_CheckExact(f->same_dtype) || !PyList_CheckExact(f->attrs)))
            PyErr_SetString(PyExc_TypeError, "fast: expected the dtypes and attributes of an Op");
    }
    f->most = without ? 0 : f->numbers || f->fixed ? MOST : MANY;
    if (kind == INTO && !without && !PyErr_Occurred()) { /* as many as the op has */
        PyObject *inputs = PyObject_GetAttr(op, word.inputs);
        f->most = inputs ? (int)PyObject_Length(inputs) : -1;
        Py_XDECREF(inputs);
    }
    Py_XDECREF(scalars);
    Py_XDECREF(fixed);
    PyObject_GC_Track(f);
    if (PyErr_Occurred()) Py_CLEAR(f);
    return (PyObject *)f;
}

COLD static PyObject *guard(PyObject *Py_UNUSED(module), PyObject *args) { /* guard(python, explain, ask, *what is beneath) */
    PyObject *python, *explain, *ask, *under = NULL, *names = NULL;
    unsigned switches = 0;
    int usual = 0;
    if (!PyArg_ParseTuple(args, "OOO|OO!Ip", &python, &explain, &ask, &under, &PyTuple_Type, &names, &switches, &usual)) return NULL;
    Fast *f = PyObject_GC_New(Fast, &FastType);
    if (!f) return NULL;
    memset((char *)f + offsetof(Fast, call), 0, sizeof(Fast) - offsetof(Fast, call));
    f->call = call_guarded;
    f->python = Py_NewRef(python);
    f->shape = Py_NewRef(explain);
    f->operands = Py_NewRef(ask);
    f->op = names ? Py_NewRef(under) : NULL;
    f->attrs = Py_XNewRef(names);
    f->fixed = switches;
    f->kind = usual;
    PyObject_GC_Track(f);
    return (PyObject *)f;
}

/* A method of plain tensors, once a class takes calls over: where an argument is of one, it is the method that asks. */
COLD static PyObject *call_asking(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    Fast *f = (Fast *)self;
    const Py_ssize_t n = PyVectorcall_NARGS(nargsf) + (names ? PyTuple_GET_SIZE(names) : 0);
    for (Py_ssize_t i = 0; i < n; i++)
        if (Py_TYPE(args[i]) != Tensor && !is_number(args[i]) && any_asks(args[i], 1)) return PyObject_Vectorcall(f->method, args, nargsf, names);
    return f->under ? f->under(self, args, nargsf, names) : PyObject_Vectorcall(f->python, args, nargsf, names);
}

COLD static PyObject *asking(PyObject *Py_UNUSED(module), PyObject *args) { /* asking(function, method that asks) */
    PyObject *function, *method;
    if (!PyArg_ParseTuple(args, "OO", &function, &method)) return NULL;
    Fast *f = PyObject_GC_New(Fast, &FastType), *like = Py_TYPE(function) == &FastType ? (Fast *)function : NULL;
    if (!f) return NULL;
    if (like) memcpy((char *)f + offsetof(Fast, call), (char *)like + offsetof(Fast, call), sizeof(Fast) - offsetof(Fast, call));
    else memset((char *)f + offsetof(Fast, call), 0, sizeof(Fast) - offsetof(Fast, call));
    f->under = f->call;
    f->call = call_asking;
    f->weakrefs = NULL;
    f->method = Py_NewRef(method);
    f->python = Py_NewRef(like ? like->python : function);
    PyObject *more[] = {f->dict, f->op, f->same_dtype, f->name, f->attrs, f->shape, f->operands};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) Py_XINCREF(more[i]);
    PyObject_GC_Track(f);
    return (PyObject *)f;
}

#include "draws.h"

/* ---- the module ---- */

COLD static PyObject *known_slots(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none)) {
    PyObject *made = PyList_New(CLASSES);
    for (int i = 0; made && i < CLASSES; i++) {
        PyObject *names = PySet_New(NULL);
        for (size_t j = 0; names && j < SLOTS; j++) {
            PyObject *name = slots[j].of == i ? PyUnicode_FromString(slots[j].name) : NULL;
            if (PyErr_Occurred() || (name && PySet_Add(names, name) < 0)) Py_CLEAR(names);
            Py_XDECREF(name);
        }
        if (names) PyList_SET_ITEM(made, i, names);
        else Py_CLEAR(made);
    }
    return made;
}

/* install(classes, objects): the classes whose slots are read, and the functions and objects that the fast cases share.
   Returns what takes the place of the classes' own methods and properties: descriptors, which have their names. */
COLD static PyObject *install(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *classes, *objects, **places[] = {
        &special, &nothing, &sizes, &remembered, &next_seq, &record, &record_one_py, &record_two_py, &as_view_py, &broadcast,
        &own_storage_py, &share_py, &nobody, &modes, &Meta, &same, &pull_py, &owns_py, &accumulate_py, &unbroadcast, &raw, &adding, &members, &own_names};
    Py_ssize_t count = sizeof places / sizeof *places;
    if (!PyArg_ParseTuple(args, "O!O!", &PyTuple_Type, &classes, &PyTuple_Type, &objects)) return NULL;
    if (PyTuple_GET_SIZE(classes) != CLASSES || PyTuple_GET_SIZE(objects) != count)
        return PyErr_Format(PyExc_TypeError, "it expects other classes");
    Py_ssize_t offsets[SLOTS];
    for (size_t i = 0; i < SLOTS; i++) {
        PyObject *found = PyObject_GetAttrString(PyTuple_GET_ITEM(classes, slots[i].of), slots[i].name);
        if (!found) return NULL;
        int is_slot = Py_TYPE(found) == &PyMemberDescr_Type && ((PyMemberDescrObject *)found)->d_member->type == T_OBJECT_EX;
        offsets[i] = is_slot ? ((PyMemberDescrObject *)found)->d_member->offset : 0;
        Py_DECREF(found);
        if (!is_slot) return PyErr_Format(PyExc_TypeError, "%s is no slot", slots[i].name);
    }
    if (class[0]) return PyErr_Format(PyExc_TypeError, "it serves another copy of the package");
    if (!PyList_CheckExact(PyTuple_GET_ITEM(objects, 0)) || !PyDict_CheckExact(PyTuple_GET_ITEM(objects, 2)))
        return PyErr_Format(PyExc_TypeError, "it expects other objects");
    for (size_t i = 0; i < SLOTS; i++) *(Py_ssize_t *)((char *)&at + slots[i].place) = offsets[i];
    for (Py_ssize_t i = 0; i < count; i++) *places[i] = Py_NewRef(PyTuple_GET_ITEM(objects, i));
    for (int i = 0; i < CLASSES; i++) class[i] = (PyTypeObject *)Py_NewRef(PyTuple_GET_ITEM(classes, i));
    static PyMemberDef shown[] = {{"dtype", T_OBJECT_EX, 0, READONLY, NULL}, {"shape", T_OBJECT_EX, 0, READONLY, NULL}};
    shown[0].offset = at.dtype, shown[1].offset = at.shape;
    PyObject *made = Py_BuildValue("[NNNNNNNNN]", PyDescr_NewMethod(class[SIZE], &of_sizes[0]), PyDescr_NewMember(class[TENSOR], &shown[0]), PyDescr_NewMember(class[TENSOR], &shown[1]),
                                   PyDescr_NewMethod(class[TENSOR], &own_storage_method), PyDescr_NewMethod(class[TENSOR], &share_method),
                                   PyDescr_NewMethod(class[TENSOR], &of_tensors[0]), PyDescr_NewMethod(class[TENSOR], &of_tensors[1]),
                                   PyDescr_NewMethod(class[NODE], &of_nodes[0]), PyDescr_NewMethod(class[NODE], &of_nodes[1]));
    for (size_t i = 0; made && i < sizeof attributes / sizeof *attributes; i++) {
        PyObject *property = PyObject_GetAttrString((PyObject *)class[TENSOR], attributes[i].name), *words = NULL, *shown = NULL;
        if (property && (words = PyObject_GetAttrString(property, "__doc__")) && PyUnicode_Check(words)) attributes[i].doc = PyUnicode_AsUTF8(words);
        attributes[i].closure = property; /* it and its words stay for good */
        if (words) shown = PyDescr_NewGetSet(class[TENSOR], &attributes[i]);
        if (!shown || PyList_Append(made, shown) < 0) Py_CLEAR(made);
        Py_XDECREF(shown);
    }
    return made;
}

/* plain(t): what `plain` of mutation.py does */
COLD static PyObject *plain(PyObject *Py_UNUSED(module), PyObject *t) {
    const int now = mode();
    if (!now || !is_tensor(t) || !SLOT(SLOT(t, at.device), at.backend)) return PyObject_CallOneArg(plain_py, t);
    if (now == USUAL && wants_grad(t)) Py_RETURN_FALSE;
    PyObject *backend = Py_NewRef(SLOT(SLOT(t, at.device), at.backend)), *data = Py_NewRef(SLOT(t, at.data)), *storage = own_storage(t, NULL);
    const int found = !storage ? -1 : !of(storage, STORAGE) ? 0 : lies_plainly(t, backend, data, now == QUIET);
    Py_XDECREF(storage);
    Py_DECREF(data);
    Py_DECREF(backend);
    return found < 0 ? NULL : found ? Py_NewRef(Py_True) : PyObject_CallOneArg(plain_py, t);
}

COLD static PyObject *writes_in_python(PyObject *Py_UNUSED(module), PyObject *args) { /* of mutation.py, which comes after `install` */
    PyObject *write, *plain;
    if (!PyArg_ParseTuple(args, "OO", &write, &plain)) return NULL;
    Py_XSETREF(write_py, Py_NewRef(write));
    Py_XSETREF(plain_py, Py_NewRef(plain));
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"install", install, METH_VARARGS, NULL},
    {"known_slots", known_slots, METH_NOARGS, NULL},
    {"fast", fast, METH_VARARGS, NULL},
    {"guard", guard, METH_VARARGS, NULL},
    {"asking", asking, METH_VARARGS, NULL},
    {"as_view", (PyCFunction)(void (*)(void))as_view, METH_FASTCALL, NULL},
    {"make", (PyCFunction)(void (*)(void))make, METH_FASTCALL, NULL},
    {"record", (PyCFunction)(void (*)(void))record_call, METH_FASTCALL, NULL},
    {"give_slots", (PyCFunction)(void (*)(void))give_slots, METH_FASTCALL, NULL},
    {"write", (PyCFunction)(void (*)(void))write_fresh, METH_FASTCALL, NULL},
    {"plain", plain, METH_O, NULL},
    {"write_in_python", writes_in_python, METH_VARARGS, NULL},
    {"draw", (PyCFunction)(void (*)(void))draw, METH_FASTCALL, NULL},
    {"fill", (PyCFunction)(void (*)(void))fill, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "mortice._engine", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__engine(void) {
    PyObject **place = (PyObject **)&word;
    for (const char *text = NAMES(TEXT); *text; text += strlen(text) + 1, place++)
        if (!*place && !(*place = PyUnicode_InternFromString(text))) return NULL;
    if (!(no_note = PyUnicode_InternFromString("")) || !(no_grad = PyUnicode_InternFromString("no_grad"))) return NULL;
    if (!(zero = PyLong_FromLong(0)) || !(next = PyLong_FromLong(1)) || !(few = PyLong_FromLong(16)) || !(no_sizes = PyTuple_New(0)) || PyType_Ready(&FastType) < 0) return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module && (PyModule_AddIntConstant(module, "VERSION", VERSION) < 0 || PyModule_AddType(module, &FastType) < 0 || add_crc32(module) < 0))
        Py_CLEAR(module);
    return module;
}
