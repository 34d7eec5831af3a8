#pragma once
#include "../isa.hpp"
