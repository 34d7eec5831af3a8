/* mortice._engine: the fast cases of the call path in C. Everything else, and every error, is left to the Python function
   that each of these stands before: the meaning is there. Attributes are read and written where the classes' __slots__
   have them, so the classes themselves stay Python's. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#define SLOT(o, off) (*(PyObject **)((char *)(o) + (off)))

static struct { /* offsets of the slots of Tensor, Storage, Aliases, LeafState, Device, OpNode */
    Py_ssize_t data, device, dtype, shape, rg, node, storage, steps, viewed, note, leaf;
    Py_ssize_t version, aliases, last, first_use, table, backend;
    Py_ssize_t n_seq, n_edges, n_device, n_shape, n_dtype, n_extra, n_op, n_saved, n_out, n_attrs, n_shapes, n_versions, n_meta;
} at;
static PyTypeObject *TensorBase, *Tensor, *Storage;
static PyObject *special, *zero, *scalar, *next_seq, *record_one_py, *record_two_py, *as_view_py, *nothing, *sizes;
static PyObject *s_plan_one, *s_plan_both, *s_plan_first, *s_plan_second, *s_node_class, *s_no_grad_reason, *s_note_use,
    *s_own_storage, *s_getitem, *s_shape_of;

static inline int unusual(void) { return PyList_GET_ITEM(special, 0) != zero; }
static inline int is_tensor(PyObject *o) { return Py_TYPE(o) == Tensor || PyType_IsSubtype(Py_TYPE(o), TensorBase); }
static int find_public_class(void) { /* `methods` sets it after the ops are declared */
    if (!Tensor) Tensor = (PyTypeObject *)PyObject_GetAttrString((PyObject *)TensorBase, "cls");
    return Tensor ? 0 : -1;
}
static inline void put(PyObject *o, Py_ssize_t off, PyObject *v) { Py_INCREF(v); SLOT(o, off) = v; }

/* A new tensor over `data`, which it takes. */
static PyObject *fresh(PyObject *data, PyObject *device, PyObject *dtype, PyObject *shape) {
    PyObject *t = !Tensor && find_public_class() < 0 ? NULL : Tensor->tp_alloc(Tensor, 0);
    if (!t) { Py_DECREF(data); return NULL; }
    SLOT(t, at.data) = data;
    put(t, at.device, device); put(t, at.dtype, dtype); put(t, at.shape, shape);
    put(t, at.rg, Py_False);
    put(t, at.node, Py_None); put(t, at.storage, Py_None); put(t, at.leaf, Py_None);
    return t;
}

static void set(PyObject *o, Py_ssize_t off, PyObject *v) { /* replaces; takes v */
    PyObject *old = SLOT(o, off); SLOT(o, off) = v; Py_XDECREF(old);
}

/* Where the gradient of x goes: its node, or x itself as a leaf that knows of its first use. New reference. */
static PyObject *edge_of(PyObject *x, PyObject *seq) {
    if (SLOT(x, at.rg) != Py_True) Py_RETURN_NONE;
    PyObject *node = SLOT(x, at.node);
    if (node != Py_None) return Py_NewRef(node);
    PyObject *leaf = SLOT(x, at.leaf);
    if (leaf != Py_None && SLOT(leaf, at.first_use) != zero) return Py_NewRef(x);
    return PyObject_CallMethodOneArg(x, s_note_use, seq);
}

static PyObject *new_node(PyObject *op, PyObject *t, PyObject **seq) {
    PyObject *cls = PyObject_GetAttr(op, s_node_class);
    if (!cls || cls == Py_None) { Py_XDECREF(cls); return NULL; }
    PyObject *node = ((PyTypeObject *)cls)->tp_alloc((PyTypeObject *)cls, 0);
    Py_DECREF(cls);
    if (!node || !(*seq = PyObject_CallNoArgs(next_seq))) { Py_XDECREF(node); return NULL; }
    SLOT(node, at.n_seq) = *seq; /* owned by the node */
    put(node, at.n_op, op);
    put(node, at.n_device, SLOT(t, at.device)); put(node, at.n_shape, SLOT(t, at.shape)); put(node, at.n_dtype, SLOT(t, at.dtype));
    put(node, at.n_extra, Py_None); put(node, at.n_meta, Py_None);
    return node;
}

