// Recurrent layers: all steps of a direction of a layer in one call. The products of the input are made at once; each
// thread then takes some of the sequences through all steps, and never waits for another.
#include <cstring>

#include "blas.hpp"
#include "call.hpp"
#include "families.hpp"
#include "kernels/rnn.hpp"
#include "parallel.hpp"

namespace mortice {

namespace {

template <class T> struct Tables;
template <> struct Tables<float> {
    static const RecurrentOf<float> &get() { return recurrent().f32; }
};
template <> struct Tables<double> {
    static const RecurrentOf<double> &get() { return recurrent().f64; }
};

// ---- steps ----

int64_t length_of(PyObject *x) {
    const Py_ssize_t n = PyObject_Size(x);
    if (n < 0) throw Failed{};
    return n;
}

// The rows of each step in the order in which the layer takes them: `size` sequences from row `begin` on.
struct Steps {
    int64_t count, rows = 0, batch = 0;
    Scratch<int64_t> begin, size;
    Steps(PyObject *batch_sizes, bool reverse)
        : count(length_of(batch_sizes)), begin(static_cast<size_t>(count) + 1), size(static_cast<size_t>(count) + 1) {
        for (int64_t i = 0; i < count; i++) {
            const Own<PyObject> item(PySequence_GetItem(batch_sizes, i));
            if (!item) throw Failed{};
            const int64_t n = as_int(item.get());
            if (n < 0 || (i > 0 && n > size[at(i - 1, reverse)]))
                fail(PyExc_ValueError, "batch_sizes: expected sizes that do not grow; got %lld", static_cast<long long>(n));
            begin[at(i, reverse)] = rows;
            size[at(i, reverse)] = n;
            if (i == 0) batch = n;
            rows += n;
        }
    }
    int64_t at(int64_t i, bool reverse) const { return reverse ? count - 1 - i : i; }
};

// A step's rows of the sequences in [low, high): from row `row` on, `n` of them.
struct Rows {
    int64_t row, n;
    Rows(const Steps &s, int64_t j, int64_t low, int64_t high)
        : row(s.begin[j] + low), n((high < s.size[j] ? high : s.size[j]) - low) {}
};

// Calls body(low, high) for parts of the batch; where it is too small for that, the products divide themselves.
template <class F> void over_sequences(const Steps &s, int64_t work, F body) {
    const int64_t threads = num_threads();
    Unlocked free(work);
    if (s.batch < 2 * threads || work < 400000) return body(int64_t{0}, s.batch);
    parallel_for(threads, 1, [&](int64_t begin, int64_t end) { body(s.batch * begin / threads, s.batch * end / threads); });
}

// Where the state before step j lies: rows of the step before, and the first states of sequences that begin here.
template <class T, class F>
void with_before(const Steps &s, int64_t j, int64_t low, int64_t n, int64_t width, const T *first, const T *states, F body) {
    int64_t known = j == 0 ? 0 : s.size[j - 1] - low;
    known = known < 0 ? 0 : known < n ? known : n;
    if (known > 0) body(int64_t{0}, known, states + (s.begin[j - 1] + low) * width);
    if (known < n) body(known, n - known, first + (low + known) * width);
}

// ---- arrays ----

bool served(const Array &x) { return (x.dtype == F32 || x.dtype == F64) && x.size > 0; }

void expect(const Array *x, DType d, int64_t rows, int64_t columns, const char *what) {
    if (!x) return;
    const bool vector = columns < 0;
    if (x->dtype != d || x->ndim != (vector ? 1 : 2) || x->shape()[0] != rows || (!vector && x->shape()[1] != columns))
        fail(PyExc_ValueError, "recurrent layer: %s has another dtype or shape than the others ask for", what);
}

Ref transposed(Array &x) {
    const int64_t shape[2] = {x.shape()[1], x.shape()[0]}, strides[2] = {x.strides()[1], x.strides()[0]};
    const Ref view = make_view(x, x.data, 2, shape, strides);
    return contiguous(*view);
}


Ref optional_contiguous(Array *x) { return x ? contiguous(*x) : Ref(); }
template <class T> const T *data(const Ref &x) { return x ? x->as<T>() : nullptr; }


// x W^T for all rows.
template <class T> void project(const Array &x, const Array &w, T *to) {
    const int64_t rows = x.shape()[0], features = x.shape()[1], width = w.shape()[0];
    Unlocked free(rows * features * width);
    gemm_parallel(false, true, rows, width, features, T(1), x.as<T>(), features, w.as<T>(), features, T(0), to, width);
}

// ---- rnn ----

template <class T>
void rnn_run(const Steps &s, int64_t size, const Array &x, const Array &w_ih, const T *w, const T *bias, bool relu, T *out, T *h) {
    project(x, w_ih, out);
    over_sequences(s, s.rows * size * size, [&](int64_t low, int64_t high) {
        for (int64_t j = 0; j < s.count; j++) {
            const Rows r(s, j, low, high);
            if (r.n <= 0) continue;
            gemm_parallel(false, false, r.n, size, size, T(1), h + low * size, size, w, size, T(1), out + r.row * size, size);
            Tables<T>::get().rnn_forward(r.n, size, out + r.row * size, bias, h + low * size, relu);
        }
    });
}

bool is_relu(PyObject *activation) {
    return activation && PyUnicode_Check(activation) && PyUnicode_CompareWithASCIIString(activation, "relu") == 0;
}

PyObject *rnn_layer(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<8> N{"rnn_layer", {"x", "h0", "w_ih", "w_hh", "bias", "batch_sizes", "reverse", "activation"}, 4};
    PyObject *a[8];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]), &h0 = as_array(a[1]), &w_ih = as_array(a[2]), &w_hh = as_array(a[3]);
    Array *bias = as_optional(a[4]);
    if (!served(x) || x.ndim != 2 || h0.ndim != 2 || h0.size == 0 || !a[5]) return default_body();
    need_blas();
    const Steps s(a[5], as_bool(a[6]));
    const int64_t size = h0.shape()[h0.ndim - 1];
    expect(&x, x.dtype, s.rows, x.shape()[1], "x"), expect(&h0, x.dtype, s.batch, size, "h0");
    expect(&w_ih, x.dtype, size, x.shape()[1], "w_ih"), expect(&w_hh, x.dtype, size, size, "w_hh");
    expect(bias, x.dtype, size, -1, "bias");
    const Ref own = contiguous(x), w_own = contiguous(w_ih), w = transposed(w_hh), b = optional_contiguous(bias);
    Ref h = copied(h0), out = make(x.dtype, {s.rows, size});
    if (x.dtype == F64) rnn_run(s, size, *own, *w_own, w->as<double>(), data<double>(b), is_relu(a[7]), out->as<double>(), h->as<double>());
    else rnn_run(s, size, *own, *w_own, w->as<float>(), data<float>(b), is_relu(a[7]), out->as<float>(), h->as<float>());
    return as_tuple(out, h);
}

