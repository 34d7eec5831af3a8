#include "families.hpp"

namespace mortice {

PyMethodDef binary_methods[] = {
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace mortice
