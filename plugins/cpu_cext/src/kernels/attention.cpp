#include "attention.hpp"
