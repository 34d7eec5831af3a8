// Linear algebra by LAPACK, batched: each thread takes some of the matrices. LAPACK wants columns, so most kernels work on
// a copy of the transposed matrices, which they need anyway, and give back its transposed view.
#include <algorithm>
#include <cmath>
#include <climits>
#include <cstring>

#include "blas.hpp"
#include "call.hpp"
#include "families.hpp"
#include "lapack.hpp"
#include "parallel.hpp"

namespace mortice {

namespace {

using namespace linear;

// The absolute value.
template <class T> auto size_of(const T &x) {
    if constexpr (std::is_floating_point_v<T>) return std::fabs(x);
    else return std::hypot(x.re, x.im);
}

// ---- cholesky ----

PyObject *cholesky_ex(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<2> N{"cholesky_ex", {"x", "upper"}, 1};
    PyObject *a[2];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    if (!served(x)) return default_body();
    need_lapack();
    const Shape s(x);
    const bool upper = as_bool(a[1]);
    Ref made = copied(x), info = of_batch(x, I32, {});
    auto *codes = info->as<int32_t>();
    by_dtype(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        T *data = made->as<T>();
        over_batch(s.batch, cube(s.n) / 3, [&](int64_t i) {
            T *at = data + i * s.each;
            // Row by row, the lower triangle is what LAPACK calls the upper one; conjugated, which conjugates the factor.
            int size = static_cast<int>(s.n), code = 0;
            lapack(T{}).potrf(upper ? "L" : "U", &size, at, &size, &code, 1);
            // LAPACK may let a pivot pass that is nan: each one after it is nan too.
            auto lost = [&](int64_t r) { return std::isnan(size_of(at[r * s.n + r])); };
            if (!code && s.n && lost(s.n - 1))
                while (!lost(code++)) {}
            codes[i] = code;
            for (int64_t r = 0; r < s.n; r++)
                for (int64_t c = upper ? 0 : r + 1; c < (upper ? r : s.n); c++) at[r * s.n + c] = T{};
        });
    });
    return as_tuple(made, info);
}

// ---- triangles ----

// Leading axes of two arrays of matrices, broadcast; the step of each along them, in matrices of its own.
struct Pairs {
    int ndim;
    int64_t shape[MAX_NDIM], count = 1, step_a[MAX_NDIM], step_b[MAX_NDIM];
    Pairs(int lead_a, const int64_t *a, int lead_b, const int64_t *b) : ndim(lead_a > lead_b ? lead_a : lead_b) {
        int64_t own_a = 1, own_b = 1;
        for (int i = ndim - 1; i >= 0; i--) {
            const int at_a = i - (ndim - lead_a), at_b = i - (ndim - lead_b);
            const int64_t p = at_a < 0 ? 1 : a[at_a], q = at_b < 0 ? 1 : b[at_b];
            if (p != q && p != 1 && q != 1) fail(PyExc_ValueError, "linalg: the leading axes do not broadcast");
            shape[i] = p == 1 ? q : p;
            step_a[i] = p == 1 ? 0 : own_a, step_b[i] = q == 1 ? 0 : own_b;
            own_a *= p, own_b *= q, count *= shape[i];
        }
    }
    void find(int64_t i, int64_t &a, int64_t &b) const {
        a = b = 0;
        for (int d = ndim - 1; d >= 0; d--) {
            a += i % shape[d] * step_a[d], b += i % shape[d] * step_b[d];
            i /= shape[d];
        }
    }
    Ref result(DType d, int64_t m, int64_t n) const {
        int64_t full[MAX_NDIM + 2];
        for (int i = 0; i < ndim; i++) full[i] = shape[i];
        full[ndim] = m, full[ndim + 1] = n;
        return make(d, ndim + 2, full);
    }
};

template <class T> bool is_zero(const T &x) {
    if constexpr (std::is_floating_point_v<T>) return x == 0;
    else return x.re == 0 && x.im == 0;
}

template <class T> bool zero_on_diagonal(const T *at, const Shape &s) {
    for (int64_t i = 0; i < s.batch; i++)
        for (int64_t j = 0; j < s.n; j++)
            if (is_zero(at[i * s.each + j * (s.n + 1)])) return true;
    return false;
}

PyObject *solve_triangular(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<5> N{"solve_triangular", {"a", "b", "upper", "left", "unit_diagonal"}, 2};
    PyObject *v[5];
    arguments(N, args, n, names, v);
    Array &a = as_array(v[0]), &b = as_array(v[1]);
    if (!served(a) || !served(b) || a.dtype != b.dtype) return default_body();
    const Shape s(a), r(b);
    const bool upper = as_bool(v[2]), left = !v[3] || as_bool(v[3]), unit = as_bool(v[4]);
    if (s.m != s.n || (left ? r.m : r.n) != s.n) fail(PyExc_ValueError, "solve_triangular: the sizes do not agree");
    need_lapack();
    // A transposed triangle is read where it lies: it is the other one.
    const Ref other = turned(a);
    const bool flip = !a.contiguous && other->contiguous;
    const Ref own = flip ? Ref() : contiguous(a);
    const char *from = flip ? a.data : own->data;
    const Pairs p(a.ndim - 2, a.shape(), b.ndim - 2, b.shape());
    const Ref given = contiguous(b);
    Ref out = p.result(a.dtype, r.m, r.n);
    const bool done = by_dtype(a.dtype, [&](auto zero) {
        using T = decltype(zero);
        const T *triangles = reinterpret_cast<const T *>(from);
        if (!unit && zero_on_diagonal(triangles, s)) return false;
        T *to = out->as<T>();
        const T *right = given->as<T>();
        over_batch(p.count, static_cast<double>(s.n) * static_cast<double>(r.each), [&](int64_t i) {
            int64_t ia, ib;
            p.find(i, ia, ib);
            memcpy(to + i * r.each, right + ib * r.each, static_cast<size_t>(r.each) * sizeof(T));
            trsm<T>(left, upper != flip, flip ? TURNED : PLAIN, unit, r.m, r.n, triangles + ia * s.each, s.n, to + i * r.each, r.n);
        });
        return true;
    });
    return done ? out.release() : default_body();
}

// ---- lu ----

// Of so many rows and columns a call of LAPACK takes longer than the work.
constexpr int64_t SMALL = 12;

// As LAPACK's getf2 does: the factors over a matrix of columns, and the swaps counted from 1.
template <class T> int factor_small(T *at, int64_t m, int64_t n, int *pivots) {
    int code = 0;
    for (int64_t j = 0; j < std::min(m, n); j++) {
        T *column = at + j * m;
        int64_t best = j;
        for (int64_t i = j + 1; i < m; i++)
            if (column[best] == column[best] && !(std::fabs(column[i]) <= std::fabs(column[best])))
                best = i;  // the first nan, too: below a 0 it would be lost
        pivots[j] = static_cast<int>(best + 1);
        if (column[best] == 0) {
            if (!code) code = static_cast<int>(j + 1);
            continue;
        }
        for (int64_t c = 0; c < n; c++) std::swap(at[c * m + j], at[c * m + best]);
        for (int64_t i = j + 1; i < m; i++) column[i] /= column[j];
        for (T *other = column + m; other < at + n * m; other += m)
            for (int64_t i = j + 1; i < m; i++) other[i] -= column[i] * other[j];
    }
    return code;
}

// Solve with these factors, over `count` right sides that are the columns of x's rows: down one triangle, and up the other.
template <class T> __attribute__((noinline)) void solve_small(const T *at, int64_t n, T *x, int64_t count) {
    for (int64_t k = 0; k < 2 * n; k++) {
        const bool up = k >= n;
        const int64_t j = up ? 2 * n - 1 - k : k, end = up ? j : n;
        T *row = x + j * count;
        if (up)
            for (int64_t c = 0; c < count; c++) row[c] /= at[j * (n + 1)];
        for (int64_t i = up ? 0 : j + 1; i < end; i++)
            for (int64_t c = 0; c < count; c++) x[i * count + c] -= at[j * n + i] * row[c];
    }
}

template <class T> int factor(T *at, int64_t m, int64_t n, int *pivots) {
    if constexpr (std::is_floating_point_v<T>)
        if (m <= SMALL && n <= SMALL) return factor_small(at, m, n, pivots);
    int rows = static_cast<int>(m), cols = static_cast<int>(n), code = 0;
    lapack(T{}).getrf(&rows, &cols, at, &rows, pivots, &code);
    return code;
}

// The row order that swaps make: row i of the result is row order[i] of what they are applied to.
void order_of(const int32_t *pivots, int64_t count, int64_t m, int64_t *order) {
    for (int64_t i = 0; i < m; i++) order[i] = i;
    for (int64_t i = 0; i < count; i++) {
        const int64_t other = pivots[i] - 1;
        if (other < 0 || other >= m || i >= m) continue;
        const int64_t kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
}

PyObject *lu_ex(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    Array &x = only("lu_ex", args, n, names);
    if (!served(x)) return default_body();
    need_lapack();
    const Shape s(x);
    const int64_t steps = s.m < s.n ? s.m : s.n;
    const Ref columns = columns_of(x);
    Ref pivots = of_batch(x, I32, {steps}), order = of_batch(x, I64, {s.m}), info = of_batch(x, I32, {});
    auto *swaps = pivots->as<int32_t>(), *codes = info->as<int32_t>();
    auto *rows = order->as<int64_t>();
    by_dtype(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        T *data = columns->as<T>();
        over_batch(s.batch, static_cast<double>(steps) * static_cast<double>(s.each), [&](int64_t i) {
            codes[i] = factor(data + i * s.each, s.m, s.n, swaps + i * steps);
            order_of(swaps + i * steps, steps, s.m, rows + i * s.m);
        });
    });
    return as_tuple(turned(*columns), pivots, order, info);
}

PyObject *pivots_to_order(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<2> N{"pivots_to_order", {"pivots", "m"}, 2};
    PyObject *a[2];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    const int64_t m = as_int(a[1]);
    if (x.dtype != I32 || x.ndim < 1 || m < 0) return default_body();
    int64_t shape[MAX_NDIM];
    for (int i = 0; i < x.ndim; i++) shape[i] = x.shape()[i];
    const int64_t steps = shape[x.ndim - 1];
    int64_t batch = 1;
    for (int i = 0; i < x.ndim - 1; i++) batch *= shape[i];
    shape[x.ndim - 1] = m;
    const Ref pivots = contiguous(x);
    Ref order = make(I64, x.ndim, shape);
    if (order->size)
        for (int64_t i = 0; i < batch; i++) order_of(pivots->as<int32_t>() + i * steps, steps, m, order->as<int64_t>() + i * m);
    return order.release();
}

template <class T> void take_rows(T *to, const T *from, const int64_t *order, int64_t m, int64_t n) {
    for (int64_t i = 0; i < m; i++) memcpy(to + i * n, from + order[i] * n, static_cast<size_t>(n) * sizeof(T));
}
template <class T> void put_rows(T *to, const T *from, const int64_t *order, int64_t m, int64_t n) {
    for (int64_t i = 0; i < m; i++) memcpy(to + order[i] * n, from + i * n, static_cast<size_t>(n) * sizeof(T));
}

bool good_order(const Array &order, int64_t n) {
    const auto *at = order.as<int64_t>();
    for (int64_t i = 0; i < order.size; i++)
        if (at[i] < 0 || at[i] >= n) return false;
    return true;
}

PyObject *lu_solve(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<4> N{"lu_solve", {"lu", "order", "b", "adjoint"}, 3};
    PyObject *a[4];
    arguments(N, args, n, names, a);
    Array &lu = as_array(a[0]), &rows = as_array(a[1]), &b = as_array(a[2]);
    if (!served(lu) || !served(b) || lu.dtype != b.dtype || rows.dtype != I64 || rows.ndim != lu.ndim - 1) return default_body();
    const Shape s(lu), r(b);
    if (s.m != s.n || r.m != s.n || rows.size != s.batch * s.n) return default_body();
    need_lapack();
    const bool adjoint = as_bool(a[3]);
    const Ref other = turned(lu);
    // BLAS can conjugate only what it transposes as well.
    const bool flip = !lu.contiguous && other->contiguous && !(adjoint && is_complex(lu.dtype));
    const Ref own = flip ? Ref() : contiguous(lu);
    const char *from = flip ? lu.data : own->data;
    const Ref order = contiguous(rows), given = contiguous(b);
    if (!good_order(*order, s.n)) fail(PyExc_IndexError, "lu_solve: expected a row order below %lld", static_cast<long long>(s.n));
    const Pairs p(lu.ndim - 2, lu.shape(), b.ndim - 2, b.shape());
    Ref out = p.result(lu.dtype, r.m, r.n), work = adjoint ? make_like(*out) : Ref();
    by_dtype(lu.dtype, [&](auto zero) {
        using T = decltype(zero);
        const T *packed = reinterpret_cast<const T *>(from), *right = given->as<T>();
        T *to = out->as<T>(), *room = adjoint ? work->as<T>() : nullptr;
        const int64_t *orders = order->as<int64_t>();
        over_batch(p.count, 2 * static_cast<double>(s.n) * static_cast<double>(r.each), [&](int64_t i) {
            int64_t ia, ib;
            p.find(i, ia, ib);
            const T *at = packed + ia * s.each;
            T *x = to + i * r.each;
            const int how = flip ? TURNED : PLAIN, back = flip ? PLAIN : ADJOINT;
            if (!adjoint) {
                take_rows(x, right + ib * r.each, orders + ia * s.n, s.n, r.n);
                trsm<T>(true, flip, how, true, r.m, r.n, at, s.n, x, r.n);
                trsm<T>(true, !flip, how, false, r.m, r.n, at, s.n, x, r.n);
                return;
            }
            T *y = room + i * r.each;
            memcpy(y, right + ib * r.each, static_cast<size_t>(r.each) * sizeof(T));
            trsm<T>(true, !flip, back, false, r.m, r.n, at, s.n, y, r.n);
            trsm<T>(true, flip, back, true, r.m, r.n, at, s.n, y, r.n);
            put_rows(x, y, orders + ia * s.n, s.n, r.n);
        });
    });
    return out.release();
}

PyObject *solve_ex(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<2> N{"solve_ex", {"a", "b"}, 2};
    PyObject *v[2];
    arguments(N, args, n, names, v);
    Array &a = as_array(v[0]), &b = as_array(v[1]);
    if (!served(a) || !served(b) || a.dtype != b.dtype) return default_body();
    const Shape s(a), r(b);
    if (s.m != s.n || r.m != s.n) fail(PyExc_ValueError, "solve: the sizes do not agree");
    need_lapack();
    const Ref columns = columns_of(a), given = contiguous(b);
    Ref info = of_batch(a, I32, {});
    const Pairs p(a.ndim - 2, a.shape(), b.ndim - 2, b.shape());
    Ref out = p.result(a.dtype, r.m, r.n);
    Scratch<int32_t> swaps(static_cast<size_t>(s.batch * s.n));
    Scratch<int64_t> orders(static_cast<size_t>(s.batch * s.n));
    auto *pivots = swaps.get(), *codes = info->as<int32_t>();
    auto *order = orders.get();
    by_dtype(a.dtype, [&](auto zero) {
        using T = decltype(zero);
        T *data = columns->as<T>(), *to = out->as<T>();
        const T *right = given->as<T>();
        over_batch(s.batch, cube(s.n) / 3, [&](int64_t i) {
            codes[i] = factor(data + i * s.each, s.n, s.n, pivots + i * s.n);
            order_of(pivots + i * s.n, s.n, s.n, order + i * s.n);
        });
        over_batch(p.count, 2 * static_cast<double>(s.n) * static_cast<double>(r.each), [&](int64_t i) {
            int64_t ia, ib;
            p.find(i, ia, ib);
            T *x = to + i * r.each;
            take_rows(x, right + ib * r.each, order + ia * s.n, s.n, r.n);
            if constexpr (std::is_floating_point_v<T>)
                if (s.n <= SMALL && r.n <= SMALL) return solve_small(data + ia * s.each, s.n, x, r.n);
            trsm<T>(true, true, TURNED, true, r.m, r.n, data + ia * s.each, s.n, x, r.n);
            trsm<T>(true, false, TURNED, false, r.m, r.n, data + ia * s.each, s.n, x, r.n);
        });
    });
    return as_tuple(out, info);
}

// The inverse over the factors.
template <class T> void invert_small(T *at, int64_t n, const int *pivots) {
    T made[SMALL * SMALL] = {};
    int64_t order[SMALL];
    order_of(pivots, n, n, order);
    for (int64_t i = 0; i < n; i++) made[i * n + order[i]] = 1;
    solve_small(at, n, made, n);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) at[j * n + i] = made[i * n + j];
}

