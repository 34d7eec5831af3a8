// Scans along an axis: cumulative_sum, cumulative_prod, cumulative_max, cumulative_min, logcumsumexp.
#include <math.h>
#include <string.h>

#include "families.hpp"
#include "kernels/scan.hpp"
#include "parallel.hpp"

namespace mortice {
namespace {

// x as (outer, n, inner): the scan goes along n; the result is row-major. Inner elements lie side by side, or there is one.
struct Scan {
    const Array *x;
    int outer_axes;
    int64_t outer, n, inner, step;
    char *out;
    int64_t *places = nullptr;

    const char *from(int64_t o) const {
        int64_t at = 0;
        for (int d = outer_axes - 1; d > 0 && o; d--) {
            at += o % x->shape()[d] * x->strides()[d];
            o /= x->shape()[d];
        }
        if (outer_axes) at += o * x->strides()[0];
        return x->data + at * x->itemsize();
    }
};

// Whether the axes behind `axis` are row-major without gaps.
bool inner_is_line(const Array &x, int axis) {
    int64_t expected = 1;
    for (int d = x.ndim - 1; d > axis; d--) {
        if (x.shape()[d] != 1 && x.strides()[d] != expected) return false;
        expected *= x.shape()[d];
    }
    return true;
}

Scan laid_out(const Array &x, int axis, Array &out) {
    Scan s{};
    s.x = &x;
    s.outer_axes = axis;
    s.outer = s.inner = 1;
    for (int d = 0; d < axis; d++) s.outer *= x.shape()[d];
    for (int d = axis + 1; d < x.ndim; d++) s.inner *= x.shape()[d];
    s.n = x.ndim ? x.shape()[axis] : 1;
    s.step = x.ndim ? x.strides()[axis] : 1;
    s.out = out.data;
    return s;
}

// x itself where it can be read as it lies, else a copy.
Ref readable(Array &x, int axis) {
    int64_t step = x.ndim ? x.strides()[axis] : 1;
    bool line = inner_is_line(x, axis), few = x.size < 4096 || x.size == (x.ndim ? x.shape()[axis] : 1);
    bool rows = true;
    for (int d = axis + 1; d < x.ndim; d++) rows = rows && x.shape()[d] == 1;
    if (rows ? step == 1 || step == -1 || few : line) return Ref::share(&x);
    return contiguous(x);
}

// Whether a few columns are better gone through one by one.
bool one_by_one(const Scan &s) { return s.inner < 4; }

int64_t tile_width(const Scan &s) {
    int64_t parts = s.outer >= 8 ? 1 : 8 / s.outer;
    int64_t width = (s.inner / parts + 31) / 32 * 32;
    return width < 64 ? 64 : width > SCAN_TILE ? SCAN_TILE : width;
}

// body(from, out element offset, columns) for each tile, on several threads.
template <class F> void over_columns(const Scan &s, double cost, F body) {
    int64_t width = tile_width(s), tiles = (s.inner + width - 1) / width;
    int64_t each = static_cast<int64_t>(static_cast<double>(s.n * (s.inner < width ? s.inner : width)) * cost);
    parallel_for(s.outer * tiles, 1 + 40000 / (each + 1), [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; t++) {
            int64_t o = t / tiles, first = t % tiles * width, m = s.inner - first < width ? s.inner - first : width;
            body(s.from(o) + first * s.x->itemsize(), o * s.n * s.inner + first, m);
        }
    });
}

// body(from, out element offset) for each row; rows are s.inner apart.
template <class F> void over_rows(const Scan &s, double cost, F body) {
    int64_t each = static_cast<int64_t>(static_cast<double>(s.n) * cost);
    parallel_for(s.outer * s.inner, 1 + 40000 / (each + 1), [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; t++) {
            int64_t o = s.inner == 1 ? t : t / s.inner, j = t - o * s.inner;
            body(s.from(o) + j * s.x->itemsize(), o * s.n * s.inner + j);
        }
    });
}

// One long row: the sums of its chunks first, then each chunk from the sum of those before it.
void scan_long_row(const Scan &s, const Scanner &k, const char *from, char *to) {
    int size = s.x->itemsize();
    int64_t chunks = (s.n + SCAN_CHUNK - 1) / SCAN_CHUNK;
    auto length = [&](int64_t c) { return c + 1 < chunks ? SCAN_CHUNK : s.n - c * SCAN_CHUNK; };
    Scratch<Carry> bases(chunks);
    memset(bases.get(), 0, chunks * sizeof(Carry));
    parallel_for(chunks - 1, 2, [&](int64_t begin, int64_t end) {
        for (int64_t c = begin; c < end; c++)
            k.row(from + c * SCAN_CHUNK * s.step * size, s.step, nullptr, 1, length(c), Carry{}, bases[c + 1]);
    });
    for (int64_t c = 1; c < chunks; c++) {
        Carry base = bases[c - 1];
        k.combine(base, bases[c]);
        bases[c] = base;
    }
    parallel_for(chunks, 2, [&](int64_t begin, int64_t end) {
        for (int64_t c = begin; c < end; c++) {
            Carry carry{};
            k.row(from + c * SCAN_CHUNK * s.step * size, s.step, to + c * SCAN_CHUNK * s.inner * size, s.inner, length(c),
                  bases[c], carry);
        }
    });
}