/* The end of both: gives the tensor its node, which it takes. */
static int finish_node(PyObject *node, PyObject *plan, PyObject *t) {
    SLOT(node, at.n_out) = PyTuple_GET_ITEM(plan, 1) == Py_True ? PyTuple_Pack(1, SLOT(t, at.data)) : Py_NewRef(Py_None);
    Py_DECREF(plan);
    if (!SLOT(node, at.n_edges) || !SLOT(node, at.n_saved) || !SLOT(node, at.n_versions) || !SLOT(node, at.n_shapes) ||
        !SLOT(node, at.n_out)) { Py_DECREF(node); return -1; } /* no memory */
    set(t, at.rg, Py_NewRef(Py_True));
    set(t, at.node, node);
    return 0;
}

/* New reference; a storage of a level (see `levels`) computes its version. */
static PyObject *version_of(PyObject *storage) {
    if (storage == Py_None) return Py_NewRef(zero);
    return Py_TYPE(storage) == Storage ? Py_NewRef(SLOT(storage, at.version)) : PyObject_GetAttrString(storage, "version");
}

static PyObject *versions_of(PyObject *first, PyObject *second) { /* of one storage where `second` is NULL */
    PyObject *a = version_of(first), *b = a && second ? version_of(second) : NULL, *found = NULL;
    if (a && (b || !second)) found = second ? PyTuple_Pack(2, a, b) : PyTuple_Pack(1, a);
    Py_XDECREF(a); Py_XDECREF(b);
    return found;
}

static int record_two(PyObject *op, PyObject *x, PyObject *y, PyObject *t) {
    int xr = SLOT(x, at.rg) == Py_True, yr = SLOT(y, at.rg) == Py_True;
    PyObject *reason = PyObject_GetAttr(op, s_no_grad_reason);
    if (!reason) return -1;
    Py_DECREF(reason);
    if (reason != Py_None) return 0;
    PyObject *seq, *plan = PyObject_GetAttr(op, xr ? (yr ? s_plan_both : s_plan_first) : s_plan_second);
    if (!plan) return -1;
    PyObject *node = plan == Py_None ? NULL : new_node(op, t, &seq);
    if (!node) { /* the first time */
        Py_DECREF(plan);
        if (PyErr_Occurred()) return -1;
        PyObject *r = PyObject_CallFunctionObjArgs(record_two_py, op, x, y, SLOT(t, at.data), t, NULL);
        Py_XDECREF(r);
        return r ? 0 : -1;
    }
    PyObject *keep = PyTuple_GET_ITEM(plan, 0);
    int kx = PyTuple_GET_ITEM(keep, 0) == Py_True, ky = PyTuple_GET_ITEM(keep, 1) == Py_True;
    PyObject *ex = edge_of(x, seq), *ey = edge_of(y, seq);
    if (!ex || !ey) { Py_XDECREF(ex); Py_XDECREF(ey); Py_DECREF(plan); Py_DECREF(node); return -1; }
    SLOT(node, at.n_edges) = PyTuple_Pack(2, ex, ey);
    Py_DECREF(ex); Py_DECREF(ey);
    PyObject *versions = Py_NewRef(Py_None), *saved;
    if (kx || ky) {
        saved = PyTuple_Pack(2, kx ? x : Py_None, ky ? y : Py_None);
        PyObject *sx = kx ? SLOT(x, at.storage) : Py_None, *sy = ky ? SLOT(y, at.storage) : Py_None;
        if (sx != Py_None || sy != Py_None) {
            Py_DECREF(versions);
            versions = versions_of(sx, sy);
        }
    } else saved = Py_NewRef(nothing);
    SLOT(node, at.n_saved) = saved;
    SLOT(node, at.n_versions) = versions;
    PyObject *a = SLOT(x, at.shape), *b = SLOT(y, at.shape);
    int shapes = PyTuple_GET_ITEM(plan, 2) == Py_True || (a != b && PyObject_RichCompareBool(a, b, Py_NE) == 1);
    SLOT(node, at.n_shapes) = shapes ? PyTuple_Pack(2, a, b) : Py_NewRef(Py_None);
    put(node, at.n_attrs, Py_None);
    return finish_node(node, plan, t);
}

