// Products of vectors, matrices and batches of them. Operands are read where they lie: transposed ones and steps between
// rows are what BLAS takes as they are, and only what it cannot is copied.
#include <cstring>

#include "call.hpp"
#include "families.hpp"
#include "blas.hpp"
#include "kernels/matmul.hpp"
#include "kernels/tiles.hpp"
#include "parallel.hpp"

namespace mortice {

namespace {

// One operand: its matrices, and how they follow each other along the axes of the batch.
struct Side {
    const char *data;
    int64_t rows, columns, row_step, column_step;
    int64_t batch[MAX_NDIM];  // steps, aligned to the axes of the result
};

// How BLAS takes a matrix.
struct Layout {
    bool usable, transposed;
    int64_t lead;
};

Layout layout(const Side &s) {
    const auto &[data, m, n, rs, cs, batch] = s;
    if ((cs == 1 || n == 1) && (m == 1 || rs >= n)) return {true, false, m == 1 ? n : rs};
    if ((rs == 1 || m == 1) && (n == 1 || cs >= m)) return {true, true, n == 1 ? m : cs};
    return {false, false, 0};
}

struct Problem {
    int64_t m, n, k, batch;  // the number of products
    int ndim;                // axes of the batch
    int64_t shape[MAX_NDIM + 2];
    Side x, y;
};

void place(Side &s, const Array &x, const Problem &p, bool left) {
    s.data = x.data;
    const int64_t *shape = x.shape(), *strides = x.strides();
    const int nd = x.ndim;
    if (nd == 1) {
        s.rows = left ? 1 : shape[0], s.columns = left ? shape[0] : 1;
        s.row_step = left ? 0 : strides[0], s.column_step = left ? strides[0] : 0;
    } else {
        s.rows = shape[nd - 2], s.columns = shape[nd - 1];
        s.row_step = strides[nd - 2], s.column_step = strides[nd - 1];
    }
    const int own = nd > 2 ? nd - 2 : 0;
    for (int i = 0; i < p.ndim; i++) {
        const int at = i - (p.ndim - own);
        s.batch[i] = at < 0 || shape[at] == 1 ? 0 : strides[at];
    }
}

[[noreturn]] void refuse(const Array &x, const Array &y) {
    PyObject *a = tuple_of(x.ndim, x.shape()), *b = tuple_of(y.ndim, y.shape());
    if (a && b) PyErr_Format(PyExc_ValueError, "matmul: expected shapes that can be multiplied; got %R @ %R", a, b);
    Py_XDECREF(a);
    Py_XDECREF(b);
    throw Failed{};
}

// Sizes and the batch's shape; the result's shape is left in p.shape, its ndim is returned.
int set_up(Problem &p, const Array &x, const Array &y) {
    const int own_x = x.ndim > 2 ? x.ndim - 2 : 0, own_y = y.ndim > 2 ? y.ndim - 2 : 0;
    p.ndim = own_x > own_y ? own_x : own_y;
    p.batch = 1;
    for (int i = 0; i < p.ndim; i++) {
        const int ix = i - (p.ndim - own_x), iy = i - (p.ndim - own_y);
        const int64_t a = ix < 0 ? 1 : x.shape()[ix], b = iy < 0 ? 1 : y.shape()[iy];
        if (a != b && a != 1 && b != 1) refuse(x, y);
        p.shape[i] = a == 1 ? b : a;
        p.batch *= p.shape[i];
    }
    place(p.x, x, p, true);
    place(p.y, y, p, false);
    if (p.x.columns != p.y.rows) refuse(x, y);
    p.m = p.x.rows, p.k = p.x.columns, p.n = p.y.columns;
    int nd = p.ndim;
    if (x.ndim > 1) p.shape[nd++] = p.m;
    if (y.ndim > 1) p.shape[nd++] = p.n;
    return nd;
}

// Rows of all the batch's matrices times one matrix are one product.
void fold_batch(Problem &p) {
    if (p.batch <= 1) {
        p.ndim = 0;
        return;
    }
    Side whole = p.x;
    if (p.m == 1) whole.row_step = p.x.batch[p.ndim - 1];
    for (int i = p.ndim - 1; i >= 0; i--) {
        if (p.shape[i] == 1) continue;
        if (p.y.batch[i] != 0 || p.x.batch[i] != whole.row_step * whole.rows) return;
        whole.rows *= p.shape[i];
    }
    if (!layout(whole).usable) return;  // rows that lie in each other, of an expanded array
    p.x = whole;
    p.m = whole.rows;
    p.ndim = 0, p.batch = 1;
}

// Calls one(x, y, index) for each product of the batch in [begin, end), with offsets in elements.
template <class F> void over_batch(const Problem &p, int64_t begin, int64_t end, F one) {
    int64_t index[MAX_NDIM], x = 0, y = 0, rest = begin;
    for (int i = p.ndim - 1; i >= 0; i--) {
        index[i] = rest % p.shape[i];
        rest /= p.shape[i];
        x += index[i] * p.x.batch[i];
        y += index[i] * p.y.batch[i];
    }
    for (int64_t b = begin; b < end; b++) {
        one(x, y, b);
        for (int i = p.ndim - 1; i >= 0; i--) {
            x += p.x.batch[i], y += p.y.batch[i];
            if (++index[i] < p.shape[i]) break;
            x -= index[i] * p.x.batch[i], y -= index[i] * p.y.batch[i];
            index[i] = 0;
        }
    }
}

double steps(const Problem &p) {
    return static_cast<double>(p.batch) * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
}

int64_t work_of(const Problem &p) {
    const double work = steps(p);
    return work > 1e15 ? int64_t{1} << 50 : static_cast<int64_t>(work);
}

// ---- floating point ----

constexpr int64_t DOT_BLOCK = 1 << 15;  // whatever the number of threads, a long dot is the sum of these

template <class T> void long_dot(const T *x, const T *y, T *out, int64_t k) {
    const int64_t blocks = (k + DOT_BLOCK - 1) / DOT_BLOCK;
    Scratch<T> sums(static_cast<size_t>(blocks));
    T *at = sums;
    parallel_for(blocks, 4, [=](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; b++) {
            const int64_t low = b * DOT_BLOCK, size = k - low < DOT_BLOCK ? k - low : DOT_BLOCK;
            gemm(false, true, 1, 1, size, T(1), x + low, size, y + low, size, T(0), at + b, 1);
        }
    });
    double total = 0;
    for (int64_t b = 0; b < blocks; b++) total += static_cast<double>(at[b]);
    *out = static_cast<T>(total);
}

// Below so many steps the terms are added one after another and none is contracted, as PyTorch's `bmm` does: what cancels
// gives 0, and the result is PyTorch's to the last bit. A few dozen take less time than a call of `gemm`, some hundred in a
// batch up to three times as much. (One dot alone is the BLAS library's, as there.)
constexpr double FEW = 400;

template <class T> void small_product(const Problem &p, const T *x, const T *y, T *out) {
    for (int64_t i = 0; i < p.m; i++, x += p.x.row_step, out += p.n) {
        int64_t j = 0;
        if constexpr (std::is_floating_point_v<T>) {
            typedef T Wide __attribute__((vector_size(16)));
            for (const int64_t w = 16 / sizeof(T); p.y.column_step == 1 && j + w <= p.n; j += w) {
                Wide sum{}, row;
                for (int64_t l = 0; l < p.k; l++) {
                    memcpy(&row, y + j + l * p.y.row_step, sizeof row);
                    sum += x[l * p.x.column_step] * row;
                }
                memcpy(out + j, &sum, sizeof sum);
            }
        }
        for (; j < p.n; j++) {
            T sum{};
            for (int64_t l = 0; l < p.k; l++)
                sum = plus(sum, times(x[l * p.x.column_step], y[j * p.y.column_step + l * p.y.row_step]));
            out[j] = sum;
        }
    }
}

template <class T> constexpr T unit() {
    if constexpr (std::is_floating_point_v<T>) return T(1);
    else return {1, 0};
}

// With `row` it is added to each row of the product; there is one then, not a batch.
template <class T> void multiply(const Problem &p, T *out, const T *row = nullptr) {
    const auto *x = reinterpret_cast<const T *>(p.x.data), *y = reinterpret_cast<const T *>(p.y.data);
    const Layout a = layout(p.x), b = layout(p.y);
    if constexpr (std::is_floating_point_v<T>)
        if (!row && p.m == 1 && p.n == 1 && p.batch == 1 && p.k > DOT_BLOCK && p.x.column_step == 1 && p.y.row_step == 1)
            return long_dot(x, y, out, p.k);
    const double one = static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
    if (p.batch == 1 && !row && one < FEW && (p.m * p.n > 1 || p.k <= 16)) return small_product(p, x, y, out);
    if (p.batch == 1)
        return gemm_parallel(a.transposed, b.transposed, p.m, p.n, p.k, unit<T>(), x, a.lead, y, b.lead, row ? unit<T>() : T{},
                             out, p.n, row);
    const int64_t threads = num_threads();
    // A few large products are divided themselves: the threads then end together.
    if (p.batch % threads != 0 && p.batch < 4 * threads && one > 1e6) {
        over_batch(p, 0, p.batch, [&](int64_t at_x, int64_t at_y, int64_t i) {
            gemm_parallel(a.transposed, b.transposed, p.m, p.n, p.k, unit<T>(), x + at_x, a.lead, y + at_y, b.lead, T{},
                          out + i * p.m * p.n, p.n);
        });
        return;
    }
    const double grain = 2e5 / (one + 100);
    parallel_for(p.batch, grain < 1 ? 1 : static_cast<int64_t>(grain), [&](int64_t begin, int64_t end) {
        over_batch(p, begin, end, [&](int64_t at_x, int64_t at_y, int64_t i) {
            if (one < FEW) return small_product(p, x + at_x, y + at_y, out + i * p.m * p.n);
            gemm(a.transposed, b.transposed, p.m, p.n, p.k, unit<T>(), x + at_x, a.lead, y + at_y, b.lead, T{},
                 out + i * p.m * p.n, p.n);
        });
    });
}

// ---- integers ----

// With `add` the products go on top of what `to` holds; there is one then, not a batch.
template <class T> void multiply_by(Product<T> rows, const Problem &p, void *to, bool add) {
    const auto *x = reinterpret_cast<const T *>(p.x.data), *y = reinterpret_cast<const T *>(p.y.data);
    auto *out = static_cast<T *>(to);
    const double one = static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k) + 100;
    if (p.batch == 1) {
        const double grain = 1e5 * static_cast<double>(p.m) / one;
        parallel_for(p.m, grain < 1 ? 1 : static_cast<int64_t>(grain), [&](int64_t begin, int64_t end) {
            rows(end - begin, p.n, p.k, x + begin * p.x.row_step, p.x.row_step, p.x.column_step, y, p.y.row_step,
                 out + begin * p.n, p.n, add);
        });
        return;
    }
    const double grain = 1e5 / one;
    parallel_for(p.batch, grain < 1 ? 1 : static_cast<int64_t>(grain), [&](int64_t begin, int64_t end) {
        over_batch(p, begin, end, [&](int64_t at_x, int64_t at_y, int64_t i) {
            rows(p.m, p.n, p.k, x + at_x, p.x.row_step, p.x.column_step, y + at_y, p.y.row_step, out + i * p.m * p.n, p.n,
                 false);
        });
    });
}

