// Running sums, products, extremes and log-sum-exps.
#include "scan.hpp"

#include <math.h>

#include "half.hpp"

// Keeps a loop as it is written: what goes on from element to element gains nothing from being unrolled.
#define MORTICE_PLAIN(i) __asm__("" : "+r"(i))

namespace mortice::ISA {

// ---- what is carried: double for float, float for halves ----

template <class T> struct carried { typedef T type; };
template <> struct carried<float> { typedef double type; };
template <> struct carried<half> { typedef float type; };
template <> struct carried<bhalf> { typedef float type; };
template <> struct carried<cfloat> { typedef cdouble type; };
template <class T> using carry_of = typename carried<T>::type;

template <class T> INLINE carry_of<T> widened(T x) {
    if constexpr (__is_same(T, half) || __is_same(T, bhalf)) return to_float(x);
    else if constexpr (__is_same(T, cfloat)) return {x.re, x.im};
    else return x;
}
template <class T> INLINE T narrowed(carry_of<T> x) {
    if constexpr (__is_same(T, half) || __is_same(T, bhalf)) return from_float<T>(x);
    else if constexpr (__is_same(T, cfloat)) return {static_cast<float>(x.re), static_cast<float>(x.im)};
    else return static_cast<T>(x);
}

struct Plus {
    template <class A> INLINE A of(A a, A b) {
        if constexpr (__is_same(A, cfloat) || __is_same(A, cdouble)) return {a.re + b.re, a.im + b.im};
        else return static_cast<A>(a + b);
    }
};
struct Times {
    template <class A> INLINE A of(A a, A b) {
        if constexpr (__is_same(A, cfloat) || __is_same(A, cdouble))
            return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
        else return static_cast<A>(a * b);
    }
};

// ---- sums of floats, in double, and of integers: prefixes within a vector in log2(lanes) steps ----

template <class T, int BY> INLINE vec<T> shifted(vec<T> v, vec<T> start = vec<T>{}) {  // lane i takes lane i - BY
    typedef typename vector_of<T>::type V;
    constexpr int L = LANES<T>;
    typedef __typeof__(V{} < V{}) I;
    I from;
    for (int i = 0; i < L; i++) from[i] = i < BY ? L + i : i - BY;
    return mixed<V>(v, start, from);
}
template <class T> INLINE vec<T> prefixes(vec<T> v) {
    v += shifted<T, 1>(v);
    if constexpr (LANES<T> > 2) v += shifted<T, 2>(v);
    if constexpr (LANES<T> > 4) v += shifted<T, 4>(v);
    if constexpr (LANES<T> > 8) v += shifted<T, 8>(v);
    return v;
}

// The carry goes on exactly (as doubles are to floats) from block to block: the roundings of vectors stay within one.
constexpr int64_t EXACT_BLOCK = 1024;

INLINE vd as_carried(const float *x) {  // LANES<double> of them
    typedef float few __attribute__((vector_size(VECTOR_BYTES / 2)));
    few f;
    __builtin_memcpy(&f, x, sizeof f);
    return __builtin_convertvector(f, vd);
}
INLINE vec<uint64_t> as_carried(const uint64_t *x) { return load(x); }
INLINE void put_carried(float *out, vd v) {
    typedef float few __attribute__((vector_size(VECTOR_BYTES / 2)));
    few f = __builtin_convertvector(v, few);
    __builtin_memcpy(out, &f, sizeof f);
}
INLINE void put_carried(uint64_t *out, vec<uint64_t> v) { store(out, v); }

INLINE double exact_sum(const float *x, int64_t n) {
    constexpr int L = LANES<double>;
    vd a = {}, b = {}, c = {}, d = {};
    int64_t i = 0;
    for (; i + 4 * L <= n; i += 4 * L) {
        a += as_carried(x + i), b += as_carried(x + i + L);
        c += as_carried(x + i + 2 * L), d += as_carried(x + i + 3 * L);
    }
    double total = sum_lanes<double>((a + b) + (c + d));
    for (; i < n; i++) {
        MORTICE_PLAIN(i);
        total += static_cast<double>(x[i]);
    }
    return total;
}

template <class T> INLINE carry_of<T> sum_row(const T *x, T *out, int64_t n, carry_of<T> base, carry_of<T> carry) {
    constexpr int L = LANES<carry_of<T>>;
    for (; n > 0; n -= EXACT_BLOCK, x += EXACT_BLOCK) {
        int64_t m = n < EXACT_BLOCK ? n : EXACT_BLOCK, i = 0;
        if (out) {
            carry_of<T> c = base + carry;
            for (; i + L <= m; i += L) {
                const auto v = prefixes<carry_of<T>>(as_carried(x + i));
                put_carried(out + i, v + splat(c));
                c += v[L - 1];
            }
            for (; i < m; i++) {
                MORTICE_PLAIN(i);
                c += static_cast<carry_of<T>>(x[i]);
                out[i] = static_cast<T>(c);
            }
            if (n < EXACT_BLOCK) return carry;  // the end of the row: nobody goes on from here
            out += EXACT_BLOCK;
        }
        if constexpr (__is_same(T, float)) {
            carry += exact_sum(x, m);
        } else {
            for (i = 0; i < m; i++) carry += x[i];
        }
    }
    return carry;
}

// ---- products of floats: the same, in double, where no group of 8 leaves the range ----

INLINE double product_row(const float *x, float *out, int64_t n, double carry) {
    constexpr int L = LANES<double>;
    typedef float few __attribute__((vector_size(VECTOR_BYTES / 2)));
    int64_t i = 0;
    for (; i + L <= n; i += L) {
        vd v = as_carried(x + i);
        v *= shifted<double, 1>(v, splat(1.0));
        if constexpr (L > 2) v *= shifted<double, 2>(v, splat(1.0));
        if constexpr (L > 4) v *= shifted<double, 4>(v, splat(1.0));
        few f = __builtin_convertvector(v * splat(carry), few);
        __builtin_memcpy(out + i, &f, sizeof f);
        carry *= v[L - 1];
    }
    for (; i < n; i++) {
        MORTICE_PLAIN(i);
        carry *= static_cast<double>(x[i]);
        out[i] = static_cast<float>(carry);
    }
    return carry;
}

// ---- rows ----

template <class T, class Op>
static void row(const void *from, int64_t step, void *to, int64_t out_step, int64_t n, const Carry &base, Carry &carry) {
    typedef carry_of<T> A;
    const T *x = static_cast<const T *>(from);
    T *out = static_cast<T *>(to);
    A first, c;
    __builtin_memcpy(&first, &base, sizeof first);
    __builtin_memcpy(&c, &carry, sizeof c);
    constexpr bool FLOAT = __is_same(T, float);
    constexpr bool SUMMED = FLOAT || __is_same(T, uint64_t);
    if constexpr ((__is_same(Op, Plus) && SUMMED) || (__is_same(Op, Times) && FLOAT)) {
        if (step == 1 && out_step == 1) {
            if constexpr (__is_same(Op, Plus)) c = sum_row<T>(x, out, n, first, c);
            else c = product_row(x, out, n, c);
            __builtin_memcpy(&carry, &c, sizeof c);
            return;
        }
    }
    if constexpr (__is_same(T, double)) {
        if (step == 1 && out_step == 1) {  // several at a time, for all but the sum itself; no base was asked for
            int64_t i = 0;
            for (; i + 4 <= n; i += 4) {
                const double c1 = Op::of(c, x[i]), c2 = Op::of(c1, x[i + 1]), c3 = Op::of(c2, x[i + 2]);
                c = Op::of(c3, x[i + 3]);
                out[i] = c1, out[i + 1] = c2, out[i + 2] = c3, out[i + 3] = c;
            }
            x += i, out += i, n -= i;
        }
    }
    for (int64_t i = 0; i < n; i++) {
        MORTICE_PLAIN(i);
        c = Op::of(c, widened(x[i * step]));
        if (!out) continue;
        if constexpr (__is_same(Op, Plus)) out[i * out_step] = narrowed<T>(Op::of(first, c));
        else out[i * out_step] = narrowed<T>(c);
    }
    __builtin_memcpy(&carry, &c, sizeof c);
}

template <class T, class Op> static void combine(Carry &base, const Carry &more) {
    carry_of<T> a, b;
    __builtin_memcpy(&a, &base, sizeof a);
    __builtin_memcpy(&b, &more, sizeof b);
    a = Op::of(a, b);
    __builtin_memcpy(&base, &a, sizeof a);
}

// ---- columns ----

template <class T, class Op>
static void columns(const void *from, int64_t step, void *to, int64_t out_step, int64_t count, int64_t m) {
    carry_of<T> c[SCAN_TILE];
    for (int64_t r = 0; r < count; r++) {
        const T *__restrict x = static_cast<const T *>(from) + r * step;
        T *__restrict out = static_cast<T *>(to) + r * out_step;
        if (r == 0) {
            for (int64_t j = 0; j < m; j++) {
                c[j] = widened(x[j]);
                out[j] = x[j];
            }
            continue;
        }
        for (int64_t j = 0; j < m; j++) {
            if constexpr (sizeof(T) <= 2) MORTICE_PLAIN(j);
            c[j] = Op::of(c[j], widened(x[j]));
            out[j] = narrowed<T>(c[j]);
        }
    }
}

// ---- extremes ----

template <class T, bool MAX> INLINE bool reaches(T x, T best) {
    if constexpr (__is_same(T, half) || __is_same(T, bhalf)) return reaches<float, MAX>(to_float(x), to_float(best));
    else return (MAX ? x >= best : x <= best) | (x != x);
}

template <class T, bool MAX>
static void extreme_row(const void *from, int64_t step, void *to, int64_t *places, int64_t out_step, int64_t n) {
    const T *x = static_cast<const T *>(from);
    T *out = static_cast<T *>(to);
    if (n == 0) return;
    T best = x[0];
    int64_t place = 0;
    for (int64_t i = 0; i < n; i++) {
        MORTICE_PLAIN(i);
        T v = x[i * step];
        bool up = reaches<T, MAX>(v, best);
        best = up ? v : best;
        place = up ? i : place;
        out[i * out_step] = best;
        places[i * out_step] = place;
    }
}

// Of columns, whose loop is long, there is one copy for both: `flip` turns the order round, as the factor -1 or as the bits
// of integers.
template <class T> struct compared { typedef T type; };
template <> struct compared<half> { typedef float type; };
template <> struct compared<bhalf> { typedef float type; };
template <class T> using flip_of = typename compared<T>::type;

template <class T> INLINE flip_of<T> flipped(T x, flip_of<T> flip) {
    if constexpr (__is_same(T, half) || __is_same(T, bhalf)) return to_float(x) * flip;
    else if constexpr (FLOATING<T>) return x * flip;
    else return static_cast<T>(x ^ flip);
}

template <class T>
static __attribute__((noinline)) void extremes_of_columns(const T *from, int64_t step, T *to, int64_t *places, int64_t out_step,
                                                          int64_t count, int64_t m, flip_of<T> flip) {
    T best[SCAN_TILE];
    int64_t place[SCAN_TILE];
    for (int64_t j = 0; j < m; j++) {
        best[j] = from[j];
        place[j] = 0;
    }
    for (int64_t r = 0; r < count; r++) {
        const T *__restrict x = from + r * step;
        T *__restrict out = to + r * out_step;
        int64_t *__restrict at = places + r * out_step;
        for (int64_t j = 0; j < m; j++) {
            if constexpr (sizeof(T) <= 2) MORTICE_PLAIN(j);
            T v = x[j], b = best[j];
            bool up = reaches<flip_of<T>, true>(flipped(v, flip), flipped(b, flip));
            b = up ? v : b;
            int64_t p = up ? r : place[j];
            best[j] = b, out[j] = b;
            place[j] = p, at[j] = p;
        }
    }
}
template <class T, bool MAX>
static void extreme_columns(const void *from, int64_t step, void *to, int64_t *places, int64_t out_step, int64_t count, int64_t m) {
    constexpr bool real = FLOATING<flip_of<T>>;
    constexpr auto flip = static_cast<flip_of<T>>(MAX ? (real ? 1 : 0) : -1);
    extremes_of_columns(static_cast<const T *>(from), step, static_cast<T *>(to), places, out_step, count, m, flip);
}

// ---- sums of exponentials: the largest so far, and the sum of exp(x - largest) ----

struct Exponential {
    double top, sum;
};
INLINE void take_in(Exponential &a, double x) {
    if (x <= a.top) {
        if (x == a.top) a.sum += 1;
        else a.sum += exp(x - a.top);
    } else if (x > a.top) {
        a.sum = a.sum * exp(a.top - x) + 1;
        a.top = x;
    } else {
        a.sum = x;  // nan
    }
    if (a.top == -HUGE_VAL && !(a.sum != a.sum)) a.sum = 0;
}
template <class T>
static void exponential_row(const void *from, int64_t step, void *to, int64_t out_step, int64_t n, const Carry &,
                            Carry &carry) {
    const T *x = static_cast<const T *>(from);
    T *out = static_cast<T *>(to);
    Exponential a;
    __builtin_memcpy(&a, &carry, sizeof a);
    for (int64_t i = 0; i < n; i++) {
        take_in(a, static_cast<double>(widened(x[i * step])));
        out[i * out_step] = narrowed<T>(static_cast<carry_of<T>>(a.top + log(a.sum)));
    }
    __builtin_memcpy(&carry, &a, sizeof a);
}
template <class T>
static void exponential_columns(const void *from, int64_t step, void *to, int64_t out_step, int64_t count, int64_t m) {
    Exponential a[SCAN_TILE];
    for (int64_t j = 0; j < m; j++) a[j] = {-HUGE_VAL, 0};
    for (int64_t r = 0; r < count; r++)
        for (int64_t j = 0; j < m; j++) {
            MORTICE_PLAIN(j);
            take_in(a[j], static_cast<double>(widened(static_cast<const T *>(from)[r * step + j])));
            static_cast<T *>(to)[r * out_step + j] =
                narrowed<T>(static_cast<carry_of<T>>(a[j].top + log(a[j].sum)));
        }
}

template <class T, class Op> static constexpr Scanner SCANNER = {row<T, Op>, columns<T, Op>, combine<T, Op>};
template <class T> static constexpr Scanner EXPONENTIAL = {exponential_row<T>, exponential_columns<T>, nullptr};
template <class T, bool MAX> static constexpr ExtremeScanner EXTREME = {extreme_row<T, MAX>, extreme_columns<T, MAX>};
constexpr Scanner NONE = {nullptr, nullptr, nullptr};
constexpr ExtremeScanner NO_EXTREME = {nullptr, nullptr};

// Sums and products of signed integers have the bits of those of unsigned ones.
#define MORTICE_SCANNERS(Op)                                                                                 \
    {NONE, SCANNER<uint8_t, Op>, SCANNER<uint16_t, Op>, SCANNER<uint32_t, Op>, SCANNER<uint64_t, Op>,        \
     SCANNER<uint8_t, Op>, SCANNER<uint16_t, Op>, SCANNER<uint32_t, Op>, SCANNER<uint64_t, Op>,              \
     SCANNER<half, Op>, SCANNER<bhalf, Op>, SCANNER<float, Op>, SCANNER<double, Op>, SCANNER<cfloat, Op>,    \
     SCANNER<cdouble, Op>}
#define MORTICE_EXTREMES(MAX)                                                                                \
    {EXTREME<uint8_t, MAX>, EXTREME<uint8_t, MAX>, EXTREME<uint16_t, MAX>, EXTREME<uint32_t, MAX>,           \
     EXTREME<uint64_t, MAX>, EXTREME<int8_t, MAX>, EXTREME<int16_t, MAX>, EXTREME<int32_t, MAX>,             \
     EXTREME<int64_t, MAX>, EXTREME<half, MAX>, EXTREME<bhalf, MAX>, EXTREME<float, MAX>,                    \
     EXTREME<double, MAX>, NO_EXTREME, NO_EXTREME}

constexpr ScanKernels filled() {
    ScanKernels t = {
        MORTICE_SCANNERS(Plus),
        MORTICE_SCANNERS(Times),
        {NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, EXPONENTIAL<half>, EXPONENTIAL<bhalf>, EXPONENTIAL<float>,
         EXPONENTIAL<double>, NONE, NONE},
        MORTICE_EXTREMES(true),
        MORTICE_EXTREMES(false),
    };
#if defined(MORTICE_AFTER_BASELINE)
    for (int d = 0; d < DTYPES; d++) {  // of the others one copy is enough
        const bool common = d == F32 || d == F64 || d == I64;
        t.logsumexp[d] = NONE;  // waits for the C library
        if (!common) t.sum[d] = NONE;
        if (!common && d != I32) t.prod[d] = NONE, t.max[d] = t.min[d] = NO_EXTREME;
    }
#endif
    return t;
}

extern const ScanKernels scan_kernels_table;
constexpr ScanKernels made = filled();
const ScanKernels scan_kernels_table = made;

}  // namespace mortice::ISA
