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
#else
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
#endif

}  // namespace mortice
