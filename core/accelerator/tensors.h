/* What the engine does with tensors themselves: it knows their classes, makes tensors, storages and views, and records.

   A function returns a new reference, or NULL with an error set, unless its comment says otherwise. What is taken out of a
   tensor is held before anything allocates or calls: a finalizer or another thread may change the tensor meanwhile. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#define MOST 8 /* operands, and attributes, of a fast case */
#define MANY 1024 /* operands of one that takes no numbers and none of a dtype of its own, such as cat */
/* Where few calls come, or each does much: away from the others, which are slower where these lie among them, and short rather than quick. */
#if defined(__GNUC__)
#define COLD __attribute__((cold))
#else
#define COLD
#endif
#define SLOT(o, offset) (*(PyObject **)((char *)(o) + (offset)))

/* ---- the classes and objects that it knows: see `install` ---- */

enum { TENSOR, STORAGE, ALIASES, LEAF, DEVICE, DTYPE, NODE, CONST, OP, SIZE, PLACE, CLASSES };
static PyTypeObject *class[CLASSES], *Tensor; /* Tensor is the public class, NULL until it is there */

static struct at {
    Py_ssize_t data, device, dtype, shape, rg, node, storage, steps, viewed, note, leaf;
    Py_ssize_t version, aliases, pruned, reshapes, last, pinned, root, laid, first_use, grad, table, backend, base, kind, itemsize, value;
    Py_ssize_t seq, edges, n_device, n_shape, n_dtype, extra, op, saved, out, attrs, shapes, versions, meta;
    Py_ssize_t no_grad_reason, node_class, plan_one, plan_both, plan_first, plan_second, pulls, parent, number;
} at;

/* The texts lie in the table, and places are counted from the start of `at`: pointers would have to be relocated when it is loaded. */
#define AT(field) offsetof(struct at, field)
static const struct { signed char of; char name[17]; short place; } slots[] = {
    {TENSOR, "_buffer", AT(data)}, {TENSOR, "_device", AT(device)}, {TENSOR, "_dtype", AT(dtype)}, {TENSOR, "_shape", AT(shape)},
    {TENSOR, "_rg", AT(rg)}, {TENSOR, "_node", AT(node)}, {TENSOR, "_storage", AT(storage)}, {TENSOR, "_steps", AT(steps)},
    {TENSOR, "_viewed", AT(viewed)}, {TENSOR, "_note", AT(note)}, {TENSOR, "_leaf", AT(leaf)},
    {STORAGE, "version", AT(version)}, {STORAGE, "aliases", AT(aliases)}, {STORAGE, "pruned", AT(pruned)},
    {STORAGE, "reshapes", AT(reshapes)}, {ALIASES, "last", AT(last)}, {ALIASES, "pinned", AT(pinned)}, {ALIASES, "root", AT(root)},
    {ALIASES, "laid", AT(laid)},
    {LEAF, "first_use", AT(first_use)}, {LEAF, "grad", AT(grad)}, {DEVICE, "table", AT(table)}, {DEVICE, "backend", AT(backend)},
    {DEVICE, "base", AT(base)},
    {DTYPE, "kind", AT(kind)}, {DTYPE, "itemsize", AT(itemsize)}, {CONST, "_buffer", AT(value)},
    {NODE, "seq", AT(seq)}, {NODE, "edges", AT(edges)}, {NODE, "device", AT(n_device)}, {NODE, "shape", AT(n_shape)},
    {NODE, "dtype", AT(n_dtype)}, {NODE, "extra", AT(extra)}, {NODE, "op", AT(op)}, {NODE, "saved", AT(saved)},
    {NODE, "out", AT(out)}, {NODE, "attrs", AT(attrs)}, {NODE, "shapes", AT(shapes)}, {NODE, "versions", AT(versions)},
    {NODE, "meta", AT(meta)},
    {OP, "no_grad_reason", AT(no_grad_reason)}, {OP, "node_class", AT(node_class)}, {OP, "plan_one", AT(plan_one)},
    {OP, "plan_both", AT(plan_both)}, {OP, "plan_first", AT(plan_first)}, {OP, "plan_second", AT(plan_second)},
    {OP, "pulls", AT(pulls)}, {PLACE, "parent", AT(parent)}, {PLACE, "number", AT(number)},
    {PLACE, "seq", AT(seq)}, {PLACE, "edges", AT(edges)}, {PLACE, "device", AT(n_device)}, {PLACE, "shape", AT(n_shape)},
    {PLACE, "dtype", AT(n_dtype)}, {PLACE, "extra", AT(extra)}, /* which all nodes have, at one place */
};
#undef AT
#define SLOTS (sizeof slots / sizeof *slots)

static PyObject *special, *nothing, *sizes, *remembered, *next_seq, *record, *record_one_py, *record_two_py, *as_view_py,
    *broadcast, *own_storage_py, *share_py, *nobody, *write_py, *plain_py, *modes, *Meta, *same, *members, *own_names;
