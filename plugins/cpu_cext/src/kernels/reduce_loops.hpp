// The loops that reductions share: a row into one number, lines into a line of accumulators.
#pragma once
#include "simd.hpp"

namespace mortice::ISA {

// Keeps a loop over a few elements as it is written: widened and unrolled, such loops are most of the code.
#define MORTICE_PLAIN(i) __asm__("" : "+r"(i))

// ---- what to do with two elements, or two vectors of them ----

struct Sum {
    template <class V> INLINE V of(V a, V b) { return static_cast<V>(a + b); }
    template <class T> static constexpr T identity() { return T(0); }
};
struct Product {
    template <class V> INLINE V of(V a, V b) { return static_cast<V>(a * b); }
    template <class T> static constexpr T identity() { return T(1); }
};

template <class T> constexpr T lowest() {
    if constexpr (FLOATING<T>) return -static_cast<T>(__builtin_inf());
    else return T(-1) < T(0) ? static_cast<T>(T(1) << (sizeof(T) * 8 - 1)) : T(0);
}
template <class T> constexpr T highest() {
    if constexpr (FLOATING<T>) return static_cast<T>(__builtin_inf());
    else return static_cast<T>(~lowest<T>());
}

// A nan on either side is the result; of integers the second test is always false and goes.
struct Max {
    template <class V> INLINE V of(V a, V b) { return ((b > a) | (b != b)) ? b : a; }
    template <class T> static constexpr T identity() { return lowest<T>(); }
};
struct Min {
    template <class V> INLINE V of(V a, V b) { return ((b < a) | (b != b)) ? b : a; }
    template <class T> static constexpr T identity() { return highest<T>(); }
};

// ---- one row ----

template <class T, int BYTES> struct part_of { typedef T type __attribute__((vector_size(BYTES))); };

// Reduce the lanes of a vector, halves against each other.
template <class T, class Op, int BYTES> INLINE T across(typename part_of<T, BYTES>::type v) {
    if constexpr (BYTES > 16) {
        typename part_of<T, BYTES / 2>::type low, high;
        __builtin_memcpy(&low, &v, BYTES / 2);
        __builtin_memcpy(&high, reinterpret_cast<char *>(&v) + BYTES / 2, BYTES / 2);
        return across<T, Op, BYTES / 2>(Op::of(low, high));
    } else if constexpr (sizeof(T) >= 4) {  // in vectors, where nothing branches
        typedef typename part_of<T, 16>::type V;
        typedef __typeof__(V{} < V{}) I;
        if constexpr (sizeof(T) == 4) {
            v = Op::of(v, turned<V, I>(v, I{2, 3, 0, 1}));
            v = Op::of(v, turned<V, I>(v, I{1, 0, 3, 2}));
        } else {
            v = Op::of(v, turned<V, I>(v, I{1, 0}));
        }
        return v[0];
    } else {
        constexpr int N = BYTES / static_cast<int>(sizeof(T));
        T room[N];
        __builtin_memcpy(room, &v, BYTES);
        for (int half = N / 2; half; half /= 2)
            for (int i = 0; i < half; i++) room[i] = Op::of(room[i], room[i + half]);
        return room[0];
    }
}

template <class T> struct lane_numbers;
#define MORTICE_LANE_NUMBERS(T, I)                                  \
    template <> struct lane_numbers<T> {                            \
        typedef I type __attribute__((vector_size(VECTOR_BYTES)));  \
        typedef I lane;                                             \
    };
MORTICE_LANE_NUMBERS(uint8_t, int8_t) MORTICE_LANE_NUMBERS(int8_t, int8_t) MORTICE_LANE_NUMBERS(uint16_t, int16_t)
MORTICE_LANE_NUMBERS(int16_t, int16_t) MORTICE_LANE_NUMBERS(uint32_t, int32_t) MORTICE_LANE_NUMBERS(int32_t, int32_t)
MORTICE_LANE_NUMBERS(uint64_t, int64_t) MORTICE_LANE_NUMBERS(int64_t, int64_t) MORTICE_LANE_NUMBERS(float, int32_t)
MORTICE_LANE_NUMBERS(double, int64_t)
#undef MORTICE_LANE_NUMBERS
template <class T> using lanes_of = typename lane_numbers<T>::type;  // integers as wide as T: masks, places
template <class T> using lane_of = typename lane_numbers<T>::lane;

// True in the last `rest` lanes, 0 < rest <= LANES: with a load that ends at the row's end, its elements still to come.
template <class T> INLINE lanes_of<T> last_lanes(int64_t rest) {
    lane_of<T> room[LANES<T>];
    for (int i = 0; i < LANES<T>; i++) room[i] = static_cast<lane_of<T>>(i);
    lanes_of<T> numbers;
    __builtin_memcpy(&numbers, room, sizeof numbers);
    return numbers >= static_cast<lane_of<T>>(LANES<T> - rest) - lanes_of<T>{};
}

template <class T, class Op> constexpr bool EXTREME_OF_FLOATS = FLOATING<T> && (__is_same(Op, Max) || __is_same(Op, Min));

template <class T, class Op> INLINE T short_row(const T *p, int64_t n) {
    if constexpr (EXTREME_OF_FLOATS<T, Op>) {  // without branches
        T best = Op::template identity<T>();
        int bad = 0;
        for (int64_t i = 0; i < n; i++) {
            MORTICE_PLAIN(i);
            bad |= p[i] != p[i];
            best = __is_same(Op, Max) ? (p[i] > best ? p[i] : best) : (p[i] < best ? p[i] : best);
        }
        return bad ? static_cast<T>(__builtin_nan("")) : best;
    }
    T a = p[0];
    for (int64_t i = 1; i < n; i++) {
        MORTICE_PLAIN(i);
        a = Op::of(a, p[i]);
    }
    return a;
}
// Where the code is to be small, integers but bytes go one by one.
template <class T> constexpr bool SINGLY = SMALL && !FLOATING<T> && sizeof(T) >= 4;
template <class T, class Op> INLINE T folded_row(const T *p, int64_t n) {
    constexpr int L = LANES<T>;
    if (n < L || SINGLY<T>) return short_row<T, Op>(p, n);
    vec<T> a = load(p);
    if constexpr (SMALL) {
        vec<T> b = splat<T>(Op::template identity<T>()), c = b, d = b;
        int64_t i = L;
        for (; i + 4 * L <= n; i += 4 * L) {
            a = Op::of(a, load(p + i)), b = Op::of(b, load(p + i + L));
            c = Op::of(c, load(p + i + 2 * L)), d = Op::of(d, load(p + i + 3 * L));
        }
        for (; i + L <= n; i += L) a = Op::of(a, load(p + i));
        if (i < n) b = Op::of(b, last_lanes<T>(n - i) ? load(p + n - L) : splat<T>(Op::template identity<T>()));
        return across<T, Op, VECTOR_BYTES>(Op::of(Op::of(a, b), Op::of(c, d)));
    }
    if (n >= 8 * L) {
        vec<T> b = load(p + L), c = load(p + 2 * L), d = load(p + 3 * L);
        vec<T> e = load(p + 4 * L), f = load(p + 5 * L), g = load(p + 6 * L), h = load(p + 7 * L);
        int64_t i = 8 * L;
        for (; i + 8 * L <= n; i += 8 * L) {
            a = Op::of(a, load(p + i)), b = Op::of(b, load(p + i + L));
            c = Op::of(c, load(p + i + 2 * L)), d = Op::of(d, load(p + i + 3 * L));
            e = Op::of(e, load(p + i + 4 * L)), f = Op::of(f, load(p + i + 5 * L));
            g = Op::of(g, load(p + i + 6 * L)), h = Op::of(h, load(p + i + 7 * L));
        }
        if (i + 4 * L <= n) {
            a = Op::of(a, load(p + i)), b = Op::of(b, load(p + i + L));
            c = Op::of(c, load(p + i + 2 * L)), d = Op::of(d, load(p + i + 3 * L));
            i += 4 * L;
        }
        if (i + 2 * L <= n) {
            e = Op::of(e, load(p + i)), f = Op::of(f, load(p + i + L));
            i += 2 * L;
        }
        if (i + L <= n) {
            g = Op::of(g, load(p + i));
            i += L;
        }
        if (i < n) h = Op::of(h, last_lanes<T>(n - i) ? load(p + n - L) : splat<T>(Op::template identity<T>()));
        a = Op::of(Op::of(Op::of(a, b), Op::of(c, d)), Op::of(Op::of(e, f), Op::of(g, h)));
        return across<T, Op, VECTOR_BYTES>(a);
    }
    int64_t i = L;
    for (; i + L <= n; i += L) a = Op::of(a, load(p + i));
    if (i < n) a = Op::of(a, last_lanes<T>(n - i) ? load(p + n - L) : splat<T>(Op::template identity<T>()));
    return across<T, Op, VECTOR_BYTES>(a);
}

// ---- extremes of a row: what is seen twice does not matter, and nans are looked for two vectors at a time ----

#if defined(__AVX512F__)
typedef uint32_t nans;
INLINE nans unordered(vf a, vf b) { return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_UNORD_Q); }
INLINE nans unordered(vd a, vd b) { return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_UNORD_Q); }
INLINE bool any_of(nans m) { return m != 0; }
INLINE vf with_nans(nans m, vf v) { return (vf)_mm512_mask_mov_ps((__m512)v, (__mmask16)m, (__m512)splat(__builtin_nanf(""))); }
INLINE vd with_nans(nans m, vd v) { return (vd)_mm512_mask_mov_pd((__m512d)v, (__mmask8)m, (__m512d)splat(__builtin_nan(""))); }
#else
typedef vi nans;
INLINE nans unordered(vf a, vf b) { return (nans)((a != a) | (b != b)); }
INLINE nans unordered(vd a, vd b) { return (nans)((a != a) | (b != b)); }
INLINE bool any_of(nans m) {
    int64_t room[VECTOR_BYTES / 8], any = 0;
    __builtin_memcpy(room, &m, sizeof room);
    for (int i = 0; i < VECTOR_BYTES / 8; i++) any |= room[i];
    return any != 0;
}
INLINE vf with_nans(nans m, vf v) { return m ? splat(__builtin_nanf("")) : v; }
INLINE vd with_nans(nans m, vd v) { return (vl)m ? splat(__builtin_nan("")) : v; }
#endif

