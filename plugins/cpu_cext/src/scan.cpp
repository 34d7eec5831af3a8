#include "families.hpp"

namespace mortice {

PyMethodDef scan_methods[] = {
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace mortice
