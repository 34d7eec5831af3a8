// The families of kernels: each file has one method table; the name of a method is the name of the kernel that it is.
//
// A kernel that serves only some dtypes or shapes is named `partial_<kernel>` and returns NotImplemented for the rest,
// which the default body then takes. Names with a leading underscore are for the Python side of the plugin.
#pragma once
#include "call.hpp"

namespace mortice {

#define MORTICE_FAMILIES(F)                                                                                 \
    F(creation) F(movement) F(host) F(loop) F(unary) F(binary) F(convert) F(reduce) F(scan) F(matmul) F(linalg) F(resize)   \
    F(index) F(sort) F(random) F(twister)
// Those that call modern tables (isa.hpp), and are offered only where the machine has them.
#define MORTICE_MODERN_FAMILIES(F)                                                                           \
    F(activation) F(spread) F(norm) F(loss) F(conv) F(pool) F(sample) F(attention) F(rnn) F(optim) F(fft)

#define MORTICE_DECLARE(name) extern const Method name##_methods[];
MORTICE_FAMILIES(MORTICE_DECLARE)
MORTICE_MODERN_FAMILIES(MORTICE_DECLARE)
#undef MORTICE_DECLARE

}  // namespace mortice
