// The allocator: blocks cut from large segments by size class (two-level segregated fit), merged again when freed.
//
// A freed block stays for the next request: pages that the system hands out anew have to be cleared and mapped first, which
// costs several times what a kernel does with them. Segments that are wholly unused go back on `memory_empty_cache`, when the
// system refuses more, and when what is kept would outgrow by far what was ever needed at once.
#include "memory.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>

#if defined(__SANITIZE_ADDRESS__)
#define MORTICE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MORTICE_ASAN 1
#endif
#endif

namespace mortice {

namespace {

constexpr size_t PAGE = size_t{2} << 20;      // a huge page, the grain of segments
constexpr size_t SEGMENT = size_t{8} << 20;   // the least segment
constexpr size_t SLACK = size_t{64} << 20;    // how far reserved memory may always exceed the peak
constexpr double SLOW_FAULT = 1e-3;           // seconds: clearing a huge page takes a few tenths of one thousandth
constexpr double HOST_FAULT = 6e-3;           // the same where the host of a virtual machine has to find memory for it
constexpr int FINE = 4;                       // 2^FINE classes for each power of two
constexpr int CLASSES = (64 - 6) << FINE;

struct Segment;

struct alignas(ALIGNMENT) Block {
    size_t size;        // with this header
    Block *before;      // its neighbour in the segment, nullptr for the first
    Segment *segment;
    Block *next, *previous;  // in the list of its class, while free
    bool free, last;
};
static_assert(sizeof(Block) == ALIGNMENT);

struct Segment {
    size_t size;
    Segment *next, *previous;
};

struct Allocator {
    std::mutex mutex;
    Block *lists[CLASSES] = {};
    uint64_t rows = 0;               // which powers of two have a free block
    uint32_t columns[64] = {};       // which classes of them
    Segment *segments = nullptr;     // the newest first
    MemoryStats stats = {};
    int64_t small = 1;               // how many more segments get small pages: a first short one, for a quick start
    int64_t patience = 8;            // how many will after a slow fault, each time eight times as many
    bool keep;
    std::atomic<int64_t> fail_in{-1};

