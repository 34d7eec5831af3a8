#include "repeat.hpp"

#include <cstring>

#include "parallel.hpp"

namespace mortice {

namespace {

constexpr int MOST = MAX_OPERANDS - 1;
constexpr int64_t ROOM = 4096;         // bytes for a block of an input
constexpr int64_t SLACK = 256;         // runs are written by 16 bytes and may go beyond
constexpr int64_t SHORT = 512;         // elements that are repeated as a whole, few enough to be worth it
constexpr int64_t SHORT_RUN = 32;      // times that one element is repeated: longer ones are lines in which it stands still
constexpr int64_t PERIOD = 65536;      // bytes of a period that is laid out once

// Elements i.. of the output's order, n of them, of an input; writes up to 16 bytes beyond.
template <class T> void lay(char *room, const Repeated &r, int64_t i, int64_t n) {
    T *out = reinterpret_cast<T *>(room);
    const T *in = reinterpret_cast<const T *>(r.data);
    int64_t at = (i / r.run) % r.count, left = r.run - i % r.run;
    if (r.run == 1) {
        for (int64_t k = 0; k < n;) {
            const int64_t m = r.count - at < n - k ? r.count - at : n - k;
            copy_bytes(out + k, in + at, static_cast<size_t>(m) * sizeof(T));
            k += m;
            at = 0;
        }
        return;
    }
    for (int64_t k = 0; k < n; k += left, left = r.run, at = at + 1 == r.count ? 0 : at + 1) {
        const int64_t m = left < n - k ? left : n - k;
        if constexpr (sizeof(T) < 16) {
            typedef T Vector __attribute__((vector_size(16)));
            const Vector value = Vector{} + in[at];
            for (int64_t j = 0; j < m; j += static_cast<int64_t>(16 / sizeof(T))) memcpy(out + k + j, &value, sizeof value);
        } else {
            for (int64_t j = 0; j < m; j++) out[k + j] = in[at];
        }
    }
}
void lay_any(char *room, const Repeated &r, int64_t i, int64_t n) {
    by_width(r.size, [&](auto kind) { lay<decltype(kind)>(room, r, i, n); });
}

int64_t largest_size(const Repeated *in, int count, int64_t size) {
    for (int i = 0; i < count; i++) size = in[i].size > size ? in[i].size : size;
    return size;
}

}  // namespace

bool repeated(const Array &x, int ndim, const int64_t *shape, Repeated &r) {
    r = {x.data, 1, 1, x.itemsize()};
    const int lead = ndim - x.ndim;
    const int64_t *own = x.shape(), *step = x.strides();
    int axis = x.ndim - 1;
    for (; axis >= 0 && (own[axis] == 1 || step[axis] == 0); axis--) r.run *= shape[lead + axis];
    for (; axis >= 0 && own[axis] == shape[lead + axis] && (own[axis] == 1 || step[axis] == r.count); axis--) r.count *= own[axis];
    for (; axis >= 0; axis--)
        if (own[axis] != 1 && step[axis] != 0) return false;
    return true;
}

bool repeated_number(const char *element, Repeated &r) {
    r = {element, 1, 1, 0};
    return true;
}

bool worth_repeating(const Repeated *in, int count, int64_t total) {
    bool some = false;
    for (int i = 0; i < count; i++) {
        const Repeated &r = in[i];
        const bool full = r.run == 1 && r.count == total;
        if (full || r.count == 1) continue;
        if (total <= SHORT) {
            some = true;
        } else {
            if (r.run >= SHORT_RUN || (r.run == 1 && r.run * r.count * r.size > PERIOD)) return false;
            some |= r.run > 1 || r.count < SHORT;
        }
    }
    return some;
}

void run_repeated(Array &out, const Repeated *in, int count, Inner inner, const void *extra, float cost) {
    const int64_t total = out.size, block = ROOM / largest_size(in, count, out.itemsize());
    const char *period[MOST] = {};
    int64_t step[MOST + 1] = {out.itemsize()}, bytes = 0, length[MOST] = {};
    for (int i = 0; i < count; i++) {
        const Repeated &r = in[i];
        step[i + 1] = r.count == 1 ? 0 : r.size;
        // A period is laid out once, with a block beyond its end.
        const bool lies = r.count == 1 || (r.run == 1 && r.count == total);
        if (!lies && total > block && r.run * r.count * r.size <= PERIOD && r.run * r.count * 2 <= total)
            length[i] = (r.run * r.count + block) * r.size + SLACK, bytes += length[i];
    }
    Scratch<char> store(bytes ? static_cast<size_t>(bytes) : 1);
    for (int64_t i = 0, at = 0; i < count; at += length[i], i++)
        if (length[i]) {
            lay_any(store + at, in[i], 0, in[i].run * in[i].count + block);
            period[i] = store + at;
        }
    Unlocked unlocked(total);
    parallel_for(total, static_cast<int64_t>(16384 / cost) + 1, [&](int64_t begin, int64_t end) {
        // A block is laid out while the one before is still to be read: what has just been written is slow to load.
        alignas(64) char rooms[2][MOST][ROOM + SLACK];
        char *at[2][MOST + 1];
        int64_t waiting = 0;
        for (int64_t k = begin, turn = 0; k < end || waiting; k += block, turn ^= 1) {
            const int64_t m = k >= end ? 0 : end - k < block ? end - k : block;
            if (m) at[turn][0] = out.data + k * out.itemsize();
            for (int i = 0; i < count && m; i++) {
                const Repeated &r = in[i];
                char *&place = at[turn][i + 1];
                place = rooms[turn][i];
                if (r.count == 1)
                    place = const_cast<char *>(r.data);
                else if (r.run == 1 && r.count == total)
                    place = const_cast<char *>(r.data) + k * r.size;
                else if (period[i])
                    place = const_cast<char *>(period[i]) + k % (r.run * r.count) * r.size;
                else
                    lay_any(rooms[turn][i], r, k, m);
            }
            if (waiting) inner(at[turn ^ 1], step, waiting, extra);
            waiting = m;
        }
    });
}

}  // namespace mortice