static PyObject *zero, *next, *few, *no_sizes, *no_note, *no_grad; /* 0, of which there is one, 1, 16, (), "", "no_grad" */
/* Interned strings: each a field of `word`, and in one text, one after the other. */
#define NAMES(N) \
    N(note_use, "note_use") N(note_storage, "note_storage") N(own_storage, "own_storage") N(getitem, "getitem") \
    N(shape_of, "shape_of") N(version, "version") N(add, "add") N(key, "key") N(shape, "shape") N(dtype, "dtype") \
    N(out, "out") N(name, "name") N(attrs, "attrs") N(same_dtype, "same_dtype") N(fixed, "fixed") N(scalars, "scalars") \
    N(read, "__getitem__") N(reshape_view, "reshape_view") N(is_contiguous, "is_contiguous") N(rooted, "rooted") \
    N(mutable, "mutable") N(strides_of, "strides_of") N(keeps_format, "keeps_format") N(quiet, "quiet") N(capture, "capture") \
    N(levels, "levels") N(lock, "_lock") N(locked, "locked") N(seed, "_seed") N(offset, "_offset") N(into, "into") \
    N(astype, "astype") N(check, "check") N(inputs, "inputs") N(kept, "kept") N(kept_indices, "kept_indices") N(more, "more") \
    N(storages, "storages") N(plans, "plans") N(variadic, "variadic") N(differentiable, "differentiable") \
    N(torch_function, "__torch_function__") N(packed, "packed") N(owns, "owns") N(copy, "copy") N(laid_out, "_laid_out") \
    N(in_own_dtypes, "_in_own_dtypes") N(acquire, "acquire") N(release, "release") N(multiply, "multiply") N(slots, "slots")
#define FIELD(name, text) PyObject *name;
#define TEXT(name, text) text "\0"
static struct { NAMES(FIELD) } word;

static inline int of(PyObject *o, int number) { return o && Py_TYPE(o) == class[number]; }
static inline int is_op(PyObject *o) { return o && class[OP] && PyObject_TypeCheck(o, class[OP]); }

static inline void put(PyObject *o, Py_ssize_t offset, PyObject *value) { /* into an empty slot */
    SLOT(o, offset) = Py_NewRef(value);
}

static inline void replace(PyObject *o, Py_ssize_t offset, PyObject *value) { /* takes value */
    PyObject *old = SLOT(o, offset);
    SLOT(o, offset) = value;
    Py_XDECREF(old);
}

static PyObject *one(PyObject *a) { /* a tuple; takes a, which may be an error */
    PyObject *made = a ? PyTuple_New(1) : NULL;
    if (made) PyTuple_SET_ITEM(made, 0, a);
    else Py_XDECREF(a);
    return made;
}

static PyObject *two(PyObject *a, PyObject *b) {
    PyObject *made = a && b ? PyTuple_New(2) : NULL;
    if (made) {
        PyTuple_SET_ITEM(made, 0, a);
        PyTuple_SET_ITEM(made, 1, b);
    } else {
        Py_XDECREF(a);
        Py_XDECREF(b);
    }
    return made;
}

/* ---- tensors ---- */

/* A class that makes a property of what is read here is left to Python. */
static int is_plain(PyTypeObject *type) {
    return PyType_IsSubtype(type, class[TENSOR]) && _PyType_Lookup(type, word.shape) == _PyType_Lookup(class[TENSOR], word.shape) &&
           _PyType_Lookup(type, word.dtype) == _PyType_Lookup(class[TENSOR], word.dtype);
}

/* Whether it is a tensor that is complete: every slot that is read below has what belongs there. */
static inline int is_tensor(PyObject *o) {
    if (Py_TYPE(o) != Tensor && !is_plain(Py_TYPE(o))) return 0;
    PyObject *shape = SLOT(o, at.shape), *rg = SLOT(o, at.rg);
    return SLOT(o, at.data) && of(SLOT(o, at.device), DEVICE) && of(SLOT(o, at.dtype), DTYPE) && shape && PyTuple_Check(shape) &&
           (rg == Py_True || rg == Py_False) && SLOT(o, at.node) && SLOT(o, at.storage) && SLOT(o, at.leaf);
}

/* A kernel lets other threads run, and a slot can be deleted. */
static int still_whole(PyObject *o) {
    if (is_tensor(o)) return 0;
    PyErr_SetString(PyExc_RuntimeError, "a tensor lost its attributes while an operation ran");
    return -1;
}

static PyObject *fresh(PyObject *data, PyObject *device, PyObject *dtype, PyObject *shape) { /* takes data */
    Py_INCREF(device); /* the rest too, which may be a tensor's: making an object may run a finalizer */
    Py_INCREF(dtype);
    Py_INCREF(shape);
    if (!Tensor) Tensor = (PyTypeObject *)PyObject_GetAttrString((PyObject *)class[TENSOR], "cls");
    PyObject *t = Tensor ? Tensor->tp_alloc(Tensor, 0) : NULL;
    if (!t) {
        Py_DECREF(data);
        Py_DECREF(device);
        Py_DECREF(dtype);
        Py_DECREF(shape);
        return NULL;
    }
    SLOT(t, at.data) = data;
    SLOT(t, at.device) = device;
    SLOT(t, at.dtype) = dtype;
    SLOT(t, at.shape) = shape;
    put(t, at.rg, Py_False);
    put(t, at.node, Py_None);
    put(t, at.storage, Py_None);
    put(t, at.leaf, Py_None);
    return t;
}

static PyObject *make(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n) { /* of tensor.py */
    if (n == 4) return fresh(Py_NewRef(args[0]), args[1], args[2], args[3]);
    return PyErr_Format(PyExc_TypeError, "make: expected data, device, dtype, shape");
}

/* ---- recording: what `record_one`, `record_two` and `record` of node.py do; an operand is a tensor or a Const ---- */

static inline int wants_grad(PyObject *o) { return Py_TYPE(o) != class[CONST] && SLOT(o, at.rg) == Py_True; }
static inline PyObject *shape_of(PyObject *o) { return Py_TYPE(o) == class[CONST] ? no_sizes : SLOT(o, at.shape); } /* borrowed */
static inline int is_shared(PyObject *o) { return Py_TYPE(o) != class[CONST] && SLOT(o, at.storage) != Py_None; }

