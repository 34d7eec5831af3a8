// Memory of arrays and of kernels: blocks are kept when freed, since fresh pages cost more than most kernels.
#pragma once
#include <cstddef>
#include <cstdint>

namespace mortice {

constexpr size_t ALIGNMENT = 64;  // of every block: a cache line, and the widest vector

// Return a block of at least `bytes`, or nullptr when the system has none. Any thread may call, with or without the GIL.
void *memory_take(size_t bytes);
void memory_give(void *block);

struct MemoryStats {
    size_t allocated, peak_allocated, reserved, peak_reserved;  // bytes
};
MemoryStats memory_stats();
void memory_reset_peaks();
void memory_empty_cache();          // give what is unused back to the system
void memory_fail_after(int64_t n);  // for tests: the n-th request from now fails, and each one after; -1 for never

// memcpy itself. Of that the compiler makes an instruction where code is to be small, which takes tens of cycles to begin.
void copy_bytes(void *to, const void *from, size_t bytes);

// Room for a kernel's intermediate values; throws OutOfMemory (never inside parallel_for: make it before).
template <class T> class Scratch {
    T *at_;

  public:
    explicit Scratch(size_t count);
    ~Scratch() { memory_give(at_); }
    Scratch(const Scratch &) = delete;
    Scratch &operator=(const Scratch &) = delete;
    T *get() const { return at_; }
    operator T *() const { return at_; }
};

struct OutOfMemory {
    size_t bytes;  // that the system does not have
};
[[noreturn]] void out_of_memory(size_t bytes);

template <class T> Scratch<T>::Scratch(size_t count) {
    size_t bytes;
    if (__builtin_mul_overflow(count, sizeof(T), &bytes)) bytes = SIZE_MAX;  // which there is not
    at_ = static_cast<T *>(memory_take(bytes));
    if (!at_) out_of_memory(bytes);
}

}  // namespace mortice
