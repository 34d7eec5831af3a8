#include "families.hpp"

namespace mortice {

PyMethodDef norm_methods[] = {
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace mortice
