// Selecting without sorting all: the best few, the nth, the median; and searching in what is sorted.
#include "select.hpp"

#include <algorithm>
#include <functional>
#include <type_traits>

#include "kernels/index.hpp"
#include "sort_rows.hpp"

namespace mortice {

namespace {

// A key and its position, in this order.
template <class T> using Word = std::conditional_t<(Order<T>::bits > 32), Wide128, uint64_t>;
template <class T> static constexpr int KEY = Order<T>::bits > 32 ? 64 : 32;
template <class T> Word<T> word_of(typename Order<T>::Key key, int64_t i) {
    return static_cast<Word<T>>(key) << KEY<T> | static_cast<Word<T>>(i);
}
template <class T> int64_t position(Word<T> w) { return static_cast<uint32_t>(w); }

constexpr int MOST_PARTS = 8;

int parts_for(int64_t n) {
    if (in_parallel() || n < (1 << 16)) return 1;
    return num_threads() < MOST_PARTS ? num_threads() : MOST_PARTS;
}
int64_t part_begin(int64_t n, int parts, int part) { return n * part / parts; }

// ---- the best few ----

// Put the k least words of a part of a row into `few`, in no order; return how many there are. It has room for `most`.
template <class T>
int64_t least_words(const T *x, int64_t step, int64_t begin, int64_t end, typename Order<T>::Key flip, int64_t k,
                    Word<T> *few, int64_t most) {
    using Key = typename Order<T>::Key;
    constexpr int64_t BLOCK = 256, GROUP = 16;
    int64_t i = begin, m = 0;
    for (; i < end && m < most; i++) few[m++] = word_of<T>(Order<T>::key(x[i * step]) ^ flip, i);
    if (m <= k) return m;
    std::nth_element(few, few + k - 1, few + m);
    m = k;
    auto limit = static_cast<Key>(few[k - 1] >> KEY<T>);
    Key keys[BLOCK];
    for (; i < end; i += BLOCK) {
        const int64_t n = end - i < BLOCK ? end - i : BLOCK;
        for (int64_t j = 0; j < n; j++) keys[j] = Order<T>::key(x[(i + j) * step]) ^ flip;
        for (int64_t g = 0; g < n; g += GROUP) {
            const int64_t stop = n - g < GROUP ? n : g + GROUP;
            Key any = 0;
            for (int64_t j = g; j < stop; j++) any |= keys[j] < limit;
            if (!any) continue;
            for (int64_t j = g; j < stop; j++) {
                if (keys[j] >= limit) continue;  // an equal one comes later than those that are there
                few[m++] = word_of<T>(keys[j], i + j);
                if (m < most) continue;
                std::nth_element(few, few + k - 1, few + m);
                m = k;
                limit = static_cast<Key>(few[k - 1] >> KEY<T>);
            }
        }
    }
    if (m > k) std::nth_element(few, few + k - 1, few + m);
    return k;
}

constexpr int64_t MOST_GROUPS = 1024;

// The same for a whole row of floats side by side, where that is quick: a first look at the largest of each of some groups
// tells what an element must reach, and few but the best do. -1 where there are too many, or nans.
template <class T> int64_t reaching_words(const T *x, int64_t n, bool largest, int64_t k, Word<T> *few, int64_t most) {
    const Peaks<T> &kernels = [] () -> const Peaks<T> & {
        if constexpr (sizeof(T) == 4) return index_kernels().peaks_f32;
        else return index_kernels().peaks_f64;
    }();
    int64_t groups = n < 256 ? 16 : 64;
    while (groups < 2 * k) groups *= 2;
    if (groups > MOST_GROUPS || n < 3 * groups) return -1;
    T peaks[MOST_GROUPS];
    int64_t at[MOST_GROUPS];
    const T sign = largest ? T(1) : T(-1);
    if (!kernels.largest(x, n, sign, peaks, groups)) return -1;
    std::nth_element(peaks, peaks + k - 1, peaks + groups, std::greater<T>());
    const int64_t m = kernels.reaching(x, n, sign, peaks[k - 1], at, most < MOST_GROUPS ? most : MOST_GROUPS);
    const auto flip = largest ? key_mask<T>() : typename Order<T>::Key(0);
    for (int64_t j = 0; j < m; j++) few[j] = word_of<T>(Order<T>::key(x[at[j]]) ^ flip, at[j]);
    return m;
}

template <class T> void best_rows(const Rows &rows, bool largest, int64_t k, T *values, int64_t *order) {
    const auto flip = largest ? key_mask<T>() : typename Order<T>::Key(0);
    const int64_t most = 2 * k + 16;
    const bool single = rows.count < num_threads() && rows.n >= (1 << 16);
    Scratch<Word<T>> room(static_cast<size_t>((num_threads() > MOST_PARTS ? num_threads() : MOST_PARTS) * most));
    for_rows(rows, 1, [&](int64_t r) {
        const T *x = rows.data<T>(r);
        Word<T> *few = room + (single ? 0 : thread_number() * most);
        int64_t found[MOST_PARTS], m = 0;
        if constexpr (std::is_floating_point_v<T>)
            if (!single && rows.step == 1) m = std::max<int64_t>(reaching_words<T>(x, rows.n, largest, k, few, most), 0);
        const int parts = m ? 0 : single ? parts_for(rows.n) : 1;
        parallel_for(parts, 1, [&](int64_t from, int64_t to) {
            for (int64_t p = from; p < to; p++) {
                const int part = static_cast<int>(p);
                found[p] = least_words<T>(x, rows.step, part_begin(rows.n, parts, part),
                                          part_begin(rows.n, parts, part + 1), flip, k, few + p * most, most);
            }
        });
        for (int p = 0; p < parts; p++) {
            memmove(few + m, few + p * most, static_cast<size_t>(found[p]) * sizeof *few);
            m += found[p];
        }
        if (m > k) std::nth_element(few, few + k - 1, few + m);
        std::sort(few, few + k);
        const int64_t at = rows.out(r, k);
        for (int64_t j = 0; j < k; j++) {
            const int64_t i = position<T>(few[j]);
            order[at + j * rows.inner] = i;
            values[at + j * rows.inner] = x[i * rows.step];
        }
    });
}

// ---- the nth ----

// The word at a rank of a row, from 0.
template <class T> int64_t nth_position(const T *x, int64_t step, int64_t n, int64_t rank, Word<T> *room) {
    using Key = typename Order<T>::Key;
    constexpr int DIGIT = 11;
    if (n < 4096) {
        for (int64_t i = 0; i < n; i++) room[i] = word_of<T>(Order<T>::key(x[i * step]), i);
        std::nth_element(room, room + rank, room + n);
        return position<T>(room[rank]);
    }
    // The range is cut into equal parts: of these only the one that holds the rank is looked at closely.
    const int parts = parts_for(n);
    Key lows[MOST_PARTS], highs[MOST_PARTS];
    const auto each_part = [&](auto &&body) {
        parallel_for(parts, 1, [&](int64_t from, int64_t to) {
            for (int64_t p = from; p < to; p++)
                body(p, part_begin(n, parts, static_cast<int>(p)), part_begin(n, parts, static_cast<int>(p) + 1));
        });
    };
    each_part([&](int64_t p, int64_t begin, int64_t end) {
        Key low = Order<T>::key(x[begin * step]), high = low;
        for (int64_t i = begin; i < end; i++) {
            const Key key = Order<T>::key(x[i * step]);
            low = key < low ? key : low;
            high = key > high ? key : high;
        }
        lows[p] = low;
        highs[p] = high;
    });
    const Key low = *std::min_element(lows, lows + parts), high = *std::max_element(highs, highs + parts);
    const int width = high == low ? 1 : 64 - __builtin_clzll(static_cast<uint64_t>(high - low));
    const int drop = width > DIGIT ? width - DIGIT : 0;
    uint32_t counts[MOST_PARTS][1 << DIGIT];
    each_part([&](int64_t p, int64_t begin, int64_t end) {
        memset(counts[p], 0, sizeof counts[p]);
        for (int64_t i = begin; i < end; i++) counts[p][(Order<T>::key(x[i * step]) - low) >> drop]++;
    });
    int64_t before = 0, here = 0;
    Key digit = 0;
    for (;; digit++) {
        here = 0;
        for (int p = 0; p < parts; p++) here += counts[p][digit];
        if (before + here > rank) break;
        before += here;
    }
    int64_t starts[MOST_PARTS + 1] = {0};
    for (int p = 0; p < parts; p++) starts[p + 1] = starts[p] + counts[p][digit];
    each_part([&](int64_t p, int64_t begin, int64_t end) {
        int64_t m = starts[p];
        for (int64_t i = begin; i < end && m < starts[p + 1]; i++) {
            const Key key = Order<T>::key(x[i * step]);
            room[m] = word_of<T>(key, i);
            m += (key - low) >> drop == digit;
        }
    });
    std::nth_element(room, room + (rank - before), room + here);
    return position<T>(room[rank - before]);
}

// The rank of the median, or -1 - i where i is a nan that is the median itself.
template <class T> int64_t middle(const T *x, int64_t step, int64_t n, bool ignore_nan) {
    if constexpr (!FLOATING<T>) return (n - 1) / 2;
    int64_t nans = 0;
    for (int64_t i = 0; i < n; i++) nans += x[i * step] != x[i * step];
    if (!nans) return (n - 1) / 2;
    if (ignore_nan) return nans == n ? 0 : (n - nans - 1) / 2;
    for (int64_t i = 0;; i++)
        if (x[i * step] != x[i * step]) return -1 - i;
}

enum : int64_t { MEDIAN = -1, MEDIAN_OF_NUMBERS = -2 };
template <class T> void select_rows(const Rows &rows, int64_t rank, T *values, int64_t *order) {
    const int64_t threads = rows.count < num_threads() && rows.n >= (1 << 16) ? 1 : num_threads();
    Scratch<Word<T>> room(static_cast<size_t>(threads * (rows.n + MOST_PARTS)));
    for_rows(rows, 3, [&](int64_t r) {
        const T *row = rows.data<T>(r);
        int64_t at = rank < 0 ? middle(row, rows.step, rows.n, rank == MEDIAN_OF_NUMBERS) : rank;
        at = at < 0 ? -1 - at
                    : nth_position<T>(row, rows.step, rows.n, at, room + thread_number() * (rows.n + MOST_PARTS));
        order[r] = at;
        values[r] = row[at * rows.step];
    });
}

// The element of a rank from 0, or a median.
PyObject *select_axis(const char *name, Array &given, int axis, bool keepdims, int64_t rank) {
    Ref wide = in_order(given);
    Array &x = *wide;
    const Rows rows(x, axis);
    check_rows(name, rows);
    if (!rows.n) fail(PyExc_IndexError, "%s: expected at least one element along the axis; got none", name);
    int64_t shape[MAX_NDIM];
    int ndim = 0;
    for (int i = 0; i < x.ndim; i++)
        if (i != axis || keepdims) shape[ndim++] = i == axis ? 1 : x.shape()[i];
    Ref values = make(x.dtype, ndim, shape), order = make(I64, ndim, shape);
    if (x.size)
        with_order(x.dtype, [&](auto kind) {
            select_rows(rows, rank, values->as<decltype(kind)>(), order->as<int64_t>());
        });
    values = converted(*values, given.dtype);
    return as_tuple(values, order);
}

int axis_of(PyObject *given, const Array &x) { return x.ndim ? (given ? as_axis(given, x.ndim) : x.ndim - 1) : 0; }

// ---- searching ----

template <class T> bool precedes(T x, T y) {
    if constexpr (FLOATING<T>) return (x < y) | ((y != y) & (x == x));
    else return x < y;
}

// Where several values go in a row. Each takes the same steps, whatever it is, and they take them side by side: nothing
// waits for a guess about the order.
template <class T, bool RIGHT, int MANY> void places(const T *row, int64_t n, const T *values, int64_t *out) {
    const auto passed = [](T x, T value) { return RIGHT ? !precedes(value, x) : precedes(x, value); };
    int64_t at[MANY] = {};
    while (n > 1) {
        const int64_t step = n / 2;
        for (int i = 0; i < MANY; i++)
            at[i] += step & -static_cast<int64_t>(passed(row[at[i] + step - 1], values[i]));
        n -= step;
    }
    for (int i = 0; i < MANY; i++) out[i] = at[i] + (n == 1 && passed(row[at[i]], values[i]));
}

template <class T, bool RIGHT> void place_all(const T *row, int64_t n, const T *values, int64_t many, int64_t *out) {
    int64_t i = 0;
    for (; i + 8 <= many; i += 8) places<T, RIGHT, 8>(row, n, values + i, out + i);
    for (; i < many; i++) places<T, RIGHT, 1>(row, n, values + i, out + i);
}

template <class T> void search(const T *sorted, int64_t n, bool one, const T *values, int64_t m, int64_t total, bool right,
                               int64_t *out) {
    parallel_for(total, 2048, [&](int64_t begin, int64_t end) {
        while (begin < end) {
            const int64_t stop = one ? end : (begin / m + 1) * m, many = (stop < end ? stop : end) - begin;
            const T *row = one ? sorted : sorted + begin / m * n;
            (right ? place_all<T, true> : place_all<T, false>)(row, n, values + begin, many, out + begin);
            begin += many;
        }
    });
}

}  // namespace

void best_axis(Array &given, int axis, bool largest, int64_t count, Ref &values, Ref &order) {
    Ref wide = in_order(given);
    Array &x = *wide;
    const Rows rows(x, axis);
    check_rows("topk", rows);
    int64_t shape[MAX_NDIM];
    for (int i = 0; i < x.ndim; i++) shape[i] = i == axis ? count : x.shape()[i];
    values = make(x.dtype, x.ndim, shape);
    order = make(I64, x.ndim, shape);
    if (!count || !x.size) {
        values = converted(*values, given.dtype);
        return;
    }
    with_order(x.dtype, [&](auto kind) {
        using T = decltype(kind);
        best_rows<T>(rows, largest, count, values->as<T>(), order->as<int64_t>());
    });
    values = converted(*values, given.dtype);
}

PyObject *kthvalue(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<4> N{"kthvalue", {"x", "nth", "axis", "keepdims"}, 2};
    PyObject *a[4];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    const int axis = axis_of(a[2], x);
    const int64_t nth = as_int(a[1]), size = x.ndim ? x.shape()[axis] : 1;
    if (nth < 1 || nth > size)
        fail(PyExc_RuntimeError, "kthvalue: expected a rank from 1 to %lld; got %lld", static_cast<long long>(size),
             static_cast<long long>(nth));
    return select_axis("kthvalue", x, axis, as_bool(a[3]), nth - 1);
}

PyObject *median(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<4> N{"median", {"x", "axis", "keepdims", "ignore_nan"}, 1};
    PyObject *a[4];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    const int axis = axis_of(a[1], x);
    return select_axis("median", x, axis, as_bool(a[2]), as_bool(a[3]) ? MEDIAN_OF_NUMBERS : MEDIAN);
}

PyObject *searchsorted(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<3> N{"searchsorted", {"sorted", "values", "side"}, 2};
    PyObject *a[3];
    arguments(N, args, n, names, a);
    Ref sorted = contiguous(as_array(a[0])), values = contiguous(as_array(a[1]));
    bool fits = sorted->dtype == values->dtype && !is_complex(sorted->dtype) && sorted->ndim >= 1;
    const bool one = fits && sorted->ndim == 1, right = a[2] && PyUnicode_CompareWithASCIIString(a[2], "right") == 0;
    if (fits && !one) fits = sorted->ndim == values->ndim;
    for (int i = 0; fits && !one && i < sorted->ndim - 1; i++) fits = sorted->shape()[i] == values->shape()[i];
    if (!fits) fail(PyExc_RuntimeError, "searchsorted: expected one row, or a row for each leading index, in the dtype of the values");
    Ref out = make_like(*values, I64);
    if (!out->size) return out.release();
    sorted = in_order(*sorted);
    values = in_order(*values);
    const int64_t size = sorted->shape()[sorted->ndim - 1], m = values->ndim ? values->shape()[values->ndim - 1] : 1;
    with_order(sorted->dtype, [&](auto kind) {
        using T = decltype(kind);
        Unlocked free(10 * out->size);
        search<T>(sorted->as<T>(), size, one, values->as<T>(), m, out->size, right, out->as<int64_t>());
    });
    return out.release();
}

}  // namespace mortice