static inline int says_inference(PyObject *note) {
    return note && note != no_note && PyUnicode_Check(note) && !PyUnicode_CompareWithASCIIString(note, "inference");
}

/* Whether it was made under inference_mode: what must be kept of it is refused in Python. */
static int inferred(PyObject *o) {
    return Py_TYPE(o) != class[CONST] && SLOT(o, at.rg) != Py_True && says_inference(SLOT(o, at.note));
}

/* Where the gradient of an operand goes. */
static PyObject *edge_of(PyObject *o, PyObject *seq) {
    if (!wants_grad(o)) return Py_NewRef(Py_None);
    PyObject *node = SLOT(o, at.node), *leaf = SLOT(o, at.leaf);
    if (node != Py_None) return Py_NewRef(node);
    if (of(leaf, LEAF) && SLOT(leaf, at.first_use)) {
        if (SLOT(leaf, at.first_use) != zero) return Py_NewRef(o);
        if (_PyType_Lookup(Py_TYPE(o), word.note_use) == _PyType_Lookup(class[TENSOR], word.note_use)) {
            replace(leaf, at.first_use, Py_NewRef(seq));
            return Py_NewRef(o);
        }
    }
    return PyObject_CallMethodOneArg(o, word.note_use, seq);
}

/* A storage of a level (see `levels`) computes its version. */
static PyObject *version_of(PyObject *o) {
    PyObject *storage = is_shared(o) ? SLOT(o, at.storage) : NULL;
    if (!storage) return Py_NewRef(zero);
    if (of(storage, STORAGE) && SLOT(storage, at.version)) return Py_NewRef(SLOT(storage, at.version));
    Py_INCREF(storage);
    PyObject *found = PyObject_GetAttr(storage, word.version);
    Py_DECREF(storage);
    return found;
}

/* The plan of an op for n operands, NULL without an error where it is not known yet. */
static PyObject *plan_of(PyObject *op, Py_ssize_t offset, Py_ssize_t n) {
    PyObject *plan = SLOT(op, offset), *made = SLOT(op, at.node_class);
    if (!plan || !PyTuple_Check(plan) || PyTuple_GET_SIZE(plan) != 3 || !made || !PyType_Check(made)) return NULL;
    PyObject *keep = PyTuple_GET_ITEM(plan, 0);
    return PyTuple_Check(keep) && PyTuple_GET_SIZE(keep) == n ? Py_NewRef(plan) : NULL;
}

static PyObject *new_node(PyObject *op, PyObject *t) {
    PyTypeObject *type = (PyTypeObject *)Py_NewRef(SLOT(op, at.node_class));
    PyObject *node = type->tp_alloc(type, 0);
    Py_DECREF(type);
    if (!node) return NULL;
    if (!(SLOT(node, at.seq) = PyObject_CallNoArgs(next_seq))) {
        Py_DECREF(node);
        return NULL;
    }
    put(node, at.op, op);
    put(node, at.n_device, SLOT(t, at.device));
    put(node, at.n_shape, SLOT(t, at.shape));
    put(node, at.n_dtype, SLOT(t, at.dtype));
    put(node, at.extra, Py_None);
    put(node, at.meta, Py_None);
    return node;
}

/* Gives the tensor its node; takes node and plan. What could not be made is NULL in the node. */
static int give_node(PyObject *node, PyObject *plan, PyObject *t) {
    SLOT(node, at.out) = PyTuple_GET_ITEM(plan, 1) == Py_True ? one(Py_NewRef(SLOT(t, at.data))) : Py_NewRef(Py_None);
    Py_DECREF(plan);
    if (!SLOT(node, at.edges) || !SLOT(node, at.saved) || !SLOT(node, at.versions) || !SLOT(node, at.shapes) ||
        !SLOT(node, at.out)) {
        Py_DECREF(node);
        return -1;
    }
    replace(t, at.rg, Py_NewRef(Py_True));
    replace(t, at.node, node);
    return 0;
}

static int succeeded(PyObject *result) { /* takes result */
    Py_XDECREF(result);
    return result ? 0 : -1;
}

/* `channels_last` of backend.py. */
static int channels_last(PyObject *shape, PyObject *strides) {
    Py_ssize_t n = PyTuple_GET_SIZE(shape), least = 0, second = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        Py_ssize_t d = i == 0 ? 1 : i == n - 1 ? 0 : n - i, step = PyLong_AsSsize_t(PyTuple_GET_ITEM(strides, d));
        if (i == 0) second = step;
        if (step < least || (d == 0 && step == second)) return 0;
        least = step * PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, d));
    }
    return second > 0;
}

/* Whether the gradients of an op have the format of such an operand, as `any_channels_last` of backend.py finds; -1 for an error. */
static int gives_format(PyObject *op, PyObject *x, PyObject *attrs) {
    PyObject *backend = SLOT(SLOT(x, at.device), at.backend), *shape = SLOT(x, at.shape), *keeps = NULL, *dims = NULL, *found = NULL;
    PyObject *strides = PyObject_CallMethodOneArg(backend, word.is_contiguous, SLOT(x, at.data));
    if (strides == Py_False) Py_SETREF(strides, PyObject_CallMethodOneArg(backend, word.strides_of, SLOT(x, at.data)));
    int gives = strides ? 0 : -1;
    Py_ssize_t n = strides && PyTuple_Check(strides) && PyTuple_Check(shape) ? PyTuple_GET_SIZE(shape) : 0;
    if (n >= 3 && n <= 5 && PyTuple_GET_SIZE(strides) == n && channels_last(shape, strides)) {
        if ((keeps = PyObject_GetAttr(op, word.keeps_format)) && (dims = PyLong_FromSsize_t(n)))
            found = PyObject_CallFunctionObjArgs(keeps, dims, attrs, NULL);
        gives = found ? PyObject_IsTrue(found) : -1;
    }
    Py_XDECREF(strides);
    Py_XDECREF(keeps);
    Py_XDECREF(dims);
    Py_XDECREF(found);
    return gives;
}

