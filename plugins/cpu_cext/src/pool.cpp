#include "families.hpp"

namespace mortice {

PyMethodDef pool_methods[] = {
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace mortice
