// Walking several arrays at once: axes are ordered by the output's strides and merged, then one inner loop runs per line.
#include "loop.hpp"

#include <algorithm>
#include <cstring>

#include "families.hpp"
#include "kernels/transpose.hpp"
#include "parallel.hpp"

namespace mortice {

const char PLAIN_COPY = 0;

namespace {

// The merged iteration space: axis 0 is the innermost.
struct Plan {
    int ndim, count;
    int64_t sizes[MAX_NDIM];
    int64_t steps[MAX_NDIM][MAX_OPERANDS];  // bytes
    char *data[MAX_OPERANDS];
};

int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

// Whether axis a should run inside of axis b: by the first operand whose steps differ, the output before all others.
bool inside_of(const Plan &p, int a, int b) {
    for (int i = 0; i < p.count; i++) {
        int64_t x = magnitude(p.steps[a][i]), y = magnitude(p.steps[b][i]);
        if (x == y || x == 0 || y == 0) continue;
        return x < y;
    }
    return false;
}

void swap_axes(Plan &p, int a, int b) {
    int64_t n = p.sizes[a];
    p.sizes[a] = p.sizes[b];
    p.sizes[b] = n;
    for (int i = 0; i < p.count; i++) {
        int64_t s = p.steps[a][i];
        p.steps[a][i] = p.steps[b][i];
        p.steps[b][i] = s;
    }
}

bool mergeable(const Plan &p, int inner, int outer) {
    for (int i = 0; i < p.count; i++)
        if (p.steps[outer][i] != p.steps[inner][i] * p.sizes[inner]) return false;
    return true;
}

void plan(Plan &p, int ndim, const int64_t *shape, const Operand *operands, int count) {
    p.count = count;
    p.ndim = 0;
    for (int i = 0; i < count; i++) p.data[i] = operands[i].data;
    for (int axis = ndim - 1; axis >= 0; axis--) {
        if (shape[axis] == 1) continue;
        int64_t *steps = p.steps[p.ndim];
        for (int i = 0; i < count; i++) {
            const Operand &o = operands[i];
            int own = axis - (ndim - o.ndim);
            steps[i] = !o.strides || own < 0 || o.shape[own] == 1 ? 0 : o.strides[own] * o.itemsize;
        }
        p.sizes[p.ndim++] = shape[axis];
    }
    for (int i = 1; i < p.ndim; i++)  // nearly always in order already
        for (int j = i; j > 0 && inside_of(p, j, j - 1); j--) swap_axes(p, j, j - 1);
    int kept = 0;
    for (int i = 1; i < p.ndim; i++) {
        if (mergeable(p, kept, i)) {
            p.sizes[kept] *= p.sizes[i];
        } else {
            kept++;
            p.sizes[kept] = p.sizes[i];
            memcpy(p.steps[kept], p.steps[i], sizeof p.steps[i]);
        }
    }
    if (p.ndim) p.ndim = kept + 1;
}

// Whole lines, one after the other along axis 1. Where they are short, what is kept in registers between them is half of the time.
template <int COUNT> void run_lines(const Plan &p, char **at, int64_t lines, Inner inner, const void *extra) {
    char *next[COUNT], *here[COUNT];
    for (int i = 0; i < COUNT; i++) next[i] = at[i];
    for (; lines; lines--) {
        for (int i = 0; i < COUNT; i++) here[i] = next[i];
        inner(here, p.steps[0], p.sizes[0], extra);
        for (int i = 0; i < COUNT; i++) next[i] += p.steps[1][i];
    }
    for (int i = 0; i < COUNT; i++) at[i] = next[i];
}

void move(const Plan &p, char **at, int axis, int64_t by) {
    for (int i = 0; i < p.count; i++) at[i] += by * p.steps[axis][i];
}

// Run the elements begin..end of the space, counted with axis 0 fastest.
void run(const Plan &p, int64_t begin, int64_t end, Inner inner, const void *extra) {
    char *at[MAX_OPERANDS];
    int64_t where[MAX_NDIM];
    for (int i = 0; i < p.count; i++) at[i] = p.data[i];
    int64_t rest = begin;
    for (int axis = 0; axis < p.ndim; axis++) {
        where[axis] = rest % p.sizes[axis];
        rest /= p.sizes[axis];
        move(p, at, axis, where[axis]);
    }
    for (int64_t left = end - begin; left > 0;) {
        int64_t lines = p.ndim < 2 || where[0] || p.count < 2 || p.count > 3 ? 0 : p.sizes[1] - where[1];
        if (lines * p.sizes[0] > left) lines = left / p.sizes[0];
        if (lines) {
            (p.count == 2 ? run_lines<2> : run_lines<3>)(p, at, lines, inner, extra);
            left -= lines * p.sizes[0];
        } else {
            int64_t n = p.sizes[0] - where[0];
            if (n > left) n = left;
            inner(at, p.steps[0], n, extra);
            left -= n;
            if (left == 0) break;
            move(p, at, 0, -where[0]);
            where[0] = 0;
            lines = 1;
            move(p, at, 1, 1);
        }
        where[1] += lines;
        for (int axis = 1; where[axis] == p.sizes[axis] && left; axis++) {
            move(p, at, axis, -where[axis]);
            where[axis] = 0;
            move(p, at, axis + 1, 1);
            where[axis + 1]++;
        }
    }
}

// ---- operands that lie across ----

// An axis along which some operand moves by far less than along the innermost one, as in adding a matrix to a transposed
// one; 0 if there is none. Lines would then use one element of each cache line that they load.
int axis_across(const Plan &p) {
    if (p.ndim < 2 || p.sizes[0] < 16) return 0;
    for (int i = 0; i < p.count; i++)
        for (int axis = 1; axis < p.ndim; axis++) {
            int64_t far = magnitude(p.steps[0][i]), near = magnitude(p.steps[axis][i]);
            if (p.sizes[axis] >= 8 && near > 0 && near * 4 <= far && far >= 64) return axis;
        }
    return 0;
}

// Whether no element lies where another one does: each axis steps over all that the axes of shorter steps reach.
template <class Size, class Step> bool all_apart(int ndim, int64_t itemsize, Size size, Step step) {
    for (int axis = 0; axis < ndim; axis++) {
        int64_t reach = itemsize;
        for (int other = 0; other < ndim; other++)
            if (step(other) < step(axis) || (step(other) == step(axis) && other < axis)) reach += step(other) * (size(other) - 1);
        if (size(axis) > 1 && step(axis) < reach) return false;
    }
    return true;
}

constexpr int64_t TILE_LINE = 128, TILE_LINES = 16;

// How to copy tiles whose lines lie side by side on the one hand and across on the other, without gaps between elements.
Transpose squares_of(const Plan &p, int64_t itemsize, const void *extra) {
    if (extra != &PLAIN_COPY || p.steps[0][0] != itemsize || p.steps[1][1] != itemsize) return nullptr;
    return itemsize == 4 ? transpose().bytes4 : itemsize == 8 ? transpose().bytes8 : nullptr;
}

// Go in tiles of the innermost axis and axis 1, short enough for the cache lines of both ways to stay.
void run_tiles(const Plan &p, int64_t begin, int64_t end, Inner inner, const void *extra, Transpose squares) {
    int64_t lines = (p.sizes[1] + TILE_LINES - 1) / TILE_LINES, parts = (p.sizes[0] + TILE_LINE - 1) / TILE_LINE;
    for (int64_t tile = begin; tile < end; tile++) {
        int64_t rest = tile / (lines * parts), inside = tile % (lines * parts);
        int64_t first = inside / parts * TILE_LINES, start = inside % parts * TILE_LINE;
        int64_t last = first + TILE_LINES < p.sizes[1] ? first + TILE_LINES : p.sizes[1];
        int64_t n = start + TILE_LINE < p.sizes[0] ? TILE_LINE : p.sizes[0] - start;
        char *at[MAX_OPERANDS];
        for (int i = 0; i < p.count; i++) at[i] = p.data[i] + start * p.steps[0][i] + first * p.steps[1][i];
        for (int axis = 2; axis < p.ndim; axis++) {
            int64_t where = rest % p.sizes[axis];
            rest /= p.sizes[axis];
            for (int i = 0; i < p.count; i++) at[i] += where * p.steps[axis][i];
        }
        if (squares) {
            squares(at[0], p.steps[1][0], at[1], p.steps[0][1], last - first, n);
            continue;
        }
        for (int64_t line = first; line < last; line++) {
            inner(at, p.steps[0], n, extra);
            for (int i = 0; i < p.count; i++) at[i] += p.steps[1][i];
        }
    }
}

}  // namespace

void walk(int ndim, const int64_t *shape, const Operand *operands, int count, Inner inner, const void *extra, float cost) {
    int64_t total = 1;
    for (int i = 0; i < ndim; i++) total *= shape[i];
    if (total == 0) return;
    Plan p;
    plan(p, ndim, shape, operands, count);
    if (p.ndim == 0) {
        const int64_t none[MAX_OPERANDS] = {};
        inner(p.data, none, 1, extra);
        return;
    }
    auto work = static_cast<int64_t>(static_cast<float>(total) * cost);
    auto grain = static_cast<int64_t>(32768 / (cost > 0.1f ? cost : 0.1f)) + 1;
    Unlocked unlocked(work);
    // What is written twice, as a view that was broadcast, is written in order, not in parallel.
    if (!all_apart(p.ndim, operands[0].itemsize, [&](int i) { return p.sizes[i]; }, [&](int i) { return magnitude(p.steps[i][0]); }))
        return run(p, 0, total, inner, extra);
    if (int across = axis_across(p)) {
        if (across != 1) swap_axes(p, 1, across);
        int64_t lines = (p.sizes[1] + TILE_LINES - 1) / TILE_LINES, parts = (p.sizes[0] + TILE_LINE - 1) / TILE_LINE;
        Transpose squares = squares_of(p, operands[0].itemsize, extra);
        int64_t tiles = total / p.sizes[0] / p.sizes[1] * lines * parts;
        parallel_for(tiles, grain / (TILE_LINE * TILE_LINES) + 1,
                     [&](int64_t begin, int64_t end) { run_tiles(p, begin, end, inner, extra, squares); });
        return;
    }
    // A few elements that lie apart, such as the colours of pixels, or meet others, as the corners of boxes: lines along the next
    // axis are longer.
    if (p.ndim > 1 && p.sizes[0] < 8 && p.sizes[1] >= 4 * p.sizes[0] && (extra != &PLAIN_COPY || p.steps[0][1] != operands[1].itemsize))
        swap_axes(p, 0, 1);
    parallel_for(total, grain, [&](int64_t begin, int64_t end) { run(p, begin, end, inner, extra); });
}

int broadcast_shapes(const Array *const *xs, int count, int64_t *shape) {
    int ndim = 0;
    for (int i = 0; i < count; i++) ndim = xs[i]->ndim > ndim ? xs[i]->ndim : ndim;
    for (int axis = 0; axis < ndim; axis++) {
        int64_t size = 1;
        for (int i = 0; i < count; i++) {
            int own = axis - (ndim - xs[i]->ndim);
            int64_t n = own < 0 ? 1 : xs[i]->shape()[own];
            if (n == 1 || n == size) continue;
            if (size != 1)
                fail(PyExc_ValueError, "cpu_cext: sizes %lld and %lld at axis %d cannot be broadcast together.",
                     static_cast<long long>(size), static_cast<long long>(n), axis);
            size = n;
        }
        shape[axis] = size;
    }
    return ndim;
}

int into_calls = 0;
static thread_local Array *given = nullptr;

// The array that was given, for the one result that it can hold. What overwrites is not left half done.
static Ref taken() {
    Array *out = given;
    given = nullptr;
    must_finish = true;
    return Ref::share(out);
}

// Whether strides tell that no two elements share memory: those of each axis go beyond all that lies within.
static bool lies_apart(const Array &x) {
    return all_apart(x.ndim, 1, [&](int i) { return x.shape()[i]; }, [&](int i) { return x.strides()[i]; });
}

// Whether the array that was given serves for a result of that shape and dtype; `over` tells whether an operand lies there too.
static bool serves(int ndim, const int64_t *shape, DType to, const Array *const *xs, int count, bool &over) {
    over = false;
    const Array *out = given;
    if (!out || out->dtype != to || !out->writable || out->ndim != ndim || !std::equal(shape, shape + ndim, out->shape())) return false;
    for (int i = 0; i < count; i++) {
        const Array &in = *xs[i];
        if (!may_overlap(in, *out)) continue;
        const bool alike = in.contiguous ? out->contiguous && in.size == out->size
                                         : same_shape(in, *out) && std::equal(in.strides(), in.strides() + ndim, out->strides());
        if (in.data != out->data || in.itemsize() != out->itemsize() || !alike) return false;
        over = true;
    }
    return out->contiguous || lies_apart(*out);
}

Ref result_like(const Array &x, DType to, const Array *const *xs, int count, bool &over) {
    if (into_calls && given && given->contiguous && serves(x.ndim, x.shape(), to, xs, count, over)) return taken();
    over = false;
    return make_like(x, to);
}

Ref result_of(int ndim, const int64_t *shape, DType to, const Array *const *xs, int count, bool &over) {
    if (into_calls && serves(ndim, shape, to, xs, count, over)) return taken();
    over = false;
    return make_laid_out_like(xs, count, ndim, shape, to);
}

Ref result_over(Array &x, std::initializer_list<const Array *> operands) {
    if (!into_calls || given != &x || !x.writable) return {};
    for (const Array *y : operands)
        if (may_overlap(x, *y)) return {};
    return taken();
}

Alone::Alone() : kept_(into_calls ? given : nullptr) {
    if (kept_) given = nullptr;
}
Alone::~Alone() {
    if (kept_) given = kept_;
}

void inner_over(char *const *at, const int64_t *step, int64_t n, const void *extra) {
    constexpr int64_t WHOLE = 256, ROOM = 1024;  // bytes: the first are several whole vectors of any width
    const Over &o = *static_cast<const Over *>(extra);
    const bool flat = step[0] == o.itemsize;
    int64_t done = flat ? n - n % (WHOLE / o.itemsize) : 0, steps[MAX_OPERANDS] = {o.itemsize};
    if (done) o.inner(at, step, done, o.extra);
    alignas(64) char room[ROOM];
    char *here[MAX_OPERANDS] = {room};
    for (int i = 1; i < o.count; i++) here[i] = at[i] + done * step[i], steps[i] = step[i];
    for (int64_t m; done < n; done += m) {
        m = std::min(ROOM / o.itemsize, n - done);
        o.inner(here, steps, m, o.extra);
        char *to = at[0] + done * step[0];
        for (int i = 1; i < o.count; i++) here[i] += m * step[i];
        if (flat) memcpy(to, room, static_cast<size_t>(m * o.itemsize));
        else for (int64_t i = 0; i < m; i++) memcpy(to + i * step[0], room + i * o.itemsize, static_cast<size_t>(o.itemsize));
    }
}

static PyObject *into(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    if (n < 2) fail(PyExc_TypeError, "into: expected an array, a kernel and its operands.");
    struct Giving {
        Array *before = given;
        explicit Giving(Array *x) { into_calls++, given = x; }
        ~Giving() { into_calls--, given = before, must_finish = false; }
    };
    // A default body is several kernels, of which the first would overwrite what the second reads.
    Giving giving(PyCFunction_Check(args[1]) ? as_optional(args[0]) : nullptr);
    PyObject *found = PyObject_Vectorcall(args[1], args + 2, static_cast<size_t>(n - 2), names);
    if (!found) throw Failed{};
    return found;
}

const Method loop_methods[] = {MORTICE_METHOD("into", into), {}};

Ref map(const Array *const *xs, int count, DType to, Inner inner, const void *extra, float cost) {
    const Array &x = *xs[0];
    bool alike = true, flat = x.contiguous;
    for (int i = 1; i < count; i++) {
        alike = alike && same_shape(x, *xs[i]);
        flat = flat && xs[i]->contiguous;
    }
    Ref out;
    Operand operands[MAX_OPERANDS];
    Over written;
    bool over;
    if (alike && flat) {
        out = result_like(x, to, xs, count, over);
    } else {
        int64_t shape[MAX_NDIM];
        int ndim = broadcast_shapes(xs, count, shape);
        out = result_of(ndim, shape, to, xs, count, over);
    }
    if (over) extra = &(written = {inner, extra, count + 1, out->itemsize()}), inner = inner_over;
    if (alike && flat && x.size * cost < 20000) {  // small and all in one line: nothing to plan
        char *at[MAX_OPERANDS] = {out->data};
        int64_t steps[MAX_OPERANDS] = {out->itemsize()};
        for (int i = 0; i < count; i++) at[i + 1] = xs[i]->data, steps[i + 1] = xs[i]->itemsize();
        if (x.size) inner(at, steps, x.size, extra);
        return out;
    }
    operands[0] = operand(*out);
    for (int i = 0; i < count; i++) operands[i + 1] = operand(*xs[i]);
    walk(out->ndim, out->shape(), operands, count + 1, inner, extra, cost);
    return out;
}

}  // namespace mortice
