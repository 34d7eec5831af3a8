#include "families.hpp"

namespace mortice {

PyMethodDef optim_methods[] = {
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace mortice
