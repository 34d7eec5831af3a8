// Sorting along an axis, and what follows from it: distinct elements. All of it stable, so the results are the same for
// every number of threads.
#include "sort.hpp"

#include <algorithm>

#include "families.hpp"
#include "select.hpp"
#include "sort_rows.hpp"

namespace mortice {

void check_rows(const char *name, const Rows &rows) {
    if (is_complex(rows.x.dtype)) fail(PyExc_TypeError, "%s: complex numbers have no order", name);
    if (rows.n > INT64_C(0xffffffff))
        fail(PyExc_RuntimeError, "%s: expected at most 2^32 - 1 elements along the axis; got %lld", name,
             static_cast<long long>(rows.n));
}

namespace {

constexpr int64_t BLOCK = 1 << 14;

// Words in which the same upper half stands for different keys are sorted by the whole keys.
void settle_ties_in(uint64_t *begin, uint64_t *end, const uint64_t *keys) {
    const auto before = [keys](uint64_t a, uint64_t b) {
        const uint64_t x = keys[static_cast<uint32_t>(a)], y = keys[static_cast<uint32_t>(b)];
        return x != y ? x < y : a < b;
    };
    for (uint64_t *stop; begin < end; begin = stop) {
        for (stop = begin + 1; stop < end && *stop >> 32 == *begin >> 32;) stop++;
        if (stop - begin > 1) std::sort(begin, stop, before);
    }
}

// The parts are cut between different halves, all before any is sorted: none looks into another.
void settle_ties(uint64_t *words, const uint64_t *keys, int64_t n) {
    constexpr int64_t MOST = 64;
    const int64_t parts = in_parallel() || n < 2 * BLOCK ? 1 : std::min(n / BLOCK, MOST);
    int64_t starts[MOST + 1] = {0};
    for (int64_t p = 1; p < parts; p++) {
        int64_t i = std::max(n * p / parts, starts[p - 1]);
        while (i < n && words[i] >> 32 == words[i - 1] >> 32) i++;
        starts[p] = i;
    }
    starts[parts] = n;
    parallel_for(parts, 1, [&](int64_t begin, int64_t end) {
        settle_ties_in(words + starts[begin], words + starts[end], keys);
    });
}

void ends_of_keys(const uint64_t *keys, int64_t n, uint64_t *low, uint64_t *high) {
    uint64_t lo = keys[0], hi = keys[0];
    for (int64_t i = 0; i < n; i++) {
        lo = keys[i] < lo ? keys[i] : lo;
        hi = keys[i] > hi ? keys[i] : hi;
    }
    *low = lo;
    *high = hi;
}

struct Room {
    uint64_t *a, *b, *keys;
};

// Words in order: the lower halves are the positions. `whole` says whether the upper ones tell all keys apart.
struct Sorted {
    uint64_t *words;
    bool whole;
};

template <class T> __attribute__((noinline)) Sorted sorted_words(const T *x, int64_t step, int64_t n, bool descending, Room room) {
    using O = Order<T>;
    uint64_t *a = room.a;
    const auto flip = descending ? key_mask<T>() : typename O::Key(0);
    if constexpr (O::bits <= 32) {
        parallel_for(n, BLOCK, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; i++)
                a[i] = static_cast<uint64_t>(O::key(x[i * step]) ^ flip) << 32 | static_cast<uint64_t>(i);
        });
        return {sort_words(a, room.b, n, O::bits), true};
    } else {
        uint64_t *keys = room.keys;
        parallel_for(n, BLOCK, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; i++) keys[i] = O::key(x[i * step]) ^ flip;
        });
        // The range of the keys is brought to 32 bits; in most rows few or none meet there.
        uint64_t low, high;
        ends_of_keys(keys, n, &low, &high);
        const int width = high == low ? 1 : 64 - __builtin_clzll(high - low), drop = width > 32 ? width - 32 : 0;
        parallel_for(n, BLOCK, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; i++) a[i] = (keys[i] - low) >> drop << 32 | static_cast<uint64_t>(i);
        });
        uint64_t *words = sort_words(a, room.b, n, width - drop);
        if (drop) settle_ties(words, keys, n);
        return {words, drop == 0};
    }
}

// Room for a row for each thread.
struct Rooms {
    int64_t n;
    bool wide;
    Scratch<uint64_t> memory;
    Rooms(const Rows &rows, int64_t threads)
        : n(rows.n), wide(rows.x.itemsize() == 8), memory(static_cast<size_t>(threads * n * (wide ? 3 : 2))) {}
    Room mine() const {
        uint64_t *at = memory.get() + thread_number() * n * (wide ? 3 : 2);
        return {at, at + n, at + 2 * n};
    }
};

int64_t threads_for(const Rows &rows) { return rows.count < num_threads() && rows.n >= (1 << 16) ? 1 : num_threads(); }

