// Tests of every dtype and functions of integers: loops that compilers turn into vectors by themselves.
#include "simd.hpp"
#include "unary.hpp"

namespace mortice::ISA {
namespace {

// Run f over operands of any strides, with a loop of its own where both are in rows.
template <class In, class Out, class F> INLINE void over(char *const *at, const int64_t *step, int64_t n, F f) {
    if (step[0] == sizeof(Out) && step[1] == sizeof(In)) {
        Out *__restrict out = reinterpret_cast<Out *>(at[0]);
        const In *__restrict x = reinterpret_cast<const In *>(at[1]);
        for (int64_t i = 0; i < n; i++) out[i] = f(x[i]);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        *reinterpret_cast<Out *>(at[0] + i * step[0]) = f(*reinterpret_cast<const In *>(at[1] + i * step[1]));
}

// ---- tests, on bits: of a number of each size one loop that looks for a value, and one that looks for what is beyond one ----

template <class U>
__attribute__((noinline)) void equals(char *const *at, const int64_t *step, int64_t n, U mask, U value) {
    over<U, uint8_t>(at, step, n, [=](U bits) -> uint8_t { return (bits & mask) == value; });
}
// S is signed; `flip` is 1 for what is not beyond it.
template <class S>
__attribute__((noinline)) void beyond(char *const *at, const int64_t *step, int64_t n, S mask, S bound, uint8_t flip) {
    over<S, uint8_t>(at, step, n, [=](S bits) { return static_cast<uint8_t>(((bits & mask) > bound) ^ flip); });
}
template <class S> void test_below(char *const *at, const int64_t *step, int64_t n, const void *) {
    beyond<S>(at, step, n, S(-1), S(-1), 1);
}
template <class U> void test_zero(char *const *at, const int64_t *step, int64_t n, const void *) {
    equals<U>(at, step, n, static_cast<U>(~U(0)), 0);
}

template <int SIZE> struct signed_of;
template <> struct signed_of<2> { using type = int16_t; };
template <> struct signed_of<4> { using type = int32_t; };
template <> struct signed_of<8> { using type = int64_t; };

// Of a floating-point number as the unsigned integer U: INF are the bits of infinity; the sign is the highest bit.
template <int TEST, class U, U INF> void test_real(char *const *at, const int64_t *step, int64_t n, const void *extra) {
    using S = typename signed_of<sizeof(U)>::type;
    constexpr U size = static_cast<U>(~U(0)) >> 1;
    constexpr S endless = static_cast<S>(INF);
    if constexpr (TEST == TEST_NOT) equals<U>(at, step, n, size, 0);
    else if constexpr (TEST == TEST_INF) equals<U>(at, step, n, size, INF);
    else if constexpr (TEST == TEST_NAN) beyond<S>(at, step, n, static_cast<S>(size), endless, 0);
    else if constexpr (TEST == TEST_FINITE) beyond<S>(at, step, n, static_cast<S>(size), static_cast<S>(endless - 1), 1);
    else test_below<S>(at, step, n, extra);
}
// Of complex numbers: both parts' tests.
__attribute__((noinline)) void join_tests(UnaryLoop part, int size, bool any, char *const *at, const int64_t *step, int64_t n) {
    uint8_t re[256], im[256];
    for (int64_t i = 0; i < n; i += 256) {
        const int64_t m = n - i < 256 ? n - i : 256, steps[2] = {1, step[1]};
        char *in = at[1] + i * step[1], *out = at[0] + i * step[0];
        char *parts[2][2] = {{reinterpret_cast<char *>(re), in}, {reinterpret_cast<char *>(im), in + size}};
        part(parts[0], steps, m, nullptr);
        part(parts[1], steps, m, nullptr);
        for (int64_t j = 0; j < m; j++) out[j * step[0]] = static_cast<char>(any ? re[j] | im[j] : re[j] & im[j]);
    }
}
template <int TEST, class U, U INF> void test_pair(char *const *at, const int64_t *step, int64_t n, const void *) {
    join_tests(test_real<TEST, U, INF>, sizeof(U), TEST == TEST_NAN || TEST == TEST_INF, at, step, n);
}
template <int VALUE> void test_never(char *const *at, const int64_t *step, int64_t n, const void *) {
    for (int64_t i = 0; i < n; i++) at[0][i * step[0]] = VALUE;
}

// ---- integers ----

template <class T> struct unsigned_of { using type = T; };
template <> struct unsigned_of<int8_t> { using type = uint8_t; };
template <> struct unsigned_of<int16_t> { using type = uint16_t; };
template <> struct unsigned_of<int32_t> { using type = uint32_t; };
template <> struct unsigned_of<int64_t> { using type = uint64_t; };

template <int WHOLE, class T> void whole(char *const *at, const int64_t *step, int64_t n, const void *) {
    using U = typename unsigned_of<T>::type;
    over<T, T>(at, step, n, [](T x) -> T {
        U u = static_cast<U>(x);
        if constexpr (WHOLE == WHOLE_NEGATIVE) return static_cast<T>(U(0) - u);
        else if constexpr (WHOLE == WHOLE_ABS) return x < T(0) ? static_cast<T>(U(0) - u) : x;
        else if constexpr (WHOLE == WHOLE_SIGN) return static_cast<T>((x > T(0)) - (x < T(0)));
        else if constexpr (WHOLE == WHOLE_SQUARE) return static_cast<T>(static_cast<U>(1u * u * u));
        else if constexpr (WHOLE == WHOLE_INVERT) return static_cast<T>(~u);
        else return x > T(0) ? x : T(0);
    });
}
void not_bool(char *const *at, const int64_t *step, int64_t n, const void *) {
    over<uint8_t, uint8_t>(at, step, n, [](uint8_t x) -> uint8_t { return x == 0; });
}
void same_bool(char *const *at, const int64_t *step, int64_t n, const void *) {
    over<uint8_t, uint8_t>(at, step, n, [](uint8_t x) -> uint8_t { return x; });
}

}  // namespace

#define FLOAT_TESTS(TEST)                                                                                          \
    test_real<TEST, uint16_t, 0x7c00>, test_real<TEST, uint16_t, 0x7f80>, test_real<TEST, uint32_t, 0x7f800000>,   \
        test_real<TEST, uint64_t, 0x7ff0000000000000>, test_pair<TEST, uint32_t, 0x7f800000>,                      \
        test_pair<TEST, uint64_t, 0x7ff0000000000000>
#define NEVER(V) test_never<V>, test_never<V>, test_never<V>, test_never<V>, test_never<V>
#define BITS_OF(W, BOOL)                                                                                           \
    {BOOL, whole<W, uint8_t>, whole<W, uint16_t>, whole<W, uint32_t>, whole<W, uint64_t>, whole<W, uint8_t>,       \
     whole<W, uint16_t>, whole<W, uint32_t>, whole<W, uint64_t>}
#define WHOLES_OF(W, BOOL)                                                                                         \
    {BOOL, whole<W, uint8_t>, whole<W, uint16_t>, whole<W, uint32_t>, whole<W, uint64_t>, whole<W, int8_t>,        \
     whole<W, int16_t>, whole<W, int32_t>, whole<W, int64_t>}

constexpr PlainTable filled() {
    PlainTable t = {
        {
            {test_zero<uint8_t>, test_zero<uint8_t>, test_zero<uint16_t>, test_zero<uint32_t>, test_zero<uint64_t>,
             test_zero<uint8_t>, test_zero<uint16_t>, test_zero<uint32_t>, test_zero<uint64_t>, FLOAT_TESTS(TEST_NOT)},
            {NEVER(0), test_never<0>, test_never<0>, test_never<0>, test_never<0>, FLOAT_TESTS(TEST_NAN)},
            {NEVER(0), test_never<0>, test_never<0>, test_never<0>, test_never<0>, FLOAT_TESTS(TEST_INF)},
            {NEVER(1), test_never<1>, test_never<1>, test_never<1>, test_never<1>, FLOAT_TESTS(TEST_FINITE)},
            {NEVER(0), test_below<int8_t>, test_below<int16_t>, test_below<int32_t>, test_below<int64_t>,
             FLOAT_TESTS(TEST_SIGN)},
        },
        {
            BITS_OF(WHOLE_NEGATIVE, same_bool), WHOLES_OF(WHOLE_ABS, same_bool), WHOLES_OF(WHOLE_SIGN, same_bool),
            BITS_OF(WHOLE_SQUARE, same_bool), BITS_OF(WHOLE_INVERT, not_bool), WHOLES_OF(WHOLE_RELU, same_bool),
        },
    };
#if defined(MORTICE_AFTER_BASELINE)  // of what is left out one copy is enough
    for (int d = 0; d < DTYPES; d++) {
        const bool whole = d == BOOL || d == I32 || d == I64;
        for (auto &row : t.test)
            if (!whole && (d < F16 || d > F64)) row[d] = nullptr;
        for (auto &row : t.whole)
            if (!whole && d <= I64) row[d] = nullptr;
    }
#endif
    return t;
}

extern const PlainTable plain_table;
constexpr PlainTable made = filled();
const PlainTable plain_table = made;

}  // namespace mortice::ISA
