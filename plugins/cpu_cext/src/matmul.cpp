#include "families.hpp"

namespace mortice {

PyMethodDef matmul_methods[] = {
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace mortice