template <class T>
void rnn_back(const Steps &s, int64_t size, const T *g, const T *w, const T *out, bool relu, T *d, T *d_h) {
    over_sequences(s, s.rows * size * size, [&](int64_t low, int64_t high) {
        for (int64_t j = s.count - 1; j >= 0; j--) {
            const Rows r(s, j, low, high);
            if (r.n <= 0) continue;
            const int64_t at = r.row * size;
            Tables<T>::get().rnn_backward(r.n, size, out + at, g + at, d_h + low * size, d + at, relu);
            gemm_parallel(false, false, r.n, size, size, T(1), d + at, size, w, size, T(0), d_h + low * size, size);
        }
    });
}

PyObject *rnn_layer_grad(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<7> N{"rnn_layer_grad", {"g", "g_h", "w_hh", "out", "batch_sizes", "reverse", "activation"}, 4};
    PyObject *a[7];
    arguments(N, args, n, names, a);
    Array &g = as_array(a[0]), &g_h = as_array(a[1]), &w_hh = as_array(a[2]), &out = as_array(a[3]);
    if (!served(out) || out.ndim != 2 || g_h.size == 0 || !a[4]) return default_body();
    need_blas();
    const Steps s(a[4], as_bool(a[5]));
    const int64_t size = out.shape()[1];
    expect(&out, out.dtype, s.rows, size, "out"), expect(&g, out.dtype, s.rows, size, "g");
    expect(&g_h, out.dtype, s.batch, size, "g_h"), expect(&w_hh, out.dtype, size, size, "w_hh");
    const Ref grad = contiguous(g), w = contiguous(w_hh), states = contiguous(out);
    Ref d_h = copied(g_h), d = make(out.dtype, {s.rows, size});
    if (out.dtype == F64)
        rnn_back(s, size, grad->as<double>(), w->as<double>(), states->as<double>(), is_relu(a[6]), d->as<double>(), d_h->as<double>());
    else rnn_back(s, size, grad->as<float>(), w->as<float>(), states->as<float>(), is_relu(a[6]), d->as<float>(), d_h->as<float>());
    return as_tuple(d, d_h);
}