static int record_one(PyObject *op, PyObject *x, PyObject *t, PyObject *attrs) {
    PyObject *reason = PyObject_GetAttr(op, s_no_grad_reason);
    if (!reason) return -1;
    Py_DECREF(reason);
    if (reason != Py_None) return 0;
    PyObject *seq, *plan = PyObject_GetAttr(op, s_plan_one);
    if (!plan) return -1;
    PyObject *node = plan == Py_None ? NULL : new_node(op, t, &seq);
    if (!node) {
        Py_DECREF(plan);
        if (PyErr_Occurred()) return -1;
        PyObject *r = PyObject_CallFunctionObjArgs(record_one_py, op, x, SLOT(t, at.data), t, attrs, NULL);
        Py_XDECREF(r);
        return r ? 0 : -1;
    }
    int keep = PyTuple_GET_ITEM(PyTuple_GET_ITEM(plan, 0), 0) == Py_True;
    PyObject *edge = edge_of(x, seq);
    if (!edge) { Py_DECREF(plan); Py_DECREF(node); return -1; }
    SLOT(node, at.n_edges) = PyTuple_Pack(1, edge);
    Py_DECREF(edge);
    SLOT(node, at.n_saved) = PyTuple_Pack(1, keep ? x : Py_None);
    PyObject *storage = SLOT(x, at.storage);
    SLOT(node, at.n_versions) = keep && storage != Py_None ? versions_of(storage, NULL) : Py_NewRef(Py_None);
    SLOT(node, at.n_shapes) = PyTuple_GET_ITEM(plan, 2) == Py_True ? PyTuple_Pack(1, SLOT(x, at.shape)) : Py_NewRef(Py_None);
    put(node, at.n_attrs, attrs);
    return finish_node(node, plan, t);
}

/* ---- a function with a fast case ---- */

enum { SAME, TO_SCALAR, TWO, GETITEM };
typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *dict, *weakrefs, *op, *python, *same_dtype;
    int kind;
} Fast;

static PyObject *kernel_of(PyObject *device, PyObject *op) { /* borrowed; NULL where it is not compiled yet */
    PyObject *table = SLOT(device, at.table);
    return PyDict_Check(table) ? PyDict_GetItemWithError(table, op) : NULL;
}

static int is_dead(PyObject *ref) {
#if PY_VERSION_HEX >= 0x030D0000
    PyObject *found = NULL;
    int alive = PyWeakref_GetRef(ref, &found);
    Py_XDECREF(found);
    return alive == 0;
#else
    return PyWeakref_GET_OBJECT(ref) == Py_None;
#endif
}

static PyObject *view(PyObject *op, PyObject *x, PyObject *data, PyObject *size, PyObject *attrs) { /* takes data */
    PyObject *storage = SLOT(x, at.storage);
    if (storage == Py_None) {
        PyObject *made = PyObject_CallMethodNoArgs(x, s_own_storage);
        if (!made) { Py_DECREF(data); return NULL; }
        Py_DECREF(made);
        storage = SLOT(x, at.storage);
    }
    if (Py_TYPE(storage) != Storage) {
        PyObject *t = PyObject_CallFunctionObjArgs(as_view_py, op, x, data, size, attrs, NULL);
        Py_DECREF(data);
        return t;
    }
    PyObject *t = fresh(data, SLOT(x, at.device), SLOT(x, at.dtype), size);
    if (!t) return NULL;
    set(t, at.storage, Py_NewRef(storage));
    if (!(SLOT(t, at.steps) = PyTuple_Pack(3, SLOT(x, at.steps), op, attrs))) { Py_DECREF(t); return NULL; }
    PyObject *viewed = SLOT(x, at.viewed);
    put(t, at.viewed, viewed == Py_None ? x : viewed);
    put(t, at.note, SLOT(x, at.note));
    PyObject *aliases = SLOT(storage, at.aliases), *last = SLOT(aliases, at.last);
    if (!PyWeakref_CheckRef(last) || is_dead(last)) {
        PyObject *ref = PyWeakref_NewRef(t, NULL);
        if (!ref) { Py_DECREF(t); return NULL; }
        set(aliases, at.last, ref);
    } else {
        PyObject *r = PyObject_CallMethod(storage, "add", "O", t);
        if (!r) { Py_DECREF(t); return NULL; }
        Py_DECREF(r);
    }
    if (SLOT(x, at.rg) == Py_True && record_one(op, x, t, attrs) < 0) { Py_DECREF(t); return NULL; }
    return t;
}

