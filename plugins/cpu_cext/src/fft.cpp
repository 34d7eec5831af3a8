// Fourier transforms of any length: small factors one after the other (Stockham's order), lengths with a large prime factor
// as a convolution (Bluestein's). Several lines go through a step together.
#include <cmath>
#include <memory>
#include <mutex>

#include "families.hpp"
#include "kernels/fft.hpp"
#include "kernels/transpose.hpp"
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
    std::unique_ptr<Scratch<T>> half_re, half_im;  // roots of twice the order, for a real line of twice the length

    Plan(int64_t size, bool real);
    bool direct() const { return !longer; }
    // Elements of room that a line takes.
    int64_t room() const { return direct() ? 4 * n : 4 * longer->n; }
};

template <class T> void step(const FFTStep<T> &f) {
    if constexpr (sizeof(T) == 4) fft_kernels().step_f32(f);
    else fft_kernels().step_f64(f);
}
template <class T> const FFTLines<T> &moves() {
    if constexpr (sizeof(T) == 4) return fft_lines().f32;
    else return fft_lines().f64;
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

template <class T> Plan<T>::Plan(int64_t size, bool real) : n(size), re(size > 0 ? size : 1), im(size > 0 ? size : 1) {
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
    if (real) {
        for (auto *room : {&half_re, &half_im}) *room = std::make_unique<Scratch<T>>(n + 1);
        for (int64_t k = 0; k <= n; k++) {
            root(k, 2 * n, &c, &s);
            (*half_re)[k] = static_cast<T>(c);
            (*half_im)[k] = static_cast<T>(s);
        }
    }
    if (rest == 1) return;
    int64_t m = 1;
    while (m < 2 * n - 1) m *= 2;
    longer = std::make_unique<Plan>(m, false);
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
template <class T> std::shared_ptr<const Plan<T>> plan_for(int64_t n, bool real) {
    constexpr int KEPT = 8;
    static std::shared_ptr<const Plan<T>> kept[KEPT];
    static int next = 0;
    static std::mutex mutex;
    {
        std::lock_guard<std::mutex> lock(mutex);
        for (auto &plan : kept)
            if (plan && plan->n == n && (plan->half_re || !real)) return plan;
    }
    auto made = std::make_shared<const Plan<T>>(n, real);
    if (n <= (1 << 20)) {
        std::lock_guard<std::mutex> lock(mutex);
        kept[next] = made;
        next = (next + 1) % KEPT;
    }
    return made;
}

enum Form { COMPLEX, FROM_REAL, TO_REAL };
constexpr int64_t MOST_LANES = 16;

// Transform along one axis of a row-major array: n points, of which x has `have` and the result keeps `keep`.
template <class T> struct Axis {
    const T *x;
    T *out;
    int64_t outer, n, have, keep, inner;
    Form form;
    bool back;
    T scale;
};

// Whether a real line goes as a complex one of half the length: its even places as real parts, the odd ones as imaginary.
template <class T> bool halved(const Axis<T> &a) { return a.form != COMPLEX && a.n % 2 == 0; }

struct Group {
    int64_t many;                                  // lines
    int64_t have[MOST_LANES], keep[MOST_LANES];    // where each begins, in x and in the result
};

template <class T> Group group_of(const Axis<T> &a, int64_t first, int64_t many) {
    Group g;
    g.many = many;
    for (int64_t b = 0; b < many; b++) {
        const int64_t line = first + b, block = line / a.inner * a.inner, side = line % a.inner;
        g.have[b] = block * a.have + side;
        g.keep[b] = block * a.keep + side;
    }
    return g;
}

constexpr int64_t BLOCK = 32;  // points that are moved at a time

// Rows of points, of each the real and then the imaginary parts of all lines, from and to memory that holds them in pairs:
// of complex numbers, or of neighbours among real ones.
template <class T> struct Rows {
    T at[2 * BLOCK * MOST_LANES * 4 / sizeof(T)];
    int64_t many, inner;
    bool real;

    static void turn(T *to, int64_t to_step, const T *from, int64_t from_step, int64_t rows, int64_t columns) {
        const Transpose turned = sizeof(T) == 4 ? transpose().bytes4 : transpose().bytes8;
        constexpr int64_t size = sizeof(T);
        turned(reinterpret_cast<char *>(to), to_step * size, reinterpret_cast<const char *>(from), from_step * size, rows, columns);
    }
    // For each run of lines that lie side by side: f(the first of them, how many).
    template <class F> void runs(const int64_t *begin, F &&f) {
        for (int64_t b = 0, stop; b < many; b = stop) {
            for (stop = b + 1; stop < many && begin[stop] == begin[stop - 1] + 1; stop++) {}
            f(b, stop - b);
        }
    }
    // Points from..from + points of lines that begin at `begin` and are `length` long.
    void take(const T *x, const int64_t *begin, int64_t length, int64_t from, int64_t points) {
        const int64_t unit = real ? 1 : 2;
        if (inner == 1 && many == 1) memcpy(at, x + unit * begin[0] + 2 * from, static_cast<size_t>(2 * points) * sizeof(T));
        else if (inner == 1)
            for (int64_t b = 0; b < many; b += 8)  // along few lines at a time: they may lie where the nearest cache has room for few
                turn(at + b, many, x + unit * begin[b] + 2 * from, unit * length, 2 * points, many - b < 8 ? many - b : 8);
        else
            runs(begin, [&](int64_t b, int64_t n) {
                for (int64_t i = 0; i < points; i++) {
                    T *row = at + 2 * i * many + b;
                    const T *place = x + unit * begin[b] + 2 * (from + i) * inner;
                    if (!real) moves<T>().split(place, n, row, row + many);
                    else
                        for (int k = 0; k < 2; k++) memcpy(row + k * many, place + k * inner, static_cast<size_t>(n) * sizeof(T));
                }
            });
    }
    void put(T *out, const int64_t *begin, int64_t length, int64_t from, int64_t points) {
        const int64_t unit = real ? 1 : 2;
        if (inner == 1 && many == 1) memcpy(out + unit * begin[0] + 2 * from, at, static_cast<size_t>(2 * points) * sizeof(T));
        else if (inner == 1) turn(out + unit * begin[0] + 2 * from, unit * length, at, many, many, 2 * points);
        else
            runs(begin, [&](int64_t b, int64_t n) {
                for (int64_t i = 0; i < points; i++) {
                    const T *row = at + 2 * i * many + b;
                    T *place = out + unit * begin[b] + 2 * (from + i) * inner;
                    if (!real) moves<T>().join(row, row + many, n, place);
                    else
                        for (int k = 0; k < 2; k++) memcpy(place + k * inner, row + k * many, static_cast<size_t>(n) * sizeof(T));
                }
            });
    }
};

template <class F> void each_block(int64_t points, F &&move) {
    for (int64_t from = 0; from < points; from += BLOCK) move(from, points - from < BLOCK ? points - from : BLOCK);
}

template <class T> void load_lines(const Axis<T> &a, const Group &g, const Plan<T> &plan, Lines<T> &l) {
    T *re = a.back ? l.im : l.re, *im = a.back ? l.re : l.im;
    const int64_t many = g.many, inner = a.inner, n = a.n;
    if (a.form == FROM_REAL && !halved(a)) {
        for (int64_t b = 0; b < many; b++)
            for (int64_t i = 0; i < n; i++) re[i * many + b] = a.x[g.have[b] + i * inner], im[i * many + b] = 0;
        return;
    }
    Rows<T> rows{{}, many, inner, a.form == FROM_REAL};
    if (a.form == TO_REAL && halved(a)) {
        Rows<T> mirror{{}, many, inner, false};
        return each_block(plan.n, [&](int64_t from, int64_t points) {
            rows.take(a.x, g.have, a.have, from, points);
            mirror.take(a.x, g.have, a.have, plan.n - from - points + 1, points);
            for (int64_t i = 0, at = from; i < points; i++, at++)
                moves<T>().fold(rows.at + 2 * i * many, mirror.at + 2 * (points - 1 - i) * many, many, (*plan.half_re)[at],
                                  (*plan.half_im)[at], at == 0, re + at * many, im + at * many);
        });
    }
    each_block(a.form == FROM_REAL ? plan.n : a.have, [&](int64_t from, int64_t points) {
        rows.take(a.x, g.have, a.have, from, points);
        moves<T>().deal(rows.at, many, points, re + from * many, im + from * many);
    });
    if (a.form != TO_REAL) return;
    // An odd length: the other half mirrors this one, and the first is real.
    for (int64_t b = 0; b < many; b++) im[b] = 0;
    for (int64_t i = a.have; i < n; i++)
        for (int64_t b = 0; b < many; b++) {
            re[i * many + b] = re[(n - i) * many + b];
            im[i * many + b] = -im[(n - i) * many + b];
        }
}

template <class T> void store_lines(const Axis<T> &a, const Group &g, const Plan<T> &plan, const Lines<T> &l) {
    const T *re = a.back ? l.im : l.re, *im = a.back ? l.re : l.im;
    const int64_t many = g.many, inner = a.inner;
    if (a.form == TO_REAL && !halved(a)) {
        for (int64_t b = 0; b < many; b++)
            for (int64_t i = 0; i < a.n; i++) a.out[g.keep[b] + i * inner] = re[i * many + b] * a.scale;
        return;
    }
    Rows<T> rows{{}, many, inner, a.form == TO_REAL};
    each_block(a.form == TO_REAL ? plan.n : a.keep, [&](int64_t from, int64_t points) {
        if (a.form == FROM_REAL && halved(a))
            for (int64_t i = 0, at = from; i < points; i++, at++)
                moves<T>().unfold(re, im, (at < plan.n ? at : 0) * many, (at ? plan.n - at : 0) * many, many, (*plan.half_re)[at],
                                    (*plan.half_im)[at], a.scale / 2, rows.at + 2 * i * many);
        else
            moves<T>().collect(re + from * many, im + from * many, many, points, a.scale, rows.at);
        rows.put(a.out, g.keep, a.keep, from, points);
    });
}

template <class T> void run(const Axis<T> &a) {
    const auto plan = plan_for<T>(halved(a) ? a.n / 2 : a.n, halved(a));
    const int64_t total = a.outer * a.inner, lanes = MOST_LANES * 4 / static_cast<int64_t>(sizeof(T));
    const int64_t many = a.n > (1 << 14) ? 1 : total < lanes ? total : lanes, groups = (total + many - 1) / many;
    // The four buffers do not begin at the same place of a page: the nearest cache would have room for few of them.
    const int64_t quarter = plan->room() / 4 * many + 80, size = 4 * quarter, threads = groups > 1 ? num_threads() : 1;
    Scratch<T> room(static_cast<size_t>(threads * size));
    const int64_t work = 10 * a.n * many;
    Unlocked free(work * groups);
    parallel_for(groups, work > 20000 ? 1 : 20000 / work, [&](int64_t begin, int64_t end) {
        T *mine = room + (groups > 1 ? thread_number() * size : 0);
        for (int64_t i = begin; i < end; i++) {
            const Group g = group_of(a, i * many, total - i * many < many ? total - i * many : many);
            Lines<T> l{mine, mine + quarter, mine + 2 * quarter, mine + 3 * quarter};
            load_lines(a, g, *plan, l);
            transform(*plan, l, g.many);
            store_lines(a, g, *plan, l);
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
    return copied(x);
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

const Method fft_methods[] = {
    MORTICE_METHOD("fftn", fftn<false>),
    MORTICE_METHOD("ifftn", fftn<true>),
    MORTICE_METHOD("rfftn", rfftn),
    MORTICE_METHOD("irfftn", irfftn),
    {},
};

}  // namespace mortice
