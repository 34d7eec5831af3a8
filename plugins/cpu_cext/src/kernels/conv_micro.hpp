// The innermost loops of convolution: blocks of outputs kept in registers.
#pragma once
#include "simd.hpp"

namespace mortice::ISA {

#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int PANEL = 8;   // 32 registers: 8 x 3 accumulators, 3 of the right rows, 1 of the left
#else
constexpr int PANEL = 4;   // 16 registers: 4 x 3
#endif
constexpr int WIDE = 3;
constexpr int MOST = 8;    // vectors that the smallest panels do at once

template <class T> constexpr int64_t SIDE_BY_SIDE[MOST] = {0, LANES<T>, 2 * LANES<T>, 3 * LANES<T>, 4 * LANES<T>, 5 * LANES<T>, 6 * LANES<T>, 7 * LANES<T>};

// c[i][j] (+)= sum over k of a[k][i] * b[offset[k] + j], for MR rows and NR vectors, whose places in b are `at`.
template <class T, int MR, int NR>
static __attribute__((noinline)) void product(int64_t depth, const T *a, const T *b, const int64_t *offset, T *c, int64_t ldc, bool add, const int64_t *at) {
    vec<T> sum[MR][NR];
    int64_t move[NR];
    b += at[0];
#pragma GCC unroll 8
    for (int j = 1; j < NR; j++) move[j] = at[j] - at[0];
#pragma GCC unroll 8
    for (int i = 0; i < MR; i++)
#pragma GCC unroll 8
        for (int j = 0; j < NR; j++) sum[i][j] = add ? load(c + i * ldc + j * LANES<T>) : vec<T>{};
    for (int64_t k = 0; k < depth; k++) {
        const T *row = b + offset[k];
        vec<T> right[NR];
#pragma GCC unroll 8
        for (int j = 0; j < NR; j++) right[j] = load(j ? row + move[j] : row);
#pragma GCC unroll 8
        for (int i = 0; i < MR; i++) {
            vec<T> left = splat(a[k * MR + i]);
#pragma GCC unroll 8
            for (int j = 0; j < NR; j++) sum[i][j] = fma(left, right[j], sum[i][j]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < MR; i++)
#pragma GCC unroll 8
        for (int j = 0; j < NR; j++) store(c + i * ldc + j * LANES<T>, sum[i][j]);
}

template <class T>
static void product(int rows, int64_t vectors, int64_t depth, const T *a, const T *b, const int64_t *offset, T *c,
                    int64_t ldc, bool add, const int64_t *at = nullptr) {  // nullptr: side by side
    constexpr int L = LANES<T>;
    constexpr int FOUR = PANEL == 8 ? 6 : 3, TWO = PANEL == 8 ? 8 : 4;
    while (vectors > 0) {
        int done;
        auto go = [&](auto *body, int n) {
            body(depth, a, b, offset, c, ldc, add, at ? at : SIDE_BY_SIDE<T>);
            done = n;
        };
        if (rows == 8) {
            if constexpr (PANEL == 8) {
                if (vectors >= 3 && vectors != 4) go(product<T, 8, 3>, 3);
                else if (vectors >= 2) go(product<T, 8, 2>, 2);
                else go(product<T, 8, 1>, 1);
            } else done = 1;
        } else if (rows == 4) {
            if (vectors >= FOUR) go(product<T, 4, FOUR>, FOUR);
            else if (vectors >= 3) go(product<T, 4, 3>, 3);
            else if (vectors == 2 && !SMALL) go(product<T, 4, 2>, 2);
            else go(product<T, 4, 1>, 1);
        } else if (rows == 2) {
            if (vectors >= TWO) go(product<T, 2, TWO>, TWO);
            else if (vectors >= 3 && !SMALL) go(product<T, 2, 3>, 3);
            else go(product<T, 2, 1>, 1);
        } else {
            if (vectors >= 8 && !SMALL) go(product<T, 1, 8>, 8);
            else if (vectors >= 4) go(product<T, 1, 4>, 4);
            else go(product<T, 1, 1>, 1);
        }
        vectors -= done;
        if (at) at += done;
        else b += done * L;
        c += done * L;
    }
}

// ---- sums along vectors ----

template <int... I> struct Places {};
template <int N, int... I> struct PlacesUpTo : PlacesUpTo<N - 1, N - 1, I...> {};
template <int... I> struct PlacesUpTo<0, I...> { using type = Places<I...>; };

// Lanes in blocks of 2 * W: the first or second W of each block, those of a before those of b.
template <class V, int W, int SECOND, int L, int... I> INLINE V halves(V a, V b, Places<I...>) {
    constexpr int per = L / 2;  // lanes taken from each
    return __builtin_shufflevector(a, b, ((I / per) * L + ((I % per) / W) * 2 * W + SECOND * W + I % W)...);
}

// The sums of L vectors' lanes, one in each lane of the result.
template <class T, int W> INLINE vec<T> fold_lanes(const vec<T> *v) {
    constexpr int L = LANES<T>;
    if constexpr (W == L) {
        return v[0];
    } else {
        // At this level v stands for L / W vectors, of which each half keeps 2 * W lanes for each.
        vec<T> a = fold_lanes<T, 2 * W>(v), b = fold_lanes<T, 2 * W>(v + L / (2 * W));
        using P = typename PlacesUpTo<L>::type;
        return halves<vec<T>, W, 0, L>(a, b, P{}) + halves<vec<T>, W, 1, L>(a, b, P{});
    }
}

// out[i * NR + j] = sum over places of g[i][p] * x[j][p]; `vectors` of places, rows padded with zeros.
template <class T, int MR, int NR>
static void inner(int64_t vectors, const T *g, int64_t ldg, const T *x, int64_t ldx, T *out) {
    constexpr int L = LANES<T>, N = (MR * NR + L - 1) / L * L;
    vec<T> sum[N];
#pragma GCC unroll 32
    for (int i = 0; i < N; i++) sum[i] = vec<T>{};
    for (int64_t v = 0; v < vectors; v++) {
        vec<T> right[NR];
#pragma GCC unroll 8
        for (int j = 0; j < NR; j++) right[j] = load(x + j * ldx + v * L);
#pragma GCC unroll 8
        for (int i = 0; i < MR; i++) {
            vec<T> left = load(g + i * ldg + v * L);
#pragma GCC unroll 8
            for (int j = 0; j < NR; j++) sum[i * NR + j] = fma(left, right[j], sum[i * NR + j]);
        }
    }
    for (int i = 0; i < N; i += L) store(out + i, fold_lanes<T, 1>(sum + i));
}

}  // namespace mortice::ISA
