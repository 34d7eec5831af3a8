// Which instruction set this machine has.
#include "isa.hpp"

#include <cstdlib>
#include <cstring>

namespace mortice {

static Level detect() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    Level best = LEVEL_BASELINE;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) {
        best = LEVEL_AVX2;
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512vl"))
            best = LEVEL_AVX512;
    }
    const char *wanted = getenv("MORTICE_ISA");
    if (wanted && !strcmp(wanted, "baseline")) return LEVEL_BASELINE;
    if (wanted && !strcmp(wanted, "avx2") && best > LEVEL_AVX2) return LEVEL_AVX2;
    return best;
#else
    return LEVEL_BASELINE;
#endif
}

Level cpu_level() {
    static const Level level = detect();
    return level;
}

void mix_functions(const void *first, const void *second, void (**out)(), int count) {
    memcpy(out, first, static_cast<size_t>(count) * sizeof *out);
    for (int i = 0; i < count; i++)
        if (!out[i]) memcpy(out + i, static_cast<const char *>(second) + static_cast<size_t>(i) * sizeof *out, sizeof *out);
}

}  // namespace mortice
