// Converting elements between dtypes, and copying them.
#pragma once
#include <stdint.h>

#include "../dtype.hpp"
#include "../isa.hpp"

namespace mortice {

using Inner = void (*)(char *const *at, const int64_t *step, int64_t n, const void *extra);

// inner[from][to]: operand 0 is of dtype `to`, operand 1 of dtype `from`. Equal dtypes are copied bit by bit.
struct ConvertTable { Inner inner[DTYPES][DTYPES]; };
MORTICE_MIXED_TABLE(ConvertTable, convert)

}  // namespace mortice