    Allocator() {
        const char *setting = getenv("MORTICE_KEEP_MEMORY");
        keep = !(setting && !strcmp(setting, "0"));
    }
};

Allocator &the() {
    static Allocator *one = [] {
        auto *made = new Allocator;  // never destroyed: arrays may outlive static objects
        // A child of fork finds the allocator whole.
        static Allocator *self = made;
        pthread_atfork([] { self->mutex.lock(); }, [] { self->mutex.unlock(); }, [] { self->mutex.unlock(); });
        return made;
    }();
    return *one;
}

int row_of(size_t size) { return 63 - __builtin_clzll(size); }

int class_of(size_t size) {
    int row = row_of(size);
    return ((row - 6) << FINE) + static_cast<int>((size >> (row - FINE)) & ((1 << FINE) - 1));
}

void link(Allocator &a, Block *b) {
    int c = class_of(b->size);
    b->free = true;
    b->previous = nullptr;
    b->next = a.lists[c];
    if (b->next) b->next->previous = b;
    a.lists[c] = b;
    a.columns[c >> FINE] |= 1u << (c & ((1 << FINE) - 1));
    a.rows |= uint64_t{1} << (c >> FINE);
}

void unlink(Allocator &a, Block *b) {
    int c = class_of(b->size);
    b->free = false;
    if (b->next) b->next->previous = b->previous;
    if (b->previous) {
        b->previous->next = b->next;
        return;
    }
    a.lists[c] = b->next;
    if (!a.lists[c]) {
        a.columns[c >> FINE] &= ~(1u << (c & ((1 << FINE) - 1)));
        if (!a.columns[c >> FINE]) a.rows &= ~(uint64_t{1} << (c >> FINE));
    }
}

// A free block of at least that size: of the request's own class the first that fits, else any of the next class up.
Block *find(Allocator &a, size_t size) {
    int c = class_of(size);
    for (Block *b = a.lists[c]; b; b = b->next)
        if (b->size >= size) return b;
    int row = c >> FINE;
    uint32_t right = a.columns[row] & ~((2u << (c & ((1 << FINE) - 1))) - 1);
    if (!right) {
        uint64_t above = row == 63 ? 0 : a.rows & ~((uint64_t{2} << row) - 1);
        if (!above) return nullptr;
        row = __builtin_ctzll(above);
        right = a.columns[row];
    }
    return a.lists[(row << FINE) + __builtin_ctz(right)];
}

Block *first_of(Segment *s) { return reinterpret_cast<Block *>(reinterpret_cast<char *>(s) + ALIGNMENT); }
Block *after(Block *b) { return b->last ? nullptr : reinterpret_cast<Block *>(reinterpret_cast<char *>(b) + b->size); }

double own_time() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

Block *grow(Allocator &a, size_t size) {
    size_t bytes = (size + ALIGNMENT + PAGE - 1) / PAGE * PAGE;
    if (bytes < size) return nullptr;
    if (bytes < SEGMENT) bytes = SEGMENT;
    // Not MAP_NORESERVE: the system is to refuse what it cannot have, rather than kill whoever fills it.
    void *at = mmap(nullptr, bytes + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return nullptr;
    // Cut to the alignment of huge pages.
    auto start = reinterpret_cast<uintptr_t>(at), aligned = (start + PAGE - 1) / PAGE * PAGE;
    if (aligned > start) munmap(at, aligned - start);
    if (size_t tail = start + PAGE - aligned) munmap(reinterpret_cast<void *>(aligned + bytes), tail);
    auto *s = reinterpret_cast<Segment *>(aligned);
#ifdef MADV_HUGEPAGE
    // Huge pages spare faults, and reading them is a third faster. Where memory is in pieces the system moves pages about
    // for each of them, for milliseconds and often in vain: the first fault shows it, and small pages serve then.
    if (a.small > 1 || (a.small && bytes == SEGMENT)) {
        a.small--;
    } else {
        madvise(s, bytes, MADV_HUGEPAGE);
        double before = own_time();
        *static_cast<volatile size_t *>(&s->size) = bytes;
        const double taken = own_time() - before;
        unsigned char next_too = 0;  // whether there is the page's second part, which has not been touched
        const bool vain = taken > SLOW_FAULT && (mincore(reinterpret_cast<char *>(s) + PAGE / 2, 1, &next_too) || !(next_too & 1));
        if (vain || taken > HOST_FAULT) {
            madvise(s, bytes, MADV_NOHUGEPAGE);
            a.small = a.patience *= 8;
        }
    }
#endif
    s->size = bytes;
    s->previous = nullptr;
    s->next = a.segments;
    if (s->next) s->next->previous = s;
    a.segments = s;
    Block *b = first_of(s);
    *b = Block{bytes - ALIGNMENT, nullptr, s, nullptr, nullptr, false, true};
    a.stats.reserved += bytes;
    if (a.stats.reserved > a.stats.peak_reserved) a.stats.peak_reserved = a.stats.reserved;
    return b;
}

void drop(Allocator &a, Segment *s) {
    if (s->next) s->next->previous = s->previous;
    (s->previous ? s->previous->next : a.segments) = s->next;
    a.stats.reserved -= s->size;
    munmap(s, s->size);
}

// Give unused segments back until `wanted` bytes are; the oldest are at the end of the list, any will do.
void release(Allocator &a, size_t wanted) {
    size_t given = 0;
    for (Segment *s = a.segments, *next; s && given < wanted; s = next) {
        next = s->next;
        Block *b = first_of(s);
        if (!b->free || !b->last) continue;
        unlink(a, b);
        given += s->size;
        drop(a, s);
    }
}

[[maybe_unused]] Block *take(Allocator &a, size_t size) {
    Block *b = find(a, size);
    if (b) {
        unlink(a, b);
    } else {
        size_t limit = a.stats.peak_allocated + a.stats.peak_allocated / 4 + SLACK;
        if (a.stats.reserved + size > limit) release(a, a.stats.reserved + size - limit);
        b = grow(a, size);
        if (!b) {
            release(a, SIZE_MAX);
            b = grow(a, size);
        }
        if (!b) return nullptr;
    }
    if (b->size >= size + 2 * ALIGNMENT) {
        auto *rest = reinterpret_cast<Block *>(reinterpret_cast<char *>(b) + size);
        *rest = Block{b->size - size, b, b->segment, nullptr, nullptr, false, b->last};
        b->size = size;
        b->last = false;
        if (Block *n = after(rest)) n->before = rest;
        link(a, rest);
    }
    return b;
}

bool must_fail(Allocator &a) {
    if (a.fail_in.load(std::memory_order_relaxed) < 0) return false;
    return a.fail_in.fetch_sub(1, std::memory_order_relaxed) <= 0 ? (a.fail_in.store(0), true) : false;
}

}  // namespace

#if defined(MORTICE_ASAN)
// The sanitizer must see every block begin and end, so it gets them from its own malloc.
struct Header { size_t size; };
static void *raw_take(Allocator &a, size_t bytes, size_t size) {
    auto *at = static_cast<char *>(aligned_alloc(ALIGNMENT, (bytes + 2 * ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT));
    if (!at) return nullptr;
    reinterpret_cast<Header *>(at)->size = size;
    return at + ALIGNMENT;
}
static size_t raw_give(Allocator &, void *block) {
    char *at = static_cast<char *>(block) - ALIGNMENT;
    size_t size = reinterpret_cast<Header *>(at)->size;
    free(at);
    return size;
}
#else
static void *raw_take(Allocator &a, size_t, size_t size) {
    Block *b = take(a, size);
    return b ? reinterpret_cast<char *>(b) + ALIGNMENT : nullptr;
}
static size_t raw_give(Allocator &a, void *block) {
    auto *b = reinterpret_cast<Block *>(static_cast<char *>(block) - ALIGNMENT);
    size_t size = b->size;
    if (Block *n = after(b); n && n->free) {
        unlink(a, n);
        b->size += n->size;
        b->last = n->last;
    }
    if (b->before && b->before->free) {
        Block *p = b->before;
        unlink(a, p);
        p->size += b->size;
        p->last = b->last;
        b = p;
    }
    if (Block *n = after(b)) n->before = b;
    if (!a.keep && !b->before && b->last)
        drop(a, b->segment);
    else
        link(a, b);
    return size;
}
#endif

void *memory_take(size_t bytes) {
    if (bytes > (SIZE_MAX >> 2)) return nullptr;
    size_t size = (bytes + 2 * ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (size < 2 * ALIGNMENT) size = 2 * ALIGNMENT;
    Allocator &a = the();
    if (must_fail(a)) return nullptr;
    std::lock_guard<std::mutex> lock(a.mutex);
    void *at = raw_take(a, bytes, size);
    if (!at) return nullptr;
#if defined(MORTICE_ASAN)
    size_t got = size;
#else
    size_t got = reinterpret_cast<Block *>(static_cast<char *>(at) - ALIGNMENT)->size;
#endif
    a.stats.allocated += got;
    if (a.stats.allocated > a.stats.peak_allocated) a.stats.peak_allocated = a.stats.allocated;
    return at;
}

void memory_give(void *block) {
    if (!block) return;
    Allocator &a = the();
    std::lock_guard<std::mutex> lock(a.mutex);
    a.stats.allocated -= raw_give(a, block);
}

MemoryStats memory_stats() {
    Allocator &a = the();
    std::lock_guard<std::mutex> lock(a.mutex);
    return a.stats;
}

void copy_bytes(void *to, const void *from, size_t bytes) { memcpy(to, from, bytes); }

void memory_reset_peaks() {
    Allocator &a = the();
    std::lock_guard<std::mutex> lock(a.mutex);
    a.stats.peak_allocated = a.stats.allocated;
    a.stats.peak_reserved = a.stats.reserved;
}

void memory_empty_cache() {
    Allocator &a = the();
    std::lock_guard<std::mutex> lock(a.mutex);
    release(a, SIZE_MAX);
}

void memory_fail_after(int64_t n) { the().fail_in = n; }

}  // namespace mortice
