// Converting elements: what C gives where it is defined, and what x86 and NumPy give where it is not (no undefined behaviour).
//
// Floats become integers by truncation; one out of range, or nan, becomes the lowest int32 (int64 for wide integers), of
// which narrow integers keep the low bits. Halves go through float in blocks, complex numbers through their parts.
#include "convert.hpp"

#include <string.h>

#include "half.hpp"

#define APART static __attribute__((noinline))  // tables point at it and others call it: one copy is enough

namespace mortice::ISA {

// ---- one element ----

struct truth { uint8_t value; };  // a bool: any byte but 0 is True

INLINE int32_t to_i32(double v) { return v > -2147483649.0 && v < 2147483648.0 ? static_cast<int32_t>(v) : INT32_MIN; }
INLINE int32_t to_i32(float v) {
    return v >= -2147483648.0f && v < 2147483648.0f ? static_cast<int32_t>(v) : INT32_MIN;
}
template <class F> INLINE int64_t to_i64(F v) {
    return v >= F(-9223372036854775808.0) && v < F(9223372036854775808.0) ? static_cast<int64_t>(v) : INT64_MIN;
}
template <class F> INLINE uint64_t to_u64(F v) {
    const F half = F(9223372036854775808.0);
    return v >= half ? static_cast<uint64_t>(to_i64(v - half)) ^ (uint64_t{1} << 63) : static_cast<uint64_t>(to_i64(v));
}

template <class To, class From> INLINE To convert_one(From x) {
    if constexpr (__is_same(From, truth)) {
        if constexpr (__is_same(To, truth)) return {static_cast<uint8_t>(x.value != 0)};
        else return static_cast<To>(x.value != 0);
    } else if constexpr (__is_same(To, truth)) {
        return {static_cast<uint8_t>(x != 0)};
    } else if constexpr (FLOATING<From> && !FLOATING<To>) {
        if constexpr (__is_same(To, uint64_t)) return to_u64(x);
        else if constexpr (sizeof(To) == 8 || __is_same(To, uint32_t)) return static_cast<To>(to_i64(x));
        else return static_cast<To>(to_i32(x));
    } else {
        return static_cast<To>(x);
    }
}

template <class To, class From> APART void convert_real(char *const *at, const int64_t *step, int64_t n, const void *) {
    if (step[0] == sizeof(To) && step[1] == sizeof(From)) {
        To *__restrict__ out = reinterpret_cast<To *>(at[0]);
        const From *__restrict__ in = reinterpret_cast<const From *>(at[1]);
        INDEPENDENT for (int64_t i = 0; i < n; i++) out[i] = convert_one<To>(in[i]);
        return;
    }
    char *out = at[0];
    const char *in = at[1];
    for (int64_t i = 0; i < n; i++, out += step[0], in += step[1])
        *reinterpret_cast<To *>(out) = convert_one<To>(*reinterpret_cast<const From *>(in));
}

// ---- copies ----

struct wide { uint64_t low, high; };

#if defined(__AVX2__)
// Every third byte, as the colours of pixels lie: sixteen at a time, while there are bytes after what is read. Returns how many.
static int64_t copy_thirds(char *to, const char *from, int64_t n) {
    typedef int8_t Sixteen __attribute__((vector_size(16)));
    const Sixteen ends = {0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 0, 0, 0, 0, 0};
    const Sixteen rest = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 17, 20, 23, 26, 29};
    int64_t i = 0;
    for (; i + 16 < n; i += 16) {
        Sixteen x[3];
        memcpy(x, from + 3 * i, sizeof x);
        const Sixteen made = mixed(mixed(x[0], x[1], ends), x[2], rest);
        memcpy(to + i, &made, sizeof made);
    }
    return i;
}
#endif

