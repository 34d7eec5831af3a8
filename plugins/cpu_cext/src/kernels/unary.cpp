// Functions of real numbers, vector by vector; half precision by blocks of floats, scattered operands gathered likewise.
#include "unary.hpp"

#include "half.hpp"
#include "lines.hpp"
#include "vspecial.hpp"

namespace mortice::ISA {
namespace {

// ---- the functions that are not in vmath.hpp; each takes the attributes too ----

#define FUNCTION(name, expression)                                                        \
    struct name {                                                                         \
        template <class V> static INLINE_MEMBER V of(V x, const double *) { return expression; } \
    };
#define INLINE_MEMBER inline __attribute__((always_inline))

FUNCTION(Exp, v_exp(x)) FUNCTION(Exp2, v_exp2(x)) FUNCTION(Expm1, v_expm1(x)) FUNCTION(Log, v_log(x))
FUNCTION(Log2, v_log2(x)) FUNCTION(Log10, v_log10(x)) FUNCTION(Log1p, v_log1p(x)) FUNCTION(Sigmoid, v_sigmoid(x))
FUNCTION(Tanh, v_tanh(x)) FUNCTION(Sinh, v_sinh(x)) FUNCTION(Cosh, v_cosh(x)) FUNCTION(Asinh, v_asinh(x))
FUNCTION(Acosh, v_acosh(x)) FUNCTION(Atanh, v_atanh(x)) FUNCTION(Sin, v_sin(x)) FUNCTION(Cos, v_cos(x))
FUNCTION(Tan, v_tan(x)) FUNCTION(Asin, v_asin(x)) FUNCTION(Acos, v_acos(x)) FUNCTION(Atan, v_atan(x))
FUNCTION(Erf, v_erf(x)) FUNCTION(Erfc, v_erfc(x)) FUNCTION(Erfcx, v_erfcx(x)) FUNCTION(Erfinv, v_erfinv(x))
FUNCTION(Lgamma, v_lgamma(x)) FUNCTION(Digamma, v_digamma(x)) FUNCTION(Sqrt, v_sqrt(x))
FUNCTION(Rsqrt, v_rsqrt(x)) FUNCTION(Reciprocal, num<V>(1) / x) FUNCTION(Square, x * x)
FUNCTION(Negative, flip_sign(x, num<V>(-0.0))) FUNCTION(Abs, v_abs(x))
FUNCTION(Sign, select(x > num<V>(0), num<V>(1), select(x < num<V>(0), num<V>(-1), select(x == x, num<V>(0), x))))
FUNCTION(Angle, select(x < num<V>(0), num<V>(0x1.921fb54442d18p+1), select(x == x, num<V>(0), x)))
FUNCTION(Relu, vmax(num<V>(0), x)) FUNCTION(Silu, x / (v_exp(-x) + num<V>(1)))
FUNCTION(Gelu, v_gelu(x))
#undef FUNCTION

template <class V> INLINE V gelu_argument(V x) {
    return x * fma(x * x, num<V>(0.044715 * 0.79788456080286536), num<V>(0.79788456080286536));
}
// (1 + tanh(u)) / 2 is the sigmoid of 2 u.
struct GeluTanh {
    template <class V> static INLINE_MEMBER V of(V x, const double *) {
        V u = gelu_argument(x);
        return x * v_sigmoid(u + u);
    }
};
struct Softplus {
    template <class V> static INLINE_MEMBER V of(V x, const double *numbers) {
        const bool scaled = numbers[0] != 1;
        V at = x;
        if (scaled) at *= num<V>(numbers[0]);
        V y = v_softplus(at);
        if (scaled) y /= num<V>(numbers[0]);
        return select(at > num<V>(numbers[1]), x, y);
    }
};
struct LogSigmoid {
    template <class V> static INLINE_MEMBER V of(V x, const double *) { return -v_softplus(-x); }
};
// Beyond 20, x tanh(log(1 + e^x)) is x; below, with n = e^x (e^x + 2), it is x n / (n + 2).
template <class V> INLINE V mish_exp(V x) { return v_exp(vmin(num<V>(20), x)); }
struct Mish {
    template <class V> static INLINE_MEMBER V of(V x, const double *) {
        V e = mish_exp(x), n = e * (e + num<V>(2));
        return x * (n / (n + num<V>(2)));
    }
};
struct LeakyRelu {
    template <class V> static INLINE_MEMBER V of(V x, const double *numbers) {
        return select(x > num<V>(0), x, x * num<V>(numbers[0]));
    }
};
// Of elu the numbers are scale * alpha (in the gradient times the input's scale), scale, and the input's scale.
struct Elu {
    template <class V> static INLINE_MEMBER V of(V x, const double *numbers) {
        V below = v_expm1(vmin(num<V>(0), x) * num<V>(numbers[2])) * num<V>(numbers[0]);
        return select(x > num<V>(0), x * num<V>(numbers[1]), below);
    }
};
template <class V> INLINE V six(V x) { return vmin(num<V>(6), vmax(num<V>(0), x + num<V>(3))); }
struct HardSigmoid {
    template <class V> static INLINE_MEMBER V of(V x, const double *) { return six(x) / num<V>(6); }
};
struct HardSwish {
    template <class V> static INLINE_MEMBER V of(V x, const double *) { return x * six(x) / num<V>(6); }
};
struct HardShrink {
    template <class V> static INLINE_MEMBER V of(V x, const double *numbers) {
        return select(v_abs(x) <= num<V>(numbers[0]), num<V>(0), x);
    }
};
// What lies between the limits becomes a zero of its sign.
struct SoftShrink {
    template <class V> static INLINE_MEMBER V of(V x, const double *numbers) {
        const V limit = num<V>(numbers[0]);
        return flip_sign(v_abs(x - vmax(-limit, vmin(limit, x))), sign_of(x));
    }
};
struct NanToNum {
    template <class V> static INLINE_MEMBER V of(V x, const double *numbers) {
        V y = select(x == num<V>(__builtin_inf()), num<V>(numbers[1]), x);
        y = select(x == num<V>(-__builtin_inf()), num<V>(numbers[2]), y);
        return select(x == x, y, num<V>(numbers[0]));
    }
};

// ---- rounding: loops that compilers have instructions for ----

struct Floor {
    static INLINE_MEMBER float of(float x, const double *) { return __builtin_floorf(x); }
    static INLINE_MEMBER double of(double x, const double *) { return __builtin_floor(x); }
};
struct Ceil {
    static INLINE_MEMBER float of(float x, const double *) { return __builtin_ceilf(x); }
    static INLINE_MEMBER double of(double x, const double *) { return __builtin_ceil(x); }
};
struct Trunc {
    static INLINE_MEMBER float of(float x, const double *) { return __builtin_truncf(x); }
    static INLINE_MEMBER double of(double x, const double *) { return __builtin_trunc(x); }
};
INLINE float even(float x) { return __builtin_rintf(x); }
INLINE double even(double x) { return __builtin_rint(x); }
struct Round {
    template <class T> static INLINE_MEMBER T of(T x, const double *) { return even(x); }
};
struct RoundScaled {
    template <class T> static INLINE_MEMBER T of(T x, const double *numbers) {
        T scale = static_cast<T>(numbers[0]);
        return even(x * scale) / scale;
    }
};
struct RoundDivided {
    template <class T> static INLINE_MEMBER T of(T x, const double *numbers) {
        T scale = static_cast<T>(numbers[0]);
        return even(x / scale) * scale;
    }
};

// ---- gradients, of g and the input x or the result x ----

struct ReluSlope {
    template <class V> static INLINE_MEMBER V of(V g, V x, const double *) { return select(x <= num<V>(0), num<V>(0), g); }
};
struct SigmoidSlope {
    template <class V> static INLINE_MEMBER V of(V g, V x, const double *) { return g * x * (num<V>(1) - x); }
};
struct TanhSlope {
    template <class V> static INLINE_MEMBER V of(V g, V x, const double *) { return g * ((num<V>(1) - x) * (num<V>(1) + x)); }
};
struct SiluSlope {
    template <class V> static INLINE_MEMBER V of(V g, V x, const double *) {
        V s = v_sigmoid(x);
        return g * (s * fma(x, num<V>(1) - s, num<V>(1)));
    }
};
struct GeluSlope {
    template <class V> static INLINE_MEMBER V of(V g, V x, const double *) {
        V density = v_exp(x * x * num<V>(-0.5)) * num<V>(0.39894228040143268);
        return g * fma(x, density, v_normal(x));
    }
};
struct GeluTanhSlope {
    template <class V> static INLINE_MEMBER V of(V g, V x, const double *) {
        V u = gelu_argument(x), s = v_sigmoid(u + u);
        V inner = fma(x * x, num<V>(3 * 0.044715 * 0.79788456080286536), num<V>(0.79788456080286536));
        // The derivative of tanh is 4 s (1 - s).
        V slope = s * (num<V>(1) - s) * inner * x;
        return g * fma(slope, num<V>(2), s);
    }
};

struct SoftplusSlope {
    template <class V> static INLINE_MEMBER V of(V g, V x, const double *numbers) {
        V scaled = x * num<V>(numbers[0]);
        return select(scaled > num<V>(numbers[1]), g, g * v_sigmoid(scaled));
    }
};
struct LogSigmoidSlope {
    template <class V> static INLINE_MEMBER V of(V g, V x, const double *) { return g * v_sigmoid(-x); }
};
struct MishSlope {
    template <class V> static INLINE_MEMBER V of(V g, V x, const double *) {
        V e = mish_exp(x), n = e * (e + num<V>(2)), d = n + num<V>(2);
        return g * (n / d + vmin(num<V>(20), x) * (num<V>(4) * e * (e + num<V>(1)) / (d * d)));
    }
};
struct LeakyReluSlope {
    template <class V> static INLINE_MEMBER V of(V g, V x, const double *numbers) {
        return select(x > num<V>(0), g, g * num<V>(numbers[0]));
    }
};
struct EluSlope {
    template <class V> static INLINE_MEMBER V of(V g, V x, const double *numbers) {
        V below = v_exp(vmin(num<V>(0), x) * num<V>(numbers[2])) * num<V>(numbers[0]);
        return g * select(x <= num<V>(0), below, num<V>(numbers[1]));
    }
};
struct HardTanhSlope {
    template <class V> static INLINE_MEMBER V of(V g, V x, const double *numbers) {
        return select(x > num<V>(numbers[0]), select(x < num<V>(numbers[1]), g, num<V>(0)), num<V>(0));
    }
};
struct HardSigmoidSlope {
    template <class V> static INLINE_MEMBER V of(V g, V x, const double *) {
        return select(x > num<V>(-3), select(x < num<V>(3), g / num<V>(6), num<V>(0)), num<V>(0));
    }
};
struct HardSwishSlope {
    template <class V> static INLINE_MEMBER V of(V g, V x, const double *) {
        V inside = select(x < num<V>(3), g * (x / num<V>(3) + num<V>(0.5)), g);
        return select(x <= num<V>(-3), num<V>(0), inside);
    }
};

// ---- over numbers in a row ----

// Fewer numbers than a vector has lanes: a block's function over a room that holds one.
template <class T> __attribute__((noinline)) void in_room(Block block, const void *from, const void *with, void *to, int64_t n,
                                                          const double *numbers) {
    constexpr int L = VECTOR_BYTES / (sizeof(T) < 4 ? 4 : sizeof(T));
    T rooms[3][L];
    for (int i = 0; i < L; i++) rooms[0][i] = rooms[1][i] = *static_cast<const T *>(from);
    __builtin_memcpy(rooms[0], from, n * sizeof(T));
    if (with) __builtin_memcpy(rooms[1], with, n * sizeof(T));
    block(rooms[0], rooms[1], rooms[2], L, numbers);
    __builtin_memcpy(to, rooms[2], n * sizeof(T));
}

// The last vector overlaps the one before, so that the function's code is there once.
template <class T, class F> void map_block(const void *from, const void *, void *to, int64_t n, const double *numbers) {
    constexpr int L = LANES<T>;
    if (n < L) return in_room<T>(map_block<T, F>, from, nullptr, to, n, numbers);
    const T *x = static_cast<const T *>(from);
    T *out = static_cast<T *>(to);
    for (int64_t i = 0;;) {
        store<T>(out + i, F::of(load<T>(x + i), numbers));
        if (i == n - L) break;
        i = i + L > n - L ? n - L : i + L;
    }
}
// Functions of a few steps: several vectors at once.
template <class T, class F> void cheap_block(const void *from, const void *, void *to, int64_t n, const double *numbers) {
    constexpr int L = LANES<T>;
    if (n < L) return in_room<T>(cheap_block<T, F>, from, nullptr, to, n, numbers);
    const T *x = static_cast<const T *>(from);
    T *out = static_cast<T *>(to);
    int64_t i = 0;
    for (; i + 4 * L <= n && !SMALL; i += 4 * L) {
        vec<T> a = F::of(load<T>(x + i), numbers), b = F::of(load<T>(x + i + L), numbers);
        vec<T> c = F::of(load<T>(x + i + 2 * L), numbers), d = F::of(load<T>(x + i + 3 * L), numbers);
        store<T>(out + i, a), store<T>(out + i + L, b), store<T>(out + i + 2 * L, c), store<T>(out + i + 3 * L, d);
    }
    for (; i < n; i += L) {
        const int64_t k = i + L > n ? n - L : i;
        store<T>(out + k, F::of(load<T>(x + k), numbers));
    }
}
template <class T, class F>
void slope_block(const void *from, const void *with, void *to, int64_t n, const double *numbers) {
    constexpr int L = LANES<T>;
    if (n < L) return in_room<T>(slope_block<T, F>, from, with, to, n, numbers);
    const T *g = static_cast<const T *>(from), *x = static_cast<const T *>(with);
    T *out = static_cast<T *>(to);
    for (int64_t i = 0;;) {
        store<T>(out + i, F::of(load<T>(g + i), load<T>(x + i), numbers));
        if (i == n - L) break;
        i = i + L > n - L ? n - L : i + L;
    }
}
template <class T, class F> void loop_block(const void *from, const void *, void *to, int64_t n, const double *numbers) {
    const T *__restrict x = static_cast<const T *>(from);
    T *__restrict out = static_cast<T *>(to);
    for (int64_t i = 0; i < n; i++) out[i] = F::of(x[i], numbers);
}

// ---- half precision in a row: signs are bits ----

template <int MAP, class H> void sign_block(const void *from, const void *, void *to, int64_t n, const double *) {
    constexpr uint16_t endless = __is_same(H, half) ? 0x7c00 : 0x7f80;
    const uint16_t *__restrict x = static_cast<const uint16_t *>(from);
    uint16_t *__restrict out = static_cast<uint16_t *>(to);
    for (int64_t i = 0; i < n; i++) {
        uint16_t b = x[i];
        if constexpr (MAP == MAP_NEGATIVE) out[i] = static_cast<uint16_t>(b ^ 0x8000);
        else if constexpr (MAP == MAP_ABS) out[i] = static_cast<uint16_t>(b & 0x7fff);
        else out[i] = b > 0x8000 && b <= (endless | 0x8000) ? 0 : b;
    }
}

// ---- over any strides and in half precision ----

// T as stored, W as computed with; INPUTS operands.
template <class T, class W, int INPUTS> void run(char *const *at, const int64_t *step, int64_t n, const void *extra) {
    const Applied &f = *static_cast<const Applied *>(extra);
    constexpr int size = sizeof(T);
    constexpr bool wide = !__is_same(T, W);
    if (!wide && step[0] == size && step[1] == size && (INPUTS == 1 || step[2] == size))
        return f.block(at[1], INPUTS == 1 ? nullptr : at[2], at[0], n, f.numbers);
    if (wide && INPUTS == 1 && f.direct && step[0] == size && step[1] == size)
        return f.direct(at[1], nullptr, at[0], n, f.numbers);
    W in[INPUTS][HALF_BLOCK], out[HALF_BLOCK];
    const void *here[INPUTS];
    for (int64_t i = 0; i < n; i += HALF_BLOCK) {
        int64_t m = n - i < HALF_BLOCK ? n - i : HALF_BLOCK;
        for (int k = 0; k < INPUTS; k++) {
            const char *from = at[k + 1] + i * step[k + 1];
            here[k] = in[k];
            if constexpr (wide) widen<T>(from, step[k + 1], in[k], m);
            else if (step[k + 1] == size) here[k] = from;
            else if (step[k + 1] || !i) gather(reinterpret_cast<char *>(in[k]), from, step[k + 1], m, size);
        }
        char *to = at[0] + i * step[0];
        const bool apart = wide || step[0] != size;
        f.block(here[0], here[INPUTS - 1], apart ? reinterpret_cast<char *>(out) : to, m, f.numbers);
        if constexpr (wide) narrow<T>(out, to, step[0], m);
        else if (apart) scatter(to, reinterpret_cast<char *>(out), step[0], m, size);
    }
}

// ---- dropout ----

template <class T> struct Wide { using type = float; };
template <> struct Wide<double> { using type = double; };
template <class T> using wide_of = typename Wide<T>::type;
template <class T, class W> INLINE T times(T x, W by) {
    if constexpr (sizeof(T) == 2) return from_float<T>(to_float(x) * by);
    else return x * by;
}

template <class T, int PARTS> void dropout(char *const *at, const int64_t *step, int64_t n, const void *extra) {
    using W = wide_of<T>;
    const W scale = static_cast<W>(*static_cast<const double *>(extra));
    const uint8_t *keep = reinterpret_cast<const uint8_t *>(at[2]);
    if (PARTS == 1 && step[0] == sizeof(T) && step[1] == sizeof(T) && step[2] == 1) {
        const T *__restrict x = reinterpret_cast<const T *>(at[1]);
        T *__restrict out = reinterpret_cast<T *>(at[0]);
        for (int64_t i = 0; i < n; i++) out[i] = times(x[i], keep[i] ? scale : W(0));
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        const T *x = reinterpret_cast<const T *>(at[1] + i * step[1]);
        T *out = reinterpret_cast<T *>(at[0] + i * step[0]);
        const W by = keep[i * step[2]] ? scale : W(0);
        for (int k = 0; k < PARTS; k++) out[k] = times(x[k], by);
    }
}

}  // namespace

#define MAPS_OF(T)                                                                                                          \
    {map_block<T, Exp>, map_block<T, Exp2>, map_block<T, Expm1>, map_block<T, Log>, map_block<T, Log2>,                     \
     map_block<T, Log10>, map_block<T, Log1p>, map_block<T, Sigmoid>, map_block<T, Tanh>, map_block<T, Sinh>,               \
     map_block<T, Cosh>, map_block<T, Asinh>, map_block<T, Acosh>, map_block<T, Atanh>, map_block<T, Sin>,                  \
     map_block<T, Cos>, map_block<T, Tan>, map_block<T, Asin>, map_block<T, Acos>, map_block<T, Atan>, map_block<T, Erf>,   \
     map_block<T, Erfc>, map_block<T, Erfcx>, map_block<T, Erfinv>, map_block<T, Lgamma>, map_block<T, Digamma>,            \
     cheap_block<T, Sqrt>, cheap_block<T, Rsqrt>, cheap_block<T, Reciprocal>, cheap_block<T, Square>, cheap_block<T, Negative>,       \
     cheap_block<T, Abs>, cheap_block<T, Sign>, loop_block<T, Floor>, loop_block<T, Ceil>, loop_block<T, Trunc>,                \
     loop_block<T, Round>, loop_block<T, RoundScaled>, loop_block<T, RoundDivided>, map_block<T, Angle>,                    \
     cheap_block<T, NanToNum>, cheap_block<T, Relu>, map_block<T, Silu>, map_block<T, Gelu>, map_block<T, GeluTanh>,            \
     map_block<T, Softplus>, map_block<T, LogSigmoid>, map_block<T, Mish>, cheap_block<T, LeakyRelu>, map_block<T, Elu>,      \
     map_block<T, HardSigmoid>, map_block<T, HardSwish>, cheap_block<T, HardShrink>, cheap_block<T, SoftShrink>}
#define SLOPES_OF(T)                                                                                                        \
    {slope_block<T, ReluSlope>, slope_block<T, SigmoidSlope>, slope_block<T, TanhSlope>, slope_block<T, SiluSlope>,         \
     slope_block<T, GeluSlope>, slope_block<T, GeluTanhSlope>, slope_block<T, SoftplusSlope>,                               \
     slope_block<T, LogSigmoidSlope>, slope_block<T, MishSlope>, slope_block<T, LeakyReluSlope>, slope_block<T, EluSlope>,  \
     slope_block<T, HardTanhSlope>, slope_block<T, HardSigmoidSlope>, slope_block<T, HardSwishSlope>}


// Functions that are rare, or wait for memory: AVX2 is fast enough for those.
[[maybe_unused]] constexpr bool rare(int map) {
    return (map >= MAP_SINH && map <= MAP_ATANH) || (map >= MAP_TAN && map <= MAP_ATAN) || (map >= MAP_ERFC && map <= MAP_DIGAMMA) ||
           (map >= MAP_SQUARE && map <= MAP_RELU) || map == MAP_EXP2 || map == MAP_LOG10 ||
           map > MAP_SOFTPLUS;
}
// Other functions take longer vector by vector than by blocks of floats.
template <class H> constexpr void signs(Block (&direct)[MAPS]) {
    direct[MAP_NEGATIVE] = sign_block<MAP_NEGATIVE, H>;
    direct[MAP_ABS] = sign_block<MAP_ABS, H>;
    direct[MAP_RELU] = sign_block<MAP_RELU, H>;
}
constexpr UnaryTable filled() {
    UnaryTable t = {
        MAPS_OF(float), MAPS_OF(double), MORTICE_MODERN(SLOPES_OF(float)), MORTICE_MODERN(SLOPES_OF(double)), {},
        MORTICE_MODERN({dropout<half, 1>, dropout<bhalf, 1>, dropout<float, 1>, dropout<double, 1>, dropout<float, 2>, dropout<double, 2>}),
        {run<half, float, 1>, run<bhalf, float, 1>, run<float, float, 1>, run<double, double, 1>},
        {run<half, float, 2>, run<bhalf, float, 2>, run<float, float, 2>, run<double, double, 2>},
    };
#if defined(MORTICE_AFTER_AVX2)
    for (int map = 0; map < MAPS; map++)
        if (rare(map)) t.map32[map] = t.map64[map] = nullptr;
    for (int slope = SLOPE_SOFTPLUS; slope < SLOPES; slope++) t.slope32[slope] = t.slope64[slope] = nullptr;
#endif
    for (int map = MAP_SILU; map < MAPS && !FOR_MODERN; map++) t.map32[map] = t.map64[map] = nullptr;
    signs<half>(t.direct[0]);
    signs<bhalf>(t.direct[1]);
    return t;
}

extern const UnaryTable unary_table;
constexpr UnaryTable made = filled();
const UnaryTable unary_table = made;

}  // namespace mortice::ISA
