// Kernels for several instruction sets: each file of kernels/ is compiled once for each, and the best is taken at load.
//
// A kernel file puts everything in `namespace mortice::ISA` and exports one table; its header declares the table with
// MORTICE_TABLE. Kernel files include no header of the C++ library whose inline functions the linker could share between
// instruction sets (<algorithm>, <vector>, <cmath> templates): only <cstdint>, <cstddef>, <math.h> and the __builtin_ ones.
#pragma once

namespace mortice {

enum Level { LEVEL_BASELINE, LEVEL_AVX2, LEVEL_AVX512 };
// The best level that this machine has, or the one named in MORTICE_ISA (baseline, avx2, avx512) if that is lower.
extern const Level found_level;
inline Level cpu_level() { return found_level; }

#if !defined(__x86_64__) && !defined(MORTICE_ONLY)
#define MORTICE_ONLY baseline
#define MORTICE_ONLY_LEVEL LEVEL_BASELINE
#endif

#if defined(MORTICE_ONLY)  // built for one instruction set: see meson.options
#define MORTICE_TABLE_OF(Type, name, isa)                                                                   \
    namespace isa { extern const Type name##_table; }                                                       \
    static inline const Type &name() { return isa::name##_table; }
#define MORTICE_TABLE_IN(Type, name, isa) MORTICE_TABLE_OF(Type, name, isa)
#define MORTICE_TABLE(Type, name) MORTICE_TABLE_IN(Type, name, MORTICE_ONLY)
#define MORTICE_BASELINE_TABLE MORTICE_TABLE
#define MORTICE_NARROW_TABLE MORTICE_TABLE
#define MORTICE_MIXED_TABLE MORTICE_TABLE
#define MORTICE_NARROW_MIXED_TABLE MORTICE_TABLE
#define MORTICE_MODERN_NARROW_TABLE MORTICE_TABLE
#define MORTICE_MODERN_MIXED_TABLE MORTICE_TABLE
static inline bool modern() { return true; }
#else
// Whether this machine has AVX2, without which there are no modern tables: machines of before 2013 take the default bodies.
static inline bool modern() { return cpu_level() >= LEVEL_AVX2; }
// What a mixed table may leave out: there is a version before it.
#if defined(__AVX512F__)
#define MORTICE_AFTER_AVX2
#endif
#if defined(__AVX2__)
#define MORTICE_AFTER_BASELINE
#endif
#define MORTICE_TABLE(Type, name)                                                                           \
    namespace baseline { extern const Type name##_table; }                                                  \
    namespace avx2 { extern const Type name##_table; }                                                      \
    namespace avx512 { extern const Type name##_table; }                                                    \
    static inline const Type &name() {                                                                      \
        static const Type *const all[] = {&baseline::name##_table, &avx2::name##_table, &avx512::name##_table}; \
        return *all[cpu_level()];                                                                           \
    }
// Of functions that are compiled once: rare ones, which need no vectors.
#define MORTICE_BASELINE_TABLE(Type, name)                                                                  \
    namespace baseline { extern const Type name##_table; }                                                  \
    static inline const Type &name() { return baseline::name##_table; }
// Of functions that gain nothing by AVX-512: their file is not compiled for that.
#define MORTICE_NARROW_TABLE(Type, name)                                                                    \
    namespace baseline { extern const Type name##_table; }                                                  \
    namespace avx2 { extern const Type name##_table; }                                                      \
    static inline const Type &name() {                                                                      \
        return cpu_level() >= LEVEL_AVX2 ? avx2::name##_table : baseline::name##_table;                     \
    }
// Of functions and int64_t. A version for a newer instruction set leaves out (as nullptr or 0) what gains nothing by it, or is
// rare: there that of the version before is taken.
#define MORTICE_MIXED_TABLE(Type, name)                                                                     \
    namespace baseline { extern const Type name##_table; }                                                  \
    namespace avx2 { extern const Type name##_table; }                                                      \
    namespace avx512 { extern const Type name##_table; }                                                    \
    inline const Type &name() {                                                                             \
        static const MixedTable<Type> mixed(baseline::name##_table, avx2::name##_table, avx512::name##_table); \
        return mixed.table;                                                                                 \
    }
#define MORTICE_NARROW_MIXED_TABLE(Type, name)                                                              \
    namespace baseline { extern const Type name##_table; }                                                  \
    namespace avx2 { extern const Type name##_table; }                                                      \
    inline const Type &name() {                                                                             \
        static const MixedTable<Type> mixed(baseline::name##_table, avx2::name##_table, avx2::name##_table); \
        return mixed.table;                                                                                 \
    }
// The last two without a version for the baseline: of kernels that are offered only where `modern()`.
#define MORTICE_MODERN_NARROW_TABLE(Type, name)                                                             \
    namespace avx2 { extern const Type name##_table; }                                                      \
    static inline const Type &name() { return avx2::name##_table; }
#define MORTICE_MODERN_MIXED_TABLE(Type, name)                                                              \
    namespace avx2 { extern const Type name##_table; }                                                      \
    namespace avx512 { extern const Type name##_table; }                                                    \
    inline const Type &name() {                                                                             \
        static const MixedTable<Type> mixed(avx2::name##_table, avx2::name##_table, avx512::name##_table);  \
        return mixed.table;                                                                                 \
    }
// For each of `count` words, that of the last table up to this machine's level in which it is not 0.
void mix_tables(const void *const (&tables)[3], void *out, int count);
template <class T> union MixedTable {
    T table;
    MixedTable(const T &baseline, const T &avx2, const T &avx512) {
        static_assert(sizeof(T) % 8 == 0 && sizeof(void (*)()) == 8);
        mix_tables({&baseline, &avx2, &avx512}, &table, sizeof(T) / 8);
    }
};
#endif
// An entry of a mixed table that only kernels use which are offered where `modern()`.
#if defined(MORTICE_ONLY) || defined(__AVX2__)
constexpr bool FOR_MODERN = true;
#define MORTICE_MODERN(...) __VA_ARGS__
#else
constexpr bool FOR_MODERN = false;
#define MORTICE_MODERN(...) {}
#endif
// An entry of a mixed table that AVX-512 leaves out: networks in double are rare.
#if defined(MORTICE_AFTER_AVX2)
#define MORTICE_UP_TO_AVX2(...) {}
#else
#define MORTICE_UP_TO_AVX2(...) __VA_ARGS__
#endif

}  // namespace mortice
