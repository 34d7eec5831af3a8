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
    for (int f = 4; f <= MOST_FACTOR; f = f == 4 ? 2 : f == 2 ? 3 : f + 2)
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
constexpr int64_t LANES = 16, MOST_LANES = 2 * LANES;  // lines that go together, of numbers of 4 bytes

// Transform along one axis of a row-major array: n points, of which x has `have` and the result keeps `keep`.
template <class T> struct Axis {
    const T *x;
    T *out;
    int64_t outer, n, have, keep, inner;
    Form form;
    bool back;
    T scale;
    const Plan<T> *plan;

    int64_t lines() const { return outer * inner; }
    // How many lines go together: about as many each time. Some more than LANES are as fast; a few that are left would not be.
    int64_t many() const {
        const int64_t groups = lines() / lanes();
        return n > (1 << 14) ? 1 : groups ? (lines() + groups - 1) / groups : lines();
    }
    int64_t most() const { return n > (1 << 14) ? 1 : lines() < 2 * lanes() ? lines() : 2 * lanes(); }  // for no more lines
    static constexpr int64_t lanes() { return LANES * 4 / static_cast<int64_t>(sizeof(T)); }
    // A buffer of so many lines, and one point more. The four do not begin at the same place of a page, for the nearest cache.
    int64_t quarter(int64_t many) const { return plan->room() / 4 * many + 80; }
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

// From and to memory that holds points in pairs: of complex numbers, or of neighbours among real ones.
template <class T> struct Rows {
    int64_t many, inner;
    bool real;

    // For each run of lines that lie side by side: f(the first of them, how many).
    template <class F> void runs(const int64_t *begin, F &&f) const {
        for (int64_t b = 0, stop; b < many; b = stop) {
            for (stop = b + 1; stop < many && begin[stop] == begin[stop - 1] + 1; stop++) {}
            f(b, stop - b);
        }
    }
    // The first points of lines that begin at `begin` and are `length` long.
    void take(const T *x, const int64_t *begin, int64_t length, int64_t points, T *re, T *im) const {
        const int64_t unit = real ? 1 : 2;
        if (inner == 1 && many == 1) return moves<T>().split(x + unit * begin[0], points, re, im);
        if (inner == 1) return moves<T>().take(x + unit * begin[0], unit * length, many, points, re, im);
        runs(begin, [&](int64_t b, int64_t n) {
            const T *place = x + unit * begin[b];
            for (int64_t i = b; i < points * many; i += many, place += 2 * inner)
                if (!real) moves<T>().split(place, n, re + i, im + i);
                else memcpy(re + i, place, static_cast<size_t>(n) * sizeof(T)), memcpy(im + i, place + inner, static_cast<size_t>(n) * sizeof(T));
        });
    }
    void put(T *out, const int64_t *begin, int64_t length, int64_t points, const T *re, const T *im, T scale) const {
        const int64_t unit = real ? 1 : 2;
        if (inner == 1 && many == 1) return moves<T>().join(re, im, points, scale, out + unit * begin[0]);
        if (inner == 1) return moves<T>().put(re, im, many, points, scale, out + unit * begin[0], unit * length);
        runs(begin, [&](int64_t b, int64_t n) {
            T *place = out + unit * begin[b];
            for (int64_t i = b; i < points * many; i += many, place += 2 * inner)
                if (!real) moves<T>().join(re + i, im + i, n, scale, place);
                else
                    for (int64_t k = 0; k < n; k++) place[k] = re[i + k] * scale, place[inner + k] = im[i + k] * scale;
        });
    }
};

template <class T> void load_lines(const Axis<T> &a, const Group &g, const Plan<T> &plan, Lines<T> &l) {
    T *re = a.back ? l.im : l.re, *im = a.back ? l.re : l.im;
    const int64_t many = g.many, inner = a.inner, n = a.n;
    if (a.form == FROM_REAL && !halved(a)) {
        for (int64_t b = 0; b < many; b++)
            for (int64_t i = 0; i < n; i++) re[i * many + b] = a.x[g.have[b] + i * inner], im[i * many + b] = 0;
        return;
    }
    const Rows<T> rows{many, inner, a.form == FROM_REAL};
    if (a.form == TO_REAL && halved(a)) {
        rows.take(a.x, g.have, a.have, plan.n + 1, l.other_re, l.other_im);
        for (int64_t at : {int64_t{0}, plan.n * many}) memset(l.other_im + at, 0, static_cast<size_t>(many) * sizeof(T));  // do not count
        return moves<T>().fold(l.other_re, l.other_im, plan.n, many, *plan.half_re, *plan.half_im, re, im);
    }
    rows.take(a.x, g.have, a.have, a.form == FROM_REAL ? plan.n : a.have, re, im);
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
    const Rows<T> rows{many, inner, a.form == TO_REAL};
    if (a.form != FROM_REAL || !halved(a))
        return rows.put(a.out, g.keep, a.keep, a.form == TO_REAL ? plan.n : a.keep, re, im, a.scale);
    moves<T>().unfold(re, im, plan.n, many, *plan.half_re, *plan.half_im, a.scale / 2, l.other_re, l.other_im);
    rows.put(a.out, g.keep, a.keep, a.keep, l.other_re, l.other_im, 1);
}

template <class T> void run(const Axis<T> &a, T *room, int64_t size) {
    const int64_t total = a.lines(), many = a.many(), part = a.quarter(many), work = 10 * a.n * many;
    parallel_for((total + many - 1) / many, work > 20000 ? 1 : 20000 / work, [&](int64_t begin, int64_t end) {
        T *mine = room + thread_number() * size;
        for (int64_t i = begin; i < end; i++) {
            const Group g = group_of(a, i * many, total - i * many < many ? total - i * many : many);
            Lines<T> l{mine, mine + part, mine + 2 * part, mine + 3 * part};
            load_lines(a, g, *a.plan, l);
            transform(*a.plan, l, g.many);
            store_lines(a, g, *a.plan, l);
        }
    });
}

// A transform along several axes, one after the other, of blocks that the near caches have room for: with one block the
// transform is done before the next is looked at. A block is one index, or several, of the axes before the first transformed.
template <class T> struct Walk {
    static constexpr int64_t NEAR = 1 << 17;  // bytes
    const T *x;
    T *out;
    int64_t lead, x_step, out_step;  // how many indices, and numbers of each
    int64_t between;                 // numbers of each before a last axis makes real ones of them, else 0
    int count = 0;
    Axis<T> axes[MAX_NDIM];          // of one index
    std::shared_ptr<const Plan<T>> plans[MAX_NDIM];

    void block(int64_t first, int64_t many, T *room, int64_t size, T *rest) const {
        const T *from = x + first * x_step;
        for (int i = 0; i < count; i++) {
            Axis<T> a = axes[i];
            a.outer *= many;
            a.x = from;
            from = a.out = between && i + 1 < count ? rest : out + first * out_step;
            run(a, room, size);
        }
    }
    void all() const {
        const int64_t threads = num_threads(), bytes = out_step * static_cast<int64_t>(sizeof(T));
        int64_t size = 0, work = 0, each = bytes < NEAR ? NEAR / bytes : lead < threads ? lead : 1;
        if (each > (lead + threads - 1) / threads && bytes < NEAR) each = (lead + threads - 1) / threads;
        for (int i = 0; i < count; i++) {
            Axis<T> a = axes[i];
            work += 10 * a.n * a.lines() * each;
            a.outer *= each;
            if (4 * a.quarter(a.most()) > size) size = 4 * a.quarter(a.most());
        }
        const int64_t blocks = (lead + each - 1) / each, room_between = between * each;
        Scratch<T> room(static_cast<size_t>(threads * size)), rest(static_cast<size_t>((blocks > 1 ? threads : 1) * room_between));
        Unlocked free(work * blocks);
        parallel_for(blocks, work > 20000 ? 1 : 20000 / work, [&](int64_t begin, int64_t end) {
            T *mine = rest + (blocks > 1 ? thread_number() * room_between : 0);
            for (int64_t at = begin; at < end; at++)
                block(at * each, at + 1 < blocks ? each : lead - at * each, room, size, mine);
        });
    }
};

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
    Axes(const char *name, PyObject *given, const Array &x, int least = 0) : count(as_ints(given, axes, MAX_NDIM)) {
        if (count < least) fail(PyExc_RuntimeError, "%s: expected at least one axis", name);
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

template <class T>
void walk(const char *name, const Array &x, Array &out, const Axes &axes, int64_t n, Form form, PyObject *norm, bool back) {
    Walk<T> w{x.as<T>(), out.as<T>(), 1, form == FROM_REAL ? 1 : 2, form == TO_REAL ? 1 : 2, 0, 0, {}, {}};
    int64_t first = x.ndim, shape[MAX_NDIM];
    for (int i = 0; i < axes.count; i++)
        if (axes.axes[i] < first) first = axes.axes[i];
    for (int i = 0; i < x.ndim; i++) {
        shape[i] = x.shape()[i];
        if (i < first) w.lead *= shape[i];
        else w.x_step *= shape[i], w.out_step *= out.shape()[i];
    }
    if (form == TO_REAL && axes.count > 1) w.between = w.x_step;
    const auto add = [&](int64_t axis, int64_t points, Form as) {
        const double scale = factor(name, norm, points, back);
        Axis<T> a{nullptr, nullptr, 1, points, shape[axis], as == FROM_REAL ? points / 2 + 1 : points, 1, as, back, static_cast<T>(scale), nullptr};
        shape[axis] = a.keep;
        for (int64_t i = first; i < x.ndim; i++)
            if (i != axis) (i < axis ? a.outer : a.inner) *= shape[i];
        const bool half = halved(a);
        w.plans[w.count] = plan_for<T>(half ? points / 2 : points, half);
        a.plan = w.plans[w.count].get();
        w.axes[w.count++] = a;
    };
    const int others = form == COMPLEX ? axes.count : axes.count - 1;
    const int64_t last = axes.axes[axes.count - 1];
    if (form == FROM_REAL) add(last, n, form);
    for (int i = 0; i < others; i++) add(axes.axes[i], shape[axes.axes[i]], COMPLEX);
    if (form == TO_REAL) add(last, n, form);
    w.all();
}

// Along axes of x, of which the last has n points as real numbers if the form says that it is one.
Ref transformed(const char *name, Array &given, const Axes &axes, int64_t n, Form form, PyObject *norm, bool back) {
    if (!axes.count) return copied(given);
    Ref x = contiguous(given);
    const DType real = real_of(x->dtype);
    int64_t shape[MAX_NDIM];
    for (int i = 0; i < x->ndim; i++) shape[i] = x->shape()[i];
    if (form != COMPLEX) shape[axes.axes[axes.count - 1]] = form == TO_REAL ? n : n / 2 + 1;
    // What was copied may be written.
    Ref out = form == COMPLEX && x.get() != &given ? Ref::share(x.get())
                                                   : make(form == TO_REAL ? real : complex_with(real), x->ndim, shape);
    if (out->size) (real == F32 ? walk<float> : walk<double>)(name, *x, *out, axes, n, form, norm, back);
    return out;
}

// The whole spectrum of real numbers, of which `half` has the first part along an axis: the rest mirrors it along all of them.
template <class T> void mirror(const Array &half, Array &out, const Axes &axes, int64_t last) {
    const int64_t n = out.shape()[last], have = n / 2 + 1;
    int64_t outer = 1, inner = 1;
    uint64_t turned = 0;
    for (int i = 0; i < out.ndim; i++)
        if (i != last) (i < last ? outer : inner) *= out.shape()[i];
    for (int i = 0; i < axes.count; i++) turned |= uint64_t{1} << axes.axes[i];
    const T *x = half.as<T>();
    T *y = out.as<T>();
    Unlocked free(outer * n * inner);
    parallel_for(outer, 20000 / (n * inner) + 1, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; row++) {
            int64_t there = 0, step = 1, rest = row;
            for (int64_t i = last - 1; i >= 0; i--) {
                const int64_t size = out.shape()[i], at = rest % size;
                there += (turned >> i & 1 && at ? size - at : at) * step;
                step *= size;
                rest /= size;
            }
            const T *from = x + 2 * there * have * inner;
            T *to = y + 2 * row * n * inner;
            memcpy(to, x + 2 * row * have * inner, static_cast<size_t>(2 * have * inner) * sizeof(T));
            if (inner == 1) moves<T>().reflect(from + 2 * (n - have), n - have, -2, to + 2 * have);
            else
                for (int64_t i = have; i < n; i++) moves<T>().reflect(from + 2 * (n - i) * inner, inner, 2, to + 2 * i * inner);
        }
    });
}