PyObject *inv_ex(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    Array &x = only("inv_ex", args, n, names);
    if (!served(x)) return default_body();
    const Shape s(x);
    if (s.m != s.n) fail(PyExc_ValueError, "inv: expected square matrices");
    need_lapack();
    // The inverse of the transposed matrix is the transposed inverse: rows may be taken for columns.
    Ref made = copied(x), info = of_batch(x, I32, {});
    auto *codes = info->as<int32_t>();
    Scratch<int32_t> swaps(static_cast<size_t>(s.batch * s.n));
    auto *pivots = swaps.get();
    const bool good = by_dtype(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        T *data = made->as<T>();
        int size = static_cast<int>(s.n), query = -1, code = 0;
        T best{};
        lapack(T{}).getri(&size, data, &size, pivots, &best, &query, &code);
        const int room = whole(best, 64 * size);
        Scratch<T> work(static_cast<size_t>(room) * static_cast<size_t>(num_threads()));
        T *rooms = work;
        over_batch(s.batch, cube(s.n), [&](int64_t i) {
            int count = static_cast<int>(s.n), length = room, failed = 0;
            codes[i] = factor(data + i * s.each, s.n, s.n, pivots + i * s.n);
            if constexpr (std::is_floating_point_v<T>)
                if (s.n <= SMALL && codes[i] == 0) return invert_small(data + i * s.each, s.n, pivots + i * s.n);
            if (codes[i] == 0)
                lapack(T{}).getri(&count, data + i * s.each, &count, pivots + i * s.n,
                                  rooms + static_cast<int64_t>(thread_number()) * room, &length, &failed);
        });
        for (int64_t i = 0; i < s.batch; i++)
            if (codes[i]) return false;
        return true;
    });
    return good ? as_tuple(made, info) : default_body();  // which says where each stopped
}