template <class T>
void put_row(const uint64_t *words, const T *x, int64_t step, int64_t n, T *values, int64_t *order, int64_t apart) {
    parallel_for(n, BLOCK, [&](int64_t begin, int64_t end) {
        if (order)
            for (int64_t i = begin; i < end; i++) order[i * apart] = static_cast<uint32_t>(words[i]);
        if (values)
            for (int64_t i = begin; i < end; i++) values[i * apart] = x[static_cast<uint32_t>(words[i]) * step];
    });
}

void sort_rows(const Rows &rows, int64_t m, bool descending, Ref *values, Ref *order) {
    const Rooms rooms(rows, threads_for(rows));
    with_order(rows.x.dtype, [&](auto kind) {
        using T = decltype(kind);
        for_rows(rows, 20, [&](int64_t r) {
            const T *row = rows.data<T>(r);
            const int64_t at = rows.out(r, m);
            const uint64_t *words = sorted_words<T>(row, rows.step, rows.n, descending, rooms.mine()).words;
            put_row<T>(words, row, rows.step, m, values ? (*values)->template as<T>() + at : nullptr,
                       order ? (*order)->template as<int64_t>() + at : nullptr, rows.inner);
        });
    });
}
// Sort along an axis and keep the first m; of `values` and `order` those that are asked for are made.
void sort_axis(const char *name, Array &given, int axis, bool descending, int64_t m, Ref *values, Ref *order) {
    Ref wide = in_order(given);
    Array &x = *wide;
    const Rows rows(x, axis);
    check_rows(name, rows);
    int64_t shape[MAX_NDIM];
    for (int i = 0; i < x.ndim; i++) shape[i] = i == axis ? m : x.shape()[i];
    if (values) *values = make(x.dtype, x.ndim, shape);
    if (order) *order = make(I64, x.ndim, shape);
    if (x.size) sort_rows(rows, m, descending, values, order);
    if (values) *values = converted(**values, given.dtype);
}

int64_t length(const Array &x, int axis) { return x.ndim ? x.shape()[axis] : 1; }

int axis_of(PyObject *given, const Array &x) { return x.ndim ? (given ? as_axis(given, x.ndim) : x.ndim - 1) : 0; }

PyObject *argsort(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<3> N{"argsort", {"x", "axis", "descending"}, 1};
    PyObject *a[3];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    return order_of(x, axis_of(a[1], x), as_bool(a[2])).release();
}

PyObject *sort(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<4> N{"sort", {"x", "axis", "descending", "stable"}, 1};
    PyObject *a[4];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    const int axis = axis_of(a[1], x);
    Ref values;
    sort_axis("sort", x, axis, as_bool(a[2]), length(x, axis), &values, nullptr);
    return values.release();
}

PyObject *sort_pairs(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<3> N{"sort_pairs", {"x", "axis", "descending"}, 1};
    PyObject *a[3];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    const int axis = axis_of(a[1], x);
    Ref values, order;
    sort_axis("sort_pairs", x, axis, as_bool(a[2]), length(x, axis), &values, &order);
    return as_tuple(values, order);
}

PyObject *topk(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<4> N{"topk", {"x", "count", "axis", "largest"}, 2};
    PyObject *a[4];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    const int64_t count = as_int(a[1]);
    const int axis = axis_of(a[2], x);
    const bool largest = a[3] == nullptr || as_bool(a[3]);
    const int64_t size = length(x, axis);
    if (count < 0 || count > size)
        fail(PyExc_RuntimeError, "topk: expected a count from 0 to %lld; got %lld", static_cast<long long>(size),
             static_cast<long long>(count));
    Ref values, order;
    // Longer rows are sorted by digits, the shortest by insertion; those between take more than selecting half of them.
    const bool between = size > 20 && size <= 160;
    if (count > 4096 || (between ? 2 : 8) * count > size || is_complex(x.dtype))
        sort_axis("topk", x, axis, largest, count, &values, &order);
    else
        best_axis(x, axis, largest, count, values, order);
    return as_tuple(values, order);
}

// ---- distinct elements ----

struct Unique {
    Ref values, first, inverse, counts;
};

// Whether the element of a word differs from that of the word before; every nan is distinct.
template <class T> struct Differs {
    const uint64_t *words;
    const T *x;
    bool whole;
    bool operator()(int64_t i) const {
        if (whole && !FLOATING<T>) return (words[i - 1] ^ words[i]) >> 32 != 0;
        if (whole && Order<T>::bits <= 32)
            return (words[i - 1] ^ words[i]) >> 32 != 0 || words[i] >> 32 == key_mask<T>();
        const auto a = Order<T>::key(x[static_cast<uint32_t>(words[i - 1])]);
        const auto b = Order<T>::key(x[static_cast<uint32_t>(words[i])]);
        return a != b || (FLOATING<T> && b == key_mask<T>());
    }
};

