// Sorting of words: by insertion where there are few, else by digits, on several threads where there are many.
#include "parallel.hpp"
#include "sort_keys.hpp"

namespace mortice {

namespace {

constexpr int LOW = 32;  // keys are above, positions below

void insertion(uint64_t *a, int64_t n) {
    for (int64_t i = 1; i < n; i++) {
        const uint64_t x = a[i];
        int64_t j = i;
        for (; j > 0 && a[j - 1] > x; j--) a[j] = a[j - 1];
        a[j] = x;
    }
}

// Merge two sorted runs without branches on the order.
void merge(const uint64_t *x, int64_t n, const uint64_t *y, int64_t m, uint64_t *out) {
    const uint64_t *const x_end = x + n, *const y_end = y + m;
    while (x < x_end && y < y_end) {
        const uint64_t a = *x, b = *y;
        const bool first = a < b;
        *out++ = first ? a : b;
        x += first;
        y += !first;
    }
    memcpy(out, x, static_cast<size_t>(x_end - x) * sizeof *x);
    memcpy(out + (x_end - x), y, static_cast<size_t>(y_end - y) * sizeof *y);
}

uint64_t *merge_sort(uint64_t *a, uint64_t *b, int64_t n) {
    constexpr int64_t RUN = 12;
    for (int64_t i = 0; i < n; i += RUN) insertion(a + i, n - i < RUN ? n - i : RUN);
    for (int64_t run = RUN; run < n; run *= 2) {
        for (int64_t i = 0; i < n; i += 2 * run) {
            const int64_t first = n - i < run ? n - i : run, second = n - i - first < run ? n - i - first : run;
            merge(a + i, first, a + i + first, second, b + i);
        }
        uint64_t *t = a;
        a = b;
        b = t;
    }
    return a;
}

template <int BITS> struct Digits {
    static constexpr int SIZE = 1 << BITS, PASSES = (32 + BITS - 1) / BITS;
    static int at(uint64_t word, int pass) { return static_cast<int>(word >> (LOW + pass * BITS)) & (SIZE - 1); }
};

template <int BITS> uint64_t *radix(uint64_t *a, uint64_t *b, int64_t n, int width) {
    using D = Digits<BITS>;
    uint32_t counts[D::PASSES][D::SIZE];
    const int passes = (width + BITS - 1) / BITS;
    memset(counts, 0, sizeof counts[0] * static_cast<size_t>(passes));
    for (int64_t i = 0; i < n; i++)
        for (int p = 0; p < D::PASSES; p++)
            if (p < passes) counts[p][D::at(a[i], p)]++;
    for (int p = 0; p < passes; p++) {
        uint32_t *count = counts[p];
        if (count[D::at(a[0], p)] == n) continue;
        uint32_t before = 0;
        for (int d = 0; d < D::SIZE; d++) {
            const uint32_t here = count[d];
            count[d] = before;
            before += here;
        }
        for (int64_t i = 0; i < n; i++) b[count[D::at(a[i], p)]++] = a[i];
        uint64_t *t = a;
        a = b;
        b = t;
    }
    return a;
}

// Each thread counts and moves a part; parts come one after the other in each digit, so the order of equal digits stays.
template <int BITS> uint64_t *parallel_radix(uint64_t *a, uint64_t *b, int64_t n, int width) {
    using D = Digits<BITS>;
    const int parts = num_threads() < 64 ? num_threads() : 64, passes = (width + BITS - 1) / BITS;
    Scratch<int64_t> counts(static_cast<size_t>(parts) * D::SIZE);
    const auto begin = [&](int64_t part) { return n / parts * part + (part < n % parts ? part : n % parts); };
    for (int p = 0; p < passes; p++) {
        parallel_for(parts, 1, [&](int64_t from, int64_t to) {
            for (int64_t part = from; part < to; part++) {
                int64_t *count = counts + part * D::SIZE;
                memset(count, 0, sizeof(int64_t) * D::SIZE);
                for (int64_t i = begin(part), end = begin(part + 1); i < end; i++) count[D::at(a[i], p)]++;
            }
        });
        int64_t before = 0, most = 0;
        for (int d = 0; d < D::SIZE; d++) {
            const int64_t start = before;
            for (int part = 0; part < parts; part++) {
                const int64_t here = counts[part * D::SIZE + d];
                counts[part * D::SIZE + d] = before;
                before += here;
            }
            most = before - start > most ? before - start : most;
        }
        if (most == n) continue;
        parallel_for(parts, 1, [&](int64_t from, int64_t to) {
            for (int64_t part = from; part < to; part++) {
                int64_t *place = counts + part * D::SIZE;
                for (int64_t i = begin(part), end = begin(part + 1); i < end; i++) b[place[D::at(a[i], p)]++] = a[i];
            }
        });
        uint64_t *t = a;
        a = b;
        b = t;
    }
    return a;
}

}  // namespace

uint64_t *sort_words(uint64_t *words, uint64_t *room, int64_t n, int width) {
    if (n <= 20) {
        insertion(words, n);
        return words;
    }
    if (n <= 120) return merge_sort(words, room, n);
    if (n < 2000) return radix<8>(words, room, n, width);
    // Wide digits take fewer passes, but write to more places at a time than the caches beyond the second follow.
    const bool near = n < 400000;
    if (n < (1 << 16) || num_threads() == 1 || in_parallel())
        return near ? radix<11>(words, room, n, width) : radix<8>(words, room, n, width);
    return near ? parallel_radix<11>(words, room, n, width) : parallel_radix<8>(words, room, n, width);
}

}  // namespace mortice
