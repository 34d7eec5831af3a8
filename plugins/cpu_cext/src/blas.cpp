// OpenBLAS at run time: found through the Python package that brings it, and divided among our own threads.
#include "blas.hpp"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <string>
#include <type_traits>

#include "call.hpp"
#include "kernels/gemm.hpp"
#include "kernels/matmul.hpp"
#include "memory.hpp"
#include "parallel.hpp"

namespace mortice {

namespace {

constexpr int ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112;

template <class T> struct blas_number { using type = T; };  // how CBLAS takes alpha and beta
template <> struct blas_number<cfloat> { using type = const void *; };
template <> struct blas_number<cdouble> { using type = const void *; };
template <class T>
using Gemm = void (*)(int, int, int, int, int, int, typename blas_number<T>::type, const void *, int, const void *,
                      int, typename blas_number<T>::type, void *, int);

void *library;
Gemm<float> gemm_s;
Gemm<double> gemm_d;
Gemm<cfloat> gemm_c;
Gemm<cdouble> gemm_z;

Gemm<float> routine(float) { return gemm_s; }
Gemm<double> routine(double) { return gemm_d; }
Gemm<cfloat> routine(cfloat) { return gemm_c; }
Gemm<cdouble> routine(cdouble) { return gemm_z; }

inline float number(const float &x) { return x; }
inline double number(const double &x) { return x; }
inline const void *number(const cfloat &x) { return &x; }
inline const void *number(const cdouble &x) { return &x; }

// The library of the package, as `import scipy_openblas32` knows it; a new reference to its path.
PyObject *library_path() {
    PyObject *package = PyImport_ImportModule("scipy_openblas32");
    if (!package) return nullptr;
    PyObject *folder = PyObject_CallMethod(package, "get_lib_dir", nullptr);
    PyObject *file = folder ? PyObject_CallMethod(package, "get_library", "(O)", Py_True) : nullptr;
    PyObject *path = file ? PyUnicode_FromFormat("%U/%U", folder, file) : nullptr;
    Py_XDECREF(file);
    Py_XDECREF(folder);
    Py_DECREF(package);
    return path;
}

[[noreturn]] void refuse(const char *why) {
    fail(PyExc_ImportError, "cpu_cext: expected the BLAS library of scipy-openblas32; %s. Reinstall scipy-openblas32", why);
}

// Threads of its own would only idle: it reads this once, while it is being loaded.
void *load_quietly(const char *path) {
    static const char name[] = "OPENBLAS_NUM_THREADS";
    const char *given = getenv(name);
    const std::string before = given ? given : "";
    setenv(name, "1", 1);
    void *found = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (given) setenv(name, before.c_str(), 1);
    else unsetenv(name);
    return found;
}

template <class F> void look_up(F &function, const char *name) {
    function = reinterpret_cast<F>(blas_function(name));
    if (!function) refuse(name);
}

void load() {
    PyObject *path = library_path();
    if (!path) {
        if (!PyErr_ExceptionMatches(PyExc_Exception)) throw Failed{};  // an interrupt
        PyErr_Clear();
        refuse("the package is missing or broken");
    }
    const char *text = PyUnicode_AsUTF8(path);
    void *found = text ? load_quietly(text) : nullptr;
    Py_DECREF(path);
    if (!found) {
        const char *why = dlerror();
        refuse(why ? why : "it has no readable path");
    }
    library = found;
    look_up(gemm_s, "cblas_sgemm");
    look_up(gemm_d, "cblas_dgemm");
    look_up(gemm_c, "cblas_cgemm");
    look_up(gemm_z, "cblas_zgemm");
    if (void *threads = blas_function("openblas_set_num_threads")) reinterpret_cast<void (*)(int)>(threads)(1);
}

}  // namespace

void need_blas() {
    if (!gemm_z) load();
}

void *blas_function(const char *name) {
    const std::string prefixed = std::string("scipy_") + name;
    void *found = dlsym(library, prefixed.c_str());
    return found ? found : dlsym(library, name);
}

namespace {

// ---- what int cannot count ----

constexpr int64_t SPAN = 1 << 30;  // rows or columns in one call

template <class T>
inline void call(bool ta, bool tb, int64_t m, int64_t n, int64_t k, T alpha, const T *a, int64_t lda, const T *b,
                 int64_t ldb, T beta, T *c, int64_t ldc) {
    routine(T{})(ROW_MAJOR, ta ? TRANSPOSED : PLAIN, tb ? TRANSPOSED : PLAIN, static_cast<int>(m), static_cast<int>(n),
                 static_cast<int>(k), number(alpha), a, static_cast<int>(lda), b, static_cast<int>(ldb), number(beta), c,
                 static_cast<int>(ldc));
}

template <class T> inline bool is_zero(T a) { return a == 0; }
inline bool is_zero(cfloat a) { return a.re == 0 && a.im == 0; }
inline bool is_zero(cdouble a) { return a.re == 0 && a.im == 0; }
template <class T> constexpr T one() {
    if constexpr (sizeof(T) == sizeof(float) || std::is_same_v<T, double>) return T(1);
    else return {1, 0};
}

// Rows further apart than an int can say: matrices of several gigabytes, multiplied element by element.
template <class T>
void gemm_by_hand(bool ta, bool tb, int64_t m, int64_t n, int64_t k, T alpha, const T *a, int64_t lda, const T *b,
                  int64_t ldb, T beta, T *c, int64_t ldc) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            T sum{};
            for (int64_t l = 0; l < k; l++)
                sum = plus(sum, times(a[ta ? l * lda + i : i * lda + l], b[tb ? j * ldb + l : l * ldb + j]));
            T &at = c[i * ldc + j];
            at = is_zero(beta) ? times(alpha, sum) : plus(times(alpha, sum), times(beta, at));
        }
}

