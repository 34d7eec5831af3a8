// Scaled dot product attention and its gradient: tiles of scores between BLAS products, so that no matrix of all queries
// by all keys need exist.
#include <cmath>

#include "blas.hpp"
#include "call.hpp"
#include "families.hpp"
#include "kernels/attention.hpp"
#include "parallel.hpp"

namespace mortice {

namespace {

constexpr int64_t ROWS = 128, COLUMNS = 512;  // of a tile: what the second cache holds

// Where an operand's matrices lie: its steps along the axes of the batch, and between rows (and columns, for masks).
struct Place {
    int64_t batch[MAX_NDIM];
    int64_t row = 0, column = 0;
};

struct Problem {
    int ndim = 0;  // axes of the batch
    int64_t shape[MAX_NDIM];
    int64_t heads = 1, length, keys, inner, values;
    bool causal;
    double scale, keep_scale;
};

int64_t offset(const Problem &p, const Place &x, int64_t index) {
    int64_t at = 0;
    for (int i = p.ndim - 1; i >= 0; i--) {
        at += index % p.shape[i] * x.batch[i];
        index /= p.shape[i];
    }
    return at;
}

// The array itself where its rows are contiguous, else a row-major copy.
Ref with_whole_rows(Array &x, DType d) {
    const int nd = x.ndim;
    const int64_t rows = x.shape()[nd - 2], columns = x.shape()[nd - 1];
    const bool good = (columns <= 1 || x.strides()[nd - 1] == 1) && (rows <= 1 || x.strides()[nd - 2] >= columns);
    if (x.dtype == d) return good ? Ref::share(&x) : contiguous(x);
    return converted(x, d);
}

Place place(const Array &x, const Problem &p) {
    Place s;
    const int own = x.ndim - 2;
    for (int i = 0; i < p.ndim; i++) {
        const int at = i - (p.ndim - own);
        s.batch[i] = at < 0 || x.shape()[at] == 1 ? 0 : x.strides()[at];
    }
    const int64_t columns = x.shape()[x.ndim - 1], row = x.strides()[x.ndim - 2];
    s.row = row >= columns ? row : columns;  // the step of a single row may be anything
    if (s.row < 1) s.row = 1;
    return s;
}

// A mask broadcasts to the scores; whether it does without new axes or sizes.
bool mask_fits(const Array &x, const Problem &p) {
    if (x.ndim > p.ndim + 2) return false;
    for (int i = 0; i < x.ndim; i++) {
        const int at = i - x.ndim;  // from the end
        const int64_t size = at == -1 ? p.keys : at == -2 ? p.length : p.shape[p.ndim + 2 + at];
        if (x.shape()[i] != 1 && x.shape()[i] != size) return false;
    }
    return true;
}

Ref prepared_mask(Array &x, DType d) {
    if (x.dtype != BOOL && x.dtype != d) return converted(x, d);
    if (x.ndim == 0 || x.shape()[x.ndim - 1] <= 1) return Ref::share(&x);
    const int64_t step = x.strides()[x.ndim - 1];
    return step == 0 || step == 1 ? Ref::share(&x) : contiguous(x);
}

Place place_mask(const Array &x, const Problem &p) {
    Place s;
    for (int i = 0; i < p.ndim; i++) {
        const int at = i - (p.ndim + 2 - x.ndim);
        s.batch[i] = at < 0 || x.shape()[at] == 1 ? 0 : x.strides()[at];
    }
    const int nd = x.ndim;
    s.row = nd < 2 || x.shape()[nd - 2] == 1 ? 0 : x.strides()[nd - 2];
    s.column = nd < 1 || x.shape()[nd - 1] == 1 ? 0 : x.strides()[nd - 1];
    return s;
}

// Sizes from query, key and value; false where the batches broadcast in a way that is left to the default body.
bool set_up(Problem &p, const Array &q, const Array &k, const Array &v, bool one_batch) {
    if (q.ndim < 2 || k.ndim < 2 || v.ndim < 2) fail(PyExc_ValueError, "attention: expected arrays of two axes or more");
    const Array *all[] = {&q, &k, &v};
    for (const Array *x : all) p.ndim = x->ndim - 2 > p.ndim ? x->ndim - 2 : p.ndim;
    for (int i = 0; i < p.ndim; i++) {
        int64_t size[3];
        for (int j = 0; j < 3; j++) {
            const int at = i - (p.ndim - (all[j]->ndim - 2));
            size[j] = at < 0 ? 1 : all[j]->shape()[at];
            if (one_batch && (at < 0 || size[j] != size[0])) return false;
        }
        const int64_t scores = size[0] == 1 ? size[1] : size[0];
        if (size[1] != scores && size[1] != 1) fail(PyExc_ValueError, "attention: the leading axes do not broadcast");
        // Values that repeat what queries and keys have once would make the output larger than the scores.
        if (size[2] != scores && size[2] != 1) return false;
        p.shape[i] = scores;
        p.heads *= scores;
    }
    p.length = q.shape()[q.ndim - 2], p.inner = q.shape()[q.ndim - 1];
    p.keys = k.shape()[k.ndim - 2], p.values = v.shape()[v.ndim - 1];
    if (k.shape()[k.ndim - 1] != p.inner || v.shape()[v.ndim - 2] != p.keys)
        fail(PyExc_ValueError, "attention: expected query (..., L, E), key (..., S, E) and value (..., S, V)");
    return true;
}

// Laid out as its model where that is a permuted array of the same shape: heads that were moved in front move back for
// nothing.
Ref output_like(const Array &model, const Problem &p, int64_t rows, int64_t columns, DType d) {
    int64_t shape[MAX_NDIM];
    const int nd = p.ndim + 2;
    if (nd > MAX_NDIM) fail(PyExc_ValueError, "attention: too many axes");
    for (int i = 0; i < p.ndim; i++) shape[i] = p.shape[i];
    shape[nd - 2] = rows, shape[nd - 1] = columns;
    bool same = model.ndim == nd;
    for (int i = 0; same && i < nd; i++) same = model.shape()[i] == shape[i];
    if (same && columns > 1 && model.strides()[nd - 1] == 1 && model.strides()[nd - 2] >= columns)
        return make_laid_out_like(model, d);
    return make(d, nd, shape);
}

template <class T> struct Tables;
template <> struct Tables<float> {
    static const AttentionOf<float> &get() { return attention().f32; }
};
template <> struct Tables<double> {
    static const AttentionOf<double> &get() { return attention().f64; }
};

// What of the scores both directions share.
template <class T> struct Scores {
    const T *q, *k;
    Place at_q, at_k;
    const Array *mask = nullptr, *keep = nullptr;
    Place at_mask, at_keep;

    // The tile of rows from `row` and columns from `column`, its products not yet made.
    ScoreTile<T> tile(const Problem &p, int64_t head, int64_t row, int64_t rows, int64_t column, int64_t columns,
                      T *room) const {
        ScoreTile<T> t{};
        t.scores = room;
        t.rows = rows, t.columns = columns, t.lead = (columns + 15) / 16 * 16;
        t.visible = p.causal ? row + 1 - column : columns;
        t.scale = static_cast<T>(p.scale);
        if (mask) {
            const int64_t from = offset(p, at_mask, head) + row * at_mask.row + column * at_mask.column;
            t.mask = mask->data + from * mask->itemsize();
            t.mask_is_bool = mask->dtype == BOOL;
            t.mask_row = at_mask.row, t.mask_column = at_mask.column;
        }
        if (keep) {
            t.keep = keep->as<uint8_t>() + offset(p, at_keep, head) + row * at_keep.row + column * at_keep.column;
            t.keep_row = at_keep.row, t.keep_column = at_keep.column;
            t.keep_scale = static_cast<T>(p.keep_scale);
        }
        return t;
    }
};

// The columns that rows below `stop` can see.
int64_t reach(const Problem &p, int64_t stop) { return p.causal && stop < p.keys ? stop : p.keys; }

// ---- forward ----

template <class T> struct Forward : Scores<T> {
    const T *v;
    T *out, *lse;
    Place at_v, at_out;

    void rows(const Problem &p, int64_t head, int64_t row, int64_t n, T *room) const {
        const AttentionOf<T> &kernels = Tables<T>::get();
        T top[ROWS], total[ROWS], turn[ROWS];
        for (int64_t i = 0; i < n; i++) top[i] = -static_cast<T>(INFINITY), total[i] = 0;
        const T *query = this->q + offset(p, this->at_q, head) + row * this->at_q.row;
        const T *key = this->k + offset(p, this->at_k, head), *value = v + offset(p, at_v, head);
        T *to = out + offset(p, at_out, head) + row * at_out.row;
        const int64_t stop = reach(p, row + n);
        if (stop == 0)
            for (int64_t i = 0; i < n; i++)
                for (int64_t j = 0; j < p.values; j++) to[i * at_out.row + j] = 0;
        for (int64_t c = 0; c < stop; c += COLUMNS) {
            const int64_t columns = stop - c < COLUMNS ? stop - c : COLUMNS;
            const ScoreTile<T> t = this->tile(p, head, row, n, c, columns, room);
            gemm(false, true, n, columns, p.inner, T(1), query, this->at_q.row, key + c * this->at_k.row, this->at_k.row, T(0),
                 room, t.lead);
            kernels.forward(t, top, total, turn);
            if (c) kernels.multiply_rows(to, n, p.values, at_out.row, turn);
            gemm(false, false, n, p.values, columns, T(1), room, t.lead, value + c * at_v.row, at_v.row, c ? T(1) : T(0), to,
                 at_out.row);
        }
        kernels.finish(to, n, p.values, at_out.row, top, total, lse + head * p.length + row);
    }
};

int64_t work_of(const Problem &p) {
    const double all = static_cast<double>(p.heads) * static_cast<double>(p.length) * static_cast<double>(p.keys + 1) *
                       static_cast<double>(p.inner + p.values + 16);
    return all > 1e15 ? int64_t{1} << 50 : static_cast<int64_t>(all);
}

int64_t grain_of(const Problem &p, int64_t units) {
    const int64_t each = work_of(p) / (units ? units : 1) + 1, grain = 200000 / each;
    return grain < 1 ? 1 : grain;
}

// Rows of a tile. The fewer, the less is computed that is hidden behind the diagonal; the keys are packed anew for each.
int64_t rows_of(const Problem &p) { return p.causal && p.keys <= COLUMNS ? ROWS / 2 : ROWS; }

// Blocks of a side as even as can be, none larger than `most`.
struct Blocks {
    int64_t count, size, total;
    Blocks(int64_t n, int64_t most) : count((n + most - 1) / most), size(1), total(n) {
        if (count > 0) size = ((n + count - 1) / count + 15) / 16 * 16;
        if (size > most) size = most;
        if (count > 0) count = (n + size - 1) / size;
    }
    int64_t begin(int64_t i) const { return i * size; }
    int64_t rows(int64_t i) const { return total - i * size < size ? total - i * size : size; }
};

template <class T> void run_forward(const Problem &p, const Forward<T> &f, T *room, int64_t each) {
    const Blocks blocks(p.length, rows_of(p));
    const int64_t units = p.heads * blocks.count;
    parallel_for(units, grain_of(p, units), [&](int64_t begin, int64_t end) {
        T *own = room + thread_number() * each;
        for (int64_t u = begin; u < end; u++) {
            const int64_t b = u % blocks.count;
            f.rows(p, u / blocks.count, blocks.begin(b), blocks.rows(b), own);
        }
    });
}

int64_t tile_room(const Problem &p) {
    const int64_t columns = p.keys < COLUMNS ? (p.keys + 15) / 16 * 16 : COLUMNS;
    return (p.length < ROWS ? p.length : ROWS) * columns + 16;
}

struct Operands {
    Ref q, k, v, mask, keep;
};

template <class T> void fill_in(Scores<T> &s, const Problem &p, const Operands &o) {
    s.q = o.q->as<T>(), s.k = o.k->as<T>();
    s.at_q = place(*o.q, p), s.at_k = place(*o.k, p);
    if (o.mask) s.mask = o.mask.get(), s.at_mask = place_mask(*o.mask, p);
    if (o.keep) s.keep = o.keep.get(), s.at_keep = place_mask(*o.keep, p);
}

template <class T> void compute_forward(const Problem &p, const Operands &o, Array &out, Array &lse) {
    Forward<T> f;
    fill_in(f, p, o);
    f.v = o.v->as<T>(), f.at_v = place(*o.v, p);
    f.out = out.as<T>(), f.at_out = place(out, p), f.lse = lse.as<T>();
    const int64_t each = tile_room(p);
    Scratch<T> room(static_cast<size_t>(each) * static_cast<size_t>(num_threads()));
    Unlocked free(work_of(p));
    run_forward(p, f, room.get(), each);
}

// ---- backward ----

template <class T> struct Backward : Scores<T> {
    const T *v, *g, *lse;
    T *d_q, *d_k, *d_v;
    const T *products;  // of each row's gradient and output
    Place at_v, at_g, at_dq, at_dk, at_dv;

    // Compute a tile's weights and the gradient of its scores, then what of the gradients is asked for.
    void tile_gradients(const Problem &p, int64_t head, int64_t row, int64_t n, int64_t c, int64_t columns, bool first_rows,
                        bool want_q, bool want_kv, T *room, T *d_room) const {
        const T *query = this->q + offset(p, this->at_q, head) + row * this->at_q.row;
        const T *key = this->k + offset(p, this->at_k, head) + c * this->at_k.row;
        const T *value = v + offset(p, at_v, head) + c * at_v.row, *grad = g + offset(p, at_g, head) + row * at_g.row;
        const ScoreTile<T> t = this->tile(p, head, row, n, c, columns, room);
        gemm(false, true, n, columns, p.inner, T(1), query, this->at_q.row, key, this->at_k.row, T(0), room, t.lead);
        gemm(false, true, n, columns, p.values, T(1), grad, at_g.row, value, at_v.row, T(0), d_room, t.lead);
        const int64_t at = head * p.length + row;
        Tables<T>::get().backward(t, d_room, lse + at, products + at);
        if (want_q)
            gemm(false, false, n, p.inner, columns, T(1), d_room, t.lead, key, this->at_k.row, c ? T(1) : T(0),
                 d_q + offset(p, at_dq, head) + row * at_dq.row, at_dq.row);
        if (!want_kv) return;
        const T beta = first_rows ? T(0) : T(1);
        gemm(true, false, columns, p.inner, n, T(1), d_room, t.lead, query, this->at_q.row, beta,
             d_k + offset(p, at_dk, head) + c * at_dk.row, at_dk.row);
        gemm(true, false, columns, p.values, n, T(1), room, t.lead, grad, at_g.row, beta,
             d_v + offset(p, at_dv, head) + c * at_dv.row, at_dv.row);
    }

    // All of a head; the gradients of the keys add up from the first row block that sees them on.
    void head(const Problem &p, int64_t h, bool want_q, bool want_kv, int64_t row_block, int64_t key_block, T *room,
              T *d_room) const {
        const Blocks blocks(p.length, rows_of(p));
        for (int64_t b = 0; b < blocks.count; b++) {
            if (row_block >= 0 && b != row_block) continue;
            const int64_t row = blocks.begin(b), n = blocks.rows(b), stop = reach(p, row + n);
            for (int64_t c = 0; c < p.keys; c += COLUMNS) {
                if (key_block >= 0 && c / COLUMNS != key_block) continue;
                const int64_t all = p.keys - c < COLUMNS ? p.keys - c : COLUMNS, columns = stop - c < all ? stop - c : all;
                const bool first = want_kv && (b == 0 || row_block >= 0);
                if (first) clear(p, h, c, columns > 0 ? columns : 0, all);
                if (columns > 0) tile_gradients(p, h, row, n, c, columns, first, want_q, want_kv, room, d_room);
            }
            if (want_q && stop == 0) fill_rows(d_q + offset(p, at_dq, h) + row * at_dq.row, n, p.inner, at_dq.row);
        }
    }

    static void fill_rows(T *at, int64_t rows, int64_t columns, int64_t lead) {
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < columns; j++) at[i * lead + j] = 0;
    }