// The same on one thread, to the same bits.
void sum_row(const Scan &s, const Scanner &k, const char *from, char *to) {
    int size = s.x->itemsize();
    Carry base{};
    for (int64_t i = 0; i < s.n; i += SCAN_CHUNK) {
        Carry carry{};
        int64_t length = s.n - i < SCAN_CHUNK ? s.n - i : SCAN_CHUNK;
        k.row(from + i * s.step * size, s.step, to + i * s.inner * size, s.inner, length, base, carry);
        if (length == SCAN_CHUNK) k.combine(base, carry);
    }
}

enum Op : uint8_t { SUM, PROD, LOGSUMEXP };

// Whether sums come out the same in any order, or nearly: of integers, and where doubles carry floats.
// Others are added one by one, as PyTorch and NumPy add them.
bool any_order(DType d) { return d == F32 || d == C64 || !(is_float(d) || is_complex(d)); }

void run_scan(const Scan &s, Op op) {
    const ScanKernels &kernels = scan_kernels();
    DType d = s.x->dtype;
    const Scanner &k = (op == SUM ? kernels.sum : op == PROD ? kernels.prod : kernels.logsumexp)[d];
    int size = s.x->itemsize();
    double cost = op == LOGSUMEXP ? 20 : 1;
    Unlocked free(s.x->size);
    if (!one_by_one(s)) {
        over_columns(s, cost, [&](const char *from, int64_t at, int64_t m) {
            k.columns(from, s.step, s.out + at * size, s.inner, s.n, m);
        });
    } else if (op == SUM && any_order(d) && s.outer * s.inner < 4 && s.n > 4 * SCAN_CHUNK && num_threads() > 1 && !in_parallel()) {
        for (int64_t t = 0; t < s.outer * s.inner; t++) {
            int64_t o = t / s.inner, j = t % s.inner;
            scan_long_row(s, k, s.from(o) + j * size, s.out + (o * s.n * s.inner + j) * size);
        }
    } else if (op == SUM && any_order(d)) {
        over_rows(s, cost, [&](const char *from, int64_t at) { sum_row(s, k, from, s.out + at * size); });
    } else {
        Carry start{};
        if (op == LOGSUMEXP) {
            double none = -HUGE_VAL;
            memcpy(start.bytes, &none, sizeof none);
        } else if (op == PROD) {
            DType wide = is_half(d) ? F32 : d == F32 ? F64 : d == C64 ? C128 : d;
            Scalar one = scalar_of(1, wide);
            memcpy(start.bytes, one.bytes, sizeof one.bytes);
        }
        over_rows(s, 2 * cost, [&](const char *from, int64_t at) {
            Carry carry = start;
            k.row(from, s.step, s.out + at * size, s.inner, s.n, Carry{}, carry);
        });
    }
}

void run_extreme(const Scan &s, bool max) {
    const ExtremeScanner &k = (max ? scan_kernels().max : scan_kernels().min)[s.x->dtype];
    int size = s.x->itemsize();
    Unlocked free(s.x->size);
    if (one_by_one(s))
        over_rows(s, 1, [&](const char *from, int64_t at) {
            k.row(from, s.step, s.out + at * size, s.places + at, s.inner, s.n);
        });
    else
        over_columns(s, 1, [&](const char *from, int64_t at, int64_t m) {
            k.columns(from, s.step, s.out + at * size, s.places + at, s.inner, s.n, m);
        });
}

// ---- kernels ----

Array &scan_arguments(Names<2> &N, PyObject *const *args, Py_ssize_t n, PyObject *names, int &axis) {
    PyObject *a[2];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    axis = x.ndim ? as_axis(a[1], x.ndim) : 0;
    return x;
}

template <Op op> PyObject *scan(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<2> N{op == SUM ? "cumulative_sum" : op == PROD ? "cumulative_prod" : "logcumsumexp", {"x", "axis"}, 2};
    int axis;
    Array &x = scan_arguments(N, args, n, names, axis);
    if (x.dtype == BOOL) fail(PyExc_RuntimeError, "%s: expected numbers; got bool.", N.function);
    if (op == LOGSUMEXP && !is_float(x.dtype)) {
        if (is_complex(x.dtype)) return default_body();
        fail(PyExc_RuntimeError, "%s: expected floating point numbers; got %s.", N.function, DTYPE_NAMES[x.dtype]);
    }
    Ref out = make_like(x);
    if (x.size) {
        Ref from = readable(x, axis);
        run_scan(laid_out(*from, axis, *out), op);
    }
    return out.release();
}

template <bool max> PyObject *extreme(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<2> N{max ? "cumulative_max" : "cumulative_min", {"x", "axis"}, 2};
    int axis;
    Array &x = scan_arguments(N, args, n, names, axis);
    if (is_complex(x.dtype)) fail(PyExc_RuntimeError, "%s: expected real numbers; got %s.", N.function, DTYPE_NAMES[x.dtype]);
    Ref out = make_like(x), places = make_like(x, I64);
    if (x.size) {
        Ref from = readable(x, axis);
        Scan s = laid_out(*from, axis, *out);
        s.places = places->as<int64_t>();
        run_extreme(s, max);
    }
    return as_tuple(out, places);
}

}  // namespace

const Method scan_methods[] = {
    MORTICE_METHOD("cumulative_sum", scan<SUM>),
    MORTICE_METHOD("cumulative_prod", scan<PROD>),
    MORTICE_METHOD("partial_logcumsumexp", scan<LOGSUMEXP>),
    MORTICE_METHOD("cumulative_max", extreme<true>),
    MORTICE_METHOD("cumulative_min", extreme<false>),
    {},
};

}  // namespace mortice
