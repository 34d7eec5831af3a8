#include "families.hpp"

namespace mortice {

PyMethodDef rnn_methods[] = {
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace mortice
