/* Random numbers: what `_draw` of ops/random.py does. */

/* Whether the next words of a generator may be taken without its lock: nobody has it, and no level or capture draws. */
COLD static int may_take(PyObject *generator, PyObject *stack) {
    PyObject *capture = PyObject_GetAttr(modes, word.capture), *levels = capture ? PyObject_GetAttr(stack, word.levels) : NULL;
    PyObject *lock = levels ? PyObject_GetAttr(generator, word.lock) : NULL, *held = lock ? PyObject_CallMethodNoArgs(lock, word.locked) : NULL;
    int found = !held ? -1 : held == Py_False && capture == Py_None && PyTuple_Check(levels) && !PyTuple_GET_SIZE(levels);
    Py_XDECREF(capture);
    Py_XDECREF(levels);
    Py_XDECREF(lock);
    Py_XDECREF(held);
    return found;
}

/* The data of a draw; NULL without an error, and no words are taken, in an unusual case. args: generator, stack, kernel, shape,
   dtype, device, and the rest. The kernel gets what is the rest, and the device; without a rest the shape and the dtype. */
COLD static PyObject *drawn(PyObject *const *args, Py_ssize_t n) {
    static PyObject *keywords, *sole;
    if (n < 6 || n > 6 + MOST || !PyTuple_Check(args[3]) || !of(args[5], DEVICE) || !SLOT(args[5], at.backend)) return NULL;
    if (!keywords && !(keywords = Py_BuildValue("(ss)", "dtype", "device"))) return NULL;
    if (!sole && !(sole = Py_BuildValue("(s)", "device"))) return NULL;
    unsigned long long words = 1, most = (unsigned long long)-1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[3]); i++) {
        unsigned long long size = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(args[3], i));
        if (PyErr_Occurred() || (size && words > most / size)) return NULL;
        words *= size;
    }
    PyObject *kernel = PyObject_GetAttr(SLOT(args[5], at.backend), args[2]), *data = NULL;
    int usual = kernel ? may_take(args[0], args[1]) : -1;
    PyObject *seed = usual > 0 ? PyObject_GetAttr(args[0], word.seed) : NULL, *offset = seed ? PyObject_GetAttr(args[0], word.offset) : NULL;
    if (offset) { /* no other thread runs between this and the new offset */
        unsigned long long start = PyLong_AsUnsignedLongLong(offset);
        PyObject *next = words < most - start ? PyLong_FromUnsignedLongLong(start + words) : NULL;
        if (next && PyObject_SetAttr(args[0], word.offset, next) == 0) {
            PyObject *given[3 + MOST] = {seed, offset, args[3], args[4], args[5]};
            for (Py_ssize_t i = 6; i < n; i++) given[i - 4] = args[i];
            if (n > 6) given[n - 4] = args[5];
            data = PyObject_Vectorcall(kernel, given, n > 6 ? n - 4 : 3, n > 6 ? sole : keywords);
        }
        Py_XDECREF(next);
    }
    Py_XDECREF(kernel);
    Py_XDECREF(seed);
    Py_XDECREF(offset);
    return data;
}

COLD static PyObject *draw(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n) { /* a tensor, or None */
    PyObject *data = drawn(args, n);
    return data ? fresh(data, args[5], args[4], args[3]) : PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

/* fill(generator, stack, kernel, t, scale, shift): t, which holds what was drawn times a number plus another; or None. */
COLD static PyObject *fill(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n) {
    const int now = n == 6 ? mode() : OTHER;
    PyObject *t = now ? args[3] : NULL;
    if (!now || !is_tensor(t) || !is_kind(SLOT(t, at.dtype), 'f') || (now == USUAL && wants_grad(t)) || !is_number(args[4]) ||
        !is_number(args[5]) || SLOT(SLOT(t, at.device), at.base) != SLOT(t, at.device) || !SLOT(SLOT(t, at.device), at.backend))
        Py_RETURN_NONE;
    PyObject *given[6] = {args[0], args[1], args[2], Py_NewRef(SLOT(t, at.shape)), Py_NewRef(SLOT(t, at.dtype)), Py_NewRef(SLOT(t, at.device))};
    PyObject *backend = Py_NewRef(SLOT(given[5], at.backend)), *mine = Py_NewRef(SLOT(t, at.data)), *storage = own_storage(t, NULL);
    PyObject *moves[2] = {word.multiply, word.add}, *still[2] = {next, zero}, *data = NULL;
    const int usual = !storage ? -1 : is_alone(t, storage) ? 1 : lies_plainly(t, backend, mine, now == QUIET);
    if (usual > 0) data = drawn(given, 6);
    for (int i = 0; i < 2 && data; i++) { /* in the memory that was drawn into */
        if (PyObject_RichCompareBool(args[4 + i], still[i], Py_EQ)) continue;
        PyObject *kernel = PyObject_GetAttr(backend, moves[i]);
        Py_SETREF(data, kernel ? PyObject_CallMethodObjArgs(backend, word.into, data, kernel, data, args[4 + i], NULL) : NULL);
        Py_XDECREF(kernel);
    }
    PyObject *made = data ? write_fresh(NULL, (PyObject *[]){t, data, Py_True}, 3) : NULL;
    if (made) Py_SETREF(made, Py_NewRef(t));
    Py_XDECREF(data);
    Py_XDECREF(storage);
    Py_DECREF(mine);
    Py_DECREF(backend);
    for (int i = 3; i < 6; i++) Py_DECREF(given[i]);
    return made || PyErr_Occurred() ? made : Py_NewRef(Py_None);
}
