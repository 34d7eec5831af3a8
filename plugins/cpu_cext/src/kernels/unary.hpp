// Functions of one array, and gradients of activations, which take two.
#pragma once
#include <stdint.h>

#include "../dtype.hpp"
#include "../isa.hpp"

namespace mortice {

// Functions of real numbers with a real result of the same dtype.
enum Map : int {
    MAP_EXP, MAP_EXP2, MAP_EXPM1, MAP_LOG, MAP_LOG2, MAP_LOG10, MAP_LOG1P, MAP_SIGMOID, MAP_TANH, MAP_SINH, MAP_COSH,
    MAP_ASINH, MAP_ACOSH, MAP_ATANH, MAP_SIN, MAP_COS, MAP_TAN, MAP_ASIN, MAP_ACOS, MAP_ATAN, MAP_ERF, MAP_ERFC, MAP_ERFCX,
    MAP_ERFINV, MAP_LGAMMA, MAP_DIGAMMA, MAP_SQRT, MAP_RSQRT, MAP_RECIPROCAL, MAP_SQUARE, MAP_NEGATIVE, MAP_ABS, MAP_SIGN,
    MAP_FLOOR, MAP_CEIL, MAP_TRUNC, MAP_ROUND, MAP_ROUND_SCALED, MAP_ROUND_DIVIDED, MAP_ANGLE, MAP_NAN_TO_NUM, MAP_RELU,
    MAP_SILU, MAP_GELU, MAP_GELU_TANH, MAP_SOFTPLUS, MAP_LOGSIGMOID, MAP_MISH, MAP_LEAKY_RELU, MAP_ELU, MAP_HARDSIGMOID,
    MAP_HARDSWISH, MAP_HARDSHRINK, MAP_SOFTSHRINK, MAPS
};

// Gradients: of g and of the input or the result.
enum Slope : int {
    SLOPE_RELU, SLOPE_SIGMOID, SLOPE_TANH, SLOPE_SILU, SLOPE_GELU, SLOPE_GELU_TANH, SLOPE_SOFTPLUS, SLOPE_LOGSIGMOID,
    SLOPE_MISH, SLOPE_LEAKY_RELU, SLOPE_ELU, SLOPE_HARDTANH, SLOPE_HARDSIGMOID, SLOPE_HARDSWISH, SLOPES
};

// One function over n numbers in a row; y is there for gradients only, and `numbers` are the attributes.
using Block = void (*)(const void *x, const void *y, void *out, int64_t n, const double *numbers);
// What an inner loop gets as its extra.
struct Applied {
    Block block;
    double numbers[3];
    Block direct;  // the same for half precision in a row, or nullptr
};
using UnaryLoop = void (*)(char *const *at, const int64_t *step, int64_t n, const void *extra);

struct UnaryTable {
    Block map32[MAPS], map64[MAPS], slope32[SLOPES], slope64[SLOPES];
    Block direct[2][MAPS];  // for float16 and bfloat16: functions of the sign, which skip the blocks
    UnaryLoop dropout[6];  // x times a number (a double, the extra) where a byte is not 0, else times 0; float16 to complex128
    UnaryLoop one[4], two[4];  // inner loops for float16, bfloat16, float32, float64: of one operand and of two
};
MORTICE_MIXED_TABLE(UnaryTable, unary)

// Tests, of every dtype, with a bool result.
enum Test : int { TEST_NOT, TEST_NAN, TEST_INF, TEST_FINITE, TEST_SIGN, TESTS };
// Functions of integers.
enum Whole : int { WHOLE_NEGATIVE, WHOLE_ABS, WHOLE_SIGN, WHOLE_SQUARE, WHOLE_INVERT, WHOLE_RELU, WHOLES };

struct PlainTable {
    UnaryLoop test[TESTS][15];   // by dtype
    UnaryLoop whole[WHOLES][9];  // by dtype, bool to int64
};
MORTICE_NARROW_MIXED_TABLE(PlainTable, plain)

// Functions of complex numbers; all but those after COMPLEX_REAL have complex results.
enum Complex : int {
    COMPLEX_EXP, COMPLEX_EXP2, COMPLEX_EXPM1, COMPLEX_LOG, COMPLEX_LOG2, COMPLEX_LOG10, COMPLEX_LOG1P, COMPLEX_SQRT,
    COMPLEX_RSQRT, COMPLEX_SIN, COMPLEX_COS, COMPLEX_TAN, COMPLEX_ASIN, COMPLEX_ACOS, COMPLEX_ATAN, COMPLEX_SINH,
    COMPLEX_COSH, COMPLEX_TANH, COMPLEX_ASINH, COMPLEX_ACOSH, COMPLEX_ATANH, COMPLEX_SIGMOID, COMPLEX_SILU,
    COMPLEX_RECIPROCAL, COMPLEX_SQUARE, COMPLEX_NEGATIVE, COMPLEX_CONJ, COMPLEX_SGN, COMPLEX_REAL,
    COMPLEX_ABS = COMPLEX_REAL, COMPLEX_ANGLE, COMPLEXES, COMPLEX_NONE = COMPLEXES
};
struct ComplexTable {
    UnaryLoop loop[COMPLEXES][2];  // complex64, complex128
    UnaryLoop slope[SLOPE_GELU][2];
};
MORTICE_BASELINE_TABLE(ComplexTable, complex_unary)

}  // namespace mortice