// ---- determinants ----

// Multiplied, not negated: the imaginary part of what is real stays 0, and its angle pi.
template <class T> T parity(bool odd) { return {odd ? -1.f : 1.f}; }
template <class T> T of_length_1(const T &x) {
    const auto size = size_of(x);
    if constexpr (std::is_floating_point_v<T>) return size == 0 ? T(0) : x / size;
    else {
        using R = decltype(x.re);
        return size == 0 ? T{} : T{static_cast<R>(x.re / size), static_cast<R>(x.im / size)};
    }
}

// Factor copies, and give each matrix's diagonal of U and whether the swaps are odd to `one`.
template <class F> void over_factors(Array &x, F one) {
    const Shape s(x);
    const Ref copy = copied(x);  // of the transposed matrix the determinant is the same
    Scratch<int32_t> swaps(static_cast<size_t>(s.batch * s.n));
    auto *pivots = swaps.get();
    by_dtype(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        T *data = copy->as<T>();
        over_batch(s.batch, cube(s.n) / 3, [&](int64_t i) {
            factor(data + i * s.each, s.n, s.n, pivots + i * s.n);
            bool odd = false;
            for (int64_t j = 0; j < s.n; j++) odd ^= pivots[i * s.n + j] != j + 1;
            one(i, data + i * s.each, odd);
        });
    });
}

