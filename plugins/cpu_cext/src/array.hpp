// The array: typed elements in memory, seen through strides. Views share the memory of the array they are of.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <initializer_list>

#include "dtype.hpp"
#include "memory.hpp"

namespace mortice {

constexpr int MAX_NDIM = 64;
constexpr int64_t INLINE_BYTES = 256;  // arrays up to this size carry their elements with them

struct Array {
    PyObject_HEAD
    char *data;         // the first element
    int64_t size;       // the number of elements
    PyObject *base;     // what owns the memory: nullptr when this array does; of a view an array that is none; else a buffer
    PyObject *shape_;   // the shape as a tuple once somebody asked, else nullptr
    DType dtype;
    uint8_t ndim;
    bool contiguous;    // row-major without gaps
    bool writable;
    bool inline_;       // the elements are behind the strides
    int64_t dims[];     // sizes, then strides in elements

    int64_t *shape() { return dims; }
    const int64_t *shape() const { return dims; }
    int64_t *strides() { return dims + ndim; }
    const int64_t *strides() const { return dims + ndim; }
    int itemsize() const { return ITEMSIZE[dtype]; }
    int64_t bytes() const { return size * ITEMSIZE[dtype]; }
    template <class T> T *as() { return reinterpret_cast<T *>(data); }
    template <class T> const T *as() const { return reinterpret_cast<const T *>(data); }
};

extern PyTypeObject ArrayType;
inline bool is_array(PyObject *x) { return Py_TYPE(x) == &ArrayType; }

// Thrown when a Python exception is set; `run` (call.cpp) turns it into a nullptr.
struct Failed {};
[[noreturn]] void fail(PyObject *type, const char *format, ...);

// An owned reference.
template <class T = PyObject> class Own {
    T *p_;

  public:
    Own() : p_(nullptr) {}
    explicit Own(T *p) : p_(p) {}
    Own(Own &&o) noexcept : p_(o.p_) { o.p_ = nullptr; }
    Own &operator=(Own &&o) noexcept {
        T *old = p_;
        p_ = o.p_;
        o.p_ = nullptr;
        Py_XDECREF(reinterpret_cast<PyObject *>(old));
        return *this;
    }
    ~Own() { Py_XDECREF(reinterpret_cast<PyObject *>(p_)); }
    T *get() const { return p_; }
    T *operator->() const { return p_; }
    T &operator*() const { return *p_; }
    explicit operator bool() const { return p_ != nullptr; }
    PyObject *release() {
        auto *p = reinterpret_cast<PyObject *>(p_);
        p_ = nullptr;
        return p;
    }
    static Own share(T *p) {
        Py_INCREF(reinterpret_cast<PyObject *>(p));
        return Own(p);
    }
};
using Ref = Own<Array>;

// ---- making arrays; all throw Failed ----

// A new row-major array; its elements are not set.
Ref make(DType dtype, int ndim, const int64_t *shape);
inline Ref make(DType dtype, std::initializer_list<int64_t> shape) {
    return make(dtype, static_cast<int>(shape.size()), shape.begin());
}
inline Ref make_like(const Array &x) { return make(x.dtype, x.ndim, x.shape()); }
inline Ref make_like(const Array &x, DType dtype) { return make(dtype, x.ndim, x.shape()); }
// A new array laid out in memory as PyTorch's result of arrays that broadcast to `shape`: as the first where that is
// dense (so both can be walked as one line), else without gaps, its axes in the order of theirs.
Ref make_laid_out_like(const Array *const *xs, int count, int ndim, const int64_t *shape, DType dtype);
Ref make_laid_out_like(const Array &x, DType dtype);
Ref make_zeros(DType dtype, int ndim, const int64_t *shape);
// A view of x's memory; `data` points into it, strides are in elements.
Ref make_view(Array &x, char *data, int ndim, const int64_t *shape, const int64_t *strides, DType dtype);
inline Ref make_view(Array &x, char *data, int ndim, const int64_t *shape, const int64_t *strides) {
    return make_view(x, data, ndim, shape, strides, x.dtype);
}

// x itself where it is row-major (a new reference), else a row-major copy.
Ref contiguous(Array &x);
// x in another dtype: itself (a new reference) where it has it, else a converted row-major copy.
Ref converted(Array &x, DType dtype);
Ref copied(Array &x);  // a row-major copy
Ref cloned(Array &x);  // a copy laid out by `make_laid_out_like`
// Copy the elements of `from` into `to`, broadcasting and converting.
void assign(Array &to, Array &from);
// Fill with the number at `value`, an element of x's dtype.
void fill(Array &x, const void *value);

PyObject *shape_tuple(Array &x);  // a new reference, or nullptr with an error set
bool same_shape(const Array &x, const Array &y);
bool is_dense(const Array &x);  // a permuted row-major array: no gaps, no overlap
// Whether x is no row-major array and its channels (axis 1 of 4 or 5) lie closest together, as PyTorch judges it.
bool channels_last(const Array &x);
Ref make_channels_last(DType dtype, int ndim, const int64_t *shape);  // a new array with them last
Ref with_channels_last(Array &x);  // itself where they lie so without gaps, else a copy
bool may_overlap(const Array &x, const Array &y);
int64_t count(int ndim, const int64_t *shape);  // throws for a product beyond the address space

}  // namespace mortice