/* What `_shapes` of node.py does for n operands. */
static PyObject *shapes_and_format(PyObject *op, PyObject *const *operands, Py_ssize_t n, PyObject *attrs) {
    int gives = 0;
    for (Py_ssize_t i = 0; i < n && i < 2 && !gives; i++)
        if (is_tensor(operands[i]) && (gives = gives_format(op, operands[i], attrs)) < 0) return NULL;
    PyObject *shapes = PyTuple_New(n + 1);
    for (Py_ssize_t i = 0; shapes && i < n; i++) PyTuple_SET_ITEM(shapes, i, Py_NewRef(shape_of(operands[i])));
    if (shapes) PyTuple_SET_ITEM(shapes, n, PyBool_FromLong(gives));
    return shapes;
}

static int record_one(PyObject *op, PyObject *x, PyObject *t, PyObject *attrs) {
    PyObject *plan = plan_of(op, at.plan_one, 1);
    if (!plan) return succeeded(PyObject_CallFunctionObjArgs(record_one_py, op, x, SLOT(t, at.data), t, attrs, NULL));
    PyObject *node = new_node(op, t), *edge = node ? edge_of(x, SLOT(node, at.seq)) : NULL;
    if (!edge) {
        Py_XDECREF(node);
        Py_DECREF(plan);
        return -1;
    }
    int keep = PyTuple_GET_ITEM(PyTuple_GET_ITEM(plan, 0), 0) == Py_True;
    SLOT(node, at.edges) = one(edge);
    SLOT(node, at.saved) = one(Py_NewRef(keep ? x : Py_None));
    SLOT(node, at.versions) = keep && is_shared(x) ? one(version_of(x)) : Py_NewRef(Py_None);
    put(node, at.attrs, attrs);
    PyObject *sizes_too = PyTuple_GET_ITEM(plan, 2); /* None: the memory format too */
    if (sizes_too == Py_None) SLOT(node, at.shapes) = shapes_and_format(op, &x, 1, attrs);
    else SLOT(node, at.shapes) = sizes_too == Py_True ? one(Py_NewRef(SLOT(x, at.shape))) : Py_NewRef(Py_None);
    if (!SLOT(node, at.shapes)) {
        Py_DECREF(node);
        Py_DECREF(plan);
        return -1;
    }
    return give_node(node, plan, t);
}

static int record_two(PyObject *op, PyObject *x, PyObject *y, PyObject *t, int one_shape) {
    int first = wants_grad(x), second = wants_grad(y);
    PyObject *plan = plan_of(op, first ? (second ? at.plan_both : at.plan_first) : at.plan_second, 2);
    if (!plan) return succeeded(PyObject_CallFunctionObjArgs(record_two_py, op, x, y, SLOT(t, at.data), t, NULL));
    PyObject *keep = PyTuple_GET_ITEM(plan, 0);
    int keep_x = PyTuple_GET_ITEM(keep, 0) == Py_True, keep_y = PyTuple_GET_ITEM(keep, 1) == Py_True;
    if ((keep_x && inferred(x)) || (keep_y && inferred(y))) {
        Py_DECREF(plan);
        return succeeded(PyObject_CallFunctionObjArgs(record_two_py, op, x, y, SLOT(t, at.data), t, NULL));
    }
    PyObject *node = new_node(op, t);
    PyObject *to_x = node ? edge_of(x, SLOT(node, at.seq)) : NULL, *to_y = to_x ? edge_of(y, SLOT(node, at.seq)) : NULL;
    if (!to_y) {
        Py_XDECREF(to_x);
        Py_XDECREF(node);
        Py_DECREF(plan);
        return -1;
    }
    SLOT(node, at.edges) = two(to_x, to_y);
    SLOT(node, at.saved) =
        keep_x || keep_y ? two(Py_NewRef(keep_x ? x : Py_None), Py_NewRef(keep_y ? y : Py_None)) : Py_NewRef(nothing);
    if ((keep_x && is_shared(x)) || (keep_y && is_shared(y))) {
        PyObject *of_x = keep_x ? version_of(x) : Py_NewRef(zero);
        SLOT(node, at.versions) = two(of_x, !of_x ? NULL : keep_y ? version_of(y) : Py_NewRef(zero));
    } else
        put(node, at.versions, Py_None);
    SLOT(node, at.shapes) = !one_shape || PyTuple_GET_ITEM(plan, 2) == Py_True
                                ? two(Py_NewRef(shape_of(x)), Py_NewRef(shape_of(y)))
                                : Py_NewRef(Py_None);
    put(node, at.attrs, Py_None);
    return give_node(node, plan, t);
}

