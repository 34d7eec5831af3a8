// Softmax along rows and down columns. A row is read for its largest element, its sum and its result while it is in the
// nearest cache; columns are taken in strips that are as wide as the arrays here.
#include "softmax.hpp"

#include "rows.hpp"
#include "vmath.hpp"

namespace mortice::ISA {
namespace {

#define APART __attribute__((noinline))  // long and called from several places

template <class T> constexpr T INFINITE = static_cast<T>(__builtin_inff());

// ---- rows ----

// The largest of a row. A nan may be missed: all that comes from its row is nan anyway.
template <class T> APART T row_max(const T *x, int64_t n) {
    constexpr int L = LANES<T>;
    if (n < L) return largest<T>(load_first(x, n, -INFINITE<T>));
    vec<T> a = load(x), b = a, c = a, d = a;
    int64_t i = 0;
    for (; i + 4 * L <= n; i += 4 * L) {
        a = vmax(a, load(x + i));
        b = vmax(b, load(x + i + L));
        c = vmax(c, load(x + i + 2 * L));
        d = vmax(d, load(x + i + 3 * L));
    }
    for (; i < n; i += L) a = vmax(a, load(x + (i + L <= n ? i : n - L)));  // the last vector overlaps
    return largest<T>(vmax(vmax(a, b), vmax(c, d)));
}

template <class T> APART double exp_sum(const T *x, int64_t n, T top) {
    const vec<T> m = splat(top);
    return sum_once<T>(n, [&](int64_t i, int64_t left) { return v_exp(get(x + i, left, -INFINITE<T>) - m); });
}

template <class T> INLINE void softmax_row(const T *x, T *out, int64_t n) {
    if (n <= LANES<T>) {
        const vec<T> v = get(x, n, -INFINITE<T>);
        const vec<T> e = v_exp(v - splat(largest<T>(v)));
        put(out, e / splat(total<T>(e)), n);
        return;
    }
    const T top = row_max(x, n);
    const vec<T> m = splat(top);
    const double sum = sum_once<T>(n, [&](int64_t i, int64_t left) {
        const vec<T> e = v_exp(get(x + i, left, -INFINITE<T>) - m);
        put(out + i, e, left);
        return e;
    });
    const vec<T> scale = splat(static_cast<T>(1 / sum));
    along<T>(n, [&](int64_t i, int64_t left) { put(out + i, get(out + i, left) * scale, left); });
}

template <class T> INLINE void log_softmax_row(const T *x, T *out, int64_t n) {
    const T top = row_max(x, n);
    const vec<T> m = splat(top), below = splat(static_cast<T>(log(exp_sum(x, n, top))));
    along<T>(n, [&](int64_t i, int64_t left) { put(out + i, get(x + i, left) - m - below, left); });
}

constexpr int64_t SHORT_ROW = 256;  // of which as many as a vector has lanes stay in the nearest cache

// As many rows as a vector has lanes, or fewer, whose logarithms are taken at once.
template <class T> INLINE void log_softmax_short(const T *x, T *out, int64_t rows, int64_t n) {
    T top[LANES<T>], sum[LANES<T>] = {};
    for (int64_t r = 0; r < rows; r++) {
        top[r] = row_max(x + r * n, n);
        sum[r] = static_cast<T>(exp_sum(x + r * n, n, top[r]));
    }
    store(sum, v_log(load(sum)));
    for (int64_t r = 0; r < rows; r++) {
        const vec<T> m = splat(top[r]), below = splat(sum[r]);
        along<T>(n, [&](int64_t i, int64_t left) { put(out + r * n + i, get(x + r * n + i, left) - m - below, left); });
    }
}

template <class T> void rows(const T *x, T *out, int64_t rows, int64_t n, bool logs) {
    if (logs && n <= SHORT_ROW) {
        constexpr int64_t L = LANES<T>;
        for (int64_t r = 0; r < rows; r += L) log_softmax_short(x + r * n, out + r * n, rows - r < L ? rows - r : L, n);
        return;
    }
    for (int64_t r = 0; r < rows; r++, x += n, out += n) {
        if (logs)
            log_softmax_row(x, out, n);
        else
            softmax_row(x, out, n);
    }
}

template <class T> void rows_grad(const T *g, const T *y, T *out, int64_t rows, int64_t n, bool logs) {
    for (int64_t r = 0; r < rows; r++, g += n, y += n, out += n) {
        const double sum = sum_along<T>(n, [&](int64_t i, int64_t left) {
            const vec<T> v = get(g + i, left);
            return logs ? v : v * get(y + i, left);
        });
        const vec<T> s = splat(static_cast<T>(sum));
        if (logs)
            along<T, true>(n, [&](int64_t i, int64_t left) {
                put(out + i, get(g + i, left) - v_exp(get(y + i, left)) * s, left);
            });
        else
            along<T>(n, [&](int64_t i, int64_t left) { put(out + i, get(y + i, left) * (get(g + i, left) - s), left); });
    }
}

// A largest element that can be taken off: 0 for an infinite one, as the sum of exponentials is then inf or 0 (or nan).
template <class T> INLINE vec<T> finite_or_zero(vec<T> v) { return v - v == vec<T>{} ? v : vec<T>{}; }

template <class T> void rows_logsumexp(const T *x, T *out, int64_t rows, int64_t n) {
    for (int64_t r = 0; r < rows; r++, x += n) {
        T top = n ? row_max(x, n) : 0;
        top = top - top == 0 ? top : T(0);
        out[r] = static_cast<T>(log(exp_sum(x, n, top)) + top);
    }
}

// ---- columns ----

template <class T> INLINE void column_max(const T *x, int64_t n, int64_t stride, int64_t width, T *top) {
    along<T>(width, [&](int64_t j, int64_t left) { put(top + j, get(x + j, left), left); });
    for (int64_t i = 1; i < n; i++)
        along<T>(width, [&](int64_t j, int64_t left) {
            put(top + j, vmax(get(top + j, left), get(x + i * stride + j, left)), left);
        });
}

template <class T> void strip(const T *x, T *out, int64_t n, int64_t stride, int64_t width, bool logs) {
    Strip<T> top, sum;
    column_max(x, n, stride, width, top.at);
    column_sums<T>(n, width, sum.at, [&](int64_t i, int64_t j, int64_t left) {
        const vec<T> e = v_exp(get(x + i * stride + j, left) - get(top.at + j, left));
        if (!logs) put(out + i * stride + j, e, left);
        return e;
    });
    if (logs)
        for (int64_t j = 0; j < width; j++) sum.at[j] = static_cast<T>(log(static_cast<double>(sum.at[j])));
    else
        for (int64_t j = 0; j < width; j++) sum.at[j] = 1 / sum.at[j];
    for (int64_t i = 0; i < n; i++) {
        const T *from = x + i * stride;
        T *to = out + i * stride;
        if (logs)
            along<T>(width, [&](int64_t j, int64_t left) {
                put(to + j, get(from + j, left) - get(top.at + j, left) - get(sum.at + j, left), left);
            });
        else
            along<T>(width, [&](int64_t j, int64_t left) { put(to + j, get(to + j, left) * get(sum.at + j, left), left); });
    }
}

template <class T> void strip_grad(const T *g, const T *y, T *out, int64_t n, int64_t stride, int64_t width, bool logs) {
    Strip<T> sum;
    column_sums<T>(n, width, sum.at, [&](int64_t i, int64_t j, int64_t left) {
        const vec<T> v = get(g + i * stride + j, left);
        return logs ? v : v * get(y + i * stride + j, left);
    });
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = i * stride;
        if (logs)
            along<T>(width, [&](int64_t j, int64_t left) {
                put(out + at + j, get(g + at + j, left) - v_exp(get(y + at + j, left)) * get(sum.at + j, left), left);
            });
        else
            along<T>(width, [&](int64_t j, int64_t left) {
                put(out + at + j, get(y + at + j, left) * (get(g + at + j, left) - get(sum.at + j, left)), left);
            });
    }
}

template <class T> void strip_logsumexp(const T *x, T *out, int64_t n, int64_t stride, int64_t width) {
    Strip<T> top, sum;
    if (n)
        column_max(x, n, stride, width, top.at);
    else
        along<T>(width, [&](int64_t j, int64_t left) { put(top.at + j, vec<T>{}, left); });
    along<T>(width, [&](int64_t j, int64_t left) { put(top.at + j, finite_or_zero<T>(get(top.at + j, left)), left); });
    column_sums<T, true>(n, width, sum.at, [&](int64_t i, int64_t j, int64_t left) {
        return v_exp(get(x + i * stride + j, left) - get(top.at + j, left));
    });
    for (int64_t j = 0; j < width; j++)
        out[j] = static_cast<T>(log(static_cast<double>(sum.at[j])) + static_cast<double>(top.at[j]));
}

INLINE int64_t strip_width(int64_t left) { return left < STRIP ? left : STRIP; }

template <class T> void columns(const T *x, T *out, int64_t n, int64_t stride, int64_t width, bool logs) {
    for (int64_t j = 0; j < width; j += STRIP) strip(x + j, out + j, n, stride, strip_width(width - j), logs);
}
template <class T> void columns_grad(const T *g, const T *y, T *out, int64_t n, int64_t stride, int64_t width, bool logs) {
    for (int64_t j = 0; j < width; j += STRIP) strip_grad(g + j, y + j, out + j, n, stride, strip_width(width - j), logs);
}
template <class T> void columns_logsumexp(const T *x, T *out, int64_t n, int64_t stride, int64_t width) {
    for (int64_t j = 0; j < width; j += STRIP) strip_logsumexp(x + j, out + j, n, stride, strip_width(width - j));
}

// ---- cross entropies ----

template <class T>
void rows_logs(const T *x, const T *weight, T *top, T *below, T *spread, int64_t rows, int64_t n) {
    for (int64_t r = 0; r < rows; r++, x += n) {
        top[r] = row_max(x, n);
        below[r] = static_cast<T>(exp_sum(x, n, top[r]));
        if (!spread) continue;
        const vec<T> m = splat(top[r]);
        spread[r] = static_cast<T>(sum_along<T>(n, [&](int64_t i, int64_t left) {
            const vec<T> low = get(x + i, left, top[r]) - m;
            return weight ? low * get(weight + i, left) : low;
        }));
    }
    along<T, true>(rows, [&](int64_t r, int64_t left) { put(below + r, v_log(get(below + r, left, T(1))), left); });
}

template <class T>
void rows_pulled(const T *x, const T *weight, const T *top, const T *below, const T *scale, const T *share, T *out,
                 int64_t rows, int64_t n) {
    for (int64_t r = 0; r < rows; r++, x += n, out += n) {
        const vec<T> m = splat(top[r]), l = splat(below[r]), by = splat(scale[r]), off = splat(share ? share[r] : T(0));
        along<T, true>(n, [&](int64_t i, int64_t left) {
            vec<T> v = v_exp(get(x + i, left) - m - l) * by;
            if (share) v -= weight ? off * get(weight + i, left) : off;
            put(out + i, v, left);
        });
    }
}

template <class T>
void columns_logs(const T *x, const T *weight, T *top, T *below, T *spread, int64_t n, int64_t stride, int64_t width) {
    for (int64_t j0 = 0; j0 < width; j0 += STRIP) {
        const int64_t some = strip_width(width - j0);
        const T *from = x + j0;
        T *m = top + j0;
        column_max(from, n, stride, some, m);
        column_sums<T, true>(n, some, below + j0, [&](int64_t i, int64_t j, int64_t left) {
            return v_exp(get(from + i * stride + j, left) - get(m + j, left));
        });
        along<T, true>(some, [&](int64_t j, int64_t left) { put(below + j0 + j, v_log(get(below + j0 + j, left, T(1))), left); });
        if (spread)
            column_sums<T>(n, some, spread + j0, [&](int64_t i, int64_t j, int64_t left) {
                const vec<T> low = get(from + i * stride + j, left) - get(m + j, left);
                return weight ? low * splat(weight[i]) : low;
            });
    }
}

template <class T>
void columns_pulled(const T *x, const T *weight, const T *top, const T *below, const T *scale, const T *share, T *out,
                    int64_t n, int64_t stride, int64_t width) {
    for (int64_t i = 0; i < n; i++, x += stride, out += stride)
        along<T, true>(width, [&](int64_t j, int64_t left) {
            vec<T> v = v_exp(get(x + j, left) - get(top + j, left) - get(below + j, left)) * get(scale + j, left);
            if (share) v -= get(share + j, left) * splat(weight ? weight[i] : T(1));
            put(out + j, v, left);
        });
}

template <class T> constexpr SoftmaxKernels<T> KERNELS = {
    rows<T>, columns<T>, rows_grad<T>, columns_grad<T>, rows_logsumexp<T>, columns_logsumexp<T>,
    rows_logs<T>, columns_logs<T>, rows_pulled<T>, columns_pulled<T>,
};

}  // namespace

const SoftmaxTable softmax_kernels_table = {KERNELS<float>, KERNELS<double>};

}  // namespace mortice::ISA
