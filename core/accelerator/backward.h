/* What a backward does at each node and leaf: `OpNode.pull` and `owns` of node.py, `_accumulate` of tensor.py, `write` of
   mutation.py, and the attributes of tensors that programs ask most. */

static PyObject *pull_py, *owns_py, *accumulate_py, *unbroadcast, *raw, *adding; /* raw: the algebra of buffers; adding: a lock */

/* Whether hooks keep the saved values of a node. -1 for an error. */
static int is_packed(PyObject *node) {
    PyObject *extra = SLOT(node, at.extra);
    if (extra == Py_None) return 0;
    PyObject *packed = extra ? PyObject_GetAttr(extra, word.packed) : NULL;
    int found = packed ? PyObject_IsTrue(packed) : PyErr_Occurred() ? -1 : 1;
    Py_XDECREF(packed);
    return found;
}

/* Whether what a node has saved is as it was when it was recorded, as far as that is seen at once. -1 for an error. */
static int is_unchanged(PyObject *node, PyObject *saved) {
    PyObject *versions = SLOT(node, at.versions);
    if (SLOT(node, at.extra) != Py_None || !versions || (versions != Py_None && !PyTuple_CheckExact(versions))) return 0;
    int found = 1;
    for (Py_ssize_t i = 0; found > 0 && i < PyTuple_GET_SIZE(saved); i++) {
        PyObject *s = PyTuple_GET_ITEM(saved, i);
        if (s == Py_None || Py_TYPE(s) == class[CONST]) continue;
        if (!is_tensor(s)) return 0;
        if (!is_shared(s)) continue;
        PyObject *expected = versions == Py_None ? zero : i < PyTuple_GET_SIZE(versions) ? PyTuple_GET_ITEM(versions, i) : NULL;
        PyObject *now = expected ? version_of(s) : NULL;
        found = !expected ? 0 : !now ? -1 : now == expected ? 1 : PyObject_RichCompareBool(now, expected, Py_EQ);
        Py_XDECREF(now);
    }
    return found;
}