template <class T> APART void copy_elements(char *const *at, const int64_t *step, int64_t n, const void *) {
    const int64_t size = sizeof(T);
    if (step[0] == size && step[1] == size) {
        memmove(at[0], at[1], n * size);
        return;
    }
    if (step[0] == size && step[1] == 0) {
        const T value = *reinterpret_cast<const T *>(at[1]);
        T *out = reinterpret_cast<T *>(at[0]);
        for (int64_t i = 0; i < n; i++) out[i] = value;
        return;
    }
    if (step[0] == size && step[1] == -size) {  // flipped
        T *__restrict__ out = reinterpret_cast<T *>(at[0]);
        const T *__restrict__ in = reinterpret_cast<const T *>(at[1]);
        for (int64_t i = 0; i < n; i++) out[i] = in[-i];
        return;
    }
    int64_t i = 0;
#if defined(__AVX2__)
    if (size == 1 && step[0] == 1 && step[1] == 3) i = copy_thirds(at[0], at[1], n);
#endif
    char *out = at[0] + i * step[0];
    const char *in = at[1] + i * step[1];
    for (; i < n; i++, out += step[0], in += step[1])
        *reinterpret_cast<T *>(out) = *reinterpret_cast<const T *>(in);
}

// ---- halves ----

// A double as a float that is rounded to odd where it is not exact: rounding that again gives what rounding once would.
INLINE float to_odd(double x) {
    const float f = static_cast<float>(x);
    const double back = f, a = back < 0 ? -back : back, b = x < 0 ? -x : x;
    uint32_t bits = as_bits<uint32_t>(f);
    bits = a > b ? (bits - 1) | 1 : a < b ? bits | 1 : bits;
    return as_float_bits<float>(bits);
}

template <class H> APART void widen_run(char *const *at, const int64_t *step, int64_t n, const void *) {
    if (step[0] == sizeof(float)) return widen<H>(at[1], step[1], reinterpret_cast<float *>(at[0]), n);
    for (int64_t i = 0; i < n; i++)
        *reinterpret_cast<float *>(at[0] + i * step[0]) = to_float(*reinterpret_cast<const H *>(at[1] + i * step[1]));
}
template <class H> APART void narrow_run(char *const *at, const int64_t *step, int64_t n, const void *) {
    if (step[1] == sizeof(float)) return narrow<H>(reinterpret_cast<const float *>(at[1]), at[0], step[0], n);
    for (int64_t i = 0; i < n; i++)
        *reinterpret_cast<H *>(at[0] + i * step[0]) = from_float<H>(*reinterpret_cast<const float *>(at[1] + i * step[1]));
}
template <class H> APART void narrow_double(char *const *at, const int64_t *step, int64_t n, const void *) {
    float room[HALF_BLOCK];
    for (int64_t k = 0; k < n; k += HALF_BLOCK) {
        const int64_t m = n - k < HALF_BLOCK ? n - k : HALF_BLOCK;
        const char *in = at[1] + k * step[1];
        if (step[1] == sizeof(double))
            for (int64_t i = 0; i < m; i++) room[i] = to_odd(reinterpret_cast<const double *>(in)[i]);
        else
            for (int64_t i = 0; i < m; i++) room[i] = to_odd(*reinterpret_cast<const double *>(in + i * step[1]));
        narrow<H>(room, at[0] + k * step[0], step[0], m);
    }
}

// first, then second, with a block of floats between them
APART void through_floats(Inner first, Inner second, char *const *at, const int64_t *step, int64_t n) {
    alignas(64) float room[HALF_BLOCK];
    for (int64_t i = 0; i < n; i += HALF_BLOCK) {
        const int64_t m = n - i < HALF_BLOCK ? n - i : HALF_BLOCK;
        char *in[2] = {reinterpret_cast<char *>(room), at[1] + i * step[1]};
        const int64_t in_step[2] = {sizeof(float), step[1]};
        first(in, in_step, m, nullptr);
        char *out[2] = {at[0] + i * step[0], reinterpret_cast<char *>(room)};
        const int64_t out_step[2] = {step[0], sizeof(float)};
        second(out, out_step, m, nullptr);
    }
}
template <Inner first, Inner second> static void by_float(char *const *at, const int64_t *step, int64_t n, const void *) {
    through_floats(first, second, at, step, n);
}