// ---- lstm ----

template <class T> struct Lstm {
    int64_t size, width;  // units, and what of them is shown: fewer where they are projected
    const T *w, *bias, *w_hr;
    T *h, *c, *gates, *cells, *out;

    void forward(const Steps &s) const {
        Scratch<T> inner(static_cast<size_t>(w_hr ? s.batch * size : 1));
        T *room = inner;
        over_sequences(s, s.rows * size * width * 4, [&](int64_t low, int64_t high) {
            for (int64_t j = 0; j < s.count; j++) {
                const Rows r(s, j, low, high);
                if (r.n <= 0) continue;
                T *opened = gates + r.row * 4 * size, *state = h + low * width, *shown = out + r.row * width;
                gemm_parallel(false, false, r.n, 4 * size, width, T(1), state, width, w, 4 * size, T(1), opened, 4 * size);
                Tables<T>::get().lstm_forward(r.n, size, opened, bias, c + low * size, cells + r.row * size,
                                              w_hr ? room + low * size : shown, w_hr ? nullptr : state);
                if (!w_hr) continue;
                gemm_parallel(false, true, r.n, width, size, T(1), room + low * size, size, w_hr, size, T(0), shown, width);
                memcpy(state, shown, static_cast<size_t>(r.n * width) * sizeof(T));
            }
        });
    }
};

PyObject *lstm_layer(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<9> N{"lstm_layer", {"x", "h0", "c0", "w_ih", "w_hh", "bias", "w_hr", "batch_sizes", "reverse"}, 5};
    PyObject *a[9];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]), &h0 = as_array(a[1]), &c0 = as_array(a[2]), &w_ih = as_array(a[3]), &w_hh = as_array(a[4]);
    Array *bias = as_optional(a[5]), *w_hr = as_optional(a[6]);
    if (!served(x) || x.ndim != 2 || c0.ndim != 2 || h0.size == 0 || c0.size == 0 || !a[7]) return default_body();
    need_blas();
    const Steps s(a[7], as_bool(a[8]));
    const int64_t size = c0.shape()[c0.ndim - 1], width = h0.shape()[h0.ndim - 1];
    expect(&x, x.dtype, s.rows, x.shape()[1], "x"), expect(&h0, x.dtype, s.batch, w_hr ? width : size, "h0");
    expect(&c0, x.dtype, s.batch, size, "c0"), expect(&w_ih, x.dtype, 4 * size, x.shape()[1], "w_ih");
    expect(&w_hh, x.dtype, 4 * size, width, "w_hh"), expect(bias, x.dtype, 4 * size, -1, "bias");
    expect(w_hr, x.dtype, width, size, "w_hr");
    const Ref own = contiguous(x), w_own = contiguous(w_ih), w = transposed(w_hh), b = optional_contiguous(bias);
    const Ref folded = optional_contiguous(w_hr);
    Ref h = copied(h0), c = copied(c0), out = make(x.dtype, {s.rows, width}), cells = make(x.dtype, {s.rows, size});
    Ref gates = make(x.dtype, {s.rows, 4 * size});
    auto run = [&](auto zero) {
        using T = decltype(zero);
        project(*own, *w_own, gates->as<T>());
        Lstm<T>{size, width, w->as<T>(), data<T>(b), data<T>(folded), h->as<T>(), c->as<T>(), gates->as<T>(), cells->as<T>(),
                out->as<T>()}.forward(s);
    };
    if (x.dtype == F64) run(0.0);
    else run(0.0f);
    return as_tuple(out, h, c, cells, gates);
}

