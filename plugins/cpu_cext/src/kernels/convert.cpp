#include "convert.hpp"
