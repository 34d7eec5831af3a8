// Selecting and searching, see select.cpp.
#pragma once
#include "call.hpp"

namespace mortice {

// The `count` largest or smallest elements along an axis, best first, and where they are. For counts that are small.
void best_axis(Array &x, int axis, bool largest, int64_t count, Ref &values, Ref &order);

PyObject *kthvalue(PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *median(PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *searchsorted(PyObject *const *args, Py_ssize_t n, PyObject *names);

}  // namespace mortice