template <class T> struct LstmBack {
    int64_t size, width;
    const T *g, *c0, *w, *w_hr, *cells, *gates;
    T *d, *d_h, *d_c;
    T *folded, *shown;  // of a projection: the gradient of every state, and what was projected

    void backward(const Steps &s) const {
        Scratch<T> inner(static_cast<size_t>(w_hr ? s.batch * size : 1));
        T *room = inner;
        over_sequences(s, s.rows * size * width * 4, [&](int64_t low, int64_t high) {
            for (int64_t j = s.count - 1; j >= 0; j--) step(s, j, Rows(s, j, low, high), low, room);
        });
    }

    void step(const Steps &s, int64_t j, const Rows &r, int64_t low, T *room) const {
        if (r.n <= 0) return;
        const RecurrentOf<T> &kernels = Tables<T>::get();
        T *state = d_h + low * width;
        const T *of_h = state;
        kernels.add(r.n * width, state, g + r.row * width);
        if (w_hr) {
            memcpy(folded + r.row * width, state, static_cast<size_t>(r.n * width) * sizeof(T));
            gemm_parallel(false, false, r.n, size, width, T(1), state, width, w_hr, size, T(0), room + low * size, size);
            of_h = room + low * size;
        }
        with_before(s, j, low, r.n, size, c0, cells, [&](int64_t from, int64_t n, const T *before) {
            const int64_t row = r.row + from;
            kernels.lstm_backward(n, size, gates + row * 4 * size, cells + row * size, before, of_h + from * size,
                                  d_c + (low + from) * size, d + row * 4 * size, w_hr ? shown + row * size : nullptr);
        });
        gemm_parallel(false, false, r.n, width, 4 * size, T(1), d + r.row * 4 * size, 4 * size, w, width, T(0), state, width);
    }
};

