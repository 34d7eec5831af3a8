// Sums, products, extremes and counts, and the staging of elements for them.
#include "reduce.hpp"

#include "half.hpp"
#include "reduce_loops.hpp"

namespace mortice::ISA {

template <class T, class Op> static constexpr Reducer REDUCER = {rows<T, Op>, columns<T, Op>};
constexpr Reducer NONE = {nullptr, nullptr};

// ---- products of complex numbers ----

template <class T> INLINE complex_of<T> times(complex_of<T> a, complex_of<T> b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class T> static void complex_rows(const void *from, int64_t n, int64_t count, int64_t step, void *to) {
    const complex_of<T> *x = static_cast<const complex_of<T> *>(from);
    for (int64_t r = 0; r < count; r++) {
        complex_of<T> a = x[r * step];
        for (int64_t i = 1; i < n; i++) a = times(a, x[r * step + i]);
        static_cast<complex_of<T> *>(to)[r] = a;
    }
}
template <class T>
static void complex_columns(const void *from, int64_t count, int64_t step, int64_t m, void *to, int64_t) {
    const complex_of<T> *x = static_cast<const complex_of<T> *>(from);
    complex_of<T> *acc = static_cast<complex_of<T> *>(to);
    for (int64_t r = 0; r < count; r++)
        for (int64_t j = 0; j < m; j++) acc[j] = times(acc[j], x[r * step + j]);
}
template <class T> static constexpr Reducer COMPLEX_PRODUCT = {complex_rows<T>, complex_columns<T>};

// ---- counts ----

static int64_t count_row(const uint8_t *p, int64_t n) {
    constexpr int L = LANES<uint8_t>;
    int64_t total = 0, i = 0;
    while (i + L <= n) {  // a lane holds up to 255
        vec<uint8_t> a = {};
        for (int k = 0; k < 255 && i + L <= n; k++, i += L) a += load(p + i);
        uint8_t room[L];
        store(room, a);
        for (int k = 0; k < L; k++) total += room[k];
    }
    for (; i < n; i++) total += p[i];
    return total;
}
static void count_rows(const void *x, int64_t n, int64_t count, int64_t step, void *out) {
    for (int64_t r = 0; r < count; r++)
        static_cast<int64_t *>(out)[r] = count_row(static_cast<const uint8_t *>(x) + r * step, n);
}
static void count_columns(const void *x, int64_t count, int64_t step, int64_t m, void *to, int64_t) {
    static_assert(COLUMN_ROWS < 256, "a byte counts the lines");
    uint8_t part[COLUMN_TILE];
    for (int64_t j = 0; j < m; j++) part[j] = 0;
    columns<uint8_t, Sum>(x, count, step, m, part);
    for (int64_t j = 0; j < m; j++) static_cast<int64_t *>(to)[j] += part[j];
}

// ---- staging ----

template <class T, class Out, class F>
INLINE void change(const void *from, int64_t step, void *to, int64_t n, F function) {
    const T *__restrict in = static_cast<const T *>(from);
    Out *__restrict out = static_cast<Out *>(to);
    if (step == 1)
        for (int64_t i = 0; i < n; i++) out[i] = function(in[i]);
    else
        for (int64_t i = 0; i < n; i++) out[i] = function(in[i * step]);
}

template <class T> static void truth(const void *in, int64_t step, void *out, int64_t n) {
    change<T, uint8_t>(in, step, out, n, [](T x) -> uint8_t {
        if constexpr (__is_same(T, half) || __is_same(T, bhalf)) return (x.bits & 0x7fff) != 0;
        else if constexpr (__is_same(T, cfloat) || __is_same(T, cdouble)) return (x.re != 0) | (x.im != 0);
        else return x != 0;
    });
}
template <class H> static void halves(const void *in, int64_t step, void *out, int64_t n) {
    widen<H>(static_cast<const char *>(in), step * 2, static_cast<float *>(out), n);
}
template <class T> static void known(const void *in, int64_t step, void *out, int64_t n) {
    change<T, T>(in, step, out, n, [](T x) { return x == x ? x : T(0); });
}
template <class H> static void known_halves(const void *in, int64_t step, void *out, int64_t n) {
    halves<H>(in, step, out, n);
    auto *x = static_cast<float *>(out);
    for (int64_t i = 0; i < n; i++) x[i] = x[i] == x[i] ? x[i] : 0;
}
template <class T> static void integers(const void *in, int64_t step, void *out, int64_t n) {
    change<T, int32_t>(in, step, out, n, [](T x) { return static_cast<int32_t>(x); });
}
template <class T> static void gather(const void *in, int64_t step, void *out, int64_t n) {
    if (step == 1) __builtin_memcpy(out, in, n * sizeof(T));
    else change<T, T>(in, step, out, n, [](T x) { return x; });
}

// Smaller integers are widened to 32 bits first, but for bytes in max and min, which are `any` and `all`.
#define MORTICE_ORDER_KERNELS(Op)                                                                           \
    {REDUCER<uint8_t, Op>, REDUCER<uint8_t, Op>, NONE, REDUCER<uint32_t, Op>, REDUCER<uint64_t, Op>,        \
     NONE, NONE, REDUCER<int32_t, Op>, REDUCER<int64_t, Op>, NONE, NONE, REDUCER<float, Op>,                \
     REDUCER<double, Op>, NONE, NONE}
// Two's complement: sums and products of signed integers have the bits of those of unsigned ones.
#define MORTICE_RING_KERNELS(Op, complex_float, complex_double)                                             \
    {NONE, NONE, NONE, REDUCER<uint32_t, Op>, REDUCER<uint64_t, Op>, NONE, NONE, REDUCER<uint32_t, Op>,     \
     REDUCER<uint64_t, Op>, NONE, NONE, REDUCER<float, Op>, REDUCER<double, Op>, complex_float, complex_double}

constexpr ReduceKernels ALL = {
    MORTICE_RING_KERNELS(Sum, NONE, NONE),
    MORTICE_RING_KERNELS(Product, COMPLEX_PRODUCT<float>, COMPLEX_PRODUCT<double>),
    MORTICE_ORDER_KERNELS(Max),
    MORTICE_ORDER_KERNELS(Min),
    {count_rows, count_columns},
    {truth<uint8_t>, truth<uint8_t>, truth<uint16_t>, truth<uint32_t>, truth<uint64_t>, truth<uint8_t>,
     truth<uint16_t>, truth<uint32_t>, truth<uint64_t>, truth<half>, truth<bhalf>, truth<float>, truth<double>,
     truth<cfloat>, truth<cdouble>},
    {integers<uint8_t>, integers<uint8_t>, integers<uint16_t>, nullptr, nullptr, integers<int8_t>, integers<int16_t>,
     nullptr, nullptr, halves<half>, halves<bhalf>, nullptr, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, known_halves<half>, known_halves<bhalf>,
     known<float>, known<double>, nullptr, nullptr},
    {gather<uint8_t>, gather<uint16_t>, gather<uint32_t>, gather<uint64_t>, gather<cdouble>},
};
constexpr ReduceKernels chosen() {
    ReduceKernels t = ALL;
#if defined(MORTICE_AFTER_BASELINE)  // of what is left out one copy is enough
    for (int d = 0; d < DTYPES; d++) {
        const bool real = d == F32 || d == F64;
        if (!real && d != I64) t.prod[d] = NONE;
        if (d == U32 || d == U64) t.max[d] = t.min[d] = NONE;
        if (!real && d != BOOL && d != I32 && d != I64) t.truth[d] = nullptr;
        if (d == U16 || d == I16) t.widen[d] = nullptr;
    }
#endif
    return t;
}

extern const ReduceKernels reduce_kernels_table;
constexpr ReduceKernels made = chosen();
const ReduceKernels reduce_kernels_table = made;

}  // namespace mortice::ISA
