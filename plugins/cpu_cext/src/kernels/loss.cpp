#include "loss.hpp"