void multiply_integers(DType d, const Problem &p, void *out, bool add = false) {
    if (d == BOOL) return multiply_by(matmul().rows_bool, p, out, add);
    switch (ITEMSIZE[d]) {
        case 1: return multiply_by(matmul().rows_u8, p, out, add);
        case 2: return multiply_by(matmul().rows_u16, p, out, add);
        case 4: return multiply_by(matmul().rows_u32, p, out, add);
        default: return multiply_by(matmul().rows_u64, p, out, add);
    }
}

// ---- bfloat16 ----

#if defined(MORTICE_TILES)
// Whether the machine has a matrix unit, and it pays.
bool for_tiles(const Problem &p, DType d) {
    return d == BF16 && p.m >= 8 && p.n >= 8 && p.k >= 8 && steps(p) >= 3e4 * static_cast<double>(p.batch) && tiles_ready();
}

// x y, plus a row of floats if there is one.
void multiply_tiles(const Problem &p, const float *bias, bhalf *out) {
    const auto *x = reinterpret_cast<const bhalf *>(p.x.data), *y = reinterpret_cast<const bhalf *>(p.y.data);
    const int64_t rows = (p.m + 15) / 16, columns = (p.n + 15) / 16, step = (p.k + TILE_DEPTH - 1) / TILE_DEPTH * TILE_BYTES;
    // As many products at once, and of columns as many, as the caches hold.
    const int64_t most = 4 << 20, size = (rows + columns) * step, together = size < most ? most / size : 1;
    const int64_t at_once = together < p.batch ? together : p.batch, wide = (1 << 20) / step / 2 * 2 > 2 ? (1 << 20) / step / 2 * 2 : 2;
    const Scratch<char> room(static_cast<size_t>(at_once * size));
    char *const to = room;
    const int64_t row_pairs = (rows + 1) / 2, strips = (columns + wide - 1) / wide;
    for (int64_t low = 0; low < p.batch; low += at_once) {
        const int64_t high = low + at_once < p.batch ? low + at_once : p.batch;
        const int64_t sides = (high - low) * (rows + columns), tasks = (high - low) * row_pairs * strips;
        parallel_for(sides, 1 + (1 << 16) / (16 * p.k), [&](int64_t begin, int64_t end) {
            const int64_t each = rows + columns;
            over_batch(p, low + begin / each, low + (end + each - 1) / each, [&](int64_t at_x, int64_t at_y, int64_t b) {
                const int64_t base = (b - low) * each;
                for (int64_t i = begin > base ? begin - base : 0; i < each && base + i < end; i++) {
                    const bool left = i < rows;
                    const int64_t from = 16 * (left ? i : i - rows), rest = (left ? p.m : p.n) - from, count = rest < 16 ? rest : 16;
                    const TileSide side = left ? TileSide{x + at_x + from * p.x.row_step, count, p.x.row_step, p.x.column_step}
                                               : TileSide{y + at_y + from * p.y.column_step, count, p.y.column_step, p.y.row_step};
                    tiles_pack(side, p.k, left, to + (base + i) * step);
                }
            });
        });
        parallel_for(tasks, 1 + (1 << 23) / (512 * wide * p.k), [&](int64_t begin, int64_t end) {
            for (int64_t t = begin; t < end; t++) {
                const int64_t pair = t % row_pairs, strip = t / row_pairs % strips, b = t / row_pairs / strips;
                const int64_t j = strip * wide * 16, n = p.n - j < wide * 16 ? p.n - j : wide * 16;
                const char *from = to + b * size;
                tiles_multiply(p.m - pair * 32, n, p.k, from + 2 * pair * step, from + (rows + strip * wide) * step,
                               bias ? bias + j : nullptr, out + ((low + b) * p.m + pair * 32) * p.n + j, p.n);
            }
        });
    }
}
#else
bool for_tiles(const Problem &, DType) { return false; }
void multiply_tiles(const Problem &, const float *, bhalf *) {}
#endif

