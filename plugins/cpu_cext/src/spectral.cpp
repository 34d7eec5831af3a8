// QR, eigenvalues and singular values by LAPACK, and where its routines are found.
#include <cmath>
#include <cstring>
#include <string>

#include "lapack.hpp"

namespace mortice {

namespace {

using namespace linear;

template <class T> Lapack<T> table;
bool found;

template <class T> void *routine(const std::string &name) {
    void *at = blas_function(name.c_str());
    if (!at) fail(PyExc_ImportError, "cpu_cext: expected LAPACK in scipy-openblas32; it has no %s", name.c_str());
    return at;
}

template <class T> void look_up(char letter, bool complex) {
    Lapack<T> &t = table<T>;
    auto name = [&](const char *rest) { return std::string(1, letter) + rest + "_"; };
    auto take = [&](auto &to, const std::string &from) {
        to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(routine<T>(from));
    };
    take(t.potrf, name("potrf"));
    take(t.getrf, name("getrf"));
    take(t.getri, name("getri"));
    take(t.geqrf, name("geqrf"));
    take(t.orgqr, name(complex ? "ungqr" : "orgqr"));
    take(t.syevd, name(complex ? "heevd" : "syevd"));
    take(t.geev, name("geev"));
    take(t.gesdd, name("gesdd"));
    take(t.trsm, std::string("cblas_") + letter + "trsm");
}

}  // namespace

template <> const Lapack<float> &lapack(float) { return table<float>; }
template <> const Lapack<double> &lapack(double) { return table<double>; }
template <> const Lapack<cfloat> &lapack(cfloat) { return table<cfloat>; }
template <> const Lapack<cdouble> &lapack(cdouble) { return table<cdouble>; }

void need_lapack() {
    if (found) return;
    need_blas();
    look_up<float>('s', false);
    look_up<double>('d', false);
    look_up<cfloat>('c', true);
    look_up<cdouble>('z', true);
    found = true;
}

namespace {

template <class T> using Real = typename Lapack<T>::Real;

template <class T> bool is_finite(const T *x, int64_t n) {
    const auto *at = reinterpret_cast<const Real<T> *>(x);
    const int64_t count = FLOATING<T> ? n : 2 * n;
    for (int64_t i = 0; i < count; i++)
        if (!std::isfinite(at[i])) return false;
    return true;
}

bool all_good(const int *codes, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (codes[i]) return false;
    return true;
}

// ---- qr ----

// The room that both steps of a QR factorisation want.
template <class T> int qr_room(int m, int n, int columns) {
    int query = -1, code = 0, steps = m < n ? m : n;
    T best{}, other{};
    lapack(T{}).geqrf(&m, &n, &best, &m, &best, &best, &query, &code);
    if (columns > 0) lapack(T{}).orgqr(&m, &columns, &steps, &other, &m, &other, &other, &query, &code);
    const int a = whole(best, n > 1 ? n : 1), b = columns > 0 ? whole(other, columns) : 1;
    return a > b ? a : b;
}

// Factor m x n matrices, column by column at `data` and `step` elements apart; `finish` follows each, with room to work.
template <class T, class F> void factor_qr(const Shape &s, T *data, int64_t step, T *tau, int columns, F finish) {
    const int m = static_cast<int>(s.m), n = static_cast<int>(s.n), room = qr_room<T>(m, n, columns);
    const int64_t steps = s.m < s.n ? s.m : s.n;
    Scratch<T> work(static_cast<size_t>(room) * static_cast<size_t>(num_threads()));
    T *rooms = work;
    over_batch(s.batch, 2 * static_cast<double>(s.each) * static_cast<double>(steps), [&](int64_t i) {
        int rows = m, cols = n, length = room, code = 0;
        T *own = rooms + static_cast<int64_t>(thread_number()) * room;
        lapack(T{}).geqrf(&rows, &cols, data + i * step, &rows, tau + i * steps, own, &length, &code);
        finish(i, own, length);
    });
}

}  // namespace

PyObject *geqrf(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    Array &x = only("geqrf", args, n, names);
    if (!served(x)) return default_body();
    need_lapack();
    const Shape s(x);
    const Ref columns = columns_of(x);
    Ref tau = of_batch(x, x.dtype, {s.m < s.n ? s.m : s.n});
    by_dtype(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        factor_qr<T>(s, columns->as<T>(), s.each, tau->as<T>(), 0, [](int64_t, T *, int) {});
    });
    return as_tuple(turned(*columns), tau);
}

