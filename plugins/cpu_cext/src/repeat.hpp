// Broadcasting with short runs: rows, columns and channels of few elements, which are repeated in memory first, so that
// inner loops see long lines. For outputs that are row-major.
#pragma once
#include "loop.hpp"

namespace mortice {

// Of what the element at place i of the output needs: element (i / run) % count of row-major memory.
struct Repeated {
    const char *data;
    int64_t run, count;
    int size;  // of an element; 0 of a number, which stands still
};

// Describe an input of the broadcast shape; false where it is not of this kind.
bool repeated(const Array &x, int ndim, const int64_t *shape, Repeated &r);
bool repeated_number(const char *element, Repeated &r);
// Whether repeating pays: there are short runs, and no long ones that would have to be copied.
bool worth_repeating(const Repeated *in, int count, int64_t total);
void run_repeated(Array &out, const Repeated *in, int count, Inner inner, const void *extra, float cost);

}  // namespace mortice
