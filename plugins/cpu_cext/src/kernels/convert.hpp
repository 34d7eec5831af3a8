// Converting elements between dtypes, and copying them.
#pragma once
#include <stdint.h>

#include "../dtype.hpp"
#include "../isa.hpp"

namespace mortice {

using Inner = void (*)(char *const *at, const int64_t *step, int64_t n, const void *extra);

// inner[from][to]: operand 0 is of dtype `to`, operand 1 of dtype `from`. Equal dtypes are copied bit by bit.
// ramp: start + (first + i * by) * step, rounded once, for n numbers. ramps: from each of the firsts as many as there are lanes.
struct ConvertTable {
    Inner inner[DTYPES][DTYPES];
    void (*ramp)(double start, double step, int64_t first, int64_t by, int64_t n, double *to);
    void (*ramps)(const double *firsts, double step, int64_t groups, int64_t lanes, double *to);
};
MORTICE_MIXED_TABLE(ConvertTable, convert)

}  // namespace mortice
