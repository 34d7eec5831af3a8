#include "norm.hpp"