/* What a formula gives: pair is (what fetches its arguments, the formula). */
static PyObject *formula(PyObject *pair, PyObject *k, PyObject *g, PyObject *node) {
    PyObject *room[5] = {NULL, PyTuple_GET_ITEM(pair, 1), k, g, node};
    return PyObject_Vectorcall(PyTuple_GET_ITEM(pair, 0), room + 1, 4 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
}

static inline int is_pair(PyObject *o) { return PyTuple_CheckExact(o) && PyTuple_GET_SIZE(o) == 2; }

/* The gradients of the inputs, by what `pulls` of formula.py says of the op: (formulas, joint, fixed, broadcasts). */
COLD static PyObject *pull_usual(PyObject *node, PyObject *pulls, PyObject *edges, PyObject *k, PyObject *g) {
    PyObject *each = PyTuple_GET_ITEM(pulls, 0), *joint = PyTuple_GET_ITEM(pulls, 1), *fixed = PyTuple_GET_ITEM(pulls, 2), *parts = NULL;
    PyObject *shapes = PyTuple_GET_ITEM(pulls, 3) == Py_True && joint == Py_None ? SLOT(node, at.shapes) : Py_None, *shape = SLOT(node, at.n_shape);
    Py_ssize_t n = PyTuple_GET_SIZE(edges);
    if (joint != Py_None) {
        PyObject *found = formula(joint, k, g, node);
        if (!found) return NULL;
        parts = PySequence_Fast(found, "a formula gave no sequence");
        Py_DECREF(found);
        if (!parts) return NULL;
        if (n > PySequence_Fast_GET_SIZE(parts)) n = PySequence_Fast_GET_SIZE(parts);
    }
    PyObject *made = PyList_New(n);
    Py_INCREF(shape);
    Py_INCREF(shapes);
    int own = 0;
    for (Py_ssize_t i = 0; made && i < n; i++) {
        PyObject *p = Py_None;
        if (PyTuple_GET_ITEM(edges, i) == Py_None) Py_INCREF(p);
        else if (parts) p = Py_NewRef(PySequence_Fast_GET_ITEM(parts, i));
        else if (is_pair(PyTuple_GET_ITEM(each, i))) p = formula(PyTuple_GET_ITEM(each, i), k, g, node);
        else p = PyErr_Format(PyExc_TypeError, "an input has no formula");
        if (p && p != Py_None && PyTuple_CheckExact(shapes) && PyTuple_GET_ITEM(shapes, i) != shape) {
            int same = PyObject_RichCompareBool(PyTuple_GET_ITEM(shapes, i), shape, Py_EQ);
            if (same < 1) Py_SETREF(p, same ? NULL : PyObject_CallFunctionObjArgs(unbroadcast, k, p, PyTuple_GET_ITEM(shapes, i), NULL));
        }
        for (Py_ssize_t j = 0; p && p != Py_None && j < PyTuple_GET_SIZE(fixed); j++) own |= PyLong_AsSsize_t(PyTuple_GET_ITEM(fixed, j)) == i;
        if (p) PyList_SET_ITEM(made, i, p);
        else Py_CLEAR(made);
    }
    Py_DECREF(shapes);
    Py_DECREF(shape);
    Py_XDECREF(parts);
    if (made && own) Py_SETREF(made, PyObject_CallMethodObjArgs(node, word.in_own_dtypes, k, made, NULL));
    return made;
}

COLD static PyObject *pull(PyObject *node, PyObject *const *args, Py_ssize_t n) {
    PyObject *op = SLOT(node, at.op), *pulls = is_op(op) ? SLOT(op, at.pulls) : NULL, *saved = SLOT(node, at.saved), *edges = SLOT(node, at.edges);
    PyObject *device = SLOT(node, at.n_device), *dtype = SLOT(node, at.n_dtype), *shapes = SLOT(node, at.shapes), *kind;
    int usual = n == 2 && args[1] == Py_False && pulls && PyTuple_CheckExact(pulls) && PyTuple_GET_SIZE(pulls) == 4 && edges && PyTuple_CheckExact(edges) &&
                of(device, DEVICE) && SLOT(device, at.backend) && of(dtype, DTYPE) && SLOT(node, at.n_shape) && SLOT(node, at.meta) && shapes &&
                (kind = SLOT(dtype, at.kind)) && PyUnicode_CompareWithASCIIString(kind, "c");
    if (usual && PyTuple_GET_ITEM(pulls, 1) == Py_None)
        usual = PyTuple_GET_SIZE(PyTuple_GET_ITEM(pulls, 0)) >= PyTuple_GET_SIZE(edges) &&
                (!PyTuple_CheckExact(shapes) || PyTuple_GET_SIZE(shapes) >= PyTuple_GET_SIZE(edges));
    if (usual && SLOT(node, at.meta) != Py_None) {
        PyObject *count = PyObject_GetAttr(op, word.differentiable);
        if (!count) return NULL;
        usual = count == next;
        Py_DECREF(count);
    }
    if (usual && (usual = 1 - is_packed(node)) == 1) {
        int unchanged = saved && PyTuple_CheckExact(saved) ? is_unchanged(node, saved) : 0;
        if (unchanged < 0 || (!unchanged && succeeded(PyObject_CallMethodNoArgs(node, word.check)) < 0)) return NULL;
    }
    if (usual > 1) return NULL;
    if (!usual) return PyObject_CallFunctionObjArgs(pull_py, node, args[0], n > 1 ? args[1] : NULL, NULL);
    PyObject *k = Py_NewRef(SLOT(device, at.backend)), *made;
    Py_INCREF(pulls);
    Py_INCREF(edges);
    made = pull_usual(node, pulls, edges, k, args[0]);
    Py_DECREF(pulls);
    Py_DECREF(edges);
    Py_DECREF(k);
    return made;
}

COLD static PyObject *owns(PyObject *node, PyObject *const *args, Py_ssize_t n) {
    PyObject *saved = SLOT(node, at.saved), *out = SLOT(node, at.out), *device = SLOT(node, at.n_device);
    int packed = n == 2 && PyList_CheckExact(args[1]) && saved && PyTuple_CheckExact(saved) && out && (out == Py_None || PyTuple_CheckExact(out)) &&
                         of(device, DEVICE) && SLOT(device, at.backend) ? is_packed(node) : 1, found = 1, times = 0;
    if (packed < 0) return NULL;
    for (Py_ssize_t i = 0; !packed && i < PyTuple_GET_SIZE(saved); i++) {
        PyObject *s = PyTuple_GET_ITEM(saved, i);
        if (s == Py_None) continue;
        if (Py_TYPE(s) != class[CONST] && !is_tensor(s)) packed = 1;
        else found &= SLOT(s, Py_TYPE(s) == class[CONST] ? at.value : at.data) != args[0];
    }
    if (packed) return PyObject_CallFunctionObjArgs(owns_py, node, args[0], n > 1 ? args[1] : NULL, NULL);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(args[1]); i++) times += PyList_GET_ITEM(args[1], i) == args[0];
    for (Py_ssize_t i = 0; out != Py_None && i < PyTuple_GET_SIZE(out); i++) found &= PyTuple_GET_ITEM(out, i) != args[0];
    return found && times < 2 ? PyObject_CallMethodOneArg(SLOT(device, at.backend), word.owns, args[0]) : Py_NewRef(Py_False);
}

