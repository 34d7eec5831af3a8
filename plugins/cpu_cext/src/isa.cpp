// Which instruction set this machine has.
#include "isa.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#if !defined(MORTICE_ONLY)
#include <cpuid.h>
#endif

namespace mortice {

static Level detect() {
#if defined(MORTICE_ONLY)
    return MORTICE_ONLY_LEVEL;
#else
    // Asked of the processor: the compiler's own question brings 5 KB of other answers. The system must keep the registers too.
    constexpr unsigned plain = bit_OSXSAVE | bit_AVX | bit_FMA | bit_F16C | bit_POPCNT, avx2 = bit_AVX2 | bit_BMI | bit_BMI2;
    constexpr unsigned avx512 = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
    unsigned a, b, c, d, found, kept;
    Level best = LEVEL_BASELINE;
    if (__get_cpuid_count(7, 0, &a, &found, &c, &d) && __get_cpuid(1, &a, &b, &c, &d) && (c & plain) == plain) {
        __asm__("xgetbv" : "=a"(kept), "=d"(d) : "c"(0));
        if ((found & avx2) == avx2 && (kept & 0x06) == 0x06)
            best = (found & avx512) == avx512 && (kept & 0xe6) == 0xe6 ? LEVEL_AVX512 : LEVEL_AVX2;
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
