#include "unary.hpp"
