#include "families.hpp"

namespace mortice {

PyMethodDef index_methods[] = {
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace mortice
