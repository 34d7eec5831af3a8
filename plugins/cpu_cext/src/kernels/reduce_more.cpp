// Reductions whose accumulators are more than one number: argmax, argmin, var, logsumexp. Each makes a block's result in
// two passes while the block is in the first-level cache, and merges results.
#include "reduce.hpp"
#include <math.h>

#include "reduce_loops.hpp"

namespace mortice::ISA {

// ---- places of extremes ----

// A bit for each lane of a mask.
template <class T> INLINE uint32_t bits_of(lanes_of<T> m) {
#if defined(__AVX512DQ__)
    if constexpr (sizeof(T) == 4) return static_cast<uint32_t>(_mm512_movepi32_mask((__m512i)m));
    else return static_cast<uint32_t>(_mm512_movepi64_mask((__m512i)m));
#elif defined(__AVX2__)
    if constexpr (sizeof(T) == 4) return static_cast<uint32_t>(_mm256_movemask_ps((__m256)m));
    else return static_cast<uint32_t>(_mm256_movemask_pd((__m256d)m));
#else
    lane_of<T> room[LANES<T>];
    __builtin_memcpy(room, &m, sizeof room);
    uint32_t bits = 0;
    for (int i = 0; i < LANES<T>; i++) bits |= static_cast<uint32_t>(room[i] & 1) << i;
    return bits;
#endif
}

// The first place of the value, or of a nan where it is one; it is there.
template <class T> INLINE int64_t place_of(const T *p, int64_t n, T value) {
    constexpr int L = LANES<T>;
    bool nan = value != value;
    if (n < L || SMALL) {
        int64_t place = 0;
        for (int64_t i = n - 1; i >= 0; i--) {
            MORTICE_PLAIN(i);
            place = (p[i] == value) | (nan & (p[i] != p[i])) ? i : place;
        }
        return place;
    }
    const vec<T> wanted = splat(value);
    const lanes_of<T> if_nan = lanes_of<T>{} - static_cast<lane_of<T>>(nan);
    auto hits = [&](const T *at) -> lanes_of<T> {
        vec<T> v = load(at);
        return (v == wanted) | ((v != v) & if_nan);
    };
    int64_t i = 0;
    for (; i + 4 * L <= n; i += 4 * L)
        if (bits_of<T>((hits(p + i) | hits(p + i + L)) | (hits(p + i + 2 * L) | hits(p + i + 3 * L)))) break;
    // Four vectors at most, all looked at: where the place is random, branches would be guessed wrong.
    uint64_t found = 0;
    int64_t end = n - i < 4 * L ? n - i : 4 * L, k = 0;
    for (; k + L <= end; k += L) found |= static_cast<uint64_t>(bits_of<T>(hits(p + i + k))) << k;
    if (found) return i + __builtin_ctzll(found);
    uint32_t rest = bits_of<T>(hits(p + n - L));
    return rest ? n - L + __builtin_ctz(rest) : 0;
}

// f(rows, the first one's number, how many, their values by Op), of some rows at a time: a long one is still in the
// first-level cache then, and of short ones several are reduced at once.
template <class T, class Op, class F>
INLINE void by_rows(const void *from, int64_t n, int64_t count, int64_t step, F f) {
    T values[32];
    int64_t some = 32;
    while (some > 1 && some * n > ROW_BLOCK) some /= 2;
    for (int64_t r = 0; r < count; r += some) {
        const int64_t m = least_of(count - r, some);
        const T *p = static_cast<const T *>(from) + r * step;
        rows<T, Op>(p, n, m, step, values);
        f(p, r, m, values);
    }
}

template <class T>
static __attribute__((noinline)) void places_of(const T *p, int64_t n, int64_t count, int64_t step, const T *values, Best *out) {
    for (int64_t r = 0; r < count; r++) {
        __builtin_memcpy(out[r].value, values + r, sizeof(T));
        out[r].index = place_of(p + r * step, n, values[r]);
    }
}
template <class T, class Op>
static void best_rows(const void *from, int64_t n, int64_t count, int64_t step, void *to) {
    by_rows<T, Op>(from, n, count, step, [=](const T *p, int64_t r, int64_t m, const T *values) {
        places_of(p, n, m, step, values, static_cast<Best *>(to) + r);
    });
}

// Whether b is to replace a, which came first. An accumulator of no elements has index -1.
template <class T, class Op> INLINE bool beats(T b, T a) {
    if constexpr (__is_same(Op, Max)) return (b > a) | ((b != b) & (a == a));
    else return (b < a) | ((b != b) & (a == a));
}
template <class T, class Op> INLINE void merge_best(Best &into, const Best &more) {
    if (more.index < 0) return;
    T a, b;
    __builtin_memcpy(&a, into.value, sizeof a);
    __builtin_memcpy(&b, more.value, sizeof b);
    bool same = a == b || (a != a && b != b);
    if (into.index < 0 || beats<T, Op>(b, a) || (same && more.index < into.index)) into = more;
}

template <class T, class Op>
static void best_columns(const void *from, int64_t count, int64_t step, int64_t m, void *to, int64_t base) {
    constexpr int L = LANES<T>;
    const T *__restrict x = static_cast<const T *>(from);
    T value[COLUMN_TILE];
    lane_of<T> place[COLUMN_TILE];
    __builtin_memcpy(value, x, m * sizeof(T));
    for (int64_t j = 0; j < m; j++) place[j] = 0;
    for (int64_t r = 1; r < count; r += 4) {
        int lines = static_cast<int>(count - r < 4 ? count - r : 4);
        auto step_of = [&](int64_t j, vec<T> &a, lanes_of<T> &at) {
            a = load(value + j);
            __builtin_memcpy(&at, place + j, sizeof at);
            for (int k = 0; k < lines; k++) {
                vec<T> b = load(x + (r + k) * step + j);
                lanes_of<T> better;
                if constexpr (__is_same(Op, Max)) better = b > a;
                else better = b < a;
                better |= (b != b) & (a == a);
                a = better ? b : a;
                at = better ? static_cast<lane_of<T>>(r + k) - lanes_of<T>{} : at;
            }
        };
        auto put = [&](int64_t j, vec<T> a, lanes_of<T> at) {
            store(value + j, a);
            __builtin_memcpy(place + j, &at, sizeof at);
        };
        if (m >= L && !SMALL) {  // the last vector overlaps those before it, and is made before they are changed
            vec<T> a, end;
            lanes_of<T> at, end_at;
            step_of(m - L, end, end_at);
            for (int64_t j = 0; j < m - L; j += L) {
                step_of(j, a, at);
                put(j, a, at);
            }
            put(m - L, end, end_at);
            continue;
        }
        for (int64_t j = 0; j < m; j++)
            for (int k = 0; k < lines; k++) {
                MORTICE_PLAIN(k);
                T b = x[(r + k) * step + j];
                bool better = beats<T, Op>(b, value[j]);
                value[j] = better ? b : value[j];
                place[j] = better ? static_cast<lane_of<T>>(r + k) : place[j];
            }
    }
    for (int64_t j = 0; j < m; j++) {
        Best more;
        __builtin_memcpy(more.value, value + j, sizeof(T));
        more.index = base + place[j];
        merge_best<T, Op>(static_cast<Best *>(to)[j], more);
    }
}

// ---- merging of accumulators ----

template <class A, void merge(A &, const A &)>
static void merge_rows(const void *x, int64_t n, int64_t count, int64_t step, void *out) {
    for (int64_t r = 0; r < count; r++) {
        const A *p = static_cast<const A *>(x) + r * step;
        A a = p[0];
        for (int64_t i = 1; i < n; i++) merge(a, p[i]);
        static_cast<A *>(out)[r] = a;
    }
}
template <class A, void merge(A &, const A &)>
static void merge_columns(const void *x, int64_t count, int64_t step, int64_t m, void *acc, int64_t) {
    for (int64_t r = 0; r < count; r++)
        for (int64_t j = 0; j < m; j++) merge(static_cast<A *>(acc)[j], static_cast<const A *>(x)[r * step + j]);
}
template <class A, void merge(A &, const A &)> static constexpr Reducer MERGER = {merge_rows<A, merge>, merge_columns<A, merge>};
template <class T, class Op> static void merge_two_best(Best &a, const Best &b) { merge_best<T, Op>(a, b); }

// ---- moments ----

[[maybe_unused]] static void merge_moments(Moments &a, const Moments &b) {
    if (b.count == 0) return;
    double n = a.count + b.count, apart = b.mean - a.mean, share = b.count / n;
    if (a.count == 0) {
        a = b;
        return;
    }
    a.mean += apart * share;
    a.squares += b.squares + apart * apart * a.count * share;
    a.count = n;
}

// About a shift near the mean; what the shift is off by is taken back in double.
INLINE Moments moments_of(double n, double shift, double sum, double squares) {
    double off = sum / n, rest = squares - sum * off;
    return {n, shift + off, rest < 0 ? 0 : rest};
}

template <class T> INLINE Moments row_moments(const T *p, int64_t n, T total) {
    constexpr int L = LANES<T>;
    double count = static_cast<double>(n);
    T shift = static_cast<T>(static_cast<double>(total) / count);
    T sum = 0, squares = 0;
    int64_t i = 0;
    if (n >= L) {
        vec<T> middle = splat(shift), s[4] = {}, q[4] = {};
        for (; i + 4 * L <= n; i += 4 * L)
            for (int k = 0; k < 4; k++) {
                vec<T> d = load(p + i + k * L) - middle;
                s[k] += d;
                q[k] = fma(d, d, q[k]);
            }
        for (; i + L <= n; i += L) {
            vec<T> d = load(p + i) - middle;
            s[0] += d;
            q[0] = fma(d, d, q[0]);
        }
        if (i < n) {
            vec<T> d = last_lanes<T>(n - i) ? load(p + n - L) - middle : vec<T>{};
            s[1] += d;
            q[1] = fma(d, d, q[1]);
        }
        sum = across<T, Sum, VECTOR_BYTES>((s[0] + s[1]) + (s[2] + s[3]));
        squares = across<T, Sum, VECTOR_BYTES>((q[0] + q[1]) + (q[2] + q[3]));
        return moments_of(count, shift, sum, squares);
    }
    for (; i < n; i++) {
        MORTICE_PLAIN(i);
        T d = p[i] - shift;
        sum += d;
        squares += d * d;
    }
    return moments_of(count, shift, sum, squares);
}
template <class T> static void var_rows(const void *x, int64_t n, int64_t count, int64_t step, void *out) {
    by_rows<T, Sum>(x, n, count, step, [=](const T *p, int64_t first, int64_t m, const T *sums) {
        for (int64_t r = 0; r < m; r++) static_cast<Moments *>(out)[first + r] = row_moments(p + r * step, n, sums[r]);
    });
}

template <class T>
static void var_columns(const void *from, int64_t count, int64_t step, int64_t m, void *acc, int64_t) {
    constexpr int L = LANES<T>;
    const T *__restrict x = static_cast<const T *>(from);
    T shift[COLUMN_TILE], sum[COLUMN_TILE], squares[COLUMN_TILE];
    for (int64_t j = 0; j < m; j++) shift[j] = sum[j] = squares[j] = 0;
    columns<T, Sum>(x, count, step, m, shift);
    T n = static_cast<T>(count);
    for (int64_t j = 0; j < m; j++) shift[j] /= n;
    for (int64_t r = 0; r < count; r += 4) {
        int lines = static_cast<int>(count - r < 4 ? count - r : 4);
        const T *p = x + r * step;
        int64_t j = 0;
        for (; j + L <= m; j += L) {
            vec<T> s = load(sum + j), q = load(squares + j), middle = load(shift + j);
            for (int k = 0; k < lines; k++) {
                vec<T> d = load(p + k * step + j) - middle;
                s += d;
                q = fma(d, d, q);
            }
            store(sum + j, s);
            store(squares + j, q);
        }
        for (; j < m; j++)
            for (int k = 0; k < lines; k++) {
                MORTICE_PLAIN(k);
                T d = p[k * step + j] - shift[j];
                sum[j] += d;
                squares[j] += d * d;
            }
    }
    for (int64_t j = 0; j < m; j++)
        merge_moments(static_cast<Moments *>(acc)[j],
                      moments_of(static_cast<double>(count), shift[j], sum[j], squares[j]));
}

// ---- sums of exponentials ----

// exp(x) for x <= 0, to about an ulp; 0 far below. By x = k ln 2 + r, |r| <= ln 2 / 2, and the series of exp(r).
INLINE vf exp_below(vf x) {
    const vf magic = splat(12582912.0f);  // 1.5 * 2^23: adding it rounds to whole numbers
    vf bounded = x < -100.0f ? splat(-100.0f) : x;
    vf shifted = fma(bounded, splat(1.44269504088896341f), magic), k = shifted - magic;
    vf r = fma(k, splat(-0.693145751953125f), bounded);
    r = fma(k, splat(-1.428606820309417e-6f), r);
    vf e = splat(1.9841269841e-4f);
    e = fma(e, r, splat(1.3888888889e-3f));
    e = fma(e, r, splat(8.3333333333e-3f));
    e = fma(e, r, splat(4.1666666667e-2f));
    e = fma(e, r, splat(1.6666666667e-1f));
    e = fma(e, r, splat(0.5f));
    e = fma(e, r, splat(1.0f));
    e = fma(e, r, splat(1.0f));
    // Twice half the power of two, for results below the normal numbers.
    vi whole = __builtin_convertvector(k, vi), half = whole >> 1, other = whole - half;
    vf y = e * (vf)((half + 127) << 23) * (vf)((other + 127) << 23);
    return x != x ? x : y;
}
INLINE vd exp_below(vd x) {
    const vd magic = splat(6755399441055744.0);  // 1.5 * 2^52
    vd bounded = x < -750.0 ? splat(-750.0) : x;
    vd shifted = fma(bounded, splat(1.44269504088896341), magic), k = shifted - magic;
    vd r = fma(k, splat(-6.93147180369123816490e-01), bounded);
    r = fma(k, splat(-1.90821492927058770002e-10), r);
    static const double series[] = {1.6059043836821613e-10, 2.08767569878681e-09, 2.505210838544172e-08,
                                    2.755731922398589e-07,  2.7557319223985893e-06, 2.48015873015873e-05,
                                    1.984126984126984e-04,  1.388888888888889e-03, 8.333333333333333e-03,
                                    4.1666666666666664e-02, 1.6666666666666666e-01, 0.5, 1.0, 1.0};
    vd e = splat(series[0]);
    for (int i = 1; i < 14; i++) e = fma(e, r, splat(series[i]));
    vl whole = (vl)shifted - (vl)magic, half = whole >> 1, other = whole - half;
    vd y = e * (vd)((half + 1023) << 52) * (vd)((other + 1023) << 52);
    return x != x ? x : y;
}

static void merge_exponents(Exponents &a, const Exponents &b) {
    if (b.sum == 0) return;
    if (a.sum == 0 || a.top == b.top) {
        a = {b.top, a.sum + b.sum};
    } else if (a.top < b.top) {
        a = {b.top, a.sum * exp(a.top - b.top) + b.sum};
    } else {  // or one is nan, which the product brings into the sum
        a = {a.top, a.sum + b.sum * exp(b.top - a.top)};
    }
}

template <class T> INLINE Exponents row_exponents(const T *p, int64_t n, T top) {
    constexpr int L = LANES<T>;
    if (!(top - top == 0)) return {static_cast<double>(top), top < 0 ? 0.0 : 1.0};  // infinite, or nan
    const vec<T> largest = splat(top);
    vec<T> a = {}, b = {};
    for (int64_t i = 0; i < n; i += L) {  // to two sums in turns; one copy of the function, which is long
        const vec<T> v = i + L <= n ? load(p + i) : load_part(p + i, n - i, -static_cast<T>(__builtin_inf()));
        const vec<T> sum = a + exp_below(v - largest);
        a = b;
        b = sum;
    }
    return {static_cast<double>(top), static_cast<double>(across<T, Sum, VECTOR_BYTES>(a + b))};
}
template <class T> static void exponents_rows(const void *x, int64_t n, int64_t count, int64_t step, void *out) {
    by_rows<T, Max>(x, n, count, step, [=](const T *p, int64_t first, int64_t m, const T *tops) {
        for (int64_t r = 0; r < m; r++) static_cast<Exponents *>(out)[first + r] = row_exponents(p + r * step, n, tops[r]);
    });
}

template <class T>
static void exponents_columns(const void *from, int64_t count, int64_t step, int64_t m, void *acc, int64_t) {
    constexpr int L = LANES<T>;
    const T *x = static_cast<const T *>(from);
    T top[COLUMN_TILE + L], sum[COLUMN_TILE + L];
    for (int64_t j = 0; j < m; j++) top[j] = lowest<T>();
    columns<T, Max>(x, count, step, m, top);
    for (int64_t j = 0; j < m; j += L) {
        int64_t w = m - j < L ? m - j : L;
        vec<T> s = {}, t = w == L ? load(top + j) : load_part(top + j, w);
        vec<T> largest = t - t == 0 ? t : vec<T>{};
        for (int64_t r = 0; r < count; r++) {
            const T *p = x + r * step + j;
            s += exp_below((w == L ? load(p) : load_part(p, w)) - largest);
        }
        store(sum + j, s);
    }
    for (int64_t j = 0; j < m; j++) {
        bool finite = top[j] - top[j] == 0;
        double total = finite ? static_cast<double>(sum[j]) : top[j] < 0 ? 0.0 : 1.0;
        merge_exponents(static_cast<Exponents *>(acc)[j], {static_cast<double>(top[j]), total});
    }
}

[[maybe_unused]] constexpr Reducer NONE = {nullptr, nullptr};
template <class T, class Op> static constexpr Reducer BEST = {best_rows<T, Op>, best_columns<T, Op>};
template <class T, class Op> static constexpr Reducer MERGE_BEST = MERGER<Best, merge_two_best<T, Op>>;
#if defined(MORTICE_AFTER_AVX2)  // AVX2 is as fast
#define MORTICE_BEST_KERNELS(KIND, Op) {}
#elif defined(MORTICE_AFTER_BASELINE)  // unsigned integers are rare
#define MORTICE_BEST_KERNELS(KIND, Op)                                                                       \
    {NONE, NONE, NONE, NONE, NONE, NONE, NONE, KIND<int32_t, Op>, KIND<int64_t, Op>, NONE, NONE, KIND<float, Op>, \
     KIND<double, Op>, NONE, NONE}
#else
#define MORTICE_BEST_KERNELS(KIND, Op)                                                                       \
    {NONE, NONE, NONE, KIND<uint32_t, Op>, KIND<uint64_t, Op>, NONE, NONE, KIND<int32_t, Op>,                \
     KIND<int64_t, Op>, NONE, NONE, KIND<float, Op>, KIND<double, Op>, NONE, NONE}
#endif

// Merging is little work beside what is merged: of accumulators without arithmetic one copy serves all.
#if defined(MORTICE_AFTER_BASELINE)
#define MORTICE_MERGE_BEST(Op) {}
#else
#define MORTICE_MERGE_BEST(Op) MORTICE_BEST_KERNELS(MERGE_BEST, Op)
#endif

extern const ReduceMoreKernels reduce_more_kernels_table;
const ReduceMoreKernels reduce_more_kernels_table = {
    MORTICE_BEST_KERNELS(BEST, Max),
    MORTICE_BEST_KERNELS(BEST, Min),
    MORTICE_MERGE_BEST(Max),
    MORTICE_MERGE_BEST(Min),
    MORTICE_MODERN({{var_rows<float>, var_columns<float>}, {var_rows<double>, var_columns<double>}}),
    MORTICE_MODERN(MORTICE_UP_TO_AVX2(MERGER<Moments, merge_moments>)),
    MORTICE_MODERN({{exponents_rows<float>, exponents_columns<float>}, {exponents_rows<double>, exponents_columns<double>}}),
    MORTICE_MODERN(MORTICE_UP_TO_AVX2(MERGER<Exponents, merge_exponents>)),
};

}  // namespace mortice::ISA