PyObject *qr(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<2> N{"qr", {"x", "mode"}, 1};
    PyObject *a[2];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    auto is = [&](const char *text) { return a[1] && PyUnicode_Check(a[1]) && PyUnicode_CompareWithASCIIString(a[1], text) == 0; };
    const bool only_r = is("r"), complete = is("complete");
    if (!served(x, complete)) return default_body();
    need_lapack();
    const Shape s(x);
    const int64_t steps = s.m < s.n ? s.m : s.n, size = complete ? s.m : steps;
    const Ref columns = columns_of(x);
    Ref r = of_batch(x, x.dtype, {size, s.n}), tau = of_batch(x, x.dtype, {steps});
    Ref q = only_r ? Ref() : of_batch(x, x.dtype, {size, s.m});  // column by column
    by_dtype(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        T *data = columns->as<T>(), *tops = r->as<T>(), *scales = tau->as<T>();
        factor_qr<T>(s, data, s.each, scales, only_r ? 0 : static_cast<int>(size), [&](int64_t i, T *work, int length) {
            const T *from = data + i * s.each;
            T *to = tops + i * size * s.n;
            for (int64_t row = 0; row < size; row++)
                for (int64_t c = 0; c < s.n; c++) to[row * s.n + c] = c < row ? T{} : from[c * s.m + row];
            if (only_r) return;
            T *made = q->as<T>() + i * size * s.m;
            memcpy(made, from, static_cast<size_t>(steps * s.m) * sizeof(T));
            int rows = static_cast<int>(s.m), cols = static_cast<int>(size), k = static_cast<int>(steps), code = 0;
            lapack(T{}).orgqr(&rows, &cols, &k, made, &rows, scales + i * steps, work, &length, &code);
        });
    });
    if (!only_r) return as_tuple(turned(*q), r);
    return as_tuple(make(x.dtype, {0}), r);
}

// ---- eigenvalues ----

namespace {

template <class T> void run_syevd(const char *job, int n, T *a, Real<T> *w, T *work, int lwork, Real<T> *rwork, int lrwork, int *iwork,
                                  int liwork, bool upper, int *info) {
    const char *half = upper ? "U" : "L";
    if constexpr (FLOATING<T>) {
        using F = void (*)(const char *, const char *, int *, T *, int *, T *, T *, int *, int *, int *, int *, size_t, size_t);
        reinterpret_cast<F>(lapack(T{}).syevd)(job, half, &n, a, &n, w, work, &lwork, iwork, &liwork, info, 1, 1);
    } else {
        using F = void (*)(const char *, const char *, int *, T *, int *, Real<T> *, T *, int *, Real<T> *, int *, int *, int *,
                           int *, size_t, size_t);
        reinterpret_cast<F>(lapack(T{}).syevd)(job, half, &n, a, &n, w, work, &lwork, rwork, &lrwork, iwork, &liwork, info, 1, 1);
    }
}

// The eigenvalues, and unless they are all that is asked for the vectors.
PyObject *hermitian(Array &x, const bool upper, const bool alone) {
    if (!served(x) || x.shape()[x.ndim - 1] != x.shape()[x.ndim - 2]) return default_body();
    need_lapack();
    const Shape s(x);
    const Ref columns = columns_of(x);
    Ref values = of_batch(x, real_of(x.dtype), {s.n});
    const char *job = alone ? "N" : "V";
    Scratch<int> codes(static_cast<size_t>(s.batch));
    int *code = codes;
    const bool good = by_dtype(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        T *data = columns->as<T>(), best{};
        if (!is_finite(data, s.batch * s.each)) return false;
        auto *w = values->as<Real<T>>();
        const int size = static_cast<int>(s.n);
        Real<T> real_best{};
        int whole_best = 0, failed = 0;
        run_syevd<T>(job, size, &best, w, &best, -1, &real_best, -1, &whole_best, -1, upper, &failed);
        const int room = whole(best, 1), real_room = whole(real_best, 1), int_room = whole_best > 1 ? whole_best : 1;
        const auto threads = static_cast<size_t>(num_threads());
        Scratch<T> work(threads * static_cast<size_t>(room));
        Scratch<Real<T>> real_work(threads * static_cast<size_t>(real_room));
        Scratch<int> int_work(threads * static_cast<size_t>(int_room));
        T *first = work;
        Real<T> *second = real_work;
        int *third = int_work;
        over_batch(s.batch, 4 * cube(s.n), [&](int64_t i) {
            const int64_t me = thread_number();
            run_syevd<T>(job, size, data + i * s.each, w + i * s.n, first + me * room, room, second + me * real_room, real_room,
                         third + me * int_room, int_room, upper, code + i);
        });
        return all_good(code, s.batch);
    });
    if (!good) return default_body();
    return alone ? values.release() : as_tuple(values, turned(*columns));
}

}  // namespace