/* The shape and dtype of each of several results. */
static PyObject *meta_of(PyObject *results) {
    PyObject *list = PyList_New(PyTuple_GET_SIZE(results)), *made = NULL;
    for (Py_ssize_t i = 0; list && i < PyTuple_GET_SIZE(results); i++) {
        PyObject *t = PyTuple_GET_ITEM(results, i), *pair = two(Py_NewRef(SLOT(t, at.shape)), Py_NewRef(SLOT(t, at.dtype)));
        if (pair) PyList_SET_ITEM(list, i, pair);
        else Py_CLEAR(list);
    }
    if (list) made = PyObject_CallOneArg(Meta, list);
    Py_XDECREF(list);
    return made;
}

/* What formulas ask for of several outputs; the node watches those that have no node of their own. */
static PyObject *kept_of(PyObject *op, PyObject *node, PyObject *out, PyObject *results) {
    PyObject *kept = PyObject_GetAttr(op, word.kept), *numbers = kept ? PyObject_GetAttr(op, word.kept_indices) : NULL;
    PyObject *made = numbers && PyTuple_Check(numbers) && PyAnySet_Check(kept) ? PyTuple_New(PyTuple_GET_SIZE(out)) : NULL;
    for (Py_ssize_t i = 0; made && i < PyTuple_GET_SIZE(out); i++) {
        PyObject *number = PyLong_FromSsize_t(i);
        int held = number ? PySet_Contains(kept, number) : -1;
        Py_XDECREF(number);
        if (held < 0) Py_CLEAR(made);
        else PyTuple_SET_ITEM(made, i, Py_NewRef(held ? PyTuple_GET_ITEM(out, i) : Py_None));
    }
    if (made && PyTuple_GET_SIZE(numbers)) {
        PyObject *extra = PyObject_CallMethodNoArgs(node, word.more), *storages = extra ? PyObject_GetAttr(extra, word.storages) : NULL;
        for (Py_ssize_t i = 0; made && i < PyTuple_GET_SIZE(numbers); i++) {
            Py_ssize_t number = storages ? PyLong_AsSsize_t(PyTuple_GET_ITEM(numbers, i)) : -1;
            int there = number >= 0 && number < PyTuple_GET_SIZE(results);
            PyObject *pair = there ? two(Py_NewRef(PyTuple_GET_ITEM(results, number)), Py_NewRef(zero)) : NULL;
            if (!pair || PyObject_SetItem(storages, PyTuple_GET_ITEM(numbers, i), pair) < 0) Py_CLEAR(made);
            Py_XDECREF(pair);
        }
        Py_XDECREF(storages);
        Py_XDECREF(extra);
    }
    Py_XDECREF(numbers);
    Py_XDECREF(kept);
    if (!made && !PyErr_Occurred()) PyErr_SetString(PyExc_IndexError, "a kernel gave fewer results than its op has");
    return made;
}

/* What `give_slots` of graph.py does: gives results of a node their places, and returns a list of weak references to those. */
COLD static PyObject *places_of(PyObject *node, PyObject *results, Py_ssize_t n) {
    PyObject *made = PyList_New(n);
    for (Py_ssize_t i = 0; made && i < n; i++) {
        PyObject *t = PyTuple_GET_ITEM(results, i), *slot = class[PLACE]->tp_alloc(class[PLACE], 0), *found = NULL;
        if (slot && still_whole(t) == 0) {
            put(slot, at.n_device, SLOT(t, at.device));
            put(slot, at.n_shape, SLOT(t, at.shape));
            put(slot, at.n_dtype, SLOT(t, at.dtype));
            put(slot, at.extra, Py_None);
            put(slot, at.parent, node);
            SLOT(slot, at.seq) = PyObject_CallNoArgs(next_seq);
            SLOT(slot, at.edges) = one(Py_NewRef(node));
            SLOT(slot, at.number) = PyLong_FromSsize_t(i);
            if (SLOT(slot, at.seq) && SLOT(slot, at.edges) && SLOT(slot, at.number)) found = PyWeakref_NewRef(slot, NULL);
        }
        if (found) {
            PyList_SET_ITEM(made, i, found);
            replace(t, at.rg, Py_NewRef(Py_True));
            replace(t, at.node, Py_NewRef(slot));
        } else
            Py_CLEAR(made);
        Py_XDECREF(slot);
    }
    return made;
}
COLD static PyObject *give_slots(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n) {
    if (n == 2 && PyTuple_Check(args[1])) return places_of(args[0], args[1], PyTuple_GET_SIZE(args[1]));
    return PyErr_Format(PyExc_TypeError, "give_slots: expected a node and a tuple of its results");
}

/* The plan for operands of a list: it may be for more, which were left out, and for none of an op that takes any number. */
static PyObject *plan_for(PyObject *op, PyObject *operands) {
    Py_ssize_t n = PyList_GET_SIZE(operands);
    PyObject *plans = PyObject_GetAttr(op, word.plans), *variadic = plans ? PyObject_GetAttr(op, word.variadic) : NULL, *plan = NULL;
    PyObject *needs = variadic ? PyTuple_New(variadic == Py_True ? 0 : n) : NULL;
    for (Py_ssize_t i = 0; needs && i < PyTuple_GET_SIZE(needs); i++)
        PyTuple_SET_ITEM(needs, i, Py_NewRef(wants_grad(PyList_GET_ITEM(operands, i)) ? Py_True : Py_False));
    if (needs) plan = PyObject_GetItem(plans, needs);
    Py_XDECREF(needs);
    Py_XDECREF(variadic);
    Py_XDECREF(plans);
    if (!plan) return NULL;
    PyObject *keep = PyTuple_Check(plan) && PyTuple_GET_SIZE(plan) == 3 ? PyTuple_GET_ITEM(plan, 0) : NULL;
    PyObject *made = SLOT(op, at.node_class);
    if (!keep || !PyTuple_Check(keep) || !made || !PyType_Check(made)) Py_CLEAR(plan);
    return plan;
}