/* A truth that a backend tells of a buffer, or of itself without one. -1 for an error. */
static int tells(PyObject *backend, PyObject *name, PyObject *data) {
    PyObject *answer = data ? PyObject_CallMethodOneArg(backend, name, data) : PyObject_GetAttr(backend, name);
    int found = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return found;
}

/* Lets x take over a buffer of its own shape and order that nobody else holds, where x alone has its memory: 1, or 0; -1 for an error. */
COLD static int take_over(PyObject *x, PyObject *data) {
    PyObject *device = SLOT(x, at.device), *mine = Py_NewRef(SLOT(x, at.data)), *backend = Py_XNewRef(SLOT(device, at.backend));
    PyObject *storage = backend ? own_storage(x, NULL) : NULL, *here = NULL, *there = NULL, *version = NULL;
    int done = !storage ? -1 : of(storage, STORAGE) && is_alone(x, storage) && SLOT(SLOT(storage, at.aliases), at.pinned) == Py_False;
    if (done > 0) done = 1 - tells(backend, word.rooted, NULL);
    if (done == 1) {
        here = PyObject_CallMethodOneArg(backend, word.strides_of, mine);
        there = here ? PyObject_CallMethodOneArg(backend, word.strides_of, data) : NULL;
        done = there ? PyObject_RichCompareBool(here, there, Py_EQ) : -1;
    } else if (done > 1)
        done = -1;
    if (done > 0) {
        version = SLOT(storage, at.version) ? PyNumber_Add(SLOT(storage, at.version), next) : NULL;
        if (version) {
            replace(storage, at.version, version);
            replace(storage, at.reshapes, Py_NewRef(Py_False));
            replace(x, at.data, Py_NewRef(data));
        } else
            done = PyErr_Occurred() ? -1 : 0;
    }
    Py_XDECREF(here);
    Py_XDECREF(there);
    Py_XDECREF(storage);
    Py_XDECREF(backend);
    Py_DECREF(mine);
    return done;
}

