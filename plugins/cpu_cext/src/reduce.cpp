#include "families.hpp"

namespace mortice {

PyMethodDef reduce_methods[] = {
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace mortice