/* What `record` of node.py does for one result or several, of operands in a list. */
static int record_any(PyObject *op, PyObject *operands, PyObject *attrs, PyObject *out, PyObject *t) {
    PyObject *plan = NULL, *shape = NULL, *node, *first = PyTuple_CheckExact(t) && PyTuple_GET_SIZE(t) ? PyTuple_GET_ITEM(t, 0) : t;
    Py_ssize_t places = 0; /* of several results: how many have gradients, if not the first alone */
    int usual = PyList_CheckExact(operands) && (t == first || (PyTuple_CheckExact(out) && PyTuple_GET_SIZE(out) == PyTuple_GET_SIZE(t)));
    for (Py_ssize_t i = 0; usual && i < PyList_GET_SIZE(operands); i++)
        usual = Py_TYPE(PyList_GET_ITEM(operands, i)) == class[CONST] || is_tensor(PyList_GET_ITEM(operands, i));
    if (t == first) usual = usual && is_tensor(t);
    else {
        PyObject *count = usual ? PyObject_GetAttr(op, word.differentiable) : NULL;
        places = usual && count ? PyLong_AsSsize_t(count) : 0;
        usual = places > 0 && places <= PyTuple_GET_SIZE(t);
        Py_XDECREF(count);
        for (Py_ssize_t i = 0; usual && i < PyTuple_GET_SIZE(t); i++) usual = is_tensor(PyTuple_GET_ITEM(t, i));
    }
    if (usual && SLOT(op, at.no_grad_reason) != Py_None) return 0;
    if (usual && t == first) { /* whole numbers and bools have no gradient */
        PyObject *kind = SLOT(SLOT(t, at.dtype), at.kind);
        usual = kind && PyUnicode_Check(kind) && PyUnicode_GET_LENGTH(kind) == 1;
        if (usual && PyUnicode_READ_CHAR(kind, 0) != 'f' && PyUnicode_READ_CHAR(kind, 0) != 'c') return 0;
    }
    if (usual && !PyErr_Occurred()) plan = plan_for(op, operands);
    if (PyErr_Occurred()) return -1;
    Py_ssize_t n = plan ? PyList_GET_SIZE(operands) : 0;
    Py_ssize_t most = plan ? PyTuple_GET_SIZE(PyTuple_GET_ITEM(plan, 0)) : 0;
    if (most > n) most = n; /* operands that may be kept */
    for (Py_ssize_t i = 0; plan && i < most; i++)
        if (PyTuple_GET_ITEM(PyTuple_GET_ITEM(plan, 0), i) == Py_True && inferred(PyList_GET_ITEM(operands, i))) Py_CLEAR(plan);
    if (!plan) return succeeded(PyObject_CallFunctionObjArgs(record, op, operands, attrs, out, t, NULL));
    PyObject *keep = PyTuple_GET_ITEM(plan, 0), *edges = NULL, *saved = NULL, *versions = NULL, *shapes = NULL, *meta = NULL, *held = NULL;
    if (!(node = new_node(op, first)) || !(edges = PyTuple_New(n)) || !(saved = PyTuple_New(most))) goto failed;
    int shared = 0, sizes_too = PyTuple_GET_ITEM(plan, 2) == Py_True;
    if (!sizes_too) {
        if (!(shape = PyObject_GetAttr(op, word.shape))) goto failed;
        sizes_too = shape == broadcast;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *a = PyList_GET_ITEM(operands, i), *edge = edge_of(a, SLOT(node, at.seq));
        if (!edge) goto failed;
        int kept = i < most && PyTuple_GET_ITEM(keep, i) == Py_True;
        shared |= kept && is_shared(a);
        PyTuple_SET_ITEM(edges, i, edge);
        if (i < most) PyTuple_SET_ITEM(saved, i, Py_NewRef(kept ? a : Py_None));
    }
    if (shared && !(versions = PyTuple_New(most))) goto failed;
    for (Py_ssize_t i = 0; shared && i < most; i++) {
        PyObject *found = PyTuple_GET_ITEM(keep, i) == Py_True ? version_of(PyList_GET_ITEM(operands, i)) : Py_NewRef(zero);
        if (!found) goto failed;
        PyTuple_SET_ITEM(versions, i, found);
    }
    if (PyTuple_GET_ITEM(plan, 2) == Py_None) { /* the memory format too */
        if (!(shapes = shapes_and_format(op, PySequence_Fast_ITEMS(operands), n, attrs))) goto failed;
        sizes_too = 0;
    }
    if (sizes_too && !(shapes = PyTuple_New(n))) goto failed;
    for (Py_ssize_t i = 0; sizes_too && i < n; i++) PyTuple_SET_ITEM(shapes, i, Py_NewRef(shape_of(PyList_GET_ITEM(operands, i))));
    if (t != first) {
        if (!(meta = meta_of(t))) goto failed;
        replace(node, at.meta, meta);
    }
    held = PyTuple_GET_ITEM(plan, 1) != Py_True ? Py_NewRef(Py_None) : t == first ? one(Py_NewRef(out)) : kept_of(op, node, out, t);
    if (!held) goto failed;
    SLOT(node, at.edges) = edges;
    SLOT(node, at.saved) = saved;
    SLOT(node, at.versions) = versions ? versions : Py_NewRef(Py_None);
    SLOT(node, at.shapes) = shapes ? shapes : Py_NewRef(Py_None);
    SLOT(node, at.out) = held;
    put(node, at.attrs, attrs);
    Py_DECREF(plan);
    Py_XDECREF(shape);
    if (places > 1) {
        PyObject *slots = places_of(node, t, places);
        int status = slots ? PyObject_SetAttr(SLOT(node, at.meta), word.slots, slots) : -1;
        Py_XDECREF(slots);
        Py_DECREF(node);
        return status;
    }
    replace(first, at.rg, Py_NewRef(Py_True));
    replace(first, at.node, node);
    return 0;
failed:
    Py_XDECREF(node);
    Py_XDECREF(edges);
    Py_XDECREF(saved);
    Py_XDECREF(versions);
    Py_XDECREF(shapes);
    Py_XDECREF(shape);
    Py_DECREF(plan);
    return -1;
}