    // The keys of a block that its first rows do not see start from zero.
    void clear(const Problem &p, int64_t h, int64_t c, int64_t low, int64_t high) const {
        T *key = d_k + offset(p, at_dk, h) + c * at_dk.row, *value = d_v + offset(p, at_dv, h) + c * at_dv.row;
        fill_rows(key + low * at_dk.row, high - low, p.inner, at_dk.row);
        fill_rows(value + low * at_dv.row, high - low, p.values, at_dv.row);
    }
};

template <class T> void run_backward(const Problem &p, const Backward<T> &f, T *room, int64_t each) {
    const int64_t threads = num_threads();
    if (p.heads >= threads || work_of(p) < 1000000) {
        parallel_for(p.heads, grain_of(p, p.heads), [&](int64_t begin, int64_t end) {
            T *own = room + thread_number() * 2 * each;
            for (int64_t h = begin; h < end; h++) f.head(p, h, true, true, -1, -1, own, own + each);
        });
        return;
    }
    // Too few heads for the threads: queries by blocks of rows, keys and values by blocks of keys.
    const Blocks blocks(p.length, rows_of(p));
    parallel_for(p.heads * blocks.count, 1, [&](int64_t begin, int64_t end) {
        T *own = room + thread_number() * 2 * each;
        for (int64_t u = begin; u < end; u++)
            f.head(p, u / blocks.count, true, false, u % blocks.count, -1, own, own + each);
    });
    const int64_t key_blocks = (p.keys + COLUMNS - 1) / COLUMNS;
    parallel_for(p.heads * key_blocks, 1, [&](int64_t begin, int64_t end) {
        T *own = room + thread_number() * 2 * each;
        for (int64_t u = begin; u < end; u++) f.head(p, u / key_blocks, false, true, -1, u % key_blocks, own, own + each);
    });
}

template <class T>
void compute_backward(const Problem &p, const Operands &o, const Array &g, const Array &out, const Array &lse, Array &d_q,
                      Array &d_k, Array &d_v) {
    Backward<T> f;
    fill_in(f, p, o);
    f.v = o.v->as<T>(), f.g = g.as<T>(), f.lse = lse.as<T>();
    f.at_v = place(*o.v, p), f.at_g = place(g, p);
    f.d_q = d_q.as<T>(), f.d_k = d_k.as<T>(), f.d_v = d_v.as<T>();
    f.at_dq = place(d_q, p), f.at_dk = place(d_k, p), f.at_dv = place(d_v, p);
    const int64_t each = tile_room(p);
    Scratch<T> room(static_cast<size_t>(each) * 2 * static_cast<size_t>(num_threads()));
    Scratch<T> products(static_cast<size_t>(p.heads * p.length));
    const Place at_out = place(out, p);
    T *to = products;
    f.products = to;
    Unlocked free(work_of(p));
    parallel_for(p.heads, 1 + 20000 / (p.length * p.values + 1), [&](int64_t begin, int64_t end) {
        for (int64_t h = begin; h < end; h++)
            Tables<T>::get().row_products(f.g + offset(p, f.at_g, h), f.at_g.row, out.as<T>() + offset(p, at_out, h),
                                          at_out.row, p.length, p.values, to + h * p.length);
    });
    run_backward(p, f, room.get(), each);
}

// ---- the kernels ----

// Masks as they are needed; false where one does not simply broadcast to the scores.
bool take_masks(Operands &o, const Problem &p, Array *mask, Array *keep, DType d) {
    if ((mask && !mask_fits(*mask, p)) || (keep && (keep->dtype != BOOL || !mask_fits(*keep, p)))) return false;
    if (mask) o.mask = prepared_mask(*mask, d);
    if (keep) o.keep = prepared_mask(*keep, d);
    return true;
}

void read_attributes(Problem &p, PyObject *causal, PyObject *scale, PyObject *dropout) {
    p.causal = as_bool(causal);
    const double size = static_cast<double>(p.inner > 1 ? p.inner : 1);
    p.scale = scale == nullptr || scale == Py_None ? 1 / std::sqrt(size) : as_double(scale);
    const double drop = dropout ? as_double(dropout) : 0;
    p.keep_scale = drop >= 1 ? 0 : 1 / (1 - drop);
}


PyObject *attention_kernel(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<8> N{"attention", {"query", "key", "value", "mask", "keep", "causal", "scale", "dropout_p"}, 3};
    PyObject *a[8];
    arguments(N, args, n, names, a);
    Array &q = as_array(a[0]), &k = as_array(a[1]), &v = as_array(a[2]);
    Problem p;
    if (!is_float(q.dtype) || k.dtype != q.dtype || v.dtype != q.dtype || !set_up(p, q, k, v, false)) return default_body();
    read_attributes(p, a[5], a[6], a[7]);
    const DType d = q.dtype == F64 ? F64 : F32;
    Operands o;
    if (!take_masks(o, p, as_optional(a[3]), as_optional(a[4]), d)) return default_body();
    need_blas();
    o.q = with_whole_rows(q, d), o.k = with_whole_rows(k, d), o.v = with_whole_rows(v, d);
    Ref out = output_like(q, p, p.length, p.values, d);
    int64_t shape[MAX_NDIM];
    for (int i = 0; i < p.ndim; i++) shape[i] = p.shape[i];
    shape[p.ndim] = p.length;
    Ref lse = make(d, p.ndim + 1, shape);
    if (p.heads * p.length > 0) {
        if (d == F64) compute_forward<double>(p, o, *out, *lse);
        else compute_forward<float>(p, o, *out, *lse);
    }
    if (q.dtype != d) out = converted(*out, q.dtype);
    return as_tuple(out, lse);
}

PyObject *attention_grad_kernel(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    static Names<12> N{"attention_grad",
                       {"g", "query", "key", "value", "mask", "keep", "out", "lse", "causal", "scale", "dropout_p",
                        "needs_mask"},
                       4};
    PyObject *a[12];
    arguments(N, args, n, names, a);
    Array &g = as_array(a[0]), &q = as_array(a[1]), &k = as_array(a[2]), &v = as_array(a[3]);
    Array *out = as_optional(a[6]), *lse = as_optional(a[7]);
    Problem p;
    if (as_bool(a[11]) || !out || !lse || !is_float(q.dtype) || k.dtype != q.dtype || v.dtype != q.dtype || g.dtype != q.dtype ||
        out->dtype != q.dtype || !set_up(p, q, k, v, true))
        return default_body();
    read_attributes(p, a[8], a[9], a[10]);
    const DType d = q.dtype == F64 ? F64 : F32;
    Operands o;
    if (!same_shape(g, *out) || g.ndim != p.ndim + 2 || lse->dtype != d || lse->size != p.heads * p.length ||
        g.size != p.heads * p.length * p.values || !take_masks(o, p, as_optional(a[4]), as_optional(a[5]), d))
        return default_body();
    need_blas();
    o.q = with_whole_rows(q, d), o.k = with_whole_rows(k, d), o.v = with_whole_rows(v, d);
    const Ref wide_g = with_whole_rows(g, d), wide_out = with_whole_rows(*out, d), flat_lse = contiguous(*lse);
    Ref d_q = output_like(q, p, p.length, p.inner, d), d_k = output_like(k, p, p.keys, p.inner, d),
        d_v = output_like(v, p, p.keys, p.values, d);
    if (p.heads * p.length * p.keys > 0) {
        if (d == F64) compute_backward<double>(p, o, *wide_g, *wide_out, *flat_lse, *d_q, *d_k, *d_v);
        else compute_backward<float>(p, o, *wide_g, *wide_out, *flat_lse, *d_q, *d_k, *d_v);
    } else {
        const Scalar zero = scalar_of(0, d);
        for (const Ref *x : {&d_q, &d_k, &d_v}) fill(**x, zero.bytes);
    }
    if (q.dtype != d)
        for (Ref *x : {&d_q, &d_k, &d_v}) *x = converted(**x, q.dtype);
    return as_tuple(d_q, d_k, d_v, Ref());
}

}  // namespace

const Method attention_methods[] = {
    MORTICE_METHOD("partial_attention", attention_kernel),
    MORTICE_METHOD("partial_attention_grad", attention_grad_kernel),
    {},
};

}  // namespace mortice
