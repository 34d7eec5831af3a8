// Arithmetic, comparisons, bits and choices of two and three operands. Integers wrap; nan stays in maximum and minimum.
#include "binary.hpp"

#include "half.hpp"
#include "lines.hpp"

#define INLINE_CALL __attribute__((always_inline))

namespace mortice::ISA {

template <int SIZE> struct integer_of;
template <> struct integer_of<1> { using type = int8_t; };
template <> struct integer_of<2> { using type = int16_t; };
template <> struct integer_of<4> { using type = int32_t; };
template <> struct integer_of<8> { using type = int64_t; };
template <class T> using mask_of = typename integer_of<sizeof(T)>::type;

// ---- what lines do, on vectors ----

// Bits of a vector as those of another.
template <class To, class V> INLINE To as(V v) {
    To to;
    static_assert(sizeof to == sizeof v);
    memcpy(&to, &v, sizeof to);
    return to;
}
template <class V> using lane = decltype(V{}[0] + V{}[0]);
template <class V> using bits_of = decltype(V{} < V{});  // integers of the lanes' size

struct Add { template <class V> INLINE V go(V a, V b) { return a + b; } };
struct Subtract { template <class V> INLINE V go(V a, V b) { return a - b; } };
struct Multiply { template <class V> INLINE V go(V a, V b) { return a * b; } };
struct Divide { template <class V> INLINE V go(V a, V b) { return a / b; } };
struct ReverseDivide { template <class V> INLINE V go(V a, V b) { return a * (1 / b); } };
struct And { template <class V> INLINE V go(V a, V b) { return a & b; } };
struct Or { template <class V> INLINE V go(V a, V b) { return a | b; } };
struct Xor { template <class V> INLINE V go(V a, V b) { return a ^ b; } };
// A nan in b is the machine's choice; for one in a the second test is there. Integers lose it to the compiler.
struct Maximum { template <class V> INLINE V go(V a, V b) { const V most = vmax(a, b); return a != a ? a : most; } };
struct Minimum { template <class V> INLINE V go(V a, V b) { const V least = vmin(a, b); return a != a ? a : least; } };
struct CopySign {
    template <class V> INLINE V go(V a, V b) {
        using B = bits_of<V>;
        const B sign = as<B>(-V{});
        return as<V>((as<B>(a) & ~sign) | (as<B>(b) & sign));
    }
};
struct Clip {
    static constexpr bool ONE_NUMBER = false;
    template <class V> INLINE V go(V x, V low, V high) { return Minimum::go(Maximum::go(x, low), high); }
};
// a * b + c, rounded once where the machine can.
template <class V> INLINE V fused(V a, V b, V c) {
    vec<lane<V>> x{}, y{}, z{};
    memcpy(&x, &a, sizeof a), memcpy(&y, &b, sizeof a), memcpy(&z, &c, sizeof a);
    z = fma(x, y, z);
    memcpy(&c, &z, sizeof a);
    return c;
}
struct Lerp {
    static constexpr bool ONE_NUMBER = true;
    template <class V> INLINE V go(V start, V end, V weight) {
        const V span = end - start;
        const auto near = as<V>(as<bits_of<V>>(weight) & ~as<bits_of<V>>(-V{})) < lane<V>(0.5);
        return fused(span, near ? weight : -(1 - weight), near ? start : end);
    }
};

struct AddProduct {
    template <class V> INLINE V go(V x, V a, V b, V value) { return fused(value * a, b, x); }
};
struct AddQuotient {
    template <class V> INLINE V go(V x, V a, V b, V value) { return x + value * a / b; }
};

// Shifts by the width or more, or by a negative number, leave what shifting one by one would: 0, or the sign.
template <class T> INLINE T shift_left(T a, T b) {
    using U = unsigned_of<T>;
    const auto by = static_cast<U>(b);
    return by < 8 * sizeof(T) ? static_cast<T>(static_cast<uint64_t>(static_cast<U>(a)) << by) : T(0);
}
template <class T> INLINE T shift_right(T a, T b) {
    using U = unsigned_of<T>;
    const U by = static_cast<U>(b), most = 8 * sizeof(T) - 1;
    if (T(-1) > T(0) && by > most) return 0;
    return static_cast<T>(a >> (by < most ? by : most));
}

// Halves, in float. An input that is one number is a float, and the pointer is to that.
using HalfLine = void (*)(char *out, const char *a, const char *b, bool one_a, bool one_b, int64_t n);

template <class F, class H> APART void line_halves(char *out, const char *x, const char *y, bool one_a, bool one_b, int64_t n) {
    constexpr int64_t L = LANES<float>;
    const H *a = reinterpret_cast<const H *>(x), *b = reinterpret_cast<const H *>(y);
    H *to = reinterpret_cast<H *>(out), rooms[3][L] = {};
    const vf same_a = splat<float>(one_a ? *reinterpret_cast<const float *>(x) : 0), same_b = splat<float>(one_b ? *reinterpret_cast<const float *>(y) : 0);
    const int64_t kept = n;
    if (n < L) {
        if (!one_a) memcpy(rooms[0], a, static_cast<size_t>(n) * sizeof(H));
        if (!one_b) memcpy(rooms[1], b, static_cast<size_t>(n) * sizeof(H));
        a = rooms[0], b = rooms[1], to = rooms[2], n = L;
    }
    int64_t i = 0;
    if (!one_a && !one_b)
        for (; i + L <= n; i += L) store_floats(to + i, F::go(load_floats(a + i), load_floats(b + i)));
    for (; i < n; i += L) {
        const int64_t k = i + L <= n ? i : n - L;
        store_floats(to + k, F::go(one_a ? same_a : load_floats(a + k), one_b ? same_b : load_floats(b + k)));
    }
    if (to == rooms[2]) memcpy(out, to, static_cast<size_t>(kept) * sizeof(H));
}
APART void spread_halves(HalfLine line, char *const *at, const int64_t *step, int64_t n, const bool *wide,
                         const float *ones) {
    alignas(64) char rooms[3][ROOM];
    // Where both stand still one is taken for an array: not the one that is no half.
    const bool one_b = step[2] == 0 && (step[1] != 0 || (wide && wide[1])), one[3] = {false, step[1] == 0 && !one_b, one_b};
    for (int64_t k = 0; k < n; k += ROOM / 2) {
        const int64_t m = n - k < ROOM / 2 ? n - k : ROOM / 2;
        const char *in[3];
        for (int i = 1; i < 3; i++) {
            in[i] = one[i] ? reinterpret_cast<const char *>(ones + i - 1) : step[i] == 2 ? at[i] + 2 * k : rooms[i];
            if (!one[i] && step[i] != 2) gather(rooms[i], at[i] + k * step[i], step[i], m, 2);
        }
        char *out = step[0] == 2 ? at[0] + 2 * k : rooms[0];
        line(out, in[1], in[2], one[1], one[2], m);
        if (step[0] != 2) scatter(at[0] + k * step[0], rooms[0], step[0], m, 2);
    }
}
// `extra` tells which inputs are numbers that are floats already; nullptr for none.
template <class F, class H> static void inner_halves(char *const *at, const int64_t *step, int64_t n, const void *extra) {
    if (step[0] == 2 && step[1] == 2 && step[2] == 2) return line_halves<F, H>(at[0], at[1], at[2], false, false, n);
    const bool *wide = static_cast<const bool *>(extra);
    float ones[2];
    for (int i = 0; i < 2; i++)
        ones[i] = wide && wide[i] ? *reinterpret_cast<const float *>(at[i + 1]) : to_float(*reinterpret_cast<const H *>(at[i + 1]));
    spread_halves(line_halves<F, H>, at, step, n, wide, ones);
}

// ---- comparisons: bytes from masks ----

struct Equal { template <class V> INLINE auto go(V a, V b) { return a == b; } };
struct NotEqual;  // by Equal
struct Less { template <class V> INLINE auto go(V a, V b) { return a < b; } };
struct LessEqual { template <class V> INLINE auto go(V a, V b) { return a <= b; } };
struct BothTrue { template <class V> INLINE auto go(V a, V b) { return (a != 0) & (b != 0); } };
struct AnyTrue { template <class V> INLINE auto go(V a, V b) { return (a != 0) | (b != 0); } };
struct OneTrue { template <class V> INLINE auto go(V a, V b) { return (a != 0) ^ (b != 0); } };

// The compiler packs masks better than it converts vectors. `flip` is 1 for what is true where F is not.
template <class F, class T> APART void compare_line(const char *x, const char *y, char *to, uint8_t flip, int64_t n) {
    uint8_t *__restrict__ out = reinterpret_cast<uint8_t *>(to);
    const T *__restrict__ a = reinterpret_cast<const T *>(x), *__restrict__ b = reinterpret_cast<const T *>(y);
    INDEPENDENT for (int64_t i = 0; i < n; i++) out[i] = static_cast<uint8_t>(F::go(a[i], b[i]) ^ flip);
}
template <class F, class T> static void line_compare(char *const *at, int64_t n) {
    if constexpr (__is_same(F, NotEqual)) compare_line<Equal, T>(at[1], at[2], at[0], 1, n);
    else if constexpr (__is_same(F, LessEqual) && !FLOATING<T>) compare_line<Less, T>(at[2], at[1], at[0], 1, n);
    else compare_line<F, T>(at[1], at[2], at[0], 0, n);
}
template <class T> APART void line_where(char *const *at, int64_t n) {
    T *__restrict__ out = reinterpret_cast<T *>(at[0]);
    const uint8_t *__restrict__ c = reinterpret_cast<const uint8_t *>(at[1]);
    const T *__restrict__ a = reinterpret_cast<const T *>(at[2]), *__restrict__ b = reinterpret_cast<const T *>(at[3]);
    for (int64_t i = 0; i < n; i++) {
        const T x = a[i], y = b[i];
        out[i] = c[i] ? x : y;
    }
}

APART void line_where_pairs(char *const *at, int64_t n) {
    using T = pair_of_words;
    T *out = reinterpret_cast<T *>(at[0]);
    const T *a = reinterpret_cast<const T *>(at[2]), *b = reinterpret_cast<const T *>(at[3]);
    for (int64_t i = 0; i < n; i++) out[i] = at[1][i] ? a[i] : b[i];
}

// ---- complex numbers ----

// Part by part.
template <class F, class T> APART void line_parts(char *const *at, int64_t n) {
    const int64_t moves[3] = {sizeof(T), sizeof(T), sizeof(T)};
    line_two<F, T>(at, moves, 2 * n);
}

template <class T, class Z = complex_of<T>> INLINE Z times(Z a, Z b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
// Smith's way: no overflow on the way. A divisor of zero gives what dividing the parts by it gives.
template <class T, class Z = complex_of<T>> INLINE Z over(Z a, Z b) {
    const T re = b.re < 0 ? -b.re : b.re, im = b.im < 0 ? -b.im : b.im;
    if (re >= im) {
        if (re == 0 && im == 0) return {a.re / re, a.im / re};
        const T ratio = b.im / b.re, scale = 1 / (b.re + b.im * ratio);
        return {(a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale};
    }
    const T ratio = b.re / b.im, scale = 1 / (b.re * ratio + b.im);
    return {(a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale};
}
template <class T, class Z = complex_of<T>> INLINE uint8_t equal(Z a, Z b) { return (a.re == b.re) & (a.im == b.im); }
template <class T, class Z = complex_of<T>> INLINE uint8_t differ(Z a, Z b) { return (a.re != b.re) | (a.im != b.im); }
template <class T> INLINE uint8_t truth(complex_of<T> a) { return (a.re != 0) | (a.im != 0); }
template <class T, class Z = complex_of<T>> INLINE uint8_t both_true(Z a, Z b) { return truth<T>(a) & truth<T>(b); }
template <class T, class Z = complex_of<T>> INLINE uint8_t any_true(Z a, Z b) { return truth<T>(a) | truth<T>(b); }
template <class T, class Z = complex_of<T>> INLINE uint8_t one_true(Z a, Z b) { return truth<T>(a) ^ truth<T>(b); }
template <class T> INLINE complex_of<T> join(T re, T im) { return {re, im}; }

// Products by vectors: the parts of a doubled, times b, times b with its parts swapped.
template <class T> APART void line_times(char *const *at, int64_t n) {
    const char *a = at[1], *b = at[2];
    char *out = at[0];
    cover<LANES<T> / 2>(n, [&](int64_t i, auto count) __attribute__((always_inline)) {
        constexpr int N = 2 * decltype(count)::value;
        using V = lanes<T, N>;
        using M = lanes<mask_of<T>, N>;
        M even, odd, swap;
        for (int k = 0; k < N; k++) even[k] = k & ~1, odd[k] = k | 1, swap[k] = k ^ 1;
        const V x = load_as<V>(a + 2 * i * sizeof(T)), y = load_as<V>(b + 2 * i * sizeof(T));
        V signs;
        for (int k = 0; k < N; k++) signs[k] = k & 1 ? T(0) : -T(0);
        const V re = turned(x, even), im = turned(x, odd), crossed = turned(y, swap);
        store_as<V>(out + 2 * i * sizeof(T), re * y + as<V>(as<M>(im * crossed) ^ as<M>(signs)));
    });
}

template <class T> APART void line_lerp_complex(char *const *at, int64_t n) {
    using Z = complex_of<T>;
    Z *out = reinterpret_cast<Z *>(at[0]);
    const Z *start = reinterpret_cast<const Z *>(at[1]), *end = reinterpret_cast<const Z *>(at[2]);
    const Z *weight = reinterpret_cast<const Z *>(at[3]);
    for (int64_t i = 0; i < n; i++) {
        const Z s = start[i], e = end[i], w = weight[i], span = {e.re - s.re, e.im - s.im};
        if (w.re * w.re + w.im * w.im < T(0.25)) {
            const Z p = times<T>(span, w);
            out[i] = {s.re + p.re, s.im + p.im};
        } else {
            const Z p = times<T>(span, Z{1 - w.re, -w.im});
            out[i] = {e.re - p.re, e.im - p.im};
        }
    }
}

// ---- the table ----

template <class F, class T> static constexpr Inner two = inner_moving<line_two<F, T>, sizeof(T), sizeof(T), sizeof(T)>;
template <class F, class T> static constexpr Inner compare = inner<line_compare<F, T>, 1, sizeof(T), sizeof(T)>;
template <class Out, class In, Out (*f)(In, In)>
constexpr Inner each = inner<line_each<Out, In, f>, sizeof(Out), sizeof(In), sizeof(In)>;

struct Filler {
    BinaryTable t = {};

    constexpr void set(BinaryOp op, DType d, Inner f) { t.two[op][d] = f; }
    // For dtypes of a size, where signs do not matter.
    template <class F> constexpr void bits(BinaryOp op) {
        set(op, U8, two<F, uint8_t>), set(op, I8, two<F, uint8_t>), set(op, U16, two<F, uint16_t>);
        set(op, I16, two<F, uint16_t>), set(op, U32, two<F, uint32_t>), set(op, I32, two<F, uint32_t>);
        set(op, U64, two<F, uint64_t>), set(op, I64, two<F, uint64_t>);
    }
    template <class F> constexpr void floating(BinaryOp op) { set(op, F32, two<F, float>), set(op, F64, two<F, double>); }
    template <class F> constexpr void halves(BinaryOp op) {
        set(op, F16, inner_halves<F, half>), set(op, BF16, inner_halves<F, bhalf>);
    }
    template <class F> constexpr void ordered(BinaryOp op) {
        set(op, U8, two<F, uint8_t>), set(op, I8, two<F, int8_t>), set(op, U16, two<F, uint16_t>);
        set(op, I16, two<F, int16_t>), set(op, U32, two<F, uint32_t>), set(op, I32, two<F, int32_t>);
        set(op, U64, two<F, uint64_t>), set(op, I64, two<F, int64_t>);
        floating<F>(op);
    }
    template <class F> constexpr void compared(BinaryOp op) {
        set(op, BOOL, compare<F, uint8_t>), set(op, U8, compare<F, uint8_t>), set(op, U16, compare<F, uint16_t>);
        set(op, U32, compare<F, uint32_t>), set(op, U64, compare<F, uint64_t>), set(op, I8, compare<F, int8_t>);
        set(op, I16, compare<F, int16_t>), set(op, I32, compare<F, int32_t>), set(op, I64, compare<F, int64_t>);
        set(op, F32, compare<F, float>), set(op, F64, compare<F, double>);
    }
    // Comparisons that do not look at signs; of bools the bytes, which are 0 or 1.
    template <class F> constexpr void tested(BinaryOp op) {
        set(op, BOOL, compare<F, uint8_t>), set(op, U8, compare<F, uint8_t>), set(op, I8, compare<F, uint8_t>);
        set(op, U16, compare<F, uint16_t>), set(op, I16, compare<F, uint16_t>), set(op, U32, compare<F, uint32_t>);
        set(op, I32, compare<F, uint32_t>), set(op, U64, compare<F, uint64_t>), set(op, I64, compare<F, uint64_t>);
        set(op, F32, compare<F, float>), set(op, F64, compare<F, double>);
    }
    template <class T> constexpr void shifts(DType d) {
        set(SHIFT_LEFT, d, each<T, T, shift_left<T>>);
        set(SHIFT_RIGHT, d, each<T, T, shift_right<T>>);
    }
    template <class F, class T> constexpr void clipped(DType d) {
        t.clip[d] = inner_moving<line_three<F, T>, sizeof(T), sizeof(T), sizeof(T), sizeof(T)>;
    }
    template <class T> constexpr void complex(DType d) {
        using Z = complex_of<T>;
        constexpr int size = sizeof(Z);
        set(ADD, d, inner<line_parts<Add, T>, size, size, size>);
        set(SUBTRACT, d, inner<line_parts<Subtract, T>, size, size, size>);
        set(MULTIPLY, d, inner<line_times<T>, size, size, size>);
        set(DIVIDE, d, each<Z, Z, over<T>>);
        set(EQUAL, d, each<uint8_t, Z, equal<T>>);
        set(NOT_EQUAL, d, each<uint8_t, Z, differ<T>>);
        set(LOGICAL_AND, d, each<uint8_t, Z, both_true<T>>);
        set(LOGICAL_OR, d, each<uint8_t, Z, any_true<T>>);
        set(LOGICAL_XOR, d, each<uint8_t, Z, one_true<T>>);
        set(COMPLEX, real_of(d), each<Z, T, join<T>>);
        t.lerp[d] = inner<line_lerp_complex<T>, size, size, size, size>;
    }

    constexpr void arithmetic() {
        bits<Add>(ADD), floating<Add>(ADD), bits<Subtract>(SUBTRACT), floating<Subtract>(SUBTRACT);
        bits<Multiply>(MULTIPLY), floating<Multiply>(MULTIPLY), floating<Divide>(DIVIDE);
        halves<Add>(ADD), halves<Subtract>(SUBTRACT), halves<Multiply>(MULTIPLY), halves<Divide>(DIVIDE);
        halves<Maximum>(MAXIMUM), halves<Minimum>(MINIMUM);
        ordered<Maximum>(MAXIMUM), ordered<Minimum>(MINIMUM);
        bits<And>(BITWISE_AND), bits<Or>(BITWISE_OR), bits<Xor>(BITWISE_XOR);
        floating<CopySign>(COPYSIGN), floating<ReverseDivide>(RDIVIDE);
        // Bools are bytes of 0 and 1.
        t.two[ADD][BOOL] = t.two[MAXIMUM][BOOL] = t.two[BITWISE_OR][BOOL] = t.two[BITWISE_OR][U8];
        t.two[MULTIPLY][BOOL] = t.two[MINIMUM][BOOL] = t.two[BITWISE_AND][BOOL] = t.two[BITWISE_AND][U8];
        t.two[SUBTRACT][BOOL] = t.two[BITWISE_XOR][BOOL] = t.two[BITWISE_XOR][U8];
        shifts<uint8_t>(U8), shifts<uint16_t>(U16), shifts<uint32_t>(U32), shifts<uint64_t>(U64);
        shifts<int8_t>(I8), shifts<int16_t>(I16), shifts<int32_t>(I32), shifts<int64_t>(I64);
    }
    constexpr void comparisons() {
        tested<Equal>(EQUAL), tested<NotEqual>(NOT_EQUAL), compared<Less>(LESS), compared<LessEqual>(LESS_EQUAL);
        tested<BothTrue>(LOGICAL_AND), tested<AnyTrue>(LOGICAL_OR), tested<OneTrue>(LOGICAL_XOR);
    }
    // Whether a loop for a newer instruction set is worth its room: there always is the baseline's.
    static constexpr bool gains([[maybe_unused]] int op, [[maybe_unused]] int d) {
        [[maybe_unused]] const bool order = op == MAXIMUM || op == MINIMUM || op == LESS || op == LESS_EQUAL;
#if defined(MORTICE_AFTER_BASELINE)
        if (op == SHIFT_LEFT || op == SHIFT_RIGHT) return d == I32;  // by as many bits as another vector says
        if (op == COMPLEX || d == I16 || d == U16) return false;
        if (d == C64 || d == C128) return op <= MULTIPLY;
        if (op >= LOGICAL_AND && op <= LOGICAL_XOR) return d <= U8;
        return !order || (d != U32 && d != U64);
#elif defined(__x86_64__) && !defined(__AVX2__)
        return d != F16 && d != BF16;  // without an instruction for them blocks of floats are better
#else
        return true;
#endif
    }
    constexpr void thin() {
        for (int op = 0; op < BINARY_OPS; op++)
            for (int d = 0; d < DTYPES; d++)
                if (!gains(op, d)) t.two[op][d] = nullptr;
#if defined(MORTICE_AFTER_BASELINE)
        t.lerp[C64] = t.lerp[C128] = nullptr;
#endif
    }
    constexpr void choices() {
        t.where[0] = inner<line_where<uint8_t>, 1, 1, 1, 1>;
        t.where[1] = inner<line_where<uint16_t>, 2, 1, 2, 2>;
        t.where[2] = inner<line_where<uint32_t>, 4, 1, 4, 4>;
        t.where[3] = inner<line_where<uint64_t>, 8, 1, 8, 8>;
        t.where[4] = inner<line_where_pairs, 16, 1, 16, 16>;
        clipped<Clip, int64_t>(I64), clipped<Clip, float>(F32), clipped<Clip, double>(F64);
        t.lerp[F32] = inner_moving<line_three<Lerp, float>, 4, 4, 4, 4>;
        t.lerp[F64] = inner_moving<line_three<Lerp, double>, 8, 8, 8, 8>;
        t.addcmul[F32] = inner_moving<line_four<AddProduct, float>, 4, 4, 4, 4, 4>;
        t.addcmul[F64] = inner_moving<line_four<AddProduct, double>, 8, 8, 8, 8, 8>;
        t.addcdiv[F32] = inner_moving<line_four<AddQuotient, float>, 4, 4, 4, 4, 4>;
        t.addcdiv[F64] = inner_moving<line_four<AddQuotient, double>, 8, 8, 8, 8, 8>;
    }
};

constexpr BinaryTable filled() {
    Filler f;
    f.arithmetic();
    f.comparisons();
    f.choices();
    f.complex<float>(C64);
    f.complex<double>(C128);
    f.thin();
    return f.t;
}

extern const BinaryTable binary_table;
constexpr BinaryTable made = filled();
const BinaryTable binary_table = made;

}  // namespace mortice::ISA
