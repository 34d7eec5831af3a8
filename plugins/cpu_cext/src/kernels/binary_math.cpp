// Quotients rounded down and their rests, powers, lengths and angles, neighbours and divisors.
//
// Integers divided by 0 give 0; quotients and powers wrap. Floats follow C99, and Python in the sign of a rest.
#include <math.h>

#include "binary.hpp"
#include "lines.hpp"
#include "vpow.hpp"
#include "vtrig.hpp"

namespace mortice::ISA {

template <class T> static constexpr bool has_sign = T(-1) < T(0);

// ---- integers ----

// The quotient towards zero. Of 32 bits it is exact in double, of fewer in float, which vectors can divide.
template <class T> INLINE T quotient(T a, T b) {
    if constexpr (sizeof(T) < 4) {
        const float q = static_cast<float>(a) / static_cast<float>(b == 0 ? T(1) : b);
        return b == 0 ? T(0) : static_cast<T>(static_cast<int32_t>(q));
    } else if constexpr (sizeof(T) == 4) {
        const double q = static_cast<double>(a) / static_cast<double>(b == 0 ? T(1) : b);
        if constexpr (has_sign<T>) return b == 0 ? 0 : q < 2147483648.0 ? static_cast<T>(q) : a;
        else return b == 0 ? 0 : static_cast<T>(static_cast<int64_t>(q));
    } else {
        if (b == 0) return 0;
        if (has_sign<T> && b == T(-1)) return static_cast<T>(0 - static_cast<uint64_t>(a));
        // Division of 32 bits takes half the time, and most numbers are small.
        if (((static_cast<uint64_t>(a) | static_cast<uint64_t>(b)) >> 32) == 0)
            return static_cast<T>(static_cast<uint32_t>(a) / static_cast<uint32_t>(b));
        return a / b;
    }
}
template <class T> INLINE T rest_of(T a, T b, T q) {
    using U = unsigned_of<T>;
    return static_cast<T>(static_cast<U>(a) - static_cast<U>(static_cast<uint64_t>(static_cast<U>(q)) * static_cast<U>(b)));
}
template <class T> INLINE T int_fmod(T a, T b) {
    const T r = rest_of(a, b, quotient(a, b));
    return b == 0 ? T(0) : r;
}
template <class T> INLINE T int_remainder(T a, T b) {
    const T r = int_fmod(a, b);
    return has_sign<T> && r != 0 && (r < 0) != (b < 0) ? static_cast<T>(r + b) : r;
}
template <class T> INLINE T int_floor_divide(T a, T b) {
    const T q = quotient(a, b);
    if constexpr (!has_sign<T>) return q;
    const T r = rest_of(a, b, q);
    // A difference instead of a choice: vectors have it.
    return static_cast<T>(static_cast<unsigned_of<T>>(q) - ((b != 0) & (r != 0) & ((r ^ b) < 0)));
}
template <class T> INLINE T int_pow(T x, T y) {
    using U = unsigned_of<T>;
    if (has_sign<T> && y < 0) return x == 1 ? T(1) : x == T(-1) ? (y & 1 ? T(-1) : T(1)) : T(0);
    uint64_t result = 1, base = static_cast<U>(x);
    for (uint64_t n = static_cast<U>(y); n; n >>= 1, base *= base)
        if (n & 1) result *= base;
    return static_cast<T>(static_cast<U>(result));
}
template <class T> INLINE uint64_t magnitude(T x) {
    return has_sign<T> && x < 0 ? 0 - static_cast<uint64_t>(static_cast<int64_t>(x)) : static_cast<uint64_t>(x);
}
// Stein's algorithm: shifts and differences.
template <class T> INLINE T int_gcd(T x, T y) {
    uint64_t a = magnitude(x), b = magnitude(y);
    if (a == 0 || b == 0) return static_cast<T>(a | b);
    const int twos = __builtin_ctzll(a | b);
    a >>= __builtin_ctzll(a);
    b >>= __builtin_ctzll(b);
    // Nothing foretells which is the larger: masks choose.
    for (uint64_t apart; (apart = b - a) != 0;) {
        const uint64_t less = 0 - static_cast<uint64_t>(b < a);
        a += apart & less;
        b = ((apart ^ less) - less) >> __builtin_ctzll(apart);
    }
    return static_cast<T>(a << twos);
}
template <class T> INLINE T int_lcm(T x, T y) {
    const T d = int_gcd(x, y);
    if (d == 0) return 0;
    const auto whole = static_cast<uint64_t>(quotient(x, d));
    using W = decltype(+y);  // narrow types overflow after the sign has gone, as C's arithmetic does
    const W product = static_cast<W>(whole * static_cast<uint64_t>(y));
    return static_cast<T>(has_sign<T> && product < 0 ? 0 - static_cast<unsigned_of<W>>(product) : product);
}

// ---- floats: division with rests ----

INLINE float rest(float a, float b) { return fmodf(a, b); }
INLINE double rest(double a, double b) { return fmod(a, b); }
INLINE float down(float x) { return __builtin_floorf(x); }
INLINE double down(double x) { return __builtin_floor(x); }
INLINE float signed_as(float x, float s) { return __builtin_copysignf(x, s); }
INLINE double signed_as(double x, double s) { return __builtin_copysign(x, s); }

template <class T> static T slow_fmod(T a, T b) { return rest(a, b); }
template <class T> static T slow_remainder(T a, T b) {
    T r = rest(a, b);
    if (b == 0) return r;
    if (r == 0) return signed_as(T(0), b);
    return (r < 0) != (b < 0) ? r + b : r;
}
template <class T> static T slow_floor_divide(T a, T b) {
    if (b == 0) return a / b;
    const T r = rest(a, b);
    T q = (a - r) / b;
    if (r != 0 && (r < 0) != (b < 0)) q -= 1;
    if (q == 0) return signed_as(T(0), a / b);
    const T whole = down(q);
    return q - whole > T(0.5) ? whole + 1 : whole;
}

// The quotient towards zero and its rest where that is exact: quotients below the limit. Floats are divided as doubles.
constexpr double QUOTIENT_LIMIT[2] = {0x1p28, 0x1p52};
struct Divided { double quotient, rest; };
INLINE Divided divided(float x, float y) {
    const double a = x, b = y, q = __builtin_trunc(a / b);
    return {q, a - q * b};
}
INLINE Divided divided(double a, double b) {
    double q = __builtin_trunc(a / b), r = __builtin_fma(-q, b, a);
    // The quotient may have been rounded up to an integer: then the rest has the wrong sign.
    const bool over = r != 0 && (r < 0) != (a < 0);
    r = over ? r + signed_as(b, a) : r;
    q = over ? q - signed_as(1.0, q) : q;
    return {q, r};
}
struct Fmod {
    using Fast = Fmod;
    template <class T> INLINE T fast(T a, Divided d, T) { return signed_as(static_cast<T>(d.rest), a); }
    template <class T> static T slow(T a, T b) { return slow_fmod(a, b); }
};
struct Remainder {
    using Fast = Remainder;
    template <class T> INLINE T fast(T, Divided d, T b) {
        const double turned = (d.rest < 0) != (b < 0) ? d.rest + b : d.rest;
        return d.rest == 0 ? signed_as(T(0), b) : static_cast<T>(turned);
    }
    template <class T> static T slow(T a, T b) { return slow_remainder(a, b); }
};
struct FloorDivide {
    using Fast = FloorDivide;
    template <class T> INLINE T fast(T a, Divided d, T b) {
        const double q = d.rest != 0 && (d.rest < 0) != (b < 0) ? d.quotient - 1 : d.quotient;
        return q == 0 ? signed_as(T(0), signed_as(T(1), a) * signed_as(T(1), b)) : static_cast<T>(q);
    }
    template <class T> static T slow(T a, T b) { return slow_floor_divide(a, b); }
};

// Of infinite operands the quotient itself.
struct FloorDiv : FloorDivide {
    template <class T> static T slow(T a, T b) {
        return __builtin_isinf(a) || __builtin_isinf(b) ? a / b : slow_floor_divide(a, b);
    }
};

template <class F, class T> APART void line_fast_or(T (*slow)(T, T), char *const *at, int64_t n) {
    T *__restrict__ out = reinterpret_cast<T *>(at[0]);
    const T *__restrict__ a = reinterpret_cast<const T *>(at[1]), *__restrict__ b = reinterpret_cast<const T *>(at[2]);
    constexpr int64_t BLOCK = 64;
    constexpr double limit = QUOTIENT_LIMIT[sizeof(T) == 8];
    for (int64_t k = 0; k < n; k += BLOCK) {
        const int64_t end = n - k < BLOCK ? n : k + BLOCK;
#if defined(__FMA__)
        const bool able = true;
#else
        const bool able = sizeof(T) == 4;
#endif
        int64_t bad = !able;
        if (able)
            INDEPENDENT for (int64_t i = k; i < end; i++) {
                const Divided d = divided(a[i], b[i]);
                out[i] = F::template fast<T>(a[i], d, b[i]);
                bad |= !(d.quotient < limit && d.quotient > -limit && d.rest == d.rest);
            }
        if (bad)
            for (int64_t i = k; i < end; i++) out[i] = slow(a[i], b[i]);
    }
}
template <class F, class T> static void line_divided(char *const *at, int64_t n) {
    line_fast_or<typename F::Fast, T>(F::template slow<T>, at, n);
}

// ---- floats: powers, lengths, angles ----

INLINE float length(float x, float y) {
    const double a = x, b = y;
    const auto r = static_cast<float>(__builtin_sqrt(a * a + b * b));
    const bool infinite = __builtin_fabsf(x) == __builtin_inff() || __builtin_fabsf(y) == __builtin_inff();
    return infinite ? __builtin_inff() : r;
}
INLINE double length(double x, double y) {
    const double a = __builtin_fabs(x), b = __builtin_fabs(y), large = a > b ? a : b;
    // Squares of what is scaled neither overflow nor vanish.
    const double up = large < 0x1p-500 ? 0x1p+600 : large > 0x1p+500 ? 0x1p-600 : 1.0;
    const double back = large < 0x1p-500 ? 0x1p-600 : large > 0x1p+500 ? 0x1p+600 : 1.0;
    const double r = __builtin_sqrt(a * up * (a * up) + b * up * (b * up)) * back;
    return a == __builtin_inf() || b == __builtin_inf() ? __builtin_inf() : r;
}

struct Power { template <class V> INLINE V go(V x, V y) { return v_pow(x, y); } };
struct Angle2 { template <class V> INLINE V go(V y, V x) { return v_atan2(y, x); } };
// Minus the distance; equal infinities have none.
template <class V> INLINE V apart(V x, V y) { return select(x == y, num<V>(0), -v_abs(x - y)); }
struct AddLogs {
    template <class V> INLINE V go(V x, V y) { return vmax(x, y) + v_log1p(v_exp(apart(x, y))); }
};
struct AddLogs2 {
    template <class V> INLINE V go(V x, V y) {
        // Not a fused product: of equal numbers the logarithm is 1 exactly.
        return vmax(x, y) + v_log1p(v_exp2(apart(x, y))) * num<V>(0x1.71547652b82fep+0);
    }
};

// Fewer than a vector's elements: a line over rooms that hold one, filled up with ones.
template <class T> APART void in_rooms(Line line, char *const *at, int64_t n) {
    T rooms[3][LANES<T>];
    char *here[3];
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < LANES<T>; i++) rooms[k][i] = T(1);
        here[k] = reinterpret_cast<char *>(rooms[k]);
        if (k) memcpy(here[k], at[k], static_cast<size_t>(n) * sizeof(T));
    }
    line(here, LANES<T>);
    memcpy(at[0], here[0], static_cast<size_t>(n) * sizeof(T));
}
template <class F, class T> APART void line_whole(char *const *at, int64_t n) {
    const T *a = reinterpret_cast<const T *>(at[1]), *b = reinterpret_cast<const T *>(at[2]);
    T *out = reinterpret_cast<T *>(at[0]);
    if (n < LANES<T>) return in_rooms<T>(line_whole<F, T>, at, n);
    for (int64_t i = 0; i < n; i += LANES<T>) {
        const int64_t k = i + LANES<T> <= n ? i : n - LANES<T>;
        store<T>(out + k, F::go(load<T>(a + k), load<T>(b + k)));
    }
}

