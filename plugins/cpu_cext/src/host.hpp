// Memory that crosses between arrays and the rest of the process.
#pragma once
#include "array.hpp"

namespace mortice {

// An array over memory that `owner` keeps alive; strides in elements, nullptr for row-major.
Ref over_memory(PyObject *owner, char *data, DType dtype, int ndim, const int64_t *shape, const int64_t *strides, bool writable);

int array_getbuffer(PyObject *self, Py_buffer *view, int flags);
void array_releasebuffer(PyObject *self, Py_buffer *view);

// A DLPack capsule that lends x's memory: of the first form, or of version 1.
PyObject *to_dlpack(Array &x, bool versioned);

}  // namespace mortice
