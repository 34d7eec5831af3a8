// Copying a matrix whose rows are the columns of another: by small squares in registers.
#pragma once
#include <cstdint>

#include "../isa.hpp"

namespace mortice {

// to[i][j] = from[j][i] for i < rows, j < columns; rows of both lie `stride` bytes apart, elements side by side.
using Transpose = void (*)(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t rows, int64_t columns);

struct TransposeTable {
    Transpose bytes1, bytes4, bytes8;
};
MORTICE_NARROW_TABLE(TransposeTable, transpose)

}  // namespace mortice
