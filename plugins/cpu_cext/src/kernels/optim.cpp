// The steps of optimisers, one loop each. Operations are those of the default bodies in their order, and rounded as they are,
// so that values agree to the last bit; this file is compiled without contraction for it.
#include "optim.hpp"

#include <math.h>

#include "simd.hpp"

namespace mortice::ISA {
namespace {

// A nan of either is the result.
template <class T> INLINE T larger(T a, T b) { return a > b || a != a ? a : b; }
template <class T> INLINE T smaller(T a, T b) { return a < b || a != a ? a : b; }
INLINE float root(float x) { return sqrtf(x); }
INLINE double root(double x) { return sqrt(x); }

// As lerp: from the end that is nearer, chosen by bits, of which the compiler makes vectors.
INLINE int32_t bits_of(float x) { return __builtin_bit_cast(int32_t, x); }
INLINE int64_t bits_of(double x) { return __builtin_bit_cast(int64_t, x); }
template <class T> INLINE T toward(T x, T y, T share) {
    using Bits = decltype(bits_of(x));
    const Bits far = -Bits(!(share < T(0.5) && share > T(-0.5)));
    return fma(y - x, far ? share - 1 : share, __builtin_bit_cast(T, bits_of(x) ^ ((bits_of(x) ^ bits_of(y)) & far)));
}
template <class T> INLINE T toward_square(T x, T y, T keep, T take) { return fma(y * take, y, x * keep); }
template <class T> INLINE T downhill(T x, T direction, T length) { return fma(-direction, length, x); }

// The numbers in the type of the parameters.
template <class T> struct As {
    T shrink, length, keep1, take1, keep2, take2, eps, divide, length2;
    explicit As(const StepNumbers &s)
        : shrink(T(s.shrink)), length(T(s.length)), keep1(T(s.keep1)), take1(T(s.take1)),
          keep2(T(s.keep2)), take2(T(s.take2)), eps(T(s.eps)), divide(T(s.divide)), length2(T(s.length2)) {}
};

// Call `step` with a constant for a flag, so that loops do not look at it.
struct Yes { static constexpr bool value = true; };
struct No { static constexpr bool value = false; };
template <class F> INLINE void choose(bool flag, F &&f) {
    if (flag)
        f(Yes{});
    else
        f(No{});
}

constexpr int64_t BLOCK = 1024;  // elements whose gradients are prepared at once
// Do the step with gradients that have their sign, and decay in them where there is any: of the parameter before the step,
// or of what is left of it.
template <class T>
__attribute__((noinline)) void in_blocks(Step<T> step, bool shrunk, T *const *at, int64_t n, const StepNumbers &numbers) {
    if (numbers.sign == 1 && numbers.decay == 0) return step(at, n, numbers);
    const T sign = T(numbers.sign), decay = T(numbers.decay), shrink = T(shrunk ? numbers.shrink : 1);
    T room[BLOCK], *here[MOST_OPERANDS];
    for (int64_t i = 0; i < n; i += BLOCK) {
        const int64_t m = n - i < BLOCK ? n - i : BLOCK;
        for (int k = 0; k < MOST_OPERANDS; k++) here[k] = at[k] ? at[k] + i : nullptr;
        const T *p = here[0], *grad = here[1];
        if (numbers.decay == 0)
            INDEPENDENT for (int64_t j = 0; j < m; j++) room[j] = grad[j] * sign;
        else
            INDEPENDENT for (int64_t j = 0; j < m; j++) room[j] = fma(p[j] * shrink, decay, grad[j] * sign);
        here[1] = room;
        step(here, m, numbers);
    }
}
template <class T, Step<T> step, bool SHRUNK = true> void whole(T *const *at, int64_t n, const StepNumbers &numbers) {
    in_blocks<T>(step, SHRUNK, at, n, numbers);
}

#define OPERANDS T *__restrict p = at[0]; const T *__restrict grad = at[1]
#define LOOP INDEPENDENT for (int64_t i = 0; i < n; i++)

template <class T> void sgd(T *const *at, int64_t n, const StepNumbers &numbers) {
    OPERANDS;
    T *__restrict m = at[2];
    const As<T> s(numbers);
    const bool first = numbers.first, nesterov = numbers.flag;
    if (!m)
        LOOP p[i] = downhill(p[i], grad[i], s.length);
    else if (first)
        LOOP {
            const T g = grad[i];
            m[i] = g;
            p[i] = downhill(p[i], nesterov ? fma(g, s.keep1, g) : g, s.length);
        }
    else if (nesterov)
        LOOP {
            const T g = grad[i], v = fma(g, s.take1, m[i] * s.keep1);
            m[i] = v;
            p[i] = downhill(p[i], fma(v, s.keep1, g), s.length);
        }
    else
        LOOP {
            const T g = grad[i], v = fma(g, s.take1, m[i] * s.keep1);
            m[i] = v;
            p[i] = downhill(p[i], v, s.length);
        }
}

template <class T> void asgd(T *const *at, int64_t n, const StepNumbers &numbers) {
    OPERANDS;
    T *__restrict mean = at[2];
    const As<T> s(numbers);
    const bool copy = numbers.first;
    LOOP {
        const T to = downhill(p[i] * s.shrink, grad[i], s.length), from = mean[i];
        p[i] = to;
        mean[i] = copy ? to : from + (to - from) * s.take1;
    }
}

template <class T> void adam(T *const *at, int64_t n, const StepNumbers &numbers) {
    OPERANDS;
    T *__restrict mean = at[2], *__restrict square = at[3], *__restrict top = at[4];
    const As<T> s(numbers);
    choose(top != nullptr, [&](auto with_top) {
        LOOP {
            const T from = p[i] * s.shrink, g = grad[i];
            const T m = toward(mean[i], g, s.take1);
            T v = toward_square(square[i], g, s.keep2, s.take2);
            mean[i] = m;
            square[i] = v;
            if constexpr (with_top.value) top[i] = v = larger(top[i], v);
            p[i] = from - m * s.length / (root(v) / s.divide + s.eps);
        }
    });
}

template <class T> void adamax(T *const *at, int64_t n, const StepNumbers &numbers) {
    OPERANDS;
    T *__restrict mean = at[2], *__restrict largest = at[3];
    const As<T> s(numbers);
    LOOP {
        const T g = grad[i], m = toward(mean[i], g, s.take1);
        const T u = larger(largest[i] * s.keep2, (g < 0 ? -g : g) + s.eps);
        mean[i] = m;
        largest[i] = u;
        p[i] -= m * s.length / u;
    }
}

template <class T> void nadam(T *const *at, int64_t n, const StepNumbers &numbers) {
    OPERANDS;
    T *__restrict mean = at[2], *__restrict square = at[3];
    const As<T> s(numbers);
    LOOP {
        const T from = p[i] * s.shrink, g = grad[i];
        const T m = toward(mean[i], g, s.take1), v = toward_square(square[i], g, s.keep2, s.take2);
        const T bottom = root(v / s.divide) + s.eps;
        mean[i] = m;
        square[i] = v;
        p[i] = from - g * s.length / bottom - m * s.length2 / bottom;
    }
}

template <class T> void radam(T *const *at, int64_t n, const StepNumbers &numbers) {
    OPERANDS;
    T *__restrict mean = at[2], *__restrict square = at[3];
    const As<T> s(numbers);
    choose(numbers.flag, [&](auto rectified) {
        LOOP {
            const T from = p[i] * s.shrink, g = grad[i];
            const T m = toward(mean[i], g, s.take1), v = toward_square(square[i], g, s.keep2, s.take2);
            mean[i] = m;
            square[i] = v;
            T step = m / s.divide * s.length;
            if constexpr (rectified.value) step = step * (1 / (root(v) + s.eps) * s.keep1) * s.length2;
            p[i] = from - step;
        }
    });
}

template <class T> void rmsprop(T *const *at, int64_t n, const StepNumbers &numbers) {
    OPERANDS;
    T *__restrict square = at[2], *__restrict momentum = at[3], *__restrict mean = at[4];
    const As<T> s(numbers);
    choose(momentum != nullptr, [&](auto with_momentum) {
        choose(mean != nullptr, [&](auto centred) {
            LOOP {
                T g = grad[i], variance = toward_square(square[i], g, s.keep2, s.take2);
                square[i] = variance;
                if constexpr (centred.value) {
                    const T m = toward(mean[i], g, s.take2);
                    mean[i] = m;
                    variance = downhill(variance, m, m);
                }
                const T bottom = root(variance) + s.eps;
                if constexpr (with_momentum.value) {
                    momentum[i] = g = momentum[i] * s.keep1 + g / bottom;
                    p[i] = downhill(p[i], g, s.length);
                } else {
                    p[i] -= g * s.length / bottom;
                }
            }
        });
    });
}

template <class T> void adagrad(T *const *at, int64_t n, const StepNumbers &numbers) {
    OPERANDS;
    T *__restrict square = at[2];
    const As<T> s(numbers);
    LOOP {
        const T g = grad[i], v = fma(g, g, square[i]);
        square[i] = v;
        p[i] -= g * s.length / (root(v) + s.eps);
    }
}

template <class T> void adadelta(T *const *at, int64_t n, const StepNumbers &numbers) {
    OPERANDS;
    T *__restrict square = at[2], *__restrict changes = at[3];
    const As<T> s(numbers);
    LOOP {
        const T g = grad[i], v = toward_square(square[i], g, s.keep2, s.take2);
        const T change = root(changes[i] + s.eps) / root(v + s.eps) * g;
        square[i] = v;
        changes[i] = toward_square(changes[i], change, s.keep2, s.take2);
        p[i] = downhill(p[i], change, s.length);
    }
}

// keep1 and keep2 are the factors of steps that turned and stayed, take1 and take2 the bounds of steps.
template <class T> void rprop(T *const *at, int64_t n, const StepNumbers &numbers) {
    OPERANDS;
    T *__restrict before = at[2], *__restrict size = at[3];
    const As<T> s(numbers);
    LOOP {
        const T g = grad[i], agreement = g * before[i];
        const T factor = agreement < 0 ? s.keep1 : agreement > 0 ? s.keep2 : T(1);
        const T step = smaller(larger(size[i] * factor, s.take1), s.take2), now = agreement < 0 ? T(0) : g;
        const T direction = now > 0 ? T(1) : now < 0 ? T(-1) : now;
        before[i] = now;
        size[i] = step;
        p[i] -= direction * step;
    }
}

template <class T> constexpr StepKernels<T> KERNELS = {
    whole<T, sgd<T>>, whole<T, asgd<T>, false>, whole<T, adam<T>>, whole<T, adamax<T>>, whole<T, nadam<T>>, whole<T, radam<T>>,
    whole<T, rmsprop<T>>, whole<T, adagrad<T>>, whole<T, adadelta<T>>, whole<T, rprop<T>>,
};

}  // namespace

const StepTable step_kernels_table = {KERNELS<float>, KERNELS<double>};

}  // namespace mortice::ISA
