#include "resize.hpp"