PyObject *eigh(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<2> N{"eigh", {"x", "upper"}, 1};
    PyObject *a[2];
    arguments(N, args, n, names, a);
    return hermitian(as_array(a[0]), as_bool(a[1]), false);
}

PyObject *eigvalsh(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<2> N{"eigvalsh", {"x", "upper"}, 1};
    PyObject *a[2];
    arguments(N, args, n, names, a);
    return hermitian(as_array(a[0]), as_bool(a[1]), true);
}

namespace {

template <class T>
void run_geev(int n, T *a, T *w, Real<T> *real_w, T *vectors, T *work, int lwork, Real<T> *rwork, int *info) {
    T nothing{};
    int one = 1;
    if constexpr (FLOATING<T>) {
        using F = void (*)(const char *, const char *, int *, T *, int *, T *, T *, T *, int *, T *, int *, T *, int *, int *,
                           size_t, size_t);
        reinterpret_cast<F>(lapack(T{}).geev)("N", "V", &n, a, &n, w, real_w, &nothing, &one, vectors, &n, work, &lwork, info, 1, 1);
    } else {
        using F = void (*)(const char *, const char *, int *, T *, int *, T *, T *, int *, T *, int *, T *, int *, Real<T> *, int *,
                           size_t, size_t);
        reinterpret_cast<F>(lapack(T{}).geev)("N", "V", &n, a, &n, w, &nothing, &one, vectors, &n, work, &lwork, rwork, info, 1, 1);
    }
}

// LAPACK packs the vectors of conjugate pairs as a real and an imaginary part; here they become complex rows of `to`.
template <class R>
void unpack_pairs(int64_t n, const R *re, const R *im, const R *vectors, complex_of<R> *values, complex_of<R> *to) {
    for (int64_t j = 0; j < n; j++) {
        values[j] = {re[j], im[j]};
        const bool pair = im[j] != 0 && j + 1 < n;
        for (int64_t i = 0; i < n; i++) {
            const R x = vectors[j * n + i], y = pair ? vectors[(j + 1) * n + i] : R(0);
            to[j * n + i] = {x, y};
            if (pair) to[(j + 1) * n + i] = {x, -y};
        }
        if (pair) {
            values[j + 1] = {re[j + 1], im[j + 1]};
            j++;
        }
    }
}

}  // namespace

PyObject *eig(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    Array &x = only("eig", args, n, names);
    if (!served(x) || x.shape()[x.ndim - 1] != x.shape()[x.ndim - 2]) return default_body();
    need_lapack();
    const Shape s(x);
    const Ref columns = columns_of(x);
    const DType wide = complex_with(x.dtype);
    Ref values = of_batch(x, wide, {s.n}), vectors = of_batch(x, wide, {s.n, s.n});
    Scratch<int> codes(static_cast<size_t>(s.batch));
    int *code = codes;
    const bool good = by_dtype(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        using R = Real<T>;
        T *data = columns->as<T>(), best{};
        if (!is_finite(data, s.batch * s.each)) return false;
        const int size = static_cast<int>(s.n);
        int failed = 0;
        R unused{};
        run_geev<T>(size, data, &best, &unused, &best, &best, -1, &unused, &failed);
        const int room = whole(best, 4 * size);
        const auto threads = static_cast<size_t>(num_threads());
        // For each thread: room to work; the values' two parts, or what complex ones work with; real vectors.
        Scratch<T> work(threads * static_cast<size_t>(room)), packed(threads * static_cast<size_t>(FLOATING<T> ? s.each : 1));
        Scratch<R> parts(threads * static_cast<size_t>(2 * s.n));
        T *first = work, *real_vectors = packed;
        R *rest = parts;
        auto *w = values->as<complex_of<R>>(), *v = vectors->as<complex_of<R>>();
        over_batch(s.batch, 10 * cube(s.n), [&](int64_t i) {
            const int64_t me = thread_number();
            T *own = first + me * room;
            R *own_parts = rest + me * 2 * s.n;
            if constexpr (FLOATING<T>) {
                T *own_vectors = real_vectors + me * s.each;
                run_geev<T>(size, data + i * s.each, own_parts, own_parts + s.n, own_vectors, own, room, nullptr, code + i);
                unpack_pairs(s.n, own_parts, own_parts + s.n, own_vectors, w + i * s.n, v + i * s.each);
            } else {
                run_geev<T>(size, data + i * s.each, w + i * s.n, nullptr, v + i * s.each, own, room, own_parts, code + i);
            }
        });
        return all_good(code, s.batch);
    });
    return good ? as_tuple(values, turned(*vectors)) : default_body();
}