// ---- the kernel ----

Ref product(Array &x, Array &y) {
    Problem p;
    const int nd = set_up(p, x, y);
    if (for_tiles(p, x.dtype)) {
        fold_batch(p);
        Ref out = make(BF16, nd, p.shape);
        Unlocked free(work_of(p) / 8);
        multiply_tiles(p, nullptr, out->as<bhalf>());
        return out;
    }
    // Halves are added up in float, and rounded once.
    if (is_half(x.dtype)) {
        const Ref wide_x = converted(x, F32), wide_y = converted(y, F32);
        return converted(*product(*wide_x, *wide_y), x.dtype);
    }
    const bool floats = x.dtype >= F32;
    Ref kept_x, kept_y;
    if (p.m && p.n && p.batch && p.k) {
        if (floats && !layout(p.x).usable) {
            kept_x = contiguous(x);
            place(p.x, *kept_x, p, true);
        }
        if (floats ? !layout(p.y).usable : p.n > 1 && p.y.column_step != 1) {
            kept_y = contiguous(y);
            place(p.y, *kept_y, p, false);
        }
    }
    Ref out = make(x.dtype, nd, p.shape);
    if (out->size == 0) return out;
    if (p.k == 0) {
        const Scalar zero = scalar_of(0, x.dtype);
        fill(*out, zero.bytes);
        return out;
    }
    fold_batch(p);
    Unlocked free(work_of(p));
    if (x.dtype == F32) multiply(p, out->as<float>());
    else if (x.dtype == F64) multiply(p, out->as<double>());
    else if (x.dtype == C64) multiply(p, out->as<cfloat>());
    else if (x.dtype == C128) multiply(p, out->as<cdouble>());
    else multiply_integers(x.dtype, p, out->data);
    return out;
}

