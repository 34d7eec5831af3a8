#include "fft.hpp"

#include "simd.hpp"

namespace mortice::ISA {

// Of numbers or of vectors of them.
template <class V> struct Complex {
    V re, im;
};
template <class V> INLINE Complex<V> operator+(Complex<V> a, Complex<V> b) { return {a.re + b.re, a.im + b.im}; }
template <class V> INLINE Complex<V> operator-(Complex<V> a, Complex<V> b) { return {a.re - b.re, a.im - b.im}; }
template <class V, class T> INLINE Complex<V> times(Complex<V> a, Complex<T> b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class V, class T> INLINE Complex<V> scaled(Complex<V> a, T c) { return {a.re * c, a.im * c}; }
template <class V> INLINE Complex<V> turned(Complex<V> a) { return {a.im, -a.re}; }  // times -i

template <int R, class T, class V> INLINE void small(Complex<V> *v) {
    if constexpr (R == 2) {
        const Complex<V> a = v[0];
        v[0] = a + v[1];
        v[1] = a - v[1];
    } else if constexpr (R == 3) {
        const Complex<V> sum = v[1] + v[2], middle = v[0] - scaled(sum, T(0.5));
        const Complex<V> side = scaled(turned(v[1] - v[2]), T(0.866025403784438646763723170752936183));
        v[0] = v[0] + sum;
        v[1] = middle + side;
        v[2] = middle - side;
    } else if constexpr (R == 4) {
        const Complex<V> a = v[0] + v[2], b = v[0] - v[2], c = v[1] + v[3], d = turned(v[1] - v[3]);
        v[0] = a + c;
        v[1] = b + d;
        v[2] = a - c;
        v[3] = b - d;
    } else {
        const T c1 = T(0.309016994374947424102293417182819059), c2 = T(-0.809016994374947424102293417182819059);
        const T s1 = T(0.951056516295153572116439333379382143), s2 = T(0.587785252292473129168705954639072769);
        const Complex<V> a = v[1] + v[4], b = v[2] + v[3], c = turned(v[1] - v[4]), d = turned(v[2] - v[3]);
        const Complex<V> p = v[0] + scaled(a, c1) + scaled(b, c2), q = v[0] + scaled(a, c2) + scaled(b, c1);
        const Complex<V> r = scaled(c, s1) + scaled(d, s2), t = scaled(c, s2) - scaled(d, s1);
        v[0] = v[0] + a + b;
        v[1] = p + r;
        v[2] = q + t;
        v[3] = q - t;
        v[4] = p - r;
    }
}

// One butterfly of numbers or of vectors, at q.
template <int R, class T, class V>
INLINE void butterfly(const FFTStep<T> &f, const T *xr, const T *xi, T *yr, T *yi, int64_t apart, int64_t q, const Complex<T> *w) {
    Complex<V> v[R];
#pragma GCC unroll 8
    for (int k = 0; k < R; k++) {
        __builtin_memcpy(&v[k].re, xr + k * apart + q, sizeof(V));
        __builtin_memcpy(&v[k].im, xi + k * apart + q, sizeof(V));
    }
    small<R, T>(v);
#pragma GCC unroll 8
    for (int j = 0; j < R; j++) {
        const Complex<V> u = j ? times(v[j], w[j]) : v[0];
        __builtin_memcpy(yr + j * f.s + q, &u.re, sizeof(V));
        __builtin_memcpy(yi + j * f.s + q, &u.im, sizeof(V));
    }
}

template <int R, class T> static void step_of(const FFTStep<T> &f) {
    const int64_t m = f.m, s = f.s, apart = m * s, turn = f.whole / (R * m);
    for (int64_t p = 0; p < m; p++) {
        Complex<T> w[R];
#pragma GCC unroll 8
        for (int j = 1; j < R; j++) w[j] = {f.root_re[p * j * turn], f.root_im[p * j * turn]};
        const T *xr = f.x_re + p * s, *xi = f.x_im + p * s;
        T *yr = f.y_re + p * R * s, *yi = f.y_im + p * R * s;
        int64_t q = 0;
        for (; q + LANES<T> <= s && !SMALL; q += LANES<T>) butterfly<R, T, vec<T>>(f, xr, xi, yr, yi, apart, q, w);
        for (; q < s; q++) butterfly<R, T, T>(f, xr, xi, yr, yi, apart, q, w);
    }
}

// Any odd factor, by its definition; what is summed and what is subtracted are taken in pairs.
template <class T> static void step_any(const FFTStep<T> &f) {
    constexpr int64_t BLOCK = 16;
    const int64_t r = f.factor, m = f.m, s = f.s, apart = m * s, turn = f.whole / (r * m), unit = f.whole / r, half = r / 2;
    T sum_re[MOST_FACTOR][BLOCK], sum_im[MOST_FACTOR][BLOCK], less_re[MOST_FACTOR][BLOCK], less_im[MOST_FACTOR][BLOCK];
    for (int64_t p = 0; p < m; p++)
        for (int64_t from = 0; from < s; from += BLOCK) {
            const int64_t n = s - from < BLOCK ? s - from : BLOCK;
            const T *xr = f.x_re + p * s + from, *xi = f.x_im + p * s + from;
            T *yr = f.y_re + p * r * s + from, *yi = f.y_im + p * r * s + from;
            T all_re[BLOCK], all_im[BLOCK];
            for (int64_t q = 0; q < n; q++) all_re[q] = xr[q], all_im[q] = xi[q];
            for (int64_t k = 1; k <= half; k++)
                for (int64_t q = 0; q < n; q++) {
                    const T a = xr[k * apart + q], b = xr[(r - k) * apart + q];
                    const T c = xi[k * apart + q], d = xi[(r - k) * apart + q];
                    sum_re[k][q] = a + b, less_re[k][q] = a - b;
                    sum_im[k][q] = c + d, less_im[k][q] = c - d;
                    all_re[q] += sum_re[k][q], all_im[q] += sum_im[k][q];
                }
            for (int64_t q = 0; q < n; q++) yr[q] = all_re[q], yi[q] = all_im[q];
            for (int64_t j = 1; j <= half; j++) {
                T even_re[BLOCK], even_im[BLOCK], odd_re[BLOCK] = {}, odd_im[BLOCK] = {};
                for (int64_t q = 0; q < n; q++) even_re[q] = xr[q], even_im[q] = xi[q];
                for (int64_t k = 1; k <= half; k++) {
                    const T c = f.root_re[j * k % r * unit], d = f.root_im[j * k % r * unit];
                    for (int64_t q = 0; q < n; q++) {
                        even_re[q] += sum_re[k][q] * c, even_im[q] += sum_im[k][q] * c;
                        odd_re[q] -= less_im[k][q] * d, odd_im[q] += less_re[k][q] * d;
                    }
                }
                const Complex<T> w = {f.root_re[p * j * turn], f.root_im[p * j * turn]};
                const Complex<T> v = {f.root_re[p * (r - j) * turn], f.root_im[p * (r - j) * turn]};
                for (int64_t q = 0; q < n; q++) {
                    const auto a = times(Complex<T>{even_re[q] + odd_re[q], even_im[q] + odd_im[q]}, w);
                    const auto b = times(Complex<T>{even_re[q] - odd_re[q], even_im[q] - odd_im[q]}, v);
                    yr[j * s + q] = a.re, yi[j * s + q] = a.im;
                    yr[(r - j) * s + q] = b.re, yi[(r - j) * s + q] = b.im;
                }
            }
        }
}

template <class T> static void step(const FFTStep<T> &f) {
    if (f.factor == 2) return step_of<2>(f);
    if (f.factor == 4) return step_of<4>(f);
    if (f.factor == 3 && !SMALL) return step_of<3>(f);
    if (f.factor == 5 && !SMALL) return step_of<5>(f);
    step_any(f);
}

extern const FFTTable fft_kernels_table;
const FFTTable fft_kernels_table = {step<float>, step<double>};

}  // namespace mortice::ISA