/* ---- storages: what `own_storage` of tensor.py does ---- */

COLD static PyObject *storage_of(PyObject *x) { /* a new one, over all that x sees; NULL for an error */
    PyObject *backend = Py_NewRef(SLOT(SLOT(x, at.device), at.backend)), *data = Py_NewRef(SLOT(x, at.data)), *found = NULL;
    PyObject *s = class[STORAGE]->tp_alloc(class[STORAGE], 0), *a = s ? class[ALIASES]->tp_alloc(class[ALIASES], 0) : NULL;
    if (a) {
        put(a, at.last, nobody);
        put(a, at.pinned, Py_False);
        put(a, at.root, Py_None);
        put(a, at.laid, Py_None);
        put(s, at.version, zero);
        put(s, at.pruned, few);
        SLOT(s, at.aliases) = a;
        found = PyWeakref_NewRef(x, NULL);
    }
    if (found && PyList_Append(a, found) < 0) Py_CLEAR(found);
    Py_XDECREF(found);
    if (found && (found = PyObject_GetAttr(backend, word.reshape_view))) {
        Py_DECREF(found);
        SLOT(s, at.reshapes) = found == Py_None ? Py_NewRef(Py_False) : PyObject_CallMethodOneArg(backend, word.is_contiguous, data);
        if (!SLOT(s, at.reshapes)) found = NULL;
    }
    if (found && (found = PyObject_GetAttr(backend, word.rooted))) {
        int rooted = PyObject_IsTrue(found);
        Py_DECREF(found);
        if (rooted > 0) replace(a, at.root, Py_NewRef(data));
        if (rooted < 0) found = NULL;
    }
    Py_DECREF(backend);
    Py_DECREF(data);
    if (!found) Py_CLEAR(s);
    return s;
}

static PyObject *own_storage(PyObject *x, PyObject *Py_UNUSED(none)) {
    if (!is_tensor(x)) return PyObject_CallOneArg(own_storage_py, x);
    if (SLOT(x, at.storage) != Py_None) return Py_NewRef(SLOT(x, at.storage));
    if ((SLOT(x, at.note) && SLOT(x, at.note) != no_note) || !SLOT(SLOT(x, at.device), at.backend)) /* made under inference_mode */
        return PyObject_CallOneArg(own_storage_py, x);
    PyObject *s = storage_of(x), *node;
    if (!s || still_whole(x) < 0) {
        Py_XDECREF(s);
        return NULL;
    }
    if (SLOT(x, at.storage) != Py_None) { /* something else gave it one meanwhile */
        Py_DECREF(s);
        return Py_NewRef(SLOT(x, at.storage));
    }
    replace(x, at.steps, Py_NewRef(Py_None));
    replace(x, at.viewed, Py_NewRef(Py_None));
    replace(x, at.note, Py_NewRef(no_note));
    replace(x, at.storage, Py_NewRef(s));
    if ((node = SLOT(x, at.node)) && node != Py_None) {
        Py_INCREF(node);
        if (succeeded(PyObject_CallMethodObjArgs(node, word.note_storage, zero, s, NULL)) < 0) Py_CLEAR(s);
        Py_DECREF(node);
    }
    return s;
}
static PyMethodDef own_storage_method = {"own_storage", own_storage, METH_NOARGS, NULL};

/* ---- sharing: what `Storage.add` and `TensorBase._share` of tensor.py do ---- */

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

/* Notes that t shows the memory of the storage. */
static int share(PyObject *storage, PyObject *t) {
    PyObject *aliases = SLOT(storage, at.aliases), *last = of(aliases, ALIASES) ? SLOT(aliases, at.last) : NULL;
    PyObject *most = SLOT(storage, at.pruned);
    int alone = last && (!PyWeakref_CheckRef(last) || is_dead(last));
    if (!alone && (!last || !most || !PyLong_CheckExact(most) || PyList_GET_SIZE(aliases) > PyLong_AsSsize_t(most)))
        return succeeded(PyObject_CallMethodOneArg(storage, word.add, t)); /* which tidies up */
    Py_INCREF(aliases);
    PyObject *ref = PyWeakref_NewRef(t, NULL);
    int status = !ref ? -1 : alone ? 0 : PyList_Append(aliases, ref);
    if (ref && alone) replace(aliases, at.last, ref);
    else Py_XDECREF(ref);
    Py_DECREF(aliases);
    return status;
}

