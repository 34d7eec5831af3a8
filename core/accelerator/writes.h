/* In-place functions: what `quickly` and `inplace` of mutation.py do where a tensor is written into its own memory. Read by
   `engine.c` behind the kinds of functions that it is about. */

/* Whether a shape broadcasts to another one. -1 for an error. */
COLD static int goes_into(PyObject *part, PyObject *shape) {
    Py_ssize_t more = PyTuple_GET_SIZE(shape) - PyTuple_GET_SIZE(part);
    int found = more >= 0;
    for (Py_ssize_t i = 0; found > 0 && i < PyTuple_GET_SIZE(part); i++)
        if (PyTuple_GET_ITEM(part, i) != next) found = PyObject_RichCompareBool(PyTuple_GET_ITEM(part, i), PyTuple_GET_ITEM(shape, i + more), Py_EQ);
    return found;
}

/* Whether the result of operands of which the first is x has its shape: the op takes it from that, or all broadcast to it; and
   whether the op takes numbers, if there are any. -1 for an error. */
static int suits(PyObject *op, int numbers, int fit, int first) {
    PyObject *check = PyObject_GetAttr(op, word.check), *rule = check ? PyObject_GetAttr(op, word.shape) : NULL;
    PyObject *scalars = rule ? PyObject_GetAttr(op, word.scalars) : NULL;
    int found = !scalars ? -1 : check == Py_None && ((first && rule == same) || (fit && rule == broadcast));
    if (found > 0 && numbers) found = PyObject_IsTrue(scalars);
    Py_XDECREF(check);
    Py_XDECREF(rule);
    Py_XDECREF(scalars);
    return found;
}

static int keeps_dtype(PyObject *op, Py_ssize_t i) { /* whether operand i takes no part in promotion; -1 for an error */
    PyObject *fixed = PyObject_GetAttr(op, word.fixed), *number = fixed ? PyLong_FromSsize_t(i) : NULL;
    int found = number ? PySequence_Contains(fixed, number) : -1;
    Py_XDECREF(number);
    Py_XDECREF(fixed);
    return found;
}

/* Whether no operand but x itself shows the memory of x, which others share: `check_apart` of mutation.py asks where it lies. */
static int is_apart(PyObject *x, PyObject *storage, PyObject *const *args, Py_ssize_t n) {
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *own = args[i] != x && is_tensor(args[i]) ? SLOT(args[i], at.storage) : Py_None;
        if (own != Py_None && (!of(own, STORAGE) || SLOT(own, at.aliases) == SLOT(storage, at.aliases))) return 0;
    }
    return of(storage, STORAGE);
}

/* Whether each element of x, whose memory others share, lies alone and may be written: what `plain` of mutation.py asks. */
static int lies_plainly(PyObject *x, PyObject *backend, PyObject *data, int quiet) {
    PyObject *writes = PyObject_GetAttr(backend, word.mutable), *strides = writes ? PyObject_CallMethodOneArg(backend, word.strides_of, data) : NULL;
    PyObject *viewed = SLOT(x, at.viewed), *shape = SLOT(x, at.shape);
    int found = !strides ? -1 : writes == Py_True && PyTuple_CheckExact(strides) && PyTuple_GET_SIZE(strides) == PyTuple_GET_SIZE(shape);
    for (Py_ssize_t i = 0; found > 0 && i < PyTuple_GET_SIZE(shape); i++)
        if (PyTuple_GET_ITEM(strides, i) == zero) found = PyLong_AsLong(PyTuple_GET_ITEM(shape, i)) < 2;
    Py_XDECREF(strides);
    Py_XDECREF(writes);
    if (found < 1 || says_inference(SLOT(x, at.note)) || !viewed) return found < 0 ? -1 : 0;
    return quiet || viewed == Py_None || (is_tensor(viewed) && !wants_grad(viewed));
}

/* Writes an op's result into x where that is only a write: what `quickly` and `directly` of mutation.py do. `attrs` is a
   dict or NULL. 1 where it is done, 0 where it is not, -1 for an error. */
