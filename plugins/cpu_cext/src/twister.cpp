// MT19937 as core's backends/mt19937.py draws from it: its position is a bytearray of 624 words and the place of the next.
#include <cmath>
#include <utility>

#include "families.hpp"
#include "kernels/twister.hpp"

namespace mortice {

namespace {

constexpr int64_t WORDS = 624;

struct Twister {
    uint32_t *words;
    explicit Twister(PyObject *x) : words(nullptr) {
        if (!PyByteArray_Check(x) || PyByteArray_GET_SIZE(x) != 4 * (WORDS + 1)) fail(PyExc_TypeError, "twister: expected its 2500 bytes.");
        words = reinterpret_cast<uint32_t *>(PyByteArray_AS_STRING(x));
        if (words[WORDS] > WORDS) fail(PyExc_ValueError, "twister: expected a place from 0 to 624; got %u.", words[WORDS]);
    }
    void take(uint32_t *out, int64_t n) {
        while (n) {
            if (words[WORDS] == WORDS) {
                twister_kernels().twist(words);
                words[WORDS] = 0;
            }
            const int64_t m = n < WORDS - words[WORDS] ? n : WORDS - words[WORDS];
            twister_kernels().temper(words + words[WORDS], m, out);
            words[WORDS] += static_cast<uint32_t>(m);
            out += m, n -= m;
        }
    }
    // Call use(words, m, i) for m numbers of so many words each, from number i on, until it has been n.
    template <int EACH, class F> void parts(int64_t n, F &&use) {
        uint32_t room[WORDS];
        const Unlocked free(n);
        for (int64_t i = 0; i < n; i += WORDS / EACH) {
            const int64_t m = n - i < WORDS / EACH ? n - i : WORDS / EACH;
            take(room, EACH * m);
            use(room, m, i);
        }
    }
    // Call each(i, its words).
    template <int EACH, class F> void numbers(int64_t n, F &&each) {
        parts<EACH>(n, [=](const uint32_t *w, int64_t m, int64_t i) {
            for (const int64_t end = i + m; i < end; i++, w += EACH) each(i, w);
        });
    }
    void uniform(float *out, int64_t n, float low = 0, float high = 1) {
        parts<1>(n, [=](const uint32_t *w, int64_t m, int64_t i) { twister_kernels().uniform_f32(w, m, out + i, low, high - low); });
    }
    void uniform(double *out, int64_t n, double low = 0, double high = 1) {
        parts<2>(n, [=](const uint32_t *w, int64_t m, int64_t i) { twister_kernels().uniform_f64(w, m, out + i, low, high - low); });
    }
};

struct Shape {
    int64_t sizes[MAX_NDIM];
    int ndim;
    explicit Shape(PyObject *x) : ndim(as_ints(x, sizes, MAX_NDIM)) {}
};

PyObject *start(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<2> N{"twister_start", {"state", "seed"}, 2};
    PyObject *a[2];
    arguments(N, args, n, names, a);
    uint32_t *words = Twister(a[0]).words;
    words[0] = static_cast<uint32_t>(as_int(a[1]));
    for (uint32_t i = 1; i < WORDS; i++) words[i] = 1812433253U * (words[i - 1] ^ (words[i - 1] >> 30)) + i;
    words[WORDS] = WORDS;
    return Py_NewRef(Py_None);
}

PyObject *bytes(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<2> N{"twister_bytes", {"state", "count"}, 2};
    PyObject *a[2];
    arguments(N, args, n, names, a);
    Twister twister(a[0]);
    const int64_t count = as_int(a[1]);
    if (count < 0 || count % 4) fail(PyExc_ValueError, "twister_bytes: expected a number of bytes in whole words.");
    Own<> made(PyBytes_FromStringAndSize(nullptr, count));
    if (!made) throw Failed{};
    twister.take(reinterpret_cast<uint32_t *>(PyBytes_AS_STRING(made.get())), count / 4);  // its elements lie at a multiple of 4
    return made.release();
}

void normals(float *at, int64_t blocks) { twister_kernels().normal_blocks(at, blocks); }
// The C library's functions: PyTorch asks them too.
void normals(double *at, int64_t blocks) {
    for (; blocks; blocks--, at += 16)
        for (int i = 0; i < 8; i++) {
            const double radius = std::sqrt(-2 * std::log(1 - at[i])), angle = 2 * 3.14159265358979323846 * at[i + 8];
            at[i] = radius * std::cos(angle);
            at[i + 8] = radius * std::sin(angle);
        }
}

// With `normal` of 16 numbers or more: blocks of 16; where that does not divide their number the last 16 are drawn once more.
template <bool NORMAL> PyObject *floats(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<5> N{NORMAL ? "twister_normal" : "twister_uniform", {"state", "shape", "dtype", "low", "high"}, NORMAL ? 3 : 5};
    PyObject *a[5];
    arguments(N, args, n, names, a);
    Twister twister(a[0]);
    const Shape shape(a[1]);
    const DType d = as_dtype(a[2]);
    if (!is_float(d)) fail(PyExc_TypeError, "%s: expected a floating point dtype; got %s", N.function, DTYPE_NAMES[d]);
    Ref out = make(d == F64 ? F64 : F32, shape.ndim, shape.sizes);
    const double low = NORMAL ? 0 : as_double(a[3]), high = NORMAL ? 1 : as_double(a[4]);
    const auto draw = [&](auto *at) {
        if (!NORMAL) return twister.uniform(at, out->size, low, high);
        twister.uniform(at, out->size);
        normals(at, out->size / 16);
        if (out->size % 16 == 0) return;
        twister.uniform(at + out->size - 16, 16);
        normals(at + out->size - 16, 1);
    };
    if (NORMAL && out->size < 16) fail(PyExc_ValueError, "twister_normal: expected 16 numbers or more.");
    if (d == F64)
        draw(out->as<double>());
    else
        draw(out->as<float>());
    return converted(*out, d).release();
}

PyObject *integers(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<5> N{"twister_integers", {"state", "shape", "low", "count", "one_word"}, 5};
    PyObject *a[5];
    arguments(N, args, n, names, a);
    Twister twister(a[0]);
    const Shape shape(a[1]);
    const uint64_t low = PyLong_AsUnsignedLongLongMask(a[2]);
    const uint64_t count = PyErr_Occurred() ? 0 : PyLong_AsUnsignedLongLongMask(a[3]);  // 2^64 counts as 0
    if (PyErr_Occurred()) throw Failed{};
    Ref out = make(I64, shape.ndim, shape.sizes);
    auto *at = out->as<uint64_t>();
    if (as_bool(a[4]) && count && count <= UINT32_MAX)
        twister.numbers<1>(out->size, [=, few = static_cast<uint32_t>(count)](int64_t i, const uint32_t *w) { at[i] = low + w[0] % few; });
    else if (as_bool(a[4]))
        twister.numbers<1>(out->size, [=](int64_t i, const uint32_t *w) { at[i] = low + w[0]; });
    else
        twister.numbers<2>(out->size, [=](int64_t i, const uint32_t *w) {
            const uint64_t word = static_cast<uint64_t>(w[0]) << 32 | w[1];
            at[i] = low + (count ? word % count : word);
        });
    return out.release();
}

PyObject *permutation(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<2> N{"twister_permutation", {"state", "n"}, 2};
    PyObject *a[2];
    arguments(N, args, n, names, a);
    Twister twister(a[0]);
    Ref out = make(I64, {as_int(a[1])});
    auto *at = out->as<int64_t>();
    const int64_t size = out->size;
    for (int64_t i = 0; i < size; i++) at[i] = i;
    twister.numbers<1>(size - 1, [=](int64_t i, const uint32_t *w) {
        const int64_t left = size - i;  // a quotient of 32 bits is found several times as fast as one of 64
        std::swap(at[i], at[i + (left > UINT32_MAX ? w[0] : w[0] % static_cast<uint32_t>(left))]);
    });
    return out.release();
}

// As `log_gammas` of core's engine, in the functions of the C library that Python's math asks too.
PyObject *log_gammas(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<3> N{"twister_log_gammas", {"state", "shapes", "kept"}, 3};
    PyObject *a[3];
    arguments(N, args, n, names, a);
    Twister twister(a[0]);
    double kept = a[2] == Py_None ? 0 : as_double(a[2]);
    bool has = a[2] != Py_None;
    const auto uniform = [&] {
        double u;
        twister.uniform(&u, 1);
        return u;
    };
    const auto normal = [&] {
        if (std::exchange(has, !has)) return kept;
        const double turn = uniform(), radius = std::sqrt(-2 * std::log1p(-uniform())), angle = 2 * 3.14159265358979323846 * turn;
        kept = radius * std::sin(angle);
        return radius * std::cos(angle);
    };
    if (!PyList_Check(a[1])) fail(PyExc_TypeError, "twister_log_gammas: expected a list of shapes.");
    const Py_ssize_t count = PyList_GET_SIZE(a[1]);
    Own<> made(PyList_New(count));
    if (!made) throw Failed{};
    for (Py_ssize_t i = 0; i < count; i++) {
        double shape = as_double(PyList_GET_ITEM(a[1], i)), result = shape == 0 ? -HUGE_VAL : NAN;
        if (shape > 0 && shape < HUGE_VAL) {
            double power = 0;
            if (shape < 1) power = std::log(1 - uniform()) / shape, shape += 1;
            const double d = shape - 0.3333333432674408, c = 1 / std::sqrt(9 * d);
            for (;;) {
                const double x = normal(), edge = 1 + c * x;
                if (edge <= 0) continue;
                const double v = std::pow(edge, 3.0), u = 1 - uniform();
                if (!(std::log(u) < 0.5 * x * x + d * (1 - v + std::log(v)))) continue;
                result = power + std::log(d * v);
                break;
            }
        }
        PyObject *item = PyFloat_FromDouble(result);
        if (!item) throw Failed{};
        PyList_SET_ITEM(made.get(), i, item);
    }
    PyObject *pair = has ? Py_BuildValue("Nd", made.release(), kept) : Py_BuildValue("NO", made.release(), Py_None);
    if (!pair) throw Failed{};
    return pair;
}

}  // namespace

const Method twister_methods[] = {
    MORTICE_METHOD("_twister_start", start),
    MORTICE_METHOD("_twister_bytes", bytes),
    MORTICE_METHOD("_twister_uniform", floats<false>),
    MORTICE_METHOD("_twister_normal", floats<true>),
    MORTICE_METHOD("_twister_integers", integers),
    MORTICE_METHOD("_twister_permutation", permutation),
    MORTICE_METHOD("_twister_log_gammas", log_gammas),
    {},
};

}  // namespace mortice
