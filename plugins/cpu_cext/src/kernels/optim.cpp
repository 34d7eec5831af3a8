#include "optim.hpp"
