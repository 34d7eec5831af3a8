// Random kernels: draws from the Philox stream, in parts on several threads.
#include <cmath>

#include "families.hpp"
#include "kernels/random.hpp"
#include "parallel.hpp"
#include "sort.hpp"
#include "sort_keys.hpp"

namespace mortice {

const double NORMAL_PIECES[10][16] = {
    {2.59482270984026, 2.82157631866807, 3.06759834766983, 3.30335236388063, 3.55541150994435, 3.79373397081256,
     4.0455102940464, 4.28109077465046, 4.52776850371709, 4.75687907521025, 4.99536057723941, 5.21583223361569,
     5.44452880403276, 5.65543662341464, 5.87386740235838, 6.07513254759692},
    {-0.379772121442722, -0.545956654571141, -0.397827685947476, -0.563495071029256, -0.404699220338954,
     -0.566197587773102, -0.401972669992891, -0.557127957190923, -0.392238250275208, -0.540138232286263,
     -0.378219253671837, -0.518801616948644, -0.362185114831758, -0.495849764295934, -0.34573457987614,
     -0.473072945655745},
    {0.118297373164329, 0.233111270782873, 0.118746836193035, 0.231019014611756, 0.116326325231839,
     0.224284798941436, 0.112087923155293, 0.214958831558257, 0.106995636740133, 0.20468779328126,
     0.101735118328682, 0.194525709515538, 0.0966998645519778, 0.185015195393792, 0.0920666984776137,
     0.17636046200185},
    {-0.0456666080977694, -0.124676074545901, -0.0449203600872353, -0.121376496005921, -0.0433509892128765,
     -0.116405866616442, -0.0413795550119625, -0.110788276147409, -0.0393135334786959, -0.105187181272678,
     -0.0373293958667967, -0.0999411498984841, -0.0355051947592217, -0.0951749756065967, -0.0338613754807805,
     -0.0909000080422367},
    {0.0195334870917939, 0.074213691068919, 0.0189973597089147, 0.071577426669752, 0.0182012593033379,
     0.0682764032681236, 0.0173098969119041, 0.0648326348008931, 0.0164272588434541, 0.0615386357843997,
     0.0156044676209205, 0.0585189568836297, 0.0148591026129951, 0.0558028584608897, 0.0141916190110669,
     0.0533754202744075},
    {-0.00887359689154162, -0.0470193487155557, -0.00856943280508466, -0.0451005790164834, -0.00817776981553648,
     -0.0429040702102902, -0.00776483932665051, -0.0407088077163716, -0.00736819477463927, -0.0386545211694026,
     -0.00700403924482552, -0.0367910828947173, -0.00667640316671026, -0.0351221192971642, -0.00638366495512557,
     -0.0336318753058275},
    {0.00419138677953883, 0.030960383699573, 0.00402879929521069, 0.0295940204902627, 0.00383561981972745,
     0.0281115686845178, 0.00363935259975669, 0.0266685842232304, 0.00345429897358748, 0.0253358770216388,
     0.00328591011707952, 0.0241341204869032, 0.00313495477234298, 0.0230599670587149, 0.00300018876512502,
     0.0221008541782066},
    {-0.00203656797355183, -0.0210051490951349, -0.00195113768204981, -0.0200306783007504, -0.001854838180189,
     -0.0190110426557424, -0.00175941127249509, -0.0180362319819763, -0.00167056234201785, -0.0171437238765772,
     -0.00159015914052674, -0.0163418987007856, -0.0015182359615184, -0.0156259766907567, -0.0014540424173268,
     -0.0149865649193568},
    {0.00105331966891173, 0.0158374474470884, 0.00100661663430534, 0.0150763902993174, 0.000955999927195406,
     0.0143026555578133, 0.000906779813309077, 0.0135732961948451, 0.000861378746516533, 0.0129098661391089,
     0.00082045284091501, 0.0123153210854361, 0.000783894386254614, 0.0117846888164102, 0.000751262512832428,
     0.0113104606580753},
    {-0.000534832932208096, -0.0113266585863446, -0.0005104061022068, -0.0107758252211848, -0.000484536798400265,
     -0.0102256258661187, -0.000459789558053316, -0.00971115483674248, -0.000436974704186963, -0.00924465250140054,
     -0.000416562576710117, -0.00882678824997349, -0.000398293769099398, -0.0084535495681065,
     -0.000381946993158302, -0.00811944076366995},
};

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

PyObject *count_terms(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<4> N{"count_terms", {"number", "first", "odds", "trials"}, 3};
    PyObject *a[4];
    arguments(N, args, n, names, a);
    Ref given[4];
    const double *at[4] = {};
    for (int i = 0; i < 4; i++) {
        Array *x = as_optional(a[i]);
        if (!x) continue;
        given[i] = contiguous(*x), at[i] = given[i]->as<double>();
        if (x->dtype != F64 || x->size != given[0]->size) fail(PyExc_TypeError, "count_terms: expected float64 arrays of one size.");
    }
    Ref out = make_like(*given[0]);
    auto *to = out->as<double>();
    in_parts(out->size, [&](int64_t i, int64_t m) {
        random_kernels().terms(at[0] + i, at[1] + i, at[2] + i, at[3] ? at[3] + i : nullptr, m, to + i);
    });
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
    MORTICE_METHOD("count_terms", count_terms),
    {},
};

}  // namespace mortice
