// Fourier transforms of any length: small factors one after the other (Stockham's order), lengths with a large prime factor
// as a convolution (Bluestein's). Several lines go through a step together.
#include <cmath>
#include <memory>
#include <mutex>

#include "families.hpp"
#include "kernels/fft.hpp"
#include "parallel.hpp"

namespace mortice {

namespace {

// exp(-2 pi i k / n): the angle is folded into an eighth of a turn in integers, so that it is as exact as sin and cos.
void root(int64_t k, int64_t n, double *re, double *im) {
    constexpr double TURN = 6.283185307179586476925286766559;
    const int64_t eighth = 8 * k / n;  // 0..7
    int64_t rest = 8 * k - eighth * n;
    if (eighth & 1) rest = n - rest;
    const double angle = TURN / 8 * static_cast<double>(rest) / static_cast<double>(n);
    double c = std::cos(angle), s = std::sin(angle);
    if (((eighth + 1) >> 1) & 1) std::swap(c, s);
    *re = eighth >= 2 && eighth < 6 ? -c : c;
    *im = eighth < 4 ? -s : s;
}

template <class T> struct Plan {
    int64_t n;
    int steps = 0;
    int factors[64];
    Scratch<T> re, im;              // roots
    std::unique_ptr<Plan> longer;   // of the convolution, where there is one
    std::unique_ptr<Scratch<T>> chirp_re, chirp_im, kernel_re, kernel_im;

    explicit Plan(int64_t size);
    bool direct() const { return !longer; }
    // Elements of room that a line takes.
    int64_t room() const { return direct() ? 4 * n : 4 * longer->n; }
};

template <class T> void step(const FFTStep<T> &f) {
    if constexpr (sizeof(T) == 4) fft_kernels().step_f32(f);
    else fft_kernels().step_f64(f);
}

// Four buffers: where the lines are, and room.
template <class T> struct Lines {
    T *re, *im, *other_re, *other_im;
    void swap() {
        std::swap(re, other_re);
        std::swap(im, other_im);
    }
};

template <class T> void transform(const Plan<T> &plan, Lines<T> &l, int64_t lines);

template <class T> void convolve(const Plan<T> &plan, Lines<T> &l, int64_t lines) {
    const Plan<T> &longer = *plan.longer;
    const int64_t n = plan.n, m = longer.n;
    const auto multiply = [&](const T *re, const T *im, int64_t count, T scale) {
        for (int64_t i = 0; i < count; i++)
            for (int64_t b = i * lines; b < (i + 1) * lines; b++) {
                const T x = l.re[b], y = l.im[b];
                l.re[b] = (x * re[i] - y * im[i]) * scale;
                l.im[b] = (x * im[i] + y * re[i]) * scale;
            }
    };
    multiply(*plan.chirp_re, *plan.chirp_im, n, 1);
    memset(l.re + n * lines, 0, static_cast<size_t>((m - n) * lines) * sizeof(T));
    memset(l.im + n * lines, 0, static_cast<size_t>((m - n) * lines) * sizeof(T));
    transform(longer, l, lines);
    multiply(*plan.kernel_re, *plan.kernel_im, m, T(1) / static_cast<T>(m));
    // Back is forth with real and imaginary parts exchanged.
    Lines<T> back{l.im, l.re, l.other_im, l.other_re};
    transform(longer, back, lines);
    l = {back.im, back.re, back.other_im, back.other_re};
    multiply(*plan.chirp_re, *plan.chirp_im, n, 1);
}

template <class T> void transform(const Plan<T> &plan, Lines<T> &l, int64_t lines) {
    if (!plan.direct()) return convolve(plan, l, lines);
    int64_t size = plan.n, s = lines;
    for (int i = 0; i < plan.steps; i++) {
        const int64_t factor = plan.factors[i], m = size / factor;
        step<T>({l.re, l.im, l.other_re, l.other_im, factor, m, s, plan.re, plan.im, plan.n});
        l.swap();
        size = m;
        s *= factor;
    }
}

template <class T> Plan<T>::Plan(int64_t size) : n(size), re(size > 0 ? size : 1), im(size > 0 ? size : 1) {
    int64_t rest = n;
    for (int f : {4, 2, 3, 5})
        for (; rest % f == 0; rest /= f) factors[steps++] = f;
    for (int f = 7; f <= MOST_FACTOR; f += 2)
        for (; rest % f == 0; rest /= f) factors[steps++] = f;
    double c, s;
    for (int64_t k = 0; k < n; k++) {
        root(k, n, &c, &s);
        re[k] = static_cast<T>(c);
        im[k] = static_cast<T>(s);
    }
    if (rest == 1) return;
    int64_t m = 1;
    while (m < 2 * n - 1) m *= 2;
    longer = std::make_unique<Plan>(m);
    for (auto *room : {&chirp_re, &chirp_im}) *room = std::make_unique<Scratch<T>>(n);
    for (auto *room : {&kernel_re, &kernel_im}) *room = std::make_unique<Scratch<T>>(m);
    T *cr = *chirp_re, *ci = *chirp_im, *kr = *kernel_re, *ki = *kernel_im;
    memset(kr, 0, static_cast<size_t>(m) * sizeof(T));
    memset(ki, 0, static_cast<size_t>(m) * sizeof(T));
    for (int64_t k = 0; k < n; k++) {
        root(static_cast<int64_t>(static_cast<unsigned __int128>(k) * k % (2 * n)), 2 * n, &c, &s);
        cr[k] = static_cast<T>(c);
        ci[k] = static_cast<T>(s);
        kr[k] = cr[k];
        ki[k] = -ci[k];
        if (k) kr[m - k] = kr[k], ki[m - k] = ki[k];
    }
    Scratch<T> room(2 * m);
    Lines<T> lines{kr, ki, room, room + m};
    transform(*longer, lines, 1);
    if (lines.re != kr) {
        memcpy(kr, lines.re, static_cast<size_t>(m) * sizeof(T));
        memcpy(ki, lines.im, static_cast<size_t>(m) * sizeof(T));
    }
}

// The last few plans: programs transform the same lengths again and again.
template <class T> std::shared_ptr<const Plan<T>> plan_for(int64_t n) {
    constexpr int KEPT = 8;
    static std::shared_ptr<const Plan<T>> kept[KEPT];
    static int next = 0;
    static std::mutex mutex;
    {
        std::lock_guard<std::mutex> lock(mutex);
        for (auto &plan : kept)
            if (plan && plan->n == n) return plan;
    }
    auto made = std::make_shared<const Plan<T>>(n);
    if (n <= (1 << 20)) {
        std::lock_guard<std::mutex> lock(mutex);
        kept[next] = made;
        next = (next + 1) % KEPT;
    }
    return made;
}

enum Form { COMPLEX, FROM_REAL, TO_REAL };

// Transform along one axis of a row-major array: n points, of which x has `have` and the result keeps `keep`.
template <class T> struct Axis {
    const T *x;
    T *out;
    int64_t outer, n, have, keep, inner;
    Form form;
    bool back;
    T scale;
};

// Lines are interleaved in the room: a few points of each at a time, so that both sides stay in the nearest cache.
constexpr int64_t POINTS = 8;

template <class T, class F> void each_point(const Axis<T> &a, int64_t first, int64_t many, int64_t points, F &&move) {
    for (int64_t from = 0; from < points; from += POINTS) {
        const int64_t stop = points - from < POINTS ? points : from + POINTS;
        if (a.inner == 1) {
            for (int64_t b = 0; b < many; b++)
                for (int64_t i = from; i < stop; i++) move((first + b) * points + i, i * many + b);
        } else {
            for (int64_t i = from; i < stop; i++)
                for (int64_t b = 0; b < many; b++) {
                    const int64_t line = first + b;
                    move((line / a.inner * points + i) * a.inner + line % a.inner, i * many + b);
                }
        }
    }
}

template <class T> void load_lines(const Axis<T> &a, int64_t first, int64_t many, Lines<T> &l) {
    T *__restrict re = a.back ? l.im : l.re, *__restrict im = a.back ? l.re : l.im;
    const T *__restrict x = a.x;
    if (a.form == FROM_REAL)
        each_point(a, first, many, a.have, [=](int64_t at, int64_t to) { re[to] = x[at], im[to] = 0; });
    else
        each_point(a, first, many, a.have, [=](int64_t at, int64_t to) { re[to] = x[2 * at], im[to] = x[2 * at + 1]; });
    if (a.form != TO_REAL) return;
    // The other half mirrors this one; the ends are real.
    for (int64_t b = 0; b < many; b++) {
        im[b] = 0;
        if (a.n % 2 == 0) im[a.n / 2 * many + b] = 0;
    }
    for (int64_t i = a.n / 2 + 1; i < a.n; i++)
        for (int64_t b = 0; b < many; b++) {
            re[i * many + b] = re[(a.n - i) * many + b];
            im[i * many + b] = -im[(a.n - i) * many + b];
        }
}

template <class T> void store_lines(const Axis<T> &a, int64_t first, int64_t many, const Lines<T> &l) {
    const T *__restrict re = a.back ? l.im : l.re, *__restrict im = a.back ? l.re : l.im;
    T *__restrict out = a.out;
    const T scale = a.scale;
    if (a.form == TO_REAL)
        each_point(a, first, many, a.keep, [=](int64_t at, int64_t from) { out[at] = re[from] * scale; });
    else
        each_point(a, first, many, a.keep, [=](int64_t at, int64_t from) {
            out[2 * at] = re[from] * scale;
            out[2 * at + 1] = im[from] * scale;
        });
}

template <class T> void run(const Axis<T> &a) {
    const auto plan = plan_for<T>(a.n);
    const int64_t total = a.outer * a.inner, lanes = 64 / static_cast<int64_t>(sizeof(T));
    const int64_t many = a.n > (1 << 14) ? 1 : total < lanes ? total : lanes, groups = (total + many - 1) / many;
    const int64_t size = plan->room() * many + 4 * lanes, quarter = size / 4, threads = groups > 1 ? num_threads() : 1;
    Scratch<T> room(static_cast<size_t>(threads * size));
    const int64_t work = 10 * a.n * many;
    Unlocked free(work * groups);
    parallel_for(groups, work > 20000 ? 1 : 20000 / work, [&](int64_t begin, int64_t end) {
        T *mine = room + (groups > 1 ? thread_number() * size : 0);
        for (int64_t g = begin; g < end; g++) {
            const int64_t first = g * many, here = total - first < many ? total - first : many;
            Lines<T> l{mine, mine + quarter, mine + 2 * quarter, mine + 3 * quarter};
            load_lines(a, first, here, l);
            transform(*plan, l, here);
            store_lines(a, first, here, l);
        }
    });
}

// n points along an axis of x; the result is real or complex as the form says.
Ref along(Array &given, int axis, int64_t n, Form form, bool back, double scale) {
    Ref x = contiguous(given);
    const DType real = real_of(x->dtype);
    const int64_t have = x->shape()[axis], keep = form == FROM_REAL ? n / 2 + 1 : n;
    int64_t shape[MAX_NDIM];
    int64_t outer = 1, inner = 1;
    for (int i = 0; i < x->ndim; i++) {
        shape[i] = i == axis ? keep : x->shape()[i];
        if (i < axis) outer *= shape[i];
        if (i > axis) inner *= shape[i];
    }
    Ref out = make(form == TO_REAL ? real : complex_with(real), x->ndim, shape);
    if (!out->size) return out;
    if (real == F32)
        run(Axis<float>{x->as<float>(), out->as<float>(), outer, n, have, keep, inner, form, back, static_cast<float>(scale)});
    else
        run(Axis<double>{x->as<double>(), out->as<double>(), outer, n, have, keep, inner, form, back, scale});
    return out;
}

double factor(const char *name, PyObject *norm, int64_t n, bool back) {
    const char *word = norm && PyUnicode_Check(norm) ? PyUnicode_AsUTF8(norm) : "";
    if (!word) throw Failed{};
    if (strcmp(word, "ortho") == 0) return 1 / std::sqrt(static_cast<double>(n));
    if (strcmp(word, "forward") == 0) return back ? 1 : 1 / static_cast<double>(n);
    if (strcmp(word, "backward") == 0) return back ? 1 / static_cast<double>(n) : 1;
    fail(PyExc_ValueError, "%s: expected norm to be forward, backward or ortho; got %s", name, word);
}

struct Axes {
    int64_t axes[MAX_NDIM];
    int count;
    Axes(const char *name, PyObject *given, const Array &x) : count(as_ints(given, axes, MAX_NDIM)) {
        for (int i = 0; i < count; i++) {
            if (axes[i] < 0 || axes[i] >= x.ndim)
                fail(PyExc_IndexError, "%s: axis %lld is out of range for %d axes", name, static_cast<long long>(axes[i]), x.ndim);
            if (x.shape()[axes[i]] < 1) fail(PyExc_RuntimeError, "%s: expected at least one point along axis %lld", name,
                                             static_cast<long long>(axes[i]));
        }
    }
};

void need(const char *name, bool fits, const Array &x) {
    if (!fits) fail(PyExc_TypeError, "%s: not defined for %s", name, DTYPE_NAMES[x.dtype]);
}

Ref over(const char *name, Array &x, const Axes &axes, int count, PyObject *norm, bool back) {
    Ref out = Ref::share(&x);
    for (int i = 0; i < count; i++) {
        const int axis = static_cast<int>(axes.axes[i]);
        const int64_t n = x.shape()[axis];
        out = along(*out, axis, n, COMPLEX, back, factor(name, norm, n, back));
    }
    if (out.get() != &x) return out;
    out = make_like(x);
    assign(*out, x);
    return out;
}

template <bool BACK> PyObject *fftn(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<3> N{BACK ? "ifftn" : "fftn", {"x", "axes", "norm"}, 3};
    PyObject *a[3];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    need(N.function, is_complex(x.dtype), x);
    const Axes axes(N.function, a[1], x);
    return over(N.function, x, axes, axes.count, a[2], BACK).release();
}

PyObject *rfftn(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<3> N{"rfftn", {"x", "axes", "norm"}, 3};
    PyObject *a[3];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    need("rfftn", x.dtype == F32 || x.dtype == F64, x);
    const Axes axes("rfftn", a[1], x);
    if (!axes.count) fail(PyExc_RuntimeError, "rfftn: expected at least one axis");
    const int last = static_cast<int>(axes.axes[axes.count - 1]);
    const int64_t size = x.shape()[last];
    Ref out = along(x, last, size, FROM_REAL, false, factor("rfftn", a[2], size, false));
    for (int i = 0; i < axes.count - 1; i++) {
        const int axis = static_cast<int>(axes.axes[i]);
        const int64_t points = x.shape()[axis];
        out = along(*out, axis, points, COMPLEX, false, factor("rfftn", a[2], points, false));
    }
    return out.release();
}

PyObject *irfftn(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<4> N{"irfftn", {"x", "axes", "n", "norm"}, 4};
    PyObject *a[4];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    need("irfftn", is_complex(x.dtype), x);
    const Axes axes("irfftn", a[1], x);
    if (!axes.count) fail(PyExc_RuntimeError, "irfftn: expected at least one axis");
    const int last = static_cast<int>(axes.axes[axes.count - 1]);
    const int64_t size = as_int(a[2]);
    if (size < 1 || x.shape()[last] != size / 2 + 1)
        fail(PyExc_RuntimeError, "irfftn: expected n // 2 + 1 places along the axis; got %lld for n = %lld",
             static_cast<long long>(x.shape()[last]), static_cast<long long>(size));
    Ref out = Ref::share(&x);
    for (int i = 0; i < axes.count - 1; i++) {
        const int axis = static_cast<int>(axes.axes[i]);
        const int64_t points = x.shape()[axis];
        out = along(*out, axis, points, COMPLEX, true, factor("irfftn", a[3], points, true));
    }
    return along(*out, last, size, TO_REAL, true, factor("irfftn", a[3], size, true)).release();
}

}  // namespace

PyMethodDef fft_methods[] = {
    MORTICE_METHOD("fftn", fftn<false>),
    MORTICE_METHOD("ifftn", fftn<true>),
    MORTICE_METHOD("rfftn", rfftn),
    MORTICE_METHOD("irfftn", irfftn),
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace mortice