// ---- neighbours: the bits of a float without its sign count them ----

template <class B, int MANTISSA_BITS> INLINE B next_bits(B x, B y) {
    constexpr B sign = static_cast<B>(B(1) << (8 * sizeof(B) - 1));
    constexpr B infinity = static_cast<B>((sign - 1) - ((B(1) << MANTISSA_BITS) - 1));
    const B a = x & static_cast<B>(~sign), b = y & static_cast<B>(~sign);
    const bool outward = (((x ^ y) & sign) == 0) & (b > a);
    B next = static_cast<B>(outward ? x + 1 : x - 1);
    next = a == 0 ? static_cast<B>((y & sign) | 1) : next;
    next = ((x == y) | ((a | b) == 0) | (b > infinity)) ? y : next;
    return a > infinity ? x : next;
}
template <class B, int MANTISSA_BITS> APART void line_next(char *const *at, int64_t n) {
    line_each<B, B, next_bits<B, MANTISSA_BITS>>(at, n);
}

// ---- powers of complex numbers ----

INLINE cdouble times(cdouble a, cdouble b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
INLINE cdouble inverse(cdouble z) {
    if (__builtin_fabs(z.re) >= __builtin_fabs(z.im)) {
        const double ratio = z.im / z.re, scale = 1 / (z.re + z.im * ratio);
        return {scale, -ratio * scale};
    }
    const double ratio = z.re / z.im, scale = 1 / (z.re * ratio + z.im);
    return {ratio * scale, -scale};
}
static cdouble complex_pow(cdouble x, cdouble y) {
    if (y.re == 0 && y.im == 0) return {1, 0};
    if (x.re == 0 && x.im == 0) return y.re > 0 ? cdouble{0, 0} : cdouble{NAN, NAN};
    if (y.im == 0 && y.re == __builtin_floor(y.re) && __builtin_fabs(y.re) <= 64) {
        cdouble result = {1, 0}, base = x;
        bool first = true;  // 1 * z is not z where parts are infinite
        for (int n = static_cast<int>(__builtin_fabs(y.re)); n; n >>= 1) {
            if (n & 1) result = first ? base : times(result, base), first = false;
            if (n > 1) base = times(base, base);
        }
        return y.re < 0 ? inverse(result) : result;
    }
    __complex__ double base, exponent;
    __real__ base = x.re, __imag__ base = x.im, __real__ exponent = y.re, __imag__ exponent = y.im;
    const __complex__ double r = __builtin_cpow(base, exponent);
    return {__real__ r, __imag__ r};
}
template <class T> INLINE complex_of<T> complex_power(complex_of<T> x, complex_of<T> y) {
    const cdouble r = complex_pow({x.re, x.im}, {y.re, y.im});
    return {static_cast<T>(r.re), static_cast<T>(r.im)};
}

// ---- the table ----

template <class T, T (*f)(T, T)> static constexpr Inner each = inner<line_each<T, T, f>, sizeof(T), sizeof(T), sizeof(T)>;
template <class F, class T> static constexpr Inner whole = inner<line_whole<F, T>, sizeof(T), sizeof(T), sizeof(T)>;
template <class F, class T> static constexpr Inner by_rests = inner<line_divided<F, T>, sizeof(T), sizeof(T), sizeof(T)>;

struct Filler {
    BinaryMathTable t = {};

    constexpr void set(BinaryOp op, DType d, Inner f) { t.two[op - BINARY_OPS][d] = f; }
    template <class T> constexpr void integers(DType d) {
        set(FLOOR_DIVIDE, d, each<T, int_floor_divide<T>>);
        set(REMAINDER, d, each<T, int_remainder<T>>);
        set(FMOD, d, each<T, int_fmod<T>>);
        set(POW, d, each<T, int_pow<T>>);
        set(GCD, d, each<T, int_gcd<T>>);
        set(LCM, d, each<T, int_lcm<T>>);
        set(FLOORDIV, d, each<T, int_floor_divide<T>>);
    }
    template <class T> constexpr void floating(DType d) {
        set(FLOOR_DIVIDE, d, by_rests<FloorDivide, T>);
        set(FLOORDIV, d, by_rests<FloorDiv, T>);
        set(REMAINDER, d, by_rests<Remainder, T>);
        set(FMOD, d, by_rests<Fmod, T>);
        set(POW, d, whole<Power, T>);
        set(HYPOT, d, each<T, length>);
        set(ATAN2, d, whole<Angle2, T>);
        set(LOGADDEXP, d, whole<AddLogs, T>);
        set(LOGADDEXP2, d, whole<AddLogs2, T>);
    }
    // Whether a loop for a newer instruction set is worth its room: there always is the baseline's.
    static constexpr bool gains([[maybe_unused]] int op, [[maybe_unused]] int d) {
        [[maybe_unused]] const bool real = d == F32 || d == F64;
#if defined(MORTICE_AFTER_AVX2)
        return real && (op == REMAINDER || op == FMOD || op == POW || op == ATAN2);
#elif defined(MORTICE_AFTER_BASELINE)
        const bool byte = d == U8 || (d == I8 && op != REMAINDER);
        return real || ((op == FLOOR_DIVIDE || op == FLOORDIV || op == REMAINDER) && (byte || d == I32 || d == I64));
#else
        return true;
#endif
    }
    constexpr void thin() {
        for (int op = BINARY_OPS; op < ALL_BINARY_OPS; op++)
            for (int d = 0; d < DTYPES; d++)
                if (!gains(op, d)) t.two[op - BINARY_OPS][d] = nullptr;
    }
};

constexpr BinaryMathTable filled() {
    Filler f;
    f.integers<uint8_t>(U8), f.integers<uint16_t>(U16), f.integers<uint32_t>(U32), f.integers<uint64_t>(U64);
    f.integers<int8_t>(I8), f.integers<int16_t>(I16), f.integers<int32_t>(I32), f.integers<int64_t>(I64);
    f.floating<float>(F32), f.floating<double>(F64);
    f.set(NEXTAFTER, F16, inner<line_next<uint16_t, 10>, 2, 2, 2>);
    f.set(NEXTAFTER, BF16, inner<line_next<uint16_t, 7>, 2, 2, 2>);
    f.set(NEXTAFTER, F32, inner<line_next<uint32_t, 23>, 4, 4, 4>);
    f.set(NEXTAFTER, F64, inner<line_next<uint64_t, 52>, 8, 8, 8>);
    f.set(POW, C64, each<cfloat, complex_power<float>>);
    f.set(POW, C128, each<cdouble, complex_power<double>>);
    f.thin();
    return f.t;
}

extern const BinaryMathTable binary_math_table;
constexpr BinaryMathTable made = filled();
const BinaryMathTable binary_math_table = made;

}  // namespace mortice::ISA