template <class Op, class V> INLINE V quick(V a, V b) {
    if constexpr (__is_same(Op, Max)) return vmax(a, b);
    else return vmin(a, b);
}

template <class Op> struct Quick {
    template <class V> INLINE V of(V a, V b) {
        if constexpr (__is_same(Op, Max)) return a > b ? a : b;
        else return a < b ? a : b;
    }
};

template <class T, class Op> INLINE T extreme_row(const T *p, int64_t n) {
    constexpr int L = LANES<T>;
    if (n < L || SINGLY<T>) return short_row<T, Op>(p, n);
    vec<T> a = load(p), b = a, c = a, d = a;
    nans bad = {};
    int64_t i = 0;
    for (; i + 4 * L <= n && !SMALL; i += 4 * L) {
        vec<T> x = load(p + i), y = load(p + i + L), z = load(p + i + 2 * L), w = load(p + i + 3 * L);
        if constexpr (FLOATING<T>) bad |= unordered(x, y) | unordered(z, w);
        a = quick<Op>(a, x), b = quick<Op>(b, y), c = quick<Op>(c, z), d = quick<Op>(d, w);
    }
    while (i < n) {  // the last vector overlaps; read before the others, it would be waited for
        vec<T> x = load(p + (i + L <= n ? i : n - L));
        if constexpr (FLOATING<T>) bad |= unordered(x, x);
        a = quick<Op>(a, x);
        i += L;
    }
    if constexpr (FLOATING<T>)
        if (any_of(bad)) return static_cast<T>(__builtin_nan(""));
    return across<T, Quick<Op>, VECTOR_BYTES>(quick<Op>(quick<Op>(a, b), quick<Op>(c, d)));
}

