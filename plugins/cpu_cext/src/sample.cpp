// Sampling at the points of a grid, and its gradients.
#include "kernels/sample.hpp"

#include <algorithm>
#include <cstring>

#include "families.hpp"

namespace mortice {

namespace {

template <class T> const SampleSet<T> &sample_set();
template <> const SampleSet<float> &sample_set<float>() { return sample().f32; }
template <> const SampleSet<double> &sample_set<double>() { return sample().f64; }

// One of three names, or 3 for another.
int one_of(PyObject *name, const char *const (&names)[3]) {
    const char *text = PyUnicode_AsUTF8(name);
    if (!text) throw Failed{};
    return static_cast<int>(std::find_if(names, names + 3, [&](const char *known) { return !strcmp(text, known); }) - names);
}

template <class T> void run(SamplePlan<T> &p, int64_t images, const Array &x, const Array &grid, const Array *g, Array *out, Array *d_x, Array *d_grid) {
    const SampleSet<T> &set = sample_set<T>();
    p.x = x.as<T>(), p.grid = grid.as<T>(), p.g = g ? g->as<T>() : nullptr;
    p.out = out ? out->as<T>() : nullptr, p.d_x = d_x ? d_x->as<T>() : nullptr, p.d_grid = d_grid ? d_grid->as<T>() : nullptr;
    const int64_t taps = p.mode == SAMPLE_NEAREST ? 1 : p.mode == SAMPLE_CUBIC ? 16 : 1 << p.nd, part = 256;
    const int64_t parts = (p.count + part - 1) / part, work = part * (10 + taps * (4 + p.channels));
    Unlocked free(images * parts * work);
    auto points = [&](auto *body) {
        parallel_for(images * parts, std::max<int64_t>(1, 65536 / work), [&](int64_t begin, int64_t end) {
            for (; begin < end; begin++) {
                int64_t first = begin % parts * part;
                body(p, begin / parts, first, std::min(first + part, p.count));
            }
        });
    };
    if (out) points(set.read);
    if (d_grid) points(set.slopes);
    if (!d_x) return;
    // A plane is written by one thread alone, point after point: its sums are the same for any number of threads.
    const int64_t groups = std::clamp<int64_t>(num_threads() / std::max<int64_t>(1, images), 1, p.channels);
    parallel_for(images * groups, std::max<int64_t>(1, 65536 / std::max<int64_t>(1, parts * work / groups)), [&](int64_t begin, int64_t end) {
        for (; begin < end; begin++) {
            int64_t group = begin % groups;
            set.spread(p, begin / groups, group * p.channels / groups, (group + 1) * p.channels / groups);
        }
    });
}

// Reads x, grid, mode, padding and align_corners; false where the default body has to serve.
template <class T> bool read_plan(SamplePlan<T> &p, const Array &x, const Array &grid, PyObject *const *settings) {
    const int mode = one_of(settings[0], {"nearest", "linear", "cubic"}),
              padding = one_of(settings[1], {"zeros", "border", "reflection"});
    p.nd = x.ndim - 2;
    if (mode == 3 || padding == 3 || (p.nd != 2 && p.nd != 3) || (mode == SAMPLE_CUBIC && p.nd != 2)) return false;
    p.mode = static_cast<SampleMode>(mode), p.padding = static_cast<SamplePadding>(padding), p.align = as_bool(settings[2]);
    if (grid.ndim != x.ndim || grid.shape()[0] != x.shape()[0] || grid.shape()[x.ndim - 1] != p.nd)
        fail(PyExc_RuntimeError, "grid_sample: the grid does not fit the input's shape.");
    p.volume = p.count = 1, p.channels = x.shape()[1];
    for (int i = 0; i < p.nd; i++) {
        p.volume *= p.size[i] = x.shape()[i + 2];
        p.count *= grid.shape()[i + 1];
    }
    return p.volume > 0 && p.volume < INT32_MAX && x.size > 0;
}

DType wide_of(const Array &x) { return is_half(x.dtype) ? F32 : x.dtype; }
Ref wide(Array &x) { return contiguous(*converted(x, wide_of(x))); }
Ref narrow(Ref x, DType dtype) { return !x || x->dtype == dtype ? std::move(x) : converted(*x, dtype); }

template <class T> PyObject *sampled(Array &x, Array &grid, PyObject *const *settings) {
    SamplePlan<T> p{};
    if (!read_plan(p, x, grid, settings)) return default_body();
    int64_t shape[5];
    for (int i = 0; i < x.ndim; i++) shape[i] = i < 2 ? x.shape()[i] : grid.shape()[i - 1];
    Ref from = wide(x), points = wide(grid), out = make(wide_of(x), x.ndim, shape);
    run(p, x.shape()[0], *from, *points, nullptr, out.get(), nullptr, nullptr);
    return narrow(std::move(out), x.dtype).release();
}

PyObject *grid_sample_body(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<5> N{"grid_sample", {"x", "grid", "mode", "padding", "align_corners"}, 5};
    PyObject *a[5];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]), &grid = as_array(a[1]);
    if (!is_float(x.dtype) || grid.dtype != x.dtype) return default_body();
    return x.dtype == F64 ? sampled<double>(x, grid, a + 2) : sampled<float>(x, grid, a + 2);
}

template <class T> PyObject *gradients(Array &g, Array &x, Array &grid, PyObject *const *settings, bool needs_x, bool needs_grid) {
    SamplePlan<T> p{};
    if (!read_plan(p, x, grid, settings) || g.size != x.shape()[0] * p.channels * p.count) return default_body();
    Ref given = wide(g), from = wide(x), points = wide(grid), d_x, d_grid;
    if (needs_x) d_x = make_zeros(from->dtype, x.ndim, x.shape());
    // Which element is the nearest does not change with the point.
    if (needs_grid) d_grid = p.mode == SAMPLE_NEAREST ? make_zeros(from->dtype, grid.ndim, grid.shape()) : make_like(*points);
    run(p, x.shape()[0], *from, *points, given.get(), nullptr, d_x.get(), p.mode == SAMPLE_NEAREST ? nullptr : d_grid.get());
    return as_tuple(narrow(std::move(d_x), g.dtype), narrow(std::move(d_grid), g.dtype));
}

PyObject *grid_sample_grad_body(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<7> N{"grid_sample_grad", {"g", "x", "grid", "mode", "padding", "align_corners", "needs"}, 7};
    PyObject *a[7];
    arguments(N, args, n, names, a);
    Array &g = as_array(a[0]), &x = as_array(a[1]), &grid = as_array(a[2]);
    if (!is_float(x.dtype) || grid.dtype != x.dtype || g.dtype != x.dtype) return default_body();
    Own<PyObject> needs(PySequence_Tuple(a[6]));
    if (!needs) throw Failed{};
    if (PyTuple_GET_SIZE(needs.get()) != 2) fail(PyExc_TypeError, "grid_sample_grad: expected needs to be two bools.");
    const bool needs_x = as_bool(PyTuple_GET_ITEM(needs.get(), 0)), needs_grid = as_bool(PyTuple_GET_ITEM(needs.get(), 1));
    return x.dtype == F64 ? gradients<double>(g, x, grid, a + 3, needs_x, needs_grid) : gradients<float>(g, x, grid, a + 3, needs_x, needs_grid);
}

}  // namespace

const Method sample_methods[] = {
    MORTICE_METHOD("partial_grid_sample", grid_sample_body),
    MORTICE_METHOD("partial_grid_sample_grad", grid_sample_grad_body),
    {},
};

}  // namespace mortice
