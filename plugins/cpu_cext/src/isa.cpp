// Which instruction set this machine has.
#include "isa.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace mortice {

static Level detect() {
#if defined(MORTICE_ONLY)
    return MORTICE_ONLY_LEVEL;
#else
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
#endif
}

const Level found_level = detect();

#if !defined(MORTICE_ONLY)
void mix_tables(const void *const (&tables)[3], void *out, int count) {
    auto *to = static_cast<char *>(out);
    for (int i = 0; i < count; i++) {
        uint64_t word = 0;
        for (int level = cpu_level(); level >= 0 && !word; level--) memcpy(&word, static_cast<const char *>(tables[level]) + 8 * i, 8);
        memcpy(to + 8 * i, &word, 8);
    }
}
#endif

}  // namespace mortice
