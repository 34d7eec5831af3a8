#include "families.hpp"

namespace mortice {

const Method convert_methods[] = {
    {},
};

}  // namespace mortice
