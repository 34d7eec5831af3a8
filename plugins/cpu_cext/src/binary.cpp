// Elementwise kernels of two and three operands: arrays or Python numbers, broadcast.
#include "kernels/binary.hpp"

#include <cstring>

#include "families.hpp"
#include "grid.hpp"
#include "kernels/convert.hpp"
#include "loop.hpp"
#include "parallel.hpp"
#include "repeat.hpp"

namespace mortice {

namespace {

enum Gives : uint8_t { THE_SAME, TRUTH, JOINED };

struct Kind {
    const char *name;
    Gives gives;
    float cost;  // nanoseconds for an element of 4 bytes
};

constexpr Kind KINDS[ALL_BINARY_OPS] = {
    {"add", THE_SAME, 0.4f}, {"subtract", THE_SAME, 0.4f}, {"multiply", THE_SAME, 0.4f}, {"divide", THE_SAME, 0.5f},
    {"maximum", THE_SAME, 0.4f}, {"minimum", THE_SAME, 0.4f}, {"bitwise_and", THE_SAME, 0.4f}, {"bitwise_or", THE_SAME, 0.4f},
    {"bitwise_xor", THE_SAME, 0.4f}, {"bitwise_left_shift", THE_SAME, 0.5f}, {"bitwise_right_shift", THE_SAME, 0.5f},
    {"copysign", THE_SAME, 0.4f}, {"rdivide", THE_SAME, 0.5f},
    {"equal", TRUTH, 0.3f}, {"not_equal", TRUTH, 0.3f}, {"less", TRUTH, 0.3f}, {"less_equal", TRUTH, 0.3f},
    {"logical_and", TRUTH, 0.3f}, {"logical_or", TRUTH, 0.3f}, {"logical_xor", TRUTH, 0.3f}, {"complex", JOINED, 0.5f},
    {"floor_divide", THE_SAME, 3}, {"remainder", THE_SAME, 3}, {"fmod", THE_SAME, 3}, {"pow", THE_SAME, 10},
    {"hypot", THE_SAME, 1}, {"atan2", THE_SAME, 10}, {"logaddexp", THE_SAME, 10}, {"logaddexp2", THE_SAME, 10},
    {"nextafter", THE_SAME, 1}, {"gcd", THE_SAME, 30}, {"lcm", THE_SAME, 30}, {"floordiv", THE_SAME, 3},
};

// ---- half precision: blocks of floats ----

constexpr int64_t BLOCK = 512;
constexpr int MAX_INPUTS = 4;

struct HalfWork {
    Inner inner, widen, narrow;  // narrow is nullptr where the result is no half
    int inputs;
    bool wide[MAX_INPUTS];       // a number: a float already
    int64_t out_size;
};

void in_floats(char *const *at, const int64_t *step, int64_t n, const void *extra) {
    const HalfWork &work = *static_cast<const HalfWork *>(extra);
    alignas(64) float rooms[MAX_INPUTS + 1][BLOCK];
    char *here[MAX_INPUTS + 1];
    int64_t steps[MAX_INPUTS + 1];
    for (int64_t k = 0; k < n; k += BLOCK) {
        const int64_t m = n - k < BLOCK ? n - k : BLOCK;
        for (int i = 0; i < work.inputs; i++) {
            const bool wide = work.wide[i], once = step[i + 1] == 0;
            here[i + 1] = wide ? at[i + 1] : reinterpret_cast<char *>(rooms[i]);
            steps[i + 1] = once ? 0 : sizeof(float);
            if (wide || (once && k)) continue;
            char *ends[2] = {here[i + 1], at[i + 1] + k * step[i + 1]};
            const int64_t moves[2] = {sizeof(float), step[i + 1]};
            work.widen(ends, moves, once ? 1 : m, nullptr);
        }
        here[0] = work.narrow ? reinterpret_cast<char *>(rooms[MAX_INPUTS]) : at[0] + k * step[0];
        steps[0] = work.narrow ? int64_t{sizeof(float)} : step[0];
        work.inner(here, steps, m, nullptr);
        if (!work.narrow) continue;
        char *ends[2] = {at[0] + k * step[0], here[0]};
        const int64_t moves[2] = {step[0], sizeof(float)};
        work.narrow(ends, moves, m, nullptr);
    }
}

// ---- running ----

struct Work {
    const char *name;
    DType in, out;
    float cost;
    Inner inner;
    const void *extra;
    HalfWork half;
    bool swapped = false;  // the operands came the other way round; the first to come decides how the result lies
};

// Complete the work: by `inner` of the dtype, or by `single`, that of float32, where halves have none.
void choose(Work &w, Inner inner, Inner single, int inputs) {
    w.inner = inner;
    w.extra = inner && single && is_half(w.in) ? w.half.wide : nullptr;
    if (inner) return;
    if (!is_half(w.in) || !single) fail(PyExc_TypeError, "%s: dtype %s is not supported.", w.name, DTYPE_NAMES[w.in]);
    w.half = {single, convert().inner[w.in][F32], w.out == w.in ? convert().inner[F32][w.in] : nullptr, inputs, {}, 0};
    w.inner = in_floats;
    w.extra = &w.half;
    w.cost *= 2;
}

struct Input {
    Array *array;  // nullptr for a number
    Scalar number;
};

// Numbers beside halves are floats in arithmetic, so that they are not rounded twice.
void read(Work &w, Input &input, PyObject *x, int i) {
    const bool wide = !is_array(x) && w.extra && w.out != BOOL;
    w.half.wide[i] = wide;
    if (is_array(x)) {
        input.array = reinterpret_cast<Array *>(x);
        return;
    }
    input.array = nullptr;
    input.number = as_scalar(x, wide ? F32 : w.in);
}

__attribute__((noinline)) void run_parts(const Work &w, char *const *at, const int64_t *step, int count, int64_t n) {
    const auto grain = static_cast<int64_t>(16384 / w.cost);
    Unlocked unlocked(n);
    parallel_for(n, grain, [&](int64_t begin, int64_t end) {
        char *here[MAX_OPERANDS];
        for (int i = 0; i < count; i++) here[i] = at[i] + begin * step[i];
        w.inner(here, step, end - begin, w.extra);
    });
}

// Small arrays at once, others in parts on several threads.
void run_line(const Work &w, char *const *at, const int64_t *step, int count, int64_t n) {
    if (static_cast<float>(n) * w.cost >= 16384) return run_parts(w, at, step, count, n);
    if (n) w.inner(at, step, n, w.extra);
}

// Whether x lies across its axes in a way that copying turns round faster than lines could walk over it.
bool turns_well(const Array &x) {
    if (x.contiguous || x.ndim < 2 || (x.itemsize() != 4 && x.itemsize() != 8)) return false;
    if (x.size < 64 || x.bytes() > int64_t{1} << 28 || x.shape()[x.ndim - 1] < 8) return false;
    const int64_t last = x.strides()[x.ndim - 1];
    if (last >= -1 && last <= 1) return false;
    for (int axis = 0; axis < x.ndim - 1; axis++)
        if (x.strides()[axis] == 1 && x.shape()[axis] >= 8) return true;
    return false;
}

Ref run_any(const Work &w, Input *inputs, int count) {
    Inner inner = w.inner;
    const void *extra = w.extra;
    const Array *arrays[MAX_INPUTS];
    int n = 0;
    for (int i = 0; i < count; i++)
        if (inputs[i].array) arrays[n++] = inputs[i].array;
    if (w.swapped && n == 2) std::swap(arrays[0], arrays[1]);
    int64_t shape[MAX_NDIM];
    const int ndim = broadcast_shapes(arrays, n, shape);
    bool over;
    Ref out = result_of(ndim, shape, w.out, arrays, n, over);
    const Over written = {inner, extra, count + 1, out->itemsize()};
    if (over) inner = inner_over, extra = &written;
    Ref turned[MAX_INPUTS];
    for (int i = 0; i < count && out->contiguous; i++)
        if (inputs[i].array && same_shape(*inputs[i].array, *out) && turns_well(*inputs[i].array)) {
            turned[i] = contiguous(*inputs[i].array);
            inputs[i].array = turned[i].get();
        }
    Repeated in[MAX_INPUTS];
    bool short_runs = out->contiguous;
    for (int i = 0; i < count && short_runs; i++)
        short_runs = inputs[i].array ? repeated(*inputs[i].array, ndim, shape, in[i])
                                     : repeated_number(inputs[i].number.bytes, in[i]);
    if (short_runs && worth_repeating(in, count, out->size)) {
        run_repeated(*out, in, count, inner, extra, w.cost);
        return out;
    }
    Operand operands[MAX_INPUTS + 1] = {operand(*out)};
    for (int i = 0; i < count; i++)
        operands[i + 1] = inputs[i].array ? operand(*inputs[i].array) : operand(inputs[i].number, w.in);
    walk(ndim, shape, operands, count + 1, inner, extra, w.cost);
    return out;
}

// Broadcast the inputs and run. Where all are row-major and of one shape, or of one element, they are one line.
PyObject *run(const Work &w, Input *inputs, int count) {
    const Array *lead = nullptr;
    for (int i = 0; i < count; i++)
        if (const Array *x = inputs[i].array; x && (!lead || x->size > lead->size)) lead = x;
    if (!lead) fail(PyExc_TypeError, "%s: expected an array of this backend among the operands.", w.name);
    char *at[MAX_INPUTS + 1];
    int64_t step[MAX_INPUTS + 1];
    bool line = lead->contiguous;
    for (int i = 0; i < count && line; i++) {
        const Array *x = inputs[i].array;
        at[i + 1] = x ? x->data : const_cast<char *>(inputs[i].number.bytes);
        step[i + 1] = 0;
        if (!x || (x->size == 1 && x->ndim <= lead->ndim)) continue;
        step[i + 1] = x->itemsize();
        line = x->contiguous && same_shape(*x, *lead);
    }
    if (!line) return run_any(w, inputs, count).release();
    bool over = false;
    Ref out;
    if (into_calls) {
        const Array *arrays[MAX_INPUTS];
        int n = 0;
        for (int i = 0; i < count; i++)
            if (inputs[i].array) arrays[n++] = inputs[i].array;
        out = result_like(*lead, w.out, arrays, n, over);
    } else {
        out = make_like(*lead, w.out);
    }
    at[0] = out->data;
    step[0] = out->itemsize();
    if (over) {
        const Over written = {w.inner, w.extra, count + 1, out->itemsize()};
        Work again = w;
        again.inner = inner_over, again.extra = &written;
        run_line(again, at, step, count + 1, out->size);
    } else {
        run_line(w, at, step, count + 1, out->size);
    }
    return out.release();
}

[[noreturn]] void differ(const char *name, DType a, DType b) {
    fail(PyExc_TypeError, "%s: expected operands of one dtype; got %s and %s. Convert one.", name, DTYPE_NAMES[a], DTYPE_NAMES[b]);
}

DType common(const char *name, PyObject *const *xs, int count) {
    int found = DTYPES;
    for (int i = 0; i < count; i++) {
        if (!xs[i] || !is_array(xs[i])) continue;
        DType d = reinterpret_cast<Array *>(xs[i])->dtype;
        if (found != DTYPES && found != d) differ(name, static_cast<DType>(found), d);
        found = d;
    }
    if (found == DTYPES) fail(PyExc_TypeError, "%s: expected an array of this backend among the operands.", name);
    return static_cast<DType>(found);
}

Inner inner_of(BinaryOp op, DType d) {
    return op < BINARY_OPS ? binary().two[op][d] : binary_math().two[op - BINARY_OPS][d];
}

PyObject *two(BinaryOp op, PyObject *x, PyObject *y, int swapped = 0) {
    PyObject *const xs[2] = {x, y};
    const Kind &kind = KINDS[op];
    Work w;
    w.name = kind.name;
    w.in = common(w.name, xs, 2);
    w.out = kind.gives == THE_SAME ? w.in : kind.gives == TRUTH ? BOOL : complex_with(w.in);
    w.cost = kind.cost;
    w.swapped = swapped;
    choose(w, inner_of(op, w.in), op == NEXTAFTER ? nullptr : inner_of(op, F32), 2);
    Input inputs[2];
    read(w, inputs[swapped], x, swapped);
    read(w, inputs[1 - swapped], y, 1 - swapped);
    return run(w, inputs, 2);
}

template <BinaryOp op, int swapped = 0> PyObject *call(PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
    if (n == 2 && !kwnames) return two(op, args[0], args[1], swapped);
    static Names<2> N{KINDS[op].name, {"x", "y"}, 2};
    PyObject *a[2];
    arguments(N, args, n, kwnames, a);
    return two(op, a[0], a[1], swapped);
}
// The same under other names.
#define CALL_WITH(function, op, first, second)                                               \
    PyObject *function(PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {             \
        static Names<2> N{KINDS[op].name, {first, second}, 2};                               \
        PyObject *a[2];                                                                      \
        arguments(N, args, n, kwnames, a);                                                   \
        return two(op, a[0], a[1]);                                                          \
    }
CALL_WITH(atan2_, ATAN2, "y", "x")
CALL_WITH(complex_, COMPLEX, "re", "im")
#undef CALL_WITH

// Logic may be asked of operands of different dtypes: of each only the truth counts.
PyObject *logic_of_truths(BinaryOp op, PyObject *const (&a)[2]) {
    Own<> truths[2];
    for (int i = 0; i < 2; i++) {
        if (is_array(a[i])) {
            truths[i] = Own<>(converted(as_array(a[i]), BOOL).release());
        } else {
            const int truth = PyObject_IsTrue(a[i]);
            if (truth < 0) throw Failed{};
            truths[i] = Own<>(Py_NewRef(truth ? Py_True : Py_False));
        }
    }
    return two(op, truths[0].get(), truths[1].get());
}
template <BinaryOp op> PyObject *logic(PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
    static Names<2> N{KINDS[op].name, {"x", "y"}, 2};
    PyObject *a[2];
    arguments(N, args, n, kwnames, a);
    const bool mixed = is_array(a[0]) != is_array(a[1]) || (is_array(a[0]) && as_array(a[0]).dtype != as_array(a[1]).dtype);
    return mixed ? logic_of_truths(op, a) : two(op, a[0], a[1]);
}

// Complex numbers are left to the default bodies.
template <BinaryOp op> PyObject *real_only(PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
    static Names<2> N{KINDS[op].name, {"x", "y"}, 2};
    PyObject *a[2];
    arguments(N, args, n, kwnames, a);
    if (is_complex(common(KINDS[op].name, a, 2))) return default_body();
    return two(op, a[0], a[1]);
}

// ---- three operands ----

constexpr int LOG_SIZE[17] = {0, 0, 1, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4};

PyObject *where(PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
    static Names<3> N{"where", {"cond", "x", "y"}, 3};
    PyObject *a[3];
    arguments(N, args, n, kwnames, a);
    Ref truth = converted(as_array(a[0]), BOOL);
    Work w;
    w.name = "where";
    w.in = w.out = common("where", a + 1, 2);
    w.cost = 0.4f;
    w.extra = nullptr;
    w.inner = binary().where[LOG_SIZE[ITEMSIZE[w.in]]];
    Input inputs[3];
    inputs[0].array = truth.get();
    read(w, inputs[1], a[1], 1);
    read(w, inputs[2], a[2], 2);
    return run(w, inputs, 3);
}

// An op of several operands of one dtype. The one that is not given is 1.
PyObject *several(const char *name, const Inner (&table)[DTYPES], PyObject **a, int count) {
    Work w;
    w.name = name;
    w.in = w.out = common(name, a, count);
    w.cost = 0.5f;
    choose(w, table[w.in], table[F32], count);
    Own<> one(PyLong_FromLong(1));
    Input inputs[MAX_INPUTS];
    for (int i = 0; i < count; i++) read(w, inputs[i], a[i] ? a[i] : one.get(), i);
    return run(w, inputs, count);
}

// Halves are rounded in between.
PyObject *rdivide(PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
    static Names<2> N{"rdivide", {"x", "y"}, 2};
    PyObject *a[2];
    arguments(N, args, n, kwnames, a);
    if (inner_of(RDIVIDE, common("rdivide", a, 2))) return two(RDIVIDE, a[0], a[1]);
    const Alone alone;
    const Own<> one(PyLong_FromLong(1)), inverse(two(DIVIDE, one.get(), a[1]));
    if (!inverse) throw Failed{};
    return two(MULTIPLY, inverse.get(), a[0]);
}

PyObject *clip(PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
    static Names<3> N{"clip", {"x", "lo", "hi"}, 1};
    PyObject *a[3];
    arguments(N, args, n, kwnames, a);
    const bool low = a[1] && a[1] != Py_None, high = a[2] && a[2] != Py_None;
    if (!low && !high) {
        Array &x = as_array(a[0]);
        Ref y = make_laid_out_like(x, x.dtype);
        assign(*y, x);
        return y.release();
    }
    if (!high) return two(MAXIMUM, a[0], a[1]);
    if (!low) return two(MINIMUM, a[0], a[2]);
    const DType d = common("clip", a, 3);
    if (is_float(d) || d == I64 || is_complex(d)) return several("clip", binary().clip, a, 3);
    const Alone alone;
    const Own<> raised(two(MAXIMUM, a[0], a[1]));
    if (!raised) throw Failed{};
    return two(MINIMUM, raised.get(), a[2]);
}

PyObject *lerp(PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
    static Names<3> N{"lerp", {"start", "end", "weight"}, 3};
    PyObject *a[3];
    arguments(N, args, n, kwnames, a);
    return several("lerp", binary().lerp, a, 3);
}

// x + value * a by b. Of numbers that have no loop of their own by one op after the other, whose results are new arrays.
PyObject *blended(const char *name, BinaryOp by, const Inner (&table)[DTYPES], PyObject **a) {
    if (is_float(common(name, a, 4))) return several(name, table, a, 4);
    const Alone alone;
    Own<> part(!a[3]                                ? Py_NewRef(a[1])
               : is_array(a[1]) || is_array(a[3]) ? two(MULTIPLY, a[1], a[3])
                                                  : PyNumber_Multiply(a[1], a[3]));
    if (!part) throw Failed{};
    part = Own<>(is_array(part.get()) || is_array(a[2]) ? two(by, part.get(), a[2]) : PyNumber_Multiply(part.get(), a[2]));
    if (!part) throw Failed{};
    return two(ADD, a[0], part.get());
}

PyObject *addcmul(PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
    static Names<4> N{"addcmul", {"x", "a", "b", "value"}, 3};
    PyObject *a[4];
    arguments(N, args, n, kwnames, a);
    return blended("addcmul", MULTIPLY, binary().addcmul, a);
}

PyObject *addcdiv(PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
    static Names<4> N{"addcdiv", {"x", "a", "b", "value"}, 3};
    PyObject *a[4];
    arguments(N, args, n, kwnames, a);
    return blended("addcdiv", DIVIDE, binary().addcdiv, a);
}

// ---- products of vectors of three ----

template <class T> bool cross_tile(const int64_t *by, const Grid<3> &g, Array &out, const Array &x, const Array &y, const int64_t *at, const int64_t *sizes) {
    const int64_t p = by[1], q = by[2], r = by[0];
    const int outer = g.ndim - 2;
    for (int64_t i = 0; i < sizes[0]; i++) {
        T *o = out.as<T>() + at[0] + i * g.step[0][outer];
        const T *a = x.as<T>() + at[1] + i * g.step[1][outer], *b = y.as<T>() + at[2] + i * g.step[2][outer];
        for (int64_t j = 0; j < sizes[1]; j++) {
            const T a0 = a[0], a1 = a[p], a2 = a[2 * p], b0 = b[0], b1 = b[q], b2 = b[2 * q];
            o[0] = a1 * b2 - a2 * b1, o[r] = a2 * b0 - a0 * b2, o[2 * r] = a0 * b1 - a1 * b0;
            o += g.step[0][outer + 1], a += g.step[1][outer + 1], b += g.step[2][outer + 1];
        }
    }
    return true;
}

PyObject *cross(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<3> N{"cross", {"x", "y", "axis"}, 3};
    PyObject *a[3];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]), &y = as_array(a[1]);
    const int axis = as_axis(a[2], x.ndim);
    if (x.dtype != y.dtype || (x.dtype != F32 && x.dtype != F64) || x.ndim != y.ndim) return default_body();
    for (int i = 0; i < x.ndim; i++)
        if (x.shape()[i] != y.shape()[i] || (i == axis && x.shape()[i] != 3)) return default_body();
    Ref out = make_like(x);
    Grid<3> g;
    for (int i = 0; i < x.ndim; i++)
        if (i != axis) g.add(x.shape()[i], {out->strides()[i], x.strides()[i], y.strides()[i]});
    g.finish();
    const int64_t by[] = {out->strides()[axis], x.strides()[axis], y.strides()[axis]};
    Unlocked free(x.size);
    parallel_tiles(g, 0, x.size, [&](const int64_t *at, const int64_t *sizes) {
        return x.dtype == F32 ? cross_tile<float>(by, g, *out, x, y, at, sizes) : cross_tile<double>(by, g, *out, x, y, at, sizes);
    });
    return out.release();
}

}  // namespace

