#include "matmul.hpp"
