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
// A line whose inputs may stand still: input i moves by its element's size, or not at all and is a vector of one number.
using MovingLine = void (*)(char *const *at, const int64_t *moves, int64_t n);

struct pair_of_words { uint64_t low, high; };

constexpr int ROOM = 4096;  // bytes: four of them stay in the first-level cache

template <class T, int N> struct lanes_of { typedef T type __attribute__((vector_size(N * sizeof(T)))); };
template <class T, int N> using lanes = typename lanes_of<T, N>::type;

template <class V> INLINE V load_as(const void *p) {
    V v;
    memcpy(&v, p, sizeof v);
    return v;
}
template <class V> INLINE void store_as(void *p, V v) { memcpy(p, &v, sizeof v); }

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
static inline __attribute__((noinline)) void gather(char *room, const char *from, int64_t step, int64_t n, int size) {
    switch (size) {
        case 1: return gather_as<uint8_t>(room, from, step, n);
        case 2: return gather_as<uint16_t>(room, from, step, n);
        case 4: return gather_as<uint32_t>(room, from, step, n);
        case 8: return gather_as<uint64_t>(room, from, step, n);
        default: return gather_as<pair_of_words>(room, from, step, n);
    }
}
static inline __attribute__((noinline)) void scatter(char *to, const char *room, int64_t step, int64_t n, int size) {
    switch (size) {
        case 1: return scatter_as<uint8_t>(to, room, step, n);
        case 2: return scatter_as<uint16_t>(to, room, step, n);
        case 4: return scatter_as<uint32_t>(to, room, step, n);
        case 8: return scatter_as<uint64_t>(to, room, step, n);
        default: return scatter_as<pair_of_words>(to, room, step, n);
    }
}

static inline __attribute__((noinline)) void spread(Line line, const int *sizes, int count, char *const *at,
                                                    const int64_t *step, int64_t n) {
    alignas(64) char rooms[4][ROOM];
    char *here[4];
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

// A vector of one number, of the widest kind.
static inline __attribute__((noinline)) void splat_at(char *room, const char *from, int size) {
    gather(room, from, 0, VECTOR_BYTES / size, size);
}

static inline __attribute__((noinline)) void spread_moving(MovingLine line, const int *sizes, int count, char *const *at,
                                                           const int64_t *step, int64_t n) {
    alignas(64) char rooms[4][ROOM];
    char *here[4];
    int64_t moves[4];
    int largest = 1;
    bool lying = true;
    for (int i = 0; i < count; i++) {
        largest = sizes[i] > largest ? sizes[i] : largest;
        const bool stands = i && step[i] == 0, lies = step[i] == sizes[i];
        moves[i] = stands ? 0 : sizes[i];
        here[i] = lies ? at[i] : rooms[i];
        if (stands) splat_at(rooms[i], at[i], sizes[i]);
        lying &= stands || lies;
    }
    if (lying) return line(here, moves, n);
    const int64_t block = ROOM / largest;
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

// The inner loop of a line; sizes are those of an element of the output and of the inputs.
template <Line line, int... SIZES>
static void inner(char *const *at, const int64_t *step, int64_t n, const void *) {
    static constexpr int sizes[] = {SIZES...};
    constexpr int count = sizeof...(SIZES);
    bool whole = true;
    for (int i = 0; i < count; i++) whole &= step[i] == sizes[i];
    if (whole || n == 1)
        line(at, n);
    else
        spread(line, sizes, count, at, step, n);
}

template <MovingLine line, int... SIZES>
static void inner_moving(char *const *at, const int64_t *step, int64_t n, const void *) {
    static constexpr int sizes[] = {SIZES...};
    static constexpr int64_t moves[] = {SIZES...};
    constexpr int count = sizeof...(SIZES);
    bool whole = true;
    for (int i = 0; i < count; i++) whole &= step[i] == sizes[i];
    if (whole || n == 1)
        line(at, moves, n);
    else
        spread_moving(line, sizes, count, at, step, n);
}

// ---- lines ----

// f(offset, count of lanes) over 0..n, by vectors of N lanes, the last overlapping; fewer elements by narrower vectors.
template <int N> struct count_of { static constexpr int value = N; };
template <int N, class F> INLINE void cover(int64_t n, F f) {
    if (n >= N) {
        int64_t i = 0;
        for (; i <= n - N; i += N) f(i, count_of<N>{});
        if (i < n) f(n - N, count_of<N>{});
    } else if constexpr (N > 1) {
        cover<N / 2>(n, f);
    }
}

// out = F::go(a, b), of one type
template <class F, class T> APART void line_two(char *const *at, const int64_t *moves, int64_t n) {
    const char *a = at[1], *b = at[2];
    char *out = at[0];
    const int64_t move_a = moves[1], move_b = moves[2];
    cover<LANES<T>>(n, [=](int64_t i, auto count) __attribute__((always_inline)) {
        using V = lanes<T, decltype(count)::value>;
        store_as<V>(out + i * sizeof(T), F::go(load_as<V>(a + i * move_a), load_as<V>(b + i * move_b)));
    });
}

// out = F::go(a, b, c), of one type
template <class F, class T> APART void line_three(char *const *at, const int64_t *moves, int64_t n) {
    const char *a = at[1], *b = at[2], *c = at[3];
    char *out = at[0];
    const int64_t move_a = moves[1], move_b = moves[2], move_c = moves[3];
    cover<LANES<T>>(n, [=](int64_t i, auto count) __attribute__((always_inline)) {
        using V = lanes<T, decltype(count)::value>;
        store_as<V>(out + i * sizeof(T), F::go(load_as<V>(a + i * move_a), load_as<V>(b + i * move_b), load_as<V>(c + i * move_c)));
    });
}

// One element at a time, for the compiler to make vectors of where it can.
template <class Out, class In, Out (*f)(In, In)> APART void line_each(char *const *at, int64_t n) {
    Out *__restrict__ out = reinterpret_cast<Out *>(at[0]);
    const In *__restrict__ a = reinterpret_cast<const In *>(at[1]), *__restrict__ b = reinterpret_cast<const In *>(at[2]);
    for (int64_t i = 0; i < n; i++) out[i] = f(a[i], b[i]);
}

}  // namespace mortice::ISA
