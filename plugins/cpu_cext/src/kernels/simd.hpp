// Vectors of the instruction set that this file is being compiled for, by the compilers' vector extensions: the same
// source gives SSE2, AVX2, AVX-512 and NEON. All of it is in `namespace mortice::ISA`, so that nothing is shared between them.
#pragma once
#include <stdint.h>
#include <type_traits>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "../dtype.hpp"

#ifndef ISA
#define ISA baseline
#endif

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif

// A file's loops lie by themselves: the same offsets in cache lines, whatever the linker puts before the file.
#if defined(__ELF__)
__asm__(".pushsection .text\n\t.p2align 6\n\t.popsection");
#endif

#define INLINE static inline __attribute__((always_inline))

// Before a loop that nowhere reads what another of its steps writes: it becomes vectors without a second loop in single
// elements for arrays that overlap. `__restrict` says so too, but GCC heeds it in parameters only.
#if defined(__clang__) || (defined(__x86_64__) && !defined(__AVX2__))
#define INDEPENDENT
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace mortice::ISA {

// Whether to be small rather than fast: what serves machines of before 2013.
#if defined(__x86_64__) && !defined(__AVX2__)
constexpr bool SMALL = true;
#else
constexpr bool SMALL = false;
#endif

template <class T> struct vector_of { typedef T type __attribute__((vector_size(VECTOR_BYTES))); };
template <class T> using vec = typename vector_of<T>::type;
using vf = vec<float>;
using vd = vec<double>;
using vi = vec<int32_t>;   // also the mask of vf: 0 or -1
using vl = vec<int64_t>;   // also the mask of vd
template <class T> constexpr int LANES = VECTOR_BYTES / static_cast<int>(sizeof(T));

// The lanes that `from` says, of a and then of b.
template <class V, class I> INLINE V mixed(V a, V b, I from) {
#if defined(__clang__)
    constexpr int N = sizeof(V) / sizeof(a[0]);
    V out;
    for (int i = 0; i < N; i++) out[i] = from[i] < N ? a[from[i]] : b[from[i] - N];
    return out;
#else
    return __builtin_shuffle(a, b, from);
#endif
}
template <class V, class I> INLINE V turned(V v, I from) { return mixed(v, v, from); }

template <class T> INLINE vec<T> load(const T *p) {
    vec<T> v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}
template <class T> INLINE void store(T *p, vec<T> v) { __builtin_memcpy(p, &v, sizeof v); }
// The first n lanes, the others `rest`; n < LANES.
template <class T> INLINE vec<T> load_part(const T *p, int64_t n, T rest = T(0)) {
    T room[LANES<T>];
    for (int i = 0; i < LANES<T>; i++) room[i] = rest;
    __builtin_memcpy(room, p, n * sizeof(T));
    return load(room);
}
template <class T> INLINE void store_part(T *p, vec<T> v, int64_t n) { __builtin_memcpy(p, &v, n * sizeof(T)); }
template <class T> INLINE vec<T> splat(T x) { return x - vec<T>{}; }  // keeps -0.0: x - 0

INLINE vf select(vi mask, vf a, vf b) { return mask ? a : b; }
INLINE vd select(vl mask, vd a, vd b) { return mask ? a : b; }

// a * b + c, rounded once where the machine can.
INLINE vf fma(vf a, vf b, vf c) {
#if defined(__AVX512F__)
    return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
    return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    return a * b + c;
#endif
}
INLINE vd fma(vd a, vd b, vd c) {
#if defined(__AVX512F__)
    return (vd)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(__FMA__)
    return (vd)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#else
    return a * b + c;
#endif
}

// Loops of these become loops of vectors.
template <class T> INLINE std::enable_if_t<std::is_floating_point_v<T>, T> fma(T a, T b, T c) {
#if !defined(__FP_FAST_FMA)
    return a * b + c;
#else
    if constexpr (sizeof(T) == sizeof(float)) return __builtin_fmaf(a, b, c);
    return __builtin_fma(a, b, c);
#endif
}

// The larger; a nan in b wins, one in a is lost (x86's own rule): use it where nans are seen to elsewhere. GCC makes more of
// the comparison where it may not forget about nans, so the machine's own is asked for by name.
#if defined(__AVX512F__)
// With no mask GCC warns of its own header.
template <class T> constexpr auto ALL_LANES = static_cast<std::conditional_t<sizeof(T) == 8, __mmask8, __mmask16>>(-1);
#define MORTICE_MACHINE(name, intrinsic, T, M) \
    INLINE vec<T> name(vec<T> a, vec<T> b) { return (vec<T>)_mm512_maskz_##intrinsic(ALL_LANES<T>, (M)a, (M)b); }
MORTICE_MACHINE(vmax, max_ps, float, __m512) MORTICE_MACHINE(vmin, min_ps, float, __m512)
MORTICE_MACHINE(vmax, max_pd, double, __m512d) MORTICE_MACHINE(vmin, min_pd, double, __m512d)
#elif defined(__AVX__)
#define MORTICE_MACHINE(name, intrinsic, T, M) \
    INLINE vec<T> name(vec<T> a, vec<T> b) { return (vec<T>)_mm256_##intrinsic((M)a, (M)b); }
MORTICE_MACHINE(vmax, max_ps, float, __m256) MORTICE_MACHINE(vmin, min_ps, float, __m256)
MORTICE_MACHINE(vmax, max_pd, double, __m256d) MORTICE_MACHINE(vmin, min_pd, double, __m256d)
#elif defined(__SSE2__)
#define MORTICE_MACHINE(name, intrinsic, T, M) \
    INLINE vec<T> name(vec<T> a, vec<T> b) { return (vec<T>)_mm_##intrinsic((M)a, (M)b); }
MORTICE_MACHINE(vmax, max_ps, float, __m128) MORTICE_MACHINE(vmin, min_ps, float, __m128)
MORTICE_MACHINE(vmax, max_pd, double, __m128d) MORTICE_MACHINE(vmin, min_pd, double, __m128d)
#endif
template <class V> INLINE V vmax(V a, V b) { return a > b ? a : b; }
template <class V> INLINE V vmin(V a, V b) { return a < b ? a : b; }

template <class T> INLINE T sum_lanes(vec<T> v) {
    T room[LANES<T>];
    store(room, v);
    for (int half = LANES<T> / 2; half; half /= 2)
        for (int i = 0; i < half; i++) room[i] += room[i + half];
    return room[0];
}
template <class T> INLINE T max_lanes(vec<T> v) {
    T room[LANES<T>];
    store(room, v);
    for (int half = LANES<T> / 2; half; half /= 2)
        for (int i = 0; i < half; i++) room[i] = room[i] > room[i + half] ? room[i] : room[i + half];
    return room[0];
}

}  // namespace mortice::ISA