template <class T>
void gemm_in_spans(bool ta, bool tb, int64_t m, int64_t n, int64_t k, T alpha, const T *a, int64_t lda, const T *b,
                   int64_t ldb, T beta, T *c, int64_t ldc) {
    if (lda > INT_MAX || ldb > INT_MAX || ldc > INT_MAX)
        return gemm_by_hand(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    for (int64_t i = 0; i < m; i += SPAN)
        for (int64_t j = 0; j < n; j += SPAN)
            for (int64_t l = 0; l < k; l += SPAN) {
                const T *from_a = a + (ta ? l * lda + i : i * lda + l), *from_b = b + (tb ? j * ldb + l : l * ldb + j);
                call(ta, tb, m - i < SPAN ? m - i : SPAN, n - j < SPAN ? n - j : SPAN, k - l < SPAN ? k - l : SPAN,
                     alpha, from_a, lda, from_b, ldb, l ? one<T>() : beta, c + i * ldc + j, ldc);
            }
}

// ---- which kernel takes a product ----

constexpr double SMALL_ROWS = 32768, SMALL_DOTS = 4096;  // multiply-adds up to which our own kernels are faster

// Whether few rows meet so many columns of such length that packing the columns would take longer than reading them.
inline bool thin(int64_t m, int64_t n, int64_t k) {
    return n * k >= 16384 && (m <= 4 || n <= 4 || (k >= 256 && m <= k / 16 && m <= 128 && n >= 4 * m));
}

// ---- products with 32 wide registers ----

#if defined(MORTICE_PACKED)
inline const GemmKernel<float> &packing(float) { return avx512::gemm_table.f32; }
inline const GemmKernel<double> &packing(double) { return avx512::gemm_table.f64; }

inline int64_t over(int64_t n, int64_t unit) { return (n + unit - 1) / unit; }

// C = start + A B, start's rows lds apart (nullptr for none). B is packed in blocks that the second cache holds, and each block
// meets strips of A's rows. False where there is no memory for that.
template <class T>
bool packed_gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const T *a, int64_t lda, const T *b, int64_t ldb,
                 const T *start, int64_t lds, T *c, int64_t ldc) {
    constexpr int64_t BLOCK = (1 << 20) / sizeof(T);  // elements of B
    const auto own = packing(T{});
    const int64_t ra = ta ? 1 : lda, ca = ta ? lda : 1, rb = tb ? 1 : ldb, cb = tb ? ldb : 1, W = own.panel;
    const int64_t depth = over(over(k, over(k, GEMM_DEPTH<T>)), 8) * 8, panels = over(n, W);
    const int64_t wide = over(panels, over(panels * W * depth, BLOCK)), depths = over(k, depth);
    // Blocks of few columns are several at once: C is read and written less often. Of less than one there is none to spare.
    const int64_t most = BLOCK / 2 / (depth * wide * W), blocks = most < 2 ? 1 : over(depths, over(depths, most));
    const int64_t strips = over(m, GEMM_ROWS), low = (strips * GEMM_ROWS - m) / (GEMM_ROWS - GEMM_FEWER);
    const int64_t at_once = ta ? GEMM_STRIPS : 1;  // strips that are read together
    const auto first = [=](int64_t s) {
        const int64_t row = s * GEMM_ROWS - (s < low ? s : low) * (GEMM_ROWS - GEMM_FEWER);
        return row < m ? row : m;
    };
    struct Room {
        void *at;
        ~Room() { memory_give(at); }
    } const taken{memory_take(static_cast<size_t>(blocks * depth * wide * W) * sizeof(T))};  // no Scratch: it may throw
    if (!taken.at) return false;
    T *const room = static_cast<T *>(taken.at);
    for (int64_t p = 0; p < panels; p += wide) {
        const int64_t some = panels - p < wide ? panels - p : wide, from = p * W, width = n - from < some * W ? n - from : some * W;
        for (int64_t l = 0; l < k; l += blocks * depth) {
            const int64_t deep = k - l < blocks * depth ? k - l : blocks * depth, parts = over(deep, depth);
            const auto steps = [=](int64_t i) { return deep - i * depth < depth ? deep - i * depth : depth; };
            const auto place = [=](int64_t i) { return room + i * depth * some * W; };
            for (int64_t i = 0; i < parts; i++)
                own.pack(steps(i), width, b + (l + i * depth) * rb + from * cb, rb, cb, place(i));
            for (int64_t s = 0; s < strips; s += at_once) {
                const int64_t row = first(s), rows = first(s + at_once) - row;
                T *const to = c + row * ldc + from;
                for (int64_t i = 0; i < parts; i++) {
                    const bool begun = l + i > 0;
                    own.strips(low - s, rows, width, steps(i), a + row * ra + (l + i * depth) * ca, ra, ca, place(i),
                               begun ? to : start ? start + row * lds + from : start, begun ? ldc : lds, to, ldc);
                }
            }
        }
    }
    return true;
}