PyObject *fftn_real(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<3> N{"fftn_real", {"x", "axes", "norm"}, 3};
    PyObject *a[3];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    need("fftn_real", x.dtype == F32 || x.dtype == F64, x);
    Axes axes("fftn_real", a[1], x, 1);
    for (int i = 0; i < axes.count; i++)
        if (axes.axes[i] > axes.axes[axes.count - 1]) std::swap(axes.axes[i], axes.axes[axes.count - 1]);
    const int64_t last = axes.axes[axes.count - 1];
    Ref half = transformed("fftn_real", x, axes, x.shape()[last], FROM_REAL, a[2], false);
    Ref out = make(half->dtype, x.ndim, x.shape());
    if (out->size) (x.dtype == F32 ? mirror<float> : mirror<double>)(*half, *out, axes, last);
    return out.release();
}

template <bool BACK> PyObject *fftn(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<3> N{BACK ? "ifftn" : "fftn", {"x", "axes", "norm"}, 3};
    PyObject *a[3];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    need(N.function, is_complex(x.dtype), x);
    return transformed(N.function, x, Axes(N.function, a[1], x), 0, COMPLEX, a[2], BACK).release();
}

PyObject *rfftn(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<3> N{"rfftn", {"x", "axes", "norm"}, 3};
    PyObject *a[3];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    need("rfftn", x.dtype == F32 || x.dtype == F64, x);
    const Axes axes("rfftn", a[1], x, 1);
    return transformed("rfftn", x, axes, x.shape()[axes.axes[axes.count - 1]], FROM_REAL, a[2], false).release();
}

PyObject *irfftn(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<4> N{"irfftn", {"x", "axes", "n", "norm"}, 4};
    PyObject *a[4];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]);
    need("irfftn", is_complex(x.dtype), x);
    const Axes axes("irfftn", a[1], x, 1);
    const int64_t last = axes.axes[axes.count - 1], size = as_int(a[2]);
    if (size < 1 || x.shape()[last] != size / 2 + 1)
        fail(PyExc_RuntimeError, "irfftn: expected n // 2 + 1 places along the axis; got %lld for n = %lld",
             static_cast<long long>(x.shape()[last]), static_cast<long long>(size));
    return transformed("irfftn", x, axes, size, TO_REAL, a[3], true).release();
}

}  // namespace

const Method fft_methods[] = {
    MORTICE_METHOD("fftn", fftn<false>),
    MORTICE_METHOD("fftn_real", fftn_real),
    MORTICE_METHOD("ifftn", fftn<true>),
    MORTICE_METHOD("rfftn", rfftn),
    MORTICE_METHOD("irfftn", irfftn),
    {},
};

}  // namespace mortice
