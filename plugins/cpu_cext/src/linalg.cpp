#include "families.hpp"

namespace mortice {

PyMethodDef linalg_methods[] = {
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace mortice
