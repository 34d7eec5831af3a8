#include "families.hpp"

namespace mortice {

PyMethodDef loss_methods[] = {
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace mortice
