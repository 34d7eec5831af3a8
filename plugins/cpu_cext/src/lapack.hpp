// What the kernels of linear algebra share: LAPACK's routines by element type, and arrays of matrices.
#pragma once
#include <climits>
#include <type_traits>

#include "blas.hpp"
#include "call.hpp"
#include "parallel.hpp"

namespace mortice {

// Look the routines up; with the GIL, before any of them is called.
void need_lapack();

// Fortran's arguments are pointers, and the lengths of its strings follow at the end.
template <class T> struct Lapack {
    using Real = std::conditional_t<sizeof(T) == sizeof(float) || std::is_same_v<T, cfloat>, float, double>;
    void (*potrf)(const char *uplo, int *n, T *a, int *lda, int *info, size_t);
    void (*getrf)(int *m, int *n, T *a, int *lda, int *pivots, int *info);
    void (*getri)(int *n, T *a, int *lda, int *pivots, T *work, int *lwork, int *info);
    void (*geqrf)(int *m, int *n, T *a, int *lda, T *tau, T *work, int *lwork, int *info);
    void (*orgqr)(int *m, int *n, int *k, T *a, int *lda, T *tau, T *work, int *lwork, int *info);
    // Real and complex ones differ in their arguments, see spectral.cpp.
    void *syevd, *geev, *gesdd;
    void *trsm;
};
template <class T> const Lapack<T> &lapack(T);
template <> const Lapack<float> &lapack(float);
template <> const Lapack<double> &lapack(double);
template <> const Lapack<cfloat> &lapack(cfloat);
template <> const Lapack<cdouble> &lapack(cdouble);

constexpr int PLAIN = 111, TURNED = 112, ADJOINT = 113;  // CBLAS's names for op(A)

// Solve op(A) X = B, or X op(A) = B unless left, over B; all row-major, A's triangle the upper one in memory or not.
template <class T>
inline void trsm(bool left, bool upper, int op, bool unit, int64_t m, int64_t n, const T *a, int64_t lda, T *b, int64_t ldb) {
    constexpr int row_major = 101, on_left = 141, on_right = 142, is_upper = 121, is_lower = 122, not_unit = 131, is_unit = 132;
    const int size_m = static_cast<int>(m), size_n = static_cast<int>(n), step_a = static_cast<int>(lda);
    const int step_b = static_cast<int>(ldb), side = left ? on_left : on_right, half = upper ? is_upper : is_lower;
    if constexpr (std::is_floating_point_v<T>) {
        using F = void (*)(int, int, int, int, int, int, int, T, const T *, int, T *, int);
        reinterpret_cast<F>(lapack(T{}).trsm)(row_major, side, half, op, unit ? is_unit : not_unit, size_m, size_n, T(1), a,
                                              step_a, b, step_b);
    } else {
        using F = void (*)(int, int, int, int, int, int, int, const void *, const void *, int, void *, int);
        const T one{1, 0};
        reinterpret_cast<F>(lapack(T{}).trsm)(row_major, side, half, op, unit ? is_unit : not_unit, size_m, size_n, &one, a,
                                              step_a, b, step_b);
    }
}

// The room that a query of LAPACK answered with, `least` at the least.
template <class T> inline int whole(const T &answer, int least) {
    double size;
    if constexpr (std::is_floating_point_v<T>) size = answer;
    else size = answer.re;
    // A float rounds large counts; a little more is enough.
    const double more = size * 1.0001 + 1;
    return more > least ? (more < INT_MAX ? static_cast<int>(more) : INT_MAX) : least;
}

// The kernels of spectral.cpp.
PyObject *geqrf(PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *qr(PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *eigh(PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *eigvalsh(PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *eig(PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *svd(PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *svdvals(PyObject *const *args, Py_ssize_t n, PyObject *names);

namespace linear {

// ---- arrays of matrices ----


// Whether LAPACK takes these matrices: its dtypes, sizes that its ints can count, and not nothing. It works in room for several
// matrices of their size, and for some lines of `most`; where `square`, the result has `most` lines of `most`.
inline bool served(const Array &x, bool square = false) {
    if (x.dtype < F32 || x.ndim < 2 || x.size == 0) return false;
    const int64_t m = x.shape()[x.ndim - 2], n = x.shape()[x.ndim - 1], most = m > n ? m : n;
    return most < 1 << 24 && (square ? most : m + n - most) * most < INT_MAX / 16;
}

struct Shape {
    int64_t m, n, batch, each;
    explicit Shape(const Array &x)
        : m(x.shape()[x.ndim - 2]), n(x.shape()[x.ndim - 1]), batch(x.size / (m * n)), each(m * n) {}
};

// A new array of the batch's shape followed by further axes.
inline Ref of_batch(const Array &x, DType d, std::initializer_list<int64_t> more) {
    int64_t shape[MAX_NDIM + 2];
    int nd = x.ndim - 2;
    for (int i = 0; i < nd; i++) shape[i] = x.shape()[i];
    for (int64_t n : more) shape[nd++] = n;
    return make(d, nd, shape);
}

inline Ref turned(Array &x) {
    int64_t shape[MAX_NDIM], strides[MAX_NDIM];
    const int nd = x.ndim;
    for (int i = 0; i < nd; i++) shape[i] = x.shape()[i], strides[i] = x.strides()[i];
    shape[nd - 1] = x.shape()[nd - 2], shape[nd - 2] = x.shape()[nd - 1];
    strides[nd - 1] = x.strides()[nd - 2], strides[nd - 2] = x.strides()[nd - 1];
    return make_view(x, x.data, nd, shape, strides);
}

// A copy whose memory has the matrices column by column: an array of the transposed matrices.
inline Ref columns_of(Array &x) {
    const Ref view = turned(x);
    return copied(*view);
}

template <class F> auto by_dtype(DType d, F f) {
    switch (d) {
        case F32: return f(float{});
        case F64: return f(double{});
        case C64: return f(cfloat{});
        default: return f(cdouble{});
    }
}

// Calls one(i) for each matrix; `cost` is about the multiplications that one takes.
template <class F> void over_batch(int64_t batch, double cost, F one) {
    const double all = static_cast<double>(batch) * cost, grain = 1e5 / (cost + 1);
    Unlocked free(all > 1e15 ? int64_t{1} << 50 : static_cast<int64_t>(all));
    parallel_for(batch, grain < 1 ? 1 : static_cast<int64_t>(grain), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) one(i);
    });
}
inline double cube(int64_t n) { return static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n); }

}  // namespace linear

}  // namespace mortice