// Cold: small rather than fast. What takes time is in functions of its own: sorting, and bodies of parallel_for.
template <class T> __attribute__((cold)) Unique unique_of(Array &x) {
    const int64_t n = x.size;
    const T *data = x.as<T>();
    int64_t line[1] = {n}, step[1] = {1};
    Ref flat = make_view(x, x.data, 1, line, step);
    const Rows rows(*flat, 0);
    check_rows("unique_all", rows);
    const Rooms rooms(rows, 1);
    Unique u;
    u.inverse = make(I64, x.ndim, x.shape());
    int64_t *inverse = u.inverse->template as<int64_t>();
    const int64_t parts = (n + BLOCK - 1) / BLOCK;
    Scratch<int64_t> found(static_cast<size_t>(parts) + 1);
    Sorted sorted;
    int64_t total = 0;
    {
        Unlocked free(20 * n);
        sorted = sorted_words<T>(data, 1, n, false, rooms.mine());
        const Differs<T> differs{sorted.words, data, sorted.whole};
        parallel_for(parts, 1, [&](int64_t from, int64_t to) {
            for (int64_t p = from; p < to; p++) {
                int64_t here = 0;
                for (int64_t i = p * BLOCK; i < n && i < (p + 1) * BLOCK; i++) here += i == 0 || differs(i);
                found[p] = here;
            }
        });
        for (int64_t p = 0; p < parts; p++) {
            const int64_t here = found[p];
            found[p] = total;
            total += here;
        }
    }
    u.values = make(x.dtype, {total});
    u.first = make(I64, {total});
    u.counts = make(I64, {total});
    T *values = u.values->template as<T>();
    int64_t *first = u.first->template as<int64_t>(), *counts = u.counts->template as<int64_t>();
    Unlocked free(20 * n);
    const uint64_t *words = sorted.words;
    const Differs<T> differs{words, data, sorted.whole};
    parallel_for(parts, 1, [&](int64_t from, int64_t to) {
        for (int64_t p = from; p < to; p++) {
            int64_t k = found[p] - 1;
            for (int64_t i = p * BLOCK; i < n && i < (p + 1) * BLOCK; i++) {
                const auto place = static_cast<uint32_t>(words[i]);
                if (i == 0 || differs(i)) {
                    k++;
                    values[k] = data[place];
                    first[k] = place;
                    counts[k] = i;  // where it starts, for now
                }
                inverse[place] = k;
            }
        }
    });
    for (int64_t k = 0; k < total; k++) counts[k] = (k + 1 < total ? counts[k + 1] : n) - counts[k];
    return u;
}

// Bytes are counted, not sorted. From the last on, so that what stays of the places is each one's first.
Unique unique_of_bytes(Array &x, const uint8_t flip) {
    const auto *data = x.as<uint8_t>();
    int64_t count[4][256] = {}, place[256], rank[256], total = 0;  // several counts: the same one waits for itself
    for (int64_t i = x.size - 1; i >= 0; i--) count[i & 3][data[i]]++, place[data[i]] = i;
    uint8_t found[256];
    for (int key = 0; key < 256; key++) {
        const auto b = static_cast<uint8_t>(key ^ flip);
        count[0][b] += count[1][b] + count[2][b] + count[3][b];
        if (count[0][b]) rank[b] = total, found[total++] = b;
    }
    Unique u{make(x.dtype, {total}), make(I64, {total}), make(I64, x.ndim, x.shape()), make(I64, {total})};
    for (int64_t k = 0; k < total; k++) {
        u.values->as<uint8_t>()[k] = found[k];
        u.first->as<int64_t>()[k] = place[found[k]], u.counts->as<int64_t>()[k] = count[0][found[k]];
    }
    auto *inverse = u.inverse->as<int64_t>();
    parallel_for(x.size, BLOCK, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) inverse[i] = rank[data[i]];
    });
    return u;
}

PyObject *unique_all(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    Ref given = contiguous(only("unique_all", args, n, names));
    const bool bytes = given->size && given->itemsize() == 1;
    const Ref x = bytes ? Ref() : in_order(*given);
    if (is_complex(given->dtype)) fail(PyExc_TypeError, "unique_all: complex numbers have no order");
    Unique u;
    if (bytes) {
        u = unique_of_bytes(*given, given->dtype == I8 ? 0x80 : 0);
    } else if (x->size) {
        u = with_order(x->dtype, [&](auto kind) { return unique_of<decltype(kind)>(*x); });
    } else {
        u = {make(x->dtype, {0}), make(I64, {0}), make_like(*x, I64), make(I64, {0})};
    }
    u.values = converted(*u.values, given->dtype);
    return as_tuple(u.values, u.first, u.inverse, u.counts);
}

}  // namespace

Ref order_of(Array &x, int axis, bool descending) {
    Ref order;
    sort_axis("argsort", x, axis, descending, length(x, axis), nullptr, &order);
    return order;
}

const Method sort_methods[] = {
    MORTICE_METHOD("argsort", argsort),
    MORTICE_METHOD("sort", sort),
    MORTICE_METHOD("sort_pairs", sort_pairs),
    MORTICE_METHOD("topk", topk),
    MORTICE_METHOD("kthvalue", kthvalue),
    MORTICE_METHOD("median", median),
    MORTICE_METHOD("searchsorted", searchsorted),
    MORTICE_METHOD("unique_all", unique_all),
    {},
};

}  // namespace mortice