/* Adds a gradient to that of a leaf; the lock is held. 0 where it is not usual, -1 for an error. */
COLD static int add_grad(PyObject *x, PyObject *g, int mine) {
    PyObject *state = SLOT(x, at.leaf), *device = SLOT(x, at.device), *total = SLOT(state, at.grad), *backend = SLOT(device, at.backend), *made = NULL;
    if (!total || (total != Py_None && (!is_tensor(total) || SLOT(total, at.device) != device || SLOT(total, at.shape) != SLOT(x, at.shape)))) return 0;
    Py_INCREF(state);
    Py_INCREF(total);
    Py_INCREF(backend);
    int done = 1;
    replace(state, at.first_use, Py_NewRef(zero));
    if (total != Py_None) {
        PyObject *sum = PyObject_CallMethodObjArgs(backend, word.add, SLOT(total, at.data), g, NULL);
        done = sum && still_whole(total) == 0 ? take_over(total, sum) : -1;
        if (!done) done = succeeded(PyObject_CallFunctionObjArgs(write_py, total, sum, Py_True, NULL)) < 0 ? -1 : 1;
        Py_XDECREF(sum);
    } else {
        g = mine ? Py_NewRef(g) : PyObject_CallMethodOneArg(backend, word.copy, g);
        int plain = !g || still_whole(x) < 0 ? -1 : tells(backend, word.is_contiguous, g);
        if (plain > 0) plain = tells(backend, word.is_contiguous, SLOT(x, at.data));
        if (!plain) Py_SETREF(g, PyObject_CallMethodObjArgs(x, word.laid_out, g, raw, NULL));
        if (plain >= 0 && g && still_whole(x) == 0) made = fresh(Py_NewRef(g), SLOT(x, at.device), SLOT(x, at.dtype), SLOT(x, at.shape));
        Py_XDECREF(g);
        if (made) replace(state, at.grad, made);
        else done = -1;
    }
    Py_DECREF(state);
    Py_DECREF(total);
    Py_DECREF(backend);
    return done;
}

COLD static PyObject *accumulate(PyObject *x, PyObject *const *args, Py_ssize_t n) {
    int done = 0;
    if (n == 3 && args[2] == raw && is_tensor(x) && of(SLOT(x, at.leaf), LEAF) && SLOT(SLOT(x, at.device), at.backend)) {
        if (succeeded(PyObject_CallMethodNoArgs(adding, word.acquire)) < 0) return NULL;
        if (is_tensor(x) && of(SLOT(x, at.leaf), LEAF)) done = add_grad(x, args[0], args[1] == Py_True);
        PyObject *type, *error, *trace;
        PyErr_Fetch(&type, &error, &trace);
        if (succeeded(PyObject_CallMethodNoArgs(adding, word.release)) < 0) PyErr_Clear();
        PyErr_Restore(type, error, trace);
    }
    if (done) return done < 0 ? NULL : Py_NewRef(Py_None);
    PyObject *values[4] = {x, args[0], n > 1 ? args[1] : NULL, n > 2 ? args[2] : NULL};
    return PyObject_Vectorcall(accumulate_py, values, n + 1, NULL);
}

COLD static PyObject *write_fresh(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n) { /* write(t, data, fresh) */
    int done = n == 3 && args[2] == Py_True && is_tensor(args[0]) ? take_over(args[0], args[1]) : 0;
    if (done < 0) return NULL;
    return done ? Py_NewRef(Py_None) : PyObject_Vectorcall(write_py, args, n, NULL);
}

/* ---- attributes; of each the property of tensor.py does what is not usual, and has the words ---- */

static PyObject *ask(void *property, PyObject *x) { return Py_TYPE(property)->tp_descr_get(property, x, (PyObject *)Py_TYPE(x)); }