// ---- singular values ----

namespace {

template <class T>
void run_gesdd(const char *job, int m, int n, T *a, Real<T> *s, T *u, T *vt, int ldvt, T *work, int lwork, Real<T> *rwork, int *iwork,
               int *info) {
    if constexpr (FLOATING<T>) {
        using F = void (*)(const char *, int *, int *, T *, int *, T *, T *, int *, T *, int *, T *, int *, int *, int *, size_t);
        reinterpret_cast<F>(lapack(T{}).gesdd)(job, &m, &n, a, &m, s, u, &m, vt, &ldvt, work, &lwork, iwork, info, 1);
    } else {
        using F = void (*)(const char *, int *, int *, T *, int *, Real<T> *, T *, int *, T *, int *, T *, int *, Real<T> *, int *,
                           int *, size_t);
        reinterpret_cast<F>(lapack(T{}).gesdd)(job, &m, &n, a, &m, s, u, &m, vt, &ldvt, work, &lwork, rwork, iwork, info, 1);
    }
}

// The singular values, and unless they are all that is asked for the vectors.
PyObject *singular(Array &x, const bool full, const bool alone) {
    if (!served(x, full)) return default_body();
    need_lapack();
    const Shape s(x);
    const int64_t k = s.m < s.n ? s.m : s.n;
    // Column by column: the transposed matrix has the same values, but vectors of other signs than PyTorch's and NumPy's.
    const Ref columns = columns_of(x);
    Ref sizes = of_batch(x, real_of(x.dtype), {k}), u, vh;
    if (!alone) u = of_batch(x, x.dtype, {full ? s.m : k, s.m}), vh = of_batch(x, x.dtype, {s.n, full ? s.n : k});
    const char *job = alone ? "N" : full ? "A" : "S";
    Scratch<int> codes(static_cast<size_t>(s.batch));
    int *code = codes;
    const bool good = by_dtype(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        using R = Real<T>;
        T *data = columns->as<T>(), *left = alone ? data : u->as<T>(), *right = alone ? data : vh->as<T>(), best{};
        if (!is_finite(data, s.batch * s.each)) return false;
        R *values = sizes->as<R>(), unused{};
        const int m = static_cast<int>(s.m), n = static_cast<int>(s.n), lead = static_cast<int>(full ? s.n : k);
        int failed = 0, none = 0;
        run_gesdd<T>(job, m, n, &best, &unused, &best, &best, lead, &best, -1, &unused, &none, &failed);
        const int64_t most = s.m > s.n ? s.m : s.n;
        const int room = whole(best, 1);
        const int64_t real_room = FLOATING<T> ? 1 : 5 * k * k + 7 * k + 2 * most * k + 2 * k * k + k;
        const auto threads = static_cast<size_t>(num_threads());
        Scratch<T> work(threads * static_cast<size_t>(room));
        Scratch<R> real_work(threads * static_cast<size_t>(real_room));
        Scratch<int> int_work(threads * static_cast<size_t>(8 * k));
        T *first = work;
        R *second = real_work;
        int *third = int_work;
        over_batch(s.batch, 10 * static_cast<double>(s.each) * static_cast<double>(k), [&](int64_t i) {
            const int64_t me = thread_number();
            run_gesdd<T>(job, m, n, data + i * s.each, values + i * k, alone ? left : left + i * s.m * (full ? s.m : k),
                         alone ? right : right + i * s.n * (full ? s.n : k), lead, first + me * room, room, second + me * real_room,
                         third + me * 8 * k, code + i);
        });
        return all_good(code, s.batch);
    });
    if (!good) return default_body();
    return alone ? sizes.release() : as_tuple(turned(*u), sizes, turned(*vh));
}

}  // namespace

PyObject *svd(PyObject *const *args, Py_ssize_t count, PyObject *names) {
    static Names<2> N{"svd", {"x", "full_matrices"}, 1};
    PyObject *a[2];
    arguments(N, args, count, names, a);
    return singular(as_array(a[0]), !a[1] || as_bool(a[1]), false);
}

PyObject *svdvals(PyObject *const *args, Py_ssize_t count, PyObject *names) {
    static Names<1> N{"svdvals", {"x"}, 1};
    PyObject *a[1];
    arguments(N, args, count, names, a);
    return singular(as_array(a[0]), false, true);
}

}  // namespace mortice