/* Whether x alone has the memory of its storage, as far as that is seen at once: what `land` of mutation.py asks. */
static int is_alone(PyObject *x, PyObject *storage) {
    PyObject *aliases = of(storage, STORAGE) ? SLOT(storage, at.aliases) : NULL, *note = SLOT(x, at.note);
    if (!of(aliases, ALIASES) || !note || !PyUnicode_Check(note) || PyUnicode_GET_LENGTH(note) || SLOT(x, at.viewed) != Py_None ||
        SLOT(x, at.steps) != Py_None || !SLOT(aliases, at.last))
        return 0;
    if (PyWeakref_CheckRef(SLOT(aliases, at.last)) && !is_dead(SLOT(aliases, at.last))) return 0;
    int living = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(aliases); i++) {
        PyObject *ref = PyList_GET_ITEM(aliases, i);
        if (!PyWeakref_CheckRef(ref)) return 0;
        living += !is_dead(ref);
    }
    return living == 1;
}

/* _share(x, storage=None): a new leaf over the same memory, in that storage. */
COLD static PyObject *share_memory(PyObject *x, PyObject *const *args, Py_ssize_t n) {
    PyObject *own = is_tensor(x) && n < 2 ? own_storage(x, NULL) : NULL, *note = own ? SLOT(x, at.note) : NULL, *t = NULL;
    PyObject *storage = n && args[0] != Py_None ? args[0] : own;
    if (!own && PyErr_Occurred()) return NULL;
    if (own && of(storage, STORAGE) && note && SLOT(x, at.steps) && is_tensor(x)) {
        int kept = says_inference(note);
        PyObject *steps = Py_NewRef(SLOT(x, at.steps));
        Py_INCREF(note);
        t = fresh(Py_NewRef(SLOT(x, at.data)), SLOT(x, at.device), SLOT(x, at.dtype), SLOT(x, at.shape));
        if (t) {
            replace(t, at.storage, Py_NewRef(storage));
            put(t, at.steps, steps);
            put(t, at.viewed, Py_None);
            put(t, at.note, kept ? note : no_note);
            if (share(storage, t) < 0) Py_CLEAR(t);
        }
        Py_DECREF(steps);
        Py_DECREF(note);
    } else
        t = PyObject_CallFunctionObjArgs(share_py, x, n ? args[0] : Py_None, NULL);
    Py_XDECREF(own);
    return t;
}
static PyMethodDef share_method = {"_share", (PyCFunction)(void (*)(void))share_memory, METH_FASTCALL, NULL};

/* ---- views: what `as_view` of call.py does ---- */

static PyObject *view(PyObject *op, PyObject *x, PyObject *data, PyObject *size, PyObject *attrs, int quiet) { /* takes data */
    if (still_whole(x) < 0) {
        Py_DECREF(data);
        return NULL;
    }
    PyObject *storage = Py_NewRef(SLOT(x, at.storage)), *t = NULL;
    if (storage == Py_None) Py_SETREF(storage, PyObject_CallMethodNoArgs(x, word.own_storage));
    if (!storage) {
        Py_DECREF(data);
        return NULL;
    }
    PyObject *steps = SLOT(x, at.steps), *viewed = SLOT(x, at.viewed), *note = SLOT(x, at.note);
    if (!of(storage, STORAGE) || !steps || !viewed || !note) {
        Py_DECREF(storage);
        t = PyObject_CallFunctionObjArgs(as_view_py, op, x, data, size, attrs, NULL);
        Py_DECREF(data);
        return t;
    }
    int empty = attrs == Py_None || (PyDict_Check(attrs) && !PyDict_GET_SIZE(attrs));
    PyObject *device = Py_NewRef(SLOT(x, at.device)), *dtype = Py_NewRef(SLOT(x, at.dtype));
    viewed = Py_NewRef(viewed == Py_None ? x : viewed);
    Py_INCREF(steps);
    Py_INCREF(note);
    t = fresh(data, device, dtype, size);
    if (t) {
        replace(t, at.storage, Py_NewRef(storage));
        SLOT(t, at.steps) = PyTuple_Pack(3, steps, op, empty ? size : attrs);
        put(t, at.viewed, viewed);
        put(t, at.note, quiet && PyUnicode_Check(note) && !PyUnicode_GET_LENGTH(note) ? no_grad : note);
        if (!SLOT(t, at.steps) || share(storage, t) < 0 || (!quiet && wants_grad(x) && record_one(op, x, t, attrs) < 0)) Py_CLEAR(t);
    }
    Py_DECREF(device);
    Py_DECREF(dtype);
    Py_DECREF(viewed);
    Py_DECREF(steps);
    Py_DECREF(note);
    Py_DECREF(storage);
    return t;
}

/* What the modes are: USUAL, QUIET where they are but for recording, which is off, or else OTHER. */
enum { OTHER, USUAL, QUIET };

static int mode(void) {
    if (PyList_GET_SIZE(special) && PyList_GET_ITEM(special, 0) == zero) return USUAL;
    PyObject *quiet = PyObject_GetAttr(modes, word.quiet); /* of this thread */
    if (quiet) Py_DECREF(quiet);
    else PyErr_Clear();
    return quiet == Py_True ? QUIET : OTHER;
}

static PyObject *as_view(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n) {
    int now = mode();
    if (n < 5 || n > 6 || !now || !is_op(args[0]) || !is_tensor(args[1])) return PyObject_Vectorcall(as_view_py, args, n, NULL);
    return view(args[0], args[1], Py_NewRef(args[2]), args[3], args[4], now == QUIET || n == 6);
}

static PyObject *record_call(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n) {
    if (n != 5 || !mode() || !is_op(args[0])) return PyObject_Vectorcall(record, args, n, NULL);
    return record_any(args[0], args[1], args[2], args[3], args[4]) < 0 ? NULL : Py_NewRef(Py_None);
}