template <class T, class Op> INLINE T row(const T *p, int64_t n) {
    if constexpr (__is_same(Op, Max) || __is_same(Op, Min)) return extreme_row<T, Op>(p, n);
    else return folded_row<T, Op>(p, n);
}

// This and `columns` are not static: the files of an instruction set share one copy of each.
template <class T, class Op>
__attribute__((noinline)) void rows(const void *from, int64_t n, int64_t count, int64_t step, void *to) {
    const T *x = static_cast<const T *>(from);
    T *out = static_cast<T *>(to);
    if (SMALL || n >= LANES<T>) {
        for (int64_t r = 0; r < count; r++) {
            MORTICE_PLAIN(r);
            out[r] = row<T, Op>(x + r * step, n);
        }
        return;
    }
    int64_t r = 0;
    for (; !EXTREME_OF_FLOATS<T, Op> && r + 4 <= count; r += 4) {  // four short rows at a time, for none waits for another
        const T *p = x + r * step;
        T a = p[0], b = p[step], c = p[2 * step], d = p[3 * step];
        for (int64_t i = 1; i < n; i++) {
            MORTICE_PLAIN(i);
            a = Op::of(a, p[i]), b = Op::of(b, p[step + i]);
            c = Op::of(c, p[2 * step + i]), d = Op::of(d, p[3 * step + i]);
        }
        out[r] = a, out[r + 1] = b, out[r + 2] = c, out[r + 3] = d;
    }
    for (; r < count; r++) {
        MORTICE_PLAIN(r);
        out[r] = short_row<T, Op>(x + r * step, n);
    }
}

