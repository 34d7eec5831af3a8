// Sliding blocks as columns and back, and padding in its four modes: copies, and the sums that are their gradients.
#pragma once
#include "call.hpp"

namespace mortice {

PyObject *unfold_body(PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *fold_body(PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *pad_border_body(PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *pad_border_grad_body(PyObject *const *args, Py_ssize_t n, PyObject *names);

}  // namespace mortice