// Whether that is worth it. Columns of B side by side are read where they lie unless many rows and columns share the packing.
inline bool for_packing(bool tb, int64_t m, int64_t n, int64_t k) {
    if (cpu_level() != LEVEL_AVX512) return false;
    if (tb) return m >= 16 && n >= 8 && k >= 8 && !thin(m, n, k);
    return m >= 192 && n > 64 && k >= 16 && static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) > 1.6e7;
}
#else
template <class... A> bool packed_gemm(A...) { return false; }
inline bool for_packing(bool, int64_t, int64_t, int64_t) { return false; }
#endif

// ---- one product ----

template <class T> struct Products {
    Product<T> rows, dots;
    void (*combine)(int64_t n, int64_t k, const T *a, int64_t ca, const T *b, int64_t ldb, T *c, bool add);
    int64_t lanes;  // enough for the widest vectors
};
inline Products<float> products(float) { return {matmul().rows_f32, matmul().dots_f32, matmul().combine_f32, 16}; }
inline Products<double> products(double) { return {matmul().rows_f64, matmul().dots_f64, matmul().combine_f64, 8}; }

// One row times the columns of B^T; the row is gathered where its elements lie apart.
template <class T>
void dots_with(Product<T> dots, int64_t n, int64_t k, const T *a, int64_t ca, const T *b, int64_t ldb, T *c, bool add) {
    if (ca == 1) return dots(1, n, k, a, k, 1, b, ldb, c, n, add);
    constexpr int64_t ROOM = 1024;
    T row[ROOM];
    for (int64_t l = 0; l < k; l += ROOM) {
        const int64_t width = k - l < ROOM ? k - l : ROOM;
        for (int64_t i = 0; i < width; i++) row[i] = a[(l + i) * ca];
        dots(1, n, width, row, width, 1, b + l, ldb, c, n, add || l > 0);
    }
}

template <class T> void scale_rows(int64_t m, int64_t n, T beta, T *c, int64_t ldc) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) c[i * ldc + j] = is_zero(beta) ? T{} : times(beta, c[i * ldc + j]);
}

// Products that the library's own preparations would cost more than: true when `c` has been computed here.
template <class T>
bool small_gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const T *a, int64_t lda, const T *b, int64_t ldb, bool add,
                T *c, int64_t ldc) {
    if (n == 1 && m > 1 && ldc == 1)  // C^T = B^T A^T
        return small_gemm(!tb, !ta, n, m, k, b, ldb, a, lda, add, c, m);
    const auto own = products(T{});
    const int64_t ra = ta ? 1 : lda, ca = ta ? lda : 1;
    if (m == 1) {
        if (tb || (n == 1 && ldb == 1)) dots_with(own.dots, n, k, a, ca, b, ldb, c, add);  // a column lies as its row does
        else if (n <= 8 * own.lanes) own.rows(1, n, k, a, ra, ca, b, ldb, c, ldc, add);
        else own.combine(n, k, a, ca, b, ldb, c, add);
        return true;
    }
    constexpr int64_t FEW = 512;
    if (tb && m >= 8 && n * k <= FEW && cpu_level() == LEVEL_AVX512) {  // turned round, the columns are read as rows
        T turned[FEW];
        for (int64_t j = 0; j < n; j++)
            for (int64_t l = 0; l < k; l++) turned[l * n + j] = b[j * ldb + l];
        own.rows(m, n, k, a, ra, ca, turned, n, c, ldc, add);
        return true;
    }
    if (for_packing(tb, m, n, k) && packed_gemm(ta, tb, m, n, k, a, lda, b, ldb, add ? c : nullptr, ldc, c, ldc)) return true;
    const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    if (!tb && (work <= SMALL_ROWS || cpu_level() == LEVEL_AVX512)) own.rows(m, n, k, a, ra, ca, b, ldb, c, ldc, add);
    else if (tb && ca == 1 && (work <= SMALL_DOTS || thin(m, n, k))) own.dots(m, n, k, a, ra, ca, b, ldb, c, ldc, add);
    else return false;
    return true;
}