// ---- lines ----

template <class T, class Op, class V> INLINE V eight(V a, V b, V c, V d, V e, V f, V g, V h) {
    return Op::of(Op::of(Op::of(a, b), Op::of(c, d)), Op::of(Op::of(e, f), Op::of(g, h)));
}

// acc with eight vectors, the lines at p.
template <class T, class Op> INLINE vec<T> with_eight(vec<T> acc, const T *p, int64_t step) {
    const T *q = p + 4 * step;
    vec<T> a = load(p), b = load(p + step), c = load(p + 2 * step), d = load(p + 3 * step);
    vec<T> e = load(q), f = load(q + step), g = load(q + 2 * step), h = load(q + 3 * step);
    if constexpr (EXTREME_OF_FLOATS<T, Op>) {
        nans bad = (unordered(a, b) | unordered(c, d)) | (unordered(e, f) | unordered(g, h));
        vec<T> best = quick<Op>(quick<Op>(quick<Op>(a, b), quick<Op>(c, d)), quick<Op>(quick<Op>(e, f), quick<Op>(g, h)));
        return with_nans(bad, quick<Op>(best, acc));
    } else {
        return Op::of(acc, eight<T, Op>(a, b, c, d, e, f, g, h));
    }
}

INLINE int64_t least_of(int64_t a, int64_t b) { return a < b ? a : b; }

// Some lines, eight at most.
template <class T, class Op> INLINE vec<T> with_some(vec<T> acc, const T *p, int64_t step, int64_t lines) {
    if constexpr (EXTREME_OF_FLOATS<T, Op>) {
        vec<T> best = load(p);
        nans bad = unordered(best, best);
        for (int64_t k = 1; k < lines; k++) {
            vec<T> v = load(p + k * step);
            bad |= unordered(v, v);
            best = quick<Op>(best, v);
        }
        return with_nans(bad, quick<Op>(best, acc));
    }
    vec<T> part = load(p);
    for (int64_t k = 1; k < lines; k++) part = Op::of(part, load(p + k * step));
    return Op::of(acc, part);
}
template <class T, class Op> INLINE T with_column(T acc, const T *p, int64_t step, int64_t lines) {
    for (int64_t k = 0; k < lines; k++) {
        MORTICE_PLAIN(k);
        acc = Op::of(acc, p[k * step]);
    }
    return acc;
}

// Eight lines at once: accumulators are read and written once for them, and the machine follows eight streams. The last
// columns are a vector that overlaps those before it, whose accumulators are read before they are changed.
template <class T, class Op>
__attribute__((noinline)) void columns(const void *from, int64_t count, int64_t step, int64_t m, void *to, int64_t = 0) {
    const T *x = static_cast<const T *>(from);
    T *acc = static_cast<T *>(to);
    constexpr int L = LANES<T>;
    if (m < L) {
        for (int64_t r = 0; r < count; r += 8) {
            const T *p = x + r * step, *q = p + 4 * step;
            for (int64_t j = 0; j < m; j++) {
                MORTICE_PLAIN(j);
                if (r + 8 <= count && !SMALL)
                    acc[j] = Op::of(acc[j], eight<T, Op>(p[j], p[step + j], p[2 * step + j], p[3 * step + j], q[j],
                                                         q[step + j], q[2 * step + j], q[3 * step + j]));
                else
                    acc[j] = with_column<T, Op>(acc[j], p + j, step, least_of(count - r, 8));
            }
        }
        return;
    }
    // `f` for each vector of a line; the last one finds its accumulators as they were.
    const auto each = [acc, m](auto f) __attribute__((always_inline)) {
        const int64_t last = m - L;
        const vec<T> end = load(acc + last);
        for (int64_t j = 0;;) {
            store(acc + j, f(load(acc + j), j));
            j += L;
            if (j < last) continue;
            if (j >= m) return;
            j = last;
            store(acc + last, end);
        }
    };
    for (int64_t r = 0; r < count; r += 8) {
        const T *p = x + r * step;
        const int64_t lines = least_of(count - r, 8);
        if (lines == 8 && !SMALL)
            each([=](vec<T> a, int64_t j) __attribute__((always_inline)) { return with_eight<T, Op>(a, p + j, step); });
        else
            each([=](vec<T> a, int64_t j) __attribute__((always_inline)) { return with_some<T, Op>(a, p + j, step, lines); });
    }
}

}  // namespace mortice::ISA