static PyObject *sliced(Fast *f, PyObject *x, PyObject *slice) {
    PyObject *size = NULL, *attrs = NULL, *t = NULL, *data = NULL, *shape = NULL;
    PyObject *backend = Py_NewRef(SLOT(SLOT(x, at.device), at.backend)), *whole = Py_NewRef(SLOT(x, at.data));
    PyObject *key = PyTuple_Pack(1, slice);
    if (key) data = PyObject_CallMethodObjArgs(backend, s_getitem, whole, key, NULL);
    if (data) shape = PyObject_CallMethodOneArg(backend, s_shape_of, data);
    if (shape) {
        size = PyDict_GetItemWithError(sizes, shape);
        if (!size) { /* not seen yet */
            if (!PyErr_Occurred()) t = PyObject_CallFunctionObjArgs(f->python, x, slice, NULL);
        } else {
            attrs = SLOT(x, at.rg) == Py_True ? Py_BuildValue("{sOsO}", "key", key, "shape", size) : PyTuple_Pack(2, key, size);
            if (attrs) t = view(f->op, x, Py_NewRef(data), size, attrs);
        }
    }
    Py_XDECREF(attrs); Py_XDECREF(shape); Py_XDECREF(data); Py_XDECREF(key); Py_DECREF(backend); Py_DECREF(whole);
    return t;
}

static PyObject *fast_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    Fast *f = (Fast *)self;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    if (names || n != (f->kind >= TWO ? 2 : 1) || unusual() || !is_tensor(args[0])) goto python;
    PyObject *x = args[0], *device = SLOT(x, at.device), *dtype = SLOT(x, at.dtype), *shape = SLOT(x, at.shape);
    if (!device || !dtype || !shape || !SLOT(x, at.data) || !SLOT(x, at.leaf)) goto python; /* still being made */
    if (f->kind == GETITEM) {
        if (!PySlice_Check(args[1]) || !PyTuple_GET_SIZE(shape)) goto python;
        return sliced(f, x, args[1]);
    }
    PyObject *y = NULL;
    if (f->kind == TWO) {
        y = args[1];
        if (!is_tensor(y) || SLOT(y, at.device) != device || SLOT(y, at.dtype) != dtype) goto python;
        PyObject *other = SLOT(y, at.shape);
        if (!other || !SLOT(y, at.data) || !SLOT(y, at.leaf)) goto python;
        if (other != shape && PyObject_RichCompareBool(shape, other, Py_EQ) != 1) goto python;
    }
    PyObject *result = PyDict_GetItemWithError(f->same_dtype, dtype), *kernel = result ? kernel_of(device, f->op) : NULL;
    if (!kernel) {
        if (PyErr_Occurred()) return NULL;
        goto python;
    }
    /* The kernel may let other threads run, which may give x another buffer: what is used is held. */
    PyObject *buffers[3] = {NULL, Py_NewRef(SLOT(x, at.data)), y ? Py_NewRef(SLOT(y, at.data)) : NULL};
    Py_INCREF(device); Py_INCREF(shape);
    PyObject *data = PyObject_Vectorcall(kernel, buffers + 1, (y ? 2 : 1) | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    PyObject *t = data ? fresh(data, device, result, f->kind == TO_SCALAR ? scalar : shape) : NULL;
    if (t && (SLOT(x, at.rg) == Py_True || (y && SLOT(y, at.rg) == Py_True)))
        if ((y ? record_two(f->op, x, y, t) : record_one(f->op, x, t, Py_None)) < 0) Py_CLEAR(t);
    Py_DECREF(device); Py_DECREF(shape); Py_DECREF(buffers[1]); Py_XDECREF(buffers[2]);
    return t;
python:
    return PyObject_Vectorcall(f->python, args, nargsf, names);
}

