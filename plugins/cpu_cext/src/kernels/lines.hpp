// Elementwise kernels as lines: loops over operands that lie side by side. What lies otherwise is brought into rooms first.
//
// Lines are of vectors of any power of 2 of lanes; the last vector overlaps the one before it, so no elements are left over:
// the output must not be an input.
#pragma once
#include <stdint.h>
#include <string.h>

#include "simd.hpp"

namespace mortice::ISA {

#define APART static __attribute__((noinline))  // lines are long: one copy of each

using Line = void (*)(char *const *at, int64_t n);
// A line whose inputs may stand still, all but one: input i moves by its element's size, or not at all and is one number.
using MovingLine = void (*)(char *const *at, const int64_t *moves, int64_t n);

struct pair_of_words { uint64_t low, high; };

constexpr int ROOM = 4096;  // bytes: five of them stay in the first-level cache

template <class T, int N> struct lanes_of { typedef T type __attribute__((vector_size(N * sizeof(T)))); };
template <class T, int N> using lanes = typename lanes_of<T, N>::type;

template <class V> INLINE V load_as(const void *p) {
    V v;
    memcpy(&v, p, sizeof v);
    return v;
}
template <class V> INLINE void store_as(void *p, V v) { memcpy(p, &v, sizeof v); }

template <int SIZE> struct unsigned_of_size;
template <> struct unsigned_of_size<1> { using type = uint8_t; };
template <> struct unsigned_of_size<2> { using type = uint16_t; };
template <> struct unsigned_of_size<4> { using type = uint32_t; };
template <> struct unsigned_of_size<8> { using type = uint64_t; };
template <class T> using unsigned_of = typename unsigned_of_size<sizeof(T)>::type;

// An input of a line. A number that stands still is kept in a register: written to memory first, every line of a matrix
// would wait for it. One loop serves both: where a number stands, what lies at `readable` is loaded and masked out.
template <class T> struct Input {
    using U = unsigned_of<T>;
    const char *at;
    U keep, one = 0;
    __attribute__((always_inline)) Input(const char *p, int64_t move, const char *readable)
        : at(move ? p : readable), keep(move ? static_cast<U>(~U{0}) : U{0}) {
        if (!move) memcpy(&one, p, sizeof one);
    }
    template <int N> __attribute__((always_inline)) lanes<T, N> load(int64_t i) const {
        using W = lanes<U, N>;
        return load_bits<lanes<T, N>>((load_as<W>(at + i * static_cast<int64_t>(sizeof(T))) & (W{} + keep)) | (W{} + one));
    }
    template <class V, class W> static __attribute__((always_inline)) V load_bits(W bits) { return load_as<V>(&bits); }
};

// An input that stands still, where a loop is made for that.
template <class T> struct Number {
    T one;
    explicit Number(const char *p) { memcpy(&one, p, sizeof one); }
    template <int N> __attribute__((always_inline)) lanes<T, N> load(int64_t) const { return one - lanes<T, N>{}; }  // keeps -0.0
};

// ---- elements from and to memory with steps ----

template <class T> INLINE void gather_as(char *room, const char *from, int64_t step, int64_t n) {
    T *out = reinterpret_cast<T *>(room);
    const T *in = reinterpret_cast<const T *>(from), first = *in;
    if (step == 0)
        for (int64_t i = 0; i < n; i++) out[i] = first;
    else if (step == 2 * sizeof(T))  // every other element: vectors can be sorted out
        for (int64_t i = 0; i < n; i++) out[i] = in[2 * i];
    else
        for (int64_t i = 0; i < n; i++) out[i] = *reinterpret_cast<const T *>(from + i * step);
}
template <class T> INLINE void scatter_as(char *to, const char *room, int64_t step, int64_t n) {
    const T *in = reinterpret_cast<const T *>(room);
    for (int64_t i = 0; i < n; i++) *reinterpret_cast<T *>(to + i * step) = in[i];
}
// These are not static: the files of an instruction set share one copy of each.
inline __attribute__((noinline)) void gather(char *room, const char *from, int64_t step, int64_t n, int size) {
    switch (size) {
        case 1: return gather_as<uint8_t>(room, from, step, n);
        case 2: return gather_as<uint16_t>(room, from, step, n);
        case 4: return gather_as<uint32_t>(room, from, step, n);
        case 8: return gather_as<uint64_t>(room, from, step, n);
        default: return gather_as<pair_of_words>(room, from, step, n);
    }
}
inline __attribute__((noinline)) void scatter(char *to, const char *room, int64_t step, int64_t n, int size) {
    switch (size) {
        case 1: return scatter_as<uint8_t>(to, room, step, n);
        case 2: return scatter_as<uint16_t>(to, room, step, n);
        case 4: return scatter_as<uint32_t>(to, room, step, n);
        case 8: return scatter_as<uint64_t>(to, room, step, n);
        default: return scatter_as<pair_of_words>(to, room, step, n);
    }
}

inline __attribute__((noinline)) void spread(Line line, const int *sizes, int count, char *const *at,
                                             const int64_t *step, int64_t n) {
    alignas(64) char rooms[5][ROOM];
    char *here[5];
    int largest = 1;
    for (int i = 0; i < count; i++) largest = sizes[i] > largest ? sizes[i] : largest;
    const int64_t block = ROOM / largest;
    for (int i = 0; i < count; i++) {
        here[i] = rooms[i];
        if (i && step[i] == 0) gather(rooms[i], at[i], 0, n < block ? n : block, sizes[i]);
    }
    for (int64_t k = 0; k < n; k += block) {
        const int64_t m = n - k < block ? n - k : block;
        for (int i = 0; i < count; i++) {
            if (step[i] == sizes[i])
                here[i] = at[i] + k * sizes[i];
            else if (i && step[i])
                gather(rooms[i], at[i] + k * step[i], step[i], m, sizes[i]);
        }
        line(here, m);
        if (step[0] != sizes[0]) scatter(at[0] + k * step[0], rooms[0], step[0], m, sizes[0]);
    }
}

inline __attribute__((noinline)) void spread_rooms(MovingLine line, const int *sizes, int count, char *const *at,
                                                   const int64_t *step, int64_t n, bool moving) {
    alignas(64) char rooms[5][ROOM];
    char *here[5];
    int64_t moves[5];
    int largest = 1;
    for (int i = 0; i < count; i++) {
        largest = sizes[i] > largest ? sizes[i] : largest;
        const bool stands = i && step[i] == 0 && moving;
        moves[i] = stands ? 0 : sizes[i];
        here[i] = stands ? at[i] : rooms[i];
    }
    const int64_t block = ROOM / largest;
    for (int i = 1; i < count && !moving; i++) gather(rooms[i], at[i], 0, n < block ? n : block, sizes[i]);
    for (int64_t k = 0; k < n; k += block) {
        const int64_t m = n - k < block ? n - k : block;
        for (int i = 0; i < count; i++) {
            if (step[i] == sizes[i])
                here[i] = at[i] + k * sizes[i];
            else if (i && step[i])
                gather(rooms[i], at[i] + k * step[i], step[i], m, sizes[i]);
        }
        line(here, moves, m);
        if (step[0] != sizes[0]) scatter(at[0] + k * step[0], rooms[0], step[0], m, sizes[0]);
    }
}

// Of an element of the output and of the inputs, in bytes.
template <int... SIZES> struct Sizes {
    static constexpr int count = sizeof...(SIZES), bytes[] = {SIZES...};
    static constexpr int64_t moves[] = {SIZES...};
};

INLINE void inner_of(Line line, const int *sizes, int count, char *const *at, const int64_t *step, int64_t n) {
    bool whole = true;
    for (int i = 0; i < count; i++) whole &= step[i] == sizes[i];
    if (whole || n == 1)
        line(at, n);
    else
        spread(line, sizes, count, at, step, n);
}
INLINE void inner_moving_of(MovingLine line, const int *sizes, const int64_t *moves, int count, char *const *at,
                            const int64_t *step, int64_t n) {
    bool lying = step[0] == sizes[0], moving = false;
    for (int i = 1; i < count; i++) {
        lying &= step[i] == 0 || step[i] == sizes[i];
        moving |= step[i] != 0;
    }
    if (n == 1) line(at, moves, n);
    else if (lying && moving) line(at, step, n);  // whose steps are the moves
    else spread_rooms(line, sizes, count, at, step, n, moving);
}
// The same for all lines, where there is to be little code.
inline __attribute__((noinline)) void inner_any(Line line, const int *sizes, int count, char *const *at,
                                                const int64_t *step, int64_t n) {
    inner_of(line, sizes, count, at, step, n);
}
inline __attribute__((noinline)) void inner_moving_any(MovingLine line, const int *sizes, const int64_t *moves, int count,
                                                       char *const *at, const int64_t *step, int64_t n) {
    inner_moving_of(line, sizes, moves, count, at, step, n);
}

// The inner loop of a line.
template <Line line, int... SIZES>
static void inner(char *const *at, const int64_t *step, int64_t n, const void *) {
    using S = Sizes<SIZES...>;
    if constexpr (SMALL) inner_any(line, S::bytes, S::count, at, step, n);
    else inner_of(line, S::bytes, S::count, at, step, n);
}
template <MovingLine line, int... SIZES>
static void inner_moving(char *const *at, const int64_t *step, int64_t n, const void *) {
    using S = Sizes<SIZES...>;
    if constexpr (SMALL) inner_moving_any(line, S::bytes, S::moves, S::count, at, step, n);
    else inner_moving_of(line, S::bytes, S::moves, S::count, at, step, n);
}

// ---- lines ----

// f(offset, count of lanes) over 0..n, by vectors of N lanes, the last overlapping; fewer elements by vectors of a quarter:
// of every width, f's code is there once. The last vector goes through the same loop; but where the compiler is told to be
// small it makes a poor loop of that, and there fewer than N elements go one by one.
template <int N> struct count_of { static constexpr int value = N; };
template <int N, class F> INLINE void cover(int64_t n, F f) {
    if constexpr (SMALL) {
        int64_t i = 0;
        for (; i <= n - N; i += N) f(i, count_of<N>{});
        if (n >= N && i < n) f(n - N, count_of<N>{});
        for (; i < n && n < N; i++) f(i, count_of<1>{});
    } else if (n >= N) {
        for (int64_t i = 0; i < n; i = i < n ? n - N : n)
            for (; i <= n - N; i += N) f(i, count_of<N>{});
    } else if constexpr (N > 1) {
        cover<(N > 4 ? N / 4 : 1)>(n, f);
    }
}

// out = F::go(a, b), of one type
template <class F, class T> APART void line_two(char *const *at, const int64_t *moves, int64_t n) {
    char *out = at[0];
    const Input<T> a(at[1], moves[1], at[2]), b(at[2], moves[2], at[1]);
    cover<LANES<T>>(n, [=](int64_t i, auto count) __attribute__((always_inline)) {
        constexpr int N = decltype(count)::value;
        store_as<lanes<T, N>>(out + i * sizeof(T), F::go(a.template load<N>(i), b.template load<N>(i)));
    });
}

// The first input that moves: what is loaded beside it is in the first-level cache, as the output may not be.
INLINE const char *moving_of(char *const *at, const int64_t *moves) {
    int i = 1;
    while (!moves[i]) i++;
    return at[i];
}

// out = F::go(a, b, c), of one type. Of floats there is a loop for c, or b and c, that are numbers.
template <class F, class T> APART void line_three(char *const *at, const int64_t *moves, int64_t n) {
    char *out = at[0];
    const char *moving = moving_of(at, moves);
    const Input<T> a(at[1], moves[1], moving), b(at[2], moves[2], moving);
    const auto go = [=](auto b, auto c) __attribute__((always_inline)) {
        cover<LANES<T>>(n, [=](int64_t i, auto count) __attribute__((always_inline)) {
            constexpr int N = decltype(count)::value;
            store_as<lanes<T, N>>(out + i * sizeof(T), F::go(a.template load<N>(i), b.template load<N>(i), c.template load<N>(i)));
        });
    };
    if constexpr (FLOATING<T> && !SMALL) {
        if constexpr (F::ONE_NUMBER) {
            if (!moves[3]) return go(b, Number<T>(at[3]));
        } else {
            if (!moves[2] && !moves[3]) return go(Number<T>(at[2]), Number<T>(at[3]));
        }
    }
    go(b, Input<T>(at[3], moves[3], moving));
}

// out = F::go(a, b, c, d), of one type
template <class F, class T> APART void line_four(char *const *at, const int64_t *moves, int64_t n) {
    char *out = at[0];
    const char *moving = moving_of(at, moves);
    const Input<T> a(at[1], moves[1], moving), b(at[2], moves[2], moving), c(at[3], moves[3], moving), d(at[4], moves[4], moving);
    cover<LANES<T>>(n, [=](int64_t i, auto count) __attribute__((always_inline)) {
        constexpr int N = decltype(count)::value;
        store_as<lanes<T, N>>(out + i * sizeof(T), F::go(a.template load<N>(i), b.template load<N>(i), c.template load<N>(i),
                                                         d.template load<N>(i)));
    });
}

// One element at a time, for the compiler to make vectors of where it can.
template <class Out, class In, Out (*f)(In, In)> APART void line_each(char *const *at, int64_t n) {
    Out *__restrict__ out = reinterpret_cast<Out *>(at[0]);
    const In *__restrict__ a = reinterpret_cast<const In *>(at[1]), *__restrict__ b = reinterpret_cast<const In *>(at[2]);
    for (int64_t i = 0; i < n; i++) out[i] = f(a[i], b[i]);
}

}  // namespace mortice::ISA
