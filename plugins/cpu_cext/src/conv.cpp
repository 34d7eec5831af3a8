#include "families.hpp"

namespace mortice {

PyMethodDef conv_methods[] = {
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace mortice
