// One pool of threads for everything, BLAS included. The calling thread works too.
#pragma once
#include <cstdint>
#include <type_traits>

namespace mortice {

int num_threads();
void set_num_threads(int n);
// The number of the running thread inside parallel_for: 0 is the caller, below num_threads(). For room of one's own.
int thread_number();
bool in_parallel();

using Part = void (*)(void *context, int64_t begin, int64_t end);
void parallel_run(int64_t n, int64_t grain, Part part, void *context);

// Call body(begin, end) for parts of [0, n) that cover it once, on several threads; return when all are done.
// A part has at least `grain` elements: choose it such that one takes 20 us or more. Inside another parallel_for, or when
// n <= grain, the body runs here and at once. The body must not touch Python, throw, or allocate. When Ctrl-C interrupts it
// (only where the GIL was let go, see Unlocked), Failed is thrown and parts are left undone.
// Of every body there is one copy, called through a pointer also where it runs here.
template <class F> inline __attribute__((always_inline)) void parallel_for(int64_t n, int64_t grain, F &&body) {
    using Body = std::remove_reference_t<F>;
    parallel_run(
        n, grain, [](void *f, int64_t begin, int64_t end) { (*static_cast<Body *>(f))(begin, end); },
        const_cast<void *>(static_cast<const void *>(&body)));
}

}  // namespace mortice