static PyObject *fast_bind(PyObject *self, PyObject *obj, PyObject *type) {
    return obj && obj != Py_None ? PyMethod_New(self, obj) : Py_NewRef(self);
}
static PyObject *fast_reduce(Fast *f, PyObject *unused) { return PyObject_GetAttrString(f->python, "__qualname__"); }
static PyObject *fast_repr(Fast *f) { return PyObject_Repr(f->python); }
static PyObject *of_python(Fast *f, void *name) { return PyObject_GetAttrString(f->python, name); }
static int into_python(Fast *f, PyObject *value, void *name) { return PyObject_SetAttrString(f->python, name, value); }
static int fast_traverse(Fast *f, visitproc visit, void *arg) {
    Py_VISIT(f->dict); Py_VISIT(f->op); Py_VISIT(f->python); Py_VISIT(f->same_dtype); return 0;
}
static int fast_clear(Fast *f) { Py_CLEAR(f->dict); Py_CLEAR(f->op); Py_CLEAR(f->python); Py_CLEAR(f->same_dtype); return 0; }
static void fast_dealloc(Fast *f) {
    PyObject_GC_UnTrack(f);
    if (f->weakrefs) PyObject_ClearWeakRefs((PyObject *)f);
    fast_clear(f);
    Py_TYPE(f)->tp_free(f);
}
#define OF_PYTHON(name) {name, (getter)of_python, (setter)into_python, NULL, name}
static PyGetSetDef fast_getset[] = {
    OF_PYTHON("__doc__"), OF_PYTHON("__name__"), OF_PYTHON("__qualname__"), OF_PYTHON("__module__"), OF_PYTHON("__code__"),
    OF_PYTHON("__defaults__"), OF_PYTHON("__kwdefaults__"), OF_PYTHON("__annotations__"), OF_PYTHON("__globals__"),
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL}, {NULL}};
static PyMethodDef fast_methods[] = {{"__reduce__", (PyCFunction)fast_reduce, METH_NOARGS, NULL}, {NULL}};
static PyTypeObject FastType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "mortice._engine.Fast", .tp_basicsize = sizeof(Fast),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_vectorcall_offset = offsetof(Fast, call), .tp_call = PyVectorcall_Call, .tp_dictoffset = offsetof(Fast, dict),
    .tp_weaklistoffset = offsetof(Fast, weakrefs), .tp_descr_get = fast_bind, .tp_traverse = (traverseproc)fast_traverse,
    .tp_clear = (inquiry)fast_clear, .tp_dealloc = (destructor)fast_dealloc, .tp_getset = fast_getset,
    .tp_methods = fast_methods, .tp_repr = (reprfunc)fast_repr, .tp_getattro = PyObject_GenericGetAttr,
    .tp_setattro = PyObject_GenericSetAttr,
};

static PyObject *fast(PyObject *m, PyObject *args) { /* fast(kind, op, python, same_dtype) */
    int kind;
    PyObject *op, *python, *same;
    if (!PyArg_ParseTuple(args, "iOOO!", &kind, &op, &python, &PyDict_Type, &same)) return NULL;
    Fast *f = PyObject_GC_New(Fast, &FastType);
    if (!f) return NULL;
    f->call = fast_call; f->kind = kind; f->weakrefs = NULL;
    f->dict = NULL; /* made at need */
    f->op = Py_NewRef(op); f->python = Py_NewRef(python); f->same_dtype = Py_NewRef(same);
    PyObject_GC_Track(f);
    return (PyObject *)f;
}

