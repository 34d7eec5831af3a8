#include "binary.hpp"