PyObject *det(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    Array &x = only("det", args, n, names);
    if (!served(x) || x.shape()[x.ndim - 1] != x.shape()[x.ndim - 2]) return default_body();
    need_lapack();
    const int64_t size = x.shape()[x.ndim - 1];
    Ref out = of_batch(x, x.dtype, {});
    char *to = out->data;
    over_factors(x, [&](int64_t i, auto *at, bool odd) {
        using T = std::remove_reference_t<decltype(*at)>;
        T product = at[0];
        for (int64_t j = 1; j < size; j++) product = times(product, at[j * (size + 1)]);
        product = times(product, parity<T>(odd));
        reinterpret_cast<T *>(to)[i] = product;
    });
    return out.release();
}

PyObject *slogdet(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    Array &x = only("slogdet", args, n, names);
    if (!served(x) || x.shape()[x.ndim - 1] != x.shape()[x.ndim - 2]) return default_body();
    need_lapack();
    const int64_t size = x.shape()[x.ndim - 1];
    Ref sign = of_batch(x, x.dtype, {}), log = of_batch(x, real_of(x.dtype), {});
    char *signs = sign->data, *logs = log->data;
    over_factors(x, [&](int64_t i, auto *at, bool odd) {
        using T = std::remove_reference_t<decltype(*at)>;
        using R = decltype(size_of(*at));
        T product = of_length_1(at[0]);
        double total = std::log(static_cast<double>(size_of(at[0])));
        for (int64_t j = 1; j < size; j++) {
            product = times(product, of_length_1(at[j * (size + 1)]));
            total += std::log(static_cast<double>(size_of(at[j * (size + 1)])));
        }
        product = times(product, parity<T>(odd));
        reinterpret_cast<T *>(signs)[i] = product;
        reinterpret_cast<R *>(logs)[i] = static_cast<R>(total);
    });
    return as_tuple(sign, log);
}

}  // namespace

const Method linalg_methods[] = {
    MORTICE_METHOD("partial_cholesky_ex", cholesky_ex),
    MORTICE_METHOD("partial_solve_triangular", solve_triangular),
    MORTICE_METHOD("partial_lu_ex", lu_ex),
    MORTICE_METHOD("partial_pivots_to_order", pivots_to_order),
    MORTICE_METHOD("partial_lu_solve", lu_solve),
    MORTICE_METHOD("partial_solve_ex", solve_ex),
    MORTICE_METHOD("partial_inv_ex", inv_ex),
    MORTICE_METHOD("partial_det", det),
    MORTICE_METHOD("partial_slogdet", slogdet),
    MORTICE_METHOD("partial_geqrf", geqrf),
    MORTICE_METHOD("partial_qr", qr),
    MORTICE_METHOD("partial_eigh", eigh),
    MORTICE_METHOD("partial_eigvalsh", eigvalsh),
    MORTICE_METHOD("partial_eig", eig),
    MORTICE_METHOD("partial_svd", svd),
    MORTICE_METHOD("partial_svdvals", svdvals),
    {},
};

}  // namespace mortice