static int write_into(Fast *f, PyObject *op, PyObject *x, PyObject *const *args, Py_ssize_t n, PyObject *attrs, int is_short, int quiet) {
    PyObject *device = SLOT(x, at.device), *dtype = SLOT(x, at.dtype), *shape = SLOT(x, at.shape), *table = SLOT(device, at.table);
    int numbers = 0, uneven = 0, fit = 1, recorded = wants_grad(x);
    Py_ssize_t named = attrs ? PyDict_GET_SIZE(attrs) : 0;
    if (n > MOST || named > MOST || !reads_like_dict(table) || !SLOT(device, at.backend)) return 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *a = args[i];
        if (a == x || (a == Py_None && is_short)) continue;
        if (is_number(a)) {
            if (!takes(dtype, a)) return 0;
            numbers = 1;
            continue;
        }
        if (!is_tensor(a) || SLOT(a, at.device) != device) return 0;
        if (SLOT(a, at.dtype) != dtype) {
            int fixed = is_short ? keeps_dtype(op, i) : 0;
            if (fixed < 1) return fixed;
        }
        recorded |= wants_grad(a);
        if (SLOT(a, at.shape) == shape || (!is_short && !PyTuple_GET_SIZE(SLOT(a, at.shape)))) continue;
        int equal = PyObject_RichCompareBool(shape, SLOT(a, at.shape), Py_EQ);
        if (!equal) fit &= equal = goes_into(SLOT(a, at.shape), shape), uneven = 1;
        if (equal < 0 || (!equal && !is_short)) return equal;
    }
    if (recorded && !quiet) return 0;
    PyObject *dtypes = op == f->op ? Py_NewRef(f->same_dtype) : PyObject_GetAttr(op, word.same_dtype);
    PyObject *found = dtypes && PyDict_CheckExact(dtypes) ? PyDict_GetItemWithError(dtypes, dtype) : NULL;
    Py_XDECREF(dtypes);
    const int casts = found && found != dtype && !is_short && of(found, DTYPE) && is_kind(found, 'b');
    if (found != dtype && !casts) return PyErr_Occurred() ? -1 : 0;
    if (is_short || numbers || uneven) { /* the rest was asked when this Fast was made */
        int found = suits(op, numbers, fit, is_short || !uneven);
        if (found < 1) return found;
    }
    PyObject *kernel = PyDict_GetItemWithError(table, op);
    if (!kernel) return PyErr_Occurred() ? -1 : 0;
    Py_INCREF(kernel);
    PyObject *backend = Py_NewRef(SLOT(device, at.backend)), *mine = Py_NewRef(SLOT(x, at.data)), *buffers = PyTuple_New(n);
    for (Py_ssize_t i = 0; buffers && i < n; i++)
        PyTuple_SET_ITEM(buffers, i, Py_NewRef(args[i] == Py_None || is_number(args[i]) ? args[i] : SLOT(args[i], at.data)));
    PyObject *storage = buffers ? own_storage(x, NULL) : NULL, *into = NULL, *data = NULL, *taken = NULL, *version = NULL;
    PyObject *names = named ? PyTuple_New(named) : NULL, *room[3 + 2 * MOST] = {NULL, mine, kernel}, *name, *value;
    for (Py_ssize_t i = 0; buffers && i < n; i++) room[3 + i] = PyTuple_GET_ITEM(buffers, i);
    for (Py_ssize_t i = 0, at_name = 0; names && PyDict_Next(attrs, &at_name, &name, &value); i++) {
        PyTuple_SET_ITEM(names, i, Py_NewRef(name));
        room[3 + n + i] = value;
    }
    int alone = storage ? is_alone(x, storage) : 0;
    int done = !storage || (named && !names) ? -1 : alone ? 1 : is_apart(x, storage, args, n) ? lies_plainly(x, backend, mine, quiet) : 0;
    if (done > 0 && casts) { /* the truth values of a comparison become numbers */
        PyObject *made = PyObject_Vectorcall(kernel, room + 3, n, NULL);
        data = made ? PyObject_CallMethodObjArgs(backend, word.astype, made, dtype, NULL) : NULL;
        Py_XDECREF(made);
    } else if (done > 0 && (into = PyObject_GetAttr(backend, word.into)))
        data = PyObject_Vectorcall(into, room + 1, (2 + n) | PY_VECTORCALL_ARGUMENTS_OFFSET, names);
    if (data == mine) {
        version = of(storage, STORAGE) && SLOT(storage, at.version) ? PyNumber_Add(SLOT(storage, at.version), next) : NULL;
        if (version) replace(storage, at.version, version);
        else done = -1;
    } else if (data) { /* it lies elsewhere: `landed` of mutation.py tells whether x can take it over */
        taken = PyObject_CallFunctionObjArgs(f->shape, x, data, buffers, alone ? Py_True : Py_False, NULL);
        done = taken ? PyObject_IsTrue(taken) : -1;
    } else if (done > 0)
        done = -1;
    Py_XDECREF(taken);
    Py_XDECREF(names);
    Py_XDECREF(data);
    Py_XDECREF(into);
    Py_XDECREF(storage);
    Py_XDECREF(buffers);
    Py_DECREF(mine);
    Py_DECREF(backend);
    Py_DECREF(kernel);
    return done;
}

static PyObject *call_into(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    Fast *f = (Fast *)self;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    int now = n ? mode() : OTHER, done = 0;
    if (now && is_tensor(args[0])) {
        if (!names && n == f->most)
            done = write_into(f, f->op, args[0], args, n, NULL, 0, now == QUIET);
        else if (f->operands != Py_None) {
            PyObject *found = PyObject_Vectorcall(f->operands, args, n, names);
            if (!found && !PyErr_ExceptionMatches(PyExc_TypeError)) return NULL;
            if (!found) PyErr_Clear(); /* Python says what is wrong */
            Py_ssize_t parts = found && PyTuple_CheckExact(found) ? PyTuple_GET_SIZE(found) : 0;
            PyObject *op = parts == 2 || parts == 3 ? PyTuple_GET_ITEM(found, 0) : NULL;
            PyObject *operands = is_op(op) ? PyTuple_GET_ITEM(found, 1) : NULL, *attrs = parts == 3 ? PyTuple_GET_ITEM(found, 2) : NULL;
            if (operands && PyTuple_CheckExact(operands) && (!attrs || PyDict_CheckExact(attrs)) && is_tensor(args[0]))
                done = write_into(f, op, args[0], ((PyTupleObject *)operands)->ob_item, PyTuple_GET_SIZE(operands), attrs, 1, now == QUIET);
            Py_XDECREF(found);
        }
    }
    return done > 0 ? Py_NewRef(args[0]) : done ? NULL : in_python(f, args, nargsf, names);
}
