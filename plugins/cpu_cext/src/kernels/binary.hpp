// Elementwise kernels of two to four operands.
#pragma once
#include <stdint.h>

#include "../dtype.hpp"
#include "../isa.hpp"

namespace mortice {

using Inner = void (*)(char *const *at, const int64_t *step, int64_t n, const void *extra);

enum BinaryOp : uint8_t {
    // binary.cpp
    ADD, SUBTRACT, MULTIPLY, DIVIDE, MAXIMUM, MINIMUM, BITWISE_AND, BITWISE_OR, BITWISE_XOR, SHIFT_LEFT, SHIFT_RIGHT, COPYSIGN,
    RDIVIDE,
    EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, LOGICAL_AND, LOGICAL_OR, LOGICAL_XOR, COMPLEX,
    BINARY_OPS,
    // binary_math.cpp
    FLOOR_DIVIDE = BINARY_OPS, REMAINDER, FMOD, POW, HYPOT, ATAN2, LOGADDEXP, LOGADDEXP2, NEXTAFTER, GCD, LCM, FLOORDIV,
    ALL_BINARY_OPS
};

// An inner loop for each dtype of the inputs, nullptr where there is none. Halves have few: the caller brings them to float
// by blocks. The output must not be one of the inputs.
struct BinaryTable {
    Inner two[BINARY_OPS][DTYPES];
    Inner where[5];        // by the logarithm of the item size: bool, then two of that size
    Inner clip[DTYPES];    // x, lower, upper; of integers only int64
    Inner lerp[DTYPES];    // start, end, weight
    Inner addcmul[DTYPES], addcdiv[DTYPES];  // x, a, b, value
};
MORTICE_NARROW_MIXED_TABLE(BinaryTable, binary)

struct BinaryMathTable { Inner two[ALL_BINARY_OPS - BINARY_OPS][DTYPES]; };
MORTICE_MIXED_TABLE(BinaryMathTable, binary_math)

}  // namespace mortice