// ---- complex numbers ----

// A real number becomes the real part; the imaginary one is 0.
template <class T> APART void join_zero(Inner real, char *const *at, const int64_t *step, int64_t n) {
    alignas(64) T room[HALF_BLOCK];
    for (int64_t k = 0; k < n; k += HALF_BLOCK) {
        const int64_t m = n - k < HALF_BLOCK ? n - k : HALF_BLOCK;
        char *in[2] = {reinterpret_cast<char *>(room), at[1] + k * step[1]};
        const int64_t in_step[2] = {sizeof(T), step[1]};
        real(in, in_step, m, nullptr);
        char *to = at[0] + k * step[0];
        if (step[0] == 2 * sizeof(T)) {
            T *__restrict__ out = reinterpret_cast<T *>(to);
            for (int64_t i = 0; i < m; i++) out[2 * i] = room[i], out[2 * i + 1] = 0;
            continue;
        }
        for (int64_t i = 0; i < m; i++, to += step[0]) {
            reinterpret_cast<T *>(to)[0] = room[i];
            reinterpret_cast<T *>(to)[1] = 0;
        }
    }
}
template <class T, Inner real> static void to_complex(char *const *at, const int64_t *step, int64_t n, const void *) {
    join_zero<T>(real, at, step, n);
}
template <class To, class From> static void complex_parts(char *const *at, const int64_t *step, int64_t n, const void *) {
    for (int64_t i = 0; i < n; i++) {
        const From *in = reinterpret_cast<const From *>(at[1] + i * step[1]);
        To *out = reinterpret_cast<To *>(at[0] + i * step[0]);
        out[0] = static_cast<To>(in[0]);
        out[1] = static_cast<To>(in[1]);
    }
}
template <class T> static void complex_truth(char *const *at, const int64_t *step, int64_t n, const void *) {
    for (int64_t i = 0; i < n; i++) {
        const T *in = reinterpret_cast<const T *>(at[1] + i * step[1]);
        at[0][i * step[0]] = static_cast<char>((in[0] != 0) | (in[1] != 0));
    }
}

// ---- the table ----

#define REAL_ROW(T, F16_INNER, BF16_INNER)                                                                  \
    {convert_real<truth, T>, convert_real<uint8_t, T>, convert_real<uint16_t, T>, convert_real<uint32_t, T>, \
     convert_real<uint64_t, T>, convert_real<int8_t, T>, convert_real<int16_t, T>, convert_real<int32_t, T>, \
     convert_real<int64_t, T>, F16_INNER, BF16_INNER, convert_real<float, T>, convert_real<double, T>,      \
     to_complex<float, convert_real<float, T>>, to_complex<double, convert_real<double, T>>}
#define INT_ROW(T)                                                                                          \
    REAL_ROW(T, (by_float<convert_real<float, T>, narrow_run<half>>), (by_float<convert_real<float, T>, narrow_run<bhalf>>))
// What becomes a float first: halves, by `first`.
#define VIA(first, To) by_float<first, convert_real<To, float>>
#define HALF_ROW(first, F16_INNER, BF16_INNER)                                                              \
    {VIA(first, truth), VIA(first, uint8_t), VIA(first, uint16_t), VIA(first, uint32_t), VIA(first, uint64_t), \
     VIA(first, int8_t), VIA(first, int16_t), VIA(first, int32_t), VIA(first, int64_t), F16_INNER, BF16_INNER, \
     first, VIA(first, double), to_complex<float, first>, to_complex<double, VIA(first, double)>}

