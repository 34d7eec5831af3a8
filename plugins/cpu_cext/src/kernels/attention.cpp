// Softmax over tiles of scores that are never whole, and its gradient from what the forward kept.
#include "attention.hpp"

#include "rows.hpp"
#include "vmath.hpp"

namespace mortice::ISA {

#define APART static __attribute__((noinline))  // called once for a row, from several places

template <class T> static constexpr T LOWEST = sizeof(T) == 4 ? T(-87.0) : T(-708.0);  // below it exp is as good as 0

// exp for arguments that are not above 0 but for rounding. Without subnormal results, which slow the product after it.
template <class V, class T = scalar_of<V>> INLINE V weight(V x) {
    return select(x < splat<T>(LOWEST<T>), V{}, exp_normal(x));
}

template <class T> INLINE int64_t seen(const ScoreTile<T> &t, int64_t i) {
    const int64_t n = t.visible + i;
    return n < 0 ? 0 : n < t.columns ? n : t.columns;
}

// Give what follows n elements up to a whole vector that value. As one vector: the next load would wait for lanes stored alone.
template <class T> INLINE void fill_up(T *x, int64_t n, T rest) {
    const int64_t lanes = n % LANES<T>;
    if (lanes) store(x + n - lanes, load_first(x + n - lanes, lanes, rest));
}

// Scale and mask n scores, and hide what is behind them up to a whole vector. Returns the scale that is left to do.
template <class T> APART T prepare(const ScoreTile<T> &t, T *s, int64_t i, int64_t n) {
    T scale = t.scale;
    if (t.mask) {
        const uint8_t *shown = (const uint8_t *)t.mask + i * t.mask_row;
        const T *more = (const T *)t.mask + i * t.mask_row;
        if (!t.mask_column) {  // one for the whole row
            const bool all = !t.mask_is_bool || *shown;
            const T add = t.mask_is_bool ? T(-0.0) : *more;
            for (int64_t j = 0; j < n; j++) s[j] = all ? s[j] * scale + add : -(T)INFINITY;
        } else if (t.mask_is_bool) {
            INDEPENDENT for (int64_t j = 0; j < n; j++) s[j] = shown[j] ? s[j] * scale : -(T)INFINITY;
        } else {
            INDEPENDENT for (int64_t j = 0; j < n; j++) s[j] = s[j] * scale + more[j];
        }
        scale = 1;
    } else if (!(scale > 0)) {  // else -inf stays what it is
        for (int64_t j = 0; j < n; j++) s[j] *= scale;
        scale = 1;
    }
    fill_up(s, n, -(T)INFINITY);
    return scale;
}

template <class T> APART void drop(const ScoreTile<T> &t, T *s, int64_t i, int64_t n) {
    const uint8_t *keep = t.keep + i * t.keep_row;
    const T kept = t.keep_scale;
    if (t.keep_column)
        INDEPENDENT for (int64_t j = 0; j < n; j++) s[j] = keep[j] ? s[j] * kept : T(0);
    else
        INDEPENDENT for (int64_t j = 0; j < n; j++) s[j] = keep[0] ? s[j] * kept : T(0);
}

template <class T> static void forward(const ScoreTile<T> &t, T *top, T *total, T *turn) {
    constexpr int L = LANES<T>;
    for (int64_t i = 0; i < t.rows; i++) {
        T *s = t.scores + i * t.lead;
        const int64_t n = seen(t, i), whole = (n + L - 1) / L * L;
        const vec<T> scale = splat<T>(prepare(t, s, i, n));
        vec<T> most = splat<T>(-(T)INFINITY), other = most;
        int64_t j = 0;
        for (; j + 2 * L <= whole; j += 2 * L) {
            most = vmax(most, load(s + j) * scale);
            other = vmax(other, load(s + j + L) * scale);
        }
        if (j < whole) most = vmax(most, load(s + j) * scale);
        T m = max_lanes<T>(vmax(most, other));
        if (!(m > top[i])) m = top[i];
        const T shift = m == -(T)INFINITY ? T(0) : m;
        const vec<T> less = splat<T>(-shift);
        vec<T> sum = {}, sum2 = {};
        for (j = 0; j + 2 * L <= whole; j += 2 * L) {
            const vec<T> e = weight(fma(load(s + j), scale, less)), f = weight(fma(load(s + j + L), scale, less));
            store(s + j, e);
            store(s + j + L, f);
            sum += e;
            sum2 += f;
        }
        if (j < whole) {
            const vec<T> e = weight(fma(load(s + j), scale, less));
            store(s + j, e);
            sum += e;
        }
        const T before = m == top[i] ? T(1) : (T)exp(top[i] - shift);
        turn[i] = before;
        total[i] = total[i] * before + sum_lanes<T>(sum + sum2);
        top[i] = m;
        if (t.keep) drop(t, s, i, n);
        for (j = whole; j < t.columns; j += L) store(s + j, vec<T>{});
    }
}

template <class T> static void backward(const ScoreTile<T> &t, T *d, const T *lse, const T *inner) {
    constexpr int L = LANES<T>;
    for (int64_t i = 0; i < t.rows; i++, d += t.lead) {
        T *s = t.scores + i * t.lead;
        const int64_t n = seen(t, i), whole = (n + L - 1) / L * L;
        const vec<T> scale = splat<T>(prepare(t, s, i, n)), less = splat<T>(lse[i] == -(T)INFINITY ? T(0) : -lse[i]);
        if (t.keep) drop(t, d, i, n);
        const vec<T> by = splat<T>(inner[i]), factor = splat<T>(t.scale);
        for (int64_t j = 0; j < whole; j += L) {
            const vec<T> p = weight(fma(load(s + j), scale, less));
            store(s + j, p);
            store(d + j, p * (load(d + j) - by) * factor);
        }
        if (t.keep) drop(t, s, i, n);
        fill_up(d, n, T(0));  // whose hidden elements may be nan
        for (int64_t j = whole; j < t.columns; j += L) store(s + j, vec<T>{}), store(d + j, vec<T>{});
    }
}

template <class T> static void multiply_rows(T *out, int64_t rows, int64_t columns, int64_t lead, const T *factor) {
    for (int64_t i = 0; i < rows; i++, out += lead) {
        const T f = factor[i];
        if (f != 1)
            for (int64_t j = 0; j < columns; j++) out[j] *= f;
    }
}

template <class T>
static void finish(T *out, int64_t rows, int64_t columns, int64_t lead, const T *top, const T *total, T *lse) {
    for (int64_t i = 0; i < rows; i++, out += lead) {
        const T sum = total[i] == 0 ? T(1) : total[i], f = 1 / sum;
        for (int64_t j = 0; j < columns; j++) out[j] *= f;
        lse[i] = total[i] == 0 ? -(T)INFINITY : (T)log(sum) + top[i];
    }
}

template <class T>
static void row_products(const T *x, int64_t x_lead, const T *y, int64_t y_lead, int64_t rows, int64_t columns, T *inner) {
    constexpr int L = LANES<T>;
    for (int64_t i = 0; i < rows; i++, x += x_lead, y += y_lead) {
        vec<T> sum = {};
        int64_t j = 0;
        for (; j + L <= columns; j += L) sum = fma(load(x + j), load(y + j), sum);
        T total = sum_lanes<T>(sum);
        for (; j < columns; j++) total += x[j] * y[j];
        inner[i] = total;
    }
}

extern const AttentionKernels attention_table = {
    {forward<float>, backward<float>, multiply_rows<float>, finish<float>, row_products<float>},
    MORTICE_UP_TO_AVX2({forward<double>, backward<double>, multiply_rows<double>, finish<double>, row_products<double>}),
};

}  // namespace mortice::ISA
