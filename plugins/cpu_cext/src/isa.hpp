// Kernels for several instruction sets: each file of kernels/ is compiled once for each, and the best is taken at load.
//
// A kernel file puts everything in `namespace mortice::ISA` and exports one table; its header declares the table with
// MORTICE_TABLE. Kernel files include no header of the C++ library whose inline functions the linker could share between
// instruction sets (<algorithm>, <vector>, <cmath> templates): only <cstdint>, <cstddef>, <math.h> and the __builtin_ ones.
#pragma once

namespace mortice {

enum Level { LEVEL_BASELINE, LEVEL_AVX2, LEVEL_AVX512 };
// The best level that this machine has, or the one named in MORTICE_ISA (baseline, avx2, avx512) if that is lower.
Level cpu_level();

#if defined(__x86_64__)
#define MORTICE_TABLE(Type, name)                                                                           \
    namespace baseline { extern const Type name##_table; }                                                  \
    namespace avx2 { extern const Type name##_table; }                                                      \
    namespace avx512 { extern const Type name##_table; }                                                    \
    static inline const Type &name() {                                                                      \
        static const Type *const chosen = cpu_level() == LEVEL_AVX512 ? &avx512::name##_table               \
                                          : cpu_level() == LEVEL_AVX2 ? &avx2::name##_table                 \
                                                                      : &baseline::name##_table;            \
        return *chosen;                                                                                     \
    }
// Of functions that gain nothing by AVX-512: their file is not compiled for that.
#define MORTICE_NARROW_TABLE(Type, name)                                                                    \
    namespace baseline { extern const Type name##_table; }                                                  \
    namespace avx2 { extern const Type name##_table; }                                                      \
    static inline const Type &name() {                                                                      \
        static const Type *const chosen = cpu_level() >= LEVEL_AVX2 ? &avx2::name##_table : &baseline::name##_table; \
        return *chosen;                                                                                     \
    }
// Of functions and nothing else, some of which gain nothing by AVX-512: those are nullptr there, and AVX2's are taken.
#define MORTICE_MIXED_TABLE(Type, name)                                                                     \
    namespace baseline { extern const Type name##_table; }                                                  \
    namespace avx2 { extern const Type name##_table; }                                                      \
    namespace avx512 { extern const Type name##_table; }                                                    \
    inline const Type &name() {                                                                             \
        static MixedTable<Type> mixed;                                                                      \
        static const Type *const chosen =                                                                   \
            cpu_level() == LEVEL_AVX512 ? mix_tables(&avx512::name##_table, &avx2::name##_table, &mixed)    \
            : cpu_level() == LEVEL_AVX2 ? &avx2::name##_table                                               \
                                        : &baseline::name##_table;                                          \
        return *chosen;                                                                                     \
    }
template <class T> union MixedTable {
    void (*functions[sizeof(T) / sizeof(void (*)())])();
    T table;
};
// Make a table of the first one's functions, and of the second one's where it has none.
void mix_functions(const void *first, const void *second, void (**out)(), int count);
template <class T> const T *mix_tables(const T *first, const T *second, MixedTable<T> *out) {
    static_assert(sizeof(T) % sizeof out->functions[0] == 0);
    mix_functions(first, second, out->functions, sizeof(T) / sizeof out->functions[0]);
    return &out->table;
}
#else
#define MORTICE_TABLE(Type, name)                                                                           \
    namespace baseline { extern const Type name##_table; }                                                  \
    static inline const Type &name() { return baseline::name##_table; }
#define MORTICE_NARROW_TABLE MORTICE_TABLE
#define MORTICE_MIXED_TABLE MORTICE_TABLE
#endif

}  // namespace mortice
