#include "conv.hpp"