template <class T>
inline void one_gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, T alpha, const T *a, int64_t lda, const T *b,
                     int64_t ldb, T beta, T *c, int64_t ldc, const T *row) {
    if (m <= 0 || n <= 0) return;
    if (row) {
        if constexpr (std::is_floating_point_v<T>)
            if (k > 0 && for_packing(tb, m, n, k) && packed_gemm(ta, tb, m, n, k, a, lda, b, ldb, row, 0, c, ldc)) return;
        for (int64_t i = 0, more; i < m; i += more) {  // of short rows as many at once as lie there
            more = i && ldc == n ? std::min({i, m - i, 1 + 4096 / n}) : 1;
            memcpy(c + i * ldc, i ? c : row, static_cast<size_t>(more * n) * sizeof(T));
        }
    }
    if (k <= 0) return scale_rows(m, n, beta, c, ldc);
    if constexpr (std::is_floating_point_v<T>)
        if (alpha == 1 && (beta == 0 || beta == 1) && small_gemm(ta, tb, m, n, k, a, lda, b, ldb, beta == 1, c, ldc)) return;
    if ((m | n | k | lda | ldb | ldc) >= SPAN) gemm_in_spans(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    else call(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

// ---- a product on all threads ----

constexpr double WORTH = 1.5e5;  // multiply-adds that a thread should have: some microseconds

// The larger side is divided, in whole tiles of the library's kernels: what each thread packs anew is the other side.
template <class T>
void gemm_on_threads(bool ta, bool tb, int64_t m, int64_t n, int64_t k, T alpha, const T *a, int64_t lda, const T *b,
                     int64_t ldb, T beta, T *c, int64_t ldc, const T *row) {
    const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    const bool packs = std::is_floating_point_v<T> && for_packing(tb, m, n, k);
    const int64_t tile = packs ? 32 : 16, threads = num_threads();
    const bool rows = m >= (packs ? 2 * n : n);
    const int64_t tiles = ((rows ? m : n) + tile - 1) / tile;
    int64_t parts = work / WORTH < static_cast<double>(threads) ? static_cast<int64_t>(work / WORTH) : threads;
    if (parts > tiles) parts = tiles;
    if (parts <= 1 || in_parallel()) return gemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, row);
    parallel_for(parts, 1, [&](int64_t begin, int64_t end) {
        const int64_t size = rows ? m : n, low = tiles * begin / parts * tile;
        const int64_t high = end == parts ? size : tiles * end / parts * tile;
        if (rows) gemm(ta, tb, high - low, n, k, alpha, a + (ta ? low : low * lda), lda, b, ldb, beta, c + low * ldc, ldc, row);
        else gemm(ta, tb, m, high - low, k, alpha, a, lda, b + (tb ? low * ldb : low), ldb, beta, c + low, ldc, row ? row + low : row);
    });
}

}  // namespace

#define MORTICE_GEMM(T)                                                                                                \
    void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, T alpha, const T *a, int64_t lda, const T *b,         \
              int64_t ldb, T beta, T *c, int64_t ldc, const T *row) {                                                  \
        one_gemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, row);                                           \
    }                                                                                                                  \
    void gemm_parallel(bool ta, bool tb, int64_t m, int64_t n, int64_t k, T alpha, const T *a, int64_t lda, const T *b, \
                       int64_t ldb, T beta, T *c, int64_t ldc, const T *row) {                                         \
        gemm_on_threads(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, row);                                    \
    }
MORTICE_GEMM(float) MORTICE_GEMM(double) MORTICE_GEMM(cfloat) MORTICE_GEMM(cdouble)
#undef MORTICE_GEMM

template <class T>
bool gemm_packed(bool ta, int64_t m, int64_t n, int64_t k, const T *a, int64_t lda, const T *b, int64_t ldb, T *c, int64_t ldc) {
    return packed_gemm(ta, false, m, n, k, a, lda, b, ldb, static_cast<const T *>(nullptr), int64_t{0}, c, ldc);
}
template bool gemm_packed(bool, int64_t, int64_t, int64_t, const float *, int64_t, const float *, int64_t, float *, int64_t);
template bool gemm_packed(bool, int64_t, int64_t, int64_t, const double *, int64_t, const double *, int64_t, double *, int64_t);

}  // namespace mortice
