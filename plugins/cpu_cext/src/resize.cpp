#include "families.hpp"

namespace mortice {

PyMethodDef resize_methods[] = {
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace mortice
