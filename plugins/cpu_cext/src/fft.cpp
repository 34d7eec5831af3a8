#include "families.hpp"

namespace mortice {

PyMethodDef fft_methods[] = {
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace mortice
