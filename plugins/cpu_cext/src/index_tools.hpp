// What index.cpp and scatter.cpp share.
#pragma once
#include "call.hpp"

namespace mortice {

// Raise the IndexError for the first index outside [0, n).
[[noreturn]] void out_of_bounds(const char *name, Array &indices, int64_t n);
// The number of elements over the axes from `begin` to `end`.
int64_t around(const Array &x, int begin, int end);

PyObject *scatter_add(PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *index_add(PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *index_write(PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *put_rows(PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *scatter_write(PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *scatter_combine(PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *spread_indices(PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *embedding_bag(PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *embedding_grad(PyObject *const *args, Py_ssize_t n, PyObject *names);

}  // namespace mortice