PyObject *lstm_layer_grad(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<15> N{"lstm_layer_grad",
                       {"g", "g_h", "g_c", "x", "h0", "c0", "w_ih", "w_hh", "bias", "w_hr", "out", "cells", "gates",
                        "batch_sizes", "reverse"},
                       11};
    PyObject *a[15];
    arguments(N, args, n, names, a);
    Array *cells = as_optional(a[11]), *gates = as_optional(a[12]), *w_hr = as_optional(a[9]);
    if (!cells || !gates || !served(*gates) || !a[13]) return default_body();
    Array &g = as_array(a[0]), &g_h = as_array(a[1]), &g_c = as_array(a[2]), &c0 = as_array(a[5]), &w_hh = as_array(a[7]);
    if (g_h.ndim != 2 || c0.ndim != 2 || g_h.size == 0 || c0.size == 0) return default_body();
    need_blas();
    const Steps s(a[13], as_bool(a[14]));
    const DType d = gates->dtype;
    const int64_t size = c0.shape()[1], width = g_h.shape()[1];
    expect(&g, d, s.rows, width, "g"), expect(&g_h, d, s.batch, w_hr ? width : size, "g_h");
    expect(&g_c, d, s.batch, size, "g_c"), expect(&c0, d, s.batch, size, "c0");
    expect(&w_hh, d, 4 * size, width, "w_hh"), expect(w_hr, d, width, size, "w_hr");
    expect(cells, d, s.rows, size, "cells"), expect(gates, d, s.rows, 4 * size, "gates");
    const Ref grad = contiguous(g), first = contiguous(c0), w = contiguous(w_hh), fold = optional_contiguous(w_hr);
    const Ref states = contiguous(*cells), opened = contiguous(*gates);
    Ref d_h = copied(g_h), d_c = copied(g_c), pulled = make(d, {s.rows, 4 * size}), d_hr, folded, shown;
    if (w_hr) d_hr = make(d, {width, size}), folded = make(d, {s.rows, width}), shown = make(d, {s.rows, size});
    auto run = [&](auto zero) {
        using T = decltype(zero);
        LstmBack<T>{size, width, grad->as<T>(), first->as<T>(), w->as<T>(), data<T>(fold), states->as<T>(), opened->as<T>(),
                    pulled->as<T>(), d_h->as<T>(), d_c->as<T>(), w_hr ? folded->as<T>() : nullptr,
                    w_hr ? shown->as<T>() : nullptr}.backward(s);
        if (w_hr)
            gemm_parallel(true, false, width, size, s.rows, T(1), folded->as<T>(), width, shown->as<T>(), size, T(0),
                          d_hr->as<T>(), size);
    };
    if (d == F64) run(0.0);
    else run(0.0f);
    return as_tuple(pulled, d_h, d_c, d_hr);
}

// ---- gru ----

PyObject *gru_layer(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<8> N{"gru_layer", {"x", "h0", "w_ih", "w_hh", "b_ih", "b_hh", "batch_sizes", "reverse"}, 4};
    PyObject *a[8];
    arguments(N, args, n, names, a);
    Array &x = as_array(a[0]), &h0 = as_array(a[1]), &w_ih = as_array(a[2]), &w_hh = as_array(a[3]);
    Array *b_ih = as_optional(a[4]), *b_hh = as_optional(a[5]);
    if (!served(x) || x.ndim != 2 || h0.ndim != 2 || h0.size == 0 || !a[6]) return default_body();
    need_blas();
    const Steps s(a[6], as_bool(a[7]));
    const int64_t size = h0.shape()[h0.ndim - 1];
    expect(&x, x.dtype, s.rows, x.shape()[1], "x"), expect(&h0, x.dtype, s.batch, size, "h0");
    expect(&w_ih, x.dtype, 3 * size, x.shape()[1], "w_ih"), expect(&w_hh, x.dtype, 3 * size, size, "w_hh");
    expect(b_ih, x.dtype, 3 * size, -1, "b_ih"), expect(b_hh, x.dtype, 3 * size, -1, "b_hh");
    const Ref given = contiguous(x), w_own = contiguous(w_ih), w = transposed(w_hh);
    const Ref own_bias = optional_contiguous(b_ih), bias = optional_contiguous(b_hh);
    Ref h = copied(h0), out = make(x.dtype, {s.rows, size}), gates = make(x.dtype, {s.rows, 4 * size});
    auto run = [&](auto zero) {
        using T = decltype(zero);
        Scratch<T> own(static_cast<size_t>(s.rows * 3 * size)), hidden(static_cast<size_t>(s.batch * 3 * size));
        T *sums = own, *moved = hidden, *state = h->as<T>(), *opened = gates->as<T>(), *to = out->as<T>();
        const T *weights = w->as<T>();
        project(*given, *w_own, sums);
        over_sequences(s, s.rows * size * size * 3, [&](int64_t low, int64_t high) {
            for (int64_t j = 0; j < s.count; j++) {
                const Rows r(s, j, low, high);
                if (r.n <= 0) continue;
                gemm_parallel(false, false, r.n, 3 * size, size, T(1), state + low * size, size, weights, 3 * size, T(0),
                              moved + low * 3 * size, 3 * size);
                Tables<T>::get().gru_forward(r.n, size, sums + r.row * 3 * size, data<T>(own_bias), moved + low * 3 * size,
                                             data<T>(bias), opened + r.row * 4 * size, state + low * size, to + r.row * size);
            }
        });
    };
    if (x.dtype == F64) run(0.0);
    else run(0.0f);
    return as_tuple(out, h, gates);
}

