#include "reduce.hpp"
