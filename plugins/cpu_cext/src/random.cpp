#include "families.hpp"

namespace mortice {

PyMethodDef random_methods[] = {
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace mortice