PyObject *matmul_kernel(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<2> N{"matmul", {"x", "y"}, 2};
    PyObject *a[2];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]), &y = as_array(a[1]);
    if (x.dtype != y.dtype)
        fail(PyExc_TypeError, "matmul: expected one dtype; got %s and %s", DTYPE_NAMES[x.dtype], DTYPE_NAMES[y.dtype]);
    if (x.ndim == 0 || y.ndim == 0) fail(PyExc_ValueError, "matmul: expected arrays of at least one axis; got a number");
    need_blas();
    return product(x, y).release();
}

// ---- affine maps: leading axes are rows of one matrix ----

Side rows_of(Array &x, Ref &kept) {
    const int nd = x.ndim;
    const int64_t columns = x.shape()[nd - 1], step = x.strides()[nd - 1];
    if (nd == 1) return {x.data, 1, columns, 0, step, {}};
    if (nd == 2) return {x.data, x.shape()[0], columns, x.strides()[0], step, {}};
    kept = contiguous(x);
    return {kept->data, columns ? x.size / columns : count(nd - 1, x.shape()), columns, columns, 1, {}};
}

Side transposed(const Side &s) { return {s.data, s.columns, s.rows, s.column_step, s.row_step, {}}; }

// Copy what the loops cannot read where it lies.
void settle(Side &s, Array &owner, bool right, Ref &kept) {
    const bool fine = owner.dtype >= F32 ? layout(s).usable : !right || s.columns <= 1 || s.column_step == 1;
    if (fine) return;
    const int64_t shape[] = {s.rows, s.columns}, strides[] = {s.row_step, s.column_step};
    Ref view = make_view(owner, const_cast<char *>(s.data), 2, shape, strides);
    kept = contiguous(*view);
    s.data = kept->data, s.row_step = s.columns, s.column_step = 1;
}