PyObject *gru_layer_grad(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<12> N{"gru_layer_grad",
                       {"g", "g_h", "x", "h0", "w_ih", "w_hh", "b_ih", "b_hh", "out", "gates", "batch_sizes", "reverse"},
                       9};
    PyObject *a[12];
    arguments(N, args, n, names, a);
    Array *gates = as_optional(a[9]);
    if (!gates || !served(*gates) || !a[10]) return default_body();
    Array &g = as_array(a[0]), &g_h = as_array(a[1]), &h0 = as_array(a[3]), &w_hh = as_array(a[5]), &out = as_array(a[8]);
    if (h0.ndim != 2 || h0.size == 0) return default_body();
    need_blas();
    const Steps s(a[10], as_bool(a[11]));
    const DType d = gates->dtype;
    const int64_t size = h0.shape()[1];
    expect(&g, d, s.rows, size, "g"), expect(&g_h, d, s.batch, size, "g_h"), expect(&h0, d, s.batch, size, "h0");
    expect(&w_hh, d, 3 * size, size, "w_hh"), expect(&out, d, s.rows, size, "out");
    expect(gates, d, s.rows, 4 * size, "gates");
    const Ref grad = contiguous(g), first = contiguous(h0), w = contiguous(w_hh), states = contiguous(out);
    const Ref opened = contiguous(*gates);
    Ref d_h = copied(g_h), d_own = make(d, {s.rows, 3 * size}), d_hidden = make(d, {s.rows, 3 * size});
    auto run = [&](auto zero) {
        using T = decltype(zero);
        const RecurrentOf<T> &kernels = Tables<T>::get();
        const T *from = grad->as<T>(), *weights = w->as<T>(), *begin = first->as<T>(), *known = states->as<T>();
        const T *open = opened->as<T>();
        T *of_h = d_h->as<T>(), *own = d_own->as<T>(), *hidden = d_hidden->as<T>();
        over_sequences(s, s.rows * size * size * 3, [&](int64_t low, int64_t high) {
            for (int64_t j = s.count - 1; j >= 0; j--) {
                const Rows r(s, j, low, high);
                if (r.n <= 0) continue;
                kernels.add(r.n * size, of_h + low * size, from + r.row * size);
                with_before(s, j, low, r.n, size, begin, known, [&](int64_t at, int64_t rows, const T *before) {
                    const int64_t row = r.row + at;
                    kernels.gru_backward(rows, size, open + row * 4 * size, before, of_h + (low + at) * size,
                                         own + row * 3 * size, hidden + row * 3 * size);
                });
                gemm_parallel(false, false, r.n, size, 3 * size, T(1), hidden + r.row * 3 * size, 3 * size, weights, size, T(1),
                              of_h + low * size, size);
            }
        });
    };
    if (d == F64) run(0.0);
    else run(0.0f);
    return as_tuple(d_own, d_hidden, d_h);
}

}  // namespace

const Method rnn_methods[] = {
    MORTICE_METHOD("partial_rnn_layer", rnn_layer),
    MORTICE_METHOD("partial_rnn_layer_grad", rnn_layer_grad),
    MORTICE_METHOD("partial_lstm_layer", lstm_layer),
    MORTICE_METHOD("partial_lstm_layer_grad", lstm_layer_grad),
    MORTICE_METHOD("partial_gru_layer", gru_layer),
    MORTICE_METHOD("partial_gru_layer_grad", gru_layer_grad),
    {},
};

}  // namespace mortice