static PyObject *get_grad(PyObject *x, void *property) {
    PyObject *leaf = SLOT(x, at.leaf), *grad = of(leaf, LEAF) ? SLOT(leaf, at.grad) : leaf == Py_None ? Py_None : NULL;
    return grad && SLOT(x, at.node) == Py_None ? Py_NewRef(grad) : ask(property, x);
}
static int set_grad(PyObject *x, PyObject *value, void *property) {
    PyObject *leaf = SLOT(x, at.leaf);
    if (value != Py_None || !of(leaf, LEAF) || !SLOT(leaf, at.grad)) return Py_TYPE(property)->tp_descr_set(property, x, value);
    replace(leaf, at.grad, Py_NewRef(Py_None));
    return 0;
}
static PyObject *get_requires_grad(PyObject *x, void *property) { return SLOT(x, at.rg) ? Py_NewRef(SLOT(x, at.rg)) : ask(property, x); }
static int set_in_python(PyObject *x, PyObject *value, void *property) { return Py_TYPE(property)->tp_descr_set(property, x, value); }
static PyObject *get_version(PyObject *x, void *property) { return SLOT(x, at.storage) == Py_None ? Py_NewRef(zero) : ask(property, x); }
static PyObject *get_device(PyObject *x, void *property) {
    PyObject *device = SLOT(x, at.device), *base = of(device, DEVICE) ? SLOT(device, at.base) : NULL;
    return base ? Py_NewRef(base) : ask(property, x);
}
static PyObject *get_size(PyObject *x, void *property) { /* it recurs */
    PyObject *shape = is_tensor(x) ? SLOT(x, at.shape) : NULL, *member = shape ? PyDict_GetItemWithError(members, shape) : NULL;
    return member ? Py_NewRef(member) : PyErr_Occurred() ? NULL : ask(property, x);
}
COLD static PyObject *get_data(PyObject *x, void *property) { /* the same memory, with a version of its own */
    PyObject *own = is_tensor(x) && SLOT(SLOT(x, at.device), at.base) == SLOT(x, at.device) ? own_storage(x, NULL) : NULL, *made = NULL;
    PyObject *aliases = of(own, STORAGE) ? Py_XNewRef(SLOT(own, at.aliases)) : NULL;
    Py_XDECREF(own);
    if (!aliases) return PyErr_Occurred() ? NULL : ask(property, x);
    PyObject *storage = class[STORAGE]->tp_alloc(class[STORAGE], 0);
    if (storage) {
        put(storage, at.version, zero);
        put(storage, at.pruned, few);
        put(storage, at.aliases, aliases);
        put(storage, at.reshapes, Py_False);
        made = share_memory(x, &storage, 1);
        Py_DECREF(storage);
    }
    Py_DECREF(aliases);
    return made;
}
static PyObject *hash(PyObject *x, PyObject *Py_UNUSED(none)) { return PyLong_FromVoidPtr(x); }

/* ---- shapes: what `Size.__getitem__` of shape.py does ---- */

static PyObject *size_known(PyObject *found) { /* a tuple as the Size that it is; takes found, which may be an error */
    PyObject *known = found ? PyDict_GetItemWithError(sizes, found) : NULL;
    if (found && !PyErr_Occurred()) known = known ? Py_NewRef(known) : PyObject_CallOneArg(remembered, found);
    else known = NULL;
    Py_XDECREF(found);
    return known;
}
static PyObject *size_item(PyObject *size, PyObject *item) {
    PyObject *found = PyTuple_Type.tp_as_mapping->mp_subscript(size, item);
    return found && PyTuple_CheckExact(found) ? size_known(found) : found;
}

static PyMethodDef of_nodes[] = {
    {"pull", (PyCFunction)(void (*)(void))pull, METH_FASTCALL, NULL},
    {"owns", (PyCFunction)(void (*)(void))owns, METH_FASTCALL, NULL},
}, of_sizes[] = {
    {"__getitem__", size_item, METH_O, NULL},
}, of_tensors[] = {
    {"_accumulate", (PyCFunction)(void (*)(void))accumulate, METH_FASTCALL, NULL},
    {"__hash__", hash, METH_NOARGS, NULL},
};
static PyGetSetDef attributes[] = {
    {"grad", get_grad, set_grad, NULL, NULL},
    {"requires_grad", get_requires_grad, set_in_python, NULL, NULL},
    {"data", get_data, set_in_python, NULL, NULL},
    {"size", get_size, NULL, NULL, NULL},
    {"_version", get_version, NULL, NULL, NULL},
    {"device", get_device, NULL, NULL, NULL},
};
