// Gates of recurrent layers, in one pass over the units of each row.
#include "rnn.hpp"

#include "vmath.hpp"

namespace mortice::ISA {

template <class T> INLINE vec<T> get(const T *p, int64_t left) {
    return left >= LANES<T> ? load(p) : load_part(p, left);
}
template <class T> INLINE void put(T *p, vec<T> v, int64_t left) {
    if (left >= LANES<T>) store(p, v);
    else store_part(p, v, left);
}
template <class T> INLINE vec<T> with(vec<T> v, const T *bias, int64_t left) {
    return bias ? v + get(bias, left) : v;
}

template <class T> static void rnn_forward(int64_t n, int64_t size, T *sum, const T *bias, T *h, bool relu) {
    for (int64_t i = 0; i < n; i++, sum += size, h += size)
        for (int64_t j = 0; j < size; j += LANES<T>) {
            const int64_t left = size - j;
            vec<T> x = with(get(sum + j, left), bias ? bias + j : bias, left);
            x = relu ? select(x < vec<T>{}, vec<T>{}, x) : v_tanh(x);
            put(sum + j, x, left);
            put(h + j, x, left);
        }
}

template <class T>
static void rnn_backward(int64_t n, int64_t size, const T *out, const T *g, const T *d_h, T *d, bool relu) {
    for (int64_t i = 0; i < n * size; i++) {
        const T slope = relu ? (out[i] > 0 ? T(1) : T(0)) : 1 - out[i] * out[i];
        d[i] = (d_h[i] + g[i]) * slope;
    }
}

template <class T>
static void lstm_forward(int64_t n, int64_t size, T *gates, const T *bias, T *c, T *cells, T *shown, T *h) {
    for (int64_t i = 0; i < n; i++, gates += 4 * size, c += size, cells += size, shown += size) {
        T *at[4];
        for (int p = 0; p < 4; p++) at[p] = gates + p * size;
        for (int64_t j = 0; j < size; j += LANES<T>) {
            const int64_t left = size - j;
            vec<T> x[4];
            for (int p = 0; p < 4; p++) {
                x[p] = with(get(at[p] + j, left), bias ? bias + p * size + j : bias, left);
                x[p] = p == 2 ? v_tanh(x[p]) : v_sigmoid(x[p]);
                put(at[p] + j, x[p], left);
            }
            const vec<T> cell = x[1] * get(c + j, left) + x[0] * x[2], y = x[3] * v_tanh(cell);
            put(c + j, cell, left);
            put(cells + j, cell, left);
            put(shown + j, y, left);
            if (h) put(h + j, y, left);
        }
        if (h) h += size;
    }
}

template <class T>
static void lstm_backward(int64_t n, int64_t size, const T *gates, const T *cells, const T *before, const T *d_h, T *d_c, T *d,
                          T *shown) {
    const vec<T> one = splat<T>(1);
    for (int64_t r = 0; r < n; r++, gates += 4 * size, cells += size, before += size, d_h += size, d_c += size, d += 4 * size) {
        for (int64_t j = 0; j < size; j += LANES<T>) {
            const int64_t left = size - j;
            const vec<T> i = get(gates + j, left), f = get(gates + size + j, left), a = get(gates + 2 * size + j, left);
            const vec<T> o = get(gates + 3 * size + j, left), t = v_tanh(get(cells + j, left)), new_h = get(d_h + j, left);
            const vec<T> cell = get(d_c + j, left) + new_h * o * (one - t * t);
            put(d + j, cell * a * i * (one - i), left);
            put(d + size + j, cell * get(before + j, left) * f * (one - f), left);
            put(d + 2 * size + j, cell * i * (one - a * a), left);
            put(d + 3 * size + j, new_h * t * o * (one - o), left);
            put(d_c + j, cell * f, left);
            if (shown) put(shown + j, o * t, left);
        }
        if (shown) shown += size;
    }
}

template <class T>
static void gru_forward(int64_t n, int64_t size, const T *own, const T *b_own, const T *hidden, const T *b_hidden, T *gates,
                        T *h, T *out) {
    for (int64_t i = 0; i < n; i++, own += 3 * size, hidden += 3 * size, gates += 4 * size, h += size, out += size)
        for (int64_t j = 0; j < size; j += LANES<T>) {
            const int64_t left = size - j;
            vec<T> x[3], y[3];
            for (int p = 0; p < 3; p++) {
                const int64_t at = p * size + j;
                x[p] = with(get(own + at, left), b_own ? b_own + at : b_own, left);
                y[p] = with(get(hidden + at, left), b_hidden ? b_hidden + at : b_hidden, left);
            }
            const vec<T> r = v_sigmoid(x[0] + y[0]), z = v_sigmoid(x[1] + y[1]), a = v_tanh(x[2] + r * y[2]);
            const vec<T> moved = a + z * (get(h + j, left) - a);
            put(gates + j, r, left);
            put(gates + size + j, z, left);
            put(gates + 2 * size + j, y[2], left);
            put(gates + 3 * size + j, a, left);
            put(h + j, moved, left);
            put(out + j, moved, left);
        }
}

template <class T>
static void gru_backward(int64_t n, int64_t size, const T *gates, const T *before, T *d_h, T *d_own, T *d_hidden) {
    const vec<T> one = splat<T>(1);
    for (int64_t i = 0; i < n; i++, gates += 4 * size, before += size, d_h += size, d_own += 3 * size, d_hidden += 3 * size)
        for (int64_t j = 0; j < size; j += LANES<T>) {
            const int64_t left = size - j;
            const vec<T> r = get(gates + j, left), z = get(gates + size + j, left), q = get(gates + 2 * size + j, left);
            const vec<T> a = get(gates + 3 * size + j, left), g = get(d_h + j, left);
            const vec<T> of_n = g * (one - z) * (one - a * a), of_r = of_n * q * r * (one - r);
            const vec<T> of_z = g * (get(before + j, left) - a) * z * (one - z);
            put(d_own + j, of_r, left);
            put(d_own + size + j, of_z, left);
            put(d_own + 2 * size + j, of_n, left);
            put(d_hidden + j, of_r, left);
            put(d_hidden + size + j, of_z, left);
            put(d_hidden + 2 * size + j, of_n * r, left);
            put(d_h + j, g * z, left);
        }
}

template <class T> static void add(int64_t n, T *to, const T *from) {
    for (int64_t i = 0; i < n; i++) to[i] += from[i];
}

extern const RecurrentKernels recurrent_table = {
    {rnn_forward<float>, rnn_backward<float>, lstm_forward<float>, lstm_backward<float>, gru_forward<float>,
     gru_backward<float>, add<float>},
    MORTICE_UP_TO_AVX2({rnn_forward<double>, rnn_backward<double>, lstm_forward<double>, lstm_backward<double>,
                        gru_forward<double>, gru_backward<double>, add<double>}),
};

}  // namespace mortice::ISA
