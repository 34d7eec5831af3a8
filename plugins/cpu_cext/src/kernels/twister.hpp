// Words of MT19937, and PyTorch's normal numbers of them: see core's backends/mt19937.py.
#pragma once
#include <stdint.h>

#include "../isa.hpp"

namespace mortice {

struct TwisterTable {
    // The next 624 words of a state in place of its last; words as they are given out.
    void (*twist)(uint32_t *words);
    void (*temper)(const uint32_t *words, int64_t n, uint32_t *out);
    // Uniform numbers of 24 bits of a word, of 53 bits of two, of which the first is the upper half, from `low` on.
    void (*uniform_f32)(const uint32_t *words, int64_t n, float *out, float low, float range);
    void (*uniform_f64)(const uint32_t *words, int64_t n, double *out, double low, double range);
    // Blocks of 16 uniform numbers as 16 normal ones, equal to those that PyTorch makes of them with AVX2.
    void (*normal_blocks)(float *numbers, int64_t blocks);
};
MORTICE_NARROW_TABLE(TwisterTable, twister_kernels)

}  // namespace mortice
