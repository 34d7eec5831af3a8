#include "families.hpp"

namespace mortice {

PyMethodDef unary_methods[] = {
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace mortice