void alone(Problem &p) {
    p.m = p.x.rows, p.k = p.x.columns, p.n = p.y.columns;
    p.ndim = 0, p.batch = 1;
}

// x y, plus a row of floats if there is one, by the matrix unit; empty where that is not to be.
Ref by_tiles(Problem &p, DType d, int ndim, const int64_t *shape, const Array *bias) {
    alone(p);
    if (!for_tiles(p, d)) return {};
    Ref out = make(d, ndim, shape);
    Unlocked free(work_of(p) / 8);
    multiply_tiles(p, bias ? bias->as<float>() : nullptr, out->as<bhalf>());
    return out;
}

// x y, plus a row `bias` if there is one, into `out`, which is row-major.
void multiply_rows(DType d, Problem &p, Array &out, const Array *bias) {
    alone(p);
    if (out.size == 0) return;
    Unlocked free(work_of(p) + out.size);
    const auto floating = [&]<class T>(T) { multiply(p, out.as<T>(), bias ? bias->as<T>() : nullptr); };
    if (d == F32) return floating(float{});
    if (d == F64) return floating(double{});
    if (d == C64) return floating(cfloat{});
    if (d == C128) return floating(cdouble{});
    const int64_t row = p.n * ITEMSIZE[d];
    if (bias)
        parallel_for(p.m, 1 + (1 << 17) / row, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; i++) memcpy(out.data + i * row, bias->data, static_cast<size_t>(row));
        });
    else if (p.k == 0)
        memset(out.data, 0, static_cast<size_t>(out.bytes()));
    if (p.k != 0) multiply_integers(d, p, out.data, bias != nullptr);
}

