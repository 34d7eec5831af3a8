// Sorting for other families.
#pragma once
#include "array.hpp"

namespace mortice {

// The stable order that sorts x along an axis, as int64; nan counts as the largest.
Ref order_of(Array &x, int axis, bool descending);

}  // namespace mortice