const Method binary_methods[] = {
    MORTICE_METHOD("add", call<ADD>),
    MORTICE_METHOD("subtract", call<SUBTRACT>),
    MORTICE_METHOD("multiply", call<MULTIPLY>),
    MORTICE_METHOD("divide", call<DIVIDE>),
    MORTICE_METHOD("maximum", call<MAXIMUM>),
    MORTICE_METHOD("minimum", call<MINIMUM>),
    MORTICE_METHOD("bitwise_and", call<BITWISE_AND>),
    MORTICE_METHOD("bitwise_or", call<BITWISE_OR>),
    MORTICE_METHOD("bitwise_xor", call<BITWISE_XOR>),
    MORTICE_METHOD("bitwise_left_shift", call<SHIFT_LEFT>),
    MORTICE_METHOD("bitwise_right_shift", call<SHIFT_RIGHT>),
    MORTICE_METHOD("copysign", call<COPYSIGN>),
    MORTICE_METHOD("rdivide", rdivide),
    MORTICE_METHOD("equal", call<EQUAL>),
    MORTICE_METHOD("not_equal", call<NOT_EQUAL>),
    MORTICE_METHOD("less", call<LESS>),
    MORTICE_METHOD("less_equal", call<LESS_EQUAL>),
    MORTICE_METHOD("greater", (call<LESS, 1>)),
    MORTICE_METHOD("greater_equal", (call<LESS_EQUAL, 1>)),
    MORTICE_METHOD("logical_and", logic<LOGICAL_AND>),
    MORTICE_METHOD("logical_or", logic<LOGICAL_OR>),
    MORTICE_METHOD("logical_xor", logic<LOGICAL_XOR>),
    MORTICE_METHOD("complex", complex_),
    MORTICE_METHOD("floor_divide", call<FLOOR_DIVIDE>),
    MORTICE_METHOD("remainder", call<REMAINDER>),
    MORTICE_METHOD("fmod", call<FMOD>),
    MORTICE_METHOD("pow", call<POW>),
    MORTICE_METHOD("hypot", call<HYPOT>),
    MORTICE_METHOD("partial_cross", cross),
    MORTICE_METHOD("atan2", atan2_),
    MORTICE_METHOD("partial_logaddexp", real_only<LOGADDEXP>),
    MORTICE_METHOD("logaddexp2", call<LOGADDEXP2>),
    MORTICE_METHOD("nextafter", call<NEXTAFTER>),
    MORTICE_METHOD("gcd", call<GCD>),
    MORTICE_METHOD("lcm", call<LCM>),
    MORTICE_METHOD("floordiv", call<FLOORDIV>),
    MORTICE_METHOD("where", where),
    MORTICE_METHOD("clip", clip),
    MORTICE_METHOD("lerp", lerp),
    MORTICE_METHOD("addcmul", addcmul),
    MORTICE_METHOD("addcdiv", addcdiv),
    {},
};

}  // namespace mortice
