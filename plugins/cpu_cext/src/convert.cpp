#include "families.hpp"

namespace mortice {

PyMethodDef convert_methods[] = {
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace mortice
