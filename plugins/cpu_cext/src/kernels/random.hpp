// Words of the Philox4x64-10 stream, and numbers made of them, each from one word: see core's backends/philox.py.
#pragma once
#include <stdint.h>

#include "../isa.hpp"

namespace mortice {

struct RandomTable {
    // Words offset to offset + n of the seed's stream; numbers made of them.
    void (*bits)(uint64_t seed, uint64_t offset, int64_t n, uint64_t *out);
    void (*uniform_f32)(uint64_t seed, uint64_t offset, int64_t n, float *out, int significant);
    void (*uniform_f64)(uint64_t seed, uint64_t offset, int64_t n, double *out);
    void (*normal_f32)(uint64_t seed, uint64_t offset, int64_t n, float *out);
    void (*normal_f64)(uint64_t seed, uint64_t offset, int64_t n, double *out);
    void (*exponential_f32)(uint64_t seed, uint64_t offset, int64_t n, float *out);
    void (*exponential_f64)(uint64_t seed, uint64_t offset, int64_t n, double *out);
    // low + floor(word * count / 2^64); a count of 0 stands for 2^64.
    void (*integers)(uint64_t seed, uint64_t offset, int64_t n, int64_t *out, uint64_t low, uint64_t count);
    // Whether a word is below `limit`; 0 is for none.
    void (*below)(uint64_t seed, uint64_t offset, int64_t n, uint8_t *out, uint64_t limit);
    // Whether the leading 53 bits of a word, as a fraction, are below p.
    void (*below_each)(uint64_t seed, uint64_t offset, int64_t n, uint8_t *out, const double *p);
    // How many terms of a distribution a number passes: the first is given, the next are told by the odds, and by the trials if any.
    void (*terms)(const double *number, const double *first, const double *odds, const double *trials, int64_t n, double *out);
};
MORTICE_TABLE(RandomTable, random_kernels)

// NORMAL_PIECES[c][i] is coefficient c, lowest first, of quantile / q on piece i of 1 - 4 q^2: pieces are halves of the intervals
// between powers of two, from 1 down to 2^-8.
extern const double NORMAL_PIECES[10][16];  // one table for all instruction sets

}  // namespace mortice
