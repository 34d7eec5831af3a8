#include "families.hpp"

namespace mortice {

PyMethodDef attention_methods[] = {
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace mortice
