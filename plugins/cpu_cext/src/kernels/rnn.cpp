#include "rnn.hpp"
