// Random kernels: draws from the Philox stream, in parts on several threads.
#include <cmath>

#include "families.hpp"
#include "kernels/random.hpp"
#include "parallel.hpp"
#include "sort.hpp"
#include "sort_keys.hpp"

namespace mortice {

namespace {

constexpr int64_t PART = 16384;  // elements of a draw that are worth a thread

uint64_t as_word(PyObject *x, const char *what) {
    const uint64_t word = x ? PyLong_AsUnsignedLongLong(x) : 0;
    if (word == UINT64_MAX && PyErr_Occurred()) {
        PyErr_Clear();
        fail(PyExc_ValueError, "random: expected %s from 0 to 2^64 - 1; got %R", what, x);
    }
    return word;
}

struct Shape {
    int64_t sizes[MAX_NDIM];
    int ndim;
    explicit Shape(PyObject *x) : ndim(as_ints(x, sizes, MAX_NDIM)) {}
};

// Call draw(begin, n) for parts of the elements.
template <class F> void in_parts(int64_t n, F &&draw) {
    Unlocked free(8 * n);
    parallel_for(n, PART, [&](int64_t begin, int64_t end) { draw(begin, end - begin); });
}

PyObject *random_bits(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<4> N{"random_bits", {"seed", "offset", "n", "device"}, 3};
    PyObject *a[4];
    arguments(N, args, n, names, a);
    const uint64_t seed = as_word(a[0], "a seed"), offset = as_word(a[1], "an offset");
    Ref out = make(U64, {as_int(a[2])});
    uint64_t *at = out->as<uint64_t>();
    in_parts(out->size, [&](int64_t i, int64_t m) { random_kernels().bits(seed, offset + i, m, at + i); });
    return out.release();
}

enum Kind { UNIFORM, NORMAL, EXPONENTIAL };

template <Kind KIND> PyObject *floats(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<5> N{KIND == UNIFORM  ? "random_uniform"
                      : KIND == NORMAL ? "random_normal"
                                       : "random_exponential",
                      {"seed", "offset", "shape", "dtype", "device"}, 4};
    PyObject *a[5];
    arguments(N, args, n, names, a);
    const uint64_t seed = as_word(a[0], "a seed"), offset = as_word(a[1], "an offset");
    const Shape shape(a[2]);
    const DType d = as_dtype(a[3]);
    if (!is_float(d)) fail(PyExc_TypeError, "%s: expected a floating point dtype; got %s", N.function, DTYPE_NAMES[d]);
    const RandomTable &k = random_kernels();
    Ref out = make(d == F64 ? F64 : F32, shape.ndim, shape.sizes);
    if (d == F64) {
        const auto draw = KIND == UNIFORM ? k.uniform_f64 : KIND == NORMAL ? k.normal_f64 : k.exponential_f64;
        double *at = out->as<double>();
        in_parts(out->size, [&](int64_t i, int64_t m) { draw(seed, offset + i, m, at + i); });
    } else {
        float *at = out->as<float>();
        const int significant = d == F32 ? 24 : d == F16 ? 11 : 8;
        const auto draw = KIND == NORMAL ? k.normal_f32 : k.exponential_f32;
        in_parts(out->size, [&](int64_t i, int64_t m) {
            if (KIND == UNIFORM)
                k.uniform_f32(seed, offset + i, m, at + i, significant);
            else
                draw(seed, offset + i, m, at + i);
        });
    }
    return converted(*out, d).release();
}

PyObject *random_integers(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<6> N{"random_integers", {"seed", "offset", "low", "high", "shape", "device"}, 5};
    PyObject *a[6];
    arguments(N, args, n, names, a);
    const uint64_t seed = as_word(a[0], "a seed"), offset = as_word(a[1], "an offset");
    // Both may be beyond int64 by one: their difference, 2^64 for all of it, counts as 0 in 64 bits.
    const uint64_t low = PyLong_AsUnsignedLongLongMask(a[2]);
    const uint64_t high = PyErr_Occurred() ? 0 : PyLong_AsUnsignedLongLongMask(a[3]);
    if (PyErr_Occurred()) throw Failed{};
    const Shape shape(a[4]);
    Ref out = make(I64, shape.ndim, shape.sizes);
    int64_t *at = out->as<int64_t>();
    in_parts(out->size, [&](int64_t i, int64_t m) {
        random_kernels().integers(seed, offset + i, m, at + i, low, high - low);
    });
    return out.release();
}

PyObject *random_permutation(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<4> N{"random_permutation", {"seed", "offset", "n", "device"}, 3};
    PyObject *a[4];
    arguments(N, args, n, names, a);
    const uint64_t seed = as_word(a[0], "a seed"), offset = as_word(a[1], "an offset");
    Ref words = make(U64, {as_int(a[2])});
    uint64_t *at = words->as<uint64_t>();
    in_parts(words->size, [&](int64_t i, int64_t m) { random_kernels().bits(seed, offset + i, m, at + i); });
    const int64_t size = words->size;
    if (size < 2 || size >> 32) return order_of(*words, 0, false).release();
    // They are random: their leading bits tell nearly all of them apart. The few that are equal there are put in order after.
    const int width = size < 400000 ? 22 : 24;
    Scratch<uint64_t> room(static_cast<size_t>(2 * size));
    for (int64_t i = 0; i < size; i++) room[i] = at[i] >> (64 - width) << 32 | static_cast<uint64_t>(i);
    const uint64_t *sorted = sort_words(room, room + size, size, width);
    Ref out = make(I64, {size});
    auto *order = out->as<int64_t>();
    for (int64_t i = 0; i < size; i++) {
        const auto place = static_cast<int64_t>(sorted[i] & 0xffffffff);
        int64_t j = i;
        for (; j > 0 && sorted[j - 1] >> 32 == sorted[i] >> 32 && at[order[j - 1]] > at[place]; j--) order[j] = order[j - 1];
        order[j] = place;
    }
    return out.release();
}

// p where the result has its elements, as doubles: exact for every float dtype.
Ref probabilities(Array &p, const Shape &shape) {
    Ref wide = make(F64, shape.ndim, shape.sizes);
    assign(*wide, p);
    return wide;
}

PyObject *random_bernoulli(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<5> N{"random_bernoulli", {"seed", "offset", "p", "shape", "device"}, 4};
    PyObject *a[5];
    arguments(N, args, n, names, a);
    const uint64_t seed = as_word(a[0], "a seed"), offset = as_word(a[1], "an offset");
    const Shape shape(a[3]);
    Ref out = make(BOOL, shape.ndim, shape.sizes);
    auto *at = out->as<uint8_t>();
    if (is_array(a[2])) {
        Array &given = as_array(a[2]);
        if (!is_float(given.dtype)) fail(PyExc_TypeError, "random_bernoulli: expected p as floats; got %s", DTYPE_NAMES[given.dtype]);
        Ref p = probabilities(given, shape);
        const double *each = p->as<double>();
        in_parts(out->size, [&](int64_t i, int64_t m) {
            random_kernels().below_each(seed, offset + i, m, at + i, each + i);
        });
        return out.release();
    }
    const double p = as_double(a[2]);
    if (!(p < 1)) {
        memset(at, p >= 1, static_cast<size_t>(out->size));
        return out.release();
    }
    // The leading 53 bits are below a whole number where the word is below that times 2^11.
    const uint64_t limit = p > 0 ? static_cast<uint64_t>(std::ceil(p * 0x1p53)) << 11 : 0;
    in_parts(out->size, [&](int64_t i, int64_t m) { random_kernels().below(seed, offset + i, m, at + i, limit); });
    return out.release();
}

}  // namespace

const Method random_methods[] = {
    MORTICE_METHOD("random_bits", random_bits),
    MORTICE_METHOD("random_uniform", floats<UNIFORM>),
    MORTICE_METHOD("random_normal", floats<NORMAL>),
    MORTICE_METHOD("random_exponential", floats<EXPONENTIAL>),
    MORTICE_METHOD("random_integers", random_integers),
    MORTICE_METHOD("random_permutation", random_permutation),
    MORTICE_METHOD("random_bernoulli", random_bernoulli),
    {},
};

}  // namespace mortice