#if defined(MORTICE_AFTER_AVX2)  // whether it has instructions for these two that AVX2 has not
constexpr bool is_real(int d) { return d == F32 || d == F64; }
constexpr bool gains(int x, int y) {
    return (is_real(x) && (y == I64 || y == U8 || y == BOOL)) || (x == I64 && is_real(y));
}
#elif defined(MORTICE_AFTER_BASELINE)  // whether they are common
constexpr bool is_common(int d) { return d == BOOL || d == U8 || (d >= I32 && d <= F64); }
constexpr bool gains(int x, int y) { return x == y || (is_common(x) && is_common(y)); }
#endif

static void ramp(double start, double step, int64_t first, int64_t by, int64_t n, double *to) {
    const double from = static_cast<double>(first), each = static_cast<double>(by);
    for (int32_t i = 0; i < static_cast<int32_t>(n); i++) to[i] = __builtin_fma(step, from + static_cast<double>(i) * each, start);
}
static void ramps(const double *firsts, double step, int64_t groups, int64_t lanes, double *to) {
    for (int64_t g = 0; g < groups; g++, to += lanes)
        for (int32_t i = 0; i < static_cast<int32_t>(lanes); i++) to[i] = __builtin_fma(step, static_cast<double>(i), firsts[g]);
}

constexpr ConvertTable filled() {
    ConvertTable t = {{
        INT_ROW(truth), INT_ROW(uint8_t), INT_ROW(uint16_t), INT_ROW(uint32_t), INT_ROW(uint64_t), INT_ROW(int8_t),
        INT_ROW(int16_t), INT_ROW(int32_t), INT_ROW(int64_t),
        HALF_ROW(widen_run<half>, copy_elements<uint16_t>, (by_float<widen_run<half>, narrow_run<bhalf>>)),
        HALF_ROW(widen_run<bhalf>, (by_float<widen_run<bhalf>, narrow_run<half>>), copy_elements<uint16_t>),
        REAL_ROW(float, narrow_run<half>, narrow_run<bhalf>), REAL_ROW(double, narrow_double<half>, narrow_double<bhalf>),
        {}, {},
    }, ramp, ramps};
    // Copies.
    for (int d = 0; d < DTYPES; d++)
        t.inner[d][d] = ITEMSIZE[d] == 1   ? copy_elements<uint8_t>
                        : ITEMSIZE[d] == 2 ? copy_elements<uint16_t>
                        : ITEMSIZE[d] == 4 ? copy_elements<uint32_t>
                        : ITEMSIZE[d] == 8 ? copy_elements<uint64_t>
                                           : copy_elements<wide>;
    // Of integers to no wider ones the low bits stay, whatever the signs mean.
    for (int from = U8; from <= I64; from++)
        for (int to = U8; to <= U64; to++)
            if (ITEMSIZE[to] <= ITEMSIZE[from]) {
                const int unsign = from >= I8 ? from - (I8 - U8) : from;
                t.inner[from][to] = t.inner[from][to + (I8 - U8)] = t.inner[unsign][to];
            }
    // A complex number without its imaginary part is a real one further from the next.
    for (int to = U8; to <= F64; to++) {
        t.inner[C64][to] = t.inner[F32][to];
        t.inner[C128][to] = t.inner[F64][to];
    }
    t.inner[C64][BOOL] = complex_truth<float>;
    t.inner[C128][BOOL] = complex_truth<double>;
    t.inner[C64][C64] = copy_elements<uint64_t>;
    t.inner[C64][C128] = complex_parts<double, float>;
    t.inner[C128][C64] = complex_parts<float, double>;
    t.inner[C128][C128] = copy_elements<wide>;
#if defined(MORTICE_AFTER_BASELINE)
    for (int from = 0; from < DTYPES; from++)
        for (int to = 0; to < DTYPES; to++)
            if (!gains(from, to) && (from != I8 || to != F32)) t.inner[from][to] = nullptr;
#endif
    return t;
}

extern const ConvertTable convert_table;
constexpr ConvertTable convert_table_ = filled();
const ConvertTable convert_table = convert_table_;

}  // namespace mortice::ISA
