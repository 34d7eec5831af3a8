#include "sort.hpp"
