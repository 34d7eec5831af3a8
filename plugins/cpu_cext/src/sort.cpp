#include "families.hpp"

namespace mortice {

PyMethodDef sort_methods[] = {
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace mortice