static PyObject *as_view(PyObject *m, PyObject *const *args, Py_ssize_t n) {
    if (n != 5 || unusual()) return PyObject_Vectorcall(as_view_py, args, n, NULL);
    return view(args[0], args[1], Py_NewRef(args[2]), args[3], args[4] == Py_None ? args[3] : args[4]);
}

static Py_ssize_t offset(PyObject *cls, const char *name) {
    PyObject *d = PyObject_GetAttrString(cls, name);
    if (!d) return -1;
    Py_ssize_t found = -1;
    if (Py_TYPE(d) == &PyMemberDescr_Type) found = ((PyMemberDescrObject *)d)->d_member->offset;
    else PyErr_Format(PyExc_TypeError, "_engine: %s is no slot", name);
    Py_DECREF(d);
    return found;
}

static PyObject *install(PyObject *m, PyObject *args) { /* the classes and objects that the fast cases know */
    PyObject *base, *storage, *aliases, *leaf, *device, *node;
    if (!PyArg_ParseTuple(args, "OOOOOOOOOOOOOO", &base, &storage, &aliases, &leaf, &device, &node, &special, &scalar,
                          &next_seq, &record_one_py, &record_two_py, &as_view_py, &nothing, &sizes)) return NULL;
    Py_INCREF(base); Py_INCREF(special); Py_INCREF(scalar); Py_INCREF(next_seq); Py_INCREF(record_one_py);
    Py_INCREF(record_two_py); Py_INCREF(as_view_py); Py_INCREF(nothing); Py_INCREF(sizes);
    TensorBase = (PyTypeObject *)base;
    Storage = (PyTypeObject *)Py_NewRef(storage);
    zero = PyLong_FromLong(0);
#define AT(field, cls, name) if ((at.field = offset(cls, name)) < 0) return NULL
    AT(data, base, "_data"); AT(device, base, "_device"); AT(dtype, base, "dtype"); AT(shape, base, "shape"); AT(rg, base, "_rg");
    AT(node, base, "_node"); AT(storage, base, "_storage"); AT(steps, base, "_steps"); AT(viewed, base, "_viewed");
    AT(note, base, "_note"); AT(leaf, base, "_leaf");
    AT(version, storage, "version"); AT(aliases, storage, "aliases"); AT(last, aliases, "last"); AT(first_use, leaf, "first_use");
    AT(table, device, "table"); AT(backend, device, "backend");
    AT(n_seq, node, "seq"); AT(n_edges, node, "edges"); AT(n_device, node, "device"); AT(n_shape, node, "shape");
    AT(n_dtype, node, "dtype"); AT(n_extra, node, "extra"); AT(n_op, node, "op"); AT(n_saved, node, "saved"); AT(n_out, node, "out");
    AT(n_attrs, node, "attrs"); AT(n_shapes, node, "shapes"); AT(n_versions, node, "versions"); AT(n_meta, node, "meta");
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"install", install, METH_VARARGS, NULL}, {"fast", fast, METH_VARARGS, NULL},
    {"as_view", (PyCFunction)(void (*)(void))as_view, METH_FASTCALL, NULL}, {NULL}};
static struct PyModuleDef def = {PyModuleDef_HEAD_INIT, "mortice._engine", NULL, -1, methods};
PyMODINIT_FUNC PyInit__engine(void) {
    if (PyType_Ready(&FastType) < 0) return NULL;
    s_plan_one = PyUnicode_InternFromString("plan_one"); s_plan_both = PyUnicode_InternFromString("plan_both");
    s_plan_first = PyUnicode_InternFromString("plan_first"); s_plan_second = PyUnicode_InternFromString("plan_second");
    s_node_class = PyUnicode_InternFromString("node_class"); s_no_grad_reason = PyUnicode_InternFromString("no_grad_reason");
    s_note_use = PyUnicode_InternFromString("note_use"); s_own_storage = PyUnicode_InternFromString("own_storage");
    s_getitem = PyUnicode_InternFromString("getitem"); s_shape_of = PyUnicode_InternFromString("shape_of");
    return PyModule_Create(&def);
}
