#pragma once
#include <stdint.h>

#include "../isa.hpp"

namespace mortice {

// The numbers of a step, computed in double as the rules in mortice.backends.optim compute them.
struct StepNumbers {
    double sign = 1;       // -1 to go uphill
    double decay = 0;      // weight decay that goes into the gradient; 0 for none
    double shrink = 1;     // what is left of the parameter before the step: decay of its own
    double length = 0;     // of the step
    double keep1 = 0, take1 = 0, keep2 = 0, take2 = 0;  // shares of averages
    double eps = 0;
    double divide = 1;     // what the second average, or its root, is divided by
    double length2 = 0;    // of a second step
    bool flag = false;     // nesterov, or the rectified step
    bool first = false;    // the first step, or an average that is just a copy
};

constexpr int MOST_OPERANDS = 5;  // parameters, gradients, and up to three of state
// Change operand 0, the parameter, and its state (operands 2 on; nullptr for what it has not) by the gradient, operand 1.
template <class T> using Step = void (*)(T *const *at, int64_t n, const StepNumbers &s);

template <class T> struct StepKernels {
    Step<T> sgd, asgd, adam, adamax, nadam, radam, rmsprop, adagrad, adadelta, rprop;
};
struct StepTable {
    StepKernels<float> f;
    StepKernels<double> d;
};
MORTICE_MODERN_NARROW_TABLE(StepTable, step_kernels)

}  // namespace mortice