PyObject *linear(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<3> N{"linear", {"x", "w", "b"}, 2};
    PyObject *a[3];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]), &w = as_array(a[1]);
    Array *b = as_optional(a[2]);
    if (x.dtype != w.dtype || (b && b->dtype != x.dtype))
        fail(PyExc_TypeError, "linear: expected one dtype; got %s and %s", DTYPE_NAMES[x.dtype],
             DTYPE_NAMES[x.dtype != w.dtype ? w.dtype : b->dtype]);
    if (x.ndim == 0 || w.ndim != 2 || x.shape()[x.ndim - 1] != w.shape()[1] || (b && (b->ndim != 1 || b->shape()[0] != w.shape()[0])))
        fail(PyExc_ValueError, "linear: expected (..., in), (out, in) and (out,); got arrays of other shapes");
    need_blas();
    // Halves are added up in float, and rounded once.
    const DType d = is_half(x.dtype) ? F32 : x.dtype;
    Ref bias, rows, kept_x, kept_y;
    if (b) {
        Ref same = converted(*b, d);
        bias = contiguous(*same);
    }
    int64_t shape[MAX_NDIM];
    for (int i = 0; i < x.ndim - 1; i++) shape[i] = x.shape()[i];
    shape[x.ndim - 1] = w.shape()[0];
    Problem p;
    p.x = rows_of(x, rows);
    p.y = transposed(rows_of(w, kept_y));
    if (Ref made = by_tiles(p, x.dtype, x.ndim, shape, bias.get())) return made.release();
    Ref from = converted(x, d), weight = converted(w, d);
    if (d != x.dtype) p.x = rows_of(*from, rows), p.y = transposed(rows_of(*weight, kept_y));
    settle(p.x, rows ? *rows : *from, false, kept_x);
    settle(p.y, *weight, true, kept_y);
    Ref out = make(d, x.ndim, shape);
    multiply_rows(d, p, *out, bias.get());
    return (d == x.dtype ? static_cast<Ref &&>(out) : converted(*out, x.dtype)).release();
}

PyObject *linear_weight_grad(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<2> N{"linear_weight_grad", {"g", "x"}, 2};
    PyObject *a[2];
    arguments(N, args, n, names, a);
    Array &g = as_array(a[0]), &x = as_array(a[1]);
    bool fit = g.dtype == x.dtype && g.ndim == x.ndim && g.ndim > 0;
    for (int i = 0; fit && i < g.ndim - 1; i++) fit = g.shape()[i] == x.shape()[i];
    if (!fit) fail(PyExc_ValueError, "linear_weight_grad: expected (..., out) and (..., in) of one dtype");
    need_blas();
    const DType d = is_half(x.dtype) ? F32 : x.dtype;
    Ref rows_left, rows_right, kept_x, kept_y;
    Problem p;
    p.x = transposed(rows_of(g, rows_left));
    p.y = rows_of(x, rows_right);
    const int64_t shape[] = {p.x.rows, p.y.columns};
    if (Ref made = by_tiles(p, x.dtype, 2, shape, nullptr)) return made.release();
    Ref left = converted(g, d), right = converted(x, d);
    if (d != x.dtype) p.x = transposed(rows_of(*left, rows_left)), p.y = rows_of(*right, rows_right);
    settle(p.x, rows_left ? *rows_left : *left, false, kept_x);
    settle(p.y, rows_right ? *rows_right : *right, true, kept_y);
    Ref out = make(d, 2, shape);
    multiply_rows(d, p, *out, nullptr);
    return (d == x.dtype ? static_cast<Ref &&>(out) : converted(*out, x.dtype)).release();
}

}  // namespace

const Method matmul_methods[] = {
    MORTICE_METHOD("matmul", matmul_kernel),
    MORTICE_METHOD("linear", linear),
    MORTICE_METHOD("linear_weight_grad", linear_weight_grad),
    {},
};

}  // namespace mortice
