// Walking several arrays at once: broadcasting, any strides, axes merged where they can be, parts on several threads.
#pragma once
#include "array.hpp"
#include "call.hpp"

namespace mortice {

// An inner loop: n elements; operand i is at at[i] and moves by step[i] bytes. at[0] is the output.
// Contiguous operands have step == itemsize; one that is repeated (broadcast, a number) has step 0.
using Inner = void (*)(char *const *at, const int64_t *step, int64_t n, const void *extra);

constexpr int MAX_OPERANDS = 6;

struct Operand {
    char *data;
    const int64_t *strides;  // in elements, aligned to the last axes; nullptr for one element
    int ndim;
    int itemsize;
    const int64_t *shape;    // its own sizes, to see where it is broadcast
};
inline Operand operand(const Array &x) { return {x.data, x.strides(), x.ndim, x.itemsize(), x.shape()}; }
inline Operand operand(const Scalar &s, DType d) {
    return {const_cast<char *>(s.bytes), nullptr, 0, ITEMSIZE[d], nullptr};
}

// Run `inner` over all elements of the shape. `cost` is about the nanoseconds an element takes (1 for an addition); it
// decides how many threads are worth it.
void walk(int ndim, const int64_t *shape, const Operand *operands, int count, Inner inner, const void *extra = nullptr,
          float cost = 1);

// The `extra` of inner loops that only copy elements as they are: where an operand lies across, squares are copied instead.
extern const char PLAIN_COPY;

// The shape of operands broadcast together, into `shape`; returns ndim. Throws a ValueError where they do not fit.
int broadcast_shapes(const Array *const *xs, int count, int64_t *shape);

// ---- results in memory that is there ----

// Whether `into` runs on any thread: there is nothing to ask otherwise.
extern int into_calls;

// An array to hold the result of an elementwise kernel over row-major arrays of x's shape: a new one, or within `into` the
// one that was given, where that serves and operands lie in it at the same elements or not at all. `over` says that one does.
Ref result_like(const Array &x, DType to, const Array *const *xs, int count, bool &over);
// The same for operands that are broadcast to that shape; a new one is laid out as they are where they agree.
Ref result_of(int ndim, const int64_t *shape, DType to, const Array *const *xs, int count, bool &over);
// x itself, to be written into, where `into` was given that and the operands lie elsewhere; else an empty reference.
Ref result_over(Array &x, std::initializer_list<const Array *> operands);
// While it lives results are new arrays, also within `into`: for kernels of several steps.
class Alone {
    Array *kept_;

  public:
    Alone();
    ~Alone();
};
// The inner loop, with this as its `extra`, of a line whose output lies where an operand does. Inner loops go back a few
// elements for a last vector that is not whole, so that part is written beside it first.
struct Over {
    Inner inner;
    const void *extra;
    int count, itemsize;  // of operands, the output among them; of the output
};
void inner_over(char *const *at, const int64_t *step, int64_t n, const void *over);

// One output of dtype `to` from arrays `xs`, broadcast; laid out as they are where they agree.
Ref map(const Array *const *xs, int count, DType to, Inner inner, const void *extra = nullptr, float cost = 1);

}  // namespace mortice
